/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads: they end with blocks live and caches full, there are more of them
 * than the library has slots for, their records are used again. Counts stay
 * exact and somebody destroys. Field cases C3, F4, F6, G2, J5.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cucoremr/cucoremr.h>

#include "tests/support/api.h"
#include "tests/support/tap.h"

#define MANY 100
#define EACH 20

typedef struct shared {
    ccmr_resource *resource;
    pthread_barrier_t together;
    _Atomic(void *) blocks[MANY];
    atomic_int next;
    atomic_int failures;
} shared;

static void fail_if(shared *s, ccmr_status status)
{
    if (status != CCMR_SUCCESS) {
        atomic_fetch_add(&s->failures, 1);
    }
}

static void run(unsigned count, void *(*body)(void *), shared *s)
{
    pthread_t threads[MANY];
    unsigned i;

    for (i = 0; i < count; i++) {
        if (pthread_create(&threads[i], NULL, body, s) != 0) {
            tap_bail_out("no thread");
        }
    }
    for (i = 0; i < count; i++) {
        (void)pthread_join(threads[i], NULL);
    }
}

static ccmr_stats stats_of(ccmr_resource *resource)
{
    ccmr_stats stats = {.size = sizeof(stats)};

    if (ccmr_resource_stats(resource, &stats) != CCMR_SUCCESS) {
        tap_fail("stats: %s", ccmr_last_error()->message);
    }
    return stats;
}

/* A request that must fail, told apart by its size. */
static size_t too_much(int thread)
{
    return ((size_t)1 << 61) + ((size_t)thread << 30);
}

/* Ends with its last block live. */
static void *leave_a_block(void *argument)
{
    shared *s = argument;
    int self = atomic_fetch_add(&s->next, 1);
    void *ptr = NULL;
    ccmr_status status;
    int i;

    /* All are alive at once: most share one slot. */
    (void)pthread_barrier_wait(&s->together);
    for (i = 0; i < EACH; i++) {
        fail_if(s, ccmr_resource_allocate(s->resource, 1000, 0,
                                          CCMR_STREAM_LEGACY, &ptr));
        if (i + 1 < EACH) {
            fail_if(s, ccmr_resource_deallocate(s->resource, ptr, 1000, 0,
                                                CCMR_STREAM_LEGACY));
        }
    }
    /* Everybody's last failure is everybody's own. */
    status = ccmr_resource_allocate(s->resource, too_much(self), 0,
                                    CCMR_STREAM_LEGACY, &ptr);
    (void)pthread_barrier_wait(&s->together);
    if (status == CCMR_SUCCESS ||
        ccmr_last_error()->requested >> 30 != too_much(self) >> 30) {
        atomic_fetch_add(&s->failures, 1);
    }
    atomic_store(&s->blocks[self], ptr);
    return NULL;
}

static void *free_one(void *argument)
{
    shared *s = argument;
    int self = atomic_fetch_add(&s->next, 1);

    fail_if(s, ccmr_resource_deallocate(s->resource,
                                        atomic_load(&s->blocks[self]), 1000, 0,
                                        CCMR_STREAM_LEGACY));
    return NULL;
}

static void many_threads(const char *stack)
{
    shared s;
    ccmr_stats stats;

    memset(&s, 0, sizeof(s));
    if (ccmr_stack_create(stack, &s.resource) != CCMR_SUCCESS) {
        tap_fail("%s: %s", stack, ccmr_last_error()->message);
        return;
    }
    (void)pthread_barrier_init(&s.together, NULL, MANY);
    run(MANY, leave_a_block, &s);
    stats = stats_of(s.resource);
    tap_is_size(stats.live_bytes, MANY * 1000,
                "%s: live after %d threads ended", stack, MANY);
    tap_is_int(stats.allocations, MANY * EACH, "%s: allocations", stack);
    tap_is_int(stats.failures, MANY, "%s: failures", stack);
    atomic_store(&s.next, 0);
    run(MANY, free_one, &s);
    stats = stats_of(s.resource);
    tap_is_size(stats.live_bytes, 0, "%s: live after others freed", stack);
    tap_is_int(atomic_load(&s.failures), 0, "%s: no call failed", stack);
    (void)pthread_barrier_destroy(&s.together);
    ccmr_resource_release(s.resource);
}

