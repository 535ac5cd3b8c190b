/* SPDX-License-Identifier: Apache-2.0 */
/*
 * virtual on the simulated driver, as what a pool builds on: address ranges,
 * and handles that are committed, moved and decommitted.
 */
#include "lib/resource_object.h"
#include "tests/unit/leaf.h"

#define UNIT (2 * MIB)

static const ccmr_sim_table *sim;
static ccmr_resource *source;
static const ccmr_resource_ops *ops;
static void *self;
static ccmr_stream stream;

static void start(void)
{
    sim = leaf_start();
    stream = leaf_stream(0);
    cr_assert_eq(ccmr_virtual_create(0, NULL, &source), CCMR_SUCCESS, "%s",
                 ccmr_last_error()->message);
    ops = &source->ops;
    self = source->self;
}

static void nothing_is_left(void)
{
    ccmr_sim_census census = leaf_census();

    cr_assert_eq(census.pieces, 0u);
    cr_assert_eq(census.ranges, 0u);
    cr_assert_eq(census.mappings, 0u);
}

static void end(void)
{
    cr_assert_eq(ccmr_resource_audit(source), CCMR_SUCCESS, "%s",
                 ccmr_last_error()->message);
    ccmr_resource_release(source);
    nothing_is_left();
    leaf_end();
}

TestSuite(virtual_ranges, .init = start, .fini = end);

static size_t reserved(void)
{
    ccmr_stats stats = {.size = sizeof(stats)};

    cr_assert_eq(ccmr_resource_stats(source, &stats), CCMR_SUCCESS);
    cr_assert_eq(stats.live_bytes, 0u);
    return stats.reserved_bytes;
}

static char *range_of(size_t bytes)
{
    void *base = NULL;

    cr_assert_eq(ops->reserve(self, bytes, &base), CCMR_SUCCESS, "%s",
                 ccmr_last_error()->message);
    cr_assert_eq((uintptr_t)base % UNIT, 0u);
    return base;
}

#define GOOD(call)                                                            \
    cr_assert_eq(call, CCMR_SUCCESS, "%s", ccmr_last_error()->message)
#define REFUSED(call, status, word)                                           \
    do {                                                                      \
        cr_assert_eq(call, CCMR_ERROR_##status, "%s",                         \
                     ccmr_last_error()->message);                             \
        cr_assert_not_null(strstr(ccmr_last_error()->message, word), "%s",    \
                           ccmr_last_error()->message);                       \
        cr_assert_str_eq(ccmr_last_error()->resource, "virtual");             \
    } while (0)

static void fill(void *address, unsigned char value, size_t bytes)
{
    cr_assert_eq(api.cuMemsetD8Async((CUdeviceptr)(uintptr_t)address, value,
                                     bytes, stream),
                 CUDA_SUCCESS);
    cr_assert_eq(api.cuStreamSynchronize(stream), CUDA_SUCCESS);
}

static unsigned char byte_at(const void *address)
{
    const unsigned char *byte = sim->peek((uint64_t)(uintptr_t)address, 1);

    cr_assert_not_null(byte);
    return *byte;
}

Test(virtual_ranges, tells_its_granularity)
{
    ccmr_properties properties = {.size = sizeof(properties)};
    ccmr_resource *limited;

    GOOD(ccmr_resource_describe(source, &properties));
    cr_assert_eq(properties.granularity, UNIT);
    /* Adaptors do not offer ranges. */
    GOOD(ccmr_limiting_create(source, GIB, &limited));
    GOOD(ccmr_resource_describe(limited, &properties));
    cr_assert_eq(properties.granularity, 0u);
    ccmr_resource_release(limited);
}

/* Address space costs no memory, a commit is one handle of its size. */
Test(virtual_ranges, commits_one_handle)
{
    char *base = range_of(GIB);

    cr_assert_eq(reserved(), 0u);
    cr_assert_eq(leaf_census().pieces, 0u);
    GOOD(ops->commit(self, base + 4 * UNIT, 3 * UNIT));
    cr_assert_eq(leaf_census().pieces, 1u);
    cr_assert_eq(leaf_census().piece_bytes, 3 * UNIT);
    cr_assert_eq(reserved(), 3 * UNIT);
    fill(base + 4 * UNIT, 7, 3 * UNIT);
    cr_assert_eq(byte_at(base + 7 * UNIT - 1), 7);
    GOOD(ops->commit(self, base + 7 * UNIT, 512 * MIB));
    cr_assert_eq(leaf_census().pieces, 2u);
    GOOD(ops->decommit(self, base + 4 * UNIT, 3 * UNIT));
    cr_assert_eq(reserved(), 512 * MIB);
    GOOD(ops->decommit(self, base + 7 * UNIT, 512 * MIB));
    GOOD(ops->unreserve(self, base, GIB));
    nothing_is_left();
}

