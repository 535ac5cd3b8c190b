/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Capture: rule 11. Work on a capturing stream is refused, with the capture
 * still whole; nothing that is done on other streams and other threads
 * disturbs it, in any mode. Field cases D1, D2, D4.
 */
#include "tests/conformance/conformance.h"

#include "tests/support/tap.h"

static const CUstreamCaptureMode modes[] = {
    CU_STREAM_CAPTURE_MODE_GLOBAL,
    CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
    CU_STREAM_CAPTURE_MODE_RELAXED,
};
#define MODES (sizeof(modes) / sizeof(modes[0]))

static int refuses(subject *s)
{
    if (s->properties.capture != CCMR_CAPTURE_REFUSED) {
        subject_skip(s, "does not refuse capturing streams");
        return 0;
    }
    return 1;
}

/* What must be refused on the capturing stream `c`; `ptr` and `buffer` were
   allocated on stream 1 before. */
static void refused_on(subject *s, ccmr_stream c, void *ptr,
                       ccmr_buffer *buffer)
{
    ccmr_stats before = figures(s);
    recorder_sums sums = recorder_read();
    ccmr_buffer_properties properties = {.size = sizeof(properties)};
    ccmr_buffer *none = NULL;
    void *nothing = NULL;
    ccmr_status status;

    status = ccmr_resource_allocate(s->resource, 512, 0, c, &nothing);
    CHECK_STATUS(s, status, CCMR_ERROR_CAPTURING, "allocate");
    CHECK(s, capture_active(c), "allocate disturbed the capture");
    status = ccmr_resource_deallocate(s->resource, ptr, 512, 0, c);
    CHECK_STATUS(s, status, CCMR_ERROR_CAPTURING, "deallocate");
    CHECK(s, capture_active(c), "deallocate disturbed the capture");
    status = ccmr_buffer_create(s->resource, 512, NULL, c, &none);
    CHECK_STATUS(s, status, CCMR_ERROR_CAPTURING, "buffer_create");
    CHECK(s, capture_active(c), "buffer_create disturbed the capture");
    status = ccmr_buffer_close(buffer, c);
    CHECK_STATUS(s, status, CCMR_ERROR_CAPTURING, "buffer_close");
    CHECK(s, capture_active(c), "buffer_close disturbed the capture");
    status = ccmr_buffer_note_use(buffer, c);
    CHECK_STATUS(s, status, CCMR_ERROR_CAPTURING, "buffer_note_use");
    CHECK(s, capture_active(c), "buffer_note_use disturbed the capture");
    status = ccmr_stream_synchronize(c, s->device);
    CHECK_STATUS(s, status, CCMR_ERROR_CAPTURING, "synchronize");
    CHECK(s, capture_active(c), "synchronize disturbed the capture");
    IGNORE(ccmr_resource_note_use(s->resource, ptr, c));
    CHECK(s, capture_active(c), "note_use disturbed the capture");
    CHECK(s, nothing == NULL && none == NULL, "an output was written");
    CHECK_OK(s, ccmr_buffer_describe(buffer, &properties), "describe");
    CHECK(s, !properties.closed && properties.stream == s->streams[1],
          "a refusal changed the buffer");
    CHECK(s,
          figures(s).live_bytes == before.live_bytes &&
              figures(s).allocations == before.allocations &&
              figures(s).deallocations == before.deallocations,
          "a refusal was counted");
    CHECK(s, recorder_read().live == sums.live, "a refusal is live below");
}

static void case_refused(subject *s)
{
    ccmr_stream c = s->streams[0];
    size_t i;

    if (!refuses(s)) {
        return;
    }
    for (i = 0; i < MODES; i++) {
        void *ptr = take(s, 512, 0, s->streams[1]);
        ccmr_buffer *buffer = take_buffer(s, 512, s->streams[1]);
        ccmr_status status;

        if (buffer == NULL || !capture_begin(s, c, modes[i])) {
            give(s, ptr, 512, 0, s->streams[1]);
            drop_buffer(s, buffer);
            continue;
        }
        refused_on(s, c, ptr, buffer);
        if (!capture_announce(c, 1)) {
            status = ccmr_stream_register(c);
            CHECK_STATUS(s, status, CCMR_ERROR_CAPTURING, "register");
        }
        (void)ccmr_stream_retire(c);
        CHECK(s, capture_active(c), "retire disturbed the capture");
        capture_end(s, c);
        settle(s, s->streams[1]);
        give(s, ptr, 512, 0, c);
        drop_buffer(s, buffer);
    }
}

