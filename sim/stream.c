/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/stream.h"

#include <assert.h>
#include <stdlib.h>

#include "sim/capture.h"
#include "sim/context.h"
#include "sim/order.h"
#include "sim/pool.h"
#include "sim/schedule.h"

static struct sim_slots slots;
/* Ids of tokens are ordinary ones; none is as small as a token. */
static uint64_t last_stream_id = 8;

/* Life. */

struct sim_stream *sim_stream_new(struct sim_context *context,
                                  enum sim_stream_kind kind, unsigned flags,
                                  int priority)
{
    struct sim_stream *stream = calloc(1, sizeof *stream);

    if (stream == NULL) {
        return NULL;
    }
    stream->references = 1;
    stream->kind = kind;
    stream->context = context;
    stream->device = context->device;
    stream->flags = flags;
    stream->priority = priority;
    stream->id = ++last_stream_id;
    stream->line = sim_line_new(stream, stream->id);
    if (stream->line == NULL) {
        free(stream);
        return NULL;
    }
    stream->next = context->streams;
    if (context->streams != NULL) {
        context->streams->prev = stream;
    }
    context->streams = stream;
    return stream;
}

void sim_stream_hold(struct sim_stream *stream)
{
    stream->references++;
}

static void leave_context(struct sim_stream *stream)
{
    if (stream->prev != NULL) {
        stream->prev->next = stream->next;
    } else {
        stream->context->streams = stream->next;
    }
    if (stream->next != NULL) {
        stream->next->prev = stream->prev;
    }
    stream->context = NULL;
}

void sim_stream_drop(struct sim_stream *stream)
{
    if (--stream->references != 0) {
        return;
    }
    assert(stream->head == NULL && stream->pendings == NULL);
    if (stream->context != NULL) {
        leave_context(stream);
    }
    sim_clock_clear(&stream->clock);
    stream->line->stream = NULL;
    sim_line_drop(stream->line);
    free(stream);
}

void sim_stream_retire(struct sim_stream *stream)
{
    sim_capture_of_stream_end(stream);
    sim_order_of_stream_end(stream);
    stream->retired = true;
    if (stream->handle != NULL) {
        sim_slot_give(&slots, &stream->handle->slot);
        stream->handle = NULL;
    }
    if (stream->busy_index == 0) {
        sim_pools_ended(stream);
    }
    sim_stream_drop(stream);
}

static void unlink_from_thread(struct sim_stream *stream)
{
    struct sim_stream **link = &stream->thread->own_streams;

    while (*link != stream) {
        link = &(*link)->next_of_thread;
    }
    *link = stream->next_of_thread;
    stream->thread = NULL;
}

void sim_streams_of_thread_end(struct sim_thread *thread)
{
    while (thread->own_streams != NULL) {
        struct sim_stream *stream = thread->own_streams;

        unlink_from_thread(stream);
        sim_stream_retire(stream);
    }
}

void sim_streams_of_context_end(struct sim_context *context)
{
    while (context->streams != NULL) {
        struct sim_stream *stream = context->streams;

        sim_stream_hold(stream);
        if (stream->thread != NULL) {
            unlink_from_thread(stream);
        }
        if (!stream->retired) {
            sim_stream_retire(stream);
        }
        leave_context(stream);
        sim_stream_drop(stream);
    }
    context->legacy = NULL;
}

uint64_t sim_streams_live(void)
{
    return slots.live;
}

void sim_streams_reset(void)
{
    assert(slots.live == 0);
    sim_slots_clear(&slots);
}

/* Handles. */

static CUresult own_stream(struct sim_thread *self,
                           struct sim_context *context,
                           struct sim_stream **stream)
{
    struct sim_stream *own = self->own_streams;

    while (own != NULL && own->context != context) {
        own = own->next_of_thread;
    }
    if (own == NULL) {
        own = sim_stream_new(context, SIM_STREAM_THREAD, 0, 0);
        if (own == NULL) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        own->thread = self;
        own->next_of_thread = self->own_streams;
        self->own_streams = own;
        *stream = own;
        return sim_context_enter(own);
    }
    *stream = own;
    return CUDA_SUCCESS;
}

static bool is_token(CUstream handle)
{
    return handle == NULL || handle == CU_STREAM_LEGACY ||
           handle == CU_STREAM_PER_THREAD;
}

static CUresult resolve_token(struct sim_thread *self, CUstream handle,
                              struct sim_stream **stream)
{
    struct sim_context *context = sim_context_current(self);

    if (self->callbacks != 0) {
        return CUDA_ERROR_NOT_PERMITTED;
    }
    if (atomic_load_explicit(&sim_forked, memory_order_relaxed) != 0) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    if (context == NULL) {
        return self->depth != 0 ? CUDA_ERROR_CONTEXT_IS_DESTROYED
                                : CUDA_ERROR_INVALID_CONTEXT;
    }
    if (handle == CU_STREAM_PER_THREAD) {
        return own_stream(self, context, stream);
    }
    *stream = context->legacy;
    return CUDA_SUCCESS;
}

CUresult sim_stream_resolve(struct sim_thread *self, CUstream handle,
                            struct sim_stream **stream)
{
    void *object;

