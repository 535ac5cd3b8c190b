/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logging: a row for each allocation and free.
 *
 * An allocation is logged after the upstream gave the block and before the
 * caller has it, a free before the upstream gets it: so the rows of one
 * address are in true order, whichever threads used it. A free that the
 * upstream refuses has its row by then; an `allocate` row of the same block
 * follows, and the log balances again: nobody can have had the block in
 * between. A block that was allocated before the log began is freed like any
 * other.
 *
 * Streams: the upstream's rule. Threads: any; see log.h.
 */
#include <cucoremr/resources/logging.h>

#include <stdlib.h>
#include <string.h>

#include "lib/error.h"
#include "lib/resource.h"
#include "lib/struct.h"
#include "lib/text.h"
#include "lib/upstream.h"
#include "resources/common.h"
#include "resources/logging/log.h"
#include "resources/registry.h"

#define ALL_COLUMNS                                                           \
    (CCMR_LOG_DEVICE | CCMR_LOG_ALIGNMENT | CCMR_LOG_CHOSEN | CCMR_LOG_LATENCY)

typedef struct logging {
    ccmr_resource *upstream; /* first: see common.h */
    ccmr__log *log;
    unsigned columns;
    int device;
} logging;

/* The stream that a free would use; CCMR_STREAM_UNSET if that is not known. */
static ccmr_stream choose(logging *self, const ccmr__row *row,
                          ccmr_stream allocation_stream, ccmr_stream requested)
{
    const ccmr_block block = {
        .size = sizeof(block),
        .ptr = (void *)(uintptr_t)row->ptr,
        .bytes = row->bytes,
        .alignment = row->alignment,
        .allocation_stream = allocation_stream,
    };
    ccmr_error_detail before = *ccmr__error();
    ccmr_stream chosen;

    if (ccmr_resource_choose_free_stream(self->upstream, &block, requested,
                                         &chosen) != CCMR_SUCCESS) {
        /* Nothing has failed that the caller should hear of. */
        *ccmr__error() = before;
        return CCMR_STREAM_UNSET;
    }
    return chosen;
}

static void write_row(logging *self, ccmr__row *row)
{
    ccmr__row_text text;

    row->columns = self->columns;
    row->device = self->device;
    ccmr__row_format(&text, row);
    ccmr__log_append(self->log, &text);
}

static uint64_t clock_start(const logging *self)
{
    return (self->columns & CCMR_LOG_LATENCY) != 0 ? ccmr__clock_now() : 0;
}

static void log_allocation(logging *self, ccmr_status status, void *ptr,
                           size_t bytes, size_t alignment, ccmr_stream stream,
                           uint64_t start)
{
    ccmr__row row = {
        .action = CCMR__ROW_ALLOCATE,
        .ptr = ptr,
        .bytes = bytes,
        .stream = stream,
        .alignment = alignment,
        .chosen = CCMR_STREAM_UNSET,
    };

    if ((self->columns & CCMR_LOG_LATENCY) != 0) {
        row.latency = ccmr__clock_now() - start;
    }
    if (status != CCMR_SUCCESS) {
        row.action = CCMR__ROW_FAILURE;
    } else if ((self->columns & CCMR_LOG_CHOSEN) != 0) {
        row.chosen = choose(self, &row, stream, CCMR_STREAM_UNSET);
    }
    write_row(self, &row);
}

static ccmr_status logging_allocate(void *object, size_t bytes,
                                    size_t alignment, ccmr_stream stream,
                                    void **ptr)
{
    logging *self = object;
    uint64_t start = clock_start(self);
    void *block = NULL;
    ccmr_status status = ccmr__allocate_checked(self->upstream, bytes,
                                                alignment, stream, &block);

    log_allocation(self, status, block, bytes, alignment, stream, start);
    if (status == CCMR_SUCCESS) {
        *ptr = block;
    }
    return status;
}

