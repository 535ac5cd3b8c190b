/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entry points of programs that were built with a default stream per
 * thread: there a null stream means the thread's own. Those of synchronous
 * copies and fills (_ptds) are beside the calls themselves, in copy.c.
 */
#include "sim/per_thread.h"

/* What a handle means to such a program. */
static CUstream own(CUstream stream)
{
    return stream == NULL ? CU_STREAM_PER_THREAD : stream;
}

CUresult CUDAAPI cuStreamGetPriority_ptsz(CUstream stream, int *priority)
{
    return cuStreamGetPriority(own(stream), priority);
}

CUresult CUDAAPI cuStreamGetId_ptsz(CUstream stream, unsigned long long *id)
{
    return cuStreamGetId(own(stream), id);
}

CUresult CUDAAPI cuStreamGetFlags_ptsz(CUstream stream, unsigned int *flags)
{
    return cuStreamGetFlags(own(stream), flags);
}

CUresult CUDAAPI cuStreamGetDevice_ptsz(CUstream stream, CUdevice *device)
{
    return cuStreamGetDevice(own(stream), device);
}

CUresult CUDAAPI cuStreamGetCtx_ptsz(CUstream stream, CUcontext *context)
{
    return cuStreamGetCtx(own(stream), context);
}

CUresult CUDAAPI cuStreamWaitEvent_ptsz(CUstream stream, CUevent event,
                                        unsigned int flags)
{
    return cuStreamWaitEvent(own(stream), event, flags);
}

CUresult CUDAAPI cuStreamBeginCapture_v2_ptsz(CUstream stream,
                                              CUstreamCaptureMode mode)
{
    return cuStreamBeginCapture_v2(own(stream), mode);
}

CUresult CUDAAPI cuStreamEndCapture_ptsz(CUstream stream, CUgraph *graph)
{
    return cuStreamEndCapture(own(stream), graph);
}

CUresult CUDAAPI cuStreamIsCapturing_ptsz(CUstream stream,
                                          CUstreamCaptureStatus *status)
{
    return cuStreamIsCapturing(own(stream), status);
}

CUresult CUDAAPI cuStreamGetCaptureInfo_v2_ptsz(CUstream stream,
                                                CUstreamCaptureStatus *status,
                                                cuuint64_t *id, CUgraph *graph,
                                                const CUgraphNode **nodes,
                                                size_t *count)
{
    return cuStreamGetCaptureInfo_v2(own(stream), status, id, graph, nodes,
                                     count);
}

CUresult CUDAAPI cuStreamGetCaptureInfo_v3_ptsz(CUstream stream,
                                                CUstreamCaptureStatus *status,
                                                cuuint64_t *id, CUgraph *graph,
                                                const CUgraphNode **nodes,
                                                const CUgraphEdgeData **edges,
                                                size_t *count)
{
    return cuStreamGetCaptureInfo_v3(own(stream), status, id, graph, nodes,
                                     edges, count);
}

CUresult CUDAAPI cuStreamAddCallback_ptsz(CUstream stream,
                                          CUstreamCallback callback,
                                          void *data, unsigned int flags)
{
    return cuStreamAddCallback(own(stream), callback, data, flags);
}

CUresult CUDAAPI cuStreamQuery_ptsz(CUstream stream)
{
    return cuStreamQuery(own(stream));
}

CUresult CUDAAPI cuStreamSynchronize_ptsz(CUstream stream)
{
    return cuStreamSynchronize(own(stream));
}

CUresult CUDAAPI cuLaunchHostFunc_ptsz(CUstream stream, CUhostFn function,
                                       void *data)
{
    return cuLaunchHostFunc(own(stream), function, data);
}

CUresult CUDAAPI cuEventRecord_ptsz(CUevent event, CUstream stream)
{
    return cuEventRecord(event, own(stream));
}

