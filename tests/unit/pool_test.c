/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool on the simulated driver, on one thread: what a call costs, sizes,
 * budgets, trim, host memory. Streams are in pool_streams_test.c. Field
 * cases E3, F7, H1, H4, H7, I1, I7, I10, I17, J3, J4, N6, N9.
 */
#include "tests/unit/pool_alone.h"

TestSuite(pool, .init = start, .fini = end);

/* J3: blocks of all sizes around the edges of classes at once; each has its
 * own bytes. */
Test(pool, blocks_do_not_overlap)
{
    static struct {
        uintptr_t address;
        size_t bytes;
    } all[3 * CCMR__POOL_CLASSES];
    size_t count = 0;
    size_t i;
    size_t j;

    for (i = 0; i < CCMR__POOL_CLASSES; i++) {
        for (j = 0; j < 3; j++) {
            all[count].bytes = ccmr__pool_class_bytes((unsigned)i) - 1 + j;
            all[count].address =
                (uintptr_t)take_on(made, all[count].bytes, one);
            count++;
        }
    }
    for (i = 0; i < count; i++) {
        for (j = 0; j < i; j++) {
            cr_assert(all[i].address + all[i].bytes <= all[j].address ||
                          all[j].address + all[j].bytes <= all[i].address,
                      "%zu and %zu bytes overlap", all[i].bytes, all[j].bytes);
        }
    }
    for (i = 0; i < count; i++) {
        give_on((void *)all[i].address, all[i].bytes, one);
    }
}

/* H4: over an upstream that knows 4 KiB, in a pool that is in pieces. */
Test(pool, alignments)
{
    void *blocks[16];
    size_t alignment;
    void *ptr;
    int i;

    for (i = 0; i < 16; i++) {
        blocks[i] = take_on(made, 256, one);
    }
    for (alignment = 1; alignment <= UNIT; alignment *= 2) {
        GOOD(ccmr_resource_allocate(made, 1000, alignment, one, &ptr));
        cr_assert_eq((uintptr_t)ptr % alignment, 0u);
        GOOD(ccmr_resource_deallocate(made, ptr, 1000, alignment, one));
        GOOD(ccmr_resource_allocate(made, 3 * MIB, alignment, one, &ptr));
        cr_assert_eq((uintptr_t)ptr % alignment, 0u);
        GOOD(ccmr_resource_deallocate(made, ptr, 3 * MIB, alignment, one));
    }
    cr_assert_neq(ccmr_resource_allocate(made, 1000, 2 * UNIT, one, &ptr),
                  CCMR_SUCCESS);
    for (i = 0; i < 16; i++) {
        give_on(blocks[i], 256, one);
    }
    GOOD(ccmr_resource_audit(made));
    cr_assert_leq(below.last_alignment, 4096u);
}

/* H1 */
Test(pool, huge_sizes)
{
    below.capacity = GIB;
    BAD(attempt(PTRDIFF_MAX, one), CCMR_ERROR_INVALID_SIZE);
    BAD(attempt(SIZE_MAX, one), CCMR_ERROR_INVALID_SIZE);
    BAD(attempt(((size_t)1 << 62) + 1, one), CCMR_ERROR_INVALID_SIZE);
    BAD(attempt((size_t)1 << 62, one), CCMR_ERROR_OUT_OF_DEVICE_MEMORY);
    cr_assert_eq(stats_of(made).reserved_bytes, 0u);
}

/* ---- what a call costs ---------------------------------------------------------- */

static void many_pairs(ccmr_stream stream, size_t bytes)
{
    int i;

    for (i = 0; i < 1000; i++) {
        GOOD(attempt(bytes, stream));
    }
}

Test(pool, hits_on_registered_streams_ask_nobody)
{
    uint64_t calls;

    GOOD(attempt(1000, known));
    GOOD(attempt(3 * MIB, known));
    calls = sim->calls(NULL);
    many_pairs(known, 1000);
    many_pairs(known, 3 * MIB);
    cr_assert_eq(sim->calls(NULL), calls);
    cr_assert_eq(below.allocations, 2u);
}

