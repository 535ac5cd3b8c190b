/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that make, hold and hand on physical memory. */
#include "sim/physical.h"

#include <string.h>

#include "sim/device.h"
#include "sim/virtual.h"

#define POSIX ((unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
#define FABRIC ((unsigned)CU_MEM_HANDLE_TYPE_FABRIC)

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

static unsigned supported_types(const int *attributes)
{
    unsigned types = 0;

    if (attributes
            [CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED] !=
        0) {
        types |= POSIX;
    }
    if (attributes[CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED] != 0) {
        types |= FABRIC;
    }
    return types;
}

static CUresult check_properties(const CUmemAllocationProp *properties)
{
    const unsigned types = (unsigned)properties->requestedHandleTypes;
    const int *attributes;
    CUresult res;

    if (properties->type != CU_MEM_ALLOCATION_TYPE_PINNED) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    res = check_location(&properties->location);
    if (res != CUDA_SUCCESS) {
        return res;
    }
    attributes = attributes_of(&properties->location);
    if (attributes[CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED] ==
        0) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    return (types & ~supported_types(attributes)) == 0
               ? CUDA_SUCCESS
               : CUDA_ERROR_NOT_SUPPORTED;
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
    return sim_physical_create(properties, size, handle);
}

CUresult CUDAAPI cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                             const CUmemAllocationProp *prop,
                             unsigned long long flags)
{
    SIM_ENTRY(cuMemCreate, create(handle, size, prop, flags), NULL,
              SIM_OUT(handle), 0, size);
}

/* Holding. */

static CUresult release(CUmemGenericAllocationHandle handle)
{
    struct sim_physical *piece = sim_physical_find(handle);

    if (piece == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_physical_release(piece);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemRelease(CUmemGenericAllocationHandle handle)
{
    SIM_ENTRY(cuMemRelease, release(handle), NULL, handle, 0, 0);
}

static CUresult retain(CUmemGenericAllocationHandle *handle,
                       const void *address)
{
    const struct sim_mapping *mapping = sim_mapping_find((uintptr_t)address);

    if (handle == NULL || mapping == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return sim_physical_hold(mapping->piece, handle);
}

CUresult CUDAAPI
cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
    SIM_ENTRY(cuMemRetainAllocationHandle, retain(handle, addr), NULL,
              SIM_OUT(handle), addr, 0);
}

static CUresult get_properties(CUmemAllocationProp *properties,
                               CUmemGenericAllocationHandle handle)
{
    const struct sim_physical *piece = sim_physical_find(handle);

    if (properties == NULL || piece == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *properties = piece->properties;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemGetAllocationPropertiesFromHandle(
    CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle)
{
    SIM_ENTRY(cuMemGetAllocationPropertiesFromHandle,
              get_properties(prop, handle), NULL, handle, 0, 0);
}

/* Handing on. */

static CUresult export_piece(void *shared, CUmemGenericAllocationHandle handle,
                             CUmemAllocationHandleType type,
                             unsigned long long flags)
{
    struct sim_physical *piece = sim_physical_find(handle);
    int file;

    if (shared == NULL || piece == NULL || flags != 0 ||
        (unsigned)type != POSIX ||
        ((unsigned)piece->properties.requestedHandleTypes & POSIX) == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    file = sim_physical_export(piece);
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
              export_piece(shareableHandle, handle, handleType, flags), NULL,
              handle, 0, 0);
}

static CUresult import_piece(CUmemGenericAllocationHandle *handle,
                             const void *shared,
                             CUmemAllocationHandleType type)
{
    if (handle == NULL || (unsigned)type != POSIX) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return sim_physical_import((int)(intptr_t)shared, handle);
}

CUresult CUDAAPI cuMemImportFromShareableHandle(
    CUmemGenericAllocationHandle *handle, void *osHandle,
    CUmemAllocationHandleType shHandleType)
{
    SIM_ENTRY(cuMemImportFromShareableHandle,
              import_piece(handle, osHandle, shHandleType), NULL,
              SIM_OUT(handle), 0, 0);
}
