/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host resource, in a process that has no driver at all.
 */
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cucoremr/cucoremr.h>

static ccmr_resource *host;

static void start(void)
{
    cr_assert_eq(setenv("CUCOREMR_DRIVER", "/nonexistent/driver.so", 1), 0);
    cr_assert_eq(ccmr_host_create(&host), CCMR_SUCCESS);
}

static void end(void)
{
    ccmr_resource_release(host);
}

TestSuite(host, .init = start, .fini = end);

Test(host, needs_no_driver)
{
    void *ptr;

    cr_assert_eq(
        ccmr_resource_allocate(host, 100, 0, CCMR_STREAM_PER_THREAD, &ptr),
        CCMR_SUCCESS);
    memset(ptr, 1, 100);
    cr_assert_eq(
        ccmr_resource_deallocate(host, ptr, 100, 0, CCMR_STREAM_READY),
        CCMR_SUCCESS);
    cr_assert_eq(ccmr_init(NULL), CCMR_ERROR_DRIVER_NOT_FOUND);
}

Test(host, aligns)
{
    size_t alignment;
    void *ptr;

    for (alignment = 1; alignment <= (size_t)1 << 30; alignment *= 2) {
        cr_assert_eq(ccmr_resource_allocate(host, 3, alignment,
                                            CCMR_STREAM_LEGACY, &ptr),
                     CCMR_SUCCESS, "%zu", alignment);
        cr_assert_eq((uintptr_t)ptr % alignment, 0u);
        memset(ptr, 1, 3);
        cr_assert_eq(ccmr_resource_deallocate(host, ptr, 3, alignment,
                                              CCMR_STREAM_LEGACY),
                     CCMR_SUCCESS);
    }
    cr_assert_eq(
        ccmr_resource_allocate(host, 3, alignment, CCMR_STREAM_LEGACY, &ptr),
        CCMR_ERROR_INVALID_ALIGNMENT);
}

/* H1: what cannot be is refused, as host memory, and counts nothing. */
Test(host, refuses_huge_sizes)
{
    const size_t sizes[] = {(size_t)PTRDIFF_MAX, (size_t)PTRDIFF_MAX - 255,
                            (size_t)1 << 62};
    ccmr_stats stats = {.size = sizeof(stats)};
    void *ptr = &stats;
    size_t i;

    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        cr_assert_eq(ccmr_resource_allocate(host, sizes[i], 0,
                                            CCMR_STREAM_LEGACY, &ptr),
                     CCMR_ERROR_OUT_OF_HOST_MEMORY);
        cr_assert_eq(ccmr_last_error()->requested, sizes[i]);
        cr_assert_str_eq(ccmr_last_error()->resource, "host");
        cr_assert_eq(ccmr_resource_allocate(host, sizes[i], 1,
                                            CCMR_STREAM_LEGACY, &ptr),
                     CCMR_ERROR_OUT_OF_HOST_MEMORY);
    }
    cr_assert_eq(ptr, (void *)&stats);
    cr_assert_eq(ccmr_resource_stats(host, &stats), CCMR_SUCCESS);
    cr_assert_eq(stats.live_bytes, 0u);
    cr_assert_eq(stats.allocations, 0u);
    cr_assert_eq(stats.failures, 6u);
}

Test(host, refuses_addresses_that_cannot_be)
{
    char *block;
    void *ptr;

    cr_assert_eq(
        ccmr_resource_allocate(host, 64, 64, CCMR_STREAM_LEGACY, &ptr),
        CCMR_SUCCESS);
    block = ptr;
    cr_assert_eq(
        ccmr_resource_deallocate(host, block + 8, 64, 64, CCMR_STREAM_LEGACY),
        CCMR_ERROR_INVALID_POINTER);
    cr_assert_eq(
        ccmr_resource_deallocate(host, block, 64, 64, CCMR_STREAM_LEGACY),
        CCMR_SUCCESS);
}

Test(host, describes_itself)
{
    ccmr_properties properties = {.size = sizeof(properties)};
    ccmr_stats stats = {.size = sizeof(stats)};
    void *ptr;

    cr_assert_eq(ccmr_resource_describe(host, &properties), CCMR_SUCCESS);
    cr_assert_str_eq(properties.name, "host");
    cr_assert_eq(properties.device, -1);
    cr_assert_eq(properties.host_accessible, 1);
    cr_assert_eq(properties.device_accessible, 0);
    cr_assert_eq(properties.free_may_block, 0);
    cr_assert_eq(properties.free_stream, CCMR_FREE_AT_ONCE);
    cr_assert_eq(properties.capture, CCMR_CAPTURE_IRRELEVANT);

    cr_assert_eq(
        ccmr_resource_allocate(host, 64, 64, CCMR_STREAM_LEGACY, &ptr),
        CCMR_SUCCESS);
    cr_assert_eq(ccmr_resource_stats(host, &stats), CCMR_SUCCESS);
    cr_assert_eq(stats.reserved_bytes, 64u);
    cr_assert_eq(stats.pending_bytes, 0u);
    cr_assert_eq(
        ccmr_resource_deallocate(host, ptr, 64, 64, CCMR_STREAM_LEGACY),
        CCMR_SUCCESS);
}

Test(host, is_a_kind)
{
    ccmr_resource *resource;
    char text[64];

    cr_assert_eq(ccmr_stack_create("host", &resource), CCMR_SUCCESS);
    cr_assert_eq(ccmr_stack_print(resource, text, sizeof(text), NULL),
                 CCMR_SUCCESS);
    cr_assert_str_eq(text, "host");
    cr_assert_eq(
        ccmr_resource_option_get(resource, "device", text, sizeof(text), NULL),
        CCMR_ERROR_UNKNOWN_NAME);
    ccmr_resource_release(resource);
    cr_assert_eq(ccmr_host_create(NULL), CCMR_ERROR_INVALID_ARGUMENT);
}
