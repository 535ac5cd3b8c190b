/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How times grow with threads: a row for each contender, with the nanoseconds
 * of an operation in each thread, and over those of the fewest threads.
 */
#include "bench/report.h"

#include <string.h>

#include "bench/units.h"

#define CELL 16

static bool is_scaling(const result *of)
{
    return strcmp(of->what->scenario, "threads") == 0 && of->repetitions > 0;
}

static bool same_row(const result *one, const result *other)
{
    return one->registered == other->registered &&
           one->what->min_bytes == other->what->min_bytes &&
           one->what->max_bytes == other->what->max_bytes &&
           strcmp(one->name, other->name) == 0;
}

/* A contender's result on so many threads; NULL if there is none. */
static const result *on_threads(const report *what, const result *row,
                                size_t threads)
{
    for (size_t i = 0; i < what->count; i++) {
        const result *one = &what->results[i];

        if (is_scaling(one) && same_row(one, row) && one->threads == threads) {
            return one;
        }
    }
    return NULL;
}

/* Is it the first of its row? */
static bool is_first(const report *what, size_t at)
{
    for (size_t i = 0; i < at; i++) {
        if (is_scaling(&what->results[i]) &&
            same_row(&what->results[i], &what->results[at])) {
            return false;
        }
    }
    return true;
}

/* The next greater number of threads that there is; 0: none. */
static size_t next_threads(const report *what, size_t after)
{
    size_t next = 0;

    for (size_t i = 0; i < what->count; i++) {
        size_t threads = what->results[i].threads;

        if (is_scaling(&what->results[i]) && threads > after &&
            (next == 0 || threads < next)) {
            next = threads;
        }
    }
    return next;
}

static void row_put(FILE *to, const report *what, const result *row)
{
    const result *least = NULL;

    (void)fprintf(to, "  %-44.44s%s", row->name,
                  row->registered ? " reg." : "     ");
    for (size_t threads = next_threads(what, 0); threads != 0;
         threads = next_threads(what, threads)) {
        const result *one = on_threads(what, row, threads);
        char ns[UNITS_TEXT];
        char cell[CELL + UNITS_TEXT] = "-";

        if (one != NULL) {
            least = least == NULL ? one : least;
            (void)snprintf(
                cell, sizeof(cell), "%s (%.1f)", units_ns(one->ns_median, ns),
                least->ns_median > 0 ? one->ns_median / least->ns_median : 0);
        }
        (void)fprintf(to, " %*s", CELL, cell);
    }
    (void)fputc('\n', to);
}

void report_threads(FILE *to, const report *what)
{
    size_t threads = next_threads(what, 0);

    if (threads == 0 || next_threads(what, threads) == 0) {
        return;
    }
    (void)fputs("\nthreads: ns/op in each, and over the first column's; 1.0 "
                "is best\n  ",
                to);
    (void)fprintf(to, "%-49s", "");
    for (; threads != 0; threads = next_threads(what, threads)) {
        (void)fprintf(to, " %*zu", CELL, threads);
    }
    (void)fputc('\n', to);
    for (size_t i = 0; i < what->count; i++) {
        if (is_scaling(&what->results[i]) && is_first(what, i)) {
            row_put(to, what, &what->results[i]);
        }
    }
    (void)fputc('\n', to);
}
