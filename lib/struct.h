/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Structs that cross the ABI: their first member is their size, and they grow
 * at their end only.
 *
 *   caller's     | size | a | b |                  older: c takes its default
 *   library's    | size | a | b | c |
 *   caller's     | size | a | b | c | d = 0 |      newer: fine while d is 0
 */
#ifndef CCMR_LIB_STRUCT_H
#define CCMR_LIB_STRUCT_H

#include <stddef.h>

#include <cucoremr/status.h>

/**
 * Copy a caller's input struct into the library's `known` bytes at `to`, which
 * hold the defaults. `minimum` is the size of the first version. `what` names
 * the struct in the error. CCMR_ERROR_INVALID_STRUCT: too small, or a member
 * that is not known here is not 0.
 */
ccmr_status ccmr__struct_read(void *to, size_t known, const void *from,
                              size_t minimum, const char *what);

/**
 * Copy the library's output struct to the caller's, up to the caller's size;
 * what the caller has beyond is set to 0, its `size` member stays.
 */
ccmr_status ccmr__struct_write(void *to, const void *from, size_t known,
                               size_t minimum, const char *what);

/** Would ccmr__struct_write() do? For calls that change something first. */
ccmr_status ccmr__struct_check(const void *to, size_t minimum,
                               const char *what);

/** A member that says yes or no. */
typedef struct ccmr__flag {
    const char *name;
    int value;
} ccmr__flag;

/** Members of a struct that was read: each is 0 or 1, so that other values can
 * have a meaning one day. CCMR_ERROR_INVALID_ARGUMENT names the first other. */
ccmr_status ccmr__struct_flags(const char *what, const ccmr__flag *flags,
                               size_t count);

#endif /* CCMR_LIB_STRUCT_H */
