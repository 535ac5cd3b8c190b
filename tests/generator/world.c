/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The world of one program: the simulator, contexts, the resource; and the
 * end, when nothing may be left of it.
 */
#include "tests/generator/model.h"

#include <inttypes.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/generator/broken_pool.h"

/* A wait that nobody ends is an error of the simulator's or of ours. */
#define WAIT_LIMIT_MS 20000

/* From here on memory may come in pieces of this size. */
#define LARGE ((size_t)2 << 20)

report *told;

static ccmr_sim_census baseline;

_Noreturn void fail(fault_class fault, const char *format, ...)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    va_list args;

    (void)pthread_mutex_lock(&lock); /* never given back */
    va_start(args, format);
    (void)vsnprintf(told->text, sizeof(told->text), format, args);
    va_end(args);
    atomic_store(&told->fault, (int)fault);
    _exit(1);
}

void need(CUresult res, const char *call)
{
    const char *name = NULL;

    if (res != CUDA_SUCCESS) {
        (void)api.cuGetErrorName(res, &name);
        fail(FAULT_DRIVER, "%s of the program itself answers %s", call,
             name != NULL ? name : "an unknown error");
    }
}

static void must(ccmr_status status, const char *what)
{
    if (status != CCMR_SUCCESS) {
        fail(FAULT_PROGRAM, "%s: %s: %s", what, ccmr_status_name(status),
             ccmr_last_error()->message);
    }
}

/* ---- the program's own driver calls --------------------------------------------- */

void driver_enter(const model *m, inside *in)
{
    in->mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    need(api.cuThreadExchangeStreamCaptureMode(&in->mode),
         "cuThreadExchangeStreamCaptureMode");
    need(api.cuCtxPushCurrent(m->primary[m->home]), "cuCtxPushCurrent");
}

void driver_leave(inside *in)
{
    need(api.cuCtxPopCurrent(&(CUcontext){NULL}), "cuCtxPopCurrent");
    need(api.cuThreadExchangeStreamCaptureMode(&in->mode),
         "cuThreadExchangeStreamCaptureMode");
}

/* ---- calls of the library ---------------------------------------------------------- */

void library_enter(model *m)
{
    if (m->fault_nth != 0) {
        (void)simulator->log(256);
        (void)simulator->fail(
            strcmp(m->fault_call, "any") != 0 ? m->fault_call : NULL,
            m->fault_nth,
            m->fault_nth % 3 == 0 ? CUDA_ERROR_UNKNOWN
                                  : CUDA_ERROR_OUT_OF_MEMORY);
    }
}

/* An event that the driver would not destroy stays. */
static int event_stays(void)
{
    size_t i = simulator->log_count();
    ccmr_sim_record record;

    while (i-- > 0) {
        if (simulator->log_read(i, &record) == 0 && record.injected) {
            return strcmp(record.call, "cuEventDestroy") == 0;
        }
    }
    return 0;
}

static void check_thread(const worker *w)
{
    CUstreamCaptureMode mode = w->mode;
    CUcontext current = NULL;

    need(api.cuCtxGetCurrent(&current), "cuCtxGetCurrent");
    if (current != w->usual) {
        fail(FAULT_STATE, "the thread's current context is %p, was %p",
             (void *)current, (void *)w->usual);
    }
    need(api.cuThreadExchangeStreamCaptureMode(&mode),
         "cuThreadExchangeStreamCaptureMode");
    if (mode != w->mode) {
        fail(FAULT_STATE, "the thread's capture mode is %d, was %d", (int)mode,
             (int)w->mode);
    }
}

int library_leave(model *m, const worker *w)
{
    int met = 0;

    if (m->fault_nth != 0) {
        m->fault_nth = 0;
        met = simulator->forget_failures() == 0;
        m->events_may_stay |= met && event_stays();
        m->keeps_alone &= !met; /* what was refused is kept below, perhaps */
        (void)simulator->log(0);
    }
    check_thread(w);
    return met;
}

/* ---- workers -------------------------------------------------------------------- */

