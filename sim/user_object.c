/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/user_object.h"

#include <pthread.h>
#include <stdlib.h>

static struct sim_slots slots;

/* Objects. */

static struct sim_user_object *find(CUuserObject handle)
{
    void *object;

    return sim_slot_find(&slots, handle, &object) == SIM_HANDLE_LIVE ? object
                                                                     : NULL;
}

/* The handle goes at once, the object with its destructor. */
static bool release(struct sim_user_object *object, uint64_t count)
{
    object->count -= count;
    if (object->count != 0) {
        return false;
    }
    sim_slot_give(&slots, &object->handle->slot);
    object->handle = NULL;
    return true;
}

void sim_user_object_drop(struct sim_user_object *object, uint64_t count)
{
    if (release(object, count)) {
        object->next = sim.dying;
        sim.dying = object;
    }
}

uint64_t sim_user_objects_live(void)
{
    return slots.live;
}

void sim_user_objects_reset(void)
{
    size_t i;

    for (i = 0; i < slots.used; i++) {
        free(((struct sim_slot *)(void *)slots.base + i)->object);
    }
    sim_slots_clear(&slots);
    while (sim.dying != NULL) {
        struct sim_user_object *object = sim.dying;

        sim.dying = object->next;
        free(object);
    }
}

/* Destructors, which may call nothing. */

static void destroy_all(struct sim_thread *self,
                        struct sim_user_object *objects)
{
    self->callbacks++;
    sim_unlock();
    while (objects != NULL) {
        struct sim_user_object *object = objects;

        objects = object->next;
        object->destroy(object->data);
        free(object);
    }
    sim_lock_unlocked();
    self->callbacks--;
}

void sim_user_objects_settle(struct sim_thread *self)
{
    struct sim_user_object *objects = sim.dying;

    sim.dying = NULL;
    destroy_all(self, objects);
}

static void *destroy_elsewhere(void *argument)
{
    struct sim_thread *self = sim_self_unlocked();

    if (self != NULL) {
        sim_lock_unlocked();
        destroy_all(self, argument);
        sim_unlock();
    }
    return NULL;
}

static void hand_over(struct sim_user_object *objects)
{
    pthread_attr_t attributes;
    pthread_t thread;
    int ret;

    if (objects == NULL) {
        return;
    }
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    ret = pthread_create(&thread, &attributes, destroy_elsewhere, objects);
    pthread_attr_destroy(&attributes);
    while (ret != 0 && objects != NULL) {
        struct sim_user_object *object = objects;

        objects = object->next;
        object->next = sim.dying;
        sim.dying = object;
    }
}

/* References. */

static struct sim_reference **find_reference(struct sim_reference **list,
                                             const void *object)
{
    while (*list != NULL && (*list)->object != object) {
        list = &(*list)->next;
    }
    return list;
}

static bool add_reference(struct sim_reference **list,
                          struct sim_user_object *object, uint64_t count)
{
    struct sim_reference **link = find_reference(list, object);

    if (*link == NULL) {
        *link = calloc(1, sizeof(**link));
        if (*link == NULL) {
            return false;
        }
        (*link)->object = object;
    }
    (*link)->count += count;
    return true;
}

bool sim_references_copy(struct sim_reference **to,
                         const struct sim_reference *from)
{
    for (; from != NULL; from = from->next) {
        if (!add_reference(to, from->object, 1)) {
            return false;
        }
        from->object->count++;
    }
    return true;
}

void sim_references_drop(struct sim_reference **list)
{
    while (*list != NULL) {
        struct sim_reference *reference = *list;

        *list = reference->next;
        sim_user_object_drop(reference->object, reference->count);
        free(reference);
    }
}

void sim_references_forget(struct sim_reference **list)
{
    while (*list != NULL) {
        struct sim_reference *reference = *list;

        *list = reference->next;
        free(reference);
    }
}

void sim_references_drop_elsewhere(struct sim_reference **list)
{
    struct sim_user_object *gone = NULL;

    while (*list != NULL) {
        struct sim_reference *reference = *list;

        *list = reference->next;
        if (release(reference->object, reference->count)) {
            reference->object->next = gone;
            gone = reference->object;
        }
        free(reference);
    }
    hand_over(gone);
}

/* The calls. */

static CUresult create(CUuserObject *handle, void *data, CUhostFn destroy,
                       unsigned count, unsigned flags)
{
    struct sim_user_object *object;
    struct sim_slot *slot;

    if (handle == NULL || destroy == NULL || count == 0 ||
        flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    object = calloc(1, sizeof *object);
    if (object == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    slot = sim_slot_take(&slots, object);
    if (slot == NULL) {
        free(object);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    object->handle = (CUuserObject)slot;
    object->destroy = destroy;
    object->data = data;
    object->count = count;
    *handle = object->handle;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuUserObjectCreate(CUuserObject *object_out, void *ptr,
                                    CUhostFn destroy,
                                    unsigned int initialRefcount,
                                    unsigned int flags)
{
    SIM_ENTRY(cuUserObjectCreate,
              create(object_out, ptr, destroy, initialRefcount, flags), NULL,
              SIM_OUT(object_out), 0, initialRefcount);
}

static CUresult retain(CUuserObject handle, unsigned count)
{
    struct sim_user_object *object = find(handle);

    if (object == NULL || count == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    object->count += count;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuUserObjectRetain(CUuserObject object, unsigned int count)
{
    SIM_ENTRY(cuUserObjectRetain, retain(object, count), NULL, object, 0,
              count);
}

/* Releasing more than there is makes a count that never comes to nothing. */
static CUresult release_object(CUuserObject handle, unsigned count)
{
    struct sim_user_object *object = find(handle);

    if (object == NULL || count == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_user_object_drop(object, count);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuUserObjectRelease(CUuserObject object, unsigned int count)
{
    SIM_ENTRY(cuUserObjectRelease, release_object(object, count), NULL, object,
              0, count);
}

static CUresult graph_retain(CUgraph graph_handle, CUuserObject handle,
                             unsigned count, unsigned flags)
{
    struct sim_graph *graph = sim_graph_find(graph_handle);
    struct sim_user_object *object = find(handle);

    if (graph == NULL || object == NULL || count == 0 ||
        (flags & ~(unsigned)CU_GRAPH_USER_OBJECT_MOVE) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!add_reference(&graph->references, object, count)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (flags == 0) {
        object->count += count;
    }
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphRetainUserObject(CUgraph graph, CUuserObject object,
                                         unsigned int count,
                                         unsigned int flags)
{
    SIM_ENTRY(cuGraphRetainUserObject,
              graph_retain(graph, object, count, flags), NULL, object, graph,
              count);
}

static CUresult graph_release(CUgraph graph_handle, CUuserObject handle,
                              unsigned count)
{
    struct sim_graph *graph = sim_graph_find(graph_handle);
    struct sim_user_object *object = find(handle);
    struct sim_reference **link;
    struct sim_reference *reference;

    if (graph == NULL || object == NULL || count == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    link = find_reference(&graph->references, object);
    reference = *link;
    if (reference != NULL && reference->count <= count) {
        *link = reference->next;
        free(reference);
    } else if (reference != NULL) {
        reference->count -= count;
    }
    sim_user_object_drop(object, count);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphReleaseUserObject(CUgraph graph, CUuserObject object,
                                          unsigned int count)
{
    SIM_ENTRY(cuGraphReleaseUserObject, graph_release(graph, object, count),
              NULL, object, graph, count);
}
