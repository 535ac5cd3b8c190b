/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the library knows about a thread: one thread-local pointer.
 */
#ifndef CCMR_LIB_THREAD_H
#define CCMR_LIB_THREAD_H

#include <stdint.h>

#include <cucoremr/resource.h>
#include <cucoremr/status.h>

/* Number of shards that a census has; see census.h. The last is shared by
 * all threads that found no free one. */
#define CCMR__SLOTS 64
#define CCMR__SLOT_SHARED (CCMR__SLOTS - 1)

#define CCMR__QUICK_BITS 5
#define CCMR__QUICK_SETS ((size_t)1 << CCMR__QUICK_BITS)

typedef struct ccmr__quick ccmr__quick;

/* See quick.h. */
typedef struct ccmr__quick_entry {
    ccmr_resource *resource; /* NULL: unused */
    ccmr_stream stream;
    uint64_t epoch; /* the way is good while this is the latest */
    ccmr__quick *way;
} ccmr__quick_entry;

/*
 * Made at a thread's first use, handed back by a key's destructor at its end,
 * which makes no driver call. Only its own thread touches it.
 */
typedef struct ccmr__thread {
    unsigned slot;     /* this thread's own shard, or the shared one */
    uint64_t serial;   /* never reused; see ccmr__thread_serial() */
    int from_reserve;  /* not from malloc */
    unsigned failures; /* how often `detail` was written anew */
    /* What pools keep for this thread, NULL if nothing, and who takes that
     * apart at the thread's end: without a driver call. The shared record
     * never has any. */
    struct ccmr__thread_pools *pools;
    void (*pools_end)(struct ccmr__thread *self);
    ccmr_error_detail detail; /* the last failure */
    _Alignas(64) ccmr__quick_entry quick[CCMR__QUICK_SETS][2];
} ccmr__thread;

#define CCMR__TLS_MODEL __attribute__((tls_model("initial-exec")))

extern _Thread_local ccmr__thread *ccmr__thread_pointer CCMR__TLS_MODEL;

/**
 * Make the calling thread's record. Never fails: where there is no memory it
 * comes from a small static reserve, whose last one is shared.
 */
ccmr__thread *ccmr__thread_make(void) __attribute__((cold));

/** The calling thread's record, made at need. Never NULL. */
static inline ccmr__thread *ccmr__thread_self(void)
{
    ccmr__thread *self = ccmr__thread_pointer;

    return __builtin_expect(self != NULL, 1) ? self : ccmr__thread_make();
}

/**
 * A number that tells the calling thread from every other one. It is another
 * one each time where the thread has only the shared record: such a thread is
 * never taken for itself, which is safe where it stands for an order.
 */
uint64_t ccmr__thread_serial(void);

/** Called once at first use of the library. */
void ccmr__thread_start(void);

#endif /* CCMR_LIB_THREAD_H */
