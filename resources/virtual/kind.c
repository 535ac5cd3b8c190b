/* SPDX-License-Identifier: Apache-2.0 */
/*
 * virtual: operations, options, creation, and the kind for stack texts.
 */
#include <stdlib.h>

#include "lib/arith.h"
#include "lib/error.h"
#include "lib/struct.h"
#include "lib/text.h"
#include "resources/common.h"
#include "resources/registry.h"
#include "resources/virtual/virtual.h"

#define DEFAULT_HANDLE ((size_t)64 << 20)

/* The kinds that there are here; bits of the option, not CCMR_HANDLE_... */
#define HANDLE_KIND_NAMES "posix_fd|fabric"
enum { NAMED_POSIX_FD = 0x1, NAMED_FABRIC = 0x2 };

/* ---- what it is ------------------------------------------------------ */

static ccmr_status virtual_describe(void *object, ccmr_properties *properties)
{
    const ccmr__virtual *self = object;
    const ccmr_properties mine = {
        .size = sizeof(mine),
        .name = ccmr__kind_virtual.name,
        .device = self->device->ordinal,
        .device_accessible = 1,
        .max_alignment = self->unit > CCMR__VIRTUAL_ALIGNMENT
                             ? self->unit
                             : CCMR__VIRTUAL_ALIGNMENT,
        .free_may_block = 1,
        .free_stream = CCMR_FREE_SYNCHRONIZES,
        .capture = CCMR_CAPTURE_REFUSED,
        .access = CCMR_ACCESS_STREAM,
        .handle_kinds = self->made.handle_kinds,
        .granularity = self->unit,
    };

    return ccmr__struct_write(properties, &mine, sizeof(mine), sizeof(size_t),
                              "ccmr_properties");
}

static ccmr_status virtual_stats(void *object, ccmr_stats *stats)
{
    ccmr__virtual *self = object;

    (void)pthread_mutex_lock(&self->books);
    stats->reserved_bytes = self->reserved;
    stats->peak_reserved_bytes = self->peak_reserved;
    (void)pthread_mutex_unlock(&self->books);
    stats->pending_bytes = 0;
    stats->exact |= CCMR_STAT_RESERVED_BYTES | CCMR_STAT_PEAK_RESERVED_BYTES |
                    CCMR_STAT_PENDING_BYTES;
    return CCMR_SUCCESS;
}

/* Nothing is kept but what the driver would not have back. */
static ccmr_status virtual_trim(void *object, size_t keep,
                                ccmr_trim_result *result)
{
    ccmr__virtual *self = object;
    ccmr__scope scope;
    ccmr_status status =
        ccmr__scope_enter(&scope, self->device, CCMR__SCOPE_RELAXED);

    (void)keep;
    if (status != CCMR_SUCCESS) {
        return status;
    }
    result->released_bytes = ccmr__virtual_settle(self);
    result->pinned_bytes = ccmr__virtual_stray_bytes(self);
    ccmr__scope_leave(&scope);
    return CCMR_SUCCESS;
}

enum { OPTION_DEVICE, OPTION_HANDLE, OPTION_ROOM, OPTION_EXPORT };

static const ccmr_option virtual_options[] = {
    [OPTION_DEVICE] = CCMR__OPTION_DEVICE,
    [OPTION_HANDLE] = {"handle", CCMR_OPTION_BYTES, "64MiB", NULL,
                       "largest handle of a block; rounded up to the "
                       "device's granularity"},
    [OPTION_ROOM] = {"room", CCMR_OPTION_BYTES, "0", "%",
                     "address space beyond each block, to grow in place; "
                     "rounded up likewise"},
    [OPTION_EXPORT] = {"export", CCMR_OPTION_FLAGS, "none", HANDLE_KIND_NAMES,
                       "how memory can be exported; a block is one handle "
                       "then"},
    {NULL, CCMR_OPTION_TEXT, NULL, NULL, NULL},
};

static unsigned named_kinds(unsigned kinds)
{
    return ((kinds & CCMR_HANDLE_POSIX_FD) != 0 ? NAMED_POSIX_FD : 0u) |
           ((kinds & CCMR_HANDLE_FABRIC) != 0 ? NAMED_FABRIC : 0u);
}

static unsigned kinds_named(uint64_t named)
{
    return ((named & NAMED_POSIX_FD) != 0 ? CCMR_HANDLE_POSIX_FD : 0u) |
           ((named & NAMED_FABRIC) != 0 ? CCMR_HANDLE_FABRIC : 0u);
}

