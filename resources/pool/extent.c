/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of extents: find, carve, insert, remove.
 */
#include <assert.h>

#include "resources/pool/set.h"

/* ---- bins --------------------------------------------------------------------- */

/* The better one of the new and the first stands first: a search looks at the
 * beginning of a long bin only. */
static inline void bin_add(ccmr__pool_set *set, ccmr__pool_extent *extent,
                           unsigned index)
{
    ccmr__pool_extent **link = ccmr__pool_bin_at(set, index);
    ccmr__pool_extent *first = *link;

    extent->previous = NULL;
    if (first == NULL) {
        unsigned power = index / CCMR__POOL_STEPS;

        set->steps[power] |= UINT32_C(1) << (index % CCMR__POOL_STEPS);
        set->powers |= UINT64_C(1) << power;
    } else if (first->bytes < extent->bytes ||
               (first->bytes == extent->bytes &&
                first->address < extent->address)) {
        extent->previous = first;
        link = &first->next;
        first = *link;
    }
    extent->next = first;
    if (first != NULL) {
        first->previous = extent;
    }
    *link = extent;
}

static inline void bin_drop(ccmr__pool_set *set,
                            const ccmr__pool_extent *extent, unsigned index)
{
    ccmr__pool_extent *next = extent->next;

    if (next != NULL) {
        next->previous = extent->previous;
    }
    if (extent->previous != NULL) {
        extent->previous->next = next;
    } else {
        *ccmr__pool_bin_at(set, index) = next;
        if (next == NULL) {
            unsigned power = index / CCMR__POOL_STEPS;

            set->steps[power] &= ~(UINT32_C(1) << (index % CCMR__POOL_STEPS));
            if (set->steps[power] == 0) {
                set->powers &= ~(UINT64_C(1) << power);
            }
        }
    }
}

/* Its size changes. It keeps its place where its bin stays the same. */
static inline void resize(ccmr__pool_set *set, ccmr__pool_extent *extent,
                          size_t bytes)
{
    unsigned from = ccmr__pool_bin_of(extent->bytes);
    unsigned to = ccmr__pool_bin_of(bytes);

    if (from == to) {
        extent->bytes = bytes;
        return;
    }
    bin_drop(set, extent, from);
    extent->bytes = bytes;
    bin_add(set, extent, to);
}

/* ---- hashes ------------------------------------------------------------------- */

/* Lookups give the pointer that leads to the extent, so that it can be taken
 * out without another search; it points to NULL where there is none. */
static inline ccmr__pool_extent **start_link(const ccmr__pool_set *set,
                                             uintptr_t address)
{
    ccmr__pool_extent **link =
        &set->starts[ccmr__pool_bucket_of(set->buckets, address)];

    while (*link != NULL && (*link)->address != address) {
        link = &(*link)->by_start;
    }
    return link;
}

static inline ccmr__pool_extent **end_link(const ccmr__pool_set *set,
                                           uintptr_t address)
{
    ccmr__pool_extent **link =
        &set->ends[ccmr__pool_bucket_of(set->buckets, address)];

    while (*link != NULL && ccmr__pool_end_of(*link) != address) {
        link = &(*link)->by_end;
    }
    return link;
}

static inline void start_add(ccmr__pool_set *set, ccmr__pool_extent *extent)
{
    ccmr__pool_extent **head =
        &set->starts[ccmr__pool_bucket_of(set->buckets, extent->address)];

    extent->by_start = *head;
    *head = extent;
}

static inline void end_add(ccmr__pool_set *set, ccmr__pool_extent *extent)
{
    ccmr__pool_extent **head = &set->ends[ccmr__pool_bucket_of(
        set->buckets, ccmr__pool_end_of(extent))];

    extent->by_end = *head;
    *head = extent;
}

static inline void start_drop(ccmr__pool_set *set, ccmr__pool_extent *extent)
{
    ccmr__pool_extent **link = start_link(set, extent->address);

    assert(*link == extent);
    *link = extent->by_start;
}

static inline void end_drop(ccmr__pool_set *set, ccmr__pool_extent *extent)
{
    ccmr__pool_extent **link = end_link(set, ccmr__pool_end_of(extent));

    assert(*link == extent);
    *link = extent->by_end;
}

