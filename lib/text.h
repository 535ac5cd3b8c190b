/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values as text: byte counts, choices, flags.
 */
#ifndef CCMR_LIB_TEXT_H
#define CCMR_LIB_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include <cucoremr/stack.h>

/*
 * Text put together in a caller's buffer: what does not fit is counted, not
 * written; the result always ends with 0 where capacity is not 0.
 */
typedef struct ccmr__text {
    char *start;
    size_t capacity;
    size_t length; /* needed so far, without the final 0 */
} ccmr__text;

void ccmr__text_init(ccmr__text *text, char *start, size_t capacity);
void ccmr__text_add(ccmr__text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** A byte count in the largest unit that is exact: "8GiB", "1536KiB". */
void ccmr__text_add_bytes(ccmr__text *text, uint64_t bytes);

/** Flags by the names of an option ("a|b|c"), joined by '+', or "none". */
void ccmr__text_add_flags(ccmr__text *text, const char *names, uint64_t bits);

/**
 * Parse one option's value as `option` says. On failure `*message` (of `size`
 * bytes) says what is wrong with it. Returns 1 or 0.
 */
int ccmr__value_parse(const ccmr_option *option, const char *text,
                      ccmr_option_value *value, char *message, size_t size);

/** Bytes of a BYTES value; a percentage is of `total`. */
uint64_t ccmr__value_bytes(const ccmr_option_value *value, uint64_t total);

/** End of an option_get op: copy `text` to the caller. CCMR_SUCCESS. */
ccmr_status ccmr__text_give(const char *text, char *to, size_t capacity,
                            size_t *length);

#endif /* CCMR_LIB_TEXT_H */
