/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_ordered's tables and the objects in them: made with a block, gone
 * with a block, never at a free.
 */
#include "resources/stream_ordered/store.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/error.h"

#define FIRST_BUCKETS ((size_t)64)
#define GOLDEN UINT64_C(0x9E3779B97F4A7C15)

static size_t mix(uint64_t key, size_t buckets)
{
    return (size_t)((key * GOLDEN) >> 20) & (buckets - 1);
}

static size_t live_bucket(const void *ptr, size_t buckets)
{
    return mix((uint64_t)(uintptr_t)ptr, buckets);
}

static size_t pocket_bucket(const ccmr__so_waited *waited,
                            const ccmr__so_bin *bin, size_t buckets)
{
    return mix((uint64_t)(uintptr_t)waited ^
                   ((uint64_t)(uintptr_t)bin * GOLDEN),
               buckets);
}

/* ---- the three tables ---------------------------------------------------- */

typedef struct tables {
    size_t buckets;
    ccmr__so_block **live;
    ccmr__so_waited **streams;
    ccmr__so_pocket **pockets;
} tables;

static void tables_free(tables *made)
{
    free(made->live);
    free(made->streams);
    free(made->pockets);
}

static int tables_make(tables *made, size_t buckets)
{
    made->buckets = buckets;
    made->live = calloc(buckets, sizeof(*made->live));
    made->streams = calloc(buckets, sizeof(*made->streams));
    made->pockets = calloc(buckets, sizeof(*made->pockets));
    if (made->live == NULL || made->streams == NULL || made->pockets == NULL) {
        tables_free(made);
        return 0;
    }
    return 1;
}

/* The object's tables and `other` change places. */
static void tables_swap(ccmr__so *self, tables *other)
{
    tables mine = {self->buckets, self->live, self->streams, self->pockets};

    self->buckets = other->buckets;
    self->live = other->live;
    self->streams = other->streams;
    self->pockets = other->pockets;
    *other = mine;
}

static void move_live(ccmr__so *self, ccmr__so_block *block)
{
    while (block != NULL) {
        ccmr__so_block *next = block->chain;
        ccmr__so_block **head =
            &self->live[live_bucket(block->ptr, self->buckets)];

        block->chain = *head;
        *head = block;
        block = next;
    }
}

static void move_streams(ccmr__so *self, ccmr__so_waited *waited)
{
    while (waited != NULL) {
        ccmr__so_waited *next = waited->chain;
        ccmr__so_waited **head =
            &self->streams[mix(waited->id, self->buckets)];

        waited->chain = *head;
        *head = waited;
        waited = next;
    }
}

static void move_pockets(ccmr__so *self, ccmr__so_pocket *pocket)
{
    while (pocket != NULL) {
        ccmr__so_pocket *next = pocket->chain;
        ccmr__so_pocket **head = &self->pockets[pocket_bucket(
            pocket->waited, pocket->bin, self->buckets)];

        pocket->chain = *head;
        *head = pocket;
        pocket = next;
    }
}

/* Not under the lock. Without memory the chains get longer: no failure. */
static void grow(ccmr__so *self, size_t buckets)
{
    tables other;
    size_t i;

    if (!tables_make(&other, buckets)) {
        return;
    }
    ccmr__so_lock(self);
    if (self->buckets < buckets) {
        tables_swap(self, &other);
        for (i = 0; i < other.buckets; i++) {
            move_live(self, other.live[i]);
            move_streams(self, other.streams[i]);
            move_pockets(self, other.pockets[i]);
        }
    }
    ccmr__so_unlock(self);
    tables_free(&other);
}

int ccmr__so_tables_init(ccmr__so *self)
{
    tables first;
    unsigned i;

    if (!tables_make(&first, FIRST_BUCKETS)) {
        return -1;
    }
    tables_swap(self, &first);
    for (i = 0; i < CCMR__CLASSES; i++) {
        self->bins[i].index = i;
        self->bins[i].alignment = self->base;
    }
    return 0;
}

void ccmr__so_tables_destroy(ccmr__so *self)
{
    tables mine = {0, NULL, NULL, NULL};

    assert(self->blocks == 0);
    assert(self->spare_waited == NULL && self->spare_pockets == NULL);
    while (self->odd != NULL) {
        ccmr__so_bin *bin = self->odd;

        self->odd = bin->next;
        free(bin);
    }
    tables_swap(self, &mine);
    tables_free(&mine);
}

/* ---- blocks --------------------------------------------------------------- */

static ccmr_status make_event(ccmr__so *self, CUevent *event)
{
    ccmr__scope scope;
    ccmr_status status = ccmr__scope_enter(&scope, self->device, 0);
    CUresult res;

    if (status != CCMR_SUCCESS) {
        return status;
    }
    res = CCMR__CU(cuEventCreate)(event, CU_EVENT_DISABLE_TIMING);
    ccmr__scope_leave(&scope);
    return res == CUDA_SUCCESS
               ? CCMR_SUCCESS
               : ccmr__fail_driver_host((int)res, "cuEventCreate");
}

