/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_ordered: makes any synchronous resource stream-ordered.
 *
 * A free records an event and keeps the block; it waits for nothing. The block
 * is reused by size class: at once on the stream that freed it, elsewhere once
 * its event is done or behind a wait on the device. With access=host memory
 * the host may touch a block as soon as it has it, and stream order does not
 * order the host: there every reuse is of finished blocks only.
 *
 * Streams: a free with none named is ordered on the allocation stream; streams
 * are known by their ids, so that a recycled handle finds nothing of its
 * predecessor. Threads: any; one lock, see store.h.
 */
#include "resources/stream_ordered/stream_ordered.h"

#include <cucoremr/resources/stream_ordered.h>

#include <stdlib.h>

#include "lib/error.h"
#include "lib/process.h"
#include "lib/resource.h"
#include "lib/struct.h"
#include "lib/text.h"
#include "resources/common.h"
#include "resources/registry.h"

static void so_free(ccmr__so *self)
{
    (void)pthread_cond_destroy(&self->settled);
    (void)pthread_mutex_destroy(&self->lock);
    free(self);
}

static void so_destroy(void *object)
{
    ccmr__so *self = object;

    ccmr__so_end(self);
    ccmr__so_tables_destroy(self);
    ccmr_resource_release(self->upstream);
    so_free(self);
}

static ccmr_status so_describe(void *object, ccmr_properties *properties)
{
    ccmr__so *self = object;
    ccmr_status status = ccmr__describe_upstream(
        self->upstream, properties, ccmr__kind_stream_ordered.name);

    if (status == CCMR_SUCCESS) {
        properties->device = self->device->ordinal;
        properties->free_may_block = 0;
        properties->free_stream = CCMR_FREE_ON_ALLOCATION_STREAM;
        properties->capture = CCMR_CAPTURE_REFUSED;
        properties->handle_kinds = CCMR_HANDLE_NONE;
    }
    return status;
}

static ccmr_status so_upstream(void *object, size_t i,
                               ccmr_resource **resource)
{
    ccmr__so *self = object;

    if (i != 0) {
        return CCMR_ERROR_OUT_OF_RANGE;
    }
    *resource = self->upstream;
    return CCMR_SUCCESS;
}

static ccmr_status so_stats(void *object, ccmr_stats *stats)
{
    ccmr__so *self = object;
    ccmr__so_pass pass = {.mode = CCMR__SO_POLL, .pockets = UINT32_MAX};
    ccmr_error_detail before = *ccmr__error();

    ccmr__so_release(self, &pass);
    *ccmr__error() = before;
    ccmr__so_lock(self);
    stats->reserved_bytes = self->reserved;
    stats->peak_reserved_bytes = self->peak_reserved;
    stats->pending_bytes = self->pending_bytes;
    ccmr__so_unlock(self);
    stats->exact |= CCMR_STAT_RESERVED_BYTES | CCMR_STAT_PEAK_RESERVED_BYTES;
    if (pass.status == CCMR_SUCCESS) {
        stats->exact |= CCMR_STAT_PENDING_BYTES;
    }
    return CCMR_SUCCESS;
}

/* Its blocks have their events already: only its id must go. */
static ccmr_status so_retire_stream(void *object, ccmr_stream stream)
{
    ccmr__so *self = object;
    ccmr_error_detail before = *ccmr__error();
    ccmr__stream_use use;
    ccmr_status status = ccmr__so_resolve(self, stream, &use);

    if (status == CCMR_ERROR_WRONG_DEVICE) {
        /* Not one that this resource can have met. */
        *ccmr__error() = before;
        return CCMR_SUCCESS;
    }
    if (status == CCMR_SUCCESS) {
        ccmr__so_lock(self);
        ccmr__so_retire(self, use.id);
        ccmr__so_unlock(self);
    }
    return status;
}

