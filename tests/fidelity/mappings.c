/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory, its mappings: what may be mapped where, what may be
 * unmapped, and how long a piece lives.
 */
#include "tests/fidelity/facts.h"
#include "tests/fidelity/pieces.h"

#include <stdint.h>

enum { LIMIT_MS = 5000 };

/* ---- mapping ---- */

static void see_map(const char *what, CUdeviceptr address, size_t bytes,
                    size_t offset, CUmemGenericAllocationHandle piece)
{
    CUresult res = drv.cuMemMap(address, bytes, offset, piece, 0);

    fact_result(what, res);
    if (res == CUDA_SUCCESS) {
        drv.cuMemUnmap(address, bytes);
    }
}

/* Documented: address, size and offset are multiples of the granularity, and
 * the offset must be zero for now; observed: a piece is mapped whole. */
static void map(void)
{
    CUmemGenericAllocationHandle piece = make_piece(2 * PAGE_BYTES);
    CUdeviceptr range = make_range(4 * PAGE_BYTES);
    CUdeviceptr plain = 0;

    see_map("whole", range, 2 * PAGE_BYTES, 0, piece);
    see_map("whole_in_the_middle", range + PAGE_BYTES, 2 * PAGE_BYTES, 0,
            piece);
    see_map("upper_half", range, PAGE_BYTES, PAGE_BYTES, piece);
    see_map("lower_half", range, PAGE_BYTES, 0, piece);
    see_map("more_than_there_is", range, 3 * PAGE_BYTES, 0, piece);
    see_map("offset_beyond", range, PAGE_BYTES, 2 * PAGE_BYTES, piece);
    see_map("offset_odd", range, PAGE_BYTES, 4096, piece);
    see_map("zero", range, 0, 0, piece);
    see_map("size_odd", range, PAGE_BYTES + 4096, 0, piece);
    see_map("address_odd", range + 4096, 2 * PAGE_BYTES, 0, piece);
    see_map("beyond_the_range", range + 3 * PAGE_BYTES, 2 * PAGE_BYTES, 0,
            piece);
    see_map("null", 0, 2 * PAGE_BYTES, 0, piece);
    drv.cuMemAlloc(&plain, 2 * PAGE_BYTES);
    see_map("plain_memory", plain, 2 * PAGE_BYTES, 0, piece);
    drv.cuMemFree(plain);
    SEE("flags", cuMemMap(range, 2 * PAGE_BYTES, 0, piece, 1));
    drv.cuMemAddressFree(range, 4 * PAGE_BYTES);
    see_map("not_reserved", range, 2 * PAGE_BYTES, 0, piece);
    drv.cuMemRelease(piece);
}

static void map_null(void)
{
    CUdeviceptr range = make_range(PAGE_BYTES);

    see_map("result", range, PAGE_BYTES, 0, 0);
    drv.cuMemAddressFree(range, PAGE_BYTES);
}

static void map_released(void)
{
    CUmemGenericAllocationHandle piece = make_piece(PAGE_BYTES);
    CUdeviceptr range = make_range(PAGE_BYTES);

    drv.cuMemRelease(piece);
    see_map("result", range, PAGE_BYTES, 0, piece);
    drv.cuMemAddressFree(range, PAGE_BYTES);
}

static void map_over(void)
{
    CUmemGenericAllocationHandle first = make_piece(2 * PAGE_BYTES);
    CUmemGenericAllocationHandle second = make_piece(2 * PAGE_BYTES);
    CUdeviceptr range = make_range(6 * PAGE_BYTES);

    SEE("first",
        cuMemMap(range + 2 * PAGE_BYTES, 2 * PAGE_BYTES, 0, first, 0));
    see_map("same_again", range + 2 * PAGE_BYTES, 2 * PAGE_BYTES, 0, first);
    see_map("another_there", range + 2 * PAGE_BYTES, 2 * PAGE_BYTES, 0,
            second);
    see_map("end_inside", range + PAGE_BYTES, 2 * PAGE_BYTES, 0, second);
    see_map("start_inside", range + 3 * PAGE_BYTES, 2 * PAGE_BYTES, 0, second);
    see_map("before", range, 2 * PAGE_BYTES, 0, second);
    see_map("behind", range + 4 * PAGE_BYTES, 2 * PAGE_BYTES, 0, second);
    SEE("alias",
        cuMemMap(range + 4 * PAGE_BYTES, 2 * PAGE_BYTES, 0, first, 0));
    SEE("unmap", cuMemUnmap(range + 2 * PAGE_BYTES, 2 * PAGE_BYTES));
    SEE("unmap_alias", cuMemUnmap(range + 4 * PAGE_BYTES, 2 * PAGE_BYTES));
    drv.cuMemAddressFree(range, 6 * PAGE_BYTES);
    drv.cuMemRelease(first);
    drv.cuMemRelease(second);
}

