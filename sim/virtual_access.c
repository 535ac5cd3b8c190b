/* SPDX-License-Identifier: Apache-2.0 */
/* Who may use a mapping. */
#include "sim/virtual.h"

#include "sim/cost.h"
#include "sim/device.h"

static bool is_host(const CUmemLocation *location)
{
    return location->type == CU_MEM_LOCATION_TYPE_HOST ||
           (location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA &&
            location->id == 0);
}

static bool is_device(const CUmemLocation *location)
{
    return location->type == CU_MEM_LOCATION_TYPE_DEVICE &&
           sim_device_find(location->id) != NULL;
}

/* Setting. */

static bool is_good(const CUmemAccessDesc *entry)
{
    return (entry->flags == CU_MEM_ACCESS_FLAGS_PROT_NONE ||
            entry->flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
            entry->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE) &&
           (is_host(&entry->location) || is_device(&entry->location));
}

/* Whole mappings, and nothing but mappings. */
static bool is_whole(CUdeviceptr address, size_t size)
{
    const struct sim_mapping *first = sim_mapping_find(address);
    const struct sim_mapping *last;

    if (first == NULL || size == 0 || first->base != address ||
        address + size < address || !sim_virtual_mapped(address, size)) {
        return false;
    }
    last = sim_mapping_find(address + size - 1);
    return last->base + last->size == address + size;
}

/* The whole list is judged first. The host has rights to its own memory
 * alone. */
static CUresult check(CUdeviceptr address, size_t size,
                      const CUmemAccessDesc *entries, size_t count)
{
    const CUmemLocation *place;
    size_t i;

    if (entries == NULL || count == 0 || !is_whole(address, size)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (i = 0; i < count; i++) {
        if (!is_good(&entries[i])) {
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    place = &sim_mapping_find(address)->holder->piece->location;
    for (i = 0; i < count; i++) {
        if (is_host(&entries[i].location) &&
            place->type == CU_MEM_LOCATION_TYPE_DEVICE) {
            return CUDA_ERROR_NOT_SUPPORTED;
        }
    }
    return CUDA_SUCCESS;
}

static CUresult set_entry(struct sim_mapping *mapping,
                          const CUmemAccessDesc *entry)
{
    if (is_device(&entry->location)) {
        mapping->access[entry->location.id] = (uint8_t)entry->flags;
        return CUDA_SUCCESS;
    }
    return sim_mapping_open_to_host(mapping, entry->flags)
               ? CUDA_SUCCESS
               : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult set_access(CUdeviceptr address, size_t size,
                           const CUmemAccessDesc *entries, size_t count)
{
    CUdeviceptr end = address + size;
    CUresult res = check(address, size, entries, count);
    size_t i;

    while (res == CUDA_SUCCESS && address < end) {
        struct sim_mapping *mapping = sim_mapping_find(address);

        for (i = 0; i < count && res == CUDA_SUCCESS; i++) {
            res = set_entry(mapping, &entries[i]);
        }
        sim_cost_sized(SIM_COST_ACCESS, mapping->size);
        address += mapping->size;
    }
    return res;
}

CUresult CUDAAPI cuMemSetAccess(CUdeviceptr ptr, size_t size,
                                const CUmemAccessDesc *desc, size_t count)
{
    SIM_ENTRY(cuMemSetAccess, set_access(ptr, size, desc, count), NULL, ptr,
              count, size);
}

/* Getting. */

/* Memory that was got otherwise has no such rights, which is no error. */
static CUresult get_access(unsigned long long *flags,
                           const CUmemLocation *location, CUdeviceptr address)
{
    const struct sim_mapping *mapping = sim_mapping_find(address);
    struct sim_block block;

    if (flags == NULL || location == NULL ||
        (mapping == NULL && !sim_block_find(address, &block))) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (is_device(location)) {
        *flags = mapping != NULL ? mapping->access[location->id] : 0;
    } else if (is_host(location)) {
        *flags = mapping != NULL ? mapping->host_access : 0;
    } else {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemGetAccess(unsigned long long *flags,
                                const CUmemLocation *location, CUdeviceptr ptr)
{
    SIM_ENTRY(cuMemGetAccess, get_access(flags, location, ptr), NULL, ptr, 0,
              0);
}

/* Work. */

bool sim_mapping_is_open(const struct sim_mapping *mapping)
{
    int d;

    for (d = 0; d < SIM_MAX_DEVICES; d++) {
        if (mapping->access[d] != 0) {
            return true;
        }
    }
    return mapping->host_access != 0;
}

bool sim_virtual_allows(int device, uintptr_t address, size_t bytes,
                        bool write)
{
    const uint8_t wanted = write ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                 : CU_MEM_ACCESS_FLAGS_PROT_READ;
    uintptr_t end = address + bytes;

    while (address < end) {
        const struct sim_mapping *mapping = sim_mapping_find(address);

        if (mapping == NULL || (mapping->access[device] & wanted) != wanted) {
            return false;
        }
        address = mapping->base + mapping->size;
    }
    return true;
}
