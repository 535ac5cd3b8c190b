/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A crew: threads that run one function together.
 */
#ifndef CCMR_TESTS_STRESS_CREW_H
#define CCMR_TESTS_STRESS_CREW_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#define CREW_MOST 100

typedef struct crew_member {
    int index;     /* from 0 */
    uint32_t seed; /* of crew_random() */
    void *context;
    void (*work)(struct crew_member *self);
    pthread_barrier_t *start;
} crew_member;

/* Run `count` threads, which start at once, and wait for them. */
void crew_run(int count, void (*work)(crew_member *self), void *context);

/* A number below `bound`. */
uint32_t crew_random(crew_member *self, uint32_t bound);

/* Something went wrong in a thread; told by crew_faults(). */
void crew_fault(const char *what);

/* How many faults there were since this was asked last; prints a few. */
int crew_faults(void);

#define CREW_CHECK(condition)                                                 \
    do {                                                                      \
        if (!(condition)) {                                                   \
            crew_fault(#condition);                                           \
        }                                                                     \
    } while (0)

#endif
