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
    /* B8: a free that is refused loses nothing. */
    tap_ok(ccmr_resource_deallocate(o.stack, o.block, 512, 0, o.stream) ==
               CCMR_ERROR_NOT_PERMITTED,
           "a free is refused");
    tap_ok(ccmr_buffer_close(o.buffer, CCMR_STREAM_UNSET) ==
                   CCMR_ERROR_NOT_PERMITTED &&
               ccmr_buffer_ptr(o.buffer) != NULL,
           "a close is refused and the buffer whole");
    atomic_store(&done, 1);
}

static void in_callback(void (*body)(void *))
{
    atomic_store(&done, 0);
    tap_is_int(api.cuLaunchHostFunc(o.stream, body, NULL), CUDA_SUCCESS,
               "a host function");
    tap_is_int(api.cuStreamSynchronize(o.stream), CUDA_SUCCESS, "it ran");
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
    in_callback(only_host);
    tap_ok(ccmr_resource_stats(o.stack, &stats) == CCMR_SUCCESS &&
               stats.live_bytes == 4096 + 512,
           "nothing was lost: %zu bytes are live", stats.live_bytes);
    tap_ok(objects_drop(&o) == CCMR_SUCCESS, "all is given back");
    if (objects_make(&o, "/dev/null") != 0) {
        tap_bail_out("%s", ccmr_last_error()->message);
    }
    in_callback(call_all);
    (void)objects_drop(&o);
    return api_end(tap_finish());
}
