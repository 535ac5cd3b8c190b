/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Caches: which thread has which, and what becomes of them at its end.
 *
 *   thread -> entries [pool 7, stream 3] [pool 7, stream 9] ...  its own alone
 *                        |                  |
 *                      cache              cache     lane->caches, spare_caches
 *
 * An entry does not keep its pool: whether that is still there is asked of the
 * list of all pools, whose lock is held as long as the pool is touched, unless
 * the call is one of that pool. The order of locks: list, thieves, lock, a
 * lane's.
 */
#include "resources/pool/cache.h"

#include <stdlib.h>
#include <string.h>

#include "lib/process.h"
#include "resources/pool/pool.h"

/* Not measured on a GPU; on a host 16 streams in turn cost a third of what they
 * cost where each takes another's place. */
#define CROWDED 8u

/* All pools: under list_lock. */
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static ccmr__pool *pools;
static atomic_uint pools_gone; /* how many; read without the lock */

void ccmr__pool_list_add(ccmr__pool *pool)
{
    (void)pthread_mutex_lock(&list_lock);
    pool->next_pool = pools;
    pools = pool;
    (void)pthread_mutex_unlock(&list_lock);
}

void ccmr__pool_list_remove(ccmr__pool *pool)
{
    ccmr__pool **link = &pools;

    (void)pthread_mutex_lock(&list_lock);
    while (*link != pool) {
        link = &(*link)->next_pool;
    }
    *link = pool->next_pool;
    atomic_fetch_add_explicit(&pools_gone, 1, memory_order_relaxed);
    (void)pthread_mutex_unlock(&list_lock);
}

/* NULL if the pool has gone. Under list_lock. */
static ccmr__pool *pool_of(uint64_t serial)
{
    ccmr__pool *pool = pools;

    while (pool != NULL && pool->serial != serial) {
        pool = pool->next_pool;
    }
    return pool;
}

/* ---- caches and lanes ---------------------------------------------------------- */

/* The thread's blocks go to the lane, its cache to the spare ones. A thief may
 * still hold on to it, and finds it empty or another one's: it goes in only
 * when nobody is. */
static void give_up(ccmr__pool *pool, ccmr__pool_cache *cache)
{
    ccmr__pool_cache **link = &cache->lane->caches;

    ccmr__pool_enter(cache);
    (void)ccmr__pool_flush(cache);
    ccmr__pool_leave(cache);
    ccmr__quick_drop(&cache->quick);
    (void)pthread_mutex_lock(&pool->lock);
    while (*link != cache) {
        link = &(*link)->next;
    }
    *link = cache->next;
    cache->next = pool->spare_caches;
    pool->spare_caches = cache;
    (void)pthread_mutex_unlock(&pool->lock);
}

/* Zeroes, in cache lines of their own. NULL without memory. */
static void *new_lines(size_t bytes)
{
    void *made = aligned_alloc(64, bytes);

    if (made != NULL) {
        memset(made, 0, bytes);
    }
    return made;
}

_Static_assert(sizeof(ccmr__pool_cache) % 64 == 0 &&
                   sizeof(ccmr__thread_pools) % 64 == 0,
               "whole cache lines");

/* Spare or new; NULL without memory. */
static ccmr__pool_cache *spare_or_new(ccmr__pool *pool)
{
    ccmr__pool_cache *cache;

    (void)pthread_mutex_lock(&pool->lock);
    cache = pool->spare_caches;
    if (cache != NULL) {
        pool->spare_caches = cache->next;
    }
    (void)pthread_mutex_unlock(&pool->lock);
    return cache != NULL ? cache : new_lines(sizeof(*cache));
}

/* A cache of the stream's lane, which is not in any entry yet. */
static ccmr__pool_cache *take(ccmr__pool *pool, const ccmr__stream_use *use,
                              ccmr__stream_record *record)
{
    ccmr__pool_cache *cache;
    ccmr__pool_lane *lane;

    if (ccmr__pool_lane_get(pool, use, record, &lane) != CCMR_SUCCESS) {
        return NULL;
    }
    cache = spare_or_new(pool);
    if (cache != NULL) {
        if (cache->lane == NULL) {
            cache->lane = lane; /* new: no thief knows it */
        }
        ccmr__pool_enter(cache);
        ccmr__pool_cache_open(cache, lane);
        ccmr__pool_leave(cache);
        (void)pthread_mutex_lock(&pool->lock);
        cache->next = lane->caches;
        lane->caches = cache;
        (void)pthread_mutex_unlock(&pool->lock);
    }
    ccmr__pool_lane_put(lane);
    return cache;
}

static void free_list(ccmr__pool_cache *cache)
{
    while (cache != NULL) {
        ccmr__pool_cache *next = cache->next;

        free(cache);
        cache = next;
    }
}

void ccmr__pool_caches_end(ccmr__pool *pool)
{
    ccmr__pool_lane *lane;

    (void)pthread_mutex_lock(&pool->lock);
    lane = atomic_load_explicit(&pool->lanes, memory_order_relaxed);
    for (; lane != NULL; lane = lane->next) {
        free_list(lane->caches);
        lane->caches = NULL;
    }
    free_list(pool->spare_caches);
    pool->spare_caches = NULL;
    (void)pthread_mutex_unlock(&pool->lock);
}

/* ---- a thread's entries ---------------------------------------------------------- */

/* Under list_lock. */
static void leave_listed(ccmr__pool_entry *entry)
{
    ccmr__pool *pool = pool_of(entry->serial);

    if (pool != NULL) {
        give_up(pool, entry->cache);
    }
    entry->serial = 0;
}

