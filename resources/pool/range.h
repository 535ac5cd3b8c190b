/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the upstream offers address ranges, a pool works on one of them, and
 * puts memory where a request needs it: behind or between what is free there.
 *
 *   pages   |hhhhhhhh|hh|....|hh|ll|hhhh|................
 *            handle      hole    |       ^top
 *                                leaving
 *
 * A handle is one commit: whole pages (of the upstream's granularity), which
 * come and go together. Below `top` the range is tiled by runs of pages; above
 * nothing has been yet. The table has a record for each page: the first one of
 * a run says what it is, the last one how long it is, so that holes merge.
 * Blocks and extents know nothing of handles: they run over their borders.
 *
 * Only memory that is there is in sets, blocks or on its way; so a handle
 * whose whole run lies in one extent is free, and can be taken out of it.
 *
 * A free handle moves to where it is needed: it gets a second address there,
 * and leaves the first one. Whoever gets the new one waits for what the memory
 * waits for anyway; the old one, which work may still use, stays mapped until
 * that is known finished, and is a hole from then on. So nothing waits for a
 * move, and it costs no memory.
 *
 * Threads: under `lock`, the last one of the pool's order. None of it is held
 * over a call of the upstream: pages that a call is at work on are `taken`, or,
 * while the books count them, `going`, which nobody pins: both kinds are given
 * under the same hold of the lock in which the handle was found.
 */
#ifndef CCMR_RESOURCES_POOL_RANGE_H
#define CCMR_RESOURCES_POOL_RANGE_H

#include <pthread.h>
#include <stdatomic.h>

#include "resources/pool/pool.h"

#define CCMR__POOL_NO_PAGE UINT32_MAX

typedef enum ccmr__pool_run_kind {
    CCMR__POOL_INNER = 0, /* no run begins here */
    CCMR__POOL_HOLE,      /* no memory */
    CCMR__POOL_TAKEN,     /* some call's, with memory or without */
    CCMR__POOL_HANDLE,    /* a handle that the pool's books count */
    CCMR__POOL_PINNED,    /* the same, and it stays: see pin.h */
    CCMR__POOL_GOING      /* the same, and a call moves it or gives it back */
} ccmr__pool_run_kind;

typedef struct ccmr__pool_run {
    uint32_t kind;
    uint32_t pages;    /* of the run that begins here */
    uint32_t back;     /* of the run that ends here */
    uint32_t next;     /* holes, in no order */
    uint32_t previous; /* of a hole */
    uint32_t pins;     /* of a pinned handle */
} ccmr__pool_run;

/* An address that a handle has left. */
typedef struct ccmr__pool_leaving {
    struct ccmr__pool_leaving *next;
    uint32_t page;
    uint32_t pages;
    uint32_t now; /* the page where the handle is counted */
    ccmr__pool_waits waits;
} ccmr__pool_leaving;

struct ccmr__pool_range {
    /* Fixed. */
    ccmr__pool *pool;
    ccmr__pool_segment *segment; /* all of it */
    uintptr_t base;
    size_t unit;    /* bytes of a page */
    uint32_t pages; /* of the range */
    uint32_t most;  /* of a handle; a power of two */

    pthread_mutex_t lock;
    ccmr__pool_run *runs;
    uint32_t holes; /* the first one */
    uint32_t top;   /* pages that are tiled */
    ccmr__pool_leaving *leaving;
    _Atomic size_t end; /* bytes below the highest top there was */
};

static inline uintptr_t ccmr__pool_page_address(const ccmr__pool_range *range,
                                                size_t page)
{
    return range->base + page * range->unit;
}

static inline uint32_t ccmr__pool_page_of(const ccmr__pool_range *range,
                                          uintptr_t address)
{
    return (uint32_t)((address - range->base) / range->unit);
}

static inline void ccmr__pool_range_lock(ccmr__pool_range *range)
{
    (void)pthread_mutex_lock(&range->lock);
}

static inline void ccmr__pool_range_unlock(ccmr__pool_range *range)
{
    (void)pthread_mutex_unlock(&range->lock);
}

/* ---- range.c: the table. Under the lock ----------------------------------- */

/** Take pages out of the hole that they lie in, or from `top` on. */
void ccmr__pool_take_pages(ccmr__pool_range *range, uint32_t page,
                           uint32_t pages);
/** Runs that are no holes, side by side, become (part of) one. */
void ccmr__pool_give_pages(ccmr__pool_range *range, uint32_t page,
                           uint32_t pages);
/** Some pages of a run become one of another kind; what is behind them stays
 * as it was. */
void ccmr__pool_mark_pages(ccmr__pool_range *range, uint32_t page,
                           uint32_t pages, ccmr__pool_run_kind kind);

/** All handles of some pages become another kind of handle. */
void ccmr__pool_mark_handles(ccmr__pool_range *range, uint32_t page,
                             uint32_t pages, ccmr__pool_run_kind kind);

/** Two taken runs side by side become one. */
void ccmr__pool_join_pages(ccmr__pool_range *range, uint32_t page,
                           uint32_t pages, uint32_t more);

/** The first handle that lies wholly in [address, address + bytes), from `page`
 * on; CCMR__POOL_NO_PAGE: none. All of that is memory. */
uint32_t ccmr__pool_first_handle(const ccmr__pool_range *range,
                                 uintptr_t address, size_t bytes,
                                 uint32_t page);

/** The first page of the handle that a page lies in; CCMR__POOL_NO_PAGE where
 * that is none. */
uint32_t ccmr__pool_handle_at(const ccmr__pool_range *range, uint32_t page);

/** Pages of pinned handles that lie wholly in [address, address + bytes), which
 * is all memory. */
size_t ccmr__pool_pinned_pages(const ccmr__pool_range *range,
                               uintptr_t address, size_t bytes);

/** Sum of the pins of all handles. */
size_t ccmr__pool_pins_of_handles(const ccmr__pool_range *range);

/* ---- range_move.c ----------------------------------------------------------- */

/* Which free handle is wanted. */
typedef struct ccmr__pool_sought {
    uint32_t least; /* pages */
    uint32_t most;
    int small; /* rather a small one */
    int whole; /* with no other address */
    ccmr__pool_wanted want;
    const ccmr__pool_waits *beside; /* what it waits for fits in with these */
} ccmr__pool_sought;

/* A free handle out of its lane's set. */
typedef struct ccmr__pool_taken {
    ccmr__pool_lane *lane;
    ccmr__pool_piece piece;
    uint32_t page;
    uint32_t pages;
} ccmr__pool_taken;

/** Take a free handle: of the first lane's, the common one, or any. 1, or 0
 * where there is none. It is `going`. */
int ccmr__pool_take_handle(ccmr__pool_range *range, ccmr__pool_lane *first,
                           const ccmr__pool_sought *sought,
                           ccmr__pool_taken *taken);
/** It goes back to its lane, as it was. */
void ccmr__pool_bring_handle(ccmr__pool_range *range, ccmr__pool_taken *taken);
/** Give the handle a second address, at pages that are the caller's, and have
 * it leave the first. Its piece is owed as before, and has the new address. On
 * an error it went back to its lane. */
ccmr_status ccmr__pool_move_handle(ccmr__pool_range *range,
                                   ccmr__pool_taken *taken, uint32_t to);
/** Give a taken handle back to the upstream. On an error it went back to its
 * lane. */
ccmr_status ccmr__pool_drop_handle(ccmr__pool_range *range,
                                   ccmr__pool_taken *taken);
/** Take addresses down that handles have left and no work uses, as far as is
 * known, or, with `ask`, as the driver says. In a scope. */
void ccmr__pool_settle_leaving(ccmr__pool_range *range, int ask);
int ccmr__pool_any_leaving(ccmr__pool_range *range);
/** Has a handle other addresses? Under the lock. */
int ccmr__pool_is_elsewhere(const ccmr__pool_range *range, uint32_t page);

/* ---- range_give.c ----------------------------------------------------------------- */

/** The upstream has a handle back, which was out of a lane. */
void ccmr__pool_forget_handle(ccmr__pool_range *range, ccmr__pool_lane *lane,
                              uint32_t page, uint32_t pages);

/* ---- range.c ------------------------------------------------------------------- */

/** Cut [address, address + bytes) out of an extent; its owed to the piece,
 * once. Under the lock of the set's lane. Returns 0, or -1 without host
 * memory; then nothing was changed. */
int ccmr__pool_cut(ccmr__pool_set *set, ccmr__pool_extent *extent,
                   uintptr_t address, size_t bytes, ccmr__pool_piece *piece);

/** The first extent of the first bin that can have some of so many bytes;
 * ccmr__pool_next() goes on. */
ccmr__pool_extent *ccmr__pool_first_from(ccmr__pool_set *set, size_t bytes);

/** Bytes of all handles that the books count. */
size_t ccmr__pool_range_bytes(ccmr__pool_range *range);

#endif /* CCMR_RESOURCES_POOL_RANGE_H */
