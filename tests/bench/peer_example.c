/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A peer of a library: cuMemAlloc of whole MiB, from the simulated driver that
 * the bench has loaded, under a budget.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include <cuda.h>

#include "bench/peer_plugin.h"

#define MIB ((uint64_t)1 << 20)

typedef CUresult alloc_call(CUdeviceptr *ptr, size_t bytes);
typedef CUresult free_call(CUdeviceptr ptr);

/* One thread uses it. */
typedef struct whole {
    alloc_call *alloc;
    free_call *release;
    uint64_t budget;
    uint64_t now;
    uint64_t peak;
} whole;

static uint64_t whole_bytes(size_t bytes)
{
    return (bytes + MIB - 1) / MIB * MIB;
}

static int whole_create(int device, uint64_t budget, void **peer,
                        char *message, size_t size)
{
    const char *path = getenv("CUCOREMR_SIM_PATH");
    void *driver = path != NULL ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
    const char *refusal = getenv("PEER_EXAMPLE_SAYS");
    whole *made = calloc(1, sizeof(*made));

    (void)device;
    if (driver == NULL || made == NULL || refusal != NULL) {
        (void)snprintf(message, size, "%s",
                       refusal != NULL ? refusal
                                       : "there is no simulated driver");
        free(made);
        return CCMR_BENCH_PEER_FAILED;
    }
    *(void **)&made->alloc = dlsym(driver, "cuMemAlloc_v2");
    *(void **)&made->release = dlsym(driver, "cuMemFree_v2");
    made->budget = budget;
    *peer = made;
    return CCMR_BENCH_PEER_OK;
}

static int whole_allocate(void *peer, size_t bytes, void *stream, void **ptr)
{
    whole *of = peer;
    CUdeviceptr address;

    (void)stream;
    if (of->budget != 0 && of->now + whole_bytes(bytes) > of->budget) {
        return CCMR_BENCH_PEER_NO_MEMORY;
    }
    if (of->alloc(&address, whole_bytes(bytes)) != CUDA_SUCCESS) {
        return CCMR_BENCH_PEER_FAILED;
    }
    of->now += whole_bytes(bytes);
    of->peak = of->now > of->peak ? of->now : of->peak;
    *ptr = (void *)(uintptr_t)address;
    return CCMR_BENCH_PEER_OK;
}

static int whole_deallocate(void *peer, void *ptr, size_t bytes, void *stream)
{
    whole *of = peer;

    (void)stream;
    of->now -= whole_bytes(bytes);
    return of->release((CUdeviceptr)(uintptr_t)ptr) == CUDA_SUCCESS
               ? CCMR_BENCH_PEER_OK
               : CCMR_BENCH_PEER_FAILED;
}

static void whole_reserved(void *peer, uint64_t *now, uint64_t *peak)
{
    const whole *of = peer;

    *now = of->now;
    *peak = of->peak;
}

static void whole_destroy(void *peer)
{
    free(peer);
}

static const ccmr_bench_peer peers[] = {
    {"whole-mib", "cuMemAlloc of whole MiB", whole_create, whole_allocate,
     whole_deallocate, whole_reserved, whole_destroy},
};

extern const ccmr_bench_peers_table ccmr_bench_peers;

__attribute__((visibility("default")))
const ccmr_bench_peers_table ccmr_bench_peers = {
    sizeof(ccmr_bench_peers), sizeof(ccmr_bench_peer), peers, 1};
