/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The costs, as measured on an H200 with driver 580.159.04 by one thread whose
 * streams were idle (bench/results/2026-12-01-h200-driver-costs.txt, and the
 * virtual-memory figures of tests on the same machine). Where a call and its
 * counterpart were measured together, each has half; where there was a span,
 * its middle stands. A call that was not measured has no cost, and is counted.
 */
#include "sim/cost.h"

#include <string.h>

/* In picoseconds, so that small costs add up without loss. */
#define PS(ns) ((uint64_t)((ns)*1000.0 + 0.5))

/* By the stream that is named: a handle, the legacy default stream, the
 * thread's own. Also those of calls that name none. */
enum { BY_HANDLE, LEGACY, PER_THREAD, KINDS };

struct price {
    bool known;
    uint64_t ps[KINDS];
};

#define SAME(ns)                                                              \
    {                                                                         \
        true,                                                                 \
        {                                                                     \
            PS(ns), PS(ns), PS(ns)                                            \
        }                                                                     \
    }
#define EACH(handle, legacy, thread)                                          \
    {                                                                         \
        true,                                                                 \
        {                                                                     \
            PS(handle), PS(legacy), PS(thread)                                \
        }                                                                     \
    }
/* All of it is said while the call is carried out. */
#define SIZED SAME(0)

static const struct price prices[SIM_CALL_COUNT] = {
    [SIM_cuStreamIsCapturing] = EACH(16.3, 22.2, 31.4),
    [SIM_cuStreamGetId] = EACH(18.7, 30.0, 33.1),
    [SIM_cuStreamGetDevice] = EACH(20.5, 30.4, 30.4),
    [SIM_cuStreamGetCtx] = EACH(20.3, 22.7, 22.7),
    [SIM_cuStreamGetCaptureInfo] = SAME(18.0),
    [SIM_cuStreamQuery] = SAME(139.1),
    [SIM_cuStreamSynchronize] = SAME(277.9),
    [SIM_cuStreamWaitEvent] = SAME(268.0),
    [SIM_cuStreamCreate] = SAME(3243.5 / 2),
    [SIM_cuStreamCreateWithPriority] = SAME(3243.5 / 2),
    [SIM_cuStreamDestroy] = SAME(3243.5 / 2),
    [SIM_cuEventCreate] = SAME(260.3 / 2),
    [SIM_cuEventDestroy] = SAME(260.3 / 2),
    [SIM_cuEventRecord] = SAME(179.1),
    [SIM_cuEventQuery] = SAME(126.8),
    [SIM_cuEventSynchronize] = SAME(243.4),
    [SIM_cuCtxGetCurrent] = SAME(10.5),
    [SIM_cuCtxSetCurrent] = SAME(21.6),
    [SIM_cuCtxPushCurrent] = SAME(48.1 / 2),
    [SIM_cuCtxPopCurrent] = SAME(48.1 / 2),
    [SIM_cuThreadExchangeStreamCaptureMode] = SAME(17.6 / 2),
    [SIM_cuDevicePrimaryCtxRetain] = SAME(63.2 / 2),
    [SIM_cuDevicePrimaryCtxRelease] = SAME(63.2 / 2),
    [SIM_cuPointerGetAttribute] = SAME(60.0),
    [SIM_cuMemGetAddressRange] = SAME(49.7),
    [SIM_cuMemGetInfo] = SAME(4074.7),
    [SIM_cuMemPoolGetAttribute] = SAME(24.4),
    [SIM_cuMemPoolSetAttribute] = SAME(25.1),
    [SIM_cuMemPoolTrimTo] = SAME(25.0),
    [SIM_cuMemAllocAsync] = EACH(577.9 / 2, 1134.6 / 2, 1156.9 / 2),
    [SIM_cuMemAllocFromPoolAsync] = EACH(577.1 / 2, 1134.6 / 2, 1156.9 / 2),
    [SIM_cuMemFreeAsync] = EACH(577.1 / 2, 1134.6 / 2, 1156.9 / 2),
    [SIM_cuMemAlloc] = SIZED,
    [SIM_cuMemFree] = SIZED,
    [SIM_cuMemHostAlloc] = SIZED,
    [SIM_cuMemAllocHost] = SIZED,
    [SIM_cuMemFreeHost] = SIZED,
    [SIM_cuMemCreate] = SIZED,
    [SIM_cuMemRelease] = SIZED,
    [SIM_cuMemMap] = SIZED,
    [SIM_cuMemSetAccess] = SIZED,
    [SIM_cuMemUnmap] = SIZED,
};

/* With no context current, allocations from a pool that is named take so much
 * more (a pair 1036.0 where it took 577.1), and nothing else does. */
#define WITHOUT_CONTEXT PS(1036.0 - 577.1)

/* Costs by size: between two sizes in proportion, outside of them as the
 * nearest. */

#define POINTS 4
#define K ((uint64_t)1 << 10)
#define M ((uint64_t)1 << 20)
#define G ((uint64_t)1 << 30)

struct point {
    uint64_t bytes, ns;
};

