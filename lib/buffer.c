/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers: their life, from creation to close.
 */
#include "lib/buffer.h"

#include <stdlib.h>

#include "lib/arith.h"
#include "lib/context.h"
#include "lib/error.h"
#include "lib/process.h"
#include "lib/resource.h"
#include "lib/struct.h"
#include "lib/thread.h"

ccmr_status ccmr__buffer_check(const ccmr_buffer *buffer, const char *call)
{
    ccmr_status status = ccmr__process_check();

    if (status == CCMR_SUCCESS && buffer == NULL) {
        status = ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT, "%s: buffer is NULL",
                            call);
    }
    if (status == CCMR_SUCCESS && buffer->closed) {
        status =
            ccmr__fail(CCMR_ERROR_CLOSED, "%s: the buffer is closed", call);
    }
    return status;
}

void ccmr__buffer_record(ccmr_buffer *buffer, ccmr_stream stream)
{
    const ccmr__stream_record *record = NULL;

    buffer->stream = stream;
    buffer->stream_id = 0;
    buffer->thread = 0;
    if (stream == CCMR_STREAM_PER_THREAD) {
        buffer->thread = ccmr__thread_serial();
    } else if (stream != CCMR_STREAM_UNSET) {
        record = ccmr__stream_find(stream);
    }
    if (record != NULL) {
        buffer->stream_id = record->id;
    }
}

int ccmr__buffer_stream_known(const ccmr_buffer *buffer)
{
    const ccmr__stream_record *record;

    if (buffer->stream == CCMR_STREAM_LEGACY) {
        return 1;
    }
    if (buffer->stream == CCMR_STREAM_PER_THREAD) {
        return buffer->thread == ccmr__thread_serial();
    }
    if (buffer->stream_id == 0) {
        return 0;
    }
    record = ccmr__stream_find(buffer->stream);
    return record != NULL && record->id == buffer->stream_id;
}

static ccmr_buffer *buffer_new(void *ptr, size_t bytes, size_t alignment)
{
    ccmr_buffer *buffer = malloc(sizeof(*buffer));

    if (buffer == NULL) {
        (void)ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                         "no memory for a buffer object");
        return NULL;
    }
    *buffer = (ccmr_buffer){
        .ptr = ptr,
        .bytes = bytes,
        .alignment = alignment != 0 ? alignment : CCMR_DEFAULT_ALIGNMENT,
        .stream = CCMR_STREAM_UNSET,
        .device = -1,
    };
    return buffer;
}

ccmr_status(ccmr_buffer_create)(ccmr_resource *resource, size_t bytes,
                                const ccmr_buffer_options *options,
                                ccmr_stream stream, ccmr_buffer **buffer)
{
    ccmr_buffer_options own = {.size = sizeof(own)};
    ccmr_status status = ccmr__process_check();
    ccmr_buffer *made;

    if (status != CCMR_SUCCESS) {
        return status;
    }
    if (resource == NULL || buffer == NULL) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "ccmr_buffer_create: %s is NULL",
                          resource == NULL ? "resource" : "buffer");
    }
    if (options != NULL) {
        status = ccmr__struct_read(&own, sizeof(own), options, sizeof(own),
                                   "ccmr_buffer_options");
        if (status != CCMR_SUCCESS) {
            return status;
        }
    }
    made = buffer_new(NULL, bytes, own.alignment);
    if (made == NULL) {
        return CCMR_ERROR_OUT_OF_HOST_MEMORY;
    }
    stream = ccmr__stream_default(stream);
    status = ccmr_resource_allocate(resource, bytes, own.alignment, stream,
                                    &made->ptr);
    if (status != CCMR_SUCCESS) {
        free(made);
        return status;
    }
    ccmr__resource_hold(resource);
    made->resource = resource;
    made->kind = CCMR__BUFFER_OWNING;
    made->device = ccmr__resource_device(resource);
    ccmr__buffer_record(made, stream);
    *buffer = made;
    return CCMR_SUCCESS;
}

