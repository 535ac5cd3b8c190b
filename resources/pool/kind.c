/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool: operations, options, creation. How it works: see pool.h and the
 * headers beside it, and doc/pool.md.
 */
#include <cucoremr/resources/pool.h>

#include <stdlib.h>

#include "lib/error.h"
#include "lib/process.h"
#include "lib/resource.h"
#include "lib/resource_object.h"
#include "lib/struct.h"
#include "lib/text.h"
#include "resources/common.h"
#include "resources/pool/pool.h"
#include "resources/pool/range.h"
#include "resources/registry.h"

#define MAX_ALIGNMENT ((size_t)2 << 20)

static _Atomic uint64_t next_serial = 1;

/* ---- operations ------------------------------------------------------------- */

static void pool_free(ccmr__pool *self)
{
    (void)pthread_mutex_destroy(&self->capturing);
    (void)pthread_mutex_destroy(&self->pinning);
    (void)pthread_mutex_destroy(&self->noting);
    (void)pthread_mutex_destroy(&self->lock);
    (void)pthread_mutex_destroy(&self->slow);
    (void)pthread_mutex_destroy(&self->thieves);
    free(self);
}

void ccmr__pool_finish_off(ccmr__pool *self)
{
    ccmr_resource *upstream = self->upstream;

    ccmr__pool_end(self);
    pool_free(self);
    ccmr_resource_release(upstream);
}

static void pool_destroy(void *object)
{
    ccmr__pool *self = object;

    ccmr__pool_sweep();
    if (ccmr__pool_captures_settle(self)) {
        ccmr__pool_linger(self);
    } else {
        ccmr__pool_finish_off(self);
    }
}

static ccmr_status pool_describe(void *object, ccmr_properties *properties)
{
    ccmr__pool *self = object;
    ccmr_status status = ccmr__describe_upstream(self->upstream, properties,
                                                 ccmr__kind_pool.name);

    if (status == CCMR_SUCCESS) {
        properties->device = self->device->ordinal;
        properties->max_alignment = MAX_ALIGNMENT;
        properties->free_may_block = 0;
        properties->free_stream = CCMR_FREE_ON_ALLOCATION_STREAM;
        properties->capture = self->options.reserve ? CCMR_CAPTURE_RESERVE
                                                    : CCMR_CAPTURE_REFUSED;
        if (!self->options.exported) {
            properties->handle_kinds = CCMR_HANDLE_NONE;
        }
        if (properties->host_accessible) {
            properties->access =
                self->host_access ? CCMR_ACCESS_HOST : CCMR_ACCESS_STREAM;
        }
    }
    return status;
}

static ccmr_status pool_upstream(void *object, size_t i,
                                 ccmr_resource **resource)
{
    ccmr__pool *self = object;

    if (i != 0) {
        return CCMR_ERROR_OUT_OF_RANGE;
    }
    *resource = self->upstream;
    return CCMR_SUCCESS;
}

/* ---- options ------------------------------------------------------------------ */

enum {
    OPTION_INITIAL,
    OPTION_HARD,
    OPTION_SOFT,
    OPTION_REUSE,
    OPTION_ACCESS,
    OPTION_HANDLE,
    OPTION_MOVE,
    OPTION_STREAMS,
    OPTION_EXPORT,
    OPTION_CAPTURE
};

