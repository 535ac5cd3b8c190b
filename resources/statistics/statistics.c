/* SPDX-License-Identifier: Apache-2.0 */
/*
 * statistics: counts of what is asked.
 *
 * A block counts from when the upstream gave it until before the upstream gets
 * it back, so that no thread that is given the same memory at once makes a
 * peak that there never was. A free that is refused is counted back.
 *
 * Streams: the upstream's rule. Threads: any; see counts.h.
 */
#include <cucoremr/resources/statistics.h>

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
#include "resources/statistics/counts.h"

typedef struct statistics {
    ccmr_resource *upstream; /* first: see common.h */
    ccmr__counts counts;
} statistics;

static ccmr_status statistics_allocate(void *object, size_t bytes,
                                       size_t alignment, ccmr_stream stream,
                                       void **ptr)
{
    statistics *self = object;
    ccmr_status status =
        ccmr__allocate_checked(self->upstream, bytes, alignment, stream, ptr);

    if (__builtin_expect(status == CCMR_SUCCESS, 1)) {
        ccmr__counts_allocation(&self->counts, bytes);
    } else {
        ccmr__counts_failure(&self->counts, bytes, status);
    }
    return status;
}

static ccmr_status statistics_deallocate(void *object, void *ptr, size_t bytes,
                                         size_t alignment, ccmr_stream stream)
{
    statistics *self = object;
    ccmr_status status;

    ccmr__counts_free(&self->counts, bytes);
    status = ccmr__deallocate_checked(self->upstream, ptr, bytes, alignment,
                                      stream);
    if (__builtin_expect(status != CCMR_SUCCESS, 0)) {
        ccmr__counts_undo_free(&self->counts, bytes);
    }
    return status;
}

static void statistics_free(statistics *self)
{
    while (self->counts.scope != NULL) {
        ccmr__count_scope *scope = self->counts.scope;

        self->counts.scope = scope->outer;
        free(scope);
    }
    ccmr__counts_destroy(&self->counts);
    free(self);
}

static void statistics_destroy(void *object)
{
    statistics *self = object;

    ccmr_resource_release(self->upstream);
    statistics_free(self);
}

static ccmr_status statistics_describe(void *object,
                                       ccmr_properties *properties)
{
    statistics *self = object;

    return ccmr__describe_upstream(self->upstream, properties,
                                   ccmr__kind_statistics.name);
}

static ccmr_status statistics_stats(void *object, ccmr_stats *stats)
{
    statistics *self = object;
    ccmr_statistics sum;

    ccmr__counts_read_all(&self->counts, &sum);
    ccmr__stats_nothing_kept(stats);
    stats->peak_live_bytes = (size_t)sum.peak_live_bytes;
    stats->peak_reserved_bytes = stats->peak_live_bytes;
    if (sum.peak_error_bytes == 0) {
        stats->exact |=
            CCMR_STAT_PEAK_LIVE_BYTES | CCMR_STAT_PEAK_RESERVED_BYTES;
    }
    return CCMR_SUCCESS;
}

static ccmr_status statistics_audit(void *object)
{
    statistics *self = object;

    if (!ccmr__counts_audit(&self->counts)) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "statistics: what threads counted is not what they "
                          "told of it");
    }
    return CCMR_SUCCESS;
}

/* ---- options ------------------------------------------------------------ */

enum { OPTION_PEAKS };

#define PEAKS_NAMES "close|exact"

static const ccmr_option statistics_options[] = {
    [OPTION_PEAKS] =
        {"peaks", CCMR_OPTION_CHOICE, "close", PEAKS_NAMES,
         "close: threads share nothing, peaks within 3.2 % and, for "
         "each thread, 4 KiB and 4 blocks; exact: they share "
         "counters"},
    {NULL, CCMR_OPTION_TEXT, NULL, NULL, NULL},
};

static ccmr_status statistics_option_get(void *object, const char *name,
                                         char *text, size_t capacity,
                                         size_t *length)
{
    statistics *self = object;
    size_t index;
    ccmr_status status =
        ccmr__option_find(&ccmr__kind_statistics, name, &index);

    if (status != CCMR_SUCCESS) {
        return status;
    }
    return ccmr__text_give(self->counts.exact ? "exact" : "close", text,
                           capacity, length);
}

/* ---- creation ----------------------------------------------------------- */

static const ccmr_resource_ops statistics_ops = {
    .size = sizeof(ccmr_resource_ops),
    .allocate = statistics_allocate,
    .deallocate = statistics_deallocate,
    .destroy = statistics_destroy,
    .describe = statistics_describe,
    .upstream = ccmr__adaptor_upstream,
    CCMR__ADAPTOR_USES,
    CCMR__ADAPTOR_PLACES,
    .stats = statistics_stats,
    .option_get = statistics_option_get,
    .would_fit = ccmr__adaptor_would_fit,
    .audit = statistics_audit,
};

static ccmr_status read_options(const ccmr_statistics_options *from,
                                ccmr_statistics_options *options)
{
    ccmr_status status = CCMR_SUCCESS;

    *options = (ccmr_statistics_options){.size = sizeof(*options)};
    if (from != NULL) {
        status =
            ccmr__struct_read(options, sizeof(*options), from,
                              sizeof(*options), "ccmr_statistics_options");
    }
    if (status == CCMR_SUCCESS &&
        options->peaks != CCMR_STATISTICS_PEAKS_CLOSE &&
        options->peaks != CCMR_STATISTICS_PEAKS_EXACT) {
        status = ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                            "ccmr_statistics_options: peaks %d is unknown",
                            (int)options->peaks);
    }
    return status;
}

