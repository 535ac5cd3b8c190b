/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of options, from text. Nothing here depends on the locale.
 */
#include "lib/text.h"

#include <assert.h>
#include <string.h>

#include "lib/arith.h"
#include "lib/nearest.h"

/* Digits after the point that are exact with 64 bits; see fraction_of(). */
#define FRACTION_MOST 9

/* What a fraction of a unit is rounded up to. */
#define FRACTION_UNIT 256

/* One value being parsed. */
typedef struct parse {
    const char *text;
    const char *at;
    ccmr_option_value *value;
    char *message;
    size_t size;
} parse;

static int refuse(const parse *p, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));

/* What is wrong with the value, after the value itself. */
static int refuse(const parse *p, const char *format, ...)
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
static int refuse_name(const parse *p, const char *names, const char *name,
                       size_t length)
{
    ccmr__nearest nearest;
    ccmr__text message;
    const char *known;
    size_t known_length;
    size_t i;

    ccmr__text_init(&message, p->message, p->size);
    ccmr__text_add_shown(&message, name, length);
    ccmr__text_add(&message, " is none of ");
    ccmr__nearest_start(&nearest, name, length);
    for (i = 0; (known = ccmr__names_get(names, i, &known_length)) != NULL;
         i++) {
        ccmr__text_add(&message, "%s%.*s", i != 0 ? ", " : "",
                       (int)known_length, known);
        ccmr__nearest_offer(&nearest, known, known_length);
    }
    if (nearest.best != NULL) {
        ccmr__text_add(&message, "; did you mean '%.*s'?",
                       (int)nearest.best_length, nearest.best);
    }
    return 0;
}

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Digits at p->at, of which there is one at least; 0 if they overflow. */
static int parse_digits(parse *p, uint64_t *number)
{
    *number = 0;
    for (; is_digit(*p->at); p->at++) {
        if (__builtin_mul_overflow(*number, 10u, number) ||
            __builtin_add_overflow(*number, (unsigned)(*p->at - '0'),
                                   number)) {
            return 0;
        }
    }
    return 1;
}

/*
 * numerator / denominator of a unit, rounded up, in 64 bits: with
 * unit = q * denominator + r it is numerator * q + numerator * r / denominator,
 * where numerator < denominator <= 10^9 and r < denominator.
 */
static uint64_t fraction_of(uint64_t unit, uint64_t numerator,
                            uint64_t denominator)
{
    assert(numerator < denominator);
    assert(denominator <= 1000000000u);
    return numerator * (unit / denominator) +
           (numerator * (unit % denominator) + denominator - 1) / denominator;
}

/* A decimal number: whole + numerator / denominator. */
typedef struct decimal {
    uint64_t whole;
    uint64_t numerator;
    uint64_t denominator; /* 1 if no point was written */
} decimal;

static int parse_decimal(parse *p, decimal *number)
{
    const char *start;

    if (*p->at == '-' && is_digit(p->at[1])) {
        return refuse(p, "is below zero");
    }
    if (!is_digit(*p->at)) {
        return refuse(p, "is no number of bytes, such as 4096 or 8GiB");
    }
    if (!parse_digits(p, &number->whole)) {
        return refuse(p, "is too large");
    }
    if (*p->at != '.') {
        return 1;
    }
    p->at++;
    start = p->at;
    for (; is_digit(*p->at); p->at++) {
        if (p->at - start == FRACTION_MOST) {
            return refuse(p, "has more than %d digits after the point",
                          FRACTION_MOST);
        }
        number->numerator = number->numerator * 10 + (unsigned)(*p->at - '0');
        number->denominator *= 10;
    }
    if (p->at == start) {
        return refuse(p, "has no digit after the point");
    }
    return 1;
}

static int parse_percent(const parse *p, const ccmr_option *option,
                         const decimal *number)
{
    if (option->names == NULL || strcmp(option->names, "%") != 0) {
        return refuse(p, "is a percentage, which is not accepted here");
    }
    if (number->denominator > 100) {
        return refuse(p, "has more than 2 digits after the point");
    }
    if (number->whole > 100 ||
        (number->whole == 100 && number->numerator != 0)) {
        return refuse(p, "is more than 100%%");
    }
    p->value->percent = 1;
    p->value->number =
        number->whole * 100 + number->numerator * (100 / number->denominator);
    return 1;
}

typedef struct unit {
    const char *name;
    uint64_t bytes;
} unit;

static const unit units[] = {
    {"B", 1},
    {"KiB", UINT64_C(1) << 10},
    {"MiB", UINT64_C(1) << 20},
    {"GiB", UINT64_C(1) << 30},
    {"TiB", UINT64_C(1) << 40},
    {"KB", UINT64_C(1000)},
    {"kB", UINT64_C(1000)},
    {"MB", UINT64_C(1000000)},
    {"GB", UINT64_C(1000000000)},
    {"TB", UINT64_C(1000000000000)},
};

#define UNIT_COUNT (sizeof(units) / sizeof(units[0]))

