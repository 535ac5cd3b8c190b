/* SPDX-License-Identifier: Apache-2.0 */
/*
 * legacy_pinned on the simulated driver.
 */
#include "tests/unit/leaf.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

static const ccmr_sim_table *sim;
static ccmr_resource *pinned; /* of device 1 */
static ccmr_stream stream;    /* of device 1 */

static void start(void)
{
    sim = leaf_start();
    stream = leaf_stream(1);
    cr_assert_eq(ccmr_legacy_pinned_create(1, NULL, &pinned), CCMR_SUCCESS);
}

static void end(void)
{
    ccmr_resource_release(pinned);
    cr_assert_eq(leaf_census().pinned_blocks, 0u);
    leaf_end();
}

TestSuite(legacy_pinned, .init = start, .fini = end);

/* What the driver says of a pinned block's flags. */
static unsigned flags_of(void *ptr)
{
    void *library =
        dlopen(getenv("CUCOREMR_SIM_PATH"), RTLD_NOW | RTLD_NOLOAD);
    CUresult (*get)(unsigned *, void *);
    unsigned flags = 0;
    void *symbol;

    cr_assert_not_null(library);
    symbol = dlsym(library, "cuMemHostGetFlags");
    cr_assert_not_null(symbol);
    memcpy(&get, &symbol, sizeof(get));
    cr_assert_eq(get(&flags, ptr), CUDA_SUCCESS);
    (void)dlclose(library);
    return flags;
}

static unsigned made_with(unsigned flags)
{
    ccmr_legacy_pinned_options options = CCMR_LEGACY_PINNED_OPTIONS_INIT;
    ccmr_resource *resource;
    unsigned found;
    void *ptr;

    options.flags = flags;
    cr_assert_eq(ccmr_legacy_pinned_create(1, &options, &resource),
                 CCMR_SUCCESS);
    cr_assert_eq(ccmr_resource_allocate(resource, KIB, 0, stream, &ptr),
                 CCMR_SUCCESS);
    cr_assert_eq(api.cuCtxSetCurrent(leaf_context(1)), CUDA_SUCCESS);
    found = flags_of(ptr);
    cr_assert_eq(api.cuCtxSetCurrent(NULL), CUDA_SUCCESS);
    cr_assert_eq(ccmr_resource_deallocate(resource, ptr, KIB, 0, stream),
                 CCMR_SUCCESS);
    ccmr_resource_release(resource);
    return found;
}

Test(legacy_pinned, passes_flags_on)
{
    /* The driver maps all pinned memory, whether it is asked to or not. */
    const unsigned mapped = CCMR_PINNED_MAPPED;
    const unsigned combined = CCMR_PINNED_WRITE_COMBINED;

    cr_assert_eq(made_with(0) | mapped, mapped);
    cr_assert_eq(made_with(CCMR_PINNED_PORTABLE | mapped),
                 CCMR_PINNED_PORTABLE | mapped);
    cr_assert_eq(made_with(combined) | mapped, mapped | combined);
    cr_assert_eq(made_with(CCMR_PINNED_PORTABLE | mapped | combined),
                 CCMR_PINNED_PORTABLE | mapped | combined);
}

Test(legacy_pinned, refuses_wrong_options)
{
    ccmr_legacy_pinned_options options = CCMR_LEGACY_PINNED_OPTIONS_INIT;
    ccmr_resource *resource;

    options.flags = 0x8u;
    cr_assert_eq(ccmr_legacy_pinned_create(1, &options, &resource),
                 CCMR_ERROR_INVALID_ARGUMENT);
    options.flags = 0;
    options.access = (ccmr_access)2;
    cr_assert_eq(ccmr_legacy_pinned_create(1, &options, &resource),
                 CCMR_ERROR_INVALID_ARGUMENT);
    options.access = CCMR_ACCESS_STREAM;
    options.size = sizeof(size_t);
    cr_assert_eq(ccmr_legacy_pinned_create(1, &options, &resource),
                 CCMR_ERROR_INVALID_STRUCT);
    cr_assert_eq(ccmr_legacy_pinned_create(1, NULL, NULL),
                 CCMR_ERROR_INVALID_ARGUMENT);
    cr_assert_eq(ccmr_legacy_pinned_create(7, NULL, &resource),
                 CCMR_ERROR_NO_DEVICE);
}