ccmr__pool_extent *ccmr__pool_ending_at(const ccmr__pool_set *set,
                                        uintptr_t address)
{
    return *end_link(set, address);
}

ccmr__pool_extent *ccmr__pool_starting_at(const ccmr__pool_set *set,
                                          uintptr_t address)
{
    return *start_link(set, address);
}

/* ---- find ----------------------------------------------------------------------- */

/* Of one bin; of all bins. */
#define LOOK_BIN 16u
#define LOOK_MOST 64u

typedef struct search {
    size_t bytes;
    uintptr_t mask; /* alignment - 1 */
    ccmr__pool_accept accept;
    void *argument;
} search;

static inline int fits(const search *want, const ccmr__pool_extent *extent)
{
    return extent->bytes >= want->bytes &&
           extent->bytes - want->bytes >= (-extent->address & want->mask);
}

static inline int is_better(const ccmr__pool_extent *extent,
                            const ccmr__pool_extent *best)
{
    return best == NULL || extent->bytes < best->bytes ||
           (extent->bytes == best->bytes && extent->address < best->address);
}

/* The best of the next few of a bin. */
static inline ccmr__pool_extent *look(const search *want,
                                      ccmr__pool_extent **next,
                                      unsigned *looked)
{
    ccmr__pool_extent *extent = *next;
    ccmr__pool_extent *best = NULL;
    unsigned i;

    for (i = 0; i < LOOK_BIN && extent != NULL; i++) {
        if (fits(want, extent) && is_better(extent, best) &&
            (want->accept == NULL || want->accept(want->argument, extent))) {
            best = extent;
        }
        extent = extent->next;
    }
    *looked += i;
    *next = extent;
    return best;
}

/* Many were looked at, too small for the alignment or not acceptable. If any
 * is, a large one is the most likely. */
static ccmr__pool_extent *__attribute__((cold, noinline))
look_at_largest(ccmr__pool_set *set, const search *want)
{
    unsigned power = 63u - (unsigned)__builtin_clzll(set->powers);
    unsigned step = 31u - (unsigned)__builtin_clz(set->steps[power]);
    ccmr__pool_extent *extent = set->bins[power][step];
    unsigned looked = 0;

    return look(want, &extent, &looked);
}

ccmr__pool_extent *ccmr__pool_find(ccmr__pool_set *set, size_t bytes,
                                   size_t alignment, ccmr__pool_accept accept,
                                   void *argument)
{
    const search want = {bytes, alignment - 1, accept, argument};
    unsigned index = ccmr__pool_bin_from(set, ccmr__pool_bin_of(bytes));
    unsigned looked = 0;

    assert(bytes >= CCMR__POOL_GRANULE);
    assert(alignment != 0 && (alignment & (alignment - 1)) == 0);
    while (index < CCMR__POOL_BINS) {
        ccmr__pool_extent *extent = *ccmr__pool_bin_at(set, index);
        unsigned before = looked;

        /* A second helping where the first had nothing. */
        do {
            ccmr__pool_extent *found = look(&want, &extent, &looked);

            if (found != NULL) {
                return found;
            }
        } while (extent != NULL && looked == before + LOOK_BIN);
        if (looked >= LOOK_MOST) {
            return look_at_largest(set, &want);
        }
        index = ccmr__pool_bin_from(set, index + 1);
    }
    return NULL;
}

/* ---- waits ------------------------------------------------------------------------ */

static void __attribute__((noinline))
copy_more_waits(ccmr__pool_waits *to, const ccmr__pool_waits *from)
{
    unsigned i;

    for (i = 1; i < from->count; i++) {
        to->lanes[i] = from->lanes[i];
        to->numbers[i] = from->numbers[i];
    }
}

/* Most wait for one lane or none; all four would be two lines of the cache. */
static inline void copy_waits(ccmr__pool_waits *to,
                              const ccmr__pool_waits *from)
{
    to->count = from->count;
    if (from->count > 0) {
        to->lanes[0] = from->lanes[0];
        to->numbers[0] = from->numbers[0];
        if (__builtin_expect(from->count > 1, 0)) {
            copy_more_waits(to, from);
        }
    }
}

