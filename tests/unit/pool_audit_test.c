/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The audit of a set: each way to spoil the books is seen.
 */
#include <criterion/criterion.h>

#include "tests/unit/pool_books.h"

#define BASE ((uintptr_t)1 << 30)

/* Two of a size in one bin, and a large one that waits for two lanes. */
typedef struct books {
    ccmr__pool_set set;
    ccmr__pool_extent *low;
    ccmr__pool_extent *high;
    ccmr__pool_extent *large;
} books;

static void open_books(books *b)
{
    ccmr__pool_piece large = piece_of(BASE + 1024 * G, 100 * G, 0);

    cr_assert_eq(ccmr__pool_set_init(&b->set), 0);
    bring_new(&b->set, BASE, 4 * G, 0);
    bring_new(&b->set, BASE + 16 * G, 4 * G, 0);
    ccmr__pool_waits_add(&large.waits, lane_at(1), 1);
    ccmr__pool_waits_add(&large.waits, lane_at(2), 2);
    cr_assert_eq(ccmr__pool_reserve_records(&b->set, 1), 0);
    cr_assert_eq(ccmr__pool_insert(&b->set, &large, 0), 0);
    b->low = ccmr__pool_starting_at(&b->set, BASE);
    b->high = ccmr__pool_starting_at(&b->set, BASE + 16 * G);
    b->large = ccmr__pool_starting_at(&b->set, BASE + 1024 * G);
    cr_assert(ccmr__pool_set_audit(&b->set));
}

/* The bucket of its address, as a link to it. */
static ccmr__pool_extent **start_of(books *b, const ccmr__pool_extent *extent)
{
    return &b->set
                .starts[ccmr__pool_bucket_of(b->set.buckets, extent->address)];
}

static ccmr__pool_extent **end_of(books *b, const ccmr__pool_extent *extent)
{
    return &b->set.ends[ccmr__pool_bucket_of(b->set.buckets,
                                             ccmr__pool_end_of(extent))];
}

/* One way to spoil them, as a test. */
#define SPOILED(name, statement)                                              \
    Test(audit, name)                                                         \
    {                                                                         \
        books b;                                                              \
                                                                              \
        open_books(&b);                                                       \
        statement;                                                            \
        cr_expect_not(ccmr__pool_set_audit(&b.set));                          \
        ccmr__pool_set_destroy(&b.set);                                       \
    }

SPOILED(bytes, b.set.bytes += G)
SPOILED(extents, b.set.extents++)
SPOILED(extents_less, b.set.extents--)
SPOILED(spare, b.set.spare--)
SPOILED(spare_list, b.set.spares = b.set.spares->next)
SPOILED(spare_ring, b.set.spares->next = b.set.spares)
SPOILED(owed, b.set.owed = (ptrdiff_t)b.set.spare + 1)
SPOILED(records, b.set.records++)
SPOILED(size, b.large->bytes -= G)
SPOILED(size_of_nothing, b.low->bytes = 0)
SPOILED(address, b.low->address += G)
SPOILED(address_of_nothing, b.low->address = 0)
SPOILED(bin_ring, b.low->next = b.low)
SPOILED(bin_back, b.high->previous = b.high)
SPOILED(bin_cut, *ccmr__pool_bin_at(&b.set, ccmr__pool_bin_of(4 * G)) = NULL)
SPOILED(step_bit, b.set.steps[6] = 0)
SPOILED(power_bit, b.set.powers &= ~(UINT64_C(1) << 6))
SPOILED(power_bit_more, b.set.powers |= UINT64_C(1) << 9)
SPOILED(power_bit_beyond, b.set.powers |= UINT64_C(1) << 50)
SPOILED(start_missing, *start_of(&b, b.low) = NULL)
SPOILED(start_ring, b.low->by_start = b.low)
SPOILED(start_of_another, *start_of(&b, b.low) = b.large)
SPOILED(end_missing, *end_of(&b, b.high) = NULL)
SPOILED(end_ring, b.high->by_end = b.high)
SPOILED(waits_count, b.large->waits.count = CCMR__POOL_WAITS + 1)
SPOILED(waits_twice, b.large->waits.lanes[1] = b.large->waits.lanes[0])
SPOILED(waits_for_nobody, b.large->waits.lanes[0] = NULL)
/* What a double free does. */
SPOILED(overlap, bring_new(&b.set, BASE + 1032 * G, 2 * G, 0))
