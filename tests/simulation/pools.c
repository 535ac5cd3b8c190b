/* SPDX-License-Identifier: Apache-2.0 */
/* Memory pools: amounts, who gets what when, limits, the end of a pool. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simulation/driver.h"
#include "tests/support/tap.h"

#define RESERVED CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT
#define USED CU_MEMPOOL_ATTR_USED_MEM_CURRENT

static CUdeviceptr take(CUmemoryPool pool, size_t bytes, CUstream stream)
{
    CUdeviceptr address = 0;

    drv.cuMemAllocFromPoolAsync(&address, bytes, pool, stream);
    return address;
}

static void amounts(void)
{
    CUmemoryPool pool;
    CUdeviceptr block[3];
    cuuint64_t zero = 0;

    driver_start(CCMR_SIM_EAGER, 0);
    pool = new_pool(0);
    tap_is_size(pool_number(pool, RESERVED), 0, "a new pool has nothing");
    block[0] = take(pool, 1000, CU_STREAM_LEGACY);
    tap_is_size(pool_number(pool, RESERVED), 32 * MIB, "grows by 32 MiB");
    tap_is_size(pool_number(pool, USED), 1000, "and uses what was asked for");
    block[1] = take(pool, 40 * MIB, CU_STREAM_LEGACY);
    tap_is_size(pool_number(pool, RESERVED), 64 * MIB,
                "the next piece adjoins");
    drv.cuMemFreeAsync(block[1], CU_STREAM_LEGACY);
    tap_is_size(pool_number(pool, RESERVED), 64 * MIB, "a free keeps it");
    drv.cuStreamSynchronize(CU_STREAM_LEGACY);
    tap_is_size(pool_number(pool, RESERVED), 32 * MIB,
                "a synchronisation gives back what is whole and free");
    tap_is_size(pool_number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 64 * MIB,
                "the high mark stays");
    CHECK(drv.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH,
                                    &zero));
    tap_is_size(pool_number(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 32 * MIB,
                "until it is reset");
    pool_keep(pool);
    drv.cuMemFreeAsync(block[0], CU_STREAM_LEGACY);
    drv.cuStreamSynchronize(CU_STREAM_LEGACY);
    tap_is_size(pool_number(pool, RESERVED), 32 * MIB,
                "with a threshold it is kept");
    CHECK(drv.cuMemPoolTrimTo(pool, 0));
    tap_is_size(pool_number(pool, RESERVED), 0, "and trimmed on demand");
    drv.cuMemPoolDestroy(pool);
    check_nothing_left("amounts");
}

/* The rules by which memory that was freed on one stream gets to another. */
static void crossing(bool follow, bool opportunistic, bool internal,
                     bool event_between, bool finished, bool same)
{
    CUmemoryPool pool;
    CUdeviceptr first, second;
    CUstream one, two;
    CUevent event = NULL;
    int off = 0;

    driver_start(CCMR_SIM_LATE, 0);
    sim->set_memory(0, 32 * MIB);
    one = new_stream();
    two = new_stream();
    drv.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    pool = new_pool(0);
    pool_keep(pool);
    if (!follow) {
        drv.cuMemPoolSetAttribute(
            pool, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, &off);
    }
    if (!opportunistic) {
        drv.cuMemPoolSetAttribute(
            pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &off);
    }
    if (!internal) {
        drv.cuMemPoolSetAttribute(
            pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &off);
    }
    first = take(pool, 32 * MIB, one);
    drv.cuMemFreeAsync(first, one);
    if (event_between) {
        drv.cuEventRecord(event, one);
        drv.cuStreamWaitEvent(two, event, 0);
    }
    if (finished) {
        drv.cuStreamQuery(one);
    }
    second = take(pool, 32 * MIB, two);
    tap_ok((second == first) == same,
           "follow %d opportunistic %d internal %d event %d finished %d: %s",
           follow, opportunistic, internal, event_between, finished,
           same ? "taken" : "not taken");
    if (second != 0) {
        drv.cuMemFreeAsync(second, two);
    }
    drv.cuCtxSynchronize();
    drv.cuMemPoolDestroy(pool);
    drv.cuEventDestroy(event);
    drv.cuStreamDestroy(one);
    drv.cuStreamDestroy(two);
    check_nothing_left("crossing");
}

