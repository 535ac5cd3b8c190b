/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Setting the calling thread's error detail. The first detector describes the
 * failure, once; those above pass its status on.
 */
#ifndef CCMR_LIB_ERROR_H
#define CCMR_LIB_ERROR_H

#include <stddef.h>

#include <cucoremr/status.h>

/**
 * Start a new detail with a printf message and return `status`. Everything
 * else in the detail is cleared. Allocates the thread's detail at the first
 * failure; where that fails, a static one is used.
 */
ccmr_status ccmr__fail(ccmr_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));

/**
 * A driver call failed: maps the result to a status (out of memory stays
 * device out-of-memory; ask ccmr__fail_driver_host() where the call takes host
 * memory), records call and result, and takes note of DEINITIALIZED.
 */
ccmr_status ccmr__fail_driver(int result, const char *call)
    __attribute__((cold));

/** The same for calls whose OUT_OF_MEMORY means host memory. */
ccmr_status ccmr__fail_driver_host(int result, const char *call)
    __attribute__((cold));

/** The calling thread's detail, to add numbers, resource, column. */
ccmr_error_detail *ccmr__error(void);

/** Name the resource that refused, if nobody below has been named yet. */
void ccmr__error_name_resource(const char *name);

#endif /* CCMR_LIB_ERROR_H */
