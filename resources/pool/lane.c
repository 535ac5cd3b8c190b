/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lanes: the table of streams, events, and waiting for numbers.
 */
#include "resources/pool/lane.h"

#include <sched.h>
#include <stdlib.h>

#include "lib/error.h"
#include "lib/process.h"
#include "resources/pool/pool.h"

/* Lanes without a stream that are looked at for each that is needed. */
#define LOOKED_AT 4u
/* Early events for each time that one was missed. */
#define SCARCE_FOR 1024u

/* ---- the table -------------------------------------------------------------- */

static ccmr__pool_lane **bucket_of(ccmr__pool *pool, uint64_t id)
{
    return &pool->ids[(id * UINT64_C(0x9E3779B97F4A7C15)) >> 56];
}

_Static_assert(CCMR__POOL_LANE_BUCKETS == 256, "the hash gives 8 bits");

ccmr__pool_lane *ccmr__pool_lane_make(ccmr__pool *pool)
{
    ccmr__pool_lane *lane = calloc(1, sizeof(*lane));
    unsigned i;

    if (lane == NULL) {
        return NULL;
    }
    if (pthread_mutex_init(&lane->lock, NULL) != 0) {
        goto err_lane;
    }
    if (ccmr__pool_set_init(&lane->set) != 0) {
        goto err_lock;
    }
    lane->set.surplus = &pool->surplus;
    lane->pool = pool;
    for (i = 0; i < CCMR__POOL_MARKS; i++) {
        lane->marks[i].next = lane->spare_marks;
        lane->spare_marks = &lane->marks[i];
    }
    return lane;

err_lock:
    (void)pthread_mutex_destroy(&lane->lock);
err_lane:
    free(lane);
    return NULL;
}

static int is_own(const ccmr__pool_lane *lane, const ccmr__pool_mark *mark)
{
    return (uintptr_t)mark - (uintptr_t)lane->marks < sizeof(lane->marks);
}

static void free_marks(const ccmr__pool_lane *lane, ccmr__pool_mark *mark)
{
    while (mark != NULL) {
        ccmr__pool_mark *next = mark->next;

        if (mark->event != NULL &&
            CCMR__CU(cuEventDestroy)(mark->event) != CUDA_SUCCESS) {
            /* Once more, so that it does not stay. */
            (void)CCMR__CU(cuEventDestroy)(mark->event);
        }
        if (!is_own(lane, mark)) {
            free(mark);
        }
        mark = next;
    }
}

void ccmr__pool_lane_free(ccmr__pool_lane *lane)
{
    free_marks(lane, lane->oldest);
    free_marks(lane, lane->spare_marks);
    ccmr__pool_set_destroy(&lane->set);
    (void)pthread_mutex_destroy(&lane->lock);
    free(lane);
}

/* Under pool->lock. */
static ccmr__pool_lane *find(ccmr__pool *pool, uint64_t id)
{
    ccmr__pool_lane *lane = *bucket_of(pool, id);

    while (lane != NULL && lane->id != id) {
        lane = lane->chain;
    }
    return lane;
}

/* Nothing of it is left, and nobody is at work on it: another stream may have
 * it. Under pool->lock. */
static int is_idle(ccmr__pool_lane *lane)
{
    int idle;

    if (lane->users != 0 || lane->caches != NULL) {
        return 0;
    }
    (void)pthread_mutex_lock(&lane->lock);
    idle = lane->set.extents == 0 && ccmr__pool_done(lane, lane->freed);
    (void)pthread_mutex_unlock(&lane->lock);
    return idle;
}

/* To the end of those whose stream has gone. Under pool->lock. */
static void put_idle(ccmr__pool *pool, ccmr__pool_lane *lane)
{
    lane->chain = NULL;
    *(pool->idle != NULL ? &pool->idle_last->chain : &pool->idle) = lane;
    pool->idle_last = lane;
}

/* Of the lanes whose stream has gone, one that is idle. A few are looked at,
 * the first of which went first; those that are not idle go to the end. Under
 * pool->lock. */