static ccmr_status logging_deallocate(void *object, void *ptr, size_t bytes,
                                      size_t alignment, ccmr_stream stream)
{
    logging *self = object;
    uint64_t start = clock_start(self);
    ccmr__row row = {
        .action = CCMR__ROW_FREE,
        .ptr = ptr,
        .bytes = bytes,
        .stream = stream,
        .alignment = alignment,
        .chosen = CCMR_STREAM_UNSET,
        .latency = UINT64_MAX, /* not known yet */
    };
    ccmr_status status;

    if ((self->columns & CCMR_LOG_CHOSEN) != 0) {
        row.chosen = choose(self, &row, CCMR_STREAM_UNSET, stream);
    }
    write_row(self, &row);
    status = ccmr__deallocate_checked(self->upstream, ptr, bytes, alignment,
                                      stream);
    if (__builtin_expect(status != CCMR_SUCCESS, 0)) {
        log_allocation(self, CCMR_SUCCESS, ptr, bytes, alignment, stream,
                       start);
    }
    return status;
}

static void logging_destroy(void *object)
{
    logging *self = object;

    ccmr__log_close(self->log);
    ccmr_resource_release(self->upstream);
    free(self);
}

static ccmr_status logging_describe(void *object, ccmr_properties *properties)
{
    logging *self = object;

    return ccmr__describe_upstream(self->upstream, properties,
                                   ccmr__kind_logging.name);
}

static ccmr_status logging_stats(void *object, ccmr_stats *stats)
{
    (void)object;
    stats->reserved_bytes = stats->live_bytes;
    stats->pending_bytes = 0;
    stats->exact |= CCMR_STAT_RESERVED_BYTES | CCMR_STAT_PENDING_BYTES;
    return CCMR_SUCCESS;
}

/* ---- options ----------------------------------------------------------- */

enum { OPTION_FILE, OPTION_FLUSH, OPTION_COLUMNS };

#define COLUMN_NAMES "device|alignment|chosen|latency"

static const ccmr_option logging_options[] = {
    [OPTION_FILE] = {"file", CCMR_OPTION_TEXT, NULL, NULL,
                     "where the rows go; truncated"},
    [OPTION_FLUSH] = {"flush", CCMR_OPTION_BOOLEAN, "no", NULL,
                      "write each row before its call returns"},
    [OPTION_COLUMNS] = {"columns", CCMR_OPTION_FLAGS, "none", COLUMN_NAMES,
                        "columns after RMM's six"},
    {NULL, CCMR_OPTION_TEXT, NULL, NULL, NULL},
};

static ccmr_status logging_option_get(void *object, const char *name,
                                      char *text, size_t capacity,
                                      size_t *length)
{
    logging *self = object;
    ccmr__text value;
    char words[64];
    size_t index;
    ccmr_status status = ccmr__option_find(&ccmr__kind_logging, name, &index);

    if (status != CCMR_SUCCESS) {
        return status;
    }
    ccmr__text_init(&value, words, sizeof(words));
    switch (index) {
    case OPTION_FILE:
        if (self->log->path == NULL) {
            return ccmr__fail(CCMR_ERROR_NOT_SUPPORTED,
                              "logging: the rows go to a sink, not to a file");
        }
        return ccmr__text_give(self->log->path, text, capacity, length);
    case OPTION_FLUSH:
        ccmr__text_add(&value, "%s", self->log->flush ? "yes" : "no");
        break;
    default:
        ccmr__text_add_flags(&value, COLUMN_NAMES, self->columns);
        break;
    }
    return ccmr__text_give(words, text, capacity, length);
}

/* ---- creation ----------------------------------------------------------- */

static const ccmr_resource_ops logging_ops = {
    .size = sizeof(ccmr_resource_ops),
    .allocate = logging_allocate,
    .deallocate = logging_deallocate,
    .destroy = logging_destroy,
    .describe = logging_describe,
    .upstream = ccmr__adaptor_upstream,
    CCMR__ADAPTOR_USES,
    CCMR__ADAPTOR_PLACES,
    .stats = logging_stats,
    .option_get = logging_option_get,
    .would_fit = ccmr__adaptor_would_fit,
};