/* Small blocks share a page in the driver: a larger alignment is honoured. */
Test(legacy_pinned, aligns)
{
    void *ptrs[64];
    size_t alignment;
    size_t i;

    for (i = 0; i < 64; i++) {
        alignment = (size_t)1 << (i % 13);
        cr_assert_eq(
            ccmr_resource_allocate(pinned, 1 + i, alignment, stream, &ptrs[i]),
            CCMR_SUCCESS, "%s", ccmr_last_error()->message);
        cr_assert_eq((uintptr_t)ptrs[i] % alignment, 0u);
        memset(ptrs[i], (int)i, 1 + i);
    }
    for (i = 0; i < 64; i++) {
        cr_assert_eq(((unsigned char *)ptrs[i])[i], i);
        cr_assert_eq(ccmr_resource_deallocate(pinned, ptrs[i], 1 + i,
                                              (size_t)1 << (i % 13), stream),
                     CCMR_SUCCESS);
    }
    cr_assert_eq(ccmr_resource_allocate(pinned, 1, 8192, stream, &ptrs[0]),
                 CCMR_ERROR_INVALID_ALIGNMENT);
}

/* N1: what is asked for is what is pinned, but for pages. */
Test(legacy_pinned, rounds_to_pages_at_most)
{
    const size_t sizes[] = {MIB + 1, 33 * MIB + 1, 129 * MIB + 12345};
    uint64_t before = leaf_census().pinned_bytes;
    uint64_t taken;
    void *ptr;
    size_t i;

    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        cr_assert_eq(ccmr_resource_allocate(pinned, sizes[i], 0, stream, &ptr),
                     CCMR_SUCCESS);
        taken = leaf_census().pinned_bytes - before;
        cr_assert_geq(taken, sizes[i]);
        cr_assert_lt(taken, sizes[i] + 4096);
        cr_assert_eq(
            ccmr_resource_deallocate(pinned, ptr, sizes[i], 0, stream),
            CCMR_SUCCESS);
    }
}

/* More than the machine has is refused before the driver is asked. */
Test(legacy_pinned, screens_sizes)
{
    void *ptr;

    cr_assert_eq(sim->forget_calls(), 0);
    cr_assert_eq(
        ccmr_resource_allocate(pinned, (size_t)1 << 55, 0, stream, &ptr),
        CCMR_ERROR_OUT_OF_HOST_MEMORY);
    cr_assert_eq(ccmr_resource_allocate(pinned, (size_t)PTRDIFF_MAX, 4096,
                                        stream, &ptr),
                 CCMR_ERROR_OUT_OF_HOST_MEMORY);
    cr_assert_eq(sim->calls(NULL), 0u);
    cr_assert_eq(ccmr_last_error()->requested, (size_t)PTRDIFF_MAX);
    cr_assert_str_eq(ccmr_last_error()->resource, "legacy_pinned");
}

/* The driver's out-of-memory is the host's here. */
Test(legacy_pinned, tells_host_from_device_memory)
{
    void *ptr;

    cr_assert_eq(sim->fail("cuMemHostAlloc", 1, CUDA_ERROR_OUT_OF_MEMORY), 0);
    cr_assert_eq(ccmr_resource_allocate(pinned, KIB, 0, stream, &ptr),
                 CCMR_ERROR_OUT_OF_HOST_MEMORY);
    cr_assert_eq(ccmr_last_error()->requested, KIB);
    cr_assert_str_eq(ccmr_last_error()->driver_call, "cuMemHostAlloc");
    cr_assert_eq(ccmr_last_error()->driver_result,
                 (int)CUDA_ERROR_OUT_OF_MEMORY);
}

/* E8: no context appears on a device that nobody named. */
Test(legacy_pinned, makes_no_context_elsewhere)
{
    unsigned flags;
    int active = 1;
    void *ptr;

    cr_assert_eq(ccmr_resource_allocate(pinned, MIB, 0, stream, &ptr),
                 CCMR_SUCCESS);
    cr_assert_eq(
        ccmr_resource_deallocate(pinned, ptr, MIB, 0, CCMR_STREAM_LEGACY),
        CCMR_SUCCESS);
    cr_assert_eq(api.cuDevicePrimaryCtxGetState(0, &flags, &active),
                 CUDA_SUCCESS);
    cr_assert_eq(active, 0);
    cr_assert_null(leaf_current());
}

/* A free waits for its stream: a copy from the block has run. */
Test(legacy_pinned, comes_back_when_its_work_is_done)
{
    CUcontext context = leaf_context(1);
    unsigned char back = 0;
    CUdeviceptr device;
    void *ptr;

    cr_assert_eq(sim->set_mode(CCMR_SIM_LATE), 0);
    cr_assert_eq(api.cuCtxSetCurrent(context), CUDA_SUCCESS);
    cr_assert_eq(api.cuMemAlloc(&device, 1), CUDA_SUCCESS);
    cr_assert_eq(ccmr_resource_allocate(pinned, KIB, 0, stream, &ptr),
                 CCMR_SUCCESS);
    *(unsigned char *)ptr = 0x5A;
    cr_assert_eq(
        api.cuMemcpyAsync(device, (CUdeviceptr)(uintptr_t)ptr, 1, stream),
        CUDA_SUCCESS);
    cr_assert_gt(sim->pending(stream), 0u);
    cr_assert_eq(ccmr_resource_deallocate(pinned, ptr, KIB, 0, stream),
                 CCMR_SUCCESS);
    cr_assert_eq(sim->pending(stream), 0u);
    memcpy(&back, sim->peek(device, 1), 1);
    cr_assert_eq(back, 0x5A);
    cr_assert_eq(api.cuMemFree(device), CUDA_SUCCESS);
}

