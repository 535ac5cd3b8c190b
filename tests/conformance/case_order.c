/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contents and stream order: a block is nobody else's before its last owner's
 * work is finished, whatever way it takes through a resource. Streams are held
 * so that work is really unfinished. Field cases A1, B2, B3, B7, C1, N9.
 */
#include "tests/conformance/conformance.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/tap.h"

#define HOLD_MS 20
#define BLOCK (64 * KIB)

/* Waits for the stream and compares every word. */
static void expect(subject *s, void *ptr, size_t bytes, uint32_t seed,
                   ccmr_stream stream, const char *what)
{
    ccmr_buffer *view = ptr != NULL ? view_of(s, ptr, bytes) : NULL;
    uint32_t *words = malloc(bytes);
    size_t i;

    if (view == NULL || words == NULL) {
        CHECK_OK(s, ccmr_buffer_destroy(view), "destroy of a view");
        free(words);
        return;
    }
    memset(words, 0, bytes);
    CHECK_OK(s, ccmr_buffer_copy_to_host(view, 0, words, bytes, stream),
             "copy to host");
    settle(s, stream);
    for (i = 0; i < bytes / 4 && words[i] == fill_word(seed); i++) {
    }
    CHECK(s, i == bytes / 4, "%s: word %zu of %zu is 0x%x, should be 0x%x",
          what, i, bytes / 4, i < bytes / 4 ? words[i] : 0, fill_word(seed));
    CHECK_OK(s, ccmr_buffer_destroy(view), "destroy of a view");
    free(words);
}

static int can_hold(subject *s, hold *h, ccmr_stream stream)
{
    int held;

    (void)api.cuCtxPushCurrent(here.primary[s->device]);
    held = hold_begin(h, stream) == 0;
    (void)api.cuCtxPopCurrent(&(CUcontext){NULL});
    return CHECK(s, held, "the stream could not be held");
}

static void case_contents(subject *s)
{
    enum { COUNT = 12 };
    void *ptr[COUNT];
    size_t bytes[COUNT];
    size_t i;

    for (i = 0; i < COUNT; i++) {
        bytes[i] = 4 * (1 + i * i * i * 37);
        ptr[i] = take(s, bytes[i], 0, s->streams[i % 3]);
        fill(s, ptr[i], bytes[i], (uint32_t)i + 1, s->streams[i % 3]);
    }
    for (i = 0; i < COUNT; i += 2) {
        expect(s, ptr[i], bytes[i], (uint32_t)i + 1, s->streams[i % 3],
               "before");
        give(s, ptr[i], bytes[i], 0, s->streams[i % 3]);
    }
    CHECK_OK(s, ccmr_resource_trim(s->resource, 0, NULL), "trim");
    for (i = 1; i < COUNT; i += 2) {
        expect(s, ptr[i], bytes[i], (uint32_t)i + 1, s->streams[i % 3],
               "after others were freed and trimmed");
        give(s, ptr[i], bytes[i], 0, s->streams[i % 3]);
    }
}

/* Reuse on one stream needs no wait, and the later fill wins. */
static void case_reuse_same_stream(subject *s)
{
    ccmr_stream stream = s->streams[0];
    uint32_t round;

    for (round = 1; round <= 8; round++) {
        void *ptr = take(s, BLOCK, 0, stream);

        fill(s, ptr, BLOCK, round, stream);
        if (round % 2 == 0) {
            expect(s, ptr, BLOCK, round, stream, "reused block");
        }
        give(s, ptr, BLOCK, 0, stream);
    }
}

/*
 * A1: stream 0 is held with a fill of the block queued; the block is freed
 * there; streams 1 and 2 take and fill blocks of that size. Whatever they are
 * given, the fill of stream 0 must not be seen in it.
 */
