/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plain device memory and pinned host memory; what a driver says of pointers;
 * copies and fills.
 */
#include "tests/fidelity/calls.h"
#include "tests/fidelity/facts.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { LIMIT_MS = 5000, MIB = 1 << 20, SAMPLES = 16 };

/* ---- plain: cuMemAlloc and cuMemFree ---- */

static void see_alloc(const char *what, size_t bytes)
{
    char key[64];
    CUdeviceptr address = 1;
    CUresult res = drv.cuMemAlloc(&address, bytes);

    fact_result(what, res);
    snprintf(key, sizeof key, "%s_output", what);
    fact(key, "%s",
         address == 1   ? "unchanged"
         : address == 0 ? "zero"
                        : "address");
    if (res == CUDA_SUCCESS) {
        snprintf(key, sizeof key, "%s_free", what);
        SEE(key, cuMemFree(address));
    }
}

static void sizes(void)
{
    size_t total = 0;

    drv.cuDeviceTotalMem(&total, 0);
    see_alloc("zero", 0);
    see_alloc("one", 1);
    see_alloc("more_than_total", total + 2 * (size_t)MIB);
    see_alloc("twice_total", 2 * total);
    see_alloc("terabytes", (size_t)1 << 46);
    see_alloc("half_of_size_max", SIZE_MAX / 2);
    see_alloc("size_max", SIZE_MAX);
    see_alloc("size_max_rounded", SIZE_MAX & ~(size_t)(2 * MIB - 1));
    SEE("null", cuMemAlloc(NULL, 4096));
}

/* Documented: suitably aligned for any variable; in fact 256 or more. */
static void see_alignment(const char *what, size_t bytes)
{
    CUdeviceptr address[SAMPLES] = {0};
    CUdeviceptr bits = 0;
    char key[64];

    for (size_t i = 0; i < SAMPLES; i++) {
        if (drv.cuMemAlloc(&address[i], bytes) == CUDA_SUCCESS) {
            bits |= address[i];
        }
    }
    snprintf(key, sizeof key, "%s_multiples_of_256", what);
    fact_yes(key, bits % 256 == 0);
    snprintf(key, sizeof key, "%s_multiples_of_512", what);
    fact_yes(key, bits % 512 == 0);
    snprintf(key, sizeof key, "%s_multiples_of_1024", what);
    fact_yes(key, bits % 1024 == 0);
    snprintf(key, sizeof key, "%s_multiples_of_2MiB", what);
    fact_yes(key, bits % (2 * MIB) == 0);
    for (size_t i = 0; i < SAMPLES; i++) {
        drv.cuMemFree(address[i]);
    }
}

static void alignment(void)
{
    see_alignment("1", 1);
    see_alignment("300", 300);
    see_alignment("512", 512);
    see_alignment("700", 700);
    see_alignment("1MiB", MIB);
    see_alignment("2MiB", 2 * MIB);
    see_alignment("3MiB", 3 * MIB);
    see_alignment("64MiB", (size_t)64 * MIB);
}

/* How much of the device's memory an allocation takes. */
static void see_taken(const char *what, size_t bytes)
{
    CUdeviceptr address = 0;
    size_t before = 0;
    size_t during = 0;
    size_t after = 0;
    size_t total = 0;
    char key[64];

    drv.cuMemGetInfo(&before, &total);
    drv.cuMemAlloc(&address, bytes);
    drv.cuMemGetInfo(&during, &total);
    drv.cuMemFree(address);
    drv.cuMemGetInfo(&after, &total);
    fact_number(what, ((long long)before - (long long)during) / 1024);
    snprintf(key, sizeof key, "%s_given_back", what);
    fact_number(key, ((long long)after - (long long)during) / 1024);
}

