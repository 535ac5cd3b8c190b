/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool: where memory comes from when the cache has none.
 *
 * Order of answers:
 *   1. the stream's own lane
 *   2. memory that belongs to no stream, or that the stream is behind anyway
 *   3. the calling thread's large cached blocks, given to their lanes
 *   4. finished memory of other lanes
 *   5. other lanes' memory behind a wait on the device
 *   6. growth, up to the soft budget
 *   7. all finished memory gathered in one lane, where it merges
 *   8. other threads' caches, gathered as well
 *   9. growth, up to the hard budget; in a range by free handles first
 *  10. wholly free segments given back, and growth again
 *  11. a wait on the host for everything that was freed, then 7 to 10 again
 *  12. the same after a wait for the whole device
 *
 * CCMR_ERROR_BUSY stands for "none here" between these steps.
 */
#include <sched.h>

#include "lib/error.h"
#include "resources/pool/pool.h"

#define MIB ((size_t)1 << 20)
/* Segments are whole pieces of this, as the driver gives out memory. */
#define UNIT (2 * MIB)
#define LARGEST_STEP (64 * MIB)
/* Over virtual memory, in the recorded traces of one stream: with 105 the pool
 * reserves 1.04 to 1.08 of what is live at its peak, and moves memory all the
 * time on gnn_train (103 driver calls in 1000 warm operations); with 112 it
 * reserves 1.05 to 1.12 and makes 0 to 5; with 115 1.05 to 1.15 and 0 to 4
 * (simulated driver). */
#define SOFT 112u
/* Up to here it grows rather than wait for another stream. */
#define FLOOR (64 * MIB)
/* Of an extent elsewhere a small request takes that part, or so much. */
#define SHARE_TAKEN 16u
#define MOST_TAKEN ((size_t)256 << 10)
/* Other lanes that a request looks into. */
#define LANES_MOST 64u
/* Tries while other threads keep bringing and taking memory. */
#define ROUNDS 4
/* Tries beside threads that grow. */
#define PATIENCE 32

typedef ccmr__pool_request request;

/* ---- taking ---------------------------------------------------------------------- */

typedef ccmr__pool_wanted wanted;

static int accept(void *argument, const ccmr__pool_extent *extent)
{
    const wanted *want = argument;
    unsigned i;

    for (i = 0; i < extent->waits.count; i++) {
        ccmr__pool_lane *lane = extent->waits.lanes[i];
        uint64_t number = extent->waits.numbers[i];

        if (lane != want->own && !ccmr__pool_done(lane, number) &&
            !(want->after != NULL &&
              ccmr__pool_is_after(want->after, lane, number)) &&
            !(want->follow && ccmr__pool_coverable(lane, number))) {
            if (want->follow) {
                ccmr__pool_want_event(lane);
            }
            return 0;
        }
    }
    return 1;
}

/* A small block from elsewhere brings more with it, for the next ones of its
 * stream: else many streams that need little would take it from each other
 * again and again, with a wait each time. */
static size_t extra_of(const request *of, const ccmr__pool_lane *lane,
                       const ccmr__pool_extent *extent, size_t bytes)
{
    size_t extra = extent->bytes / SHARE_TAKEN & ~(CCMR__POOL_GRANULE - 1);

    if (lane == of->lane || of->pool->host_access ||
        of->bytes > CCMR__POOL_SMALL || of->alignment > CCMR__POOL_GRANULE ||
        extra <= bytes) {
        return 0;
    }
    return (extra < MOST_TAKEN ? extra : MOST_TAKEN) - bytes;
}

/* Under the lane's lock. */
static ccmr_status carve(request *of, ccmr__pool_lane *lane, wanted *want)
{
    size_t blocks = of->run;
    ccmr__pool_extent *extent = NULL;

    if (blocks > 1) {
        extent = ccmr__pool_find(&lane->set, of->bytes * blocks, of->alignment,
                                 accept, want);
    }
    if (extent == NULL) {
        blocks = 1;
        extent = ccmr__pool_find(&lane->set, of->bytes, of->alignment, accept,
                                 want);
    }
    if (extent == NULL) {
        return CCMR_ERROR_BUSY;
    }
    of->extra = extra_of(of, lane, extent, of->bytes * blocks);
    if (ccmr__pool_carve(&lane->set, extent, of->bytes * blocks + of->extra,
                         of->alignment, blocks + (of->extra != 0),
                         &of->piece) != 0) {
        return ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                          "no memory for a pool's books");
    }
    of->blocks = blocks;
    return CCMR_SUCCESS;
}

