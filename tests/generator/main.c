/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cucoremr-generate: random programs over stacks of resources, on the
 * simulated driver. Every program is correct, whatever it does; so whatever
 * goes wrong is the resource's fault (or the library's, the simulator's, or
 * that of this program). Speaks TAP; a failing program is shrunk and printed
 * as a script that --script runs again.
 */
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/generator/planted.h"
#include "tests/generator/shrink.h"
#include "tests/generator/trial.h"
#include "tests/support/tap.h"

#define MOST_STACKS 64
#define FIRST_SEEDS 1000u /* so many at least, whatever the time */
#define SHRINK_TRIES 1500u
#define SHRINK_TRIES_SLOW 20u /* where each takes long */

typedef struct subject {
    const char *stack;
    int patient;
    uint64_t seeds;
    uint64_t done;
    uint64_t left_out;
    uint64_t allocations;
    uint64_t checks;
    int failed;
} subject;

static const subject usual[] = {
    {.stack = "device_pool"},
    {.stack = "device_pool own=yes reuse=none"},
    {.stack = "stream_ordered | device_plain", .patient = 1},
    {.stack = "stream_ordered keep=64KiB | device_pool"},
    {.stack = "stream_ordered | limiting bytes=256KiB | device_plain",
     .patient = 1},
    {.stack = "stream_ordered | legacy_pinned", .patient = 1},
    {.stack = "stream_ordered | legacy_pinned access=stream", .patient = 1},
    {.stack = "logging file=/dev/null | limiting bytes=512KiB | device_pool"},
    {.stack = "limiting bytes=1MiB | logging file=/dev/null flush=yes | "
              "stream_ordered | stream_ordered | device_plain"},
    {.stack = "stream_ordered | device_pool device=1"},
    {.stack = "device_plain"},
    {.stack = "legacy_pinned"},
    {.stack = "virtual"},
    {.stack = "stream_ordered | virtual", .patient = 1},
    {.stack = "limiting bytes=64MiB | virtual handle=2MiB"},
    {.stack = "host"},
    {.stack = "stream_ordered | host"},
    {.stack = "subpool segment=64KiB | stream_ordered | device_plain"},
    {.stack = "subpool segment=16KiB | limiting bytes=512KiB | device_plain",
     .patient = 1},
    {.stack = "subpool | legacy_pinned"},
    {.stack = "subpool | device_pool device=1"},
    {.stack = "device_pool guard=no"},
    {.stack = "stream_ordered keep=16KiB | legacy_pinned access=stream"},
    {.stack = "logging file=/dev/null columns=device+alignment+chosen+latency "
              "| stream_ordered | device_pool own=yes maximum=64MiB"},
    {.stack = "limiting bytes=256KiB | host"},
    {.stack = "pool | device_plain"},
    {.stack = "pool | device_pool"},
    {.stack = "pool | legacy_pinned"},
    {.stack = "pool reuse=finished | device_plain"},
    {.stack = "pool | virtual"},
    {.stack = "pool | limiting bytes=512KiB | device_plain", .patient = 1},
    {.stack = "pool | limiting bytes=8MiB | virtual handle=2MiB",
     .patient = 1},
    {.stack = "tracking | pool | tracking | device_plain"},
    {.stack = "statistics | pool | statistics peaks=exact | device_plain"},
    {.stack = "pool hard=1MiB | legacy_pinned access=stream", .patient = 1},
};

static struct {
    subject subjects[MOST_STACKS];
    size_t count;
    uint64_t first_seed;
    uint64_t last_seed;
    unsigned seconds;
    int soak; /* until stopped */
    unsigned operations;
    unsigned threads;
    int free_running; /* -1: now and then */
    int order;        /* the same */
    int patient;
    int verbose;
} options = {
    .first_seed = 1,
    .last_seed = UINT64_MAX,
    .seconds = 40,
    .operations = 90,
    .free_running = -1,
    .order = -1,
};

