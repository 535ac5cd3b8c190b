/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool's sets of extents, case by case. pool_extent_random_test.c has them
 * against a model.
 */
#include <criterion/criterion.h>

#include <string.h>

#include "tests/unit/pool_books.h"

#define BASE ((uintptr_t)1 << 30)

static ccmr__pool_set set;

static void start(void)
{
    host = HOST_PLENTY;
    host_faults = 0;
    cr_assert_eq(ccmr__pool_set_init(&set), 0);
}

static void stop(void)
{
    ccmr__pool_set_destroy(&set);
}

TestSuite(extent, .init = start, .fini = stop);

/* ---- bins ------------------------------------------------------------------- */

Test(extent, bins_grow_with_sizes)
{
    unsigned last = 0;
    size_t bytes;

    cr_expect_eq(ccmr__pool_bin_of(G), 0);
    for (bytes = G; bytes < CCMR__POOL_MOST; bytes += bytes / 70 / G * G + G) {
        unsigned index = ccmr__pool_bin_of(bytes);

        cr_assert_geq(index, last, "%zu bytes", bytes);
        cr_assert_lt(index, CCMR__POOL_BINS);
        cr_assert(bytes > 63 * G || index > last || bytes == G,
                  "small sizes have their own: %zu", bytes);
        last = index;
    }
    cr_expect_eq(ccmr__pool_bin_of(CCMR__POOL_MOST), CCMR__POOL_BINS - 1);
    cr_expect_eq(ccmr__pool_bin_of(SIZE_MAX), CCMR__POOL_BINS - 1);
}

Test(extent, sizes_beyond_the_table)
{
    size_t huge = (size_t)1 << 50;
    ccmr__pool_piece piece;

    bring_new(&set, BASE, huge, 0);
    bring_new(&set, BASE + 2 * huge, huge + G, 0);
    piece = take(&set, huge + G, G);
    cr_expect_eq(piece.address, BASE + 2 * huge);
    cr_expect_null(ccmr__pool_find(&set, huge + G, G, NULL, NULL));
    cr_expect_null(
        ccmr__pool_find(&set, CCMR__POOL_MOST, CCMR__POOL_MOST, NULL, NULL));
    cr_expect(is_sound(&set));
}

/* ---- find ------------------------------------------------------------------- */

Test(extent, smallest_that_fits_then_lowest)
{
    /* All in two bins: 4096 granules are 128 to a step. */
    static const size_t sizes[] = {4200, 4100, 4150, 4150, 4100, 4250, 4000};
    size_t i;

    for (i = 7; i-- > 0;) {
        bring_new(&set, BASE + i * 8192 * G, sizes[i] * G, 0);
    }
    cr_expect_eq(take(&set, 4097 * G, G).address, BASE + 1 * 8192 * G);
    cr_expect_eq(take(&set, 4101 * G, G).address, BASE + 2 * 8192 * G);
    cr_expect_eq(take(&set, 4150 * G, G).address, BASE + 3 * 8192 * G);
    cr_expect_eq(take(&set, 4201 * G, G).address, BASE + 5 * 8192 * G);
    cr_expect_null(ccmr__pool_find(&set, 4201 * G, G, NULL, NULL));
    cr_expect_null(ccmr__pool_find(&set, (size_t)1 << 40, G, NULL, NULL));
    cr_expect(is_sound(&set));
}

Test(extent, nothing_in_an_empty_set)
{
    cr_expect_null(ccmr__pool_find(&set, G, G, NULL, NULL));
    cr_expect_null(ccmr__pool_first(&set));
    cr_expect_null(ccmr__pool_ending_at(&set, BASE));
    cr_expect_null(ccmr__pool_starting_at(&set, BASE));
    cr_expect_eq(ccmr__pool_largest(&set), 0);
    cr_expect(is_sound(&set));
}

typedef struct asked {
    unsigned count;
    size_t least; /* only such sizes are accepted */
} asked;

static int accept_large(void *argument, const ccmr__pool_extent *extent)
{
    asked *about = argument;

    about->count++;
    return extent->bytes >= about->least;
}

