/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stall [--limit MS] [STACK ...]
 *
 * While a kernel runs on one stream, no call of a pool waits for it: neither
 * on another stream, nor on that one, growth and trim included. Each call is
 * timed. On the simulator the stream is stalled, and a call that waits for it
 * ends the process.
 *
 * Where the upstream's own free waits for every kernel (device_plain) nothing
 * is given back while it runs. A STACK is tried with everything.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cucoremr/cucoremr.h>

#include "tests/support/api.h"
#include "tests/support/spin.h"
#include "tests/support/tap.h"

#define MIB ((size_t)1 << 20)
#define SLOTS 24

typedef struct scene {
    ccmr_resource *pool;
    CUstream busy;
    CUstream other;
    int trims;
    spin kernel;
    double worst; /* ms of a call */
    const char *slowest;
    int failures;
    void *blocks[SLOTS]; /* on `other` */
    size_t sizes[SLOTS];
    void *held[4]; /* on `busy`: to be freed while it works */
} scene;

static const size_t held_sizes[4] = {700, 64 * 1024, 3 * MIB, 40 * MIB};

static CUcontext context;
static double limit_ms;

static double now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void note(scene *in, const char *what, double before,
                 ccmr_status status)
{
    double took = now_ms() - before;

    if (took > in->worst) {
        in->worst = took;
        in->slowest = what;
    }
    if (status != CCMR_SUCCESS) {
        tap_diag("%s: %s: %s", what, ccmr_status_name(status),
                 ccmr_last_error()->message);
        in->failures++;
    }
}

/* A call, timed; it must succeed. */
#define TIMED(in, what, call)                                                 \
    do {                                                                      \
        double timed_before = now_ms();                                       \
        ccmr_status timed_status = (call);                                    \
        note(in, what, timed_before, timed_status);                           \
    } while (0)

static void take(scene *in, size_t slot, size_t bytes, const char *what)
{
    in->sizes[slot] = bytes;
    TIMED(in, what,
          ccmr_resource_allocate(in->pool, bytes, 0, in->other,
                                 &in->blocks[slot]));
    if (in->blocks[slot] != NULL) {
        IGNORE(api.cuMemsetD8Async((CUdeviceptr)(uintptr_t)in->blocks[slot], 1,
                                   bytes < 256 ? bytes : 256, in->other));
    }
}

static void give(scene *in, size_t slot, const char *what)
{
    if (in->blocks[slot] != NULL) {
        TIMED(in, what,
              ccmr_resource_deallocate(in->pool, in->blocks[slot],
                                       in->sizes[slot], 0, in->other));
        in->blocks[slot] = NULL;
    }
}

/* ---- what is done while the kernel runs --------------------------------- */

/* What the pool gets back on the busy stream; nobody may have it yet. */
static void free_on_busy(scene *in)
{
    int i;

    for (i = 0; i < 4; i++) {
        TIMED(in, "a free on the busy stream",
              ccmr_resource_deallocate(in->pool, in->held[i], held_sizes[i], 0,
                                       in->busy));
    }
}

static void allocate_on_busy(scene *in)
{
    void *ptr = NULL;

    TIMED(in, "an allocation on the busy stream",
          ccmr_resource_allocate(in->pool, 5 * MIB, 0, in->busy, &ptr));
    if (ptr != NULL) {
        TIMED(in, "its free",
              ccmr_resource_deallocate(in->pool, ptr, 5 * MIB, 0, in->busy));
    }
}

static void small_blocks(scene *in)
{
    size_t round;
    size_t i;

    for (round = 0; round < 20; round++) {
        for (i = 0; i < SLOTS; i++) {
            take(in, i, 256 + 1777 * i, "a small allocation");
        }
        for (i = 0; i < SLOTS; i++) {
            give(in, i, "a small free");
        }
    }
}

