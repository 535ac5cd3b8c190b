/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool under threads with streams of their own and shared ones, that free each
 * other's blocks, beside threads that trim, audit, and make and retire
 * streams: no byte is handed out twice, none is lost, budgets hold, and nobody
 * is refused while there is room. Field cases B2, C5, F3, F4, F5.
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cucoremr/cucoremr.h>
#include <cucoremr/resources/pool.h>

#include "tests/stress/crew.h"
#include "tests/support/api.h"
#include "tests/support/puppet.h"
#include "tests/support/tap.h"

#define MIB ((size_t)1 << 20)
#define UNIT (2 * MIB)
#define WORKERS 8
#define HELPERS 4
#define SHARED 2
#define GRANULE ((size_t)256)
#define GRANULES ((size_t)1 << 22) /* of a gigabyte of addresses */

static puppet below;
static ccmr_resource *upstream;
static ccmr_resource *pool;
static ccmr_stream streams[WORKERS];
static ccmr_stream shared[SHARED];
static atomic_uchar *owned;  /* for each granule: is it in a live block? */
static atomic_int refused;   /* allocations for which there was no room */
static atomic_int at_work;   /* workers that go on */
static atomic_size_t live;   /* bytes, as they were asked for */
static atomic_size_t summit; /* greatest of it */

static void make_pool(size_t initial, size_t hard)
{
    ccmr_pool_options options = {
        .size = sizeof(options), .initial = initial, .hard = hard};

    if (ccmr_pool_create(upstream, &options, &pool) != CCMR_SUCCESS) {
        tap_bail_out("%s", ccmr_last_error()->message);
    }
    atomic_store(&refused, 0);
    atomic_store(&live, 0);
    atomic_store(&summit, 0);
}

static void set_up(size_t initial, size_t hard, int host)
{
    puppet_init(&below);
    below.device = 0;
    below.yields = 1;
    below.host_accessible = host;
    below.access = CCMR_ACCESS_HOST;
    upstream = puppet_resource(&below);
    make_pool(initial, hard);
}

/* Over an upstream of the library's own; the simulator has its memory. */
static void set_up_over(const char *text, size_t hard)
{
    if (ccmr_stack_create(text, &upstream) != CCMR_SUCCESS) {
        tap_bail_out("%s", ccmr_last_error()->message);
    }
    make_pool(0, hard);
}

/* What is not as it should be is told. */
static int audited(void)
{
    if (ccmr_resource_audit(pool) == CCMR_SUCCESS) {
        return 1;
    }
    tap_diag("audit: %s", ccmr_last_error()->message);
    return 0;
}

static ccmr_stats figures(ccmr_resource *resource)
{
    ccmr_stats stats = {.size = sizeof(stats)};

    if (ccmr_resource_stats(resource, &stats) != CCMR_SUCCESS) {
        crew_fault("no figures");
    }
    return stats;
}

static void check_pool(const char *what, size_t hard, size_t given)
{
    ccmr_stats stats = figures(pool);

    tap_is_int(crew_faults(), 0, "%s: nothing went wrong", what);
    tap_ok(audited(), "%s: audit", what);
    tap_is_size(stats.live_blocks, 0, "%s: nothing is live", what);
    tap_is_size(stats.reserved_bytes, given,
                "%s: reserved is what the upstream gave", what);
    tap_ok(hard == 0 || stats.peak_reserved_bytes <= hard,
           "%s: the budget was kept: %zu of %zu", what,
           stats.peak_reserved_bytes, hard);
    ccmr_resource_release(pool);
}

static void tear_down(const char *what, size_t hard)
{
    check_pool(what, hard, below.live_bytes);
    tap_ok(hard == 0 || below.peak_bytes <= hard,
           "%s: the upstream saw %zu of %zu", what, below.peak_bytes, hard);
    ccmr_resource_release(upstream);
    tap_ok(puppet_clear(&below), "%s: nothing is left", what);
}

static void tear_down_over(const char *what, size_t hard)
{
    check_pool(what, hard, figures(upstream).reserved_bytes);
    tap_is_size(figures(upstream).reserved_bytes, 0, "%s: nothing is left",
                what);
    ccmr_resource_release(upstream);
}

/* All granules of a block change from one state to the other. */
static void mark(const void *ptr, size_t bytes, unsigned char from)
{
    size_t first = (uintptr_t)ptr / GRANULE;
    size_t count = (bytes + GRANULE - 1) / GRANULE;
    size_t i;

    for (i = 0; i < count; i++) {
        if (atomic_exchange_explicit(&owned[(first + i) % GRANULES], !from,
                                     memory_order_relaxed) != from) {
            crew_fault(from ? "a block that was not handed out"
                            : "memory was handed out twice");
            return;
        }
    }
}

