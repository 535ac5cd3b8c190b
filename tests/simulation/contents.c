/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes: copies and fills arrive where and when they should. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simulation/driver.h"
#include "tests/support/tap.h"

static bool all_are(CUdeviceptr address, size_t bytes, unsigned char value)
{
    unsigned char *copy = malloc(bytes);
    bool good =
        copy != NULL && drv.cuMemcpyDtoH(copy, address, bytes) == CUDA_SUCCESS;
    size_t i;

    for (i = 0; good && i < bytes; i++) {
        good = copy[i] == value;
    }
    free(copy);
    return good;
}

static void round_trips(void)
{
    unsigned char in[1000], out[1000];
    CUdeviceptr plain = 0;
    CUdeviceptr block = 0;
    void *pinned = NULL;
    CUdeviceptr managed = 0;
    size_t i;

    driver_start(CCMR_SIM_EAGER, 0);
    for (i = 0; i < sizeof in; i++) {
        in[i] = (unsigned char)(i * 31 + 7);
    }
    drv.cuMemAlloc(&plain, 4096);
    drv.cuMemAllocAsync(&block, 4096, CU_STREAM_LEGACY);
    drv.cuMemHostAlloc(&pinned, 4096, 0);
    drv.cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL);
    CHECK(drv.cuMemcpyHtoD(plain + 3, in, sizeof in));
    CHECK(drv.cuMemcpyDtoD(block + 5, plain + 3, sizeof in));
    CHECK(drv.cuMemcpy((CUdeviceptr)(uintptr_t)pinned, block + 5, sizeof in));
    tap_ok(memcmp(pinned, in, sizeof in) == 0, "into pinned memory");
    CHECK(drv.cuMemcpy(managed, (CUdeviceptr)(uintptr_t)pinned, sizeof in));
    tap_ok(memcmp((void *)(uintptr_t)managed, in, sizeof in) == 0,
           "managed memory is the host's, too");
    CHECK(drv.cuMemcpyDtoH(out, managed, sizeof in));
    tap_ok(memcmp(out, in, sizeof in) == 0, "all the way round");
    tap_ok(sim->peek(block + 5, sizeof in) != NULL &&
               memcmp(sim->peek(block + 5, sizeof in), in, sizeof in) == 0,
           "a look at it");
    tap_ok(sim->peek(block + 4000, 200) == NULL, "but not beyond it");
    drv.cuMemFree(plain);
    drv.cuMemFreeAsync(block, CU_STREAM_LEGACY);
    drv.cuMemFreeHost(pinned);
    drv.cuMemFree(managed);
    check_nothing_left("round trips");
}

static void fills(void)
{
    CUdeviceptr address = 0;
    uint16_t halves[4];
    uint32_t words[4];

    driver_start(CCMR_SIM_EAGER, 0);
    drv.cuMemAlloc(&address, 4096);
    CHECK(drv.cuMemsetD8(address, 9, 4096));
    tap_ok(all_are(address, 4096, 9), "bytes");
    CHECK(drv.cuMemsetD16Async(address + 2, 0x1234, 3, CU_STREAM_LEGACY));
    drv.cuMemcpyDtoH(halves, address, sizeof halves);
    tap_ok(halves[0] == 0x0909 && halves[1] == 0x1234 && halves[3] == 0x1234,
           "halves");
    CHECK(drv.cuMemsetD32Async(address, 0xdeadbeef, 2, CU_STREAM_LEGACY));
    drv.cuMemcpyDtoH(words, address, sizeof words);
    tap_ok(words[1] == 0xdeadbeef && words[2] == 0x09090909, "words");
    CHECK_IS(drv.cuMemsetD8(address, 1, 4097), CUDA_ERROR_INVALID_VALUE);
    CHECK_IS(drv.cuMemsetD8(address + 4000, 1, 100), CUDA_ERROR_INVALID_VALUE);
    drv.cuMemFree(address);
    CHECK_IS(drv.cuMemsetD8(address, 1, 1), CUDA_ERROR_INVALID_VALUE);
    check_nothing_left("fills");
}

