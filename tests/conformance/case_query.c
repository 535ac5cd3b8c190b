/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a resource tells about itself: describe, stats, trim, options, the
 * stack as text, the stream that a free would use. Field cases B1, I10, J2.
 */
#include "tests/conformance/conformance.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/tap.h"

static int is_boolean(int value)
{
    return value == 0 || value == 1;
}

static void case_describe(subject *s)
{
    ccmr_properties p = {.size = sizeof(p)};
    const char *name = ccmr_resource_name(s->resource);

    CHECK_OK(s, ccmr_resource_describe(s->resource, &p), "describe");
    CHECK(s, p.size == sizeof(p), "size is %zu", p.size);
    CHECK(s, p.name != NULL && name != NULL && strcmp(p.name, name) == 0,
          "name is %s and %s", p.name, name);
    CHECK(s, p.device >= -1 && p.device < here.devices, "device %d", p.device);
    CHECK(s,
          is_boolean(p.device_accessible) && is_boolean(p.managed) &&
              is_boolean(p.host_accessible) && is_boolean(p.free_may_block),
          "a truth that is neither 0 nor 1");
    CHECK(s, p.device_accessible || p.host_accessible,
          "nobody can use the memory");
    CHECK(s, p.max_alignment >= CCMR_DEFAULT_ALIGNMENT, "max_alignment %zu",
          p.max_alignment);
    CHECK(s, (int)p.free_stream >= 0 && p.free_stream <= CCMR_FREE_AT_ONCE,
          "free_stream %d", (int)p.free_stream);
    CHECK(s, (int)p.capture >= 0 && p.capture <= CCMR_CAPTURE_IRRELEVANT,
          "capture %d", (int)p.capture);
    CHECK(s, p.access == CCMR_ACCESS_HOST || p.access == CCMR_ACCESS_STREAM,
          "access %d", (int)p.access);
}

/* Structs of other sizes: exactly what fits is written. */
static void case_struct_sizes(subject *s)
{
    struct {
        ccmr_properties p;
        char beyond[64];
    } larger;
    ccmr_properties *exact = malloc(sizeof(*exact));
    ccmr_stats short_stats = {.size = sizeof(size_t)};
    size_t i;

    memset(&larger, 0x5a, sizeof(larger));
    larger.p.size = sizeof(larger);
    CHECK_OK(s, ccmr_resource_describe(s->resource, &larger.p),
             "describe to a newer struct");
    CHECK(s, larger.p.size == sizeof(larger), "size was changed");
    for (i = 0; i < sizeof(larger.beyond) && larger.beyond[i] == 0; i++) {
    }
    CHECK(s, i == sizeof(larger.beyond),
          "what is not known was not set to 0 (byte %zu)", i);
    CHECK_STATUS(s, ccmr_resource_stats(s->resource, &short_stats),
                 CCMR_ERROR_INVALID_STRUCT, "stats to a size alone");
    if (exact != NULL) {
        exact->size = sizeof(*exact);
        CHECK_OK(s, ccmr_resource_describe(s->resource, exact), "describe");
        free(exact);
    }
}

static void case_stats(subject *s)
{
    ccmr_stats before = figures(s);
    ccmr_stats now;
    void *ptr[4];
    void *nothing = NULL;
    int i;

    CHECK(s, before.live_blocks == 0 && before.live_bytes == 0,
          "a fresh resource has live blocks");
    for (i = 0; i < 4; i++) {
        ptr[i] = take(s, 1000 + (size_t)i, 0, s->streams[0]);
    }
    now = figures(s);
    CHECK(s, now.live_bytes == 4006, "live is %zu, should be 4006",
          now.live_bytes);
    CHECK(s, now.live_blocks == 4 && now.allocations == 4, "%llu live of %llu",
          (unsigned long long)now.live_blocks,
          (unsigned long long)now.allocations);
    CHECK(s,
          now.reserved_bytes == CCMR_BYTES_UNKNOWN ||
              (now.exact & CCMR_STAT_RESERVED_BYTES) == 0 ||
              now.reserved_bytes >= now.live_bytes,
          "reserved %zu is less than live", now.reserved_bytes);
    CHECK(s,
          ccmr_resource_allocate(s->resource, (size_t)1 << 62, 0,
                                 s->streams[0], &nothing) != CCMR_SUCCESS,
          "2^62 bytes");
    for (i = 0; i < 4; i++) {
        give(s, ptr[i], 1000 + (size_t)i, 0, s->streams[0]);
    }
    now = figures(s);
    CHECK(s, now.live_bytes == 0 && now.live_blocks == 0,
          "%zu bytes are live at the end", now.live_bytes);
    CHECK(s, now.deallocations == 4, "%llu frees",
          (unsigned long long)now.deallocations);
    CHECK(s, now.failures >= 1, "the failure was not counted");
    if ((now.exact & CCMR_STAT_PEAK_LIVE_BYTES) != 0) {
        CHECK(s, now.peak_live_bytes == 4006, "exact peak is %zu",
              now.peak_live_bytes);
    }
}

