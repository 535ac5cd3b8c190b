/* SPDX-License-Identifier: Apache-2.0 */
/*
 * virtual: the driver's calls. None of them waits for work on the device.
 */
#include <stdlib.h>

#include "lib/error.h"
#include "resources/common.h"
#include "resources/virtual/virtual.h"

/* Undoing must not fail for a call that went wrong once. */
#define UNDO_TRIES 2

ccmr_status ccmr__virtual_full(ccmr__virtual *self, size_t bytes, CUresult res)
{
    const ccmr__device *device = self->device;
    ccmr_error_detail *detail;
    size_t free_bytes;
    size_t total_bytes;
    size_t reserved;

    (void)pthread_mutex_lock(&self->books);
    reserved = self->reserved;
    (void)pthread_mutex_unlock(&self->books);
    if (res == CUDA_SUCCESS ||
        CCMR__CU(cuMemGetInfo)(&free_bytes, &total_bytes) != CUDA_SUCCESS) {
        (void)ccmr__fail(CCMR_ERROR_OUT_OF_DEVICE_MEMORY,
                         "device %d cannot give %zu bytes, it has %zu in all, "
                         "of which %zu are taken here",
                         device->ordinal, bytes, device->total_bytes,
                         reserved);
    } else {
        (void)ccmr__fail(CCMR_ERROR_OUT_OF_DEVICE_MEMORY,
                         "device %d cannot give %zu bytes, %zu of %zu are "
                         "free, %zu are taken here",
                         device->ordinal, bytes, free_bytes,
                         device->total_bytes, reserved);
    }
    detail = ccmr__error();
    detail->device = device->ordinal;
    detail->requested = bytes;
    detail->limit = device->total_bytes;
    detail->reserved = reserved;
    if (res != CUDA_SUCCESS) {
        ccmr__note_out_of_memory(detail, "cuMemCreate");
    }
    return CCMR_ERROR_OUT_OF_DEVICE_MEMORY;
}

ccmr_status ccmr__virtual_take_range(ccmr__virtual *self, size_t bytes,
                                     size_t alignment, uintptr_t *base)
{
    ccmr_error_detail *detail;
    CUdeviceptr address;
    CUresult res =
        CCMR__CU(cuMemAddressReserve)(&address, bytes, alignment, 0, 0);

    if (res == CUDA_SUCCESS) {
        *base = (uintptr_t)address;
        return CCMR_SUCCESS;
    }
    if (res != CUDA_ERROR_OUT_OF_MEMORY) {
        return ccmr__fail_driver((int)res, "cuMemAddressReserve");
    }
    (void)ccmr__fail(CCMR_ERROR_OUT_OF_DEVICE_MEMORY,
                     "device %d: the address space has no room for a range of "
                     "%zu bytes; physical memory was not asked for",
                     self->device->ordinal, bytes);
    detail = ccmr__error();
    detail->device = self->device->ordinal;
    detail->requested = bytes;
    ccmr__note_out_of_memory(detail, "cuMemAddressReserve");
    return CCMR_ERROR_OUT_OF_DEVICE_MEMORY;
}

ccmr_status ccmr__virtual_take_piece(ccmr__virtual *self, size_t bytes,
                                     ccmr__piece **piece)
{
    ccmr__piece *made = calloc(1, sizeof(*made));
    ccmr_status status;
    CUresult res;

    if (made == NULL) {
        return ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                          "no memory for the record of a handle");
    }
    made->bytes = bytes;
    res = CCMR__CU(cuMemCreate)(&made->handle, bytes, &self->props, 0);
    if (res == CUDA_SUCCESS) {
        ccmr__virtual_count(self, bytes);
        *piece = made;
        return CCMR_SUCCESS;
    }
    status = res == CUDA_ERROR_OUT_OF_MEMORY
                 ? ccmr__virtual_full(self, bytes, res)
                 : ccmr__fail_driver((int)res, "cuMemCreate");
    free(made);
    return status;
}

int ccmr__virtual_give_piece(ccmr__virtual *self, ccmr__piece *piece)
{
    if (CCMR__CU(cuMemRelease)(piece->handle) != CUDA_SUCCESS) {
        ccmr__virtual_keep_piece(self, piece);
        return 0;
    }
    ccmr__virtual_uncount(self, piece->bytes);
    free(piece);
    return 1;
}

void ccmr__virtual_give_range(ccmr__virtual *self, ccmr__range *range)
{
    CUdeviceptr base = (CUdeviceptr)range->node.address;

    if (CCMR__CU(cuMemAddressFree)(base, range->bytes) != CUDA_SUCCESS) {
        ccmr__virtual_keep_range(self, range);
        return;
    }
    free(range);
}

ccmr_status ccmr__virtual_map(uintptr_t address, const ccmr__piece *piece)
{
    CUresult res = CCMR__CU(cuMemMap)((CUdeviceptr)address, piece->bytes, 0,
                                      piece->handle, 0);

    return res == CUDA_SUCCESS ? CCMR_SUCCESS
                               : ccmr__fail_driver((int)res, "cuMemMap");
}

ccmr_status ccmr__virtual_open(const ccmr__virtual *self, uintptr_t address,
                               size_t bytes)
{
    CUresult res = CCMR__CU(cuMemSetAccess)((CUdeviceptr)address, bytes,
                                            self->entries, self->entry_count);

    return res == CUDA_SUCCESS ? CCMR_SUCCESS
                               : ccmr__fail_driver((int)res, "cuMemSetAccess");
}

ccmr_status ccmr__virtual_unmap(uintptr_t address, size_t bytes)
{
    CUresult res = CCMR__CU(cuMemUnmap)((CUdeviceptr)address, bytes);

    if (res != CUDA_SUCCESS) {
        return ccmr__fail_address((void *)address, (int)res, "cuMemUnmap");
    }
    return CCMR_SUCCESS;
}

void ccmr__virtual_unmap_again(uintptr_t address, size_t bytes)
{
    int tries = 0;

    while (CCMR__CU(cuMemUnmap)((CUdeviceptr)address, bytes) != CUDA_SUCCESS &&
           ++tries < UNDO_TRIES) {
    }
}
