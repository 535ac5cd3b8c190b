/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool: what it says about itself, its audit, and whom it refuses. Field cases
 * D1, D2, E5, I18.
 */
#include "tests/unit/pool_alone.h"

TestSuite(pool_figures, .init = start, .fini = end);

/* ---- figures ---------------------------------------------------------------------- */

Test(pool_figures, stats)
{
    void *first = take_on(made, 1000, known);
    void *second = take_on(made, 5 * MIB, known);
    ccmr_stats stats;

    give_on(second, 5 * MIB, known);
    stats = stats_of(made);
    cr_assert_eq(stats.live_bytes, 1000u);
    cr_assert_eq(stats.live_blocks, 1u);
    cr_assert_eq(stats.allocations, 2u);
    cr_assert_eq(stats.deallocations, 1u);
    cr_assert_eq(stats.reserved_bytes, below.live_bytes);
    cr_assert_eq(stats.peak_reserved_bytes, below.peak_bytes);
    cr_assert_neq(stats.exact & CCMR_STAT_RESERVED_BYTES, 0u);
    below.fail_allocations = 1;
    below.fail_status = CCMR_ERROR_DEVICE_FAULT;
    BAD(attempt(9 * MIB, known), CCMR_ERROR_DEVICE_FAULT);
    cr_assert_eq(stats_of(made).failures, 1u);
    give_on(first, 1000, known);
}

Test(pool_figures, out_of_memory_tells_its_numbers)
{
    void *live = take_on(made, 4 * MIB, known);
    void *freed = take_on(made, 2 * MIB, known);
    const ccmr_error_detail *detail;

    give_on(freed, 2 * MIB, known);
    below.capacity = below.live_bytes;
    BAD(attempt(3 * MIB, known), CCMR_ERROR_OUT_OF_DEVICE_MEMORY);
    detail = ccmr_last_error();
    cr_assert_eq(detail->requested, 3 * MIB);
    cr_assert_eq(detail->live, 4 * MIB);
    cr_assert_eq(detail->pending, 0u);
    /* The free block went back, in case that would help. */
    cr_assert_eq(detail->reserved, below.live_bytes);
    cr_assert_eq(detail->largest_free, detail->reserved - detail->live);
    cr_assert_gt(detail->limit, 0u);
    give_on(live, 4 * MIB, known);
    GOOD(attempt(4 * MIB, known));
}

/* An upstream that is full is asked once on the way (in whole units), and at the
 * end once in units and once exactly; all that again if something came free
 * meanwhile, as here the first time. */
Test(pool_figures, a_full_upstream_is_asked_little)
{
    void *live = take_on(made, 4 * MIB, known);
    void *other = take_on(made, 1000, two);
    size_t calls;

    below.capacity = below.live_bytes;
    calls = below.allocations;
    BAD(attempt(3 * MIB, known), CCMR_ERROR_OUT_OF_DEVICE_MEMORY);
    cr_assert_leq(below.allocations, calls + 2 * 3);
    give_on(other, 1000, two);
    give_on(live, 4 * MIB, known);
}

/* A hole that is too small is the largest free run. */
Test(pool_figures, out_of_memory_tells_the_largest_hole)
{
    ccmr_pool_options options = {.size = sizeof(options), .hard = 8 * MIB};
    void *blocks[8];
    int i;

    make_with(&options);
    for (i = 0; i < 8; i++) {
        blocks[i] = take_on(made, MIB, known);
    }
    give_on(blocks[2], MIB, known);
    give_on(blocks[5], MIB, known);
    BAD(attempt(MIB + 1, known), CCMR_ERROR_LIMIT_EXCEEDED);
    cr_assert_eq(ccmr_last_error()->largest_free, MIB);
    cr_assert_eq(ccmr_last_error()->live, 6 * MIB);
    cr_assert_eq(ccmr_last_error()->reserved, 8 * MIB);
    cr_assert_eq(ccmr_last_error()->limit, 8 * MIB);
    blocks[2] = take_on(made, MIB, known);
    blocks[5] = take_on(made, MIB, known);
    for (i = 0; i < 8; i++) {
        give_on(blocks[i], MIB, known);
    }
}

