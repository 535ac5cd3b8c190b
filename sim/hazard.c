/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/hazard.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first ones are kept: what comes later mostly follows from them. */
#define KEPT 32

static ccmr_sim_hazard kept[KEPT];
static uint64_t count;

ccmr_sim_party sim_party(const struct sim_thread *self, const char *call)
{
    ccmr_sim_party party = {
        .thread = self->serial,
        .sequence = sim.sequence,
        .call = call,
    };

    return party;
}

void sim_hazard_report(ccmr_sim_hazard *hazard, const char *format, ...)
{
    va_list arguments;

    hazard->size = sizeof *hazard;
    hazard->seed = sim.seed;
    va_start(arguments, format);
    (void)vsnprintf(hazard->text, sizeof hazard->text, format, arguments);
    va_end(arguments);
    if (count < KEPT || sim.strict) {
        fprintf(stderr, "libcucoremr-sim: hazard: %s (seed %" PRIu64 ")\n",
                hazard->text, hazard->seed);
    } else if (count == KEPT) {
        fprintf(stderr, "libcucoremr-sim: more hazards are not told\n");
    }
    fflush(stderr);
    if (sim.strict) {
        abort();
    }
    if (count < KEPT) {
        kept[count] = *hazard;
    }
    count++;
}

uint64_t sim_hazard_count(void)
{
    return count;
}

int sim_hazard_read(size_t index, ccmr_sim_hazard *hazard)
{
    size_t size;

    if (hazard == NULL || index >= KEPT || index >= count) {
        return -1;
    }
    size = hazard->size < sizeof *hazard ? hazard->size : sizeof *hazard;
    if (size < sizeof hazard->size) {
        return -1;
    }
    memcpy(hazard, &kept[index], size);
    hazard->size = size;
    return 0;
}

uint64_t sim_hazards_forget(void)
{
    uint64_t forgotten = count;

    count = 0;
    return forgotten;
}
