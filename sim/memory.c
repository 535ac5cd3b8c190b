/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks and bytes by address. Regions are in region.c, extents in extent.c. */
#include "sim/memory.h"

#include "sim/addresses.h"
#include "sim/extent.h"
#include "sim/ipc.h"
#include "sim/region.h"
#include "sim/virtual.h"

static uint64_t last_id;

uint64_t sim_next_id(void)
{
    return ++last_id;
}

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

void *sim_bytes(uintptr_t address, size_t bytes, size_t *length)
{
    struct sim_region *region;
    size_t offset, index, rest;
    char *granule;

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
    granule = sim_region_granule(region, index);
    if (granule == NULL) {
        return NULL;
    }
    if (*length > rest) {
        *length = rest;
    }
    return granule + offset % region->granule;
}

void sim_memory_reap(void)
{
    sim_pieces_reap();
    sim_ipc_reap();
}

void sim_memory_reset(void)
{
    sim_regions_reset();
    sim_ipc_reset();
    sim_mappings_reset();
    sim_pieces_reset();
    sim_areas_reset();
    sim_addresses_reset();
    sim_extents_reset();
}
