/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the control table that are not in control.c. */
#ifndef SIM_CONTROL_H
#define SIM_CONTROL_H

#include "sim/state.h"

/** Every function of the table runs between these. False in a forked child,
 *  where nothing may be touched. */
bool sim_control_begin(void);
/** Returns what it is given. */
int sim_control_end(int ret);

/* control_order.c, as described in sim.h. */

uint64_t sim_control_hazards(void);
int sim_control_hazard_read(size_t index, ccmr_sim_hazard *hazard);
uint64_t sim_control_forget_hazards(void);
int sim_control_set_strict(int on);
int sim_control_check_order(int on);
int sim_control_handed_out(uint64_t address, uint64_t bytes, void *handle);
int sim_control_freed(uint64_t address, uint64_t bytes, void *handle);
int sim_control_not_freed(uint64_t address, uint64_t bytes);
int sim_control_noted(uint64_t address, uint64_t bytes, void *handle,
                      int until_free);
int sim_control_used(uint64_t address, uint64_t bytes, void *handle);
int sim_control_learned(void *handle);

#endif
