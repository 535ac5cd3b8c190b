/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quick ways: what a thread's last calls have checked need not be checked
 * again.
 *
 *   thread -> quick[hash(stream)] (resource, stream, epoch) -> way
 *                                                               |
 *                               allocate, deallocate <----------'
 *
 * A resource that wants them has `arm`, which is called when a call on it
 * succeeded and may leave a way for that thread, resource and stream: two
 * functions that know the rest to be true. The process is alive, the resource
 * open, the stream registered, idle of captures and not retired. Whoever makes
 * any of that untrue, or what else a way relies on, calls ccmr__quick_revoke()
 * afterwards: then no thread has a way any more, and each goes once through
 * all checks. So one comparison stands for all of them. That is as cheap as it
 * is coarse: it is for what happens rarely.
 *
 *   who revokes: says so, then epoch + 1
 *   who arms:    reads the epoch (acquire), then what has to be true
 *
 * Without order between the two a call may go either way, as it may without
 * quick ways: a stream that is retired or captures while others allocate on it
 * is the caller's mistake.
 *
 * Only the thread itself touches its ways.
 */
#ifndef CCMR_LIB_QUICK_H
#define CCMR_LIB_QUICK_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cucoremr/resource.h>

#include "lib/thread.h"

/*
 * The beginning of what a resource keeps for a thread and stream. Arguments
 * are those of the public calls, as they were given but for this: resource and
 * stream are the way's, the alignment is none or the default one. What is not
 * as usual goes to ccmr__allocate_generally(): the arguments are in their
 * places.
 */
struct ccmr__quick {
    ccmr_status (*allocate)(ccmr_resource *resource, size_t bytes,
                            size_t alignment, ccmr_stream stream, void **ptr,
                            ccmr__quick *way);
    ccmr_status (*deallocate)(ccmr_resource *resource, void *ptr, size_t bytes,
                              size_t alignment, ccmr_stream stream,
                              ccmr__quick *way);
};

extern _Atomic uint64_t ccmr__quick_epoch;

/** No thread has a way any more. Never waits. */
static inline void ccmr__quick_revoke(void)
{
    atomic_fetch_add_explicit(&ccmr__quick_epoch, 1, memory_order_release);
}

/* Two that share a line of the cache. */
static inline ccmr__quick_entry *ccmr__quick_set(ccmr__thread *self,
                                                 ccmr_stream stream)
{
    uint64_t key = (uint64_t)(uintptr_t)stream;

    return self->quick[(key * UINT64_C(0x9E3779B97F4A7C15)) >>
                       (64 - CCMR__QUICK_BITS)];
}

static inline int ccmr__quick_is(const ccmr__quick_entry *entry,
                                 const ccmr_resource *resource,
                                 ccmr_stream stream)
{
    return entry->resource == resource && entry->stream == stream &&
           entry->epoch ==
               atomic_load_explicit(&ccmr__quick_epoch, memory_order_relaxed);
}

/** The calling thread's way; NULL if it has none. */
static inline ccmr__quick *ccmr__quick_find(const ccmr_resource *resource,
                                            ccmr_stream stream)
{
    ccmr__thread *self = ccmr__thread_pointer;
    const ccmr__quick_entry *set;

    if (__builtin_expect(self == NULL, 0)) {
        return NULL;
    }
    set = ccmr__quick_set(self, stream);
    if (__builtin_expect(ccmr__quick_is(&set[0], resource, stream), 1)) {
        return set[0].way;
    }
    return ccmr__quick_is(&set[1], resource, stream) ? set[1].way : NULL;
}

/** Is an alignment one that ways can do? */
static inline int ccmr__quick_aligned(size_t alignment)
{
    return (alignment & ~(size_t)CCMR_DEFAULT_ALIGNMENT) == 0;
}

/** The calling thread has a way now, true at an epoch that was read before it
 * was looked at. */
void ccmr__quick_enter(ccmr_resource *resource, ccmr_stream stream,
                       uint64_t epoch, ccmr__quick *way);
/** The way is no more. */
void ccmr__quick_drop(const ccmr__quick *way);

/** The public calls without quick ways. */
ccmr_status ccmr__allocate_generally(ccmr_resource *resource, size_t bytes,
                                     size_t alignment, ccmr_stream stream,
                                     void **ptr);
ccmr_status ccmr__deallocate_generally(ccmr_resource *resource, void *ptr,
                                       size_t bytes, size_t alignment,
                                       ccmr_stream stream);

/** Have `arm` called on success; once, at creation. It is called with the
 * implementer's object. */
void ccmr__resource_arm_by(ccmr_resource *resource,
                           void (*arm)(void *self, ccmr_resource *resource,
                                       ccmr_stream stream));

#endif /* CCMR_LIB_QUICK_H */