static void count_live(size_t bytes)
{
    size_t now = atomic_fetch_add(&live, bytes) + bytes;
    size_t most = atomic_load(&summit);

    while (most < now && !atomic_compare_exchange_weak(&summit, &most, now)) {
    }
}

/* The figures of a refusal agree. */
static void check_refusal(size_t bytes)
{
    const ccmr_error_detail *detail = ccmr_last_error();

    CREW_CHECK(detail->requested == bytes);
    CREW_CHECK(detail->limit != 0 && detail->reserved <= detail->limit);
    CREW_CHECK(detail->live <= detail->reserved);
    CREW_CHECK(detail->largest_free <= detail->reserved);
    atomic_fetch_add(&refused, 1);
}

/* NULL where there is no room. */
static void *take(size_t bytes, ccmr_stream stream)
{
    void *ptr = NULL;
    ccmr_status status = ccmr_resource_allocate(pool, bytes, 0, stream, &ptr);

    if (status == CCMR_ERROR_OUT_OF_DEVICE_MEMORY ||
        status == CCMR_ERROR_LIMIT_EXCEEDED) {
        check_refusal(bytes);
        return NULL;
    }
    CREW_CHECK(status == CCMR_SUCCESS);
    if (ptr != NULL) {
        mark(ptr, bytes, 0);
        count_live(bytes);
    }
    return ptr;
}

static void give(void *ptr, size_t bytes, ccmr_stream stream)
{
    mark(ptr, bytes, 1);
    atomic_fetch_sub(&live, bytes);
    CREW_CHECK(ccmr_resource_deallocate(pool, ptr, bytes, 0, stream) ==
               CCMR_SUCCESS);
}

/* ---- as many blocks as there is room for ------------------------------------ */

static void one_each(crew_member *self)
{
    int i;

    for (i = 0; i < 300; i++) {
        void *ptr = take(UNIT, streams[self->index]);

        if (ptr != NULL) {
            if (crew_random(self, 4) == 0) {
                (void)sched_yield();
            }
            give(ptr, UNIT, streams[self->index]);
        }
    }
}

static void test_enough(int host, const char *what)
{
    set_up(0, WORKERS * UNIT, host);
    crew_run(WORKERS, one_each, NULL);
    tap_is_int(atomic_load(&refused), 0, "%s: nobody is refused", what);
    tear_down(what, WORKERS * UNIT);
}

/* ---- C5: per-thread default streams and blocks of about a megabyte ---------- */

#define KEPT 12
#define EVENTS 1000

static void log_like(crew_member *self)
{
    struct {
        void *ptr;
        size_t bytes;
    } kept[KEPT] = {{NULL, 0}};
    int i;

    for (i = 0; i < EVENTS + KEPT; i++) {
        int at = i % KEPT;

        if (kept[at].ptr != NULL) {
            give(kept[at].ptr, kept[at].bytes, CCMR_STREAM_PER_THREAD);
            kept[at].ptr = NULL;
        }
        if (i < EVENTS) {
            kept[at].bytes = MIB / 2 + crew_random(self, MIB);
            kept[at].ptr = take(kept[at].bytes, CCMR_STREAM_PER_THREAD);
        }
    }
}

/* The cap is 1.3 of what is live at a time, which is 84 blocks of a megabyte on
 * average, and never far from that. It is one segment: two that are in use do
 * not merge. Blocks do not move, so a hole that is large enough may be missing,
 * though hardly ever. */
static void test_tight(void)
{
    size_t hard = 7 * KEPT * MIB / 10 * 13;

    set_up(hard, hard, 0);
    crew_run(7, log_like, NULL);
    tap_ok(atomic_load(&refused) <= 7 * EVENTS / 100,
           "a tight cap: %d of %d are refused", atomic_load(&refused),
           7 * EVENTS);
    tap_diag("greatest live %zu, greatest reserved %zu, cap %zu",
             atomic_load(&summit), below.peak_bytes, hard);
    tear_down("a tight cap", hard);
}

/* ---- everything at once -------------------------------------------------------- */

#define PLACES 128

typedef struct parcel {
    void *ptr;
    size_t bytes;
    int pinned;
} parcel;

static parcel places[PLACES];
static pthread_mutex_t places_lock = PTHREAD_MUTEX_INITIALIZER;