static ccmr_status read_options(const ccmr_logging_options *from,
                                ccmr_logging_options *options)
{
    ccmr_status status;

    *options = (ccmr_logging_options){.size = sizeof(*options)};
    status = ccmr__struct_read(options, sizeof(*options), from,
                               sizeof(*options), "ccmr_logging_options");
    if (status == CCMR_SUCCESS) {
        const ccmr__flag flag = {"flush", options->flush};

        status = ccmr__struct_flags("ccmr_logging_options", &flag, 1);
    }
    if (status != CCMR_SUCCESS) {
        return status;
    }
    if ((options->file == NULL) == (options->sink == NULL)) {
        return ccmr__fail(
            CCMR_ERROR_INVALID_ARGUMENT, "ccmr_logging_options: %s",
            options->file == NULL ? "neither file nor sink is given"
                                  : "both file and sink are given");
    }
    if ((options->columns & ~ALL_COLUMNS) != 0) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "ccmr_logging_options: unknown columns 0x%x",
                          options->columns & ~ALL_COLUMNS);
    }
    return CCMR_SUCCESS;
}

ccmr_status ccmr_logging_create(ccmr_resource *upstream,
                                const ccmr_logging_options *options,
                                ccmr_resource **resource)
{
    ccmr_logging_options known;
    ccmr_status status = ccmr__process_check();
    logging *self;

    if (status == CCMR_SUCCESS &&
        (upstream == NULL || options == NULL || resource == NULL)) {
        status = ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                            "ccmr_logging_create: %s is NULL",
                            upstream == NULL  ? "upstream"
                            : options == NULL ? "options"
                                              : "resource");
    }
    if (status == CCMR_SUCCESS) {
        status = read_options(options, &known);
    }
    if (status != CCMR_SUCCESS) {
        return status;
    }
    self = malloc(sizeof(*self));
    if (self == NULL) {
        return ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                          "no memory for a logging resource");
    }
    self->upstream = upstream;
    self->columns = known.columns;
    self->device = ccmr__resource_device(upstream);
    status = ccmr__log_open(&known, &self->log);
    if (status != CCMR_SUCCESS) {
        goto err_free;
    }
    status = ccmr_resource_create(&logging_ops, self, resource);
    if (status != CCMR_SUCCESS) {
        goto err_log;
    }
    (void)ccmr_resource_retain(upstream);
    return CCMR_SUCCESS;

err_log:
    ccmr__log_close(self->log);
err_free:
    free(self);
    return status;
}

ccmr_status ccmr_logging_flush(ccmr_resource *resource)
{
    ccmr_status status = ccmr__process_check();

    if (status != CCMR_SUCCESS) {
        return status;
    }
    if (!ccmr__resource_is(resource, &logging_ops)) {
        return ccmr__fail(
            CCMR_ERROR_INVALID_ARGUMENT, "ccmr_logging_flush: %s%s",
            resource == NULL ? "resource is NULL" : "not a logging resource: ",
            resource == NULL ? "" : ccmr_resource_name(resource));
    }
    status = ccmr__log_flush(((logging *)ccmr__resource_self(resource))->log);
    if (status != CCMR_SUCCESS) {
        ccmr__error_name_resource(ccmr__kind_logging.name);
    }
    return status;
}

static ccmr_status create_from_text(const ccmr_kind *kind,
                                    const ccmr_option_value *values,
                                    ccmr_resource *const *upstreams,
                                    size_t count, ccmr_resource **resource)
{
    const ccmr_logging_options options = {
        .size = sizeof(options),
        .file = values[OPTION_FILE].text,
        .flush = values[OPTION_FLUSH].integer != 0,
        .columns = (unsigned)values[OPTION_COLUMNS].number,
    };

    (void)kind;
    (void)count;
    return ccmr_logging_create(upstreams[0], &options, resource);
}

const ccmr_kind ccmr__kind_logging = {
    .size = sizeof(ccmr_kind),
    .name = "logging",
    .help = "a row for each allocation and free, as RMM's CSV",
    .options = logging_options,
    .min_upstreams = 1,
    .max_upstreams = 1,
    .create = create_from_text,
};
