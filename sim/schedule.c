/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/schedule.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim/capture.h"
#include "sim/context.h"
#include "sim/event.h"
#include "sim/memory.h"
#include "sim/plain.h"
#include "sim/pool.h"

/* Streams that have operations, in no order; each is held by its place. */
static struct sim_stream **busy;
static size_t busy_count, busy_room;
static uint64_t op_serial;
static uint64_t pending_count;
static struct sim_stream *stalled_streams; /* each held */
static struct sim_op *spare_ops;

/* A seed gives the same numbers everywhere (splitmix64). */

void sim_schedule_seed(uint64_t seed)
{
    sim.in_order = seed == 0;
    sim.random = seed;
}

static uint64_t random_number(void)
{
    uint64_t mixed = sim.random += 0x9e3779b97f4a7c15u;

    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return mixed ^ (mixed >> 31);
}

/* Operations. */

struct sim_op *sim_op_new(enum sim_op_kind kind)
{
    struct sim_op *op = spare_ops;

    if (op != NULL) {
        spare_ops = op->next;
    } else {
        op = malloc(sizeof *op);
        if (op == NULL) {
            return NULL;
        }
    }
    memset(op, 0, sizeof *op);
    op->kind = kind;
    return op;
}

void sim_op_free(struct sim_op *op)
{
    sim_places_clear(&op->after);
    free(op->staged);
    op->staged = NULL;
    op->next = spare_ops;
    spare_ops = op;
}

uint64_t sim_operations_pending(void)
{
    return pending_count;
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
    sim_stream_drop(stream);
}

static bool may_run(const struct sim_stream *stream)
{
    const struct sim_op *op = stream->head;
    size_t i;

    if (stream->running || stream->stalled) {
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
            if (seen == 1 || random_number() % seen == 0) {
                chosen = busy[i];
            }
        }
    }
    return chosen;
}

/* Carrying out. */

/* What no program may do was done: work met memory that is not there. */
static void break_context(struct sim_context *context, uintptr_t address)
{
    fprintf(stderr,
            "libcucoremr-sim: work of a stream used %#" PRIxPTR
            ", where no memory is\n",
            address);
    context->broken = CUDA_ERROR_ILLEGAL_ADDRESS;
}

static void carry_copy(struct sim_context *context, const struct sim_op *op)
{
    uintptr_t from = op->staged != NULL ? (uintptr_t)op->staged : op->from;
    size_t done = 0;

    while (done < op->bytes) {
        size_t there, here;
        void *to = sim_bytes(op->to + done, op->bytes - done, &there);
        void *source = sim_bytes(from + done, op->bytes - done, &here);

        if (to == NULL || source == NULL) {
            break_context(context, (to == NULL ? op->to : from) + done);
            return;
        }
        if (here < there) {
            there = here;
        }
        memmove(to, source, there);
        done += there;
    }
}

static void fill_bytes(void *to, size_t bytes, unsigned value, unsigned width)
{
    size_t i;

    if (width == 1) {
        memset(to, (int)value, bytes);
    } else if (width == 2) {
        uint16_t *items = to;

        for (i = 0; i < bytes / 2; i++) {
            items[i] = (uint16_t)value;
        }
    } else {
        uint32_t *items = to;

        for (i = 0; i < bytes / 4; i++) {
            items[i] = value;
        }
    }
}

static void carry_fill(struct sim_context *context, const struct sim_op *op)
{
    size_t done = 0;

    while (done < op->bytes) {
        size_t there;
        void *to = sim_bytes(op->to + done, op->bytes - done, &there);

        if (to == NULL) {
            break_context(context, op->to + done);
            return;
        }
        fill_bytes(to, there, op->value, op->width);
        done += there;
    }
}

