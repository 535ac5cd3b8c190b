/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growth in a range: what fills the place. New handles, or free ones from
 * elsewhere that move there.
 */
#include "lib/resource_object.h"
#include "resources/pool/range_grow.h"

/* No handle is more than such a part. */
#define PARTS_OF_A_BUDGET 4096u
#define PARTS_OF_A_POOL 32u
#define PARTS_OF_A_TIGHT_POOL 512u

/* Count bytes as reserved that the growth will need. */
static ccmr_status count(ccmr__pool_growth *g, size_t bytes)
{
    ccmr_status status = CCMR_SUCCESS;

    if (g->counted - g->fresh < bytes) {
        bytes -= g->counted - g->fresh;
        status = ccmr__pool_count_bytes(g->pool, bytes);
        if (status == CCMR_SUCCESS) {
            g->counted += bytes;
        }
    }
    return status;
}

/* The largest handle that is made now. A large one costs fewer calls, and is
 * seldom wholly free: a tight budget takes small ones. */
static uint32_t largest_now(const ccmr__pool_growth *g)
{
    ccmr__pool *pool = g->pool;
    size_t hard = atomic_load_explicit(&pool->hard, memory_order_relaxed);
    size_t parts =
        ccmr__pool_is_tight(pool) ? PARTS_OF_A_TIGHT_POOL : PARTS_OF_A_POOL;
    size_t bytes = hard != 0 ? hard / PARTS_OF_A_BUDGET
                             : atomic_load_explicit(&pool->reserved,
                                                    memory_order_relaxed) /
                                   parts;
    uint32_t pages = g->range->most;

    while (pool->options.handle == 0 && pages > 1 &&
           pages * g->range->unit > bytes) {
        pages /= 2;
    }
    return pages;
}

/* One new handle: the largest power of two that fits. */
static ccmr_status commit(ccmr__pool_growth *g)
{
    ccmr__pool_range *range = g->range;
    ccmr_resource *upstream = g->pool->upstream;
    uint32_t page = g->page + g->filled;
    uint32_t left = g->pages - g->filled;
    uint32_t pages = largest_now(g);
    ccmr_status status;

    while (pages > left) {
        pages /= 2;
    }
    status = count(g, left * range->unit); /* all or nothing */
    if (status == CCMR_SUCCESS) {
        status = upstream->ops.commit(
            upstream->self, (void *)ccmr__pool_page_address(range, page),
            pages * range->unit);
    }
    if (status != CCMR_SUCCESS) {
        return status;
    }
    ccmr__pool_range_lock(range);
    ccmr__pool_mark_pages(range, page, pages, CCMR__POOL_TAKEN);
    ccmr__pool_range_unlock(range);
    g->filled += pages;
    g->fresh += pages * range->unit;
    return CCMR_SUCCESS;
}

static ccmr__pool_sought seek(const ccmr__pool_growth *g, int follow)
{
    ccmr__pool_sought sought = {.least = 1,
                                .most = g->pages - g->filled,
                                .want = g->want,
                                .beside = &g->waits};

    sought.want.follow = follow;
    return sought;
}

static ccmr_status move(ccmr__pool_growth *g, ccmr__pool_taken *taken)
{
    ccmr_status status =
        ccmr__pool_move_handle(g->range, taken, g->page + g->filled);

    if (status == CCMR_SUCCESS) {
        (void)ccmr__pool_waits_join(&g->waits, &taken->piece.waits);
        g->filled += taken->pages;
        g->moved++;
    }
    return status;
}

/* The stream waits now for what came so far: then that waits for the stream
 * alone, and something else fits in. Returns 1 if so. */
static int make_room(ccmr__pool_growth *g)
{
    uint64_t number = 0;
    int room;

    if (!g->follow || g->waits.count < 2 ||
        ccmr__pool_follow(&g->waits, g->lane, g->of->handle) != CCMR_SUCCESS) {
        return 0;
    }
    ccmr__pool_lane_lock(g->lane);
    (void)ccmr__pool_settled(&g->waits);
    room = g->waits.count < 2 ||
           ccmr__pool_fold_waits(g->lane, &g->waits, &number);
    ccmr__pool_lane_unlock(g->lane);
    if (room) {
        g->nothing[1] = 0;
    }
    return room;
}

/* A free handle that is no larger than what is left. CCMR_ERROR_BUSY: there is
 * none. */
