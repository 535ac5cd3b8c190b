/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>

#include <cucoremr/version.h>

Test(version, library_and_headers_agree)
{
    cr_assert_eq(ccmr_version(), CCMR_VERSION);
}

Test(version, text_is_the_number)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "%d.%d.%d", CCMR_VERSION / 10000,
                   CCMR_VERSION / 100 % 100, CCMR_VERSION % 100);
    cr_assert_str_eq(ccmr_version_text(), text);
}
