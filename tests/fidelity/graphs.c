/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs with allocation nodes: who may use the memory when, what launching
 * again means, and what the device keeps for them.
 */
#include "tests/fidelity/calls.h"
#include "tests/fidelity/facts.h"
#include "tests/fidelity/graphs.h"
#include "tests/fidelity/hold.h"
#include "tests/fidelity/pieces.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { LIMIT_MS = 5000, NODES_MAX = 16 };

/* ---- what the device keeps ---- */

#define GRAPH_MEMORY(name)                                                    \
    {                                                                         \
#name, CU_GRAPH_MEM_ATTR_##name                                       \
    }

/* Documented: the highest marks can be set to 0 alone. */
static void attributes(void)
{
    static const struct {
        const char *name;
        CUgraphMem_attribute attribute;
    } list[] = {
        GRAPH_MEMORY(USED_MEM_CURRENT),
        GRAPH_MEMORY(USED_MEM_HIGH),
        GRAPH_MEMORY(RESERVED_MEM_CURRENT),
        GRAPH_MEMORY(RESERVED_MEM_HIGH),
    };
    cuuint64_t value = 0;
    char key[64];

    graph_see_memory("at_first");
    for (size_t i = 0; i < FIDELITY_COUNT(list); i++) {
        snprintf(key, sizeof key, "%s_to_0", list[i].name);
        value = 0;
        SEE(key, cuDeviceSetGraphMemAttribute(0, list[i].attribute, &value));
        snprintf(key, sizeof key, "%s_to_1", list[i].name);
        value = 1;
        SEE(key, cuDeviceSetGraphMemAttribute(0, list[i].attribute, &value));
    }
    SEE("get_unknown",
        cuDeviceGetGraphMemAttribute(0, (CUgraphMem_attribute)99, &value));
    SEE("set_unknown",
        cuDeviceSetGraphMemAttribute(0, (CUgraphMem_attribute)99, &value));
    SEE("get_unknown_device",
        cuDeviceGetGraphMemAttribute(1000, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT,
                                     &value));
    SEE("trim_unknown_device", cuDeviceGraphMemTrim(1000));
    SEE("get_null", cuDeviceGetGraphMemAttribute(
                        0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, NULL));
    SEE("trim", cuDeviceGraphMemTrim(0));
}

/* ---- a graph that allocates ---- */

static void see_nodes(CUgraph graph)
{
    CUgraphNode nodes[NODES_MAX];
    size_t count = NODES_MAX;
    char types[64] = "";

    if (drv.cuGraphGetNodes(graph, nodes, &count) != CUDA_SUCCESS) {
        fact("nodes", "unknown");
        return;
    }
    for (size_t i = 0; i < count && i < NODES_MAX; i++) {
        CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
        size_t used = strlen(types);

        drv.cuGraphNodeGetType(nodes[i], &type);
        snprintf(types + used, sizeof types - used, " %d", (int)type);
    }
    fact("nodes", "%zu:%s", count, types);
}

/* Step by step. */
static void life(void)
{
    struct made made;
    CUdeviceptr first;

    graph_start_afresh();
    graph_see_memory("at_first");
    memset(&made, 0, sizeof made);
    made.stream = make_stream(CU_STREAM_NON_BLOCKING);
    fact_result("capture", graph_capture(&made, true));
    first = made.address;
    see_nodes(made.graph);
    graph_see_memory("captured");
    SEE("instantiate", cuGraphInstantiateWithFlags(&made.exec, made.graph, 0));
    graph_see_memory("instantiated");
    SEE("upload", cuGraphUpload(made.exec, made.stream));
    SEE("upload_synchronize", cuStreamSynchronize(made.stream));
    graph_see_memory("uploaded");
    fact_result("launch", graph_launch(&made));
    graph_see_memory("launched");
    fact_result("launch_again", graph_launch(&made));
    graph_see_memory("launched_again");
    SEE("trim", cuDeviceGraphMemTrim(0));
    graph_see_memory("trimmed");
    fact_result("launch_trimmed", graph_launch(&made));
    graph_see_memory("launched_trimmed");
    SEE("exec_destroy", cuGraphExecDestroy(made.exec));
    graph_see_memory("exec_destroyed");
    SEE("graph_destroy", cuGraphDestroy(made.graph));
    graph_see_memory("graph_destroyed");
    SEE("trim_all", cuDeviceGraphMemTrim(0));
    graph_see_memory("all_trimmed");
    fact_yes("address", first != 0);
    drv.cuStreamDestroy(made.stream);
}