static ccmr_status virtual_option_get(void *object, const char *name,
                                      char *text, size_t capacity,
                                      size_t *length)
{
    const ccmr__virtual *self = object;
    ccmr__text value;
    char words[64];
    size_t index;
    ccmr_status status = ccmr__option_find(&ccmr__kind_virtual, name, &index);

    if (status != CCMR_SUCCESS) {
        return status;
    }
    ccmr__text_init(&value, words, sizeof(words));
    switch (index) {
    case OPTION_DEVICE:
        ccmr__text_add(&value, "%d", self->device->ordinal);
        break;
    case OPTION_HANDLE:
        ccmr__text_add_bytes(&value, self->made.handle);
        break;
    case OPTION_ROOM:
        ccmr__text_add_bytes(&value, self->made.room);
        break;
    default:
        ccmr__text_add_flags(&value, HANDLE_KIND_NAMES,
                             named_kinds(self->made.handle_kinds));
        break;
    }
    return ccmr__text_give(words, text, capacity, length);
}

/* ---- life ------------------------------------------------------------ */

static void end(ccmr__virtual *self)
{
    (void)pthread_mutex_destroy(&self->books);
    (void)pthread_rwlock_destroy(&self->access);
    free(self);
}

static void virtual_destroy(void *object)
{
    ccmr__virtual *self = object;
    ccmr__scope scope;

    if (ccmr__scope_enter(&scope, self->device, CCMR__SCOPE_RELAXED) ==
            CCMR_SUCCESS ||
        ccmr__scope_enter(&scope, self->device, CCMR__SCOPE_RELAXED) ==
            CCMR_SUCCESS) {
        ccmr__virtual_give_all(self);
        ccmr__scope_leave(&scope);
    }
    end(self);
}

const ccmr_resource_ops ccmr__virtual_ops = {
    .size = sizeof(ccmr_resource_ops),
    .allocate = ccmr__virtual_allocate,
    .deallocate = ccmr__virtual_deallocate,
    .destroy = virtual_destroy,
    .describe = virtual_describe,
    .trim = virtual_trim,
    .stats = virtual_stats,
    .reserve = ccmr__virtual_reserve,
    .commit = ccmr__virtual_commit,
    .decommit = ccmr__virtual_decommit,
    .move = ccmr__virtual_move,
    .unreserve = ccmr__virtual_unreserve,
    .grow = ccmr__virtual_grow,
    .export_handle = ccmr__virtual_export_handle,
    .export_block = ccmr__virtual_export_block,
    .set_access = ccmr__virtual_set_access,
    .option_get = virtual_option_get,
    .audit = ccmr__virtual_audit,
};

/* What the resource needs; a driver that lacks one of these is too old. */
static int has_calls(void)
{
    return CCMR__CU(cuMemGetAllocationGranularity) != NULL &&
           CCMR__CU(cuMemAddressReserve) != NULL &&
           CCMR__CU(cuMemAddressFree) != NULL &&
           CCMR__CU(cuMemCreate) != NULL && CCMR__CU(cuMemRelease) != NULL &&
           CCMR__CU(cuMemMap) != NULL && CCMR__CU(cuMemUnmap) != NULL &&
           CCMR__CU(cuMemSetAccess) != NULL &&
           CCMR__CU(cuMemExportToShareableHandle) != NULL &&
           CCMR__CU(cuDeviceCanAccessPeer) != NULL;
}

/* The device, or its driver, does not do it; `res` is success if it says so by
 * an attribute. */
static ccmr_status unsupported(const ccmr__device *device, const char *what,
                               CUresult res, const char *call)
{
    ccmr_error_detail *detail;
    const char *name = NULL;

    if (res != CUDA_SUCCESS) {
        (void)ccmr__fail_driver((int)res, call);
        name = ccmr__error()->driver_result_name;
    }
    (void)ccmr__fail(CCMR_ERROR_NOT_SUPPORTED,
                     "device %d has no %s for this process, with this driver "
                     "(version %d)%s%s",
                     device->ordinal, what, ccmr__driver_version(),
                     name != NULL ? ": " : "", name != NULL ? name : "");
    detail = ccmr__error();
    detail->device = device->ordinal;
    if (res != CUDA_SUCCESS) {
        detail->driver_call = call;
        detail->driver_result = (int)res;
        detail->driver_result_name = name;
    }
    return CCMR_ERROR_NOT_SUPPORTED;
}

