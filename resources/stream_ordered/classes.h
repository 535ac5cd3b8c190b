/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Size classes: steps of 512 bytes to 4 KiB, then four to each doubling.
 *
 *     class  0    1     2    ... 7     8     9    10    11    12    ...
 *     bytes  512  1024  1536     4096  5120  6144 7168  8192  10240
 *
 * A request takes a free block of its class or of the next CLASS_REACH, which
 * is at most twice its size. With four steps and this reach the recorded
 * traces reserve 1.5 to 2.9 times their peak and warm replays ask the upstream
 * for next to nothing; exact classes alone reserve 3 to 11 times as much with
 * eight steps, and more with finer ones.
 */
#ifndef CCMR_RESOURCES_STREAM_ORDERED_CLASSES_H
#define CCMR_RESOURCES_STREAM_ORDERED_CLASSES_H

#include <stddef.h>
#include <stdint.h>

#define CCMR__CLASS_STEP ((size_t)512)
#define CCMR__CLASS_LINEAR 8   /* classes of one step each */
#define CCMR__CLASS_DOUBLING 4 /* classes to a doubling after that */
#define CCMR__CLASS_REACH 4u
/* The last ones would be more than PTRDIFF_MAX: nobody asks for them. */
#define CCMR__CLASSES 256u

/** The class of a request; bytes > 0. */
static inline unsigned ccmr__class_of(size_t bytes)
{
    size_t last = bytes - 1;
    unsigned power;

    if (bytes <= CCMR__CLASS_LINEAR * CCMR__CLASS_STEP) {
        return (unsigned)(last / CCMR__CLASS_STEP);
    }
    power = 63u - (unsigned)__builtin_clzll(last); /* 12 and more */
    return CCMR__CLASS_LINEAR + (power - 12) * CCMR__CLASS_DOUBLING +
           (unsigned)(last >> (power - 2)) - CCMR__CLASS_DOUBLING;
}

/** The size of a class. */
static inline size_t ccmr__class_bytes(unsigned index)
{
    unsigned step;
    size_t bytes;

    if (index < CCMR__CLASS_LINEAR) {
        return (index + 1) * CCMR__CLASS_STEP;
    }
    step = (index - CCMR__CLASS_LINEAR) % CCMR__CLASS_DOUBLING;
    bytes = (size_t)(step + 1 + CCMR__CLASS_DOUBLING)
            << ((index - CCMR__CLASS_LINEAR) / CCMR__CLASS_DOUBLING + 10);
    return bytes;
}

/* A set of classes. */
typedef struct ccmr__class_set {
    uint64_t words[CCMR__CLASSES / 64];
} ccmr__class_set;

static inline void ccmr__class_add(ccmr__class_set *set, unsigned index)
{
    set->words[index / 64] |= UINT64_C(1) << (index % 64);
}

static inline void ccmr__class_remove(ccmr__class_set *set, unsigned index)
{
    set->words[index / 64] &= ~(UINT64_C(1) << (index % 64));
}

/** The first class of the set in [from, last], or CCMR__CLASSES; `last` is at
 * most 63 beyond. */
static inline unsigned ccmr__class_next(const ccmr__class_set *set,
                                        unsigned from, unsigned last)
{
    uint64_t word = set->words[from / 64] >> (from % 64);
    unsigned found;

    if (from % 64 != 0 && from / 64 + 1 < CCMR__CLASSES / 64) {
        word |= set->words[from / 64 + 1] << (64 - from % 64);
    }
    if (word == 0) {
        return CCMR__CLASSES;
    }
    found = from + (unsigned)__builtin_ctzll(word);
    return found <= last ? found : CCMR__CLASSES;
}

#endif /* CCMR_RESOURCES_STREAM_ORDERED_CLASSES_H */
