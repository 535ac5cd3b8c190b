/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The subpool's operations. Whoever takes a free block waits for all that is
 * not its own. See pool_books.h for what is kept.
 */
#include "tests/generator/broken_pool.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/generator/pool_books.h"

const char *pool_fault_name(unsigned fault)
{
    static const char *const names[] = {
#define POOL_FAULT_NAME(name, text) #name,
        POOL_FAULT_MAP(POOL_FAULT_NAME)
#undef POOL_FAULT_NAME
    };

    return names[fault];
}

const char *pool_fault_text(unsigned fault)
{
    static const char *const texts[] = {
#define POOL_FAULT_TEXT(name, text) text,
        POOL_FAULT_MAP(POOL_FAULT_TEXT)
#undef POOL_FAULT_TEXT
    };

    return texts[fault];
}

/* ---- allocate ------------------------------------------------------------------------------ */

static size_t units(const pool *self, size_t bytes)
{
    if (self->fault == POOL_FAULT_size && bytes > 4 * UNIT) {
        return bytes / UNIT * UNIT;
    }
    return (bytes + UNIT - 1) / UNIT * UNIT;
}

/* Under the lock, in a scope. */
static ccmr_status hand_out(pool *self, extent *e, size_t bytes,
                            const caller *c)
{
    mark *spare = mark_new();
    ccmr_status status;

    if (spare == NULL) {
        return pool_no_memory(bytes);
    }
    status = extent_split(self, e, bytes, c);
    if (status == CCMR_SUCCESS) {
        status = self->host_access && self->fault != POOL_FAULT_host
                     ? waits_for_host(&e->after, self->fault)
                     : waits_for_stream(&e->after, c);
    }
    if (status != CCMR_SUCCESS) {
        mark_drop(spare);
        return status;
    }
    waits_clear(&e->after);
    e->live = 1;
    e->spare = spare;
    e->from = *c;
    return CCMR_SUCCESS;
}

/* A free block, if there is one that fits. */
static ccmr_status take(pool *self, size_t bytes, const caller *c,
                        extent **taken)
{
    ccmr_status status = CCMR_SUCCESS;
    extent *e;
    scope sc;

    *taken = NULL;
    status = scope_enter(&sc, self->context, self->fault, 0);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    (void)pthread_mutex_lock(&self->lock);
    for (e = atomic_exchange(&self->inbox, NULL); e != NULL; e = e->below) {
        e->gone = 0;
    }
    e = extent_find_free(self, bytes);
    if (e != NULL) {
        status = hand_out(self, e, bytes, c);
        *taken = status == CCMR_SUCCESS ? e : NULL;
    }
    (void)pthread_mutex_unlock(&self->lock);
    scope_leave(&sc);
    return status;
}

static ccmr_status find_caller(pool *self, ccmr_stream stream, caller *c)
{
    scope sc;
    ccmr_status status = scope_enter(&sc, self->context, self->fault, 0);

    if (status == CCMR_SUCCESS) {
        status = caller_find(c, stream, self->device, self->fault);
        scope_leave(&sc);
    }
    return status;
}

static ccmr_status pool_allocate(void *object, size_t bytes, size_t alignment,
                                 ccmr_stream stream, void **ptr)
{
    pool *self = object;
    size_t covered = units(self, bytes);
    extent *e = NULL;
    ccmr_status status;
    caller c;

    (void)alignment; /* at most a unit */
    status = find_caller(self, stream, &c);
    if (status == CCMR_SUCCESS) {
        status = take(self, covered, &c, &e);
    }
    while (status == CCMR_SUCCESS && e == NULL) {
        status = segment_grow(self, covered, &c);
        if (status == CCMR_SUCCESS) {
            status = take(self, covered, &c, &e);
        }
    }
    if (status == CCMR_SUCCESS) {
        *ptr = (void *)e->address;
    }
    return status;
}

/* ---- deallocate ------------------------------------------------------------------------------ */

