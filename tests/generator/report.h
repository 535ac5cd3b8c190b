/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program's process tells the one that started it: a page that both
 * have. Written by the child alone until it has ended.
 */
#ifndef CCMR_TESTS_GENERATOR_REPORT_H
#define CCMR_TESTS_GENERATOR_REPORT_H

#include <stdatomic.h>
#include <stdint.h>

/* What went wrong. */
typedef enum fault_class {
    FAULT_NONE,
    FAULT_CONTENTS, /* a block has not what its owner wrote */
    FAULT_ORDER,    /* an access that nothing orders behind an earlier one */
    FAULT_OVERLAP,  /* memory was handed out twice */
    FAULT_STATUS,   /* an answer that the contract forbids */
    FAULT_CAPTURE,  /* a capture was disturbed */
    FAULT_STATE,    /* context or capture mode were not restored */
    FAULT_FIGURES,  /* the resource's figures or audit are wrong */
    FAULT_LEFT,     /* something is left at the end */
    FAULT_DRIVER,   /* the program's own driver calls fail */
    FAULT_CRASH,    /* the process ended by a signal */
    FAULT_HANG,     /* it had to be ended */
    FAULT_PROGRAM,  /* the program cannot be run at all: no such stack */
    FAULT_CLASSES
} fault_class;

typedef struct report {
    atomic_int fault; /* fault_class; set once */
    unsigned op;      /* that was executed last, or FINISH */
    char text[1536];
    uint64_t done; /* operations */
    uint64_t left_out;
    uint64_t allocations; /* that succeeded */
    uint64_t checks;      /* comparisons */
} report;

#define OP_FINISH UINT32_MAX

/* The child's, set before it starts. */
extern report *told;

/* Tell, and end the process. From any thread; only the first is heard. */
_Noreturn void fail(fault_class fault, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
