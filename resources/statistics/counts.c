/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rare half of the counts: telling, readings, scopes.
 */
#include "resources/statistics/counts.h"

#include <sched.h>
#include <string.h>

/* All steps together are this part of the scope's peak, */
#define STEPS 32
/* and each is at least so much. */
#define STEP_LEAST_BYTES 4096
#define STEP_LEAST_BLOCKS 4

int ccmr__counts_init(ccmr__counts *counts, int exact)
{
    counts->exact = exact;
    if (!exact) {
        atomic_init(&counts->step_bytes, STEP_LEAST_BYTES);
        atomic_init(&counts->step_blocks, STEP_LEAST_BLOCKS);
    }
    return pthread_mutex_init(&counts->lock, NULL) == 0 ? 0 : -1;
}

void ccmr__counts_destroy(ccmr__counts *counts)
{
    (void)pthread_mutex_destroy(&counts->lock);
}

static int64_t load(atomic_int_fast64_t *value)
{
    return atomic_load_explicit(value, memory_order_relaxed);
}

static void store(atomic_int_fast64_t *value, int64_t to)
{
    atomic_store_explicit(value, to, memory_order_relaxed);
}

static unsigned known(ccmr__counts *counts)
{
    return atomic_load_explicit(&counts->slots_known, memory_order_relaxed);
}

/* ---- telling ------------------------------------------------------------ */

static void raise_peak(ccmr__told *told, int64_t to)
{
    int64_t peak = load(&told->peak);

    while (to > peak && !atomic_compare_exchange_weak_explicit(
                            &told->peak, &peak, to, memory_order_relaxed,
                            memory_order_relaxed)) {
    }
}

/* `alone`: nobody else changed what is live, so that the slot's greatest was
 * the sum's. */
static void tell(ccmr__told *told, ccmr__untold *untold, int alone)
{
    int64_t before = atomic_fetch_add_explicit(&told->live, untold->now,
                                               memory_order_relaxed);
    uint64_t more = (uint64_t)(alone ? untold->most : untold->now);

    raise_peak(told, ccmr__count_sum(before, more));
    *untold = (ccmr__untold){0, 0};
}

static int64_t step_of(ccmr__told *told, int64_t least, unsigned slots)
{
    int64_t rise =
        ccmr__count_sum(load(&told->peak), 0 - (uint64_t)load(&told->base));
    int64_t step = rise / STEPS / (int64_t)(slots != 0 ? slots : 1);

    return step > least ? step : least;
}

/* Everybody reads it: written only where it changes. */
static void set_step(atomic_int_fast64_t *step, int64_t to)
{
    if (load(step) != to) {
        store(step, to);
    }
}

static void set_steps(ccmr__counts *counts)
{
    unsigned slots = known(counts);

    if (!counts->exact) {
        set_step(&counts->step_bytes,
                 step_of(&counts->bytes, STEP_LEAST_BYTES, slots));
        set_step(&counts->step_blocks,
                 step_of(&counts->blocks, STEP_LEAST_BLOCKS, slots));
    }
}

void ccmr__counts_tell(ccmr__counts *counts, ccmr__count_slot *slot)
{
    int alone = counts->exact || known(counts) == 1;

    slot->told_bytes =
        ccmr__count_sum(slot->told_bytes, (uint64_t)slot->bytes.now);
    slot->told_blocks += slot->blocks.now;
    tell(&counts->bytes, &slot->bytes, alone);
    tell(&counts->blocks, &slot->blocks, alone);
    set_steps(counts);
}

/* ---- with everybody stopped --------------------------------------------- */

static void stop(ccmr__counts *counts)
{
    int i;

    (void)pthread_mutex_lock(&counts->lock);
    atomic_store_explicit(&counts->stopped, 1, memory_order_relaxed);
    ccmr__census_barrier();
    for (i = 0; i < CCMR__SLOTS; i++) {
        while (atomic_load_explicit(&counts->slots[i].inside,
                                    memory_order_acquire) != 0) {
            (void)sched_yield();
        }
    }
}

