/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory pools of the driver: attributes, limits, reuse, destruction.
 */
#include "tests/fidelity/calls.h"
#include "tests/fidelity/facts.h"
#include "tests/fidelity/hold.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { LIMIT_MS = 5000, MIB = 1 << 20, SAMPLES = 8 };

static unsigned long long get(CUmemoryPool pool, CUmemPool_attribute attribute)
{
    unsigned char bytes[sizeof(cuuint64_t)] = {0};
    cuuint64_t value = 0;

    if (drv.cuMemPoolGetAttribute(pool, attribute, bytes) != CUDA_SUCCESS) {
        return 123456789;
    }
    memcpy(&value, bytes, sizeof value);
    return value;
}

/* Bytes used and reserved, in KiB. */
static void see_amounts(const char *what, CUmemoryPool pool)
{
    fact(what, "used %llu of %llu, highest %llu of %llu",
         get(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) / 1024,
         get(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) / 1024,
         get(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) / 1024,
         get(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) / 1024);
}

/* ---- which pool is which ---- */

static void identity(void)
{
    CUmemLocation location;
    CUmemoryPool standard = NULL;
    CUmemoryPool again = NULL;
    CUmemoryPool current = NULL;
    CUmemoryPool own = make_pool(0);

    memset(&location, 0, sizeof location);
    location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    SEE("default", cuDeviceGetDefaultMemPool(&standard, 0));
    SEE("default_again", cuDeviceGetDefaultMemPool(&again, 0));
    fact_yes("default_is_one", standard == again);
    SEE("current", cuDeviceGetMemPool(&current, 0));
    fact_yes("current_is_default", current == standard);
    SEE("by_location", cuMemGetDefaultMemPool(&again, &location,
                                              CU_MEM_ALLOCATION_TYPE_PINNED));
    fact_yes("by_location_is_default", again == standard);
    SEE("current_by_location",
        cuMemGetMemPool(&again, &location, CU_MEM_ALLOCATION_TYPE_PINNED));
    fact_yes("current_by_location_is_default", again == standard);
    SEE("set", cuDeviceSetMemPool(0, own));
    SEE("get", cuDeviceGetMemPool(&current, 0));
    fact_yes("own_is_current", current == own);
    SEE("default_still", cuDeviceGetDefaultMemPool(&again, 0));
    fact_yes("default_still_default", again == standard);
    SEE("set_null", cuDeviceSetMemPool(0, NULL));
    SEE("destroy_current", cuMemPoolDestroy(own));
    SEE("get_after", cuDeviceGetMemPool(&current, 0));
    fact_yes("default_is_current_again", current == standard);
}

static void destroy_default(void)
{
    CUmemoryPool standard = NULL;

    drv.cuDeviceGetDefaultMemPool(&standard, 0);
    SEE("result", cuMemPoolDestroy(standard));
}

static void destroy_null(void)
{
    SEE("result", cuMemPoolDestroy(NULL));
}

/* A new pool has the handle of the one destroyed before, or another. */
static void handle_reuse(void)
{
    CUmemoryPool first = make_pool(0);
    CUmemoryPool second;

    drv.cuMemPoolDestroy(first);
    second = make_pool(0);
    fact_yes("same_handle", first == second);
    drv.cuMemPoolDestroy(second);
}

static void use_destroyed(void)
{
    CUmemoryPool pool = make_pool(0);
    CUdeviceptr block = 0;

    drv.cuMemPoolDestroy(pool);
    SEE("alloc",
        cuMemAllocFromPoolAsync(&block, 4096, pool, CU_STREAM_LEGACY));
}

/* ---- attributes ---- */

#define POOL(name)                                                            \
    {                                                                         \
#name, CU_MEMPOOL_ATTR_##name                                         \
    }