/* One capture in which memory comes and goes; `outside` was there before. */
static void served_on(subject *s, ccmr_stream c, void *outside)
{
    ccmr_buffer *buffer = NULL;
    void *small = NULL;
    void *large = NULL;

    CHECK_OK(s, ccmr_resource_allocate(s->resource, 512, 0, c, &small),
             "allocate");
    CHECK(s, capture_active(c), "allocate disturbed the capture");
    CHECK_OK(s, ccmr_resource_allocate(s->resource, 3 * MIB, 4096, c, &large),
             "allocate");
    CHECK(s, capture_active(c), "allocate disturbed the capture");
    CHECK(s, small != large && ((uintptr_t)large & 4095) == 0,
          "%p and %p were given", small, large);
    CHECK_OK(s, ccmr_buffer_create(s->resource, 4 * KIB, NULL, c, &buffer),
             "buffer_create");
    if (buffer != NULL) {
        CHECK_OK(s, ccmr_buffer_fill(buffer, 0, 4 * KIB, 7, 4, c), "fill");
        CHECK_OK(s, ccmr_buffer_close(buffer, c), "close");
        CHECK_OK(s, ccmr_buffer_destroy(buffer), "destroy");
    }
    CHECK(s, capture_active(c), "a buffer disturbed the capture");
    CHECK_OK(s, ccmr_resource_deallocate(s->resource, small, 512, 0, c),
             "deallocate");
    CHECK_OK(s, ccmr_resource_deallocate(s->resource, large, 3 * MIB, 4096, c),
             "deallocate");
    CHECK_OK(s, ccmr_resource_deallocate(s->resource, outside, 4 * KIB, 0, c),
             "deallocate of what was there before");
    CHECK(s, capture_active(c), "deallocate disturbed the capture");
    (void)ccmr_resource_trim(s->resource, 0, NULL);
    CHECK_OK(s, ccmr_resource_audit(s->resource), "audit");
    CHECK(s, capture_active(c), "trim disturbed the capture");
}

static void case_served(subject *s)
{
    ccmr_stream all[] = {s->streams[0], here.registered[s->device]};
    size_t i;

    if (s->properties.capture != CCMR_CAPTURE_RESERVE) {
        subject_skip(s, "reserves nothing for graphs");
        return;
    }
    for (i = 0; i < 2 * MODES; i++) {
        ccmr_stream c = all[i / MODES];
        void *outside = NULL;

        /* Nobody is told of it, since nobody knows the end of a graph. */
        CHECK_OK(
            s, (ccmr_resource_allocate)(s->resource, 4 * KIB, 0, c, &outside),
            "allocate");
        settle(s, c);
        if (!capture_begin(s, c, modes[i % MODES])) {
            (void)ccmr_resource_deallocate(s->resource, outside, 4 * KIB, 0,
                                           c);
            continue;
        }
        served_on(s, c, outside);
        capture_end(s, c);
        CHECK_OK(s, ccmr_resource_audit(s->resource), "audit");
        CHECK(s, figures(s).live_blocks == 0, "a block is live");
        give(s, take(s, 3 * MIB, 0, c), 3 * MIB, 0, c);
    }
}

/* The recorded stream captures when the buffer is closed without one. */
static void case_recorded_stream_captures(subject *s)
{
    ccmr_stream c = s->streams[0];
    ccmr_buffer *buffer;

    if (!refuses(s)) {
        return;
    }
    buffer = take_buffer(s, 512, c);
    if (buffer == NULL ||
        !capture_begin(s, c, CU_STREAM_CAPTURE_MODE_GLOBAL)) {
        drop_buffer(s, buffer);
        return;
    }
    CHECK_STATUS(s, ccmr_buffer_close(buffer, CCMR_STREAM_UNSET),
                 CCMR_ERROR_CAPTURING, "close");
    CHECK_STATUS(s, ccmr_buffer_destroy(buffer), CCMR_ERROR_CAPTURING,
                 "destroy");
    CHECK(s, ccmr_buffer_ptr(buffer) != NULL, "the buffer was taken apart");
    CHECK(s, capture_active(c), "the capture was disturbed");
    capture_end(s, c);
    drop_buffer(s, buffer);
}