static void reuse(void)
{
    crossing(true, true, true, false, false, true);
    crossing(true, true, false, false, false, false);
    crossing(true, true, false, true, false, true);
    crossing(false, true, false, true, false, false);
    crossing(true, true, false, false, true, true);
    crossing(true, false, false, false, true, false);
}

static void same_stream(void)
{
    CUmemoryPool pool;
    CUdeviceptr first, second, third;
    CUstream stream;

    driver_start(CCMR_SIM_LATE, 0);
    stream = new_stream();
    pool = new_pool(0);
    sim->stall(stream);
    first = take(pool, MIB, stream);
    second = take(pool, MIB, stream);
    drv.cuMemFreeAsync(first, stream);
    tap_ok(take(pool, MIB, stream) == first, "at once on the same stream");
    drv.cuMemFreeAsync(first, stream);
    drv.cuMemFreeAsync(second, stream);
    third = take(pool, 2 * MIB, stream);
    tap_ok(third == first, "and joined with its neighbour");
    CHECK(drv.cuMemPoolTrimTo(pool, 0));
    drv.cuMemFreeAsync(third, stream);
    CHECK(drv.cuMemPoolTrimTo(pool, 0));
    tap_is_size(pool_number(pool, RESERVED), 32 * MIB,
                "a trim leaves what is pending");
    sim->release(stream);
    drv.cuStreamSynchronize(stream);
    tap_is_size(pool_number(pool, RESERVED), 0, "then it goes");
    drv.cuMemPoolDestroy(pool);
    drv.cuStreamDestroy(stream);
    check_nothing_left("same stream");
}

/* A block that waits behind another stream really waits. */
static void internal_wait(void)
{
    CUmemoryPool pool;
    CUdeviceptr first, second;
    CUstream one, two;

    driver_start(CCMR_SIM_LATE, 0);
    sim->set_memory(0, 32 * MIB);
    one = new_stream();
    two = new_stream();
    pool = new_pool(0);
    first = take(pool, 32 * MIB, one);
    sim->stall(one);
    drv.cuMemsetD8Async(first, 1, 64, one);
    drv.cuMemFreeAsync(first, one);
    second = take(pool, 32 * MIB, two);
    tap_ok(second == first, "another stream takes what is pending");
    drv.cuMemsetD8Async(second, 2, 64, two);
    CHECK_IS(drv.cuStreamQuery(two), CUDA_ERROR_NOT_READY);
    sim->release(one);
    drv.cuStreamSynchronize(two);
    tap_is_int(*(unsigned char *)sim->peek(second, 1), 2,
               "and writes after the first one");
    drv.cuMemFreeAsync(second, two);
    drv.cuStreamSynchronize(two);
    drv.cuMemPoolDestroy(pool);
    drv.cuStreamDestroy(one);
    drv.cuStreamDestroy(two);
    check_nothing_left("internal wait");
}

