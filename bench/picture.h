/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A picture that gnuplot draws: OUT.svg, .png or .pdf, beside which its data,
 * OUT.dat, and its script, OUT.gp, stay.
 */
#ifndef CCMR_BENCH_PICTURE_H
#define CCMR_BENCH_PICTURE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct picture {
    const char *path;
    const char *terminal; /* gnuplot's word for its kind */
    char data[PATH_MAX];
    char script[PATH_MAX];
} picture;

/** Its names. False, and said why, where `path` has no known ending. */
bool picture_begin(picture *made, const char *path);

/** Text in double quotes, for gnuplot, which reads escapes in it. */
void picture_quote(FILE *to, const char *text);

/** The script's start: so many panels above each other. */
void picture_panels(const picture *of, FILE *to, size_t rows);

/** Have gnuplot run the script. Where it is missing a message says so, and all
 * is well. */
bool picture_draw(const picture *of);

#endif /* CCMR_BENCH_PICTURE_H */
