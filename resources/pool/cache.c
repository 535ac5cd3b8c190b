/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Caches: blocks on their way to the lane, and thieves.
 */
#include "resources/pool/cache.h"

#include <assert.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "resources/pool/pool.h"

#define BIN_BYTES ((size_t)512 << 10) /* of a bin, as a rule */
#define BIN_LEAST 8u

_Static_assert(offsetof(ccmr__pool_cache, stale) == 64,
               "what each call touches is a cache line");
_Static_assert(sizeof(ccmr__pool_bin) == 512, "cheap to index");
_Static_assert(sizeof(ccmr__pool_way) == 64, "a way is a cache line");

/* ---- giving blocks to the lane ----------------------------------------------- */

/* The segment that an address of a block in the cache is in, if that is the
 * one that was hit last: then it stays as long as the block is there. NULL: to
 * be searched for. Inside. */
static ccmr__pool_segment *known_segment(const ccmr__pool_cache *cache,
                                         uintptr_t address)
{
    return cache->known_version ==
                       atomic_load_explicit(&cache->lane->pool->map_version,
                                            memory_order_relaxed) &&
                   address - cache->known_base < cache->known_bytes
               ? cache->known_segment
               : NULL;
}

/* By insertion: there are few, and freed in order more often than not. */
static void sort(uintptr_t *blocks, unsigned count)
{
    unsigned i;

    for (i = 1; i < count; i++) {
        uintptr_t block = blocks[i];
        unsigned at = i;

        while (at > 0 && blocks[at - 1] > block) {
            blocks[at] = blocks[at - 1];
            at--;
        }
        blocks[at] = block;
    }
}

/* The piece that the first blocks make: neighbours in one segment. Returns how
 * many they are. `piece->segment` is the last one's, or NULL. */
static unsigned take_run(ccmr__pool *pool, size_t bytes,
                         const uintptr_t *blocks, unsigned count,
                         ccmr__pool_piece *piece)
{
    const ccmr__pool_segment *segment = piece->segment;
    uintptr_t end = blocks[0] + bytes;
    unsigned run = 1;

    if (segment == NULL || blocks[0] - segment->base >= segment->bytes) {
        piece->segment = ccmr__pool_segment_of(pool, blocks[0]);
        segment = piece->segment;
        assert(segment != NULL);
    }
    while (run < count && blocks[run] == end &&
           end - segment->base < segment->bytes) {
        end += bytes;
        run++;
    }
    piece->address = blocks[0];
    piece->bytes = end - blocks[0];
    return run;
}

/* Under the lane's lock, as part of its latest free; fewer where records are
 * missing. Returns how many. The array is sorted. */
static unsigned give_locked(const ccmr__pool_cache *cache, size_t bytes,
                            uintptr_t *blocks, unsigned count)
{
    ccmr__pool_lane *lane = cache->lane;
    ccmr__pool_piece piece = {.segment = known_segment(cache, blocks[0])};
    unsigned done = 0;

    piece.waits.count = 1;
    piece.waits.lanes[0] = lane;
    if (count > 1) {
        sort(blocks, count);
    }
    piece.waits.numbers[0] = lane->freed;
    while (done < count) {
        unsigned run =
            take_run(lane->pool, bytes, blocks + done, count - done, &piece);

        if (ccmr__pool_insert(&lane->set, &piece, run) != 0) {
            break;
        }
        done += run;
    }
    return done;
}

/* Under the lane's lock: a free of that many bytes begins. */
static void begin_free(ccmr__pool_lane *lane, size_t bytes)
{
    size_t uncovered =
        atomic_load_explicit(&lane->uncovered_bytes, memory_order_relaxed);

    lane->freed++;
    atomic_store_explicit(&lane->uncovered_bytes, uncovered + bytes,
                          memory_order_relaxed);
}

/* The lane has no records for them: those of others. */
static void __attribute__((cold, noinline))
give_rest(ccmr__pool_lane *lane, uint64_t number, size_t bytes,
          uintptr_t *blocks, unsigned count)
{
    ccmr__pool_piece piece = {
        .waits = {.count = 1, .lanes = {lane}, .numbers = {number}}};
    unsigned done = 0;

    while (done < count) {
        unsigned run;

        /* What is not locked may be given back with all of its segment. */
        piece.segment = NULL;
        run = take_run(lane->pool, bytes, blocks + done, count - done, &piece);
        ccmr__pool_bring(lane, &piece, run);
        done += run;
    }
}

size_t ccmr__pool_give_blocks(ccmr__pool_cache *cache, size_t bytes,
                              uintptr_t *blocks, unsigned count)
{
    ccmr__pool_lane *lane = cache->lane;
    uint64_t number;
    unsigned done;

    if (count == 0) {
        return 0;
    }
    ccmr__pool_lane_lock(lane);
    begin_free(lane, bytes * count);
    number = lane->freed;
    done = give_locked(cache, bytes, blocks, count);
    ccmr__pool_lane_unlock(lane);
    atomic_fetch_add_explicit(&lane->pool->changes, 1, memory_order_relaxed);
    if (__builtin_expect(done < count, 0)) {
        give_rest(lane, number, bytes, blocks + done, count - done);
    }
    return bytes * count;
}

