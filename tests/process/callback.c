/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls from inside a stream's host function, where CUDA permits none: they
 * answer at once, and what was to be freed is still there. Field case B8.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/process/calls.h"
#include "tests/support/api.h"
#include "tests/support/tap.h"

static objects o;
static atomic_int done;

/* The stream whose host function calls. */
static CUstream own;
static ccmr_resource *plain;
static ccmr_resource *pinned;
static void *plain_block;
static void *pinned_block;

static void CUDA_CB call_all(void *unused)
{
    int i;

    (void)unused;
    for (i = 0; valid_calls[i].name != NULL; i++) {
        const valid_call *call = &valid_calls[i];
        ccmr_status status = call->make(&o);

        if (!tap_ok(status == CCMR_SUCCESS ||
                        status == CCMR_ERROR_NOT_PERMITTED,
                    "%s in a callback: %s", call->name,
                    ccmr_status_name(status))) {
            tap_diag("%s", ccmr_last_error()->message);
        }
    }
    atomic_store(&done, 1);
}

static void only_host(void *unused)
{
    ccmr_stats stats = {.size = sizeof(stats)};
    void *ptr = NULL;

    (void)unused;
    tap_ok(ccmr_resource_stats(o.host, &stats) == CCMR_SUCCESS,
           "figures of host memory");
    tap_ok(ccmr_resource_allocate(o.host, 100, 0, CCMR_STREAM_LEGACY, &ptr) ==
                   CCMR_SUCCESS &&
               ccmr_resource_deallocate(o.host, ptr, 100, 0,
                                        CCMR_STREAM_LEGACY) == CCMR_SUCCESS,
           "host memory");
    tap_ok(ccmr_logging_flush(o.logging) == CCMR_SUCCESS, "flush of a log");
    /* B8: a free that is refused loses nothing; one that would wait for this
       very function is refused. */
    tap_ok(ccmr_resource_deallocate(plain, plain_block, 4096, 0, own) ==
               CCMR_ERROR_NOT_PERMITTED,
           "a free that would wait for itself is refused");
    tap_ok(ccmr_resource_deallocate(pinned, pinned_block, 4096, 0, own) ==
               CCMR_ERROR_NOT_PERMITTED,
           "so is one of pinned memory");
    tap_ok(ccmr_buffer_close(o.buffer, CCMR_STREAM_UNSET) ==
                   CCMR_ERROR_NOT_PERMITTED &&
               ccmr_buffer_ptr(o.buffer) != NULL,
           "a close is refused and the buffer whole");
    atomic_store(&done, 1);
}

static void in_callback(void (*body)(void *))
{
    atomic_store(&done, 0);
    tap_is_int(api.cuLaunchHostFunc(own, body, NULL), CUDA_SUCCESS,
               "a host function");
    tap_is_int(api.cuStreamSynchronize(own), CUDA_SUCCESS, "it ran");
    tap_is_int(atomic_load(&done), 1, "to its end");
}

int main(void)
{
    ccmr_driver_info info = {.size = sizeof(info)};
    ccmr_stats stats = {.size = sizeof(stats)};
    const char *reason;

    (void)alarm(60);
    if (ccmr_driver(&info) != CCMR_SUCCESS) {
        tap_skip_all("%s", ccmr_last_error()->message);
    }
    if (api_load(info.path, &reason) != 0) {
        tap_bail_out("%s", reason);
    }
    if (objects_make(&o, "/dev/null") != 0) {
        tap_bail_out("%s", ccmr_last_error()->message);
    }
    if (ccmr_stream_create(0, CCMR_STREAM_FLAG_NON_BLOCKING, &own) !=
            CCMR_SUCCESS ||
        ccmr_stack_create("device_plain", &plain) != CCMR_SUCCESS ||
        ccmr_stack_create("legacy_pinned", &pinned) != CCMR_SUCCESS ||
        ccmr_resource_allocate(plain, 4096, 0, own, &plain_block) !=
            CCMR_SUCCESS ||
        ccmr_resource_allocate(pinned, 4096, 0, own, &pinned_block) !=
            CCMR_SUCCESS) {
        tap_bail_out("%s", ccmr_last_error()->message);
    }
    in_callback(only_host);
    tap_ok(ccmr_resource_deallocate(plain, plain_block, 4096, 0, own) ==
                   CCMR_SUCCESS &&
               ccmr_resource_deallocate(pinned, pinned_block, 4096, 0, own) ==
                   CCMR_SUCCESS,
           "what was refused is freed later");
    ccmr_resource_release(plain);
    ccmr_resource_release(pinned);
    tap_ok(ccmr_resource_stats(o.stack, &stats) == CCMR_SUCCESS &&
               stats.live_bytes == 4096 + 512,
           "nothing was lost: %zu bytes are live", stats.live_bytes);
    tap_ok(objects_drop(&o) == CCMR_SUCCESS, "all is given back");
    if (objects_make(&o, "/dev/null") != 0) {
        tap_bail_out("%s", ccmr_last_error()->message);
    }
    in_callback(call_all);
    (void)objects_drop(&o);
    (void)ccmr_stream_destroy(own);
    return api_end(tap_finish());
}
