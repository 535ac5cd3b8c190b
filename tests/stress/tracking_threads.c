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

/* ---- addresses that overlap, one after the other ------------------------ */

#define PIECE 4096
#define STANDING 3000

static _Thread_local char *own_piece;

/* All of the thread's piece, or a part that begins elsewhere each time. */
static ccmr_status carve(void *self, size_t bytes, size_t alignment,
                         ccmr_stream stream, void **ptr)
{
    static _Thread_local unsigned turn;

    (void)self;
    (void)alignment;
    (void)stream;
    *ptr = bytes == PIECE ? own_piece : own_piece + 256 * (1 + turn++ % 15);
    return CCMR_SUCCESS;
}

static ccmr_status uncarve(void *self, void *ptr, size_t bytes,
                           size_t alignment, ccmr_stream stream)
{
    (void)self;
    (void)ptr;
    (void)bytes;
    (void)alignment;
    (void)stream;
    return CCMR_SUCCESS;
}

static void nothing(void *self)
{
    (void)self;
}

static ccmr_status describe(void *self, ccmr_properties *properties)
{
    (void)self;
    properties->name = "carver";
    properties->max_alignment = 4096;
    properties->device = -1;
    return CCMR_SUCCESS;
}

static atomic_int carving;

/* Beside blocks that stay, so that an audit takes its time. */
static void audit_often(void)
{
    char *first = own_piece;
    int i;

    for (i = 0; i < STANDING; i++) {
        void *ptr = NULL;

        own_piece = first + (size_t)PIECE * (size_t)i;
        CREW_CHECK(ccmr_resource_allocate(tracked, PIECE, 0, LEGACY, &ptr) ==
                   CCMR_SUCCESS);
    }
    for (i = 0; i < 200; i++) {
        CREW_CHECK(ccmr_resource_audit(tracked) == CCMR_SUCCESS);
    }
    atomic_store(&carving, 0);
    for (i = 0; i < STANDING; i++) {
        CREW_CHECK(ccmr_resource_deallocate(tracked,
                                            first + (size_t)PIECE * (size_t)i,
                                            PIECE, 0, LEGACY) == CCMR_SUCCESS);
    }
}

#define PIECES 64

/* Frees what lies in a piece and takes another part of it: one block in each
 * at any time, so that no two ever overlap. */
static void carve_again(void **blocks, size_t *sizes, size_t bytes)
{
    char *first = own_piece;
    int i;

    for (i = 0; i < PIECES; i++) {
        if (blocks[i] != NULL) {
            CREW_CHECK(ccmr_resource_deallocate(tracked, blocks[i], sizes[i],
                                                0, LEGACY) == CCMR_SUCCESS);
            blocks[i] = NULL;
        }
        own_piece = first + (size_t)PIECE * (size_t)i;
        sizes[i] = bytes;
        if (bytes != 0) {
            CREW_CHECK(ccmr_resource_allocate(tracked, bytes, 0, LEGACY,
                                              &blocks[i]) == CCMR_SUCCESS);
        }
    }
    own_piece = first;
}

static void carve_or_audit(crew_member *self)
{
    void *blocks[PIECES] = {NULL};
    size_t sizes[PIECES];

    own_piece =
        (char *)((uintptr_t)PIECE * (uintptr_t)(100000 * (self->index + 1)));
    if (self->index == 0) {
        audit_often();
        return;
    }
    while (atomic_load(&carving)) {
        carve_again(blocks, sizes, PIECE);
        carve_again(blocks, sizes, 256);
    }
    carve_again(blocks, sizes, 0);
}

/* What was freed and what came there since are not taken for two blocks. */
static void test_no_false_overlap(void)
{
    static const ccmr_resource_ops ops = {
        .size = sizeof(ops),
        .allocate = carve,
        .deallocate = uncarve,
        .destroy = nothing,
        .describe = describe,
    };

    if (ccmr_resource_create(&ops, NULL, &upstream) != CCMR_SUCCESS ||
        ccmr_tracking_create(upstream, NULL, &tracked) != CCMR_SUCCESS) {
        tap_bail_out("%s", ccmr_last_error()->message);
    }
    atomic_store(&carving, 1);
    crew_run(4, carve_or_audit, NULL);
    tap_is_int(crew_faults(), 0, "audits beside work see no overlap");
    ccmr_resource_release(tracked);
    ccmr_resource_release(upstream);
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

    test_no_false_overlap();
    return tap_finish();
}
