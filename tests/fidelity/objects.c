/* SPDX-License-Identifier: Apache-2.0 */
/*
 * User objects: what a graph keeps alive, and when and where the destructor
 * is called.
 */
#include "tests/fidelity/calls.h"
#include "tests/fidelity/facts.h"
#include "tests/fidelity/hold.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

enum { LIMIT_MS = 5000, PATIENCE_MS = 400 };

#define NO_SYNC CU_USER_OBJECT_NO_DESTRUCTOR_SYNC

/* ---- the destructor ---- */

static atomic_int destroyed;
static pthread_t destroyer;

static void CUDA_CB destructor(void *unused)
{
    (void)unused;
    destroyer = pthread_self();
    atomic_fetch_add(&destroyed, 1);
}

/* Report whether it was called since the last time, and by whom. */
static void see_destroyed(const char *what)
{
    const struct timespec pause = {0, 2000000};
    int count = 0;

    for (int waited = 0; waited < PATIENCE_MS; waited += 2) {
        count = atomic_load(&destroyed);
        if (count != 0) {
            break;
        }
        nanosleep(&pause, NULL);
    }
    if (count == 0) {
        fact(what, "no");
    } else {
        fact(what, "%s%s", count == 1 ? "once" : "several times",
             pthread_equal(destroyer, pthread_self()) ? ", by this thread"
                                                      : ", by another thread");
    }
    atomic_store(&destroyed, 0);
}

static CUuserObject make_object(unsigned int count)
{
    CUuserObject object = NULL;
    CUresult res = drv.cuUserObjectCreate(&object, &destroyed, destructor,
                                          count, NO_SYNC);

    if (res != CUDA_SUCCESS) {
        fact_result("make_object", res);
    }
    atomic_store(&destroyed, 0);
    return object;
}

/* ---- counting ---- */

static void create(void)
{
    CUuserObject object = NULL;

    SEE("null_output", cuUserObjectCreate(NULL, NULL, destructor, 1, NO_SYNC));
    SEE("null_destructor",
        cuUserObjectCreate(&object, NULL, NULL, 1, NO_SYNC));
    SEE("count_0", cuUserObjectCreate(&object, NULL, destructor, 0, NO_SYNC));
    SEE("count_too_high",
        cuUserObjectCreate(&object, NULL, destructor, 0x80000000u, NO_SYNC));
    SEE("flags_0", cuUserObjectCreate(&object, NULL, destructor, 1, 0));
    SEE("flags_2", cuUserObjectCreate(&object, NULL, destructor, 1, 2));
    SEE("null_data",
        cuUserObjectCreate(&object, NULL, destructor, 1, NO_SYNC));
    SEE("release", cuUserObjectRelease(object, 1));
    see_destroyed("destroyed");
}

static void counts(void)
{
    CUuserObject object = make_object(3);

    SEE("release_0", cuUserObjectRelease(object, 0));
    SEE("retain_0", cuUserObjectRetain(object, 0));
    SEE("release_2", cuUserObjectRelease(object, 2));
    see_destroyed("one_left");
    SEE("retain_2", cuUserObjectRetain(object, 2));
    SEE("release_1", cuUserObjectRelease(object, 1));
    see_destroyed("two_left");
    SEE("release_last", cuUserObjectRelease(object, 2));
    see_destroyed("none_left");
}

static void release_too_many(void)
{
    CUuserObject object = make_object(1);

    SEE("result", cuUserObjectRelease(object, 5));
    see_destroyed("destroyed");
}

static void release_null(void)
{
    SEE("release", cuUserObjectRelease(NULL, 1));
    SEE("retain", cuUserObjectRetain(NULL, 1));
}

/* ---- graphs ---- */

static void by_graph(void)
{
    CUuserObject object = make_object(1);
    CUgraph graph = NULL;

    drv.cuGraphCreate(&graph, 0);
    SEE("null_object", cuGraphRetainUserObject(graph, NULL, 1, 0));
    SEE("null_graph", cuGraphRetainUserObject(NULL, object, 1, 0));
    SEE("count_0", cuGraphRetainUserObject(graph, object, 0, 0));
    SEE("flags_2", cuGraphRetainUserObject(graph, object, 1, 2));
    SEE("retain", cuGraphRetainUserObject(graph, object, 1, 0));
    SEE("release", cuUserObjectRelease(object, 1));
    see_destroyed("released");
    SEE("destroy", cuGraphDestroy(graph));
    see_destroyed("graph_destroyed");
}

