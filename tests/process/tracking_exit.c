/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tracking reports at exit, to standard error: each scene is a child.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cucoremr/cucoremr.h>

#include "tests/support/tap.h"

#define LEGACY CCMR_STREAM_LEGACY
#define BROKEN 70

static char said[65536];

/* Leave a block of `bytes`; with 0 everything is given back. */
static void child(const char *text, size_t bytes)
{
    ccmr_resource *stack;
    void *ptr = NULL;
    void *other = NULL;

    if (ccmr_stack_create(text, &stack) != CCMR_SUCCESS ||
        ccmr_resource_allocate(stack, 64, 0, LEGACY, &other) != CCMR_SUCCESS ||
        ccmr_resource_allocate(stack, bytes, 0, LEGACY, &ptr) !=
            CCMR_SUCCESS ||
        ccmr_resource_deallocate(stack, other, 64, 0, LEGACY) !=
            CCMR_SUCCESS) {
        _exit(BROKEN);
    }
    if (bytes == 0) {
        ccmr_resource_release(stack);
    }
    exit(3);
}

/* Returns the child's status; what it said is in `said`. */
static int run(const char *text, size_t bytes)
{
    int ends[2];
    size_t length = 0;
    int status = -1;
    ssize_t got;
    pid_t pid;

    if (pipe(ends) != 0) {
        tap_bail_out("no pipe");
    }
    pid = fork();
    if (pid < 0) {
        tap_bail_out("no child");
    }
    if (pid == 0) {
        (void)dup2(ends[1], STDERR_FILENO);
        child(text, bytes);
    }
    (void)close(ends[1]);
    while ((got = read(ends[0], said + length, sizeof(said) - 1 - length)) >
           0) {
        length += (size_t)got;
    }
    said[length] = '\0';
    (void)close(ends[0]);
    (void)waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(void)
{
    tap_is_int(run("tracking report=yes | host", 1234), 3, "the exit status");
    tap_ok(strstr(said, "1 block of 1234 bytes is live at exit") != NULL,
           "a block that is left is reported: %s", said);
    tap_is_int(run("tracking report=yes traces=yes | host", 1234), 3,
               "with traces");
    tap_ok(strstr(said, "tracking_exit") != NULL,
           "the trace names the program");
    tap_is_int(run("tracking report=yes | host", 0), 3, "nothing is left");
    tap_is_str(said, "", "nothing is said");
    tap_is_int(run("tracking | host", 1234), 3, "no report is wanted");
    tap_is_str(said, "", "none is made");
    return tap_finish();
}
