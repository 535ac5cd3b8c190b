/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/places.h"

#include <stdlib.h>

#include "sim/stream.h"

static void prune(struct sim_places *places)
{
    size_t kept = 0;
    size_t i;

    for (i = 0; i < places->count; i++) {
        struct sim_place place = places->items[i];

        if (sim_reached(place.stream, place.position)) {
            sim_stream_drop(place.stream);
        } else {
            places->items[kept++] = place;
        }
    }
    places->count = kept;
}

bool sim_places_add(struct sim_places *places, struct sim_stream *stream,
                    uint64_t position)
{
    size_t i;

    if (sim_reached(stream, position)) {
        return true;
    }
    for (i = 0; i < places->count; i++) {
        if (places->items[i].stream == stream) {
            if (places->items[i].position < position) {
                places->items[i].position = position;
            }
            return true;
        }
    }
    if (places->count == places->room) {
        prune(places);
    }
    if (places->count == places->room) {
        size_t room = places->room != 0 ? places->room * 2 : 4;
        struct sim_place *items = realloc(places->items, room * sizeof *items);

        if (items == NULL) {
            return false;
        }
        places->items = items;
        places->room = room;
    }
    sim_stream_hold(stream);
    places->items[places->count].stream = stream;
    places->items[places->count].position = position;
    places->count++;
    return true;
}

void sim_places_clear(struct sim_places *places)
{
    while (places->count > 0) {
        sim_stream_drop(places->items[--places->count].stream);
    }
    free(places->items);
    *places = (struct sim_places){.items = NULL};
}
