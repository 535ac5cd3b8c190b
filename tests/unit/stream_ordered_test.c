/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_ordered on the simulated driver, on one thread. Field cases A7, B2,
 * B3, E1, E3, E5, F7, I5, I14, J3, J4, S5, S6.
 */
#include "tests/unit/leaf.h"

#include "resources/stream_ordered/classes.h"
#include "tests/unit/adaptor.h"

static const ccmr_sim_table *sim;
static puppet below;
static ccmr_resource *upstream;
static ccmr_resource *ordered;
static ccmr_stream one;
static ccmr_stream two;

static void start(void)
{
    sim = leaf_start();
    (void)sim->set_mode(CCMR_SIM_LATE);
    one = leaf_stream(0);
    two = leaf_stream(0);
    puppet_init(&below);
    below.device = 0;
    upstream = puppet_resource(&below);
    GOOD(ccmr_stream_ordered_create(upstream, NULL, &ordered));
}

static void end(void)
{
    MUST(ordered == NULL || ccmr_resource_audit(ordered) == CCMR_SUCCESS);
    ccmr_resource_release(ordered);
    ccmr_resource_release(upstream);
    MUST(puppet_clear(&below));
    MUST(leaf_census().events == 0);
    leaf_end();
}

TestSuite(stream_ordered, .init = start, .fini = end);

static void give_on(ccmr_resource *resource, void *ptr, size_t bytes,
                    ccmr_stream stream)
{
    GOOD(ccmr_resource_deallocate(resource, ptr, bytes, 0, stream));
}

static ccmr_status attempt(size_t bytes, ccmr_stream stream)
{
    void *ptr = NULL;
    ccmr_status status =
        ccmr_resource_allocate(ordered, bytes, 0, stream, &ptr);

    if (status == CCMR_SUCCESS) {
        give_on(ordered, ptr, bytes, stream);
    }
    return status;
}

static ccmr_trim_result trim(size_t keep)
{
    ccmr_trim_result result = {.size = sizeof(result)};

    GOOD(ccmr_resource_trim(ordered, keep, &result));
    return result;
}

/* ---- classes ---------------------------------------------------------------- */

/* J3: a class holds every size that maps to it. */
Test(classes, hold_their_sizes)
{
    unsigned i;

    for (i = 0; i < 208; i++) {
        size_t bytes = ccmr__class_bytes(i);

        cr_assert_eq(ccmr__class_of(bytes), i);
        cr_assert_eq(ccmr__class_of(bytes + 1), i + 1);
        if (i >= 8) {
            cr_assert_eq(ccmr__class_bytes(i + 4), 2 * bytes);
            cr_assert_eq(bytes % 512, 0u);
        }
    }
    cr_assert_eq(ccmr__class_of(1), 0u);
    cr_assert_lt(ccmr__class_of(PTRDIFF_MAX), CCMR__CLASSES);
}

Test(classes, sets)
{
    ccmr__class_set set = {{0}};

    cr_assert_eq(ccmr__class_next(&set, 60, 70), CCMR__CLASSES);
    ccmr__class_add(&set, 66);
    ccmr__class_add(&set, 3);
    cr_assert_eq(ccmr__class_next(&set, 0, 2), CCMR__CLASSES);
    cr_assert_eq(ccmr__class_next(&set, 0, 3), 3u);
    cr_assert_eq(ccmr__class_next(&set, 3, 4), 3u);
    cr_assert_eq(ccmr__class_next(&set, 4, 65), CCMR__CLASSES);
    cr_assert_eq(ccmr__class_next(&set, 63, 67), 66u);
    cr_assert_eq(ccmr__class_next(&set, 64, 66), 66u);
    ccmr__class_remove(&set, 66);
    cr_assert_eq(ccmr__class_next(&set, 63, 67), CCMR__CLASSES);
    ccmr__class_add(&set, 255);
    cr_assert_eq(ccmr__class_next(&set, 252, 256), 255u);
}

/* ---- reuse ------------------------------------------------------------------- */

Test(stream_ordered, reuses_at_once_on_its_stream)
{
    void *ptr = take_on(ordered, 1000, one);
    uint64_t queries;
    int i;

    cr_assert_eq(below.last_bytes, 1024u);
    cr_assert_eq(below.last_alignment, 256u);
    cr_assert_eq(sim->stall(one), 0);
    queries = sim->calls("cuEventQuery") + sim->calls("cuStreamWaitEvent") +
              sim->calls("cuEventSynchronize");
    for (i = 0; i < 100; i++) {
        give_on(ordered, ptr, 1000, one);
        cr_assert_eq(take_on(ordered, 1000, one), ptr);
    }
    cr_assert_eq(sim->calls("cuEventQuery") + sim->calls("cuStreamWaitEvent") +
                     sim->calls("cuEventSynchronize"),
                 queries);
    cr_assert_eq(below.allocations, 1u);
    give_on(ordered, ptr, 1000, one);
    cr_assert_eq(below.deallocations, 0u);
    cr_assert_eq(sim->release(one), 0);
}

