/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the traces are that come with the bench.
 */
#ifndef CCMR_BENCH_TRACE_FILES_H
#define CCMR_BENCH_TRACE_FILES_H

#include <stdbool.h>
#include <stddef.h>

#define TRACE_PATH 4096

/** Their folder, NULL if it cannot be found; static. */
const char *trace_files_folder(void);

/** The i-th name, "gnn_train"; NULL past the last; static. */
const char *trace_files_get(size_t i);

/**
 * The file that a word on the command line means: a path, else the name of a
 * trace. False if there is neither.
 */
bool trace_files_find(const char *word, char path[TRACE_PATH]);

#endif /* CCMR_BENCH_TRACE_FILES_H */
