/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool's caches: what they keep and give, whose they are, and that a thief
 * and an owner are never inside at the same time.
 */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "lib/process.h"
#include "lib/thread.h"
#include "tests/support/tap.h"
#include "tests/unit/pool_stubs.h"

#define MIB ((size_t)1 << 20)

static void push_run(ccmr__pool_cache *cache, size_t bytes, uintptr_t first,
                     unsigned count)
{
    unsigned i;

    for (i = 0; i < count; i++) {
        stub_push(cache, bytes, first + i * bytes);
    }
}

/* Is note i this piece? */
static int is_note(size_t i, uintptr_t address, size_t bytes, size_t blocks)
{
    const stub_note *note = &stub.notes[i];

    if (i >= stub.count || note->piece.address != address ||
        note->piece.bytes != bytes || note->blocks != blocks) {
        tap_diag("piece %zu of %zu: %zu bytes, %zu blocks at +%zu", i,
                 stub.count, note->piece.bytes, note->blocks,
                 (size_t)(note->piece.address - STUB_BASE));
        return 0;
    }
    return 1;
}

/* ---- small ---------------------------------------------------------------------- */

static void test_limits(void)
{
    ccmr__pool *pool = stub_pool_make();
    ccmr__pool_cache *cache = stub_find(pool, 1);

    tap_is_int(cache->bins[0].most, 62, "small blocks: as many as fit");
    tap_is_int(cache->bins[ccmr__pool_class(16384)].most, 32,
               "512 KiB of a class");
    tap_is_int(cache->bins[ccmr__pool_class(65536)].most, 8,
               "8 of the greatest");
    tap_is_size((uintptr_t)cache->ways % 64, 0, "a way is a cache line");
    stub_pool_end(pool);
}

static void test_half(void)
{
    ccmr__pool *pool = stub_pool_make();
    ccmr__pool_cache *cache = stub_find(pool, 1);
    ccmr__pool_lane *lane = cache->lane;

    /* Not in order: 4 to 7 first, then 0 to 3. */
    push_run(cache, 65536, STUB_BASE + 4 * 65536, 4);
    push_run(cache, 65536, STUB_BASE, 4);
    tap_is_size(stub.count, 0, "a bin that fits gives nothing");
    stub_push(cache, 65536, STUB_BASE + 100 * 65536);
    tap_is_size(stub.count, 1, "of a full bin one piece goes");
    tap_ok(is_note(0, STUB_BASE + 4 * 65536, 4 * 65536, 4),
           "it is the older half");
    tap_is_ptr(stub.notes[0].lane, lane, "to its lane");
    tap_ok(!stub.notes[0].brought, "inserted, not brought");
    tap_is_int(stub.notes[0].piece.waits.count, 1, "it waits for one lane");
    tap_is_ptr(stub.notes[0].piece.waits.lanes[0], lane, "its own");
    tap_is_int(stub.notes[0].piece.waits.numbers[0], 1, "up to its number");
    tap_is_int(lane->freed, 1, "which the lane gave");
    tap_is_size(atomic_load(&lane->uncovered_bytes), 4 * 65536,
                "no event covers it");
    tap_is_size(atomic_load(&lane->free_bytes), 4 * 65536,
                "readers see the lane's bytes");
    tap_is_int(atomic_load(&pool->changes), 1, "memory came free");
    tap_is_size(stub_pop(cache, 65536), STUB_BASE + 100 * 65536,
                "the newest comes first");
    tap_is_size(stub_pop(cache, 65536), STUB_BASE + 3 * 65536,
                "then the others, backwards");
    stub_pool_end(pool);
}

