/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs: what captures make, or programs by hand, and what is made of them
 * to be launched.
 *
 *     graph:  node --> node --> node      nodes follow others
 *                 \--> node --/
 *     exec:   a copy of the nodes; launched on a stream, each node becomes an
 *             operation of that stream or of a lane beside it
 *
 * Nodes stand in an order in which each comes after all that it follows.
 */
#ifndef SIM_GRAPH_H
#define SIM_GRAPH_H

#include "sim/handle.h"
#include "sim/operation.h"

struct sim_graph_block;

/** What a CUgraphNode points at. */
struct sim_node {
    struct sim_node *next;
    CUgraphNodeType type;
    bool hidden;       /**< not the program's: where captured streams join */
    struct sim_op *op; /**< NULL: nothing to be done */
    struct sim_graph_block *block; /**< allocated or freed; held */
    struct sim_node **follows;
    size_t follow_count;
    struct sim_node *copy; /**< while the graph is being copied */
    /** Of an exec, while it is launched: where it was enqueued. */
    struct sim_stream *lane;
    uint64_t position;
};

struct sim_nodes {
    struct sim_node *first, *last;
};

/** References to a user object. */
struct sim_reference {
    struct sim_reference *next;
    struct sim_user_object *object;
    uint64_t count;
};

/** What a CUgraph points at. */
struct CUgraph_st {
    struct sim_slot slot;
};

struct sim_graph {
    CUgraph handle;
    struct sim_nodes nodes;
    struct sim_reference *references;
    uint64_t execs; /**< made of it and not destroyed */
};

struct sim_graph *sim_graph_new(void);
void sim_graph_delete(struct sim_graph *graph);
/** The graph behind a handle, or NULL. */
struct sim_graph *sim_graph_find(CUgraph handle);
/** The graph with that node, or NULL. */
struct sim_graph *sim_graph_of_node(const struct sim_node *node);
/** Does it allocate or free memory? */
bool sim_graph_has_memory(const struct sim_graph *graph);
/** How many there are, those under construction included. */
uint64_t sim_graphs_live(void);
void sim_graphs_reset(void);

/** A new node at the end, which takes `op` over; NULL without memory. Nodes
 *  to follow that are NULL are left out. */
struct sim_node *sim_nodes_add(struct sim_nodes *nodes, CUgraphNodeType type,
                               struct sim_op *op,
                               struct sim_node *const *follows, size_t count);
/** Take one out; those that followed it follow what it did. */
bool sim_nodes_remove(struct sim_nodes *nodes, struct sim_node *node);
/** Is it one of them? */
bool sim_nodes_have(const struct sim_nodes *nodes,
                    const struct sim_node *node);
/** Put copies of all nodes in; false without memory. */
bool sim_nodes_copy(struct sim_nodes *to, const struct sim_nodes *from);
void sim_nodes_clear(struct sim_nodes *nodes);
/** What kind of node an operation makes. */
CUgraphNodeType sim_node_type(const struct sim_op *op);

#endif
