/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/progress.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

static bool silent;
static bool shown;

void progress_silence(void)
{
    silent = true;
}

void progress_show(const char *format, ...)
{
    char line[80];
    va_list list;

    if (silent || isatty(STDERR_FILENO) == 0) {
        return;
    }
    va_start(list, format);
    (void)vsnprintf(line, sizeof(line), format, list);
    va_end(list);
    (void)fprintf(stderr, "\r\033[K%s", line);
    (void)fflush(stderr);
    shown = true;
}

void progress_end(void)
{
    if (shown) {
        (void)fputs("\r\033[K", stderr);
        (void)fflush(stderr);
        shown = false;
    }
}
