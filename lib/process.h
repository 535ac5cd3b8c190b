/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of the process: alive, exiting, or a forked child.
 *
 * Nothing runs before main() or after it. The first use of the library
 * registers one atexit and one atfork handler, which set a flag; every entry
 * point looks at that flag with one relaxed load.
 */
#ifndef CCMR_LIB_PROCESS_H
#define CCMR_LIB_PROCESS_H

#include <stdatomic.h>

#include <cucoremr/status.h>

enum {
    CCMR__PROCESS_STARTED = 0x1, /* handlers are registered */
    CCMR__PROCESS_EXITING = 0x2, /* exit has begun or the driver is gone */
    CCMR__PROCESS_FORKED = 0x4 /* this is a child of a process that used us */
};

extern atomic_int ccmr__process_flags;

/** First use: register the handlers. Idempotent, takes a lock. */
ccmr_status ccmr__process_start(void);

/**
 * The driver was initialised just now: register the exit handler once more,
 * since handlers run last in, first out, and ours must precede the driver's.
 */
void ccmr__process_driver_started(void);

/** The driver said DEINITIALIZED: from now on the process is exiting. */
void ccmr__process_set_exiting(void);

/** Why the process may not go on: sets the error, returns its status. */
ccmr_status ccmr__process_refuse(void);

/** The check at the top of every entry point. */
static inline ccmr_status ccmr__process_check(void)
{
    int flags =
        atomic_load_explicit(&ccmr__process_flags, memory_order_relaxed);

    if (__builtin_expect(flags == CCMR__PROCESS_STARTED, 1)) {
        return CCMR_SUCCESS;
    }
    return ccmr__process_refuse();
}

/** 1 if exiting or forked: nothing may be touched. */
static inline int ccmr__process_gone(void)
{
    return (atomic_load_explicit(&ccmr__process_flags, memory_order_relaxed) &
            ~CCMR__PROCESS_STARTED) != 0;
}

/*
 * What must still reach a file at exit (log rows). The function is called once
 * at exit, on the exiting thread, never in a forked child; it must not touch
 * the driver, and must not wait for a lock that another thread may hold for
 * ever. Removing waits for no one.
 */
typedef struct ccmr__exit_hook {
    void (*run)(struct ccmr__exit_hook *hook);
    struct ccmr__exit_hook *next;
    struct ccmr__exit_hook **link;
} ccmr__exit_hook;

void ccmr__exit_hook_add(ccmr__exit_hook *hook);
void ccmr__exit_hook_remove(ccmr__exit_hook *hook);

#endif /* CCMR_LIB_PROCESS_H */