void worker_begin(model *m, worker *w)
{
    inside in;

    (void)pthread_mutex_lock(&m->lock);
    w->serial = ++m->serials;
    (void)pthread_mutex_unlock(&m->lock);
    /* The home context, none, another one; and a stricter capture mode. */
    if (w->index == 1) {
        w->usual = NULL;
    } else if (w->index == 2 && m->p->devices > 1) {
        w->usual = m->primary[1 - m->home];
    } else {
        w->usual = m->primary[m->home];
    }
    w->mode = w->index == 3 ? CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
                            : CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (w->usual != NULL) {
        need(api.cuCtxSetCurrent(w->usual), "cuCtxSetCurrent");
    }
    if (w->mode != CU_STREAM_CAPTURE_MODE_GLOBAL) {
        CUstreamCaptureMode mode = w->mode;

        need(api.cuThreadExchangeStreamCaptureMode(&mode),
             "cuThreadExchangeStreamCaptureMode");
    }
    (void)pthread_mutex_lock(&m->lock);
    driver_enter(m, &in);
    w->own = track_new(m, CU_STREAM_PER_THREAD, STREAM_THREAD, m->home);
    w->own->owner = w->serial;
    w->own->registered = 1;
    driver_leave(&in);
    (void)pthread_mutex_unlock(&m->lock);
}

/* Captures that it began it has to end, when nobody is trying to use them. */
void worker_end(model *m, worker *w)
{
    inside in;
    track *t;

    (void)pthread_mutex_lock(&m->lock);
    driver_enter(m, &in);
    for (t = m->tracks; t != NULL; t = t->next) {
        while (t->capturing && t->capturer == w->serial && t->pins != 0) {
            (void)pthread_mutex_unlock(&m->lock);
            (void)sched_yield();
            (void)pthread_mutex_lock(&m->lock);
        }
        if (t->capturing && t->capturer == w->serial) {
            capture_end(m, t);
        }
    }
    w->own->alive = 0;
    driver_leave(&in);
    (void)pthread_mutex_unlock(&m->lock);
    if (w->usual != NULL) {
        need(api.cuCtxSetCurrent(NULL), "cuCtxSetCurrent");
    }
}

/* ---- the beginning ---------------------------------------------------------------- */

static void start_driver(const model *m)
{
    ccmr_init_options options = {sizeof(options), "sim"};
    ccmr_driver_info info = {.size = sizeof(info)};
    const char *reason = "it is another driver";
    char number[32];

    (void)snprintf(number, sizeof(number), "%u", m->p->devices);
    (void)setenv("CUCOREMR_SIM_DEVICES", number, 1);
    if (m->p->memory != 0) {
        (void)snprintf(number, sizeof(number), "%" PRIu64, m->p->memory);
        (void)setenv("CUCOREMR_SIM_MEMORY", number, 1);
    }
    must(broken_pool_register(), "broken_pool_register");
    options.driver = getenv("CUCOREMR_SIM_PATH");
    must(ccmr_init(&options), "ccmr_init");
    must(ccmr_driver(&info), "ccmr_driver");
    if (api_load(info.path, &reason) != 0 || simulator == NULL) {
        fail(FAULT_PROGRAM, "no simulator: %s", reason);
    }
    (void)simulator->set_mode(CCMR_SIM_LATE);
    (void)simulator->set_wait_limit(WAIT_LIMIT_MS);
    (void)simulator->set_strict(0); /* hazards are told, with the program */
}

/* What the library makes once a device, at first need, is no leak. */
static void warm_up(int devices)
{
    int device;

    for (device = 0; device < devices; device++) {
        char text[64];
        ccmr_resource *resource = NULL;
        ccmr_stream stream;
        void *ptr = NULL;

        (void)snprintf(text, sizeof(text), "device_pool device=%d", device);
        must(ccmr_stream_create(device, 0, &stream), "ccmr_stream_create");
        must(ccmr_stack_create(text, &resource), text);
        must(ccmr_resource_allocate(resource, 256, 0, stream, &ptr),
             "warming up");
        must(ccmr_resource_deallocate(resource, ptr, 256, 0, stream),
             "warming up");
        ccmr_resource_release(resource);
        must(ccmr_stream_destroy(stream), "ccmr_stream_destroy");
    }
}

