/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_pool: a CUDA driver memory pool (cudaMallocAsync) as a resource.
 */
#ifndef CUCOREMR_RESOURCES_DEVICE_POOL_H
#define CUCOREMR_RESOURCES_DEVICE_POOL_H

#include <cucoremr/resource.h>

struct CUmemPoolHandle_st;

/** Release threshold: keep everything. @since 0.1 */
#define CCMR_DEVICE_POOL_KEEP_ALL UINT64_MAX

/** Options; 0 and NULL are defaults. @since 0.1 */
typedef struct ccmr_device_pool_options {
    size_t size; /**< sizeof(ccmr_device_pool_options) */
    /**
     * 0: wrap the device's default pool. 1: an own pool, which goes with the
     * resource: at once if the driver has seen all its frees finish (their
     * streams were synchronised or destroyed), else when a pool is next made,
     * trimmed or ended on the device and they have; it keeps nothing until
     * then. `initial`, `maximum` and `handle_kinds` need an own pool.
     */
    int own;
    size_t initial; /**< bytes reserved at creation, 0: none */
    size_t maximum; /**< most bytes reserved, rounded up to the driver's
                         32 MiB; 0: what the device has */
    /**
     * Bytes that the pool keeps at a synchronisation. Of a pool that is not
     * ours it is only ever raised. Default (release_threshold_set = 0): keep
     * everything; the default pool's is raised only from 0, so that a value
     * that somebody chose stays.
     */
    uint64_t release_threshold;
    int release_threshold_set;
    unsigned handle_kinds; /**< CCMR_HANDLE_..., exportable kinds */
    /** Reuse rules of an own pool that are switched off (default: all on). */
    int no_follow_event_dependencies;
    int no_opportunistic;
    int no_internal_dependencies;
    /**
     * A call on a driver pool ruins every capture in global mode, on whatever
     * thread and stream, unless the caller's own capture mode is relaxed; and
     * it is refused on a thread that captures in thread-local mode itself. By
     * default each allocate and deallocate sees to that, for 18 ns. 1: it does
     * not; for programs that capture in relaxed mode only or not at all, or in
     * thread-local mode on threads that do not use the pool meanwhile.
     */
    int no_guard;
    /** 1: every stream that is handed to the resource is retired before it is
     * destroyed, and captures on it are announced: see ccmr_pool_options. */
    int streams_registered;
} ccmr_device_pool_options;

CCMR_BEGIN_DECLS

/**
 * Make a device_pool resource.
 *
 * @param device   ordinal, or CCMR_DEVICE_CURRENT
 * @param options  NULL for defaults
 *
 * A free with no stream named uses the allocation stream. Nothing blocks but
 * growth of the pool inside the driver. Capturing streams are refused. An
 * out-of-memory is tried once more after the given stream was synchronised.
 * Errors: CCMR_ERROR_NOT_SUPPORTED (no memory pools, handle kinds, or a
 * maximum that this driver cannot hold), CCMR_ERROR_INVALID_ARGUMENT,
 * CCMR_ERROR_OUT_OF_DEVICE_MEMORY (`initial`); nothing was made.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status
ccmr_device_pool_create(int device, const ccmr_device_pool_options *options,
                        ccmr_resource **resource);

/**
 * Wrap a pool that the caller has; it must outlive the resource and is not
 * changed. @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status ccmr_device_pool_from_handle(
    int device, struct CUmemPoolHandle_st *pool, ccmr_resource **resource);

/**
 * The driver's pool handle, borrowed; CCMR_ERROR_INVALID_ARGUMENT if the
 * resource is not a device_pool. @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status ccmr_device_pool_handle(
    ccmr_resource *resource, struct CUmemPoolHandle_st **pool);

CCMR_END_DECLS

#endif /* CUCOREMR_RESOURCES_DEVICE_POOL_H */
