/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed memory: allocation, advice, prefetching, what is remembered about
 * ranges; and pools of it. All of it small.
 */
#include "tests/fidelity/calls.h"
#include "tests/fidelity/facts.h"
#include "tests/fidelity/pieces.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIMIT_MS = 5000, NO_DEVICE = 1000 };

#define MIB ((size_t)1 << 20)
#define BYTES (4 * MIB)

static CUmemLocation location(CUmemLocationType type, int id)
{
    CUmemLocation where;

    memset(&where, 0, sizeof where);
    where.type = type;
    where.id = id;
    return where;
}

static CUmemLocation on_device(void)
{
    return location(CU_MEM_LOCATION_TYPE_DEVICE, 0);
}

static CUdeviceptr make_managed(size_t bytes)
{
    CUdeviceptr address = 0;
    CUresult res =
        drv.cuMemAllocManaged(&address, bytes, CU_MEM_ATTACH_GLOBAL);

    if (res != CUDA_SUCCESS) {
        fact_result("make_managed", res);
    }
    return address;
}

static const struct {
    const char *name;
    CUmemLocationType type;
    int id;
} locations[] = {
    {"device", CU_MEM_LOCATION_TYPE_DEVICE, 0},
    {"device_unknown", CU_MEM_LOCATION_TYPE_DEVICE, NO_DEVICE},
    {"device_negative", CU_MEM_LOCATION_TYPE_DEVICE, -1},
    {"none", CU_MEM_LOCATION_TYPE_NONE, 0},
    {"host", CU_MEM_LOCATION_TYPE_HOST, 0},
    {"host_with_id", CU_MEM_LOCATION_TYPE_HOST, 7},
    {"host_numa", CU_MEM_LOCATION_TYPE_HOST_NUMA, 0},
    {"host_numa_4000", CU_MEM_LOCATION_TYPE_HOST_NUMA, 4000},
    {"host_numa_current", CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0},
    {"unknown", (CUmemLocationType)77, 0},
};

/* ---- allocation ---- */

static void see_allocate(const char *what, size_t bytes, unsigned int flags)
{
    CUdeviceptr address = 1;
    CUresult res = drv.cuMemAllocManaged(&address, bytes, flags);

    fact(what, "%s, %s", result_name(res),
         address == 1   ? "unchanged"
         : address == 0 ? "zero"
                        : "address");
    if (res == CUDA_SUCCESS) {
        drv.cuMemFree(address);
    }
}

/* Documented: the flag says who may use it at first, all or the host alone;
 * zero bytes are an error. */
static void allocate(void)
{
    see_allocate("global", 4096, CU_MEM_ATTACH_GLOBAL);
    see_allocate("host", 4096, CU_MEM_ATTACH_HOST);
    see_allocate("single", 4096, CU_MEM_ATTACH_SINGLE);
    see_allocate("flags_0", 4096, 0);
    see_allocate("global_and_host", 4096, 3);
    see_allocate("flags_8", 4096, 8);
    see_allocate("zero_bytes", 0, CU_MEM_ATTACH_GLOBAL);
    see_allocate("one_byte", 1, CU_MEM_ATTACH_GLOBAL);
    SEE("null_output", cuMemAllocManaged(NULL, 4096, CU_MEM_ATTACH_GLOBAL));
}

static void alignment(void)
{
    static const size_t sizes[] = {1, 4096, 65536, 1 << 20, 4 << 20};
    char key[64];

    for (size_t i = 0; i < FIDELITY_COUNT(sizes); i++) {
        CUdeviceptr address[4] = {0};
        CUdeviceptr bits = 0;

        for (size_t k = 0; k < FIDELITY_COUNT(address); k++) {
            address[k] = make_managed(sizes[i]);
            bits |= address[k];
        }
        snprintf(key, sizeof key, "of_%zu", sizes[i]);
        fact(key, "%s",
             bits % PAGE_BYTES == 0 ? "at 2 MiB"
             : bits % 65536 == 0    ? "at 64 KiB"
             : bits % 4096 == 0     ? "at 4 KiB"
             : bits % 512 == 0      ? "at 512"
                                    : "at less");
        for (size_t k = 0; k < FIDELITY_COUNT(address); k++) {
            drv.cuMemFree(address[k]);
        }
    }
}

