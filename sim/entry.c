/* SPDX-License-Identifier: Apache-2.0 */
/* The table of entry points, and cuGetProcAddress, which looks in it. */
#include "sim/state.h"

#include <string.h>

#include "sim/per_thread.h"

typedef void (*function)(void);

/** One form of a call: from which version on, and what a program with a
 *  default stream per thread gets instead, if anything else. */
struct entry {
    enum sim_call call;
    int version;
    function plain, per_thread;
};

/* Forms of one call stand in the order of their versions. */
static const struct entry entries[] = {
    { SIM_cuInit, 2000, (function)cuInit, NULL },
    { SIM_cuDriverGetVersion, 2020, (function)cuDriverGetVersion, NULL },
    { SIM_cuGetErrorName, 6000, (function)cuGetErrorName, NULL },
    { SIM_cuGetErrorString, 6000, (function)cuGetErrorString, NULL },
    { SIM_cuDeviceGet, 2000, (function)cuDeviceGet, NULL },
    { SIM_cuDeviceGetCount, 2000, (function)cuDeviceGetCount, NULL },
    { SIM_cuDeviceGetName, 2000, (function)cuDeviceGetName, NULL },
    { SIM_cuDeviceGetUuid, 11040, (function)cuDeviceGetUuid, NULL },
    { SIM_cuDeviceGetPCIBusId, 4010, (function)cuDeviceGetPCIBusId, NULL },
    { SIM_cuDeviceGetAttribute, 2000, (function)cuDeviceGetAttribute, NULL },
    { SIM_cuDeviceTotalMem, 3020, (function)cuDeviceTotalMem, NULL },
    { SIM_cuDeviceCanAccessPeer, 4000, (function)cuDeviceCanAccessPeer, NULL },
    { SIM_cuDeviceGetDefaultMemPool, 11020, (function)cuDeviceGetDefaultMemPool,
      NULL },
    { SIM_cuDeviceGetMemPool, 11020, (function)cuDeviceGetMemPool, NULL },
    { SIM_cuDeviceSetMemPool, 11020, (function)cuDeviceSetMemPool, NULL },
    { SIM_cuDevicePrimaryCtxRetain, 7000, (function)cuDevicePrimaryCtxRetain,
      NULL },
    { SIM_cuDevicePrimaryCtxRelease, 11000, (function)cuDevicePrimaryCtxRelease,
      NULL },
    { SIM_cuDevicePrimaryCtxReset, 11000, (function)cuDevicePrimaryCtxReset,
      NULL },
    { SIM_cuDevicePrimaryCtxSetFlags, 11000, (function)cuDevicePrimaryCtxSetFlags,
      NULL },
    { SIM_cuDevicePrimaryCtxGetState, 7000, (function)cuDevicePrimaryCtxGetState,
      NULL },
    { SIM_cuCtxCreate, 3020, (function)cuCtxCreate_v2, NULL },
    { SIM_cuCtxCreate, 11040, (function)cuCtxCreate_v3, NULL },
    { SIM_cuCtxCreate, 12050, (function)cuCtxCreate_v4, NULL },
    { SIM_cuCtxDestroy, 4000, (function)cuCtxDestroy, NULL },
    { SIM_cuCtxGetCurrent, 4000, (function)cuCtxGetCurrent, NULL },
    { SIM_cuCtxSetCurrent, 4000, (function)cuCtxSetCurrent, NULL },
    { SIM_cuCtxPushCurrent, 4000, (function)cuCtxPushCurrent, NULL },
    { SIM_cuCtxPopCurrent, 4000, (function)cuCtxPopCurrent, NULL },
    { SIM_cuCtxGetDevice, 2000, (function)cuCtxGetDevice, NULL },
    { SIM_cuCtxGetFlags, 7000, (function)cuCtxGetFlags, NULL },
    { SIM_cuCtxGetId, 12000, (function)cuCtxGetId, NULL },
    { SIM_cuCtxGetApiVersion, 3020, (function)cuCtxGetApiVersion, NULL },
    { SIM_cuCtxGetStreamPriorityRange, 5050, (function)cuCtxGetStreamPriorityRange,
      NULL },
    { SIM_cuCtxSynchronize, 2000, (function)cuCtxSynchronize, NULL },
    { SIM_cuCtxEnablePeerAccess, 4000, (function)cuCtxEnablePeerAccess, NULL },
    { SIM_cuCtxDisablePeerAccess, 4000, (function)cuCtxDisablePeerAccess,
      NULL },
    { SIM_cuMemAlloc, 3020, (function)cuMemAlloc, NULL },
    { SIM_cuMemFree, 3020, (function)cuMemFree, NULL },
    { SIM_cuMemAllocHost, 3020, (function)cuMemAllocHost, NULL },
    { SIM_cuMemHostAlloc, 2020, (function)cuMemHostAlloc, NULL },
    { SIM_cuMemFreeHost, 2000, (function)cuMemFreeHost, NULL },
    { SIM_cuMemHostGetDevicePointer, 3020, (function)cuMemHostGetDevicePointer,
      NULL },
    { SIM_cuMemHostGetFlags, 2030, (function)cuMemHostGetFlags, NULL },
    { SIM_cuMemHostRegister, 6050, (function)cuMemHostRegister, NULL },
    { SIM_cuMemHostUnregister, 4000, (function)cuMemHostUnregister, NULL },
    { SIM_cuMemAllocManaged, 6000, (function)cuMemAllocManaged, NULL },
    { SIM_cuMemGetInfo, 3020, (function)cuMemGetInfo, NULL },
    { SIM_cuMemGetAddressRange, 3020, (function)cuMemGetAddressRange, NULL },
    { SIM_cuPointerGetAttribute, 4000, (function)cuPointerGetAttribute, NULL },
    { SIM_cuPointerGetAttributes, 7000, (function)cuPointerGetAttributes,
      NULL },
    { SIM_cuMemAllocAsync, 11020, (function)cuMemAllocAsync,
      (function)cuMemAllocAsync_ptsz },
    { SIM_cuMemAllocFromPoolAsync, 11020, (function)cuMemAllocFromPoolAsync,
      (function)cuMemAllocFromPoolAsync_ptsz },
    { SIM_cuMemFreeAsync, 11020, (function)cuMemFreeAsync,
      (function)cuMemFreeAsync_ptsz },
    { SIM_cuMemPoolCreate, 11020, (function)cuMemPoolCreate, NULL },
    { SIM_cuMemPoolDestroy, 11020, (function)cuMemPoolDestroy, NULL },
    { SIM_cuMemPoolSetAttribute, 11020, (function)cuMemPoolSetAttribute,
      NULL },
    { SIM_cuMemPoolGetAttribute, 11020, (function)cuMemPoolGetAttribute,
      NULL },
    { SIM_cuMemPoolTrimTo, 11020, (function)cuMemPoolTrimTo, NULL },
    { SIM_cuMemPoolSetAccess, 11020, (function)cuMemPoolSetAccess, NULL },
    { SIM_cuMemPoolGetAccess, 11020, (function)cuMemPoolGetAccess, NULL },
    { SIM_cuMemGetDefaultMemPool, 13000, (function)cuMemGetDefaultMemPool,
      NULL },
    { SIM_cuMemGetMemPool, 13000, (function)cuMemGetMemPool, NULL },
    { SIM_cuMemSetMemPool, 13000, (function)cuMemSetMemPool, NULL },
    { SIM_cuStreamCreate, 2000, (function)cuStreamCreate, NULL },
    { SIM_cuStreamCreateWithPriority, 5050, (function)cuStreamCreateWithPriority,
      NULL },
    { SIM_cuStreamDestroy, 4000, (function)cuStreamDestroy, NULL },
    { SIM_cuStreamQuery, 2000, (function)cuStreamQuery,
      (function)cuStreamQuery_ptsz },
    { SIM_cuStreamSynchronize, 2000, (function)cuStreamSynchronize,
      (function)cuStreamSynchronize_ptsz },
    { SIM_cuStreamWaitEvent, 3020, (function)cuStreamWaitEvent,
      (function)cuStreamWaitEvent_ptsz },
    { SIM_cuStreamGetId, 12000, (function)cuStreamGetId,
      (function)cuStreamGetId_ptsz },
    { SIM_cuStreamGetCtx, 9020, (function)cuStreamGetCtx,
      (function)cuStreamGetCtx_ptsz },
    { SIM_cuStreamGetDevice, 12080, (function)cuStreamGetDevice,
      (function)cuStreamGetDevice_ptsz },
    { SIM_cuStreamGetFlags, 5050, (function)cuStreamGetFlags,
      (function)cuStreamGetFlags_ptsz },
    { SIM_cuStreamGetPriority, 5050, (function)cuStreamGetPriority,
      (function)cuStreamGetPriority_ptsz },
    { SIM_cuStreamIsCapturing, 10000, (function)cuStreamIsCapturing,
      (function)cuStreamIsCapturing_ptsz },
    { SIM_cuStreamBeginCapture, 10010, (function)cuStreamBeginCapture,
      (function)cuStreamBeginCapture_v2_ptsz },
    { SIM_cuStreamEndCapture, 10000, (function)cuStreamEndCapture,
      (function)cuStreamEndCapture_ptsz },
    { SIM_cuStreamGetCaptureInfo, 11030, (function)cuStreamGetCaptureInfo_v2,
      (function)cuStreamGetCaptureInfo_v2_ptsz },
    { SIM_cuStreamGetCaptureInfo, 12030, (function)cuStreamGetCaptureInfo_v3,
      (function)cuStreamGetCaptureInfo_v3_ptsz },
    { SIM_cuThreadExchangeStreamCaptureMode, 10010, (function)cuThreadExchangeStreamCaptureMode,
      NULL },
    { SIM_cuLaunchHostFunc, 10000, (function)cuLaunchHostFunc,
      (function)cuLaunchHostFunc_ptsz },
    { SIM_cuStreamAddCallback, 5000, (function)cuStreamAddCallback,
      (function)cuStreamAddCallback_ptsz },
    { SIM_cuGraphCreate, 10000, (function)cuGraphCreate, NULL },
    { SIM_cuGraphDestroy, 10000, (function)cuGraphDestroy, NULL },
    { SIM_cuGraphGetNodes, 10000, (function)cuGraphGetNodes, NULL },
    { SIM_cuEventCreate, 2000, (function)cuEventCreate, NULL },
    { SIM_cuEventDestroy, 4000, (function)cuEventDestroy, NULL },
    { SIM_cuEventRecord, 2000, (function)cuEventRecord,
      (function)cuEventRecord_ptsz },
    { SIM_cuEventRecordWithFlags, 11010, (function)cuEventRecordWithFlags,
      (function)cuEventRecordWithFlags_ptsz },
    { SIM_cuEventQuery, 2000, (function)cuEventQuery, NULL },
    { SIM_cuEventSynchronize, 2000, (function)cuEventSynchronize, NULL },
    { SIM_cuEventElapsedTime, 12080, (function)cuEventElapsedTime, NULL },
    { SIM_cuMemcpy, 4000, (function)cuMemcpy, (function)cuMemcpy_ptds },
    { SIM_cuMemcpyAsync, 4000, (function)cuMemcpyAsync,
      (function)cuMemcpyAsync_ptsz },
    { SIM_cuMemcpyHtoD, 3020, (function)cuMemcpyHtoD,
      (function)cuMemcpyHtoD_v2_ptds },
    { SIM_cuMemcpyDtoH, 3020, (function)cuMemcpyDtoH,
      (function)cuMemcpyDtoH_v2_ptds },
    { SIM_cuMemcpyDtoD, 3020, (function)cuMemcpyDtoD,
      (function)cuMemcpyDtoD_v2_ptds },
    { SIM_cuMemcpyHtoDAsync, 3020, (function)cuMemcpyHtoDAsync,
      (function)cuMemcpyHtoDAsync_v2_ptsz },
    { SIM_cuMemcpyDtoHAsync, 3020, (function)cuMemcpyDtoHAsync,
      (function)cuMemcpyDtoHAsync_v2_ptsz },
    { SIM_cuMemcpyDtoDAsync, 3020, (function)cuMemcpyDtoDAsync,
      (function)cuMemcpyDtoDAsync_v2_ptsz },
    { SIM_cuMemsetD8, 3020, (function)cuMemsetD8,
      (function)cuMemsetD8_v2_ptds },
    { SIM_cuMemsetD16, 3020, (function)cuMemsetD16,
      (function)cuMemsetD16_v2_ptds },
    { SIM_cuMemsetD32, 3020, (function)cuMemsetD32,
      (function)cuMemsetD32_v2_ptds },
    { SIM_cuMemsetD8Async, 3020, (function)cuMemsetD8Async,
      (function)cuMemsetD8Async_ptsz },
    { SIM_cuMemsetD16Async, 3020, (function)cuMemsetD16Async,
      (function)cuMemsetD16Async_ptsz },
    { SIM_cuMemsetD32Async, 3020, (function)cuMemsetD32Async,
      (function)cuMemsetD32Async_ptsz },
    { SIM_cuGetProcAddress, 12000, (function)cuGetProcAddress, NULL },
};

