/* SPDX-License-Identifier: Apache-2.0 */
/* Pool objects: life, attributes, access, and which one a device uses. */
#include "sim/pool.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "sim/context.h"
#include "sim/device.h"
#include "sim/schedule.h"

#define GRANULE ((size_t)32 << 20)
#define HOST_GRANULE ((size_t)2 << 20)
/* What a pool may be limited to at most: address space is finite. */
#define MOST ((size_t)1 << 40)

/* A fresh pool never has the handle of the one destroyed last. */
static struct sim_slots slots = {.reuse_late = true};
static struct sim_pool *pools;
static uint64_t default_count;

/* Life. */

struct sim_pool *sim_pool_find(CUmemoryPool handle)
{
    void *object;

    return sim_slot_find(&slots, handle, &object) == SIM_HANDLE_LIVE ? object
                                                                     : NULL;
}

CUmemoryPool sim_pool_handle(const struct sim_pool *pool)
{
    return pool->handle;
}

uint64_t sim_pools_live(void)
{
    return slots.live - default_count;
}

void sim_pools_count(uint64_t *blocks, uint64_t *bytes)
{
    const struct sim_pool *pool;

    *blocks = 0;
    *bytes = 0;
    for (pool = pools; pool != NULL; pool = pool->next) {
        *blocks += pool->blocks;
        *bytes += pool->used;
    }
}

static void own_access(struct sim_pool *pool)
{
    int d;

    if (pool->device >= 0) {
        pool->access[pool->device] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        return;
    }
    if (pool->type == CU_MEM_ALLOCATION_TYPE_MANAGED) {
        for (d = 0; d < SIM_MAX_DEVICES; d++) {
            pool->access[d] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        }
    }
}

static struct sim_pool *new_pool(const CUmemPoolProps *properties)
{
    struct sim_pool *pool = calloc(1, sizeof *pool);

    if (pool == NULL) {
        return NULL;
    }
    pool->type = properties->allocType;
    pool->location = properties->location;
    pool->handle_types = (unsigned)properties->handleTypes;
    pool->device =
        properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
                properties->allocType == CU_MEM_ALLOCATION_TYPE_PINNED
            ? properties->location.id
            : -1;
    pool->granule = pool->device >= 0 ? GRANULE : HOST_GRANULE;
    pool->max_size = (properties->maxSize + pool->granule - 1) /
                     pool->granule * pool->granule;
    pool->follow_events = true;
    pool->opportunistic = true;
    pool->internal_dependencies = true;
    pool->next = pools;
    if (pools != NULL) {
        pools->prev = pool;
    }
    pools = pool;
    return pool;
}

/* A recycled handle comes with the access rights of the pool before it, as
 * drivers have been seen to do. */
static bool take_handle(struct sim_pool *pool)
{
    struct sim_slot *slot = sim_slot_take(&slots, pool);

    if (slot == NULL) {
        return false;
    }
    if (slot->inherited != NULL) {
        memcpy(pool->access, slot->inherited, sizeof pool->access);
        free(slot->inherited);
        slot->inherited = NULL;
    }
    own_access(pool);
    pool->handle = (CUmemoryPool)slot;
    return true;
}

static void give_handle(struct sim_pool *pool)
{
    struct sim_slot *slot = &pool->handle->slot;
    uint8_t *access = malloc(sizeof pool->access);

    if (access != NULL) {
        memcpy(access, pool->access, sizeof pool->access);
        if (pool->device >= 0) {
            access[pool->device] = 0;
        }
    }
    slot->inherited = access;
    sim_slot_give(&slots, slot);
    pool->handle = NULL;
}

static void delete_pool(struct sim_pool *pool)
{
    sim_pool_drop_pendings(pool);
    sim_pool_trim(pool, 0);
    if (pool->device >= 0) {
        sim_device_give(pool->device, pool->reserved);
    }
    sim_pool_release_windows(pool);
    if (pool->prev != NULL) {
        pool->prev->next = pool->next;
    } else {
        pools = pool->next;
    }
    if (pool->next != NULL) {
        pool->next->prev = pool->prev;
    }
    free(pool);
}

void sim_pool_settle(struct sim_pool *pool)
{
    if (pool->handle == NULL && !pool->is_graph && pool->blocks == 0 &&
        pool->pending_extents == 0) {
        delete_pool(pool);
    }
}