/* One address for the host and the device, and the same bytes. */
static void contents(void)
{
    CUdeviceptr address = make_managed(BYTES);
    unsigned char *bytes = (unsigned char *)(uintptr_t)address;

    fact_yes("fresh_is_zero", bytes[0] == 0 && bytes[BYTES - 1] == 0);
    memset(bytes, 3, BYTES);
    fact("device_sees", "%s", compare_bytes(address, 3, BYTES));
    fact_result("fill", fill_bytes(address, 4, BYTES));
    fact_yes("host_sees", bytes[0] == 4 && bytes[BYTES - 1] == 4);
    SEE("free", cuMemFree(address));
    SEE("free_again", cuMemFree(address));
}

static void given_back(void)
{
    CUdeviceptr address = make_managed(BYTES);

    SEE("interior", cuMemFree(address + 4096));
    SEE("as_pinned", cuMemFreeHost((void *)(uintptr_t)address));
    SEE("in_order", cuMemFreeAsync(address, CU_STREAM_LEGACY));
    SEE("synchronize", cuStreamSynchronize(CU_STREAM_LEGACY));
    SEE("again", cuMemFree(address));
}

/* ---- prefetching ---- */

static void see_prefetch(const char *what, CUdeviceptr address, size_t bytes,
                         CUmemLocation where, unsigned int flags)
{
    SEE(what,
        cuMemPrefetchAsync(address, bytes, where, flags, CU_STREAM_LEGACY));
}

/* Documented: to a device, the host or a NUMA node; the id of the host does
 * not matter; flags are zero. */
static void prefetch_locations(void)
{
    CUdeviceptr address = make_managed(BYTES);

    for (size_t i = 0; i < FIDELITY_COUNT(locations); i++) {
        see_prefetch(locations[i].name, address, BYTES,
                     location(locations[i].type, locations[i].id), 0);
    }
    see_prefetch("flags", address, BYTES, on_device(), 1);
    SEE("synchronize", cuStreamSynchronize(CU_STREAM_LEGACY));
    drv.cuMemFree(address);
}

static void prefetch_ranges(void)
{
    CUdeviceptr address = make_managed(BYTES);
    CUdeviceptr other = make_managed(BYTES);
    bool joined = other == address + BYTES;

    see_prefetch("interior", address + 4096, 4096, on_device(), 0);
    see_prefetch("odd", address + 5, 77, on_device(), 0);
    see_prefetch("zero_bytes", address, 0, on_device(), 0);
    see_prefetch("null", 0, BYTES, on_device(), 0);
    see_prefetch("null_zero_bytes", 0, 0, on_device(), 0);
    if (!joined) {
        see_prefetch("beyond", address, 16 * BYTES, on_device(), 0);
    }
    SEE("synchronize", cuStreamSynchronize(CU_STREAM_LEGACY));
    drv.cuMemFree(address);
    drv.cuMemFree(other);
    see_prefetch("freed", address, BYTES, on_device(), 0);
}

/* Documented: managed memory only. */
static void prefetch_others(void)
{
    CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
    struct mapping mapping;
    CUdeviceptr plain = 0;
    CUdeviceptr block = 0;
    void *pinned = NULL;
    void *heap = malloc(BYTES);

    drv.cuMemAlloc(&plain, BYTES);
    see_prefetch("plain", plain, BYTES, on_device(), 0);
    drv.cuMemFree(plain);
    drv.cuMemAllocAsync(&block, BYTES, stream);
    see_prefetch("pool_block", block, BYTES, on_device(), 0);
    drv.cuMemFreeAsync(block, stream);
    drv.cuMemHostAlloc(&pinned, BYTES, 0);
    see_prefetch("pinned", (CUdeviceptr)(uintptr_t)pinned, BYTES, on_device(),
                 0);
    drv.cuMemFreeHost(pinned);
    see_prefetch("heap", (CUdeviceptr)(uintptr_t)heap, BYTES, on_device(), 0);
    free(heap);
    if (mapping_make(&mapping, PAGE_BYTES)) {
        see_prefetch("virtual", mapping.address, PAGE_BYTES, on_device(), 0);
        mapping_drop(&mapping);
    }
    SEE("synchronize", cuStreamSynchronize(stream));
    drv.cuStreamDestroy(stream);
}

