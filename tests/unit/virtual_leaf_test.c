/* SPDX-License-Identifier: Apache-2.0 */
/*
 * virtual on the simulated driver, as a leaf: blocks, and what they take.
 */
#include "tests/unit/leaf.h"

#define UNIT (2 * MIB)

static const ccmr_sim_table *sim;
static ccmr_resource *memory; /* of device 1 */
static ccmr_stream stream;    /* of device 1 */

static void start(void)
{
    sim = leaf_start();
    stream = leaf_stream(1);
    cr_assert_eq(ccmr_virtual_create(1, NULL, &memory), CCMR_SUCCESS, "%s",
                 ccmr_last_error()->message);
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
    cr_assert_eq(ccmr_resource_audit(memory), CCMR_SUCCESS, "%s",
                 ccmr_last_error()->message);
    ccmr_resource_release(memory);
    nothing_is_left();
    leaf_end();
}

TestSuite(virtual_leaf, .init = start, .fini = end);

#define GOOD(call)                                                            \
    cr_assert_eq(call, CCMR_SUCCESS, "%s", ccmr_last_error()->message)
#define REFUSED(call, status, word)                                           \
    do {                                                                      \
        cr_assert_eq(call, CCMR_ERROR_##status, "%s",                         \
                     ccmr_last_error()->message);                             \
        cr_assert_not_null(strstr(ccmr_last_error()->message, word), "%s",    \
                           ccmr_last_error()->message);                       \
    } while (0)

/* Another resource than the suite's; on device 0. */
static ccmr_resource *made(const char *stack)
{
    ccmr_resource *resource = NULL;

    cr_assert_eq(ccmr_stack_create(stack, &resource), CCMR_SUCCESS, "%s",
                 ccmr_last_error()->message);
    return resource;
}

static void *taken(ccmr_resource *resource, size_t bytes, ccmr_stream on)
{
    void *ptr = NULL;

    cr_assert_eq(ccmr_resource_allocate(resource, bytes, 0, on, &ptr),
                 CCMR_SUCCESS, "%s", ccmr_last_error()->message);
    return ptr;
}

static ccmr_stats figures(ccmr_resource *resource)
{
    ccmr_stats stats = {.size = sizeof(stats)};

    cr_assert_eq(ccmr_resource_stats(resource, &stats), CCMR_SUCCESS);
    return stats;
}

static void fill(void *ptr, unsigned char value, size_t bytes)
{
    cr_assert_eq(
        api.cuMemsetD8Async((CUdeviceptr)(uintptr_t)ptr, value, bytes, stream),
        CUDA_SUCCESS);
    cr_assert_eq(api.cuStreamSynchronize(stream), CUDA_SUCCESS);
}

static unsigned char byte_at(const void *ptr)
{
    const unsigned char *byte = sim->peek((uint64_t)(uintptr_t)ptr, 1);

    cr_assert_not_null(byte);
    return *byte;
}

/* Whole units, in handles of 64 MiB and one for the rest. */
Test(virtual_leaf, takes_whole_units)
{
    static const struct {
        size_t bytes;
        size_t reserved;
        uint64_t pieces;
    } cases[] = {
        {1, UNIT, 1},
        {UNIT, UNIT, 1},
        {UNIT + 1, 2 * UNIT, 1},
        {64 * MIB, 64 * MIB, 1},
        {100 * MIB - 5, 100 * MIB, 2},
        {GIB, GIB, 16},
    };
    size_t peak = 0;
    size_t i;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        void *ptr = taken(memory, cases[i].bytes, stream);

        cr_assert_eq((uintptr_t)ptr % UNIT, 0u);
        cr_assert_eq(figures(memory).live_bytes, cases[i].bytes);
        cr_assert_eq(figures(memory).reserved_bytes, cases[i].reserved);
        cr_assert_eq(leaf_census().piece_bytes, cases[i].reserved);
        cr_assert_eq(leaf_census().pieces, cases[i].pieces);
        fill(ptr, 1, cases[i].bytes);
        GOOD(ccmr_resource_deallocate(memory, ptr, cases[i].bytes, 0, stream));
        peak = cases[i].reserved > peak ? cases[i].reserved : peak;
        cr_assert_eq(figures(memory).peak_reserved_bytes, peak);
        cr_assert_eq(figures(memory).reserved_bytes, 0u);
        nothing_is_left();
    }
}

