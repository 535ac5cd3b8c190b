/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resource object, for the files that make up the dispatch.
 */
#ifndef CCMR_LIB_RESOURCE_OBJECT_H
#define CCMR_LIB_RESOURCE_OBJECT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cucoremr/resource.h>

#include "lib/census.h"

/*
 * One object:
 *
 *   +-------------------------------+
 *   | what dispatch reads: ops,     |  written at creation, then read-only
 *   | self, alignment, device, name |
 *   +-------------------------------+
 *   | closing                       |  0 until the last reference is gone
 *   +-------------------------------+
 *   | references, lock, list links  |  slow paths
 *   +-------------------------------+
 *   | census                        |  one cache line a thread
 *   +-------------------------------+
 *
 * Life: open -> (last reference released) closing -> (no block and no holder
 * left) destroyed. Whoever finds, under `lock`, that nothing is left destroys.
 */
struct ccmr_resource {
    ccmr_resource_ops ops;
    void *self;
    size_t max_alignment;
    int device;
    char name[32];
    const ccmr_resource_ops *given; /* as passed: tells the kind */

    /* May leave a quick way, see quick.h; NULL: never. Set at creation. */
    void (*arm)(void *self, ccmr_resource *resource, ccmr_stream stream);

    atomic_int closing;

    _Alignas(64) atomic_long references;
    pthread_mutex_t lock; /* decides who destroys */
    int flushing;         /* closing, and its caches are being given back */
    int destroyed;
    ccmr_resource *next; /* all resources with retire_stream: list_lock */
    ccmr_resource **link;

    ccmr__census census;
};

/** How deep a stack may be where it is walked: one that is its own upstream
 * ends there. */
#define CCMR__STACK_MOST 1024u

/** The stack under `resource` has no end. */
ccmr_status ccmr__fail_depth(const ccmr_resource *resource)
    __attribute__((cold));

/** 1 for success and every error that there is. */
int ccmr__is_status(ccmr_status status) __attribute__((cold));

/** Out of line half of ccmr__resource_leave(). */
void ccmr__resource_leave_closing(ccmr_resource *resource, ccmr__shard *shard,
                                  unsigned slot) __attribute__((cold));

/** The end of counting something down: the caller has entered its shard and
 * touches the resource no more. */
static inline void ccmr__resource_leave(ccmr_resource *resource,
                                        ccmr__shard *shard, unsigned slot)
{
    ccmr__census_fence();
    if (__builtin_expect(atomic_load_explicit(&resource->closing,
                                              memory_order_relaxed) != 0,
                         0)) {
        ccmr__resource_leave_closing(resource, shard, slot);
    } else {
        ccmr__census_leave(shard, slot);
    }
}

#endif /* CCMR_LIB_RESOURCE_OBJECT_H */
