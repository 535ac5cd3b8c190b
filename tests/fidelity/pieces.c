/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fidelity/pieces.h"

#include "tests/fidelity/facts.h"

#include <string.h>

CUmemAllocationProp piece_properties(void)
{
    CUmemAllocationProp prop;

    memset(&prop, 0, sizeof prop);
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = 0;
    return prop;
}

static CUmemGenericAllocationHandle create(size_t bytes,
                                           CUmemAllocationHandleType types)
{
    CUmemAllocationProp prop = piece_properties();
    CUmemGenericAllocationHandle piece = 0;
    CUresult res;

    prop.requestedHandleTypes = types;
    res = drv.cuMemCreate(&piece, bytes, &prop, 0);
    if (res != CUDA_SUCCESS) {
        fact_result("make_piece", res);
    }
    return piece;
}

CUmemGenericAllocationHandle make_piece(size_t bytes)
{
    return create(bytes, CU_MEM_HANDLE_TYPE_NONE);
}

CUmemGenericAllocationHandle make_shareable_piece(size_t bytes)
{
    return create(bytes, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
}

CUdeviceptr make_range(size_t bytes)
{
    CUdeviceptr address = 0;
    CUresult res = drv.cuMemAddressReserve(&address, bytes, 0, 0, 0);

    if (res != CUDA_SUCCESS) {
        fact_result("make_range", res);
    }
    return address;
}

CUresult set_access(CUdeviceptr address, size_t bytes, CUmemAccess_flags flags)
{
    CUmemAccessDesc desc;

    memset(&desc, 0, sizeof desc);
    desc.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    desc.location.id = 0;
    desc.flags = flags;
    return drv.cuMemSetAccess(address, bytes, &desc, 1);
}

bool mapping_make(struct mapping *mapping, size_t bytes)
{
    CUresult res = CUDA_ERROR_UNKNOWN;

    mapping->bytes = bytes;
    mapping->piece = make_piece(bytes);
    mapping->address = mapping->piece != 0 ? make_range(bytes) : 0;
    if (mapping->address != 0) {
        res = drv.cuMemMap(mapping->address, bytes, 0, mapping->piece, 0);
    }
    if (res == CUDA_SUCCESS) {
        res = set_access(mapping->address, bytes,
                         CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    }
    if (res != CUDA_SUCCESS) {
        fact_result("make_mapping", res);
    }
    return res == CUDA_SUCCESS;
}

void mapping_drop(struct mapping *mapping)
{
    if (mapping->address != 0) {
        drv.cuMemUnmap(mapping->address, mapping->bytes);
        drv.cuMemAddressFree(mapping->address, mapping->bytes);
    }
    if (mapping->piece != 0) {
        drv.cuMemRelease(mapping->piece);
    }
    memset(mapping, 0, sizeof *mapping);
}

size_t available_bytes(void)
{
    size_t available = 0;
    size_t total = 0;

    drv.cuMemGetInfo(&available, &total);
    return available;
}

void see_taken(const char *what, size_t before)
{
    fact_yes(what, available_bytes() + BIG_BYTES / 2 < before);
}

CUresult fill_bytes(CUdeviceptr address, unsigned char value, size_t bytes)
{
    CUresult res = drv.cuMemsetD8(address, value, bytes);

    return res == CUDA_SUCCESS ? drv.cuCtxSynchronize() : res;
}

const char *compare_bytes(CUdeviceptr address, unsigned char value,
                          size_t bytes)
{
    static unsigned char copy[65536];
    size_t done = 0;

    while (done < bytes) {
        size_t part = bytes - done < sizeof copy ? bytes - done : sizeof copy;
        CUresult res = drv.cuMemcpyDtoH(copy, address + done, part);

        if (res != CUDA_SUCCESS) {
            return result_name(res);
        }
        for (size_t i = 0; i < part; i++) {
            if (copy[i] != value) {
                return "different";
            }
        }
        done += part;
    }
    return "same";
}
