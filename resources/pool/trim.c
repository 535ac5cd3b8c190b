/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool: gathering free memory, giving it back, retiring streams.
 *
 * Memory on its way from one lane to another is in neither for a moment;
 * `slow` keeps those who would conclude that there is none waiting.
 */
#include "lib/error.h"
#include "resources/pool/pool.h"
#include "resources/pool/range.h"

#define BATCH 32u

/* Without a change to the extent: what waits for less has to be merged. */
static int is_settled(const ccmr__pool_extent *extent)
{
    ccmr__pool_waits waits = extent->waits;

    return ccmr__pool_settled(&waits);
}

/* ---- gathering ---------------------------------------------------------------------- */

/* An extent that waits: may it go to the lane `own` (NULL: waits there do not
 * count as its own)? */
static int may_move(const ccmr__pool_extent *extent,
                    const ccmr__pool_lane *own, ccmr__pool_which which)
{
    unsigned i;

    for (i = 0; i < extent->waits.count && which != CCMR__POOL_ALL; i++) {
        if (extent->waits.lanes[i] != own &&
            (which == CCMR__POOL_FINISHED ||
             !ccmr__pool_coverable(extent->waits.lanes[i],
                                   extent->waits.numbers[i]))) {
            if (which == CCMR__POOL_FOLLOWABLE) {
                ccmr__pool_want_event(extent->waits.lanes[i]);
            }
            return 0;
        }
    }
    return 1;
}

/* Under the lane's lock: extents that wait for nothing, or may move
 * nevertheless, up to a batch. */
static size_t pick(ccmr__pool_lane *lane, const ccmr__pool_lane *own,
                   ccmr__pool_which which, ccmr__pool_piece *pieces,
                   ccmr__pool_extent **records)
{
    ccmr__pool_extent *extent = ccmr__pool_first(&lane->set);
    ccmr__pool_extent *chosen[BATCH];
    size_t count = 0;
    size_t i;

    for (; extent != NULL && count < BATCH;
         extent = ccmr__pool_next(&lane->set, extent)) {
        if (ccmr__pool_settled(&extent->waits) ||
            may_move(extent, own, which)) {
            chosen[count++] = extent;
        }
    }
    for (i = 0; i < count; i++) {
        ccmr__pool_remove(&lane->set, chosen[i], &pieces[i]);
    }
    /* Their records go with them. */
    *records = NULL;
    if (count > 0) {
        (void)ccmr__pool_carry(lane, count, records);
    }
    return count;
}

static size_t list_length(const ccmr__pool_extent *records)
{
    size_t count = 0;

    for (; records != NULL; records = records->next) {
        count++;
    }
    return count;
}

static void move_free(ccmr__pool_lane *from, ccmr__pool_lane *to,
                      ccmr__pool_which which)
{
    const ccmr__pool_lane *own = to->pool->host_access ? NULL : to;
    size_t count;

    do {
        ccmr__pool_piece pieces[BATCH];
        ccmr__pool_extent *records;
        size_t i;

        ccmr__pool_lane_lock(from);
        count = pick(from, own, which, pieces, &records);
        ccmr__pool_lane_unlock(from);
        if (count == 0) {
            break;
        }
        ccmr__pool_carried(to, records, list_length(records));
        for (i = 0; i < count; i++) {
            ccmr__pool_bring(to, &pieces[i], 1);
        }
    } while (count == BATCH);
}

/* Are its waits fewer by now? `number` as for ccmr__pool_fold_waits(). */
static int has_less(ccmr__pool_lane *lane, ccmr__pool_extent *extent,
                    uint64_t *number)
{
    unsigned before = extent->waits.count;

    if (ccmr__pool_settled(&extent->waits)) {
        return before != 0;
    }
    if (ccmr__pool_fold_waits(lane, &extent->waits, number)) {
        /* As if it had been freed on this stream just now. */
        lane->uncovered_bytes += extent->bytes;
        return 1;
    }
    return extent->waits.count != before;
}

/* Neighbours stay apart where their waits did not fit into one record. What
 * waits for less by now comes in anew, and merges if it can. */
