/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices, their primary contexts, and scopes.
 */
#include "lib/context.h"

#include <pthread.h>
#include <stdatomic.h>

#include "lib/error.h"
#include "lib/process.h"

/*
 * All devices. `found` of them are filled, in one go at the first use; what
 * never changes after that is read without the lock. `context` and `idle` are
 * written once, under the lock.
 */
static ccmr__device devices[CCMR__MAX_DEVICES];
static atomic_int found;
static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;

/* Bits of CUmemAllocationHandleType are those of CCMR_HANDLE_... */
_Static_assert(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ==
                       (int)CCMR_HANDLE_POSIX_FD &&
                   CU_MEM_HANDLE_TYPE_FABRIC == (int)CCMR_HANDLE_FABRIC,
               "handle kinds are the driver's bits");

static ccmr_status read_attribute(CUdevice device, CUdevice_attribute which,
                                  int *value)
{
    CUresult res = CCMR__CU(cuDeviceGetAttribute)(value, which, device);

    if (res == CUDA_ERROR_INVALID_VALUE) {
        *value = 0; /* a driver that is too old to know the attribute */
        return CCMR_SUCCESS;
    }
    if (res != CUDA_SUCCESS) {
        return ccmr__fail_driver((int)res, "cuDeviceGetAttribute");
    }
    return CCMR_SUCCESS;
}

/* What memory pools need; a driver that lacks one of these has none. */
static int has_pool_calls(void)
{
    return CCMR__CU(cuDeviceGetDefaultMemPool) != NULL &&
           CCMR__CU(cuMemPoolCreate) != NULL &&
           CCMR__CU(cuMemPoolDestroy) != NULL &&
           CCMR__CU(cuMemPoolSetAttribute) != NULL &&
           CCMR__CU(cuMemPoolGetAttribute) != NULL &&
           CCMR__CU(cuMemPoolTrimTo) != NULL &&
           CCMR__CU(cuMemAllocFromPoolAsync) != NULL &&
           CCMR__CU(cuMemFreeAsync) != NULL;
}

static ccmr_status read_device(int ordinal, ccmr__device *record)
{
    ccmr_status status;
    CUdevice device;
    int handle_kinds;
    CUresult res;

    res = CCMR__CU(cuDeviceGet)(&device, ordinal);
    if (res != CUDA_SUCCESS) {
        return ccmr__fail_driver((int)res, "cuDeviceGet");
    }
    res = CCMR__CU(cuDeviceTotalMem)(&record->total_bytes, device);
    if (res != CUDA_SUCCESS) {
        return ccmr__fail_driver((int)res, "cuDeviceTotalMem");
    }
    record->ordinal = ordinal;
    record->device = device;
    status = read_attribute(device, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED,
                            &record->memory_pools);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    record->memory_pools = record->memory_pools && has_pool_calls();
    status = read_attribute(device,
                            CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES,
                            &handle_kinds);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    record->pool_handle_kinds = (unsigned)handle_kinds;
    return read_attribute(device,
                          CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS,
                          &record->concurrent_managed_access);
}

/* Fill the table, once. On a failure the next call tries again. */
static ccmr_status find_devices(void)
{
    ccmr_status status = ccmr__driver_need();
    int count = 0;
    CUresult res;
    int i;

    if (status != CCMR_SUCCESS) {
        return status;
    }
    if (atomic_load_explicit(&found, memory_order_acquire) > 0) {
        return CCMR_SUCCESS;
    }
    (void)pthread_mutex_lock(&devices_lock);
    if (atomic_load_explicit(&found, memory_order_relaxed) == 0) {
        res = CCMR__CU(cuDeviceGetCount)(&count);
        if (res != CUDA_SUCCESS) {
            status = ccmr__fail_driver((int)res, "cuDeviceGetCount");
        } else if (count <= 0) {
            status =
                ccmr__fail(CCMR_ERROR_NO_DEVICE, "the driver has no device");
        }
        if (count > CCMR__MAX_DEVICES) {
            count = CCMR__MAX_DEVICES;
        }
        for (i = 0; i < count && status == CCMR_SUCCESS; i++) {
            status = read_device(i, &devices[i]);
        }
        if (status == CCMR_SUCCESS) {
            atomic_store_explicit(&found, count, memory_order_release);
        }
    }
    (void)pthread_mutex_unlock(&devices_lock);
    return status;
}

int ccmr__device_number(void)
{
    return atomic_load_explicit(&found, memory_order_acquire);
}

/* The ordinal of the current context's device, 0 without a context. */
static ccmr_status current_ordinal(int *ordinal)
{
    CUcontext context;
    CUdevice device;
    CUresult res;
    int i;

    *ordinal = 0;
    res = CCMR__CU(cuCtxGetCurrent)(&context);
    if (res != CUDA_SUCCESS) {
        return ccmr__fail_driver((int)res, "cuCtxGetCurrent");
    }
    if (context == NULL) {
        return CCMR_SUCCESS;
    }
    res = CCMR__CU(cuCtxGetDevice)(&device);
    if (res != CUDA_SUCCESS) {
        return ccmr__fail_driver((int)res, "cuCtxGetDevice");
    }
    for (i = 0; i < ccmr__device_number(); i++) {
        if (devices[i].device == device) {
            *ordinal = i;
        }
    }
    return CCMR_SUCCESS;
}

