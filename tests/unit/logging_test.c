/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logging, on one thread. Field cases K7, K9, F7, H5, H8, J4.
 */
#include "tests/unit/adaptor.h"

#include <regex.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define HEADER "Thread,Time,Action,Pointer,Size,Stream"
#define TIME "[0-2][0-9]:[0-5][0-9]:[0-5][0-9]\\.[0-9]{6}"
#define POINTER "0x[1-9a-f][0-9a-f]*"

static puppet below;
static ccmr_resource *upstream;
static char path[] = "/tmp/ccmr-logging-XXXXXX";
static char *content; /* of the file, as last read */
static char *lines[4096];
static int line_count;

static void start(void)
{
    int fd = mkstemp(path);

    MUST(fd >= 0);
    MUST(close(fd) == 0);
    puppet_init(&below);
    upstream = puppet_resource(&below);
}

static void end(void)
{
    ccmr_resource_release(upstream);
    MUST(puppet_clear(&below));
    MUST(unlink(path) == 0);
    free(content);
}

TestSuite(logging, .init = start, .fini = end);

static ccmr_resource *make_log(int flush, unsigned columns)
{
    const ccmr_logging_options options = {
        .size = sizeof(options),
        .file = path,
        .flush = flush,
        .columns = columns,
    };
    ccmr_resource *made;

    GOOD(ccmr_logging_create(upstream, &options, &made));
    return made;
}

static size_t read_file(void)
{
    FILE *file = fopen(path, "r");
    struct stat about;
    size_t size;

    cr_assert_not_null(file);
    cr_assert_eq(fstat(fileno(file), &about), 0);
    size = (size_t)about.st_size;
    free(content);
    content = malloc(size + 1);
    cr_assert_not_null(content);
    cr_assert_eq(fread(content, 1, size, file), size);
    content[size] = '\0';
    cr_assert_eq(fclose(file), 0);
    return size;
}

/* The file in lines, each of which must be whole. */
static void read_lines(void)
{
    size_t size = read_file();
    char *at = content;

    cr_assert(size == 0 || content[size - 1] == '\n', "torn: %s", content);
    for (line_count = 0; *at != '\0'; line_count++) {
        char *newline = strchr(at, '\n');

        cr_assert_lt(line_count, 4096);
        lines[line_count] = at;
        *newline = '\0';
        at = newline + 1;
    }
}

static int matches(const char *line, const char *pattern)
{
    regex_t compiled;
    int ret;

    cr_assert_eq(regcomp(&compiled, pattern, REG_EXTENDED | REG_NOSUB), 0);
    ret = regexec(&compiled, line, 0, NULL, 0);
    regfree(&compiled);
    return ret == 0;
}

/* A line is `thread,time,` and then exactly this. */
static void check_row(int line, const char *rest)
{
    char pattern[64];
    const char *comma;

    cr_assert_lt(line, line_count);
    (void)snprintf(pattern, sizeof(pattern), "^0*%ld,%s,",
                   (long)syscall(SYS_gettid), TIME);
    cr_assert(matches(lines[line], pattern), "row %d: %s", line, lines[line]);
    comma = strchr(strchr(lines[line], ',') + 1, ',');
    cr_assert_str_eq(comma + 1, rest);
}

Test(logging, rows_are_rmms)
{
    ccmr_resource *log = make_log(0, 0);
    char row[128];
    void *first;
    void *second;

    GOOD(ccmr_resource_allocate(log, 131072, 0, NULL, &first));
    GOOD(ccmr_resource_allocate(log, 1, 1, CCMR_STREAM_PER_THREAD, &second));
    GOOD(ccmr_resource_deallocate(log, first, 131072, 0,
                                  (ccmr_stream)(uintptr_t)0x55d0a1b2c3d0));
    GOOD(ccmr_resource_deallocate(log, second, 1, 1, CCMR_STREAM_READY));
    cr_assert_eq(read_file(), 0u, "buffered rows were written");
    GOOD(ccmr_logging_flush(log));
    read_lines();
    cr_assert_eq(line_count, 5);
    cr_assert_str_eq(lines[0], HEADER);
    (void)snprintf(row, sizeof(row), "allocate,%p,131072,0x1", first);
    check_row(1, row);
    (void)snprintf(row, sizeof(row), "allocate,%p,1,0x2", second);
    check_row(2, row);
    (void)snprintf(row, sizeof(row), "free,%p,131072,0x55d0a1b2c3d0", first);
    check_row(3, row);
    (void)snprintf(row, sizeof(row), "free,%p,1,0xfffffffffffffffe", second);
    check_row(4, row);
    ccmr_resource_release(log);
    read_lines();
    cr_assert_eq(line_count, 5);
}

