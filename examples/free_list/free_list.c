/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The allocator. It is written as for a device, and knows nothing of the
 * simulator:
 *
 *     allocate on s: take a kept block, let s wait for its event
 *     free on s:     record its event on s, keep it
 *
 * The driver's calls are found in the library that is in use, so that neither
 * cuda.h nor libcuda is needed to build this.
 */
#include "free_list.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* What is needed of the driver, as cuda.h has it. All answer 0 for success. */
static struct {
    int (*cuDevicePrimaryCtxRetain)(void **context, int device);
    int (*cuDevicePrimaryCtxRelease_v2)(int device);
    int (*cuCtxPushCurrent_v2)(void *context);
    int (*cuCtxPopCurrent_v2)(void **context);
    int (*cuStreamIsCapturing)(ccmr_stream stream, int *status);
    int (*cuEventCreate)(void **event, unsigned flags);
    int (*cuEventDestroy_v2)(void *event);
    int (*cuEventRecord)(void *event, ccmr_stream stream);
    int (*cuEventSynchronize)(void *event);
    int (*cuStreamWaitEvent)(ccmr_stream stream, void *event, unsigned flags);
} cu;

#define EVENT_DISABLE_TIMING 2u

typedef struct block {
    struct block *next;
    void *ptr;
    size_t bytes;       /* rounded up */
    void *event;        /* recorded by the last free */
    ccmr_stream stream; /* of the last free; may be gone */
    int ready;          /* that free said that all work is done */
} block;

typedef struct free_list {
    ccmr_resource *upstream;
    void *context; /* the primary one of device 0 */
    fault planted;
    pthread_mutex_t lock; /* guards both lists; no call is made under it */
    block *live, *kept;
} free_list;

static size_t rounded(size_t bytes)
{
    size_t size = 512;

    while (size < bytes) {
        size *= 2;
    }
    return size;
}

static ccmr_status driver_failed(const char *call)
{
    return ccmr_error_set(CCMR_ERROR_USER, 0, call);
}

/* Tokens stand for streams of a context, so that it has to be current. */
static ccmr_status refuse_capturing(ccmr_stream stream)
{
    int capturing = 0;

    if (stream != CCMR_STREAM_READY &&
        (cu.cuStreamIsCapturing(stream, &capturing) != 0 || capturing != 0)) {
        return ccmr_error_set(CCMR_ERROR_CAPTURING, 0, NULL);
    }
    return CCMR_SUCCESS;
}

static ccmr_status record(block *of, ccmr_stream stream)
{
    of->stream = stream;
    of->ready = stream == CCMR_STREAM_READY;
    if (!of->ready && cu.cuEventRecord(of->event, stream) != 0) {
        return driver_failed("cuEventRecord failed");
    }
    return CCMR_SUCCESS;
}

/* Work on `stream` comes behind the last owner's. Always to wait is right: a
 * wait for the same stream costs little, and a handle that is the same may be
 * another stream's by now, a token another thread's. */
static ccmr_status wait(const free_list *self, const block *of,
                        ccmr_stream stream)
{
    if (of->ready || self->planted == FAULT_NO_WAIT ||
        (self->planted == FAULT_SAME_HANDLE && of->stream == stream)) {
        return CCMR_SUCCESS;
    }
    return cu.cuStreamWaitEvent(stream, of->event, 0) == 0
               ? CCMR_SUCCESS
               : driver_failed("cuStreamWaitEvent failed");
}

/* Take out the block with that address; any of that size where it is NULL. */
static block *take(free_list *self, block **list, const void *ptr, size_t size)
{
    block *found;

    (void)pthread_mutex_lock(&self->lock);
    while (*list != NULL &&
           ((*list)->bytes != size || (ptr != NULL && (*list)->ptr != ptr))) {
        list = &(*list)->next;
    }
    found = *list;
    if (found != NULL) {
        *list = found->next;
    }
    (void)pthread_mutex_unlock(&self->lock);
    return found;
}

static void put(free_list *self, block **list, block *added)
{
    (void)pthread_mutex_lock(&self->lock);
    added->next = *list;
    *list = added;
    (void)pthread_mutex_unlock(&self->lock);
}

