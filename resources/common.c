/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What several resources have in common.
 */
#include "resources/common.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "lib/error.h"
#include "lib/process.h"
#include "lib/resource.h"
#include "lib/resource_object.h"
#include "lib/stream.h"

ccmr_status ccmr__value_device(const ccmr_option_value *value, int *ordinal)
{
    if (!value->set) {
        *ordinal = CCMR_DEVICE_CURRENT;
        return CCMR_SUCCESS;
    }
    if (value->integer < 0 || value->integer > INT_MAX) {
        return ccmr__fail(CCMR_ERROR_NO_DEVICE,
                          "device=%lld: ordinals are counted from 0",
                          (long long)value->integer);
    }
    *ordinal = (int)value->integer;
    return CCMR_SUCCESS;
}

ccmr_status ccmr__option_find(const ccmr_kind *kind, const char *name,
                              size_t *index)
{
    size_t i;

    for (i = 0; kind->options[i].name != NULL; i++) {
        if (strcmp(kind->options[i].name, name) == 0) {
            *index = i;
            return CCMR_SUCCESS;
        }
    }
    return ccmr__fail(CCMR_ERROR_UNKNOWN_NAME, "%s has no option '%s'",
                      kind->name, name);
}

ccmr_status ccmr__stream_finish(ccmr_stream stream, ccmr__device *device)
{
    ccmr_status status;

    if (stream == CCMR_STREAM_READY) {
        return CCMR_SUCCESS;
    }
    status = ccmr__stream_check(stream, device);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    return ccmr__stream_wait(stream, device);
}

ccmr_status ccmr__check_address(const void *ptr, size_t unit)
{
    if (((uintptr_t)ptr & (unit - 1)) == 0) {
        return CCMR_SUCCESS;
    }
    return ccmr__fail(CCMR_ERROR_INVALID_POINTER,
                      "%p is no multiple of %zu: not a block's address", ptr,
                      unit);
}

ccmr_status ccmr__fail_address(const void *ptr, int result, const char *call)
{
    ccmr_status status = ccmr__fail_driver(result, call);
    ccmr_error_detail *detail = ccmr__error();

    if (result == (int)CUDA_ERROR_INVALID_VALUE) {
        status = CCMR_ERROR_INVALID_POINTER;
        detail->status = status;
        (void)snprintf(detail->message, sizeof(detail->message),
                       "%p is not the address of a live block: %s returned "
                       "%s (%d)",
                       ptr, call, detail->driver_result_name, result);
    }
    return status;
}

void ccmr__note_out_of_memory(ccmr_error_detail *detail, const char *call)
{
    detail->driver_call = call;
    detail->driver_result = (int)CUDA_ERROR_OUT_OF_MEMORY;
    detail->driver_result_name = "CUDA_ERROR_OUT_OF_MEMORY";
}

ccmr_status ccmr__find_adaptor(ccmr_resource *resource,
                               const ccmr_resource_ops *ops, const char *kind,
                               const char *call, ccmr_resource **found)
{
    ccmr_status status = ccmr__process_check();
    ccmr_resource *at = resource;
    unsigned depth;

    if (status != CCMR_SUCCESS) {
        return status;
    }
    if (resource == NULL) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT, "%s: resource is NULL",
                          call);
    }
    for (depth = 0; depth <= CCMR__STACK_MOST; depth++) {
        if (ccmr__resource_is(at, ops)) {
            *found = at;
            return CCMR_SUCCESS;
        }
        if (at->ops.upstream == NULL ||
            at->ops.upstream(at->self, 0, &at) != CCMR_SUCCESS) {
            break;
        }
    }
    return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                      "%s: %s is no %s resource, and none is under it", call,
                      resource->name, kind);
}

void ccmr__stats_nothing_kept(ccmr_stats *stats)
{
    stats->reserved_bytes = stats->live_bytes;
    stats->pending_bytes = 0;
    stats->exact |= CCMR_STAT_RESERVED_BYTES | CCMR_STAT_PENDING_BYTES;
}

ccmr_status ccmr__choose_allocation_stream(void *object,
                                           const ccmr_block *block,
                                           ccmr_stream requested,
                                           ccmr_stream *chosen)
{
    (void)object;
    if (requested == CCMR_STREAM_UNSET) {
        requested = block->allocation_stream;
    }
    if (requested == CCMR_STREAM_UNSET) {
        return ccmr__fail(CCMR_ERROR_INVALID_STREAM,
                          "no stream was named for the free, and the block's "
                          "allocation stream is not known");
    }
    *chosen = requested;
    return CCMR_SUCCESS;
}

ccmr_status ccmr__upstream_device(ccmr_resource *upstream,
                                  ccmr__device **device)
{
    int ordinal = ccmr__resource_device(upstream);

    return ccmr__device_use(ordinal >= 0 ? ordinal : CCMR_DEVICE_CURRENT,
                            device);
}

/* ---- what adaptors pass on ------------------------------------------------ */

static ccmr_resource *upstream_of(void *object)
{
    return *(ccmr_resource **)object;
}

ccmr_status ccmr__adaptor_upstream(void *object, size_t i,
                                   ccmr_resource **resource)
{
    if (i != 0) {
        return CCMR_ERROR_OUT_OF_RANGE;
    }
    *resource = upstream_of(object);
    return CCMR_SUCCESS;
}

ccmr_status ccmr__adaptor_would_fit(void *object, size_t bytes,
                                    ccmr_stream stream, int *fits)
{
    return ccmr_resource_would_fit(upstream_of(object), bytes, stream, fits);
}

ccmr_status ccmr__adaptor_note_use(void *object, void *ptr, ccmr_stream stream)
{
    return ccmr_resource_note_use(upstream_of(object), ptr, stream);
}

ccmr_status ccmr__adaptor_hold_until_free(void *object, void *ptr,
                                          ccmr_stream stream)
{
    return ccmr_resource_hold_until_free(upstream_of(object), ptr, stream);
}

ccmr_status ccmr__adaptor_pin(void *object, void *ptr, size_t bytes)
{
    return ccmr_resource_pin(upstream_of(object), ptr, bytes);
}

ccmr_status ccmr__adaptor_unpin(void *object, void *ptr, size_t bytes)
{
    return ccmr_resource_unpin(upstream_of(object), ptr, bytes);
}

ccmr_status ccmr__adaptor_export_handle(void *object, void *ptr, unsigned kind,
                                        void *handle, size_t handle_size)
{
    return ccmr_resource_export_handle(upstream_of(object), ptr, kind, handle,
                                       handle_size);
}

ccmr_status ccmr__adaptor_export_block(void *object, void *ptr, size_t bytes,
                                       unsigned kind, void *handle,
                                       size_t handle_size,
                                       ccmr_export_place *place)
{
    return ccmr_resource_export_block(upstream_of(object), ptr, bytes, kind,
                                      handle, handle_size, place);
}
