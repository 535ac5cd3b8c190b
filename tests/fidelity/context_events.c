/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuCtxRecordEvent and cuCtxWaitEvent: events of all streams of a context.
 */
#include "tests/fidelity/calls.h"
#include "tests/fidelity/facts.h"
#include "tests/fidelity/hold.h"

enum { LIMIT_MS = 5000 };

static CUcontext current(void)
{
    CUcontext context = NULL;

    drv.cuCtxGetCurrent(&context);
    return context;
}

static CUevent make_event(void)
{
    CUevent event = NULL;
    CUresult res = drv.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);

    if (res != CUDA_SUCCESS) {
        fact_result("event", res);
    }
    return event;
}

/* Done once the work of each stream is, also of one destroyed since. */
static void record(void)
{
    CUstream busy = make_stream(CU_STREAM_NON_BLOCKING);
    CUstream later;
    CUevent event = make_event();

    SEE("idle", cuCtxRecordEvent(current(), event));
    SEE("idle_query", cuEventQuery(event));
    if (hold(busy)) {
        SEE("busy", cuCtxRecordEvent(current(), event));
        SEE("busy_query", cuEventQuery(event));
        later = make_stream(CU_STREAM_NON_BLOCKING);
        SEE("made_later", cuStreamQuery(later));
        let_go();
        SEE("synchronize", cuEventSynchronize(event));
        drv.cuStreamDestroy(later);
    }
    drv.cuEventDestroy(event);
    drv.cuStreamDestroy(busy);
}

/* Streams that were there, and one that is made afterwards. */
static void wait(void)
{
    CUstream busy = make_stream(CU_STREAM_NON_BLOCKING);
    CUstream other = make_stream(CU_STREAM_NON_BLOCKING);
    CUstream later;
    CUevent event = make_event();

    SEE("never_recorded", cuCtxWaitEvent(current(), event));
    if (hold(busy)) {
        drv.cuEventRecord(event, busy);
        SEE("wait", cuCtxWaitEvent(current(), event));
        later = make_stream(CU_STREAM_NON_BLOCKING);
        SEE("other", cuStreamQuery(other));
        SEE("made_later", cuStreamQuery(later));
        let_go();
        SEE("synchronize", cuStreamSynchronize(other));
        drv.cuStreamDestroy(later);
    }
    drv.cuEventDestroy(event);
    drv.cuStreamDestroy(other);
    drv.cuStreamDestroy(busy);
}

static void wrong(void)
{
    CUcontext primary = current();
    CUcontext second = NULL;
    CUevent event = make_event();
    CUevent elsewhere;

    SEE("record_no_context", cuCtxRecordEvent(NULL, event));
    SEE("wait_no_context", cuCtxWaitEvent(NULL, event));
    drv.cuCtxCreate(&second, NULL, 0, 0);
    elsewhere = make_event();
    SEE("record_elsewhere", cuCtxRecordEvent(primary, elsewhere));
    SEE("wait_elsewhere", cuCtxWaitEvent(primary, elsewhere));
    drv.cuEventDestroy(elsewhere);
    drv.cuCtxDestroy(second);
    drv.cuEventDestroy(event);
}

static void destroyed(void)
{
    CUcontext second = NULL;
    CUevent event = make_event();

    drv.cuCtxCreate(&second, NULL, 0, 0);
    drv.cuCtxDestroy(second);
    SEE("record", cuCtxRecordEvent(second, event));
    SEE("wait", cuCtxWaitEvent(second, event));
    drv.cuEventDestroy(event);
}

static void in_capture(CUstreamCaptureMode mode)
{
    CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
    CUevent event = make_event();
    CUevent captured = make_event();
    CUgraph graph = NULL;

    drv.cuStreamBeginCapture(stream, mode);
    SEE("record", cuCtxRecordEvent(current(), event));
    SEE("record_end", cuStreamEndCapture(stream, &graph));
    drv.cuStreamBeginCapture(stream, mode);
    SEE("wait", cuCtxWaitEvent(current(), event));
    SEE("wait_end", cuStreamEndCapture(stream, &graph));
    drv.cuStreamBeginCapture(stream, mode);
    drv.cuEventRecord(captured, stream);
    SEE("wait_captured", cuCtxWaitEvent(current(), captured));
    SEE("wait_captured_end", cuStreamEndCapture(stream, &graph));
    drv.cuEventDestroy(captured);
    drv.cuEventDestroy(event);
    drv.cuStreamDestroy(stream);
}

static void capture_global(void)
{
    in_capture(CU_STREAM_CAPTURE_MODE_GLOBAL);
}

static void capture_relaxed(void)
{
    in_capture(CU_STREAM_CAPTURE_MODE_RELAXED);
}

static const struct fidelity_case context_event_cases[] = {
    FIDELITY_CASE(record),
    FIDELITY_CASE(wait),
    FIDELITY_CASE(wrong),
    FIDELITY_CASE(destroyed),
    FIDELITY_CASE(capture_global),
    FIDELITY_CASE(capture_relaxed),
    FIDELITY_END,
};

const struct fidelity_topic context_event_topic = {
    "context_event",
    context_event_cases,
    NULL,
    NULL,
    false,
    LIMIT_MS,
    "Documented: an event of a context stands for all its streams. Measured: "
    "recording one ruins captures, relaxed ones too.",
};