/* Documented: with this flag the graph takes over the caller's references. */
static void moved(void)
{
    CUuserObject object = make_object(1);
    CUgraph graph = NULL;

    drv.cuGraphCreate(&graph, 0);
    SEE("retain",
        cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
    SEE("destroy", cuGraphDestroy(graph));
    see_destroyed("graph_destroyed");
}

static void released_by_graph(void)
{
    CUuserObject object = make_object(1);
    CUgraph graph = NULL;

    drv.cuGraphCreate(&graph, 0);
    SEE("move",
        cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
    SEE("release", cuGraphReleaseUserObject(graph, object, 1));
    see_destroyed("released");
    SEE("destroy", cuGraphDestroy(graph));
    see_destroyed("graph_destroyed");
}

/* Nothing is checked: the count that is wrong then is the object's. */
static void released_by_stranger(void)
{
    CUuserObject object = make_object(1);
    CUgraph graph = NULL;

    drv.cuGraphCreate(&graph, 0);
    SEE("release", cuGraphReleaseUserObject(graph, object, 1));
    see_destroyed("released");
    facts_ruin();
}

/* Documented: an instantiated graph and a clone have references of their own;
 * launching adds none. */
static void by_exec(void)
{
    CUuserObject object = make_object(1);
    CUgraph graph = NULL;
    CUgraph clone = NULL;
    CUgraphExec exec = NULL;

    drv.cuGraphCreate(&graph, 0);
    drv.cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE);
    SEE("instantiate", cuGraphInstantiateWithFlags(&exec, graph, 0));
    SEE("clone", cuGraphClone(&clone, graph));
    SEE("graph_destroy", cuGraphDestroy(graph));
    see_destroyed("graph_destroyed");
    SEE("launch", cuGraphLaunch(exec, CU_STREAM_LEGACY));
    SEE("synchronize", cuStreamSynchronize(CU_STREAM_LEGACY));
    see_destroyed("launched");
    SEE("exec_destroy", cuGraphExecDestroy(exec));
    see_destroyed("exec_destroyed");
    SEE("clone_destroy", cuGraphDestroy(clone));
    see_destroyed("clone_destroyed");
}

/* The instantiated graph alone is left, and is destroyed. */
static void by_exec_last(void)
{
    CUuserObject object = make_object(1);
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;

    drv.cuGraphCreate(&graph, 0);
    drv.cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE);
    SEE("instantiate", cuGraphInstantiateWithFlags(&exec, graph, 0));
    SEE("graph_destroy", cuGraphDestroy(graph));
    see_destroyed("graph_destroyed");
    SEE("launch", cuGraphLaunch(exec, CU_STREAM_LEGACY));
    SEE("synchronize", cuStreamSynchronize(CU_STREAM_LEGACY));
    SEE("exec_destroy", cuGraphExecDestroy(exec));
    see_destroyed("exec_destroyed");
}

/* Destroyed while a launch has not run. */
static void in_flight(void)
{
    CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
    CUuserObject object = make_object(1);
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;

    drv.cuGraphCreate(&graph, 0);
    drv.cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE);
    SEE("instantiate", cuGraphInstantiateWithFlags(&exec, graph, 0));
    if (hold(stream)) {
        SEE("launch", cuGraphLaunch(exec, stream));
        SEE("exec_destroy", cuGraphExecDestroy(exec));
        SEE("graph_destroy", cuGraphDestroy(graph));
        see_destroyed("in_flight");
        fact_yes("still_held", let_go());
        SEE("synchronize", cuStreamSynchronize(stream));
        see_destroyed("run");
    }
    drv.cuStreamDestroy(stream);
}

/* ---- captures ---- */

static CUgraph graph_of(CUstream stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUgraph graph = NULL;
    CUresult res = drv.cuStreamGetCaptureInfo(stream, &status, NULL, &graph,
                                              NULL, NULL, NULL);

    if (res != CUDA_SUCCESS) {
        fact_result("capture_info", res);
    }
    return graph;
}

/* A library keeps something alive for a capture that is not its own. */
static void by_capture(void)
{
    CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
    CUuserObject object = make_object(1);
    CUgraph graph = NULL;

    drv.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    SEE("retain", cuGraphRetainUserObject(graph_of(stream), object, 1,
                                          CU_GRAPH_USER_OBJECT_MOVE));
    SEE("end", cuStreamEndCapture(stream, &graph));
    see_destroyed("ended");
    SEE("destroy", cuGraphDestroy(graph));
    see_destroyed("graph_destroyed");
    drv.cuStreamDestroy(stream);
}

