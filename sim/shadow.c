/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/shadow.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static struct sim_span *root;

/* Chance of its own: the schedule's must not depend on who watches. */
static uint64_t next_priority(void)
{
    static uint64_t state = 88172645463325252u;

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* The treap: by key, and the greatest priority on top. */

static void split(struct sim_span *span, uint64_t key, struct sim_span **low,
                  struct sim_span **high)
{
    while (span != NULL) {
        if (span->start < key) {
            *low = span;
            low = &span->right;
            span = span->right;
        } else {
            *high = span;
            high = &span->left;
            span = span->left;
        }
    }
    *low = NULL;
    *high = NULL;
}

static struct sim_span *merge(struct sim_span *low, struct sim_span *high)
{
    struct sim_span *merged = NULL;
    struct sim_span **link = &merged;

    while (low != NULL && high != NULL) {
        if (low->priority > high->priority) {
            *link = low;
            link = &low->right;
            low = low->right;
        } else {
            *link = high;
            link = &high->left;
            high = high->left;
        }
    }
    *link = low != NULL ? low : high;
    return merged;
}

void sim_span_put(struct sim_span *span)
{
    struct sim_span *low, *high;

    span->left = NULL;
    span->right = NULL;
    split(root, span->start, &low, &high);
    root = merge(merge(low, span), high);
}

struct sim_span *sim_span_after(uint64_t key)
{
    struct sim_span *span = root;
    struct sim_span *best = NULL;

    while (span != NULL) {
        if (span->end > key) {
            best = span;
            span = span->left;
        } else {
            span = span->right;
        }
    }
    return best;
}

/* Spans. */

struct sim_span *sim_span_new(uint64_t start, uint64_t end,
                              enum sim_span_state state)
{
    struct sim_span *span = calloc(1, sizeof *span);

    if (span != NULL) {
        span->start = start;
        span->end = end;
        span->state = state;
        span->priority = next_priority();
    }
    return span;
}

static void drop_use(const struct sim_use *use)
{
    if (use->line != NULL) {
        sim_line_drop(use->line);
    }
}

static void hold_use(const struct sim_use *use)
{
    if (use->line != NULL) {
        sim_line_hold(use->line);
    }
}

void sim_spans_free(struct sim_span *list)
{
    while (list != NULL) {
        struct sim_span *next = list->next;

        drop_use(&list->event);
        while (list->count > 0) {
            drop_use(&list->uses[--list->count]);
        }
        free(list->uses);
        sim_spans_free(list->was);
        free(list);
        list = next;
    }
}

/* Another span with the same past. */
static struct sim_span *copy_of(const struct sim_span *span)
{
    struct sim_span *copy = sim_span_new(span->start, span->end, span->state);
    size_t i;

    if (copy == NULL) {
        return NULL;
    }
    if (span->count != 0) {
        copy->uses = malloc(span->count * sizeof *copy->uses);
        if (copy->uses == NULL) {
            free(copy);
            return NULL;
        }
        memcpy(copy->uses, span->uses, span->count * sizeof *copy->uses);
    }
    copy->count = span->count;
    copy->room = span->count;
    copy->event = span->event;
    copy->last = span->last;
    hold_use(&copy->event);
    for (i = 0; i < copy->count; i++) {
        hold_use(&copy->uses[i]);
    }
    return copy;
}

/* Let a span end at the key, and another begin there. */
static bool cut(uint64_t key)
{
    struct sim_span *span = sim_span_after(key);
    struct sim_span *upper;

    if (span == NULL || span->start >= key) {
        return true;
    }
    upper = copy_of(span);
    if (upper == NULL) {
        return false;
    }
    span->end = key;
    upper->start = key;
    sim_spans_free(span->was);
    span->was = NULL;
    sim_span_put(upper);
    return true;
}

/* A tree as a list by key, in front of `behind`. */
static struct sim_span *flatten(struct sim_span *span, struct sim_span *behind)
{
    while (span != NULL) {
        struct sim_span *lower = span->left;

        span->next = flatten(span->right, behind);
        behind = span;
        span = lower;
    }
    return behind;
}

bool sim_spans_take(uint64_t start, uint64_t end, struct sim_span **list)
{
    struct sim_span *low, *middle, *high;

    assert(start < end);
    *list = NULL;
    if (!cut(start) || !cut(end)) {
        return false;
    }
    split(root, start, &low, &high);
    split(high, end, &middle, &high);
    root = merge(low, high);
    *list = flatten(middle, NULL);
    return true;
}

struct sim_use *sim_span_use(struct sim_span *span, struct sim_line *line)
{
    size_t i;

    for (i = 0; i < span->count; i++) {
        if (span->uses[i].line == line) {
            return &span->uses[i];
        }
    }
    if (span->count == span->room) {
        size_t room = span->room != 0 ? span->room * 2 : 2;
        struct sim_use *uses = realloc(span->uses, room * sizeof *uses);

        if (uses == NULL) {
            return NULL;
        }
        span->uses = uses;
        span->room = room;
    }
    span->uses[span->count] = (struct sim_use){.line = line};
    hold_use(&span->uses[span->count]);
    return &span->uses[span->count++];
}

void sim_span_forget(struct sim_span *span, size_t i)
{
    drop_use(&span->uses[i]);
    span->uses[i] = span->uses[--span->count];
}

void sim_shadow_clear(void)
{
    struct sim_span *all = flatten(root, NULL);

    root = NULL;
    sim_spans_free(all);
}