Test(logging, written_at_the_last_release)
{
    ccmr_resource *log = make_log(0, 0);
    void *ptr = take(log, 10);

    give(log, ptr, 10);
    ccmr_resource_release(log);
    read_lines();
    cr_assert_eq(line_count, 3);
}

Test(logging, largest_values)
{
    ccmr_resource *log = make_log(0, 0);
    char row[128];
    void *ptr = take(log, PTRDIFF_MAX);

    give(log, ptr, PTRDIFF_MAX);
    ccmr_resource_release(log);
    read_lines();
    (void)snprintf(row, sizeof(row), "free,%p,9223372036854775807,0x1", ptr);
    check_row(2, row);
}

/* J4: a failure has its row, and stays what it is. */
Test(logging, failures)
{
    ccmr_resource *log = make_log(0, 0);
    void *ptr = NULL;

    below.fail_allocations = 1;
    below.fail_status = CCMR_ERROR_LIMIT_EXCEEDED;
    BAD(ccmr_resource_allocate(log, 4096, 0, LEGACY, &ptr),
        CCMR_ERROR_LIMIT_EXCEEDED);
    cr_assert_str_eq(ccmr_last_error()->message,
                     "the puppet was told to fail");
    cr_assert_null(ptr);
    ccmr_resource_release(log);
    read_lines();
    cr_assert_eq(line_count, 2);
    check_row(1, "allocate failure,(nil),4096,0x1");
}

/* H5: requests of 0 bytes make no row; neither do those that are refused
 * before anybody is asked. */
Test(logging, no_rows_for_nothing)
{
    ccmr_resource *log = make_log(0, 0);
    void *ptr = take(log, 0);

    give(log, ptr, 0);
    BAD(ccmr_resource_allocate(log, SIZE_MAX, 0, LEGACY, &ptr),
        CCMR_ERROR_INVALID_SIZE);
    BAD(ccmr_resource_allocate(log, 1, 3, LEGACY, &ptr),
        CCMR_ERROR_INVALID_ALIGNMENT);
    BAD(ccmr_resource_allocate(log, 1, 0, CCMR_STREAM_UNSET, &ptr),
        CCMR_ERROR_INVALID_STREAM);
    ccmr_resource_release(log);
    read_lines();
    cr_assert_eq(line_count, 1);
    cr_assert_eq(below.allocations, 0u);
}

/* A free that is refused has its row already: an allocation follows, and what
 * is live by the log is what is live. */
Test(logging, a_refused_free_balances)
{
    ccmr_resource *log = make_log(0, 0);
    void *ptr = take(log, 64);
    char row[128];

    below.refuse_frees = 1;
    BAD(ccmr_resource_deallocate(log, ptr, 64, 0, LEGACY), CCMR_ERROR_BUSY);
    cr_assert_eq(ccmr_last_error()->status, CCMR_ERROR_BUSY);
    give(log, ptr, 64);
    ccmr_resource_release(log);
    read_lines();
    cr_assert_eq(line_count, 5);
    (void)snprintf(row, sizeof(row), "free,%p,64,0x1", ptr);
    check_row(2, row);
    check_row(4, row);
    (void)snprintf(row, sizeof(row), "allocate,%p,64,0x1", ptr);
    check_row(1, row);
    check_row(3, row);
}

/* K9: blocks from before the log began. */
Test(logging, frees_of_older_blocks)
{
    void *ptr = take(upstream, 64);
    ccmr_resource *log = make_log(0, 0);
    char row[128];

    give(log, ptr, 64);
    ccmr_resource_release(log);
    read_lines();
    (void)snprintf(row, sizeof(row), "free,%p,64,0x1", ptr);
    check_row(1, row);
}