/* Put a block to where another thread frees it, on its own stream. */
static void exchange(crew_member *self, parcel *mine)
{
    uint32_t at = crew_random(self, PLACES);
    parcel other;

    (void)pthread_mutex_lock(&places_lock);
    other = places[at];
    places[at] = *mine;
    (void)pthread_mutex_unlock(&places_lock);
    *mine = other;
}

static ccmr_stream some_stream(crew_member *self)
{
    switch (crew_random(self, 8)) {
    case 0:
        return CCMR_STREAM_PER_THREAD;
    case 1:
    case 2:
        return shared[crew_random(self, SHARED)];
    default:
        return streams[self->index];
    }
}

static size_t some_size(crew_member *self)
{
    switch (crew_random(self, 8)) {
    case 0:
        return 1 + crew_random(self, 1024 * 1024);
    case 1:
    case 2:
        return 1 + crew_random(self, 200000);
    default:
        return 1 + crew_random(self, 20000);
    }
}

static _Atomic uintptr_t given; /* the last block that was freed */

static void unpin(const parcel *one)
{
    CREW_CHECK(ccmr_resource_unpin(pool, one->ptr, one->bytes) ==
               CCMR_SUCCESS);
}

/* A pin may end before the block does, or after it. */
static void give_parcel(const parcel *one, ccmr_stream stream, int unpin_first)
{
    if (one->pinned && unpin_first) {
        unpin(one);
    }
    give(one->ptr, one->bytes, stream);
    atomic_store(&given, (uintptr_t)one->ptr);
    if (one->pinned && !unpin_first) {
        unpin(one);
    }
}

static void work(crew_member *self)
{
    int i;

    for (i = 0; i < 1000; i++) {
        parcel mine = {NULL, some_size(self), 0};

        mine.ptr = take(mine.bytes, some_stream(self));
        if (mine.ptr != NULL && crew_random(self, 16) == 0) {
            mine.pinned = 1;
            CREW_CHECK(ccmr_resource_pin(pool, mine.ptr, mine.bytes) ==
                       CCMR_SUCCESS);
        }
        exchange(self, &mine);
        if (mine.ptr != NULL) {
            give_parcel(&mine,
                        crew_random(self, 10) == 0 ? CCMR_STREAM_READY
                                                   : some_stream(self),
                        crew_random(self, 2) == 0);
        }
        /* A stream that is retired goes on under a new id. */
        if (crew_random(self, 200) == 0) {
            CREW_CHECK(ccmr_stream_retire(streams[self->index]) ==
                       CCMR_SUCCESS);
            CREW_CHECK(ccmr_stream_register(streams[self->index]) ==
                       CCMR_SUCCESS);
        }
    }
    atomic_fetch_sub(&at_work, 1);
}

static void trim_all_the_time(crew_member *self)
{
    while (atomic_load(&at_work) > 0) {
        ccmr_trim_result result = {.size = sizeof(result)};

        CREW_CHECK(ccmr_resource_trim(pool, crew_random(self, 2) * 10 * MIB,
                                      &result) == CCMR_SUCCESS);
        (void)sched_yield();
    }
}

/* Totals of a dump agree at any time. */
static int check_total(void *context, const char *line, size_t length)
{
    size_t reserved;
    size_t out;
    size_t free_bytes;
    size_t waits;

    (void)context;
    (void)length;
    if (sscanf(line, "total reserved=%zu out=%zu free=%zu waits=%zu",
               &reserved, &out, &free_bytes, &waits) == 4) {
        CREW_CHECK(reserved == out + free_bytes + waits);
        CREW_CHECK(out <= reserved);
    }
    return 0;
}

static void audit_all_the_time(crew_member *self)
{
    while (atomic_load(&at_work) > 0) {
        ccmr_stats stats = {.size = sizeof(stats)};
        ccmr_status status;
        int fits;

        CREW_CHECK(audited());
        CREW_CHECK(ccmr_resource_dump(pool, check_total, NULL) ==
                   CCMR_SUCCESS);
        CREW_CHECK(ccmr_resource_stats(pool, &stats) == CCMR_SUCCESS);
        CREW_CHECK(stats.peak_reserved_bytes >= stats.reserved_bytes);
        /* Where the pool cannot say, the puppet would have to. */
        status = ccmr_resource_would_fit(pool, crew_random(self, 9 * MIB),
                                         shared[0], &fits);
        CREW_CHECK(status == CCMR_SUCCESS ||
                   status == CCMR_ERROR_NOT_SUPPORTED);
        (void)sched_yield();
    }
}

