/* SPDX-License-Identifier: Apache-2.0 */
/* What calls are estimated to take. The figures are those of the H200 that
 * are recorded in bench/results and doc/simulator.md. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simulation/driver.h"
#include "tests/support/tap.h"

/* As in driver-costs: the pair, by the block's size and stream. */
static uint64_t pool_pair(CUmemoryPool pool, size_t bytes, CUstream stream)
{
    CUdeviceptr block = 0;
    uint64_t before = sim->cost(NULL);

    CHECK(drv.cuMemAllocFromPoolAsync(&block, bytes, pool, stream));
    CHECK(drv.cuMemFreeAsync(block, stream));
    return sim->cost(NULL) - before;
}

static uint64_t plain_pair(size_t bytes)
{
    CUdeviceptr block = 0;
    uint64_t before = sim->cost(NULL);

    CHECK(drv.cuMemAlloc(&block, bytes));
    CHECK(drv.cuMemFree(block));
    return sim->cost(NULL) - before;
}

/* Rounding may take or add one. */
static void is_ns(uint64_t got, uint64_t want, const char *what)
{
    if (!tap_ok(got + 1 >= want && got <= want + 1, "%s", what)) {
        tap_diag("%llu ns, not %llu", (unsigned long long)got,
                 (unsigned long long)want);
    }
}

static void pairs(void)
{
    CUmemoryPool pool;
    CUstream stream;
    CUcontext popped = NULL;

    driver_start(CCMR_SIM_EAGER, 0);
    stream = new_stream();
    pool = new_pool(0);
    pool_keep(pool);
    tap_is_int(sim->cost(NULL), 0, "nothing is counted at first");
    CHECK(drv.cuCtxSynchronize());
    sim->set_costs(1);
    is_ns(pool_pair(pool, MIB, stream), 577 + 1100000 / 32,
          "a pool's first block takes 32 MiB from the device");
    is_ns(pool_pair(pool, MIB, stream), 577, "the next one nothing");
    is_ns(pool_pair(pool, 4096, CU_STREAM_LEGACY), 1135, "legacy stream");
    is_ns(pool_pair(pool, 4096, NULL), 1135, "the same by null");
    is_ns(pool_pair(pool, 4096, CU_STREAM_PER_THREAD), 1157,
          "the thread's own stream");
    drv.cuCtxPopCurrent(&popped);
    is_ns(pool_pair(pool, 4096, stream), 1036, "without a context");
    drv.cuCtxPushCurrent(popped);
    is_ns(plain_pair(4096), 2752, "a small plain block");
    is_ns(plain_pair(2 * MIB), 57558, "one of 2 MiB");
    is_ns(plain_pair(64 * MIB), 84650, "one of 64 MiB");
    sim->set_costs(0);
    is_ns(plain_pair(64 * MIB), 0, "switched off");
    drv.cuStreamDestroy(stream);
    drv.cuMemPoolDestroy(pool);
    check_nothing_left("pairs");
    tap_is_int(sim->cost(NULL), 0, "reset forgets");
}

