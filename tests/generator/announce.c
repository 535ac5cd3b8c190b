/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the simulator's check of order is told: where a block changes hands,
 * what the resource has been told of, what the host itself touches. It knows
 * of all else by the driver calls. What it finds is a failure.
 */
#include "tests/generator/model.h"

/* Memory that the host may touch at once is handed out to it. */
static void *receiver(const model *m, CUstream stream)
{
    return m->properties.host_accessible &&
                   m->properties.access == CCMR_ACCESS_HOST
               ? CCMR_SIM_HOST
               : (void *)stream;
}

static int is_checked(const model *m)
{
    return m->p->order && m->properties.device_accessible;
}

void announce_handed_out(const model *m, const block *b, const track *t)
{
    if (is_checked(m)) {
        (void)simulator->handed_out((uintptr_t)b->ptr, b->bytes,
                                    receiver(m, t->handle));
    }
}

void announce_freed(const model *m, const block *b, const track *t)
{
    if (is_checked(m)) {
        (void)simulator->freed((uintptr_t)b->ptr, b->bytes,
                               t != NULL ? (void *)t->handle : CCMR_SIM_HOST);
    }
}

void announce_not_freed(const model *m, const block *b)
{
    if (is_checked(m)) {
        (void)simulator->not_freed((uintptr_t)b->ptr, b->bytes);
    }
}

void announce_noted(const model *m, const block *b, const track *t,
                    int until_free)
{
    if (is_checked(m)) {
        (void)simulator->noted((uintptr_t)b->ptr, b->bytes, t->handle,
                               until_free);
    }
}

void announce_touched(const model *m, const block *b)
{
    if (is_checked(m)) {
        (void)simulator->used((uintptr_t)b->ptr, b->bytes, CCMR_SIM_HOST);
    }
}

void hazards_check(void)
{
    ccmr_sim_hazard hazard = {.size = sizeof(hazard)};

    if (simulator->hazards() != 0) {
        (void)simulator->hazard_read(0, &hazard);
        fail(FAULT_ORDER, "%s", hazard.text);
    }
}
