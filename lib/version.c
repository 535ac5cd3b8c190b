/* SPDX-License-Identifier: Apache-2.0 */
#include <cucoremr/version.h>

#define TEXT_(number) #number
#define TEXT(number) TEXT_(number)

int ccmr_version(void)
{
    return CCMR_VERSION;
}

const char *ccmr_version_text(void)
{
    return TEXT(CCMR_VERSION_MAJOR) "." TEXT(CCMR_VERSION_MINOR) "." TEXT(
        CCMR_VERSION_PATCH);
}
