/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/job.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cucoremr/stack.h>

#include "bench/budget_text.h"
#include "bench/contents.h"
#include "bench/measure.h"
#include "bench/memory.h"
#include "bench/progress.h"
#include "bench/report.h"

/* Written of each block where device memory is host memory. */
#define SIM_WRITE_BYTES 256

static bool is_for_program(const char *path)
{
    return path != NULL && strcmp(path, "-") == 0;
}

/* People read standard output unless a program does. */
static bool shows_table(const args *asked)
{
    return !asked->quiet && !is_for_program(asked->json) &&
           !is_for_program(asked->csv);
}

/* What a person who wrote the text can mend. */
static bool is_mistake(const ccmr_error_detail *detail)
{
    return detail->status == CCMR_ERROR_SYNTAX ||
           detail->status == CCMR_ERROR_UNKNOWN_NAME ||
           (detail->status == CCMR_ERROR_INVALID_ARGUMENT &&
            detail->column > 0);
}

/* A stack as it will be made, with a budget that none refuses for being small.
 * False: said why not. */
static bool text_for_check(const args *asked, const char *text, char **made)
{
    char *bounded;

    if (asked->what == SCENARIO_BUDGET &&
        budget_text(text, UINT64_C(1) << 30, &bounded) != CCMR_SUCCESS) {
        (void)fprintf(stderr, "cucoremr-bench: %s\n  %s\n",
                      ccmr_last_error()->message, text);
        return false;
    }
    /* A column of an error must be of the text that was written. */
    if (asked->what == SCENARIO_BUDGET && strstr(text, "{budget}") != NULL) {
        *made = bounded;
        return true;
    }
    if (asked->what == SCENARIO_BUDGET) {
        free(bounded);
    }
    *made = strdup(text);
    return *made != NULL;
}

/* Whether a stack's text can be understood. What else may be wrong with a
 * stack is one contender's failure, not the command line's. */
static bool check_stack(const char *text)
{
    const ccmr_error_detail *detail;
    ccmr_resource *resource;

    if (ccmr_stack_create(text, &resource) == CCMR_SUCCESS) {
        ccmr_resource_release(resource);
        return true;
    }
    detail = ccmr_last_error();
    if (!is_mistake(detail)) {
        return true;
    }
    (void)fprintf(stderr, "cucoremr-bench: %s\n  %s\n", detail->message, text);
    if (detail->column > 0) {
        (void)fprintf(stderr, "  %*s\n", detail->column, "^");
    }
    return false;
}

static bool check_stacks(const args *asked)
{
    for (size_t i = 0; i < asked->contender_count; i++) {
        const contender *who = asked->contenders[i];
        char *text;
        bool good;

        if (who->kind != CONTENDER_STACK) {
            continue;
        }
        if (!text_for_check(asked, who->text, &text)) {
            return false;
        }
        good = check_stack(text);
        free(text);
        if (!good) {
            return false;
        }
    }
    return true;
}

static result *more_results(job *in, size_t count)
{
    result *made = &in->results[in->result_count];

    in->result_count += count;
    return made;
}

static bool check_contents(job *in, const plan *what, bool registered)
{
    const args *asked = in->asked;
    result *found = more_results(in, asked->contender_count);

    for (size_t i = 0; i < asked->contender_count; i++) {
        contents_check(what, asked->contenders[i], &in->where, registered,
                       &found[i]);
    }
    return true;
}

static bool measure_plan(job *in, const plan *what, bool registered)
{
    const args *asked = in->asked;
    bool few = what->whole || what->lanes > 1;
    measure_options options = {
        .repeat = asked->repeat != 0 ? asked->repeat
                  : few              ? 3
                                     : 5,
        .limit_ns = asked->limit_ns,
        .registered = registered,
        .timeline = asked->plot != NULL && what->whole,
        .log = asked->log,
        .write_bytes = asked->write_said     ? asked->write_bytes
                       : in->where.simulated ? SIM_WRITE_BYTES
                                             : UINT64_MAX,
    };
    char message[512] = "";

    if (!measure(what, asked->contenders, asked->contender_count, &in->where,
                 &options, more_results(in, asked->contender_count), message,
                 sizeof(message))) {
        (void)fprintf(stderr, "cucoremr-bench: %s %s: %s\n", what->scenario,
                      what->label, message);
        return false;
    }
    return true;
}

