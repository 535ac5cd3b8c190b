/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events of whole contexts: cuCtxRecordEvent and cuCtxWaitEvent.
 *
 * An event stands for one place in one stream, so a context has two streams
 * of the simulator's own. On `gather` a record waits for all other streams as
 * they are at the call, and the event stands for that place. On `entry` stand
 * the waits of the context, so that streams that are made later wait, too.
 * They are two since new streams do not wait for what was gathered.
 */
#include "sim/event.h"

#include "sim/capture.h"
#include "sim/context.h"
#include "sim/order.h"
#include "sim/schedule.h"

static CUresult find_context(CUcontext handle, struct sim_context **context)
{
    void *object = sim_context_find(handle);

    *context = object;
    return object != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

static bool make_inner(struct sim_context *context, struct sim_stream **inner)
{
    if (*inner == NULL) {
        *inner = sim_stream_new(context, SIM_STREAM_INNER,
                                CU_STREAM_NON_BLOCKING, 0);
    }
    return *inner != NULL;
}

/* Recording. */

/* Where the streams of the context are now, those included that the program
 * has destroyed and that still have work. */
static bool gather(struct sim_context *context, struct sim_places *places)
{
    struct sim_stream *stream;

    for (stream = context->streams; stream != NULL; stream = stream->next) {
        if (stream->kind != SIM_STREAM_INNER &&
            !sim_places_add(places, stream, stream->enqueued)) {
            return false;
        }
    }
    sim_order_note_context(context, &context->gather->clock);
    return true;
}

static CUresult record_context(CUcontext handle, CUevent event_handle)
{
    struct sim_places places = {.items = NULL};
    struct sim_context *context;
    struct sim_event *event;
    CUresult res = find_context(handle, &context);

    if (res == CUDA_SUCCESS) {
        res = sim_event_find(event_handle, &event);
    }
    if (res != CUDA_SUCCESS) {
        return res;
    }
    if (event->context != context) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    /* Whatever the mode of a capture is: it could not take part. */
    res = sim_capture_check_context(context);
    if (res != CUDA_SUCCESS) {
        return res;
    }
    if (!make_inner(context, &context->gather) || !gather(context, &places)) {
        sim_places_clear(&places);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return sim_event_record(event, context->gather, &places);
}

CUresult CUDAAPI cuCtxRecordEvent(CUcontext hCtx, CUevent hEvent)
{
    SIM_ENTRY(cuCtxRecordEvent, record_context(hCtx, hEvent), NULL, hEvent,
              hCtx, 0);
}

/* Waiting. */

CUresult sim_context_enter(struct sim_stream *stream)
{
    struct sim_stream *entry = stream->context->entry;

    if (entry == NULL || stream->kind == SIM_STREAM_INNER) {
        return CUDA_SUCCESS;
    }
    return sim_event_follow(stream, entry, entry->enqueued, &entry->clock);
}

/* In eager mode work runs meanwhile, and host functions may do anything. */
static CUresult enter_all(struct sim_context *context)
{
    struct sim_stream *stream = context->streams;
    CUresult res = CUDA_SUCCESS;

    while (res == CUDA_SUCCESS && stream != NULL) {
        struct sim_stream *next;

        sim_stream_hold(stream);
        if (!stream->retired) {
            res = sim_context_enter(stream);
        }
        next = stream->context != NULL ? stream->next : NULL;
        sim_stream_drop(stream);
        stream = next;
    }
    return res;
}

/* No capture may depend on work outside it, nor such work on a capture. */
static CUresult check_captures(const struct sim_context *context,
                               const struct sim_event *event)
{
    struct sim_capture *capture;

    if (event->capture == 0) {
        return sim_capture_check_context(context);
    }
    capture = sim_capture_by_id(event->capture);
    if (capture == NULL || capture->invalid) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_capture_invalidate(capture);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

static CUresult wait_context(CUcontext handle, CUevent event_handle)
{
    struct sim_context *context;
    struct sim_event *event;
    CUresult res = find_context(handle, &context);

    if (res == CUDA_SUCCESS) {
        res = sim_event_find(event_handle, &event);
    }
    if (res == CUDA_SUCCESS) {
        res = check_captures(context, event);
    }
    if (res != CUDA_SUCCESS) {
        return res;
    }
    if (!make_inner(context, &context->entry)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    res = sim_event_await(event, context->entry);
    return res == CUDA_SUCCESS ? enter_all(context) : res;
}

CUresult CUDAAPI cuCtxWaitEvent(CUcontext hCtx, CUevent hEvent)
{
    SIM_ENTRY(cuCtxWaitEvent, wait_context(hCtx, hEvent), NULL, hCtx, hEvent,
              0);
}