/* P1: nothing is retained, however often. */
Test(virtual_leaf, retains_nothing)
{
    void *blocks[64];
    size_t i;

    for (i = 0; i < 64; i++) {
        blocks[i] = taken(memory, 64 * MIB, stream);
    }
    cr_assert_eq(leaf_census().piece_bytes, 4 * GIB);
    for (i = 0; i < 64; i++) {
        GOOD(ccmr_resource_deallocate(memory, blocks[i ^ 21], 64 * MIB, 0,
                                      stream));
    }
    nothing_is_left();
}

Test(virtual_leaf, aligns_by_placement)
{
    /* What comes next would lie at odd units. */
    void *odd = taken(memory, UNIT, stream);
    size_t alignment;
    void *ptr;

    for (alignment = 1; alignment <= GIB; alignment *= 4) {
        GOOD(ccmr_resource_allocate(memory, 3000, alignment, stream, &ptr));
        cr_assert_eq((uintptr_t)ptr % alignment, 0u);
        cr_assert_eq(figures(memory).reserved_bytes, 2 * UNIT);
        GOOD(ccmr_resource_deallocate(memory, ptr, 3000, alignment, stream));
    }
    REFUSED(ccmr_resource_allocate(memory, 3000, 2 * GIB, stream, &ptr),
            INVALID_ALIGNMENT, "2147483648");
    GOOD(ccmr_resource_deallocate(memory, odd, UNIT, 0, stream));
}

/* P2: a free waits for its stream, and for no other. */
Test(virtual_leaf, waits_for_its_stream)
{
    ccmr_stream other = leaf_stream(1);
    void *first = taken(memory, MIB, stream);
    void *second = taken(memory, MIB, stream);
    hold h;

    cr_assert_eq(api.cuCtxPushCurrent(leaf_context(1)), CUDA_SUCCESS);
    cr_assert_eq(hold_begin(&h, stream), 0);
    cr_assert_eq(
        api.cuMemsetD8Async((CUdeviceptr)(uintptr_t)first, 3, MIB, stream),
        CUDA_SUCCESS);
    GOOD(ccmr_resource_deallocate(memory, second, MIB, 0, other));
    second = taken(memory, MIB, other);
    GOOD(ccmr_resource_deallocate(memory, second, MIB, 0, CCMR_STREAM_READY));
    cr_assert_gt(sim->pending(stream), 0u);
    hold_end_after(&h, 20);
    GOOD(ccmr_resource_deallocate(memory, first, MIB, 0, stream));
    cr_assert_eq(sim->pending(stream), 0u);
    hold_end(&h);
    cr_assert_eq(sim->hazards(), 0u);
}

/* E1: acts on its own device whatever is current, and changes nothing. */
Test(virtual_leaf, acts_on_its_device)
{
    CUcontext zero = leaf_context(0);
    void *ptr = taken(memory, 1000, CCMR_STREAM_LEGACY);

    cr_assert_null(leaf_current());
    cr_assert_eq(api.cuCtxSetCurrent(zero), CUDA_SUCCESS);
    GOOD(ccmr_resource_deallocate(memory, ptr, 1000, 0,
                                  CCMR_STREAM_PER_THREAD));
    cr_assert_eq(leaf_current(), zero);
    REFUSED(ccmr_resource_allocate(memory, 1000, 0, leaf_stream(0), &ptr),
            WRONG_DEVICE, "device");
    nothing_is_left();
}

Test(virtual_leaf, refuses_captures)
{
    ccmr_stream other = leaf_stream(1);
    void *block = taken(memory, MIB, stream);
    CUgraph graph;
    void *ptr;

    cr_assert_eq(
        api.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL),
        CUDA_SUCCESS);
    cr_assert_eq(ccmr_resource_allocate(memory, MIB, 0, stream, &ptr),
                 CCMR_ERROR_CAPTURING);
    cr_assert_eq(ccmr_resource_grow(memory, block, MIB, UNIT, stream),
                 CCMR_ERROR_CAPTURING);
    cr_assert_eq(ccmr_resource_deallocate(memory, block, MIB, 0, stream),
                 CCMR_ERROR_CAPTURING);
    cr_assert_eq(sim->calls("cuMemUnmap"), 0u);
    /* Other streams are served, and the capture is as it was. */
    ptr = taken(memory, 3 * UNIT, other);
    GOOD(ccmr_resource_set_access(memory, 0, 1));
    GOOD(ccmr_resource_deallocate(memory, ptr, 3 * UNIT, 0, other));
    GOOD(ccmr_resource_deallocate(memory, block, MIB, 0, other));
    cr_assert_eq(api.cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    cr_assert_eq(api.cuGraphDestroy(graph), CUDA_SUCCESS);
}

