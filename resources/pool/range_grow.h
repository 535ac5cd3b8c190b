/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growth in a range, between its files.
 *
 *   range_place.c  where     range_fill.c  with what     range_grow.c  the rest
 */
#ifndef CCMR_RESOURCES_POOL_RANGE_GROW_H
#define CCMR_RESOURCES_POOL_RANGE_GROW_H

#include "lib/error.h"
#include "resources/pool/range.h"

typedef struct ccmr__pool_growth {
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
} ccmr__pool_growth;

/** Whole pages. CCMR__POOL_NO_PAGE: too many. */
static inline uint32_t ccmr__pool_pages_for(const ccmr__pool_range *range,
                                            size_t bytes)
{
    size_t pages = bytes / range->unit + (bytes % range->unit != 0);

    return pages < CCMR__POOL_NO_PAGE ? (uint32_t)pages : CCMR__POOL_NO_PAGE;
}

static inline ccmr_status ccmr__pool_fail_books(void)
{
    return ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                      "no memory for a pool's books");
}

/** Take the best place, and the extents that are free beside it.
 * CCMR_ERROR_BUSY: it takes more than may be new. */
ccmr_status ccmr__pool_find_place(ccmr__pool_growth *g);
/** Memory for all pages of the place; on an error for some. */
ccmr_status ccmr__pool_fill(ccmr__pool_growth *g);

#endif /* CCMR_RESOURCES_POOL_RANGE_GROW_H */
