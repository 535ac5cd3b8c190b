/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much memory contenders need for a trace: the least that it completes in,
 * and what they take where nothing limits them.
 */
#ifndef CCMR_BENCH_MEMORY_H
#define CCMR_BENCH_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/contender.h"
#include "bench/machine.h"
#include "bench/plan.h"
#include "bench/result.h"
#include "bench/work.h"

typedef struct memory_options {
    bool registered; /* streams */
    work_kind work;
    uint64_t behind;
    bool timeline;
    uint64_t at; /* layout: row of the log; 0: where most is live */
} memory_options;

/* All fill `results`, which are to be freed, in any case. False if it could
 * not be done at all: `message` says why. */

/**
 * Search the least budget that each contender completes the plan in: more and
 * more until it does, then halving the gap down to 1 MiB or 0.1 % of the peak
 * of live bytes, whichever is less. Each try is on a fresh instance.
 */
bool memory_budget(const plan *what, contender *const *who, size_t count,
                   const machine *where, const memory_options *options,
                   result *results, char *message, size_t size);

/**
 * Carry the plan out twice on each contender without a limit: the first pass
 * finds it fresh, the second warm, with its driver calls counted and mapping
 * and waiting timed.
 */
bool memory_grown(const plan *what, contender *const *who, size_t count,
                  const machine *where, const memory_options *options,
                  result *results, char *message, size_t size);

/** Carry the plan out up to a row, and note what memory is where then. */
bool memory_layout(const plan *what, contender *const *who, size_t count,
                   const machine *where, const memory_options *options,
                   result *results, char *message, size_t size);

/* For all three: */

/* What one contender is looked at with. */
typedef struct memory_trial {
    const plan *what;
    const machine *where;
    const memory_options *options;
    stream_set streams;
    device_work work;
} memory_trial;

typedef void memory_look(memory_trial *in, const contender *who,
                         result *found);

/** Look at each contender in turn. */
bool memory_each(const plan *what, contender *const *who, size_t count,
                 const machine *where, const memory_options *options,
                 memory_look *look, result *results, char *message,
                 size_t size);

/** Watch memory, with the work that was asked for. */
void memory_watch(memory_trial *in, run *by);

#endif /* CCMR_BENCH_MEMORY_H */
