/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_pool: memory of a driver pool, the device's default one, an own one,
 * or one that the caller has. This is the part that costs.
 *
 * Streams: allocate and deallocate are one driver call each, after a check of
 * the stream; the driver keeps the order. A free with no stream named uses the
 * allocation stream; one with CCMR_STREAM_READY goes to a stream of the
 * library's that is always empty. A token needs the device's context, which is
 * made current around the call; a real stream knows its own.
 *
 * Capture: a pool's call on any stream ruins a capture in global mode on any
 * other one, unless the calling thread's mode is relaxed. It is, around each
 * call (`guard`): two exchanges, which cost what a check costs. An allocate on
 * a stream that captures would become a node of its graph and is refused
 * before; a free of a pool's block there is refused by the driver, without
 * harm, so that frees are checked only where there are several devices.
 *
 * The driver refuses memory whose frees it has not seen finish: an
 * out-of-memory is tried once more after the given stream was waited for.
 */
#include "resources/device_pool/device_pool.h"

#include "lib/error.h"
#include "lib/stream.h"
#include "resources/common.h"

#define LIKELY(condition) __builtin_expect((condition) != 0, 1)
#define UNLIKELY(condition) __builtin_expect((condition) != 0, 0)

/* The tokens and READY: what cannot go to the driver as it is. */
static inline int is_word(ccmr_stream stream)
{
    return (uintptr_t)stream + 2 <= (uintptr_t)CCMR_STREAM_PER_THREAD + 2;
}

static inline ccmr_status check(const ccmr__device_pool *self,
                                ccmr_stream stream)
{
    return LIKELY(!self->made.streams_registered)
               ? ccmr__stream_check(stream, self->device)
               : ccmr__stream_meet(stream, self->device);
}

/* Make the thread's capture mode relaxed; `*mode` is what it was. */
static inline CUresult guard_begin(const ccmr__device_pool *self,
                                   CUstreamCaptureMode *mode)
{
    *mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    return LIKELY(self->guard)
               ? CCMR__CU(cuThreadExchangeStreamCaptureMode)(mode)
               : CUDA_SUCCESS;
}

/* Undoing has to work: a scope's end takes more than one attempt. */
static void __attribute__((cold, noinline))
guard_again(CUstreamCaptureMode mode)
{
    ccmr__scope scope = {.relaxed = 1, .mode = mode};

    ccmr__scope_leave(&scope);
}

static inline void guard_end(CUstreamCaptureMode mode)
{
    CUstreamCaptureMode exchanged = mode;

    if (LIKELY(mode != CU_STREAM_CAPTURE_MODE_RELAXED) &&
        UNLIKELY(CCMR__CU(cuThreadExchangeStreamCaptureMode)(&exchanged) !=
                 CUDA_SUCCESS)) {
        guard_again(mode);
    }
}

static ccmr_status __attribute__((cold, noinline)) fail_guard(CUresult res)
{
    return ccmr__fail_driver((int)res, "cuThreadExchangeStreamCaptureMode");
}

/* A scope for calls on the pool. */
static ccmr_status enter(const ccmr__device_pool *self, ccmr__scope *scope)
{
    return ccmr__scope_enter(scope, self->device,
                             self->guard ? CCMR__SCOPE_RELAXED : 0);
}

static inline CUresult ask(const ccmr__device_pool *self, size_t bytes,
                           ccmr_stream stream, void **ptr)
{
    CUdeviceptr address;
    CUresult res =
        CCMR__CU(cuMemAllocFromPoolAsync)(&address, bytes, self->pool, stream);

    if (LIKELY(res == CUDA_SUCCESS)) {
        *ptr = (void *)(uintptr_t)address;
    }
    return res;
}

/*
 * The driver has refused, with `res`. Two refusals are worth another try, each
 * once: for want of a current context, and for want of memory, after the
 * stream has been waited for.
 */
static ccmr_status __attribute__((cold, noinline))
allocate_again(const ccmr__device_pool *self, size_t bytes, ccmr_stream stream,
               CUresult res, void **ptr)
{
    int waited = 0;
    int entered = 0;
    ccmr__scope scope;
    ccmr_status status;

    for (;;) {
        if (res == CUDA_ERROR_OUT_OF_MEMORY && !waited) {
            waited = 1;
            status = ccmr__stream_wait(stream, self->device);
            if (status != CCMR_SUCCESS) {
                return status;
            }
        } else if (res == CUDA_ERROR_INVALID_CONTEXT && !entered) {
            entered = 1;
        } else {
            break;
        }
        status = enter(self, &scope);
        if (status != CCMR_SUCCESS) {
            return status;
        }
        res = ask(self, bytes, stream, ptr);
        ccmr__scope_leave(&scope);
    }
    if (res == CUDA_ERROR_OUT_OF_MEMORY) {
        return ccmr__device_pool_full(self, bytes, res);
    }
    if (res != CUDA_SUCCESS) {
        return ccmr__fail_driver((int)res, "cuMemAllocFromPoolAsync");
    }
    return CCMR_SUCCESS;
}

