/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_CONFIG_H
#define SIM_CONFIG_H

#include "sim/state.h"

/** Hide or show a call; -1 if there is none of that name. */
int sim_hide(const char *call, bool hidden);

#endif
