/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What processes share of an event: how often it was recorded, by whichever of
 * them, and which of these records work has come to.
 *
 *     process a                 shared page              process b
 *     record  ---------------> recorded 1
 *                              reached  0 <------------- waits for record 1
 *     work gets there -------> reached  1 -------------> goes on
 *
 * Nobody tells b: it looks whenever it lets work run. What is ordered by this
 * way the check of order of neither process knows.
 *
 * Guarded by the simulator's lock, but for the page.
 */
#ifndef SIM_REMOTE_H
#define SIM_REMOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/area.h"

struct sim_op;

struct sim_remote_page {
    _Atomic uint64_t recorded, reached;
};

struct sim_remote {
    unsigned references;
    struct sim_area area;
    struct sim_remote_page *page;
    uint64_t mine; /**< the last record that this process made */
};

/** For a new event of this process; NULL without memory. */
struct sim_remote *sim_remote_new(void);
void sim_remote_hold(struct sim_remote *remote);
void sim_remote_drop(struct sim_remote *remote);

/** The event is recorded here: the record's number. */
uint64_t sim_remote_record(struct sim_remote *remote);
void sim_remote_reach(struct sim_remote *remote, uint64_t number);
/** The number of the last record if that was made elsewhere, else 0. */
uint64_t sim_remote_elsewhere(const struct sim_remote *remote);
bool sim_remote_is_reached(const struct sim_remote *remote, uint64_t number);

/** Wait for a record, or ask about it: CUDA_ERROR_NOT_READY. */
CUresult sim_remote_wait(struct sim_remote *remote, uint64_t number);
CUresult sim_remote_ask(const struct sim_remote *remote, uint64_t number);

/** An operation is, or waits for, that record. */
void sim_remote_join(struct sim_op *op, struct sim_remote *remote,
                     uint64_t number);
/** The operation goes. */
void sim_remote_leave(struct sim_op *op);

#endif
