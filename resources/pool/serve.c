/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool: allocate and deallocate.
 *
 * The way that must be fast: which cache is it, in, pop or push, out. A
 * registered stream that is the same as the last time costs no question to
 * the driver, others two: whether it captures, and which stream it is.
 */
#include "lib/error.h"
#include "lib/upstream.h"
#include "resources/pool/pool.h"

#define SHARE 16u
#define SHARE_OF_MANY 64u
#define LEAST_SHARE ((size_t)4 << 20)
/* How much sooner a stream gets an event if it is not registered: where there
 * are others, and where they look for memory in vain. */
#define EARLIER 4u
#define SCARCE 16u

ccmr_status ccmr__pool_resolve(ccmr__pool *pool, ccmr_stream stream,
                               ccmr__stream_use *use,
                               ccmr__stream_record **record)
{
    ccmr__scope scope;
    ccmr_status status;

    if (!ccmr__stream_is_token(stream)) {
        *record = ccmr__stream_find(stream);
        return ccmr__stream_resolve(stream, pool->device, use);
    }
    *record = NULL;
    status = ccmr__scope_enter(&scope, pool->device, 0);
    if (status == CCMR_SUCCESS) {
        status = ccmr__stream_resolve(stream, pool->device, use);
        ccmr__scope_leave(&scope);
    }
    return status;
}

ccmr_status ccmr__pool_meet(ccmr__pool *pool, ccmr_stream stream,
                            ccmr__stream_use *use,
                            ccmr__stream_record **record)
{
    ccmr_status status = ccmr__pool_resolve(pool, stream, use, record);

    if (status == CCMR_SUCCESS && pool->options.registered &&
        !use->registered) {
        *record = ccmr__stream_learn(stream, pool->device, use);
    }
    return status;
}

/* The cache that the thread used last, if the stream is still the same one,
 * and may be used: no driver call for registered streams. */
static inline ccmr__pool_cache *last_cache(const ccmr__pool *pool,
                                           const ccmr__thread *thread,
                                           ccmr_stream stream)
{
    const ccmr__thread_pools *pools = thread->pools;
    ccmr__stream_record *record;

    if (__builtin_expect(pools == NULL || pools->last.serial != pool->serial ||
                             pools->last.stream != stream,
                         0)) {
        return NULL;
    }
    record = pools->last.record;
    if (__builtin_expect(record == NULL, 0) ||
        atomic_load_explicit(&record->usable, memory_order_acquire) !=
            pools->last.id) {
        return NULL;
    }
    return pools->last.cache;
}

/* Who asks, as far as it is known without a cache. */
typedef struct caller {
    ccmr__stream_use use;
    ccmr__stream_record *record;
    ccmr__pool_cache *cache; /* NULL: none, then `lane` is in use */
    ccmr__pool_lane *lane;
} caller;

/* How much of large blocks a cache keeps: a share of what is reserved, smaller
 * where many streams have caches. A block of any size is kept if it is alone.
 * The owner, not inside. */
static void set_share(const ccmr__pool *pool, ccmr__pool_cache *cache)
{
    size_t reserved =
        atomic_load_explicit(&pool->reserved, memory_order_relaxed);
    int many = atomic_load_explicit(&pool->many, memory_order_relaxed);
    size_t share = reserved / (many ? SHARE_OF_MANY : SHARE);

    share = share > LEAST_SHARE ? share : LEAST_SHARE;
    ccmr__pool_enter(cache);
    cache->large_most = ccmr__pool_is_tight(pool) ? 0 : share;
    ccmr__pool_leave(cache);
}

/* Any stream: asks what it is, finds or makes its cache. Pools over memory
 * that the host touches have none. */
