/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces of tracking begin where the program calls the shared library,
 * whatever is stacked above.
 */
#include <dlfcn.h>
#include <string.h>

#include <cucoremr/cucoremr.h>

#include "tests/support/tap.h"

static int first_frame(void *context, const ccmr_tracking_block *block)
{
    Dl_info *info = context;

    return block->frame_count == 0 || dladdr(block->frames[0], info) == 0;
}

/* By the file's own name: folders may be called as the library is. */
static int is_program(const char *file)
{
    const char *name = file != NULL ? strrchr(file, '/') : NULL;

    return file != NULL &&
           strstr(name != NULL ? name : file, "libcucoremr") == NULL;
}

int main(void)
{
    ccmr_resource *stack = NULL;
    Dl_info info = {NULL, NULL, NULL, NULL};
    void *ptr = NULL;

    tap_ok(ccmr_stack_create(
               "statistics | limiting bytes=1MiB | tracking traces=yes | host",
               &stack) == CCMR_SUCCESS &&
               ccmr_resource_allocate(stack, 100, 0, CCMR_STREAM_LEGACY,
                                      &ptr) == CCMR_SUCCESS &&
               ccmr_tracking_outstanding(stack, first_frame, &info) ==
                   CCMR_SUCCESS,
           "a block with a trace");
    tap_ok(is_program(info.dli_fname), "it begins in the program: %s",
           info.dli_fname != NULL ? info.dli_fname : "nowhere");
    tap_ok(ccmr_resource_deallocate(stack, ptr, 100, 0, CCMR_STREAM_LEGACY) ==
               CCMR_SUCCESS,
           "free");
    ccmr_resource_release(stack);
    return tap_finish();
}
