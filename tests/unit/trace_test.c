/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading allocation logs: RMM's dialects, and what cannot be right (field
 * case K6).
 */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>

#include "bench/samples.h"
#include "bench/trace.h"

#define HEADER "Thread,Time,Action,Pointer,Size,Stream\n"

static char path[64];
static trace_error error;

static void make_path(void)
{
    int file;

    (void)strcpy(path, "/tmp/ccmr-trace-XXXXXX");
    file = mkstemp(path);
    cr_assert(file >= 0);
    (void)close(file);
    memset(&error, 0, sizeof(error));
}

static void remove_path(void)
{
    (void)unlink(path);
}

TestSuite(trace, .init = make_path, .fini = remove_path);

static trace *read_bytes(const char *bytes, size_t length, bool lenient)
{
    trace_options options = {.lenient = lenient};
    FILE *file = fopen(path, "wb");

    cr_assert_not_null(file);
    cr_assert_eq(fwrite(bytes, 1, length, file), length);
    cr_assert_eq(fclose(file), 0);
    return trace_read(path, &options, &error);
}

static trace *read_text(const char *text)
{
    return read_bytes(text, strlen(text), false);
}

/* Reading fails, at that row, with a text that holds `part`. */
static void refuse(const char *text, size_t row, const char *part)
{
    trace *made = read_text(text);

    cr_assert_null(made, "accepted: %s", text);
    cr_assert_eq(error.row, row, "row %zu, should be %zu: %s", error.row, row,
                 error.text);
    cr_assert_not_null(strstr(error.text, part), "'%s' is not in '%s'", part,
                       error.text);
}

/* Two allocations and two frees, however they are spelt. */
static void accept_two(const char *text)
{
    trace *made = read_text(text);

    cr_assert_not_null(made, "row %zu: %s", error.row, error.text);
    cr_assert_eq(made->count, 4);
    cr_assert_eq(made->blocks, 2);
    cr_assert_eq(made->peak_live_bytes, 300);
    cr_assert_eq(made->live_blocks_at_end, 0);
    cr_assert(!made->events[0].free && made->events[0].bytes == 100);
    cr_assert(!made->events[1].free && made->events[1].bytes == 200);
    cr_assert(made->events[2].free && made->events[2].bytes == 100);
    cr_assert_eq(made->events[2].block, made->events[0].block);
    cr_assert(made->events[3].free && made->events[3].bytes == 200);
    trace_free(made);
}

Test(trace, todays_dialect)
{
    accept_two(HEADER "41,23:59:59.999999,allocate,0x7f0010,100,0\n"
                      "41,23:59:59.999999,allocate,0x7f0020,200,0\n"
                      "41,00:00:00.000001,free,0x7f0010,100,0\n"
                      "42,00:00:00.000002,free,0x7f0020,200,0\n");
}

Test(trace, documented_dialect)
{
    accept_two(HEADER "1,1575399121.123456,allocate,0x10,100,0x0\n"
                      "1,1575399121.2,allocate,0x20,200,(nil)\n"
                      "1,1575399122,deallocate,0x10,100,0x0\n"
                      "2,1575399123.5,deallocate,0x20,200,0x1\n");
}

Test(trace, line_ends_blank_lines_quotes_and_case)
{
    accept_two("\xef\xbb\xbf\"Thread\",\"Time\",\"Action\",\"Pointer\","
               "\"Size\",\"Stream\"\r\n"
               "\r\n"
               "41,00:00:00.000001,\"allocate\",0X7F00AB,100,0\r\n"
               "  \r\n"
               "41 , 00:00:00.000002 , Allocate , 7f00cd , 200 , 0\r\n"
               "41,00:00:00.000003,FREE,0x7f00ab,\"100\",0\r\n"
               "41,00:00:00.000004,free,0x7F00CD,200,0");
}

