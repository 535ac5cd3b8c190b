/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool and streams on the simulated driver, whose check of order is on: who
 * gets whose memory, behind what, and what nobody waits for. Field cases A1,
 * A2, A7, B2, B3, B4, C1, C4, F4, I4, I5, I14, S5, S6.
 */
#include <unistd.h>

#include "tests/unit/leaf.h"

#include <cucoremr/resources/pool.h>

#include "lib/resource_object.h"
#include "resources/pool/pool.h"
#include "tests/support/told.h"
#include "tests/unit/adaptor.h"

#define UNIT (2 * MIB) /* what segments are whole pieces of */
/* A wait for work that nobody lets go on would last for ever. */
#define PATIENCE_MS 5000

static const ccmr_sim_table *sim;
static ccmr_resource *made;
static ccmr_stream a; /* registered */
static ccmr_stream b;
static ccmr_stream c;
static ccmr_stream one; /* not */
static ccmr_stream two;

static void make(const char *text)
{
    ccmr_resource_release(made);
    made = NULL;
    GOOD(ccmr_stack_create(text, &made));
    (void)sim->forget_calls();
}

static ccmr_stream registered(void)
{
    ccmr_stream stream;

    GOOD(ccmr_stream_create(0, CCMR_STREAM_FLAG_NON_BLOCKING, &stream));
    return stream;
}

static void start(void)
{
    sim = leaf_start();
    (void)sim->set_mode(CCMR_SIM_LATE);
    (void)sim->set_wait_limit(PATIENCE_MS);
    (void)sim->check_order(1);
    (void)alarm(60);
    a = registered();
    b = registered();
    c = registered();
    one = leaf_stream(0);
    two = leaf_stream(0);
}

static void end(void)
{
    MUST(made == NULL || ccmr_resource_audit(made) == CCMR_SUCCESS);
    ccmr_resource_release(made);
    MUST(sim->hazards() == 0);
    MUST(leaf_census().plain_blocks == 0);
    MUST(leaf_census().pieces == 0);
    MUST(leaf_census().events == 0);
    leaf_end();
}

TestSuite(pool_streams, .init = start, .fini = end);

/* Work on a block is enqueued. */
static void work_on(const void *ptr, size_t bytes, ccmr_stream stream)
{
    cr_assert_eq(sim->used((uint64_t)(uintptr_t)ptr, bytes, stream), 0);
}

static void *take_used(size_t bytes, ccmr_stream stream)
{
    void *ptr = take_on(made, bytes, stream);

    work_on(ptr, bytes, stream);
    return ptr;
}

static void give_on(void *ptr, size_t bytes, ccmr_stream stream)
{
    GOOD(ccmr_resource_deallocate(made, ptr, bytes, 0, stream));
}

static ccmr_status attempt(size_t bytes, ccmr_stream stream)
{
    void *ptr = NULL;
    ccmr_status status = ccmr_resource_allocate(made, bytes, 0, stream, &ptr);

    if (status == CCMR_SUCCESS) {
        work_on(ptr, bytes, stream);
        give_on(ptr, bytes, stream);
    }
    return status;
}

static ccmr_trim_result trim(size_t keep)
{
    ccmr_trim_result result = {.size = sizeof(result)};

    GOOD(ccmr_resource_trim(made, keep, &result));
    return result;
}

static void stall(ccmr_stream stream)
{
    cr_assert_eq(sim->stall(stream), 0);
}

static void release(ccmr_stream stream)
{
    cr_assert_eq(sim->release(stream), 0);
}

static uint64_t host_waits(void)
{
    return sim->calls("cuEventSynchronize") +
           sim->calls("cuStreamSynchronize") + sim->calls("cuCtxSynchronize");
}

/* ---- from stream to stream ----------------------------------------------------- */

