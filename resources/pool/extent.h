/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Free memory: extents and the sets they are in.
 *
 *   a segment   | block |   extent {A:7}   | block | extent {} | extent {B:2} |
 *                       ^start         end^
 *
 * An extent is a run of free bytes of one segment, with what it still has to
 * wait for: work up to a number on each of a few lanes (a lane is what the
 * pool knows of one stream, see lane.h). Nothing is kept about a block: a free
 * says its size. Nothing is kept in the memory either.
 *
 *   set
 *     bins     by size: a power of two, 32 steps to each; for "best fit"
 *     starts   hash of first addresses  -> extent   to merge with the
 *     ends     hash of end addresses    -> extent   neighbours of a free
 *     nodes    unused extent records
 *
 * Neighbours merge when they are in the same set and segment and what they
 * wait for fits into one record; the merged one waits for both.
 *
 * Records are reserved when a block is carved, so that a free never allocates.
 * Each set counts what it owes: blocks carved from it less blocks that came
 * back to it. It keeps `spare` >= `owed`, so that over all sets together there
 * is a record for every block, wherever it comes back. Where a block comes
 * back to a set that has none, they are fetched from other sets.
 *
 * Threads: all under the lock of the set's lane, unless it says otherwise.
 * Two sets' locks are never held at once.
 */
#ifndef CCMR_RESOURCES_POOL_EXTENT_H
#define CCMR_RESOURCES_POOL_EXTENT_H

#include <stddef.h>
#include <stdint.h>

#include "resources/pool/sizes.h"

typedef struct ccmr__pool_lane ccmr__pool_lane;
typedef struct ccmr__pool_segment ccmr__pool_segment;
typedef struct ccmr__pool_extent ccmr__pool_extent;

#define CCMR__POOL_WAITS 4u

/* Work up to the number on each of some lanes, each at most once. */
typedef struct ccmr__pool_waits {
    unsigned count;
    ccmr__pool_lane *lanes[CCMR__POOL_WAITS];
    uint64_t numbers[CCMR__POOL_WAITS];
} ccmr__pool_waits;

struct ccmr__pool_extent {
    uintptr_t address;
    size_t bytes;
    ccmr__pool_segment *segment;
    ccmr__pool_extent *next; /* in its bin, or unused */
    ccmr__pool_extent *previous;
    ccmr__pool_extent *by_start; /* next in the hash's chain */
    ccmr__pool_extent *by_end;
    ccmr__pool_waits waits;
};

/* 2^8 is the granule; sizes up to 2^47 and more. */
#define CCMR__POOL_POWERS 40u
#define CCMR__POOL_STEPS 32u

/* Records come from the heap in slabs, which are freed with the set. */
typedef struct ccmr__pool_slab ccmr__pool_slab;

typedef struct ccmr__pool_set {
    ccmr__pool_extent *bins[CCMR__POOL_POWERS][CCMR__POOL_STEPS];
    uint32_t steps[CCMR__POOL_POWERS]; /* bit: the bin is not empty */
    uint64_t powers;                   /* bit: some bin of it is not empty */
    ccmr__pool_extent **starts;
    ccmr__pool_extent **ends;
    size_t buckets; /* of each; a power of two */
    size_t extents; /* in the set */
    size_t bytes;   /* of them */
    ccmr__pool_extent *spares;
    size_t spare;
    ptrdiff_t owed;
    size_t records; /* of this set's slabs */
    ccmr__pool_slab *slabs;
} ccmr__pool_set;

/* A piece of memory outside of all sets: found, or to be brought back. */
typedef struct ccmr__pool_piece {
    uintptr_t address;
    size_t bytes;
    ccmr__pool_segment *segment;
    ccmr__pool_waits waits;
} ccmr__pool_piece;

/** Start empty. Returns 0, or -1 without memory. */
int ccmr__pool_set_init(ccmr__pool_set *set);
/** Frees what the set allocated; what it held is forgotten. */
void ccmr__pool_set_destroy(ccmr__pool_set *set);

