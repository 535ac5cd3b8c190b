/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/args.h"

#include <argp.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cucoremr/version.h>

#include "bench/units.h"
#include "bench/work.h"

/* All are made up before the clock starts. */
#define MAX_OPERATIONS 20000000u
#define MAX_THREADS 1024u
#define MAX_STREAMS 65535u

enum {
    KEY_STACK = 's',
    KEY_PEER = 'p',
    KEY_DRIVER = 'd',
    KEY_REPEAT = 'r',
    KEY_QUIET = 'q',
    KEY_LIST = 'l',
    KEY_JSON = 0x100,
    KEY_CSV,
    KEY_PLOT,
    KEY_LOG,
    KEY_SIZE,
    KEY_LIVE,
    KEY_THREADS,
    KEY_STREAMS,
    KEY_OPERATIONS,
    KEY_LIMIT,
    KEY_SEED,
    KEY_WRITE,
    KEY_REGISTERED,
    KEY_BUFFERS,
    KEY_DEVICE,
    KEY_LENIENT,
    KEY_DEFAULT_STREAM,
    KEY_IDLE,
    KEY_BUSY,
    KEY_SCALE,
    KEY_AT,
    KEY_DUMP
};

#define ON(name) (1u << SCENARIO_##name)
#define ON_MADE_UP                                                            \
    (ON(PAIR) | ON(MIX) | ON(THREADS) | ON(STREAMS) | ON(CONTENTS))
#define ON_TIMED                                                              \
    (ON(MAIN) | ON(PAIR) | ON(MIX) | ON(THREADS) | ON(STREAMS) | ON(REPLAY))
