/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peers: what a program would call without the library.
 */
#ifndef CCMR_BENCH_PEERS_H
#define CCMR_BENCH_PEERS_H

#include "bench/contender.h"

/** Set `made`, which names the peer and the device, up as that peer. */
ccmr_status peer_open(instance *made);

void peer_close(instance *gone);

bool peer_figures(const instance *in, figures *now);

/** Whether the peer can be had in this process. */
bool peer_is_here(contender_kind kind);

/** Whose malloc the program calls: "glibc", "jemalloc". */
const char *peer_malloc_name(void);

#endif /* CCMR_BENCH_PEERS_H */