/* Each call is tried twice: one that went wrong once is no reason to lose an
 * event. Where the driver has gone, so have they. */
static void destroy_events(ccmr__so *self, ccmr__so_block *blocks)
{
    ccmr__scope scope;

    if (blocks == NULL ||
        (ccmr__scope_enter(&scope, self->device, 0) != CCMR_SUCCESS &&
         ccmr__scope_enter(&scope, self->device, 0) != CCMR_SUCCESS)) {
        return;
    }
    for (; blocks != NULL; blocks = blocks->older) {
        if (CCMR__CU(cuEventDestroy)(blocks->event) != CUDA_SUCCESS) {
            (void)CCMR__CU(cuEventDestroy)(blocks->event);
        }
    }
    ccmr__scope_leave(&scope);
}

/* The bin of a larger alignment, at its first use. */
static int make_bin(ccmr__so *self, ccmr__so_want *want)
{
    ccmr__so_bin *bin = calloc(1, sizeof(*bin));

    if (bin == NULL) {
        return 0;
    }
    bin->index = want->index;
    bin->alignment = want->alignment;
    ccmr__so_lock(self);
    ccmr__so_find_bin(self, want);
    if (want->bin == NULL) {
        bin->next = self->odd;
        self->odd = bin;
        want->bin = bin;
        bin = NULL;
    }
    ccmr__so_unlock(self);
    free(bin);
    return 1;
}

ccmr_status ccmr__so_make(ccmr__so *self, ccmr__so_want *want,
                          ccmr__so_block **block)
{
    ccmr__so_block *made = calloc(1, sizeof(*made));
    ccmr__so_waited *waited = calloc(1, sizeof(*waited));
    ccmr__so_pocket *pocket = calloc(1, sizeof(*pocket));
    ccmr_status status = CCMR_ERROR_OUT_OF_HOST_MEMORY;
    size_t buckets;
    int full;

    if (made == NULL || waited == NULL || pocket == NULL ||
        (want->bin == NULL && !make_bin(self, want))) {
        (void)ccmr__fail(status, "no memory for a block's record");
        goto err_free;
    }
    status = make_event(self, &made->event);
    if (status != CCMR_SUCCESS) {
        goto err_free;
    }
    ccmr__so_lock(self);
    buckets = self->buckets;
    full = self->blocks >= buckets;
    ccmr__so_unlock(self);
    if (full) {
        grow(self, 2 * buckets);
    }
    /* It carries what it will put to the spare ones. */
    made->waited = waited;
    made->pocket = pocket;
    *block = made;
    return CCMR_SUCCESS;

err_free:
    free(pocket);
    free(waited);
    free(made);
    return status;
}

void ccmr__so_unmake(ccmr__so *self, ccmr__so_block *block)
{
    destroy_events(self, block);
    free(block->pocket);
    free(block->waited);
    free(block);
}

void ccmr__so_add(ccmr__so *self, ccmr__so_block *block,
                  const ccmr__so_want *want, void *ptr)
{
    block->waited->chain = self->spare_waited;
    self->spare_waited = block->waited;
    block->waited = NULL;
    block->pocket->chain = self->spare_pockets;
    self->spare_pockets = block->pocket;
    block->pocket = NULL;
    block->ptr = ptr;
    block->bytes = ccmr__so_class_bytes(want->index);
    block->alignment = want->alignment;
    block->bin = want->bin;
    self->blocks++;
    self->out_blocks++;
    self->reserved += block->bytes;
    if (self->reserved > self->peak_reserved) {
        self->peak_reserved = self->reserved;
    }
    ccmr__so_hand_out(self, block, want->bytes);
}

void ccmr__so_discard(ccmr__so *self, ccmr__so_block *blocks)
{
    ccmr__so_block *block;
    ccmr__so_waited *waited;
    ccmr__so_pocket *pocket;

    destroy_events(self, blocks);
    while ((block = blocks) != NULL) {
        blocks = block->older;
        ccmr__so_lock(self);
        /* In use are at most as many as other blocks are cached. */
        waited = self->spare_waited;
        pocket = self->spare_pockets;
        assert(block->waited == NULL && waited != NULL && pocket != NULL);
        self->spare_waited = waited->chain;
        self->spare_pockets = pocket->chain;
        self->blocks--;
        self->out_blocks--;
        self->reserved -= block->bytes;
        self->changes++;
        ccmr__so_unlock(self);
        free(waited);
        free(pocket);
        free(block);
    }
}

/* ---- live blocks ----------------------------------------------------------- */

void ccmr__so_live_add(ccmr__so *self, ccmr__so_block *block)
{
    ccmr__so_block **head =
        &self->live[live_bucket(block->ptr, self->buckets)];

    block->chain = *head;
    *head = block;
    self->live_blocks++;
}