static void reuse_across(subject *s, ccmr_stream first, ccmr_stream second,
                         ccmr_stream third, int trim)
{
    hold held;
    void *ptr;
    void *next[6];
    size_t i;

    ptr = take(s, BLOCK, 0, first);
    if (ptr == NULL || !can_hold(s, &held, first)) {
        give(s, ptr, BLOCK, 0, first);
        return;
    }
    fill(s, ptr, BLOCK, 100, first);
    hold_end_after(&held, HOLD_MS);
    give(s, ptr, BLOCK, 0, first);
    if (trim) {
        CHECK_OK(s, ccmr_resource_trim(s->resource, 0, NULL), "trim");
    }
    for (i = 0; i < 6; i++) {
        ccmr_stream stream = i % 2 == 0 ? second : third;

        next[i] = take(s, BLOCK, 0, stream);
        fill(s, next[i], BLOCK, 101 + (uint32_t)i, stream);
        if (i < 2) {
            give(s, next[i], BLOCK, 0, stream);
        }
    }
    /* They run now, or, if they are ordered, when the hold has ended. */
    settle(s, second);
    settle(s, third);
    hold_end(&held);
    settle(s, first);
    for (i = 2; i < 6; i++) {
        ccmr_stream stream = i % 2 == 0 ? second : third;

        expect(s, next[i], BLOCK, 101 + (uint32_t)i, stream,
               "block that was another stream's");
        give(s, next[i], BLOCK, 0, stream);
    }
}

static void case_reuse_across_streams(subject *s)
{
    if (orders(s)) {
        reuse_across(s, s->streams[0], s->streams[1], s->streams[2], 0);
    }
}

static void case_reuse_registered(subject *s)
{
    if (orders(s)) {
        reuse_across(s, here.registered[s->device], s->streams[1],
                     CCMR_STREAM_PER_THREAD, 0);
        reuse_across(s, s->streams[1], here.registered[s->device],
                     CCMR_STREAM_LEGACY, 0);
    }
}

/* A5, I14: free is not finished: a trim may not give it away before. */
static void case_reuse_after_trim(subject *s)
{
    if (orders(s)) {
        reuse_across(s, s->streams[0], s->streams[1], s->streams[2], 1);
    }
}

/* The pieces of a freed block are as unfinished as the whole. */
static void case_reuse_other_sizes(subject *s)
{
    ccmr_stream first = s->streams[0];
    ccmr_stream second = s->streams[1];
    hold held;
    void *blocks[4];
    void *large;
    size_t i;

    if (!orders(s)) {
        return;
    }
    for (i = 0; i < 4; i++) {
        blocks[i] = take(s, BLOCK, 0, first);
    }
    if (!can_hold(s, &held, first)) {
        return;
    }
    for (i = 0; i < 4; i++) {
        fill(s, blocks[i], BLOCK, 200, first);
    }
    hold_end_after(&held, HOLD_MS);
    for (i = 0; i < 4; i++) {
        give(s, blocks[i], BLOCK, 0, first);
    }
    large = take(s, 4 * BLOCK, 0, second);
    fill(s, large, 4 * BLOCK, 201, second);
    for (i = 0; i < 4; i++) {
        blocks[i] = take(s, BLOCK / 2, 0, second);
        fill(s, blocks[i], BLOCK / 2, 202 + (uint32_t)i, second);
    }
    settle(s, second);
    hold_end(&held);
    settle(s, first);
    expect(s, large, 4 * BLOCK, 201, second, "larger block");
    give(s, large, 4 * BLOCK, 0, second);
    for (i = 0; i < 4; i++) {
        expect(s, blocks[i], BLOCK / 2, 202 + (uint32_t)i, second,
               "smaller block");
        give(s, blocks[i], BLOCK / 2, 0, second);
    }
}

/* The same when there is no other memory: what is free is unfinished, and
   must be waited for. Stacks without a limit have more, and do as before. */
static void case_reuse_when_full(subject *s)
{
    enum { MOST = 70 };
    ccmr_stream first = s->streams[0];
    ccmr_stream second = s->streams[1];
    void *blocks[MOST];
    void *next = NULL;
    hold held;
    size_t count = 0;

    if (!orders(s)) {
        return;
    }
    while (count < MOST &&
           ccmr_resource_allocate(s->resource, MIB, 0, first,
                                  &blocks[count]) == CCMR_SUCCESS) {
        count++;
    }
    if (!CHECK(s, count > 1, "less than 2 MiB to be had") ||
        !can_hold(s, &held, first)) {
        return;
    }
    count--;
    fill(s, blocks[count], MIB, 800, first);
    hold_end_after(&held, HOLD_MS);
    give(s, blocks[count], MIB, 0, first);
    next = take(s, MIB, 0, second);
    fill(s, next, MIB, 801, second);
    settle(s, second);
    hold_end(&held);
    settle(s, first);
    expect(s, next, MIB, 801, second, "the last block");
    give(s, next, MIB, 0, second);
    while (count > 0) {
        give(s, blocks[--count], MIB, 0, first);
    }
}

