/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bad input to the resource contract.
 */
#include "tests/process/bad_input.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static ccmr_status user_allocate(void *self, size_t bytes, size_t alignment,
                                 ccmr_stream on, void **ptr)
{
    return ccmr_resource_allocate(self, bytes, alignment, on, ptr);
}

static ccmr_status user_deallocate(void *self, void *ptr, size_t bytes,
                                   size_t alignment, ccmr_stream on)
{
    return ccmr_resource_deallocate(self, ptr, bytes, alignment, on);
}

static void user_destroy(void *self)
{
    (void)self;
}

static const char *user_name = "user";
static size_t user_alignment = 4096;
static ccmr_status user_status;

static ccmr_status user_describe(void *self, ccmr_properties *properties)
{
    (void)self;
    properties->name = user_name;
    properties->host_accessible = 1;
    properties->max_alignment = user_alignment;
    return user_status;
}

static ccmr_status user_reserve(void *self, size_t bytes, void **base)
{
    (void)self;
    (void)bytes;
    (void)base;
    return CCMR_ERROR_NOT_SUPPORTED;
}

static const ccmr_resource_ops user_ops = {
    .size = sizeof(ccmr_resource_ops),
    .allocate = user_allocate,
    .deallocate = user_deallocate,
    .destroy = user_destroy,
    .describe = user_describe,
};

/* An older struct ends after the required members. */
static void old_ops(void)
{
    size_t size =
        offsetof(ccmr_resource_ops, describe) + sizeof(user_ops.describe);
    unsigned char *given = malloc(size);
    ccmr_resource *resource = NULL;

    if (given == NULL) {
        tap_bail_out("no memory");
    }
    memcpy(given, &user_ops, size);
    memcpy(given, &size, sizeof(size));
    GOOD(ccmr_resource_create((const ccmr_resource_ops *)(void *)given, host,
                              &resource));
    free(given);
    tap_is_str(ccmr_resource_name(resource), "user", "an old struct's name");
    ccmr_resource_release(resource);
}

/* A newer one has more, which may not be set. */
static void new_ops(void)
{
    size_t size = sizeof(user_ops) + 24;
    unsigned char *given = calloc(1, size);
    ccmr_resource *resource = NULL;
    size_t wrong[] = {0, sizeof(size_t), SIZE_MAX};
    size_t i;

    if (given == NULL) {
        tap_bail_out("no memory");
    }
    memcpy(given, &user_ops, sizeof(user_ops));
    memcpy(given, &size, sizeof(size));
    GOOD(ccmr_resource_create((const ccmr_resource_ops *)(void *)given, host,
                              &resource));
    ccmr_resource_release(resource);
    given[size - 8] = 1;
    BAD(ccmr_resource_create((const ccmr_resource_ops *)(void *)given, host,
                             &no_resource),
        INVALID_STRUCT, "ccmr_resource_ops");
    for (i = 0; i < 3; i++) {
        memcpy(given, &wrong[i], sizeof(size));
        BAD(ccmr_resource_create((const ccmr_resource_ops *)(void *)given,
                                 host, &no_resource),
            INVALID_STRUCT, "ccmr_resource_ops");
    }
    free(given);
}

void bad_ccmr_resource_create(void)
{
    ccmr_resource_ops ops = user_ops;

    BAD(ccmr_resource_create(NULL, host, &no_resource), INVALID_ARGUMENT,
        "ops");
    BAD(ccmr_resource_create(&ops, host, NULL), INVALID_ARGUMENT, "resource");
    ops.allocate = NULL;
    BAD(ccmr_resource_create(&ops, host, &no_resource), INVALID_ARGUMENT,
        "allocate");
    ops = user_ops;
    ops.deallocate = NULL;
    BAD(ccmr_resource_create(&ops, host, &no_resource), INVALID_ARGUMENT,
        "deallocate");
    ops = user_ops;
    ops.destroy = NULL;
    BAD(ccmr_resource_create(&ops, host, &no_resource), INVALID_ARGUMENT,
        "destroy");
    ops = user_ops;
    ops.describe = NULL;
    BAD(ccmr_resource_create(&ops, host, &no_resource), INVALID_ARGUMENT,
        "describe");
    ops = user_ops;
    ops.reserve = user_reserve;
    BAD(ccmr_resource_create(&ops, host, &no_resource), INVALID_ARGUMENT,
        "reserve");
    user_name = NULL;
    BAD(ccmr_resource_create(&user_ops, host, &no_resource), INVALID_ARGUMENT,
        "name");
    user_name = "";
    BAD(ccmr_resource_create(&user_ops, host, &no_resource), INVALID_ARGUMENT,
        "name");
    user_name = "a_name_that_is_longer_than_31_characters";
    BAD(ccmr_resource_create(&user_ops, host, &no_resource), INVALID_ARGUMENT,
        "name");
    user_name = "user";
    user_alignment = 0;
    BAD(ccmr_resource_create(&user_ops, host, &no_resource), INVALID_ARGUMENT,
        "max_alignment");
    user_alignment = 48;
    BAD(ccmr_resource_create(&user_ops, host, &no_resource), INVALID_ARGUMENT,
        "48");
    user_alignment = 4096;
    user_status = CCMR_ERROR_USER;
    tap_ok(ccmr_resource_create(&user_ops, host, &no_resource) ==
                   CCMR_ERROR_USER &&
               ccmr_last_error()->status == CCMR_ERROR_USER,
           "describe that fails: %s", ccmr_last_error()->message);
    user_status = CCMR_SUCCESS;
    old_ops();
    new_ops();
}

