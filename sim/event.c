/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/event.h"

#include <assert.h>
#include <stdlib.h>
#include <time.h>

#include "sim/capture.h"
#include "sim/context.h"
#include "sim/order.h"
#include "sim/schedule.h"

#define KNOWN_FLAGS                                                           \
    ((unsigned)CU_EVENT_BLOCKING_SYNC | (unsigned)CU_EVENT_DISABLE_TIMING |   \
     (unsigned)CU_EVENT_INTERPROCESS)

static struct sim_slots slots;

static uint64_t now(void)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    return (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
}

static struct sim_event *find(CUevent handle)
{
    void *object;

    return sim_slot_find(&slots, handle, &object) == SIM_HANDLE_LIVE ? object
                                                                     : NULL;
}

/* What a handle that is no event's gets for an answer. */
static CUresult reproach(CUevent handle)
{
    void *object;

    return sim_slot_find(&slots, handle, &object) == SIM_HANDLE_DEAD
               ? CUDA_ERROR_CONTEXT_IS_DESTROYED
               : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sim_event_find(CUevent handle, struct sim_event **event)
{
    *event = find(handle);
    return *event != NULL ? CUDA_SUCCESS : reproach(handle);
}

uint64_t sim_events_live(void)
{
    return slots.live;
}

void sim_events_reset(void)
{
    assert(slots.live == 0);
    sim_slots_clear(&slots);
}

/* Forget the last record. */
static void unrecord(struct sim_event *event)
{
    if (event->stream != NULL) {
        sim_stream_drop(event->stream);
        event->stream = NULL;
    }
    sim_clock_empty(&event->clock);
    event->capture = 0;
    event->node = NULL;
    event->timed = false;
}

static void delete_event(struct sim_event *event)
{
    unrecord(event);
    if (event->remote != NULL) {
        sim_remote_drop(event->remote);
    }
    sim_clock_clear(&event->clock);
    if (event->prev != NULL) {
        event->prev->next = event->next;
    } else {
        event->context->events = event->next;
    }
    if (event->next != NULL) {
        event->next->prev = event->prev;
    }
    sim_slot_give(&slots, &event->handle->slot);
    free(event);
}

void sim_events_of_context_end(struct sim_context *context)
{
    while (context->events != NULL) {
        delete_event(context->events);
    }
}

void sim_event_reached(CUevent handle, uint64_t generation)
{
    struct sim_event *event = find(handle);

    if (event != NULL && event->generation == generation) {
        event->timed = true;
        event->when = now();
    }
}

/* Entry points. */

static CUresult make(struct sim_thread *self, CUevent *handle, unsigned flags,
                     struct sim_remote *remote)
{
    struct sim_context *context = sim_context_current(self);
    struct sim_event *event;
    struct sim_slot *slot;

    if (context == NULL) {
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    event = calloc(1, sizeof *event);
    if (event == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    slot = sim_slot_take(&slots, event);
    if (slot == NULL) {
        free(event);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    event->handle = (CUevent)slot;
    event->context = context;
    event->flags = flags;
    event->remote = remote;
    event->next = context->events;
    if (context->events != NULL) {
        context->events->prev = event;
    }
    context->events = event;
    *handle = event->handle;
    return CUDA_SUCCESS;
}

CUresult sim_event_open(struct sim_thread *self, CUevent *handle,
                        struct sim_remote *remote)
{
    CUresult res = make(self, handle,
                        (unsigned)CU_EVENT_DISABLE_TIMING |
                            (unsigned)CU_EVENT_INTERPROCESS,
                        remote);

    if (res != CUDA_SUCCESS) {
        sim_remote_drop(remote);
    }
    return res;
}

static CUresult create(struct sim_thread *self, CUevent *handle,
                       unsigned flags)
{
    struct sim_remote *remote = NULL;
    CUresult res;

    if (handle == NULL || (flags & ~KNOWN_FLAGS) != 0 ||
        ((flags & CU_EVENT_INTERPROCESS) != 0 &&
         (flags & CU_EVENT_DISABLE_TIMING) == 0)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if ((flags & CU_EVENT_INTERPROCESS) != 0) {
        remote = sim_remote_new();
        if (remote == NULL) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    res = make(self, handle, flags, remote);
    if (res != CUDA_SUCCESS && remote != NULL) {
        sim_remote_drop(remote);
    }
    return res;
}

CUresult CUDAAPI cuEventCreate(CUevent *phEvent, unsigned int Flags)
{
    SIM_ENTRY(cuEventCreate, create(self, phEvent, Flags), NULL,
              SIM_OUT(phEvent), 0, 0);
}

static CUresult destroy(CUevent handle)
{
    struct sim_event *event = find(handle);

    if (event == NULL) {
        return reproach(handle);
    }
    delete_event(event);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventDestroy(CUevent hEvent)
{
    SIM_ENTRY(cuEventDestroy, destroy(hEvent), NULL, hEvent, 0, 0);
}

/* In a capture the event stands for a node of the graph. */
static CUresult record_captured(struct sim_event *event,
                                struct sim_stream *stream)
{
    if (stream->capture->invalid) {
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    unrecord(event);
    event->recorded = true;
    event->generation++;
    event->capture = stream->capture->id;
    event->node = stream->capture_tail;
    return CUDA_SUCCESS;
}

/* The event stands for the work of the stream up to that place, which is the
 * record's own. */
static bool remember(struct sim_event *event, struct sim_stream *stream,
                     uint64_t position)
{
    unrecord(event);
    if (!sim_clock_join(&event->clock, &stream->clock)) {
        sim_clock_empty(&event->clock);
        return false;
    }
    event->recorded = true;
    event->stream = stream;
    event->position = position;
    event->generation++;
    sim_stream_hold(stream);
    return true;
}

static CUresult record_place(struct sim_event *event,
                             struct sim_stream *stream,
                             struct sim_places *after)
{
    struct sim_op *op = sim_op_new(SIM_OP_RECORD);
    CUresult res;

    if (op == NULL) {
        sim_places_clear(after);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    op->after = *after;
    *after = (struct sim_places){.items = NULL};
    /* Before it is enqueued, since then other threads may come in. */
    if (!remember(event, stream, stream->enqueued + 1)) {
        sim_op_free(op);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    op->event = event->handle;
    op->generation = event->generation;
    if (event->remote != NULL) {
        sim_remote_join(op, event->remote, sim_remote_record(event->remote));
    }
    res = sim_submit(stream, op);
    if (res != CUDA_SUCCESS) {
        unrecord(event);
    }
    return res;
}

CUresult sim_event_record(struct sim_event *event, struct sim_stream *stream,
                          struct sim_places *after)
{
    if (after->count != 0 || !sim_runs_now(stream)) {
        return record_place(event, stream, after);
    }
    if (!remember(event, stream, sim_stream_pass(stream))) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (event->remote != NULL) {
        sim_remote_reach(event->remote, sim_remote_record(event->remote));
    }
    if ((event->flags & CU_EVENT_DISABLE_TIMING) == 0) {
        event->timed = true;
        event->when = now();
    }
    return CUDA_SUCCESS;
}

static CUresult record(struct sim_thread *self, CUevent handle,
                       CUstream stream_handle)
{
    struct sim_places after = {.items = NULL};
    struct sim_event *event = find(handle);
    struct sim_stream *stream;
    CUresult res;

    if (event == NULL) {
        return reproach(handle);
    }
    res = sim_stream_resolve(self, stream_handle, &stream);
    if (res != CUDA_SUCCESS) {
        return res;
    }
    if (event->context != stream->context) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    res = sim_capture_implicit(stream);
    if (res != CUDA_SUCCESS) {
        return res;
    }
    if (stream->capture != NULL) {
        return record_captured(event, stream);
    }
    if (sim.order) {
        (void)sim_order_join(stream);
    }
    return sim_event_record(event, stream, &after);
}

CUresult CUDAAPI cuEventRecord(CUevent hEvent, CUstream hStream)
{
    SIM_ENTRY(cuEventRecord, record(self, hEvent, hStream), hStream, hEvent, 0,
              0);
}

static CUresult record_with_flags(struct sim_thread *self, CUevent event,
                                  CUstream stream, unsigned flags)
{
    struct sim_stream *found;

    if (flags > CU_EVENT_RECORD_EXTERNAL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (flags == CU_EVENT_RECORD_EXTERNAL) {
        found = sim_stream_peek(self, stream);
        if (found != NULL && found->capture == NULL) {
            return CUDA_ERROR_ILLEGAL_STATE;
        }
    }
    return record(self, event, stream);
}

CUresult CUDAAPI cuEventRecordWithFlags(CUevent hEvent, CUstream hStream,
                                        unsigned int flags)
{
    SIM_ENTRY(cuEventRecordWithFlags,
              record_with_flags(self, hEvent, hStream, flags), hStream, hEvent,
              0, 0);
}