static ccmr__pool_lane *take_idle(ccmr__pool *pool)
{
    unsigned tries;

    for (tries = 0; tries < LOOKED_AT && pool->idle != NULL; tries++) {
        ccmr__pool_lane *lane = pool->idle;

        pool->idle = lane->chain;
        if (is_idle(lane)) {
            return lane;
        }
        put_idle(pool, lane);
    }
    return NULL;
}

/* Its id means it no more. Under pool->lock. */
static void forget(ccmr__pool_lane *lane)
{
    ccmr__pool_lane **link = bucket_of(lane->pool, lane->id);

    while (*link != lane) {
        link = &(*link)->chain;
    }
    *link = lane->chain;
    lane->id = 0;
    lane->record = NULL;
    lane->pool->streams--;
}

/* Streams that were never retired: lanes that nothing is left of can serve
 * another one; should their stream come back, it gets a new one. One lane is
 * looked at for each that would be made. Under pool->lock. */
static ccmr__pool_lane *take_unused(ccmr__pool *pool)
{
    ccmr__pool_lane *lane =
        pool->hand != NULL
            ? pool->hand
            : atomic_load_explicit(&pool->lanes, memory_order_relaxed);

    if (lane == NULL) {
        return NULL;
    }
    pool->hand = lane->next;
    if (lane->id == 0 || !is_idle(lane)) {
        return NULL;
    }
    forget(lane);
    return lane;
}

/* Under pool->lock. NULL without memory. */
static ccmr__pool_lane *take_or_make(ccmr__pool *pool)
{
    ccmr__pool_lane *lane = take_idle(pool);

    if (lane == NULL && pool->streams > 8) {
        lane = take_unused(pool);
    }
    if (lane == NULL) {
        lane = ccmr__pool_lane_make(pool);
        if (lane != NULL) {
            lane->next =
                atomic_load_explicit(&pool->lanes, memory_order_relaxed);
            atomic_store_explicit(&pool->lanes, lane, memory_order_release);
        }
    }
    return lane;
}

ccmr_status ccmr__pool_lane_get(ccmr__pool *pool, const ccmr__stream_use *use,
                                ccmr__stream_record *record,
                                ccmr__pool_lane **found)
{
    ccmr__pool_lane *lane;

    (void)pthread_mutex_lock(&pool->lock);
    lane = find(pool, use->id);
    if (lane == NULL) {
        lane = take_or_make(pool);
        if (lane != NULL) {
            ccmr__pool_lane **bucket = bucket_of(pool, use->id);

            /* Another stream, which comes after nothing yet. */
            ccmr__pool_lane_lock(lane);
            lane->after = (ccmr__pool_orders){.count = 0};
            ccmr__pool_lane_unlock(lane);
            lane->id = use->id;
            lane->chain = *bucket;
            *bucket = lane;
            pool->streams++;
            pool->seen++;
        }
    }
    if (lane != NULL) {
        lane->users++;
        /* A stream may be registered later than it was first seen. */
        lane->record = record;
        if (pool->seen > 1) {
            atomic_store_explicit(&pool->many, 1, memory_order_relaxed);
        }
    }
    (void)pthread_mutex_unlock(&pool->lock);
    if (lane == NULL) {
        return ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                          "no memory for what a pool knows of a stream");
    }
    *found = lane;
    return CCMR_SUCCESS;
}

ccmr__pool_lane *ccmr__pool_lane_known(ccmr__pool *pool, uint64_t id)
{
    ccmr__pool_lane *lane;

    (void)pthread_mutex_lock(&pool->lock);
    lane = find(pool, id);
    if (lane != NULL) {
        lane->users++;
    }
    (void)pthread_mutex_unlock(&pool->lock);
    return lane;
}

void ccmr__pool_lane_put(ccmr__pool_lane *lane)
{
    ccmr__pool *pool = lane->pool;

    (void)pthread_mutex_lock(&pool->lock);
    lane->users--;
    (void)pthread_mutex_unlock(&pool->lock);
}

