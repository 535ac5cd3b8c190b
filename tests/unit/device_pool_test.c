/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_pool on the simulated driver: what it does with blocks. Creation and
 * options are in device_pool_make_test.
 */
#include "tests/unit/leaf.h"

static const ccmr_sim_table *sim;
static ccmr_resource *pool; /* own, of device 1 */
static ccmr_stream stream;  /* of device 1 */

static void start(void)
{
    ccmr_device_pool_options options = {.size = sizeof(options), .own = 1};

    sim = leaf_start();
    stream = leaf_stream(1);
    cr_assert_eq(ccmr_device_pool_create(1, &options, &pool), CCMR_SUCCESS,
                 "%s", ccmr_last_error()->message);
}

static void end(void)
{
    ccmr_resource_release(pool);
    cr_assert_eq(leaf_census().pools, 0u);
    cr_assert_eq(leaf_census().pool_blocks, 0u);
    leaf_end();
}

TestSuite(device_pool, .init = start, .fini = end);

static uint64_t attribute(CUmemPool_attribute which)
{
    CUmemoryPool handle;
    uint64_t value = 0;

    cr_assert_eq(ccmr_device_pool_handle(pool, &handle), CCMR_SUCCESS);
    cr_assert_eq(api.cuMemPoolGetAttribute(handle, which, &value),
                 CUDA_SUCCESS);
    return value;
}

static void *allocate(size_t bytes, ccmr_stream on)
{
    void *ptr = NULL;

    cr_assert_eq(ccmr_resource_allocate(pool, bytes, 0, on, &ptr),
                 CCMR_SUCCESS, "%s", ccmr_last_error()->message);
    cr_assert_eq((uintptr_t)ptr % 256, 0u);
    return ptr;
}

static void deallocate(void *ptr, size_t bytes, ccmr_stream on)
{
    cr_assert_eq(ccmr_resource_deallocate(pool, ptr, bytes, 0, on),
                 CCMR_SUCCESS, "%s", ccmr_last_error()->message);
}

/* What a pair costs in driver calls, on machines with several devices. */
Test(device_pool, makes_few_driver_calls)
{
    ccmr_stream registered;
    void *ptr;

    cr_assert_eq(
        ccmr_stream_create(1, CCMR_STREAM_FLAG_NON_BLOCKING, &registered),
        CCMR_SUCCESS);
    cr_assert_eq(sim->forget_calls(), 0);
    ptr = allocate(1000, registered);
    deallocate(ptr, 1000, registered);
    cr_assert_eq(sim->calls("cuMemAllocFromPoolAsync"), 1u);
    cr_assert_eq(sim->calls("cuMemFreeAsync"), 1u);
    cr_assert_eq(sim->calls("cuThreadExchangeStreamCaptureMode"), 4u);
    cr_assert_eq(sim->calls(NULL), 6u);

    cr_assert_eq(sim->forget_calls(), 0);
    ptr = allocate(1000, stream);
    deallocate(ptr, 1000, stream);
    cr_assert_eq(sim->calls("cuStreamIsCapturing"), 2u);
    cr_assert_eq(sim->calls("cuStreamGetDevice"), 2u);
    cr_assert_eq(sim->calls(NULL), 10u);
    cr_assert_eq(ccmr_stream_destroy(registered), CCMR_SUCCESS);
}

