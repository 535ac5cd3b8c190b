/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The range of a pool: its table of pages, its beginning and end.
 */
#include "resources/pool/range.h"

#include <assert.h>
#include <stdlib.h>

#include "lib/error.h"
#include "lib/resource_object.h"
#include "resources/pool/set.h"

/* Addresses cost nothing, and what is left of them between blocks is lost for
 * large ones only where there are few. */
#define TIMES_THE_DEVICE 32u
#define LARGEST_HANDLE ((size_t)64 << 20)

/* ---- the table ---------------------------------------------------------------- */

static void set_run(ccmr__pool_range *range, uint32_t page, uint32_t pages,
                    ccmr__pool_run_kind kind)
{
    assert(pages > 0);
    range->runs[page].kind = kind;
    range->runs[page].pages = pages;
    range->runs[page + pages - 1].back = pages;
}

static void list_hole(ccmr__pool_range *range, uint32_t page)
{
    uint32_t next = range->holes;

    range->runs[page].previous = CCMR__POOL_NO_PAGE;
    range->runs[page].next = next;
    if (next != CCMR__POOL_NO_PAGE) {
        range->runs[next].previous = page;
    }
    range->holes = page;
}

/* A hole is none any more. */
static void drop_hole(ccmr__pool_range *range, uint32_t page)
{
    uint32_t next = range->runs[page].next;
    uint32_t previous = range->runs[page].previous;

    if (next != CCMR__POOL_NO_PAGE) {
        range->runs[next].previous = previous;
    }
    if (previous != CCMR__POOL_NO_PAGE) {
        range->runs[previous].next = next;
    } else {
        range->holes = next;
    }
    range->runs[page].kind = CCMR__POOL_INNER;
}

static void add_hole(ccmr__pool_range *range, uint32_t page, uint32_t pages)
{
    if (pages > 0) {
        set_run(range, page, pages, CCMR__POOL_HOLE);
        list_hole(range, page);
    }
}

/* The hole that a page lies in. */
static uint32_t hole_of(const ccmr__pool_range *range, uint32_t page)
{
    uint32_t hole = range->holes;

    while (page < hole || page - hole >= range->runs[hole].pages) {
        hole = range->runs[hole].next;
    }
    return hole;
}

static void raise_top(ccmr__pool_range *range, uint32_t top)
{
    size_t bytes = top * range->unit;

    range->top = top;
    if (bytes > atomic_load_explicit(&range->end, memory_order_relaxed)) {
        atomic_store_explicit(&range->end, bytes, memory_order_release);
    }
}

void ccmr__pool_take_pages(ccmr__pool_range *range, uint32_t page,
                           uint32_t pages)
{
    if (page == range->top) {
        assert(pages <= range->pages - page);
        raise_top(range, page + pages);
    } else {
        uint32_t hole = hole_of(range, page);
        uint32_t had = range->runs[hole].pages;

        assert(page - hole <= had && pages <= had - (page - hole));
        drop_hole(range, hole);
        add_hole(range, hole, page - hole);
        add_hole(range, page + pages, had - (page - hole) - pages);
    }
    set_run(range, page, pages, CCMR__POOL_TAKEN);
}

void ccmr__pool_give_pages(ccmr__pool_range *range, uint32_t page,
                           uint32_t pages)
{
    uint32_t end = page + pages;
    uint32_t inner = page;

    while (inner < end) {
        uint32_t run = range->runs[inner].pages;

        assert(range->runs[inner].kind != CCMR__POOL_INNER &&
               range->runs[inner].pins == 0);
        range->runs[inner].kind = CCMR__POOL_INNER;
        inner += run;
    }
    assert(inner == end);
    if (end < range->top && range->runs[end].kind == CCMR__POOL_HOLE) {
        end += range->runs[end].pages;
        drop_hole(range, page + pages);
    }
    if (page > 0) {
        uint32_t first = page - range->runs[page - 1].back;

        if (range->runs[first].kind == CCMR__POOL_HOLE) {
            drop_hole(range, first);
            page = first;
        }
    }
    if (end == range->top) {
        range->top = page;
    } else {
        add_hole(range, page, end - page);
    }
}

void ccmr__pool_mark_pages(ccmr__pool_range *range, uint32_t page,
                           uint32_t pages, ccmr__pool_run_kind kind)
{
    uint32_t had = range->runs[page].pages;
    uint32_t was = range->runs[page].kind;

    assert(was != CCMR__POOL_INNER && was != CCMR__POOL_HOLE && pages <= had);
    set_run(range, page, pages, kind);
    if (pages < had) {
        set_run(range, page + pages, had - pages, (ccmr__pool_run_kind)was);
    }
}

