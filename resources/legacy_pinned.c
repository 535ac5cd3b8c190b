/* SPDX-License-Identifier: Apache-2.0 */
/*
 * legacy_pinned: page-locked host memory by cuMemHostAlloc and cuMemFreeHost.
 * Every block is the driver's own; nothing is kept and nothing is rounded
 * here. The driver packs blocks of less than 2 MiB: for a larger alignment than
 * it promises, a block is taken that is so much larger, and its beginning is
 * asked of the driver again when it is freed.
 *
 *     base                ptr
 *     |<- less than the ->|<- bytes ->|  rest of the slack |
 *          alignment
 *
 * Streams: a free waits for its stream, then frees, so that a block comes back
 * only when its work is finished; the driver's free waits for every kernel as
 * well. What can be refused is refused before anything is waited for. Acts in
 * the primary context of its device and of no other, and brings the caller's
 * back. Threads: any; the object never changes.
 */
#include <cucoremr/resources/legacy_pinned.h>

#include <stdlib.h>
#include <unistd.h>

#include "lib/error.h"
#include "lib/stream.h"
#include "lib/struct.h"
#include "lib/text.h"
#include "resources/common.h"
#include "resources/registry.h"

/* What the driver promises of every address, and what is made of it. */
#define DRIVER_ALIGNMENT ((size_t)256)
#define GREATEST_ALIGNMENT ((size_t)4096)

#define ALL_FLAGS                                                             \
    (CCMR_PINNED_PORTABLE | CCMR_PINNED_MAPPED | CCMR_PINNED_WRITE_COMBINED)

_Static_assert(CCMR_PINNED_PORTABLE == CU_MEMHOSTALLOC_PORTABLE &&
                   CCMR_PINNED_MAPPED == CU_MEMHOSTALLOC_DEVICEMAP &&
                   CCMR_PINNED_WRITE_COMBINED == CU_MEMHOSTALLOC_WRITECOMBINED,
               "the flags are the driver's");

typedef struct legacy_pinned {
    ccmr__device *device;
    size_t host_bytes; /* the machine's memory: more cannot be pinned */
    unsigned flags;
    ccmr_access access;
} legacy_pinned;

static ccmr_status fail_full(const legacy_pinned *self, size_t bytes,
                             CUresult res)
{
    ccmr_error_detail *detail;

    (void)ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                     "the host cannot pin %zu bytes, it has %zu in all", bytes,
                     self->host_bytes);
    detail = ccmr__error();
    detail->limit = self->host_bytes;
    if (res != CUDA_SUCCESS) {
        ccmr__note_out_of_memory(detail, "cuMemHostAlloc");
    }
    return CCMR_ERROR_OUT_OF_HOST_MEMORY;
}

/* The first address from `base` on that is aligned. */
static uintptr_t align(uintptr_t base, size_t alignment)
{
    return (base + alignment - 1) & ~(uintptr_t)(alignment - 1);
}

/* In the device's context: check the stream, and ask the driver. */
static ccmr_status take(const legacy_pinned *self, size_t bytes,
                        ccmr_stream stream, void **base)
{
    ccmr_status status = ccmr__stream_check(stream, self->device);
    CUresult res;

    if (status != CCMR_SUCCESS) {
        return status;
    }
    res = CCMR__CU(cuMemHostAlloc)(base, bytes, self->flags);
    if (res == CUDA_ERROR_OUT_OF_MEMORY) {
        return fail_full(self, bytes, res);
    }
    if (res != CUDA_SUCCESS) {
        return ccmr__fail_driver_host((int)res, "cuMemHostAlloc");
    }
    return CCMR_SUCCESS;
}

static ccmr_status legacy_pinned_allocate(void *object, size_t bytes,
                                          size_t alignment, ccmr_stream stream,
                                          void **ptr)
{
    legacy_pinned *self = object;
    void *base = NULL;
    size_t taken = bytes;
    ccmr__scope scope;
    ccmr_status status;

    if (bytes > self->host_bytes ||
        (alignment > DRIVER_ALIGNMENT &&
         __builtin_add_overflow(bytes, alignment - DRIVER_ALIGNMENT,
                                &taken))) {
        return fail_full(self, bytes, CUDA_SUCCESS);
    }
    status = ccmr__scope_enter(&scope, self->device, CCMR__SCOPE_RELAXED);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    status = take(self, taken, stream, &base);
    ccmr__scope_leave(&scope);
    if (status == CCMR_SUCCESS) {
        *ptr = (void *)align((uintptr_t)base, alignment);
    }
    return status;
}

