/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the value of one option; lib/text.h is what others need.
 */
#ifndef CCMR_LIB_VALUE_H
#define CCMR_LIB_VALUE_H

#include <stddef.h>
#include <stdint.h>

#include <cucoremr/stack.h>

/* One value being read. On one thread's stack. */
typedef struct ccmr__reading {
    const char *text;
    const char *at; /* as far as it has been read */
    ccmr_option_value *value;
    char *message;
    size_t size;
} ccmr__reading;

/* The functions below return 1, or 0 after they have set the message. */

/** Say what is wrong with the value, after the value itself. Returns 0. */
int ccmr__reading_refuse(const ccmr__reading *p, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));

/** The digits here, at least one. Without a message, 0 if they overflow. */
int ccmr__reading_digits(ccmr__reading *p, uint64_t *number);

/** A byte count, or a percentage where the option takes one. */
int ccmr__reading_bytes(ccmr__reading *p, const ccmr_option *option);

static inline int ccmr__is_digit(char c)
{
    return c >= '0' && c <= '9';
}

#endif /* CCMR_LIB_VALUE_H */
