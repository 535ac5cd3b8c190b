/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory, rights and contents: who may use a mapping, what becomes of
 * work that may not, and which bytes are seen where.
 */
#include "tests/fidelity/calls.h"
#include "tests/fidelity/facts.h"
#include "tests/fidelity/pieces.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { LIMIT_MS = 5000, NO_DEVICE = 1000 };

#define NONE CU_MEM_ACCESS_FLAGS_PROT_NONE
#define READ CU_MEM_ACCESS_FLAGS_PROT_READ
#define ALL CU_MEM_ACCESS_FLAGS_PROT_READWRITE

/* Two pieces of 4 MiB side by side, and room for a third. */
struct pair {
    CUdeviceptr range;
    CUmemGenericAllocationHandle first, second;
};

enum { PAIR_PAGES = 6 };

static bool pair_make(struct pair *pair)
{
    CUresult res;

    pair->range = make_range(PAIR_PAGES * PAGE_BYTES);
    pair->first = make_piece(2 * PAGE_BYTES);
    pair->second = make_piece(2 * PAGE_BYTES);
    res = drv.cuMemMap(pair->range, 2 * PAGE_BYTES, 0, pair->first, 0);
    if (res == CUDA_SUCCESS) {
        res = drv.cuMemMap(pair->range + 2 * PAGE_BYTES, 2 * PAGE_BYTES, 0,
                           pair->second, 0);
    }
    if (res != CUDA_SUCCESS) {
        fact_result("pair", res);
    }
    return res == CUDA_SUCCESS;
}

static void pair_drop(struct pair *pair)
{
    drv.cuMemUnmap(pair->range, 2 * PAGE_BYTES);
    drv.cuMemUnmap(pair->range + 2 * PAGE_BYTES, 2 * PAGE_BYTES);
    drv.cuMemAddressFree(pair->range, PAIR_PAGES * PAGE_BYTES);
    drv.cuMemRelease(pair->first);
    drv.cuMemRelease(pair->second);
}

static CUresult rights(unsigned long long *flags, CUdeviceptr address)
{
    CUmemLocation location;

    memset(&location, 0, sizeof location);
    location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    return drv.cuMemGetAccess(flags, &location, address);
}

static void see_rights(const char *what, CUdeviceptr address)
{
    unsigned long long flags = 99;
    CUresult res = rights(&flags, address);

    if (res != CUDA_SUCCESS) {
        fact_result(what, res);
    } else {
        fact_number(what, (long long)flags);
    }
}

/* ---- setting and getting ---- */

static void set(void)
{
    struct pair pair;

    if (!pair_make(&pair)) {
        return;
    }
    see_rights("at_first", pair.range);
    fact_result("whole", set_access(pair.range, 2 * PAGE_BYTES, ALL));
    see_rights("whole_reads", pair.range);
    see_rights("interior_reads", pair.range + PAGE_BYTES + 77);
    see_rights("neighbour_reads", pair.range + 2 * PAGE_BYTES);
    fact_result("read", set_access(pair.range, 2 * PAGE_BYTES, READ));
    see_rights("read_reads", pair.range);
    fact_result("none", set_access(pair.range, 2 * PAGE_BYTES, NONE));
    see_rights("none_reads", pair.range);
    fact_result("both", set_access(pair.range, 4 * PAGE_BYTES, ALL));
    see_rights("both_first_reads", pair.range);
    see_rights("both_second_reads", pair.range + 2 * PAGE_BYTES);
    fact_result("flags_unknown",
                set_access(pair.range, 2 * PAGE_BYTES, (CUmemAccess_flags)2));
    fact_result("flags_high",
                set_access(pair.range, 2 * PAGE_BYTES, (CUmemAccess_flags)99));
    pair_drop(&pair);
}