static ccmr_status take(request *of, ccmr__pool_lane *lane, wanted *want)
{
    ccmr_status status;

    ccmr__pool_lane_lock(lane);
    status = carve(of, lane, want);
    ccmr__pool_lane_unlock(lane);
    return status;
}

int ccmr__pool_accept_wanted(ccmr__pool_wanted *want,
                             const ccmr__pool_extent *extent)
{
    return accept(want, extent);
}

static wanted want_now(const request *of)
{
    wanted want = {.own = of->pool->host_access ? NULL : of->lane,
                   .after = of->after};

    return want;
}

static ccmr_status take_own(request *of)
{
    wanted want = want_now(of);

    /* Which is read under the lane's lock. */
    want.after = of->pool->host_access ? NULL : &of->lane->after;

    return take(of, of->lane, &want);
}

static ccmr_status take_common(request *of)
{
    wanted want = want_now(of);

    if (atomic_load_explicit(&of->pool->common->free_bytes,
                             memory_order_relaxed) < of->bytes) {
        return CCMR_ERROR_BUSY;
    }
    return take(of, of->pool->common, &want);
}

/* ---- other lanes: in a scope ---------------------------------------------------- */

/* Make the stream wait for what was taken; else bring it back. */
static ccmr_status follow(request *of, ccmr__pool_lane *lane)
{
    ccmr_status status =
        ccmr__pool_follow(&of->piece.waits, of->lane, of->handle);

    if (status != CCMR_SUCCESS) {
        ccmr__pool_bring(lane, &of->piece, of->blocks + (of->extra != 0));
    }
    return status;
}

static ccmr_status take_following(request *of, ccmr__pool_lane *lane)
{
    wanted want = {.own = of->lane, .after = of->after, .follow = 1};
    ccmr_status status = take(of, lane, &want);

    return status == CCMR_SUCCESS ? follow(of, lane) : status;
}

/* Over other lanes that have enough: finished memory, or (`with_waits`) any
 * that can be waited for. */
static ccmr_status take_others(request *of, int with_waits)
{
    ccmr__pool *pool = of->pool;
    wanted want = want_now(of);
    ccmr__pool_lane *lane =
        atomic_load_explicit(&pool->lanes, memory_order_acquire);
    ccmr_status status = CCMR_ERROR_BUSY;
    unsigned looked = 0;

    for (; lane != NULL && looked < LANES_MOST && status == CCMR_ERROR_BUSY;
         lane = lane->next) {
        if (atomic_load_explicit(&lane->free_bytes, memory_order_relaxed) <
            of->bytes) {
            continue;
        }
        looked++;
        if (with_waits) {
            status = take_following(of, lane);
        } else if (lane != of->lane || pool->host_access) {
            (void)ccmr__pool_poll(lane, 2);
            status = take(of, lane, &want);
        }
    }
    return status;
}

/* Of lanes that the stream is behind, what it need not wait for again: without
 * a call of the driver. */
static ccmr_status __attribute__((noinline)) take_ordered(request *of)
{
    ccmr__pool_orders after;
    wanted want = {.own = of->lane, .after = &after};
    ccmr_status status = CCMR_ERROR_BUSY;
    unsigned i;

    if (of->pool->host_access) {
        return CCMR_ERROR_BUSY;
    }
    ccmr__pool_copy_after(of->lane, &after);
    for (i = 0; i < after.count && status == CCMR_ERROR_BUSY; i++) {
        ccmr__pool_lane *lane = after.lanes[i];

        if (atomic_load_explicit(&lane->free_bytes, memory_order_relaxed) >=
            of->bytes) {
            status = take(of, lane, &want);
        }
    }
    return status;
}

static ccmr_status take_waiting(request *of)
{
    ccmr_status status;

    if (!of->pool->options.follow || of->pool->host_access) {
        return CCMR_ERROR_BUSY;
    }
    status = take_others(of, 1);
    return status == CCMR_ERROR_BUSY ? take_following(of, of->pool->common)
                                     : status;
}