Test(trace, without_header)
{
    accept_two("1,00:00:01.000000,allocate,0x10,100,0\n"
               "1,00:00:01.000000,allocate,0x20,200,0\n"
               "1,00:00:01.000000,free,0x10,100,0\n"
               "1,00:00:01.000000,free,0x20,200,0\n");
}

Test(trace, columns_by_name)
{
    accept_two("Latency,Size,Pointer,Device,Action\n"
               "12,100,0x10,0,allocate\n"
               "13,200,0x20,0,allocate\n"
               "14,100,0x10,0,free\n"
               "15,200,0x20,0,free\n");
}

Test(trace, free_without_size)
{
    accept_two(HEADER "1,0,allocate,0x10,100,0\n"
                      "1,0,allocate,0x20,200,0\n"
                      "1,0,free,0x10,,0\n"
                      "1,0,free,0x20,,0\n");
}

Test(trace, decimal_pointers)
{
    accept_two(HEADER "1,0,allocate,139637976727552,100,0\n"
                      "1,0,allocate,18446744073709551600,200,0\n"
                      "1,0,free,139637976727552,100,0\n"
                      "1,0,free,18446744073709551600,200,0\n");
}

Test(trace, failures_and_empty_blocks_make_no_event)
{
    trace *made = read_text(HEADER "1,0,allocate,0x10,100,0\n"
                                   "1,0,allocate failure,(nil),99999999999,0\n"
                                   "1,0,allocate,(nil),0,0\n"
                                   "1,0,free,(nil),0,0\n"
                                   "1,0,free,0x10,100,0\n");

    cr_assert_not_null(made, "%s", error.text);
    cr_assert_eq(made->count, 2);
    cr_assert_eq(made->failure_rows, 1);
    cr_assert_eq(made->empty_rows, 2);
    trace_free(made);
}

Test(trace, streams)
{
    trace *made = read_text(HEADER "1,0,allocate,0x10,1,0\n"
                                   "1,0,allocate,0x20,1,(nil)\n"
                                   "1,0,allocate,0x30,1,0x0\n"
                                   "1,0,allocate,0x40,1,0x1\n"
                                   "1,0,allocate,0x50,1,0x2\n"
                                   "2,0,allocate,0x60,1,0x2\n"
                                   "2,0,allocate,0x70,1,0x55D0aa\n"
                                   "2,0,allocate,0x80,1,0x55d0AA\n"
                                   "2,0,allocate,0x90,1,94000000\n");

    cr_assert_not_null(made, "%s", error.text);
    cr_assert_eq(made->stream_count, 5);
    cr_assert_eq(made->streams[0].kind, LOG_STREAM_NULL);
    cr_assert_eq(made->streams[0].events, 4);
    cr_assert_eq(made->streams[1].kind, LOG_STREAM_PER_THREAD);
    cr_assert_eq(made->streams[2].kind, LOG_STREAM_PER_THREAD);
    cr_assert_eq(made->streams[3].kind, LOG_STREAM_HANDLE);
    cr_assert_eq(made->streams[3].handle, 0x55d0aa);
    cr_assert_eq(made->streams[3].events, 2);
    cr_assert_eq(made->thread_count, 2);
    cr_assert_eq(made->live_blocks_at_end, 9);
    trace_free(made);
}

Test(trace, places_are_used_again)
{
    trace *made = read_text(HEADER "1,0,allocate,0x10,100,0\n"
                                   "2,0,free,0x10,100,0\n"
                                   "1,0,allocate,0x10,50,0\n"
                                   "1,0,allocate,0x20,60,0\n");

    cr_assert_not_null(made, "%s", error.text);
    cr_assert_eq(made->blocks, 2);
    cr_assert_eq(made->peak_live_bytes, 110);
    cr_assert_eq(made->peak_row, 5);
    cr_assert_eq(made->live_bytes_at_end, 110);
    cr_assert_eq(made->events[1].thread, 1);
    cr_assert_eq(made->events[3].row, 5);
    trace_free(made);
}

