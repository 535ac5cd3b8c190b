/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Live blocks by address, and the past.
 */
#include "resources/tracking/blocks.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_BUCKETS ((size_t)64)

int ccmr__blocks_init(ccmr__blocks *blocks, int traces, size_t history)
{
    int i;

    memset(blocks, 0, sizeof(*blocks));
    blocks->traces = traces;
    blocks->history = history / CCMR__TRACKING_SHARDS +
                      (history % CCMR__TRACKING_SHARDS != 0 ? 1 : 0);
    for (i = 0; i < CCMR__TRACKING_SHARDS; i++) {
        ccmr__block_shard *shard = &blocks->shards[i];

        shard->buckets = calloc(FIRST_BUCKETS, sizeof(*shard->buckets));
        shard->bucket_count = FIRST_BUCKETS;
        if (shard->buckets == NULL ||
            pthread_mutex_init(&shard->lock, NULL) != 0) {
            free(shard->buckets);
            break;
        }
    }
    if (i == CCMR__TRACKING_SHARDS) {
        return 0;
    }
    while (i-- > 0) {
        (void)pthread_mutex_destroy(&blocks->shards[i].lock);
        free(blocks->shards[i].buckets);
    }
    return -1;
}

static void free_list(ccmr__record *record)
{
    while (record != NULL) {
        ccmr__record *next = record->next;

        free(record);
        record = next;
    }
}

void ccmr__blocks_destroy(ccmr__blocks *blocks)
{
    int i;

    for (i = 0; i < CCMR__TRACKING_SHARDS; i++) {
        ccmr__block_shard *shard = &blocks->shards[i];
        size_t at;

        for (at = 0; at < shard->bucket_count; at++) {
            free_list(shard->buckets[at]);
        }
        free_list(shard->newest);
        free(shard->buckets);
        (void)pthread_mutex_destroy(&shard->lock);
    }
}

/* ---- one shard, under its lock ------------------------------------------ */

/* Addresses are multiples of 256 as a rule: what differs goes to the top. */
static uint64_t hash(const void *ptr)
{
    return (uint64_t)(uintptr_t)ptr * UINT64_C(0x9e3779b97f4a7c15);
}

static ccmr__block_shard *shard_of(ccmr__blocks *blocks, const void *ptr)
{
    return &blocks->shards[hash(ptr) >> 58];
}

static ccmr__record **bucket_of(ccmr__block_shard *shard, const void *ptr)
{
    return &shard->buckets[(hash(ptr) >> 26) & (shard->bucket_count - 1)];
}

/* The link to the live block at an address; to NULL where there is none. */
static ccmr__record **link_of(ccmr__block_shard *shard, const void *ptr)
{
    ccmr__record **link = bucket_of(shard, ptr);

    while (*link != NULL && (*link)->ptr != ptr) {
        link = &(*link)->next;
    }
    return link;
}

/* Without memory for it chains become longer. */
static void grow(ccmr__block_shard *shard)
{
    size_t count = shard->bucket_count;
    ccmr__record **old = shard->buckets;
    ccmr__record **made;
    size_t i;

    if (count > SIZE_MAX / 2 / sizeof(*made)) {
        return;
    }
    made = calloc(count * 2, sizeof(*made));
    if (made == NULL) {
        return;
    }
    shard->buckets = made;
    shard->bucket_count = count * 2;
    for (i = 0; i < count; i++) {
        while (old[i] != NULL) {
            ccmr__record *record = old[i];
            ccmr__record **bucket = bucket_of(shard, record->ptr);

            old[i] = record->next;
            record->next = *bucket;
            *bucket = record;
        }
    }
    free(old);
}

static void put_live(ccmr__block_shard *shard, ccmr__record *record)
{
    ccmr__record **bucket = bucket_of(shard, record->ptr);

    record->next = *bucket;
    *bucket = record;
    shard->live++;
}

static void put_past(ccmr__block_shard *shard, ccmr__record *record)
{
    record->previous = NULL;
    record->next = shard->newest;
    if (shard->newest != NULL) {
        shard->newest->previous = record;
    } else {
        shard->oldest = record;
    }
    shard->newest = record;
    shard->past++;
}

static void take_past(ccmr__block_shard *shard, ccmr__record *record)
{
    if (record->previous != NULL) {
        record->previous->next = record->next;
    } else {
        shard->newest = record->next;
    }
    if (record->next != NULL) {
        record->next->previous = record->previous;
    } else {
        shard->oldest = record->previous;
    }
    shard->past--;
}

