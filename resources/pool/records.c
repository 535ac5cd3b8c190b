/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of extents: their records and the size of their hashes. All that
 * allocates is here.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "resources/pool/set.h"

#define FIRST_BUCKETS ((size_t)256)
/* With its head a slab of so many takes a page. */
#define SLAB_LEAST ((size_t)31)
#define SLAB_MOST ((size_t)8191)
#define LINE ((size_t)64)
/* No set has so many, and sums of two of them are sound. */
#define RECORDS_MOST ((size_t)PTRDIFF_MAX / sizeof(ccmr__pool_extent) / 4)

/* On lines of the cache: a search reads the first of a record's two. */
struct ccmr__pool_slab {
    _Alignas(64) ccmr__pool_slab *next;
    _Alignas(64) ccmr__pool_extent records[];
};

_Static_assert(sizeof(ccmr__pool_extent) == 2 * LINE, "a record is two lines");

/* ---- hashes ------------------------------------------------------------------- */

/* Both in one allocation. */
static ccmr__pool_extent **new_buckets(size_t buckets)
{
    return calloc(buckets * 2, sizeof(ccmr__pool_extent *));
}

static void rehash_starts(ccmr__pool_set *set, ccmr__pool_extent **starts,
                          size_t buckets)
{
    size_t i;

    for (i = 0; i < set->buckets; i++) {
        ccmr__pool_extent *extent = set->starts[i];

        while (extent != NULL) {
            ccmr__pool_extent *next = extent->by_start;
            ccmr__pool_extent **head =
                &starts[ccmr__pool_bucket_of(buckets, extent->address)];

            extent->by_start = *head;
            *head = extent;
            extent = next;
        }
    }
}

static void rehash_ends(ccmr__pool_set *set, ccmr__pool_extent **ends,
                        size_t buckets)
{
    size_t i;

    for (i = 0; i < set->buckets; i++) {
        ccmr__pool_extent *extent = set->ends[i];

        while (extent != NULL) {
            ccmr__pool_extent *next = extent->by_end;
            ccmr__pool_extent **head = &ends[ccmr__pool_bucket_of(
                buckets, ccmr__pool_end_of(extent))];

            extent->by_end = *head;
            *head = extent;
            extent = next;
        }
    }
}

/* Without memory they stay as they are: slow, not wrong. */
static void grow_hashes(ccmr__pool_set *set)
{
    size_t buckets = set->buckets;
    ccmr__pool_extent **starts;

    while (buckets < set->records) {
        buckets *= 2;
    }
    starts = new_buckets(buckets);
    if (starts == NULL) {
        return;
    }
    rehash_starts(set, starts, buckets);
    rehash_ends(set, starts + buckets, buckets);
    free(set->starts);
    set->starts = starts;
    set->ends = starts + buckets;
    set->buckets = buckets;
}

/* ---- the set ------------------------------------------------------------------ */

int ccmr__pool_set_init(ccmr__pool_set *set)
{
    memset(set, 0, sizeof(*set));
    set->starts = new_buckets(FIRST_BUCKETS);
    if (set->starts == NULL) {
        return -1;
    }
    set->ends = set->starts + FIRST_BUCKETS;
    set->buckets = FIRST_BUCKETS;
    return 0;
}

void ccmr__pool_set_destroy(ccmr__pool_set *set)
{
    ccmr__pool_slab *slab = set->slabs;

    while (slab != NULL) {
        ccmr__pool_slab *next = slab->next;

        free(slab);
        slab = next;
    }
    free(set->starts);
    memset(set, 0, sizeof(*set));
}

/* ---- records -------------------------------------------------------------------- */

