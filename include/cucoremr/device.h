/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver, devices, and each device's current resource.
 */
#ifndef CUCOREMR_DEVICE_H
#define CUCOREMR_DEVICE_H

#include <stddef.h>

#include <cucoremr/resource.h>

/** How the library is set up; see ccmr_init(). @since 0.1 */
typedef struct ccmr_init_options {
    size_t size; /**< sizeof(ccmr_init_options) */
    /**
     * "cuda": libcuda.so.1. "sim": libcucoremr-sim.so, found beside this
     * library, else by its soname. Anything with a '/': a driver library's
     * path. NULL: what the environment variable CUCOREMR_DRIVER says, else
     * "cuda".
     */
    const char *driver;
} ccmr_init_options;

/** What is known about the driver in use. @since 0.1 */
typedef struct ccmr_driver_info {
    size_t size;      /**< [in] sizeof(ccmr_driver_info) */
    const char *name; /**< "cuda", "sim" or the path; static */
    const char *path; /**< file that was loaded; static */
    int simulated;    /**< 1 for libcucoremr-sim.so */
    int version;      /**< as cuDriverGetVersion, 13000 */
    int devices;      /**< number of devices */
} ccmr_driver_info;

/** What is known about a device. @since 0.1 */
typedef struct ccmr_device_info {
    size_t size; /**< [in] sizeof(ccmr_device_info) */
    char name[128];
    size_t total_bytes;         /**< all of the device's memory */
    int memory_pools;           /**< 1 if driver memory pools are supported */
    unsigned pool_handle_kinds; /**< CCMR_HANDLE_... that pools can have */
    int concurrent_managed_access;
} ccmr_device_info;

CCMR_BEGIN_DECLS

/**
 * Load and initialise the driver. Optional: the first call that needs a
 * driver does it with defaults. Calling again is harmless if it asks for the
 * driver in use (or for none by name); another one is CCMR_ERROR_BUSY.
 * `options` may be NULL.
 *
 * Errors: CCMR_ERROR_DRIVER_NOT_FOUND (the message says what was tried and
 * why), CCMR_ERROR_DRIVER_STUB (which file), CCMR_ERROR_DRIVER_TOO_OLD,
 * CCMR_ERROR_NO_DEVICE, CCMR_ERROR_DRIVER; nothing was set up and the call
 * may be repeated. Takes as long as cuInit. Any thread.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status
ccmr_init(const ccmr_init_options *options);

/**
 * The driver in use; initialises it if need be (errors of ccmr_init()).
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status ccmr_driver(ccmr_driver_info *info);

/**
 * Number of devices. Initialises the driver (errors of ccmr_init()).
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status ccmr_device_count(int *count);

/**
 * What is known about a device. CCMR_ERROR_NO_DEVICE: no such ordinal.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status
ccmr_device_describe(int device, ccmr_device_info *info);

/**
 * A device's current resource, with a reference that the caller releases. The
 * first call makes the default: `device_pool` over the driver's default pool;
 * where a device has no memory pools, `stream_ordered | device_plain`.
 * `device` may be CCMR_DEVICE_CURRENT. Any thread.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status
ccmr_device_current_resource(int device, ccmr_resource **resource);

/**
 * Replace a device's current resource. The library takes a reference of its
 * own; NULL brings the default back. `previous` may be NULL; otherwise it gets
 * the former one with a reference (NULL if none had been made). What was
 * allocated is not affected. CCMR_ERROR_WRONG_DEVICE: the resource is bound to
 * another device. Any thread.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status ccmr_device_set_current_resource(
    int device, ccmr_resource *resource, ccmr_resource **previous);

CCMR_END_DECLS

#endif /* CUCOREMR_DEVICE_H */
