/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything that a resource is asked beside allocating: properties, figures,
 * trimming, options.
 */
#include <stddef.h>
#include <stdio.h>

#include "lib/error.h"
#include "lib/process.h"
#include "lib/resource.h"
#include "lib/resource_object.h"
#include "lib/stream.h"
#include "lib/struct.h"
#include "lib/thread.h"

#define FIRST_VERSION(type, last)                                             \
    (offsetof(type, last) + sizeof(((type *)0)->last))

/* The checks that all of these share. `needed` may not be NULL. */
static ccmr_status check(const ccmr_resource *resource, const void *needed,
                         const char *call, const char *what)
{
    ccmr_status status = ccmr__process_check();

    if (status == CCMR_SUCCESS && (resource == NULL || needed == NULL)) {
        status = ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT, "%s: %s is NULL",
                            call, resource == NULL ? "resource" : what);
    }
    return status;
}

/* How many failures the thread has described so far. */
static unsigned failures(void)
{
    return ccmr__thread_self()->failures;
}

/* Name the resource in the detail of a failure just described. */
static ccmr_status named(const ccmr_resource *resource, ccmr_status status)
{
    ccmr__error_name_resource(resource->name);
    return status;
}

/* The end of an operation. Where it failed and described nothing, so that the
 * thread has `before` failures still, that is made up for. */
static ccmr_status pass(const ccmr_resource *resource, unsigned before,
                        ccmr_status status)
{
    if (status != CCMR_SUCCESS) {
        if (!ccmr__is_status(status)) {
            status = ccmr__fail(CCMR_ERROR_USER,
                                "%s returned %d, which is no status",
                                resource->name, (int)status);
        } else if (failures() == before || ccmr__error()->status != status) {
            (void)ccmr__fail(status, "%s: %s", resource->name,
                             ccmr_status_text(status));
        }
        ccmr__error_name_resource(resource->name);
    }
    return status;
}

static ccmr_status unsupported(const ccmr_resource *resource, const char *what)
{
    return named(resource,
                 ccmr__fail(CCMR_ERROR_NOT_SUPPORTED, "%s does not offer %s",
                            resource->name, what));
}

/* The i-th upstream without an error detail; NULL past the last. */
static ccmr_resource *upstream_of(const ccmr_resource *resource, size_t i)
{
    ccmr_resource *upstream = NULL;

    if (resource->ops.upstream == NULL ||
        resource->ops.upstream(resource->self, i, &upstream) != CCMR_SUCCESS) {
        return NULL;
    }
    return upstream;
}

ccmr_status ccmr_resource_describe(ccmr_resource *resource,
                                   ccmr_properties *properties)
{
    unsigned before = failures();
    ccmr_properties own = {.size = sizeof(own), .device = -1};
    ccmr_status status = check(resource, properties, "describe", "properties");

    if (status != CCMR_SUCCESS) {
        return status;
    }
    status = resource->ops.describe(resource->self, &own);
    if (status != CCMR_SUCCESS) {
        return pass(resource, before, status);
    }
    own.name = resource->name;
    return ccmr__struct_write(properties, &own, sizeof(own),
                              FIRST_VERSION(ccmr_properties, granularity),
                              "ccmr_properties");
}

const char *ccmr_resource_name(const ccmr_resource *resource)
{
    return resource != NULL ? resource->name : NULL;
}

ccmr_status ccmr_resource_upstream(ccmr_resource *resource, size_t i,
                                   ccmr_resource **upstream)
{
    ccmr_status status = check(resource, upstream, "upstream", "upstream");
    ccmr_resource *found;

    if (status != CCMR_SUCCESS) {
        return status;
    }
    found = upstream_of(resource, i);
    if (found == NULL) {
        return named(resource,
                     ccmr__fail(CCMR_ERROR_OUT_OF_RANGE,
                                "%s has no upstream %zu", resource->name, i));
    }
    *upstream = found;
    return CCMR_SUCCESS;
}

ccmr_status ccmr__describe_upstream(ccmr_resource *upstream,
                                    ccmr_properties *properties,
                                    const char *name)
{
    ccmr_status status = upstream->ops.describe(upstream->self, properties);

    if (status == CCMR_SUCCESS) {
        properties->name = name;
        properties->granularity = 0; /* ranges are the upstream's alone */
    }
    return status;
}

/* One resource and, after it, what is under it. In a chain the bytes that one
 * gives back go into the next, so that the larger figure counts. */
