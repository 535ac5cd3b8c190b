/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two sets of extents against a model that is slow and plain: a list of
 * extents that is searched from end to end, and a map of all granules. After
 * each step the sets must have the same extents as the model, waits included.
 */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "tests/unit/pool_books.h"

#define BASE ((uintptr_t)1 << 32)
#define SEGMENTS 3u
#define SEGMENT_GRANULES 1024u /* they follow each other */
#define GRANULES (SEGMENTS * SEGMENT_GRANULES)
#define LANES 6u
#define STEPS 30000u

/* What is waited for, a number for each lane; 0: not. */
typedef struct needs {
    uint64_t numbers[LANES];
} needs;

typedef struct model_extent {
    uintptr_t address;
    size_t bytes;
    ccmr__pool_segment *segment;
    needs needs;
} model_extent;

typedef struct model {
    ccmr__pool_set set;
    model_extent extents[GRANULES];
    size_t count;
} model;

typedef struct outside {
    ccmr__pool_piece piece;
    size_t blocks; /* 0: the upstream has it */
} outside;

static model models[2];
static unsigned char map[GRANULES]; /* 1 + index of the set; 0: outside */
static outside out[GRANULES];
static size_t out_count;
static size_t owed; /* pieces outside */
static _Atomic size_t surplus;
static uint64_t state;
static uint64_t clock_now;

static unsigned random_below(unsigned bound)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)((state >> 20) % bound);
}

/* ---- the model --------------------------------------------------------------- */

static needs needs_of(const ccmr__pool_waits *waits)
{
    needs all = {{0}};
    unsigned i;

    for (i = 0; i < waits->count; i++) {
        all.numbers[lane_index(waits->lanes[i])] = waits->numbers[i];
    }
    return all;
}

/* Both, if that is not too many. */
static int unite(needs *to, const needs *more)
{
    needs both = *to;
    unsigned count = 0;
    unsigned i;

    for (i = 0; i < LANES; i++) {
        if (both.numbers[i] < more->numbers[i]) {
            both.numbers[i] = more->numbers[i];
        }
        count += both.numbers[i] != 0;
    }
    if (count > CCMR__POOL_WAITS) {
        return 0;
    }
    *to = both;
    return 1;
}

static void model_drop(model *m, size_t index)
{
    m->extents[index] = m->extents[--m->count];
}

/* Returns how many neighbours it merged with. */
static unsigned model_insert(model *m, const ccmr__pool_piece *piece)
{
    model_extent made = {piece->address, piece->bytes, piece->segment,
                         needs_of(&piece->waits)};
    unsigned merged = 0;
    size_t i;

    for (i = 0; i < m->count; i++) {
        if (m->extents[i].address + m->extents[i].bytes == made.address &&
            m->extents[i].segment == made.segment &&
            unite(&made.needs, &m->extents[i].needs)) {
            made.address = m->extents[i].address;
            made.bytes += m->extents[i].bytes;
            model_drop(m, i);
            merged++;
            break;
        }
    }
    for (i = 0; i < m->count; i++) {
        if (made.address + made.bytes == m->extents[i].address &&
            m->extents[i].segment == made.segment &&
            unite(&made.needs, &m->extents[i].needs)) {
            made.bytes += m->extents[i].bytes;
            model_drop(m, i);
            merged++;
            break;
        }
    }
    m->extents[m->count++] = made;
    return merged;
}

static size_t model_find(const model *m, uintptr_t address)
{
    size_t i = 0;

    while (i < m->count && m->extents[i].address != address) {
        i++;
    }
    cr_assert_lt(i, m->count, "no extent at %zx", (size_t)address);
    return i;
}

static void model_carve(model *m, const ccmr__pool_piece *piece,
                        uintptr_t extent)
{
    size_t index = model_find(m, extent);
    model_extent whole = m->extents[index];
    uintptr_t end = piece->address + piece->bytes;
    model_extent rest = whole;

    model_drop(m, index);
    rest.bytes = piece->address - whole.address;
    if (rest.bytes > 0) {
        m->extents[m->count++] = rest;
    }
    rest.address = end;
    rest.bytes = whole.address + whole.bytes - end;
    if (rest.bytes > 0) {
        m->extents[m->count++] = rest;
    }
}

