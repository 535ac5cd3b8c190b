/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/process/calls.h"

#include <stdio.h>
#include <string.h>

#define CALL(name, expression)                                                \
    static ccmr_status call_##name(objects *o)                                \
    {                                                                         \
        (void)o;                                                              \
        return (expression);                                                  \
    }

/* A call without status. */
#define CALL_OF_NONE(name, expression)                                        \
    static ccmr_status call_##name(objects *o)                                \
    {                                                                         \
        (void)o;                                                              \
        (void)(expression);                                                   \
        return CCMR_SUCCESS;                                                  \
    }

static ccmr_status user_allocate(void *self, size_t bytes, size_t alignment,
                                 ccmr_stream stream, void **ptr)
{
    return ccmr_resource_allocate(self, bytes, alignment, stream, ptr);
}

static ccmr_status user_deallocate(void *self, void *ptr, size_t bytes,
                                   size_t alignment, ccmr_stream stream)
{
    return ccmr_resource_deallocate(self, ptr, bytes, alignment, stream);
}

static void user_destroy(void *self)
{
    (void)self;
}

static ccmr_status user_describe(void *self, ccmr_properties *properties)
{
    (void)self;
    properties->name = "user";
    properties->device = -1;
    properties->host_accessible = 1;
    properties->max_alignment = 4096;
    return CCMR_SUCCESS;
}

static const ccmr_resource_ops user_ops = {
    .size = sizeof(ccmr_resource_ops),
    .allocate = user_allocate,
    .deallocate = user_deallocate,
    .destroy = user_destroy,
    .describe = user_describe,
};

static ccmr_status user_create(const ccmr_kind *kind,
                               const ccmr_option_value *values,
                               ccmr_resource *const *upstreams, size_t count,
                               ccmr_resource **resource)
{
    (void)kind;
    (void)values;
    (void)count;
    return ccmr_resource_create(&user_ops, upstreams[0], resource);
}

static const ccmr_option no_options[] = {
    {NULL, CCMR_OPTION_TEXT, NULL, NULL, NULL}};

/* Made and given back at once. */
static ccmr_status made(ccmr_status status, ccmr_resource *resource)
{
    ccmr_resource_release(resource);
    return status;
}

#define MAKE(name, call)                                                      \
    static ccmr_status call_##name(objects *o)                                \
    {                                                                         \
        ccmr_resource *resource = NULL;                                       \
        ccmr_status status = (call);                                          \
                                                                              \
        (void)o;                                                              \
        return made(status, resource);                                        \
    }

CALL_OF_NONE(ccmr_buffer_bytes, ccmr_buffer_bytes(o->buffer))
CALL_OF_NONE(ccmr_buffer_ptr, ccmr_buffer_ptr(o->buffer))
CALL_OF_NONE(ccmr_error_set, ccmr_error_set(CCMR_ERROR_USER, 1, "a test"))
CALL_OF_NONE(ccmr_last_error, ccmr_last_error()->message[0])
CALL_OF_NONE(ccmr_resource_name, ccmr_resource_name(o->pool))
CALL_OF_NONE(ccmr_status_name, ccmr_status_name(CCMR_SUCCESS))
CALL_OF_NONE(ccmr_status_text, ccmr_status_text(CCMR_SUCCESS))
CALL_OF_NONE(ccmr_version, ccmr_version())
CALL_OF_NONE(ccmr_version_text, ccmr_version_text())

static ccmr_status call_ccmr_resource_retain(objects *o)
{
    (void)ccmr_resource_retain(o->pool);
    return CCMR_SUCCESS;
}

/* Gives back what the retain before it took. */
static ccmr_status call_ccmr_resource_release(objects *o)
{
    ccmr_resource_release(o->pool);
    return CCMR_SUCCESS;
}

CALL(ccmr_buffer_copy,
     ccmr_buffer_copy(o->buffer, 0, o->other, 0, 64, o->stream))