#define ON_MEMORY (ON(BUDGET) | ON(GROWN) | ON(LAYOUT))
#define ON_TRACES (ON(REPLAY) | ON_MEMORY)
#define ON_RUN (ON_TIMED | ON(CONTENTS) | ON_MEMORY)

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "What is compared (any number of either):", 1},
    {"stack", KEY_STACK, "TEXT", 0,
     "a stack of resources, such as 'limiting bytes=8GiB | device_pool'", 1},
    {"peer", KEY_PEER, "NAME", 0,
     "a peer that calls no code of the library: see --list", 1},
    {"buffers", KEY_BUFFERS, "yes|no|both", OPTION_ARG_OPTIONAL,
     "stacks through ccmr_buffer_create and _close (no; alone: yes)", 1},
    {"registered", KEY_REGISTERED, "yes|no|both", OPTION_ARG_OPTIONAL,
     "streams registered with the library (no; alone: yes)", 1},
    {NULL, 0, NULL, 0, "How it is run:", 2},
    {"driver", KEY_DRIVER, "cuda|sim|auto", 0,
     "which driver, or a driver library's path; auto, the default, takes "
     "CUDA's, and the simulated one where there is none",
     2},
    {"device", KEY_DEVICE, "N", 0, "which device (0)", 2},
    {"repeat", KEY_REPEAT, "N", 0,
     "repetitions, the contenders in turn (5; replay and threads: 3)", 2},
    {"operations", KEY_OPERATIONS, "N", 0,
     "operations of a pass at most (100000; contents: 4000)", 2},
    {"limit", KEY_LIMIT, "SECONDS", 0,
     "time of a pass at most, but for replay (0.2)", 2},
    {"seed", KEY_SEED, "N", 0, "of made-up sizes and orders (1)", 2},
    {NULL, 0, NULL, 0, "What is run:", 3},
    {"size", KEY_SIZE, "SIZE|MIN-MAX,...", 0,
     "pair, streams: block sizes; mix, threads, contents: ranges", 3},
    {"live", KEY_LIVE, "N", 0,
     "mix, threads, contents: blocks that are live on each thread; pair, "
     "streams: blocks that stay beside those (0)",
     3},
    {"threads", KEY_THREADS, "N,...|as-logged", 0,
     "threads: how many (1,2,4,8,16); replay: as-logged gives each logged "
     "thread "
     "one, still in the order of the log",
     3},
    {"streams", KEY_STREAMS, "N", 0,
     "streams (8), contents (4): how many; replay, budget, grown: fold the "
     "logged streams onto so many",
     3},
    {"write", KEY_WRITE, "all|none|SIZE", 0,
     "how much of each block is written, on its stream, in the pass that "
     "watches memory (all; 256 on the simulated driver)",
     3},
    {"idle", KEY_IDLE, NULL, 0,
     "budget, grown: the device has nothing to do, and frees are finished at "
     "once (budget's default)",
     3},
    {"busy", KEY_BUSY, "N", OPTION_ARG_OPTIONAL,
     "budget, grown: every block is written on its stream, and the host runs "
     "ahead (grown's default); N: operations that a simulated device is "
     "behind (1000)",
     3},
    {"default-stream", KEY_DEFAULT_STREAM, "created|legacy", 0,
     "replay: what stands for the logged default stream (created: a stream "
     "that synchronises with no other)",
     3},
    {"scale", KEY_SCALE, "N", 0,
     "replay, budget, grown: take all logged sizes N times (1)", 3},
    {"at", KEY_AT, "ROW|peak", 0,
     "layout: after which row of the log (peak: when most is live)", 3},
    {"lenient", KEY_LENIENT, NULL, 0,
     "replay: skip and count rows that cannot be right", 3},
    {"log", KEY_LOG, "OUT", 0,
     "write a log of the watched pass: it can be replayed (one stack)", 3},
    {NULL, 0, NULL, 0, "What is shown (OUT may be - for standard output):", 4},
    {"json", KEY_JSON, "OUT", 0, "results for programs", 4},
    {"csv", KEY_CSV, "OUT", 0, "results for spreadsheets", 4},
    {"plot", KEY_PLOT, "OUT", 0,
     "a picture, by gnuplot: OUT.svg, .png or .pdf; its data and script stay "
     "beside it",
     4},
    {"dump", KEY_DUMP, "OUT", 0,
     "layout: a line for each piece of memory, as ccmr_resource_dump()", 4},
    {"quiet", KEY_QUIET, NULL, 0, "no table, no progress", 4},
    {"list", KEY_LIST, NULL, 0, "list scenarios, peers and traces", 4},
    {0},
};

/* Scenarios where an option that is not for all means something. */
static const struct {
    int key;
    unsigned on;
    const char *name;
} limits[] = {
    {KEY_SIZE, ON_MADE_UP, "size"},
    {KEY_LIVE, ON_MADE_UP, "live"},
    {KEY_THREADS, ON(THREADS) | ON(REPLAY), "threads"},
    {KEY_STREAMS, ON(STREAMS) | ON(CONTENTS) | ON_TRACES, "streams"},
    {KEY_OPERATIONS, ON_MADE_UP, "operations"},
    {KEY_LIMIT, ON(PAIR) | ON(MIX) | ON(THREADS) | ON(STREAMS), "limit"},
    {KEY_SEED, ON(MIX) | ON(THREADS) | ON(CONTENTS), "seed"},
    {KEY_WRITE, ON_TIMED, "write"},
    {KEY_REPEAT, ON_TIMED, "repeat"},
    {KEY_REGISTERED, ON_RUN, "registered"},
    {KEY_BUFFERS, ON_RUN, "buffers"},
    {KEY_LENIENT, ON_TRACES, "lenient"},
    {KEY_SCALE, ON_TRACES, "scale"},
    {KEY_DEFAULT_STREAM, ON_TRACES, "default-stream"},
    {KEY_IDLE, ON_MEMORY, "idle"},
    {KEY_BUSY, ON_MEMORY, "busy"},
    {KEY_PLOT, ~ON(BUDGET), "plot"},
    {KEY_AT, ON(LAYOUT), "at"},
    {KEY_DUMP, ON(LAYOUT), "dump"},
    {KEY_JSON, ~ON(LAYOUT), "json"},
    {KEY_CSV, ~ON(LAYOUT), "csv"},
    {KEY_LOG, ON(REPLAY) | ON(PAIR) | ON(MIX) | ON(THREADS) | ON(STREAMS),
     "log"},
};

