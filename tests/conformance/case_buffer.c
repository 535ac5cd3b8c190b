/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers: their whole life over the subject. Field cases A2, B4, B7, B9.
 */
#include "tests/conformance/conformance.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/tap.h"

#define HOLD_MS 20

static ccmr_buffer_properties describe(subject *s, ccmr_buffer *buffer)
{
    ccmr_buffer_properties p;

    memset(&p, 0x5a, sizeof(p));
    p.size = sizeof(p);
    CHECK_OK(s, ccmr_buffer_describe(buffer, &p), "buffer_describe");
    return p;
}

static void case_create_close(subject *s)
{
    ccmr_buffer_options options = {sizeof(options), 64};
    ccmr_buffer *buffer = NULL;
    ccmr_buffer_properties p;

    CHECK_OK(s,
             ccmr_buffer_create(s->resource, 1000, &options, s->streams[0],
                                &buffer),
             "create");
    if (buffer == NULL) {
        return;
    }
    p = describe(s, buffer);
    CHECK(s, p.size == sizeof(p) && p.bytes == 1000 && p.alignment == 64,
          "%zu bytes of alignment %zu", p.bytes, p.alignment);
    CHECK(s, p.ptr == ccmr_buffer_ptr(buffer) && p.ptr != NULL, "pointer");
    CHECK(s, p.resource == s->resource, "resource");
    CHECK(s, p.stream == s->streams[0], "stream");
    CHECK(s, p.device == s->properties.device, "device %d", p.device);
    CHECK(s,
          p.device_accessible == s->properties.device_accessible &&
              p.host_accessible == s->properties.host_accessible &&
              p.managed == s->properties.managed,
          "what the memory is");
    CHECK(s, p.owning == 1 && p.closed == 0, "owning, closed");
    CHECK(s, figures(s).live_bytes == 1000, "live");
    CHECK_OK(s, ccmr_buffer_close(buffer, s->streams[0]), "close");
    CHECK(s, figures(s).live_bytes == 0, "live after close");
    CHECK(s, ccmr_buffer_ptr(buffer) == NULL && ccmr_buffer_bytes(buffer) == 0,
          "a closed buffer has memory");
    p = describe(s, buffer);
    CHECK(s, p.closed == 1 && p.ptr == NULL && p.bytes == 0,
          "a closed buffer's properties");
    CHECK_OK(s, ccmr_buffer_close(buffer, CCMR_STREAM_UNSET), "close again");
    CHECK_OK(s, ccmr_buffer_close(buffer, CCMR_STREAM_READY), "and again");
    CHECK_OK(s, ccmr_buffer_destroy(buffer), "destroy");
}

/* Every other call on a closed buffer is refused. */
static void case_closed(subject *s)
{
    ccmr_buffer *buffer = take_buffer(s, 1000, s->streams[0]);
    ccmr_buffer *open = take_buffer(s, 1000, s->streams[0]);
    ccmr_stream stream = s->streams[0];
    char host[16] = "";
    void *ptr = NULL;

    if (buffer == NULL || open == NULL) {
        drop_buffer(s, buffer);
        drop_buffer(s, open);
        return;
    }
    CHECK_OK(s, ccmr_buffer_close(buffer, stream), "close");
    CHECK_STATUS(s, ccmr_buffer_set_stream(buffer, stream), CCMR_ERROR_CLOSED,
                 "set_stream");
    CHECK_STATUS(s, ccmr_buffer_note_use(buffer, stream), CCMR_ERROR_CLOSED,
                 "note_use");
    CHECK_STATUS(s, ccmr_buffer_fill(buffer, 0, 0, 0, 1, stream),
                 CCMR_ERROR_CLOSED, "fill");
    CHECK_STATUS(s, ccmr_buffer_copy(buffer, 0, open, 0, 0, stream),
                 CCMR_ERROR_CLOSED, "copy to");
    CHECK_STATUS(s, ccmr_buffer_copy(open, 0, buffer, 0, 0, stream),
                 CCMR_ERROR_CLOSED, "copy from");
    CHECK_STATUS(s, ccmr_buffer_copy_to_host(buffer, 0, host, 0, stream),
                 CCMR_ERROR_CLOSED, "copy to host");
    CHECK_STATUS(s, ccmr_buffer_copy_from_host(buffer, 0, host, 0, stream),
                 CCMR_ERROR_CLOSED, "copy from host");
    CHECK_STATUS(s, ccmr_buffer_disown(buffer, &ptr), CCMR_ERROR_CLOSED,
                 "disown");
    CHECK(s, ptr == NULL, "an output was written");
    CHECK_OK(s, ccmr_buffer_destroy(buffer), "destroy");
    drop_buffer(s, open);
}

