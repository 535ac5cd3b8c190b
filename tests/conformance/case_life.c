/* SPDX-License-Identifier: Apache-2.0 */
/*
 * References, draining, and who outlives whom: rule 9. Field cases B11, E6,
 * G6.
 */
#include "tests/conformance/conformance.h"

#include <string.h>

#include "tests/support/tap.h"

/* The subject under one more recorder, which tells when it is destroyed. The
   subject's own reference is handed over. */
static ccmr_resource *watch(subject *s)
{
    ccmr_resource *top = NULL;

    CHECK_OK(s, ccmr_stack_create_over("recorder", s->resource, &top),
             "a recorder on top");
    if (top != NULL) {
        ccmr_resource_release(s->resource);
        s->resource = top;
    }
    return top;
}

static void expect_destroyed(subject *s, int destroyed, const char *when)
{
    recorder_sums sums = recorder_read();

    if (destroyed) {
        CHECK(s, sums.destroyed == sums.made, "%s: not destroyed", when);
    } else {
        CHECK(s, sums.destroyed == 0, "%s: destroyed too early", when);
    }
}

static void case_references(subject *s)
{
    ccmr_resource *top = watch(s);
    void *ptr;

    if (top == NULL) {
        return;
    }
    CHECK(s, ccmr_resource_retain(top) == top, "retain gave another one");
    CHECK(s, ccmr_resource_retain(NULL) == NULL, "retain of NULL");
    ccmr_resource_release(NULL);
    ccmr_resource_release(top);
    expect_destroyed(s, 0, "one of two references");
    ptr = take(s, 512, 0, s->streams[0]);
    give(s, ptr, 512, 0, s->streams[0]);
    ccmr_resource_release(top);
    s->resource = NULL;
    expect_destroyed(s, 1, "last reference");
}

static void case_draining(subject *s)
{
    ccmr_resource *top = watch(s);
    void *blocks[3];
    void *nothing = NULL;
    int i;

    if (top == NULL) {
        return;
    }
    for (i = 0; i < 3; i++) {
        blocks[i] = take(s, 5000, 0, s->streams[i]);
    }
    ccmr_resource_release(top);
    expect_destroyed(s, 0, "three blocks are live");
    CHECK_STATUS(s,
                 ccmr_resource_allocate(top, 512, 0, s->streams[0], &nothing),
                 CCMR_ERROR_RELEASED, "allocate after the last release");
    CHECK(s, nothing == NULL, "an output was written");
    give(s, blocks[0], 5000, 0, s->streams[0]);
    CHECK_STATUS(
        s,
        ccmr_resource_deallocate(top, blocks[1], 5000, 0, CCMR_STREAM_UNSET),
        CCMR_ERROR_INVALID_STREAM, "refused while draining");
    expect_destroyed(s, 0, "two blocks are live");
    settle(s, s->streams[1]);
    give(s, blocks[1], 5000, 0, s->streams[2]);
    settle(s, s->streams[2]);
    expect_destroyed(s, 0, "one block is live");
    s->resource = NULL;
    CHECK_OK(
        s,
        ccmr_resource_deallocate(top, blocks[2], 5000, 0, CCMR_STREAM_READY),
        "the last block");
    expect_destroyed(s, 1, "last block");
}

/* Buffers are references; G6 and E6 in the orders that are left. */
static void case_buffers_hold(subject *s)
{
    ccmr_resource *top = watch(s);
    ccmr_buffer *buffers[2];
    ccmr_buffer_properties properties = {.size = sizeof(properties)};
    void *raw;

    if (top == NULL) {
        return;
    }
    buffers[0] = take_buffer(s, 5000, s->streams[0]);
    buffers[1] = take_buffer(s, 0 + 1, here.registered[s->device]);
    raw = take(s, 100, 0, s->streams[1]);
    if (buffers[0] == NULL || buffers[1] == NULL || raw == NULL) {
        return;
    }
    s->resource = NULL;
    ccmr_resource_release(top);
    expect_destroyed(s, 0, "two buffers and a block");
    CHECK_OK(s, ccmr_buffer_describe(buffers[0], &properties), "describe");
    CHECK(s, properties.resource == top, "the buffer has another resource");
    CHECK_OK(s, ccmr_buffer_close(buffers[0], CCMR_STREAM_UNSET), "close");
    CHECK_OK(s, ccmr_resource_deallocate(top, raw, 100, 0, s->streams[1]),
             "deallocate");
    expect_destroyed(s, 0, "a buffer is open");
    CHECK_OK(s, ccmr_buffer_destroy(buffers[1]), "destroy");
    expect_destroyed(s, 1, "last buffer closed");
    CHECK_OK(s, ccmr_buffer_close(buffers[0], CCMR_STREAM_UNSET),
             "second close, with the resource gone");
    CHECK_OK(s, ccmr_buffer_destroy(buffers[0]), "destroy");
}

