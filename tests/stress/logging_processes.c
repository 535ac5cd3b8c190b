/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logging when a process ends, is killed, or forks. The program itself never
 * uses the library: each case runs in a child. Field cases G1, G5.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cucoremr/cucoremr.h>

#include "tests/support/api.h"
#include "tests/support/puppet.h"
#include "tests/support/tap.h"

#define LEGACY CCMR_STREAM_LEGACY
#define HEADER "Thread,Time,Action,Pointer,Size,Stream\n"
#define KILLS 250

static char path[] = "/tmp/ccmr-logging-XXXXXX";
static puppet below;
static ccmr_resource *logged;

/* ---- in the child ---------------------------------------------------------- */

/* A child says what went wrong by its exit status. */
static void must(int condition, int code)
{
    if (!condition) {
        _exit(code);
    }
}

static void open_log(int flush, ccmr_log_sink sink)
{
    const ccmr_logging_options options = {
        .size = sizeof(options),
        .file = sink != NULL ? NULL : path,
        .sink = sink,
        .flush = flush,
    };
    ccmr_resource *upstream;

    puppet_init(&below);
    upstream = puppet_resource(&below);
    must(ccmr_logging_create(upstream, &options, &logged) == CCMR_SUCCESS, 90);
    ccmr_resource_release(upstream);
}

static void use(size_t bytes)
{
    void *ptr = NULL;

    must(ccmr_resource_allocate(logged, bytes, 0, LEGACY, &ptr) ==
             CCMR_SUCCESS,
         91);
    must(ccmr_resource_deallocate(logged, ptr, bytes, 0, LEGACY) ==
             CCMR_SUCCESS,
         92);
}

static void use_often(int times)
{
    int i;

    for (i = 0; i < times; i++) {
        use(64);
    }
}

static void *use_for_ever(void *argument)
{
    (void)argument;
    for (;;) {
        ccmr_status status;
        void *ptr = NULL;

        status = ccmr_resource_allocate(logged, 64, 0, LEGACY, &ptr);
        if (status == CCMR_ERROR_EXITING) {
            return NULL;
        }
        status = ccmr_resource_deallocate(logged, ptr, 64, 0, LEGACY);
        if (status == CCMR_ERROR_EXITING) {
            return NULL;
        }
    }
}

static void start_thread(void *(*run)(void *))
{
    pthread_t thread;

    must(pthread_create(&thread, NULL, run, NULL) == 0, 93);
    must(pthread_detach(thread) == 0, 93);
}

/* ---- in the parent ----------------------------------------------------------- */

