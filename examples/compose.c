/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stack composed in code, and two buffers on two streams, with a log of what
 * happened:
 *
 *     cc -o compose compose.c $(pkg-config --cflags --libs libcucoremr)
 *     ./compose [FILE]                       on the CUDA driver
 *     CUCOREMR_DRIVER=sim ./compose [FILE]   without a GPU
 *
 * The log goes to the file, or without one to the standard output.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cucoremr/cucoremr.h>

#define BYTES ((size_t)1 << 20)

static void check(ccmr_status status, const char *what)
{
    if (status != CCMR_SUCCESS) {
        fprintf(stderr, "%s: %s: %s\n", what, ccmr_status_name(status),
                ccmr_last_error()->message);
        exit(EXIT_FAILURE);
    }
}

/* Where rows go if no file is named. */
static int print_rows(void *context, const char *rows, size_t length)
{
    return fwrite(rows, 1, length, context) == length ? 0 : -1;
}

/* logging | limiting | device_pool. Each adaptor keeps its upstream: with the
 * top in hand, the references to what is below can go. */
static ccmr_resource *make_stack(const char *log)
{
    ccmr_logging_options options = {
        .size = sizeof(options), .file = log, .columns = CCMR_LOG_DEVICE};
    ccmr_resource *pool;
    ccmr_resource *limited;
    ccmr_resource *logged;

    if (log != NULL) {
        options.file = log;
    } else {
        options.sink = print_rows;
        options.context = stdout;
    }
    check(ccmr_device_pool_create(0, NULL, &pool), "device_pool");
    check(ccmr_limiting_create(pool, 64 * BYTES, &limited), "limiting");
    ccmr_resource_release(pool);
    check(ccmr_logging_create(limited, &options, &logged), "logging");
    ccmr_resource_release(limited);
    return logged;
}

/* Fill `first` on one stream and send it through `second` on another. */
static void work(ccmr_buffer *first, ccmr_stream one, ccmr_buffer *second,
                 ccmr_stream two)
{
    unsigned char *back = malloc(BYTES);

    if (back == NULL) {
        fprintf(stderr, "no memory\n");
        exit(EXIT_FAILURE);
    }
    check(ccmr_buffer_fill(first, 0, BYTES, 0x5A, 1, one), "fill");
    /* The second stream must come after the first: here by waiting. */
    check(ccmr_stream_synchronize(one, 0), "synchronize");
    check(ccmr_buffer_copy(second, 0, first, 0, BYTES, two), "copy");
    check(ccmr_buffer_copy_to_host(second, 0, back, BYTES, two),
          "copy to host");
    check(ccmr_stream_synchronize(two, 0), "synchronize");
    printf("bytes:   0x%02x ... 0x%02x\n", back[0], back[BYTES - 1]);
    free(back);
}

int main(int argc, char **argv)
{
    const char *log = argc > 1 ? argv[1] : NULL;
    ccmr_driver_info driver = {.size = sizeof(driver)};
    ccmr_stats stats = {.size = sizeof(stats)};
    ccmr_resource *stack;
    ccmr_buffer *first;
    ccmr_buffer *second;
    ccmr_stream one;
    ccmr_stream two;
    char text[1024];

    check(ccmr_driver(&driver), "driver");
    printf("driver:  %s%s\n", driver.name,
           driver.simulated ? " (simulated)" : "");
    stack = make_stack(log);
    check(ccmr_stack_print(stack, text, sizeof(text), NULL), "print");
    printf("stack:   %s\n", text);

    check(ccmr_stream_create(0, CCMR_STREAM_FLAG_NON_BLOCKING, &one),
          "stream");
    check(ccmr_stream_create(0, CCMR_STREAM_FLAG_NON_BLOCKING, &two),
          "stream");
    check(ccmr_buffer_create(stack, BYTES, NULL, one, &first), "first");
    check(ccmr_buffer_create(stack, BYTES, NULL, two, &second), "second");
    work(first, one, second, two);
    check(ccmr_resource_stats(stack, &stats), "stats");
    printf("live:    %zu bytes in %llu blocks\n", stats.live_bytes,
           (unsigned long long)stats.live_blocks);

    /* The first was last used on the second stream: its free goes there. */
    check(ccmr_buffer_close(first, two), "close");
    check(ccmr_buffer_destroy(first), "destroy");
    /* The second knows its own stream. */
    check(ccmr_buffer_destroy(second), "destroy");

    printf("log:     %s\n", log != NULL ? log : "");
    check(ccmr_logging_flush(stack), "flush");

    check(ccmr_stream_destroy(one), "destroy");
    check(ccmr_stream_destroy(two), "destroy");
    ccmr_resource_release(stack);
    return 0;
}
