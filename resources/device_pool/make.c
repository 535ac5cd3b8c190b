/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_pool: creation. All of it runs in relaxed capture mode: attributes of
 * a pool would ruin a capture of another thread.
 */
#include "resources/device_pool/device_pool.h"

#include <pthread.h>
#include <stdlib.h>

#include "lib/arith.h"
#include "lib/error.h"
#include "lib/process.h"
#include "lib/resource.h"
#include "lib/struct.h"

/* A maximum is rounded up to what the driver reserves at least. */
#define POOL_UNIT ((size_t)32 << 20)

/* Drivers before these versions: corrupt memory by opportunistic reuse, and
 * have no maximum. */
#define OPPORTUNISTIC_VERSION 11050
#define MAXIMUM_VERSION 12020

#define ALL_HANDLE_KINDS                                                      \
    (CCMR_HANDLE_POSIX_FD | CCMR_HANDLE_WIN32 | CCMR_HANDLE_WIN32_KMT |       \
     CCMR_HANDLE_FABRIC)

/* Covers the reading and raising of a default pool's threshold, no more. */
static pthread_mutex_t threshold_lock = PTHREAD_MUTEX_INITIALIZER;

static ccmr_status set_attribute(CUmemoryPool pool,
                                 CUmemPool_attribute attribute, void *value)
{
    CUresult res = CCMR__CU(cuMemPoolSetAttribute)(pool, attribute, value);

    if (res != CUDA_SUCCESS) {
        return ccmr__fail_driver((int)res, "cuMemPoolSetAttribute");
    }
    return CCMR_SUCCESS;
}

static ccmr_status set_threshold(CUmemoryPool pool, cuuint64_t threshold)
{
    return set_attribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold);
}

/* Threshold and reuse rules of an own pool. */
static ccmr_status set_rules(const ccmr__device_pool *self)
{
    const ccmr_device_pool_options *made = &self->made;
    const struct {
        int off;
        CUmemPool_attribute attribute;
    } rules[] = {
        {made->no_follow_event_dependencies,
         CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES},
        {made->no_opportunistic, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC},
        {made->no_internal_dependencies,
         CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES},
    };
    ccmr_status status = set_threshold(self->pool, made->release_threshold);
    size_t i;

    for (i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        int off = 0;

        if (status == CCMR_SUCCESS && rules[i].off) {
            status = set_attribute(self->pool, rules[i].attribute, &off);
        }
    }
    return status;
}

/*
 * Reserve an own pool's initial bytes: the threshold keeps what is freed. The
 * idle stream is waited for, so that the driver knows that it is free.
 */
static ccmr_status prime(const ccmr__device_pool *self)
{
    CUdeviceptr address;
    CUresult res;

    res = CCMR__CU(cuMemAllocFromPoolAsync)(&address, self->made.initial,
                                            self->pool, self->idle);
    if (res == CUDA_ERROR_OUT_OF_MEMORY) {
        return ccmr__device_pool_full(self, self->made.initial, res);
    }
    if (res != CUDA_SUCCESS) {
        return ccmr__fail_driver((int)res, "cuMemAllocFromPoolAsync");
    }
    res = CCMR__CU(cuMemFreeAsync)(address, self->idle);
    if (res != CUDA_SUCCESS) {
        (void)CCMR__CU(cuMemFree)(address);
        return ccmr__fail_driver((int)res, "cuMemFreeAsync");
    }
    res = CCMR__CU(cuStreamSynchronize)(self->idle);
    if (res != CUDA_SUCCESS) {
        return ccmr__fail_driver((int)res, "cuStreamSynchronize");
    }
    return CCMR_SUCCESS;
}

/* In a relaxed scope. */
static ccmr_status make_own_pool(ccmr__device_pool *self)
{
    const CUmemPoolProps props = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .handleTypes = (CUmemAllocationHandleType)self->made.handle_kinds,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE,
                     .id = self->device->ordinal},
        .maxSize = self->made.maximum < self->device->total_bytes
                       ? self->made.maximum
                       : 0, /* which the driver takes for the device's */
    };
    ccmr_status status;
    CUresult res;

    res = CCMR__CU(cuMemPoolCreate)(&self->pool, &props);
    if (res != CUDA_SUCCESS) {
        return ccmr__fail_driver((int)res, "cuMemPoolCreate");
    }
    status = set_rules(self);
    if (status == CCMR_SUCCESS && self->made.initial != 0) {
        status = prime(self);
    }
    if (status != CCMR_SUCCESS) {
        /* Not before the driver has seen prime's free finish, should its own
         * wait be what failed. */
        (void)CCMR__CU(cuStreamSynchronize)(self->idle);
        (void)CCMR__CU(cuMemPoolDestroy)(self->pool);
    }
    return status;
}

/*
 * In a relaxed scope: raise a default pool's threshold, never lower it. Where
 * nothing was asked, only 0 is raised: any other value somebody chose.
 */