static void merge_again(ccmr__pool_lane *lane)
{
    uint64_t number = 0;
    size_t count;

    do {
        ccmr__pool_piece pieces[BATCH];
        ccmr__pool_extent *chosen[BATCH];
        ccmr__pool_extent *extent;
        size_t i;

        count = 0;
        ccmr__pool_lane_lock(lane);
        for (extent = ccmr__pool_first(&lane->set);
             extent != NULL && count < BATCH;
             extent = ccmr__pool_next(&lane->set, extent)) {
            chosen[count] = extent;
            count += (size_t)has_less(lane, extent, &number);
        }
        for (i = 0; i < count; i++) {
            ccmr__pool_remove(&lane->set, chosen[i], &pieces[i]);
        }
        ccmr__pool_lane_unlock(lane);
        for (i = 0; i < count; i++) {
            ccmr__pool_bring(lane, &pieces[i], 1);
        }
    } while (count == BATCH);
}

void ccmr__pool_gather(ccmr__pool *pool, ccmr__pool_lane *to,
                       ccmr__pool_which which)
{
    ccmr__pool_lane *lane;

    (void)ccmr__pool_captures_settle(pool);
    (void)pthread_mutex_lock(&pool->slow);
    for (lane = atomic_load_explicit(&pool->lanes, memory_order_acquire);
         lane != NULL; lane = lane->next) {
        (void)ccmr__pool_poll(lane, CCMR__POOL_EVENTS + 1);
    }
    for (lane = atomic_load_explicit(&pool->lanes, memory_order_acquire);
         lane != NULL; lane = lane->next) {
        if (lane != to && atomic_load_explicit(&lane->free_bytes,
                                               memory_order_relaxed) != 0) {
            move_free(lane, to, which);
        }
    }
    if (to != pool->common) {
        move_free(pool->common, to, which);
    }
    merge_again(to);
    (void)pthread_mutex_unlock(&pool->slow);
}

/* What the lane's extents wait for and an event can be had for, as far as it
 * fits. Under the lane's lock. */
static void list_waits(ccmr__pool_lane *lane, ccmr__pool_orders *list)
{
    ccmr__pool_extent *extent = ccmr__pool_first(&lane->set);
    unsigned i;
    unsigned j;

    list->count = 0;
    for (; extent != NULL; extent = ccmr__pool_next(&lane->set, extent)) {
        const ccmr__pool_waits *waits = &extent->waits;

        for (i = 0; i < waits->count; i++) {
            for (j = 0; j < list->count; j++) {
                if (list->lanes[j] == waits->lanes[i]) {
                    break;
                }
            }
            if (waits->lanes[i] == lane || j == CCMR__POOL_ORDERS ||
                !ccmr__pool_coverable(waits->lanes[i], waits->numbers[i])) {
                continue;
            }
            if (j == list->count) {
                list->lanes[list->count++] = waits->lanes[i];
                list->numbers[j] = 0;
            }
            if (list->numbers[j] < waits->numbers[i]) {
                list->numbers[j] = waits->numbers[i];
            }
        }
    }
}

void ccmr__pool_unite(ccmr__pool_lane *lane, CUstream stream)
{
    ccmr__pool_orders list;
    unsigned i;

    ccmr__pool_lane_lock(lane);
    list_waits(lane, &list);
    ccmr__pool_lane_unlock(lane);
    for (i = 0; i < list.count; i++) {
        ccmr__pool_waits one = {.count = 1,
                                .lanes = {list.lanes[i]},
                                .numbers = {list.numbers[i]}};

        (void)ccmr__pool_follow(&one, lane, stream);
    }
    (void)pthread_mutex_lock(&lane->pool->slow);
    merge_again(lane);
    (void)pthread_mutex_unlock(&lane->pool->slow);
}

/* ---- giving back --------------------------------------------------------------------- */

/* The i-th segment's first address; 0 past the last. */
static uintptr_t base_of(ccmr__pool *pool, size_t i)
{
    uintptr_t base = 0;

    (void)pthread_mutex_lock(&pool->lock);
    if (i < atomic_load_explicit(&pool->segment_count, memory_order_relaxed)) {
        base = atomic_load_explicit(
            &atomic_load_explicit(&pool->map, memory_order_relaxed)
                 ->places[i]
                 .base,
            memory_order_relaxed);
    }
    (void)pthread_mutex_unlock(&pool->lock);
    return base;
}