/* Documented: memory that a graph does not free stays allocated after the
 * launch, is freed like any other, and must be before the next launch. */
static void kept(void)
{
    struct made made;

    if (!graph_make(&made, false, 0)) {
        return;
    }
    graph_see_memory("instantiated");
    fact_result("launch", graph_launch(&made));
    graph_see_memory("launched");
    fact("holds", "%s", compare_bytes(made.address, 7, BYTES));
    fact_result("launch_again", graph_launch(&made));
    SEE("trim", cuDeviceGraphMemTrim(0));
    graph_see_memory("trimmed");
    fact("still_holds", "%s", compare_bytes(made.address, 7, BYTES));
    fact_result("free", graph_give_back(&made));
    graph_see_memory("freed");
    fact_result("free_again", graph_give_back(&made));
    fact_result("launch_after_free", graph_launch(&made));
    fact("holds_again", "%s", compare_bytes(made.address, 7, BYTES));
    SEE("free_plainly", cuMemFree(made.address));
    fact_result("launch_after_plain_free", graph_launch(&made));
    fact_result("free_last", graph_give_back(&made));
    graph_see_memory("freed_last");
    graph_drop(&made);
}

static void kept_pointer(void)
{
    struct made made;

    if (graph_make(&made, false, 0)) {
        fact_result("launch", graph_launch(&made));
        see_pointer(made.address);
        fact_result("free", graph_give_back(&made));
        graph_drop(&made);
    }
}

static void pointer_before_launch(void)
{
    struct made made;

    if (graph_make(&made, false, 0)) {
        see_pointer(made.address);
        graph_drop(&made);
    }
}

static void pointer_of_freed(void)
{
    struct made made;

    if (graph_make(&made, true, 0)) {
        fact_result("launch", graph_launch(&made));
        see_pointer(made.address);
        graph_drop(&made);
    }
}

static void free_before_launch(void)
{
    struct made made;

    if (graph_make(&made, false, 0)) {
        fact_result("free", graph_give_back(&made));
        SEE("free_plainly", cuMemFree(made.address));
        graph_drop(&made);
    }
}

static void free_of_freed(void)
{
    struct made made;

    if (graph_make(&made, true, 0)) {
        fact_result("launch", graph_launch(&made));
        fact_result("free", graph_give_back(&made));
        graph_drop(&made);
    }
}

/* The free is ordered behind the launch, whether or not that has run. */
static void free_in_flight(void)
{
    struct made made;

    if (!graph_make(&made, false, 0)) {
        return;
    }
    if (hold(made.stream)) {
        let_go_after(HOLD_DELAY_MS);
        SEE("launch", cuGraphLaunch(made.exec, made.stream));
        SEE("free", cuMemFreeAsync(made.address, made.stream));
        SEE("launch_again", cuGraphLaunch(made.exec, made.stream));
        fact_yes("still_held", let_go());
        SEE("synchronize", cuStreamSynchronize(made.stream));
    }
    fact("holds", "%s", compare_bytes(made.address, 7, BYTES));
    fact_result("free_last", graph_give_back(&made));
    graph_drop(&made);
}

