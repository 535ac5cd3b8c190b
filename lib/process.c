/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of the process.
 */
#include "lib/process.h"

#include <pthread.h>
#include <stdlib.h>

#include "lib/census.h"
#include "lib/error.h"
#include "lib/quick.h"
#include "lib/thread.h"

atomic_int ccmr__process_flags;

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;

/* Hooks, under hooks_lock. */
static pthread_mutex_t hooks_lock = PTHREAD_MUTEX_INITIALIZER;
static ccmr__exit_hook *hooks;

static void set_flag(int flag)
{
    atomic_fetch_or_explicit(&ccmr__process_flags, flag, memory_order_relaxed);
    ccmr__quick_revoke();
}

/*
 * Runs before the driver's own handler, which was registered earlier (see
 * ccmr__process_driver_started()). Threads may still be at work: the flag
 * stops the calls that start from now on.
 */
static void at_exit(void)
{
    static atomic_flag done = ATOMIC_FLAG_INIT;
    ccmr__exit_hook *hook;

    if ((atomic_load_explicit(&ccmr__process_flags, memory_order_relaxed) &
         CCMR__PROCESS_FORKED) != 0) {
        return;
    }
    set_flag(CCMR__PROCESS_EXITING);
    if (atomic_flag_test_and_set(&done)) {
        return;
    }
    if (pthread_mutex_trylock(&hooks_lock) != 0) {
        return;
    }
    for (hook = hooks; hook != NULL; hook = hook->next) {
        hook->run(hook);
    }
    (void)pthread_mutex_unlock(&hooks_lock);
}

static void in_child(void)
{
    set_flag(CCMR__PROCESS_FORKED);
}

ccmr_status ccmr__process_start(void)
{
    ccmr_status status = CCMR_SUCCESS;

    (void)pthread_mutex_lock(&start_lock);
    if (atomic_load_explicit(&ccmr__process_flags, memory_order_relaxed) ==
        0) {
        if (pthread_atfork(NULL, NULL, in_child) != 0 ||
            atexit(at_exit) != 0) {
            status = ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                                "no memory to register exit handlers");
        } else {
            ccmr__census_start();
            ccmr__thread_start();
            set_flag(CCMR__PROCESS_STARTED);
        }
    }
    (void)pthread_mutex_unlock(&start_lock);
    return status;
}

void ccmr__process_driver_started(void)
{
    /* Without memory for it the first registration still sets the flag, only
     * later. */
    (void)atexit(at_exit);
}

void ccmr__process_set_exiting(void)
{
    set_flag(CCMR__PROCESS_EXITING);
}

ccmr_status ccmr__process_refuse(void)
{
    int flags =
        atomic_load_explicit(&ccmr__process_flags, memory_order_relaxed);

    if ((flags & CCMR__PROCESS_FORKED) != 0) {
        return ccmr__fail(CCMR_ERROR_FORKED,
                          "the library was in use before this process was "
                          "forked; a child cannot use it");
    }
    if ((flags & CCMR__PROCESS_EXITING) != 0) {
        return ccmr__fail(CCMR_ERROR_EXITING,
                          "the process is exiting or the driver is gone");
    }
    return ccmr__process_start();
}

void ccmr__exit_hook_add(ccmr__exit_hook *hook)
{
    (void)pthread_mutex_lock(&hooks_lock);
    hook->next = hooks;
    hook->link = &hooks;
    if (hooks != NULL) {
        hooks->link = &hook->next;
    }
    hooks = hook;
    (void)pthread_mutex_unlock(&hooks_lock);
}

void ccmr__exit_hook_remove(ccmr__exit_hook *hook)
{
    (void)pthread_mutex_lock(&hooks_lock);
    *hook->link = hook->next;
    if (hook->next != NULL) {
        hook->next->link = hook->link;
    }
    (void)pthread_mutex_unlock(&hooks_lock);
}
