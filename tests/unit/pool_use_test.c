/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool as programs use it, with what they need not know about it: memory must
 * not multiply by streams, threads or refusals. The simulated driver runs work
 * late and checks its order.
 */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/leaf.h"

#include <cucoremr/resources/pool.h>

#include "resources/pool/sizes.h"
#include "tests/unit/adaptor.h"

#define UNIT (2 * MIB)

static const ccmr_sim_table *sim;
static ccmr_resource *made;

static void start(void)
{
    sim = leaf_start();
    (void)sim->set_mode(CCMR_SIM_LATE);
    (void)sim->set_wait_limit(5000);
    (void)sim->check_order(1);
    (void)alarm(60);
}

static void end(void)
{
    MUST(made == NULL || ccmr_resource_audit(made) == CCMR_SUCCESS);
    ccmr_resource_release(made);
    MUST(sim->hazards() == 0);
    MUST(leaf_census().plain_blocks == 0);
    MUST(leaf_census().pieces == 0);
    leaf_end();
}

TestSuite(pool_use, .init = start, .fini = end);

static void make(const char *text)
{
    GOOD(ccmr_stack_create(text, &made));
}

static ccmr_stream registered(void)
{
    ccmr_stream stream;

    GOOD(ccmr_stream_create(0, CCMR_STREAM_FLAG_NON_BLOCKING, &stream));
    return stream;
}

static void *take_used(size_t bytes, ccmr_stream stream)
{
    void *ptr = take_on(made, bytes, stream);

    cr_assert_eq(sim->used((uint64_t)(uintptr_t)ptr, bytes, stream), 0);
    return ptr;
}

static void give_on(void *ptr, size_t bytes, ccmr_stream stream)
{
    GOOD(ccmr_resource_deallocate(made, ptr, bytes, 0, stream));
}

static size_t reserved(void)
{
    return stats_of(made).reserved_bytes;
}

/* A cache keeps one block whatever its size, but the thread that needs another
 * one elsewhere looks there first. */
Test(pool_use, one_large_block_on_many_streams)
{
    ccmr_stream streams[8];
    int i;

    make("pool | device_plain");
    for (i = 0; i < 8; i++) {
        streams[i] = registered();
    }
    for (i = 0; i < 24; i++) {
        give_on(take_used(300 * MIB, streams[i % 8]), 300 * MIB,
                streams[i % 8]);
    }
    cr_assert_leq(reserved(), 300 * MIB);
    for (i = 0; i < 8; i++) {
        GOOD(ccmr_stream_destroy(streams[i]));
    }
}

/* A small block that the device still uses must not make the rest of its
 * segment wait: each further one would take a segment. */
Test(pool_use, small_pinned_blocks_of_a_busy_stream)
{
    ccmr_stream busy = registered();
    int i;

    make("pool | legacy_pinned");
    cr_assert_eq(sim->stall(busy), 0);
    for (i = 0; i < 1000; i++) {
        give_on(take_used(1000, busy), 1000, busy);
    }
    cr_assert_leq(reserved(), 2 * UNIT);
    cr_assert_eq(sim->release(busy), 0);
    GOOD(ccmr_stream_destroy(busy));
}

static void *use_token(void *argument)
{
    (void)argument;
    give_on(take_on(made, 8 * MIB, CCMR_STREAM_PER_THREAD), 8 * MIB,
            CCMR_STREAM_PER_THREAD);
    GOOD(ccmr_stream_synchronize(CCMR_STREAM_PER_THREAD, 0));
    return NULL;
}

/* Nobody can name the stream of a thread that has ended. */
Test(pool_use, per_thread_streams_of_ended_threads)
{
    int i;

    make("pool | device_plain");
    for (i = 0; i < 50; i++) {
        pthread_t thread;

        cr_assert_eq(pthread_create(&thread, NULL, use_token, NULL), 0);
        cr_assert_eq(pthread_join(thread, NULL), 0);
    }
    cr_assert_leq(reserved(), 64 * MIB);
}

