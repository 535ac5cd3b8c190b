/* SPDX-License-Identifier: Apache-2.0 */
/* Programs in which every hand-over of memory is ordered. */
#include "tests/simulation/order.h"

#define ARENA (world.arena)

/* On one stream. */

static void same_stream(void)
{
    live(ARENA, world.a);
    live(ARENA, world.a);
}

static void legacy_stream(void)
{
    live(ARENA, CU_STREAM_LEGACY);
    live(ARENA, CU_STREAM_LEGACY);
}

/* From stream to stream. */

static void by_event(void)
{
    live(ARENA, world.a);
    wait_for(world.b, world.a, 0);
    live(ARENA, world.b);
}

/* Field case A1: the third stream follows the first one through the second. */
static void by_chain(void)
{
    live(ARENA, world.a);
    wait_for(world.b, world.a, 0);
    wait_for(world.c, world.b, 1);
    live(ARENA, world.c);
}

/* The chain is there before the memory comes along it. */
static void by_two_events(void)
{
    live(ARENA, world.a);
    live(ARENA + BLOCK, world.b);
    wait_for(world.c, world.a, 0);
    wait_for(world.c, world.b, 1);
    sim->handed_out(ARENA, 2 * BLOCK, world.c);
    use(ARENA, world.c);
    use(ARENA + BLOCK, world.c);
    sim->freed(ARENA, 2 * BLOCK, world.c);
}

static void by_second_event(void)
{
    live(ARENA, world.a);
    wait_for(world.b, world.a, 0);
    use(world.arena + BLOCK, world.b);
    live(ARENA, world.a);
    wait_for(world.b, world.a, 1);
    live(ARENA, world.b);
}

/* What an event stood for when a stream waited counts, not what later. */
static void event_recorded_again(void)
{
    live(ARENA, world.a);
    wait_for(world.b, world.a, 0);
    drv.cuEventRecord(world.event[0], world.c);
    live(ARENA, world.b);
}

static void event_destroyed(void)
{
    CUevent event = NULL;

    drv.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    live(ARENA, world.a);
    drv.cuEventRecord(event, world.a);
    drv.cuStreamWaitEvent(world.b, event, 0);
    drv.cuEventDestroy(event);
    live(ARENA, world.b);
}

/* A block in pieces, and pieces as a block. */
static void pieces(void)
{
    sim->handed_out(ARENA, 4 * BLOCK, world.a);
    drv.cuMemsetD8Async(ARENA, 1, 4 * BLOCK, world.a);
    sim->freed(ARENA, 4 * BLOCK, world.a);
    live(ARENA + BLOCK, world.a);
    wait_for(world.b, world.a, 0);
    live(ARENA + 2 * BLOCK, world.b);
    wait_for(world.c, world.b, 1);
    sim->handed_out(ARENA + 100, 3 * BLOCK, world.c);
    drv.cuMemsetD8Async(ARENA + 200, 1, 2 * BLOCK, world.c);
    sim->freed(ARENA + 100, 3 * BLOCK, world.c);
}

/* The legacy stream and blocking ones follow each other by themselves. */

static void blocking_to_legacy(void)
{
    live(ARENA, world.x);
    live(ARENA, CU_STREAM_LEGACY);
}

static void legacy_to_blocking(void)
{
    live(ARENA, CU_STREAM_LEGACY);
    live(ARENA, world.x);
}

static void blocking_by_legacy(void)
{
    live(ARENA, world.x);
    live(ARENA + BLOCK, CU_STREAM_LEGACY);
    live(ARENA, world.y);
}

/* A blocking stream brings along what it waited for. */
static void waiting_to_legacy(void)
{
    live(ARENA, world.a);
    wait_for(world.x, world.a, 0);
    live(ARENA, CU_STREAM_LEGACY);
}

static void destroyed_to_legacy(void)
{
    CUstream gone = NULL;

    drv.cuStreamCreate(&gone, CU_STREAM_DEFAULT);
    live(ARENA, gone);
    drv.cuStreamDestroy(gone);
    live(ARENA, CU_STREAM_LEGACY);
}

/* By the host, who waits or asks. */

static void stream_synchronized(void)
{
    live(ARENA, world.a);
    drv.cuStreamSynchronize(world.a);
    live(ARENA, world.b);
    drv.cuStreamSynchronize(world.b);
    hand_out(ARENA, CCMR_SIM_HOST);
    sim->used(ARENA, BLOCK, CCMR_SIM_HOST);
    take_back(ARENA, CCMR_SIM_HOST);
    live(ARENA, world.c);
}

static void event_synchronized(void)
{
    live(ARENA, world.a);
    drv.cuEventRecord(world.event[0], world.a);
    use(ARENA + BLOCK, world.a);
    drv.cuEventSynchronize(world.event[0]);
    live(ARENA, world.b);
}

/* The stream that is synchronised waited for the other. */
static void synchronized_by_chain(void)
{
    live(ARENA, world.a);
    wait_for(world.b, world.a, 0);
    drv.cuStreamSynchronize(world.b);
    live(ARENA, world.c);
}

