/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The forms of calls from before their present versions. A program that looks
 * names up by dlsym without their versions gets these, as from a real driver.
 *
 * Those that took 32-bit addresses or contexts that belong to one thread can
 * do nothing useful any more: they answer CUDA_ERROR_INVALID_CONTEXT and leave
 * their outputs alone, so that the mistake is seen.
 */
#define __CUDA_API_VERSION_INTERNAL
#include "sim/entry.h"
#include "sim/per_thread.h"

static CUresult refuse(enum sim_call call)
{
    struct sim_frame frame;
    CUresult res = sim_enter(&frame, call);

    return sim_leave(&frame,
                     res != CUDA_SUCCESS ? res : CUDA_ERROR_INVALID_CONTEXT,
                     NULL, 0, 0, 0);
}

CUresult CUDAAPI cuDeviceTotalMem(unsigned int *bytes, CUdevice dev)
{
    (void)bytes;
    (void)dev;
    return refuse(SIM_cuDeviceTotalMem);
}

CUresult CUDAAPI cuCtxCreate(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
    (void)pctx;
    (void)flags;
    (void)dev;
    return refuse(SIM_cuCtxCreate);
}

CUresult CUDAAPI cuMemGetInfo(unsigned int *unused, unsigned int *total)
{
    (void)unused;
    (void)total;
    return refuse(SIM_cuMemGetInfo);
}

CUresult CUDAAPI cuMemAlloc(CUdeviceptr_v1 *dptr, unsigned int bytesize)
{
    (void)dptr;
    (void)bytesize;
    return refuse(SIM_cuMemAlloc);
}

CUresult CUDAAPI cuMemFree(CUdeviceptr_v1 dptr)
{
    (void)dptr;
    return refuse(SIM_cuMemFree);
}

CUresult CUDAAPI cuMemGetAddressRange(CUdeviceptr_v1 *pbase,
                                      unsigned int *psize, CUdeviceptr_v1 dptr)
{
    (void)pbase;
    (void)psize;
    (void)dptr;
    return refuse(SIM_cuMemGetAddressRange);
}

CUresult CUDAAPI cuMemAllocHost(void **pp, unsigned int bytesize)
{
    (void)pp;
    (void)bytesize;
    return refuse(SIM_cuMemAllocHost);
}

CUresult CUDAAPI cuMemHostGetDevicePointer(CUdeviceptr_v1 *pdptr, void *p,
                                           unsigned int Flags)
{
    (void)pdptr;
    (void)p;
    (void)Flags;
    return refuse(SIM_cuMemHostGetDevicePointer);
}

CUresult CUDAAPI cuMemcpyHtoD(CUdeviceptr_v1 dstDevice, const void *srcHost,
                              unsigned int ByteCount)
{
    (void)dstDevice;
    (void)srcHost;
    (void)ByteCount;
    return refuse(SIM_cuMemcpyHtoD);
}

CUresult CUDAAPI cuMemcpyDtoH(void *dstHost, CUdeviceptr_v1 srcDevice,
                              unsigned int ByteCount)
{
    (void)dstHost;
    (void)srcDevice;
    (void)ByteCount;
    return refuse(SIM_cuMemcpyDtoH);
}

CUresult CUDAAPI cuMemcpyDtoD(CUdeviceptr_v1 dstDevice,
                              CUdeviceptr_v1 srcDevice, unsigned int ByteCount)
{
    (void)dstDevice;
    (void)srcDevice;
    (void)ByteCount;
    return refuse(SIM_cuMemcpyDtoD);
}

CUresult CUDAAPI cuMemsetD8(CUdeviceptr_v1 dstDevice, unsigned char uc,
                            unsigned int N)
{
    (void)dstDevice;
    (void)uc;
    (void)N;
    return refuse(SIM_cuMemsetD8);
}

CUresult CUDAAPI cuCtxDestroy(CUcontext ctx)
{
    (void)ctx;
    return refuse(SIM_cuCtxDestroy);
}

