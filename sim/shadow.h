/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shadow of memory: for each range that somebody owns, since when, and by
 * which work it was used since.
 *
 *     spans, which never overlap:
 *     |  given  |       block        |   freed   |     given    |
 *     event: (stream a, 4) handed out, thread 1, call 17
 *     uses:  (stream a, 6) cuMemsetD8Async ..., (stream b, 2) ...
 *
 * Spans are found by keys, which follow the memory itself: an address where
 * that is bound to its memory for good.
 *
 * Guarded by the simulator's lock.
 */
#ifndef SIM_SHADOW_H
#define SIM_SHADOW_H

#include "sim/clock.h"
#include "sim/sim.h"

enum sim_span_state {
    SIM_SPAN_GIVEN, /**< the driver gave it to the program */
    SIM_SPAN_BLOCK, /**< a test said that it was handed out */
    SIM_SPAN_FREED  /**< and that it was freed */
};

/** Something that was done to memory, in the order of a stream. */
struct sim_use {
    struct sim_line *line; /**< counted; NULL: by the host, at once */
    ccmr_sim_party party;
    uint64_t noted; /**< up to there the next owner's waits are not the
                         free's matter */
    bool held;      /**< the same up to the free, whenever that is */
};

struct sim_span {
    struct sim_span *left, *right; /**< treap */
    uint64_t priority;
    uint64_t start, end; /**< keys */
    enum sim_span_state state;
    struct sim_use event; /**< what made it so */
    ccmr_sim_party last;  /**< freed: the last use there before */
    struct sim_use *uses; /**< since then, one a line */
    size_t count, room;
    struct sim_span *was;  /**< freed: what it was before; or NULL */
    struct sim_span *next; /**< of those taken out */
};

/** The span with the lowest key that ends behind `key`, or NULL. */
struct sim_span *sim_span_after(uint64_t key);
/** Take all of [start, end) out: a list by key. False without memory. A span
 *  that is cut forgets what it was. */
bool sim_spans_take(uint64_t start, uint64_t end, struct sim_span **list);
/** A span that is in no tree; NULL without memory. */
struct sim_span *sim_span_new(uint64_t start, uint64_t end,
                              enum sim_span_state state);
/** Put one in; nothing may be there. */
void sim_span_put(struct sim_span *span);
void sim_spans_free(struct sim_span *list);

/** The use of that line, made at need; NULL without memory. */
struct sim_use *sim_span_use(struct sim_span *span, struct sim_line *line);
/** Forget the i-th use. */
void sim_span_forget(struct sim_span *span, size_t i);

void sim_shadow_clear(void);

#endif
