/* SPDX-License-Identifier: Apache-2.0 */
/*
 * virtual as an upstream that offers address ranges. One commit is one handle
 * of the driver; decommit and move take exactly what one commit, or one move,
 * gave. Nothing here waits for work on the device: the caller has seen to it
 * that what it unmaps is not in use.
 */
#include <stdlib.h>

#include "lib/error.h"
#include "resources/registry.h"
#include "resources/virtual/virtual.h"

/* These operations have no dispatch above them that names who refused. */
static ccmr_status named(ccmr_status status)
{
    if (status != CCMR_SUCCESS) {
        ccmr__error_name_resource(ccmr__kind_virtual.name);
    }
    return status;
}

static ccmr_status check_bytes(const ccmr__virtual *self, const char *op,
                               size_t bytes)
{
    if (bytes != 0 && bytes <= (size_t)PTRDIFF_MAX &&
        (bytes & (self->unit - 1)) == 0) {
        return CCMR_SUCCESS;
    }
    return ccmr__fail(CCMR_ERROR_INVALID_SIZE,
                      "%s: %zu bytes are no multiple of the granularity %zu",
                      op, bytes, self->unit);
}

/* Whether memory can be, not whether it is, at [address, address + bytes). */
static ccmr_status check_place(const ccmr__virtual *self, const char *op,
                               uintptr_t address, size_t bytes)
{
    ccmr_status status = check_bytes(self, op, bytes);
    uintptr_t end;

    if (status != CCMR_SUCCESS) {
        return status;
    }
    if (address == 0 || (address & (self->unit - 1)) != 0 ||
        __builtin_add_overflow(address, bytes, &end)) {
        return ccmr__fail(CCMR_ERROR_INVALID_POINTER,
                          "%s: %p is no address for %zu bytes in units of %zu",
                          op, (void *)address, bytes, self->unit);
    }
    return CCMR_SUCCESS;
}

ccmr_status ccmr__virtual_reserve(void *object, size_t bytes, void **base)
{
    ccmr__virtual *self = object;
    ccmr_status status = check_bytes(self, "reserve", bytes);
    ccmr__range *range = NULL;
    ccmr__scope scope;

    if (status != CCMR_SUCCESS) {
        return named(status);
    }
    range = calloc(1, sizeof(*range));
    if (range == NULL) {
        return named(ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                                "no memory for the record of a range"));
    }
    status = ccmr__scope_enter(&scope, self->device, CCMR__SCOPE_RELAXED);
    if (status == CCMR_SUCCESS) {
        (void)ccmr__virtual_settle(self);
        status = ccmr__virtual_take_range(self, bytes, self->unit,
                                          &range->node.address);
        ccmr__scope_leave(&scope);
    }
    if (status != CCMR_SUCCESS) {
        free(range);
        return named(status);
    }
    range->bytes = bytes;
    *base = (void *)range->node.address;
    (void)pthread_mutex_lock(&self->books);
    ccmr__tree_insert(&self->ranges, &range->node);
    (void)pthread_mutex_unlock(&self->books);
    return CCMR_SUCCESS;
}

/* Take the range at `base` out of the books if it is empty. */
static ccmr_status remove_range(ccmr__virtual *self, uintptr_t base,
                                size_t bytes, ccmr__range **range)
{
    ccmr_status status = CCMR_SUCCESS;
    ccmr__range *found;

    (void)pthread_mutex_lock(&self->books);
    found = (ccmr__range *)ccmr__tree_find(&self->ranges, base);
    if (found == NULL || found->bytes != bytes) {
        status = ccmr__fail(CCMR_ERROR_INVALID_POINTER,
                            "unreserve: %p with %zu bytes is none of the "
                            "ranges",
                            (void *)base, bytes);
    } else if (found->mappings != 0) {
        status = ccmr__fail(CCMR_ERROR_BUSY,
                            "unreserve: memory is committed in the range at "
                            "%p (%zu handles)",
                            (void *)base, found->mappings);
    } else {
        (void)ccmr__tree_remove(&self->ranges, base);
        *range = found;
    }
    (void)pthread_mutex_unlock(&self->books);
    return status;
}

ccmr_status ccmr__virtual_unreserve(void *object, void *base, size_t bytes)
{
    ccmr__virtual *self = object;
    ccmr__range *range = NULL;
    ccmr__scope scope;
    ccmr_status status =
        ccmr__scope_enter(&scope, self->device, CCMR__SCOPE_RELAXED);
    CUresult res;

    if (status != CCMR_SUCCESS) {
        return named(status);
    }
    status = remove_range(self, (uintptr_t)base, bytes, &range);
    if (status == CCMR_SUCCESS) {
        res = CCMR__CU(cuMemAddressFree)((CUdeviceptr)(uintptr_t)base, bytes);
        if (res == CUDA_SUCCESS) {
            free(range);
        } else {
            (void)pthread_mutex_lock(&self->books);
            ccmr__tree_insert(&self->ranges, &range->node);
            (void)pthread_mutex_unlock(&self->books);
            status = ccmr__fail_driver((int)res, "cuMemAddressFree");
        }
    }
    ccmr__scope_leave(&scope);
    return named(status);
}

