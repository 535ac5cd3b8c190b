/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool over virtual on the simulated driver: where memory comes to in the
 * pool's range, how much of it, and what goes back.
 */
#include "tests/unit/leaf.h"

#include <cucoremr/resources/pool.h>
#include <cucoremr/resources/virtual.h>

#define UNIT (2 * MIB)

static const ccmr_sim_table *sim;
static ccmr_resource *upstream;
static ccmr_resource *made;
static ccmr_stream one;

#define GOOD(call)                                                            \
    cr_assert_eq(call, CCMR_SUCCESS, "%s", ccmr_last_error()->message)

static void start(void)
{
    sim = leaf_start();
    (void)sim->set_mode(CCMR_SIM_LATE);
    one = leaf_stream(0);
    GOOD(ccmr_virtual_create(0, NULL, &upstream));
}

static void end(void)
{
    if (made != NULL) {
        GOOD(ccmr_resource_audit(made));
        ccmr_resource_release(made);
    }
    GOOD(ccmr_resource_audit(upstream));
    ccmr_resource_release(upstream);
    cr_assert_eq(leaf_census().pieces, 0u);
    cr_assert_eq(leaf_census().mappings, 0u);
    cr_assert_eq(leaf_census().ranges, 0u);
    leaf_end();
}

TestSuite(pool_range, .init = start, .fini = end);

static void make(size_t hard, size_t handle)
{
    ccmr_pool_options options = {
        .size = sizeof(options), .hard = hard, .handle = handle, .soft = 100};

    GOOD(ccmr_pool_create(upstream, &options, &made));
}

static char *take(size_t bytes)
{
    void *ptr = NULL;

    GOOD(ccmr_resource_allocate(made, bytes, 0, one, &ptr));
    return ptr;
}

static void give(void *ptr, size_t bytes)
{
    GOOD(ccmr_resource_deallocate(made, ptr, bytes, 0, one));
}

static void give_finished(void *ptr, size_t bytes)
{
    GOOD(ccmr_resource_deallocate(made, ptr, bytes, 0, CCMR_STREAM_READY));
}

static size_t reserved(void)
{
    ccmr_stats stats = {.size = sizeof(stats)};

    GOOD(ccmr_resource_stats(made, &stats));
    GOOD(ccmr_resource_audit(made));
    /* As many as the driver gave. */
    cr_assert_eq(stats.reserved_bytes, leaf_census().piece_bytes);
    return stats.reserved_bytes;
}

static size_t trim(size_t keep)
{
    ccmr_trim_result result = {.size = sizeof(result)};

    GOOD(ccmr_resource_trim(made, keep, &result));
    return result.released_bytes;
}

Test(pool_range, has_one_range_and_no_memory_at_first)
{
    make(0, 0);
    cr_assert_eq(leaf_census().ranges, 1u);
    cr_assert_eq(leaf_census().pieces, 0u);
    cr_assert_eq(reserved(), 0u);
    cr_assert_str_eq(leaf_option(made, "handle"), "64MiB");
}

/* What is free before the new memory is used, only the rest is new. */
Test(pool_range, grows_behind_what_is_free)
{
    char *first;
    char *second;

    make(0, 0);
    first = take(3 * MIB);
    cr_assert_eq(reserved(), 4 * MIB);
    second = take(2 * MIB);
    cr_assert_eq(second, first + 3 * MIB);
    cr_assert_eq(reserved(), 6 * MIB);
    give(second, 2 * MIB);
    give(first, 3 * MIB);
    /* On its own stream at once, over the handles' borders. */
    first = take(6 * MIB);
    cr_assert_eq(reserved(), 6 * MIB);
    give(first, 6 * MIB);
}

/* Powers of two, the largest first. */
Test(pool_range, comes_in_handles_of_at_most_so_many_bytes)
{
    char *block;

    make(0, 9 * MIB);
    block = take(22 * MIB);
    cr_assert_eq(reserved(), 22 * MIB);
    cr_assert_eq(leaf_census().pieces, 4u); /* 8 8 4 2 */
    give(block, 22 * MIB);
}

/* Handles go one by one; the hole is filled by who fits. */
Test(pool_range, trims_handles_and_fills_the_hole)
{
    char *blocks[4];
    char *block;
    int i;

    make(0, UNIT);
    for (i = 0; i < 4; i++) {
        blocks[i] = take(UNIT);
    }
    cr_assert_eq(reserved(), 4 * UNIT);
    give_finished(blocks[1], UNIT);
    cr_assert_eq(trim(4 * UNIT), 0u);
    cr_assert_eq(trim(3 * UNIT + 1), 0u);
    cr_assert_eq(trim(0), UNIT);
    cr_assert_eq(reserved(), 3 * UNIT);
    block = take(UNIT);
    cr_assert_eq(block, blocks[1]);
    cr_assert_eq(reserved(), 4 * UNIT);
    give(block, UNIT);
    give(blocks[0], UNIT);
    give(blocks[2], UNIT);
    give(blocks[3], UNIT);
}

/* Blocks of a page each, side by side. */
static char *take_row(size_t count)
{
    char *first = take(UNIT);
    size_t i;

    for (i = 1; i < count; i++) {
        cr_assert_eq(take(UNIT), first + i * UNIT);
    }
    return first;
}

/* Free before the hole and behind it: what lacks is the hole alone. */
Test(pool_range, closes_a_hole_between_free_memory)
{
    char *all;
    char *block;

    make(0, UNIT);
    all = take_row(4);
    give_finished(all + UNIT, UNIT);
    cr_assert_eq(trim(0), UNIT);
    give_finished(all, UNIT);
    give_finished(all + 2 * UNIT, UNIT);
    cr_assert_eq(reserved(), 3 * UNIT);
    block = take(2 * UNIT + MIB);
    cr_assert_eq(block, all);
    cr_assert_eq(reserved(), 4 * UNIT);
    give(block, 2 * UNIT + MIB);
    give(all + 3 * UNIT, UNIT);
}

