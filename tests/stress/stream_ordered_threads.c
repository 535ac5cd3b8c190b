/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_ordered under threads, each with a stream: no block is handed out
 * twice, none is lost, and nobody is refused while there is room. Field cases
 * F3, F4, F5, B2.
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <cucoremr/cucoremr.h>

#include "tests/stress/crew.h"
#include "tests/support/api.h"
#include "tests/support/puppet.h"
#include "tests/support/tap.h"

#define THREADS 6
#define OWNERS (1 << 16)

static puppet below;
static ccmr_resource *upstream;
static ccmr_resource *ordered;
static ccmr_stream streams[THREADS];
static atomic_int owners[OWNERS]; /* by address, as the puppet gives them */

static void set_up(size_t capacity, int host)
{
    puppet_init(&below);
    below.device = 0;
    below.capacity = capacity;
    below.yields = 1;
    below.host_accessible = host;
    below.access = CCMR_ACCESS_HOST;
    upstream = puppet_resource(&below);
    if (ccmr_stream_ordered_create(upstream, NULL, &ordered) != CCMR_SUCCESS) {
        tap_bail_out("%s", ccmr_last_error()->message);
    }
}

static void tear_down(const char *what)
{
    ccmr_stats stats = {.size = sizeof(stats)};

    tap_is_int(crew_faults(), 0, "%s: nothing went wrong", what);
    tap_ok(ccmr_resource_audit(ordered) == CCMR_SUCCESS, "%s: audit", what);
    tap_ok(ccmr_resource_stats(ordered, &stats) == CCMR_SUCCESS &&
               stats.live_blocks == 0,
           "%s: nothing is live", what);
    tap_is_size(stats.reserved_bytes, below.live_bytes,
                "%s: reserved is what the upstream gave", what);
    ccmr_resource_release(ordered);
    ccmr_resource_release(upstream);
    tap_ok(puppet_clear(&below), "%s: nothing is left", what);
}

static atomic_int *owner_of(void *ptr)
{
    return &owners[((uintptr_t)ptr >> 12) % OWNERS];
}

/* NULL where there is no room. */
static void *take(size_t bytes, ccmr_stream stream)
{
    void *ptr = NULL;
    ccmr_status status =
        ccmr_resource_allocate(ordered, bytes, 0, stream, &ptr);

    if (status == CCMR_ERROR_OUT_OF_DEVICE_MEMORY) {
        return NULL;
    }
    CREW_CHECK(status == CCMR_SUCCESS);
    if (ptr != NULL && atomic_exchange(owner_of(ptr), 1) != 0) {
        crew_fault("a block was handed out twice");
    }
    return ptr;
}

static void give(void *ptr, size_t bytes, ccmr_stream stream)
{
    if (atomic_exchange(owner_of(ptr), 0) != 1) {
        crew_fault("a block that was not handed out");
    }
    CREW_CHECK(ccmr_resource_deallocate(ordered, ptr, bytes, 0, stream) ==
               CCMR_SUCCESS);
}

/* ---- as many blocks as threads --------------------------------------------- */

static atomic_int refused;

static void one_each(crew_member *self)
{
    ccmr_stream stream = streams[self->index];
    int i;

    for (i = 0; i < 800; i++) {
        void *ptr = take(3000, stream);

        if (ptr == NULL) {
            atomic_fetch_add(&refused, 1);
            continue;
        }
        if (crew_random(self, 4) == 0) {
            (void)sched_yield();
        }
        give(ptr, 3000, stream);
    }
}

static void test_enough(int host, const char *what)
{
    atomic_store(&refused, 0);
    set_up(THREADS * 3072, host);
    crew_run(THREADS, one_each, NULL);
    tap_is_int(atomic_load(&refused), 0, "%s: nobody is refused", what);
    tear_down(what);
}

/* Two sizes that do not serve each other, and room for one block of either
 * kind for each thread: whoever is refused must have everything given back. */
static void large_or_small(crew_member *self)
{
    ccmr_stream stream = streams[self->index];
    int i;

    for (i = 0; i < 300; i++) {
        size_t bytes = crew_random(self, 2) == 0 ? 1000 : 8192;
        void *ptr = take(bytes, stream);

        if (ptr == NULL) {
            atomic_fetch_add(&refused, 1);
        } else {
            give(ptr, bytes, stream);
        }
    }
}

