/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of regions (region.c, region_make.c) and bytes (memory.c)
 * need of each other; what others may use is in memory.h. */
#ifndef SIM_REGION_H
#define SIM_REGION_H

#include "sim/memory.h"

/** Put a fresh region among those that are found; false if one is in its way
 *  or without memory. */
bool sim_region_enlist(struct sim_region *region);
/** Free one that is not among them, without its bytes and addresses. */
void sim_region_delete(struct sim_region *region);
/** How much is mapped for a region of host memory. */
size_t sim_region_mapped(const struct sim_region *region);
/** The host memory behind a granule, made at need; NULL without memory. */
void *sim_region_granule(struct sim_region *region, size_t index);
void sim_regions_reset(void);

#endif