/* The oldest ones that the history has no room for; to be freed. */
static ccmr__record *forget(ccmr__blocks *blocks, ccmr__block_shard *shard)
{
    ccmr__record *gone = NULL;

    while (shard->past > blocks->history && !shard->oldest->leaving) {
        ccmr__record *record = shard->oldest;

        take_past(shard, record);
        record->next = gone;
        gone = record;
    }
    return gone;
}

/* ---- life of a record --------------------------------------------------- */

ccmr__record *ccmr__record_make(ccmr__blocks *blocks, size_t bytes,
                                size_t alignment, ccmr_stream stream)
{
    size_t traces = blocks->traces ? 2 * sizeof(ccmr__trace) : 0;
    ccmr__record *record = malloc(sizeof(*record) + traces);

    if (record == NULL) {
        return NULL;
    }
    *record = (ccmr__record){
        .bytes = bytes,
        .alignment = alignment,
        .number = 1 + atomic_fetch_add_explicit(&blocks->number, 1,
                                                memory_order_relaxed),
        .allocated = {ccmr__tracking_thread(), stream},
    };
    if (blocks->traces) {
        ccmr__trace_take(&record->traces[0]);
        record->traces[1].count = 0;
    }
    return record;
}

int ccmr__blocks_add(ccmr__blocks *blocks, ccmr__record *record, void *ptr,
                     ccmr__record *there)
{
    ccmr__block_shard *shard = shard_of(blocks, ptr);
    ccmr__record *other;

    record->ptr = ptr;
    (void)pthread_mutex_lock(&shard->lock);
    other = *link_of(shard, ptr);
    if (other != NULL) {
        *there = *other;
    } else {
        if (shard->live >= shard->bucket_count) {
            grow(shard);
        }
        put_live(shard, record);
    }
    (void)pthread_mutex_unlock(&shard->lock);
    return other == NULL;
}

static void tell_record(const ccmr__blocks *blocks, const ccmr__record *record,
                        ccmr__record *known, ccmr__trace *traces)
{
    *known = *record;
    if (blocks->traces) {
        memcpy(traces, record->traces, 2 * sizeof(*traces));
    }
}

/* Nothing is live at the address: was it, or is it inside of a block? */
static ccmr__verdict judge_unknown(ccmr__blocks *blocks,
                                   ccmr__block_shard *shard, const void *ptr,
                                   ccmr__record *known, ccmr__trace *traces)
{
    const ccmr__record *record = shard->newest;

    while (record != NULL && record->ptr != ptr) {
        record = record->next;
    }
    if (record == NULL) {
        return CCMR__FREE_UNKNOWN;
    }
    tell_record(blocks, record, known, traces);
    return CCMR__FREE_TWICE;
}

static void tell_block(const ccmr_tracking_block *block, ccmr__record *known)
{
    *known = (ccmr__record){
        .ptr = block->ptr,
        .bytes = block->bytes,
        .alignment = block->alignment,
        .number = block->number,
        .allocated = {block->thread, block->stream},
    };
}

static void judge_inside(ccmr__blocks *blocks, const void *ptr,
                         ccmr__verdict *verdict, ccmr__record *known)
{
    ccmr_tracking_block block;

    if (*verdict == CCMR__FREE_UNKNOWN &&
        ccmr__blocks_find(blocks, ptr, &block)) {
        *verdict = CCMR__FREE_INSIDE;
        tell_block(&block, known);
    }
}

/* From live to the past, until it is known whether it goes. */
static void leave(ccmr__blocks *blocks, ccmr__block_shard *shard,
                  ccmr__record **link, ccmr_stream stream,
                  const ccmr__trace *trace)
{
    ccmr__record *record = *link;

    *link = record->next;
    shard->live--;
    record->leaving = 1;
    record->freed = (ccmr__moment){ccmr__tracking_thread(), stream};
    if (blocks->traces) {
        record->traces[1] = *trace;
    }
    put_past(shard, record);
}