/* Under the lock of the books: the range that all of it lies in, if no memory
 * is there; counted as a mapping from now on. */
static ccmr_status find_room(ccmr__virtual *self, const char *op,
                             uintptr_t address, size_t bytes,
                             ccmr__range **range)
{
    ccmr__range *found =
        (ccmr__range *)ccmr__tree_last(&self->ranges, address);
    const ccmr__mapping *other;

    if (found == NULL || address - found->node.address > found->bytes ||
        found->bytes - (address - found->node.address) < bytes) {
        return ccmr__fail(CCMR_ERROR_OUT_OF_RANGE,
                          "%s: %zu bytes at %p lie in none of the ranges", op,
                          bytes, (void *)address);
    }
    other = (const ccmr__mapping *)ccmr__tree_last(&self->mappings,
                                                   address + bytes - 1);
    if (other != NULL && other->node.address + other->piece->bytes > address) {
        return ccmr__fail(CCMR_ERROR_ALREADY_EXISTS,
                          "%s: there is memory at %p already, where %zu bytes "
                          "are to be at %p",
                          op, (void *)other->node.address, bytes,
                          (void *)address);
    }
    found->mappings++;
    *range = found;
    return CCMR_SUCCESS;
}

/* A mapping is to be: its record. Not in the books yet. */
static ccmr_status new_mapping(uintptr_t address, ccmr__mapping **mapping)
{
    *mapping = calloc(1, sizeof(**mapping));
    if (*mapping == NULL) {
        return ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                          "no memory for the record of a mapping");
    }
    (*mapping)->node.address = address;
    return CCMR_SUCCESS;
}

/* Map the mapping's piece, with all rights. Where that fails, nothing is
 * mapped. */
static ccmr_status map_open(ccmr__virtual *self, const ccmr__mapping *mapping)
{
    uintptr_t address = mapping->node.address;
    ccmr_status status = ccmr__virtual_map(address, mapping->piece);

    if (status == CCMR_SUCCESS) {
        status = ccmr__virtual_open(self, address, mapping->piece->bytes);
        if (status != CCMR_SUCCESS) {
            ccmr__virtual_unmap_again(address, mapping->piece->bytes);
        }
    }
    return status;
}

/* The piece, if `mapping` was its last, goes. */
static void drop_mapping(ccmr__virtual *self, ccmr__mapping *mapping)
{
    ccmr__piece *piece = mapping->piece;
    size_t left;

    (void)pthread_mutex_lock(&self->books);
    mapping->range->mappings--;
    left = --piece->mappings;
    (void)pthread_mutex_unlock(&self->books);
    if (left == 0) {
        (void)ccmr__virtual_give_piece(self, piece);
    }
    free(mapping);
}

/* What is mapped comes into the books; what could not be, goes. */
static ccmr_status settle_mapping(ccmr__virtual *self, ccmr__mapping *mapping,
                                  ccmr_status status)
{
    if (status != CCMR_SUCCESS) {
        drop_mapping(self, mapping);
        return status;
    }
    (void)pthread_mutex_lock(&self->books);
    ccmr__tree_insert(&self->mappings, &mapping->node);
    (void)pthread_mutex_unlock(&self->books);
    return CCMR_SUCCESS;
}

/* In the device's context, with `access` shared. */
static ccmr_status commit(ccmr__virtual *self, uintptr_t address, size_t bytes)
{
    ccmr__mapping *mapping = NULL;
    ccmr_status status = new_mapping(address, &mapping);

    if (status != CCMR_SUCCESS) {
        return status;
    }
    (void)pthread_mutex_lock(&self->books);
    status = find_room(self, "commit", address, bytes, &mapping->range);
    (void)pthread_mutex_unlock(&self->books);
    if (status != CCMR_SUCCESS) {
        free(mapping);
        return status;
    }
    status = ccmr__virtual_take_piece(self, bytes, &mapping->piece);
    if (status != CCMR_SUCCESS) {
        (void)pthread_mutex_lock(&self->books);
        mapping->range->mappings--;
        (void)pthread_mutex_unlock(&self->books);
        free(mapping);
        return status;
    }
    mapping->piece->mappings = 1;
    return settle_mapping(self, mapping, map_open(self, mapping));
}

