/* SPDX-License-Identifier: Apache-2.0 */
/* Between hands.c and hands_report.c. */
#ifndef SIM_HANDS_H
#define SIM_HANDS_H

#include "sim/shadow.h"
#include "sim/state.h"

/** Something done to a range, and by whom. */
struct sim_touch {
    uintptr_t address;   /**< of the range's first byte */
    uint64_t start, end; /**< its keys */
    ccmr_sim_party now;
    const struct sim_stream *stream; /**< NULL: the host */
};

/** It meets a span, and a use of that which it should not: tell a hazard. */
void sim_hands_complain(const struct sim_touch *touch,
                        const struct sim_span *span, ccmr_sim_hazard_kind kind,
                        const struct sim_use *use);

/** Work may still use memory where it is unmapped. */
void sim_hands_complain_unmapped(uintptr_t address, size_t bytes,
                                 const ccmr_sim_party *now,
                                 const ccmr_sim_party *before);

#endif
