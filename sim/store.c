/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/store.h"

#include <assert.h>

/* How many of its own bin to look at for the best fit. */
#define LOOKS 24

struct place {
    unsigned row, column;
};

static struct place place_of(size_t size)
{
    size_t units = size / SIM_UNIT;
    struct place place;
    unsigned top;

    if (units < SIM_STORE_COLUMNS) {
        place.row = 0;
        place.column = (unsigned)units;
        return place;
    }
    top = 63u - (unsigned)__builtin_clzll(units);
    place.row = top - 2;
    place.column = (unsigned)(units >> (top - 3)) & 7u;
    assert(place.row < SIM_STORE_ROWS);
    return place;
}

void sim_store_put(struct sim_store *store, struct sim_extent *extent)
{
    struct place place = place_of(extent->size);
    struct sim_extent **bin = &store->bins[place.row][place.column];

    extent->link_prev = NULL;
    extent->link_next = *bin;
    if (*bin != NULL) {
        (*bin)->link_prev = extent;
    }
    *bin = extent;
    store->columns[place.row] |= (uint8_t)(1u << place.column);
    store->rows |= (uint64_t)1 << place.row;
}

void sim_store_remove(struct sim_store *store, struct sim_extent *extent)
{
    struct place place = place_of(extent->size);
    struct sim_extent **bin = &store->bins[place.row][place.column];

    if (extent->link_next != NULL) {
        extent->link_next->link_prev = extent->link_prev;
    }
    if (extent->link_prev != NULL) {
        extent->link_prev->link_next = extent->link_next;
        return;
    }
    *bin = extent->link_next;
    if (*bin == NULL) {
        store->columns[place.row] &= (uint8_t) ~(1u << place.column);
        if (store->columns[place.row] == 0) {
            store->rows &= ~((uint64_t)1 << place.row);
        }
    }
}

/* The first bin that is not empty, behind the given place. */
static bool next_bin(const struct sim_store *store, struct place *place)
{
    unsigned columns =
        store->columns[place->row] & ~((2u << place->column) - 1u);
    uint64_t rows;

    if (columns == 0) {
        rows = store->rows & ~(((uint64_t)2 << place->row) - 1);
        if (rows == 0) {
            return false;
        }
        place->row = (unsigned)__builtin_ctzll(rows);
        columns = store->columns[place->row];
    }
    place->column = (unsigned)__builtin_ctz(columns);
    return true;
}

struct sim_extent *sim_store_find(const struct sim_store *store, size_t size)
{
    struct place place = place_of(size);
    struct sim_extent *extent = store->bins[place.row][place.column];
    struct sim_extent *best = NULL;
    unsigned looks;

    /* Its own bin also holds smaller ones. */
    for (looks = 0; extent != NULL && looks < LOOKS; looks++) {
        if (extent->size >= size &&
            (best == NULL || extent->size < best->size)) {
            best = extent;
            if (extent->size == size) {
                break;
            }
        }
        extent = extent->link_next;
    }
    if (best == NULL && next_bin(store, &place)) {
        best = store->bins[place.row][place.column];
    }
    return best;
}

struct sim_extent *sim_store_next(const struct sim_store *store, size_t size,
                                  const struct sim_extent *after)
{
    struct place place;

    if (after != NULL && after->link_next != NULL) {
        return after->link_next;
    }
    place = place_of(after != NULL ? after->size : size);
    if (after == NULL && store->bins[place.row][place.column] != NULL) {
        return store->bins[place.row][place.column];
    }
    return next_bin(store, &place) ? store->bins[place.row][place.column]
                                   : NULL;
}
