/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lanes and segments for tests of the pool's caches.
 */
#include "tests/unit/pool_stubs.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/tap.h"

stub_state stub;

static ccmr__pool_segment segments[2] = {
    {.base = STUB_BASE, .bytes = STUB_BYTES},
    {.base = STUB_BASE + STUB_BYTES, .bytes = STUB_BYTES},
};

/* ---- what the caches call ------------------------------------------------------ */

static void note(ccmr__pool_lane *lane, const ccmr__pool_piece *piece,
                 size_t blocks, int brought)
{
    lane->set.bytes += piece->bytes;
    if (stub.sink != NULL) {
        stub.sink(piece, blocks);
        return;
    }
    if (stub.count < STUB_NOTES) {
        stub.notes[stub.count] = (stub_note){lane, *piece, blocks, brought};
    }
    stub.count++;
}

/* The set is its lane's. */
static ccmr__pool_lane *lane_of(ccmr__pool_set *set)
{
    return (ccmr__pool_lane *)((char *)set - offsetof(ccmr__pool_lane, set));
}

int ccmr__pool_insert(ccmr__pool_set *set, const ccmr__pool_piece *piece,
                      size_t blocks)
{
    if (stub.insert_limit == 0) {
        return -1;
    }
    if (stub.insert_limit > 0) {
        stub.insert_limit--;
    }
    note(lane_of(set), piece, blocks, 0);
    return 0;
}

void ccmr__pool_bring(ccmr__pool_lane *lane, const ccmr__pool_piece *piece,
                      size_t blocks)
{
    ccmr__pool_lane_lock(lane);
    note(lane, piece, blocks, 1);
    ccmr__pool_lane_unlock(lane);
}

ccmr__pool_segment *ccmr__pool_segment_of(ccmr__pool *pool, uintptr_t address)
{
    (void)pool;
    if (stub.sink == NULL) {
        stub.lookups++;
    }
    return address - STUB_BASE < STUB_BYTES ? &segments[0] : &segments[1];
}

ccmr_status ccmr__pool_lane_get(ccmr__pool *pool, const ccmr__stream_use *use,
                                ccmr__stream_record *record,
                                ccmr__pool_lane **lane)
{
    (void)record;
    if (stub.no_memory) {
        return CCMR_ERROR_OUT_OF_HOST_MEMORY;
    }
    *lane = stub_lane(pool, use->id);
    (void)pthread_mutex_lock(&pool->lock);
    (*lane)->users++;
    (void)pthread_mutex_unlock(&pool->lock);
    return CCMR_SUCCESS;
}

void ccmr__pool_lane_put(ccmr__pool_lane *lane)
{
    (void)pthread_mutex_lock(&lane->pool->lock);
    lane->users--;
    (void)pthread_mutex_unlock(&lane->pool->lock);
}

/* ---- for tests -------------------------------------------------------------------- */

static void *zeroes(size_t bytes)
{
    void *made = calloc(1, bytes);

    if (made == NULL) {
        tap_bail_out("no memory");
    }
    return made;
}

ccmr__pool *stub_pool_make(void)
{
    static uint64_t serials;
    ccmr__pool *pool = zeroes(sizeof(*pool));

    stub = (stub_state){.insert_limit = -1};
    pool->serial = ++serials;
    if (pthread_mutex_init(&pool->thieves, NULL) != 0 ||
        pthread_mutex_init(&pool->lock, NULL) != 0) {
        tap_bail_out("no mutex");
    }
    ccmr__pool_list_add(pool);
    return pool;
}

void stub_pool_end(ccmr__pool *pool)
{
    ccmr__pool_lane *lane;

    ccmr__pool_list_remove(pool);
    ccmr__pool_caches_end(pool);
    lane = atomic_load(&pool->lanes);
    while (lane != NULL) {
        ccmr__pool_lane *next = lane->next;

        (void)pthread_mutex_destroy(&lane->lock);
        free(lane);
        lane = next;
    }
    (void)pthread_mutex_destroy(&pool->thieves);
    (void)pthread_mutex_destroy(&pool->lock);
    free(pool);
}

