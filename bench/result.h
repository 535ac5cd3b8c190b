/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was found about one contender carrying out one plan.
 */
#ifndef CCMR_BENCH_RESULT_H
#define CCMR_BENCH_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/run.h"
#include "bench/samples.h"
#include "bench/work.h"

/* Calls of one entry point of the driver. */
typedef struct call_rate {
    const char *name;
    double per_1000; /* operations */
} call_rate;

/* Owned by whoever asked for it; what it points to lives as long as the plan
 * and the contender. */
typedef struct result {
    const plan *what;
    const char *name;  /* of the contender */
    const char *trace; /* name; NULL */
    bool registered;
    size_t threads;
    size_t streams;
    size_t operations;    /* of one pass, all threads */
    unsigned repetitions; /* that were timed; 0: no times */
    size_t failures;
    char failure[512]; /* the first, in one sentence */
    /* Whole passes: nanoseconds per operation in each thread. */
    double ns_median;
    double ns_least;
    double ns_most;
    /* Single operations, allocations, frees. */
    summary operation;
    summary allocation;
    summary free;
    call_rate *calls; /* those that were made, most frequent first */
    size_t call_count;
    bool counted;
    double calls_per_1000; /* all of them */
    uint64_t peak_live;
    uint64_t peak_reserved; /* FIGURE_UNKNOWN */
    uint64_t checked_bytes; /* contents: compared */
    work_kind work;         /* budget, grown */
    uint64_t behind;        /* WORK_BUSY on the simulated driver */
    uint64_t budget;        /* the least that was enough; 0: not found */
    unsigned tries;
    double mapping_ns; /* per operation of the counted pass */
    double waiting_ns;
    bool estimated; /* by the simulated driver: what its calls would take */
    double estimated_ns;
    timeline line;
    char *dump;    /* layout: lines of ccmr_resource_dump(); NULL */
    uint32_t at;   /* after which row */
    uint64_t live; /* then */
} result;

/** Reserved over live, 0 if it is not known. */
double result_grown(const result *of);

/** Budget over peak live bytes, 0 if there is none. */
double result_budget(const result *of);

/** Describe the first failure. */
void result_fail(result *in, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void result_free(result *gone);

#endif /* CCMR_BENCH_RESULT_H */