Test(pool_streams, waits_on_the_device)
{
    void *ptr;

    make("pool hard=2MiB | device_plain");
    ptr = take_used(UNIT, a);
    stall(a);
    give_on(ptr, UNIT, a);
    cr_assert_eq(take_on(made, UNIT, b), ptr);
    cr_assert_eq(sim->calls("cuStreamWaitEvent"), 1u);
    cr_assert_eq(host_waits(), 0u);
    cr_assert_eq(sim->calls("cuMemAlloc"), 1u);
    work_on(ptr, UNIT, b);
    give_on(ptr, UNIT, b);
    release(a);
}

Test(pool_streams, finished_memory_needs_no_wait)
{
    void *ptr;

    make("pool hard=2MiB | device_plain");
    ptr = take_used(UNIT, a);
    give_on(ptr, UNIT, a);
    (void)trim(SIZE_MAX); /* has an event recorded */
    (void)sim->run(UINT64_MAX);
    cr_assert_eq(take_used(UNIT, b), ptr);
    cr_assert_eq(sim->calls("cuStreamWaitEvent"), 0u);
    cr_assert_eq(host_waits(), 0u);
    give_on(ptr, UNIT, b);
}

/* A1: what was handed on is handed on with all that it waits for. */
Test(pool_streams, a_third_stream)
{
    void *ptr;

    make("pool hard=2MiB | device_plain");
    ptr = take_used(UNIT, a);
    stall(a);
    give_on(ptr, UNIT, a);
    cr_assert_eq(take_on(made, UNIT, b), ptr);
    give_on(ptr, UNIT, b); /* b itself did nothing with it */
    cr_assert_eq(take_on(made, UNIT, c), ptr);
    work_on(ptr, UNIT, c);
    cr_assert_geq(sim->calls("cuStreamWaitEvent"), 2u);
    cr_assert_eq(host_waits(), 0u);
    give_on(ptr, UNIT, c);
    /* The end waits for the first one's work. */
    release(a);
}

/* A1: neighbours of two streams merge; the third waits for both. */
Test(pool_streams, merged_neighbours)
{
    void *first;
    void *second;

    make("pool initial=4MiB hard=4MiB | device_plain");
    first = take_used(UNIT, a);
    second = take_used(UNIT, b);
    stall(a);
    stall(b);
    give_on(first, UNIT, a);
    give_on(second, UNIT, b);
    cr_assert_eq(take_used(2 * UNIT, c), first);
    cr_assert_eq(sim->calls("cuStreamWaitEvent"), 2u);
    cr_assert_eq(host_waits(), 0u);
    give_on(first, 2 * UNIT, c);
    release(b);
    release(a);
}

/* Many streams' memory in one piece: more than an extent can note. */
Test(pool_streams, many_neighbours)
{
    ccmr_stream streams[8];
    void *blocks[8];
    int i;

    make("pool initial=16MiB hard=16MiB | device_plain");
    for (i = 0; i < 8; i++) {
        streams[i] = registered();
        blocks[i] = take_used(UNIT, streams[i]);
    }
    for (i = 0; i < 8; i++) {
        give_on(blocks[i], UNIT, streams[i]);
    }
    GOOD(attempt(8 * UNIT, a));
    for (i = 0; i < 8; i++) {
        GOOD(ccmr_stream_destroy(streams[i]));
    }
}

Test(pool_streams, finished_only)
{
    hold held;
    void *ptr;
    void *other;

    make("pool reuse=finished | device_plain");
    ptr = take_used(UNIT, a);
    stall(a);
    give_on(ptr, UNIT, a);
    other = take_used(UNIT, b);
    cr_assert_neq(other, ptr);
    release(a);
    give_on(other, UNIT, b);
    /* Where there is no room it waits here. */
    make("pool reuse=finished hard=2MiB | device_plain");
    ptr = take_used(UNIT, a);
    cr_assert_eq(hold_begin(&held, a), 0);
    give_on(ptr, UNIT, a);
    hold_end_after(&held, 20);
    cr_assert_eq(take_used(UNIT, b), ptr);
    hold_end(&held);
    cr_assert_eq(sim->calls("cuStreamWaitEvent"), 0u);
    cr_assert_geq(sim->calls("cuEventSynchronize"), 1u);
    give_on(ptr, UNIT, b);
}

