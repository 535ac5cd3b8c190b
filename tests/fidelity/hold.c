/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fidelity/hold.h"

#include "sim/sim.h"
#include "tests/fidelity/facts.h"

#include <pthread.h>
#include <time.h>

/*
 * held:     set by hold(), cleared by whoever lets go first
 * until:    when the helper thread lets go
 * The rest is for the case's thread, and the helper only reads it.
 */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool held;             /* under lock */
    struct timespec until; /* under lock */
    bool helper;
    pthread_t helper_id;
    CUstream stream;
} state = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .changed = PTHREAD_COND_INITIALIZER,
};

static struct timespec time_after(int ms)
{
    struct timespec when;

    clock_gettime(CLOCK_REALTIME, &when);
    when.tv_sec += ms / 1000;
    when.tv_nsec += (long)(ms % 1000) * 1000000L;
    if (when.tv_nsec >= 1000000000L) {
        when.tv_nsec -= 1000000000L;
        when.tv_sec++;
    }
    return when;
}

static bool is_past(const struct timespec *when)
{
    struct timespec now = time_after(0);

    return now.tv_sec > when->tv_sec ||
           (now.tv_sec == when->tv_sec && now.tv_nsec >= when->tv_nsec);
}

/* Returns whether it was still held. */
static bool end_hold(void)
{
    const ccmr_sim_table *sim = driver_simulation();
    bool was_held;

    pthread_mutex_lock(&state.lock);
    was_held = state.held;
    state.held = false;
    pthread_cond_broadcast(&state.changed);
    pthread_mutex_unlock(&state.lock);
    if (was_held && sim != NULL) {
        sim->release(state.stream);
    }
    return was_held;
}

/* Wait until the hold has ended or its time is up. */
static void wait_for_end(void)
{
    pthread_mutex_lock(&state.lock);
    while (state.held && !is_past(&state.until)) {
        struct timespec until = state.until;

        pthread_cond_timedwait(&state.changed, &state.lock, &until);
    }
    pthread_mutex_unlock(&state.lock);
}

static void *helper_main(void *unused)
{
    (void)unused;
    wait_for_end();
    end_hold();
    return NULL;
}

static void CUDA_CB block_stream(void *unused)
{
    (void)unused;
    wait_for_end();
}

/* A stalled stream counts as idle unless there is work on it. */
static void CUDA_CB do_nothing(void *unused)
{
    (void)unused;
}

bool hold(CUstream stream)
{
    const ccmr_sim_table *sim = driver_simulation();
    CUresult res;

    pthread_mutex_lock(&state.lock);
    state.held = true;
    state.until = time_after(HOLD_LIMIT_MS);
    pthread_mutex_unlock(&state.lock);
    state.stream = stream;
    state.helper =
        pthread_create(&state.helper_id, NULL, helper_main, NULL) == 0;
    if (sim != NULL) {
        sim->stall(stream);
    }
    res = drv.cuLaunchHostFunc(stream, sim != NULL ? do_nothing : block_stream,
                               NULL);
    if (res != CUDA_SUCCESS || !state.helper) {
        fact("hold", "fails: %s", result_name(res));
        let_go();
        return false;
    }
    return true;
}

void let_go_after(int ms)
{
    pthread_mutex_lock(&state.lock);
    state.until = time_after(ms);
    pthread_cond_broadcast(&state.changed);
    pthread_mutex_unlock(&state.lock);
}

bool let_go(void)
{
    bool was_held = end_hold();

    if (state.helper) {
        pthread_join(state.helper_id, NULL);
        state.helper = false;
    }
    return was_held;
}
