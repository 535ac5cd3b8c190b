/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fidelity: what a CUDA driver answers, fact by fact.
 *
 *     fidelity --driver cuda|sim --record [TOPIC...]
 *         print the facts, with a header
 *     fidelity --driver cuda|sim --record --expect FILE TOPIC...
 *         print a recorded file with these topics observed anew
 *     fidelity --driver cuda|sim [--expect FILE] [TOPIC...]
 *         compare them with a recorded file; prints TAP
 *
 * A fact of which the file says nothing is skipped, since a new case needs a
 * real driver to be recorded, unless it tells of a crash or the like. A fact
 * that the file has and the driver hasn't fails.
 *
 * Each topic runs in a process of its own (this program again, with --child),
 * so that a crash, a hang or a ruined context costs one case. The child writes
 * facts to its standard output, and lines that start with '@' to its parent:
 * "@case NAME" before each case, "@done" after the last, "@reason TEXT" where
 * it cannot start.
 */
#include "tests/fidelity/facts.h"
#include "tests/fidelity/second.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    SETUP_LIMIT_MS = 30000,
    RUN_LIMIT_MS = 170000,
    TOPIC_LIMIT_MS = 25000,
    RESTARTS_MAX = 40,
    EXIT_RUINED = 3,
    EXIT_SETUP = 4,
    LINE_MAX_BYTES = 512,
};

static const struct fidelity_topic *const topics[] = {
    &init_topic,
    &device_topic,
    &context_topic,
    &plain_topic,
    &pinned_topic,
    &pool_topic,
    &reuse_topic,
    &drain_topic,
    &stream_topic,
    &event_topic,
    &context_event_topic,
    &capture_topic,
    &pointer_topic,
    &copy_topic,
    &plainly_topic,
    &no_context_topic,
    &other_context_topic,
    &held_topic,
    &held_nonblocking_topic,
    &capture_global_topic,
    &capture_thread_topic,
    &capture_relaxed_topic,
    &capture_nonblocking_topic,
    &capture_guarded_topic,
    &exit_topic,
    &forked_topic,
    &in_callback_topic,
    &virtual_topic,
    &mapping_topic,
    &access_topic,
    &sharing_topic,
    &pool_sharing_topic,
    &ipc_topic,
    &managed_topic,
    &graph_topic,
    &graph_memory_topic,
    &object_topic,
    &more_plainly_topic,
    &more_no_context_topic,
    &more_other_context_topic,
    &more_held_topic,
    &more_held_nonblocking_topic,
    &more_capture_global_topic,
    &more_capture_thread_topic,
    &more_capture_relaxed_topic,
    &more_capture_nonblocking_topic,
    &more_capture_guarded_topic,
    &more_forked_topic,
    &more_in_callback_topic,
};

struct options {
    const char *driver;
    const char *expect;
    const char *child;
    const char *after;
    const char *second; /* an errand, see second.h */
    bool record;
    char **names; /* topics asked for; none: all */
    int name_count;
};

/* ---- the child ---- */

static int fail_setup(const char *call, CUresult res)
{
    facts_note("@reason %s: %s", call, result_name(res));
    return EXIT_SETUP;
}

static int set_up(CUcontext *primary)
{
    CUdevice device;
    CUresult res;

    res = drv.cuInit(0);
    if (res != CUDA_SUCCESS) {
        return fail_setup("cuInit", res);
    }
    res = drv.cuDeviceGet(&device, 0);
    if (res != CUDA_SUCCESS) {
        return fail_setup("cuDeviceGet", res);
    }
    res = drv.cuDevicePrimaryCtxRetain(primary, device);
    if (res != CUDA_SUCCESS) {
        return fail_setup("cuDevicePrimaryCtxRetain", res);
    }
    res = drv.cuCtxSetCurrent(*primary);
    return res == CUDA_SUCCESS ? 0 : fail_setup("cuCtxSetCurrent", res);
}

static int describe_device(void)
{
    char name[128] = "";
    char kernel[64] = "";
    int version = 0;
    FILE *file = fopen("/sys/module/nvidia/version", "r");

    if (file != NULL) {
        if (fgets(kernel, sizeof kernel, file) == NULL) {
            kernel[0] = '\0';
        }
        kernel[strcspn(kernel, "\n")] = '\0';
        fclose(file);
    }
    drv.cuDeviceGetName(name, (int)sizeof name, 0);
    drv.cuDriverGetVersion(&version);
    facts_note("# device: %s", name);
    if (driver_simulation() != NULL || kernel[0] == '\0') {
        facts_note("# driver: %d", version);
    } else {
        facts_note("# driver: %d (%s)", version, kernel);
    }
    return 0;
}

