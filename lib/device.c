/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public side of driver and devices, and the devices' current resources.
 */
#include <cucoremr/device.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <cucoremr/stack.h>

#include "lib/context.h"
#include "lib/error.h"
#include "lib/process.h"
#include "lib/resource.h"
#include "lib/struct.h"

/* The devices' current resources, each with a reference; NULL until the first
 * question. The lock is never held while a resource is made or released. */
static ccmr_resource *current[CCMR__MAX_DEVICES];
static pthread_mutex_t current_lock = PTHREAD_MUTEX_INITIALIZER;

ccmr_status ccmr_init(const ccmr_init_options *options)
{
    ccmr_init_options own = {.size = sizeof(own)};
    ccmr_status status = ccmr__process_check();
    ccmr__device *first;

    if (status == CCMR_SUCCESS && options != NULL) {
        status = ccmr__struct_read(&own, sizeof(own), options, sizeof(own),
                                   "ccmr_init_options");
    }
    if (status == CCMR_SUCCESS) {
        status = ccmr__driver_load(own.driver);
    }
    if (status == CCMR_SUCCESS) {
        status = ccmr__device_find(0, &first);
    }
    return status;
}

ccmr_status ccmr_driver(ccmr_driver_info *info)
{
    ccmr_driver_info own = {.size = sizeof(own)};
    ccmr_status status;

    if (info == NULL) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "ccmr_driver: info is NULL");
    }
    status = ccmr_init(NULL);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    own.name = ccmr__driver_name();
    own.path = ccmr__driver_path();
    own.simulated = ccmr__driver_simulated();
    own.version = ccmr__driver_version();
    own.devices = ccmr__device_number();
    return ccmr__struct_write(info, &own, sizeof(own), sizeof(own),
                              "ccmr_driver_info");
}

ccmr_status ccmr_device_count(int *count)
{
    ccmr_status status;

    if (count == NULL) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "ccmr_device_count: count is NULL");
    }
    status = ccmr_init(NULL);
    if (status == CCMR_SUCCESS) {
        *count = ccmr__device_number();
    }
    return status;
}

ccmr_status ccmr_device_describe(int device, ccmr_device_info *info)
{
    ccmr_device_info own = {.size = sizeof(own)};
    ccmr__device *record;
    ccmr_status status;
    CUresult res;

    if (info == NULL) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "ccmr_device_describe: info is NULL");
    }
    status = ccmr__device_find(device, &record);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    res =
        CCMR__CU(cuDeviceGetName)(own.name, sizeof(own.name), record->device);
    if (res != CUDA_SUCCESS) {
        return ccmr__fail_driver((int)res, "cuDeviceGetName");
    }
    own.name[sizeof(own.name) - 1] = '\0';
    own.total_bytes = record->total_bytes;
    own.memory_pools = record->memory_pools;
    own.pool_handle_kinds = record->pool_handle_kinds;
    own.concurrent_managed_access = record->concurrent_managed_access;
    return ccmr__struct_write(info, &own, sizeof(own), sizeof(own),
                              "ccmr_device_info");
}

static ccmr_resource *current_take(int ordinal)
{
    ccmr_resource *resource;

    (void)pthread_mutex_lock(&current_lock);
    resource = ccmr_resource_retain(current[ordinal]);
    (void)pthread_mutex_unlock(&current_lock);
    return resource;
}

static ccmr_status make_default(const ccmr__device *device,
                                ccmr_resource **resource)
{
    char text[64];

    (void)snprintf(text, sizeof(text),
                   device->memory_pools ? "device_pool device=%d"
                                        : "stream_ordered | device_plain "
                                          "device=%d",
                   device->ordinal);
    return ccmr_stack_create(text, resource);
}

ccmr_status ccmr_device_current_resource(int device, ccmr_resource **resource)
{
    ccmr_resource *made;
    ccmr_resource *spare;
    ccmr__device *record;
    ccmr_status status;

    if (resource == NULL) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "ccmr_device_current_resource: resource is NULL");
    }
    status = ccmr__device_find(device, &record);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    made = current_take(record->ordinal);
    if (made != NULL) {
        *resource = made;
        return CCMR_SUCCESS;
    }
    status = make_default(record, &made);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    /* Another thread may have been faster: its resource counts. */
    (void)pthread_mutex_lock(&current_lock);
    spare = current[record->ordinal] != NULL ? made : NULL;
    if (spare == NULL) {
        current[record->ordinal] = made;
    }
    *resource = ccmr_resource_retain(current[record->ordinal]);
    (void)pthread_mutex_unlock(&current_lock);
    ccmr_resource_release(spare);
    return CCMR_SUCCESS;
}

ccmr_status ccmr_device_set_current_resource(int device,
                                             ccmr_resource *resource,
                                             ccmr_resource **previous)
{
    ccmr_resource *former;
    ccmr__device *record;
    ccmr_status status = ccmr__device_find(device, &record);

    if (status != CCMR_SUCCESS) {
        return status;
    }
    if (resource != NULL && ccmr__resource_device(resource) >= 0 &&
        ccmr__resource_device(resource) != record->ordinal) {
        return ccmr__fail(CCMR_ERROR_WRONG_DEVICE,
                          "%s is bound to device %d, not to device %d",
                          ccmr_resource_name(resource),
                          ccmr__resource_device(resource), record->ordinal);
    }
    (void)ccmr_resource_retain(resource);
    (void)pthread_mutex_lock(&current_lock);
    former = current[record->ordinal];
    current[record->ordinal] = resource;
    (void)pthread_mutex_unlock(&current_lock);
    if (previous != NULL) {
        *previous = former;
    } else {
        ccmr_resource_release(former);
    }
    return CCMR_SUCCESS;
}
