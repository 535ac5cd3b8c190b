/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool with capture=reserve on the simulated driver: what a captured graph was
 * given is its alone until it has gone, however often it runs and whatever
 * the pool does meanwhile. Field cases D1, D2, D4.
 */
#include "tests/unit/leaf.h"

#include <unistd.h>

#include "tests/unit/adaptor.h"

#define UNIT (2 * MIB)
#define ROUNDS 6
#define OTHERS 24

static const char *const uppers[] = {"device_plain", "device_pool", "virtual",
                                     "limiting bytes=1GiB | virtual"};
#define UPPERS (sizeof(uppers) / sizeof(uppers[0]))

static const ccmr_sim_table *sim;
static ccmr_resource *made;
static ccmr_stream known; /* registered */
static ccmr_stream side;  /* too */
static ccmr_stream one;   /* not */
static ccmr_stream two;

static void start(void)
{
    sim = leaf_start();
    (void)sim->set_mode(CCMR_SIM_LATE);
    (void)sim->check_order(1);
    cr_assert_eq(api.cuCtxPushCurrent(leaf_context(0)), CUDA_SUCCESS);
    GOOD(ccmr_stream_create(0, CCMR_STREAM_FLAG_NON_BLOCKING, &known));
    GOOD(ccmr_stream_create(0, CCMR_STREAM_FLAG_NON_BLOCKING, &side));
    one = leaf_stream(0);
    two = leaf_stream(0);
}

static void end(void)
{
    MUST(made == NULL || ccmr_resource_audit(made) == CCMR_SUCCESS);
    ccmr_resource_release(made);
    MUST(sim->hazards() == 0);
    MUST(leaf_census().events == 0);
    MUST(leaf_census().pieces == 0);
    MUST(leaf_census().plain_blocks == 0);
    MUST(leaf_census().pool_blocks == 0);
    leaf_end();
}

TestSuite(pool_capture, .init = start, .fini = end);

static void make(const char *options, const char *upstream)
{
    char text[256];

    ccmr_resource_release(made);
    made = NULL;
    (void)snprintf(text, sizeof(text), "pool capture=reserve %s | %s", options,
                   upstream);
    GOOD(ccmr_stack_create(text, &made));
}

static void give_on(void *ptr, size_t bytes, ccmr_stream stream)
{
    GOOD(ccmr_resource_deallocate(made, ptr, bytes, 0, stream));
}

static ccmr_trim_result trim(void)
{
    ccmr_trim_result result = {.size = sizeof(result)};

    GOOD(ccmr_resource_trim(made, 0, &result));
    GOOD(ccmr_resource_audit(made));
    return result;
}

/* An executable graph that is the last one tells by another thread. */
static void wait_for_graphs(void)
{
    int tries;

    for (tries = 0; tries < 2000 && trim().pinned_bytes != 0; tries++) {
        (void)usleep(1000);
    }
}

/* ---- graphs ---------------------------------------------------------------------- */

static void begin(ccmr_stream stream)
{
    (void)ccmr_stream_set_capturing(stream, 1);
    cr_assert_eq(
        api.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL),
        CUDA_SUCCESS);
}

