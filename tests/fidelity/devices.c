/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Before and at initialisation; entry points; devices and their attributes.
 */
#include "tests/fidelity/facts.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT_MS = 8000 };

/* ---- init: the process starts without cuInit ---- */

/* Documented: anything before cuInit answers NOT_INITIALIZED; the version and
 * the entry points may be asked for all the same. */
static void before(void)
{
    CUstreamCaptureStatus capture;
    unsigned long long id;
    CUcontext context = NULL;
    CUdeviceptr address = 0;
    CUmemoryPool pool = NULL;
    CUdevice device = 0;
    CUevent event = NULL;
    CUstream stream = NULL;
    const char *text = NULL;
    void *host = NULL;
    int count = 0;

    SEE("cuDriverGetVersion", cuDriverGetVersion(&count));
    SEE("cuGetErrorName", cuGetErrorName(CUDA_SUCCESS, &text));
    SEE("cuDeviceGetCount", cuDeviceGetCount(&count));
    SEE("cuDeviceGet", cuDeviceGet(&device, 0));
    SEE("cuCtxGetCurrent", cuCtxGetCurrent(&context));
    SEE("cuCtxSetCurrent_null", cuCtxSetCurrent(NULL));
    SEE("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain(&context, 0));
    SEE("cuMemAlloc", cuMemAlloc(&address, 4096));
    SEE("cuMemFree_null", cuMemFree(0));
    SEE("cuMemHostAlloc", cuMemHostAlloc(&host, 4096, 0));
    SEE("cuStreamCreate", cuStreamCreate(&stream, 0));
    SEE("cuEventCreate", cuEventCreate(&event, 0));
    SEE("cuStreamIsCapturing_legacy",
        cuStreamIsCapturing(CU_STREAM_LEGACY, &capture));
    SEE("cuStreamGetId_legacy", cuStreamGetId(CU_STREAM_LEGACY, &id));
    SEE("cuMemAllocAsync_legacy",
        cuMemAllocAsync(&address, 4096, CU_STREAM_LEGACY));
    SEE("cuDeviceGetDefaultMemPool", cuDeviceGetDefaultMemPool(&pool, 0));
}

static void flags(void)
{
    SEE("one", cuInit(1));
    SEE("zero", cuInit(0));
    SEE("again", cuInit(0));
}

static void version(void)
{
    int number = 0;

    SEE("result", cuDriverGetVersion(&number));
    fact_yes("at_least_13000", number >= 13000);
    SEE("null", cuDriverGetVersion(NULL));
}

/* A child forked before cuInit may initialise for itself. */
static void fork_before(void)
{
    pid_t child = fork();
    int status = 0;

    if (child == 0) {
        CUresult res = drv.cuInit(0);

        _exit(res == CUDA_SUCCESS ? 0 : 1);
    }
    if (child > 0) {
        waitpid(child, &status, 0);
        fact_yes("child_initialises",
                 WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

/* Documented: unknown codes give INVALID_VALUE, and the pointer becomes NULL;
 * the texts themselves belong to the driver. */
static void error_names(void)
{
    const char *text = "unchanged";

    SEE("known", cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &text));
    fact("known_text", "%s", text == NULL ? "NULL" : text);
    text = "unchanged";
    SEE("unknown", cuGetErrorName((CUresult)123456, &text));
    fact("unknown_text", "%s", text == NULL ? "NULL" : text);
    text = "unchanged";
    SEE("string", cuGetErrorString(CUDA_SUCCESS, &text));
    fact("string_text", "%s", text == NULL ? "NULL" : text);
    text = "unchanged";
    SEE("string_unknown", cuGetErrorString((CUresult)123456, &text));
    fact("string_unknown_text", "%s", text == NULL ? "NULL" : text);
}

static void look_up(const char *what, const char *name, int since,
                    cuuint64_t how, const char *exported)
{
    char key[128];
    void *address = (void *)(uintptr_t)1;
    CUdriverProcAddressQueryResult found = (CUdriverProcAddressQueryResult)99;
    CUresult res = drv.cuGetProcAddress(name, &address, since, how, &found);

    fact_result(what, res);
    snprintf(key, sizeof key, "%s_status", what);
    fact_number(key, (long long)found);
    snprintf(key, sizeof key, "%s_address", what);
    fact(key, "%s",
         address == NULL                      ? "NULL"
         : address == (void *)(uintptr_t)1    ? "unchanged"
         : exported == NULL                   ? "some"
         : address == driver_symbol(exported) ? "exported"
                                              : "another");
}

/* Documented: status 0 found, 1 no such symbol, 2 version not sufficient. */
static void proc_address(void)
{
    look_up("plain", "cuMemAlloc", 12000, 0, "cuMemAlloc_v2");
    look_up("first_version", "cuMemAlloc", 2000, 0, "cuMemAlloc");
    look_up("versioned_name", "cuMemAlloc_v2", 12000, 0, NULL);
    look_up("unknown", "cuNoSuchCall", 12000, 0, NULL);
    look_up("empty", "", 12000, 0, NULL);
    look_up("too_old", "cuMemAllocAsync", 11000, 0, NULL);
    look_up("version_zero", "cuMemAlloc", 0, 0, NULL);
    look_up("version_too_high", "cuMemAlloc", 99000, 0, "cuMemAlloc_v2");
    look_up("default_stream", "cuMemAllocAsync", 12000,
            CU_GET_PROC_ADDRESS_LEGACY_STREAM, "cuMemAllocAsync");
    look_up("per_thread", "cuMemAllocAsync", 12000,
            CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
            "cuMemAllocAsync_ptsz");
    look_up("bad_flags", "cuMemAlloc", 12000, 1024, NULL);
    look_up("itself", "cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2");
    look_up("ctx_create_v4", "cuCtxCreate", 12050, 0, "cuCtxCreate_v4");
    look_up("ctx_create_v2", "cuCtxCreate", 11000, 0, "cuCtxCreate_v2");
    look_up("elapsed_v2", "cuEventElapsedTime", 12080, 0,
            "cuEventElapsedTime_v2");
    look_up("elapsed_v1", "cuEventElapsedTime", 12000, 0,
            "cuEventElapsedTime");
    look_up("capture_info_v3", "cuStreamGetCaptureInfo", 12030, 0,
            "cuStreamGetCaptureInfo_v3");
    look_up("capture_info_v2", "cuStreamGetCaptureInfo", 11030, 0,
            "cuStreamGetCaptureInfo_v2");
    look_up("stream_device", "cuStreamGetDevice", 12080, 0,
            "cuStreamGetDevice");
    look_up("stream_device_early", "cuStreamGetDevice", 12070, 0, NULL);
    look_up("stream_id", "cuStreamGetId", 12000, 0, "cuStreamGetId");
    look_up("stream_id_early", "cuStreamGetId", 11080, 0, NULL);
}

static void proc_address_null(void)
{
    void *address = NULL;

    SEE("no_status", cuGetProcAddress("cuMemAlloc", &address, 12000, 0, NULL));
    SEE("no_name", cuGetProcAddress(NULL, &address, 12000, 0, NULL));
    SEE("no_address", cuGetProcAddress("cuMemAlloc", NULL, 12000, 0, NULL));
}

static void exported(void)
{
    static const char *const names[] = {
        "cuMemAlloc",          "cuMemAlloc_v2",
        "cuMemAllocAsync",     "cuMemAllocAsync_ptsz",
        "cuMemFreeAsync_ptsz", "cuStreamGetId_ptsz",
        "cuStreamGetDevice",   "cuStreamGetDevice_ptsz",
        "cuMemcpy_ptds",       "cuGetProcAddress",
        "cuGetProcAddress_v2", "cuMemGetDefaultMemPool",
        "cuMemGetMemPool",     "cuStreamIsCapturing_ptsz",
    };

    for (size_t i = 0; i < FIDELITY_COUNT(names); i++) {
        fact_yes(names[i], driver_symbol(names[i]) != NULL);
    }
}

static const struct fidelity_case init_cases[] = {
    FIDELITY_CASE(fork_before),
    FIDELITY_CASE(before),
    FIDELITY_CASE(exported),
    FIDELITY_CASE(flags),
    FIDELITY_CASE(version),
    FIDELITY_CASE(error_names),
    FIDELITY_CASE(proc_address),
    FIDELITY_CASE(proc_address_null),
    FIDELITY_END,
};

const struct fidelity_topic init_topic = {
    "init",
    init_cases,
    NULL,
    NULL,
    true,
    LIMIT_MS,
    "Documented: before cuInit calls answer NOT_INITIALIZED, but for "
    "version, error texts and addresses. Which ones do was measured.",
};

/* ---- devices ---- */

static void count(void)
{
    int number = 0;

    SEE("result", cuDeviceGetCount(&number));
    fact_yes("positive", number > 0);
    SEE("null", cuDeviceGetCount(NULL));
}

static void get(void)
{
    CUdevice device = 77;

    SEE("first", cuDeviceGet(&device, 0));
    fact_number("first_device", device);
    SEE("negative", cuDeviceGet(&device, -1));
    SEE("beyond", cuDeviceGet(&device, 1000));
    SEE("null", cuDeviceGet(NULL, 0));
}

static void bad_device(void)
{
    CUcontext context = NULL;
    CUmemoryPool pool = NULL;
    size_t bytes = 0;
    int value = 0;
    CUuuid uuid;
    char name[64];

    SEE("attribute",
        cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 1000));
    SEE("attribute_negative",
        cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, -1));
    SEE("total", cuDeviceTotalMem(&bytes, 1000));
    SEE("name", cuDeviceGetName(name, (int)sizeof name, 1000));
    SEE("uuid", cuDeviceGetUuid(&uuid, 1000));
    SEE("pool", cuDeviceGetDefaultMemPool(&pool, 1000));
    SEE("retain", cuDevicePrimaryCtxRetain(&context, 1000));
    SEE("peer", cuDeviceCanAccessPeer(&value, 0, 1000));
}

static void details(void)
{
    size_t bytes = 0;
    int value = 99;
    CUuuid uuid;
    char name[64] = "";
    char small[4] = "???";

    SEE("name", cuDeviceGetName(name, (int)sizeof name, 0));
    fact_yes("name_filled", name[0] != '\0');
    SEE("small_name", cuDeviceGetName(small, (int)sizeof small, 0));
    fact_number("small_name_length", (long long)strnlen(small, sizeof small));
    SEE("no_room", cuDeviceGetName(small, 0, 0));
    SEE("total", cuDeviceTotalMem(&bytes, 0));
    fact_yes("total_positive", bytes > 0);
    fact_yes("total_in_64KiB", bytes % 65536 == 0);
    SEE("uuid", cuDeviceGetUuid(&uuid, 0));
    SEE("peer_of_itself", cuDeviceCanAccessPeer(&value, 0, 0));
    fact_number("peer_of_itself_value", value);
}

#define ATTRIBUTE(name)                                                       \
    {                                                                         \
#name, CU_DEVICE_ATTRIBUTE_##name                                     \
    }

/* What an allocator asks a device. */
static void attributes(void)
{
    static const struct {
        const char *name;
        CUdevice_attribute attribute;
    } list[] = {
        ATTRIBUTE(INTEGRATED),
        ATTRIBUTE(CAN_MAP_HOST_MEMORY),
        ATTRIBUTE(COMPUTE_MODE),
        ATTRIBUTE(UNIFIED_ADDRESSING),
        ATTRIBUTE(STREAM_PRIORITIES_SUPPORTED),
        ATTRIBUTE(MANAGED_MEMORY),
        ATTRIBUTE(HOST_NATIVE_ATOMIC_SUPPORTED),
        ATTRIBUTE(PAGEABLE_MEMORY_ACCESS),
        ATTRIBUTE(CONCURRENT_MANAGED_ACCESS),
        ATTRIBUTE(CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM),
        ATTRIBUTE(HOST_REGISTER_SUPPORTED),
        ATTRIBUTE(PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES),
        ATTRIBUTE(DIRECT_MANAGED_MEM_ACCESS_FROM_HOST),
        ATTRIBUTE(VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED),
        ATTRIBUTE(HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED),
        ATTRIBUTE(HANDLE_TYPE_WIN32_HANDLE_SUPPORTED),
        ATTRIBUTE(HANDLE_TYPE_FABRIC_SUPPORTED),
        ATTRIBUTE(GPU_DIRECT_RDMA_SUPPORTED),
        ATTRIBUTE(GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED),
        ATTRIBUTE(READ_ONLY_HOST_REGISTER_SUPPORTED),
        ATTRIBUTE(MEMORY_POOLS_SUPPORTED),
        ATTRIBUTE(MEMPOOL_SUPPORTED_HANDLE_TYPES),
        ATTRIBUTE(IPC_EVENT_SUPPORTED),
        ATTRIBUTE(NUMA_CONFIG),
        ATTRIBUTE(MULTICAST_SUPPORTED),
        ATTRIBUTE(HOST_NUMA_ID),
        ATTRIBUTE(HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED),
        ATTRIBUTE(HOST_NUMA_MEMORY_POOLS_SUPPORTED),
        ATTRIBUTE(HOST_MEMORY_POOLS_SUPPORTED),
        ATTRIBUTE(HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED),
    };

    for (size_t i = 0; i < FIDELITY_COUNT(list); i++) {
        int value = 0;
        CUresult res = drv.cuDeviceGetAttribute(&value, list[i].attribute, 0);

        if (res == CUDA_SUCCESS) {
            fact_number(list[i].name, value);
        } else {
            fact_result(list[i].name, res);
        }
    }
}

static void bad_attribute(void)
{
    int value = 5;

    SEE("zero", cuDeviceGetAttribute(&value, (CUdevice_attribute)0, 0));
    SEE("high", cuDeviceGetAttribute(&value, (CUdevice_attribute)9999, 0));
    SEE("null", cuDeviceGetAttribute(NULL, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
}

static void granularity(void)
{
    CUmemAllocationProp prop;
    size_t bytes = 0;

    memset(&prop, 0, sizeof prop);
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    SEE("minimum", cuMemGetAllocationGranularity(
                       &bytes, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    fact_number("minimum_bytes", (long long)bytes);
    SEE("recommended",
        cuMemGetAllocationGranularity(&bytes, &prop,
                                      CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    fact_number("recommended_bytes", (long long)bytes);
}

static const struct fidelity_case device_cases[] = {
    FIDELITY_CASE(count),       FIDELITY_CASE(get),
    FIDELITY_CASE(bad_device),  FIDELITY_CASE(details),
    FIDELITY_CASE(attributes),  FIDELITY_CASE(bad_attribute),
    FIDELITY_CASE(granularity), FIDELITY_END,
};

const struct fidelity_topic device_topic = {
    "device",
    device_cases,
    NULL,
    NULL,
    false,
    LIMIT_MS,
    "Documented: what each attribute means. Which values one device gives "
    "was measured, and holds for that kind alone.",
};
