/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lanes: what a pool knows of one stream.
 *
 *   frees that reached the lane    1 2 3 4 5 6 7 8 9      `freed` = 9
 *   events                             e1      e2         `covered` = 7
 *   known finished                 - - -                  `done` = 3
 *
 * A free that reaches the set gets the lane's next number. An event that is
 * recorded after the lane gave number n covers all up to n: it is `ready` for
 * them all. No events are recorded while a pool has seen one stream; then when
 * enough bytes are not covered, in a call that was given the stream, never for
 * each free. Memory that is not covered serves its own stream only, unless the
 * stream is registered: then whoever wants it records the event.
 *
 * Numbers only grow, also when a lane whose stream has gone serves another
 * stream later: what still waits for the old one's numbers finds them done.
 *
 * The lane without a stream (`pool->common`) holds memory that nobody's cache
 * or stream is near to: new segments, what retired streams left.
 *
 * Threads: `done` may be read by anyone at any time and only grows; the rest is
 * under `lock`. Lanes live as long as their pool.
 */
#ifndef CCMR_RESOURCES_POOL_LANE_H
#define CCMR_RESOURCES_POOL_LANE_H

#include <pthread.h>
#include <stdatomic.h>

#include "lib/stream.h"
#include "resources/pool/extent.h"

#define CCMR__POOL_EVENTS 8u

typedef struct ccmr__pool ccmr__pool;
typedef struct ccmr__pool_cache ccmr__pool_cache;

typedef struct ccmr__pool_mark {
    CUevent event;   /* made at first use, kept */
    uint64_t number; /* it covers all up to this one */
} ccmr__pool_mark;

struct ccmr__pool_lane {
    pthread_mutex_t lock;
    ccmr__pool *pool;
    uint64_t id; /* of the stream; 0: none. Under pool->lock */
    CUstream handle;
    int recordable; /* registered: an event may be recorded at any time */
    int retired;    /* no call will be given the stream any more */

    uint64_t freed;
    uint64_t covered;
    _Atomic uint64_t done;
    size_t uncovered_bytes; /* freed since the last record began */
    /* Recorded and not known finished, oldest first, in a ring. */
    ccmr__pool_mark marks[CCMR__POOL_EVENTS];
    unsigned first_mark;
    unsigned mark_count;

    ccmr__pool_set set;
    _Atomic size_t free_bytes; /* set.bytes, to be read without the lock */

    ccmr__pool_cache *caches; /* under pool->lock */
    ccmr__pool_lane *chain;   /* in the table of ids: pool->lock */
    ccmr__pool_lane *next;    /* all lanes, newest first; set once */
};

static inline void ccmr__pool_lane_lock(ccmr__pool_lane *lane)
{
    (void)pthread_mutex_lock(&lane->lock);
}

static inline void ccmr__pool_lane_unlock(ccmr__pool_lane *lane)
{
    atomic_store_explicit(&lane->free_bytes, lane->set.bytes,
                          memory_order_relaxed);
    (void)pthread_mutex_unlock(&lane->lock);
}

static inline int ccmr__pool_done(const ccmr__pool_lane *lane, uint64_t number)
{
    return number <= atomic_load_explicit(&lane->done, memory_order_acquire);
}

/** The lane of a stream, made at need (host memory alone). */
ccmr_status ccmr__pool_lane_of(ccmr__pool *pool, const ccmr__stream_use *use,
                               ccmr__pool_lane **lane);

/** Bring a piece of `blocks` blocks back to a lane; its waits are in it.
 * Never fails; may look for records elsewhere. Not under a lock. */
void ccmr__pool_bring(ccmr__pool_lane *lane, const ccmr__pool_piece *piece,
                      size_t blocks);

/* The rest asks the driver: in the device's context, no lock held. */

/** Record an event that covers all that was freed so far. `handle` is what
 * this call was given, or a recordable lane's own. */
ccmr_status ccmr__pool_record(ccmr__pool_lane *lane, CUstream handle);

/** Ask what is finished, at most `most` events. Returns 1 if that was news. */
int ccmr__pool_poll(ccmr__pool_lane *lane, unsigned most);

/**
 * Make `use`'s stream wait for all that is neither its own nor finished.
 * CCMR_ERROR_BUSY where that is not possible, since an event would have to be
 * recorded on a stream that this call was not given.
 */
ccmr_status ccmr__pool_follow(const ccmr__pool_waits *waits,
                              const ccmr__pool_lane *own, CUstream stream);

/** Wait here. CCMR_ERROR_BUSY as above. */
ccmr_status ccmr__pool_finish(const ccmr__pool_waits *waits);

/** Is all of it known finished? Asks nobody; drops what is. */
int ccmr__pool_settled(ccmr__pool_waits *waits);

#endif /* CCMR_RESOURCES_POOL_LANE_H */
