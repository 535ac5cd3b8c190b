/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool's dump: every byte is told once, and the totals are the figures'.
 */
#include "tests/unit/leaf.h"

#include <stdio.h>

#include <cucoremr/resources/pool.h>

#define GOOD(call)                                                            \
    cr_assert_eq(call, CCMR_SUCCESS, "%s", ccmr_last_error()->message)

static const ccmr_sim_table *sim;
static ccmr_resource *made;
static ccmr_stream one;

static void start(void)
{
    sim = leaf_start();
    (void)sim->set_mode(CCMR_SIM_LATE);
    one = leaf_stream(0);
}

static void end(void)
{
    ccmr_resource_release(made);
    leaf_end();
}

TestSuite(pool_dump, .init = start, .fini = end);

static char *take(size_t bytes, ccmr_stream stream)
{
    void *ptr = NULL;

    GOOD(ccmr_resource_allocate(made, bytes, 0, stream, &ptr));
    return ptr;
}

static void give(void *ptr, size_t bytes, ccmr_stream stream)
{
    GOOD(ccmr_resource_deallocate(made, ptr, bytes, 0, stream));
}

/* ---- lines, parsed ------------------------------------------------------ */

#define KINDS 8

static const char *const names[KINDS] = {
    "segment", "handle", "pinned", "leaving", "taken", "out", "free", "waits"};

enum { SEGMENT, HANDLE, PINNED, LEAVING, TAKEN, OUT, FREE, WAITS };

typedef struct seen {
    size_t lines;
    size_t resources;
    size_t count[KINDS];
    size_t bytes[KINDS];
    uintptr_t end; /* of the last run */
    size_t streams;
    /* of the total */
    size_t totals;
    size_t reserved;
    size_t out;
    size_t free;
    size_t waits;
    size_t pinned;
    size_t leaving;
    size_t largest;
    size_t runs;
    const char *wanted; /* an address of a block */
    size_t found;
} seen;

static void see_run(seen *in, int kind, uintptr_t address, size_t bytes,
                    const char *line)
{
    in->count[kind]++;
    in->bytes[kind] += bytes;
    if (kind >= OUT) {
        cr_assert_geq(address, in->end, "runs overlap: %s", line);
        in->end = address + bytes;
    }
    if (kind == OUT && (uintptr_t)in->wanted - address < bytes) {
        in->found++;
    }
    cr_assert_eq(strstr(line, "streams=") != NULL, kind == WAITS);
}

static int see(void *context, const char *line, size_t length)
{
    unsigned long long address;
    seen *in = context;
    char kind[16];
    size_t bytes;
    int i;

    cr_assert_eq(strlen(line), length);
    cr_assert_eq(line[length - 1], '\n');
    in->lines++;
    if (strncmp(line, "resource ", 9) == 0) {
        in->resources++;
        return 0;
    }
    if (sscanf(line,
               "total reserved=%zu out=%zu free=%zu waits=%zu pinned=%zu "
               "leaving=%zu largest_free=%zu free_runs=%zu",
               &in->reserved, &in->out, &in->free, &in->waits, &in->pinned,
               &in->leaving, &in->largest, &in->runs) == 8) {
        in->totals++;
        return 0;
    }
    cr_assert_eq(sscanf(line, "%15s 0x%llx %zu", kind, &address, &bytes), 3,
                 "what is this: %s", line);
    for (i = 0; i < KINDS && strcmp(kind, names[i]) != 0; i++) {
    }
    cr_assert_lt(i, KINDS, "%s", line);
    see_run(in, i, (uintptr_t)address, bytes, line);
    return 0;
}

static seen dumped(const void *wanted)
{
    ccmr_stats stats = {.size = sizeof(stats)};
    seen all = {.wanted = wanted};

    GOOD(ccmr_resource_dump(made, see, &all));
    GOOD(ccmr_resource_stats(made, &stats));
    cr_assert_eq(all.totals, 1u);
    cr_assert_eq(all.reserved, stats.reserved_bytes);
    cr_assert_eq(all.reserved, all.out + all.free + all.waits);
    cr_assert_eq(all.bytes[SEGMENT] + all.bytes[HANDLE] + all.bytes[PINNED],
                 all.reserved);
    cr_assert_eq(all.bytes[PINNED], all.pinned);
    cr_assert_eq(all.bytes[OUT], all.out);
    cr_assert_eq(all.bytes[FREE], all.free);
    cr_assert_eq(all.bytes[WAITS], all.waits);
    cr_assert_eq(all.bytes[LEAVING], all.leaving);
    cr_assert_eq(all.count[FREE] + all.count[WAITS], all.runs);
    cr_assert_geq(all.out, stats.live_bytes);
    GOOD(ccmr_resource_audit(made));
    return all;
}

/* ---- cases -------------------------------------------------------------- */

Test(pool_dump, an_empty_pool)
{
    seen all;

    GOOD(ccmr_stack_create("pool | device_plain", &made));
    all = dumped(NULL);
    cr_assert_eq(all.resources, 2u);
    cr_assert_eq(all.lines, 3u);
    cr_assert_eq(all.reserved, 0u);
}

