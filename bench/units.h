/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Byte counts and times as people write them.
 */
#ifndef CCMR_BENCH_UNITS_H
#define CCMR_BENCH_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Enough for any of the texts below. */
#define UNITS_TEXT 32

/** "64 KiB", "11.02 GiB": three or four digits and a unit. Returns `text`. */
const char *units_bytes(uint64_t bytes, char text[UNITS_TEXT]);

/** "45.3", "66600", "28.0ms": nanoseconds. Returns `text`. */
const char *units_ns(double ns, char text[UNITS_TEXT]);

/** "68 239". Returns `text`. */
const char *units_count(uint64_t count, char text[UNITS_TEXT]);

/** Read a byte count such as 64KiB or 0.05GiB; false: `message` says why. */
bool units_parse_bytes(const char *text, uint64_t *bytes, char *message,
                       size_t size);

#endif /* CCMR_BENCH_UNITS_H */