/* All that the free will need is made here: a free may not lack memory. NULL
 * where `*status` says why. */
static block *make_block(const free_list *self, size_t size,
                         ccmr_stream stream, ccmr_status *status)
{
    block *made = calloc(1, sizeof(*made));

    if (made == NULL) {
        *status = ccmr_error_set(CCMR_ERROR_OUT_OF_HOST_MEMORY, size, NULL);
        return NULL;
    }
    made->bytes = size;
    if (cu.cuEventCreate(&made->event, EVENT_DISABLE_TIMING) != 0) {
        *status = driver_failed("cuEventCreate failed");
        goto err_made;
    }
    *status =
        ccmr_resource_allocate(self->upstream, size, 0, stream, &made->ptr);
    if (*status != CCMR_SUCCESS) {
        goto err_event;
    }
    return made;

err_event:
    (void)cu.cuEventDestroy_v2(made->event);
err_made:
    free(made);
    return NULL;
}

/* A block that `stream` may use; NULL where `*status` says why not. */
static block *find_block(free_list *self, size_t size, ccmr_stream stream,
                         ccmr_status *status)
{
    block *found;

    *status = refuse_capturing(stream);
    if (*status != CCMR_SUCCESS) {
        return NULL;
    }
    found = take(self, &self->kept, NULL, size);
    if (found == NULL) {
        found = make_block(self, size, stream, status);
    } else {
        *status = wait(self, found, stream);
    }
    if (found != NULL && *status == CCMR_SUCCESS &&
        self->planted == FAULT_STALE_EVENT) {
        *status = record(found, stream);
    }
    if (found != NULL && *status != CCMR_SUCCESS) {
        put(self, &self->kept, found);
        found = NULL;
    }
    return found;
}

static ccmr_status list_allocate(void *object, size_t bytes, size_t alignment,
                                 ccmr_stream stream, void **ptr)
{
    free_list *self = object;
    ccmr_status status;
    block *found;

    (void)alignment; /* at most what upstream gives */
    if (bytes > SIZE_MAX / 4) {
        return ccmr_error_set(CCMR_ERROR_OUT_OF_DEVICE_MEMORY, bytes, NULL);
    }
    if (cu.cuCtxPushCurrent_v2(self->context) != 0) {
        return driver_failed("cuCtxPushCurrent failed");
    }
    found = find_block(self, rounded(bytes), stream, &status);
    (void)cu.cuCtxPopCurrent_v2(&(void *){NULL});
    if (found == NULL) {
        return status;
    }
    *ptr = found->ptr;
    put(self, &self->live, found);
    return CCMR_SUCCESS;
}

static ccmr_status list_deallocate(void *object, void *ptr, size_t bytes,
                                   size_t alignment, ccmr_stream stream)
{
    free_list *self = object;
    block *found = take(self, &self->live, ptr, rounded(bytes));
    ccmr_status status;

    (void)alignment;
    if (found == NULL) {
        return ccmr_error_set(CCMR_ERROR_INVALID_POINTER, bytes,
                              "no block of that size is there");
    }
    if (cu.cuCtxPushCurrent_v2(self->context) != 0) {
        put(self, &self->live, found);
        return driver_failed("cuCtxPushCurrent failed");
    }
    status = refuse_capturing(stream);
    if (status == CCMR_SUCCESS && self->planted != FAULT_STALE_EVENT) {
        status = record(found, stream);
    }
    (void)cu.cuCtxPopCurrent_v2(&(void *){NULL});
    put(self, status == CCMR_SUCCESS ? &self->kept : &self->live, found);
    return status;
}

/* Streams may be gone, events are not. */
static void list_destroy(void *object)
{
    free_list *self = object;

    while (self->kept != NULL) {
        block *gone = self->kept;

        self->kept = gone->next;
        if (!gone->ready) {
            (void)cu.cuEventSynchronize(gone->event);
        }
        (void)cu.cuEventDestroy_v2(gone->event);
        (void)ccmr_resource_deallocate(self->upstream, gone->ptr, gone->bytes,
                                       0, CCMR_STREAM_READY);
        free(gone);
    }
    ccmr_resource_release(self->upstream);
    (void)cu.cuDevicePrimaryCtxRelease_v2(0);
    (void)pthread_mutex_destroy(&self->lock);
    free(self);
}