static void paint(const ccmr__pool_piece *piece, unsigned from, unsigned to)
{
    size_t first = (piece->address - BASE) / G;
    size_t i;

    for (i = 0; i < piece->bytes / G; i++) {
        cr_assert_eq(map[first + i], from, "granule %zu is %u's", first + i,
                     map[first + i]);
        map[first + i] = (unsigned char)to;
    }
}

/* ---- comparing ----------------------------------------------------------------- */

static void compare(const model *m)
{
    unsigned color = 1 + (unsigned)(m - models);
    size_t granules = 0;
    size_t painted = 0;
    size_t i;

    cr_assert_eq(m->set.extents, m->count);
    for (i = 0; i < m->count; i++) {
        const model_extent *want = &m->extents[i];
        const ccmr__pool_extent *got =
            ccmr__pool_starting_at(&m->set, want->address);
        needs got_needs;
        size_t g;

        cr_assert_not_null(got);
        cr_assert_eq(
            got, ccmr__pool_ending_at(&m->set, want->address + want->bytes));
        cr_assert_eq(got->bytes, want->bytes);
        cr_assert_eq(got->segment, want->segment);
        got_needs = needs_of(&got->waits);
        cr_assert_eq(memcmp(&got_needs, &want->needs, sizeof(got_needs)), 0);
        for (g = 0; g < want->bytes / G; g++) {
            cr_assert_eq(map[(want->address - BASE) / G + g], color);
        }
        granules += want->bytes / G;
    }
    for (i = 0; i < GRANULES; i++) {
        painted += map[i] == color;
    }
    cr_assert_eq(granules, painted);
    cr_assert_eq(m->set.bytes, granules * G);
    cr_assert(is_sound(&m->set));
}

/* Bytes that are out, new memory apart. */
static void check_bytes(void)
{
    ptrdiff_t bytes = models[0].set.out_bytes + models[1].set.out_bytes;
    size_t i;

    for (i = 0; i < out_count; i++) {
        bytes -= out[i].blocks > 0 ? (ptrdiff_t)out[i].piece.bytes : 0;
    }
    cr_assert_eq(bytes, 0);
}

static void check_records(void)
{
    ptrdiff_t sum = 0;
    unsigned i;

    for (i = 0; i < 2; i++) {
        cr_assert_geq((ptrdiff_t)models[i].set.spare, models[i].set.owed);
        cr_assert_eq(models[i].set.records,
                     models[i].set.spare + models[i].set.extents);
        sum += models[i].set.owed;
    }
    cr_assert_eq(sum, (ptrdiff_t)(owed + surplus));
    cr_assert_eq(host_faults, 0);
}

/* ---- steps ----------------------------------------------------------------------- */

static int accept_odd(void *argument, const ccmr__pool_extent *extent)
{
    (void)argument;
    return (extent->address / G) % 2;
}

static int may_serve(const model_extent *extent, size_t bytes,
                     size_t alignment, ccmr__pool_accept accept)
{
    uintptr_t first =
        (extent->address + alignment - 1) / alignment * alignment;

    return first + bytes <= extent->address + extent->bytes &&
           (accept == NULL || (extent->address / G) % 2);
}

/* The best of all, and how many a search meets before it has seen its bin. */
static const model_extent *model_best(const model *m, size_t bytes,
                                      size_t alignment,
                                      ccmr__pool_accept accept, size_t *met)
{
    const model_extent *best = NULL;
    size_t i;

    for (i = 0; i < m->count; i++) {
        const model_extent *extent = &m->extents[i];

        if (may_serve(extent, bytes, alignment, accept) &&
            (best == NULL || extent->bytes < best->bytes ||
             (extent->bytes == best->bytes &&
              extent->address < best->address))) {
            best = extent;
        }
    }
    *met = 0;
    for (i = 0; best != NULL && i < m->count; i++) {
        unsigned bin = ccmr__pool_bin_of(m->extents[i].bytes);

        *met += bin >= ccmr__pool_bin_of(bytes) &&
                bin <= ccmr__pool_bin_of(best->bytes);
    }
    return best;
}

