/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stack traces and thread ids. glibc's backtrace() loads the unwinder when it
 * is used first, which allocates: that is done when a resource is made, so
 * that a free never does.
 */
#include "resources/tracking/blocks.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/thread.h"

#if defined(__has_include)
#if __has_include(<execinfo.h>)
#include <execinfo.h>
#define HAVE_TRACES 1
#endif
#endif

int ccmr__trace_start(void)
{
#ifdef HAVE_TRACES
    ccmr__trace first;

    ccmr__trace_take(&first);
    return 1;
#else
    return 0;
#endif
}

void ccmr__trace_take(ccmr__trace *trace)
{
#ifdef HAVE_TRACES
    int count = backtrace(trace->frames, CCMR_TRACKING_FRAMES);

    trace->count = count > 0 ? (unsigned)count : 0;
#else
    trace->count = 0;
#endif
    memset(&trace->frames[trace->count], 0,
           (CCMR_TRACKING_FRAMES - trace->count) * sizeof(trace->frames[0]));
}

uint64_t ccmr__tracking_thread(void)
{
    /* A call of the system, and glibc before 2.30 has no name for it. */
    static _Thread_local uint64_t id CCMR__TLS_MODEL;

    if (id == 0) {
        id = (uint64_t)syscall(SYS_gettid);
    }
    return id;
}
