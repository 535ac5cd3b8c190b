/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limiting, on one thread. Field cases J1, J2, F7, H1, H8.
 */
#include "tests/unit/adaptor.h"
#include "tests/unit/leaf.h"

#define LIMIT 100000

static puppet below;
static ccmr_resource *upstream;
static ccmr_resource *limited;

static void start(void)
{
    puppet_init(&below);
    upstream = puppet_resource(&below);
    GOOD(ccmr_limiting_create(upstream, LIMIT, &limited));
}

static void end(void)
{
    MUST(ccmr_resource_audit(limited) == CCMR_SUCCESS);
    ccmr_resource_release(limited);
    ccmr_resource_release(upstream);
    MUST(puppet_clear(&below));
}

TestSuite(limiting, .init = start, .fini = end);

static ccmr_status attempt(size_t bytes)
{
    void *ptr = NULL;
    ccmr_status status =
        ccmr_resource_allocate(limited, bytes, 0, LEGACY, &ptr);

    if (status == CCMR_SUCCESS) {
        give(limited, ptr, bytes);
    } else {
        cr_assert_null(ptr);
    }
    return status;
}

Test(limiting, exact_to_the_byte)
{
    void *first = take(limited, 60000);
    void *second = take(limited, 39999);
    void *third = take(limited, 1);
    const ccmr_error_detail *detail;
    int round;

    BAD(attempt(1), CCMR_ERROR_LIMIT_EXCEEDED);
    detail = ccmr_last_error();
    cr_assert_eq(detail->requested, 1u);
    cr_assert_eq(detail->limit, (size_t)LIMIT);
    cr_assert_eq(detail->live, (size_t)LIMIT);
    cr_assert_str_eq(detail->resource, "limiting");
    cr_assert(strstr(detail->message, "100000") != NULL);
    cr_assert_eq(below.allocations, 3u, "the upstream was asked");

    give(limited, second, 39999);
    for (round = 0; round < 100; round++) {
        GOOD(attempt(39999));
        BAD(attempt(40000), CCMR_ERROR_LIMIT_EXCEEDED);
        cr_assert_eq(ccmr_last_error()->live, 60001u);
    }
    give(limited, first, 60000);
    give(limited, third, 1);
    GOOD(attempt(LIMIT));
    BAD(attempt(LIMIT + 1), CCMR_ERROR_LIMIT_EXCEEDED);
    cr_assert_eq(ccmr_last_error()->live, 0u);
}

/* Any order of sizes: the count is what a plain sum is. */
Test(limiting, agrees_with_a_sum)
{
    void *blocks[200] = {NULL};
    size_t sizes[200] = {0};
    unsigned seed = 1;
    size_t live = 0;
    int i;

    for (i = 0; i < 20000; i++) {
        size_t at = (seed = seed * 1103515245u + 12345u) >> 16;
        size_t bytes = (seed = seed * 1103515245u + 12345u) >> 16;

        at %= 200;
        bytes = bytes % 3000 + 1;
        if (blocks[at] != NULL) {
            give(limited, blocks[at], sizes[at]);
            blocks[at] = NULL;
            live -= sizes[at];
        } else {
            ccmr_status status =
                ccmr_resource_allocate(limited, bytes, 0, LEGACY, &blocks[at]);

            cr_assert_eq(status, live + bytes <= LIMIT
                                     ? CCMR_SUCCESS
                                     : CCMR_ERROR_LIMIT_EXCEEDED);
            if (status == CCMR_SUCCESS) {
                sizes[at] = bytes;
                live += bytes;
            } else {
                cr_assert_eq(ccmr_last_error()->live, live);
            }
        }
        cr_assert_eq(stats_of(limited).live_bytes, live);
    }
    cr_assert_gt(stats_of(limited).failures, 0u);
    for (i = 0; i < 200; i++) {
        give(limited, blocks[i], blocks[i] != NULL ? sizes[i] : 0);
    }
}

/* J1: counted is what was asked for, not what somebody rounds it to. */
Test(limiting, counts_as_asked)
{
    void *blocks[1000];
    int i;

    GOOD(ccmr_resource_option_set(limited, "bytes", "1000"));
    for (i = 0; i < 1000; i++) {
        blocks[i] = take(limited, 1);
    }
    BAD(attempt(1), CCMR_ERROR_LIMIT_EXCEEDED);
    for (i = 0; i < 1000; i++) {
        give(limited, blocks[i], 1);
    }
}

/* H1: nothing wraps where limit or request are near the end of size_t. */
Test(limiting, nothing_wraps)
{
    void *ptr;

    BAD(attempt(SIZE_MAX), CCMR_ERROR_INVALID_SIZE);
    BAD(attempt(PTRDIFF_MAX), CCMR_ERROR_LIMIT_EXCEEDED);
    GOOD(ccmr_resource_option_set(limited, "bytes", "18446744073709551615"));
    cr_assert_str_eq(option_of(limited, "bytes"), "18446744073709551615");
    GOOD(attempt(PTRDIFF_MAX));
    ptr = take(limited, PTRDIFF_MAX - 1);
    GOOD(attempt(1));
    give(limited, ptr, PTRDIFF_MAX - 1);
    GOOD(ccmr_resource_option_set(limited, "bytes", "0"));
    BAD(attempt(1), CCMR_ERROR_LIMIT_EXCEEDED);
    GOOD(ccmr_resource_allocate(limited, 0, 0, LEGACY, &ptr));
    cr_assert_null(ptr);
}