static ccmr__pool_extent *find(model *m, size_t bytes, size_t alignment,
                               ccmr__pool_accept accept)
{
    ccmr__pool_extent *found =
        ccmr__pool_find(&m->set, bytes, alignment, accept, NULL);
    size_t met;
    const model_extent *best = model_best(m, bytes, alignment, accept, &met);

    if (best == NULL) {
        cr_assert_null(found);
    } else if (met <= 16) {
        cr_assert_not_null(found);
        cr_assert_eq(found->address, best->address);
    } else if (found != NULL) {
        cr_assert(may_serve(&m->extents[model_find(m, found->address)], bytes,
                            alignment, accept));
    } else {
        cr_assert(met > 32 || accept != NULL || alignment > G);
    }
    return found;
}

static void step_carve(model *m)
{
    size_t blocks = random_below(4) == 0 ? 1 + random_below(5) : 1;
    size_t unit = 1 + random_below(random_below(20) == 0 ? 400 : 12);
    size_t alignment = G << (random_below(3) == 0 ? random_below(8) : 0);
    ccmr__pool_accept accept = random_below(4) == 0 ? accept_odd : NULL;
    ccmr__pool_extent *extent = find(m, blocks * unit * G, alignment, accept);
    outside *taken = &out[out_count];
    needs before;
    needs after;
    uintptr_t address;

    if (extent == NULL) {
        return;
    }
    address = extent->address;
    before = needs_of(&extent->waits);
    cr_assert_eq(ccmr__pool_carve(&m->set, extent, blocks * unit * G,
                                  alignment, blocks, &taken->piece),
                 0);
    taken->blocks = blocks;
    after = needs_of(&taken->piece.waits);
    cr_assert_eq(memcmp(&before, &after, sizeof(before)), 0);
    cr_assert_eq(taken->piece.address % alignment, 0);
    model_carve(m, &taken->piece, address);
    paint(&taken->piece, 1 + (unsigned)(m - models), 0);
    out_count++;
    owed += blocks;
}

/* Fetch records where there are none, as whoever brings a block does. */
static void bring(model *m, const ccmr__pool_piece *piece, size_t blocks)
{
    unsigned color = 1 + (unsigned)(m - models);
    size_t extents = m->set.extents;
    unsigned merged;

    host = HOST_FORBIDDEN;
    while (ccmr__pool_insert(&m->set, piece, blocks) != 0) {
        model *other = &models[m == models];
        ccmr__pool_extent *records;
        size_t count;

        cr_assert_eq(m->set.spare, 0);
        cr_assert_eq(m->set.extents, extents);
        compare(m);
        count = ccmr__pool_give_records(&other->set, other->set.spare / 2 + 1,
                                        &records);
        cr_assert_gt(count, 0, "there is no record for it anywhere");
        ccmr__pool_take_records(&m->set, records, count);
    }
    host = HOST_PLENTY;
    merged = model_insert(m, piece);
    cr_assert_eq(m->set.extents, extents + 1 - merged);
    paint(piece, 0, color);
    owed -= blocks;
}

static void add_needs(ccmr__pool_waits *waits)
{
    unsigned count = random_below(3);

    if (random_below(2) == 0) {
        waits->count = 0;
    }
    while (count-- > 0) {
        /* Some are older than what is waited for already. */
        clock_now++;
        (void)ccmr__pool_waits_add(waits, lane_at(random_below(LANES)),
                                   clock_now + 50 - random_below(50));
    }
}

static void step_free(model *m)
{
    size_t index;
    ccmr__pool_piece piece;
    size_t blocks;

    if (out_count == 0) {
        return;
    }
    index = random_below((unsigned)out_count);
    piece = out[index].piece;
    blocks = out[index].blocks;
    if (blocks > 1 && random_below(2) == 0) {
        /* The last block of a run alone. */
        piece.bytes = out[index].piece.bytes / blocks;
        out[index].piece.bytes -= piece.bytes;
        piece.address += out[index].piece.bytes;
        out[index].blocks--;
        blocks = 1;
    } else {
        out[index] = out[--out_count];
    }
    if (blocks == 0) {
        cr_assert_eq(ccmr__pool_reserve_records(&m->set, 1), 0);
    }
    add_needs(&piece.waits);
    bring(m, &piece, blocks);
}

