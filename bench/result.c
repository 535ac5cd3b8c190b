/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/result.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

double result_grown(const result *of)
{
    if (of->peak_reserved == FIGURE_UNKNOWN || of->peak_live == 0) {
        return 0;
    }
    return (double)of->peak_reserved / (double)of->peak_live;
}

double result_budget(const result *of)
{
    if (of->budget == 0 || of->peak_live == 0) {
        return 0;
    }
    return (double)of->budget / (double)of->peak_live;
}

void result_fail(result *in, const char *format, ...)
{
    va_list list;

    in->failures++;
    if (in->failure[0] != '\0') {
        return;
    }
    va_start(list, format);
    (void)vsnprintf(in->failure, sizeof(in->failure), format, list);
    va_end(list);
}

void result_free(result *gone)
{
    free(gone->calls);
    free(gone->line.points);
    free(gone->dump);
    memset(gone, 0, sizeof(*gone));
}