Test(trace, time_past_midnight)
{
    trace *made = read_text(HEADER "1,23:59:58.500000,allocate,0x10,1,0\n"
                                   "1,23:59:58.400000,allocate,0x20,1,0\n"
                                   "1,00:00:01.000000,free,0x10,1,0\n");

    cr_assert_not_null(made, "%s", error.text);
    cr_assert_float_eq(made->seconds, 2.5, 1e-6);
    trace_free(made);
}

Test(trace, name_is_without_folders_and_endings)
{
    trace_options options = {0};
    trace *made;

    made = read_text(HEADER "1,0,allocate,0x10,1,0\n");
    cr_assert_not_null(made);
    cr_assert_str_eq(made->name, path + strlen("/tmp/"));
    cr_assert_str_eq(made->path, path);
    trace_free(made);
    cr_assert_null(trace_read("/nonexistent/log.csv", &options, &error));
    cr_assert_not_null(strstr(error.text, "No such file"), "%s", error.text);
    cr_assert_null(trace_read("/tmp", &options, &error));
}

Test(trace, old_format_is_refused_with_a_reason)
{
    refuse("Event Type,Device ID,Address,Stream,Size (bytes),Free Memory,"
           "Total Memory,Current Allocs,Start,End,Elapsed,Location\n"
           "Alloc,0,0x7fae06600000,0,80,0,0,1,1.1,1.2,0.1,driver.py:683\n",
           1, "12-column log that RMM wrote in 2019");
    refuse("Alloc,0,0x7fae06600000,0,80,0,0,1,1.1,1.2,0.1,driver.py:683\n", 1,
           "12-column");
}

Test(trace, no_log_at_all)
{
    refuse("", 0, "holds no allocation");
    refuse(HEADER, 0, "holds no allocation");
    refuse("\n\nhello\n", 3, "neither the header");
    refuse("Thread,Time,Action,Pointer,Stream\n", 1, "no column 'Size'");
    refuse("Size,Action,Pointer,Size\n", 1, "two columns 'Size'");
}

Test(trace, rows_that_cannot_be_read)
{
    refuse(HEADER "1,0,allocate,0x10,100\n", 2, "5 fields, but needs 6");
    refuse(HEADER "1,0,alloc,0x10,100,0\n", 2, "Action 'alloc'");
    refuse(HEADER "1,0,allocate,0x10,-1,0\n", 2, "Size '-1'");
    refuse(HEADER "1,0,allocate,0x10,1.5,0\n", 2, "Size '1.5'");
    refuse(HEADER "1,0,allocate,0x10,0x100,0\n", 2, "Size '0x100'");
    refuse(HEADER "1,0,allocate,0x10,,0\n", 2, "Size ''");
    refuse(HEADER "1,0,allocate,0x10,9223372036854775808,0\n", 2,
           "a block can have");
    refuse(HEADER "1,0,allocate,0x10,99999999999999999999,0\n", 2, "Size");
    refuse(HEADER "1,0,allocate,0x1g,100,0\n", 2, "Pointer '0x1g'");
    refuse(HEADER "1,0,allocate,0x,100,0\n", 2, "Pointer '0x'");
    refuse(HEADER "x,0,allocate,0x10,100,0\n", 2, "Thread 'x'");
    refuse(HEADER "1,0,allocate,0x10,100,main\n", 2, "Stream 'main'");
    refuse(HEADER "1,25:00:00.0,allocate,0x10,100,0\n", 2, "Time '25:");
    refuse(HEADER "1,yesterday,allocate,0x10,100,0\n", 2, "Time 'yesterday'");
    refuse(HEADER "1,0,\"allocate,0x10,100,0\n", 2, "quote without an end");
    refuse(HEADER "1,0,allocate,0x10,100,0\n1,0,free,0x10", 3,
           "stops within the row");
}