static void resume(ccmr__counts *counts)
{
    atomic_store_explicit(&counts->stopped, 0, memory_order_release);
    (void)pthread_mutex_unlock(&counts->lock);
}

static void keep_greater(size_t *of, size_t other)
{
    *of = *of > other ? *of : other;
}

/* By how much the peaks may be wrong, from now on as well. */
static void note_error(ccmr__counts *counts)
{
    unsigned slots = known(counts);

    if (slots > 1) {
        keep_greater(&counts->error_bytes,
                     (uint64_t)load(&counts->step_bytes) * slots);
        keep_greater(&counts->error_blocks,
                     (uint64_t)load(&counts->step_blocks) * slots);
    }
}

static void tell_all(ccmr__counts *counts)
{
    int i;

    note_error(counts);
    for (i = 0; i < CCMR__SLOTS; i++) {
        ccmr__counts_tell(counts, &counts->slots[i]);
    }
    raise_peak(&counts->bytes, load(&counts->bytes.live));
    raise_peak(&counts->blocks, load(&counts->blocks.live));
}

static void add_slot(ccmr_statistics *sum, const ccmr__count_slot *slot)
{
    int i;

    for (i = 0; i < CCMR_STATISTICS_SIZES; i++) {
        sum->sizes[i] += slot->sizes[i];
        sum->allocations += slot->sizes[i];
    }
    sum->allocated_bytes += slot->allocated_bytes;
    sum->live_blocks += slot->told_blocks + slot->blocks.now;
    sum->live_bytes =
        ccmr__count_sum(sum->live_bytes, (uint64_t)slot->told_bytes +
                                             (uint64_t)slot->bytes.now);
    if (slot->largest > sum->largest_bytes) {
        sum->largest_bytes = slot->largest;
    }
}

/* What was freed is what was allocated and is not live. */
static void set_freed(ccmr_statistics *sum)
{
    sum->deallocations = sum->allocations - (uint64_t)sum->live_blocks;
    sum->deallocated_bytes = sum->allocated_bytes - (uint64_t)sum->live_bytes;
}

/* All since creation, but the peaks and the greatest since the last push. */
static void sum_up(ccmr__counts *counts, ccmr_statistics *sum)
{
    int i;

    tell_all(counts);
    *sum = (ccmr_statistics){
        .size = sizeof(*sum),
        .peak_live_blocks = load(&counts->blocks.peak),
        .peak_live_bytes = load(&counts->bytes.peak),
        .peak_error_blocks = counts->error_blocks,
        .peak_error_bytes = counts->error_bytes,
        .largest_bytes = counts->largest,
        .largest_failed_bytes = counts->largest_failed,
        .failures_device = counts->failures_device,
        .failures_host = counts->failures_host,
        .failures_limit = counts->failures_limit,
        .failures_other = counts->failures_other,
        .refused_frees = counts->refused_frees,
        .depth = counts->depth,
    };
    for (i = 0; i < CCMR__SLOTS; i++) {
        add_slot(sum, &counts->slots[i]);
    }
    set_freed(sum);
}

/* What the innermost scope counted of it. */
static void since(ccmr_statistics *sum, const ccmr_statistics *start)
{
    int i;

    for (i = 0; i < CCMR_STATISTICS_SIZES; i++) {
        sum->sizes[i] -= start->sizes[i];
    }
    sum->allocations -= start->allocations;
    sum->allocated_bytes -= start->allocated_bytes;
    sum->live_blocks -= start->live_blocks;
    sum->live_bytes =
        ccmr__count_sum(sum->live_bytes, 0 - (uint64_t)start->live_bytes);
    sum->failures_device -= start->failures_device;
    sum->failures_host -= start->failures_host;
    sum->failures_limit -= start->failures_limit;
    sum->failures_other -= start->failures_other;
    sum->refused_frees -= start->refused_frees;
    sum->peak_live_blocks -= start->live_blocks;
    sum->peak_live_bytes -= start->live_bytes;
    set_freed(sum);
}

