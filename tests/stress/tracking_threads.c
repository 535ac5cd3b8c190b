/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracking under threads: no false report, and of several who free one block
 * one succeeds. The upstream gives the last freed address again at once. Field
 * cases F1, H5.
 */
#include <sched.h>
#include <stdatomic.h>

#include <cucoremr/cucoremr.h>

#include "tests/stress/crew.h"
#include "tests/support/puppet.h"
#include "tests/support/tap.h"

#define LEGACY CCMR_STREAM_LEGACY
#define ROUNDS 20000
#define PLACES 16

static puppet below;
static ccmr_resource *upstream;
static ccmr_resource *tracked;

static void set_up(int traces)
{
    const ccmr_tracking_options options = {
        .size = sizeof(options), .traces = traces, .history = 64};

    puppet_init(&below);
    below.yields = 1;
    upstream = puppet_resource(&below);
    if (ccmr_tracking_create(upstream, &options, &tracked) != CCMR_SUCCESS) {
        tap_bail_out("%s", ccmr_last_error()->message);
    }
}

static int count(void *context, const ccmr_tracking_block *block)
{
    (void)block;
    ++*(int *)context;
    return 0;
}

static void tear_down(const char *what)
{
    int live = 0;

    tap_is_int(crew_faults(), 0, "%s: nothing went wrong", what);
    tap_ok(ccmr_resource_audit(tracked) == CCMR_SUCCESS, "%s: audit", what);
    tap_ok(ccmr_tracking_outstanding(tracked, count, &live) == CCMR_SUCCESS &&
               live == 0,
           "%s: nothing is live", what);
    ccmr_resource_release(tracked);
    ccmr_resource_release(upstream);
    tap_ok(puppet_clear(&below), "%s: nothing is left", what);
}

static void one_size(crew_member *self)
{
    int i;

    (void)self;
    for (i = 0; i < ROUNDS; i++) {
        void *ptr = NULL;

        CREW_CHECK(ccmr_resource_allocate(tracked, 256, 0, LEGACY, &ptr) ==
                   CCMR_SUCCESS);
        CREW_CHECK(ccmr_resource_deallocate(tracked, ptr, 256, 0, LEGACY) ==
                   CCMR_SUCCESS);
    }
}

/* The blocks of one round: all threads free each of them. */
static pthread_barrier_t barrier;
static void *places[PLACES];
static atomic_int freed;

static void all_free(crew_member *self)
{
    int round;
    int i;

    for (round = 0; round < 300; round++) {
        if (self->index == 0) {
            for (i = 0; i < PLACES; i++) {
                CREW_CHECK(ccmr_resource_allocate(tracked, 512, 0, LEGACY,
                                                  &places[i]) == CCMR_SUCCESS);
            }
        }
        (void)pthread_barrier_wait(&barrier);
        for (i = 0; i < PLACES; i++) {
            ccmr_status status =
                ccmr_resource_deallocate(tracked, places[i], 512, 0, LEGACY);

            CREW_CHECK(status == CCMR_SUCCESS ||
                       status == CCMR_ERROR_INVALID_POINTER);
            atomic_fetch_add(&freed, status == CCMR_SUCCESS);
        }
        (void)pthread_barrier_wait(&barrier);
        if (self->index == 0) {
            CREW_CHECK(atomic_exchange(&freed, 0) == PLACES);
        }
    }
}

/* Listings and audits beside work. */
static void list_or_work(crew_member *self)
{
    ccmr_tracking_block block = {.size = sizeof(block)};
    int i;

    if (self->index != 0) {
        one_size(self);
        return;
    }
    for (i = 0; i < 100; i++) {
        int live = 0;

        CREW_CHECK(ccmr_tracking_outstanding(tracked, count, &live) ==
                   CCMR_SUCCESS);
        CREW_CHECK(live >= 0 && live < 8);
        CREW_CHECK(ccmr_resource_audit(tracked) == CCMR_SUCCESS);
        CREW_CHECK(ccmr_tracking_find(tracked, &block, &block) ==
                   CCMR_ERROR_INVALID_POINTER);
        (void)sched_yield();
    }
}

int main(void)
{
    set_up(0);
    crew_run(4, one_size, NULL);
    tear_down("one size");

    set_up(1);
    (void)pthread_barrier_init(&barrier, NULL, 4);
    crew_run(4, all_free, NULL);
    (void)pthread_barrier_destroy(&barrier);
    tear_down("all free each");

    set_up(0);
    crew_run(5, list_or_work, NULL);
    tear_down("listings");
    return tap_finish();
}