void ccmr__so_live_remove(ccmr__so *self, ccmr__so_block *block)
{
    ccmr__so_block **link =
        &self->live[live_bucket(block->ptr, self->buckets)];

    while (*link != block) {
        link = &(*link)->chain;
    }
    *link = block->chain;
    self->live_blocks--;
}

ccmr__so_block *ccmr__so_find_live(ccmr__so *self, const void *ptr)
{
    ccmr__so_block *block = self->live[live_bucket(ptr, self->buckets)];

    while (block != NULL && block->ptr != ptr) {
        block = block->chain;
    }
    return block;
}

/* ---- streams ---------------------------------------------------------------- */

ccmr__so_waited *ccmr__so_find_waited(ccmr__so *self, uint64_t stream_id)
{
    ccmr__so_waited *waited = self->streams[mix(stream_id, self->buckets)];

    while (waited != NULL && (waited->id != stream_id || waited->retired)) {
        waited = waited->chain;
    }
    return waited;
}

ccmr__so_waited *ccmr__so_hold(ccmr__so *self, uint64_t stream_id)
{
    ccmr__so_waited *waited = ccmr__so_find_waited(self, stream_id);
    ccmr__so_waited **head;

    if (waited == NULL) {
        waited = self->spare_waited;
        assert(waited != NULL);
        self->spare_waited = waited->chain;
        memset(waited, 0, sizeof(*waited));
        waited->id = stream_id;
        head = &self->streams[mix(stream_id, self->buckets)];
        waited->chain = *head;
        *head = waited;
    }
    waited->blocks++;
    return waited;
}

void ccmr__so_drop(ccmr__so *self, ccmr__so_waited *waited)
{
    ccmr__so_waited **link;

    if (--waited->blocks != 0) {
        return;
    }
    link = &self->streams[mix(waited->id, self->buckets)];
    while (*link != waited) {
        link = &(*link)->chain;
    }
    *link = waited->chain;
    waited->chain = self->spare_waited;
    self->spare_waited = waited;
}

/* ---- pockets ----------------------------------------------------------------- */

ccmr__so_pocket *ccmr__so_find_pocket(ccmr__so *self,
                                      const ccmr__so_waited *waited,
                                      const ccmr__so_bin *bin)
{
    ccmr__so_pocket *pocket =
        self->pockets[pocket_bucket(waited, bin, self->buckets)];

    while (pocket != NULL &&
           (pocket->waited != waited || pocket->bin != bin)) {
        pocket = pocket->chain;
    }
    return pocket;
}

ccmr__so_pocket *ccmr__so_open_pocket(ccmr__so *self, ccmr__so_waited *waited,
                                      ccmr__so_bin *bin)
{
    ccmr__so_pocket *pocket = self->spare_pockets;
    ccmr__so_pocket **head;

    assert(pocket != NULL);
    self->spare_pockets = pocket->chain;
    memset(pocket, 0, sizeof(*pocket));
    pocket->bin = bin;
    pocket->waited = waited;
    head = &self->pockets[pocket_bucket(waited, bin, self->buckets)];
    pocket->chain = *head;
    *head = pocket;
    pocket->previous = bin->last;
    if (bin->last != NULL) {
        bin->last->next = pocket;
    } else {
        bin->first = pocket;
    }
    bin->last = pocket;
    if (bin->alignment == self->base) {
        ccmr__class_add(&waited->classes, bin->index);
        ccmr__class_add(&self->pending, bin->index);
    }
    return pocket;
}

static void unlink_pocket(ccmr__so_pocket *pocket)
{
    ccmr__so_bin *bin = pocket->bin;

    if (pocket->previous != NULL) {
        pocket->previous->next = pocket->next;
    } else {
        bin->first = pocket->next;
    }
    if (pocket->next != NULL) {
        pocket->next->previous = pocket->previous;
    } else {
        bin->last = pocket->previous;
    }
}

void ccmr__so_close_pocket(ccmr__so *self, ccmr__so_pocket *pocket)
{
    ccmr__so_bin *bin = pocket->bin;
    ccmr__so_pocket **link =
        &self->pockets[pocket_bucket(pocket->waited, bin, self->buckets)];

    while (*link != pocket) {
        link = &(*link)->chain;
    }
    *link = pocket->chain;
    unlink_pocket(pocket);
    if (bin->alignment == self->base) {
        ccmr__class_remove(&pocket->waited->classes, bin->index);
        if (bin->first == NULL) {
            ccmr__class_remove(&self->pending, bin->index);
        }
    }
    pocket->chain = self->spare_pockets;
    self->spare_pockets = pocket;
}

void ccmr__so_rotate(ccmr__so_pocket *pocket)
{
    ccmr__so_bin *bin = pocket->bin;

    if (bin->last == pocket) {
        return;
    }
    unlink_pocket(pocket);
    pocket->previous = bin->last;
    pocket->next = NULL;
    bin->last->next = pocket;
    bin->last = pocket;
}