static ccmr_status raise_threshold(const ccmr__device_pool *self)
{
    const ccmr_device_pool_options *made = &self->made;
    ccmr_status status = CCMR_SUCCESS;
    cuuint64_t present;
    CUresult res;

    (void)pthread_mutex_lock(&threshold_lock);
    res = CCMR__CU(cuMemPoolGetAttribute)(
        self->pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &present);
    if (res != CUDA_SUCCESS) {
        status = ccmr__fail_driver((int)res, "cuMemPoolGetAttribute");
    } else if (made->release_threshold_set ? present < made->release_threshold
                                           : present == 0) {
        status = set_threshold(self->pool, made->release_threshold);
    }
    (void)pthread_mutex_unlock(&threshold_lock);
    return status;
}

/* In a relaxed scope. */
static ccmr_status wrap_default_pool(ccmr__device_pool *self)
{
    CUresult res =
        CCMR__CU(cuDeviceGetDefaultMemPool)(&self->pool, self->device->device);

    if (res != CUDA_SUCCESS) {
        return ccmr__fail_driver((int)res, "cuDeviceGetDefaultMemPool");
    }
    return raise_threshold(self);
}

static ccmr_status check_pools(const ccmr__device *device)
{
    if (device->memory_pools) {
        return CCMR_SUCCESS;
    }
    return ccmr__fail(CCMR_ERROR_NOT_SUPPORTED,
                      "device %d has no memory pools with this driver "
                      "(version %d)",
                      device->ordinal, ccmr__driver_version());
}

/* An own pool's handle kinds and reuse rules. */
static ccmr_status check_own(const ccmr__device *device,
                             ccmr_device_pool_options *made)
{
    unsigned lacking = made->handle_kinds & ~device->pool_handle_kinds;

    if ((made->handle_kinds & ~ALL_HANDLE_KINDS) != 0) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "handle_kinds has unknown bits: 0x%x",
                          made->handle_kinds & ~ALL_HANDLE_KINDS);
    }
    if (lacking != 0) {
        return ccmr__fail(CCMR_ERROR_NOT_SUPPORTED,
                          "pools of device %d cannot have the handle kinds "
                          "0x%x",
                          device->ordinal, lacking);
    }
    if (ccmr__driver_version() < OPPORTUNISTIC_VERSION) {
        made->no_opportunistic = 1;
    }
    return CCMR_SUCCESS;
}

/* See that an own pool's sizes go together, and round the maximum. */
static ccmr_status check_sizes(const ccmr__device *device,
                               ccmr_device_pool_options *made)
{
    if (made->maximum != 0 && ccmr__driver_version() < MAXIMUM_VERSION) {
        return ccmr__fail(CCMR_ERROR_NOT_SUPPORTED,
                          "the driver (version %d) cannot hold a maximum; "
                          "%d can",
                          ccmr__driver_version(), MAXIMUM_VERSION);
    }
    if (made->maximum != 0 && made->initial > made->maximum) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "initial (%zu) is more than maximum (%zu)",
                          made->initial, made->maximum);
    }
    if (!ccmr__round_up(made->maximum, POOL_UNIT, &made->maximum)) {
        return ccmr__fail(CCMR_ERROR_INVALID_SIZE, "maximum is too large");
    }
    if (made->initial > made->release_threshold) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "initial (%zu) is more than release_threshold (%llu)"
                          ": it would not be kept",
                          made->initial,
                          (unsigned long long)made->release_threshold);
    }
    if (made->initial > device->total_bytes) {
        (void)ccmr__fail(CCMR_ERROR_OUT_OF_DEVICE_MEMORY,
                         "initial is %zu bytes, device %d has %zu",
                         made->initial, device->ordinal, device->total_bytes);
        ccmr__error()->requested = made->initial;
        ccmr__error()->limit = device->total_bytes;
        return CCMR_ERROR_OUT_OF_DEVICE_MEMORY;
    }
    return CCMR_SUCCESS;
}

static ccmr_status check_flags(const ccmr_device_pool_options *made)
{
    const ccmr__flag flags[] = {
        {"own", made->own},
        {"release_threshold_set", made->release_threshold_set},
        {"no_follow_event_dependencies", made->no_follow_event_dependencies},
        {"no_opportunistic", made->no_opportunistic},
        {"no_internal_dependencies", made->no_internal_dependencies},
        {"no_guard", made->no_guard},
        {"streams_registered", made->streams_registered},
    };

    return ccmr__struct_flags("ccmr_device_pool_options", flags,
                              sizeof(flags) / sizeof(flags[0]));
}

