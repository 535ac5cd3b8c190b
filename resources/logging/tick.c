/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cheap clock's settings.
 */
#include "resources/logging/tick.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* Below 2 to the 32 ticks, so that ticks times rate fits, and short enough
 * that a clock which is slewed is followed. About 10 ms. */
#define TICK_WINDOW (UINT64_C(1) << 25)

/* CPUID 0x80000007, EDX bit 8: the counter runs at one rate, always. */
static int counter_is_even(void)
{
#if defined(__x86_64__)
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;

    return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 &&
           (d & (1u << 8)) != 0;
#else
    return 0;
#endif
}

void ccmr__tick_init(ccmr__tick *tick)
{
    *tick = (ccmr__tick){.even = counter_is_even()};
    if (tick->even) {
        tick->first_ticks = ccmr__tick_read(tick);
        tick->first_time = ccmr__clock_now();
        tick->ticks = tick->first_ticks;
        tick->time = tick->first_time;
    }
}

/*
 * The two readings are taken one after the other; what lies between (an
 * interrupt, at worst) makes the rate wrong by its part of all the time that
 * was watched.
 */
uint64_t ccmr__tick_set(ccmr__tick *tick)
{
    uint64_t ticks = ccmr__tick_read(tick);
    uint64_t now = ccmr__clock_now();
    uint64_t watched = ticks - tick->first_ticks;

    tick->ticks = ticks;
    tick->time = now;
    tick->window = 0;
    /* A counter of another processor that is behind: start again. */
    if (watched >> 63 != 0 || now < tick->first_time) {
        tick->first_ticks = ticks;
        tick->first_time = now;
        return now;
    }
    if (watched >= TICK_WINDOW / 128) {
        tick->rate = (uint64_t)((double)(now - tick->first_time) /
                                (double)watched * 4294967296.0);
        tick->window = watched < TICK_WINDOW ? watched : TICK_WINDOW;
    }
    return now;
}
