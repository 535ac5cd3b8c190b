/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts and devices: rule 6. Whatever is current, a resource acts on its
 * own device, and what was current is current again after every call, failed
 * ones included. Field cases B6, C3, E1, E3, E5, E8.
 */
#include "tests/conformance/conformance.h"

#include <string.h>

#include "tests/support/tap.h"

static void expect_current(subject *s, const char *what, void *context)
{
    CUcontext current = NULL;

    (void)api.cuCtxGetCurrent(&current);
    CHECK(s, current == context, "after %s the current context is %p, was %p",
          what, (void *)current, context);
}

/* Everything, with `context` current over `below`. */
static void exercise_in(subject *s, CUcontext context, CUcontext below)
{
    CUcontext popped = NULL;

    (void)api.cuCtxPushCurrent(below);
    (void)api.cuCtxPushCurrent(context);
    exercise(s, 1, expect_current, context);
    (void)api.cuCtxPopCurrent(&popped);
    CHECK(s, popped == context, "the context was replaced");
    (void)api.cuCtxPopCurrent(&popped);
    CHECK(s, popped == below, "the stack of contexts has another depth");
}

static void case_no_context(subject *s)
{
    CUcontext current = NULL;

    (void)api.cuCtxGetCurrent(&current);
    if (current != NULL) {
        subject_skip(s, "a context is current");
        return;
    }
    exercise(s, 1, expect_current, NULL);
}

static void case_own_context(subject *s)
{
    CUcontext own = here.primary[s->device];

    exercise_in(s, own, own);
}

static void case_other_device_context(subject *s)
{
    if (here.devices < 2) {
        subject_skip(s, "one device");
        return;
    }
    exercise_in(s, here.primary[1 - s->device], here.primary[s->device]);
}

/* A context that is no primary one, as drivers' users still make. */
static void case_foreign_context(subject *s)
{
    if (here.foreign == NULL) {
        subject_skip(s, "no second context could be made");
        return;
    }
    exercise_in(s, here.foreign, here.primary[s->device]);
}

/* E1: a whole life while another device's context is current. */
static void case_made_elsewhere(subject *s)
{
    ccmr_resource *made = NULL;
    ccmr_properties properties = {.size = sizeof(properties)};
    ccmr_resource *kept = s->resource;
    CUcontext other;

    if (here.devices < 2) {
        subject_skip(s, "one device");
        return;
    }
    if (s->properties.device < 0) {
        subject_skip(s, "bound to no device");
        return;
    }
    other = here.primary[1 - s->device];
    (void)api.cuCtxPushCurrent(other);
    CHECK_OK(s, ccmr_stack_create(s->stack, &made), "create");
    expect_current(s, "create", other);
    if (made != NULL) {
        CHECK_OK(s, ccmr_resource_describe(made, &properties), "describe");
        s->resource = made;
        if (properties.device == s->device) {
            exercise(s, 1, expect_current, other);
        }
        s->resource = kept;
        ccmr_resource_release(made);
        expect_current(s, "release", other);
    }
    (void)api.cuCtxPopCurrent(&other);
}

/* B6: blocks and buffers are closed by a thread that has no context, and by
   one with another device's. */
typedef struct closer {
    subject *s;
    CUcontext context;
    ccmr_buffer *buffer;
    void *ptr;
} closer;

static void *close_elsewhere(void *argument)
{
    closer *c = argument;
    subject *s = c->s;
    CUcontext current = c->context;

    if (c->context != NULL) {
        (void)api.cuCtxPushCurrent(c->context);
    }
    CHECK_OK(s, ccmr_buffer_close(c->buffer, CCMR_STREAM_UNSET), "close");
    expect_current(s, "close", current);
    CHECK_OK(s, ccmr_buffer_destroy(c->buffer), "destroy");
    give(s, c->ptr, 5000, 0, s->streams[0]);
    expect_current(s, "deallocate", current);
    if (c->context != NULL) {
        (void)api.cuCtxPopCurrent(&current);
    }
    return NULL;
}

