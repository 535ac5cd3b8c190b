/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams: the table of registered ones, and the public calls.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "lib/error.h"
#include "lib/process.h"
#include "lib/quick.h"
#include "lib/resource.h"
#include "lib/stream.h"

_Atomic(ccmr__stream_record *)
    ccmr__stream_buckets[1 << CCMR__STREAM_BUCKET_BITS];

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
/* Ids for drivers that have none: under table_lock. */
static uint64_t next_id = 1;

/* An unused record in the stream's bucket, or a new one at its head. Under
 * the table's lock. NULL without memory. */
static ccmr__stream_record *record_take(ccmr_stream stream)
{
    _Atomic(ccmr__stream_record *) *bucket =
        &ccmr__stream_buckets[ccmr__stream_bucket(stream)];
    ccmr__stream_record *head =
        atomic_load_explicit(bucket, memory_order_relaxed);
    ccmr__stream_record *record;

    for (record = head; record != NULL; record = record->next) {
        if (record->retired == stream ||
            (record->retired == NULL &&
             atomic_load_explicit(&record->handle, memory_order_relaxed) ==
                 NULL)) {
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
            uint64_t was = record->id;

            record->id = CCMR__CU(cuStreamGetId) != NULL
                             ? id
                             : (CCMR__ID_REGISTERED | next_id++);
            record->device = device;
            record->owned =
                owned || (record->retired == stream && record->id == was);
            record->retired = NULL;
            atomic_store_explicit(&record->capturing, 0, memory_order_relaxed);
            atomic_store_explicit(&record->handle, stream,
                                  memory_order_release);
            atomic_store_explicit(&record->usable, record->id,
                                  memory_order_release);
        }
    }
    (void)pthread_mutex_unlock(&table_lock);
    return status;
}

ccmr__stream_record *ccmr__stream_learn(ccmr_stream stream,
                                        const ccmr__device *device,
                                        ccmr__stream_use *use)
{
    ccmr_error_detail before = *ccmr__error();
    ccmr__stream_record *record = NULL;

    if (record_add(stream, use->id, device->ordinal, 0) == CCMR_SUCCESS) {
        record = ccmr__stream_find(stream);
    }
    if (record != NULL) {
        use->id = record->id;
        use->registered = 1;
    }
    *ccmr__error() = before;
    return record;
}

/* ---- borrowing ----------------------------------------------------------------
 *
 *   borrower: borrowed++; still registered, not capturing? -> use; borrowed--
 *   the other: capturing = 1, or handle = 0; wait for borrowed == 0
 *
 * Sequentially consistent on both sides: one of them sees the other.
 */

int ccmr__stream_borrow(ccmr__stream_record *record, uint64_t id,
                        CUstream *handle)
{
    ccmr_stream stream;

    atomic_fetch_add(&record->borrowed, 1);
    stream = atomic_load(&record->handle);
    if (stream != NULL && record->id == id &&
        atomic_load(&record->capturing) == 0) {
        *handle = stream;
        return 1;
    }
    atomic_fetch_sub(&record->borrowed, 1);
    return 0;
}

void ccmr__stream_return(ccmr__stream_record *record)
{
    atomic_fetch_sub(&record->borrowed, 1);
}

static void wait_for_borrowers(ccmr__stream_record *record)
{
    while (atomic_load(&record->borrowed) != 0) {
        sched_yield();
    }
}

/* A stream of ours that is retired is still to be destroyed: its record says
 * so, and serves no other. */
static void record_retire(ccmr__stream_record *record)
{
    (void)pthread_mutex_lock(&table_lock);
    if (record->owned) {
        record->retired =
            atomic_load_explicit(&record->handle, memory_order_relaxed);
    }
    atomic_store(&record->usable, 0);
    ccmr__quick_revoke();
    atomic_store(&record->handle, NULL);
    /* Before another stream can have the record. */
    wait_for_borrowers(record);
    (void)pthread_mutex_unlock(&table_lock);
}

/* The record of a retired stream of ours gives it up. Returns 0 if there is
 * none. */
static int record_give_up(ccmr_stream stream, uint64_t *id, int *device)
{
    ccmr__stream_record *record;

    (void)pthread_mutex_lock(&table_lock);
    record = atomic_load_explicit(
        &ccmr__stream_buckets[ccmr__stream_bucket(stream)],
        memory_order_relaxed);
    while (record != NULL && record->retired != stream) {
        record = record->next;
    }
    if (record != NULL) {
        record->retired = NULL;
        *id = record->id;
        *device = record->device;
    }
    (void)pthread_mutex_unlock(&table_lock);
    return record != NULL;
}

static ccmr_status refuse_word(ccmr_stream stream)
{
    return ccmr__fail(CCMR_ERROR_INVALID_STREAM, "%s is not a stream here",
                      stream == CCMR_STREAM_UNSET    ? "CCMR_STREAM_UNSET"
                      : stream == CCMR_STREAM_READY  ? "CCMR_STREAM_READY"
                      : stream == CCMR_STREAM_LEGACY ? "the legacy default "
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
    status = ccmr__stream_check_capture(stream);
    if (status == CCMR_SUCCESS) {
        status = ccmr__stream_ask_device(stream, &device);
    }
    if (status == CCMR_SUCCESS) {
        status = ccmr__stream_ask_id(stream, &id);
    }
    if (status != CCMR_SUCCESS) {
        return status;
    }
    return record_add(stream, id, device, 0);
}

ccmr_status ccmr_stream_create(int device, unsigned flags, ccmr_stream *stream)
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
    status = ccmr__stream_ask_id(made, &id);
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
        /* Not only where a resource happens to ask. */
        record = ccmr__stream_find(stream);
        if (record != NULL && atomic_load(&record->capturing) != 0) {
            status = ccmr__fail(CCMR_ERROR_CAPTURING,
                                "stream %p is capturing, as was announced: "
                                "it is retired when that has ended",
                                (void *)stream);
        }
    }
    if (status == CCMR_SUCCESS) {
        status = ccmr__resources_retire(stream);
    }
    if (status == CCMR_SUCCESS) {
        record = ccmr__stream_find(stream);
        if (record != NULL) {
            record_retire(record);
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
    record =
        stream == NULL || is_word(stream) ? NULL : ccmr__stream_find(stream);
    if (record != NULL && record->owned) {
        status = ccmr_stream_retire(stream);
        if (status != CCMR_SUCCESS) {
            return status;
        }
    }
    /* Before the handle can come back for another stream. */
    if (stream == NULL || !record_give_up(stream, &id, &device)) {
        return ccmr__fail(CCMR_ERROR_INVALID_STREAM,
                          "stream %p was not made by ccmr_stream_create, or "
                          "has been destroyed",
                          (void *)stream);
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
    atomic_store(&record->capturing, capturing != 0);
    atomic_store(&record->usable, capturing != 0 ? 0 : record->id);
    ccmr__quick_revoke();
    if (capturing != 0) {
        wait_for_borrowers(record);
    }
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
    if (handle > UINTPTR_MAX || is_word((ccmr_stream)(uintptr_t)handle)) {
        return ccmr__fail(CCMR_ERROR_INVALID_STREAM,
                          "__cuda_stream__ handle 0x%llx is no stream",
                          (unsigned long long)handle);
    }
    *stream = ccmr__stream_default((ccmr_stream)(uintptr_t)handle);
    return CCMR_SUCCESS;
}

ccmr_status(ccmr_stream_synchronize)(ccmr_stream stream, int device)
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
    return status == CCMR_SUCCESS ? ccmr__stream_wait(stream, record) : status;
}