/* What no event covers serves its own stream alone, until there is no other
 * way: then the device is waited for. */
Test(pool_streams, uncovered_memory)
{
    void *ptr;
    void *other;

    make("pool | device_plain");
    ptr = take_used(UNIT, one);
    give_on(ptr, UNIT, one);
    cr_assert_eq(take_used(UNIT, one), ptr);
    give_on(ptr, UNIT, one);
    other = take_used(UNIT, two);
    cr_assert_neq(other, ptr);
    cr_assert_eq(sim->calls("cuMemFree"), 0u);
    GOOD(ccmr_resource_option_set(made, "hard", "4MiB"));
    cr_assert_eq(take_used(UNIT, two), ptr);
    cr_assert_eq(host_waits(), 0u);
    cr_assert_geq(sim->calls("cuMemFree"), 1u);
    give_on(ptr, UNIT, two);
    give_on(other, UNIT, two);
}

/* Somebody wanted what no event covers: the stream's next free records one, and
 * what it frees can be had behind a wait on the device. */
Test(pool_streams, wanted_memory)
{
    uint64_t calls;
    void *ptr;
    void *other;

    make("pool hard=2MiB | device_plain");
    ptr = take_used(UNIT / 2, one);
    other = take_used(UNIT / 2, one);
    give_on(ptr, UNIT / 2, one);
    cr_assert_eq(take_used(UNIT / 2, two), ptr);
    calls = sim->calls("cuMemFree");
    cr_assert_geq(calls, 1u); /* the whole device */
    cr_assert_eq(sim->calls("cuEventRecord"), 0u);
    stall(one);
    give_on(other, UNIT / 2, one);
    cr_assert_eq(sim->calls("cuEventRecord"), 1u);
    cr_assert_eq(take_used(UNIT / 2, two), other);
    cr_assert_eq(sim->calls("cuMemFree"), calls);
    cr_assert_eq(sim->calls("cuStreamWaitEvent"), 1u);
    release(one);
    give_on(ptr, UNIT / 2, two);
    give_on(other, UNIT / 2, two);
}

/* A stream that waited for another one is behind all that was freed there
 * until then: it waits for none of it again, and for what comes later it does. */
Test(pool_streams, one_wait_for_many)
{
    void *blocks[8];
    unsigned i;

    make("pool hard=16MiB | device_plain");
    for (i = 0; i < 8; i++) {
        blocks[i] = take_used(UNIT, a);
    }
    stall(a);
    for (i = 1; i < 8; i++) {
        give_on(blocks[i], UNIT, a);
    }
    (void)take_used(UNIT, b);
    (void)sim->forget_calls();
    for (i = 2; i < 8; i++) {
        (void)take_used(UNIT, b);
    }
    cr_assert_eq(sim->calls(NULL), 0u);
    work_on(blocks[0], UNIT, a);
    give_on(blocks[0], UNIT, a);
    cr_assert_eq(take_used(UNIT, b), blocks[0]);
    cr_assert_eq(sim->calls("cuStreamWaitEvent"), 1u);
    release(a);
    for (i = 0; i < 8; i++) {
        give_on(blocks[i], UNIT, b);
    }
}

/* READY: all is known finished; the next user waits for nobody. */
Test(pool_streams, ready_frees_are_anybodys)
{
    void *ptr;

    make("pool hard=2MiB | device_plain");
    ptr = take_used(UNIT, a);
    GOOD(ccmr_stream_synchronize(a, 0));
    stall(a);
    (void)sim->forget_calls();
    give_on(ptr, UNIT, CCMR_STREAM_READY);
    cr_assert_eq(take_used(UNIT, b), ptr);
    cr_assert_eq(sim->calls(NULL), 0u);
    give_on(ptr, UNIT, b);
    release(a);
}

