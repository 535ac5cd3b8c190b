/* SPDX-License-Identifier: Apache-2.0 */
/* Where a pool's memory comes from and goes to: windows, granules, holes. */
#include "sim/pool.h"

#include <stdlib.h>

#include "sim/cost.h"
#include "sim/device.h"

#define HOST_WINDOW ((size_t)1 << 30)

static size_t round_up(size_t size, size_t to)
{
    return (size + to - 1) / to * to;
}

/* Holes. */

static void put_hole(struct sim_pool *pool, struct sim_extent *hole)
{
    hole->state = SIM_EXTENT_HOLE;
    hole->link_prev = NULL;
    hole->link_next = pool->holes;
    if (pool->holes != NULL) {
        pool->holes->link_prev = hole;
    }
    pool->holes = hole;
}

static void take_hole(struct sim_pool *pool, struct sim_extent *hole)
{
    if (hole->link_prev != NULL) {
        hole->link_prev->link_next = hole->link_next;
    } else {
        pool->holes = hole->link_next;
    }
    if (hole->link_next != NULL) {
        hole->link_next->link_prev = hole->link_prev;
    }
}

static bool is(const struct sim_extent *extent, enum sim_extent_state state)
{
    return extent != NULL && extent->state == state;
}

void sim_pool_put_ready(struct sim_pool *pool, struct sim_extent *extent)
{
    extent->state = SIM_EXTENT_FREE;
    if (is(extent->next, SIM_EXTENT_FREE)) {
        sim_store_remove(&pool->ready, extent->next);
        sim_extent_absorb(extent);
    }
    if (is(extent->prev, SIM_EXTENT_FREE)) {
        extent = extent->prev;
        sim_store_remove(&pool->ready, extent);
        sim_extent_absorb(extent);
    }
    sim_store_put(&pool->ready, extent);
}

/* Windows. */

static struct sim_region *new_host_window(struct sim_pool *pool, size_t size)
{
    size_t window =
        round_up(size > HOST_WINDOW ? size : HOST_WINDOW, pool->granule);
    struct sim_region *region;
    struct sim_area *area;

    if (!sim_pool_is_shareable(pool)) {
        return sim_region_host(window, SIM_REGION_POOL, true);
    }
    area = sim_pool_window_area(pool, window);
    if (area == NULL) {
        return NULL;
    }
    region = sim_region_shared(window, SIM_REGION_POOL, area);
    if (region == NULL) {
        sim_area_drop(area, window);
        free(area);
    }
    return region;
}

/* Twice the memory that there is, so that large requests find room between
 * the old ones; less where the address space runs short. */
static struct sim_region *new_device_window(struct sim_pool *pool, size_t size)
{
    struct sim_region *region;
    size_t window =
        2 * (size_t)(pool->max_size != 0 ? pool->max_size
                                         : sim.devices[pool->device].capacity);

    for (;;) {
        window = round_up(window < size ? size : window, pool->granule);
        region = sim_region_device(pool->device, window, pool->granule,
                                   SIM_REGION_POOL);
        if (region != NULL || window <= round_up(size, pool->granule)) {
            return region;
        }
        window /= 2;
    }
}

static struct sim_region *new_window(struct sim_pool *pool, size_t size)
{
    struct sim_region *region;

    if (pool->device < 0 || pool->type == CU_MEM_ALLOCATION_TYPE_MANAGED) {
        return new_host_window(pool, size);
    }
    region = new_device_window(pool, size);
    if (region != NULL && sim_pool_is_shareable(pool)) {
        region->area = sim_pool_window_area(pool, region->size);
        if (region->area == NULL) {
            sim_region_free(region);
            return NULL;
        }
    }
    return region;
}

static struct sim_extent *add_window(struct sim_pool *pool, size_t size)
{
    struct sim_region *region = new_window(pool, size);

    if (region == NULL) {
        return NULL;
    }
    region->pool = pool;
    region->first =
        sim_extent_new(region, region->base, region->size, SIM_EXTENT_HOLE);
    if (region->first == NULL) {
        sim_region_free(region);
        return NULL;
    }
    put_hole(pool, region->first);
    return region->first;
}

void sim_pool_release_windows(struct sim_pool *pool)
{
    struct sim_region *region = sim_regions();

    while (region != NULL) {
        struct sim_region *next = region->next;

        if (region->pool == pool) {
            sim_region_free(region);
        }
        region = next;
    }
}

/* Growth. */

/* New bytes needed to make `size` free in one piece around a hole; SIZE_MAX
 * where it cannot be. */
static size_t cost_of(const struct sim_pool *pool,
                      const struct sim_extent *hole, size_t size)
{
    size_t below = is(hole->prev, SIM_EXTENT_FREE) ? hole->prev->size : 0;
    size_t above = is(hole->next, SIM_EXTENT_FREE) ? hole->next->size : 0;
    size_t need;

    if (below + hole->size >= size) {
        need = round_up(size - below, pool->granule);
    } else if (above + hole->size >= size) {
        need = round_up(size - above, pool->granule);
    } else if (below + hole->size + above >= size) {
        return hole->size;
    } else {
        return SIZE_MAX;
    }
    return need < hole->size ? need : hole->size;
}