Test(pool_figures, would_fit)
{
    ccmr_pool_options options = {.size = sizeof(options), .hard = 8 * MIB};
    void *ptr;
    int fits = -1;

    make_with(&options);
    ptr = take_on(made, 6 * MIB, known);
    GOOD(ccmr_resource_would_fit(made, 3 * MIB, known, &fits));
    cr_assert_eq(fits, 0);
    GOOD(ccmr_resource_would_fit(made, SIZE_MAX / 2, known, &fits));
    cr_assert_eq(fits, 0);
    give_on(ptr, 6 * MIB, known);
    (void)sim->run(UINT64_MAX);
    (void)trim(SIZE_MAX);
    GOOD(ccmr_resource_would_fit(made, 6 * MIB, known, &fits));
    cr_assert_eq(fits, 1);
}

/* The audit sees a byte too many or too few, wherever it is. */
Test(pool_figures, audit_sees_wrong_books)
{
    ccmr__pool *self = made->self;
    ccmr__pool_lane *lane;
    void *ptr = take_on(made, 1000, known);

    GOOD(ccmr_resource_audit(made));
    atomic_fetch_add(&self->brought, 256);
    BAD(ccmr_resource_audit(made), CCMR_ERROR_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(ccmr_last_error()->message, "books"));
    atomic_fetch_sub(&self->brought, 256);
    GOOD(ccmr_resource_audit(made));
    lane = atomic_load(&self->lanes);
    lane->set.out_bytes--;
    BAD(ccmr_resource_audit(made), CCMR_ERROR_INVALID_ARGUMENT);
    lane->set.out_bytes++;
    lane->set.owed++;
    lane->set.owed += (ptrdiff_t)lane->set.spare;
    BAD(ccmr_resource_audit(made), CCMR_ERROR_INVALID_ARGUMENT);
    lane->set.owed -= (ptrdiff_t)lane->set.spare;
    lane->set.owed--;
    GOOD(ccmr_resource_audit(made));
    give_on(ptr, 1000, known);
}

/* Records on their way between lanes are neither missing nor too many: with
 * nothing live, whoever carries some makes the lanes owe less than nothing. */
Test(pool_figures, audit_counts_records_on_their_way)
{
    ccmr__pool *self = made->self;
    ccmr__pool_extent *records;
    ccmr__pool_lane *lane;
    size_t count;

    give_on(take_on(made, 1000, known), 1000, known);
    lane = atomic_load(&self->lanes);
    (void)trim(SIZE_MAX);
    ccmr__pool_lane_lock(lane);
    count = ccmr__pool_carry(lane, 1000, &records);
    ccmr__pool_lane_unlock(lane);
    cr_assert_gt(count, 0);
    GOOD(ccmr_resource_audit(made));
    ccmr__pool_carried(self->common, records, count);
    GOOD(ccmr_resource_audit(made));
}

/* ---- refusals ----------------------------------------------------------------------- */

Test(pool_figures, fails_with_the_upstreams_code)
{
    static const ccmr_status codes[] = {CCMR_ERROR_OUT_OF_DEVICE_MEMORY,
                                        CCMR_ERROR_OUT_OF_HOST_MEMORY,
                                        CCMR_ERROR_LIMIT_EXCEEDED};
    void *ptr = take_on(made, UNIT, known);
    size_t i;

    below.capacity = UNIT;
    for (i = 0; i < 3; i++) {
        below.full_status = codes[i];
        BAD(attempt(4000, known), codes[i]);
        cr_assert_str_eq(ccmr_last_error()->message,
                         "the puppet was told to fail");
    }
    give_on(ptr, UNIT, known);
    GOOD(attempt(4000, known));
}

/* I18: each layer of a stack refuses in its own name, with its own numbers. */
static void refused_by(const char *text, size_t bytes, const char *who,
                       size_t limit)
{
    ccmr_resource *stack;
    void *none = NULL;

    GOOD(ccmr_stack_create(text, &stack));
    BAD(ccmr_resource_allocate(stack, bytes, 0, known, &none),
        CCMR_ERROR_LIMIT_EXCEEDED);
    cr_assert_str_eq(ccmr_last_error()->resource, who);
    cr_assert_eq(ccmr_last_error()->limit, limit, "%s: %zu", text,
                 ccmr_last_error()->limit);
    GOOD(ccmr_resource_allocate(stack, MIB, 0, known, &none));
    GOOD(ccmr_resource_deallocate(stack, none, MIB, 0, known));
    ccmr_resource_release(stack);
}

