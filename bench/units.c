/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/units.h"

#include <inttypes.h>
#include <stdio.h>

#include "lib/text.h"

const char *units_bytes(uint64_t bytes, char text[UNITS_TEXT])
{
    static const char *const names[] = {"B",   "KiB", "MiB", "GiB",
                                        "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    size_t unit = 0;

    while (value >= 1024 && unit < sizeof(names) / sizeof(names[0]) - 1) {
        value /= 1024;
        unit++;
    }
    if (value - (double)(uint64_t)value < 0.005 || unit == 0) {
        (void)snprintf(text, UNITS_TEXT, "%.0f %s", value, names[unit]);
    } else {
        (void)snprintf(text, UNITS_TEXT, value < 100 ? "%.2f %s" : "%.1f %s",
                       value, names[unit]);
    }
    return text;
}

const char *units_ns(double ns, char text[UNITS_TEXT])
{
    if (ns < 99.95) {
        (void)snprintf(text, UNITS_TEXT, "%.1f", ns);
    } else if (ns < 999999.5) {
        (void)snprintf(text, UNITS_TEXT, "%.0f", ns);
    } else if (ns < 999.5e6) {
        (void)snprintf(text, UNITS_TEXT, "%.1fms", ns / 1e6);
    } else {
        (void)snprintf(text, UNITS_TEXT, "%.1fs", ns / 1e9);
    }
    return text;
}

const char *units_count(uint64_t count, char text[UNITS_TEXT])
{
    char digits[UNITS_TEXT];
    int length = snprintf(digits, sizeof(digits), "%" PRIu64, count);
    char *to = text;

    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0) {
            *to++ = ' ';
        }
        *to++ = digits[i];
    }
    *to = '\0';
    return text;
}

bool units_parse_bytes(const char *text, uint64_t *bytes, char *message,
                       size_t size)
{
    static const ccmr_option option = {"size", CCMR_OPTION_BYTES, "", "", ""};
    ccmr_option_value value;

    if (!ccmr__value_parse(&option, text, &value, message, size)) {
        return false;
    }
    *bytes = ccmr__value_bytes(&value, 0);
    return true;
}
