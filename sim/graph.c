/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs and their nodes. */
#include "sim/graph.h"

#include <stdlib.h>
#include <string.h>

#include "sim/graph_exec.h"
#include "sim/user_object.h"

static struct sim_slots slots;

/* Nodes. */

CUgraphNodeType sim_node_type(const struct sim_op *op)
{
    if (op == NULL) {
        return CU_GRAPH_NODE_TYPE_EMPTY;
    }
    switch (op->kind) {
    case SIM_OP_COPY:
        return CU_GRAPH_NODE_TYPE_MEMCPY;
    case SIM_OP_FILL:
        return CU_GRAPH_NODE_TYPE_MEMSET;
    case SIM_OP_HOST:
        return CU_GRAPH_NODE_TYPE_HOST;
    case SIM_OP_MARK:
    case SIM_OP_WAIT:
    case SIM_OP_RECORD:
    case SIM_OP_CALLBACK:
    case SIM_OP_GIVE_BACK:
    default:
        return CU_GRAPH_NODE_TYPE_EMPTY;
    }
}

struct sim_node *sim_nodes_add(struct sim_nodes *nodes, CUgraphNodeType type,
                               struct sim_op *op,
                               struct sim_node *const *follows, size_t count)
{
    struct sim_node *node = calloc(1, sizeof *node);
    size_t i;

    if (node == NULL) {
        return NULL;
    }
    node->follows = calloc(count + 1, sizeof(*node->follows));
    if (node->follows == NULL) {
        free(node);
        return NULL;
    }
    for (i = 0; i < count; i++) {
        if (follows[i] != NULL) {
            node->follows[node->follow_count++] = follows[i];
        }
    }
    node->type = type;
    node->op = op;
    if (nodes->last != NULL) {
        nodes->last->next = node;
    } else {
        nodes->first = node;
    }
    nodes->last = node;
    return node;
}

static void delete_node(struct sim_node *node)
{
    if (node->op != NULL) {
        sim_op_free(node->op);
    }
    if (node->block != NULL) {
        sim_graph_block_drop(node->block);
    }
    free(node->follows);
    free(node);
}

bool sim_nodes_have(const struct sim_nodes *nodes, const struct sim_node *node)
{
    const struct sim_node *other = nodes->first;

    while (other != NULL && other != node) {
        other = other->next;
    }
    return other != NULL;
}

/* Let one follow, instead of a node that goes, what that one followed. */
static bool replace(struct sim_node *node, const struct sim_node *gone)
{
    size_t room = node->follow_count + gone->follow_count + 1;
    struct sim_node **follows;
    size_t count = 0;
    size_t i;

    for (i = 0; i < node->follow_count && node->follows[i] != gone; i++) {
    }
    if (i == node->follow_count) {
        return true;
    }
    follows = calloc(room, sizeof(*follows));
    if (follows == NULL) {
        return false;
    }
    for (i = 0; i < node->follow_count; i++) {
        if (node->follows[i] != gone) {
            follows[count++] = node->follows[i];
        }
    }
    for (i = 0; i < gone->follow_count; i++) {
        follows[count++] = gone->follows[i];
    }
    free(node->follows);
    node->follows = follows;
    node->follow_count = count;
    return true;
}

bool sim_nodes_remove(struct sim_nodes *nodes, struct sim_node *node)
{
    struct sim_node *before = NULL;
    struct sim_node *other;

    for (other = nodes->first; other != NULL; other = other->next) {
        if (!replace(other, node)) {
            return false;
        }
        if (other->next == node) {
            before = other;
        }
    }
    if (before != NULL) {
        before->next = node->next;
    } else {
        nodes->first = node->next;
    }
    if (nodes->last == node) {
        nodes->last = before;
    }
    delete_node(node);
    return true;
}

static bool copy_node(struct sim_nodes *to, struct sim_node *node)
{
    struct sim_node *copy;
    struct sim_op *op = NULL;
    size_t i;

    if (node->op != NULL) {
        op = sim_op_copy(node->op);
        if (op == NULL) {
            return false;
        }
    }
    copy =
        sim_nodes_add(to, node->type, op, node->follows, node->follow_count);
    if (copy == NULL) {
        if (op != NULL) {
            sim_op_free(op);
        }
        return false;
    }
    for (i = 0; i < copy->follow_count; i++) {
        copy->follows[i] = copy->follows[i]->copy;
    }
    copy->hidden = node->hidden;
    copy->block = node->block;
    if (copy->block != NULL) {
        sim_graph_block_hold(copy->block);
    }
    node->copy = copy;
    return true;
}

