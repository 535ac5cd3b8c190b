/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers: their contents, and what they are.
 */
#include <stddef.h>
#include <string.h>

#include "lib/buffer.h"
#include "lib/context.h"
#include "lib/error.h"
#include "lib/struct.h"

/* One end of a copy: device -1 for plain host memory. */
typedef struct place {
    void *ptr;
    int device;
    int host_only; /* no driver is needed to touch it */
} place;

static ccmr_status check_range(const ccmr_buffer *buffer, size_t offset,
                               size_t bytes, const char *call)
{
    if (offset > buffer->bytes || bytes > buffer->bytes - offset) {
        return ccmr__fail(CCMR_ERROR_OUT_OF_RANGE,
                          "%s: %zu bytes at offset %zu do not lie within the "
                          "buffer's %zu",
                          call, bytes, offset, buffer->bytes);
    }
    return CCMR_SUCCESS;
}

static ccmr_status check_work_stream(ccmr_stream stream, const char *call)
{
    if (stream == CCMR_STREAM_UNSET || stream == CCMR_STREAM_READY) {
        return ccmr__fail(CCMR_ERROR_INVALID_STREAM,
                          "%s: work needs a stream, %s is none", call,
                          stream == CCMR_STREAM_UNSET ? "CCMR_STREAM_UNSET"
                                                      : "CCMR_STREAM_READY");
    }
    return CCMR_SUCCESS;
}

/* Host memory that the driver does not know: a resource says so. */
static int is_host_only(const ccmr_buffer *buffer)
{
    ccmr_properties properties = {.size = sizeof(properties)};

    return buffer->resource != NULL &&
           ccmr_resource_describe(buffer->resource, &properties) ==
               CCMR_SUCCESS &&
           properties.host_accessible && !properties.device_accessible;
}

static place place_in(const ccmr_buffer *buffer, size_t offset)
{
    place where = {NULL, buffer->device, is_host_only(buffer)};

    if (buffer->ptr != NULL) {
        where.ptr = (char *)buffer->ptr + offset;
    }
    return where;
}

/* The device in whose context work on a stream is queued. */
static ccmr_status work_device(ccmr_stream stream, int preferred,
                               ccmr__device **device)
{
    const ccmr__stream_record *record = ccmr__stream_find(stream);

    if (record != NULL) {
        preferred = record->device;
    }
    return ccmr__device_use(preferred >= 0 ? preferred : CCMR_DEVICE_CURRENT,
                            device);
}

/* In the device's context. Work on a capturing stream becomes part of its
 * graph; but work on the legacy stream ruins every capture that is ordered
 * with it, so that it is asked before. */
static ccmr_status check_legacy(ccmr_stream stream)
{
    return stream == CCMR_STREAM_LEGACY ? ccmr__stream_check_capture(stream)
                                        : CCMR_SUCCESS;
}

static ccmr_status copy(place to, place from, size_t bytes, ccmr_stream stream)
{
    ccmr__device *device;
    ccmr__scope scope;
    ccmr_status status;
    CUresult res;

    if (to.host_only && from.host_only && !ccmr__driver_ready()) {
        memmove(to.ptr, from.ptr, bytes);
        return CCMR_SUCCESS;
    }
    status = ccmr__driver_need();
    if (status == CCMR_SUCCESS) {
        status = work_device(stream, to.device >= 0 ? to.device : from.device,
                             &device);
    }
    /* Relaxed: a copy of pageable memory may synchronise, which would ruin a
     * capture of any thread. */
    if (status == CCMR_SUCCESS) {
        status = ccmr__scope_enter(&scope, device, CCMR__SCOPE_RELAXED);
    }
    if (status != CCMR_SUCCESS) {
        return status;
    }
    status = check_legacy(stream);
    if (status == CCMR_SUCCESS) {
        res = CCMR__CU(cuMemcpyAsync)((CUdeviceptr)(uintptr_t)to.ptr,
                                      (CUdeviceptr)(uintptr_t)from.ptr, bytes,
                                      stream);
        if (res != CUDA_SUCCESS) {
            status = ccmr__fail_driver((int)res, "cuMemcpyAsync");
        }
    }
    ccmr__scope_leave(&scope);
    return status;
}

ccmr_status(ccmr_buffer_copy)(ccmr_buffer *destination,
                              size_t destination_offset, ccmr_buffer *source,
                              size_t source_offset, size_t bytes,
                              ccmr_stream stream)
{
    static const char call[] = "ccmr_buffer_copy";
    ccmr_status status = ccmr__buffer_check(destination, call);

    if (status == CCMR_SUCCESS) {
        status = ccmr__buffer_check(source, call);
    }
    if (status == CCMR_SUCCESS) {
        status = check_work_stream(stream, call);
    }
    if (status == CCMR_SUCCESS) {
        status = check_range(destination, destination_offset, bytes, call);
    }
    if (status == CCMR_SUCCESS) {
        status = check_range(source, source_offset, bytes, call);
    }
    if (status != CCMR_SUCCESS || bytes == 0) {
        return status;
    }
    return copy(place_in(destination, destination_offset),
                place_in(source, source_offset), bytes,
                ccmr__stream_default(stream));
}

