/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bad input to texts, streams, statuses.
 */
#include "tests/process/bad_input.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Texts. */

void bad_ccmr_stack_create(void)
{
    BAD(ccmr_stack_create(NULL, &no_resource), INVALID_ARGUMENT, "text");
    BAD(ccmr_stack_create("host", NULL), INVALID_ARGUMENT, "resource");
    BAD(ccmr_stack_create("devise_pool", &no_resource), UNKNOWN_NAME,
        "device_pool");
    tap_is_int(ccmr_last_error()->column, 1, "column of the kind");
    BAD(ccmr_stack_create("limiting byte=1GiB | host", &no_resource),
        UNKNOWN_NAME, "bytes");
    tap_is_int(ccmr_last_error()->column, 10, "column of the option");
    tap_ok(ccmr_stack_create("", &no_resource) == CCMR_ERROR_SYNTAX,
           "an empty text: %s", ccmr_last_error()->message);
    tap_ok(ccmr_stack_create("limiting bytes=1GiB", &no_resource) !=
               CCMR_SUCCESS,
           "nothing under it: %s", ccmr_last_error()->message);
    BAD(ccmr_stack_create("device_pool device=77", &no_resource), NO_DEVICE,
        "77");
    BAD(ccmr_stack_create("logging file=/nonexistent/a | limiting "
                          "bytes=1GiB | device_plain",
                          &no_resource),
        IO, "/nonexistent/a");
}

void bad_ccmr_stack_create_over(void)
{
    BAD(ccmr_stack_create_over(NULL, host, &no_resource), INVALID_ARGUMENT,
        "text");
    BAD(ccmr_stack_create_over("limiting bytes=1", NULL, &no_resource),
        INVALID_ARGUMENT, "upstream");
    BAD(ccmr_stack_create_over("limiting bytes=1", host, NULL),
        INVALID_ARGUMENT, "resource");
    tap_ok(ccmr_stack_create_over("host", host, &no_resource) != CCMR_SUCCESS,
           "a leaf over something: %s", ccmr_last_error()->message);
}

void bad_ccmr_stack_print(void)
{
    char text[16];
    size_t length;

    BAD(ccmr_stack_print(NULL, text, sizeof(text), &length), INVALID_ARGUMENT,
        "resource");
    BAD(ccmr_stack_print(pool, NULL, 16, &length), INVALID_ARGUMENT, "text");
    GOOD(ccmr_stack_print(pool, NULL, 0, NULL));
}

void bad_ccmr_stack_help(void)
{
    char text[16];
    size_t length;

    BAD(ccmr_stack_help("devise_pool", text, sizeof(text), &length),
        UNKNOWN_NAME, "devise_pool");
    BAD(ccmr_stack_help(NULL, NULL, 16, &length), INVALID_ARGUMENT, "text");
    GOOD(ccmr_stack_help("host", NULL, 0, &length));
}

static const ccmr_option end_of_options[] = {
    {NULL, CCMR_OPTION_TEXT, NULL, NULL, NULL}};

static ccmr_status never_create(const ccmr_kind *kind,
                                const ccmr_option_value *values,
                                ccmr_resource *const *upstreams, size_t count,
                                ccmr_resource **resource)
{
    (void)kind;
    (void)values;
    (void)upstreams;
    (void)count;
    (void)resource;
    return ccmr_error_set(CCMR_ERROR_USER, 0, "a test's kind");
}

void bad_ccmr_kind_register(void)
{
    static ccmr_kind kind = {
        .size = sizeof(ccmr_kind),
        .name = "host",
        .help = "taken",
        .options = end_of_options,
        .create = never_create,
    };

    BAD(ccmr_kind_register(NULL), INVALID_ARGUMENT, "kind");
    BAD(ccmr_kind_register(&kind), ALREADY_EXISTS, "host");
    kind.name = NULL;
    BAD(ccmr_kind_register(&kind), INVALID_ARGUMENT, "name");
    kind.name = "Not a name";
    BAD(ccmr_kind_register(&kind), INVALID_ARGUMENT, "Not a name");
    kind.name = "fine";
    kind.create = NULL;
    BAD(ccmr_kind_register(&kind), INVALID_ARGUMENT, "create");
    kind.create = never_create;
    kind.min_upstreams = 2;
    BAD(ccmr_kind_register(&kind), INVALID_ARGUMENT, "upstreams");
    kind.min_upstreams = 0;
    kind.size = 4;
    BAD(ccmr_kind_register(&kind), INVALID_STRUCT, "ccmr_kind");
}

void bad_ccmr_kind_get(void)
{
    const ccmr_kind *kind = NULL;

    BAD(ccmr_kind_get(0, NULL), INVALID_ARGUMENT, "kind");
    tap_ok(ccmr_kind_get(SIZE_MAX, &kind) == CCMR_ERROR_OUT_OF_RANGE &&
               kind == NULL,
           "kind SIZE_MAX");
}

/* Streams. */

void bad_ccmr_stream_create(void)
{
    BAD(ccmr_stream_create(0, 0, NULL), INVALID_ARGUMENT, "stream");
    BAD(ccmr_stream_create(0, 0x80, &no_stream), INVALID_ARGUMENT, "0x80");
    BAD(ccmr_stream_create(99, 0, &no_stream), NO_DEVICE, "99");
}

