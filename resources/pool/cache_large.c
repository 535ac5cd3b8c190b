/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Caches: large blocks, found by their exact size.
 *
 *   row = hash(size)   [3 MiB: a a .] [80 KiB: a . .] [-] [-]
 *
 * A way keeps its size when its last block is popped, so that a size that is
 * allocated and freed in turn finds it again; it is the first to be replaced.
 */
#include "resources/pool/cache.h"

_Static_assert(CCMR__POOL_ROWS == 32, "the hash gives 5 bits");

static inline ccmr__pool_way *row_of(ccmr__pool_cache *cache, size_t bytes)
{
    uint64_t steps = (uint64_t)(bytes / CCMR__POOL_STEP);

    return cache->ways[(steps * UINT64_C(0x9E3779B97F4A7C15)) >> 59];
}

/* NULL if the size has none. */
static ccmr__pool_way *find_way(ccmr__pool_way *row, size_t bytes)
{
    unsigned i;

    for (i = 0; i < CCMR__POOL_ROW; i++) {
        if (row[i].bytes == bytes) {
            return &row[i];
        }
    }
    return NULL;
}

uintptr_t ccmr__pool_pop_large(ccmr__pool_cache *cache, size_t bytes)
{
    ccmr__pool_way *way = row_of(cache, bytes);

    if (__builtin_expect(way->bytes != bytes, 0)) {
        way = find_way(way, bytes);
        if (way == NULL) {
            return 0;
        }
    }
    if (__builtin_expect(way->count == 0, 0)) {
        return 0;
    }
    cache->large_bytes -= bytes;
    return way->blocks[--way->count];
}

/* The oldest blocks of a way go to the lane. */
static size_t give_oldest(ccmr__pool_cache *cache, ccmr__pool_way *way,
                          unsigned count)
{
    size_t bytes =
        ccmr__pool_give_blocks(cache, way->bytes, way->blocks, count);

    cache->large_bytes -= bytes;
    ccmr__pool_way_shift(way, count);
    return bytes;
}

/* A way for a size that has none: an unused one, else the one with the fewest
 * bytes, whose blocks go. */
static ccmr__pool_way *take_way(ccmr__pool_cache *cache, ccmr__pool_way *row,
                                size_t bytes)
{
    ccmr__pool_way *least = &row[0];
    unsigned i;

    for (i = 0; i < CCMR__POOL_ROW; i++) {
        if (row[i].bytes == 0) {
            least = &row[i];
            break;
        }
        if (row[i].bytes * row[i].count < least->bytes * least->count) {
            least = &row[i];
        }
    }
    (void)give_oldest(cache, least, least->count);
    least->bytes = bytes;
    return least;
}

void ccmr__pool_push_large_slowly(ccmr__pool_cache *cache, size_t bytes,
                                  uintptr_t address)
{
    ccmr__pool_way *row = row_of(cache, bytes);
    ccmr__pool_way *way;

    if (ccmr__pool_cache_stale(cache)) {
        (void)ccmr__pool_give_blocks(cache, bytes, &address, 1);
        return;
    }
    if (cache->large_bytes + bytes > cache->large_most) {
        (void)ccmr__pool_flush_large(cache);
    }
    way = find_way(row, bytes);
    if (way == NULL) {
        way = take_way(cache, row, bytes);
    } else if (way->count == CCMR__POOL_WAY_MOST) {
        (void)give_oldest(cache, way, CCMR__POOL_WAY_MOST / 2);
    }
    ccmr__pool_way_push(cache, way, address);
}

int ccmr__pool_push_large_quickly(ccmr__pool_cache *cache, size_t bytes,
                                  uintptr_t address)
{
    ccmr__pool_way *way = row_of(cache, bytes);

    if (__builtin_expect(way->bytes != bytes, 0)) {
        way = find_way(way, bytes);
    }
    /* One block is kept whatever its size: to free it and allocate it again
     * is the commonest thing of all. */
    if (__builtin_expect(way == NULL || way->count == CCMR__POOL_WAY_MOST ||
                             (cache->large_bytes != 0 &&
                              cache->large_bytes + bytes > cache->large_most),
                         0)) {
        return 0;
    }
    ccmr__pool_way_push(cache, way, address);
    return 1;
}

void ccmr__pool_push_large(ccmr__pool_cache *cache, size_t bytes,
                           uintptr_t address)
{
    if (!ccmr__pool_push_large_quickly(cache, bytes, address)) {
        ccmr__pool_push_large_slowly(cache, bytes, address);
    }
}
