/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool: allocate and deallocate on streams that capture, and frees of what a
 * graph has. See capture.h.
 */
#include "lib/error.h"
#include "resources/pool/capture_find.h"
#include "resources/pool/pool.h"
#include "resources/pool/range.h"

/* Segments of a reserve are whole pieces of this, if the budget has it. */
#define UNIT ((size_t)2 << 20)

/* ---- allocate -------------------------------------------------------------------- */

/* An allocation in a capture. */
typedef struct request {
    ccmr__pool *pool;
    ccmr__pool_capture *capture;
    size_t bytes; /* rounded */
    size_t alignment;
    ccmr__pool_piece piece; /* [out] */
} request;

typedef struct wanted {
    const ccmr__pool_capture *capture;
    const ccmr__pool_lane *lane;
} wanted;

/* Memory of the graph's own segments, which waits for the graph alone. */
static int accept(void *argument, const ccmr__pool_extent *extent)
{
    const wanted *want = argument;
    unsigned i;

    for (i = 0; i < extent->waits.count; i++) {
        if (extent->waits.lanes[i] != want->lane) {
            return 0;
        }
    }
    return atomic_load_explicit(&extent->segment->capture,
                                memory_order_relaxed) == want->capture;
}

static ccmr_status no_books(void)
{
    return ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                      "no memory for a pool's books");
}

/* Under the lane's lock. CCMR_ERROR_BUSY: there is nothing that fits. */
static ccmr_status carve(request *of, ccmr__pool_lane *lane)
{
    wanted want = {.capture = of->capture, .lane = lane};
    ccmr__pool_extent *extent =
        ccmr__pool_find(&lane->set, of->bytes, of->alignment, accept, &want);

    if (extent == NULL) {
        return CCMR_ERROR_BUSY;
    }
    return ccmr__pool_carve(&lane->set, extent, of->bytes, of->alignment, 1,
                            &of->piece) == 0
               ? CCMR_SUCCESS
               : no_books();
}

static ccmr_status take(request *of, ccmr__pool_lane *lane)
{
    ccmr_status status;

    ccmr__pool_lane_lock(lane);
    status = carve(of, lane);
    ccmr__pool_lane_unlock(lane);
    return status;
}

/* A new segment is the graph's, and the request is cut out of it. Without
 * records for both nothing was done. */
static ccmr_status settle_in(request *of, ccmr__pool_segment *segment)
{
    ccmr__pool *pool = of->pool;
    ccmr__pool_lane *lane = of->capture->fresh;
    ccmr__pool_piece piece = {
        .address = segment->base, .bytes = segment->bytes, .segment = segment};
    ccmr_status status = CCMR_ERROR_OUT_OF_HOST_MEMORY;

    ccmr__pool_lane_lock(lane);
    if (ccmr__pool_reserve_records(&lane->set, 3) == 0) {
        atomic_store_explicit(&segment->capture, of->capture,
                              memory_order_release);
        (void)ccmr__pool_waits_add(&piece.waits, lane, lane->freed);
        (void)ccmr__pool_insert(&lane->set, &piece, 0);
        atomic_fetch_add_explicit(&pool->brought, piece.bytes,
                                  memory_order_relaxed);
        if (pool->range != NULL) {
            atomic_fetch_add_explicit(&pool->apart, piece.bytes,
                                      memory_order_relaxed);
        }
        status = carve(of, lane);
    }
    ccmr__pool_lane_unlock(lane);
    return status;
}

/* In nobody's books. */
static void give_up(ccmr__pool *pool, ccmr__pool_segment *segment)
{
    size_t bytes = segment->bytes;

    if (ccmr__pool_segment_give(pool, segment) == CCMR_SUCCESS) {
        atomic_fetch_sub_explicit(&pool->reserved, bytes,
                                  memory_order_relaxed);
    }
}

/* What comes in the order of the pool's own stream is waited for: no node of
 * the graph could. Nothing but such memory is ever on that stream. In a
 * scope. */
static ccmr_status grow(request *of, size_t bytes)
{
    ccmr__pool *pool = of->pool;
    size_t alignment = of->alignment < pool->upstream_alignment
                           ? of->alignment
                           : pool->upstream_alignment;
    ccmr__pool_segment *segment;
    ccmr_status status = ccmr__pool_count_bytes(pool, bytes);

    if (status != CCMR_SUCCESS) {
        return status;
    }
    status =
        ccmr__pool_segment_get(pool, bytes, alignment, pool->stream, &segment);
    if (status != CCMR_SUCCESS) {
        atomic_fetch_sub_explicit(&pool->reserved, bytes,
                                  memory_order_relaxed);
        return status;
    }
    ccmr__pool_note_peak(pool);
    if (pool->stream_ordered) {
        status = ccmr__stream_wait(pool->stream, pool->device);
    }
    if (status == CCMR_SUCCESS) {
        status = settle_in(of, segment);
    }
    if (status != CCMR_SUCCESS) {
        give_up(pool, segment);
        return status == CCMR_ERROR_OUT_OF_HOST_MEMORY ? no_books() : status;
    }
    return CCMR_SUCCESS;
}

