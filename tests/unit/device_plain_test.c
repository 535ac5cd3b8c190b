/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_plain on the simulated driver.
 */
#include "tests/unit/leaf.h"

static const ccmr_sim_table *sim;
static ccmr_resource *plain; /* of device 1 */
static ccmr_stream stream;   /* of device 1 */

static void start(void)
{
    sim = leaf_start();
    stream = leaf_stream(1);
    cr_assert_eq(ccmr_device_plain_create(1, &plain), CCMR_SUCCESS);
}

static void end(void)
{
    ccmr_resource_release(plain);
    cr_assert_eq(leaf_census().plain_blocks, 0u);
    leaf_end();
}

TestSuite(device_plain, .init = start, .fini = end);

/* Index of the first record of a call in the log, from `from`; -1: none. */
static long find_call(const char *call, size_t from)
{
    ccmr_sim_record record;
    size_t i;

    for (i = from; i < sim->log_count(); i++) {
        cr_assert_eq(sim->log_read(i, &record), 0);
        if (strcmp(record.call, call) == 0) {
            return (long)i;
        }
    }
    return -1;
}

/* E1: acts on its own device whatever is current, and changes nothing. */
Test(device_plain, acts_on_its_device)
{
    CUcontext zero = leaf_context(0);
    void *ptr;

    cr_assert_eq(
        ccmr_resource_allocate(plain, 1000, 0, CCMR_STREAM_LEGACY, &ptr),
        CCMR_SUCCESS, "%s", ccmr_last_error()->message);
    cr_assert_null(leaf_current());
    cr_assert_eq(api.cuCtxSetCurrent(zero), CUDA_SUCCESS);
    cr_assert_eq(
        ccmr_resource_deallocate(plain, ptr, 1000, 0, CCMR_STREAM_PER_THREAD),
        CCMR_SUCCESS);
    cr_assert_eq(leaf_current(), zero);
    cr_assert_eq(ccmr_resource_allocate(plain, 1, 1, stream, &ptr),
                 CCMR_SUCCESS);
    cr_assert_eq((uintptr_t)ptr % 256, 0u);
    cr_assert_eq(ccmr_resource_deallocate(plain, ptr, 1, 1, stream),
                 CCMR_SUCCESS);
    cr_assert_eq(leaf_current(), zero);
}

/* A7: wait first, then free. */
Test(device_plain, waits_before_it_frees)
{
    ccmr_sim_record record;
    long waited;
    long freed;
    void *ptr;

    cr_assert_eq(ccmr_resource_allocate(plain, MIB, 0, stream, &ptr),
                 CCMR_SUCCESS);
    cr_assert_eq(sim->log(100), 0);
    cr_assert_eq(ccmr_resource_deallocate(plain, ptr, MIB, 0, stream),
                 CCMR_SUCCESS);
    waited = find_call("cuStreamSynchronize", 0);
    freed = find_call("cuMemFree", 0);
    cr_assert_geq(waited, 0);
    cr_assert_gt(freed, waited);
    cr_assert_eq(sim->log_read((size_t)waited, &record), 0);
    cr_assert_eq(record.stream, (void *)stream);
    cr_assert_eq(sim->log_read((size_t)freed, &record), 0);
    cr_assert_eq(record.object, (uint64_t)(uintptr_t)ptr);
    cr_assert_eq(sim->log(0), 0);
}

Test(device_plain, ready_waits_for_nothing)
{
    void *ptr;

    cr_assert_eq(ccmr_resource_allocate(plain, MIB, 0, stream, &ptr),
                 CCMR_SUCCESS);
    cr_assert_eq(sim->forget_calls(), 0);
    cr_assert_eq(
        ccmr_resource_deallocate(plain, ptr, MIB, 0, CCMR_STREAM_READY),
        CCMR_SUCCESS);
    cr_assert_eq(sim->calls("cuStreamSynchronize"), 0u);
    cr_assert_eq(sim->calls("cuStreamIsCapturing"), 0u);
    cr_assert_eq(sim->calls("cuMemFree"), 1u);
}