/* To the other set, or to the upstream. */
static void step_remove(model *m)
{
    model *other = &models[m == models];
    ccmr__pool_piece piece;
    size_t index;

    if (m->count == 0) {
        return;
    }
    index = random_below((unsigned)m->count);
    host = HOST_FORBIDDEN;
    ccmr__pool_remove(
        &m->set, ccmr__pool_starting_at(&m->set, m->extents[index].address),
        &piece);
    cr_assert_eq(piece.bytes, m->extents[index].bytes);
    model_drop(m, index);
    paint(&piece, 1 + (unsigned)(m - models), 0);
    owed++;
    if (random_below(4) > 0) {
        bring(other, &piece, 1);
    } else {
        ccmr__pool_forget(&other->set, 1);
        other->set.out_bytes -= (ptrdiff_t)piece.bytes;
        owed--;
        out[out_count++] = (outside){piece, 0};
    }
    host = HOST_PLENTY;
}

static void step_records(model *m)
{
    model *other = &models[m == models];
    ccmr__pool_extent *records;
    size_t count;

    if (random_below(2) == 0) {
        count = random_below(20);
        cr_assert_eq(ccmr__pool_reserve_records(&m->set, count), 0);
        cr_assert_geq((ptrdiff_t)m->set.spare - m->set.owed, (ptrdiff_t)count);
        cr_assert_geq(m->set.spare, count);
        return;
    }
    host = HOST_FORBIDDEN;
    count = ccmr__pool_give_records(&m->set, random_below(60), &records);
    ccmr__pool_take_records(&other->set, records, count);
    host = HOST_PLENTY;
}

static void begin(uint64_t seed)
{
    unsigned i;

    memset(models, 0, sizeof(models));
    memset(map, 0, sizeof(map));
    host = HOST_PLENTY;
    host_faults = 0;
    out_count = 0;
    owed = 0;
    surplus = 0;
    clock_now = 0;
    state = seed * UINT64_C(0x9E3779B97F4A7C15);
    for (i = 0; i < 2; i++) {
        cr_assert_eq(ccmr__pool_set_init(&models[i].set), 0);
        models[i].set.surplus = seed % 2 != 0 ? &surplus : NULL;
    }
    for (i = 0; i < SEGMENTS; i++) {
        out[out_count++] =
            (outside){piece_of(BASE + (uintptr_t)i * SEGMENT_GRANULES * G,
                               SEGMENT_GRANULES * G, i),
                      0};
    }
}

static void run(uint64_t seed)
{
    unsigned i;

    begin(seed);
    for (i = 0; i < STEPS; i++) {
        /* Full and empty in turns. */
        unsigned bias = i / 1000 % 2 == 0 ? 30 : 60;
        unsigned what = random_below(100);
        model *m = &models[random_below(2)];

        if (what < bias) {
            step_carve(m);
        } else if (what < 92) {
            step_free(m);
        } else if (what < 96) {
            step_remove(m);
        } else {
            step_records(m);
        }
        check_records();
        if (i % 16 == 0) {
            compare(&models[0]);
            compare(&models[1]);
            check_bytes();
        }
    }
    while (out_count > 0) {
        step_free(&models[random_below(2)]);
    }
    check_records();
    compare(&models[0]);
    compare(&models[1]);
    cr_expect_eq(owed, 0);
    cr_expect_eq(models[0].set.bytes + models[1].set.bytes, GRANULES * G);
    ccmr__pool_set_destroy(&models[0].set);
    ccmr__pool_set_destroy(&models[1].set);
}

/* Odd seeds share their surplus. */
Test(extent_random, seed_1)
{
    run(1);
}

Test(extent_random, seed_2)
{
    run(2);
}

Test(extent_random, seed_3)
{
    run(3);
}

Test(extent_random, seed_4)
{
    run(4);
}

Test(extent_random, seeds_of_many)
{
    uint64_t seed;

    for (seed = 5; seed < 11; seed++) {
        run(seed);
    }
}