static int is_full(ccmr_status status)
{
    return status == CCMR_ERROR_OUT_OF_DEVICE_MEMORY ||
           status == CCMR_ERROR_OUT_OF_HOST_MEMORY ||
           status == CCMR_ERROR_LIMIT_EXCEEDED;
}

static size_t up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

/* Of the budget, or of the device, so much is needed: what is free and
 * finished goes. */
static void make_room(ccmr__pool *pool, size_t bytes)
{
    size_t reserved =
        atomic_load_explicit(&pool->reserved, memory_order_relaxed);
    ccmr_status refused = CCMR_SUCCESS;

    (void)ccmr__pool_steal(pool, NULL, NULL);
    (void)ccmr__pool_pending(pool); /* records events, and asks */
    (void)ccmr__pool_release(pool, reserved > bytes ? reserved - bytes : 0,
                             &refused);
}

/* In whole units, then exactly, with room made in between; at last the host
 * waits for what was freed elsewhere, as any allocation does. */
static ccmr_status grow_by_all_means(request *of)
{
    ccmr__pool *pool = of->pool;
    size_t least =
        pool->range != NULL ? pool->range->unit : CCMR__POOL_GRANULE;
    size_t more = of->alignment > pool->upstream_alignment ? of->alignment : 0;
    size_t exact = up(of->bytes + more, least);
    size_t whole = up(exact, UNIT);
    ccmr_status status = grow(of, whole);

    if (is_full(status)) {
        make_room(pool, whole);
        status = grow(of, whole);
    }
    if (is_full(status) && exact < whole) {
        status = grow(of, exact);
    }
    if (is_full(status)) {
        (void)ccmr__pool_finish_all(pool, 0);
        make_room(pool, exact);
        status = grow(of, exact);
    }
    if (is_full(status)) {
        ccmr__pool_explain(pool, of->bytes);
    }
    return status;
}

static ccmr_status serve(request *of, ccmr_stream stream)
{
    ccmr__pool_lane *lane =
        ccmr__pool_capture_lane(of->pool, of->capture, stream);
    ccmr_status status =
        lane != NULL ? take(of, lane) : CCMR_ERROR_BUSY; /* the free tries */

    if (status == CCMR_ERROR_BUSY) {
        status = take(of, of->capture->fresh);
    }
    return status == CCMR_ERROR_BUSY ? grow_by_all_means(of) : status;
}

ccmr_status ccmr__pool_capture_allocate(ccmr__pool *pool, size_t bytes,
                                        size_t alignment, ccmr_stream stream,
                                        void **ptr)
{
    ccmr_error_detail before = *ccmr__error();
    request of = {.pool = pool,
                  .bytes = ccmr__pool_rounded(bytes),
                  .alignment = alignment > CCMR__POOL_GRANULE
                                   ? alignment
                                   : CCMR__POOL_GRANULE};
    ccmr__scope scope;
    ccmr_status status;

    (void)ccmr__pool_captures_settle(pool);
    status = ccmr__scope_enter(&scope, pool->device, CCMR__SCOPE_RELAXED);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    status = ccmr__pool_capture_find(pool, stream, &of.capture);
    if (status == CCMR_SUCCESS) {
        status = serve(&of, stream);
        ccmr__pool_capture_put(pool, of.capture);
    }
    ccmr__scope_leave(&scope);
    if (status == CCMR_SUCCESS) {
        *ccmr__error() = before;
        *ptr = (void *)of.piece.address;
    }
    return status;
}

/* ---- frees ------------------------------------------------------------------------- */

/* A number for a free on a lane. */
static uint64_t count_free(ccmr__pool_lane *lane, size_t bytes)
{
    uint64_t number;

    ccmr__pool_lane_lock(lane);
    number = ++lane->freed;
    lane->uncovered_bytes += bytes;
    ccmr__pool_lane_unlock(lane);
    return number;
}

/* More to wait for. Where there is no room for it all the work of the device
 * stands for what is there, and for this. */
static void add_wait(ccmr__pool *pool, ccmr__pool_piece *piece,
                     ccmr__pool_lane *lane, uint64_t number)
{
    if (!ccmr__pool_waits_add(&piece->waits, lane, number)) {
        piece->waits.count = 0;
        (void)ccmr__pool_waits_add(&piece->waits, pool->unseen,
                                   count_free(pool->unseen, piece->bytes));
        if (lane->kept) { /* which the device's work is not */
            (void)ccmr__pool_waits_add(&piece->waits, lane, number);
        }
    }
}

