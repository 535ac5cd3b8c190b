/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log: rows in order, on their way to a file or a sink.
 *
 *     append -> |row|row|row|      | fill      under `lock`
 *                                              |
 *                                         swapped when full, by whoever
 *                                         becomes the writer
 *                                              v
 *               |row|row|row|row|row| spare -> file or sink, no lock held
 *
 * `busy` is held to append a row and to swap the buffers, for some ten
 * nanoseconds: a word that is spun for, half as dear as a mutex. `writer` is
 * the thread that writes `spare` (0: nobody); there is one at a time, so that
 * batches keep their order. Others append meanwhile, and wait, under `lock`,
 * only when `fill` is full too or, with `flush`, for their own row. `lock` is
 * taken before `busy`.
 *
 * A sink that uses the logging resource comes back here as the writer: its
 * rows are appended for a later batch; where there is no room they are lost
 * and counted. It never waits and never calls itself.
 *
 * Times are CLOCK_MONOTONIC, moved once, at the opening, to the local time of
 * day: they never go backwards, whatever happens to the system's clock or to
 * summer time, but for midnight.
 *
 * A process that is killed leaves whole rows. With `flush` each row goes with
 * the same write(2) as a whole; the kernel can cut a write that is killed at
 * the boundary of a page. So no row lies across a multiple of ROW_PAGE in the
 * file: the last before one is stretched to end there, by zeros in front of
 * its thread.
 */
#ifndef CCMR_RESOURCES_LOGGING_LOG_H
#define CCMR_RESOURCES_LOGGING_LOG_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/process.h"
#include "resources/logging/row.h"
#include "resources/logging/tick.h"

typedef struct ccmr__log {
    /* Fixed at the opening. */
    int fd; /* -1 with a sink */
    int regular;
    ccmr_log_sink sink;
    void *context;
    char *path; /* NULL with a sink */
    unsigned columns;
    int flush;
    uint64_t local; /* nanoseconds from monotonic to local time */
    ccmr__exit_hook at_exit;

    pthread_mutex_t lock;
    pthread_cond_t written; /* `writer` has become 0 */

    /* Under `lock`: */
    int writer;
    uint64_t delivered; /* bytes of `appended`, written or lost */
    uint64_t lost;      /* rows, since the last flush */
    int lost_errno;     /* why the first; 0: the sink refused it */

    /* In a line of its own, so that waiting disturbs nobody at work: */
    _Alignas(64) atomic_int busy;

    /* Under `busy`: */
    _Alignas(64) char *fill;
    size_t used;       /* bytes of `fill` */
    uint64_t appended; /* bytes, since the opening */
    uint64_t file_end; /* where the next row will be in the file */
    uint64_t last;     /* local time of the last row */
    ccmr__tick tick;   /* `even` is fixed at the opening */
    uint64_t second;   /* what `clock` says */
    char clock[9];

    /* The writer's: */
    char *spare;
    uint64_t file_size; /* bytes of whole rows in the file */
} ccmr__log;

/** Open a log. Options have been checked. */
ccmr_status ccmr__log_open(const ccmr_logging_options *options,
                           ccmr__log **log);

/** Write what is left and close. Nobody else uses the log any more. */
void ccmr__log_close(ccmr__log *log);

/** Append a row; puts the time into it. Never fails. */
void ccmr__log_append(ccmr__log *log, ccmr__row_text *row);

/** Write what has been appended before; tells, once, what was lost. */
ccmr_status ccmr__log_flush(ccmr__log *log);

#endif /* CCMR_RESOURCES_LOGGING_LOG_H */