CALL(ccmr_buffer_fill, ccmr_buffer_fill(o->buffer, 0, 64, 1, 1, o->stream))
CALL(ccmr_buffer_note_use, ccmr_buffer_note_use(o->buffer, o->stream))
CALL(ccmr_buffer_set_stream, ccmr_buffer_set_stream(o->buffer, o->stream))
CALL(ccmr_statistics_push, ccmr_statistics_push(o->counted))
CALL(ccmr_logging_flush, ccmr_logging_flush(o->logging))
CALL(ccmr_resource_audit, ccmr_resource_audit(o->pool))
CALL(ccmr_resource_trim, ccmr_resource_trim(o->stack, 0, NULL))
CALL(ccmr_stream_register, ccmr_stream_register(o->stream))
CALL(ccmr_stream_synchronize, ccmr_stream_synchronize(o->stream, 0))
CALL(ccmr_init, ccmr_init(NULL))

static ccmr_status call_ccmr_buffer_copy_to_host(objects *o)
{
    static char host[64];

    return ccmr_buffer_copy_to_host(o->buffer, 0, host, 64, o->stream);
}

static ccmr_status call_ccmr_buffer_copy_from_host(objects *o)
{
    static char host[64];

    return ccmr_buffer_copy_from_host(o->buffer, 0, host, 64, o->stream);
}

static ccmr_status call_ccmr_buffer_create(objects *o)
{
    ccmr_buffer *buffer = NULL;
    ccmr_status status =
        ccmr_buffer_create(o->pool, 128, NULL, o->stream, &buffer);

    (void)ccmr_buffer_destroy(buffer);
    return status;
}

static ccmr_status call_ccmr_buffer_from_handle(objects *o)
{
    ccmr_buffer *buffer = NULL;
    ccmr_status status = ccmr_buffer_from_handle(o->block, 512, NULL, &buffer);

    (void)ccmr_buffer_destroy(buffer);
    return status;
}

static ccmr_status call_ccmr_buffer_describe(objects *o)
{
    ccmr_buffer_properties properties = {.size = sizeof(properties)};

    return ccmr_buffer_describe(o->buffer, &properties);
}

static ccmr_status call_ccmr_device_count(objects *o)
{
    int count;

    (void)o;
    return ccmr_device_count(&count);
}

static ccmr_status call_ccmr_device_describe(objects *o)
{
    ccmr_device_info info = {.size = sizeof(info)};

    (void)o;
    return ccmr_device_describe(0, &info);
}

static ccmr_status call_ccmr_driver(objects *o)
{
    ccmr_driver_info info = {.size = sizeof(info)};

    (void)o;
    return ccmr_driver(&info);
}

MAKE(ccmr_device_current_resource, ccmr_device_current_resource(0, &resource))
CALL(ccmr_device_set_current_resource,
     ccmr_device_set_current_resource(0, NULL, NULL))
MAKE(ccmr_device_plain_create, ccmr_device_plain_create(0, &resource))
MAKE(ccmr_device_pool_create, ccmr_device_pool_create(0, NULL, &resource))
MAKE(ccmr_host_create, ccmr_host_create(&resource))
MAKE(ccmr_legacy_pinned_create, ccmr_legacy_pinned_create(0, NULL, &resource))
MAKE(ccmr_limiting_create, ccmr_limiting_create(o->pool, 4096, &resource))
MAKE(ccmr_pool_create, ccmr_pool_create(o->pool, NULL, &resource))
MAKE(ccmr_statistics_create, ccmr_statistics_create(o->pool, NULL, &resource))
MAKE(ccmr_stream_ordered_create,
     ccmr_stream_ordered_create(o->pool, NULL, &resource))
MAKE(ccmr_tracking_create, ccmr_tracking_create(o->pool, NULL, &resource))
MAKE(ccmr_virtual_create, ccmr_virtual_create(0, NULL, &resource))
MAKE(ccmr_stack_create, ccmr_stack_create("device_plain", &resource))
MAKE(ccmr_stack_create_over,
     ccmr_stack_create_over("limiting bytes=1MiB", o->pool, &resource))
MAKE(ccmr_resource_create, ccmr_resource_create(&user_ops, o->host, &resource))

static ccmr_status call_ccmr_logging_create(objects *o)
{
    ccmr_logging_options options = {.size = sizeof(options)};
    ccmr_resource *resource = NULL;
    ccmr_status status;

    options.file = "/dev/null";
    status = ccmr_logging_create(o->pool, &options, &resource);
    return made(status, resource);
}

static ccmr_status call_ccmr_device_pool_handle(objects *o)
{
    struct CUmemPoolHandle_st *pool;

    return ccmr_device_pool_handle(o->pool, &pool);
}