/* Budget or grown, with one kind of work or with both in turn. */
static bool look_at_memory(job *in, const plan *what, bool registered)
{
    const args *asked = in->asked;
    bool budget = asked->what == SCENARIO_BUDGET;
    bool neither = !asked->idle && !asked->busy;
    const bool wanted[] = {
        [WORK_IDLE] = asked->idle || (neither && budget),
        [WORK_BUSY] = asked->busy || (neither && !budget),
    };
    char message[512] = "";

    for (work_kind work = WORK_IDLE; work <= WORK_BUSY; work++) {
        const memory_options options = {.registered = registered,
                                        .work = work,
                                        .behind = asked->behind,
                                        .at = asked->at,
                                        .timeline = asked->plot != NULL};

        if (wanted[work] &&
            !(budget                           ? memory_budget
              : asked->what == SCENARIO_LAYOUT ? memory_layout
                                               : memory_grown)(
                what, asked->contenders, asked->contender_count, &in->where,
                &options, more_results(in, asked->contender_count), message,
                sizeof(message))) {
            (void)fprintf(stderr, "cucoremr-bench: %s %s: %s\n",
                          what->scenario, what->label, message);
            return false;
        }
    }
    return true;
}

static bool run_plan(job *in, const plan *what, bool registered)
{
    switch (in->asked->what) {
    case SCENARIO_CONTENTS:
        return check_contents(in, what, registered);
    case SCENARIO_BUDGET:
    case SCENARIO_GROWN:
    case SCENARIO_LAYOUT:
        return look_at_memory(in, what, registered);
    default:
        return measure_plan(in, what, registered);
    }
}

static bool run_plans(job *in)
{
    const args *asked = in->asked;
    size_t ways = asked->registered == EITHER_BOTH ? 2 : 1;
    size_t works = asked->idle && asked->busy ? 2 : 1;
    bool good = true;

    in->result_room = in->plan_count * ways * works * asked->contender_count;
    in->results = calloc(in->result_room, sizeof(*in->results));
    if (in->results == NULL) {
        (void)fprintf(stderr, "cucoremr-bench: out of memory\n");
        return false;
    }
    for (size_t i = 0; good && i < in->plan_count * ways; i++) {
        const plan *what = in->plans[i / ways];
        bool registered = asked->registered != EITHER_OFF && i % ways == 0;

        good = run_plan(in, what, registered);
    }
    return good;
}

static void introduce(const job *in)
{
    (void)fputs(
        "Replaying what a training run of GPT-2 asked of its allocator, on "
        "four stacks of\nresources: the driver's memory pool; plain "
        "cuMemAlloc made stream-ordered; the\nlibrary's own pool over virtual "
        "memory; and the driver's pool under a limit of\n12 GiB with a log of "
        "all its allocations.\n\n",
        stdout);
    report_machine(stdout, &in->where);
    (void)fflush(stdout);
}

static void explain_times(const job *in, bool brief)
{
    (void)printf("ns/op      host time of an operation: a mean, the "
                 "median of whole passes%s\n"
                 "allocate   and free: single calls in a pass of their own; "
                 "the %" PRIu64 " ns that reading the\n"
                 "           clock takes (median of 10000) are taken off "
                 "each\n",
                 brief ? "" : ", the least and the most",
                 in->where.clock_cost);
    if (!brief) {
        (void)puts("driver     calls of the driver in 1000 operations");
    }
}

static void explain_memory(scenario_id what)
{
    (void)puts("memory     live: allocated at once; reserved: taken from the "
               "driver for it;\n"
               "           grown: reserved over live, best is 1");
    if (what == SCENARIO_GROWN) {
        (void)puts("warm       the second pass: calls of the driver in 1000 "
                   "operations, nanoseconds of\n"
                   "           an operation spent in virtual-memory calls "
                   "and in waiting for streams");
    }
}

static void explain(const job *in)
{
    scenario_id what = in->asked->what;

    if (what == SCENARIO_BUDGET) {
        (void)puts("budget     the least reserved memory that all of it was "
                   "done in, and that over\n"
                   "           the peak of live bytes; best is 1");
        return;
    }
    if (what != SCENARIO_GROWN) {
        explain_times(in, what == SCENARIO_MAIN);
    }
    explain_memory(what);
    if (what == SCENARIO_MAIN) {
        (void)puts("\nNext: record your own program by putting 'logging "
                   "file=run.csv | ' before its stack,\n"
                   "and choose a stack for it: cucoremr-bench replay run.csv "
                   "--stack TEXT --stack TEXT\n"
                   "(cucoremr-bench help-stacks lists what a TEXT can name).");
    }
}

