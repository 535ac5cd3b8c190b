/* SPDX-License-Identifier: Apache-2.0 */
/* What an address is: cuPointerGetAttribute and cuMemGetAddressRange. */
#include "sim/memory.h"

#include <string.h>

#include "sim/context.h"
#include "sim/pool.h"
#include "sim/virtual.h"

static bool is_managed(const struct sim_block *block)
{
    return block->region->kind == SIM_REGION_MANAGED ||
           (block->region->pool != NULL &&
            block->region->pool->type == CU_MEM_ALLOCATION_TYPE_MANAGED);
}

static int device_of(const struct sim_block *block)
{
    if (block->mapping != NULL) {
        return block->mapping->holder->piece->device >= 0
                   ? block->mapping->holder->piece->device
                   : 0;
    }
    if (block->region->device >= 0) {
        return block->region->device;
    }
    if (block->region->context != NULL) {
        return block->region->context->device;
    }
    return is_managed(block) ? 0 : -2;
}

static bool on_host(const struct sim_block *block)
{
    if (block->mapping != NULL) {
        return block->mapping->holder->piece->location.type !=
               CU_MEM_LOCATION_TYPE_DEVICE;
    }
    return block->region->device < 0;
}

/* A mapping to which nobody has rights is not to be used. */
static bool is_open(const struct sim_block *block)
{
    return block->mapping == NULL || sim_mapping_is_open(block->mapping);
}

static bool is_plain(const struct sim_block *block)
{
    return block->region->kind == SIM_REGION_PLAIN ||
           block->region->kind == SIM_REGION_CHUNK;
}

/* The answers about a live block, by their width: each function tells whether
 * the attribute is one of its own. */

static bool get_byte(CUpointer_attribute attribute,
                     const struct sim_block *block, unsigned char *value)
{
    switch ((int)attribute) {
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *value = 1;
        return true;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *value = is_managed(block);
        return true;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        *value = is_plain(block);
        return true;
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
        *value = 0;
        return true;
    default:
        return false;
    }
}

static bool get_int(CUpointer_attribute attribute,
                    const struct sim_block *block, int *value)
{
    switch ((int)attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *value = on_host(block) && !is_managed(block) ? CU_MEMORYTYPE_HOST
                                                      : CU_MEMORYTYPE_DEVICE;
        return true;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *value = device_of(block);
        return true;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        *value = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        return true;
    default:
        return false;
    }
}

static bool get_number(CUpointer_attribute attribute, uintptr_t address,
                       const struct sim_block *block, uint64_t *value)
{
    const struct sim_context *context = block->region->context;
    const struct sim_pool *pool = block->region->pool;

    switch ((int)attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *value = context != NULL ? (uintptr_t)context->handle : 0;
        return true;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        *value = address;
        return on_host(block);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *value = address;
        return is_open(block);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        *value = block->id;
        return true;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        *value = block->base;
        return true;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        *value = block->size;
        return true;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        *value =
            pool != NULL ? pool->handle_types
            : block->mapping != NULL
                ? (uint64_t)
                      block->mapping->holder->properties.requestedHandleTypes
                : 0;
        return true;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *value = pool != NULL ? (uintptr_t)sim_pool_handle(pool) : 0;
        return true;
    default:
        return false;
    }
}

static CUresult get_known(void *data, CUpointer_attribute attribute,
                          uintptr_t address, const struct sim_block *block)
{
    unsigned char byte;
    uint64_t number;
    int integer;

    if (get_byte(attribute, block, &byte)) {
        memcpy(data, &byte, sizeof byte);
    } else if (get_int(attribute, block, &integer)) {
        memcpy(data, &integer, sizeof integer);
    } else if (get_number(attribute, address, block, &number)) {
        memcpy(data, &number, sizeof number);
    } else {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

static CUresult get_attribute(void *data, CUpointer_attribute attribute,
                              CUdeviceptr address)
{
    struct sim_block block;

    if (data == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!sim_block_find(address, &block)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return get_known(data, attribute, address, &block);
}

CUresult CUDAAPI cuPointerGetAttribute(void *data,
                                       CUpointer_attribute attribute,
                                       CUdeviceptr ptr)
{
    SIM_ENTRY(cuPointerGetAttribute, get_attribute(data, attribute, ptr), NULL,
              ptr, attribute, 0);
}

/* Of an address that is no block's: what "nothing" looks like. */
static CUresult get_unknown(void *data, CUpointer_attribute attribute)
{
    static const uint64_t nothing;
    const int nowhere = -2;

    switch ((int)attribute) {
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        memcpy(data, &nowhere, sizeof nowhere);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        memcpy(data, &nothing, sizeof(int));
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
        memcpy(data, &nothing, sizeof(unsigned char));
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
        return CUDA_ERROR_INVALID_VALUE;
    default:
        if (attribute < CU_POINTER_ATTRIBUTE_CONTEXT ||
            attribute > CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        memcpy(data, &nothing, sizeof nothing);
        return CUDA_SUCCESS;
    }
}

static CUresult get_attributes(unsigned count, CUpointer_attribute *attributes,
                               void **data, CUdeviceptr address)
{
    struct sim_block block;
    bool known = sim_block_find(address, &block);
    unsigned i;

    if (attributes == NULL || data == NULL || count == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (i = 0; i < count; i++) {
        CUresult res = CUDA_ERROR_INVALID_VALUE;

        if (data[i] == NULL) {
            return res;
        }
        if (known) {
            res = get_known(data[i], attributes[i], address, &block);
        }
        if (res != CUDA_SUCCESS) {
            res = get_unknown(data[i], attributes[i]);
        }
        if (res != CUDA_SUCCESS) {
            return res;
        }
    }
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuPointerGetAttributes(unsigned int numAttributes,
                                        CUpointer_attribute *attributes,
                                        void **data, CUdeviceptr ptr)
{
    SIM_ENTRY(cuPointerGetAttributes,
              get_attributes(numAttributes, attributes, data, ptr), NULL, ptr,
              0, numAttributes);
}

static CUresult address_range(CUdeviceptr *base, size_t *size,
                              CUdeviceptr address)
{
    struct sim_block block;

    if (!sim_block_find(address, &block) || !is_open(&block)) {
        return CUDA_ERROR_NOT_FOUND;
    }
    if (base != NULL) {
        *base = block.base;
    }
    if (size != NULL) {
        *size = block.size;
    }
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemGetAddressRange(CUdeviceptr *pbase, size_t *psize,
                                      CUdeviceptr dptr)
{
    SIM_ENTRY(cuMemGetAddressRange, address_range(pbase, psize, dptr), NULL,
              dptr, 0, 0);
}
