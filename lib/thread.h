/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the library knows about a thread: one thread-local pointer.
 */
#ifndef CCMR_LIB_THREAD_H
#define CCMR_LIB_THREAD_H

#include <stdint.h>

#include <cucoremr/status.h>

/* Number of shards that a census has; see census.h. The last is shared. */
#define CCMR__SLOTS 64
#define CCMR__SLOT_SHARED (CCMR__SLOTS - 1)

/*
 * Made at a thread's first use, freed by the key's destructor at its end,
 * which makes no driver call. Only its own thread touches it.
 */
typedef struct ccmr__thread {
    unsigned slot;        /* this thread's own shard, or the shared one */
    uint64_t serial;      /* never reused: identifies the thread */
    ccmr_error_detail *detail; /* made at the first failure */
} ccmr__thread;

/* What a thread has before its first use and where no memory was left: the
 * shared slot and serial 0. */
extern const ccmr__thread ccmr__thread_none;

#if defined(__GNUC__) && !defined(__clang_analyzer__)
#define CCMR__TLS_MODEL __attribute__((tls_model("initial-exec")))
#else
#define CCMR__TLS_MODEL
#endif

extern _Thread_local ccmr__thread *ccmr__thread_pointer CCMR__TLS_MODEL;

/** Make the calling thread's record; NULL without memory. Out of line. */
ccmr__thread *ccmr__thread_make(void) __attribute__((cold));

/** The calling thread's record, made at need; NULL without memory. */
static inline ccmr__thread *ccmr__thread_self(void)
{
    ccmr__thread *self = ccmr__thread_pointer;

    return __builtin_expect(self != NULL, 1) ? self : ccmr__thread_make();
}

/** The calling thread's record without making one: may be the none. */
static inline const ccmr__thread *ccmr__thread_peek(void)
{
    const ccmr__thread *self = ccmr__thread_pointer;

    return __builtin_expect(self != NULL, 1) ? self : &ccmr__thread_none;
}

#endif /* CCMR_LIB_THREAD_H */
