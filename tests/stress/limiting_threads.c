/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limiting under threads: never passed, never refused wrongly. The upstream's
 * own capacity is the limit, so that it tells of any byte too many. Field
 * cases F3, J1, J2.
 */
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include <cucoremr/cucoremr.h>

#include "tests/stress/crew.h"
#include "tests/support/puppet.h"
#include "tests/support/tap.h"

#define LEGACY CCMR_STREAM_LEGACY

static puppet below;
static ccmr_resource *upstream;
static ccmr_resource *limited;
static size_t limit;
static atomic_int refusals;

static void set_up(size_t bytes)
{
    puppet_init(&below);
    below.capacity = bytes;
    below.yields = 1;
    limit = bytes;
    atomic_store(&refusals, 0);
    upstream = puppet_resource(&below);
    if (ccmr_limiting_create(upstream, bytes, &limited) != CCMR_SUCCESS) {
        tap_bail_out("%s", ccmr_last_error()->message);
    }
}

/* All of the limit can be had again, and not a byte more. */
static void tear_down(const char *what)
{
    void *ptr = NULL;

    tap_is_int(crew_faults(), 0, "%s: nothing went wrong", what);
    tap_is_size(below.failures - below.fail_allocations, 0,
                "%s: the limit was never passed", what);
    tap_ok(ccmr_resource_audit(limited) == CCMR_SUCCESS, "%s: audit", what);
    tap_ok(ccmr_resource_allocate(limited, limit, 0, LEGACY, &ptr) ==
                   CCMR_SUCCESS &&
               ccmr_resource_deallocate(limited, ptr, limit, 0, LEGACY) ==
                   CCMR_SUCCESS,
           "%s: all of the limit is there afterwards", what);
    tap_ok(ccmr_resource_allocate(limited, limit + 1, 0, LEGACY, &ptr) ==
               CCMR_ERROR_LIMIT_EXCEEDED,
           "%s: and no more", what);
    tap_is_size(ccmr_last_error()->live, 0, "%s: nothing is live", what);
    ccmr_resource_release(limited);
    ccmr_resource_release(upstream);
    tap_ok(puppet_clear(&below), "%s: nothing is left", what);
}

static void *take(size_t bytes)
{
    void *ptr = NULL;
    ccmr_status status =
        ccmr_resource_allocate(limited, bytes, 0, LEGACY, &ptr);

    if (status == CCMR_ERROR_LIMIT_EXCEEDED) {
        atomic_fetch_add(&refusals, 1);
        CREW_CHECK(ccmr_last_error()->requested == bytes);
    } else {
        CREW_CHECK(status == CCMR_SUCCESS);
    }
    return ptr;
}

static void give(void *ptr, size_t bytes)
{
    CREW_CHECK(ccmr_resource_deallocate(limited, ptr, bytes, 0, LEGACY) ==
               CCMR_SUCCESS);
}

/* ---- two ask for more than half, at once -------------------------------- */

#define DUELS 2000

typedef struct duel {
    pthread_barrier_t barrier;
    atomic_int winners;
    atomic_int wrong;
} duel;

static void fight(crew_member *self)
{
    duel *of = self->context;
    int i;

    for (i = 0; i < DUELS; i++) {
        void *ptr;

        (void)pthread_barrier_wait(&of->barrier);
        if (crew_random(self, 2) != 0) {
            (void)sched_yield();
        }
        ptr = take(600);
        if (ptr != NULL) {
            atomic_fetch_add(&of->winners, 1);
        }
        (void)pthread_barrier_wait(&of->barrier);
        if (self->index == 0) {
            if (atomic_exchange(&of->winners, 0) != 1) {
                atomic_fetch_add(&of->wrong, 1);
            }
        }
        if (ptr != NULL) {
            give(ptr, 600);
        }
    }
}

static void test_duels(void)
{
    duel of;

    set_up(1024);
    (void)pthread_barrier_init(&of.barrier, NULL, 2);
    atomic_init(&of.winners, 0);
    atomic_init(&of.wrong, 0);
    crew_run(2, fight, &of);
    (void)pthread_barrier_destroy(&of.barrier);
    tap_is_int(atomic_load(&of.wrong), 0, "one wins, always");
    tap_is_int(atomic_load(&refusals), DUELS, "one is refused, always");
    tear_down("duels");
}

/* ---- each within its own part -------------------------------------------- */

#define SLOTS 16
#define PART 100000u

typedef struct hoard {
    void *ptrs[SLOTS];
    size_t sizes[SLOTS];
    size_t bytes;
} hoard;

/* Free slot i, or fill it if the part allows. */
static void churn(crew_member *self, hoard *mine, size_t part)
{
    uint32_t i = crew_random(self, SLOTS);
    size_t bytes = crew_random(self, crew_random(self, 8) == 0 ? PART : 2000);

    bytes++;
    if (mine->ptrs[i] != NULL) {
        give(mine->ptrs[i], mine->sizes[i]);
        mine->bytes -= mine->sizes[i];
        mine->ptrs[i] = NULL;
    } else if (mine->bytes + bytes <= part) {
        mine->ptrs[i] = take(bytes);
        if (mine->ptrs[i] != NULL) {
            mine->sizes[i] = bytes;
            mine->bytes += bytes;
        }
    }
}

