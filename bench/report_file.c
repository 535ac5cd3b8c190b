/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/report.h"

#include <errno.h>
#include <string.h>

static FILE *open_file(const char *path, const char *mode)
{
    FILE *file = fopen(path, mode);

    if (file == NULL) {
        (void)fprintf(stderr, "cucoremr-bench: %s: %s\n", path,
                      strerror(errno));
    }
    return file;
}

bool report_can_open(const char *path)
{
    FILE *file;

    if (path == NULL || strcmp(path, "-") == 0) {
        return true;
    }
    /* What is there stays as it is until there is something to write. */
    file = open_file(path, "a");
    return file != NULL && fclose(file) == 0;
}

FILE *report_open(const char *path)
{
    return strcmp(path, "-") == 0 ? stdout : open_file(path, "w");
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