static bool report_layouts(const job *in)
{
    const args *asked = in->asked;
    report what = {.where = &in->where,
                   .results = in->results,
                   .count = in->result_count};

    if (!asked->quiet) {
        report_layout(stdout, &what);
    }
    return (asked->dump == NULL || report_dump(asked->dump, &what)) &&
           (asked->plot == NULL || report_layout_plot(asked->plot, &what));
}

static bool report_all(const job *in)
{
    const args *asked = in->asked;
    report what = {.where = &in->where,
                   .results = in->results,
                   .count = in->result_count,
                   .brief = asked->what == SCENARIO_MAIN};
    bool good = true;

    if (shows_table(asked)) {
        report_table(stdout, &what);
        report_threads(stdout, &what);
        explain(in);
    } else {
        for (size_t i = 0; i < what.count; i++) {
            if (what.results[i].failures > 0) {
                (void)fprintf(stderr, "cucoremr-bench: %s: %s: %s\n",
                              what.results[i].what->label,
                              what.results[i].name, what.results[i].failure);
            }
        }
    }
    good = (asked->json == NULL || report_json(asked->json, &what)) && good;
    good = (asked->csv == NULL || report_csv(asked->csv, &what)) && good;
    good = (asked->plot == NULL || report_plot(asked->plot, &what)) && good;
    return good;
}

/* So much memory that a trace fits with room for what a stack wastes. */
static uint64_t memory_wanted(const job *in)
{
    uint64_t most = 0;

    for (size_t i = 0; i < in->trace_count; i++) {
        uint64_t peak = in->traces[i]->peak_live_bytes;

        most = peak > most ? peak : most;
    }
    return most < UINT64_MAX / 8 ? 4 * most : most;
}

static int run_all(job *in)
{
    const args *asked = in->asked;
    char message[512] = "";
    int ret = job_read_traces(in);
    bool good;

    if (ret != JOB_FINE) {
        return ret;
    }
    if (!machine_open(&in->where, asked->driver, asked->device,
                      memory_wanted(in), message, sizeof(message))) {
        (void)fprintf(stderr, "cucoremr-bench: %s\n", message);
        return JOB_FAILED;
    }
    if (!job_make_contenders(in) || !job_make_plans(in)) {
        (void)fprintf(stderr, "cucoremr-bench: the plan cannot be made: out "
                              "of memory, or too large\n");
        return JOB_FAILED;
    }
    if (!check_stacks(asked)) {
        return JOB_USAGE;
    }
    if (shows_table(asked)) {
        if (asked->what == SCENARIO_MAIN) {
            introduce(in);
        } else {
            report_machine(stdout, &in->where);
        }
    }
    good = run_plans(in);
    progress_end();
    good = (asked->what == SCENARIO_LAYOUT ? report_layouts(in)
                                           : report_all(in)) &&
           good;
    for (size_t i = 0; i < in->result_count; i++) {
        good = good && in->results[i].failures == 0;
    }
    machine_leave(&in->where);
    return good ? JOB_FINE : JOB_FAILED;
}

int job_run(args *asked)
{
    job *in = calloc(1, sizeof(*in));
    int ret;

    if (in == NULL) {
        return JOB_FAILED;
    }
    in->asked = asked;
    if (asked->quiet) {
        progress_silence();
    }
    ret = report_can_open(asked->json) && report_can_open(asked->csv) &&
                  report_can_open(asked->dump)
              ? run_all(in)
              : JOB_FAILED;
    if (in->log[0] != '\0') {
        (void)unlink(in->log);
    }
    for (size_t i = 0; i < in->result_count; i++) {
        result_free(&in->results[i]);
    }
    for (size_t i = 0; i < in->plan_count; i++) {
        plan_free(in->plans[i]);
    }
    for (size_t i = 0; i < in->trace_count; i++) {
        trace_free(in->traces[i]);
    }
    free(in->results);
    free(in);
    return ret;
}