/* The newest of one's own first; sizes up to twice as large will do. */
Test(stream_ordered, fits_within_twice)
{
    void *small = take_on(ordered, 5000, one);
    void *large = take_on(ordered, 10240, one);
    void *ptr;

    give_on(ordered, large, 10240, one);
    give_on(ordered, small, 5000, one);
    cr_assert_eq(take_on(ordered, 4097, one), small);
    ptr = take_on(ordered, 5120, one);
    cr_assert_eq(ptr, large);
    give_on(ordered, ptr, 5120, one);
    ptr = take_on(ordered, 4096, one);
    cr_assert_neq(ptr, large);
    cr_assert_eq(below.allocations, 3u);
    give_on(ordered, ptr, 4096, one);
    give_on(ordered, small, 4097, one);
}

Test(stream_ordered, other_streams_wait_for_the_event)
{
    void *ptr = take_on(ordered, 1000, one);
    void *other;

    cr_assert_eq(sim->stall(one), 0);
    give_on(ordered, ptr, 1000, one);
    other = take_on(ordered, 1000, two);
    cr_assert_neq(other, ptr);
    cr_assert_eq(below.allocations, 2u);
    cr_assert_eq(sim->release(one), 0);
    (void)sim->run(UINT64_MAX);
    cr_assert_eq(take_on(ordered, 1000, two), ptr);
    cr_assert_eq(below.allocations, 2u);
    cr_assert_eq(sim->calls("cuStreamWaitEvent"), 0u);
    give_on(ordered, ptr, 1000, two);
    give_on(ordered, other, 1000, two);
}

/* One question tells about everything that was freed before on that stream. */
Test(stream_ordered, asks_little)
{
    void *blocks[50];
    uint64_t queries;
    int i;

    for (i = 0; i < 50; i++) {
        blocks[i] = take_on(ordered, 1000, one);
    }
    for (i = 0; i < 50; i++) {
        give_on(ordered, blocks[i], 1000, one);
    }
    (void)sim->run(UINT64_MAX);
    queries = sim->calls("cuEventQuery");
    for (i = 0; i < 50; i++) {
        blocks[i] = take_on(ordered, 1000, two);
    }
    cr_assert_leq(sim->calls("cuEventQuery") - queries, 50u);
    cr_assert_eq(below.allocations, 50u);
    for (i = 0; i < 50; i++) {
        give_on(ordered, blocks[i], 1000, two);
    }
}

Test(stream_ordered, ready_frees_are_anybodys)
{
    void *ptr = take_on(ordered, 1000, one);
    uint64_t records = sim->calls("cuEventRecord");

    give_on(ordered, ptr, 1000, CCMR_STREAM_READY);
    cr_assert_eq(sim->calls("cuEventRecord"), records);
    cr_assert_eq(take_on(ordered, 1000, two), ptr);
    give_on(ordered, ptr, 1000, two);
}

Test(stream_ordered, tokens)
{
    void *ptr = take_on(ordered, 1000, CCMR_STREAM_PER_THREAD);

    cr_assert_null(leaf_current());
    give_on(ordered, ptr, 1000, CCMR_STREAM_PER_THREAD);
    cr_assert_eq(take_on(ordered, 1000, CCMR_STREAM_PER_THREAD), ptr);
    give_on(ordered, ptr, 1000, LEGACY);
    cr_assert_eq(take_on(ordered, 1000, NULL), ptr);
    cr_assert_null(leaf_current());
    give_on(ordered, ptr, 1000, NULL);
}

/* Alignments beyond the usual one get blocks of their own. */
Test(stream_ordered, large_alignments)
{
    void *plain = take_on(ordered, 1000, one);
    void *ptr;
    void *other;

    give_on(ordered, plain, 1000, one);
    GOOD(ccmr_resource_allocate(ordered, 1000, 4096, one, &ptr));
    cr_assert_eq((uintptr_t)ptr % 4096, 0u);
    cr_assert_neq(ptr, plain);
    cr_assert_eq(below.last_alignment, 4096u);
    cr_assert_eq(below.last_bytes, 1024u);
    GOOD(ccmr_resource_deallocate(ordered, ptr, 1000, 4096, one));
    GOOD(ccmr_resource_allocate(ordered, 1000, 2048, one, &other));
    cr_assert_neq(other, ptr);
    GOOD(ccmr_resource_deallocate(ordered, other, 1000, 2048, one));
    GOOD(ccmr_resource_allocate(ordered, 900, 4096, one, &other));
    cr_assert_eq(other, ptr);
    GOOD(ccmr_resource_deallocate(ordered, other, 900, 4096, one));
    cr_assert_eq(below.allocations, 3u);
    GOOD(ccmr_resource_audit(ordered));
    GOOD(ccmr_resource_allocate(ordered, 900, 4096, two, &other));
    cr_assert_eq(other, ptr);
    GOOD(ccmr_resource_deallocate(ordered, other, 900, 4096,
                                  CCMR_STREAM_READY));
    GOOD(ccmr_resource_allocate(ordered, 900, 4096, one, &other));
    cr_assert_eq(other, ptr);
    GOOD(ccmr_resource_deallocate(ordered, other, 900, 4096, one));
}

/* ---- out of memory -------------------------------------------------------------- */

/* A block of another stream after a wait on the device, before anything is
 * waited for here. */
