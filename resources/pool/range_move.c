/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles of a range that move: free ones are found, get another address, and
 * leave the one they had.
 */
#include <stdlib.h>

#include "lib/error.h"
#include "lib/resource_object.h"
#include "resources/pool/range.h"
#include "resources/pool/set.h"

/* ---- finding -------------------------------------------------------------------- */

typedef struct best {
    ccmr__pool_extent *extent;
    uint32_t page;
    uint32_t pages;
    uint32_t looked; /* handles */
} best;

/* Handles that are looked at for a better one than there is. */
#define LOOK_MOST 1024u

static int is_enough(const best *found, uint32_t ideal)
{
    return found->pages == ideal ||
           (found->pages != 0 && found->looked >= LOOK_MOST);
}

int ccmr__pool_is_elsewhere(const ccmr__pool_range *range, uint32_t page)
{
    const ccmr__pool_leaving *one = range->leaving;

    while (one != NULL && one->now != page) {
        one = one->next;
    }
    return one != NULL;
}

static int is_better(const ccmr__pool_sought *sought, uint32_t pages,
                     const best *found)
{
    if (pages < sought->least || pages > sought->most) {
        return 0;
    }
    return found->extent == NULL ||
           (sought->small ? pages < found->pages : pages > found->pages);
}

/* The handles of one extent. */
static void look_in(const ccmr__pool_range *range,
                    const ccmr__pool_sought *sought, ccmr__pool_extent *extent,
                    uint32_t ideal, best *found)
{
    uint32_t page = 0;

    while (!is_enough(found, ideal)) {
        uint32_t pages;

        page = ccmr__pool_first_handle(range, extent->address, extent->bytes,
                                       page);
        if (page == CCMR__POOL_NO_PAGE) {
            break;
        }
        pages = range->runs[page].pages;
        if (is_better(sought, pages, found) &&
            !(sought->whole && ccmr__pool_is_elsewhere(range, page))) {
            found->extent = extent;
            found->page = page;
            found->pages = pages;
        }
        found->looked++;
        page += pages;
    }
}

static int fits_in(const ccmr__pool_sought *sought,
                   const ccmr__pool_extent *extent)
{
    ccmr__pool_waits waits = extent->waits;
    ccmr__pool_wanted want = sought->want;

    return ccmr__pool_accept_wanted(&want, extent) &&
           (sought->beside == NULL ||
            ccmr__pool_waits_join(&waits, sought->beside));
}

/* Small extents first: they are of the least use as they are. Under the lane's
 * lock. */
static int take_from(ccmr__pool_range *range, ccmr__pool_lane *lane,
                     const ccmr__pool_sought *sought, ccmr__pool_taken *taken)
{
    uint32_t ideal = sought->small ? sought->least : sought->most;
    ccmr__pool_extent *extent =
        ccmr__pool_first_from(&lane->set, sought->least * range->unit);
    best found = {.extent = NULL};

    ccmr__pool_range_lock(range);
    for (; extent != NULL && !is_enough(&found, ideal);
         extent = ccmr__pool_next(&lane->set, extent)) {
        if (extent->segment == range->segment && fits_in(sought, extent)) {
            look_in(range, sought, extent, ideal, &found);
        }
    }
    if (found.extent != NULL &&
        ccmr__pool_cut(&lane->set, found.extent,
                       ccmr__pool_page_address(range, found.page),
                       found.pages * range->unit, &taken->piece) != 0) {
        found.extent = NULL;
    }
    if (found.extent != NULL) {
        ccmr__pool_mark_handles(range, found.page, found.pages,
                                CCMR__POOL_GOING);
    }
    ccmr__pool_range_unlock(range);
    if (found.extent == NULL) {
        return 0;
    }
    taken->lane = lane;
    taken->page = found.page;
    taken->pages = found.pages;
    return 1;
}

static int try_lane(ccmr__pool_range *range, ccmr__pool_lane *lane,
                    const ccmr__pool_sought *sought, ccmr__pool_taken *taken)
{
    int found = 0;

    if (atomic_load_explicit(&lane->free_bytes, memory_order_relaxed) >=
        sought->least * range->unit) {
        ccmr__pool_lane_lock(lane);
        found = take_from(range, lane, sought, taken);
        ccmr__pool_lane_unlock(lane);
    }
    return found;
}

int ccmr__pool_take_handle(ccmr__pool_range *range, ccmr__pool_lane *first,
                           const ccmr__pool_sought *sought,
                           ccmr__pool_taken *taken)
{
    ccmr__pool *pool = range->pool;
    ccmr__pool_lane *lane =
        atomic_load_explicit(&pool->lanes, memory_order_acquire);
    int found = try_lane(range, first, sought, taken);

    if (!found && first != pool->common) {
        found = try_lane(range, pool->common, sought, taken);
    }
    for (; lane != NULL && !found; lane = lane->next) {
        if (lane != first) {
            found = try_lane(range, lane, sought, taken);
        }
    }
    return found;
}

/* ---- moving ------------------------------------------------------------------------ */

