/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An exact cap on a sum that many threads change.
 *
 *                 +---------+
 *     limit >=    | granted |  = live + credit of slot 0 + slot 1 + ...
 *                 +---------+
 *                   |     |
 *            +------+     +------+
 *            v                   v
 *     +--------------+    +--------------+
 *     | slot 0       |    | slot 1       |   one cache line each
 *     | credit <=    |    | credit <=    |
 *     |        share |    |        share |
 *     +--------------+    +--------------+
 *
 * `granted` never passes the limit, and what is live never passes `granted`:
 * so the limit is never exceeded. A thread takes from and gives to its own
 * slot, and goes to `granted` only where that does not suffice. Before
 * anybody is refused all credit is recalled, under `lock`: `granted` is then
 * what is live (with what others hold in flight), and the refusal is right.
 *
 * The owner's half costs plain stores:
 *
 *     enter: inside = 1; barrier for the compiler; look at `recalling`
 *            ... change the credit ...
 *     leave: inside = 0
 *
 * A recaller sets `recalling`, makes every thread pass a barrier (see
 * census.h), waits until each owner is out, and takes the credit. Owners who
 * find the flag set leave their credit alone. Nobody waits while inside, and
 * credit moves between a slot and `granted` only there, so that none is in
 * between when a recaller counts.
 *
 * `share` is a quarter of what is unused, divided by the slots in use: at
 * most a quarter of the rest is out as credit, so that a sum that creeps up
 * to its limit meets one recall each time the rest has shrunk to a quarter,
 * and none below SHARE_LEAST a slot, where everybody uses `granted`.
 *
 * A slot never has more than a share: what is live is at least `granted` less
 * a share for each slot, which refuses without a recall what cannot fit.
 *
 * Threads: any, all functions. The threads that share the last slot have no
 * credit.
 */
#ifndef CCMR_RESOURCES_LIMITING_CREDIT_H
#define CCMR_RESOURCES_LIMITING_CREDIT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "lib/census.h"

typedef struct ccmr__credit_slot {
    _Alignas(64) atomic_size_t credit; /* the owner's while it is inside */
    atomic_int inside;
    int known; /* may have credit, is counted in slots_known; the owner's */
} ccmr__credit_slot;

typedef struct ccmr__credit {
    /* Read by every call, changed seldom, under `lock`: */
    _Alignas(64) atomic_size_t share; /* lowered only while recalling */
    atomic_int recalling;
    atomic_size_t limit;
    /* Changed by any thread: */
    _Alignas(64) atomic_size_t granted;
    _Alignas(64) pthread_mutex_t lock; /* recalls, share and limit */
    atomic_uint slots_known;
    ccmr__credit_slot slots[CCMR__SLOTS];
} ccmr__credit;

/** Returns 0, or -1 without memory. */
int ccmr__credit_init(ccmr__credit *credit, size_t limit);
void ccmr__credit_destroy(ccmr__credit *credit);

/** What is live, in flight included. Exact when nothing else runs. */
size_t ccmr__credit_live(ccmr__credit *credit);

/** Change the limit; it may be less than what is live. */
void ccmr__credit_set_limit(ccmr__credit *credit, size_t limit);

/** Does what is out add up? 1 or 0. */
int ccmr__credit_audit(ccmr__credit *credit);

/** Out of line half of ccmr__credit_take(). */
int ccmr__credit_claim(ccmr__credit *credit, size_t bytes, size_t *live);

/** Out of line half of ccmr__credit_give(). */
void ccmr__credit_return(ccmr__credit *credit, size_t bytes);

/* 1 if the owner may touch its credit, until it leaves. */
static inline int ccmr__credit_enter(ccmr__credit *credit,
                                     ccmr__credit_slot *slot)
{
    atomic_store_explicit(&slot->inside, 1, memory_order_relaxed);
    ccmr__census_fence();
    return atomic_load_explicit(&credit->recalling, memory_order_acquire) == 0;
}

static inline void ccmr__credit_leave(ccmr__credit_slot *slot)
{
    atomic_store_explicit(&slot->inside, 0, memory_order_release);
}

/**
 * Count bytes up. Returns 1, or 0 if they would pass the limit, and then
 * `*live` is what is live.
 */
static inline int ccmr__credit_take(ccmr__credit *credit, size_t bytes,
                                    size_t *live)
{
    unsigned index = ccmr__thread_self()->slot;
    ccmr__credit_slot *slot = &credit->slots[index];
    int taken = 0;

    if (__builtin_expect(slot->known, 1)) {
        if (__builtin_expect(ccmr__credit_enter(credit, slot), 1)) {
            size_t have =
                atomic_load_explicit(&slot->credit, memory_order_relaxed);

            if (__builtin_expect(bytes <= have, 1)) {
                atomic_store_explicit(&slot->credit, have - bytes,
                                      memory_order_relaxed);
                taken = 1;
            }
        }
        ccmr__credit_leave(slot);
    }
    return __builtin_expect(taken, 1)
               ? 1
               : ccmr__credit_claim(credit, bytes, live);
}

/** Count bytes down. */
static inline void ccmr__credit_give(ccmr__credit *credit, size_t bytes)
{
    unsigned index = ccmr__thread_self()->slot;
    ccmr__credit_slot *slot = &credit->slots[index];
    int given = 0;

    if (__builtin_expect(slot->known, 1)) {
        if (__builtin_expect(ccmr__credit_enter(credit, slot), 1)) {
            size_t share =
                atomic_load_explicit(&credit->share, memory_order_relaxed);
            size_t have =
                atomic_load_explicit(&slot->credit, memory_order_relaxed);

            if (__builtin_expect(bytes <= share - have, 1)) {
                atomic_store_explicit(&slot->credit, have + bytes,
                                      memory_order_relaxed);
                given = 1;
            }
        }
        ccmr__credit_leave(slot);
    }
    if (__builtin_expect(!given, 0)) {
        ccmr__credit_return(credit, bytes);
    }
}

#endif /* CCMR_RESOURCES_LIMITING_CREDIT_H */