Test(stream_ordered, waits_on_the_device)
{
    void *ptr = take_on(ordered, 1000, one);
    const ccmr_error_detail *detail = ccmr_last_error();
    ccmr_error_detail before = *detail;

    below.capacity = 1024;
    cr_assert_eq(sim->stall(one), 0);
    give_on(ordered, ptr, 1000, one);
    cr_assert_eq(take_on(ordered, 1000, two), ptr);
    cr_assert_eq(sim->calls("cuStreamWaitEvent"), 1u);
    cr_assert_eq(sim->calls("cuEventSynchronize"), 0u);
    cr_assert_eq(below.allocations, 2u);
    cr_assert_eq(below.deallocations, 0u);
    cr_assert_eq(memcmp(&before, detail, sizeof(before)), 0,
                 "a success left an error: %s", detail->message);
    /* What it is freed with covers the first stream's work as well. */
    give_on(ordered, ptr, 1000, two);
    (void)sim->run(UINT64_MAX);
    cr_assert_eq(trim(0).released_bytes, 0u);
    cr_assert_eq(sim->release(one), 0);
    (void)sim->run(UINT64_MAX);
    cr_assert_eq(trim(0).released_bytes, 1024u);
}

/* Finished blocks of other sizes go back, and the upstream is asked once
 * more. */
Test(stream_ordered, gives_finished_blocks_back)
{
    void *blocks[4];
    int i;

    below.capacity = 4096;
    for (i = 0; i < 4; i++) {
        blocks[i] = take_on(ordered, 1000, one);
    }
    for (i = 0; i < 4; i++) {
        give_on(ordered, blocks[i], 1000, one);
    }
    (void)sim->run(UINT64_MAX);
    GOOD(attempt(4096, one));
    cr_assert_eq(below.allocations, 6u);
    cr_assert_eq(below.deallocations, 4u);
    cr_assert_eq(sim->calls("cuEventSynchronize"), 0u);
}

/* I5, I14: the last step waits for the events, gives everything back and asks
 * exactly once more. */
Test(stream_ordered, waits_for_everything_last)
{
    void *ptr = take_on(ordered, 4096, one);
    ccmr_sim_record record;
    uint64_t waited = 0;
    hold held;
    size_t i;

    below.capacity = 4096;
    cr_assert_eq(hold_begin(&held, one), 0);
    give_on(ordered, ptr, 4096, one);
    hold_end_after(&held, 20);
    cr_assert_eq(sim->log(1000), 0);
    GOOD(attempt(600, two));
    hold_end(&held);
    cr_assert_eq(below.allocations, 3u);
    cr_assert_eq(below.deallocations, 1u);
    for (i = 0; i < sim->log_count(); i++) {
        cr_assert_eq(sim->log_read(i, &record), 0);
        waited += strcmp(record.call, "cuEventSynchronize") == 0;
    }
    cr_assert_eq(waited, 1u);
}

Test(stream_ordered, fails_with_the_upstreams_code)
{
    static const ccmr_status codes[] = {CCMR_ERROR_OUT_OF_DEVICE_MEMORY,
                                        CCMR_ERROR_OUT_OF_HOST_MEMORY,
                                        CCMR_ERROR_LIMIT_EXCEEDED};
    void *ptr = take_on(ordered, 1000, one);
    size_t i;

    below.capacity = 1024;
    for (i = 0; i < 3; i++) {
        size_t asked = below.allocations;

        below.full_status = codes[i];
        BAD(attempt(4000, one), codes[i]);
        cr_assert_str_eq(ccmr_last_error()->message,
                         "the puppet was told to fail");
        cr_assert_eq(ccmr_last_error()->reserved, 1024u);
        cr_assert_eq(ccmr_last_error()->pending, 0u);
        cr_assert_eq(below.allocations, asked + 1, "retried for nothing");
    }
    give_on(ordered, ptr, 1000, one);
    BAD(attempt(4000, one), CCMR_ERROR_LIMIT_EXCEEDED);
    cr_assert_eq(below.live_blocks, 0u);
    GOOD(attempt(1000, one));
}

/* Other failures are nobody's to retry. */
Test(stream_ordered, other_failures_pass)
{
    void *ptr = take_on(ordered, 1000, one);

    give_on(ordered, ptr, 1000, one);
    below.fail_allocations = 1;
    below.fail_status = CCMR_ERROR_DEVICE_FAULT;
    BAD(attempt(4000, one), CCMR_ERROR_DEVICE_FAULT);
    cr_assert_eq(below.allocations, 2u);
    cr_assert_eq(below.deallocations, 0u);
}

/* The limit of an adaptor below is an out-of-memory like any other. */
Test(stream_ordered, over_limiting)
{
    ccmr_resource *limited;
    ccmr_resource *over;
    void *ptr;
    void *other;

    GOOD(ccmr_limiting_create(upstream, 8192, &limited));
    GOOD(ccmr_stream_ordered_create(limited, NULL, &over));
    ptr = take_on(over, 4000, one);
    give_on(over, ptr, 4000, one);
    other = take_on(over, 8000, one);
    give_on(over, other, 8000, one);
    BAD(ccmr_resource_allocate(over, 8193, 0, one, &ptr),
        CCMR_ERROR_LIMIT_EXCEEDED);
    cr_assert_str_eq(ccmr_last_error()->resource, "limiting");
    ccmr_resource_release(over);
    ccmr_resource_release(limited);
}

