/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What free memory waits for.
 */
#include "resources/pool/extent.h"

int ccmr__pool_waits_add(ccmr__pool_waits *waits, ccmr__pool_lane *lane,
                         uint64_t number)
{
    unsigned i;

    for (i = 0; i < waits->count; i++) {
        if (waits->lanes[i] == lane) {
            if (waits->numbers[i] < number) {
                waits->numbers[i] = number;
            }
            return 1;
        }
    }
    if (i == CCMR__POOL_WAITS) {
        return 0;
    }
    waits->lanes[i] = lane;
    waits->numbers[i] = number;
    waits->count = i + 1;
    return 1;
}

/* How many of `more` are lanes that `waits` has not. */
static unsigned count_new(const ccmr__pool_waits *waits,
                          const ccmr__pool_waits *more)
{
    unsigned count = 0;
    unsigned i;

    for (i = 0; i < more->count; i++) {
        unsigned j = 0;

        while (j < waits->count && waits->lanes[j] != more->lanes[i]) {
            j++;
        }
        count += j == waits->count;
    }
    return count;
}

int ccmr__pool_waits_join(ccmr__pool_waits *waits,
                          const ccmr__pool_waits *more)
{
    unsigned i;

    if (waits->count + more->count > CCMR__POOL_WAITS &&
        waits->count + count_new(waits, more) > CCMR__POOL_WAITS) {
        return 0;
    }
    for (i = 0; i < more->count; i++) {
        (void)ccmr__pool_waits_add(waits, more->lanes[i], more->numbers[i]);
    }
    return 1;
}