/* H6: what the device does not have is refused before the driver is asked. */
Test(device_plain, screens_sizes)
{
    ccmr_device_info info = {.size = sizeof(info)};
    void *ptr;

    cr_assert_eq(ccmr_device_describe(1, &info), CCMR_SUCCESS);
    cr_assert_eq(sim->forget_calls(), 0);
    cr_assert_eq(
        ccmr_resource_allocate(plain, info.total_bytes + 1, 0, stream, &ptr),
        CCMR_ERROR_OUT_OF_DEVICE_MEMORY);
    cr_assert_eq(sim->calls(NULL), 0u);
    cr_assert_eq(ccmr_last_error()->requested, info.total_bytes + 1);
    cr_assert_eq(ccmr_last_error()->limit, info.total_bytes);
    cr_assert_eq(ccmr_last_error()->device, 1);
    cr_assert_str_eq(ccmr_last_error()->resource, "device_plain");
}

Test(device_plain, tells_numbers_when_full)
{
    ccmr_device_info info = {.size = sizeof(info)};
    void *first;
    void *second;

    cr_assert_eq(sim->set_memory(1, 64 * MIB), 0);
    cr_assert_eq(ccmr_device_describe(1, &info), CCMR_SUCCESS);
    cr_assert_eq(ccmr_resource_allocate(plain, 40 * MIB, 0, stream, &first),
                 CCMR_SUCCESS);
    cr_assert_eq(ccmr_resource_allocate(plain, 40 * MIB, 0, stream, &second),
                 CCMR_ERROR_OUT_OF_DEVICE_MEMORY);
    cr_assert_eq(ccmr_last_error()->requested, 40 * MIB);
    cr_assert_eq(ccmr_last_error()->driver_result,
                 (int)CUDA_ERROR_OUT_OF_MEMORY);
    cr_assert_str_eq(ccmr_last_error()->driver_call, "cuMemAlloc");
    cr_assert_eq(ccmr_resource_deallocate(plain, first, 40 * MIB, 0, stream),
                 CCMR_SUCCESS);
    cr_assert_eq(ccmr_resource_allocate(plain, 40 * MIB, 0, stream, &second),
                 CCMR_SUCCESS);
    cr_assert_eq(ccmr_resource_deallocate(plain, second, 40 * MIB, 0, stream),
                 CCMR_SUCCESS);
}

/* What is refused waits for nothing and leaves the block live. */
Test(device_plain, refuses_without_waiting)
{
    ccmr_stream other = leaf_stream(0);
    CUgraph graph = NULL;
    char *block;
    void *ptr;

    cr_assert_eq(ccmr_resource_allocate(plain, MIB, 0, stream, &ptr),
                 CCMR_SUCCESS);
    block = ptr;
    cr_assert_eq(sim->forget_calls(), 0);
    cr_assert_eq(ccmr_resource_deallocate(plain, block + 8, MIB, 0, stream),
                 CCMR_ERROR_INVALID_POINTER);
    cr_assert_eq(ccmr_resource_deallocate(plain, block, MIB, 0, other),
                 CCMR_ERROR_WRONG_DEVICE);
    cr_assert_eq(
        api.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL),
        CUDA_SUCCESS);
    cr_assert_eq(ccmr_resource_deallocate(plain, block, MIB, 0, stream),
                 CCMR_ERROR_CAPTURING);
    cr_assert_eq(ccmr_resource_allocate(plain, MIB, 0, stream, &ptr),
                 CCMR_ERROR_CAPTURING);
    cr_assert_eq(sim->calls("cuStreamSynchronize"), 0u);
    cr_assert_eq(sim->calls("cuMemFree"), 0u);

    /* Another stream is served, and the capture is as it was. */
    cr_assert_eq(
        ccmr_resource_deallocate(plain, block, MIB, 0, leaf_stream(1)),
        CCMR_SUCCESS, "%s", ccmr_last_error()->message);
    cr_assert_eq(api.cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    cr_assert_eq(api.cuGraphDestroy(graph), CUDA_SUCCESS);
}

