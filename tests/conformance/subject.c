/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A subject, the frame around each case, and the checks.
 */
#include "tests/conformance/conformance.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/tap.h"

#define TOLD_FAILURES 6

/* A pool that is told how large handles are, or to export them, works on the
 * ranges of the resource directly below: there it stays. */
static int needs_ranges(const char *text, const char *bar)
{
    const char *pool = strstr(text, "pool ");
    const char *option = strstr(text, " handle=");

    option = option != NULL ? option : strstr(text, " export=handle");
    return pool != NULL && pool < bar && option != NULL && option > pool &&
           option < bar && strncmp(bar, "| virtual", 9) == 0;
}

/* `recorder` goes after each '|' that is not in quotes. */
static char *with_recorders(const char *text)
{
    static const char inserted[] = "| recorder |";
    char *stack;
    const char *whole = text;
    char *to;
    int quoted = 0;

    stack = malloc(strlen(text) * (sizeof(inserted) - 1) + 1);
    if (stack == NULL) {
        return NULL;
    }
    for (to = stack; *text != '\0'; text++) {
        if (quoted && *text == '\\' && text[1] != '\0') {
            *to++ = *text++;
        } else if (*text == '"') {
            quoted = !quoted;
        } else if (!quoted && *text == '|' && !needs_ranges(whole, text)) {
            memcpy(to, inserted, sizeof(inserted) - 1);
            to += sizeof(inserted) - 1;
            continue;
        }
        *to++ = *text;
    }
    *to = '\0';
    return stack;
}

subject *subject_make(const char *text)
{
    subject *s = calloc(1, sizeof(*s));

    if (s == NULL) {
        return NULL;
    }
    s->text = text;
    s->stack = with_recorders(text);
    if (s->stack == NULL) {
        free(s);
        return NULL;
    }
    return s;
}

void subject_free(subject *s)
{
    if (s != NULL) {
        free(s->stack);
        free(s);
    }
}

int check_that(subject *s, int good, const char *file, int line,
               const char *condition, const char *format, ...)
{
    char text[768]; /* a hazard is long */
    va_list args;

    if (good) {
        return 1;
    }
    if (atomic_fetch_add(&s->failures, 1) < TOLD_FAILURES) {
        va_start(args, format);
        (void)vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        tap_diag("%s:%d: %s (%s)", file, line, text, condition);
    }
    return 0;
}

int check_status(subject *s, ccmr_status status, ccmr_status want,
                 const char *file, int line, const char *format, ...)
{
    char text[256];
    va_list args;

    if (status == want) {
        return 1;
    }
    if (atomic_fetch_add(&s->failures, 1) < TOLD_FAILURES) {
        va_start(args, format);
        (void)vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        tap_diag("%s:%d: %s: %s, should be %s%s%s", file, line, text,
                 ccmr_status_name(status), ccmr_status_name(want),
                 status != CCMR_SUCCESS ? "; last error: " : "",
                 status != CCMR_SUCCESS ? ccmr_last_error()->message : "");
    }
    return 0;
}

void subject_skip(subject *s, const char *reason)
{
    s->skip = reason;
}

void *take(subject *s, size_t bytes, size_t alignment, ccmr_stream stream)
{
    size_t mask = (alignment == 0 ? CCMR_DEFAULT_ALIGNMENT : alignment) - 1;
    void *ptr = NULL;
    ccmr_status status;

    status =
        ccmr_resource_allocate(s->resource, bytes, alignment, stream, &ptr);
    if (!CHECK_OK(s, status, "allocate %zu bytes of alignment %zu", bytes,
                  alignment)) {
        return NULL;
    }
    CHECK(s, ptr != NULL, "allocate of %zu bytes gave NULL", bytes);
    CHECK(s, ((uintptr_t)ptr & mask) == 0, "%p is not aligned to %zu", ptr,
          mask + 1);
    return ptr;
}

void give(subject *s, void *ptr, size_t bytes, size_t alignment,
          ccmr_stream stream)
{
    ccmr_status status;

    if (ptr != NULL) {
        status = ccmr_resource_deallocate(s->resource, ptr, bytes, alignment,
                                          stream);
        CHECK_OK(s, status, "deallocate %p, %zu bytes", ptr, bytes);
    }
}

