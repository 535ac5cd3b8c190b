/* SPDX-License-Identifier: Apache-2.0 */
/* The host waits for work, or asks whether it is done. */
#include "sim/schedule.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "sim/context.h"
#include "sim/order.h"
#include "sim/pool.h"

static struct timespec deadline_in(uint64_t milliseconds)
{
    struct timespec at;

    clock_gettime(CLOCK_REALTIME, &at);
    at.tv_sec += (time_t)(milliseconds / 1000);
    at.tv_nsec += (long)(milliseconds % 1000) * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_nsec -= 1000000000;
        at.tv_sec++;
    }
    return at;
}

static _Noreturn void give_up_waiting(void)
{
    fprintf(stderr,
            "libcucoremr-sim: %s has waited %" PRIu64
            " ms for work that nobody lets run\n",
            sim_call_name(sim_self_unlocked()->call), sim.wait_limit);
    sim_schedule_report();
    fflush(stderr);
    abort();
}

static uint64_t now_ms(void)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    return (uint64_t)at.tv_sec * 1000 + (uint64_t)at.tv_nsec / 1000000;
}

/* Nobody tells what other processes do: look again soon. Who did not look for
 * a while was not waiting. */
static void wait_for_others(void)
{
    struct timespec at = deadline_in(1);
    uint64_t now = now_ms();

    if (sim.remote_since == 0 || now - sim.remote_looked > 1000) {
        sim.remote_since = now;
    } else if (sim.wait_limit != 0 &&
               now - sim.remote_since > sim.wait_limit) {
        give_up_waiting();
    }
    sim.remote_looked = now;
    sim.waiting++;
    pthread_cond_timedwait(&sim.changed, &sim.lock, &at);
    sim.waiting--;
}

void sim_step_or_wait(void)
{
    struct timespec at;
    int ret;

    if (sim_run(1) != 0) {
        sim.remote_since = 0;
        return;
    }
    if (sim.remote_waits != 0) {
        wait_for_others();
        return;
    }
    sim.waiting++;
    if (sim.wait_limit == 0) {
        pthread_cond_wait(&sim.changed, &sim.lock);
        ret = 0;
    } else {
        at = deadline_in(sim.wait_limit);
        ret = pthread_cond_timedwait(&sim.changed, &sim.lock, &at);
    }
    sim.waiting--;
    if (ret == ETIMEDOUT) {
        give_up_waiting();
    }
}

void sim_wait_quietly(struct sim_stream *stream, uint64_t position)
{
    sim_stream_hold(stream);
    while (!sim_reached(stream, position)) {
        sim_step_or_wait();
    }
    sim_stream_drop(stream);
}

/* The host has waited for these places. Pools give back what they may. */
static void saw(const struct sim_clock *clock)
{
    size_t i;

    sim_clock_done(clock);
    for (i = 0; i < clock->count; i++) {
        struct sim_line *line = clock->ticks[i].line;
        uint64_t position = clock->ticks[i].position;

        if (line->seen < position) {
            line->seen = position;
            if (line->stream != NULL) {
                sim_pools_synchronized(line->stream);
            }
        }
    }
}

CUresult sim_wait_stream(struct sim_stream *stream, uint64_t position,
                         const struct sim_clock *clock)
{
    struct sim_clock before = {.count = 0};
    CUresult broken;

    /* As of now: during the wait other threads may add to it. Without memory
     * the pools see less, which costs space and no more. */
    (void)sim_clock_join(&before, clock);
    (void)sim_clock_add(&before, stream->line, position);
    sim_stream_hold(stream);
    sim_wait_quietly(stream, position);
    broken = stream->context != NULL ? stream->context->broken
                                     : CUDA_ERROR_CONTEXT_IS_DESTROYED;
    saw(&before);
    sim_pools_synchronized(stream);
    sim_stream_drop(stream);
    sim_clock_clear(&before);
    return broken;
}