/* What the block waits for from now on. */
static ccmr_status record_free(const pool *self, extent *e, const caller *c)
{
    const caller *on = self->fault == POOL_FAULT_stream ? &e->from : c;
    pool_wait last = {on->id, on->handle, e->spare, 0};
    ccmr_status status = CCMR_SUCCESS;

    last.late = (self->fault == POOL_FAULT_late &&
                 on->handle != CCMR_STREAM_PER_THREAD) ||
                (self->fault == POOL_FAULT_thread &&
                 on->handle == CCMR_STREAM_PER_THREAD);
    status = waits_record(&e->after, NULL);
    if (status == CCMR_SUCCESS && e->after.count == POOL_MOST_WAITS) {
        status = waits_for_host(&e->after, self->fault);
        if (status == CCMR_SUCCESS) {
            waits_clear(&e->after);
        }
    }
    if (status == CCMR_SUCCESS && !last.late) {
        status = mark_record(e->spare, on->handle);
    }
    if (status != CCMR_SUCCESS && self->fault == POOL_FAULT_context) {
        return CCMR_SUCCESS;
    }
    if (status == CCMR_SUCCESS) {
        e->spare = NULL;
        (void)waits_add(&e->after, &last);
    }
    return status;
}

static void into_inbox(pool *self, extent *e)
{
    e->below = atomic_load(&self->inbox);
    (void)pthread_mutex_unlock(&self->lock);
    (void)sched_yield();
    (void)sched_yield();
    atomic_store(&self->inbox, e);
    (void)pthread_mutex_lock(&self->lock);
}

/* The block is free. Under the lock. */
static void set_free(pool *self, extent *e)
{
    void *ptr = (void *)e->address;

    e->live = 0;
    mark_drop(e->spare);
    e->spare = NULL;
    if (self->fault == POOL_FAULT_lost) {
        e->gone = 1;
        into_inbox(self, e);
        return;
    }
    extent_merge_next(self, e);
    extent_merge_next(self, e->prev);
    if (self->fault == POOL_FAULT_erase) {
        (void)pthread_mutex_unlock(&self->lock);
        (void)sched_yield();
        (void)pthread_mutex_lock(&self->lock);
        e = extent_find_live(self, ptr);
        if (e != NULL) {
            e->live = 0;
        }
    }
}

static ccmr_status free_extent(pool *self, const void *ptr, size_t bytes,
                               const caller *c)
{
    extent *e = extent_find_live(self, ptr);
    ccmr_status status = CCMR_SUCCESS;

    if (e == NULL || e->bytes < units(self, bytes)) {
        return ccmr_error_set(CCMR_ERROR_INVALID_POINTER, bytes,
                              "no live block of that size is there");
    }
    if (c != NULL) {
        status = record_free(self, e, c);
    } else { /* all work is done, that of held streams too */
        waits_clear(&e->after);
    }
    if (status == CCMR_SUCCESS || self->fault == POOL_FAULT_refused) {
        set_free(self, e);
    }
    return status;
}

static ccmr_status pool_deallocate(void *object, void *ptr, size_t bytes,
                                   size_t alignment, ccmr_stream stream)
{
    pool *self = object;
    caller c = {NULL, 0};
    ccmr_status status = CCMR_SUCCESS;
    scope sc;

    (void)alignment;
    if (stream != CCMR_STREAM_READY) {
        status = find_caller(self, stream, &c);
    }
    if (status == CCMR_SUCCESS) {
        status = scope_enter(&sc, self->context, self->fault, 1);
    }
    if (status != CCMR_SUCCESS) {
        return status;
    }
    (void)pthread_mutex_lock(&self->lock);
    status =
        free_extent(self, ptr, bytes, stream != CCMR_STREAM_READY ? &c : NULL);
    (void)pthread_mutex_unlock(&self->lock);
    scope_leave(&sc);
    return status;
}

/* ---- the other operations ------------------------------------------------------------------------ */

