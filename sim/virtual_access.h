/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_VIRTUAL_ACCESS_H
#define SIM_VIRTUAL_ACCESS_H

#include "sim/virtual.h"

/** Give the host rights to a mapping of its own memory, or take them away. */
bool sim_access_of_host(struct sim_mapping *mapping, CUmemAccess_flags flags);

#endif