/* In KiB; the first small one may take a new piece of 2 MiB. */
static void taken(void)
{
    CUdeviceptr first = 0;

    drv.cuMemAlloc(&first, 4096);
    see_taken("second_4KiB", 4096);
    see_taken("1MiB", MIB);
    see_taken("2MiB", 2 * MIB);
    see_taken("3MiB", 3 * MIB);
    see_taken("4MiB", 4 * MIB);
    see_taken("64MiB", (size_t)64 * MIB);
    drv.cuMemFree(first);
}

static void info(void)
{
    size_t available = 0;
    size_t total = 0;
    size_t device_total = 0;

    SEE("result", cuMemGetInfo(&available, &total));
    drv.cuDeviceTotalMem(&device_total, 0);
    fact_yes("total_is_device_total", total == device_total);
    fact_yes("free_below_total", available < total);
    SEE("null_free", cuMemGetInfo(NULL, &total));
    SEE("null_total", cuMemGetInfo(&available, NULL));
}

static void free_null(void)
{
    SEE("result", cuMemFree(0));
}

/* Documented: an address that cuMemAlloc and its kin did not return gives
 * INVALID_VALUE. */
static void free_wrong(void)
{
    CUdeviceptr address = 0;
    int local = 0;

    drv.cuMemAlloc(&address, 4096);
    SEE("low_garbage", cuMemFree(0x1234));
    SEE("high_garbage", cuMemFree((CUdeviceptr)0xdeadbeef00000000ULL));
    SEE("host_stack", cuMemFree((CUdeviceptr)(uintptr_t)&local));
    SEE("interior", cuMemFree(address + 512));
    SEE("interior_odd", cuMemFree(address + 1));
    SEE("beyond", cuMemFree(address + 4096));
    SEE("right", cuMemFree(address));
}

static void free_twice(void)
{
    CUdeviceptr address = 0;

    drv.cuMemAlloc(&address, 4 * MIB);
    SEE("once", cuMemFree(address));
    SEE("twice", cuMemFree(address));
}

static void free_twice_small(void)
{
    CUdeviceptr address = 0;
    CUdeviceptr neighbour = 0;

    drv.cuMemAlloc(&neighbour, 4096);
    drv.cuMemAlloc(&address, 4096);
    SEE("once", cuMemFree(address));
    SEE("twice", cuMemFree(address));
    SEE("neighbour", cuMemFree(neighbour));
}

/* Documented: cuMemFree takes blocks of pools too, and then synchronises. */
static void free_pool_block(void)
{
    CUdeviceptr address = 0;

    SEE("alloc", cuMemAllocAsync(&address, 4096, CU_STREAM_LEGACY));
    SEE("free", cuMemFree(address));
    SEE("free_twice", cuMemFree(address));
}

static void free_pinned(void)
{
    void *pinned = NULL;

    drv.cuMemHostAlloc(&pinned, 4096, 0);
    SEE("result", cuMemFree((CUdeviceptr)(uintptr_t)pinned));
    SEE("free_host_after", cuMemFreeHost(pinned));
}

/* The other way round: a plain block given to the pools' free. */
static void free_async_plain(void)
{
    CUdeviceptr address = 0;

    drv.cuMemAlloc(&address, 4096);
    SEE("result", cuMemFreeAsync(address, CU_STREAM_LEGACY));
    SEE("synchronize", cuStreamSynchronize(CU_STREAM_LEGACY));
    SEE("free_after", cuMemFree(address));
}

static void range(void)
{
    CUdeviceptr address = 0;
    CUdeviceptr base = 0;
    size_t bytes = 0;

    drv.cuMemAlloc(&address, 1000);
    SEE("interior", cuMemGetAddressRange(&base, &bytes, address + 10));
    fact_yes("base", base == address);
    fact_number("bytes", (long long)bytes);
    SEE("beyond", cuMemGetAddressRange(&base, &bytes, address + 1000));
    SEE("null_outputs", cuMemGetAddressRange(NULL, NULL, address));
    SEE("garbage", cuMemGetAddressRange(&base, &bytes, 0x1234));
    drv.cuMemFree(address);
    SEE("freed", cuMemGetAddressRange(&base, &bytes, address));
}

