/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams: the checks of every call that is given one.
 */
#include "lib/stream.h"

#include "lib/error.h"
#include "lib/thread.h"

static ccmr_status refuse_capturing(void)
{
    return ccmr__fail(CCMR_ERROR_CAPTURING,
                      "the stream is capturing a graph; memory for it needs "
                      "the graph's own resource");
}

static ccmr_status refuse_device(int stream_device, int device)
{
    ccmr_status status =
        ccmr__fail(CCMR_ERROR_WRONG_DEVICE,
                   "the stream belongs to device %d, the memory to device %d",
                   stream_device, device);

    ccmr__error()->device = device;
    return status;
}

/* A stream that is not registered, or a token in its device's context. */
ccmr_status ccmr__stream_check_capture(ccmr_stream stream)
{
    CUstreamCaptureStatus capture;
    CUresult res = CCMR__CU(cuStreamIsCapturing)(stream, &capture);

    if (__builtin_expect(res != CUDA_SUCCESS, 0)) {
        return ccmr__fail_driver((int)res, "cuStreamIsCapturing");
    }
    if (__builtin_expect(capture != CU_STREAM_CAPTURE_STATUS_NONE, 0)) {
        return refuse_capturing();
    }
    return CCMR_SUCCESS;
}

/* Drivers before 12.8 tell a stream's context, and the context its device. */
static ccmr_status ask_context(ccmr_stream stream, CUdevice *device)
{
    CUcontext context;
    CUcontext popped;
    CUresult res;

    res = CCMR__CU(cuStreamGetCtx)(stream, &context);
    if (res != CUDA_SUCCESS) {
        return ccmr__fail_driver((int)res, "cuStreamGetCtx");
    }
    res = CCMR__CU(cuCtxPushCurrent)(context);
    if (res != CUDA_SUCCESS) {
        return ccmr__fail_driver((int)res, "cuCtxPushCurrent");
    }
    res = CCMR__CU(cuCtxGetDevice)(device);
    (void)CCMR__CU(cuCtxPopCurrent)(&popped);
    if (res != CUDA_SUCCESS) {
        return ccmr__fail_driver((int)res, "cuCtxGetDevice");
    }
    return CCMR_SUCCESS;
}

/* The device of a real stream that is not registered. */
ccmr_status ccmr__stream_ask_device(ccmr_stream stream, int *ordinal)
{
    CUdevice device;

    if (CCMR__CU(cuStreamGetDevice) != NULL) {
        CUresult res = CCMR__CU(cuStreamGetDevice)(stream, &device);

        if (res != CUDA_SUCCESS) {
            return ccmr__fail_driver((int)res, "cuStreamGetDevice");
        }
    } else {
        ccmr_status status = ask_context(stream, &device);

        if (status != CCMR_SUCCESS) {
            return status;
        }
    }
    *ordinal = (int)device;
    return CCMR_SUCCESS;
}

ccmr_status ccmr__stream_device(ccmr_stream stream, int *ordinal)
{
    ccmr__stream_record *record;
    ccmr_status status;

    if (ccmr__stream_is_token(stream) || stream == CCMR_STREAM_READY) {
        *ordinal = -1;
        return CCMR_SUCCESS;
    }
    record = ccmr__stream_find(stream);
    if (record != NULL) {
        *ordinal = record->device;
        return CCMR_SUCCESS;
    }
    status = ccmr__stream_check_capture(stream);
    return status == CCMR_SUCCESS ? ccmr__stream_ask_device(stream, ordinal)
                                  : status;
}

static ccmr_status check_record(const ccmr__stream_record *record,
                                const ccmr__device *device)
{
    if (__builtin_expect(record->device != device->ordinal, 0)) {
        return refuse_device(record->device, device->ordinal);
    }
    if (__builtin_expect(atomic_load_explicit(&record->capturing,
                                              memory_order_relaxed) != 0,
                         0)) {
        return refuse_capturing();
    }
    return CCMR_SUCCESS;
}