Test(virtual_leaf, refuses_what_is_no_block)
{
    char *block = taken(memory, MIB, stream);
    uint64_t waits;

    waits = sim->calls("cuStreamSynchronize");
    REFUSED(ccmr_resource_deallocate(memory, block + 256, MIB, 0, stream),
            INVALID_POINTER, "live block");
    REFUSED(ccmr_resource_deallocate(memory, block + UNIT, MIB, 0, stream),
            INVALID_POINTER, "live block");
    REFUSED(ccmr_resource_deallocate(memory, block, MIB + 1, 0, stream),
            INVALID_SIZE, "1048576");
    cr_assert_eq(sim->calls("cuStreamSynchronize"), waits);
    cr_assert_eq(sim->fail("cuMemUnmap", 1, CUDA_ERROR_NOT_PERMITTED), 0);
    cr_assert_eq(ccmr_resource_deallocate(memory, block, MIB, 0, stream),
                 CCMR_ERROR_NOT_PERMITTED);
    cr_assert_str_eq(ccmr_last_error()->driver_call, "cuMemUnmap");
    cr_assert_eq(figures(memory).live_bytes, MIB);
    cr_assert_eq(figures(memory).reserved_bytes, UNIT);
    GOOD(ccmr_resource_audit(memory));
    fill(block, 1, MIB);
    GOOD(ccmr_resource_deallocate(memory, block, MIB, 0, stream));
    REFUSED(ccmr_resource_deallocate(memory, block, MIB, 0, stream),
            INVALID_POINTER, "live block");
}

/* What is not one handle's worth is undone when the second is refused. */
Test(virtual_leaf, says_what_is_full)
{
    const ccmr_error_detail *detail;
    void *kept = taken(memory, 10 * MIB, stream);
    void *ptr = NULL;

    cr_assert_eq(sim->set_memory(1, 100 * MIB), 0);
    REFUSED(ccmr_resource_allocate(memory, 128 * MIB, 0, stream, &ptr),
            OUT_OF_DEVICE_MEMORY, "67108864 bytes");
    detail = ccmr_last_error();
    cr_assert_str_eq(detail->driver_call, "cuMemCreate");
    cr_assert_eq(detail->device, 1);
    cr_assert_eq(detail->reserved, 74 * MIB);
    cr_assert_null(ptr);
    cr_assert_eq(figures(memory).reserved_bytes, 10 * MIB);
    cr_assert_eq(leaf_census().ranges, 1u);
    /* More than there is, is not even tried. */
    REFUSED(ccmr_resource_allocate(memory, (size_t)1 << 50, 0, stream, &ptr),
            OUT_OF_DEVICE_MEMORY, "in all");
    REFUSED(ccmr_resource_allocate(memory, PTRDIFF_MAX, 0, stream, &ptr),
            OUT_OF_DEVICE_MEMORY, "in all");
    GOOD(ccmr_resource_deallocate(memory, kept, 10 * MIB, 0, stream));
}

/* P5: more address space than there is; physical memory is not to blame. */
Test(virtual_leaf, names_the_address_space)
{
    ccmr_resource *wide = made("virtual device=0 room=100TiB");
    void *ptr;

    REFUSED(ccmr_resource_allocate(wide, MIB, 0, CCMR_STREAM_LEGACY, &ptr),
            OUT_OF_DEVICE_MEMORY, "address space");
    cr_assert_str_eq(ccmr_last_error()->driver_call, "cuMemAddressReserve");
    ccmr_resource_release(wide);
}

/* ---- grow ------------------------------------------------------------ */

