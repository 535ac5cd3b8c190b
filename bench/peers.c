/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/peers.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "bench/plugins.h"
#include "lib/context.h"
#include "lib/driver.h"
#include "lib/error.h"

/* A driver pool of the bench's own. It hides behind a resource's type, which
 * the functions below never look into. */
typedef struct driver_pool {
    CUmemoryPool handle;
} driver_pool;

static CUmemoryPool pool_of(ccmr_resource *self)
{
    return ((driver_pool *)(void *)self)->handle;
}

static ccmr_status driver_allocate(ccmr_resource *self, size_t bytes,
                                   size_t alignment, ccmr_stream stream,
                                   void **ptr)
{
    CUdeviceptr address = 0;
    CUresult res = CCMR__CU(cuMemAlloc)(&address, bytes);

    (void)self;
    (void)alignment;
    (void)stream;
    if (res != CUDA_SUCCESS) {
        return ccmr__fail_driver((int)res, CCMR__CU_NAME(cuMemAlloc));
    }
    *ptr = (void *)(uintptr_t)address;
    return CCMR_SUCCESS;
}

static ccmr_status driver_deallocate(ccmr_resource *self, void *ptr,
                                     size_t bytes, size_t alignment,
                                     ccmr_stream stream)
{
    CUresult res = CCMR__CU(cuMemFree)((CUdeviceptr)(uintptr_t)ptr);

    (void)self;
    (void)bytes;
    (void)alignment;
    (void)stream;
    if (res != CUDA_SUCCESS) {
        return ccmr__fail_driver((int)res, CCMR__CU_NAME(cuMemFree));
    }
    return CCMR_SUCCESS;
}

static ccmr_status pool_allocate(ccmr_resource *self, size_t bytes,
                                 size_t alignment, ccmr_stream stream,
                                 void **ptr)
{
    CUdeviceptr address = 0;
    CUresult res = CCMR__CU(cuMemAllocFromPoolAsync)(&address, bytes,
                                                     pool_of(self), stream);

    (void)alignment;
    if (res != CUDA_SUCCESS) {
        return ccmr__fail_driver((int)res,
                                 CCMR__CU_NAME(cuMemAllocFromPoolAsync));
    }
    *ptr = (void *)(uintptr_t)address;
    return CCMR_SUCCESS;
}

static ccmr_status pool_deallocate(ccmr_resource *self, void *ptr,
                                   size_t bytes, size_t alignment,
                                   ccmr_stream stream)
{
    CUresult res =
        CCMR__CU(cuMemFreeAsync)((CUdeviceptr)(uintptr_t)ptr, stream);

    (void)self;
    (void)bytes;
    (void)alignment;
    if (res != CUDA_SUCCESS) {
        return ccmr__fail_driver((int)res, CCMR__CU_NAME(cuMemFreeAsync));
    }
    return CCMR_SUCCESS;
}

static ccmr_status malloc_allocate(ccmr_resource *self, size_t bytes,
                                   size_t alignment, ccmr_stream stream,
                                   void **ptr)
{
    void *block = malloc(bytes);

    (void)self;
    (void)alignment;
    (void)stream;
    if (block == NULL) {
        return ccmr_error_set(CCMR_ERROR_OUT_OF_HOST_MEMORY, bytes, NULL);
    }
    *ptr = block;
    return CCMR_SUCCESS;
}

static ccmr_status malloc_deallocate(ccmr_resource *self, void *ptr,
                                     size_t bytes, size_t alignment,
                                     ccmr_stream stream)
{
    (void)self;
    (void)bytes;
    (void)alignment;
    (void)stream;
    free(ptr);
    return CCMR_SUCCESS;
}

/* glibc's functions under the names that no other malloc takes over. */
static void *(*glibc_malloc)(size_t bytes);
static void (*glibc_free)(void *ptr);

static bool glibc_find(void)
{
    void *found = dlsym(RTLD_DEFAULT, "__libc_malloc");

    memcpy(&glibc_malloc, &found, sizeof(found));
    found = dlsym(RTLD_DEFAULT, "__libc_free");
    memcpy(&glibc_free, &found, sizeof(found));
    return glibc_malloc != NULL && glibc_free != NULL;
}

static ccmr_status glibc_allocate(ccmr_resource *self, size_t bytes,
                                  size_t alignment, ccmr_stream stream,
                                  void **ptr)
{
    void *block = glibc_malloc(bytes);

    (void)self;
    (void)alignment;
    (void)stream;
    if (block == NULL) {
        return ccmr_error_set(CCMR_ERROR_OUT_OF_HOST_MEMORY, bytes, NULL);
    }
    *ptr = block;
    return CCMR_SUCCESS;
}

static ccmr_status glibc_deallocate(ccmr_resource *self, void *ptr,
                                    size_t bytes, size_t alignment,
                                    ccmr_stream stream)
{
    (void)self;
    (void)bytes;
    (void)alignment;
    (void)stream;
    glibc_free(ptr);
    return CCMR_SUCCESS;
}

