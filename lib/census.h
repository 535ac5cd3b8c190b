/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counting what is live without a shared counter.
 *
 *   census
 *   +--------+--------+ ... +--------+----------+
 *   | shard0 | shard1 |     | shard62| shared   |   one cache line each
 *   +--------+--------+ ... +--------+----------+
 *
 * Each thread writes its own shard with plain stores (relaxed atomics of its
 * own line); threads beyond the 63rd share the last with read-modify-writes.
 * A block may be freed by another thread than the one that allocated it: a
 * single shard's count may be below zero, the sum is right. The sum is exact
 * when nobody is at work, and for the one question that matters, "did the last
 * one go?", a closer raises a flag, makes every thread pass a barrier
 * (membarrier) and sums after that.
 *
 * The owner's protocol on the way down, which lets the closer free the memory:
 *
 *   enter: inside = 1; compiler barrier
 *          ... live -= 1 ...
 *          compiler barrier; look at the flag
 *   leave: inside = 0     the last access
 *
 * Where membarrier is missing, and under ThreadSanitizer, the barriers are
 * real: a read-modify-write of one shared word, which ThreadSanitizer, unlike
 * a fence, understands.
 */
#ifndef CCMR_LIB_CENSUS_H
#define CCMR_LIB_CENSUS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/thread.h"

#if defined(__SANITIZE_THREAD__)
#define CCMR__TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CCMR__TSAN 1
#endif
#endif
#ifndef CCMR__TSAN
#define CCMR__TSAN 0
#endif

typedef struct ccmr__shard {
    _Alignas(64) atomic_int_fast64_t allocations;
    atomic_int_fast64_t deallocations;
    atomic_int_fast64_t bytes;   /* live, may be below zero here */
    atomic_int_fast64_t holders; /* buffers, may be below zero here */
    atomic_int_fast64_t failures;
    atomic_int_fast64_t inside;
} ccmr__shard;

typedef struct ccmr__census {
    ccmr__shard shards[CCMR__SLOTS];
} ccmr__census;

/** Sums. Exact when nothing else runs. */
typedef struct ccmr__census_sum {
    int64_t allocations;
    int64_t deallocations;
    int64_t bytes;
    int64_t holders;
    int64_t failures;
} ccmr__census_sum;

/* 1 where fences must be real: no membarrier, or ThreadSanitizer. */
extern int ccmr__census_fences;
extern atomic_int ccmr__census_word;

/** Called once at first use. */
void ccmr__census_start(void);

/** Every thread of the process has passed a full barrier when this returns. */
void ccmr__census_barrier(void);

void ccmr__census_read(ccmr__census *census, ccmr__census_sum *sum);

/** Wait (briefly: owners are between enter and leave) until all are out. */
void ccmr__census_wait_out(ccmr__census *census);

static inline void ccmr__shard_add(unsigned slot, atomic_int_fast64_t *count,
                                   int64_t amount)
{
    if (__builtin_expect(slot != CCMR__SLOT_SHARED, 1)) {
        atomic_store_explicit(
            count, atomic_load_explicit(count, memory_order_relaxed) + amount,
            memory_order_relaxed);
    } else {
        atomic_fetch_add_explicit(count, amount, memory_order_relaxed);
    }
}

/** The owner's half of the barrier: for the compiler alone, as a rule. */
static inline void ccmr__census_fence(void)
{
    if (__builtin_expect(ccmr__census_fences, 0)) {
        atomic_fetch_add_explicit(&ccmr__census_word, 1, memory_order_seq_cst);
    } else {
        atomic_signal_fence(memory_order_seq_cst);
    }
}

static inline void ccmr__census_enter(ccmr__shard *shard, unsigned slot)
{
    ccmr__shard_add(slot, &shard->inside, 1);
    ccmr__census_fence();
}

/** The last access to the census on the way down. */
static inline void ccmr__census_leave(ccmr__shard *shard, unsigned slot)
{
    if (__builtin_expect(slot != CCMR__SLOT_SHARED, 1)) {
        atomic_store_explicit(
            &shard->inside,
            atomic_load_explicit(&shard->inside, memory_order_relaxed) - 1,
            memory_order_release);
    } else {
        atomic_fetch_sub_explicit(&shard->inside, 1, memory_order_release);
    }
}

#endif /* CCMR_LIB_CENSUS_H */