static ccmr_status trim_down(ccmr_resource *resource, size_t keep,
                             unsigned depth, ccmr_trim_result *result)
{
    unsigned before = failures();
    ccmr_status status = CCMR_SUCCESS;
    ccmr_resource *upstream;
    size_t released = 0;
    size_t i;

    *result = (ccmr_trim_result){.size = sizeof(*result)};
    if (depth > CCMR__STACK_MOST) {
        return ccmr__fail_depth(resource);
    }
    if (resource->ops.trim != NULL) {
        status = pass(resource, before,
                      resource->ops.trim(resource->self, keep, result));
    }
    for (i = 0; (upstream = upstream_of(resource, i)) != NULL; i++) {
        ccmr_trim_result below;
        ccmr_status other = trim_down(upstream, keep, depth + 1, &below);

        if (other == CCMR_ERROR_OUT_OF_RANGE) {
            return other; /* a stack without an end has no last upstream */
        }
        if (status == CCMR_SUCCESS) {
            status = other;
        }
        released += below.released_bytes;
        result->pending_bytes += below.pending_bytes;
        result->pinned_bytes += below.pinned_bytes;
    }
    if (released > result->released_bytes) {
        result->released_bytes = released;
    }
    return status;
}

ccmr_status ccmr_resource_trim(ccmr_resource *resource, size_t keep,
                               ccmr_trim_result *result)
{
    ccmr_status status = check(resource, resource, "trim", "resource");
    ccmr_trim_result probe = {.size = sizeof(probe)};
    ccmr_trim_result own;

    /* A wrong struct is refused before anything is given back. */
    if (status == CCMR_SUCCESS && result != NULL) {
        status = ccmr__struct_write(
            result, &probe, sizeof(probe),
            FIRST_VERSION(ccmr_trim_result, pinned_bytes), "ccmr_trim_result");
    }
    if (status != CCMR_SUCCESS) {
        return status;
    }
    status = trim_down(resource, keep, 0, &own);
    if (status == CCMR_SUCCESS && result != NULL) {
        status = ccmr__struct_write(
            result, &own, sizeof(own),
            FIRST_VERSION(ccmr_trim_result, pinned_bytes), "ccmr_trim_result");
    }
    return status;
}

/* What dispatch counted. */
static void prefill(ccmr_resource *resource, ccmr_stats *stats)
{
    ccmr__census_sum sum;

    ccmr__census_read(&resource->census, &sum);
    *stats = (ccmr_stats){
        .size = sizeof(*stats),
        .exact = CCMR_STAT_LIVE_BYTES | CCMR_STAT_COUNTS,
        .live_bytes = sum.bytes > 0 ? (size_t)sum.bytes : 0,
        .peak_live_bytes = CCMR_BYTES_UNKNOWN,
        .reserved_bytes = CCMR_BYTES_UNKNOWN,
        .peak_reserved_bytes = CCMR_BYTES_UNKNOWN,
        .pending_bytes = CCMR_BYTES_UNKNOWN,
        .allocations = (uint64_t)sum.allocations,
        .deallocations = (uint64_t)sum.deallocations,
        .failures = (uint64_t)sum.failures,
    };
    if (sum.allocations > sum.deallocations) {
        stats->live_blocks = (uint64_t)(sum.allocations - sum.deallocations);
    }
}

ccmr_status ccmr_resource_stats(ccmr_resource *resource, ccmr_stats *stats)
{
    unsigned before = failures();
    ccmr_status status = check(resource, stats, "stats", "stats");
    ccmr_stats own;

    if (status != CCMR_SUCCESS) {
        return status;
    }
    prefill(resource, &own);
    if (resource->ops.stats != NULL) {
        status = resource->ops.stats(resource->self, &own);
        if (status != CCMR_SUCCESS) {
            return pass(resource, before, status);
        }
    }
    return ccmr__struct_write(stats, &own, sizeof(own),
                              FIRST_VERSION(ccmr_stats, failures),
                              "ccmr_stats");
}

static ccmr_status check_use(const ccmr_resource *resource, const void *ptr,
                             ccmr_stream stream, const char *call)
{
    ccmr_status status = check(resource, ptr, call, "ptr");

    if (status == CCMR_SUCCESS &&
        (stream == CCMR_STREAM_UNSET || stream == CCMR_STREAM_READY)) {
        status = ccmr__fail(CCMR_ERROR_INVALID_STREAM,
                            "%s: a use needs a stream", call);
    }
    return status;
}

ccmr_status(ccmr_resource_note_use)(ccmr_resource *resource, void *ptr,
                                    ccmr_stream stream)
{
    unsigned before = failures();
    ccmr_status status = check_use(resource, ptr, stream, "note_use");

    if (status != CCMR_SUCCESS) {
        return status;
    }
    if (resource->ops.note_use == NULL) {
        return unsupported(resource, "note_use");
    }
    return pass(resource, before,
                resource->ops.note_use(resource->self, ptr,
                                       ccmr__stream_default(stream)));
}

