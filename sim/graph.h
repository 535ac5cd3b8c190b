/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs, as far as captures make them. */
#ifndef SIM_GRAPH_H
#define SIM_GRAPH_H

#include "sim/handle.h"
#include "sim/operation.h"

/** What a CUgraphNode points at: an operation and what it follows. */
struct sim_node {
    struct sim_node *next;
    struct sim_op *op; /**< NULL: an empty node */
    const struct sim_node *follows, *joins;
};

/** What a CUgraph points at. */
struct CUgraph_st {
    struct sim_slot slot;
};

struct sim_graph {
    CUgraph handle;
    struct sim_extent *blocks; /**< allocated in it, through `older` */
    struct sim_node *first, *last;
    size_t count;
};

struct sim_graph *sim_graph_new(void);
void sim_graph_delete(struct sim_graph *graph);
/** A new node at the end, which takes `op` over; NULL without memory. */
struct sim_node *sim_graph_add(struct sim_graph *graph, struct sim_op *op,
                               const struct sim_node *follows,
                               const struct sim_node *joins);
/** How many there are, those under construction included. */
uint64_t sim_graphs_live(void);
void sim_graphs_reset(void);

#endif