/* ---- host memory ------------------------------------------------------------------ */

static void make_host(ccmr_access access)
{
    ccmr_resource_release(ordered);
    ccmr_resource_release(upstream);
    MUST(puppet_clear(&below));
    puppet_init(&below);
    below.device = 0;
    below.host_accessible = 1;
    below.access = access;
    upstream = puppet_resource(&below);
    GOOD(ccmr_stream_ordered_create(upstream, NULL, &ordered));
}

/* access=host: the host may touch a block as soon as it has it. */
Test(stream_ordered, host_memory_only_when_finished)
{
    void *ptr;
    void *other;

    make_host(CCMR_ACCESS_HOST);
    ptr = take_on(ordered, 1000, one);
    cr_assert_eq(sim->stall(one), 0);
    give_on(ordered, ptr, 1000, one);
    other = take_on(ordered, 1000, one);
    cr_assert_neq(other, ptr);
    cr_assert_eq(sim->release(one), 0);
    (void)sim->run(UINT64_MAX);
    cr_assert_eq(take_on(ordered, 1000, one), ptr);
    give_on(ordered, ptr, 1000, one);
    give_on(ordered, other, 1000, one);
}

/* Where there is no more, it is waited for here, and not on the device. */
Test(stream_ordered, host_memory_is_waited_for)
{
    hold held;
    void *ptr;

    make_host(CCMR_ACCESS_HOST);
    below.capacity = 1024;
    ptr = take_on(ordered, 1000, one);
    cr_assert_eq(hold_begin(&held, one), 0);
    give_on(ordered, ptr, 1000, one);
    hold_end_after(&held, 20);
    cr_assert_eq(take_on(ordered, 1000, two), ptr);
    cr_assert_eq(sim->calls("cuEventSynchronize"), 1u);
    cr_assert_eq(sim->calls("cuStreamWaitEvent"), 0u);
    hold_end(&held);
    give_on(ordered, ptr, 1000, two);
}

Test(stream_ordered, host_memory_in_stream_order)
{
    void *ptr;

    make_host(CCMR_ACCESS_STREAM);
    ptr = take_on(ordered, 1000, one);
    cr_assert_eq(sim->stall(one), 0);
    give_on(ordered, ptr, 1000, one);
    cr_assert_eq(take_on(ordered, 1000, one), ptr);
    give_on(ordered, ptr, 1000, one);
    cr_assert_eq(sim->release(one), 0);
}

/* An upstream that is bound to no device: streams are the current one's. */
Test(stream_ordered, over_host)
{
    ccmr_properties properties = {.size = sizeof(properties)};
    ccmr_resource *made;
    void *ptr;

    cr_assert_eq(api.cuCtxSetCurrent(leaf_context(1)), CUDA_SUCCESS);
    GOOD(ccmr_stack_create("stream_ordered | host", &made));
    cr_assert_eq(api.cuCtxSetCurrent(NULL), CUDA_SUCCESS);
    GOOD(ccmr_resource_describe(made, &properties));
    cr_assert_eq(properties.device, 1);
    BAD(ccmr_resource_allocate(made, 100, 0, one, &ptr),
        CCMR_ERROR_WRONG_DEVICE);
    GOOD(ccmr_resource_allocate(made, 100, 0, leaf_stream(1), &ptr));
    give(made, ptr, 100);
    ccmr_resource_release(made);
}

/* ---- trim and the end --------------------------------------------------------------- */

Test(stream_ordered, trim_gives_back_what_is_finished)
{
    void *first = take_on(ordered, 1000, one);
    void *second = take_on(ordered, 2000, one);
    void *third = take_on(ordered, 3000, two);
    void *live = take_on(ordered, 512, one);
    ccmr_trim_result result;

    cr_assert_eq(sim->stall(two), 0);
    give_on(ordered, first, 1000, one);
    (void)sim->run(UINT64_MAX);
    cr_assert_eq(sim->stall(one), 0);
    give_on(ordered, second, 2000, one);
    give_on(ordered, third, 3000, two);
    result = trim(0);
    cr_assert_eq(result.released_bytes, 1024u);
    cr_assert_eq(result.pending_bytes, 2048u + 3072u);
    cr_assert_eq(result.pinned_bytes, 0u);
    cr_assert_eq(below.last_stream, CCMR_STREAM_READY);
    cr_assert_eq(sim->calls("cuEventSynchronize"), 0u);
    cr_assert_eq(sim->release(one), 0);
    (void)sim->run(UINT64_MAX);
    cr_assert_eq(trim(512 + 2048 + 3072).released_bytes, 0u);
    result = trim(512 + 3072);
    cr_assert_eq(result.released_bytes, 2048u);
    cr_assert_eq(sim->release(two), 0);
    (void)sim->run(UINT64_MAX);
    cr_assert_eq(trim(0).released_bytes, 3072u);
    cr_assert_eq(stats_of(ordered).reserved_bytes, 512u);
    /* No event for blocks that have gone. */
    cr_assert_eq(leaf_census().events, 1u);
    give_on(ordered, live, 512, one);
}

