/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cache over plain memory, which gives free blocks back when memory runs
 * out or on demand: what has still to come by then, of peers and of graphs.
 * Field cases A5, D4.
 */
#include <string.h>

#include "tests/simulation/mistakes.h"

#define BLOCKS 4
#define USES 4
#define BYTES (4 * MIB)

/* A block of the cache, free or not. */
struct cached {
    CUdeviceptr address; /* 0: there is none */
    bool live;
    bool baked;          /* a graph that may be launched has its address */
    CUevent after[USES]; /* what a release comes after */
    int device[USES];    /* of the event's stream */
    unsigned count;
};

static struct cached cache[BLOCKS];

/* The mistakes. */
static bool own_device_only, gives_baked;

static void note(struct cached *c, CUstream stream, int device)
{
    unsigned i = c->count++;

    MUST(drv.cuEventCreate(&c->after[i], CU_EVENT_DISABLE_TIMING));
    MUST(drv.cuEventRecord(c->after[i], stream));
    c->device[i] = device;
}

static void forget_uses(struct cached *c, bool wait)
{
    while (c->count > 0) {
        CUevent event = c->after[--c->count];

        if (wait && (!own_device_only || c->device[c->count] == 0)) {
            MUST(drv.cuEventSynchronize(event));
        }
        MUST(drv.cuEventDestroy(event));
    }
}

/* Give free blocks back. */
static unsigned trim(void)
{
    unsigned went = 0;
    unsigned i;

    for (i = 0; i < BLOCKS; i++) {
        struct cached *c = &cache[i];

        if (c->address == 0 || c->live || (c->baked && !gives_baked)) {
            continue;
        }
        forget_uses(c, true);
        MUST(drv.cuMemFree(c->address));
        memset(c, 0, sizeof *c);
        went++;
    }
    return went;
}

/* NULL: there is no memory. The stream is the only one so far. */
static struct cached *take(void)
{
    CUresult res;
    unsigned i;

    for (i = 0; i < BLOCKS; i++) {
        if (cache[i].address != 0 && !cache[i].live && !cache[i].baked) {
            cache[i].live = true;
            return &cache[i];
        }
    }
    for (i = 0; cache[i].address != 0;) {
        i++;
    }
    res = drv.cuMemAlloc(&cache[i].address, BYTES);
    if (res == CUDA_ERROR_OUT_OF_MEMORY && trim() > 0) {
        res = drv.cuMemAlloc(&cache[i].address, BYTES);
    }
    if (res != CUDA_SUCCESS) {
        cache[i].address = 0;
        return NULL;
    }
    cache[i].live = true;
    return &cache[i];
}

static void give(struct cached *c, CUstream stream, int device)
{
    note(c, stream, device);
    c->live = false;
}

/* ---- programs ------------------------------------------------------------------ */

/* The block is written by another device, of which the cache is told. */
static void peer_writes(bool wrong)
{
    CUcontext context = NULL;
    CUdeviceptr source = 0;
    CUstream own = new_stream();
    CUstream other;
    struct cached *c;

    own_device_only = wrong;
    c = take();
    MUST(drv.cuDevicePrimaryCtxRetain(&context, 1));
    MUST(drv.cuCtxPushCurrent(context));
    other = new_stream();
    MUST(drv.cuMemAlloc(&source, BYTES));
    MUST(drv.cuMemsetD8Async(source, 1, BYTES, other));
    MUST(drv.cuMemcpyAsync(c->address, source, BYTES, other));
    note(c, other, 1);
    MUST(drv.cuCtxPopCurrent(&context));
    give(c, own, 0);
    (void)trim();
    MUST(drv.cuStreamSynchronize(other));
    MUST(drv.cuCtxPushCurrent(context));
    MUST(drv.cuMemFree(source));
    MUST(drv.cuStreamDestroy(other));
    MUST(drv.cuCtxPopCurrent(&context));
    MUST(drv.cuDevicePrimaryCtxRelease(1));
    MUST(drv.cuStreamDestroy(own));
}

/* A graph that fills a block of the cache, which the capture gave back. */
static CUgraphExec capture(CUstream stream, struct cached *c)
{
    CUgraphExec exec = NULL;
    CUgraph graph = NULL;

    MUST(drv.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(drv.cuMemsetD8Async(c->address, 9, BYTES, stream));
    c->baked = true;
    c->live = false;
    MUST(drv.cuStreamEndCapture(stream, &graph));
    MUST(drv.cuGraphInstantiateWithFlags(&exec, graph, 0));
    MUST(drv.cuGraphDestroy(graph));
    return exec;
}

/* Memory runs out; then the graph is launched beside the block of another. */
static void full_with_graph(bool wrong)
{
    CUstream stream = new_stream();
    struct cached *in_graph = take();
    struct cached *next;
    CUgraphExec exec;

    gives_baked = wrong;
    exec = capture(stream, in_graph);
    (void)sim->set_memory(0, census_now().device_bytes);
    next = take();
    if (next != NULL) {
        MUST(drv.cuMemsetD8Async(next->address, 2, BYTES, stream));
    }
    MUST(drv.cuGraphLaunch(exec, stream));
    MUST(drv.cuStreamSynchronize(stream));
    if (next != NULL) {
        holds(next->address, BYTES, 2);
        give(next, stream, 0);
    }
    MUST(drv.cuGraphExecDestroy(exec));
    in_graph->baked = false;
    (void)trim();
    MUST(drv.cuStreamDestroy(stream));
}

const struct mistake mistakes_late[] = {
    {"peer", "A5", "memory goes back that another device still writes",
     peer_writes, CHECK_ORDER},
    {"baked", "D4", "memory goes back whose address a graph has",
     full_with_graph, CHECK_CONTENTS},
    {NULL, NULL, NULL, NULL, CHECK_NONE},
};
