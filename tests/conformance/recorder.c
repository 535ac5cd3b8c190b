/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorder: passes everything on and remembers each block, so that what an
 * adaptor above gives back can be compared with what it was given, and what
 * the library promises to an implementer can be checked.
 *
 *   recorder -> buckets[] -> entry -> entry        one lock a recorder
 *
 * Entries are taken off before upstream gets the block and put back if it
 * refuses: the next owner of the address may be faster than we are.
 */
#define CONFORMANCE_PART_OF_STACK
#include "tests/conformance/conformance.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 257

typedef struct entry {
    struct entry *next;
    void *ptr;
    size_t bytes;
    size_t alignment;
} entry;

typedef struct recorder {
    pthread_mutex_t lock;
    ccmr_resource *upstream;
    size_t max_alignment;
    entry *buckets[BUCKETS];
} recorder;

static atomic_long made, destroyed, allocations, deallocations, calls, live,
    violations;
static _Atomic(ccmr_stream) last_allocate, last_deallocate;
static pthread_mutex_t complaint_lock = PTHREAD_MUTEX_INITIALIZER;
static char complaint[256];

__attribute__((format(printf, 1, 2))) static void complain(const char *format,
                                                           ...)
{
    va_list args;

    atomic_fetch_add(&violations, 1);
    pthread_mutex_lock(&complaint_lock);
    if (complaint[0] == '\0') {
        va_start(args, format);
        (void)vsnprintf(complaint, sizeof(complaint), format, args);
        va_end(args);
    }
    pthread_mutex_unlock(&complaint_lock);
}

static entry **bucket_of(recorder *r, const void *ptr)
{
    return &r->buckets[((uintptr_t)ptr >> 4) % BUCKETS];
}

static void put_in(recorder *r, entry *e)
{
    entry **bucket = bucket_of(r, e->ptr);
    entry *other;

    pthread_mutex_lock(&r->lock);
    for (other = *bucket; other != NULL; other = other->next) {
        if (other->ptr == e->ptr) {
            complain("upstream gave %p, which is live", e->ptr);
        }
    }
    e->next = *bucket;
    *bucket = e;
    pthread_mutex_unlock(&r->lock);
}

static entry *take_out(recorder *r, const void *ptr)
{
    entry **link;
    entry *found = NULL;

    pthread_mutex_lock(&r->lock);
    for (link = bucket_of(r, ptr); *link != NULL; link = &(*link)->next) {
        if ((*link)->ptr == ptr) {
            found = *link;
            *link = found->next;
            break;
        }
    }
    pthread_mutex_unlock(&r->lock);
    return found;
}

/* What the library promises of the arguments of an operation. */
static void judge(const recorder *r, const char *op, size_t bytes,
                  size_t alignment, ccmr_stream stream)
{
    if (bytes == 0 || bytes > PTRDIFF_MAX) {
        complain("%s of %zu bytes", op, bytes);
    }
    if (alignment == 0 || (alignment & (alignment - 1)) != 0 ||
        alignment > r->max_alignment) {
        complain("%s with alignment %zu", op, alignment);
    }
    if (stream == NULL || stream == CCMR_STREAM_UNSET) {
        complain("%s with stream %p", op, (void *)stream);
    }
}

static ccmr_status recorder_allocate(void *self, size_t bytes,
                                     size_t alignment, ccmr_stream stream,
                                     void **ptr)
{
    recorder *r = self;
    entry *e = malloc(sizeof(*e));
    void *given = NULL;
    ccmr_status status;

    atomic_fetch_add(&calls, 1);
    atomic_store(&last_allocate, stream);
    judge(r, "allocate", bytes, alignment, stream);
    if (stream == CCMR_STREAM_READY) {
        complain("allocate with CCMR_STREAM_READY");
    }
    if (e == NULL) {
        return ccmr_error_set(CCMR_ERROR_OUT_OF_HOST_MEMORY, bytes, NULL);
    }
    status =
        ccmr_resource_allocate(r->upstream, bytes, alignment, stream, &given);
    if (status != CCMR_SUCCESS) {
        free(e);
        return status;
    }
    if (given == NULL || ((uintptr_t)given & (alignment - 1)) != 0) {
        complain("upstream gave %p for alignment %zu", given, alignment);
    }
    *e = (entry){NULL, given, bytes, alignment};
    put_in(r, e);
    atomic_fetch_add(&allocations, 1);
    atomic_fetch_add(&live, 1);
    *ptr = given;
    return CCMR_SUCCESS;
}

static ccmr_status recorder_deallocate(void *self, void *ptr, size_t bytes,
                                       size_t alignment, ccmr_stream stream)
{
    recorder *r = self;
    entry *e;
    ccmr_status status;

    atomic_fetch_add(&calls, 1);
    atomic_store(&last_deallocate, stream);
    judge(r, "deallocate", bytes, alignment, stream);
    e = take_out(r, ptr);
    if (e == NULL) {
        /* A refusal that only the upstream can decide: pass it on. */
        status = ccmr_resource_deallocate(r->upstream, ptr, bytes, alignment,
                                          stream);
        if (status == CCMR_SUCCESS) {
            complain("deallocate of %p, which is not live", ptr);
        }
        return status;
    }
    if (e->bytes != bytes || e->alignment != alignment) {
        complain("%zu bytes of alignment %zu came back as %zu of %zu",
                 e->bytes, e->alignment, bytes, alignment);
    }
    status =
        ccmr_resource_deallocate(r->upstream, ptr, bytes, alignment, stream);
    if (status != CCMR_SUCCESS) {
        put_in(r, e);
        return status;
    }
    free(e);
    atomic_fetch_add(&deallocations, 1);
    atomic_fetch_sub(&live, 1);
    return CCMR_SUCCESS;
}

