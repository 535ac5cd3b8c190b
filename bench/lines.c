/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/lines.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

/* No row of a log comes near. What is longer is not a log. */
#define LINE_MAX_BYTES ((size_t)64 * 1024)
#define BUFFER_BYTES (2 * LINE_MAX_BYTES)

/*
 *   buffer   | given out | not yet given | free | 0 |
 *                        ^ start         ^ end
 */
struct lines {
    gzFile file;
    size_t row;
    size_t start;
    size_t end;
    bool at_end; /* of the file */
    bool cut;
    char buffer[BUFFER_BYTES + 1];
};

lines *lines_open(const char *path, char *message, size_t size)
{
    lines *from = calloc(1, sizeof(*from));

    if (from == NULL) {
        (void)snprintf(message, size, "out of memory");
        return NULL;
    }
    errno = 0;
    from->file = gzopen(path, "rb");
    if (from->file == NULL) {
        (void)snprintf(message, size, "%s",
                       errno != 0 ? strerror(errno) : "out of memory");
        free(from);
        return NULL;
    }
    (void)gzbuffer(from->file, 128 * 1024);
    return from;
}

/* More bytes behind those that are there. 1, 0 at the end, -1. */
static int fill(lines *from, char *message, size_t size)
{
    const char *text;
    int error = Z_OK;
    int got;

    memmove(from->buffer, from->buffer + from->start, from->end - from->start);
    from->end -= from->start;
    from->start = 0;
    errno = 0;
    got = gzread(from->file, from->buffer + from->end,
                 (unsigned)(BUFFER_BYTES - from->end));
    if (got > 0) {
        from->end += (size_t)got;
        return 1;
    }
    /* A compressed file that stops too soon gives no bytes, and this. */
    text = gzerror(from->file, &error);
    if (error == Z_OK) {
        from->at_end = true;
        return 0;
    }
    if (error == Z_BUF_ERROR) {
        text = "the compressed data stops too soon";
    } else if (error == Z_ERRNO) {
        text = strerror(errno);
    }
    (void)snprintf(message, size, "cannot be read further: %s", text);
    return -1;
}

/* Ends the line of `length` bytes at `start`, and gives it out. */
static int give(lines *from, size_t length, size_t with_end, char **line,
                char *message, size_t size)
{
    char *text = from->buffer + from->start;

    from->row++;
    from->start += with_end;
    if (length > 0 && text[length - 1] == '\r') {
        length--;
    }
    if (memchr(text, 0, length) != NULL) {
        (void)snprintf(message, size, "holds a zero byte: this is not text");
        return -1;
    }
    text[length] = '\0';
    *line = text;
    if (from->row == 1 && strncmp(text, "\xef\xbb\xbf", 3) == 0) {
        *line += 3; /* a byte order mark */
    }
    return 1;
}

int lines_next(lines *from, char **line, char *message, size_t size)
{
    for (;;) {
        size_t held = from->end - from->start;
        const char *text = from->buffer + from->start;
        const char *stop = memchr(text, '\n', held);
        int ret;

        if (stop != NULL) {
            size_t length = (size_t)(stop - text);

            from->cut = false;
            return give(from, length, length + 1, line, message, size);
        }
        if (from->at_end) {
            if (held == 0) {
                return 0;
            }
            from->cut = true;
            return give(from, held, held, line, message, size);
        }
        if (held > LINE_MAX_BYTES) {
            from->row++;
            (void)snprintf(message, size,
                           "is longer than %zu bytes: this is not a log",
                           LINE_MAX_BYTES);
            return -1;
        }
        ret = fill(from, message, size);
        if (ret < 0) {
            from->row++;
            return ret;
        }
    }
}

size_t lines_row(const lines *from)
{
    return from->row;
}

bool lines_cut(const lines *from)
{
    return from->cut;
}

void lines_close(lines *from)
{
    if (from != NULL) {
        (void)gzclose(from->file);
        free(from);
    }
}
