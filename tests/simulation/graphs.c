/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs that allocate: launches, what they leave, what runs in which order. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "tests/simulation/driver.h"
#include "tests/support/tap.h"

enum { SEEDS = 60 };

static uint64_t graph_memory(void)
{
    cuuint64_t value = 0;

    drv.cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT,
                                     &value);
    return value;
}

/* Capture an allocation, a fill, and perhaps a free. */
static CUgraphExec capture(CUstream stream, size_t bytes, bool with_free,
                           unsigned long long flags, CUdeviceptr *address)
{
    CUgraphExec exec = NULL;
    CUgraph graph = NULL;

    drv.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    drv.cuMemAllocAsync(address, bytes, stream);
    drv.cuMemsetD8Async(*address, 7, bytes, stream);
    if (with_free) {
        drv.cuMemFreeAsync(*address, stream);
    }
    CHECK(drv.cuStreamEndCapture(stream, &graph));
    CHECK(drv.cuGraphInstantiateWithFlags(&exec, graph, flags));
    CHECK(drv.cuGraphDestroy(graph));
    return exec;
}

static unsigned char byte_at(CUdeviceptr address)
{
    unsigned char byte = 0;

    drv.cuMemcpyDtoH(&byte, address, 1);
    return byte;
}

static void kept(ccmr_sim_mode mode)
{
    CUdeviceptr address = 0;
    CUgraphExec exec;
    CUstream stream, other;

    driver_start(mode, 0);
    stream = new_stream();
    other = new_stream();
    exec = capture(stream, 8 * MIB, false, 0, &address);
    tap_is_size(graph_memory(), 0, "nothing is taken before the launch");
    tap_is_int(census_now().graph_execs, 1, "an instance");
    CHECK(drv.cuGraphLaunch(exec, stream));
    tap_is_size(graph_memory(), 32 * MIB, "then it is");
    tap_is_int(census_now().graph_blocks, 1, "a block is left");
    CHECK_IS(drv.cuGraphLaunch(exec, stream), CUDA_ERROR_INVALID_VALUE);
    drv.cuStreamSynchronize(stream);
    tap_is_int(byte_at(address + 8 * MIB - 1), 7, "filled");
    CHECK(drv.cuGraphExecDestroy(exec));
    tap_is_int(byte_at(address), 7, "it outlives what made it");
    CHECK(drv.cuDeviceGraphMemTrim(0));
    tap_is_size(graph_memory(), 32 * MIB, "trimming leaves it");
    CHECK(drv.cuMemFreeAsync(address, other));
    CHECK_IS(drv.cuMemFreeAsync(address, other), CUDA_ERROR_INVALID_VALUE);
    drv.cuStreamSynchronize(other);
    CHECK(drv.cuDeviceGraphMemTrim(0));
    tap_is_size(census_now().device_bytes, 0, "all is given back");
    drv.cuStreamDestroy(stream);
    drv.cuStreamDestroy(other);
    check_nothing_left("kept");
}

/* While one launch has not run, another graph's memory is another. */
static void side_by_side(void)
{
    CUdeviceptr one = 0;
    CUdeviceptr two = 0;
    CUgraphExec first, second;
    CUstream stream, other;

    driver_start(CCMR_SIM_LATE, 0);
    stream = new_stream();
    other = new_stream();
    first = capture(stream, MIB, true, 0, &one);
    second = capture(stream, MIB, true, 0, &two);
    tap_ok(one != two, "addresses of their own");
    sim->stall(stream);
    CHECK(drv.cuGraphLaunch(first, stream));
    CHECK(drv.cuGraphLaunch(second, stream));
    tap_is_size(graph_memory(), 32 * MIB, "in turn they share memory");
    CHECK(drv.cuGraphLaunch(second, other));
    tap_is_size(graph_memory(), 64 * MIB, "elsewhere they don't");
    CHECK_IS(drv.cuStreamQuery(other), CUDA_ERROR_NOT_READY);
    sim->release(stream);
    drv.cuStreamSynchronize(other);
    drv.cuStreamSynchronize(stream);
    drv.cuGraphExecDestroy(first);
    drv.cuGraphExecDestroy(second);
    drv.cuDeviceGraphMemTrim(0);
    tap_is_size(census_now().device_bytes, 0, "all is given back");
    drv.cuStreamDestroy(stream);
    drv.cuStreamDestroy(other);
    check_nothing_left("side by side");
}

