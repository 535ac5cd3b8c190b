/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of bad input share. Each public function has a case, named
 * after it.
 */
#ifndef CCMR_TESTS_PROCESS_BAD_INPUT_H
#define CCMR_TESTS_PROCESS_BAD_INPUT_H

#include <cucoremr/cucoremr.h>

#include "tests/support/public.h"
#include "tests/support/tap.h"

#define BAD_CASE(name) void bad_##name(void);
PUBLIC_MAP(BAD_CASE)
#undef BAD_CASE

/* What the cases work on. */
extern ccmr_resource *pool;
extern ccmr_resource *host;
extern ccmr_resource *logging;
extern ccmr_buffer *open_buffer;
extern ccmr_buffer *closed_buffer;
extern ccmr_stream stream;
extern void *block;

/* Outputs: must never be written by a call that fails. */
extern ccmr_resource *no_resource;
extern ccmr_buffer *no_buffer;
extern ccmr_stream no_stream;
extern void *no_ptr;

#define WILD_ENUM 0x7fffff

/* A failing call: its status, and a word of its message. */
void bad(ccmr_status status, ccmr_status want, const char *word,
         const char *call);

#define BAD(call, want, word) bad((call), CCMR_ERROR_##want, (word), #call)
#define GOOD(call)                                                            \
    tap_ok((call) == CCMR_SUCCESS, "%s: %s", #call, ccmr_last_error()->message)

/*
 * A struct that is `input` or output, on the heap at exactly the length that
 * it claims, so that a sanitizer sees a byte too many: short ones, its own
 * size, newer ones with and without an unknown member.
 */
typedef ccmr_status (*struct_call)(void *given);
void sizes_of(const char *name, size_t known, struct_call call, int input);

#endif
