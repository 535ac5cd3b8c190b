/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_ENTRY_H
#define SIM_ENTRY_H

#include "sim/state.h"

typedef void (*sim_function)(void);

/** One form of a call: from which version on, and what a program with a
 *  default stream per thread gets instead, if anything else. */
struct sim_entry {
    enum sim_call call;
    int version;
    sim_function plain, per_thread;
};

/** The older forms, old.c; each comes before the present one. */
extern const struct sim_entry sim_old_entries[];
extern const size_t sim_old_entry_count;
/** Those of virtual memory and the like, entry_memory.c. */
extern const struct sim_entry sim_memory_entries[];
extern const size_t sim_memory_entry_count;

#endif
