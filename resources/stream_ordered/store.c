/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_ordered's books: blocks from one place to another.
 */
#include "resources/stream_ordered/store.h"

#include <assert.h>

#include "lib/thread.h"

size_t ccmr__so_class_bytes(unsigned index)
{
    size_t bytes = ccmr__class_bytes(index);

    /* The very last class is refused by whoever is asked for so much. */
    return bytes <= (size_t)PTRDIFF_MAX ? bytes : (size_t)PTRDIFF_MAX;
}

void ccmr__so_find_bin(ccmr__so *self, ccmr__so_want *want)
{
    ccmr__so_bin *bin;

    if (want->alignment == self->base) {
        want->bin = &self->bins[want->index];
        return;
    }
    bin = self->odd;
    while (bin != NULL &&
           (bin->index != want->index || bin->alignment != want->alignment)) {
        bin = bin->next;
    }
    want->bin = bin;
}

/* ---- lists ----------------------------------------------------------------- */

static void list_add_newest(ccmr__so_list *list, ccmr__so_block *block)
{
    block->newer = NULL;
    block->older = list->newest;
    if (list->newest != NULL) {
        list->newest->newer = block;
    } else {
        list->oldest = block;
    }
    list->newest = block;
}

static void list_add_oldest(ccmr__so_list *list, ccmr__so_block *block)
{
    block->older = NULL;
    block->newer = list->oldest;
    if (list->oldest != NULL) {
        list->oldest->older = block;
    } else {
        list->newest = block;
    }
    list->oldest = block;
}

static void list_remove(ccmr__so_list *list, ccmr__so_block *block)
{
    if (block->newer != NULL) {
        block->newer->older = block->older;
    } else {
        list->newest = block->older;
    }
    if (block->older != NULL) {
        block->older->newer = block->newer;
    } else {
        list->oldest = block->newer;
    }
    block->newer = NULL;
    block->older = NULL;
}

/* ---- in and out of the cache ------------------------------------------------- */

static void add_finished(ccmr__so *self, ccmr__so_block *block)
{
    ccmr__so_bin *bin = block->bin;

    assert(block->waited == NULL);
    list_add_newest(&bin->finished, block);
    if (bin->alignment == self->base) {
        ccmr__class_add(&self->finished, bin->index);
    }
    self->cached_blocks++;
    self->cached_bytes += block->bytes;
}

static void add_pending(ccmr__so *self, ccmr__so_block *block, int newest)
{
    ccmr__so_pocket *pocket =
        ccmr__so_find_pocket(self, block->waited, block->bin);

    if (pocket == NULL) {
        pocket = ccmr__so_open_pocket(self, block->waited, block->bin);
    }
    block->pocket = pocket;
    if (newest) {
        list_add_newest(&pocket->blocks, block);
    } else {
        list_add_oldest(&pocket->blocks, block);
    }
    self->cached_blocks++;
    self->cached_bytes += block->bytes;
    self->pending_bytes += block->bytes;
}

/* Out of the cache; its stream is still named. */
static void remove_cached(ccmr__so *self, ccmr__so_block *block)
{
    ccmr__so_pocket *pocket = block->pocket;
    ccmr__so_bin *bin = block->bin;

    self->cached_blocks--;
    self->cached_bytes -= block->bytes;
    if (pocket != NULL) {
        self->pending_bytes -= block->bytes;
        block->pocket = NULL;
        list_remove(&pocket->blocks, block);
        if (pocket->blocks.newest == NULL) {
            ccmr__so_close_pocket(self, pocket);
        }
        return;
    }
    list_remove(&bin->finished, block);
    if (bin->finished.newest == NULL && bin->alignment == self->base) {
        ccmr__class_remove(&self->finished, bin->index);
    }
}

static void forget_stream(ccmr__so *self, ccmr__so_block *block)
{
    if (block->waited != NULL) {
        ccmr__so_drop(self, block->waited);
        block->waited = NULL;
    }
}

void ccmr__so_remove(ccmr__so *self, ccmr__so_block *block)
{
    remove_cached(self, block);
    self->out_blocks++;
}

void ccmr__so_put_back(ccmr__so *self, ccmr__so_block *block, int finished)
{
    self->out_blocks--;
    if (finished) {
        forget_stream(self, block);
    }
    if (block->waited == NULL) {
        add_finished(self, block);
    } else {
        add_pending(self, block, 0);
    }
}

void ccmr__so_note_done(ccmr__so_block *block)
{
    ccmr__so_waited *waited = block->waited;
    uint64_t done = block->covers;

    if (waited == NULL) {
        return;
    }
    if (block->number == done + 1) {
        done++;
    }
    if (waited->done < done) {
        waited->done = done;
    }
}

/* ---- handing out --------------------------------------------------------------- */

void ccmr__so_hand_out(ccmr__so *self, ccmr__so_block *block, size_t asked)
{
    assert(block->bytes >= asked);
    forget_stream(self, block);
    self->out_blocks--;
    block->asked = asked;
    ccmr__so_live_add(self, block);
}

/* The stream's own newest block in a bin. */
static ccmr__so_block *newest_own(ccmr__so *self,
                                  const ccmr__so_waited *waited,
                                  const ccmr__so_bin *bin)
{
    ccmr__so_pocket *pocket = ccmr__so_find_pocket(self, waited, bin);

    return pocket != NULL ? pocket->blocks.newest : NULL;
}