/* Documented: the range must be mapped, whole and without a break. */
static void set_ranges(void)
{
    struct pair pair;

    if (!pair_make(&pair)) {
        return;
    }
    fact_result("lower_half", set_access(pair.range, PAGE_BYTES, ALL));
    see_rights("lower_half_reads", pair.range);
    see_rights("upper_half_reads", pair.range + PAGE_BYTES);
    fact_result("one_and_a_half",
                set_access(pair.range, 3 * PAGE_BYTES, READ));
    see_rights("first_reads", pair.range);
    see_rights("second_reads", pair.range + 2 * PAGE_BYTES);
    fact_result("upper_half",
                set_access(pair.range + PAGE_BYTES, PAGE_BYTES, ALL));
    fact_result("zero", set_access(pair.range, 0, ALL));
    fact_result("size_odd", set_access(pair.range, PAGE_BYTES + 4096, ALL));
    fact_result("address_odd", set_access(pair.range + 4096, PAGE_BYTES, ALL));
    fact_result("with_hole", set_access(pair.range, 6 * PAGE_BYTES, ALL));
    see_rights("with_hole_reads", pair.range);
    fact_result("hole_alone",
                set_access(pair.range + 4 * PAGE_BYTES, PAGE_BYTES, ALL));
    fact_result("beyond", set_access(pair.range, 12 * PAGE_BYTES, ALL));
    fact_result("null", set_access(0, PAGE_BYTES, ALL));
    pair_drop(&pair);
    fact_result("freed", set_access(pair.range, 2 * PAGE_BYTES, ALL));
}

static void set_counts(void)
{
    CUmemAccessDesc desc[2];
    struct mapping mapping;

    if (!mapping_make(&mapping, PAGE_BYTES)) {
        return;
    }
    memset(desc, 0, sizeof desc);
    desc[0].location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    desc[1].location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    desc[0].flags = READ;
    desc[1].flags = ALL;
    SEE("none", cuMemSetAccess(mapping.address, PAGE_BYTES, desc, 0));
    SEE("null", cuMemSetAccess(mapping.address, PAGE_BYTES, NULL, 1));
    SEE("null_none", cuMemSetAccess(mapping.address, PAGE_BYTES, NULL, 0));
    SEE("same_device_twice",
        cuMemSetAccess(mapping.address, PAGE_BYTES, desc, 2));
    see_rights("same_device_twice_reads", mapping.address);
    desc[1].location.id = NO_DEVICE;
    SEE("second_unknown",
        cuMemSetAccess(mapping.address, PAGE_BYTES, desc, 2));
    see_rights("second_unknown_reads", mapping.address);
    mapping_drop(&mapping);
}

/* Documented: devices, and the host where the memory is the host's. */
static void set_locations(void)
{
    static const struct {
        const char *name;
        CUmemLocationType type;
        int id;
    } locations[] = {
        {"none", CU_MEM_LOCATION_TYPE_NONE, 0},
        {"device_negative", CU_MEM_LOCATION_TYPE_DEVICE, -1},
        {"device_unknown", CU_MEM_LOCATION_TYPE_DEVICE, NO_DEVICE},
        {"host", CU_MEM_LOCATION_TYPE_HOST, 0},
        {"host_numa", CU_MEM_LOCATION_TYPE_HOST_NUMA, 0},
        {"host_numa_current", CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0},
    };
    CUmemAccessDesc desc;
    struct mapping mapping;
    unsigned long long flags = 99;
    char key[64];

    if (!mapping_make(&mapping, PAGE_BYTES)) {
        return;
    }
    memset(&desc, 0, sizeof desc);
    desc.flags = ALL;
    for (size_t i = 0; i < FIDELITY_COUNT(locations); i++) {
        desc.location.type = locations[i].type;
        desc.location.id = locations[i].id;
        SEE(locations[i].name,
            cuMemSetAccess(mapping.address, PAGE_BYTES, &desc, 1));
        snprintf(key, sizeof key, "get_%s", locations[i].name);
        SEE(key, cuMemGetAccess(&flags, &desc.location, mapping.address));
    }
    SEE("get_null_output",
        cuMemGetAccess(NULL, &desc.location, mapping.address));
    SEE("get_null_location", cuMemGetAccess(&flags, NULL, mapping.address));
    mapping_drop(&mapping);
}

static void get(void)
{
    CUdeviceptr range = make_range(PAGE_BYTES);
    CUdeviceptr plain = 0;
    CUdeviceptr block = 0;
    int local = 0;

    see_rights("reserved", range);
    drv.cuMemAddressFree(range, PAGE_BYTES);
    see_rights("freed", range);
    see_rights("null", 0);
    see_rights("stack", (CUdeviceptr)(uintptr_t)&local);
    drv.cuMemAlloc(&plain, PAGE_BYTES);
    see_rights("plain", plain);
    drv.cuMemFree(plain);
    drv.cuMemAllocAsync(&block, PAGE_BYTES, CU_STREAM_LEGACY);
    see_rights("pool_block", block);
    drv.cuMemFreeAsync(block, CU_STREAM_LEGACY);
    drv.cuStreamSynchronize(CU_STREAM_LEGACY);
}

