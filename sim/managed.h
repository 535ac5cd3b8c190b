/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed memory: what programs advise about it, and where it was prefetched
 * to, by range. The bytes are the host's and are simply there.
 *
 *     region      |<------------------ pages ------------------->|
 *     advice      | read mostly | as it comes | preferred: host  |
 *
 * Ranges about which nothing was ever said have no record.
 */
#ifndef SIM_MANAGED_H
#define SIM_MANAGED_H

#include "sim/memory.h"

/** What is known about bytes [start, end). */
struct sim_advice {
    struct sim_advice *next; /**< the next range up */
    uintptr_t start, end;
    bool read_mostly;
    bool by_host;       /**< accessed by the host */
    uint32_t by_device; /**< bit d: accessed by device d */
    CUmemLocation preferred, prefetched;
};

/** Is all of it managed memory, of one block? */
bool sim_managed_find(uintptr_t address, size_t bytes,
                      struct sim_block *block);
/** What holds for bytes about which nothing was said. */
struct sim_advice sim_advice_default(const struct sim_region *region);
/** The records of a range, cut to it and without gaps; NULL without memory. */
struct sim_advice *sim_advice_of(struct sim_region *region, uintptr_t address,
                                 size_t bytes);
/** Does that record belong to the range? To walk over what the call above
 *  gave. */
bool sim_advice_within(const struct sim_advice *advice, uintptr_t address,
                       size_t bytes);
/** Forget what was said about a range, or all of it. */
void sim_advice_forget(struct sim_region *region, uintptr_t address,
                       size_t bytes);
void sim_advice_clear(struct sim_region *region);

#endif