/* Streams come, get some memory, and go. */
static void retire_all_the_time(crew_member *self)
{
    while (atomic_load(&at_work) > 0) {
        ccmr_stream stream;
        parcel mine = {NULL, some_size(self), 0};
        void *other;

        if (ccmr_stream_create(0, CCMR_STREAM_FLAG_NON_BLOCKING, &stream) !=
            CCMR_SUCCESS) {
            crew_fault("no stream");
            return;
        }
        other = take(30000, stream);
        mine.ptr = take(mine.bytes, stream);
        exchange(self, &mine);
        if (mine.ptr != NULL) {
            give_parcel(&mine, stream, 1);
        }
        if (other != NULL) {
            give(other, 30000, stream);
        }
        CREW_CHECK(ccmr_stream_destroy(stream) == CCMR_SUCCESS);
    }
}

/* A misuse, which the books have to stand: the block is somebody else's by now,
 * or free, or its memory is about to move or to go. */
static void pin_too_late(crew_member *self)
{
    while (atomic_load(&at_work) > 0) {
        void *ptr = (void *)atomic_load(&given); /* the last one */
        size_t bytes = 1 + crew_random(self, 3 * MIB);
        ccmr_status status = CCMR_ERROR_INVALID_POINTER;

        if (ptr != NULL) {
            status = ccmr_resource_pin(pool, ptr, bytes);
        }
        CREW_CHECK(status == CCMR_SUCCESS ||
                   status == CCMR_ERROR_INVALID_POINTER);
        if (status == CCMR_SUCCESS) {
            CREW_CHECK(ccmr_resource_unpin(pool, ptr, bytes) == CCMR_SUCCESS);
        }
    }
}

static void everything(crew_member *self)
{
    static void (*const helpers[HELPERS])(crew_member *) = {
        trim_all_the_time, audit_all_the_time, retire_all_the_time,
        pin_too_late};

    if (self->index < WORKERS) {
        work(self);
    } else {
        helpers[self->index - WORKERS](self);
    }
}

static void do_everything(void)
{
    int i;

    atomic_store(&at_work, WORKERS);
    atomic_store(&given, 0);
    crew_run(WORKERS + HELPERS, everything, NULL);
    for (i = 0; i < PLACES; i++) {
        if (places[i].ptr != NULL) {
            give_parcel(&places[i], streams[0], 1);
            places[i].ptr = NULL;
        }
    }
}

static void test_everything(size_t hard, int host, const char *what)
{
    set_up(0, hard, host);
    do_everything();
    tear_down(what, hard);
}

static void test_everything_over(const char *text, size_t hard)
{
    set_up_over(text, hard);
    do_everything();
    tear_down_over(text, hard);
}

static ccmr_stream new_stream(void)
{
    ccmr_stream stream = NULL;

    if (api.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS ||
        ccmr_stream_register(stream) != CCMR_SUCCESS) {
        tap_bail_out("no stream: %s", ccmr_last_error()->message);
    }
    return stream;
}

static void end_stream(ccmr_stream stream)
{
    if (ccmr_stream_retire(stream) != CCMR_SUCCESS ||
        api.cuStreamDestroy(stream) != CUDA_SUCCESS) {
        tap_fail("a stream goes");
    }
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
    owned = calloc(GRANULES, sizeof(*owned));
    if (owned == NULL || ccmr_init(NULL) != CCMR_SUCCESS ||
        api.cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
        api.cuCtxSetCurrent(context) != CUDA_SUCCESS) {
        tap_bail_out("no context: %s", ccmr_last_error()->message);
    }
    for (i = 0; i < WORKERS; i++) {
        streams[i] = new_stream();
    }
    for (i = 0; i < SHARED; i++) {
        shared[i] = new_stream();
    }
    (void)simulator->set_mode(CCMR_SIM_EAGER);
    test_enough(0, "a block for each, eager");
    test_everything(0, 0, "everything, eager");
    (void)simulator->set_mode(CCMR_SIM_LATE);
    test_enough(0, "a block for each, late");
    test_enough(1, "a block for each, host memory");
    test_tight();
    test_everything(0, 0, "everything, late");
    test_everything(12 * MIB, 0, "everything, and little memory");
    test_everything(12 * MIB, 1, "everything, and little host memory");
    test_everything_over("virtual", 0);
    test_everything_over("virtual", 24 * MIB);
    test_everything_over("device_plain", 24 * MIB);
    for (i = 0; i < WORKERS; i++) {
        end_stream(streams[i]);
    }
    for (i = 0; i < SHARED; i++) {
        end_stream(shared[i]);
    }
    free(owned);
    (void)simulator->reset(NULL);
    return tap_finish();
}
