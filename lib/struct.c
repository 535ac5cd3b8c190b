/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading and writing structs of callers older or newer than the library.
 */
#include "lib/struct.h"

#include <string.h>

#include "lib/error.h"

static ccmr_status check_minimum(size_t size, size_t minimum, const char *what)
{
    if (size < minimum) {
        return ccmr__fail(CCMR_ERROR_INVALID_STRUCT,
                          "%s: size %zu is less than %zu; set its size member "
                          "to sizeof",
                          what, size, minimum);
    }
    if (size > 65536) {
        return ccmr__fail(CCMR_ERROR_INVALID_STRUCT,
                          "%s: size %zu cannot be right; set its size member "
                          "to sizeof",
                          what, size);
    }
    return CCMR_SUCCESS;
}

ccmr_status ccmr__struct_read(void *to, size_t known, const void *from,
                              size_t minimum, const char *what)
{
    const unsigned char *bytes = from;
    ccmr_status status;
    size_t size;
    size_t i;

    memcpy(&size, from, sizeof(size));
    status = check_minimum(size, minimum, what);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    for (i = known; i < size; i++) {
        if (bytes[i] != 0) {
            return ccmr__fail(CCMR_ERROR_INVALID_STRUCT,
                              "%s: byte %zu is set, but this version of the "
                              "library knows only %zu",
                              what, i, known);
        }
    }
    memcpy(to, from, size < known ? size : known);
    memcpy(to, &known, sizeof(known));
    return CCMR_SUCCESS;
}

ccmr_status ccmr__struct_write(void *to, const void *from, size_t known,
                               size_t minimum, const char *what)
{
    unsigned char *bytes = to;
    ccmr_status status;
    size_t size;
    size_t part;

    memcpy(&size, to, sizeof(size));
    status = check_minimum(size, minimum, what);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    part = size < known ? size : known;
    memcpy(bytes + sizeof(size), (const unsigned char *)from + sizeof(size),
           part - sizeof(size));
    memset(bytes + part, 0, size - part);
    return CCMR_SUCCESS;
}

ccmr_status ccmr__struct_check(const void *to, size_t minimum,
                               const char *what)
{
    size_t size;

    memcpy(&size, to, sizeof(size));
    return check_minimum(size, minimum, what);
}

ccmr_status ccmr__struct_flags(const char *what, const ccmr__flag *flags,
                               size_t count)
{
    size_t i;

    for (i = 0; i < count; i++) {
        if (flags[i].value != 0 && flags[i].value != 1) {
            return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                              "%s: %s is %d: 0 or 1 is needed", what,
                              flags[i].name, flags[i].value);
        }
    }
    return CCMR_SUCCESS;
}
