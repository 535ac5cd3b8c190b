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

/* Field cases behind the mistakes, and a stack on which they
   show: what follows `subpool fault=...` in its text. */
static const struct {
    pool_fault fault;
    const char *cases;
    const char *stack;
    int free_running;
    int patient;
    unsigned threads; /* 0: by chance */
    fault_class by;   /* which check finds it */
    int of_order;     /* the check of order does, too */
} plantings[] = {
    {POOL_FAULT_rest, "A1", "| device_pool", 0, 0, 0, FAULT_CONTENTS, 1},
    {POOL_FAULT_merge, "A1", "| device_pool", 0, 0, 0, FAULT_CONTENTS, 1},
    {POOL_FAULT_stream, "A2, B7", "| device_pool", 0, 0, 0, FAULT_CONTENTS, 1},
    {POOL_FAULT_note, "A2", "| device_pool", 0, 0, 0, FAULT_CONTENTS, 1},
    {POOL_FAULT_held, "A2", "| device_pool", 0, 0, 0, FAULT_CONTENTS, 1},
    {POOL_FAULT_trim, "A5, A7, I14",
     "segment=256 | limiting bytes=16KiB | subpool | device_plain", 0, 0, 0,
     FAULT_CONTENTS, 1},
    {POOL_FAULT_handle, "B2", "| device_pool", 0, 0, 0, FAULT_CONTENTS, 1},
    {POOL_FAULT_late, "B3", "| device_pool", 0, 0, 0, FAULT_CRASH, 1},
    {POOL_FAULT_kept, "B4", "| device_pool", 0, 0, 0, FAULT_CRASH, 1},
    {POOL_FAULT_context, "B6", "| device_pool", 0, 0, 3, FAULT_CONTENTS, 1},
    {POOL_FAULT_token, "C1", "| device_pool", 0, 0, 3, FAULT_CONTENTS, 1},
    {POOL_FAULT_thread, "C3", "| device_pool", 0, 0, 3, FAULT_CONTENTS, 1},
    {POOL_FAULT_reclaim, "C4",
     "segment=256 | limiting bytes=16KiB | subpool | device_plain", 0, 0, 3,
     FAULT_CONTENTS, 1},
    {POOL_FAULT_capture, "D1", "| device_pool", 0, 0, 0, FAULT_CAPTURE, 0},
    {POOL_FAULT_capturing, "D2", "| device_pool", 0, 0, 0, FAULT_STATUS, 0},
    {POOL_FAULT_erase, "F1", "| device_pool", 1, 0, 0, FAULT_STATUS, 0},
    {POOL_FAULT_lost, "F4", "| device_pool", 1, 0, 0, FAULT_LEFT, 0},
    {POOL_FAULT_exit, "G1", "| device_pool", 0, 0, 0, FAULT_CRASH, 0},
    {POOL_FAULT_forked, "G5", "| device_pool", 0, 0, 0, FAULT_STATUS, 0},
    {POOL_FAULT_live, "G6", "segment=16KiB | device_pool", 0, 0, 0,
     FAULT_STATUS, 0},
    {POOL_FAULT_full, "I5",
     "segment=256 | limiting bytes=24KiB | device_plain", 0, 1, 0,
     FAULT_STATUS, 0},
    {POOL_FAULT_told, "I10", "segment=16KiB | device_plain", 0, 0, 0,
     FAULT_FIGURES, 0},
    {POOL_FAULT_hoard, "N6", "segment=16KiB | device_plain", 0, 0, 0,
     FAULT_FIGURES, 0},
    {POOL_FAULT_greedy, "I1",
     "segment=256 | limiting bytes=24KiB | device_plain", 0, 1, 0,
     FAULT_STATUS, 0},
    {POOL_FAULT_host, "N9", "| legacy_pinned", 0, 0, 0, FAULT_CONTENTS, 1},
    {POOL_FAULT_left, "E3",
     "segment=256 | limiting bytes=24KiB | device_plain", 0, 0, 0, FAULT_STATE,
     0},
    {POOL_FAULT_refused, "the contract's rule 13", "| device_pool", 0, 0, 0,
     FAULT_STATUS, 0},
    {POOL_FAULT_size, "J3", "| device_pool", 0, 0, 0, FAULT_OVERLAP, 0},
};
#define PLANTINGS (sizeof(plantings) / sizeof(plantings[0]))