static ccmr_sim_census census(void)
{
    ccmr_sim_census c;

    memset(&c, 0, sizeof(c));
    c.size = sizeof(c);
    (void)simulator->census(&c);
    return c;
}

static int keeps(const ccmr_resource *resource)
{
    static const char *const names[] = {"pool", "stream_ordered", "subpool",
                                        "device_pool"};
    size_t i;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(ccmr_resource_name(resource), names[i]) == 0) {
            return 1;
        }
    }
    return 0;
}

/* What the stack is, as far as correct programs have to know. */
static void find_promises(model *m)
{
    const char *stack = m->p->stack;
    ccmr_resource *resource = m->resource;
    int keepers = 0;

    m->registered_only = strstr(stack, "streams=registered") != NULL;
    m->unguarded = strstr(stack, "guard=no") != NULL;
    do {
        m->has_pool |= strcmp(ccmr_resource_name(resource), "pool") == 0;
        keepers += keeps(resource);
    } while (ccmr_resource_upstream(resource, 0, &resource) == CCMR_SUCCESS);
    m->keeps_alone = keepers == 1 && keeps(m->resource);
}

/* A pool that was given back memory on a stream that it may not use later
   waits for the whole context when it ends; that ruins captures. */
int world_may_end(const model *m)
{
    return m->captures == 0 || !m->has_pool;
}

/* A limit that counts what the program asks for: no resource in between. */
static void find_limit(model *m)
{
    ccmr_resource *resource = m->resource;
    const char *stack = m->p->stack;
    uint64_t hard = program_bound(m->p, " hard=");
    char text[64];

    m->limit = UINT64_MAX;
    m->budget = program_bound(m->p, "limiting bytes=");
    m->has_limit = m->budget != UINT64_MAX || hard != UINT64_MAX;
    m->budget = hard < m->budget ? hard : m->budget;
    m->has_capacity = m->p->memory != 0 || hard != UINT64_MAX ||
                      strstr(stack, "maximum=") != NULL;
    while (strcmp(ccmr_resource_name(resource), "logging") == 0 &&
           ccmr_resource_upstream(resource, 0, &resource) == CCMR_SUCCESS) {
    }
    if (strcmp(ccmr_resource_name(resource), "limiting") == 0 &&
        ccmr_resource_option_get(resource, "bytes", text, sizeof(text),
                                 NULL) == CCMR_SUCCESS) {
        m->limit = program_bytes(text);
    }
}

static void make_resource(model *m)
{
    ccmr_status status;

    status = ccmr_stack_create(m->p->stack, &m->resource);
    if (status != CCMR_SUCCESS) {
        fail(FAULT_PROGRAM, "%s: %s: %s", m->p->stack,
             ccmr_status_name(status), ccmr_last_error()->message);
    }
    m->properties.size = sizeof(m->properties);
    must(ccmr_resource_describe(m->resource, &m->properties), "describe");
    m->home = m->properties.device > 0 ? m->properties.device : 0;
    find_limit(m);
    find_promises(m);
}

void world_begin(model *m)
{
    inside in;
    unsigned i;

    start_driver(m);
    warm_up((int)m->p->devices);
    for (i = 0; i < m->p->devices && i < 2; i++) {
        CUdevice device;

        need(api.cuDeviceGet(&device, (int)i), "cuDeviceGet");
        need(api.cuDevicePrimaryCtxRetain(&m->primary[i], device),
             "cuDevicePrimaryCtxRetain");
    }
    driver_enter(m, &in);
    need(api.cuMemHostAlloc((void **)&m->staging, STAGING_BYTES, 0),
         "cuMemHostAlloc");
    need(api.cuMemAlloc(&m->scratch, 4096), "cuMemAlloc");
    need(api.cuCtxSynchronize(), "cuCtxSynchronize");
    driver_leave(&in);
    baseline = census();
    (void)simulator->set_seed(m->p->schedule);
    (void)simulator->check_order(m->p->order);
    make_resource(m);
    m->legacy = track_new(m, CU_STREAM_LEGACY, STREAM_LEGACY, m->home);
    m->legacy->registered = 1;
}

