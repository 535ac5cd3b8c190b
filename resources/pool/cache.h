/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Caches: free blocks of one thread and one stream, in front of the lane.
 *
 *   small (up to 64 KiB): a stack of addresses for each class
 *   large: stacks for exact sizes, found by a hash of the size
 *
 *     bin  [class 0: a a a a . .] [class 1: a a . . .] ...
 *     way  [key 3 MiB: a a . .] [key 80 KiB: a . . .] [-] ...  four to a row
 *
 * A block in a cache was freed on the cache's stream, by the cache's thread,
 * and has waited for all others before: its next user on that stream has
 * nothing to wait for.
 *
 * A cache that its thread leaves gives its blocks to the lane and is spare,
 * for any thread and lane of the pool: a lane with caches serves no other
 * stream, so that none is kept for a thread that may never come.
 *
 * The owner enters and leaves with plain stores. Whoever else wants to look in
 * (trim, audit, retire, reclaim: "thief") holds pool->thieves, raises `wanted`,
 * makes every thread pass a barrier and waits until the owner is out:
 *
 *   owner: inside = 1; (compiler barrier) wanted? -> out, wait, again
 *          ... work ...
 *          inside = 0 (release)
 *   thief: wanted = 1; membarrier; wait for inside == 0 (acquire)
 *          ... work ...
 *          wanted = 0 (release)
 *
 * Where membarrier is missing, and under ThreadSanitizer, ccmr__census_fence()
 * makes the owner's barrier a real one.
 */
#ifndef CCMR_RESOURCES_POOL_CACHE_H
#define CCMR_RESOURCES_POOL_CACHE_H

#include <stdatomic.h>
#include <stdint.h>

#include "lib/census.h"
#include "lib/quick.h"
#include "lib/stream.h"
#include "lib/thread.h"
#include "resources/pool/lane.h"
#include "resources/pool/sizes.h"

#define CCMR__POOL_BIN_MOST 62u
#define CCMR__POOL_ROWS 32u /* of ways */
#define CCMR__POOL_ROW 4u
#define CCMR__POOL_WAY_MOST 6u
#define CCMR__POOL_THREAD_CACHES 8u /* of one thread, over all pools */

#define CCMR__POOL_WAY_WORDS (CCMR__POOL_ROWS * CCMR__POOL_ROW / 64u)

typedef struct ccmr__pool_bin {
    _Alignas(64) uint16_t count;
    uint16_t most; /* at most: about 512 KiB; 0: the cache is stale */
    uintptr_t blocks[CCMR__POOL_BIN_MOST];
} ccmr__pool_bin;

typedef struct ccmr__pool_way {
    size_t bytes; /* of each; 0: unused */
    unsigned count;
    uintptr_t blocks[CCMR__POOL_WAY_MOST];
} ccmr__pool_way;

struct ccmr__pool_cache {
    /* Of the thread whose cache it is, as of its last arming; see quick.c. */
    ccmr__quick quick;
    ccmr__shard *shard;
    size_t quick_bytes; /* known_bytes, or 0: frees go the other way */
    /* Of whoever is inside, but `wanted`, which the thief writes. */
    atomic_int inside;
    atomic_int wanted;
    uintptr_t known_base; /* see below */
    size_t large_bytes;
    size_t large_most; /* beyond this large blocks go to the lane */

    /* The lane's stream was retired: nothing is kept here any more, and the
     * thread leaves the cache when it next looks for one. */
    atomic_int stale;
    ccmr__pool_lane *lane;
    /* The segment that was hit last: a cheap check of addresses. */
    size_t known_bytes;
    ccmr__pool_segment *known_segment;
    unsigned known_version; /* of the pool's map: segments come and go */
    /* A bit for each way that may have blocks. */
    uint64_t filled[CCMR__POOL_WAY_WORDS];
    ccmr__pool_bin bins[CCMR__POOL_CLASSES];
    /* A way is a cache line. */
    _Alignas(64) ccmr__pool_way ways[CCMR__POOL_ROWS][CCMR__POOL_ROW];

    ccmr__pool_cache *next;  /* of the lane, or spare. pool->lock */
    ccmr__pool_cache *found; /* next one of the thief. pool->thieves */
};

/* How a thread finds its caches. `serial` is the pool's, which no other pool
 * ever has: an entry of a pool that is gone is never followed. */
typedef struct ccmr__pool_entry {
    uint64_t serial; /* 0: unused */
    ccmr_stream stream;
    uint64_t id;                 /* of the stream */
    ccmr__stream_record *record; /* registered; NULL: not */
    ccmr__pool_cache *cache;
} ccmr__pool_entry;

/* A thread's, in ccmr__thread. */
typedef struct ccmr__thread_pools {
    /* A copy of the one used last. */
    _Alignas(64) ccmr__pool_entry last;
    ccmr__pool_entry entries[CCMR__POOL_THREAD_CACHES];
    unsigned hand;    /* which is given up next */
    unsigned crowded; /* times that there was no room */
} ccmr__thread_pools;

/** Owner. Waits while a thief is at work. */
void ccmr__pool_wait_thief(ccmr__pool_cache *cache) __attribute__((cold));

