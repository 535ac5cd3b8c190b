/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/capture.h"

#include <stdlib.h>

#include "sim/context.h"
#include "sim/extent.h"
#include "sim/per_thread.h"
#include "sim/pool.h"

static struct sim_slots slots;
static struct sim_capture *captures;
static uint64_t last_capture_id;

/* Graphs. */

uint64_t sim_graphs_live(void)
{
    uint64_t count = slots.live;
    const struct sim_capture *capture;

    /* What a capture builds is not the program's yet. */
    for (capture = captures; capture != NULL; capture = capture->next) {
        count -= capture->graph != NULL;
    }
    return count;
}

static struct sim_graph *new_graph(void)
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

static void delete_graph(struct sim_graph *graph)
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

static struct sim_node *add_node(struct sim_graph *graph, struct sim_op *op,
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
    graph = new_graph();
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
    delete_graph(graph);
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

/* What ruins captures. */

void sim_capture_invalidate(struct sim_capture *capture)
{
    capture->invalid = true;
    if (capture->graph != NULL) {
        delete_graph(capture->graph);
        capture->graph = NULL;
    }
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
        CUresult res = sim_capture_implicit(self, stream);

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

CUresult sim_capture_implicit(struct sim_thread *self,
                              struct sim_stream *stream)
{
    (void)self;
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

CUresult sim_capture_add(struct sim_stream *stream, struct sim_op *op)
{
    struct sim_capture *capture = stream->capture;
    struct sim_node *node;

    if (capture->invalid) {
        sim_op_free(op);
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    node = add_node(capture->graph, op, stream->capture_tail, NULL);
    if (node == NULL) {
        sim_op_free(op);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    stream->capture_tail = node;
    return CUDA_SUCCESS;
}

CUresult sim_capture_add_block(struct sim_stream *stream,
                               struct sim_extent *block)
{
    struct sim_graph *graph = stream->capture->graph;
    struct sim_node *node = add_node(graph, NULL, stream->capture_tail, NULL);

    if (node == NULL) {
        sim_pool_free_now(block);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    stream->capture_tail = node;
    block->graph = graph;
    block->older = graph->blocks;
    graph->blocks = block;
    return CUDA_SUCCESS;
}

/* The memory stays the graph's, whose launches would use it. */
CUresult sim_capture_drop_block(struct sim_stream *stream,
                                struct sim_extent *block)
{
    struct sim_node *node =
        add_node(stream->capture->graph, NULL, stream->capture_tail, NULL);

    if (node == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    stream->capture_tail = node;
    block->graph = NULL;
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
    joint = add_node(capture->graph, NULL, stream->capture_tail, node);
    if (joint == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    stream->capture_tail = joint;
    return CUDA_SUCCESS;
}

/* Take every stream out of a capture, which goes. */
static void delete_capture(struct sim_capture *capture)
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
        delete_capture(capture);
    } else {
        delist(stream);
    }
}

void sim_captures_reset(void)
{
    size_t i;

    for (i = 0; i < slots.used; i++) {
        struct sim_slot *slot = (struct sim_slot *)(void *)slots.base + i;

        if (slot->object != NULL) {
            delete_graph(slot->object);
        }
    }
    sim_slots_clear(&slots);
}

/* Entry points. */

static CUresult begin(struct sim_thread *self, CUstream handle,
                      CUstreamCaptureMode mode)
{
    struct sim_capture *capture;
    struct sim_stream *stream;
    CUresult res;

    if ((int)mode < CU_STREAM_CAPTURE_MODE_GLOBAL ||
        (int)mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    res = sim_stream_resolve(self, handle, &stream);
    if (res != CUDA_SUCCESS) {
        return res;
    }
    if (stream->kind == SIM_STREAM_LEGACY) {
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (stream->capture != NULL) {
        return CUDA_ERROR_ILLEGAL_STATE;
    }
    capture = calloc(1, sizeof *capture);
    if (capture == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    capture->graph = new_graph();
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

CUresult CUDAAPI cuStreamBeginCapture(CUstream hStream,
                                      CUstreamCaptureMode mode)
{
    SIM_ENTRY(cuStreamBeginCapture, begin(self, hStream, mode), hStream, 0, 0,
              0);
}

/* Is `node` the last one, or before it? */
static bool comes_before(const struct sim_node *node,
                         const struct sim_node *last)
{
    for (; last != NULL; last = last->follows) {
        if (last == node ||
            (last->joins != NULL && comes_before(node, last->joins))) {
            return true;
        }
    }
    return false;
}

/* Has every stream that forked off come back to the origin? */
static bool all_joined(const struct sim_capture *capture)
{
    const struct sim_stream *stream = capture->members;

    for (; stream != NULL; stream = stream->capture_next) {
        if (stream->capture_tail != NULL &&
            !comes_before(stream->capture_tail,
                          capture->origin->capture_tail)) {
            return false;
        }
    }
    return true;
}

static CUresult end(struct sim_thread *self, CUstream handle, CUgraph *graph)
{
    struct sim_capture *capture;
    struct sim_stream *stream;
    CUresult res = sim_stream_resolve(self, handle, &stream);

    if (res != CUDA_SUCCESS) {
        return res;
    }
    if (graph == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *graph = NULL;
    capture = stream->capture;
    if (capture == NULL) {
        return CUDA_ERROR_ILLEGAL_STATE;
    }
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
        capture->thread != self->serial) {
        sim_capture_invalidate(capture);
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    }
    if (capture->origin != stream) {
        sim_capture_invalidate(capture);
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    }
    res = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (!capture->invalid) {
        if (all_joined(capture)) {
            *graph = capture->graph->handle;
            capture->graph = NULL;
            res = CUDA_SUCCESS;
        } else {
            sim_capture_invalidate(capture);
            res = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
        }
    }
    delete_capture(capture);
    return res;
}

CUresult CUDAAPI cuStreamEndCapture(CUstream hStream, CUgraph *phGraph)
{
    SIM_ENTRY(cuStreamEndCapture, end(self, hStream, phGraph), hStream,
              SIM_OUT(phGraph), 0, 0);
}

static CUstreamCaptureStatus status_of(const struct sim_stream *stream)
{
    if (stream->capture == NULL) {
        return CU_STREAM_CAPTURE_STATUS_NONE;
    }
    return stream->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                    : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

static CUresult is_capturing(struct sim_thread *self, CUstream handle,
                             CUstreamCaptureStatus *status)
{
    struct sim_stream *stream;
    CUresult res;

    if (status == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    res = sim_stream_resolve(self, handle, &stream);
    if (res != CUDA_SUCCESS) {
        return res;
    }
    res = find_implicit(stream, false);
    if (res == CUDA_SUCCESS) {
        *status = status_of(stream);
    }
    return res;
}

CUresult CUDAAPI cuStreamIsCapturing(CUstream hStream,
                                     CUstreamCaptureStatus *captureStatus)
{
    SIM_ENTRY(cuStreamIsCapturing, is_capturing(self, hStream, captureStatus),
              hStream, 0, 0, 0);
}

static CUresult capture_info(struct sim_thread *self, CUstream handle,
                             CUstreamCaptureStatus *status, cuuint64_t *id,
                             CUgraph *graph, const CUgraphNode **nodes,
                             const CUgraphEdgeData **edges, size_t *count)
{
    struct sim_stream *stream;
    CUresult res = is_capturing(self, handle, status);

    if (res != CUDA_SUCCESS || *status != CU_STREAM_CAPTURE_STATUS_ACTIVE) {
        return res;
    }
    res = sim_stream_resolve(self, handle, &stream);
    if (res != CUDA_SUCCESS) {
        return res;
    }
    if (id != NULL) {
        *id = stream->capture->id;
    }
    if (graph != NULL) {
        *graph = stream->capture->graph->handle;
    }
    if (nodes != NULL) {
        *nodes = (const CUgraphNode *)(void *)&stream->capture_tail;
    }
    if (edges != NULL) {
        *edges = NULL;
    }
    if (count != NULL) {
        *count = stream->capture_tail != NULL;
    }
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamGetCaptureInfo_v3(
    CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
    cuuint64_t *id_out, CUgraph *graph_out,
    const CUgraphNode **dependencies_out, const CUgraphEdgeData **edgeData_out,
    size_t *numDependencies_out)
{
    SIM_ENTRY(cuStreamGetCaptureInfo,
              capture_info(self, hStream, captureStatus_out, id_out, graph_out,
                           dependencies_out, edgeData_out,
                           numDependencies_out),
              hStream, 0, 0, 0);
}

CUresult CUDAAPI cuStreamGetCaptureInfo_v2(
    CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
    cuuint64_t *id_out, CUgraph *graph_out,
    const CUgraphNode **dependencies_out, size_t *numDependencies_out)
{
    SIM_ENTRY(cuStreamGetCaptureInfo,
              capture_info(self, hStream, captureStatus_out, id_out, graph_out,
                           dependencies_out, NULL, numDependencies_out),
              hStream, 0, 0, 0);
}

/* A mode that does not exist is taken all the same. */
static CUresult exchange_mode(struct sim_thread *self,
                              CUstreamCaptureMode *mode)
{
    CUstreamCaptureMode old = self->capture_mode;

    if (mode == NULL) {
        sim_crash(self, "no mode at", mode);
    }
    self->capture_mode = *mode;
    *mode = old;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    SIM_ENTRY(cuThreadExchangeStreamCaptureMode, exchange_mode(self, mode),
              NULL, 0, 0, 0);
}
