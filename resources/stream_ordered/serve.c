/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_ordered: allocate and deallocate.
 *
 * Order of answers to an allocate: the stream's own free block; a finished
 * one; one of another stream that turns out to be finished; the upstream. If
 * that is out of memory, or of its limit: a block of another stream after a
 * wait on the device; the upstream again when finished blocks have gone back;
 * and once more when everything was waited for and has gone back.
 */
#include "resources/stream_ordered/stream_ordered.h"

#include <stdio.h>

#include "lib/error.h"

/* Tries while other threads keep bringing and taking blocks. */
#define ROUNDS 64

ccmr_status ccmr__so_resolve(ccmr__so *self, ccmr_stream stream,
                             ccmr__stream_use *use)
{
    ccmr__scope scope;
    ccmr_status status;

    if (!ccmr__stream_is_token(stream)) {
        return ccmr__stream_resolve(stream, self->device, use);
    }
    status = ccmr__scope_enter(&scope, self->device, 0);
    if (status == CCMR_SUCCESS) {
        status = ccmr__stream_resolve(stream, self->device, use);
        ccmr__scope_leave(&scope);
    }
    return status;
}

/* With `streams=registered` the stream is registered from then on. */
static ccmr_status meet(ccmr__so *self, ccmr_stream stream,
                        ccmr__stream_use *use)
{
    ccmr_status status = ccmr__so_resolve(self, stream, use);

    if (status == CCMR_SUCCESS && self->registered && !use->registered) {
        (void)ccmr__stream_learn(stream, self->device, use);
    }
    return status;
}

/* ---- allocate --------------------------------------------------------------- */

/* What a call needs on its way. */
typedef struct request {
    ccmr__so *self;
    ccmr__so_want want;
    ccmr_stream stream;
    ccmr__stream_use use;
} request;

static ccmr__so_block *take(const request *of)
{
    ccmr__so_block *block;

    ccmr__so_lock(of->self);
    block = ccmr__so_take(of->self, &of->want, of->use.id);
    ccmr__so_unlock(of->self);
    return block;
}

/* A new block of the upstream. */
static ccmr_status ask_upstream(request *of, ccmr__so_block **block)
{
    ccmr__so *self = of->self;
    ccmr__so_block *made;
    ccmr_status status = ccmr__so_make(self, &of->want, &made);
    void *ptr;

    if (status != CCMR_SUCCESS) {
        return status;
    }
    status = ccmr_resource_allocate(self->upstream,
                                    ccmr__so_class_bytes(of->want.index),
                                    of->want.alignment, of->stream, &ptr);
    if (status != CCMR_SUCCESS) {
        ccmr_error_detail told = *ccmr__error();

        ccmr__so_unmake(self, made);
        *ccmr__error() = told;
        return status;
    }
    ccmr__so_lock(self);
    ccmr__so_add(self, made, &of->want, ptr);
    ccmr__so_unlock(self);
    *block = made;
    return CCMR_SUCCESS;
}

static int is_full(ccmr_status status)
{
    return status == CCMR_ERROR_OUT_OF_DEVICE_MEMORY ||
           status == CCMR_ERROR_OUT_OF_HOST_MEMORY ||
           status == CCMR_ERROR_LIMIT_EXCEEDED;
}

/* The upstream is full: give back, ask again. Returns its last answer. */
static ccmr_status reclaim(request *of, ccmr_status status,
                           ccmr__so_block **block, uint64_t *own_changes)
{
    static const ccmr__so_mode modes[] = {CCMR__SO_FINISHED, CCMR__SO_ALL};
    ccmr_error_detail told = *ccmr__error();
    size_t i;

    for (i = 0; i < 2; i++) {
        ccmr__so_pass pass = {
            .mode = modes[i], .excess = SIZE_MAX, .pockets = UINT32_MAX};

        ccmr__so_release(of->self, &pass);
        *own_changes += pass.blocks;
        if (pass.blocks == 0) {
            continue;
        }
        if (modes[i] == CCMR__SO_ALL) {
            ccmr__so_lock(of->self);
            (void)ccmr__so_settle(of->self, 1);
            ccmr__so_unlock(of->self);
        }
        status = ask_upstream(of, block);
        if (!is_full(status)) {
            return status;
        }
        told = *ccmr__error();
    }
    *ccmr__error() = told;
    return status;
}

