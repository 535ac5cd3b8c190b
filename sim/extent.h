/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extents, which tile chunks and windows, and blocks, which are the used ones:
 * found by their first address in an index (a hash), and by any other address
 * through the start bits of their region.
 */
#ifndef SIM_EXTENT_H
#define SIM_EXTENT_H

#include "sim/memory.h"

/* Blocks. */

/** Make an extent a used block that is found by its address. */
bool sim_block_add(struct sim_extent *extent, size_t asked);
void sim_block_remove(struct sim_extent *extent);
/** The used extent that starts there, or NULL. */
struct sim_extent *sim_block_at(uintptr_t address);
/** The used extent of a region that starts last at or before an address. */
struct sim_extent *sim_block_below(const struct sim_region *region,
                                   uintptr_t address);

/* Extents. */

struct sim_extent *sim_extent_new(struct sim_region *region, uintptr_t base,
                                  size_t size, enum sim_extent_state state);
/** Cut an extent so that it keeps `size` bytes; the rest comes back as a new
 *  extent of the same state behind it. NULL without memory: unchanged. */
struct sim_extent *sim_extent_split(struct sim_extent *extent, size_t size);
/** Join an extent with its upper neighbour, which goes. */
void sim_extent_absorb(struct sim_extent *extent);
void sim_extent_drop(struct sim_extent *extent);

/** Forget the index and all spare records. */
void sim_extents_reset(void);

#endif