/* Implementers that break the contract are caught. */
static void *broken_ptr;
static ccmr_status broken_status;

static ccmr_status broken_allocate(void *self, size_t bytes, size_t alignment,
                                   ccmr_stream on, void **ptr)
{
    (void)self;
    (void)bytes;
    (void)alignment;
    (void)on;
    *ptr = broken_ptr;
    return broken_status;
}

static ccmr_status broken_deallocate(void *self, void *ptr, size_t bytes,
                                     size_t alignment, ccmr_stream on)
{
    (void)self;
    (void)ptr;
    (void)bytes;
    (void)alignment;
    (void)on;
    return CCMR_SUCCESS;
}

static void broken_implementer(void)
{
    ccmr_resource_ops ops = user_ops;
    ccmr_resource *broken = NULL;
    ccmr_stats stats = {.size = sizeof(stats)};

    ops.allocate = broken_allocate;
    ops.deallocate = broken_deallocate;
    GOOD(ccmr_resource_create(&ops, NULL, &broken));
    BAD(ccmr_resource_allocate(broken, 64, 0, stream, &no_ptr), USER, "NULL");
    broken_ptr = (void *)(uintptr_t)0x1008;
    BAD(ccmr_resource_allocate(broken, 64, 0, stream, &no_ptr), USER,
        "aligned");
    broken_status = CCMR_ERROR_USER;
    tap_ok(ccmr_resource_allocate(broken, 64, 0, stream, &no_ptr) ==
                   CCMR_ERROR_USER &&
               strcmp(ccmr_last_error()->resource, "user") == 0 &&
               ccmr_last_error()->requested == 64 && no_ptr == NULL,
           "a failure that nobody described: %s", ccmr_last_error()->message);
    broken_status = (ccmr_status)3;
    tap_ok(ccmr_resource_allocate(broken, 64, 0, stream, &no_ptr) !=
                   CCMR_SUCCESS &&
               no_ptr == NULL,
           "a status that is none is no success");
    GOOD(ccmr_resource_stats(broken, &stats));
    tap_is_size(stats.live_bytes, 0, "nothing of it is live");
    ccmr_resource_release(broken);
}

void bad_ccmr_resource_allocate(void)
{
    BAD(ccmr_resource_allocate(NULL, 1, 0, stream, &no_ptr), INVALID_ARGUMENT,
        "resource");
    BAD(ccmr_resource_allocate(pool, 1, 0, stream, NULL), INVALID_ARGUMENT,
        "ptr");
    BAD(ccmr_resource_allocate(pool, 0, 0, stream, NULL), INVALID_ARGUMENT,
        "ptr");
    BAD(ccmr_resource_allocate(pool, 1, 0, CCMR_STREAM_UNSET, &no_ptr),
        INVALID_STREAM, "UNSET");
    BAD(ccmr_resource_allocate(pool, 1, 0, CCMR_STREAM_READY, &no_ptr),
        INVALID_STREAM, "READY");
    BAD(ccmr_resource_allocate(pool, 1, 5, stream, &no_ptr), INVALID_ALIGNMENT,
        "5");
    BAD(ccmr_resource_allocate(pool, 1, (size_t)1 << 63, stream, &no_ptr),
        INVALID_ALIGNMENT, "9223372036854775808");
    tap_is_str(ccmr_last_error()->resource, "device_pool", "who refused");
    BAD(ccmr_resource_allocate(pool, SIZE_MAX, 0, stream, &no_ptr),
        INVALID_SIZE, "18446744073709551615");
    broken_implementer();
}

