/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growth in a range: where new memory goes.
 *
 *     |  extent  |....hole....|  extent  |   block   |........
 *        \____ before           \____ after           \____ top
 *
 * A request is put where the fewest pages are new: behind a free extent that
 * ends at a hole or at `top`, before one that begins where a hole ends, or
 * over all three. Those extents are taken out of their set, so that nobody
 * else has them meanwhile, and come back with the new memory.
 */
#include "resources/pool/range_grow.h"
#include "resources/pool/set.h"

/* Holes that are looked at. */
#define HOLES_MOST 256u

/* A place for a request, and what is free beside it. */
typedef struct spot {
    uint32_t page;
    uint32_t pages; /* new ones; CCMR__POOL_NO_PAGE: no place */
    uint32_t room;  /* pages of the hole */
    int at_top;
    uintptr_t from; /* where the request is to be */
    ccmr__pool_extent *before;
    ccmr__pool_extent *after;
} spot;

static ccmr__pool_extent *usable(ccmr__pool_growth *g,
                                 ccmr__pool_extent *extent)
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

/* Both sides wait for few enough to become one. */
static int can_join(const ccmr__pool_extent *before,
                    const ccmr__pool_extent *after)
{
    ccmr__pool_waits waits = {.count = 0};

    return before == NULL || (ccmr__pool_waits_join(&waits, &before->waits) &&
                              ccmr__pool_waits_join(&waits, &after->waits));
}

/* The end of a hole, before an extent. */
static void weigh_end(const ccmr__pool_growth *g, const spot *hole,
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
    one.from = from;
    one.page = ccmr__pool_page_of(g->range, from);
    one.pages = hole->page + hole->room - one.page;
    one.after = after;
    consider(best, &one);
}

/* `hole` has its page and room alone. Under the lane's and the range's lock. */
static void weigh(ccmr__pool_growth *g, const ccmr__pool_set *set,
                  const spot *hole, spot *best)
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
    one.from = from;
    if (from + g->of->bytes <= start) {
        one.pages = 0; /* it is there, only not found before */
        consider(best, &one);
        return;
    }
    one.pages = ccmr__pool_pages_for(g->range, from + g->of->bytes - start);
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
static spot search(ccmr__pool_growth *g, const ccmr__pool_set *set)
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

static uint32_t fewest(ccmr__pool_growth *g, ccmr__pool_lane *lane)
{
    uint32_t pages;

    ccmr__pool_lane_lock(lane);
    ccmr__pool_range_lock(g->range);
    pages = search(g, &lane->set).pages;
    ccmr__pool_range_unlock(g->range);
    ccmr__pool_lane_unlock(lane);
    return pages;
}

static ccmr_status fail_place(const ccmr__pool_growth *g)
{
    return ccmr__fail(CCMR_ERROR_OUT_OF_DEVICE_MEMORY,
                      "no room for %zu bytes in the pool's address range of "
                      "%zu",
                      g->of->bytes, g->range->pages * g->range->unit);
}

/* The part of an extent that the request will be in: what else is free there
 * may have to move. Returns 0, or -1 without host memory. */
static int take_side(ccmr__pool_growth *g, ccmr__pool_lane *lane,
                     ccmr__pool_extent *extent, uintptr_t from)
{
    ccmr__pool_piece *piece = &g->pieces[g->count];
    uintptr_t start;
    uintptr_t end;

    if (extent == NULL) {
        return 0;
    }
    start = from > extent->address ? from : extent->address;
    end = extent->address + extent->bytes;
    end = from + g->of->bytes < end ? from + g->of->bytes : end;
    if (ccmr__pool_cut(&lane->set, extent, start, end - start, piece) != 0) {
        return -1;
    }
    (void)ccmr__pool_waits_join(&g->waits, &piece->waits);
    g->count++;
    return 0;
}

/* More than is needed, at the top, not to be here again soon. */
static uint32_t with_step(const ccmr__pool_growth *g, uint32_t pages)
{
    uint32_t step = ccmr__pool_pages_for(g->range, g->step);
    uint32_t room = g->range->pages - g->range->top;

    if (step > g->most / g->range->unit) {
        step = (uint32_t)(g->most / g->range->unit);
    }
    step = step > room ? room : step;
    return step > pages ? step : pages;
}

/* The pages of a place, and what is beside them. Under the lane's lock and the
 * range's. */
static ccmr_status take_place(ccmr__pool_growth *g, ccmr__pool_lane *lane,
                              const spot *best)
{
    if (take_side(g, lane, best->before, best->from) != 0 ||
        take_side(g, lane, best->after, best->from) != 0) {
        return ccmr__pool_fail_books();
    }
    g->closed = best->after != NULL;
    g->page = best->page;
    g->pages = best->at_top && best->pages > 0 ? with_step(g, best->pages)
                                               : best->pages;
    if (g->pages > 0) {
        ccmr__pool_take_pages(g->range, g->page, g->pages);
    }
    return CCMR_SUCCESS;
}

/* Take the best place beside extents of a lane, and those extents. */
static ccmr_status claim(ccmr__pool_growth *g, ccmr__pool_lane *lane)
{
    ccmr_status status;
    spot best;

    ccmr__pool_lane_lock(lane);
    ccmr__pool_range_lock(g->range);
    best = search(g, &lane->set);
    if (best.pages == CCMR__POOL_NO_PAGE) {
        status = fail_place(g);
    } else if (best.pages > g->most / g->range->unit) {
        status = CCMR_ERROR_BUSY;
    } else {
        status = take_place(g, lane, &best);
    }
    ccmr__pool_range_unlock(g->range);
    ccmr__pool_lane_unlock(lane);
    return status;
}

/* Beside what is the stream's own, or nobody's if that takes fewer pages. */
ccmr_status ccmr__pool_find_place(ccmr__pool_growth *g)
{
    ccmr__pool_lane *common = g->pool->common;
    uint32_t own = fewest(g, g->lane);

    if (common->free_bytes != 0 && fewest(g, common) < own) {
        return claim(g, common);
    }
    return claim(g, g->lane);
}
