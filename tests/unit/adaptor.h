/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the unit tests of the adaptors share: a puppet as upstream, and calls
 * that must succeed.
 */
#ifndef CCMR_TESTS_UNIT_ADAPTOR_H
#define CCMR_TESTS_UNIT_ADAPTOR_H

#include <criterion/criterion.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cucoremr/cucoremr.h>

#include "tests/support/puppet.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

#define LEGACY CCMR_STREAM_LEGACY

/* A call must succeed. */
#define GOOD(call)                                                            \
    do {                                                                      \
        ccmr_status good_status = (call);                                     \
        cr_assert_eq(good_status, CCMR_SUCCESS, "%s: %s: %s", #call,          \
                     ccmr_status_name(good_status),                           \
                     ccmr_last_error()->message);                             \
    } while (0)

/* A call must fail in this way. */
#define BAD(call, wanted)                                                     \
    do {                                                                      \
        ccmr_status bad_status = (call);                                      \
        cr_assert_eq(bad_status, wanted, "%s: %s, not %s", #call,             \
                     ccmr_status_name(bad_status), #wanted);                  \
    } while (0)

/* For what runs after a test, where a failed assertion would not count. */
#define MUST(condition)                                                       \
    do {                                                                      \
        if (!(condition)) {                                                   \
            (void)fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__,          \
                          #condition);                                        \
            abort();                                                          \
        }                                                                     \
    } while (0)

static inline void *take_on(ccmr_resource *resource, size_t bytes,
                            ccmr_stream stream)
{
    void *ptr = NULL;

    GOOD(ccmr_resource_allocate(resource, bytes, 0, stream, &ptr));
    return ptr;
}

static inline void *take(ccmr_resource *resource, size_t bytes)
{
    return take_on(resource, bytes, LEGACY);
}

static inline void give(ccmr_resource *resource, void *ptr, size_t bytes)
{
    GOOD(ccmr_resource_deallocate(resource, ptr, bytes, 0, LEGACY));
}

static inline ccmr_stats stats_of(ccmr_resource *resource)
{
    ccmr_stats stats = {.size = sizeof(stats)};

    GOOD(ccmr_resource_stats(resource, &stats));
    return stats;
}

static inline const char *option_of(ccmr_resource *resource, const char *name)
{
    static char text[256];

    GOOD(ccmr_resource_option_get(resource, name, text, sizeof(text), NULL));
    return text;
}

#endif