Test(extent, looks_at_a_bounded_number)
{
    asked about = {0, 9000 * G};
    ccmr__pool_extent *found;
    uintptr_t i;

    for (i = 0; i < 4000; i++) {
        bring_new(&set, BASE + i * 16384 * G, (100 + i) * G, 0);
    }
    cr_expect_null(ccmr__pool_find(&set, 100 * G, G, accept_large, &about));
    cr_expect_leq(about.count, 64 + 31 + 16, "%u", about.count);
    cr_expect_gt(about.count, 32);
    /* The largest one has its chance although many are before it. */
    bring_new(&set, BASE + i * 16384 * G, 9001 * G, 0);
    found = ccmr__pool_find(&set, 100 * G, G, accept_large, &about);
    cr_assert_not_null(found);
    cr_expect_eq(found->bytes, 9001 * G);
}

Test(extent, alignment_that_many_do_not_have)
{
    size_t alignment = 1024 * G;
    ccmr__pool_piece piece;
    uintptr_t i;

    for (i = 0; i < 3000; i++) {
        bring_new(&set, BASE + (i * 1024 + 1) * G, (200 + i % 300) * G, 0);
    }
    cr_expect_null(ccmr__pool_find(&set, 200 * G, alignment, NULL, NULL));
    bring_new(&set, BASE + (i * 1024 + 1) * G, 2048 * G, 0);
    piece = take(&set, 200 * G, alignment);
    cr_expect_eq(piece.address, BASE + (i + 1) * 1024 * G);
    cr_expect(is_sound(&set));
}

/* ---- carve ------------------------------------------------------------------- */

Test(extent, both_rests_keep_the_waits)
{
    ccmr__pool_piece whole = piece_of(BASE + G, 100 * G, 3);
    ccmr__pool_piece piece;
    ccmr__pool_extent *rest;

    ccmr__pool_waits_add(&whole.waits, lane_at(1), 7);
    ccmr__pool_waits_add(&whole.waits, lane_at(2), 8);
    cr_assert_eq(ccmr__pool_reserve_records(&set, 1), 0);
    cr_assert_eq(ccmr__pool_insert(&set, &whole, 0), 0);
    piece = take(&set, 10 * G, 64 * G);

    cr_expect_eq(piece.address, BASE + 64 * G);
    cr_expect_eq(piece.bytes, 10 * G);
    cr_expect_eq(piece.segment, segment_at(3));
    cr_expect_eq(piece.waits.count, 2);
    cr_expect_eq(piece.waits.lanes[1], lane_at(2));
    cr_expect_eq(piece.waits.numbers[1], 8);
    cr_expect_eq(set.extents, 2);
    cr_expect_eq(set.bytes, 90 * G);
    rest = ccmr__pool_ending_at(&set, BASE + 64 * G);
    cr_assert_not_null(rest);
    cr_expect_eq(rest->address, BASE + G);
    cr_expect_eq(rest->waits.count, 2);
    rest = ccmr__pool_starting_at(&set, BASE + 74 * G);
    cr_assert_not_null(rest);
    cr_expect_eq(rest->bytes, 27 * G);
    cr_expect_eq(rest->segment, segment_at(3));
    cr_expect_eq(rest->waits.count, 2);
    cr_expect_eq(rest->waits.numbers[0], 7);
    cr_expect(is_sound(&set));
    bring_back(&set, &piece);
    cr_expect_eq(set.extents, 1);
    cr_expect(is_sound(&set));
}

Test(extent, rest_before_and_no_rest)
{
    bring_new(&set, BASE + G, 127 * G, 0);
    cr_expect_eq(take(&set, 64 * G, 64 * G).address, BASE + 64 * G);
    cr_expect_eq(set.extents, 1);
    cr_expect_not_null(ccmr__pool_ending_at(&set, BASE + 64 * G));
    cr_expect_eq(take(&set, 63 * G, G).address, BASE + G);
    cr_expect_eq(set.extents, 0);
    cr_expect_eq(set.bytes, 0);
    cr_expect_eq(set.owed, 2);
    cr_expect(is_sound(&set));
}

