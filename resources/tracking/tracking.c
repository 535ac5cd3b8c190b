/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracking: knows each live block, and refuses frees that are none.
 *
 * What is refused never reaches the upstream. The record of a block leaves the
 * live ones before the address goes back, and returns if the upstream refuses.
 *
 * Streams: the upstream's rule. Threads: any; see blocks.h.
 */
#include <cucoremr/resources/tracking.h>

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "lib/error.h"
#include "lib/process.h"
#include "lib/resource.h"
#include "lib/struct.h"
#include "lib/text.h"
#include "lib/upstream.h"
#include "resources/common.h"
#include "resources/registry.h"
#include "resources/tracking/blocks.h"
#include "resources/tracking/report.h"

#define HISTORY_DEFAULT ((size_t)1024)

typedef struct tracking {
    ccmr_resource *upstream; /* first: see common.h */
    ccmr__blocks blocks;
    ccmr__exit_hook hook;    /* with reports */
    ccmr_resource *resource; /* itself; not retained */
    ccmr__tracking_report report;
    size_t history;
} tracking;

static ccmr_status fail_live(const ccmr__record *there)
{
    return ccmr__fail(CCMR_ERROR_USER,
                      "the upstream gave %p again, where block %llu of %zu "
                      "bytes is live",
                      there->ptr, (unsigned long long)there->number,
                      there->bytes);
}

static ccmr_status tracking_allocate(void *object, size_t bytes,
                                     size_t alignment, ccmr_stream stream,
                                     void **ptr)
{
    tracking *self = object;
    ccmr__record *record =
        ccmr__record_make(&self->blocks, bytes, alignment, stream);
    ccmr__record there;
    void *block = NULL;
    ccmr_status status;

    if (record == NULL) {
        return ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                          "tracking has no memory for a record");
    }
    status = ccmr__allocate_checked(self->upstream, bytes, alignment, stream,
                                    &block);
    if (status == CCMR_SUCCESS &&
        !ccmr__blocks_add(&self->blocks, record, block, &there)) {
        /* To give it back would free the other one. */
        status = fail_live(&there);
    }
    if (status != CCMR_SUCCESS) {
        free(record);
        return status;
    }
    *ptr = block;
    return CCMR_SUCCESS;
}

static ccmr_status __attribute__((cold, noinline))
refuse(tracking *self, ccmr__verdict verdict, const void *ptr, size_t bytes,
       size_t alignment, const ccmr__record *known, const ccmr__trace *traces)
{
    ccmr_status status =
        ccmr__tracking_fail(verdict, ptr, bytes, alignment, known);

    ccmr__error_name_resource(ccmr__kind_tracking.name);
    if (self->report.wanted) {
        /* The sink may fail at something, and write another one. */
        ccmr_error_detail detail = *ccmr__error();

        ccmr__report_refusal(&self->report, detail.message,
                             self->blocks.traces ? traces : NULL);
        *ccmr__error() = detail;
    }
    return status;
}

static ccmr_status tracking_deallocate(void *object, void *ptr, size_t bytes,
                                       size_t alignment, ccmr_stream stream)
{
    tracking *self = object;
    ccmr__record *record;
    ccmr__record known;
    ccmr__trace traces[2];
    ccmr__verdict verdict;
    ccmr_status status;

    traces[0].count = 0;
    traces[1].count = 0;
    verdict = ccmr__blocks_remove(&self->blocks, ptr, bytes, alignment, stream,
                                  &record, &known, traces);
    if (__builtin_expect(verdict != CCMR__FREE_GOOD, 0)) {
        return refuse(self, verdict, ptr, bytes, alignment, &known, traces);
    }
    status = ccmr__deallocate_checked(self->upstream, ptr, bytes, alignment,
                                      stream);
    if (__builtin_expect(status != CCMR_SUCCESS, 0)) {
        ccmr__blocks_back(&self->blocks, record);
    } else {
        ccmr__blocks_gone(&self->blocks, record);
    }
    return status;
}

static void report_at_exit(ccmr__exit_hook *hook)
{
    tracking *self = (tracking *)((char *)hook - offsetof(tracking, hook));

    ccmr__report_blocks(&self->report, &self->blocks, 1);
}

static void tracking_free(tracking *self)
{
    ccmr__blocks_destroy(&self->blocks);
    free(self);
}

static void tracking_destroy(void *object)
{
    tracking *self = object;

    if (self->report.wanted) {
        ccmr__exit_hook_remove(&self->hook);
    }
    ccmr_resource_release(self->upstream);
    tracking_free(self);
}