CUresult sim_wait_done(struct sim_stream *stream, uint64_t position)
{
    struct sim_clock before = {.count = 0};
    CUresult broken;

    if (sim.order) {
        (void)sim_clock_join(&before, &stream->clock);
        (void)sim_clock_add(&before, stream->line, position);
    }
    sim_stream_hold(stream);
    sim_wait_quietly(stream, position);
    broken = stream->context != NULL ? stream->context->broken
                                     : CUDA_ERROR_CONTEXT_IS_DESTROYED;
    sim_clock_done(&before);
    sim_clock_clear(&before);
    sim_stream_drop(stream);
    return broken;
}

CUresult sim_wait_context(struct sim_context *context)
{
    struct sim_clock before = {.count = 0};
    uint64_t serial = sim_last_serial();

    sim_order_note_context(context, &before);
    while (sim_work_left(context, -1, serial)) {
        sim_step_or_wait();
    }
    saw(&before);
    sim_pools_synchronized_context(context);
    sim_clock_clear(&before);
    return context->broken;
}

void sim_wait_device(int device)
{
    struct sim_clock before = {.count = 0};
    uint64_t serial = sim_last_serial();

    if (sim.order) {
        sim_contexts_note(device, &before);
    }
    while (sim_work_left(NULL, device, serial)) {
        sim_step_or_wait();
    }
    sim_clock_done(&before);
    sim_clock_clear(&before);
}

CUresult sim_wait_legacy(struct sim_stream *legacy)
{
    struct sim_op *op;
    CUresult res;

    sim_order_follow_blocking(legacy);
    if (legacy->context->blocking_busy != 0) {
        op = sim_op_new(SIM_OP_MARK);
        if (op == NULL) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        res = sim_submit(legacy, op);
        if (res != CUDA_SUCCESS) {
            return res;
        }
    }
    return sim_wait_stream(legacy, legacy->enqueued, &legacy->clock);
}

uint64_t sim_progress_of_asking(void)
{
    return sim.in_order ? UINT64_MAX : sim_random() % 3 + 1;
}

CUresult sim_ask(struct sim_stream *stream, uint64_t position,
                 const struct sim_clock *clock)
{
    struct sim_clock before = {.count = 0};
    CUresult res = CUDA_ERROR_NOT_READY;
    uint64_t most = sim_progress_of_asking();

    if (sim.order) {
        (void)sim_clock_join(&before, clock);
        (void)sim_clock_add(&before, stream->line, position);
    }
    sim_stream_hold(stream);
    while (!sim_reached(stream, position) && most > 0 && sim_run(1) != 0) {
        most--;
    }
    if (sim_reached(stream, position)) {
        res = stream->context != NULL ? stream->context->broken : CUDA_SUCCESS;
        sim_clock_done(&before);
    }
    sim_stream_drop(stream);
    sim_clock_clear(&before);
    return res;
}

CUresult sim_ask_legacy(struct sim_stream *legacy)
{
    struct sim_context *context = legacy->context;
    struct sim_clock before = {.count = 0};
    CUresult res = CUDA_ERROR_NOT_READY;
    uint64_t most = sim_progress_of_asking();

    if (sim.order) {
        (void)sim_order_join(legacy);
        (void)sim_clock_join(&before, &legacy->clock);
        (void)sim_clock_add(&before, legacy->line, legacy->enqueued);
    }
    sim_stream_hold(legacy);
    while (legacy->context != NULL &&
           (legacy->busy_index != 0 || context->blocking_busy != 0) &&
           most > 0 && sim_run(1) != 0) {
        most--;
    }
    if (legacy->context == NULL) {
        res = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    } else if (legacy->busy_index == 0 && context->blocking_busy == 0) {
        res = context->broken;
        sim_clock_done(&before);
    }
    sim_stream_drop(legacy);
    sim_clock_clear(&before);
    return res;
}

void sim_context_abandon(struct sim_context *context)
{
    sim_let_go_context(context);
    while (sim_work_left(context, -1, UINT64_MAX)) {
        sim_step_or_wait();
    }
}