ccmr_status ccmr__device_find(int ordinal, ccmr__device **device)
{
    ccmr_status status = ccmr__process_check();

    if (status == CCMR_SUCCESS) {
        status = find_devices();
    }
    if (status == CCMR_SUCCESS && ordinal == CCMR_DEVICE_CURRENT) {
        status = current_ordinal(&ordinal);
    }
    if (status != CCMR_SUCCESS) {
        return status;
    }
    if (ordinal < 0 || ordinal >= ccmr__device_number()) {
        status = ccmr__fail(CCMR_ERROR_NO_DEVICE,
                            "no device %d: there are %d, counted from 0",
                            ordinal, ccmr__device_number());
        ccmr__error()->device = ordinal;
        return status;
    }
    *device = &devices[ordinal];
    return CCMR_SUCCESS;
}

ccmr_status ccmr__device_use(int ordinal, ccmr__device **device)
{
    ccmr__device *record;
    ccmr_status status = ccmr__device_find(ordinal, &record);
    CUresult res;

    if (status != CCMR_SUCCESS) {
        return status;
    }
    (void)pthread_mutex_lock(&devices_lock);
    if (record->context == NULL) {
        CUcontext context;

        res = CCMR__CU(cuDevicePrimaryCtxRetain)(&context, record->device);
        if (res == CUDA_SUCCESS) {
            record->context = context;
        } else {
            status = ccmr__fail_driver((int)res, "cuDevicePrimaryCtxRetain");
        }
    }
    (void)pthread_mutex_unlock(&devices_lock);
    if (status == CCMR_SUCCESS) {
        *device = record;
    }
    return status;
}

ccmr_status ccmr__device_idle_stream(ccmr__device *device, CUstream *stream)
{
    ccmr_status status = CCMR_SUCCESS;
    ccmr__scope scope;
    CUresult res;

    (void)pthread_mutex_lock(&devices_lock);
    if (device->idle == NULL) {
        status = ccmr__scope_enter(&scope, device, CCMR__SCOPE_RELAXED);
        if (status == CCMR_SUCCESS) {
            CUstream made;

            res = CCMR__CU(cuStreamCreate)(&made, CU_STREAM_NON_BLOCKING);
            if (res == CUDA_SUCCESS) {
                device->idle = made;
            } else {
                status = ccmr__fail_driver((int)res, "cuStreamCreate");
            }
            ccmr__scope_leave(&scope);
        }
    }
    if (status == CCMR_SUCCESS) {
        *stream = device->idle;
    }
    (void)pthread_mutex_unlock(&devices_lock);
    return status;
}

/* Undoing must not fail for a call that went wrong once: the caller's state
 * is worth a second try. */
static void pop_context(void)
{
    CUcontext popped;
    CUresult res = CCMR__CU(cuCtxPopCurrent)(&popped);

    if (res == CUDA_ERROR_DEINITIALIZED) {
        ccmr__process_set_exiting();
    } else if (res != CUDA_SUCCESS) {
        (void)CCMR__CU(cuCtxPopCurrent)(&popped);
    }
}

ccmr_status ccmr__scope_enter(ccmr__scope *scope, ccmr__device *device,
                              unsigned flags)
{
    CUcontext current;
    CUresult res;

    *scope = (ccmr__scope){0};
    res = CCMR__CU(cuCtxGetCurrent)(&current);
    if (res != CUDA_SUCCESS) {
        return ccmr__fail_driver((int)res, "cuCtxGetCurrent");
    }
    if (current != device->context) {
        res = CCMR__CU(cuCtxPushCurrent)(device->context);
        if (res != CUDA_SUCCESS) {
            return ccmr__fail_driver((int)res, "cuCtxPushCurrent");
        }
        scope->pushed = 1;
    }
    if ((flags & CCMR__SCOPE_RELAXED) != 0) {
        scope->mode = CU_STREAM_CAPTURE_MODE_RELAXED;
        res = CCMR__CU(cuThreadExchangeStreamCaptureMode)(&scope->mode);
        if (res != CUDA_SUCCESS) {
            if (scope->pushed) {
                pop_context();
            }
            return ccmr__fail_driver((int)res,
                                     "cuThreadExchangeStreamCaptureMode");
        }
        scope->relaxed = 1;
    }
    return CCMR_SUCCESS;
}

void ccmr__scope_leave(ccmr__scope *scope)
{
    if (scope->relaxed) {
        CUstreamCaptureMode mode = scope->mode;
        CUresult res = CCMR__CU(cuThreadExchangeStreamCaptureMode)(&mode);

        if (res == CUDA_ERROR_DEINITIALIZED) {
            ccmr__process_set_exiting();
        } else if (res != CUDA_SUCCESS) {
            mode = scope->mode;
            (void)CCMR__CU(cuThreadExchangeStreamCaptureMode)(&mode);
        }
    }
    if (scope->pushed) {
        pop_context();
    }
}
