/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/pool_books.h"

#include <criterion/criterion.h>

#include <stddef.h>

host_memory host;
unsigned host_faults;

/* The linker leads the allocations of resources/pool here. */
void *__real_calloc(size_t count, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

static int refused(void)
{
    host_faults += host == HOST_FORBIDDEN;
    return host != HOST_PLENTY;
}

void *__wrap_calloc(size_t count, size_t size)
{
    return refused() ? NULL : __real_calloc(count, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return refused() ? NULL : __real_aligned_alloc(alignment, size);
}

static char lanes[64];
static char segments[64];

ccmr__pool_lane *lane_at(unsigned index)
{
    return (ccmr__pool_lane *)(void *)&lanes[index];
}

unsigned lane_index(const ccmr__pool_lane *lane)
{
    return (unsigned)((const char *)(const void *)lane - lanes);
}

ccmr__pool_segment *segment_at(unsigned index)
{
    return (ccmr__pool_segment *)(void *)&segments[index];
}

ccmr__pool_piece piece_of(uintptr_t address, size_t bytes, unsigned segment)
{
    return (ccmr__pool_piece){
        .address = address, .bytes = bytes, .segment = segment_at(segment)};
}

void bring_new(ccmr__pool_set *set, uintptr_t address, size_t bytes,
               unsigned segment)
{
    ccmr__pool_piece piece = piece_of(address, bytes, segment);

    cr_assert_eq(ccmr__pool_reserve_records(set, 1), 0);
    cr_assert_eq(ccmr__pool_insert(set, &piece, 0), 0);
}

void bring_back(ccmr__pool_set *set, const ccmr__pool_piece *piece)
{
    cr_assert_eq(ccmr__pool_insert(set, piece, 1), 0);
}

ccmr__pool_piece take(ccmr__pool_set *set, size_t bytes, size_t alignment)
{
    ccmr__pool_extent *extent =
        ccmr__pool_find(set, bytes, alignment, NULL, NULL);
    ccmr__pool_piece piece;

    cr_assert_not_null(extent, "nothing has %zu bytes", bytes);
    cr_assert_eq(ccmr__pool_carve(set, extent, bytes, alignment, 1, &piece),
                 0);
    return piece;
}

int is_sound(const ccmr__pool_set *set)
{
    host_memory before = host;
    int sound;

    host = HOST_PLENTY;
    sound = ccmr__pool_set_audit(set);
    host = before;
    return sound;
}