CUresult CUDAAPI cuCtxPushCurrent(CUcontext ctx)
{
    (void)ctx;
    return refuse(SIM_cuCtxPushCurrent);
}

CUresult CUDAAPI cuCtxPopCurrent(CUcontext *pctx)
{
    (void)pctx;
    return refuse(SIM_cuCtxPopCurrent);
}

/* The rest changed in small ways, and work as ever. */

CUresult CUDAAPI cuStreamDestroy(CUstream hStream)
{
    return cuStreamDestroy_v2(hStream);
}

CUresult CUDAAPI cuEventDestroy(CUevent hEvent)
{
    return cuEventDestroy_v2(hEvent);
}

CUresult CUDAAPI cuEventElapsedTime(float *pMilliseconds, CUevent hStart,
                                    CUevent hEnd)
{
    return cuEventElapsedTime_v2(pMilliseconds, hStart, hEnd);
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice dev)
{
    return cuDevicePrimaryCtxRelease_v2(dev);
}

CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice dev)
{
    return cuDevicePrimaryCtxReset_v2(dev);
}

CUresult CUDAAPI cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags)
{
    return cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}

CUresult CUDAAPI cuDeviceGetUuid(CUuuid *uuid, CUdevice dev)
{
    return cuDeviceGetUuid_v2(uuid, dev);
}

CUresult CUDAAPI cuMemHostRegister(void *p, size_t bytesize,
                                   unsigned int Flags)
{
    return cuMemHostRegister_v2(p, bytesize, Flags);
}