/* What the stream had to do before it captured. It is known by its record, if
 * it has one; else nobody can ask for it, now or later. */
static void wait_for_stream(ccmr__pool *pool, ccmr__pool_piece *piece,
                            ccmr_stream stream)
{
    ccmr__stream_record *record = ccmr__stream_find(stream);
    ccmr__pool_lane *lane = NULL;

    if (record != NULL) {
        ccmr__stream_use use = {
            .handle = stream, .id = record->id, .registered = 1};

        if (ccmr__pool_lane_get(pool, &use, record, &lane) != CCMR_SUCCESS) {
            lane = NULL;
        }
    }
    if (lane != NULL) {
        add_wait(pool, piece, lane, count_free(lane, piece->bytes));
        ccmr__pool_lane_put(lane);
    } else {
        add_wait(pool, piece, pool->unseen,
                 count_free(pool->unseen, piece->bytes));
    }
}

/* The graphs that have it: this one, and the one whose segment it is in. Last
 * of all, so that no lack of room takes them away. */
static void park(ccmr__pool *pool, ccmr__pool_piece *piece,
                 ccmr__pool_capture *capture)
{
    const ccmr__pool_capture *other;

    add_wait(pool, piece, capture->parked, capture->parked->freed);
    (void)pthread_mutex_lock(&pool->capturing);
    other =
        atomic_load_explicit(&piece->segment->capture, memory_order_relaxed);
    if (other != NULL && other != capture) {
        if (piece->waits.count == CCMR__POOL_WAITS) {
            piece->waits.count = 0;
            add_wait(pool, piece, pool->unseen,
                     count_free(pool->unseen, piece->bytes));
            add_wait(pool, piece, capture->parked, capture->parked->freed);
        }
        add_wait(pool, piece, other->parked, other->parked->freed);
    }
    (void)pthread_mutex_unlock(&pool->capturing);
    ccmr__pool_bring(capture->parked, piece, 1);
}

/* A graph's own block serves its stream again. */
static void bring_own(ccmr__pool *pool, ccmr__pool_piece *piece,
                      ccmr__pool_capture *capture, ccmr_stream stream)
{
    ccmr__pool_lane *lane = ccmr__pool_capture_lane(pool, capture, stream);

    if (lane == NULL || piece->waits.count != 0) { /* or it has uses beside */
        lane = capture->parked;
    }
    add_wait(pool, piece, lane, lane->freed);
    ccmr__pool_bring(lane, piece, 1);
}

ccmr_status ccmr__pool_capture_free(ccmr__pool *pool, ccmr__pool_piece *piece,
                                    ccmr_stream stream)
{
    ccmr_error_detail before = *ccmr__error();
    ccmr__pool_capture *capture = NULL;
    ccmr__scope scope;
    ccmr_status status =
        ccmr__scope_enter(&scope, pool->device, CCMR__SCOPE_RELAXED);

    if (status != CCMR_SUCCESS) {
        return status;
    }
    status = ccmr__pool_capture_find(pool, stream, &capture);
    ccmr__scope_leave(&scope);
    if (status == CCMR_SUCCESS && ccmr__pool_has_notes(pool)) {
        status = ccmr__pool_notes_to_waits(pool, (void *)piece->address,
                                           &piece->waits);
    }
    if (status == CCMR_SUCCESS) {
        if (atomic_load_explicit(&piece->segment->capture,
                                 memory_order_acquire) == capture) {
            bring_own(pool, piece, capture, stream);
        } else {
            wait_for_stream(pool, piece, stream);
            park(pool, piece, capture);
        }
    }
    if (capture != NULL) {
        ccmr__pool_capture_put(pool, capture);
    }
    if (status == CCMR_SUCCESS) {
        *ccmr__error() = before;
    }
    return status;
}

int ccmr__pool_free_reserved(ccmr__pool *pool, ccmr__pool_piece *piece,
                             ccmr__pool_lane *lane)
{
    ccmr__pool_capture *capture;

    (void)pthread_mutex_lock(&pool->capturing);
    capture =
        atomic_load_explicit(&piece->segment->capture, memory_order_relaxed);
    if (capture != NULL) {
        if (lane != NULL) {
            add_wait(pool, piece, lane, count_free(lane, piece->bytes));
        }
        add_wait(pool, piece, capture->parked, capture->parked->freed);
        ccmr__pool_bring(capture->parked, piece, 1);
    }
    (void)pthread_mutex_unlock(&pool->capturing);
    return capture != NULL;
}