static const ccmr_option pool_options[] = {
    [OPTION_INITIAL] = {"initial", CCMR_OPTION_BYTES, "0", "%",
                        "bytes reserved at creation; % is of the device"},
    [OPTION_HARD] = {"hard", CCMR_OPTION_BYTES, "0", "%",
                     "most bytes ever reserved, 0: no bound; % is of the "
                     "device"},
    [OPTION_SOFT] =
        {"soft", CCMR_OPTION_INTEGER, "0", NULL,
         "per cent (100 to 1000) of peak use that it grows to at once; "
         "0: 112; up to 105 it also caches few large blocks"},
    [OPTION_REUSE] = {"reuse", CCMR_OPTION_CHOICE, "follow", "follow|finished",
                      "other streams' memory: behind a wait on the device, or "
                      "only when finished"},
    [OPTION_ACCESS] = {"access", CCMR_OPTION_CHOICE, "upstream",
                       "upstream|host|stream",
                       "host-accessible memory changes hands when finished "
                       "(host) or in stream order"},
    [OPTION_HANDLE] = {"handle", CCMR_OPTION_BYTES, "0", NULL,
                       "over virtual only: largest piece of memory that "
                       "comes and goes alone, in a power of two pages; 0: up "
                       "to 64MiB, smaller in a small pool or budget"},
    [OPTION_MOVE] = {"move", CCMR_OPTION_CHOICE, "yes", "yes|no",
                     "over virtual: free memory moves to addresses where it "
                     "is needed"},
    [OPTION_STREAMS] = CCMR__OPTION_STREAMS,
    [OPTION_EXPORT] = {"export", CCMR_OPTION_CHOICE, "no", "no|handle",
                       "over virtual with export: a block is exported by the "
                       "handle it lies in, with all that is in there"},
    [OPTION_CAPTURE] = {"capture", CCMR_OPTION_CHOICE, "refuse",
                        "refuse|reserve",
                        "calls on capturing streams: refused, or served from "
                        "memory that is the graph's until it has gone"},
    {NULL, CCMR_OPTION_TEXT, NULL, NULL, NULL},
};

static const char *const reuse_names[] = {"follow", "finished"};
static const char *const move_names[] = {"yes", "no"};
static const char *const capture_names[] = {"refuse", "reserve"};
static const char *const export_names[] = {"no", "handle"};
static const char *const access_names[] = {"upstream", "host", "stream"};

static ccmr_status pool_option_get(void *object, const char *name, char *text,
                                   size_t capacity, size_t *length)
{
    ccmr__pool *self = object;
    ccmr__pool_options options;
    ccmr__text value;
    char words[32];
    size_t index;
    ccmr_status status = ccmr__option_find(&ccmr__kind_pool, name, &index);

    if (status != CCMR_SUCCESS) {
        return status;
    }
    (void)pthread_mutex_lock(&self->lock);
    options = self->options;
    (void)pthread_mutex_unlock(&self->lock);
    ccmr__text_init(&value, words, sizeof(words));
    switch (index) {
    case OPTION_INITIAL:
        ccmr__text_add_bytes(&value, options.initial);
        break;
    case OPTION_HARD:
        ccmr__text_add_bytes(
            &value, atomic_load_explicit(&self->hard, memory_order_relaxed));
        break;
    case OPTION_SOFT:
        ccmr__text_add(&value, "%u", options.soft);
        break;
    case OPTION_REUSE:
        ccmr__text_add(&value, "%s", reuse_names[options.follow ? 0 : 1]);
        break;
    case OPTION_HANDLE:
        ccmr__text_add_bytes(&value, options.handle);
        break;
    case OPTION_MOVE:
        ccmr__text_add(&value, "%s", move_names[options.move ? 0 : 1]);
        break;
    case OPTION_STREAMS:
        ccmr__text_add(&value, "%s", ccmr__streams_name(options.registered));
        break;
    case OPTION_CAPTURE:
        ccmr__text_add(&value, "%s", capture_names[options.reserve ? 1 : 0]);
        break;
    case OPTION_EXPORT:
        ccmr__text_add(&value, "%s", export_names[options.exported ? 1 : 0]);
        break;
    default:
        ccmr__text_add(&value, "%s", access_names[options.access]);
        break;
    }
    return ccmr__text_give(words, text, capacity, length);
}

/* A budget that not even the smallest piece of memory fits into would be one
 * under which nothing is ever allocated. */
static ccmr_status check_hard(const ccmr__pool *self, size_t hard)
{
    size_t least =
        self->range != NULL ? self->range->unit : CCMR__POOL_GRANULE;

    if (hard != 0 && hard < least) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "pool: hard=%zu is less than %zu, the least that "
                          "can be had of %s",
                          hard, least, ccmr_resource_name(self->upstream));
    }
    return CCMR_SUCCESS;
}

static ccmr_status pool_option_set(void *object, const char *name,
                                   const char *text)
{
    ccmr__pool *self = object;
    ccmr_option_value value;
    char message[128];
    size_t index;
    size_t hard;
    ccmr_status status = ccmr__option_find(&ccmr__kind_pool, name, &index);

    if (status != CCMR_SUCCESS) {
        return status;
    }
    if (index != OPTION_HARD) {
        return ccmr__fail(CCMR_ERROR_NOT_SUPPORTED,
                          "pool: %s is fixed at creation", name);
    }
    if (!ccmr__value_parse(&pool_options[index], text, &value, message,
                           sizeof(message))) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT, "%s", message);
    }
    hard = ccmr__value_bytes(&value, self->device->total_bytes);
    status = check_hard(self, hard);
    if (status == CCMR_SUCCESS) {
        atomic_store_explicit(&self->hard, hard, memory_order_relaxed);
    }
    return status;
}

