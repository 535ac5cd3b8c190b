/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peers from libraries: those that CUCOREMR_BENCH_PEERS names, parted by
 * colons, else RMM's, if it was built.
 */
#ifndef CCMR_BENCH_PLUGINS_H
#define CCMR_BENCH_PLUGINS_H

#include <stdbool.h>
#include <stddef.h>

#include "bench/contender.h"
#include "bench/peer_plugin.h"

/** The i-th of them, NULL past the last. Libraries are loaded at the first
 * call; what cannot be loaded is said on standard error. */
const ccmr_bench_peer *plugin_get(size_t i);

/** The one of that name, or NULL. */
const ccmr_bench_peer *plugin_find(const char *name);

/* As those of bench/peers.h. */
ccmr_status plugin_open(instance *made);
void plugin_close(instance *gone);
bool plugin_figures(const instance *in, figures *now);

#endif /* CCMR_BENCH_PLUGINS_H */
