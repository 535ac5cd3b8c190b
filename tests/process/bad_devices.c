/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bad input to driver, devices, and the creation of resources.
 */
#include "tests/process/bad_input.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static ccmr_status with_init_options(void *given)
{
    return ccmr_init(given);
}

void bad_ccmr_init(void)
{
    ccmr_init_options options = {sizeof(options), "cuda"};

    BAD(ccmr_init(&options), BUSY, "cuda");
    options.driver = "";
    tap_ok(ccmr_init(&options) != CCMR_SUCCESS, "an empty name");
    sizes_of("ccmr_init_options", sizeof(options), with_init_options, 1);
}

static ccmr_status with_driver_info(void *given)
{
    return ccmr_driver(given);
}

void bad_ccmr_driver(void)
{
    BAD(ccmr_driver(NULL), INVALID_ARGUMENT, "info");
    sizes_of("ccmr_driver_info", sizeof(ccmr_driver_info), with_driver_info,
             0);
}

void bad_ccmr_device_count(void)
{
    BAD(ccmr_device_count(NULL), INVALID_ARGUMENT, "count");
}

static ccmr_status with_device_info(void *given)
{
    return ccmr_device_describe(0, given);
}

void bad_ccmr_device_describe(void)
{
    ccmr_device_info info = {.size = sizeof(info)};

    BAD(ccmr_device_describe(0, NULL), INVALID_ARGUMENT, "info");
    BAD(ccmr_device_describe(99, &info), NO_DEVICE, "99");
    BAD(ccmr_device_describe(-2, &info), NO_DEVICE, "-2");
    tap_is_int(ccmr_last_error()->device, -2, "the detail's device");
    BAD(ccmr_device_describe(INT32_MIN, &info), NO_DEVICE, "-2147483648");
    sizes_of("ccmr_device_info", sizeof(info), with_device_info, 0);
}

void bad_ccmr_device_current_resource(void)
{
    BAD(ccmr_device_current_resource(0, NULL), INVALID_ARGUMENT, "resource");
    BAD(ccmr_device_current_resource(77, &no_resource), NO_DEVICE, "77");
}

void bad_ccmr_device_set_current_resource(void)
{
    BAD(ccmr_device_set_current_resource(77, pool, &no_resource), NO_DEVICE,
        "77");
    BAD(ccmr_device_set_current_resource(-9, NULL, NULL), NO_DEVICE, "-9");
    BAD(ccmr_device_set_current_resource(1, pool, &no_resource), WRONG_DEVICE,
        "device 0");
}

/* Resources. */

void bad_ccmr_device_plain_create(void)
{
    BAD(ccmr_device_plain_create(0, NULL), INVALID_ARGUMENT, "resource");
    BAD(ccmr_device_plain_create(55, &no_resource), NO_DEVICE, "55");
}

static ccmr_status with_pool_options(void *given)
{
    ccmr_resource *resource = NULL;
    ccmr_status status = ccmr_device_pool_create(0, given, &resource);

    ccmr_resource_release(resource);
    return status;
}

void bad_ccmr_device_pool_create(void)
{
    ccmr_device_pool_options options = {.size = sizeof(options)};

    BAD(ccmr_device_pool_create(0, NULL, NULL), INVALID_ARGUMENT, "resource");
    BAD(ccmr_device_pool_create(55, NULL, &no_resource), NO_DEVICE, "55");
    options.maximum = 1024;
    BAD(ccmr_device_pool_create(0, &options, &no_resource), INVALID_ARGUMENT,
        "maximum");
    options.maximum = 0;
    options.initial = 1024;
    BAD(ccmr_device_pool_create(0, &options, &no_resource), INVALID_ARGUMENT,
        "initial");
    options.own = 1;
    options.initial = (size_t)200 << 40;
    tap_ok(ccmr_device_pool_create(0, &options, &no_resource) ==
               CCMR_ERROR_OUT_OF_DEVICE_MEMORY,
           "an initial size of 200 TiB: %s", ccmr_last_error()->message);
    options.initial = SIZE_MAX;
    tap_ok(ccmr_device_pool_create(0, &options, &no_resource) != CCMR_SUCCESS,
           "an initial size of SIZE_MAX: %s", ccmr_last_error()->message);
    options.initial = 4096 * 1024;
    options.maximum = 1024 * 1024;
    BAD(ccmr_device_pool_create(0, &options, &no_resource), INVALID_ARGUMENT,
        "initial");
    options.initial = 0;
    options.maximum = 0;
    options.handle_kinds = 0x80;
    tap_ok(ccmr_device_pool_create(0, &options, &no_resource) != CCMR_SUCCESS,
           "unknown handle kinds: %s", ccmr_last_error()->message);
    sizes_of("ccmr_device_pool_options", sizeof(options), with_pool_options,
             1);
}