static const struct {
    const char *name;
    CUmemPool_attribute attribute;
} pool_attributes[] = {
    POOL(REUSE_FOLLOW_EVENT_DEPENDENCIES),
    POOL(REUSE_ALLOW_OPPORTUNISTIC),
    POOL(REUSE_ALLOW_INTERNAL_DEPENDENCIES),
    POOL(RELEASE_THRESHOLD),
    POOL(RESERVED_MEM_CURRENT),
    POOL(RESERVED_MEM_HIGH),
    POOL(USED_MEM_CURRENT),
    POOL(USED_MEM_HIGH),
};

/* Documented: threshold 0, the three ways of reuse on. */
static void see_defaults(CUmemoryPool pool)
{
    for (size_t i = 0; i < FIDELITY_COUNT(pool_attributes); i++) {
        fact_number(pool_attributes[i].name,
                    (long long)get(pool, pool_attributes[i].attribute));
    }
}

static void defaults_of_default(void)
{
    CUmemoryPool standard = NULL;

    drv.cuDeviceGetDefaultMemPool(&standard, 0);
    see_defaults(standard);
}

static void defaults_of_own(void)
{
    CUmemoryPool pool = make_pool(0);

    see_defaults(pool);
    drv.cuMemPoolDestroy(pool);
}

/* Documented: the current amounts can't be set, the highest only to 0. */
static void settable(void)
{
    static const cuuint64_t values[] = {0, 1, 2, 1 << 20};
    char key[96];

    for (size_t i = 0; i < FIDELITY_COUNT(pool_attributes); i++) {
        for (size_t v = 0; v < FIDELITY_COUNT(values); v++) {
            CUmemoryPool pool = make_pool(0);
            cuuint64_t value = values[v];
            CUresult res = drv.cuMemPoolSetAttribute(
                pool, pool_attributes[i].attribute, &value);

            snprintf(key, sizeof key, "%s_to_%llu", pool_attributes[i].name,
                     (unsigned long long)value);
            fact(key, "%s, reads %llu", result_name(res),
                 get(pool, pool_attributes[i].attribute));
            drv.cuMemPoolDestroy(pool);
        }
    }
}

static void attribute_errors(void)
{
    CUmemoryPool pool = make_pool(0);
    cuuint64_t value = UINT64_MAX;

    SEE("get_unknown",
        cuMemPoolGetAttribute(pool, (CUmemPool_attribute)999, &value));
    SEE("get_zero",
        cuMemPoolGetAttribute(pool, (CUmemPool_attribute)0, &value));
    SEE("get_null",
        cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, NULL));
    SEE("get_null_pool",
        cuMemPoolGetAttribute(NULL, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
    value = UINT64_MAX;
    SEE("set_threshold_to_most",
        cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                              &value));
    fact_yes("threshold_is_most",
             get(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) == UINT64_MAX);
    SEE("set_unknown",
        cuMemPoolSetAttribute(pool, (CUmemPool_attribute)999, &value));
    SEE("set_null",
        cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, NULL));
    SEE("set_null_pool", cuMemPoolSetAttribute(
                             NULL, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
    SEE("trim_null_pool", cuMemPoolTrimTo(NULL, 0));
    drv.cuMemPoolDestroy(pool);
}

/* ---- amounts ---- */

/* Documented: beyond the threshold memory goes back at the next
 * synchronisation of a stream, event or context. */
static void amounts_with_threshold(cuuint64_t threshold)
{
    CUmemoryPool pool = make_pool(0);
    CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr block = 0;
    CUdeviceptr second = 0;
    cuuint64_t zero = 0;

    drv.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                              &threshold);
    SEE("alloc", cuMemAllocFromPoolAsync(&block, 100, pool, stream));
    see_amounts("after_100_bytes", pool);
    SEE("alloc_large",
        cuMemAllocFromPoolAsync(&second, 5 * MIB + 1, pool, stream));
    see_amounts("after_5MiB_and_1", pool);
    SEE("free", cuMemFreeAsync(block, stream));
    SEE("free_large", cuMemFreeAsync(second, stream));
    see_amounts("after_free", pool);
    SEE("synchronize", cuStreamSynchronize(stream));
    see_amounts("after_synchronize", pool);
    SEE("reset_used_high",
        cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
    SEE("reset_reserved_high",
        cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &zero));
    see_amounts("after_reset", pool);
    SEE("trim", cuMemPoolTrimTo(pool, 0));
    see_amounts("after_trim", pool);
    drv.cuStreamDestroy(stream);
    SEE("destroy", cuMemPoolDestroy(pool));
}

