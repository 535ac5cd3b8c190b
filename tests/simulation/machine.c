/* SPDX-License-Identifier: Apache-2.0 */
/* The machine that is simulated: devices, versions, what is missing. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simulation/driver.h"
#include "tests/support/tap.h"

static void before_init(void)
{
    int number = 0;

    CHECK_IS(drv.cuDeviceGetCount(&number), CUDA_ERROR_NOT_INITIALIZED);
    CHECK(drv.cuDriverGetVersion(&number));
    tap_is_int(number, 13000, "the version by default");
    CHECK(drv.cuInit(0));
    CHECK(drv.cuDeviceGetCount(&number));
    tap_is_int(number, 1, "one device by default");
    tap_is_int(sim->set_devices(2), -1, "too late for another device");
    tap_is_int(sim->set_driver_version(12000), -1, "and another version");
    sim->reset(NULL);
}

static void several_devices(void)
{
    CUcontext context[3] = {NULL};
    CUuuid uuid[2];
    size_t bytes = 0;
    size_t available = 0;
    CUdeviceptr address[3] = {0};
    int value = 0;
    int i;

    tap_is_int(sim->set_devices(17), -1, "not more than sixteen devices");
    tap_is_int(sim->set_devices(3), 0, "three devices");
    sim->set_memory(1, 64 * MIB);
    sim->set_attribute(2, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 0);
    CHECK(drv.cuInit(0));
    CHECK_IS(drv.cuDeviceTotalMem(&bytes, 3), CUDA_ERROR_INVALID_DEVICE);
    CHECK(drv.cuDeviceTotalMem(&bytes, 1));
    tap_is_size(bytes, 64 * MIB, "a device of its own size");
    CHECK(drv.cuDeviceTotalMem(&bytes, 0));
    tap_is_size(bytes, 16 * GIB, "16 GiB by default");
    CHECK(drv.cuDeviceCanAccessPeer(&value, 0, 2));
    tap_is_int(value, 1, "peers");
    drv.cuDeviceGetUuid(&uuid[0], 0);
    drv.cuDeviceGetUuid(&uuid[1], 1);
    tap_ok(memcmp(&uuid[0], &uuid[1], sizeof uuid[0]) != 0, "two uuids");
    for (i = 0; i < 3; i++) {
        drv.cuDevicePrimaryCtxRetain(&context[i], i);
        drv.cuCtxSetCurrent(context[i]);
        CHECK(drv.cuMemAlloc(&address[i], 4096));
    }
    tap_ok(address[0] != address[1] && address[1] != address[2],
           "addresses of devices differ");
    drv.cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                              address[1]);
    tap_is_int(value, 1, "an address knows its device");
    drv.cuCtxSetCurrent(context[1]);
    CHECK_IS(drv.cuMemAlloc(&address[0], 63 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(drv.cuMemAlloc(&address[0], 62 * MIB));
    CHECK(drv.cuMemGetInfo(&available, &bytes));
    tap_is_size(available, 0, "nothing left");
    CHECK_IS(drv.cuMemAllocAsync(&address[0], 64, CU_STREAM_LEGACY),
             CUDA_ERROR_OUT_OF_MEMORY);
    drv.cuCtxSetCurrent(context[2]);
    CHECK_IS(drv.cuMemAllocAsync(&address[0], 64, CU_STREAM_LEGACY),
             CUDA_ERROR_NOT_SUPPORTED);
    sim->reset(NULL);
}

static CUdriverProcAddressQueryResult look_up(const char *name, int version,
                                              void **address)
{
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;

    *address = NULL;
    drv.cuGetProcAddress(name, address, version, 0, &found);
    return found;
}

static void old_versions(void)
{
    void *address;

    tap_is_int(sim->set_driver_version(11000), 0, "a driver of CUDA 11.0");
    tap_is_int(look_up("cuMemAllocAsync", 12000, &address),
               CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND,
               "is older than memory pools");
    tap_is_int(look_up("cuMemAlloc", 12000, &address),
               CU_GET_PROC_ADDRESS_SUCCESS, "but has plain memory");
    sim->reset(NULL);
    sim->set_driver_version(12000);
    look_up("cuStreamGetCaptureInfo", 13000, &address);
    tap_ok(address == driver_symbol("cuStreamGetCaptureInfo_v2"),
           "the newest form that the driver has");
    look_up("cuStreamGetCaptureInfo", 11000, &address);
    tap_ok(address == driver_symbol("cuStreamGetCaptureInfo"),
           "the newest form that was asked for");
    tap_is_int(look_up("cuMemGetMemPool", 13000, &address),
               CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, "not before CUDA 13");
    sim->reset(NULL);
}

static void missing_symbols(void)
{
    void *address;

    tap_is_int(sim->hide("cuNoSuchCall"), -1, "only calls can be hidden");
    tap_is_int(sim->hide("cuMemPoolTrimTo"), 0, "hide a call");
    tap_is_int(sim->hide("cuMemAlloc_v2"), 0, "one by its exact name");
    tap_is_int(look_up("cuMemPoolTrimTo", 12000, &address),
               CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, "it is not found");
    tap_ok(address == NULL, "and has no address");
    tap_is_int(look_up("cuMemAlloc", 12000, &address),
               CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, "nor is the other");
    CHECK(drv.cuInit(0));
    CHECK_IS(drv.cuMemPoolTrimTo(NULL, 0), CUDA_ERROR_NOT_FOUND);
    sim->unhide("cuMemPoolTrimTo");
    tap_is_int(look_up("cuMemPoolTrimTo", 12000, &address),
               CU_GET_PROC_ADDRESS_SUCCESS, "it is there again");
    sim->reset(NULL);
}

/* A context that was made again has the handle of the one before, and is
 * another one: whoever knows it by its handle alone is wrong. */
