/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growth in a range: where new memory goes, and how it gets there.
 *
 *     |  extent  |....hole....|  extent  |   block   |........
 *        \____ before           \____ after           \____ top
 *
 * A request is put where the fewest pages are new: behind a free extent that
 * ends at a hole or at `top`, before one that begins where a hole ends, or
 * over all three. Those extents are taken out of their set, so that nobody
 * else has them meanwhile, and come back with the new memory.
 */
#include <assert.h>

#include "lib/error.h"
#include "lib/resource_object.h"
#include "resources/pool/range.h"
#include "resources/pool/set.h"

/* Holes that are looked at. */
#define HOLES_MOST 256u

/* A place for a request, and what is free beside it. */
typedef struct spot {
    uint32_t page;
    uint32_t pages; /* new ones; CCMR__POOL_NO_PAGE: no place */
    uint32_t room;  /* pages of the hole */
    int at_top;
    ccmr__pool_extent *before;
    ccmr__pool_extent *after;
} spot;

typedef struct growth {
    ccmr__pool_request *of; /* NULL: for nobody yet */
    ccmr__pool *pool;
    ccmr__pool_range *range;
    ccmr__pool_lane *lane;  /* where it comes to */
    size_t most;            /* bytes that may be new */
    size_t step;            /* bytes that are taken at the top */
    ccmr__pool_wanted want; /* what may be beside it */

    uint32_t page; /* the new ones */
    uint32_t pages;
    uint32_t filled; /* of them, with memory */
    size_t counted;  /* bytes that are reserved and not there yet */
    /* Extents beside it, and in the end the new memory. */
    ccmr__pool_piece pieces[3];
    unsigned count;
} growth;

/* ---- where ------------------------------------------------------------------------ */

static ccmr__pool_extent *usable(growth *g, ccmr__pool_extent *extent)
{
    return extent != NULL && extent->segment == g->range->segment &&
                   ccmr__pool_accept_wanted(&g->want, extent)
               ? extent
               : NULL;
}

static int is_better(const spot *one, const spot *best)
{
    if (one->pages != best->pages) {
        return one->pages < best->pages;
    }
    if (one->room != best->room) {
        return one->room < best->room;
    }
    return one->page < best->page;
}

static void consider(spot *best, const spot *one)
{
    if (is_better(one, best)) {
        *best = *one;
    }
}

static uint32_t pages_for(const ccmr__pool_range *range, size_t bytes)
{
    size_t pages = bytes / range->unit + (bytes % range->unit != 0);

    return pages < CCMR__POOL_NO_PAGE ? (uint32_t)pages : CCMR__POOL_NO_PAGE;
}

/* Both sides wait for few enough to become one. */
static int can_join(const ccmr__pool_extent *before,
                    const ccmr__pool_extent *after)
{
    ccmr__pool_waits waits = {.count = 0};

    return before == NULL || (ccmr__pool_waits_join(&waits, &before->waits) &&
                              ccmr__pool_waits_join(&waits, &after->waits));
}

/* The end of a hole, before an extent. */
static void weigh_end(const growth *g, const spot *hole,
                      ccmr__pool_extent *after, spot *best)
{
    uintptr_t start = ccmr__pool_page_address(g->range, hole->page);
    uintptr_t end = start + hole->room * g->range->unit;
    uintptr_t last = after->address + after->bytes;
    uintptr_t from;
    spot one = *hole;

    if (last - start < g->of->bytes) {
        return;
    }
    from = (last - g->of->bytes) & ~(uintptr_t)(g->of->alignment - 1);
    if (from < start || from >= end) {
        return;
    }
    one.page = ccmr__pool_page_of(g->range, from);
    one.pages = hole->page + hole->room - one.page;
    one.after = after;
    consider(best, &one);
}

