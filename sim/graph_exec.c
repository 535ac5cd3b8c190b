/* SPDX-License-Identifier: Apache-2.0 */
/* Instantiating graphs; launching is in graph_launch.c. */
#include "sim/graph_exec.h"

#include <stdlib.h>
#include <string.h>

#include "sim/per_thread.h"
#include "sim/user_object.h"

static struct sim_slots slots;
static struct sim_exec *execs;

/* Life. */

struct sim_exec *sim_exec_find(CUgraphExec handle)
{
    void *object;

    return sim_slot_find(&slots, handle, &object) == SIM_HANDLE_LIVE ? object
                                                                     : NULL;
}

uint64_t sim_execs_live(void)
{
    return slots.live;
}

static void enlist(struct sim_exec *exec)
{
    exec->next = execs;
    if (execs != NULL) {
        execs->prev = exec;
    }
    execs = exec;
}

static void delist(struct sim_exec *exec)
{
    if (exec->prev != NULL) {
        exec->prev->next = exec->next;
    } else {
        execs = exec->next;
    }
    if (exec->next != NULL) {
        exec->next->prev = exec->prev;
    }
}

static void delete_exec(struct sim_exec *exec)
{
    if (exec->stream != NULL) {
        sim_stream_drop(exec->stream);
    }
    sim_references_drop_elsewhere(&exec->references);
    sim_nodes_clear(&exec->nodes);
    free(exec);
}

void sim_exec_drop(struct sim_exec *exec)
{
    if (--exec->uses == 0) {
        delete_exec(exec);
    }
}

void sim_execs_forget_graph(struct sim_graph *graph)
{
    struct sim_exec *exec = graph->execs != 0 ? execs : NULL;

    for (; exec != NULL; exec = exec->next) {
        if (exec->graph == graph) {
            exec->graph = NULL;
        }
    }
}

static void destroy(struct sim_exec *exec)
{
    if (exec->graph != NULL) {
        exec->graph->execs--;
        exec->graph = NULL;
    }
    delist(exec);
    sim_slot_give(&slots, &exec->handle->slot);
    exec->handle = NULL;
    sim_exec_drop(exec);
}

void sim_execs_reset(void)
{
    while (execs != NULL) {
        sim_references_forget(&execs->references);
        destroy(execs);
    }
    sim_slots_clear(&slots);
}

/* Instantiating. */

/* Blocks that the graph frees make room for later ones. */
static void measure(struct sim_exec *exec)
{
    const struct sim_node *node;
    size_t now = 0;

    for (node = exec->nodes.first; node != NULL; node = node->next) {
        size_t size;

        if (node->block == NULL) {
            continue;
        }
        exec->has_memory = true;
        size = (node->block->bytes + SIM_UNIT - 1) / SIM_UNIT * SIM_UNIT;
        if (node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
            exec->device = node->block->region->device;
            now += size;
        } else if (sim_exec_allocates(exec, node->block)) {
            now -= size;
        }
        if (now > exec->need) {
            exec->need = now;
        }
    }
}

static CUresult make(struct sim_graph *graph, unsigned long long flags,
                     struct sim_exec **made)
{
    struct sim_exec *exec = calloc(1, sizeof *exec);
    struct sim_slot *slot;

