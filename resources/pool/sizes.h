/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool's sizes. Every block is a whole number of granules of 256 bytes.
 *
 *     class   0    1    2    3     4     5     6     7     8 ...    27
 *     bytes 256  512  768 1024  1280  1536  1792  2048  2560 ... 65536
 *
 * Up to 64 KiB a request is rounded to a class, four to each doubling, so that
 * sizes that differ a little share blocks; to 1 MiB to one of 16 to each
 * doubling; beyond that to 512 bytes alone: programs repeat their large sizes
 * exactly. The 16 steps halve what random sizes of 256 B to 1 MiB cost (168
 * to 86 ns an operation on a host) and reserve no more for the recorded traces
 * than 512 bytes do (simulated driver).
 */
#ifndef CCMR_RESOURCES_POOL_SIZES_H
#define CCMR_RESOURCES_POOL_SIZES_H

#include <stddef.h>
#include <stdint.h>

#define CCMR__POOL_GRANULE ((size_t)256)
#define CCMR__POOL_STEP ((size_t)512)
#define CCMR__POOL_SMALL ((size_t)65536) /* the greatest class */
#define CCMR__POOL_MIDDLE ((size_t)1 << 20)
#define CCMR__POOL_CLASSES 28u
/* Greatest request: rounding it does not overflow. */
#define CCMR__POOL_MOST ((size_t)1 << 62)

/** The class of a request of 1 to CCMR__POOL_SMALL bytes. */
static inline unsigned ccmr__pool_class(size_t bytes)
{
    size_t last = bytes - 1;
    unsigned power;

    if (bytes <= 1024) {
        return (unsigned)(last >> 8);
    }
    power = 63u - (unsigned)__builtin_clzll(last); /* 10 to 15 */
    return 4 * (power - 10) + (unsigned)(last >> (power - 2));
}

/** The size of a class. */
static inline size_t ccmr__pool_class_bytes(unsigned index)
{
    return index < 4 ? (index + 1) * CCMR__POOL_GRANULE
                     : (size_t)(index % 4 + 5) << (index / 4 + 7);
}

/** What a block of `bytes` (1 to CCMR__POOL_MOST) takes. */
static inline size_t ccmr__pool_rounded(size_t bytes)
{
    if (bytes <= CCMR__POOL_SMALL) {
        return ccmr__pool_class_bytes(ccmr__pool_class(bytes));
    }
    if (bytes <= CCMR__POOL_MIDDLE) {
        /* Steps of a sixteenth of the power of two below. */
        size_t step = (size_t)1
                      << (59u - (unsigned)__builtin_clzll(bytes - 1));

        return (bytes + step - 1) & ~(step - 1);
    }
    return (bytes + CCMR__POOL_STEP - 1) & ~(CCMR__POOL_STEP - 1);
}

#endif /* CCMR_RESOURCES_POOL_SIZES_H */