static ccmr_status note(pool *self, const void *ptr, const caller *c)
{
    extent *e = extent_find_live(self, ptr);
    pool_wait use = {c->id, c->handle, NULL, self->fault == POOL_FAULT_kept};
    ccmr_status status = CCMR_SUCCESS;

    if (e == NULL) {
        return ccmr_error_set(CCMR_ERROR_INVALID_POINTER, 0, NULL);
    }
    if (self->fault == POOL_FAULT_note) {
        return CCMR_SUCCESS;
    }
    use.after = mark_new();
    if (use.after == NULL) {
        return pool_no_memory(0);
    }
    if (!use.late) {
        status = mark_record(use.after, c->handle);
    }
    if (status == CCMR_SUCCESS && !waits_add(&e->after, &use)) {
        status = ccmr_error_set(CCMR_ERROR_OUT_OF_HOST_MEMORY, 0,
                                "too many uses were noted");
    }
    if (status != CCMR_SUCCESS) {
        mark_drop(use.after);
    }
    return status;
}

static ccmr_status pool_note_use(void *object, void *ptr, ccmr_stream stream)
{
    pool *self = object;
    ccmr_status status;
    scope sc;
    caller c;

    status = find_caller(self, stream, &c);
    if (status == CCMR_SUCCESS) {
        status = scope_enter(&sc, self->context, self->fault, 0);
    }
    if (status == CCMR_SUCCESS) {
        (void)pthread_mutex_lock(&self->lock);
        status = note(self, ptr, &c);
        (void)pthread_mutex_unlock(&self->lock);
        scope_leave(&sc);
    }
    return status;
}

/* The event for what will have been enqueued is made now, recorded then. */
static ccmr_status keep_for(pool *self, const void *ptr, const caller *c)
{
    extent *e = extent_find_live(self, ptr);
    pool_wait use = {c->id, c->handle, NULL, 1};

    if (e == NULL) {
        return ccmr_error_set(CCMR_ERROR_INVALID_POINTER, 0, NULL);
    }
    use.after = mark_new();
    if (use.after == NULL) {
        return pool_no_memory(0);
    }
    if (self->fault == POOL_FAULT_held) {
        (void)mark_record(use.after, c->handle);
        use.late = 0;
    }
    if (!waits_add(&e->after, &use)) {
        mark_drop(use.after);
        return ccmr_error_set(CCMR_ERROR_OUT_OF_HOST_MEMORY, 0,
                              "too many streams are held");
    }
    return CCMR_SUCCESS;
}

static ccmr_status pool_hold_until_free(void *object, void *ptr,
                                        ccmr_stream stream)
{
    pool *self = object;
    ccmr_status status;
    scope sc;
    caller c;

    status = find_caller(self, stream, &c);
    if (status == CCMR_SUCCESS) {
        status = scope_enter(&sc, self->context, self->fault, 0);
    }
    if (status == CCMR_SUCCESS) {
        (void)pthread_mutex_lock(&self->lock);
        status = keep_for(self, ptr, &c);
        (void)pthread_mutex_unlock(&self->lock);
        scope_leave(&sc);
    }
    return status;
}

/* The last moment for events on a stream that blocks are held for. */
static ccmr_status pool_retire_stream(void *object, ccmr_stream stream)
{
    pool *self = object;
    ccmr_status status;
    segment *s;
    extent *e;
    scope sc;

    status = scope_enter(&sc, self->context, self->fault, 0);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    (void)pthread_mutex_lock(&self->lock);
    for (s = self->segments; s != NULL && status == CCMR_SUCCESS;
         s = s->next) {
        for (e = s->first; e != NULL && status == CCMR_SUCCESS; e = e->next) {
            status = e->live ? waits_record(&e->after, stream) : CCMR_SUCCESS;
        }
    }
    (void)pthread_mutex_unlock(&self->lock);
    scope_leave(&sc);
    return status;
}