ccmr__verdict ccmr__blocks_remove(ccmr__blocks *blocks, void *ptr,
                                  size_t bytes, size_t alignment,
                                  ccmr_stream stream, ccmr__record **leaving,
                                  ccmr__record *known, ccmr__trace *traces)
{
    ccmr__block_shard *shard = shard_of(blocks, ptr);
    ccmr__verdict verdict = CCMR__FREE_GOOD;
    ccmr__record **link;
    ccmr__trace trace;

    if (blocks->traces) {
        ccmr__trace_take(&trace);
    }
    (void)pthread_mutex_lock(&shard->lock);
    link = link_of(shard, ptr);
    *leaving = *link;
    if (*link == NULL) {
        verdict = judge_unknown(blocks, shard, ptr, known, traces);
    } else if ((*link)->bytes != bytes) {
        verdict = CCMR__FREE_WRONG_BYTES;
        tell_record(blocks, *link, known, traces);
    } else if ((*link)->alignment != alignment) {
        verdict = CCMR__FREE_WRONG_ALIGNMENT;
        tell_record(blocks, *link, known, traces);
    } else {
        leave(blocks, shard, link, stream, &trace);
    }
    (void)pthread_mutex_unlock(&shard->lock);
    judge_inside(blocks, ptr, &verdict, known);
    return verdict;
}

void ccmr__blocks_gone(ccmr__blocks *blocks, ccmr__record *record)
{
    ccmr__block_shard *shard = shard_of(blocks, record->ptr);
    ccmr__record *forgotten;

    (void)pthread_mutex_lock(&shard->lock);
    record->leaving = 0;
    forgotten = forget(blocks, shard);
    (void)pthread_mutex_unlock(&shard->lock);
    free_list(forgotten);
}

void ccmr__blocks_back(ccmr__blocks *blocks, ccmr__record *record)
{
    ccmr__block_shard *shard = shard_of(blocks, record->ptr);

    (void)pthread_mutex_lock(&shard->lock);
    record->leaving = 0;
    take_past(shard, record);
    put_live(shard, record);
    (void)pthread_mutex_unlock(&shard->lock);
}

int ccmr__blocks_live(ccmr__blocks *blocks, const void *ptr)
{
    ccmr__block_shard *shard = shard_of(blocks, ptr);
    int live;

    (void)pthread_mutex_lock(&shard->lock);
    live = *link_of(shard, ptr) != NULL;
    (void)pthread_mutex_unlock(&shard->lock);
    return live;
}

ccmr__verdict ccmr__blocks_part(ccmr__blocks *blocks, const void *ptr,
                                size_t bytes, ccmr__record *known)
{
    ccmr__block_shard *shard = shard_of(blocks, ptr);
    ccmr_tracking_block block;
    ccmr__trace traces[2];
    ccmr__verdict verdict;

    if (ccmr__blocks_find(blocks, ptr, &block)) {
        size_t before = (uintptr_t)ptr - (uintptr_t)block.ptr;

        tell_block(&block, known);
        return bytes <= block.bytes - before ? CCMR__FREE_GOOD
                                             : CCMR__FREE_WRONG_BYTES;
    }
    (void)pthread_mutex_lock(&shard->lock);
    verdict = judge_unknown(blocks, shard, ptr, known, traces);
    (void)pthread_mutex_unlock(&shard->lock);
    return verdict;
}

/* ---- copies ------------------------------------------------------------- */

static void copy_record(const ccmr__blocks *blocks, const ccmr__record *record,
                        ccmr_tracking_block *to)
{
    *to = (ccmr_tracking_block){
        .size = sizeof(*to),
        .ptr = record->ptr,
        .bytes = record->bytes,
        .alignment = record->alignment,
        .stream = record->allocated.stream,
        .thread = record->allocated.thread,
        .number = record->number,
    };
    if (blocks->traces) {
        to->frame_count = record->traces[0].count;
        memcpy(to->frames, record->traces[0].frames, sizeof(to->frames));
    }
}

static int is_inside(const ccmr__record *record, const void *address)
{
    return (uintptr_t)address - (uintptr_t)record->ptr < record->bytes;
}

int ccmr__blocks_find(ccmr__blocks *blocks, const void *address,
                      ccmr_tracking_block *block)
{
    int found = 0;
    int i;

    for (i = 0; i < CCMR__TRACKING_SHARDS && !found; i++) {
        ccmr__block_shard *shard = &blocks->shards[i];
        size_t at;

        (void)pthread_mutex_lock(&shard->lock);
        for (at = 0; at < shard->bucket_count && !found; at++) {
            const ccmr__record *record = shard->buckets[at];

            while (record != NULL && !is_inside(record, address)) {
                record = record->next;
            }
            if (record != NULL) {
                copy_record(blocks, record, block);
                found = 1;
            }
        }
        (void)pthread_mutex_unlock(&shard->lock);
    }
    return found;
}

