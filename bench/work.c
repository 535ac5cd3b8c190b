/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/work.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/driver.h"
#include "sim/sim.h"

/* Operations from one look at what is pending to the next, at most. */
#define LOOK_EVERY 64

/* Written of each block where device memory is host memory. */
#define SIM_WRITE_BYTES 256

/* Whose streams are held; the entry points that are swapped meanwhile. */
static const device_work *held;
static ccmr__driver_table before;

static void hold(const device_work *in)
{
    for (size_t i = 0; i < in->streams->count; i++) {
        (void)in->simulator->stall(in->streams->streams[i]);
    }
}

static void let_go(const device_work *in)
{
    for (size_t i = 0; i < in->streams->count; i++) {
        (void)in->simulator->release(in->streams->streams[i]);
    }
}

/* The calls in which a host waits for work, or the driver does for it. */
static bool may_wait(const char *call)
{
    static const char *const names[] = {
        "cuStreamSynchronize", "cuEventSynchronize", "cuCtxSynchronize",
        "cuMemFree",           "cuMemFreeHost",      "cuMemHostUnregister",
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(names[i], call) == 0) {
            return true;
        }
    }
    return false;
}

/* A host that waits sees the device get there. */
#define WAIT_WRAPPER(name, version, need, parameters, arguments)              \
    static CUresult CUDAAPI wait_##name parameters                            \
    {                                                                         \
        CUresult res;                                                         \
                                                                              \
        let_go(held);                                                         \
        res = before.p_##name arguments;                                      \
        hold(held);                                                           \
        return res;                                                           \
    }
CCMR__DRIVER_MAP(WAIT_WRAPPER)
#undef WAIT_WRAPPER

static const ccmr_sim_table *find_table(const machine *where)
{
    const ccmr_sim_table *table = NULL;
    void *library = dlopen(where->driver_path, RTLD_NOW | RTLD_NOLOAD);

    if (library != NULL) {
        table = dlsym(library, CCMR_SIM_CONTROL_SYMBOL);
        (void)dlclose(library);
    }
    return table;
}

/* What the environment said, which idle and busy take the place of. */
static ccmr_sim_mode usual_mode(void)
{
    const char *said = getenv("CUCOREMR_SIM_MODE");

    return said != NULL && strcmp(said, "late") == 0 ? CCMR_SIM_LATE
                                                     : CCMR_SIM_EAGER;
}

static bool begin_simulated(device_work *in)
{
    ccmr_sim_mode mode =
        in->kind == WORK_BUSY ? CCMR_SIM_LATE : CCMR_SIM_EAGER;

    if (in->simulator == NULL || in->simulator->set_mode(mode) != 0) {
        return false;
    }
    if (in->kind == WORK_IDLE) {
        return true;
    }
    before = ccmr__driver;
    held = in;
#define WAIT_SWAP(name, version, need, parameters, arguments)                 \
    if (before.p_##name != NULL && may_wait(#name)) {                         \
        ccmr__driver.p_##name = wait_##name;                                  \
    }
    CCMR__DRIVER_MAP(WAIT_SWAP)
#undef WAIT_SWAP
    hold(in);
    return true;
}

bool work_begin(device_work *made, work_kind kind, uint64_t behind,
                const machine *where, const stream_set *streams, char *message,
                size_t size)
{
    *made = (device_work){.kind = kind, .streams = streams, .behind = behind};
    if (!where->simulated || kind == WORK_ANY) {
        return true;
    }
    made->simulator = find_table(where);
    if (!begin_simulated(made)) {
        (void)snprintf(message, size,
                       "%s has no control table that sets its schedule",
                       where->driver_path);
        made->simulator = NULL;
        return false;
    }
    return true;
}

uint64_t work_write_bytes(const device_work *in)
{
    if (in->kind == WORK_IDLE) {
        return 0;
    }
    return in->simulator != NULL ? SIM_WRITE_BYTES : UINT64_MAX;
}

void work_step(device_work *in)
{
    uint64_t pending = 0;

    if (in->simulator == NULL || in->kind != WORK_BUSY ||
        (++in->since < LOOK_EVERY && in->since < in->behind)) {
        return;
    }
    in->since = 0;
    for (size_t i = 0; i < in->streams->count; i++) {
        pending += in->simulator->pending(in->streams->streams[i]);
    }
    if (pending > in->behind) {
        let_go(in);
        (void)in->simulator->run(pending - in->behind);
        hold(in);
    }
}

void work_end(device_work *gone)
{
    if (gone->simulator == NULL) {
        return;
    }
    if (gone->kind == WORK_BUSY) {
        ccmr__driver = before;
        let_go(gone);
        held = NULL;
    }
    (void)gone->simulator->set_mode(usual_mode());
    (void)gone->simulator->run(UINT64_MAX);
    gone->simulator = NULL;
}

const char *work_name(work_kind kind)
{
    return kind == WORK_IDLE ? "idle" : kind == WORK_BUSY ? "busy" : NULL;
}