static void amounts_threshold_none(void)
{
    amounts_with_threshold(0);
}

static void amounts_threshold_most(void)
{
    amounts_with_threshold(UINT64_MAX);
}

/* By queries of the stream, or of the event if there is one. */
static void ask_until_idle(CUstream stream, CUevent event)
{
    const struct timespec pause = {0, 1000000};
    CUresult res = CUDA_ERROR_NOT_READY;

    for (int i = 0; i < 1000 && res == CUDA_ERROR_NOT_READY; i++) {
        nanosleep(&pause, NULL);
        res = event == NULL ? drv.cuStreamQuery(stream)
                            : drv.cuEventQuery(event);
    }
    if (res != CUDA_SUCCESS) {
        fact_result("idle", res);
    }
}

/* What kind of synchronisation gives memory back with threshold 0. */
static void see_release(const char *what, int how)
{
    CUmemoryPool pool = make_pool(0);
    CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
    CUevent event = NULL;
    CUdeviceptr block = 0;
    CUdeviceptr plain = 0;

    drv.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    drv.cuMemAllocFromPoolAsync(&block, 4 * MIB, pool, stream);
    drv.cuMemFreeAsync(block, stream);
    drv.cuEventRecord(event, stream);
    if (how == 0) {
        drv.cuStreamSynchronize(stream);
    } else if (how == 1) {
        drv.cuEventSynchronize(event);
    } else if (how == 2) {
        drv.cuCtxSynchronize();
    } else if (how == 3) {
        ask_until_idle(stream, NULL);
    } else if (how == 4) {
        ask_until_idle(stream, event);
    } else {
        drv.cuMemAlloc(&plain, 4096);
        drv.cuMemFree(plain);
    }
    fact_number(what,
                (long long)get(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT));
    drv.cuCtxSynchronize();
    drv.cuEventDestroy(event);
    drv.cuStreamDestroy(stream);
    drv.cuMemPoolDestroy(pool);
}

static void released_by(void)
{
    see_release("stream_synchronize", 0);
    see_release("event_synchronize", 1);
    see_release("context_synchronize", 2);
    see_release("stream_query", 3);
    see_release("event_query", 4);
    see_release("plain_free", 5);
}

/* Synchronising another stream. */
static void released_by_other(void)
{
    CUmemoryPool pool = make_pool(0);
    CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
    CUstream other = make_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr block = 0;

    drv.cuMemAllocFromPoolAsync(&block, 4 * MIB, pool, stream);
    drv.cuMemFreeAsync(block, stream);
    ask_until_idle(stream, NULL);
    SEE("synchronize_other", cuStreamSynchronize(other));
    fact_number("reserved",
                (long long)get(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT));
    drv.cuCtxSynchronize();
    drv.cuStreamDestroy(stream);
    drv.cuStreamDestroy(other);
    drv.cuMemPoolDestroy(pool);
}

static void trim(void)
{
    cuuint64_t most = UINT64_MAX;
    CUmemoryPool pool = make_pool(0);
    CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr block[4] = {0};

    drv.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &most);
    for (size_t i = 0; i < 4; i++) {
        drv.cuMemAllocFromPoolAsync(&block[i], (size_t)32 * MIB, pool, stream);
    }
    see_amounts("four", pool);
    drv.cuMemFreeAsync(block[1], stream);
    drv.cuMemFreeAsync(block[2], stream);
    drv.cuStreamSynchronize(stream);
    see_amounts("two_freed", pool);
    SEE("to_96MiB", cuMemPoolTrimTo(pool, (size_t)96 * MIB));
    see_amounts("after_to_96MiB", pool);
    SEE("to_0", cuMemPoolTrimTo(pool, 0));
    see_amounts("after_to_0", pool);
    SEE("to_most", cuMemPoolTrimTo(pool, SIZE_MAX));
    drv.cuMemFreeAsync(block[0], stream);
    drv.cuMemFreeAsync(block[3], stream);
    drv.cuStreamSynchronize(stream);
    drv.cuStreamDestroy(stream);
    drv.cuMemPoolDestroy(pool);
}