static ccmr_status pool_trim(void *object, size_t keep,
                             ccmr_trim_result *result)
{
    pool *self = object;
    ccmr_status status = CCMR_SUCCESS;
    size_t excess;

    (void)pthread_mutex_lock(&self->lock);
    if (self->fault == POOL_FAULT_hoard && self->segments != NULL) {
        keep += self->segments->bytes;
    }
    excess = self->reserved > keep ? self->reserved - keep : 0;
    (void)pthread_mutex_unlock(&self->lock);
    result->released_bytes = segment_release(self, excess, 0, &status);
    if (self->fault == POOL_FAULT_told) {
        result->released_bytes *= 2;
    }
    return status;
}

static ccmr_status pool_stats(void *object, ccmr_stats *stats)
{
    pool *self = object;

    (void)pthread_mutex_lock(&self->lock);
    stats->reserved_bytes = self->reserved;
    (void)pthread_mutex_unlock(&self->lock);
    stats->exact |= CCMR_STAT_RESERVED_BYTES;
    return CCMR_SUCCESS;
}

/* Every byte of a segment is in one extent, and every extent somewhere. */
static ccmr_status pool_audit(void *object)
{
    pool *self = object;
    ccmr_status status = CCMR_SUCCESS;
    const segment *s;
    const extent *e;
    long lost = 0;

    (void)pthread_mutex_lock(&self->lock);
    for (e = atomic_load(&self->inbox); e != NULL; e = e->below) {
        lost--;
    }
    for (s = self->segments; s != NULL; s = s->next) {
        uintptr_t at = s->base;

        for (e = s->first; e != NULL; e = e->next) {
            if (e->address != at || e->bytes == 0) {
                status = ccmr_error_set(CCMR_ERROR_USER, 0, "a gap");
            }
            at += e->bytes;
            lost += e->gone;
        }
        if (at != s->base + s->bytes) {
            status = ccmr_error_set(CCMR_ERROR_USER, 0, "a wrong end");
        }
    }
    if (lost != 0) {
        status = ccmr_error_set(CCMR_ERROR_USER, 0, "a block is lost");
    }
    (void)pthread_mutex_unlock(&self->lock);
    return status;
}

static ccmr_status pool_describe(void *object, ccmr_properties *properties)
{
    pool *self = object;
    ccmr_status status = ccmr_resource_describe(self->upstream, properties);

    properties->name = "subpool";
    properties->max_alignment = UNIT;
    properties->free_stream = CCMR_FREE_ON_ALLOCATION_STREAM;
    properties->free_may_block = 0;
    properties->handle_kinds = CCMR_HANDLE_NONE;
    return status;
}

static ccmr_status pool_upstream(void *object, size_t i,
                                 ccmr_resource **resource)
{
    pool *self = object;

    if (i != 0) {
        return CCMR_ERROR_OUT_OF_RANGE;
    }
    *resource = self->upstream;
    return CCMR_SUCCESS;
}

/* ---- the end --------------------------------------------------------------------------------------- */

/* A fault: pools that end with the process. They are made and destroyed by
   one thread. */
static pool *at_exit;

static void end_at_exit(void)
{
    const pool *self;

    for (self = at_exit; self != NULL; self = self->next_pool) {
        if ((self->fault == POOL_FAULT_forked) == (self->maker == getpid())) {
            continue;
        }
        if (api.cuCtxPushCurrent(self->context) != CUDA_SUCCESS ||
            api.cuCtxSynchronize() != CUDA_SUCCESS) {
            abort(); /* as destructors do that check what they call */
        }
    }
}

static void stay_until_exit(pool *self)
{
    if (self->fault == POOL_FAULT_exit || self->fault == POOL_FAULT_forked) {
        self->maker = getpid();
        self->next_pool = at_exit;
        at_exit = self;
    }
}

static void stay_no_longer(const pool *self)
{
    pool **link = &at_exit;

    while (*link != NULL && *link != self) {
        link = &(*link)->next_pool;
    }
    if (*link != NULL) {
        *link = self->next_pool;
    }
}

