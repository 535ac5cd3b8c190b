/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuMemAlloc and cuMemFree. Requests up to 1 MiB share pieces of 2 MiB, larger
 * ones have their own; a free waits for all work of the device.
 */
#include "sim/plain.h"

#include <stdlib.h>

#include "sim/context.h"
#include "sim/cost.h"
#include "sim/device.h"
#include "sim/extent.h"
#include "sim/graph_block.h"
#include "sim/order.h"
#include "sim/ipc.h"
#include "sim/pool.h"
#include "sim/schedule.h"
#include "sim/store.h"

#define LARGE (SIM_PAGE / 2)

/** Small blocks of a context. */
struct sim_heap {
    struct sim_store store;
};

static CUresult allocate_large(struct sim_context *context, size_t bytes,
                               CUdeviceptr *address)
{
    size_t size = (bytes + SIM_PAGE - 1) / SIM_PAGE * SIM_PAGE;
    struct sim_region *region;

    if (!sim_device_take(context->device, size)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    region = sim_region_device(context->device, size, 0, SIM_REGION_PLAIN);
    if (region == NULL) {
        sim_device_give(context->device, size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    region->asked = bytes;
    region->context = context;
    *address = region->base;
    return CUDA_SUCCESS;
}

static void free_region(struct sim_region *region)
{
    if (!sim_ipc_keep(region)) {
        sim_device_give(region->device, region->size);
    }
    sim_region_free(region);
}

static bool add_chunk(struct sim_context *context)
{
    struct sim_region *region;

    if (!sim_device_take(context->device, SIM_PAGE)) {
        return false;
    }
    region = sim_region_device(context->device, SIM_PAGE, 0, SIM_REGION_CHUNK);
    if (region == NULL) {
        goto err_give_memory;
    }
    region->context = context;
    region->first =
        sim_extent_new(region, region->base, region->size, SIM_EXTENT_FREE);
    if (region->first == NULL) {
        goto err_free_region;
    }
    sim_store_put(&context->heap->store, region->first);
    return true;

err_free_region:
    sim_region_free(region);
err_give_memory:
    sim_device_give(context->device, SIM_PAGE);
    return false;
}

static CUresult allocate_small(struct sim_context *context, size_t bytes,
                               CUdeviceptr *address)
{
    size_t size = (bytes + SIM_UNIT - 1) / SIM_UNIT * SIM_UNIT;
    struct sim_extent *extent;
    struct sim_extent *rest;

    if (context->heap == NULL) {
        context->heap = calloc(1, sizeof *context->heap);
        if (context->heap == NULL) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    extent = sim_store_find(&context->heap->store, size);
    if (extent == NULL) {
        if (!add_chunk(context)) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        extent = sim_store_find(&context->heap->store, size);
    }
    sim_store_remove(&context->heap->store, extent);
    if (extent->size > size) {
        rest = sim_extent_split(extent, size);
        if (rest == NULL) {
            goto err_put_back;
        }
        sim_store_put(&context->heap->store, rest);
    }
    if (!sim_block_add(extent, bytes)) {
        goto err_put_back;
    }
    *address = extent->base;
    return CUDA_SUCCESS;

err_put_back:
    sim_store_put(&context->heap->store, extent);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static void put_small(struct sim_extent *extent)
{
    struct sim_region *region = extent->region;
    struct sim_store *store = &region->context->heap->store;

    extent->state = SIM_EXTENT_FREE;
    if (extent->next != NULL && extent->next->state == SIM_EXTENT_FREE) {
        sim_store_remove(store, extent->next);
        sim_extent_absorb(extent);
    }
    if (extent->prev != NULL && extent->prev->state == SIM_EXTENT_FREE) {
        extent = extent->prev;
        sim_store_remove(store, extent);
        sim_extent_absorb(extent);
    }
    if (extent->size == region->size) {
        free_region(region);
        return;
    }
    sim_store_put(store, extent);
}

static CUresult allocate(struct sim_thread *self, CUdeviceptr *address,
                         size_t bytes)
{
    struct sim_context *context = sim_context_current(self);
    CUresult res;

    if (address == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *address = 0;
    if (bytes == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (context->broken != CUDA_SUCCESS) {
        return context->broken;
    }
    if (bytes > SIM_BLOCK_MOST) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    res = bytes > LARGE ? allocate_large(context, bytes, address)
                        : allocate_small(context, bytes, address);
    if (res == CUDA_SUCCESS) {
        sim_cost_sized(SIM_COST_PLAIN_ALLOCATE, bytes);
        sim_order_give(*address, bytes, NULL);
    }
    return res;
}

CUresult CUDAAPI cuMemAlloc(CUdeviceptr *dptr, size_t bytesize)
{
    SIM_ENTRY(cuMemAlloc, allocate(self, dptr, bytesize), NULL, SIM_OUT(dptr),
              0, bytesize);
}

/* A pointer into another process's pool is freed like one into a pool. */
static bool is_pool_import(const struct sim_region *region)
{
    return region->kind == SIM_REGION_IMPORT && region->pool != NULL;
}

/* Exactly a block's first address counts. */
static bool find_exact(CUdeviceptr address, struct sim_block *block)
{
    if (!sim_block_find(address, block) || block->base != address) {
        return false;
    }
    return block->region->kind == SIM_REGION_PLAIN ||
           block->region->kind == SIM_REGION_CHUNK ||
           block->region->kind == SIM_REGION_POOL ||
           block->region->kind == SIM_REGION_MANAGED ||
           block->region->kind == SIM_REGION_GRAPH ||
           is_pool_import(block->region);
}

static CUresult free_memory(CUdeviceptr address)
{
    struct sim_block block;
    struct sim_context *context;

    if (address == 0) {
        return CUDA_SUCCESS;
    }
    if (!find_exact(address, &block)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (block.extent != NULL && block.region->pool != NULL) {
        /* A pool knows whose block it is, and waits for that stream alone. */
        (void)sim_wait_done(block.extent->owner,
                            block.extent->owner->enqueued);
    } else {
        sim_wait_device(block.region->device);
    }
    if (!find_exact(address, &block)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    context = block.region->context;
    if (context != NULL && context->broken != CUDA_SUCCESS) {
        return context->broken;
    }
    sim_order_take(address, block.size, NULL);
    switch (block.region->kind) {
    case SIM_REGION_CHUNK:
        sim_cost_sized(SIM_COST_PLAIN_FREE, block.size);
        sim_block_remove(block.extent);
        put_small(block.extent);
        break;
    case SIM_REGION_POOL:
        sim_pool_free_now(block.extent);
        break;
    case SIM_REGION_PLAIN:
        sim_cost_sized(SIM_COST_PLAIN_FREE, block.size);
        free_region(block.region);
        break;
    case SIM_REGION_GRAPH:
        sim_graph_block_vanish(block.region->graph_block, NULL);
        break;
    case SIM_REGION_PINNED:
    case SIM_REGION_REGISTERED:
    case SIM_REGION_MANAGED:
    case SIM_REGION_RANGE:
    case SIM_REGION_IMPORT:
    default:
        sim_region_free(block.region);
        break;
    }
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemFree(CUdeviceptr dptr)
{
    SIM_ENTRY(cuMemFree, free_memory(dptr), NULL, dptr, 0, 0);
}

/* Until its turn comes a block is no block any more, but its bytes are there
 * for the work before the free. */
CUresult sim_plain_free_in_order(uintptr_t address, struct sim_stream *stream)
{
    struct sim_block block;
    struct sim_op *op;

    if (!find_exact(address, &block) ||
        (block.extent != NULL && block.region->pool != NULL)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (block.region->kind == SIM_REGION_MANAGED) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (block.region->kind == SIM_REGION_GRAPH) {
        sim_order_take(address, block.size, stream);
        sim_graph_block_vanish(block.region->graph_block, stream);
        return CUDA_SUCCESS;
    }
    op = sim_op_new(SIM_OP_GIVE_BACK);
    if (op == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    sim_order_take(address, block.size, stream);
    op->region = block.region;
    op->extent = block.extent;
    if (block.extent != NULL) {
        sim_block_remove(block.extent);
    } else {
        block.region->asked = 0;
    }
    return sim_submit(stream, op);
}

void sim_plain_give_back(struct sim_region *region, struct sim_extent *extent)
{
    if (extent != NULL) {
        put_small(extent);
    } else if (region->kind == SIM_REGION_PLAIN) {
        free_region(region);
    } else {
        sim_region_free(region);
    }
}

static CUresult get_info(struct sim_thread *self, size_t *unused,
                         size_t *total)
{
    struct sim_context *context = sim_context_current(self);
    const struct sim_device *device;

    uint64_t taken;

    sim_memory_reap();
    device = &sim.devices[context->device];
    /* A context takes memory for itself; here in the answer alone, so that
     * what a test calls the capacity can be had to the last byte. */
    taken = device->taken + SIM_PAGE;
    if (unused != NULL) {
        *unused = taken < device->capacity ? device->capacity - taken : 0;
    }
    if (total != NULL) {
        *total = device->capacity;
    }
    return CUDA_SUCCESS;
}

/* The header calls the first one `free`, which is a function here. */
CUresult CUDAAPI cuMemGetInfo(size_t *unused, size_t *total)
{
    SIM_ENTRY(cuMemGetInfo, get_info(self, unused, total), NULL, 0, 0, 0);
}

/* The end of a context. */

void sim_memory_of_context_end(struct sim_context *context)
{
    struct sim_region *region = sim_regions();

    while (region != NULL) {
        struct sim_region *next = region->next;

        if (region->context == context) {
            if (region->kind == SIM_REGION_PLAIN ||
                region->kind == SIM_REGION_CHUNK) {
                free_region(region);
            } else {
                sim_region_free(region);
            }
        }
        region = next;
    }
    free(context->heap);
    context->heap = NULL;
}

static void count_chunk(const struct sim_region *region,
                        ccmr_sim_census *census)
{
    const struct sim_extent *extent;

    for (extent = region->first; extent != NULL; extent = extent->next) {
        if (extent->state == SIM_EXTENT_USED) {
            census->plain_blocks++;
            census->plain_bytes += extent->asked;
        }
    }
}

void sim_plain_count(ccmr_sim_census *census)
{
    const struct sim_region *region;

    for (region = sim_regions(); region != NULL; region = region->next) {
        switch (region->kind) {
        case SIM_REGION_PLAIN:
            census->plain_blocks += region->asked != 0;
            census->plain_bytes += region->asked;
            break;
        case SIM_REGION_CHUNK:
            count_chunk(region, census);
            break;
        case SIM_REGION_PINNED:
            census->pinned_blocks++;
            census->pinned_bytes += region->asked;
            break;
        case SIM_REGION_REGISTERED:
            census->registered_ranges++;
            break;
        case SIM_REGION_MANAGED:
            census->managed_blocks++;
            census->managed_bytes += region->asked;
            break;
        case SIM_REGION_RANGE:
            census->ranges++;
            break;
        case SIM_REGION_IMPORT:
            census->imports++;
            break;
        case SIM_REGION_GRAPH:
            census->graph_blocks += region->asked != 0;
            census->graph_bytes += region->asked;
            break;
        case SIM_REGION_POOL:
        default:
            break;
        }
    }
}
