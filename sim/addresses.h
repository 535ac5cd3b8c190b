/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses that blocks and ranges have, in windows: one a device, and one
 * for the ranges that programs reserve. */
#ifndef SIM_ADDRESSES_H
#define SIM_ADDRESSES_H

#include "sim/state.h"

/** Beside the devices' windows, which have their numbers. */
#define SIM_RANGE_WINDOW SIM_MAX_DEVICES
#define SIM_RANGE_BASE ((uintptr_t)0x200000000000)
#define SIM_RANGE_BYTES ((size_t)32 << 40)

/** Addresses that are in no use, or 0; sizes are whole pages, alignments
 *  powers of two. */
uintptr_t sim_addresses_take(int window, size_t size, size_t alignment);
/** Just these; false where one of them is in use. */
bool sim_addresses_take_at(int window, uintptr_t base, size_t size);
void sim_addresses_give(int window, uintptr_t base, size_t size);
void sim_addresses_reset(void);

#endif
