/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory a device keeps for graphs, and when. */
#include "tests/fidelity/graphs.h"

#include "tests/fidelity/calls.h"
#include "tests/fidelity/facts.h"
#include "tests/fidelity/hold.h"
#include "tests/fidelity/pieces.h"

#include <stdio.h>
#include <string.h>

enum { LIMIT_MS = 5000 };

/* ---- what the device keeps ---- */

static unsigned long long graph_memory(CUgraphMem_attribute attribute)
{
    cuuint64_t value = 123456789;

    if (drv.cuDeviceGetGraphMemAttribute(0, attribute, &value) !=
        CUDA_SUCCESS) {
        return 123456789;
    }
    return value / 1024;
}

void graph_see_memory(const char *what)
{
    fact(what, "used %llu of %llu, highest %llu of %llu",
         graph_memory(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT),
         graph_memory(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT),
         graph_memory(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH),
         graph_memory(CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH));
}

void graph_start_afresh(void)
{
    cuuint64_t zero = 0;

    drv.cuCtxSynchronize();
    drv.cuDeviceGraphMemTrim(0);
    drv.cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH,
                                     &zero);
    drv.cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH,
                                     &zero);
}

/* ---- a graph that allocates ---- */

CUresult graph_capture(struct made *made, bool with_free)
{
    CUresult res;

    res =
        drv.cuStreamBeginCapture(made->stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    if (res == CUDA_SUCCESS) {
        res = drv.cuMemAllocAsync(&made->address, BYTES, made->stream);
    }
    if (res == CUDA_SUCCESS) {
        res = drv.cuMemsetD8Async(made->address, 7, BYTES, made->stream);
    }
    if (res == CUDA_SUCCESS && with_free) {
        res = drv.cuMemFreeAsync(made->address, made->stream);
    }
    if (res == CUDA_SUCCESS) {
        res = drv.cuStreamEndCapture(made->stream, &made->graph);
    }
    return res;
}

bool graph_make(struct made *made, bool with_free, unsigned long long flags)
{
    CUresult res;

    graph_start_afresh();
    memset(made, 0, sizeof *made);
    made->stream = make_stream(CU_STREAM_NON_BLOCKING);
    res = graph_capture(made, with_free);
    if (res == CUDA_SUCCESS) {
        res = drv.cuGraphInstantiateWithFlags(&made->exec, made->graph, flags);
    }
    if (res != CUDA_SUCCESS) {
        fact_result("make", res);
    }
    return res == CUDA_SUCCESS;
}

void graph_drop(struct made *made)
{
    drv.cuStreamSynchronize(made->stream);
    if (made->exec != NULL) {
        drv.cuGraphExecDestroy(made->exec);
    }
    if (made->graph != NULL) {
        drv.cuGraphDestroy(made->graph);
    }
    drv.cuStreamDestroy(made->stream);
    graph_start_afresh();
}

CUresult graph_launch(const struct made *made)
{
    CUresult res = drv.cuGraphLaunch(made->exec, made->stream);

    return res == CUDA_SUCCESS ? drv.cuStreamSynchronize(made->stream) : res;
}

CUresult graph_give_back(const struct made *made)
{
    CUresult res = drv.cuMemFreeAsync(made->address, made->stream);

    return res == CUDA_SUCCESS ? drv.cuStreamSynchronize(made->stream) : res;
}

/* ---- how much ---- */

enum { PARTS_MAX = 4 };

/* A graph that allocates parts, one after the other. With `in_turn` each is
 * freed before the next, else all of them at the end. */
static void see_parts(const char *what, const size_t *parts, size_t count,
                      bool in_turn)
{
    CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr address[PARTS_MAX] = {0};
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    char key[64];
    bool shared = false;

    graph_start_afresh();
    drv.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    for (size_t i = 0; i < count; i++) {
        drv.cuMemAllocAsync(&address[i], parts[i], stream);
        if (in_turn) {
            drv.cuMemFreeAsync(address[i], stream);
        }
        shared = shared || (i > 0 && address[i] == address[i - 1]);
    }
    for (size_t i = 0; i < count && !in_turn; i++) {
        drv.cuMemFreeAsync(address[i], stream);
    }
    drv.cuStreamEndCapture(stream, &graph);
    drv.cuGraphInstantiateWithFlags(&exec, graph, 0);
    snprintf(key, sizeof key, "%s_launch", what);
    SEE(key, cuGraphLaunch(exec, stream));
    drv.cuStreamSynchronize(stream);
    snprintf(key, sizeof key, "%s_memory", what);
    graph_see_memory(key);
    snprintf(key, sizeof key, "%s_same_address", what);
    fact_yes(key, shared);
    drv.cuGraphExecDestroy(exec);
    drv.cuGraphDestroy(graph);
    drv.cuStreamDestroy(stream);
    graph_start_afresh();
}

static void amounts(void)
{
    const size_t small[] = {100, 100};
    const size_t large[] = {33 * MIB};
    const size_t exact[] = {32 * MIB};
    const size_t several[] = {20 * MIB, 20 * MIB};
    const size_t growing[] = {8 * MIB, 16 * MIB, 40 * MIB};

    see_parts("small", small, 2, false);
    see_parts("exact", exact, 1, false);
    see_parts("large", large, 1, false);
    see_parts("several", several, 2, false);
    see_parts("several_in_turn", several, 2, true);
    see_parts("growing_in_turn", growing, 3, true);
}

/* The memory is the device's, like any other. */
static void taken(void)
{
    size_t before;
    struct made made;

    graph_start_afresh();
    before = available_bytes();
    memset(&made, 0, sizeof made);
    made.stream = make_stream(CU_STREAM_NON_BLOCKING);
    drv.cuStreamBeginCapture(made.stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    drv.cuMemAllocAsync(&made.address, BIG_BYTES, made.stream);
    drv.cuMemFreeAsync(made.address, made.stream);
    drv.cuStreamEndCapture(made.stream, &made.graph);
    see_taken("captured", before);
    drv.cuGraphInstantiateWithFlags(&made.exec, made.graph, 0);
    see_taken("instantiated", before);
    fact_result("launch", graph_launch(&made));
    see_taken("launched", before);
    drv.cuGraphExecDestroy(made.exec);
    drv.cuGraphDestroy(made.graph);
    see_taken("destroyed", before);
    SEE("trim", cuDeviceGraphMemTrim(0));
    see_taken("trimmed", before);
    drv.cuStreamDestroy(made.stream);
}

static void trim_in_flight(void)
{
    struct made made;

    if (!graph_make(&made, true, 0)) {
        return;
    }
    if (hold(made.stream)) {
        let_go_after(HOLD_DELAY_MS);
        SEE("launch", cuGraphLaunch(made.exec, made.stream));
        graph_see_memory("in_flight");
        SEE("trim", cuDeviceGraphMemTrim(0));
        graph_see_memory("trimmed");
        fact_yes("still_held", let_go());
        SEE("synchronize", cuStreamSynchronize(made.stream));
        graph_see_memory("run");
        SEE("trim_again", cuDeviceGraphMemTrim(0));
        graph_see_memory("trimmed_again");
    }
    graph_drop(&made);
}

/* Two launches that could run side by side. */
static void two_in_flight(void)
{
    struct made first;
    struct made second;

    if (!graph_make(&first, true, 0) || !graph_make(&second, true, 0)) {
        return;
    }
    if (hold(first.stream)) {
        let_go_after(HOLD_DELAY_MS);
        SEE("first", cuGraphLaunch(first.exec, first.stream));
        SEE("second", cuGraphLaunch(second.exec, second.stream));
        SEE("synchronize_second", cuStreamSynchronize(second.stream));
        fact_yes("still_held", let_go());
        SEE("synchronize_first", cuStreamSynchronize(first.stream));
        graph_see_memory("run");
    }
    graph_drop(&second);
    graph_drop(&first);
}

static const struct fidelity_case graph_memory_cases[] = {
    FIDELITY_CASE(amounts),
    FIDELITY_CASE(taken),
    FIDELITY_CASE(trim_in_flight),
    FIDELITY_CASE(two_in_flight),
    FIDELITY_END,
};

const struct fidelity_topic graph_memory_topic = {
    "graph_memory",
    graph_memory_cases,
    NULL,
    NULL,
    false,
    LIMIT_MS,
    "Documented: a device keeps memory for graphs until it is trimmed. How "
    "much and when was measured.",
};