static void case_closed_by_other_thread(subject *s)
{
    CUcontext contexts[3] = {NULL, here.primary[s->device],
                             here.devices > 1 ? here.primary[1 - s->device]
                                              : here.foreign};
    size_t before = figures(s).live_bytes;
    ccmr_stream streams[3] = {s->streams[0], here.registered[s->device],
                              CCMR_STREAM_LEGACY};
    pthread_t thread;
    int i;

    for (i = 0; i < 9; i++) {
        closer c = {s, contexts[i % 3], NULL, NULL};

        c.buffer = take_buffer(s, 5000, streams[i / 3]);
        c.ptr = take(s, 5000, 0, s->streams[0]);
        if (c.buffer == NULL || c.ptr == NULL) {
            continue;
        }
        if (!CHECK(s, pthread_create(&thread, NULL, close_elsewhere, &c) == 0,
                   "no thread")) {
            (void)close_elsewhere(&c);
            continue;
        }
        (void)pthread_join(thread, NULL);
    }
    CHECK(s, figures(s).live_bytes == before, "live is %zu, was %zu",
          figures(s).live_bytes, before);
}

/* C3: the per-thread token is the stream of the thread that named it. */
static void *close_token(void *argument)
{
    closer *c = argument;
    subject *s = c->s;
    ccmr_buffer_properties properties = {.size = sizeof(properties)};

    CHECK_STATUS(s, ccmr_buffer_close(c->buffer, CCMR_STREAM_UNSET),
                 CCMR_ERROR_WRONG_THREAD, "close on another thread");
    CHECK_STATUS(s, ccmr_buffer_destroy(c->buffer), CCMR_ERROR_WRONG_THREAD,
                 "destroy on another thread");
    CHECK_OK(s, ccmr_buffer_describe(c->buffer, &properties), "describe");
    CHECK(s,
          !properties.closed && properties.bytes == 5000 &&
              properties.stream == CCMR_STREAM_PER_THREAD,
          "a refused close changed the buffer");
    return NULL;
}

static void case_per_thread_token(subject *s)
{
    closer c = {s, NULL, NULL, NULL};
    pthread_t thread;

    c.buffer = take_buffer(s, 5000, CCMR_STREAM_PER_THREAD);
    if (c.buffer == NULL) {
        return;
    }
    if (s->properties.free_stream == CCMR_FREE_AT_ONCE) {
        drop_buffer(s, c.buffer);
        subject_skip(s, "streams do not matter to this resource");
        return;
    }
    if (pthread_create(&thread, NULL, close_token, &c) == 0) {
        (void)pthread_join(thread, NULL);
    }
    drop_buffer(s, c.buffer);
}

/* E5: a stream of another device is refused before the driver sees it. */
static void case_stream_of_other_device(subject *s)
{
    ccmr_stream foreign;
    ccmr_stream registered;
    ccmr_buffer *buffer = NULL;
    ccmr_buffer_properties properties = {.size = sizeof(properties)};
    ccmr_stats before;
    void *ptr;
    void *nothing = NULL;
    ccmr_resource *r = s->resource;

    if (here.devices < 2 || s->properties.device < 0) {
        subject_skip(s,
                     here.devices < 2 ? "one device" : "bound to no device");
        return;
    }
    foreign = here.streams[1 - s->device][0];
    registered = here.registered[1 - s->device];
    ptr = take(s, 512, 0, s->streams[0]);
    buffer = take_buffer(s, 512, s->streams[0]);
    before = figures(s);
    CHECK_STATUS(s, ccmr_resource_allocate(r, 512, 0, foreign, &nothing),
                 CCMR_ERROR_WRONG_DEVICE, "allocate");
    CHECK_STATUS(s, ccmr_resource_allocate(r, 512, 0, registered, &nothing),
                 CCMR_ERROR_WRONG_DEVICE, "allocate, registered");
    CHECK(s, nothing == NULL, "an output was written");
    CHECK_STATUS(s, (ccmr_resource_deallocate)(r, ptr, 512, 0, foreign),
                 CCMR_ERROR_WRONG_DEVICE, "deallocate");
    CHECK_STATUS(s, (ccmr_resource_deallocate)(r, ptr, 512, 0, registered),
                 CCMR_ERROR_WRONG_DEVICE, "deallocate, registered");
    CHECK_STATUS(s, (ccmr_buffer_close)(buffer, foreign),
                 CCMR_ERROR_WRONG_DEVICE, "close");
    CHECK_STATUS(s, (ccmr_buffer_close)(buffer, registered),
                 CCMR_ERROR_WRONG_DEVICE, "close, registered");
    CHECK_STATUS(s, ccmr_buffer_set_stream(buffer, foreign),
                 CCMR_ERROR_WRONG_DEVICE, "set_stream");
    CHECK_OK(s, ccmr_buffer_describe(buffer, &properties), "describe");
    CHECK(s, !properties.closed && properties.stream == s->streams[0],
          "a refusal changed the buffer");
    CHECK(s,
          figures(s).live_bytes == before.live_bytes &&
              figures(s).allocations == before.allocations,
          "a refusal was counted");
    give(s, ptr, 512, 0, s->streams[0]);
    drop_buffer(s, buffer);
}

