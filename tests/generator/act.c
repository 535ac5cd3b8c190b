/* SPDX-License-Identifier: Apache-2.0 */
/* Operations, one by one; those that touch neither block nor stream. */
#include "tests/generator/model.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void leave_out(void)
{
    told->left_out++;
}

void call_begin(model *m, const worker *w)
{
    (void)w;
    (void)pthread_mutex_unlock(&m->lock);
    library_enter(m);
}

int call_end(model *m, const worker *w)
{
    int met = library_leave(m, w);

    (void)pthread_mutex_lock(&m->lock);
    return met;
}

void expect_success(const char *call, ccmr_status status, int met)
{
    if (status != CCMR_SUCCESS && !met) {
        fail(FAULT_STATUS, "%s answers %s: %s", call, ccmr_status_name(status),
             ccmr_last_error()->message);
    }
}

/* A stream that work can be given to. */
static track *working(const model *m, const worker *w, uint8_t stream)
{
    track *t = track_of(m, w, stream);

    return t == NULL || !t->alive || t->capturing || t->kind == AS_ELSEWHERE
               ? NULL
               : t;
}

/* A block that work can be done on. */
static block *usable(model *m, uint8_t slot)
{
    block *b = &m->blocks[slot];

    return b->state == BLOCK_LIVE && b->ptr != NULL ? b : NULL;
}

/* ---- uses of blocks --------------------------------------------------------- */

static void act_fill(model *m, worker *w, const op *o)
{
    block *b = usable(m, o->block);
    track *t = working(m, w, o->stream);

    if (b == NULL || t == NULL) {
        leave_out();
    } else if (!m->properties.device_accessible) {
        block_fill_on_host(m, b);
    } else {
        block_fill(m, b, t);
    }
}

static void act_check(model *m, worker *w, const op *o)
{
    block *b = usable(m, o->block);
    track *t = working(m, w, o->stream);

    if (b == NULL || t == NULL) {
        leave_out();
    } else if (!m->properties.device_accessible) {
        block_check_on_host(m, b, w->op);
    } else if (!block_check(m, b, t, w->op)) {
        leave_out();
    }
}

static void act_copy(model *m, worker *w, const op *o)
{
    block *to = usable(m, o->block);
    block *from = usable(m, o->from);
    track *t = working(m, w, o->stream);

    if (to == NULL || from == NULL || to == from || t == NULL ||
        !m->properties.device_accessible || !block_copy(m, to, from, t)) {
        leave_out();
    }
}

/* The stream that a block came from, if work can be given to it. */
static track *at_home(const block *b, const worker *w)
{
    track *t = b->recorded;

    return t->alive && !t->capturing && t->kind != AS_ELSEWHERE &&
                   (t->kind != STREAM_THREAD || t == w->own)
               ? t
               : NULL;
}

/* By the host, or where it cannot by the device. */
static void act_write(model *m, worker *w, const op *o)
{
    block *b = usable(m, o->block);
    track *t = b != NULL ? at_home(b, w) : NULL;

    if (b != NULL && m->properties.host_accessible) {
        block_fill_on_host(m, b);
    } else if (t != NULL) {
        block_fill(m, b, t);
    } else {
        leave_out();
    }
}

static void act_read(model *m, worker *w, const op *o)
{
    block *b = usable(m, o->block);

    track *t = b != NULL ? at_home(b, w) : NULL;

    if (b != NULL && m->properties.host_accessible) {
        use_finish(&b->writer);
        block_check_on_host(m, b, w->op);
    } else if (t == NULL || !block_check(m, b, t, w->op)) {
        leave_out();
    }
}

/* ---- order -------------------------------------------------------------------- */

static void act_wait(model *m, worker *w, const op *o)
{
    track *t = working(m, w, o->stream);
    track *other = working(m, w, o->second);
    mem_use use = {NULL, 0, NULL, 0};

    if (t == NULL || other == NULL || t == other) {
        leave_out();
        return;
    }
    use_note(m, other, &use);
    use_before(t, &use);
    use_forget(m, &use);
}

static void act_sync(model *m, worker *w, const op *o)
{
    track *t = working(m, w, o->stream);

    if (t == NULL) {
        leave_out();
        return;
    }
    track_sync(t, w);
    checks_compare(m);
}

