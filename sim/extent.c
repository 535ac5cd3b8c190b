/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/extent.h"

#include <assert.h>
#include <stdlib.h>

#define SLAB 256
#define UNITS_PER_PAGE (SIM_PAGE / SIM_UNIT)

struct slab {
    struct slab *next;
    struct sim_extent extents[SLAB];
};

static struct slab *slabs;
static struct sim_extent *spare;

/* The index of used extents: chains through link_next. */
static struct sim_extent **buckets;
static size_t bucket_count; /* a power of two */
static size_t block_count;

/* Records. */

static struct sim_extent *take_record(void)
{
    struct sim_extent *extent = spare;
    struct slab *slab;
    size_t i;

    if (extent == NULL) {
        slab = malloc(sizeof *slab);
        if (slab == NULL) {
            return NULL;
        }
        slab->next = slabs;
        slabs = slab;
        for (i = 0; i < SLAB; i++) {
            slab->extents[i].link_next = spare;
            spare = &slab->extents[i];
        }
        extent = spare;
    }
    spare = extent->link_next;
    return extent;
}

static void give_record(struct sim_extent *extent)
{
    extent->link_next = spare;
    spare = extent;
}

struct sim_extent *sim_extent_new(struct sim_region *region, uintptr_t base,
                                  size_t size, enum sim_extent_state state)
{
    struct sim_extent *extent = take_record();

    if (extent != NULL) {
        *extent = (struct sim_extent){
            .base = base,
            .size = size,
            .region = region,
            .state = state,
        };
    }
    return extent;
}

struct sim_extent *sim_extent_split(struct sim_extent *extent, size_t size)
{
    struct sim_extent *rest;

    assert(size > 0 && size < extent->size);
    rest = sim_extent_new(extent->region, extent->base + size,
                          extent->size - size, extent->state);
    if (rest == NULL) {
        return NULL;
    }
    rest->position = extent->position;
    rest->prev = extent;
    rest->next = extent->next;
    if (rest->next != NULL) {
        rest->next->prev = rest;
    }
    extent->next = rest;
    extent->size = size;
    return rest;
}

void sim_extent_absorb(struct sim_extent *extent)
{
    struct sim_extent *upper = extent->next;

    assert(upper != NULL && extent->base + extent->size == upper->base);
    extent->size += upper->size;
    extent->next = upper->next;
    if (upper->next != NULL) {
        upper->next->prev = extent;
    }
    give_record(upper);
}

void sim_extent_drop(struct sim_extent *extent)
{
    if (extent->prev != NULL) {
        extent->prev->next = extent->next;
    } else {
        extent->region->first = extent->next;
    }
    if (extent->next != NULL) {
        extent->next->prev = extent->prev;
    }
    give_record(extent);
}

/* The index. */

static size_t bucket_of(uintptr_t address)
{
    uint64_t mixed = (uint64_t)(address / SIM_UNIT) * 0x9e3779b97f4a7c15u;

    return (size_t)(mixed >> 20) & (bucket_count - 1);
}

static void grow_index(void)
{
    size_t old_count = bucket_count;
    struct sim_extent **old = buckets;
    size_t count = old_count != 0 ? old_count * 2 : 1024;
    struct sim_extent **grown = calloc(count, sizeof *grown);
    size_t i;

    if (grown == NULL) {
        return; /* longer chains, no harm */
    }
    buckets = grown;
    bucket_count = count;
    for (i = 0; i < old_count; i++) {
        while (old[i] != NULL) {
            struct sim_extent *extent = old[i];
            size_t bucket = bucket_of(extent->base);

            old[i] = extent->link_next;
            extent->link_next = buckets[bucket];
            buckets[bucket] = extent;
        }
    }
    free(old);
}

struct sim_extent *sim_block_at(uintptr_t address)
{
    struct sim_extent *extent;

    if (bucket_count == 0) {
        return NULL;
    }
    extent = buckets[bucket_of(address)];
    while (extent != NULL && extent->base != address) {
        extent = extent->link_next;
    }
    return extent;
}

/* The start bits. */

static bool set_start(struct sim_region *region, uintptr_t address)
{
    size_t unit = (address - region->base) / SIM_UNIT;
    size_t page = unit / UNITS_PER_PAGE;

    if (region->starts[page] == NULL) {
        region->starts[page] = calloc(UNITS_PER_PAGE / 64, sizeof(uint64_t));
        if (region->starts[page] == NULL) {
            return false;
        }
    }
    unit %= UNITS_PER_PAGE;
    region->starts[page][unit / 64] |= (uint64_t)1 << (unit % 64);
    region->pages[page / 64] |= (uint64_t)1 << (page % 64);
    return true;
}

static void clear_start(struct sim_region *region, uintptr_t address)
{
    size_t unit = (address - region->base) / SIM_UNIT;
    size_t page = unit / UNITS_PER_PAGE;

    /* The page's own bit may stay: it says "perhaps". */
    unit %= UNITS_PER_PAGE;
    region->starts[page][unit / 64] &= ~((uint64_t)1 << (unit % 64));
}

/* The highest bit set at or below `bit`, or -1. */
static long highest_bit(const uint64_t *words, size_t bit)
{
    size_t word = bit / 64;
    uint64_t bits = words[word] & (UINT64_MAX >> (63 - bit % 64));

    while (bits == 0) {
        if (word == 0) {
            return -1;
        }
        bits = words[--word];
    }
    return (long)(word * 64) + 63 - __builtin_clzll(bits);
}

struct sim_extent *sim_block_below(const struct sim_region *region,
                                   uintptr_t address)
{
    size_t unit = (address - region->base) / SIM_UNIT;
    long page = (long)(unit / UNITS_PER_PAGE);
    size_t from = unit % UNITS_PER_PAGE;

    while (page >= 0) {
        page = highest_bit(region->pages, (size_t)page);
        if (page < 0) {
            break;
        }
        if ((size_t)page != unit / UNITS_PER_PAGE) {
            from = UNITS_PER_PAGE - 1;
        }
        if (region->starts[page] != NULL) {
            long found = highest_bit(region->starts[page], from);

            if (found >= 0) {
                return sim_block_at(region->base + (size_t)page * SIM_PAGE +
                                    (size_t)found * SIM_UNIT);
            }
        }
        page--;
    }
    return NULL;
}

bool sim_block_add(struct sim_extent *extent, size_t asked)
{
    size_t bucket;

    if (block_count >= bucket_count) {
        grow_index();
    }
    if (bucket_count == 0 || !set_start(extent->region, extent->base)) {
        return false;
    }
    extent->state = SIM_EXTENT_USED;
    extent->asked = asked;
    extent->id = sim_next_id();
    bucket = bucket_of(extent->base);
    extent->link_next = buckets[bucket];
    buckets[bucket] = extent;
    block_count++;
    return true;
}

void sim_block_remove(struct sim_extent *extent)
{
    struct sim_extent **link = &buckets[bucket_of(extent->base)];

    while (*link != extent) {
        link = &(*link)->link_next;
    }
    *link = extent->link_next;
    extent->link_next = NULL;
    clear_start(extent->region, extent->base);
    block_count--;
}

void sim_extents_reset(void)
{
    assert(block_count == 0);
    while (slabs != NULL) {
        struct slab *slab = slabs;

        slabs = slab->next;
        free(slab);
    }
    spare = NULL;
    free(buckets);
    buckets = NULL;
    bucket_count = 0;
}
