/* SPDX-License-Identifier: Apache-2.0 */
/* Failures that a test orders: the n-th call of a name answers a code. */
#ifndef SIM_FAULT_H
#define SIM_FAULT_H

#include "sim/state.h"

/**
 * Count a call against the orders. True where it must answer `*result`
 * instead of being carried out; orders of the other kind (carried out, then
 * failed) are noted in the frame.
 */
bool sim_fault_due(struct sim_frame *frame, CUresult *result);

int sim_fault_order(const char *call, uint64_t nth, int result, bool after);
uint64_t sim_fault_forget(void);

#endif