/* P3: by a byte, a unit, a unit and a byte; one free gives all back. */
Test(virtual_leaf, grows_in_place)
{
    ccmr_resource *room = made("virtual device=1 room=16MiB handle=4MiB");
    char *ptr = taken(room, UNIT - 1, stream);
    uint64_t calls;

    fill(ptr, 7, UNIT - 1);
    calls = sim->calls("cuMemMap");
    GOOD(ccmr_resource_grow(room, ptr, UNIT - 1, UNIT, stream));
    cr_assert_eq(sim->calls("cuMemMap"), calls);
    cr_assert_eq(figures(room).live_bytes, UNIT);
    cr_assert_eq(figures(room).reserved_bytes, UNIT);
    GOOD(ccmr_resource_grow(room, ptr, UNIT, 2 * UNIT, stream));
    GOOD(ccmr_resource_grow(room, ptr, 2 * UNIT, 3 * UNIT + 1, stream));
    cr_assert_eq(figures(room).reserved_bytes, 4 * UNIT);
    GOOD(ccmr_resource_grow(room, ptr, 3 * UNIT + 1, 9 * UNIT, stream));
    cr_assert_eq(leaf_census().pieces, 6u); /* 2, 2, 4 and 4 + 4 + 2 MiB */
    GOOD(ccmr_resource_audit(room));
    fill(ptr + UNIT, 8, 8 * UNIT);
    cr_assert_eq(byte_at(ptr), 7);
    cr_assert_eq(byte_at(ptr + 9 * UNIT - 1), 8);
    REFUSED(ccmr_resource_grow(room, ptr, 9 * UNIT, 9 * UNIT + 1, stream),
            OUT_OF_RANGE, "room for 18874368");
    REFUSED(ccmr_resource_grow(room, ptr, 8 * UNIT, 9 * UNIT, stream),
            INVALID_SIZE, "not 16777216");
    REFUSED(ccmr_resource_grow(room, ptr + UNIT, 1, 2, stream),
            INVALID_POINTER, "live block");
    REFUSED(ccmr_resource_deallocate(room, ptr, UNIT, 0, stream), INVALID_SIZE,
            "not 2097152");
    GOOD(ccmr_resource_deallocate(room, ptr, 9 * UNIT, 0, stream));
    cr_assert_eq(figures(room).live_bytes, 0u);
    nothing_is_left();
    /* Released, it grows no more, but is freed. */
    ptr = taken(room, UNIT, stream);
    ccmr_resource_release(room);
    REFUSED(ccmr_resource_grow(room, ptr, UNIT, 2 * UNIT, stream), RELEASED,
            "released");
    GOOD(ccmr_resource_deallocate(room, ptr, UNIT, 0, stream));
    nothing_is_left();
}

/* P4: whatever fails, the old block is whole, with its rights. */
Test(virtual_leaf, grow_is_undone)
{
    static const char *const calls[] = {"cuMemCreate", "cuMemMap",
                                        "cuMemSetAccess", "cuCtxPushCurrent",
                                        "cuStreamIsCapturing"};
    ccmr_resource *room = made("virtual device=1 room=64MiB handle=4MiB");
    char *ptr = taken(room, UNIT, stream);
    size_t i;
    uint64_t n;

    fill(ptr, 9, UNIT);
    for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        for (n = 1; n <= 3; n++) {
            cr_assert_eq(sim->fail(calls[i], n, CUDA_ERROR_UNKNOWN), 0);
            if (ccmr_resource_grow(room, ptr, UNIT, 7 * UNIT, stream) ==
                CCMR_SUCCESS) {
                /* There are fewer such calls. */
                cr_assert_eq(sim->forget_failures(), 1u);
                GOOD(ccmr_resource_deallocate(room, ptr, 7 * UNIT, 0, stream));
                ptr = taken(room, UNIT, stream);
                fill(ptr, 9, UNIT);
                continue;
            }
            cr_assert_eq(sim->forget_failures(), 0u);
            cr_assert_eq(leaf_census().pieces, 1u);
            cr_assert_eq(leaf_census().mappings, 1u);
            GOOD(ccmr_resource_audit(room));
            cr_assert_eq(byte_at(ptr + UNIT - 1), 9);
            fill(ptr, 9, UNIT);
        }
    }
    GOOD(ccmr_resource_deallocate(room, ptr, UNIT, 0, stream));
    ccmr_resource_release(room);
    nothing_is_left();
}