void ccmr__pool_lane_retire(ccmr__pool_lane *lane)
{
    forget(lane);
    put_idle(lane->pool, lane);
}

void ccmr__pool_poll_idle(ccmr__pool *pool)
{
    ccmr__pool_lane *lanes[LOOKED_AT];
    ccmr__pool_lane *lane;
    unsigned count = 0;
    unsigned i;

    (void)pthread_mutex_lock(&pool->lock);
    for (lane = pool->idle; lane != NULL && count < LOOKED_AT;
         lane = lane->chain) {
        lanes[count++] = lane;
    }
    (void)pthread_mutex_unlock(&pool->lock);
    for (i = 0; i < count; i++) {
        (void)ccmr__pool_poll(lanes[i], CCMR__POOL_EVENTS + 1);
    }
}

/* ---- pieces -------------------------------------------------------------------- */

size_t ccmr__pool_carry(ccmr__pool_lane *lane, size_t most,
                        ccmr__pool_extent **records)
{
    size_t count = ccmr__pool_give_records(&lane->set, most, records);

    atomic_fetch_add_explicit(&lane->pool->carried, count,
                              memory_order_relaxed);
    return count;
}

void ccmr__pool_carried(ccmr__pool_lane *lane, ccmr__pool_extent *records,
                        size_t count)
{
    ccmr__pool_lane_lock(lane);
    ccmr__pool_take_records(&lane->set, records, count);
    atomic_fetch_sub_explicit(&lane->pool->carried, count,
                              memory_order_relaxed);
    ccmr__pool_lane_unlock(lane);
}

static size_t fetch_from(ccmr__pool_lane *lane, ccmr__pool_extent **records)
{
    size_t count;

    ccmr__pool_lane_lock(lane);
    count = ccmr__pool_carry(lane, lane->set.spare / 2 + 1, records);
    ccmr__pool_lane_unlock(lane);
    return count;
}

/* Spare records of some other lane; they are this call's while it has them. */
static size_t fetch_records(ccmr__pool_lane *lane, ccmr__pool_extent **records)
{
    ccmr__pool *pool = lane->pool;
    ccmr__pool_lane *other =
        atomic_load_explicit(&pool->lanes, memory_order_acquire);
    size_t count =
        lane != pool->common ? fetch_from(pool->common, records) : 0;

    for (; other != NULL && count == 0; other = other->next) {
        if (other != lane) {
            count = fetch_from(other, records);
        }
    }
    return count;
}

void ccmr__pool_bring(ccmr__pool_lane *lane, const ccmr__pool_piece *piece,
                      size_t blocks)
{
    for (;;) {
        ccmr__pool_extent *records;
        size_t count;
        int status;

        ccmr__pool_lane_lock(lane);
        status = ccmr__pool_insert(&lane->set, piece, blocks);
        ccmr__pool_lane_unlock(lane);
        if (status == 0) {
            break;
        }
        /* There is one for every block somewhere, but perhaps in the hands of
         * a call like this one. */
        count = fetch_records(lane, &records);
        if (count == 0) {
            sched_yield();
            continue;
        }
        ccmr__pool_carried(lane, records, count);
    }
    atomic_fetch_add_explicit(&lane->pool->changes, 1, memory_order_relaxed);
}

int ccmr__pool_settled(ccmr__pool_waits *waits)
{
    unsigned kept = 0;
    unsigned i;

    for (i = 0; i < waits->count; i++) {
        if (!ccmr__pool_done(waits->lanes[i], waits->numbers[i])) {
            waits->lanes[kept] = waits->lanes[i];
            waits->numbers[kept] = waits->numbers[i];
            kept++;
        }
    }
    waits->count = kept;
    return kept == 0;
}

/* ---- events -------------------------------------------------------------------- */

