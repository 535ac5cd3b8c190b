/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts: what memory is where. In the picture all memory that a pool has
 * lies side by side, in the order of addresses, in lines from the top left on;
 * address space without memory is left out.
 */
#include "bench/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bench/picture.h"
#include "bench/units.h"

#define MIB 1048576.0
#define ROWS 32 /* of a panel */

/* A line `KIND ADDRESS BYTES` of a dump. */
typedef struct piece {
    char kind[16];
    uint64_t address;
    uint64_t bytes;
} piece;

typedef struct totals {
    uint64_t reserved;
    uint64_t out;
    uint64_t free;
    uint64_t waits;
    uint64_t pinned;
    uint64_t leaving;
    uint64_t largest;
    uint64_t runs;
} totals;

static const struct {
    const char *kind;
    const char *title;
    const char *color;
} shown[] = {
    {"out", "live or cached", "#4878a8"},
    {"free", "free", "#d8d8d8"},
    {"waits", "free, streams not done", "#e8a33d"},
};

static const char *next_line(const char *line)
{
    const char *end = strchr(line, '\n');

    return end != NULL ? end + 1 : line + strlen(line);
}

static bool read_piece(const char *line, piece *made)
{
    return sscanf(line, "%15s 0x%" SCNx64 " %" SCNu64, made->kind,
                  &made->address, &made->bytes) == 3;
}

static bool is_memory(const piece *of)
{
    return strcmp(of->kind, "segment") == 0 ||
           strcmp(of->kind, "handle") == 0 || strcmp(of->kind, "pinned") == 0;
}

/* The first pool's. */
static bool read_totals(const char *dump, totals *made)
{
    const char *line = dump != NULL ? strstr(dump, "\ntotal ") : NULL;

    return line != NULL &&
           sscanf(line,
                  " total reserved=%" SCNu64 " out=%" SCNu64 " free=%" SCNu64
                  " waits=%" SCNu64 " pinned=%" SCNu64 " leaving=%" SCNu64
                  " largest_free=%" SCNu64 " free_runs=%" SCNu64,
                  &made->reserved, &made->out, &made->free, &made->waits,
                  &made->pinned, &made->leaving, &made->largest,
                  &made->runs) == 8;
}

static void layout_put(FILE *to, const result *of)
{
    char text[6][UNITS_TEXT];
    totals all;

    (void)fprintf(to, "\nlayout %s after row %" PRIu32 ": %s\n",
                  of->what->label, of->at, of->name);
    if (of->failures > 0) {
        (void)fprintf(to, "  FAILED: %s\n", of->failure);
    }
    if (!read_totals(of->dump, &all)) {
        (void)fputs("  no resource in it says where its memory is\n", to);
        return;
    }
    (void)fprintf(
        to,
        "  live %s, reserved %s: %s live or cached, %s free, %s "
        "free but not finished;\n"
        "  free in %" PRIu64 " runs, the largest %s\n",
        units_bytes(of->live, text[0]), units_bytes(all.reserved, text[1]),
        units_bytes(all.out, text[2]), units_bytes(all.free, text[3]),
        units_bytes(all.waits, text[4]), all.runs,
        units_bytes(all.largest, text[5]));
}

void report_layout(FILE *to, const report *what)
{
    for (size_t i = 0; i < what->count; i++) {
        layout_put(to, &what->results[i]);
    }
}

bool report_dump(const char *path, const report *what)
{
    FILE *file = report_open(path);

    if (file == NULL) {
        return false;
    }
    for (size_t i = 0; i < what->count; i++) {
        const result *of = &what->results[i];

        (void)fprintf(file, "# %s after row %" PRIu32 ": %s\n%s",
                      of->what->label, of->at, of->name,
                      of->dump != NULL ? of->dump : "");
    }
    return report_close(path, file);
}

/* ---- the picture -------------------------------------------------------- */

/* Part of a run in its lines: left, right, top, bottom. */
static void boxes_put(FILE *to, uint64_t place, uint64_t bytes, uint64_t width)
{
    while (bytes > 0) {
        uint64_t row = place / width;
        uint64_t left = place % width;
        uint64_t part = bytes < width - left ? bytes : width - left;

        (void)fprintf(to, "%.6f %.6f %" PRIu64 "\n", (double)left / MIB,
                      (double)(left + part) / MIB, row);
        place += part;
        bytes -= part;
    }
}