static ccmr_status call_ccmr_device_pool_from_handle(objects *o)
{
    struct CUmemPoolHandle_st *pool = NULL;
    ccmr_resource *resource = NULL;
    ccmr_status status = ccmr_device_pool_handle(o->pool, &pool);

    if (status == CCMR_SUCCESS) {
        status = ccmr_device_pool_from_handle(0, pool, &resource);
    }
    return made(status, resource);
}

static ccmr_status call_ccmr_kind_get(objects *o)
{
    const ccmr_kind *kind;

    (void)o;
    return ccmr_kind_get(0, &kind);
}

static ccmr_status call_ccmr_kind_register(objects *o)
{
    static const ccmr_kind kind = {
        .size = sizeof(ccmr_kind),
        .name = "user",
        .help = "a test's",
        .options = no_options,
        .min_upstreams = 1,
        .max_upstreams = 1,
        .create = user_create,
    };
    ccmr_status status = ccmr_kind_register(&kind);

    (void)o;
    return status == CCMR_ERROR_ALREADY_EXISTS ? CCMR_SUCCESS : status;
}

static ccmr_status call_ccmr_resource_allocate(objects *o)
{
    void *ptr = NULL;
    ccmr_status status =
        ccmr_resource_allocate(o->stack, 128, 0, o->stream, &ptr);

    if (status == CCMR_SUCCESS) {
        status = ccmr_resource_deallocate(o->stack, ptr, 128, 0, o->stream);
    }
    return status;
}

static ccmr_status call_ccmr_resource_choose_free_stream(objects *o)
{
    ccmr_block block = {sizeof(block), o->block, 512, 256, o->stream};
    ccmr_stream chosen;

    return ccmr_resource_choose_free_stream(o->stack, &block,
                                            CCMR_STREAM_UNSET, &chosen);
}

static ccmr_status call_ccmr_resource_describe(objects *o)
{
    ccmr_properties properties = {.size = sizeof(properties)};

    return ccmr_resource_describe(o->stack, &properties);
}

static ccmr_status call_ccmr_resource_upstream(objects *o)
{
    ccmr_resource *upstream;

    return ccmr_resource_upstream(o->stack, 0, &upstream);
}

static ccmr_status call_ccmr_resource_stats(objects *o)
{
    ccmr_stats stats = {.size = sizeof(stats)};

    return ccmr_resource_stats(o->pool, &stats);
}

/* What a resource need not offer. */
static ccmr_status offered(ccmr_status status)
{
    return status == CCMR_ERROR_NOT_SUPPORTED ? CCMR_SUCCESS : status;
}

CALL(ccmr_resource_grow,
     offered(ccmr_resource_grow(o->stack, o->block, 1000, 2000, o->stream)))
CALL(ccmr_resource_set_access,
     offered(ccmr_resource_set_access(o->stack, 0, 1)))

static ccmr_status call_ccmr_resource_export_handle(objects *o)
{
    int fd = -1;

    return offered(ccmr_resource_export_handle(
        o->stack, o->block, CCMR_HANDLE_POSIX_FD, &fd, sizeof(fd)));
}

static ccmr_status call_ccmr_resource_export_block(objects *o)
{
    ccmr_export_place place = {.size = sizeof(place)};
    int fd = -1;

    return offered(ccmr_resource_export_block(o->stack, o->block, 1000,
                                              CCMR_HANDLE_POSIX_FD, &fd,
                                              sizeof(fd), &place));
}

CALL(ccmr_resource_pin, offered(ccmr_resource_pin(o->stack, o->block, 1000)))
CALL(ccmr_resource_unpin,
     offered(ccmr_resource_unpin(o->stack, o->block, 1000)))
CALL(ccmr_resource_note_use,
     offered(ccmr_resource_note_use(o->stack, o->block, o->stream)))
CALL(ccmr_resource_hold_until_free,
     offered(ccmr_resource_hold_until_free(o->stack, o->block, o->stream)))

static ccmr_status call_ccmr_resource_would_fit(objects *o)
{
    int fits;

    return offered(ccmr_resource_would_fit(o->stack, 1, o->stream, &fits));
}

static ccmr_status call_ccmr_resource_option_get(objects *o)
{
    char text[64];

    return ccmr_resource_option_get(o->stack, "bytes", text, sizeof(text),
                                    NULL);
}