/* Rights go with the mapping, not with the piece or the range. */
static void remapped(void)
{
    CUdeviceptr other = make_range(PAGE_BYTES);
    struct mapping mapping;

    if (!mapping_make(&mapping, PAGE_BYTES)) {
        return;
    }
    SEE("alias", cuMemMap(other, PAGE_BYTES, 0, mapping.piece, 0));
    see_rights("alias_reads", other);
    SEE("unmap", cuMemUnmap(mapping.address, PAGE_BYTES));
    see_rights("unmapped_reads", mapping.address);
    SEE("map", cuMemMap(mapping.address, PAGE_BYTES, 0, mapping.piece, 0));
    see_rights("mapped_again_reads", mapping.address);
    SEE("unmap_alias", cuMemUnmap(other, PAGE_BYTES));
    drv.cuMemAddressFree(other, PAGE_BYTES);
    mapping_drop(&mapping);
}

/* ---- contents ---- */

static void aliases(void)
{
    CUdeviceptr other = make_range(PAGE_BYTES);
    struct mapping mapping;

    if (!mapping_make(&mapping, PAGE_BYTES)) {
        return;
    }
    fact_result("fill", fill_bytes(mapping.address, 1, PAGE_BYTES));
    SEE("map", cuMemMap(other, PAGE_BYTES, 0, mapping.piece, 0));
    fact_result("access", set_access(other, PAGE_BYTES, ALL));
    fact("alias_holds", "%s", compare_bytes(other, 1, PAGE_BYTES));
    fact_result("fill_alias", fill_bytes(other + 4096, 2, 4096));
    fact("before_holds", "%s", compare_bytes(mapping.address, 1, 4096));
    fact("there_holds", "%s", compare_bytes(mapping.address + 4096, 2, 4096));
    SEE("unmap_first", cuMemUnmap(mapping.address, PAGE_BYTES));
    fact("alias_still_holds", "%s", compare_bytes(other + 4096, 2, 4096));
    SEE("unmap_alias", cuMemUnmap(other, PAGE_BYTES));
    SEE("map_back",
        cuMemMap(mapping.address, PAGE_BYTES, 0, mapping.piece, 0));
    fact_result("access_back", set_access(mapping.address, PAGE_BYTES, ALL));
    fact("back_holds", "%s", compare_bytes(mapping.address + 4096, 2, 4096));
    mapping_drop(&mapping);
    drv.cuMemAddressFree(other, PAGE_BYTES);
}

/* One fill and one copy over the border of two pieces. */
static void across(void)
{
    struct pair pair;
    CUdeviceptr border;
    CUdeviceptr plain = 0;

    if (!pair_make(&pair)) {
        return;
    }
    border = pair.range + 2 * PAGE_BYTES;
    fact_result("access", set_access(pair.range, 4 * PAGE_BYTES, ALL));
    fact_result("fill", fill_bytes(border - 4096, 3, 8192));
    fact("holds", "%s", compare_bytes(border - 4096, 3, 8192));
    SEE("plain", cuMemAlloc(&plain, 8192));
    SEE("copy_out", cuMemcpyDtoD(plain, border - 4096, 8192));
    fact("copied", "%s", compare_bytes(plain, 3, 8192));
    fact_result("fill_plain", fill_bytes(plain, 4, 8192));
    SEE("copy_in", cuMemcpyDtoD(border - 4096, plain, 8192));
    fact("copied_in", "%s", compare_bytes(border - 4096, 4, 8192));
    drv.cuMemFree(plain);
    pair_drop(&pair);
}

/* ---- work that may not use the memory: a case each, since it may ruin the
 * context ---- */

static void see_fill(CUdeviceptr address, size_t bytes)
{
    SEE("fill", cuMemsetD8Async(address, 1, bytes, CU_STREAM_LEGACY));
    SEE("synchronize", cuStreamSynchronize(CU_STREAM_LEGACY));
}

static void see_copy_out(CUdeviceptr address, size_t bytes)
{
    static unsigned char copy[8192];

    SEE("copy", cuMemcpyDtoHAsync(copy, address, bytes, CU_STREAM_LEGACY));
    SEE("synchronize", cuStreamSynchronize(CU_STREAM_LEGACY));
}