/* A move is a second address; the memory goes with the last one. */
Test(virtual_ranges, moves_by_alias)
{
    char *from = range_of(8 * UNIT);
    char *to = range_of(16 * UNIT);

    GOOD(ops->commit(self, from, 2 * UNIT));
    fill(from, 5, 2 * UNIT);
    GOOD(ops->move(self, from, to + UNIT, 2 * UNIT));
    cr_assert_eq(leaf_census().pieces, 1u);
    cr_assert_eq(leaf_census().mappings, 2u);
    cr_assert_eq(reserved(), 2 * UNIT);
    GOOD(ccmr_resource_audit(source));
    cr_assert_eq(byte_at(to + UNIT), 5);
    fill(to + 3 * UNIT - 1, 6, 1);
    cr_assert_eq(byte_at(from + 2 * UNIT - 1), 6);
    GOOD(ops->decommit(self, from, 2 * UNIT));
    cr_assert_eq(leaf_census().pieces, 1u);
    cr_assert_eq(reserved(), 2 * UNIT);
    cr_assert_eq(byte_at(to + 3 * UNIT - 1), 6);
    /* On from there, and back. */
    GOOD(ops->move(self, to + UNIT, from, 2 * UNIT));
    GOOD(ops->decommit(self, to + UNIT, 2 * UNIT));
    cr_assert_eq(byte_at(from), 5);
    GOOD(ops->decommit(self, from, 2 * UNIT));
    cr_assert_eq(reserved(), 0u);
    GOOD(ops->unreserve(self, from, 8 * UNIT));
    GOOD(ops->unreserve(self, to, 16 * UNIT));
    nothing_is_left();
}

/* Nothing is synchronised or queried, also behind work that is not done. */
Test(virtual_ranges, waits_for_nothing)
{
    char *base = range_of(8 * UNIT);
    hold h;

    GOOD(ops->commit(self, base, UNIT));
    cr_assert_eq(api.cuCtxPushCurrent(leaf_context(0)), CUDA_SUCCESS);
    cr_assert_eq(hold_begin(&h, stream), 0);
    cr_assert_eq(
        api.cuMemsetD8Async((CUdeviceptr)(uintptr_t)base, 9, UNIT, stream),
        CUDA_SUCCESS);
    GOOD(ops->move(self, base, base + 4 * UNIT, UNIT));
    GOOD(ops->commit(self, base + UNIT, UNIT));
    GOOD(ops->decommit(self, base + UNIT, UNIT));
    cr_assert_gt(sim->pending(stream), 0u);
    cr_assert_eq(sim->calls("cuStreamSynchronize"), 0u);
    hold_end(&h);
    cr_assert_eq(api.cuStreamSynchronize(stream), CUDA_SUCCESS);
    GOOD(ops->decommit(self, base, UNIT));
    cr_assert_eq(byte_at(base + 4 * UNIT), 9);
    cr_assert_eq(sim->hazards(), 0u);
    GOOD(ops->decommit(self, base + 4 * UNIT, UNIT));
    GOOD(ops->unreserve(self, base, 8 * UNIT));
}

