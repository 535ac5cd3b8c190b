/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/log_row.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_FIELDS 64
#define MICROSECONDS INT64_C(1000000)

/* Why the oldest format cannot be replayed. */
static const char old_format[] =
    "this is the 12-column log that RMM wrote in 2019: its frees have no size "
    "and its rows no thread; record the program again with a logging adaptor";

/* Cuts blanks off both ends. */
static char *trim(char *text)
{
    size_t length;

    while (*text == ' ' || *text == '\t') {
        text++;
    }
    length = strlen(text);
    while (length > 0 &&
           (text[length - 1] == ' ' || text[length - 1] == '\t')) {
        length--;
    }
    text[length] = '\0';
    return text;
}

/* A field in double quotes, in which "" stands for one. Returns what follows
 * it, NULL if it has no end. */
static char *unquote(char *text)
{
    char *to = text;
    char *from = text + 1;

    for (; *from != '\0'; from++) {
        if (*from == '"') {
            if (from[1] != '"') {
                *to = '\0';
                return from + 1;
            }
            from++;
        }
        *to++ = *from;
    }
    return NULL;
}

/* Splits a line in place. Returns the number of fields, -1 if a quote has no
 * end; what is beyond MAX_FIELDS is not looked at. */
static int split(char *line, char *fields[MAX_FIELDS])
{
    int count = 0;
    char *next = line;

    while (next != NULL && count < MAX_FIELDS) {
        char *field = next + strspn(next, " \t");

        if (*field == '"') {
            next = unquote(field);
            if (next == NULL) {
                return -1;
            }
            next = strchr(next, ',');
            if (next != NULL) {
                next++;
            }
        } else {
            next = field;
            (void)strsep(&next, ",");
        }
        fields[count++] = trim(field);
    }
    return count;
}

static bool action_of(const char *text, log_action *action)
{
    static const struct {
        const char *word;
        log_action action;
    } words[] = {{"allocate", LOG_ALLOCATE},
                 {"free", LOG_FREE},
                 {"deallocate", LOG_FREE},
                 {"allocate failure", LOG_FAILURE}};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcasecmp(text, words[i].word) == 0) {
            *action = words[i].action;
            return true;
        }
    }
    return false;
}

/* The whole of `text` as a number without a sign. */
static bool number_of(const char *text, int base, uint64_t *number)
{
    char *end;
    unsigned long long value;

    if (!isxdigit((unsigned char)text[0])) {
        return false;
    }
    errno = 0;
    value = strtoull(text, &end, base);
    if (errno != 0 || end == text || *end != '\0') {
        return false;
    }
    *number = value;
    return true;
}

static bool is_null_word(const char *text)
{
    return strcasecmp(text, "(nil)") == 0 || strcasecmp(text, "nil") == 0 ||
           strcasecmp(text, "null") == 0 || strcasecmp(text, "nullptr") == 0;
}

/*
 * A pointer is hexadecimal with or without 0x, as RMM's own reader has it. It
 * serves as a name only, so that a decimal one may be read the same way; one
 * with too many digits for that is read as what it is.
 */
static bool pointer_of(const char *text, uint64_t *pointer)
{
    if (is_null_word(text)) {
        *pointer = 0;
        return true;
    }
    return number_of(text, 16, pointer) || number_of(text, 10, pointer);
}

static bool stream_of(const char *text, log_row *row)
{
    uint64_t handle = 0;

    if (!is_null_word(text) && !number_of(text, 0, &handle) &&
        !number_of(text, 10, &handle) && !number_of(text, 16, &handle)) {
        return false;
    }
    row->stream = handle;
    if (handle <= 1) {
        row->stream_kind = LOG_STREAM_NULL;
    } else if (handle == 2) {
        row->stream_kind = LOG_STREAM_PER_THREAD;
    } else {
        row->stream_kind = LOG_STREAM_HANDLE;
    }
    return true;
}

/* Digits behind a decimal point as microseconds; further ones are dropped. */
static bool fraction_of(const char *text, int64_t *microseconds)
{
    int64_t value = 0;
    int digits = 0;

    for (; isdigit((unsigned char)*text); text++) {
        if (digits < 6) {
            value = 10 * value + (*text - '0');
            digits++;
        }
    }
    for (; digits < 6; digits++) {
        value *= 10;
    }
    *microseconds = value;
    return *text == '\0';
}

/* HH:MM:SS.ffffff, or seconds with or without a fraction. */
static bool time_of(const char *text, log_row *row)
{
    int64_t fraction = 0;
    unsigned hours;
    unsigned minutes;
    unsigned seconds;
    uint64_t whole;
    char *end;
    int used = 0;

    if (!isdigit((unsigned char)text[0])) {
        return false;
    }
    if (sscanf(text, "%2u:%2u:%2u%n", &hours, &minutes, &seconds, &used) ==
        3) {
        if (hours > 23 || minutes > 59 || seconds > 60) {
            return false;
        }
        row->clock = true;
        whole = 3600 * hours + 60 * minutes + seconds;
        text += used;
    } else {
        errno = 0;
        whole = strtoull(text, &end, 10);
        if (errno != 0 || whole > INT64_MAX / MICROSECONDS - 1) {
            return false;
        }
        row->clock = false;
        text = end;
    }
    if (*text == '.' ? !fraction_of(text + 1, &fraction) : *text != '\0') {
        return false;
    }
    row->time = (int64_t)whole * MICROSECONDS + fraction;
    return true;
}