/* ---- rights ---------------------------------------------------------- */

static unsigned long long rights(int device, const void *ptr)
{
    const CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE,
                                    .id = device};
    unsigned long long flags = 99;

    cr_assert_eq(
        api.cuMemGetAccess(&flags, &location, (CUdeviceptr)(uintptr_t)ptr),
        CUDA_SUCCESS);
    return flags;
}

#define ALL ((unsigned long long)CU_MEM_ACCESS_FLAGS_PROT_READWRITE)

Test(virtual_leaf, opens_to_other_devices)
{
    ccmr_resource *room = made("virtual device=1 room=64MiB");
    char *early = taken(room, UNIT, stream);
    char *late;

    cr_assert_eq(rights(1, early), ALL);
    cr_assert_eq(rights(0, early), 0u);
    GOOD(ccmr_resource_set_access(room, 0, 1));
    GOOD(ccmr_resource_set_access(room, 0, 1));
    GOOD(ccmr_resource_set_access(room, 1, 1));
    late = taken(room, 100 * MIB, stream);
    GOOD(ccmr_resource_grow(room, early, UNIT, 2 * UNIT, stream));
    cr_assert_eq(rights(0, early), ALL);
    cr_assert_eq(rights(0, early + UNIT), ALL);
    cr_assert_eq(rights(0, late + 99 * MIB), ALL);
    cr_assert_eq(rights(1, late), ALL);
    GOOD(ccmr_resource_set_access(room, 0, 0));
    cr_assert_eq(rights(0, early + UNIT), 0u);
    cr_assert_eq(rights(0, late), 0u);
    cr_assert_eq(rights(1, late), ALL);
    REFUSED(ccmr_resource_set_access(room, 1, 0), INVALID_ARGUMENT, "own");
    REFUSED(ccmr_resource_set_access(room, 2, 1), NO_DEVICE, "2");
    cr_assert_eq(sim->set_peers(0, 1, 0), 0);
    REFUSED(ccmr_resource_set_access(room, 0, 1), NOT_SUPPORTED, "reach");
    GOOD(ccmr_resource_deallocate(room, early, 2 * UNIT, 0, stream));
    GOOD(ccmr_resource_deallocate(room, late, 100 * MIB, 0, stream));
    ccmr_resource_release(room);
}

/* All memory or none: of blocks and of what is in ranges. */
Test(virtual_leaf, access_is_undone)
{
    char *blocks[3];
    int i;
    int n;

    for (i = 0; i < 3; i++) {
        blocks[i] = taken(memory, UNIT, stream);
    }
    for (n = 1; n <= 3; n++) {
        cr_assert_eq(
            sim->fail("cuMemSetAccess", (uint64_t)n, CUDA_ERROR_UNKNOWN), 0);
        REFUSED(ccmr_resource_set_access(memory, 0, 1), DRIVER,
                "cuMemSetAccess");
        for (i = 0; i < 3; i++) {
            cr_assert_eq(rights(0, blocks[i]), 0u, "block %d", i);
        }
    }
    GOOD(ccmr_resource_set_access(memory, 0, 1));
    cr_assert_eq(sim->fail("cuMemSetAccess", 2, CUDA_ERROR_UNKNOWN), 0);
    REFUSED(ccmr_resource_set_access(memory, 0, 0), DRIVER, "cuMemSetAccess");
    for (i = 0; i < 3; i++) {
        cr_assert_eq(rights(0, blocks[i]), ALL, "block %d", i);
        GOOD(ccmr_resource_deallocate(memory, blocks[i], UNIT, 0, stream));
    }
}

/* ---- the rest -------------------------------------------------------- */

static ccmr_status once(void *context)
{
    ccmr_status status;
    ccmr_status freed;
    void *ptr;

    status = ccmr_resource_allocate(memory, 70 * MIB, 0, context, &ptr);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    freed = ccmr_resource_deallocate(memory, ptr, 70 * MIB, 0, context);
    if (freed != CCMR_SUCCESS) {
        cr_assert_eq(
            ccmr_resource_deallocate(memory, ptr, 70 * MIB, 0, context),
            CCMR_SUCCESS);
    }
    return freed;
}