static ccmr_status tracking_describe(void *object, ccmr_properties *properties)
{
    tracking *self = object;

    return ccmr__describe_upstream(self->upstream, properties,
                                   ccmr__kind_tracking.name);
}

/* It keeps nothing that could be given back; but this is how it hears that its
 * last reference has gone while blocks are live. */
static ccmr_status tracking_trim(void *object, size_t keep,
                                 ccmr_trim_result *result)
{
    tracking *self = object;

    (void)keep;
    (void)result;
    if (self->report.wanted &&
        atomic_load_explicit(&self->resource->closing, memory_order_relaxed) !=
            0) {
        ccmr__report_blocks(&self->report, &self->blocks, 0);
    }
    return CCMR_SUCCESS;
}

static ccmr_status check_live(tracking *self, const void *ptr)
{
    if (ccmr__blocks_live(&self->blocks, ptr)) {
        return CCMR_SUCCESS;
    }
    return ccmr__fail(CCMR_ERROR_INVALID_POINTER,
                      "%p is not the address of a live block", ptr);
}

static ccmr_status tracking_note_use(void *object, void *ptr,
                                     ccmr_stream stream)
{
    tracking *self = object;
    ccmr_status status = check_live(self, ptr);

    return status == CCMR_SUCCESS
               ? ccmr_resource_note_use(self->upstream, ptr, stream)
               : status;
}

static ccmr_status tracking_hold_until_free(void *object, void *ptr,
                                            ccmr_stream stream)
{
    tracking *self = object;
    ccmr_status status = check_live(self, ptr);

    return status == CCMR_SUCCESS
               ? ccmr_resource_hold_until_free(self->upstream, ptr, stream)
               : status;
}

/* What is pinned or exported is in one live block. */
static ccmr_status check_part(tracking *self, const char *what,
                              const void *ptr, size_t bytes)
{
    ccmr__record known;
    ccmr__verdict verdict =
        ccmr__blocks_part(&self->blocks, ptr, bytes, &known);

    if (verdict == CCMR__FREE_GOOD) {
        return CCMR_SUCCESS;
    }
    if (verdict == CCMR__FREE_WRONG_BYTES) {
        return ccmr__fail(CCMR_ERROR_INVALID_SIZE,
                          "%s: %zu bytes at %p, but block %llu at %p has %zu",
                          what, bytes, ptr, (unsigned long long)known.number,
                          known.ptr, known.bytes);
    }
    return ccmr__fail(CCMR_ERROR_INVALID_POINTER,
                      "%s: %p is in no live block%s", what, ptr,
                      verdict == CCMR__FREE_TWICE ? ": freed already" : "");
}

static ccmr_status tracking_pin(void *object, void *ptr, size_t bytes)
{
    tracking *self = object;
    ccmr_status status = check_part(self, "pin", ptr, bytes);

    return status == CCMR_SUCCESS
               ? ccmr_resource_pin(self->upstream, ptr, bytes)
               : status;
}

/* A pin outlives its block: the upstream knows what is pinned. */
static ccmr_status tracking_unpin(void *object, void *ptr, size_t bytes)
{
    tracking *self = object;

    return ccmr_resource_unpin(self->upstream, ptr, bytes);
}

static ccmr_status tracking_export_handle(void *object, void *ptr,
                                          unsigned kind, void *handle,
                                          size_t handle_size)
{
    tracking *self = object;
    ccmr_status status = check_live(self, ptr);

    return status == CCMR_SUCCESS
               ? ccmr_resource_export_handle(self->upstream, ptr, kind, handle,
                                             handle_size)
               : status;
}

static ccmr_status tracking_export_block(void *object, void *ptr, size_t bytes,
                                         unsigned kind, void *handle,
                                         size_t handle_size,
                                         ccmr_export_place *place)
{
    tracking *self = object;
    ccmr_status status = check_part(self, "export_block", ptr, bytes);

    return status == CCMR_SUCCESS
               ? ccmr_resource_export_block(self->upstream, ptr, bytes, kind,
                                            handle, handle_size, place)
               : status;
}

static ccmr_status tracking_stats(void *object, ccmr_stats *stats)
{
    (void)object;
    ccmr__stats_nothing_kept(stats);
    return CCMR_SUCCESS;
}