Test(stream_ordered, a_refusing_upstream_keeps_the_books)
{
    ccmr_trim_result result = {.size = sizeof(result)};
    void *first = take_on(ordered, 1000, one);
    void *second = take_on(ordered, 1000, one);

    give_on(ordered, first, 1000, one);
    give_on(ordered, second, 1000, one);
    (void)sim->run(UINT64_MAX);
    below.refuse_frees = 1;
    BAD(ccmr_resource_trim(ordered, 0, &result), CCMR_ERROR_BUSY);
    GOOD(ccmr_resource_audit(ordered));
    first = take_on(ordered, 1000, two);
    second = take_on(ordered, 1000, two);
    cr_assert_eq(below.allocations, 2u);
    give_on(ordered, first, 1000, two);
    give_on(ordered, second, 1000, two);
}

Test(stream_ordered, keeps_no_more_than_it_may)
{
    void *blocks[8];
    int i;

    GOOD(ccmr_resource_option_set(ordered, "keep", "2KiB"));
    cr_assert_str_eq(option_of(ordered, "keep"), "2KiB");
    for (i = 0; i < 8; i++) {
        blocks[i] = take_on(ordered, 1024, one);
    }
    cr_assert_eq(sim->stall(one), 0);
    for (i = 0; i < 8; i++) {
        give_on(ordered, blocks[i], 1024, one);
    }
    cr_assert_eq(below.deallocations, 0u, "a free must not block");
    GOOD(attempt(1024, one));
    cr_assert_eq(below.deallocations, 0u, "nothing is finished");
    cr_assert_eq(sim->release(one), 0);
    (void)sim->run(UINT64_MAX);
    GOOD(attempt(1024, one));
    cr_assert_eq(below.deallocations, 5u);
    cr_assert_eq(stats_of(ordered).reserved_bytes, 3072u);
}

/* A7: the end waits first and frees then. */
Test(stream_ordered, destroy_waits_then_frees)
{
    ccmr_resource *over;
    ccmr_sim_record record;
    long waited = -1;
    long freed = -1;
    size_t i;

    GOOD(ccmr_stack_create("stream_ordered | device_plain", &over));
    give_on(over, take_on(over, 1000, one), 1000, one);
    cr_assert_eq(sim->log(1000), 0);
    ccmr_resource_release(over);
    for (i = 0; i < sim->log_count(); i++) {
        cr_assert_eq(sim->log_read(i, &record), 0);
        if (strcmp(record.call, "cuEventSynchronize") == 0) {
            waited = (long)i;
        } else if (strcmp(record.call, "cuMemFree") == 0) {
            freed = (long)i;
        }
    }
    cr_assert_geq(waited, 0);
    cr_assert_gt(freed, waited);
    cr_assert_eq(leaf_census().plain_blocks, 0u);
}

Test(stream_ordered, drains)
{
    void *live = take_on(ordered, 1000, one);
    void *cached = take_on(ordered, 5000, one);
    ccmr_resource *draining = ordered;

    give_on(ordered, cached, 5000, one);
    (void)sim->run(UINT64_MAX);
    ccmr_resource_release(ordered);
    ordered = NULL;
    cr_assert_eq(below.deallocations, 1u);
    BAD(ccmr_resource_allocate(draining, 1, 0, one, &cached),
        CCMR_ERROR_RELEASED);
    give_on(draining, live, 1000, one);
    cr_assert_eq(below.live_blocks, 0u);
}

/* ---- streams -------------------------------------------------------------------------- */

/* B2: a recycled handle finds nothing of its predecessor. */
Test(stream_ordered, recycled_handles)
{
    ccmr_stream first = leaf_stream(0);
    ccmr_stream second;
    void *ptr = take_on(ordered, 1000, first);
    void *other;

    /* The stream's work waits for a held one, so that it outlives it. */
    cr_assert_eq(sim->stall(first), 0);
    give_on(ordered, ptr, 1000, first);
    cr_assert_eq(api.cuStreamDestroy(first), CUDA_SUCCESS);
    second = leaf_stream(0);
    if (second != first) {
        cr_skip_test("the handle was not recycled");
    }
    cr_assert_eq(sim->stall(second), 0);
    other = take_on(ordered, 1000, second);
    cr_assert_neq(other, ptr);
    give_on(ordered, other, 1000, second);
    cr_assert_eq(sim->release(second), 0);
}

/* Without ids the handle is all there is: it must be retired. */
Test(stream_ordered, retired_streams)
{
    ccmr_stream stream;
    void *ptr;
    void *other;

    GOOD(ccmr_stream_create(0, CCMR_STREAM_FLAG_NON_BLOCKING, &stream));
    ptr = take_on(ordered, 1000, stream);
    cr_assert_eq(sim->stall(stream), 0);
    give_on(ordered, ptr, 1000, stream);
    GOOD(ccmr_stream_retire(stream));
    other = take_on(ordered, 1000, stream);
    cr_assert_neq(other, ptr, "the stream was forgotten");
    give_on(ordered, other, 1000, stream);
    cr_assert_eq(take_on(ordered, 1000, stream), other);
    give_on(ordered, other, 1000, stream);
    cr_assert_eq(sim->release(stream), 0);
    (void)sim->run(UINT64_MAX);
    cr_assert_eq(take_on(ordered, 1000, one), ptr);
    cr_assert_eq(take_on(ordered, 1000, one), other);
    give_on(ordered, other, 1000, one);
    give_on(ordered, ptr, 1000, one);
    cr_assert_eq(api.cuStreamDestroy(stream), CUDA_SUCCESS);
}