/* Destroyed once, by whoever comes last: counted by a resource of our own. */
static atomic_int destroyed;

static ccmr_status own_allocate(void *self, size_t bytes, size_t alignment,
                                ccmr_stream stream, void **ptr)
{
    return ccmr_resource_allocate(self, bytes, alignment, stream, ptr);
}

static ccmr_status own_deallocate(void *self, void *ptr, size_t bytes,
                                  size_t alignment, ccmr_stream stream)
{
    return ccmr_resource_deallocate(self, ptr, bytes, alignment, stream);
}

static void own_destroy(void *self)
{
    (void)self;
    atomic_fetch_add(&destroyed, 1);
}

static ccmr_status own_describe(void *self, ccmr_properties *properties)
{
    (void)self;
    properties->name = "own";
    properties->host_accessible = 1;
    properties->max_alignment = 4096;
    properties->free_stream = CCMR_FREE_AT_ONCE;
    return CCMR_SUCCESS;
}

static const ccmr_resource_ops own_ops = {
    .size = sizeof(ccmr_resource_ops),
    .allocate = own_allocate,
    .deallocate = own_deallocate,
    .destroy = own_destroy,
    .describe = own_describe,
};

static void *free_and_release(void *argument)
{
    shared *s = argument;
    int self = atomic_fetch_add(&s->next, 1);

    (void)pthread_barrier_wait(&s->together);
    if (self % 4 == 0) {
        ccmr_resource_release(s->resource);
    }
    fail_if(s, ccmr_resource_deallocate(s->resource,
                                        atomic_load(&s->blocks[self]), 1000, 0,
                                        CCMR_STREAM_LEGACY));
    return NULL;
}

static void drains(unsigned threads, int rounds)
{
    ccmr_resource *host = NULL;
    shared s;
    int round;
    unsigned i;
    int wrong = 0;

    memset(&s, 0, sizeof(s));
    if (ccmr_host_create(&host) != CCMR_SUCCESS) {
        tap_bail_out("host");
    }
    for (round = 0; round < rounds; round++) {
        atomic_store(&destroyed, 0);
        atomic_store(&s.next, 0);
        if (ccmr_resource_create(&own_ops, host, &s.resource) !=
            CCMR_SUCCESS) {
            tap_bail_out("own resource");
        }
        for (i = 4; i < threads; i += 4) {
            (void)ccmr_resource_retain(s.resource);
        }
        for (i = 0; i < threads; i++) {
            void *ptr = NULL;

            fail_if(&s, ccmr_resource_allocate(s.resource, 1000, 0,
                                               CCMR_STREAM_LEGACY, &ptr));
            atomic_store(&s.blocks[i], ptr);
        }
        (void)pthread_barrier_init(&s.together, NULL, threads);
        run(threads, free_and_release, &s);
        (void)pthread_barrier_destroy(&s.together);
        wrong += atomic_load(&destroyed) != 1;
    }
    tap_is_int(wrong, 0, "%d drains by %u threads: destroyed once", rounds,
               threads);
    tap_is_int(atomic_load(&s.failures), 0, "no call failed");
    ccmr_resource_release(host);
}

/* Buffers hold; closed by threads that are gone at once. */
static void *close_buffers(void *argument)
{
    shared *s = argument;
    ccmr_buffer *buffers[8];
    int i;

    for (i = 0; i < 8; i++) {
        buffers[i] = NULL;
        fail_if(s, ccmr_buffer_create(s->resource, 100, NULL,
                                      CCMR_STREAM_PER_THREAD, &buffers[i]));
    }
    for (i = 0; i < 8; i++) {
        fail_if(s, ccmr_buffer_destroy(buffers[i]));
    }
    return NULL;
}