Test(limiting, a_failing_upstream_costs_nothing)
{
    int i;

    below.fail_status = CCMR_ERROR_OUT_OF_DEVICE_MEMORY;
    for (i = 0; i < 100; i++) {
        below.fail_allocations = 1;
        BAD(attempt(LIMIT), CCMR_ERROR_OUT_OF_DEVICE_MEMORY);
        cr_assert_str_eq(ccmr_last_error()->message,
                         "the puppet was told to fail");
        cr_assert_str_eq(ccmr_last_error()->resource, "puppet");
        GOOD(attempt(LIMIT));
    }
}

Test(limiting, a_refused_free_stays_counted)
{
    void *ptr = take(limited, LIMIT);

    below.refuse_frees = 1;
    BAD(ccmr_resource_deallocate(limited, ptr, LIMIT, 0, LEGACY),
        CCMR_ERROR_BUSY);
    BAD(attempt(1), CCMR_ERROR_LIMIT_EXCEEDED);
    give(limited, ptr, LIMIT);
    GOOD(attempt(LIMIT));
}

/* H8: what comes in goes down unchanged, on both ways. */
Test(limiting, passes_all_on_unchanged)
{
    ccmr_stream stream = CCMR_STREAM_PER_THREAD;
    void *ptr;

    GOOD(ccmr_resource_allocate(limited, 1234, 2048, stream, &ptr));
    cr_assert_eq(below.last_bytes, 1234u);
    cr_assert_eq(below.last_alignment, 2048u);
    cr_assert_eq(below.last_stream, stream);
    below.last_bytes = 0;
    GOOD(
        ccmr_resource_deallocate(limited, ptr, 1234, 2048, CCMR_STREAM_READY));
    cr_assert_eq(below.last_bytes, 1234u);
    cr_assert_eq(below.last_alignment, 2048u);
    cr_assert_eq(below.last_stream, CCMR_STREAM_READY);
    BAD(ccmr_resource_allocate(limited, 1, 8192, stream, &ptr),
        CCMR_ERROR_INVALID_ALIGNMENT);
}

static ccmr_status status_inside;

static void try_inside(puppet *self)
{
    void (*hook)(puppet *) = self->on_deallocate;

    self->on_deallocate = NULL;
    self->on_allocate = NULL;
    status_inside = attempt(LIMIT - 50);
    self->on_deallocate = hook;
}

/* F7: the upstream may call back. A free counts when the upstream has taken
 * the block, a request from before it is asked. */
Test(limiting, counted_while_the_upstream_works)
{
    void *ptr = take(limited, 51);

    below.on_deallocate = try_inside;
    status_inside = CCMR_SUCCESS;
    give(limited, ptr, 51);
    cr_assert_eq(status_inside, CCMR_ERROR_LIMIT_EXCEEDED);
    below.on_deallocate = NULL;

    below.on_allocate = try_inside;
    status_inside = CCMR_SUCCESS;
    ptr = take(limited, 51);
    cr_assert_eq(status_inside, CCMR_ERROR_LIMIT_EXCEEDED);
    give(limited, ptr, 51);

    below.on_allocate = try_inside;
    ptr = take(limited, 50);
    cr_assert_eq(status_inside, CCMR_SUCCESS);
    give(limited, ptr, 50);
}

Test(limiting, the_limit_changes_while_running)
{
    void *first = take(limited, 60000);
    void *second = take(limited, 30000);

    cr_assert_str_eq(option_of(limited, "bytes"), "100000");
    GOOD(ccmr_resource_option_set(limited, "bytes", "50KiB"));
    cr_assert_str_eq(option_of(limited, "bytes"), "50KiB");
    BAD(attempt(1), CCMR_ERROR_LIMIT_EXCEEDED);
    cr_assert_eq(ccmr_last_error()->live, 90000u);
    cr_assert_eq(ccmr_last_error()->limit, 50 * KIB);
    give(limited, second, 30000);
    BAD(attempt(1), CCMR_ERROR_LIMIT_EXCEEDED);
    give(limited, first, 60000);
    GOOD(attempt(50 * KIB));
    BAD(attempt(50 * KIB + 1), CCMR_ERROR_LIMIT_EXCEEDED);
    GOOD(ccmr_resource_option_set(limited, "bytes", "1GiB"));
    GOOD(attempt(GIB));

    BAD(ccmr_resource_option_set(limited, "bytes", "many"),
        CCMR_ERROR_INVALID_ARGUMENT);
    BAD(ccmr_resource_option_set(limited, "bytes", "50%"),
        CCMR_ERROR_INVALID_ARGUMENT);
    BAD(ccmr_resource_option_set(limited, "byts", "1"),
        CCMR_ERROR_UNKNOWN_NAME);
    cr_assert_str_eq(option_of(limited, "bytes"), "1GiB");
}