/* guard=no, and threads whose own mode is relaxed. */
Test(device_pool, exchanges_modes_only_at_need)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    ccmr_resource *bare;
    void *ptr;

    cr_assert_eq(api.cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
    cr_assert_eq(sim->forget_calls(), 0);
    ptr = allocate(1000, stream);
    cr_assert_eq(sim->calls("cuThreadExchangeStreamCaptureMode"), 1u);
    deallocate(ptr, 1000, stream);
    cr_assert_eq(api.cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
    cr_assert_eq(mode, CU_STREAM_CAPTURE_MODE_RELAXED);

    cr_assert_eq(ccmr_stack_create("device_pool device=1 guard=no", &bare),
                 CCMR_SUCCESS);
    cr_assert_eq(sim->forget_calls(), 0);
    cr_assert_eq(ccmr_resource_allocate(bare, 1000, 0, stream, &ptr),
                 CCMR_SUCCESS);
    cr_assert_eq(ccmr_resource_deallocate(bare, ptr, 1000, 0, stream),
                 CCMR_SUCCESS);
    cr_assert_eq(sim->calls("cuThreadExchangeStreamCaptureMode"), 0u);
    ccmr_resource_release(bare);
}

/* E1, B6: whatever context is current, or none. */
Test(device_pool, acts_on_its_device)
{
    const ccmr_stream streams[] = {CCMR_STREAM_LEGACY, CCMR_STREAM_PER_THREAD,
                                   stream, NULL};
    CUcontext contexts[] = {NULL, leaf_context(0), leaf_context(1)};
    ccmr_trim_result result = {.size = sizeof(result)};
    ccmr_stats stats = {.size = sizeof(stats)};
    void *ptr;
    size_t i;
    size_t j;

    for (i = 0; i < 3; i++) {
        cr_assert_eq(api.cuCtxSetCurrent(contexts[i]), CUDA_SUCCESS);
        for (j = 0; j < sizeof(streams) / sizeof(streams[0]); j++) {
            ptr = allocate(MIB, streams[j]);
            cr_assert_eq(leaf_current(), contexts[i]);
            cr_assert_eq(attribute(CU_MEMPOOL_ATTR_USED_MEM_CURRENT), MIB);
            deallocate(ptr, MIB, streams[j]);
            cr_assert_eq(leaf_current(), contexts[i]);
        }
        cr_assert_eq(ccmr_resource_stats(pool, &stats), CCMR_SUCCESS);
        cr_assert_eq(ccmr_resource_trim(pool, 0, &result), CCMR_SUCCESS);
        cr_assert_eq(leaf_current(), contexts[i]);
        cr_assert_eq(leaf_mode(), CU_STREAM_CAPTURE_MODE_GLOBAL);
    }
    cr_assert_eq(api.cuCtxSetCurrent(NULL), CUDA_SUCCESS);
}

/* E5: a stream of another device is refused before the pool is asked. */
Test(device_pool, refuses_streams_of_other_devices)
{
    ccmr_stream other = leaf_stream(0);
    ccmr_stream registered;
    void *ptr;

    cr_assert_eq(ccmr_stream_create(0, 0, &registered), CCMR_SUCCESS);
    cr_assert_eq(sim->forget_calls(), 0);
    cr_assert_eq(ccmr_resource_allocate(pool, MIB, 0, other, &ptr),
                 CCMR_ERROR_WRONG_DEVICE);
    cr_assert_not_null(strstr(ccmr_last_error()->message, "device 0"));
    cr_assert_not_null(strstr(ccmr_last_error()->message, "device 1"));
    cr_assert_eq(ccmr_resource_allocate(pool, MIB, 0, registered, &ptr),
                 CCMR_ERROR_WRONG_DEVICE);
    cr_assert_eq(sim->calls("cuMemAllocFromPoolAsync"), 0u);
    ptr = allocate(MIB, stream);
    cr_assert_eq(ccmr_resource_deallocate(pool, ptr, MIB, 0, other),
                 CCMR_ERROR_WRONG_DEVICE);
    cr_assert_eq(ccmr_resource_deallocate(pool, ptr, MIB, 0, registered),
                 CCMR_ERROR_WRONG_DEVICE);
    cr_assert_eq(sim->calls("cuMemFreeAsync"), 0u);
    deallocate(ptr, MIB, stream);
    cr_assert_eq(ccmr_stream_destroy(registered), CCMR_SUCCESS);
}

/* A free that waits for nothing goes to a stream that is empty. */
Test(device_pool, ready_frees_elsewhere)
{
    void *ptr = allocate(MIB, stream);

    cr_assert_eq(sim->set_mode(CCMR_SIM_LATE), 0);
    cr_assert_eq(
        api.cuMemsetD8Async((CUdeviceptr)(uintptr_t)ptr, 1, MIB, stream),
        CUDA_SUCCESS);
    cr_assert_eq(api.cuStreamSynchronize(stream), CUDA_SUCCESS);
    cr_assert_eq(sim->stall(stream), 0);
    cr_assert_eq(sim->forget_calls(), 0);
    deallocate(ptr, MIB, CCMR_STREAM_READY);
    cr_assert_eq(sim->pending(stream), 0u);
    cr_assert_eq(sim->calls("cuStreamSynchronize"), 0u);
    cr_assert_eq(sim->calls("cuMemFreeAsync"), 1u);
    cr_assert_eq(attribute(CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0u);
    cr_assert_eq(sim->release(stream), 0);
}

/* H6 */
Test(device_pool, screens_sizes)
{
    ccmr_device_info info = {.size = sizeof(info)};
    void *ptr;

    cr_assert_eq(ccmr_device_describe(1, &info), CCMR_SUCCESS);
    cr_assert_eq(sim->forget_calls(), 0);
    cr_assert_eq(
        ccmr_resource_allocate(pool, info.total_bytes + 1, 0, stream, &ptr),
        CCMR_ERROR_OUT_OF_DEVICE_MEMORY);
    cr_assert_eq(sim->calls("cuMemAllocFromPoolAsync"), 0u);
    cr_assert_eq(sim->calls("cuStreamSynchronize"), 0u);
    cr_assert_eq(ccmr_last_error()->requested, info.total_bytes + 1);
    cr_assert_eq(ccmr_last_error()->limit, info.total_bytes);
    cr_assert_eq(ccmr_last_error()->live, 0u);
    cr_assert_eq(ccmr_last_error()->reserved, 0u);
    cr_assert_eq(ccmr_last_error()->device, 1);
    cr_assert_str_eq(ccmr_last_error()->resource, "device_pool");
}

/* I5: one wait, one more attempt, no third. */
Test(device_pool, tries_once_more_when_full)
{
    void *ptr;

    cr_assert_eq(
        sim->fail("cuMemAllocFromPoolAsync", 1, CUDA_ERROR_OUT_OF_MEMORY), 0);
    cr_assert_eq(sim->forget_calls(), 0);
    ptr = allocate(MIB, stream);
    cr_assert_eq(sim->calls("cuMemAllocFromPoolAsync"), 2u);
    cr_assert_eq(sim->calls("cuStreamSynchronize"), 1u);

    cr_assert_eq(
        sim->fail("cuMemAllocFromPoolAsync", 1, CUDA_ERROR_OUT_OF_MEMORY), 0);
    cr_assert_eq(
        sim->fail("cuMemAllocFromPoolAsync", 2, CUDA_ERROR_OUT_OF_MEMORY), 0);
    cr_assert_eq(sim->forget_calls(), 0);
    cr_assert_eq(
        ccmr_resource_allocate(pool, 3 * MIB, 0, CCMR_STREAM_LEGACY, &ptr),
        CCMR_ERROR_OUT_OF_DEVICE_MEMORY);
    cr_assert_eq(sim->calls("cuMemAllocFromPoolAsync"), 2u);
    cr_assert_eq(sim->calls("cuStreamSynchronize"), 1u);
    cr_assert_eq(ccmr_last_error()->requested, 3 * MIB);
    cr_assert_eq(ccmr_last_error()->live, MIB);
    cr_assert_geq(ccmr_last_error()->reserved, MIB);
    cr_assert_str_eq(ccmr_last_error()->driver_call,
                     "cuMemAllocFromPoolAsync");
    deallocate(ptr, MIB, stream);
}

/* The same by the device's own memory, with a free that has not run. */
Test(device_pool, gets_what_a_wait_sets_free)
{
    void *ptr;

    cr_assert_eq(sim->set_memory(1, 256 * MIB), 0);
    cr_assert_eq(sim->set_mode(CCMR_SIM_LATE), 0);
    ptr = allocate(128 * MIB, stream);
    cr_assert_eq(
        api.cuMemsetD8Async((CUdeviceptr)(uintptr_t)ptr, 1, MIB, stream),
        CUDA_SUCCESS);
    deallocate(ptr, 128 * MIB, stream);
    ptr = allocate(192 * MIB, stream);
    deallocate(ptr, 192 * MIB, stream);
    cr_assert_eq(ccmr_resource_allocate(pool, 320 * MIB, 0, stream, &ptr),
                 CCMR_ERROR_OUT_OF_DEVICE_MEMORY);
}

/* A driver that wants a context for a real stream gets it. */
Test(device_pool, enters_the_context_at_need)
{
    void *ptr;

    cr_assert_eq(
        sim->fail("cuMemAllocFromPoolAsync", 1, CUDA_ERROR_INVALID_CONTEXT),
        0);
    ptr = allocate(MIB, stream);
    cr_assert_null(leaf_current());
    cr_assert_eq(sim->fail("cuMemFreeAsync", 1, CUDA_ERROR_INVALID_CONTEXT),
                 0);
    deallocate(ptr, MIB, stream);
    cr_assert_null(leaf_current());
}

Test(device_pool, refuses_addresses_that_cannot_be)
{
    ccmr_stats stats = {.size = sizeof(stats)};
    char *block = allocate(MIB, stream);

    cr_assert_eq(sim->forget_calls(), 0);
    cr_assert_eq(ccmr_resource_deallocate(pool, block + 4, MIB, 0, stream),
                 CCMR_ERROR_INVALID_POINTER);
    cr_assert_eq(
        ccmr_resource_deallocate(pool, block + 4, MIB, 0, CCMR_STREAM_READY),
        CCMR_ERROR_INVALID_POINTER);
    cr_assert_eq(sim->calls(NULL), 0u);
    cr_assert_eq(ccmr_resource_deallocate(pool, block + 512, MIB, 0, stream),
                 CCMR_ERROR_INVALID_POINTER);
    cr_assert_str_eq(ccmr_last_error()->driver_call, "cuMemFreeAsync");
    cr_assert_eq(ccmr_resource_deallocate(pool, block + 512, MIB, 0,
                                          CCMR_STREAM_LEGACY),
                 CCMR_ERROR_INVALID_POINTER);
    cr_assert_eq(ccmr_resource_stats(pool, &stats), CCMR_SUCCESS);
    cr_assert_eq(stats.live_bytes, MIB);
    deallocate(block, MIB, stream);
    cr_assert_eq(ccmr_resource_deallocate(pool, block, MIB, 0, stream),
                 CCMR_ERROR_INVALID_POINTER);
}

/* D1, D2: a capture in global mode, on whatever stream, is left as it is. */
Test(device_pool, leaves_captures_alone)
{
    ccmr_trim_result result = {.size = sizeof(result)};
    ccmr_stats stats = {.size = sizeof(stats)};
    ccmr_stream capturing = leaf_stream(1);
    ccmr_resource *another;
    CUgraph graph = NULL;
    void *before = allocate(MIB, stream);
    void *ready = allocate(MIB, stream);
    void *ptr;

    cr_assert_eq(
        api.cuStreamBeginCapture(capturing, CU_STREAM_CAPTURE_MODE_GLOBAL),
        CUDA_SUCCESS);
    cr_assert_eq(ccmr_resource_allocate(pool, MIB, 0, capturing, &ptr),
                 CCMR_ERROR_CAPTURING);
    cr_assert_eq(ccmr_resource_deallocate(pool, before, MIB, 0, capturing),
                 CCMR_ERROR_CAPTURING);
    ptr = allocate(MIB, stream);
    deallocate(ptr, MIB, stream);
    ptr = allocate(MIB, CCMR_STREAM_PER_THREAD);
    deallocate(ptr, MIB, CCMR_STREAM_PER_THREAD);
    deallocate(before, MIB, stream);
    deallocate(ready, MIB, CCMR_STREAM_READY);
    cr_assert_eq(
        sim->fail("cuMemAllocFromPoolAsync", 1, CUDA_ERROR_OUT_OF_MEMORY), 0);
    ptr = allocate(MIB, stream);
    deallocate(ptr, MIB, stream);
    cr_assert_eq(ccmr_resource_stats(pool, &stats), CCMR_SUCCESS);
    cr_assert_eq(ccmr_resource_trim(pool, 0, &result), CCMR_SUCCESS);
    cr_assert_eq(ccmr_stack_create(
                     "device_pool device=1 own=yes initial=32MiB", &another),
                 CCMR_SUCCESS, "%s", ccmr_last_error()->message);
    ccmr_resource_release(another);
    cr_assert_eq(ccmr_stack_create("device_pool device=0", &another),
                 CCMR_SUCCESS);
    ccmr_resource_release(another);
    cr_assert_eq(leaf_mode(), CU_STREAM_CAPTURE_MODE_GLOBAL);

    cr_assert_eq(api.cuStreamEndCapture(capturing, &graph), CUDA_SUCCESS);
    cr_assert_eq(api.cuGraphDestroy(graph), CUDA_SUCCESS);
}

Test(device_pool, counts)
{
    ccmr_stats stats = {.size = sizeof(stats)};
    void *first = allocate(MIB + 1, stream);
    void *second = allocate(3, stream);

    deallocate(second, 3, stream);
    cr_assert_eq(ccmr_resource_stats(pool, &stats), CCMR_SUCCESS);
    cr_assert_eq(stats.live_bytes, MIB + 1);
    cr_assert_eq(stats.live_blocks, 1u);
    cr_assert_eq(stats.allocations, 2u);
    cr_assert_eq(stats.reserved_bytes,
                 attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT));
    cr_assert_geq(stats.reserved_bytes, MIB + 1);
    cr_assert_eq(stats.peak_reserved_bytes,
                 attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH));
    cr_assert_geq(stats.peak_live_bytes, MIB + 4);
    cr_assert_eq(stats.exact & CCMR_STAT_RESERVED_BYTES,
                 CCMR_STAT_RESERVED_BYTES);
    cr_assert_eq(stats.exact & CCMR_STAT_PEAK_LIVE_BYTES, 0u);
    deallocate(first, MIB + 1, stream);
    cr_assert_eq(sim->fail("cuMemPoolGetAttribute", 1, CUDA_ERROR_UNKNOWN), 0);
    cr_assert_eq(ccmr_resource_stats(pool, &stats), CCMR_ERROR_DRIVER);
}

