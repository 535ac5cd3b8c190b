/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers: what a close has to come after.
 */
#include <stdlib.h>

#include "lib/buffer.h"
#include "lib/context.h"
#include "lib/error.h"

int ccmr__buffer_frees_at_once(const ccmr_buffer *buffer)
{
    ccmr_properties properties = {.size = sizeof(properties)};

    return ccmr_resource_describe(buffer->resource, &properties) ==
               CCMR_SUCCESS &&
           properties.free_stream == CCMR_FREE_AT_ONCE;
}

ccmr_status ccmr__buffer_add_edge(const ccmr_buffer *buffer,
                                  ccmr_stream stream, ccmr__device *device)
{
    ccmr__scope scope;
    ccmr_status status;
    CUevent event;
    CUresult res;

    status = ccmr__scope_enter(&scope, device, CCMR__SCOPE_RELAXED);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    /* An event on a capturing stream would join the capture. */
    status = ccmr__stream_check(buffer->stream, device);
    if (status == CCMR_SUCCESS) {
        status = ccmr__stream_check(stream, device);
    }
    if (status != CCMR_SUCCESS) {
        goto err_scope;
    }
    res = CCMR__CU(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING);
    if (res != CUDA_SUCCESS) {
        status = ccmr__fail_driver_host((int)res, "cuEventCreate");
        goto err_scope;
    }
    res = CCMR__CU(cuEventRecord)(event, buffer->stream);
    if (res != CUDA_SUCCESS) {
        status = ccmr__fail_driver((int)res, "cuEventRecord");
    } else {
        res = CCMR__CU(cuStreamWaitEvent)(stream, event, 0);
        if (res != CUDA_SUCCESS) {
            status = ccmr__fail_driver((int)res, "cuStreamWaitEvent");
        }
    }
    /* Destroying an event does not undo the wait. */
    (void)CCMR__CU(cuEventDestroy)(event);
err_scope:
    ccmr__scope_leave(&scope);
    return status;
}

ccmr_status ccmr__buffer_wait_notes(const ccmr_buffer *buffer,
                                    ccmr_stream stream, ccmr__device *device)
{
    const ccmr__use_note *note;
    ccmr__scope scope;
    ccmr_status status;

    status = ccmr__scope_enter(&scope, device, CCMR__SCOPE_RELAXED);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    status = ccmr__stream_check(stream, device);
    for (note = buffer->notes; note != NULL && status == CCMR_SUCCESS;
         note = note->next) {
        CUresult res = CCMR__CU(cuStreamWaitEvent)(stream, note->event, 0);

        if (res != CUDA_SUCCESS) {
            status = ccmr__fail_driver((int)res, "cuStreamWaitEvent");
        }
    }
    ccmr__scope_leave(&scope);
    return status;
}

void ccmr__buffer_drop_notes(ccmr_buffer *buffer)
{
    while (buffer->notes != NULL) {
        ccmr__use_note *note = buffer->notes;

        buffer->notes = note->next;
        /* Cannot fail for an event of ours, unless the driver is gone. */
        (void)CCMR__CU(cuEventDestroy)(note->event);
        free(note);
    }
}

/* An event on `stream`, in the context of the stream's device. */
static ccmr_status record_note(ccmr__use_note *note, ccmr_stream stream,
                               ccmr__device *device)
{
    ccmr__scope scope;
    ccmr_status status;
    CUresult res;

    status = ccmr__scope_enter(&scope, device, CCMR__SCOPE_RELAXED);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    status = ccmr__stream_check(stream, device);
    if (status != CCMR_SUCCESS) {
        goto err_scope;
    }
    res = CCMR__CU(cuEventCreate)(&note->event, CU_EVENT_DISABLE_TIMING);
    if (res != CUDA_SUCCESS) {
        status = ccmr__fail_driver_host((int)res, "cuEventCreate");
        goto err_scope;
    }
    res = CCMR__CU(cuEventRecord)(note->event, stream);
    if (res != CUDA_SUCCESS) {
        status = ccmr__fail_driver((int)res, "cuEventRecord");
        (void)CCMR__CU(cuEventDestroy)(note->event);
    }
err_scope:
    ccmr__scope_leave(&scope);
    return status;
}

ccmr_status(ccmr_buffer_note_use)(ccmr_buffer *buffer, ccmr_stream stream)
{
    ccmr_status status = ccmr__buffer_check(buffer, "ccmr_buffer_note_use");
    ccmr__device *device;
    ccmr__use_note *note;
    int ordinal;

    stream = ccmr__stream_default(stream);
    if (status == CCMR_SUCCESS && buffer->kind != CCMR__BUFFER_OWNING) {
        status = ccmr__fail(CCMR_ERROR_NOT_SUPPORTED,
                            "ccmr_buffer_note_use: the buffer frees nothing");
    }
    if (status == CCMR_SUCCESS &&
        (stream == CCMR_STREAM_UNSET || stream == CCMR_STREAM_READY)) {
        status = ccmr__fail(CCMR_ERROR_INVALID_STREAM,
                            "ccmr_buffer_note_use: a use needs a stream");
    }
    /* Memory that is freed at once, or none: nothing could wait. */
    if (status != CCMR_SUCCESS || buffer->ptr == NULL) {
        return status;
    }
    if (ccmr__buffer_frees_at_once(buffer)) {
        return ccmr__fail(CCMR_ERROR_NOT_SUPPORTED,
                          "ccmr_buffer_note_use: %s frees at once, whatever "
                          "the stream",
                          ccmr_resource_name(buffer->resource));
    }
    status = ccmr__driver_need();
    if (status == CCMR_SUCCESS) {
        status = ccmr__stream_device(stream, &ordinal);
    }
    if (status == CCMR_SUCCESS) {
        status =
            ccmr__device_use(ordinal >= 0 ? ordinal : buffer->device, &device);
    }
    if (status != CCMR_SUCCESS) {
        return status;
    }
    note = malloc(sizeof(*note));
    if (note == NULL) {
        return ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                          "no memory to note a use");
    }
    status = record_note(note, stream, device);
    if (status != CCMR_SUCCESS) {
        free(note);
        return status;
    }
    note->next = buffer->notes;
    buffer->notes = note;
    return CCMR_SUCCESS;
}
