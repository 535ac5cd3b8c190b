/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the unit tests of the leaf resources share: the simulated driver with
 * two devices, streams, and failing each driver call in turn. Criterion runs
 * each test in a process of its own.
 */
#ifndef CCMR_TESTS_UNIT_LEAF_H
#define CCMR_TESTS_UNIT_LEAF_H

#include <criterion/criterion.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cucoremr/cucoremr.h>

#include "tests/support/api.h"

#define LEAF_DEVICES 2

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

/* The simulator before cuInit; the driver is not yet loaded. */
static inline const ccmr_sim_table *leaf_simulator(void)
{
    const ccmr_sim_table *sim = api_simulator();

    cr_assert_eq(sim->set_devices(LEAF_DEVICES), 0);
    return sim;
}

/* The driver is loaded, and both devices have their primary contexts. */
static inline const ccmr_sim_table *leaf_start(void)
{
    const ccmr_sim_table *sim = leaf_simulator();

    cr_assert_eq(ccmr_init(NULL), CCMR_SUCCESS, "%s",
                 ccmr_last_error()->message);
    return sim;
}

/* The driver's objects go, so that what else is left is a leak. */
static inline void leaf_end(void)
{
    (void)simulator->reset(NULL);
}

static inline CUcontext leaf_context(int device)
{
    CUcontext context;

    cr_assert_eq(api.cuDevicePrimaryCtxRetain(&context, device), CUDA_SUCCESS);
    return context;
}

/* A stream of the driver that the library has not heard of. */
static inline ccmr_stream leaf_stream(int device)
{
    CUcontext popped;
    CUstream stream;

    cr_assert_eq(api.cuCtxPushCurrent(leaf_context(device)), CUDA_SUCCESS);
    cr_assert_eq(api.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING),
                 CUDA_SUCCESS);
    cr_assert_eq(api.cuCtxPopCurrent(&popped), CUDA_SUCCESS);
    return stream;
}

static inline CUcontext leaf_current(void)
{
    CUcontext context;

    cr_assert_eq(api.cuCtxGetCurrent(&context), CUDA_SUCCESS);
    return context;
}

/* The calling thread's capture mode; it stays. */
static inline CUstreamCaptureMode leaf_mode(void)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    CUstreamCaptureMode back;

    cr_assert_eq(api.cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
    back = mode;
    cr_assert_eq(api.cuThreadExchangeStreamCaptureMode(&back), CUDA_SUCCESS);
    return mode;
}

static inline ccmr_sim_census leaf_census(void)
{
    ccmr_sim_census census = {.size = sizeof(census)};

    cr_assert_eq(simulator->census(&census), 0);
    return census;
}

/* Text of an option. */
static inline const char *leaf_option(ccmr_resource *resource,
                                      const char *name)
{
    static char text[128];

    cr_assert_eq(
        ccmr_resource_option_get(resource, name, text, sizeof(text), NULL),
        CCMR_SUCCESS, "%s", ccmr_last_error()->message);
    return text;
}

/* The stack as it prints itself. */
static inline const char *leaf_print(ccmr_resource *resource)
{
    static char text[512];

    cr_assert_eq(ccmr_stack_print(resource, text, sizeof(text), NULL),
                 CCMR_SUCCESS, "%s", ccmr_last_error()->message);
    return text;
}

/* A step that may fail; what it made it takes back itself on success. */
typedef ccmr_status leaf_step(void *context);

/*
 * Field cases E3 and J4: let each driver call of a step fail in turn. After
 * each failure the caller's context and capture mode are what they were, and
 * nothing is alive that was not before.
 */
static inline void leaf_fail_each(leaf_step *step, void *context, int result)
{
    CUcontext current = leaf_current();
    ccmr_sim_census before;
    ccmr_sim_census after;
    ccmr_status status;
    uint64_t unmet;
    uint64_t n;

    cr_assert_eq(step(context), CCMR_SUCCESS, "%s",
                 ccmr_last_error()->message);
    before = leaf_census();
    for (n = 1;; n++) {
        cr_assert_lt(n, 200);
        cr_assert_eq(simulator->fail(NULL, n, result), 0);
        status = step(context);
        unmet = simulator->forget_failures();
        cr_assert_eq(leaf_current(), current, "call %d", (int)n);
        cr_assert_eq(leaf_mode(), CU_STREAM_CAPTURE_MODE_GLOBAL, "call %d",
                     (int)n);
        after = leaf_census();
        cr_assert_eq(after.pools, before.pools, "call %d", (int)n);
        cr_assert_eq(after.pool_blocks, before.pool_blocks, "call %d", (int)n);
        cr_assert_eq(after.plain_blocks, before.plain_blocks, "call %d",
                     (int)n);
        cr_assert_eq(after.pinned_blocks, before.pinned_blocks, "call %d",
                     (int)n);
        cr_assert_eq(after.mappings, before.mappings, "call %d", (int)n);
        if (unmet != 0) {
            cr_assert_eq(status, CCMR_SUCCESS);
            return;
        }
    }
}

#endif
