/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One row of a log as text.
 *
 *     4242,10:03:07.000142,allocate,0x7f0d91583a00,131072,0x1
 *     |    |              |                                  |
 *     |    time: ccmr__row_time, when the row's place is     columns of
 *     |    known                                             our own
 *     thread
 */
#ifndef CCMR_RESOURCES_LOGGING_ROW_H
#define CCMR_RESOURCES_LOGGING_ROW_H

#include <stddef.h>
#include <stdint.h>

#include <cucoremr/resources/logging.h>

/* "HH:MM:SS.uuuuuu" */
#define CCMR__ROW_TIME 15
/* The longest row with every column; RMM's six alone are shorter. */
#define CCMR__ROW_MOST 192
#define CCMR__ROW_MOST_PLAIN 104

typedef enum ccmr__row_action {
    CCMR__ROW_ALLOCATE,
    CCMR__ROW_FREE,
    CCMR__ROW_FAILURE
} ccmr__row_action;

/* What a row says. */
typedef struct ccmr__row {
    ccmr__row_action action;
    const void *ptr;
    size_t bytes;
    ccmr_stream stream;
    unsigned columns; /* CCMR_LOG_... */
    int device;
    size_t alignment;
    ccmr_stream chosen; /* CCMR_STREAM_UNSET: left empty */
    uint64_t latency;   /* nanoseconds; UINT64_MAX: left empty */
} ccmr__row;

/* Its text: the time is to be put at `text + time`. */
typedef struct ccmr__row_text {
    char text[CCMR__ROW_MOST];
    size_t length;
    size_t time;
} ccmr__row_text;

/** Everything but the time. */
void ccmr__row_format(ccmr__row_text *to, const ccmr__row *row);

/** The first line of a log with these columns, with its newline. */
size_t ccmr__row_header(char *to, size_t capacity, unsigned columns);

/** The seconds of a day as "HH:MM:SS.", 9 characters. */
void ccmr__row_second(char *to, uint64_t second);

/** Microseconds as 6 digits. */
void ccmr__row_micros(char *to, uint32_t micros);

/** The system's id of the calling thread, as in a row. */
int ccmr__row_thread(void);

#endif /* CCMR_RESOURCES_LOGGING_ROW_H */