Test(extent, carve_without_host_memory_changes_nothing)
{
    ccmr__pool_extent *extent;
    ccmr__pool_piece piece;
    ccmr__pool_set before;
    unsigned taken = 0;

    bring_new(&set, BASE, 1000 * G, 0);
    host = HOST_EMPTY;
    for (;;) {
        extent = ccmr__pool_find(&set, G, G, NULL, NULL);
        before = set;
        if (ccmr__pool_carve(&set, extent, G, G, 1, &piece) != 0) {
            break;
        }
        cr_assert_lt(++taken, 1000, "records from nowhere");
    }
    cr_expect_eq(memcmp(&before, &set, sizeof(set)), 0);
    cr_expect_eq(extent->bytes, (1000 - taken) * G);
    cr_expect(is_sound(&set));
    cr_expect_eq(ccmr__pool_carve(&set, extent, 8 * G, G, 8, &piece), -1);
    cr_expect_eq(ccmr__pool_reserve_records(&set, 5), -1);
    cr_expect_eq(ccmr__pool_reserve_records(&set, SIZE_MAX), -1);
    cr_expect_eq(memcmp(&before, &set, sizeof(set)), 0);
    host = HOST_PLENTY;
    cr_expect_eq(ccmr__pool_reserve_records(&set, SIZE_MAX), -1);
    cr_expect_eq(ccmr__pool_reserve_records(&set, SIZE_MAX / 256), -1);
    cr_expect_eq(ccmr__pool_carve(&set, extent, 8 * G, G, 8, &piece), 0);
    cr_expect_eq(set.owed, (ptrdiff_t)taken + 8);
    cr_expect(is_sound(&set));
}

/* ---- merging ------------------------------------------------------------------ */

Test(extent, merges_up_down_and_between)
{
    bring_new(&set, BASE, 4 * G, 0);
    bring_new(&set, BASE + 4 * G, 2 * G, 0);
    cr_expect_eq(set.extents, 1);
    bring_new(&set, BASE + 10 * G, G, 0);
    cr_expect_eq(set.extents, 2);
    bring_new(&set, BASE + 9 * G, G, 0);
    cr_expect_eq(set.extents, 2);
    cr_expect_not_null(ccmr__pool_starting_at(&set, BASE + 9 * G));
    cr_expect_null(ccmr__pool_starting_at(&set, BASE + 10 * G));
    bring_new(&set, BASE + 6 * G, 3 * G, 0);
    cr_expect_eq(set.extents, 1);
    cr_expect_eq(ccmr__pool_largest(&set), 11 * G);
    cr_expect_eq(ccmr__pool_ending_at(&set, BASE + 11 * G),
                 ccmr__pool_starting_at(&set, BASE));
    cr_expect(is_sound(&set));
}

Test(extent, segments_stay_apart)
{
    bring_new(&set, BASE, 4 * G, 0);
    bring_new(&set, BASE + 8 * G, 4 * G, 0);
    bring_new(&set, BASE + 4 * G, 4 * G, 1);
    cr_expect_eq(set.extents, 3);
    cr_expect_eq(ccmr__pool_largest(&set), 4 * G);
    cr_expect(is_sound(&set));
}

/* A piece of 2 granules at `place` that waits for lanes `first` to `last`. */
static void bring_waiting(uintptr_t place, unsigned first, unsigned last,
                          uint64_t number)
{
    ccmr__pool_piece piece = piece_of(BASE + place * G, 2 * G, 0);

    for (; first <= last; first++) {
        cr_assert(ccmr__pool_waits_add(&piece.waits, lane_at(first), number));
    }
    cr_assert_eq(ccmr__pool_reserve_records(&set, 1), 0);
    cr_assert_eq(ccmr__pool_insert(&set, &piece, 0), 0);
}

