/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that make nodes by hand and tell of them. */
#include "sim/graph.h"

#include <stdlib.h>
#include <string.h>

#include "sim/context.h"
#include "sim/device.h"
#include "sim/graph_block.h"

static struct sim_node *find_node(CUgraphNode handle)
{
    return (struct sim_node *)(void *)handle;
}

static CUresult get_nodes(CUgraph handle, CUgraphNode *nodes, size_t *count)
{
    const struct sim_graph *graph = sim_graph_find(handle);
    struct sim_node *node;
    size_t known = 0;
    size_t i = 0;

    if (graph == NULL || count == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (node = graph->nodes.first; node != NULL; node = node->next) {
        if (node->hidden) {
            continue;
        }
        if (nodes != NULL && known < *count) {
            nodes[known] = (CUgraphNode)(void *)node;
        }
        known++;
    }
    for (i = known; nodes != NULL && i < *count; i++) {
        nodes[i] = NULL;
    }
    *count = known;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphGetNodes(CUgraph hGraph, CUgraphNode *nodes,
                                 size_t *numNodes)
{
    SIM_ENTRY(cuGraphGetNodes, get_nodes(hGraph, nodes, numNodes), NULL,
              hGraph, 0, 0);
}

static CUresult get_type(CUgraphNode handle, CUgraphNodeType *type)
{
    if (handle == NULL || type == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *type = find_node(handle)->type;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType *type)
{
    SIM_ENTRY(cuGraphNodeGetType, get_type(hNode, type), NULL, hNode, 0, 0);
}

/* Adding. */

/* All that a node is to follow must be in the graph. */
static bool check_follows(const struct sim_graph *graph,
                          const CUgraphNode *follows, size_t count)
{
    size_t i;

    if (follows == NULL && count != 0) {
        return false;
    }
    for (i = 0; i < count; i++) {
        if (!sim_nodes_have(&graph->nodes, find_node(follows[i]))) {
            return false;
        }
    }
    return true;
}

/* A node with an operation, which becomes its own, or with a block. */
static CUresult add(CUgraphNode *handle, CUgraph graph_handle,
                    const CUgraphNode *follows, size_t count,
                    CUgraphNodeType type, struct sim_op *op,
                    struct sim_graph_block *block)
{
    struct sim_graph *graph = sim_graph_find(graph_handle);
    struct sim_node *node;
    CUresult res = CUDA_ERROR_INVALID_VALUE;

    if (handle == NULL || graph == NULL ||
        !check_follows(graph, follows, count)) {
        goto err_free_op;
    }
    node =
        sim_nodes_add(&graph->nodes, type, op,
                      (struct sim_node *const *)(const void *)follows, count);
    if (node == NULL) {
        res = CUDA_ERROR_OUT_OF_MEMORY;
        goto err_free_op;
    }
    if (block != NULL) {
        node->block = block;
        sim_graph_block_hold(block);
    }
    *handle = (CUgraphNode)(void *)node;
    return CUDA_SUCCESS;

err_free_op:
    if (op != NULL) {
        sim_op_free(op);
    }
    return res;
}

CUresult CUDAAPI cuGraphAddEmptyNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                     const CUgraphNode *dependencies,
                                     size_t numDependencies)
{
    SIM_ENTRY(cuGraphAddEmptyNode,
              add(phGraphNode, hGraph, dependencies, numDependencies,
                  CU_GRAPH_NODE_TYPE_EMPTY, NULL, NULL),
              NULL, hGraph, 0, 0);
}

static CUresult add_host(CUgraphNode *handle, CUgraph graph,
                         const CUgraphNode *follows, size_t count,
                         const CUDA_HOST_NODE_PARAMS *params)
{
    struct sim_op *op;

    if (params == NULL || params->fn == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    op = sim_op_new(SIM_OP_HOST);
    if (op == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    op->function = params->fn;
    op->data = params->userData;
    return add(handle, graph, follows, count, CU_GRAPH_NODE_TYPE_HOST, op,
               NULL);
}

CUresult CUDAAPI cuGraphAddHostNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                    const CUgraphNode *dependencies,
                                    size_t numDependencies,
                                    const CUDA_HOST_NODE_PARAMS *nodeParams)
{
    SIM_ENTRY(cuGraphAddHostNode,
              add_host(phGraphNode, hGraph, dependencies, numDependencies,
                       nodeParams),
              NULL, hGraph, 0, 0);
}

/* One row: what an allocator's tests need. */
static CUresult add_fill(CUgraphNode *handle, CUgraph graph,
                         const CUgraphNode *follows, size_t count,
                         const CUDA_MEMSET_NODE_PARAMS *params)
{
    struct sim_op *op;
    size_t bytes;

    if (params == NULL || params->height != 1 ||
        (params->elementSize != 1 && params->elementSize != 2 &&
         params->elementSize != 4) ||
        params->width > SIZE_MAX / params->elementSize ||
        params->dst % params->elementSize != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    bytes = params->width * params->elementSize;
    if (!sim_graph_block_covers(params->dst, bytes) &&
        !sim_range_usable(params->dst, bytes)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    op = sim_op_new(SIM_OP_FILL);
    if (op == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    op->to = params->dst;
    op->bytes = bytes;
    op->value = params->value;
    op->width = params->elementSize;
    return add(handle, graph, follows, count, CU_GRAPH_NODE_TYPE_MEMSET, op,
               NULL);
}

CUresult CUDAAPI cuGraphAddMemsetNode(
    CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
    size_t numDependencies, const CUDA_MEMSET_NODE_PARAMS *memsetParams,
    CUcontext ctx)
{
    (void)ctx;
    SIM_ENTRY(cuGraphAddMemsetNode,
              add_fill(phGraphNode, hGraph, dependencies, numDependencies,
                       memsetParams),
              NULL, hGraph, 0, 0);
}

/* Memory. */

static CUresult check_alloc(const CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
    const CUmemLocation *location = &params->poolProps.location;

    if (params->bytesize == 0 ||
        params->poolProps.allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        (params->accessDescs == NULL && params->accessDescCount != 0)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (params->poolProps.handleTypes != CU_MEM_HANDLE_TYPE_NONE ||
        location->type != CU_MEM_LOCATION_TYPE_DEVICE) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (sim_device_find(location->id) == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

static CUresult add_alloc(CUgraphNode *handle, CUgraph graph,
                          const CUgraphNode *follows, size_t count,
                          CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
    struct sim_graph_block *block;
    CUresult res;

    if (params == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    res = check_alloc(params);
    if (res != CUDA_SUCCESS) {
        return res;
    }
    block =
        sim_graph_block_new(params->poolProps.location.id, params->bytesize);
    if (block == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    res = add(handle, graph, follows, count, CU_GRAPH_NODE_TYPE_MEM_ALLOC,
              NULL, block);
    if (res == CUDA_SUCCESS) {
        params->dptr = block->region->base;
    }
    sim_graph_block_drop(block);
    return res;
}

CUresult CUDAAPI cuGraphAddMemAllocNode(CUgraphNode *phGraphNode,
                                        CUgraph hGraph,
                                        const CUgraphNode *dependencies,
                                        size_t numDependencies,
                                        CUDA_MEM_ALLOC_NODE_PARAMS *nodeParams)
{
    SIM_ENTRY(cuGraphAddMemAllocNode,
              add_alloc(phGraphNode, hGraph, dependencies, numDependencies,
                        nodeParams),
              NULL, hGraph, 0, nodeParams != NULL ? nodeParams->bytesize : 0);
}

static CUresult add_free(CUgraphNode *handle, CUgraph graph_handle,
                         const CUgraphNode *follows, size_t count,
                         CUdeviceptr address)
{
    const struct sim_graph *graph = sim_graph_find(graph_handle);
    struct sim_graph_block *block = sim_graph_block_at(address);

    if (graph == NULL || block == NULL ||
        sim_graph_frees(&graph->nodes, block)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return add(handle, graph_handle, follows, count,
               CU_GRAPH_NODE_TYPE_MEM_FREE, NULL, block);
}

CUresult CUDAAPI cuGraphAddMemFreeNode(CUgraphNode *phGraphNode,
                                       CUgraph hGraph,
                                       const CUgraphNode *dependencies,
                                       size_t numDependencies,
                                       CUdeviceptr dptr)
{
    SIM_ENTRY(
        cuGraphAddMemFreeNode,
        add_free(phGraphNode, hGraph, dependencies, numDependencies, dptr),
        NULL, hGraph, dptr, 0);
}

static CUresult alloc_params(CUgraphNode handle,
                             CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
    const struct sim_node *node = find_node(handle);

    if (node == NULL || params == NULL ||
        node->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    memset(params, 0, sizeof *params);
    params->poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    params->poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    params->poolProps.location.id = node->block->region->device;
    params->bytesize = node->block->bytes;
    params->dptr = node->block->region->base;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphMemAllocNodeGetParams(
    CUgraphNode hNode, CUDA_MEM_ALLOC_NODE_PARAMS *params_out)
{
    SIM_ENTRY(cuGraphMemAllocNodeGetParams, alloc_params(hNode, params_out),
              NULL, hNode, 0, 0);
}

static CUresult free_params(CUgraphNode handle, CUdeviceptr *address)
{
    const struct sim_node *node = find_node(handle);

    if (node == NULL || address == NULL ||
        node->type != CU_GRAPH_NODE_TYPE_MEM_FREE) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *address = node->block->region->base;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphMemFreeNodeGetParams(CUgraphNode hNode,
                                             CUdeviceptr *dptr_out)
{
    SIM_ENTRY(cuGraphMemFreeNodeGetParams, free_params(hNode, dptr_out), NULL,
              hNode, 0, 0);
}

/* Destroying. */

static CUresult destroy_node(CUgraphNode handle)
{
    struct sim_node *node = find_node(handle);
    struct sim_graph *graph;

    if (node == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    graph = sim_graph_of_node(node);
    if (graph == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (sim_graph_has_memory(graph)) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    return sim_nodes_remove(&graph->nodes, node) ? CUDA_SUCCESS
                                                 : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult CUDAAPI cuGraphDestroyNode(CUgraphNode hNode)
{
    SIM_ENTRY(cuGraphDestroyNode, destroy_node(hNode), NULL, hNode, 0, 0);
}
