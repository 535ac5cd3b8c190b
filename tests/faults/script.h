/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One life of a stack, call by call, that goes on whatever fails: the ground
 * on which the fault tests let things fail one at a time.
 */
#ifndef CCMR_TESTS_FAULTS_SCRIPT_H
#define CCMR_TESTS_FAULTS_SCRIPT_H

#include <cucoremr/cucoremr.h>

#include "tests/support/api.h"

typedef struct script {
    const char *stack;
    /* Called after each step with what it answered; may be NULL. */
    void (*after)(struct script *s, const char *step, ccmr_status status);
    void *context; /* for `after` */
    /* Out: */
    unsigned steps;
    unsigned failures; /* steps that failed */
    int stuck;         /* something was refused twice and could not go */
    ccmr_status first; /* the first failure's status */
    char first_step[64];
} script;

/* Streams and context, once; the driver is ready. */
void script_prepare(void);
void script_end(void);

/* The stacks that fault tests run on, ended by NULL. */
extern const char *const script_stacks[];

/* Runs it on the calling thread. */
void script_run(script *s);

#endif