static void buffers(const char *stack)
{
    shared s;

    memset(&s, 0, sizeof(s));
    if (ccmr_stack_create(stack, &s.resource) != CCMR_SUCCESS) {
        tap_fail("%s: %s", stack, ccmr_last_error()->message);
        return;
    }
    run(MANY, close_buffers, &s);
    tap_is_int(atomic_load(&s.failures), 0,
               "%s: buffers on %d threads' default streams", stack, MANY);
    tap_is_size(stats_of(s.resource).live_bytes, 0, "%s: live", stack);
    ccmr_resource_release(s.resource);
}

/* A buffer on the token of a thread that has ended: nobody can close it
   without naming a stream, and its name is not taken by a new thread. */
static ccmr_buffer *orphan;

static void *make_orphan(void *argument)
{
    shared *s = argument;

    fail_if(s, ccmr_buffer_create(s->resource, 100, NULL,
                                  CCMR_STREAM_PER_THREAD, &orphan));
    return NULL;
}

static void *close_orphan(void *argument)
{
    shared *s = argument;

    if (ccmr_buffer_close(orphan, CCMR_STREAM_UNSET) !=
        CCMR_ERROR_WRONG_THREAD) {
        atomic_fetch_add(&s->failures, 1);
    }
    return NULL;
}

static void orphans(void)
{
    shared s;
    int i;

    memset(&s, 0, sizeof(s));
    if (ccmr_stack_create("device_pool", &s.resource) != CCMR_SUCCESS) {
        tap_bail_out("%s", ccmr_last_error()->message);
    }
    run(1, make_orphan, &s);
    for (i = 0; i < 70; i++) {
        run(1, close_orphan, &s);
    }
    tap_is_int(atomic_load(&s.failures), 0,
               "no later thread is taken for the one that ended");
    tap_ok(ccmr_buffer_close(orphan, CCMR_STREAM_LEGACY) == CCMR_SUCCESS &&
               ccmr_buffer_destroy(orphan) == CCMR_SUCCESS,
           "closed on a stream with a name");
    ccmr_resource_release(s.resource);
}

/* The first use of the process, by all at once: loading, contexts, the
   device's default resource, the thread records, a new kind. */
static _Atomic(ccmr_resource *) current;
static atomic_int registered;

static ccmr_status never_create(const ccmr_kind *kind,
                                const ccmr_option_value *values,
                                ccmr_resource *const *upstreams, size_t count,
                                ccmr_resource **resource)
{
    (void)kind;
    (void)values;
    (void)upstreams;
    (void)count;
    (void)resource;
    return ccmr_error_set(CCMR_ERROR_USER, 0, NULL);
}

static const ccmr_option no_options[] = {
    {NULL, CCMR_OPTION_TEXT, NULL, NULL, NULL}};
static const ccmr_kind one_kind = {
    .size = sizeof(ccmr_kind),
    .name = "raced_for",
    .help = "a test's",
    .options = no_options,
    .create = never_create,
};

static void *first_use(void *argument)
{
    shared *s = argument;
    ccmr_resource *resource = NULL;
    ccmr_resource *expected = NULL;
    ccmr_stream stream = NULL;
    ccmr_buffer *buffer = NULL;
    ccmr_status status;

    (void)pthread_barrier_wait(&s->together);
    fail_if(s, ccmr_init(NULL));
    status = ccmr_kind_register(&one_kind);
    if (status == CCMR_SUCCESS) {
        atomic_fetch_add(&registered, 1);
    } else if (status != CCMR_ERROR_ALREADY_EXISTS) {
        atomic_fetch_add(&s->failures, 1);
    }
    fail_if(s, ccmr_device_current_resource(0, &resource));
    if (!atomic_compare_exchange_strong(&current, &expected, resource) &&
        expected != resource) {
        atomic_fetch_add(&s->failures, 1);
    }
    fail_if(s, ccmr_stream_create(0, CCMR_STREAM_FLAG_NON_BLOCKING, &stream));
    fail_if(s, ccmr_buffer_create(resource, 5000, NULL, stream, &buffer));
    fail_if(s, ccmr_buffer_close(buffer, CCMR_STREAM_PER_THREAD));
    fail_if(s, ccmr_buffer_destroy(buffer));
    fail_if(s, ccmr_stream_destroy(stream));
    ccmr_resource_release(resource);
    return NULL;
}

