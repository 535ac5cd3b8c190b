/* SPDX-License-Identifier: Apache-2.0 */
/* Regions and the bytes behind them; extents and blocks are in extent.c. */
#include "sim/memory.h"

#include <assert.h>
#include <search.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "sim/addresses.h"
#include "sim/area.h"
#include "sim/extent.h"
#include "sim/ipc.h"
#include "sim/managed.h"
#include "sim/order.h"
#include "sim/stream.h"
#include "sim/virtual.h"

#define HOST_PAGE ((size_t)4096)

static struct sim_region *all_regions;
static void *region_tree;
static uint64_t touched;
static uint64_t last_id;

uint64_t sim_next_id(void)
{
    return ++last_id;
}

uint64_t sim_touched(void)
{
    return touched + sim_pieces_touched();
}

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

/* Regions. */

static struct sim_region *new_region(size_t size, size_t granule,
                                     enum sim_region_kind kind)
{
    struct sim_region *region = calloc(1, sizeof *region);
    size_t count = granule != 0 ? (size + granule - 1) / granule : 0;

    if (region == NULL) {
        return NULL;
    }
    region->size = size;
    region->kind = kind;
    region->granule = granule;
    region->device = -1;
    region->id = sim_next_id();
    if (count != 0) {
        region->backing = calloc(count, sizeof *region->backing);
        region->present = calloc(count, sizeof *region->present);
        if (region->backing == NULL || region->present == NULL) {
            goto err_free_backing;
        }
    }
    if (kind == SIM_REGION_CHUNK || kind == SIM_REGION_POOL) {
        size_t pages = (size + SIM_PAGE - 1) / SIM_PAGE;

        region->starts = calloc(pages, sizeof *region->starts);
        region->pages = calloc((pages + 63) / 64, sizeof *region->pages);
        if (region->starts == NULL || region->pages == NULL) {
            goto err_free_bits;
        }
    }
    return region;

err_free_bits:
    free(region->pages);
    free(region->starts);
err_free_backing:
    free(region->present);
    free(region->backing);
    free(region);
    return NULL;
}

static void delete_region(struct sim_region *region)
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

static bool enlist_region(struct sim_region *region)
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

struct sim_region *sim_region_device(int device, size_t size, size_t granule,
                                     enum sim_region_kind kind)
{
    struct sim_region *region;

    size = (size + SIM_PAGE - 1) / SIM_PAGE * SIM_PAGE;
    region = new_region(size, granule != 0 ? granule : size, kind);
    if (region == NULL) {
        return NULL;
    }
    region->device = device;
    region->base = sim_addresses_take(device, size, SIM_PAGE);
    if (region->base == 0) {
        goto err_delete_region;
    }
    if (!enlist_region(region)) {
        goto err_give_addresses;
    }
    return region;

err_give_addresses:
    sim_addresses_give(device, region->base, size);
err_delete_region:
    delete_region(region);
    return NULL;
}

static size_t mapped_size(const struct sim_region *region)
{
    return (region->lead + region->size + 4095) / 4096 * 4096;
}

/* Pinned memory below 2 MiB is packed by a real driver: aligned to units and
 * to no more than that. */
static size_t lead_of(size_t size, enum sim_region_kind kind)
{
    size_t packed = kind == SIM_REGION_PINNED ? SIM_PAGE : 4096;

    return size < packed ? SIM_UNIT : 0;
}

struct sim_region *sim_region_host(size_t size, enum sim_region_kind kind,
                                   bool reserve)
{
    struct sim_region *region;
    void *base;

    region = new_region((size + SIM_UNIT - 1) / SIM_UNIT * SIM_UNIT, 0, kind);
    if (region == NULL) {
        return NULL;
    }
    region->lead = lead_of(size, kind);
    size = mapped_size(region);
    base = mmap(NULL, size, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | (reserve ? MAP_NORESERVE : 0),
                -1, 0);
    if (base == MAP_FAILED) {
        goto err_delete_region;
    }
    region->base = (uintptr_t)base + region->lead;
    if (!enlist_region(region)) {
        goto err_unmap;
    }
    return region;

err_unmap:
    munmap(base, size);
err_delete_region:
    delete_region(region);
    return NULL;
}