static ccmr_status __attribute__((noinline))
find_any_caller(ccmr__pool *pool, ccmr_stream stream, caller *who)
{
    ccmr_status status =
        ccmr__pool_meet(pool, stream, &who->use, &who->record);
    const ccmr__thread_pools *pools;

    if (status != CCMR_SUCCESS) {
        return status;
    }
    pools = ccmr__thread_self()->pools;
    if (pools != NULL && pools->last.serial == pool->serial &&
        pools->last.stream == stream && pools->last.id == who->use.id &&
        pools->last.record == who->record &&
        !ccmr__pool_cache_stale(pools->last.cache)) {
        who->cache = pools->last.cache;
    } else {
        who->cache = pool->host_access
                         ? NULL
                         : ccmr__pool_cache_find(pool, &who->use, who->record);
    }
    if (who->cache != NULL) {
        who->lane = who->cache->lane;
        return CCMR_SUCCESS;
    }
    return ccmr__pool_lane_get(pool, &who->use, who->record, &who->lane);
}

/* With capture=reserve a capturing stream is no failure: nothing was said. */
static ccmr_status find_caller(ccmr__pool *pool, ccmr_stream stream,
                               caller *who)
{
    ccmr_error_detail before;
    ccmr_status status;

    if (!pool->options.reserve) {
        return find_any_caller(pool, stream, who);
    }
    before = *ccmr__error();
    status = find_any_caller(pool, stream, who);
    if (status == CCMR_ERROR_CAPTURING) {
        *ccmr__error() = before;
    }
    return status;
}

static void put_caller(const caller *who)
{
    if (who->cache == NULL) {
        ccmr__pool_lane_put(who->lane);
    }
}

/* ---- allocate ------------------------------------------------------------------- */

/* A cached block, or 0. */
static inline uintptr_t pop(ccmr__pool_cache *cache, size_t bytes)
{
    uintptr_t address = 0;

    ccmr__pool_enter(cache);
    if (__builtin_expect(bytes <= CCMR__POOL_SMALL, 1)) {
        ccmr__pool_bin *bin = &cache->bins[ccmr__pool_class(bytes)];

        if (__builtin_expect(bin->count != 0, 1)) {
            address = bin->blocks[--bin->count];
        }
    } else if (bytes <= CCMR__POOL_MOST) {
        address = ccmr__pool_pop_large(cache, ccmr__pool_rounded(bytes));
    }
    ccmr__pool_leave(cache);
    return address;
}

/* How many blocks of a class are taken side by side. */
static size_t run_of(const ccmr__pool_cache *cache, size_t bytes)
{
    size_t run;

    if (cache == NULL || bytes > CCMR__POOL_SMALL) {
        return 1;
    }
    run = CCMR__POOL_SMALL / bytes;
    return run > 16 ? 16 : run;
}

/* The rest of a run goes into the cache, the last one first, so that they are
 * handed out upwards. */
static void keep_run(ccmr__pool_request *request)
{
    ccmr__pool_bin *bin =
        &request->cache->bins[ccmr__pool_class(request->bytes)];
    ccmr__pool_piece rest = request->piece;
    size_t left = request->blocks - 1;

    ccmr__pool_enter(request->cache);
    while (left > 0 && bin->count < bin->most) {
        bin->blocks[bin->count++] =
            request->piece.address + left * request->bytes;
        left--;
    }
    ccmr__pool_leave(request->cache);
    if (left > 0) {
        rest.address += request->bytes;
        rest.bytes = left * request->bytes;
        ccmr__pool_bring(request->lane, &rest, left);
    }
}

/* The cache has none, or there is no cache: run_of() says how many. */
static ccmr_status allocate_for(ccmr__pool_request *request, void **ptr)
{
    ccmr_status status;

    if (request->cache != NULL) {
        set_share(request->pool, request->cache);
    }
    status = ccmr__pool_serve(request);
    if (status == CCMR_SUCCESS) {
        *ptr = (void *)request->piece.address;
        if (request->blocks > 1) {
            keep_run(request);
        }
    }
    return status;
}

ccmr_status ccmr__pool_allocate_anew(ccmr__pool_cache *cache, size_t bytes,
                                     ccmr_stream stream, void **ptr)
{
    size_t rounded = ccmr__pool_rounded(bytes);
    ccmr__pool_request request = {.pool = cache->lane->pool,
                                  .cache = cache,
                                  .lane = cache->lane,
                                  .stream = stream,
                                  .handle = stream,
                                  .bytes = rounded,
                                  .alignment = CCMR__POOL_GRANULE,
                                  .run = run_of(cache, rounded)};

    return allocate_for(&request, ptr);
}

