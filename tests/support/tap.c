/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/tap.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Guarded by `lock`, which is also held while a test's lines are printed. */
static struct {
    pthread_mutex_t lock;
    unsigned planned; /* 0: not announced */
    unsigned run;
    unsigned failed;
} tap = {PTHREAD_MUTEX_INITIALIZER, 0, 0, 0};

/* A description may hold neither a line end nor '#', which starts a
   directive. */
static void clean(char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\n' || *text == '\r')
            *text = ' ';
        else if (*text == '#')
            *text = '%';
    }
}

static void format_clean(char *text, size_t size, const char *format,
                         va_list args) TAP_PRINTF(3, 0);

static void format_clean(char *text, size_t size, const char *format,
                         va_list args)
{
    (void)vsnprintf(text, size, format, args);
    clean(text);
}

/* Prints the test's line and returns with the lock held, so that comments on
   it can follow. */
static void begin_test(bool good, const char *directive, const char *reason,
                       const char *format, va_list args) TAP_PRINTF(4, 0);

static void begin_test(bool good, const char *directive, const char *reason,
                       const char *format, va_list args)
{
    char text[512];
    char why[256] = "";

    format_clean(text, sizeof(text), format, args);
    if (reason != NULL) {
        (void)snprintf(why, sizeof(why), "%s", reason);
        clean(why);
    }
    (void)pthread_mutex_lock(&tap.lock);
    tap.run++;
    if (!good && directive == NULL)
        tap.failed++;
    (void)printf("%sok %u - %s%s%s%s%s\n", good ? "" : "not ", tap.run, text,
                 directive != NULL ? " # " : "",
                 directive != NULL ? directive : "", why[0] != '\0' ? " " : "",
                 why);
}

static void end_test(void)
{
    (void)fflush(stdout);
    (void)pthread_mutex_unlock(&tap.lock);
}

void tap_plan(unsigned count)
{
    (void)pthread_mutex_lock(&tap.lock);
    tap.planned = count;
    (void)printf("1..%u\n", count);
    (void)fflush(stdout);
    (void)pthread_mutex_unlock(&tap.lock);
}

bool tap__ok(bool good, const char *what, const char *file, int line,
             const char *format, ...)
{
    va_list args;

    va_start(args, format);
    begin_test(good, NULL, NULL, format, args);
    va_end(args);
    if (!good)
        (void)printf("#   %s:%d: %s\n", file, line, what);
    end_test();
    return good;
}

bool tap__is_int(long long got, long long want, const char *what,
                 const char *file, int line, const char *format, ...)
{
    bool good = got == want;
    va_list args;

    va_start(args, format);
    begin_test(good, NULL, NULL, format, args);
    va_end(args);
    if (!good)
        (void)printf("#   %s:%d: %s is %lld, should be %lld\n", file, line,
                     what, got, want);
    end_test();
    return good;
}

bool tap__is_size(size_t got, size_t want, const char *what, const char *file,
                  int line, const char *format, ...)
{
    bool good = got == want;
    va_list args;

    va_start(args, format);
    begin_test(good, NULL, NULL, format, args);
    va_end(args);
    if (!good)
        (void)printf("#   %s:%d: %s is %zu, should be %zu\n", file, line, what,
                     got, want);
    end_test();
    return good;
}

bool tap__is_ptr(const void *got, const void *want, const char *what,
                 const char *file, int line, const char *format, ...)
{
    bool good = got == want;
    va_list args;

    va_start(args, format);
    begin_test(good, NULL, NULL, format, args);
    va_end(args);
    if (!good)
        (void)printf("#   %s:%d: %s is %p, should be %p\n", file, line, what,
                     got, want);
    end_test();
    return good;
}

bool tap__is_str(const char *got, const char *want, const char *what,
                 const char *file, int line, const char *format, ...)
{
    bool good =
        got == want || (got != NULL && want != NULL && strcmp(got, want) == 0);
    va_list args;

    va_start(args, format);
    begin_test(good, NULL, NULL, format, args);
    va_end(args);
    if (!good)
        (void)printf("#   %s:%d: %s is '%s', should be '%s'\n", file, line,
                     what, got != NULL ? got : "(null)",
                     want != NULL ? want : "(null)");
    end_test();
    return good;
}

bool tap__todo(bool good, const char *reason, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    begin_test(good, "TODO", reason, format, args);
    va_end(args);
    end_test();
    return good;
}

void tap_skip(const char *reason, ...)
{
    char text[256];
    va_list args;

    va_start(args, reason);
    format_clean(text, sizeof(text), reason, args);
    va_end(args);
    (void)pthread_mutex_lock(&tap.lock);
    tap.run++;
    (void)printf("ok %u # SKIP %s\n", tap.run, text);
    end_test();
}

void tap_diag(const char *format, ...)
{
    char text[2048];
    char *line;
    char *rest = text;
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    (void)pthread_mutex_lock(&tap.lock);
    while ((line = strsep(&rest, "\n")) != NULL) {
        if (*line != '\0' || rest != NULL)
            (void)printf("# %s\n", line);
    }
    end_test();
}

void tap_skip_all(const char *reason, ...)
{
    char text[256];
    va_list args;

    va_start(args, reason);
    format_clean(text, sizeof(text), reason, args);
    va_end(args);
    (void)printf("1..0 # SKIP %s\n", text);
    (void)fflush(stdout);
    exit(0);
}

void tap_bail_out(const char *reason, ...)
{
    char text[512];
    va_list args;

    va_start(args, reason);
    format_clean(text, sizeof(text), reason, args);
    va_end(args);
    (void)printf("Bail out! %s\n", text);
    (void)fflush(stdout);
    exit(99);
}

unsigned tap_failures(void)
{
    unsigned failed;

    (void)pthread_mutex_lock(&tap.lock);
    failed = tap.failed;
    (void)pthread_mutex_unlock(&tap.lock);
    return failed;
}

int tap_finish(void)
{
    bool good;

    (void)pthread_mutex_lock(&tap.lock);
    if (tap.planned == 0) {
        tap.planned = tap.run;
        (void)printf("1..%u\n", tap.run);
    } else if (tap.planned != tap.run) {
        (void)printf("# planned %u tests, ran %u\n", tap.planned, tap.run);
    }
    good = tap.failed == 0 && tap.run == tap.planned;
    end_test();
    return good ? 0 : 1;
}