ccmr_buffer *take_buffer(subject *s, size_t bytes, ccmr_stream stream)
{
    ccmr_buffer *buffer = NULL;
    ccmr_status status;

    status = ccmr_buffer_create(s->resource, bytes, NULL, stream, &buffer);
    if (!CHECK_OK(s, status, "buffer of %zu bytes", bytes)) {
        return NULL;
    }
    CHECK(s, buffer != NULL && ccmr_buffer_ptr(buffer) != NULL,
          "a buffer without memory");
    CHECK(s, ccmr_buffer_bytes(buffer) == bytes, "%zu bytes of %zu",
          ccmr_buffer_bytes(buffer), bytes);
    return buffer;
}

void drop_buffer(subject *s, ccmr_buffer *buffer)
{
    if (buffer != NULL) {
        CHECK_OK(s, ccmr_buffer_close(buffer, CCMR_STREAM_UNSET), "close");
        CHECK_OK(s, ccmr_buffer_destroy(buffer), "destroy of a buffer");
    }
}

static void fill_on_host(void *ptr, size_t bytes, uint32_t seed)
{
    uint32_t *words = ptr;
    size_t i;

    for (i = 0; i < bytes / sizeof(*words); i++) {
        words[i] = fill_word(seed);
    }
}

ccmr_buffer *view_of(subject *s, void *ptr, size_t bytes)
{
    ccmr_buffer_source source = CCMR_BUFFER_SOURCE_INIT;
    ccmr_buffer *view = NULL;

    /* Tokens are streams of this device. */
    source.device = s->device;
    CHECK_OK(s, ccmr_buffer_from_handle(ptr, bytes, &source, &view),
             "a view of %p", ptr);
    return view;
}

void fill(subject *s, void *ptr, size_t bytes, uint32_t seed,
          ccmr_stream stream)
{
    ccmr_buffer *view;

    if (ptr == NULL) {
        return;
    }
    if (!s->properties.device_accessible) {
        settle(s, stream);
        fill_on_host(ptr, bytes, seed);
        return;
    }
    view = view_of(s, ptr, bytes);
    if (view != NULL) {
        CHECK_OK(s,
                 ccmr_buffer_fill(view, 0, bytes, fill_word(seed), 4, stream),
                 "fill %zu bytes", bytes);
        CHECK_OK(s, ccmr_buffer_destroy(view), "destroy of a view");
    }
}

int orders(subject *s)
{
    if (s->properties.free_stream == CCMR_FREE_AT_ONCE) {
        subject_skip(s, "streams do not matter to this resource");
        return 0;
    }
    if (!s->properties.device_accessible) {
        subject_skip(s, "no device can use the memory");
        return 0;
    }
    return 1;
}

void settle(subject *s, ccmr_stream stream)
{
    CHECK_OK(s, ccmr_stream_synchronize(stream, s->device),
             "synchronize stream %p", (void *)stream);
}

ccmr_stats figures(subject *s)
{
    ccmr_stats stats;
    ccmr_status status;

    memset(&stats, 0x5a, sizeof(stats));
    stats.size = sizeof(stats);
    status = ccmr_resource_stats(s->resource, &stats);
    if (!CHECK_OK(s, status, "stats")) {
        memset(&stats, 0, sizeof(stats));
        return stats;
    }
    CHECK(s, stats.size == sizeof(stats), "stats changed the size member");
    if (stats.live_bytes != CCMR_BYTES_UNKNOWN) {
        CHECK(s, stats.live_bytes <= PTRDIFF_MAX, "live is %zu",
              stats.live_bytes);
        CHECK(s,
              stats.peak_live_bytes == CCMR_BYTES_UNKNOWN ||
                  (stats.exact & CCMR_STAT_PEAK_LIVE_BYTES) == 0 ||
                  stats.peak_live_bytes >= stats.live_bytes,
              "peak %zu is less than live %zu", stats.peak_live_bytes,
              stats.live_bytes);
    }
    if (stats.reserved_bytes != CCMR_BYTES_UNKNOWN &&
        stats.peak_reserved_bytes != CCMR_BYTES_UNKNOWN &&
        (stats.exact & CCMR_STAT_PEAK_RESERVED_BYTES) != 0) {
        CHECK(s, stats.peak_reserved_bytes >= stats.reserved_bytes,
              "peak reserved %zu is less than reserved %zu",
              stats.peak_reserved_bytes, stats.reserved_bytes);
    }
    CHECK(s, stats.allocations - stats.deallocations == stats.live_blocks,
          "%llu allocations, %llu deallocations, %llu live",
          (unsigned long long)stats.allocations,
          (unsigned long long)stats.deallocations,
          (unsigned long long)stats.live_blocks);
    return stats;
}

