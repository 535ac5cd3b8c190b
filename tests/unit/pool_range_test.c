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
    cr_assert_str_eq(leaf_option(made, "handle"), "0");
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

/* A page is the least. */
Test(pool_range, has_a_page_in_its_budget)
{
    ccmr_pool_options options = {.size = sizeof(options), .hard = UNIT - 1};

    cr_assert_eq(ccmr_pool_create(upstream, &options, &made),
                 CCMR_ERROR_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(ccmr_last_error()->message, "hard="));
    options.hard = UNIT;
    GOOD(ccmr_pool_create(upstream, &options, &made));
    cr_assert_eq(ccmr_resource_option_set(made, "hard", "1MiB"),
                 CCMR_ERROR_INVALID_ARGUMENT);
    give(take(UNIT), UNIT);
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

/* ---- what moves -------------------------------------------------------------- */

static void set_hard(const char *text)
{
    GOOD(ccmr_resource_option_set(made, "hard", text));
}

static void fill(char *block, unsigned char value, size_t bytes)
{
    cr_assert_eq(
        api.cuMemsetD8Async((CUdeviceptr)(uintptr_t)block, value, bytes, one),
        CUDA_SUCCESS);
}

static int holds(const char *block, unsigned char value, size_t bytes)
{
    const unsigned char *first = sim->peek((uint64_t)(uintptr_t)block, 1);
    const unsigned char *last =
        sim->peek((uint64_t)(uintptr_t)(block + bytes - 1), 1);

    return first != NULL && last != NULL && *first == value && *last == value;
}

/* Nothing may be new: what lies apart is put side by side. */
Test(pool_range, moves_finished_handles)
{
    char *all;
    char *block;

    make(4 * UNIT, UNIT);
    all = take_row(4);
    give_finished(all, UNIT);
    give_finished(all + 2 * UNIT, UNIT);
    block = take(2 * UNIT);
    cr_assert_eq(block, all + 4 * UNIT);
    cr_assert_eq(reserved(), 4 * UNIT);
    cr_assert_eq(leaf_census().mappings, 4u); /* the old ones are gone */
    fill(all + UNIT, 1, UNIT);
    fill(block, 2, 2 * UNIT);
    fill(all + 3 * UNIT, 3, UNIT);
    cr_assert_eq(api.cuStreamSynchronize(one), CUDA_SUCCESS);
    cr_assert(holds(all + UNIT, 1, UNIT));
    cr_assert(holds(block, 2, 2 * UNIT));
    cr_assert(holds(all + 3 * UNIT, 3, UNIT));
    give(block, 2 * UNIT);
    give(all + UNIT, UNIT);
    give(all + 3 * UNIT, UNIT);
}

/* Work still uses the old addresses: they stay until it is done, and nobody
 * waits here. */
Test(pool_range, moves_what_work_still_uses)
{
    char *all;
    char *block;

    make(4 * UNIT, UNIT);
    all = take_row(4);
    cr_assert_eq(sim->stall(one), 0);
    fill(all, 1, UNIT);
    fill(all + 2 * UNIT, 1, UNIT);
    give(all, UNIT);
    give(all + 2 * UNIT, UNIT);
    block = take(2 * UNIT);
    cr_assert_eq(reserved(), 4 * UNIT);
    cr_assert_eq(leaf_census().mappings, 6u);
    fill(block, 2, 2 * UNIT);
    cr_assert_eq(sim->release(one), 0);
    cr_assert_eq(api.cuStreamSynchronize(one), CUDA_SUCCESS);
    cr_assert(holds(block, 2, 2 * UNIT));
    /* Not the one that has another address. */
    cr_assert_eq(trim(0), 0u);
    cr_assert_eq(leaf_census().mappings, 4u);
    give(block, 2 * UNIT);
    cr_assert_eq(api.cuStreamSynchronize(one), CUDA_SUCCESS);
    GOOD(ccmr_stream_retire(one));
    cr_assert_eq(trim(0), 2 * UNIT);
    give_finished(all + UNIT, UNIT);
    give_finished(all + 3 * UNIT, UNIT);
}

/* One that is too large for what lacks goes over its end. */
Test(pool_range, moves_a_large_handle_over_the_end)
{
    char *large;
    char *small;
    char *rest;
    char *block;

    make(16 * MIB, 8 * MIB);
    large = take(8 * MIB);
    small = take(UNIT);
    rest = take(6 * MIB);
    cr_assert_eq(reserved(), 16 * MIB);
    cr_assert_eq(sim->stall(one), 0);
    fill(large, 1, 8 * MIB);
    give(large, 8 * MIB);
    give(rest, 6 * MIB);
    block = take(12 * MIB);
    cr_assert_eq(block, rest);
    cr_assert_eq(reserved(), 16 * MIB);
    cr_assert_eq(sim->release(one), 0);
    give(block, 12 * MIB);
    give(small, UNIT);
}

/* Between two it cannot: it goes back, and a page that fits is made. */
Test(pool_range, drops_a_large_handle_for_a_small_one)
{
    char *large;
    char *row;
    char *block;

    make(0, 4 * MIB);
    large = take(4 * MIB);
    row = take_row(3);
    give_finished(row + UNIT, UNIT);
    cr_assert_eq(trim(0), UNIT);
    set_hard("8MiB");
    give_finished(row, UNIT);
    give_finished(row + 2 * UNIT, UNIT);
    give_finished(large, 4 * MIB);
    block = take(5 * MIB);
    cr_assert_leq(reserved(), 8 * MIB);
    give(block, 5 * MIB);
}

Test(pool_range, moves_nothing_if_told_not_to)
{
    ccmr_pool_options options = {.size = sizeof(options),
                                 .hard = 4 * UNIT,
                                 .handle = UNIT,
                                 .move = CCMR_POOL_MOVE_NO};
    char *all;
    char *block;

    GOOD(ccmr_pool_create(upstream, &options, &made));
    cr_assert_str_eq(leaf_option(made, "move"), "no");
    all = take_row(4);
    give(all, UNIT);
    give(all + 2 * UNIT, UNIT);
    cr_assert_eq(sim->fail("cuMemMap", 1, CUDA_ERROR_NOT_PERMITTED), 0);
    /* It would need new ones, once the old ones went back. */
    cr_assert_neq(
        ccmr_resource_allocate(made, 2 * UNIT, 0, one, (void **)&block),
        CCMR_SUCCESS);
    (void)sim->forget_failures();
    block = take(2 * UNIT);
    cr_assert_eq(reserved(), 4 * UNIT);
    give(block, 2 * UNIT);
    give(all + UNIT, UNIT);
    give(all + 3 * UNIT, UNIT);
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

/* A call that fails once may be a free's. */
#define MUST_FREE(pool, ptr, bytes, stream)                                   \
    do {                                                                      \
        if (ccmr_resource_deallocate(pool, ptr, bytes, 0, stream) !=          \
            CCMR_SUCCESS) {                                                   \
            GOOD(ccmr_resource_deallocate(pool, ptr, bytes, 0, stream));      \
        }                                                                     \
    } while (0)

/* Moves, and takes old addresses down. */
static ccmr_status go_on(void *context)
{
    ccmr_pool_options options = {
        .size = sizeof(options), .handle = UNIT, .hard = 4 * UNIT};
    ccmr_resource *pool = NULL;
    void *blocks[4] = {NULL, NULL, NULL, NULL};
    void *ptr = NULL;
    ccmr_status status = ccmr_pool_create(upstream, &options, &pool);
    int i;

    (void)context;
    for (i = 0; i < 4 && status == CCMR_SUCCESS; i++) {
        status = ccmr_resource_allocate(pool, UNIT, 0, one, &blocks[i]);
    }
    for (i = 0; i < 4 && blocks[i] != NULL && pool != NULL; i += 2) {
        MUST_FREE(pool, blocks[i], UNIT, i == 0 ? one : CCMR_STREAM_READY);
    }
    if (status == CCMR_SUCCESS) {
        status = ccmr_resource_allocate(pool, 2 * UNIT, 0, one, &ptr);
    }
    if (ptr != NULL) {
        MUST_FREE(pool, ptr, 2 * UNIT, one);
    }
    for (i = 1; i < 4 && blocks[i] != NULL; i += 2) {
        MUST_FREE(pool, blocks[i], UNIT, one);
    }
    if (pool != NULL) {
        GOOD(ccmr_resource_audit(pool));
    }
    ccmr_resource_release(pool);
    return status;
}

Test(pool_range, comes_through_each_failing_call)
{
    leaf_fail_each(go_on, NULL, CUDA_ERROR_OUT_OF_MEMORY);
    leaf_fail_each(go_on, NULL, CUDA_ERROR_NOT_PERMITTED);
    leaf_fail_each(go, NULL, CUDA_ERROR_OUT_OF_MEMORY);
    leaf_fail_each(go, NULL, CUDA_ERROR_NOT_PERMITTED);
}

/* Pieces that a pool makes of 1 GiB. */
static size_t pieces_with(unsigned soft)
{
    ccmr_pool_options options = {.size = sizeof(options), .soft = soft};
    size_t pieces;
    char *blocks[16];
    unsigned i;

    GOOD(ccmr_pool_create(upstream, &options, &made));
    for (i = 0; i < 16; i++) {
        blocks[i] = take(64 * MIB);
    }
    pieces = leaf_census().pieces;
    for (i = 0; i < 16; i++) {
        give(blocks[i], 64 * MIB);
    }
    ccmr_resource_release(made);
    made = NULL;
    return pieces;
}

/* A tight pool has smaller ones: they are wholly free more often. */
Test(pool_range, tight_means_small_pieces)
{
    size_t usual = pieces_with(0);

    cr_assert_geq(pieces_with(105), 2 * usual);
    cr_assert_eq(pieces_with(106), usual);
}