static void recycled_contexts(void)
{
    unsigned long long ids[2] = {0};
    CUcontext first = NULL, second = NULL;
    CUstream stream;

    driver_start(CCMR_SIM_EAGER, 0);
    CHECK(drv.cuCtxCreate(&first, NULL, 0, 0));
    CHECK(drv.cuCtxGetId(first, &ids[0]));
    CHECK(drv.cuCtxDestroy(first));
    CHECK_IS(drv.cuCtxGetId(first, &ids[1]), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    CHECK(drv.cuCtxCreate(&second, NULL, 0, 0));
    CHECK(drv.cuCtxGetId(second, &ids[1]));
    tap_ok(first == second, "the same handle at once");
    tap_ok(ids[0] != ids[1], "but another id");
    drv.cuCtxDestroy(second);
    /* What a reset leaves: the handle, and nothing behind it. */
    stream = new_stream();
    CHECK(drv.cuDevicePrimaryCtxReset(0));
    CHECK_IS(drv.cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    tap_is_int(census_now().streams, 0, "its streams went with it");
    tap_ok(stream != NULL, "though their handles are still about");
    sim->reset(NULL);
}

static CUresult make_pool(unsigned types)
{
    CUmemPoolProps props;
    CUmemoryPool pool = NULL;
    CUresult res;

    memset(&props, 0, sizeof props);
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    props.handleTypes = (CUmemAllocationHandleType)types;
    res = drv.cuMemPoolCreate(&pool, &props);
    if (res == CUDA_SUCCESS) {
        drv.cuMemPoolDestroy(pool);
    }
    return res;
}

static CUresult make_piece(unsigned types)
{
    CUmemGenericAllocationHandle piece = 0;
    CUmemAllocationProp props;
    CUresult res;

    memset(&props, 0, sizeof props);
    props.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    props.requestedHandleTypes = (CUmemAllocationHandleType)types;
    res = drv.cuMemCreate(&piece, 2 * MIB, &props, 0);
    if (res == CUDA_SUCCESS) {
        drv.cuMemRelease(piece);
    }
    return res;
}

/* Devices whose memory cannot be shared, or not be mapped at all. */
static void without_sharing(void)
{
    const unsigned posix = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

    driver_start(CCMR_SIM_EAGER, 0);
    CHECK(make_pool(posix));
    CHECK(make_piece(posix));
    sim->set_attribute(0, CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES,
                       0);
    sim->set_attribute(
        0, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 0);
    CHECK(make_pool(0));
    CHECK_IS(make_pool(posix), CUDA_ERROR_INVALID_VALUE);
    CHECK(make_piece(0));
    CHECK_IS(make_piece(posix), CUDA_ERROR_NOT_SUPPORTED);
    sim->set_attribute(
        0, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0);
    CHECK_IS(make_piece(0), CUDA_ERROR_NOT_SUPPORTED);
    check_nothing_left("without sharing");
}

static void stub(void)
{
    int number = 77;
    void *address = &number;

    sim->set_stub(1);
    CHECK_IS(drv.cuInit(0), CUDA_ERROR_STUB_LIBRARY);
    CHECK_IS(drv.cuDriverGetVersion(&number), CUDA_ERROR_STUB_LIBRARY);
    CHECK_IS(drv.cuGetProcAddress("cuInit", &address, 12000, 0, NULL),
             CUDA_ERROR_STUB_LIBRARY);
    tap_ok(number == 77 && address == &number, "outputs are left alone");
    sim->reset(NULL);
}

static void deinitialized(void)
{
    CUdeviceptr address = 0;

    driver_start(CCMR_SIM_EAGER, 0);
    CHECK(drv.cuMemAlloc(&address, 4096));
    sim->set_deinitialized(1);
    CHECK_IS(drv.cuMemFree(address), CUDA_ERROR_DEINITIALIZED);
    CHECK_IS(drv.cuInit(0), CUDA_ERROR_DEINITIALIZED);
    sim->set_deinitialized(0);
    CHECK(drv.cuMemFree(address));
    check_nothing_left("deinitialised");
}

static void no_device(void)
{
    int number = 7;

    sim->set_devices(0);
    CHECK_IS(drv.cuInit(0), CUDA_ERROR_NO_DEVICE);
    CHECK_IS(drv.cuDeviceGetCount(&number), CUDA_ERROR_NOT_INITIALIZED);
    sim->reset(NULL);
}

static void environment(void)
{
    int number = 0;
    size_t bytes = 0;
    void *address;

    setenv("CUCOREMR_SIM_DEVICES", "2", 1);
    setenv("CUCOREMR_SIM_MEMORY", "3GiB", 1);
    setenv("CUCOREMR_SIM_DRIVER_VERSION", "12040", 1);
    setenv("CUCOREMR_SIM_HIDE", "cuStreamGetId,cuMemPoolCreate", 1);
    setenv("CUCOREMR_SIM_SEED", "nonsense", 1);
    tap_diag("a complaint about the seed is expected");
    CHECK(drv.cuDriverGetVersion(&number));
    tap_is_int(number, 12040, "version from the environment");
    CHECK(drv.cuInit(0));
    CHECK(drv.cuDeviceGetCount(&number));
    tap_is_int(number, 2, "devices from the environment");
    CHECK(drv.cuDeviceTotalMem(&bytes, 1));
    tap_is_size(bytes, 3 * GIB, "memory from the environment");
    tap_is_int(look_up("cuMemPoolCreate", 12000, &address),
               CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, "hidden calls, too");
    unsetenv("CUCOREMR_SIM_DEVICES");
    unsetenv("CUCOREMR_SIM_MEMORY");
    unsetenv("CUCOREMR_SIM_DRIVER_VERSION");
    unsetenv("CUCOREMR_SIM_HIDE");
    unsetenv("CUCOREMR_SIM_SEED");
    sim->reset(NULL);
    CHECK(drv.cuDriverGetVersion(&number));
    tap_is_int(number, 13000, "read again after a reset");
    sim->reset(NULL);
}

int main(void)
{
    driver_load();
    before_init();
    several_devices();
    old_versions();
    missing_symbols();
    recycled_contexts();
    without_sharing();
    stub();
    deinitialized();
    no_device();
    environment();
    return tap_finish();
}
