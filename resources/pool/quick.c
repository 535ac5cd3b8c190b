/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool: the quick ways of a cache.
 *
 *   dispatch -> way -> cache hit: pop or push, count, done
 *                 |
 *                 +--> miss: serve.c, with the cache that is known already
 *                 +--> unusual arguments: all checks
 *
 * While the way is good (see quick.h) the stream is registered, not capturing
 * and not retired, the pool is open, the cache is the calling thread's and
 * its lane the stream's. A free may go the quick way only while no block has
 * notes and into the segment that the cache knows: quick_bytes is 0 where that
 * is not so.
 *
 * Being inside of the cache also keeps the pool from being destroyed, as being
 * inside of the census does: whoever destroys empties all caches first, and
 * waits for those who are inside.
 */
#include "lib/quick.h"
#include "lib/process.h"
#include "lib/resource_object.h"
#include "lib/upstream.h"
#include "resources/pool/pool.h"

/* The owner's barrier, known when this is compiled: ways are armed only where
 * it is. */
static inline void quick_fence(void)
{
#if CCMR__TSAN
    atomic_fetch_add_explicit(&ccmr__census_word, 1, memory_order_seq_cst);
#else
    atomic_signal_fence(memory_order_seq_cst);
#endif
}

/* Returns 0, and is not inside, where a thief is at work. */
static inline int enter(ccmr__pool_cache *cache)
{
    atomic_store_explicit(&cache->inside, 1, memory_order_relaxed);
    quick_fence();
    if (__builtin_expect(
            atomic_load_explicit(&cache->wanted, memory_order_acquire) != 0,
            0)) {
        ccmr__pool_leave(cache);
        return 0;
    }
    return 1;
}

/* The shard is the thread's own: plain stores. */
static inline void add(atomic_int_fast64_t *count, int64_t amount)
{
    atomic_store_explicit(
        count, atomic_load_explicit(count, memory_order_relaxed) + amount,
        memory_order_relaxed);
}

static inline void count_in(ccmr__shard *shard, size_t bytes)
{
    add(&shard->allocations, 1);
    add(&shard->bytes, (int64_t)bytes);
}

static inline void count_out(ccmr__shard *shard, size_t bytes)
{
    add(&shard->deallocations, 1);
    add(&shard->bytes, -(int64_t)bytes);
}

/* ---- allocate ------------------------------------------------------------------- */

static ccmr_status __attribute__((noinline))
allocate_anew(ccmr_resource *resource, size_t bytes, size_t alignment,
              ccmr_stream stream, void **ptr, ccmr__quick *way)
{
    ccmr__pool_cache *cache = (ccmr__pool_cache *)way;
    unsigned before = ccmr__thread_self()->failures;
    ccmr_status status;
    void *block;

    (void)alignment;
    status = ccmr__pool_allocate_anew(cache, bytes, stream, &block);
    if (__builtin_expect(status != CCMR_SUCCESS, 0)) {
        return ccmr__count_failure(resource, status, bytes, before);
    }
    count_in(cache->shard, bytes);
    *ptr = block;
    return CCMR_SUCCESS;
}

static ccmr_status __attribute__((noinline))
allocate_large(ccmr_resource *resource, size_t bytes, size_t alignment,
               ccmr_stream stream, void **ptr, ccmr__quick *way)
{
    ccmr__pool_cache *cache = (ccmr__pool_cache *)way;
    uintptr_t address;

    if (__builtin_expect(bytes - 1 >= CCMR__POOL_MOST || ptr == NULL, 0) ||
        !enter(cache)) {
        return ccmr__allocate_generally(resource, bytes, alignment, stream,
                                        ptr);
    }
    address = ccmr__pool_pop_large(cache, ccmr__pool_rounded(bytes));
    ccmr__pool_leave(cache);
    if (address == 0) {
        return allocate_anew(resource, bytes, alignment, stream, ptr, way);
    }
    count_in(cache->shard, bytes);
    *ptr = (void *)address;
    return CCMR_SUCCESS;
}

static ccmr_status allocate(ccmr_resource *resource, size_t bytes,
                            size_t alignment, ccmr_stream stream, void **ptr,
                            ccmr__quick *way)
{
    ccmr__pool_cache *cache = (ccmr__pool_cache *)way;
    ccmr__pool_bin *bin;
    unsigned count;

    if (__builtin_expect(bytes - 1 >= CCMR__POOL_SMALL, 0)) {
        return allocate_large(resource, bytes, alignment, stream, ptr, way);
    }
    if (__builtin_expect(ptr == NULL, 0) || !enter(cache)) {
        return ccmr__allocate_generally(resource, bytes, alignment, stream,
                                        ptr);
    }
    bin = &cache->bins[ccmr__pool_class(bytes)];
    count = bin->count;
    if (__builtin_expect(count == 0, 0)) {
        ccmr__pool_leave(cache);
        return allocate_anew(resource, bytes, alignment, stream, ptr, way);
    }
    count--;
    bin->count = (uint16_t)count;
    *ptr = (void *)bin->blocks[count];
    ccmr__pool_leave(cache);
    count_in(cache->shard, bytes);
    return CCMR_SUCCESS;
}

/* ---- deallocate ----------------------------------------------------------------- */

/* Inside: the block's count goes, and with it what kept the resource. */
static void __attribute__((noinline, cold))
leave_closing(ccmr_resource *resource, ccmr__pool_cache *cache)
{
    unsigned slot = ccmr__thread_self()->slot;
    ccmr__shard *shard = cache->shard;

    ccmr__census_enter(shard, slot);
    ccmr__pool_leave(cache);
    ccmr__resource_leave_closing(resource, shard, slot);
}

