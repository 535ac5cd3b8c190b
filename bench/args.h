/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line.
 */
#ifndef CCMR_BENCH_ARGS_H
#define CCMR_BENCH_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/contender.h"

typedef enum scenario_id {
    SCENARIO_MAIN, /* no word was said */
    SCENARIO_PAIR,
    SCENARIO_MIX,
    SCENARIO_THREADS,
    SCENARIO_STREAMS,
    SCENARIO_REPLAY,
    SCENARIO_BUDGET,
    SCENARIO_GROWN,
    SCENARIO_LAYOUT,
    SCENARIO_CONTENTS,
    SCENARIO_HELP_STACKS,
    SCENARIO_LIST,
    SCENARIO_COUNT
} scenario_id;

/* One of two ways, or both in turn. */
typedef enum either { EITHER_OFF, EITHER_ON, EITHER_BOTH } either;

#define ARGS_MAX 64

typedef struct size_range {
    uint64_t least;
    uint64_t most;
} size_range;

/* What was asked for. Texts belong to the command line; contenders are made
 * for it and freed by args_free(). */
typedef struct args {
    scenario_id what;
    const char *files[ARGS_MAX]; /* or a kind's name, of help-stacks */
    size_t file_count;
    contender *contenders[ARGS_MAX];
    size_t contender_count;
    const char *driver;
    const char *json; /* NULL: not wanted */
    const char *csv;
    const char *plot;
    const char *dump;
    const char *log;
    size_range sizes[ARGS_MAX];
    size_t size_count;
    size_t threads[ARGS_MAX];
    size_t thread_count;
    bool threads_as_logged;
    size_t streams; /* 0: not said */
    size_t live;    /* 0: not said */
    size_t operations;
    unsigned repeat; /* 0: not said */
    uint64_t limit_ns;
    uint64_t seed;
    uint64_t scale; /* of logged sizes; 0: not said */
    uint64_t write_bytes;
    bool write_said;
    bool idle;
    bool busy;
    uint64_t behind; /* what busy is, on the simulated driver */
    either registered;
    either buffers;
    int device;
    bool lenient;
    uint64_t at; /* row of the log; 0: where most is live */
    bool legacy_default;
    bool quiet;
} args;

/**
 * Read the command line. Help and version are printed and end the program
 * with 0; what is wrong is said and ends it with 2.
 */
void args_read(args *made, int argc, char **argv);

/** Whether a scenario is about traces. */
bool args_takes_traces(scenario_id what);

/** Name of a scenario, as the command line has it. */
const char *args_scenario_name(scenario_id what);

/** What a scenario does, in one line. */
const char *args_scenario_help(scenario_id what);

void args_free(args *gone);

#endif /* CCMR_BENCH_ARGS_H */