/* Documented: with this flag a launch frees what the one before left. */
static void auto_free(void)
{
    struct made made;

    if (!graph_make(&made, false,
                    CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH)) {
        return;
    }
    fact_result("launch", graph_launch(&made));
    fact_result("launch_again", graph_launch(&made));
    graph_see_memory("launched_again");
    fact("holds", "%s", compare_bytes(made.address, 7, BYTES));
    SEE("exec_destroy", cuGraphExecDestroy(made.exec));
    made.exec = NULL;
    graph_see_memory("exec_destroyed");
    fact("still_holds", "%s", compare_bytes(made.address, 7, BYTES));
    fact_result("free", graph_give_back(&made));
    graph_see_memory("freed");
    graph_drop(&made);
}

/* The graph and what was made of it go, the block stays. */
static void kept_longer(void)
{
    struct made made;

    if (!graph_make(&made, false, 0)) {
        return;
    }
    fact_result("launch", graph_launch(&made));
    SEE("exec_destroy", cuGraphExecDestroy(made.exec));
    SEE("graph_destroy", cuGraphDestroy(made.graph));
    made.exec = NULL;
    made.graph = NULL;
    graph_see_memory("destroyed");
    fact("holds", "%s", compare_bytes(made.address, 7, BYTES));
    fact_result("free", graph_give_back(&made));
    graph_see_memory("freed");
    graph_drop(&made);
}

static void fill_before_launch(void)
{
    struct made made;

    if (graph_make(&made, false, 0)) {
        SEE("fill", cuMemsetD8Async(made.address, 1, 4096, made.stream));
        SEE("synchronize", cuStreamSynchronize(made.stream));
    }
}

static void fill_after_free(void)
{
    struct made made;

    if (graph_make(&made, false, 0)) {
        fact_result("launch", graph_launch(&made));
        fact_result("free", graph_give_back(&made));
        SEE("fill", cuMemsetD8Async(made.address, 1, 4096, made.stream));
        SEE("synchronize", cuStreamSynchronize(made.stream));
    }
}

/* ---- instantiating and launching ---- */

/* Documented: with allocation nodes, one at a time. */
static void instantiate_twice(void)
{
    CUgraphExec second = NULL;
    CUgraph clone = NULL;
    struct made made;

    if (!graph_make(&made, true, 0)) {
        return;
    }
    SEE("second", cuGraphInstantiateWithFlags(&second, made.graph, 0));
    SEE("clone", cuGraphClone(&clone, made.graph));
    SEE("destroy_first", cuGraphExecDestroy(made.exec));
    made.exec = NULL;
    SEE("second_alone",
        cuGraphInstantiateWithFlags(&made.exec, made.graph, 0));
    fact_result("launch", graph_launch(&made));
    graph_drop(&made);
}

static void instantiate_flags(void)
{
    static const unsigned int flags[] = {0, 1, 2, 4, 5, 8, 16};
    char key[32];
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;

    SEE("create", cuGraphCreate(&graph, 0));
    for (size_t i = 0; i < FIDELITY_COUNT(flags); i++) {
        CUresult res;

        exec = NULL;
        snprintf(key, sizeof key, "flags_%u", flags[i]);
        res = drv.cuGraphInstantiateWithFlags(&exec, graph, flags[i]);
        fact_result(key, res);
        if (res == CUDA_SUCCESS) {
            drv.cuGraphExecDestroy(exec);
        }
    }
    SEE("null_graph", cuGraphInstantiateWithFlags(&exec, NULL, 0));
    SEE("null_output", cuGraphInstantiateWithFlags(NULL, graph, 0));
    drv.cuGraphDestroy(graph);
}

static void launch_empty(void)
{
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;

    SEE("create", cuGraphCreate(&graph, 0));
    SEE("instantiate", cuGraphInstantiateWithFlags(&exec, graph, 0));
    SEE("graph_destroy", cuGraphDestroy(graph));
    SEE("legacy", cuGraphLaunch(exec, CU_STREAM_LEGACY));
    SEE("per_thread", cuGraphLaunch(exec, CU_STREAM_PER_THREAD));
    SEE("null_exec", cuGraphLaunch(NULL, CU_STREAM_LEGACY));
    SEE("synchronize", cuCtxSynchronize());
    SEE("exec_destroy", cuGraphExecDestroy(exec));
}

