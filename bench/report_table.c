/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/report.h"

#include <inttypes.h>
#include <string.h>

#include "bench/units.h"

#define NAME_WIDTH 56
#define CALLS_SHOWN 5

enum {
    COLUMN_NAME,
    COLUMN_NS,
    COLUMN_SPREAD,
    COLUMN_ALLOC_P50,
    COLUMN_ALLOC_P99,
    COLUMN_ALLOC_MAX,
    COLUMN_FREE_P50,
    COLUMN_FREE_P99,
    COLUMN_FREE_MAX,
    COLUMN_CALLS,
    COLUMN_MAPPING,
    COLUMN_WAITING,
    COLUMN_ESTIMATED,
    COLUMN_LIVE,
    COLUMN_RESERVED,
    COLUMN_GROWN,
    COLUMN_BUDGET,
    COLUMN_RATIO,
    COLUMN_TRIES,
    COLUMN_COUNT
};

static const char *const heads[COLUMN_COUNT] = {
    "",           "ns/op",      "least-most", "p50",  "p99",
    "max",        "p50",        "p99",        "max",  "calls/1000",
    "mapping ns", "waiting ns", "est. ns",    "live", "reserved",
    "grown",      "budget",     "ratio",      "tries"};

/* What stands over some columns in a row. */
static const struct {
    const char *text;
    size_t first;
    size_t last;
} groups[] = {
    {"allocate, ns", COLUMN_ALLOC_P50, COLUMN_ALLOC_MAX},
    {"free, ns", COLUMN_FREE_P50, COLUMN_FREE_MAX},
    {"driver", COLUMN_CALLS, COLUMN_ESTIMATED},
    {"memory at its peak", COLUMN_LIVE, COLUMN_GROWN},
    {"budget", COLUMN_BUDGET, COLUMN_TRIES},
};

#define GROUPS (sizeof(groups) / sizeof(groups[0]))

/* Kinds of tables. */
enum {
    TABLE_BRIEF = 1,
    TABLE_FULL = 2,
    TABLE_BUDGET = 4,
    TABLE_GROWN = 8,
    TABLE_TIMED = TABLE_BRIEF | TABLE_FULL,
    TABLE_ALL = 15
};

/* Which tables a column is in. */
static const unsigned column_in[COLUMN_COUNT] = {
    [COLUMN_NAME] = TABLE_ALL,
    [COLUMN_NS] = TABLE_TIMED,
    [COLUMN_SPREAD] = TABLE_FULL,
    [COLUMN_ALLOC_P50] = TABLE_TIMED,
    [COLUMN_ALLOC_P99] = TABLE_TIMED,
    [COLUMN_ALLOC_MAX] = TABLE_TIMED,
    [COLUMN_FREE_P50] = TABLE_TIMED,
    [COLUMN_FREE_P99] = TABLE_TIMED,
    [COLUMN_FREE_MAX] = TABLE_TIMED,
    [COLUMN_CALLS] = TABLE_FULL | TABLE_GROWN,
    [COLUMN_MAPPING] = TABLE_GROWN,
    [COLUMN_WAITING] = TABLE_GROWN,
    [COLUMN_ESTIMATED] = TABLE_TIMED | TABLE_GROWN,
    [COLUMN_LIVE] = TABLE_ALL,
    [COLUMN_RESERVED] = TABLE_TIMED | TABLE_GROWN,
    [COLUMN_GROWN] = TABLE_TIMED | TABLE_GROWN,
    [COLUMN_BUDGET] = TABLE_BUDGET,
    [COLUMN_RATIO] = TABLE_BUDGET,
    [COLUMN_TRIES] = TABLE_BUDGET,
};

static unsigned table_of(const report *what, const result *of)
{
    if (strcmp(of->what->scenario, "budget") == 0) {
        return TABLE_BUDGET;
    }
    if (strcmp(of->what->scenario, "grown") == 0) {
        return TABLE_GROWN;
    }
    return what->brief ? TABLE_BRIEF : TABLE_FULL;
}

/* A table: which columns, and how wide; 0: not shown. */
typedef struct layout {
    size_t widths[COLUMN_COUNT];
} layout;

typedef struct row {
    char cells[COLUMN_COUNT][NAME_WIDTH + 1];
} row;