Test(device_pool, trims)
{
    ccmr_trim_result result = {.size = sizeof(result)};
    void *first = allocate(64 * MIB, stream);
    void *second = allocate(64 * MIB, stream);
    size_t reserved = attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);

    cr_assert_eq(reserved, 128 * MIB);
    deallocate(second, 64 * MIB, stream);
    cr_assert_eq(api.cuStreamSynchronize(stream), CUDA_SUCCESS);
    cr_assert_eq(ccmr_resource_trim(pool, 96 * MIB, &result), CCMR_SUCCESS);
    cr_assert_eq(result.released_bytes, 32 * MIB);
    cr_assert_eq(result.pending_bytes, 0u);
    cr_assert_eq(ccmr_resource_trim(pool, 0, &result), CCMR_SUCCESS);
    cr_assert_eq(result.released_bytes, 32 * MIB);
    cr_assert_eq(attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 64 * MIB);

    /* A free that has not run is pending. */
    cr_assert_eq(sim->set_mode(CCMR_SIM_LATE), 0);
    cr_assert_eq(sim->stall(stream), 0);
    cr_assert_eq(
        api.cuMemsetD8Async((CUdeviceptr)(uintptr_t)first, 1, MIB, stream),
        CUDA_SUCCESS);
    deallocate(first, 64 * MIB, stream);
    cr_assert_eq(ccmr_resource_trim(pool, 0, &result), CCMR_SUCCESS);
    cr_assert_eq(result.released_bytes, 0u);
    cr_assert_eq(result.pending_bytes, 64 * MIB);
    cr_assert_eq(sim->release(stream), 0);
    cr_assert_eq(api.cuStreamSynchronize(stream), CUDA_SUCCESS);
    cr_assert_eq(ccmr_resource_trim(pool, 0, &result), CCMR_SUCCESS);
    cr_assert_eq(result.released_bytes, 64 * MIB);
    cr_assert_eq(result.pending_bytes, 0u);
}

static ccmr_status once(void *context)
{
    ccmr_status status;
    ccmr_status freed;
    void *ptr;

    status = ccmr_resource_allocate(pool, MIB, 0, context, &ptr);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    freed = ccmr_resource_deallocate(pool, ptr, MIB, 0, context);
    if (freed != CCMR_SUCCESS) {
        deallocate(ptr, MIB, context);
    }
    return freed;
}

Test(device_pool, survives_failing_calls)
{
    leaf_fail_each(once, stream, CUDA_ERROR_UNKNOWN);
    leaf_fail_each(once, stream, CUDA_ERROR_OUT_OF_MEMORY);
    leaf_fail_each(once, CCMR_STREAM_LEGACY, CUDA_ERROR_UNKNOWN);
    leaf_fail_each(once, CCMR_STREAM_PER_THREAD, CUDA_ERROR_INVALID_CONTEXT);
}