static void fill_reserved(void)
{
    see_fill(make_range(PAGE_BYTES), 4096);
}

static void fill_without_access(void)
{
    struct pair pair;

    if (pair_make(&pair)) {
        see_fill(pair.range, 4096);
    }
}

static void fill_read_only(void)
{
    struct pair pair;

    if (pair_make(&pair)) {
        fact_result("access", set_access(pair.range, 2 * PAGE_BYTES, READ));
        see_fill(pair.range, 4096);
    }
}

static void fill_no_more(void)
{
    struct mapping mapping;

    if (mapping_make(&mapping, PAGE_BYTES)) {
        fact_result("allowed", fill_bytes(mapping.address, 1, 4096));
        fact_result("access", set_access(mapping.address, PAGE_BYTES, NONE));
        see_fill(mapping.address, 4096);
    }
}

static void fill_unmapped(void)
{
    struct mapping mapping;

    if (mapping_make(&mapping, PAGE_BYTES)) {
        fact_result("allowed", fill_bytes(mapping.address, 1, 4096));
        SEE("unmap", cuMemUnmap(mapping.address, PAGE_BYTES));
        see_fill(mapping.address, 4096);
    }
}

static void fill_into_hole(void)
{
    struct pair pair;

    if (pair_make(&pair)) {
        fact_result("access", set_access(pair.range, 4 * PAGE_BYTES, ALL));
        see_fill(pair.range + 4 * PAGE_BYTES - 4096, 8192);
    }
}

static void fill_into_forbidden(void)
{
    struct pair pair;

    if (pair_make(&pair)) {
        fact_result("access", set_access(pair.range, 2 * PAGE_BYTES, ALL));
        see_fill(pair.range + 2 * PAGE_BYTES - 4096, 8192);
    }
}

static void copy_without_access(void)
{
    struct pair pair;

    if (pair_make(&pair)) {
        see_copy_out(pair.range, 4096);
    }
}

static void copy_read_only(void)
{
    struct mapping mapping;

    if (mapping_make(&mapping, PAGE_BYTES)) {
        fact_result("fill", fill_bytes(mapping.address, 6, 4096));
        fact_result("access", set_access(mapping.address, PAGE_BYTES, READ));
        see_copy_out(mapping.address, 4096);
        fact("holds", "%s", compare_bytes(mapping.address, 6, 4096));
        mapping_drop(&mapping);
    }
}

static void copy_reserved(void)
{
    see_copy_out(make_range(PAGE_BYTES), 4096);
}

/* ---- what the driver says about the addresses ---- */

static void see_range(const char *what, const struct pair *pair,
                      CUdeviceptr address)
{
    CUdeviceptr base = 0;
    size_t bytes = 0;
    CUresult res = drv.cuMemGetAddressRange(&base, &bytes, address);

    if (res != CUDA_SUCCESS) {
        fact_result(what, res);
        return;
    }
    fact(what, "%lld pages from page %lld", (long long)(bytes / PAGE_BYTES),
         (long long)(base - pair->range) / (long long)PAGE_BYTES);
}

static void address_ranges(void)
{
    struct pair pair;

    if (!pair_make(&pair)) {
        return;
    }
    see_range("no_access", &pair, pair.range);
    fact_result("access", set_access(pair.range, 4 * PAGE_BYTES, ALL));
    see_range("first", &pair, pair.range);
    see_range("first_interior", &pair, pair.range + PAGE_BYTES + 5);
    see_range("second", &pair, pair.range + 2 * PAGE_BYTES);
    see_range("reserved", &pair, pair.range + 4 * PAGE_BYTES);
    pair_drop(&pair);
}

static void of_mapping(void)
{
    struct mapping mapping;

    if (mapping_make(&mapping, 2 * PAGE_BYTES)) {
        see_pointer(mapping.address);
        mapping_drop(&mapping);
    }
}

static void of_mapping_interior(void)
{
    struct mapping mapping;

    if (mapping_make(&mapping, 2 * PAGE_BYTES)) {
        see_pointer(mapping.address + PAGE_BYTES + 100);
        mapping_drop(&mapping);
    }
}

static void of_mapping_without_access(void)
{
    struct pair pair;

    if (pair_make(&pair)) {
        see_pointer(pair.range);
        pair_drop(&pair);
    }
}