/* B2: a stream goes with a free pending; the next one has its handle. */
static void case_recycled_stream(subject *s)
{
    CUstream stream = NULL;
    CUstream again = NULL;
    hold held;
    void *ptr;
    void *next;

    if (!orders(s)) {
        return;
    }
    (void)api.cuCtxPushCurrent(here.primary[s->device]);
    if (!CHECK(s,
               api.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) ==
                   CUDA_SUCCESS,
               "no stream")) {
        (void)api.cuCtxPopCurrent(&(CUcontext){NULL});
        return;
    }
    ptr = take(s, BLOCK, 0, stream);
    /* Held through another stream: this one is about to go. */
    if (can_hold(s, &held, s->streams[0])) {
        CUevent event = NULL;

        (void)api.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
        (void)api.cuEventRecord(event, s->streams[0]);
        (void)api.cuStreamWaitEvent(stream, event, 0);
        (void)api.cuEventDestroy(event);
        fill(s, ptr, BLOCK, 300, stream);
        hold_end_after(&held, HOLD_MS);
        give(s, ptr, BLOCK, 0, stream);
        destroy_stream(s, stream);
        CHECK(s,
              api.cuStreamCreate(&again, CU_STREAM_NON_BLOCKING) ==
                  CUDA_SUCCESS,
              "no second stream");
        next = take(s, BLOCK, 0, again);
        fill(s, next, BLOCK, 301, again);
        settle(s, again);
        hold_end(&held);
        settle(s, s->streams[0]);
        expect(s, next, BLOCK, 301, again, "block on a recycled stream");
        give(s, next, BLOCK, 0, again);
        settle(s, again);
        destroy_stream(s, again);
    }
    (void)api.cuCtxPopCurrent(&(CUcontext){NULL});
}

/* B3: many short-lived streams, each with a free, then one that wants all. */
static void case_short_lived_streams(subject *s)
{
    enum { COUNT = 60 };
    void *sum;
    size_t i;

    for (i = 0; i < COUNT; i++) {
        CUstream stream = NULL;
        void *ptr;

        (void)api.cuCtxPushCurrent(here.primary[s->device]);
        (void)api.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
        (void)api.cuCtxPopCurrent(&(CUcontext){NULL});
        ptr = take(s, 8 * KIB, 0, stream);
        fill(s, ptr, 8 * KIB, (uint32_t)i, stream);
        give(s, ptr, 8 * KIB, 0, stream);
        if (i % 2 == 0) {
            CHECK_OK(s, ccmr_stream_retire(stream), "retire");
        }
        destroy_stream(s, stream);
    }
    sum = take(s, COUNT * 8 * KIB, 0, CCMR_STREAM_LEGACY);
    fill(s, sum, COUNT * 8 * KIB, 400, CCMR_STREAM_LEGACY);
    expect(s, sum, COUNT * 8 * KIB, 400, CCMR_STREAM_LEGACY, "sum");
    give(s, sum, COUNT * 8 * KIB, 0, CCMR_STREAM_LEGACY);
    CHECK_OK(s, ccmr_resource_trim(s->resource, 0, NULL), "trim");
}

/*
 * N9: what the host may touch is handed out only when the GPU has done with
 * it, where access is `host`: a copy out of the block is still queued when the
 * block is freed, taken again and overwritten by the host.
 */