    if (is_token(handle)) {
        return resolve_token(self, handle, stream);
    }
    switch (sim_slot_find(&slots, handle, &object)) {
    case SIM_HANDLE_LIVE:
        *stream = object;
        return CUDA_SUCCESS;
    case SIM_HANDLE_DEAD:
        sim_crash(self, "destroyed stream", handle);
    case SIM_HANDLE_FOREIGN:
    default:
        sim_crash(self, "not a stream:", handle);
    }
}

struct sim_stream *sim_stream_peek(struct sim_thread *self, CUstream handle)
{
    struct sim_stream *stream = NULL;
    void *object;

    if (is_token(handle)) {
        return resolve_token(self, handle, &stream) == CUDA_SUCCESS ? stream
                                                                    : NULL;
    }
    return sim_slot_find(&slots, handle, &object) == SIM_HANDLE_LIVE ? object
                                                                     : NULL;
}

uint64_t sim_stream_id_of_handle(struct sim_thread *self, CUstream handle)
{
    struct sim_stream *stream;

    if (handle == NULL) {
        return 0;
    }
    if (is_token(handle)) {
        return (uint64_t)(uintptr_t)handle;
    }
    stream = sim_stream_peek(self, handle);
    return stream != NULL ? stream->id : 0;
}

bool sim_stream_is_blocking(const struct sim_stream *stream)
{
    return stream->kind != SIM_STREAM_LEGACY &&
           (stream->flags & CU_STREAM_NON_BLOCKING) == 0;
}

/* Entry points. */

static CUresult create(struct sim_thread *self, CUstream *handle,
                       unsigned flags, int priority)
{
    struct sim_context *context = sim_context_current(self);
    struct sim_stream *stream;
    struct sim_slot *slot;
    CUresult res;

    if (handle == NULL || flags > CU_STREAM_NON_BLOCKING) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (context == NULL) {
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    if (priority > SIM_PRIORITY_LEAST) {
        priority = SIM_PRIORITY_LEAST;
    } else if (priority < SIM_PRIORITY_GREATEST) {
        priority = SIM_PRIORITY_GREATEST;
    }
    stream = sim_stream_new(context, SIM_STREAM_CREATED, flags, priority);
    if (stream == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    slot = sim_slot_take(&slots, stream);
    if (slot == NULL) {
        sim_stream_retire(stream);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    stream->handle = (CUstream)slot;
    res = sim_context_enter(stream);
    if (res != CUDA_SUCCESS) {
        sim_stream_retire(stream);
        return res;
    }
    *handle = (CUstream)slot;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamCreate(CUstream *phStream, unsigned int Flags)
{
    SIM_ENTRY(cuStreamCreate, create(self, phStream, Flags, 0),
              SIM_OUT(phStream), 0, 0, 0);
}

CUresult CUDAAPI cuStreamCreateWithPriority(CUstream *phStream,
                                            unsigned int flags, int priority)
{
    SIM_ENTRY(cuStreamCreateWithPriority,
              create(self, phStream, flags, priority), SIM_OUT(phStream), 0, 0,
              0);
}

static CUresult destroy(struct sim_thread *self, CUstream handle)
{
    struct sim_stream *stream;
    CUresult res;

    if (is_token(handle)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    res = sim_stream_resolve(self, handle, &stream);
    if (res != CUDA_SUCCESS) {
        return res;
    }
    if (atomic_load(&sim_forked) != 0) {
        sim_crash(self, "in a forked child, stream", handle);
    }
    sim_stream_retire(stream);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamDestroy(CUstream hStream)
{
    SIM_ENTRY(cuStreamDestroy, destroy(self, hStream), hStream, 0, 0, 0);
}

static CUresult query(struct sim_thread *self, CUstream handle)
{
    struct sim_stream *stream;
    CUresult res = sim_stream_resolve(self, handle, &stream);

    if (res != CUDA_SUCCESS) {
        return res;
    }
    res = sim_capture_touch(self, stream);
    if (res != CUDA_SUCCESS) {
        return res;
    }
    return stream->kind == SIM_STREAM_LEGACY
               ? sim_ask_legacy(stream)
               : sim_ask(stream, stream->enqueued, &stream->clock);
}

CUresult CUDAAPI cuStreamQuery(CUstream hStream)
{
    SIM_ENTRY(cuStreamQuery, query(self, hStream), hStream, 0, 0, 0);
}

static CUresult synchronize(struct sim_thread *self, CUstream handle)
{
    struct sim_stream *stream;
    CUresult res = sim_stream_resolve(self, handle, &stream);

    if (res != CUDA_SUCCESS) {
        return res;
    }
    res = sim_capture_touch(self, stream);
    if (res != CUDA_SUCCESS) {
        return res;
    }
    if (stream->kind == SIM_STREAM_LEGACY) {
        return sim_wait_legacy(stream);
    }
    return sim_wait_stream(stream, stream->enqueued, &stream->clock);
}

CUresult CUDAAPI cuStreamSynchronize(CUstream hStream)
{
    SIM_ENTRY(cuStreamSynchronize, synchronize(self, hStream), hStream, 0, 0,
              0);
}