/* A2, B4: a use that was noted, on a stream that is gone by the time of the
 * free; and one that lasts until the free. */
Test(pool_streams, noted_uses)
{
    ccmr_stream gone = registered();
    void *ptr;

    make("pool hard=2MiB | device_plain");
    ptr = take_used(UNIT, a);
    stall(gone);
    work_on(ptr, UNIT, gone);
    GOOD(ccmr_resource_note_use(made, ptr, gone));
    GOOD(ccmr_resource_hold_until_free(made, ptr, b));
    work_on(ptr, UNIT, b);
    GOOD(ccmr_stream_destroy(gone));
    give_on(ptr, UNIT, a);
    cr_assert_eq(take_used(UNIT, c), ptr);
    cr_assert_eq(host_waits(), 0u);
    give_on(ptr, UNIT, c);
    release(gone);
}

/* I4: by turns, with growing sizes; the free memory of both is one. */
Test(pool_streams, growing_by_turns)
{
    size_t bytes;

    make("pool hard=36MiB | device_plain");
    for (bytes = MIB; bytes <= 32 * MIB; bytes += MIB + 512) {
        GOOD(attempt(bytes, a));
        GOOD(attempt(bytes + 256 * KIB, b));
    }
    GOOD(attempt(36 * MIB, a));
}

/* ---- out of memory --------------------------------------------------------------- */

/* The first place of a call in the log, from some place on; -1: none. */
static long find_call(const char *call, size_t from)
{
    ccmr_sim_record record;
    size_t i;

    for (i = from; i < sim->log_count(); i++) {
        cr_assert_eq(sim->log_read(i, &record), 0);
        if (strcmp(record.call, call) == 0) {
            return (long)i;
        }
    }
    return -1;
}

/* I5, I14: what is given back to make room is waited for first. */
Test(pool_streams, room_is_waited_for)
{
    hold held;
    void *first;
    void *second;
    long waited;

    make("pool hard=4MiB | device_plain");
    first = take_used(UNIT, a);
    second = take_used(UNIT, a);
    cr_assert_eq(hold_begin(&held, a), 0);
    give_on(first, UNIT, a);
    give_on(second, UNIT, a);
    hold_end_after(&held, 20);
    cr_assert_eq(sim->log(4096), 0);
    GOOD(attempt(2 * UNIT, b));
    hold_end(&held);
    waited = find_call("cuEventSynchronize", 0);
    cr_assert_geq(waited, 0);
    cr_assert_gt(find_call("cuMemFree", 0), waited);
    cr_assert_gt(find_call("cuMemAlloc", (size_t)waited), waited);
}

/* A7: the end waits first and frees then. */
Test(pool_streams, destroy_waits_then_frees)
{
    hold held;
    long waited;

    make("pool | device_plain");
    GOOD(attempt(MIB, b));
    cr_assert_eq(hold_begin(&held, a), 0);
    GOOD(attempt(MIB, a));
    hold_end_after(&held, 20);
    cr_assert_eq(sim->log(4096), 0);
    ccmr_resource_release(made);
    made = NULL;
    hold_end(&held);
    waited = find_call("cuEventSynchronize", 0);
    cr_assert_geq(waited, 0);
    cr_assert_gt(find_call("cuMemFree", 0), waited);
}

/* ---- streams that go ----------------------------------------------------------------- */

/* B2: a recycled handle finds nothing of its predecessor. */
Test(pool_streams, recycled_handles)
{
    ccmr_stream first = leaf_stream(0);
    ccmr_stream second;
    void *ptr;
    void *other;

    make("pool | device_plain");
    ptr = take_used(UNIT, first);
    stall(first);
    give_on(ptr, UNIT, first);
    cr_assert_eq(api.cuStreamDestroy(first), CUDA_SUCCESS);
    second = leaf_stream(0);
    if (second != first) {
        cr_skip_test("the handle was not recycled");
    }
    other = take_used(UNIT, second);
    cr_assert_neq(other, ptr);
    give_on(other, UNIT, second);
    release(first);
}