static void read_scope(ccmr__counts *counts, ccmr_statistics *statistics)
{
    sum_up(counts, statistics);
    if (counts->scope != NULL) {
        since(statistics, &counts->scope->start);
    }
}

void ccmr__counts_read(ccmr__counts *counts, ccmr_statistics *statistics)
{
    stop(counts);
    read_scope(counts, statistics);
    resume(counts);
}

void ccmr__counts_read_all(ccmr__counts *counts, ccmr_statistics *statistics)
{
    const ccmr__count_scope *scope;

    stop(counts);
    sum_up(counts, statistics);
    for (scope = counts->scope; scope != NULL; scope = scope->outer) {
        if (scope->peak_blocks > statistics->peak_live_blocks) {
            statistics->peak_live_blocks = scope->peak_blocks;
        }
        if (scope->peak_bytes > statistics->peak_live_bytes) {
            statistics->peak_live_bytes = scope->peak_bytes;
        }
        keep_greater(&statistics->peak_error_bytes, scope->error_bytes);
        keep_greater(&statistics->peak_error_blocks, scope->error_blocks);
        keep_greater(&statistics->largest_bytes, scope->largest);
        keep_greater(&statistics->largest_failed_bytes, scope->largest_failed);
    }
    resume(counts);
}

/* All has been told: peaks, steps and errors start from what is live. */
static void start_peaks(ccmr__counts *counts, ccmr__count_scope *scope)
{
    scope->base_bytes = load(&counts->bytes.base);
    scope->base_blocks = load(&counts->blocks.base);
    scope->error_bytes = counts->error_bytes;
    scope->error_blocks = counts->error_blocks;
    store(&counts->bytes.base, load(&counts->bytes.live));
    store(&counts->blocks.base, load(&counts->blocks.live));
    store(&counts->bytes.peak, load(&counts->bytes.live));
    store(&counts->blocks.peak, load(&counts->blocks.live));
    counts->error_bytes = 0;
    counts->error_blocks = 0;
    set_steps(counts);
}

/* What the scope around has, from what the inner one saw of it. */
static void resume_peaks(ccmr__counts *counts, const ccmr__count_scope *scope)
{
    raise_peak(&counts->bytes, scope->peak_bytes);
    raise_peak(&counts->blocks, scope->peak_blocks);
    store(&counts->bytes.base, scope->base_bytes);
    store(&counts->blocks.base, scope->base_blocks);
    keep_greater(&counts->error_bytes, scope->error_bytes);
    keep_greater(&counts->error_blocks, scope->error_blocks);
    set_steps(counts);
}

void ccmr__counts_push(ccmr__counts *counts, ccmr__count_scope *scope)
{
    int i;

    stop(counts);
    sum_up(counts, &scope->start);
    scope->outer = counts->scope;
    scope->peak_bytes = load(&counts->bytes.peak);
    scope->peak_blocks = load(&counts->blocks.peak);
    scope->largest = scope->start.largest_bytes;
    scope->largest_failed = counts->largest_failed;
    start_peaks(counts, scope);
    counts->largest = 0;
    counts->largest_failed = 0;
    for (i = 0; i < CCMR__SLOTS; i++) {
        counts->slots[i].largest = 0;
    }
    counts->scope = scope;
    counts->depth++;
    resume(counts);
}

ccmr__count_scope *ccmr__counts_pop(ccmr__counts *counts,
                                    ccmr_statistics *statistics)
{
    ccmr__count_scope *scope;

    stop(counts);
    scope = counts->scope;
    if (scope != NULL) {
        read_scope(counts, statistics);
        counts->scope = scope->outer;
        counts->depth--;
        resume_peaks(counts, scope);
        keep_greater(&counts->largest, scope->largest);
        keep_greater(&counts->largest_failed, scope->largest_failed);
    }
    resume(counts);
    return scope;
}