/* Others are asked what they are, in each call. */
Test(pool, hits_on_other_streams_ask_twice)
{
    GOOD(attempt(1000, one));
    (void)sim->forget_calls();
    many_pairs(one, 1000);
    cr_assert_eq(sim->calls("cuStreamIsCapturing"), 2000u);
    cr_assert_eq(sim->calls("cuStreamGetId"), 2000u);
    /* Only because there are two devices. */
    cr_assert_eq(sim->calls("cuStreamGetDevice"), 2000u);
    cr_assert_eq(sim->calls(NULL), 6000u);
}

/* Two streams by turns, each with a cache. */
Test(pool, hits_by_turns)
{
    ccmr_stream other;
    uint64_t calls;
    int i;

    GOOD(ccmr_stream_create(0, CCMR_STREAM_FLAG_NON_BLOCKING, &other));
    GOOD(attempt(1000, known));
    GOOD(attempt(1000, other));
    calls = sim->calls(NULL);
    for (i = 0; i < 1000; i++) {
        GOOD(attempt(1000, i % 2 ? known : other));
    }
    cr_assert_eq(sim->calls(NULL), calls);
    GOOD(ccmr_stream_destroy(other));
}

/* With one stream hardly any event is needed (some, since it is not registered:
 * others may come when it is gone); with two, none for each free. */
Test(pool, few_events)
{
    void *blocks[512];
    uint64_t records;
    int round;
    int i;

    many_pairs(one, 100 * KIB);
    for (i = 0; i < 512; i++) {
        blocks[i] = take_on(made, 100 * KIB, one);
    }
    for (i = 0; i < 512; i++) {
        give_on(blocks[i], 100 * KIB, one);
    }
    cr_assert_leq(sim->calls("cuEventRecord"), 1u);
    GOOD(attempt(1000, two));
    (void)sim->forget_calls();
    for (round = 0; round < 10; round++) {
        for (i = 0; i < 512; i++) {
            blocks[i] = take_on(made, 100 * KIB, one);
        }
        for (i = 0; i < 512; i++) {
            give_on(blocks[i], 100 * KIB, one);
        }
    }
    records = sim->calls("cuEventRecord");
    cr_assert_gt(records, 0u);
    cr_assert_leq(records, 10u * 8);
}

/* Few calls of the upstream for many blocks, and whole units. */
Test(pool, grows_in_units)
{
    void *blocks[256];
    int i;

    for (i = 0; i < 256; i++) {
        blocks[i] = take_on(made, 100 * KIB, one);
        cr_assert_eq(below.last_bytes % UNIT, 0u);
    }
    cr_assert_leq(below.allocations, 14u);
    cr_assert_leq(stats_of(made).reserved_bytes,
                  256 * 100 * KIB / 100 * 115 + 2 * UNIT);
    for (i = 0; i < 256; i++) {
        give_on(blocks[i], 100 * KIB, one);
    }
}

/* I7, I10: a pool that falls empty again and again keeps what it has, also of
 * sizes that are no multiple of anything. */
Test(pool, keeps_what_it_has)
{
    void *blocks[2];
    int round;
    int i;

    for (round = 0; round < 100; round++) {
        GOOD(attempt(GIB, known));
        for (i = 0; i < 2; i++) {
            GOOD(ccmr_resource_allocate(made, 1032, 16, known, &blocks[i]));
        }
        for (i = 0; i < 2; i++) {
            GOOD(ccmr_resource_deallocate(made, blocks[i], 1032, 16, known));
        }
        GOOD(ccmr_stream_synchronize(known, 0));
    }
    cr_assert_leq(below.allocations, 2u);
    cr_assert_eq(below.deallocations, 0u);
}

/* ---- budgets -------------------------------------------------------------------- */

