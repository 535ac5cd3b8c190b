/* SPDX-License-Identifier: Apache-2.0 */
/* The table of entry points, and cuGetProcAddress, which looks in it. */
#include "sim/entry.h"

#include <string.h>

#include "sim/per_thread.h"

/* Forms of one call stand in the order of their versions; the oldest are in
 * old.c. */
static const struct sim_entry entries[] = {
    {SIM_cuInit, 2000, (sim_function)cuInit, NULL},
    {SIM_cuDriverGetVersion, 2020, (sim_function)cuDriverGetVersion, NULL},
    {SIM_cuGetErrorName, 6000, (sim_function)cuGetErrorName, NULL},
    {SIM_cuGetErrorString, 6000, (sim_function)cuGetErrorString, NULL},
    {SIM_cuDeviceGet, 2000, (sim_function)cuDeviceGet, NULL},
    {SIM_cuDeviceGetCount, 2000, (sim_function)cuDeviceGetCount, NULL},
    {SIM_cuDeviceGetName, 2000, (sim_function)cuDeviceGetName, NULL},
    {SIM_cuDeviceGetUuid, 11040, (sim_function)cuDeviceGetUuid, NULL},
    {SIM_cuDeviceGetPCIBusId, 4010, (sim_function)cuDeviceGetPCIBusId, NULL},
    {SIM_cuDeviceGetAttribute, 2000, (sim_function)cuDeviceGetAttribute, NULL},
    {SIM_cuDeviceTotalMem, 3020, (sim_function)cuDeviceTotalMem, NULL},
    {SIM_cuDeviceCanAccessPeer, 4000, (sim_function)cuDeviceCanAccessPeer,
     NULL},
    {SIM_cuDeviceGetDefaultMemPool, 11020,
     (sim_function)cuDeviceGetDefaultMemPool, NULL},
    {SIM_cuDeviceGetMemPool, 11020, (sim_function)cuDeviceGetMemPool, NULL},
    {SIM_cuDeviceSetMemPool, 11020, (sim_function)cuDeviceSetMemPool, NULL},
    {SIM_cuDevicePrimaryCtxRetain, 7000,
     (sim_function)cuDevicePrimaryCtxRetain, NULL},
    {SIM_cuDevicePrimaryCtxRelease, 11000,
     (sim_function)cuDevicePrimaryCtxRelease, NULL},
    {SIM_cuDevicePrimaryCtxReset, 11000, (sim_function)cuDevicePrimaryCtxReset,
     NULL},
    {SIM_cuDevicePrimaryCtxSetFlags, 11000,
     (sim_function)cuDevicePrimaryCtxSetFlags, NULL},
    {SIM_cuDevicePrimaryCtxGetState, 7000,
     (sim_function)cuDevicePrimaryCtxGetState, NULL},
    {SIM_cuCtxCreate, 3020, (sim_function)cuCtxCreate_v2, NULL},
    {SIM_cuCtxCreate, 11040, (sim_function)cuCtxCreate_v3, NULL},
    {SIM_cuCtxCreate, 12050, (sim_function)cuCtxCreate_v4, NULL},
    {SIM_cuCtxDestroy, 4000, (sim_function)cuCtxDestroy, NULL},
    {SIM_cuCtxGetCurrent, 4000, (sim_function)cuCtxGetCurrent, NULL},
    {SIM_cuCtxSetCurrent, 4000, (sim_function)cuCtxSetCurrent, NULL},
    {SIM_cuCtxPushCurrent, 4000, (sim_function)cuCtxPushCurrent, NULL},
    {SIM_cuCtxPopCurrent, 4000, (sim_function)cuCtxPopCurrent, NULL},
    {SIM_cuCtxGetDevice, 2000, (sim_function)cuCtxGetDevice, NULL},
    {SIM_cuCtxGetFlags, 7000, (sim_function)cuCtxGetFlags, NULL},
    {SIM_cuCtxGetId, 12000, (sim_function)cuCtxGetId, NULL},
    {SIM_cuCtxGetApiVersion, 3020, (sim_function)cuCtxGetApiVersion, NULL},
    {SIM_cuCtxGetStreamPriorityRange, 5050,
     (sim_function)cuCtxGetStreamPriorityRange, NULL},
    {SIM_cuCtxSynchronize, 2000, (sim_function)cuCtxSynchronize, NULL},
    {SIM_cuCtxRecordEvent, 12050, (sim_function)cuCtxRecordEvent, NULL},
    {SIM_cuCtxWaitEvent, 12050, (sim_function)cuCtxWaitEvent, NULL},
    {SIM_cuCtxEnablePeerAccess, 4000, (sim_function)cuCtxEnablePeerAccess,
     NULL},
    {SIM_cuCtxDisablePeerAccess, 4000, (sim_function)cuCtxDisablePeerAccess,
     NULL},
    {SIM_cuMemAlloc, 3020, (sim_function)cuMemAlloc, NULL},
    {SIM_cuMemFree, 3020, (sim_function)cuMemFree, NULL},
    {SIM_cuMemAllocHost, 3020, (sim_function)cuMemAllocHost, NULL},
    {SIM_cuMemHostAlloc, 2020, (sim_function)cuMemHostAlloc, NULL},
    {SIM_cuMemFreeHost, 2000, (sim_function)cuMemFreeHost, NULL},
    {SIM_cuMemHostGetDevicePointer, 3020,
     (sim_function)cuMemHostGetDevicePointer, NULL},
    {SIM_cuMemHostGetFlags, 2030, (sim_function)cuMemHostGetFlags, NULL},
    {SIM_cuMemHostRegister, 6050, (sim_function)cuMemHostRegister, NULL},
    {SIM_cuMemHostUnregister, 4000, (sim_function)cuMemHostUnregister, NULL},
    {SIM_cuMemAllocManaged, 6000, (sim_function)cuMemAllocManaged, NULL},
    {SIM_cuMemGetInfo, 3020, (sim_function)cuMemGetInfo, NULL},
    {SIM_cuMemGetAddressRange, 3020, (sim_function)cuMemGetAddressRange, NULL},
    {SIM_cuPointerGetAttribute, 4000, (sim_function)cuPointerGetAttribute,
     NULL},
    {SIM_cuPointerGetAttributes, 7000, (sim_function)cuPointerGetAttributes,
     NULL},
    {SIM_cuMemAllocAsync, 11020, (sim_function)cuMemAllocAsync,
     (sim_function)cuMemAllocAsync_ptsz},
    {SIM_cuMemAllocFromPoolAsync, 11020, (sim_function)cuMemAllocFromPoolAsync,
     (sim_function)cuMemAllocFromPoolAsync_ptsz},
    {SIM_cuMemFreeAsync, 11020, (sim_function)cuMemFreeAsync,
     (sim_function)cuMemFreeAsync_ptsz},
    {SIM_cuMemPoolCreate, 11020, (sim_function)cuMemPoolCreate, NULL},
    {SIM_cuMemPoolDestroy, 11020, (sim_function)cuMemPoolDestroy, NULL},
    {SIM_cuMemPoolSetAttribute, 11020, (sim_function)cuMemPoolSetAttribute,
     NULL},
    {SIM_cuMemPoolGetAttribute, 11020, (sim_function)cuMemPoolGetAttribute,
     NULL},
    {SIM_cuMemPoolTrimTo, 11020, (sim_function)cuMemPoolTrimTo, NULL},
    {SIM_cuMemPoolSetAccess, 11020, (sim_function)cuMemPoolSetAccess, NULL},
    {SIM_cuMemPoolGetAccess, 11020, (sim_function)cuMemPoolGetAccess, NULL},
    {SIM_cuMemGetDefaultMemPool, 13000, (sim_function)cuMemGetDefaultMemPool,
     NULL},
    {SIM_cuMemGetMemPool, 13000, (sim_function)cuMemGetMemPool, NULL},
    {SIM_cuMemSetMemPool, 13000, (sim_function)cuMemSetMemPool, NULL},
    {SIM_cuStreamCreate, 2000, (sim_function)cuStreamCreate, NULL},
    {SIM_cuStreamCreateWithPriority, 5050,
     (sim_function)cuStreamCreateWithPriority, NULL},
    {SIM_cuStreamDestroy, 4000, (sim_function)cuStreamDestroy, NULL},
    {SIM_cuStreamQuery, 2000, (sim_function)cuStreamQuery,
     (sim_function)cuStreamQuery_ptsz},
    {SIM_cuStreamSynchronize, 2000, (sim_function)cuStreamSynchronize,
     (sim_function)cuStreamSynchronize_ptsz},
    {SIM_cuStreamWaitEvent, 3020, (sim_function)cuStreamWaitEvent,
     (sim_function)cuStreamWaitEvent_ptsz},
    {SIM_cuStreamGetId, 12000, (sim_function)cuStreamGetId,
     (sim_function)cuStreamGetId_ptsz},
    {SIM_cuStreamGetCtx, 9020, (sim_function)cuStreamGetCtx,
     (sim_function)cuStreamGetCtx_ptsz},
    {SIM_cuStreamGetDevice, 12080, (sim_function)cuStreamGetDevice,
     (sim_function)cuStreamGetDevice_ptsz},
    {SIM_cuStreamGetFlags, 5050, (sim_function)cuStreamGetFlags,
     (sim_function)cuStreamGetFlags_ptsz},
    {SIM_cuStreamGetPriority, 5050, (sim_function)cuStreamGetPriority,
     (sim_function)cuStreamGetPriority_ptsz},
    {SIM_cuStreamIsCapturing, 10000, (sim_function)cuStreamIsCapturing,
     (sim_function)cuStreamIsCapturing_ptsz},
    {SIM_cuStreamBeginCapture, 10010, (sim_function)cuStreamBeginCapture,
     (sim_function)cuStreamBeginCapture_v2_ptsz},
    {SIM_cuStreamEndCapture, 10000, (sim_function)cuStreamEndCapture,
     (sim_function)cuStreamEndCapture_ptsz},
    {SIM_cuStreamGetCaptureInfo, 11030,
     (sim_function)cuStreamGetCaptureInfo_v2,
     (sim_function)cuStreamGetCaptureInfo_v2_ptsz},
    {SIM_cuStreamGetCaptureInfo, 12030,
     (sim_function)cuStreamGetCaptureInfo_v3,
     (sim_function)cuStreamGetCaptureInfo_v3_ptsz},
    {SIM_cuThreadExchangeStreamCaptureMode, 10010,
     (sim_function)cuThreadExchangeStreamCaptureMode, NULL},
    {SIM_cuLaunchHostFunc, 10000, (sim_function)cuLaunchHostFunc,
     (sim_function)cuLaunchHostFunc_ptsz},
    {SIM_cuStreamAddCallback, 5000, (sim_function)cuStreamAddCallback,
     (sim_function)cuStreamAddCallback_ptsz},
    {SIM_cuGraphCreate, 10000, (sim_function)cuGraphCreate, NULL},
    {SIM_cuGraphDestroy, 10000, (sim_function)cuGraphDestroy, NULL},
    {SIM_cuGraphGetNodes, 10000, (sim_function)cuGraphGetNodes, NULL},
    {SIM_cuEventCreate, 2000, (sim_function)cuEventCreate, NULL},
    {SIM_cuEventDestroy, 4000, (sim_function)cuEventDestroy, NULL},
    {SIM_cuEventRecord, 2000, (sim_function)cuEventRecord,
     (sim_function)cuEventRecord_ptsz},
    {SIM_cuEventRecordWithFlags, 11010, (sim_function)cuEventRecordWithFlags,
     (sim_function)cuEventRecordWithFlags_ptsz},
    {SIM_cuEventQuery, 2000, (sim_function)cuEventQuery, NULL},
    {SIM_cuEventSynchronize, 2000, (sim_function)cuEventSynchronize, NULL},
    {SIM_cuEventElapsedTime, 12080, (sim_function)cuEventElapsedTime, NULL},
    {SIM_cuMemcpy, 4000, (sim_function)cuMemcpy, (sim_function)cuMemcpy_ptds},
    {SIM_cuMemcpyAsync, 4000, (sim_function)cuMemcpyAsync,
     (sim_function)cuMemcpyAsync_ptsz},
    {SIM_cuMemcpyHtoD, 3020, (sim_function)cuMemcpyHtoD,
     (sim_function)cuMemcpyHtoD_v2_ptds},
    {SIM_cuMemcpyDtoH, 3020, (sim_function)cuMemcpyDtoH,
     (sim_function)cuMemcpyDtoH_v2_ptds},
    {SIM_cuMemcpyDtoD, 3020, (sim_function)cuMemcpyDtoD,
     (sim_function)cuMemcpyDtoD_v2_ptds},
    {SIM_cuMemcpyHtoDAsync, 3020, (sim_function)cuMemcpyHtoDAsync,
     (sim_function)cuMemcpyHtoDAsync_v2_ptsz},
    {SIM_cuMemcpyDtoHAsync, 3020, (sim_function)cuMemcpyDtoHAsync,
     (sim_function)cuMemcpyDtoHAsync_v2_ptsz},
    {SIM_cuMemcpyDtoDAsync, 3020, (sim_function)cuMemcpyDtoDAsync,
     (sim_function)cuMemcpyDtoDAsync_v2_ptsz},
    {SIM_cuMemsetD8, 3020, (sim_function)cuMemsetD8,
     (sim_function)cuMemsetD8_v2_ptds},
    {SIM_cuMemsetD16, 3020, (sim_function)cuMemsetD16,
     (sim_function)cuMemsetD16_v2_ptds},
    {SIM_cuMemsetD32, 3020, (sim_function)cuMemsetD32,
     (sim_function)cuMemsetD32_v2_ptds},
    {SIM_cuMemsetD8Async, 3020, (sim_function)cuMemsetD8Async,
     (sim_function)cuMemsetD8Async_ptsz},
    {SIM_cuMemsetD16Async, 3020, (sim_function)cuMemsetD16Async,
     (sim_function)cuMemsetD16Async_ptsz},
    {SIM_cuMemsetD32Async, 3020, (sim_function)cuMemsetD32Async,
     (sim_function)cuMemsetD32Async_ptsz},
    {SIM_cuMemGetAllocationGranularity, 10020,
     (sim_function)cuMemGetAllocationGranularity, NULL},
    {SIM_cuGetProcAddress, 12000, (sim_function)cuGetProcAddress, NULL},
};

