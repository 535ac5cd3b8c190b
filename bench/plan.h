/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is to be run: operations prepared beforehand, the same for all
 * contenders.
 */
#ifndef CCMR_BENCH_PLAN_H
#define CCMR_BENCH_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/trace.h"

/* One allocation or free, as the timed loop reads it: 16 bytes. */
typedef struct op {
    uint64_t bytes;
    uint32_t block;  /* where the pointer is kept */
    uint16_t stream; /* index of the plan's streams */
    uint16_t free;   /* 1: a free */
} op;

/*
 * What one thread does:
 *
 *   ops   | prologue | measured ...          |
 *
 * The prologue allocates what is live all the time. Blocks that are live at
 * the end are freed by whoever runs this; none of that is timed.
 */
typedef struct sequence {
    op *ops;
    size_t count; /* of all */
    size_t prologue;
    size_t blocks; /* places that the operations name */
} sequence;

/* Consecutive operations of one thread, in a log of several. */
typedef struct turn {
    uint32_t lane;
    uint32_t first; /* operation */
    uint32_t last;  /* one past the last */
} turn;

typedef struct plan {
    const char *scenario;
    char *label;        /* "256 B", "256 B to 1 MiB, 256 live", trace's name */
    const trace *trace; /* of a replay, else NULL */
    /* One sequence a thread; with turns, one sequence that all share. */
    sequence *sequences;
    size_t sequence_count;
    size_t lanes; /* threads */
    turn *turns;
    size_t turn_count;
    size_t streams;
    size_t
        null_stream; /* which of them the default stream is; SIZE_MAX: none */
    unsigned ops_per_operation; /* 2: an allocation and a free are one */
    bool whole;                 /* always all of it, however long it takes */
    size_t live;                /* all the time */
    uint64_t min_bytes;
    uint64_t max_bytes;
} plan;

/** Blocks of a size, allocated and freed at once, going round the streams,
 * beside `live` ones that stay. */
plan *plan_pairs(const char *scenario, uint64_t bytes, size_t live,
                 size_t operations, size_t streams);

/**
 * Each thread has `live` blocks on a stream of its own, frees one at random
 * and allocates another in its place; sizes are log-uniform.
 */
plan *plan_mix(const char *scenario, uint64_t min_bytes, uint64_t max_bytes,
               size_t live, size_t operations, size_t threads, uint64_t seed);

/**
 * A mix on one thread whose blocks go to streams at random; some are freed on
 * another stream than they were allocated on. Sizes are multiples of 4.
 */
plan *plan_contents(uint64_t min_bytes, uint64_t max_bytes, size_t live,
                    size_t operations, size_t streams, uint64_t seed);

typedef struct replay_options {
    const char *scenario;
    size_t streams; /* fold the logged streams onto so many; 0: don't */
    bool threads;   /* one thread for each logged one */
    bool legacy;    /* the default stream is the default stream */
} replay_options;

/** What a trace says. The trace must outlive the plan. */
plan *plan_replay(const trace *from, const replay_options *options);

void plan_free(plan *gone);

#endif /* CCMR_BENCH_PLAN_H */
