/* SPDX-License-Identifier: Apache-2.0 */
/* Proof that the generator finds mistakes: those that it is given. */
#include "tests/generator/planted.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/generator/broken_pool.h"
#include "tests/generator/trial.h"
#include "tests/support/tap.h"

#define BOUND 1000u

/* Field cases (groups A to N) behind the mistakes, and a stack on which they
   show: what follows `subpool fault=...` in its text. */
static const struct {
    pool_fault fault;
    const char *cases;
    const char *stack;
    int free_running;
    int patient;
    unsigned threads; /* 0: by chance */
} plantings[] = {
    {POOL_FAULT_rest, "A1", "| device_pool", 0, 0, 0},
    {POOL_FAULT_merge, "A1", "| device_pool", 0, 0, 0},
    {POOL_FAULT_stream, "A2, B7", "| device_pool", 0, 0, 0},
    {POOL_FAULT_note, "A2", "| device_pool", 0, 0, 0},
    {POOL_FAULT_trim, "A5, A7, I14",
     "segment=256 | limiting bytes=16KiB | subpool | device_plain", 0, 0, 0},
    {POOL_FAULT_handle, "B2", "| device_pool", 0, 0, 0},
    {POOL_FAULT_late, "B3", "| device_pool", 0, 0, 0},
    {POOL_FAULT_kept, "B4", "| device_pool", 0, 0, 0},
    {POOL_FAULT_context, "B6", "| device_pool", 0, 0, 3},
    {POOL_FAULT_token, "C1", "| device_pool", 0, 0, 3},
    {POOL_FAULT_thread, "C3", "| device_pool", 0, 0, 3},
    {POOL_FAULT_reclaim, "C4",
     "segment=256 | limiting bytes=16KiB | subpool | device_plain", 0, 0, 3},
    {POOL_FAULT_capture, "D1", "| device_pool", 0, 0, 0},
    {POOL_FAULT_capturing, "D2", "| device_pool", 0, 0, 0},
    {POOL_FAULT_erase, "F1", "| device_pool", 1, 0, 0},
    {POOL_FAULT_lost, "F4", "| device_pool", 1, 0, 0},
    {POOL_FAULT_live, "G6", "segment=16KiB | device_pool", 0, 0, 0},
    {POOL_FAULT_full, "I5",
     "segment=256 | limiting bytes=24KiB | device_plain", 0, 1, 0},
    {POOL_FAULT_host, "N9", "| legacy_pinned", 0, 0, 0},
    {POOL_FAULT_left, "E", "segment=256 | limiting bytes=24KiB | device_plain",
     0, 0, 0},
    {POOL_FAULT_refused, "the contract's rule 13", "| device_pool", 0, 0, 0},
    {POOL_FAULT_size, "H", "| device_pool", 0, 0, 0},
};
#define PLANTINGS (sizeof(plantings) / sizeof(plantings[0]))

static int run(program *p, size_t i, pool_fault fault, unsigned seed,
               unsigned operations, trial *t)
{
    memset(p, 0, sizeof(*p));
    (void)snprintf(p->stack, sizeof(p->stack), "subpool fault=%s %s",
                   pool_fault_name(fault), plantings[i].stack);
    p->free_running = plantings[i].free_running;
    p->patient = plantings[i].patient;
    p->threads = plantings[i].threads;
    program_make(p, seed, operations);
    return trial_run(p, t);
}

/* The seed that shows it, or 0. */
static unsigned search(program *p, size_t i, pool_fault fault, unsigned most,
                       unsigned operations, trial *t)
{
    unsigned seed;

    for (seed = 1; seed <= most; seed++) {
        if (!run(p, i, fault, seed, operations, t)) {
            return seed;
        }
    }
    return 0;
}

/* How many seeds show it: what a change of the programs is good for. */
static void count(program *p, size_t i, unsigned seeds, unsigned operations)
{
    unsigned ways[FAULT_CLASSES] = {0};
    unsigned found = 0;
    unsigned seed;
    unsigned way;
    trial t;

    for (seed = 1; seed <= seeds; seed++) {
        if (!run(p, i, plantings[i].fault, seed, operations, &t)) {
            found++;
            ways[t.fault]++;
        }
    }
    tap_ok(found > 0, "%s: found by %u of %u seeds",
           pool_fault_name(plantings[i].fault), found, seeds);
    for (way = 0; way < FAULT_CLASSES; way++) {
        if (ways[way] != 0) {
            tap_diag("%u %s", ways[way], fault_name((fault_class)way));
        }
    }
}

static void find(program *p, size_t i, unsigned operations)
{
    const char *name = pool_fault_name(plantings[i].fault);
    trial t;
    unsigned seed = search(p, i, plantings[i].fault, BOUND, operations, &t);

    if (!tap_ok(seed != 0 && t.fault != FAULT_PROGRAM,
                "%s (%s): %s: found by seed %u, %s", name, plantings[i].cases,
                pool_fault_text(plantings[i].fault), seed,
                fault_name(t.fault))) {
        tap_diag("%s", t.text);
        return;
    }
    /* Without the mistake these seeds and some more find nothing. */
    seed = search(p, i, POOL_FAULT_none, seed + 20, operations, &t);
    if (!tap_ok(seed == 0, "%s: and nothing without it", name)) {
        tap_diag("seed %u, operation %u: %s: %s\n%s", seed, t.op + 1,
                 fault_name(t.fault), t.text, t.said);
    }
}

void planted_run(const char *only, unsigned operations, unsigned seeds)
{
    program *p = malloc(sizeof(*p));
    size_t i;

    if (p == NULL) {
        tap_bail_out("no memory");
    }
    for (i = 0; i < PLANTINGS; i++) {
        if (only == NULL ||
            strcmp(only, pool_fault_name(plantings[i].fault)) == 0) {
            if (seeds != 0) {
                count(p, i, seeds, operations);
            } else {
                find(p, i, operations);
            }
        }
    }
    free(p);
}