static void name_put(char cell[NAME_WIDTH + 1], const char *name)
{
    if (strlen(name) <= NAME_WIDTH) {
        (void)strcpy(cell, name);
    } else {
        (void)snprintf(cell, NAME_WIDTH + 1, "%.*s...", NAME_WIDTH - 3, name);
    }
}

static void summary_put(row *to, size_t first, const summary *of)
{
    if (of->count > 0) {
        (void)units_ns(of->p50, to->cells[first]);
        (void)units_ns(of->p99, to->cells[first + 1]);
        (void)units_ns(of->max, to->cells[first + 2]);
    }
}

static void budget_put(row *to, const result *of)
{
    if (of->budget > 0) {
        (void)units_bytes(of->budget, to->cells[COLUMN_BUDGET]);
        (void)snprintf(to->cells[COLUMN_RATIO], NAME_WIDTH, "%.4f",
                       result_budget(of));
    }
    if (of->tries > 0) {
        (void)snprintf(to->cells[COLUMN_TRIES], NAME_WIDTH, "%u", of->tries);
    }
    if (of->failures > 0) {
        (void)strcpy(to->cells[COLUMN_BUDGET], "FAILED");
    }
}

static void counts_put(row *to, const result *of)
{
    if (of->counted) {
        (void)snprintf(to->cells[COLUMN_CALLS], NAME_WIDTH, "%.0f",
                       of->calls_per_1000);
        (void)units_ns(of->mapping_ns, to->cells[COLUMN_MAPPING]);
        (void)units_ns(of->waiting_ns, to->cells[COLUMN_WAITING]);
    }
    if (of->estimated) {
        (void)units_ns(of->estimated_ns, to->cells[COLUMN_ESTIMATED]);
    }
    if (of->failures > 0) {
        (void)strcpy(
            to->cells[of->work == WORK_ANY ? COLUMN_NS : COLUMN_CALLS],
            "FAILED");
    }
}

static void row_fill(row *to, const result *of)
{
    char least[UNITS_TEXT];
    char most[UNITS_TEXT];

    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        (void)strcpy(to->cells[i], "-");
    }
    name_put(to->cells[COLUMN_NAME], of->name);
    if (of->repetitions > 0) {
        (void)units_ns(of->ns_median, to->cells[COLUMN_NS]);
        summary_put(to, COLUMN_ALLOC_P50, &of->allocation);
        summary_put(to, COLUMN_FREE_P50, &of->free);
    }
    if (of->repetitions > 1) {
        (void)snprintf(to->cells[COLUMN_SPREAD], NAME_WIDTH, "%.20s-%.20s",
                       units_ns(of->ns_least, least),
                       units_ns(of->ns_most, most));
    }
    counts_put(to, of);
    budget_put(to, of);
    (void)units_bytes(of->peak_live, to->cells[COLUMN_LIVE]);
    if (of->peak_reserved != FIGURE_UNKNOWN) {
        (void)units_bytes(of->peak_reserved, to->cells[COLUMN_RESERVED]);
    }
    /* Of a single block it says how large the driver's pieces are. */
    if (result_grown(of) > 0 && (of->what->live > 1 || of->what->whole)) {
        (void)snprintf(to->cells[COLUMN_GROWN], NAME_WIDTH, "%.3f",
                       result_grown(of));
    }
}

static void title_put(FILE *to, const result *of)
{
    char count[UNITS_TEXT];
    char bytes[UNITS_TEXT];

    (void)fprintf(to, "%s: %s", of->what->scenario, of->what->label);
    if (of->what->trace != NULL) {
        (void)fprintf(to, ", %s events, peak %s live",
                      units_count(of->what->trace->count, count),
                      units_bytes(of->what->trace->peak_live_bytes, bytes));
    }
    if (of->what->ops_per_operation == 2) {
        (void)fputs(" (an operation is an allocation and a free)", to);
    }
    if (of->what->trace != NULL) {
        (void)fprintf(to, ", %zu stream%s", of->streams,
                      of->streams == 1 ? "" : "s");
        if (of->threads > 1) {
            (void)fprintf(to, ", %zu threads", of->threads);
        }
    }
    if (of->registered) {
        (void)fputs(", registered streams", to);
    }
    if (of->work != WORK_ANY) {
        (void)fprintf(to, ", %s", work_name(of->work));
    }
    if (of->behind > 0) {
        (void)fprintf(to, " (the device is %s operations behind)",
                      units_count(of->behind, count));
    }
    (void)fputc('\n', to);
}

