/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver-costs: what each driver call on the library's fast paths takes.
 *
 *     driver-costs [--driver cuda|sim]
 *
 * Prints "name nanoseconds" lines: the median of several rounds, each the mean
 * of many calls. A call that fails prints its status in place of the number.
 */
#include "tests/fidelity/driver.h"

#include "sim/sim.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 15, ROUND_NS = 2000000, REPEAT_MAX = 20000, WARM_UP = 20 };

/* Everything that a measured call works on; one thread. */
static struct {
    CUcontext context;
    CUstream stream;
    CUstream other;
    CUevent event;
    CUdeviceptr plain;
    CUdeviceptr block;
    void *pinned;
    CUmemoryPool pool;
    CUfunction kernel;
    size_t bytes;
} on;

static long long now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long long)now.tv_sec * 1000000000LL + now.tv_nsec;
}

static int compare_numbers(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;

    return (a > b) - (a < b);
}

/* How often a call has to be repeated for one round. */
static int choose_repeat(CUresult (*call)(void))
{
    long long start = now_ns();
    long long each;

    for (int i = 0; i < WARM_UP; i++) {
        call();
    }
    each = (now_ns() - start) / WARM_UP + 1;
    each = ROUND_NS / each;
    return each < 1 ? 1 : each > REPEAT_MAX ? REPEAT_MAX : (int)each;
}

static void measure(const char *name, CUresult (*call)(void))
{
    double ns[ROUNDS];
    CUresult res = call();
    int repeat;

    if (res != CUDA_SUCCESS) {
        printf("%s %s\n", name, result_name(res));
        fflush(stdout);
        return;
    }
    repeat = choose_repeat(call);
    for (int round = 0; round < ROUNDS; round++) {
        long long start = now_ns();

        for (int i = 0; i < repeat; i++) {
            res = call();
        }
        ns[round] = (double)(now_ns() - start) / repeat;
        drv.cuStreamSynchronize(on.stream);
        drv.cuStreamSynchronize(on.other);
    }
    if (res != CUDA_SUCCESS) {
        printf("%s %s\n", name, result_name(res));
    } else {
        qsort(ns, ROUNDS, sizeof ns[0], compare_numbers);
        printf("%s %.1f\n", name, ns[ROUNDS / 2]);
    }
    fflush(stdout);
}

static void measure_size(const char *name, size_t bytes,
                         CUresult (*call)(void))
{
    char text[96];

    on.bytes = bytes;
    snprintf(text, sizeof text, "%s_%zu", name, bytes);
    measure(text, call);
}

/* ---- the calls ---- */

#define ON_STREAM(id, stream_, expression)                                    \
    static CUresult id(void)                                                  \
    {                                                                         \
        CUstream stream = stream_;                                            \
                                                                              \
        return drv.expression;                                                \
    }

static CUstreamCaptureStatus status;
static unsigned long long stream_id;
static CUdevice device;
static CUcontext context;
static cuuint64_t number;
static CUmemorytype type;
static size_t available;
static size_t total;

ON_STREAM(capturing_created, on.stream, cuStreamIsCapturing(stream, &status))
ON_STREAM(capturing_legacy, CU_STREAM_LEGACY,
          cuStreamIsCapturing(stream, &status))
ON_STREAM(capturing_per_thread, CU_STREAM_PER_THREAD,
          cuStreamIsCapturing(stream, &status))
ON_STREAM(id_created, on.stream, cuStreamGetId(stream, &stream_id))
ON_STREAM(id_legacy, CU_STREAM_LEGACY, cuStreamGetId(stream, &stream_id))
ON_STREAM(id_per_thread, CU_STREAM_PER_THREAD,
          cuStreamGetId(stream, &stream_id))
ON_STREAM(device_created, on.stream, cuStreamGetDevice(stream, &device))
ON_STREAM(device_legacy, CU_STREAM_LEGACY, cuStreamGetDevice(stream, &device))
ON_STREAM(context_created, on.stream, cuStreamGetCtx(stream, &context))
ON_STREAM(context_legacy, CU_STREAM_LEGACY, cuStreamGetCtx(stream, &context))
ON_STREAM(capture_info, on.stream,
          cuStreamGetCaptureInfo(stream, &status, NULL, NULL, NULL, NULL,
                                 NULL))
