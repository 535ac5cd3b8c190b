/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A caller that is compiled for per-thread default streams: its null stream
 * is the calling thread's, whatever the library was compiled for. Field case
 * C1.
 */
#define CUDA_API_PER_THREAD_DEFAULT_STREAM 1

#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

#include <cucoremr/cucoremr.h>

#include "tests/support/puppet.h"

Test(per_thread, null_is_the_thread_s_stream)
{
    ccmr_buffer_properties p = {.size = sizeof(p)};
    ccmr_buffer *buffer = NULL;
    ccmr_resource *resource;
    void *ptr = NULL;
    puppet below;

    puppet_init(&below);
    resource = puppet_resource(&below);
    cr_assert_eq(ccmr_resource_allocate(resource, 100, 0, NULL, &ptr),
                 CCMR_SUCCESS);
    cr_assert_eq(below.last_stream, CCMR_STREAM_PER_THREAD);
    cr_assert_eq(ccmr_resource_deallocate(resource, ptr, 100, 0, NULL),
                 CCMR_SUCCESS);
    cr_assert_eq(below.last_stream, CCMR_STREAM_PER_THREAD);
    cr_assert_eq(ccmr_buffer_create(resource, 100, NULL, NULL, &buffer),
                 CCMR_SUCCESS);
    cr_assert_eq(ccmr_buffer_describe(buffer, &p), CCMR_SUCCESS);
    cr_assert_eq(p.stream, CCMR_STREAM_PER_THREAD);
    cr_assert_eq(ccmr_buffer_close(buffer, CCMR_STREAM_UNSET), CCMR_SUCCESS);
    cr_assert_eq(below.last_stream, CCMR_STREAM_PER_THREAD);
    cr_assert_eq(ccmr_buffer_destroy(buffer), CCMR_SUCCESS);
    ccmr_resource_release(resource);
    cr_assert_eq(puppet_clear(&below), 1);
}

/* Every other stream is what it is. */
Test(per_thread, others_are_passed_on)
{
    ccmr_stream stream = (ccmr_stream)(uintptr_t)0x1230;
    ccmr_resource *resource;
    void *ptr = NULL;
    puppet below;

    puppet_init(&below);
    resource = puppet_resource(&below);
    cr_assert_eq(ccmr_resource_allocate(resource, 100, 0, stream, &ptr),
                 CCMR_SUCCESS);
    cr_assert_eq(below.last_stream, stream);
    cr_assert_eq(
        ccmr_resource_deallocate(resource, ptr, 100, 0, CCMR_STREAM_LEGACY),
        CCMR_SUCCESS);
    cr_assert_eq(below.last_stream, CCMR_STREAM_LEGACY);
    cr_assert_eq(
        ccmr_resource_allocate(resource, 100, 0, CCMR_STREAM_UNSET, &ptr),
        CCMR_ERROR_INVALID_STREAM);
    ccmr_resource_release(resource);
    cr_assert_eq(puppet_clear(&below), 1);
}

/* What is not a macro with parentheses, a function pointer, works too. */
Test(per_thread, the_functions_have_addresses)
{
    ccmr_status (*allocate)(ccmr_resource *, size_t, size_t, ccmr_stream,
                            void **) = ccmr_resource_allocate;

    cr_assert_not_null(allocate);
}

static ccmr_stream asked;

static ccmr_status note(void *self, void *ptr, ccmr_stream stream)
{
    (void)self;
    (void)ptr;
    asked = stream;
    return CCMR_SUCCESS;
}

static ccmr_status fit(void *self, size_t bytes, ccmr_stream stream, int *fits)
{
    (void)self;
    (void)bytes;
    asked = stream;
    *fits = 1;
    return CCMR_SUCCESS;
}

static ccmr_status no_allocate(void *self, size_t bytes, size_t alignment,
                               ccmr_stream stream, void **ptr)
{
    (void)self;
    (void)bytes;
    (void)alignment;
    (void)stream;
    (void)ptr;
    return CCMR_ERROR_NOT_SUPPORTED;
}

static ccmr_status no_deallocate(void *self, void *ptr, size_t bytes,
                                 size_t alignment, ccmr_stream stream)
{
    (void)self;
    (void)ptr;
    (void)bytes;
    (void)alignment;
    (void)stream;
    return CCMR_ERROR_NOT_SUPPORTED;
}

static void destroy(void *self)
{
    (void)self;
}

static ccmr_status describe(void *self, ccmr_properties *properties)
{
    (void)self;
    properties->name = "asked";
    properties->max_alignment = 256;
    return CCMR_SUCCESS;
}

Test(per_thread, questions_are_about_it_too)
{
    ccmr_resource_ops ops = {
        .size = sizeof(ops),
        .allocate = no_allocate,
        .deallocate = no_deallocate,
        .destroy = destroy,
        .describe = describe,
        .note_use = note,
        .hold_until_free = note,
        .would_fit = fit,
    };
    ccmr_block block = {sizeof(block), &block, 1, 256, CCMR_STREAM_LEGACY};
    ccmr_resource *resource = NULL;
    ccmr_stream chosen = NULL;
    int fits;

    cr_assert_eq(ccmr_resource_create(&ops, NULL, &resource), CCMR_SUCCESS);
    cr_assert_eq(ccmr_resource_note_use(resource, &block, NULL), CCMR_SUCCESS);
    cr_assert_eq(asked, CCMR_STREAM_PER_THREAD);
    asked = NULL;
    cr_assert_eq(ccmr_resource_hold_until_free(resource, &block, NULL),
                 CCMR_SUCCESS);
    cr_assert_eq(asked, CCMR_STREAM_PER_THREAD);
    asked = NULL;
    cr_assert_eq(ccmr_resource_would_fit(resource, 1, NULL, &fits),
                 CCMR_SUCCESS);
    cr_assert_eq(asked, CCMR_STREAM_PER_THREAD);
    cr_assert_eq(
        ccmr_resource_choose_free_stream(resource, &block, NULL, &chosen),
        CCMR_SUCCESS);
    cr_assert_eq(chosen, CCMR_STREAM_PER_THREAD);
    ccmr_resource_release(resource);
}