/* What the two copies with host memory check alike. */
static ccmr_status check_host_copy(const ccmr_buffer *buffer, size_t offset,
                                   const void *host, size_t bytes,
                                   ccmr_stream stream, const char *call)
{
    ccmr_status status = ccmr__buffer_check(buffer, call);

    if (status == CCMR_SUCCESS) {
        status = check_work_stream(stream, call);
    }
    if (status == CCMR_SUCCESS) {
        status = check_range(buffer, offset, bytes, call);
    }
    if (status == CCMR_SUCCESS && host == NULL && bytes != 0) {
        status =
            ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT, "%s: host is NULL", call);
    }
    return status;
}

ccmr_status(ccmr_buffer_copy_to_host)(ccmr_buffer *buffer, size_t offset,
                                      void *host, size_t bytes,
                                      ccmr_stream stream)
{
    ccmr_status status = check_host_copy(buffer, offset, host, bytes, stream,
                                         "ccmr_buffer_copy_to_host");
    place to = {host, -1, 1};

    if (status != CCMR_SUCCESS || bytes == 0) {
        return status;
    }
    return copy(to, place_in(buffer, offset), bytes,
                ccmr__stream_default(stream));
}

ccmr_status(ccmr_buffer_copy_from_host)(ccmr_buffer *buffer, size_t offset,
                                        const void *host, size_t bytes,
                                        ccmr_stream stream)
{
    ccmr_status status = check_host_copy(buffer, offset, host, bytes, stream,
                                         "ccmr_buffer_copy_from_host");
    place from = {(void *)(uintptr_t)host, -1, 1};

    if (status != CCMR_SUCCESS || bytes == 0) {
        return status;
    }
    return copy(place_in(buffer, offset), from, bytes,
                ccmr__stream_default(stream));
}

static ccmr_status check_pattern(size_t offset, size_t bytes, uint32_t value,
                                 unsigned width)
{
    if (width != 1 && width != 2 && width != 4) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "ccmr_buffer_fill: width %u is not 1, 2 or 4",
                          width);
    }
    if (width < 4 && value >> (8 * width) != 0) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "ccmr_buffer_fill: value 0x%x does not fit into %u "
                          "byte%s",
                          value, width, width == 1 ? "" : "s");
    }
    if (offset % width != 0 || bytes % width != 0) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "ccmr_buffer_fill: offset %zu and length %zu must "
                          "be multiples of the width %u",
                          offset, bytes, width);
    }
    return CCMR_SUCCESS;
}

static void fill_host(void *ptr, size_t bytes, uint32_t value, unsigned width)
{
    unsigned char *to = ptr;
    size_t i;

    for (i = 0; i < bytes; i += width) {
        memcpy(to + i, &value, width); /* little-endian, as CUDA's hosts */
    }
}

/* In the device's context. */
static ccmr_status fill_device(place where, size_t bytes, uint32_t value,
                               unsigned width, ccmr_stream stream)
{
    CUdeviceptr ptr = (CUdeviceptr)(uintptr_t)where.ptr;
    const char *call;
    CUresult res;

    switch (width) {
    case 1:
        call = "cuMemsetD8Async";
        res = CCMR__CU(cuMemsetD8Async)(ptr, (unsigned char)value, bytes,
                                        stream);
        break;
    case 2:
        call = "cuMemsetD16Async";
        res = CCMR__CU(cuMemsetD16Async)(ptr, (unsigned short)value, bytes / 2,
                                         stream);
        break;
    default:
        call = "cuMemsetD32Async";
        res = CCMR__CU(cuMemsetD32Async)(ptr, value, bytes / 4, stream);
        break;
    }
    return res == CUDA_SUCCESS ? CCMR_SUCCESS
                               : ccmr__fail_driver((int)res, call);
}

static ccmr_status fill(place where, size_t bytes, uint32_t value,
                        unsigned width, ccmr_stream stream)
{
    ccmr__device *device;
    ccmr__scope scope;
    ccmr_status status;

    if (where.host_only && !ccmr__driver_ready()) {
        fill_host(where.ptr, bytes, value, width);
        return CCMR_SUCCESS;
    }
    status = ccmr__driver_need();
    if (status == CCMR_SUCCESS) {
        status = work_device(stream, where.device, &device);
    }
    if (status == CCMR_SUCCESS && where.host_only) {
        /* No device can do it: wait for the stream, then do it here. */
        status = ccmr_stream_synchronize(stream, device->ordinal);
        if (status == CCMR_SUCCESS) {
            fill_host(where.ptr, bytes, value, width);
        }
        return status;
    }
    if (status == CCMR_SUCCESS) {
        status = ccmr__scope_enter(&scope, device, CCMR__SCOPE_RELAXED);
    }
    if (status != CCMR_SUCCESS) {
        return status;
    }
    status = check_legacy(stream);
    if (status == CCMR_SUCCESS) {
        status = fill_device(where, bytes, value, width, stream);
    }
    ccmr__scope_leave(&scope);
    return status;
}