ON_STREAM(stream_query, on.stream, cuStreamQuery(stream))
ON_STREAM(stream_synchronize, on.stream, cuStreamSynchronize(stream))
ON_STREAM(event_record, on.stream, cuEventRecord(on.event, stream))
ON_STREAM(event_wait, on.other, cuStreamWaitEvent(stream, on.event, 0))

static CUresult event_query(void)
{
    return drv.cuEventQuery(on.event);
}

static CUresult event_synchronize(void)
{
    return drv.cuEventSynchronize(on.event);
}

static CUresult event_create_destroy(void)
{
    CUevent event = NULL;

    drv.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    return drv.cuEventDestroy(event);
}

static CUresult stream_create_destroy(void)
{
    CUstream stream = NULL;

    drv.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    return drv.cuStreamDestroy(stream);
}

static CUresult context_get(void)
{
    return drv.cuCtxGetCurrent(&context);
}

static CUresult context_set(void)
{
    return drv.cuCtxSetCurrent(on.context);
}

static CUresult context_push_pop(void)
{
    drv.cuCtxPushCurrent(on.context);
    return drv.cuCtxPopCurrent(&context);
}

static CUresult exchange_mode(void)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUresult res = drv.cuThreadExchangeStreamCaptureMode(&mode);

    drv.cuThreadExchangeStreamCaptureMode(&mode);
    return res;
}

static CUresult primary_retain_release(void)
{
    drv.cuDevicePrimaryCtxRetain(&context, 0);
    return drv.cuDevicePrimaryCtxRelease(0);
}

static CUresult attribute_type(void)
{
    return drv.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                     on.plain);
}

static CUresult attribute_type_pinned(void)
{
    return drv.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                     (CUdeviceptr)(uintptr_t)on.pinned);
}

static CUresult address_range(void)
{
    CUdeviceptr base;

    return drv.cuMemGetAddressRange(&base, &total, on.plain);
}

static CUresult memory_info(void)
{
    return drv.cuMemGetInfo(&available, &total);
}

static CUresult pool_get(void)
{
    return drv.cuMemPoolGetAttribute(
        on.pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &number);
}

static CUresult pool_set(void)
{
    number = UINT64_MAX;
    return drv.cuMemPoolSetAttribute(
        on.pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &number);
}

static CUresult pool_trim(void)
{
    return drv.cuMemPoolTrimTo(on.pool, SIZE_MAX);
}

static CUresult pool_pair(void)
{
    CUdeviceptr block = 0;
    CUresult res =
        drv.cuMemAllocFromPoolAsync(&block, on.bytes, on.pool, on.stream);

    return res != CUDA_SUCCESS ? res : drv.cuMemFreeAsync(block, on.stream);
}

static CUresult default_pair(void)
{
    CUdeviceptr block = 0;
    CUresult res = drv.cuMemAllocAsync(&block, on.bytes, on.stream);

    return res != CUDA_SUCCESS ? res : drv.cuMemFreeAsync(block, on.stream);
}

static CUresult legacy_pair(void)
{
    CUdeviceptr block = 0;
    CUresult res = drv.cuMemAllocFromPoolAsync(&block, on.bytes, on.pool,
                                               CU_STREAM_LEGACY);

    return res != CUDA_SUCCESS ? res
                               : drv.cuMemFreeAsync(block, CU_STREAM_LEGACY);
}

static CUresult per_thread_pair(void)
{
    CUdeviceptr block = 0;
    CUresult res = drv.cuMemAllocFromPoolAsync(&block, on.bytes, on.pool,
                                               CU_STREAM_PER_THREAD);

    return res != CUDA_SUCCESS
               ? res
               : drv.cuMemFreeAsync(block, CU_STREAM_PER_THREAD);
}

static CUresult plain_pair(void)
{
    CUdeviceptr address = 0;
    CUresult res = drv.cuMemAlloc(&address, on.bytes);

    return res != CUDA_SUCCESS ? res : drv.cuMemFree(address);
}

static CUresult pinned_pair(void)
{
    void *address = NULL;
    CUresult res = drv.cuMemHostAlloc(&address, on.bytes, 0);

    return res != CUDA_SUCCESS ? res : drv.cuMemFreeHost(address);
}