static void test_runs(void)
{
    ccmr__pool *pool = stub_pool_make();
    ccmr__pool_cache *cache = stub_find(pool, 1);
    uintptr_t edge = STUB_BASE + STUB_BYTES;
    size_t bytes;

    push_run(cache, 256, STUB_BASE + 4 * 256, 2); /* after a hole */
    stub_push(cache, 256, STUB_BASE + 256);
    stub_push(cache, 256, STUB_BASE + 512);
    stub_push(cache, 256, STUB_BASE);
    push_run(cache, 512, edge - 1024, 4); /* over two segments */
    bytes = ccmr__pool_flush(cache);
    tap_is_size(bytes, 5 * 256 + 4 * 512, "all bytes go");
    tap_is_size(stub.count, 4, "in four pieces");
    tap_ok(is_note(0, STUB_BASE, 768, 3), "a run");
    tap_ok(is_note(1, STUB_BASE + 1024, 512, 2), "the run after the hole");
    tap_ok(is_note(2, edge - 1024, 1024, 2), "up to the segment's end");
    tap_ok(is_note(3, edge, 1024, 2), "the next segment's");
    tap_ok(stub.notes[2].piece.segment->base == STUB_BASE &&
               stub.notes[3].piece.segment->base == edge,
           "each has its segment");
    tap_is_int(cache->lane->freed, 2, "a number for each batch");
    tap_is_size(ccmr__pool_flush(cache), 0, "then nothing is left");
    tap_is_int(cache->lane->freed, 2, "and no number is used up");
    stub_pool_end(pool);
}

/* The set has no record for the second piece. */
static void test_bring(void)
{
    ccmr__pool *pool = stub_pool_make();
    ccmr__pool_cache *cache = stub_find(pool, 1);

    push_run(cache, 256, STUB_BASE, 2);
    push_run(cache, 256, STUB_BASE + 8 * 256, 3);
    push_run(cache, 256, STUB_BASE + 16 * 256, 1);
    stub.insert_limit = 1;
    tap_is_size(ccmr__pool_flush(cache), 6 * 256, "all go");
    tap_is_size(stub.count, 3, "in three pieces");
    tap_ok(is_note(0, STUB_BASE, 512, 2) && !stub.notes[0].brought,
           "the first is inserted");
    tap_ok(is_note(1, STUB_BASE + 8 * 256, 768, 3) && stub.notes[1].brought,
           "the second is brought");
    tap_ok(is_note(2, STUB_BASE + 16 * 256, 256, 1) && stub.notes[2].brought,
           "so is the third");
    tap_is_int(stub.notes[2].piece.waits.numbers[0], 1, "with one number");
    tap_is_size(stub.lookups, 3,
                "without the lock no segment is taken for known");
    tap_is_size(atomic_load(&cache->lane->uncovered_bytes), 6 * 256,
                "counted once");
    stub_pool_end(pool);
}

/* ---- large ---------------------------------------------------------------------- */

static void test_large(void)
{
    ccmr__pool *pool = stub_pool_make();
    ccmr__pool_cache *cache = stub_find(pool, 1);
    uintptr_t a = STUB_BASE;

    tap_is_size(stub_pop(cache, 2 * MIB), 0, "nothing is there at first");
    push_run(cache, 2 * MIB, a, 2);
    tap_is_size(stub_pop(cache, 2 * MIB + 512), 0, "no other size fits");
    tap_is_size(cache->large_bytes, 4 * MIB, "bytes are counted");
    tap_is_size(stub_pop(cache, 2 * MIB), a + 2 * MIB, "the newest first");
    tap_is_size(stub_pop(cache, 2 * MIB), a, "then the other");
    tap_is_size(stub_pop(cache, 2 * MIB), 0, "then none");
    tap_is_size(cache->large_bytes, 0, "none is counted");

    push_run(cache, 2 * MIB, a, 6);
    tap_is_size(stub.count, 0, "six of a size are kept");
    stub_push(cache, 2 * MIB, a + 12 * MIB);
    tap_is_size(stub.count, 1, "the seventh makes room");
    tap_ok(is_note(0, a, 6 * MIB, 3), "the three oldest go");
    tap_is_size(cache->large_bytes, 8 * MIB, "four are left");
    stub_pool_end(pool);
}