/* A token means the current context's stream: it must be the device's. */
static ccmr_status __attribute__((noinline))
allocate_on_token(const ccmr__device_pool *self, size_t bytes,
                  ccmr_stream stream, void **ptr)
{
    CUresult res = CUDA_SUCCESS;
    ccmr__scope scope;
    ccmr_status status = enter(self, &scope);

    if (UNLIKELY(status != CCMR_SUCCESS)) {
        return status;
    }
    status = check(self, stream);
    if (LIKELY(status == CCMR_SUCCESS)) {
        res = ask(self, bytes, stream, ptr);
    }
    ccmr__scope_leave(&scope);
    if (UNLIKELY(res != CUDA_SUCCESS)) {
        status = allocate_again(self, bytes, stream, res, ptr);
    }
    return status;
}

ccmr_status ccmr__device_pool_allocate(void *object, size_t bytes,
                                       size_t alignment, ccmr_stream stream,
                                       void **ptr)
{
    const ccmr__device_pool *self = object;
    CUstreamCaptureMode mode;
    ccmr_status status;
    CUresult res;

    (void)alignment; /* at most the driver's */
    if (UNLIKELY(bytes > self->most_bytes)) {
        return ccmr__device_pool_full(self, bytes, CUDA_SUCCESS);
    }
    if (UNLIKELY(is_word(stream))) {
        return allocate_on_token(self, bytes, stream, ptr);
    }
    status = check(self, stream);
    if (UNLIKELY(status != CCMR_SUCCESS)) {
        return status;
    }
    res = guard_begin(self, &mode);
    if (UNLIKELY(res != CUDA_SUCCESS)) {
        return fail_guard(res);
    }
    res = ask(self, bytes, stream, ptr);
    guard_end(mode);
    if (UNLIKELY(res != CUDA_SUCCESS)) {
        return allocate_again(self, bytes, stream, res, ptr);
    }
    return CCMR_SUCCESS;
}

/* In the device's context: tokens, READY, and a driver that asked for it. */
static ccmr_status __attribute__((noinline))
deallocate_in_context(const ccmr__device_pool *self, void *ptr,
                      ccmr_stream stream)
{
    CUresult res = CUDA_SUCCESS;
    ccmr__scope scope;
    ccmr_status status = enter(self, &scope);

    if (UNLIKELY(status != CCMR_SUCCESS)) {
        return status;
    }
    if (stream == CCMR_STREAM_READY) {
        stream = self->idle;
    } else {
        status = check(self, stream);
    }
    if (LIKELY(status == CCMR_SUCCESS)) {
        res = CCMR__CU(cuMemFreeAsync)((CUdeviceptr)(uintptr_t)ptr, stream);
    }
    ccmr__scope_leave(&scope);
    if (UNLIKELY(res != CUDA_SUCCESS)) {
        status = ccmr__fail_address(ptr, (int)res, "cuMemFreeAsync");
    }
    return status;
}

/*
 * The driver has refused a free. A value that is invalid is the address, or,
 * with a real stream that was not asked before, a stream that captures.
 */
static ccmr_status __attribute__((cold, noinline))
deallocate_again(const ccmr__device_pool *self, void *ptr, ccmr_stream stream,
                 CUresult res)
{
    ccmr_status status;

    if (res == CUDA_ERROR_INVALID_CONTEXT) {
        return deallocate_in_context(self, ptr, stream);
    }
    if (res == CUDA_ERROR_INVALID_VALUE) {
        status = check(self, stream);
        if (status != CCMR_SUCCESS) {
            return status;
        }
    }
    return ccmr__fail_address(ptr, (int)res, "cuMemFreeAsync");
}

ccmr_status ccmr__device_pool_deallocate(void *object, void *ptr, size_t bytes,
                                         size_t alignment, ccmr_stream stream)
{
    const ccmr__device_pool *self = object;
    CUstreamCaptureMode mode;
    ccmr_status status;
    CUresult res;

    (void)bytes;
    (void)alignment;
    if (UNLIKELY(((uintptr_t)ptr & (CCMR__DEVICE_POOL_ALIGNMENT - 1)) != 0)) {
        return ccmr__check_address(ptr, CCMR__DEVICE_POOL_ALIGNMENT);
    }
    if (UNLIKELY(is_word(stream))) {
        return deallocate_in_context(self, ptr, stream);
    }
    if (self->several) {
        status = check(self, stream);
        if (UNLIKELY(status != CCMR_SUCCESS)) {
            return status;
        }
    }
    res = guard_begin(self, &mode);
    if (UNLIKELY(res != CUDA_SUCCESS)) {
        return fail_guard(res);
    }
    res = CCMR__CU(cuMemFreeAsync)((CUdeviceptr)(uintptr_t)ptr, stream);
    guard_end(mode);
    if (UNLIKELY(res != CUDA_SUCCESS)) {
        return deallocate_again(self, ptr, stream, res);
    }
    return CCMR_SUCCESS;
}