void bad_ccmr_resource_deallocate(void)
{
    BAD(ccmr_resource_deallocate(NULL, block, 512, 0, stream),
        INVALID_ARGUMENT, "resource");
    BAD(ccmr_resource_deallocate(pool, NULL, 512, 0, stream), INVALID_ARGUMENT,
        "ptr");
    BAD(ccmr_resource_deallocate(pool, block, 0, 0, stream), INVALID_SIZE,
        "0 bytes");
    BAD(ccmr_resource_deallocate(pool, block, SIZE_MAX, 0, stream),
        INVALID_SIZE, "18446744073709551615");
    BAD(ccmr_resource_deallocate(pool, block, 512, 7, stream),
        INVALID_ALIGNMENT, "7");
    BAD(ccmr_resource_deallocate(pool, block, 512, 0, CCMR_STREAM_UNSET),
        INVALID_STREAM, "UNSET");
    tap_ok(ccmr_resource_deallocate(pool, (char *)block + 8, 504, 0, stream) ==
               CCMR_ERROR_INVALID_POINTER,
           "a misaligned pointer: %s", ccmr_last_error()->message);
    tap_ok(ccmr_resource_deallocate(host, (char *)block + 8, 504, 0, stream) ==
               CCMR_ERROR_INVALID_POINTER,
           "a misaligned pointer to host: %s", ccmr_last_error()->message);
}

void bad_ccmr_resource_retain(void)
{
    tap_ok(ccmr_resource_retain(NULL) == NULL, "retain of NULL");
}

void bad_ccmr_resource_release(void)
{
    ccmr_resource_release(NULL);
    tap_pass("release of NULL");
}

static ccmr_status with_block(void *given)
{
    ccmr_block one = {sizeof(one), block, 512, 256, stream};
    ccmr_stream chosen;
    size_t size;

    memcpy(&size, given, sizeof(size));
    if (size >= sizeof(one) && size < 65536) {
        one.size = size;
        memcpy(given, &one, sizeof(one));
    }
    return ccmr_resource_choose_free_stream(pool, given, CCMR_STREAM_UNSET,
                                            &chosen);
}

void bad_ccmr_resource_choose_free_stream(void)
{
    ccmr_block one = {sizeof(one), block, 512, 256, CCMR_STREAM_UNSET};

    BAD(ccmr_resource_choose_free_stream(NULL, &one, stream, &no_stream),
        INVALID_ARGUMENT, "resource");
    BAD(ccmr_resource_choose_free_stream(pool, NULL, stream, &no_stream),
        INVALID_ARGUMENT, "block");
    BAD(ccmr_resource_choose_free_stream(pool, &one, stream, NULL),
        INVALID_ARGUMENT, "chosen");
    BAD(ccmr_resource_choose_free_stream(pool, &one, CCMR_STREAM_UNSET,
                                         &no_stream),
        INVALID_STREAM, "stream");
    sizes_of("ccmr_block", sizeof(one), with_block, 1);
}

static ccmr_status with_properties(void *given)
{
    return ccmr_resource_describe(pool, given);
}

void bad_ccmr_resource_describe(void)
{
    ccmr_properties properties = {.size = sizeof(properties)};

    BAD(ccmr_resource_describe(NULL, &properties), INVALID_ARGUMENT,
        "resource");
    BAD(ccmr_resource_describe(pool, NULL), INVALID_ARGUMENT, "properties");
    sizes_of("ccmr_properties", sizeof(properties), with_properties, 0);
}

void bad_ccmr_resource_name(void)
{
    tap_ok(ccmr_resource_name(NULL) == NULL, "name of NULL");
}

void bad_ccmr_resource_upstream(void)
{
    BAD(ccmr_resource_upstream(NULL, 0, &no_resource), INVALID_ARGUMENT,
        "resource");
    BAD(ccmr_resource_upstream(pool, 0, NULL), INVALID_ARGUMENT, "upstream");
    BAD(ccmr_resource_upstream(pool, 0, &no_resource), OUT_OF_RANGE, "0");
    BAD(ccmr_resource_upstream(logging, SIZE_MAX, &no_resource), OUT_OF_RANGE,
        "18446744073709551615");
}

static ccmr_status with_trim_result(void *given)
{
    return ccmr_resource_trim(pool, 0, given);
}

void bad_ccmr_resource_trim(void)
{
    BAD(ccmr_resource_trim(NULL, 0, NULL), INVALID_ARGUMENT, "resource");
    sizes_of("ccmr_trim_result", sizeof(ccmr_trim_result), with_trim_result,
             0);
}