/* The device must have it; a driver that does not know the attribute says that
 * the value is invalid. */
static ccmr_status need(const ccmr__device *device,
                        CUdevice_attribute attribute, const char *what)
{
    static const char call[] = "cuDeviceGetAttribute";
    int has = 0;
    CUresult res =
        CCMR__CU(cuDeviceGetAttribute)(&has, attribute, device->device);

    if (res == CUDA_SUCCESS && has) {
        return CCMR_SUCCESS;
    }
    return res == CUDA_SUCCESS || res == CUDA_ERROR_INVALID_VALUE
               ? unsupported(device, what, res, call)
               : ccmr__fail_driver((int)res, call);
}

static ccmr_status check_device(const ccmr__device *device)
{
    static const char what[] = "virtual memory management";

    if (!has_calls()) {
        return unsupported(device, what, CUDA_SUCCESS, NULL);
    }
    return need(device,
                CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, what);
}

/* In the device's context: a kind that the device has may still be one that
 * the process may not use. */
static ccmr_status try_kinds(ccmr__virtual *self)
{
    ccmr__piece *piece;
    ccmr_status status;
    CUresult res;

    if (self->made.handle_kinds == CCMR_HANDLE_NONE) {
        return CCMR_SUCCESS;
    }
    status = ccmr__virtual_take_piece(self, self->unit, &piece);
    if (status == CCMR_SUCCESS) {
        (void)ccmr__virtual_give_piece(self, piece);
        self->peak_reserved = self->reserved;
        return CCMR_SUCCESS;
    }
    res = (CUresult)ccmr__error()->driver_result;
    if (res == CUDA_ERROR_NOT_PERMITTED || res == CUDA_ERROR_NOT_SUPPORTED) {
        status = unsupported(self->device, "memory of these handle kinds", res,
                             "cuMemCreate");
    }
    return status;
}

static ccmr_status check_kinds(const ccmr__device *device, unsigned kinds)
{
    ccmr_status status = CCMR_SUCCESS;

    if ((kinds & ~(CCMR_HANDLE_POSIX_FD | CCMR_HANDLE_FABRIC)) != 0) {
        return ccmr__fail(CCMR_ERROR_NOT_SUPPORTED,
                          "handle_kinds is 0x%x: only posix_fd and fabric are "
                          "possible here",
                          kinds);
    }
    if ((kinds & CCMR_HANDLE_POSIX_FD) != 0) {
        status = need(
            device,
            CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
            "export as posix_fd");
    }
    if (status == CCMR_SUCCESS && (kinds & CCMR_HANDLE_FABRIC) != 0) {
        status = need(device, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED,
                      "export as fabric");
    }
    return status;
}

/* Sizes in the device's unit, which the driver tells. */
static ccmr_status set_sizes(ccmr__virtual *self)
{
    CUresult res = CCMR__CU(cuMemGetAllocationGranularity)(
        &self->unit, &self->props, CU_MEM_ALLOC_GRANULARITY_MINIMUM);

    if (res != CUDA_SUCCESS) {
        return ccmr__fail_driver((int)res, "cuMemGetAllocationGranularity");
    }
    if (!ccmr__is_power_of_two(self->unit)) {
        return ccmr__fail(CCMR_ERROR_NOT_SUPPORTED,
                          "device %d has the granularity %zu, which is no "
                          "power of two",
                          self->device->ordinal, self->unit);
    }
    if (self->made.handle == 0) {
        self->made.handle = DEFAULT_HANDLE;
    }
    if (!ccmr__round_up(self->made.handle, self->unit, &self->made.handle) ||
        !ccmr__round_up(self->made.room, self->unit, &self->made.room)) {
        return ccmr__fail(CCMR_ERROR_INVALID_SIZE,
                          "handle (%zu) or room (%zu) is too large",
                          self->made.handle, self->made.room);
    }
    return CCMR_SUCCESS;
}

static ccmr_status read_options(const ccmr_virtual_options *from,
                                ccmr_virtual_options *options)
{
    *options = (ccmr_virtual_options){.size = sizeof(*options)};
    return from == NULL
               ? CCMR_SUCCESS
               : ccmr__struct_read(options, sizeof(*options), from,
                                   sizeof(*options), "ccmr_virtual_options");
}