static ccmr_status __attribute__((noinline))
allocate_slowly(ccmr__pool *pool, size_t bytes, size_t alignment,
                ccmr_stream stream, void **ptr)
{
    ccmr__pool_request request = {.pool = pool, .stream = stream, .run = 1};
    ccmr_status status;
    caller who;

    if (bytes > CCMR__POOL_MOST) {
        return ccmr__fail(CCMR_ERROR_INVALID_SIZE,
                          "size %zu is more than a pool can have", bytes);
    }
    status = find_caller(pool, stream, &who);
    if (status == CCMR_ERROR_CAPTURING && pool->options.reserve) {
        return ccmr__pool_capture_allocate(pool, bytes, alignment, stream,
                                           ptr);
    }
    if (status != CCMR_SUCCESS) {
        return status;
    }
    request.cache = who.cache;
    request.lane = who.lane;
    request.handle = who.use.handle;
    request.bytes = ccmr__pool_rounded(bytes);
    request.alignment =
        alignment > CCMR__POOL_GRANULE ? alignment : CCMR__POOL_GRANULE;
    if (who.cache != NULL && alignment <= CCMR__POOL_GRANULE) {
        uintptr_t address = pop(who.cache, bytes);

        if (address != 0) {
            *ptr = (void *)address;
            return CCMR_SUCCESS;
        }
        request.run = run_of(who.cache, request.bytes);
    }
    status = allocate_for(&request, ptr);
    put_caller(&who);
    return status;
}

ccmr_status ccmr__pool_allocate(void *object, size_t bytes, size_t alignment,
                                ccmr_stream stream, void **ptr)
{
    ccmr__pool *pool = object;
    ccmr__pool_cache *cache = last_cache(pool, ccmr__thread_self(), stream);

    if (__builtin_expect(cache != NULL && alignment <= CCMR__POOL_GRANULE,
                         1)) {
        uintptr_t address = pop(cache, bytes);

        if (__builtin_expect(address != 0, 1)) {
            *ptr = (void *)address;
            return CCMR_SUCCESS;
        }
    }
    return allocate_slowly(pool, bytes, alignment, stream, ptr);
}

/* ---- deallocate ------------------------------------------------------------------- */

static ccmr_status __attribute__((cold))
refuse(const void *ptr, const ccmr__pool_segment *segment, size_t bytes)
{
    if (segment == NULL || ((uintptr_t)ptr & (CCMR__POOL_GRANULE - 1)) != 0) {
        return ccmr__fail(CCMR_ERROR_INVALID_POINTER,
                          "%p is not the address of a live block", ptr);
    }
    return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                      "%p: %zu bytes there are more than the segment has", ptr,
                      bytes);
}

/* May a block of that many (rounded) bytes be there? */
static inline int inside(uintptr_t address, size_t bytes, uintptr_t base,
                         size_t length)
{
    return address - base < length && length - (address - base) >= bytes &&
           (address & (CCMR__POOL_GRANULE - 1)) == 0;
}

/* Into a cache that is the caller's. */
static inline void push(ccmr__pool_cache *cache, uintptr_t address,
                        size_t bytes, size_t rounded)
{
    ccmr__pool_enter(cache);
    if (__builtin_expect(bytes <= CCMR__POOL_SMALL, 1)) {
        unsigned index = ccmr__pool_class(bytes);
        ccmr__pool_bin *bin = &cache->bins[index];

        if (__builtin_expect(bin->count < bin->most, 1)) {
            bin->blocks[bin->count++] = address;
        } else {
            ccmr__pool_push_small_slowly(cache, index, address);
        }
    } else {
        ccmr__pool_push_large(cache, rounded, address);
    }
    ccmr__pool_leave(cache);
}

/* An event for what came to the lane, if that is much. What is not covered
 * can wait: a failure is nobody's. */
