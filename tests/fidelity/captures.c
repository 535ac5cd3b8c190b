/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a capture itself. What other calls do to one is in situations.c.
 */
#include "tests/fidelity/calls.h"
#include "tests/fidelity/facts.h"
#include "tests/fidelity/hold.h"

#include <pthread.h>
#include <stdio.h>

enum { LIMIT_MS = 4500 };

static void see_status(const char *what, CUstream stream)
{
    CUstreamCaptureStatus capture = (CUstreamCaptureStatus)99;
    CUresult res = drv.cuStreamIsCapturing(stream, &capture);

    fact(what, "%s, %s", result_name(res),
         capture == CU_STREAM_CAPTURE_STATUS_NONE          ? "none"
         : capture == CU_STREAM_CAPTURE_STATUS_ACTIVE      ? "active"
         : capture == CU_STREAM_CAPTURE_STATUS_INVALIDATED ? "invalidated"
                                                           : "unchanged");
}

static void see_end(const char *what, CUstream stream)
{
    CUgraph graph = (CUgraph)&graph;
    char key[64];
    CUresult res = drv.cuStreamEndCapture(stream, &graph);

    fact_result(what, res);
    snprintf(key, sizeof key, "%s_graph", what);
    fact(key, "%s",
         graph == (CUgraph)&graph ? "unchanged"
         : graph == NULL          ? "NULL"
                                  : "set");
    if (res == CUDA_SUCCESS && graph != NULL && graph != (CUgraph)&graph) {
        drv.cuGraphDestroy(graph);
    }
}