/* Trims of what is full, empty and in between; I10 must not hang. */
static void case_trim(subject *s)
{
    ccmr_trim_result result = {.size = sizeof(result)};
    ccmr_stats now;
    void *ptr[8];
    int i;

    CHECK_OK(s, ccmr_resource_trim(s->resource, 0, &result), "trim of none");
    CHECK_OK(s, ccmr_resource_trim(s->resource, SIZE_MAX, NULL),
             "trim that keeps all");
    for (i = 0; i < 8; i++) {
        ptr[i] = take(s, 64 * KIB, 0, s->streams[0]);
    }
    CHECK_OK(s, ccmr_resource_trim(s->resource, 0, &result), "trim of full");
    CHECK(s, figures(s).live_bytes == 512 * KIB, "trim took live blocks: %zu",
          figures(s).live_bytes);
    for (i = 0; i < 8; i++) {
        give(s, ptr[i], 64 * KIB, 0, s->streams[0]);
    }
    settle(s, s->streams[0]);
    CHECK_OK(s, ccmr_resource_trim(s->resource, 0, &result), "trim of empty");
    CHECK(s, result.size == sizeof(result), "size was changed");
    now = figures(s);
    /* A pool that others use as well may keep what is theirs. */
    CHECK(s,
          now.reserved_bytes == CCMR_BYTES_UNKNOWN ||
              now.reserved_bytes < 64 * MIB,
          "%zu bytes are reserved after a trim of all", now.reserved_bytes);
    CHECK_OK(s, ccmr_resource_trim(s->resource, 0, &result), "second trim");
}

/* `requested`, else the allocation stream, else it cannot be said. */
static void case_choose_free_stream(subject *s)
{
    ccmr_block block = {sizeof(block), NULL, 512, 256, s->streams[0]};
    ccmr_stream chosen = NULL;
    ccmr_status status;
    ccmr_resource *r = s->resource;

    block.ptr = take(s, 512, 0, s->streams[0]);
    CHECK_OK(s,
             ccmr_resource_choose_free_stream(r, &block, CCMR_STREAM_UNSET,
                                              &chosen),
             "nothing requested");
    if (s->properties.free_stream == CCMR_FREE_ON_ALLOCATION_STREAM ||
        s->properties.free_stream == CCMR_FREE_SYNCHRONIZES) {
        CHECK(s, chosen == s->streams[0], "%p instead of %p", (void *)chosen,
              (void *)s->streams[0]);
    }
    CHECK(s, chosen != CCMR_STREAM_UNSET && chosen != NULL,
          "no stream was chosen");
    CHECK_OK(
        s, ccmr_resource_choose_free_stream(r, &block, s->streams[1], &chosen),
        "requested");
    CHECK(s, chosen == s->streams[1], "the request was not heard");
    CHECK_OK(s,
             ccmr_resource_choose_free_stream(r, &block, CCMR_STREAM_READY,
                                              &chosen),
             "ready");
    block.allocation_stream = CCMR_STREAM_UNSET;
    chosen = s->streams[2];
    status = ccmr_resource_choose_free_stream(r, &block, CCMR_STREAM_UNSET,
                                              &chosen);
    if (s->properties.free_stream != CCMR_FREE_AT_ONCE) {
        CHECK_STATUS(s, status, CCMR_ERROR_INVALID_STREAM,
                     "nothing requested, nothing known");
        CHECK(s, chosen == s->streams[2], "an output was written");
    }
    give(s, block.ptr, 512, 0, s->streams[0]);
}

