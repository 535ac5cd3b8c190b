/* SPDX-License-Identifier: Apache-2.0 */
/* Plain memory that another process opened by a handle of cuIpcGetMemHandle. */
#ifndef SIM_IPC_H
#define SIM_IPC_H

#include "sim/memory.h"

/** A plain block goes: if another process still has it open, the device has
 *  its memory back only when that lets go. False where nobody has. */
bool sim_ipc_keep(struct sim_region *region);
/** Give back what others have let go of. */
void sim_ipc_reap(void);
void sim_ipc_reset(void);

#endif
