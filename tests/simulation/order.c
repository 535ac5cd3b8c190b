/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/simulation/order.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "tests/support/tap.h"

enum { SEEDS = 40 };

struct order_world world;

/* The world. */

static CUstream blocking_stream(void)
{
    CUstream stream = NULL;

    drv.cuStreamCreate(&stream, CU_STREAM_DEFAULT);
    return stream;
}

static void make_world(ccmr_sim_mode mode, uint64_t seed)
{
    size_t i;

    driver_start(mode, seed);
    sim->check_order(1);
    drv.cuCtxGetCurrent(&world.primary);
    world.a = new_stream();
    world.b = new_stream();
    world.c = new_stream();
    world.x = blocking_stream();
    world.y = blocking_stream();
    for (i = 0; i < sizeof world.event / sizeof world.event[0]; i++) {
        drv.cuEventCreate(&world.event[i], CU_EVENT_DISABLE_TIMING);
    }
    drv.cuMemAlloc(&world.arena, 8 * BLOCK);
    world.pool = new_pool(0);
    pool_keep(world.pool);
}

void hand_out(CUdeviceptr block, void *stream)
{
    sim->handed_out(block, BLOCK, stream);
}

void take_back(CUdeviceptr block, void *stream)
{
    sim->freed(block, BLOCK, stream);
}

void use(CUdeviceptr block, CUstream stream)
{
    drv.cuMemsetD8Async(block, 1, BLOCK, stream);
}

void wait_for(CUstream to, CUstream from, int event)
{
    drv.cuEventRecord(world.event[event], from);
    drv.cuStreamWaitEvent(to, world.event[event], 0);
}

void live(CUdeviceptr block, CUstream stream)
{
    hand_out(block, stream);
    use(block, stream);
    take_back(block, stream);
}

void alias_make(struct alias *alias)
{
    const CUmemAllocationProp props = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
    };
    const CUmemAccessDesc access = {
        .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
        .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    };

    drv.cuMemCreate(&alias->piece, 2 * MIB, &props, 0);
    drv.cuMemAddressReserve(&alias->base, 4 * MIB, 0, 0, 0);
    alias->first = alias->base;
    alias->second = alias->base + 2 * MIB;
    drv.cuMemMap(alias->first, 2 * MIB, 0, alias->piece, 0);
    drv.cuMemMap(alias->second, 2 * MIB, 0, alias->piece, 0);
    if (drv.cuMemSetAccess(alias->base, 4 * MIB, &access, 1) != CUDA_SUCCESS) {
        tap_bail_out("no virtual memory");
    }
}

void alias_drop(struct alias *alias)
{
    drv.cuMemUnmap(alias->base, 4 * MIB);
    drv.cuMemRelease(alias->piece);
    drv.cuMemAddressFree(alias->base, 4 * MIB);
}

static void *thread_main(void *argument)
{
    void (*function)(void);

    memcpy(&function, argument, sizeof function);
    drv.cuCtxSetCurrent(world.primary);
    function();
    return NULL;
}

void on_another_thread(void (*function)(void))
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, thread_main, (void *)&function) != 0) {
        tap_bail_out("no thread");
    }
    pthread_join(thread, NULL);
}

/* Judging. */

static bool judge(const struct order_program *program, ccmr_sim_mode mode,
                  uint64_t seed)
{
    ccmr_sim_hazard hazard = {.size = sizeof hazard};
    uint64_t count;
    bool good;

    make_world(mode, seed);
    program->run();
    count = sim->hazards();
    if (program->kind == 0) {
        good = count == 0;
    } else {
        good = count == 1 && sim->hazard_read(0, &hazard) == 0 &&
               (int)hazard.kind == program->kind && hazard.seed == seed;
    }
    if (!good) {
        sim->hazard_read(0, &hazard);
        tap_diag("%s, seed %llu: %llu hazards, first of kind %d: %s",
                 mode == CCMR_SIM_EAGER ? "eager" : "late",
                 (unsigned long long)seed, (unsigned long long)count,
                 count != 0 ? (int)hazard.kind : 0,
                 count != 0 ? hazard.text : "");
    }
    sim->reset(NULL);
    return good;
}