/* `hole` has its page and room alone. Under the lane's and the range's lock. */
static void weigh(growth *g, const ccmr__pool_set *set, const spot *hole,
                  spot *best)
{
    uintptr_t start = ccmr__pool_page_address(g->range, hole->page);
    uintptr_t end = start + hole->room * g->range->unit;
    uintptr_t from = start;
    ccmr__pool_extent *after;
    spot one = *hole;

    one.before = usable(g, ccmr__pool_ending_at(set, start));
    if (one.before != NULL) {
        from = one.before->address;
    }
    from = (from + g->of->alignment - 1) & ~(uintptr_t)(g->of->alignment - 1);
    if (from >= start) {
        one.before = NULL;
    }
    if (from + g->of->bytes <= start) {
        one.pages = 0; /* it is there, only not found before */
        consider(best, &one);
        return;
    }
    one.pages = pages_for(g->range, from + g->of->bytes - start);
    if (one.pages <= one.room) {
        consider(best, &one);
    }
    after = hole->at_top ? NULL : usable(g, ccmr__pool_starting_at(set, end));
    if (after != NULL) {
        if (one.pages > one.room &&
            from + g->of->bytes <= after->address + after->bytes &&
            can_join(one.before, after)) {
            one.pages = one.room;
            one.after = after;
            consider(best, &one);
        }
        weigh_end(g, hole, after, best);
    }
}

/* Under the lane's lock and the range's. */
static spot search(growth *g, const ccmr__pool_set *set)
{
    ccmr__pool_range *range = g->range;
    spot best = {.pages = CCMR__POOL_NO_PAGE};
    spot top = {
        .page = range->top, .room = range->pages - range->top, .at_top = 1};
    uint32_t hole = range->holes;
    unsigned looked;

    weigh(g, set, &top, &best);
    for (looked = 0; hole != CCMR__POOL_NO_PAGE && looked < HOLES_MOST;
         looked++) {
        spot one = {.page = hole, .room = range->runs[hole].pages};

        weigh(g, set, &one, &best);
        hole = range->runs[hole].next;
    }
    return best;
}

static uint32_t fewest(growth *g, ccmr__pool_lane *lane)
{
    uint32_t pages;

    ccmr__pool_lane_lock(lane);
    ccmr__pool_range_lock(g->range);
    pages = search(g, &lane->set).pages;
    ccmr__pool_range_unlock(g->range);
    ccmr__pool_lane_unlock(lane);
    return pages;
}

static ccmr_status fail_place(const growth *g)
{
    return ccmr__fail(CCMR_ERROR_OUT_OF_DEVICE_MEMORY,
                      "no room for %zu bytes in the pool's address range of "
                      "%zu",
                      g->of->bytes, g->range->pages * g->range->unit);
}

static ccmr_status fail_books(void)
{
    return ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                      "no memory for a pool's books");
}

static void take_side(growth *g, ccmr__pool_lane *lane,
                      ccmr__pool_extent *extent)
{
    if (extent != NULL) {
        ccmr__pool_remove(&lane->set, extent, &g->pieces[g->count++]);
    }
}

/* More than is needed, at the top, not to be here again soon. */
static uint32_t with_step(const growth *g, uint32_t pages)
{
    uint32_t step = pages_for(g->range, g->step);
    uint32_t room = g->range->pages - g->range->top;

    if (step > g->most / g->range->unit) {
        step = (uint32_t)(g->most / g->range->unit);
    }
    step = step > room ? room : step;
    return step > pages ? step : pages;
}

/* Take the best place beside extents of a lane, and those extents. */
static ccmr_status claim(growth *g, ccmr__pool_lane *lane)
{
    ccmr__pool_range *range = g->range;
    ccmr_status status = CCMR_SUCCESS;
    spot best;

    ccmr__pool_lane_lock(lane);
    ccmr__pool_range_lock(range);
    best = search(g, &lane->set);
    if (best.pages == CCMR__POOL_NO_PAGE) {
        status = fail_place(g);
    } else if (best.pages > g->most / range->unit) {
        status = CCMR_ERROR_BUSY;
    } else {
        g->page = best.page;
        g->pages = best.at_top ? with_step(g, best.pages) : best.pages;
        if (g->pages > 0) {
            ccmr__pool_take_pages(range, g->page, g->pages);
        }
        take_side(g, lane, best.before);
        take_side(g, lane, best.after);
    }
    ccmr__pool_range_unlock(range);
    ccmr__pool_lane_unlock(lane);
    return status;
}

