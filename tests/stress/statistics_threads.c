/* SPDX-License-Identifier: Apache-2.0 */
/*
 * statistics under threads: sums are exact, readings are of one moment, peaks
 * are within their error. Field cases F1, J5.
 */
#include <sched.h>
#include <stdatomic.h>

#include <cucoremr/cucoremr.h>

#include "tests/stress/crew.h"
#include "tests/support/puppet.h"
#include "tests/support/tap.h"

#define LEGACY CCMR_STREAM_LEGACY
#define ROUNDS 3000
#define SLOTS 40

static puppet below;
static ccmr_resource *upstream;
static ccmr_resource *counted;

static void set_up(ccmr_statistics_peaks peaks)
{
    const ccmr_statistics_options options = {.size = sizeof(options),
                                             .peaks = peaks};

    puppet_init(&below);
    below.yields = 1;
    upstream = puppet_resource(&below);
    if (ccmr_statistics_create(upstream, &options, &counted) != CCMR_SUCCESS) {
        tap_bail_out("%s", ccmr_last_error()->message);
    }
}

static ccmr_statistics figures(void)
{
    ccmr_statistics now = {.size = sizeof(now)};

    CREW_CHECK(ccmr_statistics_read(counted, &now) == CCMR_SUCCESS);
    return now;
}

static void tear_down(const char *what)
{
    ccmr_statistics now = figures();

    tap_is_int(crew_faults(), 0, "%s: nothing went wrong", what);
    tap_ok(ccmr_resource_audit(counted) == CCMR_SUCCESS, "%s: audit", what);
    tap_is_int(now.live_bytes, 0, "%s: nothing is live", what);
    tap_is_size(now.allocations, below.allocations - below.failures,
                "%s: each allocation was counted", what);
    tap_is_size(now.failures_device, below.failures,
                "%s: each failure was counted", what);
    ccmr_resource_release(counted);
    ccmr_resource_release(upstream);
    tap_ok(puppet_clear(&below), "%s: nothing is left", what);
}

/* Every block has one size, so that a reading of one moment has live bytes of
 * so many blocks, and its bins add up. */
#define ONE 48

static void live(crew_member *self)
{
    void *blocks[SLOTS] = {NULL};
    int i;

    for (i = 0; i < ROUNDS + SLOTS; i++) {
        uint32_t at = crew_random(self, SLOTS);

        if (i >= ROUNDS) {
            at = (uint32_t)(i - ROUNDS);
        }
        if (blocks[at] != NULL) {
            CREW_CHECK(ccmr_resource_deallocate(counted, blocks[at], ONE, 0,
                                                LEGACY) == CCMR_SUCCESS);
            blocks[at] = NULL;
        } else if (i < ROUNDS) {
            (void)ccmr_resource_allocate(counted, ONE, 0, LEGACY, &blocks[at]);
        }
    }
}

static void check_moment(void)
{
    ccmr_statistics now = figures();

    CREW_CHECK(now.live_bytes == now.live_blocks * ONE);
    CREW_CHECK(now.allocated_bytes == now.allocations * ONE);
    CREW_CHECK(now.sizes[6] == now.allocations);
    CREW_CHECK(now.live_bytes >= 0);
    CREW_CHECK(now.peak_live_bytes >= now.live_bytes);
}

static void live_or_read(crew_member *self)
{
    int i;

    if (self->index != 0) {
        live(self);
        return;
    }
    for (i = 0; i < 300; i++) {
        ccmr_statistics scope = {.size = sizeof(scope)};

        check_moment();
        CREW_CHECK(ccmr_statistics_push(counted) == CCMR_SUCCESS);
        (void)sched_yield();
        CREW_CHECK(ccmr_statistics_pop(counted, &scope) == CCMR_SUCCESS);
        CREW_CHECK(scope.live_bytes == scope.live_blocks * ONE);
        CREW_CHECK(scope.peak_live_bytes >= scope.live_bytes);
    }
}

static void test_readings(ccmr_statistics_peaks peaks, const char *what)
{
    set_up(peaks);
    below.capacity = (size_t)ONE * SLOTS * 2;
    crew_run(7, live_or_read, NULL);
    tap_ok(below.failures > 0, "%s: the upstream was full at times", what);
    tear_down(what);
}

/* All of many threads have their most at once, and nobody more. */
static pthread_barrier_t full;

static void rise(crew_member *self)
{
    void *blocks[SLOTS];
    int i;

    for (i = 0; i < SLOTS; i++) {
        CREW_CHECK(ccmr_resource_allocate(counted, 10000, 0, LEGACY,
                                          &blocks[i]) == CCMR_SUCCESS);
    }
    (void)pthread_barrier_wait(&full);
    for (i = 0; i < SLOTS; i++) {
        CREW_CHECK(ccmr_resource_deallocate(counted, blocks[i], 10000, 0,
                                            LEGACY) == CCMR_SUCCESS);
    }
    (void)self;
}

static int64_t apart(int64_t a, int64_t b)
{
    return a > b ? a - b : b - a;
}

static void test_peak(int threads, ccmr_statistics_peaks peaks)
{
    const char *what =
        peaks == CCMR_STATISTICS_PEAKS_EXACT ? "exact" : "close";
    int64_t blocks = (int64_t)threads * SLOTS;
    ccmr_statistics now;

    set_up(peaks);
    (void)pthread_barrier_init(&full, NULL, (unsigned)threads);
    crew_run(threads, rise, NULL);
    (void)pthread_barrier_destroy(&full);
    now = figures();
    tap_diag("%s, %d threads: peak %lld of %lld, error %llu", what, threads,
             (long long)now.peak_live_bytes, (long long)blocks * 10000,
             (unsigned long long)now.peak_error_bytes);
    tap_ok(apart(now.peak_live_bytes, blocks * 10000) <=
               (int64_t)now.peak_error_bytes,
           "%s peak of bytes, %d threads", what, threads);
    tap_ok(apart(now.peak_live_blocks, blocks) <=
               (int64_t)now.peak_error_blocks,
           "%s peak of blocks, %d threads", what, threads);
    if (peaks == CCMR_STATISTICS_PEAKS_EXACT) {
        tap_ok(now.peak_error_bytes == 0 && now.peak_error_blocks == 0,
               "an exact peak says so");
    } else {
        tap_ok(now.peak_error_bytes <=
                   (uint64_t)blocks * 10000 / 32 + (uint64_t)threads * 4096,
               "the error is small");
    }
    tear_down(what);
}

int main(void)
{
    test_readings(CCMR_STATISTICS_PEAKS_CLOSE, "readings");
    test_readings(CCMR_STATISTICS_PEAKS_EXACT, "readings, exact");
    test_peak(8, CCMR_STATISTICS_PEAKS_CLOSE);
    test_peak(8, CCMR_STATISTICS_PEAKS_EXACT);
    test_peak(80, CCMR_STATISTICS_PEAKS_CLOSE); /* some share a slot */
    test_peak(80, CCMR_STATISTICS_PEAKS_EXACT);
    return tap_finish();
}
