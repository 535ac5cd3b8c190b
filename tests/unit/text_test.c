/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts, names and values of options. Field case H7: fractions of a unit come
 * out even by themselves.
 */
#include <criterion/criterion.h>

#include <string.h>

#include "lib/nearest.h"
#include "lib/text.h"

static const ccmr_option bytes = {"b", CCMR_OPTION_BYTES, "", NULL, "h"};
static const ccmr_option share = {"s", CCMR_OPTION_BYTES, "", "%", "h"};
static const ccmr_option number = {"n", CCMR_OPTION_INTEGER, "", NULL, "h"};
static const ccmr_option yes = {"y", CCMR_OPTION_BOOLEAN, "", NULL, "h"};
static const ccmr_option words = {"w", CCMR_OPTION_TEXT, "", NULL, "h"};
static const ccmr_option choice = {"c", CCMR_OPTION_CHOICE, "",
                                   "host|stream|both", "h"};
static const ccmr_option flags = {"f", CCMR_OPTION_FLAGS, "",
                                  "device|alignment|chosen", "h"};

static ccmr_option_value parse(const ccmr_option *option, const char *text)
{
    ccmr_option_value value;
    char message[256];

    memset(&value, 0xEE, sizeof(value));
    cr_assert(
        ccmr__value_parse(option, text, &value, message, sizeof(message)),
        "%s: %s", text, message);
    cr_assert_eq(value.given, 1);
    cr_assert_eq(value.set, 1);
    cr_assert_eq(value.text, text);
    return value;
}

/* The text is refused, with a message that holds `part`, and the value is
 * left alone. */
static void refuse(const ccmr_option *option, const char *text,
                   const char *part)
{
    ccmr_option_value value;
    ccmr_option_value before;
    char message[256] = "";

    memset(&value, 0x5A, sizeof(value));
    before = value;
    cr_expect_not(
        ccmr__value_parse(option, text, &value, message, sizeof(message)),
        "'%s' was taken", text);
    cr_expect(strstr(message, part) != NULL, "'%s': %s", text, message);
    cr_expect_eq(memcmp(&value, &before, sizeof(value)), 0);
}

Test(text, grows_beyond_its_room)
{
    char room[8];
    ccmr__text text;

    ccmr__text_init(&text, room, sizeof(room));
    cr_expect_str_eq(room, "");
    ccmr__text_add(&text, "%s-%d", "abc", 12);
    cr_expect_str_eq(room, "abc-12");
    ccmr__text_add(&text, "345");
    cr_expect_str_eq(room, "abc-123");
    ccmr__text_add(&text, "6789");
    cr_expect_str_eq(room, "abc-123");
    cr_expect_eq(text.length, 13);
}

Test(text, needs_no_room)
{
    ccmr__text text;

    ccmr__text_init(&text, NULL, 0);
    ccmr__text_add(&text, "%d", 1234);
    ccmr__text_add_bytes(&text, 4096);
    cr_expect_eq(text.length, 8);
}

Test(text, give)
{
    char to[4] = "zzz";
    size_t length = 99;

    cr_expect_eq(ccmr__text_give("abcdef", to, sizeof(to), &length), 0);
    cr_expect_str_eq(to, "abc");
    cr_expect_eq(length, 6);
    cr_expect_eq(ccmr__text_give("ab", to, sizeof(to), NULL), 0);
    cr_expect_str_eq(to, "ab");
    cr_expect_eq(ccmr__text_give("abc", NULL, 0, &length), 0);
    cr_expect_eq(length, 3);
    cr_expect_eq(ccmr__text_give("xyz", to, 1, &length), 0);
    cr_expect_str_eq(to, "");
}

static void is_shown(const char *text, const char *shown)
{
    char room[64];
    ccmr__text made;

    ccmr__text_init(&made, room, sizeof(room));
    ccmr__text_add_shown(&made, text, strlen(text));
    cr_expect_str_eq(room, shown);
}

Test(text, shown_in_messages)
{
    is_shown("", "''");
    is_shown("abc", "'abc'");
    is_shown("a\n\t\x7F"
             "b",
             "'a???b'");
    is_shown("0123456789012345678901234567890123456789",
             "'0123456789012345678901234567890123456789'");
    is_shown("01234567890123456789012345678901234567890",
             "'0123456789012345678901234567890123456789...'");
    /* A character of two bytes is not halved. */
    is_shown("012345678901234567890123456789012345678\xC3\xA4",
             "'012345678901234567890123456789012345678...'");
}

static void bytes_are(uint64_t count, const char *expected)
{
    char room[32];
    ccmr__text text;

    ccmr__text_init(&text, room, sizeof(room));
    ccmr__text_add_bytes(&text, count);
    cr_expect_str_eq(room, expected);
    cr_expect_eq(parse(&bytes, room).number, count);
}

