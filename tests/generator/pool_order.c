/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/generator/pool_order.h"

#include <stdlib.h>

static _Atomic uint64_t last_serial;

static ccmr_status driver_failed(CUresult res, const char *call)
{
    return ccmr_error_set(res == CUDA_ERROR_OUT_OF_MEMORY
                              ? CCMR_ERROR_OUT_OF_HOST_MEMORY
                              : CCMR_ERROR_DRIVER,
                          0, call);
}

/* ---- scopes ------------------------------------------------------------------------ */

ccmr_status scope_enter(scope *s, CUcontext context, pool_fault fault,
                        int freeing)
{
    CUresult res;

    *s = (scope){CU_STREAM_CAPTURE_MODE_RELAXED, 0, 0};
    if (fault != POOL_FAULT_capture) {
        res = api.cuThreadExchangeStreamCaptureMode(&s->mode);
        if (res != CUDA_SUCCESS) {
            return driver_failed(res, "cuThreadExchangeStreamCaptureMode");
        }
        s->relaxed = 1;
    }
    if (fault == POOL_FAULT_context && freeing) {
        return CCMR_SUCCESS;
    }
    res = api.cuCtxPushCurrent(context);
    if (res != CUDA_SUCCESS) {
        scope_leave(s);
        return driver_failed(res, "cuCtxPushCurrent");
    }
    s->pushed = 1;
    return CCMR_SUCCESS;
}

/* Undoing takes more than one attempt, if need be. */
void scope_leave(scope *s)
{
    CUstreamCaptureMode mode = s->mode;
    int i;

    for (i = 0; s->pushed && i < 3; i++) {
        s->pushed = api.cuCtxPopCurrent(&(CUcontext){NULL}) != CUDA_SUCCESS;
    }
    for (i = 0; s->relaxed && i < 3; i++) {
        mode = s->mode;
        s->relaxed =
            api.cuThreadExchangeStreamCaptureMode(&mode) != CUDA_SUCCESS;
    }
}

/* ---- streams ----------------------------------------------------------------------- */

static ccmr_status refuse_capturing(CUstream stream)
{
    CUstreamCaptureStatus capturing = CU_STREAM_CAPTURE_STATUS_NONE;
    CUresult res = api.cuStreamIsCapturing(stream, &capturing);

    if (res != CUDA_SUCCESS) {
        return driver_failed(res, "cuStreamIsCapturing");
    }
    return capturing == CU_STREAM_CAPTURE_STATUS_NONE
               ? CCMR_SUCCESS
               : ccmr_error_set(CCMR_ERROR_CAPTURING, 0, NULL);
}

ccmr_status caller_find(caller *c, ccmr_stream stream, int device,
                        pool_fault fault)
{
    unsigned long long id = 0;
    CUdevice its_device = device;
    ccmr_status status = CCMR_SUCCESS;
    CUresult res;

    c->handle = stream;
    c->id = (uint64_t)(uintptr_t)stream;
    if (fault != POOL_FAULT_capturing) {
        status = refuse_capturing(stream);
    }
    if (status != CCMR_SUCCESS) {
        return status;
    }
    res = api.cuStreamGetDevice(stream, &its_device);
    if (res != CUDA_SUCCESS) {
        return driver_failed(res, "cuStreamGetDevice");
    }
    if (its_device != device) {
        return ccmr_error_set(CCMR_ERROR_WRONG_DEVICE, 0, NULL);
    }
    if (fault == POOL_FAULT_handle ||
        (fault == POOL_FAULT_token && stream == CCMR_STREAM_PER_THREAD)) {
        return CCMR_SUCCESS;
    }
    res = api.cuStreamGetId(stream, &id);
    c->id = id;
    return res == CUDA_SUCCESS ? CCMR_SUCCESS
                               : driver_failed(res, "cuStreamGetId");
}

/* ---- marks ------------------------------------------------------------------------- */

mark *mark_new(void)
{
    mark *m = calloc(1, sizeof(*m));

    if (m != NULL && api.cuEventCreate(&m->event, CU_EVENT_DISABLE_TIMING) !=
                         CUDA_SUCCESS) {
        free(m);
        return NULL;
    }
    if (m != NULL) {
        m->references = 1;
    }
    return m;
}