static CUresult launch(void)
{
    return drv.cuLaunchKernel(on.kernel, 1, 1, 1, 1, 1, 1, 0, on.stream, NULL,
                              NULL);
}

static CUresult launch_and_record(void)
{
    CUresult res = launch();

    return res != CUDA_SUCCESS ? res : drv.cuEventRecord(on.event, on.stream);
}

static CUresult launch_record_wait(void)
{
    CUresult res = launch_and_record();

    return res != CUDA_SUCCESS ? res
                               : drv.cuStreamWaitEvent(on.other, on.event, 0);
}

static CUresult launch_and_pair(void)
{
    CUresult res = launch();

    return res != CUDA_SUCCESS ? res : pool_pair();
}

/* Nothing but the loop and the indirect call, to subtract. */
static CUresult nothing(void)
{
    return CUDA_SUCCESS;
}

/* ---- the runs ---- */

static void measure_queries(void)
{
    measure("empty_loop", nothing);
    measure("cuStreamIsCapturing_created", capturing_created);
    measure("cuStreamIsCapturing_legacy", capturing_legacy);
    measure("cuStreamIsCapturing_per_thread", capturing_per_thread);
    measure("cuStreamGetId_created", id_created);
    measure("cuStreamGetId_legacy", id_legacy);
    measure("cuStreamGetId_per_thread", id_per_thread);
    measure("cuStreamGetDevice_created", device_created);
    measure("cuStreamGetDevice_legacy", device_legacy);
    measure("cuStreamGetCtx_created", context_created);
    measure("cuStreamGetCtx_legacy", context_legacy);
    measure("cuStreamGetCaptureInfo", capture_info);
    measure("cuStreamQuery_idle", stream_query);
    measure("cuStreamSynchronize_idle", stream_synchronize);
    measure("cuEventRecord", event_record);
    measure("cuEventQuery", event_query);
    measure("cuEventSynchronize_done", event_synchronize);
    measure("cuStreamWaitEvent_done", event_wait);
    measure("cuEventCreate+Destroy", event_create_destroy);
    measure("cuCtxGetCurrent", context_get);
    measure("cuCtxSetCurrent_same", context_set);
    measure("cuCtxPushCurrent+PopCurrent", context_push_pop);
    measure("cuThreadExchangeStreamCaptureMode_twice", exchange_mode);
    measure("cuDevicePrimaryCtxRetain+Release", primary_retain_release);
    measure("cuPointerGetAttribute_plain", attribute_type);
    measure("cuPointerGetAttribute_pinned", attribute_type_pinned);
    measure("cuMemGetAddressRange", address_range);
    measure("cuMemGetInfo", memory_info);
    measure("cuMemPoolGetAttribute", pool_get);
    measure("cuMemPoolSetAttribute", pool_set);
    measure("cuMemPoolTrimTo_nothing", pool_trim);
}

static void measure_pairs(void)
{
    static const size_t sizes[] = {256,     4096,     65536,   1 << 20,
                                   2 << 20, 16 << 20, 64 << 20};
    const size_t count = sizeof sizes / sizeof sizes[0];
    CUcontext popped = NULL;

    for (size_t i = 0; i < count; i++) {
        measure_size("own_pool_pair", sizes[i], pool_pair);
    }
    for (size_t i = 0; i < count; i++) {
        measure_size("default_pool_pair", sizes[i], default_pair);
    }
    measure_size("own_pool_pair_legacy", 4096, legacy_pair);
    measure_size("own_pool_pair_per_thread", 4096, per_thread_pair);
    drv.cuCtxPopCurrent(&popped);
    measure_size("no_context_own_pool_pair", 256, pool_pair);
    measure_size("no_context_own_pool_pair", 1 << 20, pool_pair);
    measure_size("no_context_default_pool_pair", 256, default_pair);
    measure("no_context_cuStreamIsCapturing", capturing_created);
    measure("no_context_cuStreamGetId", id_created);
    measure("no_context_cuCtxPushCurrent+PopCurrent", context_push_pop);
    measure("no_context_cuEventRecord", event_record);
    drv.cuCtxPushCurrent(popped);
}