void bad_ccmr_device_pool_from_handle(void)
{
    struct CUmemPoolHandle_st *handle = NULL;

    GOOD(ccmr_device_pool_handle(pool, &handle));
    BAD(ccmr_device_pool_from_handle(0, NULL, &no_resource), INVALID_ARGUMENT,
        "pool");
    BAD(ccmr_device_pool_from_handle(0, handle, NULL), INVALID_ARGUMENT,
        "resource");
    BAD(ccmr_device_pool_from_handle(55, handle, &no_resource), NO_DEVICE,
        "55");
}

void bad_ccmr_device_pool_handle(void)
{
    struct CUmemPoolHandle_st *handle = NULL;

    BAD(ccmr_device_pool_handle(NULL, &handle), INVALID_ARGUMENT, "resource");
    BAD(ccmr_device_pool_handle(pool, NULL), INVALID_ARGUMENT, "pool");
    BAD(ccmr_device_pool_handle(host, &handle), INVALID_ARGUMENT, "host");
}

void bad_ccmr_host_create(void)
{
    BAD(ccmr_host_create(NULL), INVALID_ARGUMENT, "resource");
}

static ccmr_status with_pinned_options(void *given)
{
    ccmr_resource *resource = NULL;
    ccmr_status status = ccmr_legacy_pinned_create(0, given, &resource);

    ccmr_resource_release(resource);
    return status;
}

void bad_ccmr_legacy_pinned_create(void)
{
    ccmr_legacy_pinned_options options = CCMR_LEGACY_PINNED_OPTIONS_INIT;

    BAD(ccmr_legacy_pinned_create(0, NULL, NULL), INVALID_ARGUMENT,
        "resource");
    BAD(ccmr_legacy_pinned_create(55, NULL, &no_resource), NO_DEVICE, "55");
    options.flags = 0x100;
    BAD(ccmr_legacy_pinned_create(0, &options, &no_resource), INVALID_ARGUMENT,
        "flags");
    options.flags = 0;
    options.access = (ccmr_access)WILD_ENUM;
    BAD(ccmr_legacy_pinned_create(0, &options, &no_resource), INVALID_ARGUMENT,
        "access");
    sizes_of("ccmr_legacy_pinned_options", sizeof(options),
             with_pinned_options, 1);
}

void bad_ccmr_limiting_create(void)
{
    BAD(ccmr_limiting_create(NULL, 1024, &no_resource), INVALID_ARGUMENT,
        "upstream");
    BAD(ccmr_limiting_create(pool, 1024, NULL), INVALID_ARGUMENT, "resource");
}

static int no_sink(void *context, const char *rows, size_t length)
{
    (void)context;
    (void)rows;
    (void)length;
    return 0;
}

static ccmr_status with_logging_options(void *given)
{
    ccmr_logging_options options = {.size = sizeof(options)};
    ccmr_resource *resource = NULL;
    ccmr_status status;
    size_t size;

    /* Where there is room, a sink makes the options good. */
    memcpy(&size, given, sizeof(size));
    if (size >= sizeof(options) && size < 65536) {
        options.size = size;
        options.sink = no_sink;
        memcpy(given, &options, sizeof(options));
    }
    status = ccmr_logging_create(host, given, &resource);
    ccmr_resource_release(resource);
    return status;
}

void bad_ccmr_logging_create(void)
{
    ccmr_logging_options options = {.size = sizeof(options)};

    BAD(ccmr_logging_create(host, NULL, &no_resource), INVALID_ARGUMENT,
        "options");
    BAD(ccmr_logging_create(host, &options, &no_resource), INVALID_ARGUMENT,
        "file");
    options.file = "/dev/null";
    BAD(ccmr_logging_create(NULL, &options, &no_resource), INVALID_ARGUMENT,
        "upstream");
    BAD(ccmr_logging_create(host, &options, NULL), INVALID_ARGUMENT,
        "resource");
    options.sink = no_sink;
    BAD(ccmr_logging_create(host, &options, &no_resource), INVALID_ARGUMENT,
        "sink");
    options.sink = NULL;
    options.columns = 0x80000000u;
    BAD(ccmr_logging_create(host, &options, &no_resource), INVALID_ARGUMENT,
        "columns");
    options.columns = 0;
    options.file = "/nonexistent/run.csv";
    BAD(ccmr_logging_create(host, &options, &no_resource), IO,
        "/nonexistent/run.csv");
    options.file = "";
    tap_ok(ccmr_logging_create(host, &options, &no_resource) != CCMR_SUCCESS,
           "a file without a name: %s", ccmr_last_error()->message);
    sizes_of("ccmr_logging_options", sizeof(options), with_logging_options, 1);
}