/* All ways that have blocks, with one number under one hold of the lock. Those
 * that found no records are left. */
static size_t flush_quickly(ccmr__pool_cache *cache)
{
    ccmr__pool_lane *lane = cache->lane;
    size_t bytes = 0;
    unsigned word;
    int full = 0;

    ccmr__pool_lane_lock(lane);
    begin_free(lane, cache->large_bytes);
    for (word = 0; word < CCMR__POOL_WAY_WORDS; word++) {
        uint64_t bits = cache->filled[word];

        for (; bits != 0 && !full; bits &= bits - 1) {
            unsigned bit = (unsigned)__builtin_ctzll(bits);
            ccmr__pool_way *way = ccmr__pool_way_at(cache, word * 64 + bit);
            unsigned done =
                give_locked(cache, way->bytes, way->blocks, way->count);

            full = done < way->count;
            bytes += done * way->bytes;
            ccmr__pool_way_shift(way, done);
        }
        cache->filled[word] = full ? cache->filled[word] : 0;
    }
    ccmr__pool_lane_unlock(lane);
    atomic_fetch_add_explicit(&lane->pool->changes, 1, memory_order_relaxed);
    cache->large_bytes -= bytes;
    return bytes;
}

size_t ccmr__pool_flush_large(ccmr__pool_cache *cache)
{
    size_t bytes;
    unsigned i;

    if (cache->large_bytes == 0) {
        return 0;
    }
    bytes = flush_quickly(cache);
    for (i = 0;
         cache->large_bytes != 0 && i < CCMR__POOL_ROWS * CCMR__POOL_ROW;
         i++) {
        ccmr__pool_way *way = ccmr__pool_way_at(cache, i);
        size_t gone =
            ccmr__pool_give_blocks(cache, way->bytes, way->blocks, way->count);

        way->count = 0;
        cache->large_bytes -= gone;
        bytes += gone;
    }
    return bytes;
}

size_t ccmr__pool_flush(ccmr__pool_cache *cache)
{
    size_t bytes = ccmr__pool_flush_large(cache);
    unsigned i;

    for (i = 0; i < CCMR__POOL_CLASSES; i++) {
        ccmr__pool_bin *bin = &cache->bins[i];

        bytes += ccmr__pool_give_blocks(cache, ccmr__pool_class_bytes(i),
                                        bin->blocks, bin->count);
        bin->count = 0;
    }
    return bytes;
}

void ccmr__pool_push_small_slowly(ccmr__pool_cache *cache, unsigned index,
                                  uintptr_t address)
{
    ccmr__pool_bin *bin = &cache->bins[index];
    size_t bytes = ccmr__pool_class_bytes(index);
    unsigned half = (bin->count + 1u) / 2;

    if (ccmr__pool_cache_stale(cache)) {
        (void)ccmr__pool_give_blocks(cache, bytes, &address, 1);
        return;
    }
    /* The older half: the others are more likely in the device's caches. */
    (void)ccmr__pool_give_blocks(cache, bytes, bin->blocks, half);
    bin->count = (uint16_t)(bin->count - half);
    memmove(bin->blocks, bin->blocks + half,
            bin->count * sizeof(bin->blocks[0]));
    bin->blocks[bin->count++] = address;
}

/* ---- open and stale ---------------------------------------------------------- */

void ccmr__pool_cache_open(ccmr__pool_cache *cache, ccmr__pool_lane *lane)
{
    unsigned i;

    for (i = 0; i < CCMR__POOL_CLASSES; i++) {
        size_t most = BIN_BYTES / ccmr__pool_class_bytes(i);

        if (most < BIN_LEAST) {
            most = BIN_LEAST;
        } else if (most > CCMR__POOL_BIN_MOST) {
            most = CCMR__POOL_BIN_MOST;
        }
        cache->bins[i].most = (uint16_t)most;
        cache->bins[i].count = 0;
    }
    memset(cache->ways, 0, sizeof(cache->ways));
    cache->large_bytes = 0;
    cache->large_most = 0;
    cache->known_base = 0;
    cache->known_bytes = 0;
    cache->known_segment = NULL;
    cache->lane = lane;
    atomic_store_explicit(&cache->stale, 0, memory_order_relaxed);
}

/* Without room in bins and ways every push goes the slow way, which sees that
 * the cache is stale, and every pop misses: the fast ways need not look. */
static void close_cache(ccmr__pool_cache *cache)
{
    unsigned i;

    for (i = 0; i < CCMR__POOL_CLASSES; i++) {
        cache->bins[i].most = 0;
    }
    memset(cache->ways, 0, sizeof(cache->ways));
}