/* "Ready" speaks of the free's own work; a use that was noted is waited for. */
static void ready_with_a_use(int held)
{
    ccmr_stream user = registered();
    ccmr_stream other = registered();
    void *ptr = take_used(UNIT, other);

    GOOD(ccmr_stream_synchronize(other, 0));
    cr_assert_eq(sim->stall(user), 0);
    cr_assert_eq(sim->used((uint64_t)(uintptr_t)ptr, UNIT, user), 0);
    if (held) {
        GOOD(ccmr_resource_hold_until_free(made, ptr, user));
    } else {
        GOOD(ccmr_resource_note_use(made, ptr, user));
    }
    give_on(ptr, UNIT, CCMR_STREAM_READY);
    GOOD(ccmr_resource_trim(made, 0, NULL));
    cr_assert_eq(reserved(), UNIT);
    give_on(take_used(UNIT, other), UNIT, other);
    cr_assert_eq(sim->release(user), 0);
    GOOD(ccmr_stream_destroy(user));
    GOOD(ccmr_stream_destroy(other));
}

Test(pool_use, ready_with_noted_uses)
{
    make("pool hard=2MiB | device_plain");
    ready_with_a_use(0);
    ready_with_a_use(1);
}

/* An event on a stream that captures would be the graph's, and by waiting for
 * it so would be the stream of the free. */
static void held_for_a_capture(ccmr_stream user, int known)
{
    ccmr_stream other = registered();
    CUstreamCaptureStatus capturing;
    CUgraph graph = NULL;
    void *ptr = take_used(UNIT, other);

    GOOD(ccmr_resource_hold_until_free(made, ptr, user));
    cr_assert_eq(known, ccmr_stream_set_capturing(user, 1) == CCMR_SUCCESS);
    cr_assert_eq(api.cuStreamBeginCapture(user, CU_STREAM_CAPTURE_MODE_GLOBAL),
                 CUDA_SUCCESS);
    BAD(ccmr_resource_deallocate(made, ptr, UNIT, 0, other),
        CCMR_ERROR_CAPTURING);
    BAD(ccmr_resource_deallocate(made, ptr, UNIT, 0, CCMR_STREAM_READY),
        CCMR_ERROR_CAPTURING);
    cr_assert_eq(api.cuStreamIsCapturing(other, &capturing), CUDA_SUCCESS);
    cr_assert_eq(capturing, CU_STREAM_CAPTURE_STATUS_NONE);
    cr_assert_eq(api.cuStreamEndCapture(user, &graph), CUDA_SUCCESS);
    cr_assert_eq(api.cuGraphDestroy(graph), CUDA_SUCCESS);
    if (known) {
        GOOD(ccmr_stream_set_capturing(user, 0));
    }
    give_on(ptr, UNIT, other);
    GOOD(ccmr_stream_destroy(other));
}

Test(pool_use, held_for_a_stream_that_captures)
{
    ccmr_stream known = registered();
    ccmr_stream unknown = leaf_stream(0);

    make("pool | device_plain");
    held_for_a_capture(known, 1);
    held_for_a_capture(unknown, 0);
    GOOD(ccmr_stream_destroy(known));
}

typedef struct holder {
    pthread_barrier_t turn;
    ccmr_stream stream;
    void *ptr;
} holder;

static void *hold_and_free(void *argument)
{
    holder *self = argument;

    GOOD(ccmr_resource_hold_until_free(made, self->ptr,
                                       CCMR_STREAM_PER_THREAD));
    (void)pthread_barrier_wait(&self->turn);
    (void)pthread_barrier_wait(&self->turn);
    give_on(self->ptr, UNIT, self->stream);
    return NULL;
}

/* An event of this thread's stream would say nothing about that of the other.
 */
Test(pool_use, held_for_another_threads_stream)
{
    holder self = {.stream = registered()};
    pthread_t thread;

    make("pool | device_plain");
    self.ptr = take_used(UNIT, self.stream);
    cr_assert_eq(pthread_barrier_init(&self.turn, NULL, 2), 0);
    cr_assert_eq(pthread_create(&thread, NULL, hold_and_free, &self), 0);
    (void)pthread_barrier_wait(&self.turn);
    BAD(ccmr_resource_deallocate(made, self.ptr, UNIT, 0, self.stream),
        CCMR_ERROR_WRONG_THREAD);
    (void)pthread_barrier_wait(&self.turn);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    (void)pthread_barrier_destroy(&self.turn);
    GOOD(ccmr_stream_destroy(self.stream));
}

