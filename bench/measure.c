/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/clock.h"
#include "bench/progress.h"
#include "bench/stage.h"
#include "bench/streams.h"

/* Of a watched pass that need not be whole: the same for all contenders, but
 * for very slow ones. */
#define WATCHED_OPERATIONS 10000
#define WATCHED_LIMIT_NS UINT64_C(5000000000)

/* One contender through all of a measurement. */
typedef struct entry {
    const contender *who;
    result *found;
    double *means; /* one a repetition */
    samples operation;
    samples allocation;
    samples free;
    size_t operations; /* of each sequence; 0: not known yet */
} entry;

typedef struct measurement {
    const plan *what;
    const machine *where;
    const measure_options *options;
    stream_set streams;
    entry *entries;
    size_t count;
} measurement;

static bool open_stage(stage *made, const measurement *in, entry *of,
                       const char *log)
{
    const stage_options options = {.what = in->what,
                                   .who = of->who,
                                   .where = in->where,
                                   .streams = &in->streams,
                                   .log = log};

    if (!stage_open(made, &options, of->found)) {
        return false;
    }
    made->by.limit_ns = in->options->limit_ns;
    if (of->operations != 0) {
        made->by.operations = of->operations;
    }
    return true;
}

/* The watched pass. */
static void observe(measurement *in, entry *of)
{
    result *found = of->found;
    stage on;

    if (!open_stage(&on, in, of, in->options->log)) {
        return;
    }
    found->operations = on.by.operations / in->what->ops_per_operation *
                        in->what->sequence_count;
    on.by.watch.write_bytes = in->options->write_bytes;
    if (in->options->timeline) {
        stage_draw(&on, found);
    }
    on.by.limit_ns = WATCHED_LIMIT_NS;
    if (!in->what->whole && on.by.operations > WATCHED_OPERATIONS) {
        on.by.operations = WATCHED_OPERATIONS;
    }
    run_do(&on.by, RUN_PROLOGUE);
    run_do(&on.by, RUN_OBSERVED);
    stage_note_memory(&on, found);
    stage_clean(&on, of->found);
    stage_note_failures(&on, found);
    stage_close(&on);
}

/* Warm up. The first time, find out how many operations there is time for. */
static void warm(const measurement *in, entry *of, stage *on)
{
    size_t least = SIZE_MAX;
    unsigned unit = in->what->ops_per_operation;

    run_do(&on->by, RUN_PROLOGUE);
    run_do(&on->by, RUN_WARM);
    for (size_t i = 0; i < on->by.lane_count; i++) {
        const lane *one = &on->by.lanes[i];
        size_t ran = one->ran - one->does->prologue;

        least = ran < least ? ran : least;
    }
    if (of->operations == 0) {
        of->operations =
            in->what->whole ? on->by.operations : least - least % unit;
        on->by.operations = of->operations;
    }
    stage_clean(on, of->found);
}

/* Time a whole pass: the mean of the threads. */
static void time_pass(const measurement *in, entry *of, stage *on,
                      unsigned repetition)
{
    double sum = 0;
    double operations = (double)(of->operations / in->what->ops_per_operation);

    run_do(&on->by, RUN_PROLOGUE);
    run_do(&on->by, RUN_PLAIN);
    for (size_t i = 0; i < on->by.lane_count; i++) {
        sum += (double)on->by.lanes[i].elapsed;
    }
    /* With turns the threads share the operations; else each has its own. */
    if (in->what->turn_count == 0) {
        operations *= (double)on->by.lane_count;
    }
    of->means[repetition] = sum / operations;
    stage_clean(on, of->found);
}

/* Take one sequence's single times over. */
static bool take_times(const measurement *in, entry *of, const lane *from)
{
    uint64_t cost = in->where->clock_cost;
    unsigned unit = in->what->ops_per_operation;
    const op *ops = from->does->ops + from->does->prologue;
    uint64_t sum = 0;

    if (!samples_reserve(&of->operation, of->operations) ||
        !samples_reserve(&of->allocation, of->operations) ||
        !samples_reserve(&of->free, of->operations)) {
        return false;
    }
    for (size_t i = 0; i < of->operations; i++) {
        uint64_t ns = clock_less(from->ns[i], cost);

        samples_add(ops[i].free != 0 ? &of->free : &of->allocation, ns);
        sum += ns;
        if ((i + 1) % unit == 0) {
            samples_add(&of->operation, sum);
            sum = 0;
        }
    }
    return true;
}

