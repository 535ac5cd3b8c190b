/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/report.h"

#include <inttypes.h>
#include <string.h>

static const char header[] =
    "scenario,label,stack,trace,registered,threads,streams,operations,"
    "failures,repetitions,pass_ns_median,pass_ns_min,pass_ns_max,"
    "op_p50,op_p99,op_max,op_mean,alloc_p50,alloc_p99,alloc_max,alloc_mean,"
    "free_p50,free_p99,free_max,free_mean,driver_calls_per_1000,"
    "peak_live_bytes,peak_reserved_bytes,grown_ratio,work,behind,"
    "mapping_ns,waiting_ns,estimated_driver_ns,budget_bytes,budget_ratio,"
    "tries,device,driver,"
    "simulated,failure\n";

/* A text field, in quotes where it needs them. */
static void text_put(FILE *to, const char *text)
{
    if (text == NULL) {
        return;
    }
    if (strpbrk(text, ",\"\r\n") == NULL) {
        (void)fputs(text, to);
        return;
    }
    (void)fputc('"', to);
    for (; *text != '\0'; text++) {
        if (*text == '"') {
            (void)fputc('"', to);
        }
        (void)fputc(*text, to);
    }
    (void)fputc('"', to);
}

static void summary_put(FILE *to, const summary *of)
{
    if (of->count == 0) {
        (void)fputs(",,,,", to);
        return;
    }
    (void)fprintf(to, ",%.0f,%.0f,%.0f,%.1f", of->p50, of->p99, of->max,
                  of->mean);
}

static void times_put(FILE *to, const result *of)
{
    if (of->repetitions == 0) {
        (void)fputs(",,,", to);
    } else {
        (void)fprintf(to, ",%.2f,%.2f,%.2f", of->ns_median, of->ns_least,
                      of->ns_most);
    }
    summary_put(to, &of->operation);
    summary_put(to, &of->allocation);
    summary_put(to, &of->free);
}

static void memory_put(FILE *to, const result *of)
{
    (void)fputc(',', to);
    if (of->counted) {
        (void)fprintf(to, "%.3f", of->calls_per_1000);
    }
    (void)fprintf(to, ",%" PRIu64 ",", of->peak_live);
    if (of->peak_reserved != FIGURE_UNKNOWN) {
        (void)fprintf(to, "%" PRIu64, of->peak_reserved);
    }
    (void)fputc(',', to);
    if (result_grown(of) > 0) {
        (void)fprintf(to, "%.4f", result_grown(of));
    }
}

static void budget_put(FILE *to, const result *of)
{
    (void)fputc(',', to);
    text_put(to, work_name(of->work));
    (void)fprintf(to, ",%" PRIu64 ",", of->behind);
    if (of->counted) {
        (void)fprintf(to, "%.1f,%.1f", of->mapping_ns, of->waiting_ns);
    } else {
        (void)fputc(',', to);
    }
    (void)fputc(',', to);
    if (of->estimated) {
        (void)fprintf(to, "%.1f", of->estimated_ns);
    }
    if (of->budget > 0) {
        (void)fprintf(to, ",%" PRIu64 ",%.5f", of->budget, result_budget(of));
    } else {
        (void)fputs(",,", to);
    }
    (void)fprintf(to, ",%u", of->tries);
}

static void result_put(FILE *to, const result *of, const machine *where)
{
    text_put(to, of->what->scenario);
    (void)fputc(',', to);
    text_put(to, of->what->label);
    (void)fputc(',', to);
    text_put(to, of->name);
    (void)fputc(',', to);
    text_put(to, of->trace);
    (void)fprintf(to, ",%d,%zu,%zu,%zu,%zu,%u", of->registered, of->threads,
                  of->streams, of->operations, of->failures, of->repetitions);
    times_put(to, of);
    memory_put(to, of);
    budget_put(to, of);
    (void)fputc(',', to);
    text_put(to, where->device_name);
    (void)fputc(',', to);
    text_put(to, where->driver_name);
    (void)fprintf(to, ",%d,", where->simulated);
    text_put(to, of->failure);
    (void)fputc('\n', to);
}

bool report_csv(const char *path, const report *what)
{
    FILE *file = report_open(path);

    if (file == NULL) {
        return false;
    }
    (void)fputs(header, file);
    for (size_t i = 0; i < what->count; i++) {
        result_put(file, &what->results[i], what->where);
    }
    return report_close(path, file);
}
