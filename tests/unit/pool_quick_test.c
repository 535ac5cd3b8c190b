/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool: quick ways. Whether a call has one is seen, and that what ends them
 * does: each of these calls would be served wrongly by a way that stayed.
 */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/leaf.h"

#include <cucoremr/resources/pool.h>

#include "lib/quick.h"
#include "tests/unit/adaptor.h"

static const ccmr_sim_table *sim;
static ccmr_resource *made;
static ccmr_stream stream;

static void start(void)
{
    sim = leaf_start();
    (void)alarm(60);
    GOOD(ccmr_stream_create(0, CCMR_STREAM_FLAG_NON_BLOCKING, &stream));
}

static void end(void)
{
    MUST(made == NULL || ccmr_resource_audit(made) == CCMR_SUCCESS);
    ccmr_resource_release(made);
    MUST(ccmr_stream_destroy(stream) == CCMR_SUCCESS);
    MUST(leaf_census().plain_blocks == 0);
    MUST(leaf_census().pieces == 0);
    leaf_end();
}

TestSuite(pool_quick, .init = start, .fini = end);

static void *take_some(size_t bytes)
{
    return take_on(made, bytes, stream);
}

static void give_some(void *ptr, size_t bytes)
{
    GOOD(ccmr_resource_deallocate(made, ptr, bytes, 0, stream));
}

static void pair(size_t bytes)
{
    give_some(take_some(bytes), bytes);
}

static int has_way(void)
{
    return ccmr__quick_find(made, stream) != NULL;
}

static void make(const char *text)
{
    GOOD(ccmr_stack_create(text, &made));
    pair(1000);
    pair(MIB);
    pair(MIB);
    cr_assert(has_way());
}

Test(pool_quick, counts_and_makes_no_driver_call)
{
    const size_t sizes[] = {1, 256, 1000, 65536, 65537, MIB, 64 * MIB};
    ccmr_stats before;
    void *ptr;
    size_t i;

    make("pool | device_plain");
    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        uint64_t calls;

        pair(sizes[i]);
        before = stats_of(made);
        calls = sim->calls(NULL);
        ptr = take_some(sizes[i]);
        cr_assert_eq((uintptr_t)ptr % 256, 0);
        give_some(ptr, sizes[i]);
        cr_assert_eq(sim->calls(NULL), calls);
        cr_assert_eq(stats_of(made).allocations, before.allocations + 1);
        cr_assert_eq(stats_of(made).deallocations, before.deallocations + 1);
        cr_assert_eq(stats_of(made).live_bytes, before.live_bytes);
        cr_assert(has_way());
    }
}

Test(pool_quick, a_stream_that_captures)
{
    void *ptr;
    void *other;

    make("pool | device_plain");
    ptr = take_some(1000);
    GOOD(ccmr_stream_set_capturing(stream, 1));
    cr_assert_not(has_way());
    BAD(ccmr_resource_allocate(made, 1000, 0, stream, &other),
        CCMR_ERROR_CAPTURING);
    BAD(ccmr_resource_deallocate(made, ptr, 1000, 0, stream),
        CCMR_ERROR_CAPTURING);
    GOOD(ccmr_stream_set_capturing(stream, 0));
    give_some(ptr, 1000);
    cr_assert(has_way());
}

Test(pool_quick, a_stream_that_is_retired_or_was_never_registered)
{
    ccmr_stream plain = leaf_stream(0);

    make("pool | device_plain");
    GOOD(ccmr_stream_retire(stream));
    cr_assert_not(has_way());
    give(made, take(made, 1000), 1000);
    cr_assert_null(ccmr__quick_find(made, LEGACY));
    GOOD(ccmr_resource_deallocate(made, take_on(made, 1000, plain), 1000, 0,
                                  plain));
    cr_assert_null(ccmr__quick_find(made, plain));
    MUST(api.cuStreamDestroy(plain) == CUDA_SUCCESS);
}

Test(pool_quick, a_block_with_a_note)
{
    ccmr_stream other;
    void *small;
    void *large;

    make("pool | device_plain");
    GOOD(ccmr_stream_create(0, CCMR_STREAM_FLAG_NON_BLOCKING, &other));
    small = take_some(1000);
    large = take_some(MIB);
    cr_assert_eq(sim->stall(other), 0);
    (void)sim->used((uint64_t)(uintptr_t)small, 1000, other);
    GOOD(ccmr_resource_note_use(made, small, other));
    GOOD(ccmr_resource_note_use(made, large, other));
    (void)sim->forget_calls();
    give_some(small, 1000);
    cr_assert_eq(sim->calls("cuStreamWaitEvent"), 1u);
    give_some(large, MIB);
    cr_assert_eq(sim->calls("cuStreamWaitEvent"), 2u);
    cr_assert_eq(sim->release(other), 0);
    GOOD(ccmr_stream_destroy(other));
}