/* Beside what is the stream's own, or nobody's if that takes fewer pages. */
static ccmr_status find_place(growth *g)
{
    ccmr__pool_lane *common = g->pool->common;
    uint32_t own = fewest(g, g->lane);

    if (common->free_bytes != 0 && fewest(g, common) < own) {
        return claim(g, common);
    }
    return claim(g, g->lane);
}

/* ---- what ------------------------------------------------------------------------- */

/* One new handle: the largest power of two that fits. */
static ccmr_status commit(growth *g)
{
    ccmr__pool_range *range = g->range;
    ccmr_resource *upstream = g->pool->upstream;
    uint32_t page = g->page + g->filled;
    uint32_t left = g->pages - g->filled;
    uint32_t pages = range->most;
    ccmr_status status;

    while (pages > left) {
        pages /= 2;
    }
    status = upstream->ops.commit(upstream->self,
                                  (void *)ccmr__pool_page_address(range, page),
                                  pages * range->unit);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    ccmr__pool_range_lock(range);
    ccmr__pool_mark_pages(range, page, pages, CCMR__POOL_TAKEN);
    ccmr__pool_range_unlock(range);
    g->filled += pages;
    return CCMR_SUCCESS;
}

static ccmr_status fill(growth *g)
{
    size_t bytes = g->pages * g->range->unit;
    ccmr_status status = ccmr__pool_count_bytes(g->pool, bytes);

    if (status == CCMR_SUCCESS) {
        g->counted = bytes;
    }
    while (status == CCMR_SUCCESS && g->filled < g->pages) {
        status = commit(g);
    }
    return status;
}

/* ---- and then ----------------------------------------------------------------------- */

/* Pages that got no memory. */
static void give_rest(growth *g)
{
    size_t filled = g->filled * g->range->unit;

    if (g->counted > filled) {
        atomic_fetch_sub_explicit(&g->pool->reserved, g->counted - filled,
                                  memory_order_relaxed);
    }
    if (g->filled < g->pages) {
        ccmr__pool_range_lock(g->range);
        /* It is one run: what is filled was marked off. */
        ccmr__pool_give_pages(g->range, g->page + g->filled,
                              g->pages - g->filled);
        ccmr__pool_range_unlock(g->range);
    }
}

/* The new memory is in the books, as a piece that is out and comes back: a
 * record for it is owed since before it was there. Under the lane's lock. */
static void account(growth *g)
{
    size_t bytes = g->filled * g->range->unit;
    uint32_t page = g->page;

    if (g->filled == 0) {
        ccmr__pool_forget(&g->lane->set, 1);
        return;
    }
    g->lane->set.out_bytes += (ptrdiff_t)bytes;
    atomic_fetch_add_explicit(&g->pool->brought, bytes, memory_order_relaxed);
    ccmr__pool_range_lock(g->range);
    while (page < g->page + g->filled) {
        g->range->runs[page].kind = CCMR__POOL_HANDLE;
        page += g->range->runs[page].pages;
    }
    ccmr__pool_range_unlock(g->range);
    g->pieces[g->count++] = (ccmr__pool_piece){
        .address = ccmr__pool_page_address(g->range, g->page),
        .bytes = bytes,
        .segment = g->range->segment};
}

/* Everything that is there, as one. Growth was whole: it has no gap. */
static ccmr__pool_piece together(const growth *g)
{
    ccmr__pool_piece all = g->pieces[0];
    unsigned i;

    for (i = 1; i < g->count; i++) {
        const ccmr__pool_piece *one = &g->pieces[i];

        all.address = one->address < all.address ? one->address : all.address;
        all.bytes += one->bytes;
        (void)ccmr__pool_waits_join(&all.waits, &one->waits);
    }
    return all;
}

/* What is left of it, for which `owed` pieces come back. */
static void put_rest(growth *g, const ccmr__pool_piece *all, uintptr_t address,
                     size_t bytes, size_t *owed)
{
    ccmr__pool_set *set = &g->lane->set;
    ccmr__pool_piece rest = *all;

    if (bytes > 0) {
        rest.address = address;
        rest.bytes = bytes;
        (void)ccmr__pool_insert(set, &rest, *owed);
        if (*owed == 0) {
            set->out_bytes -= (ptrdiff_t)bytes;
        }
        *owed = 0;
    }
}

