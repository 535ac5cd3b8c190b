/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans of the scenarios that make their operations up.
 */
#include "bench/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/random.h"
#include "bench/units.h"

static bool sequence_make(sequence *made, size_t prologue, size_t measured,
                          size_t blocks)
{
    size_t count;

    if (__builtin_add_overflow(prologue, measured, &count) ||
        blocks > UINT32_MAX) {
        return false;
    }
    made->ops = calloc(count, sizeof(*made->ops));
    made->count = count;
    made->prologue = prologue;
    made->blocks = blocks;
    return made->ops != NULL;
}

static plan *plan_make(const char *scenario, size_t threads)
{
    plan *made = calloc(1, sizeof(*made));

    if (made == NULL) {
        return NULL;
    }
    made->scenario = scenario;
    made->null_stream = SIZE_MAX;
    made->sequences = calloc(threads, sizeof(*made->sequences));
    if (made->sequences == NULL) {
        free(made);
        return NULL;
    }
    made->sequence_count = threads;
    made->lanes = threads;
    return made;
}

/* Blocks that stay, which come first, then pairs of the last one. */
static void pairs_fill(op *next, uint64_t bytes, size_t live,
                       size_t operations, size_t streams)
{
    for (size_t i = 0; i < live; i++) {
        *next++ = (op){.bytes = bytes,
                       .block = (uint32_t)i,
                       .stream = (uint16_t)(i % streams)};
    }
    for (size_t i = 0; i < operations; i++) {
        const op one = {.bytes = bytes,
                        .block = (uint32_t)live,
                        .stream = (uint16_t)(i % streams)};

        *next++ = one;
        *next = one;
        next++->free = 1;
    }
}

plan *plan_pairs(const char *scenario, uint64_t bytes, size_t live,
                 size_t operations, size_t streams)
{
    char size[UNITS_TEXT];
    char beside[32] = "";
    plan *made = plan_make(scenario, 1);

    if (made == NULL) {
        return NULL;
    }
    made->ops_per_operation = 2;
    made->streams = streams;
    made->live = live;
    made->min_bytes = bytes;
    made->max_bytes = bytes;
    if (live > 0) {
        (void)snprintf(beside, sizeof(beside), ", %zu live", live);
    }
    if (asprintf(&made->label, streams > 1 ? "%s%s, %zu streams" : "%s%s",
                 units_bytes(bytes, size), beside, streams) < 0) {
        made->label = NULL;
        goto err_free_plan;
    }
    if (!sequence_make(&made->sequences[0], live, 2 * operations, live + 1)) {
        goto err_free_plan;
    }
    pairs_fill(made->sequences[0].ops, bytes, live, operations, streams);
    return made;

err_free_plan:
    plan_free(made);
    return NULL;
}

/* One thread's part of a mix. */
static bool mix_fill(const plan *in, sequence *to, size_t operations,
                     uint16_t stream, uint64_t *random)
{
    uint32_t live = (uint32_t)in->live;
    uint64_t *sizes = calloc(live, sizeof(*sizes));
    op *next;

    if (sizes == NULL || !sequence_make(to, live, 2 * operations, live)) {
        free(sizes);
        return false;
    }
    next = to->ops;
    for (uint32_t i = 0; i < live; i++) {
        sizes[i] = random_log_uniform(random, in->min_bytes, in->max_bytes);
        *next++ = (op){.bytes = sizes[i], .block = i, .stream = stream};
    }
    for (size_t i = 0; i < operations; i++) {
        uint32_t at = random_below(random, live);

        *next++ =
            (op){.bytes = sizes[at], .block = at, .stream = stream, .free = 1};
        sizes[at] = random_log_uniform(random, in->min_bytes, in->max_bytes);
        *next++ = (op){.bytes = sizes[at], .block = at, .stream = stream};
    }
    free(sizes);
    return true;
}