static const struct fidelity_topic *find_topic(const char *name)
{
    for (size_t i = 0; i < FIDELITY_COUNT(topics); i++) {
        if (strcmp(topics[i]->name, name) == 0) {
            return topics[i];
        }
    }
    return NULL;
}

/* Returns false if the context, or the driver, did not survive the case. */
static bool run_case(const struct fidelity_topic *topic,
                     const struct fidelity_case *each, CUcontext primary)
{
    CUresult res = CUDA_SUCCESS;

    facts_note("@case %s", each->name);
    facts_begin(topic->name, each->name);
    if (topic->each != NULL) {
        topic->each(each);
    } else {
        each->run();
    }
    if (!topic->bare) {
        drv.cuCtxSetCurrent(primary);
        res = drv.cuCtxSynchronize();
        if (res != CUDA_SUCCESS) {
            fact("outcome", "leaves the context with %s", result_name(res));
        }
    }
    return res == CUDA_SUCCESS && !facts_ruined();
}

static int run_child(const struct options *options)
{
    const struct fidelity_topic *topic = find_topic(options->child);
    const struct fidelity_case *each;
    const char *reason;
    CUcontext primary = NULL;
    int ret;

    if (topic != NULL && topic->prepare != NULL) {
        topic->prepare();
    }
    reason = driver_load(options->driver);
    if (reason != NULL) {
        facts_note("@reason %s", reason);
        return EXIT_SETUP;
    }
    if (topic == NULL || !topic->bare) {
        ret = set_up(&primary);
        if (ret != 0) {
            return ret;
        }
    }
    if (topic == NULL) {
        return describe_device();
    }
    each = topic->cases;
    if (options->after != NULL) {
        while (each->name != NULL && strcmp(each->name, options->after) != 0) {
            each++;
        }
        each += each->name != NULL;
    }
    for (; each->name != NULL; each++) {
        if (!run_case(topic, each, primary)) {
            /* Without the driver's own end, which may spin. */
            _exit(EXIT_RUINED);
        }
    }
    facts_note("@done");
    return 0;
}

/* A second process of a case. */
static int run_second(const struct options *options)
{
    CUcontext primary = NULL;

    if (options->name_count != 2 || driver_load(options->driver) != NULL ||
        set_up(&primary) != 0) {
        return EXIT_SETUP;
    }
    return second_run(options->second, options->names[0], options->names[1]);
}

/* ---- lists of lines ---- */

struct lines {
    char **at;
    size_t count;
    size_t room;
};

static void lines_add(struct lines *lines, const char *text)
{
    if (lines->count == lines->room) {
        size_t room = lines->room == 0 ? 256 : 2 * lines->room;
        char **at = realloc(lines->at, room * sizeof *at);

        if (at == NULL) {
            perror("fidelity");
            exit(1);
        }
        lines->at = at;
        lines->room = room;
    }
    lines->at[lines->count] = strdup(text);
    if (lines->at[lines->count] == NULL) {
        perror("fidelity");
        exit(1);
    }
    lines->count++;
}

static void lines_free(struct lines *lines)
{
    for (size_t i = 0; i < lines->count; i++) {
        free(lines->at[i]);
    }
    free(lines->at);
}

/* Length of the key before " = ", or 0 where the line is no fact. */
static size_t key_length(const char *line)
{
    const char *equals = strstr(line, " = ");

    return line[0] == '#' || equals == NULL ? 0 : (size_t)(equals - line);
}

/* ---- the parent ---- */

/* How many cases were begun, in all topics. */
static size_t case_count;

/* One process that observes: where it is, and what it said. */
struct session {
    const struct options *options;
    const char *topic;
    struct lines *facts;
    char current[128]; /* the case it is in */
    char reason[LINE_MAX_BYTES];
    bool done;
    char line[LINE_MAX_BYTES];
    size_t length;
};

static long long now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void take_fact(struct session *session, const char *line)
{
    lines_add(session->facts, line);
    if (session->options->record) {
        puts(line);
        fflush(stdout);
    }
}

static void take_line(struct session *session, const char *line)
{
    if (strncmp(line, "@case ", 6) == 0) {
        case_count++;
        snprintf(session->current, sizeof session->current, "%.120s",
                 line + 6);
    } else if (strcmp(line, "@done") == 0) {
        session->done = true;
    } else if (strncmp(line, "@reason ", 8) == 0) {
        snprintf(session->reason, sizeof session->reason, "%.500s", line + 8);
    } else if (key_length(line) != 0 || line[0] == '#') {
        take_fact(session, line);
    }
}

