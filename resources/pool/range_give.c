/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles of a range go back: those that are wholly free and finished.
 */
#include "lib/error.h"
#include "lib/resource_object.h"
#include "resources/pool/range.h"
#include "resources/pool/set.h"

/* Handles side by side that were taken out of an extent. */
typedef struct taken {
    ccmr__pool_piece piece;
    uint32_t page;
    uint32_t pages;
} taken;

static size_t bytes_of(const ccmr__pool_range *range, uint32_t pages)
{
    return pages * range->unit;
}

/* From the first handle in the extent that may go to the last one after it
 * without a gap. Under the lane's lock and the range's. */
static void choose(ccmr__pool_range *range, const ccmr__pool_extent *extent,
                   size_t keep, taken *what)
{
    uint32_t page = 0;

    what->pages = 0;
    for (;;) {
        uint32_t pages;

        page = ccmr__pool_first_handle(range, extent->address, extent->bytes,
                                       page);
        if (page == CCMR__POOL_NO_PAGE ||
            (what->pages != 0 && page != what->page + what->pages)) {
            break; /* between them is one that is pinned */
        }
        pages = range->runs[page].pages;
        if (!ccmr__pool_is_elsewhere(range, page) &&
            ccmr__pool_claim(range->pool, keep, bytes_of(range, pages))) {
            if (what->pages == 0) {
                what->page = page;
            }
            what->pages += pages;
        } else if (what->pages != 0) {
            break;
        }
        page += pages;
    }
}

static int is_settled(const ccmr__pool_extent *extent)
{
    ccmr__pool_waits waits = extent->waits;

    return ccmr__pool_settled(&waits);
}

static void unclaim(ccmr__pool *pool, size_t bytes)
{
    atomic_fetch_sub_explicit(&pool->going, bytes, memory_order_relaxed);
}

/* Choose, and cut it out of the extent: nobody pins it from now on. 0, or -1
 * where nothing was chosen or host memory lacks. Under both locks. */
static int take_out(ccmr__pool_range *range, ccmr__pool_set *set,
                    ccmr__pool_extent *extent, size_t keep, taken *what)
{
    int cut = -1;

    choose(range, extent, keep, what);
    if (what->pages != 0) {
        cut = ccmr__pool_cut(set, extent,
                             ccmr__pool_page_address(range, what->page),
                             bytes_of(range, what->pages), &what->piece);
    }
    if (cut == 0) {
        ccmr__pool_mark_handles(range, what->page, what->pages,
                                CCMR__POOL_GOING);
    }
    return cut;
}

/* Out of the common lane. 1, or 0: there are none that may go. */
static int take(ccmr__pool_range *range, size_t keep, taken *what)
{
    ccmr__pool_set *set = &range->pool->common->set;
    ccmr__pool_extent *extent = ccmr__pool_first_from(set, range->unit);
    int cut = -1;

    what->pages = 0;
    for (; extent != NULL && what->pages == 0;
         extent = ccmr__pool_next(set, extent)) {
        if (extent->segment == range->segment && is_settled(extent)) {
            ccmr__pool_range_lock(range);
            cut = take_out(range, set, extent, keep, what);
            ccmr__pool_range_unlock(range);
        }
    }
    if (cut != 0 && what->pages != 0) {
        unclaim(range->pool, bytes_of(range, what->pages));
    }
    return cut == 0;
}

void ccmr__pool_forget_handle(ccmr__pool_range *range, ccmr__pool_lane *lane,
                              uint32_t page, uint32_t pages)
{
    ccmr__pool *pool = range->pool;
    size_t bytes = bytes_of(range, pages);

    ccmr__pool_lane_lock(lane);
    lane->set.out_bytes -= (ptrdiff_t)bytes;
    atomic_fetch_sub_explicit(&pool->brought, bytes, memory_order_relaxed);
    ccmr__pool_range_lock(range);
    ccmr__pool_give_pages(range, page, pages);
    ccmr__pool_range_unlock(range);
    ccmr__pool_lane_unlock(lane);
    atomic_fetch_sub_explicit(&pool->reserved, bytes, memory_order_relaxed);
    unclaim(pool, bytes);
}

static uint32_t pages_at(ccmr__pool_range *range, uint32_t page)
{
    uint32_t pages;

    ccmr__pool_range_lock(range);
    pages = range->runs[page].pages;
    ccmr__pool_range_unlock(range);
    return pages;
}

/* One by one; what the upstream refuses, and what is behind it, stays.
 * Returns the bytes. */
static size_t give(ccmr__pool_range *range, taken *what, ccmr_status *refused)
{
    ccmr_resource *upstream = range->pool->upstream;
    ccmr__pool_lane *lane = range->pool->common;
    size_t bytes = 0;

    while (what->pages > 0 && *refused == CCMR_SUCCESS) {
        uint32_t pages = pages_at(range, what->page);
        size_t one = bytes_of(range, pages);

        *refused = upstream->ops.decommit(
            upstream->self, (void *)ccmr__pool_page_address(range, what->page),
            one);
        if (*refused == CCMR_SUCCESS) {
            ccmr__pool_forget_handle(range, lane, what->page, pages);
            what->page += pages;
            what->pages -= pages;
            what->piece.address += one;
            what->piece.bytes -= one;
            bytes += one;
        }
    }
    if (what->pages > 0) {
        unclaim(range->pool, what->piece.bytes);
        ccmr__pool_range_lock(range);
        ccmr__pool_mark_handles(range, what->page, what->pages,
                                CCMR__POOL_HANDLE);
        ccmr__pool_range_unlock(range);
        ccmr__pool_bring(lane, &what->piece, 1);
    } else {
        ccmr__pool_lane_lock(lane);
        ccmr__pool_forget(&lane->set, 1);
        ccmr__pool_lane_unlock(lane);
    }
    return bytes;
}

size_t ccmr__pool_range_release(ccmr__pool *pool, size_t keep,
                                ccmr_status *refused)
{
    ccmr__pool_range *range = pool->range;
    size_t bytes = 0;
    taken what;
    int any;

    ccmr__pool_settle_leaving(range, 0);
    while (*refused == CCMR_SUCCESS) {
        ccmr__pool_lane_lock(pool->common);
        any = take(range, keep, &what);
        ccmr__pool_lane_unlock(pool->common);
        if (!any) {
            break;
        }
        bytes += give(range, &what, refused);
    }
    return bytes;
}