/* Trim and destroy with a free that has not been reached yet. */
static void trim_pending(void)
{
    cuuint64_t most = UINT64_MAX;
    CUmemoryPool pool = make_pool(0);
    CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr block = 0;

    drv.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &most);
    drv.cuMemAllocFromPoolAsync(&block, (size_t)32 * MIB, pool, stream);
    drv.cuStreamSynchronize(stream);
    if (hold(stream)) {
        let_go_after(HOLD_DELAY_MS);
        SEE("free", cuMemFreeAsync(block, stream));
        see_amounts("freed", pool);
        SEE("trim", cuMemPoolTrimTo(pool, 0));
        see_amounts("trimmed", pool);
        fact_yes("still_held", let_go());
    }
    SEE("synchronize", cuStreamSynchronize(stream));
    see_amounts("synchronized", pool);
    SEE("trim_again", cuMemPoolTrimTo(pool, 0));
    see_amounts("trimmed_again", pool);
    drv.cuStreamDestroy(stream);
    drv.cuMemPoolDestroy(pool);
}

/* This corrupts a driver: a later call on another pool crashes or spins. */
static void destroy_pending(void)
{
    CUmemoryPool pool = make_pool(0);
    CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr block = 0;

    drv.cuMemAllocFromPoolAsync(&block, 4 * MIB, pool, stream);
    drv.cuStreamSynchronize(stream);
    if (hold(stream)) {
        let_go_after(HOLD_DELAY_MS);
        SEE("free", cuMemFreeAsync(block, stream));
        SEE("destroy", cuMemPoolDestroy(pool));
        fact_yes("still_held", let_go());
    }
    SEE("synchronize", cuStreamSynchronize(stream));
    facts_ruin();
}

/* Documented: outstanding blocks may still be freed, and then the pool goes. */
static void destroy_live(void)
{
    CUmemoryPool pool = make_pool(0);
    CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr block = 0;
    CUdeviceptr another = 0;

    drv.cuMemAllocFromPoolAsync(&block, 4 * MIB, pool, stream);
    SEE("destroy", cuMemPoolDestroy(pool));
    SEE("fill", cuMemsetD8Async(block, 1, 4 * MIB, stream));
    SEE("free", cuMemFreeAsync(block, stream));
    SEE("synchronize", cuStreamSynchronize(stream));
    another = block;
    SEE("free_again", cuMemFreeAsync(another, stream));
    drv.cuStreamDestroy(stream);
}

static void destroy_live_then_alloc(void)
{
    CUmemoryPool pool = make_pool(0);
    CUdeviceptr block = 0;
    CUdeviceptr another = 0;

    drv.cuMemAllocFromPoolAsync(&block, 4 * MIB, pool, CU_STREAM_LEGACY);
    SEE("destroy", cuMemPoolDestroy(pool));
    SEE("alloc",
        cuMemAllocFromPoolAsync(&another, 4096, pool, CU_STREAM_LEGACY));
}

static void destroy_twice(void)
{
    CUmemoryPool pool = make_pool(0);

    SEE("once", cuMemPoolDestroy(pool));
    SEE("twice", cuMemPoolDestroy(pool));
}

/* ---- creation ---- */

static void see_create(const char *what, const CUmemPoolProps *props)
{
    CUmemoryPool pool = NULL;
    CUresult res = drv.cuMemPoolCreate(&pool, props);

    fact_result(what, res);
    if (res == CUDA_SUCCESS) {
        drv.cuMemPoolDestroy(pool);
    }
}

