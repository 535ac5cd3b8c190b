/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate: what every call passes on its way in and out; the calling
 * threads; fork and exit.
 *
 * There are no constructors: the first call registers fork handlers, cuInit
 * an exit handler.
 */
#include "sim/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/capture.h"
#include "sim/context.h"
#include "sim/cost.h"
#include "sim/fault.h"
#include "sim/log.h"
#include "sim/stream.h"
#include "sim/user_object.h"

struct sim_state sim = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .changed = PTHREAD_COND_INITIALIZER,
    .special = 1,
};

atomic_int sim_forked;

static const unsigned char call_flags[SIM_CALL_COUNT] = {
#define CALL_FLAGS(name, flags) (flags),
    SIM_CALLS(CALL_FLAGS)
#undef CALL_FLAGS
};

static const char *const call_names[SIM_CALL_COUNT] = {
#define CALL_NAME(name, flags) #name,
    SIM_CALLS(CALL_NAME)
#undef CALL_NAME
};

/* One pointer: small enough for the static TLS that dlopen can still use. */
static _Thread_local struct sim_thread *current_thread
    __attribute__((tls_model("initial-exec")));

static pthread_once_t prepare_once = PTHREAD_ONCE_INIT;
static pthread_key_t thread_key;

const char *sim_call_name(enum sim_call call)
{
    return call < SIM_CALL_COUNT ? call_names[call] : "?";
}

/* The length of a name without _v2, _v3, ..., _ptsz and _ptds. */
static size_t bare_length(const char *name)
{
    size_t length = strlen(name);

    if (length > 5 && (strcmp(name + length - 5, "_ptsz") == 0 ||
                       strcmp(name + length - 5, "_ptds") == 0)) {
        length -= 5;
    }
    if (length > 3 && name[length - 3] == '_' && name[length - 2] == 'v' &&
        name[length - 1] >= '0' && name[length - 1] <= '9') {
        length -= 3;
    }
    return length;
}

enum sim_call sim_call_find(const char *name)
{
    size_t length = bare_length(name);
    int i;

    for (i = 0; i < SIM_CALL_COUNT; i++) {
        if (strlen(call_names[i]) == length &&
            strncmp(call_names[i], name, length) == 0) {
            return (enum sim_call)i;
        }
    }
    return SIM_CALL_COUNT;
}

void sim_lock_unlocked(void)
{
    pthread_mutex_lock(&sim.lock);
}

void sim_unlock(void)
{
    pthread_mutex_unlock(&sim.lock);
}

_Noreturn void sim_crash(const struct sim_thread *self, const char *what,
                         const void *handle)
{
    fprintf(stderr, "libcucoremr-sim: %s: %s %p; a real driver crashes here\n",
            sim_call_name(self->call), what, handle);
    fflush(stderr);
    abort();
}

/* Fork, threads. */

/* The lock is held across a fork, so that the child finds everything in
 * order: the few calls that a driver still carries out there have to work. */

static void before_fork(void)
{
    sim_lock_unlocked();
}

static void after_fork_in_parent(void)
{
    sim_unlock();
}

static void after_fork_in_child(void)
{
    pthread_mutex_init(&sim.lock, NULL);
    pthread_cond_init(&sim.changed, NULL);
    sim.waiting = 0;
    if (sim.initialized) {
        atomic_store(&sim_forked, 1);
    }
}

static void end_thread(void *argument)
{
    struct sim_thread *thread = argument;

    if (atomic_load(&sim_forked) != 0) {
        return;
    }
    sim_lock_unlocked();
    if (thread->prev != NULL) {
        thread->prev->next = thread->next;
    } else {
        sim.threads = thread->next;
    }
    if (thread->next != NULL) {
        thread->next->prev = thread->prev;
    }
    sim_streams_of_thread_end(thread);
    sim_unlock();
    current_thread = NULL;
    free(thread->stack);
    free(thread);
}

static void prepare(void)
{
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    pthread_key_create(&thread_key, end_thread);
}

static struct sim_thread *new_thread_unlocked(void)
{
    struct sim_thread *thread;