static void case_host_access(subject *s)
{
    ccmr_stream stream = s->streams[0];
    ccmr_resource *plain = NULL;
    uint32_t *words;
    void *target = NULL;
    void *next;
    hold held;
    size_t i;

    if (!orders(s)) {
        return;
    }
    if (!s->properties.host_accessible ||
        s->properties.access != CCMR_ACCESS_HOST) {
        subject_skip(s, "not for the host, or in stream order");
        return;
    }
    if (!CHECK_OK(s, ccmr_device_plain_create(s->device, &plain), "target") ||
        !CHECK_OK(s, ccmr_resource_allocate(plain, BLOCK, 0, stream, &target),
                  "target")) {
        ccmr_resource_release(plain);
        return;
    }
    words = take(s, BLOCK, 0, stream);
    for (i = 0; words != NULL && i < BLOCK / 4; i++) {
        words[i] = fill_word(500);
    }
    if (can_hold(s, &held, stream)) {
        CHECK(s,
              api.cuMemcpyAsync((CUdeviceptr)(uintptr_t)target,
                                (CUdeviceptr)(uintptr_t)words, BLOCK,
                                stream) == CUDA_SUCCESS,
              "copy");
        hold_end_after(&held, HOLD_MS);
        give(s, words, BLOCK, 0, stream);
        next = take(s, BLOCK, 0, stream);
        if (next != NULL) {
            memset(next, 0xee, BLOCK);
        }
        hold_end(&held);
        settle(s, stream);
        expect(s, target, BLOCK, 500, stream, "copy of the freed block");
        give(s, next, BLOCK, 0, stream);
    }
    CHECK_OK(s, ccmr_resource_deallocate(plain, target, BLOCK, 0, stream),
             "target");
    ccmr_resource_release(plain);
}

/* A free on another stream than the allocation's, ordered by an event. */
static void case_free_elsewhere(subject *s)
{
    CUevent event = NULL;
    void *ptr = take(s, BLOCK, 0, s->streams[0]);
    void *next;

    (void)api.cuCtxPushCurrent(here.primary[s->device]);
    fill(s, ptr, BLOCK, 600, s->streams[0]);
    (void)api.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    (void)api.cuEventRecord(event, s->streams[0]);
    (void)api.cuStreamWaitEvent(s->streams[1], event, 0);
    (void)api.cuEventDestroy(event);
    (void)api.cuCtxPopCurrent(&(CUcontext){NULL});
    give(s, ptr, BLOCK, 0, s->streams[1]);
    next = take(s, BLOCK, 0, s->streams[1]);
    fill(s, next, BLOCK, 601, s->streams[1]);
    expect(s, next, BLOCK, 601, s->streams[1], "block freed elsewhere");
    give(s, next, BLOCK, 0, s->streams[1]);
}

/* Destroying waits for what is pending, or hands it on in order, to those
   who share the memory below. A1's and A7's last step. */
static void case_release_while_held(subject *s)
{
    hold held;
    void *ptr;
    void *next;

    if (!orders(s)) {
        return;
    }
    ptr = take(s, BLOCK, 0, s->streams[0]);
    if (can_hold(s, &held, s->streams[0])) {
        fill(s, ptr, BLOCK, 700, s->streams[0]);
        hold_end_after(&held, HOLD_MS);
        give(s, ptr, BLOCK, 0, s->streams[0]);
        ccmr_resource_release(s->resource);
        s->resource = NULL;
        if (!CHECK_OK(s, ccmr_stack_create(s->stack, &s->resource),
                      "the next stack")) {
            hold_end(&held);
            return;
        }
        next = take(s, BLOCK, 0, s->streams[1]);
        fill(s, next, BLOCK, 701, s->streams[1]);
        settle(s, s->streams[1]);
        hold_end(&held);
        settle(s, s->streams[0]);
        expect(s, next, BLOCK, 701, s->streams[1], "a block of the next");
        give(s, next, BLOCK, 0, s->streams[1]);
    }
}

const conformance_case cases_order[] = {
    {"contents", case_contents},
    {"reuse on one stream", case_reuse_same_stream},
    {"reuse across streams", case_reuse_across_streams},
    {"reuse across registered streams and tokens", case_reuse_registered},
    {"reuse after a trim", case_reuse_after_trim},
    {"reuse in other sizes", case_reuse_other_sizes},
    {"reuse when full", case_reuse_when_full},
    {"recycled stream", case_recycled_stream},
    {"short-lived streams", case_short_lived_streams},
    {"host access", case_host_access},
    {"free on another stream", case_free_elsewhere},
    {"release with work pending", case_release_while_held},
    {NULL, NULL},
};
