/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thread records and slots.
 */
#include "lib/thread.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

_Thread_local ccmr__thread *ccmr__thread_pointer CCMR__TLS_MODEL;

/* Bit i is set while a live thread owns slot i. The shared slot has none. */
static atomic_uint_fast64_t slots_taken;
static atomic_uint_fast64_t next_serial = 1;

_Static_assert(sizeof(ccmr__thread) % 64 == 0, "whole cache lines");

/* For threads whose record malloc could not give. The last one is shared by
 * all that find no other: its detail may be another thread's, its slot is the
 * shared one, and it stands for no thread (serial 0). */
#define RESERVE 8
static ccmr__thread reserve[RESERVE] = {
    [RESERVE -
     1] = {.slot = CCMR__SLOT_SHARED,
           .from_reserve = 1,
           .detail = {.size = sizeof(ccmr_error_detail), .device = -1}},
};
static atomic_int reserve_taken[RESERVE];

/* Made with the first record, which may be older than the first use. */
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static int have_key;

_Static_assert(CCMR__SLOTS <= 64, "slots_taken is one word");

static unsigned slot_take(void)
{
    uint_fast64_t taken =
        atomic_load_explicit(&slots_taken, memory_order_relaxed);

    for (;;) {
        uint_fast64_t free_slots = ~taken;
        unsigned slot;

        free_slots &= (UINT64_C(1) << CCMR__SLOT_SHARED) - 1;
        if (free_slots == 0) {
            return CCMR__SLOT_SHARED;
        }
        slot = (unsigned)__builtin_ctzll(free_slots);
        /* acquire: see what the slot's former owner wrote to its shards */
        if (atomic_compare_exchange_weak_explicit(
                &slots_taken, &taken, taken | UINT64_C(1) << slot,
                memory_order_acquire, memory_order_relaxed)) {
            return slot;
        }
    }
}

static void slot_give(unsigned slot)
{
    if (slot != CCMR__SLOT_SHARED) {
        atomic_fetch_and_explicit(&slots_taken, ~(UINT64_C(1) << slot),
                                  memory_order_release);
    }
}

static ccmr__thread *reserve_take(void)
{
    int i;

    for (i = 0; i < RESERVE - 1; i++) {
        if (atomic_exchange_explicit(&reserve_taken[i], 1,
                                     memory_order_acquire) == 0) {
            return &reserve[i];
        }
    }
    return &reserve[RESERVE - 1];
}

static void reserve_give(ccmr__thread *self)
{
    size_t i = (size_t)(self - reserve);

    if (i < RESERVE - 1) {
        atomic_store_explicit(&reserve_taken[i], 0, memory_order_release);
    }
}

/* The key's destructor. A later destructor of the program may use the library
 * once more: it gets a new record, and this runs again. */
static void thread_end(void *argument)
{
    ccmr__thread *self = argument;

    if (self->pools != NULL) {
        self->pools_end(self);
    }
    ccmr__thread_pointer = NULL;
    slot_give(self->slot);
    if (self->from_reserve) {
        reserve_give(self);
    } else {
        free(self);
    }
}

static void key_make(void)
{
    have_key = pthread_key_create(&key, thread_end) == 0;
}

static void set_up(ccmr__thread *self, int from_reserve)
{
    memset(self, 0, sizeof(*self));
    self->from_reserve = from_reserve;
    self->slot = slot_take();
    self->serial =
        atomic_fetch_add_explicit(&next_serial, 1, memory_order_relaxed);
    self->detail.size = sizeof(self->detail);
    self->detail.device = -1;
}

ccmr__thread *ccmr__thread_make(void)
{
    ccmr__thread *self = aligned_alloc(64, sizeof(*self));
    int from_reserve = self == NULL;

    if (from_reserve) {
        self = reserve_take();
    }
    if (self != &reserve[RESERVE - 1]) {
        set_up(self, from_reserve);
    }
    ccmr__thread_pointer = self;
    ccmr__thread_start();
    if (have_key) {
        /* Without memory for it the record and its slot stay taken. */
        (void)pthread_setspecific(key, self);
    }
    return self;
}

uint64_t ccmr__thread_serial(void)
{
    uint64_t serial = ccmr__thread_self()->serial;

    if (serial == 0) {
        serial =
            atomic_fetch_add_explicit(&next_serial, 1, memory_order_relaxed);
    }
    return serial;
}

void ccmr__thread_start(void)
{
    (void)pthread_once(&key_once, key_make);
}