static ccmr_status with_stats(void *given)
{
    return ccmr_resource_stats(pool, given);
}

void bad_ccmr_resource_stats(void)
{
    ccmr_stats stats = {.size = sizeof(stats)};

    BAD(ccmr_resource_stats(NULL, &stats), INVALID_ARGUMENT, "resource");
    BAD(ccmr_resource_stats(pool, NULL), INVALID_ARGUMENT, "stats");
    sizes_of("ccmr_stats", sizeof(stats), with_stats, 0);
}

void bad_ccmr_resource_grow(void)
{
    BAD(ccmr_resource_grow(NULL, block, 1, 2, stream), INVALID_ARGUMENT,
        "resource");
    BAD(ccmr_resource_grow(pool, NULL, 1, 2, stream), INVALID_ARGUMENT, "ptr");
    BAD(ccmr_resource_grow(pool, block, 1, 2, CCMR_STREAM_UNSET),
        INVALID_STREAM, "stream");
    BAD(ccmr_resource_grow(pool, block, 1, 2, CCMR_STREAM_READY),
        INVALID_STREAM, "stream");
    BAD(ccmr_resource_grow(pool, block, 0, 2, stream), INVALID_SIZE, "0");
    BAD(ccmr_resource_grow(pool, block, 2, 1, stream), INVALID_SIZE, "2 to 1");
    BAD(ccmr_resource_grow(pool, block, 2, SIZE_MAX, stream), INVALID_SIZE,
        "2 to");
    BAD(ccmr_resource_grow(host, block, 1, 2, stream), NOT_SUPPORTED, "host");
}

void bad_ccmr_resource_set_access(void)
{
    BAD(ccmr_resource_set_access(NULL, 0, 1), INVALID_ARGUMENT, "resource");
    BAD(ccmr_resource_set_access(host, 0, 1), NOT_SUPPORTED, "host");
}

void bad_ccmr_resource_export_handle(void)
{
    int fd = -1;

    BAD(ccmr_resource_export_handle(NULL, block, 1, &fd, sizeof(fd)),
        INVALID_ARGUMENT, "resource");
    BAD(ccmr_resource_export_handle(host, NULL, 1, &fd, sizeof(fd)),
        INVALID_ARGUMENT, "ptr");
    BAD(ccmr_resource_export_handle(host, block, 1, NULL, sizeof(fd)),
        INVALID_ARGUMENT, "handle");
    BAD(ccmr_resource_export_handle(host, block, 1, &fd, sizeof(fd)),
        NOT_SUPPORTED, "host");
    tap_is_int(fd, -1, "an export that is refused writes nothing");
}

void bad_ccmr_resource_export_block(void)
{
    ccmr_export_place place = {.size = sizeof(place)};
    int fd = -1;

    BAD(ccmr_resource_export_block(NULL, block, 1, 1, &fd, sizeof(fd), &place),
        INVALID_ARGUMENT, "resource");
    BAD(ccmr_resource_export_block(pool, NULL, 1, 1, &fd, sizeof(fd), &place),
        INVALID_ARGUMENT, "ptr");
    BAD(ccmr_resource_export_block(pool, block, 0, 1, &fd, sizeof(fd), &place),
        INVALID_SIZE, "0 bytes");
    BAD(ccmr_resource_export_block(pool, block, SIZE_MAX, 1, &fd, sizeof(fd),
                                   &place),
        INVALID_SIZE, "bytes");
    BAD(ccmr_resource_export_block(pool, block, 1, 1, NULL, sizeof(fd),
                                   &place),
        INVALID_ARGUMENT, "handle");
    BAD(ccmr_resource_export_block(pool, block, 1, 1, &fd, sizeof(fd), NULL),
        INVALID_ARGUMENT, "place");
    BAD(ccmr_resource_export_block(host, block, 1, 1, &fd, sizeof(fd), &place),
        NOT_SUPPORTED, "host");
    place.size = 1;
    BAD(ccmr_resource_export_block(pool, block, 1, 1, &fd, sizeof(fd), &place),
        INVALID_STRUCT, "ccmr_export_place");
    tap_is_int(fd, -1, "an export that is refused writes nothing");
}

void bad_ccmr_resource_pin(void)
{
    BAD(ccmr_resource_pin(NULL, block, 1), INVALID_ARGUMENT, "resource");
    BAD(ccmr_resource_pin(pool, NULL, 1), INVALID_ARGUMENT, "ptr");
    BAD(ccmr_resource_pin(pool, block, 0), INVALID_SIZE, "0 bytes");
    BAD(ccmr_resource_pin(pool, block, SIZE_MAX), INVALID_SIZE, "bytes");
    BAD(ccmr_resource_pin(host, block, 1), NOT_SUPPORTED, "host");
}

