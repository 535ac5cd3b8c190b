/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/faults/script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/told.h"

/* A refused free is tried again: what failed, failed once. */
#define TRIES 3

const char *const script_stacks[] = {
    "device_pool",
    "device_pool own=yes initial=1MiB",
    "device_plain",
    "legacy_pinned",
    "virtual",
    "virtual export=posix_fd room=4MiB",
    "host",
    "stream_ordered | device_plain",
    "stream_ordered keep=4KiB | device_plain",
    "stream_ordered | legacy_pinned",
    "stream_ordered keep=16MiB | virtual",
    "stream_ordered | host",
    "limiting bytes=1MiB | device_pool",
    "statistics | device_pool",
    "tracking | device_pool",
    "logging file=/dev/null | limiting bytes=64MiB | device_pool",
    "logging file=/dev/null flush=yes | stream_ordered | device_plain",
    "limiting bytes=64MiB | stream_ordered | logging file=/dev/null | "
    "legacy_pinned",
    "pool | device_plain",
    "pool initial=4MiB hard=16MiB | device_pool own=yes",
    "pool reuse=finished | virtual",
    "pool | legacy_pinned",
    "pool access=stream | limiting bytes=64MiB | legacy_pinned",
    NULL,
};

/* A stream of the driver's, which the library is never told of. */
static CUstream foreign;

