/* SPDX-License-Identifier: Apache-2.0 */
/*
 * virtual: what is alive, what it amounts to, and what could not be given
 * back.
 */
#include <stdlib.h>

#include "lib/error.h"
#include "resources/virtual/virtual.h"

/* ---- figures --------------------------------------------------------- */

void ccmr__virtual_count(ccmr__virtual *self, size_t bytes)
{
    (void)pthread_mutex_lock(&self->books);
    self->reserved += bytes;
    if (self->reserved > self->peak_reserved) {
        self->peak_reserved = self->reserved;
    }
    (void)pthread_mutex_unlock(&self->books);
}

void ccmr__virtual_uncount(ccmr__virtual *self, size_t bytes)
{
    (void)pthread_mutex_lock(&self->books);
    self->reserved -= bytes;
    (void)pthread_mutex_unlock(&self->books);
}

/* ---- strays ---------------------------------------------------------- */

void ccmr__virtual_keep_piece(ccmr__virtual *self, ccmr__piece *piece)
{
    (void)pthread_mutex_lock(&self->books);
    piece->next = self->stray_pieces;
    self->stray_pieces = piece;
    (void)pthread_mutex_unlock(&self->books);
    atomic_fetch_add_explicit(&self->strays, 1, memory_order_relaxed);
}

void ccmr__virtual_keep_range(ccmr__virtual *self, ccmr__range *range)
{
    (void)pthread_mutex_lock(&self->books);
    range->next = self->stray_ranges;
    self->stray_ranges = range;
    (void)pthread_mutex_unlock(&self->books);
    atomic_fetch_add_explicit(&self->strays, 1, memory_order_relaxed);
}

static ccmr__piece *take_pieces(ccmr__virtual *self)
{
    ccmr__piece *pieces;

    (void)pthread_mutex_lock(&self->books);
    pieces = self->stray_pieces;
    self->stray_pieces = NULL;
    (void)pthread_mutex_unlock(&self->books);
    return pieces;
}

static ccmr__range *take_ranges(ccmr__virtual *self)
{
    ccmr__range *ranges;

    (void)pthread_mutex_lock(&self->books);
    ranges = self->stray_ranges;
    self->stray_ranges = NULL;
    (void)pthread_mutex_unlock(&self->books);
    return ranges;
}

/* What is refused again is a stray again. An audit sees all or nothing. */
static size_t settle_all(ccmr__virtual *self)
{
    ccmr__piece *piece;
    ccmr__range *range;
    size_t gone = 0;

    (void)pthread_rwlock_rdlock(&self->access);
    piece = take_pieces(self);
    range = take_ranges(self);
    while (piece != NULL) {
        ccmr__piece *next = piece->next;
        size_t bytes = piece->bytes;

        atomic_fetch_sub_explicit(&self->strays, 1, memory_order_relaxed);
        if (ccmr__virtual_give_piece(self, piece)) {
            gone += bytes;
        }
        piece = next;
    }
    while (range != NULL) {
        ccmr__range *next = range->next;

        atomic_fetch_sub_explicit(&self->strays, 1, memory_order_relaxed);
        ccmr__virtual_give_range(self, range);
        range = next;
    }
    (void)pthread_rwlock_unlock(&self->access);
    return gone;
}

size_t ccmr__virtual_settle(ccmr__virtual *self)
{
    if (__builtin_expect(
            atomic_load_explicit(&self->strays, memory_order_relaxed) == 0,
            1)) {
        return 0;
    }
    return settle_all(self);
}

size_t ccmr__virtual_stray_bytes(ccmr__virtual *self)
{
    const ccmr__piece *piece;
    size_t bytes = 0;

    (void)pthread_mutex_lock(&self->books);
    for (piece = self->stray_pieces; piece != NULL; piece = piece->next) {
        bytes += piece->bytes;
    }
    (void)pthread_mutex_unlock(&self->books);
    return bytes;
}

/* ---- all that there is ----------------------------------------------- */

/* Under both locks. How often an audit has met each piece is kept with it. */
static size_t count_mapped(const ccmr__virtual *self)
{
    const ccmr__tree_node *node = ccmr__tree_first(&self->mappings, 0);
    size_t bytes = 0;

    while (node != NULL) {
        ccmr__piece *piece = ((const ccmr__mapping *)node)->piece;

        if (piece->counted++ == 0) {
            bytes += piece->bytes;
        }
        node = ccmr__tree_first(&self->mappings, node->address + 1);
    }
    return bytes;
}

