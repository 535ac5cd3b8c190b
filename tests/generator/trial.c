/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/generator/trial.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/generator/model.h"

unsigned trial_limit = 20;

static report *shared;
static int said_file = -1;

const char *fault_name(fault_class fault)
{
    static const char *const names[FAULT_CLASSES] = {
        "none",    "contents", "order",   "overlap", "status",
        "capture", "state",    "figures", "left",    "driver",
        "crash",   "hang",     "program",
    };

    return names[fault];
}

int trial_prepare(const char **reason)
{
    const char *path = getenv("CUCOREMR_SIM_PATH");

    /* Mapped here once; nothing of it is called before the fork. */
    if (path == NULL || dlopen(path, RTLD_NOW | RTLD_LOCAL) == NULL) {
        *reason = path == NULL ? "CUCOREMR_SIM_PATH is not set" : dlerror();
        return -1;
    }
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    said_file = memfd_create("said", MFD_CLOEXEC);
    if (shared == MAP_FAILED || said_file < 0) {
        *reason = "no memory";
        return -1;
    }
    return 0;
}

static _Noreturn void run_child(const program *p)
{
    told = shared;
    (void)signal(SIGINT, SIG_IGN); /* of a terminal: it comes to an end */
    (void)signal(SIGTERM, SIG_DFL);
    (void)dup2(said_file, STDERR_FILENO);
    (void)alarm(trial_limit);
    run_program(p);
}

static void read_said(trial *t)
{
    ssize_t got = pread(said_file, t->said, TRIAL_SAID - 1, 0);

    t->said[got > 0 ? got : 0] = '\0';
}

static void judge(trial *t, int status)
{
    t->fault = (fault_class)atomic_load(&shared->fault);
    t->op = shared->op;
    t->done = shared->done;
    t->left_out = shared->left_out;
    t->allocations = shared->allocations;
    t->checks = shared->checks;
    (void)memcpy(t->text, shared->text, sizeof(t->text));
    if (t->fault != FAULT_NONE) {
        return;
    }
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
        t->fault = FAULT_HANG;
        (void)snprintf(t->text, sizeof(t->text), "no end after %u seconds",
                       trial_limit);
    } else if (WIFSIGNALED(status)) {
        t->fault = FAULT_CRASH;
        (void)snprintf(t->text, sizeof(t->text), "ended by signal %d (%s)",
                       WTERMSIG(status), strsignal(WTERMSIG(status)));
    } else if (WEXITSTATUS(status) != 0) {
        t->fault = FAULT_CRASH;
        (void)snprintf(t->text, sizeof(t->text), "ended with status %d",
                       WEXITSTATUS(status));
    }
}

/* Are all the kinds known that a stack's parts begin with? */
static int is_known(const char *stack)
{
    const char *at = stack;

    while (at != NULL) {
        const ccmr_kind *kind;
        size_t length;
        size_t i;

        at += strspn(at, "| ");
        length = strcspn(at, " ");
        for (i = 0; ccmr_kind_get(i, &kind) == CCMR_SUCCESS; i++) {
            if (strlen(kind->name) == length &&
                strncmp(kind->name, at, length) == 0) {
                break;
            }
        }
        if (ccmr_kind_get(i, &kind) != CCMR_SUCCESS &&
            strncmp("subpool", at, length) != 0) {
            return 0;
        }
        at = strchr(at, '|');
    }
    return 1;
}

/* Asked in a child: a process that has used the library cannot fork. */
int trial_knows(const char *stack)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        _exit(is_known(stack));
    }
    return child > 0 && waitpid(child, &status, 0) == child &&
           WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

int trial_run(const program *p, trial *t)
{
    int status = 0;
    pid_t child;

    memset(t, 0, sizeof(*t));
    memset(shared, 0, sizeof(*shared));
    (void)ftruncate(said_file, 0);
    (void)lseek(said_file, 0, SEEK_SET);
    (void)fflush(stdout);
    child = fork();
    if (child == 0) {
        run_child(p);
    }
    if (child < 0) {
        t->fault = FAULT_PROGRAM;
        (void)snprintf(t->text, sizeof(t->text), "fork: %s", strerror(errno));
        return 0;
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    judge(t, status);
    read_said(t);
    return t->fault == FAULT_NONE;
}