/* The same with a registered one: retiring told all about it. */
Test(pool_streams, recycled_registered_handles)
{
    ccmr_stream first = registered();
    ccmr_stream second;
    void *ptr;

    make("pool hard=2MiB | device_plain");
    ptr = take_used(UNIT, first);
    stall(first);
    give_on(ptr, UNIT, first);
    GOOD(ccmr_stream_destroy(first));
    second = registered();
    cr_assert_eq(take_used(UNIT, second), ptr);
    cr_assert_eq(sim->calls("cuStreamWaitEvent"), 1u);
    give_on(ptr, UNIT, second);
    release(first);
    GOOD(ccmr_stream_destroy(second));
}

/* A stream that is retired and used on is a new one; its memory is anybody's
 * behind the event of its end. */
Test(pool_streams, retired_and_used_on)
{
    ccmr_stream stream = leaf_stream(0);
    void *ptr;
    void *other;
    int i;

    make("pool | device_plain");
    for (i = 0; i < 20; i++) {
        GOOD(ccmr_stream_register(stream));
        ptr = take_used(1000, stream);
        other = take_used(3 * MIB, stream);
        give_on(ptr, 1000, stream);
        give_on(other, 3 * MIB, stream);
        GOOD(ccmr_stream_retire(stream));
        GOOD(ccmr_resource_audit(made));
    }
    cr_assert_leq(sim->calls("cuMemAlloc"), 4u);
    cr_assert_eq(api.cuStreamDestroy(stream), CUDA_SUCCESS);
}

static size_t lanes_of(ccmr_resource *resource)
{
    ccmr__pool *pool = resource->self;
    const ccmr__pool_lane *lane = atomic_load(&pool->lanes);
    size_t count = 0;

    for (; lane != NULL; lane = lane->next) {
        count++;
    }
    return count;
}

/* B3: many short-lived streams, retired: nothing grows with their number. */
Test(pool_streams, a_thousand_retired_streams)
{
    int i;

    make("pool | device_plain");
    for (i = 0; i < 1000; i++) {
        ccmr_stream stream = registered();

        GOOD(attempt(100 * KIB, stream));
        GOOD(ccmr_stream_destroy(stream));
        (void)sim->run(UINT64_MAX);
    }
    cr_assert_leq(sim->calls("cuMemAlloc"), 4u);
    cr_assert_leq(lanes_of(made), 16u);
    cr_assert_leq(leaf_census().events, 64u);
}

/* B3: destroyed without a word. One stream gets the sum, no stream that is
 * gone is used, and what is made for them is used again. */
Test(pool_streams, a_thousand_lost_streams)
{
    size_t reserved;
    char text[32];
    size_t lanes;
    int i;

    make("pool | device_plain");
    for (i = 0; i < 1000; i++) {
        ccmr_stream stream = leaf_stream(0);

        GOOD(attempt(100 * KIB, stream));
        cr_assert_eq(api.cuStreamDestroy(stream), CUDA_SUCCESS);
    }
    reserved = stats_of(made).reserved_bytes;
    (void)snprintf(text, sizeof(text), "%zu", reserved);
    GOOD(ccmr_resource_option_set(made, "hard", text));
    GOOD(attempt(reserved, a));
    GOOD(ccmr_resource_audit(made));
    lanes = lanes_of(made);
    for (i = 0; i < 1000; i++) {
        ccmr_stream stream = leaf_stream(0);

        GOOD(attempt(1000, stream));
        cr_assert_eq(api.cuStreamDestroy(stream), CUDA_SUCCESS);
        if (i % 100 == 99) {
            /* Whoever is short of memory waits for the device. */
            GOOD(attempt(reserved, a));
        }
    }
    cr_assert_leq(lanes_of(made), lanes + 128);
}