/* ---- what is remembered ---- */

#define RANGE(name)                                                           \
    {                                                                         \
#name, CU_MEM_RANGE_ATTRIBUTE_##name                                  \
    }

static const struct {
    const char *name;
    CUmem_range_attribute attribute;
} range_attributes[] = {
    RANGE(READ_MOSTLY),
    RANGE(PREFERRED_LOCATION),
    RANGE(PREFERRED_LOCATION_TYPE),
    RANGE(PREFERRED_LOCATION_ID),
    RANGE(ACCESSED_BY),
    RANGE(LAST_PREFETCH_LOCATION),
    RANGE(LAST_PREFETCH_LOCATION_TYPE),
    RANGE(LAST_PREFETCH_LOCATION_ID),
};

static void see_range_attribute(const char *what,
                                CUmem_range_attribute attribute,
                                CUdeviceptr address, size_t bytes)
{
    int value[2] = {99, 99};
    CUresult res = drv.cuMemRangeGetAttribute(
        value,
        attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY ? sizeof value
                                                        : sizeof value[0],
        attribute, address, bytes);

    if (res != CUDA_SUCCESS) {
        fact_result(what, res);
    } else if (attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY) {
        fact(what, "%d %d", value[0], value[1]);
    } else {
        fact_number(what, value[0]);
    }
}

static void see_range(const char *when, CUdeviceptr address, size_t bytes)
{
    char key[96];

    for (size_t i = 0; i < FIDELITY_COUNT(range_attributes); i++) {
        snprintf(key, sizeof key, "%s_%s", when, range_attributes[i].name);
        see_range_attribute(key, range_attributes[i].attribute, address,
                            bytes);
    }
}

static void see_advise(const char *what, CUdeviceptr address, size_t bytes,
                       CUmem_advise advice, CUmemLocation where)
{
    SEE(what, cuMemAdvise(address, bytes, advice, where));
}

static void range_defaults(void)
{
    CUdeviceptr address = make_managed(BYTES);

    see_range("fresh", address, BYTES);
    drv.cuMemFree(address);
}

static void range_prefetched(void)
{
    CUdeviceptr address = make_managed(BYTES);

    see_prefetch("to_device", address, BYTES, on_device(), 0);
    see_range("device", address, BYTES);
    see_prefetch("half_to_host", address, BYTES / 2,
                 location(CU_MEM_LOCATION_TYPE_HOST, 0), 0);
    see_range("half", address, BYTES);
    see_range("lower", address, BYTES / 2);
    see_range("upper", address + BYTES / 2, BYTES / 2);
    see_prefetch("to_numa", address, BYTES,
                 location(CU_MEM_LOCATION_TYPE_HOST_NUMA, 0), 0);
    see_range("numa", address, BYTES);
    SEE("synchronize", cuStreamSynchronize(CU_STREAM_LEGACY));
    see_range("synchronized", address, BYTES);
    drv.cuMemFree(address);
}