/* Streams of other devices are retired without us. */
Test(stream_ordered, retired_elsewhere)
{
    ccmr_stream stream;

    GOOD(ccmr_stream_create(1, 0, &stream));
    GOOD(ccmr_stream_destroy(stream));
    GOOD(ccmr_stream_retire(leaf_stream(1)));
}

/* B3: many short-lived streams; their blocks serve others, and nothing grows
 * with their number. */
Test(stream_ordered, a_thousand_streams)
{
    ccmr_stream stream;
    void *ptr;
    int i;

    for (i = 0; i < 1000; i++) {
        stream = leaf_stream(0);
        ptr = take_on(ordered, 3000, stream);
        give_on(ordered, ptr, 3000, stream);
        cr_assert_eq(api.cuStreamDestroy(stream), CUDA_SUCCESS);
        (void)sim->run(UINT64_MAX);
    }
    cr_assert_leq(below.allocations, 2u);
    cr_assert_leq(leaf_census().events, 2u);
    /* All in use at once, and then one wants the sum. */
    for (i = 0; i < 1000; i++) {
        stream = leaf_stream(0);
        ptr = take_on(ordered, 3000, stream);
        cr_assert_eq(sim->stall(stream), 0);
        give_on(ordered, ptr, 3000, stream);
        cr_assert_eq(sim->release(stream), 0);
        cr_assert_eq(api.cuStreamDestroy(stream), CUDA_SUCCESS);
    }
    GOOD(ccmr_resource_audit(ordered));
    below.capacity = below.live_bytes;
    GOOD(attempt(below.live_bytes / 2, one));
}

/* S6: what one allocation asks of the driver does not grow with what there
 * is. */
Test(stream_ordered, cost_does_not_grow)
{
    static void *blocks[20000];
    static ccmr_stream streams[200];
    uint64_t calls;
    int i;

    for (i = 0; i < 200; i++) {
        streams[i] = leaf_stream(0);
        cr_assert_eq(sim->stall(streams[i]), 0);
    }
    for (i = 0; i < 20000; i++) {
        blocks[i] = take_on(ordered, 3000, streams[i % 200]);
    }
    for (i = 0; i < 10000; i++) {
        give_on(ordered, blocks[i], 3000, streams[i % 200]);
    }
    calls = sim->calls(NULL);
    GOOD(attempt(3000, one));
    cr_assert_leq(sim->calls(NULL) - calls, 24u);
    for (i = 0; i < 200; i++) {
        cr_assert_eq(sim->release(streams[i]), 0);
    }
    for (i = 10000; i < 20000; i++) {
        give_on(ordered, blocks[i], 3000, one);
    }
}

/* E5, D2: refused before anything happens. */
Test(stream_ordered, refused_streams)
{
    ccmr_stream far = leaf_stream(1);
    CUgraph graph;
    void *ptr = take_on(ordered, 1000, one);

    BAD(attempt(1000, far), CCMR_ERROR_WRONG_DEVICE);
    BAD(ccmr_resource_deallocate(ordered, ptr, 1000, 0, far),
        CCMR_ERROR_WRONG_DEVICE);
    cr_assert_eq(api.cuStreamBeginCapture(two, CU_STREAM_CAPTURE_MODE_GLOBAL),
                 CUDA_SUCCESS);
    BAD(attempt(1000, two), CCMR_ERROR_CAPTURING);
    BAD(ccmr_resource_deallocate(ordered, ptr, 1000, 0, two),
        CCMR_ERROR_CAPTURING);
    /* D1: what happens on other streams does the capture no harm. */
    GOOD(attempt(700, one));
    (void)trim(0);
    (void)stats_of(ordered);
    cr_assert_eq(api.cuStreamEndCapture(two, &graph), CUDA_SUCCESS);
    cr_assert_eq(api.cuGraphDestroy(graph), CUDA_SUCCESS);
    cr_assert_eq(below.allocations, 2u);
    give_on(ordered, ptr, 1000, one);
}

Test(stream_ordered, chooses_the_allocation_stream)
{
    ccmr_block block = {.size = sizeof(block), .allocation_stream = one};
    ccmr_stream chosen = NULL;

    GOOD(ccmr_resource_choose_free_stream(ordered, &block, CCMR_STREAM_UNSET,
                                          &chosen));
    cr_assert_eq(chosen, one);
    GOOD(ccmr_resource_choose_free_stream(ordered, &block, two, &chosen));
    cr_assert_eq(chosen, two);
    block.allocation_stream = CCMR_STREAM_UNSET;
    BAD(ccmr_resource_choose_free_stream(ordered, &block, CCMR_STREAM_UNSET,
                                         &chosen),
        CCMR_ERROR_INVALID_STREAM);
}

