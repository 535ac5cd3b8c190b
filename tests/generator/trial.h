/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program is tried in a process of its own, which starts from nothing: a
 * program that fails does so alone, and may crash or hang.
 */
#ifndef CCMR_TESTS_GENERATOR_TRIAL_H
#define CCMR_TESTS_GENERATOR_TRIAL_H

#include "tests/generator/program.h"
#include "tests/generator/report.h"

#define TRIAL_SAID 2000

typedef struct trial {
    fault_class fault;
    unsigned op; /* that was executed last, or OP_FINISH */
    char text[1536];
    char said[TRIAL_SAID]; /* the first of what it wrote to standard error */
    uint64_t done;
    uint64_t left_out;
    uint64_t allocations;
    uint64_t checks;
} trial;

/* Load what every trial needs; 0, or -1 with a reason. */
int trial_prepare(const char **reason);

/* Seconds that one may take. (20) */
extern unsigned trial_limit;

/* Returns whether all went well. */
int trial_run(const program *p, trial *t);

/* Has the library all kinds that are named in a stack without braces? */
int trial_knows(const char *stack);

const char *fault_name(fault_class fault);

#endif