static void range_advised(void)
{
    CUdeviceptr address = make_managed(BYTES);

    see_advise("read_mostly", address, BYTES, CU_MEM_ADVISE_SET_READ_MOSTLY,
               on_device());
    see_range("read_mostly", address, BYTES);
    see_advise("not_read_mostly", address, BYTES / 2,
               CU_MEM_ADVISE_UNSET_READ_MOSTLY, on_device());
    see_range("half_read_mostly", address, BYTES);
    see_advise("preferred", address, BYTES,
               CU_MEM_ADVISE_SET_PREFERRED_LOCATION, on_device());
    see_range("preferred", address, BYTES);
    see_advise("preferred_host", address, BYTES,
               CU_MEM_ADVISE_SET_PREFERRED_LOCATION,
               location(CU_MEM_LOCATION_TYPE_HOST, 0));
    see_range("preferred_host", address, BYTES);
    see_advise("preferred_numa", address, BYTES,
               CU_MEM_ADVISE_SET_PREFERRED_LOCATION,
               location(CU_MEM_LOCATION_TYPE_HOST_NUMA, 0));
    see_range("preferred_numa", address, BYTES);
    see_advise("not_preferred", address, BYTES,
               CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, on_device());
    see_range("not_preferred", address, BYTES);
    see_advise("accessed_by", address, BYTES, CU_MEM_ADVISE_SET_ACCESSED_BY,
               on_device());
    see_advise("accessed_by_host", address, BYTES,
               CU_MEM_ADVISE_SET_ACCESSED_BY,
               location(CU_MEM_LOCATION_TYPE_HOST, 0));
    see_range("accessed_by", address, BYTES);
    see_advise("not_accessed_by", address, BYTES,
               CU_MEM_ADVISE_UNSET_ACCESSED_BY, on_device());
    see_range("not_accessed_by", address, BYTES);
    drv.cuMemFree(address);
}

/* Every advice with every location. */
static void advise_locations(void)
{
    static const char *const names[] = {
        "set_read_mostly", "unset_read_mostly", "set_preferred",
        "unset_preferred", "set_accessed_by",   "unset_accessed_by",
        "unknown",
    };
    CUdeviceptr address = make_managed(BYTES);
    char key[96];

    for (size_t a = 0; a < FIDELITY_COUNT(names); a++) {
        for (size_t i = 0; i < FIDELITY_COUNT(locations); i++) {
            snprintf(key, sizeof key, "%s_%s", names[a], locations[i].name);
            see_advise(key, address, BYTES, (CUmem_advise)(a + 1),
                       location(locations[i].type, locations[i].id));
        }
    }
    drv.cuMemFree(address);
}

static void advise_ranges(void)
{
    const CUmem_advise advice = CU_MEM_ADVISE_SET_READ_MOSTLY;
    CUdeviceptr address = make_managed(BYTES);
    struct mapping mapping;
    CUdeviceptr plain = 0;
    CUdeviceptr block = 0;
    void *pinned = NULL;
    void *heap = malloc(BYTES);

    see_advise("interior", address + 4096, 4096, advice, on_device());
    see_advise("odd", address + 5, 77, advice, on_device());
    see_advise("zero_bytes", address, 0, advice, on_device());
    see_advise("null", 0, BYTES, advice, on_device());
    drv.cuMemFree(address);
    see_advise("freed", address, BYTES, advice, on_device());
    drv.cuMemAlloc(&plain, BYTES);
    see_advise("plain", plain, BYTES, advice, on_device());
    drv.cuMemFree(plain);
    drv.cuMemAllocAsync(&block, BYTES, CU_STREAM_LEGACY);
    see_advise("pool_block", block, BYTES, advice, on_device());
    drv.cuMemFreeAsync(block, CU_STREAM_LEGACY);
    drv.cuMemHostAlloc(&pinned, BYTES, 0);
    see_advise("pinned", (CUdeviceptr)(uintptr_t)pinned, BYTES, advice,
               on_device());
    drv.cuMemFreeHost(pinned);
    see_advise("heap", (CUdeviceptr)(uintptr_t)heap, BYTES, advice,
               on_device());
    free(heap);
    if (mapping_make(&mapping, PAGE_BYTES)) {
        see_advise("virtual", mapping.address, PAGE_BYTES, advice,
                   on_device());
        mapping_drop(&mapping);
    }
}