/* In a call of `pool`, which is there therefore: no lock of all threads. */
static void leave(ccmr__pool *pool, ccmr__pool_entry *entry)
{
    if (entry->serial == pool->serial) {
        give_up(pool, entry->cache);
        entry->serial = 0;
    } else {
        (void)pthread_mutex_lock(&list_lock);
        leave_listed(entry);
        (void)pthread_mutex_unlock(&list_lock);
    }
}

/* In a forked child other threads' locks stay locked for ever, and at exit
 * nobody needs the blocks: nothing but this thread's own is touched. */
static void end_of_thread(ccmr__thread *self)
{
    ccmr__thread_pools *mine = self->pools;
    unsigned i;

    self->pools = NULL;
    if (!ccmr__process_gone()) {
        (void)pthread_mutex_lock(&list_lock);
        for (i = 0; i < CCMR__POOL_THREAD_CACHES; i++) {
            if (mine->entries[i].serial != 0) {
                leave_listed(&mine->entries[i]);
            }
        }
        (void)pthread_mutex_unlock(&list_lock);
    }
    free(mine);
}

/* NULL without memory, and for a thread that has no record of its own. */
static ccmr__thread_pools *pools_of_thread(void)
{
    ccmr__thread *self = ccmr__thread_self();

    if (self->pools == NULL && self->serial != 0) {
        self->pools_end = end_of_thread;
        self->pools = new_lines(sizeof(*self->pools));
    }
    return self->pools;
}

/* Is it the entry of this stream? Leaves it if its cache is stale: the stream
 * is used on after it was retired, as a new one. */
static int is_of(ccmr__pool *pool, ccmr__pool_entry *entry, uint64_t id)
{
    if (entry->serial != pool->serial || entry->id != id) {
        return 0;
    }
    if (ccmr__pool_cache_stale(entry->cache)) {
        leave(pool, entry);
        return 0;
    }
    return 1;
}

/* Entries of pools that have gone are unused. Returns one, or NULL. */
static ccmr__pool_entry *drop_gone(ccmr__thread_pools *mine)
{
    ccmr__pool_entry *dropped = NULL;
    unsigned i;

    (void)pthread_mutex_lock(&list_lock);
    for (i = 0; i < CCMR__POOL_THREAD_CACHES; i++) {
        ccmr__pool_entry *entry = &mine->entries[i];

        if (pool_of(entry->serial) == NULL) {
            entry->serial = 0;
            dropped = entry;
        }
    }
    (void)pthread_mutex_unlock(&list_lock);
    return dropped;
}

/* An entry for a stream that has none: unused, else of a stream or pool that
 * has gone, else the next in turn. A thread that goes round more streams than
 * it has entries would empty a cache each time: it makes room once in a while,
 * and does without a cache (NULL) otherwise. */
static ccmr__pool_entry *make_room(ccmr__thread_pools *mine, ccmr__pool *pool)
{
    ccmr__pool_entry *entry;
    /* The times are counted from here on, so that it is seen to change. */
    unsigned gone =
        CROWDED * atomic_load_explicit(&pools_gone, memory_order_relaxed);
    unsigned turn;
    unsigned i;

    for (i = 0; i < CCMR__POOL_THREAD_CACHES; i++) {
        entry = &mine->entries[i];
        if (entry->serial == pool->serial &&
            ccmr__pool_cache_stale(entry->cache)) {
            leave(pool, entry);
        }
        if (entry->serial == 0) {
            return entry;
        }
    }
    if (mine->crowded - gone >= CROWDED) {
        /* A pool has gone since: its entries are of no use. */
        mine->crowded = gone;
        entry = drop_gone(mine);
        if (entry != NULL) {
            return entry;
        }
    }
    turn = mine->crowded - gone;
    mine->crowded = gone + (turn + 1) % CROWDED;
    if (turn != 0) {
        return NULL;
    }
    entry = &mine->entries[mine->hand];
    mine->hand = (mine->hand + 1) % CCMR__POOL_THREAD_CACHES;
    leave(pool, entry);
    return entry;
}

size_t ccmr__pool_flush_own(ccmr__pool *pool)
{
    ccmr__thread_pools *mine = ccmr__thread_self()->pools;
    size_t bytes = 0;
    unsigned i;

    for (i = 0; mine != NULL && i < CCMR__POOL_THREAD_CACHES; i++) {
        const ccmr__pool_entry *entry = &mine->entries[i];

        if (entry->serial == pool->serial) {
            ccmr__pool_enter(entry->cache);
            bytes += ccmr__pool_flush_large(entry->cache);
            ccmr__pool_leave(entry->cache);
            ccmr__pool_look_again(entry->cache);
        }
    }
    return bytes;
}

ccmr__pool_cache *ccmr__pool_cache_find(ccmr__pool *pool,
                                        const ccmr__stream_use *use,
                                        ccmr__stream_record *record)
{
    ccmr__thread_pools *mine = pools_of_thread();
    ccmr__pool_entry *entry = NULL;
    unsigned i;

    if (mine == NULL) {
        return NULL;
    }
    mine->last.serial = 0; /* its entry may go */
    for (i = 0; i < CCMR__POOL_THREAD_CACHES && entry == NULL; i++) {
        if (is_of(pool, &mine->entries[i], use->id)) {
            entry = &mine->entries[i];
        }
    }
    if (entry == NULL) {
        ccmr__pool_cache *cache;

        entry = make_room(mine, pool);
        if (entry == NULL) {
            return NULL;
        }
        cache = take(pool, use, record);
        if (cache == NULL) {
            return NULL;
        }
        entry->serial = pool->serial;
        entry->id = use->id;
        entry->cache = cache;
    }
    entry->stream = use->handle;
    entry->record = record;
    mine->last = *entry;
    return entry->cache;
}