static void legacy_synchronized(void)
{
    live(ARENA, world.x);
    drv.cuStreamSynchronize(CU_STREAM_LEGACY);
    live(ARENA, world.a);
}

static void context_synchronized(void)
{
    CUstream gone = new_stream();

    live(ARENA, world.a);
    live(ARENA + BLOCK, gone);
    drv.cuStreamDestroy(gone);
    drv.cuCtxSynchronize();
    live(ARENA, world.b);
    live(ARENA + BLOCK, world.b);
}

static void plain_freed(void)
{
    CUdeviceptr other = 0;

    drv.cuMemAlloc(&other, BLOCK);
    live(ARENA, world.a);
    use(other, world.b);
    drv.cuMemFree(other);
    live(ARENA, world.c);
}

static void copied_to_host(void)
{
    unsigned char bytes[16];

    live(ARENA, world.a);
    drv.cuMemcpyDtoHAsync(bytes, ARENA + BLOCK, sizeof bytes, world.a);
    live(ARENA, world.b);
}

static void event_queried(void)
{
    live(ARENA, world.a);
    drv.cuEventRecord(world.event[0], world.a);
    while (drv.cuEventQuery(world.event[0]) != CUDA_SUCCESS) {
    }
    live(ARENA, world.b);
}

static void streams_queried(void)
{
    live(ARENA, world.a);
    live(ARENA + BLOCK, world.x);
    while (drv.cuStreamQuery(world.a) != CUDA_SUCCESS ||
           drv.cuStreamQuery(CU_STREAM_LEGACY) != CUDA_SUCCESS) {
    }
    live(ARENA, world.b);
    live(ARENA + BLOCK, world.b);
}

/* A host function tells, in a way that the driver knows nothing of. */
static int told;

static void CUDA_CB tell(void *unused)
{
    (void)unused;
    told = 1;
}

static void learned(void)
{
    live(ARENA, world.a);
    told = 0;
    drv.cuLaunchHostFunc(world.a, tell, NULL);
    while (!told) {
        sim->run(1);
    }
    sim->learned(world.a);
    live(ARENA, world.b);
}

/* Uses on other streams than that of the allocation. */

static void used_elsewhere(void)
{
    hand_out(ARENA, world.a);
    use(ARENA, world.a);
    wait_for(world.b, world.a, 0);
    use(ARENA, world.b);
    wait_for(world.a, world.b, 1);
    take_back(ARENA, world.a);
    live(ARENA, world.a);
}

/* Freed where it was used, not where it came from. */
static void freed_elsewhere(void)
{
    hand_out(ARENA, world.a);
    wait_for(world.b, world.a, 0);
    use(ARENA, world.b);
    take_back(ARENA, world.b);
    live(ARENA, world.b);
}

/* Field case B4: the resource was told, and has the next owner wait. */
static void noted(void)
{
    hand_out(ARENA, world.a);
    wait_for(world.b, world.a, 0);
    use(ARENA, world.b);
    sim->noted(ARENA, BLOCK, world.b, 0);
    take_back(ARENA, world.a);
    wait_for(world.c, world.a, 1);
    wait_for(world.c, world.b, 2);
    live(ARENA, world.c);
}

static void held(void)
{
    hand_out(ARENA, world.a);
    wait_for(world.b, world.a, 0);
    sim->noted(ARENA, BLOCK, world.b, 1);
    use(ARENA, world.b);
    take_back(ARENA, world.a);
    wait_for(world.a, world.b, 2);
    live(ARENA, world.a);
}

static void kernels(void)
{
    hand_out(ARENA, world.a);
    sim->used(ARENA, BLOCK, world.a);
    wait_for(world.b, world.a, 0);
    sim->used(ARENA + 8, 8, world.b);
    wait_for(world.a, world.b, 1);
    take_back(ARENA, world.a);
    live(ARENA, world.a);
}

static void freed_when_ready(void)
{
    hand_out(ARENA, world.a);
    use(ARENA, world.a);
    drv.cuStreamSynchronize(world.a);
    take_back(ARENA, CCMR_SIM_HOST);
    live(ARENA, world.b);
}

/* C3: refused here, and then freed as it should be. */
static void free_refused(void)
{
    hand_out(ARENA, world.a);
    use(ARENA, world.a);
    wait_for(world.b, world.a, 0);
    take_back(ARENA, world.b);
    sim->not_freed(ARENA, BLOCK);
    use(ARENA, world.a);
    take_back(ARENA, world.a);
    sim->not_freed(ARENA, BLOCK);
    use(ARENA, world.a);
    take_back(ARENA, world.a);
    live(ARENA, world.a);
}

/* Threads: the lock is the end of the first thread. */

static void on_own_stream(void)
{
    live(ARENA, CU_STREAM_PER_THREAD);
    drv.cuEventRecord(world.event[0], CU_STREAM_PER_THREAD);
}

static void after_other_thread(void)
{
    drv.cuStreamWaitEvent(CU_STREAM_PER_THREAD, world.event[0], 0);
    live(ARENA, CU_STREAM_PER_THREAD);
}

