/* SPDX-License-Identifier: Apache-2.0 */
/*
 * virtual from many threads at once: ranges, blocks, rights, audits.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cucoremr/cucoremr.h>

#include "lib/resource_object.h"
#include "tests/stress/crew.h"
#include "tests/support/api.h"
#include "tests/support/tap.h"

#define UNIT ((size_t)2 << 20)
#define THREADS 4
#define SLOTS 12 /* of a thread, a unit each */
#define ROUNDS 600
#define PAIRS 60

static ccmr_resource *memory;
static const ccmr_resource_ops *ops;
static void *self;
static char *range;
static atomic_int busy; /* threads that still map */

static void *peek(const void *address)
{
    return simulator->peek((uint64_t)(uintptr_t)address, 1);
}

/* What a thread has in its slots: 0, or a mark that is in the memory. */
typedef struct slots {
    char *base;
    unsigned char marks[SLOTS];
    unsigned char next;
} slots;

static void commit(slots *s, size_t at)
{
    unsigned char *byte;

    CREW_CHECK(ops->commit(self, s->base + at * UNIT, UNIT) == CCMR_SUCCESS);
    s->next = (unsigned char)(s->next % 250 + 1);
    s->marks[at] = s->next;
    byte = peek(s->base + at * UNIT);
    CREW_CHECK(byte != NULL);
    if (byte != NULL) {
        *byte = s->next;
    }
}

static void decommit(slots *s, size_t at)
{
    const unsigned char *byte = peek(s->base + at * UNIT);

    CREW_CHECK(byte != NULL && *byte == s->marks[at]);
    CREW_CHECK(ops->decommit(self, s->base + at * UNIT, UNIT) == CCMR_SUCCESS);
    s->marks[at] = 0;
}

/* From one slot to a free one: both have it for a moment. */
static void move(slots *s, size_t from, size_t to)
{
    CREW_CHECK(ops->move(self, s->base + from * UNIT, s->base + to * UNIT,
                         UNIT) == CCMR_SUCCESS);
    s->marks[to] = s->marks[from];
    decommit(s, from);
}

static void map_about(crew_member *member)
{
    slots s = {.base = range + (size_t)member->index * SLOTS * UNIT};
    size_t at;
    int i;

    for (i = 0; i < ROUNDS; i++) {
        size_t to = crew_random(member, SLOTS);

        at = crew_random(member, SLOTS);
        if (s.marks[at] == 0) {
            commit(&s, at);
        } else if (s.marks[to] == 0) {
            move(&s, at, to);
        } else {
            decommit(&s, at);
        }
    }
    for (at = 0; at < SLOTS; at++) {
        if (s.marks[at] != 0) {
            decommit(&s, at);
        }
    }
}

static void use_blocks(crew_member *member)
{
    int i;

    for (i = 0; i < ROUNDS / 2; i++) {
        size_t bytes = 1 + crew_random(member, 3 * UNIT);
        size_t more = bytes + crew_random(member, UNIT);
        void *ptr = NULL;

        CREW_CHECK(ccmr_resource_allocate(memory, bytes, 0, CCMR_STREAM_LEGACY,
                                          &ptr) == CCMR_SUCCESS);
        CREW_CHECK(ccmr_resource_grow(memory, ptr, bytes, more,
                                      CCMR_STREAM_LEGACY) == CCMR_SUCCESS);
        CREW_CHECK(ccmr_resource_deallocate(memory, ptr, more, 0,
                                            CCMR_STREAM_LEGACY) ==
                   CCMR_SUCCESS);
    }
}

static void look(crew_member *member)
{
    ccmr_stats stats = {.size = sizeof(stats)};
    int granted = 1;

    while (atomic_load(&busy) > 0) {
        CREW_CHECK(ccmr_resource_set_access(memory, 1, granted) ==
                   CCMR_SUCCESS);
        CREW_CHECK(ccmr_resource_audit(memory) == CCMR_SUCCESS);
        CREW_CHECK(ccmr_resource_stats(memory, &stats) == CCMR_SUCCESS);
        CREW_CHECK(stats.reserved_bytes <= stats.peak_reserved_bytes);
        granted = crew_random(member, 2) != 0;
    }
}