ccmr_status(ccmr_resource_hold_until_free)(ccmr_resource *resource, void *ptr,
                                           ccmr_stream stream)
{
    unsigned before = failures();
    ccmr_status status = check_use(resource, ptr, stream, "hold_until_free");

    if (status != CCMR_SUCCESS) {
        return status;
    }
    if (resource->ops.hold_until_free == NULL) {
        return unsupported(resource, "hold_until_free");
    }
    return pass(resource, before,
                resource->ops.hold_until_free(resource->self, ptr,
                                              ccmr__stream_default(stream)));
}

/* A block is to grow: what is the same for every resource. */
static ccmr_status check_grow(const ccmr_resource *resource, const void *ptr,
                              size_t bytes, size_t new_bytes,
                              ccmr_stream stream)
{
    ccmr_status status = check(resource, ptr, "grow", "ptr");

    if (status != CCMR_SUCCESS) {
        return status;
    }
    if (stream == CCMR_STREAM_UNSET || stream == CCMR_STREAM_READY) {
        return ccmr__fail(CCMR_ERROR_INVALID_STREAM,
                          "grow: a stream is needed");
    }
    if (bytes == 0 || new_bytes < bytes || new_bytes > (size_t)PTRDIFF_MAX) {
        return named(resource, ccmr__fail(CCMR_ERROR_INVALID_SIZE,
                                          "grow from %zu to %zu bytes", bytes,
                                          new_bytes));
    }
    if (atomic_load_explicit(&resource->closing, memory_order_relaxed) != 0) {
        return ccmr__fail(CCMR_ERROR_RELEASED, "%s has been released",
                          resource->name);
    }
    return CCMR_SUCCESS;
}

ccmr_status(ccmr_resource_grow)(ccmr_resource *resource, void *ptr,
                                size_t bytes, size_t new_bytes,
                                ccmr_stream stream)
{
    unsigned before = failures();
    unsigned slot = ccmr__thread_self()->slot;
    ccmr_status status = check_grow(resource, ptr, bytes, new_bytes, stream);

    if (status != CCMR_SUCCESS) {
        return status;
    }
    if (resource->ops.grow == NULL) {
        return unsupported(resource, "grow");
    }
    status = pass(resource, before,
                  resource->ops.grow(resource->self, ptr, bytes, new_bytes,
                                     ccmr__stream_default(stream)));
    if (status == CCMR_SUCCESS) {
        ccmr__shard_add(slot, &resource->census.shards[slot].bytes,
                        (int64_t)(new_bytes - bytes));
    }
    return status;
}

ccmr_status ccmr_resource_set_access(ccmr_resource *resource, int device,
                                     int granted)
{
    unsigned before = failures();
    ccmr_status status = check(resource, resource, "set_access", "resource");

    if (status != CCMR_SUCCESS) {
        return status;
    }
    if (resource->ops.set_access == NULL) {
        return unsupported(resource, "set_access");
    }
    return pass(
        resource, before,
        resource->ops.set_access(resource->self, device, granted != 0));
}

ccmr_status ccmr_resource_export_handle(ccmr_resource *resource, void *ptr,
                                        unsigned kind, void *handle,
                                        size_t handle_size)
{
    unsigned before = failures();
    ccmr_status status = check(resource, ptr, "export_handle", "ptr");

    if (status == CCMR_SUCCESS) {
        status = check(resource, handle, "export_handle", "handle");
    }
    if (status != CCMR_SUCCESS) {
        return status;
    }
    if (resource->ops.export_handle == NULL) {
        return unsupported(resource, "export_handle");
    }
    return pass(resource, before,
                resource->ops.export_handle(resource->self, ptr, kind, handle,
                                            handle_size));
}

/* Some bytes of a block. */
static ccmr_status check_part(const ccmr_resource *resource, const void *ptr,
                              size_t bytes, const char *call)
{
    ccmr_status status = check(resource, ptr, call, "ptr");

    if (status == CCMR_SUCCESS &&
        (bytes == 0 || bytes > (size_t)PTRDIFF_MAX)) {
        status = named(resource, ccmr__fail(CCMR_ERROR_INVALID_SIZE,
                                            "%s of %zu bytes", call, bytes));
    }
    return status;
}

ccmr_status ccmr_resource_pin(ccmr_resource *resource, void *ptr, size_t bytes)
{
    unsigned before = failures();
    ccmr_status status = check_part(resource, ptr, bytes, "pin");

    if (status != CCMR_SUCCESS) {
        return status;
    }
    if (resource->ops.pin == NULL) {
        return unsupported(resource, "pin");
    }
    return pass(resource, before,
                resource->ops.pin(resource->self, ptr, bytes));
}

