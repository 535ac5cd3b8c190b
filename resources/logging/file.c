/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log's file.
 */
#include "resources/logging/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/error.h"

static ccmr_status fail_file(const char *what, const char *path)
{
    return ccmr__fail(CCMR_ERROR_IO, "cannot %s the log '%s': %s", what, path,
                      strerror(errno));
}

/* File systems without locks go without. */
static ccmr_status take_over(int fd, const char *path)
{
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        return ccmr__fail(CCMR_ERROR_BUSY,
                          "'%s' is being written by another log", path);
    }
    if (ftruncate(fd, 0) != 0) {
        return fail_file("truncate", path);
    }
    return CCMR_SUCCESS;
}

ccmr_status ccmr__file_open(const char *path, int *fd, int *regular)
{
    ccmr_status status = CCMR_SUCCESS;
    struct stat about;
    int opened = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);

    if (opened < 0) {
        return fail_file("open", path);
    }
    if (fstat(opened, &about) != 0) {
        status = fail_file("look at", path);
    } else if (S_ISREG(about.st_mode)) {
        status = take_over(opened, path);
    }
    if (status != CCMR_SUCCESS) {
        (void)close(opened);
        return status;
    }
    *fd = opened;
    *regular = S_ISREG(about.st_mode);
    return CCMR_SUCCESS;
}

void ccmr__file_close(int fd)
{
    if (fd >= 0) {
        /* A forked child may hold the file open, and with it the lock. */
        (void)flock(fd, LOCK_UN);
        (void)close(fd);
    }
}

uint64_t ccmr__rows_count(const char *rows, size_t length)
{
    const char *end = rows + length;
    uint64_t count = 0;

    while (rows < end) {
        const char *newline = memchr(rows, '\n', (size_t)(end - rows));

        if (newline == NULL) {
            break;
        }
        count++;
        rows = newline + 1;
    }
    return count;
}

/* As much as can be written. */
static size_t write_all(int fd, const char *rows, size_t length, int *error)
{
    size_t done = 0;

    *error = 0;
    while (done < length) {
        ssize_t ret = write(fd, rows + done, length - done);

        if (ret > 0) {
            done += (size_t)ret;
        } else if (ret == 0 || errno != EINTR) {
            *error = ret == 0 ? EIO : errno;
            break;
        }
    }
    return done;
}

uint64_t ccmr__file_write(int fd, int regular, uint64_t *size,
                          const char *rows, size_t length, int *error)
{
    size_t done = write_all(fd, rows, length, error);
    size_t whole = done;

    if (done == length) {
        *size += done;
        return 0;
    }
    while (whole > 0 && rows[whole - 1] != '\n') {
        whole--;
    }
    *size += whole;
    if (whole < done && regular) {
        (void)ftruncate(fd, (off_t)*size);
    }
    return ccmr__rows_count(rows + whole, length - whole);
}
