/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of the simulated driver that its parts share, and the gate that
 * every entry point passes.
 *
 * Thread rule: one lock guards everything. Entry points take it in sim_enter
 * and give it back in sim_leave; every function of the simulator that is not
 * an entry point runs with the lock held, unless its name ends in _unlocked.
 * The lock is given up in two places only: while a user's host function runs,
 * and while a caller waits for work that cannot run yet. Whatever was looked
 * up before such a place must be looked up again after it.
 */
#ifndef SIM_STATE_H
#define SIM_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What cuda.h declares is what this library exports. */
#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop

#include "sim/calls.h"
#include "sim/sim.h"

#define SIM_MAX_DEVICES 16
#define SIM_ATTRIBUTES ((int)CU_DEVICE_ATTRIBUTE_MAX)

struct sim_context;
struct sim_extent;
struct sim_pool;
struct sim_region;
struct sim_stream;

/** What a thread is to the driver. Made at its first call, on a list until
 *  the thread ends. */
struct sim_thread {
    struct sim_thread *prev, *next;
    uint64_t serial;
    /** The stack of current contexts; the last is current. */
    CUcontext *stack;
    size_t depth, room;
    CUstreamCaptureMode capture_mode;
    /** How many host functions the thread is in. */
    unsigned callbacks;
    /** The call that it is in, for messages. */
    enum sim_call call;
    /** Picoseconds that its calls are estimated to take, cost.h: all of
     *  them, and what is known yet of the one that it is in. */
    uint64_t cost, cost_of_call;
    /** Its per-thread default streams, one a context. */
    struct sim_stream *own_streams;
};

struct sim_device {
    CUdevice ordinal;
    uint64_t capacity;
    uint64_t taken; /**< physical bytes in use */
    int attributes[SIM_ATTRIBUTES];
    CUcontext primary; /**< NULL until first retained */
    unsigned primary_flags;
    struct sim_pool *default_pool, *current_pool;
};

struct sim_state {
    pthread_mutex_t lock;
    pthread_cond_t changed; /**< work ran, a stream was released */
    unsigned waiting;       /**< threads that wait for `changed` */

    /** Anything that keeps sim_enter off its short way. */
    unsigned special;
    bool configured; /**< environment read */
    bool initialized;
    bool stub;
    bool deinitialized;
    bool hidden_any;
    bool hidden[SIM_CALL_COUNT];

    int device_count;
    /** Bit p of the d-th: device d cannot reach device p. */
    uint32_t apart[SIM_MAX_DEVICES];
    int driver_version;
    struct sim_device devices[SIM_MAX_DEVICES];

    ccmr_sim_mode mode;
    uint64_t seed;       /**< of the schedule */
    uint64_t random;     /**< state of its generator */
    bool in_order;       /**< seed 0: no chance at all */
    uint64_t wait_limit; /**< milliseconds */

    uint64_t sequence; /**< calls ever */
    uint64_t calls[SIM_CALL_COUNT];
    struct sim_fault *faults;
    struct sim_log *log;

    struct sim_thread *threads;
    uint64_t thread_serial;
    unsigned captures; /**< captures that have not ended */
    /** Waits for what other processes do; since when (in milliseconds, 0: not)
     *  nothing has come of them, and when that was looked at last. */
    unsigned remote_waits;
    uint64_t remote_since, remote_looked;
    struct sim_user_object *dying; /**< destructors to be called */
    bool order;                    /**< the order of accesses is checked */
    bool strict;                   /**< hazards end the process */
    bool costs; /**< what calls are estimated to take is counted */
};

extern struct sim_state sim;

/** The lock-free part: fork and exit must be seen without the lock. */
extern atomic_int sim_forked;

/* The gate, gate.c. */

/** A call in progress. */
struct sim_frame {
    enum sim_call call;
    struct sim_thread *self;
    bool locked;   /**< false: the gate refused at once */
    bool injected; /**< the status was ordered by a test */
    bool forced;   /**< answer `forced_result` at the end */
    CUresult forced_result;
};

/**
 * Begin a call: take the lock and check all that the call's flags ask for.
 * On anything but CUDA_SUCCESS the call must not be carried out.
 */
CUresult sim_enter(struct sim_frame *frame, enum sim_call call);

/** End a call, refused or not: note it in the log and give the lock back.
 *  Returns the status to answer. */
CUresult sim_leave(struct sim_frame *frame, CUresult res, CUstream stream,
                   uint64_t object, uint64_t other, uint64_t bytes);

/** The calling thread's record, made at need; NULL without host memory. */
struct sim_thread *sim_self_unlocked(void);

void sim_lock_unlocked(void);
void sim_unlock(void);

/** Read the environment if that has not been done. */
void sim_configure(void);

/** Bring `special` up to date after one of its reasons changed. */
void sim_note_special(void);

/** The misuse that makes a real driver crash: say what, and abort. */
_Noreturn void sim_crash(const struct sim_thread *self, const char *what,
                         const void *handle);

const char *sim_call_name(enum sim_call call);
/** The call of that name, with or without version; SIM_CALL_COUNT if none. */
enum sim_call sim_call_find(const char *name);

/**
 * The frame of an entry point: `expression` is evaluated under the lock, with
 * `self` the calling thread. `object`, `other` and `bytes` go to the log and
 * are evaluated after it; they may use `res`.
 */
#define SIM_ENTRY(name, expression, stream, object, other, bytes)             \
    do {                                                                      \
        struct sim_frame frame;                                               \
        CUresult res = sim_enter(&frame, SIM_##name);                         \
        struct sim_thread *self = frame.self;                                 \
        (void)self;                                                           \
        if (res == CUDA_SUCCESS) {                                            \
            res = (expression);                                               \
        }                                                                     \
        return sim_leave(&frame, res, (stream),                               \
                         (uint64_t)(uintptr_t)(object),                       \
                         (uint64_t)(uintptr_t)(other), (uint64_t)(bytes));    \
    } while (0)

/** What an output holds, for the log: only a successful call wrote it. */
#define SIM_OUT(pointer)                                                      \
    (res == CUDA_SUCCESS && (pointer) != NULL ? *(pointer) : 0)

#endif
