/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers: what a close does, call by call, and what it comes after. Field
 * cases A2, A7, B1, B4, B9, B11.
 */
#include "tests/unit/leaf.h"

#include <stdio.h>

#include "tests/support/puppet.h"

static ccmr_resource *pool;
static ccmr_stream first;    /* registered */
static ccmr_stream second;   /* registered */
static ccmr_stream unlisted; /* the library has not heard of it */

static void start(void)
{
    (void)leaf_start();
    cr_assert_eq(ccmr_stack_create("device_pool", &pool), CCMR_SUCCESS);
    cr_assert_eq(ccmr_stream_create(0, 1, &first), CCMR_SUCCESS);
    cr_assert_eq(ccmr_stream_create(0, 1, &second), CCMR_SUCCESS);
    unlisted = leaf_stream(0);
}

static void end(void)
{
    cr_assert_eq(leaf_census().pool_blocks, 0);
    cr_assert_eq(leaf_census().events, 0);
    ccmr_resource_release(pool);
    leaf_end();
}

TestSuite(buffer, .init = start, .fini = end);

static ccmr_buffer *make(ccmr_stream stream)
{
    ccmr_buffer *buffer = NULL;

    cr_assert_eq(ccmr_buffer_create(pool, 1000, NULL, stream, &buffer),
                 CCMR_SUCCESS, "%s", ccmr_last_error()->message);
    return buffer;
}

/* "cuEventRecord(1) cuMemFreeAsync(2)": the logged calls that order work, with
   the stream as 1 (first), 2 (second), u (unlisted), L, P or '?'. */
static const char *order_of_calls(void)
{
    static const char *const wanted[] = {"cuEventRecord", "cuStreamWaitEvent",
                                         "cuMemFreeAsync",
                                         "cuStreamSynchronize"};
    static char text[512];
    ccmr_sim_record record;
    size_t length = 0;
    size_t i;
    size_t k;

    text[0] = '\0';
    for (i = 0; i < simulator->log_count(); i++) {
        cr_assert_eq(simulator->log_read(i, &record), 0);
        for (k = 0; k < sizeof(wanted) / sizeof(wanted[0]); k++) {
            if (strcmp(record.call, wanted[k]) == 0) {
                char stream = record.stream == first                    ? '1'
                              : record.stream == second                 ? '2'
                              : record.stream == unlisted               ? 'u'
                              : record.stream == CCMR_STREAM_LEGACY     ? 'L'
                              : record.stream == CCMR_STREAM_PER_THREAD ? 'P'
                                                                        : '?';

                length += (size_t)snprintf(
                    text + length, sizeof(text) - length, "%s%s(%c)",
                    length != 0 ? " " : "", wanted[k], stream);
            }
        }
    }
    cr_assert_eq(simulator->log(0), 0);
    return text;
}

static void watch(void)
{
    cr_assert_eq(simulator->log(256), 0);
}

Test(buffer, closes_on_the_recorded_stream)
{
    ccmr_buffer *buffer = make(first);

    watch();
    cr_assert_eq(ccmr_buffer_close(buffer, CCMR_STREAM_UNSET), CCMR_SUCCESS);
    cr_assert_str_eq(order_of_calls(), "cuMemFreeAsync(1)");
    cr_assert_eq(ccmr_buffer_destroy(buffer), CCMR_SUCCESS);
    buffer = make(unlisted);
    watch();
    cr_assert_eq(ccmr_buffer_destroy(buffer), CCMR_SUCCESS);
    cr_assert_str_eq(order_of_calls(), "cuMemFreeAsync(u)");
    buffer = make(NULL);
    watch();
    cr_assert_eq(ccmr_buffer_destroy(buffer), CCMR_SUCCESS);
    cr_assert_str_eq(order_of_calls(), "cuMemFreeAsync(L)");
    buffer = make(CCMR_STREAM_PER_THREAD);
    watch();
    cr_assert_eq(ccmr_buffer_destroy(buffer), CCMR_SUCCESS);
    cr_assert_str_eq(order_of_calls(), "cuMemFreeAsync(P)");
}

