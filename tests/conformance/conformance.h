/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cucoremr-conformance: a table of cases times a table of subjects. A case is
 * a rule that every resource keeps, a subject a stack text. Cases know nothing
 * of a subject but what its properties say, so that they judge resources of
 * users as well.
 *
 * Each case gets a fresh stack with a recorder under every adaptor. After it,
 * without the case's doing: the resource is released, every recorder is gone
 * and content, the thread's context and capture mode are what they were, and
 * on the simulated driver nothing is alive that was not before, and nothing
 * was done out of order: its check of order is told of every block.
 */
#ifndef CCMR_TESTS_CONFORMANCE_H
#define CCMR_TESTS_CONFORMANCE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cucoremr/cucoremr.h>

#include "tests/support/api.h"
/* All of a case's blocks are told; what a part of a stack passes on is not. */
#ifdef CONFORMANCE_PART_OF_STACK
#define TOLD_NOTHING
#endif
#include "tests/support/told.h"

#define WORLD_DEVICES 2
#define WORLD_STREAMS 4
#define CASE_THREADS 4

#define KIB ((size_t)1024)
#define MIB ((size_t)1024 * 1024)

/* What all cases share; made once. */
typedef struct world {
    int devices; /* at most WORLD_DEVICES of them are used */
    int simulated;
    CUcontext primary[WORLD_DEVICES];
    CUcontext foreign; /* made by cuCtxCreate on device 0, or NULL */
    /* Of the driver, non-blocking, never told to the library. */
    ccmr_stream streams[WORLD_DEVICES][WORLD_STREAMS];
    /* Of the library, registered. */
    ccmr_stream registered[WORLD_DEVICES];
    /* Of the driver, ordered with the legacy default stream. */
    ccmr_stream blocking[WORLD_DEVICES];
} world;

extern world here;

typedef struct subject {
    const char *text; /* as given */
    char *stack;      /* with recorders */
    /* Of the case that runs: */
    const char *case_name;
    ccmr_resource *resource; /* NULL once the case released it */
    ccmr_properties properties;
    int device;           /* whose streams to use */
    ccmr_stream *streams; /* WORLD_STREAMS of them */
    atomic_int failures;
    const char *skip; /* reason, where the case does not apply */
} subject;

typedef struct conformance_case {
    const char *name;
    void (*run)(subject *s);
} conformance_case;

/* Ended by a NULL name. */
extern const conformance_case cases_basic[];
extern const conformance_case cases_buffer[];
extern const conformance_case cases_capture[];
extern const conformance_case cases_context[];
extern const conformance_case cases_life[];
extern const conformance_case cases_order[];
extern const conformance_case cases_query[];
extern const conformance_case cases_threads[];

/* subject.c */

/* A new subject, its text with `recorder` put under each adaptor. */
subject *subject_make(const char *text);
void subject_free(subject *s);
/* One test: the case between set-up and the checks that all cases share. */
void subject_run(subject *s, const conformance_case *c);

/* Checks; each failure is told as a comment, the case is then not ok. Any
   thread. They return whether all was well. */
#define CHECK(s, condition, ...)                                              \
    check_that((s), (condition) != 0, __FILE__, __LINE__, #condition,         \
               __VA_ARGS__)
#define CHECK_STATUS(s, status, want, ...)                                    \
    check_status((s), (status), (want), __FILE__, __LINE__, __VA_ARGS__)
#define CHECK_OK(s, status, ...)                                              \
    check_status((s), (status), CCMR_SUCCESS, __FILE__, __LINE__, __VA_ARGS__)

int check_that(subject *s, int good, const char *file, int line,
               const char *condition, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
int check_status(subject *s, ccmr_status status, ccmr_status want,
                 const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/* The case does not apply: to be followed by a return. */
void subject_skip(subject *s, const char *reason);

/* Allocate and check success, address and alignment; NULL on failure. */
void *take(subject *s, size_t bytes, size_t alignment, ccmr_stream stream);
/* Deallocate and check success. */
void give(subject *s, void *ptr, size_t bytes, size_t alignment,
          ccmr_stream stream);
/* A buffer with 256 or more bytes; NULL on failure. */
ccmr_buffer *take_buffer(subject *s, size_t bytes, ccmr_stream stream);
/* Close and free it. */
void drop_buffer(subject *s, ccmr_buffer *buffer);
/* Fill a block with words that only this seed has; in the order of `stream`
   where the device can reach it, else at once when the stream is idle. */
static inline uint32_t fill_word(uint32_t seed)
{
    return seed * 0x9e3779b9u | 1u;
}
void fill(subject *s, void *ptr, size_t bytes, uint32_t seed,
          ccmr_stream stream);
/* A plain reference to a block; NULL on failure. */
ccmr_buffer *view_of(subject *s, void *ptr, size_t bytes);
/* The case needs work on streams that uses the memory: 0, and skips, where
   that is not to be had. */
int orders(subject *s);
/* Wait for a stream. */
void settle(subject *s, ccmr_stream stream);

/* The figures, all checked for sense. */
ccmr_stats figures(subject *s);

/* A stream of the driver goes, without a word where the stack takes that. */
void destroy_stream(subject *s, CUstream stream);
/* Is the capture on the stream still whole? */
int capture_active(ccmr_stream stream);
/* A registered stream's captures are announced: 1 if it is one. */
int capture_announce(ccmr_stream stream, int capturing);
int capture_begin(subject *s, ccmr_stream stream, CUstreamCaptureMode mode);
/* Ends it and checks that it was valid. */
void capture_end(subject *s, ccmr_stream stream);

/*
 * Everything that can be done with a resource on the streams 1 to 3 of the
 * subject's device, tokens included where `tokens` is 1; after each call
 * `after` is called with its name. What it allocates it gives back.
 */
void exercise(subject *s, int tokens,
              void (*after)(subject *s, const char *what, void *context),
              void *context);

/* recorder.c */

/* Registers the kind `recorder`, an adaptor that remembers every block that
   passes through it and compares what comes back. */
ccmr_status recorder_register(void);

/* Sums over all recorders since the last reset. */
typedef struct recorder_sums {
    long made;
    long destroyed;
    long allocations;   /* that upstream granted */
    long deallocations; /* that upstream took */
    long calls;         /* allocate and deallocate, granted or not */
    long live;
    long violations;
} recorder_sums;

void recorder_reset(void);
recorder_sums recorder_read(void);
/* The first violation, as text; "" if there was none. */
const char *recorder_complaint(void);
/* Streams of the last allocate and deallocate that a recorder saw. */
ccmr_stream recorder_last_allocate(void);
ccmr_stream recorder_last_deallocate(void);

#endif