ccmr_status ccmr_statistics_create(ccmr_resource *upstream,
                                   const ccmr_statistics_options *options,
                                   ccmr_resource **resource)
{
    ccmr_statistics_options known;
    ccmr_status status;
    statistics *self;

    if (upstream == NULL || resource == NULL) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "ccmr_statistics_create: %s is NULL",
                          upstream == NULL ? "upstream" : "resource");
    }
    status = read_options(options, &known);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    self = aligned_alloc(64, sizeof(*self));
    if (self != NULL) {
        memset(self, 0, sizeof(*self));
        if (ccmr__counts_init(&self->counts,
                              known.peaks == CCMR_STATISTICS_PEAKS_EXACT) !=
            0) {
            free(self);
            self = NULL;
        }
    }
    if (self == NULL) {
        return ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                          "no memory for a statistics resource");
    }
    self->upstream = upstream;
    status = ccmr_resource_create(&statistics_ops, self, resource);
    if (status != CCMR_SUCCESS) {
        statistics_free(self);
        return status;
    }
    (void)ccmr_resource_retain(upstream);
    return CCMR_SUCCESS;
}

static ccmr_status create_from_text(const ccmr_kind *kind,
                                    const ccmr_option_value *values,
                                    ccmr_resource *const *upstreams,
                                    size_t count, ccmr_resource **resource)
{
    const ccmr_statistics_options options = {
        .size = sizeof(options),
        .peaks = (ccmr_statistics_peaks)values[OPTION_PEAKS].integer,
    };

    (void)kind;
    (void)count;
    return ccmr_statistics_create(upstreams[0], &options, resource);
}

const ccmr_kind ccmr__kind_statistics = {
    .size = sizeof(ccmr_kind),
    .name = "statistics",
    .help = "counts: peaks, totals, sizes, failures, of threads and scopes",
    .options = statistics_options,
    .min_upstreams = 1,
    .max_upstreams = 1,
    .create = create_from_text,
};

/* ---- reading ------------------------------------------------------------ */

/* The statistics adaptor at or under a resource. */
static ccmr_status find(ccmr_resource *resource, const char *call,
                        statistics **self)
{
    ccmr_resource *found;
    ccmr_status status = ccmr__find_adaptor(
        resource, &statistics_ops, ccmr__kind_statistics.name, call, &found);

    if (status == CCMR_SUCCESS) {
        *self = ccmr__resource_self(found);
    }
    return status;
}

#define FIRST_VERSION (offsetof(ccmr_statistics, depth) + sizeof(unsigned))

static ccmr_status give(ccmr_statistics *to, const ccmr_statistics *from)
{
    return ccmr__struct_write(to, from, sizeof(*from), FIRST_VERSION,
                              "ccmr_statistics");
}

static ccmr_status missing(const char *call, const char *what)
{
    return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT, "%s: %s is NULL", call,
                      what);
}

ccmr_status ccmr_statistics_read(ccmr_resource *resource,
                                 ccmr_statistics *statistics_out)
{
    const char *call = "ccmr_statistics_read";
    ccmr_statistics sum;
    statistics *self;
    ccmr_status status = find(resource, call, &self);

    if (status != CCMR_SUCCESS) {
        return status;
    }
    if (statistics_out == NULL) {
        return missing(call, "statistics");
    }
    ccmr__counts_read(&self->counts, &sum);
    return give(statistics_out, &sum);
}

ccmr_status ccmr_statistics_read_thread(ccmr_resource *resource,
                                        ccmr_statistics *statistics_out)
{
    const char *call = "ccmr_statistics_read_thread";
    ccmr_statistics sum;
    statistics *self;
    ccmr_status status = find(resource, call, &self);

    if (status != CCMR_SUCCESS) {
        return status;
    }
    if (statistics_out == NULL) {
        return missing(call, "statistics");
    }
    if (!ccmr__counts_read_thread(&self->counts, &sum)) {
        return ccmr__fail(CCMR_ERROR_NOT_SUPPORTED,
                          "%s: this thread counts together with others: more "
                          "than %d threads are there",
                          call, CCMR__SLOT_SHARED);
    }
    return give(statistics_out, &sum);
}

ccmr_status ccmr_statistics_push(ccmr_resource *resource)
{
    ccmr__count_scope *scope;
    statistics *self;
    ccmr_status status = find(resource, "ccmr_statistics_push", &self);

    if (status != CCMR_SUCCESS) {
        return status;
    }
    scope = malloc(sizeof(*scope));
    if (scope == NULL) {
        return ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                          "no memory for a scope of statistics");
    }
    ccmr__counts_push(&self->counts, scope);
    return CCMR_SUCCESS;
}

ccmr_status ccmr_statistics_pop(ccmr_resource *resource,
                                ccmr_statistics *statistics_out)
{
    ccmr_statistics sum;
    ccmr__count_scope *scope;
    statistics *self;
    ccmr_status status = find(resource, "ccmr_statistics_pop", &self);

    /* A wrong struct is refused before anything is changed. */
    if (status == CCMR_SUCCESS && statistics_out != NULL) {
        status = ccmr__struct_check(statistics_out, FIRST_VERSION,
                                    "ccmr_statistics");
    }
    if (status != CCMR_SUCCESS) {
        return status;
    }
    scope = ccmr__counts_pop(&self->counts, &sum);
    if (scope == NULL) {
        return ccmr__fail(CCMR_ERROR_OUT_OF_RANGE,
                          "ccmr_statistics_pop: no scope is open");
    }
    free(scope);
    return statistics_out != NULL ? give(statistics_out, &sum) : CCMR_SUCCESS;
}
