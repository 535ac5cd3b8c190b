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
 * them all. While a pool has seen one stream no events are recorded if it is
 * registered, and few if it is not; then when
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
/* Marks that a lane is made with, so that frees make none: more than what is
 * recorded, for calls that are about to record. */
#define CCMR__POOL_MARKS (CCMR__POOL_EVENTS + 8u)

typedef struct ccmr__pool ccmr__pool;
typedef struct ccmr__pool_cache ccmr__pool_cache;

/* An event. It stays its lane's, so that whoever is about to wait for it waits
 * for a later record of the same stream at worst. */
typedef struct ccmr__pool_mark {
    CUevent event;   /* NULL: not made yet */
    uint64_t number; /* it covers all up to this one */
    struct ccmr__pool_mark *next;
} ccmr__pool_mark;

/* Work up to the number on each of some lanes comes before all that a stream
 * will do. */
#define CCMR__POOL_ORDERS 16u
typedef struct ccmr__pool_orders {
    unsigned count;
    unsigned next; /* is replaced next, once there are as many as fit */
    ccmr__pool_lane *lanes[CCMR__POOL_ORDERS];
    uint64_t numbers[CCMR__POOL_ORDERS];
} ccmr__pool_orders;

struct ccmr__pool_lane {
    pthread_mutex_t lock;
    ccmr__pool *pool;
    uint64_t id; /* of the stream; 0: none. pool->lock */
    ccmr__stream_record
        *_Atomic record; /* registered; ccmr__stream_borrow() */
    unsigned users;      /* calls at work on it: pool->lock */

    int kept; /* a graph's: what waits for it waits until that has gone */
    uint64_t freed;
    _Atomic uint64_t covered;
    _Atomic uint64_t done;
    _Atomic size_t uncovered_bytes; /* freed since the last record began */
    /* Recorded and not known finished, oldest first; most of them
     * CCMR__POOL_EVENTS. */
    ccmr__pool_mark *oldest;
    ccmr__pool_mark *newest;
    unsigned mark_count;
    ccmr__pool_mark *spare_marks;
    ccmr__pool_mark marks[CCMR__POOL_MARKS]; /* those it is made with */

    ccmr__pool_orders after; /* what the stream has been made to wait for */

    ccmr__pool_set set;
    _Atomic size_t free_bytes; /* set.bytes, to be read without the lock */

    ccmr__pool_cache *caches; /* under pool->lock */
    ccmr__pool_lane *chain;   /* in the table of ids, or idle: pool->lock */
    ccmr__pool_lane *next;    /* all lanes, newest first; set once */
};

static inline void ccmr__pool_lane_lock(ccmr__pool_lane *lane)
{
    (void)pthread_mutex_lock(&lane->lock);
}

static inline void ccmr__pool_lane_unlock(ccmr__pool_lane *lane)
{
    /* What a graph has is free for nobody else. */
    atomic_store_explicit(&lane->free_bytes, lane->kept ? 0 : lane->set.bytes,
                          memory_order_relaxed);
    (void)pthread_mutex_unlock(&lane->lock);
}

static inline int ccmr__pool_done(const ccmr__pool_lane *lane, uint64_t number)
{
    return number <= atomic_load_explicit(&lane->done, memory_order_acquire);
}

/**
 * The lane of a stream, made at need (host memory alone). It is in use until
 * it is put back: no other stream gets it meanwhile, nor while caches are its
 * own. Locks pool->lock.
 */
ccmr_status ccmr__pool_lane_get(ccmr__pool *pool, const ccmr__stream_use *use,
                                ccmr__stream_record *record,
                                ccmr__pool_lane **lane);
/** The same, only if there is one: else NULL. */
ccmr__pool_lane *ccmr__pool_lane_known(ccmr__pool *pool, uint64_t id);
void ccmr__pool_lane_put(ccmr__pool_lane *lane);

/** A lane without a stream; NULL without memory. Not in the pool's list. */
ccmr__pool_lane *ccmr__pool_lane_make(ccmr__pool *pool);
/** Destroys its events as well; in the device's context. */
void ccmr__pool_lane_free(ccmr__pool_lane *lane);

/** A lane of the pool without a stream: NULL without memory. Locks
 * pool->lock. */
ccmr__pool_lane *ccmr__pool_lane_bare(ccmr__pool *pool);
/** The same, and its latest number is not done until it is released: nobody
 * takes what waits for it, and no wait for the device ends it. */
ccmr__pool_lane *ccmr__pool_lane_keep(ccmr__pool *pool);
void ccmr__pool_lane_release(ccmr__pool_lane *lane);

