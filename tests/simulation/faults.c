/* SPDX-License-Identifier: Apache-2.0 */
/* Failures to order, counts of calls, the log, what is left over. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simulation/driver.h"
#include "tests/support/tap.h"

static void ordered(void)
{
    CUdeviceptr address = 0;
    CUdeviceptr kept = 0;

    driver_start(CCMR_SIM_EAGER, 0);
    tap_is_int(sim->fail("cuNoSuchCall", 1, 2), -1, "only calls can fail");
    tap_is_int(sim->fail("cuMemAlloc", 0, 2), -1, "the first is 1");
    tap_is_int(sim->fail("cuMemAlloc", 2, CUDA_ERROR_OUT_OF_MEMORY), 0,
               "the second fails");
    tap_is_int(sim->fail("cuMemAlloc_v2", 3, CUDA_ERROR_UNKNOWN), 0,
               "and the third, by its exact name");
    CHECK(drv.cuMemAlloc(&kept, 64));
    CHECK_IS(drv.cuMemAlloc(&address, 64), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_IS(drv.cuMemAlloc(&address, 64), CUDA_ERROR_UNKNOWN);
    tap_is_int(census_now().plain_blocks, 1, "nothing was carried out");
    CHECK(drv.cuMemAlloc(&address, 64));
    sim->fail(NULL, 2, CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(drv.cuMemFree(address));
    CHECK_IS(drv.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(drv.cuCtxSynchronize());
    sim->fail_after("cuMemFree", 1, CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_IS(drv.cuMemFree(kept), CUDA_ERROR_OUT_OF_MEMORY);
    tap_is_int(sim->is_alive(kept), 0, "carried out, and then failed");
    sim->fail("cuMemFree", 9, 1);
    sim->fail("cuMemFree", 10, 1);
    tap_is_int(sim->forget_failures(), 2, "orders can be withdrawn");
    check_nothing_left("ordered");
}

static void counted(void)
{
    CUdeviceptr address = 0;

    driver_start(CCMR_SIM_EAGER, 0);
    sim->forget_calls();
    drv.cuMemAlloc(&address, 64);
    drv.cuMemFree(address);
    drv.cuMemFree(address);
    tap_is_int(sim->calls("cuMemFree"), 2, "failed calls count");
    tap_is_int(sim->calls("cuMemFree_v2"), 2, "by any name");
    tap_is_int(sim->calls(NULL), 3, "all in all");
    tap_is_int(sim->calls("cuNoSuchCall"), 0, "unknown ones never");
    check_nothing_left("counted");
}

static void logged(void)
{
    ccmr_sim_record record;
    CUdeviceptr address = 0;
    CUmemoryPool pool;
    CUstream stream;
    unsigned long long id = 0;
    int i;

    driver_start(CCMR_SIM_EAGER, 0);
    stream = new_stream();
    pool = new_pool(0);
    drv.cuStreamGetId(stream, &id);
    tap_is_int(sim->log(3), 0, "keep three calls");
    sim->fail("cuMemAllocFromPoolAsync", 2, CUDA_ERROR_OUT_OF_MEMORY);
    drv.cuMemAllocFromPoolAsync(&address, 100, pool, stream);
    drv.cuMemAllocFromPoolAsync(&address, 200, pool, stream);
    tap_is_size(sim->log_count(), 2, "two were made");
    tap_is_int(sim->log_read(0, &record), 0, "read the first");
    tap_is_str(record.call, "cuMemAllocFromPoolAsync", "its name");
    tap_ok(record.stream == stream && record.stream_id == id, "its stream");
    tap_ok(record.object == address, "its address");
    tap_ok(record.other == (uint64_t)(uintptr_t)pool, "its pool");
    tap_is_int(record.bytes, 100, "its size");
    tap_is_int(record.result, CUDA_SUCCESS, "its status");
    sim->log_read(1, &record);
    tap_is_int(record.result, CUDA_ERROR_OUT_OF_MEMORY, "the second failed");
    tap_is_int(record.injected, 1, "by order");
    tap_ok(record.object == 0, "and has no address");
    for (i = 0; i < 5; i++) {
        drv.cuStreamQuery(stream);
    }
    tap_is_size(sim->log_count(), 3, "only three are kept");
    sim->log_read(2, &record);
    tap_is_int(record.sequence, 6, "the last ones");
    tap_is_int(sim->log_read(3, &record), -1, "there is no fourth");
    sim->log(0);
    tap_is_size(sim->log_count(), 0, "the log can be dropped");
    drv.cuMemFreeAsync(address, stream);
    drv.cuMemPoolDestroy(pool);
    drv.cuStreamDestroy(stream);
    check_nothing_left("logged");
}

/* A code that no documentation has for a free; the block is still there, or
 * it is gone all the same. */