/* K7: what a buffer does is seen as well. */
Test(logging, buffers)
{
    ccmr_resource *log = make_log(0, 0);
    ccmr_buffer *buffer;
    char row[128];

    GOOD(ccmr_buffer_create(log, 777, NULL, LEGACY, &buffer));
    (void)snprintf(row, sizeof(row), "free,%p,777,0x1",
                   ccmr_buffer_ptr(buffer));
    GOOD(ccmr_buffer_destroy(buffer));
    ccmr_resource_release(log);
    read_lines();
    cr_assert_eq(line_count, 3);
    check_row(2, row);
}

Test(logging, further_columns)
{
    ccmr_resource *log = make_log(0, CCMR_LOG_DEVICE | CCMR_LOG_ALIGNMENT |
                                         CCMR_LOG_CHOSEN | CCMR_LOG_LATENCY);
    void *ptr;

    GOOD(ccmr_resource_allocate(log, 64, 1024, CCMR_STREAM_PER_THREAD, &ptr));
    GOOD(ccmr_resource_deallocate(log, ptr, 64, 1024, LEGACY));
    below.fail_allocations = 1;
    BAD(ccmr_resource_allocate(log, 64, 0, LEGACY, &ptr),
        CCMR_ERROR_OUT_OF_DEVICE_MEMORY);
    ccmr_resource_release(log);
    read_lines();
    cr_assert_str_eq(lines[0], HEADER ",Device,Alignment,Chosen,Latency");
    cr_assert(
        matches(lines[1], "allocate," POINTER ",64,0x2,-1,1024,0x2,[0-9]+$"),
        "%s", lines[1]);
    cr_assert(matches(lines[2], "free," POINTER ",64,0x1,-1,1024,0x1,$"), "%s",
              lines[2]);
    cr_assert(matches(lines[3], "allocate failure,\\(nil\\),64,0x1,-1,256,,"
                                "[0-9]+$"),
              "%s", lines[3]);
}

Test(logging, single_columns)
{
    ccmr_resource *log = make_log(0, CCMR_LOG_ALIGNMENT);
    void *ptr = take(log, 64);

    give(log, ptr, 64);
    ccmr_resource_release(log);
    read_lines();
    cr_assert_str_eq(lines[0], HEADER ",Alignment");
    cr_assert(matches(lines[2], "free," POINTER ",64,0x1,256$"));
}

/* H8: what comes in goes down unchanged. */
Test(logging, passes_all_on_unchanged)
{
    ccmr_resource *log = make_log(0, 0);
    void *ptr;

    GOOD(ccmr_resource_allocate(log, 99, 2048, CCMR_STREAM_PER_THREAD, &ptr));
    cr_assert_eq(below.last_bytes, 99u);
    cr_assert_eq(below.last_alignment, 2048u);
    cr_assert_eq(below.last_stream, CCMR_STREAM_PER_THREAD);
    GOOD(ccmr_resource_deallocate(log, ptr, 99, 2048, LEGACY));
    cr_assert_eq(below.last_alignment, 2048u);
    cr_assert_eq(below.last_stream, LEGACY);
    ccmr_resource_release(log);
}

/* Times are of the local day and never go backwards. */
Test(logging, times)
{
    ccmr_resource *log;
    struct tm before;
    time_t now;
    char *text;
    int i;

    cr_assert_eq(setenv("TZ", "XYZ-5:30", 1), 0);
    tzset();
    now = time(NULL);
    cr_assert_not_null(localtime_r(&now, &before));
    log = make_log(0, 0);
    for (i = 0; i < 1500; i++) {
        give(log, take(log, 8), 8);
    }
    ccmr_resource_release(log);
    read_lines();
    cr_assert_eq(line_count, 3001);
    text = strchr(lines[1], ',') + 1;
    i = (atoi(text) * 60 + atoi(text + 3)) -
        (before.tm_hour * 60 + before.tm_min);
    cr_assert(i == 0 || i == 1 || i == -1439, "%s", lines[1]);
    for (i = 2; i < line_count; i++) {
        char *next = strchr(lines[i], ',') + 1;

        /* Midnight may come in between. */
        cr_assert(strncmp(text, next, 15) <= 0 ||
                      (text[0] == '2' && next[0] == '0'),
                  "%s after %s", next, text);
        text = next;
    }
}