/* A2, A7: first the edge, then the free. */
Test(buffer, another_stream_waits_for_a_registered_one)
{
    ccmr_buffer *buffer = make(first);

    watch();
    cr_assert_eq(ccmr_buffer_close(buffer, second), CCMR_SUCCESS);
    cr_assert_str_eq(order_of_calls(), "cuEventRecord(1) cuStreamWaitEvent(2) "
                                       "cuMemFreeAsync(2)");
    cr_assert_eq(ccmr_buffer_destroy(buffer), CCMR_SUCCESS);
    /* Tokens are registered. */
    buffer = make(CCMR_STREAM_LEGACY);
    watch();
    cr_assert_eq(ccmr_buffer_close(buffer, unlisted), CCMR_SUCCESS);
    cr_assert_str_eq(order_of_calls(), "cuEventRecord(L) cuStreamWaitEvent(u) "
                                       "cuMemFreeAsync(u)");
    cr_assert_eq(ccmr_buffer_destroy(buffer), CCMR_SUCCESS);
    buffer = make(first);
    watch();
    cr_assert_eq(ccmr_buffer_close(buffer, NULL), CCMR_SUCCESS);
    cr_assert_str_eq(order_of_calls(), "cuEventRecord(1) cuStreamWaitEvent(L) "
                                       "cuMemFreeAsync(L)");
    cr_assert_eq(ccmr_buffer_destroy(buffer), CCMR_SUCCESS);
}

Test(buffer, no_edge_is_added_without_need)
{
    ccmr_buffer *buffer = make(first);

    watch();
    cr_assert_eq(ccmr_buffer_close(buffer, first), CCMR_SUCCESS);
    cr_assert_str_eq(order_of_calls(), "cuMemFreeAsync(1)");
    cr_assert_eq(ccmr_buffer_destroy(buffer), CCMR_SUCCESS);
    /* The unlisted one may be gone: not touched. */
    buffer = make(unlisted);
    watch();
    cr_assert_eq(ccmr_buffer_close(buffer, second), CCMR_SUCCESS);
    cr_assert_str_eq(order_of_calls(), "cuMemFreeAsync(2)");
    cr_assert_eq(ccmr_buffer_destroy(buffer), CCMR_SUCCESS);
}

/* READY: nothing is waited for, and no recorded stream is touched. */
Test(buffer, ready_waits_for_nothing)
{
    ccmr_buffer *buffer = make(first);

    cr_assert_eq(ccmr_buffer_note_use(buffer, second), CCMR_SUCCESS);
    watch();
    cr_assert_eq(ccmr_buffer_close(buffer, CCMR_STREAM_READY), CCMR_SUCCESS);
    cr_assert_str_eq(order_of_calls(), "cuMemFreeAsync(?)");
    cr_assert_eq(ccmr_buffer_destroy(buffer), CCMR_SUCCESS);
}

/* A recorded stream that was retired is not used; its next owner neither. */
Test(buffer, a_retired_recorded_stream_is_not_used)
{
    ccmr_buffer *buffer = make(first);
    ccmr_stream again = NULL;
    uint64_t before;

    cr_assert_eq(ccmr_stream_destroy(first), CCMR_SUCCESS);
    before = simulator->calls("cuMemFreeAsync");
    cr_assert_eq(ccmr_buffer_close(buffer, CCMR_STREAM_UNSET),
                 CCMR_ERROR_INVALID_STREAM);
    cr_assert_eq(ccmr_stream_create(0, 1, &again), CCMR_SUCCESS);
    cr_assert_eq(again, first, "the simulator recycles handles");
    cr_assert_eq(ccmr_buffer_close(buffer, CCMR_STREAM_UNSET),
                 CCMR_ERROR_INVALID_STREAM);
    cr_assert_eq(simulator->calls("cuMemFreeAsync"), before);
    cr_assert_eq(ccmr_buffer_bytes(buffer), 1000);
    watch();
    cr_assert_eq(ccmr_buffer_close(buffer, second), CCMR_SUCCESS);
    cr_assert_str_eq(order_of_calls(), "cuMemFreeAsync(2)");
    cr_assert_eq(ccmr_buffer_destroy(buffer), CCMR_SUCCESS);
    cr_assert_eq(ccmr_stream_destroy(again), CCMR_SUCCESS);
}

