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
/* No handle is more than such a part. */
#define PARTS_OF_A_BUDGET 4096u
#define PARTS_OF_A_POOL 32u

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

typedef struct growth {
    ccmr__pool_request *of; /* NULL: for nobody yet */
    ccmr__pool *pool;
    ccmr__pool_range *range;
    ccmr__pool_lane *lane;  /* where it comes to */
    size_t most;            /* bytes that may be new */
    size_t step;            /* bytes that are taken at the top */
    int move;               /* free handles rather than new ones */
    int follow;             /* those that the stream can wait for, too */
    ccmr__pool_wanted want; /* what may be beside it */

    uint32_t page; /* the new ones */
    uint32_t pages;
    uint32_t filled;        /* of them, with memory */
    size_t counted;         /* bytes that are reserved for it */
    size_t fresh;           /* of them, that came */
    size_t moved;           /* handles that came from elsewhere */
    int nothing[2];         /* to move is left, without and with a wait */
    int closed;             /* there is a piece right behind it */
    ccmr__pool_waits waits; /* of all of it */
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
    one.from = from;
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
    one.from = from;
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

/* The part of an extent that the request will be in: what else is free there
 * may have to move. Returns 0, or -1 without host memory. */
static int take_side(growth *g, ccmr__pool_lane *lane,
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

/* The pages of a place, and what is beside them. Under the lane's lock and the
 * range's. */
static ccmr_status take_place(growth *g, ccmr__pool_lane *lane,
                              const spot *best)
{
    if (take_side(g, lane, best->before, best->from) != 0 ||
        take_side(g, lane, best->after, best->from) != 0) {
        return fail_books();
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
static ccmr_status claim(growth *g, ccmr__pool_lane *lane)
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

/* Count bytes as reserved that the growth will need. */
static ccmr_status count(growth *g, size_t bytes)
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
static uint32_t largest_now(const growth *g)
{
    ccmr__pool *pool = g->pool;
    size_t hard = atomic_load_explicit(&pool->hard, memory_order_relaxed);
    size_t bytes = hard != 0 ? hard / PARTS_OF_A_BUDGET
                             : atomic_load_explicit(&pool->reserved,
                                                    memory_order_relaxed) /
                                   PARTS_OF_A_POOL;
    uint32_t pages = g->range->most;

    while (pool->options.handle == 0 && pages > 1 &&
           pages * g->range->unit > bytes) {
        pages /= 2;
    }
    return pages;
}

/* One new handle: the largest power of two that fits. */
static ccmr_status commit(growth *g)
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

static ccmr__pool_sought seek(const growth *g, int follow)
{
    ccmr__pool_sought sought = {.least = 1,
                                .most = g->pages - g->filled,
                                .want = g->want,
                                .beside = &g->waits};

    sought.want.follow = follow;
    return sought;
}

static ccmr_status move(growth *g, ccmr__pool_taken *taken)
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

/* A free handle that is no larger than what is left. CCMR_ERROR_BUSY: there is
 * none. */
static ccmr_status move_in(growth *g)
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

/* Pages behind those that are the growth's. */
static int take_more(growth *g, uint32_t pages)
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
static ccmr_status move_over(growth *g)
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
        ccmr__pool_bring(taken.lane, &taken.piece, 1);
        break;
    }
    return CCMR_ERROR_BUSY;
}

/* A finished one goes back to make room for another size. */
static ccmr_status drop(growth *g)
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
static ccmr_status fill_some(growth *g)
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

static ccmr_status fill(growth *g)
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

/* ---- and then ----------------------------------------------------------------------- */

/* Pages that got no memory. */
static void give_rest(growth *g)
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
static void account(growth *g)
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
        g->range->runs[page].kind = CCMR__POOL_HANDLE;
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
    size_t owed = g->count + g->moved;

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

static ccmr_status grow(growth *g)
{
    ccmr_status status = promise_record(g);

    if (status != CCMR_SUCCESS) {
        return status;
    }
    status = find_place(g);
    status = settle(g, status == CCMR_SUCCESS ? fill(g) : status);
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
        growth g = {.of = of,
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