plan *plan_mix(const char *scenario, uint64_t min_bytes, uint64_t max_bytes,
               size_t live, size_t operations, size_t threads, uint64_t seed)
{
    char least[UNITS_TEXT];
    char most[UNITS_TEXT];
    char on[UNITS_TEXT] = "";
    plan *made = plan_make(scenario, threads);
    uint64_t random = seed;

    if (made == NULL) {
        return NULL;
    }
    made->ops_per_operation = 2;
    made->streams = threads;
    made->live = live;
    made->min_bytes = min_bytes;
    made->max_bytes = max_bytes;
    if (threads > 1) {
        (void)snprintf(on, sizeof(on), ", %zu threads", threads);
    }
    if (asprintf(&made->label, "%s to %s, %zu live%s",
                 units_bytes(min_bytes, least), units_bytes(max_bytes, most),
                 live, on) < 0) {
        made->label = NULL;
        goto err_free_plan;
    }
    for (size_t i = 0; i < threads; i++) {
        if (!mix_fill(made, &made->sequences[i], operations, (uint16_t)i,
                      &random)) {
            goto err_free_plan;
        }
    }
    return made;

err_free_plan:
    plan_free(made);
    return NULL;
}

plan *plan_contents(uint64_t min_bytes, uint64_t max_bytes, size_t live,
                    size_t operations, size_t streams, uint64_t seed)
{
    plan *made =
        plan_mix("contents", min_bytes, max_bytes, live, operations, 1, seed);
    uint64_t random = seed + 1;
    char *label;
    sequence *all;

    if (made == NULL) {
        return NULL;
    }
    if (asprintf(&label, "%s, %zu streams", made->label, streams) < 0) {
        plan_free(made);
        return NULL;
    }
    free(made->label);
    made->label = label;
    made->streams = streams;
    all = &made->sequences[0];
    for (size_t i = 0; i < all->count; i++) {
        op *one = &all->ops[i];

        one->stream = (uint16_t)random_below(&random, (uint32_t)streams);
        one->bytes = (one->bytes + 3) / 4 * 4;
    }
    return made;
}

/* Who does what, in a log of several threads. */
static bool turns_make(plan *to, const trace *from)
{
    to->turns = calloc(from->count, sizeof(*to->turns));
    if (to->turns == NULL || from->count > UINT32_MAX) {
        return false;
    }
    to->lanes = from->thread_count;
    for (size_t i = 0; i < from->count; i++) {
        uint16_t thread = from->events[i].thread;

        if (i == 0 || thread != from->events[i - 1].thread) {
            to->turns[to->turn_count++] =
                (turn){.lane = thread, .first = (uint32_t)i};
        }
        to->turns[to->turn_count - 1].last = (uint32_t)(i + 1);
    }
    return true;
}

plan *plan_replay(const trace *from, const replay_options *options)
{
    plan *made = plan_make(options->scenario, 1);
    sequence *all;

    if (made == NULL) {
        return NULL;
    }
    made->ops_per_operation = 1;
    made->whole = true;
    made->trace = from;
    made->streams = from->stream_count;
    if (options->streams > 0 && options->streams < made->streams) {
        made->streams = options->streams;
    }
    for (size_t i = 0; options->legacy && i < from->stream_count; i++) {
        if (from->streams[i].kind == LOG_STREAM_NULL) {
            made->null_stream = i % made->streams;
        }
    }
    all = &made->sequences[0];
    if (asprintf(&made->label, "%s", from->name) < 0) {
        made->label = NULL;
        goto err_free_plan;
    }
    if (!sequence_make(all, 0, from->count, from->blocks)) {
        goto err_free_plan;
    }
    for (size_t i = 0; i < from->count; i++) {
        const trace_event *event = &from->events[i];

        all->ops[i] = (op){.bytes = event->bytes,
                           .block = event->block,
                           .stream = (uint16_t)(event->stream % made->streams),
                           .free = event->free};
    }
    if (options->threads && from->thread_count > 1 &&
        !turns_make(made, from)) {
        goto err_free_plan;
    }
    return made;

err_free_plan:
    plan_free(made);
    return NULL;
}

void plan_free(plan *gone)
{
    if (gone == NULL) {
        return;
    }
    for (size_t i = 0; i < gone->sequence_count; i++) {
        free(gone->sequences[i].ops);
    }
    free(gone->sequences);
    free(gone->turns);
    free(gone->label);
    free(gone);
}