static void limits(void)
{
    CUmemoryPool pool, other;
    CUdeviceptr block[2] = {0};

    driver_start(CCMR_SIM_EAGER, 0);
    sim->set_memory(0, 256 * MIB);
    pool = new_pool(33 * MIB);
    other = new_pool(0);
    block[0] = take(pool, 64 * MIB, CU_STREAM_LEGACY);
    tap_ok(block[0] != 0, "a limit is rounded up to 64 MiB");
    CHECK_IS(drv.cuMemAllocFromPoolAsync(&block[1], 1, pool, CU_STREAM_LEGACY),
             CUDA_ERROR_OUT_OF_MEMORY);
    tap_ok(block[1] == 0, "and then there is nothing");
    CHECK_IS(drv.cuMemAllocFromPoolAsync(&block[1], 193 * MIB, other,
                                         CU_STREAM_LEGACY),
             CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(drv.cuMemAllocFromPoolAsync(&block[1], 192 * MIB, other,
                                      CU_STREAM_LEGACY));
    CHECK_IS(drv.cuMemAllocFromPoolAsync(&block[1], SIZE_MAX, other,
                                         CU_STREAM_LEGACY),
             CUDA_ERROR_OUT_OF_MEMORY);
    sim->reset(NULL);
}

static void ends(void)
{
    CUmemoryPool pool, again;
    CUdeviceptr block;
    CUstream stream;

    driver_start(CCMR_SIM_LATE, 0);
    stream = new_stream();
    pool = new_pool(0);
    block = take(pool, MIB, stream);
    CHECK(drv.cuMemPoolDestroy(pool));
    CHECK_IS(drv.cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);
    CHECK_IS(drv.cuMemPoolTrimTo(pool, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK(drv.cuMemsetD8Async(block, 1, MIB, stream));
    tap_is_size(census_now().device_bytes, 32 * MIB, "its memory stays");
    CHECK(drv.cuMemFreeAsync(block, stream));
    tap_is_size(census_now().device_bytes, 32 * MIB, "for as long as a free");
    drv.cuStreamSynchronize(stream);
    tap_is_size(census_now().device_bytes, 0, "is pending");
    CHECK_IS(drv.cuMemFreeAsync(block, stream), CUDA_ERROR_INVALID_VALUE);
    again = new_pool(0);
    tap_ok(again != pool, "its handle is not the next one");
    drv.cuMemPoolDestroy(again);
    tap_ok(new_pool(0) == pool, "but one of the next");
    drv.cuMemPoolDestroy(pool);
    drv.cuStreamDestroy(stream);
    check_nothing_left("ends");
}

/* A recycled handle has the rights that were granted to the one before. */
static void inherited_access(void)
{
    CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    CUmemAccessDesc access[2];
    CUmemoryPool pool, other;

    sim->set_devices(2);
    driver_start(CCMR_SIM_EAGER, 0);
    memset(access, 0, sizeof access);
    access[0].location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access[0].location.id = 1;
    access[0].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    access[1].location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access[1].flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    pool = new_pool(0);
    CHECK_IS(drv.cuMemPoolSetAccess(pool, access, 2),
             CUDA_ERROR_INVALID_DEVICE);
    drv.cuMemPoolGetAccess(&flags, pool, &access[0].location);
    tap_is_int(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE,
               "a bad entry spoils the list");
    CHECK(drv.cuMemPoolSetAccess(pool, access, 1));
    drv.cuMemPoolDestroy(pool);
    other = new_pool(0);
    drv.cuMemPoolDestroy(other);
    tap_ok(new_pool(0) == pool, "the handle comes again");
    drv.cuMemPoolGetAccess(&flags, pool, &access[0].location);
    tap_is_int(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
               "with the rights that it had");
    drv.cuMemPoolDestroy(pool);
    check_nothing_left("access");
}

static void plain_calls(void)
{
    CUdeviceptr block, base = 0;
    CUmemoryPool pool, found = NULL;
    size_t bytes = 0;
    CUdeviceptr plain = 0;

    driver_start(CCMR_SIM_EAGER, 0);
    pool = new_pool(0);
    block = take(pool, 1000, CU_STREAM_LEGACY);
    CHECK(drv.cuMemGetAddressRange(&base, &bytes, block + 999));
    tap_ok(base == block && bytes == 1000, "a block knows its range");
    CHECK_IS(drv.cuMemGetAddressRange(&base, &bytes, block + 1000),
             CUDA_ERROR_NOT_FOUND);
    drv.cuPointerGetAttribute(&found, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE,
                              block + 1);
    tap_ok(found == pool, "and its pool");
    CHECK(drv.cuMemFree(block));
    CHECK_IS(drv.cuMemFree(block), CUDA_ERROR_INVALID_VALUE);
    drv.cuMemAlloc(&plain, 3 * MIB);
    CHECK(drv.cuMemFreeAsync(plain, CU_STREAM_LEGACY));
    CHECK_IS(drv.cuMemFree(plain), CUDA_ERROR_INVALID_VALUE);
    tap_ok(sim->is_alive(plain) == 0, "a plain block freed in order is gone");
    drv.cuMemPoolDestroy(pool);
    check_nothing_left("plain calls");
}

/* Many blocks, on several streams: none overlaps another, and each keeps its
 * contents for as long as it lives. */

#define SLOTS 300

struct slot {
    CUdeviceptr address;
    size_t bytes;
    uint32_t mark;
    CUstream stream;
};

static uint32_t random_state;

static uint32_t draw(uint32_t below)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % below;
}

static bool overlaps(const struct slot *slots, const struct slot *new)
{
    size_t i;

    for (i = 0; i < SLOTS; i++) {
        if (&slots[i] != new &&slots[i].address != 0 &&
            slots[i].address < new->address + new->bytes &&new->address <
                slots[i].address + slots[i].bytes) {
            return true;
        }
    }
    return false;
}

/* Its first and last word are as they were written. */
static bool is_intact(const struct slot *slot)
{
    const uint32_t *first = sim->peek(slot->address, 4);
    const uint32_t *last = sim->peek(slot->address + slot->bytes - 4, 4);

    return first != NULL && last != NULL && *first == slot->mark &&
           *last == slot->mark;
}

static void write_marks(const struct slot *slot)
{
    drv.cuMemsetD32Async(slot->address, slot->mark, 1, slot->stream);
    drv.cuMemsetD32Async(slot->address + slot->bytes - 4, slot->mark, 1,
                         slot->stream);
}

static bool step(struct slot *slot, CUmemoryPool pool, CUstream *streams)
{
    if (slot->address != 0) {
        drv.cuStreamSynchronize(slot->stream);
        if (!is_intact(slot)) {
            return false;
        }
        slot->stream = streams[draw(4)];
        drv.cuMemFreeAsync(slot->address, slot->stream);
        slot->address = 0;
        return true;
    }
    slot->bytes = (size_t)4 << draw(22);
    slot->bytes += 4 * draw(1000);
    slot->mark = random_state;
    slot->stream = streams[draw(4)];
    if (drv.cuMemAllocFromPoolAsync(&slot->address, slot->bytes, pool,
                                    slot->stream) == CUDA_SUCCESS) {
        write_marks(slot);
    }
    return true;
}

static void many_blocks(ccmr_sim_mode mode, uint64_t seed)
{
    static struct slot slots[SLOTS];
    CUstream streams[4];
    CUmemoryPool pool;
    bool apart = true;
    bool intact = true;
    int i;

    driver_start(mode, seed);
    sim->set_memory(0, GIB / 2);
    memset(slots, 0, sizeof slots);
    random_state = (uint32_t)seed;
    for (i = 0; i < 4; i++) {
        streams[i] = new_stream();
    }
    pool = new_pool(0);
    for (i = 0; i < 6000 && apart && intact; i++) {
        struct slot *slot = &slots[draw(SLOTS)];

        intact = step(slot, pool, streams);
        apart = slot->address == 0 || !overlaps(slots, slot);
        if (i % 1000 == 999) {
            drv.cuMemPoolTrimTo(pool, 0);
        }
    }
    tap_ok(apart, "mode %d seed %d: no two blocks overlap", mode, (int)seed);
    tap_ok(intact, "mode %d seed %d: contents are kept", mode, (int)seed);
    for (i = 0; i < SLOTS; i++) {
        if (slots[i].address != 0) {
            drv.cuMemFreeAsync(slots[i].address, slots[i].stream);
        }
    }
    drv.cuCtxSynchronize();
    tap_is_size(pool_number(pool, USED), 0, "nothing is used in the end");
    tap_is_size(pool_number(pool, RESERVED), 0, "nor reserved");
    drv.cuMemPoolDestroy(pool);
    for (i = 0; i < 4; i++) {
        drv.cuStreamDestroy(streams[i]);
    }
    check_nothing_left("many blocks");
}

/* Blocks go from stream to stream with no wait of the host: each is filled,
 * copied out and freed by the stream that it was allocated on, or by another
 * that waits for an event. Whatever the schedule, no fill may come between
 * another block's fill and copy. */

#define BLOCKS 400

static void hand_over(CUstream from, CUstream to, CUevent event)
{
    drv.cuEventRecord(event, from);
    drv.cuStreamWaitEvent(to, event, 0);
}

static bool contents_in_order(uint64_t seed, bool internal)
{
    static const size_t sizes[] = {4 * KIB, 8 * MIB, 16 * MIB, 30 * MIB};
    CUmemoryPool pool;
    CUevent event = NULL;
    CUstream stream[4];
    uint32_t *out = NULL;
    void *pinned = NULL;
    int setting = internal;
    bool good = true;
    uint32_t i;

    driver_start(CCMR_SIM_LATE, seed);
    sim->set_memory(0, internal ? 64 * MIB : GIB);
    random_state = (uint32_t)seed;
    pool = new_pool(0);
    drv.cuMemPoolSetAttribute(
        pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &setting);
    drv.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    drv.cuMemHostAlloc(&pinned, BLOCKS * sizeof *out, 0);
    out = pinned;
    memset(out, 0xff, BLOCKS * sizeof *out);
    for (i = 0; i < 4; i++) {
        stream[i] = new_stream();
    }
    for (i = 0; i < BLOCKS; i++) {
        CUstream one = stream[draw(4)];
        CUstream other = stream[draw(4)];
        CUdeviceptr block = take(pool, sizes[draw(4)], one);

        if (block == 0) {
            out[i] = i;
            continue;
        }
        drv.cuMemsetD32Async(block, i, 1, one);
        drv.cuMemcpyDtoHAsync(&out[i], block, 4, one);
        if (draw(3) == 0) {
            hand_over(one, other, event);
            one = other;
        }
        drv.cuMemFreeAsync(block, one);
        if (draw(8) == 0) {
            drv.cuStreamQuery(one);
        }
    }
    drv.cuCtxSynchronize();
    for (i = 0; i < BLOCKS; i++) {
        good = good && out[i] == i;
    }
    sim->reset(NULL);
    return good;
}

static void order(bool internal)
{
    uint64_t seed;
    int bad = 0;

    for (seed = 1; seed <= 60; seed++) {
        bad += !contents_in_order(seed, internal);
    }
    tap_is_int(bad, 0,
               "60 seeds, internal dependencies %s: blocks keep their "
               "contents from stream to stream",
               internal ? "on" : "off");
}

static void host_pools(void)
{
    CUmemPoolProps props;
    CUmemoryPool pool = NULL;
    CUdeviceptr block;

    driver_start(CCMR_SIM_EAGER, 0);
    memset(&props, 0, sizeof props);
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location.type = CU_MEM_LOCATION_TYPE_HOST;
    CHECK(drv.cuMemPoolCreate(&pool, &props));
    block = take(pool, 10000, CU_STREAM_LEGACY);
    memset((void *)(uintptr_t)block, 5, 10000);
    CHECK(drv.cuMemsetD8(block, 6, 100));
    tap_is_int(*(unsigned char *)(uintptr_t)(block + 99), 6,
               "a pool of host memory");
    tap_is_size(census_now().device_bytes, 0, "takes none of the device's");
    drv.cuMemFreeAsync(block, CU_STREAM_LEGACY);
    drv.cuMemPoolDestroy(pool);
    sim->reset(NULL);
    sim->set_attribute(-1, CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED, 0);
    driver_start(CCMR_SIM_EAGER, 0);
    CHECK_IS(drv.cuMemPoolCreate(&pool, &props), CUDA_ERROR_NOT_SUPPORTED);
    check_nothing_left("host pools");
}

int main(void)
{
    uint64_t seed;

    driver_load();
    amounts();
    reuse();
    same_stream();
    internal_wait();
    limits();
    ends();
    inherited_access();
    plain_calls();
    host_pools();
    order(true);
    order(false);
    many_blocks(CCMR_SIM_EAGER, 1);
    for (seed = 1; seed <= 4; seed++) {
        many_blocks(CCMR_SIM_LATE, seed);
    }
    return tap_finish();
}
