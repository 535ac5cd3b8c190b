/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a block goes that was freed to a pool of the driver.
 *
 * Documented: on the freeing stream it may be used again at once; on another
 * one if that waits for an event recorded after the free, if the free is known
 * to be reached (opportunistic), or if the driver makes the stream wait
 * (internal dependencies). Each way can be turned off.
 */
#include "tests/fidelity/calls.h"
#include "tests/fidelity/facts.h"
#include "tests/fidelity/hold.h"

#include <stdint.h>
#include <stdio.h>

enum { LIMIT_MS = 5000, MIB = 1 << 20 };

struct reuse {
    CUmemoryPool pool;
    CUstream first;
    CUstream second;
    CUdeviceptr block;
};

static void begin_reuse(struct reuse *reuse)
{
    cuuint64_t most = UINT64_MAX;

    reuse->pool = make_pool(0);
    reuse->first = make_stream(CU_STREAM_NON_BLOCKING);
    reuse->second = make_stream(CU_STREAM_NON_BLOCKING);
    reuse->block = 0;
    drv.cuMemPoolSetAttribute(reuse->pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                              &most);
    drv.cuMemAllocFromPoolAsync(&reuse->block, 4 * MIB, reuse->pool,
                                reuse->first);
    drv.cuStreamSynchronize(reuse->first);
}

static void end_reuse(struct reuse *reuse)
{
    drv.cuStreamSynchronize(reuse->first);
    drv.cuStreamSynchronize(reuse->second);
    drv.cuStreamDestroy(reuse->first);
    drv.cuStreamDestroy(reuse->second);
    drv.cuMemPoolDestroy(reuse->pool);
}

/* Allocate the same size on a stream: is it the block again? Is the stream
 * then busy, that is, was it made to wait? */
static void see_reuse(const char *what, const struct reuse *reuse,
                      CUstream stream)
{
    CUdeviceptr again = 0;
    char key[64];
    CUresult res =
        drv.cuMemAllocFromPoolAsync(&again, 4 * MIB, reuse->pool, stream);

    if (res != CUDA_SUCCESS) {
        fact_result(what, res);
        return;
    }
    fact(what, "%s", again == reuse->block ? "same block" : "another block");
    snprintf(key, sizeof key, "%s_stream", what);
    SEE(key, cuStreamQuery(stream));
    drv.cuMemFreeAsync(again, stream);
}

static void same_stream_held(void)
{
    struct reuse reuse;

    begin_reuse(&reuse);
    if (hold(reuse.first)) {
        drv.cuMemFreeAsync(reuse.block, reuse.first);
        see_reuse("alloc", &reuse, reuse.first);
        fact_yes("still_held", let_go());
    }
    end_reuse(&reuse);
}

static void see_reuse_held(bool internal)
{
    struct reuse reuse;
    int value = internal;

    begin_reuse(&reuse);
    drv.cuMemPoolSetAttribute(
        reuse.pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &value);
    if (hold(reuse.first)) {
        drv.cuMemFreeAsync(reuse.block, reuse.first);
        see_reuse("alloc", &reuse, reuse.second);
        fact_yes("still_held", let_go());
    }
    end_reuse(&reuse);
}

/* With internal dependencies the second stream may be made to wait. */
static void other_stream_held(void)
{
    see_reuse_held(true);
}

static void other_stream_held_no_internal(void)
{
    see_reuse_held(false);
}

/* The second stream waits for an event recorded after the free. */
static void after_event(void)
{
    struct reuse reuse;
    CUevent event = NULL;
    int off = 0;

    begin_reuse(&reuse);
    drv.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    drv.cuMemPoolSetAttribute(
        reuse.pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &off);
    if (hold(reuse.first)) {
        drv.cuMemFreeAsync(reuse.block, reuse.first);
        drv.cuEventRecord(event, reuse.first);
        drv.cuStreamWaitEvent(reuse.second, event, 0);
        see_reuse("alloc", &reuse, reuse.second);
        fact_yes("still_held", let_go());
    }
    end_reuse(&reuse);
    drv.cuEventDestroy(event);
}

