/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words and values of a stack text.
 */
#include "lib/stack_scan.h"

#include <string.h>

#include "lib/error.h"
#include "lib/text.h"

#define BLANKS " \t\n\v\f\r"

/* What ends a bare value, or has no place in it. */
#define VALUE_ENDS BLANKS "|{}\""

/* What ends a name, or what stands in the place of one. */
#define WORD_ENDS VALUE_ENDS "="

ccmr__shown ccmr__word_shown(ccmr__word word)
{
    ccmr__shown shown = {""};
    ccmr__text text;

    ccmr__text_init(&text, shown.text, sizeof(shown.text));
    ccmr__text_add_shown(&text, word.start, word.length);
    return shown;
}

int ccmr__word_is(ccmr__word word, const char *name)
{
    return strlen(name) == word.length &&
           memcmp(name, word.start, word.length) == 0;
}

void ccmr__scan_blanks(ccmr__scan *scan)
{
    scan->at += strspn(scan->at, BLANKS);
}

ccmr__word ccmr__scan_word(ccmr__scan *scan)
{
    ccmr__word word = {scan->at, strcspn(scan->at, WORD_ENDS)};

    scan->at += word.length;
    return word;
}

ccmr__word ccmr__scan_peek(const ccmr__scan *scan)
{
    ccmr__word word = {scan->at, strcspn(scan->at, WORD_ENDS)};

    if (word.length == 0 && *scan->at != '\0') {
        word.length = 1;
    }
    return word;
}

int ccmr__scan_at_end(const ccmr__scan *scan)
{
    return *scan->at == '\0' || strchr("|{}", *scan->at) != NULL;
}

int ccmr__scan_at_value(const ccmr__scan *scan)
{
    return *scan->at == '"' || strcspn(scan->at, VALUE_ENDS) != 0;
}

static ccmr_status scan_quoted(ccmr__scan *scan)
{
    const char *open = scan->at;

    for (scan->at++; *scan->at != '"'; scan->at++) {
        if (*scan->at == '\0') {
            return ccmr__scan_fail(scan, open, NULL, CCMR_ERROR_SYNTAX,
                                   "the quote is not closed");
        }
        if (*scan->at == '\\') {
            if (scan->at[1] != '"' && scan->at[1] != '\\') {
                return ccmr__scan_fail(scan, scan->at, NULL, CCMR_ERROR_SYNTAX,
                                       "in quotes, '\\' stands only before "
                                       "'\"' and '\\'");
            }
            scan->at++;
        }
        *scan->strings++ = *scan->at;
    }
    scan->at++;
    if (!ccmr__scan_at_end(scan) && strchr(BLANKS, *scan->at) == NULL) {
        return ccmr__scan_fail(scan, scan->at, NULL, CCMR_ERROR_SYNTAX,
                               "a blank is missing after the quote");
    }
    return CCMR_SUCCESS;
}

static ccmr_status scan_bare(ccmr__scan *scan)
{
    size_t length = strcspn(scan->at, VALUE_ENDS);

    memcpy(scan->strings, scan->at, length);
    scan->strings += length;
    scan->at += length;
    if (*scan->at == '"') {
        return ccmr__scan_fail(scan, scan->at, NULL, CCMR_ERROR_SYNTAX,
                               "a value with quotes in it must stand in "
                               "quotes, where they are written \\\"");
    }
    return CCMR_SUCCESS;
}

ccmr_status ccmr__scan_value(ccmr__scan *scan, const char **value)
{
    const char *start = scan->strings;
    ccmr_status status;

    status = *scan->at == '"' ? scan_quoted(scan) : scan_bare(scan);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    *scan->strings++ = '\0';
    *value = start;
    return CCMR_SUCCESS;
}

int ccmr__value_needs_quotes(const char *value)
{
    return value[0] == '\0' || value[strcspn(value, VALUE_ENDS)] != '\0';
}

ccmr_status ccmr__scan_fail(const ccmr__scan *scan, const char *at,
                            const char *kind, ccmr_status status,
                            const char *format, ...)
{
    char buffer[sizeof(((ccmr_error_detail *)0)->message)];
    ccmr__text message;
    va_list list;

    ccmr__text_init(&message, buffer, sizeof(buffer));
    va_start(list, format);
    ccmr__text_add_list(&message, format, list);
    va_end(list);
    (void)ccmr__fail(status, "%s", buffer);
    ccmr__error()->column = (int)(at - scan->text) + 1;
    if (kind != NULL) {
        ccmr__error_name_resource(kind);
    }
    return status;
}

ccmr_status ccmr__scan_expected(const ccmr__scan *scan, const char *what)
{
    if (*scan->at == '\0') {
        return ccmr__scan_fail(scan, scan->at, NULL, CCMR_ERROR_SYNTAX,
                               "%s is expected, but the text ends", what);
    }
    return ccmr__scan_fail(scan, scan->at, NULL, CCMR_ERROR_SYNTAX,
                           "%s is expected, not %s", what,
                           CCMR__SHOWN(ccmr__scan_peek(scan)));
}