static void empty(hoard *mine)
{
    int i;

    for (i = 0; i < SLOTS; i++) {
        if (mine->ptrs[i] != NULL) {
            give(mine->ptrs[i], mine->sizes[i]);
        }
    }
}

static void live_within(crew_member *self)
{
    hoard mine = {{NULL}, {0}, 0};
    const size_t *part = self->context;
    int i;

    for (i = 0; i < 4000; i++) {
        churn(self, &mine, *part);
    }
    empty(&mine);
}

static void test_parts(int threads)
{
    size_t part = PART;

    set_up((size_t)threads * PART);
    crew_run(threads, live_within, &part);
    tap_is_int(atomic_load(&refusals), 0,
               "%d threads, each within its part: nobody is refused", threads);
    tear_down("parts");
}

static void test_rivals(void)
{
    size_t part = 2 * PART;

    set_up(4 * PART);
    crew_run(8, live_within, &part);
    tap_ok(atomic_load(&refusals) > 0, "rivals: somebody is refused");
    tear_down("rivals");
}

/* ---- more threads than slots ---------------------------------------------- */

static void live_shortly(crew_member *self)
{
    hoard mine = {{NULL}, {0}, 0};
    int i;

    for (i = 0; i < 100; i++) {
        churn(self, &mine, PART);
    }
    empty(&mine);
}

static void test_crowd(void)
{
    set_up(80 * PART);
    crew_run(80, live_shortly, NULL);
    tap_is_int(atomic_load(&refusals), 0, "a crowd: nobody is refused");
    tear_down("a crowd");
}

/* ---- blocks that change hands ---------------------------------------------- */

#define PLACES 64

static _Atomic(void *) places[PLACES];

static void exchange(crew_member *self)
{
    int i;

    for (i = 0; i < 4000; i++) {
        uint32_t at = crew_random(self, PLACES);
        void *mine = self->index % 2 == 0 ? take(1000) : NULL;
        void *other = atomic_exchange(&places[at], mine);

        if (other != NULL) {
            give(other, 1000);
        }
    }
}

/* 64 places and a block in each of the two threads that allocate: there is
 * always room. */
static void test_exchange(void)
{
    int i;

    set_up((PLACES + 4) * 1000);
    crew_run(4, exchange, NULL);
    tap_is_int(atomic_load(&refusals), 0,
               "blocks change hands: nobody is refused");
    for (i = 0; i < PLACES; i++) {
        if (places[i] != NULL) {
            give(places[i], 1000);
        }
    }
    tear_down("blocks change hands");
}

/* ---- an upstream that fails ------------------------------------------------- */

static void fail_often(puppet *self)
{
    (void)pthread_mutex_lock(&self->lock);
    self->fail_allocations = self->allocations % 3 == 0;
    (void)pthread_mutex_unlock(&self->lock);
}

static void try_hard(crew_member *self)
{
    int i;

    for (i = 0; i < 2000; i++) {
        size_t bytes = crew_random(self, 500) + 1;
        void *ptr = NULL;
        ccmr_status status =
            ccmr_resource_allocate(limited, bytes, 0, LEGACY, &ptr);

        if (status == CCMR_SUCCESS) {
            give(ptr, bytes);
        } else {
            CREW_CHECK(status == CCMR_ERROR_OUT_OF_DEVICE_MEMORY ||
                       status == CCMR_ERROR_LIMIT_EXCEEDED);
        }
    }
}

static void test_failures(void)
{
    set_up(1000);
    below.on_allocate = fail_often;
    crew_run(4, try_hard, NULL);
    tap_ok(below.failures > 0, "the upstream failed");
    below.on_allocate = NULL;
    below.fail_allocations = 0;
    below.failures = 0;
    tear_down("failures");
}

/* ---- a limit that moves --------------------------------------------------------- */

static void move_limit(crew_member *self)
{
    static const char *const texts[] = {"400000", "100000", "0", "300000"};
    size_t part = PART;
    int i;

    if (self->index != 0) {
        self->context = &part;
        live_within(self);
        return;
    }
    for (i = 0; i < 400; i++) {
        CREW_CHECK(ccmr_resource_option_set(limited, "bytes", texts[i % 4]) ==
                   CCMR_SUCCESS);
        (void)sched_yield();
    }
    CREW_CHECK(ccmr_resource_option_set(limited, "bytes", "400000") ==
               CCMR_SUCCESS);
}

static void test_moving(void)
{
    set_up(400000);
    crew_run(5, move_limit, NULL);
    tear_down("a limit that moves");
}

int main(void)
{
    test_duels();
    test_parts(2);
    test_parts(8);
    test_rivals();
    test_crowd();
    test_exchange();
    test_failures();
    test_moving();
    return tap_finish();
}