/* More rows than the buffers hold, each whole and in order. */
Test(logging, many_rows)
{
    ccmr_resource *log = make_log(0, 0);
    size_t size;
    size_t i;
    char *at;

    for (i = 1; i <= 20000; i++) {
        void *ptr = take(log, i);

        give(log, ptr, i);
    }
    ccmr_resource_release(log);
    size = read_file();
    cr_assert_eq(content[size - 1], '\n');
    at = strchr(content, '\n') + 1;
    for (i = 2; i <= 40001; i++) {
        char *stream = strchr(at, '\n');
        char *bytes;

        cr_assert_not_null(stream);
        *stream = '\0';
        bytes = strrchr(at, ',');
        *bytes = '\0';
        bytes = strrchr(at, ',') + 1;
        cr_assert_eq(strtoul(bytes, NULL, 10), i / 2);
        at = stream + 1;
    }
    cr_assert_eq(*at, '\0');
}

/* With flush each row is there when its call returns, and none lies across a
 * page of the file: see log.h. */
Test(logging, flushed_rows)
{
    ccmr_resource *log = make_log(1, 0);
    size_t before = read_file();
    int i;

    cr_assert_str_eq(content, HEADER "\n");
    for (i = 0; i < 1000; i++) {
        void *ptr = take(log, 64);
        size_t after = read_file();

        cr_assert_gt(after, before);
        cr_assert_eq(content[after - 1], '\n');
        cr_assert_eq(before / 4096, (after - 1) / 4096, "%zu %zu", before,
                     after);
        before = after;
        give(log, ptr, 64);
        before = read_file();
    }
    ccmr_resource_release(log);
    read_lines();
    cr_assert_eq(line_count, 2001);
    for (i = 1; i < line_count; i++) {
        cr_assert_eq(strtol(lines[i], NULL, 10), (long)syscall(SYS_gettid));
    }
}

/* ---- errors --------------------------------------------------------------- */

static ccmr_status open_log(const char *file, int flush)
{
    const ccmr_logging_options options = {
        .size = sizeof(options), .file = file, .flush = flush};
    ccmr_resource *made = NULL;
    ccmr_status status = ccmr_logging_create(upstream, &options, &made);

    ccmr_resource_release(made);
    return status;
}

Test(logging, files_that_cannot_be_opened)
{
    BAD(open_log("/nonexistent/log.csv", 0), CCMR_ERROR_IO);
    cr_assert(strstr(ccmr_last_error()->message, "/nonexistent/log.csv") !=
              NULL);
    cr_assert(strstr(ccmr_last_error()->message, "No such file") != NULL);
    BAD(open_log("/tmp", 0), CCMR_ERROR_IO);
    BAD(open_log("", 0), CCMR_ERROR_IO);
    BAD(open_log("/dev/full", 1), CCMR_ERROR_IO);
}

/* Two logs would write into one another. */
Test(logging, one_log_a_file)
{
    ccmr_resource *log = make_log(0, 0);

    BAD(open_log(path, 0), CCMR_ERROR_BUSY);
    give(log, take(log, 64), 64);
    ccmr_resource_release(log);
    read_lines();
    cr_assert_eq(line_count, 3);
    GOOD(open_log(path, 0));
    read_lines();
    cr_assert_eq(line_count, 1, "the file was not truncated");
}

/* Rows that cannot be written fail no allocation; flush tells it, once. */
Test(logging, a_full_disk)
{
    const ccmr_logging_options options = {.size = sizeof(options),
                                          .file = "/dev/full"};
    ccmr_resource *log;
    int i;

    GOOD(ccmr_logging_create(upstream, &options, &log));
    for (i = 0; i < 5000; i++) {
        give(log, take(log, 64), 64);
    }
    BAD(ccmr_logging_flush(log), CCMR_ERROR_IO);
    cr_assert(strstr(ccmr_last_error()->message, "10001 rows") != NULL, "%s",
              ccmr_last_error()->message);
    cr_assert(strstr(ccmr_last_error()->message, "No space left") != NULL);
    cr_assert_str_eq(ccmr_last_error()->resource, "logging");
    GOOD(ccmr_logging_flush(log));
    give(log, take(log, 64), 64);
    BAD(ccmr_logging_flush(log), CCMR_ERROR_IO);
    ccmr_resource_release(log);
}

