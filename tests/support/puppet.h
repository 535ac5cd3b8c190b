/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A resource that does as it is told: an upstream for tests of adaptors. It
 * hands out addresses without memory behind them, gives the last freed one of
 * a size out again at once, and checks that what comes back is what it gave.
 * Any thread.
 */
#ifndef CCMR_TESTS_SUPPORT_PUPPET_H
#define CCMR_TESTS_SUPPORT_PUPPET_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include <cucoremr/resource.h>

#define PUPPET_BUCKETS 4096

typedef struct puppet_block puppet_block;

typedef struct puppet {
    /* Set before it is used. */
    const char *name;     /* "puppet" */
    size_t max_alignment; /* 4096 */
    int device;           /* -1 */
    int host_accessible;  /* 0 */
    ccmr_access access;

    /* May be changed when no other thread is in a call. */
    size_t capacity;           /* most live bytes; SIZE_MAX */
    ccmr_status full_status;   /* beyond; OUT_OF_DEVICE_MEMORY */
    unsigned fail_allocations; /* so many from now on fail */
    ccmr_status fail_status;   /* with this; OUT_OF_DEVICE_MEMORY */
    unsigned refuse_frees;     /* so many from now on are refused */
    void (*on_allocate)(struct puppet *puppet); /* no lock is held */
    void (*on_deallocate)(struct puppet *puppet);
    void *context;
    int yields; /* other threads get the processor in each call */

    /* To be looked at then, too. */
    size_t live_bytes;
    size_t peak_bytes;
    size_t live_blocks;
    size_t allocations; /* calls, failed ones included */
    size_t failures;
    size_t deallocations;
    size_t wrong;      /* frees that do not agree with what was given */
    size_t last_bytes; /* of the last call of either kind */
    size_t last_alignment;
    ccmr_stream last_stream;
    int destroyed;

    /* Its own. */
    pthread_mutex_t lock;
    uintptr_t next_address;
    puppet_block *blocks[PUPPET_BUCKETS]; /* live ones, by address */
    puppet_block *free_blocks;
} puppet;

/* Ready to be changed. */
void puppet_init(puppet *made);

/* The resource; `made` is to be cleared with puppet_clear() when the resource
   has gone. Exits if it cannot be made. */
ccmr_resource *puppet_resource(puppet *made);

/* Free what it holds. Returns 1 if the resource has gone, nothing is live and
   nothing came back wrong. */
int puppet_clear(puppet *gone);

#endif
