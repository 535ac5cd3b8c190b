/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is found, as text. A report allocates; nothing else than a report is
 * lost where that fails.
 */
#include "resources/tracking/report.h"

#include <stdio.h>
#include <stdlib.h>

#include "lib/error.h"

#if defined(__has_include)
#if __has_include(<execinfo.h>)
#include <execinfo.h>
#define HAVE_TRACES 1
#endif
#endif

typedef unsigned long long number;

static ccmr_status fail_known(ccmr_status status, const char *what,
                              const ccmr__record *known)
{
    return ccmr__fail(status,
                      "%s: block %llu at %p, %zu bytes aligned to %zu, "
                      "allocated on stream %p by thread %llu",
                      what, (number)known->number, known->ptr, known->bytes,
                      known->alignment, (void *)known->allocated.stream,
                      (number)known->allocated.thread);
}

ccmr_status ccmr__tracking_fail(ccmr__verdict verdict, const void *ptr,
                                size_t bytes, size_t alignment,
                                const ccmr__record *known)
{
    char what[96];

    switch (verdict) {
    case CCMR__FREE_WRONG_BYTES:
        (void)snprintf(what, sizeof(what), "a free with %zu bytes", bytes);
        return fail_known(CCMR_ERROR_INVALID_SIZE, what, known);
    case CCMR__FREE_WRONG_ALIGNMENT:
        (void)snprintf(what, sizeof(what), "a free with alignment %zu",
                       alignment);
        return fail_known(CCMR_ERROR_INVALID_ALIGNMENT, what, known);
    case CCMR__FREE_INSIDE:
        (void)snprintf(what, sizeof(what), "a free of %p, inside of a block",
                       ptr);
        return fail_known(CCMR_ERROR_INVALID_POINTER, what, known);
    case CCMR__FREE_TWICE:
        (void)snprintf(
            what, sizeof(what), "freed already on stream %p by thread %llu",
            (void *)known->freed.stream, (number)known->freed.thread);
        return fail_known(CCMR_ERROR_INVALID_POINTER, what, known);
    default:
        return ccmr__fail(CCMR_ERROR_INVALID_POINTER,
                          "%p is no live block: not allocated here, or freed "
                          "long ago",
                          ptr);
    }
}

static void write_frames(FILE *to, void *const *frames, unsigned count)
{
#ifdef HAVE_TRACES
    char **names = backtrace_symbols(frames, (int)count);
    unsigned i;

    for (i = 0; i < count; i++) {
        if (names != NULL) {
            (void)fprintf(to, "    %s\n", names[i]);
        } else {
            (void)fprintf(to, "    %p\n", frames[i]);
        }
    }
    free(names);
#else
    (void)to;
    (void)frames;
    (void)count;
#endif
}

static void write_trace(FILE *to, const char *when, const ccmr__trace *trace)
{
    if (trace->count != 0) {
        (void)fprintf(to, "  %s:\n", when);
        write_frames(to, trace->frames, trace->count);
    }
}

static void send(const ccmr__tracking_report *report, const char *text,
                 size_t length)
{
    if (report->sink != NULL) {
        report->sink(report->context, text, length);
    } else {
        (void)fwrite(text, 1, length, stderr);
    }
}

void ccmr__report_refusal(const ccmr__tracking_report *report,
                          const char *message, const ccmr__trace *traces)
{
    char *text = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);
    ccmr__trace now;

    if (to == NULL) {
        return;
    }
    (void)fprintf(to, "tracking: refused: %s\n", message);
    if (traces != NULL) {
        ccmr__trace_take(&now);
        write_trace(to, "allocated", &traces[0]);
        write_trace(to, "freed", &traces[1]);
        write_trace(to, "refused", &now);
    }
    if (fclose(to) == 0) {
        send(report, text, length);
    }
    free(text);
}

static void write_blocks(FILE *to, const ccmr_tracking_block *blocks,
                         size_t count)
{
    size_t i;

    for (i = 0; i < count; i++) {
        const ccmr_tracking_block *block = &blocks[i];

        (void)fprintf(to,
                      "  block %llu at %p: %zu bytes aligned to %zu, "
                      "allocated on stream %p by thread %llu\n",
                      (number)block->number, block->ptr, block->bytes,
                      block->alignment, (void *)block->stream,
                      (number)block->thread);
        write_frames(to, block->frames, block->frame_count);
    }
}

void ccmr__report_blocks(const ccmr__tracking_report *report,
                         ccmr__blocks *blocks, int at_exit)
{
    ccmr_tracking_block *copies;
    char *text = NULL;
    size_t length = 0;
    size_t bytes = 0;
    size_t count;
    size_t i;
    FILE *to;

    if (ccmr__blocks_copy(blocks, at_exit, &copies, &count) != 0 ||
        count == 0) {
        return;
    }
    to = open_memstream(&text, &length);
    if (to != NULL) {
        for (i = 0; i < count; i++) {
            bytes += copies[i].bytes;
        }
        (void)fprintf(to, "tracking: %zu block%s of %zu bytes %s live %s\n",
                      count, count == 1 ? "" : "s", bytes,
                      count == 1 ? "is" : "are",
                      at_exit ? "at exit" : "at the last release");
        write_blocks(to, copies, count);
        if (fclose(to) == 0) {
            send(report, text, length);
        }
        free(text);
    }
    free(copies);
}
