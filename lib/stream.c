/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams: the table of registered ones, and the checks.
 */
#include "lib/stream.h"

#include <pthread.h>
#include <stdlib.h>

#include "lib/error.h"
#include "lib/process.h"
#include "lib/resource.h"
#include "lib/thread.h"

#define BUCKET_BITS 10

static _Atomic(ccmr__stream_record *) buckets[1 << BUCKET_BITS];
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
/* Ids for drivers that have none; see synthetic_id(). */
static uint64_t next_id = 1;

/*
 * Ids that are not the driver's have a bit that its counters never reach:
 * bit 63: the per-thread token of a thread and device; bit 62: the legacy
 * token of a device, or a registered stream of a driver without ids.
 */
#define ID_PER_THREAD (UINT64_C(1) << 63)
#define ID_LEGACY (UINT64_C(3) << 61)
#define ID_REGISTERED (UINT64_C(1) << 62)

static inline size_t bucket_of(ccmr_stream stream)
{
    uint64_t key = (uint64_t)(uintptr_t)stream;

    return (size_t)((key * UINT64_C(0x9E3779B97F4A7C15)) >>
                    (64 - BUCKET_BITS));
}

ccmr__stream_record *ccmr__stream_find(ccmr_stream stream)
{
    ccmr__stream_record *record = atomic_load_explicit(
        &buckets[bucket_of(stream)], memory_order_acquire);

    while (record != NULL &&
           atomic_load_explicit(&record->handle, memory_order_acquire) !=
               stream) {
        record = record->next;
    }
    return record;
}

static ccmr_status refuse_capturing(void)
{
    return ccmr__fail(CCMR_ERROR_CAPTURING,
                      "the stream is capturing a graph; memory for it needs "
                      "the graph's own resource");
}

static ccmr_status refuse_device(int stream_device, int device)
{
    ccmr_status status = ccmr__fail(
        CCMR_ERROR_WRONG_DEVICE,
        "the stream belongs to device %d, the memory to device %d",
        stream_device, device);

    ccmr__error()->device = device;
    return status;
}

/* A stream that is not registered, or a token in its device's context. */
static inline ccmr_status check_capture(ccmr_stream stream)
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
static ccmr_status ask_device(ccmr_stream stream, int *ordinal)
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
    status = check_capture(stream);
    return status == CCMR_SUCCESS ? ask_device(stream, ordinal) : status;
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
    ccmr_status status = check_capture(stream);
    int ordinal;

    /* With one device a stream cannot belong to another. */
    if (__builtin_expect(status != CCMR_SUCCESS, 0) ||
        ccmr__device_number() == 1 || ccmr__stream_is_token(stream)) {
        return status;
    }
    status = ask_device(stream, &ordinal);
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
        return ID_LEGACY | (uint64_t)device->ordinal;
    }
    return ID_PER_THREAD +
           ccmr__thread_self()->serial * CCMR__MAX_DEVICES +
           (uint64_t)device->ordinal;
}

/* The stream is not capturing: the id of one that is would ruin the capture.
 * A driver without ids leaves only the handle, whose reuse is then told apart
 * by ccmr_stream_retire() alone. */
static ccmr_status ask_id(ccmr_stream stream, uint64_t *id)
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
    return ask_id(stream, &use->id);
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

/* An unused record in the stream's bucket, or a new one at its head. Under
 * the table's lock. NULL without memory. */
static ccmr__stream_record *record_take(ccmr_stream stream)
{
    _Atomic(ccmr__stream_record *) *bucket = &buckets[bucket_of(stream)];
    ccmr__stream_record *head =
        atomic_load_explicit(bucket, memory_order_relaxed);
    ccmr__stream_record *record;

    for (record = head; record != NULL; record = record->next) {
        if (atomic_load_explicit(&record->handle, memory_order_relaxed) ==
            NULL) {
            return record;
        }
    }
    record = calloc(1, sizeof(*record));
    if (record != NULL) {
        record->next = head;
        atomic_store_explicit(bucket, record, memory_order_release);
    }
    return record;
}

