/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that belongs to a context: plain, pinned, registered, managed. */
#ifndef SIM_PLAIN_H
#define SIM_PLAIN_H

#include "sim/memory.h"

/** All of a context's memory goes with it. */
void sim_memory_of_context_end(struct sim_context *context);
/** What is alive of each kind. */
void sim_plain_count(ccmr_sim_census *census);

#endif
