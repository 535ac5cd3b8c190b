/* SPDX-License-Identifier: Apache-2.0 */
/* What a stream answers about itself. */
#include "sim/stream.h"

#include "sim/capture.h"
#include "sim/context.h"

/* What a stream answers. Some questions about a capturing stream are refused
 * and ruin the capture; so does any about the legacy stream while a blocking
 * one captures. */
static CUresult look(struct sim_thread *self, CUstream handle,
                     bool also_capturing, struct sim_stream **stream)
{
    CUresult res = sim_stream_resolve(self, handle, stream);

    if (res != CUDA_SUCCESS) {
        return res;
    }
    if (sim.captures == 0) {
        return CUDA_SUCCESS;
    }
    res = sim_capture_implicit(*stream);
    if (res == CUDA_SUCCESS && !also_capturing && (*stream)->capture != NULL) {
        sim_capture_invalidate((*stream)->capture);
        res = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return res;
}

static CUresult get_id(struct sim_thread *self, CUstream handle,
                       unsigned long long *id)
{
    struct sim_stream *stream;
    CUresult res;

    if (id == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    res = look(self, handle, false, &stream);
    if (res == CUDA_SUCCESS) {
        *id = stream->id;
    }
    return res;
}

CUresult CUDAAPI cuStreamGetId(CUstream hStream, unsigned long long *streamId)
{
    SIM_ENTRY(cuStreamGetId, get_id(self, hStream, streamId), hStream, 0, 0,
              0);
}

static CUresult get_context(struct sim_thread *self, CUstream handle,
                            CUcontext *context)
{
    struct sim_stream *stream;
    CUresult res;

    if (context == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    res = look(self, handle, true, &stream);
    if (res == CUDA_SUCCESS) {
        *context = stream->context->handle;
    }
    return res;
}

CUresult CUDAAPI cuStreamGetCtx(CUstream hStream, CUcontext *pctx)
{
    SIM_ENTRY(cuStreamGetCtx, get_context(self, hStream, pctx), hStream,
              SIM_OUT(pctx), 0, 0);
}

static CUresult get_device(struct sim_thread *self, CUstream handle,
                           CUdevice *device)
{
    struct sim_stream *stream;
    CUresult res;

    if (device == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    res = look(self, handle, false, &stream);
    if (res == CUDA_SUCCESS) {
        *device = stream->device;
    }
    return res;
}

CUresult CUDAAPI cuStreamGetDevice(CUstream hStream, CUdevice *device)
{
    SIM_ENTRY(cuStreamGetDevice, get_device(self, hStream, device), hStream,
              SIM_OUT(device), 0, 0);
}

static CUresult get_flags(struct sim_thread *self, CUstream handle,
                          unsigned *flags)
{
    struct sim_stream *stream;
    CUresult res;

    if (flags == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    res = look(self, handle, false, &stream);
    if (res == CUDA_SUCCESS) {
        *flags = stream->flags;
    }
    return res;
}

CUresult CUDAAPI cuStreamGetFlags(CUstream hStream, unsigned int *flags)
{
    SIM_ENTRY(cuStreamGetFlags, get_flags(self, hStream, flags), hStream, 0, 0,
              0);
}

static CUresult get_priority(struct sim_thread *self, CUstream handle,
                             int *priority)
{
    struct sim_stream *stream;
    CUresult res;

    if (priority == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    res = look(self, handle, true, &stream);
    if (res == CUDA_SUCCESS) {
        *priority = stream->priority;
    }
    return res;
}

CUresult CUDAAPI cuStreamGetPriority(CUstream hStream, int *priority)
{
    SIM_ENTRY(cuStreamGetPriority, get_priority(self, hStream, priority),
              hStream, 0, 0, 0);
}