static ccmr_status make_event(ccmr__pool_mark *mark)
{
    CUresult res =
        CCMR__CU(cuEventCreate)(&mark->event, CU_EVENT_DISABLE_TIMING);

    return res == CUDA_SUCCESS
               ? CCMR_SUCCESS
               : ccmr__fail_driver_host((int)res, "cuEventCreate");
}

/* Under the lock. */
static void spare_mark(ccmr__pool_lane *lane, ccmr__pool_mark *mark)
{
    mark->next = lane->spare_marks;
    lane->spare_marks = mark;
}

ccmr_status ccmr__pool_spare_event(ccmr__pool_lane *lane)
{
    ccmr__pool_mark *mark = calloc(1, sizeof(*mark));
    ccmr_status status;

    if (mark == NULL) {
        return ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                          "no memory for an event");
    }
    status = make_event(mark);
    if (status != CCMR_SUCCESS) {
        free(mark);
        return status;
    }
    ccmr__pool_lane_lock(lane);
    spare_mark(lane, mark);
    ccmr__pool_lane_unlock(lane);
    return CCMR_SUCCESS;
}

/* Under the lock: what it covers can be waited for. Where there are enough
 * events the new one takes the place of the newest: it covers more. */
static void publish(ccmr__pool_lane *lane, ccmr__pool_mark *mark)
{
    ccmr__pool_mark *last = lane->newest;
    uint64_t number = mark->number;

    if (last != NULL && last->number >= mark->number) {
        spare_mark(lane, mark); /* another call was quicker, and covers more */
        return;
    }
    if (last != NULL && lane->mark_count == CCMR__POOL_EVENTS) {
        CUevent event = last->event;

        last->event = mark->event;
        last->number = mark->number;
        mark->event = event;
        spare_mark(lane, mark);
    } else {
        mark->next = NULL;
        *(last != NULL ? &last->next : &lane->oldest) = mark;
        lane->newest = mark;
        lane->mark_count++;
    }
    atomic_store_explicit(&lane->covered, number, memory_order_relaxed);
}

/* Under the lock: everything up to a number is finished. */
static void note_done(ccmr__pool_lane *lane, uint64_t number)
{
    if (number > atomic_load_explicit(&lane->done, memory_order_relaxed)) {
        atomic_store_explicit(&lane->done, number, memory_order_release);
        atomic_fetch_add_explicit(&lane->pool->changes, 1,
                                  memory_order_relaxed);
    }
    while (lane->oldest != NULL && lane->oldest->number <= number) {
        ccmr__pool_mark *mark = lane->oldest;

        lane->oldest = mark->next;
        if (lane->oldest == NULL) {
            lane->newest = NULL;
        }
        lane->mark_count--;
        spare_mark(lane, mark);
    }
}

/* A mark for all that was freed so far; NULL if that is covered, or if one with
 * an event is wanted and none at hand. Where none is spare other calls are about to record, and each of them brings one back. */
static ccmr__pool_mark *mark_now(ccmr__pool_lane *lane, int at_hand)
{
    ccmr__pool_mark *mark = NULL;

    ccmr__pool_lane_lock(lane);
    while (mark == NULL && lane->freed > lane->covered) {
        mark = lane->spare_marks;
        if (at_hand && (mark == NULL || mark->event == NULL)) {
            mark = NULL;
            break;
        }
        if (mark == NULL) {
            ccmr__pool_lane_unlock(lane);
            sched_yield();
            ccmr__pool_lane_lock(lane);
        }
    }
    if (mark != NULL) {
        lane->spare_marks = mark->next;
        mark->number = lane->freed;
    }
    if (mark != NULL || lane->freed <= lane->covered) {
        atomic_store_explicit(&lane->uncovered_bytes, 0, memory_order_relaxed);
    }
    ccmr__pool_lane_unlock(lane);
    return mark;
}

/* It has been recorded, or not. */
static void put_mark(ccmr__pool_lane *lane, ccmr__pool_mark *mark,
                     ccmr_status status)
{
    ccmr__pool_lane_lock(lane);
    if (status == CCMR_SUCCESS) {
        publish(lane, mark);
    } else {
        spare_mark(lane, mark);
    }
    ccmr__pool_lane_unlock(lane);
}