/* E6: a stream of another context of the device has no events of ours: the
 * block stays live, and can be freed otherwise. */
Test(stream_ordered, streams_of_other_contexts)
{
    CUcontext other;
    CUcontext popped;
    CUstream stream;
    void *ptr = take_on(ordered, 1000, one);

    cr_assert_eq(api.cuCtxCreate(&other, NULL, 0, 0), CUDA_SUCCESS);
    cr_assert_eq(api.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING),
                 CUDA_SUCCESS);
    cr_assert_eq(api.cuCtxPopCurrent(&popped), CUDA_SUCCESS);
    BAD(ccmr_resource_deallocate(ordered, ptr, 1000, 0, stream),
        CCMR_ERROR_INVALID_STREAM);
    cr_assert(strstr(ccmr_last_error()->message, "primary context") != NULL);
    GOOD(ccmr_resource_audit(ordered));
    give_on(ordered, ptr, 1000, CCMR_STREAM_READY);
    cr_assert_eq(api.cuStreamDestroy(stream), CUDA_SUCCESS);
    cr_assert_eq(api.cuCtxDestroy(other), CUDA_SUCCESS);
}

/* ---- what is refused ----------------------------------------------------------------- */

/* A block that was not handed out, or not like that, stays what it is. */
Test(stream_ordered, wrong_frees)
{
    void *ptr = take_on(ordered, 1000, one);
    void *foreign = take_on(upstream, 1000, one);

    BAD(ccmr_resource_deallocate(ordered, ptr, 999, 0, one),
        CCMR_ERROR_INVALID_ARGUMENT);
    BAD(ccmr_resource_deallocate(ordered, ptr, 1000, 4096, one),
        CCMR_ERROR_INVALID_ARGUMENT);
    BAD(ccmr_resource_deallocate(ordered, foreign, 1000, 0, one),
        CCMR_ERROR_INVALID_POINTER);
    BAD(ccmr_resource_deallocate(ordered, foreign, 1000, 0, CCMR_STREAM_READY),
        CCMR_ERROR_INVALID_POINTER);
    cr_assert_eq(stats_of(ordered).live_blocks, 1u);
    give_on(ordered, ptr, 1000, one);
    BAD(ccmr_resource_deallocate(ordered, ptr, 1000, 0, one),
        CCMR_ERROR_INVALID_POINTER);
    give_on(upstream, foreign, 1000, one);
}

/* A free whose event cannot be recorded leaves the block live. */
Test(stream_ordered, a_free_that_fails)
{
    void *ptr = take_on(ordered, 1000, one);

    cr_assert_eq(sim->fail("cuEventRecord", 1, CUDA_ERROR_UNKNOWN), 0);
    BAD(ccmr_resource_deallocate(ordered, ptr, 1000, 0, one),
        CCMR_ERROR_DRIVER);
    cr_assert_str_eq(ccmr_last_error()->driver_call, "cuEventRecord");
    GOOD(ccmr_resource_audit(ordered));
    cr_assert_eq(stats_of(ordered).live_blocks, 1u);
    give_on(ordered, ptr, 1000, one);
}

/* A free that is refused once is accepted the next time. */
static ccmr_status free_twice(ccmr_resource *made, void *ptr,
                              ccmr_stream stream)
{
    ccmr_status status = ccmr_resource_deallocate(made, ptr, 1000, 0, stream);

    if (status != CCMR_SUCCESS) {
        GOOD(ccmr_resource_deallocate(made, ptr, 1000, 0, stream));
    }
    return status;
}

static ccmr_status whole_life(void *context)
{
    ccmr_resource *made;
    void *ptrs[2] = {NULL, NULL};
    ccmr_status status[5] = {CCMR_SUCCESS};
    int i;

    (void)context;
    status[0] = ccmr_stack_create("stream_ordered | device_plain", &made);
    if (status[0] != CCMR_SUCCESS) {
        return status[0];
    }
    for (i = 0; i < 2; i++) {
        status[i] = ccmr_resource_allocate(made, 1000, 0, i == 0 ? one : two,
                                           &ptrs[i]);
    }
    for (i = 0; i < 2; i++) {
        if (status[i] == CCMR_SUCCESS) {
            status[i + 2] = free_twice(made, ptrs[i], i == 0 ? one : two);
        }
    }
    status[4] = ccmr_resource_trim(made, 0, NULL);
    ccmr_resource_release(made);
    for (i = 0; i < 5; i++) {
        if (status[i] != CCMR_SUCCESS) {
            return status[i];
        }
    }
    return CCMR_SUCCESS;
}

/* E3, J4: each driver call fails in turn; nothing leaks. */
Test(stream_ordered, each_call_fails)
{
    leaf_fail_each(whole_life, NULL, CUDA_ERROR_UNKNOWN);
    cr_assert_eq(leaf_census().events, 0u);
}

/* ---- the rest --------------------------------------------------------------------------- */

static void *spare;
static ccmr_status inside_status;

