/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool: what it says about itself.
 */
#include <stdio.h>

#include "lib/error.h"
#include "lib/resource.h"
#include "resources/pool/pool.h"
#include "resources/pool/range.h"

size_t ccmr__pool_free_bytes(ccmr__pool *pool)
{
    const ccmr__pool_lane *lane =
        atomic_load_explicit(&pool->lanes, memory_order_acquire);
    size_t bytes =
        atomic_load_explicit(&pool->common->free_bytes, memory_order_relaxed);

    for (; lane != NULL; lane = lane->next) {
        bytes += atomic_load_explicit(&lane->free_bytes, memory_order_relaxed);
    }
    return bytes;
}

static size_t largest_in(ccmr__pool_lane *lane, size_t most)
{
    size_t bytes;

    ccmr__pool_lane_lock(lane);
    bytes = lane->kept ? 0 : ccmr__pool_largest(&lane->set);
    ccmr__pool_lane_unlock(lane);
    return bytes > most ? bytes : most;
}

static size_t largest_free(ccmr__pool *pool)
{
    ccmr__pool_lane *lane =
        atomic_load_explicit(&pool->lanes, memory_order_acquire);
    size_t most = largest_in(pool->common, 0);

    for (; lane != NULL; lane = lane->next) {
        most = largest_in(lane, most);
    }
    return most;
}

ccmr_status ccmr__pool_stats(void *object, ccmr_stats *stats)
{
    ccmr__pool *pool = object;

    stats->reserved_bytes =
        atomic_load_explicit(&pool->reserved, memory_order_relaxed);
    stats->peak_reserved_bytes =
        atomic_load_explicit(&pool->peak_reserved, memory_order_relaxed);
    if (stats->peak_reserved_bytes < stats->reserved_bytes) {
        /* Growth that is under way is reserved, and no peak yet. */
        stats->peak_reserved_bytes = stats->reserved_bytes;
    }
    stats->pending_bytes = ccmr__pool_pending(pool);
    stats->exact |= CCMR_STAT_RESERVED_BYTES | CCMR_STAT_PEAK_RESERVED_BYTES;
    return CCMR_SUCCESS;
}

/* What would help is not seen from the other numbers. */
static void tell_pins(ccmr_error_detail *detail)
{
    char last[sizeof(detail->message)];

    if (detail->pinned != 0) {
        (void)snprintf(last, sizeof(last), "%s", detail->message);
        (void)snprintf(detail->message, sizeof(detail->message),
                       "%.190s; %zu bytes that are free are pinned", last,
                       detail->pinned);
    }
}

void ccmr__pool_explain(ccmr__pool *pool, size_t bytes)
{
    ccmr_error_detail *detail = ccmr__error();
    char last[sizeof(detail->message)];
    size_t reserved =
        atomic_load_explicit(&pool->reserved, memory_order_relaxed);
    size_t free_bytes = ccmr__pool_free_bytes(pool);
    size_t hard = atomic_load_explicit(&pool->hard, memory_order_relaxed);

    if (detail->requested != bytes) {
        /* The last thing that was tried was a part of it, or more. */
        (void)snprintf(last, sizeof(last), "%s", detail->message);
        (void)snprintf(detail->message, sizeof(detail->message),
                       "no room for a block of %zu bytes; at last: %.190s",
                       bytes, last);
    }
    detail->requested = 0; /* as it was asked: whoever called knows */
    detail->reserved = reserved;
    detail->live = reserved > free_bytes ? reserved - free_bytes : 0;
    detail->largest_free = largest_free(pool);
    detail->pending = ccmr__pool_pending(pool);
    detail->pinned = ccmr__pool_pinned_free(pool);
    tell_pins(detail);
    if (detail->limit == 0 || detail->limit == CCMR_BYTES_UNKNOWN) {
        detail->limit = hard != 0 ? hard : pool->device->total_bytes;
    }
}

