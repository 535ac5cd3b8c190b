/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/context.h"

#include <stdlib.h>

#include "sim/device.h"
#include "sim/event.h"
#include "sim/order.h"
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

struct sim_context *sim_context_new(CUdevice device, unsigned flags)
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
void sim_context_delete(struct sim_context *context)
{
    struct sim_clock all = {.count = 0};

    sim_context_abandon(context);
    if (sim.order) {
        sim_order_note_context(context, &all);
        sim_clock_done(&all);
        sim_clock_clear(&all);
    }
    sim_events_of_context_end(context);
    sim_streams_of_context_end(context);
    sim_memory_of_context_end(context);
    sim_clock_clear(&context->gone);
    sim_clock_clear(&context->gone_blocking);
    sim_slot_give(&slots, &context->handle->slot);
    free(context);
}

void sim_contexts_note(int device, struct sim_clock *clock)
{
    size_t i;

    for (i = 0; i < slots.used; i++) {
        const struct sim_slot *slot =
            (const struct sim_slot *)(const void *)slots.base + i;
        const struct sim_context *context = slot->object;

        if (context != NULL && (device < 0 || context->device == device)) {
            sim_order_note_context(context, clock);
        }
    }
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
            sim_context_delete(slot->object);
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
    context = sim_context_new(dev, flags);
    if (context == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    res = push(self, context->handle);
    if (res != CUDA_SUCCESS) {
        sim_context_delete(context);
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
    sim_context_delete(context);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxDestroy(CUcontext ctx)
{
    SIM_ENTRY(cuCtxDestroy, destroy(self, ctx), NULL, ctx, 0, 0);
}
