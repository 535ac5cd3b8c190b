/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory: ranges of addresses that programs reserve, and pieces of
 * physical memory that are mapped into them.
 *
 *     range (a region)
 *     +-----------+-----------+-----------+-----------+
 *     | mapping   | mapping               | nothing   |
 *     +-----|-----+-----|-----------------+-----------+
 *           v           v
 *         piece a     piece b   (may be mapped elsewhere too)
 *
 * A range knows its mappings by page, so that any address finds its own.
 * Rights are a mapping's, for each device and for the host.
 */
#ifndef SIM_VIRTUAL_H
#define SIM_VIRTUAL_H

#include "sim/memory.h"
#include "sim/physical.h"

struct sim_mapping {
    struct sim_region *range;
    uintptr_t base;
    size_t size;
    struct sim_physical *piece;
    uint64_t id;                     /**< unique, never reused */
    uint8_t access[SIM_MAX_DEVICES]; /**< CUmemAccess_flags */
    uint8_t host_access;             /**< of memory of the host's */
};

/** The mapping with that address in it, or NULL. */
struct sim_mapping *sim_mapping_find(uintptr_t address);
/** The one in a range, or NULL. */
struct sim_mapping *sim_mapping_in(const struct sim_region *range,
                                   uintptr_t address);
/** Are the bytes mapped, without a break? Beyond the range there is nothing. */
bool sim_virtual_mapped(uintptr_t address, size_t bytes);
/** May the device do that to the bytes? They are mapped. */
bool sim_virtual_allows(int device, uintptr_t address, size_t bytes,
                        bool write);
/** The host memory behind an address, and how far it goes on. */
void *sim_virtual_bytes(const struct sim_region *range, uintptr_t address,
                        size_t bytes, size_t *length);

/** Take everything out of a range that goes. */
void sim_virtual_empty(struct sim_region *range);
/** How many ranges and mappings there are. */
void sim_virtual_count(uint64_t *ranges, uint64_t *mappings);

#endif
