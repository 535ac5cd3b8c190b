/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pins and exports of pools on the simulated driver: what is pinned does not
 * move, unmap or go, whoever has it, and what another process has mapped is
 * what is at the address here.
 */
#include "tests/unit/leaf.h"

#include <unistd.h>

#include "lib/driver.h"
#include "tests/unit/adaptor.h"

#define UNIT (2 * MIB)

static const ccmr_sim_table *sim;
static ccmr_resource *made;

static void start(void)
{
    sim = leaf_start();
    (void)sim->set_mode(CCMR_SIM_LATE);
    (void)sim->check_order(1);
}

static void end(void)
{
    MUST(made == NULL || ccmr_resource_audit(made) == CCMR_SUCCESS);
    ccmr_resource_release(made);
    MUST(sim->hazards() == 0);
    MUST(leaf_census().pieces == 0);
    MUST(leaf_census().mappings == 0);
    MUST(leaf_census().ranges == 0);
    MUST(leaf_census().plain_blocks == 0);
    leaf_end();
}

TestSuite(pool_pin, .init = start, .fini = end);

static void make(const char *text)
{
    ccmr_resource_release(made);
    made = NULL;
    GOOD(ccmr_stack_create(text, &made));
}

static void give_finished(void *ptr, size_t bytes)
{
    GOOD(ccmr_resource_deallocate(made, ptr, bytes, 0, CCMR_STREAM_READY));
}

/* Trim all, of which so much goes and so much is pinned. */
static void check_trim(size_t released, size_t pinned)
{
    ccmr_trim_result result = {.size = sizeof(result)};

    GOOD(ccmr_resource_trim(made, 0, &result));
    GOOD(ccmr_resource_audit(made));
    cr_assert_eq(result.released_bytes, released, "%zu released",
                 result.released_bytes);
    cr_assert_eq(result.pinned_bytes, pinned, "%zu pinned",
                 result.pinned_bytes);
    cr_assert_eq(result.pending_bytes, 0u);
}

Test(pool_pin, a_free_handle_stays)
{
    void *ptr;

    make("pool handle=2MiB | virtual");
    ptr = take(made, UNIT);
    GOOD(ccmr_resource_pin(made, ptr, UNIT));
    give_finished(ptr, UNIT);
    check_trim(0, UNIT);
    cr_assert_eq(stats_of(made).reserved_bytes, UNIT);
    cr_assert_eq(leaf_census().pieces, 1u);
    /* It is handed out as ever. */
    cr_assert_eq(take(made, UNIT), ptr);
    check_trim(0, 0);
    give_finished(ptr, UNIT);
    GOOD(ccmr_resource_unpin(made, ptr, UNIT));
    check_trim(UNIT, 0);
}

Test(pool_pin, pins_are_counted)
{
    char *ptr;

    make("pool handle=2MiB | virtual");
    ptr = take(made, 3 * UNIT);
    GOOD(ccmr_resource_pin(made, ptr, 3 * UNIT));
    GOOD(ccmr_resource_pin(made, ptr, 3 * UNIT));
    GOOD(ccmr_resource_pin(made, ptr + UNIT + 4096, 1)); /* the second */
    give_finished(ptr, 3 * UNIT);
    check_trim(0, 3 * UNIT);
    GOOD(ccmr_resource_unpin(made, ptr, 3 * UNIT));
    check_trim(0, 3 * UNIT);
    BAD(ccmr_resource_unpin(made, ptr, UNIT), CCMR_ERROR_INVALID_POINTER);
    BAD(ccmr_resource_unpin(made, ptr + UNIT, UNIT),
        CCMR_ERROR_INVALID_POINTER);
    GOOD(ccmr_resource_unpin(made, ptr, 3 * UNIT));
    BAD(ccmr_resource_unpin(made, ptr, 3 * UNIT), CCMR_ERROR_INVALID_POINTER);
    /* Those beside it go. */
    check_trim(2 * UNIT, UNIT);
    GOOD(ccmr_resource_unpin(made, ptr + UNIT + 4096, 1));
    check_trim(UNIT, 0);
}

