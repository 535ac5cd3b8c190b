/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes, alignments, streams, refusals: rules 1 to 4 and 13 of the contract.
 */
#include "tests/conformance/conformance.h"

#include <string.h>

#include "tests/support/tap.h"

static void *const UNTOUCHED = (void *)(uintptr_t)0x5a5a5a5a;

/* Nothing was handed out, counted or passed on since `before`. */
static void unchanged(subject *s, const ccmr_stats *before,
                      const recorder_sums *sums, const char *what)
{
    ccmr_stats now = figures(s);
    recorder_sums sums_now = recorder_read();

    CHECK(s, now.live_bytes == before->live_bytes, "%s: live %zu, was %zu",
          what, now.live_bytes, before->live_bytes);
    CHECK(s, now.live_blocks == before->live_blocks, "%s: live blocks", what);
    CHECK(s, now.allocations == before->allocations, "%s: allocations", what);
    CHECK(s, now.deallocations == before->deallocations, "%s: deallocations",
          what);
    CHECK(s, sums_now.calls == sums->calls, "%s: upstream was called", what);
}

/* Rule 1. Field case H5. */
static void case_zero_bytes(subject *s)
{
    static const size_t alignments[] = {0, 1, 256};
    ccmr_stats before = figures(s);
    recorder_sums sums = recorder_read();
    ccmr_buffer *buffer = NULL;
    size_t i;

    for (i = 0; i < sizeof(alignments) / sizeof(alignments[0]); i++) {
        void *ptr = UNTOUCHED;

        CHECK_OK(s,
                 ccmr_resource_allocate(s->resource, 0, alignments[i],
                                        s->streams[0], &ptr),
                 "0 bytes of alignment %zu", alignments[i]);
        CHECK(s, ptr == NULL, "0 bytes gave %p", ptr);
        CHECK_OK(s,
                 ccmr_resource_deallocate(s->resource, NULL, 0, alignments[i],
                                          s->streams[0]),
                 "deallocate of nothing");
    }
    CHECK_OK(
        s,
        ccmr_resource_deallocate(s->resource, NULL, 0, 0, CCMR_STREAM_READY),
        "deallocate of nothing, ready");
    CHECK_OK(s,
             ccmr_buffer_create(s->resource, 0, NULL, s->streams[0], &buffer),
             "buffer of 0 bytes");
    CHECK(s,
          buffer != NULL && ccmr_buffer_ptr(buffer) == NULL &&
              ccmr_buffer_bytes(buffer) == 0,
          "a buffer of 0 bytes has memory");
    drop_buffer(s, buffer);
    unchanged(s, &before, &sums, "zero bytes");
}

/* Rule 2: every power of two up to the greatest is honoured. Case H2. */
static void case_alignment_honoured(subject *s)
{
    size_t limit = s->properties.max_alignment;
    size_t alignment;
    void *odd;

    CHECK(s, limit >= CCMR_DEFAULT_ALIGNMENT && (limit & (limit - 1)) == 0,
          "max_alignment is %zu", limit);
    if (limit > 2 * MIB) {
        limit = 2 * MIB;
    }
    for (alignment = 1; alignment <= limit; alignment *= 2) {
        void *blocks[3];
        size_t i;

        /* Something small in between, so that luck does not last. */
        odd = take(s, 1, 1, s->streams[0]);
        for (i = 0; i < 3; i++) {
            blocks[i] = take(s, 3 * i + 1, alignment, s->streams[i % 2]);
        }
        for (i = 0; i < 3; i++) {
            give(s, blocks[i], 3 * i + 1, alignment, s->streams[i % 2]);
        }
        give(s, odd, 1, 1, s->streams[0]);
    }
}

/* Rule 2: what cannot be honoured is refused, never ignored. */
static void case_alignment_refused(subject *s)
{
    static const size_t bad[] = {3, 48, 257, 4095, SIZE_MAX, SIZE_MAX / 2};
    ccmr_stats before = figures(s);
    recorder_sums sums = recorder_read();
    size_t above = s->properties.max_alignment;
    ccmr_buffer_options options = {sizeof(options), 0};
    ccmr_buffer *buffer = NULL;
    ccmr_status status;
    void *ptr = UNTOUCHED;
    size_t i;

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        status = ccmr_resource_allocate(s->resource, 256, bad[i],
                                        s->streams[0], &ptr);
        CHECK_STATUS(s, status, CCMR_ERROR_INVALID_ALIGNMENT, "alignment %zu",
                     bad[i]);
        options.alignment = bad[i];
        status = ccmr_buffer_create(s->resource, 256, &options, s->streams[0],
                                    &buffer);
        CHECK_STATUS(s, status, CCMR_ERROR_INVALID_ALIGNMENT,
                     "buffer of alignment %zu", bad[i]);
    }
    while ((above *= 2) != 0) {
        status = ccmr_resource_allocate(s->resource, 256, above, s->streams[0],
                                        &ptr);
        CHECK_STATUS(s, status, CCMR_ERROR_INVALID_ALIGNMENT, "alignment %zu",
                     above);
    }
    CHECK(s, ptr == UNTOUCHED && buffer == NULL, "an output was written");
    unchanged(s, &before, &sums, "refused alignment");
}