static ccmr_status read_options(const ccmr_device_pool_options *from,
                                const ccmr__device *device,
                                ccmr_device_pool_options *made)
{
    ccmr_status status = CCMR_SUCCESS;

    *made = (ccmr_device_pool_options){.size = sizeof(*made)};
    if (from != NULL) {
        status = ccmr__struct_read(made, sizeof(*made), from, sizeof(*made),
                                   "ccmr_device_pool_options");
    }
    if (status == CCMR_SUCCESS) {
        status = check_flags(made);
    }
    if (status != CCMR_SUCCESS) {
        return status;
    }
    if (!made->release_threshold_set) {
        made->release_threshold = CCMR_DEVICE_POOL_KEEP_ALL;
    }
    if (!made->own) {
        if (made->initial != 0 || made->maximum != 0 ||
            made->handle_kinds != 0 || made->no_follow_event_dependencies ||
            made->no_opportunistic || made->no_internal_dependencies) {
            return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                              "initial, maximum, handle kinds and reuse rules "
                              "need an own pool (own)");
        }
        return CCMR_SUCCESS;
    }
    status = check_own(device, made);
    return status == CCMR_SUCCESS ? check_sizes(device, made) : status;
}

/* The device, which must have pools. */
static ccmr_status start(int device, ccmr_resource **resource,
                         ccmr__device_pool *self)
{
    ccmr_status status;

    *self = (ccmr__device_pool){.guard = 1};
    if (resource == NULL) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT, "resource is NULL");
    }
    status = ccmr__device_use(device, &self->device);
    if (status == CCMR_SUCCESS) {
        self->most_bytes = self->device->total_bytes;
        self->several = ccmr__device_number() > 1;
        status = check_pools(self->device);
    }
    return status;
}

/* Get the pool: the caller's, or the one that `made` describes. */
static ccmr_status get_pool(ccmr__device_pool *self, CUmemoryPool pool)
{
    ccmr__scope scope;
    ccmr_status status = ccmr__device_idle_stream(self->device, &self->idle);

    if (status == CCMR_SUCCESS) {
        status = ccmr__scope_enter(&scope, self->device, CCMR__SCOPE_RELAXED);
    }
    if (status != CCMR_SUCCESS) {
        return status;
    }
    if (pool != NULL) {
        self->pool = pool;
        status = ccmr__device_pool_probe(pool);
    } else if (self->made.own) {
        status = make_own_pool(self);
    } else {
        status = wrap_default_pool(self);
    }
    ccmr__scope_leave(&scope);
    return status;
}

static ccmr__device_pool *self_new(void)
{
    ccmr__device_pool *self = malloc(sizeof(*self));

    if (self == NULL) {
        (void)ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                         "no memory for a device_pool resource");
    }
    return self;
}

/* Make the resource of what was put together. */
static ccmr_status finish(ccmr__device_pool *self,
                          const ccmr__device_pool *from,
                          ccmr_resource **resource)
{
    ccmr_status status;

    *self = *from;
    status = ccmr_resource_create(&ccmr__device_pool_ops, self, resource);
    if (status != CCMR_SUCCESS) {
        ccmr__device_pool_destroy(self);
    }
    return status;
}

ccmr_status ccmr_device_pool_create(int device,
                                    const ccmr_device_pool_options *options,
                                    ccmr_resource **resource)
{
    ccmr__device_pool *object;
    ccmr__device_pool self;
    ccmr_status status = start(device, resource, &self);

    if (status == CCMR_SUCCESS) {
        status = read_options(options, self.device, &self.made);
    }
    if (status != CCMR_SUCCESS) {
        return status;
    }
    self.owned = self.made.own;
    self.guard = !self.made.no_guard;
    if (self.made.maximum != 0 && self.made.maximum < self.most_bytes) {
        self.most_bytes = self.made.maximum;
    }
    object = self_new();
    if (object == NULL) {
        return CCMR_ERROR_OUT_OF_HOST_MEMORY;
    }
    ccmr__device_pool_look_at_retired(self.device);
    status = get_pool(&self, NULL);
    if (status != CCMR_SUCCESS) {
        free(object);
        return status;
    }
    return finish(object, &self, resource);
}

ccmr_status ccmr_device_pool_from_handle(int device,
                                         struct CUmemPoolHandle_st *pool,
                                         ccmr_resource **resource)
{
    ccmr__device_pool *object;
    ccmr__device_pool self;
    ccmr_status status = start(device, resource, &self);

    if (status == CCMR_SUCCESS && pool == NULL) {
        status = ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT, "pool is NULL");
    }
    if (status != CCMR_SUCCESS) {
        return status;
    }
    object = self_new();
    if (object == NULL) {
        return CCMR_ERROR_OUT_OF_HOST_MEMORY;
    }
    status = get_pool(&self, pool);
    if (status != CCMR_SUCCESS) {
        free(object);
        return status;
    }
    return finish(object, &self, resource);
}

ccmr_status ccmr_device_pool_handle(ccmr_resource *resource,
                                    struct CUmemPoolHandle_st **pool)
{
    const ccmr__device_pool *self;
    ccmr_status status = ccmr__process_check();

    if (status != CCMR_SUCCESS) {
        return status;
    }
    if (resource == NULL || pool == NULL) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT, "%s is NULL",
                          resource == NULL ? "resource" : "pool");
    }
    if (!ccmr__resource_is(resource, &ccmr__device_pool_ops)) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "%s is not a device_pool",
                          ccmr_resource_name(resource));
    }
    self = ccmr__resource_self(resource);
    *pool = self->pool;
    return CCMR_SUCCESS;
}
