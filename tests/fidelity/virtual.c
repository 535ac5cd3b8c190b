/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory, its objects: physical pieces and their handles, and ranges
 * of addresses. Mappings are in mappings.c, rights and contents in access.c.
 */
#include "tests/fidelity/facts.h"
#include "tests/fidelity/pieces.h"

#include <stdint.h>
#include <string.h>

enum { LIMIT_MS = 5000, NO_DEVICE = 1000 };

#define MIB ((size_t)1 << 20)
#define TIB ((size_t)1 << 40)

/* ---- granularity ---- */

static void see_granularity(const char *what, const CUmemAllocationProp *prop)
{
    size_t least = 0;
    size_t best = 0;
    CUresult res = drv.cuMemGetAllocationGranularity(
        &least, prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    CUresult second = drv.cuMemGetAllocationGranularity(
        &best, prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);

    fact(what, "%s %zu, %s", result_name(res), least,
         res == second && best == least ? "recommended too"
                                        : "recommended another");
}

/* Documented: the size of a piece, and the address and size of a mapping, are
 * multiples of it. */
static void granularity(void)
{
    CUmemAllocationProp prop = piece_properties();
    size_t bytes = 0;

    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    see_granularity("posix", &prop);
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
    see_granularity("fabric", &prop);
    prop = piece_properties();
    prop.allocFlags.gpuDirectRDMACapable = 1;
    see_granularity("rdma", &prop);
    prop = piece_properties();
    prop.allocFlags.compressionType = CU_MEM_ALLOCATION_COMP_GENERIC;
    see_granularity("compressed", &prop);
    prop = piece_properties();
    prop.type = CU_MEM_ALLOCATION_TYPE_INVALID;
    see_granularity("type_invalid", &prop);
    prop.type = CU_MEM_ALLOCATION_TYPE_MANAGED;
    see_granularity("type_managed", &prop);
    prop = piece_properties();
    prop.location.type = CU_MEM_LOCATION_TYPE_NONE;
    see_granularity("location_none", &prop);
    prop.location.type = CU_MEM_LOCATION_TYPE_HOST;
    see_granularity("host", &prop);
    prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    see_granularity("host_numa", &prop);
    prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
    see_granularity("host_numa_current", &prop);
    prop = piece_properties();
    prop.location.id = NO_DEVICE;
    see_granularity("device_unknown", &prop);
    prop = piece_properties();
    SEE("null_output", cuMemGetAllocationGranularity(
                           NULL, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    SEE("null_prop", cuMemGetAllocationGranularity(
                         &bytes, NULL, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    SEE("option_unknown",
        cuMemGetAllocationGranularity(&bytes, &prop,
                                      (CUmemAllocationGranularity_flags)99));
}

/* ---- cuMemCreate ---- */

static void see_create(const char *what, size_t bytes,
                       const CUmemAllocationProp *prop)
{
    CUmemGenericAllocationHandle piece = 0;
    CUresult res = drv.cuMemCreate(&piece, bytes, prop, 0);

    fact_result(what, res);
    if (res == CUDA_SUCCESS) {
        drv.cuMemRelease(piece);
    }
}

/* Documented: the size is a multiple of the granularity. */
static void create_sizes(void)
{
    static const struct {
        const char *name;
        size_t bytes;
    } sizes[] = {
        {"zero", 0},
        {"one", 1},
        {"4KiB", 4096},
        {"64KiB", 65536},
        {"1MiB", (size_t)1 << 20},
        {"2MiB", (size_t)2 << 20},
        {"2MiB_and_4KiB", ((size_t)2 << 20) + 4096},
        {"3MiB", (size_t)3 << 20},
        {"6MiB", (size_t)6 << 20},
        {"1TiB", (size_t)1 << 40},
        {"1PiB", (size_t)1 << 50},
        {"most", SIZE_MAX - (((size_t)2 << 20) - 1)},
        {"size_max", SIZE_MAX},
    };
    CUmemAllocationProp prop = piece_properties();

    for (size_t i = 0; i < FIDELITY_COUNT(sizes); i++) {
        see_create(sizes[i].name, sizes[i].bytes, &prop);
    }
}

static void create_arguments(void)
{
    CUmemAllocationProp prop = piece_properties();
    CUmemGenericAllocationHandle piece = 0;

    SEE("null_output", cuMemCreate(NULL, PAGE_BYTES, &prop, 0));
    SEE("null_prop", cuMemCreate(&piece, PAGE_BYTES, NULL, 0));
    SEE("flags", cuMemCreate(&piece, PAGE_BYTES, &prop, 1));
    prop.type = CU_MEM_ALLOCATION_TYPE_INVALID;
    see_create("type_invalid", PAGE_BYTES, &prop);
    prop.type = CU_MEM_ALLOCATION_TYPE_MANAGED;
    see_create("type_managed", PAGE_BYTES, &prop);
    prop.type = (CUmemAllocationType)77;
    see_create("type_unknown", PAGE_BYTES, &prop);
    prop = piece_properties();
    prop.allocFlags.gpuDirectRDMACapable = 1;
    see_create("rdma", PAGE_BYTES, &prop);
    prop = piece_properties();
    prop.allocFlags.usage = 0x4000;
    see_create("usage_unknown", PAGE_BYTES, &prop);
    prop = piece_properties();
    prop.allocFlags.reserved[1] = 1;
    see_create("reserved_not_zero", PAGE_BYTES, &prop);
    prop = piece_properties();
    prop.win32HandleMetaData = &prop;
    see_create("metadata", PAGE_BYTES, &prop);
}

/* Documented: a device, or a NUMA node of the host. */
static void create_locations(void)
{
    static const struct {
        const char *name;
        CUmemLocationType type;
        int id;
    } locations[] = {
        {"none", CU_MEM_LOCATION_TYPE_NONE, 0},
        {"device_unknown", CU_MEM_LOCATION_TYPE_DEVICE, NO_DEVICE},
        {"device_negative", CU_MEM_LOCATION_TYPE_DEVICE, -1},
        {"host", CU_MEM_LOCATION_TYPE_HOST, 0},
        {"host_numa", CU_MEM_LOCATION_TYPE_HOST_NUMA, 0},
        {"host_numa_negative", CU_MEM_LOCATION_TYPE_HOST_NUMA, -1},
        {"host_numa_4000", CU_MEM_LOCATION_TYPE_HOST_NUMA, 4000},
        {"host_numa_current", CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0},
    };
    CUmemAllocationProp prop = piece_properties();

    for (size_t i = 0; i < FIDELITY_COUNT(locations); i++) {
        prop.location.type = locations[i].type;
        prop.location.id = locations[i].id;
        see_create(locations[i].name, PAGE_BYTES, &prop);
    }
}

static void create_handle_types(void)
{
    static const struct {
        const char *name;
        int types;
    } types[] = {
        {"posix", 1},
        {"win32", 2},
        {"win32_kmt", 4},
        {"fabric", 8},
        {"posix_and_fabric", 9},
        {"unknown", 0x40},
    };
    CUmemAllocationProp prop = piece_properties();

    for (size_t i = 0; i < FIDELITY_COUNT(types); i++) {
        prop.requestedHandleTypes = (CUmemAllocationHandleType)types[i].types;
        see_create(types[i].name, PAGE_BYTES, &prop);
    }
    prop = piece_properties();
    prop.location.type = CU_MEM_LOCATION_TYPE_HOST;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    see_create("host_posix", PAGE_BYTES, &prop);
    prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    see_create("host_numa_posix", PAGE_BYTES, &prop);
}

/* ---- handles ---- */

static void handle_values(void)
{
    CUmemGenericAllocationHandle first = make_piece(PAGE_BYTES);
    CUmemGenericAllocationHandle second = make_piece(PAGE_BYTES);

    fact_yes("zero", first == 0 || second == 0);
    fact_yes("distinct", first != second);
    SEE("release_first", cuMemRelease(first));
    SEE("release_second", cuMemRelease(second));
}

static void release_null(void)
{
    SEE("result", cuMemRelease(0));
}

static void release_garbage(void)
{
    SEE("result", cuMemRelease(0x1234));
}

static void release_twice(void)
{
    CUmemGenericAllocationHandle piece = make_piece(PAGE_BYTES);

    SEE("once", cuMemRelease(piece));
    SEE("twice", cuMemRelease(piece));
}

static void see_properties(const char *what,
                           CUmemGenericAllocationHandle piece)
{
    CUmemAllocationProp prop;
    CUresult res;

    memset(&prop, 0xee, sizeof prop);
    res = drv.cuMemGetAllocationPropertiesFromHandle(&prop, piece);
    if (res != CUDA_SUCCESS) {
        fact_result(what, res);
        return;
    }
    fact(what, "type %d, location %d %d, handle types %d, flags %d %d %d",
         (int)prop.type, (int)prop.location.type, prop.location.id,
         (int)prop.requestedHandleTypes, prop.allocFlags.compressionType,
         prop.allocFlags.gpuDirectRDMACapable, prop.allocFlags.usage);
}

static void properties(void)
{
    CUmemGenericAllocationHandle piece = make_piece(PAGE_BYTES);

    see_properties("ordinary", piece);
    SEE("null_output", cuMemGetAllocationPropertiesFromHandle(NULL, piece));
    drv.cuMemRelease(piece);
    piece = make_shareable_piece(PAGE_BYTES);
    see_properties("shareable", piece);
    drv.cuMemRelease(piece);
}

static void properties_of_null(void)
{
    see_properties("result", 0);
}

static void see_retain(const char *what, CUdeviceptr address)
{
    CUmemGenericAllocationHandle piece = 0;
    CUresult res =
        drv.cuMemRetainAllocationHandle(&piece, (void *)(uintptr_t)address);

    fact_result(what, res);
    if (res == CUDA_SUCCESS) {
        drv.cuMemRelease(piece);
    }
}

/* Documented: the handle of the memory mapped at an address, any address in
 * the mapping; it must be released as often as it was retained. */
static void retain(void)
{
    CUmemGenericAllocationHandle found = 0;
    CUdeviceptr range = make_range(2 * PAGE_BYTES);
    struct mapping mapping;
    CUdeviceptr plain = 0;
    CUdeviceptr block = 0;
    int local = 0;

    if (!mapping_make(&mapping, 2 * PAGE_BYTES)) {
        return;
    }
    SEE("mapped", cuMemRetainAllocationHandle(
                      &found, (void *)(uintptr_t)mapping.address));
    fact_yes("same_handle", found == mapping.piece);
    SEE("release", cuMemRelease(found));
    see_retain("interior", mapping.address + PAGE_BYTES + 12345);
    see_retain("beyond", mapping.address + 2 * PAGE_BYTES);
    see_retain("unmapped", range);
    see_retain("null", 0);
    see_retain("stack", (CUdeviceptr)(uintptr_t)&local);
    drv.cuMemAlloc(&plain, 4096);
    see_retain("plain", plain);
    drv.cuMemFree(plain);
    drv.cuMemAllocAsync(&block, 4096, CU_STREAM_LEGACY);
    see_retain("pool_block", block);
    drv.cuMemFreeAsync(block, CU_STREAM_LEGACY);
    drv.cuStreamSynchronize(CU_STREAM_LEGACY);
    SEE("null_output",
        cuMemRetainAllocationHandle(NULL, (void *)(uintptr_t)mapping.address));
    drv.cuMemAddressFree(range, 2 * PAGE_BYTES);
    mapping_drop(&mapping);
}

/* Released while mapped, and got back from the mapping. */
static void retain_released(void)
{
    CUmemGenericAllocationHandle found = 0;
    struct mapping mapping;

    if (!mapping_make(&mapping, PAGE_BYTES)) {
        return;
    }
    SEE("release_mapped", cuMemRelease(mapping.piece));
    SEE("retain", cuMemRetainAllocationHandle(
                      &found, (void *)(uintptr_t)mapping.address));
    fact_yes("same_handle", found == mapping.piece);
    see_properties("properties", found);
    mapping.piece = found;
    mapping_drop(&mapping);
}

/* ---- ranges ---- */

static void see_reserve(const char *what, size_t bytes, size_t alignment,
                        CUdeviceptr hint)
{
    CUdeviceptr address = 0;
    CUresult res =
        drv.cuMemAddressReserve(&address, bytes, alignment, hint, 0);

    if (res != CUDA_SUCCESS) {
        fact_result(what, res);
        return;
    }
    fact(what, "%s%s%s", result_name(res),
         address % PAGE_BYTES == 0 ? ", at 2 MiB" : ", at less than 2 MiB",
         alignment > PAGE_BYTES && address % alignment == 0 ? ", aligned"
                                                            : "");
    if (drv.cuMemAddressFree(address, bytes) != CUDA_SUCCESS) {
        fact("cleanup", "%s can't be freed", what);
    }
}

/* Documented: the size is a multiple of the host's page, the alignment a
 * power of two. */
static void reserve_sizes(void)
{
    see_reserve("zero", 0, 0, 0);
    see_reserve("one", 1, 0, 0);
    see_reserve("4KiB", 4096, 0, 0);
    see_reserve("64KiB", 65536, 0, 0);
    see_reserve("1MiB", MIB, 0, 0);
    see_reserve("2MiB", 2 * MIB, 0, 0);
    see_reserve("2MiB_and_4KiB", 2 * MIB + 4096, 0, 0);
    see_reserve("3MiB", 3 * MIB, 0, 0);
    see_reserve("1GiB", 1024 * MIB, 0, 0);
    see_reserve("1TiB", TIB, 0, 0);
    see_reserve("16TiB", 16 * TIB, 0, 0);
    see_reserve("1PiB", 1024 * TIB, 0, 0);
    see_reserve("most", SIZE_MAX - (PAGE_BYTES - 1), 0, 0);
    see_reserve("size_max", SIZE_MAX, 0, 0);
}

static void reserve_alignments(void)
{
    CUdeviceptr address = 0;

    see_reserve("1", PAGE_BYTES, 1, 0);
    see_reserve("3", PAGE_BYTES, 3, 0);
    see_reserve("512", PAGE_BYTES, 512, 0);
    see_reserve("4KiB", PAGE_BYTES, 4096, 0);
    see_reserve("2MiB", PAGE_BYTES, 2 * MIB, 0);
    see_reserve("3MiB", PAGE_BYTES, 3 * MIB, 0);
    see_reserve("4MiB", PAGE_BYTES, 4 * MIB, 0);
    see_reserve("64MiB", PAGE_BYTES, 64 * MIB, 0);
    see_reserve("1GiB", PAGE_BYTES, 1024 * MIB, 0);
    see_reserve("1TiB", PAGE_BYTES, TIB, 0);
    SEE("flags", cuMemAddressReserve(&address, PAGE_BYTES, 0, 0, 1));
    SEE("null_output", cuMemAddressReserve(NULL, PAGE_BYTES, 0, 0, 0));
}

/* Documented: the hint may be followed or not. */
static void see_hint(const char *what, size_t bytes, CUdeviceptr hint)
{
    CUdeviceptr address = 0;
    CUresult res = drv.cuMemAddressReserve(&address, bytes, 0, hint, 0);

    if (res != CUDA_SUCCESS) {
        fact_result(what, res);
        return;
    }
    fact(what, "%s, %s", result_name(res),
         address == hint ? "followed" : "elsewhere");
    drv.cuMemAddressFree(address, bytes);
}

static void reserve_hints(void)
{
    CUdeviceptr range = make_range(8 * PAGE_BYTES);
    CUdeviceptr plain = 0;

    drv.cuMemAlloc(&plain, 4 * PAGE_BYTES);
    see_hint("in_use", PAGE_BYTES, range);
    see_hint("in_use_inside", PAGE_BYTES, range + PAGE_BYTES);
    see_hint("plain_memory", PAGE_BYTES, plain);
    drv.cuMemAddressFree(range, 8 * PAGE_BYTES);
    see_hint("free", PAGE_BYTES, range);
    see_hint("free_inside", PAGE_BYTES, range + PAGE_BYTES);
    see_hint("free_larger", 4 * PAGE_BYTES, range);
    see_hint("free_at_4KiB", PAGE_BYTES, range + 4096);
    see_hint("odd", PAGE_BYTES, range + 1);
    see_hint("low", PAGE_BYTES, PAGE_BYTES);
    see_hint("not_canonical", PAGE_BYTES, (CUdeviceptr)1 << 60);
    drv.cuMemFree(plain);
}

/* The next range right behind one, if the hint asks for it: growth in place. */
static void reserve_next(void)
{
    CUdeviceptr range = make_range(8 * PAGE_BYTES);
    CUdeviceptr first = 0;
    CUdeviceptr second = 0;

    drv.cuMemAddressFree(range, 8 * PAGE_BYTES);
    drv.cuMemAddressReserve(&first, PAGE_BYTES, 0, range, 0);
    fact_yes("first_followed", first == range);
    SEE("second",
        cuMemAddressReserve(&second, PAGE_BYTES, 0, first + PAGE_BYTES, 0));
    fact_yes("second_followed", second == first + PAGE_BYTES);
    SEE("free_both_as_one", cuMemAddressFree(first, 2 * PAGE_BYTES));
    SEE("free_first", cuMemAddressFree(first, PAGE_BYTES));
    SEE("free_second", cuMemAddressFree(second, PAGE_BYTES));
}

static void reserve_again(void)
{
    CUdeviceptr first = make_range(PAGE_BYTES);
    CUdeviceptr second;

    drv.cuMemAddressFree(first, PAGE_BYTES);
    second = make_range(PAGE_BYTES);
    fact_yes("same_address", first == second);
    drv.cuMemAddressFree(second, PAGE_BYTES);
}

/* Documented: exactly what was reserved, and nothing mapped in it. */
static void address_free(void)
{
    CUdeviceptr range = make_range(4 * PAGE_BYTES);
    CUdeviceptr plain = 0;
    struct mapping mapping;

    SEE("null", cuMemAddressFree(0, 0));
    SEE("null_with_size", cuMemAddressFree(0, PAGE_BYTES));
    SEE("less", cuMemAddressFree(range, PAGE_BYTES));
    SEE("more", cuMemAddressFree(range, 8 * PAGE_BYTES));
    SEE("zero", cuMemAddressFree(range, 0));
    SEE("upper_part", cuMemAddressFree(range + PAGE_BYTES, 3 * PAGE_BYTES));
    SEE("odd", cuMemAddressFree(range + 1, 4 * PAGE_BYTES));
    SEE("exact", cuMemAddressFree(range, 4 * PAGE_BYTES));
    SEE("twice", cuMemAddressFree(range, 4 * PAGE_BYTES));
    drv.cuMemAlloc(&plain, PAGE_BYTES);
    SEE("plain_memory", cuMemAddressFree(plain, PAGE_BYTES));
    drv.cuMemFree(plain);
    if (mapping_make(&mapping, PAGE_BYTES)) {
        SEE("mapped", cuMemAddressFree(mapping.address, PAGE_BYTES));
        fact("still_works", "%s",
             result_name(fill_bytes(mapping.address, 1, PAGE_BYTES)));
        SEE("unmap", cuMemUnmap(mapping.address, PAGE_BYTES));
        SEE("unmapped", cuMemAddressFree(mapping.address, PAGE_BYTES));
        drv.cuMemRelease(mapping.piece);
    }
}

static const struct fidelity_case virtual_cases[] = {
    FIDELITY_CASE(granularity),         FIDELITY_CASE(create_sizes),
    FIDELITY_CASE(create_arguments),    FIDELITY_CASE(create_locations),
    FIDELITY_CASE(create_handle_types), FIDELITY_CASE(handle_values),
    FIDELITY_CASE(properties),          FIDELITY_CASE(retain),
    FIDELITY_CASE(retain_released),     FIDELITY_CASE(reserve_sizes),
    FIDELITY_CASE(reserve_alignments),  FIDELITY_CASE(reserve_hints),
    FIDELITY_CASE(reserve_next),        FIDELITY_CASE(reserve_again),
    FIDELITY_CASE(address_free),        FIDELITY_CASE(release_null),
    FIDELITY_CASE(release_garbage),     FIDELITY_CASE(release_twice),
    FIDELITY_CASE(properties_of_null),  FIDELITY_END,
};

const struct fidelity_topic virtual_topic = {
    "virtual",
    virtual_cases,
    NULL,
    NULL,
    false,
    LIMIT_MS,
    "Documented: sizes and addresses are multiples of the granularity. "
    "Alignment, hints, handle values and answers were measured.",
};
