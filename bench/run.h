/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One contender carrying out one plan: the threads and the loops.
 */
#ifndef CCMR_BENCH_RUN_H
#define CCMR_BENCH_RUN_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/contender.h"
#include "bench/machine.h"
#include "bench/plan.h"
#include "bench/work.h"

/* What all lanes do in a round. */
typedef enum run_task {
    RUN_PROLOGUE, /* what is live all the time */
    RUN_WARM,     /* measured operations, as many as time allows */
    RUN_PLAIN,    /* the same, timed as a whole */
    RUN_TIMED,    /* the same, each operation timed */
    RUN_OBSERVED, /* the same, watched: memory, failures */
    RUN_CLEAN,    /* free what is live */
    RUN_QUIT
} run_task;

/* An operation that failed. */
typedef struct failure {
    bool set;
    size_t op;
    bool free;
    uint64_t bytes;
    uint64_t live; /* at that moment, all lanes */
    ccmr_status status;
    char text[256];
} failure;

typedef struct timeline_point {
    size_t op;
    uint64_t live;
    uint64_t reserved;
} timeline_point;

/* Live and reserved bytes over the operations. */
typedef struct timeline {
    timeline_point *points;
    size_t count;
    size_t room;
    size_t interval; /* operations from point to point; 0: none wanted */
    uint64_t live;   /* the most since the last point */
} timeline;

/* What is watched in RUN_OBSERVED. */
typedef struct observer {
    atomic_uint_fast64_t live;
    atomic_uint_fast64_t peak_live;
    atomic_uint_fast64_t peak_reserved; /* where the contender knows none */
    bool watch_reserved;
    uint64_t write_bytes; /* of each block, on its stream */
    bool stop_at_failure;
    device_work *work; /* NULL: none that would be told of operations */
    timeline *line;
} observer;

struct run;

/*
 * One thread's part. Between rounds it belongs to the thread that calls
 * run_do(), in a round to its own thread; run.lock is taken in between.
 */
typedef struct lane {
    struct run *of;
    size_t index;
    const sequence *does;
    void **blocks; /* what the operations name; shared with turns */
    uint32_t *ns;  /* one a measured operation; shared with turns */
    const turn **turns;
    size_t turn_count;
    sem_t turn;      /* posted when it is this lane's */
    size_t ran;      /* operations of the sequence, prologue included */
    size_t clean_of; /* `ran` that `left` is for */
    op *left;        /* frees of what is live then */
    size_t left_count;
    uint64_t elapsed;
    size_t failures;
    failure first;
    bool entered; /* in the device's context */
    pthread_t thread;
} lane;

/* Not changed in a round, but for the lanes, the observer, and what `lock`
 * guards. */
typedef struct run {
    const plan *what;
    const instance *on;
    const ccmr_stream *streams;
    const machine *where;
    size_t operations; /* measured, of each sequence */
    uint64_t limit_ns; /* of a warm or observed round; whole plans: none */
    lane *lanes;
    size_t lane_count;
    size_t started; /* threads; 0 where the caller is the only lane */
    observer watch;
    atomic_size_t arrived; /* lanes that are ready in this round */
    /* Guarded by `lock`. */
    run_task task;
    uint64_t round;
    size_t busy; /* lanes that are not done with it */
    pthread_mutex_t lock;
    pthread_cond_t begun;
    pthread_cond_t ended;
} run;

/** Prepare memory and threads. False without memory or threads. */
bool run_open(run *made, const plan *what, const instance *on,
              const ccmr_stream *streams, const machine *where);

/** One round; returns when all lanes are done. */
void run_do(run *in, run_task task);

/** Sum over the lanes. */
size_t run_failures(const run *in);

/** The first failure that was seen, NULL if there was none. */
const failure *run_first_failure(const run *in);

void run_close(run *gone);

/* The loops, loops.c. Each carries out operations [first, last) of the lane's
 * sequence and counts failures. */
void loop_plain(lane *in, size_t first, size_t last);
void loop_timed(lane *in, size_t first, size_t last);
void loop_observed(lane *in, size_t first, size_t last);

#endif /* CCMR_BENCH_RUN_H */