/* B4: the event is recorded when the use is noted. */
Test(buffer, noted_uses_are_waited_for)
{
    ccmr_buffer *buffer = make(first);
    uint64_t events = leaf_census().events;

    watch();
    cr_assert_eq(ccmr_buffer_note_use(buffer, unlisted), CCMR_SUCCESS);
    cr_assert_str_eq(order_of_calls(), "cuEventRecord(u)");
    cr_assert_eq(leaf_census().events, events + 1);
    cr_assert_eq(api.cuStreamDestroy(unlisted), CUDA_SUCCESS);
    watch();
    cr_assert_eq(ccmr_buffer_close(buffer, CCMR_STREAM_UNSET), CCMR_SUCCESS);
    cr_assert_str_eq(order_of_calls(),
                     "cuStreamWaitEvent(1) cuMemFreeAsync(1)");
    cr_assert_eq(leaf_census().events, events);
    cr_assert_eq(ccmr_buffer_destroy(buffer), CCMR_SUCCESS);
}

Test(buffer, a_refused_free_keeps_the_notes)
{
    ccmr_buffer *buffer = make(first);

    cr_assert_eq(ccmr_buffer_note_use(buffer, second), CCMR_SUCCESS);
    cr_assert_eq(simulator->fail("cuMemFreeAsync", 1, CUDA_ERROR_UNKNOWN), 0);
    cr_assert_eq(ccmr_buffer_close(buffer, CCMR_STREAM_UNSET),
                 CCMR_ERROR_DRIVER);
    cr_assert_eq(leaf_census().events, 1);
    watch();
    cr_assert_eq(ccmr_buffer_close(buffer, CCMR_STREAM_UNSET), CCMR_SUCCESS);
    cr_assert_str_eq(order_of_calls(),
                     "cuStreamWaitEvent(1) cuMemFreeAsync(1)");
    cr_assert_eq(ccmr_buffer_destroy(buffer), CCMR_SUCCESS);
}

Test(buffer, set_stream_decides_the_close)
{
    ccmr_buffer *buffer = make(first);

    cr_assert_eq(ccmr_buffer_set_stream(buffer, second), CCMR_SUCCESS);
    watch();
    cr_assert_eq(ccmr_buffer_destroy(buffer), CCMR_SUCCESS);
    cr_assert_str_eq(order_of_calls(), "cuMemFreeAsync(2)",
                     "set_stream adds no dependency");
}

static int releases;

static void release_owner(void *owner)
{
    cr_assert_eq(owner, &releases);
    releases++;
}

Test(buffer, a_borrowed_one_gives_back_once)
{
    ccmr_buffer_source source = CCMR_BUFFER_SOURCE_INIT;
    ccmr_buffer *buffer = NULL;
    int memory;

    source.release = release_owner;
    source.owner = &releases;
    cr_assert_eq(
        ccmr_buffer_from_handle(&memory, sizeof(memory), &source, &buffer),
        CCMR_SUCCESS);
    cr_assert_neq(ccmr_buffer_set_stream(buffer, first), CCMR_SUCCESS,
                  "it frees nothing: no stream to free on");
    cr_assert_neq(ccmr_buffer_note_use(buffer, first), CCMR_SUCCESS);
    cr_assert_eq(ccmr_buffer_destroy(buffer), CCMR_SUCCESS);
    cr_assert_eq(releases, 1);
}