void bad_ccmr_stream_destroy(void)
{
    BAD(ccmr_stream_destroy(NULL), INVALID_STREAM, "ccmr_stream_create");
    BAD(ccmr_stream_destroy(CCMR_STREAM_LEGACY), INVALID_STREAM,
        "ccmr_stream_create");
    BAD(ccmr_stream_destroy(CCMR_STREAM_UNSET), INVALID_STREAM,
        "ccmr_stream_create");
    BAD(ccmr_stream_destroy((ccmr_stream)(uintptr_t)0xdead0), INVALID_STREAM,
        "0xdead0");
}

void bad_ccmr_stream_register(void)
{
    BAD(ccmr_stream_register(CCMR_STREAM_UNSET), INVALID_STREAM, "UNSET");
    BAD(ccmr_stream_register(CCMR_STREAM_READY), INVALID_STREAM, "READY");
    GOOD(ccmr_stream_register(CCMR_STREAM_LEGACY));
    GOOD(ccmr_stream_register(CCMR_STREAM_PER_THREAD));
    GOOD(ccmr_stream_register(NULL));
}

void bad_ccmr_stream_retire(void)
{
    BAD(ccmr_stream_retire(CCMR_STREAM_UNSET), INVALID_STREAM, "UNSET");
    BAD(ccmr_stream_retire(CCMR_STREAM_READY), INVALID_STREAM, "READY");
    BAD(ccmr_stream_retire(CCMR_STREAM_LEGACY), INVALID_STREAM, "legacy");
    BAD(ccmr_stream_retire(CCMR_STREAM_PER_THREAD), INVALID_STREAM,
        "per-thread");
    BAD(ccmr_stream_retire(NULL), INVALID_STREAM, "legacy");
}

void bad_ccmr_stream_set_capturing(void)
{
    BAD(ccmr_stream_set_capturing(NULL, 1), INVALID_STREAM, "registered");
    BAD(ccmr_stream_set_capturing(CCMR_STREAM_UNSET, 1), INVALID_STREAM,
        "registered");
    BAD(ccmr_stream_set_capturing(CCMR_STREAM_LEGACY, 1), INVALID_STREAM,
        "registered");
    BAD(ccmr_stream_set_capturing((ccmr_stream)(uintptr_t)0xdead0, 1),
        INVALID_STREAM, "0xdead0");
}

void bad_ccmr_stream_from_protocol(void)
{
    BAD(ccmr_stream_from_protocol(0, 0, NULL), INVALID_ARGUMENT, "stream");
    BAD(ccmr_stream_from_protocol(1, 0, &no_stream), NOT_SUPPORTED, "1");
    BAD(ccmr_stream_from_protocol(-1, 0, &no_stream), NOT_SUPPORTED, "-1");
    BAD(ccmr_stream_from_protocol(0, UINT64_MAX, &no_stream), INVALID_STREAM,
        "0xffffffffffffffff");
    BAD(ccmr_stream_from_protocol(0, UINT64_MAX - 1, &no_stream),
        INVALID_STREAM, "0xfffffffffffffffe");
}

void bad_ccmr_stream_synchronize(void)
{
    BAD(ccmr_stream_synchronize(CCMR_STREAM_UNSET, 0), INVALID_STREAM,
        "UNSET");
    BAD(ccmr_stream_synchronize(CCMR_STREAM_READY, 0), INVALID_STREAM,
        "READY");
    BAD(ccmr_stream_synchronize(CCMR_STREAM_LEGACY, 99), NO_DEVICE, "99");
}

/* Statuses and version. */

void bad_ccmr_error_set(void)
{
    char longer[600];

    tap_is_int(ccmr_error_set(CCMR_ERROR_USER, 7, NULL), CCMR_ERROR_USER,
               "error_set without a message");
    tap_ok(ccmr_last_error()->message[0] != '\0' &&
               ccmr_last_error()->requested == 7,
           "has the status's text");
    memset(longer, 'x', sizeof(longer));
    longer[sizeof(longer) - 1] = '\0';
    (void)ccmr_error_set(CCMR_ERROR_USER, 7, longer);
    tap_is_size(strlen(ccmr_last_error()->message), 255,
                "a long message is cut");
    (void)ccmr_error_set(CCMR_ERROR_USER, 7, "%s%s%n");
    tap_is_str(ccmr_last_error()->message, "%s%s%n", "a message is no format");
    (void)ccmr_error_set((ccmr_status)WILD_ENUM, 0, NULL);
    tap_ok(ccmr_last_error()->message[0] != '\0', "a wild status has a text");
}

void bad_ccmr_last_error(void)
{
    tap_ok(ccmr_last_error() != NULL &&
               ccmr_last_error()->size == sizeof(ccmr_error_detail),
           "the last error's size");
}

void bad_ccmr_status_name(void)
{
    tap_is_str(ccmr_status_name((ccmr_status)WILD_ENUM), "CCMR_ERROR_UNKNOWN",
               "name of a wild status");
    tap_is_str(ccmr_status_name((ccmr_status)-5000), "CCMR_ERROR_UNKNOWN",
               "name of another");
}

void bad_ccmr_status_text(void)
{
    tap_ok(ccmr_status_text((ccmr_status)WILD_ENUM) != NULL,
           "text of a wild status");
}

void bad_ccmr_version(void)
{
    tap_is_int(ccmr_version(), CCMR_VERSION, "version");
}

void bad_ccmr_version_text(void)
{
    tap_ok(ccmr_version_text()[0] != '\0', "version's text");
}
