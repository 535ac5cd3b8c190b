/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/run.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "bench/clock.h"

/* Operations between two looks at the clock where time is limited. */
#define CHUNK 16

/* In the order of the log, each lane when it is its turn. Time spent waiting
 * does not count. */
static void take_turns(lane *in, void (*loop)(lane *, size_t, size_t))
{
    run *of = in->of;
    const turn *last = of->what->turns + of->what->turn_count - 1;

    for (size_t i = 0; i < in->turn_count; i++) {
        const turn *mine = in->turns[i];
        uint64_t before;

        while (sem_wait(&in->turn) != 0 && errno == EINTR) {
        }
        before = clock_now();
        loop(in, mine->first, mine->last);
        in->elapsed += clock_less(clock_now() - before, of->where->clock_cost);
        if (mine != last) {
            (void)sem_post(&of->lanes[mine[1].lane].turn);
        }
    }
}

/* As many of the measured operations as there is time for. */
static void run_limited(lane *in, void (*loop)(lane *, size_t, size_t))
{
    size_t at = in->does->prologue;
    size_t last = at + in->of->operations;
    uint64_t start = clock_now();

    while (at < last && clock_now() - start < in->of->limit_ns) {
        size_t next = last - at > CHUNK ? at + CHUNK : last;

        loop(in, at, next);
        at = next;
    }
    in->ran = at;
    in->elapsed = clock_now() - start;
}

static void run_measured(lane *in, void (*loop)(lane *, size_t, size_t),
                         bool limited)
{
    const run *of = in->of;
    size_t first = in->does->prologue;
    uint64_t before;

    in->elapsed = 0;
    if (of->what->turn_count > 0) {
        take_turns(in, loop);
        in->ran = in->does->count;
        return;
    }
    if (limited && !of->what->whole) {
        run_limited(in, loop);
        return;
    }
    in->ran = first + of->operations;
    before = clock_now();
    loop(in, first, in->ran); /* may stop earlier, and says so */
    in->elapsed = clock_less(clock_now() - before, of->where->clock_cost);
}

/* Work out what is live after `ran` operations, unless that is known. */
static void find_left(lane *in)
{
    const sequence *does = in->does;
    size_t *from;

    if (in->clean_of == in->ran) {
        return;
    }
    in->left_count = 0;
    from = calloc(does->blocks, sizeof(*from)); /* operation + 1 */
    if (from == NULL) {
        return;
    }
    for (size_t i = 0; i < in->ran; i++) {
        from[does->ops[i].block] = does->ops[i].free != 0 ? 0 : i + 1;
    }
    for (size_t i = 0; i < does->blocks; i++) {
        if (from[i] != 0) {
            in->left[in->left_count] = does->ops[from[i] - 1];
            in->left[in->left_count++].free = 1;
        }
    }
    free(from);
    in->clean_of = in->ran;
}

static void clean(lane *in)
{
    const instance *on = in->of->on;

    if (in->of->what->turn_count > 0 && in->index > 0) {
        return; /* the first lane does it for all */
    }
    find_left(in);
    for (size_t i = 0; i < in->left_count; i++) {
        const op *what = &in->left[i];

        if (in->blocks[what->block] != NULL) {
            in->failures +=
                on->deallocate(on->self, in->blocks[what->block], what->bytes,
                               0,
                               in->of->streams[what->stream]) != CCMR_SUCCESS;
            in->blocks[what->block] = NULL;
        }
    }
    in->ran = 0;
    (void)atomic_exchange(&in->of->watch.live, 0);
}

static void lane_do(lane *in, run_task task)
{
    switch (task) {
    case RUN_PROLOGUE:
        loop_observed(in, 0, in->does->prologue);
        in->ran = in->does->prologue;
        break;
    case RUN_WARM:
        run_measured(in, loop_plain, true);
        break;
    case RUN_PLAIN:
        run_measured(in, loop_plain, false);
        break;
    case RUN_TIMED:
        run_measured(in, loop_timed, false);
        break;
    case RUN_OBSERVED:
        run_measured(in, loop_observed, true);
        break;
    case RUN_CLEAN:
        clean(in);
        break;
    case RUN_QUIT:
        break;
    }
}

/* Wait for a round after `seen`; tells its task. */
static run_task wait_begun(run *in, uint64_t *seen)
{
    run_task task;

    (void)pthread_mutex_lock(&in->lock);
    while (in->round == *seen) {
        (void)pthread_cond_wait(&in->begun, &in->lock);
    }
    *seen = in->round;
    task = in->task;
    (void)pthread_mutex_unlock(&in->lock);
    return task;
}

static void note_ended(run *in)
{
    (void)pthread_mutex_lock(&in->lock);
    in->busy--;
    if (in->busy == 0) {
        (void)pthread_cond_signal(&in->ended);
    }
    (void)pthread_mutex_unlock(&in->lock);
}

/* Waking takes threads a different time each: they set out together. */
static void line_up(run *in)
{
    (void)atomic_fetch_add(&in->arrived, 1);
    while (atomic_load(&in->arrived) < in->started) {
        (void)sched_yield();
    }
}

static void *lane_main(void *argument)
{
    lane *in = argument;
    run *of = in->of;
    uint64_t seen = 0;
    run_task task;

    in->entered = machine_enter(of->where);
    do {
        task = wait_begun(of, &seen);
        if (task != RUN_QUIT) {
            line_up(of);
        }
        in->failures += !in->entered;
        lane_do(in, task);
        note_ended(of);
    } while (task != RUN_QUIT);
    if (in->entered) {
        machine_leave(of->where);
    }
    return NULL;
}