/* B1: closed without a stream, a buffer is freed where the resource says. */
static void case_unset_close(subject *s)
{
    ccmr_resource *top = NULL;
    ccmr_resource *kept = s->resource;
    ccmr_buffer *buffer;
    ccmr_block block = {sizeof(block), NULL, 512, 256, s->streams[2]};
    ccmr_stream chosen = NULL;

    CHECK_OK(s, ccmr_stack_create_over("recorder", s->resource, &top), "top");
    if (top == NULL) {
        return;
    }
    s->resource = top;
    buffer = take_buffer(s, 512, s->streams[2]);
    CHECK(s, recorder_last_allocate() != NULL, "nothing was allocated");
    block.ptr = ccmr_buffer_ptr(buffer);
    CHECK_OK(s,
             ccmr_resource_choose_free_stream(top, &block, CCMR_STREAM_UNSET,
                                              &chosen),
             "choose");
    drop_buffer(s, buffer);
    CHECK(s, figures(s).live_blocks == 0, "not freed");
    if (s->properties.free_stream == CCMR_FREE_ON_ALLOCATION_STREAM) {
        CHECK(s, chosen == s->streams[2], "chosen %p", (void *)chosen);
    }
    ccmr_resource_release(top);
    s->resource = kept;
}

static void case_print(subject *s)
{
    ccmr_resource *again = NULL;
    char text[1024] = "";
    char second[1024] = "";
    char cut[8];
    size_t length = 0;
    size_t length_of_cut = 0;

    CHECK_OK(s, ccmr_stack_print(s->resource, text, sizeof(text), &length),
             "print");
    CHECK(s, strlen(text) == length, "length %zu of '%s'", length, text);
    CHECK_OK(s, ccmr_stack_print(s->resource, NULL, 0, &length_of_cut),
             "print to nowhere");
    CHECK(s, length_of_cut == length, "length is %zu, then %zu", length,
          length_of_cut);
    memset(cut, 'x', sizeof(cut));
    CHECK_OK(s, ccmr_stack_print(s->resource, cut, 4, &length_of_cut), "cut");
    CHECK(s, cut[3] == '\0' && cut[4] == 'x' && strncmp(cut, text, 3) == 0,
          "cut to '%.8s'", cut);
    /* The first one goes: a file may be named in both. */
    ccmr_resource_release(s->resource);
    s->resource = NULL;
    if (!CHECK_OK(s, ccmr_stack_create(text, &again), "create '%s'", text)) {
        return;
    }
    s->resource = again;
    CHECK_OK(s, ccmr_stack_print(again, second, sizeof(second), NULL),
             "print again");
    CHECK(s, strcmp(text, second) == 0, "'%s' became '%s'", text, second);
}

static const ccmr_kind *kind_named(const char *name)
{
    const ccmr_kind *kind = NULL;
    size_t i;

    for (i = 0; ccmr_kind_get(i, &kind) == CCMR_SUCCESS; i++) {
        if (strcmp(kind->name, name) == 0) {
            return kind;
        }
    }
    return NULL;
}

static void check_options(subject *s, ccmr_resource *resource)
{
    const ccmr_kind *kind = kind_named(ccmr_resource_name(resource));
    const ccmr_option *option;
    char text[512];
    char cut[2];
    size_t length;

    CHECK_STATUS(s,
                 ccmr_resource_option_get(resource, "no_such_option", text,
                                          sizeof(text), NULL),
                 CCMR_ERROR_UNKNOWN_NAME, "unknown option");
    CHECK_STATUS(s, ccmr_resource_option_set(resource, "no_such_option", "1"),
                 CCMR_ERROR_UNKNOWN_NAME, "set of an unknown option");
    if (kind == NULL) {
        return;
    }
    for (option = kind->options; option->name != NULL; option++) {
        ccmr_status status = ccmr_resource_option_get(
            resource, option->name, text, sizeof(text), &length);

        if (!CHECK_OK(s, status, "option %s of %s", option->name,
                      kind->name)) {
            continue;
        }
        CHECK(s, strlen(text) == length, "%s: length %zu of '%s'",
              option->name, length, text);
        CHECK_OK(s,
                 ccmr_resource_option_get(resource, option->name, cut,
                                          sizeof(cut), &length),
                 "option %s, cut", option->name);
        CHECK(s, strlen(text) == length, "%s: length of a cut", option->name);
        CHECK_OK(
            s,
            ccmr_resource_option_get(resource, option->name, NULL, 0, &length),
            "option %s to nowhere", option->name);
        /* Setting what is there is either done or not to be had. */
        status = ccmr_resource_option_set(resource, option->name, text);
        CHECK(s, status == CCMR_SUCCESS || status == CCMR_ERROR_NOT_SUPPORTED,
              "set of %s to '%s': %s", option->name, text,
              ccmr_status_name(status));
    }
}