Test(device_plain, refused_free_leaves_the_block)
{
    ccmr_stats stats = {.size = sizeof(stats)};
    char *block;
    void *ptr;

    cr_assert_eq(ccmr_resource_allocate(plain, MIB, 0, stream, &ptr),
                 CCMR_SUCCESS);
    block = ptr;
    cr_assert_eq(ccmr_resource_deallocate(plain, block + 256, MIB, 0, stream),
                 CCMR_ERROR_INVALID_POINTER);
    cr_assert_str_eq(ccmr_last_error()->driver_call, "cuMemFree");
    cr_assert_eq(sim->fail("cuMemFree", 1, CUDA_ERROR_NOT_PERMITTED), 0);
    cr_assert_eq(ccmr_resource_deallocate(plain, block, MIB, 0, stream),
                 CCMR_ERROR_NOT_PERMITTED);
    cr_assert_eq(ccmr_resource_stats(plain, &stats), CCMR_SUCCESS);
    cr_assert_eq(stats.live_bytes, MIB);
    cr_assert_eq(stats.reserved_bytes, MIB);
    cr_assert_eq(ccmr_resource_deallocate(plain, block, MIB, 0, stream),
                 CCMR_SUCCESS);
}

static ccmr_status once(void *context)
{
    ccmr_status status;
    ccmr_status freed;
    void *ptr;

    status = ccmr_resource_allocate(plain, MIB, 0, context, &ptr);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    freed = ccmr_resource_deallocate(plain, ptr, MIB, 0, context);
    if (freed != CCMR_SUCCESS) {
        cr_assert_eq(ccmr_resource_deallocate(plain, ptr, MIB, 0, context),
                     CCMR_SUCCESS);
    }
    return freed;
}

Test(device_plain, survives_failing_calls)
{
    leaf_fail_each(once, stream, CUDA_ERROR_UNKNOWN);
    leaf_fail_each(once, CCMR_STREAM_PER_THREAD, CUDA_ERROR_OUT_OF_MEMORY);
}

Test(device_plain, describes_itself)
{
    ccmr_properties properties = {.size = sizeof(properties)};

    cr_assert_eq(ccmr_resource_describe(plain, &properties), CCMR_SUCCESS);
    cr_assert_str_eq(properties.name, "device_plain");
    cr_assert_eq(properties.device, 1);
    cr_assert_eq(properties.device_accessible, 1);
    cr_assert_eq(properties.host_accessible, 0);
    cr_assert_eq(properties.max_alignment, 256u);
    cr_assert_eq(properties.free_may_block, 1);
    cr_assert_eq(properties.free_stream, CCMR_FREE_SYNCHRONIZES);
    cr_assert_eq(properties.capture, CCMR_CAPTURE_REFUSED);
}

Test(device_plain, is_a_kind)
{
    ccmr_resource *resource;

    cr_assert_eq(ccmr_stack_create("device_plain device=1", &resource),
                 CCMR_SUCCESS);
    cr_assert_str_eq(leaf_print(resource), "device_plain device=1");
    ccmr_resource_release(resource);
    /* Without an ordinal it is the current context's device, or else 0. */
    cr_assert_eq(ccmr_stack_create("device_plain", &resource), CCMR_SUCCESS);
    cr_assert_str_eq(leaf_option(resource, "device"), "0");
    ccmr_resource_release(resource);
    cr_assert_eq(api.cuCtxSetCurrent(leaf_context(1)), CUDA_SUCCESS);
    cr_assert_eq(ccmr_stack_create("device_plain", &resource), CCMR_SUCCESS);
    cr_assert_str_eq(leaf_option(resource, "device"), "1");
    ccmr_resource_release(resource);

    cr_assert_eq(ccmr_stack_create("device_plain device=2", &resource),
                 CCMR_ERROR_NO_DEVICE);
    cr_assert_eq(ccmr_stack_create("device_plain device=-1", &resource),
                 CCMR_ERROR_NO_DEVICE);
    cr_assert_eq(ccmr_device_plain_create(LEAF_DEVICES, &resource),
                 CCMR_ERROR_NO_DEVICE);
    cr_assert_eq(ccmr_device_plain_create(0, NULL),
                 CCMR_ERROR_INVALID_ARGUMENT);
}
