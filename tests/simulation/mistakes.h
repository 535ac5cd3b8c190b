/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small allocators that make a mistake which real ones have made, where the
 * generator's pool cannot make it: with address ranges, other processes'
 * memory, peers and graphs. Each is run in a process of its own, wrong and
 * right; the checks must find the one and nothing in the other.
 */
#ifndef TESTS_SIMULATION_MISTAKES_H
#define TESTS_SIMULATION_MISTAKES_H

#include "tests/simulation/driver.h"

/* Which check finds it. */
enum check {
    CHECK_NONE,
    CHECK_STATUS,   /* an answer that nobody should get */
    CHECK_CONTENTS, /* memory has not what its owner wrote */
    CHECK_ORDER,    /* the simulator's check of order */
    CHECK_FIGURES,  /* what an allocator tells of itself */
    CHECK_LEFT,     /* something is alive at the end */
    CHECK_CRASH,
    CHECKS
};

struct mistake {
    const char *name;
    const char *cases; /* tests/field-cases.md */
    const char *text;  /* what is done wrong */
    void (*run)(bool wrong);
    enum check found_by;
};

/* Ended by a NULL name. */
extern const struct mistake mistakes_late[];
extern const struct mistake mistakes_ranges[];
extern const struct mistake mistakes_sharing[];

/* Another process: this program with that argument. */
#define EXPORTER "--export"
int mistakes_export(void);

/* A check has found something: the process ends. */
_Noreturn void found(enum check by, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* A call that may not fail. */
void must(CUresult got, const char *call);
#define MUST(call) must((call), #call)
/* The memory has this byte all over. */
void holds(CUdeviceptr address, size_t bytes, unsigned char byte);

#endif
