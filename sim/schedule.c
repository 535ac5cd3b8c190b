/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/schedule.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/context.h"
#include "sim/event.h"
#include "sim/order.h"
#include "sim/plain.h"
#include "sim/pool.h"
#include "sim/remote.h"

/* Streams that have operations, in no order; each is held by its place. */
static struct sim_stream **busy;
static size_t busy_count, busy_room;
static uint64_t op_serial;
static uint64_t pending_count;
static struct sim_stream *stalled_streams; /* each held */

/* A seed gives the same numbers everywhere (splitmix64). */

void sim_schedule_seed(uint64_t seed)
{
    sim.in_order = seed == 0;
    sim.seed = seed;
    sim.random = seed;
}

uint64_t sim_random(void)
{
    uint64_t mixed = sim.random += 0x9e3779b97f4a7c15u;

    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return mixed ^ (mixed >> 31);
}

/* Which streams are busy. */

static bool enter_busy(struct sim_stream *stream)
{
    if (busy_count == busy_room) {
        size_t room = busy_room != 0 ? busy_room * 2 : 16;
        struct sim_stream **grown = realloc(busy, room * sizeof(*grown));

        if (grown == NULL) {
            return false;
        }
        busy = grown;
        busy_room = room;
    }
    busy[busy_count++] = stream;
    stream->busy_index = busy_count;
    sim_stream_hold(stream);
    if (sim_stream_is_blocking(stream)) {
        stream->context->blocking_busy++;
    }
    return true;
}

static void leave_busy(struct sim_stream *stream)
{
    size_t index = stream->busy_index - 1;

    assert(busy[index] == stream);
    busy[index] = busy[--busy_count];
    busy[index]->busy_index = index + 1;
    stream->busy_index = 0;
    if (sim_stream_is_blocking(stream)) {
        stream->context->blocking_busy--;
    }
    if (stream->retired) {
        sim_pools_ended(stream);
    }
    sim_stream_drop(stream);
}

static bool may_run(const struct sim_stream *stream)
{
    const struct sim_op *op = stream->head;
    size_t i;

    if (stream->running || stream->stalled) {
        return false;
    }
    if (op->remote != NULL && op->kind == SIM_OP_WAIT &&
        !sim_remote_is_reached(op->remote, op->remote_number)) {
        return false;
    }
    for (i = 0; i < op->after.count; i++) {
        if (!sim_reached(op->after.items[i].stream,
                         op->after.items[i].position)) {
            return false;
        }
    }
    return true;
}

static struct sim_stream *pick_oldest(void)
{
    struct sim_stream *chosen = NULL;
    size_t i;

    for (i = 0; i < busy_count; i++) {
        if ((chosen == NULL || busy[i]->head->serial < chosen->head->serial) &&
            may_run(busy[i])) {
            chosen = busy[i];
        }
    }
    return chosen;
}

/* One of the streams whose head may run. */
static struct sim_stream *pick(void)
{
    struct sim_stream *chosen = NULL;
    uint64_t seen = 0;
    size_t i;

    if (sim.in_order) {
        return pick_oldest();
    }
    for (i = 0; i < busy_count; i++) {
        if (may_run(busy[i])) {
            seen++;
            if (seen == 1 || sim_random() % seen == 0) {
                chosen = busy[i];
            }
        }
    }
    return chosen;
}

/* User code: the lock is given up, and the thread may call nothing. */
static void call_host(struct sim_stream *stream, const struct sim_op *op)
{
    struct sim_thread *self = sim_self_unlocked();
    CUhostFn function = op->function;
    CUstreamCallback callback = op->callback;
    enum sim_op_kind kind = op->kind;
    CUstream named = op->named;
    CUresult status = stream->context->broken;
    void *data = op->data;

    stream->running = true;
    self->callbacks++;
    sim_unlock();
    if (kind == SIM_OP_HOST) {
        function(data);
    } else {
        callback(named, status, data);
    }
    sim_lock_unlocked();
    self->callbacks--;
    stream->running = false;
}

static void run_head(struct sim_stream *stream)
{
    struct sim_op *op = stream->head;

    switch (op->kind) {
    case SIM_OP_COPY:
    case SIM_OP_FILL:
        sim_op_carry_out(stream->context, op);
        break;
    case SIM_OP_RECORD:
        sim_event_reached(op->event, op->generation);
        break;
    case SIM_OP_HOST:
    case SIM_OP_CALLBACK:
        call_host(stream, op);
        break;
    case SIM_OP_GIVE_BACK:
        sim_plain_give_back(op->region, op->extent);
        break;
    case SIM_OP_MARK:
    case SIM_OP_WAIT:
    default:
        break;
    }
    assert(stream->head == op);
    stream->head = op->next;
    if (stream->head == NULL) {
        stream->tail = NULL;
    }
    sim_op_free(op);
    pending_count--;
    stream->completed++;
    if (stream->pendings != NULL) {
        sim_pools_reached(stream);
    }
    if (stream->head == NULL) {
        leave_busy(stream);
    }
    if (sim.waiting != 0) {
        pthread_cond_broadcast(&sim.changed);
    }
}

