/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool with capture=reserve under threads, each of which captures graphs, runs
 * them as often as it likes, and has memory of its own beside them, while others
 * trim and audit. What a graph computes in its memory, and what lies in others',
 * is never somebody else's.
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cucoremr/cucoremr.h>

#include "tests/stress/crew.h"
#include "tests/support/api.h"
#include "tests/support/tap.h"

#define WORKERS 4
#define HELPERS 2
#define STEPS 150
#define GRAPHS 3
#define SLOTS 3 /* blocks that a graph computes in */
#define BLOCKS 6
#define WORDS 64 /* of a block that are looked at */

/* Memory of the worker: it is in the pool, and filled with a word. */
typedef struct block {
    void *ptr;
    size_t bytes;
    uint32_t word;
} block;

/* A graph that puts a word into each slot of its output, by way of blocks of
 * the pool. What it did not free itself is freed elsewhere, sometime. */
typedef struct drawing {
    CUgraph graph;
    CUgraphExec exec;
    CUdeviceptr out;
    uint32_t words[SLOTS];
    block left[SLOTS];
} drawing;

typedef struct worker {
    crew_member *crew;
    ccmr_stream stream;
    drawing drawings[GRAPHS];
    block blocks[BLOCKS];
    uint32_t next_word;
} worker;

static ccmr_resource *pool;
static ccmr_stream streams[WORKERS];
static atomic_int at_work;

static int good(CUresult res)
{
    return res == CUDA_SUCCESS;
}

static uint32_t dice(const worker *w, uint32_t bound)
{
    return crew_random(w->crew, bound);
}

static size_t some_size(const worker *w)
{
    static const size_t most[] = {2000, 60000, 900000, 5000000};

    return 4 * WORDS + dice(w, (uint32_t)most[dice(w, 4)]) / 4 * 4;
}

static void fill(const worker *w, const block *one)
{
    CREW_CHECK(
        good(api.cuMemsetD32Async((CUdeviceptr)(uintptr_t)one->ptr, one->word,
                                  one->bytes / 4, w->stream)));
}

/* The stream has finished. */
static void check_words(CUdeviceptr from, uint32_t word, const char *what)
{
    uint32_t words[WORDS];
    unsigned i;

    CREW_CHECK(good(
        api.cuMemcpy((CUdeviceptr)(uintptr_t)words, from, sizeof(words))));
    for (i = 0; i < WORDS; i++) {
        if (words[i] != word) {
            crew_fault(what);
            return;
        }
    }
}

static void synchronize(const worker *w)
{
    CREW_CHECK(good(api.cuStreamSynchronize(w->stream)));
}

static int take(worker *w, block *one)
{
    one->bytes = some_size(w);
    one->word = w->next_word++;
    if (ccmr_resource_allocate(pool, one->bytes, 0, w->stream, &one->ptr) !=
        CCMR_SUCCESS) {
        crew_fault(ccmr_last_error()->message);
        one->ptr = NULL;
        return 0;
    }
    fill(w, one);
    return 1;
}

static void give(block *one, ccmr_stream stream)
{
    CREW_CHECK(ccmr_resource_deallocate(pool, one->ptr, one->bytes, 0,
                                        stream) == CCMR_SUCCESS);
    one->ptr = NULL;
}

/* Both ends of it are as they were filled. */
static void check_block(const block *one)
{
    CUdeviceptr ptr = (CUdeviceptr)(uintptr_t)one->ptr;

    check_words(ptr, one->word, "a block has another one's contents");
    check_words(ptr + one->bytes - 4 * WORDS, one->word,
                "a block's end has another one's contents");
}

static void ordinary(worker *w)
{
    block *one = &w->blocks[dice(w, BLOCKS)];

    if (one->ptr == NULL) {
        (void)take(w, one);
        return;
    }
    synchronize(w);
    check_block(one);
    give(one, dice(w, 3) == 0 ? CCMR_STREAM_READY : w->stream);
}

/* ---- graphs --------------------------------------------------------------------- */

/* A block that was there before is filled by the graph, each time, and freed
 * in the capture. */
static void park(worker *w)
{
    block *one = &w->blocks[dice(w, BLOCKS)];

    if (one->ptr != NULL) {
        one->word = w->next_word++;
        fill(w, one);
        give(one, w->stream);
    }
}

