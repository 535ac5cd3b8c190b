/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fork: in the child every call answers CCMR_ERROR_FORKED and touches
 * nothing; it exits normally; the parent goes on unharmed. Also while another
 * thread is inside calls, and from a thread that is not the first. Field
 * case G5.
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

#define ROUNDS 10

/* The child's answers, as an exit status: 0 or 1 + index of a wrong call. The
   simulator is asked for its count only where no thread can hold its lock. */
static int answer_in_child(objects *o, int alone)
{
    uint64_t before = alone ? simulator->calls(NULL) : 0;
    void *ptr = NULL;
    int i;

    api_leaks_are_fine = 1; /* they are the parent's */
    for (i = 0; valid_calls[i].name != NULL; i++) {
        const valid_call *call = &valid_calls[i];
        ccmr_status status = call->make(o);

        if (status == CCMR_ERROR_FORKED) {
            if (ccmr_last_error()->status != CCMR_ERROR_FORKED ||
                strstr(ccmr_last_error()->message, "fork") == NULL) {
                return 1 + i;
            }
        } else if (call->kind == CALL_STATUS || status != CCMR_SUCCESS) {
            return 1 + i;
        }
    }
    if (ccmr_resource_allocate(o->pooled, 1000, 0, o->stream, &ptr) !=
            CCMR_ERROR_FORKED ||
        ccmr_resource_audit(o->pooled) != CCMR_ERROR_FORKED) {
        return 125;
    }
    /* Releasing what the parent made does nothing. */
    (void)objects_drop(o);
    return !alone || simulator->calls(NULL) == before ? 0 : 126;
}

static void expect_good_child(pid_t child, const char *what)
{
    int status = -1;
    int index;

    (void)waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) > 0 &&
        WEXITSTATUS(status) < 100) {
        index = WEXITSTATUS(status) - 1;
        tap_fail("%s: %s in the child", what, valid_calls[index].name);
    } else {
        tap_is_int(status, 0, "%s", what);
    }
}

static void parent_goes_on(objects *o, const char *what)
{
    ccmr_stats stats = {.size = sizeof(stats)};
    void *ptr = NULL;
    ccmr_status status =
        ccmr_resource_allocate(o->pool, 1000, 0, o->stream, &ptr);

    if (status == CCMR_SUCCESS) {
        status = ccmr_resource_deallocate(o->pool, ptr, 1000, 0, o->stream);
    }
    if (status == CCMR_SUCCESS) {
        status = ccmr_buffer_fill(o->buffer, 0, 4096, 3, 1, o->stream);
    }
    if (status == CCMR_SUCCESS) {
        status = ccmr_resource_stats(o->pool, &stats);
    }
    if (status == CCMR_SUCCESS) {
        status = ccmr_resource_allocate(o->pooled, 1000, 0, o->stream, &ptr);
    }
    if (status == CCMR_SUCCESS) {
        status = ccmr_resource_deallocate(o->pooled, ptr, 1000, 0, o->stream);
    }
    if (status == CCMR_SUCCESS) {
        status = ccmr_resource_audit(o->pooled);
    }
    tap_ok(status == CCMR_SUCCESS && stats.live_bytes == 4096,
           "%s: the parent goes on", what);
}

