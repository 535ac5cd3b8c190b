/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that allocate, prefetch, advise and attach managed memory. */
#include "sim/managed.h"

#include "sim/capture.h"
#include "sim/context.h"
#include "sim/device.h"
#include "sim/order.h"
#include "sim/schedule.h"

static bool can_share(const struct sim_device *device)
{
    return device->attributes[CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS] !=
           0;
}

/* Allocating. */

/* Small blocks lie close together, large ones on pages of the device. */
static size_t alignment_of(size_t bytes)
{
    const size_t middle = 65536;

    if (bytes >= SIM_PAGE) {
        return SIM_PAGE;
    }
    return bytes >= middle ? middle : 0;
}

static CUresult allocate(struct sim_thread *self, CUdeviceptr *address,
                         size_t bytes, unsigned flags)
{
    struct sim_context *context = sim_context_current(self);
    struct sim_region *region;

    if (address == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *address = 0;
    if (bytes == 0 ||
        (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (sim.devices[context->device]
            .attributes[CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY] == 0) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (bytes > SIM_BLOCK_MOST) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    region =
        sim_region_aligned(bytes, SIM_REGION_MANAGED, alignment_of(bytes));
    if (region == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    region->asked = bytes;
    region->context = context;
    region->flags = flags;
    *address = region->base;
    sim_order_give(region->base, bytes, NULL);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize,
                                   unsigned int flags)
{
    SIM_ENTRY(cuMemAllocManaged, allocate(self, dptr, bytesize, flags), NULL,
              SIM_OUT(dptr), flags, bytesize);
}

/* Prefetching. */

/* Where memory can go. What is known of the host is that it is the host; of
 * its nodes there is one. */
static CUresult find_target(const CUmemLocation *asked, CUmemLocation *target)
{
    const struct sim_device *device;

    *target = *asked;
    switch ((int)asked->type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        device = sim_device_find(asked->id);
        return device != NULL && can_share(device) ? CUDA_SUCCESS
                                                   : CUDA_ERROR_INVALID_DEVICE;
    case CU_MEM_LOCATION_TYPE_HOST:
        target->id = CU_DEVICE_CPU;
        return CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        return asked->id == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
        target->type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
        target->id = 0;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult enqueue_nothing(struct sim_stream *stream)
{
    struct sim_op *op = sim_op_new(SIM_OP_MARK);

    if (op == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return stream->capture != NULL ? sim_capture_add(stream, op)
                                   : sim_submit(stream, op);
}

static CUresult check_prefetch(CUdeviceptr address, size_t bytes,
                               const CUmemLocation *asked)
{
    struct sim_block block;
    CUmemLocation target;

    return sim_managed_find(address, bytes, &block)
               ? find_target(asked, &target)
               : CUDA_ERROR_INVALID_VALUE;
}

/* What is remembered is what was asked for, whenever it is carried out. It
 * was checked. */
static CUresult note_prefetch(struct sim_stream *stream, CUdeviceptr address,
                              size_t bytes, const CUmemLocation *asked)
{
    struct sim_advice *advice;
    struct sim_block block;
    CUmemLocation target;

    (void)sim_managed_find(address, bytes, &block);
    (void)find_target(asked, &target);
    advice = sim_advice_of(block.region, address, bytes);
    if (advice == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    for (; sim_advice_within(advice, address, bytes); advice = advice->next) {
        advice->prefetched = target;
    }
    if (stream->capture == NULL) {
        sim_order_use(address, bytes, stream);
    }
    return CUDA_SUCCESS;
}

static CUresult prefetch(struct sim_thread *self, CUdeviceptr address,
                         size_t bytes, const CUmemLocation *asked,
                         unsigned flags, CUstream handle)
{
    struct sim_stream *stream;
    CUresult res = sim_stream_resolve(self, handle, &stream);

    if (res != CUDA_SUCCESS) {
        return res;
    }
    res = sim_capture_implicit(stream);
    if (res != CUDA_SUCCESS) {
        return res;
    }
    if (flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    res = check_prefetch(address, bytes, asked);
    if (res == CUDA_SUCCESS) {
        res = note_prefetch(stream, address, bytes, asked);
    }
    return res == CUDA_SUCCESS ? enqueue_nothing(stream) : res;
}

CUresult CUDAAPI cuMemPrefetchAsync(CUdeviceptr devPtr, size_t count,
                                    CUmemLocation location, unsigned int flags,
                                    CUstream hStream)
{
    SIM_ENTRY(cuMemPrefetchAsync,
              prefetch(self, devPtr, count, &location, flags, hStream),
              hStream, devPtr, 0, count);
}

/* Many at once. By documentation alone, since no driver was asked yet: the
 * places go with runs of ranges, the first of which is the first range, and
 * there is no batch on the legacy stream. */

struct batch {
    const CUdeviceptr *addresses;
    const size_t *sizes;
    size_t count;
    const CUmemLocation *places;
    const size_t *firsts; /**< where the run of each place begins */
    size_t place_count;
};

static bool is_batch(const struct batch *batch)
{
    size_t i;

    if (batch->addresses == NULL || batch->sizes == NULL ||
        batch->places == NULL || batch->firsts == NULL || batch->count == 0 ||
        batch->place_count == 0 || batch->place_count > batch->count ||
        batch->firsts[0] != 0) {
        return false;
    }
    for (i = 1; i < batch->place_count; i++) {
        if (batch->firsts[i] <= batch->firsts[i - 1]) {
            return false;
        }
    }
    return batch->firsts[batch->place_count - 1] < batch->count;
}

/* All of them are judged before any of them is carried out. */
static CUresult walk_batch(const struct batch *batch,
                           struct sim_stream *stream, bool carry_out)
{
    CUresult res = CUDA_SUCCESS;
    size_t place = 0;
    size_t i;

    for (i = 0; i < batch->count && res == CUDA_SUCCESS; i++) {
        if (place + 1 < batch->place_count && batch->firsts[place + 1] == i) {
            place++;
        }
        res = carry_out ? note_prefetch(stream, batch->addresses[i],
                                        batch->sizes[i], &batch->places[place])
                        : check_prefetch(batch->addresses[i], batch->sizes[i],
                                         &batch->places[place]);
    }
    return res;
}

static CUresult prefetch_batch(struct sim_thread *self,
                               const struct batch *batch,
                               unsigned long long flags, CUstream handle)
{
    struct sim_stream *stream;
    CUresult res = sim_stream_resolve(self, handle, &stream);

    if (res != CUDA_SUCCESS) {
        return res;
    }
    if (flags != 0 || stream->kind == SIM_STREAM_LEGACY || !is_batch(batch)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    res = walk_batch(batch, stream, false);
    if (res == CUDA_SUCCESS) {
        res = walk_batch(batch, stream, true);
    }
    return res == CUDA_SUCCESS ? enqueue_nothing(stream) : res;
}

CUresult CUDAAPI cuMemPrefetchBatchAsync(
    CUdeviceptr *dptrs, size_t *sizes, size_t count,
    CUmemLocation *prefetchLocs, size_t *prefetchLocIdxs,
    size_t numPrefetchLocs, unsigned long long flags, CUstream hStream)
{
    const struct batch batch = {
        dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs,
    };

    SIM_ENTRY(cuMemPrefetchBatchAsync,
              prefetch_batch(self, &batch, flags, hStream), hStream, 0, 0,
              count);
}

/* Advising. */

static bool is_place(const CUmemLocation *location)
{
    return location->type == CU_MEM_LOCATION_TYPE_DEVICE ||
           location->type == CU_MEM_LOCATION_TYPE_HOST ||
           location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
           location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

static bool is_sharing_device(const CUmemLocation *location)
{
    return location->type == CU_MEM_LOCATION_TYPE_DEVICE &&
           sim_device_find(location->id) != NULL &&
           can_share(&sim.devices[location->id]);
}

/* Does the advice make sense with the place? Some look at none. */
static bool is_meant(CUmem_advise advice, const CUmemLocation *place)
{
    switch ((int)advice) {
    case CU_MEM_ADVISE_SET_READ_MOSTLY:
    case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
    case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
        return is_place(place);
    case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
        return place->type == CU_MEM_LOCATION_TYPE_DEVICE
                   ? is_sharing_device(place)
                   : is_place(place) &&
                         (place->type != CU_MEM_LOCATION_TYPE_HOST_NUMA ||
                          place->id == 0);
    case CU_MEM_ADVISE_SET_ACCESSED_BY:
    case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
        return place->type == CU_MEM_LOCATION_TYPE_HOST ||
               is_sharing_device(place);
    default:
        return false;
    }
}

static void set_accessed(struct sim_advice *record, const CUmemLocation *place,
                         bool on)
{
    uint32_t bit;

    if (place->type == CU_MEM_LOCATION_TYPE_HOST) {
        record->by_host = on;
        return;
    }
    bit = (uint32_t)1 << place->id;
    record->by_device =
        on ? record->by_device | bit : record->by_device & ~bit;
}

static void take_advice(struct sim_advice *record, CUmem_advise advice,
                        const CUmemLocation *place)
{
    const CUmemLocation nowhere = {.type = CU_MEM_LOCATION_TYPE_NONE};

    switch ((int)advice) {
    case CU_MEM_ADVISE_SET_READ_MOSTLY:
    case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
        record->read_mostly = advice == CU_MEM_ADVISE_SET_READ_MOSTLY;
        break;
    case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
        /* A node of the host's is as good as the host. */
        record->preferred = *place;
        if (place->type != CU_MEM_LOCATION_TYPE_DEVICE) {
            record->preferred.type = CU_MEM_LOCATION_TYPE_HOST;
            record->preferred.id = CU_DEVICE_CPU;
        }
        break;
    case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
        record->preferred = nowhere;
        break;
    default:
        set_accessed(record, place, advice == CU_MEM_ADVISE_SET_ACCESSED_BY);
        break;
    }
}

static CUresult advise(CUdeviceptr address, size_t bytes, CUmem_advise advice,
                       const CUmemLocation *place)
{
    struct sim_advice *record;
    struct sim_block block;

    if (!is_meant(advice, place) ||
        !sim_managed_find(address, bytes, &block)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (block.region->pool != NULL) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    record = sim_advice_of(block.region, address, bytes);
    if (record == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    for (; sim_advice_within(record, address, bytes); record = record->next) {
        take_advice(record, advice, place);
    }
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemAdvise(CUdeviceptr devPtr, size_t count,
                             CUmem_advise advice, CUmemLocation location)
{
    SIM_ENTRY(cuMemAdvise, advise(devPtr, count, advice, &location), NULL,
              devPtr, advice, count);
}

/* Attaching. */

static CUresult attach(struct sim_thread *self, CUstream handle,
                       CUdeviceptr address, size_t length, unsigned flags)
{
    struct sim_stream *stream;
    struct sim_block block;
    CUresult res = sim_stream_resolve(self, handle, &stream);

    if (res != CUDA_SUCCESS) {
        return res;
    }
    res = sim_capture_implicit(stream);
    if (res != CUDA_SUCCESS) {
        return res;
    }
    if (!sim_managed_find(address, 1, &block) || block.base != address ||
        (length != 0 && length != block.size)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST &&
        flags != CU_MEM_ATTACH_SINGLE) {
        sim_crash(self, "no way to attach", (const void *)(uintptr_t)address);
    }
    if (flags == CU_MEM_ATTACH_SINGLE && stream->kind == SIM_STREAM_LEGACY) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return enqueue_nothing(stream);
}

CUresult CUDAAPI cuStreamAttachMemAsync(CUstream hStream, CUdeviceptr dptr,
                                        size_t length, unsigned int flags)
{
    SIM_ENTRY(cuStreamAttachMemAsync,
              attach(self, hStream, dptr, length, flags), hStream, dptr, flags,
              length);
}
