/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limiting: a cap on live bytes.
 *
 * Counted is what was asked for. A request counts from before the upstream is
 * asked until it refused, or until it took the block back; both without a lock
 * held. A free of a block that came from elsewhere, or of a wrong size, lowers
 * the count as well: it never goes below 0, but no longer says what is live.
 *
 * Streams: the upstream's rule. Threads: any; see credit.h.
 */
#include <cucoremr/resources/limiting.h>

#include <stdlib.h>
#include <string.h>

#include "lib/error.h"
#include "lib/resource.h"
#include "lib/text.h"
#include "lib/upstream.h"
#include "resources/common.h"
#include "resources/limiting/credit.h"
#include "resources/registry.h"

typedef struct limiting {
    ccmr_resource *upstream; /* first: see common.h */
    ccmr__credit credit;
} limiting;

static ccmr_status __attribute__((cold, noinline))
fail_limit(limiting *self, size_t bytes, size_t live)
{
    size_t limit =
        atomic_load_explicit(&self->credit.limit, memory_order_relaxed);
    ccmr_error_detail *detail;

    (void)ccmr__fail(CCMR_ERROR_LIMIT_EXCEEDED,
                     "limiting refuses %zu bytes: %zu of %zu are live", bytes,
                     live, limit);
    detail = ccmr__error();
    detail->requested = bytes;
    detail->limit = limit;
    detail->live = live;
    detail->device = ccmr__resource_device(self->upstream);
    ccmr__error_name_resource(ccmr__kind_limiting.name);
    return CCMR_ERROR_LIMIT_EXCEEDED;
}

static ccmr_status limiting_allocate(void *object, size_t bytes,
                                     size_t alignment, ccmr_stream stream,
                                     void **ptr)
{
    limiting *self = object;
    ccmr_status status;
    size_t live;

    if (__builtin_expect(!ccmr__credit_take(&self->credit, bytes, &live), 0)) {
        return fail_limit(self, bytes, live);
    }
    status =
        ccmr__allocate_checked(self->upstream, bytes, alignment, stream, ptr);
    if (__builtin_expect(status != CCMR_SUCCESS, 0)) {
        ccmr__credit_give(&self->credit, bytes);
    }
    return status;
}

static ccmr_status limiting_deallocate(void *object, void *ptr, size_t bytes,
                                       size_t alignment, ccmr_stream stream)
{
    limiting *self = object;
    ccmr_status status = ccmr__deallocate_checked(self->upstream, ptr, bytes,
                                                  alignment, stream);

    if (__builtin_expect(status == CCMR_SUCCESS, 1)) {
        ccmr__credit_give(&self->credit, bytes);
    }
    return status;
}

static void limiting_free(limiting *self)
{
    ccmr__credit_destroy(&self->credit);
    free(self);
}

static void limiting_destroy(void *object)
{
    limiting *self = object;

    ccmr_resource_release(self->upstream);
    limiting_free(self);
}

static ccmr_status limiting_describe(void *object, ccmr_properties *properties)
{
    limiting *self = object;

    return ccmr__describe_upstream(self->upstream, properties,
                                   ccmr__kind_limiting.name);
}

/* What it took from its upstream is what it handed out. */
static ccmr_status limiting_stats(void *object, ccmr_stats *stats)
{
    (void)object;
    stats->reserved_bytes = stats->live_bytes;
    stats->pending_bytes = 0;
    stats->exact |= CCMR_STAT_RESERVED_BYTES | CCMR_STAT_PENDING_BYTES;
    return CCMR_SUCCESS;
}

static ccmr_status limiting_would_fit(void *object, size_t bytes,
                                      ccmr_stream stream, int *fits)
{
    limiting *self = object;
    size_t limit =
        atomic_load_explicit(&self->credit.limit, memory_order_relaxed);
    size_t live = ccmr__credit_live(&self->credit);

    if (live > limit || bytes > limit - live) {
        *fits = 0;
        return CCMR_SUCCESS;
    }
    return ccmr_resource_would_fit(self->upstream, bytes, stream, fits);
}

static ccmr_status limiting_audit(void *object)
{
    limiting *self = object;

    if (!ccmr__credit_audit(&self->credit)) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "limiting: threads have credit that was not "
                          "granted: blocks of another resource were freed");
    }
    return CCMR_SUCCESS;
}

/* ---- options ----------------------------------------------------------- */

enum { OPTION_BYTES };

