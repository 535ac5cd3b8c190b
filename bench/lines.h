/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines of a text file, plain or compressed by gzip.
 */
#ifndef CCMR_BENCH_LINES_H
#define CCMR_BENCH_LINES_H

#include <stdbool.h>
#include <stddef.h>

/* One file being read. For one thread. */
typedef struct lines lines;

/**
 * Open a file. Whether it is compressed is decided by its content. NULL on
 * failure: then `message` (of `size` bytes) says why.
 */
lines *lines_open(const char *path, char *message, size_t size);

/**
 * The next line, without its line end (LF or CRLF) and ended by 0; it may be
 * changed, and is good until the next call. Returns 1, 0 at the end of the
 * file, -1 on an error, for which `message` says what is wrong.
 */
int lines_next(lines *from, char **line, char *message, size_t size);

/** Number of the line that lines_next() gave last; the first is 1. */
size_t lines_row(const lines *from);

/** Whether the last line given had no line end: the file stops within it. */
bool lines_cut(const lines *from);

void lines_close(lines *from);

#endif /* CCMR_BENCH_LINES_H */