/* Map more than is wanted, and give the ends back. */
static void *map_aligned(size_t size, size_t alignment)
{
    char *got = mmap(NULL, size + alignment, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    size_t below;

    if (got == MAP_FAILED) {
        return NULL;
    }
    below = (alignment - (uintptr_t)got % alignment) % alignment;
    if (below != 0) {
        munmap(got, below);
    }
    if (alignment != below) {
        munmap(got + below + size, alignment - below);
    }
    return got + below;
}

struct sim_region *sim_region_aligned(size_t size, enum sim_region_kind kind,
                                      size_t alignment)
{
    struct sim_region *region;
    void *base;

    if (alignment <= HOST_PAGE) {
        return sim_region_host(size, kind, true);
    }
    region = new_region((size + SIM_UNIT - 1) / SIM_UNIT * SIM_UNIT, 0, kind);
    if (region == NULL) {
        return NULL;
    }
    size = mapped_size(region);
    base = map_aligned(size, alignment);
    if (base == NULL) {
        delete_region(region);
        return NULL;
    }
    region->base = (uintptr_t)base;
    if (!enlist_region(region)) {
        munmap(base, size);
        delete_region(region);
        return NULL;
    }
    return region;
}

struct sim_region *sim_region_foreign(void *base, size_t size,
                                      enum sim_region_kind kind)
{
    struct sim_region *region = new_region(size, 0, kind);

    if (region == NULL) {
        return NULL;
    }
    region->base = (uintptr_t)base;
    if (!enlist_region(region)) {
        delete_region(region);
        return NULL;
    }
    return region;
}

/* Addresses that are in no range, and where no mapping reaches from one. */
static uintptr_t take_range(size_t size, size_t alignment, uintptr_t hint)
{
    uintptr_t base = 0;
    uintptr_t next = 0;

    if (hint != 0 && sim_is_range_address(hint) &&
        sim_mapping_next(hint, hint + size) == NULL &&
        sim_addresses_take_at(SIM_RANGE_WINDOW, hint, size)) {
        return hint;
    }
    base = sim_addresses_take(SIM_RANGE_WINDOW, size, alignment);
    if (base != 0 && sim_mapping_next(base, base + size) != NULL) {
        next = take_range(size, alignment, 0);
        sim_addresses_give(SIM_RANGE_WINDOW, base, size);
        return next;
    }
    return base;
}

struct sim_region *sim_region_range(size_t size, size_t alignment,
                                    uintptr_t hint)
{
    struct sim_region *region = new_region(size, 0, SIM_REGION_RANGE);

    if (region == NULL) {
        return NULL;
    }
    region->base = take_range(size, alignment, hint);
    if (region->base == 0) {
        goto err_delete_region;
    }
    if (!enlist_region(region)) {
        goto err_give_addresses;
    }
    return region;

err_give_addresses:
    sim_addresses_give(SIM_RANGE_WINDOW, region->base, size);
err_delete_region:
    delete_region(region);
    return NULL;
}

struct sim_region *sim_region_shared(size_t size, enum sim_region_kind kind,
                                     struct sim_area *area)
{
    struct sim_region *region = new_region(size, 0, kind);
    void *base;

    if (region == NULL) {
        return NULL;
    }
    base = sim_area_map(area, 0, size);
    if (base == NULL) {
        delete_region(region);
        return NULL;
    }
    region->base = (uintptr_t)base;
    region->area = area;
    if (!enlist_region(region)) {
        munmap(base, size);
        region->area = NULL;
        delete_region(region);
        return NULL;
    }
    return region;
}

/* What is mapped begins with a page of the host, and the block wherever in
 * it. */
struct sim_region *sim_region_import(int device, const struct sim_area *area,
                                     size_t offset, size_t bytes)
{
    size_t lead = offset % HOST_PAGE;
    char *mapped = sim_area_map(area, offset - lead, bytes + lead);
    struct sim_region *region;

    if (mapped == NULL) {
        return NULL;
    }
    region = device < 0
                 ? sim_region_foreign(mapped + lead, bytes, SIM_REGION_IMPORT)
                 : sim_region_device(device, bytes, 0, SIM_REGION_IMPORT);
    if (region == NULL) {
        munmap(mapped, bytes + lead);
        return NULL;
    }
    region->lead = lead;
    if (device >= 0) {
        region->backing[0] = mapped + lead;
    }
    return region;
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
        munmap((void *)(region->base - region->lead), mapped_size(region));
    }
    delete_region(region);
}