/* B9: asked at creation, not found missing at the close. */
Test(buffer, an_owner_needs_its_stream_at_once)
{
    ccmr_buffer_source source = CCMR_BUFFER_SOURCE_INIT;
    ccmr_buffer *buffer = NULL;
    ccmr_stream away = leaf_stream(1);
    void *ptr = NULL;

    cr_assert_eq(ccmr_resource_allocate(pool, 100, 0, first, &ptr),
                 CCMR_SUCCESS);
    source.resource = pool;
    cr_assert_eq(ccmr_buffer_from_handle(ptr, 100, &source, &buffer),
                 CCMR_ERROR_INVALID_STREAM);
    source.stream = away;
    cr_assert_eq(ccmr_buffer_from_handle(ptr, 100, &source, &buffer),
                 CCMR_ERROR_WRONG_DEVICE);
    source.stream = first;
    cr_assert_eq(ccmr_buffer_from_handle(ptr, 100, &source, &buffer),
                 CCMR_SUCCESS);
    cr_assert_eq(ccmr_buffer_destroy(buffer), CCMR_SUCCESS);
    cr_assert_eq(api.cuStreamDestroy(away), CUDA_SUCCESS);
}

Test(buffer, what_no_resource_knows_the_driver_tells)
{
    ccmr_buffer_properties p = {.size = sizeof(p)};
    ccmr_buffer *buffer = NULL;
    ccmr_resource *pinned = NULL;
    void *ptr = NULL;
    int memory;

    cr_assert_eq(ccmr_buffer_from_handle(&memory, 4, NULL, &buffer),
                 CCMR_SUCCESS);
    cr_assert_eq(ccmr_buffer_describe(buffer, &p), CCMR_SUCCESS);
    cr_assert_eq(p.host_accessible, 1);
    cr_assert_eq(p.device_accessible, 0);
    cr_assert_eq(p.device, -1);
    cr_assert_eq(p.owning, 0);
    cr_assert_eq(ccmr_buffer_destroy(buffer), CCMR_SUCCESS);

    cr_assert_eq(ccmr_resource_allocate(pool, 100, 0, first, &ptr),
                 CCMR_SUCCESS);
    cr_assert_eq(ccmr_buffer_from_handle(ptr, 100, NULL, &buffer),
                 CCMR_SUCCESS);
    cr_assert_eq(ccmr_buffer_describe(buffer, &p), CCMR_SUCCESS);
    cr_assert_eq(p.host_accessible, 0);
    cr_assert_eq(p.device_accessible, 1);
    cr_assert_eq(p.device, 0);
    cr_assert_eq(ccmr_buffer_destroy(buffer), CCMR_SUCCESS);
    cr_assert_eq(ccmr_resource_deallocate(pool, ptr, 100, 0, first),
                 CCMR_SUCCESS);

    cr_assert_eq(ccmr_legacy_pinned_create(0, NULL, &pinned), CCMR_SUCCESS);
    cr_assert_eq(ccmr_resource_allocate(pinned, 100, 0, first, &ptr),
                 CCMR_SUCCESS);
    cr_assert_eq(ccmr_buffer_from_handle(ptr, 100, NULL, &buffer),
                 CCMR_SUCCESS);
    cr_assert_eq(ccmr_buffer_describe(buffer, &p), CCMR_SUCCESS);
    cr_assert_eq(p.host_accessible, 1);
    cr_assert_eq(p.device_accessible, 1);
    cr_assert_eq(p.managed, 0);
    cr_assert_eq(ccmr_buffer_destroy(buffer), CCMR_SUCCESS);
    cr_assert_eq(ccmr_resource_deallocate(pinned, ptr, 100, 0, first),
                 CCMR_SUCCESS);
    ccmr_resource_release(pinned);
}

/* A resource of a user that is bound to no device, but in stream order: the
   edge is owed to it as well. */
Test(buffer, edges_do_not_depend_on_a_device)
{
    ccmr_resource *resource;
    ccmr_buffer *buffer = NULL;
    puppet p;

    puppet_init(&p);
    resource = puppet_resource(&p);
    cr_assert_eq(ccmr_buffer_create(resource, 100, NULL, first, &buffer),
                 CCMR_SUCCESS);
    watch();
    cr_assert_eq(ccmr_buffer_close(buffer, second), CCMR_SUCCESS);
    cr_assert_str_eq(order_of_calls(),
                     "cuEventRecord(1) cuStreamWaitEvent(2)");
    cr_assert_eq(p.last_stream, second);
    cr_assert_eq(ccmr_buffer_destroy(buffer), CCMR_SUCCESS);
    ccmr_resource_release(resource);
    cr_assert_eq(puppet_clear(&p), 1);
}

