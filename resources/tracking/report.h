/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is found, as text.
 */
#ifndef CCMR_RESOURCES_TRACKING_REPORT_H
#define CCMR_RESOURCES_TRACKING_REPORT_H

#include "resources/tracking/blocks.h"

typedef struct ccmr__tracking_report {
    int wanted;
    ccmr_tracking_sink sink; /* NULL: standard error */
    void *context;
} ccmr__tracking_report;

/** Set the error for a free that is refused. */
ccmr_status ccmr__tracking_fail(ccmr__verdict verdict, const void *ptr,
                                size_t bytes, size_t alignment,
                                const ccmr__record *known)
    __attribute__((cold));

/** Report it: `message`, and traces of allocation, free and now. `traces` may
 * be NULL. */
void ccmr__report_refusal(const ccmr__tracking_report *report,
                          const char *message, const ccmr__trace *traces)
    __attribute__((cold));

/** Report the blocks that are live `when`; nothing if there are none. */
void ccmr__report_blocks(const ccmr__tracking_report *report,
                         ccmr__blocks *blocks, int at_exit)
    __attribute__((cold));

#endif /* CCMR_RESOURCES_TRACKING_REPORT_H */