void destroy_stream(subject *s, CUstream stream)
{
    if (strstr(s->text, "streams=registered") != NULL) {
        CHECK_OK(s, ccmr_stream_retire(stream), "retire");
    }
    CHECK(s, api.cuStreamDestroy(stream) == CUDA_SUCCESS, "destroy");
}

int capture_active(ccmr_stream stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

    return api.cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
           status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

int capture_announce(ccmr_stream stream, int capturing)
{
    return ccmr_stream_set_capturing(stream, capturing) == CCMR_SUCCESS;
}

int capture_begin(subject *s, ccmr_stream stream, CUstreamCaptureMode mode)
{
    (void)capture_announce(stream, 1);
    return CHECK(s, api.cuStreamBeginCapture(stream, mode) == CUDA_SUCCESS,
                 "no capture could be begun");
}

void capture_end(subject *s, ccmr_stream stream)
{
    CUgraph graph = NULL;
    CUresult res = api.cuStreamEndCapture(stream, &graph);

    (void)capture_announce(stream, 0);
    CHECK(s, res == CUDA_SUCCESS && graph != NULL,
          "the capture ended with %d: it was disturbed", (int)res);
    if (graph != NULL) {
        (void)api.cuGraphDestroy(graph);
    }
}

/* Queries: what can be asked of any resource at any time. */
static void exercise_queries(subject *s, ccmr_stream stream,
                             void (*after)(subject *, const char *, void *),
                             void *context)
{
    ccmr_properties properties = {.size = sizeof(properties)};
    ccmr_block block = {sizeof(block), NULL, 256, 256, stream};
    ccmr_trim_result trimmed = {.size = sizeof(trimmed)};
    ccmr_stream chosen = NULL;
    ccmr_status status;
    char text[512];
    int fits;

    CHECK_OK(s, ccmr_resource_describe(s->resource, &properties), "describe");
    after(s, "describe", context);
    (void)figures(s);
    after(s, "stats", context);
    CHECK_OK(s, ccmr_resource_trim(s->resource, 0, &trimmed), "trim");
    after(s, "trim", context);
    CHECK_OK(s, ccmr_stack_print(s->resource, text, sizeof(text), NULL),
             "print");
    after(s, "print", context);
    block.ptr = text;
    CHECK_OK(s,
             ccmr_resource_choose_free_stream(s->resource, &block,
                                              CCMR_STREAM_UNSET, &chosen),
             "choose_free_stream");
    after(s, "choose_free_stream", context);
    status = ccmr_resource_would_fit(s->resource, 256, stream, &fits);
    CHECK(s, status == CCMR_SUCCESS || status == CCMR_ERROR_NOT_SUPPORTED,
          "would_fit: %s", ccmr_status_name(status));
    after(s, "would_fit", context);
    CHECK_OK(s, ccmr_resource_audit(s->resource), "audit");
    after(s, "audit", context);
    CHECK_OK(s, ccmr_stream_synchronize(stream, s->device), "synchronize");
    after(s, "synchronize", context);
}

static void exercise_buffer(subject *s, ccmr_stream stream, ccmr_stream other,
                            void (*after)(subject *, const char *, void *),
                            void *context)
{
    ccmr_buffer *buffer = take_buffer(s, 3000, stream);
    ccmr_buffer_properties properties = {.size = sizeof(properties)};
    unsigned char bytes[64] = {1, 2, 3};
    ccmr_status status;

    after(s, "buffer_create", context);
    if (buffer == NULL) {
        return;
    }
    CHECK_OK(s, ccmr_buffer_fill(buffer, 0, 3000, 0x5a, 1, stream), "fill");
    after(s, "buffer_fill", context);
    CHECK_OK(
        s, ccmr_buffer_copy_from_host(buffer, 8, bytes, sizeof(bytes), stream),
        "copy from host");
    after(s, "buffer_copy_from_host", context);
    CHECK_OK(s, ccmr_buffer_copy(buffer, 1024, buffer, 8, 64, stream), "copy");
    after(s, "buffer_copy", context);
    CHECK_OK(s, ccmr_buffer_copy_to_host(buffer, 1024, bytes, 64, stream),
             "copy to host");
    after(s, "buffer_copy_to_host", context);
    settle(s, stream);
    status = ccmr_buffer_note_use(buffer, other);
    CHECK(s,
          status == CCMR_SUCCESS ||
              (status == CCMR_ERROR_NOT_SUPPORTED &&
               s->properties.free_stream == CCMR_FREE_AT_ONCE),
          "note_use: %s", ccmr_status_name(status));
    after(s, "buffer_note_use", context);
    CHECK_OK(s, ccmr_buffer_describe(buffer, &properties), "describe");
    after(s, "buffer_describe", context);
    CHECK_OK(s, ccmr_buffer_set_stream(buffer, other), "set_stream");
    after(s, "buffer_set_stream", context);
    CHECK_OK(s, ccmr_buffer_close(buffer, CCMR_STREAM_UNSET), "close");
    after(s, "buffer_close", context);
    CHECK_OK(s, ccmr_buffer_destroy(buffer), "destroy");
    after(s, "buffer_destroy", context);
}

static void exercise_block(subject *s, ccmr_stream stream, ccmr_stream other,
                           void (*after)(subject *, const char *, void *),
                           void *context)
{
    void *ptr = take(s, 1000, 0, stream);
    void *nothing = NULL;
    ccmr_status status;

    after(s, "allocate", context);
    status = ccmr_resource_note_use(s->resource, ptr, other);
    CHECK(s, status == CCMR_SUCCESS || status == CCMR_ERROR_NOT_SUPPORTED,
          "note_use: %s", ccmr_status_name(status));
    after(s, "note_use", context);
    give(s, ptr, 1000, 0, stream);
    after(s, "deallocate", context);
    ptr = take(s, 1000, 0, stream);
    settle(s, stream);
    give(s, ptr, 1000, 0, CCMR_STREAM_READY);
    after(s, "deallocate, ready", context);
    status = ccmr_resource_allocate(s->resource, 1000, 0, CCMR_STREAM_UNSET,
                                    &nothing);
    CHECK_STATUS(s, status, CCMR_ERROR_INVALID_STREAM, "unset stream");
    after(s, "refused allocate", context);
    status = ccmr_resource_allocate(s->resource, (size_t)1 << 62, 0, stream,
                                    &nothing);
    CHECK(s, status != CCMR_SUCCESS && nothing == NULL, "2^62 bytes: %s",
          ccmr_status_name(status));
    after(s, "failed allocate", context);
}

void exercise(subject *s, int tokens,
              void (*after)(subject *s, const char *what, void *context),
              void *context)
{
    ccmr_stream registered = here.registered[s->device];

    exercise_block(s, s->streams[1], s->streams[2], after, context);
    exercise_block(s, registered, s->streams[2], after, context);
    exercise_buffer(s, s->streams[1], s->streams[2], after, context);
    exercise_buffer(s, registered, s->streams[3], after, context);
    exercise_queries(s, s->streams[1], after, context);
    if (tokens) {
        exercise_block(s, CCMR_STREAM_LEGACY, s->streams[1], after, context);
        exercise_block(s, CCMR_STREAM_PER_THREAD, registered, after, context);
        exercise_block(s, NULL, CCMR_STREAM_PER_THREAD, after, context);
        exercise_buffer(s, CCMR_STREAM_LEGACY, s->streams[1], after, context);
        exercise_buffer(s, s->streams[1], CCMR_STREAM_PER_THREAD, after,
                        context);
    }
}

/* What the simulated driver has alive that a case could leave behind. */
static ccmr_sim_census census(void)
{
    ccmr_sim_census c;

    memset(&c, 0, sizeof(c));
    c.size = sizeof(c);
    if (simulator != NULL) {
        (void)simulator->census(&c);
    }
    return c;
}

/* An own pool that was released with frees pending is destroyed when the
 * library next deals with a pool of the device and finds it empty: the driver
 * has to have seen the frees finish. */
static void end_retired_pools(const subject *s)
{
    const ccmr_device_pool_options options = {.size = sizeof(options),
                                              .own = 1};
    ccmr_resource *pool;

    (void)api.cuCtxPushCurrent(here.primary[s->device]);
    (void)api.cuCtxSynchronize();
    (void)api.cuCtxPopCurrent(&(CUcontext){NULL});
    if (ccmr_device_pool_create(s->device, &options, &pool) == CCMR_SUCCESS) {
        ccmr_resource_release(pool);
    }
}

static void compare_census(subject *s, const ccmr_sim_census *before)
{
    ccmr_sim_census now = census();

    if (now.pools != before->pools) {
        end_retired_pools(s);
        now = census();
    }

#define SAME(what)                                                            \
    CHECK(s, now.what == before->what, "%llu " #what " alive, were %llu",     \
          (unsigned long long)now.what, (unsigned long long)before->what)
    SAME(contexts);
    SAME(streams);
    SAME(events);
    SAME(pools);
    SAME(graphs);
    SAME(captures);
    SAME(plain_blocks);
    SAME(pinned_blocks);
    SAME(managed_blocks);
    SAME(registered_ranges);
    SAME(pool_blocks);
    SAME(pieces);
    SAME(ranges);
    SAME(mappings);
#undef SAME
}

/* What went wrong in the simulated driver without a call that failed. */
static void check_hazards(subject *s)
{
    ccmr_sim_hazard hazard = {.size = sizeof(hazard)};

    if (simulator == NULL || simulator->hazards() == 0) {
        return;
    }
    (void)simulator->hazard_read(0, &hazard);
    CHECK(s, 0, "%llu hazards, first: %s",
          (unsigned long long)simulator->forget_hazards(), hazard.text);
}

static void compare_recorders(subject *s)
{
    recorder_sums sums = recorder_read();

    CHECK(s, sums.violations == 0, "%s", recorder_complaint());
    CHECK(s, sums.live == 0, "%ld blocks are live in a recorder", sums.live);
    CHECK(s, sums.made == sums.destroyed,
          "%ld recorders made, %ld destroyed: references leak", sums.made,
          sums.destroyed);
}

static int set_up(subject *s, const conformance_case *c)
{
    ccmr_status status;

    s->case_name = c->name;
    s->skip = NULL;
    atomic_store(&s->failures, 0);
    recorder_reset();
    status = ccmr_stack_create(s->stack, &s->resource);
    if (!CHECK_OK(s, status, "create '%s'", s->stack)) {
        s->resource = NULL;
        return 0;
    }
    s->properties.size = sizeof(s->properties);
    status = ccmr_resource_describe(s->resource, &s->properties);
    CHECK_OK(s, status, "describe");
    s->device = s->properties.device;
    if (s->device < 0 || s->device >= WORLD_DEVICES) {
        s->device = 0;
    }
    s->streams = here.streams[s->device];
    return 1;
}

void subject_run(subject *s, const conformance_case *c)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    CUstreamCaptureMode old_mode = mode;
    ccmr_sim_census before = census();
    CUcontext context_before = NULL;
    CUcontext context_after = NULL;
    int i;

    (void)api.cuThreadExchangeStreamCaptureMode(&old_mode);
    (void)api.cuCtxGetCurrent(&context_before);
    if (set_up(s, c)) {
        c->run(s);
        ccmr_resource_release(s->resource);
        s->resource = NULL;
        for (i = 0; i < WORLD_STREAMS; i++) {
            settle(s, s->streams[i]);
            /* A stack with streams=registered has registered it. */
            (void)ccmr_stream_retire(s->streams[i]);
        }
        (void)ccmr_stream_retire(here.blocking[s->device]);
    }
    (void)api.cuCtxGetCurrent(&context_after);
    CHECK(s, context_before == context_after,
          "the current context was not restored");
    /* Puts the thread's first mode back and tells the one that it had. */
    mode = old_mode;
    (void)api.cuThreadExchangeStreamCaptureMode(&mode);
    CHECK(s, mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
          "the capture mode was not restored");
    compare_recorders(s);
    compare_census(s, &before);
    check_hazards(s);
    if (s->skip != NULL && atomic_load(&s->failures) == 0) {
        tap_skip("%s: %s: %s", s->text, c->name, s->skip);
    } else {
        tap_ok(atomic_load(&s->failures) == 0, "%s: %s", s->text, c->name);
    }
}
