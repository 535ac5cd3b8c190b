/* SPDX-License-Identifier: Apache-2.0 */
/* Streams come, are registered, capture, and go; their handles come again. */
#include "tests/generator/model.h"

/* A created stream that nobody is using; NULL: there is none. */
static track *idle(const model *m, uint8_t slot)
{
    track *t = slot < PROGRAM_STREAMS ? m->slots[slot] : NULL;

    return t != NULL && t->alive && t->pins == 0 && !t->capturing ? t : NULL;
}

/* ---- created and destroyed ------------------------------------------------------ */

static void create_by_driver(const model *m, track *t)
{
    inside in;

    driver_enter(m, &in);
    if (t->device != m->home) {
        need(api.cuCtxPushCurrent(m->primary[t->device]), "cuCtxPushCurrent");
    }
    need(api.cuStreamCreate(&t->handle, t->kind == AS_BLOCKING
                                            ? CU_STREAM_DEFAULT
                                            : CU_STREAM_NON_BLOCKING),
         "cuStreamCreate");
    if (t->device != m->home) {
        need(api.cuCtxPopCurrent(&(CUcontext){NULL}), "cuCtxPopCurrent");
    }
    driver_leave(&in);
}

static void destroy_by_driver(const model *m, const track *t)
{
    inside in;

    driver_enter(m, &in);
    need(api.cuStreamDestroy(t->handle), "cuStreamDestroy");
    driver_leave(&in);
}

void act_stream(model *m, worker *w, const op *o)
{
    ccmr_status status = CCMR_SUCCESS;
    int device = o->word == AS_ELSEWHERE ? 1 - m->home : m->home;
    CUstream handle = NULL;
    track *t;
    int met = 0;

    if (o->stream >= PROGRAM_STREAMS || m->slots[o->stream] != NULL ||
        (o->word == AS_ELSEWHERE && m->p->devices < 2) ||
        (m->registered_only && o->word != AS_OURS &&
         o->word != AS_REGISTERED && o->word != AS_PLAIN)) {
        leave_out();
        return;
    }
    t = track_new(m, NULL, o->word, device);
    t->alive = 0; /* as yet */
    m->slots[o->stream] = t;
    if (o->word != AS_OURS) {
        create_by_driver(m, t);
    }
    if (o->word == AS_OURS || o->word == AS_REGISTERED) {
        call_begin(m, w);
        status = o->word == AS_OURS
                     ? ccmr_stream_create(
                           device, CCMR_STREAM_FLAG_NON_BLOCKING, &handle)
                     : ccmr_stream_register(t->handle);
        met = call_end(m, w);
        if (o->word == AS_OURS) {
            t->handle = handle;
        }
        expect_success(o->word == AS_OURS ? "ccmr_stream_create"
                                          : "ccmr_stream_register",
                       status, met);
        t->registered = status == CCMR_SUCCESS;
    }
    t->alive = t->handle != NULL;
    if (!t->alive) {
        m->slots[o->stream] = NULL;
    }
}

/* What a stream's end takes of the library. */
static ccmr_status end_in_library(const track *t, int retire)
{
    if (t->kind == AS_OURS) {
        return ccmr_stream_destroy(t->handle);
    }
    return t->registered || retire ? ccmr_stream_retire(t->handle)
                                   : CCMR_SUCCESS;
}

void act_destroy(model *m, worker *w, const op *o)
{
    track *t = idle(m, o->stream);
    int retire = o->word == DESTROY_RETIRED || m->registered_only;
    ccmr_status status;
    int met;

    if (t == NULL || (t->holds != 0 && !t->registered)) {
        leave_out();
        return;
    }
    t->alive = 0; /* nobody begins to use it */
    m->lost += !t->registered && !retire;
    call_begin(m, w);
    status = end_in_library(t, retire);
    met = call_end(m, w);
    expect_success("ccmr_stream_retire or destroy", status, met);
    if (status != CCMR_SUCCESS) {
        t->alive = 1;
        return;
    }
    if (t->kind != AS_OURS) {
        destroy_by_driver(m, t);
    }
    t->registered = 0;
    m->slots[o->stream] = NULL;
}