/* What is there by now, in the own lane or behind a wait. */
static ccmr_status take_any(request *of)
{
    ccmr_status status = take_own(of);

    if (status == CCMR_ERROR_BUSY) {
        status = take_common(of);
    }
    if (status == CCMR_ERROR_BUSY) {
        status = take_others(of, 0);
    }
    return status == CCMR_ERROR_BUSY ? take_waiting(of) : status;
}

/* ---- growth ---------------------------------------------------------------------- */

static size_t up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

ccmr_status ccmr__pool_count_bytes(ccmr__pool *pool, size_t bytes)
{
    size_t had = atomic_load_explicit(&pool->reserved, memory_order_relaxed);
    size_t hard = atomic_load_explicit(&pool->hard, memory_order_relaxed);

    hard = hard != 0 ? hard : SIZE_MAX;
    do {
        if (had > hard || bytes > hard - had) {
            ccmr_status status = ccmr__fail(
                CCMR_ERROR_LIMIT_EXCEEDED,
                "%zu bytes more than the %zu that are reserved would exceed "
                "the pool's hard budget of %zu",
                bytes, had, hard);

            ccmr__error()->limit = hard;
            return status;
        }
    } while (!atomic_compare_exchange_weak_explicit(
        &pool->reserved, &had, had + bytes, memory_order_relaxed,
        memory_order_relaxed));
    had += bytes;
    atomic_store_explicit(&pool->uncovered_most,
                          had / 16 > 32 * MIB ? had / 16 : 32 * MIB,
                          memory_order_relaxed);
    return CCMR_SUCCESS;
}

void ccmr__pool_note_peak(ccmr__pool *pool)
{
    size_t had = atomic_load_explicit(&pool->reserved, memory_order_relaxed);
    size_t peak =
        atomic_load_explicit(&pool->peak_reserved, memory_order_relaxed);

    while (peak < had && !atomic_compare_exchange_weak_explicit(
                             &pool->peak_reserved, &peak, had,
                             memory_order_relaxed, memory_order_relaxed)) {
    }
}

/* A new segment goes into a lane, and the request (if there is one) is cut out
 * of it before anyone else can have it. */
static ccmr_status settle_in(ccmr__pool_lane *lane,
                             ccmr__pool_segment *segment, request *of)
{
    ccmr__pool *pool = lane->pool;
    ccmr__pool_piece piece = {
        .address = segment->base, .bytes = segment->bytes, .segment = segment};
    wanted want = {.own = pool->host_access ? NULL : lane};
    ccmr_status status = CCMR_ERROR_OUT_OF_HOST_MEMORY;

    ccmr__pool_lane_lock(lane);
    if (ccmr__pool_reserve_records(&lane->set, of != NULL ? of->run + 2 : 1) ==
        0) {
        if (pool->stream_ordered && !pool->host_access && of != NULL) {
            (void)ccmr__pool_waits_add(&piece.waits, lane, ++lane->freed);
            lane->uncovered_bytes += piece.bytes;
        }
        (void)ccmr__pool_insert(&lane->set, &piece, 0);
        atomic_fetch_add_explicit(&pool->brought, piece.bytes,
                                  memory_order_relaxed);
        status = of != NULL ? carve(of, lane, &want) : CCMR_SUCCESS;
    }
    ccmr__pool_lane_unlock(lane);
    return status;
}

/* A segment without books goes. */
static ccmr_status give_up(ccmr__pool *pool, ccmr__pool_segment *segment)
{
    size_t bytes = segment->bytes;

    if (ccmr__pool_segment_give(pool, segment) == CCMR_SUCCESS) {
        atomic_fetch_sub_explicit(&pool->reserved, bytes,
                                  memory_order_relaxed);
    }
    return ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                      "no memory for a pool's books");
}