/* ---- threads ---------------------------------------------------------------------------- */

static void in_thread(void *(*body)(void *), void *argument)
{
    pthread_t thread;

    cr_assert_eq(pthread_create(&thread, NULL, body, argument), 0);
    cr_assert_eq(pthread_join(thread, NULL), 0);
}

static void *fill_a_cache(void *argument)
{
    void *blocks[64];
    int i;

    (void)argument;
    for (i = 0; i < 64; i++) {
        blocks[i] = take_used(20000, a);
    }
    for (i = 0; i < 64; i++) {
        give_on(blocks[i], 20000, a);
    }
    give_on(take_used(5 * MIB, a), 5 * MIB, a);
    return NULL;
}

/* What a thread had cached is there for the next one on its stream, and for
 * others. */
Test(pool_streams, threads_that_end)
{
    uint64_t grown;
    char text[32];

    make("pool | device_plain");
    in_thread(fill_a_cache, NULL);
    grown = sim->calls("cuMemAlloc");
    in_thread(fill_a_cache, NULL);
    (void)fill_a_cache(NULL);
    cr_assert_eq(sim->calls("cuMemAlloc"), grown);
    cr_assert_eq(sim->calls("cuStreamWaitEvent"), 0u);
    (void)snprintf(text, sizeof(text), "%zu", stats_of(made).reserved_bytes);
    GOOD(ccmr_resource_option_set(made, "hard", text));
    stall(a);
    GOOD(attempt(5 * MIB, b));
    cr_assert_eq(sim->calls("cuMemAlloc"), grown);
    cr_assert_eq(host_waits(), 0u);
    release(a);
}

/* The cache of a thread that lives is emptied before the pool grows beyond
 * its budget. */
static pthread_barrier_t met;

static void *keep_a_cache(void *argument)
{
    (void)fill_a_cache(argument);
    (void)pthread_barrier_wait(&met);
    (void)pthread_barrier_wait(&met);
    GOOD(attempt(20000, a));
    return NULL;
}

Test(pool_streams, caches_of_others)
{
    pthread_t thread;

    make("pool hard=8MiB | device_plain");
    cr_assert_eq(pthread_barrier_init(&met, NULL, 2), 0);
    cr_assert_eq(pthread_create(&thread, NULL, keep_a_cache, NULL), 0);
    (void)pthread_barrier_wait(&met);
    stall(a);
    GOOD(attempt(5 * MIB, b));
    cr_assert_eq(host_waits(), 0u);
    release(a);
    GOOD(attempt(8 * MIB, b));
    (void)pthread_barrier_wait(&met);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    (void)pthread_barrier_destroy(&met);
}

/* The token names a stream of the primary context: the simulator is to know
 * which. */
static void enter(void)
{
    cr_assert_eq(api.cuCtxSetCurrent(leaf_context(0)), CUDA_SUCCESS);
}

static void *use_token(void *argument)
{
    void **ptr = argument;

    enter();
    *ptr = take_used(UNIT, CCMR_STREAM_PER_THREAD);
    stall(CCMR_STREAM_PER_THREAD);
    give_on(*ptr, UNIT, CCMR_STREAM_PER_THREAD);
    return NULL;
}

/* C1: the same token on another thread is another stream. */
Test(pool_streams, per_thread_tokens)
{
    void *ptr = NULL;
    void *other;

    enter();
    make("pool | device_plain");
    in_thread(use_token, &ptr);
    other = take_used(UNIT, CCMR_STREAM_PER_THREAD);
    cr_assert(other != ptr || sim->calls("cuStreamWaitEvent") > 0);
    give_on(other, UNIT, CCMR_STREAM_PER_THREAD);
    release(CCMR_STREAM_PER_THREAD);
}