uint64_t sim_run(uint64_t operations)
{
    uint64_t ran = 0;

    while (ran < operations) {
        struct sim_stream *stream = pick();

        if (stream == NULL) {
            break;
        }
        run_head(stream);
        ran++;
    }
    return ran;
}

void sim_stall(struct sim_stream *stream, CUstream handle)
{
    stream->stalled_as = handle;
    if (!stream->stalled) {
        stream->stalled = true;
        stream->next_stalled = stalled_streams;
        stalled_streams = stream;
        sim_stream_hold(stream);
    }
}

static void let_go(struct sim_stream **link)
{
    struct sim_stream *stream = *link;

    *link = stream->next_stalled;
    stream->next_stalled = NULL;
    stream->stalled = false;
    sim_stream_drop(stream);
}

bool sim_release(CUstream handle)
{
    struct sim_stream **link = &stalled_streams;
    bool any = false;

    while (*link != NULL) {
        if ((*link)->stalled_as == handle) {
            let_go(link);
            any = true;
        } else {
            link = &(*link)->next_stalled;
        }
    }
    if (any) {
        sim_released();
    }
    return any;
}

void sim_released(void)
{
    if (sim.mode == CCMR_SIM_EAGER) {
        sim_run(UINT64_MAX);
    }
    pthread_cond_broadcast(&sim.changed);
}

/* Enqueueing. */

/* The legacy default stream and the blocking streams of its context wait for
 * one another. */
static bool add_implicit(struct sim_stream *stream, struct sim_places *after)
{
    struct sim_context *context = stream->context;
    struct sim_stream *legacy = context->legacy;
    size_t i;

    if (stream->kind == SIM_STREAM_LEGACY) {
        if (context->blocking_busy == 0) {
            return true;
        }
        for (i = 0; i < busy_count; i++) {
            if (busy[i]->context == context &&
                sim_stream_is_blocking(busy[i]) &&
                !sim_places_add(after, busy[i], busy[i]->enqueued)) {
                return false;
            }
        }
        return true;
    }
    if (!sim_stream_is_blocking(stream) || legacy == NULL ||
        legacy->busy_index == 0) {
        return true;
    }
    return sim_places_add(after, legacy, legacy->enqueued);
}

bool sim_runs_now(const struct sim_stream *stream)
{
    const struct sim_context *context = stream->context;

    if (sim.mode != CCMR_SIM_EAGER || stream->busy_index != 0 ||
        stream->stalled) {
        return false;
    }
    if (busy_count == 0) {
        return true;
    }
    if (stream->kind == SIM_STREAM_LEGACY) {
        return context->blocking_busy == 0;
    }
    return !sim_stream_is_blocking(stream) || context->legacy == NULL ||
           context->legacy->busy_index == 0;
}

/* What the operation waits for, all later ones of the stream follow, too. */
static bool note_order(struct sim_stream *stream,
                       const struct sim_places *after)
{
    size_t i;

    for (i = 0; i < after->count; i++) {
        if (!sim_clock_add(&stream->clock, after->items[i].stream->line,
                           after->items[i].position)) {
            return false;
        }
    }
    return true;
}

CUresult sim_submit(struct sim_stream *stream, struct sim_op *op)
{
    if (stream->context->broken != CUDA_SUCCESS) {
        sim_op_free(op);
        return stream->context->broken;
    }
    if (sim.order) {
        (void)sim_order_join(stream);
    }
    if (!add_implicit(stream, &op->after) || !note_order(stream, &op->after) ||
        (stream->busy_index == 0 && !enter_busy(stream))) {
        sim_op_free(op);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    op->serial = ++op_serial;
    if (stream->tail != NULL) {
        stream->tail->next = op;
    } else {
        stream->head = op;
    }
    stream->tail = op;
    stream->enqueued++;
    pending_count++;
    if (sim.mode == CCMR_SIM_EAGER) {
        sim_run(UINT64_MAX);
    }
    return CUDA_SUCCESS;
}

uint64_t sim_operations_pending(void)
{
    return pending_count;
}

uint64_t sim_last_serial(void)
{
    return op_serial;
}

bool sim_work_left(const struct sim_context *context, int device,
                   uint64_t serial)
{
    size_t i;

    for (i = 0; i < busy_count; i++) {
        if ((context == NULL || busy[i]->context == context) &&
            (device < 0 || busy[i]->device == device) &&
            busy[i]->head->serial <= serial) {
            return true;
        }
    }
    return false;
}

void sim_schedule_report(void)
{
    size_t i;

    for (i = 0; i < busy_count; i++) {
        fprintf(stderr,
                "  stream id %" PRIu64 ": %" PRIu64 " operations left%s%s\n",
                busy[i]->id, busy[i]->enqueued - busy[i]->completed,
                busy[i]->stalled ? ", stalled" : "",
                busy[i]->running ? ", in a host function" : "");
    }
}

void sim_let_go_context(const struct sim_context *context)
{
    struct sim_stream **link = &stalled_streams;

    while (*link != NULL) {
        if ((*link)->context == context || (*link)->context == NULL) {
            let_go(link);
        } else {
            link = &(*link)->next_stalled;
        }
    }
}