/* More each time than there was: the pool has to grow. */
static void growth(scene *in)
{
    size_t i;

    for (i = 0; i < SLOTS; i++) {
        take(in, i, (i + 1) * 2 * MIB + 12345, "a large allocation");
    }
    for (i = 0; i < SLOTS; i += 2) {
        give(in, i, "a large free");
    }
    for (i = 0; i < SLOTS; i += 2) {
        take(in, i, (SLOTS - i) * 3 * MIB, "a larger allocation");
    }
    for (i = 0; i < SLOTS; i++) {
        give(in, i, "a large free");
    }
}

static void trims(scene *in)
{
    ccmr_trim_result result = {.size = sizeof(result)};

    if (!in->trims) {
        return;
    }
    TIMED(in, "a trim", ccmr_resource_trim(in->pool, 16 * MIB, &result));
    take(in, 0, 30 * MIB, "growth after a trim");
    give(in, 0, "a large free");
    TIMED(in, "a trim of all", ccmr_resource_trim(in->pool, 0, &result));
}

static int count_line(void *lines, const char *line, size_t length)
{
    (void)line;
    (void)length;
    ++*(int *)lines;
    return 0;
}

static void questions(scene *in)
{
    ccmr_stats stats = {.size = sizeof(stats)};
    int lines = 0;
    int fits;

    TIMED(in, "figures", ccmr_resource_stats(in->pool, &stats));
    TIMED(in, "an audit", ccmr_resource_audit(in->pool));
    TIMED(in, "a dump", ccmr_resource_dump(in->pool, count_line, &lines));
    /* May be unknown where the upstream cannot tell. */
    if (ccmr_resource_would_fit(in->pool, MIB, in->other, &fits) !=
        CCMR_SUCCESS) {
        tap_diag("would_fit: %s", ccmr_last_error()->message);
    }
}

static void buffers(scene *in)
{
    ccmr_buffer *buffer = NULL;

    TIMED(in, "a buffer",
          ccmr_buffer_create(in->pool, 4096, NULL, in->other, &buffer));
    if (buffer != NULL) {
        TIMED(in, "a fill",
              ccmr_buffer_fill(buffer, 0, 4096, 7, 1, in->other));
        TIMED(in, "a buffer's end",
              ccmr_buffer_close(buffer, CCMR_STREAM_UNSET));
        IGNORE(ccmr_buffer_destroy(buffer));
    }
}

/* A stream that comes and goes meanwhile. */
static void a_stream(scene *in)
{
    ccmr_stream made = NULL;
    void *ptr = NULL;

    if (ccmr_stream_create(0, CCMR_STREAM_FLAG_NON_BLOCKING, &made) !=
        CCMR_SUCCESS) {
        in->failures++;
        return;
    }
    TIMED(in, "an allocation on a new stream",
          ccmr_resource_allocate(in->pool, 2 * MIB, 0, made, &ptr));
    TIMED(in, "its free",
          ccmr_resource_deallocate(in->pool, ptr, 2 * MIB, 0, made));
    TIMED(in, "a retirement", ccmr_stream_retire(made));
    IGNORE(ccmr_stream_destroy(made));
}

/* ---- scenes ------------------------------------------------------------- */

static void prepare(scene *in, const char *stack, int registered)
{
    int i;

    if (ccmr_stack_create(stack, &in->pool) != CCMR_SUCCESS) {
        tap_bail_out("%s: %s", stack, ccmr_last_error()->message);
    }
    if (api.cuStreamCreate(&in->busy, CU_STREAM_NON_BLOCKING) !=
            CUDA_SUCCESS ||
        api.cuStreamCreate(&in->other, CU_STREAM_NON_BLOCKING) !=
            CUDA_SUCCESS) {
        tap_bail_out("no streams");
    }
    if (registered && (ccmr_stream_register(in->busy) != CCMR_SUCCESS ||
                       ccmr_stream_register(in->other) != CCMR_SUCCESS)) {
        tap_bail_out("%s", ccmr_last_error()->message);
    }
    small_blocks(in);
    for (i = 0; i < 4; i++) {
        if (ccmr_resource_allocate(in->pool, held_sizes[i], 0, in->busy,
                                   &in->held[i]) != CCMR_SUCCESS) {
            tap_bail_out("%s", ccmr_last_error()->message);
        }
    }
    in->worst = 0; /* so far nothing was in the way */
}