ccmr_status ccmr__virtual_commit(void *object, void *address, size_t bytes)
{
    ccmr__virtual *self = object;
    ccmr_status status =
        check_place(self, "commit", (uintptr_t)address, bytes);
    ccmr__scope scope;

    if (status == CCMR_SUCCESS && bytes > self->device->total_bytes) {
        status = ccmr__virtual_full(self, bytes, CUDA_SUCCESS);
    }
    if (status == CCMR_SUCCESS) {
        status = ccmr__scope_enter(&scope, self->device, CCMR__SCOPE_RELAXED);
    }
    if (status != CCMR_SUCCESS) {
        return named(status);
    }
    (void)ccmr__virtual_settle(self);
    (void)pthread_rwlock_rdlock(&self->access);
    status = commit(self, (uintptr_t)address, bytes);
    (void)pthread_rwlock_unlock(&self->access);
    ccmr__scope_leave(&scope);
    return named(status);
}

/* Under the lock of the books: the mapping that a commit or a move made. */
static ccmr_status find_mapping(const ccmr__virtual *self, const char *op,
                                uintptr_t address, size_t bytes,
                                ccmr__mapping **mapping)
{
    ccmr__mapping *found =
        (ccmr__mapping *)ccmr__tree_find(&self->mappings, address);

    if (found == NULL) {
        return ccmr__fail(CCMR_ERROR_INVALID_POINTER,
                          "%s: nothing was committed or moved to %p", op,
                          (void *)address);
    }
    if (found->piece->bytes != bytes) {
        return ccmr__fail(CCMR_ERROR_INVALID_SIZE,
                          "%s: the handle at %p has %zu bytes, not %zu: it "
                          "goes whole and alone",
                          op, (void *)address, found->piece->bytes, bytes);
    }
    *mapping = found;
    return CCMR_SUCCESS;
}

/* In the device's context, with `access` shared. */
static ccmr_status decommit(ccmr__virtual *self, uintptr_t address,
                            size_t bytes)
{
    ccmr__mapping *mapping = NULL;
    ccmr_status status;

    (void)pthread_mutex_lock(&self->books);
    status = find_mapping(self, "decommit", address, bytes, &mapping);
    if (status == CCMR_SUCCESS) {
        (void)ccmr__tree_remove(&self->mappings, address);
    }
    (void)pthread_mutex_unlock(&self->books);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    status = ccmr__virtual_unmap(address, bytes);
    if (status == CCMR_SUCCESS) {
        drop_mapping(self, mapping);
        return CCMR_SUCCESS;
    }
    (void)pthread_mutex_lock(&self->books);
    ccmr__tree_insert(&self->mappings, &mapping->node);
    (void)pthread_mutex_unlock(&self->books);
    return status;
}

ccmr_status ccmr__virtual_decommit(void *object, void *address, size_t bytes)
{
    ccmr__virtual *self = object;
    ccmr__scope scope;
    ccmr_status status =
        ccmr__scope_enter(&scope, self->device, CCMR__SCOPE_RELAXED);

    if (status != CCMR_SUCCESS) {
        return named(status);
    }
    (void)ccmr__virtual_settle(self);
    (void)pthread_rwlock_rdlock(&self->access);
    status = decommit(self, (uintptr_t)address, bytes);
    (void)pthread_rwlock_unlock(&self->access);
    ccmr__scope_leave(&scope);
    return named(status);
}

/* In the device's context, with `access` shared. The piece is counted for the
 * new mapping first, so that a decommit of the old one leaves it alone. */
static ccmr_status move(ccmr__virtual *self, uintptr_t from, uintptr_t to,
                        size_t bytes)
{
    ccmr__mapping *mapping = NULL;
    ccmr__mapping *old = NULL;
    ccmr_status status = new_mapping(to, &mapping);

    if (status != CCMR_SUCCESS) {
        return status;
    }
    (void)pthread_mutex_lock(&self->books);
    status = find_mapping(self, "move", from, bytes, &old);
    if (status == CCMR_SUCCESS) {
        status = find_room(self, "move", to, bytes, &mapping->range);
    }
    if (status == CCMR_SUCCESS) {
        mapping->piece = old->piece;
        mapping->piece->mappings++;
    }
    (void)pthread_mutex_unlock(&self->books);
    if (status != CCMR_SUCCESS) {
        free(mapping);
        return status;
    }
    return settle_mapping(self, mapping, map_open(self, mapping));
}

ccmr_status ccmr__virtual_move(void *object, void *from, void *to,
                               size_t bytes)
{
    ccmr__virtual *self = object;
    ccmr_status status = check_place(self, "move", (uintptr_t)to, bytes);
    ccmr__scope scope;

    if (status == CCMR_SUCCESS) {
        status = ccmr__scope_enter(&scope, self->device, CCMR__SCOPE_RELAXED);
    }
    if (status != CCMR_SUCCESS) {
        return named(status);
    }
    (void)pthread_rwlock_rdlock(&self->access);
    status = move(self, (uintptr_t)from, (uintptr_t)to, bytes);
    (void)pthread_rwlock_unlock(&self->access);
    ccmr__scope_leave(&scope);
    return named(status);
}