/* Documented: 4 bytes, and for the list of devices a multiple of 4. */
static void range_arguments(void)
{
    const CUmem_range_attribute one = CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY;
    const CUmem_range_attribute list = CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY;
    CUdeviceptr address = make_managed(BYTES);
    CUdeviceptr plain = 0;
    int value[4] = {99, 99, 99, 99};
    void *heap = malloc(4096);

    SEE("size_0", cuMemRangeGetAttribute(value, 0, one, address, BYTES));
    SEE("size_2", cuMemRangeGetAttribute(value, 2, one, address, BYTES));
    SEE("size_8", cuMemRangeGetAttribute(value, 8, one, address, BYTES));
    SEE("list_0", cuMemRangeGetAttribute(value, 0, list, address, BYTES));
    SEE("list_4", cuMemRangeGetAttribute(value, 4, list, address, BYTES));
    SEE("list_6", cuMemRangeGetAttribute(value, 6, list, address, BYTES));
    SEE("list_16", cuMemRangeGetAttribute(value, 16, list, address, BYTES));
    fact("list_16_is", "%d %d %d %d", value[0], value[1], value[2], value[3]);
    SEE("null_output", cuMemRangeGetAttribute(NULL, 4, one, address, BYTES));
    SEE("unknown", cuMemRangeGetAttribute(value, 4, (CUmem_range_attribute)99,
                                          address, BYTES));
    SEE("zero", cuMemRangeGetAttribute(value, 4, (CUmem_range_attribute)0,
                                       address, BYTES));
    SEE("zero_bytes", cuMemRangeGetAttribute(value, 4, one, address, 0));
    SEE("interior",
        cuMemRangeGetAttribute(value, 4, one, address + 4096, 4096));
    SEE("odd", cuMemRangeGetAttribute(value, 4, one, address + 5, 77));
    SEE("null", cuMemRangeGetAttribute(value, 4, one, 0, BYTES));
    drv.cuMemFree(address);
    SEE("freed", cuMemRangeGetAttribute(value, 4, one, address, BYTES));
    drv.cuMemAlloc(&plain, BYTES);
    SEE("plain", cuMemRangeGetAttribute(value, 4, one, plain, BYTES));
    drv.cuMemFree(plain);
    SEE("heap", cuMemRangeGetAttribute(value, 4, one,
                                       (CUdeviceptr)(uintptr_t)heap, 4096));
    free(heap);
}

/* Several at once. */
static void range_several(void)
{
    CUmem_range_attribute attributes[] = {
        CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
        CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE};
    CUdeviceptr address = make_managed(BYTES);
    int mostly = 99;
    int type = 99;
    void *data[] = {&mostly, &type};
    size_t sizes[] = {sizeof mostly, sizeof type};

    SEE("both",
        cuMemRangeGetAttributes(data, sizes, attributes, 2, address, BYTES));
    fact("both_are", "%d %d", mostly, type);
    SEE("none",
        cuMemRangeGetAttributes(data, sizes, attributes, 0, address, BYTES));
    sizes[1] = 2;
    SEE("wrong_size",
        cuMemRangeGetAttributes(data, sizes, attributes, 2, address, BYTES));
    drv.cuMemFree(address);
}

/* ---- attaching to streams ---- */

/* Documented: to all, to the host, or to one stream that is not a default
 * one; the whole block, given as its size or 0. */
static void attach(void)
{
    CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr address = make_managed(BYTES);

    SEE("single",
        cuStreamAttachMemAsync(stream, address, 0, CU_MEM_ATTACH_SINGLE));
    SEE("host",
        cuStreamAttachMemAsync(stream, address, BYTES, CU_MEM_ATTACH_HOST));
    SEE("global",
        cuStreamAttachMemAsync(stream, address, 0, CU_MEM_ATTACH_GLOBAL));
    SEE("global_by_legacy", cuStreamAttachMemAsync(CU_STREAM_LEGACY, address,
                                                   0, CU_MEM_ATTACH_GLOBAL));
    SEE("synchronize", cuStreamSynchronize(stream));
    drv.cuStreamDestroy(stream);
    drv.cuMemFree(address);
}

/* What is wrong may be found out at once or not: a case each. */
static void see_attach(CUstream stream, CUdeviceptr address, size_t bytes,
                       unsigned int flags)
{
    SEE("result", cuStreamAttachMemAsync(stream, address, bytes, flags));
    SEE("synchronize", cuCtxSynchronize());
}

static void attach_part(void)
{
    see_attach(make_stream(CU_STREAM_NON_BLOCKING), make_managed(BYTES), 4096,
               CU_MEM_ATTACH_GLOBAL);
}

static void attach_interior(void)
{
    see_attach(make_stream(CU_STREAM_NON_BLOCKING), make_managed(BYTES) + 4096,
               0, CU_MEM_ATTACH_GLOBAL);
}