static void __attribute__((noinline))
cover(ccmr__pool_lane *lane, CUstream stream)
{
    ccmr_error_detail before;
    ccmr__scope scope;

    if (!ccmr__stream_is_token(stream) &&
        ccmr__pool_record_at_hand(lane, stream)) {
        return;
    }
    before = *ccmr__error();
    if (ccmr__scope_enter(&scope, lane->pool->device, CCMR__SCOPE_RELAXED) ==
        CCMR_SUCCESS) {
        (void)ccmr__pool_record(lane, stream);
        ccmr__scope_leave(&scope);
    }
    *ccmr__error() = before;
}

static inline int needs_cover(const ccmr__pool *pool,
                              const ccmr__pool_lane *lane)
{
    return __builtin_expect(
               atomic_load_explicit(&pool->many, memory_order_relaxed) != 0 &&
                   atomic_load_explicit(&lane->uncovered_bytes,
                                        memory_order_relaxed) >
                       atomic_load_explicit(&pool->uncovered_most,
                                            memory_order_relaxed),
               0) != 0;
}

/* On a stream that is not registered nobody else can record: it does so sooner
 * where there are others, lest it leave much behind when it frees nothing any
 * more. While others look for memory in vain, what its cache has goes to the
 * lane first, to be covered as well. */
static void cover_early(ccmr__pool *pool, const caller *who)
{
    size_t most =
        atomic_load_explicit(&pool->uncovered_most, memory_order_relaxed);
    size_t bytes = atomic_load_explicit(&who->lane->uncovered_bytes,
                                        memory_order_relaxed);
    unsigned scarce =
        atomic_load_explicit(&pool->scarce, memory_order_relaxed);

    if (scarce != 0) {
        most /= SCARCE;
        ccmr__pool_enter(who->cache); /* a thief may be in it */
        bytes += who->cache->large_bytes;
        ccmr__pool_leave(who->cache);
    } else if (atomic_load_explicit(&pool->many, memory_order_relaxed) != 0) {
        most /= EARLIER;
    }
    if (bytes <= most) {
        return;
    }
    if (scarce != 0) {
        atomic_store_explicit(&pool->scarce, scarce - 1, memory_order_relaxed);
        ccmr__pool_enter(who->cache);
        (void)ccmr__pool_flush_large(who->cache);
        ccmr__pool_leave(who->cache);
    }
    cover(who->lane, who->use.handle);
}

/* No cache: straight to the lane, with an event where the host has to know. */
static void free_to_lane(ccmr__pool *pool, const caller *who,
                         ccmr__pool_piece *piece)
{
    ccmr__pool_lane *lane = who->lane;

    ccmr__pool_lane_lock(lane);
    piece->waits = (ccmr__pool_waits){
        .count = 1, .lanes = {lane}, .numbers = {++lane->freed}};
    lane->uncovered_bytes += piece->bytes;
    ccmr__pool_lane_unlock(lane);
    ccmr__pool_bring(lane, piece, 1);
    if (pool->host_access || needs_cover(pool, lane)) {
        cover(lane, who->use.handle);
    }
}

/* Where a block is, if one can be there. */
static ccmr_status locate(ccmr__pool *pool, void *ptr, size_t bytes,
                          ccmr__pool_piece *piece)
{
    *piece = (ccmr__pool_piece){.address = (uintptr_t)ptr};
    if (bytes > CCMR__POOL_MOST) {
        return refuse(ptr, NULL, bytes);
    }
    piece->bytes = ccmr__pool_rounded(bytes);
    piece->segment = ccmr__pool_segment_of(pool, piece->address);
    if (piece->segment == NULL ||
        !inside(piece->address, piece->bytes, piece->segment->base,
                piece->segment->bytes)) {
        return refuse(ptr, piece->segment, bytes);
    }
    return CCMR_SUCCESS;
}

/* A block of a graph, on a stream that does not capture. 0: it is none. */
static int free_captured(ccmr__pool *pool, const caller *who,
                         ccmr__pool_piece *piece)
{
    if (!CCMR__POOL_IS_CAPTURED(piece->segment) ||
        !ccmr__pool_free_reserved(pool, piece, who->lane)) {
        return 0;
    }
    if (who->record == NULL) {
        cover(who->lane, who->use.handle); /* nobody could later */
    }
    return 1;
}

