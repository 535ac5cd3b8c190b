/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a stream comes after.
 *
 * A stream that waited for another one's event is behind everything that was
 * freed there until the event was recorded, and stays so: no second wait is
 * needed for any of it. So memory that lies in the other lane can be taken
 * with no call of the driver, and what waits for many lanes can be made to
 * wait for the one that is behind them all.
 *
 * Threads: a lane's orders are under its lock; they are written once the wait
 * is in the stream, so that whoever reads them enqueues behind it.
 */
#include "resources/pool/lane.h"

int ccmr__pool_is_after(const ccmr__pool_orders *after,
                        const ccmr__pool_lane *lane, uint64_t number)
{
    unsigned i;

    for (i = 0; i < after->count; i++) {
        if (after->lanes[i] == lane) {
            return number <= after->numbers[i];
        }
    }
    return 0;
}

/* Where a lane is, or a place for it: what is forgotten costs a wait. */
static unsigned place_of(ccmr__pool_orders *after, const ccmr__pool_lane *lane)
{
    unsigned i = 0;

    while (i < after->count && after->lanes[i] != lane) {
        i++;
    }
    if (i == CCMR__POOL_ORDERS) {
        i = after->next;
        after->next = (i + 1) % CCMR__POOL_ORDERS;
        after->numbers[i] = 0;
    } else if (i == after->count) {
        after->count++;
        after->numbers[i] = 0;
    }
    return i;
}

void ccmr__pool_note_after(ccmr__pool_lane *own, ccmr__pool_lane *lane,
                           uint64_t number)
{
    unsigned i;

    ccmr__pool_lane_lock(own);
    i = place_of(&own->after, lane);
    own->after.lanes[i] = lane;
    if (own->after.numbers[i] < number) {
        own->after.numbers[i] = number;
    }
    ccmr__pool_lane_unlock(own);
}

void ccmr__pool_copy_after(ccmr__pool_lane *own, ccmr__pool_orders *after)
{
    ccmr__pool_lane_lock(own);
    *after = own->after;
    ccmr__pool_lane_unlock(own);
}

int ccmr__pool_fold_waits(ccmr__pool_lane *own, ccmr__pool_waits *waits,
                          uint64_t *number)
{
    unsigned kept = 0;
    unsigned i;

    for (i = 0; i < waits->count; i++) {
        if (!ccmr__pool_is_after(&own->after, waits->lanes[i],
                                 waits->numbers[i])) {
            waits->lanes[kept] = waits->lanes[i];
            waits->numbers[kept] = waits->numbers[i];
            kept++;
        }
    }
    if (kept == waits->count) {
        return 0;
    }
    waits->count = kept;
    if (*number == 0) {
        *number = ++own->freed;
    }
    (void)ccmr__pool_waits_add(waits, own, *number);
    return 1;
}