static void by_threads(void)
{
    on_another_thread(on_own_stream);
    on_another_thread(after_other_thread);
}

static void free_on_a(void)
{
    use(ARENA, world.a);
    take_back(ARENA, world.a);
}

static void freed_by_thread(void)
{
    hand_out(ARENA, world.a);
    on_another_thread(free_on_a);
    live(ARENA, world.a);
}

/* Memory of the driver's that comes and goes in stream order. */

static void driver_segment(void)
{
    CUdeviceptr segment = 0;

    drv.cuMemAllocFromPoolAsync(&segment, 2 * BLOCK, world.pool, world.c);
    wait_for(world.a, world.c, 0);
    wait_for(world.b, world.c, 0);
    live(segment, world.a);
    live(segment + BLOCK, world.b);
    wait_for(world.c, world.a, 1);
    wait_for(world.c, world.b, 2);
    drv.cuMemFreeAsync(segment, world.c);
    drv.cuStreamSynchronize(world.c);
}

/* The driver moves its memory between streams as it sees fit. */
static void driver_alone(void)
{
    CUdeviceptr block = 0;
    CUstream streams[3];
    int i;

    streams[0] = world.a;
    streams[1] = world.b;
    streams[2] = world.c;
    for (i = 0; i < 9; i++) {
        drv.cuMemAllocFromPoolAsync(&block, BLOCK, world.pool, streams[i % 3]);
        use(block, streams[i % 3]);
        drv.cuMemFreeAsync(block, streams[i % 3]);
    }
    drv.cuCtxSynchronize();
}

static void driver_block_elsewhere(void)
{
    CUdeviceptr block = 0;

    drv.cuMemAllocFromPoolAsync(&block, BLOCK, world.pool, world.a);
    wait_for(world.b, world.a, 0);
    use(block, world.b);
    drv.cuMemFreeAsync(block, world.b);
    drv.cuMemAllocFromPoolAsync(&block, BLOCK, world.pool, world.b);
    use(block, world.b);
    drv.cuStreamSynchronize(world.b);
    drv.cuMemFree(block);
    drv.cuCtxSynchronize();
}

/* Memory moves to another address while its last use there is not done. */
static void moved_by_alias(void)
{
    struct alias alias;

    alias_make(&alias);
    live(alias.first, world.a);
    live(alias.second, world.a);
    wait_for(world.b, world.a, 0);
    live(alias.first + BLOCK, world.a);
    live(alias.second, world.b);
    drv.cuStreamSynchronize(world.a);
    drv.cuMemUnmap(alias.first, 2 * MIB);
    live(alias.second, world.b);
    drv.cuCtxSynchronize();
    alias_drop(&alias);
}

/* A new stream under an old handle, behind the old one's work. */
static void handle_recycled(void)
{
    CUstream old = new_stream();
    CUstream fresh;

    live(ARENA, old);
    drv.cuEventRecord(world.event[0], old);
    drv.cuStreamDestroy(old);
    fresh = new_stream();
    drv.cuStreamWaitEvent(fresh, world.event[0], 0);
    live(ARENA, fresh);
}

const struct order_program order_right[] = {
    {"same stream", same_stream, 0},
    {"legacy stream", legacy_stream, 0},
    {"by an event", by_event, 0},
    {"by a chain of events", by_chain, 0},
    {"by two events", by_two_events, 0},
    {"by a second event", by_second_event, 0},
    {"by an event that is recorded again", event_recorded_again, 0},
    {"by an event that is destroyed", event_destroyed, 0},
    {"pieces", pieces, 0},
    {"blocking to legacy", blocking_to_legacy, 0},
    {"legacy to blocking", legacy_to_blocking, 0},
    {"blocking to blocking by legacy", blocking_by_legacy, 0},
    {"to legacy by a waiting one", waiting_to_legacy, 0},
    {"to legacy by a destroyed one", destroyed_to_legacy, 0},
    {"stream synchronised", stream_synchronized, 0},
    {"event synchronised", event_synchronized, 0},
    {"waiting stream synchronised", synchronized_by_chain, 0},
    {"legacy stream synchronised", legacy_synchronized, 0},
    {"context synchronised", context_synchronized, 0},
    {"a plain free waited", plain_freed, 0},
    {"a copy to the host waited", copied_to_host, 0},
    {"event queried", event_queried, 0},
    {"streams queried", streams_queried, 0},
    {"learned from a host function", learned, 0},
    {"used on another stream", used_elsewhere, 0},
    {"freed on another stream", freed_elsewhere, 0},
    {"noted use", noted, 0},
    {"held until the free", held, 0},
    {"kernels", kernels, 0},
    {"freed when ready", freed_when_ready, 0},
    {"free refused", free_refused, 0},
    {"per-thread streams and an event", by_threads, 0},
    {"freed by another thread", freed_by_thread, 0},
    {"driver's segment", driver_segment, 0},
    {"driver alone", driver_alone, 0},
    {"driver's block on another stream", driver_block_elsewhere, 0},
    {"moved by an alias", moved_by_alias, 0},
    {"recycled handle", handle_recycled, 0},
    {NULL, NULL, 0},
};
