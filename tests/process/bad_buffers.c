/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bad input to buffers.
 */
#include "tests/process/bad_input.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static ccmr_status with_buffer_options(void *given)
{
    ccmr_buffer *buffer = NULL;
    ccmr_status status = ccmr_buffer_create(pool, 100, given, stream, &buffer);

    (void)ccmr_buffer_destroy(buffer);
    return status;
}

void bad_ccmr_buffer_create(void)
{
    ccmr_buffer_options options = {sizeof(options), 3};

    BAD(ccmr_buffer_create(NULL, 1, NULL, stream, &no_buffer),
        INVALID_ARGUMENT, "resource");
    BAD(ccmr_buffer_create(pool, 1, NULL, stream, NULL), INVALID_ARGUMENT,
        "buffer");
    BAD(ccmr_buffer_create(pool, 1, NULL, CCMR_STREAM_UNSET, &no_buffer),
        INVALID_STREAM, "UNSET");
    BAD(ccmr_buffer_create(pool, 0, NULL, CCMR_STREAM_UNSET, &no_buffer),
        INVALID_STREAM, "UNSET");
    BAD(ccmr_buffer_create(pool, 1, NULL, CCMR_STREAM_READY, &no_buffer),
        INVALID_STREAM, "READY");
    BAD(ccmr_buffer_create(pool, SIZE_MAX, NULL, stream, &no_buffer),
        INVALID_SIZE, "18446744073709551615");
    BAD(ccmr_buffer_create(pool, 1, &options, stream, &no_buffer),
        INVALID_ALIGNMENT, "3");
    sizes_of("ccmr_buffer_options", sizeof(options), with_buffer_options, 1);
}

static ccmr_status with_buffer_source(void *given)
{
    ccmr_buffer *buffer = NULL;
    ccmr_status status = ccmr_buffer_from_handle(block, 512, given, &buffer);

    (void)ccmr_buffer_destroy(buffer);
    return status;
}

static void no_release(void *owner)
{
    (void)owner;
    tap_fail("a source was released by a call that failed");
}

void bad_ccmr_buffer_from_handle(void)
{
    ccmr_buffer_source source = CCMR_BUFFER_SOURCE_INIT;

    BAD(ccmr_buffer_from_handle(block, 512, NULL, NULL), INVALID_ARGUMENT,
        "buffer");
    BAD(ccmr_buffer_from_handle(NULL, 512, NULL, &no_buffer), INVALID_ARGUMENT,
        "ptr");
    source.resource = pool;
    BAD(ccmr_buffer_from_handle(block, 512, &source, &no_buffer),
        INVALID_STREAM, "UNSET");
    source.stream = CCMR_STREAM_READY;
    BAD(ccmr_buffer_from_handle(block, 512, &source, &no_buffer),
        INVALID_STREAM, "READY");
    source.stream = stream;
    source.release = no_release;
    BAD(ccmr_buffer_from_handle(block, 512, &source, &no_buffer),
        INVALID_ARGUMENT, "owner");
    source.release = NULL;
    source.alignment = 3;
    BAD(ccmr_buffer_from_handle(block, 512, &source, &no_buffer),
        INVALID_ALIGNMENT, "3");
    source.alignment = 0;
    BAD(ccmr_buffer_from_handle(block, SIZE_MAX, &source, &no_buffer),
        INVALID_SIZE, "18446744073709551615");
    source.resource = NULL;
    BAD(ccmr_buffer_from_handle(block, 512, &source, &no_buffer),
        INVALID_ARGUMENT, "stream");
    sizes_of("ccmr_buffer_source", sizeof(source), with_buffer_source, 1);
}

void bad_ccmr_buffer_close(void)
{
    BAD(ccmr_buffer_close(NULL, stream), INVALID_ARGUMENT, "buffer");
    GOOD(ccmr_buffer_close(closed_buffer, stream));
    GOOD(ccmr_buffer_close(closed_buffer, CCMR_STREAM_UNSET));
}

void bad_ccmr_buffer_destroy(void)
{
    GOOD(ccmr_buffer_destroy(NULL));
}

void bad_ccmr_buffer_set_stream(void)
{
    BAD(ccmr_buffer_set_stream(NULL, stream), INVALID_ARGUMENT, "buffer");
    BAD(ccmr_buffer_set_stream(closed_buffer, stream), CLOSED, "closed");
    BAD(ccmr_buffer_set_stream(open_buffer, CCMR_STREAM_UNSET), INVALID_STREAM,
        "UNSET");
    BAD(ccmr_buffer_set_stream(open_buffer, CCMR_STREAM_READY), INVALID_STREAM,
        "READY");
}

void bad_ccmr_buffer_note_use(void)
{
    BAD(ccmr_buffer_note_use(NULL, stream), INVALID_ARGUMENT, "buffer");
    BAD(ccmr_buffer_note_use(closed_buffer, stream), CLOSED, "closed");
    BAD(ccmr_buffer_note_use(open_buffer, CCMR_STREAM_UNSET), INVALID_STREAM,
        "stream");
    BAD(ccmr_buffer_note_use(open_buffer, CCMR_STREAM_READY), INVALID_STREAM,
        "stream");
}