void sim_pools_synchronized_context(const struct sim_context *context)
{
    struct sim_pool *pool = pools;

    while (pool != NULL) {
        struct sim_pool *next = pool->next;

        sim_pool_synchronize(pool, context);
        pool = next;
    }
}

void sim_pools_reset(void)
{
    size_t i;

    while (pools != NULL) {
        struct sim_pool *pool = pools;

        pools = pool->next;
        sim_pool_drop_pendings(pool);
        sim_pool_release_windows(pool);
        free(pool);
    }
    for (i = 0; i < slots.used; i++) {
        free(((struct sim_slot *)(void *)slots.base + i)->inherited);
    }
    sim_slots_clear(&slots);
    default_count = 0;
    for (i = 0; i < SIM_MAX_DEVICES; i++) {
        sim.devices[i].default_pool = NULL;
        sim.devices[i].current_pool = NULL;
        sim.devices[i].graph_pool = NULL;
        sim.devices[i].taken = 0;
    }
}

static CUresult check_location(const CUmemPoolProps *properties)
{
    switch (properties->location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        return sim_device_find(properties->location.id) != NULL
                   ? CUDA_SUCCESS
                   : CUDA_ERROR_INVALID_VALUE;
    case CU_MEM_LOCATION_TYPE_HOST:
        return sim.devices[0].attributes
                           [CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED] !=
                       0
                   ? CUDA_SUCCESS
                   : CUDA_ERROR_NOT_SUPPORTED;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        return properties->location.id == 0 ? CUDA_SUCCESS
                                            : CUDA_ERROR_INVALID_VALUE;
    case CU_MEM_LOCATION_TYPE_NONE:
        return properties->allocType == CU_MEM_ALLOCATION_TYPE_MANAGED
                   ? CUDA_SUCCESS
                   : CUDA_ERROR_INVALID_VALUE;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
    case CU_MEM_LOCATION_TYPE_MAX:
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static bool is_zero(const unsigned char *bytes, size_t count)
{
    size_t i;

    for (i = 0; i < count && bytes[i] == 0; i++) {
    }
    return i == count;
}

static CUresult check_properties(const CUmemPoolProps *properties)
{
    const int *attributes = sim.devices[0].attributes;
    unsigned types = (unsigned)properties->handleTypes;
    unsigned supported;
    CUresult res;

    if (properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED &&
        properties->allocType != CU_MEM_ALLOCATION_TYPE_MANAGED) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    res = check_location(properties);
    if (res != CUDA_SUCCESS) {
        return res;
    }
    if (properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
        attributes = sim.devices[properties->location.id].attributes;
    }
    if (attributes[CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED] == 0) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    supported = (unsigned)
        attributes[CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES];
    if (properties->location.type == CU_MEM_LOCATION_TYPE_HOST) {
        supported = 0;
    }
    if ((types & ~supported) != 0 ||
        !is_zero(properties->reserved, sizeof properties->reserved)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (properties->allocType == CU_MEM_ALLOCATION_TYPE_MANAGED &&
        properties->maxSize != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return properties->maxSize <= MOST ? CUDA_SUCCESS
                                       : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult create(CUmemoryPool *handle, const CUmemPoolProps *properties)
{
    struct sim_pool *pool;
    CUresult res;

    if (handle == NULL || properties == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    res = check_properties(properties);
    if (res != CUDA_SUCCESS) {
        return res;
    }
    pool = new_pool(properties);
    if (pool == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (!take_handle(pool)) {
        delete_pool(pool);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *handle = pool->handle;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemPoolCreate(CUmemoryPool *pool,
                                 const CUmemPoolProps *poolProps)
{
    SIM_ENTRY(cuMemPoolCreate, create(pool, poolProps), NULL, SIM_OUT(pool), 0,
              poolProps != NULL ? poolProps->maxSize : 0);
}

static CUresult destroy(CUmemoryPool handle)
{
    struct sim_pool *pool = sim_pool_find(handle);
    int d;

    if (pool == NULL || pool->is_default) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (d = 0; d < sim.device_count; d++) {
        if (sim.devices[d].current_pool == pool) {
            sim.devices[d].current_pool = sim.devices[d].default_pool;
        }
    }
    give_handle(pool);
    sim_pool_settle(pool);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemPoolDestroy(CUmemoryPool pool)
{
    SIM_ENTRY(cuMemPoolDestroy, destroy(pool), NULL, pool, 0, 0);
}

/* The pools of a device. */

static struct sim_pool *new_device_pool(int device)
{
    CUmemPoolProps properties;

    memset(&properties, 0, sizeof properties);
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = device;
    return new_pool(&properties);
}

static struct sim_pool *default_pool(int device)
{
    struct sim_device *of = &sim.devices[device];

    if (of->default_pool == NULL) {
        struct sim_pool *pool = new_device_pool(device);

        if (pool == NULL) {
            return NULL;
        }
        if (!take_handle(pool)) {
            delete_pool(pool);
            return NULL;
        }
        pool->is_default = true;
        default_count++;
        of->default_pool = pool;
    }
    return of->default_pool;
}

struct sim_pool *sim_pool_for_graphs(int device)
{
    struct sim_device *of = &sim.devices[device];

    if (of->graph_pool == NULL) {
        of->graph_pool = new_device_pool(device);
        if (of->graph_pool != NULL) {
            of->graph_pool->is_graph = true;
        }
    }
    return of->graph_pool;
}

struct sim_pool *sim_pool_current(int device)
{
    struct sim_device *of = &sim.devices[device];

    if (of->current_pool == NULL) {
        of->current_pool = default_pool(device);
    }
    return of->current_pool;
}

static CUresult get_device_pool(CUmemoryPool *handle, CUdevice dev,
                                bool current)
{
    struct sim_pool *pool;

    if (handle == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (sim_device_find(dev) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    if (sim.devices[dev]
            .attributes[CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED] == 0) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    pool = current ? sim_pool_current(dev) : default_pool(dev);
    if (pool == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *handle = pool->handle;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out,
                                           CUdevice dev)
{
    SIM_ENTRY(cuDeviceGetDefaultMemPool, get_device_pool(pool_out, dev, false),
              NULL, SIM_OUT(pool_out), dev, 0);
}

CUresult CUDAAPI cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
    SIM_ENTRY(cuDeviceGetMemPool, get_device_pool(pool, dev, true), NULL,
              SIM_OUT(pool), dev, 0);
}

static CUresult set_device_pool(CUdevice dev, CUmemoryPool handle)
{
    struct sim_pool *pool = sim_pool_find(handle);

    if (sim_device_find(dev) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    if (pool == NULL || pool->device != dev) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim.devices[dev].current_pool = pool;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
    SIM_ENTRY(cuDeviceSetMemPool, set_device_pool(dev, pool), NULL, pool, dev,
              0);
}

static CUresult get_located_pool(CUmemoryPool *handle,
                                 const CUmemLocation *location,
                                 CUmemAllocationType type, bool current)
{
    if (handle == NULL || location == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (type == CU_MEM_ALLOCATION_TYPE_PINNED &&
        location->type == CU_MEM_LOCATION_TYPE_DEVICE) {
        return get_device_pool(handle, location->id, current);
    }
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult CUDAAPI cuMemGetDefaultMemPool(CUmemoryPool *pool_out,
                                        CUmemLocation *location,
                                        CUmemAllocationType type)
{
    SIM_ENTRY(cuMemGetDefaultMemPool,
              get_located_pool(pool_out, location, type, false), NULL,
              SIM_OUT(pool_out), 0, 0);
}

CUresult CUDAAPI cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location,
                                 CUmemAllocationType type)
{
    SIM_ENTRY(cuMemGetMemPool, get_located_pool(pool, location, type, true),
              NULL, SIM_OUT(pool), 0, 0);
}

static CUresult set_located_pool(const CUmemLocation *location,
                                 CUmemAllocationType type, CUmemoryPool pool)
{
    if (location == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (type == CU_MEM_ALLOCATION_TYPE_PINNED &&
        location->type == CU_MEM_LOCATION_TYPE_DEVICE) {
        return set_device_pool(location->id, pool);
    }
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult CUDAAPI cuMemSetMemPool(CUmemLocation *location,
                                 CUmemAllocationType type, CUmemoryPool pool)
{
    SIM_ENTRY(cuMemSetMemPool, set_located_pool(location, type, pool), NULL,
              pool, 0, 0);
}

/* Attributes. */

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
    struct sim_pool *pool = sim_pool_find(handle);
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
    struct sim_pool *pool = sim_pool_find(handle);
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
    struct sim_pool *pool = sim_pool_find(handle);

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