void sim_op_carry_out(struct sim_context *context, const struct sim_op *op)
{
    if (op->kind == SIM_OP_COPY) {
        carry_copy(context, op);
    } else {
        carry_fill(context, op);
    }
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

static void unstall(struct sim_stream **link)
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
            unstall(link);
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

CUresult sim_submit(struct sim_stream *stream, struct sim_op *op)
{
    if (stream->context->broken != CUDA_SUCCESS) {
        sim_op_free(op);
        return stream->context->broken;
    }
    if (!add_implicit(stream, &op->after) ||
        !sim_places_merge(&stream->known, &op->after) ||
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

/* Waiting. */

static struct timespec deadline_of_wait(void)
{
    struct timespec at;

    clock_gettime(CLOCK_REALTIME, &at);
    at.tv_sec += (time_t)(sim.wait_limit / 1000);
    at.tv_nsec += (long)(sim.wait_limit % 1000) * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_nsec -= 1000000000;
        at.tv_sec++;
    }
    return at;
}

static _Noreturn void give_up_waiting(void)
{
    size_t i;

    fprintf(stderr,
            "libcucoremr-sim: %s has waited %" PRIu64
            " ms for work that nobody lets run\n",
            sim_call_name(sim_self_unlocked()->call), sim.wait_limit);
    for (i = 0; i < busy_count; i++) {
        fprintf(stderr,
                "  stream id %" PRIu64 ": %" PRIu64 " operations left%s%s\n",
                busy[i]->id, busy[i]->enqueued - busy[i]->completed,
                busy[i]->stalled ? ", stalled" : "",
                busy[i]->running ? ", in a host function" : "");
    }
    fflush(stderr);
    abort();
}

/* Run something, or let another thread change what nothing here can. */
static void step_or_wait(void)
{
    struct timespec at;
    int ret;

    if (sim_run(1) != 0) {
        return;
    }
    sim.waiting++;
    if (sim.wait_limit == 0) {
        pthread_cond_wait(&sim.changed, &sim.lock);
        ret = 0;
    } else {
        at = deadline_of_wait();
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
        step_or_wait();
    }
    sim_stream_drop(stream);
}

CUresult sim_wait_stream(struct sim_stream *stream, uint64_t position)
{
    CUresult broken;

    sim_stream_hold(stream);
    sim_wait_quietly(stream, position);
    broken = stream->context != NULL ? stream->context->broken
                                     : CUDA_ERROR_CONTEXT_IS_DESTROYED;
    sim_pools_synchronized(stream);
    sim_stream_drop(stream);
    return broken;
}

/* Is there work of that context (NULL: any) and device (-1: any) that was
 * enqueued before `serial`? */
static bool work_left(const struct sim_context *context, int device,
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

CUresult sim_wait_context(struct sim_context *context)
{
    uint64_t serial = op_serial;

    while (work_left(context, -1, serial)) {
        step_or_wait();
    }
    sim_pools_synchronized_context(context);
    return context->broken;
}

void sim_wait_device(int device)
{
    uint64_t serial = op_serial;

    while (work_left(NULL, device, serial)) {
        step_or_wait();
    }
}

CUresult sim_wait_legacy(struct sim_stream *legacy)
{
    struct sim_op *op;
    CUresult res;

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
    return sim_wait_stream(legacy, legacy->enqueued);
}

/* How many operations a question may run. Who asks again gets there. */
static uint64_t progress_of_asking(void)
{
    return sim.in_order ? UINT64_MAX : random_number() % 3 + 1;
}

CUresult sim_ask(struct sim_stream *stream, uint64_t position)
{
    CUresult res = CUDA_ERROR_NOT_READY;
    uint64_t most = progress_of_asking();

    sim_stream_hold(stream);
    while (!sim_reached(stream, position) && most > 0 && sim_run(1) != 0) {
        most--;
    }
    if (sim_reached(stream, position)) {
        res = stream->context != NULL ? stream->context->broken : CUDA_SUCCESS;
    }
    sim_stream_drop(stream);
    return res;
}

CUresult sim_ask_legacy(struct sim_stream *legacy)
{
    struct sim_context *context = legacy->context;
    CUresult res = CUDA_ERROR_NOT_READY;
    uint64_t most = progress_of_asking();

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
    }
    sim_stream_drop(legacy);
    return res;
}

void sim_context_abandon(struct sim_context *context)
{
    struct sim_stream **link = &stalled_streams;

    while (*link != NULL) {
        if ((*link)->context == context || (*link)->context == NULL) {
            unstall(link);
        } else {
            link = &(*link)->next_stalled;
        }
    }
    while (work_left(context, -1, UINT64_MAX)) {
        step_or_wait();
    }
}