static void act_settle(model *m, worker *w, const op *o)
{
    (void)o;
    sync_all(m, w);
    checks_compare(m);
}

static void act_run(model *m, worker *w, const op *o)
{
    (void)m;
    (void)w;
    (void)simulator->run(o->number);
}

/* ---- the resource --------------------------------------------------------------- */

/* What was released is what is reserved no more. */
static void check_trim(const model *m, const ccmr_trim_result *result,
                       const ccmr_stats *before, const ccmr_stats *after)
{
    if (!m->p->free_running && m->keeps_alone &&
        (before->exact & after->exact & CCMR_STAT_RESERVED_BYTES) != 0 &&
        before->reserved_bytes - after->reserved_bytes !=
            result->released_bytes) {
        fail(FAULT_FIGURES,
             "a trim released %zu bytes of %zu, and %zu are reserved",
             result->released_bytes, before->reserved_bytes,
             after->reserved_bytes);
    }
}

static void act_trim(model *m, worker *w, const op *o)
{
    ccmr_trim_result result = {.size = sizeof(result)};
    ccmr_stats before = {.size = sizeof(before)};
    ccmr_stats after = {.size = sizeof(after)};
    ccmr_status status;
    int met;

    if (m->released) {
        leave_out();
        return;
    }
    expect_success("ccmr_resource_stats",
                   ccmr_resource_stats(m->resource, &before), 0);
    call_begin(m, w);
    status = ccmr_resource_trim(m->resource, (size_t)o->bytes, &result);
    met = call_end(m, w);
    expect_success("ccmr_resource_trim", status, met);
    expect_success("ccmr_resource_stats",
                   ccmr_resource_stats(m->resource, &after), 0);
    if (status == CCMR_SUCCESS) {
        check_trim(m, &result, &before, &after);
    }
}

static void check_stats(const model *m, const ccmr_stats *stats)
{
    if (m->p->free_running) {
        return;
    }
    if (stats->live_blocks != m->live_blocks ||
        ((stats->exact & CCMR_STAT_LIVE_BYTES) != 0 &&
         stats->live_bytes != m->live_bytes)) {
        fail(FAULT_FIGURES,
             "%" PRIu64 " blocks of %zu bytes are live, says the resource, "
             "but %" PRIu64 " of %" PRIu64 " bytes are",
             stats->live_blocks, stats->live_bytes, m->live_blocks,
             m->live_bytes);
    }
    if (stats->reserved_bytes != CCMR_BYTES_UNKNOWN &&
        stats->reserved_bytes < m->live_bytes) {
        fail(FAULT_FIGURES,
             "%zu bytes are reserved, less than what is live (%" PRIu64 ")",
             stats->reserved_bytes, m->live_bytes);
    }
}

static void act_query(model *m, worker *w, const op *o)
{
    ccmr_stats stats = {.size = sizeof(stats)};
    ccmr_properties properties = {.size = sizeof(properties)};
    ccmr_status status;
    int met;

    (void)o;
    if (m->released) {
        leave_out();
        return;
    }
    call_begin(m, w);
    status = ccmr_resource_stats(m->resource, &stats);
    if (status == CCMR_SUCCESS) {
        status = ccmr_resource_describe(m->resource, &properties);
    }
    if (status == CCMR_SUCCESS) {
        status = ccmr_resource_audit(m->resource);
    }
    met = call_end(m, w);
    expect_success("stats, describe or audit", status, met);
    if (status == CCMR_SUCCESS) {
        check_stats(m, &stats);
    }
}

static void act_fail(model *m, worker *w, const op *o)
{
    (void)w;
    /* The last free of a resource that was released could tell nobody. */
    if (m->p->free_running || m->released) {
        leave_out();
        return;
    }
    (void)op_word(OP_FAIL, o->word, m->fault_call, sizeof(m->fault_call));
    m->fault_nth = o->number;
}

/* The reference goes; blocks may be live. */
static void act_release(model *m, worker *w, const op *o)
{
    (void)o;
    if (m->released || m->p->free_running || !world_may_end(m)) {
        leave_out();
        return;
    }
    m->fault_nth = 0; /* nobody could be told of it */
    m->released = 1;
    call_begin(m, w);
    ccmr_resource_release(m->resource);
    (void)call_end(m, w);
}

