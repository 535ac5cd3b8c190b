/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver under observation: its entry points, found by their exact names
 * in a library that is loaded at run time. Nothing of libcucoremr is used.
 */
#ifndef FIDELITY_DRIVER_H
#define FIDELITY_DRIVER_H

#include <cuda.h>
#include <stdbool.h>

/*
 * cuda.h maps many of these names to versioned ones (cuMemAlloc is
 * cuMemAlloc_v2); the macro expansion does the same to the members below and
 * to the names that are looked up, so that they always agree.
 */
#define DRIVER_CALLS(X)                                                       \
    X(cuInit)                                                                 \
    X(cuDriverGetVersion)                                                     \
    X(cuGetErrorName)                                                         \
    X(cuGetErrorString)                                                       \
    X(cuGetProcAddress)                                                       \
    X(cuDeviceGet)                                                            \
    X(cuDeviceGetCount)                                                       \
    X(cuDeviceGetName)                                                        \
    X(cuDeviceGetAttribute)                                                   \
    X(cuDeviceTotalMem)                                                       \
    X(cuDeviceGetUuid)                                                        \
    X(cuDeviceGetDefaultMemPool)                                              \
    X(cuDeviceGetMemPool)                                                     \
    X(cuDeviceSetMemPool)                                                     \
    X(cuDeviceCanAccessPeer)                                                  \
    X(cuDevicePrimaryCtxRetain)                                               \
    X(cuDevicePrimaryCtxRelease)                                              \
    X(cuDevicePrimaryCtxReset)                                                \
    X(cuDevicePrimaryCtxGetState)                                             \
    X(cuDevicePrimaryCtxSetFlags)                                             \
    X(cuCtxCreate)                                                            \
    X(cuCtxDestroy)                                                           \
    X(cuCtxGetCurrent)                                                        \
    X(cuCtxSetCurrent)                                                        \
    X(cuCtxPushCurrent)                                                       \
    X(cuCtxPopCurrent)                                                        \
    X(cuCtxGetDevice)                                                         \
    X(cuCtxGetId)                                                             \
    X(cuCtxGetFlags)                                                          \
    X(cuCtxSynchronize)                                                       \
    X(cuCtxRecordEvent)                                                       \
    X(cuCtxWaitEvent)                                                         \
    X(cuMemAlloc)                                                             \
    X(cuMemFree)                                                              \
    X(cuMemAllocHost)                                                         \
    X(cuMemHostAlloc)                                                         \
    X(cuMemFreeHost)                                                          \
    X(cuMemHostGetDevicePointer)                                              \
    X(cuMemHostGetFlags)                                                      \
    X(cuMemHostRegister)                                                      \
    X(cuMemHostUnregister)                                                    \
    X(cuMemAllocManaged)                                                      \
    X(cuMemGetInfo)                                                           \
    X(cuMemGetAddressRange)                                                   \
    X(cuPointerGetAttribute)                                                  \
    X(cuPointerGetAttributes)                                                 \
    X(cuMemAllocAsync)                                                        \
    X(cuMemAllocFromPoolAsync)                                                \
    X(cuMemFreeAsync)                                                         \
    X(cuMemPoolCreate)                                                        \
    X(cuMemPoolDestroy)                                                       \
    X(cuMemPoolSetAttribute)                                                  \
    X(cuMemPoolGetAttribute)                                                  \
    X(cuMemPoolTrimTo)                                                        \
    X(cuMemPoolSetAccess)                                                     \
    X(cuMemPoolGetAccess)                                                     \
    X(cuMemGetDefaultMemPool)                                                 \
    X(cuMemGetMemPool)                                                        \
    X(cuMemSetMemPool)                                                        \
    X(cuMemGetAllocationGranularity)                                          \
    X(cuStreamCreate)                                                         \
    X(cuStreamCreateWithPriority)                                             \
    X(cuStreamDestroy)                                                        \
    X(cuStreamQuery)                                                          \
    X(cuStreamSynchronize)                                                    \
    X(cuStreamWaitEvent)                                                      \
    X(cuStreamGetId)                                                          \
    X(cuStreamGetCtx)                                                         \
    X(cuStreamGetDevice)                                                      \
    X(cuStreamGetFlags)                                                       \
    X(cuStreamGetPriority)                                                    \
    X(cuStreamIsCapturing)                                                    \
    X(cuStreamBeginCapture)                                                   \
    X(cuStreamEndCapture)                                                     \
    X(cuStreamGetCaptureInfo)                                                 \
    X(cuThreadExchangeStreamCaptureMode)                                      \
    X(cuGraphDestroy)                                                         \
    X(cuEventCreate)                                                          \
    X(cuEventRecord)                                                          \
    X(cuEventRecordWithFlags)                                                 \
    X(cuEventQuery)                                                           \
    X(cuEventSynchronize)                                                     \
    X(cuEventDestroy)                                                         \
    X(cuEventElapsedTime)                                                     \
    X(cuLaunchHostFunc)                                                       \
    X(cuStreamAddCallback)                                                    \
    X(cuMemcpy)                                                               \
    X(cuMemcpyAsync)                                                          \
    X(cuMemcpyHtoD)                                                           \
    X(cuMemcpyDtoH)                                                           \
    X(cuMemcpyDtoD)                                                           \
    X(cuMemcpyHtoDAsync)                                                      \
    X(cuMemcpyDtoHAsync)                                                      \
    X(cuMemcpyDtoDAsync)                                                      \
    X(cuMemsetD8)                                                             \
    X(cuMemsetD16)                                                            \
    X(cuMemsetD32)                                                            \
    X(cuMemsetD8Async)                                                        \
    X(cuMemsetD16Async)                                                       \
    X(cuMemsetD32Async)                                                       \
    X(cuMemAddressReserve)                                                    \
    X(cuMemAddressFree)                                                       \
    X(cuMemCreate)                                                            \
    X(cuMemRelease)                                                           \
    X(cuMemMap)                                                               \
    X(cuMemUnmap)                                                             \
    X(cuMemSetAccess)                                                         \
    X(cuMemGetAccess)                                                         \
    X(cuMemRetainAllocationHandle)                                            \
    X(cuMemGetAllocationPropertiesFromHandle)                                 \
    X(cuMemExportToShareableHandle)                                           \
    X(cuMemImportFromShareableHandle)                                         \
    X(cuMemPoolExportToShareableHandle)                                       \
    X(cuMemPoolImportFromShareableHandle)                                     \
    X(cuMemPoolExportPointer)                                                 \
    X(cuMemPoolImportPointer)                                                 \
    X(cuIpcGetMemHandle)                                                      \
    X(cuIpcOpenMemHandle)                                                     \
    X(cuIpcCloseMemHandle)                                                    \
    X(cuIpcGetEventHandle)                                                    \
    X(cuIpcOpenEventHandle)                                                   \
    X(cuMemPrefetchAsync)                                                     \
    X(cuMemPrefetchBatchAsync)                                                \
    X(cuMemAdvise)                                                            \
    X(cuMemRangeGetAttribute)                                                 \
    X(cuMemRangeGetAttributes)                                                \
    X(cuStreamAttachMemAsync)                                                 \
    X(cuDeviceGetP2PAttribute)                                                \
    X(cuCtxEnablePeerAccess)                                                  \
    X(cuCtxDisablePeerAccess)                                                 \
    X(cuMemcpyPeer)                                                           \
    X(cuMemcpyPeerAsync)                                                      \
    X(cuGraphCreate)                                                          \
    X(cuGraphInstantiateWithFlags)                                            \
    X(cuGraphInstantiateWithParams)                                           \
    X(cuGraphLaunch)                                                          \
    X(cuGraphUpload)                                                          \
    X(cuGraphExecDestroy)                                                     \
    X(cuGraphClone)                                                           \
    X(cuGraphAddMemAllocNode)                                                 \
    X(cuGraphAddMemFreeNode)                                                  \
    X(cuGraphAddEmptyNode)                                                    \
    X(cuGraphAddHostNode)                                                     \
    X(cuGraphAddMemsetNode)                                                   \
    X(cuGraphMemAllocNodeGetParams)                                           \
    X(cuGraphMemFreeNodeGetParams)                                            \
    X(cuGraphNodeGetType)                                                     \
    X(cuGraphGetNodes)                                                        \
    X(cuGraphDestroyNode)                                                     \
    X(cuDeviceGetGraphMemAttribute)                                           \
    X(cuDeviceSetGraphMemAttribute)                                           \
    X(cuDeviceGraphMemTrim)                                                   \
    X(cuUserObjectCreate)                                                     \
    X(cuUserObjectRetain)                                                     \
    X(cuUserObjectRelease)                                                    \
    X(cuGraphRetainUserObject)                                                \
    X(cuGraphReleaseUserObject)                                               \
    X(cuGraphExecUpdate)                                                      \
    X(cuModuleLoadData)                                                       \
    X(cuModuleUnload)                                                         \
    X(cuModuleGetFunction)                                                    \
    X(cuLaunchKernel)

#define DRIVER_MEMBER(name) __typeof__(name) *name;

/* Written once by driver_load() before any thread starts, then only read. */
struct driver {
    DRIVER_CALLS(DRIVER_MEMBER)
};

extern struct driver drv;

/*
 * Load the driver: `kind` is "cuda" (libcuda.so.1) or "sim" (the library that
 * CUCOREMR_SIM_PATH names). A call that it lacks is replaced by one that
 * answers CUDA_ERROR_NOT_FOUND. Returns NULL, or why it could not be loaded.
 */
const char *driver_load(const char *kind);

/* The control table of the simulated driver; NULL on any other. */
struct ccmr_sim_table;
const struct ccmr_sim_table *driver_simulation(void);

/* Address of any exported symbol, or NULL. */
void *driver_symbol(const char *name);

/* "CUDA_SUCCESS" and so on; independent of what the driver itself says. */
const char *result_name(CUresult res);

#endif