/* A refused close leaves the buffer open and whole. */
static void case_refused_close(subject *s)
{
    ccmr_buffer *buffer = take_buffer(s, 1000, s->streams[0]);
    ccmr_buffer_properties before;
    ccmr_buffer_properties after;

    if (buffer == NULL) {
        return;
    }
    before = describe(s, buffer);
    CHECK_STATUS(s, ccmr_buffer_set_stream(buffer, CCMR_STREAM_UNSET),
                 CCMR_ERROR_INVALID_STREAM, "set_stream of none");
    CHECK(s, ccmr_buffer_set_stream(buffer, CCMR_STREAM_READY) != CCMR_SUCCESS,
          "set_stream ready");
    CHECK(s, ccmr_buffer_note_use(buffer, CCMR_STREAM_UNSET) != CCMR_SUCCESS,
          "note_use of none");
    after = describe(s, buffer);
    CHECK(s, memcmp(&before, &after, sizeof(before)) == 0,
          "a refusal changed the buffer");
    CHECK_OK(s, ccmr_buffer_set_stream(buffer, s->streams[1]), "set_stream");
    CHECK(s, describe(s, buffer).stream == s->streams[1], "stream");
    settle(s, s->streams[0]);
    drop_buffer(s, buffer);
}

static void case_close_ready(subject *s)
{
    ccmr_buffer *buffer = take_buffer(s, 1000, s->streams[0]);

    settle(s, s->streams[0]);
    CHECK_OK(s, ccmr_buffer_close(buffer, CCMR_STREAM_READY), "close");
    CHECK_OK(s, ccmr_buffer_destroy(buffer), "destroy");
    CHECK(s, figures(s).live_blocks == 0, "live");
}