static void create(void)
{
    CUmemPoolProps props = pool_properties(0);
    CUmemoryPool pool = NULL;

    see_create("ordinary", &props);
    SEE("null_output", cuMemPoolCreate(NULL, &props));
    SEE("null_props", cuMemPoolCreate(&pool, NULL));
    props.allocType = CU_MEM_ALLOCATION_TYPE_INVALID;
    see_create("type_invalid", &props);
    props = pool_properties(0);
    props.allocType = (CUmemAllocationType)77;
    see_create("type_unknown", &props);
    props = pool_properties(0);
    props.location.type = CU_MEM_LOCATION_TYPE_INVALID;
    see_create("location_invalid", &props);
    props = pool_properties(0);
    props.location.id = 1000;
    see_create("device_unknown", &props);
    props.location.id = -1;
    see_create("device_negative", &props);
    props = pool_properties(0);
    props.reserved[3] = 1;
    see_create("reserved_not_zero", &props);
    props = pool_properties(0);
    props.usage = 0x4000;
    see_create("usage_unknown", &props);
    props = pool_properties(0);
    props.win32SecurityAttributes = &props;
    see_create("security_attributes", &props);
}

static void handle_types(void)
{
    CUmemPoolProps props = pool_properties(0);

    props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    see_create("posix", &props);
    props.handleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
    see_create("fabric", &props);
    props.handleTypes = CU_MEM_HANDLE_TYPE_WIN32;
    see_create("win32", &props);
    props.handleTypes =
        (CUmemAllocationHandleType)(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR |
                                    CU_MEM_HANDLE_TYPE_FABRIC);
    see_create("posix_and_fabric", &props);
    props.handleTypes = (CUmemAllocationHandleType)0x40;
    see_create("unknown", &props);
}

static void host_locations(void)
{
    CUmemPoolProps props = pool_properties(0);

    props.location.type = CU_MEM_LOCATION_TYPE_HOST;
    see_create("host", &props);
    props.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    see_create("host_numa_0", &props);
    props.location.id = 4000;
    see_create("host_numa_4000", &props);
    props.location.id = 0;
    props.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
    see_create("host_numa_current", &props);
    props = pool_properties(0);
    props.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED;
    see_create("managed", &props);
}

static void see_from(const char *what, CUmemoryPool pool, CUstream stream,
                     size_t bytes)
{
    char key[64];
    CUdeviceptr block = 1;
    CUresult res = drv.cuMemAllocFromPoolAsync(&block, bytes, pool, stream);

    fact_result(what, res);
    snprintf(key, sizeof key, "%s_output", what);
    fact(key, "%s",
         block == 1   ? "unchanged"
         : block == 0 ? "zero"
                      : "address");
    if (res == CUDA_SUCCESS) {
        if (block != 0 && block != 1) {
            drv.cuMemFreeAsync(block, stream);
        }
        drv.cuStreamSynchronize(stream);
    }
}

/* Documented: maxSize is rounded up somehow; more than it is out of memory. */
static void max_size(void)
{
    CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
    CUmemoryPool pool = make_pool(3 * MIB);

    see_from("max_3MiB_takes_1MiB", pool, stream, MIB);
    see_from("max_3MiB_takes_3MiB", pool, stream, 3 * MIB);
    see_from("max_3MiB_takes_4MiB", pool, stream, 4 * MIB);
    see_from("max_3MiB_takes_32MiB", pool, stream, (size_t)32 * MIB);
    see_from("max_3MiB_takes_33MiB", pool, stream, (size_t)33 * MIB);
    see_from("max_3MiB_takes_64MiB", pool, stream, (size_t)64 * MIB);
    drv.cuMemPoolDestroy(pool);
    pool = make_pool(1);
    see_from("max_1_takes_512", pool, stream, 512);
    see_from("max_1_takes_2MiB", pool, stream, 2 * MIB);
    see_from("max_1_takes_4MiB", pool, stream, 4 * MIB);
    drv.cuMemPoolDestroy(pool);
    pool = make_pool((size_t)64 * MIB);
    see_from("max_64MiB_takes_64MiB", pool, stream, (size_t)64 * MIB);
    see_from("max_64MiB_takes_65MiB", pool, stream, (size_t)65 * MIB);
    see_from("max_64MiB_takes_96MiB", pool, stream, (size_t)96 * MIB);
    drv.cuMemPoolDestroy(pool);
    drv.cuStreamDestroy(stream);
}