static void take_bytes(struct session *session, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] == '\n') {
            session->line[session->length] = '\0';
            session->length = 0;
            take_line(session, session->line);
        } else if (session->length < sizeof session->line - 1) {
            session->line[session->length++] = bytes[i];
        }
    }
}

static pid_t start(const struct session *session, const char *after, int *fd)
{
    int ends[2];
    pid_t child;

    fflush(stdout);
    if (pipe(ends) != 0) {
        return -1;
    }
    child = fork();
    if (child < 0) {
        close(ends[0]);
        close(ends[1]);
        return -1;
    }
    if (child == 0) {
        setpgid(0, 0);
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        execl("/proc/self/exe", "fidelity", "--driver",
              session->options->driver, "--child", session->topic,
              after != NULL ? "--after" : (char *)NULL, after, (char *)NULL);
        _exit(127);
    }
    setpgid(child, child);
    close(ends[1]);
    *fd = ends[0];
    return child;
}

/* Read what the child says; false if it said nothing for too long. */
static bool listen_to(struct session *session, int fd, int case_limit_ms,
                      long long deadline)
{
    char bytes[4096];

    for (;;) {
        struct pollfd poll_fd = {fd, POLLIN, 0};
        long long left = deadline - now_ms();
        int limit =
            session->current[0] == '\0' ? SETUP_LIMIT_MS : case_limit_ms;
        ssize_t got;
        int ready;

        if (left <= 0) {
            return false;
        }
        ready = poll(&poll_fd, 1, left < limit ? (int)left : limit);
        if (ready < 0 && errno == EINTR) {
            continue;
        }
        if (ready <= 0) {
            return false;
        }
        got = read(fd, bytes, sizeof bytes);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return true;
        }
        take_bytes(session, bytes, (size_t)got);
    }
}

/* The end of a process that closed its output: give it time, then kill it. */
static bool reap(pid_t child, bool kill_now, int *status)
{
    const struct timespec pause = {0, 2000000};
    bool killed = false;

    for (int waited = 0; waitpid(child, status, WNOHANG) == 0; waited += 2) {
        if (!killed && (kill_now || waited > 5000)) {
            kill(-child, SIGKILL);
            killed = true;
        }
        nanosleep(&pause, NULL);
    }
    return killed;
}