/* What all runs of one call have in common. */
typedef struct hunt {
    program *p;
    size_t i; /* of plantings */
    unsigned operations;
    int order;
    trial t; /* of the last run */
} hunt;

static int run(hunt *h, pool_fault fault, unsigned seed)
{
    program *p = h->p;

    memset(p, 0, sizeof(*p));
    (void)snprintf(p->stack, sizeof(p->stack), "subpool fault=%s %s",
                   pool_fault_name(fault), plantings[h->i].stack);
    p->free_running = plantings[h->i].free_running;
    p->patient = plantings[h->i].patient;
    p->threads = plantings[h->i].threads;
    p->order = h->order;
    program_make(p, seed, h->operations);
    return trial_run(p, &h->t);
}

/* Did the check find it that should? Threads that run freely meet what comes
   first. */
static int is_way(const hunt *h)
{
    fault_class fault = h->t.fault;

    return fault == plantings[h->i].by ||
           (h->order && plantings[h->i].of_order && fault == FAULT_ORDER) ||
           (plantings[h->i].free_running && fault != FAULT_PROGRAM &&
            fault != FAULT_HANG);
}

/* The seed that shows it, in the way it should or in any; or 0. */
static unsigned search(hunt *h, pool_fault fault, unsigned most, int any)
{
    unsigned seed;

    for (seed = 1; seed <= most; seed++) {
        if (!run(h, fault, seed) && (any || is_way(h))) {
            return seed;
        }
    }
    return 0;
}

/* How many seeds show it: what a change of the programs is good for. */
static void count(hunt *h, unsigned seeds)
{
    unsigned ways[FAULT_CLASSES] = {0};
    unsigned found = 0;
    unsigned seed;
    unsigned way;

    for (seed = 1; seed <= seeds; seed++) {
        if (!run(h, plantings[h->i].fault, seed)) {
            found++;
            ways[h->t.fault]++;
        }
    }
    tap_ok(found > 0, "%s: found by %u of %u seeds",
           pool_fault_name(plantings[h->i].fault), found, seeds);
    for (way = 0; way < FAULT_CLASSES; way++) {
        if (ways[way] != 0) {
            tap_diag("%u %s", ways[way], fault_name((fault_class)way));
        }
    }
}

static unsigned find(hunt *h, int order, const char *how)
{
    const char *name = pool_fault_name(plantings[h->i].fault);
    unsigned seed;

    h->order = order;
    seed = search(h, plantings[h->i].fault, BOUND, 0);
    if (!tap_ok(seed != 0, "%s (%s): %s: found%s by seed %u, %s", name,
                plantings[h->i].cases, pool_fault_text(plantings[h->i].fault),
                how, seed, fault_name(h->t.fault))) {
        tap_diag("%s: %s", fault_name(h->t.fault), h->t.text);
    }
    return seed;
}

static void find_all(hunt *h)
{
    unsigned most = find(h, 0, "");
    unsigned seed;

    if (plantings[h->i].of_order) {
        seed = find(h, 1, " by order");
        most = seed > most ? seed : most;
    }
    /* Without the mistake these seeds and some more find nothing. */
    h->order = -1;
    seed = search(h, POOL_FAULT_none, most + 20, 1);
    if (!tap_ok(seed == 0, "%s: and nothing without it",
                pool_fault_name(plantings[h->i].fault))) {
        tap_diag("seed %u, operation %u: %s: %s\n%s", seed, h->t.op + 1,
                 fault_name(h->t.fault), h->t.text, h->t.said);
    }
}

void planted_run(const char *only, unsigned operations, int order,
                 unsigned seeds)
{
    hunt h = {malloc(sizeof(program)), 0, operations, order, {.op = 0}};

    if (h.p == NULL) {
        tap_bail_out("no memory");
    }
    for (; h.i < PLANTINGS; h.i++) {
        if (only != NULL &&
            strcmp(only, pool_fault_name(plantings[h.i].fault)) != 0) {
            continue;
        }
        if (seeds != 0) {
            count(&h, seeds);
        } else {
            find_all(&h);
        }
    }
    free(h.p);
}
