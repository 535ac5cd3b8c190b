/* SPDX-License-Identifier: Apache-2.0 */
/* Chance that is the same everywhere for the same seed (splitmix64). */
#ifndef CCMR_TESTS_GENERATOR_RANDOM_H
#define CCMR_TESTS_GENERATOR_RANDOM_H

#include <stdint.h>

typedef struct chance {
    uint64_t state;
} chance;

static inline uint64_t chance_next(chance *c)
{
    uint64_t mixed = c->state += UINT64_C(0x9e3779b97f4a7c15);

    mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ (mixed >> 31);
}

/* 0 to bound - 1. */
static inline unsigned chance_below(chance *c, unsigned bound)
{
    return (unsigned)(chance_next(c) % bound);
}

static inline int chance_percent(chance *c, unsigned percent)
{
    return chance_below(c, 100) < percent;
}

#endif
