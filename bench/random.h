/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random numbers that are the same everywhere.
 */
#ifndef CCMR_BENCH_RANDOM_H
#define CCMR_BENCH_RANDOM_H

#include <stdint.h>

/** The next number of a sequence; `state` is the seed at first. (SplitMix64,
 * by Sebastiano Vigna.) */
static inline uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/** A number below `limit`, which is far below 2^32. */
static inline uint32_t random_below(uint64_t *state, uint32_t limit)
{
    return (uint32_t)(((random_next(state) >> 32) * limit) >> 32);
}

/** A number from `least` to `most`, its logarithm uniform. */
uint64_t random_log_uniform(uint64_t *state, uint64_t least, uint64_t most);

#endif /* CCMR_BENCH_RANDOM_H */