Test(virtual_ranges, refuses_what_cannot_be)
{
    char *base = range_of(8 * UNIT);
    void *none = &none;

    REFUSED(ops->reserve(self, 0, &none), INVALID_SIZE, "0 bytes");
    REFUSED(ops->reserve(self, UNIT + 4096, &none), INVALID_SIZE,
            "granularity");
    REFUSED(ops->reserve(self, SIZE_MAX - UNIT + 1, &none), INVALID_SIZE,
            "reserve");
    cr_assert_eq(none, &none);
    REFUSED(ops->commit(self, base, 0), INVALID_SIZE, "commit");
    REFUSED(ops->commit(self, base, UNIT / 2), INVALID_SIZE, "granularity");
    REFUSED(ops->commit(self, base + 4096, UNIT), INVALID_POINTER, "units");
    REFUSED(ops->commit(self, NULL, UNIT), INVALID_POINTER, "commit");
    REFUSED(ops->commit(self, (void *)-UNIT, UNIT), INVALID_POINTER, "commit");
    REFUSED(ops->commit(self, base + 8 * UNIT, UNIT), OUT_OF_RANGE, "ranges");
    REFUSED(ops->commit(self, base - UNIT, 2 * UNIT), OUT_OF_RANGE, "ranges");
    REFUSED(ops->commit(self, base + 7 * UNIT, 2 * UNIT), OUT_OF_RANGE,
            "ranges");
    GOOD(ops->commit(self, base + 2 * UNIT, 2 * UNIT));
    REFUSED(ops->commit(self, base + 2 * UNIT, UNIT), ALREADY_EXISTS,
            "already");
    REFUSED(ops->commit(self, base + 3 * UNIT, 2 * UNIT), ALREADY_EXISTS,
            "already");
    REFUSED(ops->commit(self, base, 8 * UNIT), ALREADY_EXISTS, "already");
    REFUSED(ops->decommit(self, base, UNIT), INVALID_POINTER, "nothing");
    REFUSED(ops->decommit(self, base + 3 * UNIT, UNIT), INVALID_POINTER,
            "nothing");
    REFUSED(ops->decommit(self, base + 2 * UNIT, UNIT), INVALID_SIZE, "whole");
    REFUSED(ops->move(self, base + 2 * UNIT, base + 3 * UNIT, 2 * UNIT),
            ALREADY_EXISTS, "already");
    REFUSED(ops->move(self, base + 2 * UNIT, base + 5 * UNIT, UNIT),
            INVALID_SIZE, "move");
    REFUSED(ops->move(self, base + 6 * UNIT, base, 2 * UNIT), INVALID_POINTER,
            "move");
    REFUSED(ops->move(self, base + 2 * UNIT, base + 7 * UNIT, 2 * UNIT),
            OUT_OF_RANGE, "ranges");
    REFUSED(ops->unreserve(self, base, 8 * UNIT), BUSY, "1 handles");
    REFUSED(ops->unreserve(self, base, 7 * UNIT), INVALID_POINTER, "ranges");
    GOOD(ops->decommit(self, base + 2 * UNIT, 2 * UNIT));
    REFUSED(ops->decommit(self, base + 2 * UNIT, 2 * UNIT), INVALID_POINTER,
            "nothing");
    GOOD(ops->unreserve(self, base, 8 * UNIT));
    REFUSED(ops->unreserve(self, base, 8 * UNIT), INVALID_POINTER, "ranges");
}

/* Blocks of the leaf are nobody's range. */
Test(virtual_ranges, leaves_blocks_alone)
{
    void *block;

    GOOD(ccmr_resource_allocate(source, UNIT, 0, stream, &block));
    REFUSED(ops->decommit(self, block, UNIT), INVALID_POINTER, "nothing");
    REFUSED(ops->unreserve(self, block, UNIT), INVALID_POINTER, "ranges");
    REFUSED(ops->commit(self, block, UNIT), OUT_OF_RANGE, "ranges");
    GOOD(ccmr_resource_deallocate(source, block, UNIT, 0, stream));
}

Test(virtual_ranges, says_what_is_full)
{
    char *base = range_of(GIB);
    void *more = NULL;
    const ccmr_error_detail *detail;

    cr_assert_eq(sim->set_memory(0, 100 * MIB), 0);
    GOOD(ops->commit(self, base, 96 * MIB));
    REFUSED(ops->commit(self, base + 96 * MIB, 6 * MIB), OUT_OF_DEVICE_MEMORY,
            "6291456");
    detail = ccmr_last_error();
    cr_assert_eq(detail->requested, 6 * MIB);
    cr_assert_eq(detail->reserved, 96 * MIB);
    cr_assert_str_eq(detail->driver_call, "cuMemCreate");
    GOOD(ops->commit(self, base + 96 * MIB, 4 * MIB));
    REFUSED(ops->reserve(self, (size_t)1 << 50, &more), OUT_OF_DEVICE_MEMORY,
            "address space");
    cr_assert_str_eq(ccmr_last_error()->driver_call, "cuMemAddressReserve");
    GOOD(ops->decommit(self, base, 96 * MIB));
    GOOD(ops->decommit(self, base + 96 * MIB, 4 * MIB));
    GOOD(ops->unreserve(self, base, GIB));
}

/* What a pool forgot goes with the resource. */
Test(virtual_ranges, ends_with_all)
{
    char *base = range_of(GIB);

    GOOD(ops->commit(self, base, 4 * UNIT));
    GOOD(ops->commit(self, base + 4 * UNIT, UNIT));
    GOOD(ops->move(self, base, base + 8 * UNIT, 4 * UNIT));
    (void)range_of(UNIT);
}

/* ---- failing driver calls -------------------------------------------- */

/* A step that goes on whatever fails; what is refused is tried again. */
static ccmr_status again(ccmr_status status, ccmr_status *first)
{
    if (status != CCMR_SUCCESS && *first == CCMR_SUCCESS) {
        *first = status;
        cr_assert_not_null(ccmr_last_error()->driver_call);
    }
    return status;
}

#define AGAIN(call)                                                           \
    while (again(call, &first) != CCMR_SUCCESS) {                             \
    }

