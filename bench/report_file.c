/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/report.h"

#include <errno.h>
#include <string.h>

FILE *report_open(const char *path)
{
    FILE *file;

    if (strcmp(path, "-") == 0) {
        return stdout;
    }
    file = fopen(path, "w");
    if (file == NULL) {
        (void)fprintf(stderr, "cucoremr-bench: %s: %s\n", path,
                      strerror(errno));
    }
    return file;
}

bool report_close(const char *path, FILE *file)
{
    bool good = ferror(file) == 0;

    errno = 0;
    if (file == stdout) {
        good = fflush(file) == 0 && good;
    } else {
        good = fclose(file) == 0 && good;
    }
    if (!good) {
        (void)fprintf(stderr, "cucoremr-bench: %s: %s\n", path,
                      errno != 0 ? strerror(errno) : "cannot be written");
    }
    return good;
}