static ccmr_status free_without_cache(ccmr__pool *pool, const caller *who,
                                      void *ptr, size_t bytes)
{
    ccmr__pool_piece piece;
    ccmr_status status = locate(pool, ptr, bytes, &piece);

    if (status == CCMR_SUCCESS && ccmr__pool_has_notes(pool)) {
        status =
            ccmr__pool_follow_notes(pool, ptr, who->lane, who->use.handle);
    }
    if (status == CCMR_SUCCESS && !free_captured(pool, who, &piece)) {
        free_to_lane(pool, who, &piece);
    }
    put_caller(who);
    return status;
}

/* There is a cache, which blocks of graphs do not go to. */
static ccmr_status free_beside_cache(ccmr__pool *pool, const caller *who,
                                     void *ptr, ccmr__pool_piece *piece)
{
    ccmr_status status = CCMR_SUCCESS;

    if (ccmr__pool_has_notes(pool)) {
        status =
            ccmr__pool_follow_notes(pool, ptr, who->lane, who->use.handle);
    }
    if (status == CCMR_SUCCESS && !free_captured(pool, who, piece)) {
        free_to_lane(pool, who, piece);
    }
    return status;
}

static ccmr_status free_ready(ccmr__pool *pool, void *ptr, size_t bytes)
{
    ccmr__pool_piece piece;
    ccmr_status status = locate(pool, ptr, bytes, &piece);

    if (status == CCMR_SUCCESS) {
        if (ccmr__pool_has_notes(pool)) {
            status = ccmr__pool_notes_to_waits(pool, ptr, &piece.waits);
        }
        if (status == CCMR_SUCCESS &&
            !(CCMR__POOL_IS_CAPTURED(piece.segment) &&
              ccmr__pool_free_reserved(pool, &piece, NULL))) {
            ccmr__pool_bring(pool->common, &piece, 1);
        }
    }
    return status;
}

/* Is a block of that many (rounded) bytes where the cache's last one was? */
static inline int is_known(const ccmr__pool *pool,
                           const ccmr__pool_cache *cache, const void *ptr,
                           size_t rounded)
{
    return __builtin_expect(
               cache->known_version ==
                       atomic_load_explicit(&pool->map_version,
                                            memory_order_relaxed) &&
                   inside((uintptr_t)ptr, rounded, cache->known_base,
                          cache->known_bytes),
               1) != 0;
}

/* Is a small block, however it is rounded, where the cache's last one was? */
static inline int is_inside(const ccmr__pool *pool,
                            const ccmr__pool_cache *cache, const void *ptr)
{
    uintptr_t offset = (uintptr_t)ptr - cache->known_base;

    return __builtin_expect(
               cache->known_version ==
                       atomic_load_explicit(&pool->map_version,
                                            memory_order_relaxed) &&
                   offset < cache->known_bytes &&
                   cache->known_bytes - offset >= CCMR__POOL_SMALL &&
                   ((uintptr_t)ptr & (CCMR__POOL_GRANULE - 1)) == 0,
               1) != 0;
}

static inline void free_to_cache(ccmr__pool *pool, ccmr__pool_cache *cache,
                                 CUstream stream, void *ptr, size_t bytes,
                                 size_t rounded)
{
    push(cache, (uintptr_t)ptr, bytes, rounded);
    if (needs_cover(pool, cache->lane)) {
        cover(cache->lane, stream);
    }
}

void ccmr__pool_free_anew(ccmr__pool_cache *cache, void *ptr, size_t bytes,
                          ccmr_stream stream)
{
    ccmr__pool_lane *lane = cache->lane;

    ccmr__pool_enter(cache);
    if (bytes <= CCMR__POOL_SMALL) {
        ccmr__pool_push_small_slowly(cache, ccmr__pool_class(bytes),
                                     (uintptr_t)ptr);
    } else {
        ccmr__pool_push_large_slowly(cache, ccmr__pool_rounded(bytes),
                                     (uintptr_t)ptr);
    }
    ccmr__pool_leave(cache);
    if (needs_cover(lane->pool, lane)) {
        cover(lane, stream);
    }
}