static size_t file_size(const char *path)
{
    FILE *file = fopen(path, "r");
    long size = -1;

    if (file != NULL && fseek(file, 0, SEEK_END) == 0) {
        size = ftell(file);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return size < 0 ? 0 : (size_t)size;
}

static void plain_forks(objects *o, const char *log)
{
    void *ptr = NULL;
    size_t size;
    pid_t child;
    int i;

    /* A row that is buffered when the child begins is the parent's alone. */
    tap_ok(ccmr_resource_allocate(o->logging, 77, 0, CCMR_STREAM_LEGACY,
                                  &ptr) == CCMR_SUCCESS,
           "a logged block");
    size = file_size(log);
    for (i = 0; i < 2; i++) {
        child = fork();
        if (child == 0) {
            i = answer_in_child(o, 1);
            /* Runs the exit handlers, the library's too. */
            exit(i);
        }
        expect_good_child(child, "child that exits");
        parent_goes_on(o, "after that child");
    }
    tap_is_size(file_size(log), size, "no child wrote into the log");
    tap_ok(ccmr_resource_deallocate(o->logging, ptr, 77, 0,
                                    CCMR_STREAM_LEGACY) == CCMR_SUCCESS,
           "the logged block is freed");
}

/* A grandchild is as forked as its parent. */
static void grandchild(objects *o)
{
    pid_t child = fork();
    int status = -1;

    if (child == 0) {
        pid_t second = fork();

        if (second == 0) {
            exit(answer_in_child(o, 1));
        }
        (void)waitpid(second, &status, 0);
        exit(WIFEXITED(status) ? WEXITSTATUS(status) : 127);
    }
    expect_good_child(child, "grandchild");
}

typedef struct worker {
    objects *o;
    atomic_int stop;
    atomic_int ready;
    atomic_int failures;
} worker;

/* Inside calls all the time, so that locks are held when the fork comes. */
static void *work(void *argument)
{
    worker *w = argument;

    while (!atomic_load(&w->stop)) {
        ccmr_resource *resource = NULL;
        void *ptr = NULL;
        ccmr_status status;

        status = ccmr_stack_create("logging file=/dev/null | stream_ordered "
                                   "| device_plain",
                                   &resource);
        if (status == CCMR_SUCCESS) {
            status =
                ccmr_resource_allocate(resource, 3000, 0, w->o->stream, &ptr);
        }
        if (status == CCMR_SUCCESS) {
            status =
                ccmr_resource_deallocate(resource, ptr, 3000, 0, w->o->stream);
        }
        ccmr_resource_release(resource);
        if (status == CCMR_SUCCESS) {
            status = ccmr_resource_allocate(w->o->logging, 64, 0,
                                            CCMR_STREAM_LEGACY, &ptr);
        }
        if (status == CCMR_SUCCESS) {
            status = ccmr_resource_deallocate(w->o->logging, ptr, 64, 0,
                                              CCMR_STREAM_LEGACY);
        }
        if (status == CCMR_SUCCESS) {
            status = ccmr_resource_allocate(w->o->pooled, 3000, 0,
                                            w->o->stream, &ptr);
        }
        if (status == CCMR_SUCCESS) {
            status = ccmr_resource_deallocate(w->o->pooled, ptr, 3000, 0,
                                              w->o->stream);
        }
        if (status == CCMR_SUCCESS) {
            status = ccmr_resource_trim(w->o->pooled, 0, NULL);
        }
        if (status != CCMR_SUCCESS) {
            atomic_fetch_add(&w->failures, 1);
        }
        atomic_store(&w->ready, 1);
    }
    return NULL;
}

static void forks_under_load(objects *o)
{
    worker w = {.o = o};
    pthread_t threads[2];
    int bad = 0;
    int i;

    for (i = 0; i < 2; i++) {
        if (pthread_create(&threads[i], NULL, work, &w) != 0) {
            tap_bail_out("no thread");
        }
    }
    while (!atomic_load(&w.ready)) {
        (void)usleep(100);
    }
    for (i = 0; i < ROUNDS; i++) {
        pid_t child = fork();
        int status = -1;

        if (child == 0) {
            (void)alarm(20);
            exit(answer_in_child(o, 0));
        }
        (void)waitpid(child, &status, 0);
        bad += status != 0;
        (void)usleep(500);
    }
    atomic_store(&w.stop, 1);
    for (i = 0; i < 2; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    tap_is_int(bad, 0, "%d children while threads are inside calls", ROUNDS);
    tap_is_int(atomic_load(&w.failures), 0, "the threads went on");
}

static void *fork_in_thread(void *argument)
{
    pid_t child = fork();

    if (child == 0) {
        exit(answer_in_child(argument, 1));
    }
    expect_good_child(child, "child of another thread");
    return NULL;
}

/* A process that has not used the library has a child that can. */
static void fork_before_use(void)
{
    pid_t child = fork();
    int status = -1;

    if (child == 0) {
        objects o;

        if (objects_make(&o, "/dev/null") != 0 ||
            objects_drop(&o) != CCMR_SUCCESS) {
            _exit(1);
        }
        exit(api_end(0));
    }
    (void)waitpid(child, &status, 0);
    tap_is_int(status, 0, "a child forked before the first use works");
}

int main(void)
{
    char log[] = "/tmp/ccmr-fork.XXXXXX";
    pthread_t thread;
    objects o;
    int fd;

    fork_before_use();
    (void)api_simulator();
    fd = mkstemp(log);
    if (fd < 0 || objects_make(&o, log) != 0) {
        tap_bail_out("%s", ccmr_last_error()->message);
    }
    (void)close(fd);
    plain_forks(&o, log);
    grandchild(&o);
    if (pthread_create(&thread, NULL, fork_in_thread, &o) == 0) {
        (void)pthread_join(thread, NULL);
    }
    forks_under_load(&o);
    parent_goes_on(&o, "at the end");
    tap_ok(objects_drop(&o) == CCMR_SUCCESS, "all is given back");
    (void)unlink(log);
    return api_end(tap_finish());
}