/* Blanks before a column: more where a group begins. */
static int gap_of(size_t column)
{
    for (size_t i = 0; i < GROUPS; i++) {
        if (groups[i].first == column) {
            return 3;
        }
    }
    return 2;
}

static void line_put(FILE *to, const char *const cells[COLUMN_COUNT],
                     const layout *in)
{
    (void)fprintf(to, "  %-*s", (int)in->widths[0], cells[0]);
    for (size_t i = 1; i < COLUMN_COUNT; i++) {
        if (in->widths[i] > 0) {
            (void)fprintf(to, "%*s%*s", gap_of(i), "", (int)in->widths[i],
                          cells[i]);
        }
    }
    (void)fputc('\n', to);
}

/* The last column of a group that is shown, 0 for none. */
static size_t group_end(size_t group, const layout *in)
{
    size_t last = groups[group].last;

    while (last >= groups[group].first && in->widths[last] == 0) {
        last--;
    }
    return last >= groups[group].first ? last : 0;
}

/* Names of groups end where their columns do. */
static void groups_put(FILE *to, const layout *in)
{
    int blanks = 2 + (int)in->widths[0];

    for (size_t i = 1; i < COLUMN_COUNT; i++) {
        if (in->widths[i] > 0) {
            blanks += gap_of(i) + (int)in->widths[i];
        }
        for (size_t group = 0; group < GROUPS; group++) {
            if (in->widths[i] > 0 && group_end(group, in) == i) {
                (void)fprintf(to, "%*s", blanks, groups[group].text);
                blanks = 0;
            }
        }
    }
    (void)fputc('\n', to);
}

static bool any_estimated(const result *results, size_t count)
{
    size_t i = 0;

    while (i < count && !results[i].estimated) {
        i++;
    }
    return i < count;
}

/* Columns as wide as what is in them and over them. */
static void layout_make(layout *made, const result *results, size_t count,
                        unsigned table)
{
    row one = {.cells = {{0}}};

    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        made->widths[i] = (column_in[i] & table) != 0 ? strlen(heads[i]) : 0;
    }
    if (!any_estimated(results, count)) {
        made->widths[COLUMN_ESTIMATED] = 0;
    }
    for (size_t i = 0; i < count; i++) {
        row_fill(&one, &results[i]);
        for (size_t j = 0; j < COLUMN_COUNT; j++) {
            size_t length = strlen(one.cells[j]);

            if ((made->widths[j] > 0 || j == 0) && length > made->widths[j]) {
                made->widths[j] = length;
            }
        }
    }
}

static void rows_put(FILE *to, const result *results, size_t count,
                     unsigned table)
{
    const char *cells[COLUMN_COUNT];
    layout in;
    row one = {.cells = {{0}}};

    layout_make(&in, results, count, table);
    groups_put(to, &in);
    line_put(to, heads, &in);
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        cells[i] = one.cells[i];
    }
    for (size_t i = 0; i < count; i++) {
        row_fill(&one, &results[i]);
        line_put(to, cells, &in);
    }
}

/* Driver calls by name. */
static void calls_put(FILE *to, const result *of)
{
    for (size_t i = 0; i < of->call_count && i < CALLS_SHOWN; i++) {
        (void)fprintf(to, "%s%s %.0f", i == 0 ? "" : ", ", of->calls[i].name,
                      of->calls[i].per_1000);
    }
    if (of->call_count > CALLS_SHOWN) {
        (void)fprintf(to, ", %zu others", of->call_count - CALLS_SHOWN);
    }
    (void)fputc('\n', to);
}

