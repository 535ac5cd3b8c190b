/* SPDX-License-Identifier: Apache-2.0 */
/* How regions are made: of addresses of a device, of memory of the host, of
 * what other processes share. */
#include "sim/region.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "sim/addresses.h"
#include "sim/area.h"
#include "sim/virtual.h"

#define HOST_PAGE ((size_t)4096)

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
    if (!sim_region_enlist(region)) {
        goto err_give_addresses;
    }
    return region;

err_give_addresses:
    sim_addresses_give(device, region->base, size);
err_delete_region:
    sim_region_delete(region);
    return NULL;
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
    size = sim_region_mapped(region);
    base = mmap(NULL, size, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | (reserve ? MAP_NORESERVE : 0),
                -1, 0);
    if (base == MAP_FAILED) {
        goto err_delete_region;
    }
    region->base = (uintptr_t)base + region->lead;
    if (!sim_region_enlist(region)) {
        goto err_unmap;
    }
    return region;

err_unmap:
    munmap(base, size);
err_delete_region:
    sim_region_delete(region);
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
    size = sim_region_mapped(region);
    base = map_aligned(size, alignment);
    if (base == NULL) {
        sim_region_delete(region);
        return NULL;
    }
    region->base = (uintptr_t)base;
    if (!sim_region_enlist(region)) {
        munmap(base, size);
        sim_region_delete(region);
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
    if (!sim_region_enlist(region)) {
        sim_region_delete(region);
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
    if (!sim_region_enlist(region)) {
        goto err_give_addresses;
    }
    return region;

err_give_addresses:
    sim_addresses_give(SIM_RANGE_WINDOW, region->base, size);
err_delete_region:
    sim_region_delete(region);
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
        sim_region_delete(region);
        return NULL;
    }
    region->base = (uintptr_t)base;
    region->area = area;
    if (!sim_region_enlist(region)) {
        munmap(base, size);
        region->area = NULL;
        sim_region_delete(region);
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
