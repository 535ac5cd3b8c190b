/* SPDX-License-Identifier: Apache-2.0 */
/* Programs with one fault each, of those that resources have been shipped
 * with; the letters are those of the field cases. */
#include "tests/simulation/order.h"

#define ARENA (world.arena)

/* Handed out too early. */

static void no_wait(void)
{
    live(ARENA, world.a);
    live(ARENA, world.b);
}

/* A1: the second stream took the first one's memory over and waited; the third
 * waits for an event that was recorded before that. */
static void stale_event(void)
{
    drv.cuEventRecord(world.event[1], world.b);
    live(ARENA, world.a);
    wait_for(world.b, world.a, 0);
    drv.cuStreamWaitEvent(world.c, world.event[1], 0);
    live(ARENA, world.c);
}

/* A1: ... or for one that was never recorded: for nothing. */
static void unrecorded_event(void)
{
    live(ARENA, world.a);
    drv.cuStreamWaitEvent(world.b, world.event[0], 0);
    live(ARENA, world.b);
}

static void event_before_last_use(void)
{
    hand_out(ARENA, world.a);
    drv.cuEventRecord(world.event[0], world.a);
    use(ARENA, world.a);
    take_back(ARENA, world.a);
    drv.cuStreamWaitEvent(world.b, world.event[0], 0);
    live(ARENA, world.b);
}

/* The stream had not waited for the other use when the event was recorded. */
static void event_before_wait(void)
{
    hand_out(ARENA, world.a);
    wait_for(world.b, world.a, 0);
    use(ARENA, world.b);
    drv.cuEventRecord(world.event[1], world.a);
    wait_for(world.a, world.b, 2);
    take_back(ARENA, world.a);
    drv.cuStreamWaitEvent(world.c, world.event[1], 0);
    live(ARENA, world.c);
}

/* The same with a wait that comes by itself. */
static void event_before_legacy(void)
{
    hand_out(ARENA, CU_STREAM_LEGACY);
    drv.cuEventRecord(world.event[0], world.x);
    use(ARENA, CU_STREAM_LEGACY);
    take_back(ARENA, world.x);
    drv.cuStreamWaitEvent(world.c, world.event[0], 0);
    live(ARENA, world.c);
}

static void wait_comes_after(void)
{
    live(ARENA, world.a);
    hand_out(ARENA, world.b);
    wait_for(world.b, world.a, 0);
    use(ARENA, world.b);
}

static void wait_of_another_stream(void)
{
    live(ARENA, world.a);
    wait_for(world.c, world.a, 0);
    live(ARENA, world.b);
}

/* I4: two blocks are joined, and only one was waited for. */
static void half_waited_for(void)
{
    live(ARENA, world.a);
    live(ARENA + BLOCK, world.b);
    wait_for(world.c, world.a, 0);
    sim->handed_out(ARENA, 2 * BLOCK, world.c);
}

/* B2: known by its handle, the stream seems to be the same. */
static void same_handle(void)
{
    CUstream old = new_stream();
    CUstream fresh;

    live(ARENA, old);
    drv.cuStreamDestroy(old);
    fresh = new_stream();
    live(ARENA, fresh);
}

/* C1, C3: the token means another stream on another thread. */
static void on_own_stream(void)
{
    live(ARENA, CU_STREAM_PER_THREAD);
}

static void same_token(void)
{
    on_another_thread(on_own_stream);
    live(ARENA, CU_STREAM_PER_THREAD);
}

/* The legacy stream waits for blocking streams alone. */
static void not_blocking(void)
{
    live(ARENA, world.a);
    use(ARENA + BLOCK, world.x);
    live(ARENA, CU_STREAM_LEGACY);
}

static void two_blocking(void)
{
    live(ARENA, world.x);
    live(ARENA, world.y);
}