static void by_ruined_capture(void)
{
    CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
    CUuserObject object = make_object(1);
    CUgraph graph = NULL;

    drv.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    SEE("retain", cuGraphRetainUserObject(graph_of(stream), object, 1,
                                          CU_GRAPH_USER_OBJECT_MOVE));
    SEE("ruin", cuStreamSynchronize(stream));
    see_destroyed("ruined");
    SEE("end", cuStreamEndCapture(stream, &graph));
    see_destroyed("ended");
    drv.cuStreamDestroy(stream);
}

/* The stream goes in the middle of its capture. */
static void by_lost_capture(void)
{
    CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
    CUuserObject object = make_object(1);

    drv.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    SEE("retain", cuGraphRetainUserObject(graph_of(stream), object, 1,
                                          CU_GRAPH_USER_OBJECT_MOVE));
    SEE("destroy_stream", cuStreamDestroy(stream));
    see_destroyed("destroyed");
}

/* ---- calls in the destructor ---- */

static struct {
    CUresult version;
    CUresult capturing;
    CUresult available;
    CUresult current;
} answers;

static void CUDA_CB calling_destructor(void *unused)
{
    CUstreamCaptureStatus status;
    CUcontext context = NULL;
    size_t available;
    size_t total;
    int version;

    answers.version = drv.cuDriverGetVersion(&version);
    answers.capturing = drv.cuStreamIsCapturing(CU_STREAM_LEGACY, &status);
    answers.available = drv.cuMemGetInfo(&available, &total);
    answers.current = drv.cuCtxGetCurrent(&context);
    destructor(unused);
}

static void see_answers(void)
{
    fact_result("cuDriverGetVersion", answers.version);
    fact_result("cuStreamIsCapturing", answers.capturing);
    fact_result("cuMemGetInfo", answers.available);
    fact_result("cuCtxGetCurrent", answers.current);
}

/* Documented: the destructor must not call the driver. */
static void calls_at_release(void)
{
    CUuserObject object = NULL;

    memset(&answers, 0xff, sizeof answers);
    SEE("create",
        cuUserObjectCreate(&object, NULL, calling_destructor, 1, NO_SYNC));
    SEE("release", cuUserObjectRelease(object, 1));
    see_destroyed("destroyed");
    see_answers();
}

static void calls_at_exec_destroy(void)
{
    CUuserObject object = NULL;
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;

    memset(&answers, 0xff, sizeof answers);
    drv.cuGraphCreate(&graph, 0);
    SEE("create",
        cuUserObjectCreate(&object, NULL, calling_destructor, 1, NO_SYNC));
    drv.cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE);
    drv.cuGraphInstantiateWithFlags(&exec, graph, 0);
    drv.cuGraphDestroy(graph);
    drv.cuGraphLaunch(exec, CU_STREAM_LEGACY);
    drv.cuStreamSynchronize(CU_STREAM_LEGACY);
    SEE("exec_destroy", cuGraphExecDestroy(exec));
    see_destroyed("destroyed");
    see_answers();
}

static const struct fidelity_case object_cases[] = {
    FIDELITY_CASE(create),
    FIDELITY_CASE(counts),
    FIDELITY_CASE(by_graph),
    FIDELITY_CASE(moved),
    FIDELITY_CASE(released_by_graph),
    FIDELITY_CASE(by_exec),
    FIDELITY_CASE(by_exec_last),
    FIDELITY_CASE(in_flight),
    FIDELITY_CASE(by_capture),
    FIDELITY_CASE(by_ruined_capture),
    FIDELITY_CASE(by_lost_capture),
    FIDELITY_CASE(calls_at_release),
    FIDELITY_CASE(calls_at_exec_destroy),
    FIDELITY_CASE(released_by_stranger),
    FIDELITY_CASE(release_null),
    FIDELITY_CASE(release_too_many),
    FIDELITY_END,
};

const struct fidelity_topic object_topic = {
    "object",
    object_cases,
    NULL,
    NULL,
    false,
    LIMIT_MS,
    "Documented: the destructor is called when the last reference goes. "
    "When, on which thread and what it may call was measured.",
};
