/* SPDX-License-Identifier: Apache-2.0 */
/* The entry points that cuda.h declares only for programs with a default
 * stream per thread, and older ones that it declares no more. */
#ifndef SIM_PER_THREAD_H
#define SIM_PER_THREAD_H

#include "sim/state.h"

#pragma GCC visibility push(default)

CUresult CUDAAPI cuStreamGetPriority_ptsz(CUstream stream, int *priority);
CUresult CUDAAPI cuStreamGetId_ptsz(CUstream stream, unsigned long long *id);
CUresult CUDAAPI cuStreamGetFlags_ptsz(CUstream stream, unsigned int *flags);
CUresult CUDAAPI cuStreamGetDevice_ptsz(CUstream stream, CUdevice *device);
CUresult CUDAAPI cuStreamGetCtx_ptsz(CUstream stream, CUcontext *context);
CUresult CUDAAPI cuStreamWaitEvent_ptsz(CUstream stream, CUevent event,
                                        unsigned int flags);
CUresult CUDAAPI cuStreamBeginCapture_v2_ptsz(CUstream stream,
                                              CUstreamCaptureMode mode);
CUresult CUDAAPI cuStreamEndCapture_ptsz(CUstream stream, CUgraph *graph);
CUresult CUDAAPI cuStreamIsCapturing_ptsz(CUstream stream,
                                          CUstreamCaptureStatus *status);
CUresult CUDAAPI cuStreamGetCaptureInfo_v2_ptsz(CUstream stream,
                                                CUstreamCaptureStatus *status,
                                                cuuint64_t *id, CUgraph *graph,
                                                const CUgraphNode **nodes,
                                                size_t *count);
CUresult CUDAAPI cuStreamGetCaptureInfo_v3_ptsz(CUstream stream,
                                                CUstreamCaptureStatus *status,
                                                cuuint64_t *id, CUgraph *graph,
                                                const CUgraphNode **nodes,
                                                const CUgraphEdgeData **edges,
                                                size_t *count);
CUresult CUDAAPI cuStreamAddCallback_ptsz(CUstream stream,
                                          CUstreamCallback callback,
                                          void *data, unsigned int flags);
CUresult CUDAAPI cuStreamQuery_ptsz(CUstream stream);
CUresult CUDAAPI cuStreamSynchronize_ptsz(CUstream stream);
CUresult CUDAAPI cuLaunchHostFunc_ptsz(CUstream stream, CUhostFn function,
                                       void *data);
CUresult CUDAAPI cuEventRecord_ptsz(CUevent event, CUstream stream);
CUresult CUDAAPI cuEventRecordWithFlags_ptsz(CUevent event, CUstream stream,
                                             unsigned int flags);
CUresult CUDAAPI cuMemcpyAsync_ptsz(CUdeviceptr to, CUdeviceptr from,
                                    size_t bytes, CUstream stream);
CUresult CUDAAPI cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr to, const void *from,
                                           size_t bytes, CUstream stream);
CUresult CUDAAPI cuMemcpyDtoHAsync_v2_ptsz(void *to, CUdeviceptr from,
                                           size_t bytes, CUstream stream);
CUresult CUDAAPI cuMemcpyDtoDAsync_v2_ptsz(CUdeviceptr to, CUdeviceptr from,
                                           size_t bytes, CUstream stream);
CUresult CUDAAPI cuMemsetD8Async_ptsz(CUdeviceptr to, unsigned char value,
                                      size_t count, CUstream stream);
CUresult CUDAAPI cuMemsetD16Async_ptsz(CUdeviceptr to, unsigned short value,
                                       size_t count, CUstream stream);
CUresult CUDAAPI cuMemsetD32Async_ptsz(CUdeviceptr to, unsigned int value,
                                       size_t count, CUstream stream);
CUresult CUDAAPI cuMemAllocAsync_ptsz(CUdeviceptr *address, size_t bytes,
                                      CUstream stream);
CUresult CUDAAPI cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *address,
                                              size_t bytes, CUmemoryPool pool,
                                              CUstream stream);
CUresult CUDAAPI cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream);
CUresult CUDAAPI cuMemcpy_ptds(CUdeviceptr to, CUdeviceptr from, size_t bytes);
CUresult CUDAAPI cuMemcpyHtoD_v2_ptds(CUdeviceptr to, const void *from,
                                      size_t bytes);
CUresult CUDAAPI cuMemcpyDtoH_v2_ptds(void *to, CUdeviceptr from,
                                      size_t bytes);
CUresult CUDAAPI cuMemcpyDtoD_v2_ptds(CUdeviceptr to, CUdeviceptr from,
                                      size_t bytes);
CUresult CUDAAPI cuMemsetD8_v2_ptds(CUdeviceptr to, unsigned char value,
                                    size_t count);
CUresult CUDAAPI cuMemsetD16_v2_ptds(CUdeviceptr to, unsigned short value,
                                     size_t count);
CUresult CUDAAPI cuMemsetD32_v2_ptds(CUdeviceptr to, unsigned int value,
                                     size_t count);

CUresult CUDAAPI cuMemcpyPeer_ptds(CUdeviceptr to, CUcontext to_context,
                                   CUdeviceptr from, CUcontext from_context,
                                   size_t bytes);
CUresult CUDAAPI cuMemcpyPeerAsync_ptsz(CUdeviceptr to, CUcontext to_context,
                                        CUdeviceptr from,
                                        CUcontext from_context, size_t bytes,
                                        CUstream stream);
CUresult CUDAAPI cuMemPrefetchAsync_v2_ptsz(CUdeviceptr address, size_t bytes,
                                            CUmemLocation location,
                                            unsigned int flags,
                                            CUstream stream);
CUresult CUDAAPI cuMemPrefetchBatchAsync_ptsz(
    CUdeviceptr *addresses, size_t *sizes, size_t count, CUmemLocation *places,
    size_t *firsts, size_t place_count, unsigned long long flags,
    CUstream stream);
CUresult CUDAAPI cuMemPrefetchAsync_ptsz(CUdeviceptr address, size_t bytes,
                                         CUdevice device, CUstream stream);
CUresult CUDAAPI cuStreamAttachMemAsync_ptsz(CUstream stream,
                                             CUdeviceptr address,
                                             size_t length,
                                             unsigned int flags);
CUresult CUDAAPI cuGraphInstantiateWithParams_ptsz(
    CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params);
CUresult CUDAAPI cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream);
CUresult CUDAAPI cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream);

/* Older forms. */

CUresult CUDAAPI cuCtxCreate_v2(CUcontext *context, unsigned int flags,
                                CUdevice device);
CUresult CUDAAPI cuCtxCreate_v3(CUcontext *context,
                                CUexecAffinityParam *params, int count,
                                unsigned int flags, CUdevice device);
CUresult CUDAAPI cuStreamGetCaptureInfo_v2(CUstream stream,
                                           CUstreamCaptureStatus *status,
                                           cuuint64_t *id, CUgraph *graph,
                                           const CUgraphNode **nodes,
                                           size_t *count);

#pragma GCC visibility pop

#endif
