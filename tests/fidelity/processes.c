/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the driver may not be called at all: in its own callbacks, in a forked
 * child, and after its end at exit.
 */
#include "tests/fidelity/calls.h"
#include "tests/fidelity/facts.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CALLBACK_LIMIT_MS = 2000, FORK_LIMIT_MS = 6000, CHILD_LIMIT_MS = 1500 };

/* ---- in a host function ---- */

struct errand {
    CUresult (*call)(void);
    CUresult res;
    bool done;
};

static void CUDA_CB run_errand(void *argument)
{
    struct errand *errand = argument;

    errand->res = errand->call();
    errand->done = true;
}

/*
 * Documented: host functions must not call the driver; NOT_PERMITTED may be
 * the answer, but a deadlock is allowed too (hence the short limit).
 */
static void see_in_callback(const struct fidelity_case *each)
{
    static struct errand errand;
    CUresult res;

    errand = (struct errand){each->call, CUDA_ERROR_UNKNOWN, false};
    if (!fixture_make(CU_STREAM_NON_BLOCKING)) {
        return;
    }
    res = drv.cuLaunchHostFunc(fixture.main, run_errand, &errand);
    if (res == CUDA_SUCCESS) {
        /* `main` may be destroyed by the errand: wait for the context. */
        res = drv.cuCtxSynchronize();
    }
    if (res != CUDA_SUCCESS) {
        fact_result("launch", res);
    } else if (!errand.done) {
        fact("result", "not run");
    } else {
        fact_result("result", errand.res);
    }
    fixture_drop();
}

const struct fidelity_topic in_callback_topic = {
    "in_callback",
    every_call,
    see_in_callback,
    NULL,
    false,
    CALLBACK_LIMIT_MS,
    "Documented: host functions must not call the driver. What each call "
    "answers there was measured.",
};

const struct fidelity_topic more_in_callback_topic = {
    "more_in_callback",
    more_calls,
    see_in_callback,
    more_prepare,
    false,
    CALLBACK_LIMIT_MS,
    "The same with the calls of more_calls.c.",
};

/* ---- in a forked child ---- */

static void sleep_ms(long ms)
{
    struct timespec pause = {ms / 1000, (ms % 1000) * 1000000L};

    nanosleep(&pause, NULL);
}

static void await_child(pid_t child)
{
    int status = 0;

    for (int waited = 0; waitpid(child, &status, WNOHANG) == 0; waited += 2) {
        if (waited >= CHILD_LIMIT_MS) {
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
            fact("result", "hangs");
            return;
        }
        sleep_ms(2);
    }
    if (WIFSIGNALED(status)) {
        fact("result", "crashes");
    }
}

/* Documented: a context is not inherited; nothing is said call by call. */
static void see_forked(const struct fidelity_case *each)
{
    pid_t child;

    if (!fixture_make(CU_STREAM_NON_BLOCKING)) {
        return;
    }
    child = fork();
    if (child == 0) {
        fact_result("result", each->call());
        _exit(0);
    }
    if (child < 0) {
        fact("result", "no process");
    } else {
        await_child(child);
    }
    fixture_drop();
}

const struct fidelity_topic forked_topic = {
    "forked",
    every_call,
    see_forked,
    NULL,
    false,
    FORK_LIMIT_MS,
    "Documented: a context is of no use in a child. What each call answers "
    "there was measured.",
};

const struct fidelity_topic more_forked_topic = {
    "more_forked",
    more_calls,
    see_forked,
    more_prepare,
    false,
    FORK_LIMIT_MS,
    "The same with the calls of more_calls.c.",
};

/* ---- at exit ---- */

static CUdeviceptr exit_plain;
static CUdeviceptr exit_block;
static CUstream exit_stream;

static void see_at_exit(const char *handler)
{
    CUstreamCaptureStatus capture;
    unsigned long long id;
    CUdeviceptr block = 0;
    int version;

    facts_begin("exit", handler);
    SEE("cuDriverGetVersion", cuDriverGetVersion(&version));
    SEE("cuStreamIsCapturing", cuStreamIsCapturing(exit_stream, &capture));
    SEE("cuStreamGetId", cuStreamGetId(exit_stream, &id));
    SEE("cuMemAllocAsync", cuMemAllocAsync(&block, 4096, exit_stream));
    SEE("cuMemFreeAsync", cuMemFreeAsync(exit_block, exit_stream));
    SEE("cuMemFree", cuMemFree(exit_plain));
    SEE("cuInit", cuInit(0));
}

/* Registered before the driver was loaded, so run after its own handlers. */
static void early_handler(void)
{
    see_at_exit("registered_before_driver");
}

static void late_handler(void)
{
    see_at_exit("registered_after_init");
    drv.cuMemAlloc(&exit_plain, 4096);
    drv.cuMemAllocAsync(&exit_block, 4096, exit_stream);
}

static void register_early(void)
{
    atexit(early_handler);
}

/* Reported by people: calls after the driver's teardown answer DEINITIALIZED,
 * or crash. The facts themselves come from the handlers. */
static void handlers(void)
{
    SEE("stream", cuStreamCreate(&exit_stream, CU_STREAM_NON_BLOCKING));
    SEE("plain", cuMemAlloc(&exit_plain, 4096));
    SEE("block", cuMemAllocAsync(&exit_block, 4096, exit_stream));
    SEE("idle", cuStreamSynchronize(exit_stream));
    fact_yes("registered", atexit(late_handler) == 0);
}

static const struct fidelity_case exit_cases[] = {
    FIDELITY_CASE(handlers),
    FIDELITY_END,
};

const struct fidelity_topic exit_topic = {
    "exit",
    exit_cases,
    NULL,
    register_early,
    false,
    CALLBACK_LIMIT_MS,
    "Measured alone: what calls answer in handlers of atexit, by when these "
    "were registered.",
};
