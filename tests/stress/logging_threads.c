/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logging under threads: whole rows, in an order that can have happened. The
 * upstream gives an address out again at once. Field cases F1, F7, B8.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cucoremr/cucoremr.h>

#include "tests/stress/crew.h"
#include "tests/support/puppet.h"
#include "tests/support/tap.h"

#define LEGACY CCMR_STREAM_LEGACY
#define THREADS 6
#define ROUNDS 1500
#define SIZES 3

static puppet below;
static ccmr_resource *upstream;
static ccmr_resource *logged;

/* ---- reading a log ---------------------------------------------------------- */

#define ADDRESSES 4096

typedef struct reading {
    size_t allocations;
    size_t frees;
    size_t failures;
    size_t wrong;
    size_t threads;
    long ids[CREW_MOST];
    char last_time[16];
    char live[ADDRESSES]; /* by address / 4096, as the puppet gives them */
} reading;

static void wrong(reading *of, const char *why, const char *line)
{
    if (of->wrong++ < 3) {
        tap_diag("%s: %s", why, line);
    }
}

static void see_thread(reading *of, long id)
{
    size_t i = 0;

    while (i < of->threads && of->ids[i] != id) {
        i++;
    }
    if (i == of->threads && i < CREW_MOST) {
        of->ids[of->threads++] = id;
    }
}

static void read_row(reading *of, char *line)
{
    char copy[256];
    char *field[6];
    char *next = copy;
    uintptr_t ptr;
    int i;

    (void)snprintf(copy, sizeof(copy), "%s", line);
    for (i = 0; i < 6; i++) {
        field[i] = strsep(&next, ",");
        if (field[i] == NULL) {
            wrong(of, "torn", line);
            return;
        }
    }
    see_thread(of, strtol(field[0], NULL, 10));
    if (next != NULL || strlen(field[1]) != 15) {
        wrong(of, "not six columns", line);
        return;
    }
    /* At midnight a day begins anew. */
    if (strcmp(field[1], of->last_time) < 0 && field[1][0] != '0') {
        wrong(of, "back in time", line);
    }
    memcpy(of->last_time, field[1], 16);
    if (strcmp(field[2], "allocate failure") == 0) {
        of->failures++;
        return;
    }
    ptr = (uintptr_t)strtoull(field[3], NULL, 16) / 4096 % ADDRESSES;
    if (strcmp(field[2], "allocate") == 0) {
        of->allocations++;
        if (of->live[ptr]++ != 0) {
            wrong(of, "given out twice", line);
        }
    } else if (strcmp(field[2], "free") == 0) {
        of->frees++;
        if (of->live[ptr]-- != 1) {
            wrong(of, "freed while not live", line);
        }
    } else {
        wrong(of, "what is this", line);
    }
}

static void read_log(reading *of, char *text)
{
    char *line;

    memset(of, 0, sizeof(*of));
    line = strsep(&text, "\n");
    if (strcmp(line, "Thread,Time,Action,Pointer,Size,Stream") != 0) {
        wrong(of, "not the header", line);
    }
    while ((line = strsep(&text, "\n")) != NULL && text != NULL) {
        read_row(of, line);
    }
    if (line == NULL || line[0] != '\0') {
        wrong(of, "the end is not a whole line", line != NULL ? line : "");
    }
}

/* ---- the sink ------------------------------------------------------------------- */

typedef struct sink_data {
    char *text;
    size_t length;
    size_t capacity;
    atomic_int inside;
    int uses; /* calls of the resource from inside, each time */
    size_t calls;
} sink_data;

static sink_data sunk;

static void use(size_t bytes)
{
    void *ptr = NULL;

    CREW_CHECK(ccmr_resource_allocate(logged, bytes, 0, LEGACY, &ptr) ==
               CCMR_SUCCESS);
    CREW_CHECK(ccmr_resource_deallocate(logged, ptr, bytes, 0, LEGACY) ==
               CCMR_SUCCESS);
}

static int sink(void *context, const char *rows, size_t length)
{
    sink_data *to = context;
    int i;

    if (atomic_exchange(&to->inside, 1) != 0) {
        crew_fault("two calls of the sink at once");
    }
    to->calls++;
    if (to->length + length + 1 <= to->capacity) {
        memcpy(to->text + to->length, rows, length);
        to->length += length;
        to->text[to->length] = '\0';
    } else {
        crew_fault("more rows than there can be");
    }
    for (i = 0; i < to->uses; i++) {
        use(77);
    }
    atomic_store(&to->inside, 0);
    return 0;
}

/* ---- the work --------------------------------------------------------------------- */

