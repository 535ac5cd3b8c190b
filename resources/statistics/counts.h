/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts that many threads make, without a line that they share.
 *
 *     +--------------+    +--------------+
 *     | slot 0       |    | slot 1       |   each its thread's
 *     | totals       |    | totals       |
 *     | untold live  |    | untold live  |
 *     +------+-------+    +------+-------+
 *            |  when it is a step |
 *            v                    v
 *          +------------------------+
 *          | told live, its peak    |   atomics
 *          +------------------------+
 *
 * What is live is what was told and what all slots have not told yet. With a
 * step of 0 all is told at once, and the peak of what was told is exact. With
 * one slot in use the slot knows its own greatest, and the peak is exact as
 * well. Else it is wrong by a step for each slot at most: all steps together
 * are a share of the innermost scope's peak, over what was live when it was
 * opened, and a little for each slot. When a slot is used for the first time all is told,
 * so that the steps can be made smaller; and when a scope is opened.
 *
 * The owner's half costs plain stores, as in lib/census.h:
 *
 *     enter: inside = 1; barrier for the compiler; look at `stopped`
 *            ... count ...
 *     leave: inside = 0
 *
 * Whoever reads, or opens or closes a scope, takes `lock`, sets `stopped`,
 * makes every thread pass a barrier and waits until each owner is out: then
 * nobody counts, and everything is the reader's. Owners who find the flag set
 * take the lock and count then. So a reading is of one moment.
 *
 * Threads: any, all functions. Threads that share the last slot count under
 * the lock.
 */
#ifndef CCMR_RESOURCES_STATISTICS_COUNTS_H
#define CCMR_RESOURCES_STATISTICS_COUNTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cucoremr/resources/statistics.h>

#include "lib/census.h"

/* What is not told yet. The greatest since it was told last. */
typedef struct ccmr__untold {
    int64_t now;
    int64_t most;
} ccmr__untold;

/* The owner's while it is inside, or of who holds the lock. What was freed
 * follows from what was allocated and what is live of that. */
typedef struct ccmr__count_slot {
    _Alignas(64) atomic_int inside;
    int known;
    ccmr__untold bytes;
    ccmr__untold blocks;
    uint64_t allocated_bytes;
    size_t largest;
    int64_t told_bytes; /* all that it has told */
    int64_t told_blocks;
    uint64_t sizes[CCMR_STATISTICS_SIZES];
} ccmr__count_slot;

/* One figure of which the peak is wanted. `base`: what was live when the
 * innermost scope was opened; changed while stopped. */
typedef struct ccmr__told {
    atomic_int_fast64_t live;
    atomic_int_fast64_t peak;
    atomic_int_fast64_t base;
} ccmr__told;

/* A scope that is open: what there was when it was opened, and what of the
 * time before it must be put back when it closes. */
typedef struct ccmr__count_scope {
    struct ccmr__count_scope *outer;
    ccmr_statistics start;
    int64_t peak_bytes;
    int64_t peak_blocks;
    int64_t base_bytes;
    int64_t base_blocks;
    uint64_t error_bytes;
    uint64_t error_blocks;
    size_t largest;
    size_t largest_failed;
} ccmr__count_scope;

typedef struct ccmr__counts {
    /* Read by every call, changed seldom: */
    _Alignas(64) atomic_int stopped;
    int exact;               /* the steps stay 0 */
    atomic_uint slots_known; /* changed while stopped */
    atomic_int_fast64_t step_bytes;
    atomic_int_fast64_t step_blocks;
    /* Changed by any thread: */
    _Alignas(64) ccmr__told bytes;
    ccmr__told blocks;
    /* Under `lock`: */
    _Alignas(64) pthread_mutex_t lock;
    int shared_known;     /* the shared slot has been used */
    uint64_t error_bytes; /* of the peak, by steps that were larger once */
    uint64_t error_blocks;
    size_t largest; /* of slots that have been emptied */
    size_t largest_failed;
    uint64_t failures_device;
    uint64_t failures_host;
    uint64_t failures_limit;
    uint64_t failures_other;
    uint64_t refused_frees;
    ccmr__count_scope *scope;
    unsigned depth;
    ccmr__count_slot slots[CCMR__SLOTS];
} ccmr__counts;

/** Returns 0, or -1 without memory. `counts` is zeroed. */
int ccmr__counts_init(ccmr__counts *counts, int exact);
void ccmr__counts_destroy(ccmr__counts *counts);

/** Of the innermost scope. */
void ccmr__counts_read(ccmr__counts *counts, ccmr_statistics *statistics);

/** Since creation, whatever is open. */
void ccmr__counts_read_all(ccmr__counts *counts, ccmr_statistics *statistics);

/** 0 where the calling thread has no slot of its own. */
int ccmr__counts_read_thread(ccmr__counts *counts,
                             ccmr_statistics *statistics);