/** May an extent be taken? Called under the lock; must not call the driver. */
typedef int (*ccmr__pool_accept)(void *argument,
                                 const ccmr__pool_extent *extent);

/**
 * The extent that fits best: the smallest of a bounded number of candidates
 * that can hold `bytes` at `alignment` and that `accept` (may be NULL) takes;
 * among equals the lowest address. NULL if there is none. Changes nothing.
 */
ccmr__pool_extent *ccmr__pool_find(ccmr__pool_set *set, size_t bytes,
                                   size_t alignment, ccmr__pool_accept accept,
                                   void *argument);

/** The extent that ends, or starts, at an address; NULL if none does. */
ccmr__pool_extent *ccmr__pool_ending_at(const ccmr__pool_set *set,
                                        uintptr_t address);
ccmr__pool_extent *ccmr__pool_starting_at(const ccmr__pool_set *set,
                                          uintptr_t address);

/**
 * Make sure of the records that `blocks` more blocks will need when they come
 * back (they may be counted as carved after that). Returns 0, or -1 without
 * host memory; then nothing was changed. Also keeps the hashes large enough.
 */
int ccmr__pool_reserve_records(ccmr__pool_set *set, size_t blocks);

/**
 * Cut a block out of an extent: `bytes` from its first address of that
 * alignment. What is before and after stays in the set, with the same waits.
 * The block is counted as owed `blocks` times (it will come back in so many
 * pieces); the records for them are made sure of. Returns 0, or -1 without
 * host memory, then nothing was changed.
 */
int ccmr__pool_carve(ccmr__pool_set *set, ccmr__pool_extent *extent,
                     size_t bytes, size_t alignment, size_t blocks,
                     ccmr__pool_piece *piece);

/**
 * Bring memory in. `blocks` is how many blocks come back with it (1 for a
 * block, 0 for memory that is new or comes from another set). Merges where it
 * can. Returns 0, or -1 where a record is needed and the set has none: then
 * nothing was changed, fetch records and try again.
 */
int ccmr__pool_insert(ccmr__pool_set *set, const ccmr__pool_piece *piece,
                      size_t blocks);

/** Take a whole extent out; its record becomes spare. */
void ccmr__pool_remove(ccmr__pool_set *set, ccmr__pool_extent *extent,
                       ccmr__pool_piece *piece);

/** Of all extents: the first (and next after) in no order that means anything.
 * NULL: no more. The set must not change in between. */
ccmr__pool_extent *ccmr__pool_first(const ccmr__pool_set *set);
ccmr__pool_extent *ccmr__pool_next(const ccmr__pool_set *set,
                                   const ccmr__pool_extent *extent);

/** Bytes of the largest extent, 0 if the set is empty. */
size_t ccmr__pool_largest(const ccmr__pool_set *set);

/**
 * Give spare records away, with the duty to keep them: at most `most`, linked
 * by `next`. Returns how many. The other set takes them in.
 */
size_t ccmr__pool_give_records(ccmr__pool_set *set, size_t most,
                               ccmr__pool_extent **records);
void ccmr__pool_take_records(ccmr__pool_set *set, ccmr__pool_extent *records,
                             size_t count);

/** Do the set's books agree with each other? 1 or 0. */
int ccmr__pool_set_audit(const ccmr__pool_set *set);

/* ---- waits ------------------------------------------------------------------ */

/** Add one; the greater number counts. 1, or 0 if there is no room. */
int ccmr__pool_waits_add(ccmr__pool_waits *waits, ccmr__pool_lane *lane,
                         uint64_t number);
/** Add all of `more`. 1, or 0 if there is no room: nothing was added. */
int ccmr__pool_waits_join(ccmr__pool_waits *waits,
                          const ccmr__pool_waits *more);

#endif /* CCMR_RESOURCES_POOL_EXTENT_H */