/* A request that cannot be served leaves no more reserved than before. */
static void refused_without_a_trace(const char *text)
{
    ccmr_stream stream = registered();
    ccmr_device_info info = {.size = sizeof(info)};
    size_t total;
    void *ptr;

    GOOD(ccmr_device_describe(0, &info));
    total = info.total_bytes;
    make(text);
    ptr = take_used(total / 2, stream);
    BAD(ccmr_resource_allocate(made, total, 0, stream, &ptr),
        CCMR_ERROR_OUT_OF_DEVICE_MEMORY);
    cr_assert_eq(ccmr_last_error()->requested, total);
    cr_assert_leq(reserved(), total / 2 + UNIT);
    cr_assert_leq(stats_of(made).peak_reserved_bytes, total);
    give_on(ptr, total / 2, stream);
    GOOD(ccmr_stream_destroy(stream));
}

Test(pool_use, refused_over_virtual)
{
    refused_without_a_trace("pool | virtual");
}

Test(pool_use, refused_over_plain)
{
    refused_without_a_trace("pool | device_plain");
}

/* What a cache knows of a segment ends with it. */
Test(pool_use, freed_again_after_a_trim)
{
    ccmr_stream stream = registered();
    void *ptr;

    make("pool | device_plain");
    ptr = take_used(1000, stream);
    give_on(ptr, 1000, stream);
    GOOD(ccmr_stream_synchronize(stream, 0));
    (void)sim->run(UINT64_MAX);
    GOOD(ccmr_resource_trim(made, 0, NULL));
    (void)sim->run(UINT64_MAX);
    GOOD(ccmr_resource_trim(made, 0, NULL));
    cr_assert_eq(reserved(), 0u);
    BAD(ccmr_resource_deallocate(made, ptr, 1000, 0, stream),
        CCMR_ERROR_INVALID_POINTER);
    GOOD(ccmr_stream_destroy(stream));
}

Test(pool_use, options_without_a_meaning)
{
    ccmr_resource *none = NULL;

    BAD(ccmr_stack_create("pool access=host | device_plain", &none),
        CCMR_ERROR_INVALID_ARGUMENT);
    cr_assert(strstr(ccmr_last_error()->message, "access=host") != NULL);
    BAD(ccmr_stack_create("pool access=stream | device_plain", &none),
        CCMR_ERROR_INVALID_ARGUMENT);
    cr_assert(strstr(ccmr_last_error()->message, "access=stream") != NULL);
    BAD(ccmr_stack_create("pool access=stream | virtual", &none),
        CCMR_ERROR_INVALID_ARGUMENT);
    BAD(ccmr_stack_create("pool move=no | device_plain", &none),
        CCMR_ERROR_INVALID_ARGUMENT);
    cr_assert(strstr(ccmr_last_error()->message, "move=no") != NULL);
    BAD(ccmr_stack_create("pool move=no | limiting bytes=1GiB | virtual",
                          &none),
        CCMR_ERROR_INVALID_ARGUMENT);
    BAD(ccmr_stack_create("pool export=handle | virtual", &none),
        CCMR_ERROR_INVALID_ARGUMENT);
    cr_assert(strstr(ccmr_last_error()->message, "export=posix_fd") != NULL);
    cr_assert_eq(ccmr_last_error()->column, 13);
    BAD(ccmr_stack_create("limiting bytes=1GiB | pool soft=110 handle=4MiB "
                          "move=yes | device_plain",
                          &none),
        CCMR_ERROR_INVALID_ARGUMENT);
    cr_assert_eq(ccmr_last_error()->column, 44);
    BAD(ccmr_stack_create("pool soft=-5 | device_plain", &none),
        CCMR_ERROR_INVALID_ARGUMENT);
    cr_assert(strstr(ccmr_last_error()->message, "soft=-5") != NULL);
    cr_assert(none == NULL);
}