/* Field case H4: a fragmented resource still honours or refuses. */
static void case_alignment_fragmented(subject *s)
{
    static const size_t alignments[] = {4096, 65536};
    void *small[32];
    size_t i;

    for (i = 0; i < 32; i++) {
        small[i] = take(s, 256, 256, s->streams[0]);
    }
    for (i = 0; i < 32; i += 2) {
        give(s, small[i], 256, 256, s->streams[0]);
    }
    for (i = 0; i < 2; i++) {
        void *ptr = NULL;

        if (alignments[i] <= s->properties.max_alignment) {
            ptr = take(s, 300, alignments[i], s->streams[0]);
            give(s, ptr, 300, alignments[i], s->streams[0]);
        } else {
            CHECK_STATUS(
                s,
                ccmr_resource_allocate(s->resource, 300, alignments[i],
                                       s->streams[0], &ptr),
                CCMR_ERROR_INVALID_ALIGNMENT, "alignment %zu", alignments[i]);
        }
    }
    for (i = 1; i < 32; i += 2) {
        give(s, small[i], 256, 256, s->streams[0]);
    }
}

static int means_too_large(ccmr_status status)
{
    return status == CCMR_ERROR_INVALID_SIZE ||
           status == CCMR_ERROR_OUT_OF_DEVICE_MEMORY ||
           status == CCMR_ERROR_OUT_OF_HOST_MEMORY ||
           status == CCMR_ERROR_LIMIT_EXCEEDED;
}

/* Rule 3. Field cases H1 and H6. */
static void case_huge_sizes(subject *s)
{
    static const size_t sizes[] = {
        SIZE_MAX,       SIZE_MAX - 3,       SIZE_MAX - 255,
        SIZE_MAX - 256, SIZE_MAX - 511,     SIZE_MAX / 2 + 1,
        SIZE_MAX / 2,   SIZE_MAX / 2 - 255, SIZE_MAX / 4};
    size_t alignments[] = {0, 1, 256, s->properties.max_alignment};
    ccmr_stats before = figures(s);
    ccmr_stats now;
    size_t i;
    size_t k;

    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (k = 0; k < sizeof(alignments) / sizeof(alignments[0]); k++) {
            void *ptr = UNTOUCHED;
            ccmr_status status = ccmr_resource_allocate(
                s->resource, sizes[i], alignments[k], s->streams[0], &ptr);

            CHECK(s, means_too_large(status), "%zu bytes: %s", sizes[i],
                  ccmr_status_name(status));
            if (sizes[i] > PTRDIFF_MAX) {
                CHECK_STATUS(s, status, CCMR_ERROR_INVALID_SIZE, "%zu bytes",
                             sizes[i]);
            }
            CHECK(s, ptr == UNTOUCHED, "%zu bytes wrote an output", sizes[i]);
            CHECK(s, ccmr_last_error()->status == status,
                  "detail is of another failure: %s",
                  ccmr_last_error()->message);
            /* Who refused may have been asked for more, by an adaptor. */
            CHECK(s, ccmr_last_error()->requested >= sizes[i],
                  "detail tells of %zu bytes requested, not %zu",
                  ccmr_last_error()->requested, sizes[i]);
        }
    }
    now = figures(s);
    CHECK(s,
          now.live_bytes == before.live_bytes &&
              now.live_blocks == before.live_blocks &&
              now.allocations == before.allocations,
          "a refused size was counted");
    CHECK(s, recorder_read().live == 0, "a refused size is live below");
}

/* More than any device has, less than what overflows: no false success. */
static void case_more_than_the_device(subject *s)
{
    size_t bytes = (size_t)1 << 45;
    ccmr_stats before = figures(s);
    ccmr_stats now;
    void *ptr = UNTOUCHED;
    ccmr_status status;

    if (!s->properties.device_accessible) {
        subject_skip(s, "a host may promise more than it has");
        return;
    }
    status =
        ccmr_resource_allocate(s->resource, bytes, 0, s->streams[0], &ptr);
    CHECK(s, means_too_large(status), "2^45 bytes: %s",
          ccmr_status_name(status));
    CHECK(s, ptr == UNTOUCHED, "an output was written");
    now = figures(s);
    CHECK(s, now.live_bytes == before.live_bytes, "live %zu, was %zu",
          now.live_bytes, before.live_bytes);
    CHECK(s, now.failures > before.failures, "the failure was not counted");
}