Test(text, bytes_in_the_largest_exact_unit)
{
    bytes_are(0, "0");
    bytes_are(1, "1");
    bytes_are(1000, "1000");
    bytes_are(1023, "1023");
    bytes_are(1024, "1KiB");
    bytes_are(1536, "1536");
    bytes_are(1536 * 1024, "1536KiB");
    bytes_are(UINT64_C(8) << 30, "8GiB");
    bytes_are(UINT64_C(1) << 40, "1TiB");
    bytes_are(UINT64_C(1) << 50, "1024TiB");
    bytes_are(UINT64_C(1) << 63, "8388608TiB");
    bytes_are(UINT64_MAX, "18446744073709551615");
}

static void flags_are(uint64_t bits, const char *expected)
{
    char room[64];
    ccmr__text text;

    ccmr__text_init(&text, room, sizeof(room));
    ccmr__text_add_flags(&text, flags.names, bits);
    cr_expect_str_eq(room, expected);
}

Test(text, flags_by_name)
{
    flags_are(0, "none");
    flags_are(1, "device");
    flags_are(5, "device+chosen");
    flags_are(7, "device+alignment+chosen");
    flags_are(0x13, "device+alignment+0x10");
    flags_are(UINT64_C(1) << 63, "0x8000000000000000");
}

Test(text, names_of_an_option)
{
    size_t length = 0;

    cr_expect_eq(strncmp(ccmr__names_get("a|bcd|e", 1, &length), "bcd|", 4),
                 0);
    cr_expect_eq(length, 3);
    cr_expect_eq(strcmp(ccmr__names_get("a|bcd|e", 2, &length), "e"), 0);
    cr_expect_null(ccmr__names_get("a|bcd|e", 3, &length));
    cr_expect_null(ccmr__names_get("", 0, &length));
    cr_expect_null(ccmr__names_get(NULL, 0, &length));
    cr_expect_str_empty(ccmr__names_get("a|", 1, &length));
    cr_expect_eq(length, 0);
}

Test(text, good_names)
{
    cr_expect(ccmr__name_is_good("a"));
    cr_expect(ccmr__name_is_good("device_pool2"));
    cr_expect(ccmr__name_is_good("a234567890123456789012345678901"));
    cr_expect_not(ccmr__name_is_good("a2345678901234567890123456789012"));
    cr_expect_not(ccmr__name_is_good(""));
    cr_expect_not(ccmr__name_is_good("_a"));
    cr_expect_not(ccmr__name_is_good("2a"));
    cr_expect_not(ccmr__name_is_good("Pool"));
    cr_expect_not(ccmr__name_is_good("a-b"));
    cr_expect_not(ccmr__name_is_good("a b"));
    cr_expect_not(ccmr__name_is_good("\xC3\xA4"));
}

Test(value, bytes)
{
    cr_expect_eq(parse(&bytes, "0").number, 0);
    cr_expect_eq(parse(&bytes, "4096").number, 4096);
    cr_expect_eq(parse(&bytes, "007").number, 7);
    cr_expect_eq(parse(&bytes, "12B").number, 12);
    cr_expect_eq(parse(&bytes, "64KiB").number, 65536);
    cr_expect_eq(parse(&bytes, "8MiB").number, 8u << 20);
    cr_expect_eq(parse(&bytes, "8GiB").number, UINT64_C(8) << 30);
    cr_expect_eq(parse(&bytes, "2TiB").number, UINT64_C(2) << 40);
    cr_expect_eq(parse(&bytes, "8KB").number, 8000);
    cr_expect_eq(parse(&bytes, "8kB").number, 8000);
    cr_expect_eq(parse(&bytes, "8MB").number, 8000000);
    cr_expect_eq(parse(&bytes, "8GB").number, UINT64_C(8000000000));
    cr_expect_eq(parse(&bytes, "8TB").number, UINT64_C(8000000000000));
    cr_expect_eq(parse(&bytes, "8  GiB").number, UINT64_C(8) << 30);
    cr_expect_eq(parse(&bytes, "18446744073709551615").number, UINT64_MAX);
    cr_expect_eq(parse(&bytes, "16777215TiB").number, UINT64_C(16777215)
                                                          << 40);
    cr_expect_eq(parse(&bytes, "8GiB").percent, 0);
}

