/* SPDX-License-Identifier: Apache-2.0 */
/* Regions: how they are found, and the granules of memory behind them. How
 * they are made is in region_make.c. */
#include "sim/region.h"

#include <assert.h>
#include <search.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "sim/addresses.h"
#include "sim/area.h"
#include "sim/extent.h"
#include "sim/managed.h"
#include "sim/order.h"
#include "sim/stream.h"
#include "sim/virtual.h"

static struct sim_region *all_regions;
static void *region_tree;
static uint64_t touched;

uint64_t sim_touched(void)
{
    return touched + sim_pieces_touched();
}

/* Finding. */

/* Ranges that overlap count as equal: so a search by any address, or by a
 * range, finds the region in its way. */
static int compare_regions(const void *one, const void *other)
{
    const struct sim_region *a = one;
    const struct sim_region *b = other;

    if (a->base + a->size <= b->base) {
        return -1;
    }
    return a->base >= b->base + b->size ? 1 : 0;
}

static struct sim_region *find_overlap(uintptr_t base, size_t size)
{
    struct sim_region key;
    void *node;

    key.base = base;
    key.size = size;
    node = tfind(&key, &region_tree, compare_regions);
    return node != NULL ? *(struct sim_region **)node : NULL;
}

struct sim_region *sim_region_find(uintptr_t address)
{
    return find_overlap(address, 1);
}

bool sim_region_overlaps(uintptr_t address, size_t size)
{
    return find_overlap(address, size) != NULL;
}

struct sim_region *sim_regions(void)
{
    return all_regions;
}

/* Granules. */

static void *map_granule(const struct sim_region *region, size_t index)
{
    void *memory;

    if (region->area != NULL) {
        return sim_area_map(region->area, index * region->granule,
                            region->granule);
    }
    memory = mmap(NULL, region->granule, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory != MAP_FAILED ? memory : NULL;
}

void *sim_region_granule(struct sim_region *region, size_t index)
{
    if (region->backing[index] == NULL) {
        region->backing[index] = map_granule(region, index);
        if (region->backing[index] != NULL) {
            touched += region->granule;
        }
    }
    return region->backing[index];
}

static void forget_granule(struct sim_region *region, size_t index)
{
    char *bytes = region->backing[index];

    if (bytes == NULL) {
        return;
    }
    region->backing[index] = NULL;
    if (region->kind == SIM_REGION_IMPORT) {
        munmap(bytes - region->lead, region->asked + region->lead);
        return;
    }
    munmap(bytes, region->granule);
    touched -= region->granule;
    if (region->area != NULL) {
        sim_area_forget(region->area, index * region->granule,
                        region->granule);
    }
}

void sim_region_fill(struct sim_region *region, uintptr_t base, size_t size)
{
    size_t i;

    if (region->backing != NULL) {
        for (i = (base - region->base) / region->granule;
             i < (base + size - region->base) / region->granule; i++) {
            region->present[i] = true;
        }
    }
}

void sim_region_forget(struct sim_region *region, uintptr_t base, size_t size)
{
    size_t first, last, i;

    if (region->backing == NULL) {
        /* Fresh pages come back: like new memory, and counted no more. */
        madvise((void *)base, size, MADV_DONTNEED);
        if (region->area != NULL) {
            sim_area_forget(region->area, base - region->base, size);
        }
        return;
    }
    first = (base - region->base) / region->granule;
    last = (base + size - region->base) / region->granule;
    for (i = first; i < last; i++) {
        forget_granule(region, i);
        region->present[i] = false;
    }
}

/* Coming and going. */

bool sim_region_enlist(struct sim_region *region)
{
    void *node = tsearch(region, &region_tree, compare_regions);

    if (node == NULL || *(struct sim_region **)node != region) {
        return false;
    }
    region->next = all_regions;
    if (all_regions != NULL) {
        all_regions->prev = region;
    }
    all_regions = region;
    return true;
}

void sim_region_delete(struct sim_region *region)
{
    size_t pages = (region->size + SIM_PAGE - 1) / SIM_PAGE;
    size_t i;

    for (i = 0; region->starts != NULL && i < pages; i++) {
        free(region->starts[i]);
    }
    free(region->starts);
    free(region->pages);
    free(region->present);
    free(region->backing);
    sim_advice_clear(region);
    free(region->graph_block);
    if (region->area != NULL) {
        sim_area_drop(region->area, region->size);
        free(region->area);
    }
    free(region);
}

size_t sim_region_mapped(const struct sim_region *region)
{
    return (region->lead + region->size + 4095) / 4096 * 4096;
}

void sim_region_free(struct sim_region *region)
{
    size_t i;

    if (region->kind != SIM_REGION_REGISTERED) {
        sim_order_forget(region->base, region->size);
    }
    tdelete(region, &region_tree, compare_regions);
    if (region->prev != NULL) {
        region->prev->next = region->next;
    } else {
        all_regions = region->next;
    }
    if (region->next != NULL) {
        region->next->prev = region->prev;
    }
    while (region->first != NULL) {
        struct sim_extent *extent = region->first;

        if (extent->state == SIM_EXTENT_USED) {
            if (extent->owner != NULL) {
                sim_stream_drop(extent->owner);
            }
            sim_block_remove(extent);
        }
        sim_extent_drop(extent);
    }
    if (region->backing != NULL) {
        for (i = 0; i < region->size / region->granule; i++) {
            forget_granule(region, i);
        }
        sim_addresses_give(region->device, region->base, region->size);
    } else if (region->kind == SIM_REGION_RANGE) {
        sim_addresses_give(SIM_RANGE_WINDOW, region->base, region->size);
    } else if (region->kind != SIM_REGION_REGISTERED) {
        munmap((void *)(region->base - region->lead),
               sim_region_mapped(region));
    }
    sim_region_delete(region);
}

static void keep_node(void *node)
{
    (void)node;
}

void sim_regions_reset(void)
{
    while (all_regions != NULL) {
        sim_region_free(all_regions);
    }
    tdestroy(region_tree, keep_node);
    region_tree = NULL;
    assert(touched == 0);
}