ccmr_status(ccmr_buffer_fill)(ccmr_buffer *buffer, size_t offset, size_t bytes,
                              uint32_t value, unsigned width,
                              ccmr_stream stream)
{
    static const char call[] = "ccmr_buffer_fill";
    ccmr_status status = ccmr__buffer_check(buffer, call);

    if (status == CCMR_SUCCESS) {
        status = check_work_stream(stream, call);
    }
    if (status == CCMR_SUCCESS) {
        status = check_pattern(offset, bytes, value, width);
    }
    if (status == CCMR_SUCCESS) {
        status = check_range(buffer, offset, bytes, call);
    }
    if (status != CCMR_SUCCESS || bytes == 0) {
        return status;
    }
    return fill(place_in(buffer, offset), bytes, value, width,
                ccmr__stream_default(stream));
}

/* What the driver says of a pointer that no resource stands for. Unregistered
 * host memory is an invalid value to it; without a driver nothing is known. */
static void ask_driver(const ccmr_buffer *buffer,
                       ccmr_buffer_properties *properties)
{
    CUdeviceptr ptr = (CUdeviceptr)(uintptr_t)buffer->ptr;
    unsigned type = 0;
    unsigned managed = 0;
    int ordinal = -1;
    CUresult res;

    if (buffer->ptr == NULL || ccmr__driver_need() != CCMR_SUCCESS) {
        return;
    }
    res = CCMR__CU(cuPointerGetAttribute)(
        &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, ptr);
    if (res == CUDA_ERROR_INVALID_VALUE) {
        properties->host_accessible = 1;
        properties->device_accessible = 0;
        properties->managed = 0;
        return;
    }
    if (res != CUDA_SUCCESS ||
        CCMR__CU(cuPointerGetAttribute)(
            &managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, ptr) != CUDA_SUCCESS) {
        return;
    }
    properties->managed = managed != 0;
    properties->device_accessible = 1;
    properties->host_accessible = managed != 0 || type == CU_MEMORYTYPE_HOST;
    if (type == CU_MEMORYTYPE_DEVICE && properties->device < 0 &&
        CCMR__CU(cuPointerGetAttribute)(&ordinal,
                                        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                        ptr) == CUDA_SUCCESS) {
        properties->device = ordinal;
    }
}

static ccmr_status ask_resource(const ccmr_buffer *buffer,
                                ccmr_buffer_properties *properties)
{
    ccmr_properties of_resource = {.size = sizeof(of_resource)};
    ccmr_status status =
        ccmr_resource_describe(buffer->resource, &of_resource);

    if (status == CCMR_SUCCESS) {
        properties->device_accessible = of_resource.device_accessible;
        properties->host_accessible = of_resource.host_accessible;
        properties->managed = of_resource.managed;
    }
    return status;
}

ccmr_status ccmr_buffer_describe(ccmr_buffer *buffer,
                                 ccmr_buffer_properties *properties)
{
    ccmr_buffer_properties own = {
        .size = sizeof(own),
        .stream = CCMR_STREAM_UNSET,
        .device = -1,
        .device_accessible = -1,
        .host_accessible = -1,
        .managed = -1,
    };
    ccmr_status status = CCMR_SUCCESS;

    if (buffer == NULL || properties == NULL) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "ccmr_buffer_describe: %s is NULL",
                          buffer == NULL ? "buffer" : "properties");
    }
    own.closed = buffer->closed;
    if (!buffer->closed) {
        status = ccmr__buffer_check(buffer, "ccmr_buffer_describe");
        if (status != CCMR_SUCCESS) {
            return status;
        }
        own.ptr = buffer->ptr;
        own.bytes = buffer->bytes;
        own.alignment = buffer->alignment;
        own.resource = buffer->resource;
        own.stream = buffer->stream;
        own.device = buffer->device;
        own.owning = buffer->kind == CCMR__BUFFER_OWNING;
        if (buffer->resource != NULL) {
            status = ask_resource(buffer, &own);
        } else {
            ask_driver(buffer, &own);
        }
    }
    if (status != CCMR_SUCCESS) {
        return status;
    }
    return ccmr__struct_write(properties, &own, sizeof(own), sizeof(own),
                              "ccmr_buffer_properties");
}
