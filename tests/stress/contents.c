/* SPDX-License-Identifier: Apache-2.0 */
/*
 * contents [--minutes N] [--threads N] [STACK ...]
 *
 * Many threads on streams of their own, each block filled on its stream and
 * read back, in stream order, right before its free, which may be on another
 * stream or another thread. Nothing but the pool's order keeps one block's data
 * from another's. Beside them somebody trims, audits and asks for figures.
 *
 * Blocks up to 64 KiB are compared whole, of larger ones their start, their end
 * and a part in between. Without --minutes each stack has a second, with it all
 * of them share the time.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cucoremr/cucoremr.h>

#include "tests/stress/crew.h"
#include "tests/support/api.h"
#include "tests/support/tap.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define SLOTS 48
#define STREAMS 3
#define STAGES 96       /* parts that are on their way to the host */
#define PART (64 * KIB) /* bytes of one */
#define PLACES 32       /* blocks on their way to another thread */

typedef struct block {
    void *ptr;
    size_t bytes;
    unsigned pattern; /* all of its words */
    CUstream stream;  /* of its last work */
    CUevent event;    /* recorded there, where another thread has it */
} block;

typedef struct stage {
    unsigned *words; /* PART bytes of pinned memory */
    size_t bytes;
    unsigned pattern;
} stage;

typedef struct worker {
    crew_member *self;
    CUstream streams[STREAMS];
    block blocks[SLOTS];
    stage stages[STAGES];
    size_t staged;
    unsigned *pinned;
    unsigned next_pattern;
} worker;

static ccmr_resource *pool;
static CUcontext context;
static size_t most_bytes;
static atomic_int stop;
static atomic_ullong operations;
static atomic_ullong compared;
static atomic_ullong refused;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static block places[PLACES]; /* under `lock` */

static void done(CUresult res, const char *what)
{
    if (res != CUDA_SUCCESS) {
        crew_fault(what);
    }
}

#define DO(call) done((call), #call)

/* ---- comparing ---------------------------------------------------------- */

/* All that was staged has arrived. */
static void compare_all(worker *in)
{
    size_t i;
    size_t at;

    for (i = 0; i < STREAMS; i++) {
        DO(api.cuStreamSynchronize(in->streams[i]));
    }
    for (i = 0; i < in->staged; i++) {
        const stage *part = &in->stages[i];

        for (at = 0; at < part->bytes / sizeof(unsigned); at++) {
            if (part->words[at] != part->pattern) {
                tap_diag("word %zu of %zu bytes is 0x%08x, not 0x%08x", at,
                         part->bytes, part->words[at], part->pattern);
                crew_fault("a block holds another one's data");
                break;
            }
        }
        atomic_fetch_add(&compared, part->bytes);
    }
    in->staged = 0;
}

/* A part of a block to the host, on a stream that its work is ordered before.
 */
static void stage_part(worker *in, const block *of, size_t offset,
                       size_t bytes, CUstream stream)
{
    stage *part;

    if (in->staged == STAGES) {
        compare_all(in);
    }
    part = &in->stages[in->staged++];
    part->bytes = bytes;
    part->pattern = of->pattern;
    DO(api.cuMemcpyAsync((CUdeviceptr)(uintptr_t)part->words,
                         (CUdeviceptr)(uintptr_t)of->ptr + offset, bytes,
                         stream));
}

static void stage_block(worker *in, const block *of, CUstream stream)
{
    size_t bytes = of->bytes & ~(size_t)3;
    size_t middle;

    if (bytes <= PART) {
        stage_part(in, of, 0, bytes, stream);
        return;
    }
    middle = crew_random(in->self, (uint32_t)((bytes - PART) / 4)) * 4u;
    stage_part(in, of, 0, 16 * KIB, stream);
    stage_part(in, of, middle, 16 * KIB, stream);
    stage_part(in, of, bytes - 16 * KIB, 16 * KIB, stream);
}

/* ---- blocks ------------------------------------------------------------- */

static CUstream any_stream(worker *in)
{
    return in->streams[crew_random(in->self, STREAMS)];
}

static size_t any_bytes(worker *in)
{
    unsigned powers = 63u - (unsigned)__builtin_clzll(most_bytes / 256);
    size_t power = (size_t)256 << crew_random(in->self, powers);

    return (power + crew_random(in->self, (uint32_t)power)) & ~(size_t)3;
}