/* B8: in a host function of a stream, where CUDA permits little, calls answer
   at once, and what was not freed is still there. */
typedef struct host_function {
    subject *s;
    void *ptr;
    ccmr_buffer *buffer;
    void *taken;
    ccmr_status allocated;
    ccmr_status deallocated;
    ccmr_status closed;
    ccmr_status asked;
    atomic_int done;
} host_function;

static void CUDA_CB call_inside(void *argument)
{
    host_function *f = argument;
    ccmr_resource *r = f->s->resource;
    ccmr_stream stream = f->s->streams[0];
    ccmr_stats stats = {.size = sizeof(stats)};

    f->asked = ccmr_resource_stats(r, &stats);
    f->allocated = (ccmr_resource_allocate)(r, 512, 0, stream, &f->taken);
    f->deallocated = (ccmr_resource_deallocate)(r, f->ptr, 512, 0, stream);
    f->closed = (ccmr_buffer_close)(f->buffer, CCMR_STREAM_UNSET);
    atomic_store(&f->done, 1);
}

/* What the function did; it could not say so itself. */
static void tell_inside(const host_function *f, const void *memory)
{
    ccmr_resource *r = f->s->resource;
    ccmr_stream stream = f->s->streams[0];

    if (f->allocated == CCMR_SUCCESS) {
        told_handed_out(r, f->taken, 512, stream);
    }
    if (f->deallocated == CCMR_SUCCESS) {
        told_freed(r, f->ptr, 512, stream);
    }
    if (f->closed == CCMR_SUCCESS) {
        told_freed(r, memory, 512, stream);
    }
}

static int may_answer(subject *s, ccmr_status status, const char *what)
{
    return CHECK(s,
                 status == CCMR_SUCCESS || status == CCMR_ERROR_NOT_PERMITTED,
                 "%s in a host function: %s", what, ccmr_status_name(status));
}

static void case_host_function(subject *s)
{
    host_function f = {.s = s};
    size_t before = figures(s).live_bytes;
    void *memory;

    f.ptr = take(s, 512, 0, s->streams[0]);
    f.buffer = take_buffer(s, 512, s->streams[0]);
    memory = ccmr_buffer_ptr(f.buffer);
    if (f.ptr == NULL || f.buffer == NULL ||
        !CHECK(s,
               api.cuLaunchHostFunc(s->streams[0], call_inside, &f) ==
                   CUDA_SUCCESS,
               "no host function")) {
        give(s, f.ptr, 512, 0, s->streams[0]);
        drop_buffer(s, f.buffer);
        return;
    }
    settle(s, s->streams[0]);
    CHECK(s, atomic_load(&f.done) == 1, "the host function did not run");
    tell_inside(&f, memory);
    (void)may_answer(s, f.asked, "stats");
    (void)may_answer(s, f.allocated, "allocate");
    (void)may_answer(s, f.deallocated, "deallocate");
    (void)may_answer(s, f.closed, "close");
    if (f.allocated == CCMR_SUCCESS) {
        give(s, f.taken, 512, 0, s->streams[0]);
    } else {
        CHECK(s, f.taken == NULL, "an output was written");
    }
    if (f.deallocated != CCMR_SUCCESS) {
        give(s, f.ptr, 512, 0, s->streams[0]);
    }
    CHECK(s, (ccmr_buffer_ptr(f.buffer) == NULL) == (f.closed == CCMR_SUCCESS),
          "the buffer does not agree with its close");
    drop_buffer(s, f.buffer);
    CHECK(s, figures(s).live_bytes == before, "live is %zu, was %zu",
          figures(s).live_bytes, before);
}

const conformance_case cases_context[] = {
    {"no context current", case_no_context},
    {"own context current", case_own_context},
    {"another device's context current", case_other_device_context},
    {"foreign context current", case_foreign_context},
    {"made with another device current", case_made_elsewhere},
    {"closed by another thread", case_closed_by_other_thread},
    {"per-thread token on another thread", case_per_thread_token},
    {"stream of another device", case_stream_of_other_device},
    {"calls in a host function", case_host_function},
    {NULL, NULL},
};
