/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every call that the simulator knows, by its name without version, and what
 * has to hold before it is carried out. Faults, counters and the log speak of
 * calls by these names; the entry points behind them are listed in entry.c.
 */
#ifndef SIM_CALLS_H
#define SIM_CALLS_H

/** Works before cuInit. */
#define SIM_ANYTIME 0x1u
/** Works inside a host function of a stream; given a token, it doesn't. */
#define SIM_IN_CALLBACK 0x2u
/** Needs a current context. */
#define SIM_CONTEXT 0x4u
/** Refused where the capture mode forbids unsafe calls, and ruins captures. */
#define SIM_UNSAFE 0x8u
/** Works in a forked child; given a token, it doesn't. */
#define SIM_IN_CHILD 0x10u
/** If a context is current, it must not have been destroyed. */
#define SIM_LIVE 0x20u
/** Acts on a handle alone: a driver lets it pass nearly everywhere. */
#define SIM_BY_HANDLE (SIM_IN_CALLBACK | SIM_IN_CHILD)

/* X(name, flags); only stringified and pasted, so that cuda.h's own macros
 * of these names do no harm. */
#define SIM_CALLS(X)                                                          \
    X(cuInit, SIM_ANYTIME | SIM_IN_CALLBACK)                                  \
    X(cuDriverGetVersion, SIM_ANYTIME | SIM_IN_CALLBACK)                      \
    X(cuGetErrorName, SIM_ANYTIME | SIM_IN_CALLBACK)                          \
    X(cuGetErrorString, SIM_ANYTIME | SIM_IN_CALLBACK)                        \
    X(cuGetProcAddress, SIM_ANYTIME | SIM_IN_CALLBACK)                        \
    X(cuDeviceGet, 0)                                                         \
    X(cuDeviceGetCount, 0)                                                    \
    X(cuDeviceGetName, 0)                                                     \
    X(cuDeviceGetUuid, 0)                                                     \
    X(cuDeviceGetPCIBusId, 0)                                                 \
    X(cuDeviceGetAttribute, 0)                                                \
    X(cuDeviceTotalMem, 0)                                                    \
    X(cuDeviceCanAccessPeer, 0)                                               \
    X(cuDeviceGetDefaultMemPool, 0)                                           \
    X(cuDeviceGetMemPool, 0)                                                  \
    X(cuDeviceSetMemPool, SIM_UNSAFE)                                         \
    X(cuDevicePrimaryCtxRetain, 0)                                            \
    X(cuDevicePrimaryCtxRelease, 0)                                           \
    X(cuDevicePrimaryCtxReset, 0)                                             \
    X(cuDevicePrimaryCtxSetFlags, 0)                                          \
    X(cuDevicePrimaryCtxGetState, 0)                                          \
    X(cuCtxCreate, 0)                                                         \
    X(cuCtxDestroy, 0)                                                        \
    X(cuCtxGetCurrent, 0)                                                     \
    X(cuCtxSetCurrent, 0)                                                     \
    X(cuCtxPushCurrent, 0)                                                    \
    X(cuCtxPopCurrent, 0)                                                     \
    X(cuCtxGetDevice, SIM_CONTEXT)                                            \
    X(cuCtxGetFlags, SIM_CONTEXT)                                             \
    X(cuCtxGetId, 0)                                                          \
    X(cuCtxGetApiVersion, 0)                                                  \
    X(cuCtxGetStreamPriorityRange, SIM_CONTEXT)                               \
    X(cuCtxSynchronize, SIM_CONTEXT | SIM_UNSAFE)                             \
    X(cuCtxRecordEvent, 0)                                                    \
    X(cuCtxWaitEvent, 0)                                                      \
    X(cuCtxEnablePeerAccess, SIM_CONTEXT)                                     \
    X(cuCtxDisablePeerAccess, SIM_CONTEXT)                                    \
    X(cuMemAlloc, SIM_CONTEXT | SIM_UNSAFE)                                   \
    X(cuMemFree, SIM_UNSAFE | SIM_LIVE)                                       \
    X(cuMemAllocHost, SIM_CONTEXT | SIM_UNSAFE)                               \
    X(cuMemHostAlloc, SIM_CONTEXT | SIM_UNSAFE)                               \
    X(cuMemFreeHost, SIM_UNSAFE)                                              \
    X(cuMemHostGetDevicePointer, SIM_CONTEXT)                                 \
    X(cuMemHostGetFlags, SIM_CONTEXT)                                         \
    X(cuMemHostRegister, SIM_CONTEXT | SIM_UNSAFE)                            \
    X(cuMemHostUnregister, SIM_CONTEXT | SIM_UNSAFE)                          \
    X(cuMemAllocManaged, SIM_CONTEXT | SIM_UNSAFE)                            \
    X(cuMemGetInfo, SIM_CONTEXT)                                              \
    X(cuMemGetAddressRange, SIM_CONTEXT)                                      \
    X(cuPointerGetAttribute, 0)                                               \
    X(cuPointerGetAttributes, 0)                                              \
    X(cuMemAllocAsync, SIM_IN_CHILD)                                          \
    X(cuMemAllocFromPoolAsync, SIM_IN_CHILD)                                  \
    X(cuMemFreeAsync, SIM_IN_CHILD)                                           \
    X(cuMemPoolCreate, SIM_UNSAFE)                                            \
    X(cuMemPoolDestroy, SIM_UNSAFE)                                           \
    X(cuMemPoolSetAttribute, SIM_UNSAFE)                                      \
    X(cuMemPoolGetAttribute, SIM_UNSAFE)                                      \
    X(cuMemPoolTrimTo, SIM_UNSAFE)                                            \
    X(cuMemPoolSetAccess, SIM_UNSAFE)                                         \
    X(cuMemPoolGetAccess, SIM_UNSAFE)                                         \
    X(cuMemGetAllocationGranularity, 0)                                       \
    X(cuMemAddressReserve, 0)                                                 \
    X(cuMemAddressFree, 0)                                                    \
    X(cuMemCreate, 0)                                                         \
    X(cuMemRelease, 0)                                                        \
    X(cuMemMap, 0)                                                            \
    X(cuMemUnmap, 0)                                                          \
    X(cuMemSetAccess, 0)                                                      \
    X(cuMemGetAccess, 0)                                                      \
    X(cuMemRetainAllocationHandle, 0)                                         \
    X(cuMemGetAllocationPropertiesFromHandle, 0)                              \
    X(cuMemExportToShareableHandle, 0)                                        \
    X(cuMemImportFromShareableHandle, 0)                                      \
    X(cuMemPoolExportToShareableHandle, 0)                                    \
    X(cuMemPoolImportFromShareableHandle, 0)                                  \
    X(cuMemPoolExportPointer, 0)                                              \
    X(cuMemPoolImportPointer, 0)                                              \
    X(cuIpcGetMemHandle, 0)                                                   \
    X(cuIpcOpenMemHandle, SIM_CONTEXT)                                        \
    X(cuIpcCloseMemHandle, 0)                                                 \
    X(cuIpcGetEventHandle, 0)                                                 \
    X(cuIpcOpenEventHandle, SIM_CONTEXT)                                      \
    X(cuDeviceGetP2PAttribute, 0)                                             \
    X(cuMemcpyPeer, SIM_CONTEXT)                                              \
    X(cuMemcpyPeerAsync, 0)                                                   \
    X(cuMemPrefetchAsync, 0)                                                  \
    X(cuMemPrefetchBatchAsync, 0)                                             \
    X(cuMemAdvise, 0)                                                         \
    X(cuMemRangeGetAttribute, 0)                                              \
    X(cuMemRangeGetAttributes, 0)                                             \
    X(cuStreamAttachMemAsync, 0)                                              \
    X(cuMemGetDefaultMemPool, 0)                                              \
    X(cuMemGetMemPool, 0)                                                     \
    X(cuMemSetMemPool, SIM_UNSAFE)                                            \
    X(cuStreamCreate, SIM_CONTEXT)                                            \
    X(cuStreamCreateWithPriority, SIM_CONTEXT)                                \
    X(cuStreamDestroy, SIM_BY_HANDLE)                                         \
    X(cuStreamQuery, SIM_BY_HANDLE)                                           \
    X(cuStreamSynchronize, SIM_BY_HANDLE)                                     \
    X(cuStreamWaitEvent, SIM_BY_HANDLE)                                       \
    X(cuStreamGetId, SIM_BY_HANDLE)                                           \
    X(cuStreamGetCtx, SIM_BY_HANDLE)                                          \
    X(cuStreamGetDevice, SIM_BY_HANDLE)                                       \
    X(cuStreamGetFlags, SIM_BY_HANDLE)                                        \
    X(cuStreamGetPriority, SIM_BY_HANDLE)                                     \
    X(cuStreamIsCapturing, SIM_BY_HANDLE)                                     \
    X(cuStreamBeginCapture, 0)                                                \
    X(cuStreamEndCapture, 0)                                                  \
    X(cuStreamGetCaptureInfo, SIM_BY_HANDLE)                                  \
    X(cuThreadExchangeStreamCaptureMode, SIM_BY_HANDLE)                       \
    X(cuLaunchHostFunc, SIM_BY_HANDLE)                                        \
    X(cuStreamAddCallback, SIM_BY_HANDLE)                                     \
    X(cuGraphCreate, 0)                                                       \
    X(cuGraphDestroy, 0)                                                      \
    X(cuGraphGetNodes, 0)                                                     \
    X(cuGraphClone, 0)                                                        \
    X(cuGraphNodeGetType, 0)                                                  \
    X(cuGraphAddEmptyNode, 0)                                                 \
    X(cuGraphAddHostNode, 0)                                                  \
    X(cuGraphAddMemsetNode, 0)                                                \
    X(cuGraphAddMemAllocNode, 0)                                              \
    X(cuGraphAddMemFreeNode, 0)                                               \
    X(cuGraphMemAllocNodeGetParams, 0)                                        \
    X(cuGraphMemFreeNodeGetParams, 0)                                         \
    X(cuGraphDestroyNode, 0)                                                  \
    X(cuGraphInstantiate, 0)                                                  \
    X(cuGraphInstantiateWithFlags, 0)                                         \
    X(cuGraphInstantiateWithParams, 0)                                        \
    X(cuGraphExecDestroy, 0)                                                  \
    X(cuGraphExecUpdate, 0)                                                   \
    X(cuGraphLaunch, 0)                                                       \
    X(cuGraphUpload, 0)                                                       \
    X(cuDeviceGetGraphMemAttribute, 0)                                        \
    X(cuDeviceSetGraphMemAttribute, 0)                                        \
    X(cuDeviceGraphMemTrim, 0)                                                \
    X(cuUserObjectCreate, 0)                                                  \
    X(cuUserObjectRetain, 0)                                                  \
    X(cuUserObjectRelease, 0)                                                 \
    X(cuGraphRetainUserObject, 0)                                             \
    X(cuGraphReleaseUserObject, 0)                                            \
    X(cuEventCreate, SIM_CONTEXT)                                             \
    X(cuEventDestroy, SIM_BY_HANDLE)                                          \
    X(cuEventRecord, SIM_BY_HANDLE)                                           \
    X(cuEventRecordWithFlags, SIM_BY_HANDLE)                                  \
    X(cuEventQuery, SIM_UNSAFE | SIM_BY_HANDLE)                               \
    X(cuEventSynchronize, SIM_UNSAFE | SIM_BY_HANDLE)                         \
    X(cuEventElapsedTime, SIM_BY_HANDLE)                                      \
    X(cuMemcpy, SIM_CONTEXT)                                                  \
    X(cuMemcpyAsync, 0)                                                       \
    X(cuMemcpyHtoD, SIM_CONTEXT)                                              \
    X(cuMemcpyDtoH, SIM_CONTEXT)                                              \
    X(cuMemcpyDtoD, SIM_CONTEXT)                                              \
    X(cuMemcpyHtoDAsync, 0)                                                   \
    X(cuMemcpyDtoHAsync, 0)                                                   \
    X(cuMemcpyDtoDAsync, 0)                                                   \
    X(cuMemsetD8, SIM_CONTEXT)                                                \
    X(cuMemsetD16, SIM_CONTEXT)                                               \
    X(cuMemsetD32, SIM_CONTEXT)                                               \
    X(cuMemsetD8Async, SIM_BY_HANDLE)                                         \
    X(cuMemsetD16Async, SIM_BY_HANDLE)                                        \
    X(cuMemsetD32Async, SIM_BY_HANDLE)

enum sim_call {
#define SIM_CALL_NUMBER(name, flags) SIM_##name,
    SIM_CALLS(SIM_CALL_NUMBER)
#undef SIM_CALL_NUMBER
        SIM_CALL_COUNT
};

#endif