static void start_turns(run *in, run_task task)
{
    if (task == RUN_WARM || task == RUN_PLAIN || task == RUN_TIMED ||
        task == RUN_OBSERVED) {
        (void)sem_post(&in->lanes[in->what->turns[0].lane].turn);
    }
}

void run_do(run *in, run_task task)
{
    if (in->started == 0) {
        if (in->what->lanes == 1) {
            lane_do(&in->lanes[0], task);
        }
        return;
    }
    if (in->what->turn_count > 0) {
        start_turns(in, task);
    }
    (void)pthread_mutex_lock(&in->lock);
    atomic_store(&in->arrived, 0);
    in->task = task;
    in->round++;
    in->busy = in->started;
    (void)pthread_cond_broadcast(&in->begun);
    while (in->busy > 0) {
        (void)pthread_cond_wait(&in->ended, &in->lock);
    }
    (void)pthread_mutex_unlock(&in->lock);
}

size_t run_failures(const run *in)
{
    size_t sum = 0;

    for (size_t i = 0; i < in->lane_count; i++) {
        sum += in->lanes[i].failures;
    }
    return sum;
}

const failure *run_first_failure(const run *in)
{
    const failure *first = NULL;

    for (size_t i = 0; i < in->lane_count; i++) {
        const failure *own = &in->lanes[i].first;

        if (own->set && (first == NULL || own->op < first->op)) {
            first = own;
        }
    }
    return first;
}

/* Memory of one lane, touched before anything is timed. */
static bool lane_fill(lane *made, run *of, size_t index)
{
    size_t measured;

    made->of = of;
    made->index = index;
    made->clean_of = SIZE_MAX;
    (void)sem_init(&made->turn, 0, 0);
    if (of->what->turn_count > 0 && index > 0) {
        made->does = of->lanes[0].does;
        made->blocks = of->lanes[0].blocks;
        made->ns = of->lanes[0].ns;
        return true;
    }
    made->does = &of->what->sequences[index];
    measured = made->does->count - made->does->prologue;
    made->blocks = calloc(made->does->blocks, sizeof(*made->blocks));
    made->left = calloc(made->does->blocks, sizeof(*made->left));
    made->ns = malloc(measured * sizeof(*made->ns));
    if (made->blocks == NULL || made->left == NULL || made->ns == NULL) {
        return false;
    }
    memset(made->ns, 1, measured * sizeof(*made->ns));
    return true;
}

static bool lanes_fill(run *made)
{
    const plan *what = made->what;

    for (size_t i = 0; i < made->lane_count; i++) {
        if (!lane_fill(&made->lanes[i], made, i)) {
            return false;
        }
    }
    for (size_t i = 0; i < what->turn_count; i++) {
        made->lanes[what->turns[i].lane].turn_count++;
    }
    for (size_t i = 0; i < made->lane_count && what->turn_count > 0; i++) {
        lane *in = &made->lanes[i];

        in->turns = calloc(in->turn_count + 1, sizeof(*in->turns));
        if (in->turns == NULL) {
            return false;
        }
        in->turn_count = 0;
    }
    for (size_t i = 0; i < what->turn_count; i++) {
        lane *in = &made->lanes[what->turns[i].lane];

        in->turns[in->turn_count++] = &what->turns[i];
    }
    return true;
}

static bool threads_start(run *made)
{
    for (size_t i = 0; i < made->lane_count; i++) {
        if (pthread_create(&made->lanes[i].thread, NULL, lane_main,
                           &made->lanes[i]) != 0) {
            return false;
        }
        made->started++;
    }
    return true;
}

bool run_open(run *made, const plan *what, const instance *on,
              const ccmr_stream *streams, const machine *where)
{
    memset(made, 0, sizeof(*made));
    made->what = what;
    made->on = on;
    made->streams = streams;
    made->where = where;
    made->operations = what->sequences[0].count - what->sequences[0].prologue;
    made->lanes = calloc(what->lanes, sizeof(*made->lanes));
    if (made->lanes == NULL) {
        return false;
    }
    made->lane_count = what->lanes;
    (void)pthread_mutex_init(&made->lock, NULL);
    (void)pthread_cond_init(&made->begun, NULL);
    (void)pthread_cond_init(&made->ended, NULL);
    if (!lanes_fill(made) || (what->lanes > 1 && !threads_start(made))) {
        run_close(made);
        return false;
    }
    return true;
}

void run_close(run *gone)
{
    if (gone->started > 0) {
        run_do(gone, RUN_QUIT);
        for (size_t i = 0; i < gone->started; i++) {
            (void)pthread_join(gone->lanes[i].thread, NULL);
        }
    }
    for (size_t i = 0; i < gone->lane_count; i++) {
        lane *in = &gone->lanes[i];

        if (gone->what->turn_count == 0 || i == 0) {
            free(in->blocks);
            free(in->ns);
            free(in->left);
        }
        free(in->turns);
        (void)sem_destroy(&in->turn);
    }
    (void)pthread_cond_destroy(&gone->ended);
    (void)pthread_cond_destroy(&gone->begun);
    (void)pthread_mutex_destroy(&gone->lock);
    free(gone->lanes);
    memset(gone, 0, sizeof(*gone));
}