CALL(ccmr_resource_option_set,
     ccmr_resource_option_set(o->stack, "bytes", "1GiB"))

static ccmr_status call_ccmr_statistics_read(objects *o)
{
    ccmr_statistics statistics = {.size = sizeof(statistics)};

    return ccmr_statistics_read(o->counted, &statistics);
}

static ccmr_status call_ccmr_statistics_read_thread(objects *o)
{
    ccmr_statistics statistics = {.size = sizeof(statistics)};

    return ccmr_statistics_read_thread(o->counted, &statistics);
}

static int visit_none(void *context, const ccmr_tracking_block *block)
{
    (void)context;
    (void)block;
    return 0;
}

CALL(ccmr_tracking_outstanding,
     ccmr_tracking_outstanding(o->counted, visit_none, NULL))

static ccmr_status call_ccmr_tracking_find(objects *o)
{
    ccmr_tracking_block block = {.size = sizeof(block)};
    ccmr_status status = ccmr_tracking_find(o->counted, o, &block);

    return status == CCMR_ERROR_INVALID_POINTER ? CCMR_SUCCESS : status;
}

static int write_none(void *context, const char *line, size_t length)
{
    (void)context;
    (void)line;
    (void)length;
    return 0;
}

CALL(ccmr_resource_dump, ccmr_resource_dump(o->pooled, write_none, NULL))

/* None may be open. */
static ccmr_status call_ccmr_statistics_pop(objects *o)
{
    ccmr_status status = ccmr_statistics_pop(o->counted, NULL);

    return status == CCMR_ERROR_OUT_OF_RANGE ? CCMR_SUCCESS : status;
}

static ccmr_status call_ccmr_stack_help(objects *o)
{
    char text[64];

    (void)o;
    return ccmr_stack_help(NULL, text, sizeof(text), NULL);
}

static ccmr_status call_ccmr_stack_print(objects *o)
{
    char text[256];

    return ccmr_stack_print(o->stack, text, sizeof(text), NULL);
}

static ccmr_status call_ccmr_stream_create(objects *o)
{
    ccmr_stream stream = NULL;
    ccmr_status status = ccmr_stream_create(0, 0, &stream);

    (void)o;
    if (status == CCMR_SUCCESS) {
        status = ccmr_stream_destroy(stream);
    }
    return status;
}

static ccmr_status call_ccmr_stream_from_protocol(objects *o)
{
    ccmr_stream stream;

    (void)o;
    return ccmr_stream_from_protocol(0, 0, &stream);
}

CALL(ccmr_stream_set_capturing, ccmr_stream_set_capturing(o->stream, 0))

/* From here on something is taken apart; each clears what it took. */

static ccmr_status call_ccmr_resource_deallocate(objects *o)
{
    ccmr_status status =
        ccmr_resource_deallocate(o->stack, o->block, 512, 0, o->stream);

    if (status == CCMR_SUCCESS) {
        o->block = NULL;
    }
    return status;
}

CALL(ccmr_buffer_close, ccmr_buffer_close(o->other, CCMR_STREAM_UNSET))

static ccmr_status call_ccmr_buffer_destroy(objects *o)
{
    ccmr_status status = ccmr_buffer_destroy(o->other);

    if (status == CCMR_SUCCESS) {
        o->other = NULL;
    }
    return status;
}

static ccmr_status call_ccmr_buffer_disown(objects *o)
{
    void *ptr = NULL;
    ccmr_status status = ccmr_buffer_disown(o->buffer, &ptr);

    if (status == CCMR_SUCCESS) {
        status = ccmr_resource_deallocate(o->pool, ptr, 4096, 0, o->stream);
    }
    return status;
}

CALL(ccmr_stream_retire, ccmr_stream_retire(o->stream))

static ccmr_status call_ccmr_stream_destroy(objects *o)
{
    ccmr_stream stream = NULL;
    ccmr_status status = ccmr_stream_create(0, 0, &stream);

    (void)o;
    return status == CCMR_SUCCESS ? ccmr_stream_destroy(stream) : status;
}

#define ENTRY(name, kind)                                                     \
    {                                                                         \
#name, kind, call_##name                                              \
    }