Test(extent, merged_waits_for_both)
{
    const ccmr__pool_waits *waits;

    bring_waiting(0, 1, 3, 50);
    bring_waiting(4, 2, 4, 40);
    bring_waiting(2, 3, 3, 60);
    cr_assert_eq(set.extents, 1);
    waits = &ccmr__pool_first(&set)->waits;
    cr_assert_eq(waits->count, 4);
    cr_expect_eq(waits->lanes[0], lane_at(3));
    cr_expect_eq(waits->numbers[0], 60);
    cr_expect_eq(waits->lanes[1], lane_at(1));
    cr_expect_eq(waits->numbers[1], 50);
    cr_expect_eq(waits->lanes[2], lane_at(2));
    cr_expect_eq(waits->numbers[2], 50);
    cr_expect_eq(waits->lanes[3], lane_at(4));
    cr_expect_eq(waits->numbers[3], 40);
}

Test(extent, too_many_waits_stay_apart)
{
    bring_waiting(0, 1, 4, 50);
    bring_waiting(2, 5, 5, 60); /* not down */
    cr_expect_eq(set.extents, 2);
    bring_waiting(6, 5, 7, 60);
    bring_waiting(4, 4, 4, 70); /* either neighbour, but not both and it */
    cr_expect_eq(set.extents, 2);
    cr_expect_eq(ccmr__pool_largest(&set), 6 * G);
    cr_expect_eq(ccmr__pool_starting_at(&set, BASE)->waits.count, 4);
    cr_expect_eq(ccmr__pool_starting_at(&set, BASE + 2 * G)->waits.count, 4);
    cr_expect(is_sound(&set));
}

Test(extent, a_merge_that_fits_on_one_side_alone)
{
    bring_waiting(0, 1, 3, 50);
    bring_waiting(4, 4, 6, 50);
    bring_waiting(2, 7, 7, 60); /* the one before comes first */
    cr_expect_eq(set.extents, 2);
    cr_expect_eq(ccmr__pool_starting_at(&set, BASE)->bytes, 4 * G);
    cr_expect_eq(ccmr__pool_starting_at(&set, BASE)->waits.count, 4);
    cr_expect_eq(ccmr__pool_starting_at(&set, BASE + 4 * G)->waits.count, 3);
    cr_expect(is_sound(&set));
}

/* ---- waits -------------------------------------------------------------------- */

Test(waits, add_and_join)
{
    ccmr__pool_waits waits = {0};
    ccmr__pool_waits more = {0};
    ccmr__pool_waits before;
    unsigned i;

    for (i = 0; i < CCMR__POOL_WAITS; i++) {
        cr_expect(ccmr__pool_waits_add(&waits, lane_at(i), 10 + i));
    }
    cr_expect(ccmr__pool_waits_add(&waits, lane_at(2), 5));
    cr_expect_eq(waits.numbers[2], 12);
    cr_expect(ccmr__pool_waits_add(&waits, lane_at(2), 50));
    cr_expect_eq(waits.numbers[2], 50);
    before = waits;
    cr_expect_not(ccmr__pool_waits_add(&waits, lane_at(9), 1));
    cr_expect_eq(memcmp(&before, &waits, sizeof(waits)), 0);

    cr_expect(ccmr__pool_waits_join(&waits, &more));
    cr_expect(ccmr__pool_waits_add(&more, lane_at(3), 99));
    cr_expect(ccmr__pool_waits_add(&more, lane_at(9), 99));
    cr_expect_not(ccmr__pool_waits_join(&waits, &more));
    cr_expect_eq(memcmp(&before, &waits, sizeof(waits)), 0,
                 "a refused join leaves nothing behind");
    waits.count = 3;
    more.count = 1;
    cr_expect(ccmr__pool_waits_join(&waits, &more));
    cr_expect_eq(waits.count, 4);
    cr_expect_eq(waits.numbers[3], 99);
}

/* ---- records -------------------------------------------------------------------- */