void bad_ccmr_logging_flush(void)
{
    BAD(ccmr_logging_flush(NULL), INVALID_ARGUMENT, "resource");
    BAD(ccmr_logging_flush(pool), INVALID_ARGUMENT, "device_pool");
}

static ccmr_status with_ordered_options(void *given)
{
    ccmr_resource *resource = NULL;
    ccmr_status status = ccmr_stream_ordered_create(pool, given, &resource);

    ccmr_resource_release(resource);
    return status;
}

void bad_ccmr_stream_ordered_create(void)
{
    BAD(ccmr_stream_ordered_create(NULL, NULL, &no_resource), INVALID_ARGUMENT,
        "upstream");
    BAD(ccmr_stream_ordered_create(pool, NULL, NULL), INVALID_ARGUMENT,
        "resource");
    sizes_of("ccmr_stream_ordered_options",
             sizeof(ccmr_stream_ordered_options), with_ordered_options, 1);
}

static ccmr_status with_own_pool_options(void *given)
{
    ccmr_resource *resource = NULL;
    ccmr_status status = ccmr_pool_create(host, given, &resource);

    ccmr_resource_release(resource);
    return status;
}

void bad_ccmr_pool_create(void)
{
    ccmr_pool_options options = {.size = sizeof(options)};

    BAD(ccmr_pool_create(NULL, NULL, &no_resource), INVALID_ARGUMENT,
        "upstream");
    BAD(ccmr_pool_create(pool, NULL, NULL), INVALID_ARGUMENT, "resource");
    options.hard = 4 << 20;
    options.initial = 5 << 20;
    BAD(ccmr_pool_create(pool, &options, &no_resource), INVALID_ARGUMENT,
        "initial");
    options.hard = 0;
    options.initial = SIZE_MAX;
    BAD(ccmr_pool_create(pool, &options, &no_resource), INVALID_SIZE,
        "initial");
    options.initial = (size_t)200 << 40;
    BAD(ccmr_pool_create(pool, &options, &no_resource), OUT_OF_DEVICE_MEMORY,
        "");
    options.initial = 0;
    options.soft = 99;
    BAD(ccmr_pool_create(pool, &options, &no_resource), INVALID_ARGUMENT,
        "soft");
    options.soft = 1001;
    BAD(ccmr_pool_create(pool, &options, &no_resource), INVALID_ARGUMENT,
        "soft");
    options.soft = 0;
    options.reuse = (ccmr_pool_reuse)WILD_ENUM;
    BAD(ccmr_pool_create(pool, &options, &no_resource), INVALID_ARGUMENT,
        "reuse");
    options.reuse = CCMR_POOL_REUSE_FOLLOW;
    options.access = (ccmr_pool_access)WILD_ENUM;
    BAD(ccmr_pool_create(pool, &options, &no_resource), INVALID_ARGUMENT,
        "access");
    options.access = CCMR_POOL_ACCESS_UPSTREAM;
    options.move = (ccmr_pool_move)WILD_ENUM;
    BAD(ccmr_pool_create(pool, &options, &no_resource), INVALID_ARGUMENT,
        "move");
    options.move = CCMR_POOL_MOVE_YES;
    options.handle = 2 << 20;
    BAD(ccmr_pool_create(pool, &options, &no_resource), INVALID_ARGUMENT,
        "handle");
    options.handle = 0;
    options.hard = 1;
    BAD(ccmr_pool_create(pool, &options, &no_resource), INVALID_ARGUMENT,
        "hard");
    sizes_of("ccmr_pool_options", sizeof(options), with_own_pool_options, 1);
}

static ccmr_status with_virtual_options(void *given)
{
    ccmr_resource *resource = NULL;
    ccmr_status status = ccmr_virtual_create(0, given, &resource);

    ccmr_resource_release(resource);
    return status;
}

void bad_ccmr_virtual_create(void)
{
    ccmr_virtual_options options = {.size = sizeof(options)};

    BAD(ccmr_virtual_create(0, NULL, NULL), INVALID_ARGUMENT, "resource");
    BAD(ccmr_virtual_create(55, NULL, &no_resource), NO_DEVICE, "55");
    options.handle = SIZE_MAX;
    BAD(ccmr_virtual_create(0, &options, &no_resource), INVALID_SIZE,
        "handle");
    options.handle = 0;
    options.room = SIZE_MAX;
    BAD(ccmr_virtual_create(0, &options, &no_resource), INVALID_SIZE, "room");
    options.room = 0;
    options.handle_kinds = 0x80;
    BAD(ccmr_virtual_create(0, &options, &no_resource), NOT_SUPPORTED,
        "handle_kinds");
    sizes_of("ccmr_virtual_options", sizeof(options), with_virtual_options, 1);
}
