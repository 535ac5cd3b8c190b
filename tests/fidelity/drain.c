/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When does a driver's pool see that a free is finished, so that its memory
 * can be given back?
 *
 * Documented: a trim gives back what is not in use. Observed: memory counts as
 * in use until the host has synchronised with the free, or the driver has
 * handed it out again; that the work is done, or was asked about, is not
 * enough. A pool must not be destroyed before: the driver is corrupted, and a
 * later call on another pool crashes or spins.
 */
#include "sim/sim.h"
#include "tests/fidelity/calls.h"
#include "tests/fidelity/facts.h"

#include <stdint.h>
#include <time.h>

enum { LIMIT_MS = 5000, MIB = 1 << 20, PAUSE_MS = 20, PAUSES_MOST = 50 };

/* A block was allocated, filled and freed on `stream`, which is idle now. */
static CUmemoryPool pool;
static CUstream stream, other;
static CUevent event;

/* Time for all work to end; the simulated device needs to be told. */
static void pause_a_while(void)
{
    const struct timespec length = {0, PAUSE_MS * 1000000L};
    const ccmr_sim_table *sim = driver_simulation();

    if (sim != NULL) {
        sim->run(UINT64_MAX);
    }
    nanosleep(&length, NULL);
}

static void begin_on(unsigned flags)
{
    cuuint64_t most = UINT64_MAX;
    CUdeviceptr block = 0;

    pool = make_pool(0);
    stream = make_stream(flags);
    other = make_stream(CU_STREAM_NON_BLOCKING);
    event = NULL;
    drv.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    drv.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &most);
    drv.cuMemAllocFromPoolAsync(&block, MIB, pool, stream);
    drv.cuMemsetD8Async(block, 1, MIB, stream);
    drv.cuMemFreeAsync(block, stream);
    pause_a_while();
}

static void begin(void)
{
    begin_on(CU_STREAM_NON_BLOCKING);
}

static bool is_empty(void)
{
    cuuint64_t reserved = 1;

    drv.cuMemPoolTrimTo(pool, 0);
    drv.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT,
                              &reserved);
    return reserved == 0;
}

/* A pool that does not become empty stays. */
static void see_and_end(void)
{
    bool empty = is_empty();

    fact_yes("given_back", empty);
    if (stream != NULL) {
        drv.cuStreamSynchronize(stream);
        drv.cuStreamDestroy(stream);
    }
    drv.cuStreamSynchronize(other);
    drv.cuStreamDestroy(other);
    drv.cuEventDestroy(event);
    for (int i = 0; !empty && i < PAUSES_MOST; i++) {
        empty = is_empty();
        if (!empty) {
            pause_a_while();
        }
    }
    if (empty) {
        drv.cuMemPoolDestroy(pool);
    }
}

static void nothing(void)
{
    begin();
    see_and_end();
}

static void stream_synchronized(void)
{
    begin();
    SEE("call", cuStreamSynchronize(stream));
    see_and_end();
}

static void event_synchronized(void)
{
    begin();
    drv.cuEventRecord(event, stream);
    SEE("call", cuEventSynchronize(event));
    see_and_end();
}

/* Another stream waited for the free, and that one is synchronised. */
static void waiting_stream_synchronized(void)
{
    begin();
    drv.cuEventRecord(event, stream);
    drv.cuStreamWaitEvent(other, event, 0);
    SEE("call", cuStreamSynchronize(other));
    see_and_end();
}

static void stream_destroyed(void)
{
    begin();
    SEE("call", cuStreamDestroy(stream));
    stream = NULL;
    see_and_end();
}

static void context_synchronized(void)
{
    begin();
    SEE("call", cuCtxSynchronize());
    see_and_end();
}

/* Handed out to another stream, freed there, and that one is synchronised. */
static void see_reused(size_t bytes)
{
    CUdeviceptr again = 0;

    begin();
    SEE("alloc", cuMemAllocFromPoolAsync(&again, bytes, pool, other));
    SEE("free", cuMemFreeAsync(again, other));
    SEE("call", cuStreamSynchronize(other));
    see_and_end();
}

static void reused_1_mib(void)
{
    see_reused(MIB);
}

static void reused_32_mib(void)
{
    see_reused((size_t)32 * MIB);
}

static void other_stream_synchronized(void)
{
    begin();
    SEE("call", cuStreamSynchronize(other));
    see_and_end();
}

/* The legacy default stream waits for a blocking stream; does its
 * synchronisation count for that one? */
static void legacy_synchronized(void)
{
    begin_on(CU_STREAM_DEFAULT);
    SEE("call", cuStreamSynchronize(CU_STREAM_LEGACY));
    see_and_end();
}

/* A copy that the host waits for is work behind the free. */
static void stream_copied_from(void)
{
    unsigned char bytes[64];
    CUdeviceptr plain = 0;

    begin();
    drv.cuMemAlloc(&plain, sizeof bytes);
    SEE("call", cuMemcpyDtoHAsync(bytes, plain, sizeof bytes, stream));
    see_and_end();
    drv.cuMemFree(plain);
}

/* cuMemFree waits for all work of the device. */
static void plain_freed(void)
{
    CUdeviceptr plain = 0;

    begin();
    drv.cuMemAlloc(&plain, MIB);
    SEE("call", cuMemFree(plain));
    see_and_end();
}

static void event_queried(void)
{
    begin();
    drv.cuEventRecord(event, stream);
    pause_a_while();
    SEE("call", cuEventQuery(event));
    see_and_end();
}

static void stream_queried(void)
{
    begin();
    SEE("call", cuStreamQuery(stream));
    see_and_end();
}

/* The threshold counts at the next synchronisation, but not for this. */
static void threshold_lowered(void)
{
    cuuint64_t zero = 0;

    begin();
    drv.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &zero);
    SEE("call", cuStreamSynchronize(other));
    see_and_end();
}

static void memory_asked_for(void)
{
    size_t unused, total;

    begin();
    SEE("call", cuMemGetInfo(&unused, &total));
    see_and_end();
}

static const struct fidelity_case drain_cases[] = {
    FIDELITY_CASE(nothing),
    FIDELITY_CASE(stream_synchronized),
    FIDELITY_CASE(event_synchronized),
    FIDELITY_CASE(waiting_stream_synchronized),
    FIDELITY_CASE(stream_destroyed),
    FIDELITY_CASE(context_synchronized),
    FIDELITY_CASE(reused_1_mib),
    FIDELITY_CASE(reused_32_mib),
    FIDELITY_CASE(other_stream_synchronized),
    FIDELITY_CASE(legacy_synchronized),
    FIDELITY_CASE(stream_copied_from),
    FIDELITY_CASE(plain_freed),
    FIDELITY_CASE(event_queried),
    FIDELITY_CASE(stream_queried),
    FIDELITY_CASE(threshold_lowered),
    FIDELITY_CASE(memory_asked_for),
    FIDELITY_END,
};

const struct fidelity_topic drain_topic = {
    "drain",
    drain_cases,
    NULL,
    NULL,
    false,
    LIMIT_MS,
    "Documented: a trim gives back what is not in use. Measured: a free "
    "counts as in use until the host synchronised with it.",
};
