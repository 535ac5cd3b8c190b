/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Segments: what the upstream gave, and whose an address is.
 *
 *   map  version | [base bytes segment] [base bytes segment] ...  by address
 *
 * Readers take no lock: they search and look whether the version has stayed
 * the same and even: a seqlock, whose entries are read with acquire and written
 * with release, so that no fence is needed. A map that is outgrown is
 * kept until the pool ends: together they are less than twice the last one.
 */
#include <stdlib.h>

#include "lib/error.h"
#include "resources/pool/pool.h"
#include "resources/pool/range.h"

/* Index of the first place that ends beyond the address. */
static size_t search(const ccmr__pool_map *map, size_t count,
                     uintptr_t address)
{
    size_t low = 0;

    while (low < count) {
        size_t middle = low + (count - low) / 2;
        const ccmr__pool_place *place = &map->places[middle];
        uintptr_t base =
            atomic_load_explicit(&place->base, memory_order_acquire);
        size_t bytes =
            atomic_load_explicit(&place->bytes, memory_order_acquire);

        if (address >= base && address - base >= bytes) {
            low = middle + 1;
        } else if (address < base) {
            count = middle;
        } else {
            return middle;
        }
    }
    return low;
}

static ccmr__pool_segment *look(const ccmr__pool_map *map, size_t count,
                                uintptr_t address)
{
    size_t i;

    if (map == NULL || count > map->room) {
        return NULL;
    }
    i = search(map, count, address);
    if (i == count || atomic_load_explicit(&map->places[i].base,
                                           memory_order_acquire) > address) {
        return NULL;
    }
    return atomic_load_explicit(&map->places[i].segment, memory_order_acquire);
}

ccmr__pool_segment *ccmr__pool_segment_of(ccmr__pool *pool, uintptr_t address)
{
    for (;;) {
        unsigned before =
            atomic_load_explicit(&pool->map_version, memory_order_acquire);
        ccmr__pool_segment *found = look(
            atomic_load_explicit(&pool->map, memory_order_acquire),
            atomic_load_explicit(&pool->segment_count, memory_order_acquire),
            address);

        if ((before & 1) == 0 &&
            atomic_load_explicit(&pool->map_version, memory_order_relaxed) ==
                before) {
            return found == NULL || pool->range == NULL ||
                           found != pool->range->segment ||
                           ccmr__pool_range_has(pool->range, address)
                       ? found
                       : NULL;
        }
    }
}

/* ---- writing, under pool->lock ------------------------------------------------ */

static void begin(ccmr__pool *pool)
{
    atomic_fetch_add_explicit(&pool->map_version, 1, memory_order_relaxed);
}

static void end(ccmr__pool *pool)
{
    atomic_fetch_add_explicit(&pool->map_version, 1, memory_order_release);
    ccmr__quick_revoke(); /* of what caches know */
}

static void write_place(ccmr__pool_place *place, uintptr_t base, size_t bytes,
                        ccmr__pool_segment *segment)
{
    atomic_store_explicit(&place->base, base, memory_order_release);
    atomic_store_explicit(&place->bytes, bytes, memory_order_release);
    atomic_store_explicit(&place->segment, segment, memory_order_release);
}

static void copy_place(ccmr__pool_place *to, const ccmr__pool_place *from)
{
    write_place(to, atomic_load_explicit(&from->base, memory_order_relaxed),
                atomic_load_explicit(&from->bytes, memory_order_relaxed),
                atomic_load_explicit(&from->segment, memory_order_relaxed));
}

/* Room for one more. Returns 0, or -1 without memory. */
static int make_room(ccmr__pool *pool)
{
    ccmr__pool_map *old =
        atomic_load_explicit(&pool->map, memory_order_relaxed);
    size_t count =
        atomic_load_explicit(&pool->segment_count, memory_order_relaxed);
    size_t room = old == NULL ? 16 : old->room * 2;
    ccmr__pool_map *map;
    size_t i;

    if (old != NULL && count + pool->places_promised < old->room) {
        return 0;
    }
    map = calloc(1, sizeof(*map) + room * sizeof(map->places[0]));
    if (map == NULL) {
        return -1;
    }
    map->older = old;
    map->room = room;
    for (i = 0; i < count; i++) {
        copy_place(&map->places[i], &old->places[i]);
    }
    atomic_store_explicit(&pool->map, map, memory_order_release);
    return 0;
}

