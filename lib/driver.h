/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's entry points, found by dlopen and cuGetProcAddress.
 *
 * One table says everything about an entry point that the library uses: its
 * name, the version of its signature, whether the library can do without it,
 * its parameters. From it come the struct of pointers, the loader, and (in the
 * bench) wrappers that count calls.
 */
#ifndef CCMR_LIB_DRIVER_H
#define CCMR_LIB_DRIVER_H

#include <cuda.h>

#include <cucoremr/device.h>

/*
 * X(name, version, need, parameters, arguments)
 *   name     unversioned name, as cuGetProcAddress takes it
 *   version  CUDA version of the signature below (never CUDA_VERSION: the
 *            driver would hand out a newer signature)
 *   need     REQUIRED: no driver without it is accepted; OPTIONAL: may be
 *            NULL, the feature that needs it checks
 */
#define CCMR__DRIVER_MAP(X)                                                   \
    X(cuInit, 2000, REQUIRED, (unsigned flags), (flags))                      \
    X(cuDriverGetVersion, 2020, REQUIRED, (int *version), (version))          \
    X(cuGetErrorName, 6000, REQUIRED, (CUresult error, const char **name),    \
      (error, name))                                                          \
    X(cuDeviceGetCount, 2000, REQUIRED, (int *count), (count))                \
    X(cuDeviceGet, 2000, REQUIRED, (CUdevice * device, int ordinal),          \
      (device, ordinal))                                                      \
    X(cuDeviceGetName, 2000, REQUIRED,                                        \
      (char *name, int length, CUdevice device), (name, length, device))      \
    X(cuDeviceGetAttribute, 2000, REQUIRED,                                   \
      (int *value, CUdevice_attribute attribute, CUdevice device),            \
      (value, attribute, device))                                             \
    X(cuDeviceTotalMem, 3020, REQUIRED, (size_t * bytes, CUdevice device),    \
      (bytes, device))                                                        \
    X(cuDevicePrimaryCtxRetain, 7000, REQUIRED,                               \
      (CUcontext * context, CUdevice device), (context, device))              \
    X(cuDevicePrimaryCtxRelease, 11000, REQUIRED, (CUdevice device),          \
      (device))                                                               \
    X(cuCtxGetCurrent, 4000, REQUIRED, (CUcontext * context), (context))      \
    X(cuCtxPushCurrent, 4000, REQUIRED, (CUcontext context), (context))       \
    X(cuCtxPopCurrent, 4000, REQUIRED, (CUcontext * context), (context))      \
    X(cuCtxGetDevice, 2000, REQUIRED, (CUdevice * device), (device))          \
    X(cuMemAlloc, 3020, REQUIRED, (CUdeviceptr * ptr, size_t bytes),          \
      (ptr, bytes))                                                           \
    X(cuMemFree, 3020, REQUIRED, (CUdeviceptr ptr), (ptr))                    \
    X(cuMemHostAlloc, 2020, REQUIRED,                                         \
      (void **ptr, size_t bytes, unsigned flags), (ptr, bytes, flags))        \
    X(cuMemFreeHost, 2000, REQUIRED, (void *ptr), (ptr))                      \
    X(cuMemGetInfo, 3020, REQUIRED, (size_t * free, size_t * total),          \
      (free, total))                                                          \
    X(cuPointerGetAttribute, 4000, REQUIRED,                                  \
      (void *data, CUpointer_attribute attribute, CUdeviceptr ptr),           \
      (data, attribute, ptr))                                                 \
    X(cuDeviceGetDefaultMemPool, 11020, OPTIONAL,                             \
      (CUmemoryPool * pool, CUdevice device), (pool, device))                 \
    X(cuMemPoolCreate, 11020, OPTIONAL,                                       \
      (CUmemoryPool * pool, const CUmemPoolProps *props), (pool, props))      \
    X(cuMemPoolDestroy, 11020, OPTIONAL, (CUmemoryPool pool), (pool))         \
    X(cuMemPoolSetAttribute, 11020, OPTIONAL,                                 \
      (CUmemoryPool pool, CUmemPool_attribute attribute, void *value),        \
      (pool, attribute, value))                                               \
    X(cuMemPoolGetAttribute, 11020, OPTIONAL,                                 \
      (CUmemoryPool pool, CUmemPool_attribute attribute, void *value),        \
      (pool, attribute, value))                                               \
    X(cuMemPoolTrimTo, 11020, OPTIONAL, (CUmemoryPool pool, size_t keep),     \
      (pool, keep))                                                           \
    X(cuMemAllocFromPoolAsync, 11020, OPTIONAL,                               \
      (CUdeviceptr * ptr, size_t bytes, CUmemoryPool pool, CUstream stream),  \
      (ptr, bytes, pool, stream))                                             \
    X(cuMemFreeAsync, 11020, OPTIONAL, (CUdeviceptr ptr, CUstream stream),    \
      (ptr, stream))                                                          \
    X(cuDeviceCanAccessPeer, 4000, OPTIONAL,                                  \
      (int *can, CUdevice device, CUdevice peer), (can, device, peer))        \
    X(cuMemGetAllocationGranularity, 10020, OPTIONAL,                         \
      (size_t * bytes, const CUmemAllocationProp *prop,                       \
       CUmemAllocationGranularity_flags option),                              \
      (bytes, prop, option))                                                  \
    X(cuMemAddressReserve, 10020, OPTIONAL,                                   \
      (CUdeviceptr * ptr, size_t bytes, size_t alignment, CUdeviceptr hint,   \
       unsigned long long flags),                                             \
      (ptr, bytes, alignment, hint, flags))                                   \
    X(cuMemAddressFree, 10020, OPTIONAL, (CUdeviceptr ptr, size_t bytes),     \
      (ptr, bytes))                                                           \
    X(cuMemCreate, 10020, OPTIONAL,                                           \
      (CUmemGenericAllocationHandle * handle, size_t bytes,                   \
       const CUmemAllocationProp *prop, unsigned long long flags),            \
      (handle, bytes, prop, flags))                                           \
    X(cuMemRelease, 10020, OPTIONAL, (CUmemGenericAllocationHandle handle),   \
      (handle))                                                               \
    X(cuMemMap, 10020, OPTIONAL,                                              \
      (CUdeviceptr ptr, size_t bytes, size_t offset,                          \
       CUmemGenericAllocationHandle handle, unsigned long long flags),        \
      (ptr, bytes, offset, handle, flags))                                    \
    X(cuMemUnmap, 10020, OPTIONAL, (CUdeviceptr ptr, size_t bytes),           \
      (ptr, bytes))                                                           \
    X(cuMemSetAccess, 10020, OPTIONAL,                                        \
      (CUdeviceptr ptr, size_t bytes, const CUmemAccessDesc *entries,         \
       size_t count),                                                         \
      (ptr, bytes, entries, count))                                           \
    X(cuMemExportToShareableHandle, 10020, OPTIONAL,                          \
      (void *shared, CUmemGenericAllocationHandle handle,                     \
       CUmemAllocationHandleType kind, unsigned long long flags),             \
      (shared, handle, kind, flags))                                          \
    X(cuStreamCreate, 2000, REQUIRED, (CUstream * stream, unsigned flags),    \
      (stream, flags))                                                        \
    X(cuStreamDestroy, 4000, REQUIRED, (CUstream stream), (stream))           \
    X(cuStreamQuery, 2000, REQUIRED, (CUstream stream), (stream))             \
    X(cuStreamSynchronize, 2000, REQUIRED, (CUstream stream), (stream))       \
    X(cuStreamWaitEvent, 3020, REQUIRED,                                      \
      (CUstream stream, CUevent event, unsigned flags),                       \
      (stream, event, flags))                                                 \
    X(cuStreamIsCapturing, 10000, REQUIRED,                                   \
      (CUstream stream, CUstreamCaptureStatus * status), (stream, status))    \
    X(cuThreadExchangeStreamCaptureMode, 10010, REQUIRED,                     \
      (CUstreamCaptureMode * mode), (mode))                                   \
    X(cuStreamGetCtx, 9020, REQUIRED, (CUstream stream, CUcontext * context), \
      (stream, context))                                                      \
    X(cuStreamGetCaptureInfo, 11030, OPTIONAL,                                \
      (CUstream stream, CUstreamCaptureStatus * status, cuuint64_t * id,      \
       CUgraph * graph, const CUgraphNode **nodes, size_t *count),            \
      (stream, status, id, graph, nodes, count))                              \
    X(cuUserObjectCreate, 11030, OPTIONAL,                                    \
      (CUuserObject * object, void *data, CUhostFn destroy, unsigned count,   \
       unsigned flags),                                                       \
      (object, data, destroy, count, flags))                                  \
    X(cuUserObjectRelease, 11030, OPTIONAL,                                   \
      (CUuserObject object, unsigned count), (object, count))                 \
    X(cuGraphRetainUserObject, 11030, OPTIONAL,                               \
      (CUgraph graph, CUuserObject object, unsigned count, unsigned flags),   \
      (graph, object, count, flags))                                          \
    X(cuStreamGetId, 12000, OPTIONAL,                                         \
      (CUstream stream, unsigned long long *id), (stream, id))                \
    X(cuStreamGetDevice, 12080, OPTIONAL,                                     \
      (CUstream stream, CUdevice * device), (stream, device))                 \
    X(cuEventCreate, 2000, REQUIRED, (CUevent * event, unsigned flags),       \
      (event, flags))                                                         \
    X(cuEventRecord, 2000, REQUIRED, (CUevent event, CUstream stream),        \
      (event, stream))                                                        \
    X(cuEventQuery, 2000, REQUIRED, (CUevent event), (event))                 \
    X(cuEventSynchronize, 2000, REQUIRED, (CUevent event), (event))           \
    X(cuEventDestroy, 4000, REQUIRED, (CUevent event), (event))               \
    X(cuMemcpyAsync, 4000, REQUIRED,                                          \
      (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),      \
      (to, from, bytes, stream))                                              \
    X(cuMemsetD8Async, 3020, REQUIRED,                                        \
      (CUdeviceptr ptr, unsigned char value, size_t count, CUstream stream),  \
      (ptr, value, count, stream))                                            \
    X(cuMemsetD16Async, 3020, REQUIRED,                                       \
      (CUdeviceptr ptr, unsigned short value, size_t count, CUstream stream), \
      (ptr, value, count, stream))                                            \
    X(cuMemsetD32Async, 3020, REQUIRED,                                       \
      (CUdeviceptr ptr, unsigned value, size_t count, CUstream stream),       \
      (ptr, value, count, stream))

