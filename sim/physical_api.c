/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that make, hold and hand on physical memory. */
#include "sim/physical.h"

#include <string.h>

#include "sim/cost.h"
#include "sim/device.h"
#include "sim/virtual.h"

#define POSIX ((unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
#define FABRIC ((unsigned)CU_MEM_HANDLE_TYPE_FABRIC)
#define WINDOWS                                                               \
    ((unsigned)CU_MEM_HANDLE_TYPE_WIN32 |                                     \
     (unsigned)CU_MEM_HANDLE_TYPE_WIN32_KMT)

#define POSIX_SUPPORTED                                                       \
    CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED
#define VIRTUAL_SUPPORTED                                                     \
    CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED

/* Creating. */

static const int *attributes_of(const CUmemLocation *location)
{
    int device =
        location->type == CU_MEM_LOCATION_TYPE_DEVICE ? location->id : 0;

    return sim.devices[device].attributes;
}

static CUresult check_location(const CUmemLocation *location)
{
    switch ((int)location->type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        return sim_device_find(location->id) != NULL
                   ? CUDA_SUCCESS
                   : CUDA_ERROR_INVALID_DEVICE;
    case CU_MEM_LOCATION_TYPE_HOST:
        return CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        return location->id == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* Unknown types are let pass; memory for a fabric needs a right that no
 * ordinary machine gives. */
static CUresult check_types(unsigned types, const CUmemLocation *location)
{
    const int *attributes = attributes_of(location);

    if ((types & WINDOWS) != 0 ||
        (types != 0 && location->type == CU_MEM_LOCATION_TYPE_HOST)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if ((types & FABRIC) != 0) {
        return CUDA_ERROR_NOT_PERMITTED;
    }
    return (types & POSIX) == 0 || attributes[POSIX_SUPPORTED] != 0
               ? CUDA_SUCCESS
               : CUDA_ERROR_NOT_SUPPORTED;
}

static bool is_plain(const CUmemAllocationProp *properties)
{
    const unsigned char *reserved = properties->allocFlags.reserved;

    return properties->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
           properties->win32HandleMetaData == NULL &&
           (reserved[0] | reserved[1] | reserved[2] | reserved[3]) == 0;
}

static CUresult check_properties(const CUmemAllocationProp *properties)
{
    const CUmemLocation *location = &properties->location;
    CUresult res;

    if (!is_plain(properties)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    res = check_location(location);
    if (res != CUDA_SUCCESS) {
        return res;
    }
    if (attributes_of(location)[VIRTUAL_SUPPORTED] == 0) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    return check_types((unsigned)properties->requestedHandleTypes, location);
}

static CUresult create(CUmemGenericAllocationHandle *handle, size_t size,
                       const CUmemAllocationProp *properties,
                       unsigned long long flags)
{
    CUresult res;

    if (handle == NULL || properties == NULL || flags != 0 || size == 0 ||
        size % SIM_PAGE != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    res = check_properties(properties);
    if (res != CUDA_SUCCESS) {
        return res;
    }
    if (size > SIM_BLOCK_MOST) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    sim_cost_sized(SIM_COST_CREATE, size);
    return sim_piece_create(properties, size, handle);
}

CUresult CUDAAPI cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                             const CUmemAllocationProp *prop,
                             unsigned long long flags)
{
    SIM_ENTRY(cuMemCreate, create(handle, size, prop, flags), NULL,
              SIM_OUT(handle), 0, size);
}

/* Holding. */

static CUresult release(const struct sim_thread *self,
                        CUmemGenericAllocationHandle handle)
{
    struct sim_holder *holder = sim_holder_peek(self, handle);

    if (holder == NULL || holder->handles == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_cost_sized(SIM_COST_RELEASE, holder->piece->size);
    sim_holder_release(holder);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemRelease(CUmemGenericAllocationHandle handle)
{
    SIM_ENTRY(cuMemRelease, release(self, handle), NULL, handle, 0, 0);
}

static CUresult retain(CUmemGenericAllocationHandle *handle,
                       const void *address)
{
    const struct sim_mapping *mapping = sim_mapping_find((uintptr_t)address);

    if (handle == NULL || mapping == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    mapping->holder->handles++;
    *handle = sim_holder_handle(mapping->holder);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
    SIM_ENTRY(cuMemRetainAllocationHandle, retain(handle, addr), NULL,
              SIM_OUT(handle), addr, 0);
}

static CUresult get_properties(const struct sim_thread *self,
                               CUmemAllocationProp *properties,
                               CUmemGenericAllocationHandle handle)
{
    const struct sim_holder *holder = sim_holder_find(self, handle);

    if (properties == NULL || holder == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *properties = holder->properties;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemGetAllocationPropertiesFromHandle(
    CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle)
{
    SIM_ENTRY(cuMemGetAllocationPropertiesFromHandle,
              get_properties(self, prop, handle), NULL, handle, 0, 0);
}

/* Handing on. */

static CUresult export_piece(const struct sim_thread *self, void *shared,
                             CUmemGenericAllocationHandle handle,
                             CUmemAllocationHandleType type,
                             unsigned long long flags)
{
    const struct sim_holder *holder = sim_holder_find(self, handle);
    int file;

    if (shared == NULL || holder == NULL || flags != 0 ||
        (unsigned)type != POSIX ||
        ((unsigned)holder->properties.requestedHandleTypes & POSIX) == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    file = sim_piece_export(holder->piece);
    if (file < 0) {
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    memcpy(shared, &file, sizeof file);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemExportToShareableHandle(
    void *shareableHandle, CUmemGenericAllocationHandle handle,
    CUmemAllocationHandleType handleType, unsigned long long flags)
{
    SIM_ENTRY(cuMemExportToShareableHandle,
              export_piece(self, shareableHandle, handle, handleType, flags),
              NULL, handle, 0, 0);
}

static CUresult import_piece(CUmemGenericAllocationHandle *handle,
                             const void *shared,
                             CUmemAllocationHandleType type)
{
    if (handle == NULL || (unsigned)type != POSIX) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return sim_piece_import((int)(intptr_t)shared, handle);
}

CUresult CUDAAPI cuMemImportFromShareableHandle(
    CUmemGenericAllocationHandle *handle, void *osHandle,
    CUmemAllocationHandleType shHandleType)
{
    SIM_ENTRY(cuMemImportFromShareableHandle,
              import_piece(handle, osHandle, shHandleType), NULL,
              SIM_OUT(handle), 0, 0);
}
