/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The allocator's test on the simulated driver. What is wrong with a block
 * that is handed out too early no run on a device tells, unless work happens
 * to be late; the simulator tells under every schedule:
 *
 *     cc -o free-list-test test.c free_list.c -pthread \
 *         $(pkg-config --cflags --libs libcucoremr libcucoremr-sim)
 *     CUCOREMR_DRIVER=sim ./free-list-test                    is right
 *     CUCOREMR_DRIVER=sim ./free-list-test --fault no-wait    is not
 *
 *     --fault NAME          no-wait, stale-event or same-handle is planted
 *     --first N --seeds N   which seeds (from 1, 100 of them); one of them
 *                           alone plays the same run again
 *     --all                 goes on after a seed that failed, and counts
 *     --eager               work runs at once, as on an idle device
 *
 * Exits with 1 where something is wrong. On a CUDA driver it runs as well,
 * with nothing but the contents to judge by.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cucoremr/cucoremr.h>
#include <cucoremr/sim.h>

#include "free_list.h"

/* The simulator's table; NULL on a device. */
static const ccmr_sim_table *sim;

static void check(ccmr_status status, const char *what)
{
    if (status != CCMR_SUCCESS) {
        fprintf(stderr, "%s: %s: %s\n", what, ccmr_status_name(status),
                ccmr_last_error()->message);
        exit(2);
    }
}

static void find_simulator(void)
{
    ccmr_driver_info info = {.size = sizeof(info)};
    void *library;

    check(ccmr_driver(&info), "driver");
    if (info.simulated) {
        library = dlopen(info.path, RTLD_NOW | RTLD_LOCAL);
        sim = library != NULL ? dlsym(library, CCMR_SIM_CONTROL_SYMBOL) : NULL;
        if (sim == NULL || sim->size < sizeof(*sim)) {
            fprintf(stderr, "the simulator is older than its header\n");
            exit(2);
        }
    }
}

enum { STREAMS = 3, SLOTS = 8, STEPS = 96, BYTES = 4096 };

typedef struct slot {
    void *ptr; /* NULL: empty */
    ccmr_stream stream;
    unsigned char byte; /* that it is full of */
} slot;

typedef struct trial {
    ccmr_resource *list;
    ccmr_buffer *seen; /* page-locked: what was in each block at its end */
    unsigned char want[STEPS];
    size_t count; /* of blocks that came to their end */
    ccmr_stream streams[STREAMS];
    slot slots[SLOTS];
    uint64_t random;
} trial;

static unsigned choose(trial *t, unsigned below)
{
    t->random = t->random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(t->random >> 33) % below;
}

static ccmr_buffer *view_of(void *ptr)
{
    ccmr_buffer_source source = CCMR_BUFFER_SOURCE_INIT;
    ccmr_buffer *view;

    source.device = 0;
    check(ccmr_buffer_from_handle(ptr, BYTES, &source, &view), "view");
    return view;
}

/* The simulator is told who owns which memory from when to when: after the
 * allocate, and before the free. Fills and copies it knows by itself. */
static void fill_slot(trial *t, slot *s, unsigned char byte)
{
    ccmr_buffer *view;

    s->stream = t->streams[choose(t, STREAMS)];
    s->byte = byte;
    check(ccmr_resource_allocate(t->list, BYTES, 0, s->stream, &s->ptr),
          "allocate");
    if (sim != NULL) {
        sim->handed_out((uint64_t)(uintptr_t)s->ptr, BYTES, s->stream);
    }
    view = view_of(s->ptr);
    check(ccmr_buffer_fill(view, 0, BYTES, byte, 1, s->stream), "fill");
    check(ccmr_buffer_destroy(view), "destroy");
}

static void empty_slot(trial *t, slot *s)
{
    ccmr_buffer *view = view_of(s->ptr);

    if (sim != NULL) {
        /* What a kernel would be. */
        sim->used((uint64_t)(uintptr_t)s->ptr, BYTES, s->stream);
    }
    check(
        ccmr_buffer_copy(t->seen, t->count * BYTES, view, 0, BYTES, s->stream),
        "copy");
    t->want[t->count++] = s->byte;
    check(ccmr_buffer_destroy(view), "destroy");
    if (sim != NULL) {
        sim->freed((uint64_t)(uintptr_t)s->ptr, BYTES, s->stream);
    }
    check(ccmr_resource_deallocate(t->list, s->ptr, BYTES, 0, s->stream),
          "deallocate");
    s->ptr = NULL;
}

/* Streams come and go, and their handles come again. */
static void renew_stream(trial *t, ccmr_stream *stream)
{
    size_t i;

    for (i = 0; i < SLOTS; i++) {
        if (t->slots[i].ptr != NULL && t->slots[i].stream == *stream) {
            empty_slot(t, &t->slots[i]);
        }
    }
    check(ccmr_stream_destroy(*stream), "destroy a stream");
    check(ccmr_stream_create(0, CCMR_STREAM_FLAG_NON_BLOCKING, stream),
          "create a stream");
}

static void run(trial *t)
{
    size_t i;

    for (i = 0; t->count < STEPS - SLOTS; i++) {
        slot *s = &t->slots[choose(t, SLOTS)];

        if (s->ptr == NULL) {
            fill_slot(t, s, (unsigned char)(1 + i % 255));
        } else {
            empty_slot(t, s);
        }
        if (i % 16 == 15) {
            renew_stream(t, &t->streams[choose(t, STREAMS)]);
        }
    }
    for (i = 0; i < SLOTS; i++) {
        if (t->slots[i].ptr != NULL) {
            empty_slot(t, &t->slots[i]);
        }
    }
}

