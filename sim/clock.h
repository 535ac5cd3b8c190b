/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clocks: what work is ordered behind, by the rules of CUDA alone, whatever
 * ran when.
 *
 *   stream a: 1 2 3 4 ...          line a: done 2, seen 2
 *   stream b: 1 2 3 ...            line b: done 0, seen 0
 *             clock of b = {a: 3}  b's next work follows a's first three
 *
 * A line stands for the work of one stream, and outlives it. A clock is a list
 * of places in lines, one a line. All calls are made in one order, by the host;
 * what the host knows to be done (it waited, or it asked and the answer was
 * yes) comes before everything enqueued later, and so is kept with the lines
 * alone: no clock needs to tell it.
 *
 * Guarded by the simulator's lock.
 */
#ifndef SIM_CLOCK_H
#define SIM_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_stream;

struct sim_line {
    unsigned references;
    struct sim_stream *stream; /**< NULL once that is deleted */
    uint64_t id;               /**< the stream's */
    uint64_t done;             /**< the host knows: done up to there */
    /** As a pool of the driver counts: the host has waited for it. */
    uint64_t seen;
};

/** A place: so many of the stream's operations. */
struct sim_tick {
    struct sim_line *line; /**< counted */
    uint64_t position;
};

struct sim_clock {
    struct sim_tick *ticks;
    size_t count, room;
};

struct sim_line *sim_line_new(struct sim_stream *stream, uint64_t id);
void sim_line_hold(struct sim_line *line);
void sim_line_drop(struct sim_line *line);

/* The functions that return bool return false without host memory. */

/** Put a place in, unless a later one of its line is there or the host knows
 *  of it anyway. */
bool sim_clock_add(struct sim_clock *clock, struct sim_line *line,
                   uint64_t position);
bool sim_clock_join(struct sim_clock *into, const struct sim_clock *from);
/** Is that place in it? */
bool sim_clock_covers(const struct sim_clock *clock,
                      const struct sim_line *line, uint64_t position);
/** The host knows that all of its places were reached. */
void sim_clock_done(const struct sim_clock *clock);
/** Forget all places, keep the room for others. */
void sim_clock_empty(struct sim_clock *clock);
void sim_clock_clear(struct sim_clock *clock);

#endif