Test(trace, rows_that_cannot_be_right)
{
    refuse(HEADER "1,0,allocate,0x10,100,0\n1,0,free,0x20,100,0\n", 3,
           "0x20, which is not allocated here");
    refuse(HEADER "1,0,allocate,0x10,1,0\n1,0,allocate,0x10,2,0\n", 3,
           "row 2 has put 1 bytes");
    refuse(HEADER "1,0,allocate,0x10,100,0\n1,0,free,0x10,99,0\n", 3,
           "with 99 bytes, allocated in row 2 with 100");
    refuse(HEADER "1,0,allocate,(nil),100,0\n", 2, "at a null pointer");
    refuse(HEADER "1,0,free,(nil),100,0\n", 2, "not allocated here");
    refuse(HEADER "1,0,allocate,0x10,9223372036854775807,0\n"
                  "1,0,allocate,0x20,9223372036854775807,0\n"
                  "1,0,allocate,0x30,9223372036854775807,0\n",
           4, "more bytes are live");
}

Test(trace, not_text)
{
    char line[70000];

    memset(line, 'a', sizeof(line));
    cr_assert_null(read_bytes("Thread\0Time\n", 12, false));
    cr_assert_eq(error.row, 1);
    cr_assert_not_null(strstr(error.text, "zero byte"));
    cr_assert_null(read_bytes(line, sizeof(line), false));
    cr_assert_eq(error.row, 1);
    cr_assert_not_null(strstr(error.text, "longer than"));
}

Test(trace, lenient_counts_and_goes_on)
{
    static const char text[] = HEADER "1,0,free,0x99,7,0\n"
                                      "1,0,allocate,0x10,100,0\n"
                                      "nonsense\n"
                                      "1,0,allocate,(nil),5,0\n"
                                      "1,0,free,0x10,99,0\n"
                                      "1,0,allocate,0x10,10";
    trace *made = read_bytes(text, sizeof(text) - 1, true);

    cr_assert_not_null(made, "%s", error.text);
    cr_assert_eq(made->count, 2);
    cr_assert_eq(made->unknown_frees, 1);
    cr_assert_eq(made->unreadable_rows, 3);
    cr_assert_eq(made->wrong_sizes, 1);
    cr_assert_eq(made->events[1].bytes, 100);
    trace_free(made);
}

/* Two threads' rows in another order than things happened. */
Test(trace, lenient_pairs_late_frees)
{
    static const char text[] = HEADER "1,0,allocate,0x10,100,0\n"
                                      "2,0,allocate,0x10,200,0\n"
                                      "1,0,free,0x10,100,0\n"
                                      "2,0,allocate,0x20,50,0\n"
                                      "2,0,free,0x10,200,0\n";
    trace *made = read_bytes(text, sizeof(text) - 1, true);

    cr_assert_not_null(made, "%s", error.text);
    cr_assert_eq(made->late_frees, 1);
    cr_assert_eq(made->unknown_frees, 0);
    cr_assert_eq(made->count, 5);
    cr_assert_eq(made->peak_live_bytes, 250);
    cr_assert_eq(made->live_bytes_at_end, 50);
    trace_free(made);
}

static void write_gzip(const char *text, const char *mode)
{
    gzFile file = gzopen(path, mode);

    cr_assert_not_null(file);
    cr_assert(gzputs(file, text) > 0);
    cr_assert_eq(gzclose(file), Z_OK);
}

Test(trace, gzip_by_content_in_several_members)
{
    trace_options options = {0};
    trace *made;

    write_gzip(HEADER "1,0,allocate,0x10,100,0\n", "wb");
    write_gzip("1,0,free,0x10,100,0\n", "ab");
    made = trace_read(path, &options, &error);
    cr_assert_not_null(made, "%s", error.text);
    cr_assert_eq(made->count, 2);
    trace_free(made);
}