/* Captures on registered streams are announced. */
static void case_announced(subject *s)
{
    ccmr_stream c = here.registered[s->device];
    void *ptr;
    ccmr_buffer *buffer;

    if (!refuses(s)) {
        return;
    }
    ptr = take(s, 512, 0, s->streams[1]);
    buffer = take_buffer(s, 512, s->streams[1]);
    CHECK_OK(s, ccmr_stream_set_capturing(c, 1), "set_capturing");
    if (buffer != NULL && capture_begin(s, c, CU_STREAM_CAPTURE_MODE_GLOBAL)) {
        refused_on(s, c, ptr, buffer);
        capture_end(s, c);
    }
    CHECK_OK(s, ccmr_stream_set_capturing(c, 0), "set_capturing");
    settle(s, s->streams[1]);
    give(s, ptr, 512, 0, c);
    drop_buffer(s, buffer);
}

static void expect_active(subject *s, const char *what, void *stream)
{
    CHECK(s, capture_active(stream), "%s disturbed the capture", what);
}

/* D1: everything on other streams by the capturing thread. */
static void case_beside_same_thread(subject *s)
{
    ccmr_stream c = s->streams[0];
    size_t i;

    for (i = 0; i < MODES; i++) {
        if (capture_begin(s, c, modes[i])) {
            exercise(s, 1, expect_active, c);
            capture_end(s, c);
        }
    }
}

static void *exercise_thread(void *argument)
{
    subject *s = argument;

    exercise(s, 1, expect_active, s->streams[0]);
    return NULL;
}

static void case_beside_other_thread(subject *s)
{
    ccmr_stream c = s->streams[0];
    pthread_t thread;
    size_t i;

    for (i = 0; i < MODES; i++) {
        if (capture_begin(s, c, modes[i])) {
            if (CHECK(s,
                      pthread_create(&thread, NULL, exercise_thread, s) == 0,
                      "no thread")) {
                (void)pthread_join(thread, NULL);
            }
            capture_end(s, c);
        }
    }
}

/* A whole life, set-up and destruction included, beside a capture. */
static void case_life_beside(subject *s)
{
    ccmr_stream c = s->streams[0];
    ccmr_resource *kept = s->resource;
    size_t i;

    for (i = 0; i < MODES; i++) {
        ccmr_resource *made = NULL;

        if (!capture_begin(s, c, modes[i])) {
            continue;
        }
        CHECK_OK(s, ccmr_stack_create(s->stack, &made), "create");
        CHECK(s, capture_active(c), "creation disturbed the capture");
        if (made != NULL) {
            void *ptr;

            s->resource = made;
            ptr = take(s, 100 * KIB, 0, s->streams[1]);
            CHECK(s, capture_active(c), "allocate disturbed the capture");
            give(s, ptr, 100 * KIB, 0, s->streams[1]);
            s->resource = kept;
            ccmr_resource_release(made);
            CHECK(s, capture_active(c), "release disturbed the capture");
        }
        capture_end(s, c);
    }
}

/* The legacy default stream cannot be used while a stream captures that is
   ordered with it; that must not ruin the capture. */
static void legacy_buffer_work(subject *s, ccmr_stream c, ccmr_buffer *buffer)
{
    ccmr_stream legacy = CCMR_STREAM_LEGACY;
    char host[64] = "";

    CHECK_STATUS(s, ccmr_buffer_fill(buffer, 0, 64, 1, 1, legacy),
                 CCMR_ERROR_CAPTURING, "fill on legacy");
    CHECK(s, capture_active(c), "fill disturbed the capture");
    CHECK_STATUS(s, ccmr_buffer_copy(buffer, 64, buffer, 0, 64, legacy),
                 CCMR_ERROR_CAPTURING, "copy on legacy");
    CHECK(s, capture_active(c), "copy disturbed the capture");
    CHECK_STATUS(s, ccmr_buffer_copy_to_host(buffer, 0, host, 64, legacy),
                 CCMR_ERROR_CAPTURING, "copy to host on legacy");
    CHECK(s, capture_active(c), "copy to host disturbed the capture");
    CHECK_STATUS(s, ccmr_buffer_note_use(buffer, legacy), CCMR_ERROR_CAPTURING,
                 "note_use of legacy");
    CHECK(s, capture_active(c), "note_use disturbed the capture");
    CHECK_STATUS(s, ccmr_buffer_close(buffer, legacy), CCMR_ERROR_CAPTURING,
                 "close on legacy");
    CHECK(s, capture_active(c), "close disturbed the capture");
}

