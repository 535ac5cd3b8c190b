/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/stress/crew.h"

#include <stdatomic.h>

#include "tests/support/tap.h"

static atomic_int faults;

static void *run(void *argument)
{
    crew_member *self = argument;

    (void)pthread_barrier_wait(self->start);
    self->work(self);
    return NULL;
}

void crew_run(int count, void (*work)(crew_member *self), void *context)
{
    static crew_member members[CREW_MOST];
    pthread_t threads[CREW_MOST];
    pthread_barrier_t start;
    int i;

    (void)pthread_barrier_init(&start, NULL, (unsigned)count);
    for (i = 0; i < count; i++) {
        members[i] = (crew_member){
            .index = i,
            .seed = (uint32_t)i * 7919u + 1u,
            .context = context,
            .work = work,
            .start = &start,
        };
        if (pthread_create(&threads[i], NULL, run, &members[i]) != 0) {
            tap_bail_out("no thread %d", i);
        }
    }
    for (i = 0; i < count; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    (void)pthread_barrier_destroy(&start);
}

uint32_t crew_random(crew_member *self, uint32_t bound)
{
    self->seed = self->seed * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)self->seed * bound >> 32);
}

void crew_fault(const char *what)
{
    if (atomic_fetch_add(&faults, 1) < 5) {
        tap_diag("wrong: %s", what);
    }
}

int crew_faults(void)
{
    return atomic_exchange(&faults, 0);
}