/* ---- the owner, when a thief is at work --------------------------------------- */

/* As a rule for microseconds; else asleep, until the thief is through. */
static void wait_for_thief(ccmr__pool_cache *cache)
{
    pthread_mutex_t *thieves = &cache->lane->pool->thieves;
    unsigned tries;

    for (tries = 0; tries < 20; tries++) {
        if (atomic_load_explicit(&cache->wanted, memory_order_acquire) == 0) {
            return;
        }
        (void)sched_yield();
    }
    (void)pthread_mutex_lock(thieves);
    (void)pthread_mutex_unlock(thieves);
}

void ccmr__pool_wait_thief(ccmr__pool_cache *cache)
{
    while (atomic_load_explicit(&cache->wanted, memory_order_acquire) != 0) {
        atomic_store_explicit(&cache->inside, 0, memory_order_release);
        wait_for_thief(cache);
        atomic_store_explicit(&cache->inside, 1, memory_order_relaxed);
        ccmr__census_fence();
    }
}

/* ---- thieves ------------------------------------------------------------------- */

/* An owner is inside for a short time. It may have lost its core, to this
 * thread even, where the thread has a priority that does not yield. */
static void wait_out(ccmr__pool_cache *cache)
{
    const struct timespec pause = {.tv_nsec = 50000};
    unsigned tries = 0;

    while (atomic_load_explicit(&cache->inside, memory_order_acquire) != 0) {
        if (tries++ < 100) {
            (void)sched_yield();
        } else {
            (void)nanosleep(&pause, NULL);
        }
    }
}

/* Under pool->lock, where the lane and its caches are together: later such a
 * cache may be another lane's. */
static ccmr__pool_cache *find_of_lane(ccmr__pool_lane *lane,
                                      const ccmr__pool_cache *own,
                                      ccmr__pool_cache *found)
{
    ccmr__pool_cache *cache;

    for (cache = lane->caches; cache != NULL; cache = cache->next) {
        if (cache != own) {
            if (lane->id == 0) {
                atomic_store_explicit(&cache->stale, 1, memory_order_relaxed);
            }
            cache->found = found;
            found = cache;
        }
    }
    return found;
}

static ccmr__pool_cache *find_all(ccmr__pool *pool, ccmr__pool_lane *lane,
                                  const ccmr__pool_cache *own)
{
    ccmr__pool_cache *found = NULL;

    (void)pthread_mutex_lock(&pool->lock);
    if (lane != NULL) {
        found = find_of_lane(lane, own, NULL);
    } else {
        lane = atomic_load_explicit(&pool->lanes, memory_order_relaxed);
        for (; lane != NULL; lane = lane->next) {
            found = find_of_lane(lane, own, found);
        }
    }
    (void)pthread_mutex_unlock(&pool->lock);
    return found;
}

/* One barrier for all of them. Owners that want in wait until the end, but
 * those that are through may go on. */
static size_t visit(ccmr__pool *pool, ccmr__pool_lane *lane,
                    const ccmr__pool_cache *own,
                    size_t (*work)(ccmr__pool_cache *))
{
    ccmr__pool_cache *cache;
    ccmr__pool_cache *all;
    size_t bytes = 0;

    (void)pthread_mutex_lock(&pool->thieves);
    all = find_all(pool, lane, own);
    for (cache = all; cache != NULL; cache = cache->found) {
        atomic_store_explicit(&cache->wanted, 1, memory_order_relaxed);
    }
    if (all != NULL) {
        ccmr__census_barrier();
    }
    for (cache = all; cache != NULL; cache = cache->found) {
        wait_out(cache);
        bytes += work(cache);
        atomic_store_explicit(&cache->wanted, 0, memory_order_release);
    }
    (void)pthread_mutex_unlock(&pool->thieves);
    return bytes;
}

static size_t empty(ccmr__pool_cache *cache)
{
    size_t bytes = ccmr__pool_flush(cache);

    if (ccmr__pool_cache_stale(cache)) {
        close_cache(cache);
    }
    return bytes;
}

size_t ccmr__pool_steal(ccmr__pool *pool, ccmr__pool_lane *lane,
                        const ccmr__pool_cache *own)
{
    size_t bytes = visit(pool, lane, own, empty);

    if (bytes != 0) {
        ccmr__quick_revoke(); /* lanes may need events now */
    }
    return bytes;
}

static size_t count_bytes(ccmr__pool_cache *cache)
{
    size_t bytes = cache->large_bytes;
    unsigned i;

    for (i = 0; i < CCMR__POOL_CLASSES; i++) {
        bytes += cache->bins[i].count * ccmr__pool_class_bytes(i);
    }
    return bytes;
}

size_t ccmr__pool_cached_bytes(ccmr__pool *pool)
{
    return visit(pool, NULL, NULL, count_bytes);
}