/* ---- creation ------------------------------------------------------------------ */

static const ccmr_resource_ops pool_ops = {
    .size = sizeof(ccmr_resource_ops),
    .allocate = ccmr__pool_allocate,
    .deallocate = ccmr__pool_deallocate,
    .destroy = pool_destroy,
    .choose_free_stream = ccmr__choose_allocation_stream,
    .describe = pool_describe,
    .upstream = pool_upstream,
    .trim = ccmr__pool_trim,
    .stats = ccmr__pool_stats,
    .retire_stream = ccmr__pool_retire,
    .note_use = ccmr__pool_note_use,
    .hold_until_free = ccmr__pool_hold_until_free,
    .option_get = pool_option_get,
    .option_set = pool_option_set,
    .would_fit = ccmr__pool_would_fit,
    .audit = ccmr__pool_audit,
    .export_handle = ccmr__pool_export_handle,
    .pin = ccmr__pool_pin_memory,
    .unpin = ccmr__pool_unpin_memory,
    .export_block = ccmr__pool_export_block,
    .dump = ccmr__pool_dump,
};

static int init_locks(ccmr__pool *self)
{
    if (pthread_mutex_init(&self->thieves, NULL) != 0) {
        return -1;
    }
    if (pthread_mutex_init(&self->slow, NULL) != 0) {
        goto err_thieves;
    }
    if (pthread_mutex_init(&self->lock, NULL) != 0) {
        goto err_slow;
    }
    if (pthread_mutex_init(&self->noting, NULL) != 0) {
        goto err_lock;
    }
    if (pthread_mutex_init(&self->pinning, NULL) != 0) {
        goto err_noting;
    }
    if (pthread_mutex_init(&self->capturing, NULL) != 0) {
        goto err_pinning;
    }
    return 0;

err_pinning:
    (void)pthread_mutex_destroy(&self->pinning);
err_noting:
    (void)pthread_mutex_destroy(&self->noting);
err_lock:
    (void)pthread_mutex_destroy(&self->lock);
err_slow:
    (void)pthread_mutex_destroy(&self->slow);
err_thieves:
    (void)pthread_mutex_destroy(&self->thieves);
    return -1;
}

static void set_up(ccmr__pool *self, ccmr_resource *upstream,
                   ccmr__device *device, const ccmr_properties *properties,
                   const ccmr__pool_options *options)
{
    self->serial =
        atomic_fetch_add_explicit(&next_serial, 1, memory_order_relaxed);
    self->upstream = upstream;
    self->device = device;
    self->options = *options;
    self->hard = options->hard;
    self->host_access = properties->host_accessible != 0 &&
                        (options->access == CCMR_POOL_ACCESS_UPSTREAM
                             ? properties->access == CCMR_ACCESS_HOST
                             : options->access == CCMR_POOL_ACCESS_HOST);
    self->stream_ordered =
        properties->free_stream == CCMR_FREE_ON_ALLOCATION_STREAM ||
        properties->free_stream == CCMR_FREE_ON_REQUESTED_STREAM;
    self->upstream_alignment = properties->max_alignment;
    self->uncovered_most = (size_t)8 << 20;
}

static ccmr_status make(ccmr_resource *upstream, ccmr__device *device,
                        const ccmr__pool_options *options, ccmr__pool **made)
{
    ccmr_properties properties = {.size = sizeof(properties)};
    ccmr_status status = ccmr_resource_describe(upstream, &properties);
    ccmr__pool *self;

    if (status != CCMR_SUCCESS) {
        return status;
    }
    if (options->access != CCMR_POOL_ACCESS_UPSTREAM &&
        !properties.host_accessible) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "pool: access=%s: the host cannot touch memory of "
                          "%s",
                          access_names[options->access],
                          ccmr_resource_name(upstream));
    }
    self = calloc(1, sizeof(*self));
    if (self == NULL) {
        goto err_memory;
    }
    set_up(self, upstream, device, &properties, options);
    if (init_locks(self) != 0) {
        goto err_self;
    }
    self->common = ccmr__pool_lane_make(self);
    if (self->common == NULL) {
        goto err_locks;
    }
    if (properties.granularity != 0) {
        ccmr__pool_range_make(self, properties.granularity);
    }
    *made = self;
    return CCMR_SUCCESS;

