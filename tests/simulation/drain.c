/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a pool sees that a free is finished: what a trim gives back, and the
 * hazard of destroying a pool before.
 */
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/simulation/driver.h"
#include "tests/support/tap.h"

#define RESERVED CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT

static CUmemoryPool pool;
static CUstream stream, other;
static CUevent event;

/* A block was freed on `stream`, whose work has run. */
static void begin_on(ccmr_sim_mode mode, unsigned flags)
{
    CUdeviceptr block = 0;

    driver_start(mode, 0);
    pool = new_pool(0);
    pool_keep(pool);
    drv.cuStreamCreate(&stream, flags);
    other = new_stream();
    event = NULL;
    drv.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    drv.cuMemAllocFromPoolAsync(&block, MIB, pool, stream);
    drv.cuMemsetD8Async(block, 1, MIB, stream);
    drv.cuMemFreeAsync(block, stream);
    sim->run(UINT64_MAX);
}

static void begin(ccmr_sim_mode mode)
{
    begin_on(mode, CU_STREAM_NON_BLOCKING);
}

static void see(ccmr_sim_mode mode, bool given_back, const char *what)
{
    drv.cuMemPoolTrimTo(pool, 0);
    tap_is_size(pool_number(pool, RESERVED), given_back ? 0 : 32 * MIB,
                "%s: %s (%s)", what, given_back ? "given back" : "kept",
                mode == CCMR_SIM_EAGER ? "eager" : "late");
    drv.cuCtxSynchronize();
    drv.cuMemPoolDestroy(pool);
    drv.cuStreamDestroy(other);
    if (stream != NULL) {
        drv.cuStreamDestroy(stream);
    }
    drv.cuEventDestroy(event);
    tap_is_size(sim->hazards(), 0, "no hazard");
    check_nothing_left(what);
}

static void seen(ccmr_sim_mode mode)
{
    begin(mode);
    drv.cuStreamSynchronize(stream);
    see(mode, true, "stream synchronised");
    begin(mode);
    drv.cuEventRecord(event, stream);
    drv.cuEventSynchronize(event);
    see(mode, true, "event synchronised");
    begin(mode);
    drv.cuEventRecord(event, stream);
    drv.cuStreamWaitEvent(other, event, 0);
    drv.cuStreamSynchronize(other);
    see(mode, true, "waiting stream synchronised");
    begin(mode);
    drv.cuStreamDestroy(stream);
    stream = NULL;
    see(mode, true, "stream destroyed");
    begin(mode);
    drv.cuCtxSynchronize();
    see(mode, true, "context synchronised");
    begin_on(mode, CU_STREAM_DEFAULT);
    drv.cuStreamSynchronize(CU_STREAM_LEGACY);
    see(mode, true, "legacy stream synchronised, after a blocking one");
}

static void reused(ccmr_sim_mode mode, size_t bytes)
{
    CUdeviceptr again = 0;

    begin(mode);
    drv.cuMemAllocFromPoolAsync(&again, bytes, pool, other);
    drv.cuMemFreeAsync(again, other);
    drv.cuStreamSynchronize(other);
    see(mode, true, "handed out again");
}

static void not_seen(ccmr_sim_mode mode)
{
    unsigned char bytes[16];
    CUdeviceptr plain = 0;
    cuuint64_t zero = 0;
    size_t unused, total;

    begin(mode);
    see(mode, false, "nothing");
    begin(mode);
    drv.cuStreamSynchronize(CU_STREAM_LEGACY);
    see(mode, false, "legacy stream synchronised, after another");
    begin(mode);
    drv.cuMemAlloc(&plain, sizeof bytes);
    CHECK(drv.cuMemcpyDtoHAsync(bytes, plain, sizeof bytes, stream));
    CHECK(drv.cuMemFree(plain));
    see(mode, false, "copied from, and a free that waits");
    begin(mode);
    drv.cuStreamSynchronize(other);
    see(mode, false, "another stream synchronised");
    begin(mode);
    drv.cuEventRecord(event, stream);
    sim->run(UINT64_MAX);
    CHECK(drv.cuEventQuery(event));
    see(mode, false, "event queried");
    begin(mode);
    CHECK(drv.cuStreamQuery(stream));
    see(mode, false, "stream queried");
    begin(mode);
    drv.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &zero);
    drv.cuStreamSynchronize(other);
    see(mode, false, "threshold lowered");
    begin(mode);
    drv.cuMemGetInfo(&unused, &total);
    see(mode, false, "memory asked for");
    /* An event recorded before the free does not cover it. */
    begin(mode);
    drv.cuEventRecord(event, other);
    drv.cuEventSynchronize(event);
    see(mode, false, "another event synchronised");
}

