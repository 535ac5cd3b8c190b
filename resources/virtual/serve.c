/* SPDX-License-Identifier: Apache-2.0 */
/*
 * virtual as a leaf: each block has address space of its own, `room` beyond
 * what it asked for included, with memory from its start on.
 *
 *   address            + mapped            + range.bytes
 *   | piece | piece |pi|   room to grow    |
 *   |<- bytes ->|
 *
 * Streams: memory is there when an allocation returns, for any stream; a free
 * waits for its stream, then unmaps, which waits for nothing. What can be
 * refused is refused before anything is waited for.
 */
#include <stdlib.h>

#include "lib/arith.h"
#include "lib/error.h"
#include "lib/stream.h"
#include "resources/common.h"
#include "resources/virtual/virtual.h"

/* A block that can be exported is one handle; others have several, so that no
 * handle is larger than a pool above would want to move. */
static size_t next_piece(const ccmr__virtual *self, size_t bytes)
{
    return self->made.handle_kinds == CCMR_HANDLE_NONE &&
                   bytes > self->made.handle
               ? self->made.handle
               : bytes;
}

/* Back to what the block had: pieces beyond `mapped` bytes go. They are the
 * first of the list. */
static void shrink(ccmr__virtual *self, ccmr__virtual_block *block,
                   size_t mapped)
{
    if (block->mapped > mapped) {
        ccmr__virtual_unmap_again(block->range.node.address + mapped,
                                  block->mapped - mapped);
    }
    while (block->mapped > mapped) {
        ccmr__piece *piece = block->pieces;

        block->pieces = piece->next;
        block->mapped -= piece->bytes;
        (void)ccmr__virtual_give_piece(self, piece);
    }
}

/* Put one more piece at the block's end. */
static ccmr_status add_piece(ccmr__virtual *self, ccmr__virtual_block *block,
                             size_t bytes)
{
    ccmr__piece *piece;
    ccmr_status status = ccmr__virtual_take_piece(self, bytes, &piece);

    if (status != CCMR_SUCCESS) {
        return status;
    }
    status =
        ccmr__virtual_map(block->range.node.address + block->mapped, piece);
    if (status != CCMR_SUCCESS) {
        (void)ccmr__virtual_give_piece(self, piece);
        return status;
    }
    piece->next = block->pieces;
    block->pieces = piece;
    block->mapped += bytes;
    return CCMR_SUCCESS;
}

/* Give the block `mapped` bytes of memory in all, or leave it as it was. With
 * `access` shared. */
static ccmr_status extend(ccmr__virtual *self, ccmr__virtual_block *block,
                          size_t mapped)
{
    size_t before = block->mapped;
    ccmr_status status = CCMR_SUCCESS;

    while (status == CCMR_SUCCESS && block->mapped < mapped) {
        status =
            add_piece(self, block, next_piece(self, mapped - block->mapped));
    }
    if (status == CCMR_SUCCESS && mapped > before) {
        status = ccmr__virtual_open(self, block->range.node.address + before,
                                    mapped - before);
    }
    if (status != CCMR_SUCCESS) {
        shrink(self, block, before);
    }
    return status;
}

static void insert(ccmr__virtual *self, ccmr__virtual_block *block)
{
    (void)pthread_mutex_lock(&self->books);
    ccmr__tree_insert(&self->blocks, &block->range.node);
    (void)pthread_mutex_unlock(&self->books);
}

/* In the device's context: address space, memory, books. */
static ccmr_status fill(ccmr__virtual *self, ccmr__virtual_block *block,
                        size_t need, size_t alignment)
{
    ccmr_status status = ccmr__virtual_take_range(
        self, block->range.bytes,
        alignment > self->unit ? alignment : self->unit,
        &block->range.node.address);

    if (status != CCMR_SUCCESS) {
        return status;
    }
    (void)pthread_rwlock_rdlock(&self->access);
    status = extend(self, block, need);
    if (status == CCMR_SUCCESS) {
        insert(self, block);
    }
    (void)pthread_rwlock_unlock(&self->access);
    return status;
}

/* A block's record with its sizes. */
static ccmr_status new_block(ccmr__virtual *self, size_t bytes, size_t *need,
                             ccmr__virtual_block **block)
{
    size_t range;

    if (!ccmr__round_up(bytes, self->unit, need) ||
        *need > self->device->total_bytes ||
        __builtin_add_overflow(*need, self->made.room, &range)) {
        return ccmr__virtual_full(self, bytes, CUDA_SUCCESS);
    }
    *block = calloc(1, sizeof(**block));
    if (*block == NULL) {
        return ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                          "no memory for the record of a block");
    }
    (*block)->bytes = bytes;
    (*block)->range.bytes = range;
    return CCMR_SUCCESS;
}

ccmr_status ccmr__virtual_allocate(void *object, size_t bytes,
                                   size_t alignment, ccmr_stream stream,
                                   void **ptr)
{
    ccmr__virtual *self = object;
    ccmr__virtual_block *block = NULL;
    ccmr__scope scope;
    size_t need;
    ccmr_status status = new_block(self, bytes, &need, &block);

    if (status != CCMR_SUCCESS) {
        return status;
    }
    status = ccmr__scope_enter(&scope, self->device, CCMR__SCOPE_RELAXED);
    if (status != CCMR_SUCCESS) {
        free(block);
        return status;
    }
    status = ccmr__stream_check(stream, self->device);
    if (status == CCMR_SUCCESS) {
        (void)ccmr__virtual_settle(self);
        status = fill(self, block, need, alignment);
    }
    if (status == CCMR_SUCCESS) {
        *ptr = (void *)block->range.node.address;
    } else if (block->range.node.address != 0) {
        ccmr__virtual_give_range(self, &block->range);
    } else {
        free(block);
    }
    ccmr__scope_leave(&scope);
    return status;
}