static ccmr_status so_audit(void *object)
{
    ccmr__so *self = object;
    int good;

    ccmr__so_lock(self);
    good = ccmr__so_audit(self);
    ccmr__so_unlock(self);
    if (!good) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "stream_ordered: its books do not agree");
    }
    return CCMR_SUCCESS;
}

/* ---- options ------------------------------------------------------------- */

enum { OPTION_KEEP, OPTION_STREAMS };

static const ccmr_option so_options[] = {
    [OPTION_KEEP] = {"keep", CCMR_OPTION_BYTES, "0", "%",
                     "most bytes kept free for reuse; 0: no bound; % is of "
                     "the device"},
    [OPTION_STREAMS] = CCMR__OPTION_STREAMS,
    {NULL, CCMR_OPTION_TEXT, NULL, NULL, NULL},
};

static ccmr_status so_option_get(void *object, const char *name, char *text,
                                 size_t capacity, size_t *length)
{
    ccmr__so *self = object;
    ccmr__text value;
    char words[32];
    size_t index;
    size_t keep;
    ccmr_status status =
        ccmr__option_find(&ccmr__kind_stream_ordered, name, &index);

    if (status != CCMR_SUCCESS) {
        return status;
    }
    ccmr__so_lock(self);
    keep = self->keep;
    ccmr__so_unlock(self);
    ccmr__text_init(&value, words, sizeof(words));
    if (index == OPTION_STREAMS) {
        ccmr__text_add(&value, "%s", ccmr__streams_name(self->registered));
    } else {
        ccmr__text_add_bytes(&value, keep);
    }
    return ccmr__text_give(words, text, capacity, length);
}

static ccmr_status so_option_set(void *object, const char *name,
                                 const char *text)
{
    ccmr__so *self = object;
    ccmr_option_value value;
    char message[128];
    size_t index;
    ccmr_status status =
        ccmr__option_find(&ccmr__kind_stream_ordered, name, &index);

    if (status != CCMR_SUCCESS) {
        return status;
    }
    if (index != OPTION_KEEP) {
        return ccmr__fail(CCMR_ERROR_NOT_SUPPORTED,
                          "stream_ordered: %s is fixed at creation", name);
    }
    if (!ccmr__value_parse(&so_options[index], text, &value, message,
                           sizeof(message))) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT, "%s", message);
    }
    ccmr__so_lock(self);
    self->keep = ccmr__value_bytes(&value, self->device->total_bytes);
    ccmr__so_unlock(self);
    return CCMR_SUCCESS;
}

/* ---- creation ------------------------------------------------------------ */

static const ccmr_resource_ops so_ops = {
    .size = sizeof(ccmr_resource_ops),
    .allocate = ccmr__so_allocate,
    .deallocate = ccmr__so_deallocate,
    .destroy = so_destroy,
    .choose_free_stream = ccmr__choose_allocation_stream,
    .describe = so_describe,
    .upstream = so_upstream,
    .trim = ccmr__so_trim,
    .stats = so_stats,
    .retire_stream = so_retire_stream,
    .option_get = so_option_get,
    .option_set = so_option_set,
    .audit = so_audit,
};

static ccmr_status read_options(const ccmr_stream_ordered_options *from,
                                ccmr_stream_ordered_options *options)
{
    static const char what[] = "ccmr_stream_ordered_options";
    ccmr_status status = CCMR_SUCCESS;
    ccmr__flag flag = {.name = "streams_registered"};

    *options = (ccmr_stream_ordered_options){.size = sizeof(*options)};
    if (from != NULL) {
        status = ccmr__struct_read(options, sizeof(*options), from,
                                   sizeof(*options), what);
    }
    flag.value = options->streams_registered;
    return status == CCMR_SUCCESS ? ccmr__struct_flags(what, &flag, 1)
                                  : status;
}