/* The last byte of it can be had, and no more. */
Test(pool, hard_budget_is_exact)
{
    ccmr_pool_options options = {.size = sizeof(options),
                                 .hard = 7 * MIB + 512};
    void *first;
    void *rest;
    void *none = NULL;

    make_with(&options);
    first = take_on(made, 4 * MIB, one);
    rest = take_on(made, 3 * MIB + 512, one);
    cr_assert_eq(stats_of(made).reserved_bytes, 7 * MIB + 512);
    BAD(ccmr_resource_allocate(made, 1, 0, one, &none),
        CCMR_ERROR_LIMIT_EXCEEDED);
    cr_assert_null(none);
    cr_assert_str_eq(ccmr_last_error()->resource, "pool");
    cr_assert_eq(ccmr_last_error()->limit, 7 * MIB + 512);
    give_on(rest, 3 * MIB + 512, one);
    GOOD(attempt(1, one));
    rest = take_on(made, 3 * MIB + 512, one);
    give_on(first, 4 * MIB, one);
    give_on(rest, 3 * MIB + 512, one);
    /* All of it at once: what is wholly free goes back for it. */
    GOOD(attempt(7 * MIB + 512, one));
    cr_assert_leq(stats_of(made).peak_reserved_bytes, 7 * MIB + 512);
    cr_assert_leq(below.peak_bytes, 7 * MIB + 512);
}

Test(pool, hard_budget_changes)
{
    void *ptr = take_on(made, 4 * MIB, one);
    int fits = -1;

    GOOD(ccmr_resource_option_set(made, "hard", "6MiB"));
    cr_assert_str_eq(option_of(made, "hard"), "6MiB");
    BAD(attempt(2 * MIB + 1, one), CCMR_ERROR_LIMIT_EXCEEDED);
    cr_assert_eq(ccmr_last_error()->limit, 6 * MIB);
    GOOD(ccmr_resource_would_fit(made, 2 * MIB + 1, one, &fits));
    cr_assert_eq(fits, 0);
    GOOD(attempt(2 * MIB, one));
    /* Below what is reserved: nothing more. */
    GOOD(ccmr_resource_option_set(made, "hard", "1MiB"));
    BAD(attempt(3 * MIB, one), CCMR_ERROR_LIMIT_EXCEEDED);
    GOOD(ccmr_resource_option_set(made, "hard", "0"));
    GOOD(attempt(30 * MIB, one));
    BAD(ccmr_resource_option_set(made, "soft", "120"),
        CCMR_ERROR_NOT_SUPPORTED);
    BAD(ccmr_resource_option_set(made, "hard", "much"),
        CCMR_ERROR_INVALID_ARGUMENT);
    give_on(ptr, 4 * MIB, one);
}

/* Within the soft budget the pool grows ahead; 100 means hardly at all. */
static size_t upstream_calls(unsigned soft)
{
    ccmr_pool_options options = {.size = sizeof(options), .soft = soft};
    void *blocks[128];
    size_t calls = below.allocations;
    size_t reserved;
    int i;

    make_with(&options);
    for (i = 0; i < 128; i++) {
        blocks[i] = take_on(made, 2 * MIB, one);
    }
    reserved = stats_of(made).reserved_bytes;
    cr_assert_geq(reserved, 256 * MIB);
    cr_assert_leq(reserved, 256 * MIB / 100 * soft + 2 * UNIT);
    for (i = 0; i < 128; i++) {
        give_on(blocks[i], 2 * MIB, one);
    }
    return below.allocations - calls;
}

Test(pool, soft_budget)
{
    size_t tight = upstream_calls(100);
    size_t loose = upstream_calls(200);

    cr_assert_geq(tight, 60u);
    cr_assert_lt(loose, tight);
}