static void odd_codes(void)
{
    CUdeviceptr address = 0;

    driver_start(CCMR_SIM_EAGER, 0);
    CHECK(drv.cuMemAlloc(&address, 4096));
    sim->fail("cuMemFree", 1, CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_IS(drv.cuMemFree(address), CUDA_ERROR_OUT_OF_MEMORY);
    tap_is_int(sim->is_alive(address), 1, "it was not freed");
    sim->fail_after("cuMemFree", 1, CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_IS(drv.cuMemFree(address), CUDA_ERROR_OUT_OF_MEMORY);
    tap_is_int(sim->is_alive(address), 0, "it was");
    check_nothing_left("odd codes");
}

/* From the log alone: which stream waited on which record of which stream. */
static void who_waited(void)
{
    ccmr_sim_record record, wait;
    CUstream first, second;
    CUevent event = NULL;

    driver_start(CCMR_SIM_LATE, 0);
    first = new_stream();
    second = new_stream();
    drv.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    sim->log(8);
    drv.cuEventRecord(event, first);
    drv.cuStreamWaitEvent(second, event, 0);
    tap_is_int(sim->log_read(0, &record), 0, "the record");
    tap_is_int(sim->log_read(1, &wait), 0, "the wait");
    tap_is_str(wait.call, "cuStreamWaitEvent", "is one");
    tap_ok(record.stream == first && wait.stream == second, "their streams");
    tap_ok(record.object == wait.other && wait.other != 0, "one event");
    tap_ok(record.sequence < wait.sequence && record.thread == wait.thread,
           "in this order, by one thread");
    drv.cuEventDestroy(event);
    drv.cuStreamDestroy(first);
    drv.cuStreamDestroy(second);
    check_nothing_left("who waited");
}

/* Everything of everything, left behind on purpose. */
static void left_over(void)
{
    ccmr_sim_census left = {.size = sizeof left};
    ccmr_sim_census older;
    CUdeviceptr address = 0;
    CUcontext context = NULL;
    CUevent event = NULL;
    void *pinned = NULL;
    char *page = malloc(8192);
    CUstream stream;

    driver_start(CCMR_SIM_LATE, 3);
    stream = new_stream();
    drv.cuMemAlloc(&address, 100);
    drv.cuMemAlloc(&address, 3 * MIB);
    drv.cuMemHostAlloc(&pinned, 200, 0);
    drv.cuMemHostRegister(page, 8192, 0);
    drv.cuMemAllocManaged(&address, 300, CU_MEM_ATTACH_GLOBAL);
    drv.cuMemAllocFromPoolAsync(&address, 400, new_pool(0), stream);
    drv.cuEventCreate(&event, 0);
    drv.cuEventRecord(event, stream);
    drv.cuStreamWaitEvent(new_stream(), event, 0);
    drv.cuMemsetD8Async(address, 1, 400, stream);
    sim->stall(stream);
    drv.cuMemAllocAsync(&address, 500, stream);
    drv.cuMemFreeAsync(address, stream);
    drv.cuCtxCreate(&context, NULL, 0, 0);
    drv.cuStreamBeginCapture(new_stream(), CU_STREAM_CAPTURE_MODE_RELAXED);
    memset(&older, 0xee, sizeof older);
    older.size = offsetof(ccmr_sim_census, streams);
    tap_is_int(sim->census(&older), 0, "a census for an older program");
    tap_ok(older.contexts == 2 && older.streams == 0xeeeeeeeeeeeeeeee,
           "fills what that knows");
    tap_is_int(sim->reset(&left), 14, "fourteen objects are left");
    tap_is_int(left.contexts, 2, "contexts");
    tap_is_int(left.streams, 3, "streams");
    tap_is_int(left.events, 1, "events");
    tap_is_int(left.pools, 1, "pools");
    tap_is_int(left.captures, 1, "captures");
    tap_is_int(left.plain_blocks, 2, "plain blocks");
    tap_is_size(left.plain_bytes, 100 + 3 * MIB, "and their bytes");
    tap_is_int(left.pinned_bytes, 200, "pinned");
    tap_is_int(left.registered_ranges, 1, "registered");
    tap_is_int(left.managed_bytes, 300, "managed");
    tap_is_int(left.pool_bytes, 400, "of pools");
    tap_is_int(left.pending_operations, 4, "operations");
    free(page);
    driver_start(CCMR_SIM_EAGER, 0);
    tap_is_int(census_now().device_bytes, 0, "and after it a clean start");
    check_nothing_left("left over");
}

int main(void)
{
    driver_load();
    ordered();
    counted();
    logged();
    odd_codes();
    who_waited();
    left_over();
    return tap_finish();
}