CUresult CUDAAPI cuStreamBeginCapture(CUstream hStream)
{
    return cuStreamBeginCapture_v2(hStream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult CUDAAPI cuStreamGetCaptureInfo(
    CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
    cuuint64_t *id_out)
{
    return cuStreamGetCaptureInfo_v2(hStream, captureStatus_out, id_out, NULL,
                                     NULL, NULL);
}

/* Places were devices once, and the host one of them. */
static CUmemLocation place_of(CUdevice device)
{
    CUmemLocation place;

    place.type = device == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST
                                         : CU_MEM_LOCATION_TYPE_DEVICE;
    place.id = device;
    return place;
}

CUresult CUDAAPI cuMemPrefetchAsync(CUdeviceptr devPtr, size_t count,
                                    CUdevice dstDevice, CUstream hStream)
{
    return cuMemPrefetchAsync_v2(devPtr, count, place_of(dstDevice), 0,
                                 hStream);
}

CUresult CUDAAPI cuMemPrefetchAsync_ptsz(CUdeviceptr address, size_t bytes,
                                         CUdevice device, CUstream stream)
{
    return cuMemPrefetchAsync_v2(address, bytes, place_of(device), 0,
                                 stream == NULL ? CU_STREAM_PER_THREAD
                                                : stream);
}

CUresult CUDAAPI cuMemAdvise(CUdeviceptr devPtr, size_t count,
                             CUmem_advise advice, CUdevice device)
{
    return cuMemAdvise_v2(devPtr, count, advice, place_of(device));
}

CUresult CUDAAPI cuIpcOpenMemHandle(CUdeviceptr *pdptr, CUipcMemHandle handle,
                                    unsigned int Flags)
{
    return cuIpcOpenMemHandle_v2(pdptr, handle, Flags);
}

/* Where a node could not be instantiated was told by itself once. */
CUresult CUDAAPI cuGraphInstantiate_v2(CUgraphExec *phGraphExec,
                                       CUgraph hGraph,
                                       CUgraphNode *phErrorNode,
                                       char *logBuffer, size_t bufferSize)
{
    if (phErrorNode != NULL) {
        *phErrorNode = NULL;
    }
    if (logBuffer != NULL && bufferSize != 0) {
        logBuffer[0] = 0;
    }
    return cuGraphInstantiateWithFlags(phGraphExec, hGraph, 0);
}

CUresult CUDAAPI cuGraphInstantiate(CUgraphExec *phGraphExec, CUgraph hGraph,
                                    CUgraphNode *phErrorNode, char *logBuffer,
                                    size_t bufferSize)
{
    return cuGraphInstantiate_v2(phGraphExec, hGraph, phErrorNode, logBuffer,
                                 bufferSize);
}

const struct sim_entry sim_old_entries[] = {
    {SIM_cuDeviceTotalMem, 2000, (sim_function)cuDeviceTotalMem, NULL},
    {SIM_cuCtxCreate, 2000, (sim_function)cuCtxCreate, NULL},
    {SIM_cuCtxDestroy, 2000, (sim_function)cuCtxDestroy, NULL},
    {SIM_cuCtxPushCurrent, 2000, (sim_function)cuCtxPushCurrent, NULL},
    {SIM_cuCtxPopCurrent, 2000, (sim_function)cuCtxPopCurrent, NULL},
    {SIM_cuMemGetInfo, 2000, (sim_function)cuMemGetInfo, NULL},
    {SIM_cuMemAlloc, 2000, (sim_function)cuMemAlloc, NULL},
    {SIM_cuMemFree, 2000, (sim_function)cuMemFree, NULL},
    {SIM_cuMemGetAddressRange, 2000, (sim_function)cuMemGetAddressRange, NULL},
    {SIM_cuMemAllocHost, 2000, (sim_function)cuMemAllocHost, NULL},
    {SIM_cuMemHostGetDevicePointer, 2020,
     (sim_function)cuMemHostGetDevicePointer, NULL},
    {SIM_cuMemcpyHtoD, 2000, (sim_function)cuMemcpyHtoD, NULL},
    {SIM_cuMemcpyDtoH, 2000, (sim_function)cuMemcpyDtoH, NULL},
    {SIM_cuMemcpyDtoD, 2000, (sim_function)cuMemcpyDtoD, NULL},
    {SIM_cuMemsetD8, 2000, (sim_function)cuMemsetD8, NULL},
    {SIM_cuStreamDestroy, 2000, (sim_function)cuStreamDestroy, NULL},
    {SIM_cuEventDestroy, 2000, (sim_function)cuEventDestroy, NULL},
    {SIM_cuEventElapsedTime, 2000, (sim_function)cuEventElapsedTime, NULL},
    {SIM_cuDevicePrimaryCtxRelease, 7000,
     (sim_function)cuDevicePrimaryCtxRelease, NULL},
    {SIM_cuDevicePrimaryCtxReset, 7000, (sim_function)cuDevicePrimaryCtxReset,
     NULL},
    {SIM_cuDevicePrimaryCtxSetFlags, 7000,
     (sim_function)cuDevicePrimaryCtxSetFlags, NULL},
    {SIM_cuDeviceGetUuid, 9020, (sim_function)cuDeviceGetUuid, NULL},
    {SIM_cuMemHostRegister, 4000, (sim_function)cuMemHostRegister, NULL},
    {SIM_cuStreamBeginCapture, 10000, (sim_function)cuStreamBeginCapture,
     NULL},
    {SIM_cuStreamGetCaptureInfo, 10010, (sim_function)cuStreamGetCaptureInfo,
     NULL},
    {SIM_cuMemPrefetchAsync, 8000, (sim_function)cuMemPrefetchAsync,
     (sim_function)cuMemPrefetchAsync_ptsz},
    {SIM_cuMemAdvise, 8000, (sim_function)cuMemAdvise, NULL},
    {SIM_cuIpcOpenMemHandle, 4010, (sim_function)cuIpcOpenMemHandle, NULL},
    {SIM_cuGraphInstantiate, 10000, (sim_function)cuGraphInstantiate, NULL},
    {SIM_cuGraphInstantiate, 11000, (sim_function)cuGraphInstantiate_v2, NULL},
    {SIM_cuGetProcAddress, 11030, (sim_function)cuGetProcAddress, NULL},
};

const size_t sim_old_entry_count =
    sizeof sim_old_entries / sizeof sim_old_entries[0];