void act_register(model *m, worker *w, const op *o)
{
    track *t = idle(m, o->stream);
    ccmr_status status;
    int met;

    if (t == NULL) {
        leave_out();
        return;
    }
    t->alive = 0;
    call_begin(m, w);
    status = ccmr_stream_register(t->handle);
    met = call_end(m, w);
    t->alive = 1;
    expect_success("ccmr_stream_register", status, met);
    if (status == CCMR_SUCCESS) {
        t->registered = 1;
    }
}

void act_retire(model *m, worker *w, const op *o)
{
    track *t = idle(m, o->stream);
    ccmr_status status;
    int met;

    if (t == NULL || t->kind == AS_OURS || t->holds != 0 ||
        m->registered_only) {
        leave_out();
        return;
    }
    t->alive = 0;
    call_begin(m, w);
    status = ccmr_stream_retire(t->handle);
    met = call_end(m, w);
    t->alive = 1;
    expect_success("ccmr_stream_retire", status, met);
    if (status == CCMR_SUCCESS) {
        t->registered = 0;
    }
}

/* ---- captures --------------------------------------------------------------------- */

/* A stack with streams=registered may have registered any other, too. */
static void announce(const model *m, const track *t, int capturing)
{
    if (!t->registered && m->registered_only) {
        (void)ccmr_stream_set_capturing(t->handle, capturing);
    } else if (t->registered && ccmr_stream_set_capturing(
                                    t->handle, capturing) != CCMR_SUCCESS) {
        fail(FAULT_STATUS, "ccmr_stream_set_capturing: %s",
             ccmr_last_error()->message);
    }
}

void act_capture(model *m, worker *w, const op *o)
{
    static const CUstreamCaptureMode modes[] = {
        CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
        CU_STREAM_CAPTURE_MODE_RELAXED};
    track *t = idle(m, o->stream);

    /* What the legacy stream gets would depend on a blocking one. */
    if (t == NULL || t->kind == AS_BLOCKING || t->kind == AS_ELSEWHERE) {
        leave_out();
        return;
    }
    /* A thread-local one would be harmed by its own thread's calls. */
    if (m->unguarded && modes[o->word] != CU_STREAM_CAPTURE_MODE_RELAXED) {
        leave_out();
        return;
    }
    announce(m, t, 1);
    need(api.cuStreamBeginCapture(t->handle, modes[o->word]),
         "cuStreamBeginCapture");
    need(api.cuMemsetD8Async(m->scratch, 1, 256, t->handle),
         "cuMemsetD8Async");
    t->capturing = 1;
    t->capturer = w->serial;
    t->relaxed = modes[o->word] == CU_STREAM_CAPTURE_MODE_RELAXED;
    m->captures++;
}

void capture_end(model *m, track *t)
{
    const char *name = NULL;
    CUgraph graph = NULL;
    CUresult res = api.cuStreamEndCapture(t->handle, &graph);

    if (res != CUDA_SUCCESS || graph == NULL) {
        (void)api.cuGetErrorName(res, &name);
        fail(FAULT_CAPTURE, "a capture was disturbed: it ends with %s",
             name != NULL ? name : "no graph");
    }
    need(api.cuGraphDestroy(graph), "cuGraphDestroy");
    t->capturing = 0;
    m->captures--;
    announce(m, t, 0);
}

void act_end(model *m, worker *w, const op *o)
{
    track *t = o->stream < PROGRAM_STREAMS ? m->slots[o->stream] : NULL;

    if (t == NULL || !t->alive || !t->capturing || t->pins != 0 ||
        (t->capturer != w->serial && !t->relaxed)) {
        leave_out();
        return;
    }
    capture_end(m, t);
}
