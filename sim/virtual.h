/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory: ranges of addresses that programs reserve, and pieces of
 * physical memory that are mapped there.
 *
 *     ranges    |<----------- range ----------->|<-- range -->|
 *     mappings  |  mapping  |  mapping  |       |             |
 *                     |           |
 *     pieces          a           b             (may be mapped elsewhere too)
 *
 * A mapping begins in a range; where it ends is not looked at, so that it may
 * lie over several ranges, and even beyond. Any address finds its mapping by a
 * table of pages. Rights are a mapping's, for each device and for the host.
 */
#ifndef SIM_VIRTUAL_H
#define SIM_VIRTUAL_H

#include "sim/clock.h"
#include "sim/memory.h"
#include "sim/physical.h"

struct sim_mapping {
    uintptr_t base;
    size_t size;
    struct sim_holder *holder;       /**< by which it was mapped */
    uint64_t id;                     /**< unique, never reused */
    uint8_t access[SIM_MAX_DEVICES]; /**< CUmemAccess_flags */
    uint8_t host_access;             /**< of memory of the host's */
    struct sim_clock uses; /**< by work, at these addresses; if checked */
};

/** The mapping with that address in it, or NULL. */
struct sim_mapping *sim_mapping_find(uintptr_t address);
/** The first one at or behind an address, before `end`; or NULL. */
struct sim_mapping *sim_mapping_next(uintptr_t address, uintptr_t end);
/** Make one and take one out of the table. */
CUresult sim_mapping_add(struct sim_holder *holder, uintptr_t address);
void sim_mapping_remove(struct sim_mapping *mapping);
uint64_t sim_mappings_live(void);
void sim_mappings_reset(void);

/** Are the bytes mapped, without a break? */
bool sim_virtual_mapped(uintptr_t address, size_t bytes);
/** Has the device these rights to all of the bytes? */
bool sim_virtual_allows(int device, uintptr_t address, size_t bytes,
                        bool write);
/** Has anybody any right to a mapping? Only then its addresses mean much. */
bool sim_mapping_is_open(const struct sim_mapping *mapping);
/** The host memory behind an address, and how far it goes on. */
void *sim_virtual_bytes(uintptr_t address, size_t bytes, size_t *length);
/** Give the host rights to a mapping of its own memory, or take them away. */
bool sim_mapping_open_to_host(struct sim_mapping *mapping,
                              CUmemAccess_flags flags);

#endif