err_locks:
    pool_free(self);
    goto err_memory;
err_self:
    free(self);
err_memory:
    return ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY, "no memory for a pool");
}

static ccmr_status check_export(const ccmr__pool *self)
{
    ccmr_properties properties = {.size = sizeof(properties)};
    const char *below = ccmr_resource_name(self->upstream);

    if (self->range == NULL || self->upstream->ops.export_handle == NULL) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "pool: export=handle: %s directly below has no "
                          "address range to export handles of",
                          below);
    }
    if (ccmr_resource_describe(self->upstream, &properties) != CCMR_SUCCESS ||
        properties.handle_kinds == CCMR_HANDLE_NONE) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "pool: export=handle: %s directly below was made "
                          "without handles that can be exported: its option "
                          "export asks for them, as in %s export=posix_fd",
                          below, below);
    }
    return CCMR_SUCCESS;
}

/* What depends on where the memory comes from: no option is without effect. */
static ccmr_status __attribute__((noinline)) check_made(const ccmr__pool *self)
{
    const ccmr__pool_options *options = &self->options;
    ccmr_status status;

    if (options->handle != 0 && self->range == NULL) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "pool: handle=%zu: there is no address range of %s "
                          "to work on; memory of it comes in segments",
                          options->handle, ccmr_resource_name(self->upstream));
    }
    if (!options->move && self->range == NULL) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "pool: move=no: there is no address range of %s to "
                          "work on, and nothing moves in segments",
                          ccmr_resource_name(self->upstream));
    }
    if (options->exported) {
        status = check_export(self);
        if (status != CCMR_SUCCESS) {
            return status;
        }
    }
    if (options->reserve && self->host_access) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "pool: capture=reserve: with access=host memory is "
                          "handed out when it is finished, which a graph "
                          "never is");
    }
    return check_hard(self, options->hard);
}

/* In whole granules: more than was asked for, unless the budget is less. */
static size_t initial_of(const ccmr__pool_options *options)
{
    size_t odd = options->initial % CCMR__POOL_GRANULE;
    size_t more = odd == 0 ? 0 : CCMR__POOL_GRANULE - odd;

    return options->hard != 0 && more > options->hard - options->initial
               ? options->initial - odd
               : options->initial + more;
}

static ccmr_status create(ccmr_resource *upstream, ccmr__device *device,
                          const ccmr__pool_options *options,
                          ccmr_resource **resource)
{
    ccmr__pool *self = NULL;
    size_t initial;
    ccmr_status status;

    if (options->hard != 0 && options->initial > options->hard) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "pool: initial=%zu is more than hard=%zu",
                          options->initial, options->hard);
    }
    if (options->initial > CCMR__POOL_MOST) {
        return ccmr__fail(CCMR_ERROR_INVALID_SIZE,
                          "pool: initial=%zu is more than a pool can have",
                          options->initial);
    }
    if (options->soft != 0 && (options->soft < 100 || options->soft > 1000)) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "pool: soft=%u: a percentage of 100 to 1000 is "
                          "needed",
                          options->soft);
    }
    ccmr__pool_sweep();
    initial = initial_of(options);
    status = make(upstream, device, options, &self);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    (void)ccmr_resource_retain(upstream);
    ccmr__pool_list_add(self);
    status = check_made(self);
    if (status == CCMR_SUCCESS && options->reserve) {
        status = ccmr__pool_captures_begin(self);
    }
    if (status == CCMR_SUCCESS && initial != 0) {
        status = ccmr__pool_begin(self, initial);
    }
    if (status == CCMR_SUCCESS) {
        status = ccmr_resource_create(&pool_ops, self, resource);
    }
    if (status == CCMR_SUCCESS) {
        ccmr__resource_arm_by(*resource, ccmr__pool_arm);
    } else {
        ccmr_error_detail told = *ccmr__error();

        pool_destroy(self);
        *ccmr__error() = told;
    }
    return status;
}