/* Behind the hole alone. */
Test(pool_range, grows_before_what_is_free)
{
    char *all;
    char *block;

    make(0, UNIT);
    all = take_row(5);
    give_finished(all + UNIT, UNIT);
    give_finished(all + 2 * UNIT, UNIT);
    cr_assert_eq(trim(0), 2 * UNIT);
    give_finished(all + 3 * UNIT, UNIT);
    block = take(2 * UNIT);
    cr_assert_eq(block, all + 2 * UNIT);
    cr_assert_eq(reserved(), 4 * UNIT);
    give(block, 2 * UNIT);
    give(all, UNIT);
    give(all + 4 * UNIT, UNIT);
}

Test(pool_range, never_exceeds_the_hard_budget)
{
    void *ptr = NULL;
    char *block;
    char *other;

    make(4 * UNIT, 0);
    block = take(3 * UNIT);
    cr_assert_eq(ccmr_resource_allocate(made, 2 * UNIT, 0, one, &ptr),
                 CCMR_ERROR_LIMIT_EXCEEDED);
    cr_assert_eq(reserved(), 3 * UNIT);
    other = take(UNIT);
    cr_assert_eq(reserved(), 4 * UNIT);
    give(block, 3 * UNIT);
    give(other, UNIT);
    /* All of it, at once. */
    block = take(4 * UNIT);
    cr_assert_eq(reserved(), 4 * UNIT);
    give(block, 4 * UNIT);
}

Test(pool_range, begins_with_the_initial_bytes)
{
    ccmr_pool_options options = {
        .size = sizeof(options), .initial = 5 * MIB, .hard = 5 * MIB};
    char *block;

    GOOD(ccmr_pool_create(upstream, &options, &made));
    cr_assert_eq(reserved(), 4 * MIB); /* no page more than the budget */
    ccmr_resource_release(made);
    options.hard = 0;
    GOOD(ccmr_pool_create(upstream, &options, &made));
    cr_assert_eq(reserved(), 6 * MIB);
    block = take(6 * MIB);
    cr_assert_eq(reserved(), 6 * MIB);
    give(block, 6 * MIB);
}

/* An adaptor passes no ranges on. */
Test(pool_range, works_by_segments_through_an_adaptor)
{
    ccmr_resource *limited;
    char *block;

    GOOD(ccmr_limiting_create(upstream, GIB, &limited));
    GOOD(ccmr_pool_create(limited, NULL, &made));
    cr_assert_eq(leaf_census().ranges, 0u);
    block = take(MIB);
    give(block, MIB);
    GOOD(ccmr_resource_audit(made));
    ccmr_resource_release(made);
    made = NULL;
    ccmr_resource_release(limited);
}

/* ---- what fails -------------------------------------------------------------- */

/* Two of four handles came: they stay, free, and serve the next one. */
Test(pool_range, keeps_what_came_before_an_error)
{
    void *ptr = NULL;
    char *block;

    make(0, UNIT);
    cr_assert_eq(sim->fail("cuMemCreate", 3, CUDA_ERROR_NOT_PERMITTED), 0);
    cr_assert_neq(ccmr_resource_allocate(made, 4 * UNIT, 0, one, &ptr),
                  CCMR_SUCCESS);
    (void)sim->forget_failures();
    cr_assert_eq(reserved(), 2 * UNIT);
    block = take(3 * UNIT);
    cr_assert_eq(reserved(), 3 * UNIT);
    give(block, 3 * UNIT);
}

/* The second of three handles is not taken back: it and the third stay. */
Test(pool_range, keeps_what_the_upstream_refuses)
{
    ccmr_trim_result result = {.size = sizeof(result)};
    char *block;

    make(0, UNIT);
    block = take(3 * UNIT);
    give_finished(block, 3 * UNIT);
    cr_assert_eq(sim->fail("cuMemUnmap", 2, CUDA_ERROR_NOT_PERMITTED), 0);
    cr_assert_neq(ccmr_resource_trim(made, 0, &result), CCMR_SUCCESS);
    (void)sim->forget_failures();
    cr_assert_eq(reserved(), 2 * UNIT);
    cr_assert_eq(trim(0), 2 * UNIT);
    cr_assert_eq(reserved(), 0u);
}

static ccmr_status go(void *context)
{
    ccmr_pool_options options = {.size = sizeof(options), .handle = UNIT};
    ccmr_resource *pool = NULL;
    void *ptr = NULL;
    ccmr_status status = ccmr_pool_create(upstream, &options, &pool);

    (void)context;
    if (status != CCMR_SUCCESS) {
        return status;
    }
    status = ccmr_resource_allocate(pool, 3 * UNIT, 0, one, &ptr);
    if (status == CCMR_SUCCESS) {
        GOOD(ccmr_resource_deallocate(pool, ptr, 3 * UNIT, 0,
                                      CCMR_STREAM_READY));
        status = ccmr_resource_trim(pool, UNIT, NULL);
    }
    GOOD(ccmr_resource_audit(pool));
    ccmr_resource_release(pool);
    return status;
}

Test(pool_range, comes_through_each_failing_call)
{
    leaf_fail_each(go, NULL, CUDA_ERROR_OUT_OF_MEMORY);
    leaf_fail_each(go, NULL, CUDA_ERROR_NOT_PERMITTED);
}
