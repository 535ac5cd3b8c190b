/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the command line to results.
 */
#ifndef CCMR_BENCH_JOB_H
#define CCMR_BENCH_JOB_H

#include "bench/args.h"
#include "bench/machine.h"
#include "bench/plan.h"
#include "bench/result.h"

/* Everything of one run of the program. */
typedef struct job {
    args *asked;
    machine where;
    trace *traces[ARGS_MAX];
    size_t trace_count;
    plan *plans[ARGS_MAX];
    size_t plan_count;
    result *results;
    size_t result_count;
    size_t result_room;
    char log[4096]; /* file of the main job's logging stack; or empty */
} job;

/** Exit statuses of the program. */
enum { JOB_FINE = 0, JOB_FAILED = 1, JOB_USAGE = 2 };

/** Do what was asked for and report it; the exit status. */
int job_run(args *asked);

/* Parts, each in a file of its own. They say on standard error what fails. */

/** Read the traces that are asked for, job_traces.c. An exit status. */
int job_read_traces(job *in);

/** Make the plans, job_plans.c. False without memory. */
bool job_make_plans(job *in);

/** Contenders where none were asked for, job_plans.c. False without memory. */
bool job_make_contenders(job *in);

#endif /* CCMR_BENCH_JOB_H */