/* J2: blocks that never were counted come back through the adaptor. */
Test(limiting, foreign_frees_never_wrap)
{
    void *foreign[10];
    void *own;
    int i;

    for (i = 0; i < 10; i++) {
        foreign[i] = take(upstream, LIMIT);
    }
    own = take(limited, 10);
    for (i = 0; i < 10; i++) {
        give(limited, foreign[i], LIMIT);
        BAD(attempt(LIMIT + 1), CCMR_ERROR_LIMIT_EXCEEDED);
        cr_assert_leq(ccmr_last_error()->live, 10u);
        GOOD(ccmr_resource_audit(limited));
    }
    give(limited, own, 10);
    BAD(ccmr_resource_audit(limited), CCMR_ERROR_INVALID_ARGUMENT);
    GOOD(attempt(LIMIT));
    BAD(attempt(LIMIT + 1), CCMR_ERROR_LIMIT_EXCEEDED);
    cr_assert_eq(ccmr_last_error()->live, 0u);
    /* A new limit starts a new count. */
    GOOD(ccmr_resource_option_set(limited, "bytes", "100000"));
    GOOD(ccmr_resource_audit(limited));
}

Test(limiting, stats_and_properties)
{
    ccmr_properties properties = {.size = sizeof(properties)};
    ccmr_resource *found;
    void *ptr = take(limited, 5000);
    ccmr_stats stats;
    int fits = 1;

    BAD(attempt(LIMIT), CCMR_ERROR_LIMIT_EXCEEDED);
    stats = stats_of(limited);
    cr_assert_eq(stats.live_bytes, 5000u);
    cr_assert_eq(stats.reserved_bytes, 5000u);
    cr_assert_eq(stats.live_blocks, 1u);
    cr_assert_eq(stats.failures, 1u);
    GOOD(ccmr_resource_describe(limited, &properties));
    cr_assert_str_eq(properties.name, "limiting");
    cr_assert_eq(properties.max_alignment, 4096u);
    cr_assert_eq(properties.free_may_block, 1);
    GOOD(ccmr_resource_upstream(limited, 0, &found));
    cr_assert_eq(found, upstream);
    BAD(ccmr_resource_upstream(limited, 1, &found), CCMR_ERROR_OUT_OF_RANGE);
    GOOD(ccmr_resource_would_fit(limited, LIMIT, LEGACY, &fits));
    cr_assert_eq(fits, 0);
    BAD(ccmr_resource_would_fit(limited, 1, LEGACY, &fits),
        CCMR_ERROR_NOT_SUPPORTED);
    give(limited, ptr, 5000);
}

Test(limiting, bad_arguments)
{
    ccmr_resource *made = NULL;

    BAD(ccmr_limiting_create(NULL, 1, &made), CCMR_ERROR_INVALID_ARGUMENT);
    BAD(ccmr_limiting_create(upstream, 1, NULL), CCMR_ERROR_INVALID_ARGUMENT);
    cr_assert_null(made);
}

Test(limiting, as_text)
{
    ccmr_resource *made;
    char text[128];

    GOOD(ccmr_stack_create("limiting bytes=3GiB | host", &made));
    GOOD(ccmr_stack_print(made, text, sizeof(text), NULL));
    cr_assert_str_eq(text, "limiting bytes=3GiB | host");
    ccmr_resource_release(made);
    BAD(ccmr_stack_create("limiting | host", &made),
        CCMR_ERROR_INVALID_ARGUMENT);
    BAD(ccmr_stack_create("limiting bytes=50% | host", &made),
        CCMR_ERROR_INVALID_ARGUMENT);
    cr_assert(strstr(ccmr_last_error()->message, "host") != NULL);
    cr_assert_eq(ccmr_last_error()->column, 16);
}

/* The percentage is of the upstream's device. */
Test(limiting, as_part_of_the_device)
{
    ccmr_device_info info = {.size = sizeof(info)};
    ccmr_resource *made;
    char text[128];
    void *ptr;

    (void)leaf_start();
    GOOD(ccmr_device_describe(0, &info));
    GOOD(ccmr_stack_create("limiting bytes=25% | device_plain", &made));
    ptr = take(made, info.total_bytes / 4);
    BAD(ccmr_resource_allocate(made, 1, 0, LEGACY, (void **)text),
        CCMR_ERROR_LIMIT_EXCEEDED);
    cr_assert_eq(ccmr_last_error()->device, 0);
    give(made, ptr, info.total_bytes / 4);
    GOOD(ccmr_resource_option_set(made, "bytes", "50%"));
    ptr = take(made, info.total_bytes / 2);
    give(made, ptr, info.total_bytes / 2);
    ccmr_resource_release(made);
    leaf_end();
}