const valid_call valid_calls[] = {
    ENTRY(ccmr_buffer_bytes, CALL_NONE),
    ENTRY(ccmr_buffer_copy, CALL_STATUS),
    ENTRY(ccmr_buffer_copy_from_host, CALL_STATUS),
    ENTRY(ccmr_buffer_copy_to_host, CALL_STATUS),
    ENTRY(ccmr_buffer_create, CALL_STATUS),
    ENTRY(ccmr_buffer_describe, CALL_STATUS),
    ENTRY(ccmr_buffer_fill, CALL_STATUS),
    ENTRY(ccmr_buffer_from_handle, CALL_STATUS),
    ENTRY(ccmr_buffer_note_use, CALL_STATUS),
    ENTRY(ccmr_buffer_ptr, CALL_NONE),
    ENTRY(ccmr_buffer_set_stream, CALL_STATUS),
    ENTRY(ccmr_device_count, CALL_STATUS),
    ENTRY(ccmr_device_current_resource, CALL_STATUS),
    ENTRY(ccmr_device_describe, CALL_STATUS),
    ENTRY(ccmr_device_plain_create, CALL_STATUS),
    ENTRY(ccmr_device_pool_create, CALL_STATUS),
    ENTRY(ccmr_device_pool_from_handle, CALL_STATUS),
    ENTRY(ccmr_device_pool_handle, CALL_STATUS),
    ENTRY(ccmr_device_set_current_resource, CALL_STATUS),
    ENTRY(ccmr_driver, CALL_STATUS),
    ENTRY(ccmr_error_set, CALL_NONE),
    ENTRY(ccmr_host_create, CALL_STATUS),
    ENTRY(ccmr_init, CALL_STATUS),
    ENTRY(ccmr_kind_get, CALL_PURE),
    ENTRY(ccmr_kind_register, CALL_PURE),
    ENTRY(ccmr_last_error, CALL_NONE),
    ENTRY(ccmr_legacy_pinned_create, CALL_STATUS),
    ENTRY(ccmr_limiting_create, CALL_STATUS),
    ENTRY(ccmr_logging_create, CALL_STATUS),
    ENTRY(ccmr_logging_flush, CALL_STATUS),
    ENTRY(ccmr_pool_create, CALL_STATUS),
    ENTRY(ccmr_resource_allocate, CALL_STATUS),
    ENTRY(ccmr_resource_audit, CALL_STATUS),
    ENTRY(ccmr_resource_choose_free_stream, CALL_STATUS),
    ENTRY(ccmr_resource_create, CALL_STATUS),
    ENTRY(ccmr_resource_describe, CALL_STATUS),
    ENTRY(ccmr_resource_dump, CALL_STATUS),
    ENTRY(ccmr_resource_export_block, CALL_STATUS),
    ENTRY(ccmr_resource_export_handle, CALL_STATUS),
    ENTRY(ccmr_resource_grow, CALL_STATUS),
    ENTRY(ccmr_resource_hold_until_free, CALL_STATUS),
    ENTRY(ccmr_resource_name, CALL_NONE),
    ENTRY(ccmr_resource_note_use, CALL_STATUS),
    ENTRY(ccmr_resource_option_get, CALL_STATUS),
    ENTRY(ccmr_resource_option_set, CALL_STATUS),
    ENTRY(ccmr_resource_retain, CALL_NONE),
    ENTRY(ccmr_resource_pin, CALL_STATUS),
    ENTRY(ccmr_resource_release, CALL_NONE),
    ENTRY(ccmr_resource_set_access, CALL_STATUS),
    ENTRY(ccmr_resource_stats, CALL_STATUS),
    ENTRY(ccmr_resource_trim, CALL_STATUS),
    ENTRY(ccmr_resource_unpin, CALL_STATUS),
    ENTRY(ccmr_resource_upstream, CALL_STATUS),
    ENTRY(ccmr_resource_would_fit, CALL_STATUS),
    ENTRY(ccmr_stack_create, CALL_STATUS),
    ENTRY(ccmr_stack_create_over, CALL_STATUS),
    ENTRY(ccmr_stack_help, CALL_PURE),
    ENTRY(ccmr_stack_print, CALL_STATUS),
    ENTRY(ccmr_status_name, CALL_NONE),
    ENTRY(ccmr_status_text, CALL_NONE),
    ENTRY(ccmr_stream_create, CALL_STATUS),
    ENTRY(ccmr_stream_from_protocol, CALL_PURE),
    ENTRY(ccmr_tracking_create, CALL_STATUS),
    ENTRY(ccmr_tracking_find, CALL_STATUS),
    ENTRY(ccmr_tracking_outstanding, CALL_STATUS),
    ENTRY(ccmr_statistics_create, CALL_STATUS),
    ENTRY(ccmr_statistics_push, CALL_STATUS),
    ENTRY(ccmr_statistics_pop, CALL_STATUS),
    ENTRY(ccmr_statistics_read, CALL_STATUS),
    ENTRY(ccmr_statistics_read_thread, CALL_STATUS),
    ENTRY(ccmr_stream_ordered_create, CALL_STATUS),
    ENTRY(ccmr_stream_register, CALL_STATUS),
    ENTRY(ccmr_stream_set_capturing, CALL_STATUS),
    ENTRY(ccmr_stream_synchronize, CALL_STATUS),
    ENTRY(ccmr_version, CALL_NONE),
    ENTRY(ccmr_version_text, CALL_NONE),
    ENTRY(ccmr_virtual_create, CALL_STATUS),
    ENTRY(ccmr_resource_deallocate, CALL_STATUS),
    ENTRY(ccmr_buffer_close, CALL_STATUS),
    ENTRY(ccmr_buffer_destroy, CALL_STATUS),
    ENTRY(ccmr_buffer_disown, CALL_STATUS),
    ENTRY(ccmr_stream_retire, CALL_STATUS),
    ENTRY(ccmr_stream_destroy, CALL_STATUS),
    {NULL, CALL_NONE, NULL},
};

