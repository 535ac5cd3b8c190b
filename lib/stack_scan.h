/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words and values of a stack text, and telling what is wrong where.
 */
#ifndef CCMR_LIB_STACK_SCAN_H
#define CCMR_LIB_STACK_SCAN_H

#include <stddef.h>

#include <cucoremr/status.h>

/* Where the parser is. */
typedef struct ccmr__scan {
    const char *text;
    const char *at;
    char *strings; /* where the next value goes: there is room for all */
} ccmr__scan;

/* A piece of the text: a name, or what stands in the place of one. */
typedef struct ccmr__word {
    const char *start;
    size_t length;
} ccmr__word;

/** A word fit for a message; see CCMR__SHOWN. */
typedef struct ccmr__shown {
    char text[48];
} ccmr__shown;

#define CCMR__SHOWN(word) (ccmr__word_shown(word).text)

ccmr__shown ccmr__word_shown(ccmr__word word);

int ccmr__word_is(ccmr__word word, const char *name);

void ccmr__scan_blanks(ccmr__scan *scan);

/** The word here, empty if there is none. */
ccmr__word ccmr__scan_word(ccmr__scan *scan);

/** The same without going past it; one character where none begins. */
ccmr__word ccmr__scan_peek(const ccmr__scan *scan);

/** 1 at the end, '|', '{' and '}'. */
int ccmr__scan_at_end(const ccmr__scan *scan);

/** A value that is not empty begins here. */
int ccmr__scan_at_value(const ccmr__scan *scan);

/** The value here, without quotes, as a string among `strings`. */
ccmr_status ccmr__scan_value(ccmr__scan *scan, const char **value);

/** 1 if a value can only be written in quotes. */
int ccmr__value_needs_quotes(const char *value);

/**
 * Everything that is wrong with a text is told here: at which place of it,
 * about which kind of resource (or NULL). Returns `status`.
 */
ccmr_status ccmr__scan_fail(const ccmr__scan *scan, const char *at,
                            const char *kind, ccmr_status status,
                            const char *format, ...)
    __attribute__((format(printf, 5, 6), cold));

/** Something else than what stands here is expected. */
ccmr_status ccmr__scan_expected(const ccmr__scan *scan, const char *what)
    __attribute__((cold));

#endif /* CCMR_LIB_STACK_SCAN_H */
