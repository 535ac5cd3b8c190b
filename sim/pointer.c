/* SPDX-License-Identifier: Apache-2.0 */
/* What an address is: cuPointerGetAttribute and cuMemGetAddressRange. */
#include "sim/memory.h"

#include <string.h>

#include "sim/context.h"
#include "sim/pool.h"

static int device_of(const struct sim_block *block)
{
    if (block->region->device >= 0) {
        return block->region->device;
    }
    return block->region->context != NULL ? block->region->context->device
                                          : -2;
}

static bool on_host(const struct sim_block *block)
{
    return block->region->device < 0;
}

static bool is_managed(const struct sim_block *block)
{
    return block->region->kind == SIM_REGION_MANAGED;
}

static void put_int(void *data, int value)
{
    memcpy(data, &value, sizeof value);
}

static void put_bool(void *data, bool value)
{
    *(unsigned char *)data = value;
}

static void put_number(void *data, uint64_t value)
{
    memcpy(data, &value, sizeof value);
}

static void put_pointer(void *data, void *value)
{
    memcpy(data, &value, sizeof value);
}

/* The answers about a live block; those that differ for unknown addresses
 * are in get_unknown. */
static CUresult get_known(void *data, CUpointer_attribute attribute,
                          uintptr_t address, const struct sim_block *block)
{
    struct sim_pool *pool = block->region->pool;
    bool plain = block->region->kind == SIM_REGION_PLAIN ||
                 block->region->kind == SIM_REGION_CHUNK;

    switch ((int)attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        put_pointer(data, block->region->context != NULL
                              ? block->region->context->handle
                              : NULL);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        put_int(data, on_host(block) && !is_managed(block)
                          ? CU_MEMORYTYPE_HOST
                          : CU_MEMORYTYPE_DEVICE);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        put_number(data, address);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (!on_host(block)) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        put_number(data, address);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        put_bool(data, is_managed(block));
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        put_number(data, block->id);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        put_bool(data, is_managed(block));
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        put_int(data, device_of(block));
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        put_bool(data, plain);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        put_number(data, block->base);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        put_number(data, block->size);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        put_bool(data, true);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        put_number(data, pool != NULL ? pool->handle_types : 0);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        put_bool(data, plain);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        put_int(data, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        put_pointer(data, pool != NULL ? sim_pool_handle(pool) : NULL);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
        put_bool(data, false);
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
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
    switch ((int)attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        put_int(data, 0);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        put_int(data, -2);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
        put_bool(data, false);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_CONTEXT:
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        put_number(data, 0);
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
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

    if (!sim_block_find(address, &block)) {
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