static double now(void)
{
    struct timespec at;

    (void)clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static void print_script(const program *p)
{
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    char *line;
    char *rest;

    if (memory == NULL) {
        tap_bail_out("no memory");
    }
    program_print(p, memory);
    (void)fclose(memory);
    for (rest = text; (line = strsep(&rest, "\n")) != NULL && *line != '\0';) {
        tap_diag("%s", line);
    }
    free(text);
}

static void tell(const trial *t)
{
    char where[32] = "the end";

    if (t->op != OP_FINISH) {
        (void)snprintf(where, sizeof(where), "operation %u", t->op + 1);
    }
    tap_diag("%s at %s: %s", fault_name(t->fault), where, t->text);
    if (t->said[0] != '\0' && t->fault != FAULT_ORDER) {
        tap_diag("%s", t->said);
    }
}

static void report_failure(program *p, trial *t)
{
    int slow = t->fault == FAULT_HANG;
    size_t before = p->count;

    tap_diag("stack %s, seed %" PRIu64 ":", p->stack, p->seed);
    tell(t);
    if (t->fault != FAULT_PROGRAM) {
        shrink(p, t, slow ? SHRINK_TRIES_SLOW : SHRINK_TRIES);
        tap_diag("%zu operations, shrunk to %zu, which do:", before, p->count);
        tell(t);
        print_script(p);
    }
}

static void run_seed(program *p, subject *s, uint64_t seed)
{
    trial t;
    int good;

    memset(p, 0, sizeof(*p));
    (void)snprintf(p->stack, sizeof(p->stack), "%s", s->stack);
    p->threads = options.threads;
    p->patient = s->patient | options.patient;
    p->order = options.order;
    p->free_running =
        options.free_running >= 0 ? options.free_running : seed % 5 == 0;
    program_make(p, seed, options.operations);
    good = trial_run(p, &t);
    s->seeds++;
    s->done += t.done;
    s->left_out += t.left_out;
    s->allocations += t.allocations;
    s->checks += t.checks;
    if (options.verbose) {
        tap_diag("%s, seed %" PRIu64 ": %" PRIu64 " operations, %" PRIu64
                 " left out, %" PRIu64 " allocations, %" PRIu64 " checks",
                 s->stack, seed, t.done, t.left_out, t.allocations, t.checks);
    }
    if (!good) {
        s->failed = 1;
        report_failure(p, &t);
    }
}

/* Told to stop: the figures so far are still given. */
static volatile sig_atomic_t stopped;

static void stop(int signal)
{
    (void)signal;
    stopped = 1;
}

/* A seed for each stack, then the next one. Returns how many ran. */
static uint64_t run_seeds(program *p)
{
    double end = now() + options.seconds;
    uint64_t seed = options.first_seed;
    uint64_t ran = 0;
    int bounded = options.last_seed != UINT64_MAX;

    (void)signal(SIGINT, stop);
    (void)signal(SIGTERM, stop);
    for (; seed <= options.last_seed && !stopped; seed++) {
        size_t i;
        int any = 0;

        for (i = 0; i < options.count && !stopped; i++) {
            if (!options.subjects[i].failed) {
                run_seed(p, &options.subjects[i], seed);
                ran++;
                any = 1;
            }
        }
        if (!any ||
            (!options.soak && !bounded && now() > end && ran >= FIRST_SEEDS)) {
            break;
        }
        if (options.soak && seed % 1000 == 0) {
            tap_diag("%" PRIu64 " programs", ran);
        }
    }
    return ran;
}

/* Those of the usual stacks whose kinds are there. */
static void add_usual(void)
{
    size_t i;

    for (i = 0; i < sizeof(usual) / sizeof(usual[0]); i++) {
        if (trial_knows(usual[i].stack)) {
            options.subjects[options.count++] = usual[i];
        } else {
            tap_skip("%s: there is no such kind", usual[i].stack);
        }
    }
}

static void judge(uint64_t ran)
{
    size_t i;

    for (i = 0; i < options.count; i++) {
        const subject *s = &options.subjects[i];

        tap_ok(!s->failed,
               "%s: %" PRIu64 " programs, %" PRIu64 " operations, %" PRIu64
               " allocations, %" PRIu64 " comparisons",
               s->stack, s->seeds, s->done - s->left_out, s->allocations,
               s->checks);
    }
    tap_diag("%" PRIu64 " programs from seed %" PRIu64 " on", ran,
             options.first_seed);
}

static void run_script(program *p, const char *path)
{
    const char *why = NULL;
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
    unsigned line;
    trial t;

    if (file == NULL) {
        tap_bail_out("cannot read %s", path);
    }
    line = program_read(p, file, &why);
    if (file != stdin) {
        (void)fclose(file);
    }
    if (line != 0) {
        tap_bail_out("%s:%u: %s", path, line, why);
    }
    if (!tap_ok(trial_run(p, &t), "%s: %zu operations on %s", path, p->count,
                p->stack)) {
        tell(&t);
    } else if (options.verbose) {
        tap_diag("%" PRIu64 " operations, %" PRIu64 " left out", t.done,
                 t.left_out);
    }
}

static int usage(FILE *to, int status)
{
    (void)fprintf(
        to,
        "Usage: cucoremr-generate [OPTION]...\n"
        "Runs random programs over stacks of resources; speaks TAP.\n"
        "\n"
        "  --stack TEXT      run on this stack; may be repeated\n"
        "  --seeds A-B       programs from these seeds (1 on)\n"
        "  --seconds S       go on that long (40), and for 1000 programs\n"
        "  --soak            go on until stopped (by SIGINT, SIGTERM), from "
        "a\n"
        "                    seed of this moment\n"
        "  --operations N    of a program (90)\n"
        "  --threads N       of a program, 1 to 4 (by chance)\n"
        "  --free-running    threads run as they like (every fifth program)\n"
        "  --ordered         they never do\n"
        "  --order yes|no    check the order of accesses (in most programs)\n"
        "  --patient         out of memory only when no work is pending\n"
        "  --limit S         seconds that one program may take (20)\n"
        "  --script FILE     run the program of this file (-: the input)\n"
        "  --print SEED      print the program of a seed\n"
        "  --planted[=NAME]  find each mistake of the subpool, or that one; "
        "with\n"
        "                    --seeds 1-N count how many seeds show it\n"
        "  --verbose         a line for each program\n"
        "  --help            this text\n");
    return status;
}

static void add_stack(const char *text)
{
    if (options.count < MOST_STACKS) {
        options.subjects[options.count++] = (subject){.stack = text};
    }
}

static int read_seeds(const char *text)
{
    char *end;

    options.first_seed = strtoull(text, &end, 10);
    options.last_seed = options.first_seed;
    if (*end == '-') {
        options.last_seed = strtoull(end + 1, &end, 10);
    }
    return *end == '\0' && options.first_seed != 0 &&
           options.first_seed <= options.last_seed;
}

static void print_program(program *p, const char *text)
{
    memset(p, 0, sizeof(*p));
    (void)snprintf(p->stack, sizeof(p->stack), "%s",
                   options.count > 0 ? options.subjects[0].stack
                                     : usual[0].stack);
    p->threads = options.threads;
    p->free_running = options.free_running > 0;
    p->order = options.order;
    program_make(p, strtoull(text, NULL, 10), options.operations);
    program_print(p, stdout);
}

typedef enum task { RUN, SCRIPT, PRINT, PLANTED } task;

static const struct option long_options[] = {
    {"stack", required_argument, NULL, 's'},
    {"seeds", required_argument, NULL, 'd'},
    {"seconds", required_argument, NULL, 't'},
    {"soak", no_argument, NULL, 'k'},
    {"operations", required_argument, NULL, 'n'},
    {"threads", required_argument, NULL, 'T'},
    {"free-running", no_argument, NULL, 'f'},
    {"ordered", no_argument, NULL, 'o'},
    {"order", required_argument, NULL, 'O'},
    {"patient", no_argument, NULL, 'p'},
    {"limit", required_argument, NULL, 'l'},
    {"script", required_argument, NULL, 'S'},
    {"print", required_argument, NULL, 'P'},
    {"planted", optional_argument, NULL, 'b'},
    {"verbose", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

/* 0: it is none, or its argument is wrong. */
static int take_option(int option, task *what, const char **argument)
{
    switch (option) {
    case 's':
        add_stack(optarg);
        return 1;
    case 'd':
        return read_seeds(optarg);
    case 't':
        options.seconds = (unsigned)strtoul(optarg, NULL, 10);
        return 1;
    case 'k':
        options.soak = 1;
        options.first_seed = (uint64_t)time(NULL) * 1000000u;
        return 1;
    case 'n':
        options.operations = (unsigned)strtoul(optarg, NULL, 10);
        return options.operations > 0 &&
               options.operations <= PROGRAM_MOST_OPS - 8;
    case 'T':
        options.threads = (unsigned)strtoul(optarg, NULL, 10);
        return options.threads > 0 && options.threads <= PROGRAM_THREADS;
    case 'f':
        options.free_running = 1;
        return 1;
    case 'o':
        options.free_running = 0;
        return 1;
    case 'O':
        options.order = strcmp(optarg, "yes") == 0;
        return options.order || strcmp(optarg, "no") == 0;
    case 'p':
        options.patient = 1;
        return 1;
    case 'l':
        trial_limit = (unsigned)strtoul(optarg, NULL, 10);
        return 1;
    case 'v':
        options.verbose = 1;
        return 1;
    case 'S':
    case 'P':
    case 'b':
        *what = option == 'S' ? SCRIPT : option == 'P' ? PRINT : PLANTED;
        *argument = optarg;
        return 1;
    default:
        return 0;
    }
}

int main(int argc, char **argv)
{
    static program p;
    const char *argument = NULL;
    const char *reason = NULL;
    task what = RUN;
    int option;

    while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        if (!take_option(option, &what, &argument)) {
            return option == 'h' ? usage(stdout, 0) : usage(stderr, 2);
        }
    }
    if (optind < argc) {
        return usage(stderr, 2);
    }
    if (what == PRINT) {
        print_program(&p, argument);
        return 0;
    }
    if (trial_prepare(&reason) != 0) {
        tap_bail_out("%s", reason);
    }
    if (what == SCRIPT) {
        run_script(&p, argument);
    } else if (what == PLANTED) {
        planted_run(
            argument, options.operations, options.order,
            options.last_seed != UINT64_MAX ? (unsigned)options.last_seed : 0);
    } else {
        if (options.count == 0) {
            add_usual();
        }
        judge(run_seeds(&p));
    }
    return tap_finish();
}
