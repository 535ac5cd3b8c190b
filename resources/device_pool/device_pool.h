/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_pool, between its files: serve.c (allocate and deallocate),
 * figures.c (stats, trim, out of memory), make.c (creation), retired.c (the
 * end), kind.c (the operations, options and text).
 */
#ifndef CCMR_RESOURCES_DEVICE_POOL_DEVICE_POOL_H
#define CCMR_RESOURCES_DEVICE_POOL_DEVICE_POOL_H

#include <cucoremr/resources/device_pool.h>

#include "lib/context.h"

/* What the driver promises of every address. */
#define CCMR__DEVICE_POOL_ALIGNMENT ((size_t)256)

/* Any thread; never changes once it is made. */
typedef struct ccmr__device_pool {
    CUmemoryPool pool;
    ccmr__device *device;
    size_t most_bytes; /* a request for more cannot succeed */
    CUstream idle;     /* the device's, for READY */
    int several;       /* there are other devices: frees are checked too */
    int owned;
    int guard;                      /* calls run in relaxed capture mode */
    ccmr_device_pool_options made;  /* as made: sizes rounded */
    struct ccmr__device_pool *next; /* once it is retired */
} ccmr__device_pool;

extern const ccmr_resource_ops ccmr__device_pool_ops;

ccmr_status ccmr__device_pool_allocate(void *object, size_t bytes,
                                       size_t alignment, ccmr_stream stream,
                                       void **ptr);
ccmr_status ccmr__device_pool_deallocate(void *object, void *ptr, size_t bytes,
                                         size_t alignment, ccmr_stream stream);
ccmr_status ccmr__device_pool_stats(void *object, ccmr_stats *stats);
ccmr_status ccmr__device_pool_trim(void *object, size_t keep,
                                   ccmr_trim_result *result);

/** Ops->destroy: the pool too if it is owned, as soon as it is empty. */
void ccmr__device_pool_destroy(void *object);

/** Destroy the device's retired pools that have become empty. */
void ccmr__device_pool_look_at_retired(const ccmr__device *device);

/** In a relaxed scope: an error if the driver cannot tell the figures. */
ccmr_status ccmr__device_pool_probe(CUmemoryPool pool);

/**
 * Out of memory, with the pool's figures. `res` is success where the driver
 * was not asked.
 */
ccmr_status ccmr__device_pool_full(const ccmr__device_pool *self, size_t bytes,
                                   CUresult res) __attribute__((cold));

#endif /* CCMR_RESOURCES_DEVICE_POOL_DEVICE_POOL_H */
