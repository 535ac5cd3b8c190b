/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/stage.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/driver_count.h"
#include "bench/units.h"

#define TIMELINE_POINTS 1000

bool stage_open(stage *made, const stage_options *options, result *found)
{
    const instance_options set_up = {.device = options->where->device,
                                     .log = options->log,
                                     .budget = options->budget};
    ccmr_status status = instance_open(&made->on, options->who, &set_up);
    figures now;

    if (status != CCMR_SUCCESS) {
        result_fail(found, "cannot be set up: %s: %s",
                    ccmr_status_name(status), ccmr_last_error()->message);
        return false;
    }
    made->streams = options->streams;
    if (!run_open(&made->by, options->what, &made->on,
                  options->streams->streams, options->where)) {
        result_fail(found, "no memory or threads to run it");
        instance_close(&made->on);
        return false;
    }
    made->by.watch.watch_reserved = instance_figures(&made->on, &now) &&
                                    now.peak_reserved == FIGURE_UNKNOWN;
    return true;
}

void stage_draw(stage *on, result *found)
{
    const plan *what = on->by.what;
    timeline *line = &found->line;

    if (what->sequence_count != 1) {
        return;
    }
    line->points = calloc(TIMELINE_POINTS + 1, sizeof(*line->points));
    line->room = line->points != NULL ? TIMELINE_POINTS + 1 : 0;
    line->interval = what->sequences[0].count / TIMELINE_POINTS + 1;
    on->by.watch.line = line;
}

void stage_note_memory(stage *on, result *found)
{
    observer *watch = &on->by.watch;
    figures now;

    found->peak_live = atomic_load(&watch->peak_live);
    found->peak_reserved = FIGURE_UNKNOWN;
    if (!instance_figures(&on->on, &now)) {
        return;
    }
    found->peak_reserved = now.peak_reserved != FIGURE_UNKNOWN
                               ? now.peak_reserved
                               : atomic_load(&watch->peak_reserved);
}

/* Say what failed, and where in a trace. */
static void describe_failure(result *in, const failure *first)
{
    char where[128];
    char bytes[UNITS_TEXT];
    char live[UNITS_TEXT];

    if (in->what->trace != NULL) {
        (void)snprintf(where, sizeof(where), "row %" PRIu32 ": ",
                       in->what->trace->events[first->op].row);
    } else {
        (void)snprintf(where, sizeof(where), "operation %zu: ", first->op + 1);
    }
    (void)snprintf(in->failure, sizeof(in->failure),
                   "%s%s of %" PRIu64 " bytes (%s) with %" PRIu64
                   " (%s) live: %s: %s",
                   where, first->free ? "free" : "allocate", first->bytes,
                   units_bytes(first->bytes, bytes), first->live,
                   units_bytes(first->live, live),
                   ccmr_status_name(first->status), first->text);
}

void stage_note_failures(const stage *on, result *found)
{
    const failure *first = run_first_failure(&on->by);

    found->failures += run_failures(&on->by);
    if (first != NULL) {
        describe_failure(found, first);
    } else if (found->failures > 0 && found->failure[0] == '\0') {
        (void)snprintf(found->failure, sizeof(found->failure),
                       "%zu calls failed", found->failures);
    }
}

static int by_rate(const void *a, const void *b)
{
    double x = ((const call_rate *)a)->per_1000;
    double y = ((const call_rate *)b)->per_1000;

    return (x < y) - (x > y);
}

/* All counters: of the calls, then of the times. */
static void read_counters(uint64_t *to)
{
    size_t names = driver_count_calls();

    for (size_t i = 0; i < names; i++) {
        to[i] = driver_count_get(i);
    }
    for (size_t i = 0; i < DRIVER_TIMES; i++) {
        to[names + i] = driver_count_ns((driver_time)i);
    }
}

static void note_calls(result *found, const uint64_t *before,
                       const uint64_t *after)
{
    size_t names = driver_count_calls();
    double operations = (double)found->operations;

    for (size_t i = 0; i < names; i++) {
        double rate = 1000 * (double)(after[i] - before[i]) / operations;

        if (rate > 0) {
            found->calls[found->call_count++] =
                (call_rate){driver_count_name(i), rate};
            found->calls_per_1000 += rate;
        }
    }
    qsort(found->calls, found->call_count, sizeof(*found->calls), by_rate);
    before += names;
    after += names;
    found->mapping_ns =
        (double)(after[DRIVER_TIME_MAPPING] - before[DRIVER_TIME_MAPPING]) /
        operations;
    found->waiting_ns =
        (double)(after[DRIVER_TIME_WAITING] - before[DRIVER_TIME_WAITING]) /
        operations;
    found->estimated = driver_count_estimates();
    found->estimated_ns = (double)(after[DRIVER_TIME_ESTIMATED] -
                                   before[DRIVER_TIME_ESTIMATED]) /
                          operations;
    found->counted = true;
}

static void count_round(stage *on, run_task task, result *found)
{
    size_t count = driver_count_calls() + DRIVER_TIMES;
    uint64_t *before = calloc(2 * count, sizeof(*before));

    found->calls = calloc(driver_count_calls(), sizeof(*found->calls));
    if (before == NULL || found->calls == NULL) {
        free(before);
        result_fail(found, "no memory to count driver calls");
        return;
    }
    read_counters(before);
    driver_count_start();
    run_do(&on->by, task);
    driver_count_stop();
    read_counters(before + count);
    note_calls(found, before, before + count);
    free(before);
}

void stage_count(stage *on, run_task task, result *found)
{
    /* A library of its own calls the driver by ways of its own. */
    if (on->on.who->kind == CONTENDER_PLUGIN) {
        run_do(&on->by, task);
    } else {
        count_round(on, task, found);
    }
}

void stage_clean(stage *on, result *found)
{
    run_do(&on->by, RUN_CLEAN);
    if (stream_set_wait(on->streams) != CCMR_SUCCESS) {
        result_fail(found, "%s", ccmr_last_error()->message);
    }
}

void stage_close(stage *gone)
{
    run_close(&gone->by);
    instance_close(&gone->on);
}