/* Fresh plain memory goes out again at the same address, or not. */
static void reuse(void)
{
    CUdeviceptr first = 0;
    CUdeviceptr second = 0;

    drv.cuMemAlloc(&first, 8 * MIB);
    drv.cuMemFree(first);
    drv.cuMemAlloc(&second, 8 * MIB);
    fact_yes("same_address", first == second);
    drv.cuMemFree(second);
}

/* A caller that swallows an out-of-memory answer can go on. */
static void after_failure(void)
{
    CUdeviceptr address = 0;

    SEE("fails", cuMemAlloc(&address, (size_t)1 << 46));
    SEE("works", cuMemAlloc(&address, 4096));
    SEE("synchronize", cuCtxSynchronize());
    SEE("free", cuMemFree(address));
}

static const struct fidelity_case plain_cases[] = {
    FIDELITY_CASE(sizes),
    FIDELITY_CASE(alignment),
    FIDELITY_CASE(taken),
    FIDELITY_CASE(info),
    FIDELITY_CASE(free_null),
    FIDELITY_CASE(free_wrong),
    FIDELITY_CASE(free_twice),
    FIDELITY_CASE(free_twice_small),
    FIDELITY_CASE(free_pool_block),
    FIDELITY_CASE(free_pinned),
    FIDELITY_CASE(free_async_plain),
    FIDELITY_CASE(range),
    FIDELITY_CASE(reuse),
    FIDELITY_CASE(after_failure),
    FIDELITY_END,
};

const struct fidelity_topic plain_topic = {
    "plain",
    plain_cases,
    NULL,
    NULL,
    false,
    LIMIT_MS,
    "Documented: blocks are aligned for any type, and a free may wait for "
    "the device. Alignment, sharing of pages and answers were measured.",
};

/* ---- pinned: cuMemHostAlloc and its kin ---- */

static void see_pinned(const char *what, unsigned int flags)
{
    CUdeviceptr device = 0;
    unsigned int answer = 0;
    void *pinned = NULL;
    char key[64];
    CUresult res = drv.cuMemHostAlloc(&pinned, 4096, flags);

    fact_result(what, res);
    if (res != CUDA_SUCCESS) {
        return;
    }
    snprintf(key, sizeof key, "%s_flags", what);
    res = drv.cuMemHostGetFlags(&answer, pinned);
    fact(key, "%s, %u", result_name(res), answer);
    snprintf(key, sizeof key, "%s_device_pointer", what);
    res = drv.cuMemHostGetDevicePointer(&device, pinned, 0);
    fact(key, "%s, %s", result_name(res),
         device == (CUdeviceptr)(uintptr_t)pinned ? "same" : "differs");
    snprintf(key, sizeof key, "%s_free", what);
    SEE(key, cuMemFreeHost(pinned));
}

/* Documented: portable 1, mapped 2, write-combined 4; with unified addressing
 * all is portable and mapped, and only write-combined memory may have another
 * device pointer. */
static void flag_combinations(void)
{
    see_pinned("none", 0);
    see_pinned("portable", CU_MEMHOSTALLOC_PORTABLE);
    see_pinned("mapped", CU_MEMHOSTALLOC_DEVICEMAP);
    see_pinned("write_combined", CU_MEMHOSTALLOC_WRITECOMBINED);
    see_pinned("all", CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP |
                          CU_MEMHOSTALLOC_WRITECOMBINED);
    see_pinned("unknown", 8);
    see_pinned("unknown_high", 1u << 30);
}

static void see_pinned_size(const char *what, size_t bytes)
{
    void *pinned = (void *)(uintptr_t)1;
    char key[64];
    CUresult res = drv.cuMemHostAlloc(&pinned, bytes, 0);

    fact_result(what, res);
    snprintf(key, sizeof key, "%s_output", what);
    fact(key, "%s",
         pinned == (void *)(uintptr_t)1 ? "unchanged"
         : pinned == NULL               ? "zero"
                                        : "address");
    if (res == CUDA_SUCCESS) {
        drv.cuMemFreeHost(pinned);
    }
}

