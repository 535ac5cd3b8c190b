/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocate and deallocate once everything has been checked: the end of the
 * public calls, and what an adaptor uses for its upstream, whose requests were
 * checked when they came to it. An adaptor that asks for other sizes or
 * alignments than it was asked for uses the public calls.
 */
#ifndef CCMR_LIB_UPSTREAM_H
#define CCMR_LIB_UPSTREAM_H

#include <stdint.h>

#include "lib/quick.h"
#include "lib/resource_object.h"
#include "lib/thread.h"

/** An operation failed: see that the detail says what and who. */
ccmr_status ccmr__describe_failure(const ccmr_resource *resource,
                                   ccmr_status status, size_t bytes,
                                   unsigned before) __attribute__((cold));

/** The same for an allocation, which is counted. */
ccmr_status ccmr__count_failure(ccmr_resource *resource, ccmr_status status,
                                size_t bytes, unsigned before)
    __attribute__((cold));

/** An implementer broke the contract: the block is given back, if there is
 * one. */
ccmr_status ccmr__refuse_block(ccmr_resource *resource, void *block,
                               size_t bytes, size_t alignment,
                               ccmr_stream stream) __attribute__((cold));

/** Without a look for a quick way. */
static inline ccmr_status ccmr__allocate_slowly(ccmr_resource *resource,
                                                size_t bytes, size_t alignment,
                                                ccmr_stream stream, void **ptr)
{
    const ccmr__thread *self = ccmr__thread_self();
    unsigned before = self->failures;
    ccmr__shard *shard;
    ccmr_status status;
    void *block = NULL;

    status = resource->ops.allocate(resource->self, bytes, alignment, stream,
                                    &block);
    if (__builtin_expect(status != CCMR_SUCCESS, 0)) {
        return ccmr__count_failure(resource, status, bytes, before);
    }
    if (__builtin_expect(
            block == NULL || ((uintptr_t)block & (alignment - 1)) != 0, 0)) {
        return ccmr__refuse_block(resource, block, bytes, alignment, stream);
    }
    shard = &resource->census.shards[self->slot];
    ccmr__shard_add(self->slot, &shard->allocations, 1);
    ccmr__shard_add(self->slot, &shard->bytes, (int64_t)bytes);
    if (resource->arm != NULL) {
        resource->arm(resource->self, resource, stream);
    }
    *ptr = block;
    return CCMR_SUCCESS;
}

static inline ccmr_status ccmr__deallocate_slowly(ccmr_resource *resource,
                                                  void *ptr, size_t bytes,
                                                  size_t alignment,
                                                  ccmr_stream stream)
{
    const ccmr__thread *self = ccmr__thread_self();
    unsigned before = self->failures;
    ccmr__shard *shard;
    ccmr_status status = resource->ops.deallocate(resource->self, ptr, bytes,
                                                  alignment, stream);

    if (__builtin_expect(status != CCMR_SUCCESS, 0)) {
        return ccmr__describe_failure(resource, status, bytes, before);
    }
    /* Until it is counted the block keeps the resource alive. */
    if (resource->arm != NULL) {
        resource->arm(resource->self, resource, stream);
    }
    shard = &resource->census.shards[self->slot];
    ccmr__census_enter(shard, self->slot);
    ccmr__shard_add(self->slot, &shard->deallocations, 1);
    ccmr__shard_add(self->slot, &shard->bytes, -(int64_t)bytes);
    ccmr__resource_leave(resource, shard, self->slot);
    return CCMR_SUCCESS;
}

static inline ccmr_status ccmr__allocate_checked(ccmr_resource *resource,
                                                 size_t bytes,
                                                 size_t alignment,
                                                 ccmr_stream stream,
                                                 void **ptr)
{
    ccmr__quick *way = ccmr__quick_find(resource, stream);

    if (way != NULL && ccmr__quick_aligned(alignment)) {
        return way->allocate(resource, bytes, alignment, stream, ptr, way);
    }
    return ccmr__allocate_slowly(resource, bytes, alignment, stream, ptr);
}

static inline ccmr_status ccmr__deallocate_checked(ccmr_resource *resource,
                                                   void *ptr, size_t bytes,
                                                   size_t alignment,
                                                   ccmr_stream stream)
{
    ccmr__quick *way = ccmr__quick_find(resource, stream);

    if (way != NULL && ccmr__quick_aligned(alignment)) {
        return way->deallocate(resource, ptr, bytes, alignment, stream, way);
    }
    return ccmr__deallocate_slowly(resource, ptr, bytes, alignment, stream);
}

#endif /* CCMR_LIB_UPSTREAM_H */