/* What a blocking stream does after the legacy one's work is not covered. */
static void legacy_was_before(void)
{
    live(ARENA + BLOCK, CU_STREAM_LEGACY);
    live(ARENA, world.x);
    use(ARENA + 2 * BLOCK, world.y);
    live(ARENA, world.y);
}

static void another_synchronized(void)
{
    live(ARENA, world.a);
    drv.cuStreamSynchronize(world.b);
    live(ARENA, world.b);
}

static void destroyed_only(void)
{
    CUstream gone = new_stream();

    live(ARENA, gone);
    drv.cuStreamDestroy(gone);
    live(ARENA, world.a);
}

/* I14: asked, but the answer was not looked at. */
static void not_ready(void)
{
    sim->stall(world.a);
    live(ARENA, world.a);
    drv.cuEventRecord(world.event[0], world.a);
    drv.cuEventQuery(world.event[0]);
    live(ARENA, world.b);
    sim->release(world.a);
}

/* The stream is in order, but the host is ahead of it. */
static void host_is_ahead(void)
{
    live(ARENA, world.a);
    hand_out(ARENA, CCMR_SIM_HOST);
}

/* B4: a noted use that nobody waits for. */
static void note_forgotten(void)
{
    hand_out(ARENA, world.a);
    wait_for(world.b, world.a, 0);
    use(ARENA, world.b);
    sim->noted(ARENA, BLOCK, world.b, 0);
    take_back(ARENA, world.a);
    live(ARENA, world.a);
}

static void hold_forgotten(void)
{
    hand_out(ARENA, world.a);
    wait_for(world.b, world.a, 0);
    sim->noted(ARENA, BLOCK, world.b, 1);
    use(ARENA, world.b);
    take_back(ARENA, world.a);
    live(ARENA, world.a);
}

/* The driver's memory is there for the stream that it was asked for on. */
static void segment_not_waited_for(void)
{
    CUdeviceptr segment = 0;

    drv.cuMemAllocFromPoolAsync(&segment, BLOCK, world.pool, world.c);
    live(segment, world.a);
    wait_for(world.c, world.a, 0);
    drv.cuMemFreeAsync(segment, world.c);
    drv.cuCtxSynchronize();
}

/* F4: two threads get one block. */
static void twice(void)
{
    hand_out(ARENA, world.a);
    hand_out(ARENA, world.a);
}

static void overlapping(void)
{
    hand_out(ARENA, world.a);
    sim->handed_out(ARENA + BLOCK - 1, BLOCK, world.a);
}

/* Used too early or too late. */

static void used_elsewhere(void)
{
    live(ARENA, world.a);
    hand_out(ARENA, world.a);
    use(ARENA, world.b);
    drv.cuStreamSynchronize(world.b);
    take_back(ARENA, world.a);
}

static void segment_used_elsewhere(void)
{
    CUdeviceptr segment = 0;

    drv.cuMemAllocFromPoolAsync(&segment, BLOCK, world.pool, world.c);
    use(segment, world.a);
    drv.cuCtxSynchronize();
    drv.cuMemFreeAsync(segment, world.c);
    drv.cuCtxSynchronize();
}

static void host_used_early(void)
{
    live(ARENA, world.a);
    hand_out(ARENA, world.a);
    sim->used(ARENA, 1, CCMR_SIM_HOST);
}

static void kernel_too_early(void)
{
    live(ARENA, world.a);
    hand_out(ARENA, world.a);
    sim->used(ARENA + 8, 8, world.b);
}

static void used_after_free(void)
{
    live(ARENA, world.a);
    use(ARENA, world.a);
}

static void copied_from_after_free(void)
{
    live(ARENA, world.a);
    drv.cuMemcpyDtoDAsync(ARENA + BLOCK, ARENA + 8, 8, world.a);
}

/* Freed too early. */

/* A2, B7: freed on the stream of the allocation, used on another. */
static void other_use_forgotten(void)
{
    hand_out(ARENA, world.a);
    wait_for(world.b, world.a, 0);
    use(ARENA, world.b);
    take_back(ARENA, world.a);
}

