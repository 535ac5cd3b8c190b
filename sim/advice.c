/* SPDX-License-Identifier: Apache-2.0 */
/* The records of what is known about ranges of managed memory. */
#include "sim/managed.h"

#include <stdlib.h>

#include "sim/pool.h"

#define PAGE ((uintptr_t)4096)

static uintptr_t page_down(uintptr_t address)
{
    return address & ~(PAGE - 1);
}

static uintptr_t page_up(uintptr_t address)
{
    return (address + PAGE - 1) & ~(PAGE - 1);
}

bool sim_managed_find(uintptr_t address, size_t bytes, struct sim_block *block)
{
    const struct sim_region *region;

    if (bytes == 0 || !sim_block_find(address, block) ||
        bytes > block->size - (address - block->base)) {
        return false;
    }
    region = block->region;
    return region->kind == SIM_REGION_MANAGED ||
           (region->pool != NULL &&
            region->pool->type == CU_MEM_ALLOCATION_TYPE_MANAGED);
}

struct sim_advice sim_advice_default(const struct sim_region *region)
{
    struct sim_advice advice = {.next = NULL};

    if (region->pool != NULL) {
        advice.preferred = region->pool->location;
    }
    return advice;
}

/* Where the record that holds an address is linked, or would be. */
static struct sim_advice **find_link(struct sim_region *region,
                                     uintptr_t address)
{
    struct sim_advice **link = &region->advice;

    while (*link != NULL && (*link)->end <= address) {
        link = &(*link)->next;
    }
    return link;
}

static bool insert(struct sim_region *region, struct sim_advice **link,
                   uintptr_t start, uintptr_t end)
{
    struct sim_advice *advice = malloc(sizeof *advice);

    if (advice == NULL) {
        return false;
    }
    *advice = sim_advice_default(region);
    advice->start = start;
    advice->end = end;
    advice->next = *link;
    *link = advice;
    return true;
}

/* Make a border between records at an address. */
static bool cut(struct sim_region *region, uintptr_t address)
{
    struct sim_advice *advice = *find_link(region, address);
    struct sim_advice *upper;

    if (advice == NULL || advice->start >= address) {
        return true;
    }
    upper = malloc(sizeof *upper);
    if (upper == NULL) {
        return false;
    }
    *upper = *advice;
    upper->start = address;
    advice->end = address;
    advice->next = upper;
    return true;
}

struct sim_advice *sim_advice_of(struct sim_region *region, uintptr_t address,
                                 size_t bytes)
{
    uintptr_t start = page_down(address);
    uintptr_t end = page_up(address + bytes);
    struct sim_advice **link;

    if (!cut(region, start) || !cut(region, end)) {
        return NULL;
    }
    link = find_link(region, start);
    while (start < end) {
        const struct sim_advice *advice = *link;

        if (advice == NULL || advice->start > start) {
            uintptr_t gap =
                advice == NULL || advice->start > end ? end : advice->start;

            if (!insert(region, link, start, gap)) {
                return NULL;
            }
        }
        start = (*link)->end;
        link = &(*link)->next;
    }
    return *find_link(region, page_down(address));
}

bool sim_advice_within(const struct sim_advice *advice, uintptr_t address,
                       size_t bytes)
{
    return advice != NULL && advice->start < page_up(address + bytes);
}

void sim_advice_forget(struct sim_region *region, uintptr_t address,
                       size_t bytes)
{
    struct sim_advice *advice;

    if (region->advice == NULL) {
        return;
    }
    advice = sim_advice_of(region, address, bytes);
    for (; sim_advice_within(advice, address, bytes); advice = advice->next) {
        struct sim_advice fresh = sim_advice_default(region);

        fresh.next = advice->next;
        fresh.start = advice->start;
        fresh.end = advice->end;
        *advice = fresh;
    }
}

void sim_advice_clear(struct sim_region *region)
{
    while (region->advice != NULL) {
        struct sim_advice *advice = region->advice;

        region->advice = advice->next;
        free(advice);
    }
}