static void work(crew_member *member)
{
    if (member->index < THREADS) {
        map_about(member);
        atomic_fetch_sub(&busy, 1);
    } else if (member->index == THREADS) {
        look(member);
    } else {
        use_blocks(member);
    }
}

static int nothing_is_left(void)
{
    ccmr_sim_census census = {.size = sizeof(census)};

    (void)simulator->census(&census);
    return census.pieces == 0 && census.mappings == 0;
}

static void test_everything(void)
{
    int i;

    for (i = 0; i < 4; i++) {
        atomic_store(&busy, THREADS);
        crew_run(THREADS + 3, work, NULL);
    }
    tap_is_int(crew_faults(), 0, "ranges, blocks, rights and audits at once");
    tap_ok(nothing_is_left(), "and nothing is left of them");
}

/* ---- two addresses of one handle --------------------------------------- */

static pthread_barrier_t both;

/* The last one frees the handle, whichever that is. */
static void drop_alias(crew_member *member)
{
    char *mine = range + (size_t)member->index * UNIT;
    int i;

    for (i = 0; i < PAIRS; i++) {
        if (member->index == 0) {
            CREW_CHECK(ops->commit(self, range, UNIT) == CCMR_SUCCESS);
            CREW_CHECK(ops->move(self, range, range + UNIT, UNIT) ==
                       CCMR_SUCCESS);
        }
        (void)pthread_barrier_wait(&both);
        CREW_CHECK(ops->decommit(self, mine, UNIT) == CCMR_SUCCESS);
        (void)pthread_barrier_wait(&both);
        CREW_CHECK(nothing_is_left());
        (void)pthread_barrier_wait(&both);
    }
}

static void test_aliases(void)
{
    (void)pthread_barrier_init(&both, NULL, 2);
    crew_run(2, drop_alias, NULL);
    (void)pthread_barrier_destroy(&both);
    tap_is_int(crew_faults(), 0, "two addresses of a handle go at once");
}

/* ---- rights and what comes meanwhile ----------------------------------- */

static unsigned long long rights(const void *address)
{
    const CUmemLocation second = {.type = CU_MEM_LOCATION_TYPE_DEVICE,
                                  .id = 1};
    unsigned long long flags = 0;

    (void)api.cuMemGetAccess(&flags, &second, (CUdeviceptr)(uintptr_t)address);
    return flags;
}

static void grant_or_commit(crew_member *member)
{
    size_t i;

    if (member->index == 0) {
        CREW_CHECK(ccmr_resource_set_access(memory, 1, 1) == CCMR_SUCCESS);
        return;
    }
    for (i = 0; i < SLOTS; i++) {
        char *at = range + ((size_t)member->index * SLOTS + i) * UNIT;

        CREW_CHECK(ops->commit(self, at, UNIT) == CCMR_SUCCESS);
    }
}

static void test_rights(void)
{
    int lacking = 0;
    int round;
    size_t i;

    for (round = 0; round < 40; round++) {
        if (ccmr_resource_set_access(memory, 1, 0) != CCMR_SUCCESS) {
            lacking++;
        }
        crew_run(THREADS, grant_or_commit, NULL);
        for (i = SLOTS; i < (size_t)THREADS * SLOTS; i++) {
            lacking +=
                rights(range + i * UNIT) != CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
            if (ops->decommit(self, range + i * UNIT, UNIT) != CCMR_SUCCESS) {
                lacking++;
            }
        }
    }
    tap_is_int(crew_faults() + lacking, 0,
               "what is committed while rights are granted has them");
}

int main(void)
{
    const size_t bytes = (size_t)THREADS * SLOTS * UNIT;
    void *base;

    (void)api_simulator();
    (void)simulator->set_devices(2);
    if (ccmr_stack_create("virtual device=0 room=8MiB handle=4MiB", &memory) !=
        CCMR_SUCCESS) {
        tap_bail_out("%s", ccmr_last_error()->message);
    }
    ops = &memory->ops;
    self = memory->self;
    if (ops->reserve(self, bytes, &base) != CCMR_SUCCESS) {
        tap_bail_out("%s", ccmr_last_error()->message);
    }
    range = base;
    test_everything();
    test_aliases();
    test_rights();
    tap_ok(ops->unreserve(self, base, bytes) == CCMR_SUCCESS,
           "the range is empty");
    ccmr_resource_release(memory);
    return api_end(tap_finish());
}
