/* SPDX-License-Identifier: Apache-2.0 */
/*
 * statistics, on one thread. Field cases F1, J2, J5, T3.
 */
#include <cucoremr/resources/statistics.h>

#include <pthread.h>

#include "tests/unit/adaptor.h"

static puppet below;
static ccmr_resource *upstream;
static ccmr_resource *counted;

static void start(void)
{
    puppet_init(&below);
    upstream = puppet_resource(&below);
    GOOD(ccmr_statistics_create(upstream, NULL, &counted));
}

static void end(void)
{
    MUST(ccmr_resource_audit(counted) == CCMR_SUCCESS);
    ccmr_resource_release(counted);
    ccmr_resource_release(upstream);
    MUST(puppet_clear(&below));
}

TestSuite(statistics, .init = start, .fini = end);

static ccmr_statistics figures(void)
{
    ccmr_statistics now = {.size = sizeof(now)};

    GOOD(ccmr_statistics_read(counted, &now));
    return now;
}

static ccmr_statistics popped(void)
{
    ccmr_statistics scope = {.size = sizeof(scope)};

    GOOD(ccmr_statistics_pop(counted, &scope));
    return scope;
}

Test(statistics, counts)
{
    void *a = take(counted, 100);
    void *b = take(counted, 1000);
    ccmr_statistics now;

    give(counted, a, 100);
    now = figures();
    cr_assert_eq(now.allocations, 2u);
    cr_assert_eq(now.deallocations, 1u);
    cr_assert_eq(now.allocated_bytes, 1100u);
    cr_assert_eq(now.deallocated_bytes, 100u);
    cr_assert_eq(now.live_blocks, 1);
    cr_assert_eq(now.live_bytes, 1000);
    cr_assert_eq(now.peak_live_blocks, 2);
    cr_assert_eq(now.peak_live_bytes, 1100);
    cr_assert_eq(now.peak_error_bytes, 0u);
    cr_assert_eq(now.peak_error_blocks, 0u);
    cr_assert_eq(now.largest_bytes, 1000u);
    cr_assert_eq(now.depth, 0u);
    give(counted, b, 1000);
    cr_assert_eq(figures().live_bytes, 0);
    cr_assert_eq(figures().peak_live_bytes, 1100);
    cr_assert_eq(stats_of(counted).peak_live_bytes, 1100u);
    cr_assert(stats_of(counted).exact & CCMR_STAT_PEAK_LIVE_BYTES);
}

/* Each bound of a size's bin, and no bytes at all. */
Test(statistics, sizes)
{
    static const size_t sizes[] = {1, 2, 3, 4, 255, 256, 257, (size_t)1 << 62};
    static const unsigned bins[] = {0, 1, 2, 2, 8, 8, 9, 62};
    uint64_t wanted[CCMR_STATISTICS_SIZES] = {0};
    ccmr_statistics now;
    size_t i;

    give(counted, take(counted, 1), 1);
    wanted[0]++;
    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        give(counted, take(counted, sizes[i]), sizes[i]);
        wanted[bins[i]]++;
    }
    give(counted, take(counted, PTRDIFF_MAX), PTRDIFF_MAX);
    wanted[63]++;
    GOOD(ccmr_resource_deallocate(counted, NULL, 0, 0, LEGACY));
    now = figures();
    cr_assert_arr_eq(now.sizes, wanted, sizeof(wanted));
    cr_assert_eq(now.largest_bytes, (size_t)PTRDIFF_MAX);
    cr_assert_eq(now.live_bytes, 0);
}