#define ENTRIES (sizeof entries / sizeof entries[0])

/* The newest form of a call that a version may see. Other than in a real
 * driver there are no forms from before addresses had 64 bits. */
static CUdriverProcAddressQueryResult find_entry(const char *symbol,
                                                 int version,
                                                 const struct entry **found)
{
    CUdriverProcAddressQueryResult result =
        CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    size_t i;

    *found = NULL;
    for (i = 0; i < ENTRIES; i++) {
        const struct entry *entry = &entries[i];

        if (strcmp(symbol, sim_call_name(entry->call)) != 0
            || sim.hidden[entry->call]
            || entry->version > sim.driver_version) {
            continue;
        }
        if (entry->version <= version) {
            *found = entry;
            result = CU_GET_PROC_ADDRESS_SUCCESS;
        } else if (*found == NULL) {
            result = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
        }
    }
    return result;
}

static CUresult get_address(const char *symbol, void **address, int version,
                            cuuint64_t flags,
                            CUdriverProcAddressQueryResult *result)
{
    const cuuint64_t known = CU_GET_PROC_ADDRESS_LEGACY_STREAM
                             | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    CUdriverProcAddressQueryResult outcome;
    const struct entry *entry;
    function found;

    if (symbol == NULL || address == NULL || (flags & ~known) != 0
        || flags == known) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    outcome = find_entry(symbol, version, &entry);
    if (result != NULL) {
        *result = outcome;
    }
    *address = NULL;
    if (outcome != CU_GET_PROC_ADDRESS_SUCCESS) {
        /* The older form of the call has no other way to say so. */
        return result != NULL ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
    }
    found = entry->plain;
    if ((flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0
        && entry->per_thread != NULL) {
        found = entry->per_thread;
    }
    memcpy(address, &found, sizeof found);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGetProcAddress(const char *symbol, void **pfn,
                                  int cudaVersion, cuuint64_t flags,
                                  CUdriverProcAddressQueryResult *symbolStatus)
{
    SIM_ENTRY(cuGetProcAddress,
              get_address(symbol, pfn, cudaVersion, flags, symbolStatus), NULL,
              0, 0, 0);
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
              get_address(symbol, pfn, cudaVersion, flags, NULL), NULL, 0, 0,
              0);
}
