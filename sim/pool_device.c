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