static int is_active(ccmr_stream stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

    return api.cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
           status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

static CUgraph finish(ccmr_stream stream)
{
    CUgraph graph = NULL;

    cr_assert_eq(api.cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    cr_assert_not_null(graph);
    (void)ccmr_stream_set_capturing(stream, 0);
    return graph;
}

static CUgraphExec instantiate(CUgraph graph)
{
    CUgraphExec exec = NULL;

    cr_assert_eq(api.cuGraphInstantiateWithFlags(&exec, graph, 0),
                 CUDA_SUCCESS);
    return exec;
}

static void fill(void *ptr, size_t bytes, uint32_t word, ccmr_stream stream)
{
    cr_assert_eq(api.cuMemsetD32Async((CUdeviceptr)(uintptr_t)ptr, word,
                                      bytes / 4, stream),
                 CUDA_SUCCESS);
}

static void copy(void *to, const void *from, size_t bytes, ccmr_stream stream)
{
    cr_assert_eq(api.cuMemcpyAsync((CUdeviceptr)(uintptr_t)to,
                                   (CUdeviceptr)(uintptr_t)from, bytes,
                                   stream),
                 CUDA_SUCCESS);
}

static void expect(const void *ptr, size_t bytes, uint32_t word)
{
    uint32_t *words = malloc(bytes);
    size_t i;

    cr_assert_not_null(words);
    cr_assert_eq(api.cuMemcpy((CUdeviceptr)(uintptr_t)words,
                              (CUdeviceptr)(uintptr_t)ptr, bytes),
                 CUDA_SUCCESS);
    for (i = 0; i < bytes / 4; i++) {
        cr_assert_eq(words[i], word, "word %zu is %x, not %x", i, words[i],
                     word);
    }
    free(words);
}

static void synchronize(void)
{
    cr_assert_eq(api.cuStreamSynchronize(known), CUDA_SUCCESS);
    cr_assert_eq(api.cuStreamSynchronize(side), CUDA_SUCCESS);
    cr_assert_eq(api.cuStreamSynchronize(one), CUDA_SUCCESS);
    cr_assert_eq(api.cuStreamSynchronize(two), CUDA_SUCCESS);
}

/* ---- the graph's memory is its own ------------------------------------------------- */

/* A graph that computes with memory it was given: 3 in `out`, 9 in `next`. */
static CUgraph capture_work(ccmr_stream stream, void *out, void *next,
                            size_t bytes)
{
    void *block;
    void *again;

    begin(stream);
    block = take_on(made, bytes, stream);
    cr_assert(is_active(stream), "allocate disturbed the capture");
    fill(block, bytes, 3, stream);
    copy(out, block, bytes, stream);
    give_on(block, bytes, stream);
    cr_assert(is_active(stream), "deallocate disturbed the capture");
    again = take_on(made, bytes, stream);
    cr_assert_eq(again, block, "it does not serve the same stream again");
    fill(again, bytes, 9, stream);
    copy(next, again, bytes, stream);
    give_on(again, bytes, stream);
    return finish(stream);
}

/* Others use all the memory that they get, on every stream, while the graph
 * runs. */
static void others_work(size_t bytes, int round)
{
    ccmr_stream streams[] = {known, side, one, two};
    void *blocks[OTHERS];
    int i;

    for (i = 0; i < OTHERS; i++) {
        blocks[i] = take_on(made, bytes, streams[i % 4]);
        fill(blocks[i], bytes, 0x77000000u + (uint32_t)i, streams[i % 4]);
    }
    if (round % 2 == 0) {
        (void)trim();
    }
    synchronize();
    for (i = 0; i < OTHERS; i++) {
        expect(blocks[i], bytes, 0x77000000u + (uint32_t)i);
        give_on(blocks[i], bytes, streams[i % 4]);
    }
}

static void run_beside_others(ccmr_stream stream, size_t bytes)
{
    void *out = take_on(made, bytes, stream);
    void *next = take_on(made, bytes, stream);
    CUgraph graph;
    CUgraphExec exec;
    int round;

    others_work(bytes, 1); /* so that there is free memory of that size */
    graph = capture_work(stream, out, next, bytes);
    exec = instantiate(graph);
    for (round = 0; round < ROUNDS; round++) {
        fill(out, bytes, 0, side);
        fill(next, bytes, 0, side);
        synchronize();
        cr_assert_eq(api.cuGraphLaunch(exec, round % 2 ? side : two),
                     CUDA_SUCCESS);
        others_work(bytes, round);
        synchronize();
        expect(out, bytes, 3);
        expect(next, bytes, 9);
    }
    give_on(out, bytes, stream);
    give_on(next, bytes, stream);
    cr_assert_eq(api.cuGraphDestroy(graph), CUDA_SUCCESS);
    cr_assert_gt(trim().pinned_bytes, 0u, "what is instantiated has it, too");
    cr_assert_eq(api.cuGraphExecDestroy(exec), CUDA_SUCCESS);
    wait_for_graphs();
}

Test(pool_capture, a_graph_runs_beside_others)
{
    size_t i;

    for (i = 0; i < UPPERS; i++) {
        ccmr_trim_result result;

        make("", uppers[i]);
        run_beside_others(known, 700 * KIB);
        run_beside_others(one, 3 * MIB + 512);
        run_beside_others(one, 1000);
        GOOD(ccmr_stream_retire(one));
        GOOD(ccmr_stream_retire(two));
        (void)trim();
        synchronize();
        result = trim();
        cr_assert_eq(result.pinned_bytes, 0u, "%s", uppers[i]);
        cr_assert_eq(stats_of(made).reserved_bytes, 0u, "%s: %zu", uppers[i],
                     stats_of(made).reserved_bytes);
    }
}

/* Nothing is asked of the stream but what captures on it. */
Test(pool_capture, asks_little)
{
    void *ptr;

    make("", "device_plain");
    begin(one);
    ptr = take_on(made, 1000, one);
    give_on(ptr, 1000, one);
    (void)sim->forget_calls();
    ptr = take_on(made, 1000, one);
    give_on(ptr, 1000, one);
    cr_assert_eq(sim->calls("cuStreamGetId"), 0u);
    cr_assert_eq(sim->calls("cuStreamGetDevice"), 0u);
    cr_assert_eq(sim->calls("cuEventRecord"), 0u);
    cr_assert_eq(sim->calls("cuEventQuery"), 0u);
    cr_assert_eq(sim->calls("cuStreamWaitEvent"), 0u);
    cr_assert_eq(sim->calls("cuStreamSynchronize"), 0u);
    cr_assert_eq(sim->calls("cuStreamGetCaptureInfo"), 2u);
    cr_assert_eq(sim->calls("cuUserObjectCreate"), 0u);
    cr_assert_eq(api.cuGraphDestroy(finish(one)), CUDA_SUCCESS);
    cr_assert_neq(ccmr_last_error()->status, CCMR_ERROR_CAPTURING,
                  "a success left an error behind");
}

/* What one stream of a capture freed is not handed out on another one, with
 * which it may run side by side. */
Test(pool_capture, forked_streams_share_no_free_memory)
{
    CUevent fork;
    CUevent join;
    CUgraph graph;
    CUgraphExec exec;
    void *out = NULL;
    void *a;
    void *b;
    int i;

    make("", "virtual");
    out = take_on(made, 2 * 64 * KIB, one);
    cr_assert_eq(api.cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING),
                 CUDA_SUCCESS);
    cr_assert_eq(api.cuEventCreate(&join, CU_EVENT_DISABLE_TIMING),
                 CUDA_SUCCESS);
    begin(one);
    cr_assert_eq(api.cuEventRecord(fork, one), CUDA_SUCCESS);
    cr_assert_eq(api.cuStreamWaitEvent(two, fork, 0), CUDA_SUCCESS);
    a = take_on(made, 64 * KIB, one);
    fill(a, 64 * KIB, 5, one);
    copy(out, a, 64 * KIB, one);
    give_on(a, 64 * KIB, one);
    b = take_on(made, 64 * KIB, two);
    cr_assert_neq(a, b);
    fill(b, 64 * KIB, 6, two);
    copy((char *)out + 64 * KIB, b, 64 * KIB, two);
    give_on(b, 64 * KIB, two);
    cr_assert_eq(take_on(made, 64 * KIB, two), b);
    cr_assert_eq(take_on(made, 64 * KIB, one), a);
    give_on(a, 64 * KIB, one);
    give_on(b, 64 * KIB, two);
    cr_assert_eq(api.cuEventRecord(join, two), CUDA_SUCCESS);
    cr_assert_eq(api.cuStreamWaitEvent(one, join, 0), CUDA_SUCCESS);
    graph = finish(one);
    exec = instantiate(graph);
    for (i = 0; i < ROUNDS; i++) {
        cr_assert_eq(api.cuGraphLaunch(exec, one), CUDA_SUCCESS);
    }
    synchronize();
    expect(out, 64 * KIB, 5);
    expect((char *)out + 64 * KIB, 64 * KIB, 6);
    give_on(out, 2 * 64 * KIB, one);
    cr_assert_eq(api.cuGraphExecDestroy(exec), CUDA_SUCCESS);
    cr_assert_eq(api.cuGraphDestroy(graph), CUDA_SUCCESS);
    cr_assert_eq(api.cuEventDestroy(fork), CUDA_SUCCESS);
    cr_assert_eq(api.cuEventDestroy(join), CUDA_SUCCESS);
}

/* Several captures at once have nothing in common. */
Test(pool_capture, captures_at_once)
{
    CUgraph graphs[2];
    void *a;
    void *b;

    make("", "virtual");
    begin(one);
    cr_assert_eq(api.cuStreamBeginCapture(two, CU_STREAM_CAPTURE_MODE_RELAXED),
                 CUDA_SUCCESS);
    a = take_on(made, UNIT, one);
    give_on(a, UNIT, one);
    b = take_on(made, UNIT, two);
    cr_assert_neq(a, b);
    give_on(b, UNIT, two);
    graphs[0] = finish(one);
    graphs[1] = finish(two);
    cr_assert_eq(trim().pinned_bytes, 2 * UNIT);
    cr_assert_eq(api.cuGraphDestroy(graphs[0]), CUDA_SUCCESS);
    cr_assert_eq(trim().pinned_bytes, UNIT);
    cr_assert_eq(stats_of(made).reserved_bytes, UNIT);
    cr_assert_eq(api.cuGraphDestroy(graphs[1]), CUDA_SUCCESS);
    cr_assert_eq(trim().released_bytes, UNIT);
}

/* ---- frees here and there ----------------------------------------------------------- */

/* A block that the graph uses and frees, though it was not captured. */
static void park_outside(const char *upstream, ccmr_stream stream)
{
    ccmr_trim_result result;
    void *others[8];
    CUgraph graph;
    void *block;
    int i;

    make("", upstream);
    block = take_on(made, UNIT, stream);
    fill(block, UNIT, 1, stream);
    begin(stream);
    fill(block, UNIT, 2, stream);
    give_on(block, UNIT, stream);
    cr_assert(is_active(stream));
    graph = finish(stream);
    for (i = 0; i < 8; i++) {
        others[i] = take_on(made, UNIT, stream);
        cr_assert_neq(others[i], block);
    }
    for (i = 0; i < 8; i++) {
        give_on(others[i], UNIT, stream);
    }
    cr_assert_eq(api.cuStreamSynchronize(stream), CUDA_SUCCESS);
    result = trim();
    cr_assert_geq(result.pinned_bytes, UNIT);
    cr_assert_geq(stats_of(made).reserved_bytes, UNIT);
    cr_assert_eq(api.cuGraphDestroy(graph), CUDA_SUCCESS);
    if (stream == known) {
        (void)trim();
        cr_assert_eq(stats_of(made).reserved_bytes, 0u, "%s", upstream);
    }
}

Test(pool_capture, blocks_from_outside_are_parked)
{
    size_t i;

    for (i = 0; i < UPPERS; i++) {
        park_outside(uppers[i], known);
        park_outside(uppers[i], one);
    }
}

/* The graph never ran, and what its stream did with the block before is not
 * finished: the block is not handed out as if it were. */
Test(pool_capture, what_came_before_is_waited_for)
{
    CUgraph graph;
    void *block;
    void *next;

    make("hard=2MiB initial=2MiB", "device_plain");
    block = take_on(made, UNIT, known);
    cr_assert_eq(sim->stall(known), 0);
    fill(block, UNIT, 1, known);
    begin(known);
    give_on(block, UNIT, known);
    graph = finish(known);
    cr_assert_eq(api.cuGraphDestroy(graph), CUDA_SUCCESS);
    next = take_on(made, UNIT, side); /* behind a wait for it */
    cr_assert_eq(next, block);
    fill(next, UNIT, 8, side);
    (void)sim->run(UINT64_MAX); /* all that is not stalled and need not wait */
    cr_assert_eq(sim->release(known), 0);
    synchronize();
    expect(next, UNIT, 8);
    give_on(next, UNIT, side);
}

/* Freed where nothing captures, a graph's block is the graph's still. */
static void free_elsewhere(const char *upstream, ccmr_stream stream)
{
    void *others[8];
    CUgraph graph;
    void *block;
    void *kept;
    int i;

    make("", upstream);
    begin(one);
    block = take_on(made, UNIT, one);
    kept = take_on(made, UNIT, one);
    fill(block, UNIT, 4, one);
    fill(kept, UNIT, 4, one);
    graph = finish(one);
    give_on(block, UNIT, stream);
    for (i = 0; i < 8; i++) {
        others[i] = take_on(made, UNIT, side);
        cr_assert_neq(others[i], block);
    }
    for (i = 0; i < 8; i++) {
        give_on(others[i], UNIT, side);
    }
    cr_assert_eq(trim().pinned_bytes, UNIT);
    cr_assert_eq(api.cuGraphDestroy(graph), CUDA_SUCCESS);
    synchronize();
    cr_assert_eq(trim().pinned_bytes, 0u);
    /* It outlived its graph, and is like any other now. */
    fill(kept, UNIT, 5, stream == CCMR_STREAM_READY ? side : stream);
    synchronize();
    give_on(kept, UNIT, stream);
    synchronize();
    (void)trim();
    cr_assert_eq(stats_of(made).live_blocks, 0u);
    if (stream != one) {
        cr_assert_eq(stats_of(made).reserved_bytes, 0u, "%s", upstream);
    }
}

Test(pool_capture, graph_blocks_freed_elsewhere)
{
    size_t i;

    for (i = 0; i < UPPERS; i++) {
        free_elsewhere(uppers[i], side);
        free_elsewhere(uppers[i], one);
        free_elsewhere(uppers[i], CCMR_STREAM_READY);
    }
}

/* Another graph frees it: both have it. */
Test(pool_capture, two_graphs_have_a_block)
{
    CUgraph graphs[2];
    void *block;

    make("", "virtual");
    begin(one);
    block = take_on(made, UNIT, one);
    graphs[0] = finish(one);
    begin(two);
    give_on(block, UNIT, two);
    graphs[1] = finish(two);
    cr_assert_eq(trim().pinned_bytes, UNIT);
    cr_assert_eq(api.cuGraphDestroy(graphs[0]), CUDA_SUCCESS);
    cr_assert_eq(trim().pinned_bytes, UNIT);
    cr_assert_eq(api.cuGraphDestroy(graphs[1]), CUDA_SUCCESS);
    cr_assert_eq(trim().pinned_bytes, 0u);
}

/* ---- captures that go wrong, budgets, ends ------------------------------------------- */

Test(pool_capture, an_invalid_capture)
{
    CUgraph graph = NULL;
    void *ptr = NULL;
    void *block;

    make("", "device_plain");
    begin(one);
    block = take_on(made, UNIT, one);
    (void)api.cuStreamSynchronize(one); /* ruins it */
    BAD(ccmr_resource_allocate(made, UNIT, 0, one, &ptr),
        CCMR_ERROR_CAPTURING);
    BAD(ccmr_resource_deallocate(made, block, UNIT, 0, one),
        CCMR_ERROR_CAPTURING);
    cr_assert_neq(api.cuStreamEndCapture(one, &graph), CUDA_SUCCESS);
    cr_assert_null(graph);
    give_on(block, UNIT, CCMR_STREAM_READY);
    cr_assert_eq(trim().released_bytes, UNIT);
    /* Announced, and not begun. */
    GOOD(ccmr_stream_set_capturing(known, 1));
    BAD(ccmr_resource_allocate(made, UNIT, 0, known, &ptr),
        CCMR_ERROR_CAPTURING);
    GOOD(ccmr_stream_set_capturing(known, 0));
}

/* Its bytes are in the budget; what is free goes for it. */
Test(pool_capture, a_budget_holds)
{
    void *ptr = NULL;
    CUgraph graph;
    void *block;

    make("hard=8MiB", "virtual");
    give_on(take_on(made, 3 * UNIT, known), 3 * UNIT, known);
    synchronize();
    begin(one);
    block = take_on(made, 2 * UNIT, one);
    cr_assert_leq(stats_of(made).reserved_bytes, 8 * MIB);
    BAD(ccmr_resource_allocate(made, 3 * UNIT, 0, one, &ptr),
        CCMR_ERROR_LIMIT_EXCEEDED);
    cr_assert_eq(ccmr_last_error()->limit, 8 * MIB);
    cr_assert(is_active(one), "the capture was disturbed");
    give_on(block, 2 * UNIT, one);
    graph = finish(one);
    BAD(ccmr_resource_allocate(made, 3 * UNIT, 0, known, &ptr),
        CCMR_ERROR_LIMIT_EXCEEDED);
    cr_assert_eq(api.cuGraphDestroy(graph), CUDA_SUCCESS);
    /* Its memory makes room now. */
    ptr = take_on(made, 4 * UNIT, known);
    give_on(ptr, 4 * UNIT, known);
    cr_assert_eq(stats_of(made).peak_reserved_bytes, 8 * MIB);
}

/* The pool is released, and the graph runs on. */
static void outlive_pool(const char *upstream)
{
    void *out = NULL;
    CUgraph graph;
    CUgraphExec exec;
    void *block;
    void *parked;

    make("", upstream);
    cr_assert_eq(api.cuMemAlloc((CUdeviceptr *)&out, UNIT), CUDA_SUCCESS);
    parked = take_on(made, UNIT, known);
    begin(known);
    block = take_on(made, UNIT, known);
    fill(block, UNIT, 6, known);
    copy(parked, block, UNIT, known);
    copy(out, parked, UNIT, known);
    give_on(block, UNIT, known);
    give_on(parked, UNIT, known);
    graph = finish(known);
    exec = instantiate(graph);
    ccmr_resource_release(made);
    made = NULL;
    cr_assert_eq(api.cuGraphLaunch(exec, side), CUDA_SUCCESS);
    synchronize();
    expect(out, UNIT, 6);
    cr_assert_eq(api.cuMemFree((CUdeviceptr)(uintptr_t)out), CUDA_SUCCESS);
    cr_assert_eq(api.cuGraphExecDestroy(exec), CUDA_SUCCESS);
    cr_assert_eq(api.cuGraphDestroy(graph), CUDA_SUCCESS);
    /* The next one that is made gives its memory back. */
    make("", "device_plain");
    cr_assert_eq(leaf_census().pieces, 0u, "%s", upstream);
    cr_assert_eq(leaf_census().plain_blocks, 0u, "%s", upstream);
    cr_assert_eq(leaf_census().pool_blocks, 0u, "%s", upstream);
}

Test(pool_capture, a_graph_outlives_its_pool)
{
    size_t i;

    for (i = 0; i < UPPERS; i++) {
        outlive_pool(uppers[i]);
    }
}

Test(pool_capture, says_what_it_does)
{
    ccmr_properties properties = {.size = sizeof(properties)};
    ccmr_resource *none = NULL;

    make("", "device_plain");
    GOOD(ccmr_resource_describe(made, &properties));
    cr_assert_eq(properties.capture, CCMR_CAPTURE_RESERVE);
    cr_assert_str_eq(option_of(made, "capture"), "reserve");
    BAD(ccmr_stack_create("pool capture=reserve access=host | legacy_pinned",
                          &none),
        CCMR_ERROR_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(ccmr_last_error()->message, "capture=reserve"));
    GOOD(ccmr_stack_create("pool capture=reserve access=stream | "
                           "legacy_pinned",
                           &none));
    ccmr_resource_release(none);
}

/* ---- failing calls -------------------------------------------------------------------- */

static ccmr_status captured(ccmr_resource *pool, ccmr_stream stream)
{
    void *block = NULL;
    ccmr_status status =
        ccmr_resource_allocate(pool, 3 * MIB, 0, stream, &block);

    if (status == CCMR_SUCCESS) {
        /* What is refused, is tried again: or the block is freed elsewhere. */
        status = ccmr_resource_deallocate(pool, block, 3 * MIB, 0, stream);
        if (status != CCMR_SUCCESS) {
            GOOD(ccmr_resource_deallocate(pool, block, 3 * MIB, 0,
                                          CCMR_STREAM_READY));
        }
    }
    return status;
}

static ccmr_status go(void *context)
{
    ccmr_resource *pool = NULL;
    ccmr_status status = ccmr_stack_create(context, &pool);
    CUgraph graph = NULL;

    if (status != CCMR_SUCCESS) {
        return status;
    }
    if (ccmr_stream_set_capturing(known, 1) != CCMR_SUCCESS ||
        api.cuStreamBeginCapture(known, CU_STREAM_CAPTURE_MODE_GLOBAL) !=
            CUDA_SUCCESS) {
        status = CCMR_ERROR_DRIVER;
    } else {
        status = captured(pool, known);
        if (api.cuStreamEndCapture(known, &graph) != CUDA_SUCCESS) {
            (void)api.cuStreamEndCapture(known, &graph);
            status = CCMR_ERROR_DRIVER;
        }
    }
    GOOD(ccmr_stream_set_capturing(known, 0));
    if (graph != NULL && api.cuGraphDestroy(graph) != CUDA_SUCCESS) {
        cr_assert_eq(api.cuGraphDestroy(graph), CUDA_SUCCESS);
    }
    GOOD(ccmr_resource_audit(pool));
    ccmr_resource_release(pool);
    return status;
}

Test(pool_capture, comes_through_each_failing_call)
{
    char plain[] = "pool capture=reserve | device_plain";
    char virtual[] = "pool capture=reserve | virtual";

    leaf_fail_each(go, plain, CUDA_ERROR_OUT_OF_MEMORY);
    leaf_fail_each(go, plain, CUDA_ERROR_NOT_PERMITTED);
    leaf_fail_each(go, virtual, CUDA_ERROR_OUT_OF_MEMORY);
    leaf_fail_each(go, virtual, CUDA_ERROR_NOT_PERMITTED);
}