/* The peak is a plain maximum, whatever the order of sizes is. */
Test(statistics, peak_agrees_with_a_maximum)
{
    void *blocks[200] = {NULL};
    size_t sizes[200] = {0};
    unsigned seed = 1;
    int64_t live = 0;
    int64_t most = 0;
    int i;

    for (i = 0; i < 20000; i++) {
        size_t at = (seed = seed * 1103515245u + 12345u) >> 16;
        size_t bytes = (seed = seed * 1103515245u + 12345u) >> 16;

        at %= 200;
        bytes = bytes % 300000 + 1;
        if (blocks[at] != NULL) {
            give(counted, blocks[at], sizes[at]);
            live -= (int64_t)sizes[at];
            blocks[at] = NULL;
        } else {
            blocks[at] = take(counted, bytes);
            sizes[at] = bytes;
            live += (int64_t)bytes;
            most = live > most ? live : most;
        }
        if (i % 97 == 0) {
            cr_assert_eq(figures().live_bytes, live);
            cr_assert_eq(figures().peak_live_bytes, most);
        }
    }
    cr_assert_eq(figures().peak_live_bytes, most);
    for (i = 0; i < 200; i++) {
        give(counted, blocks[i], blocks[i] != NULL ? sizes[i] : 0);
    }
}

Test(statistics, failures_by_reason)
{
    void *ptr = NULL;
    ccmr_statistics now;

    below.fail_allocations = 2;
    BAD(ccmr_resource_allocate(counted, 500, 0, LEGACY, &ptr),
        CCMR_ERROR_OUT_OF_DEVICE_MEMORY);
    below.fail_status = CCMR_ERROR_OUT_OF_HOST_MEMORY;
    BAD(ccmr_resource_allocate(counted, 700, 0, LEGACY, &ptr),
        CCMR_ERROR_OUT_OF_HOST_MEMORY);
    below.fail_allocations = 2;
    below.fail_status = CCMR_ERROR_LIMIT_EXCEEDED;
    BAD(ccmr_resource_allocate(counted, 600, 0, LEGACY, &ptr),
        CCMR_ERROR_LIMIT_EXCEEDED);
    below.fail_status = CCMR_ERROR_BUSY;
    BAD(ccmr_resource_allocate(counted, 600, 0, LEGACY, &ptr),
        CCMR_ERROR_BUSY);
    now = figures();
    cr_assert_eq(now.failures_device, 1u);
    cr_assert_eq(now.failures_host, 1u);
    cr_assert_eq(now.failures_limit, 1u);
    cr_assert_eq(now.failures_other, 1u);
    cr_assert_eq(now.largest_failed_bytes, 700u);
    cr_assert_eq(now.allocations, 0u);
    cr_assert_eq(now.peak_live_bytes, 0);
    cr_assert_eq(stats_of(counted).failures, 4u);
}

/* A refused free leaves the block live, and makes no peak. */
Test(statistics, refused_frees)
{
    void *a = take(counted, 4000);
    ccmr_statistics now;

    below.refuse_frees = 1;
    cr_assert_neq(ccmr_resource_deallocate(counted, a, 4000, 0, LEGACY),
                  CCMR_SUCCESS);
    now = figures();
    cr_assert_eq(now.refused_frees, 1u);
    cr_assert_eq(now.live_bytes, 4000);
    cr_assert_eq(now.deallocations, 0u);
    cr_assert_eq(now.peak_live_bytes, 4000);
    cr_assert_eq(now.peak_live_blocks, 1);
    give(counted, a, 4000);
}

Test(statistics, scopes)
{
    void *old = take(counted, 10000);
    void *young;
    ccmr_statistics scope;

    BAD(ccmr_statistics_pop(counted, NULL), CCMR_ERROR_OUT_OF_RANGE);
    GOOD(ccmr_statistics_push(counted));
    cr_assert_eq(figures().live_bytes, 0);
    cr_assert_eq(figures().peak_live_bytes, 0);
    cr_assert_eq(figures().depth, 1u);
    give(counted, old, 10000); /* older than the scope: below 0 */
    cr_assert_eq(figures().live_bytes, -10000);
    cr_assert_eq(figures().live_blocks, -1);
    young = take(counted, 300);
    GOOD(ccmr_statistics_push(counted));
    give(counted, take(counted, 50000), 50000);
    scope = popped();
    cr_assert_eq(scope.peak_live_bytes, 50000);
    cr_assert_eq(scope.peak_live_blocks, 1);
    cr_assert_eq(scope.allocated_bytes, 50000u);
    cr_assert_eq(scope.largest_bytes, 50000u);
    cr_assert_eq(scope.sizes[16], 1u);
    cr_assert_eq(scope.allocations, 1u);
    cr_assert_eq(scope.depth, 2u);
    scope = popped();
    /* 300 + 50000 - 10000 */
    cr_assert_eq(scope.peak_live_bytes, 40300);
    cr_assert_eq(scope.live_bytes, -9700);
    cr_assert_eq(scope.allocations, 2u);
    cr_assert_eq(scope.largest_bytes, 50000u);
    cr_assert_eq(figures().peak_live_bytes, 50300);
    cr_assert_eq(figures().largest_bytes, 50000u);
    give(counted, young, 300);
}

