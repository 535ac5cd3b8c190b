/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One row of an allocation log in RMM's CSV, in its dialects.
 */
#ifndef CCMR_BENCH_LOG_ROW_H
#define CCMR_BENCH_LOG_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum log_action {
    LOG_ALLOCATE,
    LOG_FREE,   /* "free" or "deallocate" */
    LOG_FAILURE /* "allocate failure" */
} log_action;

typedef enum log_stream_kind {
    LOG_STREAM_HANDLE,
    LOG_STREAM_NULL,      /* 0, (nil), or the token of the legacy stream */
    LOG_STREAM_PER_THREAD /* the token 2: another stream on each thread */
} log_stream_kind;

typedef struct log_row {
    log_action action;
    uint64_t pointer;
    uint64_t bytes;
    bool has_bytes; /* a free's size may be left empty */
    log_stream_kind stream_kind;
    uint64_t stream;
    uint64_t thread;
    int64_t time; /* in microseconds: since midnight, or since 1970 */
    bool clock;   /* since midnight */
} log_row;

/* Where each column is; -1: it is not there. */
typedef struct log_columns {
    int thread;
    int time;
    int action;
    int pointer;
    int size;
    int stream;
} log_columns;

/**
 * Understand the first line of a log. Returns 1 if it names the columns (in
 * any order, among others), 2 if it is a row already, of the six columns in
 * RMM's order, and 0 if it is neither: then `message` says why.
 */
int log_columns_read(log_columns *columns, const char *line, char *message,
                     size_t size);

/** Read a row; false: `message` says what is wrong. `line` is changed. */
bool log_row_read(log_row *row, const log_columns *columns, char *line,
                  char *message, size_t size);

#endif /* CCMR_BENCH_LOG_ROW_H */
