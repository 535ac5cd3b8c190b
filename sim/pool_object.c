/* SPDX-License-Identifier: Apache-2.0 */
/* Pool objects: what may be made, and what becomes of them. */
#include "sim/pool.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/device.h"
#include "sim/hazard.h"

#define GRANULE ((size_t)32 << 20)
#define HOST_GRANULE ((size_t)2 << 20)
/* What a pool may be limited to at most: address space is finite. */
#define MOST ((size_t)1 << 40)

/* A fresh pool never has the handle of the one destroyed last. */
static struct sim_slots slots = {.reuse_late = true};
static struct sim_pool *pools;

/* Life. */

struct sim_pool *sim_pool_find(CUmemoryPool handle)
{
    void *object;

    return sim_slot_find(&slots, handle, &object) == SIM_HANDLE_LIVE ? object
                                                                     : NULL;
}

struct sim_pool *sim_pool_imported(const struct sim_area *token)
{
    struct sim_pool *pool = pools;

    while (pool != NULL && (!pool->imported || pool->handle == NULL ||
                            !sim_area_same(&pool->token, token))) {
        pool = pool->next;
    }
    return pool;
}

CUmemoryPool sim_pool_handle(const struct sim_pool *pool)
{
    return pool->handle;
}

uint64_t sim_pools_live(void)
{
    const struct sim_pool *pool;
    uint64_t count = slots.live;

    for (pool = pools; pool != NULL; pool = pool->next) {
        count -= pool->is_default;
    }
    return count;
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

struct sim_pool *sim_pool_new(const CUmemPoolProps *properties)
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
    pool->token = SIM_NO_AREA;
    pool->descriptor = -1;
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
bool sim_pool_take_handle(struct sim_pool *pool)
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

void sim_pool_delete(struct sim_pool *pool)
{
    sim_pool_drop_pendings(pool);
    sim_pool_trim(pool, 0);
    if (pool->device >= 0) {
        sim_device_give(pool->device, pool->reserved);
    }
    sim_pool_release_windows(pool);
    sim_pool_unshare(pool);
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
    if (pool->handle == NULL && pool->blocks == 0 &&
        pool->pending_extents == 0) {
        sim_pool_delete(pool);
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
        sim_pool_unshare(pool);
        free(pool);
    }
    for (i = 0; i < slots.used; i++) {
        free(((struct sim_slot *)(void *)slots.base + i)->inherited);
    }
    sim_slots_clear(&slots);
    sim_pool_places_reset();
    for (i = 0; i < SIM_MAX_DEVICES; i++) {
        sim.devices[i].default_pool = NULL;
        sim.devices[i].current_pool = NULL;
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
        (properties->maxSize != 0 || types != 0)) {
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
    pool = sim_pool_new(properties);
    if (pool == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (!sim_pool_take_handle(pool)) {
        sim_pool_delete(pool);
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

/* Frees that the driver has not seen finish. */
static void report_pending(const struct sim_thread *self,
                           const struct sim_pool *pool)
{
    const struct sim_pending *pending = pool->pendings;
    ccmr_sim_hazard hazard = {.kind = CCMR_SIM_POOL_DESTROYED_EARLY};

    while (pending->oldest == NULL) {
        pending = pending->next_of_pool;
    }
    hazard.address = pending->newest->base;
    hazard.bytes = pending->newest->size;
    hazard.object = (uintptr_t)pool->handle;
    hazard.now = sim_party(self, sim_call_name(self->call));
    hazard.before.stream_id = pending->stream->id;
    hazard.before.position = pending->newest->position;
    hazard.before.call = sim_call_name(SIM_cuMemFreeAsync);
    sim_hazard_report(
        &hazard,
        "thread %" PRIu64 " destroys pool %p, call %" PRIu64
        ", but %zu bytes at %#" PRIx64 " that were freed on stream id %" PRIu64
        " are %s: a real driver is corrupted by that",
        self->serial, (void *)pool->handle, sim.sequence,
        pending->newest->size, hazard.address, pending->stream->id,
        sim_reached(pending->stream, pending->newest->position)
            ? "not yet seen to be finished"
            : "still in use");
}

static CUresult destroy(const struct sim_thread *self, CUmemoryPool handle)
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
    sim_pool_places_leave(pool);
    if (pool->pending_extents != 0) {
        report_pending(self, pool);
    }
    give_handle(pool);
    sim_pool_look(pool);
    sim_pool_settle(pool);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemPoolDestroy(CUmemoryPool pool)
{
    SIM_ENTRY(cuMemPoolDestroy, destroy(self, pool), NULL, pool, 0, 0);
}
