/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pictures. Beside OUT.svg stand OUT.dat and OUT.gp, what gnuplot made it of:
 *
 *   OUT.dat   blocks parted by two empty lines: first one row a result, for
 *             the bars; then the timeline of each result that has one
 */
#include "bench/report.h"

#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

#include "bench/units.h"

extern char **environ;

#define GIB 1073741824.0

/* The picture's name without its ending, and gnuplot's word for that. */
typedef struct picture {
    const char *path;
    const char *terminal;
    char data[PATH_MAX];
    char script[PATH_MAX];
} picture;

static bool picture_name(picture *made, const char *path)
{
    static const struct {
        const char *ending;
        const char *terminal;
    } known[] = {
        {".svg", "svg size 1100,700 dynamic background 'white'"},
        {".png", "pngcairo size 1100,700"},
        {".pdf", "pdfcairo size 11in,7in"},
    };
    const char *dot = strrchr(path, '.');

    made->path = path;
    for (size_t i = 0; dot != NULL && i < 3; i++) {
        int length = (int)(dot - path);

        if (strcmp(dot, known[i].ending) == 0) {
            made->terminal = known[i].terminal;
            return snprintf(made->data, PATH_MAX, "%.*s.dat", length, path) <
                       PATH_MAX &&
                   snprintf(made->script, PATH_MAX, "%.*s.gp", length, path) <
                       PATH_MAX;
        }
    }
    return false;
}

/* Text in double quotes, for gnuplot, which reads escapes in it. */
static void quoted_put(FILE *to, const char *text)
{
    (void)fputc('"', to);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') {
            (void)fputc('\\', to);
        }
        (void)fputc(*text == '\n' ? ' ' : *text, to);
    }
    (void)fputc('"', to);
}

/* What a result is called in a picture. */
static void label_put(FILE *to, const result *of, const report *in)
{
    char label[256];
    bool one_plan = true;

    for (size_t i = 0; i < in->count; i++) {
        one_plan = one_plan && in->results[i].what == in->results[0].what &&
                   in->results[i].registered == in->results[0].registered;
    }
    if (one_plan) {
        (void)snprintf(label, sizeof(label), "%.100s", of->name);
    } else {
        (void)snprintf(label, sizeof(label), "%.100s, %.60s%s", of->name,
                       of->what->label, of->registered ? ", registered" : "");
    }
    quoted_put(to, label);
}

static bool data_write(const picture *of, const report *what)
{
    FILE *file = report_open(of->data);

    if (file == NULL) {
        return false;
    }
    (void)fputs("# label, ns per operation: median, least, most\n", file);
    for (size_t i = 0; i < what->count; i++) {
        const result *one = &what->results[i];

        label_put(file, one, what);
        (void)fprintf(file, " %.2f %.2f %.2f\n", one->ns_median, one->ns_least,
                      one->ns_most);
    }
    for (size_t i = 0; i < what->count; i++) {
        const timeline *line = &what->results[i].line;

        if (line->count == 0) {
            continue;
        }
        (void)fputs("\n\n# operation, live GiB, reserved GiB: ", file);
        label_put(file, &what->results[i], what);
        (void)fputc('\n', file);
        for (size_t j = 0; j < line->count; j++) {
            const timeline_point *point = &line->points[j];

            (void)fprintf(file, "%zu %.6f ", point->op,
                          (double)point->live / GIB);
            if (point->reserved == FIGURE_UNKNOWN) {
                (void)fputs("NaN\n", file);
            } else {
                (void)fprintf(file, "%.6f\n", (double)point->reserved / GIB);
            }
        }
    }
    return report_close(of->data, file);
}

static size_t timelines(const report *what)
{
    size_t count = 0;

    for (size_t i = 0; i < what->count; i++) {
        count += what->results[i].line.count > 0;
    }
    return count;
}

static void lines_put(FILE *to, const picture *of, const report *what)
{
    size_t block = 1;

    (void)fputs("set title 'Memory over the trace'\n"
                "set xlabel 'operation'\nset ylabel 'GiB'\n"
                "set yrange [0:*]\nset key outside right top noenhanced\n"
                "plot ",
                to);
    for (size_t i = 0; i < what->count; i++) {
        const result *one = &what->results[i];

        if (one->line.count == 0) {
            continue;
        }
        if (block == 1) {
            quoted_put(to, of->data);
            (void)fputs(" index 1 using 1:2 with filledcurves y1=0 "
                        "fillcolor '#d0d0d0' title 'live'",
                        to);
        }
        (void)fputs(", \\\n  ", to);
        quoted_put(to, of->data);
        (void)fprintf(to, " index %zu using 1:3 with lines linewidth 2 title ",
                      block);
        label_put(to, one, what);
        block++;
    }
    (void)fputc('\n', to);
}

static bool script_write(const picture *of, const report *what)
{
    FILE *file = report_open(of->script);

    if (file == NULL) {
        return false;
    }
    (void)fprintf(file, "set terminal %s\nset output ", of->terminal);
    quoted_put(file, of->path);
    (void)fprintf(file, "\nset multiplot layout %d,1\n",
                  timelines(what) > 0 ? 2 : 1);
    if (timelines(what) > 0) {
        lines_put(file, of, what);
        (void)fputs("reset\n", file);
    }
    (void)fprintf(file,
                  "set title 'Host time per operation%s'\n"
                  "set ylabel 'ns'\nset yrange [0:*]\nunset key\n"
                  "set style fill solid 0.6\nset boxwidth 0.6\n"
                  "set xtics rotate by -20 noenhanced\nplot ",
                  what->where->simulated
                      ? " (simulated driver: says nothing about a GPU)"
                      : "");
    quoted_put(file, of->data);
    (void)fputs(" index 0 using 0:2:xtic(1) with boxes, \\\n  ", file);
    quoted_put(file, of->data);
    (void)fputs(" index 0 using 0:2:3:4 with yerrorbars linecolor 'black'\n"
                "unset multiplot\n",
                file);
    return report_close(of->script, file);
}

static bool gnuplot_run(const picture *of)
{
    char name[] = "gnuplot";
    char script[PATH_MAX];
    char *arguments[] = {name, script, NULL};
    int status = 0;
    pid_t child;
    int ret;

    (void)strcpy(script, of->script);
    ret = posix_spawnp(&child, name, NULL, NULL, arguments, environ);
    if (ret == ENOENT) {
        (void)fprintf(stderr,
                      "cucoremr-bench: gnuplot is not installed, so that %s "
                      "is not there; `gnuplot %s` will make it\n",
                      of->path, of->script);
        return true;
    }
    if (ret != 0) {
        (void)fprintf(stderr, "cucoremr-bench: gnuplot: %s\n", strerror(ret));
        return false;
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        (void)fprintf(stderr, "cucoremr-bench: gnuplot failed on %s\n",
                      of->script);
        return false;
    }
    return true;
}

bool report_plot(const char *path, const report *what)
{
    picture of;

    if (!picture_name(&of, path)) {
        (void)fprintf(stderr,
                      "cucoremr-bench: --plot %s: a name that ends in .svg, "
                      ".png or .pdf is expected\n",
                      path);
        return false;
    }
    return data_write(&of, what) && script_write(&of, what) &&
           gnuplot_run(&of);
}