bool sim_nodes_copy(struct sim_nodes *to, const struct sim_nodes *from)
{
    struct sim_node *node;

    for (node = from->first; node != NULL; node = node->next) {
        if (!copy_node(to, node)) {
            return false;
        }
    }
    return true;
}

void sim_nodes_clear(struct sim_nodes *nodes)
{
    while (nodes->first != NULL) {
        struct sim_node *node = nodes->first;

        nodes->first = node->next;
        delete_node(node);
    }
    nodes->last = NULL;
}

/* Graphs. */

uint64_t sim_graphs_live(void)
{
    return slots.live;
}

void sim_graphs_reset(void)
{
    size_t i;

    for (i = 0; i < slots.used; i++) {
        struct sim_slot *slot = (struct sim_slot *)(void *)slots.base + i;

        if (slot->object != NULL) {
            sim_graph_delete(slot->object);
        }
    }
    sim_slots_clear(&slots);
}

struct sim_graph *sim_graph_new(void)
{
    struct sim_graph *graph = calloc(1, sizeof *graph);
    struct sim_slot *slot;

    if (graph == NULL) {
        return NULL;
    }
    slot = sim_slot_take(&slots, graph);
    if (slot == NULL) {
        free(graph);
        return NULL;
    }
    graph->handle = (CUgraph)slot;
    return graph;
}

/* What was made of it does not need it any more. */
void sim_graph_delete(struct sim_graph *graph)
{
    sim_execs_forget_graph(graph);
    sim_references_drop(&graph->references);
    sim_nodes_clear(&graph->nodes);
    sim_slot_give(&slots, &graph->handle->slot);
    free(graph);
}

struct sim_graph *sim_graph_find(CUgraph handle)
{
    void *object;

    return sim_slot_find(&slots, handle, &object) == SIM_HANDLE_LIVE ? object
                                                                     : NULL;
}

struct sim_graph *sim_graph_of_node(const struct sim_node *node)
{
    size_t i;

    for (i = 0; i < slots.used; i++) {
        struct sim_graph *graph =
            ((struct sim_slot *)(void *)slots.base + i)->object;

        if (graph != NULL && sim_nodes_have(&graph->nodes, node)) {
            return graph;
        }
    }
    return NULL;
}

bool sim_graph_has_memory(const struct sim_graph *graph)
{
    const struct sim_node *node = graph->nodes.first;

    while (node != NULL && node->block == NULL) {
        node = node->next;
    }
    return node != NULL;
}

static CUresult create_graph(CUgraph *handle, unsigned flags)
{
    struct sim_graph *graph;

    if (handle == NULL || flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    graph = sim_graph_new();
    if (graph == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *handle = graph->handle;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphCreate(CUgraph *phGraph, unsigned int flags)
{
    SIM_ENTRY(cuGraphCreate, create_graph(phGraph, flags), NULL,
              SIM_OUT(phGraph), 0, 0);
}

static CUresult destroy_graph(struct sim_thread *self, CUgraph handle)
{
    struct sim_graph *graph = sim_graph_find(handle);
    void *object;

    if (graph == NULL) {
        if (sim_slot_find(&slots, handle, &object) == SIM_HANDLE_DEAD) {
            sim_crash(self, "destroyed graph", handle);
        }
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_graph_delete(graph);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphDestroy(CUgraph hGraph)
{
    SIM_ENTRY(cuGraphDestroy, destroy_graph(self, hGraph), NULL, hGraph, 0, 0);
}

/* Memory belongs to one graph: it is not copied. */
static CUresult clone_graph(CUgraph *handle, CUgraph original)
{
    struct sim_graph *graph = sim_graph_find(original);
    struct sim_graph *copy;

    if (handle == NULL || graph == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (sim_graph_has_memory(graph)) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    copy = sim_graph_new();
    if (copy == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (!sim_nodes_copy(&copy->nodes, &graph->nodes) ||
        !sim_references_copy(&copy->references, graph->references)) {
        sim_graph_delete(copy);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *handle = copy->handle;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphClone(CUgraph *phGraphClone, CUgraph originalGraph)
{
    SIM_ENTRY(cuGraphClone, clone_graph(phGraphClone, originalGraph), NULL,
              SIM_OUT(phGraphClone), originalGraph, 0);
}
