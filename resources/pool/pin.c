/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool: pins. See pin.h. Their table is under `pinning`; runs under the
 * range's lock, counts of segments under pool->lock, either inside of it.
 */
#include "resources/pool/pin.h"

#include <stdlib.h>

#include "lib/error.h"
#include "resources/pool/pool.h"
#include "resources/pool/range.h"

/* ---- the table ---------------------------------------------------------------- */

static size_t bucket_of(const ccmr__pool_pins *pins, uintptr_t address)
{
    return (size_t)(((uint64_t)address * UINT64_C(0x9E3779B97F4A7C15)) >> 32) &
           (pins->room - 1);
}

static void link_in(ccmr__pool_pins *pins, ccmr__pool_pin *pin)
{
    ccmr__pool_pin **bucket = &pins->buckets[bucket_of(pins, pin->address)];

    pin->next = *bucket;
    *bucket = pin;
}

/* Twice the buckets; without memory, chains are longer. -1: there are none. */
static int make_room(ccmr__pool_pins *pins)
{
    ccmr__pool_pins more = {.room = pins->room == 0 ? CCMR__POOL_PIN_BUCKETS
                                                    : pins->room * 2,
                            .count = pins->count};
    size_t i;

    if (pins->count < pins->room) {
        return 0;
    }
    more.buckets = calloc(more.room, sizeof(ccmr__pool_pin *));
    if (more.buckets == NULL) {
        return pins->room == 0 ? -1 : 0;
    }
    for (i = 0; i < pins->room; i++) {
        while (pins->buckets[i] != NULL) {
            ccmr__pool_pin *pin = pins->buckets[i];

            pins->buckets[i] = pin->next;
            link_in(&more, pin);
        }
    }
    free(pins->buckets);
    *pins = more;
    return 0;
}

/* The link that leads to a pin, or to NULL. */
static ccmr__pool_pin **find(const ccmr__pool_pins *pins, uintptr_t address,
                             size_t bytes)
{
    ccmr__pool_pin **link = &pins->buckets[bucket_of(pins, address)];

    while (*link != NULL &&
           ((*link)->address != address || (*link)->bytes != bytes)) {
        link = &(*link)->next;
    }
    return link;
}

/* ---- what is pinned ------------------------------------------------------------ */

/* Add to (1) or take from (-1) the count of each handle under some bytes,
 * which are all there. Under the range's lock. */
static void count_handles(ccmr__pool_range *range, uintptr_t address,
                          size_t bytes, int add)
{
    uint32_t last = ccmr__pool_page_of(range, address + bytes - 1);
    uint32_t page =
        ccmr__pool_handle_at(range, ccmr__pool_page_of(range, address));

    while (page <= last) {
        ccmr__pool_run *run = &range->runs[page];

        run->pins += (uint32_t)add;
        run->kind = run->pins != 0 ? CCMR__POOL_PINNED : CCMR__POOL_HANDLE;
        page += run->pages;
    }
}

/* Is there memory under all of it, and none that a call is at work on? */
static int all_handles(const ccmr__pool_range *range, uintptr_t address,
                       size_t bytes)
{
    uint32_t last = ccmr__pool_page_of(range, address + bytes - 1);
    uint32_t page =
        ccmr__pool_handle_at(range, ccmr__pool_page_of(range, address));

    while (page != CCMR__POOL_NO_PAGE && page <= last) {
        if (range->runs[page].pins == UINT32_MAX) {
            return 0;
        }
        page += range->runs[page].pages;
        if (page <= last) {
            page = ccmr__pool_handle_at(range, page);
        }
    }
    return page != CCMR__POOL_NO_PAGE;
}

static int pin_handles(ccmr__pool_range *range, uintptr_t address,
                       size_t bytes)
{
    int there;

    ccmr__pool_range_lock(range);
    there = all_handles(range, address, bytes);
    if (there) {
        count_handles(range, address, bytes, 1);
    }
    ccmr__pool_range_unlock(range);
    return there;
}