Test(pool_dump, blocks_are_out)
{
    char *a;
    char *b;
    seen all;

    GOOD(ccmr_stack_create("pool | device_plain", &made));
    a = take(3 * MIB, one);
    b = take(700, one);
    all = dumped(b);
    cr_assert_eq(all.found, 1u);
    cr_assert_geq(all.count[SEGMENT], 1u);
    cr_assert_gt(all.free, 0u);
    give(b, 700, one);
    give(a, 3 * MIB, one);
    (void)sim->run(UINT64_MAX);
    GOOD(ccmr_resource_trim(made, 1, NULL));
    all = dumped(a);
    cr_assert_eq(all.found, 0u);
    cr_assert_eq(all.out, 0u);
}

/* What is free names the stream whose work it waits for, and nothing once that
 * is known to be done. */
Test(pool_dump, waits_name_streams)
{
    ccmr_stream two = leaf_stream(0);
    char *a;
    char *b;
    seen all;

    GOOD(ccmr_stream_register(one));
    GOOD(ccmr_stack_create("pool initial=8MiB | device_plain", &made));
    a = take(3 * MIB, one);
    b = take(MIB, two);
    cr_assert_eq(sim->stall(one), 0);
    give(a, 3 * MIB, one);
    GOOD(ccmr_resource_trim(made, SIZE_MAX, NULL)); /* out of caches */
    all = dumped(NULL);
    cr_assert_eq(all.waits, 3 * MIB);
    cr_assert_eq(all.count[WAITS], 1u);
    cr_assert_eq(all.bytes[OUT], MIB);
    cr_assert_eq(sim->release(one), 0);
    (void)sim->run(UINT64_MAX);
    GOOD(ccmr_resource_trim(made, SIZE_MAX, NULL));
    all = dumped(NULL);
    cr_assert_eq(all.waits, 0u);
    give(b, MIB, two);
}

/* Over a range: handles, and the addresses that moved ones have left. */
Test(pool_dump, handles_and_what_they_left)
{
    char *blocks[8];
    char *large;
    seen all;
    int i;

    GOOD(ccmr_stack_create("pool hard=16MiB handle=2MiB | virtual", &made));
    for (i = 0; i < 8; i++) {
        blocks[i] = take(2 * MIB, one);
    }
    all = dumped(blocks[3]);
    cr_assert_eq(all.found, 1u);
    cr_assert_eq(all.count[HANDLE], 8u);
    cr_assert_eq(all.count[OUT], 1u, "handles side by side are as one");
    cr_assert_eq(sim->stall(one), 0);
    for (i = 0; i < 8; i += 2) {
        give(blocks[i], 2 * MIB, one);
    }
    large = take(8 * MIB, one); /* of four that are apart */
    all = dumped(large);
    cr_assert_eq(all.found, 1u);
    cr_assert_gt(all.leaving, 0u);
    cr_assert_eq(all.out, 16 * MIB);
    cr_assert_eq(sim->release(one), 0);
    give(large, 8 * MIB, one);
    for (i = 1; i < 8; i += 2) {
        give(blocks[i], 2 * MIB, one);
    }
}

/* What is pinned stays, whole handles or segments of it. */
static void pin(const char *stack, size_t whole)
{
    char *a;
    seen all;

    GOOD(ccmr_stack_create(stack, &made));
    a = take(3 * MIB, one);
    GOOD(ccmr_resource_pin(made, a, 100));
    all = dumped(a);
    cr_assert_eq(all.pinned, whole);
    cr_assert_eq(all.count[PINNED], 1u);
    GOOD(ccmr_resource_unpin(made, a, 100));
    all = dumped(a);
    cr_assert_eq(all.pinned, 0u);
    give(a, 3 * MIB, one);
}

Test(pool_dump, pinned_segment)
{
    pin("pool initial=8MiB | device_plain", 8 * MIB);
}

Test(pool_dump, pinned_handle)
{
    pin("pool handle=2MiB | virtual", 2 * MIB);
}

static int end_at_third(void *context, const char *line, size_t length)
{
    (void)line;
    (void)length;
    return ++*(int *)context == 3;
}

/* No lock is held over the callback, which may do as it likes. */
static int use_the_pool(void *context, const char *line, size_t length)
{
    (void)context;
    (void)line;
    (void)length;
    give(take(4096, one), 4096, one);
    GOOD(ccmr_resource_audit(made));
    return 0;
}

Test(pool_dump, callbacks)
{
    int lines = 0;
    char *a;

    GOOD(ccmr_stack_create("limiting bytes=64MiB | pool | device_plain",
                           &made));
    a = take(1000, one);
    cr_assert_eq(ccmr_resource_dump(made, end_at_third, &lines),
                 CCMR_ERROR_USER);
    cr_assert_eq(lines, 3);
    GOOD(ccmr_resource_dump(made, use_the_pool, NULL));
    give(a, 1000, one);
}