/* Run a case in a child that ends by itself. Its exit status, or -1. */
static int run(void (*work)(void))
{
    pid_t child;
    int status;

    (void)truncate(path, 0);
    child = fork();
    if (child == 0) {
        work();
        exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) {
        tap_bail_out("no child");
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Rows after the header; -1 if one is torn or not of six columns. */
static long count_rows(void)
{
    FILE *file = fopen(path, "r");
    char line[512];
    long count = -1;

    if (file == NULL) {
        tap_bail_out("%s is gone", path);
    }
    while (fgets(line, sizeof(line), file) != NULL) {
        int commas = 0;
        char *at;

        for (at = line; *at != '\0'; at++) {
            commas += *at == ',';
        }
        if (commas != 5 || at[-1] != '\n' ||
            (count < 0 && strcmp(line, HEADER) != 0)) {
            tap_diag("row %ld: %s", count, line);
            (void)fclose(file);
            return -1;
        }
        count++;
    }
    (void)fclose(file);
    return count;
}

static void sleep_us(long us)
{
    struct timespec time = {us / 1000000, us % 1000000 * 1000};

    (void)nanosleep(&time, NULL);
}

/* ---- the process ends --------------------------------------------------------- */

static void end_with_rows(void)
{
    open_log(0, NULL);
    use_often(100);
}

static void *end_here(void *argument)
{
    (void)argument;
    exit(0);
}

static void end_in_a_thread(void)
{
    end_with_rows();
    start_thread(end_here);
    for (;;) {
        (void)pause();
    }
}

static void end_while_others_work(void)
{
    open_log(0, NULL);
    start_thread(use_for_ever);
    start_thread(use_for_ever);
    sleep_us(20000);
}

static int stand_still(void *context, const char *rows, size_t length)
{
    (void)context;
    (void)rows;
    (void)length;
    for (;;) {
        (void)pause();
    }
    return 0;
}

static void *flush_it(void *argument)
{
    (void)argument;
    IGNORE(ccmr_logging_flush(logged));
    return NULL;
}

static void end_while_a_sink_stands(void)
{
    open_log(0, stand_still);
    use(64);
    start_thread(flush_it);
    sleep_us(20000);
}

static int end_inside(void *context, const char *rows, size_t length)
{
    (void)context;
    (void)rows;
    (void)length;
    exit(0);
}

static void end_from_the_sink(void)
{
    open_log(0, end_inside);
    use(64);
    IGNORE(ccmr_logging_flush(logged));
}

static double seconds(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void test_ends(void)
{
    double start;

    tap_is_int(run(end_with_rows), 0, "a process ends");
    tap_is_int(count_rows(), 200, "its rows are written");
    tap_is_int(run(end_in_a_thread), 0, "a process ends in a thread");
    tap_is_int(count_rows(), 200, "its rows are written");
    tap_is_int(run(end_while_others_work), 0,
               "a process ends while others log");
    tap_ok(count_rows() > 0, "its rows are written, and whole");
    start = seconds();
    tap_is_int(run(end_while_a_sink_stands), 0,
               "a process ends while a sink stands still");
    tap_is_int(run(end_from_the_sink), 0, "a process ends from its sink");
    tap_ok(seconds() - start < 10, "nobody waits for it long");
}

/* ---- the process forks ----------------------------------------------------------- */

/* The grandchild gets an answer, and ends like any program; `at_once` where a
 * search for leaks would miss the stacks of threads that it has not got. */
static int fork_and_end(int at_once)
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        void *ptr = NULL;

        must(ccmr_resource_allocate(logged, 64, 0, LEGACY, &ptr) ==
                 CCMR_ERROR_FORKED,
             80);
        must(ccmr_logging_flush(logged) == CCMR_ERROR_FORKED, 81);
        must(ccmr_resource_deallocate(logged, &status, 64, 0, LEGACY) ==
                 CCMR_ERROR_FORKED,
             82);
        ccmr_resource_release(logged);
        if (at_once) {
            _exit(7);
        }
        exit(7);
    }
    return child > 0 && waitpid(child, &status, 0) == child &&
           WIFEXITED(status) && WEXITSTATUS(status) == 7;
}

static void fork_with_rows(void)
{
    open_log(0, NULL);
    use_often(50);
    must(fork_and_end(0), 70);
    use_often(50);
    ccmr_resource_release(logged);
    must(below.destroyed, 71);
}

/* Others hold the log's locks at that time, now and then. */
static void fork_while_others_work(void)
{
    int i;

    open_log(0, NULL);
    start_thread(use_for_ever);
    for (i = 0; i < 20; i++) {
        must(fork_and_end(1), 70);
    }
}

/* A child that lives on does not keep the file locked. */
static void fork_and_reopen(void)
{
    pid_t child;

    open_log(0, NULL);
    child = fork();
    if (child == 0) {
        for (;;) {
            (void)pause();
        }
    }
    must(child > 0, 70);
    ccmr_resource_release(logged);
    open_log(0, NULL);
    use(64);
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
}

static void test_forks(void)
{
    tap_is_int(run(fork_with_rows), 0, "a process forks");
    tap_is_int(count_rows(), 200, "the child writes none of its rows");
    tap_is_int(run(fork_while_others_work), 0,
               "a process forks while others log");
    tap_ok(count_rows() > 0, "its rows are whole");
    tap_is_int(run(fork_and_reopen), 0, "a child lives longer than the log");
    tap_is_int(count_rows(), 2, "the file can be used again");
}

/* ---- the process is killed ---------------------------------------------------------- */

static void log_for_ever(void)
{
    open_log(1, NULL);
    start_thread(use_for_ever);
    (void)use_for_ever(NULL);
}

/* With flush=yes, whenever it comes. */
static void test_kills(void)
{
    struct stat about;
    unsigned seed = 1;
    long total = 0;
    int torn = 0;
    int i;

    for (i = 0; i < KILLS; i++) {
        pid_t child;
        long rows;

        (void)truncate(path, 0);
        child = fork();
        if (child == 0) {
            log_for_ever();
        }
        do {
            sleep_us(200);
        } while (stat(path, &about) == 0 && about.st_size < 4096);
        seed = seed * 1103515245u + 12345u;
        sleep_us((long)(seed >> 16) % 2000);
        (void)kill(child, SIGKILL);
        (void)waitpid(child, NULL, 0);
        rows = count_rows();
        torn += rows < 0;
        total += rows;
    }
    tap_diag("%ld rows", total);
    tap_is_int(torn, 0, "%d times killed: no row is ever torn", KILLS);
}

int main(void)
{
    int fd = mkstemp(path);

    if (fd < 0) {
        tap_bail_out("no temporary file: %s", strerror(errno));
    }
    (void)close(fd);
    test_ends();
    test_forks();
    test_kills();
    (void)unlink(path);
    return tap_finish();
}
