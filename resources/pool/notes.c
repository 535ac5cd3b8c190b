/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Noted uses: other streams that a block's free has to come after.
 *
 *   address -> note {lane, number} -> note {lane, held} -> ...
 *
 * A use that is noted now has its event now: a number of its stream's lane
 * that is covered. One that is held gets its event when the block is freed, so
 * the lane stays the stream's until then. The free makes its own stream wait
 * for all of them; what comes after it on that stream, and whoever waits for
 * it, comes after them as well. So nothing else has to know of notes.
 *
 * Blocks without notes cost one look at a counter. Threads: `noting` guards
 * the table; it is held over no call of the driver.
 */
#include <stdlib.h>

#include "lib/error.h"
#include "resources/pool/pool.h"

struct ccmr__pool_note {
    uintptr_t address;
    ccmr__pool_lane *lane; /* in use until the note goes */
    uint64_t number;       /* 0: held */
    CUstream stream;       /* of a held one */
    ccmr__pool_note *next;
};

static ccmr__pool_note **bucket_of(ccmr__pool *pool, uintptr_t address)
{
    uint64_t hash = ((uint64_t)address >> 8) * UINT64_C(0x9E3779B97F4A7C15);

    return &pool->notes[hash >> (64 - CCMR__POOL_NOTE_BITS)];
}

static void put_in(ccmr__pool *pool, ccmr__pool_note *note)
{
    ccmr__pool_note **bucket = bucket_of(pool, note->address);

    (void)pthread_mutex_lock(&pool->noting);
    note->next = *bucket;
    *bucket = note;
    if (atomic_fetch_add_explicit(&pool->noted, 1, memory_order_relaxed) ==
        0) {
        ccmr__quick_revoke(); /* frees have to look for notes now */
    }
    (void)pthread_mutex_unlock(&pool->noting);
}

/* All notes of a block, which leave the table. */
static ccmr__pool_note *take_out(ccmr__pool *pool, uintptr_t address)
{
    ccmr__pool_note **link = bucket_of(pool, address);
    ccmr__pool_note *taken = NULL;

    (void)pthread_mutex_lock(&pool->noting);
    while (*link != NULL) {
        ccmr__pool_note *note = *link;

        if (note->address != address) {
            link = &note->next;
            continue;
        }
        *link = note->next;
        note->next = taken;
        taken = note;
        atomic_fetch_sub_explicit(&pool->noted, 1, memory_order_relaxed);
    }
    (void)pthread_mutex_unlock(&pool->noting);
    return taken;
}

/* The block stays live, with its notes. */
static void put_back(ccmr__pool *pool, ccmr__pool_note *notes)
{
    while (notes != NULL) {
        ccmr__pool_note *note = notes;

        notes = note->next;
        put_in(pool, note);
    }
}

static void drop(ccmr__pool_note *note)
{
    while (note != NULL) {
        ccmr__pool_note *next = note->next;

        ccmr__pool_lane_put(note->lane);
        free(note);
        note = next;
    }
}

static uint64_t next_number(ccmr__pool_lane *lane)
{
    uint64_t number;

    ccmr__pool_lane_lock(lane);
    number = ++lane->freed;
    ccmr__pool_lane_unlock(lane);
    return number;
}

/* ---- noting ----------------------------------------------------------------- */

/* The event of a use that is noted now; in a scope. */
static ccmr_status cover_use(ccmr__pool_note *note)
{
    note->number = next_number(note->lane);
    return ccmr__pool_record(note->lane, note->stream);
}

