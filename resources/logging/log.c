/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log: buffers, the writer, opening and closing, the end of the process.
 */
#include "resources/logging/log.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/error.h"
#include "resources/logging/file.h"

#define BUFFER_SIZE ((size_t)1 << 16)
/* A row is appended where no more than this is used: by the writer itself,
 * from inside its sink, and by all others, who leave some room for it. */
#define USED_BY_WRITER (BUFFER_SIZE - 2 * CCMR__ROW_MOST)
#define USED_BY_OTHERS (USED_BY_WRITER - 8192)
/* Writes are killed whole within these: the smallest page there is. */
#define ROW_PAGE 4096u
/* How long exit may wait for a thread that writes, in nanoseconds. */
#define EXIT_PATIENCE 200000000
#define EXIT_TRIES 2000u

/* ---- the word that is spun for ------------------------------------------ */

/* A holder that was preempted gets the processor; where it has a lower real
 * time priority than this thread, only a sleep lets it run. */
static void pause_for(unsigned tries)
{
    static const struct timespec nap = {0, 50000};

    if (tries < 40) {
#if defined(__x86_64__)
        unsigned i;

        for (i = 0; i < 1u << tries / 8; i++) {
            __builtin_ia32_pause();
        }
#endif
    } else if (tries < 1000) {
        (void)sched_yield();
    } else {
        (void)nanosleep(&nap, NULL);
    }
}

static int try_busy(ccmr__log *log)
{
    return atomic_exchange_explicit(&log->busy, 1, memory_order_acquire) == 0;
}

static void __attribute__((cold, noinline)) spin_busy(ccmr__log *log)
{
    unsigned tries = 0;

    do {
        while (atomic_load_explicit(&log->busy, memory_order_relaxed) != 0) {
            pause_for(tries++);
        }
    } while (!try_busy(log));
}

static void take_busy(ccmr__log *log)
{
    if (__builtin_expect(!try_busy(log), 0)) {
        spin_busy(log);
    }
}

static void leave_busy(ccmr__log *log)
{
    atomic_store_explicit(&log->busy, 0, memory_order_release);
}

/* ---- delivering -------------------------------------------------------- */

/* Hand rows out, with no lock held. Returns how many were lost. */
static uint64_t write_rows(ccmr__log *log, const char *rows, size_t length,
                           int *error)
{
    *error = 0;
    if (length == 0) {
        return 0;
    }
    if (log->sink != NULL) {
        if (log->sink(log->context, rows, length) == 0) {
            return 0;
        }
        return ccmr__rows_count(rows, length);
    }
    return ccmr__file_write(log->fd, log->regular, &log->file_size, rows,
                            length, error);
}

/* As the writer: the buffers change places. Returns the length of `spare`. */
static size_t swap_buffers(ccmr__log *log)
{
    char *rows;
    size_t length;

    take_busy(log);
    rows = log->fill;
    length = log->used;
    log->fill = log->spare;
    log->used = 0;
    leave_busy(log);
    log->spare = rows;
    return length;
}

static void note_lost(ccmr__log *log, uint64_t rows, int error)
{
    if (log->lost == 0) {
        log->lost_errno = error;
    }
    log->lost += rows;
}

/* Under the lock, which is left meanwhile; nobody is the writer. */
static void deliver(ccmr__log *log)
{
    uint64_t lost;
    size_t length;
    int error;

    assert(log->writer == 0);
    log->writer = ccmr__row_thread();
    (void)pthread_mutex_unlock(&log->lock);
    length = swap_buffers(log);
    lost = write_rows(log, log->spare, length, &error);
    if (lost != 0) {
        take_busy(log);
        log->file_end = log->file_size + log->used;
        leave_busy(log);
    }
    (void)pthread_mutex_lock(&log->lock);
    log->writer = 0;
    log->delivered += length;
    if (lost != 0) {
        note_lost(log, lost, error);
    }
    (void)pthread_cond_broadcast(&log->written);
}

/* Under the lock: see that the bytes before `end` are delivered. */
static void deliver_until(ccmr__log *log, uint64_t end)
{
    while (log->delivered < end) {
        if (log->writer != 0) {
            (void)pthread_cond_wait(&log->written, &log->lock);
        } else {
            deliver(log);
        }
    }
}

static uint64_t appended(ccmr__log *log)
{
    uint64_t bytes;

    take_busy(log);
    bytes = log->appended;
    leave_busy(log);
    return bytes;
}

/* ---- appending --------------------------------------------------------- */