/* How many blocks had something else in them at their end. */
static size_t count_wrong(const trial *t)
{
    const unsigned char *bytes = ccmr_buffer_ptr(t->seen);
    size_t wrong = 0;
    size_t i, j;

    for (i = 0; i < t->count; i++) {
        for (j = 0; j < BYTES && bytes[i * BYTES + j] == t->want[i]; j++) {
        }
        wrong += j < BYTES;
    }
    return wrong;
}

typedef struct verdict {
    uint64_t hazards;     /* what the simulator found */
    size_t wrong, blocks; /* with wrong contents, and in all */
    char text[512];       /* the first hazard */
} verdict;

static verdict judge(const trial *t)
{
    ccmr_sim_hazard hazard = {.size = sizeof(hazard)};
    verdict found = {.wrong = count_wrong(t), .blocks = t->count};

    if (sim != NULL && sim->hazard_read(0, &hazard) == 0) {
        memcpy(found.text, hazard.text, sizeof(found.text));
        found.hazards = sim->forget_hazards();
    }
    return found;
}

/* One run: the seed decides what the program does, and, on the simulator, when
 * its work runs. */
static verdict try_seed(fault planted, uint64_t seed, int eager)
{
    trial t = {.random = seed};
    ccmr_resource *pinned;
    verdict found;
    size_t i;

    if (sim != NULL) {
        (void)sim->set_mode(eager ? CCMR_SIM_EAGER : CCMR_SIM_LATE);
        (void)sim->set_seed(seed);
        (void)sim->check_order(1);
    }
    check(free_list_create(planted, &t.list), "free_list");
    check(ccmr_stack_create("legacy_pinned", &pinned), "legacy_pinned");
    check(ccmr_buffer_create(pinned, (size_t)STEPS * BYTES, NULL,
                             CCMR_STREAM_LEGACY, &t.seen),
          "buffer");
    ccmr_resource_release(pinned);
    for (i = 0; i < STREAMS; i++) {
        check(ccmr_stream_create(0, CCMR_STREAM_FLAG_NON_BLOCKING,
                                 &t.streams[i]),
              "create a stream");
    }
    run(&t);
    ccmr_resource_release(t.list); /* waits for all frees */
    found = judge(&t);
    for (i = 0; i < STREAMS; i++) {
        check(ccmr_stream_destroy(t.streams[i]), "destroy a stream");
    }
    check(ccmr_buffer_destroy(t.seen), "destroy");
    return found;
}

/* Command line. */

typedef struct options {
    fault planted;
    uint64_t first, seeds;
    int all, eager;
} options;

static int parse_fault(const char *name, fault *found)
{
    static const char *const names[] = {"none", "no-wait", "stale-event",
                                        "same-handle"};
    size_t i;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(name, names[i]) == 0) {
            *found = (fault)i;
            return 0;
        }
    }
    return -1;
}

static int parse(int argc, char **argv, options *parsed)
{
    int i;

    for (i = 1; i < argc; i++) {
        int more = i + 1 < argc;

        if (strcmp(argv[i], "--eager") == 0) {
            parsed->eager = 1;
        } else if (strcmp(argv[i], "--all") == 0) {
            parsed->all = 1;
        } else if (strcmp(argv[i], "--fault") == 0 && more) {
            if (parse_fault(argv[++i], &parsed->planted) != 0) {
                return -1;
            }
        } else if (strcmp(argv[i], "--first") == 0 && more) {
            parsed->first = strtoull(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--seeds") == 0 && more) {
            parsed->seeds = strtoull(argv[++i], NULL, 10);
        } else {
            return -1;
        }
    }
    return 0;
}

/* What to do about a seed that failed. */
static void tell(const options *parsed, uint64_t seed, const verdict *found)
{
    printf("seed %llu: %llu hazards, %zu of %zu blocks with wrong contents\n",
           (unsigned long long)seed, (unsigned long long)found->hazards,
           found->wrong, found->blocks);
    if (found->hazards != 0) {
        printf("the first: %s\n", found->text);
    }
    if (!parsed->all) {
        printf("again: --first %llu --seeds 1\n", (unsigned long long)seed);
    }
}

static int try_seeds(const options *parsed)
{
    uint64_t told = 0, spoiled = 0, tried = 0;

    while (tried < parsed->seeds &&
           (parsed->all || (told == 0 && spoiled == 0))) {
        uint64_t seed = parsed->first + tried++;
        verdict found = try_seed(parsed->planted, seed, parsed->eager);
        int bad = found.hazards != 0 || found.wrong != 0;

        if (bad && told == 0 && spoiled == 0) {
            tell(parsed, seed, &found);
        }
        told += found.hazards != 0;
        spoiled += found.wrong != 0;
    }
    printf("%llu seeds: hazards under %llu, wrong contents under %llu%s\n",
           (unsigned long long)tried, (unsigned long long)told,
           (unsigned long long)spoiled,
           sim == NULL ? " (a real driver: hazards are not looked for)" : "");
    return told != 0 || spoiled != 0;
}

int main(int argc, char **argv)
{
    options parsed = {.first = 1, .seeds = 100};

    if (parse(argc, argv, &parsed) != 0) {
        fprintf(stderr,
                "usage: %s [--fault no-wait|stale-event|same-handle] "
                "[--first N] [--seeds N] [--all] [--eager]\n",
                argv[0]);
        return 2;
    }
    find_simulator();
    return try_seeds(&parsed);
}