static void pinned_sizes(void)
{
    void *pinned = NULL;
    CUresult res;

    see_pinned_size("zero", 0);
    see_pinned_size("one", 1);
    see_pinned_size("terabytes", (size_t)1 << 46);
    see_pinned_size("size_max", SIZE_MAX);
    SEE("null", cuMemHostAlloc(NULL, 4096, 0));
    res = drv.cuMemAllocHost(&pinned, 0);
    fact_result("alloc_host_zero", res);
    if (res == CUDA_SUCCESS) {
        drv.cuMemFreeHost(pinned);
    }
}

static void pinned_alignment(void)
{
    void *pinned[SAMPLES] = {NULL};
    uintptr_t bits = 0;

    for (size_t i = 0; i < SAMPLES; i++) {
        drv.cuMemHostAlloc(&pinned[i], 100, 0);
        bits |= (uintptr_t)pinned[i];
    }
    fact_yes("multiples_of_256", bits % 256 == 0);
    fact_yes("multiples_of_512", bits % 512 == 0);
    fact_yes("multiples_of_4096", bits % 4096 == 0);
    for (size_t i = 0; i < SAMPLES; i++) {
        drv.cuMemFreeHost(pinned[i]);
    }
}

/* Blocks of one size, each behind a small one. */
static void see_packing(const char *name, size_t bytes)
{
    void *pinned[SAMPLES] = {NULL};
    void *small[SAMPLES] = {NULL};
    uintptr_t bits = 0;
    char key[64];

    for (size_t i = 0; i < SAMPLES; i++) {
        drv.cuMemHostAlloc(&small[i], 100, 0);
        drv.cuMemHostAlloc(&pinned[i], bytes, 0);
        bits |= (uintptr_t)pinned[i];
    }
    snprintf(key, sizeof key, "%s_multiples_of_512", name);
    fact_yes(key, bits % 512 == 0);
    snprintf(key, sizeof key, "%s_multiples_of_4096", name);
    fact_yes(key, bits % 4096 == 0);
    for (size_t i = 0; i < SAMPLES; i++) {
        drv.cuMemFreeHost(small[i]);
        drv.cuMemFreeHost(pinned[i]);
    }
}

/* Not documented: whole pages lie on page boundaries only from 2 MiB on. */
static void pinned_packing(void)
{
    see_packing("4_kib", 4096);
    see_packing("128_kib", (size_t)128 * 1024);
    see_packing("1_mib", MIB);
    see_packing("2_mib", (size_t)2 * MIB);
    see_packing("8_mib", (size_t)8 * MIB);
}

static void pinned_wrong(void)
{
    void *pinned = NULL;
    void *heap = malloc(4096);
    CUdeviceptr device = 0;

    drv.cuMemHostAlloc(&pinned, 4096, 0);
    drv.cuMemAlloc(&device, 4096);
    SEE("free_null", cuMemFreeHost(NULL));
    SEE("free_garbage", cuMemFreeHost((void *)(uintptr_t)0x1234));
    SEE("free_heap", cuMemFreeHost(heap));
    SEE("free_interior", cuMemFreeHost((char *)pinned + 512));
    SEE("free_device", cuMemFreeHost((void *)(uintptr_t)device));
    SEE("free", cuMemFreeHost(pinned));
    SEE("free_twice", cuMemFreeHost(pinned));
    drv.cuMemFree(device);
    free(heap);
}