ccmr_status mark_record(mark *m, CUstream stream)
{
    CUresult res = api.cuEventRecord(m->event, stream);

    m->serial = ++last_serial;
    return res == CUDA_SUCCESS ? CCMR_SUCCESS
                               : driver_failed(res, "cuEventRecord");
}

void mark_drop(mark *m)
{
    if (m != NULL && --m->references == 0) {
        (void)api.cuEventDestroy(m->event);
        free(m);
    }
}

/* ---- what a block waits for ----------------------------------------------------------- */

int waits_add(waits *w, const pool_wait *one)
{
    unsigned i;

    for (i = 0; i < w->count; i++) {
        if (w->items[i].id == one->id && w->items[i].late && one->late) {
            mark_drop(one->after);
            return 1;
        }
        if (w->items[i].id == one->id && !w->items[i].late && !one->late) {
            if (w->items[i].after->serial < one->after->serial) {
                mark_drop(w->items[i].after);
                w->items[i] = *one;
            } else {
                mark_drop(one->after);
            }
            return 1;
        }
    }
    if (w->count == POOL_MOST_WAITS) {
        return 0;
    }
    w->items[w->count++] = *one;
    return 1;
}

int waits_join(waits *w, const waits *more)
{
    unsigned i;

    if (w->count + more->count > POOL_MOST_WAITS) {
        return 0;
    }
    for (i = 0; i < more->count; i++) {
        more->items[i].after->references++;
        (void)waits_add(w, &more->items[i]);
    }
    return 1;
}

void waits_copy(waits *to, const waits *from)
{
    to->count = 0;
    (void)waits_join(to, from);
}

void waits_clear(waits *w)
{
    while (w->count > 0) {
        mark_drop(w->items[--w->count].after);
    }
}

ccmr_status waits_record(waits *w, CUstream only)
{
    ccmr_status status = CCMR_SUCCESS;
    unsigned i;

    for (i = 0; i < w->count && status == CCMR_SUCCESS; i++) {
        pool_wait *one = &w->items[i];

        if (one->late && (only == NULL || only == one->handle)) {
            status = mark_record(one->after, one->handle);
            one->late = status != CCMR_SUCCESS;
        }
    }
    return status;
}

/* A fault: only now the event is recorded, on what the handle means now. */
static void record_late(pool_wait *one)
{
    if (one->late) {
        (void)mark_record(one->after, one->handle);
        one->late = 0;
    }
}

ccmr_status waits_for_stream(waits *w, const caller *c)
{
    unsigned i;

    for (i = 0; i < w->count; i++) {
        pool_wait *one = &w->items[i];
        CUresult res;

        record_late(one);
        if (one->id == c->id ||
            api.cuEventQuery(one->after->event) == CUDA_SUCCESS) {
            continue;
        }
        res = api.cuStreamWaitEvent(c->handle, one->after->event, 0);
        if (res != CUDA_SUCCESS) {
            return driver_failed(res, "cuStreamWaitEvent");
        }
    }
    return CCMR_SUCCESS;
}

int waits_finished(const waits *w)
{
    unsigned i = 0;

    while (i < w->count &&
           api.cuEventQuery(w->items[i].after->event) == CUDA_SUCCESS) {
        i++;
    }
    return i == w->count;
}

static int is_token(CUstream stream)
{
    return stream == CCMR_STREAM_LEGACY || stream == CCMR_STREAM_PER_THREAD;
}

ccmr_status waits_for_host(waits *w, pool_fault fault)
{
    unsigned i;

    for (i = 0; i < w->count; i++) {
        pool_wait *one = &w->items[i];
        CUresult res;

        record_late(one);
        if (fault == POOL_FAULT_reclaim && is_token(one->handle)) {
            (void)api.cuStreamSynchronize(one->handle);
            continue;
        }
        res = api.cuEventSynchronize(one->after->event);
        if (res != CUDA_SUCCESS) {
            return driver_failed(res, "cuEventSynchronize");
        }
    }
    return CCMR_SUCCESS;
}