/* Memory is for the device itself at first. */
static void set_props(ccmr__virtual *self)
{
    const CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE,
                                .id = self->device->device};

    self->props = (CUmemAllocationProp){
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes =
            (CUmemAllocationHandleType)self->made.handle_kinds,
        .location = here,
    };
    self->entries[0] = (CUmemAccessDesc){
        .location = here, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    self->entry_count = 1;
}

/* Writers first: who asks for rights should not wait for ever. */
static ccmr_status make_locks(ccmr__virtual *self)
{
    pthread_rwlockattr_t attributes;
    int ret = pthread_rwlockattr_init(&attributes);

    if (ret == 0) {
        (void)pthread_rwlockattr_setkind_np(
            &attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
        ret = pthread_rwlock_init(&self->access, &attributes);
        (void)pthread_rwlockattr_destroy(&attributes);
    }
    if (ret == 0) {
        ret = pthread_mutex_init(&self->books, NULL);
        if (ret != 0) {
            (void)pthread_rwlock_destroy(&self->access);
        }
    }
    return ret == 0 ? CCMR_SUCCESS
                    : ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                                 "no memory for the locks of a virtual "
                                 "resource");
}

/* Everything that the driver is asked at creation. */
static ccmr_status prepare(ccmr__virtual *self)
{
    ccmr__scope scope;
    ccmr_status status = check_device(self->device);

    if (status == CCMR_SUCCESS) {
        status = check_kinds(self->device, self->made.handle_kinds);
    }
    if (status != CCMR_SUCCESS) {
        return status;
    }
    set_props(self);
    status = ccmr__scope_enter(&scope, self->device, CCMR__SCOPE_RELAXED);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    status = set_sizes(self);
    if (status == CCMR_SUCCESS) {
        status = try_kinds(self);
    }
    ccmr__scope_leave(&scope);
    return status;
}

static ccmr_status make(ccmr__device *device,
                        const ccmr_virtual_options *options,
                        ccmr_resource **resource)
{
    ccmr__virtual *self = calloc(1, sizeof(*self));
    ccmr_status status;

    if (self == NULL) {
        return ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                          "no memory for a virtual resource");
    }
    self->device = device;
    self->made = *options;
    status = make_locks(self);
    if (status != CCMR_SUCCESS) {
        free(self);
        return status;
    }
    status = prepare(self);
    if (status == CCMR_SUCCESS) {
        status = ccmr_resource_create(&ccmr__virtual_ops, self, resource);
    }
    if (status != CCMR_SUCCESS) {
        virtual_destroy(self);
    }
    return status;
}

ccmr_status ccmr_virtual_create(int device,
                                const ccmr_virtual_options *options,
                                ccmr_resource **resource)
{
    ccmr_virtual_options known;
    ccmr__device *record;
    ccmr_status status;

    if (resource == NULL) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT, "resource is NULL");
    }
    status = read_options(options, &known);
    if (status == CCMR_SUCCESS) {
        status = ccmr__device_use(device, &record);
    }
    return status == CCMR_SUCCESS ? make(record, &known, resource) : status;
}

static ccmr_status create_from_text(const ccmr_kind *kind,
                                    const ccmr_option_value *values,
                                    ccmr_resource *const *upstreams,
                                    size_t count, ccmr_resource **resource)
{
    ccmr_virtual_options options = {.size = sizeof(options)};
    ccmr__device *record;
    int device;
    ccmr_status status = ccmr__value_device(&values[OPTION_DEVICE], &device);

    (void)kind;
    (void)upstreams;
    (void)count;
    if (status == CCMR_SUCCESS) {
        status = ccmr__device_find(device, &record);
    }
    if (status != CCMR_SUCCESS) {
        return status;
    }
    options.handle = values[OPTION_HANDLE].number;
    options.room =
        ccmr__value_bytes(&values[OPTION_ROOM], record->total_bytes);
    options.handle_kinds = kinds_named(values[OPTION_EXPORT].number);
    return ccmr_virtual_create(record->ordinal, &options, resource);
}

const ccmr_kind ccmr__kind_virtual = {
    .size = sizeof(ccmr_kind),
    .name = "virtual",
    .help = "physical memory mapped into reserved addresses; blocks grow in "
            "place; a free waits for its stream",
    .options = virtual_options,
    .create = create_from_text,
};
