/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices, their primary contexts, and acting in one without disturbing the
 * caller.
 */
#ifndef CCMR_LIB_CONTEXT_H
#define CCMR_LIB_CONTEXT_H

#include <stdint.h>

#include "lib/driver.h"

#define CCMR__MAX_DEVICES 64

/* A device as the library knows it. Never freed. The primary context is
 * retained at first use and kept, so that no later call can find it gone. */
typedef struct ccmr__device {
    int ordinal;
    CUdevice device;
    CUcontext context; /* primary; NULL until ccmr__device_use() */
    size_t total_bytes;
    int memory_pools; /* device and driver have memory pools */
    unsigned pool_handle_kinds;
    int concurrent_managed_access;
    CUstream idle; /* ours, non-blocking, always empty: for READY frees */
} ccmr__device;

/** The record of a device; CCMR_DEVICE_CURRENT is resolved. Loads the driver
 * if need be; does not make a context. */
ccmr_status ccmr__device_find(int ordinal, ccmr__device **device);

/** The same, with the primary context retained. Slow the first time. */
ccmr_status ccmr__device_use(int ordinal, ccmr__device **device);

/** The device's idle stream, made at first use. */
ccmr_status ccmr__device_idle_stream(ccmr__device *device, CUstream *stream);

/** Number of devices, once the driver is ready. */
int ccmr__device_number(void);

/*
 * Acting in a device's context:
 *
 *     ccmr__scope scope;
 *     status = ccmr__scope_enter(&scope, device, 0);
 *     if (status != CCMR_SUCCESS) { return status; }
 *     ... driver calls ...
 *     ccmr__scope_leave(&scope);        on every path
 *
 * Enter makes the device's primary context current if another one (or none)
 * is; leave brings back what was. With CCMR__SCOPE_RELAXED the thread's
 * capture mode is relaxed in between, so that calls that would ruin somebody's
 * capture do not.
 */
enum { CCMR__SCOPE_RELAXED = 0x1 };

typedef struct ccmr__scope {
    int pushed;
    int relaxed;
    CUstreamCaptureMode mode; /* to be restored */
} ccmr__scope;

ccmr_status ccmr__scope_enter(ccmr__scope *scope, ccmr__device *device,
                              unsigned flags);
void ccmr__scope_leave(ccmr__scope *scope);

#endif /* CCMR_LIB_CONTEXT_H */