void bad_ccmr_resource_unpin(void)
{
    BAD(ccmr_resource_unpin(NULL, block, 1), INVALID_ARGUMENT, "resource");
    BAD(ccmr_resource_unpin(pool, NULL, 1), INVALID_ARGUMENT, "ptr");
    BAD(ccmr_resource_unpin(pool, block, 0), INVALID_SIZE, "0 bytes");
    BAD(ccmr_resource_unpin(host, block, 1), NOT_SUPPORTED, "host");
}

void bad_ccmr_resource_note_use(void)
{
    BAD(ccmr_resource_note_use(NULL, block, stream), INVALID_ARGUMENT,
        "resource");
    BAD(ccmr_resource_note_use(pool, NULL, stream), INVALID_ARGUMENT, "ptr");
    BAD(ccmr_resource_note_use(pool, block, CCMR_STREAM_UNSET), INVALID_STREAM,
        "stream");
    BAD(ccmr_resource_note_use(host, block, stream), NOT_SUPPORTED, "host");
}

void bad_ccmr_resource_hold_until_free(void)
{
    BAD(ccmr_resource_hold_until_free(NULL, block, stream), INVALID_ARGUMENT,
        "resource");
    BAD(ccmr_resource_hold_until_free(pool, NULL, stream), INVALID_ARGUMENT,
        "ptr");
    BAD(ccmr_resource_hold_until_free(pool, block, CCMR_STREAM_READY),
        INVALID_STREAM, "stream");
    BAD(ccmr_resource_hold_until_free(host, block, stream), NOT_SUPPORTED,
        "host");
}

void bad_ccmr_resource_option_get(void)
{
    char text[64] = "x";
    size_t length = 12345;

    BAD(ccmr_resource_option_get(NULL, "device", text, 64, &length),
        INVALID_ARGUMENT, "resource");
    BAD(ccmr_resource_option_get(pool, NULL, text, 64, &length),
        INVALID_ARGUMENT, "name");
    BAD(ccmr_resource_option_get(pool, "device", NULL, 64, &length),
        INVALID_ARGUMENT, "text");
    BAD(ccmr_resource_option_get(pool, "devise", text, 64, &length),
        UNKNOWN_NAME, "devise");
    BAD(ccmr_resource_option_get(host, "", text, 64, &length), UNKNOWN_NAME,
        "host");
    tap_ok(text[0] == 'x' && length == 12345, "no output was written");
}

void bad_ccmr_resource_option_set(void)
{
    BAD(ccmr_resource_option_set(NULL, "device", "1"), INVALID_ARGUMENT,
        "resource");
    BAD(ccmr_resource_option_set(pool, NULL, "1"), INVALID_ARGUMENT, "name");
    BAD(ccmr_resource_option_set(pool, "device", NULL), INVALID_ARGUMENT,
        "text");
    BAD(ccmr_resource_option_set(pool, "devise", "1"), UNKNOWN_NAME, "devise");
    BAD(ccmr_resource_option_set(pool, "device", "1"), NOT_SUPPORTED,
        "device");
}

void bad_ccmr_resource_would_fit(void)
{
    int fits = 12;

    BAD(ccmr_resource_would_fit(NULL, 1, stream, &fits), INVALID_ARGUMENT,
        "resource");
    BAD(ccmr_resource_would_fit(pool, 1, stream, NULL), INVALID_ARGUMENT,
        "fits");
    BAD(ccmr_resource_would_fit(pool, 1, CCMR_STREAM_UNSET, &fits),
        INVALID_STREAM, "stream");
    BAD(ccmr_resource_would_fit(host, 1, stream, &fits), NOT_SUPPORTED,
        "host");
    tap_is_int(fits, 12, "no output was written");
}

static int end_at_once(void *context, const char *line, size_t length)
{
    (void)context;
    (void)line;
    return length > 0;
}

void bad_ccmr_resource_dump(void)
{
    BAD(ccmr_resource_dump(NULL, end_at_once, NULL), INVALID_ARGUMENT,
        "resource");
    BAD(ccmr_resource_dump(host, NULL, NULL), INVALID_ARGUMENT, "write");
    BAD(ccmr_resource_dump(host, end_at_once, NULL), USER, "ended");
}

void bad_ccmr_resource_audit(void)
{
    BAD(ccmr_resource_audit(NULL), INVALID_ARGUMENT, "resource");
}
