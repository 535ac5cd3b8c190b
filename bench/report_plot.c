/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pictures. Beside OUT.svg stand OUT.dat and OUT.gp, what gnuplot made it of:
 *
 *   OUT.dat   blocks parted by two empty lines: first one row a result, for
 *             the bars, if anything was timed; then the timeline of each
 *             result that has one
 *   OUT.gp    a panel of memory for each trace, and one of bars
 */
#include "bench/report.h"

#include "bench/picture.h"
#include "bench/units.h"

#define GIB 1073741824.0

/* Whether two results have a panel for their memory in common. */
static bool same_panel(const result *one, const result *other)
{
    return one->what == other->what && one->registered == other->registered &&
           one->work == other->work;
}

/* What a result is called in a picture. */
static void label_put(FILE *to, const result *of, const report *in)
{
    char label[256];
    bool one_plan = true;

    for (size_t i = 0; i < in->count; i++) {
        one_plan = one_plan && same_panel(&in->results[i], &in->results[0]);
    }
    if (one_plan) {
        (void)snprintf(label, sizeof(label), "%.100s", of->name);
    } else {
        (void)snprintf(label, sizeof(label), "%.100s, %.60s%s", of->name,
                       of->what->label, of->registered ? ", registered" : "");
    }
    picture_quote(to, label);
}

static bool is_timed(const report *what)
{
    for (size_t i = 0; i < what->count; i++) {
        if (what->results[i].repetitions > 0) {
            return true;
        }
    }
    return false;
}

static void times_write(FILE *file, const report *what)
{
    (void)fputs("# label, ns per operation: median, least, most\n", file);
    for (size_t i = 0; i < what->count; i++) {
        const result *one = &what->results[i];

        if (one->repetitions == 0) {
            continue;
        }
        label_put(file, one, what);
        (void)fprintf(file, " %.2f %.2f %.2f\n", one->ns_median, one->ns_least,
                      one->ns_most);
    }
    (void)fputs("\n\n", file);
}

static void timeline_write(FILE *file, const result *of, const report *what)
{
    (void)fputs("# operation, most live GiB since the last row, reserved "
                "GiB: ",
                file);
    label_put(file, of, what);
    (void)fputc('\n', file);
    for (size_t i = 0; i < of->line.count; i++) {
        const timeline_point *point = &of->line.points[i];

        (void)fprintf(file, "%zu %.6f ", point->op, (double)point->live / GIB);
        if (point->reserved == FIGURE_UNKNOWN) {
            (void)fputs("NaN\n", file);
        } else {
            (void)fprintf(file, "%.6f\n", (double)point->reserved / GIB);
        }
    }
    (void)fputs("\n\n", file);
}

static bool data_write(const picture *of, const report *what)
{
    FILE *file = report_open(of->data);

    if (file == NULL) {
        return false;
    }
    if (is_timed(what)) {
        times_write(file, what);
    }
    for (size_t i = 0; i < what->count; i++) {
        const timeline *line = &what->results[i].line;

        if (line->count > 0) {
            timeline_write(file, &what->results[i], what);
        }
    }
    return report_close(of->data, file);
}

/* The first of the results from `at` on that has a timeline. */
static size_t next_timeline(const report *what, size_t at)
{
    while (at < what->count && what->results[at].line.count == 0) {
        at++;
    }
    return at;
}

/* One past the results of the same panel. */
static size_t panel_end(const report *what, size_t first)
{
    size_t at = first;

    while (at < what->count &&
           same_panel(&what->results[at], &what->results[first])) {
        at++;
    }
    return at;
}

static size_t panels(const report *what)
{
    size_t count = 0;

    for (size_t at = next_timeline(what, 0); at < what->count;
         at = next_timeline(what, panel_end(what, at))) {
        count++;
    }
    return count;
}

/* One panel of memory. `block` is the next block of the data. */
static void lines_put(FILE *to, const picture *of, const report *what,
                      size_t first, size_t *block)
{
    const result *one = &what->results[first];
    size_t end = panel_end(what, first);
    char title[512];

    (void)snprintf(title, sizeof(title),
                   "%.300s%s%s%s: memory over its operations",
                   one->what->label, one->registered ? ", registered" : "",
                   one->work != WORK_ANY ? ", " : "",
                   one->work != WORK_ANY ? work_name(one->work) : "");
    (void)fputs("set title noenhanced ", to);
    picture_quote(to, title);
    (void)fputs("\nset ylabel 'GiB'\n"
                "set autoscale xfix\nset yrange [0:*]\n"
                "set key outside below center horizontal noenhanced\nplot ",
                to);
    picture_quote(to, of->data);
    (void)fprintf(to,
                  " index %zu using 1:2 with filledcurves y1=0 fillcolor "
                  "'#d0d0d0' title 'live'",
                  *block);
    for (size_t i = first; i < end; i++) {
        if (what->results[i].line.count == 0) {
            continue;
        }
        (void)fputs(", \\\n  ", to);
        picture_quote(to, of->data);
        /* Later lines are thinner: where they meet, both are seen. */
        (void)fprintf(to,
                      " index %zu using 1:3 with lines linewidth %zu title ",
                      (*block)++, end - i < 4 ? 2 * (end - i) : 8);
        picture_quote(to, what->results[i].name);
    }
    (void)fputs("\nreset\n", to);
}

static void bars_put(FILE *to, const picture *of, const report *what)
{
    (void)fprintf(to,
                  "set title 'Host time per operation%s'\n"
                  "set ylabel 'ns'\nset yrange [0:*]\nunset key\n"
                  "set style fill solid 0.6\nset boxwidth 0.6\n"
                  "set xtics rotate by -20 noenhanced\nplot ",
                  what->where->simulated
                      ? " (simulated driver: says nothing about a GPU)"
                      : "");
    picture_quote(to, of->data);
    (void)fputs(" index 0 using 0:2:xtic(1) with boxes, \\\n  ", to);
    picture_quote(to, of->data);
    (void)fputs(" index 0 using 0:2:3:4 with yerrorbars linecolor 'black'\n",
                to);
}

static bool script_write(const picture *of, const report *what)
{
    FILE *file = report_open(of->script);
    bool timed = is_timed(what);
    size_t rows = panels(what) + timed;
    size_t block = timed;

    if (file == NULL) {
        return false;
    }
    picture_panels(of, file, rows);
    for (size_t at = next_timeline(what, 0); at < what->count;
         at = next_timeline(what, panel_end(what, at))) {
        lines_put(file, of, what, at, &block);
    }
    if (timed) {
        bars_put(file, of, what);
    }
    (void)fputs("unset multiplot\n", file);
    return report_close(of->script, file);
}

bool report_plot(const char *path, const report *what)
{
    picture of;

    if (!is_timed(what) && panels(what) == 0) {
        (void)fprintf(stderr,
                      "cucoremr-bench: --plot %s: nothing was timed or "
                      "drawn\n",
                      path);
        return false;
    }
    if (!picture_begin(&of, path)) {
        return false;
    }
    return data_write(&of, what) && script_write(&of, what) &&
           picture_draw(&of);
}
