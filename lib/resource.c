/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resource object: creation, references, draining, retired streams.
 */
#include "lib/resource.h"

#include <stdlib.h>
#include <string.h>

#include "lib/arith.h"
#include "lib/error.h"
#include "lib/process.h"
#include "lib/quick.h"
#include "lib/resource_object.h"
#include "lib/struct.h"
#include "lib/thread.h"

/* Resources that want to know of retired streams, until they are destroyed:
 * one that drains may have blocks that wait for a stream. A walk holds the one
 * it calls as a buffer does, never the lock. The lock comes before that of a
 * resource. */
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static ccmr_resource *list;

/* ---- creation -------------------------------------------------------- */

#define OPS_MINIMUM                                                           \
    (offsetof(ccmr_resource_ops, describe) +                                  \
     sizeof(((ccmr_resource_ops *)0)->describe))

static ccmr_status missing_op(const char *name)
{
    return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                      "ccmr_resource_ops: %s is NULL", name);
}

static ccmr_status check_ops(const ccmr_resource_ops *ops)
{
    int ranges = (ops->reserve != NULL) + (ops->commit != NULL) +
                 (ops->decommit != NULL) + (ops->move != NULL) +
                 (ops->unreserve != NULL);

    if (ops->allocate == NULL) {
        return missing_op("allocate");
    }
    if (ops->deallocate == NULL) {
        return missing_op("deallocate");
    }
    if (ops->destroy == NULL) {
        return missing_op("destroy");
    }
    if (ops->describe == NULL) {
        return missing_op("describe");
    }
    if (ranges != 0 && ranges != 5) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "ccmr_resource_ops: reserve, commit, decommit, move "
                          "and unreserve come together; %d of 5 are set",
                          ranges);
    }
    if ((ops->pin == NULL) != (ops->unpin == NULL)) {
        return missing_op(ops->pin == NULL ? "pin, but not unpin,"
                                           : "unpin, but not pin,");
    }
    return CCMR_SUCCESS;
}

static ccmr_status check_properties(const ccmr_properties *properties)
{
    const char *name = properties->name;

    if (name == NULL || name[0] == '\0' ||
        strlen(name) >= sizeof(((ccmr_resource *)0)->name)) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "describe: name must have 1 to 31 characters");
    }
    if (!ccmr__is_power_of_two(properties->max_alignment)) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "describe of %s: max_alignment %zu is not a power "
                          "of two",
                          name, properties->max_alignment);
    }
    return CCMR_SUCCESS;
}

static ccmr_status describe_new(ccmr_resource *resource)
{
    ccmr_properties properties = {.size = sizeof(properties), .device = -1};
    unsigned before = ccmr__thread_self()->failures;
    ccmr_status status = resource->ops.describe(resource->self, &properties);

    if (status == CCMR_SUCCESS) {
        status = check_properties(&properties);
    } else if (ccmr__thread_self()->failures == before) {
        (void)ccmr__fail(status, "describe of a new resource: %s",
                         ccmr_status_text(status));
    }
    if (status != CCMR_SUCCESS) {
        return status;
    }
    resource->max_alignment = properties.max_alignment;
    resource->device = properties.device;
    strcpy(resource->name, properties.name);
    return CCMR_SUCCESS;
}

static void list_add(ccmr_resource *resource)
{
    (void)pthread_mutex_lock(&list_lock);
    resource->next = list;
    resource->link = &list;
    if (list != NULL) {
        list->link = &resource->next;
    }
    list = resource;
    (void)pthread_mutex_unlock(&list_lock);
}

static void list_remove(ccmr_resource *resource)
{
    (void)pthread_mutex_lock(&list_lock);
    *resource->link = resource->next;
    if (resource->next != NULL) {
        resource->next->link = resource->link;
    }
    (void)pthread_mutex_unlock(&list_lock);
}