static void pinned_queries(void)
{
    CUdeviceptr device = 0;
    unsigned int answer = 0;
    void *pinned = NULL;
    void *heap = malloc(4096);

    drv.cuMemHostAlloc(&pinned, 4096, 0);
    SEE("interior_pointer",
        cuMemHostGetDevicePointer(&device, (char *)pinned + 16, 0));
    fact_yes("interior_same",
             device == (CUdeviceptr)(uintptr_t)((char *)pinned + 16));
    SEE("interior_flags", cuMemHostGetFlags(&answer, (char *)pinned + 16));
    SEE("bad_flags", cuMemHostGetDevicePointer(&device, pinned, 1));
    SEE("heap_pointer", cuMemHostGetDevicePointer(&device, heap, 0));
    SEE("heap_flags", cuMemHostGetFlags(&answer, heap));
    SEE("null_pointer", cuMemHostGetDevicePointer(&device, NULL, 0));
    SEE("null_flags", cuMemHostGetFlags(&answer, NULL));
    drv.cuMemFreeHost(pinned);
    free(heap);
}

static void registered(void)
{
    size_t bytes = 16384;
    CUdeviceptr device = 0;
    unsigned int answer = 0;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    SEE("register", cuMemHostRegister(memory, bytes, 0));
    SEE("again", cuMemHostRegister(memory, bytes, 0));
    SEE("overlapping", cuMemHostRegister(memory + 4096, 4096, 0));
    SEE("pointer", cuMemHostGetDevicePointer(&device, memory, 0));
    fact_yes("pointer_same", device == (CUdeviceptr)(uintptr_t)memory);
    SEE("flags", cuMemHostGetFlags(&answer, memory));
    fact_number("flags_value", answer);
    SEE("free_host", cuMemFreeHost(memory));
    SEE("unregister_interior", cuMemHostUnregister(memory + 4096));
    SEE("unregister", cuMemHostUnregister(memory));
    SEE("unregister_again", cuMemHostUnregister(memory));
    SEE("odd_address", cuMemHostRegister(memory + 100, 1000, 0));
    SEE("odd_unregister", cuMemHostUnregister(memory + 100));
    SEE("null", cuMemHostRegister(NULL, bytes, 0));
    SEE("zero", cuMemHostRegister(memory, 0, 0));
    munmap(memory, bytes);
}

static const struct fidelity_case pinned_cases[] = {
    FIDELITY_CASE(flag_combinations), FIDELITY_CASE(pinned_sizes),
    FIDELITY_CASE(pinned_alignment),  FIDELITY_CASE(pinned_packing),
    FIDELITY_CASE(pinned_wrong),      FIDELITY_CASE(pinned_queries),
    FIDELITY_CASE(registered),        FIDELITY_END,
};

const struct fidelity_topic pinned_topic = {
    "pinned",
    pinned_cases,
    NULL,
    NULL,
    false,
    LIMIT_MS,
    "Documented: what each flag means. Which combinations are taken, "
    "alignment and packing were measured.",
};

/* ---- pointer: attributes of each kind of memory ---- */

static void see_attribute(CUdeviceptr address, const char *name,
                          CUpointer_attribute attribute, bool is_handle,
                          CUdeviceptr itself)
{
    unsigned char bytes[16];
    unsigned long long value;
    CUresult res;

    memset(bytes, 0, sizeof bytes);
    res = drv.cuPointerGetAttribute(bytes, attribute, address);
    memcpy(&value, bytes, sizeof value);
    if (res != CUDA_SUCCESS) {
        fact_result(name, res);
    } else if (is_handle) {
        fact(name, "%s",
             value == 0        ? "zero"
             : value == itself ? "itself"
                               : "set");
    } else {
        fact_number(name, (long long)(value & 0xffffffffULL));
    }
}

#define POINTER(name, is_handle)                                              \
    {                                                                         \
#name, CU_POINTER_ATTRIBUTE_##name, is_handle                         \
    }