static void *free_on_token(void *argument)
{
    enter();
    give_on(take_used(UNIT, CCMR_STREAM_PER_THREAD), UNIT,
            CCMR_STREAM_PER_THREAD);
    if (argument != NULL) {
        (void)pthread_barrier_wait(argument);
        (void)pthread_barrier_wait(argument);
    }
    return NULL;
}

/* C4: five threads' default streams, two of which have ended. */
Test(pool_streams, memory_of_per_thread_streams)
{
    pthread_t threads[3];
    int i;

    enter();
    make("pool hard=10MiB reuse=finished | device_plain");
    in_thread(free_on_token, NULL);
    in_thread(free_on_token, NULL);
    cr_assert_eq(pthread_barrier_init(&met, NULL, 4), 0);
    for (i = 0; i < 3; i++) {
        cr_assert_eq(pthread_create(&threads[i], NULL, free_on_token, &met),
                     0);
    }
    (void)pthread_barrier_wait(&met);
    GOOD(attempt(5 * UNIT, a));
    GOOD(attempt(5 * UNIT, CCMR_STREAM_PER_THREAD));
    (void)pthread_barrier_wait(&met);
    for (i = 0; i < 3; i++) {
        cr_assert_eq(pthread_join(threads[i], NULL), 0);
    }
    (void)pthread_barrier_destroy(&met);
}

typedef struct first_free {
    ccmr_stream stream;
    void *ptr;
} first_free;

static void *free_at_once(void *argument)
{
    first_free *mine = argument;

    (void)pthread_barrier_wait(&met);
    give_on(mine->ptr, UNIT, mine->stream);
    return NULL;
}

/* F4: two threads' first frees on one fresh stream lose no block. */
Test(pool_streams, first_frees_at_once)
{
    pthread_t threads[2];
    first_free frees[2];
    int round;
    int i;

    make("pool initial=4MiB hard=4MiB | device_plain");
    cr_assert_eq(pthread_barrier_init(&met, NULL, 2), 0);
    for (round = 0; round < 50; round++) {
        ccmr_stream stream = registered();

        for (i = 0; i < 2; i++) {
            frees[i].stream = stream;
            frees[i].ptr = take_on(made, UNIT, a);
            work_on(frees[i].ptr, UNIT, a);
        }
        GOOD(ccmr_stream_synchronize(a, 0));
        for (i = 0; i < 2; i++) {
            cr_assert_eq(
                pthread_create(&threads[i], NULL, free_at_once, &frees[i]), 0);
        }
        for (i = 0; i < 2; i++) {
            cr_assert_eq(pthread_join(threads[i], NULL), 0);
        }
        GOOD(attempt(2 * UNIT, stream));
        GOOD(ccmr_resource_audit(made));
        GOOD(ccmr_stream_destroy(stream));
    }
    (void)pthread_barrier_destroy(&met);
}

/* ---- what is not waited for --------------------------------------------------------------- */

/* S5: a stream whose work lasts for ever. No call on others waits for it: not
 * growth, not trims, and not when there is nothing left. */
static void beside_a_stalled_stream(const char *text)
{
    void *blocks[40];
    void *held;
    size_t i;

    make(text);
    held = take_used(3 * MIB, a);
    stall(a);
    work_on(held, 3 * MIB, a);
    give_on(take_used(3 * MIB, a), 3 * MIB, a);
    for (i = 0; i < 40; i++) {
        blocks[i] = take_used((i + 1) * 100 * KIB, i % 2 ? b : one);
    }
    for (i = 0; i < 40; i++) {
        give_on(blocks[i], (i + 1) * 100 * KIB, i % 2 ? b : one);
    }
    (void)sim->run(UINT64_MAX);
    (void)trim(0);
    (void)trim(GIB);
    (void)stats_of(made);
    GOOD(ccmr_stream_retire(one));
    GOOD(ccmr_resource_audit(made));
    for (i = 0; i < 40; i++) {
        blocks[i] = take_used((i + 1) * 300 * KIB, b);
    }
    for (i = 0; i < 40; i++) {
        give_on(blocks[i], (i + 1) * 300 * KIB, b);
    }
    (void)trim(0);
    cr_assert_eq(host_waits(), 0u);
    cr_assert_gt(sim->pending(a), 0u);
    give_on(held, 3 * MIB, a);
    release(a);
}