static void try_program(const struct order_program *program)
{
    uint64_t seed;
    bool good = judge(program, CCMR_SIM_EAGER, 0);

    for (seed = 0; good && seed < SEEDS; seed++) {
        good = judge(program, CCMR_SIM_LATE, seed);
    }
    tap_ok(good, "%s: %s", program->kind == 0 ? "right" : "wrong",
           program->name);
}

/* What a report says. */
static void report(void)
{
    ccmr_sim_hazard hazard = {.size = sizeof hazard};
    unsigned long long from = 0;
    unsigned long long to = 0;

    make_world(CCMR_SIM_LATE, 7);
    drv.cuStreamGetId(world.a, &from);
    drv.cuStreamGetId(world.b, &to);
    hand_out(world.arena, world.a);
    use(world.arena, world.a);
    use(world.arena, world.a);
    take_back(world.arena, world.a);
    sim->handed_out(world.arena + 512, 1024, world.b);
    tap_is_size(sim->hazards(), 1, "one hazard");
    tap_is_int(sim->hazard_read(0, &hazard), 0, "that can be read");
    tap_diag("%s", hazard.text);
    tap_is_int(hazard.kind, CCMR_SIM_HANDED_OUT_EARLY, "which");
    tap_is_size(hazard.address, world.arena + 512, "where");
    tap_is_size(hazard.bytes, 1024, "how much");
    tap_is_size(hazard.now.stream_id, to, "to whom");
    tap_is_size(hazard.before.stream_id, from, "after whom");
    tap_is_size(hazard.before.position, 2, "up to where");
    tap_is_size(hazard.now.thread, hazard.before.thread, "by which thread");
    tap_ok(hazard.now.sequence >= hazard.before.sequence &&
               hazard.before.sequence > 0,
           "when");
    tap_is_str(hazard.now.call, "handed out", "how");
    tap_is_str(hazard.before.call, "freed", "and how before");
    tap_is_size(hazard.seed, 7, "under which seed");
    tap_ok(strstr(hazard.text, "cuMemsetD8Async") != NULL &&
               strstr(hazard.text, "no wait leads from stream id") != NULL,
           "in words: the last use, the wait that is missing");
    sim->reset(NULL);
}

/* The table's own arguments; and nothing is said while nothing is checked. */
static void arguments(void)
{
    driver_start(CCMR_SIM_EAGER, 0);
    tap_is_int(sim->handed_out(4096, 100, CCMR_SIM_HOST), 0, "not checked");
    tap_is_int(sim->handed_out(4096, 100, CCMR_SIM_HOST), 0, "nor twice");
    tap_is_size(sim->hazards(), 0, "and so no hazard");
    sim->check_order(1);
    tap_is_int(sim->handed_out(0, 100, CCMR_SIM_HOST), -1, "no address");
    tap_is_int(sim->freed(4096, 0, CCMR_SIM_HOST), -1, "no bytes");
    tap_is_int(sim->used(4096, UINT64_MAX, CCMR_SIM_HOST), -1, "too many");
    tap_is_int(sim->used(4096, 1, &world), -1, "no stream");
    tap_is_int(sim->noted(4096, 1, CCMR_SIM_HOST, 0), -1, "no stream, noted");
    tap_is_int(sim->learned(CCMR_SIM_HOST), -1, "no stream, learned");
    drv.cuCtxSetCurrent(NULL);
    tap_is_int(sim->used(4096, 1, CU_STREAM_LEGACY), -1, "a token of nothing");
    tap_is_size(sim->hazards(), 0, "none of that is a hazard");
    tap_is_int(sim->handed_out(4096, 100, CCMR_SIM_HOST), 0, "checked");
    tap_is_int(sim->handed_out(4100, 1, CCMR_SIM_HOST), 0, "twice");
    tap_is_size(sim->hazards(), 1, "is a hazard");
    tap_is_int(sim->check_order(0), 0, "no more");
    tap_is_int(sim->check_order(1), 0, "and again");
    tap_is_int(sim->handed_out(4100, 1, CCMR_SIM_HOST), 0, "anew");
    tap_is_size(sim->hazards(), 1, "nothing is remembered");
    sim->reset(NULL);
}

int main(void)
{
    const struct order_program *program;

    driver_load();
    arguments();
    report();
    for (program = order_right; program->name != NULL; program++) {
        try_program(program);
    }
    for (program = order_wrong; program->name != NULL; program++) {
        try_program(program);
    }
    return tap_finish();
}
