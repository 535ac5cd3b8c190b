/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole stacks under threads: adaptors in every order, exact counts over an
 * upstream that gives an address out again at once, and stacks whose last
 * reference goes while blocks are live. Field cases F1, F5, G6.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <cucoremr/cucoremr.h>

#include "tests/stress/crew.h"
#include "tests/support/api.h"
#include "tests/support/puppet.h"
#include "tests/support/tap.h"

#define THREADS 8
#define ROUNDS 400
#define KEPT 8

static puppet below;
static ccmr_resource *top;
static atomic_uint_fast64_t taken;

static int sink(void *context, const char *rows, size_t length)
{
    (void)context;
    (void)rows;
    (void)length;
    return 0;
}

static ccmr_resource *put_on(char kind, ccmr_resource *upstream)
{
    const ccmr_logging_options options = {.size = sizeof(options),
                                          .sink = sink};
    ccmr_resource *made = NULL;
    ccmr_status status;

    switch (kind) {
    case 'l':
        status = ccmr_limiting_create(upstream, 1 << 24, &made);
        break;
    case 'g':
        status = ccmr_logging_create(upstream, &options, &made);
        break;
    default:
        status = ccmr_stream_ordered_create(upstream, NULL, &made);
        break;
    }
    if (status != CCMR_SUCCESS) {
        tap_bail_out("%s", ccmr_last_error()->message);
    }
    ccmr_resource_release(upstream);
    return made;
}

/* The last letter is on top. */
static void build(const char *kinds)
{
    puppet_init(&below);
    below.device = 0;
    top = puppet_resource(&below);
    for (; *kinds != '\0'; kinds++) {
        top = put_on(*kinds, top);
    }
    atomic_store(&taken, 0);
}

static void *take(size_t bytes)
{
    void *ptr = NULL;

    if (ccmr_resource_allocate(top, bytes, 0, CCMR_STREAM_LEGACY, &ptr) ==
        CCMR_SUCCESS) {
        atomic_fetch_add(&taken, 1);
    } else {
        crew_fault(ccmr_last_error()->message);
    }
    return ptr;
}

static void give(void *ptr, size_t bytes)
{
    CREW_CHECK(ccmr_resource_deallocate(top, ptr, bytes, 0,
                                        CCMR_STREAM_LEGACY) == CCMR_SUCCESS);
}

/* ---- every order ------------------------------------------------------------- */

static void work(crew_member *self)
{
    void *ptrs[KEPT] = {NULL};
    size_t sizes[KEPT] = {0};
    int i;

    for (i = 0; i < ROUNDS; i++) {
        uint32_t at = crew_random(self, KEPT);

        if (ptrs[at] != NULL) {
            give(ptrs[at], sizes[at]);
            ptrs[at] = NULL;
        } else {
            sizes[at] = 1 + crew_random(self, 3000);
            ptrs[at] = take(sizes[at]);
        }
    }
    for (i = 0; i < KEPT; i++) {
        if (ptrs[i] != NULL) {
            give(ptrs[i], sizes[i]);
        }
    }
}

static void test_order(const char *kinds)
{
    ccmr_stats stats = {.size = sizeof(stats)};
    ccmr_resource *resource;
    size_t good = 0;
    size_t levels = 0;

    build(kinds);
    crew_run(THREADS, work, NULL);
    tap_is_int(crew_faults(), 0, "%s: nothing went wrong", kinds);
    tap_ok(ccmr_resource_stats(top, &stats) == CCMR_SUCCESS &&
               stats.allocations == atomic_load(&taken) &&
               stats.deallocations == stats.allocations &&
               stats.live_bytes == 0 && stats.failures == 0,
           "%s: the counts are exact", kinds);
    for (resource = top; resource != NULL; levels++) {
        ccmr_resource *next = NULL;

        good += ccmr_resource_audit(resource) == CCMR_SUCCESS;
        if (ccmr_resource_upstream(resource, 0, &next) != CCMR_SUCCESS) {
            next = NULL;
        }
        resource = next;
    }
    tap_is_size(good, levels, "%s: every level agrees with itself", kinds);
    ccmr_resource_release(top);
    tap_ok(puppet_clear(&below), "%s: nothing is left", kinds);
}

/* ---- the last reference goes --------------------------------------------------- */

static pthread_barrier_t ready;

/* All have blocks; one lets the stack go; all free. */
static void drain(crew_member *self)
{
    void *ptrs[KEPT];
    int i;

    for (i = 0; i < KEPT; i++) {
        ptrs[i] = take(100);
    }
    (void)pthread_barrier_wait(&ready);
    if (self->index == 0) {
        ccmr_resource_release(top);
    }
    for (i = 0; i < KEPT; i++) {
        give(ptrs[i], 100);
    }
}

static void test_drain(const char *kinds)
{
    int faults = 0;
    int left = 0;
    int i;

    (void)pthread_barrier_init(&ready, NULL, 4);
    for (i = 0; i < 30; i++) {
        build(kinds);
        crew_run(4, drain, NULL);
        faults += crew_faults();
        left += !puppet_clear(&below);
    }
    (void)pthread_barrier_destroy(&ready);
    tap_is_int(faults, 0, "%s: freed while it is let go", kinds);
    tap_is_int(left, 0, "%s: destroyed once, and nothing is left", kinds);
}

/* ---- references come and go ------------------------------------------------------ */

static void borrow(crew_member *self)
{
    int i;

    for (i = 0; i < ROUNDS; i++) {
        ccmr_resource *mine = ccmr_resource_retain(top);
        ccmr_buffer *buffer;

        if (ccmr_buffer_create(mine, 1 + crew_random(self, 2000), NULL,
                               CCMR_STREAM_LEGACY, &buffer) != CCMR_SUCCESS) {
            crew_fault(ccmr_last_error()->message);
        }
        ccmr_resource_release(mine);
        CREW_CHECK(ccmr_buffer_destroy(buffer) == CCMR_SUCCESS);
    }
}

static void test_references(void)
{
    build("olg");
    crew_run(THREADS, borrow, NULL);
    tap_is_int(crew_faults(), 0, "references and buffers come and go");
    ccmr_resource_release(top);
    tap_ok(puppet_clear(&below), "nothing is left of them");
}

int main(void)
{
    static const char *const orders[] = {"",    "l",   "g",   "o",   "lgo",
                                         "log", "glo", "gol", "olg", "ogl"};
    size_t i;

    (void)api_simulator();
    for (i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        test_order(orders[i]);
    }
    for (i = 1; i < sizeof(orders) / sizeof(orders[0]); i++) {
        test_drain(orders[i]);
    }
    test_references();
    (void)simulator->reset(NULL);
    return tap_finish();
}
