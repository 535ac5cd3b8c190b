/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/generator/pool_books.h"

#include <stdlib.h>

ccmr_status pool_no_memory(size_t bytes)
{
    return ccmr_error_set(CCMR_ERROR_OUT_OF_HOST_MEMORY, bytes,
                          "the subpool has no host memory");
}

/* ---- extents -------------------------------------------------------------------------- */

static extent *extent_new(uintptr_t address, size_t bytes)
{
    extent *e = calloc(1, sizeof(*e));

    if (e != NULL) {
        e->address = address;
        e->bytes = bytes;
    }
    return e;
}

static void extent_delete(extent *e)
{
    waits_clear(&e->after);
    mark_drop(e->spare);
    free(e);
}

extent *extent_find_live(const pool *self, const void *ptr)
{
    const segment *s;
    extent *e;

    for (s = self->segments; s != NULL; s = s->next) {
        for (e = s->first; e != NULL; e = e->next) {
            if (e->address == (uintptr_t)ptr && e->live) {
                return e;
            }
        }
    }
    return NULL;
}

extent *extent_find_free(const pool *self, size_t bytes)
{
    const segment *s;
    extent *e;

    for (s = self->segments; s != NULL; s = s->next) {
        for (e = s->first; e != NULL; e = e->next) {
            if (!e->live && !e->gone && e->bytes >= bytes) {
                return e;
            }
        }
    }
    return NULL;
}

/* The part beyond `bytes` becomes an extent of its own. */
ccmr_status extent_split(const pool *self, extent *e, size_t bytes,
                         const caller *c)
{
    extent *rest;

    if (e->bytes == bytes) {
        return CCMR_SUCCESS;
    }
    rest = extent_new(e->address + bytes, e->bytes - bytes);
    if (rest == NULL) {
        return pool_no_memory(bytes);
    }
    waits_copy(&rest->after, &e->after);
    if (self->fault == POOL_FAULT_rest && rest->after.count != 0) {
        pool_wait stale = {c->id, c->handle, mark_new(), 0};

        waits_clear(&rest->after);
        (void)(stale.after != NULL && waits_add(&rest->after, &stale));
    }
    rest->prev = e;
    rest->next = e->next;
    if (rest->next != NULL) {
        rest->next->prev = rest;
    }
    e->next = rest;
    e->bytes = bytes;
    return CCMR_SUCCESS;
}

/* `e` takes in the one after it, if both are free. */
void extent_merge_next(const pool *self, extent *e)
{
    extent *next = e != NULL ? e->next : NULL;

    if (next == NULL || e->live || e->gone || next->live || next->gone) {
        return;
    }
    if (self->fault != POOL_FAULT_merge &&
        !waits_join(&e->after, &next->after)) {
        return; /* waits for too many */
    }
    e->bytes += next->bytes;
    e->next = next->next;
    if (e->next != NULL) {
        e->next->prev = e;
    }
    extent_delete(next);
}

/* ---- upstream ---------------------------------------------------------------------------- */

/* Free blocks that wait for too many streams are not merged. */
static int is_idle(const pool *self, const segment *s)
{
    const extent *e = s->first;

    if (self->fault == POOL_FAULT_live) {
        return !e->live && !e->gone;
    }
    while (e != NULL && !e->live && !e->gone) {
        e = e->next;
    }
    return e == NULL;
}

/* Asks; waits for nothing. */
static int is_finished(const pool *self, const segment *s)
{
    const extent *e;
    int finished = 1;
    scope sc;

    if (scope_enter(&sc, self->context, self->fault, 0) != CCMR_SUCCESS) {
        return 0;
    }
    for (e = s->first; e != NULL && finished; e = e->next) {
        finished = waits_finished(&e->after);
    }
    scope_leave(&sc);
    return finished;
}

/* Segments that are wholly free, taken out of the books, up to `excess`. */
static segment *take_out(pool *self, size_t excess, int only_finished)
{
    segment **link = &self->segments;
    segment *out = NULL;

    while (*link != NULL && excess > 0) {
        segment *s = *link;

        if (!is_idle(self, s) || (only_finished && !is_finished(self, s))) {
            link = &s->next;
            continue;
        }
        *link = s->next;
        s->next = out;
        out = s;
        self->reserved -= s->bytes;
        excess -= s->bytes < excess ? s->bytes : excess;
    }
    return out;
}

static void put_back(pool *self, segment *s)
{
    (void)pthread_mutex_lock(&self->lock);
    s->next = self->segments;
    self->segments = s;
    self->reserved += s->bytes;
    (void)pthread_mutex_unlock(&self->lock);
}

void segment_delete(pool *self, segment *s)
{
    scope sc;
    int inside = scope_enter(&sc, self->context, self->fault, 0) == 0;

    while (s->first != NULL) {
        extent *e = s->first;

        s->first = e->next;
        extent_delete(e);
    }
    if (inside) {
        scope_leave(&sc);
    }
    free(s);
}