static void case_legacy_beside_blocking(subject *s)
{
    ccmr_stream c = here.blocking[s->device];
    ccmr_buffer *buffer;
    ccmr_status status;
    void *ptr = NULL;

    if (!refuses(s)) {
        return;
    }
    buffer = take_buffer(s, 512, s->streams[1]);
    settle(s, s->streams[1]);
    if (buffer == NULL ||
        !capture_begin(s, c, CU_STREAM_CAPTURE_MODE_RELAXED)) {
        drop_buffer(s, buffer);
        return;
    }
    legacy_buffer_work(s, c, buffer);
    status =
        ccmr_resource_allocate(s->resource, 512, 0, CCMR_STREAM_LEGACY, &ptr);
    CHECK_STATUS(s, status, CCMR_ERROR_CAPTURING, "allocate on legacy");
    CHECK(s, capture_active(c), "the capture was disturbed");
    if (status == CCMR_SUCCESS) {
        give(s, ptr, 512, 0, CCMR_STREAM_READY);
    }
    status = ccmr_stream_synchronize(CCMR_STREAM_LEGACY, s->device);
    CHECK_STATUS(s, status, CCMR_ERROR_CAPTURING, "synchronize legacy");
    CHECK(s, capture_active(c), "the capture was disturbed");
    capture_end(s, c);
    drop_buffer(s, buffer);
}

/* D2: a capture that is invalid already is still one. */
static void case_invalid_capture(subject *s)
{
    ccmr_stream c = s->streams[0];
    CUgraph graph = NULL;
    void *ptr = NULL;
    ccmr_status status;

    if (!refuses(s) || !capture_begin(s, c, CU_STREAM_CAPTURE_MODE_GLOBAL)) {
        return;
    }
    (void)api.cuStreamSynchronize(c);
    status = ccmr_resource_allocate(s->resource, 512, 0, c, &ptr);
    CHECK_STATUS(s, status, CCMR_ERROR_CAPTURING, "allocate");
    (void)api.cuStreamEndCapture(c, &graph);
    (void)capture_announce(c, 0);
    if (graph != NULL) {
        (void)api.cuGraphDestroy(graph);
    }
    ptr = take(s, 512, 0, c);
    give(s, ptr, 512, 0, c);
}

/* Copies and fills become nodes of the graph; nothing of ours ruins it. */
static void case_buffer_work_captured(subject *s)
{
    ccmr_stream c = s->streams[0];
    ccmr_buffer *buffer = take_buffer(s, 4096, s->streams[1]);

    if (!s->properties.device_accessible) {
        drop_buffer(s, buffer);
        subject_skip(s, "not for the device");
        return;
    }
    settle(s, s->streams[1]);
    if (buffer != NULL && capture_begin(s, c, CU_STREAM_CAPTURE_MODE_GLOBAL)) {
        CHECK_OK(s, ccmr_buffer_fill(buffer, 0, 2048, 7, 4, c), "fill");
        CHECK(s, capture_active(c), "fill disturbed the capture");
        CHECK_OK(s, ccmr_buffer_copy(buffer, 2048, buffer, 0, 1024, c),
                 "copy");
        CHECK(s, capture_active(c), "copy disturbed the capture");
        capture_end(s, c);
    }
    drop_buffer(s, buffer);
}

const conformance_case cases_capture[] = {
    {"capturing stream is refused", case_refused},
    {"capturing stream is served", case_served},
    {"recorded stream captures", case_recorded_stream_captures},
    {"announced capture is refused", case_announced},
    {"beside a capture of the thread", case_beside_same_thread},
    {"beside a capture of another thread", case_beside_other_thread},
    {"made and destroyed beside a capture", case_life_beside},
    {"legacy stream beside a capture", case_legacy_beside_blocking},
    {"invalid capture", case_invalid_capture},
    {"copies and fills in a capture", case_buffer_work_captured},
    {NULL, NULL},
};
