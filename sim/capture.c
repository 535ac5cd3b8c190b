/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/capture.h"

#include <stdlib.h>

#include "sim/context.h"
#include "sim/graph_block.h"

static struct sim_capture *captures;
static uint64_t last_capture_id;

/* What ruins captures. */

void sim_capture_invalidate(struct sim_capture *capture)
{
    capture->invalid = true;
}

struct sim_capture *sim_capture_by_id(uint64_t id)
{
    struct sim_capture *capture = captures;

    while (capture != NULL && capture->id != id) {
        capture = capture->next;
    }
    return capture;
}

/* Does the capture forbid the thread unsafe calls? */
static bool forbids(const struct sim_capture *capture,
                    const struct sim_thread *self)
{
    if (self->capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED ||
        capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED) {
        return false;
    }
    if (capture->thread == self->serial) {
        return true;
    }
    return self->capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
           capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

CUresult sim_capture_check(struct sim_thread *self)
{
    CUresult res = CUDA_SUCCESS;
    struct sim_capture *capture;

    for (capture = captures; capture != NULL; capture = capture->next) {
        if (forbids(capture, self)) {
            sim_capture_invalidate(capture);
            res = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    return res;
}

CUresult sim_capture_touch(struct sim_thread *self, struct sim_stream *stream)
{
    if (sim.captures == 0) {
        return CUDA_SUCCESS;
    }
    if (stream->capture != NULL) {
        sim_capture_invalidate(stream->capture);
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (stream->kind == SIM_STREAM_LEGACY) {
        CUresult res = sim_capture_implicit(stream);

        if (res != CUDA_SUCCESS) {
            return res;
        }
    }
    return sim_capture_check(self);
}

/* Would work on the stream depend on a capture? Is that ruined? */
static CUresult find_implicit(const struct sim_stream *stream, bool ruin)
{
    CUresult res = CUDA_SUCCESS;
    struct sim_stream *other;

    if (sim.captures == 0 || stream->kind != SIM_STREAM_LEGACY) {
        return CUDA_SUCCESS;
    }
    for (other = stream->context->streams; other != NULL;
         other = other->next) {
        if (other->capture != NULL && sim_stream_is_blocking(other)) {
            if (ruin) {
                sim_capture_invalidate(other->capture);
            }
            res = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        }
    }
    return res;
}

CUresult sim_capture_implicit(const struct sim_stream *stream)
{
    return find_implicit(stream, true);
}

CUresult sim_capture_check_context(const struct sim_context *context)
{
    CUresult res = CUDA_SUCCESS;
    struct sim_stream *stream;

    if (sim.captures == 0) {
        return CUDA_SUCCESS;
    }
    for (stream = context->streams; stream != NULL; stream = stream->next) {
        if (stream->capture != NULL) {
            sim_capture_invalidate(stream->capture);
            res = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    return res;
}

/* Recording. */

static struct sim_node *add(struct sim_stream *stream, CUgraphNodeType type,
                            struct sim_op *op)
{
    struct sim_node *node = sim_nodes_add(&stream->capture->graph->nodes, type,
                                          op, &stream->capture_tail, 1);

    if (node != NULL) {
        stream->capture_tail = node;
    }
    return node;
}

CUresult sim_capture_add(struct sim_stream *stream, struct sim_op *op)
{
    if (stream->capture->invalid) {
        sim_op_free(op);
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    if (add(stream, sim_node_type(op), op) == NULL) {
        sim_op_free(op);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return CUDA_SUCCESS;
}

CUresult sim_capture_allocate(struct sim_stream *stream, size_t bytes,
                              CUdeviceptr *address)
{
    struct sim_graph_block *block = sim_graph_block_new(stream->device, bytes);
    struct sim_node *node;

    if (block == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    node = add(stream, CU_GRAPH_NODE_TYPE_MEM_ALLOC, NULL);
    if (node == NULL) {
        sim_graph_block_drop(block);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    node->block = block;
    *address = block->region->base;
    return CUDA_SUCCESS;
}

/* A capture frees memory of graphs alone, and each block once. */
CUresult sim_capture_free(struct sim_stream *stream, CUdeviceptr address)
{
    struct sim_graph_block *block = sim_graph_block_at(address);
    struct sim_node *node;

    if (block == NULL ||
        sim_graph_frees(&stream->capture->graph->nodes, block)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    node = add(stream, CU_GRAPH_NODE_TYPE_MEM_FREE, NULL);
    if (node == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    node->block = block;
    sim_graph_block_hold(block);
    return CUDA_SUCCESS;
}

static void enlist(struct sim_capture *capture, struct sim_stream *stream,
                   struct sim_node *node)
{
    sim_stream_hold(stream);
    stream->capture = capture;
    stream->capture_tail = node;
    stream->capture_next = capture->members;
    capture->members = stream;
}

static void delist(struct sim_stream *stream)
{
    struct sim_stream **link = &stream->capture->members;

    while (*link != stream) {
        link = &(*link)->capture_next;
    }
    *link = stream->capture_next;
    stream->capture = NULL;
    stream->capture_tail = NULL;
    stream->capture_next = NULL;
    sim_stream_drop(stream);
}

CUresult sim_capture_join(struct sim_capture *capture,
                          struct sim_stream *stream, struct sim_node *node)
{
    struct sim_node *both[2];
    struct sim_node *joint;

    if (capture->invalid) {
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    if (stream->capture == NULL) {
        if (stream->kind == SIM_STREAM_LEGACY) {
            sim_capture_invalidate(capture);
            return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        }
        enlist(capture, stream, node);
        return CUDA_SUCCESS;
    }
    if (stream->capture != capture) {
        sim_capture_invalidate(stream->capture);
        sim_capture_invalidate(capture);
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    both[0] = stream->capture_tail;
    both[1] = node;
    joint = sim_nodes_add(&capture->graph->nodes, CU_GRAPH_NODE_TYPE_EMPTY,
                          NULL, both, 2);
    if (joint == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    joint->hidden = true;
    stream->capture_tail = joint;
    return CUDA_SUCCESS;
}

void sim_capture_delete(struct sim_capture *capture)
{
    while (capture->members != NULL) {
        delist(capture->members);
    }
    if (capture->prev != NULL) {
        capture->prev->next = capture->next;
    } else {
        captures = capture->next;
    }
    if (capture->next != NULL) {
        capture->next->prev = capture->prev;
    }
    if (capture->graph != NULL) {
        sim_graph_delete(capture->graph);
    }
    sim.captures--;
    free(capture);
}

void sim_capture_of_stream_end(struct sim_stream *stream)
{
    struct sim_capture *capture = stream->capture;

    if (capture == NULL) {
        return;
    }
    sim_capture_invalidate(capture);
    if (stream == capture->origin) {
        sim_capture_delete(capture);
    } else {
        delist(stream);
    }
}

CUresult sim_capture_begin(struct sim_thread *self, struct sim_stream *stream,
                           CUstreamCaptureMode mode)
{
    struct sim_capture *capture = calloc(1, sizeof *capture);

    if (capture == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    capture->graph = sim_graph_new();
    if (capture->graph == NULL) {
        free(capture);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    capture->id = ++last_capture_id;
    capture->mode = mode;
    capture->thread = self->serial;
    capture->origin = stream;
    capture->next = captures;
    if (captures != NULL) {
        captures->prev = capture;
    }
    captures = capture;
    sim.captures++;
    enlist(capture, stream, NULL);
    return CUDA_SUCCESS;
}

CUresult sim_capture_see_implicit(const struct sim_stream *stream)
{
    return find_implicit(stream, false);
}

uint64_t sim_graphs_owned(void)
{
    uint64_t count = sim_graphs_live();
    const struct sim_capture *capture;

    for (capture = captures; capture != NULL; capture = capture->next) {
        count -= capture->graph != NULL;
    }
    return count;
}
