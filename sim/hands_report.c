/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong with a change of hands, for people and for programs. */
#include "sim/hands.h"

#include <stdio.h>
#include <string.h>

#include "sim/hazard.h"

/* What is done to the memory. */
static const char *verb_of(ccmr_sim_hazard_kind kind)
{
    switch (kind) {
    case CCMR_SIM_HANDED_OUT_EARLY:
    case CCMR_SIM_HANDED_OUT_TWICE:
        return "are handed out";
    case CCMR_SIM_USED_EARLY:
    case CCMR_SIM_USED_FREED:
        return "are used";
    case CCMR_SIM_TAKEN_AWAY:
        return "go back to the driver";
    case CCMR_SIM_UNMAPPED_EARLY:
        return "are unmapped";
    case CCMR_SIM_FREED_EARLY:
    case CCMR_SIM_FREED_TWICE:
    case CCMR_SIM_POOL_DESTROYED_EARLY:
    default:
        return "are freed";
    }
}

/* What happened to it before. */
static const char *past_of(const struct sim_span *span,
                           const struct sim_use *use)
{
    if (use != &span->event) {
        return "are in use";
    }
    switch (span->state) {
    case SIM_SPAN_BLOCK:
        return "belong to a block that was handed out";
    case SIM_SPAN_FREED:
        return "were freed";
    case SIM_SPAN_GIVEN:
    default:
        return "came from the driver";
    }
}

/* How, where and by whom; a test's word for it is the verb already. */
static void describe(char *text, size_t room, const ccmr_sim_party *party)
{
    const bool by_call = strncmp(party->call, "cu", 2) == 0;
    char where[64] = " by the host";

    if (party->stream_id != 0) {
        (void)snprintf(where, sizeof where,
                       " on stream id %llu, operation %llu",
                       (unsigned long long)party->stream_id,
                       (unsigned long long)party->position);
    }
    (void)snprintf(text, room, "%s%s%s (thread %llu, call %llu)",
                   by_call ? " by " : "", by_call ? party->call : "", where,
                   (unsigned long long)party->thread,
                   (unsigned long long)party->sequence);
}

static void describe_gap(char *text, size_t room, const ccmr_sim_hazard *found)
{
    const ccmr_sim_party *before = &found->before;
    const ccmr_sim_party *now = &found->now;

    text[0] = '\0';
    if (found->kind != CCMR_SIM_HANDED_OUT_EARLY &&
        found->kind != CCMR_SIM_UNMAPPED_EARLY &&
        found->kind != CCMR_SIM_USED_EARLY &&
        found->kind != CCMR_SIM_FREED_EARLY) {
        return;
    }
    if (now->stream_id == 0) {
        (void)snprintf(text, room,
                       ": the host has not waited for stream id %llu up to "
                       "operation %llu",
                       (unsigned long long)before->stream_id,
                       (unsigned long long)before->position);
        return;
    }
    (void)snprintf(text, room,
                   ": no wait leads from stream id %llu, operation %llu, to "
                   "stream id %llu",
                   (unsigned long long)before->stream_id,
                   (unsigned long long)before->position,
                   (unsigned long long)now->stream_id);
}

void sim_hands_complain(const struct sim_touch *touch,
                        const struct sim_span *span, ccmr_sim_hazard_kind kind,
                        const struct sim_use *use)
{
    uint64_t low = span->start > touch->start ? span->start : touch->start;
    uint64_t high = span->end < touch->end ? span->end : touch->end;
    ccmr_sim_hazard hazard = {
        .kind = kind,
        .address = touch->address + (low - touch->start),
        .bytes = high - low,
        .now = touch->now,
        .before = use->party,
    };
    char now[128], before[128], gap[128];
    char last[160] = "";

    describe(now, sizeof now, &hazard.now);
    describe(before, sizeof before, &hazard.before);
    describe_gap(gap, sizeof gap, &hazard);
    if (use == &span->event && span->last.call != NULL) {
        char text[128];

        describe(text, sizeof text, &span->last);
        (void)snprintf(last, sizeof last, ", last used%s", text);
    }
    sim_hazard_report(&hazard, "%llu bytes at %#llx %s%s, but %s%s%s%s",
                      (unsigned long long)hazard.bytes,
                      (unsigned long long)hazard.address, verb_of(kind), now,
                      past_of(span, use), before, last, gap);
}

void sim_hands_complain_unmapped(uintptr_t address, size_t bytes,
                                 const ccmr_sim_party *now,
                                 const ccmr_sim_party *before)
{
    ccmr_sim_hazard hazard = {
        .kind = CCMR_SIM_UNMAPPED_EARLY,
        .address = address,
        .bytes = bytes,
        .now = *now,
        .before = *before,
    };
    char how[128], gap[128];

    describe(how, sizeof how, now);
    describe_gap(gap, sizeof gap, &hazard);
    sim_hazard_report(&hazard, "%llu bytes at %#llx %s%s, but are in use%s",
                      (unsigned long long)bytes, (unsigned long long)address,
                      verb_of(hazard.kind), how, gap);
}
