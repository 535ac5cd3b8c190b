/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growth in a range: a place is taken, filled, and comes into the books, with
 * the request cut out of it.
 */
#include <assert.h>

#include "resources/pool/range_grow.h"
#include "resources/pool/set.h"

/* Pages that got no memory. */
static void give_rest(ccmr__pool_growth *g)
{
    if (g->counted > g->fresh) {
        atomic_fetch_sub_explicit(&g->pool->reserved, g->counted - g->fresh,
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
static void account(ccmr__pool_growth *g)
{
    uint32_t page = g->page;

    if (g->filled == 0) {
        ccmr__pool_forget(&g->lane->set, 1);
        return;
    }
    g->lane->set.out_bytes += (ptrdiff_t)g->fresh;
    atomic_fetch_add_explicit(&g->pool->brought, g->fresh,
                              memory_order_relaxed);
    ccmr__pool_range_lock(g->range);
    while (page < g->page + g->filled) {
        /* What moved here is one already, and may be pinned. */
        if (g->range->runs[page].kind == CCMR__POOL_TAKEN) {
            g->range->runs[page].kind = CCMR__POOL_HANDLE;
        }
        page += g->range->runs[page].pages;
    }
    ccmr__pool_range_unlock(g->range);
    g->pieces[g->count++] = (ccmr__pool_piece){
        .address = ccmr__pool_page_address(g->range, g->page),
        .bytes = g->filled * g->range->unit,
        .segment = g->range->segment,
        .waits = g->waits};
}

/* Everything that is there, as one. Growth was whole: it has no gap. */
static ccmr__pool_piece together(const ccmr__pool_growth *g)
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
static void put_rest(ccmr__pool_growth *g, const ccmr__pool_piece *all,
                     uintptr_t address, size_t bytes, size_t *owed)
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
static ccmr_status cut(ccmr__pool_growth *g)
{
    ccmr__pool_set *set = &g->lane->set;
    ccmr__pool_request *of = g->of;
    ccmr__pool_piece all = together(g);
    uintptr_t from =
        (all.address + of->alignment - 1) & ~(uintptr_t)(of->alignment - 1);
    size_t front = from - all.address;
    size_t blocks = (all.bytes - front) / of->bytes;
    size_t owed = g->count + g->moved;

    assert(front < all.bytes && blocks > 0);
    blocks = blocks < of->run ? blocks : of->run;
    if (ccmr__pool_reserve_records(set, blocks + 2) != 0) {
        return ccmr__pool_fail_books();
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
static ccmr_status settle(ccmr__pool_growth *g, ccmr_status status)
{
    unsigned i;

    give_rest(g);
    ccmr__pool_note_peak(g->pool);
    ccmr__pool_lane_lock(g->lane);
    account(g);
    if (status == CCMR_SUCCESS && g->of != NULL) {
        status = cut(g);
    }
    ccmr__pool_lane_unlock(g->lane);
    for (i = 0; i < g->count; i++) {
        /* The new memory is the last one. */
        ccmr__pool_bring(g->lane, &g->pieces[i],
                         i + 1 < g->count ? 1 : 1 + g->moved);
    }
    return status;
}

/* The record of the new piece. */
static ccmr_status promise_record(ccmr__pool_growth *g)
{
    ccmr__pool_set *set = &g->lane->set;
    int there;

    ccmr__pool_lane_lock(g->lane);
    there = ccmr__pool_reserve_records(set, 1);
    if (there == 0) {
        set->owed++;
    }
    ccmr__pool_lane_unlock(g->lane);
    return there == 0 ? CCMR_SUCCESS : ccmr__pool_fail_books();
}

static ccmr_status grow(ccmr__pool_growth *g)
{
    ccmr_status status = promise_record(g);

    if (status != CCMR_SUCCESS) {
        return status;
    }
    status = ccmr__pool_find_place(g);
    status = settle(g, status == CCMR_SUCCESS ? ccmr__pool_fill(g) : status);
    if (status == CCMR_SUCCESS && g->follow) {
        ccmr__pool_request *of = g->of;

        status = ccmr__pool_follow(&of->piece.waits, of->lane, of->handle);
        if (status != CCMR_SUCCESS) {
            ccmr__pool_bring(of->lane, &of->piece, of->blocks);
        }
    }
    return status;
}

ccmr_status ccmr__pool_range_grow(ccmr__pool_request *of, size_t most,
                                  size_t step, int move)
{
    ccmr__pool *pool = of->pool;
    int follow = move && pool->options.follow && !pool->host_access;
    ccmr_status status;

    if (move) {
        ccmr__pool_settle_leaving(pool->range, 1);
    }
    do {
        ccmr__pool_growth g = {
            .of = of,
            .pool = pool,
            .range = pool->range,
            .lane = of->lane,
            .most = most,
            .step = step,
            .move = move,
            .follow = follow,
            .want = {.own = pool->host_access ? NULL : of->lane}};

        status = grow(&g);
        /* What was to be waited for cannot be, after all. */
    } while (status == CCMR_ERROR_BUSY && follow-- > 0);
    return status;
}

ccmr_status ccmr__pool_range_begin(ccmr__pool *pool, size_t bytes)
{
    ccmr__pool_range *range = pool->range;
    size_t hard = atomic_load_explicit(&pool->hard, memory_order_relaxed);
    ccmr__pool_growth g = {.pool = pool, .range = range, .lane = pool->common};
    ccmr_status status;

    g.page = range->top;
    g.pages = ccmr__pool_pages_for(range, bytes);
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
    return settle(&g, ccmr__pool_fill(&g));
}
