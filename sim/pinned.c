/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory that the device can use: allocated, registered. */
#include "sim/memory.h"

#include "sim/context.h"
#include "sim/cost.h"
#include "sim/order.h"
#include "sim/schedule.h"

#define ALLOC_FLAGS                                                           \
    ((unsigned)CU_MEMHOSTALLOC_PORTABLE |                                     \
     (unsigned)CU_MEMHOSTALLOC_DEVICEMAP |                                    \
     (unsigned)CU_MEMHOSTALLOC_WRITECOMBINED)
#define REGISTER_FLAGS                                                        \
    ((unsigned)CU_MEMHOSTREGISTER_PORTABLE |                                  \
     (unsigned)CU_MEMHOSTREGISTER_DEVICEMAP |                                 \
     (unsigned)CU_MEMHOSTREGISTER_IOMEMORY |                                  \
     (unsigned)CU_MEMHOSTREGISTER_READ_ONLY)
/* What one registration can be at most. */
#define REGISTER_MOST ((size_t)1 << 39)

static CUresult allocate(struct sim_thread *self, void **address, size_t bytes,
                         unsigned flags)
{
    struct sim_context *context = sim_context_current(self);
    struct sim_region *region;

    if (address == NULL || (flags & ~ALLOC_FLAGS) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *address = NULL;
    if (bytes == 0) {
        return CUDA_SUCCESS;
    }
    if (bytes > SIM_BLOCK_MOST) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    region = sim_region_host(bytes, SIM_REGION_PINNED, false);
    if (region == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    region->asked = bytes;
    region->context = context;
    region->flags = flags | CU_MEMHOSTALLOC_DEVICEMAP;
    *address = (void *)region->base;
    sim_cost_sized(SIM_COST_PINNED_ALLOCATE, bytes);
    sim_order_give(region->base, bytes, NULL);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
    SIM_ENTRY(cuMemHostAlloc, allocate(self, pp, bytesize, Flags), NULL,
              SIM_OUT(pp), Flags, bytesize);
}

CUresult CUDAAPI cuMemAllocHost(void **pp, size_t bytesize)
{
    SIM_ENTRY(cuMemAllocHost,
              allocate(self, pp, bytesize, CU_MEMHOSTALLOC_DEVICEMAP), NULL,
              SIM_OUT(pp), 0, bytesize);
}

static struct sim_region *find_exact(const void *address,
                                     enum sim_region_kind kind)
{
    struct sim_region *region = sim_region_find((uintptr_t)address);

    if (region == NULL || region->kind != kind ||
        region->base != (uintptr_t)address) {
        return NULL;
    }
    return region;
}

static CUresult free_host(void *address)
{
    struct sim_region *region;

    if (address == NULL) {
        return CUDA_SUCCESS;
    }
    if (find_exact(address, SIM_REGION_PINNED) == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_wait_device(-1);
    region = find_exact(address, SIM_REGION_PINNED);
    if (region == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_cost_sized(SIM_COST_PINNED_FREE, region->asked);
    sim_order_take(region->base, region->asked, NULL);
    sim_region_free(region);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemFreeHost(void *p)
{
    SIM_ENTRY(cuMemFreeHost, free_host(p), NULL, p, 0, 0);
}

/* Pinned or registered memory with that address in it. */
static struct sim_region *find_host(const void *address)
{
    struct sim_region *region = sim_region_find((uintptr_t)address);

    if (region == NULL || (region->kind != SIM_REGION_PINNED &&
                           region->kind != SIM_REGION_REGISTERED)) {
        return NULL;
    }
    return region;
}

static CUresult device_pointer(CUdeviceptr *address, void *pointer,
                               unsigned flags)
{
    if (address == NULL || flags != 0 || find_host(pointer) == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *address = (CUdeviceptr)(uintptr_t)pointer;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemHostGetDevicePointer(CUdeviceptr *pdptr, void *p,
                                           unsigned int Flags)
{
    SIM_ENTRY(cuMemHostGetDevicePointer, device_pointer(pdptr, p, Flags), NULL,
              p, 0, 0);
}

static CUresult get_flags(unsigned *flags, void *pointer)
{
    struct sim_region *region = find_host(pointer);

    if (flags == NULL || region == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *flags = region->flags;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemHostGetFlags(unsigned int *pFlags, void *p)
{
    SIM_ENTRY(cuMemHostGetFlags, get_flags(pFlags, p), NULL, p, 0, 0);
}

static CUresult register_range(struct sim_thread *self, void *address,
                               size_t bytes, unsigned flags)
{
    struct sim_context *context = sim_context_current(self);
    struct sim_region *region;

    if (address == NULL || bytes == 0 || (flags & ~REGISTER_FLAGS) != 0 ||
        bytes > SIZE_MAX - (uintptr_t)address) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (sim_region_overlaps((uintptr_t)address, bytes)) {
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    }
    if (bytes >= REGISTER_MOST) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    region = sim_region_foreign(address, bytes, SIM_REGION_REGISTERED);
    if (region == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    region->asked = bytes;
    region->context = context;
    region->flags = flags | CU_MEMHOSTREGISTER_DEVICEMAP;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemHostRegister(void *p, size_t bytesize,
                                   unsigned int Flags)
{
    SIM_ENTRY(cuMemHostRegister, register_range(self, p, bytesize, Flags),
              NULL, p, Flags, bytesize);
}

static CUresult unregister_range(void *address)
{
    struct sim_region *region = find_exact(address, SIM_REGION_REGISTERED);

    if (address == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (region == NULL) {
        return sim_region_find((uintptr_t)address) != NULL
                   ? CUDA_ERROR_INVALID_VALUE
                   : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    }
    sim_wait_device(-1);
    region = find_exact(address, SIM_REGION_REGISTERED);
    if (region == NULL) {
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    }
    sim_region_free(region);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemHostUnregister(void *p)
{
    SIM_ENTRY(cuMemHostUnregister, unregister_range(p), NULL, p, 0, 0);
}