static ccmr_status move_any(ccmr__pool_growth *g)
{
    ccmr__pool_taken taken;
    int follow;

    for (follow = 0; follow <= g->follow; follow++) {
        ccmr__pool_sought sought = seek(g, follow);

        if (!g->nothing[follow]) {
            if (ccmr__pool_take_handle(g->range, g->lane, &sought, &taken)) {
                return move(g, &taken);
            }
            g->nothing[follow] = 1; /* what is left gets smaller only */
        }
    }
    return CCMR_ERROR_BUSY;
}

static ccmr_status move_in(ccmr__pool_growth *g)
{
    ccmr_status status = move_any(g);

    return status == CCMR_ERROR_BUSY && make_room(g) ? move_any(g) : status;
}

/* Pages behind those that are the growth's. */
static int take_more(ccmr__pool_growth *g, uint32_t pages)
{
    ccmr__pool_range *range = g->range;
    uint32_t next = g->page + g->pages;
    int taken = 0;

    ccmr__pool_range_lock(range);
    if (next == range->top ? pages <= range->pages - next
                           : range->runs[next].kind == CCMR__POOL_HOLE &&
                                 pages <= range->runs[next].pages) {
        uint32_t first = g->page + g->filled;

        ccmr__pool_take_pages(range, next, pages);
        ccmr__pool_join_pages(range, first, g->pages - g->filled, pages);
        g->pages += pages;
        taken = 1;
    }
    ccmr__pool_range_unlock(range);
    return taken;
}

/* A larger one, over the end of what is needed: what is beyond it stays free.
 * It waits for no more than any other. */
static ccmr_status move_over(ccmr__pool_growth *g)
{
    uint32_t left = g->pages - g->filled;
    ccmr__pool_taken taken;
    int follow;

    for (follow = 0; follow <= g->follow && !g->closed; follow++) {
        ccmr__pool_sought sought = seek(g, follow);

        sought.least = left + 1;
        sought.most = CCMR__POOL_NO_PAGE;
        sought.small = 1;
        if (!ccmr__pool_take_handle(g->range, g->lane, &sought, &taken)) {
            continue;
        }
        if (take_more(g, taken.pages - left)) {
            return move(g, &taken);
        }
        ccmr__pool_bring_handle(g->range, &taken);
        break;
    }
    return CCMR_ERROR_BUSY;
}

/* A finished one goes back to make room for another size. */
static ccmr_status drop(ccmr__pool_growth *g)
{
    ccmr__pool_sought sought = {
        .least = 1, .most = CCMR__POOL_NO_PAGE, .small = 1, .whole = 1};
    ccmr__pool_taken taken;

    if (!ccmr__pool_take_handle(g->range, g->lane, &sought, &taken)) {
        return CCMR_ERROR_BUSY;
    }
    return ccmr__pool_drop_handle(g->range, &taken);
}

static int is_full(ccmr_status status)
{
    return status == CCMR_ERROR_OUT_OF_DEVICE_MEMORY ||
           status == CCMR_ERROR_LIMIT_EXCEEDED;
}

/* Some of what lacks, by the first means that has any. */
static ccmr_status fill_some(ccmr__pool_growth *g)
{
    ccmr_status status = g->move ? move_in(g) : CCMR_ERROR_BUSY;
    ccmr_error_detail told;
    ccmr_status other;

    if (status != CCMR_ERROR_BUSY) {
        return status;
    }
    status = commit(g);
    if (!g->move || !is_full(status)) {
        return status;
    }
    told = *ccmr__error();
    other = move_over(g);
    if (other == CCMR_ERROR_BUSY) {
        other = drop(g);
    }
    if (other == CCMR_SUCCESS) {
        return other;
    }
    *ccmr__error() = told;
    return status;
}

ccmr_status ccmr__pool_fill(ccmr__pool_growth *g)
{
    ccmr_status status =
        g->move ? CCMR_SUCCESS : count(g, g->pages * g->range->unit);

    while (status == CCMR_SUCCESS && g->filled < g->pages) {
        status = fill_some(g);
    }
    if (g->moved > 0) {
        if (!ccmr__pool_settled(&g->waits)) {
            /* So that the addresses that were left are free one day. */
            (void)ccmr__pool_record(g->lane, g->of->handle);
        }
        ccmr__pool_settle_leaving(g->range, 0);
    }
    return status;
}
