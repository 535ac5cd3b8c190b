/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A contender that is set up and carries out a plan: what all ways of
 * measuring it have in common.
 */
#ifndef CCMR_BENCH_STAGE_H
#define CCMR_BENCH_STAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/contender.h"
#include "bench/machine.h"
#include "bench/plan.h"
#include "bench/result.h"
#include "bench/run.h"
#include "bench/streams.h"

typedef struct stage_options {
    const plan *what;
    const contender *who;
    const machine *where;
    const stream_set *streams;
    const char *log; /* a file, of a stack; or NULL */
    uint64_t budget; /* most bytes reserved; 0: no bound */
} stage_options;

typedef struct stage {
    instance on;
    run by;
    const stream_set *streams;
} stage;

/** Set up, memory watched where nobody keeps a mark. False: `found` says why
 * not. */
bool stage_open(stage *made, const stage_options *options, result *found);

/** Draw live and reserved bytes in watched rounds, if one thread runs. */
void stage_draw(stage *on, result *found);

/** Note the peaks of watched rounds. */
void stage_note_memory(stage *on, result *found);

/** Note how many calls failed so far, and the first of them in words. */
void stage_note_failures(const stage *on, result *found);

/** A round of the measured operations, its driver calls counted, and mapping
 * and waiting timed. */
void stage_count(stage *on, run_task task, result *found);

/** Free all that is live, and wait until everything is finished. */
void stage_clean(stage *on, result *found);

void stage_close(stage *gone);

#endif /* CCMR_BENCH_STAGE_H */
