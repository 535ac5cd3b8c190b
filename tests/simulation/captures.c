/* SPDX-License-Identifier: Apache-2.0 */
/* Captures: what is recorded, what ruins one, what is left of it. */
#include <stdint.h>

#include "tests/simulation/driver.h"
#include "tests/support/tap.h"

static int ran;

static void CUDA_CB count(void *unused)
{
    (void)unused;
    ran++;
}

static size_t nodes_of(CUgraph graph)
{
    size_t number = 0;

    drv.cuGraphGetNodes(graph, NULL, &number);
    return number;
}

static CUstreamCaptureStatus status_of(CUstream stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

    drv.cuStreamIsCapturing(stream, &status);
    return status;
}

static void recorded(void)
{
    CUdeviceptr address = 0;
    CUgraph graph = NULL;
    CUstream stream;

    driver_start(CCMR_SIM_EAGER, 0);
    stream = new_stream();
    drv.cuMemAlloc(&address, 64);
    drv.cuMemsetD8(address, 1, 64);
    CHECK(drv.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK(drv.cuMemsetD8Async(address, 2, 64, stream));
    CHECK(drv.cuLaunchHostFunc(stream, count, NULL));
    tap_is_int(ran, 0, "captured work does not run");
    tap_is_int(*(unsigned char *)sim->peek(address, 1), 1, "not even eagerly");
    tap_is_int(census_now().captures, 1, "a capture is under way");
    CHECK(drv.cuStreamEndCapture(stream, &graph));
    tap_is_size(nodes_of(graph), 2, "the graph has two nodes");
    tap_is_int(census_now().graphs, 1, "one graph");
    CHECK(drv.cuGraphDestroy(graph));
    drv.cuMemFree(address);
    drv.cuStreamDestroy(stream);
    check_nothing_left("recorded");
}

static void blocks(void)
{
    CUdeviceptr inside = 0;
    CUdeviceptr outside = 0;
    CUgraph graph = NULL;
    CUstream stream;

    driver_start(CCMR_SIM_EAGER, 0);
    stream = new_stream();
    drv.cuMemAllocAsync(&outside, 4096, stream);
    drv.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    CHECK(drv.cuMemAllocAsync(&inside, 4096, stream));
    tap_ok(inside != 0 && inside != outside, "a block of the graph's own");
    CHECK_IS(drv.cuMemFreeAsync(outside, stream), CUDA_ERROR_INVALID_VALUE);
    CHECK(drv.cuMemFreeAsync(inside, stream));
    CHECK_IS(drv.cuMemFreeAsync(inside, stream), CUDA_ERROR_INVALID_VALUE);
    CHECK(drv.cuStreamEndCapture(stream, &graph));
    CHECK_IS(drv.cuMemFreeAsync(inside, stream), CUDA_ERROR_INVALID_VALUE);
    CHECK_IS(drv.cuMemFree(inside), CUDA_ERROR_INVALID_VALUE);
    tap_is_int(census_now().pool_blocks, 1, "it is no pool's block");
    tap_is_int(census_now().graph_blocks, 0, "and there after a launch only");
    drv.cuGraphDestroy(graph);
    drv.cuMemFreeAsync(outside, stream);
    drv.cuStreamDestroy(stream);
    check_nothing_left("blocks");
}

/* Fork and join by events, and what happens without the join. */
static void forks(void)
{
    CUstream one, two;
    CUevent event = NULL;
    CUevent back = NULL;
    CUgraph graph = NULL;

    driver_start(CCMR_SIM_EAGER, 0);
    one = new_stream();
    two = new_stream();
    drv.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    drv.cuEventCreate(&back, CU_EVENT_DISABLE_TIMING);
    drv.cuStreamBeginCapture(one, CU_STREAM_CAPTURE_MODE_RELAXED);
    drv.cuLaunchHostFunc(one, count, NULL);
    CHECK(drv.cuEventRecord(event, one));
    CHECK(drv.cuStreamWaitEvent(two, event, 0));
    tap_is_int(status_of(two), CU_STREAM_CAPTURE_STATUS_ACTIVE,
               "a wait draws a stream in");
    drv.cuLaunchHostFunc(two, count, NULL);
    CHECK_IS(drv.cuStreamEndCapture(two, &graph),
             CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    CHECK_IS(drv.cuStreamEndCapture(one, &graph),
             CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    drv.cuStreamBeginCapture(one, CU_STREAM_CAPTURE_MODE_RELAXED);
    drv.cuEventRecord(event, one);
    drv.cuStreamWaitEvent(two, event, 0);
    drv.cuLaunchHostFunc(two, count, NULL);
    CHECK_IS(drv.cuStreamEndCapture(one, &graph),
             CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    drv.cuStreamBeginCapture(one, CU_STREAM_CAPTURE_MODE_RELAXED);
    drv.cuEventRecord(event, one);
    drv.cuStreamWaitEvent(two, event, 0);
    drv.cuLaunchHostFunc(two, count, NULL);
    drv.cuEventRecord(back, two);
    CHECK(drv.cuStreamWaitEvent(one, back, 0));
    CHECK(drv.cuStreamEndCapture(one, &graph));
    tap_is_int(status_of(two), CU_STREAM_CAPTURE_STATUS_NONE,
               "the end frees both");
    drv.cuGraphDestroy(graph);
    drv.cuEventDestroy(event);
    drv.cuEventDestroy(back);
    drv.cuStreamDestroy(one);
    drv.cuStreamDestroy(two);
    check_nothing_left("forks");
}

static void ruined(void)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    unsigned long long id = 0;
    CUdeviceptr address = 0;
    CUgraph graph = NULL;
    CUmemoryPool pool;
    CUstream stream;

    driver_start(CCMR_SIM_EAGER, 0);
    stream = new_stream();
    pool = new_pool(0);
    drv.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    drv.cuThreadExchangeStreamCaptureMode(&mode);
    CHECK(drv.cuMemPoolTrimTo(pool, 0));
    CHECK(drv.cuMemAlloc(&address, 64));
    drv.cuThreadExchangeStreamCaptureMode(&mode);
    tap_is_int(status_of(stream), CU_STREAM_CAPTURE_STATUS_ACTIVE,
               "relaxed: unsafe calls do no harm");
    CHECK_IS(drv.cuMemPoolTrimTo(pool, 0),
             CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    tap_is_int(status_of(stream), CU_STREAM_CAPTURE_STATUS_INVALIDATED,
               "otherwise they do");
    CHECK(drv.cuMemPoolTrimTo(pool, 0) == CUDA_SUCCESS ? CUDA_ERROR_UNKNOWN
                                                       : CUDA_SUCCESS);
    CHECK_IS(drv.cuStreamEndCapture(stream, &graph),
             CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    tap_ok(graph == NULL, "and there is no graph");
    CHECK(drv.cuMemPoolTrimTo(pool, 0));
    drv.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    CHECK_IS(drv.cuStreamGetId(stream, &id),
             CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK_IS(drv.cuMemAllocAsync(&address, 64, stream),
             CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK(drv.cuStreamDestroy(stream));
    tap_is_int(census_now().captures, 0, "a capture ends with its stream");
    drv.cuMemPoolDestroy(pool);
    sim->reset(NULL);
}

int main(void)
{
    driver_load();
    recorded();
    blocks();
    forks();
    ruined();
    return tap_finish();
}