static void exec_destroy_null(void)
{
    SEE("result", cuGraphExecDestroy(NULL));
}

static void exec_destroy_in_flight(void)
{
    struct made made;

    if (!graph_make(&made, true, 0)) {
        return;
    }
    if (hold(made.stream)) {
        let_go_after(HOLD_DELAY_MS);
        SEE("launch", cuGraphLaunch(made.exec, made.stream));
        SEE("destroy", cuGraphExecDestroy(made.exec));
        SEE("graph_destroy", cuGraphDestroy(made.graph));
        made.exec = NULL;
        made.graph = NULL;
        fact_yes("still_held", let_go());
        SEE("synchronize", cuStreamSynchronize(made.stream));
    }
    graph_drop(&made);
}

/* On another stream, while the first launch has not run: launches of one
 * graph don't overlap. */
static void launch_elsewhere(void)
{
    CUstream other = make_stream(CU_STREAM_NON_BLOCKING);
    struct made made;

    if (!graph_make(&made, true, 0)) {
        return;
    }
    fact_result("launch", graph_launch(&made));
    if (hold(made.stream)) {
        let_go_after(HOLD_DELAY_MS);
        SEE("first", cuGraphLaunch(made.exec, made.stream));
        SEE("second", cuGraphLaunch(made.exec, other));
        SEE("query", cuStreamQuery(other));
        SEE("synchronize", cuStreamSynchronize(other));
        fact_yes("held_until_then", let_go());
    }
    graph_drop(&made);
    drv.cuStreamDestroy(other);
}

/* Documented: a launch on a capturing stream becomes a child graph, which may
 * not hold allocation nodes. */