static int *column_of(log_columns *columns, const char *name)
{
    const struct {
        const char *name;
        int *column;
    } known[] = {
        {"Thread", &columns->thread}, {"Time", &columns->time},
        {"Action", &columns->action}, {"Pointer", &columns->pointer},
        {"Size", &columns->size},     {"Stream", &columns->stream},
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcasecmp(name, known[i].name) == 0) {
            return known[i].column;
        }
    }
    return NULL;
}

static int header_read(log_columns *columns, char *const *fields, int count,
                       char *message, size_t size)
{
    const char *missing = NULL;

    for (int i = 0; i < count; i++) {
        int *column = column_of(columns, fields[i]);

        if (column != NULL && *column >= 0) {
            (void)snprintf(message, size, "has two columns '%s'", fields[i]);
            return 0;
        }
        if (column != NULL) {
            *column = i;
        }
    }
    if (columns->action < 0) {
        missing = "Action";
    } else if (columns->pointer < 0) {
        missing = "Pointer";
    } else if (columns->size < 0) {
        missing = "Size";
    } else {
        return 1;
    }
    (void)snprintf(message, size, "has no column '%s'", missing);
    return 0;
}

static bool is_old_format(char *const *fields, int count)
{
    return count >= 11 && (strcasecmp(fields[0], "Event Type") == 0 ||
                           strcasecmp(fields[0], "Alloc") == 0 ||
                           strcasecmp(fields[0], "Realloc") == 0 ||
                           strcasecmp(fields[0], "Free") == 0);
}

int log_columns_read(log_columns *columns, const char *line, char *message,
                     size_t size)
{
    char *fields[MAX_FIELDS];
    char *copy = strdup(line);
    log_action action;
    int known = 0;
    int count;
    int ret = 0;

    *columns = (log_columns){-1, -1, -1, -1, -1, -1};
    if (copy == NULL) {
        (void)snprintf(message, size, "out of memory");
        return 0;
    }
    count = split(copy, fields);
    for (int i = 0; i < count; i++) {
        known += column_of(columns, fields[i]) != NULL;
    }
    if (is_old_format(fields, count)) {
        (void)snprintf(message, size, "%s", old_format);
    } else if (known >= 2) {
        ret = header_read(columns, fields, count, message, size);
    } else if (count >= 6 && action_of(fields[2], &action)) {
        *columns = (log_columns){0, 1, 2, 3, 4, 5};
        ret = 2;
    } else {
        (void)snprintf(message, size,
                       "is neither the header "
                       "Thread,Time,Action,Pointer,Size,Stream nor a row in "
                       "that order");
    }
    free(copy);
    return ret;
}

/* A column's text in this row: NULL if the log lacks the column. */
static const char *field_of(char *const *fields, int column)
{
    return column < 0 ? NULL : fields[column];
}

static int highest(const log_columns *columns)
{
    const int all[] = {columns->thread,  columns->time, columns->action,
                       columns->pointer, columns->size, columns->stream};
    int most = 0;

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        most = all[i] > most ? all[i] : most;
    }
    return most;
}

static bool wrong(const char *column, const char *text, const char *what,
                  char *message, size_t size)
{
    (void)snprintf(message, size, "%s '%.40s' is not %s", column, text, what);
    return false;
}

/* Size, and the three columns that a log may lack. */
static bool rest_read(log_row *row, const log_columns *columns,
                      char *const *fields, char *message, size_t size)
{
    const char *bytes = fields[columns->size];
    const char *thread = field_of(fields, columns->thread);
    const char *time = field_of(fields, columns->time);
    const char *stream = field_of(fields, columns->stream);

    row->has_bytes = bytes[0] != '\0' || row->action != LOG_FREE;
    if (row->has_bytes && (!isdigit((unsigned char)bytes[0]) ||
                           !number_of(bytes, 10, &row->bytes))) {
        return wrong("Size", bytes, "a number of bytes", message, size);
    }
    if (row->bytes > PTRDIFF_MAX) {
        return wrong("Size", bytes, "a size that a block can have", message,
                     size);
    }
    if (thread != NULL && !number_of(thread, 10, &row->thread) &&
        !number_of(thread, 16, &row->thread)) {
        return wrong("Thread", thread, "a number", message, size);
    }
    if (time != NULL && !time_of(time, row)) {
        return wrong("Time", time, "HH:MM:SS.ffffff or seconds", message,
                     size);
    }
    if (stream != NULL && !stream_of(stream, row)) {
        return wrong("Stream", stream, "a stream handle", message, size);
    }
    return true;
}

bool log_row_read(log_row *row, const log_columns *columns, char *line,
                  char *message, size_t size)
{
    char *fields[MAX_FIELDS];
    int count = split(line, fields);
    int needed = highest(columns) + 1;

    memset(row, 0, sizeof(*row));
    row->stream_kind = LOG_STREAM_NULL;
    if (count < 0) {
        (void)snprintf(message, size, "has a quote without an end");
        return false;
    }
    if (count < needed) {
        (void)snprintf(message, size, "has %d fields, but needs %d", count,
                       needed);
        return false;
    }
    if (!action_of(fields[columns->action], &row->action)) {
        return wrong("Action", fields[columns->action],
                     "allocate, free, deallocate or allocate failure", message,
                     size);
    }
    if (!pointer_of(fields[columns->pointer], &row->pointer)) {
        return wrong("Pointer", fields[columns->pointer], "an address",
                     message, size);
    }
    return rest_read(row, columns, fields, message, size);
}
