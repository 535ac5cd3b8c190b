/* SPDX-License-Identifier: Apache-2.0 */
/* The log of calls: the last so many, as records. */
#ifndef SIM_LOG_H
#define SIM_LOG_H

#include "sim/state.h"

int sim_log_start(size_t capacity);
void sim_log_note(const struct sim_frame *frame, CUresult res, CUstream stream,
                  uint64_t object, uint64_t other, uint64_t bytes);
size_t sim_log_count(void);
int sim_log_read(size_t index, ccmr_sim_record *record);

#endif