static void time_operations(const measurement *in, entry *of, stage *on)
{
    run_do(&on->by, RUN_PROLOGUE);
    run_do(&on->by, RUN_TIMED);
    for (size_t i = 0; i < in->what->sequence_count; i++) {
        if (!take_times(in, of, &on->by.lanes[i])) {
            result_fail(of->found, "no memory for times");
        }
    }
    stage_clean(on, of->found);
}

static void count_calls(entry *of, stage *on)
{
    run_do(&on->by, RUN_PROLOGUE);
    stage_count(on, RUN_PLAIN, of->found);
    stage_clean(on, of->found);
}

/* One contender's turn in a repetition. */
static void take_turn(measurement *in, entry *of, unsigned repetition)
{
    stage on;
    size_t failures;

    if (!open_stage(&on, in, of, NULL)) {
        return;
    }
    warm(in, of, &on);
    of->found->operations = of->operations / in->what->ops_per_operation *
                            in->what->sequence_count;
    time_pass(in, of, &on, repetition);
    time_operations(in, of, &on);
    if (repetition == 0) {
        count_calls(of, &on);
    }
    failures = run_failures(&on.by);
    if (failures > 0) {
        of->found->failures += failures - 1;
        result_fail(of->found,
                    "%zu calls failed when it was warm, though none did "
                    "afresh",
                    failures);
    }
    of->found->repetitions++;
    stage_close(&on);
}

static void conclude(entry *of)
{
    result *found = of->found;
    size_t count = found->repetitions;

    found->operation = samples_summary(&of->operation);
    found->allocation = samples_summary(&of->allocation);
    found->free = samples_summary(&of->free);
    found->ns_median = median_of(of->means, count);
    if (count > 0) {
        found->ns_least = of->means[0];
        found->ns_most = of->means[count - 1];
    }
}

static bool entries_make(measurement *in, contender *const *who,
                         result *results)
{
    in->entries = calloc(in->count, sizeof(*in->entries));
    if (in->entries == NULL) {
        return false;
    }
    for (size_t i = 0; i < in->count; i++) {
        entry *of = &in->entries[i];

        *of = (entry){.who = who[i], .found = &results[i]};
        of->means = calloc(in->options->repeat, sizeof(*of->means));
        if (of->means == NULL) {
            return false;
        }
        results[i] = (result){.what = in->what,
                              .name = who[i]->name,
                              .registered = in->options->registered,
                              .threads = in->what->lanes,
                              .streams = in->what->streams,
                              .peak_reserved = FIGURE_UNKNOWN};
        if (in->what->trace != NULL) {
            results[i].trace = in->what->trace->name;
        }
    }
    return true;
}

static void entries_free(measurement *gone)
{
    for (size_t i = 0; gone->entries != NULL && i < gone->count; i++) {
        entry *of = &gone->entries[i];

        free(of->means);
        samples_free(&of->operation);
        samples_free(&of->allocation);
        samples_free(&of->free);
    }
    free(gone->entries);
}

/* All turns, each repetition beginning with another contender. */
static void take_all_turns(measurement *in)
{
    for (unsigned i = 0; i < in->options->repeat; i++) {
        for (size_t j = 0; j < in->count; j++) {
            entry *of = &in->entries[(i + j) % in->count];

            if (of->found->failures > 0) {
                continue;
            }
            progress_show("%s %s: repetition %u of %u: %s", in->what->scenario,
                          in->what->label, i + 1, in->options->repeat,
                          of->who->name);
            take_turn(in, of, i);
        }
    }
}

bool measure(const plan *what, contender *const *who, size_t count,
             const machine *where, const measure_options *options,
             result *results, char *message, size_t size)
{
    measurement in = {
        .what = what, .where = where, .options = options, .count = count};
    ccmr_status status;

    memset(results, 0, count * sizeof(*results));
    if (!entries_make(&in, who, results)) {
        entries_free(&in);
        (void)snprintf(message, size, "out of memory");
        return false;
    }
    status = stream_set_open(&in.streams, what->streams, what->null_stream,
                             options->registered, where->device);
    if (status != CCMR_SUCCESS) {
        (void)snprintf(message, size, "no streams: %s",
                       ccmr_last_error()->message);
        entries_free(&in);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        progress_show("%s %s: watching %s", what->scenario, what->label,
                      who[i]->name);
        observe(&in, &in.entries[i]);
    }
    take_all_turns(&in);
    for (size_t i = 0; i < count; i++) {
        conclude(&in.entries[i]);
    }
    progress_end();
    stream_set_close(&in.streams);
    entries_free(&in);
    return true;
}
