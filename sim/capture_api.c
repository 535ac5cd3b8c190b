/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that begin, end and describe captures. */
#include "sim/capture.h"

#include "sim/per_thread.h"

static CUresult begin(struct sim_thread *self, CUstream handle,
                      CUstreamCaptureMode mode)
{
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
    return sim_capture_begin(self, stream, mode);
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
    size_t i;

    if (last == NULL || last == node) {
        return last != NULL;
    }
    for (i = 0; i < last->follow_count; i++) {
        if (comes_before(node, last->follows[i])) {
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
    sim_capture_delete(capture);
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
    res = sim_capture_see_implicit(stream);
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

    if (mode != NULL) {
        self->capture_mode = *mode;
        *mode = old;
        return CUDA_SUCCESS;
    }
    sim_crash(self, "no mode at", mode);
}

CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    SIM_ENTRY(cuThreadExchangeStreamCaptureMode, exchange_mode(self, mode),
              NULL, 0, 0, 0);
}