/* A stream that a buffer is to record must be one that its resource can free
 * on; that is found out now, not at the close. */
static ccmr_status check_recordable(int device, ccmr_stream stream)
{
    ccmr_status status;
    int ordinal;

    if (stream == CCMR_STREAM_UNSET || stream == CCMR_STREAM_READY) {
        return ccmr__fail(CCMR_ERROR_INVALID_STREAM,
                          "a buffer records a stream to free on; %s is none",
                          stream == CCMR_STREAM_UNSET ? "CCMR_STREAM_UNSET"
                                                      : "CCMR_STREAM_READY");
    }
    if (device < 0 || ccmr__stream_is_token(stream)) {
        return CCMR_SUCCESS;
    }
    status = ccmr__driver_need();
    if (status == CCMR_SUCCESS) {
        status = ccmr__stream_device(stream, &ordinal);
    }
    if (status == CCMR_SUCCESS && ordinal != device) {
        status = ccmr__fail(CCMR_ERROR_WRONG_DEVICE,
                            "the stream belongs to device %d, the buffer to "
                            "device %d",
                            ordinal, device);
    }
    return status;
}

/* What its resource would refuse to take back could never be closed. */
static ccmr_status check_owned(const ccmr_buffer_source *source, void *ptr,
                               size_t bytes)
{
    if (ptr != NULL && bytes == 0) {
        return ccmr__fail(CCMR_ERROR_INVALID_SIZE,
                          "ccmr_buffer_from_handle: a block of 0 bytes");
    }
    if (bytes > (size_t)PTRDIFF_MAX) {
        return ccmr__fail(CCMR_ERROR_INVALID_SIZE,
                          "ccmr_buffer_from_handle: size %zu is more than "
                          "any allocation can be",
                          bytes);
    }
    if (source->alignment > ccmr__resource_max_alignment(source->resource)) {
        return ccmr__fail(CCMR_ERROR_INVALID_ALIGNMENT,
                          "ccmr_buffer_source: alignment %zu is more than "
                          "%s honours",
                          source->alignment,
                          ccmr_resource_name(source->resource));
    }
    return check_recordable(ccmr__resource_device(source->resource),
                            ccmr__stream_default(source->stream));
}

static ccmr_status check_source(const ccmr_buffer_source *source, void *ptr,
                                size_t bytes)
{
    if (ptr == NULL && bytes != 0) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "ccmr_buffer_from_handle: ptr is NULL, bytes is "
                          "%zu",
                          bytes);
    }
    if (source->resource != NULL &&
        (source->release != NULL || source->owner != NULL)) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "ccmr_buffer_source: resource and owner exclude "
                          "each other");
    }
    if (source->alignment != 0 && !ccmr__is_power_of_two(source->alignment)) {
        return ccmr__fail(CCMR_ERROR_INVALID_ALIGNMENT,
                          "ccmr_buffer_source: alignment %zu is not a power "
                          "of two",
                          source->alignment);
    }
    if (source->resource == NULL) {
        if (source->stream != CCMR_STREAM_UNSET && source->stream != NULL) {
            return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                              "ccmr_buffer_source: a stream needs a "
                              "resource that frees on it");
        }
        return CCMR_SUCCESS;
    }
    return check_owned(source, ptr, bytes);
}