int ccmr__counts_audit(ccmr__counts *counts)
{
    ccmr_statistics sum;
    int good;

    stop(counts);
    sum_up(counts, &sum);
    good = sum.live_bytes == load(&counts->bytes.live) &&
           sum.live_blocks == load(&counts->blocks.live);
    resume(counts);
    return good;
}

/* ---- under the lock ----------------------------------------------------- */

/* A slot is used for the first time: more of them tell in smaller steps.
 * Several threads may begin the shared one at once. */
static void slot_begin(ccmr__counts *counts, int *known_yet)
{
    stop(counts);
    if (!*known_yet) {
        tell_all(counts);
        *known_yet = 1;
        atomic_fetch_add_explicit(&counts->slots_known, 1,
                                  memory_order_relaxed);
        set_steps(counts);
        note_error(counts);
    }
    resume(counts);
}

/* The calling thread's slot, which is the caller's until the lock is given
 * back: the thread is not inside it, and nobody reads. */
static ccmr__count_slot *slot_lock(ccmr__counts *counts)
{
    unsigned index = ccmr__thread_self()->slot;
    ccmr__count_slot *slot = &counts->slots[index];

    if (index != CCMR__SLOT_SHARED) {
        ccmr__counts_leave(slot);
        if (!slot->known) {
            slot_begin(counts, &slot->known);
        }
    }
    (void)pthread_mutex_lock(&counts->lock);
    while (index == CCMR__SLOT_SHARED && !counts->shared_known) {
        (void)pthread_mutex_unlock(&counts->lock);
        slot_begin(counts, &counts->shared_known);
        (void)pthread_mutex_lock(&counts->lock);
    }
    return slot;
}

void ccmr__counts_allocation_locked(ccmr__counts *counts, size_t bytes)
{
    ccmr__slot_allocation(counts, slot_lock(counts), bytes);
    (void)pthread_mutex_unlock(&counts->lock);
}

void ccmr__counts_free_locked(ccmr__counts *counts, size_t bytes)
{
    ccmr__slot_free(counts, slot_lock(counts), bytes);
    (void)pthread_mutex_unlock(&counts->lock);
}

static void put_back(ccmr__untold *untold, uint64_t amount)
{
    untold->now = ccmr__count_sum(untold->now, amount);
    if (untold->now > untold->most) {
        untold->most = untold->now;
    }
}

void ccmr__counts_undo_free(ccmr__counts *counts, size_t bytes)
{
    ccmr__count_slot *slot = slot_lock(counts);

    counts->refused_frees++;
    put_back(&slot->bytes, bytes);
    put_back(&slot->blocks, 1);
    if (ccmr__counts_is_step(counts, slot)) {
        ccmr__counts_tell(counts, slot);
    }
    (void)pthread_mutex_unlock(&counts->lock);
}

void ccmr__counts_failure(ccmr__counts *counts, size_t bytes,
                          ccmr_status status)
{
    (void)pthread_mutex_lock(&counts->lock);
    keep_greater(&counts->largest_failed, bytes);
    switch (status) {
    case CCMR_ERROR_OUT_OF_DEVICE_MEMORY:
        counts->failures_device++;
        break;
    case CCMR_ERROR_OUT_OF_HOST_MEMORY:
        counts->failures_host++;
        break;
    case CCMR_ERROR_LIMIT_EXCEEDED:
        counts->failures_limit++;
        break;
    default:
        counts->failures_other++;
        break;
    }
    (void)pthread_mutex_unlock(&counts->lock);
}

int ccmr__counts_read_thread(ccmr__counts *counts, ccmr_statistics *statistics)
{
    unsigned index = ccmr__thread_self()->slot;

    if (index == CCMR__SLOT_SHARED) {
        return 0;
    }
    *statistics = (ccmr_statistics){.size = sizeof(*statistics)};
    (void)pthread_mutex_lock(&counts->lock);
    add_slot(statistics, &counts->slots[index]);
    (void)pthread_mutex_unlock(&counts->lock);
    statistics->largest_bytes = 0; /* scopes start it anew */
    set_freed(statistics);
    return 1;
}
