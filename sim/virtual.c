/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that reserve ranges and map pieces into them; rights are in
 * virtual_access.c. */
#include "sim/virtual.h"

#include "sim/addresses.h"
#include "sim/cost.h"

static bool is_page_multiple(uint64_t number)
{
    return number % SIM_PAGE == 0;
}

/* Ranges. */

/* What no address can be is out of the question early. */
#define MOST_ADDRESS ((CUdeviceptr)1 << 48)

static CUresult reserve(CUdeviceptr *address, size_t size, size_t alignment,
                        CUdeviceptr hint, unsigned long long flags)
{
    struct sim_region *range;

    if (address == NULL || flags != 0 || size == 0 ||
        !is_page_multiple(size) || (alignment & (alignment - 1)) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (alignment < SIM_PAGE) {
        alignment = SIM_PAGE;
    }
    if (hint % alignment != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (size > SIM_RANGE_BYTES || hint >= MOST_ADDRESS) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    range = sim_region_range(size, alignment, hint);
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
        sim_mapping_next(address, address + size) != NULL) {
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

static CUresult map(const struct sim_thread *self, CUdeviceptr address,
                    size_t size, size_t offset,
                    CUmemGenericAllocationHandle handle,
                    unsigned long long flags)
{
    struct sim_holder *holder = sim_holder_find(self, handle);

    if (holder == NULL || flags != 0 || size == 0 ||
        !is_page_multiple(address) || find_range(address) == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    /* A piece is mapped whole. */
    if (offset != 0 || size != holder->piece->size) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    sim_cost_sized(SIM_COST_MAP, size);
    return sim_mapping_add(holder, address);
}

CUresult CUDAAPI cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
                          CUmemGenericAllocationHandle handle,
                          unsigned long long flags)
{
    SIM_ENTRY(cuMemMap, map(self, ptr, size, offset, handle, flags), NULL, ptr,
              handle, size);
}

/* No mapping may lie half in it. Where there is none, that is fine. */
static CUresult unmap(CUdeviceptr address, size_t size)
{
    uintptr_t end = address + size;
    const struct sim_mapping *edge;
    struct sim_mapping *mapping;

    if (size == 0 || !is_page_multiple(address) || !is_page_multiple(size) ||
        find_range(address) == NULL || end < address) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    edge = sim_mapping_find(address);
    if (edge != NULL && edge->base != address) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    edge = sim_mapping_find(end - 1);
    if (edge != NULL && edge->base + edge->size != end) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (;;) {
        mapping = sim_mapping_next(address, end);
        if (mapping == NULL) {
            return CUDA_SUCCESS;
        }
        address = mapping->base + mapping->size;
        sim_cost_sized(SIM_COST_UNMAP, mapping->size);
        sim_mapping_remove(mapping);
    }
}

CUresult CUDAAPI cuMemUnmap(CUdeviceptr ptr, size_t size)
{
    SIM_ENTRY(cuMemUnmap, unmap(ptr, size), NULL, ptr, 0, size);
}
