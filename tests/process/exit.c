/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exit: whatever is left alive, and whoever still calls, a process that uses
 * the library ends with its own status; the driver is not touched once exit
 * has begun or the driver has gone. Each scene is a child, several times.
 * Field cases G1, G2.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/process/calls.h"
#include "tests/support/api.h"
#include "tests/support/tap.h"

#define TIMES 25
#define BROKEN 70 /* a child's status: the scene saw something wrong */

static objects left;
static atomic_int broken;
static uint64_t calls_before;

static void wrong(const char *what)
{
    (void)fprintf(stderr, "# %s\n", what);
    atomic_store(&broken, 1);
}

static void make(void)
{
    (void)api_simulator();
    if (objects_make(&left, "/dev/null") != 0) {
        wrong(ccmr_last_error()->message);
    }
}

/* The status that the scene asked for, or that something was wrong. */
static void end(void)
{
    if (atomic_load(&broken)) {
        _exit(BROKEN);
    }
}

static void scene_globals(void)
{
    make();
    IGNORE(ccmr_buffer_fill(left.buffer, 0, 4096, 1, 1, left.stream));
}

/* Runs after the library's own handler: nothing works any more, and nothing
   is touched. */
static void call_after_exit(void)
{
    int i;

    calls_before = simulator->calls(NULL);
    for (i = 0; valid_calls[i].name != NULL; i++) {
        ccmr_status status = valid_calls[i].make(&left);

        if (status == CCMR_ERROR_EXITING
                ? ccmr_last_error()->status != status
                : valid_calls[i].kind == CALL_STATUS ||
                      status != CCMR_SUCCESS) {
            wrong(valid_calls[i].name);
        }
    }
    (void)objects_drop(&left);
    if (simulator->calls(NULL) != calls_before) {
        wrong("the driver was called after exit began");
    }
}

static void scene_called_after(void)
{
    (void)atexit(end);
    (void)atexit(call_after_exit);
    make();
}

/* Runs before the library's handler: all still works. */
static void drop_at_exit(void)
{
    if (objects_drop(&left) != CCMR_SUCCESS) {
        wrong(ccmr_last_error()->message);
    }
}

static void scene_called_before(void)
{
    (void)atexit(end);
    make();
    (void)atexit(drop_at_exit);
}

static atomic_int threads_ready;

static void *work_for_ever(void *argument)
{
    (void)argument;
    for (;;) {
        ccmr_resource *resource = NULL;
        void *ptr = NULL;

        if (ccmr_resource_allocate(left.stack, 5000, 0, left.stream, &ptr) ==
            CCMR_SUCCESS) {
            (void)ccmr_resource_deallocate(left.stack, ptr, 5000, 0,
                                           left.stream);
        }
        if (ccmr_resource_allocate(left.pooled, 5000, 0, left.stream, &ptr) ==
            CCMR_SUCCESS) {
            (void)ccmr_resource_deallocate(left.pooled, ptr, 5000, 0,
                                           left.stream);
        }
        if (ccmr_stack_create("logging file=/dev/null | host", &resource) ==
            CCMR_SUCCESS) {
            ccmr_resource_release(resource);
        }
        atomic_fetch_add(&threads_ready, 1);
    }
    return NULL;
}

static void scene_threads_at_work(void)
{
    pthread_t thread;
    int i;

    make();
    for (i = 0; i < 2; i++) {
        if (pthread_create(&thread, NULL, work_for_ever, NULL) == 0) {
            (void)pthread_detach(thread);
        }
    }
    while (atomic_load(&threads_ready) < 4) {
        (void)usleep(50);
    }
}

static void *work_and_end(void *argument)
{
    void *ptr = NULL;

    (void)argument;
    IGNORE(ccmr_resource_allocate(left.pool, 5000, 0, CCMR_STREAM_PER_THREAD,
                                  &ptr));
    IGNORE(ccmr_stack_create("no such stack", &(ccmr_resource *){NULL}));
    atomic_fetch_add(&threads_ready, 1);
    return NULL;
}

/* Detached threads end while the process does. */
static void scene_threads_end(void)
{
    pthread_t thread;
    int i;

    make();
    for (i = 0; i < 8; i++) {
        if (pthread_create(&thread, NULL, work_and_end, NULL) == 0) {
            (void)pthread_detach(thread);
        }
    }
    while (atomic_load(&threads_ready) == 0) {
        (void)usleep(10);
    }
}