    if (exec == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    exec->uses = 1;
    if (!sim_nodes_copy(&exec->nodes, &graph->nodes) ||
        !sim_references_copy(&exec->references, graph->references)) {
        goto err_delete_exec;
    }
    slot = sim_slot_take(&slots, exec);
    if (slot == NULL) {
        goto err_delete_exec;
    }
    exec->handle = (CUgraphExec)slot;
    exec->frees_itself =
        (flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
    exec->graph = graph;
    graph->execs++;
    measure(exec);
    enlist(exec);
    *made = exec;
    return CUDA_SUCCESS;

err_delete_exec:
    delete_exec(exec);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* A graph with memory makes one at a time. Launches by the device need a
 * device that runs code, which this one doesn't. */
static CUresult instantiate(CUgraphExec *handle, CUgraph graph_handle,
                            unsigned long long flags)
{
    const unsigned long long known =
        CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
        CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
    struct sim_graph *graph = sim_graph_find(graph_handle);
    struct sim_exec *exec;
    CUresult res;

    if (handle == NULL || graph == NULL || (flags & ~known) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (graph->execs != 0 && sim_graph_has_memory(graph)) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    res = make(graph, flags, &exec);
    if (res == CUDA_SUCCESS) {
        *handle = exec->handle;
    }
    return res;
}

CUresult CUDAAPI cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec,
                                             CUgraph hGraph,
                                             unsigned long long flags)
{
    SIM_ENTRY(cuGraphInstantiateWithFlags,
              instantiate(phGraphExec, hGraph, flags), NULL,
              SIM_OUT(phGraphExec), hGraph, 0);
}

static CUresult instantiate_with(struct sim_thread *self, CUgraphExec *handle,
                                 CUgraph graph,
                                 CUDA_GRAPH_INSTANTIATE_PARAMS *params,
                                 CUstream stream)
{
    const cuuint64_t upload = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
    CUresult res;

    if (params == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    res = instantiate(handle, graph, params->flags & ~upload);
    if (res == CUDA_SUCCESS && (params->flags & upload) != 0) {
        res = sim_exec_upload(self, *handle, stream);
    }
    params->hErrNode_out = NULL;
    params->result_out = res == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS
                                             : CUDA_GRAPH_INSTANTIATE_ERROR;
    return res;
}

CUresult CUDAAPI
cuGraphInstantiateWithParams(CUgraphExec *phGraphExec, CUgraph hGraph,
                             CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
    SIM_ENTRY(cuGraphInstantiateWithParams,
              instantiate_with(self, phGraphExec, hGraph, instantiateParams,
                               instantiateParams != NULL
                                   ? instantiateParams->hUploadStream
                                   : NULL),
              NULL, SIM_OUT(phGraphExec), hGraph, 0);
}

CUresult CUDAAPI cuGraphInstantiateWithParams_ptsz(
    CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    SIM_ENTRY(cuGraphInstantiateWithParams,
              instantiate_with(self, exec, graph, params,
                               params != NULL && params->hUploadStream != NULL
                                   ? params->hUploadStream
                                   : CU_STREAM_PER_THREAD),
              NULL, SIM_OUT(exec), graph, 0);
}

static CUresult destroy_exec(struct sim_thread *self, CUgraphExec handle)
{
    struct sim_exec *exec = sim_exec_find(handle);
    void *object;

    if (exec == NULL) {
        if (sim_slot_find(&slots, handle, &object) == SIM_HANDLE_DEAD) {
            sim_crash(self, "destroyed instance of a graph", handle);
        }
        return CUDA_ERROR_INVALID_VALUE;
    }
    destroy(exec);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec hGraphExec)
{
    SIM_ENTRY(cuGraphExecDestroy, destroy_exec(self, hGraphExec), NULL,
              hGraphExec, 0, 0);
}

/* Nodes are exchanged as a whole, where they are of the same kinds and there
 * is no memory among them. */
static CUresult update(CUgraphExec handle, CUgraph graph_handle,
                       CUgraphExecUpdateResultInfo *info)
{
    struct sim_exec *exec = sim_exec_find(handle);
    const struct sim_graph *graph = sim_graph_find(graph_handle);
    const struct sim_node *a, *b;
    struct sim_nodes nodes = {.first = NULL};

    if (exec == NULL || graph == NULL || info == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (exec->has_memory || sim_graph_has_memory(graph)) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    memset(info, 0, sizeof *info);
    a = exec->nodes.first;
    b = graph->nodes.first;
    while (a != NULL && b != NULL && a->type == b->type) {
        a = a->next;
        b = b->next;
    }
    if (a != NULL || b != NULL) {
        info->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    }
    if (!sim_nodes_copy(&nodes, &graph->nodes)) {
        sim_nodes_clear(&nodes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    sim_nodes_clear(&exec->nodes);
    exec->nodes = nodes;
    info->result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph,
                                   CUgraphExecUpdateResultInfo *resultInfo)
{
    SIM_ENTRY(cuGraphExecUpdate, update(hGraphExec, hGraph, resultInfo), NULL,
              hGraphExec, hGraph, 0);
}