/* No two blocks share a byte. */
static ccmr_status tracking_audit(void *object)
{
    tracking *self = object;
    ccmr_status status = CCMR_SUCCESS;
    ccmr_tracking_block *copies;
    ccmr_tracking_block low;
    ccmr_tracking_block high;
    size_t count;

    if (ccmr__blocks_copy(&self->blocks, 0, &copies, &count) != 0) {
        return ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                          "tracking has no memory to audit its blocks");
    }
    if (ccmr__blocks_overlap(&self->blocks, copies, count, &low, &high)) {
        status = ccmr__fail(
            CCMR_ERROR_INVALID_ARGUMENT,
            "block %llu at %p of %zu bytes and block %llu at %p overlap",
            (unsigned long long)low.number, low.ptr, low.bytes,
            (unsigned long long)high.number, high.ptr);
    }
    free(copies);
    return status;
}

/* ---- options ------------------------------------------------------------ */

enum { OPTION_TRACES, OPTION_REPORT, OPTION_HISTORY };

static const ccmr_option tracking_options[] = {
    [OPTION_TRACES] = {"traces", CCMR_OPTION_BOOLEAN, "no", NULL,
                       "keep stack traces of allocations and frees"},
    [OPTION_REPORT] = {"report", CCMR_OPTION_BOOLEAN, "no", NULL,
                       "report refused frees, and what is live at the last "
                       "release or at exit, to standard error"},
    [OPTION_HISTORY] =
        {"history", CCMR_OPTION_INTEGER, "1024", NULL,
         "how many freed blocks are remembered, about: a multiple of "
         "64"},
    {NULL, CCMR_OPTION_TEXT, NULL, NULL, NULL},
};

static ccmr_status tracking_option_get(void *object, const char *name,
                                       char *text, size_t capacity,
                                       size_t *length)
{
    tracking *self = object;
    ccmr__text value;
    char words[32];
    size_t index;
    ccmr_status status = ccmr__option_find(&ccmr__kind_tracking, name, &index);

    if (status != CCMR_SUCCESS) {
        return status;
    }
    ccmr__text_init(&value, words, sizeof(words));
    switch (index) {
    case OPTION_TRACES:
        ccmr__text_add(&value, "%s", self->blocks.traces ? "yes" : "no");
        break;
    case OPTION_REPORT:
        ccmr__text_add(&value, "%s", self->report.wanted ? "yes" : "no");
        break;
    default:
        ccmr__text_add(&value, "%zu", self->history);
        break;
    }
    return ccmr__text_give(words, text, capacity, length);
}

/* ---- creation ----------------------------------------------------------- */

static const ccmr_resource_ops tracking_ops = {
    .size = sizeof(ccmr_resource_ops),
    .allocate = tracking_allocate,
    .deallocate = tracking_deallocate,
    .destroy = tracking_destroy,
    .describe = tracking_describe,
    .upstream = ccmr__adaptor_upstream,
    .trim = tracking_trim,
    .note_use = tracking_note_use,
    .hold_until_free = tracking_hold_until_free,
    .stats = tracking_stats,
    .option_get = tracking_option_get,
    .would_fit = ccmr__adaptor_would_fit,
    .audit = tracking_audit,
    .export_handle = tracking_export_handle,
    .pin = tracking_pin,
    .unpin = tracking_unpin,
    .export_block = tracking_export_block,
};

static ccmr_status read_options(const ccmr_tracking_options *from,
                                ccmr_tracking_options *options)
{
    ccmr_status status = CCMR_SUCCESS;

    *options = (ccmr_tracking_options){.size = sizeof(*options)};
    if (from != NULL) {
        status = ccmr__struct_read(options, sizeof(*options), from,
                                   sizeof(*options), "ccmr_tracking_options");
    }
    if (status == CCMR_SUCCESS) {
        const ccmr__flag flags[] = {{"traces", options->traces},
                                    {"report", options->report}};

        status = ccmr__struct_flags("ccmr_tracking_options", flags, 2);
    }
    if (status == CCMR_SUCCESS && options->traces && !ccmr__trace_start()) {
        status = ccmr__fail(CCMR_ERROR_NOT_SUPPORTED,
                            "ccmr_tracking_options: the C library has no "
                            "stack traces");
    }
    if (options->history == 0) {
        options->history = HISTORY_DEFAULT;
    }
    return status;
}

