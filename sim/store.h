/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store: free extents by size, found in constant time.
 *
 * Bins grow by eighths of a power of two. Within a bin the last one in comes
 * out first, so that a block freed is often the block handed out next.
 */
#ifndef SIM_STORE_H
#define SIM_STORE_H

#include "sim/memory.h"

#define SIM_STORE_ROWS 40
#define SIM_STORE_COLUMNS 8

struct sim_store {
    uint64_t rows; /**< rows with anything in them */
    uint8_t columns[SIM_STORE_ROWS];
    struct sim_extent *bins[SIM_STORE_ROWS][SIM_STORE_COLUMNS];
};

void sim_store_put(struct sim_store *store, struct sim_extent *extent);
void sim_store_remove(struct sim_store *store, struct sim_extent *extent);
/** An extent of at least that size, nearly the smallest; it stays in. */
struct sim_extent *sim_store_find(const struct sim_store *store, size_t size);
/** The first extent in a bin that may hold extents of that size or more, at
 *  or behind the given one's bin; used to walk over all large ones. */
struct sim_extent *sim_store_next(const struct sim_store *store, size_t size,
                                  const struct sim_extent *after);

#endif