static void refuse_flag(ccmr_resource *upstream,
                        const ccmr_pool_options *options, const char *name)
{
    ccmr_resource *none = NULL;

    BAD(ccmr_pool_create(upstream, options, &none),
        CCMR_ERROR_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(ccmr_last_error()->message, name), "%s",
                       ccmr_last_error()->message);
    cr_assert(none == NULL);
}

/* So that other values can have a meaning one day. */
Test(pool_use, flags_are_0_or_1)
{
    ccmr_pool_options options = {.size = sizeof(options)};
    ccmr_stream_ordered_options ordered = {.size = sizeof(ordered),
                                           .streams_registered = 2};
    ccmr_device_pool_options driver = {.size = sizeof(driver), .no_guard = 7};
    ccmr_logging_options log = {
        .size = sizeof(log), .file = "/dev/null", .flush = -1};
    ccmr_tracking_options track = {.size = sizeof(track), .report = 9};
    ccmr_resource *plain;
    ccmr_resource *none = NULL;

    GOOD(ccmr_stack_create("device_plain", &plain));
    options.streams_registered = 2;
    refuse_flag(plain, &options, "streams_registered is 2");
    options.streams_registered = 0;
    options.export_handles = -1;
    refuse_flag(plain, &options, "export_handles is -1");
    options.export_handles = 0;
    options.capture_reserve = 1 << 30;
    refuse_flag(plain, &options, "capture_reserve");
    BAD(ccmr_stream_ordered_create(plain, &ordered, &none),
        CCMR_ERROR_INVALID_ARGUMENT);
    BAD(ccmr_device_pool_create(0, &driver, &none),
        CCMR_ERROR_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(ccmr_last_error()->message, "no_guard is 7"));
    BAD(ccmr_logging_create(plain, &log, &none), CCMR_ERROR_INVALID_ARGUMENT);
    BAD(ccmr_tracking_create(plain, &track, &none),
        CCMR_ERROR_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(ccmr_last_error()->message, "report is 9"));
    cr_assert(none == NULL);
    ccmr_resource_release(plain);
}

/* ---- sizes ------------------------------------------------------------------- */

/* J3: a class holds every size that maps to it, and no smaller one does. */
Test(pool_sizes, classes_hold_their_sizes)
{
    size_t bytes;
    unsigned i;

    for (i = 0; i < CCMR__POOL_CLASSES; i++) {
        bytes = ccmr__pool_class_bytes(i);
        cr_assert_eq(ccmr__pool_class(bytes), i);
        cr_assert_eq(ccmr__pool_rounded(bytes), bytes);
        cr_assert_eq(bytes % CCMR__POOL_GRANULE, 0u);
        if (i + 1 < CCMR__POOL_CLASSES) {
            cr_assert_eq(ccmr__pool_class(bytes + 1), i + 1);
        }
    }
    for (bytes = 1; bytes <= CCMR__POOL_SMALL; bytes++) {
        cr_assert_geq(ccmr__pool_rounded(bytes), bytes);
        /* At most a quarter more, beyond the granules. */
        cr_assert_leq(ccmr__pool_rounded(bytes),
                      bytes + bytes / 4 + CCMR__POOL_GRANULE);
    }
    for (; bytes <= CCMR__POOL_MIDDLE; bytes += 255) {
        size_t rounded = ccmr__pool_rounded(bytes);

        cr_assert_geq(rounded, bytes);
        cr_assert_leq(rounded, bytes + bytes / 16);
        cr_assert_eq(ccmr__pool_rounded(rounded), rounded);
    }
    cr_assert_eq(ccmr__pool_rounded(CCMR__POOL_MIDDLE), CCMR__POOL_MIDDLE);
    cr_assert_eq(ccmr__pool_rounded(CCMR__POOL_MIDDLE + 1),
                 CCMR__POOL_MIDDLE + CCMR__POOL_STEP);
    cr_assert_eq(ccmr__pool_rounded(CCMR__POOL_MOST), CCMR__POOL_MOST);
}