/* Say what was free here when nothing helped. */
static ccmr_status fail_full(ccmr__so *self, ccmr_status status)
{
    ccmr_error_detail *detail = ccmr__error();

    ccmr__so_lock(self);
    if (detail->reserved == CCMR_BYTES_UNKNOWN) {
        detail->reserved = self->reserved;
    }
    if (detail->pending == CCMR_BYTES_UNKNOWN) {
        detail->pending = self->pending_bytes;
    }
    ccmr__so_unlock(self);
    return status;
}

/* Nothing fits that is known to be finished. Repeated as long as other
 * threads bring blocks back that this one may have missed. */
static ccmr_status allocate_slowly(request *of, ccmr__so_block **block)
{
    ccmr__so *self = of->self;
    ccmr_status status;
    int round;

    for (round = 0; round < ROUNDS; round++) {
        uint64_t own_changes = 0;
        uint64_t changes;
        int waited;

        ccmr__so_lock(self);
        waited = ccmr__so_settle(self, round != 0);
        changes = self->changes;
        ccmr__so_unlock(self);
        *block = waited ? take(of) : NULL;
        if (*block == NULL) {
            *block = ccmr__so_take_other(self, &of->want, of->use.id);
        }
        if (*block != NULL) {
            return CCMR_SUCCESS;
        }
        status = ask_upstream(of, block);
        if (!is_full(status)) {
            return status;
        }
        *block = ccmr__so_take_waiting(self, &of->want, &of->use);
        if (*block != NULL) {
            return CCMR_SUCCESS;
        }
        status = reclaim(of, status, block, &own_changes);
        if (!is_full(status)) {
            return status;
        }
        ccmr__so_lock(self);
        changes = self->changes - changes - own_changes;
        waited = ccmr__so_settle(self, 1);
        ccmr__so_unlock(self);
        if (changes == 0 && !waited) {
            break;
        }
    }
    return fail_full(self, status);
}

/* More is cached than shall be: finished blocks go, a few at a time. */
static void keep_bound(ccmr__so *self)
{
    ccmr__so_pass pass = {.mode = CCMR__SO_FINISHED, .pockets = 4};
    ccmr_error_detail before;

    ccmr__so_lock(self);
    if (self->keep != 0 && self->cached_bytes > self->keep) {
        pass.excess = self->cached_bytes - self->keep;
    }
    ccmr__so_unlock(self);
    if (pass.excess != 0) {
        before = *ccmr__error();
        ccmr__so_release(self, &pass);
        if (pass.status != CCMR_SUCCESS) {
            *ccmr__error() = before;
        }
    }
}

static ccmr_status __attribute__((noinline))
allocate_other(request *of, ccmr__so_block **block)
{
    /* What fails on the way to a success is nobody's last error. */
    ccmr_error_detail before = *ccmr__error();
    ccmr_status status = allocate_slowly(of, block);

    if (status == CCMR_SUCCESS) {
        *ccmr__error() = before;
    }
    return status;
}

ccmr_status ccmr__so_allocate(void *object, size_t bytes, size_t alignment,
                              ccmr_stream stream, void **ptr)
{
    ccmr__so *self = object;
    ccmr__so_block *block;
    request of;
    ccmr_status status;
    int bounded;

    of.self = self;
    of.stream = stream;
    of.want.bytes = bytes;
    of.want.index = ccmr__class_of(bytes);
    of.want.alignment = alignment > self->base ? alignment : self->base;
    status = meet(self, stream, &of.use);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    ccmr__so_lock(self);
    ccmr__so_find_bin(self, &of.want);
    block = ccmr__so_take(self, &of.want, of.use.id);
    bounded = self->keep != 0;
    ccmr__so_unlock(self);
    if (block == NULL) {
        status = allocate_other(&of, &block);
        if (status != CCMR_SUCCESS) {
            return status;
        }
    }
    *ptr = block->ptr;
    if (bounded) {
        keep_bound(self);
    }
    return CCMR_SUCCESS;
}