static const struct {
    const char *name;
    const char *help;
} scenarios[SCENARIO_COUNT] = {
    [SCENARIO_MAIN] = {NULL, NULL},
    [SCENARIO_PAIR] = {"pair", "allocate and free one size on one stream"},
    [SCENARIO_MIX] = {"mix", "free one of many live blocks at random, "
                             "allocate another; log-uniform sizes"},
    [SCENARIO_THREADS] = {"threads", "a small mix on each of several threads, "
                                     "with a stream each"},
    [SCENARIO_STREAMS] = {"streams", "pairs that go round several streams"},
    [SCENARIO_REPLAY] = {"replay", "what a log says: FILE, the name of a "
                                   "trace that comes with the bench, or all"},
    [SCENARIO_BUDGET] = {"budget", "the least memory that a log's program "
                                   "completes in; FILE as for replay"},
    [SCENARIO_GROWN] = {"grown", "the most memory that a log's program makes "
                                 "a stack take, unlimited; FILE as for "
                                 "replay"},
    [SCENARIO_LAYOUT] = {"layout", "what memory of a stack is where, after a "
                                   "part of a log; FILE as for replay"},
    [SCENARIO_CONTENTS] = {"contents", "fill blocks on several streams, copy "
                                       "them back, compare"},
    [SCENARIO_HELP_STACKS] = {"help-stacks", "what a stack text can name "
                                             "(with KIND: one resource)"},
    [SCENARIO_LIST] = {NULL, NULL},
};

bool args_takes_traces(scenario_id what)
{
    return (ON_TRACES >> what & 1u) != 0;
}

const char *args_scenario_name(scenario_id what)
{
    return scenarios[what].name;
}

const char *args_scenario_help(scenario_id what)
{
    return scenarios[what].help;
}

/* What the parser keeps beside what it makes. */
typedef struct reading {
    args *made;
    unsigned given; /* bit i: limits[i] */
    const char *stacks[ARGS_MAX];
    const char *peers[ARGS_MAX];
    /* In the order of the command line: 1 stack, 2 peer. */
    char order[ARGS_MAX];
    size_t order_count;
    size_t stack_count;
    size_t peer_count;
} reading;

static unsigned long number_of(struct argp_state *state, const char *name,
                               const char *text, unsigned long least,
                               unsigned long most)
{
    char *end;
    unsigned long value;

    errno = 0;
    value = strtoul(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || text[0] == '-' ||
        value < least || value > most) {
        argp_error(state, "--%s=%s: a number from %lu to %lu is expected",
                   name, text, least, most);
    }
    return value;
}

static uint64_t bytes_of(struct argp_state *state, const char *name,
                         const char *text, uint64_t least)
{
    char message[128];
    uint64_t bytes = 0;

    if (!units_parse_bytes(text, &bytes, message, sizeof(message))) {
        argp_error(state, "--%s: %s", name, message);
    }
    if (bytes < least || bytes > PTRDIFF_MAX) {
        argp_error(state, "--%s: '%s' is not a size that a block can have",
                   name, text);
    }
    return bytes;
}

/* The part of a list up to the next comma; NULL at the end. */
static char *next_of(struct argp_state *state, char **list)
{
    char *part = strsep(list, ",");

    if (part != NULL && *part == '\0') {
        argp_error(state, "a list has an empty place");
    }
    return part;
}

