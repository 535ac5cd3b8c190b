/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small producer of TAP (Test Anything Protocol) for plain C test programs.
 *
 *     int main(void)
 *     {
 *         tap_ok(1 + 1 == 2, "one and one");
 *         tap_is_int(f(3), 9, "f of %d", 3);
 *         return tap_finish();
 *     }
 *
 * The plan is printed by tap_finish(), or earlier by tap_plan() where the
 * number is known and a missing test should count as a failure.
 *
 * Threads: every function may be called from any thread; each prints its lines
 * whole. Fork: output is flushed line by line, so that a child inherits
 * none; the child itself must print nothing and leave with _exit().
 */
#ifndef CCMR_TESTS_SUPPORT_TAP_H
#define CCMR_TESTS_SUPPORT_TAP_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TAP_PRINTF(text, first) __attribute__((format(printf, text, first)))
#define TAP_NORETURN __attribute__((noreturn))
#else
#define TAP_PRINTF(text, first)
#define TAP_NORETURN
#endif

/* Announce the number of tests. At most once, before the first test. */
void tap_plan(unsigned count);

/* One test: good or not, with a description. Returns `good`. On failure the
   file, line and condition are printed as a comment. */
#define tap_ok(good, ...)                                                     \
    tap__ok((good), #good, __FILE__, __LINE__, __VA_ARGS__)
#define tap_pass(...) tap__ok(true, "pass", __FILE__, __LINE__, __VA_ARGS__)
#define tap_fail(...) tap__ok(false, "fail", __FILE__, __LINE__, __VA_ARGS__)

/* One test that two values are equal; both are printed if they aren't. */
#define tap_is_int(got, want, ...)                                            \
    tap__is_int((long long)(got), (long long)(want), #got, __FILE__,          \
                __LINE__, __VA_ARGS__)
#define tap_is_size(got, want, ...)                                           \
    tap__is_size((size_t)(got), (size_t)(want), #got, __FILE__, __LINE__,     \
                 __VA_ARGS__)
#define tap_is_ptr(got, want, ...)                                            \
    tap__is_ptr((got), (want), #got, __FILE__, __LINE__, __VA_ARGS__)
/* Either string may be NULL, which equals NULL only. */
#define tap_is_str(got, want, ...)                                            \
    tap__is_str((got), (want), #got, __FILE__, __LINE__, __VA_ARGS__)

/* One test that is skipped, with the reason. */
void tap_skip(const char *reason, ...) TAP_PRINTF(1, 2);

/* One test that is known to fail for a reason; failing doesn't count. */
#define tap_todo(good, reason, ...) tap__todo((good), (reason), __VA_ARGS__)

/* A comment in the output. */
void tap_diag(const char *format, ...) TAP_PRINTF(1, 2);

/* The whole program is skipped: prints the empty plan and exits with 0. To be
   called before the first test. */
TAP_NORETURN void tap_skip_all(const char *reason, ...) TAP_PRINTF(1, 2);

/* Nothing more makes sense: prints "Bail out!" and exits with 99. */
TAP_NORETURN void tap_bail_out(const char *reason, ...) TAP_PRINTF(1, 2);

/* Tests that failed so far. */
unsigned tap_failures(void);

/* Prints the plan if tap_plan() didn't. Returns main's exit status: 0 if all
   passed and a plan given before was kept, else 1. */
int tap_finish(void);

/* What the macros above call. */
bool tap__ok(bool good, const char *what, const char *file, int line,
             const char *format, ...) TAP_PRINTF(5, 6);
bool tap__is_int(long long got, long long want, const char *what,
                 const char *file, int line, const char *format, ...)
    TAP_PRINTF(6, 7);
bool tap__is_size(size_t got, size_t want, const char *what, const char *file,
                  int line, const char *format, ...) TAP_PRINTF(6, 7);
bool tap__is_ptr(const void *got, const void *want, const char *what,
                 const char *file, int line, const char *format, ...)
    TAP_PRINTF(6, 7);
bool tap__is_str(const char *got, const char *want, const char *what,
                 const char *file, int line, const char *format, ...)
    TAP_PRINTF(6, 7);
bool tap__todo(bool good, const char *reason, const char *format, ...)
    TAP_PRINTF(3, 4);

#ifdef __cplusplus
}
#endif

#endif