/* While busy: put the time into the row. */
static void put_time(ccmr__log *log, char *to, uint64_t reading)
{
    uint64_t now = ccmr__tick_time(&log->tick, reading) + log->local;
    uint64_t second;

    /* Another thread may have read its clock later and come first. */
    if (now < log->last) {
        now = log->last;
    }
    log->last = now;
    second = now / 1000000000u;
    if (second != log->second) {
        log->second = second;
        ccmr__row_second(log->clock, second);
    }
    memcpy(to, log->clock, sizeof(log->clock));
    ccmr__row_micros(to + sizeof(log->clock),
                     (uint32_t)(now % 1000000000u) / 1000u);
}

/* Zeros in front of a row that shall end with its page. */
static size_t stretch(const ccmr__log *log, size_t length)
{
    size_t most = log->columns == 0 ? CCMR__ROW_MOST_PLAIN : CCMR__ROW_MOST;
    size_t left = ROW_PAGE - (log->file_end + length) % ROW_PAGE;

    return log->flush && log->regular && left < most ? left : 0;
}

/* While busy, and there is room. */
static void put_row(ccmr__log *log, ccmr__row_text *row, uint64_t reading)
{
    size_t zeros = stretch(log, row->length);
    char *to = log->fill + log->used;

    if (__builtin_expect(zeros != 0, 0)) {
        memset(to, '0', zeros);
    }
    memcpy(to + zeros, row->text, sizeof(row->text));
    put_time(log, to + zeros + row->time, reading);
    log->used += zeros + row->length;
    log->appended += zeros + row->length;
    log->file_end += zeros + row->length;
}

/* More than `most` is used. Wait until that is over, or see to it. Returns how
 * much may be used now; 0: the row is lost. */
static size_t __attribute__((cold, noinline))
make_room(ccmr__log *log, size_t most)
{
    int full;

    (void)pthread_mutex_lock(&log->lock);
    if (log->writer == ccmr__row_thread()) {
        /* Nobody else can make room. */
        if (most == USED_BY_WRITER) {
            note_lost(log, 1, 0);
            most = 0;
        } else {
            most = USED_BY_WRITER;
        }
    } else if (log->writer != 0) {
        (void)pthread_cond_wait(&log->written, &log->lock);
    } else {
        /* Somebody may have been faster. */
        take_busy(log);
        full = log->used > most;
        leave_busy(log);
        if (full) {
            deliver(log);
        }
    }
    (void)pthread_mutex_unlock(&log->lock);
    return most;
}

/* With `flush`: the row that ends there shall be written now. From inside the
 * sink it waits for the next one. */
static void __attribute__((noinline)) write_now(ccmr__log *log, uint64_t end)
{
    (void)pthread_mutex_lock(&log->lock);
    if (log->writer != ccmr__row_thread()) {
        deliver_until(log, end);
    }
    (void)pthread_mutex_unlock(&log->lock);
}

void ccmr__log_append(ccmr__log *log, ccmr__row_text *row)
{
    uint64_t reading = ccmr__tick_read(&log->tick);
    size_t most = USED_BY_OTHERS;
    uint64_t end;

    take_busy(log);
    while (__builtin_expect(log->used > most, 0)) {
        leave_busy(log);
        most = make_room(log, most);
        if (most == 0) {
            return;
        }
        take_busy(log);
    }
    put_row(log, row, reading);
    end = log->appended;
    leave_busy(log);
    if (log->flush) {
        write_now(log, end);
    }
}

/* Under the lock: what was lost since this was asked last. */
static ccmr_status tell_lost(ccmr__log *log)
{
    unsigned long long lost = log->lost;

    log->lost = 0;
    if (lost == 0) {
        return CCMR_SUCCESS;
    }
    if (log->lost_errno != 0) {
        return ccmr__fail(CCMR_ERROR_IO, "%llu rows of %s are lost: %s", lost,
                          log->path, strerror(log->lost_errno));
    }
    return ccmr__fail(CCMR_ERROR_IO,
                      "%llu rows are lost: the sink refused them, or used the "
                      "resource and the buffer was full",
                      lost);
}

ccmr_status ccmr__log_flush(ccmr__log *log)
{
    ccmr_status status;

    (void)pthread_mutex_lock(&log->lock);
    if (log->writer == ccmr__row_thread()) {
        status = ccmr__fail(CCMR_ERROR_BUSY,
                            "the log cannot be flushed from its own sink");
    } else {
        deliver_until(log, appended(log));
        status = tell_lost(log);
    }
    (void)pthread_mutex_unlock(&log->lock);
    return status;
}

/* ---- the end of the process --------------------------------------------- */

/* Whether there is something to write that can be got at: this very thread may
 * have been interrupted, by a signal, while it appended. */
static int has_rows(ccmr__log *log)
{
    unsigned tries = 0;
    int found;

    while (!try_busy(log)) {
        pause_for(tries);
        if (tries++ == EXIT_TRIES) {
            return 0;
        }
    }
    found = log->delivered < log->appended;
    leave_busy(log);
    return found;
}