ccmr__pool_lane *stub_lane(ccmr__pool *pool, uint64_t id)
{
    ccmr__pool_lane *lane;

    (void)pthread_mutex_lock(&pool->lock);
    lane = atomic_load(&pool->lanes);
    while (lane != NULL && lane->id != id) {
        lane = lane->next;
    }
    if (lane == NULL) {
        lane = zeroes(sizeof(*lane));
        if (pthread_mutex_init(&lane->lock, NULL) != 0) {
            tap_bail_out("no mutex");
        }
        lane->pool = pool;
        lane->id = id;
        lane->next = atomic_load(&pool->lanes);
        atomic_store(&pool->lanes, lane);
    }
    (void)pthread_mutex_unlock(&pool->lock);
    return lane;
}

void stub_retire(ccmr__pool *pool, uint64_t id)
{
    ccmr__pool_lane *lane = stub_lane(pool, id);

    (void)pthread_mutex_lock(&pool->lock);
    lane->id = 0;
    (void)pthread_mutex_unlock(&pool->lock);
    (void)ccmr__pool_steal(pool, lane, NULL);
}

ccmr__pool_cache *stub_find(ccmr__pool *pool, uint64_t id)
{
    ccmr__stream_use use = {.handle = (CUstream)(uintptr_t)(id * 64),
                            .id = id};
    ccmr__pool_cache *cache = ccmr__pool_cache_find(pool, &use, NULL);

    if (cache != NULL) {
        cache->large_most = (size_t)64 << 20;
    }
    return cache;
}

static size_t length(const ccmr__pool_cache *cache)
{
    size_t count = 0;

    for (; cache != NULL; cache = cache->next) {
        count++;
    }
    return count;
}

size_t stub_caches(ccmr__pool *pool, uint64_t id)
{
    const ccmr__pool_lane *lane = stub_lane(pool, id);
    size_t count;

    (void)pthread_mutex_lock(&pool->lock);
    count = length(lane->caches);
    (void)pthread_mutex_unlock(&pool->lock);
    return count;
}

size_t stub_spares(ccmr__pool *pool)
{
    size_t count;

    (void)pthread_mutex_lock(&pool->lock);
    count = length(pool->spare_caches);
    (void)pthread_mutex_unlock(&pool->lock);
    return count;
}

static void linger(void)
{
    static _Thread_local unsigned calls;

    if (stub.sink != NULL && ++calls % 8 == 0) {
        (void)sched_yield();
    }
}

void stub_push(ccmr__pool_cache *cache, size_t bytes, uintptr_t address)
{
    ccmr__pool_enter(cache);
    if (bytes <= CCMR__POOL_SMALL) {
        unsigned index = ccmr__pool_class(bytes);
        ccmr__pool_bin *bin = &cache->bins[index];

        if (bin->count < bin->most) {
            bin->blocks[bin->count] = address;
            linger();
            bin->count++;
        } else {
            ccmr__pool_push_small_slowly(cache, index, address);
        }
    } else {
        ccmr__pool_push_large(cache, bytes, address);
    }
    ccmr__pool_leave(cache);
}

uintptr_t stub_pop(ccmr__pool_cache *cache, size_t bytes)
{
    uintptr_t address = 0;

    ccmr__pool_enter(cache);
    if (bytes <= CCMR__POOL_SMALL) {
        ccmr__pool_bin *bin = &cache->bins[ccmr__pool_class(bytes)];

        if (bin->count != 0) {
            address = bin->blocks[bin->count - 1];
            linger();
            bin->count--;
        }
    } else {
        address = ccmr__pool_pop_large(cache, bytes);
    }
    ccmr__pool_leave(cache);
    return address;
}