static int add_slab(ccmr__pool_set *set, size_t least)
{
    size_t count = set->records / 2;
    ccmr__pool_slab *slab;

    if (least > RECORDS_MOST) {
        return -1;
    }
    count = count > SLAB_MOST ? SLAB_MOST : count;
    count = count < SLAB_LEAST ? SLAB_LEAST : count;
    count = count < least ? least : count;
    slab = aligned_alloc(LINE, sizeof(*slab) + count * sizeof(*slab->records));
    if (slab == NULL) {
        return -1;
    }
    slab->next = set->slabs;
    set->slabs = slab;
    set->records += count;
    /* The first one is used first. */
    while (count > 0) {
        ccmr__pool_spare_record(set, &slab->records[--count]);
    }
    return 0;
}

/* Of the shared surplus, at most. */
static size_t take_surplus(ccmr__pool_set *set, size_t most)
{
    size_t there;
    size_t taken;

    if (set->surplus == NULL) {
        return 0;
    }
    there = atomic_load_explicit(set->surplus, memory_order_relaxed);
    do {
        taken = there < most ? there : most;
    } while (taken > 0 && !atomic_compare_exchange_weak_explicit(
                              set->surplus, &there, there - taken,
                              memory_order_relaxed, memory_order_relaxed));
    return taken;
}

void ccmr__pool_share_surplus(ccmr__pool_set *set)
{
    ptrdiff_t more = ccmr__pool_surplus_of(set) - CCMR__POOL_SURPLUS_KEPT;

    if (set->surplus != NULL && more > 0) {
        set->owed += more;
        atomic_fetch_add_explicit(set->surplus, (size_t)more,
                                  memory_order_relaxed);
    }
}

int ccmr__pool_grow_records(ccmr__pool_set *set, ptrdiff_t surplus,
                            size_t real)
{
    ptrdiff_t lack = surplus - ccmr__pool_surplus_of(set);

    if (lack > 0) {
        /* Some more, not to be here again soon. */
        size_t taken =
            take_surplus(set, (size_t)lack + CCMR__POOL_SURPLUS_KEPT / 2);

        set->owed -= (ptrdiff_t)taken;
        lack -= (ptrdiff_t)taken;
    }
    if (set->spare < real && lack < (ptrdiff_t)(real - set->spare)) {
        lack = (ptrdiff_t)(real - set->spare);
    }
    if (lack > 0 && add_slab(set, (size_t)lack) != 0) {
        return -1;
    }
    if (ccmr__pool_hash_is_small(set)) {
        grow_hashes(set);
    }
    return 0;
}

int ccmr__pool_reserve_records(ccmr__pool_set *set, size_t blocks)
{
    if (blocks > RECORDS_MOST) {
        return -1;
    }
    if (ccmr__pool_surplus_of(set) >= (ptrdiff_t)blocks &&
        set->spare >= blocks && !ccmr__pool_hash_is_small(set)) {
        return 0;
    }
    return ccmr__pool_grow_records(set, (ptrdiff_t)blocks, blocks);
}

void ccmr__pool_forget(ccmr__pool_set *set, size_t blocks)
{
    set->owed -= (ptrdiff_t)blocks;
    if (ccmr__pool_surplus_of(set) > CCMR__POOL_SURPLUS_MOST) {
        ccmr__pool_share_surplus(set);
    }
}

size_t ccmr__pool_give_records(ccmr__pool_set *set, size_t most,
                               ccmr__pool_extent **records)
{
    ccmr__pool_extent **last = &set->spares;
    size_t count = 0;

    while (count < most && *last != NULL) {
        last = &(*last)->next;
        count++;
    }
    *records = NULL;
    if (count > 0) {
        *records = set->spares;
        set->spares = *last;
        *last = NULL;
    }
    set->spare -= count;
    set->records -= count;
    set->owed -= (ptrdiff_t)count;
    return count;
}

void ccmr__pool_take_records(ccmr__pool_set *set, ccmr__pool_extent *records,
                             size_t count)
{
    size_t i;

    for (i = 0; i < count; i++) {
        ccmr__pool_extent *next = records->next;

        ccmr__pool_spare_record(set, records);
        records = next;
    }
    assert(records == NULL);
    set->records += count;
    set->owed += (ptrdiff_t)count;
}
