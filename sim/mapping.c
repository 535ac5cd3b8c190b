/* SPDX-License-Identifier: Apache-2.0 */
/* Mappings and the table that finds them by page, in two steps. */
#include "sim/virtual.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "sim/addresses.h"
#include "sim/order.h"

#define LEAF_PAGES ((size_t)512)
#define LEAVES (SIM_RANGE_BYTES / SIM_PAGE / LEAF_PAGES)

struct leaf {
    struct sim_mapping *pages[LEAF_PAGES];
};

static struct leaf *leaves[LEAVES];
static size_t last_leaf; /* none behind it is there */
static uint64_t live;

static struct sim_mapping **find_page(uintptr_t address)
{
    size_t page = (address - SIM_RANGE_BASE) / SIM_PAGE;
    struct leaf *leaf;

    if (!sim_is_range_address(address)) {
        return NULL;
    }
    leaf = leaves[page / LEAF_PAGES];
    return leaf != NULL ? &leaf->pages[page % LEAF_PAGES] : NULL;
}

struct sim_mapping *sim_mapping_find(uintptr_t address)
{
    struct sim_mapping **page = find_page(address);

    return page != NULL ? *page : NULL;
}

struct sim_mapping *sim_mapping_next(uintptr_t address, uintptr_t end)
{
    while (address < end) {
        struct sim_mapping **page = find_page(address);

        if (page != NULL && *page != NULL) {
            return *page;
        }
        address = page != NULL ? (address / SIM_PAGE + 1) * SIM_PAGE
                               : (address / SIM_PAGE / LEAF_PAGES + 1) *
                                     SIM_PAGE * LEAF_PAGES;
    }
    return NULL;
}

/* Leaves once made stay. */
static bool make_leaves(uintptr_t address, size_t size)
{
    size_t first = (address - SIM_RANGE_BASE) / SIM_PAGE / LEAF_PAGES;
    size_t last =
        (address + size - 1 - SIM_RANGE_BASE) / SIM_PAGE / LEAF_PAGES;

    for (; first <= last; first++) {
        if (first >= LEAVES) {
            return false;
        }
        if (leaves[first] == NULL) {
            leaves[first] = calloc(1, sizeof *leaves[first]);
        }
        if (leaves[first] == NULL) {
            return false;
        }
        if (first > last_leaf) {
            last_leaf = first;
        }
    }
    return true;
}

static void set_pages(const struct sim_mapping *mapping,
                      struct sim_mapping *value)
{
    size_t done;

    for (done = 0; done < mapping->size; done += SIM_PAGE) {
        struct sim_mapping **page = find_page(mapping->base + done);

        if (page != NULL) {
            *page = value;
        }
    }
}

CUresult sim_mapping_add(struct sim_holder *holder, uintptr_t address)
{
    size_t size = holder->piece->size;
    struct sim_mapping *mapping;

    if (sim_mapping_next(address, address + size) != NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    mapping = calloc(1, sizeof *mapping);
    if (mapping == NULL || !make_leaves(address, size)) {
        free(mapping);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    mapping->base = address;
    mapping->size = size;
    mapping->holder = holder;
    mapping->id = sim_next_id();
    set_pages(mapping, mapping);
    sim_holder_map(holder);
    live++;
    return CUDA_SUCCESS;
}

void sim_mapping_remove(struct sim_mapping *mapping)
{
    sim_order_unmap(mapping->base, mapping->size, &mapping->uses);
    sim_clock_clear(&mapping->uses);
    sim_mapping_open_to_host(mapping, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    set_pages(mapping, NULL);
    sim_holder_unmap(mapping->holder);
    free(mapping);
    live--;
}

uint64_t sim_mappings_live(void)
{
    return live;
}

void sim_mappings_reset(void)
{
    struct sim_mapping *mapping;
    size_t i;

    for (;;) {
        mapping =
            sim_mapping_next(SIM_RANGE_BASE, SIM_RANGE_BASE + SIM_RANGE_BYTES);
        if (mapping == NULL) {
            break;
        }
        sim_mapping_remove(mapping);
    }
    for (i = 0; i <= last_leaf; i++) {
        free(leaves[i]);
        leaves[i] = NULL;
    }
    last_leaf = 0;
}

/* For the rest of the memory. */

bool sim_virtual_mapped(uintptr_t address, size_t bytes)
{
    uintptr_t end = address + bytes;

    while (address < end) {
        const struct sim_mapping *mapping = sim_mapping_find(address);

        if (mapping == NULL) {
            return false;
        }
        address = mapping->base + mapping->size;
    }
    return true;
}

void *sim_virtual_bytes(uintptr_t address, size_t bytes, size_t *length)
{
    struct sim_mapping *mapping = sim_mapping_find(address);
    size_t offset;
    char *start;

    if (mapping == NULL) {
        return NULL;
    }
    offset = address - mapping->base;
    *length = mapping->size - offset < bytes ? mapping->size - offset : bytes;
    start = sim_piece_bytes(mapping->holder->piece);
    return start != NULL ? start + offset : NULL;
}

/* The host. The addresses become real ones, which lie where nothing else is
 * put; the bytes are those of the piece, by way of its file. */
bool sim_mapping_open_to_host(struct sim_mapping *mapping,
                              CUmemAccess_flags flags)
{
    struct sim_piece *piece = mapping->holder->piece;
    int prot = flags == CU_MEM_ACCESS_FLAGS_PROT_READ ? PROT_READ
                                                      : PROT_READ | PROT_WRITE;
    void *at = (void *)mapping->base;

    if (flags == (CUmemAccess_flags)mapping->host_access) {
        return true;
    }
    if (flags == CU_MEM_ACCESS_FLAGS_PROT_NONE) {
        munmap(at, mapping->size);
    } else if (mapping->host_access != 0) {
        if (mprotect(at, mapping->size, prot) != 0) {
            return false;
        }
    } else if (!sim_piece_make_area(piece) ||
               !sim_area_map_at(&piece->area, mapping->size, prot, at)) {
        return false;
    }
    mapping->host_access = (uint8_t)flags;
    return true;
}
