/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of captured graphs, with capture=reserve.
 *
 *   capture  id of a capture, and whether its graph has gone
 *     fresh    lane: memory of the reserve that nobody has used
 *     parked   lane: memory that is the graph's until it has gone
 *     streams  lane for each stream of the capture: what was freed there
 *
 * A graph may run at any time and as often as somebody likes, until it, its
 * clones and all that was instantiated from them have gone. So memory that a
 * capture was given is its graph's alone for so long. It comes from segments
 * of its own, which are finished when they come: nothing in the graph could
 * wait for anything.
 *
 * These lanes have no stream, and what is in their sets waits for a number
 * that is not done: nobody else can take it, by no step of any search. When
 * the graph goes the numbers are done, and all of it is free memory like any
 * other. The graph retains a user object, whose destructor sets `gone` and
 * does nothing else; whoever next looks does the rest.
 *
 *                       freed in the capture          freed elsewhere, on S
 *   block of the graph  serves the same stream of     parked, and waits for S
 *                       that capture again
 *   any other           parked, and waits for what    as ever
 *                       the stream had to do before
 *
 * Streams of a capture are ordered by events that cannot be asked about, so
 * that what one frees serves no other.
 */
#ifndef CCMR_RESOURCES_POOL_CAPTURE_H
#define CCMR_RESOURCES_POOL_CAPTURE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cucoremr/resource.h>

#include "resources/pool/extent.h"

typedef struct ccmr__pool ccmr__pool;

/* What one stream freed in a capture. */
typedef struct ccmr__pool_captured {
    struct ccmr__pool_captured *next;
    uint64_t key; /* its handle, or the thread whose token it is */
    ccmr__pool_lane *lane;
} ccmr__pool_captured;

/* All under pool->capturing, but `gone`. */
typedef struct ccmr__pool_capture {
    struct ccmr__pool_capture *next;
    uint64_t id; /* of the capture */
    /* Written by the destructor, as the last thing it does: then it is the
     * pool's to free. */
    atomic_int gone;
    unsigned users; /* calls at work */
    ccmr__pool_lane *fresh;
    ccmr__pool_lane *parked;
    ccmr__pool_captured *streams;
} ccmr__pool_capture;

/** What the option takes: a stream, a lane, a record for a free. On an error
 * ccmr__pool_captures_end() is called all the same. */
ccmr_status ccmr__pool_captures_begin(ccmr__pool *pool);
/** No graph has memory any more. */
void ccmr__pool_captures_end(ccmr__pool *pool);

/** An allocation on a stream that captures; CCMR_ERROR_CAPTURING where
 * its graph cannot be told. */
ccmr_status ccmr__pool_capture_allocate(ccmr__pool *pool, size_t bytes,
                                        size_t alignment, ccmr_stream stream,
                                        void **ptr);
/** A free on one. The piece has been located. */
ccmr_status ccmr__pool_capture_free(ccmr__pool *pool, ccmr__pool_piece *piece,
                                    ccmr_stream stream);

/** A block of a graph's segment is freed elsewhere: on a lane's stream, or
 * (NULL) as ready. 1; or 0 if the graph has gone: then it is like any other. */
int ccmr__pool_free_reserved(ccmr__pool *pool, ccmr__pool_piece *piece,
                             ccmr__pool_lane *lane);

/** Memory of graphs that have gone is free. Returns 1 while there are others.
 * Under no lock. */
int ccmr__pool_captures_settle(ccmr__pool *pool);

/** Bytes that are free, but for graphs. */
size_t ccmr__pool_captured_bytes(ccmr__pool *pool);

/* ---- linger.c: pools that have been released while graphs had their memory --- */

/** The pool waits until its graphs have gone; all else goes back. */
void ccmr__pool_linger(ccmr__pool *pool);
/** Pools whose graphs have gone in the meantime end. Under no lock. */
void ccmr__pool_sweep(void);
/** kind.c: all of a pool goes, and its upstream's reference. */
void ccmr__pool_finish_off(ccmr__pool *pool);

#endif /* CCMR_RESOURCES_POOL_CAPTURE_H */
