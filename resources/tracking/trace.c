/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stack traces and thread ids. glibc's backtrace() loads the unwinder when it
 * is used first, which allocates: that is done when a resource is made, so
 * that a free never does.
 */
#include "resources/tracking/blocks.h"

#include <link.h>
#include <pthread.h>
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

#ifdef HAVE_TRACES
/* The innermost frames are this library's and say nothing. Most of them that
 * are looked past: a stack of adaptors has a few each. */
#define OWN_FRAMES 40

/* Where the library lies, unless it is a part of the program. */
static uintptr_t own_from, own_to;
static pthread_once_t own_known = PTHREAD_ONCE_INIT;

static int look_at_object(struct dl_phdr_info *info, size_t size, void *anchor)
{
    uintptr_t address = (uintptr_t)anchor;
    int i;

    (void)size;
    if (info->dlpi_name == NULL || info->dlpi_name[0] == '\0') {
        return 0;
    }
    for (i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        uintptr_t to = from + info->dlpi_phdr[i].p_memsz;

        if (info->dlpi_phdr[i].p_type == PT_LOAD && address >= from &&
            address < to) {
            own_from = from;
            own_to = to;
            return 1;
        }
    }
    return 0;
}

static void find_own(void)
{
    (void)dl_iterate_phdr(look_at_object,
                          (void *)(uintptr_t)&ccmr__trace_start);
}
#endif

int ccmr__trace_start(void)
{
#ifdef HAVE_TRACES
    ccmr__trace first;

    (void)pthread_once(&own_known, find_own);
    ccmr__trace_take(&first);
    return 1;
#else
    return 0;
#endif
}

void ccmr__trace_take(ccmr__trace *trace)
{
#ifdef HAVE_TRACES
    void *frames[CCMR_TRACKING_FRAMES + OWN_FRAMES];
    int count = backtrace(frames, CCMR_TRACKING_FRAMES + OWN_FRAMES);
    int own = 0;

    while (own < OWN_FRAMES && own + 1 < count &&
           (uintptr_t)frames[own] - own_from < own_to - own_from) {
        own++;
    }
    count -= own;
    trace->count = count < 0                      ? 0
                   : count > CCMR_TRACKING_FRAMES ? CCMR_TRACKING_FRAMES
                                                  : (unsigned)count;
    memcpy(trace->frames, &frames[own],
           trace->count * sizeof(trace->frames[0]));
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