static void draw(worker *w, drawing *d)
{
    unsigned i;

    memset(d->left, 0, sizeof(d->left));
    for (i = 0; i < SLOTS; i++) {
        block *one = &d->left[i];

        if (take(w, one)) {
            d->words[i] = one->word;
            CREW_CHECK(good(api.cuMemcpyAsync(
                d->out + (size_t)i * 4 * WORDS,
                (CUdeviceptr)(uintptr_t)one->ptr + one->bytes - 4 * WORDS,
                4 * WORDS, w->stream)));
        }
        if (one->ptr != NULL && dice(w, 3) != 0) {
            give(one, w->stream);
        }
    }
    if (dice(w, 2) == 0) {
        park(w);
    }
}

static void capture(worker *w, drawing *d)
{
    if (!good(api.cuMemAlloc(&d->out, SLOTS * 4 * WORDS))) {
        crew_fault("no memory for what is drawn");
        return;
    }
    CREW_CHECK(ccmr_stream_set_capturing(w->stream, 1) == CCMR_SUCCESS);
    CREW_CHECK(good(
        api.cuStreamBeginCapture(w->stream, CU_STREAM_CAPTURE_MODE_RELAXED)));
    draw(w, d);
    CREW_CHECK(good(api.cuStreamEndCapture(w->stream, &d->graph)));
    CREW_CHECK(ccmr_stream_set_capturing(w->stream, 0) == CCMR_SUCCESS);
    CREW_CHECK(d->graph != NULL &&
               good(api.cuGraphInstantiateWithFlags(&d->exec, d->graph, 0)));
}

/* It is the graph's still. */
static void give_left(worker *w, drawing *d)
{
    unsigned i;

    for (i = 0; i < SLOTS; i++) {
        if (d->left[i].ptr != NULL) {
            give(&d->left[i], dice(w, 2) == 0 ? CCMR_STREAM_READY : w->stream);
        }
    }
}

static void launch(worker *w, drawing *d)
{
    unsigned i;

    if (dice(w, 3) == 0) {
        synchronize(w);
        give_left(w, d);
    }

    CREW_CHECK(
        good(api.cuMemsetD32Async(d->out, 0, SLOTS * WORDS, w->stream)));
    CREW_CHECK(good(api.cuGraphLaunch(d->exec, w->stream)));
    if (dice(w, 2) == 0) {
        synchronize(w);
        for (i = 0; i < SLOTS; i++) {
            check_words(d->out + (size_t)i * 4 * WORDS, d->words[i],
                        "a graph's memory was another one's, too");
        }
    }
}

/* In any order, and perhaps while it runs. What it left outlives it, or goes
 * before. */
static void destroy(worker *w, drawing *d)
{
    int exec_first = dice(w, 2) == 0;
    int left_first = dice(w, 2) == 0;
    unsigned i;

    for (i = 0; i < SLOTS && left_first; i++) {
        if (d->left[i].ptr != NULL) {
            give(&d->left[i], w->stream);
        }
    }
    if (exec_first) {
        CREW_CHECK(good(api.cuGraphExecDestroy(d->exec)));
    }
    CREW_CHECK(good(api.cuGraphDestroy(d->graph)));
    if (!exec_first) {
        CREW_CHECK(good(api.cuGraphExecDestroy(d->exec)));
    }
    for (i = 0; i < SLOTS; i++) {
        if (d->left[i].ptr != NULL) {
            fill(w, &d->left[i]);
            give(&d->left[i], w->stream);
        }
    }
    synchronize(w);
    CREW_CHECK(good(api.cuMemFree(d->out)));
    d->exec = NULL;
    d->graph = NULL;
}

static void graphs(worker *w)
{
    drawing *d = &w->drawings[dice(w, GRAPHS)];

    if (d->exec == NULL) {
        capture(w, d);
    } else if (dice(w, 4) == 0) {
        destroy(w, d);
    } else {
        launch(w, d);
    }
}