static void add(ccmr__pool *pool, ccmr__pool_segment *segment)
{
    ccmr__pool_map *map =
        atomic_load_explicit(&pool->map, memory_order_relaxed);
    size_t count =
        atomic_load_explicit(&pool->segment_count, memory_order_relaxed);
    size_t at = search(map, count, segment->base);
    size_t i;

    begin(pool);
    for (i = count; i > at; i--) {
        copy_place(&map->places[i], &map->places[i - 1]);
    }
    write_place(&map->places[at], segment->base, segment->bytes, segment);
    atomic_store_explicit(&pool->segment_count, count + 1,
                          memory_order_release);
    end(pool);
}

static void take_out(ccmr__pool *pool, const ccmr__pool_segment *segment)
{
    ccmr__pool_map *map =
        atomic_load_explicit(&pool->map, memory_order_relaxed);
    size_t count =
        atomic_load_explicit(&pool->segment_count, memory_order_relaxed);
    size_t i = search(map, count, segment->base);

    begin(pool);
    for (; i + 1 < count; i++) {
        copy_place(&map->places[i], &map->places[i + 1]);
    }
    atomic_store_explicit(&pool->segment_count, count - 1,
                          memory_order_release);
    end(pool);
}

/* ---- the upstream --------------------------------------------------------------- */

/* A record and a place in the map for one more segment, which are its own
 * until it is added. NULL without memory. */
static ccmr__pool_segment *take_record(ccmr__pool *pool)
{
    ccmr__pool_segment *segment;

    (void)pthread_mutex_lock(&pool->lock);
    segment = pool->spare_segments;
    if (segment != NULL) {
        pool->spare_segments = segment->next;
    }
    (void)pthread_mutex_unlock(&pool->lock);
    return segment != NULL ? segment : calloc(1, sizeof(*segment));
}

static void spare_record(ccmr__pool *pool, ccmr__pool_segment *segment)
{
    (void)pthread_mutex_lock(&pool->lock);
    segment->next = pool->spare_segments;
    pool->spare_segments = segment;
    (void)pthread_mutex_unlock(&pool->lock);
}

static ccmr_status fail_memory(void)
{
    return ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                      "no memory for a pool's segment");
}

ccmr_status ccmr__pool_segment_get(ccmr__pool *pool, size_t bytes,
                                   size_t alignment, ccmr_stream stream,
                                   ccmr__pool_segment **got)
{
    ccmr__pool_segment *segment = take_record(pool);
    ccmr_status status;
    void *ptr;
    int room;

    if (segment == NULL) {
        return fail_memory();
    }
    status =
        ccmr_resource_allocate(pool->upstream, bytes, alignment, stream, &ptr);
    if (status != CCMR_SUCCESS) {
        goto err_record;
    }
    segment->base = (uintptr_t)ptr;
    segment->bytes = bytes;
    segment->alignment = alignment;
    (void)pthread_mutex_lock(&pool->lock);
    room = make_room(pool);
    if (room == 0) {
        add(pool, segment);
    }
    (void)pthread_mutex_unlock(&pool->lock);
    if (room != 0) {
        /* Nobody has used it. */
        (void)ccmr_resource_deallocate(pool->upstream, ptr, bytes, alignment,
                                       stream);
        status = fail_memory();
        goto err_record;
    }
    *got = segment;
    return CCMR_SUCCESS;

err_record:
    spare_record(pool, segment);
    return status;
}

int ccmr__pool_segment_leave(ccmr__pool *pool, ccmr__pool_segment *segment)
{
    int leaves;

    (void)pthread_mutex_lock(&pool->lock);
    leaves = atomic_load_explicit(&segment->pins, memory_order_relaxed) == 0;
    if (leaves) {
        take_out(pool, segment);
        pool->places_promised++;
    }
    (void)pthread_mutex_unlock(&pool->lock);
    return leaves;
}