void ccmr__pool_bring_handle(ccmr__pool_range *range, ccmr__pool_taken *taken)
{
    ccmr__pool_range_lock(range);
    ccmr__pool_mark_handles(range, taken->page, taken->pages,
                            CCMR__POOL_HANDLE);
    ccmr__pool_range_unlock(range);
    ccmr__pool_bring(taken->lane, &taken->piece, 1);
}

/* The handle is at `to` as well, and counts there. */
static void leave(ccmr__pool_range *range, const ccmr__pool_taken *taken,
                  uint32_t to, ccmr__pool_leaving *record)
{
    ccmr__pool_leaving *one;

    record->page = taken->page;
    record->pages = taken->pages;
    record->now = to;
    record->waits = taken->piece.waits;
    ccmr__pool_range_lock(range);
    for (one = range->leaving; one != NULL; one = one->next) {
        if (one->now == taken->page) {
            one->now = to;
        }
    }
    record->next = range->leaving;
    range->leaving = record;
    range->runs[taken->page].kind = CCMR__POOL_TAKEN;
    ccmr__pool_mark_pages(range, to, taken->pages, CCMR__POOL_HANDLE);
    ccmr__pool_range_unlock(range);
}

ccmr_status ccmr__pool_move_handle(ccmr__pool_range *range,
                                   ccmr__pool_taken *taken, uint32_t to)
{
    ccmr_resource *upstream = range->pool->upstream;
    ccmr__pool_leaving *record = malloc(sizeof(*record));
    uintptr_t address = ccmr__pool_page_address(range, to);
    ccmr_status status;

    if (record == NULL) {
        ccmr__pool_bring_handle(range, taken);
        return ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                          "no memory for a pool's books");
    }
    status = upstream->ops.move(upstream->self, (void *)taken->piece.address,
                                (void *)address, taken->piece.bytes);
    if (status != CCMR_SUCCESS) {
        free(record);
        ccmr__pool_bring_handle(range, taken);
        return status;
    }
    leave(range, taken, to, record);
    taken->piece.address = address;
    taken->page = to;
    return CCMR_SUCCESS;
}

/* ---- leaving ------------------------------------------------------------------------ */

/* One that no work uses; out of the list. */
static ccmr__pool_leaving *take_settled(ccmr__pool_range *range)
{
    ccmr__pool_leaving **link = &range->leaving;
    ccmr__pool_leaving *found;

    ccmr__pool_range_lock(range);
    while (*link != NULL && !ccmr__pool_settled(&(*link)->waits)) {
        link = &(*link)->next;
    }
    found = *link;
    if (found != NULL) {
        *link = found->next;
    }
    ccmr__pool_range_unlock(range);
    return found;
}

int ccmr__pool_any_leaving(ccmr__pool_range *range)
{
    int any;

    ccmr__pool_range_lock(range);
    any = range->leaving != NULL;
    ccmr__pool_range_unlock(range);
    return any;
}

void ccmr__pool_settle_leaving(ccmr__pool_range *range, int ask)
{
    ccmr_resource *upstream = range->pool->upstream;
    ccmr__pool_lane *lane =
        atomic_load_explicit(&range->pool->lanes, memory_order_acquire);
    ccmr_status status = CCMR_SUCCESS;

    if (!ccmr__pool_any_leaving(range)) {
        return;
    }
    for (; ask && lane != NULL; lane = lane->next) {
        (void)ccmr__pool_poll(lane, CCMR__POOL_EVENTS + 1);
    }
    while (status == CCMR_SUCCESS) {
        ccmr__pool_leaving *one = take_settled(range);

        if (one == NULL) {
            break;
        }
        status = upstream->ops.decommit(
            upstream->self, (void *)ccmr__pool_page_address(range, one->page),
            one->pages * range->unit);
        ccmr__pool_range_lock(range);
        if (status == CCMR_SUCCESS) {
            ccmr__pool_give_pages(range, one->page, one->pages);
        } else {
            one->next = range->leaving;
            range->leaving = one;
        }
        ccmr__pool_range_unlock(range);
        if (status == CCMR_SUCCESS) {
            free(one);
        }
    }
}

/* ---- dropping ----------------------------------------------------------------------- */

ccmr_status ccmr__pool_drop_handle(ccmr__pool_range *range,
                                   ccmr__pool_taken *taken)
{
    ccmr__pool *pool = range->pool;
    ccmr_resource *upstream = pool->upstream;
    ccmr_status status;

    if (!ccmr__pool_claim(pool, 0, taken->piece.bytes)) {
        ccmr__pool_bring_handle(range, taken);
        return CCMR_ERROR_BUSY;
    }
    status = upstream->ops.decommit(
        upstream->self, (void *)taken->piece.address, taken->piece.bytes);
    if (status != CCMR_SUCCESS) {
        atomic_fetch_sub_explicit(&pool->going, taken->piece.bytes,
                                  memory_order_relaxed);
        ccmr__pool_bring_handle(range, taken);
        return status;
    }
    ccmr__pool_forget_handle(range, taken->lane, taken->page, taken->pages);
    ccmr__pool_lane_lock(taken->lane);
    ccmr__pool_forget(&taken->lane->set, 1);
    ccmr__pool_lane_unlock(taken->lane);
    return CCMR_SUCCESS;
}