/* With the budget used up, a free handle would move to where it is needed. */
Test(pool_pin, a_handle_does_not_move)
{
    char *blocks[4];
    void *ptr = NULL;
    int i;

    make("pool hard=8MiB handle=2MiB | virtual");
    for (i = 0; i < 4; i++) {
        blocks[i] = take(made, UNIT);
    }
    GOOD(ccmr_resource_pin(made, blocks[1], 100));
    give_finished(blocks[1], UNIT);
    give_finished(blocks[3], UNIT);
    BAD(ccmr_resource_allocate(made, 2 * UNIT, 0, LEGACY, &ptr),
        CCMR_ERROR_LIMIT_EXCEEDED);
    cr_assert_eq(ccmr_last_error()->largest_free, UNIT);
    cr_assert_eq(ccmr_last_error()->pinned, UNIT);
    cr_assert_not_null(strstr(ccmr_last_error()->message, "; 2097152 bytes"),
                       "%s", ccmr_last_error()->message);
    /* In its place it serves. */
    cr_assert_eq(take(made, UNIT), blocks[1]);
    give_finished(blocks[1], UNIT);
    GOOD(ccmr_resource_unpin(made, blocks[1], 100));
    ptr = take(made, 2 * UNIT);
    give_finished(ptr, 2 * UNIT);
    give_finished(blocks[0], UNIT);
    give_finished(blocks[2], UNIT);
}

/* By segments, and in another lane, where work uses it: as far as is known. */
Test(pool_pin, an_out_of_memory_tells_what_is_pinned)
{
    ccmr_stream busy = leaf_stream(0);
    char *blocks[3];
    void *ptr = NULL;
    int i;

    make("pool hard=6MiB | device_plain");
    for (i = 0; i < 3; i++) {
        blocks[i] = take(made, UNIT);
    }
    BAD(ccmr_resource_allocate(made, UNIT, 0, LEGACY, &ptr),
        CCMR_ERROR_LIMIT_EXCEEDED);
    cr_assert_eq(ccmr_last_error()->pinned, 0u);
    cr_assert_null(strstr(ccmr_last_error()->message, "pinned"));
    GOOD(ccmr_resource_pin(made, blocks[1], UNIT));
    GOOD(ccmr_resource_pin(made, blocks[2], 1));
    give_finished(blocks[1], UNIT);
    GOOD(ccmr_resource_deallocate(made, blocks[2], UNIT, 0, busy));
    BAD(ccmr_resource_allocate(made, 2 * UNIT, 0, LEGACY, &ptr),
        CCMR_ERROR_LIMIT_EXCEEDED);
    cr_assert_eq(ccmr_last_error()->pinned, 2 * UNIT, "%s",
                 ccmr_last_error()->message);
    GOOD(ccmr_resource_unpin(made, blocks[1], UNIT));
    GOOD(ccmr_resource_unpin(made, blocks[2], 1));
    ptr = take(made, 2 * UNIT);
    give_finished(ptr, 2 * UNIT);
    give_finished(blocks[0], UNIT);
}

/* The others beside it are found, and what is in it is not lost. */
Test(pool_pin, others_move_and_go)
{
    char *blocks[5];
    void *ptr;
    int i;

    make("pool hard=10MiB handle=2MiB | virtual");
    for (i = 0; i < 5; i++) {
        blocks[i] = take(made, UNIT);
    }
    GOOD(ccmr_resource_pin(made, blocks[1], UNIT));
    give_finished(blocks[0], UNIT);
    give_finished(blocks[1], UNIT);
    give_finished(blocks[3], UNIT);
    GOOD(ccmr_resource_pin(made, blocks[2], 1));
    ptr =
        take(made, 2 * UNIT); /* the first two, or the first and the fourth */
    give_finished(ptr, 2 * UNIT);
    give_finished(blocks[2], UNIT);
    check_trim(2 * UNIT, 2 * UNIT);
    give_finished(blocks[4], UNIT);
    GOOD(ccmr_resource_unpin(made, blocks[2], 1));
    check_trim(2 * UNIT, UNIT);
    GOOD(ccmr_resource_unpin(made, blocks[1], UNIT));
    check_trim(UNIT, 0);
}

