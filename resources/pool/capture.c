/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool: captures, their records and what becomes of them. See capture.h.
 */
#include "resources/pool/capture.h"

#include <stdlib.h>

#include "lib/error.h"
#include "resources/pool/capture_find.h"
#include "resources/pool/pool.h"

/* The driver allows it no calls. */
static void CUDA_CB note_gone(void *argument)
{
    ccmr__pool_capture *capture = argument;

    atomic_store_explicit(&capture->gone, 1, memory_order_release);
}

/* ---- records -------------------------------------------------------------------- */

/* Its lanes' numbers are done: all in them is free. */
static void free_capture(ccmr__pool_capture *capture)
{
    while (capture->streams != NULL) {
        ccmr__pool_captured *one = capture->streams;

        capture->streams = one->next;
        ccmr__pool_lane_release(one->lane);
        free(one);
    }
    if (capture->parked != NULL) {
        ccmr__pool_lane_release(capture->parked);
    }
    if (capture->fresh != NULL) {
        ccmr__pool_lane_release(capture->fresh);
    }
    free(capture);
}

/* NULL without memory. */
static ccmr__pool_capture *new_capture(ccmr__pool *pool)
{
    ccmr__pool_capture *capture = calloc(1, sizeof(*capture));

    if (capture == NULL) {
        return NULL;
    }
    capture->fresh = ccmr__pool_lane_keep(pool);
    capture->parked = ccmr__pool_lane_keep(pool);
    if (capture->fresh == NULL || capture->parked == NULL) {
        free_capture(capture);
        return NULL;
    }
    return capture;
}

/* One that the pool has ready, so that a free need not allocate; and another
 * for the next, if that can be had. */
static ccmr__pool_capture *take_capture(ccmr__pool *pool)
{
    ccmr__pool_capture *next = new_capture(pool);
    ccmr__pool_capture *taken;

    (void)pthread_mutex_lock(&pool->capturing);
    taken = pool->spare_capture;
    if (taken != NULL) {
        pool->spare_capture = next;
    } else {
        taken = next;
    }
    (void)pthread_mutex_unlock(&pool->capturing);
    return taken;
}

static void put_in(ccmr__pool *pool, ccmr__pool_capture *capture)
{
    (void)pthread_mutex_lock(&pool->capturing);
    capture->users = 1;
    capture->next =
        atomic_load_explicit(&pool->captures, memory_order_relaxed);
    atomic_store_explicit(&pool->captures, capture, memory_order_relaxed);
    (void)pthread_mutex_unlock(&pool->capturing);
}

/* ---- finding a graph --------------------------------------------------------------- */

/* The graph tells when it goes. In a scope. Where that fails the capture is in
 * the list all the same, and is settled as one whose graph has gone. */
static ccmr_status tie(ccmr__pool_capture *capture, CUgraph graph)
{
    CUuserObject object;
    CUresult res = CCMR__CU(cuUserObjectCreate)(
        &object, capture, note_gone, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);

    if (res != CUDA_SUCCESS) {
        atomic_store_explicit(&capture->gone, 1, memory_order_release);
        return ccmr__fail_driver_host((int)res, "cuUserObjectCreate");
    }
    res = CCMR__CU(cuGraphRetainUserObject)(graph, object, 1,
                                            CU_GRAPH_USER_OBJECT_MOVE);
    if (res != CUDA_SUCCESS) {
        (void)CCMR__CU(cuUserObjectRelease)(object, 1);
        return ccmr__fail_driver((int)res, "cuGraphRetainUserObject");
    }
    return CCMR_SUCCESS;
}

static ccmr__pool_capture *known(ccmr__pool *pool, uint64_t id)
{
    ccmr__pool_capture *capture;

    (void)pthread_mutex_lock(&pool->capturing);
    capture = atomic_load_explicit(&pool->captures, memory_order_relaxed);
    while (capture != NULL &&
           (capture->id != id ||
            atomic_load_explicit(&capture->gone, memory_order_acquire) != 0)) {
        capture = capture->next;
    }
    if (capture != NULL) {
        capture->users++;
    }
    (void)pthread_mutex_unlock(&pool->capturing);
    return capture;
}

/* What captures on a stream; no call on it but this one. */
static int ask(ccmr_stream stream, uint64_t *id, CUgraph *graph)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t number = 0;
    CUresult res = CCMR__CU(cuStreamGetCaptureInfo)(stream, &status, &number,
                                                    graph, NULL, NULL);

    *id = number;
    return res == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

ccmr_status ccmr__pool_capture_find(ccmr__pool *pool, ccmr_stream stream,
                                    ccmr__pool_capture **found)
{
    CUgraph graph = NULL;
    ccmr__pool_capture *capture;
    uint64_t id;
    ccmr_status status;

    if (!ask(stream, &id, &graph)) {
        return ccmr__fail(CCMR_ERROR_CAPTURING,
                          "the stream's capture is invalid, or was announced "
                          "and has not begun: there is no graph to reserve "
                          "memory for");
    }
    capture = known(pool, id);
    if (capture == NULL) {
        capture = take_capture(pool);
        if (capture == NULL) {
            return ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                              "no memory for what a pool knows of a graph");
        }
        capture->id = id;
        status = tie(capture, graph);
        put_in(pool, capture);
        if (status != CCMR_SUCCESS) {
            ccmr__pool_capture_put(pool, capture);
            return status;
        }
    }
    *found = capture;
    return CCMR_SUCCESS;
}

