/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_plain: cuMemAlloc and cuMemFree, for machines without driver pools
 * and as the upstream of resources that cache. Every block is the driver's
 * own; nothing is kept.
 *
 * Streams: a free waits for its stream, then frees, and the driver waits for
 * every kernel on the device as well. What can be refused (a stream that
 * captures or is another device's, an address that cannot be right) is refused
 * before anything is waited for; what the driver refuses leaves the block
 * live. Acts in the device's primary context and brings the caller's back.
 * Threads: any; the object never changes.
 */
#include <cucoremr/resources/device_plain.h>

#include <stdlib.h>

#include "lib/error.h"
#include "lib/stream.h"
#include "lib/struct.h"
#include "lib/text.h"
#include "resources/common.h"
#include "resources/registry.h"

/* What the driver promises of every address. */
#define DRIVER_ALIGNMENT ((size_t)256)

typedef struct device_plain {
    ccmr__device *device;
} device_plain;

/* Out of memory, with the device's figures; `free_bytes` may be unknown, and
 * `res` success where the driver was not asked. */
static ccmr_status fail_full(const device_plain *self, size_t bytes,
                             size_t free_bytes, CUresult res)
{
    const ccmr__device *device = self->device;
    ccmr_error_detail *detail;

    if (free_bytes == CCMR_BYTES_UNKNOWN) {
        (void)ccmr__fail(CCMR_ERROR_OUT_OF_DEVICE_MEMORY,
                         "device %d cannot give %zu bytes, it has %zu in all",
                         device->ordinal, bytes, device->total_bytes);
    } else {
        (void)ccmr__fail(
            CCMR_ERROR_OUT_OF_DEVICE_MEMORY,
            "device %d cannot give %zu bytes, %zu of %zu are free",
            device->ordinal, bytes, free_bytes, device->total_bytes);
    }
    detail = ccmr__error();
    detail->device = device->ordinal;
    detail->limit = device->total_bytes;
    if (res != CUDA_SUCCESS) {
        ccmr__note_out_of_memory(detail, "cuMemAlloc");
    }
    return CCMR_ERROR_OUT_OF_DEVICE_MEMORY;
}

/* In the device's context: check the stream, and ask the driver. */
static ccmr_status take(const device_plain *self, size_t bytes,
                        ccmr_stream stream, CUdeviceptr *address)
{
    ccmr_status status = ccmr__stream_check(stream, self->device);
    size_t free_bytes;
    size_t total_bytes;
    CUresult res;

    if (status != CCMR_SUCCESS) {
        return status;
    }
    res = CCMR__CU(cuMemAlloc)(address, bytes);
    if (res == CUDA_SUCCESS) {
        return CCMR_SUCCESS;
    }
    if (res != CUDA_ERROR_OUT_OF_MEMORY) {
        return ccmr__fail_driver((int)res, "cuMemAlloc");
    }
    if (CCMR__CU(cuMemGetInfo)(&free_bytes, &total_bytes) != CUDA_SUCCESS) {
        free_bytes = CCMR_BYTES_UNKNOWN;
    }
    return fail_full(self, bytes, free_bytes, res);
}

static ccmr_status device_plain_allocate(void *object, size_t bytes,
                                         size_t alignment, ccmr_stream stream,
                                         void **ptr)
{
    device_plain *self = object;
    CUdeviceptr address;
    ccmr__scope scope;
    ccmr_status status;

    (void)alignment; /* at most the driver's */
    if (bytes > self->device->total_bytes) {
        return fail_full(self, bytes, CCMR_BYTES_UNKNOWN, CUDA_SUCCESS);
    }
    status = ccmr__scope_enter(&scope, self->device, CCMR__SCOPE_RELAXED);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    status = take(self, bytes, stream, &address);
    ccmr__scope_leave(&scope);
    if (status == CCMR_SUCCESS) {
        *ptr = (void *)(uintptr_t)address;
    }
    return status;
}

static ccmr_status device_plain_deallocate(void *object, void *ptr,
                                           size_t bytes, size_t alignment,
                                           ccmr_stream stream)
{
    device_plain *self = object;
    ccmr_status status = ccmr__check_address(ptr, DRIVER_ALIGNMENT);
    ccmr__scope scope;
    CUresult res;

    (void)bytes;
    (void)alignment;
    if (status == CCMR_SUCCESS) {
        status = ccmr__scope_enter(&scope, self->device, CCMR__SCOPE_RELAXED);
    }
    if (status != CCMR_SUCCESS) {
        return status;
    }
    status = ccmr__stream_finish(stream, self->device);
    if (status == CCMR_SUCCESS) {
        res = CCMR__CU(cuMemFree)((CUdeviceptr)(uintptr_t)ptr);
        if (res != CUDA_SUCCESS) {
            status = ccmr__fail_address(ptr, (int)res, "cuMemFree");
        }
    }
    ccmr__scope_leave(&scope);
    return status;
}

static void device_plain_destroy(void *object)
{
    free(object);
}

static ccmr_status device_plain_describe(void *object,
                                         ccmr_properties *properties)
{
    const device_plain *self = object;
    const ccmr_properties mine = {
        .size = sizeof(mine),
        .name = ccmr__kind_device_plain.name,
        .device = self->device->ordinal,
        .device_accessible = 1,
        .max_alignment = DRIVER_ALIGNMENT,
        .free_may_block = 1,
        .free_stream = CCMR_FREE_SYNCHRONIZES,
        .capture = CCMR_CAPTURE_REFUSED,
        .access = CCMR_ACCESS_STREAM,
    };

    return ccmr__struct_write(properties, &mine, sizeof(mine), sizeof(size_t),
                              "ccmr_properties");
}

static ccmr_status device_plain_stats(void *object, ccmr_stats *stats)
{
    (void)object;
    ccmr__stats_nothing_kept(stats);
    return CCMR_SUCCESS;
}

enum { OPTION_DEVICE };

static const ccmr_option device_plain_options[] = {
    [OPTION_DEVICE] = CCMR__OPTION_DEVICE,
    {NULL, CCMR_OPTION_TEXT, NULL, NULL, NULL},
};

static ccmr_status device_plain_option_get(void *object, const char *name,
                                           char *text, size_t capacity,
                                           size_t *length)
{
    const device_plain *self = object;
    ccmr__text value;
    char digits[16];
    size_t index;
    ccmr_status status =
        ccmr__option_find(&ccmr__kind_device_plain, name, &index);

    if (status != CCMR_SUCCESS) {
        return status;
    }
    ccmr__text_init(&value, digits, sizeof(digits));
    ccmr__text_add(&value, "%d", self->device->ordinal);
    return ccmr__text_give(digits, text, capacity, length);
}

static const ccmr_resource_ops device_plain_ops = {
    .size = sizeof(ccmr_resource_ops),
    .allocate = device_plain_allocate,
    .deallocate = device_plain_deallocate,
    .destroy = device_plain_destroy,
    .describe = device_plain_describe,
    .stats = device_plain_stats,
    .option_get = device_plain_option_get,
};

ccmr_status ccmr_device_plain_create(int device, ccmr_resource **resource)
{
    ccmr__device *record;
    device_plain *self;
    ccmr_status status;

    if (resource == NULL) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT, "resource is NULL");
    }
    status = ccmr__device_use(device, &record);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    self = malloc(sizeof(*self));
    if (self == NULL) {
        return ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                          "no memory for a device_plain resource");
    }
    self->device = record;
    status = ccmr_resource_create(&device_plain_ops, self, resource);
    if (status != CCMR_SUCCESS) {
        free(self);
    }
    return status;
}

static ccmr_status create_from_text(const ccmr_kind *kind,
                                    const ccmr_option_value *values,
                                    ccmr_resource *const *upstreams,
                                    size_t count, ccmr_resource **resource)
{
    int device;
    ccmr_status status = ccmr__value_device(&values[OPTION_DEVICE], &device);

    (void)kind;
    (void)upstreams;
    (void)count;
    if (status != CCMR_SUCCESS) {
        return status;
    }
    return ccmr_device_plain_create(device, resource);
}

const ccmr_kind ccmr__kind_device_plain = {
    .size = sizeof(ccmr_kind),
    .name = "device_plain",
    .help = "cuMemAlloc and cuMemFree; a free waits for its stream and for "
            "every kernel",
    .options = device_plain_options,
    .create = create_from_text,
};