/* The event was recorded before the free: it does not cover it. */
static void after_early_event(void)
{
    struct reuse reuse;
    CUevent event = NULL;
    int off = 0;

    begin_reuse(&reuse);
    drv.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    drv.cuMemPoolSetAttribute(
        reuse.pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &off);
    if (hold(reuse.first)) {
        drv.cuEventRecord(event, reuse.first);
        drv.cuMemFreeAsync(reuse.block, reuse.first);
        drv.cuStreamWaitEvent(reuse.second, event, 0);
        see_reuse("alloc", &reuse, reuse.second);
        fact_yes("still_held", let_go());
    }
    end_reuse(&reuse);
    drv.cuEventDestroy(event);
}

static void see_reuse_finished(bool opportunistic)
{
    struct reuse reuse;
    int value = opportunistic;

    begin_reuse(&reuse);
    drv.cuMemPoolSetAttribute(
        reuse.pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &value);
    drv.cuMemFreeAsync(reuse.block, reuse.first);
    drv.cuStreamSynchronize(reuse.first);
    see_reuse("alloc", &reuse, reuse.second);
    end_reuse(&reuse);
}

static void finished(void)
{
    see_reuse_finished(true);
}

static void finished_no_opportunism(void)
{
    see_reuse_finished(false);
}

/* A block freed on the second stream, allocated on it again. */
static void by_freeing_stream(void)
{
    struct reuse reuse;

    begin_reuse(&reuse);
    if (hold(reuse.second)) {
        drv.cuMemFreeAsync(reuse.block, reuse.second);
        see_reuse("alloc", &reuse, reuse.second);
        fact_yes("still_held", let_go());
    }
    end_reuse(&reuse);
}

/* The stream whose free is pending is destroyed; who gets the block? */
static void after_stream_destroyed(void)
{
    struct reuse reuse;
    CUstream third = make_stream(CU_STREAM_NON_BLOCKING);

    begin_reuse(&reuse);
    drv.cuMemFreeAsync(reuse.block, third);
    drv.cuStreamSynchronize(third);
    SEE("destroy", cuStreamDestroy(third));
    see_reuse("alloc", &reuse, reuse.second);
    end_reuse(&reuse);
}

/* A limited pool, with all of it pending on a held stream: does a request on
 * another stream fail, wait on the host, or wait on the device? */
static void exhausted_by_pending(void)
{
    CUmemoryPool pool = make_pool((size_t)64 * MIB);
    CUstream first = make_stream(CU_STREAM_NON_BLOCKING);
    CUstream second = make_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr block = 0;
    CUdeviceptr again = 0;

    SEE("alloc",
        cuMemAllocFromPoolAsync(&block, (size_t)64 * MIB, pool, first));
    drv.cuStreamSynchronize(first);
    if (hold(first)) {
        let_go_after(HOLD_DELAY_MS);
        SEE("free", cuMemFreeAsync(block, first));
        SEE("alloc_elsewhere",
            cuMemAllocFromPoolAsync(&again, (size_t)64 * MIB, pool, second));
        fact_yes("still_held", let_go());
    }
    drv.cuCtxSynchronize();
    if (again != 0) {
        SEE("free_again", cuMemFreeAsync(again, second));
    }
    drv.cuCtxSynchronize();
    drv.cuStreamDestroy(first);
    drv.cuStreamDestroy(second);
    drv.cuMemPoolDestroy(pool);
}

static const struct fidelity_case reuse_cases[] = {
    FIDELITY_CASE(same_stream_held),
    FIDELITY_CASE(other_stream_held),
    FIDELITY_CASE(other_stream_held_no_internal),
    FIDELITY_CASE(after_event),
    FIDELITY_CASE(after_early_event),
    FIDELITY_CASE(finished),
    FIDELITY_CASE(finished_no_opportunism),
    FIDELITY_CASE(by_freeing_stream),
    FIDELITY_CASE(after_stream_destroyed),
    FIDELITY_CASE(exhausted_by_pending),
    FIDELITY_END,
};

const struct fidelity_topic reuse_topic = {
    "reuse",
    reuse_cases,
    NULL,
    NULL,
    false,
    LIMIT_MS,
    "Documented: freed memory goes to the same stream at once, to others by "
    "their waits, by chance or by waits that the driver makes.",
};