Test(pool_pin, a_segment_stays)
{
    char *ptr;

    make("logging file=/dev/null | statistics | limiting bytes=1GiB | "
         "pool | device_plain");
    ptr = take(made, 3 * UNIT);
    GOOD(ccmr_resource_pin(made, ptr + 4096, UNIT));
    give_finished(ptr, 3 * UNIT);
    check_trim(0, 3 * UNIT);
    BAD(ccmr_resource_pin(made, ptr, 100 * UNIT), CCMR_ERROR_INVALID_POINTER);
    GOOD(ccmr_resource_unpin(made, ptr + 4096, UNIT));
    check_trim(3 * UNIT, 0);
    BAD(ccmr_resource_pin(made, ptr, UNIT), CCMR_ERROR_INVALID_POINTER);
}

Test(pool_pin, needs_memory_at_the_address)
{
    char *ptr;
    int local;

    make("pool handle=2MiB | virtual");
    BAD(ccmr_resource_pin(made, &local, 1), CCMR_ERROR_INVALID_POINTER);
    ptr = take(made, 2 * UNIT);
    BAD(ccmr_resource_pin(made, ptr, 2 * UNIT + 1),
        CCMR_ERROR_INVALID_POINTER);
    BAD(ccmr_resource_pin(made, ptr + 4 * UNIT, 1),
        CCMR_ERROR_INVALID_POINTER);
    BAD(ccmr_resource_pin(made, ptr, PTRDIFF_MAX), CCMR_ERROR_INVALID_POINTER);
    GOOD(ccmr_resource_pin(made, ptr, 2 * UNIT));
    give_finished(ptr, 2 * UNIT);
    GOOD(ccmr_resource_unpin(made, ptr, 2 * UNIT));
    check_trim(2 * UNIT, 0);
    BAD(ccmr_resource_pin(made, ptr, 1), CCMR_ERROR_INVALID_POINTER);
}

/* Many, so that the table grows; the pool takes them along. */
Test(pool_pin, a_pool_goes_with_its_pins)
{
    char *ptr;
    size_t i;

    make("pool handle=4MiB | virtual");
    ptr = take(made, 4 * UNIT);
    for (i = 0; i < 3000; i++) {
        GOOD(ccmr_resource_pin(made, ptr + i, 4096));
    }
    GOOD(ccmr_resource_audit(made));
    for (i = 0; i < 1000; i++) {
        GOOD(ccmr_resource_unpin(made, ptr + 3 * i, 4096));
    }
    GOOD(ccmr_resource_audit(made));
    give_finished(ptr, 4 * UNIT);
}

/* ---- exports --------------------------------------------------------------------- */

static ccmr_status export(void *ptr, size_t bytes, int *fd,
                          ccmr_export_place *place)
{
    *place = (ccmr_export_place){.size = sizeof(*place)};
    return ccmr_resource_export_block(made, ptr, bytes, CCMR_HANDLE_POSIX_FD,
                                      fd, sizeof(*fd), place);
}