/* Walks every level by its upstreams. */
static void walk(subject *s, ccmr_resource *resource, int depth)
{
    ccmr_resource *upstream = NULL;
    ccmr_status status;
    size_t i;

    if (!CHECK(s, depth < 32, "the stack has no end")) {
        return;
    }
    check_options(s, resource);
    for (i = 0;; i++) {
        status = ccmr_resource_upstream(resource, i, &upstream);
        if (status != CCMR_SUCCESS) {
            CHECK_STATUS(s, status, CCMR_ERROR_OUT_OF_RANGE, "upstream %zu",
                         i);
            break;
        }
        CHECK(s, upstream != NULL && upstream != resource, "upstream %zu", i);
        walk(s, upstream, depth + 1);
    }
    CHECK_STATUS(s, ccmr_resource_upstream(resource, SIZE_MAX, &upstream),
                 CCMR_ERROR_OUT_OF_RANGE, "upstream SIZE_MAX");
}

static void case_options_and_upstreams(subject *s)
{
    walk(s, s->resource, 0);
}

/* Uses that are noted are waited for, where the resource can. */
static void case_note_use(subject *s)
{
    void *ptr = take(s, 512, 0, s->streams[0]);
    ccmr_status status;

    status = ccmr_resource_note_use(s->resource, ptr, s->streams[1]);
    CHECK(s, status == CCMR_SUCCESS || status == CCMR_ERROR_NOT_SUPPORTED,
          "note_use: %s", ccmr_status_name(status));
    status = ccmr_resource_hold_until_free(s->resource, ptr,
                                           here.registered[s->device]);
    CHECK(s, status == CCMR_SUCCESS || status == CCMR_ERROR_NOT_SUPPORTED,
          "hold_until_free: %s", ccmr_status_name(status));
    CHECK(s,
          ccmr_resource_note_use(s->resource, ptr, CCMR_STREAM_UNSET) !=
              CCMR_SUCCESS,
          "note_use of no stream");
    give(s, ptr, 512, 0, s->streams[0]);
}

/* Limits on top: exact to the byte, and said in the detail. */
static void case_limit(subject *s)
{
    static const size_t quarter = 256 * KIB;
    void *ptr[4];
    void *nothing = NULL;
    const ccmr_error_detail *detail;
    int i;

    if (strcmp(ccmr_resource_name(s->resource), "limiting") != 0) {
        subject_skip(s, "no limit on top");
        return;
    }
    CHECK_OK(s, ccmr_resource_option_set(s->resource, "bytes", "1MiB"),
             "bytes=1MiB");
    CHECK_STATUS(s,
                 ccmr_resource_allocate(s->resource, MIB + 1, 0, s->streams[0],
                                        &nothing),
                 CCMR_ERROR_LIMIT_EXCEEDED, "one byte too many");
    ptr[0] = take(s, MIB, 0, s->streams[0]);
    CHECK_STATUS(
        s, ccmr_resource_allocate(s->resource, 1, 0, s->streams[0], &nothing),
        CCMR_ERROR_LIMIT_EXCEEDED, "one more byte");
    detail = ccmr_last_error();
    CHECK(s,
          detail->limit == MIB && detail->live == MIB &&
              detail->requested == 1,
          "detail: limit %zu, live %zu, requested %zu", detail->limit,
          detail->live, detail->requested);
    CHECK(s, strcmp(detail->resource, "limiting") == 0, "refused by '%s'",
          detail->resource);
    give(s, ptr[0], MIB, 0, s->streams[0]);
    for (i = 0; i < 4; i++) {
        ptr[i] = take(s, quarter, 0, s->streams[0]);
    }
    CHECK_STATUS(
        s, ccmr_resource_allocate(s->resource, 1, 0, s->streams[0], &nothing),
        CCMR_ERROR_LIMIT_EXCEEDED, "full in quarters");
    give(s, ptr[2], quarter, 0, s->streams[0]);
    ptr[2] = take(s, quarter, 0, s->streams[0]);
    for (i = 0; i < 4; i++) {
        give(s, ptr[i], quarter, 0, s->streams[0]);
    }
    CHECK(s, nothing == NULL, "an output was written");
}

const conformance_case cases_query[] = {
    {"describe", case_describe},
    {"sizes of structs", case_struct_sizes},
    {"stats", case_stats},
    {"trim", case_trim},
    {"choose_free_stream", case_choose_free_stream},
    {"close without a stream", case_unset_close},
    {"print and create again", case_print},
    {"options and upstreams", case_options_and_upstreams},
    {"note_use", case_note_use},
    {"limit", case_limit},
    {NULL, NULL},
};