static void shortage(void)
{
    CUdeviceptr address = 0;
    CUdeviceptr plain = 0;
    CUgraphExec exec;
    CUstream stream;

    sim->set_memory(0, 64 * MIB);
    driver_start(CCMR_SIM_EAGER, 0);
    stream = new_stream();
    exec = capture(stream, 40 * MIB, true, 0, &address);
    CHECK(drv.cuMemAlloc(&plain, 8 * MIB));
    CHECK_IS(drv.cuGraphLaunch(exec, stream), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(drv.cuMemFree(plain));
    CHECK(drv.cuGraphLaunch(exec, stream));
    drv.cuStreamSynchronize(stream);
    drv.cuGraphExecDestroy(exec);
    drv.cuDeviceGraphMemTrim(0);
    drv.cuStreamDestroy(stream);
    check_nothing_left("shortage");
}

/* What a graph leaves open, chance decides. */

static char order_seen[8];
static size_t order_count;

static void CUDA_CB note(void *name)
{
    order_seen[order_count++] = *(const char *)name;
}

static CUgraphNode add_host(CUgraph graph, const CUgraphNode *after,
                            size_t count, const char *name)
{
    CUDA_HOST_NODE_PARAMS params;
    CUgraphNode node = NULL;
    static char names[8][2];
    static size_t used;
    char *kept = names[used++ % 8];

    kept[0] = name[0];
    params.fn = note;
    params.userData = kept;
    CHECK(drv.cuGraphAddHostNode(&node, graph, after, count, &params));
    return node;
}

/* a; then b and c side by side; then d. */
static void diamond(void)
{
    bool seen_bc = false;
    bool seen_cb = false;
    bool good = true;
    CUgraphNode node[4];
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    CUstream stream;
    int seed;

    driver_start(CCMR_SIM_LATE, 1);
    stream = new_stream();
    drv.cuGraphCreate(&graph, 0);
    node[0] = add_host(graph, NULL, 0, "a");
    node[1] = add_host(graph, &node[0], 1, "b");
    node[2] = add_host(graph, &node[0], 1, "c");
    node[3] = add_host(graph, &node[1], 2, "d");
    CHECK(drv.cuGraphInstantiateWithFlags(&exec, graph, 0));
    for (seed = 1; seed <= SEEDS; seed++) {
        sim->set_seed((uint64_t)seed);
        order_count = 0;
        memset(order_seen, 0, sizeof order_seen);
        good = good && drv.cuGraphLaunch(exec, stream) == CUDA_SUCCESS &&
               drv.cuStreamSynchronize(stream) == CUDA_SUCCESS;
        seen_bc = seen_bc || strcmp(order_seen, "abcd") == 0;
        seen_cb = seen_cb || strcmp(order_seen, "acbd") == 0;
        good = good && (strcmp(order_seen, "abcd") == 0 ||
                        strcmp(order_seen, "acbd") == 0);
    }
    tap_ok(good, "the first is first, the last is last");
    tap_ok(seen_bc && seen_cb, "those between come in any order");
    drv.cuGraphExecDestroy(exec);
    drv.cuGraphDestroy(graph);
    drv.cuStreamDestroy(stream);
    check_nothing_left("diamond");
}

/* Destructors of user objects. */

static atomic_int destroyed;

static void CUDA_CB destructor(void *unused)
{
    (void)unused;
    atomic_fetch_add(&destroyed, 1);
}

static bool wait_for_destructor(void)
{
    const struct timespec pause = {0, 1000000};
    int i;

    for (i = 0; i < 5000 && atomic_load(&destroyed) == 0; i++) {
        nanosleep(&pause, NULL);
    }
    return atomic_load(&destroyed) == 1;
}

static void objects(void)
{
    CUuserObject object = NULL;
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    CUstream stream;

    driver_start(CCMR_SIM_LATE, 0);
    stream = new_stream();
    drv.cuGraphCreate(&graph, 0);
    CHECK(drv.cuUserObjectCreate(&object, NULL, destructor, 1,
                                 CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    tap_is_int(census_now().user_objects, 1, "an object");
    CHECK(drv.cuGraphRetainUserObject(graph, object, 1,
                                      CU_GRAPH_USER_OBJECT_MOVE));
    CHECK(drv.cuGraphInstantiateWithFlags(&exec, graph, 0));
    CHECK(drv.cuGraphDestroy(graph));
    sim->stall(stream);
    CHECK(drv.cuGraphLaunch(exec, stream));
    CHECK(drv.cuGraphExecDestroy(exec));
    tap_is_int(atomic_load(&destroyed), 0, "a launch still needs it");
    sim->release(stream);
    CHECK(drv.cuStreamSynchronize(stream));
    tap_ok(wait_for_destructor(), "then it goes");
    drv.cuStreamDestroy(stream);
    check_nothing_left("objects");
}

/* Nothing of it stands in the way of a new beginning. */
static void left_over(void)
{
    CUdeviceptr address = 0;
    CUuserObject object = NULL;
    CUgraphExec exec;
    CUstream stream;
    ccmr_sim_census left = {.size = sizeof left};

    driver_start(CCMR_SIM_EAGER, 0);
    stream = new_stream();
    exec = capture(stream, MIB, false, 0, &address);
    CHECK(drv.cuGraphLaunch(exec, stream));
    drv.cuUserObjectCreate(&object, NULL, destructor, 1,
                           CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
    atomic_store(&destroyed, 0);
    tap_ok(sim->reset(&left) != 0, "left over");
    tap_is_int(left.graph_blocks, 1, "a block");
    tap_is_int(left.graph_execs, 1, "an instance");
    tap_is_int(left.user_objects, 1, "an object");
    tap_is_int(atomic_load(&destroyed), 0, "whose destructor is not called");
    tap_is_int(census_now().graph_blocks, 0, "nothing");
}

int main(void)
{
    driver_load();
    kept(CCMR_SIM_EAGER);
    kept(CCMR_SIM_LATE);
    side_by_side();
    shortage();
    diamond();
    objects();
    left_over();
    return tap_finish();
}