static void use_inside(puppet *self)
{
    void *ptr = NULL;

    self->on_allocate = NULL;
    self->on_deallocate = NULL;
    inside_status = ccmr_resource_allocate(ordered, 9000, 0, two, &ptr);
    if (inside_status == CCMR_SUCCESS) {
        give_on(ordered, ptr, 9000, two);
    }
    if (spare != NULL) {
        give_on(ordered, spare, 1000, one);
        spare = NULL;
    }
}

/* F7: the upstream calls back. */
Test(stream_ordered, an_upstream_that_calls_back)
{
    void *ptr;

    spare = take_on(ordered, 1000, one);
    below.on_allocate = use_inside;
    ptr = take_on(ordered, 5000, one);
    cr_assert_eq(inside_status, CCMR_SUCCESS);
    cr_assert_null(spare);
    give_on(ordered, ptr, 5000, one);
    (void)sim->run(UINT64_MAX);
    below.on_deallocate = use_inside;
    inside_status = CCMR_ERROR_BUSY;
    (void)trim(0);
    cr_assert_eq(inside_status, CCMR_SUCCESS);
    /* And where the upstream is full, too. */
    ptr = take_on(ordered, 1000, one);
    give_on(ordered, ptr, 1000, one);
    below.capacity = below.live_bytes;
    below.on_deallocate = use_inside;
    inside_status = CCMR_SUCCESS;
    BAD(attempt(100000, one), CCMR_ERROR_OUT_OF_DEVICE_MEMORY);
    below.on_deallocate = NULL;
}

Test(stream_ordered, stats)
{
    void *first = take_on(ordered, 1000, one);
    void *second = take_on(ordered, 5000, one);
    ccmr_stats stats;

    cr_assert_eq(sim->stall(one), 0);
    give_on(ordered, second, 5000, one);
    stats = stats_of(ordered);
    cr_assert_eq(stats.live_bytes, 1000u);
    cr_assert_eq(stats.reserved_bytes, 1024u + 5120u);
    cr_assert_eq(stats.peak_reserved_bytes, 1024u + 5120u);
    cr_assert_eq(stats.pending_bytes, 5120u);
    cr_assert_eq(sim->release(one), 0);
    (void)sim->run(UINT64_MAX);
    stats = stats_of(ordered);
    cr_assert_eq(stats.pending_bytes, 0u);
    cr_assert_neq(stats.exact & CCMR_STAT_PENDING_BYTES, 0u);
    (void)trim(0);
    stats = stats_of(ordered);
    cr_assert_eq(stats.reserved_bytes, 1024u);
    cr_assert_eq(stats.peak_reserved_bytes, 1024u + 5120u);
    give_on(ordered, first, 1000, one);
}

Test(stream_ordered, properties)
{
    ccmr_properties properties = {.size = sizeof(properties)};
    ccmr_resource *found;

    GOOD(ccmr_resource_describe(ordered, &properties));
    cr_assert_str_eq(properties.name, "stream_ordered");
    cr_assert_eq(properties.device, 0);
    cr_assert_eq(properties.free_may_block, 0);
    cr_assert_eq(properties.free_stream, CCMR_FREE_ON_ALLOCATION_STREAM);
    cr_assert_eq(properties.capture, CCMR_CAPTURE_REFUSED);
    cr_assert_eq(properties.max_alignment, 4096u);
    GOOD(ccmr_resource_upstream(ordered, 0, &found));
    cr_assert_eq(found, upstream);
}

/* H1: sizes that no class can hold. */
Test(stream_ordered, huge_sizes)
{
    below.capacity = GIB;
    BAD(attempt(PTRDIFF_MAX, one), CCMR_ERROR_OUT_OF_DEVICE_MEMORY);
    BAD(attempt((size_t)PTRDIFF_MAX / 2 + 2, one),
        CCMR_ERROR_OUT_OF_DEVICE_MEMORY);
    BAD(attempt(SIZE_MAX, one), CCMR_ERROR_INVALID_SIZE);
    cr_assert_eq(stats_of(ordered).reserved_bytes, 0u);
}

Test(stream_ordered, bad_arguments)
{
    ccmr_stream_ordered_options options = {.size = 4};
    ccmr_resource *made = NULL;

    BAD(ccmr_stream_ordered_create(NULL, NULL, &made),
        CCMR_ERROR_INVALID_ARGUMENT);
    BAD(ccmr_stream_ordered_create(upstream, NULL, NULL),
        CCMR_ERROR_INVALID_ARGUMENT);
    BAD(ccmr_stream_ordered_create(upstream, &options, &made),
        CCMR_ERROR_INVALID_STRUCT);
    cr_assert_null(made);
}

Test(stream_ordered, as_text)
{
    ccmr_resource *made;

    GOOD(ccmr_stack_create("stream_ordered keep=1GiB | device_plain device=1",
                           &made));
    cr_assert_str_eq(leaf_print(made),
                     "stream_ordered keep=1GiB | device_plain device=1");
    ccmr_resource_release(made);
    GOOD(ccmr_stack_create("stream_ordered keep=50% | legacy_pinned", &made));
    cr_assert_str_eq(option_of(made, "keep"), "8GiB");
    ccmr_resource_release(made);
}