/* And a noted use is waited for, or refused when it is noted. */
Test(buffer, notes_do_not_depend_on_a_device)
{
    ccmr_resource *resource;
    ccmr_buffer *buffer = NULL;
    ccmr_status status;
    puppet p;

    puppet_init(&p);
    resource = puppet_resource(&p);
    cr_assert_eq(ccmr_buffer_create(resource, 100, NULL, first, &buffer),
                 CCMR_SUCCESS);
    status = ccmr_buffer_note_use(buffer, second);
    watch();
    cr_assert_eq(ccmr_buffer_close(buffer, CCMR_STREAM_UNSET), CCMR_SUCCESS);
    if (status == CCMR_SUCCESS) {
        cr_assert_str_eq(order_of_calls(), "cuStreamWaitEvent(1)");
    } else {
        cr_assert_eq(status, CCMR_ERROR_NOT_SUPPORTED);
        cr_assert_str_eq(order_of_calls(), "");
    }
    cr_assert_eq(ccmr_buffer_destroy(buffer), CCMR_SUCCESS);
    ccmr_resource_release(resource);
    cr_assert_eq(puppet_clear(&p), 1);
}

/* B11: through the resource, once, with what was asked for. */
Test(buffer, frees_through_its_resource)
{
    ccmr_buffer_options options = {sizeof(options), 64};
    ccmr_resource *resource;
    ccmr_buffer *buffer = NULL;
    puppet p;

    puppet_init(&p);
    resource = puppet_resource(&p);
    cr_assert_eq(ccmr_buffer_create(resource, 123, &options, first, &buffer),
                 CCMR_SUCCESS);
    ccmr_resource_release(resource);
    cr_assert_eq(p.destroyed, 0);
    p.refuse_frees = 1;
    cr_assert_neq(ccmr_buffer_destroy(buffer), CCMR_SUCCESS);
    cr_assert_eq(p.destroyed, 0);
    cr_assert_eq(ccmr_buffer_bytes(buffer), 123);
    cr_assert_eq(ccmr_buffer_destroy(buffer), CCMR_SUCCESS);
    cr_assert_eq(p.last_bytes, 123);
    cr_assert_eq(p.last_alignment, 64);
    cr_assert_eq(p.last_stream, first);
    cr_assert_eq(puppet_clear(&p), 1);
}

Test(buffer, creation_that_fails_takes_nothing)
{
    ccmr_resource *resource;
    ccmr_buffer *buffer = NULL;
    puppet p;

    puppet_init(&p);
    resource = puppet_resource(&p);
    p.fail_allocations = 1;
    cr_assert_eq(ccmr_buffer_create(resource, 123, NULL, first, &buffer),
                 CCMR_ERROR_OUT_OF_DEVICE_MEMORY);
    cr_assert_null(buffer);
    ccmr_resource_release(resource);
    cr_assert_eq(puppet_clear(&p), 1, "a reference was left");
}

Test(buffer, of_host_memory_closes_whatever_became_of_its_stream)
{
    ccmr_resource *host = NULL;
    ccmr_buffer *buffer = NULL;
    ccmr_stream stream = NULL;

    cr_assert_eq(ccmr_host_create(&host), CCMR_SUCCESS);
    cr_assert_eq(ccmr_stream_create(0, 0, &stream), CCMR_SUCCESS);
    cr_assert_eq(ccmr_buffer_create(host, 100, NULL, stream, &buffer),
                 CCMR_SUCCESS);
    cr_assert_eq(ccmr_stream_destroy(stream), CCMR_SUCCESS);
    cr_assert_eq(ccmr_buffer_destroy(buffer), CCMR_SUCCESS, "%s",
                 ccmr_last_error()->message);
    ccmr_resource_release(host);
}