/* Under both locks, after count_mapped(). Each mapping is within its range. */
static int mappings_agree(const ccmr__virtual *self)
{
    const ccmr__tree_node *node = ccmr__tree_first(&self->mappings, 0);
    uintptr_t end = 0;
    int good = 1;

    while (node != NULL) {
        const ccmr__mapping *mapping = (const ccmr__mapping *)node;
        const ccmr__range *range = mapping->range;

        good = good && node->address >= end &&
               node->address >= range->node.address;
        end = node->address + mapping->piece->bytes;
        good = good && end <= range->node.address + range->bytes &&
               mapping->piece->counted == mapping->piece->mappings;
        node = ccmr__tree_first(&self->mappings, node->address + 1);
    }
    for (node = ccmr__tree_first(&self->mappings, 0); node != NULL;
         node = ccmr__tree_first(&self->mappings, node->address + 1)) {
        ((const ccmr__mapping *)node)->piece->counted = 0;
    }
    return good;
}

/* Under both locks: bytes of all blocks' pieces; `good` becomes 0 where one
 * does not have what it says. */
static size_t count_blocks(const ccmr__virtual *self, int *good)
{
    const ccmr__tree_node *node = ccmr__tree_first(&self->blocks, 0);
    size_t total = 0;

    while (node != NULL) {
        const ccmr__virtual_block *block = (const ccmr__virtual_block *)node;
        const ccmr__piece *piece;
        size_t bytes = 0;

        for (piece = block->pieces; piece != NULL; piece = piece->next) {
            bytes += piece->bytes;
        }
        if (bytes != block->mapped || block->bytes > bytes ||
            bytes > block->range.bytes) {
            *good = 0;
        }
        total += bytes;
        node = ccmr__tree_first(&self->blocks, node->address + 1);
    }
    return total;
}

ccmr_status ccmr__virtual_audit(void *object)
{
    ccmr__virtual *self = object;
    size_t strays = 0;
    size_t blocks;
    size_t mapped;
    size_t reserved;
    int good = 1;

    (void)pthread_rwlock_wrlock(&self->access);
    strays = ccmr__virtual_stray_bytes(self);
    (void)pthread_mutex_lock(&self->books);
    blocks = count_blocks(self, &good);
    mapped = count_mapped(self);
    good = mappings_agree(self) && good;
    reserved = self->reserved;
    (void)pthread_mutex_unlock(&self->books);
    (void)pthread_rwlock_unlock(&self->access);
    if (!good || blocks + mapped + strays != reserved) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "the books disagree: %zu bytes reserved, but %zu in "
                          "blocks, %zu in ranges, %zu to be given back",
                          reserved, blocks, mapped, strays);
    }
    return CCMR_SUCCESS;
}

/* Nobody else has the resource any more, and no work uses the memory. */
void ccmr__virtual_give_all(ccmr__virtual *self)
{
    ccmr__tree_node *node;

    while ((node = ccmr__tree_first(&self->mappings, 0)) != NULL) {
        ccmr__piece *piece = ((ccmr__mapping *)node)->piece;

        (void)ccmr__tree_remove(&self->mappings, node->address);
        ccmr__virtual_unmap_again(node->address, piece->bytes);
        if (--piece->mappings == 0) {
            (void)ccmr__virtual_give_piece(self, piece);
        }
        free(node);
    }
    while ((node = ccmr__tree_first(&self->ranges, 0)) != NULL) {
        (void)ccmr__tree_remove(&self->ranges, node->address);
        ccmr__virtual_give_range(self, (ccmr__range *)node);
    }
    (void)ccmr__virtual_settle(self);
    /* What the driver will not have goes with the process. */
    while (self->stray_pieces != NULL) {
        ccmr__piece *piece = self->stray_pieces;

        self->stray_pieces = piece->next;
        free(piece);
    }
    while (self->stray_ranges != NULL) {
        ccmr__range *range = self->stray_ranges;

        self->stray_ranges = range->next;
        free(range);
    }
}