/** Owner, in no other cache, under no lock that comes after `thieves`. */
static inline void ccmr__pool_enter(ccmr__pool_cache *cache)
{
    atomic_store_explicit(&cache->inside, 1, memory_order_relaxed);
    ccmr__census_fence();
    if (__builtin_expect(
            atomic_load_explicit(&cache->wanted, memory_order_acquire) != 0,
            0)) {
        ccmr__pool_wait_thief(cache);
    }
}

static inline void ccmr__pool_leave(ccmr__pool_cache *cache)
{
    atomic_store_explicit(&cache->inside, 0, memory_order_release);
}

/** Its lane is another one's or nobody's: look for a cache again. */
static inline int ccmr__pool_cache_stale(ccmr__pool_cache *cache)
{
    return atomic_load_explicit(&cache->stale, memory_order_relaxed) != 0;
}

/**
 * The calling thread's cache for a stream: one of its own, else a spare or new
 * one, for which another of the thread's may have to go (its blocks go to its
 * lane). Host memory alone; NULL without, for a thread without a record of its
 * own, and mostly where a thread goes round more streams than it has entries. `record` is the stream's registration, or NULL. A cache that the
 * thread did not have before has no `large_most` yet. Under no lock, in no
 * cache.
 */
ccmr__pool_cache *ccmr__pool_cache_find(ccmr__pool *pool,
                                        const ccmr__stream_use *use,
                                        ccmr__stream_record *record);

/** The large blocks of all the calling thread's caches of a pool go to their
 * lanes. Returns the bytes. In no cache. */
size_t ccmr__pool_flush_own(ccmr__pool *pool);

/**
 * Thief: all caches of a lane (NULL: of the pool) give their blocks to their
 * lanes, except `own` (may be NULL), which is the caller's. Caches of a lane
 * whose stream is gone (its id is 0) are stale from then on. Returns the
 * bytes. Under no lock but `slow`; in no cache.
 */
size_t ccmr__pool_steal(ccmr__pool *pool, ccmr__pool_lane *lane,
                        const ccmr__pool_cache *own);

/** Bytes in all caches. Exact when nothing else runs. Thief. */
size_t ccmr__pool_cached_bytes(ccmr__pool *pool);

/* ---- inside, by the owner (or by a thief that has it) --------------------- */

/** Frees are to look whether the lane needs an event: other calls than those
 * on its stream have brought it blocks. By the owner. */
static inline void ccmr__pool_look_again(ccmr__pool_cache *cache)
{
    cache->quick_bytes = 0;
}

/** All large blocks go to the lane. Returns the bytes. */
size_t ccmr__pool_flush_large(ccmr__pool_cache *cache);
/** Everything goes to the lane. */
size_t ccmr__pool_flush(ccmr__pool_cache *cache);

/**
 * Blocks of one size go to the lane, as one free with one number; neighbours
 * as one piece. The array is sorted. Returns the bytes.
 */
size_t ccmr__pool_give_blocks(ccmr__pool_cache *cache, size_t bytes,
                              uintptr_t *blocks, unsigned count);

static inline ccmr__pool_way *ccmr__pool_way_at(ccmr__pool_cache *cache,
                                                size_t index)
{
    return &cache->ways[index / CCMR__POOL_ROW][index % CCMR__POOL_ROW];
}

/** The oldest blocks of a way have gone. */
static inline void ccmr__pool_way_shift(ccmr__pool_way *way, unsigned count)
{
    unsigned i;

    way->count -= count;
    for (i = 0; i < way->count; i++) {
        way->blocks[i] = way->blocks[i + count];
    }
}

static inline void ccmr__pool_way_push(ccmr__pool_cache *cache,
                                       ccmr__pool_way *way, uintptr_t address)
{
    size_t index =
        ((size_t)((char *)way - (char *)cache->ways)) / sizeof(*way);

    cache->filled[index / 64] |= UINT64_C(1) << index % 64;
    way->blocks[way->count++] = address;
    cache->large_bytes += way->bytes;
}

/** Push a block of a class whose bin is full: the older half goes to the
 * lane. */
void ccmr__pool_push_small_slowly(ccmr__pool_cache *cache, unsigned index,
                                  uintptr_t address);

/** A cached block of exactly that (rounded, large) size, or 0. */
uintptr_t ccmr__pool_pop_large(ccmr__pool_cache *cache, size_t bytes);
/** Keep a large block where that needs no other to go. Returns whether. */
int ccmr__pool_push_large_quickly(ccmr__pool_cache *cache, size_t bytes,
                                  uintptr_t address);
/** The same where that fails: it goes to the lane, or others do. */
void ccmr__pool_push_large_slowly(ccmr__pool_cache *cache, size_t bytes,
                                  uintptr_t address);
/** Keep a large block; it or others may have to go to the lane for it. */
void ccmr__pool_push_large(ccmr__pool_cache *cache, size_t bytes,
                           uintptr_t address);

/** Empty, open, and a lane's. By whoever took it from the spare ones. */
void ccmr__pool_cache_open(ccmr__pool_cache *cache, ccmr__pool_lane *lane);

#endif /* CCMR_RESOURCES_POOL_CACHE_H */