static void take(worker *in, block *to)
{
    ccmr_status status;

    to->bytes = any_bytes(in);
    to->stream = any_stream(in);
    to->event = NULL;
    to->pattern = (unsigned)in->self->index << 24 | in->next_pattern++;
    status = ccmr_resource_allocate(pool, to->bytes, 0, to->stream, &to->ptr);
    if (status != CCMR_SUCCESS) {
        to->ptr = NULL;
        CREW_CHECK(status == CCMR_ERROR_OUT_OF_DEVICE_MEMORY ||
                   status == CCMR_ERROR_LIMIT_EXCEEDED);
        atomic_fetch_add(&refused, 1);
        return;
    }
    DO(api.cuMemsetD32Async((CUdeviceptr)(uintptr_t)to->ptr, to->pattern,
                            to->bytes / 4, to->stream));
}

/* The stream goes on only when the block's work is done. */
static void order(worker *in, block *of, CUstream stream)
{
    CUevent event = of->event;

    (void)in;
    if (event == NULL && stream != of->stream) {
        DO(api.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
        DO(api.cuEventRecord(event, of->stream));
    }
    if (event != NULL) {
        DO(api.cuStreamWaitEvent(stream, event, 0));
        DO(api.cuEventDestroy(event));
        of->event = NULL;
    }
}

static void give(worker *in, block *from)
{
    CUstream stream = crew_random(in->self, 4) == 0 || from->event != NULL
                          ? any_stream(in)
                          : from->stream;

    order(in, from, stream);
    stage_block(in, from, stream);
    CREW_CHECK(ccmr_resource_deallocate(pool, from->ptr, from->bytes, 0,
                                        stream) == CCMR_SUCCESS);
    from->ptr = NULL;
    atomic_fetch_add_explicit(&operations, 1, memory_order_relaxed);
}

/* The block goes to another thread, and one of another comes, or none. */
static void swap(worker *in, block *mine)
{
    block *place = &places[crew_random(in->self, PLACES)];
    block other;

    if (mine->ptr != NULL && mine->event == NULL) {
        DO(api.cuEventCreate(&mine->event, CU_EVENT_DISABLE_TIMING));
        DO(api.cuEventRecord(mine->event, mine->stream));
    }
    (void)pthread_mutex_lock(&lock);
    other = *place;
    *place = *mine;
    (void)pthread_mutex_unlock(&lock);
    *mine = other;
}

static void turn(worker *in)
{
    block *at = &in->blocks[crew_random(in->self, SLOTS)];

    if (crew_random(in->self, 32) == 0) {
        swap(in, at);
    } else if (at->ptr != NULL) {
        give(in, at);
    } else {
        take(in, at);
    }
}

/* ---- threads ------------------------------------------------------------ */

static void begin(worker *in, crew_member *self)
{
    void *pinned = NULL;
    size_t i;

    in->self = self;
    DO(api.cuCtxSetCurrent(context));
    DO(api.cuMemHostAlloc(&pinned, STAGES * PART, 0));
    in->pinned = pinned;
    for (i = 0; i < STAGES; i++) {
        in->stages[i].words = in->pinned + i * (PART / sizeof(unsigned));
    }
    for (i = 0; i < STREAMS; i++) {
        DO(api.cuStreamCreate(&in->streams[i], CU_STREAM_NON_BLOCKING));
        if (self->index % 2 == 0) {
            CREW_CHECK(ccmr_stream_register(in->streams[i]) == CCMR_SUCCESS);
        }
    }
}

static void end(worker *in)
{
    size_t i;

    for (i = 0; i < SLOTS; i++) {
        if (in->blocks[i].ptr != NULL) {
            give(in, &in->blocks[i]);
        }
    }
    compare_all(in);
    for (i = 0; i < STREAMS; i++) {
        if (in->self->index % 2 == 0) {
            CREW_CHECK(ccmr_stream_retire(in->streams[i]) == CCMR_SUCCESS);
        }
    }
    DO(api.cuMemFreeHost(in->pinned));
}

/* Streams live longer than the blocks of theirs that others still have. */
static void work(crew_member *self)
{
    worker *in = calloc(1, sizeof(*in));
    pthread_barrier_t *all = self->context;
    size_t i;

    if (in == NULL) {
        tap_bail_out("no memory");
    }
    begin(in, self);
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        turn(in);
    }
    (void)pthread_barrier_wait(all); /* nothing is left there any more */
    if (self->index == 0) {
        for (i = 0; i < PLACES; i++) {
            if (places[i].ptr != NULL) {
                give(in, &places[i]);
            }
        }
    }
    end(in);
    (void)pthread_barrier_wait(all);
    for (i = 0; i < STREAMS; i++) {
        DO(api.cuStreamDestroy(in->streams[i]));
    }
    free(in);
}