static void clean(scene *in, int registered)
{
    if (registered && (ccmr_stream_retire(in->busy) != CCMR_SUCCESS ||
                       ccmr_stream_retire(in->other) != CCMR_SUCCESS)) {
        in->failures++;
    }
    ccmr_resource_release(in->pool);
    IGNORE(api.cuStreamDestroy(in->busy));
    IGNORE(api.cuStreamDestroy(in->other));
}

static void play(const char *stack, int registered, int give_back)
{
    const char *how = registered ? "registered" : "not registered";
    scene in = {.trims = give_back, .slowest = "nothing"};
    const char *reason = "";
    int runs;
    int i;

    prepare(&in, stack, registered);
    if (spin_open(&in.kernel, in.busy, &reason) != 0 ||
        spin_start(&in.kernel, &reason) != 0) {
        tap_bail_out("no kernel: %s", reason);
    }
    for (i = 0; i < 4; i++) { /* behind the kernel */
        IGNORE(api.cuMemsetD8Async((CUdeviceptr)(uintptr_t)in.held[i], 2,
                                   held_sizes[i], in.busy));
    }
    free_on_busy(&in);
    small_blocks(&in);
    growth(&in);
    allocate_on_busy(&in);
    trims(&in);
    questions(&in);
    buffers(&in);
    a_stream(&in);
    growth(&in);
    runs = spin_runs(&in.kernel);
    tap_ok(runs, "%s, %s: the kernel still ran when all was done", stack, how);
    tap_is_int(in.failures, 0, "%s, %s: every call succeeded", stack, how);
    tap_ok(in.worst <= limit_ms, "%s, %s: the slowest call, %s, took %.3f ms",
           stack, how, in.slowest, in.worst);
    tap_ok(spin_stop(&in.kernel) == 0, "%s, %s: the stream is well", stack,
           how);
    tap_ok(ccmr_resource_audit(in.pool) == CCMR_SUCCESS, "%s, %s: audit",
           stack, how);
    spin_close(&in.kernel);
    clean(&in, registered);
}

static void play_both(const char *stack, int give_back)
{
    play(stack, 0, give_back);
    play(stack, 1, give_back);
}

static void start(void)
{
    ccmr_driver_info info = {.size = sizeof(info)};
    const char *reason = "";
    CUdevice device;

    if (ccmr_init(NULL) != CCMR_SUCCESS ||
        ccmr_driver(&info) != CCMR_SUCCESS) {
        tap_skip_all("%s", ccmr_last_error()->message);
    }
    if (api_load(info.path, &reason) != 0) {
        tap_bail_out("%s", reason);
    }
    if (api.cuDeviceGet(&device, 0) != CUDA_SUCCESS ||
        api.cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS ||
        api.cuCtxSetCurrent(context) != CUDA_SUCCESS) {
        tap_bail_out("no context");
    }
    if (simulator != NULL) {
        /* Its threads may wait for a processor for long. */
        limit_ms = 2000;
        (void)simulator->set_wait_limit(10000);
    } else {
        limit_ms = 50;
    }
    tap_diag("driver %s", info.path);
}

int main(int argc, char **argv)
{
    int i = 1;

    start();
    if (argc > 2 && strcmp(argv[1], "--limit") == 0) {
        limit_ms = strtod(argv[2], NULL);
        i = 3;
    }
    if (i < argc) {
        for (; i < argc; i++) {
            play_both(argv[i], 1);
        }
    } else {
        play_both("pool | virtual", 1);
        play_both("pool handle=2MiB | virtual", 1);
        play_both("pool | device_pool", 1);
        play_both("pool reuse=finished | virtual", 1);
        play_both("pool | device_plain", 0);
    }
    (void)api.cuDevicePrimaryCtxRelease(0);
    return api_end(tap_finish());
}
