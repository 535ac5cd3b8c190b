/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/context.h"

#include <stdlib.h>

#include "sim/capture.h"
#include "sim/device.h"
#include "sim/event.h"
#include "sim/per_thread.h"
#include "sim/plain.h"
#include "sim/schedule.h"
#include "sim/stream.h"

static struct sim_slots slots;
static uint64_t last_context_id;

struct sim_context *sim_context_find(CUcontext handle)
{
    void *object;

    return sim_slot_find(&slots, handle, &object) == SIM_HANDLE_LIVE ? object
                                                                     : NULL;
}

struct sim_context *sim_context_current(const struct sim_thread *self)
{
    return self->depth != 0 ? sim_context_find(self->stack[self->depth - 1])
                            : NULL;
}

uint64_t sim_contexts_live(void)
{
    uint64_t count = slots.live;
    int i;

    for (i = 0; i < SIM_MAX_DEVICES; i++) {
        struct sim_context *primary = sim_context_find(sim.devices[i].primary);

        if (primary != NULL) {
            count += primary->retains;
            count--;
        }
    }
    return count;
}

static struct sim_context *new_context(CUdevice device, unsigned flags)
{
    struct sim_context *context = calloc(1, sizeof *context);
    struct sim_slot *slot;

    if (context == NULL) {
        return NULL;
    }
    context->device = device;
    context->flags = flags;
    context->id = ++last_context_id;
    slot = sim_slot_take(&slots, context);
    if (slot == NULL) {
        goto err_free_context;
    }
    context->handle = (CUcontext)slot;
    context->legacy = sim_stream_new(context, SIM_STREAM_LEGACY, 0, 0);
    if (context->legacy == NULL) {
        goto err_give_slot;
    }
    return context;

err_give_slot:
    sim_slot_give(&slots, slot);
err_free_context:
    free(context);
    return NULL;
}

/* Its work is finished first, as far as nobody holds it. */
static void delete_context(struct sim_context *context)
{
    sim_context_abandon(context);
    sim_events_of_context_end(context);
    sim_streams_of_context_end(context);
    sim_memory_of_context_end(context);
    sim_slot_give(&slots, &context->handle->slot);
    free(context);
}

void sim_contexts_reset(void)
{
    struct sim_thread *thread;
    size_t i;

    for (thread = sim.threads; thread != NULL; thread = thread->next) {
        thread->depth = 0;
        thread->capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    }
    for (i = 0; i < slots.used; i++) {
        struct sim_slot *slot = (struct sim_slot *)(void *)slots.base + i;

        if (slot->object != NULL) {
            delete_context(slot->object);
        }
    }
    sim_slots_clear(&slots);
    for (i = 0; i < SIM_MAX_DEVICES; i++) {
        sim.devices[i].primary = NULL;
        sim.devices[i].primary_flags = 0;
    }
}

/* The stack of a thread. */

static CUresult push(struct sim_thread *self, CUcontext handle)
{
    if (self->depth == self->room) {
        size_t room = self->room != 0 ? self->room * 2 : 8;
        CUcontext *stack = realloc(self->stack, room * sizeof *stack);

        if (stack == NULL) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        self->stack = stack;
        self->room = room;
    }
    self->stack[self->depth++] = handle;
    return CUDA_SUCCESS;
}

/* A context that was destroyed may be made current; calls then answer that
 * it was destroyed. */
static bool may_be_current(CUcontext handle)
{
    void *object;

    return sim_slot_find(&slots, handle, &object) != SIM_HANDLE_FOREIGN;
}

