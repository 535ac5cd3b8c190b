/* SPDX-License-Identifier: Apache-2.0 */
/* Asking for events and waiting for them, by the host and by streams. */
#include "sim/event.h"

#include "sim/capture.h"
#include "sim/order.h"
#include "sim/schedule.h"

/* The event, and whether a captured record stands in the way of asking. */
static CUresult find_for_host(CUevent handle, struct sim_event **event)
{
    struct sim_capture *capture;
    CUresult res = sim_event_find(handle, event);

    if (res != CUDA_SUCCESS) {
        return res;
    }
    if ((*event)->capture != 0) {
        capture = sim_capture_by_id((*event)->capture);
        if (capture == NULL || capture->invalid) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        sim_capture_invalidate(capture);
        return CUDA_ERROR_CAPTURED_EVENT;
    }
    return CUDA_SUCCESS;
}

/* The number of the event's last record if another process made it, or 0. */
static uint64_t elsewhere(const struct sim_event *event)
{
    return event->remote != NULL ? sim_remote_elsewhere(event->remote) : 0;
}

static CUresult query(CUevent handle)
{
    struct sim_event *event;
    CUresult res = find_for_host(handle, &event);
    uint64_t number;

    if (res != CUDA_SUCCESS) {
        return res;
    }
    number = elsewhere(event);
    if (number != 0) {
        return sim_remote_ask(event->remote, number);
    }
    if (event->stream == NULL) {
        return CUDA_SUCCESS;
    }
    return sim_ask(event->stream, event->position, &event->clock);
}

CUresult CUDAAPI cuEventQuery(CUevent hEvent)
{
    SIM_ENTRY(cuEventQuery, query(hEvent), NULL, hEvent, 0, 0);
}

static CUresult synchronize(CUevent handle)
{
    struct sim_event *event;
    CUresult res = find_for_host(handle, &event);
    uint64_t number;

    if (res != CUDA_SUCCESS) {
        return res;
    }
    number = elsewhere(event);
    if (number != 0) {
        return sim_remote_wait(event->remote, number);
    }
    if (event->stream == NULL) {
        return CUDA_SUCCESS;
    }
    return sim_wait_stream(event->stream, event->position, &event->clock);
}

CUresult CUDAAPI cuEventSynchronize(CUevent hEvent)
{
    SIM_ENTRY(cuEventSynchronize, synchronize(hEvent), NULL, hEvent, 0, 0);
}

static CUresult elapsed(float *milliseconds, CUevent from, CUevent to)
{
    struct sim_event *start, *end;

    if (milliseconds == NULL || sim_event_find(from, &start) != CUDA_SUCCESS ||
        sim_event_find(to, &end) != CUDA_SUCCESS || !start->recorded ||
        !end->recorded || (start->flags & CU_EVENT_DISABLE_TIMING) != 0 ||
        (end->flags & CU_EVENT_DISABLE_TIMING) != 0) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (!start->timed || !end->timed) {
        return CUDA_ERROR_NOT_READY;
    }
    *milliseconds = (float)((double)(int64_t)(end->when - start->when) / 1e6);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventElapsedTime(float *pMilliseconds, CUevent hStart,
                                    CUevent hEnd)
{
    SIM_ENTRY(cuEventElapsedTime, elapsed(pMilliseconds, hStart, hEnd), NULL,
              hStart, hEnd, 0);
}

/* Waits of streams. */

static CUresult wait_captured(struct sim_event *event,
                              struct sim_stream *stream)
{
    struct sim_capture *capture = sim_capture_by_id(event->capture);

    if (capture == NULL || capture->invalid) {
        /* The capture is over: nothing that a stream could wait for. */
        return CUDA_ERROR_INVALID_VALUE;
    }
    return sim_capture_join(capture, stream, event->node);
}

static CUresult await_elsewhere(struct sim_event *event,
                                struct sim_stream *stream, uint64_t number)
{
    struct sim_op *op;

    if (sim_remote_is_reached(event->remote, number)) {
        return CUDA_SUCCESS;
    }
    op = sim_op_new(SIM_OP_WAIT);
    if (op == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    sim_remote_join(op, event->remote, number);
    return sim_submit(stream, op);
}

CUresult sim_event_await(struct sim_event *event, struct sim_stream *stream)
{
    uint64_t number = elsewhere(event);

    if (number != 0) {
        return await_elsewhere(event, stream, number);
    }
    if (event->stream == NULL || event->stream == stream) {
        return CUDA_SUCCESS;
    }
    return sim_event_follow(stream, event->stream, event->position,
                            &event->clock);
}

CUresult sim_event_follow(struct sim_stream *stream, struct sim_stream *other,
                          uint64_t position, const struct sim_clock *clock)
{
    struct sim_op *op;

    if (sim.order) {
        (void)sim_order_join(stream);
    }
    if (!sim_clock_join(&stream->clock, clock) ||
        !sim_clock_add(&stream->clock, other->line, position)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (sim_reached(other, position)) {
        if (!sim.order) {
            return CUDA_SUCCESS;
        }
        /* The wait has to have a place, so that events before it do not seem
         * to know of it. */
        if (sim_runs_now(stream)) {
            sim_stream_pass(stream);
            return CUDA_SUCCESS;
        }
    }
    op = sim_op_new(SIM_OP_WAIT);
    if (op == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (!sim_places_add(&op->after, other, position)) {
        sim_op_free(op);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return sim_submit(stream, op);
}

static CUresult wait_event(struct sim_thread *self, CUstream handle,
                           CUevent event_handle, unsigned flags)
{
    struct sim_stream *stream;
    struct sim_event *event;
    CUresult res;

    if (flags > CU_EVENT_WAIT_EXTERNAL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    res = sim_event_find(event_handle, &event);
    if (res != CUDA_SUCCESS) {
        return res;
    }
    res = sim_stream_resolve(self, handle, &stream);
    if (res != CUDA_SUCCESS) {
        return res;
    }
    res = sim_capture_implicit(stream);
    if (res != CUDA_SUCCESS) {
        return res;
    }
    if (event->capture != 0) {
        return wait_captured(event, stream);
    }
    if (stream->capture == NULL) {
        return sim_event_await(event, stream);
    }
    if (stream->capture->invalid) {
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    if (!event->recorded) {
        return CUDA_SUCCESS;
    }
    /* A capture may not depend on work outside it. */
    sim_capture_invalidate(stream->capture);
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
}

CUresult CUDAAPI cuStreamWaitEvent(CUstream hStream, CUevent hEvent,
                                   unsigned int Flags)
{
    SIM_ENTRY(cuStreamWaitEvent, wait_event(self, hStream, hEvent, Flags),
              hStream, 0, hEvent, 0);
}