static ccmr_status grow(request *of, size_t bytes)
{
    ccmr__pool *pool = of->pool;
    size_t alignment = of->alignment < pool->upstream_alignment
                           ? of->alignment
                           : pool->upstream_alignment;
    ccmr__pool_segment *segment;
    ccmr_status status;

    if (of->alignment > alignment) {
        bytes += of->alignment;
    }
    status = ccmr__pool_count_bytes(pool, bytes);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    status =
        ccmr__pool_segment_get(pool, bytes, alignment, of->stream, &segment);
    if (status != CCMR_SUCCESS) {
        atomic_fetch_sub_explicit(&pool->reserved, bytes,
                                  memory_order_relaxed);
        return status;
    }
    ccmr__pool_note_peak(pool);
    /* What the host touches must not merge with what the device still uses:
     * all of it would have to wait. */
    status =
        settle_in(pool->host_access ? pool->common : of->lane, segment, of);
    return status == CCMR_ERROR_OUT_OF_HOST_MEMORY ? give_up(pool, segment)
                                                   : status;
}

/* How far the pool grows before it takes trouble: some more than the most
 * that was in use at a time. */
static size_t soft_budget(request *of)
{
    ccmr__pool *pool = of->pool;
    size_t reserved =
        atomic_load_explicit(&pool->reserved, memory_order_relaxed);
    size_t free_bytes = ccmr__pool_free_bytes(pool);
    size_t used = reserved > free_bytes ? reserved - free_bytes : 0;
    size_t peak = atomic_load_explicit(&pool->peak_used, memory_order_relaxed);
    size_t percent = pool->options.soft;
    size_t budget;

    used += of->bytes;
    if (used > peak) {
        atomic_store_explicit(&pool->peak_used, used, memory_order_relaxed);
        peak = used;
    }
    if (percent == 0) {
        percent = SOFT;
    }
    budget = peak / 100 * percent + (pool->range != NULL ? 0 : UNIT);
    budget = budget > FLOOR ? budget : FLOOR;
    return budget > pool->options.initial ? budget : pool->options.initial;
}

/* Whoever grows has memory in hand that is in no set: beside it nobody
 * concludes that there is none. */
static void begin_growth(ccmr__pool *pool)
{
    atomic_fetch_add_explicit(&pool->growing, 1, memory_order_relaxed);
}

static void end_growth(ccmr__pool *pool)
{
    atomic_fetch_sub_explicit(&pool->growing, 1, memory_order_release);
}

static ccmr_status grow_up_to_soft(request *of)
{
    ccmr__pool *pool = of->pool;
    size_t soft = soft_budget(of);
    size_t reserved =
        atomic_load_explicit(&pool->reserved, memory_order_relaxed);
    size_t exact = up(of->bytes, UNIT);
    size_t step = up(reserved / 16, UNIT);

    step = step > LARGEST_STEP ? LARGEST_STEP : step;
    if (pool->range != NULL && reserved < soft) {
        return ccmr__pool_range_grow(of, soft - reserved, step, 0);
    }
    if (step < exact) {
        step = exact;
    }
    if (reserved >= soft || exact > soft - reserved) {
        return CCMR_ERROR_BUSY;
    }
    return grow(of, step <= soft - reserved ? step : exact);
}

static ccmr_status grow_softly(request *of)
{
    ccmr_status status;

    begin_growth(of->pool);
    status = grow_up_to_soft(of);
    end_growth(of->pool);
    return status;
}

static int is_full(ccmr_status status)
{
    return status == CCMR_ERROR_OUT_OF_DEVICE_MEMORY ||
           status == CCMR_ERROR_OUT_OF_HOST_MEMORY ||
           status == CCMR_ERROR_LIMIT_EXCEEDED;
}

/* In whole units, else exactly what is needed. */
static ccmr_status grow_up_to_hard(request *of)
{
    size_t exact = up(of->bytes, UNIT);
    ccmr_status status;

    if (of->pool->range != NULL) {
        return ccmr__pool_range_grow(of, SIZE_MAX, 0, of->pool->options.move);
    }
    status = grow(of, exact);
    if (is_full(status) && exact != of->bytes) {
        status = grow(of, of->bytes);
    }
    return status;
}

static ccmr_status grow_hard(request *of)
{
    ccmr_status status;

    begin_growth(of->pool);
    status = grow_up_to_hard(of);
    end_growth(of->pool);
    return status;
}

/* ---- the order ---------------------------------------------------------------------- */

/* What lies apart in several lanes may be enough together. Memory that has to
 * be waited for is mixed last: who takes it waits for all who had a part. */