/* H7 */
Test(pool, initial)
{
    ccmr_pool_options options = {.size = sizeof(options),
                                 .initial = 10 * MIB - 100};
    size_t calls = below.allocations;
    void *ptr;

    make_with(&options);
    cr_assert_eq(below.allocations, calls + 1);
    cr_assert_eq(stats_of(made).reserved_bytes, 10 * MIB);
    ptr = take_on(made, 6 * MIB, one);
    GOOD(attempt(4 * MIB, two));
    cr_assert_eq(below.allocations, calls + 1);
    cr_assert_eq(sim->calls("cuEventRecord"), 0u);
    give_on(ptr, 6 * MIB, one);
    /* The first and the last bytes are the same, and no whole granules. */
    options.initial = 1000003;
    options.hard = 1000003;
    make_with(&options);
    cr_assert_eq(stats_of(made).reserved_bytes, 999936u);
    GOOD(attempt(983040, one)); /* the greatest class that fits */
}

/* Nothing could ever be allocated. */
Test(pool, budget_of_less_than_a_block)
{
    ccmr_pool_options options = {
        .size = sizeof(options), .initial = 255, .hard = 255};
    ccmr_resource *none = NULL;

    BAD(ccmr_pool_create(upstream, &options, &none),
        CCMR_ERROR_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(ccmr_last_error()->message, "hard=255"));
    BAD(ccmr_resource_option_set(made, "hard", "1"),
        CCMR_ERROR_INVALID_ARGUMENT);
    cr_assert_str_eq(option_of(made, "hard"), "0");
    options.hard = 256;
    make_with(&options);
    GOOD(attempt(1, one));
    cr_assert_eq(stats_of(made).reserved_bytes, 256u);
}

/* Segments come whole. */
Test(pool, handles_without_a_range)
{
    ccmr_pool_options options = {.size = sizeof(options), .handle = UNIT};
    ccmr_resource *none = NULL;

    BAD(ccmr_pool_create(upstream, &options, &none),
        CCMR_ERROR_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(ccmr_last_error()->message, "handle"));
    cr_assert_null(none);
    cr_assert_eq(below.live_blocks, 0u);
}

/* I17: nothing half made. */
Test(pool, initial_that_cannot_be)
{
    ccmr_pool_options options = {.size = sizeof(options), .initial = GIB};
    ccmr_resource *none = NULL;

    below.capacity = MIB;
    BAD(ccmr_pool_create(upstream, &options, &none),
        CCMR_ERROR_OUT_OF_DEVICE_MEMORY);
    cr_assert_null(none);
    cr_assert_eq(below.live_blocks, 0u);
    options.hard = GIB - 1;
    BAD(ccmr_pool_create(upstream, &options, &none),
        CCMR_ERROR_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(ccmr_last_error()->message, "initial"));
}

/* I1: a wholly free segment goes back before there is no room. */
Test(pool, free_segments_make_room)
{
    ccmr_pool_options options = {
        .size = sizeof(options), .initial = 256 * KIB, .hard = MIB};
    void *blocks[8];
    int i;

    make_with(&options);
    GOOD(attempt(MIB, one));
    options.initial = 1000192;
    options.hard = 64 * MIB;
    make_with(&options);
    for (i = 0; i < 8; i++) {
        blocks[i] = take_on(made, 8 * MIB, one);
    }
    for (i = 0; i < 8; i++) {
        give_on(blocks[i], 8 * MIB, one);
    }
    cr_assert_leq(below.peak_bytes, 64 * MIB);
}

/* ---- trim ----------------------------------------------------------------------- */

/* I10: what is empty, or in use, or just full. */
Test(pool, trims_of_nothing)
{
    ccmr_trim_result result = trim(0);
    void *ptr;

    cr_assert_eq(result.released_bytes, 0u);
    cr_assert_eq(result.pending_bytes, 0u);
    ptr = take_on(made, UNIT, known);
    result = trim(0);
    cr_assert_eq(result.released_bytes, 0u);
    cr_assert_eq(result.pending_bytes, 0u);
    give_on(ptr, UNIT, known);
}

