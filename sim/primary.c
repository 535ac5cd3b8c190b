/* SPDX-License-Identifier: Apache-2.0 */
/* The primary context of each device. */
#include "sim/context.h"

#include "sim/device.h"

static CUresult retain_primary(CUcontext *handle, CUdevice dev)
{
    struct sim_device *device = sim_device_find(dev);
    struct sim_context *context;

    if (handle == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (device == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    context = sim_context_find(device->primary);
    if (context == NULL) {
        context = sim_context_new(dev, device->primary_flags);
        if (context == NULL) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        context->primary = true;
        device->primary = context->handle;
    }
    context->retains++;
    *handle = context->handle;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
    SIM_ENTRY(cuDevicePrimaryCtxRetain, retain_primary(pctx, dev), NULL,
              SIM_OUT(pctx), dev, 0);
}

static void delete_primary(struct sim_device *device,
                           struct sim_context *context)
{
    device->primary = NULL;
    device->primary_flags = 0;
    sim_context_delete(context);
}

static CUresult release_primary(CUdevice dev)
{
    struct sim_device *device = sim_device_find(dev);
    struct sim_context *context;

    if (device == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    context = sim_context_find(device->primary);
    if (context == NULL) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (--context->retains == 0) {
        delete_primary(device, context);
    }
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice dev)
{
    SIM_ENTRY(cuDevicePrimaryCtxRelease, release_primary(dev), NULL, dev, 0,
              0);
}

static CUresult reset_primary(CUdevice dev)
{
    struct sim_device *device = sim_device_find(dev);
    struct sim_context *context;

    if (device == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    context = sim_context_find(device->primary);
    if (context != NULL) {
        delete_primary(device, context);
    }
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice dev)
{
    SIM_ENTRY(cuDevicePrimaryCtxReset, reset_primary(dev), NULL, dev, 0, 0);
}

static CUresult set_primary_flags(CUdevice dev, unsigned flags)
{
    struct sim_device *device = sim_device_find(dev);
    struct sim_context *context;

    if (device == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    if ((flags & ~(unsigned)CU_CTX_FLAGS_MASK) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    device->primary_flags = flags;
    context = sim_context_find(device->primary);
    if (context != NULL) {
        context->flags = flags;
    }
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags)
{
    SIM_ENTRY(cuDevicePrimaryCtxSetFlags, set_primary_flags(dev, flags), NULL,
              dev, 0, 0);
}

static CUresult primary_state(CUdevice dev, unsigned *flags, int *active)
{
    struct sim_device *device = sim_device_find(dev);

    if (device == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    if (flags == NULL || active == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *flags = device->primary_flags;
    *active = sim_context_find(device->primary) != NULL;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags,
                                            int *active)
{
    SIM_ENTRY(cuDevicePrimaryCtxGetState, primary_state(dev, flags, active),
              NULL, dev, 0, 0);
}
