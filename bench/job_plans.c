/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is run where the command line does not say it.
 */
#include "bench/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)

#define OPERATIONS 100000
#define LEAST_OPERATIONS 2000
#define CONTENTS_OPERATIONS 4000

static const size_range pair_sizes[] = {
    {256, 256}, {64 * KIB, 64 * KIB}, {MIB, MIB}, {64 * MIB, 64 * MIB}};

static const struct {
    size_range sizes;
    size_t live;
} mixes[] = {{{256, MIB}, 256}, {{4 * KIB, 64 * MIB}, 64}};

static bool add_plan(job *in, plan *made)
{
    if (made == NULL || in->plan_count == ARGS_MAX) {
        plan_free(made);
        return false;
    }
    in->plans[in->plan_count++] = made;
    return true;
}

static size_t operations_of(const args *asked, size_t fallback)
{
    return asked->operations != 0 ? asked->operations : fallback;
}

static bool plan_sizes(job *in, const char *scenario, const size_range *sizes,
                       size_t count, size_t streams)
{
    const args *asked = in->asked;

    if (asked->size_count > 0) {
        sizes = asked->sizes;
        count = asked->size_count;
    }
    for (size_t i = 0; i < count; i++) {
        if (!add_plan(in,
                      plan_pairs(scenario, sizes[i].most, asked->live,
                                 operations_of(asked, OPERATIONS), streams))) {
            return false;
        }
    }
    return true;
}

static bool plan_mixes(job *in)
{
    const args *asked = in->asked;
    size_t operations = operations_of(asked, OPERATIONS);
    size_t count = asked->size_count > 0 ? asked->size_count
                                         : sizeof(mixes) / sizeof(mixes[0]);

    for (size_t i = 0; i < count; i++) {
        size_range sizes =
            asked->size_count > 0 ? asked->sizes[i] : mixes[i].sizes;
        size_t live = asked->size_count > 0 ? mixes[0].live : mixes[i].live;

        if (asked->live != 0) {
            live = asked->live;
        }
        if (!add_plan(in, plan_mix("mix", sizes.least, sizes.most, live,
                                   operations, 1, asked->seed))) {
            return false;
        }
    }
    return true;
}

static bool plan_threads(job *in)
{
    static const size_t usual[] = {1, 2, 4, 8, 16};
    const args *asked = in->asked;
    const size_t *counts = asked->thread_count > 0 ? asked->threads : usual;
    size_t count = asked->thread_count > 0 ? asked->thread_count
                                           : sizeof(usual) / sizeof(usual[0]);
    size_range sizes =
        asked->size_count > 0 ? asked->sizes[0] : mixes[0].sizes;

    for (size_t i = 0; i < count; i++) {
        size_t operations = OPERATIONS / counts[i];

        operations =
            operations < LEAST_OPERATIONS ? LEAST_OPERATIONS : operations;
        if (!add_plan(in, plan_mix("threads", sizes.least, sizes.most,
                                   asked->live != 0 ? asked->live : 128,
                                   operations_of(asked, operations), counts[i],
                                   asked->seed))) {
            return false;
        }
    }
    return true;
}

static bool plan_replays(job *in)
{
    const args *asked = in->asked;
    const char *name = args_scenario_name(asked->what);
    replay_options options = {.scenario = name != NULL ? name : "replay",
                              .streams = asked->streams,
                              .threads = asked->threads_as_logged,
                              .legacy = asked->legacy_default};

    for (size_t i = 0; i < in->trace_count; i++) {
        if (!add_plan(in, plan_replay(in->traces[i], &options))) {
            return false;
        }
    }
    return true;
}

static bool plan_checks(job *in)
{
    const args *asked = in->asked;
    const size_range *sizes =
        asked->size_count > 0 ? asked->sizes : &mixes[0].sizes;
    size_t count = asked->size_count > 0 ? asked->size_count : 1;

    for (size_t i = 0; i < count; i++) {
        if (!add_plan(in,
                      plan_contents(sizes[i].least, sizes[i].most,
                                    asked->live != 0 ? asked->live : 64,
                                    operations_of(asked, CONTENTS_OPERATIONS),
                                    asked->streams != 0 ? asked->streams : 4,
                                    asked->seed))) {
            return false;
        }
    }
    return true;
}

