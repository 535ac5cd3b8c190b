/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock that everything is timed with.
 */
#ifndef CCMR_BENCH_CLOCK_H
#define CCMR_BENCH_CLOCK_H

#include <stdint.h>
#include <time.h>

/** Nanoseconds since some moment. */
static inline uint64_t clock_now(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/** What one reading takes: the median of many. */
uint64_t clock_cost(void);

/** A time without what its reading took. */
static inline uint64_t clock_less(uint64_t ns, uint64_t cost)
{
    return ns > cost ? ns - cost : 0;
}

#endif /* CCMR_BENCH_CLOCK_H */
