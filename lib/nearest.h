/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which name was meant? The one nearest to a wrong one, for messages.
 *
 *     ccmr__nearest near;
 *     ccmr__nearest_start(&near, wrong, length);
 *     ccmr__nearest_offer(&near, name, strlen(name));    for each name
 *     ... near.best, NULL if none is near ...
 */
#ifndef CCMR_LIB_NEAREST_H
#define CCMR_LIB_NEAREST_H

#include <stddef.h>

/* One search; on one thread's stack. Names must outlive it. */
typedef struct ccmr__nearest {
    const char *wrong;
    size_t length;
    const char *best;
    size_t best_length;
    unsigned distance; /* of the best */
} ccmr__nearest;

void ccmr__nearest_start(ccmr__nearest *nearest, const char *wrong,
                         size_t length);

/** A name that may have been meant. Of equals the first one stays. */
void ccmr__nearest_offer(ccmr__nearest *nearest, const char *name,
                         size_t length);

#endif /* CCMR_LIB_NEAREST_H */
