/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loops that carry operations out. Nothing is in them but the calls, the
 * operations' own reading and, where each is timed, the clock.
 */
#include "bench/run.h"

#include <stdio.h>

#include "bench/clock.h"
#include "bench/driver_count.h"
#include "lib/driver.h"

/*
 * One operation. A failed allocation leaves no block: its free is then left
 * out. Always inlined, so that the plain and the timed loop do the same.
 */
static inline __attribute__((always_inline)) ccmr_status carry_out(
    const op *what, void **blocks, const ccmr_stream *streams,
    const instance *on)
{
    void **block = &blocks[what->block];

    if (what->free == 0) {
        *block = NULL;
        return on->allocate(on->self, what->bytes, 0, streams[what->stream],
                            block);
    }
    if (*block == NULL) {
        return CCMR_SUCCESS;
    }
    return on->deallocate(on->self, *block, what->bytes, 0,
                          streams[what->stream]);
}

void loop_plain(lane *in, size_t first, size_t last)
{
    const instance on = *in->of->on;
    const ccmr_stream *streams = in->of->streams;
    const op *next = in->does->ops + first;
    const op *end = in->does->ops + last;
    void **blocks = in->blocks;
    size_t failures = 0;

    for (; next != end; next++) {
        failures += carry_out(next, blocks, streams, &on) != CCMR_SUCCESS;
    }
    in->failures += failures;
}

/* Each reading of the clock ends one operation and starts the next. */
void loop_timed(lane *in, size_t first, size_t last)
{
    const instance on = *in->of->on;
    const ccmr_stream *streams = in->of->streams;
    const op *ops = in->does->ops;
    void **blocks = in->blocks;
    uint32_t *ns = in->ns + (first - in->does->prologue);
    size_t failures = 0;
    uint64_t before = clock_now();

    for (size_t i = first; i < last; i++) {
        uint64_t now;

        failures += carry_out(&ops[i], blocks, streams, &on) != CCMR_SUCCESS;
        now = clock_now();
        *ns++ =
            now - before < UINT32_MAX ? (uint32_t)(now - before) : UINT32_MAX;
        before = now;
    }
    in->failures += failures;
}

static void raise_to(atomic_uint_fast64_t *peak, uint64_t value)
{
    uint_fast64_t seen = atomic_load_explicit(peak, memory_order_relaxed);

    while (value > seen && !atomic_compare_exchange_weak_explicit(
                               peak, &seen, value, memory_order_relaxed,
                               memory_order_relaxed)) {
    }
}

/* Work of the block's own stream on it, so that its free is not finished
 * before that is. */
static void write_block(const lane *in, const op *what)
{
    uint64_t bytes = in->of->watch.write_bytes;
    const void *memory = instance_memory(in->of->on, in->blocks[what->block]);

    bytes = bytes < what->bytes ? bytes : what->bytes;
    if (bytes > 0 && memory != NULL && in->of->on->device_accessible) {
        driver_count_pause(true);
        (void)CCMR__CU(cuMemsetD8Async)((CUdeviceptr)(uintptr_t)memory, 0xA5,
                                        bytes, in->of->streams[what->stream]);
        driver_count_pause(false);
    }
}

static void note_failure(lane *in, size_t at, ccmr_status status)
{
    const op *what = &in->does->ops[at];

    in->failures++;
    if (in->first.set) {
        return;
    }
    in->first = (failure){.set = true,
                          .op = at,
                          .free = what->free != 0,
                          .bytes = what->bytes,
                          .live = atomic_load(&in->of->watch.live),
                          .status = status};
    (void)snprintf(in->first.text, sizeof(in->first.text), "%s",
                   ccmr_last_error()->message);
}

static void note_reserved(observer *watch, const instance *on, size_t at)
{
    timeline *line = watch->line;
    uint64_t live = atomic_load_explicit(&watch->live, memory_order_relaxed);
    bool point = line != NULL && line->interval != 0 &&
                 at % line->interval == 0 && line->count < line->room;
    figures now;

    if (line != NULL && live > line->live) {
        line->live = live;
    }
    if (!point && !watch->watch_reserved) {
        return;
    }
    driver_count_pause(true);
    if (!instance_figures(on, &now)) {
        now.reserved = FIGURE_UNKNOWN;
    } else if (watch->watch_reserved) {
        raise_to(&watch->peak_reserved, now.reserved);
    }
    driver_count_pause(false);
    if (point) {
        line->points[line->count++] = (timeline_point){
            .op = at, .live = line->live, .reserved = now.reserved};
        line->live = live;
    }
}

void loop_observed(lane *in, size_t first, size_t last)
{
    const run *of = in->of;
    observer *watch = &in->of->watch;

    for (size_t i = first; i < last; i++) {
        const op *what = &in->does->ops[i];
        bool had = in->blocks[what->block] != NULL;
        ccmr_status status = carry_out(what, in->blocks, of->streams, of->on);

        if (status != CCMR_SUCCESS) {
            note_failure(in, i, status);
        } else if (what->free == 0) {
            uint64_t live =
                atomic_fetch_add(&watch->live, what->bytes) + what->bytes;

            raise_to(&watch->peak_live, live);
            write_block(in, what);
        } else if (had) {
            (void)atomic_fetch_sub(&watch->live, what->bytes);
            in->blocks[what->block] = NULL;
        }
        note_reserved(watch, of->on, i);
        if (watch->work != NULL) {
            work_step(watch->work);
        }
        if (watch->stop_at_failure && in->failures > 0) {
            in->ran = i + 1;
            return;
        }
    }
    in->ran = last;
}