static int by_number(const void *a, const void *b)
{
    const ccmr_tracking_block *first = a;
    const ccmr_tracking_block *second = b;

    return (first->number > second->number) - (first->number < second->number);
}

/* Adds a shard's blocks. Returns -1 without memory. */
static int copy_shard(const ccmr__blocks *blocks,
                      const ccmr__block_shard *shard,
                      ccmr_tracking_block **copies, size_t *count)
{
    ccmr_tracking_block *larger;
    size_t at;

    if (shard->live == 0) {
        return 0;
    }
    if (*count + shard->live > SIZE_MAX / sizeof(**copies)) {
        return -1;
    }
    larger = realloc(*copies, (*count + shard->live) * sizeof(**copies));
    if (larger == NULL) {
        return -1;
    }
    *copies = larger;
    for (at = 0; at < shard->bucket_count; at++) {
        const ccmr__record *record;

        for (record = shard->buckets[at]; record != NULL;
             record = record->next) {
            copy_record(blocks, record, &larger[(*count)++]);
        }
    }
    return 0;
}

int ccmr__blocks_copy(ccmr__blocks *blocks, int try,
                      ccmr_tracking_block **copies, size_t *count)
{
    int ret = 0;
    int i;

    *copies = NULL;
    *count = 0;
    for (i = 0; i < CCMR__TRACKING_SHARDS && ret == 0; i++) {
        ccmr__block_shard *shard = &blocks->shards[i];

        if (!try) {
            (void)pthread_mutex_lock(&shard->lock);
        } else if (pthread_mutex_trylock(&shard->lock) != 0) {
            continue;
        }
        ret = copy_shard(blocks, shard, copies, count);
        (void)pthread_mutex_unlock(&shard->lock);
    }
    if (ret != 0) {
        free(*copies);
        *copies = NULL;
        *count = 0;
        return -1;
    }
    if (*count != 0) {
        qsort(*copies, *count, sizeof(**copies), by_number);
    }
    return 0;
}

/* ---- blocks that overlap ------------------------------------------------ */

static int is_live(ccmr__block_shard *shard, const ccmr_tracking_block *block)
{
    const ccmr__record *record = *link_of(shard, block->ptr);

    return record != NULL && record->number == block->number;
}

/* Which of two copied blocks are live still, at one moment. */
static void look_at_both(ccmr__blocks *blocks, const ccmr_tracking_block *a,
                         const ccmr_tracking_block *b, int *a_lives,
                         int *b_lives)
{
    ccmr__block_shard *of_a = shard_of(blocks, a->ptr);
    ccmr__block_shard *of_b = shard_of(blocks, b->ptr);
    ccmr__block_shard *first = of_a < of_b ? of_a : of_b;
    ccmr__block_shard *second = of_a < of_b ? of_b : of_a;

    (void)pthread_mutex_lock(&first->lock);
    if (second != first) {
        (void)pthread_mutex_lock(&second->lock);
    }
    *a_lives = is_live(of_a, a);
    *b_lives = is_live(of_b, b);
    if (second != first) {
        (void)pthread_mutex_unlock(&second->lock);
    }
    (void)pthread_mutex_unlock(&first->lock);
}

static int by_address(const void *a, const void *b)
{
    uintptr_t first = (uintptr_t)((const ccmr_tracking_block *)a)->ptr;
    uintptr_t second = (uintptr_t)((const ccmr_tracking_block *)b)->ptr;

    return (first > second) - (first < second);
}

/* Those that have gone since drop out, so that neighbours are live ones. */
int ccmr__blocks_overlap(ccmr__blocks *blocks, ccmr_tracking_block *copies,
                         size_t count, ccmr_tracking_block *low,
                         ccmr_tracking_block *high)
{
    size_t kept = 0;
    size_t i;

    if (count != 0) {
        qsort(copies, count, sizeof(*copies), by_address);
    }
    for (i = 0; i < count; i++) {
        int lives = 1;

        while (kept > 0 && lives &&
               (uintptr_t)copies[i].ptr - (uintptr_t)copies[kept - 1].ptr <
                   copies[kept - 1].bytes) {
            int other_lives;

            look_at_both(blocks, &copies[kept - 1], &copies[i], &other_lives,
                         &lives);
            if (other_lives && lives) {
                *low = copies[kept - 1];
                *high = copies[i];
                return 1;
            }
            kept -= !other_lives;
        }
        if (lives) {
            copies[kept++] = copies[i];
        }
    }
    return 0;
}
