/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual memory: honest counts, aliases, rights, and work that comes late. */
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "tests/simulation/driver.h"
#include "tests/support/tap.h"

#define PAGE (2 * MIB)

static CUmemGenericAllocationHandle new_piece_on(int device, size_t bytes,
                                                 int types)
{
    CUmemAllocationProp prop;
    CUmemGenericAllocationHandle piece = 0;

    memset(&prop, 0, sizeof prop);
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = device;
    prop.requestedHandleTypes = (CUmemAllocationHandleType)types;
    CHECK(drv.cuMemCreate(&piece, bytes, &prop, 0));
    return piece;
}

static CUmemGenericAllocationHandle new_piece(size_t bytes)
{
    return new_piece_on(0, bytes, CU_MEM_HANDLE_TYPE_NONE);
}

static CUdeviceptr new_range(size_t bytes)
{
    CUdeviceptr address = 0;

    CHECK(drv.cuMemAddressReserve(&address, bytes, 0, 0, 0));
    return address;
}

static CUresult let_use(int device, CUdeviceptr address, size_t bytes,
                        CUmemAccess_flags flags)
{
    CUmemAccessDesc desc;

    memset(&desc, 0, sizeof desc);
    desc.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    desc.location.id = device;
    desc.flags = flags;
    return drv.cuMemSetAccess(address, bytes, &desc, 1);
}