/* N6: on registered streams all of it goes as soon as it is finished. */
Test(pool, trim_is_exact)
{
    void *blocks[40];
    ccmr_trim_result result;
    size_t reserved;
    int i;

    for (i = 0; i < 40; i++) {
        blocks[i] = take_on(made, 3000 * (size_t)(i + 1), known);
    }
    reserved = stats_of(made).reserved_bytes;
    cr_assert_eq(reserved, below.live_bytes);
    cr_assert_eq(sim->stall(known), 0);
    for (i = 0; i < 40; i++) {
        give_on(blocks[i], 3000 * (size_t)(i + 1), known);
    }
    result = trim(0);
    cr_assert_eq(result.released_bytes, 0u);
    cr_assert_geq(result.pending_bytes, 40u * 3000);
    cr_assert_eq(sim->calls("cuEventSynchronize"), 0u);
    cr_assert_eq(sim->release(known), 0);
    (void)sim->run(UINT64_MAX);
    result = trim(0);
    cr_assert_eq(result.released_bytes, reserved);
    cr_assert_eq(result.pending_bytes, 0u);
    cr_assert_eq(below.live_bytes, 0u);
    cr_assert_eq(below.last_stream, CCMR_STREAM_READY);
    cr_assert_eq(stats_of(made).reserved_bytes, 0u);
    cr_assert_eq(stats_of(made).peak_reserved_bytes, reserved);
}

Test(pool, trim_keeps_what_it_is_told)
{
    void *live = take_on(made, UNIT, known);
    void *blocks[4];
    int i;

    for (i = 0; i < 4; i++) {
        blocks[i] = take_on(made, 4 * MIB, known);
    }
    for (i = 0; i < 4; i++) {
        give_on(blocks[i], 4 * MIB, known);
    }
    (void)sim->run(UINT64_MAX);
    cr_assert_eq(trim(SIZE_MAX).released_bytes, 0u);
    (void)trim(10 * MIB);
    cr_assert_geq(stats_of(made).reserved_bytes, 10 * MIB);
    cr_assert_lt(stats_of(made).reserved_bytes, 10 * MIB + 4 * MIB);
    (void)trim(0);
    cr_assert_eq(stats_of(made).reserved_bytes, UNIT);
    give_on(live, UNIT, known);
}

/* What no event covers is told, and goes once its stream is retired. */
Test(pool, trim_tells_what_is_pending)
{
    void *ptr = take_on(made, UNIT, one);

    give_on(ptr, UNIT, one);
    (void)sim->run(UINT64_MAX);
    cr_assert_eq(trim(0).pending_bytes, UNIT);
    cr_assert_eq(stats_of(made).pending_bytes, UNIT);
    GOOD(ccmr_stream_retire(one));
    (void)sim->run(UINT64_MAX);
    cr_assert_eq(trim(0).released_bytes, UNIT);
    cr_assert_eq(stats_of(made).pending_bytes, 0u);
}

Test(pool, a_refusing_upstream_keeps_the_books)
{
    ccmr_trim_result result = {.size = sizeof(result)};

    GOOD(attempt(MIB, known));
    (void)sim->run(UINT64_MAX);
    below.refuse_frees = 1;
    BAD(ccmr_resource_trim(made, 0, &result), CCMR_ERROR_BUSY);
    GOOD(ccmr_resource_audit(made));
    cr_assert_eq(stats_of(made).reserved_bytes, UNIT);
    GOOD(attempt(MIB, known));
    cr_assert_eq(below.allocations, 1u);
    (void)sim->run(UINT64_MAX);
    cr_assert_eq(trim(0).released_bytes, UNIT);
}

Test(pool, drains)
{
    void *live = take_on(made, 1000, known);
    void *none = NULL;
    ccmr_resource *draining = made;

    GOOD(attempt(5 * MIB, known));
    (void)sim->run(UINT64_MAX);
    ccmr_resource_release(made);
    made = NULL;
    BAD(ccmr_resource_allocate(draining, 1, 0, known, &none),
        CCMR_ERROR_RELEASED);
    GOOD(ccmr_resource_deallocate(draining, live, 1000, 0, known));
    cr_assert_eq(below.live_blocks, 0u);
}

