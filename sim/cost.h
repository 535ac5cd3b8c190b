/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Costs: what calls of a driver were measured to take, added up as a program
 * makes them here. No clock runs: an estimate of host time in the driver that
 * is the same in every run.
 *
 * Guarded by the simulator's lock.
 */
#ifndef SIM_COST_H
#define SIM_COST_H

#include "sim/state.h"

/** Begin or end counting; what was counted stays. */
void sim_cost_count(bool on);
void sim_cost_forget(void);

/** A call ends. */
void sim_cost_note(const struct sim_frame *frame, CUresult res,
                   CUstream stream);

/** What takes its time by its size, said while the call is carried out: the
 *  curves below. A no-op while nothing is counted. */
enum sim_cost_curve {
    SIM_COST_PLAIN_ALLOCATE,
    SIM_COST_PLAIN_FREE,
    SIM_COST_PINNED_ALLOCATE,
    SIM_COST_PINNED_FREE,
    SIM_COST_CREATE,
    SIM_COST_MAP,
    SIM_COST_ACCESS,
    SIM_COST_UNMAP,
    SIM_COST_RELEASE,
    SIM_COST_POOL_GROW,
    SIM_COST_POOL_SHRINK,
    SIM_COST_CURVES
};
void sim_cost_sized(enum sim_cost_curve curve, uint64_t bytes);

/* Nanoseconds of calls of that number, SIM_CALL_COUNT for all; and how many
 * there were whose cost is not known. */
uint64_t sim_cost_of(enum sim_call call);
uint64_t sim_cost_unknown(enum sim_call call);

#endif