/* NULL without memory. */
static tracking *make(const ccmr_tracking_options *options)
{
    tracking *self = aligned_alloc(64, sizeof(*self));

    if (self == NULL || ccmr__blocks_init(&self->blocks, options->traces != 0,
                                          options->history) != 0) {
        free(self);
        return NULL;
    }
    self->history = options->history;
    self->resource = NULL;
    self->hook = (ccmr__exit_hook){.run = report_at_exit};
    self->report = (ccmr__tracking_report){
        .wanted = options->report != 0,
        .sink = options->sink,
        .context = options->context,
    };
    return self;
}

ccmr_status ccmr_tracking_create(ccmr_resource *upstream,
                                 const ccmr_tracking_options *options,
                                 ccmr_resource **resource)
{
    ccmr_tracking_options known;
    ccmr_status status;
    tracking *self;

    if (upstream == NULL || resource == NULL) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "ccmr_tracking_create: %s is NULL",
                          upstream == NULL ? "upstream" : "resource");
    }
    status = read_options(options, &known);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    self = make(&known);
    if (self == NULL) {
        return ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                          "no memory for a tracking resource");
    }
    self->upstream = upstream;
    status = ccmr_resource_create(&tracking_ops, self, resource);
    if (status != CCMR_SUCCESS) {
        tracking_free(self);
        return status;
    }
    self->resource = *resource;
    (void)ccmr_resource_retain(upstream);
    if (self->report.wanted) {
        ccmr__exit_hook_add(&self->hook);
    }
    return CCMR_SUCCESS;
}

static ccmr_status create_from_text(const ccmr_kind *kind,
                                    const ccmr_option_value *values,
                                    ccmr_resource *const *upstreams,
                                    size_t count, ccmr_resource **resource)
{
    const ccmr_tracking_options options = {
        .size = sizeof(options),
        .traces = values[OPTION_TRACES].integer != 0,
        .report = values[OPTION_REPORT].integer != 0,
        .history = (size_t)values[OPTION_HISTORY].integer,
    };

    (void)kind;
    (void)count;
    if (values[OPTION_HISTORY].integer < 1) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "history=%s: at least 1",
                          values[OPTION_HISTORY].text);
    }
    return ccmr_tracking_create(upstreams[0], &options, resource);
}

const ccmr_kind ccmr__kind_tracking = {
    .size = sizeof(ccmr_kind),
    .name = "tracking",
    .help = "knows each live block: refuses double frees and wrong sizes",
    .options = tracking_options,
    .min_upstreams = 1,
    .max_upstreams = 1,
    .create = create_from_text,
};

/* ---- what is live ------------------------------------------------------- */

/* NULL: the last error says why. */
static tracking *find(ccmr_resource *resource, const char *call, int given,
                      const char *what)
{
    ccmr_resource *found;

    if (ccmr__find_adaptor(resource, &tracking_ops, ccmr__kind_tracking.name,
                           call, &found) != CCMR_SUCCESS) {
        return NULL;
    }
    if (!given) {
        (void)ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT, "%s: %s is NULL", call,
                         what);
        return NULL;
    }
    return ccmr__resource_self(found);
}

ccmr_status ccmr_tracking_outstanding(ccmr_resource *resource,
                                      ccmr_tracking_visit visit, void *context)
{
    ccmr_tracking_block *copies;
    tracking *self =
        find(resource, "ccmr_tracking_outstanding", visit != NULL, "visit");
    size_t count;
    size_t i;

    if (self == NULL) {
        return ccmr__error()->status;
    }
    if (ccmr__blocks_copy(&self->blocks, 0, &copies, &count) != 0) {
        return ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                          "tracking has no memory to list its blocks");
    }
    for (i = 0; i < count; i++) {
        if (visit(context, &copies[i]) != 0) {
            break;
        }
    }
    free(copies);
    return CCMR_SUCCESS;
}

ccmr_status ccmr_tracking_find(ccmr_resource *resource, const void *address,
                               ccmr_tracking_block *block)
{
    ccmr_tracking_block found;
    tracking *self =
        find(resource, "ccmr_tracking_find", block != NULL, "block");

    if (self == NULL) {
        return ccmr__error()->status;
    }
    if (!ccmr__blocks_find(&self->blocks, address, &found)) {
        return ccmr__fail(CCMR_ERROR_INVALID_POINTER,
                          "%p lies in no live block", address);
    }
    return ccmr__struct_write(block, &found, sizeof(found),
                              offsetof(ccmr_tracking_block, frames) +
                                  sizeof(found.frames),
                              "ccmr_tracking_block");
}