/* What does not fit into columns. */
static void notes_put(FILE *to, const result *of, bool with_calls)
{
    char bytes[UNITS_TEXT];
    char name[NAME_WIDTH + 1];

    name_put(name, of->name);
    if (strlen(of->name) > NAME_WIDTH) {
        (void)fprintf(to, "  %s is %s\n", name, of->name);
    }
    if (of->failures > 0) {
        (void)fprintf(to, "  FAILED %s: %s\n", name, of->failure);
        if (of->failures > 1) {
            (void)fprintf(to, "         and %zu more failures\n",
                          of->failures - 1);
        }
    } else if (of->checked_bytes > 0) {
        (void)fprintf(to, "  %s: %s compared, all as written\n", name,
                      units_bytes(of->checked_bytes, bytes));
    }
    if (with_calls && of->counted && of->call_count > 0) {
        (void)fprintf(to, "  %s calls, in 1000 operations: ", name);
        calls_put(to, of);
    }
}

/* Whether few calls took so long that they are most of a mean. */
static bool has_outliers(const result *of)
{
    return of->repetitions > 0 && of->ns_median > of->operation.p99;
}

/* What a trace held beside its events. */
static void trace_put(FILE *to, const trace *of)
{
    const struct {
        size_t count;
        const char *what;
    } notes[] = {
        {of->failure_rows, "allocations that failed when it was recorded"},
        {of->empty_rows, "rows of 0 bytes"},
        {of->unknown_frees, "frees of what it does not allocate"},
        {of->late_frees, "frees logged after their address was given out"},
        {of->wrong_sizes, "frees with another size than allocated"},
        {of->unreadable_rows, "rows that cannot be read"},
    };

    for (size_t i = 0; i < sizeof(notes) / sizeof(notes[0]); i++) {
        if (notes[i].count > 0) {
            (void)fprintf(to, "  the log has %zu %s\n", notes[i].count,
                          notes[i].what);
        }
    }
}

static void outliers_put(FILE *to, const result *results, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (has_outliers(&results[i])) {
            (void)fputs("  where ns/op, a mean, is above p99: few calls took "
                        "most of the time (see max), as\n"
                        "  those do that take new memory, or in which the "
                        "system ran something else\n",
                        to);
            return;
        }
    }
}

static void estimates_put(FILE *to, const result *results, size_t count)
{
    if (any_estimated(results, count)) {
        (void)fputs("  est. ns: estimated driver ns per op (simulated), by "
                    "what each call took on an H200;\n"
                    "  without waiting for work, and without what threads "
                    "cost each other\n",
                    to);
    }
}

/* Results from `first` that belong into one table. */
static size_t together(const report *what, size_t first)
{
    const result *of = &what->results[first];
    size_t count = 0;

    while (first + count < what->count && of[count].what == of->what &&
           of[count].registered == of->registered &&
           of[count].work == of->work) {
        count++;
    }
    return count;
}

void report_table(FILE *to, const report *what)
{
    size_t count;

    for (size_t i = 0; i < what->count; i += count) {
        count = together(what, i);
        title_put(to, &what->results[i]);
        rows_put(to, &what->results[i], count,
                 table_of(what, &what->results[i]));
        for (size_t j = i; j < i + count; j++) {
            notes_put(to, &what->results[j],
                      !what->brief &&
                          (i == 0 || what->results[j].what->whole));
        }
        outliers_put(to, &what->results[i], count);
        estimates_put(to, &what->results[i], count);
        if (what->results[i].what->trace != NULL) {
            trace_put(to, what->results[i].what->trace);
        }
        (void)fputc('\n', to);
    }
}

void report_machine(FILE *to, const machine *where)
{
    char bytes[UNITS_TEXT];

    if (where->notice[0] != '\0') {
        (void)fprintf(to,
                      "note    %s\n        so the simulated driver is "
                      "used instead\n",
                      where->notice);
    }
    (void)fprintf(to, "device  %s, %s\n", where->device_name,
                  units_bytes(where->device_bytes, bytes));
    (void)fprintf(to, "driver  %s, CUDA %d.%d\n", where->driver_path,
                  where->driver_version / 1000,
                  where->driver_version % 1000 / 10);
    (void)fprintf(to, "host    %s, %ld processors, %s\n", where->cpu,
                  where->cpus, where->system);
    if (where->simulated) {
        (void)fputs("SIMULATED DRIVER: times say nothing about a GPU. Memory "
                    "and driver calls are as on one.\n",
                    to);
    }
    (void)fputc('\n', to);
}