static ccmr_status check_unregistered(ccmr_stream stream,
                                      const ccmr__device *device)
{
    ccmr_status status = ccmr__stream_check_capture(stream);
    int ordinal;

    /* With one device a stream cannot belong to another. */
    if (__builtin_expect(status != CCMR_SUCCESS, 0) ||
        ccmr__device_number() == 1 || ccmr__stream_is_token(stream)) {
        return status;
    }
    status = ccmr__stream_ask_device(stream, &ordinal);
    if (status == CCMR_SUCCESS && ordinal != device->ordinal) {
        status = refuse_device(ordinal, device->ordinal);
    }
    return status;
}

ccmr_status ccmr__stream_check(ccmr_stream stream, ccmr__device *device)
{
    const ccmr__stream_record *record;

    if (__builtin_expect(stream == CCMR_STREAM_READY, 0)) {
        return CCMR_SUCCESS;
    }
    record = ccmr__stream_find(stream);
    return record != NULL ? check_record(record, device)
                          : check_unregistered(stream, device);
}

static uint64_t token_id(ccmr_stream stream, const ccmr__device *device)
{
    if (stream == CCMR_STREAM_LEGACY) {
        return CCMR__ID_LEGACY | (uint64_t)device->ordinal;
    }
    return CCMR__ID_PER_THREAD + ccmr__thread_serial() * CCMR__MAX_DEVICES +
           (uint64_t)device->ordinal;
}

/* The stream is not capturing: the id of one that is would ruin the capture.
 * A driver without ids leaves only the handle, whose reuse is then told apart
 * by ccmr_stream_retire() alone. */
ccmr_status ccmr__stream_ask_id(ccmr_stream stream, uint64_t *id)
{
    unsigned long long number;
    CUresult res;

    if (CCMR__CU(cuStreamGetId) == NULL) {
        *id = (uint64_t)(uintptr_t)stream;
        return CCMR_SUCCESS;
    }
    res = CCMR__CU(cuStreamGetId)(stream, &number);
    if (res != CUDA_SUCCESS) {
        return ccmr__fail_driver((int)res, "cuStreamGetId");
    }
    *id = number;
    return CCMR_SUCCESS;
}

ccmr_status ccmr__stream_resolve(ccmr_stream stream, ccmr__device *device,
                                 ccmr__stream_use *use)
{
    const ccmr__stream_record *record = ccmr__stream_find(stream);
    ccmr_status status;

    use->handle = stream;
    if (record != NULL) {
        use->id = record->id;
        use->registered = 1;
        return check_record(record, device);
    }
    status = check_unregistered(stream, device);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    use->registered = ccmr__stream_is_token(stream);
    if (use->registered) {
        use->id = token_id(stream, device);
        return CCMR_SUCCESS;
    }
    return ccmr__stream_ask_id(stream, &use->id);
}

ccmr_status ccmr__stream_meet(ccmr_stream stream, ccmr__device *device)
{
    ccmr__stream_use use;
    ccmr_status status;

    if (stream == CCMR_STREAM_READY || ccmr__stream_is_token(stream) ||
        __builtin_expect(ccmr__stream_find(stream) != NULL, 1)) {
        return ccmr__stream_check(stream, device);
    }
    status = ccmr__stream_resolve(stream, device, &use);
    if (status == CCMR_SUCCESS) {
        (void)ccmr__stream_learn(stream, device, &use);
    }
    return status;
}

ccmr_status ccmr__stream_wait(ccmr_stream stream, ccmr__device *device)
{
    ccmr__scope scope;
    ccmr_status status;
    CUresult res;

    if (stream == CCMR_STREAM_READY) {
        return CCMR_SUCCESS;
    }
    status = ccmr__scope_enter(&scope, device, CCMR__SCOPE_RELAXED);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    res = CCMR__CU(cuStreamSynchronize)(stream);
    if (res != CUDA_SUCCESS) {
        status = ccmr__fail_driver((int)res, "cuStreamSynchronize");
    }
    ccmr__scope_leave(&scope);
    return status;
}