/* ccmr__pool_waits_join(), with the usual cases first. */
static inline int join_waits(ccmr__pool_waits *waits,
                             const ccmr__pool_waits *more)
{
    if (more->count == 0) {
        return 1;
    }
    if (waits->count == 1 && more->count == 1 &&
        waits->lanes[0] == more->lanes[0]) {
        if (waits->numbers[0] < more->numbers[0]) {
            waits->numbers[0] = more->numbers[0];
        }
        return 1;
    }
    return ccmr__pool_waits_join(waits, more);
}

/* ---- carve, remove ---------------------------------------------------------------- */

static void drop(ccmr__pool_set *set, ccmr__pool_extent *extent)
{
    bin_drop(set, extent, ccmr__pool_bin_of(extent->bytes));
    start_drop(set, extent);
    end_drop(set, extent);
    set->extents--;
    ccmr__pool_spare_record(set, extent);
}

static void add(ccmr__pool_set *set, uintptr_t address, size_t bytes,
                ccmr__pool_segment *segment, const ccmr__pool_waits *waits)
{
    ccmr__pool_extent *extent = ccmr__pool_use_record(set);

    extent->address = address;
    extent->bytes = bytes;
    extent->segment = segment;
    copy_waits(&extent->waits, waits);
    bin_add(set, extent, ccmr__pool_bin_of(bytes));
    start_add(set, extent);
    end_add(set, extent);
    set->extents++;
}

/* What is left of an extent: `front` bytes before the block, `back` after. */
static inline void keep_rest(ccmr__pool_set *set, ccmr__pool_extent *extent,
                             size_t front, size_t back)
{
    if (front == 0) {
        /* The usual case: its end stays. */
        start_drop(set, extent);
        extent->address += extent->bytes - back;
        start_add(set, extent);
        resize(set, extent, back);
        return;
    }
    end_drop(set, extent);
    if (back != 0) {
        add(set, ccmr__pool_end_of(extent) - back, back, extent->segment,
            &extent->waits);
    }
    resize(set, extent, front);
    end_add(set, extent);
}

int ccmr__pool_carve(ccmr__pool_set *set, ccmr__pool_extent *extent,
                     size_t bytes, size_t alignment, size_t blocks,
                     ccmr__pool_piece *piece)
{
    size_t front = -extent->address & (alignment - 1);
    size_t back = extent->bytes - front - bytes;
    size_t rests = (size_t)(front != 0) + (back != 0);
    /* Without rests its own record becomes spare. */
    ptrdiff_t surplus = (ptrdiff_t)(blocks + rests) - 1;

    assert(front < extent->bytes && bytes <= extent->bytes - front);
    if (__builtin_expect(ccmr__pool_surplus_of(set) < surplus ||
                             set->spare + 1 < rests ||
                             ccmr__pool_hash_is_small(set),
                         0) &&
        ccmr__pool_grow_records(set, surplus, rests == 2 ? 1 : 0) != 0) {
        return -1;
    }
    piece->address = extent->address + front;
    piece->bytes = bytes;
    piece->segment = extent->segment;
    copy_waits(&piece->waits, &extent->waits);
    set->bytes -= bytes;
    set->out_bytes += (ptrdiff_t)bytes;
    set->owed += (ptrdiff_t)blocks;
    if (rests == 0) {
        drop(set, extent);
    } else {
        keep_rest(set, extent, front, back);
    }
    return 0;
}

void ccmr__pool_remove(ccmr__pool_set *set, ccmr__pool_extent *extent,
                       ccmr__pool_piece *piece)
{
    piece->address = extent->address;
    piece->bytes = extent->bytes;
    piece->segment = extent->segment;
    copy_waits(&piece->waits, &extent->waits);
    set->bytes -= extent->bytes;
    set->out_bytes += (ptrdiff_t)extent->bytes;
    set->owed++;
    drop(set, extent);
}

/* ---- insert ----------------------------------------------------------------------- */

/* Of the same segment, and what it waits for fits in: then `waits` has it. */
static inline int merges(const ccmr__pool_extent *extent,
                         const ccmr__pool_segment *segment,
                         ccmr__pool_waits *waits)
{
    return extent != NULL && extent->segment == segment &&
           join_waits(waits, &extent->waits);
}