Test(virtual_leaf, survives_failing_calls)
{
    leaf_fail_each(once, stream, CUDA_ERROR_UNKNOWN);
    leaf_fail_each(once, CCMR_STREAM_PER_THREAD, CUDA_ERROR_OUT_OF_MEMORY);
    (void)once(stream);
    cr_assert_eq(figures(memory).reserved_bytes, 0u);
    nothing_is_left();
}

/* A block that is unmapped is gone, whatever else the driver says. */
Test(virtual_leaf, keeps_what_is_not_taken_back)
{
    void *ptr = taken(memory, 70 * MIB, stream);

    cr_assert_eq(sim->fail("cuMemRelease", 2, CUDA_ERROR_UNKNOWN), 0);
    cr_assert_eq(sim->fail("cuMemAddressFree", 1, CUDA_ERROR_UNKNOWN), 0);
    GOOD(ccmr_resource_deallocate(memory, ptr, 70 * MIB, 0, stream));
    cr_assert_eq(figures(memory).live_bytes, 0u);
    cr_assert_neq(figures(memory).reserved_bytes, 0u);
    cr_assert_eq(figures(memory).reserved_bytes, leaf_census().piece_bytes);
    cr_assert_eq(leaf_census().ranges, 1u);
    GOOD(ccmr_resource_audit(memory));
    GOOD(ccmr_resource_trim(memory, 0, NULL));
    nothing_is_left();
}

Test(virtual_leaf, describes_itself)
{
    ccmr_properties properties = {.size = sizeof(properties)};

    GOOD(ccmr_resource_describe(memory, &properties));
    cr_assert_str_eq(properties.name, "virtual");
    cr_assert_eq(properties.device, 1);
    cr_assert_eq(properties.device_accessible, 1);
    cr_assert_eq(properties.host_accessible, 0);
    cr_assert_eq(properties.max_alignment, GIB);
    cr_assert_eq(properties.granularity, UNIT);
    cr_assert_eq(properties.free_may_block, 1);
    cr_assert_eq(properties.free_stream, CCMR_FREE_SYNCHRONIZES);
    cr_assert_eq(properties.capture, CCMR_CAPTURE_REFUSED);
    cr_assert_eq(properties.handle_kinds, CCMR_HANDLE_NONE);
}

Test(virtual_leaf, is_a_kind)
{
    ccmr_virtual_options options = {.size = sizeof(options)};
    ccmr_resource *resource =
        made("virtual device=1 handle=5MiB room=1MiB export=posix_fd");

    cr_assert_str_eq(leaf_print(resource),
                     "virtual device=1 handle=6MiB room=2MiB export=posix_fd");
    ccmr_resource_release(resource);
    resource = made("virtual device=1");
    cr_assert_str_eq(leaf_print(resource), "virtual device=1");
    cr_assert_str_eq(leaf_option(resource, "handle"), "64MiB");
    cr_assert_str_eq(leaf_option(resource, "room"), "0");
    ccmr_resource_release(resource);
    cr_assert_eq(ccmr_stack_create("virtual device=2", &resource),
                 CCMR_ERROR_NO_DEVICE);
    cr_assert_eq(ccmr_stack_create("virtual export=win32", &resource),
                 CCMR_ERROR_UNKNOWN_NAME);
    options.handle_kinds = CCMR_HANDLE_WIN32;
    REFUSED(ccmr_virtual_create(0, &options, &resource), NOT_SUPPORTED, "0x2");
    /* The simulated machine has the attribute, but not the right. */
    REFUSED(ccmr_stack_create("virtual export=fabric", &resource),
            NOT_SUPPORTED, "CUDA_ERROR_NOT_PERMITTED");
    cr_assert_str_eq(ccmr_last_error()->driver_call, "cuMemCreate");
    cr_assert_eq(
        sim->set_attribute(
            0, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
            0),
        0);
    REFUSED(ccmr_stack_create("virtual export=posix_fd", &resource),
            NOT_SUPPORTED, "posix_fd");
    cr_assert_eq(
        sim->set_attribute(
            0, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0),
        0);
    REFUSED(ccmr_stack_create("virtual", &resource), NOT_SUPPORTED,
            "virtual memory management");
}