/* ---- deallocate ---------------------------------------------------------------- */

static ccmr_status fail_pointer(const void *ptr)
{
    return ccmr__fail(CCMR_ERROR_INVALID_POINTER,
                      "%p is not the address of a live block", ptr);
}

static ccmr_status fail_size(const void *ptr, size_t bytes, size_t asked)
{
    return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                      "%p was allocated with %zu bytes, not %zu", ptr, asked,
                      bytes);
}

static ccmr_status fail_alignment(const void *ptr, size_t alignment,
                                  size_t asked)
{
    return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                      "%p was allocated with alignment %zu, not %zu", ptr,
                      asked, alignment);
}

/* The live block, moved to where `use` says (NULL: it waits for nothing). */
static ccmr_status begin_free(ccmr__so *self, void *ptr, size_t bytes,
                              size_t alignment, const ccmr__stream_use *use,
                              ccmr__so_block **moved)
{
    ccmr__so_block *block;
    size_t asked = bytes;
    size_t aligned = alignment > self->base ? alignment : self->base;
    size_t had = aligned;

    ccmr__so_lock(self);
    block = ccmr__so_find_live(self, ptr);
    if (block != NULL) {
        asked = block->asked;
        had = block->alignment;
    }
    if (block != NULL && asked == bytes && had == aligned) {
        if (use != NULL) {
            ccmr__so_free_begin(self, block, use->id);
        } else {
            ccmr__so_free_ready(self, block);
        }
    }
    ccmr__so_unlock(self);
    if (block == NULL) {
        return fail_pointer(ptr);
    }
    if (asked != bytes) {
        return fail_size(ptr, bytes, asked);
    }
    if (had != aligned) {
        return fail_alignment(ptr, alignment, had);
    }
    *moved = block;
    return CCMR_SUCCESS;
}

static ccmr_status __attribute__((cold))
fail_record(ccmr__so *self, CUresult res)
{
    ccmr_status status = ccmr__fail_driver((int)res, "cuEventRecord");
    ccmr_error_detail *detail = ccmr__error();

    if (res == CUDA_ERROR_INVALID_HANDLE) {
        status = CCMR_ERROR_INVALID_STREAM;
        detail->status = status;
        (void)snprintf(detail->message, sizeof(detail->message),
                       "the stream is not of the primary context of device "
                       "%d: cuEventRecord returned %s (%d)",
                       self->device->ordinal, detail->driver_result_name,
                       (int)res);
    }
    return status;
}

static ccmr_status record(ccmr__so *self, ccmr__so_block *block,
                          const ccmr__stream_use *use)
{
    ccmr__scope scope;
    ccmr_status status = ccmr__scope_enter(&scope, self->device, 0);
    CUresult res;

    if (status != CCMR_SUCCESS) {
        return status;
    }
    res = CCMR__CU(cuEventRecord)(block->event, use->handle);
    ccmr__scope_leave(&scope);
    return res == CUDA_SUCCESS ? CCMR_SUCCESS : fail_record(self, res);
}

ccmr_status ccmr__so_deallocate(void *object, void *ptr, size_t bytes,
                                size_t alignment, ccmr_stream stream)
{
    ccmr__so *self = object;
    ccmr__stream_use use;
    ccmr__so_block *block;
    ccmr_status status;

    if (stream == CCMR_STREAM_READY) {
        return begin_free(self, ptr, bytes, alignment, NULL, &block);
    }
    status = meet(self, stream, &use);
    if (status == CCMR_SUCCESS) {
        status = begin_free(self, ptr, bytes, alignment, &use, &block);
    }
    if (status != CCMR_SUCCESS) {
        return status;
    }
    status = record(self, block, &use);
    ccmr__so_lock(self);
    ccmr__so_free_end(self, block, status == CCMR_SUCCESS);
    ccmr__so_unlock(self);
    return status;
}