/* Map a handle as another process would. */
static CUdeviceptr map(int fd, size_t bytes,
                       CUmemGenericAllocationHandle *handle)
{
    CUmemAccessDesc access = {
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
        .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUdeviceptr base = 0;

    cr_assert_eq(api.cuMemImportFromShareableHandle(
                     handle, (void *)(intptr_t)fd,
                     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
                 CUDA_SUCCESS);
    cr_assert_eq(CCMR__CU(cuMemAddressReserve)(&base, bytes, 0, 0, 0),
                 CUDA_SUCCESS);
    cr_assert_eq(CCMR__CU(cuMemMap)(base, bytes, 0, *handle, 0), CUDA_SUCCESS);
    cr_assert_eq(CCMR__CU(cuMemSetAccess)(base, bytes, &access, 1),
                 CUDA_SUCCESS);
    return base;
}

static void unmap(CUdeviceptr base, size_t bytes,
                  CUmemGenericAllocationHandle handle)
{
    cr_assert_eq(CCMR__CU(cuMemUnmap)(base, bytes), CUDA_SUCCESS);
    cr_assert_eq(api.cuMemRelease(handle), CUDA_SUCCESS);
    cr_assert_eq(CCMR__CU(cuMemAddressFree)(base, bytes), CUDA_SUCCESS);
}

/* What is written here at a block is there at the offset that was told. */
static void check_shared(void *ptr, int fd, const ccmr_export_place *place,
                         uint32_t word)
{
    CUmemGenericAllocationHandle handle;
    CUdeviceptr base = map(fd, place->handle_bytes, &handle);
    uint32_t read = 0;

    cr_assert_eq(api.cuMemsetD32Async((CUdeviceptr)(uintptr_t)ptr, word, 1,
                                      CCMR_STREAM_LEGACY),
                 CUDA_SUCCESS);
    GOOD(ccmr_stream_synchronize(CCMR_STREAM_LEGACY, 0));
    cr_assert_eq(api.cuMemcpyAsync((CUdeviceptr)(uintptr_t)&read,
                                   base + place->offset, 4,
                                   CCMR_STREAM_LEGACY),
                 CUDA_SUCCESS);
    GOOD(ccmr_stream_synchronize(CCMR_STREAM_LEGACY, 0));
    cr_assert_eq(read, word);
    unmap(base, place->handle_bytes, handle);
}

Test(pool_pin, a_block_is_exported_by_its_handle)
{
    ccmr_export_place place;
    CUcontext popped;
    void *other;
    char *ptr;
    int fd = -1;

    make("limiting bytes=1GiB | pool export=handle handle=4MiB hard=16MiB | "
         "virtual export=posix_fd");
    cr_assert_eq(api.cuCtxPushCurrent(leaf_context(0)), CUDA_SUCCESS);
    other = take(made, 600 * KIB);
    ptr = take(made, 800 * KIB);
    GOOD(export(ptr, 800 * KIB, &fd, &place));
    cr_assert_eq(place.bytes, 800 * KIB);
    cr_assert_geq(place.handle_bytes, place.offset + place.bytes);
    cr_assert_gt(place.offset, 0u);
    check_shared(ptr, fd, &place, 0x12345678);
    /* Freed, it stays the same memory. */
    give_finished(ptr, 800 * KIB);
    give_finished(other, 600 * KIB);
    check_trim(0, place.handle_bytes);
    cr_assert_eq(take(made, 600 * KIB), other);
    check_shared(ptr, fd, &place, 0x9abcdef0);
    give_finished(other, 600 * KIB);
    GOOD(ccmr_resource_unpin(made, ptr, place.bytes));
    check_trim(place.handle_bytes, 0);
    cr_assert_eq(close(fd), 0);
    cr_assert_eq(api.cuCtxPopCurrent(&popped), CUDA_SUCCESS);
}

/* One call for each. */
Test(pool_pin, a_block_of_several_handles)
{
    ccmr_export_place place;
    CUcontext popped;
    size_t done = 0;
    char *ptr;
    int count = 0;

    make("pool export=handle handle=2MiB | virtual export=posix_fd");
    cr_assert_eq(api.cuCtxPushCurrent(leaf_context(0)), CUDA_SUCCESS);
    ptr = take(made, 3 * UNIT - 512);
    while (done < 3 * UNIT - 512) {
        int fd = -1;

        GOOD(export(ptr + done, 3 * UNIT - 512 - done, &fd, &place));
        check_shared(ptr + done, fd, &place, (uint32_t)count);
        cr_assert_eq(close(fd), 0);
        done += place.bytes;
        count++;
    }
    cr_assert_eq(count, 3);
    cr_assert_eq(done, 3 * UNIT - 512);
    GOOD(ccmr_resource_unpin(made, ptr, UNIT));
    GOOD(ccmr_resource_unpin(made, ptr + UNIT, UNIT));
    GOOD(ccmr_resource_unpin(made, ptr + 2 * UNIT, UNIT - 512));
    give_finished(ptr, 3 * UNIT - 512);
    check_trim(3 * UNIT, 0);
    cr_assert_eq(api.cuCtxPopCurrent(&popped), CUDA_SUCCESS);
}

/* A block of `virtual` is all of its handle. */
Test(pool_pin, a_block_of_its_own_handle)
{
    ccmr_export_place place;
    void *ptr;
    int fd = -1;

    make("virtual export=posix_fd");
    ptr = take(made, 3 * MIB);
    GOOD(export(ptr, 3 * MIB, &fd, &place));
    cr_assert_eq(place.offset, 0u);
    cr_assert_eq(place.bytes, 3 * MIB);
    cr_assert_eq(place.handle_bytes, 4 * MIB);
    cr_assert_eq(close(fd), 0);
    give(made, ptr, 3 * MIB);
}

static void refused(const char *text)
{
    ccmr_resource *none = NULL;

    BAD(ccmr_stack_create(text, &none), CCMR_ERROR_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(ccmr_last_error()->message, "export=handle"),
                       "%s", ccmr_last_error()->message);
}

Test(pool_pin, an_export_has_to_be_asked_for)
{
    ccmr_properties properties = {.size = sizeof(properties)};
    ccmr_export_place place;
    void *ptr;
    int fd = -1;

    refused("pool export=handle | device_plain");
    refused("pool export=handle | virtual");
    refused("pool export=handle | limiting bytes=1GiB | virtual "
            "export=posix_fd");
    refused("pool export=handle | pool export=handle | virtual "
            "export=posix_fd");
    make("pool | virtual export=posix_fd");
    GOOD(ccmr_resource_describe(made, &properties));
    cr_assert_eq(properties.handle_kinds, CCMR_HANDLE_NONE);
    cr_assert_str_eq(option_of(made, "export"), "no");
    ptr = take(made, UNIT);
    BAD(export(ptr, UNIT, &fd, &place), CCMR_ERROR_NOT_SUPPORTED);
    cr_assert_not_null(strstr(ccmr_last_error()->message, "export=handle"));
    give(made, ptr, UNIT);
    make("pool export=handle | virtual export=posix_fd");
    GOOD(ccmr_resource_describe(made, &properties));
    cr_assert_eq(properties.handle_kinds, CCMR_HANDLE_POSIX_FD);
    ptr = take(made, UNIT);
    BAD(ccmr_resource_export_handle(made, ptr, CCMR_HANDLE_POSIX_FD, &fd,
                                    sizeof(fd)),
        CCMR_ERROR_NOT_SUPPORTED);
    BAD(export((char *)ptr + UNIT, 1000, &fd, &place),
        CCMR_ERROR_INVALID_POINTER);
    cr_assert_eq(strncmp(ccmr_last_error()->message, "export: ", 8), 0, "%s",
                 ccmr_last_error()->message);
    cr_assert_null(strstr(ccmr_last_error()->message, "live"));
    BAD(ccmr_resource_pin(made, (char *)ptr + UNIT, 1000),
        CCMR_ERROR_INVALID_POINTER);
    cr_assert_eq(strncmp(ccmr_last_error()->message, "pin: ", 5), 0);
    /* What is refused is not pinned. */
    place = (ccmr_export_place){.size = sizeof(place)};
    BAD(ccmr_resource_export_block(made, ptr, UNIT, CCMR_HANDLE_FABRIC, &fd,
                                   sizeof(fd), &place),
        CCMR_ERROR_NOT_SUPPORTED);
    BAD(ccmr_resource_unpin(made, ptr, UNIT), CCMR_ERROR_INVALID_POINTER);
    cr_assert_eq(fd, -1);
    give_finished(ptr, UNIT);
    check_trim(UNIT, 0);
}