ccmr_status ccmr_buffer_from_handle(void *ptr, size_t bytes,
                                    const ccmr_buffer_source *source,
                                    ccmr_buffer **buffer)
{
    ccmr_buffer_source own = CCMR_BUFFER_SOURCE_INIT;
    ccmr_status status = ccmr__process_check();
    ccmr_buffer *made;

    if (status == CCMR_SUCCESS && buffer == NULL) {
        status = ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                            "ccmr_buffer_from_handle: buffer is NULL");
    }
    if (status == CCMR_SUCCESS && source != NULL) {
        status = ccmr__struct_read(&own, sizeof(own), source, sizeof(own),
                                   "ccmr_buffer_source");
    }
    if (status == CCMR_SUCCESS) {
        status = check_source(&own, ptr, bytes);
    }
    if (status != CCMR_SUCCESS) {
        return status;
    }
    made = buffer_new(ptr, bytes, own.alignment);
    if (made == NULL) {
        return CCMR_ERROR_OUT_OF_HOST_MEMORY;
    }
    made->device = own.device;
    if (own.resource != NULL) {
        ccmr__resource_hold(own.resource);
        made->resource = own.resource;
        made->kind = CCMR__BUFFER_OWNING;
        made->device = ccmr__resource_device(own.resource);
        ccmr__buffer_record(made, ccmr__stream_default(own.stream));
    } else if (own.release != NULL) {
        made->kind = CCMR__BUFFER_BORROWING;
        made->release = own.release;
        made->owner = own.owner;
    }
    *buffer = made;
    return CCMR_SUCCESS;
}

/* The memory is gone, or somebody else's: only the shell stays. */
static void buffer_end(ccmr_buffer *buffer)
{
    ccmr_resource *resource = buffer->resource;

    buffer->closed = 1;
    buffer->ptr = NULL;
    buffer->bytes = 0;
    buffer->resource = NULL;
    if (buffer->notes != NULL) {
        ccmr__buffer_drop_notes(buffer);
    }
    if (resource != NULL) {
        ccmr__resource_unhold(resource);
    }
}

/* May the chosen stream be used, when nobody named one? */
static ccmr_status check_recorded(const ccmr_buffer *buffer,
                                  ccmr_stream chosen)
{
    ccmr_properties properties = {.size = sizeof(properties)};

    if (chosen != buffer->stream || ccmr__buffer_stream_known(buffer)) {
        return CCMR_SUCCESS;
    }
    if (ccmr_resource_describe(buffer->resource, &properties) ==
            CCMR_SUCCESS &&
        properties.free_stream == CCMR_FREE_AT_ONCE) {
        return CCMR_SUCCESS; /* streams do not matter */
    }
    if (chosen == CCMR_STREAM_PER_THREAD) {
        return ccmr__fail(CCMR_ERROR_WRONG_THREAD,
                          "the buffer was recorded on another thread's "
                          "default stream; close it there, or name a stream");
    }
    if (buffer->stream_id != 0) {
        return ccmr__fail(CCMR_ERROR_INVALID_STREAM,
                          "the buffer's recorded stream has been retired; "
                          "name a stream");
    }
    return CCMR_SUCCESS; /* unregistered: alive, as the caller promises */
}

/* The device in whose context the free is ordered. Of memory that is bound to
 * none, the stream's; -1, the current one, if that is a token. */
static ccmr_status order_device(const ccmr_buffer *buffer, ccmr_stream chosen,
                                ccmr__device **device)
{
    ccmr_status status = CCMR_SUCCESS;
    int ordinal = buffer->device;

    if (ordinal < 0) {
        status = ccmr__driver_need();
        if (status == CCMR_SUCCESS) {
            status = ccmr__stream_device(chosen, &ordinal);
        }
        if (status == CCMR_SUCCESS && ordinal < 0 && buffer->stream_id != 0) {
            status = ccmr__stream_device(buffer->stream, &ordinal);
        }
    }
    return status == CCMR_SUCCESS ? ccmr__device_use(ordinal, device) : status;
}

/* Everything that the free has to come after. */
static ccmr_status order_free(const ccmr_buffer *buffer, ccmr_stream requested,
                              ccmr_stream chosen)
{
    int edge = requested != CCMR_STREAM_UNSET && chosen != buffer->stream &&
               ccmr__buffer_stream_known(buffer);
    ccmr_status status = CCMR_SUCCESS;
    ccmr__device *device;

    if (chosen == CCMR_STREAM_READY || (!edge && buffer->notes == NULL) ||
        ccmr__buffer_frees_at_once(buffer)) {
        return CCMR_SUCCESS;
    }
    status = order_device(buffer, chosen, &device);
    if (status == CCMR_SUCCESS && edge) {
        status = ccmr__buffer_add_edge(buffer, chosen, device);
    }
    if (status == CCMR_SUCCESS && buffer->notes != NULL) {
        status = ccmr__buffer_wait_notes(buffer, chosen, device);
    }
    return status;
}

