/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launching graphs.
 *
 *     stream  -- start --- node --- node ------------- end --
 *                    \                           /
 *     lane            `--- node --- node -------´
 *
 * The first nodes go on the stream itself; a node that follows nothing which
 * is last on its lane begins a new one. Lanes are streams that nobody has a
 * handle of, so that the schedule, and the check of order, take what the graph
 * leaves open for open.
 */
#include "sim/graph_exec.h"

#include "sim/capture.h"
#include "sim/context.h"
#include "sim/order.h"
#include "sim/schedule.h"

struct launch {
    struct sim_exec *exec;
    struct sim_stream *stream;
    uint64_t start;   /**< where lanes begin; 0: not marked yet */
    bool stream_used; /**< the stream itself serves as a lane */
    struct sim_stream *lanes[64];
    size_t lane_count;
};

bool sim_exec_allocates(const struct sim_exec *exec,
                        const struct sim_graph_block *block)
{
    const struct sim_node *node = exec->nodes.first;

    while (node != NULL && (node->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
                            node->block != block)) {
        node = node->next;
    }
    return node != NULL;
}

/* Order. */

/* A stream's next work comes behind a place of another one. */
static CUresult follow(struct sim_stream *stream, struct sim_stream *other,
                       uint64_t position)
{
    struct sim_op *op;

    if (other == stream) {
        return CUDA_SUCCESS;
    }
    if (sim.order) {
        (void)sim_order_join(stream);
    }
    if (!sim_clock_join(&stream->clock, &other->clock) ||
        !sim_clock_add(&stream->clock, other->line, position)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    op = sim_op_new(SIM_OP_WAIT);
    if (op == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (!sim_places_add(&op->after, other, position)) {
        sim_op_free(op);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return sim_submit(stream, op);
}

static CUresult mark(struct sim_stream *stream)
{
    struct sim_op *op = sim_op_new(SIM_OP_MARK);

    return op != NULL ? sim_submit(stream, op) : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Lanes. */

static CUresult new_lane(struct launch *launch, struct sim_stream **lane)
{
    CUresult res;

    if (launch->lane_count == sizeof launch->lanes / sizeof launch->lanes[0]) {
        /* So wide a graph goes on where it began. */
        *lane = launch->lanes[0];
        return CUDA_SUCCESS;
    }
    *lane = sim_stream_new(launch->stream->context, SIM_STREAM_CREATED,
                           CU_STREAM_NON_BLOCKING, launch->stream->priority);
    if (*lane == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    launch->lanes[launch->lane_count++] = *lane;
    res = follow(*lane, launch->stream, launch->start);
    return res;
}

/* Is it the last one enqueued on its lane? */
static bool is_last(const struct sim_node *node)
{
    return node->lane->enqueued == node->position;
}

static CUresult choose_lane(struct launch *launch, struct sim_node *node)
{
    size_t i;

    for (i = 0; i < node->follow_count; i++) {
        if (is_last(node->follows[i])) {
            node->lane = node->follows[i]->lane;
            return CUDA_SUCCESS;
        }
    }
    if (node->follow_count == 0 && !launch->stream_used) {
        launch->stream_used = true;
        node->lane = launch->stream;
        return CUDA_SUCCESS;
    }
    return new_lane(launch, &node->lane);
}

static CUresult follow_all(const struct sim_node *node)
{
    size_t i;

    for (i = 0; i < node->follow_count; i++) {
        CUresult res = follow(node->lane, node->follows[i]->lane,
                              node->follows[i]->position);

        if (res != CUDA_SUCCESS) {
            return res;
        }
    }
    return CUDA_SUCCESS;
}

/* The stream goes on when all lanes have ended. */
static CUresult close_lanes(struct launch *launch)
{
    CUresult res = CUDA_SUCCESS;
    size_t i;

    for (i = 0; i < launch->lane_count; i++) {
        struct sim_stream *lane = launch->lanes[i];

        if (res == CUDA_SUCCESS) {
            res = follow(launch->stream, lane, lane->enqueued);
        }
        sim_stream_retire(lane);
    }
    return res;
}

/* Nodes. */

/* For the check of order. */
static void note_node(const struct sim_node *node)
{
    const struct sim_op *op = node->op;

    if (node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
        sim_order_give(node->block->region->base, node->block->bytes,
                       node->lane);
    } else if (node->type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
        sim_order_take(node->block->region->base, node->block->bytes,
                       node->lane);
    } else if (op != NULL && op->bytes != 0) {
        sim_order_use(op->to, op->bytes, node->lane);
        if (op->kind == SIM_OP_COPY) {
            sim_order_use(op->from, op->bytes, node->lane);
        }
    }
}

static CUresult enqueue_node(struct launch *launch, struct sim_node *node)
{
    CUresult res = choose_lane(launch, node);
    struct sim_op *op;

    if (res == CUDA_SUCCESS) {
        res = follow_all(node);
    }
    if (res != CUDA_SUCCESS) {
        return res;
    }
    note_node(node);
    op = node->op != NULL ? sim_op_copy(node->op) : sim_op_new(SIM_OP_MARK);
    if (op == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    res = sim_submit(node->lane, op);
    node->position = node->lane->enqueued;
    return res;
}

/* Where the exec may go when the work is done. */
static CUresult enqueue_end(const struct launch *launch)
{
    struct sim_op *op = sim_op_new(SIM_OP_MARK);

    if (op == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    op->exec = launch->exec;
    launch->exec->uses++;
    return sim_submit(launch->stream, op);
}

static CUresult enqueue_all(struct launch *launch)
{
    struct sim_node *node;
    CUresult end;
    CUresult res = mark(launch->stream);

    launch->start = launch->stream->enqueued;
    for (node = launch->exec->nodes.first; node != NULL && res == CUDA_SUCCESS;
         node = node->next) {
        res = enqueue_node(launch, node);
    }
    end = close_lanes(launch);
    if (res == CUDA_SUCCESS) {
        res = end;
    }
    return res == CUDA_SUCCESS ? enqueue_end(launch) : res;
}

/* Memory. */

/* What it would allocate must not be there, unless it frees that itself; what
 * it frees of others must be. */
static CUresult check_blocks(const struct sim_exec *exec)
{
    const struct sim_node *node;

    for (node = exec->nodes.first; node != NULL; node = node->next) {
        if (node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC &&
            sim_graph_block_is_there(node->block) && !exec->frees_itself) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        if (node->type == CU_GRAPH_NODE_TYPE_MEM_FREE &&
            !sim_graph_block_is_there(node->block) &&
            !sim_exec_allocates(exec, node->block)) {
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    return CUDA_SUCCESS;
}

static void free_left(const struct sim_exec *exec, struct sim_stream *stream)
{
    const struct sim_node *node;

    for (node = exec->nodes.first; node != NULL; node = node->next) {
        if (node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC &&
            sim_graph_block_is_there(node->block)) {
            sim_order_take(node->block->region->base, node->block->bytes,
                           stream);
            sim_graph_block_vanish(node->block, stream);
        }
    }
}

/* What the launch means for the program, which may free from now on. */
static void settle_blocks(const struct launch *launch, struct sim_chunk *chunk)
{
    const struct sim_exec *exec = launch->exec;
    const struct sim_node *node;

    for (node = exec->nodes.first; node != NULL; node = node->next) {
        if (node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC &&
            !sim_graph_frees(&exec->nodes, node->block)) {
            sim_graph_block_appear(node->block, chunk);
        } else if (node->type == CU_GRAPH_NODE_TYPE_MEM_FREE &&
                   sim_graph_block_is_there(node->block)) {
            sim_graph_block_vanish(node->block, launch->stream);
        }
    }
    if (chunk != NULL) {
        sim_chunk_used(chunk, launch->stream);
    }
}

/* Launches of one exec follow one another. */
static CUresult follow_last(struct sim_exec *exec, struct sim_stream *stream)
{
    if (exec->stream == NULL || exec->stream == stream ||
        sim_reached(exec->stream, exec->position)) {
        return CUDA_SUCCESS;
    }
    return follow(stream, exec->stream, exec->position);
}

static void note_last(struct sim_exec *exec, struct sim_stream *stream)
{
    sim_stream_hold(stream);
    if (exec->stream != NULL) {
        sim_stream_drop(exec->stream);
    }
    exec->stream = stream;
    exec->position = stream->enqueued;
}

static CUresult launch_on(struct sim_exec *exec, struct sim_stream *stream)
{
    struct launch launch = {.exec = exec, .stream = stream};
    struct sim_chunk *chunk = NULL;
    CUresult res = check_blocks(exec);

    if (res == CUDA_SUCCESS) {
        res = follow_last(exec, stream);
    }
    if (res != CUDA_SUCCESS) {
        return res;
    }
    if (exec->frees_itself) {
        free_left(exec, stream);
    }
    if (exec->need != 0) {
        res = sim_chunk_take(exec->device, exec->need, stream, &chunk);
        if (res != CUDA_SUCCESS) {
            return res;
        }
    }
    /* In eager mode host functions run meanwhile, and others may call. */
    exec->uses++;
    sim_stream_hold(stream);
    res = enqueue_all(&launch);
    note_last(exec, stream);
    settle_blocks(&launch, chunk);
    sim_stream_drop(stream);
    sim_exec_drop(exec);
    return res;
}

/* In a capture the nodes become the graph's; memory can't. */
static CUresult launch_captured(const struct sim_exec *exec,
                                struct sim_stream *stream)
{
    const struct sim_node *node;

    if (exec->has_memory) {
        sim_capture_invalidate(stream->capture);
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    for (node = exec->nodes.first; node != NULL; node = node->next) {
        struct sim_op *op =
            node->op != NULL ? sim_op_copy(node->op) : sim_op_new(SIM_OP_MARK);
        CUresult res;

        if (op == NULL) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        res = sim_capture_add(stream, op);
        if (res != CUDA_SUCCESS) {
            return res;
        }
    }
    return CUDA_SUCCESS;
}

static CUresult launch(struct sim_thread *self, CUgraphExec handle,
                       CUstream stream_handle)
{
    struct sim_exec *exec = sim_exec_find(handle);
    struct sim_stream *stream;
    CUresult res;

    if (exec == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    res = sim_stream_resolve(self, stream_handle, &stream);
    if (res != CUDA_SUCCESS) {
        return res;
    }
    res = sim_capture_implicit(stream);
    if (res != CUDA_SUCCESS) {
        return res;
    }
    if (stream->context->broken != CUDA_SUCCESS) {
        return stream->context->broken;
    }
    return stream->capture != NULL ? launch_captured(exec, stream)
                                   : launch_on(exec, stream);
}

CUresult CUDAAPI cuGraphLaunch(CUgraphExec hGraphExec, CUstream hStream)
{
    SIM_ENTRY(cuGraphLaunch, launch(self, hGraphExec, hStream), hStream,
              hGraphExec, 0, 0);
}

/* Uploading takes the memory that launches need. */
CUresult sim_exec_upload(struct sim_thread *self, CUgraphExec handle,
                         CUstream stream_handle)
{
    struct sim_exec *exec = sim_exec_find(handle);
    struct sim_stream *stream;
    struct sim_chunk *chunk;
    CUresult res;

    if (exec == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    res = sim_stream_resolve(self, stream_handle, &stream);
    if (res == CUDA_SUCCESS) {
        res = sim_capture_implicit(stream);
    }
    if (res != CUDA_SUCCESS) {
        return res;
    }
    if (stream->capture != NULL) {
        sim_capture_invalidate(stream->capture);
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (exec->need != 0) {
        res = sim_chunk_take(exec->device, exec->need, stream, &chunk);
        if (res != CUDA_SUCCESS) {
            return res;
        }
    }
    res = mark(stream);
    if (exec->need != 0) {
        sim_chunk_used(chunk, stream);
    }
    return res;
}

CUresult CUDAAPI cuGraphUpload(CUgraphExec hGraphExec, CUstream hStream)
{
    SIM_ENTRY(cuGraphUpload, sim_exec_upload(self, hGraphExec, hStream),
              hStream, hGraphExec, 0, 0);
}
