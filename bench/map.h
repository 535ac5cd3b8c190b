/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A map from 64-bit keys to 32-bit numbers.
 */
#ifndef CCMR_BENCH_MAP_H
#define CCMR_BENCH_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** No value: what is not in the map. */
#define MAP_NONE UINT32_MAX

typedef struct map_entry {
    uint64_t key;
    uint32_t value; /* MAP_NONE where the place is empty */
} map_entry;

/* Open addressing, each key as near to its own place as it gets. All zero is
 * an empty map. For one thread. */
typedef struct map {
    map_entry *entries;
    size_t room; /* 0 or a power of two */
    size_t count;
} map;

/** The value of a key, MAP_NONE if there is none. */
uint32_t map_get(const map *from, uint64_t key);

/** Set a key's value, which is not MAP_NONE. False without memory. */
bool map_set(map *to, uint64_t key, uint32_t value);

/** Take a key out; nothing happens if it is not there. */
void map_remove(map *from, uint64_t key);

void map_free(map *gone);

#endif /* CCMR_BENCH_MAP_H */