static void *exit_here(void *argument)
{
    (void)argument;
    exit(7);
}

static void scene_exit_in_thread(void)
{
    pthread_t thread;

    make();
    if (pthread_create(&thread, NULL, exit_here, NULL) == 0) {
        (void)pthread_join(thread, NULL);
    }
}

/* The first thread leaves, the last one ends the process. */
static void *outlive(void *argument)
{
    (void)argument;
    (void)usleep(2000);
    exit(7);
}

static void scene_main_thread_leaves(void)
{
    pthread_t thread;

    make();
    if (pthread_create(&thread, NULL, outlive, NULL) == 0) {
        (void)pthread_detach(thread);
        pthread_exit(NULL);
    }
}

/* The driver says that it is gone, while the process lives. */
static void scene_driver_gone(void)
{
    void *ptr = NULL;
    ccmr_status status;

    (void)atexit(end);
    make();
    (void)simulator->set_deinitialized(1);
    status = ccmr_resource_allocate(left.pool, 512, 0, left.stream, &ptr);
    if (status == CCMR_SUCCESS) {
        wrong("an allocation from a driver that is gone");
    }
    call_after_exit();
}

/* The same, found out by a free. */
static void scene_driver_gone_at_free(void)
{
    (void)atexit(end);
    make();
    (void)simulator->set_deinitialized(1);
    if (ccmr_buffer_close(left.buffer, CCMR_STREAM_UNSET) == CCMR_SUCCESS) {
        wrong("a free by a driver that is gone");
    }
    call_after_exit();
}

/* And by a release, which has no status. */
static void scene_driver_gone_at_release(void)
{
    (void)atexit(end);
    make();
    (void)simulator->set_deinitialized(1);
    (void)objects_drop(&left);
}

/* A log with buffered rows is written by the exit, whole. */
static char log_path[] = "/tmp/ccmr-exit.XXXXXX";

static void scene_log(void)
{
    ccmr_resource *logging = NULL;
    char text[128];
    void *ptr;
    int i;

    (void)snprintf(text, sizeof(text), "logging file=%s | host", log_path);
    if (ccmr_stack_create(text, &logging) != CCMR_SUCCESS) {
        _exit(BROKEN);
    }
    for (i = 0; i < 10; i++) {
        if (ccmr_resource_allocate(logging, 100, 0, CCMR_STREAM_LEGACY,
                                   &ptr) != CCMR_SUCCESS) {
            _exit(BROKEN);
        }
    }
}

static void scene_nothing(void)
{
}

typedef struct scene {
    const char *name;
    void (*run)(void);
} scene;

static const scene scenes[] = {
    {"nothing was used", scene_nothing},
    {"objects are left in globals", scene_globals},
    {"called after the library's handler", scene_called_after},
    {"called before the library's handler", scene_called_before},
    {"threads are inside calls", scene_threads_at_work},
    {"threads end", scene_threads_end},
    {"a thread calls exit", scene_exit_in_thread},
    {"the first thread has left", scene_main_thread_leaves},
    {"the driver is gone", scene_driver_gone},
    {"the driver is gone at a free", scene_driver_gone_at_free},
    {"the driver is gone at a release", scene_driver_gone_at_release},
    {"a log is left", scene_log},
};

static void run_scene(const scene *s)
{
    int wrong_status = 0;
    int seen = 0;
    int i;

    for (i = 0; i < TIMES; i++) {
        pid_t child = fork();
        int status = -1;

        if (child == 0) {
            (void)alarm(20);
            api_leaks_are_fine = 1;
            s->run();
            exit(7);
        }
        (void)waitpid(child, &status, 0);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 7) {
            wrong_status = status;
            seen++;
        }
    }
    tap_ok(seen == 0, "exit while %s: %d of %d wrong, wait status 0x%x",
           s->name, seen, TIMES, (unsigned)wrong_status);
}

static void check_log(void)
{
    FILE *file = fopen(log_path, "r");
    char line[256];
    int rows = 0;

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        rows += strstr(line, ",allocate,") != NULL;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    tap_is_int(rows, 10, "rows written at exit");
    (void)unlink(log_path);
}

int main(void)
{
    size_t i;
    int fd = mkstemp(log_path);

    if (fd >= 0) {
        (void)close(fd);
    }
    for (i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++) {
        run_scene(&scenes[i]);
    }
    check_log();
    return tap_finish();
}