/* The block's beginning is the driver's knowledge where it was aligned. */
Test(legacy_pinned, finds_the_beginning)
{
    const size_t bytes = 3 * 4096;
    char *heap = aligned_alloc(4096, 4096);
    char *block;
    void *ptr;

    cr_assert_not_null(heap);
    cr_assert_eq(ccmr_resource_allocate(pinned, bytes, 4096, stream, &ptr),
                 CCMR_SUCCESS);
    block = ptr;
    cr_assert_eq(sim->forget_calls(), 0);
    cr_assert_eq(
        ccmr_resource_deallocate(pinned, block + 4096, bytes, 4096, stream),
        CCMR_ERROR_INVALID_POINTER);
    cr_assert_eq(ccmr_resource_deallocate(pinned, heap, bytes, 4096, stream),
                 CCMR_ERROR_INVALID_POINTER);
    cr_assert_eq(sim->calls("cuStreamSynchronize"), 0u);
    cr_assert_eq(ccmr_resource_deallocate(pinned, block, bytes, 4096, stream),
                 CCMR_SUCCESS);
    cr_assert_eq(ccmr_resource_deallocate(pinned, block, bytes, 4096, stream),
                 CCMR_ERROR_INVALID_POINTER);
    free(heap);
}

Test(legacy_pinned, refused_free_leaves_the_block)
{
    char *block;
    void *ptr;

    cr_assert_eq(ccmr_resource_allocate(pinned, 8 * KIB, 0, stream, &ptr),
                 CCMR_SUCCESS);
    block = ptr;
    cr_assert_eq(
        ccmr_resource_deallocate(pinned, block + 1, 8 * KIB, 0, stream),
        CCMR_ERROR_INVALID_POINTER);
    cr_assert_eq(
        ccmr_resource_deallocate(pinned, block + 4096, 8 * KIB, 0, stream),
        CCMR_ERROR_INVALID_POINTER);
    cr_assert_eq(
        ccmr_resource_deallocate(pinned, block, 8 * KIB, 0, leaf_stream(0)),
        CCMR_ERROR_WRONG_DEVICE);
    cr_assert_eq(ccmr_resource_deallocate(pinned, block, 8 * KIB, 0, stream),
                 CCMR_SUCCESS);
}

static ccmr_status once(void *context)
{
    ccmr_status status;
    ccmr_status freed;
    void *ptr;

    status = ccmr_resource_allocate(pinned, 100, 4096, context, &ptr);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    freed = ccmr_resource_deallocate(pinned, ptr, 100, 4096, context);
    if (freed != CCMR_SUCCESS) {
        cr_assert_eq(ccmr_resource_deallocate(pinned, ptr, 100, 4096, context),
                     CCMR_SUCCESS);
    }
    return freed;
}

Test(legacy_pinned, survives_failing_calls)
{
    leaf_fail_each(once, stream, CUDA_ERROR_UNKNOWN);
    leaf_fail_each(once, CCMR_STREAM_LEGACY, CUDA_ERROR_OUT_OF_MEMORY);
}

Test(legacy_pinned, is_a_kind)
{
    ccmr_properties properties = {.size = sizeof(properties)};
    ccmr_resource *resource;

    cr_assert_eq(ccmr_stack_create("legacy_pinned device=1 access=stream "
                                   "flags=portable+write_combined",
                                   &resource),
                 CCMR_SUCCESS, "%s", ccmr_last_error()->message);
    cr_assert_str_eq(leaf_print(resource),
                     "legacy_pinned device=1 flags=portable+write_combined "
                     "access=stream");
    cr_assert_eq(ccmr_resource_describe(resource, &properties), CCMR_SUCCESS);
    cr_assert_eq(properties.access, CCMR_ACCESS_STREAM);
    cr_assert_eq(properties.host_accessible, 1);
    cr_assert_eq(properties.device_accessible, 1);
    cr_assert_eq(properties.max_alignment, 4096u);
    ccmr_resource_release(resource);

    cr_assert_eq(ccmr_stack_create("legacy_pinned", &resource), CCMR_SUCCESS);
    cr_assert_str_eq(leaf_print(resource), "legacy_pinned device=0");
    cr_assert_str_eq(leaf_option(resource, "flags"), "portable+mapped");
    cr_assert_str_eq(leaf_option(resource, "access"), "host");
    ccmr_resource_release(resource);
    cr_assert_eq(ccmr_stack_create("legacy_pinned flags=none", &resource),
                 CCMR_SUCCESS);
    cr_assert_str_eq(leaf_option(resource, "flags"), "none");
    ccmr_resource_release(resource);
}
