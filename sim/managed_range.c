/* SPDX-License-Identifier: Apache-2.0 */
/* What is known about ranges of managed memory: cuMemRangeGetAttribute. */
#include "sim/managed.h"

#include <string.h>

/* Nothing at all, or not the same everywhere. */
#define NOWHERE CU_DEVICE_INVALID

static bool same_place(const CUmemLocation *a, const CUmemLocation *b)
{
    return a->type == b->type &&
           (a->type == CU_MEM_LOCATION_TYPE_NONE || a->id == b->id);
}

/* What holds for all of the range. */
static bool gather(struct sim_region *region, uintptr_t address, size_t bytes,
                   struct sim_advice *common)
{
    const CUmemLocation nowhere = {.type = CU_MEM_LOCATION_TYPE_NONE};
    const struct sim_advice *advice = sim_advice_of(region, address, bytes);

    if (advice == NULL) {
        return false;
    }
    *common = *advice;
    for (; sim_advice_within(advice, address, bytes); advice = advice->next) {
        common->read_mostly = common->read_mostly && advice->read_mostly;
        common->by_host = common->by_host && advice->by_host;
        common->by_device &= advice->by_device;
        if (!same_place(&common->preferred, &advice->preferred)) {
            common->preferred = nowhere;
        }
        if (!same_place(&common->prefetched, &advice->prefetched)) {
            common->prefetched = nowhere;
        }
    }
    return true;
}

/* A place in the older way: a device's number, or one for the host. */
static int old_place(const CUmemLocation *location)
{
    if (location->type == CU_MEM_LOCATION_TYPE_NONE) {
        return NOWHERE;
    }
    return location->type == CU_MEM_LOCATION_TYPE_DEVICE ? location->id
                                                         : CU_DEVICE_CPU;
}

static int place_id(const CUmemLocation *location)
{
    return location->type == CU_MEM_LOCATION_TYPE_NONE ? NOWHERE
                                                       : location->id;
}

static int number_of(const struct sim_advice *common,
                     CUmem_range_attribute attribute)
{
    switch ((int)attribute) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
        return common->read_mostly;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
        return old_place(&common->preferred);
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
        return (int)common->preferred.type;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
        return place_id(&common->preferred);
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
        return old_place(&common->prefetched);
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
        return (int)common->prefetched.type;
    default:
        return place_id(&common->prefetched);
    }
}

/* Devices, the host, and nobody in what room is left. */
static void list_accessed(const struct sim_advice *common, char *data,
                          size_t size)
{
    size_t done = 0;
    int who = 0;

    for (; done < size; done += sizeof who) {
        while (who < SIM_MAX_DEVICES && (common->by_device >> who & 1) == 0) {
            who++;
        }
        if (who < SIM_MAX_DEVICES) {
            memcpy(data + done, &who, sizeof who);
            who++;
        } else {
            int other = common->by_host && who == SIM_MAX_DEVICES
                            ? CU_DEVICE_CPU
                            : NOWHERE;

            memcpy(data + done, &other, sizeof other);
            who = SIM_MAX_DEVICES + 1;
        }
    }
}

static bool is_known(CUmem_range_attribute attribute, size_t size)
{
    if (attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY) {
        return size != 0 && size % sizeof(int) == 0;
    }
    return attribute >= CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY &&
           attribute <= CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID &&
           size == sizeof(int);
}

static CUresult get(void *data, size_t size, CUmem_range_attribute attribute,
                    CUdeviceptr address, size_t bytes)
{
    struct sim_advice common;
    struct sim_block block;
    int number;

    if (data == NULL || !is_known(attribute, size) ||
        !sim_managed_find(address, bytes, &block)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!gather(block.region, address, bytes, &common)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY) {
        list_accessed(&common, data, size);
        return CUDA_SUCCESS;
    }
    number = number_of(&common, attribute);
    memcpy(data, &number, sizeof number);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemRangeGetAttribute(void *data, size_t dataSize,
                                        CUmem_range_attribute attribute,
                                        CUdeviceptr devPtr, size_t count)
{
    SIM_ENTRY(cuMemRangeGetAttribute,
              get(data, dataSize, attribute, devPtr, count), NULL, devPtr,
              attribute, count);
}

static CUresult get_several(void **data, const size_t *sizes,
                            const CUmem_range_attribute *attributes,
                            size_t number, CUdeviceptr address, size_t bytes)
{
    size_t i;

    if (data == NULL || sizes == NULL || attributes == NULL || number == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (i = 0; i < number; i++) {
        CUresult res = get(data[i], sizes[i], attributes[i], address, bytes);

        if (res != CUDA_SUCCESS) {
            return res;
        }
    }
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemRangeGetAttributes(void **data, size_t *dataSizes,
                                         CUmem_range_attribute *attributes,
                                         size_t numAttributes,
                                         CUdeviceptr devPtr, size_t count)
{
    SIM_ENTRY(
        cuMemRangeGetAttributes,
        get_several(data, dataSizes, attributes, numAttributes, devPtr, count),
        NULL, devPtr, numAttributes, count);
}
