/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of the pool's sets share: lanes and segments that are
 * addresses alone, and a host memory that can be forbidden or empty.
 */
#ifndef CCMR_TESTS_UNIT_POOL_BOOKS_H
#define CCMR_TESTS_UNIT_POOL_BOOKS_H

#include <stdint.h>

#include "resources/pool/set.h"

#define G CCMR__POOL_GRANULE

/* What allocations do. */
typedef enum host_memory {
    HOST_PLENTY,
    HOST_EMPTY,    /* they fail */
    HOST_FORBIDDEN /* they fail, and are counted as a fault */
} host_memory;

extern host_memory host;
extern unsigned host_faults;

/** Neither is ever looked into. */
ccmr__pool_lane *lane_at(unsigned index);
unsigned lane_index(const ccmr__pool_lane *lane);
ccmr__pool_segment *segment_at(unsigned index);

/** A piece of a segment that waits for nothing. */
ccmr__pool_piece piece_of(uintptr_t address, size_t bytes, unsigned segment);

/** New memory. */
void bring_new(ccmr__pool_set *set, uintptr_t address, size_t bytes,
               unsigned segment);
/** A block that comes back; the set has a record for it. */
void bring_back(ccmr__pool_set *set, const ccmr__pool_piece *piece);
/** Find and carve one block; it has to be there. */
ccmr__pool_piece take(ccmr__pool_set *set, size_t bytes, size_t alignment);

/** The audit, which may allocate whatever else may. */
int is_sound(const ccmr__pool_set *set);

#endif /* CCMR_TESTS_UNIT_POOL_BOOKS_H */
