/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and texts of statuses.
 */
#include <cucoremr/status.h>

const char *ccmr_status_name(ccmr_status status)
{
    switch (status) {
#define STATUS_NAME(name, value, text)                                        \
    case CCMR_##name:                                                         \
        return "CCMR_" #name;
        CCMR_STATUS_MAP(STATUS_NAME)
#undef STATUS_NAME
    }
    return "CCMR_ERROR_UNKNOWN";
}

const char *ccmr_status_text(ccmr_status status)
{
    switch (status) {
#define STATUS_TEXT(name, value, text)                                        \
    case CCMR_##name:                                                         \
        return text;
        CCMR_STATUS_MAP(STATUS_TEXT)
#undef STATUS_TEXT
    }
    return "unknown status";
}
