/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes and access rights of pools. */
#include "sim/pool.h"

#include <string.h>

#include "sim/device.h"

/* The pool of another process has no attributes here. */
static struct sim_pool *find_own(CUmemoryPool handle)
{
    struct sim_pool *pool = sim_pool_find(handle);

    return pool != NULL && !pool->imported ? pool : NULL;
}

static bool *flag_of(struct sim_pool *pool, CUmemPool_attribute attribute)
{
    if (attribute == CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES) {
        return &pool->follow_events;
    }
    if (attribute == CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC) {
        return &pool->opportunistic;
    }
    if (attribute == CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES) {
        return &pool->internal_dependencies;
    }
    return NULL;
}

static uint64_t *number_of(struct sim_pool *pool,
                           CUmemPool_attribute attribute)
{
    switch ((int)attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        return &pool->threshold;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        return &pool->reserved;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        return &pool->reserved_high;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        return &pool->used;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        return &pool->used_high;
    default:
        return NULL;
    }
}

static CUresult set_attribute(struct sim_thread *self, CUmemoryPool handle,
                              CUmemPool_attribute attribute, const void *value)
{
    struct sim_pool *pool = find_own(handle);
    bool *flag;
    cuuint64_t number;

    if (pool == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (value == NULL) {
        sim_crash(self, "no value for pool", handle);
    }
    flag = flag_of(pool, attribute);
    if (flag != NULL) {
        int setting;

        memcpy(&setting, value, sizeof setting);
        *flag = setting != 0;
        return CUDA_SUCCESS;
    }
    if (number_of(pool, attribute) == NULL ||
        attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT ||
        attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    memcpy(&number, value, sizeof number);
    if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
        pool->threshold = number;
        return CUDA_SUCCESS;
    }
    /* The high marks can be put back to zero, which means to today. */
    if (number != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) {
        pool->reserved_high = pool->reserved;
    } else {
        pool->used_high = pool->used;
    }
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemPoolSetAttribute(CUmemoryPool pool,
                                       CUmemPool_attribute attr, void *value)
{
    SIM_ENTRY(cuMemPoolSetAttribute, set_attribute(self, pool, attr, value),
              NULL, pool, attr, 0);
}

static CUresult get_attribute(CUmemoryPool handle,
                              CUmemPool_attribute attribute, void *value)
{
    struct sim_pool *pool = find_own(handle);
    const bool *flag;
    const uint64_t *number;

    if (pool == NULL || value == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    flag = flag_of(pool, attribute);
    if (flag != NULL) {
        int setting = *flag;

        memcpy(value, &setting, sizeof setting);
        return CUDA_SUCCESS;
    }
    number = number_of(pool, attribute);
    if (number == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    memcpy(value, number, sizeof *number);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemPoolGetAttribute(CUmemoryPool pool,
                                       CUmemPool_attribute attr, void *value)
{
    SIM_ENTRY(cuMemPoolGetAttribute, get_attribute(pool, attr, value), NULL,
              pool, attr, 0);
}

static CUresult trim_to(CUmemoryPool handle, size_t keep)
{
    struct sim_pool *pool = find_own(handle);

    if (pool == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_pool_trim(pool, keep);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep)
{
    SIM_ENTRY(cuMemPoolTrimTo, trim_to(pool, minBytesToKeep), NULL, pool, 0,
              minBytesToKeep);
}

/* Access. */

static CUresult check_access(const struct sim_pool *pool,
                             const CUmemAccessDesc *entry)
{
    if (entry->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (sim_device_find(entry->location.id) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    if (entry->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
        entry->flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
        entry->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (entry->location.id == pool->device &&
        entry->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
        return entry->flags == CU_MEM_ACCESS_FLAGS_PROT_NONE
                   ? CUDA_ERROR_INVALID_DEVICE
                   : CUDA_ERROR_NOT_SUPPORTED;
    }
    return CUDA_SUCCESS;
}

/* The whole list is judged first, and taken whole or not at all. */
static CUresult set_access(CUmemoryPool handle, const CUmemAccessDesc *map,
                           size_t count)
{
    struct sim_pool *pool = sim_pool_find(handle);
    size_t i;

    if (pool == NULL || (map == NULL && count != 0)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (i = 0; i < count; i++) {
        CUresult res = check_access(pool, &map[i]);

        if (res != CUDA_SUCCESS) {
            return res;
        }
    }
    for (i = 0; i < count; i++) {
        pool->access[map[i].location.id] = (uint8_t)map[i].flags;
    }
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemPoolSetAccess(CUmemoryPool pool,
                                    const CUmemAccessDesc *map, size_t count)
{
    SIM_ENTRY(cuMemPoolSetAccess, set_access(pool, map, count), NULL, pool, 0,
              count);
}

static CUresult get_access(CUmemAccess_flags *flags, CUmemoryPool handle,
                           const CUmemLocation *location)
{
    struct sim_pool *pool = sim_pool_find(handle);

    if (flags == NULL || pool == NULL || location == NULL ||
        location->type != CU_MEM_LOCATION_TYPE_DEVICE ||
        sim_device_find(location->id) == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *flags = (CUmemAccess_flags)pool->access[location->id];
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemPoolGetAccess(CUmemAccess_flags *flags,
                                    CUmemoryPool memPool,
                                    CUmemLocation *location)
{
    SIM_ENTRY(cuMemPoolGetAccess, get_access(flags, memPool, location), NULL,
              memPool, 0, 0);
}
