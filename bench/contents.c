/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/contents.h"

#include <inttypes.h>
#include <stdlib.h>

#include <cucoremr/buffer.h>

#include "bench/clock.h"
#include "bench/progress.h"
#include "bench/streams.h"
#include "lib/driver.h"

#define STAGING_BYTES ((size_t)64 << 20)
#define MAX_PENDING 1024

/* A block that is live. */
typedef struct filled {
    void *ptr; /* what the contender gave */
    size_t op; /* that allocated it */
    uint32_t pattern;
    uint16_t stream;
} filled;

/* A copy that is under way. */
typedef struct pending {
    const uint32_t *copy;
    size_t words;
    size_t op;
    uint32_t pattern;
} pending;

typedef struct checker {
    const plan *what;
    const machine *where;
    result *found;
    instance on;
    stream_set streams;
    filled *blocks;
    CUevent event;
    char *staging;
    size_t staging_bytes;
    size_t staged;
    pending waiting[MAX_PENDING];
    size_t waiting_count;
    samples operation;
    samples allocation;
    samples free;
    uint64_t live;
    uint64_t peak_reserved;
} checker;

/* A driver call of the check itself. */
static bool did(checker *in, CUresult res, const char *call)
{
    const char *name = "?";

    if (res == CUDA_SUCCESS) {
        return true;
    }
    (void)CCMR__CU(cuGetErrorName)(res, &name);
    result_fail(in->found, "%s: %s", call, name);
    return false;
}

static void compare(checker *in, const uint32_t *words, size_t count,
                    uint32_t pattern, size_t at)
{
    for (size_t i = 0; i < count; i++) {
        if (words[i] != pattern) {
            result_fail(in->found,
                        "operation %zu: block of %zu bytes allocated on "
                        "stream %u holds 0x%08" PRIx32 " at byte %zu, not "
                        "0x%08" PRIx32,
                        at + 1, 4 * count,
                        in->what->sequences[0].ops[at].stream, words[i], 4 * i,
                        pattern);
            break;
        }
    }
    in->found->checked_bytes += 4 * count;
}

/* Wait for all streams, and compare what was copied. */
static void settle(checker *in)
{
    if (stream_set_wait(&in->streams) != CCMR_SUCCESS) {
        result_fail(in->found, "%s", ccmr_last_error()->message);
        in->waiting_count = 0;
    }
    for (size_t i = 0; i < in->waiting_count; i++) {
        const pending *one = &in->waiting[i];

        compare(in, one->copy, one->words, one->pattern, one->op);
    }
    in->waiting_count = 0;
    in->staged = 0;
}

static void fill(checker *in, const filled *block, size_t bytes)
{
    void *memory = instance_memory(&in->on, block->ptr);

    if (in->on.device_accessible) {
        (void)did(in,
                  CCMR__CU(cuMemsetD32Async)(
                      (CUdeviceptr)(uintptr_t)memory, block->pattern,
                      bytes / 4, in->streams.streams[block->stream]),
                  CCMR__CU_NAME(cuMemsetD32Async));
        return;
    }
    for (size_t i = 0; i < bytes / 4; i++) {
        ((uint32_t *)memory)[i] = block->pattern;
    }
}

static void allocate(checker *in, size_t at)
{
    const op *what = &in->what->sequences[0].ops[at];
    filled *block = &in->blocks[what->block];
    figures now;
    uint64_t before = clock_now();
    ccmr_status status;

    *block = (filled){.op = at,
                      .stream = what->stream,
                      .pattern = (uint32_t)at * UINT32_C(2654435761) + 1};
    status = in->on.allocate(in->on.self, what->bytes, 0,
                             in->streams.streams[what->stream], &block->ptr);
    samples_add(&in->allocation,
                clock_less(clock_now() - before, in->where->clock_cost));
    if (status != CCMR_SUCCESS) {
        block->ptr = NULL;
        result_fail(in->found,
                    "operation %zu: allocate of %" PRIu64
                    " bytes with %" PRIu64 " live: %s: %s",
                    at + 1, what->bytes, in->live, ccmr_status_name(status),
                    ccmr_last_error()->message);
        return;
    }
    in->live += what->bytes;
    if (in->live > in->found->peak_live) {
        in->found->peak_live = in->live;
    }
    if (instance_figures(&in->on, &now)) {
        in->found->peak_reserved = now.peak_reserved;
        if (now.reserved > in->peak_reserved) {
            in->peak_reserved = now.reserved;
        }
    }
    fill(in, block, what->bytes);
}

/* Copy the block back in the order of `stream`. */
static void copy_back(checker *in, const filled *block, size_t bytes,
                      ccmr_stream stream)
{
    void *memory = instance_memory(&in->on, block->ptr);
    char *to;

    if (!in->on.device_accessible) {
        compare(in, memory, bytes / 4, block->pattern, block->op);
        return;
    }
    if (in->staged + bytes > in->staging_bytes ||
        in->waiting_count == MAX_PENDING) {
        settle(in);
    }
    to = in->staging + in->staged;
    if (did(in,
            CCMR__CU(cuMemcpyAsync)((CUdeviceptr)(uintptr_t)to,
                                    (CUdeviceptr)(uintptr_t)memory, bytes,
                                    stream),
            CCMR__CU_NAME(cuMemcpyAsync))) {
        in->waiting[in->waiting_count++] =
            (pending){.copy = (const uint32_t *)(void *)to,
                      .words = bytes / 4,
                      .op = block->op,
                      .pattern = block->pattern};
        in->staged += bytes;
    }
}