static void of_reserved(void)
{
    CUdeviceptr range = make_range(PAGE_BYTES);

    see_pointer(range);
    drv.cuMemAddressFree(range, PAGE_BYTES);
}

/* Given back as what it is not. */
static void freed_otherwise(void)
{
    CUipcMemHandle handle;
    struct mapping mapping;

    if (!mapping_make(&mapping, PAGE_BYTES)) {
        return;
    }
    SEE("free", cuMemFree(mapping.address));
    SEE("free_async", cuMemFreeAsync(mapping.address, CU_STREAM_LEGACY));
    SEE("free_host", cuMemFreeHost((void *)(uintptr_t)mapping.address));
    SEE("ipc_handle", cuIpcGetMemHandle(&handle, mapping.address));
    fact("still_works", "%s",
         result_name(fill_bytes(mapping.address, 1, PAGE_BYTES)));
    mapping_drop(&mapping);
}

/* ---- memory of the host ---- */

/* The driver's address is the host's too, once the host has access. */
static void see_host_memory(CUmemLocationType type)
{
    CUmemAllocationProp prop = piece_properties();
    CUmemGenericAllocationHandle piece = 0;
    CUdeviceptr range = make_range(PAGE_BYTES);
    CUmemAccessDesc desc;
    CUresult res;

    prop.location.type = type;
    res = drv.cuMemCreate(&piece, PAGE_BYTES, &prop, 0);
    fact_result("create", res);
    if (res != CUDA_SUCCESS) {
        drv.cuMemAddressFree(range, PAGE_BYTES);
        return;
    }
    SEE("map", cuMemMap(range, PAGE_BYTES, 0, piece, 0));
    fact_result("access_of_device", set_access(range, PAGE_BYTES, ALL));
    memset(&desc, 0, sizeof desc);
    desc.location.type = type;
    desc.flags = ALL;
    res = drv.cuMemSetAccess(range, PAGE_BYTES, &desc, 1);
    fact_result("access_of_host", res);
    see_rights("device_reads", range);
    if (res == CUDA_SUCCESS) {
        memset((void *)(uintptr_t)range, 9, 4096);
        fact("written_by_host", "%s", compare_bytes(range, 9, 4096));
        fact_result("fill", fill_bytes(range, 8, 4096));
        fact_yes("written_by_device",
                 *(unsigned char *)(uintptr_t)(range + 4095) == 8);
    }
    see_pointer(range);
    SEE("unmap", cuMemUnmap(range, PAGE_BYTES));
    SEE("free", cuMemAddressFree(range, PAGE_BYTES));
    SEE("release", cuMemRelease(piece));
}

static void of_host_numa(void)
{
    see_host_memory(CU_MEM_LOCATION_TYPE_HOST_NUMA);
}

static void of_host(void)
{
    see_host_memory(CU_MEM_LOCATION_TYPE_HOST);
}

static const struct fidelity_case access_cases[] = {
    FIDELITY_CASE(set),
    FIDELITY_CASE(set_ranges),
    FIDELITY_CASE(set_counts),
    FIDELITY_CASE(set_locations),
    FIDELITY_CASE(get),
    FIDELITY_CASE(remapped),
    FIDELITY_CASE(aliases),
    FIDELITY_CASE(across),
    FIDELITY_CASE(address_ranges),
    FIDELITY_CASE(of_mapping),
    FIDELITY_CASE(of_mapping_interior),
    FIDELITY_CASE(of_mapping_without_access),
    FIDELITY_CASE(of_reserved),
    FIDELITY_CASE(freed_otherwise),
    FIDELITY_CASE(of_host_numa),
    FIDELITY_CASE(of_host),
    FIDELITY_CASE(copy_read_only),
    FIDELITY_CASE(fill_reserved),
    FIDELITY_CASE(fill_without_access),
    FIDELITY_CASE(fill_read_only),
    FIDELITY_CASE(fill_no_more),
    FIDELITY_CASE(fill_unmapped),
    FIDELITY_CASE(fill_into_hole),
    FIDELITY_CASE(fill_into_forbidden),
    FIDELITY_CASE(copy_without_access),
    FIDELITY_CASE(copy_reserved),
    FIDELITY_END,
};

const struct fidelity_topic access_topic = {
    "access",
    access_cases,
    NULL,
    NULL,
    false,
    LIMIT_MS,
    "Documented: nobody has rights to a mapping before they are set. What "
    "work without them meets was measured.",
};
