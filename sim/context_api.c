/* SPDX-License-Identifier: Apache-2.0 */
/* What a current context answers, and its synchronisation. */
#include "sim/context.h"

#include "sim/capture.h"
#include "sim/schedule.h"

static CUresult get_device(struct sim_thread *self, CUdevice *device)
{
    struct sim_context *context = sim_context_current(self);

    if (device == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *device = context->device;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetDevice(CUdevice *device)
{
    SIM_ENTRY(cuCtxGetDevice, get_device(self, device), NULL, SIM_OUT(device),
              0, 0);
}

static CUresult get_flags(struct sim_thread *self, unsigned *flags)
{
    struct sim_context *context = sim_context_current(self);

    if (flags == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *flags = context->flags;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetFlags(unsigned int *flags)
{
    SIM_ENTRY(cuCtxGetFlags, get_flags(self, flags), NULL, 0, 0, 0);
}

static CUresult get_id(struct sim_thread *self, CUcontext handle,
                       unsigned long long *id)
{
    struct sim_context *context =
        handle != NULL ? sim_context_find(handle) : sim_context_current(self);

    if (id == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (context == NULL) {
        return handle != NULL ? CUDA_ERROR_CONTEXT_IS_DESTROYED
                              : CUDA_ERROR_INVALID_CONTEXT;
    }
    *id = context->id;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetId(CUcontext ctx, unsigned long long *ctxId)
{
    SIM_ENTRY(cuCtxGetId, get_id(self, ctx, ctxId), NULL, ctx, 0, 0);
}

static CUresult api_version(struct sim_thread *self, CUcontext handle,
                            unsigned *version)
{
    struct sim_context *context =
        handle != NULL ? sim_context_find(handle) : sim_context_current(self);

    if (version == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (context == NULL) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    *version = 3020;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
    SIM_ENTRY(cuCtxGetApiVersion, api_version(self, ctx, version), NULL, ctx,
              0, 0);
}

static CUresult priority_range(int *least, int *greatest)
{
    if (least != NULL) {
        *least = SIM_PRIORITY_LEAST;
    }
    if (greatest != NULL) {
        *greatest = SIM_PRIORITY_GREATEST;
    }
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetStreamPriorityRange(int *leastPriority,
                                             int *greatestPriority)
{
    SIM_ENTRY(cuCtxGetStreamPriorityRange,
              priority_range(leastPriority, greatestPriority), NULL, 0, 0, 0);
}

static CUresult synchronize(struct sim_thread *self)
{
    struct sim_context *context = sim_context_current(self);

    CUresult res = sim_capture_check_context(context);

    if (res != CUDA_SUCCESS) {
        return res;
    }
    return sim_wait_context(context);
}

CUresult CUDAAPI cuCtxSynchronize(void)
{
    SIM_ENTRY(cuCtxSynchronize, synchronize(self), NULL, 0, 0, 0);
}