void bad_ccmr_buffer_copy(void)
{
    BAD(ccmr_buffer_copy(NULL, 0, open_buffer, 0, 1, stream), INVALID_ARGUMENT,
        "buffer");
    BAD(ccmr_buffer_copy(open_buffer, 0, NULL, 0, 1, stream), INVALID_ARGUMENT,
        "buffer");
    BAD(ccmr_buffer_copy(closed_buffer, 0, open_buffer, 0, 1, stream), CLOSED,
        "closed");
    BAD(ccmr_buffer_copy(open_buffer, 0, closed_buffer, 0, 1, stream), CLOSED,
        "closed");
    BAD(ccmr_buffer_copy(open_buffer, 4090, open_buffer, 0, 7, stream),
        OUT_OF_RANGE, "4090");
    BAD(ccmr_buffer_copy(open_buffer, 0, open_buffer, SIZE_MAX, 7, stream),
        OUT_OF_RANGE, "18446744073709551615");
    BAD(ccmr_buffer_copy(open_buffer, 0, open_buffer, 1, SIZE_MAX, stream),
        OUT_OF_RANGE, "18446744073709551615");
    BAD(ccmr_buffer_copy(open_buffer, 0, open_buffer, 64, 8,
                         CCMR_STREAM_UNSET),
        INVALID_STREAM, "UNSET");
    BAD(ccmr_buffer_copy(open_buffer, 0, open_buffer, 64, 8,
                         CCMR_STREAM_READY),
        INVALID_STREAM, "READY");
}

void bad_ccmr_buffer_copy_to_host(void)
{
    char bytes[8];

    BAD(ccmr_buffer_copy_to_host(NULL, 0, bytes, 8, stream), INVALID_ARGUMENT,
        "buffer");
    BAD(ccmr_buffer_copy_to_host(closed_buffer, 0, bytes, 8, stream), CLOSED,
        "closed");
    BAD(ccmr_buffer_copy_to_host(open_buffer, 0, NULL, 8, stream),
        INVALID_ARGUMENT, "host");
    BAD(ccmr_buffer_copy_to_host(open_buffer, 4090, bytes, 8, stream),
        OUT_OF_RANGE, "4090");
    BAD(ccmr_buffer_copy_to_host(open_buffer, 0, bytes, 8, CCMR_STREAM_UNSET),
        INVALID_STREAM, "UNSET");
    GOOD(ccmr_buffer_copy_to_host(open_buffer, 0, NULL, 0, stream));
}

void bad_ccmr_buffer_copy_from_host(void)
{
    static const char bytes[8] = "seven";

    BAD(ccmr_buffer_copy_from_host(NULL, 0, bytes, 8, stream),
        INVALID_ARGUMENT, "buffer");
    BAD(ccmr_buffer_copy_from_host(closed_buffer, 0, bytes, 8, stream), CLOSED,
        "closed");
    BAD(ccmr_buffer_copy_from_host(open_buffer, 0, NULL, 8, stream),
        INVALID_ARGUMENT, "host");
    BAD(ccmr_buffer_copy_from_host(open_buffer, 4090, bytes, 8, stream),
        OUT_OF_RANGE, "4090");
    BAD(ccmr_buffer_copy_from_host(open_buffer, 0, bytes, 8,
                                   CCMR_STREAM_READY),
        INVALID_STREAM, "READY");
}

void bad_ccmr_buffer_fill(void)
{
    BAD(ccmr_buffer_fill(NULL, 0, 8, 0, 1, stream), INVALID_ARGUMENT,
        "buffer");
    BAD(ccmr_buffer_fill(closed_buffer, 0, 8, 0, 1, stream), CLOSED, "closed");
    BAD(ccmr_buffer_fill(open_buffer, 0, 8, 0, 3, stream), INVALID_ARGUMENT,
        "width 3");
    BAD(ccmr_buffer_fill(open_buffer, 0, 8, 0, UINT32_MAX, stream),
        INVALID_ARGUMENT, "width");
    BAD(ccmr_buffer_fill(open_buffer, 0, 8, 256, 1, stream), INVALID_ARGUMENT,
        "0x100");
    BAD(ccmr_buffer_fill(open_buffer, 1, 8, 0, 2, stream), INVALID_ARGUMENT,
        "multiple");
    BAD(ccmr_buffer_fill(open_buffer, 4092, 8, 0, 4, stream), OUT_OF_RANGE,
        "4092");
    BAD(ccmr_buffer_fill(open_buffer, 0, 8, 0, 1, CCMR_STREAM_UNSET),
        INVALID_STREAM, "UNSET");
}

void bad_ccmr_buffer_disown(void)
{
    BAD(ccmr_buffer_disown(NULL, &no_ptr), INVALID_ARGUMENT, "buffer");
    BAD(ccmr_buffer_disown(closed_buffer, &no_ptr), CLOSED, "closed");
}

static ccmr_status with_buffer_properties(void *given)
{
    return ccmr_buffer_describe(open_buffer, given);
}

void bad_ccmr_buffer_describe(void)
{
    ccmr_buffer_properties properties = {.size = sizeof(properties)};

    BAD(ccmr_buffer_describe(NULL, &properties), INVALID_ARGUMENT, "buffer");
    BAD(ccmr_buffer_describe(open_buffer, NULL), INVALID_ARGUMENT,
        "properties");
    GOOD(ccmr_buffer_describe(closed_buffer, &properties));
    sizes_of("ccmr_buffer_properties", sizeof(properties),
             with_buffer_properties, 0);
}

void bad_ccmr_buffer_ptr(void)
{
    tap_ok(ccmr_buffer_ptr(NULL) == NULL &&
               ccmr_buffer_ptr(closed_buffer) == NULL,
           "ccmr_buffer_ptr of nothing");
}

void bad_ccmr_buffer_bytes(void)
{
    tap_ok(ccmr_buffer_bytes(NULL) == 0 &&
               ccmr_buffer_bytes(closed_buffer) == 0,
           "ccmr_buffer_bytes of nothing");
}