static ccmr_status check_flags(const ccmr_pool_options *known)
{
    const ccmr__flag flags[] = {
        {"streams_registered", known->streams_registered},
        {"export_handles", known->export_handles},
        {"capture_reserve", known->capture_reserve},
    };

    return ccmr__struct_flags("ccmr_pool_options", flags,
                              sizeof(flags) / sizeof(flags[0]));
}

static ccmr_status read_options(const ccmr_pool_options *from,
                                ccmr__pool_options *options)
{
    ccmr_pool_options known = {.size = sizeof(known)};
    ccmr_status status =
        from == NULL ? CCMR_SUCCESS
                     : ccmr__struct_read(&known, sizeof(known), from,
                                         sizeof(known), "ccmr_pool_options");

    if (status != CCMR_SUCCESS) {
        return status;
    }
    if ((unsigned)known.reuse > CCMR_POOL_REUSE_FINISHED ||
        (unsigned)known.access > CCMR_POOL_ACCESS_STREAM ||
        (unsigned)known.move > CCMR_POOL_MOVE_NO) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "ccmr_pool_create: %s is none of its values",
                          (unsigned)known.reuse > CCMR_POOL_REUSE_FINISHED
                              ? "options.reuse"
                          : (unsigned)known.access > CCMR_POOL_ACCESS_STREAM
                              ? "options.access"
                              : "options.move");
    }
    status = check_flags(&known);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    *options = (ccmr__pool_options){
        .initial = known.initial,
        .hard = known.hard,
        .soft = known.soft,
        .follow = known.reuse == CCMR_POOL_REUSE_FOLLOW,
        .access = (int)known.access,
        .handle = known.handle,
        .move = known.move == CCMR_POOL_MOVE_YES,
        .registered = known.streams_registered != 0,
        .exported = known.export_handles != 0,
        .reserve = known.capture_reserve != 0,
    };
    return CCMR_SUCCESS;
}

ccmr_status ccmr_pool_create(ccmr_resource *upstream,
                             const ccmr_pool_options *options,
                             ccmr_resource **resource)
{
    ccmr__pool_options known;
    ccmr__device *device;
    ccmr_status status = ccmr__process_check();

    if (status == CCMR_SUCCESS && (upstream == NULL || resource == NULL)) {
        status = ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                            "ccmr_pool_create: %s is NULL",
                            upstream == NULL ? "upstream" : "resource");
    }
    if (status == CCMR_SUCCESS) {
        status = read_options(options, &known);
    }
    if (status == CCMR_SUCCESS) {
        status = ccmr__upstream_device(upstream, &device);
    }
    if (status != CCMR_SUCCESS) {
        return status;
    }
    return create(upstream, device, &known, resource);
}

static ccmr_status create_from_text(const ccmr_kind *kind,
                                    const ccmr_option_value *values,
                                    ccmr_resource *const *upstreams,
                                    size_t count, ccmr_resource **resource)
{
    ccmr__pool_options options;
    ccmr__device *device;
    ccmr_status status = ccmr__upstream_device(upstreams[0], &device);
    int64_t soft = values[OPTION_SOFT].integer;

    (void)kind;
    (void)count;
    if (status != CCMR_SUCCESS) {
        return status;
    }
    if (soft < 0 || soft > 1000) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "soft=%s: a percentage of 100 to 1000 is needed",
                          values[OPTION_SOFT].text);
    }
    options = (ccmr__pool_options){
        .initial =
            ccmr__value_bytes(&values[OPTION_INITIAL], device->total_bytes),
        .hard = ccmr__value_bytes(&values[OPTION_HARD], device->total_bytes),
        .soft = (unsigned)soft,
        .follow = values[OPTION_REUSE].integer == 0,
        .access = (int)values[OPTION_ACCESS].integer,
        .handle = values[OPTION_HANDLE].number,
        .move = values[OPTION_MOVE].integer == 0,
        .registered = values[OPTION_STREAMS].integer != 0,
        .exported = values[OPTION_EXPORT].integer != 0,
        .reserve = values[OPTION_CAPTURE].integer != 0,
    };
    return create(upstreams[0], device, &options, resource);
}

const ccmr_kind ccmr__kind_pool = {
    .size = sizeof(ccmr_kind),
    .name = "pool",
    .help = "a pool for any number of threads and streams over any upstream",
    .options = pool_options,
    .min_upstreams = 1,
    .max_upstreams = 1,
    .create = create_from_text,
};
