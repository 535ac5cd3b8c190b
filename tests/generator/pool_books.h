/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The subpool's books:
 *
 *   segment   +------+------------+-----------+
 *             | live | free {1,7} | live      |    {streams waited for}
 *             +------+------------+-----------+
 *
 * Segments are allocations of the upstream, each a list of extents by
 * address. A free extent carries the events that it has to come after: one of
 * each stream that had a part of it. Neighbours merge and wait for both. A
 * live extent has the event for its free from the start, so that no free
 * needs memory.
 *
 * One lock, `pool.lock`, for all of it; not held while the upstream is called.
 */
#ifndef CCMR_TESTS_GENERATOR_POOL_BOOKS_H
#define CCMR_TESTS_GENERATOR_POOL_BOOKS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cucoremr/cucoremr.h>

#include "tests/generator/pool_order.h"

#define UNIT ((size_t)256)

typedef struct extent {
    struct extent *next; /* by address */
    struct extent *prev;
    struct extent *below; /* in the inbox */
    uintptr_t address;
    size_t bytes;
    int live;
    int gone; /* neither live nor free: a fault */
    mark *spare;
    caller from; /* that it was allocated on */
    waits after;
} extent;

typedef struct segment {
    struct segment *next;
    extent *first;
    uintptr_t base;
    size_t bytes;
} segment;

typedef struct pool {
    pthread_mutex_t lock;
    ccmr_resource *upstream;
    pool_fault fault;
    size_t segment_bytes;
    int device;
    CUcontext context;
    int host_access;
    segment *segments;
    size_t reserved;
    _Atomic(extent *) inbox; /* of the fault `lost` */
    struct pool *next_pool;  /* of those that a fault ends at exit */
    pid_t maker;
} pool;

ccmr_status pool_no_memory(size_t bytes);

/* ---- extents: under the lock ---- */

extent *extent_find_live(const pool *self, const void *ptr);
extent *extent_find_free(const pool *self, size_t bytes);
/* The part beyond `bytes` becomes an extent of its own. */
ccmr_status extent_split(const pool *self, extent *e, size_t bytes,
                         const caller *c);
/* `e` takes in the one after it, if both are free. NULL: nothing. */
void extent_merge_next(const pool *self, extent *e);

/* ---- segments: without the lock, outside of any scope ---- */

/* A new segment of at least `bytes`, which depends on the caller's stream. */
ccmr_status segment_grow(pool *self, size_t bytes, const caller *c);
/* Give wholly free segments back, up to `excess` bytes. Returns the bytes
   that went. */
size_t segment_release(pool *self, size_t excess, int only_finished,
                       ccmr_status *refused);
/* The upstream did not take it: its books go. */
void segment_delete(pool *self, segment *s);

#endif
