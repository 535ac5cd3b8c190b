/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One program, executed. Its threads are real ones. They run one operation at
 * a time, in the order of the program, so that the same program runs the same
 * way every time; or as they like, each its own operations.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/generator/model.h"

typedef struct runner {
    model *m;
    pthread_mutex_t lock; /* of what follows; never held while working */
    pthread_cond_t turn[PROGRAM_THREADS];
    pthread_cond_t changed; /* begun, ended */
    unsigned begun;
    unsigned ended;
    int go;      /* all have begun */
    size_t next; /* operation; beyond the last, threads end one by one */
    pthread_t threads[PROGRAM_THREADS];
} runner;

/* One incarnation of a thread. */
typedef struct incarnation {
    runner *r;
    unsigned index;
    int again; /* it takes the place of one that has to be joined */
    pthread_t before;
} incarnation;

static void *live(void *argument);

/* With the lock, or before anybody else could have it. */
static void start(runner *r, unsigned index, const pthread_t *before)
{
    incarnation *made = calloc(1, sizeof(*made));

    if (made == NULL) {
        fail(FAULT_PROGRAM, "no memory");
    }
    made->r = r;
    made->index = index;
    if (before != NULL) {
        made->again = 1;
        made->before = *before;
    }
    if (pthread_create(&r->threads[index], NULL, live, made) != 0) {
        fail(FAULT_PROGRAM, "no thread");
    }
}

/* ---- one at a time ---------------------------------------------------------------- */

/* Past the last operation the threads end in their order. Under the lock. */
static unsigned whose_turn(const runner *r)
{
    const program *p = r->m->p;

    if (!r->go) {
        return PROGRAM_THREADS;
    }
    return r->next < p->count ? p->ops[r->next].thread : r->ended;
}

/* Returns the operation to go on with. */
static size_t wait_for_turn(runner *r, unsigned index)
{
    size_t next;

    (void)pthread_mutex_lock(&r->lock);
    while (whose_turn(r) != index) {
        (void)pthread_cond_wait(&r->turn[index], &r->lock);
    }
    next = r->next;
    (void)pthread_mutex_unlock(&r->lock);
    return next;
}

static void signal_turn(runner *r)
{
    unsigned index = whose_turn(r);

    if (index < PROGRAM_THREADS) {
        (void)pthread_cond_signal(&r->turn[index]);
    }
}

/* A thread with captures of its own has to end them itself. */
static int may_leave(const model *m, const worker *w)
{
    const track *t;

    for (t = m->tracks; t != NULL; t = t->next) {
        if (t->capturing && t->capturer == w->serial) {
            return 0;
        }
    }
    return 1;
}

/* Operations as long as they are this thread's. */
static size_t work_in_turn(runner *r, worker *w, size_t next, int *leaves)
{
    const program *p = r->m->p;

    while (next < p->count && p->ops[next].thread == w->index && !*leaves) {
        const op *o = &p->ops[next];

        w->op = (unsigned)next++;
        act(r->m, w, o);
        *leaves = o->kind == OP_LEAVE && may_leave(r->m, w);
    }
    return next;
}

static void live_in_turn(runner *r, worker *w)
{
    pthread_t self = pthread_self();
    int leaves = 0;
    size_t next;

    for (;;) {
        next = wait_for_turn(r, w->index);
        if (next == r->m->p->count) {
            break;
        }
        next = work_in_turn(r, w, next, &leaves);
        if (leaves) { /* the one that comes then has the turn to give */
            worker_end(r->m, w);
            (void)pthread_mutex_lock(&r->lock);
            r->next = next;
            r->go = 0;
            start(r, w->index, &self);
            (void)pthread_mutex_unlock(&r->lock);
            return;
        }
        (void)pthread_mutex_lock(&r->lock);
        r->next = next;
        signal_turn(r);
        (void)pthread_mutex_unlock(&r->lock);
    }
    worker_end(r->m, w);
    (void)pthread_mutex_lock(&r->lock);
    r->ended++;
    signal_turn(r);
    (void)pthread_cond_signal(&r->changed);
    (void)pthread_mutex_unlock(&r->lock);
}

/* ---- all at once -------------------------------------------------------------------- */

static void live_freely(runner *r, worker *w)
{
    const program *p = r->m->p;
    size_t i;

    (void)pthread_mutex_lock(&r->lock);
    while (!r->go) {
        (void)pthread_cond_wait(&r->turn[w->index], &r->lock);
    }
    (void)pthread_mutex_unlock(&r->lock);
    for (i = 0; i < p->count; i++) {
        if (p->ops[i].thread == w->index) {
            w->op = (unsigned)i;
            act(r->m, w, &p->ops[i]);
        }
    }
    worker_end(r->m, w);
    (void)pthread_mutex_lock(&r->lock);
    r->ended++;
    (void)pthread_cond_signal(&r->changed);
    (void)pthread_mutex_unlock(&r->lock);
}

static void *live(void *argument)
{
    incarnation *self = argument;
    runner *r = self->r;
    worker w = {.index = self->index};

    if (self->again) { /* all of it must be gone before anything goes on */
        (void)pthread_join(self->before, NULL);
    }
    worker_begin(r->m, &w);
    (void)pthread_mutex_lock(&r->lock);
    if (self->again) {
        r->go = 1;
        signal_turn(r);
    } else {
        r->begun++;
        (void)pthread_cond_signal(&r->changed);
    }
    (void)pthread_mutex_unlock(&r->lock);
    free(self);
    if (r->m->p->free_running) {
        live_freely(r, &w);
    } else {
        live_in_turn(r, &w);
    }
    return NULL;
}

/* One after the other they begin, so that it is always the same. */
static void run_threads(runner *r)
{
    unsigned count = r->m->p->threads;
    unsigned i;

    (void)pthread_mutex_lock(&r->lock);
    for (i = 0; i < count; i++) {
        start(r, i, NULL);
        while (r->begun == i) {
            (void)pthread_cond_wait(&r->changed, &r->lock);
        }
    }
    r->go = 1;
    for (i = 0; i < count; i++) {
        (void)pthread_cond_signal(&r->turn[i]);
    }
    while (r->ended < count) {
        (void)pthread_cond_wait(&r->changed, &r->lock);
    }
    (void)pthread_mutex_unlock(&r->lock);
    for (i = 0; i < count; i++) {
        (void)pthread_join(r->threads[i], NULL);
    }
}

_Noreturn void run_program(const program *p)
{
    static model m;
    static runner r = {.m = &m, .lock = PTHREAD_MUTEX_INITIALIZER};
    unsigned i;

    m.p = p;
    (void)pthread_mutex_init(&m.lock, NULL);
    (void)pthread_cond_init(&r.changed, NULL);
    for (i = 0; i < PROGRAM_THREADS; i++) {
        (void)pthread_cond_init(&r.turn[i], NULL);
    }
    world_begin(&m);
    run_threads(&r);
    if (p->abandon) { /* the end of the process is the end of all */
        told->op = OP_FINISH;
        api_leaks_are_fine = 1;
        exit(0);
    }
    world_end(&m);
    exit(api_end(0));
}