void ccmr__pool_mark_handles(ccmr__pool_range *range, uint32_t page,
                             uint32_t pages, ccmr__pool_run_kind kind)
{
    uint32_t end = page + pages;

    while (page < end) {
        assert(range->runs[page].kind == CCMR__POOL_HANDLE ||
               range->runs[page].kind == CCMR__POOL_GOING);
        range->runs[page].kind = kind;
        page += range->runs[page].pages;
    }
    assert(page == end);
}

void ccmr__pool_join_pages(ccmr__pool_range *range, uint32_t page,
                           uint32_t pages, uint32_t more)
{
    assert(range->runs[page].pages == pages &&
           range->runs[page + pages].pages == more);
    range->runs[page + pages].kind = CCMR__POOL_INNER;
    set_run(range, page, pages + more, CCMR__POOL_TAKEN);
}

uint32_t ccmr__pool_first_handle(const ccmr__pool_range *range,
                                 uintptr_t address, size_t bytes,
                                 uint32_t page)
{
    uint32_t first = ccmr__pool_page_of(range, address + range->unit - 1);
    uint32_t end = ccmr__pool_page_of(range, address + bytes);

    if (page < first) {
        page = first;
    }
    /* An extent may begin within a handle. */
    while (page < end && range->runs[page].kind != CCMR__POOL_HANDLE) {
        page++;
    }
    return page < end && range->runs[page].pages <= end - page
               ? page
               : CCMR__POOL_NO_PAGE;
}

uint32_t ccmr__pool_handle_at(const ccmr__pool_range *range, uint32_t page)
{
    uint32_t inner = 0;

    /* No handle is larger: what goes on longer is none. */
    while (page < range->top && inner < range->most && inner <= page &&
           range->runs[page - inner].kind == CCMR__POOL_INNER) {
        inner++;
    }
    if (page >= range->top || inner >= range->most || inner > page ||
        (range->runs[page - inner].kind != CCMR__POOL_HANDLE &&
         range->runs[page - inner].kind != CCMR__POOL_PINNED)) {
        return CCMR__POOL_NO_PAGE;
    }
    return page - inner;
}

size_t ccmr__pool_pinned_pages(const ccmr__pool_range *range,
                               uintptr_t address, size_t bytes)
{
    uint32_t page = ccmr__pool_page_of(range, address + range->unit - 1);
    uint32_t end = ccmr__pool_page_of(range, address + bytes);
    size_t pinned = 0;

    while (page < end) {
        const ccmr__pool_run *run = &range->runs[page];

        if (run->kind == CCMR__POOL_PINNED && run->pages <= end - page) {
            pinned += run->pages;
        }
        /* An extent may begin within a handle. */
        page += run->kind == CCMR__POOL_INNER ? 1 : run->pages;
    }
    return pinned;
}

size_t ccmr__pool_pins_of_handles(const ccmr__pool_range *range)
{
    uint32_t page = 0;
    size_t pins = 0;

    while (page < range->top) {
        pins += range->runs[page].kind == CCMR__POOL_PINNED
                    ? range->runs[page].pins
                    : 0;
        page += range->runs[page].pages;
    }
    return pins;
}

size_t ccmr__pool_range_bytes(ccmr__pool_range *range)
{
    size_t bytes = 0;
    uint32_t page = 0;

    ccmr__pool_range_lock(range);
    while (page < range->top) {
        if (range->runs[page].kind == CCMR__POOL_HANDLE ||
            range->runs[page].kind == CCMR__POOL_PINNED ||
            range->runs[page].kind == CCMR__POOL_GOING) {
            bytes += range->runs[page].pages * range->unit;
        }
        page += range->runs[page].pages;
    }
    ccmr__pool_range_unlock(range);
    return bytes;
}

/* ---- extents -------------------------------------------------------------------- */

/* What is left of an extent that was taken out. It is the extent's own record
 * or one that was reserved. */
static void put_rest(ccmr__pool_set *set, const ccmr__pool_piece *whole,
                     uintptr_t address, size_t bytes)
{
    ccmr__pool_piece rest = *whole;

    if (bytes > 0) {
        rest.address = address;
        rest.bytes = bytes;
        (void)ccmr__pool_insert(set, &rest, 0);
        set->out_bytes -= (ptrdiff_t)bytes;
    }
}