int objects_make(objects *o, const char *log)
{
    char text[512];

    memset(o, 0, sizeof(*o));
    (void)snprintf(text, sizeof(text), "logging file=\"%s\" | host", log);
    if (ccmr_stream_create(0, CCMR_STREAM_FLAG_NON_BLOCKING, &o->stream) !=
            CCMR_SUCCESS ||
        ccmr_stack_create("device_pool own=yes", &o->pool) != CCMR_SUCCESS ||
        ccmr_stack_create("host", &o->host) != CCMR_SUCCESS ||
        ccmr_stack_create(text, &o->logging) != CCMR_SUCCESS ||
        ccmr_stack_create("statistics | tracking | host", &o->counted) !=
            CCMR_SUCCESS ||
        ccmr_stack_create("limiting bytes=1GiB | stream_ordered | "
                          "device_plain",
                          &o->stack) != CCMR_SUCCESS ||
        ccmr_buffer_create(o->pool, 4096, NULL, o->stream, &o->buffer) !=
            CCMR_SUCCESS ||
        ccmr_buffer_create(o->stack, 4096, NULL, o->stream, &o->other) !=
            CCMR_SUCCESS ||
        ccmr_resource_allocate(o->stack, 512, 0, o->stream, &o->block) !=
            CCMR_SUCCESS ||
        ccmr_stack_create("pool | device_plain", &o->pooled) != CCMR_SUCCESS ||
        ccmr_resource_allocate(o->pooled, 512, 0, o->stream,
                               &o->pooled_block) != CCMR_SUCCESS) {
        return -1;
    }
    return 0;
}

ccmr_status objects_drop(objects *o)
{
    ccmr_status first = CCMR_SUCCESS;
    ccmr_status status = CCMR_SUCCESS;

    if (o->block != NULL) {
        first =
            ccmr_resource_deallocate(o->stack, o->block, 512, 0, o->stream);
    }
    if (o->pooled_block != NULL) {
        status = ccmr_resource_deallocate(o->pooled, o->pooled_block, 512, 0,
                                          o->stream);
        first = first == CCMR_SUCCESS ? status : first;
    }
    status = ccmr_buffer_destroy(o->buffer);
    first = first == CCMR_SUCCESS ? status : first;
    status = ccmr_buffer_destroy(o->other);
    first = first == CCMR_SUCCESS ? status : first;
    status = ccmr_stream_destroy(o->stream);
    first = first == CCMR_SUCCESS ? status : first;
    ccmr_resource_release(o->pool);
    ccmr_resource_release(o->host);
    ccmr_resource_release(o->logging);
    ccmr_resource_release(o->counted);
    ccmr_resource_release(o->stack);
    ccmr_resource_release(o->pooled);
    return first;
}
