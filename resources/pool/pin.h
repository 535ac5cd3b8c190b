/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pins: memory that stays where it is, whoever has it.
 *
 *   pins      [ptr, bytes, times] -> ...       what was asked for
 *   handles   runs of the kind PINNED          of a range, each with a count
 *   segments  segment->pins                    elsewhere
 *
 * A handle with a pin is a run of another kind: whoever looks for handles that
 * may move or go finds others alone. A pin is made of memory that is in use, so
 * that no call has it in hand; it outlives that use. One that is made too late,
 * of a block that was freed, finds its memory, or is refused: what a call moves
 * or gives back was marked, under the range's lock, or has left the map.
 */
#ifndef CCMR_RESOURCES_POOL_PIN_H
#define CCMR_RESOURCES_POOL_PIN_H

#include <stddef.h>
#include <stdint.h>

#include <cucoremr/resource.h>

typedef struct ccmr__pool ccmr__pool;

/* Something pinned. */
typedef struct ccmr__pool_pin {
    struct ccmr__pool_pin *next; /* of its bucket */
    uintptr_t address;
    size_t bytes;
    size_t times;
} ccmr__pool_pin;

#define CCMR__POOL_PIN_BUCKETS 256u /* to begin with */

typedef struct ccmr__pool_pins {
    ccmr__pool_pin **buckets; /* NULL: none was made yet */
    size_t room;              /* buckets; a power of two */
    size_t count;
} ccmr__pool_pins;

ccmr_status ccmr__pool_pin_memory(void *object, void *ptr, size_t bytes);
/** The same, for another call that an error names. */
ccmr_status ccmr__pool_pin_for(ccmr__pool *pool, const void *ptr, size_t bytes,
                               const char *call);
ccmr_status ccmr__pool_unpin_memory(void *object, void *ptr, size_t bytes);

/** Free bytes that could go, were they not pinned. */
size_t ccmr__pool_pinned_bytes(ccmr__pool *pool);
/** The same of all that is free, finished or not, in any lane. */
size_t ccmr__pool_pinned_free(ccmr__pool *pool);

/** Do pins and what they pin agree? 1 or 0. Under `pinning`. */
int ccmr__pool_pins_audit(ccmr__pool *pool);

/** The pool goes, and all that it has. */
void ccmr__pool_pins_end(ccmr__pool *pool);

#endif /* CCMR_RESOURCES_POOL_PIN_H */