ccmr_status ccmr__pool_record(ccmr__pool_lane *lane, CUstream stream)
{
    ccmr__pool_mark *mark = mark_now(lane, 0);
    ccmr_status status;
    CUresult res;

    if (mark == NULL) {
        return CCMR_SUCCESS;
    }
    status = mark->event != NULL ? CCMR_SUCCESS : make_event(mark);
    if (status == CCMR_SUCCESS) {
        res = CCMR__CU(cuEventRecord)(mark->event, stream);
        if (res != CUDA_SUCCESS) {
            status = ccmr__fail_driver((int)res, "cuEventRecord");
        }
    }
    put_mark(lane, mark, status);
    return status;
}

int ccmr__pool_record_at_hand(ccmr__pool_lane *lane, CUstream stream)
{
    ccmr__pool_mark *mark = mark_now(lane, 1);
    int recorded;

    if (mark == NULL) {
        return 0;
    }
    recorded = CCMR__CU(cuEventRecord)(mark->event, stream) == CUDA_SUCCESS;
    put_mark(lane, mark, recorded ? CCMR_SUCCESS : CCMR_ERROR_DRIVER);
    return recorded;
}

void ccmr__pool_want_event(ccmr__pool_lane *lane)
{
    /* As if very much were uncovered. */
    atomic_store_explicit(&lane->uncovered_bytes, SIZE_MAX / 2,
                          memory_order_relaxed);
    atomic_store_explicit(&lane->pool->scarce, SCARCE_FOR,
                          memory_order_relaxed);
}

/* A token can always be named, but the per-thread one means its own stream on
 * each thread. One that captures, or beside which another blocking stream
 * captures, is left alone. */
static ccmr_status record_token(ccmr__pool_lane *lane, ccmr_stream token,
                                uint64_t id)
{
    ccmr_error_detail before = *ccmr__error();
    ccmr__stream_use use;

    if (ccmr__stream_resolve(token, lane->pool->device, &use) !=
            CCMR_SUCCESS ||
        use.id != id) {
        *ccmr__error() = before;
        return CCMR_ERROR_BUSY;
    }
    return ccmr__pool_record(lane, use.handle);
}

static ccmr_status record_on(ccmr__pool_lane *lane,
                             ccmr__stream_record *record, uint64_t id)
{
    ccmr_status status;
    CUstream stream;

    if ((id & CCMR__ID_LEGACY) == CCMR__ID_LEGACY) {
        return record_token(lane, CCMR_STREAM_LEGACY, id);
    }
    if ((id & CCMR__ID_PER_THREAD) != 0) {
        return record_token(lane, CCMR_STREAM_PER_THREAD, id);
    }
    if (record == NULL || !ccmr__stream_borrow(record, id, &stream)) {
        return CCMR_ERROR_BUSY;
    }
    status = ccmr__pool_record(lane, stream);
    ccmr__stream_return(record);
    return status;
}

/* In use, so that it stays this stream's lane: else, were the stream retired
 * between the look and the record, an event of the old stream could cover what
 * a new one has freed. */
ccmr_status ccmr__pool_record_own(ccmr__pool_lane *lane)
{
    ccmr__pool *pool = lane->pool;
    ccmr__stream_record *record;
    ccmr_status status;
    uint64_t id;

    (void)pthread_mutex_lock(&pool->lock);
    record = lane->record;
    id = lane->id;
    lane->users++;
    (void)pthread_mutex_unlock(&pool->lock);
    status = record_on(lane, record, id);
    ccmr__pool_lane_put(lane);
    return status;
}