/* All runs of one kind. Where memory lies in the picture follows from all
 * memory before it. */
static void kind_put(FILE *to, const char *dump, const char *kind,
                     uint64_t width)
{
    uint64_t before = 0; /* bytes of memory in front of `base` */
    uint64_t base = 0;
    uint64_t bytes = 0;
    piece at;

    (void)fprintf(to, "# %s: left MiB, right MiB, line\nNaN NaN NaN\n", kind);
    for (const char *line = dump; *line != '\0'; line = next_line(line)) {
        if (strncmp(line, "total ", 6) == 0) {
            break; /* one pool */
        }
        if (!read_piece(line, &at)) {
            continue;
        }
        if (is_memory(&at)) {
            before += bytes;
            base = at.address;
            bytes = at.bytes;
        } else if (strcmp(at.kind, kind) == 0) {
            boxes_put(to, before + (at.address - base), at.bytes, width);
        }
    }
    (void)fputs("\n\n", to);
}

/* Bytes of a line of the picture. */
static uint64_t width_of(const totals *all)
{
    return all->reserved / ROWS + 1;
}

static bool data_write(const picture *of, const report *what)
{
    FILE *file = report_open(of->data);
    totals all;

    if (file == NULL) {
        return false;
    }
    for (size_t i = 0; i < what->count; i++) {
        const char *dump = what->results[i].dump;

        if (!read_totals(dump, &all)) {
            continue;
        }
        for (size_t k = 0; k < sizeof(shown) / sizeof(shown[0]); k++) {
            kind_put(file, dump, shown[k].kind, width_of(&all));
        }
    }
    return report_close(of->data, file);
}

static void panel_put(FILE *to, const picture *of, const result *one,
                      const totals *all, size_t *block)
{
    char text[3][UNITS_TEXT];
    char title[768];

    (void)snprintf(title, sizeof(title),
                   "%.200s after row %" PRIu32 ": %.200s\n", one->what->label,
                   one->at, one->name);
    (void)snprintf(title + strlen(title) - 1, sizeof(title) - strlen(title),
                   ": %s reserved, %s live, largest free run %s",
                   units_bytes(all->reserved, text[0]),
                   units_bytes(one->live, text[1]),
                   units_bytes(all->largest, text[2]));
    (void)fputs("set title noenhanced ", to);
    picture_quote(to, title);
    (void)fprintf(to,
                  "\nset xlabel 'MiB, lines of %.1f MiB in the order of "
                  "addresses'\nset xrange [0:%.6f]\nset yrange [%d:0]\n"
                  "unset ytics\nset style fill solid noborder\n"
                  "set key outside below center horizontal noenhanced\n",
                  (double)width_of(all) / MIB, (double)width_of(all) / MIB,
                  ROWS);
    for (size_t k = 0; k < sizeof(shown) / sizeof(shown[0]); k++) {
        (void)fputs(k == 0 ? "plot " : ", \\\n  ", to);
        picture_quote(to, of->data);
        (void)fprintf(to,
                      " index %zu using (($1+$2)/2):($3+0.5):1:2:($3+0.06):"
                      "($3+0.94) with boxxyerror linecolor '%s' title '%s'",
                      (*block)++, shown[k].color, shown[k].title);
    }
    (void)fputs("\nreset\n", to);
}

bool report_layout_plot(const char *path, const report *what)
{
    size_t rows = 0;
    size_t block = 0;
    totals all;
    picture of;
    FILE *file;

    for (size_t i = 0; i < what->count; i++) {
        rows += read_totals(what->results[i].dump, &all);
    }
    if (rows == 0) {
        (void)fprintf(stderr,
                      "cucoremr-bench: --plot %s: no resource says where its "
                      "memory is\n",
                      path);
        return false;
    }
    if (!picture_begin(&of, path) || !data_write(&of, what)) {
        return false;
    }
    file = report_open(of.script);
    if (file == NULL) {
        return false;
    }
    picture_panels(&of, file, rows);
    for (size_t i = 0; i < what->count; i++) {
        if (read_totals(what->results[i].dump, &all)) {
            panel_put(file, &of, &what->results[i], &all, &block);
        }
    }
    (void)fputs("unset multiplot\n", file);
    return report_close(of.script, file) && picture_draw(&of);
}