int ccmr__pool_cut(ccmr__pool_set *set, ccmr__pool_extent *extent,
                   uintptr_t address, size_t bytes, ccmr__pool_piece *piece)
{
    ccmr__pool_piece whole;

    if (ccmr__pool_reserve_records(set, 2) != 0) {
        return -1;
    }
    ccmr__pool_remove(set, extent, &whole);
    *piece = whole;
    piece->address = address;
    piece->bytes = bytes;
    put_rest(set, &whole, whole.address, address - whole.address);
    put_rest(set, &whole, address + bytes,
             whole.address + whole.bytes - (address + bytes));
    return 0;
}

ccmr__pool_extent *ccmr__pool_first_from(ccmr__pool_set *set, size_t bytes)
{
    unsigned index = ccmr__pool_bin_from(set, ccmr__pool_bin_of(bytes));

    return index < CCMR__POOL_BINS ? *ccmr__pool_bin_at(set, index) : NULL;
}

/* ---- beginning and end ------------------------------------------------------------ */

/* As much as the driver gives. Less than the device has would be too little to
 * work with. */
static ccmr_status reserve(ccmr_resource *upstream, size_t unit, size_t device,
                           void **base, size_t *bytes)
{
    ccmr_status status = CCMR_ERROR_NOT_SUPPORTED;
    size_t least = (device / unit + 1) * unit;
    size_t tried;

    for (tried = least * TIMES_THE_DEVICE;
         tried >= least && status != CCMR_SUCCESS;
         tried = tried / 2 / unit * unit) {
        if (tried / unit < CCMR__POOL_NO_PAGE) {
            status = upstream->ops.reserve(upstream->self, tried, base);
            *bytes = tried;
        }
    }
    return status;
}

static ccmr__pool_range *new_range(ccmr__pool *pool, uintptr_t base,
                                   size_t bytes, size_t unit)
{
    ccmr__pool_range *range = calloc(1, sizeof(*range));
    size_t handle =
        pool->options.handle != 0 ? pool->options.handle : LARGEST_HANDLE;

    if (range == NULL) {
        return NULL;
    }
    range->pool = pool;
    range->base = base;
    range->unit = unit;
    range->pages = (uint32_t)(bytes / unit);
    range->holes = CCMR__POOL_NO_PAGE;
    range->most = 1;
    while (range->most <= range->pages / 2 &&
           range->most * unit <= handle / 2) {
        range->most *= 2;
    }
    /* The parts of it that are never used take no memory. */
    range->runs = calloc(range->pages, sizeof(*range->runs));
    if (range->runs == NULL) {
        goto err_range;
    }
    if (pthread_mutex_init(&range->lock, NULL) != 0) {
        goto err_runs;
    }
    return range;

err_runs:
    free(range->runs);
err_range:
    free(range);
    return NULL;
}

static void free_range(ccmr__pool_range *range)
{
    while (range->leaving != NULL) {
        ccmr__pool_leaving *next = range->leaving->next;

        free(range->leaving);
        range->leaving = next;
    }
    (void)pthread_mutex_destroy(&range->lock);
    free(range->runs);
    free(range);
}

void ccmr__pool_range_make(ccmr__pool *pool, size_t unit)
{
    ccmr_resource *upstream = pool->upstream;
    ccmr_error_detail before = *ccmr__error();
    ccmr__pool_range *range = NULL;
    void *base;
    size_t bytes;

    if (upstream->ops.reserve != NULL && unit >= CCMR__POOL_GRANULE &&
        reserve(upstream, unit, pool->device->total_bytes, &base, &bytes) ==
            CCMR_SUCCESS) {
        range = new_range(pool, (uintptr_t)base, bytes, unit);
        if (range != NULL) {
            range->segment =
                ccmr__pool_segment_add(pool, range->base, bytes, unit);
            if (range->segment == NULL) {
                free_range(range);
                range = NULL;
            }
        }
        if (range == NULL) {
            (void)upstream->ops.unreserve(upstream->self, base, bytes);
        }
    }
    pool->range = range;
    *ccmr__error() = before; /* without one it works by segments */
}

int ccmr__pool_range_has(const ccmr__pool_range *range, uintptr_t address)
{
    return address - range->base <
           atomic_load_explicit(&range->end, memory_order_acquire);
}

void ccmr__pool_range_end(ccmr__pool *pool)
{
    ccmr__pool_range *range = pool->range;
    ccmr_resource *upstream = pool->upstream;
    size_t bytes = range->pages * range->unit;
    int tries;

    ccmr__pool_segment_drop(pool, range->segment);
    ccmr__pool_settle_leaving(range, 1);
    for (tries = 0; tries < 3; tries++) {
        if (upstream->ops.unreserve(upstream->self, (void *)range->base,
                                    bytes) == CCMR_SUCCESS) {
            break;
        }
    }
    free_range(range);
    pool->range = NULL;
}