static void recorder_destroy(void *self)
{
    recorder *r = self;
    size_t i;

    for (i = 0; i < BUCKETS; i++) {
        while (r->buckets[i] != NULL) {
            entry *e = r->buckets[i];

            complain("destroyed with %p of %zu bytes live", e->ptr, e->bytes);
            r->buckets[i] = e->next;
            free(e);
        }
    }
    pthread_mutex_destroy(&r->lock);
    ccmr_resource_release(r->upstream);
    free(r);
    atomic_fetch_add(&destroyed, 1);
}

static ccmr_status recorder_describe(void *self, ccmr_properties *properties)
{
    recorder *r = self;
    size_t size = properties->size;
    ccmr_properties of_upstream;
    ccmr_status status;

    of_upstream.size = sizeof(of_upstream);
    status = ccmr_resource_describe(r->upstream, &of_upstream);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    of_upstream.size = size;
    of_upstream.name = "recorder";
    memcpy(properties, &of_upstream,
           size < sizeof(of_upstream) ? size : sizeof(of_upstream));
    return CCMR_SUCCESS;
}

static ccmr_status recorder_upstream(void *self, size_t i,
                                     ccmr_resource **resource)
{
    recorder *r = self;

    if (i != 0) {
        return CCMR_ERROR_OUT_OF_RANGE;
    }
    *resource = r->upstream;
    return CCMR_SUCCESS;
}

/* Of the optional operations only the one that shows the upstream: the rest
   is the library's to pass on. */
static const ccmr_resource_ops recorder_ops = {
    .size = sizeof(ccmr_resource_ops),
    .allocate = recorder_allocate,
    .deallocate = recorder_deallocate,
    .destroy = recorder_destroy,
    .describe = recorder_describe,
    .upstream = recorder_upstream,
};

static ccmr_status recorder_create(const ccmr_kind *kind,
                                   const ccmr_option_value *values,
                                   ccmr_resource *const *upstreams,
                                   size_t count, ccmr_resource **resource)
{
    recorder *r = calloc(1, sizeof(*r));
    ccmr_properties properties;
    ccmr_status status;

    (void)kind;
    (void)values;
    (void)count;
    if (r == NULL) {
        return ccmr_error_set(CCMR_ERROR_OUT_OF_HOST_MEMORY, sizeof(*r), NULL);
    }
    properties.size = sizeof(properties);
    status = ccmr_resource_describe(upstreams[0], &properties);
    if (status != CCMR_SUCCESS) {
        free(r);
        return status;
    }
    (void)pthread_mutex_init(&r->lock, NULL);
    r->upstream = upstreams[0];
    r->max_alignment = properties.max_alignment;
    status = ccmr_resource_create(&recorder_ops, r, resource);
    if (status != CCMR_SUCCESS) {
        pthread_mutex_destroy(&r->lock);
        free(r);
        return status;
    }
    (void)ccmr_resource_retain(r->upstream);
    atomic_fetch_add(&made, 1);
    return CCMR_SUCCESS;
}

static const ccmr_option recorder_options[] = {
    {NULL, CCMR_OPTION_TEXT, NULL, NULL, NULL}};

static const ccmr_kind recorder_kind = {
    .size = sizeof(ccmr_kind),
    .name = "recorder",
    .help = "remembers what passes and compares what comes back",
    .options = recorder_options,
    .min_upstreams = 1,
    .max_upstreams = 1,
    .create = recorder_create,
};

ccmr_status recorder_register(void)
{
    return ccmr_kind_register(&recorder_kind);
}

void recorder_reset(void)
{
    atomic_store(&made, 0);
    atomic_store(&destroyed, 0);
    atomic_store(&allocations, 0);
    atomic_store(&deallocations, 0);
    atomic_store(&calls, 0);
    atomic_store(&live, 0);
    atomic_store(&violations, 0);
    complaint[0] = '\0';
}

recorder_sums recorder_read(void)
{
    recorder_sums sums;

    sums.made = atomic_load(&made);
    sums.destroyed = atomic_load(&destroyed);
    sums.allocations = atomic_load(&allocations);
    sums.deallocations = atomic_load(&deallocations);
    sums.calls = atomic_load(&calls);
    sums.live = atomic_load(&live);
    sums.violations = atomic_load(&violations);
    return sums;
}

const char *recorder_complaint(void)
{
    return complaint;
}

ccmr_stream recorder_last_allocate(void)
{
    return atomic_load(&last_allocate);
}

ccmr_stream recorder_last_deallocate(void)
{
    return atomic_load(&last_deallocate);
}