static void test_large_limit(void)
{
    ccmr__pool *pool = stub_pool_make();
    ccmr__pool_cache *cache = stub_find(pool, 1);
    uintptr_t a = STUB_BASE;

    cache->large_most = 8 * MIB;
    stub_push(cache, 3 * MIB, a);
    stub_push(cache, 5 * MIB, a + 3 * MIB);
    tap_is_size(stub.count, 0, "just the limit is kept");
    stub_push(cache, 128 << 10, a + 8 * MIB);
    tap_is_size(stub.count, 2, "more is not: the others go");
    tap_is_size(stub_pop(cache, 128 << 10), a + 8 * MIB, "the newest is kept");
    stub_push(cache, 100 * MIB, a);
    tap_is_size(stub_pop(cache, 100 * MIB), a,
                "one is kept whatever its size");
    stub_push(cache, 100 * MIB, a);
    stub_push(cache, 100 * MIB, a + 100 * MIB);
    tap_is_size(cache->large_bytes, 100 * MIB, "but one alone");
    tap_is_size(stub_pop(cache, 100 * MIB), a + 100 * MIB, "the newest");
    stub_pool_end(pool);
}

/* Sizes of one row, found by trying: a size is in the row of another one when
 * its block is there. */
static size_t same_row(ccmr__pool_cache *cache, unsigned number)
{
    size_t bytes = 70 * 1024;

    for (;; bytes += 512) {
        unsigned i;
        int found = 0;

        stub_push(cache, bytes, STUB_BASE);
        for (i = 0; i < CCMR__POOL_ROW; i++) {
            found |= cache->ways[7][i].bytes == bytes;
        }
        (void)stub_pop(cache, bytes);
        if (found && number-- == 0) {
            return bytes;
        }
    }
}

static void test_large_replaced(void)
{
    ccmr__pool *pool = stub_pool_make();
    ccmr__pool_cache *cache = stub_find(pool, 1);
    size_t sizes[5];
    unsigned i;

    for (i = 0; i < 5; i++) {
        sizes[i] = same_row(cache, i);
    }
    (void)ccmr__pool_flush(cache);
    stub.count = 0;
    memset(cache->ways, 0, sizeof(cache->ways));
    for (i = 0; i < 4; i++) {
        push_run(cache, sizes[i], STUB_BASE + i * MIB, i == 1 ? 1 : 2);
    }
    tap_is_size(stub.count, 0, "four sizes of a row are kept");
    stub_push(cache, sizes[4], STUB_BASE + 9 * MIB);
    tap_is_size(stub.count, 1, "of five one goes");
    tap_ok(is_note(0, STUB_BASE + MIB, sizes[1], 1),
           "the one with the fewest bytes");
    tap_is_size(stub_pop(cache, sizes[4]), STUB_BASE + 9 * MIB,
                "the new one is there");
    tap_is_size(stub_pop(cache, sizes[0]), STUB_BASE + sizes[0],
                "and so are the others");
    tap_is_size(stub_pop(cache, sizes[1]), 0, "but the one that went");
    stub_pool_end(pool);
}

/* ---- whose they are --------------------------------------------------------------- */

static void test_find(void)
{
    ccmr__pool *pool = stub_pool_make();
    ccmr__pool *other = stub_pool_make();
    ccmr__pool_cache *cache = stub_find(pool, 1);
    const ccmr__thread_pools *mine = ccmr__thread_self()->pools;

    tap_ok(cache != NULL && mine != NULL, "a thread gets a cache");
    tap_ok(mine->last.cache == cache && mine->last.serial == pool->serial &&
               mine->last.id == 1 && mine->last.stream == (CUstream)64,
           "and remembers it");
    tap_ok(stub_find(pool, 2) != cache, "another stream has another one");
    tap_ok(stub_find(other, 1) != cache, "another pool, too");
    tap_ok(mine->last.serial == other->serial, "the last is remembered");
    tap_is_ptr(stub_find(pool, 1), cache, "the first is found again");
    tap_is_ptr(mine->last.cache, cache, "and remembered");
    tap_is_size(stub_caches(pool, 1), 1, "the lane knows it");
    tap_is_int(stub_lane(pool, 1)->users, 0, "the lane is put back");
    stub.no_memory = 1;
    tap_is_ptr(stub_find(pool, 9), NULL, "no lane, no cache");
    tap_is_int(mine->last.serial, 0, "and nothing remembered");
    tap_is_ptr(stub_find(pool, 1), cache, "what there was stays");
    stub_pool_end(other);
    stub_pool_end(pool);
}

