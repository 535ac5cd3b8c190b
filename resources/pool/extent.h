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
 * Records are reserved when memory leaves a set, so that a free never
 * allocates. Each set counts what it owes: pieces that left it (blocks carved,
 * extents removed) less pieces that came back to it; below 0 where memory of
 * other sets comes to it. It keeps `spare` >= `owed`, so that over all sets
 * together there is a record for every piece outside, wherever it comes back.
 * Where one comes back to a set that has none, they are fetched from other
 * sets, with the duty to keep them: both numbers move.
 *
 *   carve, whole extent      spare + 1   owed + 1
 *   carve, one remainder                 owed + 1
 *   carve, two remainders    spare - 1   owed + 1
 *   insert, alone            spare - 1   owed - 1
 *   insert, one neighbour                owed - 1
 *   insert, two neighbours   spare + 1   owed - 1
 *   remove                   spare + 1   owed + 1
 *
 * So whoever merges much has more than it owes, and whoever splits much has to
 * reserve more. Where memory goes round from one set to the other, that would
 * never end; `surplus` evens it out between the sets of a pool.
 *
 * Threads: all under the lock of the set's lane, unless it says otherwise.
 * Two sets' locks are never held at once.
 */
#ifndef CCMR_RESOURCES_POOL_EXTENT_H
#define CCMR_RESOURCES_POOL_EXTENT_H

#include <stdatomic.h>
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
    ccmr__pool_waits waits; /* the count is in the first 64 bytes */
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
    size_t buckets;      /* of each; a power of two */
    size_t extents;      /* in the set */
    size_t bytes;        /* of them */
    ptrdiff_t out_bytes; /* that left it, less what came: new memory apart */
    ccmr__pool_extent *spares;
    size_t spare;
    ptrdiff_t owed;
    size_t records; /* spare ones and extents; slabs may be another set's */
    ccmr__pool_slab *slabs;
    /* How many records all sets that share this have beyond what they owe and
     * count as owed nevertheless. NULL: not shared. Set it after init. */
    _Atomic size_t *surplus;
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
/** Frees what the set allocated; what it held is forgotten. Sets that gave each
 * other records end together. */
void ccmr__pool_set_destroy(ccmr__pool_set *set);

/** May an extent be taken? Called under the lock; must not call the driver. */
typedef int (*ccmr__pool_accept)(void *argument,
                                 const ccmr__pool_extent *extent);

/**
 * The extent that fits best: the smallest of a bounded number of candidates
 * that can hold `bytes` at `alignment` and that `accept` (may be NULL) takes;
 * among equals the lowest address. NULL if none of them does. Changes nothing.
 *
 * Candidates are extents of the request's own bin and of those above it, bin
 * by bin until one has an answer, in the end the largest. `accept` is asked
 * about those alone that would be the best so far.
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
 * Make sure of the records that `blocks` more pieces will need when they come:
 * either under this same hold of the lock (new memory, insert with 0), or
 * later, when they were added to `owed`. At least so many are spare then.
 * Returns 0, or -1 without host memory; then nothing was changed. Also keeps
 * the hashes large enough.
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
 * Bring memory in. `blocks` is how many pieces that some set owes for come back
 * with it: 1 for a block or for what was removed from a set, more for a run of
 * blocks, 0 for new memory, for which a record was reserved just before.
 * Merges where it can. Returns 0, or -1 where a record is needed and the set
 * has none: then nothing was changed, fetch records and try again.
 */
int ccmr__pool_insert(ccmr__pool_set *set, const ccmr__pool_piece *piece,
                      size_t blocks);

/**
 * Take a whole extent out; its record becomes spare, and is owed to the piece:
 * insert it with 1, here or elsewhere, or forget it. (Were it not owed, another
 * carve could use it up, and the piece would find no record anywhere.)
 */
void ccmr__pool_remove(ccmr__pool_set *set, ccmr__pool_extent *extent,
                       ccmr__pool_piece *piece);

/** So many pieces will not come back: they went to the upstream. Any set. */
void ccmr__pool_forget(ccmr__pool_set *set, size_t blocks);

/** Of all extents: the first (and next after) in no order that means anything.
 * NULL: no more. The set must not change in between; of waits, entries may be
 * dropped. */
ccmr__pool_extent *ccmr__pool_first(const ccmr__pool_set *set);
ccmr__pool_extent *ccmr__pool_next(const ccmr__pool_set *set,
                                   const ccmr__pool_extent *extent);

/** Bytes of the largest extent, 0 if the set is empty. */
size_t ccmr__pool_largest(const ccmr__pool_set *set);

/**
 * Give spare records away, with the duty to keep them: at most `most`, linked
 * by `next`. Returns how many. The other set takes them in. Takes as long as
 * there are many.
 */
size_t ccmr__pool_give_records(ccmr__pool_set *set, size_t most,
                               ccmr__pool_extent **records);
void ccmr__pool_take_records(ccmr__pool_set *set, ccmr__pool_extent *records,
                             size_t count);

/** Do the set's books agree with each other? 1 or 0. Slow: looks at everything,
 * and sorts it to see whether extents overlap. */
int ccmr__pool_set_audit(const ccmr__pool_set *set);

/* ---- waits ------------------------------------------------------------------ */

/** Add one; the greater number counts. 1, or 0 if there is no room. */
int ccmr__pool_waits_add(ccmr__pool_waits *waits, ccmr__pool_lane *lane,
                         uint64_t number);
/** Add all of `more`. 1, or 0 if there is no room: nothing was added. */
int ccmr__pool_waits_join(ccmr__pool_waits *waits,
                          const ccmr__pool_waits *more);

#endif /* CCMR_RESOURCES_POOL_EXTENT_H */