/* Inside, with the block in the cache. */
static inline void leave(ccmr_resource *resource, ccmr__pool_cache *cache,
                         size_t bytes)
{
    count_out(cache->shard, bytes);
    quick_fence();
    if (__builtin_expect(atomic_load_explicit(&resource->closing,
                                              memory_order_relaxed) != 0,
                         0)) {
        leave_closing(resource, cache);
    } else {
        ccmr__pool_leave(cache);
    }
}

/* May a block of that many (rounded) bytes be there? */
static inline int may_be(const ccmr__pool_cache *cache, const void *ptr,
                         size_t bytes)
{
    uintptr_t offset = (uintptr_t)ptr - cache->known_base;

    return offset < cache->quick_bytes &&
           cache->quick_bytes - offset >= bytes &&
           ((uintptr_t)ptr & (CCMR__POOL_GRANULE - 1)) == 0;
}

/* The block is one that can be there; the cache has no room for it. */
static ccmr_status __attribute__((noinline))
free_anew(ccmr_resource *resource, void *ptr, size_t bytes, ccmr_stream stream,
          ccmr__pool_cache *cache)
{
    unsigned slot = ccmr__thread_self()->slot;
    ccmr__shard *shard = cache->shard;

    ccmr__pool_free_anew(cache, ptr, bytes, stream);
    ccmr__census_enter(shard, slot);
    count_out(shard, bytes);
    ccmr__resource_leave(resource, shard, slot);
    return CCMR_SUCCESS;
}

static ccmr_status __attribute__((noinline))
free_large(ccmr_resource *resource, void *ptr, size_t bytes, size_t alignment,
           ccmr_stream stream, ccmr__quick *way)
{
    ccmr__pool_cache *cache = (ccmr__pool_cache *)way;

    if (__builtin_expect(bytes - 1 < CCMR__POOL_MOST, 1)) {
        size_t rounded = ccmr__pool_rounded(bytes);

        if (__builtin_expect(may_be(cache, ptr, rounded), 1) && enter(cache)) {
            if (ccmr__pool_push_large_quickly(cache, rounded,
                                              (uintptr_t)ptr)) {
                leave(resource, cache, bytes);
                return CCMR_SUCCESS;
            }
            ccmr__pool_leave(cache);
            return free_anew(resource, ptr, bytes, stream, cache);
        }
    }
    return ccmr__deallocate_generally(resource, ptr, bytes, alignment, stream);
}

static ccmr_status deallocate(ccmr_resource *resource, void *ptr, size_t bytes,
                              size_t alignment, ccmr_stream stream,
                              ccmr__quick *way)
{
    ccmr__pool_cache *cache = (ccmr__pool_cache *)way;

    if (__builtin_expect(bytes - 1 >= CCMR__POOL_SMALL, 0)) {
        return free_large(resource, ptr, bytes, alignment, stream, way);
    }
    /* However it is rounded it ends within the segment. */
    if (__builtin_expect(may_be(cache, ptr, CCMR__POOL_SMALL), 1) &&
        enter(cache)) {
        ccmr__pool_bin *bin = &cache->bins[ccmr__pool_class(bytes)];
        unsigned count = bin->count;

        if (__builtin_expect(count < bin->most, 1)) {
            bin->blocks[count] = (uintptr_t)ptr;
            bin->count = (uint16_t)(count + 1);
            leave(resource, cache, bytes);
            return CCMR_SUCCESS;
        }
        ccmr__pool_leave(cache);
        return free_anew(resource, ptr, bytes, stream, cache);
    }
    return ccmr__deallocate_generally(resource, ptr, bytes, alignment, stream);
}

/* ---- arming --------------------------------------------------------------------- */

/* Is the thread one whose barriers and counts are cheap? */
static inline int is_fit(const ccmr__thread *self)
{
    return self->slot != CCMR__SLOT_SHARED &&
           (CCMR__TSAN || !ccmr__census_fences);
}

void ccmr__pool_arm(void *object, ccmr_resource *resource, ccmr_stream stream)
{
    ccmr__pool *pool = object;
    uint64_t epoch =
        atomic_load_explicit(&ccmr__quick_epoch, memory_order_acquire);
    ccmr__thread *self = ccmr__thread_self();
    const ccmr__thread_pools *mine = self->pools;
    ccmr__pool_cache *cache;

    if (mine == NULL || mine->last.serial != pool->serial ||
        mine->last.stream != stream || mine->last.record == NULL ||
        atomic_load_explicit(&mine->last.record->usable,
                             memory_order_acquire) != mine->last.id) {
        return;
    }
    cache = mine->last.cache;
    if (!is_fit(self) || ccmr__pool_cache_stale(cache) ||
        atomic_load_explicit(&resource->closing, memory_order_relaxed) != 0 ||
        ccmr__process_check() != CCMR_SUCCESS) {
        return;
    }
    cache->quick = (ccmr__quick){allocate, deallocate};
    cache->shard = &resource->census.shards[self->slot];
    cache->quick_bytes =
        cache->known_version == atomic_load_explicit(&pool->map_version,
                                                     memory_order_relaxed) &&
                !ccmr__pool_has_notes(pool)
            ? cache->known_bytes
            : 0;
    ccmr__quick_enter(resource, stream, epoch, &cache->quick);
}