/* The names are written out as text before cuda.h's macros change them. */
typedef struct ccmr__driver_table {
#define CCMR__DRIVER_MEMBER(name, version, need, parameters, arguments)       \
    CUresult(CUDAAPI *p_##name) parameters;
    CCMR__DRIVER_MAP(CCMR__DRIVER_MEMBER)
#undef CCMR__DRIVER_MEMBER
} ccmr__driver_table;

/**
 * The entry points. Written once, under the lock of ccmr__driver_load(), and
 * only read after it succeeded (the bench swaps pointers while nothing runs).
 */
extern ccmr__driver_table ccmr__driver;

/** Call an entry point: CCMR__CU(cuMemFree)(ptr). */
#define CCMR__CU(name) (ccmr__driver.p_##name)

/** Name of an entry point as text, for ccmr__fail_driver(). */
#define CCMR__CU_NAME(name) #name

/**
 * Load and initialise the driver if that has not been done. `name` as in
 * ccmr_init_options.driver, NULL for the default. Takes a lock; idempotent.
 */
ccmr_status ccmr__driver_load(const char *name);

/** 1 once the driver is ready. One relaxed load and a compare. */
int ccmr__driver_ready(void);

/** Make sure that the driver is there: the check of every slow path. */
ccmr_status ccmr__driver_need(void);

/** Version as cuDriverGetVersion, 0 before the driver is ready. */
int ccmr__driver_version(void);

/** Name, path of the loaded library, and whether it is the simulator. */
const char *ccmr__driver_name(void);
const char *ccmr__driver_path(void);
int ccmr__driver_simulated(void);

#endif /* CCMR_LIB_DRIVER_H */