static ccmr_status add(ccmr__pool *pool, void *ptr, ccmr_stream stream,
                       int held)
{
    ccmr__stream_record *record;
    ccmr__stream_use use;
    ccmr__pool_note *note;
    ccmr__scope scope;
    ccmr_status status;

    status = ccmr__pool_meet(pool, stream, &use, &record);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    note = calloc(1, sizeof(*note));
    if (note == NULL) {
        return ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                          "no memory to note a use");
    }
    status = ccmr__pool_lane_get(pool, &use, record, &note->lane);
    if (status != CCMR_SUCCESS) {
        free(note);
        return status;
    }
    note->address = (uintptr_t)ptr;
    note->stream = use.handle;
    status = ccmr__scope_enter(&scope, pool->device, CCMR__SCOPE_RELAXED);
    if (status == CCMR_SUCCESS) {
        status = held ? ccmr__pool_spare_event(note->lane) : cover_use(note);
        ccmr__scope_leave(&scope);
    }
    if (status != CCMR_SUCCESS) {
        drop(note);
        return status;
    }
    put_in(pool, note);
    return CCMR_SUCCESS;
}

static ccmr_status check(ccmr__pool *pool, void *ptr)
{
    if (((uintptr_t)ptr & (CCMR__POOL_GRANULE - 1)) != 0 ||
        ccmr__pool_segment_of(pool, (uintptr_t)ptr) == NULL) {
        return ccmr__fail(CCMR_ERROR_INVALID_POINTER,
                          "%p is not the address of a live block", ptr);
    }
    return CCMR_SUCCESS;
}

ccmr_status ccmr__pool_note_use(void *object, void *ptr, ccmr_stream stream)
{
    ccmr_status status = check(object, ptr);

    return status == CCMR_SUCCESS ? add(object, ptr, stream, 0) : status;
}

ccmr_status ccmr__pool_hold_until_free(void *object, void *ptr,
                                       ccmr_stream stream)
{
    ccmr_status status = check(object, ptr);

    return status == CCMR_SUCCESS ? add(object, ptr, stream, 1) : status;
}

/* ---- the stream's end ------------------------------------------------------------ */

static void renumber(ccmr__pool *pool, const ccmr__pool_lane *lane,
                     uint64_t from, uint64_t to)
{
    ccmr__pool_note *note;
    size_t i;

    (void)pthread_mutex_lock(&pool->noting);
    for (i = 0; i < (size_t)1 << CCMR__POOL_NOTE_BITS; i++) {
        for (note = pool->notes[i]; note != NULL; note = note->next) {
            if (note->lane == lane && note->number == from) {
                note->number = to;
            }
        }
    }
    (void)pthread_mutex_unlock(&pool->noting);
}

ccmr_status ccmr__pool_record_held(ccmr__pool *pool, ccmr__pool_lane *lane,
                                   CUstream stream)
{
    int any = ccmr__pool_has_notes(pool);
    uint64_t number = any ? next_number(lane) : 0;
    ccmr_status status;

    if (any) {
        renumber(pool, lane, 0, number);
    }
    status = ccmr__pool_record(lane, stream);
    if (status != CCMR_SUCCESS && any) {
        renumber(pool, lane, number, 0);
    }
    return status;
}

/* ---- the free -------------------------------------------------------------------- */

static ccmr_status refuse_capturing(void)
{
    return ccmr__fail(CCMR_ERROR_CAPTURING,
                      "a stream that the block is held for is capturing a "
                      "graph; it can be freed when that has ended");
}

/* Is it of the per-thread token, as another thread means it? */
static int is_other_threads(const ccmr__pool_lane *lane)
{
    ccmr__pool *pool = lane->pool;
    ccmr__stream_use use;
    uint64_t id;

    (void)pthread_mutex_lock(&pool->lock);
    id = lane->id;
    (void)pthread_mutex_unlock(&pool->lock);
    return ccmr__stream_resolve(CCMR_STREAM_PER_THREAD, pool->device, &use) ==
               CCMR_SUCCESS &&
           use.id != id;
}

/* An event of a held use. On a stream that captures it would become the
 * graph's, and the free's stream by its wait, too. A registered stream is
 * borrowed, so that no capture begins meanwhile. */
