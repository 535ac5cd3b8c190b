/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges and mappings; rights are in virtual_access.c. */
#include "sim/virtual.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "sim/addresses.h"
#include "sim/virtual_access.h"

static uint64_t mapping_count;

static size_t page_of(const struct sim_region *range, uintptr_t address)
{
    return (address - range->base) / SIM_PAGE;
}

struct sim_mapping *sim_mapping_in(const struct sim_region *range,
                                   uintptr_t address)
{
    return range->mappings[page_of(range, address)];
}

struct sim_mapping *sim_mapping_find(uintptr_t address)
{
    struct sim_region *region =
        sim_is_range_address(address) ? sim_region_find(address) : NULL;

    return region != NULL ? sim_mapping_in(region, address) : NULL;
}

/* Ranges. */

static bool is_page_multiple(uint64_t number)
{
    return number % SIM_PAGE == 0;
}

static CUresult reserve(CUdeviceptr *address, size_t size, size_t alignment,
                        CUdeviceptr hint, unsigned long long flags)
{
    struct sim_region *range;

    if (address == NULL || flags != 0 || size == 0 ||
        !is_page_multiple(size) || (alignment & (alignment - 1)) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (size > SIM_BLOCK_MOST) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    range = sim_region_range(size, alignment > SIM_PAGE ? alignment : SIM_PAGE,
                             is_page_multiple(hint) ? (uintptr_t)hint : 0);
    if (range == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *address = range->base;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemAddressReserve(CUdeviceptr *ptr, size_t size,
                                     size_t alignment, CUdeviceptr addr,
                                     unsigned long long flags)
{
    SIM_ENTRY(cuMemAddressReserve, reserve(ptr, size, alignment, addr, flags),
              NULL, SIM_OUT(ptr), addr, size);
}

static struct sim_region *find_range(CUdeviceptr address)
{
    return sim_is_range_address(address) ? sim_region_find(address) : NULL;
}

/* Just what was reserved, and nothing mapped in it. */
static CUresult free_range(CUdeviceptr address, size_t size)
{
    struct sim_region *range = find_range(address);

    if (range == NULL || range->base != address || range->size != size ||
        range->mapped != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_region_free(range);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
    SIM_ENTRY(cuMemAddressFree, free_range(ptr, size), NULL, ptr, 0, size);
}

/* Mappings. */

static void set_pages(const struct sim_mapping *mapping,
                      struct sim_mapping *value)
{
    size_t page = page_of(mapping->range, mapping->base);
    size_t i;

    for (i = 0; i < mapping->size / SIM_PAGE; i++) {
        mapping->range->mappings[page + i] = value;
    }
}

static bool is_free(const struct sim_region *range, uintptr_t address,
                    size_t size)
{
    size_t page = page_of(range, address);
    size_t i;

    for (i = 0; i < size / SIM_PAGE && range->mappings[page + i] == NULL;
         i++) {
    }
    return i == size / SIM_PAGE;
}

static CUresult add_mapping(struct sim_region *range, uintptr_t address,
                            struct sim_physical *piece)
{
    struct sim_mapping *mapping = calloc(1, sizeof *mapping);

    if (mapping == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    mapping->range = range;
    mapping->base = address;
    mapping->size = piece->size;
    mapping->piece = piece;
    mapping->id = sim_next_id();
    sim_physical_map(piece);
    set_pages(mapping, mapping);
    range->mapped++;
    mapping_count++;
    return CUDA_SUCCESS;
}

static void remove_mapping(struct sim_mapping *mapping)
{
    sim_access_of_host(mapping, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    set_pages(mapping, NULL);
    mapping->range->mapped--;
    mapping_count--;
    sim_physical_unmap(mapping->piece);
    free(mapping);
}

/* A piece is mapped whole. */
static CUresult map(CUdeviceptr address, size_t size, size_t offset,
                    CUmemGenericAllocationHandle handle,
                    unsigned long long flags)
{
    struct sim_physical *piece = sim_physical_find(handle);
    struct sim_region *range = find_range(address);

    if (piece == NULL || range == NULL || flags != 0 || offset != 0 ||
        size != piece->size || !is_page_multiple(address) ||
        size > range->size - (address - range->base) ||
        !is_free(range, address, size)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return add_mapping(range, address, piece);
}

CUresult CUDAAPI cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
                          CUmemGenericAllocationHandle handle,
                          unsigned long long flags)
{
    SIM_ENTRY(cuMemMap, map(ptr, size, offset, handle, flags), NULL, ptr,
              handle, size);
}

/* Does the range begin where a mapping does, end where one does, and hold
 * nothing but mappings? */
static bool covers_whole(const struct sim_region *range, uintptr_t address,
                         size_t size)
{
    uintptr_t end = address + size;

    while (address < end) {
        const struct sim_mapping *mapping = sim_mapping_in(range, address);

        if (mapping == NULL || mapping->base != address ||
            mapping->size > end - address) {
            return false;
        }
        address += mapping->size;
    }
    return true;
}

static CUresult unmap(CUdeviceptr address, size_t size)
{
    struct sim_region *range = find_range(address);
    uintptr_t end = address + size;

    if (range == NULL || size == 0 || !is_page_multiple(address) ||
        !is_page_multiple(size) ||
        size > range->size - (address - range->base) ||
        !covers_whole(range, address, size)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    while (address < end) {
        struct sim_mapping *mapping = sim_mapping_in(range, address);

        address += mapping->size;
        remove_mapping(mapping);
    }
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemUnmap(CUdeviceptr ptr, size_t size)
{
    SIM_ENTRY(cuMemUnmap, unmap(ptr, size), NULL, ptr, 0, size);
}

/* For the rest of the memory. */

bool sim_virtual_mapped(uintptr_t address, size_t bytes)
{
    const struct sim_region *range = find_range(address);
    size_t done = 0;

    if (range == NULL || bytes > range->size - (address - range->base)) {
        return false;
    }
    while (done < bytes) {
        const struct sim_mapping *mapping =
            sim_mapping_in(range, address + done);

        if (mapping == NULL) {
            return false;
        }
        done = mapping->base + mapping->size - address;
    }
    return true;
}

void *sim_virtual_bytes(const struct sim_region *range, uintptr_t address,
                        size_t bytes, size_t *length)
{
    struct sim_mapping *mapping = sim_mapping_in(range, address);
    size_t offset;
    char *start;

    if (mapping == NULL) {
        return NULL;
    }
    offset = address - mapping->base;
    *length = mapping->size - offset < bytes ? mapping->size - offset : bytes;
    start = sim_physical_bytes(mapping->piece);
    return start != NULL ? start + offset : NULL;
}

void sim_virtual_empty(struct sim_region *range)
{
    size_t page;

    for (page = 0; range->mapped != 0; page++) {
        if (range->mappings[page] != NULL) {
            remove_mapping(range->mappings[page]);
        }
    }
}

void sim_virtual_count(uint64_t *ranges, uint64_t *mappings)
{
    const struct sim_region *region;

    *ranges = 0;
    for (region = sim_regions(); region != NULL; region = region->next) {
        *ranges += region->kind == SIM_REGION_RANGE;
    }
    *mappings = mapping_count;
}