/* A disk that fills up in the middle of a row leaves whole rows. */
Test(logging, a_disk_that_fills_up)
{
    struct rlimit limit = {1000, 1000};
    ccmr_resource *log = make_log(0, 0);
    int i;

    cr_assert_neq(signal(SIGXFSZ, SIG_IGN), SIG_ERR);
    cr_assert_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = 1000;
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    for (i = 0; i < 100; i++) {
        give(log, take(log, 64), 64);
    }
    BAD(ccmr_logging_flush(log), CCMR_ERROR_IO);
    read_lines();
    cr_assert_gt(line_count, 10);
    limit.rlim_cur = limit.rlim_max;
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    give(log, take(log, 64), 64);
    GOOD(ccmr_logging_flush(log));
    i = line_count;
    read_lines();
    cr_assert_eq(line_count, i + 2);
    ccmr_resource_release(log);
}

Test(logging, bad_arguments)
{
    ccmr_logging_options options = {.size = sizeof(options)};
    ccmr_resource *made = NULL;

    BAD(ccmr_logging_create(upstream, &options, &made),
        CCMR_ERROR_INVALID_ARGUMENT);
    cr_assert(strstr(ccmr_last_error()->message, "neither") != NULL);
    options.file = path;
    BAD(ccmr_logging_create(NULL, &options, &made),
        CCMR_ERROR_INVALID_ARGUMENT);
    BAD(ccmr_logging_create(upstream, NULL, &made),
        CCMR_ERROR_INVALID_ARGUMENT);
    BAD(ccmr_logging_create(upstream, &options, NULL),
        CCMR_ERROR_INVALID_ARGUMENT);
    options.columns = 0x10;
    BAD(ccmr_logging_create(upstream, &options, &made),
        CCMR_ERROR_INVALID_ARGUMENT);
    options.columns = 0;
    options.size = 8;
    BAD(ccmr_logging_create(upstream, &options, &made),
        CCMR_ERROR_INVALID_STRUCT);
    BAD(ccmr_logging_flush(NULL), CCMR_ERROR_INVALID_ARGUMENT);
    BAD(ccmr_logging_flush(upstream), CCMR_ERROR_INVALID_ARGUMENT);
    cr_assert_null(made);
}

Test(logging, as_text)
{
    ccmr_resource *made;
    char text[256];
    char want[256];

    (void)snprintf(text, sizeof(text),
                   "logging file=%s flush=yes columns=device+latency | host",
                   path);
    GOOD(ccmr_stack_create(text, &made));
    GOOD(ccmr_stack_print(made, want, sizeof(want), NULL));
    cr_assert_str_eq(want, text);
    cr_assert_str_eq(option_of(made, "file"), path);
    BAD(ccmr_resource_option_set(made, "flush", "no"),
        CCMR_ERROR_NOT_SUPPORTED);
    give(made, take(made, 64), 64);
    read_lines();
    cr_assert_eq(line_count, 3);
    ccmr_resource_release(made);
    BAD(ccmr_stack_create("logging | host", &made),
        CCMR_ERROR_INVALID_ARGUMENT);
    BAD(ccmr_stack_create("logging file=/nonexistent/x | host", &made),
        CCMR_ERROR_IO);
}

/* ---- sinks ------------------------------------------------------------------ */

typedef struct sink_data {
    char text[1 << 16];
    size_t length;
    int calls;
    int refuse;
    int inside;
    ccmr_resource *log; /* used from inside */
    int uses;
} sink_data;

static sink_data sunk;