static ccmr_status record_add(ccmr_stream stream, uint64_t id, int device,
                              int owned)
{
    ccmr_status status = CCMR_SUCCESS;
    ccmr__stream_record *record;

    (void)pthread_mutex_lock(&table_lock);
    if (ccmr__stream_find(stream) == NULL) {
        record = record_take(stream);
        if (record == NULL) {
            status = ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                                "no memory to register the stream");
        } else {
            record->id = CCMR__CU(cuStreamGetId) != NULL
                             ? id
                             : (ID_REGISTERED | next_id++);
            record->device = device;
            record->owned = owned;
            atomic_store_explicit(&record->capturing, 0,
                                  memory_order_relaxed);
            atomic_store_explicit(&record->handle, stream,
                                  memory_order_release);
        }
    }
    (void)pthread_mutex_unlock(&table_lock);
    return status;
}

static void record_remove(ccmr__stream_record *record)
{
    (void)pthread_mutex_lock(&table_lock);
    atomic_store_explicit(&record->handle, NULL, memory_order_release);
    (void)pthread_mutex_unlock(&table_lock);
}

static ccmr_status refuse_word(ccmr_stream stream)
{
    return ccmr__fail(CCMR_ERROR_INVALID_STREAM, "%s is not a stream here",
                      stream == CCMR_STREAM_UNSET     ? "CCMR_STREAM_UNSET"
                      : stream == CCMR_STREAM_READY   ? "CCMR_STREAM_READY"
                      : stream == CCMR_STREAM_LEGACY  ? "the legacy default "
                                                        "stream"
                                                      : "the per-thread "
                                                        "default stream");
}

static int is_word(ccmr_stream stream)
{
    return stream == CCMR_STREAM_UNSET || stream == CCMR_STREAM_READY;
}

ccmr_status ccmr_stream_register(ccmr_stream stream)
{
    ccmr_status status = ccmr__process_check();
    uint64_t id = 0;
    int device;

    stream = ccmr__stream_default(stream);
    if (status == CCMR_SUCCESS && is_word(stream)) {
        status = refuse_word(stream);
    }
    if (status != CCMR_SUCCESS || ccmr__stream_is_token(stream)) {
        return status;
    }
    status = ccmr__driver_need();
    if (status != CCMR_SUCCESS || ccmr__stream_find(stream) != NULL) {
        return status;
    }
    status = check_capture(stream);
    if (status == CCMR_SUCCESS) {
        status = ask_device(stream, &device);
    }
    if (status == CCMR_SUCCESS) {
        status = ask_id(stream, &id);
    }
    if (status != CCMR_SUCCESS) {
        return status;
    }
    return record_add(stream, id, device, 0);
}

ccmr_status ccmr_stream_create(int device, unsigned flags,
                               ccmr_stream *stream)
{
    ccmr__device *record;
    ccmr__scope scope;
    ccmr_status status;
    CUstream made;
    uint64_t id = 0;
    CUresult res;

    if (stream == NULL) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "ccmr_stream_create: stream is NULL");
    }
    if ((flags & ~CCMR_STREAM_FLAG_NON_BLOCKING) != 0) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "ccmr_stream_create: unknown flags 0x%x", flags);
    }
    status = ccmr__device_use(device, &record);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    status = ccmr__scope_enter(&scope, record, CCMR__SCOPE_RELAXED);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    res = CCMR__CU(cuStreamCreate)(&made, flags);
    if (res != CUDA_SUCCESS) {
        status = ccmr__fail_driver((int)res, "cuStreamCreate");
        goto err_scope;
    }
    status = ask_id(made, &id);
    if (status == CCMR_SUCCESS) {
        status = record_add(made, id, record->ordinal, 1);
    }
    if (status != CCMR_SUCCESS) {
        (void)CCMR__CU(cuStreamDestroy)(made);
        goto err_scope;
    }
    *stream = made;
err_scope:
    ccmr__scope_leave(&scope);
    return status;
}