/* ---- the end ----------------------------------------------------------------------- */

static void check_figures(const model *m)
{
    ccmr_stats stats = {.size = sizeof(stats)};

    must(ccmr_resource_stats(m->resource, &stats), "stats");
    if (stats.live_blocks != 0 ||
        (stats.live_bytes != 0 && stats.live_bytes != CCMR_BYTES_UNKNOWN)) {
        fail(FAULT_FIGURES,
             "all is freed, and %" PRIu64 " blocks, %zu bytes are live",
             stats.live_blocks, stats.live_bytes);
    }
    if (ccmr_resource_audit(m->resource) != CCMR_SUCCESS) {
        fail(FAULT_FIGURES, "audit: %s", ccmr_last_error()->message);
    }
}

/* All that the library knows is done, as far as that can be said. */
static void retire_streams(model *m)
{
    track *t;

    for (t = m->tracks; t != NULL; t = t->next) {
        if (t->alive && t->kind < STREAM_NAMED && t->kind != AS_OURS &&
            t->kind != AS_ELSEWHERE) {
            must(ccmr_stream_retire(t->handle), "ccmr_stream_retire");
            t->registered = 0;
        }
    }
}

/* A pool keeps what was freed on streams that were neither registered nor
   retired: it cannot know that they are done without waiting. */
static int may_keep_pending(const model *m)
{
    ccmr_resource *resource = m->resource;

    while (resource != NULL) {
        ccmr_resource *upstream = NULL;

        if (strcmp(ccmr_resource_name(resource), "pool") == 0) {
            return 1;
        }
        resource =
            ccmr_resource_upstream(resource, 0, &upstream) == CCMR_SUCCESS
                ? upstream
                : NULL;
    }
    return 0;
}

/* Nothing is live, all work is done: the whole budget is to be had at once
   (field case I1), and what is kept for reuse can be given back. */
static void check_emptied(model *m)
{
    ccmr_trim_result trimmed = {.size = sizeof(trimmed)};
    ccmr_stats stats = {.size = sizeof(stats)};
    size_t bytes = (size_t)m->budget;
    ccmr_status status;
    void *ptr = NULL;

    if (m->has_pool && m->lost != 0) {
        return;
    }
    if (m->budget != UINT64_MAX &&
        (m->p->memory == 0 || m->budget < m->p->memory / 4)) {
        bytes -= bytes % (bytes >= LARGE ? LARGE : 512);
        status = ccmr_resource_allocate(m->resource, bytes, 0,
                                        CCMR_STREAM_LEGACY, &ptr);
        if (status != CCMR_SUCCESS) {
            fail(FAULT_STATUS,
                 "nothing is live, and of a budget of %" PRIu64 " bytes %zu "
                 "are not to be had: %s: %s",
                 m->budget, bytes, ccmr_status_name(status),
                 ccmr_last_error()->message);
        }
        must(ccmr_resource_deallocate(m->resource, ptr, bytes, 0,
                                      CCMR_STREAM_LEGACY),
             "deallocate");
        must(ccmr_stream_synchronize(CCMR_STREAM_LEGACY, m->home),
             "synchronize");
    }
    must(ccmr_resource_trim(m->resource, 0, &trimmed), "trim");
    must(ccmr_resource_stats(m->resource, &stats), "stats");
    if ((stats.exact & CCMR_STAT_RESERVED_BYTES) != 0 &&
        stats.reserved_bytes != 0 &&
        (trimmed.pending_bytes == 0 || !may_keep_pending(m))) {
        fail(FAULT_FIGURES,
             "nothing is live, all is trimmed (%zu bytes released, %zu "
             "pending, %zu pinned), and %zu bytes are reserved",
             trimmed.released_bytes, trimmed.pending_bytes,
             trimmed.pinned_bytes, stats.reserved_bytes);
    }
}

/* An own pool that was released with frees pending is destroyed when the
 * library next deals with a pool of the device. */