ccmr_status ccmr__pool_segment_return(ccmr__pool *pool,
                                      ccmr__pool_segment *segment)
{
    ccmr_status status = ccmr_resource_deallocate(
        pool->upstream, (void *)segment->base, segment->bytes,
        segment->alignment, CCMR_STREAM_READY);

    (void)pthread_mutex_lock(&pool->lock);
    pool->places_promised--;
    if (status != CCMR_SUCCESS) {
        add(pool, segment);
    }
    (void)pthread_mutex_unlock(&pool->lock);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    spare_record(pool, segment);
    return CCMR_SUCCESS;
}

ccmr_status ccmr__pool_segment_give(ccmr__pool *pool,
                                    ccmr__pool_segment *segment)
{
    return ccmr__pool_segment_leave(pool, segment)
               ? ccmr__pool_segment_return(pool, segment)
               : CCMR_ERROR_BUSY;
}

ccmr__pool_segment *ccmr__pool_segment_add(ccmr__pool *pool, uintptr_t base,
                                           size_t bytes, size_t alignment)
{
    ccmr__pool_segment *segment = take_record(pool);
    int room;

    if (segment == NULL) {
        return NULL;
    }
    segment->base = base;
    segment->bytes = bytes;
    segment->alignment = alignment;
    (void)pthread_mutex_lock(&pool->lock);
    room = make_room(pool);
    if (room == 0) {
        add(pool, segment);
    }
    (void)pthread_mutex_unlock(&pool->lock);
    if (room != 0) {
        spare_record(pool, segment);
        return NULL;
    }
    return segment;
}

void ccmr__pool_segment_drop(ccmr__pool *pool, ccmr__pool_segment *segment)
{
    (void)pthread_mutex_lock(&pool->lock);
    take_out(pool, segment);
    (void)pthread_mutex_unlock(&pool->lock);
    spare_record(pool, segment);
}

void ccmr__pool_segments_leave(ccmr__pool *pool,
                               const ccmr__pool_capture *capture)
{
    ccmr__pool_map *map;
    size_t count;
    size_t i;

    (void)pthread_mutex_lock(&pool->lock);
    map = atomic_load_explicit(&pool->map, memory_order_relaxed);
    count = atomic_load_explicit(&pool->segment_count, memory_order_relaxed);
    for (i = 0; i < count; i++) {
        ccmr__pool_segment *segment = atomic_load_explicit(
            &map->places[i].segment, memory_order_relaxed);

        if (atomic_load_explicit(&segment->capture, memory_order_relaxed) ==
            capture) {
            atomic_store_explicit(&segment->capture, NULL,
                                  memory_order_release);
        }
    }
    (void)pthread_mutex_unlock(&pool->lock);
}

size_t ccmr__pool_pins_of_segments(ccmr__pool *pool)
{
    const ccmr__pool_map *map;
    size_t pins = 0;
    size_t count;
    size_t i;

    (void)pthread_mutex_lock(&pool->lock);
    map = atomic_load_explicit(&pool->map, memory_order_relaxed);
    count = atomic_load_explicit(&pool->segment_count, memory_order_relaxed);
    for (i = 0; i < count; i++) {
        const ccmr__pool_segment *segment = atomic_load_explicit(
            &map->places[i].segment, memory_order_relaxed);

        pins += atomic_load_explicit(&segment->pins, memory_order_relaxed);
    }
    (void)pthread_mutex_unlock(&pool->lock);
    return pins;
}

void ccmr__pool_segments_end(ccmr__pool *pool)
{
    ccmr__pool_map *map =
        atomic_load_explicit(&pool->map, memory_order_relaxed);
    ccmr__pool_segment *segment = pool->spare_segments;

    while (segment != NULL) {
        ccmr__pool_segment *next = segment->next;

        free(segment);
        segment = next;
    }
    while (map != NULL) {
        ccmr__pool_map *older = map->older;

        free(map);
        map = older;
    }
}