/* Between two that become one: the record of the first stays. */
static void bridge(ccmr__pool_set *set, ccmr__pool_extent *before,
                   ccmr__pool_extent **before_link, ccmr__pool_extent *after,
                   size_t bytes)
{
    ccmr__pool_extent **link;

    *before_link = before->by_end;
    bin_drop(set, after, ccmr__pool_bin_of(after->bytes));
    start_drop(set, after);
    /* The same end: it takes the other's place in the chain. */
    link = end_link(set, ccmr__pool_end_of(after));
    assert(*link == after);
    before->by_end = after->by_end;
    *link = before;
    set->extents--;
    resize(set, before, before->bytes + bytes + after->bytes);
    ccmr__pool_spare_record(set, after);
}

static inline void extend_up(ccmr__pool_set *set, ccmr__pool_extent *before,
                             ccmr__pool_extent **before_link, size_t bytes)
{
    *before_link = before->by_end;
    resize(set, before, before->bytes + bytes);
    end_add(set, before);
}

static inline void extend_down(ccmr__pool_set *set, ccmr__pool_extent *after,
                               ccmr__pool_extent **after_link, size_t bytes)
{
    *after_link = after->by_start;
    after->address -= bytes;
    start_add(set, after);
    resize(set, after, after->bytes + bytes);
}

int ccmr__pool_insert(ccmr__pool_set *set, const ccmr__pool_piece *piece,
                      size_t blocks)
{
    ccmr__pool_extent **before_link = end_link(set, piece->address);
    ccmr__pool_extent **after_link =
        start_link(set, piece->address + piece->bytes);
    ccmr__pool_extent *before = *before_link;
    ccmr__pool_extent *after = *after_link;
    ccmr__pool_waits waits;
    int down;

    assert(piece->address != 0 && piece->bytes >= CCMR__POOL_GRANULE);
    copy_waits(&waits, &piece->waits);
    down = merges(before, piece->segment, &waits);
    if (merges(after, piece->segment, &waits)) {
        if (down) {
            bridge(set, before, before_link, after, piece->bytes);
        } else {
            extend_down(set, after, after_link, piece->bytes);
        }
        copy_waits(down ? &before->waits : &after->waits, &waits);
    } else if (down) {
        extend_up(set, before, before_link, piece->bytes);
        copy_waits(&before->waits, &waits);
    } else {
        /* New memory comes with a record, see ccmr__pool_reserve_records(). */
        assert(blocks > 0 || ccmr__pool_surplus_of(set) > 0);
        if (set->spare == 0) {
            return -1;
        }
        add(set, piece->address, piece->bytes, piece->segment, &waits);
    }
    set->bytes += piece->bytes;
    set->owed -= (ptrdiff_t)blocks;
    if (blocks > 0) {
        set->out_bytes -= (ptrdiff_t)piece->bytes;
    }
    if (__builtin_expect(ccmr__pool_surplus_of(set) > CCMR__POOL_SURPLUS_MOST,
                         0) &&
        set->surplus != NULL) {
        ccmr__pool_share_surplus(set);
    }
    return 0;
}

/* ---- all -------------------------------------------------------------------------- */

static ccmr__pool_extent *first_from(const ccmr__pool_set *set, unsigned index)
{
    index = ccmr__pool_bin_from(set, index);
    return index < CCMR__POOL_BINS
               ? set->bins[index / CCMR__POOL_STEPS][index % CCMR__POOL_STEPS]
               : NULL;
}

ccmr__pool_extent *ccmr__pool_first(const ccmr__pool_set *set)
{
    return first_from(set, 0);
}

ccmr__pool_extent *ccmr__pool_next(const ccmr__pool_set *set,
                                   const ccmr__pool_extent *extent)
{
    return extent->next != NULL
               ? extent->next
               : first_from(set, ccmr__pool_bin_of(extent->bytes) + 1);
}

size_t ccmr__pool_largest(const ccmr__pool_set *set)
{
    const ccmr__pool_extent *extent;
    size_t largest = 0;
    unsigned power;

    if (set->powers == 0) {
        return 0;
    }
    power = 63u - (unsigned)__builtin_clzll(set->powers);
    extent = set->bins[power][31 - __builtin_clz(set->steps[power])];
    for (; extent != NULL; extent = extent->next) {
        largest = extent->bytes > largest ? extent->bytes : largest;
    }
    return largest;
}