/* What a scope started anew is not lost for who asks for all. */
Test(statistics, stats_see_through_scopes)
{
    give(counted, take(counted, 9000), 9000);
    GOOD(ccmr_statistics_push(counted));
    give(counted, take(counted, 10), 10);
    cr_assert_eq(figures().peak_live_bytes, 10);
    cr_assert_eq(figures().largest_bytes, 10u);
    cr_assert_eq(stats_of(counted).peak_live_bytes, 9000u);
    (void)popped();
    cr_assert_eq(figures().largest_bytes, 9000u);
    cr_assert_eq(figures().peak_live_bytes, 9000);
    cr_assert_eq(figures().peak_live_blocks, 1);
}

static void *other_thread(void *argument)
{
    ccmr_statistics mine = {.size = sizeof(mine)};

    (void)argument;
    give(counted, take(counted, 77), 77);
    GOOD(ccmr_statistics_read_thread(counted, &mine));
    cr_assert_eq(mine.allocations, 1u);
    cr_assert_eq(mine.allocated_bytes, 77u);
    cr_assert_eq(mine.live_bytes, 0);
    cr_assert_eq(mine.sizes[7], 1u);
    cr_assert_eq(mine.peak_live_bytes, 0);
    return NULL;
}

Test(statistics, one_thread_of_two)
{
    ccmr_statistics mine = {.size = sizeof(mine)};
    pthread_t thread;
    void *a = take(counted, 5);

    cr_assert_eq(pthread_create(&thread, NULL, other_thread, NULL), 0);
    (void)pthread_join(thread, NULL);
    GOOD(ccmr_statistics_read_thread(counted, &mine));
    cr_assert_eq(mine.allocations, 1u);
    cr_assert_eq(mine.live_bytes, 5);
    cr_assert_eq(figures().allocations, 2u);
    cr_assert_gt(figures().peak_error_bytes, 0u, "two threads share a peak");
    cr_assert_eq(stats_of(counted).exact & CCMR_STAT_PEAK_LIVE_BYTES, 0u);
    give(counted, a, 5);
}

static void *one_block(void *argument)
{
    (void)argument;
    give(counted, take(counted, 77), 77);
    return NULL;
}

/* A scope's error is of its own peak, not of what was live before it. */
Test(statistics, scopes_have_errors_of_their_own)
{
    void *old = take(counted, 2 * GIB);
    ccmr_statistics scope;
    pthread_t thread;
    void *young;

    cr_assert_eq(pthread_create(&thread, NULL, one_block, NULL), 0);
    (void)pthread_join(thread, NULL);
    cr_assert_geq(figures().peak_error_bytes, 2 * GIB / 32);
    GOOD(ccmr_statistics_push(counted));
    young = take(counted, 77);
    cr_assert_leq(figures().peak_error_bytes, 2 * 4 * KIB);
    cr_assert_leq(figures().peak_error_blocks, 2 * 4u);
    GOOD(ccmr_statistics_push(counted));
    give(counted, take(counted, 64 * MIB), 64 * MIB);
    scope = popped();
    cr_assert_eq(scope.peak_live_bytes, 64 * MIB);
    cr_assert_leq(scope.peak_error_bytes, 64 * MIB / 32 + 2 * 4 * KIB);
    scope = popped();
    cr_assert_eq(scope.peak_live_bytes, 64 * MIB + 77);
    cr_assert_leq(scope.peak_error_bytes, 64 * MIB / 32 + 2 * 4 * KIB + 77);
    cr_assert_geq(figures().peak_error_bytes, 2 * GIB / 32);
    cr_assert_eq(stats_of(counted).exact & CCMR_STAT_PEAK_LIVE_BYTES, 0u);
    give(counted, young, 77);
    give(counted, old, 2 * GIB);
}