Test(extent, insert_allocates_nothing)
{
    ccmr__pool_piece pieces[500];
    unsigned i;

    bring_new(&set, BASE, 1000 * G, 0);
    for (i = 0; i < 500; i++) {
        pieces[i] = take(&set, 2 * G, G);
    }
    host = HOST_FORBIDDEN;
    for (i = 0; i < 500; i += 2) {
        bring_back(&set, &pieces[i]);
    }
    cr_expect_eq(set.extents, 250);
    cr_expect_geq((ptrdiff_t)set.spare, set.owed);
    for (i = 1; i < 500; i += 2) {
        bring_back(&set, &pieces[i]);
    }
    cr_expect_eq(set.extents, 1);
    cr_expect_eq(set.owed, 0);
    cr_expect_eq(host_faults, 0);
    cr_expect(is_sound(&set));
}

Test(extent, a_set_without_records_fetches_them)
{
    ccmr__pool_extent *records;
    ccmr__pool_piece piece;
    ccmr__pool_set other;
    size_t count;

    cr_assert_eq(ccmr__pool_set_init(&other), 0);
    bring_new(&set, BASE, 10 * G, 0);
    piece = take(&set, G, G);
    host = HOST_FORBIDDEN;
    cr_expect_eq(ccmr__pool_insert(&other, &piece, 1), -1);
    cr_expect_eq(other.extents, 0);
    cr_expect_eq(other.owed, 0);
    cr_expect_eq(ccmr__pool_give_records(&other, 5, &records), 0);

    count = ccmr__pool_give_records(&set, set.spare / 2 + 1, &records);
    cr_assert_gt(count, 0);
    cr_expect(is_sound(&set));
    ccmr__pool_take_records(&other, records, count);
    cr_expect(is_sound(&other));
    cr_expect_eq(ccmr__pool_insert(&other, &piece, 1), 0);
    cr_expect(is_sound(&other));
    cr_expect_eq(set.owed + other.owed, 0);
    cr_expect_eq(host_faults, 0);
    ccmr__pool_set_destroy(&other);
}

/* What was removed finds a record, whatever was carved meanwhile. */
Test(extent, removed_is_owed_for)
{
    ccmr__pool_extent *extent;
    ccmr__pool_piece removed;
    ccmr__pool_piece piece;
    ptrdiff_t more;

    bring_new(&set, BASE + G, 1000 * G, 0);
    bring_new(&set, BASE + 4096 * G, 8 * G, 0);
    ccmr__pool_remove(&set, ccmr__pool_starting_at(&set, BASE + 4096 * G),
                      &removed);
    cr_expect_eq(removed.bytes, 8 * G);
    cr_expect_eq(set.owed, 1);
    host = HOST_EMPTY;
    do {
        extent = ccmr__pool_find(&set, G, 2 * G, NULL, NULL);
        cr_assert_not_null(extent);
    } while (ccmr__pool_carve(&set, extent, G, 2 * G, 1, &piece) == 0);
    more = (ptrdiff_t)set.spare - set.owed;
    cr_expect(more == 0 || more == 1, "%td", more);
    bring_back(&set, &removed);
    cr_expect(is_sound(&set));
    ccmr__pool_remove(&set, ccmr__pool_starting_at(&set, BASE + 4096 * G),
                      &removed);
    ccmr__pool_forget(&set, 1);
    cr_expect_eq((ptrdiff_t)set.spare - set.owed, more + 1);
    cr_expect(is_sound(&set));
}

/* One set splits, the other one merges, and the memory goes round. */
static size_t records_after(unsigned rounds, _Atomic size_t *surplus)
{
    ccmr__pool_piece first;
    ccmr__pool_piece second;
    ccmr__pool_set other;
    size_t records;

    cr_assert_eq(ccmr__pool_set_init(&other), 0);
    set.surplus = surplus;
    other.surplus = surplus;
    cr_assert_eq(ccmr__pool_reserve_records(&other, 20), 0);
    bring_new(&set, BASE, 2 * G, 0);
    while (rounds-- > 0) {
        ccmr__pool_extent *moved;

        first = take(&set, G, G);
        second = take(&set, G, G);
        if (other.spare == 0) {
            size_t count = ccmr__pool_give_records(&set, 4, &moved);

            ccmr__pool_take_records(&other, moved, count);
        }
        bring_back(&other, &first);
        bring_back(&other, &second);
        ccmr__pool_remove(&other, ccmr__pool_first(&other), &first);
        cr_assert_geq((ptrdiff_t)other.spare, other.owed);
        cr_assert_geq((ptrdiff_t)set.spare, set.owed);
        bring_back(&set, &first);
    }
    records = set.records + other.records;
    cr_expect(is_sound(&set));
    cr_expect(is_sound(&other));
    ccmr__pool_set_destroy(&other);
    return records;
}