static void max_size_extreme(void)
{
    CUmemPoolProps props = pool_properties(0);

    props.maxSize = SIZE_MAX;
    see_create("most", &props);
    props.maxSize = (size_t)1 << 46;
    see_create("terabytes", &props);
}

static void sizes(void)
{
    CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
    CUmemoryPool pool = make_pool(0);

    see_from("zero", pool, stream, 0);
    see_from("one", pool, stream, 1);
    see_from("terabytes", pool, stream, (size_t)1 << 46);
    see_from("half_of_size_max", pool, stream, SIZE_MAX / 2);
    see_from("size_max", pool, stream, SIZE_MAX);
    see_from("after_failures", pool, stream, 4096);
    SEE("null_output", cuMemAllocFromPoolAsync(NULL, 4096, pool, stream));
    drv.cuMemPoolDestroy(pool);
    drv.cuStreamDestroy(stream);
}

static void null_pool(void)
{
    CUdeviceptr block = 0;

    SEE("result",
        cuMemAllocFromPoolAsync(&block, 4096, NULL, CU_STREAM_LEGACY));
}

static void see_alignment(const char *what, CUmemoryPool pool, CUstream stream,
                          size_t bytes)
{
    CUdeviceptr block[SAMPLES] = {0};
    CUdeviceptr bits = 0;
    char key[64];

    for (size_t i = 0; i < SAMPLES; i++) {
        drv.cuMemAllocFromPoolAsync(&block[i], bytes, pool, stream);
        bits |= block[i];
    }
    snprintf(key, sizeof key, "%s_multiples_of_256", what);
    fact_yes(key, bits % 256 == 0);
    snprintf(key, sizeof key, "%s_multiples_of_512", what);
    fact_yes(key, bits % 512 == 0);
    snprintf(key, sizeof key, "%s_multiples_of_1024", what);
    fact_yes(key, bits % 1024 == 0);
    snprintf(key, sizeof key, "%s_multiples_of_2MiB", what);
    fact_yes(key, bits % (2 * MIB) == 0);
    for (size_t i = 0; i < SAMPLES; i++) {
        drv.cuMemFreeAsync(block[i], stream);
    }
    drv.cuStreamSynchronize(stream);
}

static void alignment(void)
{
    CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
    CUmemoryPool pool = make_pool(0);

    see_alignment("1", pool, stream, 1);
    see_alignment("700", pool, stream, 700);
    see_alignment("1MiB", pool, stream, MIB);
    see_alignment("1MiB_and_1", pool, stream, MIB + 1);
    see_alignment("2MiB", pool, stream, 2 * MIB);
    see_alignment("3MiB", pool, stream, 3 * MIB);
    drv.cuMemPoolDestroy(pool);
    drv.cuStreamDestroy(stream);
}

/* ---- frees ---- */

/* Documented: INVALID_VALUE for what no pool handed out. */
static void free_wrong(void)
{
    CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr block = 0;
    int local = 0;

    drv.cuMemAllocAsync(&block, 8192, stream);
    SEE("null", cuMemFreeAsync(0, stream));
    SEE("garbage", cuMemFreeAsync(0x1234, stream));
    SEE("host", cuMemFreeAsync((CUdeviceptr)(uintptr_t)&local, stream));
    SEE("interior", cuMemFreeAsync(block + 512, stream));
    SEE("interior_odd", cuMemFreeAsync(block + 1, stream));
    SEE("right", cuMemFreeAsync(block, stream));
    SEE("twice", cuMemFreeAsync(block, stream));
    SEE("synchronize", cuStreamSynchronize(stream));
    SEE("twice_later", cuMemFreeAsync(block, stream));
    drv.cuStreamDestroy(stream);
}