static void used_after_note(void)
{
    hand_out(ARENA, world.a);
    wait_for(world.b, world.a, 0);
    use(ARENA, world.b);
    sim->noted(ARENA, BLOCK, world.b, 0);
    use(ARENA, world.b);
    take_back(ARENA, world.a);
}

/* The first use is still the block's. */
static void refused_and_forgotten(void)
{
    hand_out(ARENA, world.a);
    use(ARENA, world.a);
    take_back(ARENA, world.a);
    sim->not_freed(ARENA, BLOCK);
    take_back(ARENA, world.b);
}

static void freed_on_idle_stream(void)
{
    hand_out(ARENA, world.a);
    use(ARENA, world.a);
    take_back(ARENA, world.b);
}

static void not_yet_ready(void)
{
    hand_out(ARENA, world.a);
    use(ARENA, world.a);
    take_back(ARENA, CCMR_SIM_HOST);
}

/* A5: memory goes back to the driver under a stream's work. */
static void segment_still_used(void)
{
    CUdeviceptr segment = 0;

    drv.cuMemAllocFromPoolAsync(&segment, BLOCK, world.pool, world.c);
    wait_for(world.a, world.c, 0);
    live(segment, world.a);
    drv.cuMemFreeAsync(segment, world.c);
    drv.cuCtxSynchronize();
}

/* cuMemFree waits for one stream alone if the block is a pool's. */
static void pool_block_freed_plainly(void)
{
    CUdeviceptr block = 0;

    drv.cuMemAllocFromPoolAsync(&block, BLOCK, world.pool, world.c);
    wait_for(world.a, world.c, 0);
    use(block, world.a);
    drv.cuMemFree(block);
    drv.cuCtxSynchronize();
}

static void freed_twice(void)
{
    live(ARENA, world.a);
    take_back(ARENA, world.a);
}

static void freed_never_handed_out(void)
{
    take_back(ARENA, world.a);
}

/* D4: what somebody has goes back to the driver. */
static void taken_away(void)
{
    CUdeviceptr segment = 0;

    drv.cuMemAllocFromPoolAsync(&segment, 2 * BLOCK, world.pool, world.a);
    hand_out(segment + BLOCK, world.a);
    drv.cuMemFreeAsync(segment, world.a);
    drv.cuCtxSynchronize();
}

/* Virtual memory: other addresses, the same memory. */

static void alias_not_waited_for(void)
{
    struct alias alias;

    alias_make(&alias);
    live(alias.first, world.a);
    live(alias.second, world.b);
    drv.cuCtxSynchronize();
    alias_drop(&alias);
}

static void alias_handed_out(void)
{
    struct alias alias;

    alias_make(&alias);
    hand_out(alias.first, world.a);
    hand_out(alias.second + BLOCK - 1, world.a);
    take_back(alias.first + BLOCK - 1, world.a);
    sim->freed(alias.first, BLOCK - 1, world.a);
    alias_drop(&alias);
}

static void unmapped_in_use(void)
{
    struct alias alias;

    alias_make(&alias);
    live(alias.first, world.a);
    drv.cuMemUnmap(alias.first, 2 * MIB);
    drv.cuCtxSynchronize();
    alias_drop(&alias);
}

static void piece_taken_away(void)
{
    struct alias alias;

    alias_make(&alias);
    hand_out(alias.first, world.a);
    alias_drop(&alias);
}