static ccmr_status gather_and_take(request *of)
{
    ccmr__pool *pool = of->pool;
    ccmr_status status;

    /* In a range what is less helps as well, where it makes a handle whole. */
    if (pool->range == NULL && ccmr__pool_free_bytes(pool) < of->bytes) {
        return CCMR_ERROR_BUSY;
    }
    ccmr__pool_gather(pool, of->lane, CCMR__POOL_FINISHED);
    status = take_any(of);
    if (status == CCMR_ERROR_BUSY && pool->options.follow &&
        !pool->host_access &&
        atomic_load_explicit(&pool->many, memory_order_relaxed) != 0) {
        ccmr__pool_gather(pool, of->lane, CCMR__POOL_FOLLOWABLE);
        status = take_any(of);
        if (status == CCMR_ERROR_BUSY) {
            ccmr__pool_unite(of->lane, of->handle);
            status = take_own(of);
        }
    }
    return status;
}

/* Steps 4 to 6. What was refused once is not asked for again. */
static ccmr_status take_elsewhere(request *of)
{
    ccmr__pool *pool = of->pool;
    ccmr_status refused = CCMR_ERROR_BUSY;
    ccmr_status status = take_others(of, 0);

    if (status == CCMR_ERROR_BUSY &&
        atomic_load_explicit(&pool->reserved, memory_order_relaxed) < FLOOR) {
        status = refused = grow_softly(of);
    }
    if (status == CCMR_ERROR_BUSY || is_full(status)) {
        status = take_waiting(of);
    }
    if (status == CCMR_ERROR_BUSY) {
        status = is_full(refused) ? refused : grow_softly(of);
    }
    return status;
}

/* Steps 3 to 8. In a scope. */
static ccmr_status look_around(request *of)
{
    ccmr__pool *pool = of->pool;
    int many = atomic_load_explicit(&pool->many, memory_order_relaxed) != 0 ||
               pool->host_access;
    ccmr_status status = CCMR_ERROR_BUSY;

    if (ccmr__pool_flush_own(pool) != 0) {
        status = take_own(of);
    }
    if (status == CCMR_ERROR_BUSY) {
        status = many ? take_elsewhere(of) : grow_softly(of);
    }
    if (status != CCMR_ERROR_BUSY && !is_full(status)) {
        return status;
    }
    status = gather_and_take(of);
    if (status == CCMR_ERROR_BUSY && ccmr__pool_steal(pool, NULL, NULL) != 0) {
        status = gather_and_take(of);
    }
    return status;
}

/* Steps 10 to 12: what the upstream refused may be possible once memory that
 * is free went back. Returns its last answer. */
static ccmr_status make_room(request *of, ccmr_status status)
{
    /* Growth itself gives back what it has to, if that is finished. */
    int moves = of->pool->range != NULL && of->pool->options.move;
    int waits;

    for (waits = 0; waits < 3; waits++) {
        ccmr_error_detail told = *ccmr__error();
        ccmr_status other = CCMR_SUCCESS;
        ccmr_status found;

        if (waits != 0) {
            (void)ccmr__pool_record(of->lane, of->handle);
            (void)ccmr__pool_finish_all(of->pool, waits == 2);
            found = take_any(of);
            if (found == CCMR_ERROR_BUSY) {
                found = gather_and_take(of);
            }
            if (found != CCMR_ERROR_BUSY) {
                return found;
            }
        }
        if (moves ? waits != 0 || ccmr__pool_release_apart(of->pool) != 0
                  : ccmr__pool_release(of->pool, 0, &other) != 0) {
            status = grow_hard(of);
            if (!is_full(status)) {
                return status;
            }
        } else {
            *ccmr__error() = told;
        }
    }
    return status;
}

static ccmr_status serve_slowly(request *of)
{
    ccmr__pool *pool = of->pool;
    int patience = PATIENCE;
    ccmr_status status;
    int round = 0;

    do {
        uint64_t before =
            atomic_load_explicit(&pool->changes, memory_order_relaxed);

        status = look_around(of);
        if (status == CCMR_ERROR_BUSY || is_full(status)) {
            status = grow_hard(of);
            if (is_full(status)) {
                status = make_room(of, status);
            }
        }
        if (status != CCMR_ERROR_BUSY && !is_full(status)) {
            return status;
        }
        if (patience > 0 &&
            atomic_load_explicit(&pool->growing, memory_order_acquire) != 0) {
            patience--;
            sched_yield();
        } else if (atomic_load_explicit(&pool->changes,
                                        memory_order_relaxed) == before) {
            break;
        } else {
            round++;
        }
    } while (round < ROUNDS);
    return status;
}

