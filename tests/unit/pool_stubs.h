/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the pool's caches stand on, so small that a test sees through it: lanes
 * that note what is brought to them, and a pool of two segments side by side.
 */
#ifndef CCMR_TESTS_UNIT_POOL_STUBS_H
#define CCMR_TESTS_UNIT_POOL_STUBS_H

#include "resources/pool/pool.h"

#define STUB_BASE ((uintptr_t)1 << 40)
#define STUB_BYTES ((size_t)1 << 30) /* of each segment */
#define STUB_LANES 32u
#define STUB_NOTES 256u

/* A piece that was inserted or brought. */
typedef struct stub_note {
    const ccmr__pool_lane *lane;
    ccmr__pool_piece piece;
    size_t blocks;
    int brought; /* by ccmr__pool_bring() */
} stub_note;

/* Under the lock of the lane that is at work. Tests in which more than one
 * thread is at work at a time set `sink`. */
typedef struct stub_state {
    stub_note notes[STUB_NOTES];
    size_t count;     /* also of those that no longer fit */
    int insert_limit; /* inserts that succeed; below 0: all */
    /* Instead of notes, if set: what becomes of a piece. */
    void (*sink)(const ccmr__pool_piece *piece, size_t blocks);
    int no_memory;  /* no lane can be had */
    size_t lookups; /* of segments, where no sink is set */
} stub_state;

extern stub_state stub;

/** A pool with a serial of its own, in the list of pools. Resets `stub`. */
ccmr__pool *stub_pool_make(void);
/** As at a pool's end. */
void stub_pool_end(ccmr__pool *pool);

/** The stream's lane. */
ccmr__pool_lane *stub_lane(ccmr__pool *pool, uint64_t id);
/** As when its stream is retired. */
void stub_retire(ccmr__pool *pool, uint64_t id);

/** The cache of the calling thread for a stream of that number. */
ccmr__pool_cache *stub_find(ccmr__pool *pool, uint64_t id);

/** Caches of a lane, and spare ones. */
size_t stub_caches(ccmr__pool *pool, uint64_t id);
size_t stub_spares(ccmr__pool *pool);

/** Push and pop as serve.c does, in and out. With a sink they linger inside
 * now and then, so that others are met. */
void stub_push(ccmr__pool_cache *cache, size_t bytes, uintptr_t address);
uintptr_t stub_pop(ccmr__pool_cache *cache, size_t bytes);

#endif /* CCMR_TESTS_UNIT_POOL_STUBS_H */
