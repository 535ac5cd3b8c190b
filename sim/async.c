/* SPDX-License-Identifier: Apache-2.0 */
/* cuMemAllocAsync and its kin. */
#include "sim/capture.h"
#include "sim/context.h"
#include "sim/managed.h"
#include "sim/order.h"
#include "sim/plain.h"
#include "sim/pool.h"

/* The stream, and whether memory calls on it are allowed now: outside the
 * captures they are unsafe calls. */
static CUresult find_stream(struct sim_thread *self, CUstream handle,
                            struct sim_stream **stream)
{
    CUresult res = sim_stream_resolve(self, handle, stream);

    if (res != CUDA_SUCCESS || sim.captures == 0) {
        return res;
    }
    res = sim_capture_implicit(*stream);
    if (res != CUDA_SUCCESS) {
        return res;
    }
    if ((*stream)->capture == NULL) {
        return sim_capture_check(self);
    }
    return (*stream)->capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                                       : CUDA_SUCCESS;
}

static CUresult choose_pool(const struct sim_stream *stream,
                            struct sim_pool **pool)
{
    const int *attributes = sim.devices[stream->device].attributes;

    if (*pool == NULL) {
        if (attributes[CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED] == 0) {
            return CUDA_ERROR_NOT_SUPPORTED;
        }
        *pool = sim_pool_current(stream->device);
    }
    return *pool != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult allocate(struct sim_thread *self, CUdeviceptr *address,
                         size_t bytes, struct sim_pool *pool, CUstream handle)
{
    struct sim_stream *stream;
    CUresult res;

    if (address == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *address = 0;
    res = find_stream(self, handle, &stream);
    if (res != CUDA_SUCCESS) {
        return res;
    }
    if (bytes == 0) {
        return CUDA_SUCCESS;
    }
    if (bytes > SIM_BLOCK_MOST) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (stream->context->broken != CUDA_SUCCESS) {
        return stream->context->broken;
    }
    if (stream->capture != NULL) {
        return sim_capture_allocate(stream, bytes, address);
    }
    res = choose_pool(stream, &pool);
    if (res == CUDA_SUCCESS) {
        res = sim_pool_allocate(pool, bytes, stream, address);
    }
    if (res == CUDA_SUCCESS) {
        if (pool->type == CU_MEM_ALLOCATION_TYPE_MANAGED) {
            sim_advice_forget(sim_block_at(*address)->region, *address, bytes);
        }
        sim_order_give(*address, bytes, stream);
    }
    return res;
}

CUresult CUDAAPI cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize,
                                 CUstream hStream)
{
    SIM_ENTRY(cuMemAllocAsync, allocate(self, dptr, bytesize, NULL, hStream),
              hStream, SIM_OUT(dptr), 0, bytesize);
}

static CUresult allocate_from(struct sim_thread *self, CUdeviceptr *address,
                              size_t bytes, CUmemoryPool handle,
                              CUstream stream_handle)
{
    struct sim_pool *pool = sim_pool_find(handle);
    struct sim_stream *stream;
    CUresult res;

    if (atomic_load_explicit(&sim_forked, memory_order_relaxed) != 0) {
        res = sim_stream_resolve(self, stream_handle, &stream);
        return res != CUDA_SUCCESS ? res : CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (pool == NULL || pool->imported) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return allocate(self, address, bytes, pool, stream_handle);
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
    CUresult res = find_stream(self, handle, &stream);

    if (res != CUDA_SUCCESS || address == 0) {
        return res;
    }
    if (stream->capture != NULL) {
        return sim_capture_free(stream, address);
    }
    block = sim_block_at(address);
    if (block != NULL && block->region->pool != NULL) {
        sim_order_take(address, block->asked, stream);
        return sim_pool_free(block, stream);
    }
    return sim_plain_free_in_order(address, stream);
}

CUresult CUDAAPI cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
    SIM_ENTRY(cuMemFreeAsync, free_async(self, dptr, hStream), hStream, dptr,
              0, 0);
}
