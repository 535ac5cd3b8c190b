/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of extents: do the books agree? Everything is counted, and no list is
 * followed for longer than it may be, so that a ring ends as well.
 */
#include <stdlib.h>

#include "resources/pool/set.h"

static int waits_are_sound(const ccmr__pool_waits *waits)
{
    unsigned i;
    unsigned j;

    if (waits->count > CCMR__POOL_WAITS) {
        return 0;
    }
    for (i = 0; i < waits->count; i++) {
        for (j = 0; j < i; j++) {
            if (waits->lanes[i] == waits->lanes[j]) {
                return 0;
            }
        }
        if (waits->lanes[i] == NULL) {
            return 0;
        }
    }
    return 1;
}

static int extent_is_sound(const ccmr__pool_set *set, unsigned index,
                           const ccmr__pool_extent *extent)
{
    return extent->address != 0 && extent->bytes >= CCMR__POOL_GRANULE &&
           extent->bytes <= UINTPTR_MAX - extent->address &&
           ccmr__pool_bin_of(extent->bytes) == index &&
           waits_are_sound(&extent->waits) &&
           ccmr__pool_starting_at(set, extent->address) == extent &&
           ccmr__pool_ending_at(set, ccmr__pool_end_of(extent)) == extent;
}

/* Adds what is in a bin to the counts. */
static int bin_is_sound(const ccmr__pool_set *set, unsigned index,
                        size_t *extents, size_t *bytes)
{
    unsigned power = index / CCMR__POOL_STEPS;
    unsigned step = index % CCMR__POOL_STEPS;
    const ccmr__pool_extent *extent = set->bins[power][step];
    const ccmr__pool_extent *previous = NULL;

    if ((extent != NULL) != ((set->steps[power] >> step) & 1)) {
        return 0;
    }
    for (; extent != NULL; extent = extent->next) {
        if (++*extents > set->extents || extent->previous != previous ||
            !extent_is_sound(set, index, extent)) {
            return 0;
        }
        *bytes += extent->bytes;
        previous = extent;
    }
    return 1;
}

static int bins_are_sound(const ccmr__pool_set *set)
{
    size_t extents = 0;
    size_t bytes = 0;
    unsigned power;
    unsigned index;

    for (power = 0; power < CCMR__POOL_POWERS; power++) {
        if ((set->steps[power] != 0) != ((set->powers >> power) & 1)) {
            return 0;
        }
    }
    for (index = 0; index < CCMR__POOL_BINS; index++) {
        if (!bin_is_sound(set, index, &extents, &bytes)) {
            return 0;
        }
    }
    return extents == set->extents && bytes == set->bytes &&
           set->powers >> CCMR__POOL_POWERS == 0;
}

/* Every extent of a bin is in them: there must be no more. Lookups have no
 * bound, so that this comes before the bins. */
static int hashes_are_sound(const ccmr__pool_set *set)
{
    size_t starts = 0;
    size_t ends = 0;
    size_t i;

    for (i = 0; i < set->buckets; i++) {
        const ccmr__pool_extent *extent;

        for (extent = set->starts[i]; extent != NULL;
             extent = extent->by_start) {
            if (++starts > set->extents) {
                return 0;
            }
        }
        for (extent = set->ends[i]; extent != NULL; extent = extent->by_end) {
            if (++ends > set->extents) {
                return 0;
            }
        }
    }
    return starts == set->extents && ends == set->extents;
}

static int records_are_sound(const ccmr__pool_set *set)
{
    const ccmr__pool_extent *record = set->spares;
    size_t spare = 0;

    for (; record != NULL; record = record->next) {
        if (++spare > set->spare) {
            return 0;
        }
    }
    return spare == set->spare && ccmr__pool_surplus_of(set) >= 0 &&
           set->records == set->spare + set->extents;
}

static int compare(const void *left, const void *right)
{
    const ccmr__pool_extent *a = *(ccmr__pool_extent *const *)left;
    const ccmr__pool_extent *b = *(ccmr__pool_extent *const *)right;

    return (a->address > b->address) - (a->address < b->address);
}

/* Not found out without host memory. */
static int are_apart(const ccmr__pool_set *set)
{
    const ccmr__pool_extent **sorted =
        calloc(set->extents + 1, sizeof(*sorted));
    const ccmr__pool_extent *extent = ccmr__pool_first(set);
    size_t count = 0;
    size_t i;

    if (sorted == NULL) {
        return 1;
    }
    for (; extent != NULL; extent = ccmr__pool_next(set, extent)) {
        sorted[count++] = extent;
    }
    qsort(sorted, count, sizeof(*sorted), compare);
    for (i = 1; i < count; i++) {
        if (ccmr__pool_end_of(sorted[i - 1]) > sorted[i]->address) {
            break;
        }
    }
    free(sorted);
    return i >= count;
}

int ccmr__pool_set_audit(const ccmr__pool_set *set)
{
    return hashes_are_sound(set) && bins_are_sound(set) &&
           records_are_sound(set) && are_apart(set);
}