/* The request is cut out before the rest merges with what may wait for more.
 * Under the lane's lock. */
static ccmr_status cut(growth *g)
{
    ccmr__pool_set *set = &g->lane->set;
    ccmr__pool_request *of = g->of;
    ccmr__pool_piece all = together(g);
    uintptr_t from =
        (all.address + of->alignment - 1) & ~(uintptr_t)(of->alignment - 1);
    size_t front = from - all.address;
    size_t blocks = (all.bytes - front) / of->bytes;
    size_t owed = g->count;

    assert(front < all.bytes && blocks > 0);
    blocks = blocks < of->run ? blocks : of->run;
    if (ccmr__pool_reserve_records(set, blocks + 2) != 0) {
        return fail_books();
    }
    of->piece = all;
    of->piece.address = from;
    of->piece.bytes = blocks * of->bytes;
    of->blocks = blocks;
    of->extra = 0;
    set->owed += (ptrdiff_t)blocks;
    put_rest(g, &all, all.address, front, &owed);
    put_rest(g, &all, from + of->piece.bytes,
             all.bytes - front - of->piece.bytes, &owed);
    ccmr__pool_forget(set, owed);
    g->count = 0;
    return CCMR_SUCCESS;
}

/* All that is there comes into the lane, but for the request. */
static ccmr_status settle(growth *g, ccmr_status status)
{
    unsigned i;

    give_rest(g);
    ccmr__pool_lane_lock(g->lane);
    account(g);
    if (status == CCMR_SUCCESS && g->of != NULL) {
        status = cut(g);
    }
    ccmr__pool_lane_unlock(g->lane);
    for (i = 0; i < g->count; i++) {
        ccmr__pool_bring(g->lane, &g->pieces[i], 1);
    }
    return status;
}

/* The record of the new piece. */
static ccmr_status promise_record(growth *g)
{
    ccmr__pool_set *set = &g->lane->set;
    int there;

    ccmr__pool_lane_lock(g->lane);
    there = ccmr__pool_reserve_records(set, 1);
    if (there == 0) {
        set->owed++;
    }
    ccmr__pool_lane_unlock(g->lane);
    return there == 0 ? CCMR_SUCCESS : fail_books();
}

static void forget_record(growth *g)
{
    ccmr__pool_lane_lock(g->lane);
    ccmr__pool_forget(&g->lane->set, 1);
    ccmr__pool_lane_unlock(g->lane);
}

ccmr_status ccmr__pool_range_grow(ccmr__pool_request *of, size_t most,
                                  size_t step)
{
    ccmr__pool *pool = of->pool;
    growth g = {.of = of,
                .pool = pool,
                .range = pool->range,
                .lane = of->lane,
                .most = most,
                .step = step,
                .want = {.own = pool->host_access ? NULL : of->lane}};
    ccmr_status status = promise_record(&g);

    if (status != CCMR_SUCCESS) {
        return status;
    }
    status = find_place(&g);
    if (status != CCMR_SUCCESS) {
        forget_record(&g);
        return status;
    }
    return settle(&g, fill(&g));
}

ccmr_status ccmr__pool_range_begin(ccmr__pool *pool, size_t bytes)
{
    ccmr__pool_range *range = pool->range;
    size_t hard = atomic_load_explicit(&pool->hard, memory_order_relaxed);
    growth g = {.pool = pool, .range = range, .lane = pool->common};
    ccmr_status status;

    g.page = range->top;
    g.pages = pages_for(range, bytes);
    if (hard != 0 && g.pages > hard / range->unit) {
        g.pages = (uint32_t)(hard / range->unit); /* `bytes` is no more */
    }
    if (g.pages > range->pages) {
        return ccmr__fail(CCMR_ERROR_OUT_OF_DEVICE_MEMORY,
                          "no room for %zu bytes in the pool's address range",
                          bytes);
    }
    status = g.pages > 0 ? promise_record(&g) : CCMR_SUCCESS;
    if (status != CCMR_SUCCESS || g.pages == 0) {
        return status;
    }
    ccmr__pool_range_lock(range);
    ccmr__pool_take_pages(range, g.page, g.pages);
    ccmr__pool_range_unlock(range);
    return settle(&g, fill(&g));
}
