/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any entry point from any thread at once: rule 5. Field cases F1, F3, F4.
 */
#include "tests/conformance/conformance.h"

#include <string.h>

#include "tests/support/tap.h"

#define ROUNDS 60
#define SLOTS 16

/*
 * Threads put blocks into a shared table and free what they find there: most
 * are freed by another thread than the one that allocated them.
 */
typedef struct exchange {
    subject *s;
    _Atomic(void *) slots[SLOTS];
    atomic_int go;
    atomic_int next_thread;
} exchange;

static size_t slot_bytes(unsigned slot)
{
    return 1000 * (size_t)(slot + 1);
}

static void *swap_blocks(void *argument)
{
    exchange *e = argument;
    subject *s = e->s;
    unsigned seed = (unsigned)atomic_fetch_add(&e->next_thread, 1) * 7919u;
    ccmr_stream streams[4] = {s->streams[0], s->streams[1],
                              here.registered[s->device], CCMR_STREAM_LEGACY};
    int i;

    while (!atomic_load(&e->go)) {
    }
    for (i = 0; i < ROUNDS; i++) {
        unsigned slot;
        void *ptr;

        seed = seed * 1664525u + 1013904223u;
        slot = (seed >> 16) % SLOTS;
        /* All users of a slot share a stream: that is their order. */
        ptr = take(s, slot_bytes(slot), 0, streams[slot % 4]);
        ptr = atomic_exchange(&e->slots[slot], ptr);
        give(s, ptr, slot_bytes(slot), 0, streams[slot % 4]);
    }
    return NULL;
}

static void run_threads(subject *s, void *(*body)(void *), void *argument,
                        atomic_int *go)
{
    pthread_t threads[CASE_THREADS];
    int started = 0;

    while (started < CASE_THREADS &&
           pthread_create(&threads[started], NULL, body, argument) == 0) {
        started++;
    }
    CHECK(s, started == CASE_THREADS, "%d threads", started);
    atomic_store(go, 1);
    while (started > 0) {
        (void)pthread_join(threads[--started], NULL);
    }
}

static void case_exchange(subject *s)
{
    exchange e;
    ccmr_stats stats;
    ccmr_stream streams[4] = {s->streams[0], s->streams[1],
                              here.registered[s->device], CCMR_STREAM_LEGACY};
    unsigned slot;

    memset(&e, 0, sizeof(e));
    e.s = s;
    run_threads(s, swap_blocks, &e, &e.go);
    stats = figures(s);
    CHECK(s, stats.allocations == CASE_THREADS * ROUNDS, "%llu allocations",
          (unsigned long long)stats.allocations);
    for (slot = 0; slot < SLOTS; slot++) {
        give(s, e.slots[slot], slot_bytes(slot), 0, streams[slot % 4]);
    }
    stats = figures(s);
    CHECK(s, stats.live_bytes == 0 && stats.live_blocks == 0,
          "live at the end: %zu bytes", stats.live_bytes);
}

/* Everything else at the same time. */
static void *ask_everything(void *argument)
{
    exchange *e = argument;
    subject *s = e->s;
    int self = atomic_fetch_add(&e->next_thread, 1);
    ccmr_properties p = {.size = sizeof(p)};
    char text[512];
    int i;

    while (!atomic_load(&e->go)) {
    }
    for (i = 0; i < ROUNDS / 2; i++) {
        ccmr_stats stats = {.size = sizeof(stats)};
        ccmr_buffer *buffer;

        switch ((self + i) % 4) {
        case 0:
            CHECK_OK(s, ccmr_resource_stats(s->resource, &stats), "stats");
            CHECK_OK(s, ccmr_resource_describe(s->resource, &p), "describe");
            break;
        case 1:
            CHECK_OK(s, ccmr_resource_trim(s->resource, 0, NULL), "trim");
            break;
        case 2:
            CHECK_OK(s,
                     ccmr_stack_print(s->resource, text, sizeof(text), NULL),
                     "print");
            (void)ccmr_resource_retain(s->resource);
            ccmr_resource_release(s->resource);
            break;
        default:
            buffer = take_buffer(s, 3000, s->streams[self % WORLD_STREAMS]);
            if (buffer != NULL) {
                CHECK_OK(s,
                         ccmr_buffer_fill(buffer, 0, 3000, 1, 1,
                                          s->streams[self % WORLD_STREAMS]),
                         "fill");
            }
            drop_buffer(s, buffer);
            break;
        }
    }
    return NULL;
}

static void case_everything(subject *s)
{
    exchange e;

    memset(&e, 0, sizeof(e));
    e.s = s;
    run_threads(s, ask_everything, &e, &e.go);
    CHECK(s, figures(s).live_blocks == 0, "live at the end");
}

/* Threads free the last blocks while the last reference goes: somebody, and
   only one, destroys. */
typedef struct drain {
    subject *s;
    ccmr_resource *resource;
    void *blocks[CASE_THREADS][4];
    atomic_int go;
    atomic_int next_thread;
} drain;

static void *free_last(void *argument)
{
    drain *d = argument;
    subject *s = d->s;
    int self = atomic_fetch_add(&d->next_thread, 1);
    int i;

    while (!atomic_load(&d->go)) {
    }
    for (i = 0; i < 4; i++) {
        CHECK_OK(s,
                 ccmr_resource_deallocate(d->resource, d->blocks[self][i], 700,
                                          0, CCMR_STREAM_READY),
                 "deallocate");
        if (self == 0 && i == 1) {
            ccmr_resource_release(d->resource);
        }
    }
    return NULL;
}

static void case_drain(subject *s)
{
    recorder_sums sums;
    int round;
    int t;
    int i;

    for (round = 0; round < 10; round++) {
        drain d;
        ccmr_resource *under = NULL;
        ccmr_resource *kept = s->resource;

        memset(&d, 0, sizeof(d));
        d.s = s;
        CHECK_OK(s, ccmr_stack_create_over("recorder", s->resource, &under),
                 "recorder");
        CHECK_OK(
            s,
            ccmr_stack_create_over("limiting bytes=1GiB", under, &d.resource),
            "limiting");
        ccmr_resource_release(under);
        if (d.resource == NULL) {
            return;
        }
        recorder_reset();
        s->resource = d.resource;
        for (t = 0; t < CASE_THREADS; t++) {
            for (i = 0; i < 4; i++) {
                d.blocks[t][i] = take(s, 700, 0, s->streams[t]);
            }
        }
        for (t = 0; t < CASE_THREADS; t++) {
            settle(s, s->streams[t]);
        }
        s->resource = kept;
        run_threads(s, free_last, &d, &d.go);
        sums = recorder_read();
        CHECK(s, sums.destroyed == 1, "round %d: destroyed %ld times", round,
              sums.destroyed);
        CHECK(s, sums.violations == 0, "%s", recorder_complaint());
    }
    /* The subject's own recorders were forgotten by the reset. */
    ccmr_resource_release(s->resource);
    s->resource = NULL;
    recorder_reset();
}

const conformance_case cases_threads[] = {
    {"threads: exchange", case_exchange},
    {"threads: everything", case_everything},
    {"threads: drain", case_drain},
    {NULL, NULL},
};
