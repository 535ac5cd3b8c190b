/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/map.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 64

static size_t place_of(const map *in, uint64_t key)
{
    uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15);

    return (size_t)(hash ^ (hash >> 32)) & (in->room - 1);
}

/* The place that holds the key, or the empty one where it would go. */
static size_t find(const map *in, uint64_t key)
{
    size_t place = place_of(in, key);

    while (in->entries[place].value != MAP_NONE &&
           in->entries[place].key != key) {
        place = (place + 1) & (in->room - 1);
    }
    return place;
}

uint32_t map_get(const map *from, uint64_t key)
{
    return from->count == 0 ? MAP_NONE : from->entries[find(from, key)].value;
}

static bool enlarge(map *to)
{
    map old = *to;
    size_t room = old.room == 0 ? FIRST_ROOM : 2 * old.room;
    map_entry *entries = malloc(room * sizeof(*entries));

    if (entries == NULL) {
        return false;
    }
    memset(entries, 0xff, room * sizeof(*entries));
    to->entries = entries;
    to->room = room;
    for (size_t i = 0; i < old.room; i++) {
        if (old.entries[i].value != MAP_NONE) {
            entries[find(to, old.entries[i].key)] = old.entries[i];
        }
    }
    free(old.entries);
    return true;
}

bool map_set(map *to, uint64_t key, uint32_t value)
{
    size_t place;

    if (2 * to->count >= to->room && !enlarge(to)) {
        return false;
    }
    place = find(to, key);
    to->count += to->entries[place].value == MAP_NONE;
    to->entries[place].key = key;
    to->entries[place].value = value;
    return true;
}

void map_remove(map *from, uint64_t key)
{
    size_t mask = from->room - 1;
    size_t hole;

    if (from->count == 0) {
        return;
    }
    hole = find(from, key);
    if (from->entries[hole].value == MAP_NONE) {
        return;
    }
    from->count--;
    /* What follows without a gap may have been displaced by the key: it moves
     * up unless that would bring it before its own place. */
    for (size_t i = (hole + 1) & mask; from->entries[i].value != MAP_NONE;
         i = (i + 1) & mask) {
        size_t own = place_of(from, from->entries[i].key);

        if (((i - own) & mask) >= ((i - hole) & mask)) {
            from->entries[hole] = from->entries[i];
            hole = i;
        }
    }
    from->entries[hole].value = MAP_NONE;
}

void map_free(map *gone)
{
    free(gone->entries);
    memset(gone, 0, sizeof(*gone));
}