/* Count the pins of a segment. Nothing in it: 0. */
static int count_segment(ccmr__pool *pool, uintptr_t address, size_t bytes,
                         int add)
{
    ccmr__pool_segment *segment;
    int there;

    (void)pthread_mutex_lock(&pool->lock);
    segment = ccmr__pool_segment_of(pool, address);
    there =
        segment != NULL && bytes <= segment->bytes - (address - segment->base);
    if (there) {
        atomic_fetch_add_explicit(&segment->pins, (size_t)add,
                                  memory_order_relaxed);
    }
    (void)pthread_mutex_unlock(&pool->lock);
    return there;
}

static int in_range(const ccmr__pool *pool, uintptr_t address)
{
    return pool->range != NULL && address - pool->range->base <
                                      pool->range->pages * pool->range->unit;
}

static int hold(ccmr__pool *pool, uintptr_t address, size_t bytes)
{
    if (bytes > CCMR__POOL_MOST) {
        return 0;
    }
    if (!in_range(pool, address)) {
        return count_segment(pool, address, bytes, 1);
    }
    return ccmr__pool_range_has(pool->range, address + bytes - 1) &&
           pin_handles(pool->range, address, bytes);
}

static void let_go(ccmr__pool *pool, const ccmr__pool_pin *pin)
{
    if (!in_range(pool, pin->address)) {
        (void)count_segment(pool, pin->address, pin->bytes, -1);
        return;
    }
    ccmr__pool_range_lock(pool->range);
    count_handles(pool->range, pin->address, pin->bytes, -1);
    ccmr__pool_range_unlock(pool->range);
}

/* ---- the operations ------------------------------------------------------------- */

static ccmr_status no_memory(void)
{
    return ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                      "no memory for the record of a pin");
}

/* Under `pinning`. */
static ccmr_status pin_new(ccmr__pool *pool, uintptr_t address, size_t bytes,
                           const char *call)
{
    ccmr__pool_pin *pin = malloc(sizeof(*pin));

    if (pin == NULL) {
        return no_memory();
    }
    if (!hold(pool, address, bytes)) {
        free(pin);
        return ccmr__fail(CCMR_ERROR_INVALID_POINTER,
                          "%s: the pool has no memory at %p, or not for all "
                          "of %zu bytes",
                          call, (void *)address, bytes);
    }
    pin->address = address;
    pin->bytes = bytes;
    pin->times = 1;
    link_in(&pool->pins, pin);
    pool->pins.count++;
    return CCMR_SUCCESS;
}

ccmr_status ccmr__pool_pin_memory(void *object, void *ptr, size_t bytes)
{
    return ccmr__pool_pin_for(object, ptr, bytes, "pin");
}

ccmr_status ccmr__pool_pin_for(ccmr__pool *pool, const void *ptr, size_t bytes,
                               const char *call)
{
    ccmr_status status = CCMR_SUCCESS;

    (void)pthread_mutex_lock(&pool->pinning);
    if (make_room(&pool->pins) != 0) {
        status = no_memory();
    } else {
        ccmr__pool_pin *pin = *find(&pool->pins, (uintptr_t)ptr, bytes);

        if (pin != NULL) {
            pin->times++;
        } else {
            status = pin_new(pool, (uintptr_t)ptr, bytes, call);
        }
    }
    (void)pthread_mutex_unlock(&pool->pinning);
    return status;
}

ccmr_status ccmr__pool_unpin_memory(void *object, void *ptr, size_t bytes)
{
    ccmr__pool *pool = object;
    ccmr__pool_pin **link = NULL;
    ccmr__pool_pin *pin = NULL;
    ccmr__pool_pin *gone = NULL;

    (void)pthread_mutex_lock(&pool->pinning);
    if (pool->pins.count != 0) {
        link = find(&pool->pins, (uintptr_t)ptr, bytes);
        pin = *link;
    }
    if (pin != NULL && --pin->times == 0) {
        *link = pin->next;
        pool->pins.count--;
        let_go(pool, pin);
        gone = pin;
    }
    (void)pthread_mutex_unlock(&pool->pinning);
    free(gone);
    if (pin == NULL) {
        return ccmr__fail(CCMR_ERROR_INVALID_POINTER,
                          "unpin: %zu bytes at %p are not pinned", bytes, ptr);
    }
    return CCMR_SUCCESS;
}