ccmr_status ccmr_resource_create(const ccmr_resource_ops *ops, void *self,
                                 ccmr_resource **resource)
{
    ccmr_status status = ccmr__process_check();
    ccmr_resource *made;
    int ret;

    if (status != CCMR_SUCCESS) {
        return status;
    }
    if (ops == NULL || resource == NULL) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "ccmr_resource_create: %s is NULL",
                          ops == NULL ? "ops" : "resource");
    }
    made = aligned_alloc(64, sizeof(*made));
    if (made == NULL) {
        return ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                          "no memory for a resource");
    }
    memset(made, 0, sizeof(*made));
    status = ccmr__struct_read(&made->ops, sizeof(made->ops), ops, OPS_MINIMUM,
                               "ccmr_resource_ops");
    if (status == CCMR_SUCCESS) {
        status = check_ops(&made->ops);
    }
    if (status != CCMR_SUCCESS) {
        goto err_free;
    }
    made->self = self;
    made->given = ops;
    status = describe_new(made);
    if (status != CCMR_SUCCESS) {
        goto err_free;
    }
    ret = pthread_mutex_init(&made->lock, NULL);
    if (ret != 0) {
        status = ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                            "no memory for a resource's lock");
        goto err_free;
    }
    atomic_init(&made->references, 1);
    if (made->ops.retire_stream != NULL) {
        list_add(made);
    }
    *resource = made;
    return CCMR_SUCCESS;

err_free:
    free(made);
    return status;
}

/* ---- references and draining ----------------------------------------- */

static void destroy(ccmr_resource *resource)
{
    if (resource->ops.retire_stream != NULL) {
        list_remove(resource);
    }
    /* Those who found that nothing is left may still be on their way out. */
    ccmr__census_wait_out(&resource->census);
    resource->ops.destroy(resource->self);
    (void)pthread_mutex_destroy(&resource->lock);
    free(resource);
}

/* Under resource->lock: nothing is left, and it is this caller's to end. */
static int claim_destroy(ccmr_resource *resource)
{
    ccmr__census_sum sum;

    ccmr__census_read(&resource->census, &sum);
    if (resource->destroyed || resource->flushing ||
        sum.allocations > sum.deallocations || sum.holders > 0) {
        return 0;
    }
    resource->destroyed = 1;
    return 1;
}

/*
 * A block or a holder has gone and the resource is closing. The caller is
 * inside its shard and stays there until it no longer touches the resource.
 */
void ccmr__resource_leave_closing(ccmr_resource *resource, ccmr__shard *shard,
                                  unsigned slot)
{
    int last;

    /* A count that is not seen here belongs to a thread that comes for the
     * lock after this one. */
    (void)pthread_mutex_lock(&resource->lock);
    last = claim_destroy(resource);
    (void)pthread_mutex_unlock(&resource->lock);
    ccmr__census_leave(shard, slot);
    if (last) {
        destroy(resource);
    }
}

ccmr_resource *ccmr_resource_retain(ccmr_resource *resource)
{
    if (resource != NULL) {
        atomic_fetch_add_explicit(&resource->references, 1,
                                  memory_order_relaxed);
    }
    return resource;
}

/* The last reference is gone: drain. */
static void close_resource(ccmr_resource *resource)
{
    ccmr_trim_result result = {.size = sizeof(result)};
    int last;

    (void)pthread_mutex_lock(&resource->lock);
    atomic_store_explicit(&resource->closing, 1, memory_order_relaxed);
    ccmr__quick_revoke();
    ccmr__census_barrier();
    last = claim_destroy(resource);
    resource->flushing = !last; /* nobody destroys it meanwhile */
    (void)pthread_mutex_unlock(&resource->lock);
    if (!last) {
        if (resource->ops.trim != NULL) {
            (void)resource->ops.trim(resource->self, 0, &result);
        }
        (void)pthread_mutex_lock(&resource->lock);
        resource->flushing = 0;
        last = claim_destroy(resource);
        (void)pthread_mutex_unlock(&resource->lock);
    }
    if (last) {
        destroy(resource);
    }
}