static void work(crew_member *self)
{
    worker w = {.crew = self,
                .stream = streams[self->index],
                .next_word = (uint32_t)(self->index + 1) << 24};
    CUcontext context;
    int i;

    CREW_CHECK(good(api.cuDevicePrimaryCtxRetain(&context, 0)) &&
               good(api.cuCtxSetCurrent(context)));
    for (i = 0; i < STEPS; i++) {
        if (dice(&w, 2) == 0) {
            ordinary(&w);
        } else {
            graphs(&w);
        }
    }
    for (i = 0; i < GRAPHS; i++) {
        if (w.drawings[i].exec != NULL) {
            destroy(&w, &w.drawings[i]);
        }
    }
    for (i = 0; i < BLOCKS; i++) {
        if (w.blocks[i].ptr != NULL) {
            check_block(&w.blocks[i]);
            give(&w.blocks[i], w.stream);
        }
    }
    CREW_CHECK(good(api.cuDevicePrimaryCtxRelease(0)));
    atomic_fetch_sub(&at_work, 1);
}

static void help(crew_member *self)
{
    while (atomic_load(&at_work) > 0) {
        ccmr_trim_result result = {.size = sizeof(result)};

        if (self->index == WORKERS) {
            CREW_CHECK(ccmr_resource_trim(pool, crew_random(self, 8) << 20,
                                          &result) == CCMR_SUCCESS);
        } else {
            CREW_CHECK(ccmr_resource_audit(pool) == CCMR_SUCCESS);
        }
        (void)usleep(500);
    }
}

static void everything(crew_member *self)
{
    if (self->index < WORKERS) {
        work(self);
    } else {
        help(self);
    }
}

/* A graph may tell by another thread that it has gone, a little later. */
static size_t reserved_at_last(void)
{
    ccmr_stats stats = {.size = sizeof(stats)};
    int tries;
    int i;

    for (tries = 0; tries < 1000; tries++) {
        for (i = 0; i < WORKERS; i++) {
            (void)api.cuStreamSynchronize(streams[i]);
        }
        if (ccmr_resource_trim(pool, 0, NULL) != CCMR_SUCCESS ||
            ccmr_resource_stats(pool, &stats) != CCMR_SUCCESS ||
            stats.reserved_bytes == 0) {
            break;
        }
        (void)usleep(1000);
    }
    return stats.reserved_bytes;
}

static void test(const char *text)
{
    if (ccmr_stack_create(text, &pool) != CCMR_SUCCESS) {
        tap_bail_out("%s: %s", text, ccmr_last_error()->message);
    }
    atomic_store(&at_work, WORKERS);
    crew_run(WORKERS + HELPERS, everything, NULL);
    tap_is_int(crew_faults(), 0, "%s: nothing went wrong", text);
    tap_ok(ccmr_resource_audit(pool) == CCMR_SUCCESS, "%s: audit", text);
    tap_is_size(reserved_at_last(), 0, "%s: all goes back", text);
    ccmr_resource_release(pool);
}

/* An audit has the locks of all streams at once, and ThreadSanitizer's search
 * for deadlocks ends the process where a thread has 64. */
__attribute__((visibility("default"))) const char *__tsan_default_options(
    void);

const char *__tsan_default_options(void)
{
    return "detect_deadlocks=0";
}

int main(void)
{
    CUcontext context;
    int i;

    (void)api_simulator();
    if (ccmr_init(NULL) != CCMR_SUCCESS ||
        !good(api.cuDevicePrimaryCtxRetain(&context, 0)) ||
        !good(api.cuCtxSetCurrent(context))) {
        tap_bail_out("no context: %s", ccmr_last_error()->message);
    }
    (void)simulator->set_mode(CCMR_SIM_LATE);
    for (i = 0; i < WORKERS; i++) {
        if (ccmr_stream_create(0, CCMR_STREAM_FLAG_NON_BLOCKING,
                               &streams[i]) != CCMR_SUCCESS) {
            tap_bail_out("no stream: %s", ccmr_last_error()->message);
        }
    }
    test("pool capture=reserve | device_plain");
    test("pool capture=reserve | device_pool");
    test("pool capture=reserve handle=2MiB | virtual");
    test("pool capture=reserve hard=512MiB | virtual");
    for (i = 0; i < WORKERS; i++) {
        if (ccmr_stream_destroy(streams[i]) != CCMR_SUCCESS) {
            tap_fail("a stream goes");
        }
    }
    (void)simulator->reset(NULL);
    return tap_finish();
}
