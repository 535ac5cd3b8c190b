/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a bound on what a stack reserves gets into its text:
 *
 *  1. Where the text has {budget}, there the number of bytes goes.
 *  2. Else the lowest resource with an option "hard" is told hard=N.
 *  3. Else a device_pool at the bottom is told own=yes maximum=N.
 *  4. Else "limiting bytes=N" goes directly above the lowest resource.
 *
 * For 2 to 4 the text must be one line of resources without braces, and must
 * not say those options itself.
 */
#ifndef CCMR_BENCH_BUDGET_TEXT_H
#define CCMR_BENCH_BUDGET_TEXT_H

#include <stdint.h>

#include <cucoremr/status.h>

/** The text with a budget in it, to be freed. ccmr_last_error() says why
 * there is none. */
ccmr_status budget_text(const char *text, uint64_t bytes, char **made);

#endif /* CCMR_BENCH_BUDGET_TEXT_H */
