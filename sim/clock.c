/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/clock.h"

#include <stdlib.h>

#include "sim/state.h"

struct sim_line *sim_line_new(struct sim_stream *stream, uint64_t id)
{
    struct sim_line *line = calloc(1, sizeof *line);

    if (line != NULL) {
        line->references = 1;
        line->stream = stream;
        line->id = id;
    }
    return line;
}

void sim_line_hold(struct sim_line *line)
{
    line->references++;
}

void sim_line_drop(struct sim_line *line)
{
    if (--line->references == 0) {
        free(line);
    }
}

/* Nobody will ask about the place: pools ask what was not seen, of streams
 * that are there; the checker of order asks what is not known to be done. */
static bool is_past(const struct sim_line *line, uint64_t position)
{
    return (position <= line->seen || line->stream == NULL) &&
           (position <= line->done || !sim.order);
}

static void prune(struct sim_clock *clock)
{
    size_t kept = 0;
    size_t i;

    for (i = 0; i < clock->count; i++) {
        struct sim_tick tick = clock->ticks[i];

        if (is_past(tick.line, tick.position)) {
            sim_line_drop(tick.line);
        } else {
            clock->ticks[kept++] = tick;
        }
    }
    clock->count = kept;
}

static bool grow(struct sim_clock *clock)
{
    size_t room = clock->room != 0 ? clock->room * 2 : 4;
    struct sim_tick *ticks;

    prune(clock);
    if (clock->count < clock->room / 2) {
        return true;
    }
    ticks = realloc(clock->ticks, room * sizeof *ticks);
    if (ticks == NULL) {
        return clock->count < clock->room;
    }
    clock->ticks = ticks;
    clock->room = room;
    return true;
}

bool sim_clock_add(struct sim_clock *clock, struct sim_line *line,
                   uint64_t position)
{
    size_t i;

    if (is_past(line, position)) {
        return true;
    }
    for (i = 0; i < clock->count; i++) {
        if (clock->ticks[i].line == line) {
            if (clock->ticks[i].position < position) {
                clock->ticks[i].position = position;
            }
            return true;
        }
    }
    if (clock->count == clock->room && !grow(clock)) {
        return false;
    }
    sim_line_hold(line);
    clock->ticks[clock->count].line = line;
    clock->ticks[clock->count].position = position;
    clock->count++;
    return true;
}

bool sim_clock_join(struct sim_clock *into, const struct sim_clock *from)
{
    bool all = true;
    size_t i;

    for (i = 0; i < from->count; i++) {
        all = sim_clock_add(into, from->ticks[i].line,
                            from->ticks[i].position) &&
              all;
    }
    return all;
}

bool sim_clock_covers(const struct sim_clock *clock,
                      const struct sim_line *line, uint64_t position)
{
    size_t i;

    for (i = 0; i < clock->count; i++) {
        if (clock->ticks[i].line == line) {
            return clock->ticks[i].position >= position;
        }
    }
    return false;
}

void sim_clock_done(const struct sim_clock *clock)
{
    size_t i;

    for (i = 0; i < clock->count; i++) {
        if (clock->ticks[i].line->done < clock->ticks[i].position) {
            clock->ticks[i].line->done = clock->ticks[i].position;
        }
    }
}

void sim_clock_empty(struct sim_clock *clock)
{
    while (clock->count > 0) {
        sim_line_drop(clock->ticks[--clock->count].line);
    }
}

void sim_clock_clear(struct sim_clock *clock)
{
    sim_clock_empty(clock);
    free(clock->ticks);
    *clock = (struct sim_clock){.ticks = NULL};
}
