/* SPDX-License-Identifier: Apache-2.0 */
/* Where a real driver crashes, in a forked child, and at exit. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/simulation/driver.h"
#include "tests/support/tap.h"

/* Run a function in a child that starts without the simulator in use; what
 * it says on standard error goes to `text`. The wait status. */
static int in_child(void (*function)(void), char *text, size_t room)
{
    size_t length = 0;
    int status = 0;
    ssize_t got;
    int ends[2];
    pid_t child;

    if (pipe(ends) != 0) {
        tap_bail_out("no pipe");
    }
    child = fork();
    if (child == 0) {
        const struct rlimit none = {0, 0};

        setrlimit(RLIMIT_CORE, &none);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        function();
        _exit(0);
    }
    close(ends[1]);
    while ((got = read(ends[0], text + length, room - 1 - length)) > 0) {
        length += (size_t)got;
    }
    text[length] = '\0';
    close(ends[0]);
    waitpid(child, &status, 0);
    return status;
}

static void use_destroyed_stream(void)
{
    unsigned long long id;
    CUstream stream;

    driver_start(CCMR_SIM_EAGER, 0);
    stream = new_stream();
    drv.cuStreamDestroy(stream);
    drv.cuStreamGetId(stream, &id);
}

static void use_no_stream(void)
{
    int local = 0;

    driver_start(CCMR_SIM_EAGER, 0);
    drv.cuStreamSynchronize((CUstream)(void *)&local);
}

static void destroy_graph_twice(void)
{
    CUgraph graph = NULL;
    CUstream stream;

    driver_start(CCMR_SIM_EAGER, 0);
    stream = new_stream();
    drv.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    drv.cuStreamEndCapture(stream, &graph);
    drv.cuGraphDestroy(graph);
    drv.cuGraphDestroy(graph);
}

static void wait_for_ever(void)
{
    CUstream stream;

    driver_start(CCMR_SIM_LATE, 0);
    sim->set_wait_limit(50);
    stream = new_stream();
    sim->stall(stream);
    drv.cuMemsetD8Async(0, 0, 0, stream);
    drv.cuEventRecord(NULL, stream);
    drv.cuLaunchHostFunc(stream, free, NULL);
    drv.cuStreamSynchronize(stream);
}

static void crashes(const char *what, void (*function)(void),
                    const char *words)
{
    char text[1024];
    int status = in_child(function, text, sizeof text);

    tap_ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT,
           "%s ends the process", what);
    if (!tap_ok(strstr(text, words) != NULL, "%s is told", what)) {
        tap_diag("%s", text);
    }
}

/* Work of a stream on memory that was given back meanwhile. */
static void use_after_release(void)
{
    CUdeviceptr address = 0;
    CUstream one, two;

    driver_start(CCMR_SIM_LATE, 0);
    one = new_stream();
    two = new_stream();
    drv.cuMemAllocAsync(&address, 4096, one);
    sim->stall(two);
    drv.cuMemsetD8Async(address, 1, 4096, two);
    drv.cuMemFreeAsync(address, one);
    drv.cuStreamSynchronize(one);
    sim->release(two);
    _exit(drv.cuStreamSynchronize(two) == CUDA_ERROR_ILLEGAL_ADDRESS ? 7 : 8);
}

static void lost_memory(void)
{
    char text[1024];
    int status = in_child(use_after_release, text, sizeof text);

    tap_ok(WIFEXITED(status) && WEXITSTATUS(status) == 7,
           "work on memory that is gone breaks its context");
    tap_ok(strstr(text, "where no memory is") != NULL, "and is told");
}

/* Forked after cuInit: the child may do next to nothing. */
static void forked(void)
{
    unsigned long long id = 0;
    CUdeviceptr address = 0;
    int number = 0;
    CUstream stream;
    int status = 0;
    pid_t child;

    driver_start(CCMR_SIM_EAGER, 0);
    stream = new_stream();
    drv.cuMemAlloc(&address, 64);
    child = fork();
    if (child == 0) {
        int bad = 0;

        bad += drv.cuMemAlloc(&address, 64) != CUDA_ERROR_NOT_INITIALIZED;
        bad += drv.cuMemFree(address) != CUDA_ERROR_NOT_INITIALIZED;
        bad += drv.cuInit(0) != CUDA_ERROR_NOT_INITIALIZED;
        bad += drv.cuDriverGetVersion(&number) != CUDA_SUCCESS;
        bad += drv.cuStreamGetId(stream, &id) != CUDA_SUCCESS;
        bad += drv.cuStreamGetId(CU_STREAM_LEGACY, &id) !=
               CUDA_ERROR_NOT_INITIALIZED;
        bad += sim->reset(NULL) != 0;
        exit(bad);
    }
    waitpid(child, &status, 0);
    tap_ok(WIFEXITED(status) && WEXITSTATUS(status) == 0,
           "a child is told, and can exit");
    CHECK(drv.cuMemFree(address));
    CHECK(drv.cuStreamDestroy(stream));
    check_nothing_left("forked");
}

static void initialise_in_child(void)
{
    CUdeviceptr address = 0;

    driver_start(CCMR_SIM_EAGER, 0);
    _exit(drv.cuMemAlloc(&address, 64) == CUDA_SUCCESS ? 5 : 6);
}

static void forked_before(void)
{
    char text[1024];
    int status = in_child(initialise_in_child, text, sizeof text);

    tap_ok(WIFEXITED(status) && WEXITSTATUS(status) == 5,
           "forked before cuInit, a child can use it for itself");
}

/* Handlers run last in, first out: this one after the simulator's. */
static void late_handler(void)
{
    CUdeviceptr address = 0;

    _exit(drv.cuMemAlloc(&address, 64) == CUDA_ERROR_DEINITIALIZED ? 3 : 4);
}

static void leave_by_exit(void)
{
    atexit(late_handler);
    driver_start(CCMR_SIM_EAGER, 0);
    new_stream();
    exit(0);
}

static void at_exit(void)
{
    char text[1024];
    int status = in_child(leave_by_exit, text, sizeof text);

    tap_ok(WIFEXITED(status) && WEXITSTATUS(status) == 3,
           "at exit the driver goes");
}

int main(void)
{
    driver_load();
    crashes("a destroyed stream", use_destroyed_stream, "cuStreamGetId");
    crashes("what is no stream", use_no_stream, "not a stream");
    crashes("a graph destroyed twice", destroy_graph_twice, "cuGraphDestroy");
    crashes("a wait for ever", wait_for_ever, "1 operations left, stalled");
    lost_memory();
    forked_before();
    at_exit();
    forked();
    return tap_finish();
}