static const ccmr_option limiting_options[] = {
    [OPTION_BYTES] = {"bytes", CCMR_OPTION_BYTES, NULL, "%",
                      "most bytes live at any time, as asked for; % is of the "
                      "upstream's device"},
    {NULL, CCMR_OPTION_TEXT, NULL, NULL, NULL},
};

static ccmr_status limiting_option_get(void *object, const char *name,
                                       char *text, size_t capacity,
                                       size_t *length)
{
    limiting *self = object;
    ccmr__text value;
    char words[32];
    size_t index;
    ccmr_status status = ccmr__option_find(&ccmr__kind_limiting, name, &index);

    if (status != CCMR_SUCCESS) {
        return status;
    }
    ccmr__text_init(&value, words, sizeof(words));
    ccmr__text_add_bytes(&value, atomic_load_explicit(&self->credit.limit,
                                                      memory_order_relaxed));
    return ccmr__text_give(words, text, capacity, length);
}

/* Bytes of the option: a percentage is of the upstream's device. */
static ccmr_status value_limit(const ccmr_option_value *value,
                               ccmr_resource *upstream, size_t *limit)
{
    ccmr__device *device;
    ccmr_status status;

    if (!value->percent) {
        *limit = value->number;
        return CCMR_SUCCESS;
    }
    if (ccmr__resource_device(upstream) < 0) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "bytes=%s: %s is bound to no device whose memory "
                          "the percentage could be of",
                          value->text, ccmr_resource_name(upstream));
    }
    status = ccmr__device_find(ccmr__resource_device(upstream), &device);
    if (status == CCMR_SUCCESS) {
        *limit = ccmr__value_bytes(value, device->total_bytes);
    }
    return status;
}

static ccmr_status limiting_option_set(void *object, const char *name,
                                       const char *text)
{
    limiting *self = object;
    ccmr_option_value value;
    char message[128];
    size_t limit;
    size_t index;
    ccmr_status status = ccmr__option_find(&ccmr__kind_limiting, name, &index);

    if (status != CCMR_SUCCESS) {
        return status;
    }
    if (!ccmr__value_parse(&limiting_options[index], text, &value, message,
                           sizeof(message))) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT, "%s", message);
    }
    status = value_limit(&value, self->upstream, &limit);
    if (status == CCMR_SUCCESS) {
        ccmr__credit_set_limit(&self->credit, limit);
    }
    return status;
}

/* ---- creation ----------------------------------------------------------- */

static const ccmr_resource_ops limiting_ops = {
    .size = sizeof(ccmr_resource_ops),
    .allocate = limiting_allocate,
    .deallocate = limiting_deallocate,
    .destroy = limiting_destroy,
    .describe = limiting_describe,
    .upstream = ccmr__adaptor_upstream,
    CCMR__ADAPTOR_USES,
    CCMR__ADAPTOR_PLACES,
    .stats = limiting_stats,
    .option_get = limiting_option_get,
    .option_set = limiting_option_set,
    .would_fit = limiting_would_fit,
    .audit = limiting_audit,
};

ccmr_status ccmr_limiting_create(ccmr_resource *upstream, size_t bytes,
                                 ccmr_resource **resource)
{
    limiting *self;
    ccmr_status status;

    if (upstream == NULL || resource == NULL) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "ccmr_limiting_create: %s is NULL",
                          upstream == NULL ? "upstream" : "resource");
    }
    self = aligned_alloc(64, sizeof(*self));
    if (self == NULL || ccmr__credit_init(&self->credit, bytes) != 0) {
        free(self);
        return ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                          "no memory for a limiting resource");
    }
    self->upstream = upstream;
    status = ccmr_resource_create(&limiting_ops, self, resource);
    if (status != CCMR_SUCCESS) {
        limiting_free(self);
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
    size_t limit;
    ccmr_status status =
        value_limit(&values[OPTION_BYTES], upstreams[0], &limit);

    (void)kind;
    (void)count;
    if (status != CCMR_SUCCESS) {
        return status;
    }
    return ccmr_limiting_create(upstreams[0], limit, resource);
}

const ccmr_kind ccmr__kind_limiting = {
    .size = sizeof(ccmr_kind),
    .name = "limiting",
    .help = "a cap on live bytes, never passed and never refused wrongly",
    .options = limiting_options,
    .min_upstreams = 1,
    .max_upstreams = 1,
    .create = create_from_text,
};