static CUresult push_current(struct sim_thread *self, CUcontext handle)
{
    if (handle == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!may_be_current(handle)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    return push(self, handle);
}

CUresult CUDAAPI cuCtxPushCurrent(CUcontext ctx)
{
    SIM_ENTRY(cuCtxPushCurrent, push_current(self, ctx), NULL, ctx, 0, 0);
}

static CUresult pop_current(struct sim_thread *self, CUcontext *handle)
{
    if (self->depth == 0) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    self->depth--;
    if (handle != NULL) {
        *handle = self->stack[self->depth];
    }
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxPopCurrent(CUcontext *pctx)
{
    SIM_ENTRY(cuCtxPopCurrent, pop_current(self, pctx), NULL, SIM_OUT(pctx), 0,
              0);
}

/* Replaces the top; NULL pops it. */
static CUresult set_current(struct sim_thread *self, CUcontext handle)
{
    if (handle == NULL) {
        if (self->depth != 0) {
            self->depth--;
        }
        return CUDA_SUCCESS;
    }
    if (!may_be_current(handle)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (self->depth != 0) {
        self->stack[self->depth - 1] = handle;
        return CUDA_SUCCESS;
    }
    return push(self, handle);
}

CUresult CUDAAPI cuCtxSetCurrent(CUcontext ctx)
{
    SIM_ENTRY(cuCtxSetCurrent, set_current(self, ctx), NULL, ctx, 0, 0);
}

static CUresult get_current(struct sim_thread *self, CUcontext *handle)
{
    if (handle == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *handle = self->depth != 0 ? self->stack[self->depth - 1] : NULL;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetCurrent(CUcontext *pctx)
{
    SIM_ENTRY(cuCtxGetCurrent, get_current(self, pctx), NULL, SIM_OUT(pctx), 0,
              0);
}

/* Contexts made by hand. */

static CUresult create(struct sim_thread *self, CUcontext *handle,
                       unsigned flags, CUdevice dev)
{
    struct sim_context *context;
    CUresult res;

    if (handle == NULL || (flags & ~(unsigned)CU_CTX_FLAGS_MASK) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (sim_device_find(dev) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    context = new_context(dev, flags);
    if (context == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    res = push(self, context->handle);
    if (res != CUDA_SUCCESS) {
        delete_context(context);
        return res;
    }
    *handle = context->handle;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *params,
                                unsigned int flags, CUdevice dev)
{
    (void)params;
    SIM_ENTRY(cuCtxCreate, create(self, pctx, flags, dev), NULL, SIM_OUT(pctx),
              dev, 0);
}

CUresult CUDAAPI cuCtxCreate_v2(CUcontext *pctx, unsigned int flags,
                                CUdevice dev)
{
    SIM_ENTRY(cuCtxCreate, create(self, pctx, flags, dev), NULL, SIM_OUT(pctx),
              dev, 0);
}

CUresult CUDAAPI cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *params,
                                int count, unsigned int flags, CUdevice dev)
{
    (void)params;
    (void)count;
    SIM_ENTRY(cuCtxCreate, create(self, pctx, flags, dev), NULL, SIM_OUT(pctx),
              dev, 0);
}

static CUresult destroy(struct sim_thread *self, CUcontext handle)
{
    struct sim_context *context = sim_context_find(handle);

    if (handle == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (context == NULL && may_be_current(handle)) {
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    if (context == NULL || context->primary) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (self->depth != 0 && self->stack[self->depth - 1] == handle) {
        self->depth--;
    }
    delete_context(context);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxDestroy(CUcontext ctx)
{
    SIM_ENTRY(cuCtxDestroy, destroy(self, ctx), NULL, ctx, 0, 0);
}

/* Primary contexts. */

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
        context = new_context(dev, device->primary_flags);
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
    delete_context(context);
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

/* What a context answers. */

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

static CUresult peer_access(struct sim_thread *self, CUcontext handle,
                            bool enable)
{
    struct sim_context *context = sim_context_current(self);
    struct sim_context *peer = sim_context_find(handle);
    uint32_t bit;

    if (peer == NULL) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (peer->device == context->device) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    bit = (uint32_t)1 << peer->device;
    if (((context->peers & bit) != 0) == enable) {
        return enable ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
                      : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    }
    context->peers ^= bit;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxEnablePeerAccess(CUcontext peerContext,
                                       unsigned int Flags)
{
    SIM_ENTRY(cuCtxEnablePeerAccess,
              Flags != 0 ? CUDA_ERROR_INVALID_VALUE
                         : peer_access(self, peerContext, true),
              NULL, peerContext, 0, 0);
}

CUresult CUDAAPI cuCtxDisablePeerAccess(CUcontext peerContext)
{
    SIM_ENTRY(cuCtxDisablePeerAccess, peer_access(self, peerContext, false),
              NULL, peerContext, 0, 0);
}
