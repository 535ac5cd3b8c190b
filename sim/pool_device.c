/* SPDX-License-Identifier: Apache-2.0 */
/* Which pool a device uses. */
#include "sim/pool.h"

#include <string.h>

#include "sim/device.h"

static struct sim_pool *new_device_pool(int device)
{
    CUmemPoolProps properties;

    memset(&properties, 0, sizeof properties);
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = device;
    return sim_pool_new(&properties);
}

static struct sim_pool *default_pool(int device)
{
    struct sim_device *of = &sim.devices[device];

    if (of->default_pool == NULL) {
        struct sim_pool *pool = new_device_pool(device);

        if (pool == NULL) {
            return NULL;
        }
        if (!sim_pool_take_handle(pool)) {
            sim_pool_delete(pool);
            return NULL;
        }
        pool->is_default = true;
        of->default_pool = pool;
    }
    return of->default_pool;
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
    if (pool == NULL || pool->device != dev || pool->imported) {
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

/* Pools that are there for other places: for pinned memory of the host and of
 * its node, for managed memory of each device, of those, and of nowhere. Each
 * is made when first asked for. */

struct place {
    CUmemAllocationType type;
    CUmemLocation location;
    struct sim_pool *standard, *current;
};

enum { PLACES = SIM_MAX_DEVICES + 8 };

static struct place places[PLACES];
static size_t place_count;

void sim_pool_places_reset(void)
{
    place_count = 0;
}

static CUresult check_place(const CUmemLocation *location,
                            CUmemAllocationType type)
{
    bool managed = type == CU_MEM_ALLOCATION_TYPE_MANAGED;

    if (location->type != CU_MEM_LOCATION_TYPE_DEVICE &&
        location->type != CU_MEM_LOCATION_TYPE_HOST &&
        location->type != CU_MEM_LOCATION_TYPE_HOST_NUMA &&
        location->type != CU_MEM_LOCATION_TYPE_NONE) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if ((!managed && type != CU_MEM_ALLOCATION_TYPE_PINNED) ||
        (location->type == CU_MEM_LOCATION_TYPE_NONE && !managed) ||
        (location->type == CU_MEM_LOCATION_TYPE_DEVICE &&
         sim_device_find(location->id) == NULL) ||
        (location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA &&
         location->id != 0)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

/* A device that can't share memory with the host has no such pool; nor has
 * one that knows of no pools. */
static bool has_pool(const CUmemLocation *location, CUmemAllocationType type)
{
    const int *attributes =
        sim.devices[location->type == CU_MEM_LOCATION_TYPE_DEVICE
                        ? location->id
                        : 0]
            .attributes;

    if (attributes[CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED] == 0) {
        return false;
    }
    if (type == CU_MEM_ALLOCATION_TYPE_MANAGED) {
        return attributes[CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS] != 0;
    }
    return location->type != CU_MEM_LOCATION_TYPE_HOST ||
           attributes[CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED] != 0;
}

static struct place *find_place(const CUmemLocation *location,
                                CUmemAllocationType type)
{
    bool alone = location->type == CU_MEM_LOCATION_TYPE_HOST ||
                 location->type == CU_MEM_LOCATION_TYPE_NONE;
    size_t i;

    for (i = 0; i < place_count; i++) {
        if (places[i].type == type &&
            places[i].location.type == location->type &&
            (alone || places[i].location.id == location->id)) {
            return &places[i];
        }
    }
    if (place_count == PLACES) {
        return NULL;
    }
    places[place_count].type = type;
    places[place_count].location = *location;
    places[place_count].standard = NULL;
    places[place_count].current = NULL;
    return &places[place_count++];
}

static struct sim_pool *standard_of(struct place *place)
{
    CUmemPoolProps properties;
    struct sim_pool *pool = place->standard;

    if (pool != NULL) {
        return pool;
    }
    memset(&properties, 0, sizeof properties);
    properties.allocType = place->type;
    properties.location = place->location;
    pool = sim_pool_new(&properties);
    if (pool != NULL && !sim_pool_take_handle(pool)) {
        sim_pool_delete(pool);
        pool = NULL;
    }
    if (pool != NULL) {
        pool->is_default = true;
        place->standard = pool;
    }
    return pool;
}

static CUresult get_located_pool(CUmemoryPool *handle,
                                 const CUmemLocation *location,
                                 CUmemAllocationType type, bool current)
{
    struct place *place;
    struct sim_pool *pool;
    CUresult res;

    if (handle == NULL || location == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    res = check_place(location, type);
    if (res != CUDA_SUCCESS) {
        return res;
    }
    if (type == CU_MEM_ALLOCATION_TYPE_PINNED &&
        location->type == CU_MEM_LOCATION_TYPE_DEVICE) {
        return get_device_pool(handle, location->id, current);
    }
    if (!has_pool(location, type)) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    place = find_place(location, type);
    pool = place == NULL                       ? NULL
           : current && place->current != NULL ? place->current
                                               : standard_of(place);
    if (pool == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *handle = pool->handle;
    return CUDA_SUCCESS;
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
                                 CUmemAllocationType type, CUmemoryPool handle)
{
    struct sim_pool *pool = sim_pool_find(handle);
    struct place *place;
    CUresult res;

    if (location == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    res = check_place(location, type);
    if (res != CUDA_SUCCESS) {
        return res;
    }
    if (type == CU_MEM_ALLOCATION_TYPE_PINNED &&
        location->type == CU_MEM_LOCATION_TYPE_DEVICE) {
        return set_device_pool(location->id, handle);
    }
    if (pool == NULL || pool->imported || pool->type != type ||
        pool->location.type != location->type) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    place = find_place(location, type);
    if (place == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    place->current = pool;
    return CUDA_SUCCESS;
}

void sim_pool_places_leave(const struct sim_pool *pool)
{
    size_t i;

    for (i = 0; i < place_count; i++) {
        if (places[i].current == pool) {
            places[i].current = NULL;
        }
    }
}

CUresult CUDAAPI cuMemSetMemPool(CUmemLocation *location,
                                 CUmemAllocationType type, CUmemoryPool pool)
{
    SIM_ENTRY(cuMemSetMemPool, set_located_pool(location, type, pool), NULL,
              pool, 0, 0);
}
