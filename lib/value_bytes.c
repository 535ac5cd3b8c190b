/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Byte counts from text: 4096, 64KiB, 1.5GiB, 8GB, 12.5%.
 */
#include "lib/value.h"

#include <assert.h>
#include <string.h>

#include "lib/arith.h"
#include "lib/nearest.h"
#include "lib/text.h"

/* Digits after the point that are exact with 64 bits; see fraction_of(). */
#define FRACTION_MOST 9

/* What a fraction of a unit is rounded up to. */
#define FRACTION_UNIT 256

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

static int parse_decimal(ccmr__reading *p, decimal *number)
{
    const char *start;

    if (*p->at == '-' && ccmr__is_digit(p->at[1])) {
        return ccmr__reading_refuse(p, "is below zero");
    }
    if (!ccmr__is_digit(*p->at)) {
        return ccmr__reading_refuse(
            p, "is no number of bytes, such as 4096 or 8GiB");
    }
    if (!ccmr__reading_digits(p, &number->whole)) {
        return ccmr__reading_refuse(p, "is too large");
    }
    if (*p->at != '.') {
        return 1;
    }
    p->at++;
    start = p->at;
    for (; ccmr__is_digit(*p->at); p->at++) {
        if (p->at - start == FRACTION_MOST) {
            return ccmr__reading_refuse(
                p, "has more than %d digits after the point", FRACTION_MOST);
        }
        number->numerator = number->numerator * 10 + (unsigned)(*p->at - '0');
        number->denominator *= 10;
    }
    if (p->at == start) {
        return ccmr__reading_refuse(p, "has no digit after the point");
    }
    return 1;
}

static int parse_percent(const ccmr__reading *p, const ccmr_option *option,
                         const decimal *number)
{
    if (option->names == NULL || strcmp(option->names, "%") != 0) {
        return ccmr__reading_refuse(
            p, "is a percentage, which is not accepted here");
    }
    if (number->denominator > 100) {
        return ccmr__reading_refuse(p,
                                    "has more than 2 digits after the point");
    }
    if (number->whole > 100 ||
        (number->whole == 100 && number->numerator != 0)) {
        return ccmr__reading_refuse(p, "is more than 100%%");
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
static int refuse_unit(const ccmr__reading *p, const char *name)
{
    ccmr__nearest nearest;
    size_t i;

    if (name[0] != '\0' && strchr("kKmMgGtT", name[0]) != NULL &&
        name[1] == '\0') {
        char letter = name[0] == 'k' ? 'K' : name[0];

        letter = letter >= 'a' ? (char)(letter - 'a' + 'A') : letter;
        return ccmr__reading_refuse(
            p,
            "has a unit that means two things: write '%ciB' (powers "
            "of 1024) or '%cB' (powers of 1000)",
            letter, letter);
    }
    ccmr__nearest_start(&nearest, name, strlen(name));
    for (i = 0; i < UNIT_COUNT; i++) {
        ccmr__nearest_offer(&nearest, units[i].name, strlen(units[i].name));
    }
    if (nearest.best != NULL) {
        return ccmr__reading_refuse(
            p, "has an unknown unit; did you mean '%s'?", nearest.best);
    }
    return ccmr__reading_refuse(
        p, "has an unknown unit; known are B, KiB, MiB, GiB, TiB, "
           "KB, MB, GB, TB");
}

static int find_unit(const ccmr__reading *p, const decimal *number,
                     uint64_t *bytes)
{
    size_t i;

    if (*p->at == '\0' && p->at[-1] == ' ') {
        return ccmr__reading_refuse(p, "ends with a blank");
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
        return ccmr__reading_refuse(p, "has a fraction of a byte");
    }
    return 1;
}

/*
 * 4096, 64KiB, 1.5GiB, "0.05 GiB", 12.5%. What a fraction gives is rounded up
 * to 256 bytes, so that nobody has to look for a fraction that comes out even.
 */
int ccmr__reading_bytes(ccmr__reading *p, const ccmr_option *option)
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
        return ccmr__reading_refuse(p, "is too large");
    }
    if (number.denominator != 1) {
        if (__builtin_add_overflow(
                bytes,
                fraction_of(unit_bytes, number.numerator, number.denominator),
                &bytes) ||
            !ccmr__round_up(bytes, FRACTION_UNIT, &bytes)) {
            return ccmr__reading_refuse(p, "is too large");
        }
    }
    p->value->number = bytes;
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