static void launch_captured(void)
{
    struct made made;
    CUgraph graph = NULL;

    if (!graph_make(&made, true, 0)) {
        return;
    }
    drv.cuStreamBeginCapture(made.stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    SEE("launch", cuGraphLaunch(made.exec, made.stream));
    SEE("end", cuStreamEndCapture(made.stream, &graph));
    if (graph != NULL) {
        see_nodes(graph);
        drv.cuGraphDestroy(graph);
    }
    graph_drop(&made);
}

/* ---- two graphs ---- */

/* What graphs free themselves serves the next one. */
static void two_in_turn(void)
{
    struct made first;
    struct made second;

    if (!graph_make(&first, true, 0) || !graph_make(&second, true, 0)) {
        return;
    }
    fact_yes("same_address", first.address == second.address);
    fact_result("first", graph_launch(&first));
    graph_see_memory("after_first");
    fact_result("second", graph_launch(&second));
    graph_see_memory("after_second");
    graph_drop(&second);
    graph_see_memory("second_dropped");
    graph_drop(&first);
    graph_see_memory("first_dropped");
}

static void two_at_once(void)
{
    struct made first;
    struct made second;

    if (!graph_make(&first, false, 0) || !graph_make(&second, false, 0)) {
        return;
    }
    fact_yes("same_address", first.address == second.address);
    fact_result("first", graph_launch(&first));
    fact_result("second", graph_launch(&second));
    graph_see_memory("both_live");
    fact_result("free_first", graph_give_back(&first));
    fact_result("free_second", graph_give_back(&second));
    graph_see_memory("both_freed");
    graph_drop(&first);
    graph_drop(&second);
}

/* Documented: a graph may free what another one allocated. */
static void freed_by_another(void)
{
    CUgraphExec exec = NULL;
    CUgraph graph = NULL;
    struct made made;

    if (!graph_make(&made, false, 0)) {
        return;
    }
    drv.cuStreamBeginCapture(made.stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    SEE("free", cuMemFreeAsync(made.address, made.stream));
    SEE("end", cuStreamEndCapture(made.stream, &graph));
    if (graph != NULL) {
        see_nodes(graph);
        SEE("instantiate", cuGraphInstantiateWithFlags(&exec, graph, 0));
        fact_result("launch", graph_launch(&made));
        SEE("launch_free", cuGraphLaunch(exec, made.stream));
        SEE("synchronize", cuStreamSynchronize(made.stream));
        graph_see_memory("freed");
        fact_result("launch_again", graph_launch(&made));
        fact_result("free_plainly", graph_give_back(&made));
        drv.cuGraphExecDestroy(exec);
        drv.cuGraphDestroy(graph);
    }
    graph_drop(&made);
}

/* ---- nodes ---- */

/* A pool named in a capture is asked for its place alone. */
static void from_pool(void)
{
    CUDA_MEM_ALLOC_NODE_PARAMS params;
    CUmemoryPool pool = make_pool(0);
    CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr address = 0;
    CUgraph graph = NULL;
    CUgraphNode node = NULL;
    cuuint64_t used = 99;
    size_t count = 1;

    memset(&params, 0, sizeof params);
    graph_start_afresh();
    drv.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    SEE("alloc", cuMemAllocFromPoolAsync(&address, 5000, pool, stream));
    SEE("end", cuStreamEndCapture(stream, &graph));
    drv.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used);
    fact_number("used_of_pool", (long long)used);
    SEE("nodes", cuGraphGetNodes(graph, &node, &count));
    SEE("params", cuGraphMemAllocNodeGetParams(node, &params));
    fact("params_are",
         "type %d, handle types %d, location %d %d, %zu bytes, "
         "%zu others, max %zu",
         (int)params.poolProps.allocType, (int)params.poolProps.handleTypes,
         (int)params.poolProps.location.type, params.poolProps.location.id,
         params.bytesize, params.accessDescCount, params.poolProps.maxSize);
    fact_yes("same_address", params.dptr == address);
    SEE("free_node_params_of_it", cuGraphMemFreeNodeGetParams(node, &address));
    drv.cuGraphDestroy(graph);
    drv.cuMemPoolDestroy(pool);
    drv.cuStreamDestroy(stream);
}

static void see_add(const char *what, CUgraph graph,
                    CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
    CUgraphNode node = NULL;
    CUresult res;

    params->dptr = 1;
    res = drv.cuGraphAddMemAllocNode(&node, graph, NULL, 0, params);
    fact(what, "%s, %s", result_name(res),
         params->dptr == 1   ? "unchanged"
         : params->dptr == 0 ? "zero"
                             : "address");
}

static CUDA_MEM_ALLOC_NODE_PARAMS node_params(size_t bytes)
{
    CUDA_MEM_ALLOC_NODE_PARAMS params;

    memset(&params, 0, sizeof params);
    params.poolProps = pool_properties(0);
    params.bytesize = bytes;
    return params;
}

static void add_arguments(void)
{
    CUDA_MEM_ALLOC_NODE_PARAMS params = node_params(BYTES);
    CUgraph graph = NULL;

    drv.cuGraphCreate(&graph, 0);
    see_add("ordinary", graph, &params);
    params = node_params(0);
    see_add("zero_bytes", graph, &params);
    params = node_params((size_t)1 << 46);
    see_add("terabytes", graph, &params);
    params = node_params(BYTES);
    params.poolProps.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    see_add("posix", graph, &params);
    params = node_params(BYTES);
    params.poolProps.location.id = 1000;
    see_add("device_unknown", graph, &params);
    params = node_params(BYTES);
    params.poolProps.location.type = CU_MEM_LOCATION_TYPE_HOST;
    see_add("host", graph, &params);
    params = node_params(BYTES);
    params.poolProps.maxSize = MIB;
    see_add("max_size", graph, &params);
    drv.cuGraphDestroy(graph);
}

/* Documented: an allocation is freed once in a graph, behind its node. */
static void by_hand(void)
{
    CUDA_MEM_ALLOC_NODE_PARAMS params = node_params(BYTES);
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    CUgraphNode alloc = NULL;
    CUgraphNode other = NULL;
    CUdeviceptr found = 0;

    graph_start_afresh();
    SEE("create", cuGraphCreate(&graph, 0));
    SEE("alloc", cuGraphAddMemAllocNode(&alloc, graph, NULL, 0, &params));
    SEE("free_garbage", cuGraphAddMemFreeNode(&other, graph, NULL, 0, 4096));
    SEE("free_not_behind",
        cuGraphAddMemFreeNode(&other, graph, NULL, 0, params.dptr));
    SEE("free_interior",
        cuGraphAddMemFreeNode(&other, graph, &alloc, 1, params.dptr + 4096));
    SEE("free", cuGraphAddMemFreeNode(&other, graph, &alloc, 1, params.dptr));
    SEE("free_params", cuGraphMemFreeNodeGetParams(other, &found));
    fact_yes("free_params_are", found == params.dptr);
    SEE("free_again",
        cuGraphAddMemFreeNode(&other, graph, &alloc, 1, params.dptr));
    SEE("destroy_node", cuGraphDestroyNode(alloc));
    see_nodes(graph);
    SEE("instantiate", cuGraphInstantiateWithFlags(&exec, graph, 0));
    SEE("launch", cuGraphLaunch(exec, CU_STREAM_LEGACY));
    SEE("synchronize", cuStreamSynchronize(CU_STREAM_LEGACY));
    graph_see_memory("launched");
    SEE("exec_destroy", cuGraphExecDestroy(exec));
    SEE("graph_destroy", cuGraphDestroy(graph));
    graph_start_afresh();
}

/* Documented: allocation nodes can't be changed by an update. */
static void update(void)
{
    CUgraphExecUpdateResultInfo info;
    struct made first;
    struct made second;

    memset(&info, 0, sizeof info);
    if (!graph_make(&first, true, 0) || !graph_make(&second, true, 0)) {
        return;
    }
    SEE("result", cuGraphExecUpdate(first.exec, second.graph, &info));
    fact_number("info", (long long)info.result);
    graph_drop(&first);
    graph_drop(&second);
}

static const struct fidelity_case graph_cases[] = {
    FIDELITY_CASE(attributes),
    FIDELITY_CASE(life),
    FIDELITY_CASE(kept),
    FIDELITY_CASE(kept_pointer),
    FIDELITY_CASE(pointer_before_launch),
    FIDELITY_CASE(pointer_of_freed),
    FIDELITY_CASE(free_before_launch),
    FIDELITY_CASE(free_of_freed),
    FIDELITY_CASE(free_in_flight),
    FIDELITY_CASE(auto_free),
    FIDELITY_CASE(kept_longer),
    FIDELITY_CASE(instantiate_twice),
    FIDELITY_CASE(instantiate_flags),
    FIDELITY_CASE(launch_empty),
    FIDELITY_CASE(exec_destroy_in_flight),
    FIDELITY_CASE(launch_elsewhere),
    FIDELITY_CASE(launch_captured),
    FIDELITY_CASE(two_in_turn),
    FIDELITY_CASE(two_at_once),
    FIDELITY_CASE(freed_by_another),
    FIDELITY_CASE(from_pool),
    FIDELITY_CASE(add_arguments),
    FIDELITY_CASE(by_hand),
    FIDELITY_CASE(update),
    FIDELITY_CASE(exec_destroy_null),
    FIDELITY_CASE(fill_after_free),
    FIDELITY_CASE(fill_before_launch),
    FIDELITY_END,
};

const struct fidelity_topic graph_topic = {
    "graph",
    graph_cases,
    NULL,
    NULL,
    false,
    LIMIT_MS,
    "Documented: a graph's allocation lives until it is freed by a graph or "
    "the program. Answers to all else were measured.",
};