static ccmr_status list_describe(void *object, ccmr_properties *properties)
{
    (void)object;
    properties->name = "free_list";
    properties->device = 0;
    properties->device_accessible = 1;
    properties->max_alignment = 256;
    properties->free_stream = CCMR_FREE_ON_ALLOCATION_STREAM;
    properties->capture = CCMR_CAPTURE_REFUSED;
    return CCMR_SUCCESS;
}

static ccmr_status list_upstream(void *object, size_t i,
                                 ccmr_resource **resource)
{
    if (i > 0) {
        return CCMR_ERROR_OUT_OF_RANGE;
    }
    *resource = ((free_list *)object)->upstream;
    return CCMR_SUCCESS;
}

static const ccmr_resource_ops list_ops = {
    .size = sizeof(ccmr_resource_ops),
    .allocate = list_allocate,
    .deallocate = list_deallocate,
    .destroy = list_destroy,
    .describe = list_describe,
    .upstream = list_upstream,
};

/* dlsym() gives an object pointer; C has no cast from it to a function. */
static int find(void *library, const char *name, void *member)
{
    void *symbol = dlsym(library, name);

    memcpy(member, &symbol, sizeof(symbol));
    return symbol != NULL;
}

#define FIND(name) find(library, #name, &cu.name)

/* The library has loaded it already, and keeps it. */
static ccmr_status find_driver(void)
{
    ccmr_driver_info info = {.size = sizeof(info)};
    ccmr_status status = ccmr_driver(&info);
    void *library;

    if (status != CCMR_SUCCESS) {
        return status;
    }
    library = dlopen(info.path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        return ccmr_error_set(CCMR_ERROR_DRIVER_NOT_FOUND, 0, dlerror());
    }
    if (!FIND(cuDevicePrimaryCtxRetain) ||
        !FIND(cuDevicePrimaryCtxRelease_v2) || !FIND(cuCtxPushCurrent_v2) ||
        !FIND(cuCtxPopCurrent_v2) || !FIND(cuStreamIsCapturing) ||
        !FIND(cuEventCreate) || !FIND(cuEventDestroy_v2) ||
        !FIND(cuEventRecord) || !FIND(cuEventSynchronize) ||
        !FIND(cuStreamWaitEvent)) {
        return ccmr_error_set(CCMR_ERROR_DRIVER_TOO_OLD, 0,
                              "the driver lacks a call of events or streams");
    }
    return CCMR_SUCCESS;
}

ccmr_status free_list_create(fault planted, ccmr_resource **resource)
{
    ccmr_status status = find_driver();
    free_list *self;

    if (status != CCMR_SUCCESS) {
        return status;
    }
    self = calloc(1, sizeof(*self));
    if (self == NULL || pthread_mutex_init(&self->lock, NULL) != 0) {
        free(self);
        return ccmr_error_set(CCMR_ERROR_OUT_OF_HOST_MEMORY, 0, NULL);
    }
    self->planted = planted;
    if (cu.cuDevicePrimaryCtxRetain(&self->context, 0) != 0) {
        status = driver_failed("cuDevicePrimaryCtxRetain failed");
        goto err_self;
    }
    status = ccmr_device_plain_create(0, &self->upstream);
    if (status != CCMR_SUCCESS) {
        goto err_context;
    }
    status = ccmr_resource_create(&list_ops, self, resource);
    if (status != CCMR_SUCCESS) {
        goto err_upstream;
    }
    return CCMR_SUCCESS;

err_upstream:
    ccmr_resource_release(self->upstream);
err_context:
    (void)cu.cuDevicePrimaryCtxRelease_v2(0);
err_self:
    (void)pthread_mutex_destroy(&self->lock);
    free(self);
    return status;
}