int ccmr__pool_poll(ccmr__pool_lane *lane, unsigned most)
{
    int news = 0;

    while (most-- > 0) {
        CUevent event;
        uint64_t number;
        CUresult res;

        ccmr__pool_lane_lock(lane);
        if (lane->oldest == NULL) {
            ccmr__pool_lane_unlock(lane);
            break;
        }
        event = lane->oldest->event;
        number = lane->oldest->number;
        ccmr__pool_lane_unlock(lane);
        res = CCMR__CU(cuEventQuery)(event);
        if (res != CUDA_SUCCESS) {
            if (res == CUDA_ERROR_DEINITIALIZED) {
                ccmr__process_set_exiting();
            }
            break;
        }
        ccmr__pool_lane_lock(lane);
        note_done(lane, number);
        ccmr__pool_lane_unlock(lane);
        news = 1;
    }
    return news;
}

/* An event that covers a number, recorded now if it has to be. Its lane keeps
 * it; should it be recorded again, that covers more. */
static ccmr_status covering(ccmr__pool_lane *lane, uint64_t number,
                            CUevent *event, uint64_t *covers)
{
    ccmr_status status = CCMR_SUCCESS;
    ccmr__pool_mark *mark;
    int tries;

    for (tries = 0; tries < 2 && status == CCMR_SUCCESS; tries++) {
        ccmr__pool_lane_lock(lane);
        mark = lane->oldest;
        while (mark != NULL && mark->number < number) {
            mark = mark->next;
        }
        if (mark != NULL) {
            *event = mark->event;
            *covers = mark->number;
        }
        ccmr__pool_lane_unlock(lane);
        if (mark != NULL) {
            return CCMR_SUCCESS;
        }
        if (ccmr__pool_done(lane, number)) {
            *event = NULL;
            return CCMR_SUCCESS;
        }
        status = ccmr__pool_record_own(lane);
    }
    return status != CCMR_SUCCESS ? status : CCMR_ERROR_BUSY;
}

static ccmr_status follow_one(ccmr__pool_lane *own, ccmr__pool_lane *lane,
                              uint64_t number, CUstream stream)
{
    CUevent event = NULL;
    uint64_t covers;
    ccmr_status status = covering(lane, number, &event, &covers);
    CUresult res;

    if (status != CCMR_SUCCESS || event == NULL) {
        return status;
    }
    res = CCMR__CU(cuStreamWaitEvent)(stream, event, 0);
    if (res != CUDA_SUCCESS) {
        return ccmr__fail_driver((int)res, "cuStreamWaitEvent");
    }
    ccmr__pool_note_after(own, lane, covers);
    return CCMR_SUCCESS;
}

ccmr_status ccmr__pool_follow(const ccmr__pool_waits *waits,
                              ccmr__pool_lane *own, CUstream stream)
{
    ccmr_status status = CCMR_SUCCESS;
    ccmr__pool_orders after;
    unsigned i;

    if (waits->count == 0) {
        return CCMR_SUCCESS;
    }
    ccmr__pool_copy_after(own, &after);

    for (i = 0; i < waits->count && status == CCMR_SUCCESS; i++) {
        if (waits->lanes[i] != own &&
            !ccmr__pool_done(waits->lanes[i], waits->numbers[i]) &&
            !ccmr__pool_is_after(&after, waits->lanes[i], waits->numbers[i])) {
            status =
                follow_one(own, waits->lanes[i], waits->numbers[i], stream);
        }
    }
    return status;
}

ccmr_status ccmr__pool_finish(ccmr__pool_lane *lane, uint64_t number)
{
    CUevent event = NULL;
    uint64_t covers;
    ccmr_status status = covering(lane, number, &event, &covers);
    CUresult res;

    if (status != CCMR_SUCCESS || event == NULL) {
        return status;
    }
    res = CCMR__CU(cuEventSynchronize)(event);
    if (res != CUDA_SUCCESS) {
        return ccmr__fail_driver((int)res, "cuEventSynchronize");
    }
    ccmr__pool_lane_lock(lane);
    note_done(lane, covers);
    ccmr__pool_lane_unlock(lane);
    return CCMR_SUCCESS;
}

/* ---- lanes of graphs ----------------------------------------------------------- */

