/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_pool: the end of an own pool.
 *
 * A driver's pool that is destroyed while a free on it is pending corrupts the
 * driver: seen on an H200 with driver 580.159, a later call on another pool
 * crashes or spins for ever (three runs of three; never when the frees had
 * been synchronised with before). So a pool is destroyed only when the driver
 * says that it holds nothing any more. Until then it is retired: it keeps
 * nothing at the next synchronisation, and every later making, trimming or
 * ending of a pool on the device looks at it again.
 *
 * The driver sees that a free is finished when its stream, or an event that was
 * recorded behind it, is synchronised, or when the stream is destroyed; not
 * when it is queried, nor when another stream is synchronised.
 */
#include "resources/device_pool/device_pool.h"

#include <pthread.h>
#include <stdlib.h>

/* Retired pools, linked by `next`: under the lock, which is never held over a
 * driver call. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ccmr__device_pool *retired;

static void put(ccmr__device_pool *self)
{
    (void)pthread_mutex_lock(&lock);
    self->next = retired;
    retired = self;
    (void)pthread_mutex_unlock(&lock);
}

/* All that are retired on the device, now the caller's. */
static ccmr__device_pool *take(const ccmr__device *device)
{
    ccmr__device_pool *taken = NULL;
    ccmr__device_pool **link = &retired;

    (void)pthread_mutex_lock(&lock);
    while (*link != NULL) {
        ccmr__device_pool *self = *link;

        if (self->device == device) {
            *link = self->next;
            self->next = taken;
            taken = self;
        } else {
            link = &self->next;
        }
    }
    (void)pthread_mutex_unlock(&lock);
    return taken;
}

enum outcome { ENDED, PENDING, FAILED };

/*
 * In a relaxed scope: destroy the pool if the driver holds nothing for it. On
 * the idle stream nothing is ever queued but frees: synchronising it, so that
 * those are seen, waits for nothing.
 */
static enum outcome try_end(const ccmr__device_pool *self)
{
    cuuint64_t reserved;
    cuuint64_t keep = 0;

    if (CCMR__CU(cuStreamSynchronize)(self->idle) != CUDA_SUCCESS ||
        CCMR__CU(cuMemPoolTrimTo)(self->pool, 0) != CUDA_SUCCESS ||
        CCMR__CU(cuMemPoolGetAttribute)(self->pool,
                                        CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT,
                                        &reserved) != CUDA_SUCCESS) {
        return FAILED;
    }
    if (reserved != 0) {
        return CCMR__CU(cuMemPoolSetAttribute)(
                   self->pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep) ==
                       CUDA_SUCCESS
                   ? PENDING
                   : FAILED;
    }
    return CCMR__CU(cuMemPoolDestroy)(self->pool) == CUDA_SUCCESS ? ENDED
                                                                  : FAILED;
}

/* What failed once is tried once more: perhaps nobody comes back to it. */
static int end(const ccmr__device_pool *self)
{
    enum outcome outcome = FAILED;
    int left;

    for (left = 2; outcome == FAILED && left > 0; left--) {
        ccmr__scope scope;

        if (ccmr__scope_enter(&scope, self->device, CCMR__SCOPE_RELAXED) ==
            CCMR_SUCCESS) {
            outcome = try_end(self);
            ccmr__scope_leave(&scope);
        }
    }
    return outcome == ENDED;
}

void ccmr__device_pool_look_at_retired(const ccmr__device *device)
{
    ccmr__device_pool *self = take(device);

    while (self != NULL) {
        ccmr__device_pool *next = self->next;

        if (end(self)) {
            free(self);
        } else {
            put(self);
        }
        self = next;
    }
}

void ccmr__device_pool_destroy(void *object)
{
    ccmr__device_pool *self = object;
    const ccmr__device *device = self->device;

    if (!self->owned) {
        free(self);
        return;
    }
    put(self);
    ccmr__device_pool_look_at_retired(device);
}