/* Two ranges side by side, and a mapping over both. */
static void map_over_two_ranges(void)
{
    CUmemGenericAllocationHandle piece = make_piece(2 * PAGE_BYTES);
    CUdeviceptr range = make_range(8 * PAGE_BYTES);
    CUdeviceptr first = 0;
    CUdeviceptr second = 0;

    drv.cuMemAddressFree(range, 8 * PAGE_BYTES);
    drv.cuMemAddressReserve(&first, PAGE_BYTES, 0, range, 0);
    drv.cuMemAddressReserve(&second, PAGE_BYTES, 0, range + PAGE_BYTES, 0);
    if (first == range && second == range + PAGE_BYTES) {
        see_map("result", range, 2 * PAGE_BYTES, 0, piece);
    } else {
        fact("result", "not side by side");
    }
    drv.cuMemAddressFree(first, PAGE_BYTES);
    drv.cuMemAddressFree(second, PAGE_BYTES);
    drv.cuMemRelease(piece);
}

/* ---- unmapping ---- */

static bool map_two(CUdeviceptr range, CUmemGenericAllocationHandle first,
                    CUmemGenericAllocationHandle second, size_t gap)
{
    CUresult res = drv.cuMemMap(range, 2 * PAGE_BYTES, 0, first, 0);

    if (res == CUDA_SUCCESS) {
        res = drv.cuMemMap(range + 2 * PAGE_BYTES + gap, 2 * PAGE_BYTES, 0,
                           second, 0);
    }
    if (res != CUDA_SUCCESS) {
        fact_result("map_two", res);
    }
    return res == CUDA_SUCCESS;
}

static void unmap_both(CUdeviceptr range, size_t gap)
{
    drv.cuMemUnmap(range, 2 * PAGE_BYTES);
    drv.cuMemUnmap(range + 2 * PAGE_BYTES + gap, 2 * PAGE_BYTES);
}

/* Documented: the range must cover whole mappings; several at once are fine. */
static void unmap(void)
{
    CUmemGenericAllocationHandle first = make_piece(2 * PAGE_BYTES);
    CUmemGenericAllocationHandle second = make_piece(2 * PAGE_BYTES);
    CUdeviceptr range = make_range(8 * PAGE_BYTES);
    CUdeviceptr plain = 0;

    if (!map_two(range, first, second, 0)) {
        return;
    }
    SEE("zero", cuMemUnmap(range, 0));
    SEE("lower_half", cuMemUnmap(range, PAGE_BYTES));
    SEE("upper_half", cuMemUnmap(range + PAGE_BYTES, PAGE_BYTES));
    SEE("size_odd", cuMemUnmap(range, PAGE_BYTES + 4096));
    SEE("address_odd", cuMemUnmap(range + 4096, 2 * PAGE_BYTES));
    SEE("one_and_a_half", cuMemUnmap(range, 3 * PAGE_BYTES));
    SEE("both", cuMemUnmap(range, 4 * PAGE_BYTES));
    SEE("both_again", cuMemUnmap(range, 4 * PAGE_BYTES));
    map_two(range, first, second, 0);
    SEE("first", cuMemUnmap(range, 2 * PAGE_BYTES));
    SEE("first_again", cuMemUnmap(range, 2 * PAGE_BYTES));
    SEE("hole_and_second", cuMemUnmap(range, 4 * PAGE_BYTES));
    SEE("second", cuMemUnmap(range + 2 * PAGE_BYTES, 2 * PAGE_BYTES));
    SEE("never_mapped", cuMemUnmap(range + 6 * PAGE_BYTES, PAGE_BYTES));
    SEE("null", cuMemUnmap(0, PAGE_BYTES));
    drv.cuMemAlloc(&plain, PAGE_BYTES);
    SEE("plain_memory", cuMemUnmap(plain, PAGE_BYTES));
    drv.cuMemFree(plain);
    drv.cuMemAddressFree(range, 8 * PAGE_BYTES);
    SEE("not_reserved", cuMemUnmap(range, 2 * PAGE_BYTES));
    drv.cuMemRelease(first);
    drv.cuMemRelease(second);
}

static void unmap_with_hole(void)
{
    CUmemGenericAllocationHandle first = make_piece(2 * PAGE_BYTES);
    CUmemGenericAllocationHandle second = make_piece(2 * PAGE_BYTES);
    CUdeviceptr range = make_range(8 * PAGE_BYTES);

    if (!map_two(range, first, second, PAGE_BYTES)) {
        return;
    }
    SEE("with_hole", cuMemUnmap(range, 5 * PAGE_BYTES));
    unmap_both(range, PAGE_BYTES);
    map_two(range, first, second, PAGE_BYTES);
    SEE("whole_range", cuMemUnmap(range, 8 * PAGE_BYTES));
    unmap_both(range, PAGE_BYTES);
    drv.cuMemAddressFree(range, 8 * PAGE_BYTES);
    drv.cuMemRelease(first);
    drv.cuMemRelease(second);
}