static void note_outcome(struct session *session, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void note_outcome(struct session *session, const char *format, ...)
{
    char text[128];
    char line[LINE_MAX_BYTES];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    snprintf(line, sizeof line, "%s.%s.outcome = %s", session->topic,
             session->done              ? "end_of_process"
             : session->current[0] != 0 ? session->current
                                        : "setup",
             text);
    take_fact(session, line);
}

/*
 * Run one process of a topic. Returns true if another has to go on after
 * session->current.
 */
static bool run_process(struct session *session, const char *after,
                        int case_limit_ms, long long deadline)
{
    int status = 0;
    bool killed;
    int fd;
    pid_t child;

    session->current[0] = '\0';
    session->length = 0;
    child = start(session, after, &fd);
    if (child < 0) {
        note_outcome(session, "no process");
        return false;
    }
    killed =
        reap(child, !listen_to(session, fd, case_limit_ms, deadline), &status);
    close(fd);
    if (killed) {
        note_outcome(session, "hangs");
    } else if (WIFSIGNALED(status)) {
        note_outcome(session, "crashes");
    } else if (WEXITSTATUS(status) == EXIT_SETUP) {
        note_outcome(session, "%s", session->reason);
        return false;
    } else if (WEXITSTATUS(status) != 0 &&
               WEXITSTATUS(status) != EXIT_RUINED) {
        note_outcome(session, "exits with %d", WEXITSTATUS(status));
    }
    return !session->done && session->current[0] != '\0';
}

static void run_topic(const struct options *options,
                      const struct fidelity_topic *topic, struct lines *facts,
                      long long deadline)
{
    struct session session;
    char after[sizeof session.current];
    bool more;

    memset(&session, 0, sizeof session);
    session.options = options;
    session.topic = topic->name;
    session.facts = facts;
    if (now_ms() >= deadline) {
        note_outcome(&session, "out of time");
        return;
    }
    if (deadline > now_ms() + TOPIC_LIMIT_MS) {
        deadline = now_ms() + TOPIC_LIMIT_MS;
    }
    more = run_process(&session, NULL, topic->limit_ms, deadline);
    for (int i = 0; more && i < RESTARTS_MAX; i++) {
        if (now_ms() >= deadline) {
            break;
        }
        memcpy(after, session.current, sizeof after);
        more = run_process(&session, after, topic->limit_ms, deadline);
    }
    if (!session.done) {
        note_outcome(&session, "topic is incomplete");
    }
}

/* The header; fills `reason` where there is no such driver or device. */
static bool run_header(const struct options *options, struct lines *header,
                       char *reason, size_t room)
{
    struct session session;
    int status = 0;
    int fd;
    pid_t child;

    memset(&session, 0, sizeof session);
    session.options = options;
    session.topic = "header";
    session.facts = header;
    child = start(&session, NULL, &fd);
    if (child < 0) {
        snprintf(reason, room, "no process");
        return false;
    }
    reap(child,
         !listen_to(&session, fd, SETUP_LIMIT_MS, now_ms() + SETUP_LIMIT_MS),
         &status);
    close(fd);
    snprintf(reason, room, "%s",
             session.reason[0] != '\0' ? session.reason : "the driver fails");
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool asked_for(const struct options *options, const char *topic,
                      size_t length)
{
    for (int i = 0; i < options->name_count; i++) {
        if (strlen(options->names[i]) == length &&
            strncmp(options->names[i], topic, length) == 0) {
            return true;
        }
    }
    return options->name_count == 0;
}

/* What the topics that were asked for rest on. */
static void print_rules(const struct options *options)
{
    for (size_t i = 0; i < FIDELITY_COUNT(topics); i++) {
        if (asked_for(options, topics[i]->name, strlen(topics[i]->name))) {
            printf("# %s: %s\n", topics[i]->name, topics[i]->rests_on);
        }
    }
}

static void print_topic(const struct lines *recorded, const char *topic)
{
    size_t length = strlen(topic);

    for (size_t i = 0; i < recorded->count; i++) {
        if (strncmp(recorded->at[i], topic, length) == 0 &&
            recorded->at[i][length] == '.') {
            puts(recorded->at[i]);
        }
    }
}

/* Run the topics that were asked for; print what was recorded of others. */
static void run_topics(const struct options *options, struct lines *facts,
                       const struct lines *recorded)
{
    long long deadline = now_ms() + RUN_LIMIT_MS;

    for (size_t i = 0; i < FIDELITY_COUNT(topics); i++) {
        if (asked_for(options, topics[i]->name, strlen(topics[i]->name))) {
            run_topic(options, topics[i], facts, deadline);
        } else if (recorded != NULL) {
            print_topic(recorded, topics[i]->name);
        }
    }
}

/* ---- recording and comparing ---- */

static int read_expected(const char *path, struct lines *expected)
{
    char line[LINE_MAX_BYTES];
    FILE *file = fopen(path, "r");

    if (file == NULL) {
        fprintf(stderr, "fidelity: %s: %s\n", path, strerror(errno));
        return -1;
    }
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\r\n")] = '\0';
        if (key_length(line) != 0) {
            lines_add(expected, line);
        }
    }
    fclose(file);
    return 0;
}

static int record(const struct options *options)
{
    struct lines header = {NULL, 0, 0};
    struct lines facts = {NULL, 0, 0};
    struct lines recorded = {NULL, 0, 0};
    char reason[LINE_MAX_BYTES];
    char date[32];
    time_t now = time(NULL);
    struct tm utc;

    if (options->expect != NULL &&
        read_expected(options->expect, &recorded) != 0) {
        return 1;
    }
    puts("# SPDX-License-Identifier: Apache-2.0");
    puts("# What a driver answered to tests/fidelity; one fact a line.");
    if (!run_header(options, &header, reason, sizeof reason)) {
        fprintf(stderr, "fidelity: %s\n", reason);
        lines_free(&header);
        lines_free(&recorded);
        return 1;
    }
    strftime(date, sizeof date, "%Y-%m-%d", gmtime_r(&now, &utc));
    printf("# date: %s\n", date);
    run_topics(options, &facts, &recorded);
    fprintf(stderr, "fidelity: %zu cases, %zu facts\n", case_count,
            facts.count);
    lines_free(&header);
    lines_free(&facts);
    lines_free(&recorded);
    return 0;
}

static const char *find_key(const struct lines *lines, const char *line)
{
    size_t length = key_length(line) + 3; /* with the " = " */

    for (size_t i = 0; i < lines->count; i++) {
        if (strncmp(lines->at[i], line, length) == 0) {
            return lines->at[i];
        }
    }
    return NULL;
}

/* Whether any fact of the line's topic is recorded. */
static bool topic_is_recorded(const struct lines *expected, const char *line)
{
    size_t length = strcspn(line, ".") + 1;

    for (size_t i = 0; i < expected->count; i++) {
        if (strncmp(expected->at[i], line, length) == 0) {
            return true;
        }
    }
    return false;
}

/* One test a fact; returns how many failed. */
static size_t report(const struct options *options, const struct lines *facts,
                     const struct lines *expected)
{
    size_t tests = 0;
    size_t failed = 0;
    size_t known = 0;

    for (size_t i = 0; i < expected->count; i++) {
        const char *want = expected->at[i];
        const char *got = find_key(facts, want);
        int length = (int)key_length(want);
        bool ok = got != NULL && strcmp(got, want) == 0;

        if (!asked_for(options, want, strcspn(want, "."))) {
            continue;
        }
        printf("%sok %zu - %.*s\n", ok ? "" : "not ", ++tests, length, want);
        known += ok;
        if (!ok) {
            failed++;
            printf("# expected: %s\n# got:      %s\n", want + length + 3,
                   got == NULL ? "nothing" : got + length + 3);
        }
    }
    for (size_t i = 0; i < facts->count; i++) {
        const char *got = facts->at[i];
        int length = (int)key_length(got);

        if (find_key(expected, got) == NULL) {
            /* That a process failed tells of the program, where the topic
             * is recorded, without being recorded itself. */
            bool ok = length < 8 ||
                      strncmp(got + length - 8, ".outcome", 8) != 0 ||
                      !topic_is_recorded(expected, got);

            failed += !ok;
            printf("%sok %zu - %.*s%s%s\n", ok ? "" : "not ", ++tests, length,
                   got, ok ? " # SKIP was not recorded: " : "\n# got: ",
                   got + length + 3);
        }
    }
    printf("# %zu cases, %zu facts: %zu as recorded, %zu not, %zu not"
           " recorded\n",
           case_count, facts->count, known, failed, tests - known - failed);
    printf("1..%zu\n", tests);
    return failed;
}

static const char *default_expect(void)
{
    static char path[1024];
    const char *source = getenv("srcdir");

    snprintf(path, sizeof path, "%s/tests/fidelity/observed-h200.txt",
             source != NULL ? source : ".");
    return path;
}

static int compare(const struct options *options)
{
    struct lines header = {NULL, 0, 0};
    struct lines facts = {NULL, 0, 0};
    struct lines expected = {NULL, 0, 0};
    char reason[LINE_MAX_BYTES];
    int ret = 1;

    if (!run_header(options, &header, reason, sizeof reason)) {
        printf("1..0 # SKIP %s\n", reason);
        ret = 0;
    } else if (read_expected(options->expect != NULL ? options->expect
                                                     : default_expect(),
                             &expected) == 0) {
        for (size_t i = 0; i < header.count; i++) {
            puts(header.at[i]);
        }
        print_rules(options);
        run_topics(options, &facts, NULL);
        ret = report(options, &facts, &expected) == 0 ? 0 : 1;
    }
    lines_free(&header);
    lines_free(&facts);
    lines_free(&expected);
    return ret;
}

static int usage(void)
{
    fputs("usage: fidelity --driver cuda|sim [--record] [--expect FILE]"
          " [TOPIC...]\ntopics:",
          stderr);
    for (size_t i = 0; i < FIDELITY_COUNT(topics); i++) {
        fprintf(stderr, " %s", topics[i]->name);
    }
    fputs("\n", stderr);
    return 2;
}

int main(int argc, char **argv)
{
    struct options options;
    int i;

    memset(&options, 0, sizeof options);
    options.driver = getenv("CUCOREMR_DRIVER");
    for (i = 1; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        const char *name = argv[i];

        if (strcmp(name, "--record") == 0) {
            options.record = true;
            continue;
        }
        if (++i == argc) {
            return usage();
        }
        if (strcmp(name, "--driver") == 0) {
            options.driver = argv[i];
        } else if (strcmp(name, "--expect") == 0) {
            options.expect = argv[i];
        } else if (strcmp(name, "--child") == 0) {
            options.child = argv[i];
        } else if (strcmp(name, "--second") == 0) {
            options.second = argv[i];
        } else if (strcmp(name, "--after") == 0) {
            options.after = argv[i];
        } else {
            return usage();
        }
    }
    options.names = argv + i;
    options.name_count = argc - i;
    if (options.driver == NULL || (strcmp(options.driver, "cuda") != 0 &&
                                   strcmp(options.driver, "sim") != 0)) {
        return usage();
    }
    if (options.child != NULL) {
        return run_child(&options);
    }
    if (options.second != NULL) {
        return run_second(&options);
    }
    for (int name = 0; name < options.name_count; name++) {
        if (find_topic(options.names[name]) == NULL) {
            return usage();
        }
    }
    return options.record ? record(&options) : compare(&options);
}