/* ---- host memory -------------------------------------------------------------------- */

/* N9, access=host: the host may touch a block as soon as it has it. */
Test(pool, host_memory_only_when_finished)
{
    void *ptr;
    void *other;

    make_over(1, CCMR_ACCESS_HOST);
    ptr = take_on(made, MIB, one);
    cr_assert_eq(sim->stall(one), 0);
    give_on(ptr, MIB, one);
    other = take_on(made, MIB, one);
    cr_assert_neq(other, ptr);
    cr_assert_eq(sim->release(one), 0);
    (void)sim->run(UINT64_MAX);
    give_on(other, MIB, CCMR_STREAM_READY);
    cr_assert_eq(sim->calls("cuStreamWaitEvent"), 0u);
    below.capacity = below.live_bytes;
    GOOD(attempt(2 * MIB, two));
}

/* Where there is no more, it is waited for here, and not on the device. */
Test(pool, host_memory_is_waited_for)
{
    hold held;
    void *ptr;

    make_over(1, CCMR_ACCESS_HOST);
    below.capacity = UNIT;
    ptr = take_on(made, UNIT, one);
    cr_assert_eq(hold_begin(&held, one), 0);
    give_on(ptr, UNIT, one);
    hold_end_after(&held, 20);
    cr_assert_eq(take_on(made, UNIT, two), ptr);
    cr_assert_eq(sim->calls("cuStreamWaitEvent"), 0u);
    hold_end(&held);
    give_on(ptr, UNIT, two);
}

Test(pool, host_memory_in_stream_order)
{
    void *ptr;

    make_over(1, CCMR_ACCESS_STREAM);
    ptr = take_on(made, MIB, known);
    cr_assert_eq(sim->stall(known), 0);
    give_on(ptr, MIB, known);
    cr_assert_eq(take_on(made, MIB, known), ptr);
    give_on(ptr, MIB, known);
    cr_assert_eq(sim->release(known), 0);
}

/* ---- the rest -------------------------------------------------------------------------- */

static ccmr_status inside_status;

static void use_inside(puppet *self)
{
    self->on_allocate = NULL;
    self->on_deallocate = NULL;
    inside_status = attempt(9000, known);
    if (inside_status == CCMR_SUCCESS) {
        inside_status = ccmr_resource_audit(made);
    }
}

/* F7: the upstream calls back; no lock is held. */
Test(pool, an_upstream_that_calls_back)
{
    below.on_allocate = use_inside;
    inside_status = CCMR_ERROR_BUSY;
    GOOD(attempt(5 * MIB, known));
    cr_assert_eq(inside_status, CCMR_SUCCESS);
    (void)sim->run(UINT64_MAX);
    below.on_deallocate = use_inside;
    inside_status = CCMR_ERROR_BUSY;
    (void)trim(0);
    cr_assert_eq(inside_status, CCMR_SUCCESS);
    /* And where the upstream is full, too. */
    GOOD(attempt(2 * MIB, known));
    (void)sim->run(UINT64_MAX);
    below.capacity = below.live_bytes;
    below.on_deallocate = use_inside;
    inside_status = CCMR_ERROR_BUSY;
    BAD(attempt(20 * MIB, known), CCMR_ERROR_OUT_OF_DEVICE_MEMORY);
    cr_assert_neq(inside_status, CCMR_ERROR_BUSY);
    below.on_deallocate = NULL;
    below.capacity = SIZE_MAX;
}

/* A free that is refused once is accepted the next time. */
static ccmr_status free_twice(ccmr_resource *from, void *ptr, size_t bytes,
                              ccmr_stream stream)
{
    ccmr_status status = ccmr_resource_deallocate(from, ptr, bytes, 0, stream);

    if (status != CCMR_SUCCESS) {
        GOOD(ccmr_resource_deallocate(from, ptr, bytes, 0, stream));
    }
    return status;
}

