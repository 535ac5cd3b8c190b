/* SPDX-License-Identifier: Apache-2.0 */
/* Places in streams: what an event stands for, and what work waits for. */
#ifndef SIM_PLACES_H
#define SIM_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_stream;

/** A place in a stream: reached when `position` of its operations ran. */
struct sim_place {
    struct sim_stream *stream; /**< counted */
    uint64_t position;
};

/** Places, one a stream. */
struct sim_places {
    struct sim_place *items;
    size_t count, room;
};

/** Add a place unless it has been reached or a later one is there. */
bool sim_places_add(struct sim_places *places, struct sim_stream *stream,
                    uint64_t position);
void sim_places_clear(struct sim_places *places);

#endif
