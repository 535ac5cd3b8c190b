/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arithmetic on sizes that cannot wrap.
 */
#ifndef CCMR_LIB_ARITH_H
#define CCMR_LIB_ARITH_H

#include <stddef.h>
#include <stdint.h>

static inline int ccmr__is_power_of_two(size_t n)
{
    return n != 0 && (n & (n - 1)) == 0;
}

/** n rounded up to a multiple of a power of two; 0 if that overflows. */
static inline int ccmr__round_up(size_t n, size_t unit, size_t *rounded)
{
    if (__builtin_add_overflow(n, unit - 1, rounded)) {
        return 0;
    }
    *rounded &= ~(unit - 1);
    return 1;
}

#endif /* CCMR_LIB_ARITH_H */