/* H7. Nothing that is whole is rounded. */
Test(value, fractions_round_up_to_256)
{
    cr_expect_eq(parse(&bytes, "0.05GiB").number, 53687296);
    cr_expect_eq(parse(&bytes, "0.05 GiB").number, 53687296);
    cr_expect_eq(parse(&bytes, "1.5GiB").number, UINT64_C(3) << 29);
    cr_expect_eq(parse(&bytes, "1.0KiB").number, 1024);
    cr_expect_eq(parse(&bytes, "0.000000001KiB").number, 256);
    cr_expect_eq(parse(&bytes, "0.0GiB").number, 0);
    cr_expect_eq(parse(&bytes, "0.1KB").number, 256);
    cr_expect_eq(parse(&bytes, "0.256KB").number, 256);
    cr_expect_eq(parse(&bytes, "0.257KB").number, 512);
    cr_expect_eq(parse(&bytes, "0.999999999TiB").number, 1099511626752);
    cr_expect_eq(parse(&bytes, "1000003").number, 1000003);
    cr_expect_eq(parse(&bytes, "255").number, 255);
}

Test(value, bytes_refused)
{
    refuse(&bytes, "", "no number of bytes");
    refuse(&bytes, "GiB", "no number of bytes");
    refuse(&bytes, "x", "'x' is no number of bytes");
    refuse(&bytes, " 4", "no number of bytes");
    refuse(&bytes, "+4", "no number of bytes");
    refuse(&bytes, ".5GiB", "no number of bytes");
    refuse(&bytes, "-4", "below zero");
    refuse(&bytes, "0x10", "unknown unit");
    refuse(&bytes, "4 ", "ends with a blank");
    refuse(&bytes, "4GiB ", "unknown unit; did you mean 'GiB'?");
    refuse(&bytes, "4.GiB", "no digit after the point");
    refuse(&bytes, "4.5.6GiB", "unknown unit");
    refuse(&bytes, "1.0000000001GiB", "more than 9 digits");
    refuse(&bytes, "1.5", "fraction of a byte");
    refuse(&bytes, "1.5B", "fraction of a byte");
    refuse(&bytes, "8gib", "did you mean 'GiB'?");
    refuse(&bytes, "8gb", "did you mean 'GB'?");
    refuse(&bytes, "8furlongs", "unknown unit; known are B, KiB");
    refuse(&bytes, "1e9", "unknown unit");
    refuse(&bytes, "18446744073709551616", "too large");
    refuse(&bytes, "99999999999999999999999", "too large");
    refuse(&bytes, "16777216TiB", "too large");
    refuse(&bytes, "18446744073709551.6KB", "too large");
    refuse(&bytes, "50%", "percentage, which is not accepted");
}

Test(value, units_of_two_meanings)
{
    refuse(&bytes, "8G", "write 'GiB' (powers of 1024) or 'GB'");
    refuse(&bytes, "8g", "'GiB'");
    refuse(&bytes, "8k", "'KiB'");
    refuse(&bytes, "8M", "'MiB'");
    refuse(&bytes, "8 T", "'TiB'");
}

Test(value, percentages)
{
    cr_expect_eq(parse(&share, "50%").percent, 1);
    cr_expect_eq(parse(&share, "50%").number, 5000);
    cr_expect_eq(parse(&share, "12.5%").number, 1250);
    cr_expect_eq(parse(&share, "0.01%").number, 1);
    cr_expect_eq(parse(&share, "0%").number, 0);
    cr_expect_eq(parse(&share, "100.00 %").number, 10000);
    cr_expect_eq(parse(&share, "4KiB").number, 4096);
    cr_expect_eq(parse(&share, "4KiB").percent, 0);
    refuse(&share, "0.001%", "more than 2 digits");
    refuse(&share, "100.01%", "more than 100%");
    refuse(&share, "101%", "more than 100%");
    refuse(&share, "50%%", "unknown unit");
    refuse(&share, "%", "no number of bytes");
}

Test(value, bytes_of_percentages)
{
    const uint64_t total = UINT64_C(150109880320);
    ccmr_option_value value;

    value = parse(&share, "50%");
    cr_expect_eq(ccmr__value_bytes(&value, total), total / 2);
    value = parse(&share, "100%");
    cr_expect_eq(ccmr__value_bytes(&value, total), total);
    cr_expect_eq(ccmr__value_bytes(&value, UINT64_MAX), UINT64_MAX);
    value = parse(&share, "33.33%");
    cr_expect_eq(ccmr__value_bytes(&value, 1000000), 333300 / 256 * 256);
    value = parse(&share, "99.99%");
    cr_expect_lt(ccmr__value_bytes(&value, UINT64_MAX), UINT64_MAX);
    cr_expect_gt(ccmr__value_bytes(&value, UINT64_MAX),
                 UINT64_MAX / 1000 * 999);
    value = parse(&share, "0%");
    cr_expect_eq(ccmr__value_bytes(&value, total), 0);
    value = parse(&share, "1000003");
    cr_expect_eq(ccmr__value_bytes(&value, total), 1000003);
}