/* The segment of a live block; inside, since thieves read it. */
static void learn(ccmr__pool_cache *cache, ccmr__pool_segment *segment,
                  unsigned version)
{
    ccmr__pool_enter(cache);
    cache->known_version = version;
    cache->known_base = segment->base;
    cache->known_bytes = segment->bytes;
    cache->known_segment = segment;
    ccmr__pool_leave(cache);
}

static ccmr_status __attribute__((noinline))
deallocate_slowly(ccmr__pool *pool, void *ptr, size_t bytes,
                  ccmr_stream stream)
{
    ccmr__pool_piece piece;
    ccmr_status status;
    caller who;

    if (stream == CCMR_STREAM_READY) {
        return free_ready(pool, ptr, bytes);
    }
    status = find_caller(pool, stream, &who);
    if (status == CCMR_ERROR_CAPTURING && pool->options.reserve) {
        status = locate(pool, ptr, bytes, &piece);
        return status == CCMR_SUCCESS
                   ? ccmr__pool_capture_free(pool, &piece, stream)
                   : status;
    }
    if (status != CCMR_SUCCESS) {
        return status;
    }
    if (who.cache == NULL) {
        return free_without_cache(pool, &who, ptr, bytes);
    }
    if (bytes > CCMR__POOL_MOST ||
        !is_known(pool, who.cache, ptr, ccmr__pool_rounded(bytes))) {
        unsigned version =
            atomic_load_explicit(&pool->map_version, memory_order_acquire);

        status = locate(pool, ptr, bytes, &piece);
        if (status != CCMR_SUCCESS) {
            return status;
        }
        if (CCMR__POOL_IS_CAPTURED(piece.segment)) {
            return free_beside_cache(pool, &who, ptr, &piece);
        }
        learn(who.cache, piece.segment, version);
    }
    if (ccmr__pool_has_notes(pool)) {
        status = ccmr__pool_follow_notes(pool, ptr, who.lane, who.use.handle);
        if (status != CCMR_SUCCESS) {
            return status;
        }
    }
    if (who.record == NULL) {
        push(who.cache, (uintptr_t)ptr, bytes, ccmr__pool_rounded(bytes));
        cover_early(pool, &who);
    } else {
        free_to_cache(pool, who.cache, who.use.handle, ptr, bytes,
                      ccmr__pool_rounded(bytes));
    }
    if (stream == CCMR_STREAM_PER_THREAD && bytes > CCMR__POOL_MIDDLE) {
        /* Its thread may end, and nobody else can name its stream. */
        ccmr__pool_enter(who.cache);
        (void)ccmr__pool_flush_large(who.cache);
        ccmr__pool_leave(who.cache);
        cover(who.lane, who.use.handle);
    }
    return CCMR_SUCCESS;
}

ccmr_status ccmr__pool_deallocate(void *object, void *ptr, size_t bytes,
                                  size_t alignment, ccmr_stream stream)
{
    ccmr__pool *pool = object;
    ccmr__pool_cache *cache = last_cache(pool, ccmr__thread_self(), stream);

    (void)alignment; /* blocks of all alignments are alike */
    if (__builtin_expect(cache != NULL && bytes <= CCMR__POOL_MOST, 1) &&
        !ccmr__pool_has_notes(pool)) {
        size_t rounded = bytes;

        if (bytes > CCMR__POOL_SMALL ||
            !is_inside(pool, cache, ptr)) { /* not by far: look closely */
            rounded = ccmr__pool_rounded(bytes);
            if (!is_known(pool, cache, ptr, rounded)) {
                return deallocate_slowly(pool, ptr, bytes, stream);
            }
        }
        free_to_cache(pool, cache, stream, ptr, bytes, rounded);
        return CCMR_SUCCESS;
    }
    return deallocate_slowly(pool, ptr, bytes, stream);
}
