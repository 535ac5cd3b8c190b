/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulator as its tests see it: loaded by dlopen, as its users do it,
 * with its entry points by their exact names and its control table.
 */
#ifndef TESTS_SIMULATION_DRIVER_H
#define TESTS_SIMULATION_DRIVER_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

#include "sim/sim.h"

/* cuda.h gives many of these names their version, here and in the members. */
#define DRIVER_CALLS(X)                                                       \
    X(cuInit)                                                                 \
    X(cuDriverGetVersion)                                                     \
    X(cuGetErrorName)                                                         \
    X(cuGetProcAddress)                                                       \
    X(cuDeviceGet)                                                            \
    X(cuDeviceGetCount)                                                       \
    X(cuDeviceGetAttribute)                                                   \
    X(cuDeviceTotalMem)                                                       \
    X(cuDeviceGetUuid)                                                        \
    X(cuDeviceCanAccessPeer)                                                  \
    X(cuDeviceGetDefaultMemPool)                                              \
    X(cuDeviceGetMemPool)                                                     \
    X(cuDeviceSetMemPool)                                                     \
    X(cuDevicePrimaryCtxRetain)                                               \
    X(cuDevicePrimaryCtxRelease)                                              \
    X(cuDevicePrimaryCtxReset)                                                \
    X(cuCtxCreate)                                                            \
    X(cuCtxDestroy)                                                           \
    X(cuCtxGetCurrent)                                                        \
    X(cuCtxSetCurrent)                                                        \
    X(cuCtxPushCurrent)                                                       \
    X(cuCtxPopCurrent)                                                        \
    X(cuCtxGetDevice)                                                         \
    X(cuCtxSynchronize)                                                       \
    X(cuCtxGetId)                                                             \
    X(cuCtxRecordEvent)                                                       \
    X(cuCtxWaitEvent)                                                         \
    X(cuMemAlloc)                                                             \
    X(cuMemFree)                                                              \
    X(cuMemHostAlloc)                                                         \
    X(cuMemFreeHost)                                                          \
    X(cuMemHostRegister)                                                      \
    X(cuMemHostUnregister)                                                    \
    X(cuMemAllocManaged)                                                      \
    X(cuMemGetInfo)                                                           \
    X(cuMemGetAddressRange)                                                   \
    X(cuPointerGetAttribute)                                                  \
    X(cuMemAddressReserve)                                                    \
    X(cuMemAddressFree)                                                       \
    X(cuMemCreate)                                                            \
    X(cuMemRelease)                                                           \
    X(cuMemMap)                                                               \
    X(cuMemUnmap)                                                             \
    X(cuMemSetAccess)                                                         \
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
    X(cuStreamCreate)                                                         \
    X(cuStreamDestroy)                                                        \
    X(cuStreamQuery)                                                          \
    X(cuStreamSynchronize)                                                    \
    X(cuStreamWaitEvent)                                                      \
    X(cuStreamGetId)                                                          \
    X(cuStreamIsCapturing)                                                    \
    X(cuStreamBeginCapture)                                                   \
    X(cuStreamEndCapture)                                                     \
    X(cuThreadExchangeStreamCaptureMode)                                      \
    X(cuGraphGetNodes)                                                        \
    X(cuGraphDestroy)                                                         \
    X(cuEventCreate)                                                          \
    X(cuEventRecord)                                                          \
    X(cuEventQuery)                                                           \
    X(cuEventSynchronize)                                                     \
    X(cuEventElapsedTime)                                                     \
    X(cuEventDestroy)                                                         \
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
    X(cuMemsetD8Async)                                                        \
    X(cuMemsetD16Async)                                                       \
    X(cuMemcpyPeer)                                                           \
    X(cuDeviceGetP2PAttribute)                                                \
    X(cuCtxEnablePeerAccess)                                                  \
    X(cuCtxDisablePeerAccess)                                                 \
    X(cuMemGetAccess)                                                         \
    X(cuMemRetainAllocationHandle)                                            \
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
    X(cuMemGetDefaultMemPool)                                                 \
    X(cuMemGetMemPool)                                                        \
    X(cuMemSetMemPool)                                                        \
    X(cuGraphCreate)                                                          \
    X(cuGraphInstantiateWithFlags)                                            \
    X(cuGraphLaunch)                                                          \
    X(cuGraphUpload)                                                          \
    X(cuGraphExecDestroy)                                                     \
    X(cuGraphAddMemAllocNode)                                                 \
    X(cuGraphAddMemFreeNode)                                                  \
    X(cuGraphAddHostNode)                                                     \
    X(cuGraphAddMemsetNode)                                                   \
    X(cuDeviceGetGraphMemAttribute)                                           \
    X(cuDeviceGraphMemTrim)                                                   \
    X(cuUserObjectCreate)                                                     \
    X(cuUserObjectRelease)                                                    \
    X(cuGraphRetainUserObject)                                                \
    X(cuMemsetD32Async)

struct driver {
#define DRIVER_MEMBER(name) __typeof__(name) *name;
    DRIVER_CALLS(DRIVER_MEMBER)
#undef DRIVER_MEMBER
};

extern struct driver drv;
extern const ccmr_sim_table *sim;

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

/** Load the simulator; without it no test makes sense. */
void driver_load(void);
/** A symbol of it, or NULL. */
void *driver_symbol(const char *name);

/** From the state after reset: initialise, in that mode and with that seed,
 *  and make the primary context of device 0 current. */
void driver_start(ccmr_sim_mode mode, uint64_t seed);

/* One test that a call answers CUDA_SUCCESS, or a given status. */
#define CHECK(call) check_result((call), CUDA_SUCCESS, #call)
#define CHECK_IS(call, status) check_result((call), (status), #call)
bool check_result(CUresult got, CUresult want, const char *what);

/** What is alive now. */
ccmr_sim_census census_now(void);
/** One test that the simulator was left as it was found: reset, and see. */
void check_nothing_left(const char *what);

CUstream new_stream(void);
CUmemoryPool new_pool(size_t max_size);
uint64_t pool_number(CUmemoryPool pool, CUmemPool_attribute attribute);
void pool_keep(CUmemoryPool pool);

#endif