static ccmr_status nothing_allocate(ccmr_resource *self, size_t bytes,
                                    size_t alignment, ccmr_stream stream,
                                    void **ptr)
{
    static char block;

    (void)self;
    (void)bytes;
    (void)alignment;
    (void)stream;
    *ptr = &block;
    return CCMR_SUCCESS;
}

static ccmr_status nothing_deallocate(ccmr_resource *self, void *ptr,
                                      size_t bytes, size_t alignment,
                                      ccmr_stream stream)
{
    (void)self;
    (void)ptr;
    (void)bytes;
    (void)alignment;
    (void)stream;
    return CCMR_SUCCESS;
}

const char *peer_malloc_name(void)
{
    if (dlsym(RTLD_DEFAULT, "mallctl") != NULL) {
        return "jemalloc";
    }
    if (dlsym(RTLD_DEFAULT, "__asan_init") != NULL ||
        dlsym(RTLD_DEFAULT, "__tsan_init") != NULL) {
        return "a sanitizer";
    }
    return "glibc";
}

bool peer_is_here(contender_kind kind)
{
    return kind != CONTENDER_GLIBC_MALLOC ||
           (strcmp(peer_malloc_name(), "jemalloc") == 0 && glibc_find());
}

static ccmr_status pool_open(instance *made)
{
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .maxSize = made->budget};
    cuuint64_t keep = UINT64_MAX;
    driver_pool *pool;
    CUresult res;

    if (CCMR__CU(cuMemPoolCreate) == NULL ||
        CCMR__CU(cuMemAllocFromPoolAsync) == NULL ||
        CCMR__CU(cuMemPoolSetAttribute) == NULL) {
        return ccmr__fail(CCMR_ERROR_NOT_SUPPORTED,
                          "the driver has no memory pools");
    }
    pool = calloc(1, sizeof(*pool));
    if (pool == NULL) {
        return ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY, "out of host memory");
    }
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = made->device;
    res = CCMR__CU(cuMemPoolCreate)(&pool->handle, &properties);
    if (res != CUDA_SUCCESS) {
        free(pool);
        return ccmr__fail_driver((int)res, CCMR__CU_NAME(cuMemPoolCreate));
    }
    res = CCMR__CU(cuMemPoolSetAttribute)(
        pool->handle, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep);
    if (res != CUDA_SUCCESS) {
        (void)CCMR__CU(cuMemPoolDestroy)(pool->handle);
        free(pool);
        return ccmr__fail_driver((int)res,
                                 CCMR__CU_NAME(cuMemPoolSetAttribute));
    }
    made->self = (ccmr_resource *)(void *)pool;
    made->allocate = pool_allocate;
    made->deallocate = pool_deallocate;
    return CCMR_SUCCESS;
}

ccmr_status peer_open(instance *made)
{
    switch (made->who->kind) {
    case CONTENDER_DRIVER:
        made->allocate = driver_allocate;
        made->deallocate = driver_deallocate;
        made->device_accessible = true;
        return CCMR_SUCCESS;
    case CONTENDER_DRIVER_POOL:
        made->device_accessible = true;
        return pool_open(made);
    case CONTENDER_MALLOC:
        made->allocate = malloc_allocate;
        made->deallocate = malloc_deallocate;
        made->host_accessible = true;
        return CCMR_SUCCESS;
    case CONTENDER_GLIBC_MALLOC:
        made->allocate = glibc_allocate;
        made->deallocate = glibc_deallocate;
        made->host_accessible = true;
        return CCMR_SUCCESS;
    case CONTENDER_NOTHING:
        made->allocate = nothing_allocate;
        made->deallocate = nothing_deallocate;
        return CCMR_SUCCESS;
    case CONTENDER_PLUGIN:
        return plugin_open(made);
    case CONTENDER_STACK:
        break;
    }
    return CCMR_ERROR_INVALID_ARGUMENT;
}

void peer_close(instance *gone)
{
    if (gone->who->kind == CONTENDER_PLUGIN) {
        plugin_close(gone);
        return;
    }
    if (gone->who->kind == CONTENDER_DRIVER_POOL && gone->self != NULL) {
        (void)CCMR__CU(cuMemPoolDestroy)(pool_of(gone->self));
        free((void *)gone->self);
    }
}

bool peer_figures(const instance *in, figures *now)
{
    static const CUmemPool_attribute names[] = {
        CU_MEMPOOL_ATTR_USED_MEM_CURRENT, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT,
        CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH};
    cuuint64_t values[3];

    if (in->who->kind == CONTENDER_PLUGIN) {
        return plugin_figures(in, now);
    }
    if (in->who->kind != CONTENDER_DRIVER_POOL) {
        return false;
    }
    for (size_t i = 0; i < 3; i++) {
        if (CCMR__CU(cuMemPoolGetAttribute)(pool_of(in->self), names[i],
                                            &values[i]) != CUDA_SUCCESS) {
            return false;
        }
    }
    now->live = values[0];
    now->reserved = values[1];
    now->peak_reserved = values[2];
    return true;
}