/* ---- how long memory lives ---- */

/* Documented: until it is neither mapped nor held by any handle. */
static void lifetime(void)
{
    size_t before = available_bytes();
    CUmemGenericAllocationHandle piece = make_piece(BIG_BYTES);
    CUdeviceptr range = make_range(2 * BIG_BYTES);

    see_taken("created", before);
    SEE("map", cuMemMap(range, BIG_BYTES, 0, piece, 0));
    SEE("release", cuMemRelease(piece));
    see_taken("released_while_mapped", before);
    SEE("unmap", cuMemUnmap(range, BIG_BYTES));
    see_taken("unmapped", before);
    piece = make_piece(BIG_BYTES);
    SEE("map_2", cuMemMap(range, BIG_BYTES, 0, piece, 0));
    SEE("unmap_2", cuMemUnmap(range, BIG_BYTES));
    see_taken("unmapped_not_released", before);
    SEE("release_2", cuMemRelease(piece));
    see_taken("both", before);
    drv.cuMemAddressFree(range, 2 * BIG_BYTES);
}

static void lifetime_retained(void)
{
    size_t before = available_bytes();
    CUmemGenericAllocationHandle piece = make_piece(BIG_BYTES);
    CUmemGenericAllocationHandle found = 0;
    CUdeviceptr range = make_range(BIG_BYTES);

    SEE("map", cuMemMap(range, BIG_BYTES, 0, piece, 0));
    SEE("retain",
        cuMemRetainAllocationHandle(&found, (void *)(uintptr_t)range));
    SEE("release", cuMemRelease(piece));
    SEE("unmap", cuMemUnmap(range, BIG_BYTES));
    see_taken("one_handle_left", before);
    SEE("release_retained", cuMemRelease(found));
    see_taken("none_left", before);
    drv.cuMemAddressFree(range, BIG_BYTES);
}

static void lifetime_aliased(void)
{
    size_t before = available_bytes();
    CUmemGenericAllocationHandle piece = make_piece(BIG_BYTES);
    CUdeviceptr range = make_range(2 * BIG_BYTES);

    SEE("map", cuMemMap(range, BIG_BYTES, 0, piece, 0));
    SEE("map_again", cuMemMap(range + BIG_BYTES, BIG_BYTES, 0, piece, 0));
    SEE("release", cuMemRelease(piece));
    SEE("unmap", cuMemUnmap(range, BIG_BYTES));
    see_taken("one_mapping_left", before);
    SEE("unmap_again", cuMemUnmap(range + BIG_BYTES, BIG_BYTES));
    see_taken("none_left", before);
    drv.cuMemAddressFree(range, 2 * BIG_BYTES);
}

/* A piece needs no context: does it outlive one? Plain memory does not. */
static void lifetime_and_context(void)
{
    CUcontext context = NULL;
    CUcontext primary = NULL;
    struct mapping mapping;
    CUresult res;

    drv.cuCtxGetCurrent(&primary);
    res = drv.cuCtxCreate(&context, NULL, 0, 0);
    if (res != CUDA_SUCCESS || !mapping_make(&mapping, PAGE_BYTES)) {
        fact_result("context", res);
        return;
    }
    fact_result("fill", fill_bytes(mapping.address, 5, PAGE_BYTES));
    SEE("destroy", cuCtxDestroy(context));
    drv.cuCtxSetCurrent(primary);
    fact("bytes", "%s", compare_bytes(mapping.address, 5, PAGE_BYTES));
    SEE("unmap", cuMemUnmap(mapping.address, PAGE_BYTES));
    SEE("free", cuMemAddressFree(mapping.address, PAGE_BYTES));
    SEE("release", cuMemRelease(mapping.piece));
}

static const struct fidelity_case mapping_cases[] = {
    FIDELITY_CASE(map),
    FIDELITY_CASE(map_over),
    FIDELITY_CASE(map_over_two_ranges),
    FIDELITY_CASE(unmap),
    FIDELITY_CASE(unmap_with_hole),
    FIDELITY_CASE(lifetime),
    FIDELITY_CASE(lifetime_retained),
    FIDELITY_CASE(lifetime_aliased),
    FIDELITY_CASE(lifetime_and_context),
    FIDELITY_CASE(map_null),
    FIDELITY_CASE(map_released),
    FIDELITY_END,
};

const struct fidelity_topic mapping_topic = {
    "mapping",
    mapping_cases,
    NULL,
    NULL,
    false,
    LIMIT_MS,
    "Documented: a piece lives while it is mapped or held, and is mapped "
    "whole. What a map or unmap may cut was measured.",
};