/* Other threads still run, and one may be held up for ever while it writes:
 * patience is bounded. The exit may also have been called from the sink. */
static void run_at_exit(ccmr__exit_hook *hook)
{
    ccmr__log *log =
        (ccmr__log *)((char *)hook - offsetof(ccmr__log, at_exit));
    struct timespec end;
    int ret = 0;

    (void)clock_gettime(CLOCK_REALTIME, &end);
    end.tv_nsec += EXIT_PATIENCE;
    end.tv_sec += end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    if (pthread_mutex_timedlock(&log->lock, &end) != 0) {
        return;
    }
    while (ret == 0 && log->writer != ccmr__row_thread() && has_rows(log)) {
        if (log->writer != 0) {
            ret = pthread_cond_timedwait(&log->written, &log->lock, &end);
        } else {
            deliver(log);
        }
    }
    (void)pthread_mutex_unlock(&log->lock);
}

/* ---- opening and closing ------------------------------------------------ */

/* Monotonic to local time of day, as of now. */
static uint64_t local_offset(void)
{
    struct timespec real;
    struct tm parts;
    int64_t zone = 0;

    (void)clock_gettime(CLOCK_REALTIME, &real);
    if (localtime_r(&real.tv_sec, &parts) != NULL) {
        zone = parts.tm_gmtoff;
    }
    return (uint64_t)(real.tv_sec + zone) * 1000000000u +
           (uint64_t)real.tv_nsec - ccmr__clock_now();
}

static void log_free(ccmr__log *log)
{
    free(log->spare);
    free(log->fill);
    free(log->path);
    free(log);
}

static ccmr__log *log_make(const ccmr_logging_options *options)
{
    ccmr__log *log = aligned_alloc(64, sizeof(*log));

    if (log == NULL) {
        return NULL;
    }
    memset(log, 0, sizeof(*log));
    atomic_init(&log->busy, 0);
    ccmr__tick_init(&log->tick);
    log->fd = -1;
    log->sink = options->sink;
    log->context = options->context;
    log->columns = options->columns;
    log->flush = options->flush != 0;
    log->local = local_offset();
    log->second = UINT64_MAX;
    log->at_exit.run = run_at_exit;
    log->fill = malloc(BUFFER_SIZE);
    log->spare = malloc(BUFFER_SIZE);
    if (log->sink == NULL) {
        log->path = strdup(options->file);
    }
    if (log->fill == NULL || log->spare == NULL ||
        (log->sink == NULL && log->path == NULL)) {
        log_free(log);
        return NULL;
    }
    return log;
}

/* The first line. With `flush` it is written now, and must succeed. */
static ccmr_status put_header(ccmr__log *log)
{
    log->used = ccmr__row_header(log->fill, BUFFER_SIZE, log->columns);
    log->appended = log->used;
    log->file_end = log->used;
    return log->flush ? ccmr__log_flush(log) : CCMR_SUCCESS;
}

ccmr_status ccmr__log_open(const ccmr_logging_options *options,
                           ccmr__log **log)
{
    ccmr_status status = CCMR_ERROR_OUT_OF_HOST_MEMORY;
    ccmr__log *made = log_make(options);

    if (made == NULL) {
        goto err_memory;
    }
    if (pthread_mutex_init(&made->lock, NULL) != 0) {
        goto err_free;
    }
    if (pthread_cond_init(&made->written, NULL) != 0) {
        goto err_lock;
    }
    if (made->sink == NULL) {
        status = ccmr__file_open(made->path, &made->fd, &made->regular);
        if (status != CCMR_SUCCESS) {
            goto err_written;
        }
    }
    status = put_header(made);
    if (status != CCMR_SUCCESS) {
        goto err_close;
    }
    ccmr__exit_hook_add(&made->at_exit);
    *log = made;
    return CCMR_SUCCESS;

err_close:
    ccmr__file_close(made->fd);
err_written:
    (void)pthread_cond_destroy(&made->written);
err_lock:
    (void)pthread_mutex_destroy(&made->lock);
err_free:
    log_free(made);
err_memory:
    if (status == CCMR_ERROR_OUT_OF_HOST_MEMORY) {
        status = ccmr__fail(status, "no memory for a log");
    }
    return status;
}

void ccmr__log_close(ccmr__log *log)
{
    ccmr__exit_hook_remove(&log->at_exit);
    (void)pthread_mutex_lock(&log->lock);
    deliver_until(log, appended(log));
    (void)pthread_mutex_unlock(&log->lock);
    ccmr__file_close(log->fd);
    (void)pthread_cond_destroy(&log->written);
    (void)pthread_mutex_destroy(&log->lock);
    log_free(log);
}