const struct order_program order_wrong[] = {
    {"no wait", no_wait, CCMR_SIM_HANDED_OUT_EARLY},
    {"stale event", stale_event, CCMR_SIM_HANDED_OUT_EARLY},
    {"event that was never recorded", unrecorded_event,
     CCMR_SIM_HANDED_OUT_EARLY},
    {"event before the last use", event_before_last_use,
     CCMR_SIM_HANDED_OUT_EARLY},
    {"event before the wait", event_before_wait, CCMR_SIM_HANDED_OUT_EARLY},
    {"event before the legacy stream's work", event_before_legacy,
     CCMR_SIM_HANDED_OUT_EARLY},
    {"wait that comes after", wait_comes_after, CCMR_SIM_HANDED_OUT_EARLY},
    {"wait of another stream", wait_of_another_stream,
     CCMR_SIM_HANDED_OUT_EARLY},
    {"half waited for", half_waited_for, CCMR_SIM_HANDED_OUT_EARLY},
    {"same handle, another stream", same_handle, CCMR_SIM_HANDED_OUT_EARLY},
    {"same token, another thread", same_token, CCMR_SIM_HANDED_OUT_EARLY},
    {"not a blocking stream", not_blocking, CCMR_SIM_HANDED_OUT_EARLY},
    {"two blocking streams", two_blocking, CCMR_SIM_HANDED_OUT_EARLY},
    {"legacy stream was before", legacy_was_before, CCMR_SIM_HANDED_OUT_EARLY},
    {"another stream synchronised", another_synchronized,
     CCMR_SIM_HANDED_OUT_EARLY},
    {"destroyed only", destroyed_only, CCMR_SIM_HANDED_OUT_EARLY},
    {"not ready", not_ready, CCMR_SIM_HANDED_OUT_EARLY},
    {"host ahead of the stream", host_is_ahead, CCMR_SIM_HANDED_OUT_EARLY},
    {"noted use forgotten", note_forgotten, CCMR_SIM_HANDED_OUT_EARLY},
    {"hold forgotten", hold_forgotten, CCMR_SIM_HANDED_OUT_EARLY},
    {"segment not waited for", segment_not_waited_for,
     CCMR_SIM_HANDED_OUT_EARLY},
    {"handed out twice", twice, CCMR_SIM_HANDED_OUT_TWICE},
    {"overlapping blocks", overlapping, CCMR_SIM_HANDED_OUT_TWICE},
    {"used elsewhere", used_elsewhere, CCMR_SIM_USED_EARLY},
    {"segment used elsewhere", segment_used_elsewhere, CCMR_SIM_USED_EARLY},
    {"host used it early", host_used_early, CCMR_SIM_USED_EARLY},
    {"kernel too early", kernel_too_early, CCMR_SIM_USED_EARLY},
    {"used after the free", used_after_free, CCMR_SIM_USED_FREED},
    {"copied from after the free", copied_from_after_free,
     CCMR_SIM_USED_FREED},
    {"other use forgotten", other_use_forgotten, CCMR_SIM_FREED_EARLY},
    {"used after the note", used_after_note, CCMR_SIM_FREED_EARLY},
    {"refused and forgotten", refused_and_forgotten, CCMR_SIM_FREED_EARLY},
    {"freed on an idle stream", freed_on_idle_stream, CCMR_SIM_FREED_EARLY},
    {"not yet ready", not_yet_ready, CCMR_SIM_FREED_EARLY},
    {"segment still used", segment_still_used, CCMR_SIM_FREED_EARLY},
    {"pool block freed plainly", pool_block_freed_plainly,
     CCMR_SIM_FREED_EARLY},
    {"freed twice", freed_twice, CCMR_SIM_FREED_TWICE},
    {"freed, never handed out", freed_never_handed_out, CCMR_SIM_FREED_TWICE},
    {"taken away", taken_away, CCMR_SIM_TAKEN_AWAY},
    {"alias not waited for", alias_not_waited_for, CCMR_SIM_HANDED_OUT_EARLY},
    {"alias handed out", alias_handed_out, CCMR_SIM_HANDED_OUT_TWICE},
    {"unmapped in use", unmapped_in_use, CCMR_SIM_UNMAPPED_EARLY},
    {"piece taken away", piece_taken_away, CCMR_SIM_TAKEN_AWAY},
    {NULL, NULL, 0},
};
