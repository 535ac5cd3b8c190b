/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/driver_count.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "bench/clock.h"
#include "cucoremr/device.h"
#include "lib/driver.h"
#include "sim/sim.h"

enum {
#define CALL_NUMBER(name, version, need, parameters, arguments) CALL_##name,
    CCMR__DRIVER_MAP(CALL_NUMBER)
#undef CALL_NUMBER
        CALL_COUNT
};

static const char *const names[] = {
#define CALL_NAME(name, version, need, parameters, arguments) #name,
    CCMR__DRIVER_MAP(CALL_NAME)
#undef CALL_NAME
};

static const struct {
    const char *name;
    driver_time time;
} timed[] = {
    {"cuMemAddressReserve", DRIVER_TIME_MAPPING},
    {"cuMemAddressFree", DRIVER_TIME_MAPPING},
    {"cuMemCreate", DRIVER_TIME_MAPPING},
    {"cuMemRelease", DRIVER_TIME_MAPPING},
    {"cuMemMap", DRIVER_TIME_MAPPING},
    {"cuMemUnmap", DRIVER_TIME_MAPPING},
    {"cuMemSetAccess", DRIVER_TIME_MAPPING},
    {"cuStreamSynchronize", DRIVER_TIME_WAITING},
    {"cuEventSynchronize", DRIVER_TIME_WAITING},
    {"cuCtxSynchronize", DRIVER_TIME_WAITING},
};

static atomic_uint_fast64_t counts[CALL_COUNT];
static atomic_uint_fast64_t times[DRIVER_TIMES];

/* Of each entry point; DRIVER_TIMES: not timed. */
static driver_time time_of[CALL_COUNT];

static _Thread_local bool paused;

/* The driver's own entry points while the wrappers are in their places. */
static ccmr__driver_table real_driver;

/* NULL: a device, or a simulator that does not estimate costs. */
static const ccmr_sim_table *simulator;

/* When a call began, and what the thread's calls had cost by then. */
typedef struct call_start {
    uint64_t time;
    uint64_t cost;
} call_start;

static call_start call_begin(size_t call)
{
    call_start began = {0, 0};

    if (!paused && simulator != NULL) {
        began.cost = simulator->thread_cost();
    }
    if (!paused && time_of[call] != DRIVER_TIMES) {
        began.time = clock_now();
    }
    return began;
}

static void time_add(driver_time of, uint64_t ns)
{
    (void)atomic_fetch_add_explicit(&times[of], ns, memory_order_relaxed);
}

static void call_end(size_t call, call_start began)
{
    if (paused) {
        return;
    }
    (void)atomic_fetch_add_explicit(&counts[call], 1, memory_order_relaxed);
    if (began.time != 0) {
        time_add(time_of[call], clock_now() - began.time);
    }
    if (simulator != NULL) {
        time_add(DRIVER_TIME_ESTIMATED, simulator->thread_cost() - began.cost);
    }
}

#define CALL_WRAPPER(name, version, need, parameters, arguments)              \
    static CUresult CUDAAPI count_##name parameters                           \
    {                                                                         \
        call_start began = call_begin(CALL_##name);                           \
        CUresult res = real_driver.p_##name arguments;                        \
                                                                              \
        call_end(CALL_##name, began);                                         \
        return res;                                                           \
    }
CCMR__DRIVER_MAP(CALL_WRAPPER)
#undef CALL_WRAPPER

static void find_timed(void)
{
    for (size_t i = 0; i < CALL_COUNT; i++) {
        time_of[i] = DRIVER_TIMES;
        for (size_t j = 0; j < sizeof(timed) / sizeof(timed[0]); j++) {
            if (strcmp(names[i], timed[j].name) == 0) {
                time_of[i] = timed[j].time;
            }
        }
    }
}

/* It counts from its start, if it was told to: so by now it has counted. */
static const ccmr_sim_table *find_simulator(void)
{
    const ccmr_sim_table *table = NULL;
    ccmr_driver_info driver = {.size = sizeof(driver)};
    void *library;

    if (ccmr_driver(&driver) != CCMR_SUCCESS || !driver.simulated) {
        return NULL;
    }
    library = dlopen(driver.path, RTLD_NOW | RTLD_NOLOAD);
    if (library != NULL) {
        table = dlsym(library, CCMR_SIM_CONTROL_SYMBOL);
        (void)dlclose(library);
    }
    return table != NULL &&
                   table->size > offsetof(ccmr_sim_table, thread_cost) &&
                   table->cost(NULL) != 0
               ? table
               : NULL;
}

void driver_count_start(void)
{
    find_timed();
    simulator = find_simulator();
    real_driver = ccmr__driver;
#define CALL_SWAP(name, version, need, parameters, arguments)                 \
    if (real_driver.p_##name != NULL) {                                       \
        ccmr__driver.p_##name = count_##name;                                 \
    }
    CCMR__DRIVER_MAP(CALL_SWAP)
#undef CALL_SWAP
}

void driver_count_stop(void)
{
    ccmr__driver = real_driver;
}

size_t driver_count_calls(void)
{
    return CALL_COUNT;
}

const char *driver_count_name(size_t i)
{
    return names[i];
}

uint64_t driver_count_get(size_t i)
{
    return atomic_load_explicit(&counts[i], memory_order_relaxed);
}

uint64_t driver_count_ns(driver_time of)
{
    return atomic_load_explicit(&times[of], memory_order_relaxed);
}

bool driver_count_estimates(void)
{
    return simulator != NULL;
}

void driver_count_pause(bool on)
{
    paused = on;
}