/* ThreadSanitizer ends no forked child of a process that has threads. */
#if defined(__SANITIZE_THREAD__)
#define NO_FORKS 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define NO_FORKS 1
#endif
#endif
#ifndef NO_FORKS
#define NO_FORKS 0
#endif

/* What a forked child gets from every call; it touches nothing. Its answer. */
static int live_as_child(model *m)
{
    const block *b = NULL;
    void *ptr = NULL;
    unsigned i;

    if (!m->released &&
        ccmr_resource_allocate(m->resource, 512, 0, m->legacy->handle, &ptr) !=
            CCMR_ERROR_FORKED) {
        return 1;
    }
    for (i = 0; i < PROGRAM_BLOCKS && b == NULL; i++) {
        if (m->blocks[i].state == BLOCK_LIVE && m->blocks[i].ptr != NULL) {
            b = &m->blocks[i];
        }
    }
    if (b != NULL &&
        (b->buffer != NULL ? ccmr_buffer_close(b->buffer, m->legacy->handle)
                           : ccmr_resource_deallocate(
                                 m->resource, b->ptr, b->bytes, b->alignment,
                                 m->legacy->handle)) != CCMR_ERROR_FORKED) {
        return 2;
    }
    if (!m->released) {
        ccmr_resource_release(m->resource);
    }
    return 0;
}

static void act_fork(model *m, worker *w, const op *o)
{
    int status = 0;
    pid_t child;

    (void)w;
    (void)o;
    if (m->p->free_running || NO_FORKS) {
        leave_out();
        return;
    }
    child = fork();
    if (child == 0) {
        (void)alarm(5);
        status = live_as_child(m);
        api_leaks_are_fine = 1;
        exit(status);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
        fail(FAULT_STATUS, "a forked child %s %d",
             WIFSIGNALED(status) ? "ended by signal" : "saw wrong answer",
             WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    }
}

/* ---- all of them ------------------------------------------------------------------ */

/* In the home context, disturbing no capture. */
static void act_inside(model *m, worker *w, const op *o,
                       void (*run)(model *, worker *, const op *))
{
    inside in;

    driver_enter(m, &in);
    run(m, w, o);
    driver_leave(&in);
}

static void act_nothing(model *m, worker *w, const op *o)
{
    (void)m;
    (void)w;
    (void)o;
}

static const struct {
    void (*run)(model *, worker *, const op *);
    int inside;
} acts[OP_COUNT] = {
    [OP_STREAM] = {act_stream, 0},     [OP_DESTROY] = {act_destroy, 0},
    [OP_REGISTER] = {act_register, 0}, [OP_RETIRE] = {act_retire, 0},
    [OP_WAIT] = {act_wait, 1},         [OP_SYNC] = {act_sync, 1},
    [OP_SETTLE] = {act_settle, 1},     [OP_RUN] = {act_run, 0},
    [OP_CAPTURE] = {act_capture, 1},   [OP_END] = {act_end, 1},
    [OP_ALLOCATE] = {act_allocate, 0}, [OP_FREE] = {act_free, 0},
    [OP_FILL] = {act_fill, 1},         [OP_COPY] = {act_copy, 1},
    [OP_CHECK] = {act_check, 1},       [OP_WRITE] = {act_write, 1},
    [OP_READ] = {act_read, 1},         [OP_NOTE] = {act_note, 0},
    [OP_RECORD] = {act_record, 0},     [OP_DISOWN] = {act_disown, 0},
    [OP_ADOPT] = {act_adopt, 0},       [OP_HOLD] = {act_hold, 0},
    [OP_FORK] = {act_fork, 0},         [OP_TRIM] = {act_trim, 0},
    [OP_QUERY] = {act_query, 0},       [OP_FAIL] = {act_fail, 0},
    [OP_LEAVE] = {act_nothing, 0},     [OP_RELEASE] = {act_release, 0},
};

void act(model *m, worker *w, const op *o)
{
    (void)pthread_mutex_lock(&m->lock);
    told->op = w->op;
    told->done++;
    if (acts[o->kind].inside) {
        act_inside(m, w, o, acts[o->kind].run);
    } else {
        acts[o->kind].run(m, w, o);
    }
    hazards_check();
    (void)pthread_mutex_unlock(&m->lock);
}