void see_pointer(CUdeviceptr address)
{
    static const struct {
        const char *name;
        CUpointer_attribute attribute;
        bool is_handle;
    } list[] = {
        POINTER(CONTEXT, true),
        POINTER(MEMORY_TYPE, false),
        POINTER(DEVICE_POINTER, true),
        POINTER(HOST_POINTER, true),
        POINTER(SYNC_MEMOPS, false),
        POINTER(BUFFER_ID, true),
        POINTER(IS_MANAGED, false),
        POINTER(DEVICE_ORDINAL, false),
        POINTER(IS_LEGACY_CUDA_IPC_CAPABLE, false),
        POINTER(RANGE_START_ADDR, true),
        POINTER(RANGE_SIZE, false),
        POINTER(MAPPED, false),
        POINTER(ALLOWED_HANDLE_TYPES, false),
        POINTER(IS_GPU_DIRECT_RDMA_CAPABLE, false),
        POINTER(MEMPOOL_HANDLE, true),
    };

    for (size_t i = 0; i < FIDELITY_COUNT(list); i++) {
        see_attribute(address, list[i].name, list[i].attribute,
                      list[i].is_handle, address);
    }
}

static void of_plain(void)
{
    CUdeviceptr address = 0;

    drv.cuMemAlloc(&address, 8192);
    see_pointer(address);
    drv.cuMemFree(address);
}

static void of_plain_interior(void)
{
    CUdeviceptr address = 0;

    drv.cuMemAlloc(&address, 8192);
    see_pointer(address + 100);
    drv.cuMemFree(address);
}

static void of_freed(void)
{
    CUdeviceptr address = 0;

    drv.cuMemAlloc(&address, 8 * MIB);
    drv.cuMemFree(address);
    see_pointer(address);
}

static void of_pool_block(void)
{
    CUdeviceptr address = 0;

    drv.cuMemAllocAsync(&address, 8192, CU_STREAM_LEGACY);
    see_pointer(address);
    drv.cuMemFreeAsync(address, CU_STREAM_LEGACY);
}

static void of_own_pool_block(void)
{
    CUmemPoolProps props = pool_properties(0);
    CUmemoryPool pool = NULL;
    CUmemoryPool found = NULL;
    CUdeviceptr address = 0;

    drv.cuMemPoolCreate(&pool, &props);
    drv.cuMemAllocFromPoolAsync(&address, 8192, pool, CU_STREAM_LEGACY);
    see_pointer(address);
    drv.cuPointerGetAttribute(&found, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE,
                              address);
    fact_yes("pool_is_ours", found == pool);
    drv.cuMemFreeAsync(address, CU_STREAM_LEGACY);
    drv.cuStreamSynchronize(CU_STREAM_LEGACY);
    drv.cuMemPoolDestroy(pool);
}

static void of_pinned(void)
{
    void *pinned = NULL;

    drv.cuMemHostAlloc(&pinned, 8192, 0);
    see_pointer((CUdeviceptr)(uintptr_t)pinned);
    drv.cuMemFreeHost(pinned);
}

static void of_managed(void)
{
    CUdeviceptr address = 0;

    drv.cuMemAllocManaged(&address, 8192, CU_MEM_ATTACH_GLOBAL);
    see_pointer(address);
    drv.cuMemFree(address);
}

static void of_heap(void)
{
    void *heap = malloc(8192);

    see_pointer((CUdeviceptr)(uintptr_t)heap);
    free(heap);
}

static void of_null(void)
{
    see_pointer(0);
}

/* Documented: the plural call does not fail for foreign pointers, it answers
 * with zeroes. */