/* Under the lock of the books. */
static ccmr_status find(const ccmr__virtual *self, const void *ptr,
                        size_t bytes, ccmr__virtual_block **block)
{
    *block =
        (ccmr__virtual_block *)ccmr__tree_find(&self->blocks, (uintptr_t)ptr);
    if (*block == NULL) {
        return ccmr__fail(CCMR_ERROR_INVALID_POINTER,
                          "%p is not the address of a live block", ptr);
    }
    if ((*block)->bytes != bytes) {
        return ccmr__fail(CCMR_ERROR_INVALID_SIZE,
                          "the block at %p has %zu bytes, not %zu", ptr,
                          (*block)->bytes, bytes);
    }
    return CCMR_SUCCESS;
}

static ccmr_status check(ccmr__virtual *self, const void *ptr, size_t bytes)
{
    ccmr__virtual_block *block = NULL;
    ccmr_status status;

    (void)pthread_mutex_lock(&self->books);
    status = find(self, ptr, bytes, &block);
    (void)pthread_mutex_unlock(&self->books);
    return status;
}

static ccmr_status take_out(ccmr__virtual *self, const void *ptr, size_t bytes,
                            ccmr__virtual_block **block)
{
    ccmr_status status;

    (void)pthread_mutex_lock(&self->books);
    status = find(self, ptr, bytes, block);
    if (status == CCMR_SUCCESS) {
        (void)ccmr__tree_remove(&self->blocks, (uintptr_t)ptr);
    }
    (void)pthread_mutex_unlock(&self->books);
    return status;
}

/* With `access` shared: the block's memory and address space go, or the block
 * stays. Once it is unmapped, it is gone. */
static ccmr_status give(ccmr__virtual *self, const void *ptr, size_t bytes)
{
    ccmr__virtual_block *block = NULL;
    ccmr_status status = take_out(self, ptr, bytes, &block);
    ccmr__piece *piece;

    if (status != CCMR_SUCCESS) {
        return status;
    }
    status = ccmr__virtual_unmap(block->range.node.address, block->mapped);
    if (status != CCMR_SUCCESS) {
        insert(self, block);
        return status;
    }
    while ((piece = block->pieces) != NULL) {
        block->pieces = piece->next;
        (void)ccmr__virtual_give_piece(self, piece);
    }
    ccmr__virtual_give_range(self, &block->range);
    return CCMR_SUCCESS;
}

ccmr_status ccmr__virtual_deallocate(void *object, void *ptr, size_t bytes,
                                     size_t alignment, ccmr_stream stream)
{
    ccmr__virtual *self = object;
    ccmr_status status = check(self, ptr, bytes);
    ccmr__scope scope;

    (void)alignment;
    if (status == CCMR_SUCCESS) {
        status = ccmr__scope_enter(&scope, self->device, CCMR__SCOPE_RELAXED);
    }
    if (status != CCMR_SUCCESS) {
        return status;
    }
    status = ccmr__stream_finish(stream, self->device);
    if (status == CCMR_SUCCESS) {
        (void)ccmr__virtual_settle(self);
        (void)pthread_rwlock_rdlock(&self->access);
        status = give(self, ptr, bytes);
        (void)pthread_rwlock_unlock(&self->access);
    }
    ccmr__scope_leave(&scope);
    return status;
}

/* With `access` shared. The block is out of the books meanwhile, so that
 * nobody frees it. */
static ccmr_status grow(ccmr__virtual *self, const void *ptr, size_t bytes,
                        size_t new_bytes)
{
    ccmr__virtual_block *block = NULL;
    ccmr_status status = take_out(self, ptr, bytes, &block);
    size_t need;

    if (status != CCMR_SUCCESS) {
        return status;
    }
    if (!ccmr__round_up(new_bytes, self->unit, &need) ||
        need > block->range.bytes) {
        status = ccmr__fail(CCMR_ERROR_OUT_OF_RANGE,
                            "the block at %p has room for %zu bytes, not for "
                            "%zu; the option room reserves more",
                            ptr, block->range.bytes, new_bytes);
    } else {
        status = extend(self, block, need);
    }
    if (status == CCMR_SUCCESS) {
        block->bytes = new_bytes;
    }
    insert(self, block);
    return status;
}

ccmr_status ccmr__virtual_grow(void *object, void *ptr, size_t bytes,
                               size_t new_bytes, ccmr_stream stream)
{
    ccmr__virtual *self = object;
    ccmr__scope scope;
    ccmr_status status;

    if (new_bytes < bytes) {
        return ccmr__fail(CCMR_ERROR_INVALID_SIZE,
                          "grow from %zu to %zu bytes: a block does not "
                          "become smaller",
                          bytes, new_bytes);
    }
    status = ccmr__scope_enter(&scope, self->device, CCMR__SCOPE_RELAXED);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    status = ccmr__stream_check(stream, self->device);
    if (status == CCMR_SUCCESS) {
        (void)ccmr__virtual_settle(self);
        (void)pthread_rwlock_rdlock(&self->access);
        status = grow(self, ptr, bytes, new_bytes);
        (void)pthread_rwlock_unlock(&self->access);
    }
    ccmr__scope_leave(&scope);
    return status;
}