void script_prepare(void)
{
    CUcontext context = NULL;

    if (api.cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
        api.cuCtxPushCurrent(context) != CUDA_SUCCESS ||
        api.cuStreamCreate(&foreign, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS ||
        api.cuCtxPopCurrent(&context) != CUDA_SUCCESS) {
        printf("Bail out! no stream for the script\n");
        exit(99);
    }
}

void script_end(void)
{
    (void)api.cuStreamDestroy(foreign);
    (void)api.cuDevicePrimaryCtxRelease(0);
}

static ccmr_status step(script *s, const char *name, ccmr_status status)
{
    s->steps++;
    if (status != CCMR_SUCCESS) {
        if (s->failures++ == 0) {
            s->first = status;
            (void)snprintf(s->first_step, sizeof(s->first_step), "%s", name);
        }
    }
    if (s->after != NULL) {
        s->after(s, name, status);
    }
    return status;
}

static void *take(script *s, ccmr_resource *resource, size_t bytes,
                  ccmr_stream stream)
{
    void *ptr = NULL;

    (void)step(s, "allocate",
               ccmr_resource_allocate(resource, bytes, 0, stream, &ptr));
    return ptr;
}

static void give(script *s, ccmr_resource *resource, void *ptr, size_t bytes,
                 ccmr_stream stream)
{
    int tries = 0;

    if (ptr == NULL) {
        return;
    }
    while (step(s, "deallocate",
                ccmr_resource_deallocate(resource, ptr, bytes, 0, stream)) !=
           CCMR_SUCCESS) {
        if (++tries == TRIES) {
            s->stuck = 1;
            return;
        }
    }
}

static void close_buffer(script *s, ccmr_buffer *buffer, ccmr_stream stream)
{
    int tries = 0;

    while (step(s, "buffer_close", ccmr_buffer_close(buffer, stream)) !=
           CCMR_SUCCESS) {
        if (++tries == TRIES) {
            s->stuck = 1;
            return;
        }
    }
    (void)step(s, "buffer_destroy", ccmr_buffer_destroy(buffer));
}

static void buffers(script *s, ccmr_resource *resource, ccmr_stream own)
{
    ccmr_buffer_properties properties = {.size = sizeof(properties)};
    ccmr_buffer *buffer = NULL;
    ccmr_buffer *second = NULL;
    unsigned char bytes[64] = {1, 2, 3};
    ccmr_status status;

    (void)step(s, "buffer_create",
               ccmr_buffer_create(resource, 2000, NULL, own, &buffer));
    (void)step(s, "buffer_create",
               ccmr_buffer_create(resource, 500, NULL, foreign, &second));
    if (second != NULL) {
        close_buffer(s, second, CCMR_STREAM_UNSET);
    }
    if (buffer == NULL) {
        return;
    }
    (void)step(s, "buffer_fill", ccmr_buffer_fill(buffer, 0, 2000, 7, 1, own));
    (void)step(s, "buffer_copy_from_host",
               ccmr_buffer_copy_from_host(buffer, 64, bytes, 64, own));
    (void)step(s, "buffer_copy",
               ccmr_buffer_copy(buffer, 512, buffer, 64, 64, own));
    (void)step(s, "buffer_copy_to_host",
               ccmr_buffer_copy_to_host(buffer, 512, bytes, 64, own));
    (void)step(s, "stream_synchronize", ccmr_stream_synchronize(own, 0));
    status = ccmr_buffer_note_use(buffer, foreign);
    (void)step(s, "buffer_note_use",
               status == CCMR_ERROR_NOT_SUPPORTED ? CCMR_SUCCESS : status);
    (void)step(s, "buffer_describe",
               ccmr_buffer_describe(buffer, &properties));
    (void)step(s, "buffer_set_stream", ccmr_buffer_set_stream(buffer, own));
    close_buffer(s, buffer, foreign);
}

static void questions(script *s, ccmr_resource *resource)
{
    ccmr_properties properties = {.size = sizeof(properties)};
    ccmr_trim_result trimmed = {.size = sizeof(trimmed)};
    ccmr_stats stats = {.size = sizeof(stats)};
    char text[256];

    (void)step(s, "describe", ccmr_resource_describe(resource, &properties));
    (void)step(s, "stats", ccmr_resource_stats(resource, &stats));
    (void)step(s, "trim", ccmr_resource_trim(resource, 0, &trimmed));
    (void)step(s, "print",
               ccmr_stack_print(resource, text, sizeof(text), NULL));
    (void)step(s, "audit", ccmr_resource_audit(resource));
}

static void blocks(script *s, ccmr_resource *resource, ccmr_stream own)
{
    void *first = take(s, resource, 3000, own);
    void *second = take(s, resource, 70000, foreign);
    void *third = take(s, resource, 100, CCMR_STREAM_LEGACY);
    ccmr_status status;
    void *again;

    give(s, resource, first, 3000, own);
    give(s, resource, second, 70000, foreign);
    give(s, resource, third, 100, CCMR_STREAM_LEGACY);
    again = take(s, resource, 3000, foreign);
    first = take(s, resource, 3000, own);
    questions(s, resource);
    status =
        step(s, "stream_synchronize", ccmr_stream_synchronize(foreign, 0));
    give(s, resource, again, 3000,
         status == CCMR_SUCCESS ? CCMR_STREAM_READY : foreign);
    give(s, resource, first, 3000, own);
}

/* What was freed on a stream counts as finished once that is synchronised. */
static void wait_for(script *s, ccmr_stream stream)
{
    int tries = 0;

    while (step(s, "stream_synchronize", ccmr_stream_synchronize(stream, 0)) !=
               CCMR_SUCCESS &&
           ++tries < TRIES) {
    }
}

static void end_streams(script *s, ccmr_stream own)
{
    int tries = 0;

    wait_for(s, foreign);
    wait_for(s, CCMR_STREAM_LEGACY);
    (void)step(s, "stream_retire", ccmr_stream_retire(foreign));
    while (own != foreign && step(s, "stream_destroy",
                                  ccmr_stream_destroy(own)) != CCMR_SUCCESS) {
        if (++tries == TRIES) {
            s->stuck = 1;
            return;
        }
    }
}

void script_run(script *s)
{
    ccmr_resource *resource = NULL;
    ccmr_stream own = foreign;

    s->steps = 0;
    s->failures = 0;
    s->stuck = 0;
    s->first = CCMR_SUCCESS;
    s->first_step[0] = '\0';
    if (step(s, "stack_create", ccmr_stack_create(s->stack, &resource)) !=
        CCMR_SUCCESS) {
        return;
    }
    (void)step(s, "stream_create", ccmr_stream_create(0, 1, &own));
    blocks(s, resource, own);
    buffers(s, resource, own);
    end_streams(s, own);
    ccmr_resource_release(resource);
    (void)step(s, "release", CCMR_SUCCESS);
}