static ccmr__so_block *find_own(ccmr__so *self, const ccmr__so_want *want,
                                uint64_t stream_id)
{
    ccmr__so_waited *waited = ccmr__so_find_waited(self, stream_id);
    unsigned index;

    if (waited == NULL) {
        return NULL;
    }
    if (want->alignment != self->base) {
        return newest_own(self, waited, want->bin);
    }
    index = ccmr__class_next(&waited->classes, want->index,
                             want->index + CCMR__CLASS_REACH);
    return index != CCMR__CLASSES
               ? newest_own(self, waited, &self->bins[index])
               : NULL;
}

static ccmr__so_block *find_finished(ccmr__so *self, const ccmr__so_want *want)
{
    unsigned index;

    if (want->alignment != self->base) {
        return want->bin->finished.newest;
    }
    index = ccmr__class_next(&self->finished, want->index,
                             want->index + CCMR__CLASS_REACH);
    return index != CCMR__CLASSES ? self->bins[index].finished.newest : NULL;
}

ccmr__so_block *ccmr__so_take(ccmr__so *self, const ccmr__so_want *want,
                              uint64_t stream_id)
{
    ccmr__so_block *block = NULL;

    if (want->bin == NULL) {
        return NULL;
    }
    if (!self->host_access) {
        block = find_own(self, want, stream_id);
    }
    if (block == NULL) {
        block = find_finished(self, want);
    }
    if (block != NULL) {
        ccmr__so_remove(self, block);
        ccmr__so_hand_out(self, block, want->bytes);
    }
    return block;
}

/* ---- taking back ----------------------------------------------------------------- */

void ccmr__so_free_begin(ccmr__so *self, ccmr__so_block *block,
                         uint64_t stream_id)
{
    ccmr__so_live_remove(self, block);
    self->moving_blocks++;
    block->waited = ccmr__so_hold(self, stream_id);
    block->covers = block->waited->number;
}

void ccmr__so_free_end(ccmr__so *self, ccmr__so_block *block, int recorded)
{
    self->moving_blocks--;
    if (!recorded) {
        forget_stream(self, block);
        ccmr__so_live_add(self, block);
        return;
    }
    block->number = ++block->waited->number;
    add_pending(self, block, 1);
    self->changes++;
}

void ccmr__so_free_ready(ccmr__so *self, ccmr__so_block *block)
{
    ccmr__so_live_remove(self, block);
    add_finished(self, block);
    self->changes++;
}

void ccmr__so_retire(ccmr__so *self, uint64_t stream_id)
{
    ccmr__so_waited *waited = ccmr__so_find_waited(self, stream_id);

    if (waited != NULL) {
        waited->retired = 1;
    }
}

/* ---- outings ----------------------------------------------------------------------- */

void ccmr__so_outing_begin(ccmr__so *self, ccmr__so_outing *outing)
{
    outing->thread = ccmr__thread_self()->serial;
    outing->lasting = 0;
    outing->next = self->outings;
    outing->link = &self->outings;
    if (self->outings != NULL) {
        self->outings->link = &outing->next;
    }
    self->outings = outing;
}

void ccmr__so_outing_end(ccmr__so *self, ccmr__so_outing *outing)
{
    *outing->link = outing->next;
    if (outing->next != NULL) {
        outing->next->link = outing->link;
    }
    (void)pthread_cond_broadcast(&self->settled);
}

/* Is there something to wait for? */
static int unsettled(const ccmr__so *self, int all)
{
    uint64_t thread = ccmr__thread_self()->serial;
    const ccmr__so_outing *outing;
    int others = 0;

    for (outing = self->outings; outing != NULL; outing = outing->next) {
        if (outing->thread == thread) {
            return 0;
        }
        others |= all || !outing->lasting;
    }
    return others;
}

int ccmr__so_settle(ccmr__so *self, int all)
{
    int waited = 0;

    while (unsettled(self, all)) {
        (void)pthread_cond_wait(&self->settled, &self->lock);
        waited = 1;
    }
    return waited;
}

/* ---- audit --------------------------------------------------------------------------- */

typedef struct sums {
    size_t blocks;
    size_t bytes;
    size_t pending;
} sums;

static void sum_list(const ccmr__so_list *list, sums *sum)
{
    const ccmr__so_block *block;

    for (block = list->newest; block != NULL; block = block->older) {
        sum->blocks++;
        sum->bytes += block->bytes;
    }
}

static void sum_bin(const ccmr__so_bin *bin, sums *sum)
{
    const ccmr__so_pocket *pocket;
    size_t before;

    sum_list(&bin->finished, sum);
    before = sum->bytes;
    for (pocket = bin->first; pocket != NULL; pocket = pocket->next) {
        sum_list(&pocket->blocks, sum);
    }
    sum->pending += sum->bytes - before;
}

int ccmr__so_audit(ccmr__so *self)
{
    sums cached = {0, 0, 0};
    sums live = {0, 0, 0};
    const ccmr__so_bin *bin;
    size_t i;

    for (i = 0; i < CCMR__CLASSES; i++) {
        sum_bin(&self->bins[i], &cached);
    }
    for (bin = self->odd; bin != NULL; bin = bin->next) {
        sum_bin(bin, &cached);
    }
    for (i = 0; i < self->buckets; i++) {
        const ccmr__so_block *block = self->live[i];

        for (; block != NULL; block = block->chain) {
            live.blocks++;
            live.bytes += block->bytes;
        }
    }
    return cached.blocks == self->cached_blocks &&
           cached.bytes == self->cached_bytes &&
           cached.pending == self->pending_bytes &&
           live.blocks == self->live_blocks &&
           self->blocks == self->live_blocks + self->moving_blocks +
                               self->cached_blocks + self->out_blocks &&
           (self->moving_blocks + self->out_blocks != 0 ||
            self->reserved == live.bytes + cached.bytes);
}
