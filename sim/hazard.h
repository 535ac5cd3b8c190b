/* SPDX-License-Identifier: Apache-2.0 */
/* Hazards: what a program did that a real driver would not stand, or whose
 * outcome depends on luck. They are told on standard error and kept. */
#ifndef SIM_HAZARD_H
#define SIM_HAZARD_H

#include "sim/state.h"

/** Who does something now: the calling thread, in that call. */
ccmr_sim_party sim_party(const struct sim_thread *self, const char *call);

/** Tell a hazard, whose text is to be made of the format; the members `size`,
 *  `seed` and `text` are filled in here. Ends the process in strict mode. */
void sim_hazard_report(ccmr_sim_hazard *hazard, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

uint64_t sim_hazard_count(void);
int sim_hazard_read(size_t index, ccmr_sim_hazard *hazard);
uint64_t sim_hazards_forget(void);

#endif