static CUresult let_all(CUdeviceptr address, size_t bytes)
{
    return let_use(0, address, bytes, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

static unsigned char first_byte(CUdeviceptr address)
{
    unsigned char byte = 0;

    drv.cuMemcpyDtoH(&byte, address, 1);
    return byte;
}

/* Memory comes back when it is neither held nor mapped, and not before. */
static void counts(void)
{
    CUmemGenericAllocationHandle piece, again = 0;
    CUdeviceptr range;

    driver_start(CCMR_SIM_EAGER, 0);
    piece = new_piece(4 * PAGE);
    range = new_range(16 * PAGE);
    tap_is_size(census_now().device_bytes, 4 * PAGE, "taken when created");
    tap_is_int(census_now().pieces, 1, "one piece");
    tap_is_int(census_now().ranges, 1, "one range");
    CHECK(drv.cuMemMap(range, 4 * PAGE, 0, piece, 0));
    CHECK(drv.cuMemMap(range + 8 * PAGE, 4 * PAGE, 0, piece, 0));
    tap_is_int(census_now().mappings, 2, "two mappings");
    tap_is_size(census_now().device_bytes, 4 * PAGE, "of the same memory");
    CHECK(drv.cuMemRetainAllocationHandle(
        &again, (void *)(uintptr_t)(range + 9 * PAGE)));
    CHECK(drv.cuMemRelease(piece));
    CHECK(drv.cuMemUnmap(range, 4 * PAGE));
    CHECK(drv.cuMemUnmap(range + 8 * PAGE, 4 * PAGE));
    tap_is_size(census_now().device_bytes, 4 * PAGE, "a handle is left");
    CHECK(drv.cuMemRelease(again));
    tap_is_size(census_now().device_bytes, 0, "none is left");
    piece = new_piece(PAGE);
    drv.cuMemMap(range, PAGE, 0, piece, 0);
    CHECK(drv.cuMemRelease(piece));
    tap_is_size(census_now().device_bytes, PAGE, "a mapping is left");
    CHECK_IS(drv.cuMemAddressFree(range, 16 * PAGE), CUDA_ERROR_INVALID_VALUE);
    CHECK(drv.cuMemUnmap(range, 16 * PAGE));
    tap_is_size(census_now().device_bytes, 0, "none is left");
    CHECK_IS(drv.cuMemAddressFree(range, 8 * PAGE), CUDA_ERROR_INVALID_VALUE);
    CHECK(drv.cuMemAddressFree(range, 16 * PAGE));
    check_nothing_left("counts");
}

/* A descriptor that was handed out keeps the memory, too. */
static void descriptors(void)
{
    CUmemGenericAllocationHandle piece, import = 0;
    size_t available = 0;
    size_t total = 0;
    int fd = -1;
    int copy;

    driver_start(CCMR_SIM_EAGER, 0);
    piece =
        new_piece_on(0, 4 * PAGE, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    CHECK(drv.cuMemExportToShareableHandle(
        &fd, piece, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    copy = dup(fd);
    CHECK(drv.cuMemRelease(piece));
    close(fd);
    drv.cuMemGetInfo(&available, &total);
    tap_is_size(census_now().device_bytes, 4 * PAGE, "a copy of it is open");
    CHECK(drv.cuMemImportFromShareableHandle(
        &import, (void *)(intptr_t)copy,
        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    close(copy);
    drv.cuMemGetInfo(&available, &total);
    tap_is_size(census_now().device_bytes, 4 * PAGE, "an import holds it");
    CHECK(drv.cuMemRelease(import));
    drv.cuMemGetInfo(&available, &total);
    tap_is_size(census_now().device_bytes, 0, "nobody does");
    check_nothing_left("descriptors");
}

static void contents(void)
{
    CUmemGenericAllocationHandle one, two;
    CUdeviceptr range, other;

    driver_start(CCMR_SIM_EAGER, 0);
    one = new_piece(PAGE);
    two = new_piece(PAGE);
    range = new_range(2 * PAGE);
    other = new_range(2 * PAGE);
    drv.cuMemMap(range, PAGE, 0, one, 0);
    drv.cuMemMap(range + PAGE, PAGE, 0, two, 0);
    drv.cuMemMap(other, PAGE, 0, two, 0);
    CHECK(let_all(range, 2 * PAGE));
    CHECK(let_all(other, PAGE));
    CHECK(drv.cuMemsetD8(range + PAGE - 8, 7, 16));
    tap_is_int(first_byte(range + PAGE - 8), 7, "over a border: before");
    tap_is_int(first_byte(other + 7), 7, "behind, by an alias");
    CHECK(drv.cuMemsetD8(other, 8, 4));
    tap_is_int(first_byte(range + PAGE), 8, "and back");
    CHECK(drv.cuMemUnmap(range, 2 * PAGE));
    CHECK(drv.cuMemMap(range, PAGE, 0, two, 0));
    CHECK(let_all(range, PAGE));
    tap_is_int(first_byte(range), 8, "what was moved is the same");
    drv.cuMemUnmap(range, PAGE);
    drv.cuMemUnmap(other, PAGE);
    drv.cuMemRelease(one);
    drv.cuMemRelease(two);
    drv.cuMemAddressFree(range, 2 * PAGE);
    drv.cuMemAddressFree(other, 2 * PAGE);
    check_nothing_left("contents");
}

static void rights(void)
{
    CUmemGenericAllocationHandle piece;
    CUcontext second = NULL;
    CUdeviceptr range;
    CUstream stream;

    sim->set_devices(2);
    driver_start(CCMR_SIM_EAGER, 0);
    drv.cuDevicePrimaryCtxRetain(&second, 1);
    piece = new_piece_on(1, PAGE, CU_MEM_HANDLE_TYPE_NONE);
    range = new_range(PAGE);
    drv.cuMemMap(range, PAGE, 0, piece, 0);
    stream = new_stream();
    CHECK(let_use(1, range, PAGE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    CHECK_IS(drv.cuMemsetD8Async(range, 1, 16, stream),
             CUDA_ERROR_INVALID_VALUE);
    CHECK(let_use(0, range, PAGE, CU_MEM_ACCESS_FLAGS_PROT_READ));
    CHECK_IS(drv.cuMemsetD8Async(range, 1, 16, stream),
             CUDA_ERROR_INVALID_VALUE);
    tap_is_int(first_byte(range), 0, "but it may look");
    CHECK(let_use(0, range, PAGE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    CHECK(drv.cuMemsetD8Async(range, 1, 16, stream));
    drv.cuStreamDestroy(stream);
    drv.cuMemUnmap(range, PAGE);
    drv.cuMemRelease(piece);
    drv.cuMemAddressFree(range, PAGE);
    drv.cuDevicePrimaryCtxRelease(1);
    check_nothing_left("rights");
}

/* Unmapping waits for nothing: work that comes later finds nothing there. */
static void unmapped_too_early(void)
{
    CUmemGenericAllocationHandle piece;
    CUdeviceptr range;
    CUstream stream;

    driver_start(CCMR_SIM_LATE, 0);
    piece = new_piece(PAGE);
    range = new_range(PAGE);
    drv.cuMemMap(range, PAGE, 0, piece, 0);
    let_all(range, PAGE);
    stream = new_stream();
    CHECK(drv.cuMemsetD8Async(range, 1, 16, stream));
    CHECK(drv.cuMemUnmap(range, PAGE));
    CHECK_IS(drv.cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    tap_ok(sim->reset(NULL) != 0, "reset takes what is left");
    tap_is_int(census_now().ranges, 0, "all of it");
}

static void shortage(void)
{
    CUmemGenericAllocationHandle piece, none = 0;
    CUmemAllocationProp prop;

    sim->set_memory(0, 8 * PAGE);
    driver_start(CCMR_SIM_EAGER, 0);
    memset(&prop, 0, sizeof prop);
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    piece = new_piece(6 * PAGE);
    CHECK_IS(drv.cuMemCreate(&none, 4 * PAGE, &prop, 0),
             CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(drv.cuMemRelease(piece));
    CHECK(drv.cuMemCreate(&piece, 8 * PAGE, &prop, 0));
    CHECK(drv.cuMemRelease(piece));
    check_nothing_left("shortage");
}

/* A range of many small pieces, as a pool has them. */
static void many(void)
{
    enum { PIECES = 2000 };
    static CUmemGenericAllocationHandle pieces[PIECES];
    CUdeviceptr range;
    bool good = true;
    size_t i;

    driver_start(CCMR_SIM_EAGER, 0);
    range = new_range((size_t)1 << 40);
    for (i = 0; i < PIECES; i++) {
        CUmemAllocationProp prop;

        memset(&prop, 0, sizeof prop);
        prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        good = good &&
               drv.cuMemCreate(&pieces[i], PAGE, &prop, 0) == CUDA_SUCCESS &&
               drv.cuMemMap(range + i * PAGE, PAGE, 0, pieces[i], 0) ==
                   CUDA_SUCCESS;
    }
    tap_ok(good, "%d pieces mapped", PIECES);
    CHECK(let_all(range, PIECES * PAGE));
    CHECK(drv.cuMemsetD8(range + 1000 * PAGE - 8, 5, 16));
    tap_is_int(first_byte(range + 1000 * PAGE + 7), 5, "in the middle");
    tap_ok(census_now().touched_bytes <= 8 * PAGE, "the rest is untouched");
    CHECK(drv.cuMemUnmap(range, PIECES * PAGE));
    for (i = 0; i < PIECES; i++) {
        drv.cuMemRelease(pieces[i]);
    }
    CHECK(drv.cuMemAddressFree(range, (size_t)1 << 40));
    check_nothing_left("many");
}

int main(void)
{
    driver_load();
    counts();
    descriptors();
    contents();
    rights();
    unmapped_too_early();
    shortage();
    many();
    return tap_finish();
}
