/* SPDX-License-Identifier: Apache-2.0 */
/* Who may use a mapping. */
#include "sim/virtual_access.h"

#include <sys/mman.h>

#include "sim/device.h"

/* The host. The addresses become real ones, which lie where nothing else is
 * put; the bytes are those of the piece, by way of its file. */

bool sim_access_of_host(struct sim_mapping *mapping, CUmemAccess_flags flags)
{
    int prot = flags == CU_MEM_ACCESS_FLAGS_PROT_READ ? PROT_READ
                                                      : PROT_READ | PROT_WRITE;
    void *at = (void *)mapping->base;

    if (flags == (CUmemAccess_flags)mapping->host_access) {
        return true;
    }
    if (flags == CU_MEM_ACCESS_FLAGS_PROT_NONE) {
        munmap(at, mapping->size);
    } else if (mapping->host_access != 0) {
        if (mprotect(at, mapping->size, prot) != 0) {
            return false;
        }
    } else if (!sim_physical_make_file(mapping->piece) ||
               !sim_file_map_at(mapping->piece->file, mapping->size, prot,
                                at)) {
        return false;
    }
    mapping->host_access = (uint8_t)flags;
    return true;
}

static bool is_host(const CUmemLocation *location)
{
    return location->type == CU_MEM_LOCATION_TYPE_HOST ||
           location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
           location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

/* Setting. */

static CUresult check_entry(const CUmemAccessDesc *entry)
{
    if (entry->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
        entry->flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
        entry->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (is_host(&entry->location)) {
        return CUDA_SUCCESS;
    }
    if (entry->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return sim_device_find(entry->location.id) != NULL
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_DEVICE;
}

/* Whole mappings, and nothing but mappings. */
static CUresult check_range(CUdeviceptr address, size_t size)
{
    const struct sim_mapping *first = sim_mapping_find(address);
    const struct sim_mapping *last;

    if (first == NULL || size == 0 || first->base != address ||
        !sim_virtual_mapped(address, size)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    last = sim_mapping_find(address + size - 1);
    return last->base + last->size == address + size
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
}

static CUresult set_entry(struct sim_mapping *mapping,
                          const CUmemAccessDesc *entry)
{
    if (!is_host(&entry->location)) {
        mapping->access[entry->location.id] = (uint8_t)entry->flags;
        return CUDA_SUCCESS;
    }
    return sim_access_of_host(mapping, entry->flags)
               ? CUDA_SUCCESS
               : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult check(CUdeviceptr address, size_t size,
                      const CUmemAccessDesc *entries, size_t count)
{
    CUresult res = check_range(address, size);
    size_t i;

    if (entries == NULL || count == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (i = 0; i < count && res == CUDA_SUCCESS; i++) {
        res = check_entry(&entries[i]);
        /* The host has rights to its own memory alone. */
        if (res == CUDA_SUCCESS && is_host(&entries[i].location) &&
            sim_mapping_find(address)->piece->properties.location.type ==
                CU_MEM_LOCATION_TYPE_DEVICE) {
            res = CUDA_ERROR_INVALID_VALUE;
        }
    }
    return res;
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

static CUresult get_access(unsigned long long *flags,
                           const CUmemLocation *location, CUdeviceptr address)
{
    const struct sim_mapping *mapping = sim_mapping_find(address);

    if (flags == NULL || location == NULL || mapping == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (is_host(location)) {
        *flags = mapping->host_access;
        return CUDA_SUCCESS;
    }
    if (location->type != CU_MEM_LOCATION_TYPE_DEVICE) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (sim_device_find(location->id) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *flags = mapping->access[location->id];
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemGetAccess(unsigned long long *flags,
                                const CUmemLocation *location, CUdeviceptr ptr)
{
    SIM_ENTRY(cuMemGetAccess, get_access(flags, location, ptr), NULL, ptr, 0,
              0);
}

/* Work. */

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