ccmr_status ccmr_stream_retire(ccmr_stream stream)
{
    ccmr_status status = ccmr__process_check();
    ccmr__stream_record *record;

    stream = ccmr__stream_default(stream);
    if (status == CCMR_SUCCESS &&
        (is_word(stream) || ccmr__stream_is_token(stream))) {
        status = refuse_word(stream);
    }
    if (status == CCMR_SUCCESS) {
        status = ccmr__resources_retire(stream);
    }
    if (status == CCMR_SUCCESS) {
        record = ccmr__stream_find(stream);
        if (record != NULL) {
            record_remove(record);
        }
    }
    return status;
}

ccmr_status ccmr_stream_destroy(ccmr_stream stream)
{
    ccmr_status status = ccmr__process_check();
    ccmr__stream_record *record;
    uint64_t id;
    int device;
    CUresult res;

    if (status != CCMR_SUCCESS) {
        return status;
    }
    record = stream == NULL || is_word(stream) ? NULL
                                               : ccmr__stream_find(stream);
    if (record == NULL || !record->owned) {
        return ccmr__fail(CCMR_ERROR_INVALID_STREAM,
                          "stream %p was not made by ccmr_stream_create",
                          (void *)stream);
    }
    id = record->id;
    device = record->device;
    status = ccmr_stream_retire(stream);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    res = CCMR__CU(cuStreamDestroy)(stream);
    if (res != CUDA_SUCCESS) {
        status = ccmr__fail_driver((int)res, "cuStreamDestroy");
        /* Takes the record that it just had: needs no memory. */
        (void)record_add(stream, id, device, 1);
    }
    return status;
}

ccmr_status ccmr_stream_set_capturing(ccmr_stream stream, int capturing)
{
    ccmr_status status = ccmr__process_check();
    ccmr__stream_record *record;

    if (status != CCMR_SUCCESS) {
        return status;
    }
    record = stream == NULL ? NULL : ccmr__stream_find(stream);
    if (record == NULL) {
        return ccmr__fail(CCMR_ERROR_INVALID_STREAM,
                          "stream %p is not registered", (void *)stream);
    }
    atomic_store_explicit(&record->capturing, capturing != 0,
                          memory_order_relaxed);
    return CCMR_SUCCESS;
}

ccmr_status ccmr_stream_from_protocol(int version, uint64_t handle,
                                      ccmr_stream *stream)
{
    if (stream == NULL) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "ccmr_stream_from_protocol: stream is NULL");
    }
    if (version != 0) {
        return ccmr__fail(CCMR_ERROR_NOT_SUPPORTED,
                          "__cuda_stream__ version %d: only 0 is known",
                          version);
    }
    if (handle > UINTPTR_MAX ||
        is_word((ccmr_stream)(uintptr_t)handle)) {
        return ccmr__fail(CCMR_ERROR_INVALID_STREAM,
                          "__cuda_stream__ handle 0x%llx is no stream",
                          (unsigned long long)handle);
    }
    *stream = ccmr__stream_default((ccmr_stream)(uintptr_t)handle);
    return CCMR_SUCCESS;
}

ccmr_status ccmr_stream_synchronize(ccmr_stream stream, int device)
{
    ccmr_status status = ccmr__process_check();
    ccmr__device *record;
    ccmr__scope scope;

    stream = ccmr__stream_default(stream);
    if (status == CCMR_SUCCESS && is_word(stream)) {
        status = refuse_word(stream);
    }
    if (status == CCMR_SUCCESS) {
        status = ccmr__driver_need();
    }
    if (status == CCMR_SUCCESS && !ccmr__stream_is_token(stream)) {
        status = ccmr__stream_device(stream, &device);
    }
    if (status == CCMR_SUCCESS) {
        status = ccmr__device_use(device, &record);
    }
    if (status == CCMR_SUCCESS) {
        status = ccmr__scope_enter(&scope, record, 0);
    }
    if (status != CCMR_SUCCESS) {
        return status;
    }
    status = ccmr__stream_check(stream, record);
    ccmr__scope_leave(&scope);
    return status == CCMR_SUCCESS ? ccmr__stream_wait(stream, record)
                                  : status;
}