static int sink(void *context, const char *rows, size_t length)
{
    sink_data *to = context;
    int i;

    cr_assert_eq(to->inside, 0, "called from within itself");
    cr_assert_eq(rows[length - 1], '\n');
    to->inside = 1;
    to->calls++;
    if (!to->refuse && to->length + length < sizeof(to->text)) {
        memcpy(to->text + to->length, rows, length);
        to->length += length;
    }
    for (i = 0; i < to->uses; i++) {
        give(to->log, take(to->log, 3), 3);
        BAD(ccmr_logging_flush(to->log), CCMR_ERROR_BUSY);
    }
    to->inside = 0;
    return to->refuse;
}

static ccmr_resource *make_sink_log(int flush)
{
    const ccmr_logging_options options = {
        .size = sizeof(options),
        .sink = sink,
        .context = &sunk,
        .flush = flush,
    };
    ccmr_resource *made;

    GOOD(ccmr_logging_create(upstream, &options, &made));
    return made;
}

static int sunk_lines(void)
{
    int count = 0;
    size_t i;

    for (i = 0; i < sunk.length; i++) {
        count += sunk.text[i] == '\n';
    }
    return count;
}

Test(logging, a_sink)
{
    ccmr_resource *log = make_sink_log(0);
    char text[16];

    give(log, take(log, 64), 64);
    cr_assert_eq(sunk.calls, 0);
    GOOD(ccmr_logging_flush(log));
    cr_assert_eq(sunk.calls, 1);
    cr_assert_eq(strncmp(sunk.text, HEADER "\n", sizeof(HEADER)), 0);
    cr_assert_eq(sunk_lines(), 3);
    GOOD(ccmr_logging_flush(log));
    cr_assert_eq(sunk.calls, 1, "called for nothing");
    BAD(ccmr_resource_option_get(log, "file", text, sizeof(text), NULL),
        CCMR_ERROR_NOT_SUPPORTED);
    ccmr_resource_release(log);
}

Test(logging, a_sink_that_is_called_each_row)
{
    ccmr_resource *log = make_sink_log(1);

    cr_assert_eq(sunk_lines(), 1);
    give(log, take(log, 64), 64);
    cr_assert_eq(sunk.calls, 3);
    cr_assert_eq(sunk_lines(), 3);
    ccmr_resource_release(log);
    cr_assert_eq(sunk.calls, 3);
}

Test(logging, a_sink_that_refuses)
{
    ccmr_resource *log = make_sink_log(1);

    sunk.refuse = 1;
    give(log, take(log, 64), 64);
    sunk.refuse = 0;
    BAD(ccmr_logging_flush(log), CCMR_ERROR_IO);
    cr_assert(strstr(ccmr_last_error()->message, "2 rows") != NULL);
    GOOD(ccmr_logging_flush(log));
    give(log, take(log, 64), 64);
    GOOD(ccmr_logging_flush(log));
    cr_assert_eq(sunk_lines(), 3);
    ccmr_resource_release(log);
}

/* F7: a sink that uses the resource that logs. Its calls are served, their
 * rows come with a later batch. */
Test(logging, a_sink_that_uses_the_resource)
{
    int flush;

    for (flush = 0; flush < 2; flush++) {
        ccmr_resource *log;

        memset(&sunk, 0, sizeof(sunk));
        log = make_sink_log(flush);
        sunk.log = log;
        sunk.uses = 1;
        give(log, take(log, 64), 64);
        GOOD(ccmr_logging_flush(log));
        sunk.uses = 0;
        GOOD(ccmr_logging_flush(log));
        /* The header, two rows, and two for each call that used it. */
        cr_assert_eq(sunk_lines(), flush ? 9 : 5, "%s", sunk.text);
        ccmr_resource_release(log);
    }
}

/* F7: and where the buffer cannot take them, they are lost and told. */
Test(logging, a_sink_that_uses_the_resource_too_much)
{
    ccmr_resource *log = make_sink_log(0);

    sunk.log = log;
    sunk.uses = 2000;
    BAD(ccmr_logging_flush(log), CCMR_ERROR_IO);
    sunk.uses = 0;
    GOOD(ccmr_logging_flush(log));
    cr_assert_gt(sunk_lines(), 500);
    ccmr_resource_release(log);
    cr_assert_eq(below.live_blocks, 0u);
}