/** The stream goes: no call will find the lane by its id. Under pool->lock. */
void ccmr__pool_lane_retire(ccmr__pool_lane *lane);

/** Ask whether lanes whose stream has gone are finished, so that they can serve
 * others: a few. In a scope, no lock held. */
void ccmr__pool_poll_idle(ccmr__pool *pool);

/** Bring a piece of `blocks` blocks back to a lane; its waits are in it.
 * Never fails; may look for records elsewhere. Not under a lock. */
void ccmr__pool_bring(ccmr__pool_lane *lane, const ccmr__pool_piece *piece,
                      size_t blocks);

/** Spare records leave a lane, at most `most`, and are the call's: how many.
 * Under the lane's lock. */
size_t ccmr__pool_carry(ccmr__pool_lane *lane, size_t most,
                        ccmr__pool_extent **records);
/** And come to another. Not under a lock. */
void ccmr__pool_carried(ccmr__pool_lane *lane, ccmr__pool_extent *records,
                        size_t count);

/** Is all of it known finished? Asks nobody; drops what is. */
int ccmr__pool_settled(ccmr__pool_waits *waits);

/** Is there an event for a number, or can one be had without the stream? A
 * guess: it may have changed when it is used. */
static inline int ccmr__pool_coverable(ccmr__pool_lane *lane, uint64_t number)
{
    return number <=
               atomic_load_explicit(&lane->covered, memory_order_relaxed) ||
           atomic_load_explicit(&lane->record, memory_order_relaxed) != NULL;
}

/* ---- order.c: what a stream comes after ------------------------------------- */

/** Is all up to a number on a lane before what the stream will do? */
int ccmr__pool_is_after(const ccmr__pool_orders *after,
                        const ccmr__pool_lane *lane, uint64_t number);
/** The stream has been made to wait. Locks the lane. */
void ccmr__pool_note_after(ccmr__pool_lane *own, ccmr__pool_lane *lane,
                           uint64_t number);
/** What a lane's stream is after, by now. Locks the lane. */
void ccmr__pool_copy_after(ccmr__pool_lane *own, ccmr__pool_orders *after);
/** What the stream is after becomes a wait for the stream itself, as of now.
 * Returns 1 if that changed anything. Under the lane's lock. */
int ccmr__pool_fold_waits(ccmr__pool_lane *own, ccmr__pool_waits *waits,
                          uint64_t *number);

/** Somebody would have memory that waits for the lane, and there is no event for
 * it: the next call on its stream that looks records one. Any lock. */
void ccmr__pool_want_event(ccmr__pool_lane *lane);

static inline int ccmr__pool_event_wanted(const ccmr__pool_lane *lane)
{
    return atomic_load_explicit(&lane->uncovered_bytes,
                                memory_order_relaxed) >= SIZE_MAX / 2;
}

/* The rest asks the driver: in the device's context and in relaxed capture
 * mode, no lock held. */

/** Have one more spare event, so that a record later need not make it. */
ccmr_status ccmr__pool_spare_event(ccmr__pool_lane *lane);

/** Is an event at hand, record it on a stream that this call was given, and is
 * no token. 1 if so. In no scope: no context is needed for it, and no capture
 * minds (tests/fidelity: no_context, other_context, capture_*). */
int ccmr__pool_record_at_hand(ccmr__pool_lane *lane, CUstream stream);

/** Record an event that covers all that was freed so far, on a stream that
 * this call was given. */
ccmr_status ccmr__pool_record(ccmr__pool_lane *lane, CUstream stream);

/** The same on the lane's own, registered stream. CCMR_ERROR_BUSY where it
 * is not registered or captures. */
ccmr_status ccmr__pool_record_own(ccmr__pool_lane *lane);

/** Ask what is finished, at most `most` events. Returns 1 if that was news. */
int ccmr__pool_poll(ccmr__pool_lane *lane, unsigned most);

/**
 * Make a stream wait for all that is neither its own nor finished, and that it
 * has not been made to wait for before.
 * CCMR_ERROR_BUSY where that is not possible, since an event would have to be
 * recorded on a stream that this call was not given.
 */
ccmr_status ccmr__pool_follow(const ccmr__pool_waits *waits,
                              ccmr__pool_lane *own, CUstream stream);

/** Wait here for work up to a number. CCMR_ERROR_BUSY as above. */
ccmr_status ccmr__pool_finish(ccmr__pool_lane *lane, uint64_t number);

/**
 * Wait here for everything that was freed on all lanes, and with it for all
 * other work of the device: for what no event covers and none can be recorded
 * for. Disturbs no capture.
 */
ccmr_status ccmr__pool_finish_device(ccmr__pool *pool);

#endif /* CCMR_RESOURCES_POOL_LANE_H */