ccmr_status ccmr_resource_unpin(ccmr_resource *resource, void *ptr,
                                size_t bytes)
{
    unsigned before = failures();
    ccmr_status status = check_part(resource, ptr, bytes, "unpin");

    if (status != CCMR_SUCCESS) {
        return status;
    }
    if (resource->ops.unpin == NULL) {
        return unsupported(resource, "unpin");
    }
    return pass(resource, before,
                resource->ops.unpin(resource->self, ptr, bytes));
}

ccmr_status ccmr_resource_export_block(ccmr_resource *resource, void *ptr,
                                       size_t bytes, unsigned kind,
                                       void *handle, size_t handle_size,
                                       ccmr_export_place *place)
{
    unsigned before = failures();
    ccmr_export_place own = {.size = sizeof(own)};
    ccmr_status status = check_part(resource, ptr, bytes, "export_block");

    if (status == CCMR_SUCCESS) {
        status = check(resource, handle, "export_block", "handle");
    }
    if (status == CCMR_SUCCESS) {
        status = check(resource, place, "export_block", "place");
    }
    /* A wrong struct is refused before there is a handle. */
    if (status == CCMR_SUCCESS) {
        ccmr_export_place probe = *place;

        status =
            ccmr__struct_write(&probe, &own, sizeof(own),
                               FIRST_VERSION(ccmr_export_place, handle_bytes),
                               "ccmr_export_place");
    }
    if (status != CCMR_SUCCESS) {
        return status;
    }
    if (resource->ops.export_block == NULL) {
        return unsupported(resource, "export_block");
    }
    status = pass(resource, before,
                  resource->ops.export_block(resource->self, ptr, bytes, kind,
                                             handle, handle_size, &own));
    if (status == CCMR_SUCCESS) {
        status =
            ccmr__struct_write(place, &own, sizeof(own),
                               FIRST_VERSION(ccmr_export_place, handle_bytes),
                               "ccmr_export_place");
    }
    return status;
}

static ccmr_status unknown_option(const ccmr_resource *resource,
                                  const char *name)
{
    return named(resource,
                 ccmr__fail(CCMR_ERROR_UNKNOWN_NAME, "%s has no option '%s'",
                            resource->name, name));
}

ccmr_status ccmr_resource_option_get(ccmr_resource *resource, const char *name,
                                     char *text, size_t capacity,
                                     size_t *length)
{
    unsigned before = failures();
    ccmr_status status = check(resource, name, "option_get", "name");
    size_t needed = 0;

    if (status == CCMR_SUCCESS && text == NULL && capacity != 0) {
        status = ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                            "option_get: text is NULL, capacity is not 0");
    }
    if (status != CCMR_SUCCESS) {
        return status;
    }
    if (resource->ops.option_get == NULL) {
        return unknown_option(resource, name);
    }
    status = pass(resource, before,
                  resource->ops.option_get(resource->self, name, text,
                                           capacity, &needed));
    if (status == CCMR_SUCCESS && length != NULL) {
        *length = needed;
    }
    return status;
}

ccmr_status ccmr_resource_option_set(ccmr_resource *resource, const char *name,
                                     const char *text)
{
    unsigned before = failures();
    ccmr_status status = check(resource, name, "option_set", "name");
    size_t length;

    if (status == CCMR_SUCCESS && text == NULL) {
        status = ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                            "option_set: text is NULL");
    }
    if (status != CCMR_SUCCESS) {
        return status;
    }
    if (resource->ops.option_set != NULL) {
        return pass(resource, before,
                    resource->ops.option_set(resource->self, name, text));
    }
    status = ccmr_resource_option_get(resource, name, NULL, 0, &length);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    return named(resource, ccmr__fail(CCMR_ERROR_NOT_SUPPORTED,
                                      "option '%s' of %s is fixed at creation",
                                      name, resource->name));
}

ccmr_status(ccmr_resource_would_fit)(ccmr_resource *resource, size_t bytes,
                                     ccmr_stream stream, int *fits)
{
    unsigned before = failures();
    ccmr_status status = check(resource, fits, "would_fit", "fits");

    if (status == CCMR_SUCCESS &&
        (stream == CCMR_STREAM_UNSET || stream == CCMR_STREAM_READY)) {
        status = ccmr__fail(CCMR_ERROR_INVALID_STREAM,
                            "would_fit: a stream is needed");
    }
    if (status != CCMR_SUCCESS) {
        return status;
    }
    if (resource->ops.would_fit == NULL) {
        return unsupported(resource, "would_fit");
    }
    return pass(resource, before,
                resource->ops.would_fit(resource->self, bytes,
                                        ccmr__stream_default(stream), fits));
}

ccmr_status ccmr_resource_audit(ccmr_resource *resource)
{
    unsigned before = failures();
    ccmr_status status = check(resource, resource, "audit", "resource");

    if (status != CCMR_SUCCESS || resource->ops.audit == NULL) {
        return status;
    }
    return pass(resource, before, resource->ops.audit(resource->self));
}
