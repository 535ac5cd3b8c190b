/* SPDX-License-Identifier: Apache-2.0 */
/* Events of whole contexts. */
#include <stdint.h>

#include "tests/simulation/driver.h"
#include "tests/support/tap.h"

static CUcontext current(void)
{
    CUcontext context = NULL;

    drv.cuCtxGetCurrent(&context);
    return context;
}

static CUevent new_event(void)
{
    CUevent event = NULL;

    if (drv.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
        tap_bail_out("no event");
    }
    return event;
}

/* Done once every stream is, one that was destroyed meanwhile included. */
static void covers_all_streams(ccmr_sim_mode mode, uint64_t seed)
{
    CUdeviceptr block = 0;
    CUstream a, b, later;
    CUevent event;

    driver_start(mode, seed);
    a = new_stream();
    b = new_stream();
    event = new_event();
    CHECK(drv.cuMemAlloc(&block, 4096));
    sim->stall(a);
    sim->stall(b);
    CHECK(drv.cuMemsetD8Async(block, 1, 64, a));
    CHECK(drv.cuMemsetD8Async(block + 64, 2, 64, b));
    CHECK(drv.cuCtxRecordEvent(current(), event));
    later = new_stream();
    CHECK(drv.cuMemsetD8Async(block + 128, 3, 64, later));
    CHECK(drv.cuStreamSynchronize(later));
    CHECK(drv.cuStreamDestroy(b));
    CHECK_IS(drv.cuEventQuery(event), CUDA_ERROR_NOT_READY);
    sim->release(a);
    for (int i = 0; i < 8; i++) {
        sim->run(8);
    }
    CHECK_IS(drv.cuEventQuery(event), CUDA_ERROR_NOT_READY);
    sim->release(b);
    CHECK(drv.cuEventSynchronize(event));
    /* Later work does not change what the event stands for. */
    sim->stall(a);
    CHECK(drv.cuMemsetD8Async(block, 1, 64, a));
    CHECK(drv.cuEventSynchronize(event));
    sim->release(a);
    drv.cuMemFree(block);
    drv.cuStreamDestroy(a);
    drv.cuStreamDestroy(later);
    drv.cuEventDestroy(event);
    check_nothing_left("covers all streams");
}

/* All streams of a context wait, those that are made later, too. */
static void holds_all_streams(ccmr_sim_mode mode, uint64_t seed)
{
    CUcontext second = NULL;
    CUcontext first;
    CUstream away, here, later;
    CUevent event;

    driver_start(mode, seed);
    first = current();
    CHECK(drv.cuCtxCreate(&second, NULL, 0, 0));
    away = new_stream();
    event = new_event();
    drv.cuCtxPopCurrent(NULL);
    here = new_stream();
    sim->stall(away);
    CHECK_IS(drv.cuEventRecord(event, here), CUDA_ERROR_INVALID_HANDLE);
    CHECK_IS(drv.cuCtxRecordEvent(first, event), CUDA_ERROR_INVALID_HANDLE);
    CHECK(drv.cuStreamQuery(here));
    drv.cuCtxPushCurrent(second);
    CHECK(drv.cuStreamWaitEvent(away, event, 0));
    CHECK(drv.cuEventRecord(event, away));
    drv.cuCtxPopCurrent(NULL);
    CHECK(drv.cuCtxWaitEvent(first, event));
    later = new_stream();
    CHECK_IS(drv.cuStreamQuery(here), CUDA_ERROR_NOT_READY);
    CHECK_IS(drv.cuStreamQuery(later), CUDA_ERROR_NOT_READY);
    CHECK_IS(drv.cuStreamQuery(CU_STREAM_PER_THREAD), CUDA_ERROR_NOT_READY);
    sim->release(away);
    CHECK(drv.cuStreamSynchronize(here));
    CHECK(drv.cuStreamSynchronize(later));
    CHECK(drv.cuStreamSynchronize(CU_STREAM_PER_THREAD));
    drv.cuStreamDestroy(later);
    drv.cuStreamDestroy(here);
    drv.cuCtxDestroy(second);
    CHECK_IS(drv.cuCtxWaitEvent(second, event), CUDA_ERROR_INVALID_CONTEXT);
    check_nothing_left("holds all streams");
}

/* Measured on an H200: it ruins captures even in the relaxed mode. */
static void ruins_captures(void)
{
    CUgraph graph = NULL;
    CUstream stream;
    CUevent event;

    driver_start(CCMR_SIM_EAGER, 0);
    stream = new_stream();
    event = new_event();
    CHECK(drv.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    CHECK_IS(drv.cuCtxRecordEvent(current(), event),
             CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK_IS(drv.cuStreamEndCapture(stream, &graph),
             CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK(drv.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    CHECK_IS(drv.cuCtxWaitEvent(current(), event),
             CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK_IS(drv.cuStreamEndCapture(stream, &graph),
             CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    drv.cuEventDestroy(event);
    drv.cuStreamDestroy(stream);
    check_nothing_left("ruins captures");
}

/* What a context event orders, the check of order knows, and nothing more. */
static void is_order(bool record)
{
    CUdeviceptr block = 0;
    CUstream a, b;
    CUevent event;

    driver_start(CCMR_SIM_EAGER, 0);
    a = new_stream();
    event = new_event();
    sim->check_order(1);
    CHECK(drv.cuMemAlloc(&block, 4096));
    sim->handed_out(block, 4096, a);
    CHECK(drv.cuMemsetD8Async(block, 1, 4096, a));
    sim->freed(block, 4096, a);
    if (record) {
        CHECK(drv.cuCtxRecordEvent(current(), event));
    }
    CHECK(drv.cuCtxWaitEvent(current(), event));
    b = new_stream();
    sim->handed_out(block, 4096, b);
    tap_is_int((long long)sim->hazards(), record ? 0 : 1,
               record ? "a new stream is ordered behind it"
                      : "an event without a record orders nothing");
    CHECK(drv.cuStreamSynchronize(b));
    sim->freed(block, 4096, CCMR_SIM_HOST);
    sim->forget_hazards();
    drv.cuMemFree(block);
    drv.cuStreamDestroy(a);
    drv.cuStreamDestroy(b);
    drv.cuEventDestroy(event);
    check_nothing_left("is order");
}

/* Drivers before 12.5 have no such calls. */
static void is_new(void)
{
    void *found = NULL;

    sim->set_driver_version(12040);
    driver_start(CCMR_SIM_EAGER, 0);
    CHECK_IS(drv.cuGetProcAddress("cuCtxRecordEvent", &found, 13000, 0, NULL),
             CUDA_ERROR_NOT_FOUND);
    tap_ok(found == NULL, "not in a driver of CUDA 12.4");
    check_nothing_left("is new");
}

int main(void)
{
    driver_load();
    covers_all_streams(CCMR_SIM_EAGER, 0);
    for (uint64_t seed = 0; seed < 20; seed++) {
        covers_all_streams(CCMR_SIM_LATE, seed);
        holds_all_streams(CCMR_SIM_LATE, seed);
    }
    holds_all_streams(CCMR_SIM_EAGER, 0);
    ruins_captures();
    is_order(true);
    is_order(false);
    is_new();
    return tap_finish();
}
