/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shrinking, by delta debugging: parts of the program are left out as long as
 * it still fails in the same way; then its numbers are made plain.
 *
 * A shorter program has another schedule, even with the same seed, so that
 * what failed by a race may pass by chance. Each candidate is tried with some
 * schedules.
 */
#include "tests/generator/shrink.h"

#include <stdlib.h>
#include <string.h>

#define SCHEDULES 6u

typedef struct search {
    program *best;
    program *candidate;
    trial *found;
    unsigned tries; /* left */
} search;

/* Does the candidate fail as the program did? Then it is the best. */
static int take(search *s)
{
    uint64_t schedule = s->candidate->schedule;
    uint64_t other;
    trial t;

    for (other = 0; other < SCHEDULES && s->tries > 0; other++) {
        s->candidate->schedule = other == 0 ? schedule : other;
        s->tries--;
        (void)trial_run(s->candidate, &t);
        if (t.fault == s->found->fault) {
            memcpy(s->best, s->candidate, sizeof(*s->best));
            *s->found = t;
            return 1;
        }
    }
    return 0;
}

static void begin(search *s)
{
    memcpy(s->candidate, s->best, sizeof(*s->candidate));
}

/* Without operations [from, from + count). */
static int without(search *s, size_t from, size_t count)
{
    program *c = s->candidate;

    begin(s);
    memmove(&c->ops[from], &c->ops[from + count],
            (c->count - from - count) * sizeof(c->ops[0]));
    c->count -= count;
    return take(s);
}

static void shorten(search *s)
{
    size_t size = s->best->count / 2;

    while (size > 0 && s->tries > 0) {
        size_t at = s->best->count;
        int any = 0;

        while (at > 0 && s->tries > 0) { /* from the end on */
            size_t from = at > size ? at - size : 0;

            any |= without(s, from, at - from);
            at = from < s->best->count ? from : s->best->count;
        }
        if (!any || size > s->best->count) {
            size /= 2;
        }
    }
}

/* Nothing after the operation that failed matters. */
static void cut_end(search *s)
{
    if (s->found->op < s->best->count - 1) {
        (void)without(s, s->found->op + 1u,
                      s->best->count - s->found->op - 1u);
    }
}

/* ---- plainer ---------------------------------------------------------------------- */

/* All operations on fewer threads. */
static void fewer_threads(search *s)
{
    unsigned threads;
    size_t i;

    for (threads = 1; threads < s->best->threads; threads++) {
        begin(s);
        s->candidate->threads = threads;
        for (i = 0; i < s->candidate->count; i++) {
            op *o = &s->candidate->ops[i];

            o->thread = (uint8_t)(o->thread % threads);
        }
        if (take(s)) {
            return;
        }
    }
}

static void plainer_head(search *s)
{
    if (s->best->devices > 1) {
        begin(s);
        s->candidate->devices = 1;
        (void)take(s);
    }
    if (s->best->memory != 0) {
        begin(s);
        s->candidate->memory = 0;
        (void)take(s);
    }
    if (s->best->order && s->found->fault != FAULT_ORDER) {
        begin(s);
        s->candidate->order = 0;
        (void)take(s);
    }
    if (s->best->free_running) {
        begin(s);
        s->candidate->free_running = 0;
        (void)take(s);
    }
}

/* One field of one operation; 0 if it has been plain before. */
static int change(op *o, unsigned what)
{
    op before = *o;

    switch (what) {
    case 0:
        if (op_has(o->kind, 'n') && o->bytes != 0) {
            o->bytes = 4096;
        }
        break;
    case 1:
        o->alignment = 0;
        break;
    case 2:
        if (o->kind == OP_ALLOCATE) {
            o->word = AS_RAW;
        } else if (o->kind == OP_STREAM) {
            o->word = AS_PLAIN;
        }
        break;
    default:
        if (op_has(o->kind, 'k') && o->number > 1) {
            o->number = 1;
        }
        break;
    }
    return memcmp(&before, o, sizeof(before)) != 0;
}

static void plainer_operations(search *s)
{
    unsigned what;
    size_t i;

    for (i = 0; i < s->best->count; i++) {
        for (what = 0; what < 4 && s->tries > 0; what++) {
            begin(s);
            if (change(&s->candidate->ops[i], what)) {
                (void)take(s);
            }
        }
    }
}

void shrink(program *p, trial *t, unsigned tries)
{
    search s = {p, malloc(sizeof(*p)), t, tries};
    size_t before;

    if (s.candidate == NULL) {
        return;
    }
    cut_end(&s);
    do {
        before = p->count;
        shorten(&s);
        fewer_threads(&s);
    } while (p->count < before && s.tries > 0);
    plainer_head(&s);
    plainer_operations(&s);
    shorten(&s);
    free(s.candidate);
}
