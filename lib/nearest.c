/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Distance of names: letters that were left out, added, mistaken or swapped,
 * capitals aside; and names of which a part was said.
 */
#include "lib/nearest.h"

#include <string.h>

/* Longer names are never near. */
#define LENGTH_MOST 40

/* A part of a name is farther than any slip of the finger. */
#define DISTANCE_OF_PART 100

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/*
 * Optimal string alignment: rows of the usual table, of which three are kept.
 *
 *            b[0] b[1] ...
 *     before2          row i - 1
 *     before           row i
 *     row              row i + 1: from the cell to the left, above, and both
 */
static unsigned distance(const char *a, size_t a_length, const char *b,
                         size_t b_length)
{
    unsigned rows[3][LENGTH_MOST + 1];
    unsigned *before2 = rows[0];
    unsigned *before = rows[1];
    unsigned *row = rows[2];
    size_t i;
    size_t j;

    for (j = 0; j <= b_length; j++) {
        before2[j] = 0;
        before[j] = (unsigned)j;
    }
    for (i = 1; i <= a_length; i++) {
        unsigned *spare = before2;

        row[0] = (unsigned)i;
        for (j = 1; j <= b_length; j++) {
            unsigned wrong = lower(a[i - 1]) != lower(b[j - 1]);

            row[j] =
                least(before[j - 1] + wrong, least(before[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                lower(a[i - 2]) == lower(b[j - 1])) {
                row[j] = least(row[j], before2[j - 2] + 1);
            }
        }
        before2 = before;
        before = row;
        row = spare;
    }
    return before[b_length];
}

static int contains(const char *text, size_t length, const char *part,
                    size_t part_length)
{
    size_t at;
    size_t i;

    for (at = 0; at + part_length <= length; at++) {
        for (i = 0; i < part_length; i++) {
            if (lower(text[at + i]) != lower(part[i])) {
                break;
            }
        }
        if (i == part_length) {
            return 1;
        }
    }
    return 0;
}

void ccmr__nearest_start(ccmr__nearest *nearest, const char *wrong,
                         size_t length)
{
    nearest->wrong = wrong;
    nearest->length = length;
    nearest->best = NULL;
    nearest->best_length = 0;
    nearest->distance = ~0u;
}

void ccmr__nearest_offer(ccmr__nearest *nearest, const char *name,
                         size_t length)
{
    size_t most = nearest->length < length ? length : nearest->length;
    size_t parted = nearest->length < length ? nearest->length : length;
    unsigned far;

    if (parted == 0 || most > LENGTH_MOST) {
        return;
    }
    far = distance(nearest->wrong, nearest->length, name, length);
    if (far > 1 + parted / 4 || far >= most) {
        if (parted < 3 ||
            (!contains(name, length, nearest->wrong, nearest->length) &&
             !contains(nearest->wrong, nearest->length, name, length))) {
            return;
        }
        far = DISTANCE_OF_PART + (unsigned)(most - parted);
    }
    if (far < nearest->distance) {
        nearest->best = name;
        nearest->best_length = length;
        nearest->distance = far;
    }
}
