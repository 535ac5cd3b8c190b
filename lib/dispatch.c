/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fast path of every resource: checks, the operation, the count.
 */
#include <stdint.h>

#include "lib/arith.h"
#include "lib/error.h"
#include "lib/process.h"
#include "lib/quick.h"
#include "lib/resource.h"
#include "lib/resource_object.h"
#include "lib/stream.h"
#include "lib/upstream.h"
#include "lib/struct.h"

static ccmr_status __attribute__((cold, noinline))
refuse_alignment(const ccmr_resource *resource, size_t alignment)
{
    if (!ccmr__is_power_of_two(alignment)) {
        (void)ccmr__fail(CCMR_ERROR_INVALID_ALIGNMENT,
                         "alignment %zu is not a power of two", alignment);
    } else {
        (void)ccmr__fail(CCMR_ERROR_INVALID_ALIGNMENT,
                         "alignment %zu is more than the %zu that %s honours",
                         alignment, resource->max_alignment, resource->name);
    }
    ccmr__error_name_resource(resource->name);
    return CCMR_ERROR_INVALID_ALIGNMENT;
}

static ccmr_status __attribute__((cold, noinline))
refuse_size(const ccmr_resource *resource, size_t bytes)
{
    (void)ccmr__fail(CCMR_ERROR_INVALID_SIZE,
                     "size %zu (0x%zx) is more than any allocation can be",
                     bytes, bytes);
    ccmr__error()->requested = bytes;
    ccmr__error_name_resource(resource->name);
    return CCMR_ERROR_INVALID_SIZE;
}

static ccmr_status __attribute__((cold, noinline))
refuse_stream(const char *what, ccmr_stream stream)
{
    return ccmr__fail(CCMR_ERROR_INVALID_STREAM,
                      "%s: %s is not a stream to use here", what,
                      stream == CCMR_STREAM_UNSET ? "CCMR_STREAM_UNSET"
                                                  : "CCMR_STREAM_READY");
}

static ccmr_status __attribute__((cold, noinline))
refuse_null(const char *what)
{
    return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT, "%s is NULL", what);
}

/* An implementer that describes nothing has written no detail since there
 * were `before`. */
ccmr_status ccmr__describe_failure(const ccmr_resource *resource,
                                   ccmr_status status, size_t bytes,
                                   unsigned before)
{
    ccmr__thread *self = ccmr__thread_self();
    ccmr_error_detail *detail = &self->detail;

    if (!ccmr__is_status(status)) {
        status =
            ccmr__fail(CCMR_ERROR_USER, "%s returned %d, which is no status",
                       resource->name, (int)status);
    } else if (self->failures == before || detail->status != status) {
        (void)ccmr__fail(status, "%s: %s", resource->name,
                         ccmr_status_text(status));
    }
    ccmr__error_name_resource(resource->name);
    if (detail->requested == 0) {
        detail->requested = bytes;
    }
    return status;
}

ccmr_status ccmr__count_failure(ccmr_resource *resource, ccmr_status status,
                                size_t bytes, unsigned before)
{
    unsigned slot = ccmr__thread_self()->slot;

    ccmr__shard_add(slot, &resource->census.shards[slot].failures, 1);
    return ccmr__describe_failure(resource, status, bytes, before);
}

ccmr_status ccmr__refuse_block(ccmr_resource *resource, void *block,
                               size_t bytes, size_t alignment,
                               ccmr_stream stream)
{
    if (block == NULL) {
        (void)ccmr__fail(CCMR_ERROR_USER, "%s succeeded with a NULL pointer",
                         resource->name);
    } else {
        (void)resource->ops.deallocate(resource->self, block, bytes, alignment,
                                       stream);
        (void)ccmr__fail(CCMR_ERROR_USER,
                         "%s gave %p, which is not aligned to %zu",
                         resource->name, block, alignment);
    }
    return ccmr__count_failure(resource, CCMR_ERROR_USER, bytes,
                               ccmr__thread_self()->failures - 1);
}

/* 0 is legacy; what is no stream is refused. Returns 0 for those. */
static inline int usable_stream(ccmr_stream *stream, uintptr_t words)
{
    *stream = ccmr__stream_default(*stream);
    return __builtin_expect((uintptr_t)*stream < (uintptr_t)0 - words ? 1 : 0,
                            1) != 0;
}

/* The alignment in use; 0 if it is refused. */
static inline size_t usable_alignment(const ccmr_resource *resource,
                                      size_t alignment)
{
    if (alignment == 0) {
        alignment = CCMR_DEFAULT_ALIGNMENT;
    }
    if (__builtin_expect(!ccmr__is_power_of_two(alignment) ||
                             alignment > resource->max_alignment,
                         0)) {
        return 0;
    }
    return alignment;
}