void ccmr__pool_pins_end(ccmr__pool *pool)
{
    ccmr__pool_pins *pins = &pool->pins;
    size_t i;

    for (i = 0; i < pins->room; i++) {
        while (pins->buckets[i] != NULL) {
            ccmr__pool_pin *pin = pins->buckets[i];

            pins->buckets[i] = pin->next;
            let_go(pool, pin);
            free(pin);
        }
    }
    free(pins->buckets);
    *pins = (ccmr__pool_pins){.buckets = NULL};
}

/* ---- figures ---------------------------------------------------------------------- */

/* Of one free extent. Under the lane's lock. */
static size_t pinned_in(ccmr__pool *pool, const ccmr__pool_extent *extent)
{
    ccmr__pool_range *range = pool->range;
    size_t bytes;

    if (range != NULL && extent->segment == range->segment) {
        ccmr__pool_range_lock(range);
        bytes =
            ccmr__pool_pinned_pages(range, extent->address, extent->bytes) *
            range->unit;
        ccmr__pool_range_unlock(range);
        return bytes;
    }
    return extent->bytes == extent->segment->bytes &&
                   atomic_load_explicit(&extent->segment->pins,
                                        memory_order_relaxed) != 0
               ? extent->bytes
               : 0;
}

/* Of what is free in a lane; a graph's is not. */
static size_t pinned_of(ccmr__pool *pool, ccmr__pool_lane *lane, int finished)
{
    const ccmr__pool_extent *extent;
    size_t bytes = 0;

    ccmr__pool_lane_lock(lane);
    extent = lane->kept ? NULL : ccmr__pool_first(&lane->set);
    for (; extent != NULL; extent = ccmr__pool_next(&lane->set, extent)) {
        ccmr__pool_waits waits = extent->waits;

        if (!finished || ccmr__pool_settled(&waits)) {
            bytes += pinned_in(pool, extent);
        }
    }
    ccmr__pool_lane_unlock(lane);
    return bytes;
}

size_t ccmr__pool_pinned_bytes(ccmr__pool *pool)
{
    return pinned_of(pool, pool->common, 1);
}

size_t ccmr__pool_pinned_free(ccmr__pool *pool)
{
    ccmr__pool_lane *lane =
        atomic_load_explicit(&pool->lanes, memory_order_acquire);
    size_t bytes;

    (void)pthread_mutex_lock(&pool->pinning);
    bytes = pool->pins.count; /* whoever pins nothing pays for nothing */
    (void)pthread_mutex_unlock(&pool->pinning);
    if (bytes == 0) {
        return 0;
    }
    bytes = pinned_of(pool, pool->common, 0);
    for (; lane != NULL; lane = lane->next) {
        bytes += pinned_of(pool, lane, 0);
    }
    return bytes;
}

/* Handles that a pin is on. Under the range's lock. */
static size_t handles_of(const ccmr__pool_range *range,
                         const ccmr__pool_pin *pin, int *good)
{
    uint32_t last = ccmr__pool_page_of(range, pin->address + pin->bytes - 1);
    uint32_t page =
        ccmr__pool_handle_at(range, ccmr__pool_page_of(range, pin->address));
    size_t count = 0;

    while (page != CCMR__POOL_NO_PAGE && page <= last) {
        *good &= range->runs[page].kind == CCMR__POOL_PINNED;
        page += range->runs[page].pages;
        count++;
    }
    *good &= count != 0;
    return count;
}

int ccmr__pool_pins_audit(ccmr__pool *pool)
{
    ccmr__pool_range *range = pool->range;
    const ccmr__pool_pin *pin;
    size_t handles = 0; /* that pins count on */
    size_t apart = 0;   /* pins of segments */
    size_t seen = 0;
    int good = 1;
    size_t i;

    if (range != NULL) {
        ccmr__pool_range_lock(range);
    }
    for (i = 0; i < pool->pins.room; i++) {
        for (pin = pool->pins.buckets[i]; pin != NULL; pin = pin->next) {
            seen++;
            if (in_range(pool, pin->address)) {
                handles += handles_of(range, pin, &good);
            } else {
                apart++;
            }
        }
    }
    if (range != NULL) {
        good &= handles == ccmr__pool_pins_of_handles(range);
        ccmr__pool_range_unlock(range);
    }
    return good && seen == pool->pins.count &&
           apart == ccmr__pool_pins_of_segments(pool);
}