int ccmr__pool_claim(ccmr__pool *pool, size_t keep, size_t bytes)
{
    size_t going = atomic_load_explicit(&pool->going, memory_order_relaxed);

    do {
        size_t reserved =
            atomic_load_explicit(&pool->reserved, memory_order_relaxed);

        if (reserved < keep || reserved - keep < going ||
            reserved - keep - going < bytes) {
            return 0;
        }
    } while (!atomic_compare_exchange_weak_explicit(
        &pool->going, &going, going + bytes, memory_order_relaxed,
        memory_order_relaxed));
    return 1;
}

/* Take the segment at an address out of the common lane, if all of it is
 * there and finished and may go. */
static int take_whole(ccmr__pool *pool, uintptr_t base, size_t keep,
                      ccmr__pool_piece *piece)
{
    ccmr__pool_lane *lane = pool->common;
    ccmr__pool_extent *extent;
    int taken = 0;

    ccmr__pool_lane_lock(lane);
    extent = ccmr__pool_starting_at(&lane->set, base);
    if (extent != NULL && extent->segment->base == base &&
        extent->bytes == extent->segment->bytes && is_settled(extent) &&
        atomic_load_explicit(&extent->segment->pins, memory_order_relaxed) ==
            0 &&
        ccmr__pool_claim(pool, keep, extent->bytes)) {
        ccmr__pool_remove(&lane->set, extent, piece);
        taken = 1;
    }
    ccmr__pool_lane_unlock(lane);
    return taken;
}

/* The upstream has it. */
static void forget(ccmr__pool *pool, size_t bytes)
{
    ccmr__pool_lane *lane = pool->common;

    ccmr__pool_lane_lock(lane);
    ccmr__pool_forget(&lane->set, 1);
    lane->set.out_bytes -= (ptrdiff_t)bytes;
    atomic_fetch_sub_explicit(&pool->brought, bytes, memory_order_relaxed);
    if (pool->range != NULL) {
        atomic_fetch_sub_explicit(&pool->apart, bytes, memory_order_relaxed);
    }
    ccmr__pool_lane_unlock(lane);
    atomic_fetch_sub_explicit(&pool->reserved, bytes, memory_order_relaxed);
}

/* Segments that are in the common lane, whole. Returns the bytes. */
static size_t release_segments(ccmr__pool *pool, size_t keep,
                               ccmr_status *refused)
{
    ccmr__pool_piece piece;
    size_t bytes = 0;
    size_t i = 0;
    uintptr_t base;
    int left;

    while (*refused == CCMR_SUCCESS && (base = base_of(pool, i)) != 0) {
        if (!take_whole(pool, base, keep, &piece)) {
            i++;
            continue;
        }
        left = ccmr__pool_segment_leave(pool, piece.segment);
        if (left) {
            *refused = ccmr__pool_segment_return(pool, piece.segment);
        }
        if (!left || *refused != CCMR_SUCCESS) {
            ccmr__pool_bring(pool->common, &piece, 1);
            i++; /* it was pinned a moment ago, or is refused */
        } else {
            forget(pool, piece.bytes);
            bytes += piece.bytes;
        }
        atomic_fetch_sub_explicit(&pool->going, piece.bytes,
                                  memory_order_relaxed);
    }
    return bytes;
}

static int any_apart(const ccmr__pool *pool)
{
    return pool->range != NULL &&
           atomic_load_explicit(&pool->apart, memory_order_relaxed) != 0;
}

size_t ccmr__pool_release(ccmr__pool *pool, size_t keep, ccmr_status *refused)
{
    size_t bytes = 0;

    ccmr__pool_gather(pool, pool->common, CCMR__POOL_FINISHED);
    if (pool->range != NULL) {
        bytes = ccmr__pool_range_release(pool, keep, refused);
    }
    if (pool->range == NULL || any_apart(pool)) {
        bytes += release_segments(pool, keep, refused);
    }
    return bytes;
}

size_t ccmr__pool_release_apart(ccmr__pool *pool)
{
    ccmr_status refused = CCMR_SUCCESS;

    if (!any_apart(pool)) {
        return 0;
    }
    ccmr__pool_gather(pool, pool->common, CCMR__POOL_FINISHED);
    return release_segments(pool, 0, &refused);
}