static ccmr_status record_use(const ccmr__pool_note *note)
{
    ccmr__pool_lane *lane = note->lane;
    ccmr_status status = ccmr__pool_record_own(lane);

    if (status != CCMR_ERROR_BUSY) {
        return status;
    }
    if (note->stream == CCMR_STREAM_PER_THREAD && is_other_threads(lane)) {
        return ccmr__fail(CCMR_ERROR_WRONG_THREAD,
                          "the block is held for another thread's per-thread "
                          "default stream: that thread has to free it");
    }
    if (ccmr__stream_is_token(note->stream) ||
        atomic_load_explicit(&lane->record, memory_order_relaxed) != NULL) {
        return refuse_capturing();
    }
    status = ccmr__stream_check_capture(note->stream);
    if (status == CCMR_ERROR_CAPTURING) {
        return refuse_capturing();
    }
    return status == CCMR_SUCCESS ? ccmr__pool_record(lane, note->stream)
                                  : status;
}

/* In a scope: what a free of this moment waits for. A held use gets its event,
 * and stays held: should the free be refused, a later one waits for more. */
static ccmr_status number_now(const ccmr__pool_note *note, uint64_t *number)
{
    *number = note->number;
    if (*number != 0) {
        return CCMR_SUCCESS;
    }
    *number = next_number(note->lane);
    return record_use(note);
}

/* In a scope: the free's stream waits for one use. */
static ccmr_status wait_for(const ccmr__pool_note *note, ccmr__pool_lane *own,
                            CUstream stream)
{
    ccmr__pool_waits waits = {.count = 1, .lanes = {note->lane}};
    ccmr_status status;

    if (note->lane == own) {
        return CCMR_SUCCESS;
    }
    status = number_now(note, &waits.numbers[0]);
    return status == CCMR_SUCCESS ? ccmr__pool_follow(&waits, own, stream)
                                  : status;
}

ccmr_status ccmr__pool_follow_notes(ccmr__pool *pool, void *ptr,
                                    ccmr__pool_lane *own, CUstream stream)
{
    ccmr__pool_note *notes = take_out(pool, (uintptr_t)ptr);
    ccmr__pool_note *note;
    ccmr__scope scope;
    ccmr_status status;

    if (notes == NULL) {
        return CCMR_SUCCESS;
    }
    status = ccmr__scope_enter(&scope, pool->device, CCMR__SCOPE_RELAXED);
    if (status == CCMR_SUCCESS) {
        for (note = notes; note != NULL && status == CCMR_SUCCESS;
             note = note->next) {
            status = wait_for(note, own, stream);
        }
        ccmr__scope_leave(&scope);
    }
    if (status == CCMR_SUCCESS) {
        drop(notes);
        return CCMR_SUCCESS;
    }
    put_back(pool, notes);
    return status;
}

/* In a scope. Where there is no room for a wait it is waited for here. */
static ccmr_status add_wait(const ccmr__pool_note *note,
                            ccmr__pool_waits *waits)
{
    uint64_t number;
    ccmr_status status = number_now(note, &number);

    if (status == CCMR_SUCCESS &&
        !ccmr__pool_waits_add(waits, note->lane, number)) {
        status = ccmr__pool_finish(note->lane, number);
    }
    return status;
}

ccmr_status ccmr__pool_notes_to_waits(ccmr__pool *pool, void *ptr,
                                      ccmr__pool_waits *waits)
{
    ccmr__pool_note *notes = take_out(pool, (uintptr_t)ptr);
    ccmr__pool_note *note;
    ccmr__scope scope;
    ccmr_status status;

    if (notes == NULL) {
        return CCMR_SUCCESS;
    }
    status = ccmr__scope_enter(&scope, pool->device, CCMR__SCOPE_RELAXED);
    if (status == CCMR_SUCCESS) {
        for (note = notes; note != NULL && status == CCMR_SUCCESS;
             note = note->next) {
            status = add_wait(note, waits);
        }
        ccmr__scope_leave(&scope);
    }
    if (status == CCMR_SUCCESS) {
        drop(notes);
    } else {
        put_back(pool, notes);
    }
    return status;
}

void ccmr__pool_notes_end(ccmr__pool *pool)
{
    size_t i;

    for (i = 0; i < (size_t)1 << CCMR__POOL_NOTE_BITS; i++) {
        drop(pool->notes[i]);
        pool->notes[i] = NULL;
    }
}
