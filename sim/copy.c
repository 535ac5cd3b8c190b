/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and fills, and host functions on streams. */
#include "sim/schedule.h"

#include <stdlib.h>
#include <string.h>

#include "sim/capture.h"
#include "sim/context.h"
#include "sim/graph_block.h"
#include "sim/memory.h"
#include "sim/order.h"
#include "sim/per_thread.h"

/* Ordinary host memory that the driver has to copy through a buffer. */
static bool is_pageable(uintptr_t address)
{
    return !sim_is_device_address(address) && sim_region_find(address) == NULL;
}

/* For the check of order: pageable memory is read before the call returns. */
static void note_uses(struct sim_stream *stream, const struct sim_op *op)
{
    sim_order_use(op->to, op->bytes, stream);
    if (op->kind == SIM_OP_COPY && is_pageable(op->from)) {
        sim_order_host_use(op->from, op->bytes);
    } else if (op->kind == SIM_OP_COPY) {
        sim_order_use(op->from, op->bytes, stream);
    }
}

/* Run an operation now if nothing stands before it, or enqueue it. `wait`:
 * come back when it is done. */
static CUresult carry(struct sim_stream *stream, const struct sim_op *wanted,
                      bool wait)
{
    struct sim_op *op;
    CUresult res;

    if (sim.order && stream->capture == NULL) {
        note_uses(stream, wanted);
    }
    if (stream->capture == NULL && sim_runs_now(stream)) {
        if (stream->context->broken == CUDA_SUCCESS) {
            sim_stream_pass(stream);
            sim_op_carry_out(stream->context, wanted);
        }
        return wait ? sim_wait_done(stream, stream->enqueued)
                    : stream->context->broken;
    }
    op = sim_op_new(wanted->kind);
    if (op == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    op->to = wanted->to;
    op->from = wanted->from;
    op->bytes = wanted->bytes;
    op->value = wanted->value;
    op->width = wanted->width;
    if (stream->capture != NULL) {
        return sim_capture_add(stream, op);
    }
    if (!wait && op->kind == SIM_OP_COPY && is_pageable(op->from)) {
        /* The call may return before the copy: the bytes count as of now. */
        op->staged = malloc(op->bytes);
        if (op->staged == NULL) {
            sim_op_free(op);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        memcpy(op->staged, (const void *)op->from, op->bytes);
    }
    res = sim_submit(stream, op);
    if (res == CUDA_SUCCESS && wait) {
        res = sim_wait_done(stream, stream->enqueued);
    }
    return res;
}

enum direction { ANY, HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE };

/* May work of the stream use it? Captured work may use memory of graphs that
 * is not there yet. */
static bool is_allowed(const struct sim_stream *stream, uintptr_t address,
                       size_t bytes, bool write)
{
    return (stream->capture != NULL &&
            sim_graph_block_covers(address, bytes)) ||
           sim_range_allows(stream->device, address, bytes, write);
}

static CUresult check_copy(const struct sim_stream *stream, uintptr_t to,
                           uintptr_t from, size_t bytes,
                           enum direction direction)
{
    if (!is_allowed(stream, to, bytes, true) ||
        !is_allowed(stream, from, bytes, false)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if ((direction == HOST_TO_DEVICE || direction == DEVICE_TO_DEVICE) &&
        is_pageable(to)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if ((direction == DEVICE_TO_HOST || direction == DEVICE_TO_DEVICE) &&
        is_pageable(from)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

static CUresult copy(struct sim_thread *self, uintptr_t to, uintptr_t from,
                     size_t bytes, CUstream handle, enum direction direction,
                     bool synchronous)
{
    struct sim_op wanted = {.kind = SIM_OP_COPY};
    struct sim_stream *stream;
    CUresult res = sim_stream_resolve(self, handle, &stream);
    bool wait;

    if (res != CUDA_SUCCESS) {
        return res;
    }
    res = sim_capture_implicit(stream);
    if (res != CUDA_SUCCESS || bytes == 0) {
        return res;
    }
    res = check_copy(stream, to, from, bytes, direction);
    if (res != CUDA_SUCCESS) {
        return res;
    }
    wanted.to = to;
    wanted.from = from;
    wanted.bytes = bytes;
    /* A copy to pageable memory has come when the call returns; one between
     * device addresses is never waited for. */
    wait = synchronous
               ? !sim_is_device_address(to) || !sim_is_device_address(from)
               : is_pageable(to);
    return carry(stream, &wanted, wait && stream->capture == NULL);
}

CUresult CUDAAPI cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount)
{
    SIM_ENTRY(cuMemcpy, copy(self, dst, src, ByteCount, NULL, ANY, true), NULL,
              dst, src, ByteCount);
}

CUresult CUDAAPI cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src,
                               size_t ByteCount, CUstream hStream)
{
    SIM_ENTRY(cuMemcpyAsync,
              copy(self, dst, src, ByteCount, hStream, ANY, false), hStream,
              dst, src, ByteCount);
}

CUresult CUDAAPI cuMemcpyHtoD(CUdeviceptr dstDevice, const void *srcHost,
                              size_t ByteCount)
{
    SIM_ENTRY(cuMemcpyHtoD,
              copy(self, dstDevice, (uintptr_t)srcHost, ByteCount, NULL,
                   HOST_TO_DEVICE, true),
              NULL, dstDevice, srcHost, ByteCount);
}

CUresult CUDAAPI cuMemcpyHtoDAsync(CUdeviceptr dstDevice, const void *srcHost,
                                   size_t ByteCount, CUstream hStream)
{
    SIM_ENTRY(cuMemcpyHtoDAsync,
              copy(self, dstDevice, (uintptr_t)srcHost, ByteCount, hStream,
                   HOST_TO_DEVICE, false),
              hStream, dstDevice, srcHost, ByteCount);
}

CUresult CUDAAPI cuMemcpyDtoH(void *dstHost, CUdeviceptr srcDevice,
                              size_t ByteCount)
{
    SIM_ENTRY(cuMemcpyDtoH,
              copy(self, (uintptr_t)dstHost, srcDevice, ByteCount, NULL,
                   DEVICE_TO_HOST, true),
              NULL, dstHost, srcDevice, ByteCount);
}

CUresult CUDAAPI cuMemcpyDtoHAsync(void *dstHost, CUdeviceptr srcDevice,
                                   size_t ByteCount, CUstream hStream)
{
    SIM_ENTRY(cuMemcpyDtoHAsync,
              copy(self, (uintptr_t)dstHost, srcDevice, ByteCount, hStream,
                   DEVICE_TO_HOST, false),
              hStream, dstHost, srcDevice, ByteCount);
}

CUresult CUDAAPI cuMemcpyDtoD(CUdeviceptr dstDevice, CUdeviceptr srcDevice,
                              size_t ByteCount)
{
    SIM_ENTRY(cuMemcpyDtoD,
              copy(self, dstDevice, srcDevice, ByteCount, NULL,
                   DEVICE_TO_DEVICE, true),
              NULL, dstDevice, srcDevice, ByteCount);
}

CUresult CUDAAPI cuMemcpyDtoDAsync(CUdeviceptr dstDevice,
                                   CUdeviceptr srcDevice, size_t ByteCount,
                                   CUstream hStream)
{
    SIM_ENTRY(cuMemcpyDtoDAsync,
              copy(self, dstDevice, srcDevice, ByteCount, hStream,
                   DEVICE_TO_DEVICE, false),
              hStream, dstDevice, srcDevice, ByteCount);
}

/* The contexts say nothing that the addresses don't. */
CUresult CUDAAPI cuMemcpyPeer(CUdeviceptr dstDevice, CUcontext dstContext,
                              CUdeviceptr srcDevice, CUcontext srcContext,
                              size_t ByteCount)
{
    (void)dstContext;
    (void)srcContext;
    SIM_ENTRY(cuMemcpyPeer,
              copy(self, dstDevice, srcDevice, ByteCount, NULL,
                   DEVICE_TO_DEVICE, true),
              NULL, dstDevice, srcDevice, ByteCount);
}

CUresult CUDAAPI cuMemcpyPeerAsync(CUdeviceptr dstDevice, CUcontext dstContext,
                                   CUdeviceptr srcDevice, CUcontext srcContext,
                                   size_t ByteCount, CUstream hStream)
{
    (void)dstContext;
    (void)srcContext;
    SIM_ENTRY(cuMemcpyPeerAsync,
              copy(self, dstDevice, srcDevice, ByteCount, hStream,
                   DEVICE_TO_DEVICE, false),
              hStream, dstDevice, srcDevice, ByteCount);
}

/* The same on the thread's own default stream. */

CUresult CUDAAPI cuMemcpyPeer_ptds(CUdeviceptr to, CUcontext to_context,
                                   CUdeviceptr from, CUcontext from_context,
                                   size_t bytes)
{
    (void)to_context;
    (void)from_context;
    SIM_ENTRY(cuMemcpyPeer,
              copy(self, to, from, bytes, CU_STREAM_PER_THREAD,
                   DEVICE_TO_DEVICE, true),
              CU_STREAM_PER_THREAD, to, from, bytes);
}

CUresult CUDAAPI cuMemcpy_ptds(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    SIM_ENTRY(cuMemcpy,
              copy(self, to, from, bytes, CU_STREAM_PER_THREAD, ANY, true),
              CU_STREAM_PER_THREAD, to, from, bytes);
}

CUresult CUDAAPI cuMemcpyHtoD_v2_ptds(CUdeviceptr to, const void *from,
                                      size_t bytes)
{
    SIM_ENTRY(cuMemcpyHtoD,
              copy(self, to, (uintptr_t)from, bytes, CU_STREAM_PER_THREAD,
                   HOST_TO_DEVICE, true),
              CU_STREAM_PER_THREAD, to, from, bytes);
}

CUresult CUDAAPI cuMemcpyDtoH_v2_ptds(void *to, CUdeviceptr from, size_t bytes)
{
    SIM_ENTRY(cuMemcpyDtoH,
              copy(self, (uintptr_t)to, from, bytes, CU_STREAM_PER_THREAD,
                   DEVICE_TO_HOST, true),
              CU_STREAM_PER_THREAD, to, from, bytes);
}

CUresult CUDAAPI cuMemcpyDtoD_v2_ptds(CUdeviceptr to, CUdeviceptr from,
                                      size_t bytes)
{
    SIM_ENTRY(cuMemcpyDtoD,
              copy(self, to, from, bytes, CU_STREAM_PER_THREAD,
                   DEVICE_TO_DEVICE, true),
              CU_STREAM_PER_THREAD, to, from, bytes);
}

/* Fills. The synchronous ones do not wait either, except for host memory. */

static CUresult fill(struct sim_thread *self, CUdeviceptr to, unsigned value,
                     unsigned width, size_t count, CUstream handle,
                     bool synchronous)
{
    struct sim_op wanted = {.kind = SIM_OP_FILL};
    struct sim_stream *stream;
    CUresult res = sim_stream_resolve(self, handle, &stream);

    if (res != CUDA_SUCCESS) {
        return res;
    }
    res = sim_capture_implicit(stream);
    if (res != CUDA_SUCCESS) {
        return res;
    }
    if (count > SIZE_MAX / width || to % width != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (count == 0) {
        return CUDA_SUCCESS;
    }
    if (is_pageable(to) || !is_allowed(stream, to, count * width, true)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    wanted.to = to;
    wanted.bytes = count * width;
    wanted.value = value;
    wanted.width = width;
    return carry(stream, &wanted,
                 synchronous && !sim_is_device_address(to) &&
                     stream->capture == NULL);
}

CUresult CUDAAPI cuMemsetD8(CUdeviceptr dstDevice, unsigned char uc, size_t N)
{
    SIM_ENTRY(cuMemsetD8, fill(self, dstDevice, uc, 1, N, NULL, true), NULL,
              dstDevice, 0, N);
}

CUresult CUDAAPI cuMemsetD16(CUdeviceptr dstDevice, unsigned short us,
                             size_t N)
{
    SIM_ENTRY(cuMemsetD16, fill(self, dstDevice, us, 2, N, NULL, true), NULL,
              dstDevice, 0, N * 2);
}

CUresult CUDAAPI cuMemsetD32(CUdeviceptr dstDevice, unsigned int ui, size_t N)
{
    SIM_ENTRY(cuMemsetD32, fill(self, dstDevice, ui, 4, N, NULL, true), NULL,
              dstDevice, 0, N * 4);
}

CUresult CUDAAPI cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc,
                                 size_t N, CUstream hStream)
{
    SIM_ENTRY(cuMemsetD8Async, fill(self, dstDevice, uc, 1, N, hStream, false),
              hStream, dstDevice, 0, N);
}

CUresult CUDAAPI cuMemsetD16Async(CUdeviceptr dstDevice, unsigned short us,
                                  size_t N, CUstream hStream)
{
    SIM_ENTRY(cuMemsetD16Async,
              fill(self, dstDevice, us, 2, N, hStream, false), hStream,
              dstDevice, 0, N * 2);
}

CUresult CUDAAPI cuMemsetD32Async(CUdeviceptr dstDevice, unsigned int ui,
                                  size_t N, CUstream hStream)
{
    SIM_ENTRY(cuMemsetD32Async,
              fill(self, dstDevice, ui, 4, N, hStream, false), hStream,
              dstDevice, 0, N * 4);
}

CUresult CUDAAPI cuMemsetD8_v2_ptds(CUdeviceptr to, unsigned char value,
                                    size_t count)
{
    SIM_ENTRY(cuMemsetD8,
              fill(self, to, value, 1, count, CU_STREAM_PER_THREAD, true),
              CU_STREAM_PER_THREAD, to, 0, count);
}

CUresult CUDAAPI cuMemsetD16_v2_ptds(CUdeviceptr to, unsigned short value,
                                     size_t count)
{
    SIM_ENTRY(cuMemsetD16,
              fill(self, to, value, 2, count, CU_STREAM_PER_THREAD, true),
              CU_STREAM_PER_THREAD, to, 0, count * 2);
}

CUresult CUDAAPI cuMemsetD32_v2_ptds(CUdeviceptr to, unsigned int value,
                                     size_t count)
{
    SIM_ENTRY(cuMemsetD32,
              fill(self, to, value, 4, count, CU_STREAM_PER_THREAD, true),
              CU_STREAM_PER_THREAD, to, 0, count * 4);
}

/* Host functions. */

static CUresult launch(struct sim_thread *self, CUstream handle,
                       const struct sim_op *wanted)
{
    struct sim_stream *stream;
    struct sim_op *op;
    CUresult res = sim_stream_resolve(self, handle, &stream);

    if (res != CUDA_SUCCESS) {
        return res;
    }
    res = sim_capture_implicit(stream);
    if (res != CUDA_SUCCESS) {
        return res;
    }
    if (stream->capture != NULL && wanted->kind == SIM_OP_CALLBACK) {
        sim_capture_invalidate(stream->capture);
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    op = sim_op_new(wanted->kind);
    if (op == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    op->function = wanted->function;
    op->callback = wanted->callback;
    op->data = wanted->data;
    op->named = handle;
    return stream->capture != NULL ? sim_capture_add(stream, op)
                                   : sim_submit(stream, op);
}

static CUresult launch_host(struct sim_thread *self, CUstream stream,
                            CUhostFn function, void *data)
{
    struct sim_op wanted = {.kind = SIM_OP_HOST};

    if (function == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    wanted.function = function;
    wanted.data = data;
    return launch(self, stream, &wanted);
}

CUresult CUDAAPI cuLaunchHostFunc(CUstream hStream, CUhostFn fn,
                                  void *userData)
{
    SIM_ENTRY(cuLaunchHostFunc, launch_host(self, hStream, fn, userData),
              hStream, 0, 0, 0);
}

static CUresult add_callback(struct sim_thread *self, CUstream stream,
                             CUstreamCallback callback, void *data,
                             unsigned flags)
{
    struct sim_op wanted = {.kind = SIM_OP_CALLBACK};

    if (callback == NULL || flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    wanted.callback = callback;
    wanted.data = data;
    return launch(self, stream, &wanted);
}

CUresult CUDAAPI cuStreamAddCallback(CUstream hStream,
                                     CUstreamCallback callback, void *userData,
                                     unsigned int flags)
{
    SIM_ENTRY(cuStreamAddCallback,
              add_callback(self, hStream, callback, userData, flags), hStream,
              0, 0, 0);
}