Test(pool_streams, beside_a_stalled_stream_over_device_pool)
{
    beside_a_stalled_stream("pool | device_pool own=yes");
}

Test(pool_streams, beside_a_stalled_stream_over_virtual)
{
    beside_a_stalled_stream("pool | virtual");
    /* Moves before it grows. */
    beside_a_stalled_stream("pool soft=100 handle=2MiB | virtual");
}

/* Over plain memory too, but for trims: its frees wait for the device. */
Test(pool_streams, beside_a_stalled_stream_over_device_plain)
{
    void *blocks[40];
    size_t i;
    int round;

    make("pool | device_plain");
    stall(a);
    give_on(take_used(3 * MIB, a), 3 * MIB, a);
    for (round = 0; round < 10; round++) {
        for (i = 0; i < 40; i++) {
            blocks[i] = take_used((i + 1) * 100 * KIB, i % 2 ? b : two);
        }
        for (i = 0; i < 40; i++) {
            give_on(blocks[i], (i + 1) * 100 * KIB, i % 2 ? b : two);
        }
    }
    cr_assert_eq(host_waits(), 0u);
    cr_assert_eq(sim->calls("cuMemFree"), 0u);
    cr_assert_gt(sim->pending(a), 0u);
    release(a);
}

/* ---- how it grows ------------------------------------------------------------------------- */

#define MANY_BLOCKS 100000
#define MANY_STREAMS 1000

/* S6: what one allocation asks of the driver does not grow with what there
 * is. */
Test(pool_streams, cost_does_not_grow)
{
    static void *blocks[MANY_BLOCKS];
    static ccmr_stream streams[MANY_STREAMS];
    uint64_t calls;
    int i;

    (void)sim->check_order(0);
    make("pool | device_plain");
    for (i = 0; i < MANY_STREAMS; i++) {
        streams[i] = leaf_stream(0);
    }
    for (i = 0; i < MANY_BLOCKS; i++) {
        blocks[i] = take_on(made, 3000, streams[i / 100]);
    }
    GOOD(ccmr_resource_audit(made));
    for (i = 0; i < MANY_BLOCKS; i += 2) {
        give_on(blocks[i], 3000, streams[i / 100]);
    }
    GOOD(ccmr_resource_audit(made));
    calls = sim->calls(NULL);
    blocks[0] = take_on(made, 3000, a);
    cr_assert_leq(sim->calls(NULL) - calls, 200u);
    calls = sim->calls(NULL);
    blocks[2] = take_on(made, 3000, a);
    cr_assert_leq(sim->calls(NULL) - calls, 200u);
    give_on(blocks[0], 3000, a);
    give_on(blocks[2], 3000, a);
    for (i = 1; i < MANY_BLOCKS; i += 2) {
        give_on(blocks[i], 3000, streams[i / 100]);
    }
    GOOD(ccmr_resource_audit(made));
    cr_assert_eq(stats_of(made).live_blocks, 0u);
}

/* A stream that is registered after the pool has met it is asked no more. */
Test(pool_streams, registered_later)
{
    uint64_t calls;
    int i;

    make("pool | device_plain");
    GOOD(attempt(1000, one));
    GOOD(ccmr_stream_register(one));
    GOOD(attempt(1000, one));
    calls = sim->calls(NULL);
    for (i = 0; i < 100; i++) {
        GOOD(attempt(1000, one));
    }
    cr_assert_eq(sim->calls(NULL), calls);
    GOOD(ccmr_stream_retire(one));
}