Test(pool_quick, arguments_that_are_refused)
{
    ccmr_stats before;
    char *ptr;
    void *other = &other;

    make("pool | device_plain");
    ptr = take_some(1000);
    before = stats_of(made);
    BAD(ccmr_resource_allocate(made, 1000, 0, stream, NULL),
        CCMR_ERROR_INVALID_ARGUMENT);
    BAD(ccmr_resource_allocate(made, MIB, 0, stream, NULL),
        CCMR_ERROR_INVALID_ARGUMENT);
    BAD(ccmr_resource_allocate(made, 1000, 3, stream, &other),
        CCMR_ERROR_INVALID_ALIGNMENT);
    BAD(ccmr_resource_allocate(made, SIZE_MAX, 0, stream, &other),
        CCMR_ERROR_INVALID_SIZE);
    BAD(ccmr_resource_allocate(made, (SIZE_MAX >> 1) - 1, 0, stream, &other),
        CCMR_ERROR_INVALID_SIZE);
    BAD(ccmr_resource_deallocate(made, NULL, 1000, 0, stream),
        CCMR_ERROR_INVALID_ARGUMENT);
    BAD(ccmr_resource_deallocate(made, ptr, 0, 0, stream),
        CCMR_ERROR_INVALID_SIZE);
    BAD(ccmr_resource_deallocate(made, ptr + 1, 1000, 0, stream),
        CCMR_ERROR_INVALID_POINTER);
    BAD(ccmr_resource_deallocate(made, ptr + 64, MIB, 0, stream),
        CCMR_ERROR_INVALID_POINTER);
    BAD(ccmr_resource_deallocate(made, &before, 1000, 0, stream),
        CCMR_ERROR_INVALID_POINTER);
    BAD(ccmr_resource_deallocate(made, ptr, 4 * GIB, 0, stream),
        CCMR_ERROR_INVALID_ARGUMENT);
    cr_assert_eq(stats_of(made).live_bytes, before.live_bytes);
    cr_assert_eq(other, &other);
    GOOD(ccmr_resource_allocate(made, 0, 0, stream, &other));
    cr_assert_null(other);
    GOOD(ccmr_resource_deallocate(made, NULL, 0, 0, stream));
    give_some(ptr, 1000);
    cr_assert(has_way());
}

/* The last block's free ends a pool that was released. */
Test(pool_quick, a_pool_that_was_released)
{
    void *small;
    void *large;
    void *other;

    make("pool | device_plain");
    small = take_some(1000);
    large = take_some(MIB);
    ccmr_resource_release(made);
    cr_assert_not(has_way());
    BAD(ccmr_resource_allocate(made, 1000, 0, stream, &other),
        CCMR_ERROR_RELEASED);
    give_some(large, MIB);
    cr_assert_not(has_way());
    give_some(small, 1000);
    made = NULL;
    cr_assert_eq(leaf_census().plain_blocks, 0);
}

/* What a thread knows of a pool that has gone means nothing to the next one,
 * though it may well be where that was. */
Test(pool_quick, pools_one_after_the_other)
{
    int i;

    for (i = 0; i < 40; i++) {
        make(i % 2 == 0 ? "pool | device_plain" : "pool | virtual");
        ccmr_resource_release(made);
        cr_assert_not(has_way());
    }
    made = NULL;
}

static void *look(void *argument)
{
    (void)argument;
    MUST(!has_way());
    pair(1000);
    MUST(has_way());
    return NULL;
}

Test(pool_quick, a_way_is_its_threads)
{
    pthread_t thread;

    make("pool | virtual");
    cr_assert_eq(pthread_create(&thread, NULL, look, NULL), 0);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    cr_assert(has_way());
}

/* A thread has few caches: one that another stream takes is no more the first
 * one's. */
Test(pool_quick, a_cache_that_another_stream_takes)
{
    ccmr_stream others[24];
    int taken = 0;
    size_t i;

    make("pool initial=256MiB | device_plain");
    for (i = 0; i < 24; i++) {
        GOOD(ccmr_stream_create(0, CCMR_STREAM_FLAG_NON_BLOCKING, &others[i]));
    }
    pair(1000);
    for (i = 0; i < 240 && !taken; i++) {
        ccmr_stream other = others[i % 24];
        void *ptr = take_on(made, 1000, other);

        GOOD(ccmr_resource_deallocate(made, ptr, 1000, 0, other));
        taken = !has_way();
        cr_assert(taken || ccmr__quick_find(made, other) !=
                               ccmr__quick_find(made, stream));
    }
    cr_assert(taken);
    for (i = 0; i < 24; i++) {
        GOOD(ccmr_stream_destroy(others[i]));
    }
}

Test(pool_quick, a_forked_child)
{
    void *ptr;
    int status;
    pid_t child;

    make("pool | device_plain");
    child = fork();
    cr_assert_geq(child, 0);
    if (child == 0) {
        status = ccmr_resource_allocate(made, 1000, 0, stream, &ptr);
        _exit(status == CCMR_ERROR_FORKED ? 0 : 1);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    cr_assert(has_way());
}
