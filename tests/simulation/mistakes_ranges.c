/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An allocator over address ranges whose blocks can grow: field cases P1 to
 * P5. A block is a list of parts, each a range with one piece of memory:
 *
 *     block   | part: range, piece | part: range, piece |   one after the other
 */
#include <string.h>

#include "tests/simulation/mistakes.h"

#define PAGE (2 * MIB)
#define PARTS 4

struct part {
    CUdeviceptr base;
    size_t bytes; /* of the range and of the piece */
};

struct block {
    struct part parts[PARTS];
    unsigned count;
    size_t asked;
};

/* The mistakes. */
static bool keeps_handle, unmaps_at_once, one_range, asked_size, loses_access;

static size_t rounded(size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

static CUresult let_use(CUdeviceptr address, size_t bytes)
{
    CUmemAccessDesc desc;

    memset(&desc, 0, sizeof desc);
    desc.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    desc.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return drv.cuMemSetAccess(address, bytes, &desc, 1);
}

/* Memory for a range; none of it stays on failure. */
static CUresult fill_range(const struct part *part)
{
    CUmemGenericAllocationHandle piece = 0;
    CUmemAllocationProp prop;
    CUresult res;

    memset(&prop, 0, sizeof prop);
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    res = drv.cuMemCreate(&piece, part->bytes, &prop, 0);
    if (res != CUDA_SUCCESS) {
        return res;
    }
    res = drv.cuMemMap(part->base, part->bytes, 0, piece, 0);
    if (!keeps_handle) { /* the mapping holds it */
        MUST(drv.cuMemRelease(piece));
    }
    if (res == CUDA_SUCCESS) {
        res = let_use(part->base, part->bytes);
        if (res != CUDA_SUCCESS) {
            MUST(drv.cuMemUnmap(part->base, part->bytes));
        }
    }
    return res;
}

/* At that address, or not at all. */
static CUresult add_part(struct block *block, CUdeviceptr at, size_t bytes)
{
    struct part part = {0, bytes};
    CUresult res;

    res = drv.cuMemAddressReserve(&part.base, bytes, 0, at, 0);
    if (res != CUDA_SUCCESS) {
        return res;
    }
    if (at != 0 && part.base != at) {
        res = CUDA_ERROR_INVALID_ADDRESS_SPACE;
    } else {
        res = fill_range(&part);
    }
    if (res != CUDA_SUCCESS) {
        MUST(drv.cuMemAddressFree(part.base, bytes));
        return res;
    }
    if (one_range && block->count > 0) {
        block->parts[0].bytes += bytes;
    } else {
        block->parts[block->count++] = part;
    }
    return CUDA_SUCCESS;
}

static CUresult block_make(struct block *block, size_t bytes)
{
    memset(block, 0, sizeof *block);
    block->asked = bytes;
    return add_part(block, 0, rounded(bytes));
}

/* What goes wrong here nobody looks at, as in a destructor. */
static void block_free(struct block *block, CUstream stream)
{
    unsigned i;

    if (!unmaps_at_once) {
        MUST(drv.cuStreamSynchronize(stream));
    }
    for (i = 0; i < block->count; i++) {
        struct part *part = &block->parts[i];
        size_t bytes = asked_size ? block->asked : part->bytes;
        CUmemGenericAllocationHandle piece = 0;

        if (keeps_handle) {
            MUST(drv.cuMemRetainAllocationHandle(
                &piece, (void *)(uintptr_t)part->base));
        }
        if (drv.cuMemUnmap(part->base, bytes) == CUDA_SUCCESS) {
            (void)drv.cuMemAddressFree(part->base, bytes);
        }
        if (keeps_handle) {
            MUST(drv.cuMemRelease(piece));
        }
    }
    block->count = 0;
}

static CUdeviceptr end_of(const struct block *block)
{
    const struct part *last = &block->parts[block->count - 1];

    return last->base + last->bytes;
}

/* ---- programs ------------------------------------------------------------------ */

static void handles(bool wrong)
{
    CUstream stream = new_stream();
    struct block block;
    int i;

    keeps_handle = wrong;
    for (i = 0; i < 8; i++) {
        MUST(block_make(&block, PAGE));
        MUST(drv.cuMemsetD8Async(block.parts[0].base, 1, PAGE, stream));
        block_free(&block, stream);
    }
    MUST(drv.cuStreamDestroy(stream));
}

static void in_flight(bool wrong)
{
    CUstream stream = new_stream();
    struct block block;

    unmaps_at_once = wrong;
    MUST(block_make(&block, PAGE));
    MUST(drv.cuMemsetD8Async(block.parts[0].base, 1, PAGE, stream));
    block_free(&block, stream);
    MUST(drv.cuStreamDestroy(stream));
}

/* By a byte more than a page, where the next range is free. */
static void grown(bool wrong)
{
    CUstream stream = new_stream();
    struct block block;

    one_range = wrong;
    MUST(block_make(&block, PAGE));
    MUST(drv.cuMemsetD8Async(block.parts[0].base, 3, PAGE, stream));
    if (add_part(&block, end_of(&block), rounded(PAGE + 1)) == CUDA_SUCCESS) {
        block.asked += PAGE + 1;
        MUST(drv.cuMemsetD8Async(block.parts[0].base + PAGE, 3, PAGE + 1,
                                 stream));
    } else {
        found(CHECK_CRASH, "the next range is not free");
    }
    MUST(drv.cuStreamSynchronize(stream));
    holds(block.parts[0].base, block.asked, 3);
    block_free(&block, stream);
    MUST(drv.cuStreamDestroy(stream));
}

static void odd_size(bool wrong)
{
    CUstream stream = new_stream();
    struct block block;

    asked_size = wrong;
    MUST(block_make(&block, PAGE + 1));
    block_free(&block, stream);
    MUST(drv.cuStreamDestroy(stream));
}

/* Move the block into a larger range; on failure it is where it was. */
static CUresult move_and_grow(struct block *block, size_t more)
{
    struct part *old = &block->parts[0];
    struct part next = {0, old->bytes + more};
    CUmemGenericAllocationHandle piece = 0;
    CUresult res;

    MUST(
        drv.cuMemRetainAllocationHandle(&piece, (void *)(uintptr_t)old->base));
    MUST(drv.cuMemAddressReserve(&next.base, next.bytes, 0, 0, 0));
    MUST(drv.cuMemUnmap(old->base, old->bytes));
    MUST(drv.cuMemMap(next.base, old->bytes, 0, piece, 0));
    res = let_use(next.base, old->bytes);
    if (res != CUDA_SUCCESS) {
        MUST(drv.cuMemUnmap(next.base, old->bytes));
        MUST(drv.cuMemMap(old->base, old->bytes, 0, piece, 0));
        if (!loses_access) {
            MUST(let_use(old->base, old->bytes));
        }
        MUST(drv.cuMemAddressFree(next.base, next.bytes));
    }
    MUST(drv.cuMemRelease(piece));
    return res;
}

static void failed_growth(bool wrong)
{
    CUstream stream = new_stream();
    struct block block;

    loses_access = wrong;
    MUST(block_make(&block, PAGE));
    MUST(drv.cuMemsetD8Async(block.parts[0].base, 5, PAGE, stream));
    MUST(drv.cuStreamSynchronize(stream));
    (void)sim->fail("cuMemSetAccess", 1, CUDA_ERROR_OUT_OF_MEMORY);
    if (move_and_grow(&block, PAGE) == CUDA_SUCCESS) {
        found(CHECK_CRASH, "nothing failed");
    }
    holds(block.parts[0].base, PAGE, 5);
    block_free(&block, stream);
    MUST(drv.cuStreamDestroy(stream));
}

/* Address space for all there may ever be: as much as is to be had. */
static CUresult reserve_much(CUdeviceptr *base, size_t *bytes, bool fixed)
{
    CUresult res;

    for (*bytes = 32 * GIB;; *bytes /= 2) {
        res = drv.cuMemAddressReserve(base, *bytes, 0, 0, 0);
        if (res == CUDA_SUCCESS || fixed || *bytes <= PAGE) {
            return res;
        }
    }
}

static void small_address_space(bool wrong)
{
    CUdeviceptr base = 0;
    size_t bytes;
    struct part part;

    (void)sim->fail("cuMemAddressReserve", 1, CUDA_ERROR_OUT_OF_MEMORY);
    MUST(reserve_much(&base, &bytes, wrong));
    part = (struct part){base, PAGE};
    MUST(fill_range(&part));
    MUST(drv.cuMemsetD8(base, 7, PAGE));
    holds(base, PAGE, 7);
    MUST(drv.cuMemUnmap(base, PAGE));
    MUST(drv.cuMemAddressFree(base, bytes));
}

const struct mistake mistakes_ranges[] = {
    {"handles", "P1", "the handle of the creation is never released", handles,
     CHECK_LEFT},
    {"in flight", "P2", "memory is unmapped while work uses it", in_flight,
     CHECK_ORDER},
    {"one range", "P3", "a grown block is freed as if it were one range",
     grown, CHECK_LEFT},
    {"odd size", "P3", "the size is kept as asked for, not as mapped",
     odd_size, CHECK_LEFT},
    {"failed growth", "P4", "what is undone has no access afterwards",
     failed_growth, CHECK_STATUS},
    {"address space", "P5", "a fixed range is reserved, or nothing works",
     small_address_space, CHECK_STATUS},
    {NULL, NULL, NULL, NULL, CHECK_NONE},
};