static void test_ninth(void)
{
    ccmr__pool *pool = stub_pool_make();
    uint64_t id;

    /* The entries of earlier tests' pools go first; room is made at the first
     * of some calls that find none. */
    if (ccmr__thread_self()->pools != NULL) {
        ccmr__thread_self()->pools->crowded = 0;
    }
    for (id = 1; id <= 8; id++) {
        (void)stub_find(pool, id);
    }
    ccmr__thread_self()->pools->crowded = 0;
    for (id = 1; id <= 8; id++) {
        stub_push(stub_find(pool, id), 256, STUB_BASE + id * 256);
    }
    tap_is_size(stub.count, 0, "eight streams are kept");
    for (id = 9; stub.count == 0 && id < 20; id++) {
        (void)stub_find(pool, id);
    }
    tap_is_size(id, 10, "the ninth replaces one");
    tap_is_size(stub.count, 1, "whose block goes");
    id = (stub.notes[0].piece.address - STUB_BASE) / 256;
    tap_is_ptr(stub.notes[0].lane, stub_lane(pool, id), "to its own lane");
    tap_is_size(stub_caches(pool, id), 0, "which has no cache any more");
    tap_is_size(stub_caches(pool, 9), 1, "the ninth has");
    tap_is_size(stub_spares(pool), 0, "it is the same one, used again");
    tap_is_size(ccmr__pool_cached_bytes(pool), 7 * 256, "seven are left");
    tap_is_ptr(stub_find(pool, 10), NULL, "the tenth does without");
    tap_is_ptr(stub_find(pool, 11), NULL, "for a while");
    tap_is_size(ccmr__pool_cached_bytes(pool), 7 * 256, "nobody lost any");
    stub_pool_end(pool);
}

static void test_no_record(void)
{
    ccmr__pool *pool = stub_pool_make();
    ccmr__thread *self = ccmr__thread_self();
    ccmr__thread shared = {.slot = CCMR__SLOT_SHARED, .from_reserve = 1};

    ccmr__thread_pointer = &shared;
    tap_is_ptr(stub_find(pool, 1), NULL, "the shared record has no caches");
    tap_ok(shared.pools == NULL, "nor a place for them");
    ccmr__thread_pointer = self;
    stub_pool_end(pool);
}

static void test_retired(void)
{
    ccmr__pool *pool = stub_pool_make();
    ccmr__pool_cache *cache = stub_find(pool, 1);
    ccmr__pool_lane *lane = cache->lane;

    push_run(cache, 256, STUB_BASE, 2);
    push_run(cache, 2 * MIB, STUB_BASE + 2 * MIB, 2);
    stub_retire(pool, 1);
    tap_is_size(stub.count, 2, "a retired stream's blocks go");
    tap_ok(ccmr__pool_cache_stale(cache), "its cache is stale");
    stub_push(cache, 256, STUB_BASE);
    stub_push(cache, 2 * MIB, STUB_BASE + 2 * MIB);
    tap_is_size(stub.count, 4, "it keeps nothing any more");
    tap_is_size(stub_pop(cache, 256) + stub_pop(cache, 2 * MIB), 0,
                "and has nothing");
    cache = stub_find(pool, 1);
    tap_ok(cache->lane != lane && cache->lane->id == 1,
           "the stream, used on, is a new one");
    tap_ok(lane->caches == NULL, "the old lane is free for another stream");
    stub_push(cache, 256, STUB_BASE);
    tap_is_size(stub_pop(cache, 256), STUB_BASE, "the new cache keeps");
    stub_pool_end(pool);
}

/* Of an entry that has to go the one of a retired stream goes first. */
static void test_retired_goes(void)
{
    ccmr__pool *pool = stub_pool_make();
    uint64_t id;

    for (id = 1; id <= 8; id++) {
        (void)stub_find(pool, id);
    }
    stub_retire(pool, 6);
    (void)stub_find(pool, 9);
    for (id = 1; id <= 8; id++) {
        if (id != 6 && stub_caches(pool, id) != 1) {
            break;
        }
    }
    tap_is_int(id, 9, "the others have stayed");
    stub_pool_end(pool);
}

