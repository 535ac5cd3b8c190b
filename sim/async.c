/* SPDX-License-Identifier: Apache-2.0 */
/* cuMemAllocAsync and its kin. */
#include "sim/capture.h"
#include "sim/context.h"
#include "sim/pool.h"
#include "sim/schedule.h"

static CUresult allocate(struct sim_thread *self, CUdeviceptr *address,
                         size_t bytes, struct sim_pool *pool, CUstream handle)
{
    struct sim_stream *stream;
    CUresult res;

    if (address == NULL || bytes == 0 || bytes > SIZE_MAX / 2) {
        return bytes > SIZE_MAX / 2 ? CUDA_ERROR_OUT_OF_MEMORY
                                    : CUDA_ERROR_INVALID_VALUE;
    }
    res = sim_stream_resolve(self, handle, &stream);
    if (res != CUDA_SUCCESS) {
        return res;
    }
    res = sim_capture_implicit(self, stream);
    if (res != CUDA_SUCCESS) {
        return res;
    }
    if (stream->capture != NULL) {
        sim_capture_invalidate(stream->capture);
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (pool == NULL) {
        if (sim.devices[stream->device]
                .attributes[CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED]
            == 0) {
            return CUDA_ERROR_NOT_SUPPORTED;
        }
        pool = sim_pool_current(stream->device);
        if (pool == NULL) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    return sim_pool_allocate(pool, bytes, stream, address);
}

CUresult CUDAAPI cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize,
                                 CUstream hStream)
{
    SIM_ENTRY(cuMemAllocAsync, allocate(self, dptr, bytesize, NULL, hStream),
              hStream, SIM_OUT(dptr), 0, bytesize);
}

static CUresult allocate_from(struct sim_thread *self, CUdeviceptr *address,
                              size_t bytes, CUmemoryPool handle,
                              CUstream stream)
{
    struct sim_pool *pool = sim_pool_find(handle);

    if (pool == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return allocate(self, address, bytes, pool, stream);
}

CUresult CUDAAPI cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize,
                                         CUmemoryPool pool, CUstream hStream)
{
    SIM_ENTRY(cuMemAllocFromPoolAsync,
              allocate_from(self, dptr, bytesize, pool, hStream), hStream,
              SIM_OUT(dptr), pool, bytesize);
}

static CUresult free_async(struct sim_thread *self, CUdeviceptr address,
                           CUstream handle)
{
    struct sim_extent *block;
    struct sim_stream *stream;
    CUresult res = sim_stream_resolve(self, handle, &stream);

    if (res != CUDA_SUCCESS) {
        return res;
    }
    res = sim_capture_implicit(self, stream);
    if (res != CUDA_SUCCESS) {
        return res;
    }
    block = sim_block_at(address);
    if (block == NULL || block->region->pool == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (stream->capture != NULL) {
        sim_capture_invalidate(stream->capture);
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return sim_pool_free(block, stream);
}

CUresult CUDAAPI cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
    SIM_ENTRY(cuMemFreeAsync, free_async(self, dptr, hStream), hStream, dptr,
              0, 0);
}