static void attach_single_to_legacy(void)
{
    see_attach(CU_STREAM_LEGACY, make_managed(BYTES), 0, CU_MEM_ATTACH_SINGLE);
}

static void attach_plain(void)
{
    CUdeviceptr plain = 0;

    drv.cuMemAlloc(&plain, BYTES);
    see_attach(make_stream(CU_STREAM_NON_BLOCKING), plain, 0,
               CU_MEM_ATTACH_GLOBAL);
}

static void attach_without_flags(void)
{
    see_attach(make_stream(CU_STREAM_NON_BLOCKING), make_managed(BYTES), 0, 0);
}

/* ---- pools ---- */

static void see_managed_pool(CUmemLocationType type)
{
    CUmemPoolProps props = pool_properties(0);
    CUmemoryPool pool = NULL;
    CUdeviceptr block = 0;
    CUresult res;

    props.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED;
    props.location.type = type;
    res = drv.cuMemPoolCreate(&pool, &props);
    fact_result("create", res);
    if (res != CUDA_SUCCESS) {
        return;
    }
    SEE("allocate",
        cuMemAllocFromPoolAsync(&block, BYTES, pool, CU_STREAM_LEGACY));
    SEE("synchronize", cuStreamSynchronize(CU_STREAM_LEGACY));
    if (block == 0) {
        return;
    }
    see_pointer(block);
    fact_result("fill", fill_bytes(block, 7, BYTES));
    fact_yes("host_sees", *(unsigned char *)(uintptr_t)(block + 99) == 7);
    see_range("fresh", block, BYTES);
    see_prefetch("prefetch", block, BYTES,
                 location(CU_MEM_LOCATION_TYPE_HOST, 0), 0);
    see_advise("advise_read_mostly", block, BYTES,
               CU_MEM_ADVISE_SET_READ_MOSTLY, on_device());
    see_advise("advise_preferred", block, BYTES,
               CU_MEM_ADVISE_SET_PREFERRED_LOCATION, on_device());
    see_advise("advise_accessed_by", block, BYTES,
               CU_MEM_ADVISE_SET_ACCESSED_BY, on_device());
    see_range("advised", block, BYTES);
    SEE("free", cuMemFreeAsync(block, CU_STREAM_LEGACY));
    SEE("synchronize_free", cuStreamSynchronize(CU_STREAM_LEGACY));
    SEE("destroy", cuMemPoolDestroy(pool));
}

static void pool_on_device(void)
{
    see_managed_pool(CU_MEM_LOCATION_TYPE_DEVICE);
}

static void pool_nowhere(void)
{
    see_managed_pool(CU_MEM_LOCATION_TYPE_NONE);
}

static void pool_on_host(void)
{
    see_managed_pool(CU_MEM_LOCATION_TYPE_HOST);
}

static void pool_on_numa(void)
{
    see_managed_pool(CU_MEM_LOCATION_TYPE_HOST_NUMA);
}

/* Documented: managed pools have no greatest size, and can't be shared. */
static void pool_properties_wrong(void)
{
    CUmemPoolProps props = pool_properties(0);
    CUmemoryPool pool = NULL;

    props.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED;
    props.maxSize = 64 * MIB;
    SEE("max_size", cuMemPoolCreate(&pool, &props));
    props.maxSize = 0;
    props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    SEE("posix", cuMemPoolCreate(&pool, &props));
}

/* The pools that are there without being made. */
static void standard_pools(void)
{
    static const struct {
        const char *name;
        CUmemAllocationType type;
    } types[] = {
        {"pinned", CU_MEM_ALLOCATION_TYPE_PINNED},
        {"managed", CU_MEM_ALLOCATION_TYPE_MANAGED},
        {"unknown", (CUmemAllocationType)77},
    };
    char key[96];

    for (size_t t = 0; t < FIDELITY_COUNT(types); t++) {
        for (size_t i = 0; i < FIDELITY_COUNT(locations); i++) {
            CUmemLocation where = location(locations[i].type, locations[i].id);
            CUmemoryPool pool = NULL;
            CUmemoryPool current = NULL;
            CUresult res;

            snprintf(key, sizeof key, "%s_%s", types[t].name,
                     locations[i].name);
            res = drv.cuMemGetDefaultMemPool(&pool, &where, types[t].type);
            if (res != CUDA_SUCCESS) {
                fact_result(key, res);
                continue;
            }
            res = drv.cuMemGetMemPool(&current, &where, types[t].type);
            fact(key, "%s, current %s", pool != NULL ? "there" : "NULL",
                 res != CUDA_SUCCESS ? result_name(res)
                 : current == pool   ? "too"
                                     : "another");
        }
    }
}