void ccmr__pool_capture_put(ccmr__pool *pool, ccmr__pool_capture *capture)
{
    (void)pthread_mutex_lock(&pool->capturing);
    capture->users--;
    (void)pthread_mutex_unlock(&pool->capturing);
}

/* A per-thread token is another stream on each thread. */
static uint64_t key_of(ccmr_stream stream)
{
    return stream == CCMR_STREAM_PER_THREAD
               ? CCMR__ID_PER_THREAD | ccmr__thread_serial()
               : (uint64_t)(uintptr_t)stream;
}

ccmr__pool_lane *ccmr__pool_capture_lane(ccmr__pool *pool,
                                         ccmr__pool_capture *capture,
                                         ccmr_stream stream)
{
    uint64_t key = key_of(stream);
    ccmr__pool_captured *one;

    (void)pthread_mutex_lock(&pool->capturing);
    one = capture->streams;
    while (one != NULL && one->key != key) {
        one = one->next;
    }
    if (one == NULL) {
        one = calloc(1, sizeof(*one));
        if (one != NULL) {
            one->key = key;
            one->lane = ccmr__pool_lane_keep(pool);
            if (one->lane == NULL) {
                free(one);
                one = NULL;
            } else {
                one->next = capture->streams;
                capture->streams = one;
            }
        }
    }
    (void)pthread_mutex_unlock(&pool->capturing);
    return one != NULL ? one->lane : NULL;
}

/* ---- graphs that have gone ----------------------------------------------------------- */

/* Those that nobody is at work on. Under pool->capturing. */
static ccmr__pool_capture *take_gone(ccmr__pool *pool)
{
    ccmr__pool_capture *capture =
        atomic_load_explicit(&pool->captures, memory_order_relaxed);
    ccmr__pool_capture *left = NULL;
    ccmr__pool_capture *gone = NULL;

    while (capture != NULL) {
        ccmr__pool_capture *next = capture->next;
        int goes =
            capture->users == 0 &&
            atomic_load_explicit(&capture->gone, memory_order_acquire) != 0;

        capture->next = goes ? gone : left;
        *(goes ? &gone : &left) = capture;
        capture = next;
    }
    atomic_store_explicit(&pool->captures, left, memory_order_relaxed);
    return gone;
}

int ccmr__pool_captures_settle(ccmr__pool *pool)
{
    ccmr__pool_capture *gone;
    int left;

    if (atomic_load_explicit(&pool->captures, memory_order_relaxed) == NULL) {
        return 0;
    }
    (void)pthread_mutex_lock(&pool->capturing);
    gone = take_gone(pool);
    left = atomic_load_explicit(&pool->captures, memory_order_relaxed) != NULL;
    while (gone != NULL) {
        ccmr__pool_capture *next = gone->next;

        ccmr__pool_segments_leave(pool, gone);
        free_capture(gone);
        gone = next;
    }
    (void)pthread_mutex_unlock(&pool->capturing);
    return left;
}

size_t ccmr__pool_captured_bytes(ccmr__pool *pool)
{
    ccmr__pool_lane *lane =
        atomic_load_explicit(&pool->lanes, memory_order_acquire);
    size_t bytes = 0;

    for (; lane != NULL; lane = lane->next) {
        ccmr__pool_lane_lock(lane);
        if (lane->kept) {
            bytes += lane->set.bytes;
        }
        ccmr__pool_lane_unlock(lane);
    }
    return bytes;
}

/* ---- beginning and end ------------------------------------------------------------------ */

ccmr_status ccmr__pool_captures_begin(ccmr__pool *pool)
{
    if (CCMR__CU(cuStreamGetCaptureInfo) == NULL ||
        CCMR__CU(cuUserObjectCreate) == NULL ||
        CCMR__CU(cuUserObjectRelease) == NULL ||
        CCMR__CU(cuGraphRetainUserObject) == NULL) {
        return ccmr__fail(CCMR_ERROR_NOT_SUPPORTED,
                          "pool: capture=reserve needs a driver with user "
                          "objects, 11.3 or later");
    }
    pool->unseen = ccmr__pool_lane_bare(pool);
    pool->spare_capture = new_capture(pool);
    if (pool->unseen == NULL || pool->spare_capture == NULL) {
        return ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                          "no memory for the captures of a pool");
    }
    return ccmr_stream_create(pool->device->ordinal,
                              CCMR_STREAM_FLAG_NON_BLOCKING, &pool->stream);
}

void ccmr__pool_captures_end(ccmr__pool *pool)
{
    int tries;

    if (pool->spare_capture != NULL) {
        free_capture(pool->spare_capture);
        pool->spare_capture = NULL;
    }
    for (tries = 0; tries < 3 && pool->stream != NULL; tries++) {
        if (ccmr_stream_destroy(pool->stream) == CCMR_SUCCESS) {
            pool->stream = NULL;
        }
    }
}