/* Bytes. */

/* Memory is bound to its address, but for pieces that are mapped. */
uint64_t sim_memory_key(uintptr_t address, size_t bytes, size_t *length)
{
    const struct sim_mapping *mapping = sim_mapping_find(address);
    size_t offset;

    *length = bytes;
    if (mapping == NULL) {
        return address;
    }
    offset = address - mapping->base;
    if (*length > mapping->size - offset) {
        *length = mapping->size - offset;
    }
    return mapping->holder->piece->key + offset;
}

static bool is_single(const struct sim_region *region)
{
    return region->kind != SIM_REGION_CHUNK && region->kind != SIM_REGION_POOL;
}

/* A mapping to which nobody has rights is known by its range alone. */
static bool find_mapping(uintptr_t address, struct sim_block *block)
{
    struct sim_mapping *mapping = sim_mapping_find(address);

    if (mapping == NULL) {
        return false;
    }
    block->region = sim_region_find(mapping->base);
    block->extent = NULL;
    block->mapping = mapping;
    block->base = mapping->base;
    block->size = mapping->size;
    block->id = mapping->id;
    if (!sim_mapping_is_open(mapping)) {
        block->base = block->region->base;
        block->size = block->region->size;
    }
    return true;
}

bool sim_block_find(uintptr_t address, struct sim_block *block)
{
    struct sim_region *region;
    struct sim_extent *extent;

    if (sim_is_range_address(address)) {
        return find_mapping(address, block);
    }
    region = sim_region_find(address);
    if (region == NULL) {
        return false;
    }
    block->region = region;
    block->mapping = NULL;
    if (is_single(region)) {
        block->extent = NULL;
        block->base = region->base;
        block->size = region->asked;
        block->id = region->id;
    } else {
        extent = sim_block_below(region, address);
        if (extent == NULL) {
            return false;
        }
        block->extent = extent;
        block->base = extent->base;
        block->size = extent->asked;
        block->id = extent->id;
    }
    return address - block->base < block->size;
}

bool sim_range_usable(uintptr_t address, size_t bytes)
{
    struct sim_block block;

    if (bytes > SIZE_MAX - address) {
        return false;
    }
    if (sim_is_range_address(address)) {
        return sim_virtual_mapped(address, bytes);
    }
    if (sim_block_find(address, &block)) {
        return !block.region->lost &&
               bytes <= block.size - (address - block.base);
    }
    return !sim_is_device_address(address) && address >= 4096;
}

bool sim_range_allows(int device, uintptr_t address, size_t bytes, bool write)
{
    return sim_range_usable(address, bytes) &&
           (!sim_is_range_address(address) ||
            sim_virtual_allows(device, address, bytes, write));
}

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

void *sim_bytes(uintptr_t address, size_t bytes, size_t *length)
{
    struct sim_region *region;
    size_t offset, index, rest;

    *length = bytes;
    if (sim_is_range_address(address)) {
        return sim_virtual_bytes(address, bytes, length);
    }
    region = sim_region_find(address);
    if (region == NULL) {
        return sim_is_device_address(address) ? NULL : (void *)address;
    }
    if (region->backing == NULL) {
        return (void *)address;
    }
    offset = address - region->base;
    index = offset / region->granule;
    rest = region->granule - offset % region->granule;
    if (region->kind == SIM_REGION_POOL && !region->present[index]) {
        return NULL;
    }
    if (region->backing[index] == NULL) {
        region->backing[index] = map_granule(region, index);
        if (region->backing[index] == NULL) {
            return NULL;
        }
        touched += region->granule;
    }
    if (*length > rest) {
        *length = rest;
    }
    return (char *)region->backing[index] + offset % region->granule;
}

void sim_memory_reap(void)
{
    sim_pieces_reap();
    sim_ipc_reap();
}

static void keep_node(void *node)
{
    (void)node;
}

void sim_memory_reset(void)
{
    while (all_regions != NULL) {
        sim_region_free(all_regions);
    }
    tdestroy(region_tree, keep_node);
    region_tree = NULL;
    sim_ipc_reset();
    sim_mappings_reset();
    sim_pieces_reset();
    sim_areas_reset();
    sim_addresses_reset();
    sim_extents_reset();
    assert(touched == 0);
}