/* A unit that there is not; 8G is refused since it means two things. */
static int refuse_unit(const parse *p, const char *name)
{
    ccmr__nearest nearest;
    size_t i;

    if (name[0] != '\0' && strchr("kKmMgGtT", name[0]) != NULL &&
        name[1] == '\0') {
        char letter = name[0] == 'k' ? 'K' : name[0];

        letter = letter >= 'a' ? (char)(letter - 'a' + 'A') : letter;
        return refuse(p,
                      "has a unit that means two things: write '%ciB' (powers "
                      "of 1024) or '%cB' (powers of 1000)",
                      letter, letter);
    }
    ccmr__nearest_start(&nearest, name, strlen(name));
    for (i = 0; i < UNIT_COUNT; i++) {
        ccmr__nearest_offer(&nearest, units[i].name, strlen(units[i].name));
    }
    if (nearest.best != NULL) {
        return refuse(p, "has an unknown unit; did you mean '%s'?",
                      nearest.best);
    }
    return refuse(p, "has an unknown unit; known are B, KiB, MiB, GiB, TiB, "
                     "KB, MB, GB, TB");
}

static int find_unit(const parse *p, const decimal *number, uint64_t *bytes)
{
    size_t i;

    if (*p->at == '\0' && p->at[-1] == ' ') {
        return refuse(p, "ends with a blank");
    }
    for (i = 0; i < UNIT_COUNT; i++) {
        if (strcmp(p->at, units[i].name) == 0) {
            break;
        }
    }
    if (i == UNIT_COUNT && *p->at != '\0') {
        return refuse_unit(p, p->at);
    }
    *bytes = i == UNIT_COUNT ? 1 : units[i].bytes;
    if (*bytes == 1 && number->denominator != 1) {
        return refuse(p, "has a fraction of a byte");
    }
    return 1;
}

/*
 * 4096, 64KiB, 1.5GiB, "0.05 GiB", 12.5%. What a fraction gives is rounded up
 * to 256 bytes, so that nobody has to look for a fraction that comes out even.
 */
static int parse_bytes(parse *p, const ccmr_option *option)
{
    decimal number = {0, 0, 1};
    uint64_t unit_bytes = 1;
    uint64_t bytes;

    if (!parse_decimal(p, &number)) {
        return 0;
    }
    while (*p->at == ' ') {
        p->at++;
    }
    if (strcmp(p->at, "%") == 0) {
        return parse_percent(p, option, &number);
    }
    if (!find_unit(p, &number, &unit_bytes)) {
        return 0;
    }
    if (__builtin_mul_overflow(number.whole, unit_bytes, &bytes)) {
        return refuse(p, "is too large");
    }
    if (number.denominator != 1) {
        if (__builtin_add_overflow(
                bytes,
                fraction_of(unit_bytes, number.numerator, number.denominator),
                &bytes) ||
            !ccmr__round_up(bytes, FRACTION_UNIT, &bytes)) {
            return refuse(p, "is too large");
        }
    }
    p->value->number = bytes;
    return 1;
}

static int parse_integer(parse *p)
{
    int negative = *p->at == '-';
    uint64_t most = (uint64_t)INT64_MAX + (unsigned)negative;
    uint64_t number;

    p->at += negative;
    if (!is_digit(*p->at)) {
        return refuse(p, "is no whole number");
    }
    if (!parse_digits(p, &number)) {
        return refuse(p, "is too large");
    }
    if (*p->at != '\0') {
        return refuse(p, "is no whole number");
    }
    if (number > most) {
        return refuse(p, "is too large");
    }
    /* The lowest number has no positive twin. */
    p->value->integer =
        negative && number != 0 ? -(int64_t)(number - 1) - 1 : (int64_t)number;
    return 1;
}

static int parse_boolean(const parse *p)
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
    return refuse(p, "is neither yes nor no (or on, off, true, false, 1, 0)");
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

static int parse_choice(const parse *p, const ccmr_option *option)
{
    size_t length = strlen(p->text);
    size_t i;

    if (!find_name(option->names, p->text, length, &i)) {
        return refuse_name(p, option->names, p->text, length);
    }
    p->value->integer = (int64_t)i;
    return 1;
}

static int parse_flags(parse *p, const ccmr_option *option)
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

static int parse_by_type(parse *p, const ccmr_option *option)
{
    switch (option->type) {
    case CCMR_OPTION_BYTES:
        return parse_bytes(p, option);
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
    return refuse(p, "is of an unknown type");
}

int ccmr__value_parse(const ccmr_option *option, const char *text,
                      ccmr_option_value *value, char *message, size_t size)
{
    ccmr_option_value made = {.given = 1, .set = 1, .text = text};
    parse p = {text, text, &made, message, size};

    if (!parse_by_type(&p, option)) {
        return 0;
    }
    *value = made;
    return 1;
}

uint64_t ccmr__value_bytes(const ccmr_option_value *value, uint64_t total)
{
    uint64_t bytes;

    if (!value->percent) {
        return value->number;
    }
    /* In two parts, so that nothing overflows. */
    bytes =
        total / 10000 * value->number + total % 10000 * value->number / 10000;
    return value->number == 10000 ? total
                                  : bytes & ~(uint64_t)(FRACTION_UNIT - 1);
}