static void test_steal(void)
{
    ccmr__pool *pool = stub_pool_make();
    ccmr__pool_cache *one = stub_find(pool, 1);
    ccmr__pool_cache *two = stub_find(pool, 2);

    push_run(one, 256, STUB_BASE, 2);
    push_run(two, 512, STUB_BASE + MIB, 2);
    tap_is_size(ccmr__pool_cached_bytes(pool), 1536, "caches are counted");
    tap_is_size(ccmr__pool_steal(pool, NULL, two), 512,
                "all but the own one are emptied");
    tap_is_size(ccmr__pool_steal(pool, one->lane, NULL), 0,
                "of one lane, nothing more");
    tap_is_size(ccmr__pool_steal(pool, two->lane, NULL), 1024,
                "of the other, everything");
    tap_is_size(ccmr__pool_cached_bytes(pool), 0, "nothing is left");
    tap_ok(atomic_load(&one->wanted) == 0 && !ccmr__pool_cache_stale(one),
           "the caches are open again");
    stub_pool_end(pool);
}

/* ---- the thread's end --------------------------------------------------------------- */

typedef struct visitor {
    ccmr__pool *pool;
    ccmr__pool_cache *cache;
    sem_t ready;
    sem_t go;
} visitor;

static void *visit_thread(void *argument)
{
    visitor *self = argument;

    self->cache = stub_find(self->pool, 1);
    stub_push(self->cache, 256, STUB_BASE + 256);
    stub_push(self->cache, 2 * MIB, STUB_BASE + 2 * MIB);
    (void)sem_post(&self->ready);
    (void)sem_wait(&self->go);
    return NULL;
}

static pthread_t visitor_start(visitor *self, ccmr__pool *pool)
{
    pthread_t thread;

    self->pool = pool;
    if (sem_init(&self->ready, 0, 0) != 0 || sem_init(&self->go, 0, 0) != 0 ||
        pthread_create(&thread, NULL, visit_thread, self) != 0) {
        tap_bail_out("no thread");
    }
    while (sem_wait(&self->ready) != 0) {
    }
    return thread;
}

static void visitor_end(visitor *self, pthread_t thread)
{
    (void)sem_post(&self->go);
    if (pthread_join(thread, NULL) != 0) {
        tap_bail_out("pthread_join");
    }
    (void)sem_destroy(&self->ready);
    (void)sem_destroy(&self->go);
}

static void test_thread_end(void)
{
    ccmr__pool *pool = stub_pool_make();
    visitor one;
    visitor two;

    visitor_end(&one, visitor_start(&one, pool));
    tap_is_size(stub.count, 2, "a thread's end gives its blocks");
    tap_is_size(stub_caches(pool, 1), 0, "its lane has no cache any more");
    tap_is_size(stub_spares(pool), 1, "the cache is spare");
    visitor_end(&two, visitor_start(&two, pool));
    tap_is_ptr(two.cache, one.cache, "another thread takes it over");
    tap_is_size(stub.count, 4, "and leaves it as well");
    stub_pool_end(pool);
}

static void test_pool_gone_first(void)
{
    ccmr__pool *pool = stub_pool_make();
    visitor one;
    pthread_t thread = visitor_start(&one, pool);

    stub_pool_end(pool);
    visitor_end(&one, thread);
    tap_is_size(stub.count, 0, "a thread leaves a pool that is gone alone");
}

static void test_exiting(int flag, const char *what)
{
    ccmr__pool *pool = stub_pool_make();
    int before = atomic_load(&ccmr__process_flags);
    visitor one;
    pthread_t thread = visitor_start(&one, pool);

    atomic_store(&ccmr__process_flags, before | flag);
    visitor_end(&one, thread);
    atomic_store(&ccmr__process_flags, before);
    tap_ok(stub.count == 0 && stub_caches(pool, 1) == 1,
           "%s a thread's end touches nothing", what);
    stub_pool_end(pool);
}

/* ---- owners and thieves ----------------------------------------------------------- */

#define CREW 3
#define ROUNDS 20000
#define BLOCKS 512
#define BLOCK ((size_t)65536)

