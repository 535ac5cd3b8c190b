/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool, between its files.
 *
 *   allocate ->  cache (thread, stream)      no lock, no driver call
 *                  |  miss
 *                  v
 *                lane (stream)               its own lock
 *                  |  nothing fits
 *                  v
 *                common lane, finished memory of others, waits, growth, ...
 *                                            reclaim.c: the order of answers
 *
 *   extent.c  free memory, sets              lane.c     streams, events, waits
 *   cache.c   thread caches                  serve.c    allocate, deallocate
 *   reclaim.c the slow path                  segment.c  what the upstream gave
 *   trim.c    giving back                    figures.c  stats, audit, dump
 *   kind.c    options and operations
 *
 * Locks, in the order in which they may be nested:
 *   thieves -> lock -> a lane's lock       never two lanes' locks
 * None is held over a call of the upstream or of the driver.
 */
#ifndef CCMR_RESOURCES_POOL_POOL_H
#define CCMR_RESOURCES_POOL_POOL_H

#include <pthread.h>
#include <stdatomic.h>

#include <cucoremr/resource.h>

#include "lib/context.h"
#include "resources/pool/cache.h"
#include "resources/pool/extent.h"
#include "resources/pool/lane.h"

#define CCMR__POOL_LANE_BUCKETS 256u

/* An allocation of the upstream. */
struct ccmr__pool_segment {
    uintptr_t base;
    size_t bytes;
    int leaving; /* about to go upstream: nothing of it is in a set */
};

struct ccmr__pool {
    /* Fixed at creation. */
    uint64_t serial; /* no other pool has it */
    ccmr_resource *upstream;
    ccmr__device *device;
    int host_access;    /* blocks change hands only when finished */
    int stream_ordered; /* the upstream's memory is ready in stream order */
    size_t upstream_alignment;

    /* Many streams seen: events are needed. Set once, never cleared. */
    atomic_int many;

    pthread_mutex_t thieves; /* whoever looks into others' caches */
    pthread_mutex_t lock;

    /* Under `lock`: */
    ccmr__pool_lane *ids[CCMR__POOL_LANE_BUCKETS];
    ccmr__pool_lane *_Atomic lanes; /* all; read without the lock */
    ccmr__pool_cache *spare_caches;
    ccmr__pool_segment **segments; /* by address */
    size_t segment_count;
    size_t segment_room;

    ccmr__pool_lane *common; /* set at creation */

    /* Bytes of segments, and of growth that is under way. */
    _Atomic size_t reserved;
    _Atomic size_t peak_reserved;
    _Atomic uint64_t changes; /* memory became free or came */

    ccmr__pool *next_pool; /* all pools: cache.c's own lock */
};

#endif /* CCMR_RESOURCES_POOL_POOL_H */
