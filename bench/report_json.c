/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/report.h"

#include <time.h>

#include <jansson.h>

#include <cucoremr/version.h>

/* jansson's "pack" takes every reference; a NULL among them makes the whole
 * NULL, which the end notices. */

/* Paths in stack texts may hold any bytes; JSON is UTF-8. */
static json_t *text_json(const char *text)
{
    char ascii[1024];
    json_t *made;
    size_t i;

    if (text == NULL || text[0] == '\0') {
        return json_null();
    }
    made = json_string(text);
    if (made != NULL) {
        return made;
    }
    for (i = 0; i < sizeof(ascii) - 1 && text[i] != '\0'; i++) {
        ascii[i] = (unsigned char)text[i] < 0x80 ? text[i] : '?';
    }
    ascii[i] = '\0';
    return json_string(ascii);
}

static json_t *bytes_json(uint64_t bytes)
{
    return bytes == FIGURE_UNKNOWN ? json_null()
                                   : json_integer((json_int_t)bytes);
}

/* Single operations. `mean` may come from elsewhere. */
static json_t *summary_json(const summary *of, double mean)
{
    if (of->count == 0) {
        return json_null();
    }
    return json_pack("{s:f, s:f, s:f, s:f}", "p50", of->p50, "p99", of->p99,
                     "max", of->max, "mean", mean);
}

static json_t *calls_json(const result *of)
{
    json_t *calls;

    if (!of->counted) {
        return json_null();
    }
    calls = json_object();
    for (size_t i = 0; i < of->call_count; i++) {
        (void)json_object_set_new(calls, of->calls[i].name,
                                  json_real(of->calls[i].per_1000));
    }
    return calls;
}

static json_t *spread_json(const result *of)
{
    if (of->repetitions == 0) {
        return json_null();
    }
    return json_pack("{s:f, s:f, s:f}", "median", of->ns_median, "min",
                     of->ns_least, "max", of->ns_most);
}

/* What budget and grown tell, and counting does. */
static json_t *memory_json(const result *of)
{
    double ratio = result_budget(of);

    return json_pack(
        "{s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:I}", "work",
        text_json(work_name(of->work)), "behind", (json_int_t)of->behind,
        "mapping_ns_per_op",
        of->counted ? json_real(of->mapping_ns) : json_null(),
        "waiting_ns_per_op",
        of->counted ? json_real(of->waiting_ns) : json_null(),
        "estimated_driver_ns",
        of->estimated ? json_real(of->estimated_ns) : json_null(),
        "budget_bytes", of->budget > 0 ? bytes_json(of->budget) : json_null(),
        "budget_ratio", ratio > 0 ? json_real(ratio) : json_null(), "tries",
        (json_int_t)of->tries);
}

static json_t *result_json(const result *of)
{
    double grown = result_grown(of);
    json_t *made = json_pack(
        "{s:s, s:o, s:o, s:I, s:I, s:I, s:I}", "scenario", of->what->scenario,
        "stack", text_json(of->name), "trace", text_json(of->trace), "threads",
        (json_int_t)of->threads, "streams", (json_int_t)of->streams,
        "operations", (json_int_t)of->operations, "failures",
        (json_int_t)of->failures);
    json_t *timed = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "ns_per_op",
        summary_json(&of->operation, of->ns_median), "alloc_ns",
        summary_json(&of->allocation, of->allocation.mean), "free_ns",
        summary_json(&of->free, of->free.mean), "driver_calls_per_1000",
        calls_json(of), "peak_live_bytes", bytes_json(of->peak_live),
        "peak_reserved_bytes", bytes_json(of->peak_reserved), "grown_ratio",
        grown > 0 ? json_real(grown) : json_null());
    json_t *more = json_pack(
        "{s:o, s:b, s:I, s:o, s:I, s:I, s:I, s:I, s:o}", "label",
        text_json(of->what->label), "registered", of->registered,
        "repetitions", (json_int_t)of->repetitions, "pass_ns_per_op",
        spread_json(of), "min_bytes", (json_int_t)of->what->min_bytes,
        "max_bytes", (json_int_t)of->what->max_bytes, "live",
        (json_int_t)of->what->live, "checked_bytes",
        (json_int_t)of->checked_bytes, "failure", text_json(of->failure));
    json_t *memory = memory_json(of);

    if (json_object_update(made, timed) != 0 ||
        json_object_update(made, more) != 0 ||
        json_object_update(made, memory) != 0) {
        json_decref(made);
        made = NULL;
    }
    json_decref(timed);
    json_decref(more);
    json_decref(memory);
    return made;
}

static json_t *machine_json(const machine *where)
{
    char date[32];
    time_t now = time(NULL);
    struct tm utc;

    (void)gmtime_r(&now, &utc);
    (void)strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", &utc);
    return json_pack(
        "{s:o, s:o, s:b, s:I, s:i, s:o, s:o, s:I, s:o, s:I, s:s, s:s}",
        "device", text_json(where->device_name), "driver",
        text_json(where->driver_name), "simulated", where->simulated,
        "device_bytes", (json_int_t)where->device_bytes, "driver_version",
        where->driver_version, "driver_path", text_json(where->driver_path),
        "cpu", text_json(where->cpu), "cpus", (json_int_t)where->cpus,
        "system", text_json(where->system), "clock_ns",
        (json_int_t)where->clock_cost, "library", ccmr_version_text(), "date",
        date);
}

bool report_json(const char *path, const report *what)
{
    json_t *all = machine_json(what->where);
    json_t *results = json_array();
    bool good = true;
    FILE *file;

    for (size_t i = 0; i < what->count; i++) {
        good = json_array_append_new(results,
                                     result_json(&what->results[i])) == 0 &&
               good;
    }
    good = json_object_set_new(all, "results", results) == 0 && good;
    file = report_open(path);
    if (file == NULL) {
        json_decref(all);
        return false;
    }
    good = good && json_dumpf(all, file, JSON_INDENT(2)) == 0;
    (void)fputc('\n', file);
    json_decref(all);
    if (!good) {
        (void)fprintf(stderr, "cucoremr-bench: %s: cannot be put together\n",
                      path);
    }
    return report_close(path, file) && good;
}
