/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The option streams=registered: a stream is asked what it is once, in the
 * first call that is given it, and is registered from then on.
 */
#include "tests/unit/leaf.h"

#include "lib/resource_object.h"
#include "lib/stream.h"
#include "tests/unit/adaptor.h"

#define CALLS_PER_PAIR_GUARDED 6u /* of a driver pool */

static const ccmr_sim_table *sim;
static ccmr_resource *made;
static ccmr_stream stream; /* the driver's, not registered */

static void start(void)
{
    sim = leaf_start();
    (void)sim->set_mode(CCMR_SIM_LATE);
    (void)sim->check_order(1);
    stream = leaf_stream(0);
}

static void end(void)
{
    MUST(made == NULL || ccmr_resource_audit(made) == CCMR_SUCCESS);
    ccmr_resource_release(made);
    MUST(sim->hazards() == 0);
    MUST(leaf_census().events == 0);
    leaf_end();
}

TestSuite(streams_option, .init = start, .fini = end);

static void make(const char *text)
{
    GOOD(ccmr_stack_create(text, &made));
}

static void pair(size_t bytes)
{
    void *ptr = take_on(made, bytes, stream);

    GOOD(ccmr_resource_deallocate(made, ptr, bytes, 0, stream));
}

static uint64_t calls_of_pairs(size_t bytes)
{
    int i;

    (void)sim->forget_calls();
    for (i = 0; i < 100; i++) {
        pair(bytes);
    }
    return sim->calls(NULL);
}

Test(streams_option, a_pool_asks_once)
{
    make("pool streams=registered | device_plain");
    cr_assert_str_eq(option_of(made, "streams"), "registered");
    (void)sim->forget_calls();
    pair(1000);
    cr_assert_eq(sim->calls("cuStreamIsCapturing"), 1u);
    cr_assert_eq(sim->calls("cuStreamGetId"), 1u);
    cr_assert_not_null(ccmr__stream_find(stream));
    pair(3 * MIB);
    cr_assert_eq(calls_of_pairs(1000), 0u);
    cr_assert_eq(calls_of_pairs(3 * MIB), 0u);
    GOOD(ccmr_stream_retire(stream));
    cr_assert_null(ccmr__stream_find(stream));
}

/* Without the promise it is asked each time, and is not registered. */
Test(streams_option, any_is_the_default)
{
    make("pool | device_plain");
    cr_assert_str_eq(option_of(made, "streams"), "any");
    pair(1000);
    cr_assert_null(ccmr__stream_find(stream));
    cr_assert_gt(calls_of_pairs(1000), 0u);
}

Test(streams_option, a_driver_pool_asks_once)
{
    make("device_pool streams=registered");
    cr_assert_str_eq(option_of(made, "streams"), "registered");
    pair(1000);
    cr_assert_not_null(ccmr__stream_find(stream));
    cr_assert_eq(calls_of_pairs(1000), 100u * CALLS_PER_PAIR_GUARDED);
    cr_assert_eq(sim->calls("cuStreamIsCapturing"), 0u);
}

Test(streams_option, stream_ordered_asks_once)
{
    make("stream_ordered streams=registered | device_plain");
    cr_assert_str_eq(option_of(made, "streams"), "registered");
    cr_assert_str_eq(option_of(made, "keep"), "0");
    BAD(ccmr_resource_option_set(made, "streams", "any"),
        CCMR_ERROR_NOT_SUPPORTED);
    pair(1000);
    cr_assert_not_null(ccmr__stream_find(stream));
    (void)calls_of_pairs(1000);
    cr_assert_eq(sim->calls("cuStreamIsCapturing"), 0u);
    cr_assert_eq(sim->calls("cuStreamGetId"), 0u);
}

/* What is refused is not registered. */
Test(streams_option, a_refused_stream_is_not_registered)
{
    static const char *const stacks[] = {
        "pool streams=registered | device_plain",
        "device_pool streams=registered",
        "stream_ordered streams=registered | device_plain",
    };
    ccmr_stream far = leaf_stream(1);
    CUgraph graph;
    void *ptr;
    size_t i;

    for (i = 0; i < sizeof(stacks) / sizeof(stacks[0]); i++) {
        make(stacks[i]);
        BAD(ccmr_resource_allocate(made, 1000, 0, far, &ptr),
            CCMR_ERROR_WRONG_DEVICE);
        cr_assert_null(ccmr__stream_find(far));
        cr_assert_eq(
            api.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL),
            CUDA_SUCCESS);
        BAD(ccmr_resource_allocate(made, 1000, 0, stream, &ptr),
            CCMR_ERROR_CAPTURING);
        cr_assert_null(ccmr__stream_find(stream));
        cr_assert_eq(api.cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
        cr_assert_eq(api.cuGraphDestroy(graph), CUDA_SUCCESS);
        ccmr_resource_release(made);
        made = NULL;
    }
}

/* Once it is known, its captures are those that are announced. */
Test(streams_option, captures_are_announced)
{
    void *ptr;

    make("pool streams=registered | device_plain");
    pair(1000);
    GOOD(ccmr_stream_set_capturing(stream, 1));
    BAD(ccmr_resource_allocate(made, 1000, 0, stream, &ptr),
        CCMR_ERROR_CAPTURING);
    GOOD(ccmr_stream_set_capturing(stream, 0));
    pair(1000);
}

/* A stream that is retired and goes, and one with its handle: in order. */
Test(streams_option, retired_streams_come_again)
{
    CUcontext popped;
    CUstream again;
    void *ptr;

    make("pool streams=registered hard=4MiB initial=4MiB | device_plain");
    ptr = take_on(made, 3 * MIB, stream);
    cr_assert_eq(sim->stall(stream), 0);
    cr_assert_eq(
        api.cuMemsetD8Async((CUdeviceptr)(uintptr_t)ptr, 1, 3 * MIB, stream),
        CUDA_SUCCESS);
    GOOD(ccmr_resource_deallocate(made, ptr, 3 * MIB, 0, stream));
    GOOD(ccmr_stream_retire(stream));
    cr_assert_eq(sim->release(stream), 0);
    cr_assert_eq(api.cuStreamDestroy(stream), CUDA_SUCCESS);
    cr_assert_eq(api.cuCtxPushCurrent(leaf_context(0)), CUDA_SUCCESS);
    cr_assert_eq(api.cuStreamCreate(&again, CU_STREAM_NON_BLOCKING),
                 CUDA_SUCCESS);
    cr_assert_eq(api.cuCtxPopCurrent(&popped), CUDA_SUCCESS);
    cr_assert_eq(again, stream, "the handle is another one");
    ptr = take_on(made, 3 * MIB, again);
    cr_assert_eq(
        api.cuMemsetD8Async((CUdeviceptr)(uintptr_t)ptr, 2, 3 * MIB, again),
        CUDA_SUCCESS);
    GOOD(ccmr_resource_deallocate(made, ptr, 3 * MIB, 0, again));
    GOOD(ccmr_stream_retire(again));
}

/* A stream that is retired without having been met is not registered for it;
 * the tokens are asked as ever. */
Test(streams_option, words_and_strangers)
{
    make("pool streams=registered | device_plain");
    GOOD(ccmr_stream_retire(stream));
    cr_assert_null(ccmr__stream_find(stream));
    GOOD(ccmr_resource_deallocate(made, take_on(made, 100, LEGACY), 100, 0,
                                  LEGACY));
    cr_assert_null(ccmr__stream_find(LEGACY));
    GOOD(ccmr_resource_deallocate(made, take_on(made, 100, stream), 100, 0,
                                  CCMR_STREAM_READY));
}
