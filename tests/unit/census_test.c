/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The census: sums over shards, and waiting for those inside.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/census.h"
#include "lib/thread.h"

static ccmr__census *census;

static void start(void)
{
    census = aligned_alloc(64, sizeof(*census));
    cr_assert_not_null(census);
    memset(census, 0, sizeof(*census));
    ccmr__census_start();
}

static void end(void)
{
    free(census);
}

TestSuite(census, .init = start, .fini = end);

Test(census, each_shard_is_a_cache_line)
{
    cr_assert_eq(sizeof(ccmr__shard) % 64, 0);
    cr_assert_eq(_Alignof(ccmr__shard) % 64, 0);
}

Test(census, sums_all_shards)
{
    ccmr__census_sum sum;
    unsigned slot;

    for (slot = 0; slot < CCMR__SLOTS; slot++) {
        ccmr__shard *shard = &census->shards[slot];

        ccmr__shard_add(slot, &shard->allocations, 2);
        ccmr__shard_add(slot, &shard->deallocations, 1);
        ccmr__shard_add(slot, &shard->bytes, (int64_t)slot);
        ccmr__shard_add(slot, &shard->holders, 3);
        ccmr__shard_add(slot, &shard->failures, 4);
    }
    ccmr__census_read(census, &sum);
    cr_assert_eq(sum.allocations, 2 * CCMR__SLOTS);
    cr_assert_eq(sum.deallocations, CCMR__SLOTS);
    cr_assert_eq(sum.bytes, CCMR__SLOTS * (CCMR__SLOTS - 1) / 2);
    cr_assert_eq(sum.holders, 3 * CCMR__SLOTS);
    cr_assert_eq(sum.failures, 4 * CCMR__SLOTS);
}

/* One shard may be below zero: blocks are freed elsewhere. */
Test(census, a_shard_below_zero_is_made_up_for)
{
    ccmr__census_sum sum;

    ccmr__shard_add(0, &census->shards[0].bytes, 1000);
    ccmr__shard_add(5, &census->shards[5].bytes, -1000);
    ccmr__shard_add(CCMR__SLOT_SHARED,
                    &census->shards[CCMR__SLOT_SHARED].holders, -2);
    ccmr__shard_add(1, &census->shards[1].holders, 2);
    ccmr__census_read(census, &sum);
    cr_assert_eq(sum.bytes, 0);
    cr_assert_eq(sum.holders, 0);
}

Test(census, barrier_returns)
{
    int i;

    for (i = 0; i < 100; i++) {
        ccmr__census_barrier();
    }
}

Test(census, nobody_inside_is_not_waited_for)
{
    ccmr__census_enter(&census->shards[3], 3);
    ccmr__census_leave(&census->shards[3], 3);
    ccmr__census_enter(&census->shards[CCMR__SLOT_SHARED], CCMR__SLOT_SHARED);
    ccmr__census_leave(&census->shards[CCMR__SLOT_SHARED], CCMR__SLOT_SHARED);
    ccmr__census_wait_out(census);
}

static atomic_int left;

static void *leave_later(void *argument)
{
    (void)argument;
    (void)usleep(20000);
    atomic_store(&left, 1);
    ccmr__census_leave(&census->shards[7], 7);
    return NULL;
}

Test(census, those_inside_are_waited_for)
{
    pthread_t thread;

    ccmr__census_enter(&census->shards[7], 7);
    cr_assert_eq(pthread_create(&thread, NULL, leave_later, NULL), 0);
    ccmr__census_wait_out(census);
    cr_assert_eq(atomic_load(&left), 1);
    cr_assert_eq(pthread_join(thread, NULL), 0);
}

static void *my_slot(void *slot)
{
    *(unsigned *)slot = ccmr__thread_self()->slot;
    return NULL;
}

/* Slots are given back: a thousand threads, one after another, share few. */
Test(census, slots_are_used_again)
{
    unsigned slot = CCMR__SLOT_SHARED;
    pthread_t thread;
    int i;

    ccmr__thread_start();
    (void)ccmr__thread_self();
    for (i = 0; i < 1000; i++) {
        cr_assert_eq(pthread_create(&thread, NULL, my_slot, &slot), 0);
        cr_assert_eq(pthread_join(thread, NULL), 0);
        cr_assert_lt(slot, 4u);
        cr_assert_neq(slot, ccmr__thread_self()->slot);
    }
}

static void *my_serial(void *serial)
{
    *(uint64_t *)serial = ccmr__thread_self()->serial;
    return NULL;
}

Test(census, serials_are_never_used_again)
{
    uint64_t before = ccmr__thread_self()->serial;
    uint64_t serial;
    pthread_t thread;
    int i;

    for (i = 0; i < 100; i++) {
        cr_assert_eq(pthread_create(&thread, NULL, my_serial, &serial), 0);
        cr_assert_eq(pthread_join(thread, NULL), 0);
        cr_assert_gt(serial, before);
        before = serial;
    }
}