/* Blocks larger than what memory is taken in pieces of. */
static void large(void)
{
    CUmemoryPool pool;
    CUdeviceptr address = 0;
    CUdeviceptr other = 0;
    ccmr_sim_census census;

    driver_start(CCMR_SIM_EAGER, 0);
    pool = new_pool(0);
    drv.cuMemAllocFromPoolAsync(&address, 5 * GIB, pool, CU_STREAM_LEGACY);
    drv.cuMemAlloc(&other, 3 * GIB);
    census = census_now();
    tap_is_size(census.device_bytes, 8 * GIB, "8 GiB are taken");
    tap_is_size(census.touched_bytes, 0, "and none of it was touched");
    CHECK(drv.cuMemsetD8(address + 32 * MIB - 100, 5, 200));
    tap_ok(all_are(address + 32 * MIB - 100, 200, 5), "across pieces");
    CHECK(drv.cuMemcpyDtoD(other + GIB - 50, address + 32 * MIB - 100, 200));
    tap_ok(all_are(other + GIB - 50, 200, 5), "and from one to another");
    drv.cuMemFree(other);
    drv.cuMemFreeAsync(address, CU_STREAM_LEGACY);
    drv.cuStreamSynchronize(CU_STREAM_LEGACY);
    census = census_now();
    tap_is_size(census.touched_bytes, 0, "given back with the memory");
    drv.cuMemPoolDestroy(pool);
    check_nothing_left("large");
}

/* Pageable memory counts as of the call; pinned memory as of the copy. */
static void sources(void)
{
    unsigned char pageable[64];
    void *pinned = NULL;
    CUdeviceptr one = 0;
    CUdeviceptr two = 0;
    CUstream stream;

    driver_start(CCMR_SIM_LATE, 0);
    stream = new_stream();
    drv.cuMemAlloc(&one, 64);
    drv.cuMemAlloc(&two, 64);
    drv.cuMemHostAlloc(&pinned, 64, 0);
    memset(pageable, 1, sizeof pageable);
    memset(pinned, 1, 64);
    CHECK(drv.cuMemcpyHtoDAsync(one, pageable, 64, stream));
    CHECK(drv.cuMemcpyHtoDAsync(two, pinned, 64, stream));
    memset(pageable, 2, sizeof pageable);
    memset(pinned, 2, 64);
    CHECK(drv.cuStreamSynchronize(stream));
    tap_ok(all_are(one, 64, 1), "pageable: the bytes of then");
    tap_ok(all_are(two, 64, 2), "pinned: the bytes of the copy's time");
    CHECK(drv.cuMemsetD8Async(one, 7, 64, stream));
    CHECK(drv.cuMemcpyDtoHAsync(pageable, one, 64, stream));
    tap_is_int(pageable[63], 7, "a copy to pageable memory is waited for");
    drv.cuMemFree(one);
    drv.cuMemFree(two);
    drv.cuMemFreeHost(pinned);
    drv.cuStreamDestroy(stream);
    check_nothing_left("sources");
}

/* Two streams that race for a block: which one wins, a seed decides. */
static void races(void)
{
    CUdeviceptr address = 0;
    CUstream one, two;
    int first = 0;
    int second = 0;
    uint64_t seed;

    driver_start(CCMR_SIM_LATE, 0);
    one = new_stream();
    two = new_stream();
    drv.cuMemAlloc(&address, 16);
    for (seed = 1; seed <= 100; seed++) {
        sim->set_seed(seed);
        drv.cuMemsetD8Async(address, 1, 16, one);
        drv.cuMemsetD8Async(address, 2, 16, two);
        drv.cuCtxSynchronize();
        first += all_are(address, 16, 1);
        second += all_are(address, 16, 2);
    }
    tap_ok(first > 10 && second > 10, "both win (%d to %d)", first, second);
    drv.cuMemFree(address);
    drv.cuStreamDestroy(one);
    drv.cuStreamDestroy(two);
    check_nothing_left("races");
}

/* A plain free waits for the work of the whole device. */
static void plain_free_waits(void)
{
    void *pinned = NULL;
    CUdeviceptr address = 0;
    CUstream stream;

    driver_start(CCMR_SIM_LATE, 0);
    stream = new_stream();
    drv.cuMemAlloc(&address, 64);
    drv.cuMemHostAlloc(&pinned, 64, 0);
    memset(pinned, 0, 64);
    drv.cuMemsetD8Async((CUdeviceptr)(uintptr_t)pinned, 3, 64, stream);
    CHECK(drv.cuMemFree(address));
    tap_is_int(((unsigned char *)pinned)[0], 3, "cuMemFree has waited");
    drv.cuMemFreeHost(pinned);
    drv.cuStreamDestroy(stream);
    check_nothing_left("plain free");
}

int main(void)
{
    driver_load();
    round_trips();
    fills();
    large();
    sources();
    races();
    plain_free_waits();
    return tap_finish();
}
