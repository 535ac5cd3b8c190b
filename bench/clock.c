/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/clock.h"

#include "bench/samples.h"

#define READINGS 10000

uint64_t clock_cost(void)
{
    samples times = {0};
    uint64_t before;
    summary says;

    if (!samples_reserve(&times, READINGS)) {
        return 0;
    }
    before = clock_now();
    for (unsigned i = 0; i < READINGS; i++) {
        uint64_t now = clock_now();

        samples_add(&times, now - before);
        before = now;
    }
    says = samples_summary(&times);
    samples_free(&times);
    return (uint64_t)says.p50;
}