/* A kernel that does nothing, for what follows a launch. */
static const char empty_kernel[] = ".version 6.4\n"
                                   ".target sm_75\n"
                                   ".address_size 64\n"
                                   ".visible .entry empty()\n"
                                   "{\n"
                                   "    ret;\n"
                                   "}\n";

static void measure_slow(bool simulated)
{
    CUmodule module = NULL;
    CUresult res = CUDA_ERROR_NOT_SUPPORTED;

    measure_size("plain_pair", 4096, plain_pair);
    measure_size("plain_pair", 2 << 20, plain_pair);
    measure_size("plain_pair", 64 << 20, plain_pair);
    measure_size("pinned_pair", 65536, pinned_pair);
    measure_size("pinned_pair", 2 << 20, pinned_pair);
    measure("cuStreamCreate+Destroy", stream_create_destroy);
    if (!simulated) {
        res = drv.cuModuleLoadData(&module, empty_kernel);
    }
    if (res == CUDA_SUCCESS) {
        res = drv.cuModuleGetFunction(&on.kernel, module, "empty");
    }
    if (res != CUDA_SUCCESS) {
        printf("# no kernels: %s\n", result_name(res));
        return;
    }
    on.bytes = 4096;
    measure("launch", launch);
    measure("launch+cuEventRecord", launch_and_record);
    measure("launch+cuEventRecord+WaitEvent", launch_record_wait);
    measure("launch+own_pool_pair_4096", launch_and_pair);
    drv.cuCtxSynchronize();
    drv.cuModuleUnload(module);
}

static CUresult make_objects(void)
{
    CUmemPoolProps props;
    CUmemoryPool standard = NULL;
    cuuint64_t most = UINT64_MAX;

    memset(&props, 0, sizeof props);
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    drv.cuStreamCreate(&on.stream, CU_STREAM_NON_BLOCKING);
    drv.cuStreamCreate(&on.other, CU_STREAM_NON_BLOCKING);
    drv.cuEventCreate(&on.event, CU_EVENT_DISABLE_TIMING);
    drv.cuMemAlloc(&on.plain, 4096);
    drv.cuMemHostAlloc(&on.pinned, 4096, 0);
    drv.cuMemPoolCreate(&on.pool, &props);
    drv.cuDeviceGetDefaultMemPool(&standard, 0);
    drv.cuMemPoolSetAttribute(on.pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                              &most);
    drv.cuMemPoolSetAttribute(standard, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                              &most);
    drv.cuMemAllocFromPoolAsync(&on.block, 4096, on.pool, on.stream);
    drv.cuEventRecord(on.event, on.stream);
    return drv.cuStreamSynchronize(on.stream);
}

static CUresult begin(void)
{
    CUresult res = drv.cuInit(0);

    if (res == CUDA_SUCCESS) {
        res = drv.cuDevicePrimaryCtxRetain(&on.context, 0);
    }
    if (res == CUDA_SUCCESS) {
        res = drv.cuCtxSetCurrent(on.context);
    }
    return res == CUDA_SUCCESS ? make_objects() : res;
}

int main(int argc, char **argv)
{
    const char *kind = getenv("CUCOREMR_DRIVER");
    const char *reason;
    char name[128] = "";
    int version = 0;
    CUresult res;

    if (argc == 3 && strcmp(argv[1], "--driver") == 0) {
        kind = argv[2];
    } else if (argc != 1) {
        fputs("usage: driver-costs [--driver cuda|sim]\n", stderr);
        return 2;
    }
    reason = driver_load(kind == NULL ? "cuda" : kind);
    if (reason != NULL) {
        fprintf(stderr, "driver-costs: %s\n", reason);
        return 1;
    }
    if (driver_simulation() != NULL) {
        driver_simulation()->set_mode(CCMR_SIM_EAGER);
    }
    res = begin();
    if (res != CUDA_SUCCESS) {
        fprintf(stderr, "driver-costs: %s\n", result_name(res));
        return 1;
    }
    drv.cuDeviceGetName(name, (int)sizeof name, 0);
    drv.cuDriverGetVersion(&version);
    printf("# device: %s\n# driver: %d\n", name, version);
    measure_queries();
    measure_pairs();
    measure_slow(driver_simulation() != NULL);
    return 0;
}