bool job_make_plans(job *in)
{
    const args *asked = in->asked;

    switch (asked->what) {
    case SCENARIO_PAIR:
        return plan_sizes(in, "pair", pair_sizes,
                          sizeof(pair_sizes) / sizeof(pair_sizes[0]), 1);
    case SCENARIO_STREAMS:
        return plan_sizes(in, "streams", &pair_sizes[2], 1,
                          asked->streams != 0 ? asked->streams : 8);
    case SCENARIO_MIX:
        return plan_mixes(in);
    case SCENARIO_THREADS:
        return plan_threads(in);
    case SCENARIO_MAIN:
    case SCENARIO_REPLAY:
    case SCENARIO_BUDGET:
    case SCENARIO_GROWN:
    case SCENARIO_LAYOUT:
        return plan_replays(in);
    case SCENARIO_CONTENTS:
        return plan_checks(in);
    case SCENARIO_HELP_STACKS:
    case SCENARIO_LIST:
    case SCENARIO_COUNT:
        break;
    }
    return false;
}

static bool add_contender(job *in, contender *made)
{
    args *asked = in->asked;

    if (made == NULL) {
        return false;
    }
    asked->contenders[asked->contender_count++] = made;
    return true;
}

static bool add_stack(job *in, const char *text)
{
    either buffers = in->asked->buffers;

    return (buffers == EITHER_ON ||
            add_contender(in, contender_stack(text, false))) &&
           (buffers == EITHER_OFF ||
            add_contender(in, contender_stack(text, true)));
}

/* The main job's third stack writes a log, into a file that goes again. */
static bool add_logging_stack(job *in)
{
    const char *folder = getenv("TMPDIR");
    char text[sizeof(in->log) + 128];
    contender *last;
    int file;

    if (folder == NULL || strpbrk(folder, "\"\\") != NULL ||
        snprintf(in->log, sizeof(in->log), "%s/cucoremr-XXXXXX", folder) >=
            (int)sizeof(in->log) / 2) {
        (void)strcpy(in->log, "/tmp/cucoremr-XXXXXX");
    }
    file = mkstemp(in->log);
    if (file < 0) {
        perror("cucoremr-bench: a temporary file");
        in->log[0] = '\0';
        return false;
    }
    (void)close(file);
    (void)snprintf(text, sizeof(text),
                   strpbrk(in->log, " \t|{}=") != NULL
                       ? "logging file=\"%s\" | limiting bytes=12GiB | "
                         "device_pool"
                       : "logging file=%s | limiting bytes=12GiB | "
                         "device_pool",
                   in->log);
    if (!add_stack(in, text)) {
        return false;
    }
    /* Where the file is means nothing to anybody. */
    last = in->asked->contenders[in->asked->contender_count - 1];
    free(last->name);
    last->name = strdup("logging file=... | limiting bytes=12GiB | "
                        "device_pool");
    return last->name != NULL;
}

bool job_make_contenders(job *in)
{
    const args *asked = in->asked;
    bool good;

    if (asked->contender_count > 0) {
        return true;
    }
    /* Only pools say what is where. */
    if (asked->what == SCENARIO_LAYOUT) {
        return add_stack(in, "pool | virtual") &&
               add_stack(in, "pool | device_plain");
    }
    good = add_stack(in, "device_pool") &&
           add_stack(in, "stream_ordered | device_plain");
    if (asked->what == SCENARIO_MAIN) {
        return good && add_stack(in, "pool | virtual") &&
               add_logging_stack(in);
    }
    /* Replaying with it takes minutes on a GPU. */
    if (!args_takes_traces(asked->what) && asked->what != SCENARIO_CONTENTS) {
        good = good && add_contender(in, contender_peer("driver"));
    }
    return good && add_contender(in, contender_peer("driver-pool"));
}
