/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measuring contenders on a plan, in turn.
 *
 * First each contender carries the plan out once, afresh and watched: what
 * fails is named, and what it reserves is noted. Then, repetition after
 * repetition, each in turn is set up, warmed by one pass, timed as a whole in
 * a second pass and operation by operation in a third; in the first
 * repetition a further pass counts driver calls. Nothing is watched, counted
 * or written to in a timed pass. Between contenders all memory is given back.
 */
#ifndef CCMR_BENCH_MEASURE_H
#define CCMR_BENCH_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/contender.h"
#include "bench/machine.h"
#include "bench/plan.h"
#include "bench/result.h"

typedef struct measure_options {
    unsigned repeat;
    uint64_t limit_ns;    /* of a pass, where the plan need not be whole */
    uint64_t write_bytes; /* of each block in the watched pass */
    bool registered;      /* streams */
    bool timeline;
    const char *log; /* the watched pass is logged here; NULL: it is not */
} measure_options;

/**
 * Measure `count` contenders; `results` has as many places, which are filled
 * in any case and are to be freed. False if that could not be done at all:
 * `message` says why.
 */
bool measure(const plan *what, contender *const *who, size_t count,
             const machine *where, const measure_options *options,
             result *results, char *message, size_t size);

#endif /* CCMR_BENCH_MEASURE_H */