/* What nobody was asked is nobody's failure. */
Test(statistics, refused_arguments_are_no_failures)
{
    void *ptr = NULL;

    BAD(ccmr_resource_allocate(counted, 1, 3, LEGACY, &ptr),
        CCMR_ERROR_INVALID_ALIGNMENT);
    BAD(ccmr_resource_allocate(counted, 1, MIB, LEGACY, &ptr),
        CCMR_ERROR_INVALID_ALIGNMENT);
    BAD(ccmr_resource_allocate(counted, SIZE_MAX, 0, LEGACY, &ptr),
        CCMR_ERROR_INVALID_SIZE);
    cr_assert_eq(figures().failures_other, 0u);
    cr_assert_eq(figures().largest_failed_bytes, 0u);
    cr_assert_eq(stats_of(counted).failures, 0u);
    below.fail_allocations = 1;
    below.fail_status = CCMR_ERROR_INVALID_SIZE;
    BAD(ccmr_resource_allocate(counted, 9, 0, LEGACY, &ptr),
        CCMR_ERROR_INVALID_SIZE);
    cr_assert_eq(figures().failures_other, 1u);
    cr_assert_eq(stats_of(counted).failures, 1u);
    cr_assert_eq(stats_of(upstream).failures, 1u);
}

/* T3: a block that came from elsewhere: the count tells, nothing wraps. */
Test(statistics, blocks_from_elsewhere)
{
    void *ptr = take(upstream, 900);

    give(counted, ptr, 900);
    cr_assert_eq(figures().live_bytes, -900);
    cr_assert_eq(figures().live_blocks, -1);
    cr_assert_eq(figures().peak_live_bytes, 0);
    cr_assert_eq(stats_of(counted).live_bytes, 0u);
}

Test(statistics, found_below)
{
    ccmr_resource *top;
    ccmr_statistics now = {.size = sizeof(now)};

    GOOD(ccmr_stack_create_over("limiting bytes=1MiB", counted, &top));
    give(top, take(top, 123), 123);
    GOOD(ccmr_statistics_read(top, &now));
    cr_assert_eq(now.largest_bytes, 123u);
    ccmr_resource_release(top);
    BAD(ccmr_statistics_read(upstream, &now), CCMR_ERROR_INVALID_ARGUMENT);
    cr_assert(strstr(ccmr_last_error()->message, "puppet") != NULL);
}

/* A pop with a wrong struct closes nothing. */
Test(statistics, wrong_struct_pops_nothing)
{
    ccmr_statistics small = {.size = 64};

    GOOD(ccmr_statistics_push(counted));
    BAD(ccmr_statistics_pop(counted, &small), CCMR_ERROR_INVALID_STRUCT);
    cr_assert_eq(figures().depth, 1u);
    GOOD(ccmr_statistics_pop(counted, NULL));
    GOOD(ccmr_statistics_push(counted)); /* left open: freed with it */
}

Test(statistics, text)
{
    ccmr_resource *made;
    char text[128];

    GOOD(ccmr_stack_create("statistics peaks=exact | host", &made));
    cr_assert_str_eq(option_of(made, "peaks"), "exact");
    GOOD(ccmr_stack_print(made, text, sizeof(text), NULL));
    cr_assert_str_eq(text, "statistics peaks=exact | host");
    ccmr_resource_release(made);
    cr_assert_str_eq(option_of(counted, "peaks"), "close");
}
