/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_ordered: free blocks that wait for another stream.
 *
 * Candidates are the oldest ones, of a few streams; they are taken aside while
 * the driver is asked about them, in relaxed capture mode.
 */
#include "resources/stream_ordered/stream_ordered.h"

#include "lib/process.h"

#define CANDIDATES 4u

typedef struct picks {
    ccmr__so_block *blocks[CANDIDATES];
    unsigned count;
    unsigned most; /* to be picked */
    unsigned done; /* index of one that is known to be done, if any */
} picks;

/* Whether the stream itself could have had the pocket's blocks. */
static int is_own(const ccmr__so *self, const ccmr__so_pocket *pocket,
                  uint64_t stream_id)
{
    return !self->host_access && pocket->waited->id == stream_id &&
           !pocket->waited->retired;
}

/* The oldest block of each of the next pockets, which go to the end of the
 * row, so that others are looked at the next time. Under the lock. */
static void pick_in_bin(ccmr__so *self, ccmr__so_bin *bin, uint64_t stream_id,
                        picks *picked)
{
    ccmr__so_pocket *stop = bin->last;
    ccmr__so_pocket *pocket = bin->first;

    while (pocket != NULL && picked->count < picked->most) {
        ccmr__so_pocket *next = pocket != stop ? pocket->next : NULL;

        if (!is_own(self, pocket, stream_id)) {
            ccmr__so_block *block = pocket->blocks.oldest;

            if (ccmr__so_is_done(block)) {
                picked->done = picked->count;
                picked->most = picked->count + 1;
            }
            picked->blocks[picked->count++] = block;
            ccmr__so_rotate(pocket);
            ccmr__so_remove(self, block);
        }
        pocket = next;
    }
}

/* Of the bins in reach, the best fitting first. Under the lock. */
static void pick(ccmr__so *self, const ccmr__so_want *want, uint64_t stream_id,
                 picks *picked)
{
    unsigned last = want->index + CCMR__CLASS_REACH;
    unsigned index = want->index;

    picked->count = 0;
    picked->done = CANDIDATES;
    if (want->bin == NULL) {
        return;
    }
    if (want->alignment != self->base) {
        pick_in_bin(self, want->bin, stream_id, picked);
        return;
    }
    for (;;) {
        index = ccmr__class_next(&self->pending, index, last);
        if (index == CCMR__CLASSES || picked->count == picked->most) {
            return;
        }
        pick_in_bin(self, &self->bins[index], stream_id, picked);
        if (index++ == last) {
            return;
        }
    }
}

/* Index of the first that is done, `count` if none is. */
static unsigned find_done(ccmr__so *self, picks *picked)
{
    ccmr__scope scope;
    unsigned i;

    if (picked->done < picked->count) {
        return picked->done;
    }
    if (ccmr__scope_enter(&scope, self->device, CCMR__SCOPE_RELAXED) !=
        CCMR_SUCCESS) {
        return picked->count;
    }
    for (i = 0; i < picked->count; i++) {
        CUresult res = CCMR__CU(cuEventQuery)(picked->blocks[i]->event);

        if (res == CUDA_SUCCESS) {
            break;
        }
        if (res == CUDA_ERROR_DEINITIALIZED) {
            ccmr__process_set_exiting();
        }
    }
    ccmr__scope_leave(&scope);
    return i;
}

/* Under the lock: hand the chosen one out, bring the others back. */
static ccmr__so_block *settle_picks(ccmr__so *self, picks *picked,
                                    unsigned chosen, size_t bytes)
{
    ccmr__so_block *block = NULL;
    unsigned i;

    for (i = picked->count; i-- > 0;) {
        if (i != chosen) {
            ccmr__so_put_back(self, picked->blocks[i], 0);
        }
    }
    if (chosen < picked->count) {
        block = picked->blocks[chosen];
        ccmr__so_hand_out(self, block, bytes);
    }
    return block;
}

ccmr__so_block *ccmr__so_take_other(ccmr__so *self, const ccmr__so_want *want,
                                    uint64_t stream_id)
{
    ccmr__so_block *block = NULL;
    picks picked = {.most = CANDIDATES};
    ccmr__so_outing outing;
    unsigned chosen;

    ccmr__so_lock(self);
    pick(self, want, stream_id, &picked);
    if (picked.count != 0) {
        ccmr__so_outing_begin(self, &outing);
        ccmr__so_unlock(self);
        chosen = find_done(self, &picked);
        ccmr__so_lock(self);
        if (chosen < picked.count) {
            ccmr__so_note_done(picked.blocks[chosen]);
        }
        block = settle_picks(self, &picked, chosen, want->bytes);
        ccmr__so_outing_end(self, &outing);
    }
    ccmr__so_unlock(self);
    return block;
}

/* Let the stream wait, or wait here. */
static int wait_for(ccmr__so *self, const ccmr__so_block *block,
                    const ccmr__stream_use *use)
{
    ccmr__scope scope;
    CUresult res;

    if (ccmr__scope_enter(&scope, self->device, CCMR__SCOPE_RELAXED) !=
        CCMR_SUCCESS) {
        return 0;
    }
    if (self->host_access) {
        res = CCMR__CU(cuEventSynchronize)(block->event);
    } else {
        res = CCMR__CU(cuStreamWaitEvent)(use->handle, block->event, 0);
    }
    ccmr__scope_leave(&scope);
    return res == CUDA_SUCCESS;
}

ccmr__so_block *ccmr__so_take_waiting(ccmr__so *self,
                                      const ccmr__so_want *want,
                                      const ccmr__stream_use *use)
{
    ccmr__so_block *block = NULL;
    picks picked = {.most = 1};
    ccmr__so_outing outing;
    unsigned chosen;

    ccmr__so_lock(self);
    pick(self, want, use->id, &picked);
    if (picked.count != 0) {
        ccmr__so_outing_begin(self, &outing);
        outing.lasting = self->host_access;
        ccmr__so_unlock(self);
        chosen = wait_for(self, picked.blocks[0], use) ? 0 : picked.count;
        ccmr__so_lock(self);
        block = settle_picks(self, &picked, chosen, want->bytes);
        ccmr__so_outing_end(self, &outing);
    }
    ccmr__so_unlock(self);
    return block;
}
