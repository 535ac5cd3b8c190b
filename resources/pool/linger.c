/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool: pools that were released while graphs had memory of theirs. A graph
 * that lives may run, and nobody could tell its pool when it goes: the
 * destructor of a user object may call nothing. So the pool stays, without
 * what it can do without, until another one is made, trimmed or released.
 */
#include <pthread.h>

#include "resources/pool/capture.h"
#include "resources/pool/pool.h"

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static ccmr__pool *_Atomic list; /* written under list_lock */

static void add(ccmr__pool *pool)
{
    (void)pthread_mutex_lock(&list_lock);
    pool->next_lingering = atomic_load_explicit(&list, memory_order_relaxed);
    atomic_store_explicit(&list, pool, memory_order_relaxed);
    (void)pthread_mutex_unlock(&list_lock);
}

void ccmr__pool_linger(ccmr__pool *pool)
{
    ccmr_status refused = CCMR_SUCCESS;
    ccmr__scope scope;

    if (ccmr__scope_enter(&scope, pool->device, CCMR__SCOPE_RELAXED) ==
        CCMR_SUCCESS) {
        ccmr__pool_pins_end(pool);
        (void)ccmr__pool_steal(pool, NULL, NULL);
        (void)ccmr__pool_finish_all(pool, 1);
        (void)ccmr__pool_release(pool, 0, &refused);
        ccmr__scope_leave(&scope);
    }
    add(pool);
}

/* Whoever takes the list out has it alone: nobody else knows these pools but
 * threads that end. */
void ccmr__pool_sweep(void)
{
    ccmr__pool *pool;

    if (atomic_load_explicit(&list, memory_order_relaxed) == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&list_lock);
    pool = atomic_load_explicit(&list, memory_order_relaxed);
    atomic_store_explicit(&list, NULL, memory_order_relaxed);
    (void)pthread_mutex_unlock(&list_lock);
    while (pool != NULL) {
        ccmr__pool *next = pool->next_lingering;

        if (ccmr__pool_captures_settle(pool)) {
            add(pool);
        } else {
            ccmr__pool_finish_off(pool);
        }
        pool = next;
    }
}
