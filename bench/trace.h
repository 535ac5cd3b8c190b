/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trace: what a program asked of its allocator, read from a log and checked.
 */
#ifndef CCMR_BENCH_TRACE_H
#define CCMR_BENCH_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/log_row.h"

/* One allocation or free. */
typedef struct trace_event {
    uint64_t bytes;
    uint32_t block;  /* which of `blocks` places; a place is used again */
    uint32_t row;    /* line of the file; the header is row 1 */
    uint16_t stream; /* index of trace.streams */
    uint16_t thread; /* in order of appearance */
    bool free;
} trace_event;

typedef struct trace_stream {
    log_stream_kind kind;
    uint64_t handle; /* as logged */
    uint64_t thread; /* as logged, of a per-thread token */
    size_t events;
} trace_stream;

/* What a trace holds beside its events; nothing here changes after reading. */
typedef struct trace {
    char *name; /* of the file, without folders and .csv.gz */
    char *path;
    trace_event *events;
    size_t count;
    size_t blocks; /* places that events name */
    trace_stream *streams;
    size_t stream_count;
    size_t thread_count;
    uint64_t peak_live_bytes;
    size_t peak_row;
    size_t live_blocks_at_end;
    uint64_t live_bytes_at_end;
    double seconds; /* from the first row to the last */
    /* Rows that make no event. */
    size_t failure_rows; /* allocations that failed when it was recorded */
    size_t empty_rows;   /* 0 bytes at no address */
    /* What `lenient` let pass. */
    size_t unknown_frees;   /* skipped */
    size_t late_frees;      /* rows after their address was given out again */
    size_t wrong_sizes;     /* freed with the allocation's size */
    size_t unreadable_rows; /* skipped */
} trace;

typedef struct trace_options {
    bool lenient;   /* count what cannot be right, and go on */
    uint64_t scale; /* all sizes are taken so many times; 0 is 1 */
} trace_options;

typedef struct trace_error {
    size_t row; /* 0: not about a row */
    char text[256];
} trace_error;

/** Read a log. NULL on failure, described by `error`. */
trace *trace_read(const char *path, const trace_options *options,
                  trace_error *error);

void trace_free(trace *gone);

#endif /* CCMR_BENCH_TRACE_H */