Test(trace, damaged_gzip_is_an_error)
{
    trace_options options = {0};
    char text[40000] = HEADER;
    size_t used = strlen(text);
    long size;
    FILE *file;

    for (unsigned i = 1; used < sizeof(text) - 100; i++) {
        used += (size_t)sprintf(text + used, "1,0,allocate,0x%x,%u,0\n",
                                i * 7919, i * i % 10007);
    }
    write_gzip(text, "wb");
    file = fopen(path, "rb");
    cr_assert_not_null(file);
    cr_assert_eq(fseek(file, 0, SEEK_END), 0);
    size = ftell(file);
    cr_assert_eq(fclose(file), 0);
    for (long cut = 1; cut < size - 12; cut += size / 7) {
        cr_assert_eq(truncate(path, size - cut), 0);
        cr_assert_null(trace_read(path, &options, &error), "cut %ld", cut);
        cr_assert_not_null(strstr(error.text, "stops too soon"), "%s",
                           error.text);
    }
    write_gzip(text, "wb");
    file = fopen(path, "r+b");
    cr_assert_not_null(file);
    cr_assert_eq(fseek(file, size / 2, SEEK_SET), 0);
    cr_assert_eq(fwrite("\xff\xff\xff\xff\xff\xff\xff\xff", 1, 8, file), 8);
    cr_assert_eq(fclose(file), 0);
    cr_assert_null(trace_read(path, &options, &error));
}

/* A long log with many places, against a plain count. */
Test(trace, many_blocks)
{
    enum { BLOCKS = 3000, ROUNDS = 20000 };
    static bool live[BLOCKS];
    FILE *file = fopen(path, "w");
    trace_options options = {0};
    uint32_t random = 1;
    uint64_t bytes = 0;
    uint64_t peak = 0;
    trace *made;

    cr_assert_not_null(file);
    (void)fputs(HEADER, file);
    for (int i = 0; i < ROUNDS; i++) {
        unsigned at;

        random = random * 1664525 + 1013904223;
        at = (random >> 8) % BLOCKS;
        bytes = live[at] ? bytes - (at + 1) : bytes + (at + 1);
        peak = bytes > peak ? bytes : peak;
        (void)fprintf(file, "1,%d.5,%s,0x%x,%u,0x%x\n", i,
                      live[at] ? "free" : "allocate", 0x1000 + 512 * at,
                      at + 1, 16 + at % 7);
        live[at] = !live[at];
    }
    cr_assert_eq(fclose(file), 0);
    made = trace_read(path, &options, &error);
    cr_assert_not_null(made, "%s", error.text);
    cr_assert_eq(made->count, ROUNDS);
    cr_assert_eq(made->peak_live_bytes, peak);
    cr_assert_eq(made->live_bytes_at_end, bytes);
    cr_assert_eq(made->stream_count, 7);
    cr_assert(made->blocks <= BLOCKS);
    trace_free(made);
}

Test(samples, nearest_rank)
{
    samples some = {0};
    summary says;

    cr_assert(samples_reserve(&some, 100));
    says = samples_summary(&some);
    cr_assert_eq(says.count, 0);
    for (uint64_t i = 100; i >= 1; i--) {
        samples_add(&some, i);
    }
    says = samples_summary(&some);
    cr_assert_eq(says.count, 100);
    cr_assert_eq(says.p50, 50);
    cr_assert_eq(says.p99, 99);
    cr_assert_eq(says.max, 100);
    cr_assert_eq(says.mean, 50.5);
    samples_free(&some);
    cr_assert(samples_reserve(&some, 1));
    samples_add(&some, 7);
    says = samples_summary(&some);
    cr_assert(says.p50 == 7 && says.p99 == 7 && says.max == 7);
    samples_free(&some);
    cr_assert(!samples_reserve(&some, SIZE_MAX));
}

Test(samples, median)
{
    double odd[] = {3, 1, 2};
    double even[] = {4, 1, 3, 2};

    cr_assert_eq(median_of(odd, 3), 2);
    cr_assert_eq(median_of(even, 4), 2.5);
    cr_assert_eq(median_of(NULL, 0), 0);
}
