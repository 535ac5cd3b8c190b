/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values as text: byte counts, choices, flags.
 */
#ifndef CCMR_LIB_TEXT_H
#define CCMR_LIB_TEXT_H

#include <stdarg.h>
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
void ccmr__text_add_list(ccmr__text *text, const char *format, va_list list)
    __attribute__((format(printf, 2, 0)));

/** Somebody's text in single quotes, fit for a message: what is long is cut,
 * what is not printable is replaced. */
void ccmr__text_add_shown(ccmr__text *text, const char *shown, size_t length);

/** A byte count in the largest unit that is exact: "8GiB", "1536KiB". */
void ccmr__text_add_bytes(ccmr__text *text, uint64_t bytes);

/** Flags by the names of an option ("a|b|c"), joined by '+', or "none". Bits
 * without a name come last, as a number. */
void ccmr__text_add_flags(ccmr__text *text, const char *names, uint64_t bits);

/**
 * One of the names of an option ("a|b|c") and its length; NULL past the last.
 */
const char *ccmr__names_get(const char *names, size_t i, size_t *length);

/** 1 if a kind, an option or so may have that name: [a-z][a-z0-9_]*, at most
 * 31 characters. */
int ccmr__name_is_good(const char *name);

/**
 * Parse one option's value as `option` says. On failure `*message` (of `size`
 * bytes) says what is wrong with it, and `value` is as it was. Returns 1 or 0.
 * `value->text` is `text`; `value->given` is 1.
 */
int ccmr__value_parse(const ccmr_option *option, const char *text,
                      ccmr_option_value *value, char *message, size_t size);

/** Bytes of a BYTES value; a percentage is of `total`, rounded down to 256
 * bytes (100% is all of it). */
uint64_t ccmr__value_bytes(const ccmr_option_value *value, uint64_t total);

/** End of an option_get op: copy `text` to the caller. CCMR_SUCCESS. */
ccmr_status ccmr__text_give(const char *text, char *to, size_t capacity,
                            size_t *length);

#endif /* CCMR_LIB_TEXT_H */