static ccmr_status whole_life(void *context)
{
    ccmr_resource *stack;
    void *ptrs[2] = {NULL, NULL};
    ccmr_status status[6] = {CCMR_SUCCESS};
    int i;

    status[5] = ccmr_stack_create(context, &stack);
    if (status[5] != CCMR_SUCCESS) {
        return status[5];
    }
    for (i = 0; i < 2; i++) {
        status[i] = ccmr_resource_allocate(stack, 3 * MIB, 0,
                                           i == 0 ? one : known, &ptrs[i]);
    }
    for (i = 0; i < 2; i++) {
        if (status[i] == CCMR_SUCCESS) {
            status[i + 2] =
                free_twice(stack, ptrs[i], 3 * MIB, i == 0 ? one : known);
        }
    }
    status[4] = ccmr_resource_trim(stack, 0, NULL);
    GOOD(ccmr_resource_audit(stack));
    ccmr_resource_release(stack);
    for (i = 0; i < 6; i++) {
        if (status[i] != CCMR_SUCCESS) {
            return status[i];
        }
    }
    return CCMR_SUCCESS;
}

/* E3, J4: each driver call fails in turn; nothing leaks. */
Test(pool, each_call_fails)
{
    static char plain[] = "pool | device_plain";
    static char own[] = "pool initial=2MiB | device_pool own=yes";

    leaf_fail_each(whole_life, plain, CUDA_ERROR_UNKNOWN);
    leaf_fail_each(whole_life, plain, CUDA_ERROR_OUT_OF_MEMORY);
    leaf_fail_each(whole_life, own, CUDA_ERROR_UNKNOWN);
}

Test(pool, properties)
{
    ccmr_properties properties = {.size = sizeof(properties)};
    ccmr_resource *found;

    GOOD(ccmr_resource_describe(made, &properties));
    cr_assert_str_eq(properties.name, "pool");
    cr_assert_eq(properties.device, 0);
    cr_assert_eq(properties.free_may_block, 0);
    cr_assert_eq(properties.free_stream, CCMR_FREE_ON_ALLOCATION_STREAM);
    cr_assert_eq(properties.capture, CCMR_CAPTURE_REFUSED);
    cr_assert_eq(properties.max_alignment, UNIT);
    GOOD(ccmr_resource_upstream(made, 0, &found));
    cr_assert_eq(found, upstream);
    cr_assert_eq(ccmr_resource_upstream(made, 1, &found),
                 CCMR_ERROR_OUT_OF_RANGE);
}

Test(pool, as_text)
{
    ccmr_resource *stack = NULL;

    GOOD(ccmr_stack_create("pool initial=4MiB hard=50% soft=120 "
                           "reuse=finished access=stream | legacy_pinned",
                           &stack));
    cr_assert_str_eq(option_of(stack, "initial"), "4MiB");
    cr_assert_str_eq(option_of(stack, "hard"), "8GiB");
    cr_assert_str_eq(option_of(stack, "soft"), "120");
    cr_assert_str_eq(option_of(stack, "reuse"), "finished");
    cr_assert_str_eq(option_of(stack, "access"), "stream");
    ccmr_resource_release(stack);
    GOOD(ccmr_stack_create("pool hard=1GiB | device_plain device=1", &stack));
    cr_assert_str_eq(leaf_print(stack),
                     "pool hard=1GiB | device_plain device=1");
    ccmr_resource_release(stack);
    stack = NULL;
    BAD(ccmr_stack_create("pool soft=99 | device_plain", &stack),
        CCMR_ERROR_INVALID_ARGUMENT);
    BAD(ccmr_stack_create("pool soft=-100 | device_plain", &stack),
        CCMR_ERROR_INVALID_ARGUMENT);
    BAD(ccmr_stack_create("pool reuse=never | device_plain", &stack),
        CCMR_ERROR_UNKNOWN_NAME);
    BAD(ccmr_stack_create("pool initial=2GiB hard=1GiB | device_plain",
                          &stack),
        CCMR_ERROR_INVALID_ARGUMENT);
    cr_assert_null(stack);
}