static ccmr_status make(ccmr_resource *upstream, ccmr__device *device,
                        const ccmr_properties *properties,
                        const ccmr_stream_ordered_options *options,
                        ccmr__so **made)
{
    ccmr__so *self = calloc(1, sizeof(*self));

    if (self == NULL) {
        goto err_memory;
    }
    self->upstream = upstream;
    self->device = device;
    self->keep = options->keep;
    self->registered = options->streams_registered != 0;
    self->host_access = properties->host_accessible != 0 &&
                        properties->access == CCMR_ACCESS_HOST;
    self->base = properties->max_alignment < CCMR_DEFAULT_ALIGNMENT
                     ? properties->max_alignment
                     : CCMR_DEFAULT_ALIGNMENT;
    if (pthread_mutex_init(&self->lock, NULL) != 0) {
        goto err_self;
    }
    if (pthread_cond_init(&self->settled, NULL) != 0) {
        goto err_lock;
    }
    if (ccmr__so_tables_init(self) != 0) {
        goto err_settled;
    }
    *made = self;
    return CCMR_SUCCESS;

err_settled:
    (void)pthread_cond_destroy(&self->settled);
err_lock:
    (void)pthread_mutex_destroy(&self->lock);
err_self:
    free(self);
err_memory:
    return ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                      "no memory for a stream_ordered resource");
}

static ccmr_status create(ccmr_resource *upstream, ccmr__device *device,
                          const ccmr_stream_ordered_options *options,
                          ccmr_resource **resource)
{
    ccmr_properties properties = {.size = sizeof(properties)};
    ccmr__so *self = NULL;
    ccmr_status status = ccmr_resource_describe(upstream, &properties);

    if (status == CCMR_SUCCESS) {
        status = make(upstream, device, &properties, options, &self);
    }
    if (status != CCMR_SUCCESS) {
        return status;
    }
    status = ccmr_resource_create(&so_ops, self, resource);
    if (status != CCMR_SUCCESS) {
        ccmr__so_tables_destroy(self);
        so_free(self);
        return status;
    }
    (void)ccmr_resource_retain(upstream);
    return CCMR_SUCCESS;
}

ccmr_status ccmr_stream_ordered_create(
    ccmr_resource *upstream, const ccmr_stream_ordered_options *options,
    ccmr_resource **resource)
{
    ccmr_stream_ordered_options known;
    ccmr__device *device;
    ccmr_status status = ccmr__process_check();

    if (status == CCMR_SUCCESS && (upstream == NULL || resource == NULL)) {
        status = ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                            "ccmr_stream_ordered_create: %s is NULL",
                            upstream == NULL ? "upstream" : "resource");
    }
    if (status == CCMR_SUCCESS) {
        status = read_options(options, &known);
    }
    if (status != CCMR_SUCCESS) {
        return status;
    }
    status = ccmr__upstream_device(upstream, &device);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    return create(upstream, device, &known, resource);
}

static ccmr_status create_from_text(const ccmr_kind *kind,
                                    const ccmr_option_value *values,
                                    ccmr_resource *const *upstreams,
                                    size_t count, ccmr_resource **resource)
{
    ccmr_stream_ordered_options options = {.size = sizeof(options)};
    ccmr__device *device;
    ccmr_status status = ccmr__upstream_device(upstreams[0], &device);

    (void)kind;
    (void)count;
    if (status != CCMR_SUCCESS) {
        return status;
    }
    options.keep =
        ccmr__value_bytes(&values[OPTION_KEEP], device->total_bytes);
    options.streams_registered = values[OPTION_STREAMS].integer != 0;
    return create(upstreams[0], device, &options, resource);
}

const ccmr_kind ccmr__kind_stream_ordered = {
    .size = sizeof(ccmr_kind),
    .name = "stream_ordered",
    .help = "makes a resource whose frees block stream-ordered, and reuses "
            "its blocks",
    .options = so_options,
    .min_upstreams = 1,
    .max_upstreams = 1,
    .create = create_from_text,
};