/* Blocks that are in no cache, and who has the others: plain memory, so that
 * ThreadSanitizer sees each passing on that nothing orders. */
static pthread_mutex_t heap_lock = PTHREAD_MUTEX_INITIALIZER;
static uintptr_t heap[BLOCKS * 4];
static size_t heap_count;
static unsigned holder[BLOCKS];
static atomic_int wrong;
static atomic_int thieves_go;

static unsigned *holder_of(uintptr_t address)
{
    return &holder[(address - STUB_BASE) / BLOCK];
}

static void to_heap(const ccmr__pool_piece *piece, size_t blocks)
{
    size_t i;

    (void)sched_yield(); /* whoever gives is inside */
    (void)pthread_mutex_lock(&heap_lock);
    for (i = 0; i < blocks; i++) {
        if (heap_count < BLOCKS) {
            heap[heap_count] = piece->address + i * BLOCK;
        }
        heap_count++;
    }
    (void)pthread_mutex_unlock(&heap_lock);
}

static uintptr_t from_heap(void)
{
    uintptr_t address = 0;

    (void)pthread_mutex_lock(&heap_lock);
    if (heap_count != 0) {
        address = heap[--heap_count];
    }
    (void)pthread_mutex_unlock(&heap_lock);
    return address;
}

typedef struct worker {
    ccmr__pool *pool;
    unsigned number;
} worker;

/* Without a cache, as the pool would, straight from and to the others. */
static void allocate(ccmr__pool_cache *cache, unsigned number,
                     uintptr_t *address)
{
    *address = cache != NULL ? stub_pop(cache, BLOCK) : 0;
    if (*address == 0) {
        *address = from_heap();
    }
    if (*address != 0) {
        if (*holder_of(*address) != 0) {
            atomic_fetch_add(&wrong, 1);
        }
        *holder_of(*address) = number;
    }
}

static void deallocate(ccmr__pool_cache *cache, unsigned number,
                       uintptr_t address)
{
    if (address != 0) {
        if (*holder_of(address) != number) {
            atomic_fetch_add(&wrong, 1);
        }
        *holder_of(address) = 0;
        if (cache != NULL) {
            stub_push(cache, BLOCK, address);
        } else {
            ccmr__pool_piece piece = {.address = address};

            to_heap(&piece, 1);
        }
    }
}

static void *work(void *argument)
{
    const worker *self = argument;
    uintptr_t held[16] = {0};
    unsigned random = self->number;
    unsigned i;

    for (i = 0; i < ROUNDS + 16; i++) {
        ccmr__pool_cache *cache = stub_find(self->pool, 1 + i / 4 % 9);
        unsigned at = i < ROUNDS ? random >> 16 & 15 : i - ROUNDS;

        random = random * 1103515245 + 12345;
        if (held[at] != 0 || i >= ROUNDS) {
            deallocate(cache, self->number, held[at]);
            held[at] = 0;
        } else {
            allocate(cache, self->number, &held[at]);
        }
    }
    return NULL;
}

static void *steal(void *argument)
{
    ccmr__pool *pool = argument;

    while (atomic_load(&thieves_go) != 0) {
        (void)ccmr__pool_steal(pool, NULL, NULL);
        (void)ccmr__pool_cached_bytes(pool);
        (void)sched_yield();
    }
    return NULL;
}

static void start(pthread_t *thread, void *(*function)(void *), void *argument)
{
    if (pthread_create(thread, NULL, function, argument) != 0) {
        tap_bail_out("no thread");
    }
}

