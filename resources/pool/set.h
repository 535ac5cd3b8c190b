/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of extents, between their files: which bin, which bucket.
 *
 *   extent.c   find, carve, insert, remove     records.c  records, hashes
 *   waits.c    waits                           audit.c    the books
 */
#ifndef CCMR_RESOURCES_POOL_SET_H
#define CCMR_RESOURCES_POOL_SET_H

#include "resources/pool/extent.h"

#define CCMR__POOL_BINS (CCMR__POOL_POWERS * CCMR__POOL_STEPS)

_Static_assert(CCMR__POOL_GRANULE == (size_t)1 << 8, "bins begin at 2^8");
_Static_assert(CCMR__POOL_STEPS == 32, "a step is 5 bits");
_Static_assert(CCMR__POOL_POWERS < 64, "powers have a bit each");

/* The bin of a size, of the granule at least: the five bits below the highest
 * one are the step. Up to 16 KiB every size has its own. What is too large for
 * the table is in the last bin. */
static inline unsigned ccmr__pool_bin_of(size_t bytes)
{
    unsigned zeros = (unsigned)__builtin_clzll(bytes);
    unsigned step = (unsigned)((bytes << zeros) >> 58) & 31u;
    unsigned index = (55u - zeros) * CCMR__POOL_STEPS + step;

    return index < CCMR__POOL_BINS ? index : CCMR__POOL_BINS - 1;
}

static inline ccmr__pool_extent **ccmr__pool_bin_at(ccmr__pool_set *set,
                                                    unsigned index)
{
    /* All in a row: cheaper than by two indices. */
    return (ccmr__pool_extent **)(void *)set->bins + index;
}

/* The first bin at or after an index that is not empty; CCMR__POOL_BINS: none.
 */
static inline unsigned ccmr__pool_bin_from(const ccmr__pool_set *set,
                                           unsigned index)
{
    unsigned power = index / CCMR__POOL_STEPS;
    uint64_t powers;
    uint32_t steps;

    if (index >= CCMR__POOL_BINS) {
        return CCMR__POOL_BINS;
    }
    steps = set->steps[power] & (UINT32_MAX << (index % CCMR__POOL_STEPS));
    if (steps == 0) {
        powers = set->powers & (UINT64_MAX << 1 << power);
        if (powers == 0) {
            return CCMR__POOL_BINS;
        }
        power = (unsigned)__builtin_ctzll(powers);
        steps = set->steps[power];
    }
    return power * CCMR__POOL_STEPS + (unsigned)__builtin_ctz(steps);
}

/* Addresses are mostly multiples of large powers of two: the multiplication
 * brings all their bits into those that are used. */
static inline size_t ccmr__pool_bucket_of(size_t buckets, uintptr_t address)
{
    return (size_t)(((uint64_t)address >> 8) * UINT64_C(0x9E3779B97F4A7C15) >>
                    32) &
           (buckets - 1);
}

static inline uintptr_t ccmr__pool_end_of(const ccmr__pool_extent *extent)
{
    return extent->address + extent->bytes;
}

/* Of records, beyond what is owed. */
static inline ptrdiff_t ccmr__pool_surplus_of(const ccmr__pool_set *set)
{
    return (ptrdiff_t)set->spare - set->owed;
}

static inline void ccmr__pool_spare_record(ccmr__pool_set *set,
                                           ccmr__pool_extent *record)
{
    record->next = set->spares;
    set->spares = record;
    set->spare++;
}

static inline ccmr__pool_extent *ccmr__pool_use_record(ccmr__pool_set *set)
{
    ccmr__pool_extent *record = set->spares;

    set->spares = record->next;
    set->spare--;
    return record;
}

/* Buckets hold two records at most, on average, if all become extents. */
static inline int ccmr__pool_hash_is_small(const ccmr__pool_set *set)
{
    return set->records / 2 > set->buckets;
}

/** See to `surplus` records beyond what is owed and `real` spare ones, and
 * to the hashes. Returns 0, or -1 without host memory. */
int ccmr__pool_grow_records(ccmr__pool_set *set, ptrdiff_t surplus,
                            size_t real) __attribute__((cold));

/* A set with so many more than it owes shares them. */
#define CCMR__POOL_SURPLUS_MOST 128
#define CCMR__POOL_SURPLUS_KEPT 64

/** Share what is beyond CCMR__POOL_SURPLUS_KEPT. */
void ccmr__pool_share_surplus(ccmr__pool_set *set) __attribute__((cold));

#endif /* CCMR_RESOURCES_POOL_SET_H */