ccmr_status ccmr__allocate_generally(ccmr_resource *resource, size_t bytes,
                                     size_t alignment, ccmr_stream stream,
                                     void **ptr)
{
    ccmr_status status = ccmr__process_check();
    size_t usable;

    if (__builtin_expect(status != CCMR_SUCCESS, 0)) {
        return status;
    }
    if (__builtin_expect(resource == NULL || ptr == NULL, 0)) {
        return refuse_null(resource == NULL ? "allocate: resource"
                                            : "allocate: ptr");
    }
    usable = usable_alignment(resource, alignment);
    if (__builtin_expect(usable == 0, 0)) {
        return refuse_alignment(resource, alignment);
    }
    if (!usable_stream(&stream, 2)) {
        return refuse_stream("allocate", stream);
    }
    if (__builtin_expect(bytes - 1 >= (size_t)PTRDIFF_MAX, 0)) {
        if (bytes != 0) {
            return refuse_size(resource, bytes);
        }
        *ptr = NULL;
        return CCMR_SUCCESS;
    }
    if (__builtin_expect(atomic_load_explicit(&resource->closing,
                                              memory_order_relaxed) != 0,
                         0)) {
        return ccmr__fail(CCMR_ERROR_RELEASED, "%s has been released",
                          resource->name);
    }
    return ccmr__allocate_slowly(resource, bytes, usable, stream, ptr);
}

ccmr_status ccmr__deallocate_generally(ccmr_resource *resource, void *ptr,
                                       size_t bytes, size_t alignment,
                                       ccmr_stream stream)
{
    ccmr_status status = ccmr__process_check();
    size_t usable;

    if (__builtin_expect(status != CCMR_SUCCESS, 0)) {
        return status;
    }
    if (__builtin_expect(resource == NULL, 0)) {
        return refuse_null("deallocate: resource");
    }
    if (__builtin_expect(ptr == NULL, 0)) {
        return bytes == 0 ? CCMR_SUCCESS : refuse_null("deallocate: ptr");
    }
    usable = usable_alignment(resource, alignment);
    if (__builtin_expect(usable == 0, 0)) {
        return refuse_alignment(resource, alignment);
    }
    if (!usable_stream(&stream, 1)) {
        return refuse_stream("deallocate", stream);
    }
    if (__builtin_expect(bytes - 1 >= (size_t)PTRDIFF_MAX, 0)) {
        return bytes == 0
                   ? ccmr__fail(CCMR_ERROR_INVALID_SIZE,
                                "deallocate of %p: 0 bytes, but a block", ptr)
                   : refuse_size(resource, bytes);
    }
    return ccmr__deallocate_slowly(resource, ptr, bytes, usable, stream);
}

/* The arguments stay in their registers: both calls are jumps. */
ccmr_status(ccmr_resource_allocate)(ccmr_resource *resource, size_t bytes,
                                    size_t alignment, ccmr_stream stream,
                                    void **ptr)
{
    ccmr__quick *way = ccmr__quick_find(resource, stream);

    if (__builtin_expect(way != NULL && ccmr__quick_aligned(alignment), 1)) {
        return way->allocate(resource, bytes, alignment, stream, ptr, way);
    }
    return ccmr__allocate_generally(resource, bytes, alignment, stream, ptr);
}

ccmr_status(ccmr_resource_deallocate)(ccmr_resource *resource, void *ptr,
                                      size_t bytes, size_t alignment,
                                      ccmr_stream stream)
{
    ccmr__quick *way = ccmr__quick_find(resource, stream);

    if (__builtin_expect(way != NULL && ccmr__quick_aligned(alignment), 1)) {
        return way->deallocate(resource, ptr, bytes, alignment, stream, way);
    }
    return ccmr__deallocate_generally(resource, ptr, bytes, alignment, stream);
}

/* What decides where nobody else does: what was asked for, else the stream
 * that the block was allocated on. */
static ccmr_status choose_default(const ccmr_block *block,
                                  ccmr_stream requested, ccmr_stream *chosen)
{
    if (requested == CCMR_STREAM_UNSET) {
        requested = ccmr__stream_default(block->allocation_stream);
    }
    if (requested == CCMR_STREAM_UNSET) {
        return ccmr__fail(CCMR_ERROR_INVALID_STREAM,
                          "no stream was named for the free, and the block's "
                          "allocation stream is not known");
    }
    *chosen = requested;
    return CCMR_SUCCESS;
}

ccmr_status(ccmr_resource_choose_free_stream)(ccmr_resource *resource,
                                              const ccmr_block *block,
                                              ccmr_stream requested,
                                              ccmr_stream *chosen)
{
    ccmr_status status = ccmr__process_check();
    unsigned depth = 0;
    unsigned before;

    if (status != CCMR_SUCCESS) {
        return status;
    }
    if (resource == NULL || block == NULL || chosen == NULL) {
        return refuse_null(resource == NULL ? "choose_free_stream: resource"
                           : block == NULL  ? "choose_free_stream: block"
                                            : "choose_free_stream: chosen");
    }
    if (__builtin_expect(block->size != sizeof(*block), 0)) {
        ccmr_block known;

        status = ccmr__struct_read(&known, sizeof(known), block, sizeof(known),
                                   "ccmr_block");
        if (status != CCMR_SUCCESS) {
            return status;
        }
    }
    requested = ccmr__stream_default(requested);
    while (resource->ops.choose_free_stream == NULL) {
        ccmr_resource *upstream;

        if (++depth > CCMR__STACK_MOST) {
            return ccmr__fail_depth(resource);
        }

        if (resource->ops.upstream == NULL ||
            resource->ops.upstream(resource->self, 0, &upstream) !=
                CCMR_SUCCESS) {
            return choose_default(block, requested, chosen);
        }
        resource = upstream;
    }
    before = ccmr__thread_self()->failures;
    status = resource->ops.choose_free_stream(resource->self, block, requested,
                                              chosen);
    return status == CCMR_SUCCESS
               ? status
               : ccmr__describe_failure(resource, status, block->bytes,
                                        before);
}