/** `scope` is the counts' until ccmr__counts_pop() gives it back. */
void ccmr__counts_push(ccmr__counts *counts, ccmr__count_scope *scope);

/** NULL where none is open. */
ccmr__count_scope *ccmr__counts_pop(ccmr__counts *counts,
                                    ccmr_statistics *statistics);

/** An allocation failed. */
void ccmr__counts_failure(ccmr__counts *counts, size_t bytes,
                          ccmr_status status) __attribute__((cold));

/** A free that was counted was refused: the block is live. */
void ccmr__counts_undo_free(ccmr__counts *counts, size_t bytes)
    __attribute__((cold));

/** Do what is live and what was told agree? 1 or 0. */
int ccmr__counts_audit(ccmr__counts *counts);

/* The rare halves of what follows. */
void ccmr__counts_allocation_locked(ccmr__counts *counts, size_t bytes)
    __attribute__((cold));
void ccmr__counts_free_locked(ccmr__counts *counts, size_t bytes)
    __attribute__((cold));
void ccmr__counts_tell(ccmr__counts *counts, ccmr__count_slot *slot);

/* Sizes wrap rather than overflow: no sum of them is ever an error. */
static inline int64_t ccmr__count_sum(int64_t count, uint64_t more)
{
    return (int64_t)((uint64_t)count + more);
}

static inline int ccmr__counts_enter(ccmr__counts *counts,
                                     ccmr__count_slot *slot)
{
    atomic_store_explicit(&slot->inside, 1, memory_order_relaxed);
    ccmr__census_fence();
    return atomic_load_explicit(&counts->stopped, memory_order_acquire) == 0;
}

static inline void ccmr__counts_leave(ccmr__count_slot *slot)
{
    atomic_store_explicit(&slot->inside, 0, memory_order_release);
}

/* Has the slot as much to tell as a step? */
static inline int ccmr__counts_is_step(ccmr__counts *counts,
                                       const ccmr__count_slot *slot)
{
    uint64_t bytes = (uint64_t)atomic_load_explicit(&counts->step_bytes,
                                                    memory_order_relaxed);
    uint64_t blocks = (uint64_t)atomic_load_explicit(&counts->step_blocks,
                                                     memory_order_relaxed);

    /* Not within [-step, step); with a step of 0 nothing is. */
    return (uint64_t)slot->bytes.now + bytes >= 2 * bytes ||
           (uint64_t)slot->blocks.now + blocks >= 2 * blocks;
}

/* The slot is the caller's to change. */
static inline void ccmr__slot_allocation(ccmr__counts *counts,
                                         ccmr__count_slot *slot, size_t bytes)
{
    /* 1: 0; 2: 1; 3 and 4: 2; and so on */
    unsigned size = bytes > 1 ? 64 - (unsigned)__builtin_clzll(bytes - 1) : 0;

    slot->sizes[size]++;
    slot->allocated_bytes += bytes;
    slot->bytes.now = ccmr__count_sum(slot->bytes.now, bytes);
    slot->blocks.now++;
    if (slot->bytes.now > slot->bytes.most) {
        slot->bytes.most = slot->bytes.now;
    }
    if (slot->blocks.now > slot->blocks.most) {
        slot->blocks.most = slot->blocks.now;
    }
    if (bytes > slot->largest) {
        slot->largest = bytes;
    }
    if (__builtin_expect(ccmr__counts_is_step(counts, slot), 0)) {
        ccmr__counts_tell(counts, slot);
    }
}

static inline void ccmr__slot_free(ccmr__counts *counts,
                                   ccmr__count_slot *slot, size_t bytes)
{
    slot->bytes.now = ccmr__count_sum(slot->bytes.now, 0 - (uint64_t)bytes);
    slot->blocks.now--;
    if (__builtin_expect(ccmr__counts_is_step(counts, slot), 0)) {
        ccmr__counts_tell(counts, slot);
    }
}

/** An allocation succeeded. */
static inline void ccmr__counts_allocation(ccmr__counts *counts, size_t bytes)
{
    ccmr__count_slot *slot = &counts->slots[ccmr__thread_self()->slot];

    if (__builtin_expect(slot->known && ccmr__counts_enter(counts, slot), 1)) {
        ccmr__slot_allocation(counts, slot, bytes);
        ccmr__counts_leave(slot);
    } else {
        ccmr__counts_allocation_locked(counts, bytes);
    }
}

/** A block is about to go to the upstream. */
static inline void ccmr__counts_free(ccmr__counts *counts, size_t bytes)
{
    ccmr__count_slot *slot = &counts->slots[ccmr__thread_self()->slot];

    if (__builtin_expect(slot->known && ccmr__counts_enter(counts, slot), 1)) {
        ccmr__slot_free(counts, slot, bytes);
        ccmr__counts_leave(slot);
    } else {
        ccmr__counts_free_locked(counts, bytes);
    }
}

#endif /* CCMR_RESOURCES_STATISTICS_COUNTS_H */