CUresult CUDAAPI cuEventRecordWithFlags_ptsz(CUevent event, CUstream stream,
                                             unsigned int flags)
{
    return cuEventRecordWithFlags(event, own(stream), flags);
}

CUresult CUDAAPI cuMemcpyAsync_ptsz(CUdeviceptr to, CUdeviceptr from,
                                    size_t bytes, CUstream stream)
{
    return cuMemcpyAsync(to, from, bytes, own(stream));
}

CUresult CUDAAPI cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr to, const void *from,
                                           size_t bytes, CUstream stream)
{
    return cuMemcpyHtoDAsync_v2(to, from, bytes, own(stream));
}

CUresult CUDAAPI cuMemcpyDtoHAsync_v2_ptsz(void *to, CUdeviceptr from,
                                           size_t bytes, CUstream stream)
{
    return cuMemcpyDtoHAsync_v2(to, from, bytes, own(stream));
}

CUresult CUDAAPI cuMemcpyDtoDAsync_v2_ptsz(CUdeviceptr to, CUdeviceptr from,
                                           size_t bytes, CUstream stream)
{
    return cuMemcpyDtoDAsync_v2(to, from, bytes, own(stream));
}

CUresult CUDAAPI cuMemsetD8Async_ptsz(CUdeviceptr to, unsigned char value,
                                      size_t count, CUstream stream)
{
    return cuMemsetD8Async(to, value, count, own(stream));
}

CUresult CUDAAPI cuMemsetD16Async_ptsz(CUdeviceptr to, unsigned short value,
                                       size_t count, CUstream stream)
{
    return cuMemsetD16Async(to, value, count, own(stream));
}

CUresult CUDAAPI cuMemsetD32Async_ptsz(CUdeviceptr to, unsigned int value,
                                       size_t count, CUstream stream)
{
    return cuMemsetD32Async(to, value, count, own(stream));
}

CUresult CUDAAPI cuMemAllocAsync_ptsz(CUdeviceptr *address, size_t bytes,
                                      CUstream stream)
{
    return cuMemAllocAsync(address, bytes, own(stream));
}

CUresult CUDAAPI cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *address,
                                              size_t bytes, CUmemoryPool pool,
                                              CUstream stream)
{
    return cuMemAllocFromPoolAsync(address, bytes, pool, own(stream));
}

CUresult CUDAAPI cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream)
{
    return cuMemFreeAsync(address, own(stream));
}

CUresult CUDAAPI cuMemcpyPeerAsync_ptsz(CUdeviceptr to, CUcontext to_context,
                                        CUdeviceptr from,
                                        CUcontext from_context, size_t bytes,
                                        CUstream stream)
{
    return cuMemcpyPeerAsync(to, to_context, from, from_context, bytes,
                             own(stream));
}

CUresult CUDAAPI cuMemPrefetchAsync_v2_ptsz(CUdeviceptr address, size_t bytes,
                                            CUmemLocation location,
                                            unsigned int flags,
                                            CUstream stream)
{
    return cuMemPrefetchAsync(address, bytes, location, flags, own(stream));
}

CUresult CUDAAPI cuMemPrefetchBatchAsync_ptsz(
    CUdeviceptr *addresses, size_t *sizes, size_t count, CUmemLocation *places,
    size_t *firsts, size_t place_count, unsigned long long flags,
    CUstream stream)
{
    return cuMemPrefetchBatchAsync(addresses, sizes, count, places, firsts,
                                   place_count, flags, own(stream));
}

CUresult CUDAAPI cuStreamAttachMemAsync_ptsz(CUstream stream,
                                             CUdeviceptr address,
                                             size_t length, unsigned int flags)
{
    return cuStreamAttachMemAsync(own(stream), address, length, flags);
}

CUresult CUDAAPI cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream)
{
    return cuGraphLaunch(exec, own(stream));
}

CUresult CUDAAPI cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream)
{
    return cuGraphUpload(exec, own(stream));
}
