/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that belongs to a context: plain, pinned, registered, managed. */
#ifndef SIM_PLAIN_H
#define SIM_PLAIN_H

#include "sim/memory.h"

/** Take a plain block back behind the work of a stream. */
CUresult sim_plain_free_in_order(uintptr_t address, struct sim_stream *stream);
/** The work came there: a large block (a region) or a small one. */
void sim_plain_give_back(struct sim_region *region, struct sim_extent *extent);
/** All of a context's memory goes with it. */
void sim_memory_of_context_end(struct sim_context *context);
/** What is alive of each kind. */
void sim_plain_count(ccmr_sim_census *census);

#endif