/* Rule 4, and that blocks do not overlap. Field case H8. */
static void case_sizes_come_back(subject *s)
{
    enum { COUNT = 24 };
    void *ptr[COUNT];
    size_t bytes[COUNT];
    size_t alignment[COUNT];
    size_t limit = s->properties.max_alignment;
    size_t i;
    size_t k;

    for (i = 0; i < COUNT; i++) {
        bytes[i] = i % 3 == 0   ? 1 + i
                   : i % 3 == 1 ? 500 * i + 13
                                : (i + 1) * 4096 + i;
        alignment[i] = (size_t)1 << (i % 12);
        if (alignment[i] > limit) {
            alignment[i] = limit;
        }
        ptr[i] = take(s, bytes[i], alignment[i], s->streams[i % 3]);
    }
    for (i = 0; i < COUNT; i++) {
        for (k = 0; k < i; k++) {
            uintptr_t a = (uintptr_t)ptr[i];
            uintptr_t b = (uintptr_t)ptr[k];

            CHECK(s,
                  a == 0 || b == 0 || a + bytes[i] <= b || b + bytes[k] <= a,
                  "%p of %zu bytes overlaps %p of %zu", ptr[i], bytes[i],
                  ptr[k], bytes[k]);
        }
    }
    for (i = 0; i < COUNT; i++) {
        k = (i * 7) % COUNT;
        give(s, ptr[k], bytes[k], alignment[k], s->streams[k % 3]);
    }
}

/* Every way to name a stream, and those that are refused. */
static void case_streams(subject *s)
{
    ccmr_stats before;
    recorder_sums sums;
    void *ptr = UNTOUCHED;
    ccmr_stream good[] = {
        NULL,          CCMR_STREAM_LEGACY,         CCMR_STREAM_PER_THREAD,
        s->streams[0], here.registered[s->device], here.blocking[s->device]};
    size_t i;

    for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        void *block = take(s, 777, 0, good[i]);

        give(s, block, 777, 0, good[i]);
        block = take(s, 777, 0, good[i]);
        settle(s, good[i]);
        give(s, block, 777, 0, CCMR_STREAM_READY);
    }
    before = figures(s);
    sums = recorder_read();
    CHECK_STATUS(
        s,
        ccmr_resource_allocate(s->resource, 256, 0, CCMR_STREAM_UNSET, &ptr),
        CCMR_ERROR_INVALID_STREAM, "allocate, unset");
    CHECK_STATUS(
        s,
        ccmr_resource_allocate(s->resource, 256, 0, CCMR_STREAM_READY, &ptr),
        CCMR_ERROR_INVALID_STREAM, "allocate, ready");
    CHECK(s, ptr == UNTOUCHED, "an output was written");
    unchanged(s, &before, &sums, "refused stream");
}

/* Rule 13: what is refused stays live, and can be given back rightly. */
static void case_refused_deallocate(subject *s)
{
    ccmr_stream stream = s->streams[0];
    void *ptr = take(s, 1000, 256, stream);
    ccmr_stats before = figures(s);
    recorder_sums sums = recorder_read();
    ccmr_resource *r = s->resource;

    if (ptr == NULL) {
        return;
    }
    CHECK_STATUS(
        s, ccmr_resource_deallocate(r, ptr, 1000, 256, CCMR_STREAM_UNSET),
        CCMR_ERROR_INVALID_STREAM, "unset stream");
    CHECK_STATUS(s, ccmr_resource_deallocate(r, ptr, 1000, 3, stream),
                 CCMR_ERROR_INVALID_ALIGNMENT, "alignment 3");
    CHECK_STATUS(s, ccmr_resource_deallocate(r, ptr, SIZE_MAX, 256, stream),
                 CCMR_ERROR_INVALID_SIZE, "SIZE_MAX bytes");
    CHECK(s,
          (ccmr_resource_deallocate)(r, (char *)ptr + 1, 1000, 256, stream) !=
              CCMR_SUCCESS,
          "a misaligned pointer was taken");
    CHECK(s,
          ccmr_resource_deallocate(r, NULL, 1000, 256, stream) != CCMR_SUCCESS,
          "NULL with 1000 bytes was taken");
    CHECK(s, ccmr_resource_deallocate(r, ptr, 0, 256, stream) != CCMR_SUCCESS,
          "a block with 0 bytes was taken");
    /* Some refusals are the leaf's, so that upstreams may have been asked. */
    sums.calls = recorder_read().calls;
    unchanged(s, &before, &sums, "refused deallocate");
    CHECK(s,
          recorder_read().live == sums.live &&
              recorder_read().deallocations == sums.deallocations,
          "an upstream took the block");
    give(s, ptr, 1000, 256, stream);
    CHECK(s, figures(s).live_bytes == before.live_bytes - 1000,
          "live after the right free is %zu", figures(s).live_bytes);
}

const conformance_case cases_basic[] = {
    {"zero bytes", case_zero_bytes},
    {"alignment is honoured", case_alignment_honoured},
    {"alignment is refused", case_alignment_refused},
    {"alignment in a fragmented resource", case_alignment_fragmented},
    {"huge sizes", case_huge_sizes},
    {"more than the device has", case_more_than_the_device},
    {"bytes and alignment come back", case_sizes_come_back},
    {"streams", case_streams},
    {"refused deallocate", case_refused_deallocate},
    {NULL, NULL},
};