static ccmr_status wait_for_segment(pool *self, segment *s)
{
    scope sc;
    ccmr_status status = scope_enter(&sc, self->context, self->fault, 0);
    extent *e;

    if (status != CCMR_SUCCESS) {
        return status;
    }
    for (e = s->first; e != NULL && status == CCMR_SUCCESS; e = e->next) {
        status = waits_for_host(&e->after, self->fault);
    }
    scope_leave(&sc);
    return status;
}

/* Without the lock. Returns the bytes that went. */
size_t segment_release(pool *self, size_t excess, int only_finished,
                       ccmr_status *refused)
{
    segment *s;
    size_t bytes = 0;

    (void)pthread_mutex_lock(&self->lock);
    s = take_out(self, excess, only_finished);
    (void)pthread_mutex_unlock(&self->lock);
    while (s != NULL) {
        segment *next = s->next;
        ccmr_status status = self->fault != POOL_FAULT_trim
                                 ? wait_for_segment(self, s)
                                 : CCMR_SUCCESS;

        if (status == CCMR_SUCCESS) {
            status =
                ccmr_resource_deallocate(self->upstream, (void *)s->base,
                                         s->bytes, UNIT, CCMR_STREAM_READY);
        }
        if (status == CCMR_SUCCESS) {
            bytes += s->bytes;
            segment_delete(self, s);
        } else {
            *refused = status;
            put_back(self, s);
        }
        s = next;
    }
    return bytes;
}

/* A new segment depends on the stream that it was allocated on. */
static ccmr_status segment_add(pool *self, uintptr_t base, size_t bytes,
                               const caller *c)
{
    segment *s = calloc(1, sizeof(*s));
    pool_wait first = {c->id, c->handle, mark_new(), 0};
    ccmr_status status = CCMR_SUCCESS;

    if (s != NULL) {
        s->first = extent_new(base, bytes);
    }
    if (s == NULL || s->first == NULL || first.after == NULL) {
        status = pool_no_memory(bytes);
    } else {
        status = mark_record(first.after, c->handle);
    }
    if (status != CCMR_SUCCESS) {
        free(s != NULL ? s->first : NULL);
        free(s);
        mark_drop(first.after);
        return status;
    }
    (void)waits_add(&s->first->after, &first);
    s->base = base;
    s->bytes = bytes;
    (void)pthread_mutex_lock(&self->lock);
    s->next = self->segments;
    self->segments = s;
    self->reserved += bytes;
    (void)pthread_mutex_unlock(&self->lock);
    return CCMR_SUCCESS;
}

static int is_full(ccmr_status status)
{
    return status == CCMR_ERROR_OUT_OF_DEVICE_MEMORY ||
           status == CCMR_ERROR_LIMIT_EXCEEDED;
}

/* Outside any scope, and without the lock. */
static ccmr_status ask_upstream(pool *self, size_t bytes, const caller *c,
                                void **ptr, size_t *got)
{
    ccmr_status refused = CCMR_SUCCESS;
    ccmr_status status;
    int round;

    for (round = 0; round < 2; round++) {
        *got = bytes > self->segment_bytes ? bytes : self->segment_bytes;
        status =
            ccmr_resource_allocate(self->upstream, *got, UNIT, c->handle, ptr);
        if (is_full(status) && *got != bytes) {
            *got = bytes;
            status = ccmr_resource_allocate(self->upstream, *got, UNIT,
                                            c->handle, ptr);
        }
        if (!is_full(status) || self->fault == POOL_FAULT_greedy ||
            segment_release(self, SIZE_MAX, self->fault == POOL_FAULT_full,
                            &refused) == 0) {
            return status;
        }
    }
    return status;
}

ccmr_status segment_grow(pool *self, size_t bytes, const caller *c)
{
    ccmr_error_detail told;
    ccmr_status status;
    size_t got = 0;
    void *ptr;
    scope sc;

    status = ask_upstream(self, bytes, c, &ptr, &got);
    if (status != CCMR_SUCCESS) {
        if (self->fault == POOL_FAULT_left) {
            (void)api.cuCtxPushCurrent(self->context);
        }
        return status;
    }
    status = scope_enter(&sc, self->context, self->fault, 0);
    if (status == CCMR_SUCCESS) {
        status = segment_add(self, (uintptr_t)ptr, got, c);
        scope_leave(&sc);
    }
    if (status != CCMR_SUCCESS) {
        told = *ccmr_last_error();
        (void)ccmr_resource_deallocate(self->upstream, ptr, got, UNIT,
                                       c->handle);
        return ccmr_error_set(told.status, bytes, told.message);
    }
    return CCMR_SUCCESS;
}