Test(pool_figures, who_refuses)
{
    refused_by("limiting bytes=4MiB | pool hard=8MiB | device_plain", 5 * MIB,
               "limiting", 4 * MIB);
    refused_by("limiting bytes=16MiB | pool hard=8MiB | device_plain", 9 * MIB,
               "pool", 8 * MIB);
    refused_by("pool hard=16MiB | limiting bytes=8MiB | device_plain", 9 * MIB,
               "limiting", 8 * MIB);
}

/* Other failures are nobody's to retry, and leave the books alone. */
Test(pool_figures, other_failures_pass)
{
    below.fail_allocations = 1;
    below.fail_status = CCMR_ERROR_DEVICE_FAULT;
    BAD(attempt(4000, known), CCMR_ERROR_DEVICE_FAULT);
    cr_assert_eq(below.allocations, 1u);
    cr_assert_eq(stats_of(made).reserved_bytes, 0u);
    GOOD(attempt(4000, known));
}

Test(pool_figures, wrong_frees)
{
    char *ptr = take_on(made, 1000, known);
    char *foreign = take_on(upstream, 1000, known);

    BAD(ccmr_resource_deallocate(made, foreign, 1000, 0, known),
        CCMR_ERROR_INVALID_POINTER);
    BAD(ccmr_resource_deallocate(made, foreign, 1000, 0, one),
        CCMR_ERROR_INVALID_POINTER);
    BAD(ccmr_resource_deallocate(made, foreign, 1000, 0, CCMR_STREAM_READY),
        CCMR_ERROR_INVALID_POINTER);
    BAD(ccmr_resource_deallocate(made, ptr + 8, 1000, 0, known),
        CCMR_ERROR_INVALID_POINTER);
    BAD(ccmr_resource_deallocate(made, ptr, 3 * MIB, 0, known),
        CCMR_ERROR_INVALID_ARGUMENT);
    cr_assert_neq(ccmr_resource_deallocate(made, ptr, SIZE_MAX, 0, known),
                  CCMR_SUCCESS);
    cr_assert_eq(stats_of(made).live_blocks, 1u);
    GOOD(ccmr_resource_audit(made));
    give_on(ptr, 1000, known);
    GOOD(ccmr_resource_deallocate(upstream, foreign, 1000, 0, known));
}

/* E5, D1, D2: refused before anything happens; what is done on other streams
 * does the capture no harm. */
Test(pool_figures, refused_streams)
{
    ccmr_stream far = leaf_stream(1);
    void *ptr = take_on(made, 1000, one);
    void *large = take_on(made, 3 * MIB, one);
    CUgraph graph;

    BAD(attempt(1000, far), CCMR_ERROR_WRONG_DEVICE);
    BAD(ccmr_resource_deallocate(made, ptr, 1000, 0, far),
        CCMR_ERROR_WRONG_DEVICE);
    cr_assert_eq(api.cuStreamBeginCapture(two, CU_STREAM_CAPTURE_MODE_GLOBAL),
                 CUDA_SUCCESS);
    BAD(attempt(1000, two), CCMR_ERROR_CAPTURING);
    BAD(ccmr_resource_deallocate(made, ptr, 1000, 0, two),
        CCMR_ERROR_CAPTURING);
    give_on(large, 3 * MIB, one);
    GOOD(attempt(700, known));
    (void)trim(0);
    (void)stats_of(made);
    below.capacity = below.live_bytes;
    BAD(attempt(30 * MIB, known), CCMR_ERROR_OUT_OF_DEVICE_MEMORY);
    cr_assert_eq(api.cuStreamEndCapture(two, &graph), CUDA_SUCCESS);
    cr_assert_eq(api.cuGraphDestroy(graph), CUDA_SUCCESS);
    give_on(ptr, 1000, one);
}
