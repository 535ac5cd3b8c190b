/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logging: a row for each allocation and free, in RMM's CSV format.
 */
#ifndef CUCOREMR_RESOURCES_LOGGING_H
#define CUCOREMR_RESOURCES_LOGGING_H

#include <cucoremr/resource.h>

/* Columns that can follow RMM's six, in this order. */
#define CCMR_LOG_DEVICE 0x1u    /**< Device: ordinal, -1 if none */
#define CCMR_LOG_ALIGNMENT 0x2u /**< Alignment: bytes */
#define CCMR_LOG_CHOSEN                                                       \
    0x4u /**< Chosen: allocate: the stream that a free
                                     with none named would use; free: the
                                     stream that it uses */
#define CCMR_LOG_LATENCY                                                      \
    0x8u /**< Latency: nanoseconds that the upstream
                                     took to allocate, or to fail; empty for
                                     a free, whose row comes before it */

/**
 * Where rows go instead of a file. Called with whole rows, one or several,
 * each ended by a newline, in order; never two calls at once; not from within
 * itself; with no lock held. The first call gets the header. Non-zero: the
 * rows are lost, which no allocation minds and flush reports.
 *
 * A sink may use any resource, the one that logs as well: such a call is
 * served at once, and its rows wait for a later call of the sink (if a whole
 * buffer of them waits, they are lost, and flush reports it). A flush from
 * inside is CCMR_ERROR_BUSY. A sink must not wait for other threads that use
 * the resource, and `context` must be there until the resource has gone or the
 * process has ended: at exit the last rows come.
 */
typedef int (*ccmr_log_sink)(void *context, const char *rows, size_t length);

/** Options. @since 0.1 */
typedef struct ccmr_logging_options {
    size_t size;        /**< sizeof(ccmr_logging_options) */
    const char *file;   /**< truncated; or NULL with a sink */
    ccmr_log_sink sink; /**< or NULL with a file */
    void *context;      /**< handed to the sink */
    int flush;          /**< 1: each row is written before the call returns */
    unsigned columns;   /**< CCMR_LOG_... */
} ccmr_logging_options;

CCMR_BEGIN_DECLS

/**
 * Make a logging adaptor. Rows are
 * `Thread,Time,Action,Pointer,Size,Stream` exactly as RMM writes them: OS
 * thread id; local time HH:MM:SS.microseconds; allocate, free, or
 * `allocate failure` with pointer (nil); size as asked; stream as 0x...
 * (0x1 legacy, 0x2 per-thread, 0xfffffffffffffffe CCMR_STREAM_READY).
 *
 * An allocation is logged after the upstream gave it, a free before the
 * upstream gets it, so rows of one pointer are in true order across threads.
 * A free that the upstream refuses is followed by an `allocate` row of the
 * same block, size and all: the log balances where the block was live with
 * that size. A log of double frees or of wrong sizes shows them as they were,
 * and a replay says so. Blocks from before the log began have their
 * free rows too. 0-byte requests make no row. Times never go backwards but at
 * midnight: the clock and the time zone are looked at once, at the opening.
 *
 * Rows are buffered and written when the buffer is full, on flush, on the last
 * release and at exit; what is buffered when the process is killed is lost.
 * With `flush` each row is written before its call returns, and no row is ever
 * torn, however the process ends: there, a row that would end just before a
 * multiple of 4096 bytes of the file is stretched to it by zeros in front of
 * its thread id. What cannot be written is lost, fails no allocation, and is
 * reported by flush; a file has whole rows only. A forked child writes nothing.
 *
 * A regular file belongs to one log: it is locked (flock) while it is open,
 * and opening it once more is CCMR_ERROR_BUSY. CCMR_ERROR_IO: the file, with
 * errno's text. The upstream is retained.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status ccmr_logging_create(
    ccmr_resource *upstream, const ccmr_logging_options *options,
    ccmr_resource **resource);

/**
 * Write what is buffered. CCMR_ERROR_IO if rows were lost since the last
 * flush, with their number and why; CCMR_ERROR_BUSY from inside the sink;
 * CCMR_ERROR_INVALID_ARGUMENT if the resource is not a logging one.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status
ccmr_logging_flush(ccmr_resource *resource);

CCMR_END_DECLS

#endif /* CUCOREMR_RESOURCES_LOGGING_H */