static void read_sizes(args *made, struct argp_state *state, const char *text)
{
    char *copy = strdup(text);
    char *rest = copy;
    char *part;

    made->size_count = 0;
    while ((part = next_of(state, &rest)) != NULL) {
        char *most = strchr(part, '-');
        size_range range;

        if (made->size_count == ARGS_MAX) {
            argp_error(state, "--size: too many sizes");
        }
        if (most != NULL) {
            *most++ = '\0';
        }
        range.least = bytes_of(state, "size", part, 1);
        range.most =
            most != NULL ? bytes_of(state, "size", most, 1) : range.least;
        if (range.most < range.least) {
            argp_error(state, "--size: %s-%s is no range", part, most);
        }
        made->sizes[made->size_count++] = range;
    }
    free(copy);
}

static void read_threads(args *made, struct argp_state *state,
                         const char *text)
{
    char *copy;
    char *rest;
    char *part;

    made->threads_as_logged = strcmp(text, "as-logged") == 0;
    made->thread_count = 0;
    if (made->threads_as_logged) {
        return;
    }
    copy = strdup(text);
    rest = copy;
    while ((part = next_of(state, &rest)) != NULL) {
        if (made->thread_count == ARGS_MAX) {
            argp_error(state, "--threads: too many numbers");
        }
        made->threads[made->thread_count++] =
            number_of(state, "threads", part, 1, MAX_THREADS);
    }
    free(copy);
}

static void read_limit(args *made, struct argp_state *state, const char *text)
{
    char *end;
    double seconds = strtod(text, &end);

    if (end == text || *end != '\0' || !(seconds > 0) || seconds > 3600) {
        argp_error(state, "--limit=%s: seconds above 0 are expected", text);
    }
    made->limit_ns = (uint64_t)(seconds * 1e9);
}

static either either_of(struct argp_state *state, const char *name,
                        const char *text)
{
    if (text == NULL || strcmp(text, "yes") == 0) {
        return EITHER_ON;
    }
    if (strcmp(text, "no") == 0) {
        return EITHER_OFF;
    }
    if (strcmp(text, "both") != 0) {
        argp_error(state, "--%s=%s: yes, no or both are expected", name, text);
    }
    return EITHER_BOTH;
}

static void read_write(args *made, struct argp_state *state, const char *text)
{
    made->write_said = true;
    if (strcmp(text, "all") == 0) {
        made->write_bytes = UINT64_MAX;
    } else if (strcmp(text, "none") == 0) {
        made->write_bytes = 0;
    } else {
        made->write_bytes = bytes_of(state, "write", text, 0);
    }
}

static void read_default_stream(args *made, struct argp_state *state,
                                const char *text)
{
    made->legacy_default = strcmp(text, "legacy") == 0;
    if (!made->legacy_default && strcmp(text, "created") != 0) {
        argp_error(state, "--default-stream=%s: created or legacy", text);
    }
}

static void note_order(reading *in, struct argp_state *state, char which,
                       const char *text)
{
    if (in->order_count == ARGS_MAX / 2) {
        argp_error(state, "too many stacks and peers");
    }
    in->order[in->order_count++] = which;
    if (which == 1) {
        in->stacks[in->stack_count++] = text;
    } else {
        in->peers[in->peer_count++] = text;
    }
}

static void read_word(args *made, struct argp_state *state, const char *word)
{
    if (state->arg_num == 0) {
        for (int i = 0; i < SCENARIO_COUNT; i++) {
            if (scenarios[i].name != NULL &&
                strcmp(scenarios[i].name, word) == 0) {
                made->what = (scenario_id)i;
                return;
            }
        }
        argp_error(state, "unknown scenario '%s' (see --list)", word);
    }
    if (made->file_count == ARGS_MAX) {
        argp_error(state, "too many files");
    }
    made->files[made->file_count++] = word;
}