static const struct point curves[SIM_COST_CURVES][POINTS] = {
    /* Requests up to 1 MiB share memory, and all cost the same. */
    [SIM_COST_PLAIN_ALLOCATE] = {{M, 1376},
                                 {2 * M, 28779},
                                 {64 * M, 42325},
                                 {G, 507000}},
    [SIM_COST_PLAIN_FREE] = {{M, 1376},
                             {2 * M, 28779},
                             {64 * M, 42325},
                             {G, 500000}},
    [SIM_COST_PINNED_ALLOCATE] = {{64 * K, 1062},
                                  {2 * M, 325000},
                                  {64 * M, 37000000},
                                  {G, 609000000}},
    /* Frees of larger ones were not measured. */
    [SIM_COST_PINNED_FREE] = {{64 * K, 1062}, {2 * M, 325000}},
    /* By handle, however many a call covers. */
    [SIM_COST_CREATE] = {{2 * M, 9700}, {64 * M, 20000}, {G, 61500}},
    [SIM_COST_MAP] = {{2 * M, 1100}},
    [SIM_COST_ACCESS] = {{2 * M, 25500}, {64 * M, 45000}, {G, 65000}},
    [SIM_COST_UNMAP] = {{2 * M, 15600}, {64 * M, 23000}, {G, 29000}},
    [SIM_COST_RELEASE] = {{2 * M, 11000}, {64 * M, 38000}, {G, 350000}},
    /* By 1 GiB alone; in proportion to it. */
    [SIM_COST_POOL_GROW] = {{0, 0}, {G, 1100000}},
    [SIM_COST_POOL_SHRINK] = {{0, 0}, {G, 1900000}},
};

static uint64_t spent[SIM_CALL_COUNT];
static uint64_t unknown[SIM_CALL_COUNT];

void sim_cost_count(bool on)
{
    sim.costs = on;
}

void sim_cost_forget(void)
{
    struct sim_thread *thread;

    memset(spent, 0, sizeof spent);
    memset(unknown, 0, sizeof unknown);
    for (thread = sim.threads; thread != NULL; thread = thread->next) {
        thread->cost = 0;
    }
}

static bool is_last(const struct point *points, size_t i)
{
    return i == POINTS - 1 || points[i + 1].bytes == 0;
}

static uint64_t price_of(const struct point *points, uint64_t bytes)
{
    double part;
    size_t i = 0;

    if (bytes <= points[0].bytes) {
        return points[0].ns * 1000;
    }
    while (!is_last(points, i) && points[i + 1].bytes < bytes) {
        i++;
    }
    if (is_last(points, i)) {
        return points[i].ns * 1000;
    }
    part = (double)(bytes - points[i].bytes) /
           (double)(points[i + 1].bytes - points[i].bytes);
    return (
        uint64_t)(((double)points[i].ns +
                   part * ((double)points[i + 1].ns - (double)points[i].ns)) *
                  1000.0);
}

/* A pool that grows by more than was measured goes on in proportion. */
static uint64_t price_of_all(enum sim_cost_curve curve, uint64_t bytes)
{
    const struct point *points = curves[curve];
    uint64_t whole = 0;

    if (curve == SIM_COST_POOL_GROW || curve == SIM_COST_POOL_SHRINK) {
        whole = bytes / G * points[1].ns * 1000;
        bytes %= G;
    }
    return whole + price_of(points, bytes);
}

void sim_cost_sized(enum sim_cost_curve curve, uint64_t bytes)
{
    struct sim_thread *self;

    if (sim.costs) {
        self = sim_self_unlocked();
        if (self != NULL) {
            self->cost_of_call += price_of_all(curve, bytes);
        }
    }
}

static int kind_of(CUstream stream)
{
    if (stream == NULL || stream == CU_STREAM_LEGACY) {
        return LEGACY;
    }
    return stream == CU_STREAM_PER_THREAD ? PER_THREAD : BY_HANDLE;
}

/* A call that failed did not do what was measured; one that says "not yet"
 * did. */
void sim_cost_note(const struct sim_frame *frame, CUresult res,
                   CUstream stream)
{
    const struct price *price = &prices[frame->call];
    struct sim_thread *self = frame->self;
    uint64_t ps = self->cost_of_call;

    self->cost_of_call = 0;
    if (!price->known ||
        (res != CUDA_SUCCESS && res != CUDA_ERROR_NOT_READY)) {
        unknown[frame->call]++;
        return;
    }
    ps += price->ps[kind_of(stream)];
    if (frame->call == SIM_cuMemAllocFromPoolAsync && self->depth == 0) {
        ps += WITHOUT_CONTEXT;
    }
    spent[frame->call] += ps;
    self->cost += ps;
}

static uint64_t sum(const uint64_t numbers[SIM_CALL_COUNT], enum sim_call call)
{
    uint64_t total = 0;
    int i;

    if (call < SIM_CALL_COUNT) {
        return numbers[call];
    }
    for (i = 0; i < SIM_CALL_COUNT; i++) {
        total += numbers[i];
    }
    return total;
}

uint64_t sim_cost_of(enum sim_call call)
{
    return (sum(spent, call) + 500) / 1000;
}

uint64_t sim_cost_unknown(enum sim_call call)
{
    return sum(unknown, call);
}