/* Where the driver's block begins that has the block at `ptr`. */
static ccmr_status find_base(void *ptr, size_t alignment, void **base)
{
    CUdeviceptr start = 0;
    CUresult res;

    *base = ptr;
    if (alignment <= DRIVER_ALIGNMENT) {
        return CCMR_SUCCESS;
    }
    res = CCMR__CU(cuPointerGetAttribute)(
        &start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
        (CUdeviceptr)(uintptr_t)ptr);
    if (res != CUDA_SUCCESS) {
        return ccmr__fail_address(ptr, (int)res, "cuPointerGetAttribute");
    }
    if (align((uintptr_t)start, alignment) != (uintptr_t)ptr) {
        return ccmr__fail(CCMR_ERROR_INVALID_POINTER,
                          "%p is not the address of a live block", ptr);
    }
    *base = (void *)(uintptr_t)start;
    return CCMR_SUCCESS;
}

/* In the device's context. */
static ccmr_status give(const legacy_pinned *self, void *ptr, size_t alignment,
                        ccmr_stream stream)
{
    void *base;
    ccmr_status status = find_base(ptr, alignment, &base);
    CUresult res;

    if (status == CCMR_SUCCESS) {
        status = ccmr__stream_finish(stream, self->device);
    }
    if (status != CCMR_SUCCESS) {
        return status;
    }
    res = CCMR__CU(cuMemFreeHost)(base);
    if (res != CUDA_SUCCESS) {
        return ccmr__fail_address(ptr, (int)res, "cuMemFreeHost");
    }
    return CCMR_SUCCESS;
}

static ccmr_status legacy_pinned_deallocate(void *object, void *ptr,
                                            size_t bytes, size_t alignment,
                                            ccmr_stream stream)
{
    legacy_pinned *self = object;
    ccmr__scope scope;
    ccmr_status status = ccmr__check_address(
        ptr, alignment > DRIVER_ALIGNMENT ? alignment : DRIVER_ALIGNMENT);

    (void)bytes;
    if (status == CCMR_SUCCESS) {
        status = ccmr__scope_enter(&scope, self->device, CCMR__SCOPE_RELAXED);
    }
    if (status != CCMR_SUCCESS) {
        return status;
    }
    status = give(self, ptr, alignment, stream);
    ccmr__scope_leave(&scope);
    return status;
}

static void legacy_pinned_destroy(void *object)
{
    free(object);
}

static ccmr_status legacy_pinned_describe(void *object,
                                          ccmr_properties *properties)
{
    const legacy_pinned *self = object;
    const ccmr_properties mine = {
        .size = sizeof(mine),
        .name = ccmr__kind_legacy_pinned.name,
        .device = self->device->ordinal,
        .device_accessible = 1,
        .host_accessible = 1,
        .max_alignment = GREATEST_ALIGNMENT,
        .free_may_block = 1,
        .free_stream = CCMR_FREE_SYNCHRONIZES,
        .capture = CCMR_CAPTURE_REFUSED,
        .access = self->access,
    };

    return ccmr__struct_write(properties, &mine, sizeof(mine), sizeof(size_t),
                              "ccmr_properties");
}

static ccmr_status legacy_pinned_stats(void *object, ccmr_stats *stats)
{
    (void)object;
    ccmr__stats_nothing_kept(stats);
    return CCMR_SUCCESS;
}

enum { OPTION_DEVICE, OPTION_FLAGS, OPTION_ACCESS };

#define FLAG_NAMES "portable|mapped|write_combined"

static const ccmr_option legacy_pinned_options[] = {
    [OPTION_DEVICE] = CCMR__OPTION_DEVICE,
    [OPTION_FLAGS] = {"flags", CCMR_OPTION_FLAGS, "portable+mapped",
                      FLAG_NAMES,
                      "portable: pinned for every context; mapped: has a "
                      "device address; write_combined: slow to read"},
    [OPTION_ACCESS] = {"access", CCMR_OPTION_CHOICE, "host", "host|stream",
                       "how resources above reuse blocks: when their work is "
                       "known finished, or in stream order"},
    {NULL, CCMR_OPTION_TEXT, NULL, NULL, NULL},
};