static void test_two_sizes(void)
{
    atomic_store(&refused, 0);
    set_up(THREADS * 8192, 0);
    crew_run(THREADS, large_or_small, NULL);
    tap_is_int(atomic_load(&refused), 0, "two sizes: nobody is refused");
    tear_down("two sizes");
}

/* ---- everything at once -------------------------------------------------------- */

#define PLACES 128

typedef struct parcel {
    void *ptr;
    size_t bytes;
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

static void disturb(crew_member *self)
{
    ccmr_trim_result result = {.size = sizeof(result)};
    ccmr_stats stats = {.size = sizeof(stats)};

    switch (crew_random(self, 5)) {
    case 0:
        CREW_CHECK(ccmr_resource_trim(ordered, crew_random(self, 200000),
                                      &result) == CCMR_SUCCESS);
        break;
    case 1:
        CREW_CHECK(ccmr_resource_stats(ordered, &stats) == CCMR_SUCCESS);
        break;
    case 2:
        CREW_CHECK(ccmr_resource_audit(ordered) == CCMR_SUCCESS);
        break;
    case 3:
        CREW_CHECK(ccmr_resource_option_set(
                       ordered, "keep",
                       crew_random(self, 2) ? "100KiB" : "0") == CCMR_SUCCESS);
        break;
    default:
        IGNORE(ccmr_resource_trim(ordered, 0, NULL));
        break;
    }
}

static void mix(crew_member *self)
{
    const int *host = self->context;
    ccmr_stream stream = streams[self->index];
    int i;

    for (i = 0; i < 1000; i++) {
        parcel mine = {NULL, 1 + crew_random(self, 20000)};

        if (crew_random(self, 40) == 0) {
            disturb(self);
        }
        mine.ptr = take(mine.bytes, stream);
        exchange(self, &mine);
        if (mine.ptr != NULL) {
            give(mine.ptr, mine.bytes,
                 crew_random(self, 10) == 0 ? CCMR_STREAM_READY : stream);
        }
        /* A stream that is retired goes on under a new id. */
        if (*host == 0 && crew_random(self, 100) == 0) {
            CREW_CHECK(ccmr_stream_retire(stream) == CCMR_SUCCESS);
            CREW_CHECK(ccmr_stream_register(stream) == CCMR_SUCCESS);
        }
    }
}

static void test_mix(size_t capacity, int host, const char *what)
{
    int i;

    set_up(capacity, host);
    crew_run(THREADS, mix, &host);
    for (i = 0; i < PLACES; i++) {
        if (places[i].ptr != NULL) {
            give(places[i].ptr, places[i].bytes, streams[0]);
            places[i].ptr = NULL;
        }
    }
    tear_down(what);
}

int main(void)
{
    int i;

    CUcontext context;

    (void)api_simulator();
    if (ccmr_init(NULL) != CCMR_SUCCESS ||
        api.cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
        api.cuCtxSetCurrent(context) != CUDA_SUCCESS) {
        tap_bail_out("no context: %s", ccmr_last_error()->message);
    }
    for (i = 0; i < THREADS; i++) {
        if (api.cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING) !=
                CUDA_SUCCESS ||
            ccmr_stream_register(streams[i]) != CCMR_SUCCESS) {
            tap_bail_out("no stream: %s", ccmr_last_error()->message);
        }
    }
    (void)simulator->set_mode(CCMR_SIM_EAGER);
    test_enough(0, "a block for each, eager");
    test_mix(SIZE_MAX, 0, "everything, eager");
    (void)simulator->set_mode(CCMR_SIM_LATE);
    test_enough(0, "a block for each, late");
    test_enough(1, "a block for each, host memory");
    test_two_sizes();
    test_mix(SIZE_MAX, 0, "everything, late");
    test_mix(500000, 0, "everything, and little memory");
    test_mix(500000, 1, "everything, and little host memory");
    for (i = 0; i < THREADS; i++) {
        tap_ok(ccmr_stream_retire(streams[i]) == CCMR_SUCCESS &&
                   api.cuStreamDestroy(streams[i]) == CUDA_SUCCESS,
               "stream %d goes", i);
    }
    (void)simulator->reset(NULL);
    return tap_finish();
}
