/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The live blocks by address, and the last freed ones.
 *
 *     blocks
 *     +---------+---------+ ...
 *     | shard 0 | shard 1 |        by a hash of the address; a lock each
 *     +----+----+---------+
 *          |
 *          +- buckets -> record -> record       live
 *          '- past    -> record -> record       freed, newest first
 *
 * A record is made before the upstream is asked, and moves to the past before
 * the address goes back: so a second free finds it there, and what another
 * thread is given at the same address does not meet it. A record whose free
 * the upstream refuses moves back. While its free is under way (`leaving`) it
 * is not forgotten.
 *
 * Threads: any. No lock is held when a function returns, or over a call of
 * anybody else's.
 */
#ifndef CCMR_RESOURCES_TRACKING_BLOCKS_H
#define CCMR_RESOURCES_TRACKING_BLOCKS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cucoremr/resources/tracking.h>

#define CCMR__TRACKING_SHARDS 64

typedef struct ccmr__trace {
    unsigned count;
    void *frames[CCMR_TRACKING_FRAMES];
} ccmr__trace;

/* One event of a block's life. */
typedef struct ccmr__moment {
    uint64_t thread;
    ccmr_stream stream;
} ccmr__moment;

typedef struct ccmr__record {
    struct ccmr__record *next;     /* in a bucket or in the past */
    struct ccmr__record *previous; /* in the past */
    void *ptr;
    size_t bytes;
    size_t alignment;
    uint64_t number;
    ccmr__moment allocated;
    ccmr__moment freed;
    int leaving;          /* its free is under way */
    ccmr__trace traces[]; /* of the allocation and of the free; or none */
} ccmr__record;

typedef struct ccmr__block_shard {
    _Alignas(64) pthread_mutex_t lock;
    ccmr__record **buckets;
    size_t bucket_count; /* a power of two */
    size_t live;
    ccmr__record *newest;
    ccmr__record *oldest;
    size_t past;
} ccmr__block_shard;

typedef struct ccmr__blocks {
    int traces;
    size_t history; /* of each shard */
    atomic_uint_fast64_t number;
    ccmr__block_shard shards[CCMR__TRACKING_SHARDS];
} ccmr__blocks;

/* What a free was found to be. */
typedef enum ccmr__verdict {
    CCMR__FREE_GOOD,
    CCMR__FREE_WRONG_BYTES,
    CCMR__FREE_WRONG_ALIGNMENT,
    CCMR__FREE_TWICE,
    CCMR__FREE_INSIDE, /* of a live block, not at its start */
    CCMR__FREE_UNKNOWN
} ccmr__verdict;

/** Returns 0, or -1 without memory. `history`: of all shards. */
int ccmr__blocks_init(ccmr__blocks *blocks, int traces, size_t history);
void ccmr__blocks_destroy(ccmr__blocks *blocks);

/** A record to be, with the caller's trace; NULL without memory. */
ccmr__record *ccmr__record_make(ccmr__blocks *blocks, size_t bytes,
                                size_t alignment, ccmr_stream stream);

/** The block came: `record` is the shard's. 0: a block is live there already,
 * `*record` is what that one is, and the new record is the caller's still. */
int ccmr__blocks_add(ccmr__blocks *blocks, ccmr__record *record, void *ptr,
                     ccmr__record *there);

/**
 * A free. CCMR__FREE_GOOD: `*leaving` is in the past and held there until
 * ccmr__blocks_gone() or ccmr__blocks_back(). Else nothing has changed and
 * `*known` is a copy of what is known of the block, without traces (its
 * traces in `traces[2]`); unknown: `known->ptr` is NULL.
 */
ccmr__verdict ccmr__blocks_remove(ccmr__blocks *blocks, void *ptr,
                                  size_t bytes, size_t alignment,
                                  ccmr_stream stream, ccmr__record **leaving,
                                  ccmr__record *known, ccmr__trace *traces);

void ccmr__blocks_gone(ccmr__blocks *blocks, ccmr__record *record);
void ccmr__blocks_back(ccmr__blocks *blocks, ccmr__record *record);

/**
 * Two live blocks that share a byte, of `count` copies, which are put in
 * another order: 1 and which, or 0. Copies of different shards are not of one
 * moment: a pair counts only while both are live.
 */
int ccmr__blocks_overlap(ccmr__blocks *blocks, ccmr_tracking_block *copies,
                         size_t count, ccmr_tracking_block *low,
                         ccmr_tracking_block *high);

/**
 * Is [ptr, ptr + bytes) in one live block? CCMR__FREE_GOOD; _WRONG_BYTES: it
 * ends before that; _TWICE or _UNKNOWN: `ptr` is in none. `*known` as for
 * ccmr__blocks_remove().
 */
ccmr__verdict ccmr__blocks_part(ccmr__blocks *blocks, const void *ptr,
                                size_t bytes, ccmr__record *known);

/** Is a block live at exactly this address? */
int ccmr__blocks_live(ccmr__blocks *blocks, const void *ptr);

/** The live block that an address lies in: 1 or 0. */
int ccmr__blocks_find(ccmr__blocks *blocks, const void *address,
                      ccmr_tracking_block *block);

/**
 * A copy of all live blocks, by number, to be given to free(). Returns 0, or
 * -1 without memory. `try`: shards that are locked are left out (at exit).
 */
int ccmr__blocks_copy(ccmr__blocks *blocks, int try,
                      ccmr_tracking_block **copies, size_t *count);

/** The calling thread's trace, as far as there is one. */
void ccmr__trace_take(ccmr__trace *trace);
/** 0 where there are none. Does now what the first one has to allocate. */
int ccmr__trace_start(void);

/** The system's id of the calling thread. */
uint64_t ccmr__tracking_thread(void);

#endif /* CCMR_RESOURCES_TRACKING_BLOCKS_H */