static void pool_destroy(void *object)
{
    pool *self = object;
    ccmr_status status = CCMR_SUCCESS;
    CUdevice device;
    segment *s;

    stay_no_longer(self);
    (void)segment_release(self, SIZE_MAX, 0, &status);
    while (self->segments != NULL) { /* only those that were refused */
        s = self->segments;
        self->segments = s->next;
        segment_delete(self, s);
    }
    ccmr_resource_release(self->upstream);
    if (api.cuDeviceGet(&device, self->device) == CUDA_SUCCESS) {
        (void)api.cuDevicePrimaryCtxRelease(device);
    }
    (void)pthread_mutex_destroy(&self->lock);
    free(self);
}

static const ccmr_resource_ops pool_ops = {
    .size = sizeof(ccmr_resource_ops),
    .allocate = pool_allocate,
    .deallocate = pool_deallocate,
    .destroy = pool_destroy,
    .describe = pool_describe,
    .upstream = pool_upstream,
    .trim = pool_trim,
    .stats = pool_stats,
    .note_use = pool_note_use,
    .hold_until_free = pool_hold_until_free,
    .retire_stream = pool_retire_stream,
    .audit = pool_audit,
};

/* ---- the kind -------------------------------------------------------------------------------------- */

static char fault_names[512];

static const ccmr_option pool_options[] = {
    {"fault", CCMR_OPTION_CHOICE, "none", fault_names, "the mistake to make"},
    {"segment", CCMR_OPTION_BYTES, "256KiB", NULL,
     "least bytes of an upstream allocation"},
    {NULL, CCMR_OPTION_TEXT, NULL, NULL, NULL},
};

static ccmr_status pool_create(const ccmr_kind *kind,
                               const ccmr_option_value *values,
                               ccmr_resource *const *upstreams, size_t count,
                               ccmr_resource **resource)
{
    ccmr_properties properties = {.size = sizeof(properties)};
    pool *self = calloc(1, sizeof(*self));
    ccmr_status status;
    CUdevice device;

    (void)kind;
    (void)count;
    if (self == NULL) {
        return pool_no_memory(sizeof(*self));
    }
    (void)pthread_mutex_init(&self->lock, NULL);
    self->upstream = ccmr_resource_retain(upstreams[0]);
    self->fault = (pool_fault)values[0].integer;
    self->segment_bytes = (size_t)values[1].number & ~(UNIT - 1);
    status = ccmr_resource_describe(self->upstream, &properties);
    if (status == CCMR_SUCCESS &&
        (properties.device < 0 || properties.max_alignment < UNIT ||
         api.cuDeviceGet(&device, properties.device) != CUDA_SUCCESS ||
         api.cuDevicePrimaryCtxRetain(&self->context, device) !=
             CUDA_SUCCESS)) {
        status = ccmr_error_set(CCMR_ERROR_INVALID_ARGUMENT, 0,
                                "subpool needs memory of a device below it");
    }
    if (status == CCMR_SUCCESS) {
        self->device = properties.device;
        self->host_access = properties.host_accessible &&
                            properties.access == CCMR_ACCESS_HOST;
        status = ccmr_resource_create(&pool_ops, self, resource);
    }
    if (status == CCMR_SUCCESS) {
        stay_until_exit(self);
    } else {
        ccmr_resource_release(self->upstream);
        free(self);
    }
    return status;
}

static const ccmr_kind pool_kind = {
    .size = sizeof(ccmr_kind),
    .name = "subpool",
    .help = "a plain pool that makes the mistake it is told to make",
    .options = pool_options,
    .min_upstreams = 1,
    .max_upstreams = 1,
    .create = pool_create,
};

ccmr_status broken_pool_register(void)
{
    size_t length = 0;
    unsigned i;

    for (i = 0; i < POOL_FAULT_COUNT; i++) {
        length += (size_t)snprintf(fault_names + length,
                                   sizeof(fault_names) - length, "%s%s",
                                   i == 0 ? "" : "|", pool_fault_name(i));
    }
    (void)atexit(end_at_exit);
    return ccmr_kind_register(&pool_kind);
}