/* Nothing helped. What came on the way, and was not enough, goes again: a
 * request that is refused has taken nothing. */
static void refuse(request *of, size_t reserved)
{
    ccmr_error_detail told = *ccmr__error();
    ccmr_status refused = CCMR_SUCCESS;

    if (atomic_load_explicit(&of->pool->reserved, memory_order_relaxed) >
        reserved) {
        (void)ccmr__pool_release(of->pool, reserved, &refused);
    }
    *ccmr__error() = told;
    ccmr__pool_explain(of->pool, of->bytes);
}

static ccmr_status __attribute__((noinline)) serve_other(request *of)
{
    /* What fails on the way to a success is nobody's last error. */
    ccmr_error_detail before = *ccmr__error();
    size_t before_reserved =
        atomic_load_explicit(&of->pool->reserved, memory_order_relaxed);
    ccmr__pool_orders after;
    ccmr__scope scope;
    ccmr_status status =
        ccmr__scope_enter(&scope, of->pool->device, CCMR__SCOPE_RELAXED);

    if (status != CCMR_SUCCESS) {
        return status;
    }
    if (!of->pool->host_access) {
        ccmr__pool_copy_after(of->lane, &after);
        of->after = &after;
    }
    if (ccmr__pool_event_wanted(of->lane)) {
        (void)ccmr__pool_record(of->lane, of->handle);
    }
    (void)ccmr__pool_captures_settle(of->pool);
    status = serve_slowly(of);
    of->after = NULL;
    if (status == CCMR_SUCCESS) {
        *ccmr__error() = before;
    } else if (is_full(status)) {
        refuse(of, before_reserved);
    }
    ccmr__scope_leave(&scope);
    return status;
}

/* What came beyond the request stays in the own lane. It waits for whom it
 * waited before: others than this stream still have to. */
static void keep_extra(request *of)
{
    ccmr__pool_piece rest = of->piece;

    of->piece.bytes -= of->extra;
    rest.address += of->piece.bytes;
    rest.bytes = of->extra;
    ccmr__pool_bring(of->lane, &rest, 1);
}

ccmr_status ccmr__pool_serve(request *of)
{
    ccmr_status status = take_own(of);

    if (status == CCMR_ERROR_BUSY) {
        status = take_common(of);
    }
    if (status == CCMR_ERROR_BUSY) {
        status = take_ordered(of);
    }
    if (status == CCMR_ERROR_BUSY) {
        status = serve_other(of);
    }
    if (status == CCMR_SUCCESS && of->extra != 0) {
        keep_extra(of);
    }
    return status;
}

/* On a stream that is always idle: what it waited for is waited for at once. */
static ccmr_status get_initial(ccmr__pool *pool, size_t bytes,
                               ccmr__pool_segment **segment)
{
    CUstream idle;
    ccmr_status status = ccmr__device_idle_stream(pool->device, &idle);

    if (status == CCMR_SUCCESS) {
        status = ccmr__pool_segment_get(pool, bytes, CCMR__POOL_GRANULE, idle,
                                        segment);
    }
    return status == CCMR_SUCCESS ? ccmr__stream_wait(idle, pool->device)
                                  : status;
}

ccmr_status ccmr__pool_begin(ccmr__pool *pool, size_t bytes)
{
    ccmr__pool_segment *segment;
    ccmr_status status;

    bytes = up(bytes, CCMR__POOL_GRANULE);
    if (pool->range != NULL) {
        return ccmr__pool_range_begin(pool, bytes);
    }
    status = ccmr__pool_count_bytes(pool, bytes);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    segment = NULL;
    status = get_initial(pool, bytes, &segment);
    if (status != CCMR_SUCCESS) {
        if (segment == NULL ||
            ccmr__pool_segment_give(pool, segment) == CCMR_SUCCESS) {
            atomic_fetch_sub_explicit(&pool->reserved, bytes,
                                      memory_order_relaxed);
        }
        return status;
    }
    ccmr__pool_note_peak(pool);
    status = settle_in(pool->common, segment, NULL);
    return status == CCMR_SUCCESS ? status : give_up(pool, segment);
}