static ccmr_status close_owning(ccmr_buffer *buffer, ccmr_stream requested)
{
    ccmr_block block = {sizeof(block), buffer->ptr, buffer->bytes,
                        buffer->alignment, buffer->stream};
    ccmr_stream chosen;
    ccmr_status status;

    if (buffer->ptr == NULL) {
        return CCMR_SUCCESS;
    }
    status = ccmr_resource_choose_free_stream(buffer->resource, &block,
                                              requested, &chosen);
    if (status == CCMR_SUCCESS && requested == CCMR_STREAM_UNSET) {
        status = check_recorded(buffer, chosen);
    }
    if (status == CCMR_SUCCESS) {
        status = order_free(buffer, requested, chosen);
    }
    if (status != CCMR_SUCCESS) {
        return status;
    }
    return ccmr_resource_deallocate(buffer->resource, buffer->ptr,
                                    buffer->bytes, buffer->alignment, chosen);
}

ccmr_status(ccmr_buffer_close)(ccmr_buffer *buffer, ccmr_stream stream)
{
    ccmr_status status = ccmr__process_check();
    void (*release)(void *);

    if (status != CCMR_SUCCESS) {
        return status;
    }
    if (buffer == NULL) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "ccmr_buffer_close: buffer is NULL");
    }
    if (buffer->closed) {
        return CCMR_SUCCESS;
    }
    if (buffer->kind == CCMR__BUFFER_OWNING) {
        status = close_owning(buffer, ccmr__stream_default(stream));
        if (status != CCMR_SUCCESS) {
            return status;
        }
    }
    release = buffer->release;
    buffer->release = NULL;
    buffer_end(buffer);
    if (release != NULL) {
        release(buffer->owner);
    }
    return CCMR_SUCCESS;
}

ccmr_status ccmr_buffer_destroy(ccmr_buffer *buffer)
{
    ccmr_status status;

    if (buffer == NULL) {
        return CCMR_SUCCESS;
    }
    status = (ccmr_buffer_close)(buffer, CCMR_STREAM_UNSET);
    if (status == CCMR_SUCCESS) {
        free(buffer);
    }
    return status;
}

ccmr_status(ccmr_buffer_set_stream)(ccmr_buffer *buffer, ccmr_stream stream)
{
    ccmr_status status = ccmr__buffer_check(buffer, "ccmr_buffer_set_stream");

    if (status == CCMR_SUCCESS && buffer->kind != CCMR__BUFFER_OWNING) {
        status = ccmr__fail(CCMR_ERROR_NOT_SUPPORTED,
                            "ccmr_buffer_set_stream: the buffer frees "
                            "nothing, so it has no stream to free on");
    }
    if (status == CCMR_SUCCESS) {
        stream = ccmr__stream_default(stream);
        status = check_recordable(buffer->device, stream);
    }
    if (status == CCMR_SUCCESS) {
        ccmr__buffer_record(buffer, stream);
    }
    return status;
}

ccmr_status ccmr_buffer_disown(ccmr_buffer *buffer, void **ptr)
{
    ccmr_status status = ccmr__buffer_check(buffer, "ccmr_buffer_disown");

    if (status != CCMR_SUCCESS) {
        return status;
    }
    if (ptr != NULL) {
        *ptr = buffer->ptr;
    }
    buffer->release = NULL;
    buffer_end(buffer);
    return CCMR_SUCCESS;
}

void *ccmr_buffer_ptr(const ccmr_buffer *buffer)
{
    return buffer != NULL ? buffer->ptr : NULL;
}

size_t ccmr_buffer_bytes(const ccmr_buffer *buffer)
{
    return buffer != NULL ? buffer->bytes : 0;
}