/* ---- waiting for everything ----------------------------------------------------------- */

/* 0 for a graph's: nobody can wait until that has gone. */
static uint64_t freed_so_far(ccmr__pool_lane *lane)
{
    uint64_t number;

    ccmr__pool_lane_lock(lane);
    number = lane->kept ? 0 : lane->freed;
    ccmr__pool_lane_unlock(lane);
    return number;
}

ccmr_status ccmr__pool_finish_all(ccmr__pool *pool, int device)
{
    ccmr__pool_lane *lane =
        atomic_load_explicit(&pool->lanes, memory_order_acquire);
    ccmr_status status = CCMR_SUCCESS;

    for (; lane != NULL; lane = lane->next) {
        uint64_t number = freed_so_far(lane);
        ccmr_status one =
            number != 0 ? ccmr__pool_finish(lane, number) : CCMR_SUCCESS;

        if (one != CCMR_SUCCESS) {
            /* As far as its events go. */
            (void)ccmr__pool_finish(
                lane,
                atomic_load_explicit(&lane->covered, memory_order_relaxed));
            status = one;
        }
    }
    if (status == CCMR_ERROR_BUSY && device) {
        status = ccmr__pool_finish_device(pool);
    }
    return status;
}

/* ---- trim ------------------------------------------------------------------------------- */

/* Events for all that has none, where that can be had. */
static void cover_all(ccmr__pool *pool)
{
    ccmr__pool_lane *lane =
        atomic_load_explicit(&pool->lanes, memory_order_acquire);

    for (; lane != NULL; lane = lane->next) {
        (void)ccmr__pool_record_own(lane);
    }
}

/* Bytes that still wait. */
static size_t pending_in(ccmr__pool_lane *lane)
{
    ccmr__pool_extent *extent;
    size_t bytes = 0;

    ccmr__pool_lane_lock(lane);
    for (extent = lane->kept ? NULL : ccmr__pool_first(&lane->set);
         extent != NULL; extent = ccmr__pool_next(&lane->set, extent)) {
        if (!is_settled(extent)) {
            bytes += extent->bytes;
        }
    }
    ccmr__pool_lane_unlock(lane);
    return bytes;
}

/* Nobody is asked what has finished meanwhile. */
static size_t count_pending(ccmr__pool *pool)
{
    ccmr__pool_lane *lane =
        atomic_load_explicit(&pool->lanes, memory_order_acquire);
    size_t bytes = pending_in(pool->common);

    for (; lane != NULL; lane = lane->next) {
        bytes += pending_in(lane);
    }
    return bytes;
}

size_t ccmr__pool_pending(ccmr__pool *pool)
{
    ccmr__pool_lane *lane;
    ccmr__scope scope;

    if (ccmr__scope_enter(&scope, pool->device, CCMR__SCOPE_RELAXED) ==
        CCMR_SUCCESS) {
        cover_all(pool);
        for (lane = atomic_load_explicit(&pool->lanes, memory_order_acquire);
             lane != NULL; lane = lane->next) {
            (void)ccmr__pool_poll(lane, CCMR__POOL_EVENTS + 1);
        }
        ccmr__scope_leave(&scope);
    }
    return count_pending(pool);
}

ccmr_status ccmr__pool_trim(void *object, size_t keep,
                            ccmr_trim_result *result)
{
    ccmr__pool *pool = object;
    ccmr_error_detail before = *ccmr__error();
    ccmr_status refused = CCMR_SUCCESS;
    ccmr__scope scope;
    ccmr_status status;

    ccmr__pool_sweep();
    (void)ccmr__pool_captures_settle(pool);
    status = ccmr__scope_enter(&scope, pool->device, CCMR__SCOPE_RELAXED);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    (void)ccmr__pool_steal(pool, NULL, NULL);
    cover_all(pool);
    result->released_bytes = ccmr__pool_release(pool, keep, &refused);
    if (refused == CCMR_SUCCESS &&
        (count_pending(pool) != 0 ||
         (pool->range != NULL && ccmr__pool_any_leaving(pool->range)))) {
        /* The events are of just now: some may be done by this time. */
        result->released_bytes += ccmr__pool_release(pool, keep, &refused);
    }
    ccmr__scope_leave(&scope);
    if (refused != CCMR_SUCCESS) {
        return refused;
    }
    result->pending_bytes = count_pending(pool);
    result->pinned_bytes =
        ccmr__pool_pinned_bytes(pool) + ccmr__pool_captured_bytes(pool);
    *ccmr__error() = before;
    return CCMR_SUCCESS;
}