/* Options that say how logs are taken. */
static error_t read_log_option(int key, char *text, struct argp_state *state,
                               args *made)
{
    switch (key) {
    case KEY_SCALE:
        made->scale = number_of(state, "scale", text, 1, UINT32_MAX);
        return 0;
    case KEY_IDLE:
        made->idle = true;
        return 0;
    case KEY_BUSY:
        made->busy = true;
        if (text != NULL) {
            made->behind = number_of(state, "busy", text, 1, 1000000000);
        }
        return 0;
    case KEY_LENIENT:
        made->lenient = true;
        return 0;
    case KEY_AT:
        made->at = strcmp(text, "peak") == 0
                       ? 0
                       : number_of(state, "at", text, 1, UINT32_MAX);
        return 0;
    case KEY_DEFAULT_STREAM:
        read_default_stream(made, state, text);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* Options that say how much of what is run. */
static error_t read_amount(int key, char *text, struct argp_state *state,
                           args *made)
{
    switch (key) {
    case KEY_SIZE:
        read_sizes(made, state, text);
        return 0;
    case KEY_LIVE:
        made->live = number_of(state, "live", text, 1, 100000000);
        return 0;
    case KEY_THREADS:
        read_threads(made, state, text);
        return 0;
    case KEY_STREAMS:
        made->streams = number_of(state, "streams", text, 1, MAX_STREAMS);
        return 0;
    case KEY_OPERATIONS:
        made->operations =
            number_of(state, "operations", text, 1, MAX_OPERATIONS);
        return 0;
    case KEY_REPEAT:
        made->repeat = (unsigned)number_of(state, "repeat", text, 1, 100000);
        return 0;
    case KEY_LIMIT:
        read_limit(made, state, text);
        return 0;
    case KEY_SEED:
        made->seed = number_of(state, "seed", text, 0, ULONG_MAX);
        return 0;
    case KEY_WRITE:
        read_write(made, state, text);
        return 0;
    default:
        return read_log_option(key, text, state, made);
    }
}

/* Options that say what, where, and what comes out. */
static error_t read_rest(int key, char *text, struct argp_state *state,
                         reading *in)
{
    args *made = in->made;

    switch (key) {
    case KEY_STACK:
        note_order(in, state, 1, text);
        return 0;
    case KEY_PEER:
        note_order(in, state, 2, text);
        return 0;
    case KEY_DRIVER:
        made->driver = text;
        return 0;
    case KEY_DEVICE:
        made->device = (int)number_of(state, "device", text, 0, INT_MAX);
        return 0;
    case KEY_JSON:
        made->json = text;
        return 0;
    case KEY_CSV:
        made->csv = text;
        return 0;
    case KEY_PLOT:
        made->plot = text;
        return 0;
    case KEY_DUMP:
        made->dump = text;
        return 0;
    case KEY_LOG:
        made->log = text;
        return 0;
    case KEY_REGISTERED:
        made->registered = either_of(state, "registered", text);
        return 0;
    case KEY_BUFFERS:
        made->buffers = either_of(state, "buffers", text);
        return 0;
    case KEY_QUIET:
        made->quiet = true;
        return 0;
    case KEY_LIST:
        made->what = SCENARIO_LIST;
        return 0;
    default:
        return read_amount(key, text, state, made);
    }
}

static void add(args *made, struct argp_state *state, contender *one,
                const char *name)
{
    if (one == NULL) {
        argp_error(state, "unknown peer '%s' (see --list)", name);
    }
    made->contenders[made->contender_count++] = one;
    if (made->what == SCENARIO_BUDGET && !contender_has_budget(one)) {
        argp_error(state, "--peer=%s: no budget can be set for it", name);
    }
}

/* Contenders in the order of the command line; buffers double stacks. */
static void make_contenders(reading *in, struct argp_state *state)
{
    args *made = in->made;
    const char **stack = in->stacks;
    const char **peer = in->peers;

    for (size_t i = 0; i < in->order_count; i++) {
        if (in->order[i] == 2) {
            add(made, state, contender_peer(*peer), *peer);
            peer++;
            continue;
        }
        if (made->buffers != EITHER_ON) {
            add(made, state, contender_stack(*stack, false), *stack);
        }
        if (made->buffers != EITHER_OFF) {
            add(made, state, contender_stack(*stack, true), *stack);
        }
        stack++;
    }
}

/* What was said must mean something, all of it. */
static void check_all(reading *in, struct argp_state *state)
{
    const args *made = in->made;
    const char *name = scenarios[made->what].name;
    bool files =
        args_takes_traces(made->what) || made->what == SCENARIO_HELP_STACKS;

    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        if ((in->given >> i & 1u) != 0 &&
            (limits[i].on >> made->what & 1u) == 0) {
            argp_error(state, "--%s means nothing %s%s", limits[i].name,
                       name != NULL ? "with " : "without a scenario",
                       name != NULL ? name : "");
        }
    }
    if (made->file_count > 0 && !files) {
        const char *word = made->files[0];
        bool value = strcmp(word, "yes") == 0 || strcmp(word, "no") == 0 ||
                     strcmp(word, "both") == 0;

        argp_error(state, "%s takes no '%s'%s", name, word,
                   value ? " (an option's value follows '=', as in "
                           "--registered=both)"
                         : "");
    }
    if (args_takes_traces(made->what) && made->file_count == 0) {
        argp_error(state,
                   "%s needs a FILE, or the name of a trace (see --list), or "
                   "'all'",
                   name);
    }
    if (made->what == SCENARIO_REPLAY && made->thread_count > 0) {
        argp_error(state, "replay runs one thread, or --threads=as-logged");
    }
    if (made->what == SCENARIO_THREADS && made->threads_as_logged) {
        argp_error(state, "threads takes numbers of threads");
    }
    if (made->log != NULL &&
        (in->stack_count != 1 || in->peer_count != 0 ||
         made->buffers == EITHER_BOTH || made->registered == EITHER_BOTH)) {
        argp_error(state, "--log needs exactly one --stack, and nothing else "
                          "to compare it with");
    }
    if (made->what == SCENARIO_MAIN && made->buffers != EITHER_OFF &&
        in->stack_count == 0) {
        argp_error(state, "--buffers needs a --stack");
    }
}

static error_t read_one(int key, char *text, struct argp_state *state)
{
    reading *in = state->input;

    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        if (limits[i].key == key) {
            in->given |= 1u << i;
        }
    }
    if (key == ARGP_KEY_ARG) {
        read_word(in->made, state, text);
        return 0;
    }
    if (key == ARGP_KEY_END) {
        check_all(in, state);
        make_contenders(in, state);
        return 0;
    }
    return read_rest(key, text, state, in);
}

static void print_version(FILE *stream, struct argp_state *state)
{
    (void)state;
    (void)fprintf(stream, "cucoremr-bench %s\n", ccmr_version_text());
}

void args_read(args *made, int argc, char **argv)
{
    static const struct argp parser = {
        options,
        read_one,
        "[SCENARIO [FILE...]]",
        "Compare stacks of libcucoremr's resources, and peers, on made-up "
        "loads and on the logs of real programs. Without a scenario it shows "
        "its main job: a recorded training run on four stacks."
        "\vExit status: 0 fine, 1 an operation or a file failed, 2 wrong "
        "usage. cucoremr-bench(1) says what the figures mean.",
        NULL,
        NULL,
        NULL};
    reading in = {.made = made};

    memset(made, 0, sizeof(*made));
    made->driver = "auto";
    made->limit_ns = 200000000;
    made->seed = 1;
    made->behind = WORK_BEHIND;
    argp_program_version_hook = print_version;
    argp_err_exit_status = 2;
    (void)argp_parse(&parser, argc, argv, 0, NULL, &in);
}

void args_free(args *gone)
{
    for (size_t i = 0; i < gone->contender_count; i++) {
        contender_free(gone->contenders[i]);
    }
    memset(gone, 0, sizeof(*gone));
}