static void give_back(checker *in, const op *what)
{
    filled *block = &in->blocks[what->block];
    ccmr_stream stream = in->streams.streams[what->stream];
    ccmr_status status;
    uint64_t before;

    if (block->ptr == NULL) {
        return;
    }
    if (what->stream != block->stream) {
        ccmr_stream from = in->streams.streams[block->stream];

        (void)did(in, CCMR__CU(cuEventRecord)(in->event, from),
                  CCMR__CU_NAME(cuEventRecord));
        (void)did(in, CCMR__CU(cuStreamWaitEvent)(stream, in->event, 0),
                  CCMR__CU_NAME(cuStreamWaitEvent));
    }
    copy_back(in, block, what->bytes, stream);
    /* A buffer whose close names no stream is freed on the recorded one. */
    if (in->on.who->buffers && what->stream != block->stream &&
        ccmr_buffer_set_stream(block->ptr, stream) != CCMR_SUCCESS) {
        result_fail(in->found, "%s", ccmr_last_error()->message);
    }
    before = clock_now();
    status =
        in->on.deallocate(in->on.self, block->ptr, what->bytes, 0, stream);
    samples_add(&in->free,
                clock_less(clock_now() - before, in->where->clock_cost));
    if (status != CCMR_SUCCESS) {
        result_fail(in->found, "free of %" PRIu64 " bytes: %s: %s",
                    what->bytes, ccmr_status_name(status),
                    ccmr_last_error()->message);
    }
    in->live -= what->bytes;
    block->ptr = NULL;
}

static void carry_out_all(checker *in)
{
    const sequence *does = &in->what->sequences[0];

    for (size_t i = 0; i < does->count; i++) {
        if (does->ops[i].free == 0) {
            allocate(in, i);
        } else {
            give_back(in, &does->ops[i]);
        }
    }
    for (size_t i = 0; i < does->blocks; i++) {
        const filled *block = &in->blocks[i];

        if (block->ptr != NULL) {
            op last = does->ops[block->op];

            give_back(in, &last);
        }
    }
    settle(in);
}

static bool prepare(checker *in)
{
    const sequence *does = &in->what->sequences[0];
    void *staging = NULL;

    in->blocks = calloc(does->blocks, sizeof(*in->blocks));
    if (in->blocks == NULL || !samples_reserve(&in->operation, does->count) ||
        !samples_reserve(&in->allocation, does->count) ||
        !samples_reserve(&in->free, does->count)) {
        result_fail(in->found, "out of memory");
        return false;
    }
    in->staging_bytes = STAGING_BYTES;
    if (in->staging_bytes < in->what->max_bytes + 4) {
        in->staging_bytes = in->what->max_bytes + 4;
    }
    if (!did(in, CCMR__CU(cuMemHostAlloc)(&staging, in->staging_bytes, 0),
             CCMR__CU_NAME(cuMemHostAlloc))) {
        return false;
    }
    in->staging = staging;
    return did(in,
               CCMR__CU(cuEventCreate)(&in->event, CU_EVENT_DISABLE_TIMING),
               CCMR__CU_NAME(cuEventCreate));
}

/* Sums of an allocation and the free before it stand for operations. */
static void conclude(checker *in)
{
    result *found = in->found;
    size_t pairs = in->free.count < in->allocation.count
                       ? in->free.count
                       : in->allocation.count;

    for (size_t i = 0; i < pairs; i++) {
        samples_add(&in->operation,
                    in->allocation.values[i] + in->free.values[i]);
    }
    found->operation = samples_summary(&in->operation);
    found->allocation = samples_summary(&in->allocation);
    found->free = samples_summary(&in->free);
    found->ns_median = found->operation.mean;
    found->ns_least = found->operation.mean;
    found->ns_most = found->operation.mean;
    found->operations = pairs;
    found->repetitions = found->failures == 0;
    if (found->peak_reserved == FIGURE_UNKNOWN && in->peak_reserved > 0) {
        found->peak_reserved = in->peak_reserved;
    }
}

static void check(checker *in, const contender *who)
{
    const instance_options options = {.device = in->where->device};
    ccmr_status status = instance_open(&in->on, who, &options);

    if (status != CCMR_SUCCESS) {
        result_fail(in->found, "cannot be set up: %s: %s",
                    ccmr_status_name(status), ccmr_last_error()->message);
        return;
    }
    if (!in->on.device_accessible && !in->on.host_accessible) {
        result_fail(in->found, "there is no memory that could be checked");
    } else if (prepare(in)) {
        carry_out_all(in);
        conclude(in);
    }
    instance_close(&in->on);
}

void contents_check(const plan *what, const contender *who,
                    const machine *where, bool registered, result *found)
{
    checker *in = calloc(1, sizeof(*in));

    *found = (result){.what = what,
                      .name = who->name,
                      .registered = registered,
                      .threads = 1,
                      .streams = what->streams,
                      .peak_reserved = FIGURE_UNKNOWN};
    if (in == NULL) {
        result_fail(found, "out of memory");
        return;
    }
    *in = (checker){.what = what, .where = where, .found = found};
    progress_show("contents: %s", who->name);
    if (stream_set_open(&in->streams, what->streams, SIZE_MAX, registered,
                        where->device) != CCMR_SUCCESS) {
        result_fail(found, "no streams: %s", ccmr_last_error()->message);
        free(in);
        return;
    }
    check(in, who);
    stream_set_close(&in->streams);
    if (in->event != NULL) {
        (void)CCMR__CU(cuEventDestroy)(in->event);
    }
    if (in->staging != NULL) {
        (void)CCMR__CU(cuMemFreeHost)(in->staging);
    }
    free(in->blocks);
    samples_free(&in->operation);
    samples_free(&in->allocation);
    samples_free(&in->free);
    progress_end();
    free(in);
}
