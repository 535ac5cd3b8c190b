/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of options, from text. Nothing here depends on the locale.
 */
#include "lib/value.h"

#include <string.h>

#include "lib/nearest.h"
#include "lib/text.h"

int ccmr__reading_refuse(const ccmr__reading *p, const char *format, ...)
{
    ccmr__text message;
    va_list list;

    ccmr__text_init(&message, p->message, p->size);
    ccmr__text_add_shown(&message, p->text, strlen(p->text));
    ccmr__text_add(&message, " ");
    va_start(list, format);
    ccmr__text_add_list(&message, format, list);
    va_end(list);
    return 0;
}

/* One of an option's names was expected. */
static int refuse_name(const ccmr__reading *p, const char *names,
                       const char *name, size_t length)
{
    ccmr__nearest nearest;
    ccmr__text message;
    const char *known;
    size_t known_length;
    size_t i;

    ccmr__nearest_start(&nearest, name, length);
    for (i = 0; (known = ccmr__names_get(names, i, &known_length)) != NULL;
         i++) {
        ccmr__nearest_offer(&nearest, known, known_length);
    }
    ccmr__text_init(&message, p->message, p->size);
    ccmr__text_add_shown(&message, name, length);
    if (nearest.best != NULL) {
        ccmr__text_add(&message, " is unknown; did you mean '%.*s'?",
                       (int)nearest.best_length, nearest.best);
        return 0;
    }
    for (i = 0; (known = ccmr__names_get(names, i, &known_length)) != NULL;
         i++) {
        ccmr__text_add(&message, "%s%.*s", i != 0 ? ", " : " is none of ",
                       (int)known_length, known);
    }
    return 0;
}

int ccmr__reading_digits(ccmr__reading *p, uint64_t *number)
{
    *number = 0;
    for (; ccmr__is_digit(*p->at); p->at++) {
        if (__builtin_mul_overflow(*number, 10u, number) ||
            __builtin_add_overflow(*number, (unsigned)(*p->at - '0'),
                                   number)) {
            return 0;
        }
    }
    return 1;
}

static int parse_integer(ccmr__reading *p)
{
    int negative = *p->at == '-';
    uint64_t most = (uint64_t)INT64_MAX + (unsigned)negative;
    uint64_t number;

    p->at += negative;
    if (!ccmr__is_digit(*p->at)) {
        return ccmr__reading_refuse(p, "is no whole number");
    }
    if (!ccmr__reading_digits(p, &number)) {
        return ccmr__reading_refuse(p, "is too large");
    }
    if (*p->at != '\0') {
        return ccmr__reading_refuse(p, "is no whole number");
    }
    if (number > most) {
        return ccmr__reading_refuse(p, "is too large");
    }
    /* The lowest number has no positive twin. */
    p->value->integer =
        negative && number != 0 ? -(int64_t)(number - 1) - 1 : (int64_t)number;
    return 1;
}

static int parse_boolean(const ccmr__reading *p)
{
    static const char *const words[] = {"no",    "yes",  "off", "on",
                                        "false", "true", "0",   "1"};
    size_t i;

    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(p->text, words[i]) == 0) {
            p->value->integer = (int64_t)(i & 1);
            return 1;
        }
    }
    return ccmr__reading_refuse(
        p, "is neither yes nor no (or on, off, true, false, 1, 0)");
}

static int find_name(const char *names, const char *name, size_t length,
                     size_t *index)
{
    const char *known;
    size_t known_length;
    size_t i;

    for (i = 0; (known = ccmr__names_get(names, i, &known_length)) != NULL;
         i++) {
        if (known_length == length && memcmp(known, name, length) == 0) {
            *index = i;
            return 1;
        }
    }
    return 0;
}

static int parse_choice(const ccmr__reading *p, const ccmr_option *option)
{
    size_t length = strlen(p->text);
    size_t i;

    if (!find_name(option->names, p->text, length, &i)) {
        return refuse_name(p, option->names, p->text, length);
    }
    p->value->integer = (int64_t)i;
    return 1;
}

static int parse_flags(ccmr__reading *p, const ccmr_option *option)
{
    uint64_t bits = 0;
    size_t length;
    size_t i;

    if (strcmp(p->text, "none") == 0) {
        return 1;
    }
    for (;;) {
        length = strcspn(p->at, "+");
        if (!find_name(option->names, p->at, length, &i) || i >= 64) {
            return refuse_name(p, option->names, p->at, length);
        }
        bits |= UINT64_C(1) << i;
        p->at += length;
        if (*p->at == '\0') {
            break;
        }
        p->at++;
    }
    p->value->number = bits;
    return 1;
}

static int parse_by_type(ccmr__reading *p, const ccmr_option *option)
{
    switch (option->type) {
    case CCMR_OPTION_BYTES:
        return ccmr__reading_bytes(p, option);
    case CCMR_OPTION_INTEGER:
        return parse_integer(p);
    case CCMR_OPTION_BOOLEAN:
        return parse_boolean(p);
    case CCMR_OPTION_TEXT:
        return 1;
    case CCMR_OPTION_CHOICE:
        return parse_choice(p, option);
    case CCMR_OPTION_FLAGS:
        return parse_flags(p, option);
    }
    return ccmr__reading_refuse(p, "is of an unknown type");
}

int ccmr__value_parse(const ccmr_option *option, const char *text,
                      ccmr_option_value *value, char *message, size_t size)
{
    ccmr_option_value made = {.given = 1, .set = 1, .text = text};
    ccmr__reading p = {text, text, &made, message, size};

    if (!parse_by_type(&p, option)) {
        return 0;
    }
    *value = made;
    return 1;
}