    pthread_once(&prepare_once, prepare);
    thread = calloc(1, sizeof *thread);
    if (thread == NULL) {
        return NULL;
    }
    if (pthread_setspecific(thread_key, thread) != 0) {
        free(thread);
        return NULL;
    }
    thread->capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    sim_lock_unlocked();
    thread->serial = ++sim.thread_serial;
    thread->next = sim.threads;
    if (sim.threads != NULL) {
        sim.threads->prev = thread;
    }
    sim.threads = thread;
    sim_unlock();
    current_thread = thread;
    return thread;
}

struct sim_thread *sim_self_unlocked(void)
{
    struct sim_thread *thread = current_thread;

    return thread != NULL ? thread : new_thread_unlocked();
}

/* The gate itself. */

void sim_note_special(void)
{
    sim.special = !sim.configured || !sim.initialized || sim.stub ||
                  sim.deinitialized || sim.hidden_any || sim.faults != NULL ||
                  sim.log != NULL;
}

/* All that is not so in the ordinary state of a running driver. */
static CUresult check_special(struct sim_frame *frame, unsigned flags)
{
    bool anytime = (flags & SIM_ANYTIME) != 0;
    bool texts = frame->call == SIM_cuGetErrorName ||
                 frame->call == SIM_cuGetErrorString;
    CUresult ordered;

    if (!sim.configured) {
        sim_configure();
    }
    if (sim_fault_due(frame, &ordered)) {
        return ordered;
    }
    if (sim.stub) {
        return CUDA_ERROR_STUB_LIBRARY;
    }
    if (sim.hidden[frame->call]) {
        return CUDA_ERROR_NOT_FOUND;
    }
    if (sim.deinitialized && !texts) {
        return CUDA_ERROR_DEINITIALIZED;
    }
    return anytime || sim.initialized ? CUDA_SUCCESS
                                      : CUDA_ERROR_NOT_INITIALIZED;
}

static bool works_in_child(enum sim_call call, unsigned flags)
{
    return (flags & SIM_IN_CHILD) != 0 ||
           ((flags & SIM_ANYTIME) != 0 && call != SIM_cuInit);
}

/* Which contexts does the call want? */
static CUresult check_context(const struct sim_thread *self, unsigned flags)
{
    if (self->depth == 0) {
        return (flags & SIM_CONTEXT) != 0 ? CUDA_ERROR_INVALID_CONTEXT
                                          : CUDA_SUCCESS;
    }
    return sim_context_current(self) != NULL ? CUDA_SUCCESS
                                             : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult sim_enter(struct sim_frame *frame, enum sim_call call)
{
    unsigned flags = call_flags[call];
    CUresult res;

    frame->call = call;
    frame->self = NULL;
    frame->locked = false;
    frame->injected = false;
    frame->forced = false;
    if (atomic_load_explicit(&sim_forked, memory_order_relaxed) != 0 &&
        !works_in_child(call, flags)) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    frame->self = sim_self_unlocked();
    if (frame->self == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    sim_lock_unlocked();
    frame->locked = true;
    frame->self->call = call;
    sim.sequence++;
    sim.calls[call]++;
    if (sim.special != 0) {
        res = check_special(frame, flags);
        if (res != CUDA_SUCCESS) {
            return res;
        }
    }
    if (frame->self->callbacks != 0 && (flags & SIM_IN_CALLBACK) == 0) {
        return CUDA_ERROR_NOT_PERMITTED;
    }
    if ((flags & (SIM_CONTEXT | SIM_LIVE)) != 0) {
        res = check_context(frame->self, flags);
        if (res != CUDA_SUCCESS) {
            return res;
        }
    }
    if ((flags & SIM_UNSAFE) != 0 && sim.captures != 0) {
        return sim_capture_check(frame->self);
    }
    return CUDA_SUCCESS;
}

CUresult sim_leave(struct sim_frame *frame, CUresult res, CUstream stream,
                   uint64_t object, uint64_t other, uint64_t bytes)
{
    if (!frame->locked) {
        return res;
    }
    if (sim.dying != NULL) {
        sim_user_objects_settle(frame->self);
    }
    if (frame->forced) {
        res = frame->forced_result;
    }
    if (sim.costs) {
        sim_cost_note(frame, res, stream);
    }
    if (sim.log != NULL) {
        sim_log_note(frame, res, stream, object, other, bytes);
    }
    sim_unlock();
    return res;
}
