/* SPDX-License-Identifier: Apache-2.0 */
/* Managed memory, also on devices that can't share it; standard pools. */
#include <stdint.h>
#include <string.h>

#include "tests/simulation/driver.h"
#include "tests/support/tap.h"

static CUmemLocation place(CUmemLocationType type, int id)
{
    CUmemLocation location;

    memset(&location, 0, sizeof location);
    location.type = type;
    location.id = id;
    return location;
}

static int range_number(CUdeviceptr address, size_t bytes,
                        CUmem_range_attribute attribute)
{
    int value = 99;

    CHECK(drv.cuMemRangeGetAttribute(&value, sizeof value, attribute, address,
                                     bytes));
    return value;
}

static int last_prefetch(CUdeviceptr address, size_t bytes)
{
    return range_number(address, bytes,
                        CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION);
}

/* What was said holds for the range that it was said of. */
static void ranges(void)
{
    const CUmemLocation device = place(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    const CUmemLocation host = place(CU_MEM_LOCATION_TYPE_HOST, 0);
    CUdeviceptr address = 0;
    CUstream stream;

    driver_start(CCMR_SIM_EAGER, 0);
    stream = new_stream();
    CHECK(drv.cuMemAllocManaged(&address, 8 * MIB, CU_MEM_ATTACH_GLOBAL));
    CHECK(drv.cuMemPrefetchAsync(address + MIB, 4 * MIB, device, 0, stream));
    CHECK(drv.cuMemPrefetchAsync(address + 2 * MIB, MIB, host, 0, stream));
    tap_is_int(last_prefetch(address, MIB), CU_DEVICE_INVALID, "never");
    tap_is_int(last_prefetch(address + MIB, MIB), 0, "to the device");
    tap_is_int(last_prefetch(address + 2 * MIB, 77), CU_DEVICE_CPU, "back");
    tap_is_int(last_prefetch(address + 3 * MIB, 2 * MIB), 0, "still there");
    tap_is_int(last_prefetch(address + MIB, 4 * MIB), CU_DEVICE_INVALID,
               "not the same everywhere");
    CHECK(drv.cuMemAdvise(address, 8 * MIB, CU_MEM_ADVISE_SET_READ_MOSTLY,
                          device));
    CHECK(drv.cuMemAdvise(address + 5, 1, CU_MEM_ADVISE_UNSET_READ_MOSTLY,
                          device));
    tap_is_int(
        range_number(address + 4096, MIB, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY),
        1, "advice holds by page");
    tap_is_int(range_number(address, MIB, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY),
               0, "and was taken back for one");
    drv.cuMemFree(address);
    drv.cuStreamDestroy(stream);
    check_nothing_left("ranges");
}

/* Without concurrent access it can be had, but not prefetched. */
static void not_concurrent(void)
{
    const CUmemLocation device = place(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    CUmemLocation nowhere = place(CU_MEM_LOCATION_TYPE_NONE, 0);
    CUmemPoolProps props;
    CUmemoryPool pool = NULL;
    CUdeviceptr address = 0;
    CUstream stream;

    sim->set_attribute(-1, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 0);
    driver_start(CCMR_SIM_EAGER, 0);
    stream = new_stream();
    CHECK(drv.cuMemAllocManaged(&address, MIB, CU_MEM_ATTACH_GLOBAL));
    CHECK_IS(drv.cuMemPrefetchAsync(address, MIB, device, 0, stream),
             CUDA_ERROR_INVALID_DEVICE);
    CHECK_IS(
        drv.cuMemAdvise(address, MIB, CU_MEM_ADVISE_SET_ACCESSED_BY, device),
        CUDA_ERROR_INVALID_VALUE);
    CHECK_IS(drv.cuMemGetDefaultMemPool(&pool, &nowhere,
                                        CU_MEM_ALLOCATION_TYPE_MANAGED),
             CUDA_ERROR_NOT_SUPPORTED);
    memset(&props, 0, sizeof props);
    props.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED;
    CHECK(drv.cuMemPoolCreate(&pool, &props));
    drv.cuMemPoolDestroy(pool);
    drv.cuMemFree(address);
    drv.cuStreamDestroy(stream);
    check_nothing_left("not concurrent");
}

/* What was said of a block is not said of the next one at its place. */
static void reused(void)
{
    const CUmemLocation host = place(CU_MEM_LOCATION_TYPE_HOST, 0);
    CUmemPoolProps props;
    CUmemoryPool pool = NULL;
    CUdeviceptr block = 0;
    CUdeviceptr again = 0;
    CUstream stream;

    driver_start(CCMR_SIM_EAGER, 0);
    stream = new_stream();
    memset(&props, 0, sizeof props);
    props.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED;
    CHECK(drv.cuMemPoolCreate(&pool, &props));
    CHECK(drv.cuMemAllocFromPoolAsync(&block, MIB, pool, stream));
    CHECK(drv.cuMemPrefetchAsync(block, MIB, host, 0, stream));
    tap_is_int(last_prefetch(block, MIB), CU_DEVICE_CPU, "prefetched");
    drv.cuMemFreeAsync(block, stream);
    CHECK(drv.cuMemAllocFromPoolAsync(&again, MIB, pool, stream));
    tap_ok(again == block, "the same place");
    tap_is_int(last_prefetch(again, MIB), CU_DEVICE_INVALID, "anew");
    drv.cuMemFreeAsync(again, stream);
    drv.cuStreamSynchronize(stream);
    drv.cuStreamDestroy(stream);
    drv.cuMemPoolDestroy(pool);
    check_nothing_left("reused");
}

static void standard_pools(void)
{
    CUmemLocation host = place(CU_MEM_LOCATION_TYPE_HOST, 0);
    CUmemLocation device = place(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    CUmemPoolProps props;
    CUmemoryPool pinned = NULL;
    CUmemoryPool managed = NULL;
    CUmemoryPool own = NULL;
    CUmemoryPool found = NULL;

    driver_start(CCMR_SIM_EAGER, 0);
    CHECK(drv.cuMemGetDefaultMemPool(&pinned, &host,
                                     CU_MEM_ALLOCATION_TYPE_PINNED));
    CHECK(drv.cuMemGetDefaultMemPool(&managed, &device,
                                     CU_MEM_ALLOCATION_TYPE_MANAGED));
    tap_ok(pinned != managed, "two pools");
    CHECK_IS(drv.cuMemPoolDestroy(pinned), CUDA_ERROR_INVALID_VALUE);
    memset(&props, 0, sizeof props);
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location = host;
    CHECK(drv.cuMemPoolCreate(&own, &props));
    CHECK(drv.cuMemSetMemPool(&host, CU_MEM_ALLOCATION_TYPE_PINNED, own));
    CHECK(drv.cuMemGetMemPool(&found, &host, CU_MEM_ALLOCATION_TYPE_PINNED));
    tap_ok(found == own, "an own pool is the current one");
    CHECK(drv.cuMemPoolDestroy(own));
    CHECK(drv.cuMemGetMemPool(&found, &host, CU_MEM_ALLOCATION_TYPE_PINNED));
    tap_ok(found == pinned, "the standard one again");
    check_nothing_left("standard pools");
}

static void peers(void)
{
    CUcontext second = NULL;
    CUcontext third = NULL;
    int value = 99;

    sim->set_devices(3);
    sim->set_peers(0, 2, 0);
    driver_start(CCMR_SIM_EAGER, 0);
    drv.cuDevicePrimaryCtxRetain(&second, 1);
    drv.cuDevicePrimaryCtxRetain(&third, 2);
    CHECK(drv.cuDeviceCanAccessPeer(&value, 0, 1));
    tap_is_int(value, 1, "peers");
    CHECK(drv.cuDeviceCanAccessPeer(&value, 0, 2));
    tap_is_int(value, 0, "no peers");
    CHECK(drv.cuDeviceGetP2PAttribute(
        &value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 2));
    tap_is_int(value, 0, "told twice");
    CHECK(drv.cuCtxEnablePeerAccess(second, 0));
    CHECK_IS(drv.cuCtxEnablePeerAccess(second, 0),
             CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    CHECK_IS(drv.cuCtxEnablePeerAccess(third, 0),
             CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
    CHECK(drv.cuCtxDisablePeerAccess(second));
    drv.cuDevicePrimaryCtxRelease(1);
    drv.cuDevicePrimaryCtxRelease(2);
    check_nothing_left("peers");
}

/* Many at once: each place goes with a run of ranges. */
static void batches(void)
{
    CUmemLocation places[2];
    size_t firsts[2] = {0, 2};
    size_t sizes[3] = {MIB, MIB, 2 * MIB};
    CUdeviceptr ranges_of[3];
    CUdeviceptr address = 0;
    CUstream stream;

    driver_start(CCMR_SIM_EAGER, 0);
    stream = new_stream();
    places[0] = place(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    places[1] = place(CU_MEM_LOCATION_TYPE_HOST, 0);
    CHECK(drv.cuMemAllocManaged(&address, 8 * MIB, CU_MEM_ATTACH_GLOBAL));
    ranges_of[0] = address;
    ranges_of[1] = address + 2 * MIB;
    ranges_of[2] = address + 4 * MIB;
    CHECK(drv.cuMemPrefetchBatchAsync(ranges_of, sizes, 3, places, firsts, 2,
                                      0, stream));
    tap_is_int(last_prefetch(address, MIB), 0, "the first of a batch");
    tap_is_int(last_prefetch(address + MIB, MIB), CU_DEVICE_INVALID,
               "not what lies between");
    tap_is_int(last_prefetch(address + 2 * MIB, MIB), 0, "same place");
    tap_is_int(last_prefetch(address + 4 * MIB, 2 * MIB), CU_DEVICE_CPU,
               "the next place");
    firsts[0] = 1;
    CHECK_IS(drv.cuMemPrefetchBatchAsync(ranges_of, sizes, 3, places, firsts,
                                         2, 0, stream),
             CUDA_ERROR_INVALID_VALUE);
    firsts[0] = 0;
    firsts[1] = 3;
    CHECK_IS(drv.cuMemPrefetchBatchAsync(ranges_of, sizes, 3, places, firsts,
                                         2, 0, stream),
             CUDA_ERROR_INVALID_VALUE);
    CHECK_IS(drv.cuMemPrefetchBatchAsync(ranges_of, sizes, 3, places, firsts,
                                         1, 0, NULL),
             CUDA_ERROR_INVALID_VALUE);
    ranges_of[2] = address + 7 * MIB;
    CHECK_IS(drv.cuMemPrefetchBatchAsync(ranges_of, sizes, 3, &places[1],
                                         firsts, 1, 0, stream),
             CUDA_ERROR_INVALID_VALUE);
    tap_is_int(last_prefetch(address, MIB), 0, "one bad range: nothing done");
    drv.cuMemFree(address);
    drv.cuStreamDestroy(stream);
    check_nothing_left("batches");
}

int main(void)
{
    driver_load();
    ranges();
    not_concurrent();
    batches();
    reused();
    standard_pools();
    peers();
    return tap_finish();
}