ccmr__pool_lane *ccmr__pool_lane_bare(ccmr__pool *pool)
{
    ccmr__pool_lane *lane;

    (void)pthread_mutex_lock(&pool->lock);
    lane = take_or_make(pool);
    (void)pthread_mutex_unlock(&pool->lock);
    return lane;
}

ccmr__pool_lane *ccmr__pool_lane_keep(ccmr__pool *pool)
{
    ccmr__pool_lane *lane = ccmr__pool_lane_bare(pool);

    if (lane != NULL) {
        ccmr__pool_lane_lock(lane);
        lane->kept = 1;
        lane->freed++;
        ccmr__pool_lane_unlock(lane);
    }
    return lane;
}

void ccmr__pool_lane_release(ccmr__pool_lane *lane)
{
    ccmr__pool *pool = lane->pool;

    ccmr__pool_lane_lock(lane);
    note_done(lane, lane->freed);
    lane->kept = 0;
    ccmr__pool_lane_unlock(lane);
    (void)pthread_mutex_lock(&pool->lock);
    put_idle(pool, lane);
    (void)pthread_mutex_unlock(&pool->lock);
}

/* ---- the whole device ------------------------------------------------------------- */

/*
 * Freeing plain memory waits for every kernel of the device, on streams of all
 * kinds, and in relaxed mode disturbs no capture (tests/fidelity: topics held,
 * held_nonblocking and capture_relaxed). An event of the context, or its
 * synchronisation, would ruin captures in every mode.
 */
static ccmr_status wait_for_device(void)
{
    CUdeviceptr block;
    void *page;
    CUresult res = CCMR__CU(cuMemAlloc)(&block, 1);

    if (res == CUDA_SUCCESS) {
        res = CCMR__CU(cuMemFree)(block);
        if (res != CUDA_SUCCESS) { /* once more, so that it does not stay */
            res = CCMR__CU(cuMemFree)(block);
        }
        return res == CUDA_SUCCESS ? CCMR_SUCCESS
                                   : ccmr__fail_driver((int)res, "cuMemFree");
    }
    /* The device is full: pinned memory does the same. */
    res = CCMR__CU(cuMemHostAlloc)(&page, 1, 0);
    if (res != CUDA_SUCCESS) {
        return ccmr__fail_driver_host((int)res, "cuMemHostAlloc");
    }
    res = CCMR__CU(cuMemFreeHost)(page);
    if (res != CUDA_SUCCESS) {
        res = CCMR__CU(cuMemFreeHost)(page);
    }
    return res == CUDA_SUCCESS ? CCMR_SUCCESS
                               : ccmr__fail_driver((int)res, "cuMemFreeHost");
}

static size_t count_lanes(const ccmr__pool_lane *lane)
{
    size_t count = 0;

    for (; lane != NULL; lane = lane->next) {
        count++;
    }
    return count;
}

ccmr_status ccmr__pool_finish_device(ccmr__pool *pool)
{
    /* Lanes that come later stand before the first one. */
    ccmr__pool_lane *first =
        atomic_load_explicit(&pool->lanes, memory_order_acquire);
    uint64_t *numbers = malloc((count_lanes(first) + 1) * sizeof(*numbers));
    ccmr__pool_lane *lane;
    ccmr_status status;
    size_t i = 0;

    if (numbers == NULL) {
        return ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                          "no memory to wait for a device");
    }
    for (lane = first; lane != NULL; lane = lane->next) {
        ccmr__pool_lane_lock(lane);
        numbers[i++] = lane->freed;
        ccmr__pool_lane_unlock(lane);
    }
    status = wait_for_device();
    i = 0;
    for (lane = first; lane != NULL && status == CCMR_SUCCESS;
         lane = lane->next) {
        ccmr__pool_lane_lock(lane);
        if (!lane->kept) {
            note_done(lane, numbers[i]);
        }
        i++;
        ccmr__pool_lane_unlock(lane);
    }
    free(numbers);
    return status;
}