void ccmr_resource_release(ccmr_resource *resource)
{
    if (resource == NULL || ccmr__process_gone()) {
        return;
    }
    if (atomic_fetch_sub_explicit(&resource->references, 1,
                                  memory_order_acq_rel) == 1) {
        close_resource(resource);
    }
}

void ccmr__resource_hold(ccmr_resource *resource)
{
    unsigned slot = ccmr__thread_self()->slot;

    ccmr__shard_add(slot, &resource->census.shards[slot].holders, 1);
}

void ccmr__resource_unhold(ccmr_resource *resource)
{
    unsigned slot = ccmr__thread_self()->slot;
    ccmr__shard *shard = &resource->census.shards[slot];

    ccmr__census_enter(shard, slot);
    ccmr__shard_add(slot, &shard->holders, -1);
    ccmr__resource_leave(resource, shard, slot);
}

/* ---- what others ask ------------------------------------------------- */

int ccmr__resource_is(const ccmr_resource *resource,
                      const ccmr_resource_ops *ops)
{
    return resource != NULL && resource->given == ops;
}

void *ccmr__resource_self(const ccmr_resource *resource)
{
    return resource->self;
}

int ccmr__resource_device(const ccmr_resource *resource)
{
    return resource->device;
}

size_t ccmr__resource_max_alignment(const ccmr_resource *resource)
{
    return resource->max_alignment;
}

/* ---- retired streams ------------------------------------------------- */

/* Hold a listed resource, unless it is being destroyed. */
static int hold_live(ccmr_resource *resource)
{
    int live;

    (void)pthread_mutex_lock(&resource->lock);
    live = !resource->destroyed;
    if (live) {
        ccmr__resource_hold(resource);
    }
    (void)pthread_mutex_unlock(&resource->lock);
    return live;
}

/* All listed resources, each held, in a new array. */
static ccmr_status snapshot(ccmr_resource ***resources, size_t *count)
{
    ccmr_resource *resource;
    size_t n = 0;

    *resources = NULL;
    *count = 0;
    (void)pthread_mutex_lock(&list_lock);
    for (resource = list; resource != NULL; resource = resource->next) {
        n++;
    }
    if (n != 0) {
        *resources = malloc(n * sizeof(**resources));
    }
    if (*resources != NULL) {
        for (resource = list; resource != NULL; resource = resource->next) {
            if (hold_live(resource)) {
                (*resources)[(*count)++] = resource;
            }
        }
    }
    (void)pthread_mutex_unlock(&list_lock);
    if (n != 0 && *resources == NULL) {
        return ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                          "no memory to tell %zu resources of a stream", n);
    }
    return CCMR_SUCCESS;
}

ccmr_status ccmr__resources_retire(ccmr_stream stream)
{
    ccmr_resource **resources;
    ccmr_status first = CCMR_SUCCESS;
    size_t count;
    ccmr_status status = snapshot(&resources, &count);
    size_t i;

    if (status != CCMR_SUCCESS) {
        return status;
    }
    for (i = 0; i < count; i++) {
        status = resources[i]->ops.retire_stream(resources[i]->self, stream);
        if (first == CCMR_SUCCESS && status != CCMR_SUCCESS) {
            first = status;
            ccmr__error_name_resource(resources[i]->name);
        }
        ccmr__resource_unhold(resources[i]);
    }
    free(resources);
    return first;
}

/* ---- implementers that do not keep to the contract ------------------------- */

ccmr_status ccmr__fail_depth(const ccmr_resource *resource)
{
    return ccmr__fail(CCMR_ERROR_OUT_OF_RANGE,
                      "%s has more than %u resources under it, or is its own "
                      "upstream",
                      resource->name, CCMR__STACK_MOST);
}

int ccmr__is_status(ccmr_status status)
{
    return strcmp(ccmr_status_name(status), "CCMR_ERROR_UNKNOWN") != 0;
}