static void work(crew_member *self)
{
    const int *flushes = self->context;
    int i;

    for (i = 0; i < ROUNDS; i++) {
        use(1 + crew_random(self, SIZES));
        if (*flushes != 0 && self->index == 0 && i % 16 == 0) {
            CREW_CHECK(ccmr_logging_flush(logged) == CCMR_SUCCESS);
        }
    }
}

static void set_up(const ccmr_logging_options *options)
{
    puppet_init(&below);
    upstream = puppet_resource(&below);
    if (ccmr_logging_create(upstream, options, &logged) != CCMR_SUCCESS) {
        tap_bail_out("%s", ccmr_last_error()->message);
    }
}

static void tear_down(void)
{
    ccmr_resource_release(logged);
    ccmr_resource_release(upstream);
    tap_ok(puppet_clear(&below), "nothing is left");
}

static void judge(char *text, size_t pairs, size_t threads, const char *what)
{
    static reading of;

    read_log(&of, text);
    tap_is_size(of.wrong, 0, "%s: every row is right", what);
    tap_is_size(of.allocations, pairs, "%s: every allocation is there", what);
    tap_is_size(of.frees, pairs, "%s: every free is there", what);
    tap_is_size(of.threads, threads, "%s: every thread is there", what);
    tap_is_int(crew_faults(), 0, "%s: nothing went wrong", what);
}

static void test_sink(int flush, int flushes, const char *what)
{
    const ccmr_logging_options options = {
        .size = sizeof(options),
        .sink = sink,
        .context = &sunk,
        .flush = flush,
    };

    memset(&sunk, 0, sizeof(sunk));
    sunk.capacity = (size_t)THREADS * ROUNDS * 2 * 128 + 4096;
    sunk.text = malloc(sunk.capacity);
    if (sunk.text == NULL) {
        tap_bail_out("no memory");
    }
    set_up(&options);
    crew_run(THREADS, work, &flushes);
    tear_down();
    judge(sunk.text, (size_t)THREADS * ROUNDS, THREADS, what);
    free(sunk.text);
}

/* A sink that uses the resource: nothing stands still, and what it did is in
 * the log as well. */
static void test_sink_inside(int flush, const char *what)
{
    const ccmr_logging_options options = {
        .size = sizeof(options),
        .sink = sink,
        .context = &sunk,
        .flush = flush,
    };
    int flushes = 1;
    size_t uses;

    memset(&sunk, 0, sizeof(sunk));
    sunk.capacity = (size_t)THREADS * ROUNDS * 8 * 128 + 4096;
    sunk.text = malloc(sunk.capacity);
    if (sunk.text == NULL) {
        tap_bail_out("no memory");
    }
    set_up(&options);
    sunk.uses = 1;
    crew_run(THREADS, work, &flushes);
    sunk.uses = 0;
    uses = sunk.calls - (flush != 0); /* the header's came before */
    CREW_CHECK(ccmr_logging_flush(logged) == CCMR_SUCCESS);
    tear_down();
    judge(sunk.text, (size_t)THREADS * ROUNDS + uses, THREADS, what);
    free(sunk.text);
}

static void test_file(int flush, const char *what)
{
    char path[] = "/tmp/ccmr-logging-XXXXXX";
    int fd = mkstemp(path);
    const ccmr_logging_options options = {
        .size = sizeof(options),
        .file = path,
        .flush = flush,
    };
    size_t capacity = (size_t)THREADS * ROUNDS * 2 * 128 + 4096;
    char *text = malloc(capacity);
    int flushes = 1;
    ssize_t length;
    size_t i;
    size_t page = 0;

    if (fd < 0 || text == NULL) {
        tap_bail_out("no file or no memory");
    }
    set_up(&options);
    crew_run(THREADS, work, &flushes);
    tear_down();
    length = read(fd, text, capacity - 1);
    text[length > 0 ? length : 0] = '\0';
    for (i = 4095; length > 0 && i < (size_t)length; i += 4096) {
        page += text[i] == '\n';
    }
    if (flush) {
        tap_is_size(page, (size_t)length / 4096,
                    "%s: no row lies across a page", what);
    }
    judge(text, (size_t)THREADS * ROUNDS, THREADS, what);
    (void)close(fd);
    (void)unlink(path);
    free(text);
}

int main(void)
{
    test_sink(0, 0, "a sink");
    test_sink(0, 1, "a sink that is flushed");
    test_sink(1, 0, "a sink, each row");
    test_sink_inside(0, "a sink that uses the resource");
    test_sink_inside(1, "a sink that uses it, each row");
    test_file(0, "a file");
    test_file(1, "a file, each row");
    return tap_finish();
}
