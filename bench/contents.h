/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scenario `contents`: is what was written into a block still there when
 * it is freed?
 *
 * Each block is filled on its stream with a pattern of its own. Before its
 * free it is copied back, on the stream of the free, and compared once the
 * copy is done; in between the memory may be handed out again. Streams are
 * not waited for in the meantime: only the allocator's order protects a block.
 */
#ifndef CCMR_BENCH_CONTENTS_H
#define CCMR_BENCH_CONTENTS_H

#include <stdbool.h>

#include "bench/contender.h"
#include "bench/machine.h"
#include "bench/plan.h"
#include "bench/result.h"

/**
 * Carry a plan of plan_contents() out with one contender. `found` is filled
 * in any case and to be freed.
 */
void contents_check(const plan *what, const contender *who,
                    const machine *where, bool registered, result *found);

#endif /* CCMR_BENCH_CONTENTS_H */