static void first_uses(void)
{
    enum { FIRST = 16 };
    shared s;

    memset(&s, 0, sizeof(s));
    (void)pthread_barrier_init(&s.together, NULL, FIRST);
    run(FIRST, first_use, &s);
    (void)pthread_barrier_destroy(&s.together);
    tap_is_int(atomic_load(&s.failures), 0, "%d threads' first use", FIRST);
    tap_is_int(atomic_load(&registered), 1, "a kind is registered once");
}

/* The current resource is exchanged while others use it. */
static void *use_current(void *argument)
{
    shared *s = argument;
    int self = atomic_fetch_add(&s->next, 1);
    int i;

    for (i = 0; i < 200; i++) {
        ccmr_resource *resource = NULL;
        ccmr_resource *previous = NULL;
        void *ptr = NULL;

        if (self == 0) {
            fail_if(s, ccmr_stack_create(i % 2 == 0 ? "device_plain" : "host",
                                         &resource));
            fail_if(s, ccmr_device_set_current_resource(
                           0, i % 3 == 0 ? NULL : resource, &previous));
            ccmr_resource_release(previous);
        } else {
            fail_if(s, ccmr_device_current_resource(0, &resource));
            fail_if(s, ccmr_resource_allocate(resource, 700, 0,
                                              CCMR_STREAM_LEGACY, &ptr));
            fail_if(s, ccmr_resource_deallocate(resource, ptr, 700, 0,
                                                CCMR_STREAM_LEGACY));
        }
        ccmr_resource_release(resource);
    }
    return NULL;
}

static void exchanged_current(void)
{
    shared s;

    memset(&s, 0, sizeof(s));
    run(4, use_current, &s);
    tap_is_int(atomic_load(&s.failures), 0,
               "the current resource is exchanged under its users");
    tap_ok(ccmr_device_set_current_resource(0, NULL, NULL) == CCMR_SUCCESS,
           "the default comes back");
}

/* Registered streams come and go while others are looked up. */
static void *come_and_go(void *argument)
{
    shared *s = argument;
    int i;

    for (i = 0; i < 100; i++) {
        ccmr_stream streams[8];
        void *ptr = NULL;
        int k;

        for (k = 0; k < 8; k++) {
            streams[k] = NULL;
            fail_if(s, ccmr_stream_create(0, 1, &streams[k]));
        }
        for (k = 0; k < 8; k++) {
            fail_if(s, ccmr_resource_allocate(s->resource, 100, 0, streams[k],
                                              &ptr));
            fail_if(s, ccmr_resource_deallocate(s->resource, ptr, 100, 0,
                                                streams[k]));
            fail_if(s, ccmr_stream_destroy(streams[k]));
        }
    }
    return NULL;
}

static void streams(const char *stack)
{
    shared s;

    memset(&s, 0, sizeof(s));
    if (ccmr_stack_create(stack, &s.resource) != CCMR_SUCCESS) {
        tap_bail_out("%s", ccmr_last_error()->message);
    }
    run(4, come_and_go, &s);
    tap_is_int(atomic_load(&s.failures), 0, "%s: streams come and go", stack);
    ccmr_resource_release(s.resource);
}

int main(void)
{
    (void)api_simulator();
    first_uses();
    exchanged_current();
    streams("device_pool");
    streams("stream_ordered | device_plain");
    streams("pool | device_plain");
    many_threads("host");
    many_threads("device_pool");
    many_threads("limiting bytes=1GiB | stream_ordered | device_plain");
    many_threads("logging file=/dev/null | limiting bytes=1GiB | host");
    many_threads("pool | device_pool");
    drains(8, 100);
    drains(MANY, 10);
    buffers("device_pool");
    buffers("stream_ordered | device_plain");
    buffers("pool | device_plain");
    orphans();
    return api_end(tap_finish());
}
