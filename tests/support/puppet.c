/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/puppet.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#define FIRST_ADDRESS ((uintptr_t)1 << 40)

struct puppet_block {
    uintptr_t address;
    size_t bytes;
    size_t alignment;
    puppet_block *next;
};

static puppet_block **bucket_of(puppet *self, uintptr_t address)
{
    return &self->blocks[(address >> 8) * 2654435761u % PUPPET_BUCKETS];
}

/* Under the lock: a block that was freed, or a new one. */
static puppet_block *take_block(puppet *self, size_t bytes, size_t alignment)
{
    puppet_block **link = &self->free_blocks;
    puppet_block *block;

    while (*link != NULL) {
        block = *link;
        if (block->bytes == bytes && block->alignment == alignment) {
            *link = block->next;
            return block;
        }
        link = &block->next;
    }
    block = calloc(1, sizeof(*block));
    if (block == NULL) {
        return NULL;
    }
    /* Off by the alignment from any larger one. */
    block->address = ((self->next_address + 2 * self->max_alignment) &
                      ~(2 * self->max_alignment - 1)) +
                     alignment;
    self->next_address = block->address + (bytes < SIZE_MAX / 4 ? bytes : 0);
    block->bytes = bytes;
    block->alignment = alignment;
    return block;
}

static ccmr_status refuse(puppet *self, ccmr_status status, size_t bytes)
{
    self->failures++;
    return ccmr_error_set(status, bytes, "the puppet was told to fail");
}

static ccmr_status allocate_locked(puppet *self, size_t bytes,
                                   size_t alignment, void **ptr)
{
    puppet_block *block;
    puppet_block **bucket;

    self->allocations++;
    if (self->fail_allocations != 0) {
        self->fail_allocations--;
        return refuse(self, self->fail_status, bytes);
    }
    if (self->live_bytes > self->capacity ||
        bytes > self->capacity - self->live_bytes) {
        return refuse(self, self->full_status, bytes);
    }
    block = take_block(self, bytes, alignment);
    if (block == NULL) {
        return refuse(self, CCMR_ERROR_OUT_OF_HOST_MEMORY, bytes);
    }
    bucket = bucket_of(self, block->address);
    block->next = *bucket;
    *bucket = block;
    self->live_blocks++;
    self->live_bytes += bytes;
    if (self->live_bytes > self->peak_bytes) {
        self->peak_bytes = self->live_bytes;
    }
    *ptr = (void *)block->address;
    return CCMR_SUCCESS;
}

static void note(puppet *self, size_t bytes, size_t alignment,
                 ccmr_stream stream)
{
    self->last_bytes = bytes;
    self->last_alignment = alignment;
    self->last_stream = stream;
}

static ccmr_status puppet_allocate(void *object, size_t bytes,
                                   size_t alignment, ccmr_stream stream,
                                   void **ptr)
{
    puppet *self = object;
    ccmr_status status;

    if (self->on_allocate != NULL) {
        self->on_allocate(self);
    }
    if (self->yields) {
        (void)sched_yield();
    }
    (void)pthread_mutex_lock(&self->lock);
    note(self, bytes, alignment, stream);
    status = allocate_locked(self, bytes, alignment, ptr);
    (void)pthread_mutex_unlock(&self->lock);
    return status;
}

static ccmr_status deallocate_locked(puppet *self, void *ptr, size_t bytes,
                                     size_t alignment)
{
    puppet_block **link = bucket_of(self, (uintptr_t)ptr);
    puppet_block *block;

    if (self->refuse_frees != 0) {
        self->refuse_frees--;
        return ccmr_error_set(CCMR_ERROR_BUSY, bytes,
                              "the puppet was told to refuse");
    }
    while (*link != NULL && (*link)->address != (uintptr_t)ptr) {
        link = &(*link)->next;
    }
    block = *link;
    if (block == NULL || block->bytes != bytes ||
        block->alignment != alignment) {
        self->wrong++;
        return ccmr_error_set(CCMR_ERROR_INVALID_POINTER, bytes,
                              "not what the puppet gave");
    }
    *link = block->next;
    block->next = self->free_blocks;
    self->free_blocks = block;
    self->deallocations++;
    self->live_blocks--;
    self->live_bytes -= bytes;
    return CCMR_SUCCESS;
}

static ccmr_status puppet_deallocate(void *object, void *ptr, size_t bytes,
                                     size_t alignment, ccmr_stream stream)
{
    puppet *self = object;
    ccmr_status status;

    if (self->on_deallocate != NULL) {
        self->on_deallocate(self);
    }
    (void)pthread_mutex_lock(&self->lock);
    note(self, bytes, alignment, stream);
    status = deallocate_locked(self, ptr, bytes, alignment);
    (void)pthread_mutex_unlock(&self->lock);
    if (self->yields) {
        (void)sched_yield();
    }
    return status;
}

static void puppet_destroy(void *object)
{
    puppet *self = object;

    (void)pthread_mutex_lock(&self->lock);
    self->destroyed = 1;
    (void)pthread_mutex_unlock(&self->lock);
}

static ccmr_status puppet_describe(void *object, ccmr_properties *properties)
{
    puppet *self = object;

    properties->name = self->name;
    properties->device = self->device;
    properties->device_accessible = !self->host_accessible;
    properties->host_accessible = self->host_accessible;
    properties->access = self->access;
    properties->max_alignment = self->max_alignment;
    properties->free_may_block = 1;
    properties->free_stream = CCMR_FREE_SYNCHRONIZES;
    return CCMR_SUCCESS;
}

void puppet_init(puppet *made)
{
    *made = (puppet){
        .name = "puppet",
        .max_alignment = 4096,
        .device = -1,
        .access = CCMR_ACCESS_STREAM,
        .capacity = SIZE_MAX,
        .full_status = CCMR_ERROR_OUT_OF_DEVICE_MEMORY,
        .fail_status = CCMR_ERROR_OUT_OF_DEVICE_MEMORY,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .next_address = FIRST_ADDRESS,
    };
}

ccmr_resource *puppet_resource(puppet *made)
{
    static const ccmr_resource_ops ops = {
        .size = sizeof(ops),
        .allocate = puppet_allocate,
        .deallocate = puppet_deallocate,
        .destroy = puppet_destroy,
        .describe = puppet_describe,
    };
    ccmr_resource *resource;

    if (ccmr_resource_create(&ops, made, &resource) != CCMR_SUCCESS) {
        printf("Bail out! no puppet: %s\n", ccmr_last_error()->message);
        exit(99);
    }
    return resource;
}

int puppet_clear(puppet *gone)
{
    int good = gone->destroyed && gone->live_blocks == 0 && gone->wrong == 0;
    size_t i;

    for (i = 0; i <= PUPPET_BUCKETS; i++) {
        puppet_block **list =
            i < PUPPET_BUCKETS ? &gone->blocks[i] : &gone->free_blocks;

        while (*list != NULL) {
            puppet_block *block = *list;

            *list = block->next;
            free(block);
        }
    }
    return good;
}