Test(extent, shared_surplus_keeps_records_few)
{
    _Atomic size_t surplus = 0;
    size_t alone = records_after(10000, NULL);

    cr_expect_gt(alone, 5000, "without it they grow: %zu", alone);
    ccmr__pool_set_destroy(&set);
    cr_assert_eq(ccmr__pool_set_init(&set), 0);
    cr_expect_lt(records_after(100000, &surplus), 500);
}

/* ---- many ------------------------------------------------------------------------ */

#define MANY ((uintptr_t)1000000)

static size_t longest_chain(void)
{
    size_t longest = 0;
    size_t i;

    for (i = 0; i < set.buckets; i++) {
        const ccmr__pool_extent *extent = set.starts[i];
        size_t length = 0;

        for (; extent != NULL; extent = extent->by_start) {
            length++;
        }
        longest = length > longest ? length : longest;
    }
    return longest;
}

Test(extent, a_million)
{
    uintptr_t i;

    bring_new(&set, BASE, 2 * MANY * G, 0);
    for (i = 0; i < 2 * MANY; i++) {
        cr_assert_eq(take(&set, G, G).address, BASE + i * G);
    }
    cr_expect_eq(set.extents, 0);
    host = HOST_FORBIDDEN;
    for (i = 0; i < 2 * MANY; i += 2) {
        ccmr__pool_piece piece = piece_of(BASE + i * G, G, 0);

        bring_back(&set, &piece);
    }
    cr_expect_eq(set.extents, MANY);
    cr_expect_geq(set.buckets, MANY);
    cr_expect_lt(longest_chain(), 24);
    cr_expect(is_sound(&set));
    for (i = 1; i < 2 * MANY; i += 2) {
        ccmr__pool_piece piece = piece_of(BASE + i * G, G, 0);

        bring_back(&set, &piece);
    }
    cr_expect_eq(set.extents, 1);
    cr_expect_eq(set.bytes, 2 * MANY * G);
    cr_expect_eq(host_faults, 0);
    cr_expect(is_sound(&set));
}

/* The hashes do without more room where there is none. */
Test(extent, hashes_that_cannot_grow)
{
    ccmr__pool_extent *records;
    ccmr__pool_set other;
    size_t count;

    cr_assert_eq(ccmr__pool_set_init(&other), 0);
    cr_assert_eq(ccmr__pool_reserve_records(&other, 3000), 0);
    count = ccmr__pool_give_records(&other, 3000, &records);
    ccmr__pool_take_records(&set, records, count);
    ccmr__pool_forget(&set, count);
    host = HOST_EMPTY;
    bring_new(&set, BASE, 100 * G, 0);
    cr_expect_eq(set.buckets, 256);
    (void)take(&set, G, G);
    host = HOST_PLENTY;
    (void)take(&set, G, G);
    cr_expect_geq(set.buckets, 1500);
    cr_expect(is_sound(&set));
    ccmr__pool_set_destroy(&other);
}

Test(extent, first_and_next_give_each_once)
{
    const ccmr__pool_extent *extent;
    size_t bytes = 0;
    size_t count = 0;
    uintptr_t i;

    for (i = 1; i <= 300; i++) {
        bring_new(&set, BASE + i * i * G, (i % 40 + 1) * G, (unsigned)i % 7);
    }
    for (extent = ccmr__pool_first(&set); extent != NULL;
         extent = ccmr__pool_next(&set, extent)) {
        count++;
        bytes += extent->bytes;
    }
    cr_expect_eq(count, set.extents);
    cr_expect_eq(bytes, set.bytes);
}