static bool charge(struct sim_pool *pool, size_t bytes)
{
    if (pool->max_size != 0 && (pool->reserved >= pool->max_size ||
                                bytes > pool->max_size - pool->reserved)) {
        return false;
    }
    if (pool->device >= 0 && !sim_device_take(pool->device, bytes)) {
        return false;
    }
    pool->reserved += bytes;
    if (pool->reserved > pool->reserved_high) {
        pool->reserved_high = pool->reserved;
    }
    return true;
}

static void uncharge(struct sim_pool *pool, size_t bytes)
{
    if (pool->device >= 0) {
        sim_device_give(pool->device, bytes);
    }
    pool->reserved -= bytes;
}

/* Put memory behind `bytes` of a hole, at the end where free memory is. */
static CUresult fill_hole(struct sim_pool *pool, struct sim_extent *hole,
                          size_t bytes, size_t size)
{
    size_t below = is(hole->prev, SIM_EXTENT_FREE) ? hole->prev->size : 0;
    struct sim_extent *rest = NULL;

    if (bytes < hole->size) {
        bool low = below + bytes >= size;

        rest = sim_extent_split(hole, low ? bytes : hole->size - bytes);
        if (rest == NULL) {
            uncharge(pool, bytes);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        if (low) {
            take_hole(pool, hole);
            put_hole(pool, rest);
        } else {
            hole = rest;
        }
    } else {
        take_hole(pool, hole);
    }
    sim_region_fill(hole->region, hole->base, hole->size);
    sim_pool_put_ready(pool, hole);
    return CUDA_SUCCESS;
}

CUresult sim_pool_grow(struct sim_pool *pool, size_t size)
{
    struct sim_extent *hole;
    struct sim_extent *best = NULL;
    size_t cost = SIZE_MAX;

    for (hole = pool->holes; hole != NULL; hole = hole->link_next) {
        size_t need = cost_of(pool, hole, size);

        if (need < cost ||
            (need == cost && best != NULL && hole->base < best->base)) {
            best = hole;
            cost = need;
        }
    }
    if (best == NULL || cost == SIZE_MAX) {
        if (pool->device >= 0 && size > sim.devices[pool->device].capacity) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        best = add_window(pool, size);
        if (best == NULL) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        cost = cost_of(pool, best, size);
    }
    if (!charge(pool, cost)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (pool->device >= 0) {
        sim_cost_sized(SIM_COST_POOL_GROW, cost);
    }
    return fill_hole(pool, best, cost, size);
}

/* Giving back. */

/* Cut a free extent, which leaves the store, down to [low, high); what is
 * below and above stays free. NULL without memory: nothing has changed, but
 * perhaps a cut more. */
static struct sim_extent *cut_out(struct sim_pool *pool,
                                  struct sim_extent *extent, uintptr_t low,
                                  uintptr_t high)
{
    struct sim_extent *rest;

    sim_store_remove(&pool->ready, extent);
    if (high < extent->base + extent->size) {
        rest = sim_extent_split(extent, high - extent->base);
        if (rest == NULL) {
            goto err_put_back;
        }
        sim_store_put(&pool->ready, rest);
    }
    if (low > extent->base) {
        rest = sim_extent_split(extent, low - extent->base);
        if (rest == NULL) {
            goto err_put_back;
        }
        sim_store_put(&pool->ready, extent);
        extent = rest;
    }
    return extent;

err_put_back:
    sim_store_put(&pool->ready, extent);
    return NULL;
}

static void make_hole(struct sim_pool *pool, struct sim_extent *extent)
{
    sim_region_forget(extent->region, extent->base, extent->size);
    if (pool->device >= 0) {
        sim_cost_sized(SIM_COST_POOL_SHRINK, extent->size);
    }
    uncharge(pool, extent->size);
    put_hole(pool, extent);
    if (is(extent->next, SIM_EXTENT_HOLE)) {
        take_hole(pool, extent->next);
        sim_extent_absorb(extent);
    }
    if (is(extent->prev, SIM_EXTENT_HOLE)) {
        take_hole(pool, extent);
        sim_extent_absorb(extent->prev);
    }
}

/* Give back the top `most` bytes or less of the whole granules of a free
 * extent. */
static void empty_extent(struct sim_pool *pool, struct sim_extent *extent,
                         uint64_t most)
{
    size_t granule = pool->granule;
    uintptr_t origin = extent->region->base;
    uintptr_t end = extent->base + extent->size;
    uintptr_t low = origin + round_up(extent->base - origin, granule);
    uintptr_t high = origin + (end - origin) / granule * granule;

    if (high <= low) {
        return;
    }
    if (high - low > most) {
        low = high - (size_t)(most / granule) * granule;
    }
    if (high <= low) {
        return;
    }
    extent = cut_out(pool, extent, low, high);
    if (extent != NULL) {
        make_hole(pool, extent);
    }
}

void sim_pool_trim(struct sim_pool *pool, uint64_t keep)
{
    struct sim_extent *extent =
        sim_store_next(&pool->ready, pool->granule, NULL);

    while (extent != NULL && pool->reserved > keep) {
        struct sim_extent *next =
            sim_store_next(&pool->ready, pool->granule, extent);

        empty_extent(pool, extent, pool->reserved - keep);
        extent = next;
    }
}