static ccmr_status legacy_pinned_option_get(void *object, const char *name,
                                            char *text, size_t capacity,
                                            size_t *length)
{
    const legacy_pinned *self = object;
    ccmr__text value;
    char words[64];
    size_t index;
    ccmr_status status =
        ccmr__option_find(&ccmr__kind_legacy_pinned, name, &index);

    if (status != CCMR_SUCCESS) {
        return status;
    }
    ccmr__text_init(&value, words, sizeof(words));
    switch (index) {
    case OPTION_DEVICE:
        ccmr__text_add(&value, "%d", self->device->ordinal);
        break;
    case OPTION_FLAGS:
        ccmr__text_add_flags(&value, FLAG_NAMES, self->flags);
        break;
    default:
        ccmr__text_add(&value, "%s",
                       self->access == CCMR_ACCESS_HOST ? "host" : "stream");
        break;
    }
    return ccmr__text_give(words, text, capacity, length);
}

static const ccmr_resource_ops legacy_pinned_ops = {
    .size = sizeof(ccmr_resource_ops),
    .allocate = legacy_pinned_allocate,
    .deallocate = legacy_pinned_deallocate,
    .destroy = legacy_pinned_destroy,
    .describe = legacy_pinned_describe,
    .stats = legacy_pinned_stats,
    .option_get = legacy_pinned_option_get,
};

static ccmr_status read_options(const ccmr_legacy_pinned_options *from,
                                ccmr_legacy_pinned_options *options)
{
    ccmr_status status = CCMR_SUCCESS;

    *options = (ccmr_legacy_pinned_options)CCMR_LEGACY_PINNED_OPTIONS_INIT;
    if (from != NULL) {
        status =
            ccmr__struct_read(options, sizeof(*options), from,
                              sizeof(*options), "ccmr_legacy_pinned_options");
    }
    if (status != CCMR_SUCCESS) {
        return status;
    }
    if ((options->flags & ~ALL_FLAGS) != 0) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "flags has unknown bits: 0x%x",
                          options->flags & ~ALL_FLAGS);
    }
    if (options->access != CCMR_ACCESS_HOST &&
        options->access != CCMR_ACCESS_STREAM) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "access is %d: neither host nor stream",
                          (int)options->access);
    }
    return CCMR_SUCCESS;
}

/* All of the machine's memory; SIZE_MAX where the system does not say. */
static size_t host_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES);
    long page = sysconf(_SC_PAGESIZE);
    size_t bytes;

    if (pages <= 0 || page <= 0 ||
        __builtin_mul_overflow((size_t)pages, (size_t)page, &bytes)) {
        return SIZE_MAX;
    }
    return bytes;
}

ccmr_status ccmr_legacy_pinned_create(
    int device, const ccmr_legacy_pinned_options *options,
    ccmr_resource **resource)
{
    ccmr_legacy_pinned_options known;
    ccmr__device *record;
    legacy_pinned *self;
    ccmr_status status;

    if (resource == NULL) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT, "resource is NULL");
    }
    status = read_options(options, &known);
    if (status == CCMR_SUCCESS) {
        status = ccmr__device_use(device, &record);
    }
    if (status != CCMR_SUCCESS) {
        return status;
    }
    self = malloc(sizeof(*self));
    if (self == NULL) {
        return ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                          "no memory for a legacy_pinned resource");
    }
    self->device = record;
    self->host_bytes = host_bytes();
    self->flags = known.flags;
    self->access = known.access;
    status = ccmr_resource_create(&legacy_pinned_ops, self, resource);
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
    ccmr_legacy_pinned_options options = CCMR_LEGACY_PINNED_OPTIONS_INIT;
    int device;
    ccmr_status status = ccmr__value_device(&values[OPTION_DEVICE], &device);

    (void)kind;
    (void)upstreams;
    (void)count;
    if (status != CCMR_SUCCESS) {
        return status;
    }
    options.flags = (unsigned)values[OPTION_FLAGS].number;
    options.access = (ccmr_access)values[OPTION_ACCESS].integer;
    return ccmr_legacy_pinned_create(device, &options, resource);
}

const ccmr_kind ccmr__kind_legacy_pinned = {
    .size = sizeof(ccmr_kind),
    .name = "legacy_pinned",
    .help = "page-locked host memory; a free waits for its stream and for "
            "every kernel",
    .options = legacy_pinned_options,
    .create = create_from_text,
};
