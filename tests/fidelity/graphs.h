/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs with one allocation, for the cases of graphs.c and graph_memory.c. */
#ifndef FIDELITY_GRAPHS_H
#define FIDELITY_GRAPHS_H

#include "tests/fidelity/driver.h"

#include <stddef.h>

#define MIB ((size_t)1 << 20)
#define BYTES (8 * MIB)

struct made {
    CUstream stream;
    CUgraph graph;
    CUgraphExec exec;
    CUdeviceptr address;
};

/* Capture an allocation, a fill with sevens, and perhaps a free. */
CUresult graph_capture(struct made *made, bool with_free);
/* Make a stream, such a graph, and an instance of it. Reports a fact and
 * returns false where that fails. */
bool graph_make(struct made *made, bool with_free, unsigned long long flags);
void graph_drop(struct made *made);
/* Launch it, or free its block, and wait. */
CUresult graph_launch(const struct made *made);
CUresult graph_give_back(const struct made *made);

/* Report what the device keeps for graphs, in KiB. */
void graph_see_memory(const char *what);
/* As if no case had been before. */
void graph_start_afresh(void);

#endif
