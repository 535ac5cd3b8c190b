/* SPDX-License-Identifier: Apache-2.0 */
#define TOLD_NOTHING
#include "tests/support/told.h"

#include <stdint.h>

#include "lib/buffer.h"
#include "tests/support/api.h"

/* What has to be known of whoever gave the memory. */
typedef struct giver {
    int device; /* -1: the simulator has nothing to do with it */
    int at_once;
    int for_host; /* whoever gets a block may touch it at once */
} giver;

static giver giver_of(ccmr_resource *resource)
{
    ccmr_properties p = {.size = sizeof(p)};
    giver g = {-1, 0, 0};

    if (simulator != NULL && resource != NULL &&
        ccmr_resource_describe(resource, &p) == CCMR_SUCCESS &&
        p.device_accessible) {
        g.device = p.device;
        g.at_once = p.free_stream == CCMR_FREE_AT_ONCE;
        g.for_host = p.host_accessible && p.access == CCMR_ACCESS_HOST;
    }
    return g;
}

/* ---- tokens mean streams of the giver's device ------------------------------ */

/* A call may have been ordered to fail, which concerns the library alone: it
   is made again. */
#define PERSIST(call) ((call) == CUDA_SUCCESS || (call) == CUDA_SUCCESS)

typedef struct place {
    CUdevice device;
    int entered;
} place;

static place place_enter(const giver *g, ccmr_stream stream)
{
    CUcontext primary = NULL;
    place p = {0, 0};

    if ((stream == CCMR_STREAM_LEGACY || stream == CCMR_STREAM_PER_THREAD) &&
        PERSIST(api.cuDeviceGet(&p.device, g->device)) &&
        PERSIST(api.cuDevicePrimaryCtxRetain(&primary, p.device))) {
        p.entered = PERSIST(api.cuCtxPushCurrent(primary));
        if (!p.entered) {
            IGNORE(api.cuDevicePrimaryCtxRelease(p.device));
        }
    }
    return p;
}

static void place_leave(const place *p)
{
    if (p->entered) {
        IGNORE(PERSIST(api.cuCtxPopCurrent(&(CUcontext){NULL})));
        IGNORE(PERSIST(api.cuDevicePrimaryCtxRelease(p->device)));
    }
}

/* ---- what is told ------------------------------------------------------------- */

static void tell_handed_out(const giver *g, const void *ptr, size_t bytes,
                            ccmr_stream stream)
{
    place p;

    if (g->device < 0 || ptr == NULL) {
        return;
    }
    stream = ccmr__stream_default(stream);
    p = place_enter(g, stream);
    (void)simulator->handed_out((uintptr_t)ptr, bytes,
                                g->for_host ? CCMR_SIM_HOST : (void *)stream);
    place_leave(&p);
}

/* Returns whether it was told. */
static int tell_freed(const giver *g, const void *ptr, size_t bytes,
                      ccmr_stream stream)
{
    int told;
    place p;

    stream = ccmr__stream_default(stream);
    if (g->device < 0 || ptr == NULL || stream == CCMR_STREAM_UNSET) {
        return 0;
    }
    p = place_enter(g, stream);
    told = simulator->freed((uintptr_t)ptr, bytes,
                            stream == CCMR_STREAM_READY || g->at_once
                                ? CCMR_SIM_HOST
                                : (void *)stream) == 0;
    place_leave(&p);
    return told;
}

static void tell_noted(const giver *g, const void *ptr, size_t bytes,
                       ccmr_stream stream, int until_free)
{
    place p;

    if (g->device >= 0 && ptr != NULL) {
        stream = ccmr__stream_default(stream);
        p = place_enter(g, stream);
        (void)simulator->noted((uintptr_t)ptr, bytes, stream, until_free);
        place_leave(&p);
    }
}

void told_handed_out(ccmr_resource *resource, const void *ptr, size_t bytes,
                     ccmr_stream stream)
{
    const giver g = giver_of(resource);

    tell_handed_out(&g, ptr, bytes, stream);
}

void told_freed(ccmr_resource *resource, const void *ptr, size_t bytes,
                ccmr_stream stream)
{
    const giver g = giver_of(resource);

    (void)tell_freed(&g, ptr, bytes, stream);
}

void told_touch(const void *ptr, size_t bytes)
{
    if (simulator != NULL && ptr != NULL) {
        (void)simulator->used((uintptr_t)ptr, bytes, CCMR_SIM_HOST);
    }
}

/* ---- blocks ---------------------------------------------------------------------- */