/* All ranges, in and out of bounds; contents byte by byte. */
static void case_copies(subject *s)
{
    enum { BYTES = 1000 };
    ccmr_stream stream = s->streams[0];
    ccmr_buffer *a = take_buffer(s, BYTES, stream);
    ccmr_buffer *b = take_buffer(s, BYTES, stream);
    unsigned char in[BYTES];
    unsigned char out[BYTES];
    int i;

    if (a == NULL || b == NULL) {
        drop_buffer(s, a);
        drop_buffer(s, b);
        return;
    }
    for (i = 0; i < BYTES; i++) {
        in[i] = (unsigned char)(i * 7 + i / 256);
    }
    CHECK_OK(s, ccmr_buffer_copy_from_host(a, 0, in, BYTES, stream), "in");
    CHECK_OK(s, ccmr_buffer_copy(b, 100, a, 300, 200, stream), "a to b");
    CHECK_OK(s, ccmr_buffer_copy(b, BYTES, a, BYTES, 0, stream), "0 bytes");
    CHECK_OK(s, ccmr_buffer_copy_from_host(b, 0, in + 13, 100, stream), "in");
    CHECK_OK(s, ccmr_buffer_copy_to_host(b, 0, out, 300, stream), "out");
    settle(s, stream);
    CHECK(s, memcmp(out, in + 13, 100) == 0, "the first 100 bytes");
    CHECK(s, memcmp(out + 100, in + 300, 200) == 0, "the next 200 bytes");

#define REFUSED(call)                                                         \
    CHECK_STATUS(s, (call), CCMR_ERROR_OUT_OF_RANGE, "%s", #call)
    REFUSED(ccmr_buffer_copy(b, 0, a, 0, BYTES + 1, stream));
    REFUSED(ccmr_buffer_copy(b, 1, a, 0, BYTES, stream));
    REFUSED(ccmr_buffer_copy(b, 0, a, 1, BYTES, stream));
    REFUSED(ccmr_buffer_copy(b, SIZE_MAX, a, 0, 2, stream));
    REFUSED(ccmr_buffer_copy(b, 0, a, SIZE_MAX - 1, 3, stream));
    REFUSED(ccmr_buffer_copy(b, BYTES + 1, a, 0, 0, stream));
    REFUSED(ccmr_buffer_copy_to_host(b, 1, out, BYTES, stream));
    REFUSED(ccmr_buffer_copy_to_host(b, SIZE_MAX, out, 2, stream));
    REFUSED(ccmr_buffer_copy_from_host(b, 1, in, BYTES, stream));
    REFUSED(ccmr_buffer_copy_from_host(b, 2, in, SIZE_MAX - 1, stream));
    REFUSED(ccmr_buffer_fill(b, 1, BYTES, 0, 1, stream));
    REFUSED(ccmr_buffer_fill(b, SIZE_MAX - 3, 8, 0, 4, stream));
#undef REFUSED
    CHECK(s,
          ccmr_buffer_copy(b, 0, a, 0, 8, CCMR_STREAM_UNSET) != CCMR_SUCCESS,
          "a copy on no stream");
    CHECK(s,
          ccmr_buffer_copy(b, 0, a, 0, 8, CCMR_STREAM_READY) != CCMR_SUCCESS,
          "a copy that is ready");
    drop_buffer(s, a);
    drop_buffer(s, b);
}

static void case_fills(subject *s)
{
    static const unsigned bad_widths[] = {0, 3, 8, 5};
    ccmr_stream stream = s->streams[0];
    ccmr_buffer *buffer = take_buffer(s, 256, stream);
    unsigned char out[256];
    unsigned char want[256];
    size_t i;

    if (buffer == NULL) {
        return;
    }
    memset(want, 0x11, 256);
    for (i = 64; i < 128; i += 2) {
        want[i] = 0x34;
        want[i + 1] = 0x12;
    }
    memcpy(want + 128, "\xef\xbe\xad\xde\xef\xbe\xad\xde", 8);
    want[255] = 0xff;
    CHECK_OK(s, ccmr_buffer_fill(buffer, 0, 256, 0x11, 1, stream), "bytes");
    CHECK_OK(s, ccmr_buffer_fill(buffer, 64, 64, 0x1234, 2, stream), "pairs");
    CHECK_OK(s, ccmr_buffer_fill(buffer, 128, 8, 0xdeadbeef, 4, stream),
             "words");
    CHECK_OK(s, ccmr_buffer_fill(buffer, 255, 1, 0xff, 1, stream), "last");
    CHECK_OK(s, ccmr_buffer_fill(buffer, 256, 0, 0xff, 1, stream), "none");
    CHECK_OK(s, ccmr_buffer_copy_to_host(buffer, 0, out, 256, stream), "out");
    settle(s, stream);
    for (i = 0; i < 256 && out[i] == want[i]; i++) {
    }
    CHECK(s, i == 256, "byte %zu is 0x%02x, should be 0x%02x", i,
          i < 256 ? out[i] : 0, i < 256 ? want[i] : 0);
    for (i = 0; i < 4; i++) {
        CHECK_STATUS(
            s, ccmr_buffer_fill(buffer, 0, 120, 0, bad_widths[i], stream),
            CCMR_ERROR_INVALID_ARGUMENT, "width %u", bad_widths[i]);
    }
    CHECK(s, ccmr_buffer_fill(buffer, 1, 2, 0, 2, stream) != CCMR_SUCCESS,
          "an odd offset of pairs");
    CHECK(s, ccmr_buffer_fill(buffer, 0, 3, 0, 2, stream) != CCMR_SUCCESS,
          "an odd length of pairs");
    CHECK(s, ccmr_buffer_fill(buffer, 2, 4, 0, 4, stream) != CCMR_SUCCESS,
          "half an offset of words");
    CHECK_STATUS(s, ccmr_buffer_fill(buffer, 0, 4, 0x100, 1, stream),
                 CCMR_ERROR_INVALID_ARGUMENT, "0x100 as a byte");
    CHECK_STATUS(s, ccmr_buffer_fill(buffer, 0, 4, 0x10000, 2, stream),
                 CCMR_ERROR_INVALID_ARGUMENT, "0x10000 as a pair");
    drop_buffer(s, buffer);
}

static void count_release(void *owner)
{
    (*(int *)owner)++;
}

static void case_from_handle(subject *s)
{
    ccmr_buffer_source source = CCMR_BUFFER_SOURCE_INIT;
    ccmr_buffer *buffer = NULL;
    ccmr_buffer_properties p;
    int released = 0;
    void *ptr = take(s, 2000, 0, s->streams[0]);

    /* A plain reference. */
    CHECK_OK(s, ccmr_buffer_from_handle(ptr, 2000, NULL, &buffer), "plain");
    p = describe(s, buffer);
    CHECK(s,
          p.owning == 0 && p.resource == NULL && p.ptr == ptr &&
              p.bytes == 2000,
          "a reference's properties");
    if (s->properties.device_accessible) {
        CHECK_OK(s, ccmr_buffer_fill(buffer, 0, 2000, 1, 1, s->streams[0]),
                 "fill through a reference");
    }
    drop_buffer(s, buffer);
    CHECK(s, figures(s).live_blocks == 1, "a reference freed the block");

    /* Borrowed. */
    source.release = count_release;
    source.owner = &released;
    CHECK_OK(s, ccmr_buffer_from_handle(ptr, 2000, &source, &buffer),
             "borrowed");
    CHECK(s, released == 0, "released at once");
    CHECK_OK(s, ccmr_buffer_close(buffer, CCMR_STREAM_UNSET), "close");
    CHECK(s, released == 1, "released %d times", released);
    CHECK_OK(s, ccmr_buffer_close(buffer, CCMR_STREAM_UNSET), "close again");
    CHECK_OK(s, ccmr_buffer_destroy(buffer), "destroy");
    CHECK(s, released == 1, "released %d times", released);
    CHECK_OK(s, ccmr_buffer_from_handle(ptr, 2000, &source, &buffer),
             "borrowed again");
    CHECK_OK(s, ccmr_buffer_disown(buffer, NULL), "disown");
    CHECK_OK(s, ccmr_buffer_destroy(buffer), "destroy");
    CHECK(s, released == 1, "disowned, and released %d times", released);

    /* B9: owned; the stream must be said here. */
    source = (ccmr_buffer_source)CCMR_BUFFER_SOURCE_INIT;
    source.resource = s->resource;
    buffer = NULL;
    CHECK_STATUS(s, ccmr_buffer_from_handle(ptr, 2000, &source, &buffer),
                 CCMR_ERROR_INVALID_STREAM, "owned, no stream");
    source.stream = s->streams[0];
    source.release = count_release;
    source.owner = &released;
    CHECK_STATUS(s, ccmr_buffer_from_handle(ptr, 2000, &source, &buffer),
                 CCMR_ERROR_INVALID_ARGUMENT, "owned and borrowed");
    CHECK(s, buffer == NULL && released == 1, "something was consumed");
    source.release = NULL;
    source.owner = NULL;
    CHECK_OK(s, ccmr_buffer_from_handle(ptr, 2000, &source, &buffer), "owned");
    p = describe(s, buffer);
    CHECK(s,
          p.owning == 1 && p.resource == s->resource &&
              p.stream == s->streams[0] &&
              p.alignment == CCMR_DEFAULT_ALIGNMENT,
          "an owner's properties");
    drop_buffer(s, buffer);
    CHECK(s, figures(s).live_blocks == 0, "an owner did not free");
}

/* A use noted on another stream is waited for by the free. */
static void case_note_use(subject *s)
{
    CUstream external = NULL;
    ccmr_buffer *buffer;
    ccmr_buffer *next;
    unsigned char out[1024];
    hold held;
    size_t i;

    if (!orders(s)) {
        return;
    }
    buffer = take_buffer(s, sizeof(out), s->streams[0]);
    (void)api.cuCtxPushCurrent(here.primary[s->device]);
    CHECK(s,
          api.cuStreamCreate(&external, CU_STREAM_NON_BLOCKING) ==
              CUDA_SUCCESS,
          "no stream");
    settle(s, s->streams[0]);
    if (buffer == NULL || hold_begin(&held, s->streams[1]) != 0) {
        CHECK(s, 0, "the stream could not be held");
    } else {
        CUevent event = NULL;

        (void)api.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
        (void)api.cuEventRecord(event, s->streams[1]);
        (void)api.cuStreamWaitEvent(external, event, 0);
        (void)api.cuEventDestroy(event);
        CHECK_OK(s, ccmr_buffer_fill(buffer, 0, sizeof(out), 1, 1, external),
                 "use elsewhere");
        CHECK_OK(s, ccmr_buffer_note_use(buffer, external), "note_use");
        /* B4: nothing touches the stream later. */
        CHECK_OK(s, ccmr_stream_retire(external), "retire");
        CHECK(s, api.cuStreamDestroy(external) == CUDA_SUCCESS, "destroy");
        external = NULL;
        hold_end_after(&held, HOLD_MS);
        drop_buffer(s, buffer);
        next = take_buffer(s, sizeof(out), s->streams[0]);
        CHECK_OK(s,
                 ccmr_buffer_fill(next, 0, sizeof(out), 2, 1, s->streams[0]),
                 "fill");
        /* Runs now, or, if the use is waited for, when the hold has ended. */
        settle(s, s->streams[0]);
        hold_end(&held);
        settle(s, s->streams[1]);
        CHECK_OK(
            s,
            ccmr_buffer_copy_to_host(next, 0, out, sizeof(out), s->streams[0]),
            "out");
        settle(s, s->streams[0]);
        for (i = 0; i < sizeof(out) && out[i] == 2; i++) {
        }
        CHECK(s, i == sizeof(out),
              "byte %zu is %d: the use was not waited "
              "for",
              i, i < sizeof(out) ? out[i] : 0);
        drop_buffer(s, next);
    }
    if (external != NULL) {
        destroy_stream(s, external);
    }
    (void)api.cuCtxPopCurrent(&(CUcontext){NULL});
}

/* A2: closed on a stream, ordered after the registered recorded one. */
static void case_close_adds_edge(subject *s)
{
    ccmr_stream recorded = here.registered[s->device];
    ccmr_stream other = s->streams[1];
    ccmr_buffer *buffer;
    ccmr_buffer *next;
    unsigned char out[1024];
    hold held;
    size_t i;

    if (!orders(s)) {
        return;
    }
    buffer = take_buffer(s, sizeof(out), recorded);
    settle(s, recorded);
    (void)api.cuCtxPushCurrent(here.primary[s->device]);
    if (buffer == NULL || hold_begin(&held, recorded) != 0) {
        CHECK(s, 0, "the stream could not be held");
    } else {
        CHECK_OK(s, ccmr_buffer_fill(buffer, 0, sizeof(out), 1, 1, recorded),
                 "fill");
        hold_end_after(&held, HOLD_MS);
        CHECK_OK(s, ccmr_buffer_close(buffer, other), "close");
        CHECK_OK(s, ccmr_buffer_destroy(buffer), "destroy");
        next = take_buffer(s, sizeof(out), other);
        CHECK_OK(s, ccmr_buffer_fill(next, 0, sizeof(out), 2, 1, other),
                 "fill");
        settle(s, other);
        hold_end(&held);
        settle(s, recorded);
        CHECK_OK(s, ccmr_buffer_copy_to_host(next, 0, out, sizeof(out), other),
                 "out");
        settle(s, other);
        for (i = 0; i < sizeof(out) && out[i] == 2; i++) {
        }
        CHECK(s, i == sizeof(out), "byte %zu is %d: no edge was added", i,
              i < sizeof(out) ? out[i] : 0);
        drop_buffer(s, next);
    }
    (void)api.cuCtxPopCurrent(&(CUcontext){NULL});
}

const conformance_case cases_buffer[] = {
    {"buffer: create and close", case_create_close},
    {"buffer: closed", case_closed},
    {"buffer: refusals change nothing", case_refused_close},
    {"buffer: close when ready", case_close_ready},
    {"buffer: copies", case_copies},
    {"buffer: fills", case_fills},
    {"buffer: from a handle", case_from_handle},
    {"buffer: noted uses", case_note_use},
    {"buffer: close on another stream", case_close_adds_edge},
    {NULL, NULL},
};