/* Access and unmapping cost by the handle, not by the call. */
static void handles(void)
{
    enum { HANDLES = 8 };
    const size_t bytes = 2 * MIB;
    CUmemGenericAllocationHandle piece;
    CUmemAllocationProp properties;
    CUmemAccessDesc desc;
    CUdeviceptr range = 0;

    memset(&properties, 0, sizeof properties);
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    memset(&desc, 0, sizeof desc);
    desc.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    desc.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    driver_start(CCMR_SIM_EAGER, 0);
    sim->set_costs(1);
    CHECK(drv.cuMemAddressReserve(&range, HANDLES * bytes, 0, 0, 0));
    for (size_t i = 0; i < HANDLES; i++) {
        CHECK(drv.cuMemCreate(&piece, bytes, &properties, 0));
        CHECK(drv.cuMemMap(range + i * bytes, bytes, 0, piece, 0));
        CHECK(drv.cuMemRelease(piece));
    }
    CHECK(drv.cuMemSetAccess(range, HANDLES * bytes, &desc, 1));
    CHECK(drv.cuMemUnmap(range, HANDLES * bytes));
    CHECK(drv.cuMemAddressFree(range, HANDLES * bytes));
    is_ns(sim->cost("cuMemCreate"), HANDLES * 9700, "create");
    is_ns(sim->cost("cuMemMap"), HANDLES * 1100, "map");
    is_ns(sim->cost("cuMemRelease"), HANDLES * 11000, "release");
    is_ns(sim->cost("cuMemSetAccess"), HANDLES * 25500, "set access");
    is_ns(sim->cost("cuMemUnmap"), HANDLES * 15600, "unmap");
    tap_is_int(sim->cost_unknown("cuMemAddressReserve"), 1,
               "reserving was not measured");
    sim->forget_costs();
    CHECK(drv.cuMemCreate(&piece, 64 * MIB, &properties, 0));
    is_ns(sim->cost(NULL), 20000, "a handle of 64 MiB");
    CHECK(drv.cuMemRelease(piece));
    sim->forget_costs();
    CHECK(drv.cuMemCreate(&piece, 32 * MIB, &properties, 0));
    tap_ok(sim->cost(NULL) > 9700 && sim->cost(NULL) < 20000,
           "one of 32 MiB is between");
    CHECK(drv.cuMemRelease(piece));
    check_nothing_left("handles");
}

static void *ask_events(void *argument)
{
    uint64_t *cost = argument;
    CUcontext context = NULL;
    CUevent event = NULL;

    drv.cuDevicePrimaryCtxRetain(&context, 0);
    drv.cuCtxSetCurrent(context);
    drv.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    for (int i = 0; i < 1000; i++) {
        drv.cuEventQuery(event);
    }
    drv.cuEventDestroy(event);
    drv.cuDevicePrimaryCtxRelease(0);
    *cost = sim->thread_cost();
    return NULL;
}

static void threads(void)
{
    pthread_t thread;
    uint64_t other = 0;
    uint64_t mine;

    driver_start(CCMR_SIM_EAGER, 0);
    sim->set_costs(1);
    mine = sim->thread_cost();
    if (pthread_create(&thread, NULL, ask_events, &other) != 0) {
        tap_bail_out("no thread");
    }
    pthread_join(thread, NULL);
    is_ns(sim->thread_cost() - mine, 0, "what another thread does is its own");
    is_ns(other, 126800 + 260 + 63 + 22, "a thread's calls");
    is_ns(sim->cost(NULL), other, "are in the sum");
    tap_is_int(sim->cost("cuNoSuchCall"), 0, "no such call");
    check_nothing_left("threads");
}

/* What fails did not do what was measured. */
static void failures(void)
{
    CUdeviceptr block = 0;

    driver_start(CCMR_SIM_EAGER, 0);
    sim->set_costs(1);
    sim->fail("cuMemAlloc", 1, CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_IS(drv.cuMemAlloc(&block, 4096), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_IS(drv.cuMemAlloc(&block, 64 * GIB), CUDA_ERROR_OUT_OF_MEMORY);
    is_ns(sim->cost("cuMemAlloc"), 0, "failed calls cost nothing");
    tap_is_int(sim->cost_unknown("cuMemAlloc"), 2, "but are counted");
    check_nothing_left("failures");
}

static void by_environment(void)
{
    setenv("CUCOREMR_SIM_COSTS", "1", 1);
    sim->reset(NULL);
    driver_start(CCMR_SIM_EAGER, 0);
    is_ns(plain_pair(4096), 2752, "the environment switches it on");
    unsetenv("CUCOREMR_SIM_COSTS");
    check_nothing_left("by environment");
}

int main(void)
{
    driver_load();
    pairs();
    handles();
    threads();
    failures();
    by_environment();
    return tap_finish();
}