ccmr_status told_allocate(ccmr_resource *resource, size_t bytes,
                          size_t alignment, ccmr_stream stream, void **ptr)
{
    ccmr_status status =
        ccmr_resource_allocate(resource, bytes, alignment, stream, ptr);

    if (status == CCMR_SUCCESS && *ptr != NULL) {
        told_handed_out(resource, *ptr, bytes, stream);
    }
    return status;
}

ccmr_status told_deallocate(ccmr_resource *resource, void *ptr, size_t bytes,
                            size_t alignment, ccmr_stream stream)
{
    const giver g = giver_of(resource);
    int told = tell_freed(&g, ptr, bytes, stream);
    ccmr_status status =
        ccmr_resource_deallocate(resource, ptr, bytes, alignment, stream);

    if (status != CCMR_SUCCESS && told) {
        (void)simulator->not_freed((uintptr_t)ptr, bytes);
    }
    return status;
}

/* The first byte of a block stands for it. */
ccmr_status told_note_use(ccmr_resource *resource, void *ptr,
                          ccmr_stream stream)
{
    ccmr_status status = ccmr_resource_note_use(resource, ptr, stream);

    if (status == CCMR_SUCCESS) {
        const giver g = giver_of(resource);

        tell_noted(&g, ptr, 1, stream, 0);
    }
    return status;
}

ccmr_status told_hold_until_free(ccmr_resource *resource, void *ptr,
                                 ccmr_stream stream)
{
    ccmr_status status = ccmr_resource_hold_until_free(resource, ptr, stream);

    if (status == CCMR_SUCCESS) {
        const giver g = giver_of(resource);

        tell_noted(&g, ptr, 1, stream, 1);
    }
    return status;
}

/* ---- buffers ----------------------------------------------------------------------- */

ccmr_status told_buffer_create(ccmr_resource *resource, size_t bytes,
                               const ccmr_buffer_options *options,
                               ccmr_stream stream, ccmr_buffer **buffer)
{
    ccmr_status status =
        ccmr_buffer_create(resource, bytes, options, stream, buffer);

    if (status == CCMR_SUCCESS) {
        told_handed_out(resource, ccmr_buffer_ptr(*buffer), bytes, stream);
    }
    return status;
}

ccmr_status told_buffer_note_use(ccmr_buffer *buffer, ccmr_stream stream)
{
    ccmr_status status = ccmr_buffer_note_use(buffer, stream);

    if (status == CCMR_SUCCESS) {
        const giver g = giver_of(buffer->resource);

        tell_noted(&g, buffer->ptr, buffer->bytes, stream, 0);
    }
    return status;
}

/* The block that a close frees, if it does. */
typedef struct going {
    giver g;
    void *ptr;
    size_t bytes;
    int told;
} going;

static going tell_closed(ccmr_buffer *buffer, ccmr_stream stream)
{
    going b = {{-1, 0, 0}, NULL, 0, 0};
    ccmr_stream on = stream;

    if (buffer == NULL || buffer->closed ||
        buffer->kind != CCMR__BUFFER_OWNING) {
        return b;
    }
    b.g = giver_of(buffer->resource);
    b.ptr = buffer->ptr;
    b.bytes = buffer->bytes;
    if (stream == CCMR_STREAM_UNSET) {
        if (!ccmr__buffer_stream_known(buffer) &&
            (buffer->thread != 0 || buffer->stream_id != 0)) {
            return b; /* it will be refused */
        }
        on = buffer->stream;
    } else if (stream != CCMR_STREAM_READY &&
               ccmr__stream_default(stream) != buffer->stream &&
               ccmr__buffer_stream_known(buffer)) {
        /* The library adds this edge itself. */
        tell_noted(&b.g, b.ptr, b.bytes, buffer->stream, 1);
    }
    b.told = tell_freed(&b.g, b.ptr, b.bytes, on);
    return b;
}

static void tell_refused(const going *b, ccmr_status status)
{
    if (status != CCMR_SUCCESS && b->told) {
        (void)simulator->not_freed((uintptr_t)b->ptr, b->bytes);
    }
}

ccmr_status told_buffer_close(ccmr_buffer *buffer, ccmr_stream stream)
{
    const going b = tell_closed(buffer, stream);
    ccmr_status status = ccmr_buffer_close(buffer, stream);

    tell_refused(&b, status);
    return status;
}

ccmr_status told_buffer_destroy(ccmr_buffer *buffer)
{
    const going b = tell_closed(buffer, CCMR_STREAM_UNSET);
    ccmr_status status = ccmr_buffer_destroy(buffer);

    tell_refused(&b, status);
    return status;
}