/* What no driver will be for a long time. */
#define MOST_VERSION 20000

#define ENTRIES (sizeof entries / sizeof entries[0])

/* A search for the newest form of a call that a version may see. */
struct search {
    const char *symbol;
    int version;
    const struct sim_entry *found;
    CUdriverProcAddressQueryResult result;
};

static void search_in(struct search *search, const struct sim_entry *list,
                      size_t count)
{
    size_t i;

    for (i = 0; i < count; i++) {
        const struct sim_entry *entry = &list[i];

        if (strcmp(search->symbol, sim_call_name(entry->call)) != 0 ||
            sim.hidden[entry->call] || entry->version > sim.driver_version) {
            continue;
        }
        if (entry->version <= search->version) {
            search->found = entry;
            search->result = CU_GET_PROC_ADDRESS_SUCCESS;
        } else if (search->found == NULL) {
            search->result = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
        }
    }
}

static CUresult get_address(struct sim_thread *self, const char *symbol,
                            void **address, int version, cuuint64_t flags,
                            CUdriverProcAddressQueryResult *result)
{
    const cuuint64_t known = CU_GET_PROC_ADDRESS_LEGACY_STREAM |
                             CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    struct search search = {
        .symbol = symbol,
        .version = version,
        .result = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND,
    };
    sim_function found;

    if (symbol == NULL || address == NULL) {
        sim_crash(self, "a null argument,", symbol);
    }
    if ((flags & ~known) != 0 || flags == known || version > MOST_VERSION) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    search_in(&search, sim_old_entries, sim_old_entry_count);
    search_in(&search, entries, ENTRIES);
    search_in(&search, sim_memory_entries, sim_memory_entry_count);
    if (result != NULL) {
        *result = search.result;
    }
    *address = NULL;
    if (search.found == NULL) {
        /* The older form of the call has no other way to say so. */
        return result != NULL ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
    }
    found = search.found->plain;
    if ((flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0 &&
        search.found->per_thread != NULL) {
        found = search.found->per_thread;
    }
    memcpy(address, &found, sizeof found);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGetProcAddress(const char *symbol, void **pfn,
                                  int cudaVersion, cuuint64_t flags,
                                  CUdriverProcAddressQueryResult *symbolStatus)
{
    SIM_ENTRY(cuGetProcAddress,
              get_address(self, symbol, pfn, cudaVersion, flags, symbolStatus),
              NULL, 0, 0, 0);
}

/* The form of CUDA 11.3; cuda.h renames the call, so it is spelled out. */
#undef cuGetProcAddress
#pragma GCC visibility push(default)
CUresult CUDAAPI cuGetProcAddress(const char *symbol, void **pfn,
                                  int cudaVersion, cuuint64_t flags);
#pragma GCC visibility pop
CUresult CUDAAPI cuGetProcAddress(const char *symbol, void **pfn,
                                  int cudaVersion, cuuint64_t flags)
{
    SIM_ENTRY(cuGetProcAddress,
              get_address(self, symbol, pfn, cudaVersion, flags, NULL), NULL,
              0, 0, 0);
}