static ccmr_status life(void *context)
{
    ccmr_status first = CCMR_SUCCESS;
    void *range = NULL;
    char *base;

    (void)context;
    AGAIN(ops->reserve(self, 8 * UNIT, &range))
    base = range;
    AGAIN(ops->commit(self, base, UNIT))
    AGAIN(ops->commit(self, base + UNIT, 2 * UNIT))
    cr_assert_eq(ccmr_resource_audit(source), CCMR_SUCCESS, "%s",
                 ccmr_last_error()->message);
    AGAIN(ops->move(self, base, base + 5 * UNIT, UNIT))
    fill(base + 5 * UNIT, 3, UNIT);
    cr_assert_eq(byte_at(base), 3);
    AGAIN(ops->decommit(self, base, UNIT))
    AGAIN(ops->decommit(self, base + UNIT, 2 * UNIT))
    cr_assert_eq(ccmr_resource_audit(source), CCMR_SUCCESS, "%s",
                 ccmr_last_error()->message);
    AGAIN(ops->decommit(self, base + 5 * UNIT, UNIT))
    AGAIN(ops->unreserve(self, base, 8 * UNIT))
    /* What was only to be given back may still be there: until somebody
     * looks. */
    while (ccmr_resource_trim(source, 0, NULL) != CCMR_SUCCESS) {
    }
    (void)sim->forget_failures();
    (void)ccmr_resource_trim(source, 0, NULL);
    cr_assert_eq(reserved(), 0u);
    nothing_is_left();
    return first;
}

/* Each driver call of a range's life fails in turn, by every kind of code. */
Test(virtual_ranges, survives_failing_calls)
{
    static const int codes[] = {CUDA_ERROR_OUT_OF_MEMORY,
                                CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_UNKNOWN};
    static const char *const calls[] = {
        "cuMemAddressReserve", "cuMemCreate",     "cuMemMap",
        "cuMemSetAccess",      "cuMemUnmap",      "cuMemRelease",
        "cuMemAddressFree",    "cuCtxPushCurrent"};
    size_t i;
    size_t k;
    uint64_t n;

    for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        for (k = 0; k < sizeof(codes) / sizeof(codes[0]); k++) {
            for (n = 1; n <= 4; n++) {
                cr_assert_eq(sim->fail(calls[i], n, codes[k]), 0);
                (void)life(NULL);
                (void)sim->forget_failures();
                cr_assert_null(leaf_current());
                cr_assert_eq(leaf_mode(), CU_STREAM_CAPTURE_MODE_GLOBAL);
            }
        }
    }
}

/* A handle that the driver will not have back counts as reserved. */
Test(virtual_ranges, keeps_what_is_not_taken_back)
{
    ccmr_trim_result trimmed = {.size = sizeof(trimmed)};
    char *base = range_of(8 * UNIT);

    GOOD(ops->commit(self, base, UNIT));
    cr_assert_eq(sim->fail("cuMemRelease", 1, CUDA_ERROR_UNKNOWN), 0);
    GOOD(ops->decommit(self, base, UNIT));
    cr_assert_eq(reserved(), UNIT);
    GOOD(ccmr_resource_audit(source));
    cr_assert_eq(leaf_census().pieces, 1u);
    GOOD(ccmr_resource_trim(source, 0, &trimmed));
    cr_assert_eq(trimmed.released_bytes, UNIT);
    cr_assert_eq(reserved(), 0u);
    cr_assert_eq(leaf_census().pieces, 0u);
    GOOD(ops->unreserve(self, base, 8 * UNIT));
}

/* A refused unmap leaves everything as it was. */
Test(virtual_ranges, refused_unmap_leaves_the_mapping)
{
    char *base = range_of(8 * UNIT);

    GOOD(ops->commit(self, base, UNIT));
    fill(base, 4, UNIT);
    cr_assert_eq(sim->fail("cuMemUnmap", 1, CUDA_ERROR_UNKNOWN), 0);
    REFUSED(ops->decommit(self, base, UNIT), DRIVER, "cuMemUnmap");
    GOOD(ccmr_resource_audit(source));
    cr_assert_eq(byte_at(base), 4);
    REFUSED(ops->commit(self, base, UNIT), ALREADY_EXISTS, "already");
    GOOD(ops->decommit(self, base, UNIT));
    cr_assert_eq(sim->fail("cuMemAddressFree", 1, CUDA_ERROR_UNKNOWN), 0);
    REFUSED(ops->unreserve(self, base, 8 * UNIT), DRIVER, "cuMemAddressFree");
    GOOD(ops->commit(self, base, UNIT));
    GOOD(ops->decommit(self, base, UNIT));
    GOOD(ops->unreserve(self, base, 8 * UNIT));
}