/* ---- retiring ----------------------------------------------------------------------------- */

/* Twice through the caches: what they hold needs the event, and once the
 * stream is gone they serve no more. */
static ccmr_status retire_lane(ccmr__pool *pool, ccmr__pool_lane *lane,
                               const ccmr__stream_use *use)
{
    ccmr__scope scope;
    ccmr_status status;

    (void)ccmr__pool_steal(pool, lane, NULL);
    status = ccmr__scope_enter(&scope, pool->device, CCMR__SCOPE_RELAXED);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    ccmr__pool_poll_idle(pool);
    status = ccmr__pool_record_held(pool, lane, use->handle);
    ccmr__scope_leave(&scope);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    (void)pthread_mutex_lock(&pool->lock);
    if (lane->id == use->id) {
        ccmr__pool_lane_retire(lane);
    }
    (void)pthread_mutex_unlock(&pool->lock);
    (void)ccmr__pool_steal(pool, lane, NULL);
    (void)pthread_mutex_lock(&pool->slow);
    move_free(lane, pool->common, CCMR__POOL_ALL);
    (void)pthread_mutex_unlock(&pool->slow);
    return CCMR_SUCCESS;
}

ccmr_status ccmr__pool_retire(void *object, ccmr_stream stream)
{
    ccmr__pool *pool = object;
    ccmr_error_detail before = *ccmr__error();
    ccmr__stream_use use;
    ccmr__stream_record *record;
    ccmr__pool_lane *lane;
    ccmr_status status = ccmr__pool_resolve(pool, stream, &use, &record);

    if (status == CCMR_ERROR_WRONG_DEVICE) {
        /* Not one that this pool can have met. */
        *ccmr__error() = before;
        return CCMR_SUCCESS;
    }
    if (status != CCMR_SUCCESS) {
        return status;
    }
    lane = ccmr__pool_lane_known(pool, use.id);
    if (lane != NULL) {
        status = retire_lane(pool, lane, &use);
        ccmr__pool_lane_put(lane);
    }
    return status;
}

/* ---- the end -------------------------------------------------------------------------------- */

static void end_lanes(ccmr__pool *pool)
{
    ccmr__pool_lane *lane =
        atomic_load_explicit(&pool->lanes, memory_order_relaxed);

    while (lane != NULL) {
        ccmr__pool_lane *next = lane->next;

        ccmr__pool_lane_free(lane);
        lane = next;
    }
    ccmr__pool_lane_free(pool->common);
}

void ccmr__pool_end(ccmr__pool *pool)
{
    ccmr__scope scope;
    int entered = 0;
    int tries;

    for (tries = 0; tries < 3 && !entered; tries++) {
        entered = ccmr__scope_enter(&scope, pool->device,
                                    CCMR__SCOPE_RELAXED) == CCMR_SUCCESS;
    }
    ccmr__pool_list_remove(pool);
    ccmr__pool_notes_end(pool);
    ccmr__pool_pins_end(pool);
    (void)ccmr__pool_steal(pool, NULL, NULL);
    /* A call that went wrong once is no reason to lose memory. */
    for (tries = 0;
         tries < 3 &&
         atomic_load_explicit(&pool->reserved, memory_order_relaxed) != 0;
         tries++) {
        ccmr_status refused = CCMR_SUCCESS;

        (void)ccmr__pool_finish_all(pool, 1);
        (void)ccmr__pool_release(pool, 0, &refused);
    }
    ccmr__pool_captures_end(pool);
    ccmr__pool_caches_end(pool);
    end_lanes(pool);
    if (pool->range != NULL) {
        ccmr__pool_range_end(pool);
    }
    ccmr__pool_segments_end(pool);
    if (entered) {
        ccmr__scope_leave(&scope);
    }
}
