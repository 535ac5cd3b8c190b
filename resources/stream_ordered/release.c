/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_ordered: what goes back upstream.
 *
 * A pass looks at each pocket once. Its blocks are taken aside together, the
 * driver is asked about them from the oldest on, what is finished goes (or
 * becomes anybody's), the rest comes back. A pocket that is opened for those
 * stands at the end of its bin's row, marked with the number of the pass.
 */
#include "resources/stream_ordered/stream_ordered.h"

#include <assert.h>

#include "lib/error.h"
#include "lib/process.h"

/* ---- under the lock ---------------------------------------------------------- */

static int wants_more(const ccmr__so_pass *pass)
{
    return pass->mode != CCMR__SO_POLL && pass->bytes < pass->excess &&
           pass->status == CCMR_SUCCESS;
}

/* Finished blocks that should go, linked by `older`. */
static ccmr__so_block *collect_finished(ccmr__so *self, ccmr__so_bin *bin,
                                        const ccmr__so_pass *pass)
{
    ccmr__so_block *chosen = NULL;
    ccmr__so_block *block;
    size_t bytes = pass->bytes;

    while (wants_more(pass) && bytes < pass->excess &&
           (block = bin->finished.oldest) != NULL) {
        ccmr__so_remove(self, block);
        bytes += block->bytes;
        block->older = chosen;
        chosen = block;
    }
    return chosen;
}

/* All blocks of a pocket, the oldest first, linked by `newer`. */
static ccmr__so_block *empty_pocket(ccmr__so *self, ccmr__so_pocket *pocket)
{
    ccmr__so_block *first = pocket->blocks.oldest;
    ccmr__so_block *last = NULL;
    ccmr__so_block *block = first;

    while (block != NULL) {
        ccmr__so_block *next = block->newer;

        ccmr__so_remove(self, block);
        block->newer = NULL;
        if (last != NULL) {
            last->newer = block;
        }
        last = block;
        block = next;
    }
    return first;
}

/* ---- the driver ---------------------------------------------------------------- */

/* In a relaxed scope: how many of the blocks, from the first on, are done. A
 * wait that fails ends the pass. */
static size_t count_done(ccmr__so_block *block, ccmr__so_pass *pass)
{
    size_t done = 0;
    CUresult res;

    for (; block != NULL; block = block->newer) {
        if (pass->mode == CCMR__SO_ALL) {
            res = CCMR__CU(cuEventSynchronize)(block->event);
        } else {
            res = CCMR__CU(cuEventQuery)(block->event);
        }
        if (res == CUDA_ERROR_DEINITIALIZED) {
            ccmr__process_set_exiting();
        }
        if (res != CUDA_SUCCESS) {
            break;
        }
        done++;
    }
    if (block != NULL && pass->mode == CCMR__SO_ALL) {
        pass->status = ccmr__fail_driver((int)res, "cuEventSynchronize");
    }
    return done;
}

static size_t ask_driver(ccmr__so *self, ccmr__so_block *blocks,
                         ccmr__so_pass *pass)
{
    ccmr__scope scope;
    ccmr_status status =
        ccmr__scope_enter(&scope, self->device, CCMR__SCOPE_RELAXED);
    size_t done;

    if (status != CCMR_SUCCESS) {
        pass->status = status;
        return 0;
    }
    done = count_done(blocks, pass);
    ccmr__scope_leave(&scope);
    return done;
}

/* ---- the upstream ---------------------------------------------------------------- */

/* Finished blocks that are out, linked by `older`, go upstream; what it
 * refuses comes back as finished. Enters and leaves without the lock. */
static void give_back(ccmr__so *self, ccmr__so_block *blocks,
                      ccmr__so_pass *pass)
{
    ccmr__so_block *gone = NULL;
    ccmr__so_block *block;

    while ((block = blocks) != NULL) {
        ccmr_status status = pass->status;

        blocks = block->older;
        if (status == CCMR_SUCCESS) {
            status = ccmr_resource_deallocate(self->upstream, block->ptr,
                                              block->bytes, block->alignment,
                                              CCMR_STREAM_READY);
        }
        if (status != CCMR_SUCCESS) {
            pass->status = status;
            ccmr__so_lock(self);
            ccmr__so_put_back(self, block, 1);
            ccmr__so_unlock(self);
        } else {
            pass->blocks++;
            pass->bytes += block->bytes;
            block->older = gone;
            gone = block;
        }
    }
    ccmr__so_discard(self, gone);
}

/* ---- a pass ------------------------------------------------------------------------ */

static void release_finished(ccmr__so *self, ccmr__so_bin *bin,
                             ccmr__so_pass *pass)
{
    ccmr__so_outing outing;
    ccmr__so_block *blocks;

    ccmr__so_lock(self);
    blocks = collect_finished(self, bin, pass);
    if (blocks != NULL) {
        ccmr__so_outing_begin(self, &outing);
        outing.lasting = 1;
        ccmr__so_unlock(self);
        give_back(self, blocks, pass);
        ccmr__so_lock(self);
        ccmr__so_outing_end(self, &outing);
    }
    ccmr__so_unlock(self);
}

/* Under the lock: the first `done` of the blocks are finished. Those that
 * should go are returned, linked by `older`; the others come back. */
static ccmr__so_block *sort_out(ccmr__so *self, ccmr__so_block *blocks,
                                size_t done, uint64_t number,
                                const ccmr__so_pass *pass)
{
    ccmr__so_block *chosen = NULL;
    ccmr__so_block *rest = NULL;
    ccmr__so_block *block;
    size_t bytes = pass->bytes;

    while ((block = blocks) != NULL) {
        blocks = block->newer;
        if (done == 0) {
            block->newer = rest;
            rest = block;
            continue;
        }
        done--;
        ccmr__so_note_done(block);
        if (wants_more(pass) && bytes < pass->excess) {
            bytes += block->bytes;
            ccmr__so_drop(self, block->waited);
            block->waited = NULL;
            block->older = chosen;
            chosen = block;
        } else {
            ccmr__so_put_back(self, block, 1);
        }
    }
    /* The newest first, each to the oldest end: they keep their order. */
    while ((block = rest) != NULL) {
        rest = block->newer;
        ccmr__so_put_back(self, block, 0);
        block->pocket->pass = number;
    }
    return chosen;
}

/* What a later pass has asked about need not be asked again, unless it is to
 * be waited for. */
static int was_seen(const ccmr__so_pocket *pocket, uint64_t number,
                    const ccmr__so_pass *pass)
{
    return pass->mode == CCMR__SO_ALL ? pocket->pass == number
                                      : pocket->pass >= number;
}

/* One pocket that the pass has not seen. Returns 0 if the bin has none. */
static int release_pocket(ccmr__so *self, ccmr__so_bin *bin, uint64_t number,
                          ccmr__so_pass *pass)
{
    ccmr__so_outing outing;
    ccmr__so_pocket *pocket;
    ccmr__so_block *blocks;
    size_t done;

    ccmr__so_lock(self);
    pocket = bin->first;
    while (pocket != NULL && was_seen(pocket, number, pass)) {
        pocket = pocket->next;
    }
    if (pocket == NULL) {
        ccmr__so_unlock(self);
        return 0;
    }
    blocks = empty_pocket(self, pocket);
    ccmr__so_outing_begin(self, &outing);
    outing.lasting = pass->mode == CCMR__SO_ALL;
    ccmr__so_unlock(self);
    done = ask_driver(self, blocks, pass);
    ccmr__so_lock(self);
    blocks = sort_out(self, blocks, done, number, pass);
    outing.lasting = 1;
    (void)pthread_cond_broadcast(&self->settled);
    ccmr__so_unlock(self);
    give_back(self, blocks, pass);
    ccmr__so_lock(self);
    ccmr__so_outing_end(self, &outing);
    ccmr__so_unlock(self);
    return 1;
}

static int goes_on(const ccmr__so_pass *pass)
{
    return pass->mode == CCMR__SO_POLL ? pass->status == CCMR_SUCCESS
                                       : wants_more(pass);
}

static void release_bin(ccmr__so *self, ccmr__so_bin *bin, uint64_t number,
                        ccmr__so_pass *pass)
{
    release_finished(self, bin, pass);
    while (pass->pockets != 0 && goes_on(pass) &&
           release_pocket(self, bin, number, pass)) {
        pass->pockets--;
    }
}

/* Whether the bin has anything; a look without the lock would be a race. */
static ccmr__so_bin *next_bin(ccmr__so *self, unsigned *left, unsigned start)
{
    ccmr__so_bin *found = NULL;

    ccmr__so_lock(self);
    while (found == NULL && *left != 0) {
        ccmr__so_bin *bin = &self->bins[(start + --*left) % CCMR__CLASSES];

        if (bin->finished.newest != NULL || bin->first != NULL) {
            found = bin;
        }
    }
    ccmr__so_unlock(self);
    return found;
}

void ccmr__so_release(ccmr__so *self, ccmr__so_pass *pass)
{
    unsigned left = CCMR__CLASSES;
    ccmr__so_bin *bin;
    uint64_t number;
    unsigned start;

    pass->blocks = 0;
    pass->bytes = 0;
    pass->status = CCMR_SUCCESS;
    ccmr__so_lock(self);
    number = ++self->pass;
    bin = self->odd;
    start = self->cursor;
    ccmr__so_unlock(self);
    /* Bins are added at the head and never go. */
    for (; bin != NULL && goes_on(pass); bin = bin->next) {
        release_bin(self, bin, number, pass);
    }
    /* From the largest class down; a bounded pass goes on where the last one
     * stopped. */
    while (goes_on(pass) && pass->pockets != 0 &&
           (bin = next_bin(self, &left, start)) != NULL) {
        release_bin(self, bin, number, pass);
    }
    ccmr__so_lock(self);
    self->cursor = pass->pockets == 0 ? (start + left) % CCMR__CLASSES : 0;
    ccmr__so_unlock(self);
}

ccmr_status ccmr__so_trim(void *object, size_t keep, ccmr_trim_result *result)
{
    ccmr__so *self = object;
    ccmr__so_pass pass = {.mode = CCMR__SO_FINISHED, .pockets = UINT32_MAX};

    ccmr__so_lock(self);
    pass.excess = self->reserved > keep ? self->reserved - keep : 0;
    ccmr__so_unlock(self);
    ccmr__so_release(self, &pass);
    if (pass.status != CCMR_SUCCESS) {
        return pass.status;
    }
    result->released_bytes = pass.bytes;
    ccmr__so_lock(self);
    result->pending_bytes = self->pending_bytes;
    ccmr__so_unlock(self);
    return CCMR_SUCCESS;
}

/* ---- the end -------------------------------------------------------------------------- */

/* Under the lock that nobody else takes any more: any cached block. */
static ccmr__so_block *any_cached(ccmr__so *self)
{
    ccmr__so_bin *bin = self->odd;
    unsigned i;

    for (; bin != NULL; bin = bin->next) {
        if (bin->finished.newest != NULL || bin->first != NULL) {
            break;
        }
    }
    for (i = 0; i < CCMR__CLASSES && bin == NULL; i++) {
        if (self->bins[i].finished.newest != NULL ||
            self->bins[i].first != NULL) {
            bin = &self->bins[i];
        }
    }
    if (bin == NULL) {
        return NULL;
    }
    return bin->first != NULL ? bin->first->blocks.newest
                              : bin->finished.newest;
}

void ccmr__so_end(ccmr__so *self)
{
    ccmr__so_pass pass = {
        .mode = CCMR__SO_ALL, .excess = SIZE_MAX, .pockets = UINT32_MAX};
    ccmr__so_block *block;
    int tries;

    /* A call that went wrong once is no reason to lose memory. */
    for (tries = 0; tries < 3; tries++) {
        ccmr__so_release(self, &pass);
    }
    /* What the driver or the upstream did not let go is lost, like the context
     * that must be broken by now. */
    while ((block = any_cached(self)) != NULL) {
        ccmr__so_remove(self, block);
        if (block->waited != NULL) {
            ccmr__so_drop(self, block->waited);
            block->waited = NULL;
        }
        block->older = NULL;
        ccmr__so_discard(self, block);
    }
    assert(self->blocks == 0);
}