static void free_elsewhere(void)
{
    CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
    CUstream other = make_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr block = 0;

    drv.cuMemAllocAsync(&block, 8192, stream);
    drv.cuStreamSynchronize(stream);
    SEE("other_stream", cuMemFreeAsync(block, other));
    drv.cuMemAllocAsync(&block, 8192, stream);
    drv.cuStreamSynchronize(stream);
    SEE("legacy", cuMemFreeAsync(block, CU_STREAM_LEGACY));
    drv.cuMemAllocAsync(&block, 8192, stream);
    drv.cuStreamSynchronize(stream);
    SEE("per_thread", cuMemFreeAsync(block, CU_STREAM_PER_THREAD));
    drv.cuMemAllocAsync(&block, 8192, stream);
    drv.cuStreamSynchronize(stream);
    SEE("null_stream", cuMemFreeAsync(block, NULL));
    drv.cuStreamDestroy(stream);
    drv.cuStreamDestroy(other);
}

static void access_rights(void)
{
    CUmemoryPool pool = make_pool(0);
    CUmemAccessDesc access;
    CUmemAccess_flags flags = (CUmemAccess_flags)99;

    memset(&access, 0, sizeof access);
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    SEE("get_own", cuMemPoolGetAccess(&flags, pool, &access.location));
    fact_number("own_flags", (long long)flags);
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    SEE("set_own_none", cuMemPoolSetAccess(pool, &access, 1));
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
    SEE("set_own_read", cuMemPoolSetAccess(pool, &access, 1));
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    SEE("set_own_all", cuMemPoolSetAccess(pool, &access, 1));
    SEE("set_count_0", cuMemPoolSetAccess(pool, &access, 0));
    SEE("set_null", cuMemPoolSetAccess(pool, NULL, 1));
    access.location.id = 1000;
    SEE("set_unknown_device", cuMemPoolSetAccess(pool, &access, 1));
    SEE("get_unknown_device",
        cuMemPoolGetAccess(&flags, pool, &access.location));
    drv.cuMemPoolDestroy(pool);
}

static const struct fidelity_case pool_cases[] = {
    FIDELITY_CASE(defaults_of_default),
    FIDELITY_CASE(defaults_of_own),
    FIDELITY_CASE(identity),
    FIDELITY_CASE(handle_reuse),
    FIDELITY_CASE(settable),
    FIDELITY_CASE(attribute_errors),
    FIDELITY_CASE(access_rights),
    FIDELITY_CASE(amounts_threshold_none),
    FIDELITY_CASE(amounts_threshold_most),
    FIDELITY_CASE(released_by),
    FIDELITY_CASE(released_by_other),
    FIDELITY_CASE(trim),
    FIDELITY_CASE(trim_pending),
    FIDELITY_CASE(create),
    FIDELITY_CASE(handle_types),
    FIDELITY_CASE(host_locations),
    FIDELITY_CASE(max_size),
    FIDELITY_CASE(max_size_extreme),
    FIDELITY_CASE(sizes),
    FIDELITY_CASE(alignment),
    FIDELITY_CASE(free_wrong),
    FIDELITY_CASE(free_elsewhere),
    FIDELITY_CASE(destroy_pending),
    FIDELITY_CASE(destroy_live),
    FIDELITY_CASE(destroy_live_then_alloc),
    FIDELITY_CASE(null_pool),
    FIDELITY_CASE(destroy_null),
    FIDELITY_CASE(destroy_default),
    FIDELITY_CASE(use_destroyed),
    FIDELITY_CASE(destroy_twice),
    FIDELITY_END,
};

const struct fidelity_topic pool_topic = {
    "pool",
    pool_cases,
    NULL,
    NULL,
    false,
    LIMIT_MS,
    "Documented: a pool gives back what is above its threshold when the host "
    "synchronises. Granules, marks and answers were measured.",
};