static void test_crew(void)
{
    ccmr__pool *pool = stub_pool_make();
    worker workers[CREW];
    pthread_t threads[CREW];
    pthread_t thieves[2];
    unsigned i;

    stub.sink = to_heap;
    for (heap_count = 0; heap_count < BLOCKS; heap_count++) {
        heap[heap_count] = STUB_BASE + heap_count * BLOCK;
    }
    atomic_store(&thieves_go, 1);
    start(&thieves[0], steal, pool);
    start(&thieves[1], steal, pool);
    for (i = 0; i < CREW; i++) {
        workers[i] = (worker){pool, i + 1};
        start(&threads[i], work, &workers[i]);
    }
    for (i = 0; i < CREW; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    atomic_store(&thieves_go, 0);
    (void)pthread_join(thieves[0], NULL);
    (void)pthread_join(thieves[1], NULL);
    tap_is_int(atomic_load(&wrong), 0, "no block has two holders");
    tap_is_size(heap_count, BLOCKS, "every block came back once");
    tap_is_size(ccmr__pool_cached_bytes(pool), 0, "none is in a cache");
    stub_pool_end(pool);
}

/* An owner that is hardly ever out and leaves its cache empty: the thief, who
 * looks on, must never see a block. */
static void *in_and_out(void *argument)
{
    ccmr__pool_cache *cache = stub_find(argument, 1);
    /* As another thread's stores may be seen: each by itself. */
    volatile uint16_t *count = &cache->bins[4].count;
    int pause;

    while (atomic_load_explicit(&thieves_go, memory_order_relaxed) != 0) {
        ccmr__pool_enter(cache);
        *count = 1;
        for (pause = 0; pause < 200; pause++) {
            atomic_signal_fence(memory_order_seq_cst);
        }
        *count = 0;
        ccmr__pool_leave(cache);
    }
    return NULL;
}

static void test_barrier(void)
{
    ccmr__pool *pool = stub_pool_make();
    pthread_t thread;
    size_t seen = 0;
    int i;

    atomic_store(&thieves_go, 1);
    start(&thread, in_and_out, pool);
    while (stub_caches(pool, 1) == 0) {
        (void)sched_yield();
    }
    for (i = 0; i < ROUNDS; i++) {
        int pause;

        /* The owner goes in, comes out, at any distance from the look. */
        for (pause = i % 512; pause > 0; pause--) {
            atomic_signal_fence(memory_order_seq_cst);
        }
        seen += ccmr__pool_cached_bytes(pool);
    }
    atomic_store(&thieves_go, 0);
    (void)pthread_join(thread, NULL);
    tap_is_size(seen, 0, "a thief never sees what an owner is at");
    stub_pool_end(pool);
}

/* Pools that go while threads end: their calls are over, the ends are not. */
typedef struct short_lived {
    ccmr__pool *pools[2];
    sem_t used;
} short_lived;

static void *short_life(void *argument)
{
    short_lived *self = argument;

    stub_push(stub_find(self->pools[0], 1), 256, STUB_BASE);
    stub_push(stub_find(self->pools[1], 1), 256, STUB_BASE);
    (void)sem_post(&self->used);
    return NULL;
}

static void nowhere(const ccmr__pool_piece *piece, size_t blocks)
{
    (void)piece;
    (void)blocks;
}

static void test_ends_together(void)
{
    short_lived shared;
    int round;

    if (sem_init(&shared.used, 0, 0) != 0) {
        tap_bail_out("no semaphore");
    }
    for (round = 0; round < 200; round++) {
        pthread_t threads[4];
        unsigned i;

        shared.pools[0] = stub_pool_make();
        shared.pools[1] = stub_pool_make();
        stub.sink = nowhere;
        for (i = 0; i < 4; i++) {
            start(&threads[i], short_life, &shared);
        }
        for (i = 0; i < 4; i++) {
            while (sem_wait(&shared.used) != 0) {
            }
        }
        stub_pool_end(shared.pools[1]);
        stub_pool_end(shared.pools[0]);
        for (i = 0; i < 4; i++) {
            (void)pthread_join(threads[i], NULL);
        }
    }
    (void)sem_destroy(&shared.used);
    tap_pass("threads and pools end together");
}

int main(void)
{
    ccmr__census_start();
    test_limits();
    test_half();
    test_runs();
    test_bring();
    test_large();
    test_large_limit();
    test_large_replaced();
    test_find();
    test_ninth();
    test_no_record();
    test_retired();
    test_retired_goes();
    test_steal();
    test_thread_end();
    test_pool_gone_first();
    test_exiting(CCMR__PROCESS_EXITING, "at exit");
    test_exiting(CCMR__PROCESS_FORKED, "in a forked child");
    test_crew();
    test_barrier();
    test_ends_together();
    return tap_finish();
}
