/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_ADDRESSES_H
#define SIM_ADDRESSES_H

#include "sim/state.h"

/** Addresses of a device that are in no use, or 0; sizes are whole pages. */
uintptr_t sim_addresses_take(int device, size_t size);
void sim_addresses_give(int device, uintptr_t base, size_t size);
void sim_addresses_reset(void);

#endif