/* Many prefetches at once, and what is no batch. */
static void prefetch_batch(void)
{
    CUmemLocation places[2];
    CUdeviceptr ranges[2] = {0, 0};
    size_t sizes[2] = {65536, 65536};
    size_t firsts[2] = {0, 1};
    CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);

    memset(places, 0, sizeof places);
    places[0].type = CU_MEM_LOCATION_TYPE_DEVICE;
    places[1].type = CU_MEM_LOCATION_TYPE_HOST;
    SEE("allocate",
        cuMemAllocManaged(&ranges[0], 4 * 65536, CU_MEM_ATTACH_GLOBAL));
    ranges[1] = ranges[0] + 2 * 65536;
    SEE("two_places", cuMemPrefetchBatchAsync(ranges, sizes, 2, places, firsts,
                                              2, 0, stream));
    SEE("one_place", cuMemPrefetchBatchAsync(ranges, sizes, 2, places, firsts,
                                             1, 0, stream));
    SEE("flags", cuMemPrefetchBatchAsync(ranges, sizes, 2, places, firsts, 1,
                                         1, stream));
    SEE("legacy", cuMemPrefetchBatchAsync(ranges, sizes, 2, places, firsts, 1,
                                          0, CU_STREAM_LEGACY));
    SEE("none", cuMemPrefetchBatchAsync(ranges, sizes, 0, places, firsts, 0, 0,
                                        stream));
    firsts[1] = 2;
    SEE("place_beyond", cuMemPrefetchBatchAsync(ranges, sizes, 2, places,
                                                firsts, 2, 0, stream));
    firsts[0] = 1;
    SEE("first_not_0", cuMemPrefetchBatchAsync(ranges, sizes, 2, places,
                                               firsts, 1, 0, stream));
    drv.cuStreamSynchronize(stream);
    drv.cuMemFree(ranges[0]);
    drv.cuStreamDestroy(stream);
}

static const struct fidelity_case managed_cases[] = {
    FIDELITY_CASE(allocate),
    FIDELITY_CASE(alignment),
    FIDELITY_CASE(contents),
    FIDELITY_CASE(given_back),
    FIDELITY_CASE(prefetch_locations),
    FIDELITY_CASE(prefetch_ranges),
    FIDELITY_CASE(prefetch_others),
    FIDELITY_CASE(range_defaults),
    FIDELITY_CASE(range_prefetched),
    FIDELITY_CASE(range_advised),
    FIDELITY_CASE(advise_locations),
    FIDELITY_CASE(advise_ranges),
    FIDELITY_CASE(range_arguments),
    FIDELITY_CASE(range_several),
    FIDELITY_CASE(attach),
    FIDELITY_CASE(pool_on_device),
    FIDELITY_CASE(pool_nowhere),
    FIDELITY_CASE(pool_on_host),
    FIDELITY_CASE(pool_on_numa),
    FIDELITY_CASE(pool_properties_wrong),
    FIDELITY_CASE(standard_pools),
    FIDELITY_CASE(attach_part),
    FIDELITY_CASE(attach_interior),
    FIDELITY_CASE(attach_single_to_legacy),
    FIDELITY_CASE(attach_plain),
    FIDELITY_CASE(attach_without_flags),
    FIDELITY_CASE(prefetch_batch),
    FIDELITY_END,
};

const struct fidelity_topic managed_topic = {
    "managed",
    managed_cases,
    NULL,
    NULL,
    false,
    LIMIT_MS,
    "Documented: advice and prefetches hold for pages. Which places are "
    "taken and what is told of ranges was measured.",
};