static void end_retired_pools(const model *m)
{
    const ccmr_device_pool_options options = {.size = sizeof(options),
                                              .own = 1};
    ccmr_resource *pool;

    if (ccmr_device_pool_create(m->home, &options, &pool) == CCMR_SUCCESS) {
        ccmr_resource_release(pool);
    }
}

static void compare_census(const model *m)
{
    ccmr_sim_census now = census();

    if (now.pools != baseline.pools) {
        end_retired_pools(m);
        now = census();
    }
#define SAME(what, excused)                                                   \
    if (now.what != baseline.what && !(excused)) {                            \
        fail(FAULT_LEFT, "%" PRIu64 " " #what " at the end, were %" PRIu64,   \
             now.what, baseline.what);                                        \
    }
    SAME(captures, 0)
    SAME(graphs, 0)
    SAME(streams, 0)
    SAME(events, m->events_may_stay)
    SAME(contexts, 0)
    SAME(plain_blocks, 0)
    SAME(plain_bytes, 0)
    SAME(pinned_blocks, 0)
    SAME(managed_blocks, 0)
    SAME(pool_blocks, 0)
    SAME(pieces, 0)
    SAME(ranges, 0)
    SAME(mappings, 0)
    SAME(pools, 0)
#undef SAME
}

/* What is live holds what was written last. */
static void check_blocks(model *m, worker *w)
{
    unsigned i;

    for (i = 0; i < PROGRAM_BLOCKS; i++) {
        block *b = &m->blocks[i];

        if (b->state == BLOCK_NONE || b->ptr == NULL) {
            continue;
        }
        if (!m->properties.device_accessible) {
            block_check_on_host(m, b, OP_FINISH);
        } else {
            (void)block_check(m, b, m->legacy, OP_FINISH);
        }
    }
    sync_all(m, w);
    checks_compare(m);
}

static void destroy_streams(model *m)
{
    track *t;

    for (t = m->tracks; t != NULL; t = t->next) {
        if (!t->alive || t->kind >= STREAM_NAMED) {
            continue;
        }
        if (t->kind == AS_OURS) {
            must(ccmr_stream_destroy(t->handle), "ccmr_stream_destroy");
            continue;
        }
        if (t->registered || m->registered_only) {
            must(ccmr_stream_retire(t->handle), "ccmr_stream_retire");
        }
        need(api.cuStreamDestroy(t->handle), "cuStreamDestroy");
    }
}

static void free_model(model *m)
{
    while (m->tracks != NULL) {
        track *t = m->tracks;

        m->tracks = t->next;
        free(t);
    }
    while (m->spare_events > 0) {
        need(api.cuEventDestroy(m->events[--m->spare_events]),
             "cuEventDestroy");
        m->made_events--;
    }
    if (m->made_events != 0) {
        fail(FAULT_PROGRAM, "%u events are lost", m->made_events);
    }
}

void world_end(model *m)
{
    worker w = {.index = 1, .serial = ++m->serials};
    inside in;
    unsigned i;

    told->op = OP_FINISH;
    m->fault_nth = 0;
    w.op = OP_FINISH;
    w.own = m->legacy;
    driver_enter(m, &in);
    check_blocks(m, &w);
    driver_leave(&in);
    for (i = 0; i < PROGRAM_BLOCKS; i++) {
        if (m->blocks[i].state != BLOCK_NONE) {
            free_finally(m, &w, &m->blocks[i]);
        }
    }
    if (!m->released) {
        check_figures(m);
        /* Others end with their streams still there. */
        if (m->p->schedule % 2 == 0) {
            driver_enter(m, &in);
            sync_all(m, &w);
            driver_leave(&in);
            retire_streams(m);
            check_emptied(m);
        }
        ccmr_resource_release(m->resource);
        check_thread(&w);
    }
    destroy_streams(m);
    driver_enter(m, &in);
    sync_all(m, &w);
    free_model(m);
    driver_leave(&in);
    hazards_check();
    compare_census(m);
    driver_enter(m, &in);
    need(api.cuMemFree(m->scratch), "cuMemFree");
    need(api.cuMemFreeHost(m->staging), "cuMemFreeHost");
    driver_leave(&in);
}