static void statuses(void)
{
    CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
    CUstream other = make_stream(CU_STREAM_NON_BLOCKING);

    see_status("idle", stream);
    SEE("begin", cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    see_status("begun", stream);
    see_status("other", other);
    see_status("legacy", CU_STREAM_LEGACY);
    see_status("per_thread", CU_STREAM_PER_THREAD);
    see_end("end", stream);
    see_status("ended", stream);
    drv.cuStreamDestroy(stream);
    drv.cuStreamDestroy(other);
}

/* The legacy stream may not even be asked while a blocking one captures. */
static void legacy_status(void)
{
    CUstream stream = NULL;

    drv.cuStreamCreate(&stream, CU_STREAM_DEFAULT);
    drv.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    see_status("legacy", CU_STREAM_LEGACY);
    see_status("stream", stream);
    see_end("end", stream);
    drv.cuStreamDestroy(stream);
}

static void begin_errors(void)
{
    CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);

    SEE("legacy", cuStreamBeginCapture(CU_STREAM_LEGACY,
                                       CU_STREAM_CAPTURE_MODE_RELAXED));
    SEE("bad_mode", cuStreamBeginCapture(stream, (CUstreamCaptureMode)7));
    see_end("end_without_begin", stream);
    SEE("begin", cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    SEE("begin_twice",
        cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    see_status("status", stream);
    see_end("end", stream);
    see_end("end_twice", stream);
    drv.cuStreamDestroy(stream);
}

static void per_thread_stream(void)
{
    SEE("begin", cuStreamBeginCapture(CU_STREAM_PER_THREAD,
                                      CU_STREAM_CAPTURE_MODE_RELAXED));
    see_status("begun", CU_STREAM_PER_THREAD);
    see_end("end", CU_STREAM_PER_THREAD);
}

/* Documented: a busy stream may be captured; earlier work isn't part of it. */
static void begin_while_held(void)
{
    CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);

    if (hold(stream)) {
        SEE("begin",
            cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
        see_end("end", stream);
        fact_yes("still_held", let_go());
    }
    drv.cuStreamDestroy(stream);
}

/* Measured: the unique id of a capturing stream invalidates the capture. */
static void invalidated(void)
{
    unsigned long long id = 0;
    CUdeviceptr block = 0;
    CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);

    drv.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    SEE("id", cuStreamGetId(stream, &id));
    see_status("status", stream);
    SEE("alloc", cuMemAllocAsync(&block, 4096, stream));
    SEE("query", cuStreamQuery(stream));
    SEE("id_again", cuStreamGetId(stream, &id));
    see_end("end", stream);
    see_status("ended", stream);
    SEE("query_after", cuStreamQuery(stream));
    SEE("id_after", cuStreamGetId(stream, &id));
    drv.cuStreamDestroy(stream);
}

/* Destroying the capturing stream; the thread's next capture. */
static void destroyed(void)
{
    CUdeviceptr plain = 0;
    CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
    CUstream second = NULL;

    drv.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    SEE("destroy", cuStreamDestroy(stream));
    SEE("alloc_after", cuMemAlloc(&plain, 4096));
    SEE("create_after", cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    see_status("new_stream", second);
    SEE("begin", cuStreamBeginCapture(second, CU_STREAM_CAPTURE_MODE_GLOBAL));
    see_end("end", second);
    drv.cuStreamDestroy(second);
    drv.cuMemFree(plain);
}

struct ending {
    CUstream stream;
    CUresult res;
};

static void *end_elsewhere(void *argument)
{
    struct ending *ending = argument;
    CUgraph graph = NULL;

    ending->res = drv.cuStreamEndCapture(ending->stream, &graph);
    if (ending->res == CUDA_SUCCESS && graph != NULL) {
        drv.cuGraphDestroy(graph);
    }
    return NULL;
}

/* Documented: only relaxed captures may be ended by another thread. */
static void see_ended_elsewhere(const char *what, CUstreamCaptureMode mode)
{
    struct ending ending = {make_stream(CU_STREAM_NON_BLOCKING),
                            CUDA_ERROR_UNKNOWN};
    CUgraph graph = NULL;
    pthread_t thread;

    drv.cuStreamBeginCapture(ending.stream, mode);
    if (pthread_create(&thread, NULL, end_elsewhere, &ending) == 0) {
        pthread_join(thread, NULL);
    }
    fact_result(what, ending.res);
    if (drv.cuStreamEndCapture(ending.stream, &graph) == CUDA_SUCCESS &&
        graph != NULL) {
        drv.cuGraphDestroy(graph);
    }
    drv.cuStreamDestroy(ending.stream);
}

static void ended_elsewhere(void)
{
    see_ended_elsewhere("global", CU_STREAM_CAPTURE_MODE_GLOBAL);
    see_ended_elsewhere("thread_local", CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    see_ended_elsewhere("relaxed", CU_STREAM_CAPTURE_MODE_RELAXED);
}

/* An event recorded in the capture draws another stream into it. */
static void joined(void)
{
    CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
    CUstream other = make_stream(CU_STREAM_NON_BLOCKING);
    CUevent event = NULL;

    drv.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    drv.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    SEE("record", cuEventRecord(event, stream));
    SEE("event_query", cuEventQuery(event));
    see_status("after_query", stream);
    SEE("wait", cuStreamWaitEvent(other, event, 0));
    see_status("other", other);
    see_end("end_unjoined", stream);
    drv.cuEventDestroy(event);
    drv.cuStreamDestroy(stream);
    drv.cuStreamDestroy(other);
}

static void joined_back(void)
{
    CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
    CUstream other = make_stream(CU_STREAM_NON_BLOCKING);
    CUevent event = NULL;
    CUevent back = NULL;

    drv.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    drv.cuEventCreate(&back, CU_EVENT_DISABLE_TIMING);
    drv.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    SEE("record", cuEventRecord(event, stream));
    SEE("wait", cuStreamWaitEvent(other, event, 0));
    SEE("record_back", cuEventRecord(back, other));
    SEE("wait_back", cuStreamWaitEvent(stream, back, 0));
    see_end("end", stream);
    see_status("other_after", other);
    SEE("event_query_after", cuEventQuery(event));
    drv.cuEventDestroy(event);
    drv.cuEventDestroy(back);
    drv.cuStreamDestroy(stream);
    drv.cuStreamDestroy(other);
}

/* Allocation and free inside one capture, and a free of an outside block. */
static void alloc_and_free(void)
{
    CUdeviceptr outside = 0;
    CUdeviceptr inside = 0;
    CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);

    drv.cuMemAllocAsync(&outside, 4096, stream);
    drv.cuStreamSynchronize(stream);
    drv.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    SEE("alloc", cuMemAllocAsync(&inside, 4096, stream));
    fact_yes("address", inside != 0);
    SEE("free_inside", cuMemFreeAsync(inside, stream));
    see_status("status", stream);
    SEE("free_outside", cuMemFreeAsync(outside, stream));
    see_status("status_after", stream);
    see_end("end", stream);
    SEE("free_outside_later", cuMemFreeAsync(outside, stream));
    drv.cuStreamSynchronize(stream);
    drv.cuStreamDestroy(stream);
}

static void exchange(void)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

    SEE("first", cuThreadExchangeStreamCaptureMode(&mode));
    fact_number("initial_mode", (long long)mode);
    SEE("second", cuThreadExchangeStreamCaptureMode(&mode));
    fact_number("then_mode", (long long)mode);
    mode = (CUstreamCaptureMode)7;
    SEE("bad_mode", cuThreadExchangeStreamCaptureMode(&mode));
    SEE("null", cuThreadExchangeStreamCaptureMode(NULL));
}

static void capture_details(void)
{
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUgraphNode *nodes = NULL;
    CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
    CUgraph graph = NULL;
    cuuint64_t first = 0;
    cuuint64_t second = 0;
    size_t count = 99;

    SEE("idle", cuStreamGetCaptureInfo(stream, &capture, &first, &graph, NULL,
                                       NULL, NULL));
    drv.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    SEE("active", cuStreamGetCaptureInfo(stream, &capture, &first, &graph,
                                         &nodes, NULL, &count));
    fact_number("dependencies", (long long)count);
    fact_yes("graph", graph != NULL);
    see_end("end", stream);
    drv.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    drv.cuStreamGetCaptureInfo(stream, &capture, &second, NULL, NULL, NULL,
                               NULL);
    fact_yes("new_id", first != second);
    see_end("end_second", stream);
    drv.cuStreamDestroy(stream);
}

static const struct fidelity_case capture_cases[] = {
    FIDELITY_CASE(statuses),         FIDELITY_CASE(legacy_status),
    FIDELITY_CASE(begin_errors),     FIDELITY_CASE(per_thread_stream),
    FIDELITY_CASE(begin_while_held), FIDELITY_CASE(invalidated),
    FIDELITY_CASE(ended_elsewhere),  FIDELITY_CASE(joined),
    FIDELITY_CASE(joined_back),      FIDELITY_CASE(alloc_and_free),
    FIDELITY_CASE(exchange),         FIDELITY_CASE(capture_details),
    FIDELITY_CASE(destroyed),        FIDELITY_END,
};

const struct fidelity_topic capture_topic = {
    "capture",
    capture_cases,
    NULL,
    NULL,
    false,
    LIMIT_MS,
    "Documented: a capture ends on its first stream, with all that joined it "
    "joined back. Answers to all else were measured.",
};