/* The free is seen, but what was freed later is not. */
static void in_part(ccmr_sim_mode mode)
{
    CUdeviceptr later = 0;

    begin(mode);
    drv.cuMemAllocFromPoolAsync(&later, 40 * MIB, pool, stream);
    drv.cuEventRecord(event, stream);
    drv.cuMemFreeAsync(later, stream);
    sim->run(UINT64_MAX);
    drv.cuEventSynchronize(event);
    drv.cuMemPoolTrimTo(pool, 0);
    tap_is_size(pool_number(pool, RESERVED), 64 * MIB,
                "what was freed behind the event stays");
    drv.cuStreamSynchronize(stream);
    see(mode, true, "until the stream is synchronised");
}

static void hazard(ccmr_sim_mode mode)
{
    ccmr_sim_hazard hazard = {.size = sizeof hazard};
    unsigned long long id = 0;

    begin(mode);
    drv.cuStreamGetId(stream, &id);
    CHECK(drv.cuMemPoolDestroy(pool));
    tap_is_size(sim->hazards(), 1, "a pool that was destroyed early");
    tap_is_int(sim->hazard_read(0, &hazard), 0, "can be read about");
    tap_ok(hazard.kind == CCMR_SIM_POOL_DESTROYED_EARLY &&
               hazard.object == (uintptr_t)pool &&
               hazard.before.stream_id == id && hazard.bytes == MIB &&
               strcmp(hazard.now.call, "cuMemPoolDestroy") == 0,
           "which pool, how, after what");
    tap_ok(strstr(hazard.text, "not yet seen") != NULL, "in words");
    hazard.size = sizeof hazard.size - 1;
    tap_is_int(sim->hazard_read(0, &hazard), -1, "not without room");
    tap_is_int(sim->hazard_read(1, &hazard), -1, "not beyond the last");
    tap_is_size(sim->forget_hazards(), 1, "and forgotten");
    tap_is_size(sim->hazards(), 0, "there is none any more");
    drv.cuStreamDestroy(other);
    drv.cuStreamDestroy(stream);
    drv.cuEventDestroy(event);
    check_nothing_left("hazard");
}

/* Blocks that are out are no hazard: the pool goes with the last of them. */
static void live_blocks(void)
{
    CUdeviceptr block = 0;

    begin(CCMR_SIM_EAGER);
    drv.cuStreamSynchronize(stream);
    drv.cuMemAllocFromPoolAsync(&block, MIB, pool, stream);
    CHECK(drv.cuMemPoolDestroy(pool));
    CHECK(drv.cuMemFreeAsync(block, stream));
    tap_is_size(sim->hazards(), 0, "a block that is out is no hazard");
    tap_is_size(census_now().device_bytes, 0, "the pool went with it");
    drv.cuStreamDestroy(other);
    drv.cuStreamDestroy(stream);
    drv.cuEventDestroy(event);
    check_nothing_left("live blocks");
}

static void strict(bool by_environment)
{
    int status = 0;
    pid_t child;

    if (by_environment) {
        setenv("CUCOREMR_SIM_STRICT", "1", 1);
    }
    sim->reset(NULL);
    child = fork();
    if (child == 0) {
        begin(CCMR_SIM_EAGER);
        if (!by_environment) {
            sim->set_strict(1);
        }
        drv.cuMemPoolDestroy(pool);
        _exit(0);
    }
    waitpid(child, &status, 0);
    tap_ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT,
           "a hazard ends a strict process (%s)",
           by_environment ? "environment" : "table");
    unsetenv("CUCOREMR_SIM_STRICT");
    sim->reset(NULL);
}

int main(void)
{
    static const ccmr_sim_mode modes[] = {CCMR_SIM_EAGER, CCMR_SIM_LATE};
    size_t i;

    driver_load();
    strict(false);
    strict(true);
    for (i = 0; i < 2; i++) {
        seen(modes[i]);
        reused(modes[i], MIB);
        reused(modes[i], 32 * MIB);
        not_seen(modes[i]);
        in_part(modes[i]);
        hazard(modes[i]);
    }
    live_blocks();
    return tap_finish();
}