static double now(void)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Beside the workers, and when their time is up tells them. */
static void *look_after(void *seconds)
{
    const struct timespec pause = {0, 20000000};
    double until = now() + *(const double *)seconds;
    ccmr_stats stats = {.size = sizeof(stats)};
    unsigned round = 0;

    CREW_CHECK(api.cuCtxSetCurrent(context) == CUDA_SUCCESS);
    while (now() < until) {
        (void)nanosleep(&pause, NULL);
        CREW_CHECK(ccmr_resource_audit(pool) == CCMR_SUCCESS);
        CREW_CHECK(ccmr_resource_stats(pool, &stats) == CCMR_SUCCESS);
        if (++round % 8 == 0) {
            CREW_CHECK(ccmr_resource_trim(pool, round % 16 == 0 ? 0 : 64 * MIB,
                                          NULL) == CCMR_SUCCESS);
        }
    }
    atomic_store(&stop, 1);
    return NULL;
}

static void play(const char *stack, int threads, double seconds)
{
    ccmr_stats stats = {.size = sizeof(stats)};
    pthread_barrier_t all;
    pthread_t beside;

    atomic_store(&stop, 0);
    atomic_store(&operations, 0);
    atomic_store(&compared, 0);
    atomic_store(&refused, 0);
    if (ccmr_stack_create(stack, &pool) != CCMR_SUCCESS) {
        tap_bail_out("%s: %s", stack, ccmr_last_error()->message);
    }
    (void)pthread_barrier_init(&all, NULL, (unsigned)threads);
    if (pthread_create(&beside, NULL, look_after, &seconds) != 0) {
        tap_bail_out("no thread");
    }
    crew_run(threads, work, &all);
    (void)pthread_join(beside, NULL);
    (void)pthread_barrier_destroy(&all);
    tap_is_int(crew_faults(), 0, "%s: %d threads, each block had its own data",
               stack, threads);
    tap_ok(atomic_load(&operations) > 0,
           "%s: %llu blocks, %llu MiB were compared, %llu were refused", stack,
           atomic_load(&operations), atomic_load(&compared) >> 20,
           atomic_load(&refused));
    tap_ok(ccmr_resource_audit(pool) == CCMR_SUCCESS &&
               ccmr_resource_stats(pool, &stats) == CCMR_SUCCESS &&
               stats.live_blocks == 0,
           "%s: nothing is live", stack);
    ccmr_resource_release(pool);
}

static void start(void)
{
    ccmr_driver_info info = {.size = sizeof(info)};
    const char *reason = "";
    CUdevice device;

    /* Where the driver is the simulator, work runs late, and chance decides
     * which stream goes on. */
    (void)setenv("CUCOREMR_SIM_MODE", "late", 0);
    (void)setenv("CUCOREMR_SIM_SEED", "1", 0);
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
    most_bytes = simulator != NULL ? MIB / 2 : 32 * MIB;
    tap_diag("driver %s", info.path);
}

int main(int argc, char **argv)
{
    static const char *const usual[] = {
        "pool | virtual", "pool | device_pool", "pool | device_plain",
        "pool hard=16MiB | virtual", "pool hard=16MiB | device_plain"};
    const char *const *stacks = usual;
    size_t count = sizeof(usual) / sizeof(usual[0]);
    double minutes = 0;
    int threads = 0;
    int i = 1;
    size_t at;

    for (; i + 1 < argc && strncmp(argv[i], "--", 2) == 0; i += 2) {
        if (strcmp(argv[i], "--minutes") == 0) {
            minutes = strtod(argv[i + 1], NULL);
        } else if (strcmp(argv[i], "--threads") == 0) {
            threads = atoi(argv[i + 1]);
        } else {
            tap_bail_out("unknown option %s", argv[i]);
        }
    }
    start();
    if (i < argc) {
        stacks = (const char *const *)&argv[i];
        count = (size_t)(argc - i);
    }
    if (threads <= 0 || threads > CREW_MOST) {
        threads = simulator != NULL ? 4 : 16;
    }
    for (at = 0; at < count; at++) {
        play(stacks[at], threads,
             minutes > 0 ? minutes * 60 / (double)count : 1);
    }
    (void)api.cuDevicePrimaryCtxRelease(0);
    return api_end(tap_finish());
}
