/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/graph.h"

#include <stdlib.h>

#include "sim/pool.h"

static struct sim_slots slots;

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

void sim_graph_delete(struct sim_graph *graph)
{
    while (graph->blocks != NULL) {
        struct sim_extent *block = graph->blocks;

        graph->blocks = block->older;
        block->older = NULL;
        sim_pool_free_now(block);
    }
    while (graph->first != NULL) {
        struct sim_node *node = graph->first;

        graph->first = node->next;
        if (node->op != NULL) {
            sim_op_free(node->op);
        }
        free(node);
    }
    sim_slot_give(&slots, &graph->handle->slot);
    free(graph);
}

static struct sim_graph *find_graph(CUgraph handle)
{
    void *object;

    return sim_slot_find(&slots, handle, &object) == SIM_HANDLE_LIVE ? object
                                                                     : NULL;
}

struct sim_node *sim_graph_add(struct sim_graph *graph, struct sim_op *op,
                               const struct sim_node *follows,
                               const struct sim_node *joins)
{
    struct sim_node *node = calloc(1, sizeof *node);

    if (node == NULL) {
        return NULL;
    }
    node->op = op;
    node->follows = follows;
    node->joins = joins;
    if (graph->last != NULL) {
        graph->last->next = node;
    } else {
        graph->first = node;
    }
    graph->last = node;
    graph->count++;
    return node;
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
    struct sim_graph *graph = find_graph(handle);
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

static CUresult get_nodes(CUgraph handle, CUgraphNode *nodes, size_t *count)
{
    struct sim_graph *graph = find_graph(handle);
    struct sim_node *node;
    size_t i = 0;

    if (graph == NULL || count == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (nodes != NULL) {
        for (node = graph->first; node != NULL && i < *count;
             node = node->next) {
            nodes[i++] = (CUgraphNode)(void *)node;
        }
        for (; i < *count; i++) {
            nodes[i] = NULL;
        }
    }
    *count = graph->count;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphGetNodes(CUgraph hGraph, CUgraphNode *nodes,
                                 size_t *numNodes)
{
    SIM_ENTRY(cuGraphGetNodes, get_nodes(hGraph, nodes, numNodes), NULL,
              hGraph, 0, 0);
}
