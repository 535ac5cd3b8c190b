/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cheap clock: the processor's tick counter, set by CLOCK_MONOTONIC.
 *
 * clock_gettime costs 30 to 40 ns in a virtual machine, a tick counter about
 * 10. Ticks are turned into nanoseconds by the rate that was seen since the
 * first reading, for no longer than that has been watched, and for at most
 * TICK_WINDOW; then the clock is read again. So the error stays within a part
 * in some thousands of a window that starts small: far below the microsecond
 * that a row tells. Where the counter does not run evenly (it says so itself),
 * and on other processors, every reading is the clock's.
 *
 * Threads: ccmr__tick_read() any; the rest is the owner's to serialise.
 */
#ifndef CCMR_RESOURCES_LOGGING_TICK_H
#define CCMR_RESOURCES_LOGGING_TICK_H

#include <stdint.h>
#include <time.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

typedef struct ccmr__tick {
    int even; /* the counter can be used; fixed */
    uint64_t first_ticks;
    uint64_t first_time;
    uint64_t ticks; /* the last setting */
    uint64_t time;
    uint64_t window; /* ticks that the last setting is good for */
    uint64_t rate;   /* nanoseconds a tick, times 2 to the 32 */
} ccmr__tick;

void ccmr__tick_init(ccmr__tick *tick);

/** Out of line half of ccmr__tick_time(): read the clock. */
uint64_t ccmr__tick_set(ccmr__tick *tick) __attribute__((cold));

/** Nanoseconds of CLOCK_MONOTONIC. */
static inline uint64_t ccmr__clock_now(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/** A reading, to be turned into a time soon. */
static inline uint64_t ccmr__tick_read(const ccmr__tick *tick)
{
#if defined(__x86_64__)
    if (__builtin_expect(tick->even, 1)) {
        return __rdtsc();
    }
#endif
    (void)tick;
    return ccmr__clock_now();
}

/** Nanoseconds of CLOCK_MONOTONIC at a reading. */
static inline uint64_t ccmr__tick_time(ccmr__tick *tick, uint64_t reading)
{
    uint64_t since = reading - tick->ticks;

    if (__builtin_expect(!tick->even, 0)) {
        return reading;
    }
    if (__builtin_expect(since >= tick->window, 0)) {
        return ccmr__tick_set(tick);
    }
    return tick->time + ((since * tick->rate) >> 32);
}

#endif /* CCMR_RESOURCES_LOGGING_TICK_H */
