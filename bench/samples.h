/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many measured times, and what is said about them.
 */
#ifndef CCMR_BENCH_SAMPLES_H
#define CCMR_BENCH_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Times in nanoseconds. All zero is none. */
typedef struct samples {
    uint64_t *values;
    size_t count;
    size_t room;
} samples;

/* `count` 0: the rest says nothing. */
typedef struct summary {
    size_t count;
    double p50;
    double p99;
    double max;
    double mean;
} summary;

/** Make room for so many more, so that adding them allocates nothing. */
bool samples_reserve(samples *to, size_t more);

/** Add one; there is room. */
static inline void samples_add(samples *to, uint64_t value)
{
    to->values[to->count++] = value;
}

/** What they say. Sorts them. A percentile is the least value that so many
 * percent of all do not exceed. */
summary samples_summary(samples *of);

void samples_free(samples *gone);

/** The middle of some numbers (of the two in the middle, their mean), which
 * are sorted by this; 0 for none. */
double median_of(double *values, size_t count);

#endif /* CCMR_BENCH_SAMPLES_H */