/* A buffer without memory holds its resource as others do. */
static void case_empty_buffer_holds(subject *s)
{
    ccmr_resource *top = watch(s);
    ccmr_buffer *buffer = NULL;

    if (top == NULL) {
        return;
    }
    CHECK_OK(s, ccmr_buffer_create(top, 0, NULL, s->streams[0], &buffer),
             "an empty buffer");
    s->resource = NULL;
    ccmr_resource_release(top);
    expect_destroyed(s, 0, "an empty buffer is open");
    CHECK_OK(s, ccmr_buffer_destroy(buffer), "destroy");
    expect_destroyed(s, 1, "closed");
}

/* What was given up by a buffer is a raw block. */
static void case_disowned(subject *s)
{
    ccmr_resource *top = watch(s);
    ccmr_buffer *buffer;
    void *ptr = NULL;
    void *was;

    if (top == NULL) {
        return;
    }
    buffer = take_buffer(s, 3000, s->streams[0]);
    if (buffer == NULL) {
        return;
    }
    was = ccmr_buffer_ptr(buffer);
    CHECK_OK(s, ccmr_buffer_disown(buffer, &ptr), "disown");
    CHECK(s, ptr == was, "disown gave %p, not %p", ptr, was);
    CHECK(s, ccmr_buffer_ptr(buffer) == NULL, "still has the pointer");
    CHECK_STATUS(s, ccmr_buffer_disown(buffer, &ptr), CCMR_ERROR_CLOSED,
                 "disown twice");
    CHECK_OK(s, ccmr_buffer_close(buffer, s->streams[0]), "close");
    CHECK_OK(s, ccmr_buffer_destroy(buffer), "destroy");
    s->resource = NULL;
    ccmr_resource_release(top);
    expect_destroyed(s, 0, "the block is live");
    CHECK_OK(s, ccmr_resource_deallocate(top, ptr, 3000, 0, s->streams[0]),
             "deallocate");
    expect_destroyed(s, 1, "block freed");
}

/* Upstreams outlive what is stacked on them. */
static void case_upstream_outlives(subject *s)
{
    ccmr_resource *middle = NULL;
    ccmr_resource *top = NULL;
    void *ptr;

    CHECK_OK(s, ccmr_stack_create_over("recorder", s->resource, &middle),
             "middle");
    CHECK_OK(s, ccmr_stack_create_over("limiting bytes=64MiB", middle, &top),
             "top");
    if (middle == NULL || top == NULL) {
        ccmr_resource_release(middle);
        ccmr_resource_release(top);
        return;
    }
    ccmr_resource_release(s->resource);
    ccmr_resource_release(middle);
    s->resource = top;
    ptr = take(s, 512, 0, s->streams[0]);
    expect_destroyed(s, 0, "stacked upon");
    s->resource = NULL;
    ccmr_resource_release(top);
    CHECK_OK(s, ccmr_resource_deallocate(top, ptr, 512, 0, s->streams[0]),
             "last block");
    expect_destroyed(s, 1, "last block freed");
}

/* B11: one free for each allocation, through the outermost resource. */
static void case_one_free_each(subject *s)
{
    ccmr_resource *top = watch(s);
    ccmr_buffer *buffer;
    ccmr_buffer *wrapped = NULL;
    ccmr_buffer_source source = CCMR_BUFFER_SOURCE_INIT;
    ccmr_buffer_options options = {sizeof(options), SIZE_MAX};
    ccmr_buffer *failed = NULL;
    void *ptr;
    int i;

    if (top == NULL) {
        return;
    }
    for (i = 0; i < 4; i++) {
        buffer = take_buffer(s, 1000, s->streams[0]);
        CHECK_OK(s, ccmr_buffer_close(buffer, CCMR_STREAM_UNSET), "close");
        CHECK_OK(s, ccmr_buffer_close(buffer, s->streams[1]), "and again");
        CHECK_OK(s, ccmr_buffer_destroy(buffer), "destroy");
    }
    CHECK(s,
          ccmr_buffer_create(top, 1000, &options, s->streams[0], &failed) !=
                  CCMR_SUCCESS &&
              failed == NULL,
          "a buffer of alignment SIZE_MAX");
    ptr = take(s, 1000, 0, s->streams[0]);
    source.resource = top;
    source.stream = s->streams[0];
    CHECK_OK(s, ccmr_buffer_from_handle(ptr, 1000, &source, &wrapped),
             "from_handle");
    drop_buffer(s, wrapped);
    CHECK(s, figures(s).live_blocks == 0, "%llu blocks are live",
          (unsigned long long)figures(s).live_blocks);
    CHECK(s, figures(s).deallocations == 5, "%llu frees",
          (unsigned long long)figures(s).deallocations);
}

const conformance_case cases_life[] = {
    {"references", case_references},
    {"draining", case_draining},
    {"buffers hold", case_buffers_hold},
    {"empty buffers hold", case_empty_buffer_holds},
    {"disowned blocks", case_disowned},
    {"upstreams outlive", case_upstream_outlives},
    {"one free for each allocation", case_one_free_each},
    {NULL, NULL},
};
