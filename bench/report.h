/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Showing results: to people, programs, spreadsheets and eyes.
 */
#ifndef CCMR_BENCH_REPORT_H
#define CCMR_BENCH_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "bench/machine.h"
#include "bench/result.h"

/* All results of a run, those of one plan together. Plans may differ. */
typedef struct report {
    const machine *where;
    const result *results;
    size_t count;
    bool brief; /* table: what matters most */
} report;

/** What the machine is, and the warning that goes with a simulated one. */
void report_machine(FILE *to, const machine *where);

/** Tables, one a plan. */
void report_table(FILE *to, const report *what);

/** How times grow with threads, where several numbers of them were run. */
void report_threads(FILE *to, const report *what);

/** One object, as doc/cucoremr-bench.1 describes it. */
bool report_json(const char *path, const report *what);

/** One row a result. */
bool report_csv(const char *path, const report *what);

/**
 * A picture: `path` ends in .svg, .png or .pdf. Data and gnuplot's script are
 * written beside it; where gnuplot is missing a message says so. The three
 * of these say what went wrong on standard error.
 */
bool report_plot(const char *path, const report *what);

/** Layouts: figures for people, the lines of the dumps, a picture. */
void report_layout(FILE *to, const report *what);
bool report_dump(const char *path, const report *what);
bool report_layout_plot(const char *path, const report *what);

/** Whether a report can be written there, known before anything is measured.
 * Says why not. NULL is fine. */
bool report_can_open(const char *path);

/** Open a file for a report, "-" is standard output; and close it. */
FILE *report_open(const char *path);
bool report_close(const char *path, FILE *file);

#endif /* CCMR_BENCH_REPORT_H */