static void plural(void)
{
    CUpointer_attribute list[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                  CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    unsigned int type = 99;
    int ordinal = 99;
    void *data[] = {&type, &ordinal};
    void *heap = malloc(8192);
    CUdeviceptr address = 0;

    drv.cuMemAlloc(&address, 4096);
    SEE("plain", cuPointerGetAttributes(2, list, data, address));
    fact("plain_values", "%u %d", type, ordinal);
    drv.cuMemFree(address);
    SEE("heap",
        cuPointerGetAttributes(2, list, data, (CUdeviceptr)(uintptr_t)heap));
    fact("heap_values", "%u %d", type, ordinal);
    SEE("none", cuPointerGetAttributes(0, list, data, address));
    free(heap);
}

static const struct fidelity_case pointer_cases[] = {
    FIDELITY_CASE(of_plain),
    FIDELITY_CASE(of_plain_interior),
    FIDELITY_CASE(of_freed),
    FIDELITY_CASE(of_pool_block),
    FIDELITY_CASE(of_own_pool_block),
    FIDELITY_CASE(of_pinned),
    FIDELITY_CASE(of_managed),
    FIDELITY_CASE(of_heap),
    FIDELITY_CASE(of_null),
    FIDELITY_CASE(plural),
    FIDELITY_END,
};

const struct fidelity_topic pointer_topic = {
    "pointer",
    pointer_cases,
    NULL,
    NULL,
    false,
    LIMIT_MS,
    "Documented: what each attribute tells, and for which memory there is "
    "none. What stands there then was measured.",
};

/* ---- copy: arguments of copies and fills ---- */

static void fills(void)
{
    CUdeviceptr a = 0;
    CUstream stream = NULL;

    drv.cuMemAlloc(&a, 4096);
    drv.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    SEE("zero_bytes", cuMemsetD8Async(a, 1, 0, stream));
    SEE("null", cuMemsetD8Async(0, 1, 16, stream));
    SEE("null_zero_bytes", cuMemsetD8Async(0, 1, 0, stream));
    SEE("odd_bytes", cuMemsetD8Async(a + 3, 1, 13, stream));
    SEE("too_long", cuMemsetD8Async(a, 1, 64 * (size_t)MIB, stream));
    SEE("d16_aligned", cuMemsetD16Async(a + 2, 1, 3, stream));
    SEE("d16_odd", cuMemsetD16Async(a + 1, 1, 3, stream));
    SEE("d32_aligned", cuMemsetD32Async(a + 4, 1, 3, stream));
    SEE("d32_odd", cuMemsetD32Async(a + 2, 1, 3, stream));
    SEE("sync_zero", cuMemsetD8(a, 1, 0));
    SEE("sync_d32_odd", cuMemsetD32(a + 1, 1, 1));
    SEE("synchronize", cuStreamSynchronize(stream));
    drv.cuStreamDestroy(stream);
    drv.cuMemFree(a);
}

static void fill_pinned(void)
{
    unsigned char *pinned = NULL;
    CUstream stream = NULL;
    void *address = NULL;

    drv.cuMemHostAlloc(&address, 4096, 0);
    if (address == NULL) {
        fact("result", "no memory");
        return;
    }
    pinned = address;
    memset(pinned, 0, 4096);
    drv.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    SEE("result",
        cuMemsetD8Async((CUdeviceptr)(uintptr_t)pinned, 7, 4096, stream));
    SEE("synchronize", cuStreamSynchronize(stream));
    fact_yes("filled", pinned[0] == 7 && pinned[4095] == 7);
    drv.cuStreamDestroy(stream);
    drv.cuMemFreeHost(address);
}

static void fill_heap(void)
{
    void *heap = malloc(4096);

    SEE("result", cuMemsetD8((CUdeviceptr)(uintptr_t)heap, 7, 4096));
    free(heap);
}

static void copies(void)
{
    unsigned char bytes[256] = {0};
    CUdeviceptr host = (CUdeviceptr)(uintptr_t)bytes;
    CUdeviceptr a = 0;
    CUdeviceptr b = 0;
    CUstream stream = NULL;

    drv.cuMemAlloc(&a, 4096);
    drv.cuMemAlloc(&b, 4096);
    drv.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    SEE("zero_bytes", cuMemcpyAsync(a, b, 0, stream));
    SEE("null_zero_bytes", cuMemcpyAsync(0, 0, 0, stream));
    SEE("host_to_device", cuMemcpyAsync(a, host, 256, stream));
    SEE("device_to_host", cuMemcpyAsync(host, a, 256, stream));
    SEE("host_to_host", cuMemcpyAsync(host, host + 128, 128, stream));
    SEE("same", cuMemcpyAsync(a, a, 128, stream));
    SEE("too_long", cuMemcpyAsync(a, b, 64 * (size_t)MIB, stream));
    SEE("host_as_device", cuMemcpyDtoHAsync(bytes, host, 16, stream));
    SEE("device_as_host",
        cuMemcpyHtoDAsync(a, (void *)(uintptr_t)b, 16, stream));
    SEE("htod_null_zero", cuMemcpyHtoD(a, NULL, 0));
    SEE("synchronize", cuStreamSynchronize(stream));
    drv.cuStreamDestroy(stream);
    drv.cuMemFree(a);
    drv.cuMemFree(b);
}

/*
 * An address that the driver doesn't know may be pageable host memory, so a
 * wrong one may be read or written by the host itself: a case for each.
 */
#define WRONG_COPY(name, call)                                                \
    static void wrong_##name(void)                                            \
    {                                                                         \
        CUdeviceptr a = 0;                                                    \
                                                                              \
        drv.cuMemAlloc(&a, 4096);                                             \
        SEE("result", call);                                                  \
        SEE("synchronize", cuCtxSynchronize());                               \
        drv.cuMemFree(a);                                                     \
    }

static unsigned char some_bytes[16];

WRONG_COPY(null_target, cuMemcpyAsync(0, a, 16, CU_STREAM_LEGACY))
WRONG_COPY(null_source, cuMemcpyAsync(a, 0, 16, CU_STREAM_LEGACY))
WRONG_COPY(htod_null_source, cuMemcpyHtoD(a, NULL, 16))
WRONG_COPY(htod_null_target, cuMemcpyHtoD(0, some_bytes, 16))
WRONG_COPY(dtoh_null_target, cuMemcpyDtoH(NULL, a, 16))
WRONG_COPY(dtoh_null_source, cuMemcpyDtoH(some_bytes, 0, 16))
WRONG_COPY(dtoh_garbage, cuMemcpyDtoH(some_bytes, 0x1234, 16))
WRONG_COPY(dtod_garbage, cuMemcpyDtoD(a, 0x1234, 16))

/* Bytes arrive; odd offsets and lengths too. */
static void contents(void)
{
    unsigned char in[64];
    unsigned char out[64] = {0};
    CUdeviceptr a = 0;

    for (size_t i = 0; i < sizeof in; i++) {
        in[i] = (unsigned char)(i * 7 + 1);
    }
    drv.cuMemAlloc(&a, 4096);
    SEE("in", cuMemcpyHtoD(a + 5, in, sizeof in));
    SEE("within", cuMemcpyDtoD(a + 1001, a + 5, sizeof in));
    SEE("fill", cuMemsetD16(a + 1006, 0x1234, 2));
    SEE("out", cuMemcpyDtoH(out, a + 1001, sizeof out));
    fact_yes("before_fill", memcmp(in, out, 5) == 0);
    fact("filled", "%02x%02x%02x%02x", out[5], out[6], out[7], out[8]);
    fact_yes("after_fill", memcmp(in + 9, out + 9, sizeof in - 9) == 0);
    drv.cuMemFree(a);
}

static const struct fidelity_case copy_cases[] = {
    FIDELITY_CASE(fills),
    FIDELITY_CASE(fill_pinned),
    FIDELITY_CASE(fill_heap),
    FIDELITY_CASE(copies),
    FIDELITY_CASE(contents),
    FIDELITY_CASE(wrong_null_target),
    FIDELITY_CASE(wrong_null_source),
    FIDELITY_CASE(wrong_htod_null_source),
    FIDELITY_CASE(wrong_htod_null_target),
    FIDELITY_CASE(wrong_dtoh_null_target),
    FIDELITY_CASE(wrong_dtoh_null_source),
    FIDELITY_CASE(wrong_dtoh_garbage),
    FIDELITY_CASE(wrong_dtod_garbage),
    FIDELITY_END,
};

const struct fidelity_topic copy_topic = {
    "copy",
    copy_cases,
    NULL,
    NULL,
    false,
    LIMIT_MS,
    "Documented: ranges must be valid and of the right kind. Which mistakes "
    "are seen, and which crash, was measured.",
};