ccmr_status ccmr__pool_would_fit(void *object, size_t bytes,
                                 ccmr_stream stream, int *fits)
{
    ccmr__pool *pool = object;
    ccmr__stream_record *record;
    ccmr__stream_use use;
    ccmr__pool_lane *lane;
    size_t largest;
    size_t reserved;
    size_t hard;
    ccmr_status status = ccmr__pool_resolve(pool, stream, &use, &record);

    if (status != CCMR_SUCCESS) {
        return status;
    }
    lane = ccmr__pool_lane_known(pool, use.id);
    largest = largest_in(pool->common, 0);
    if (lane != NULL) {
        largest = largest_in(lane, largest);
        ccmr__pool_lane_put(lane);
    }
    if (bytes <= CCMR__POOL_MOST && !pool->host_access &&
        largest >= ccmr__pool_rounded(bytes)) {
        *fits = 1;
        return CCMR_SUCCESS;
    }
    reserved = atomic_load_explicit(&pool->reserved, memory_order_relaxed);
    hard = atomic_load_explicit(&pool->hard, memory_order_relaxed);
    if (bytes > CCMR__POOL_MOST ||
        (hard != 0 &&
         (reserved > hard || ccmr__pool_rounded(bytes) > hard - reserved))) {
        *fits = 0;
        return CCMR_SUCCESS;
    }
    return ccmr_resource_would_fit(pool->upstream, ccmr__pool_rounded(bytes),
                                   stream, fits);
}

/* ---- audit ------------------------------------------------------------------- */

/* Every lane's lock at once: nobody else ever holds one while asking for
 * another, and `slow` keeps a second auditor out. */
ccmr__pool_lane *ccmr__pool_lock_all(ccmr__pool *pool)
{
    ccmr__pool_lane *first;
    ccmr__pool_lane *lane;

    (void)pthread_mutex_lock(&pool->slow);
    (void)pthread_mutex_lock(&pool->lock); /* no lane comes meanwhile */
    first = atomic_load_explicit(&pool->lanes, memory_order_acquire);
    for (lane = first; lane != NULL; lane = lane->next) {
        ccmr__pool_lane_lock(lane);
    }
    ccmr__pool_lane_lock(pool->common);
    return first;
}

void ccmr__pool_unlock_all(ccmr__pool *pool, ccmr__pool_lane *lane)
{
    ccmr__pool_lane_unlock(pool->common);
    for (; lane != NULL; lane = lane->next) {
        ccmr__pool_lane_unlock(lane);
    }
    (void)pthread_mutex_unlock(&pool->lock);
    (void)pthread_mutex_unlock(&pool->slow);
}

typedef struct totals {
    size_t free_bytes;
    ptrdiff_t out_bytes;
    ptrdiff_t blocks;
    size_t spare;
    int good;
} totals;

static void add_lane(totals *sum, const ccmr__pool_lane *lane)
{
    sum->good &= ccmr__pool_set_audit(&lane->set);
    sum->free_bytes += lane->set.bytes;
    sum->out_bytes += lane->set.out_bytes;
    sum->blocks += lane->set.owed;
    sum->spare += lane->set.spare;
}

/*
 * free + out = what segments brought, to the byte, and a record for every
 * piece that is out: blocks, cached or live, and what is on its way from one
 * lane to another or to the upstream. Records that a call carries from one
 * lane to another were counted as back where they came from.
 */
ccmr_status ccmr__pool_audit(void *object)
{
    ccmr__pool *pool = object;
    totals sum = {.good = 1};
    ccmr__pool_lane *first;
    ccmr__pool_lane *lane;
    size_t carried;
    size_t brought;
    size_t handles;
    int pins;

    (void)pthread_mutex_lock(&pool->pinning);
    pins = ccmr__pool_pins_audit(pool);
    (void)pthread_mutex_unlock(&pool->pinning);
    if (!pins) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "pool: its books do not agree: %zu pins, and other "
                          "memory is pinned",
                          pool->pins.count);
    }
    first = ccmr__pool_lock_all(pool);
    for (lane = first; lane != NULL; lane = lane->next) {
        add_lane(&sum, lane);
    }
    add_lane(&sum, pool->common);
    carried = atomic_load_explicit(&pool->carried, memory_order_relaxed);
    sum.blocks += (ptrdiff_t)carried;
    sum.spare += carried;
    brought = atomic_load_explicit(&pool->brought, memory_order_relaxed);
    handles = brought;
    if (pool->range != NULL) {
        handles = ccmr__pool_range_bytes(pool->range) +
                  atomic_load_explicit(&pool->apart, memory_order_relaxed);
    }
    ccmr__pool_unlock_all(pool, first);
    if (!sum.good || sum.out_bytes < 0 || sum.blocks < 0 ||
        sum.free_bytes + (size_t)sum.out_bytes != brought) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "pool: its books do not agree: %zu bytes free and "
                          "%td out of %zu, %td blocks out, %zu records%s",
                          sum.free_bytes, sum.out_bytes, brought, sum.blocks,
                          sum.spare, sum.good ? "" : ", a set is wrong");
    }
    if (handles != brought) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "pool: its books do not agree: handles have %zu "
                          "bytes, and it counts %zu",
                          handles, brought);
    }
    return CCMR_SUCCESS;
}
