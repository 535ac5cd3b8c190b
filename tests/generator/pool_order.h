/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The subpool's events: what a free block waits for. All of it under the
 * pool's lock, in the device's context.
 */
#ifndef CCMR_TESTS_GENERATOR_POOL_ORDER_H
#define CCMR_TESTS_GENERATOR_POOL_ORDER_H

#include <cucoremr/resource.h>

#include "tests/generator/broken_pool.h"
#include "tests/support/api.h"

#define POOL_MOST_WAITS 8u

/* An event that several blocks may wait for. */
typedef struct mark {
    CUevent event;
    unsigned references;
    uint64_t serial; /* of the record: later ones cover earlier ones */
} mark;

/* Work up to `after` on a stream. */
typedef struct pool_wait {
    uint64_t id; /* of the stream */
    CUstream handle;
    mark *after;
    int late; /* it has not been recorded yet */
} pool_wait;

typedef struct waits {
    unsigned count;
    pool_wait items[POOL_MOST_WAITS];
} waits;

/* A stream as a call sees it. */
typedef struct caller {
    CUstream handle;
    uint64_t id;
} caller;

/* Bound to the device, as every call of the pool is. */
typedef struct scope {
    CUstreamCaptureMode mode;
    int relaxed;
    int pushed;
} scope;

ccmr_status scope_enter(scope *s, CUcontext context, pool_fault fault,
                        int freeing);
void scope_leave(scope *s);

/* What the stream is; refuses those that capture and another device's. */
ccmr_status caller_find(caller *c, ccmr_stream stream, int device,
                        pool_fault fault);

mark *mark_new(void); /* NULL: no memory */
ccmr_status mark_record(mark *m, CUstream stream);
void mark_drop(mark *m);

/* Takes over a reference of the mark. 0: there is no room. */
int waits_add(waits *w, const pool_wait *one);
/* All of `more` as well; 0: there is no room, nothing was added. */
int waits_join(waits *w, const waits *more);
void waits_copy(waits *to, const waits *from);
void waits_clear(waits *w);
/* Record the events that have not been: those of one stream, or all (NULL). */
ccmr_status waits_record(waits *w, CUstream only);
/* Let the stream wait for all that is not its own. */
ccmr_status waits_for_stream(waits *w, const caller *c);
/* Has all of it been done? */
int waits_finished(const waits *w);
/* The host waits. */
ccmr_status waits_for_host(waits *w, pool_fault fault);

#endif