Test(value, integers)
{
    cr_expect_eq(parse(&number, "0").integer, 0);
    cr_expect_eq(parse(&number, "-0").integer, 0);
    cr_expect_eq(parse(&number, "-1").integer, -1);
    cr_expect_eq(parse(&number, "9223372036854775807").integer, INT64_MAX);
    cr_expect_eq(parse(&number, "-9223372036854775808").integer, INT64_MIN);
    refuse(&number, "9223372036854775808", "too large");
    refuse(&number, "-9223372036854775809", "too large");
    refuse(&number, "99999999999999999999", "too large");
    refuse(&number, "", "no whole number");
    refuse(&number, "-", "no whole number");
    refuse(&number, "--1", "no whole number");
    refuse(&number, "+1", "no whole number");
    refuse(&number, "1.5", "no whole number");
    refuse(&number, "1 ", "no whole number");
    refuse(&number, "0x1", "no whole number");
    refuse(&number, "one", "'one' is no whole number");
}

Test(value, booleans)
{
    cr_expect_eq(parse(&yes, "yes").integer, 1);
    cr_expect_eq(parse(&yes, "on").integer, 1);
    cr_expect_eq(parse(&yes, "true").integer, 1);
    cr_expect_eq(parse(&yes, "1").integer, 1);
    cr_expect_eq(parse(&yes, "no").integer, 0);
    cr_expect_eq(parse(&yes, "off").integer, 0);
    cr_expect_eq(parse(&yes, "false").integer, 0);
    cr_expect_eq(parse(&yes, "0").integer, 0);
    refuse(&yes, "", "neither yes nor no");
    refuse(&yes, "Yes", "neither yes nor no");
    refuse(&yes, "2", "neither yes nor no");
}

Test(value, texts)
{
    (void)parse(&words, "");
    (void)parse(&words, "any thing | at { all } \"");
}

Test(value, choices)
{
    cr_expect_eq(parse(&choice, "host").integer, 0);
    cr_expect_eq(parse(&choice, "both").integer, 2);
    refuse(&choice, "", "'' is none of host, stream, both");
    refuse(&choice, "hos", "did you mean 'host'?");
    refuse(&choice, "host|stream", "is unknown; did you mean");
    refuse(&choice, "quick", "'quick' is none of host, stream, both");
}

Test(value, flags)
{
    cr_expect_eq(parse(&flags, "none").number, 0);
    cr_expect_eq(parse(&flags, "device").number, 1);
    cr_expect_eq(parse(&flags, "chosen+device").number, 5);
    cr_expect_eq(parse(&flags, "device+device").number, 1);
    refuse(&flags, "", "'' is none of device, alignment, chosen");
    refuse(&flags, "device+", "'' is none of");
    refuse(&flags, "+device", "'' is none of");
    refuse(&flags, "device+none", "'none' is none of");
    refuse(&flags, "device+chose", "did you mean 'chosen'?");
}

/* Messages are cut, never written past their end. */
Test(value, short_messages)
{
    ccmr_option_value value;
    char message[4] = "zzz";

    cr_expect_not(ccmr__value_parse(&bytes, "x", &value, message, 0));
    cr_expect_str_eq(message, "zzz");
    cr_expect_not(
        ccmr__value_parse(&bytes, "x", &value, message, sizeof(message)));
    cr_expect_str_eq(message, "'x'");
}

static const char *nearest_of(const char *wrong)
{
    static const char *const names[] = {"device_pool", "device_plain",
                                        "limiting",    "logging",
                                        "host",        "stream_ordered"};
    ccmr__nearest nearest;
    size_t i;

    ccmr__nearest_start(&nearest, wrong, strlen(wrong));
    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        ccmr__nearest_offer(&nearest, names[i], strlen(names[i]));
    }
    return nearest.best != NULL ? nearest.best : "";
}

Test(nearest, slips)
{
    cr_expect_str_eq(nearest_of("devcie_pool"), "device_pool");
    cr_expect_str_eq(nearest_of("device-pool"), "device_pool");
    cr_expect_str_eq(nearest_of("DevicePool"), "device_pool");
    cr_expect_str_eq(nearest_of("limting"), "limiting");
    cr_expect_str_eq(nearest_of("hots"), "host");
    cr_expect_str_eq(nearest_of("LOGGING"), "logging");
}

Test(nearest, parts)
{
    cr_expect_str_eq(nearest_of("limit"), "limiting");
    cr_expect_str_eq(nearest_of("pool"), "device_pool");
    cr_expect_str_eq(nearest_of("plain"), "device_plain");
    cr_expect_str_eq(nearest_of("hosts_of_the_house"), "host");
}

Test(nearest, none)
{
    cr_expect_str_eq(nearest_of(""), "");
    cr_expect_str_eq(nearest_of("x"), "");
    cr_expect_str_eq(nearest_of("umbrella"), "");
    cr_expect_str_eq(nearest_of("limiting_limiting_limiting_limiting_limit"),
                     "");
}
