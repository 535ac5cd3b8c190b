/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_ordered's books: which blocks there are and who may have them next.
 *
 *     live table: address -> block handed out
 *
 *     bin of a class
 *       finished: block block block           anybody's, newest first
 *       pockets:  [stream 7: block block]     that stream's, at once; others'
 *                 [stream 9: block]           once their events are done
 *                                             (oldest first)
 *     waited:  stream id -> what is known of it
 *     pockets: (stream, bin) -> pocket
 *
 * A block is in one place: live, moving (in a deallocate that records its
 * event), in a pocket, finished, or out (taken aside by a call that asks the
 * driver or gives it to the upstream). Every block brings, when it is made,
 * the stream record and the pocket that its free may need, so that a free
 * allocates nothing: records and pockets in use are never more than blocks.
 *
 * Order on one stream: a block's `covers` is the last number that the stream
 * had given when its event was about to be recorded. All blocks up to that
 * number were recorded before, so that they are done if this one is; none of
 * them can be concluded from if their events were recorded side by side.
 *
 * Threads: everything here is under `lock`, but for what is fixed at creation.
 * The lock is never held over a call of the upstream or of the driver.
 */
#ifndef CCMR_RESOURCES_STREAM_ORDERED_STORE_H
#define CCMR_RESOURCES_STREAM_ORDERED_STORE_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include <cucoremr/resource.h>

#include "lib/context.h"
#include "resources/stream_ordered/classes.h"

typedef struct ccmr__so_block ccmr__so_block;
typedef struct ccmr__so_pocket ccmr__so_pocket;
typedef struct ccmr__so_waited ccmr__so_waited;
typedef struct ccmr__so_bin ccmr__so_bin;

/* Blocks in a row: newest first. */
typedef struct ccmr__so_list {
    ccmr__so_block *newest;
    ccmr__so_block *oldest;
} ccmr__so_list;

struct ccmr__so_block {
    void *ptr;
    size_t bytes;     /* as the upstream gave it */
    size_t alignment; /* as the upstream gave it */
    size_t asked;     /* live: what the caller asked for */
    CUevent event;
    ccmr__so_bin *bin;
    ccmr__so_pocket *pocket; /* in a pocket */
    ccmr__so_waited *waited; /* its stream; NULL: nothing to wait for */
    uint64_t number;         /* its place on that stream */
    uint64_t covers;
    ccmr__so_block *newer; /* in a list */
    ccmr__so_block *older;
    ccmr__so_block *chain; /* in the live table */
};

/* The free blocks of one bin that wait for one stream. */
struct ccmr__so_pocket {
    ccmr__so_bin *bin;
    ccmr__so_waited *waited;
    ccmr__so_list blocks;      /* never empty */
    uint64_t pass;             /* the last pass that looked into it */
    ccmr__so_pocket *previous; /* in its bin */
    ccmr__so_pocket *next;
    ccmr__so_pocket *chain; /* in the table, or spare */
};

/* A stream that blocks wait for. Gone when none does. */
struct ccmr__so_waited {
    uint64_t id;
    int retired;             /* no longer found by its id */
    size_t blocks;           /* that name it */
    uint64_t number;         /* the last one given out */
    uint64_t done;           /* all up to this one are done */
    ccmr__class_set classes; /* bins with a pocket of it */
    ccmr__so_waited *chain;  /* in the table, or spare */
};

struct ccmr__so_bin {
    unsigned index;   /* its class */
    size_t alignment; /* more than `base`: one of the odd bins */
    ccmr__so_list finished;
    ccmr__so_pocket *first;
    ccmr__so_pocket *last;
    ccmr__so_bin *next; /* odd bins */
};

/* A call that has blocks taken aside. On its stack. */
typedef struct ccmr__so_outing {
    uint64_t thread; /* its serial */
    int lasting;     /* in an upstream's free, which may block */
    struct ccmr__so_outing *next;
    struct ccmr__so_outing **link;
} ccmr__so_outing;

typedef struct ccmr__so {
    /* Fixed at creation. */
    ccmr_resource *upstream;
    ccmr__device *device;
    int host_access; /* blocks change hands only when they are finished */
    int registered;  /* streams are registered at first sight */
    size_t base;     /* the alignment that every block has */

    pthread_mutex_t lock;
    pthread_cond_t settled; /* an outing has ended */

    /* Under `lock`: */
    size_t keep;    /* most cached bytes, 0: no bound */
    size_t buckets; /* of each of the three tables; a power of two */
    ccmr__so_block **live;
    ccmr__so_waited **streams;
    ccmr__so_pocket **pockets;
    ccmr__so_waited *spare_waited;
    ccmr__so_pocket *spare_pockets;
    ccmr__so_bin bins[CCMR__CLASSES];
    ccmr__so_bin *odd;        /* bins of larger alignments */
    ccmr__class_set finished; /* bins with finished blocks */
    ccmr__class_set pending;  /* bins with pockets */
    ccmr__so_outing *outings;
    size_t blocks; /* all, wherever they are */
    size_t live_blocks;
    size_t moving_blocks;
    size_t cached_blocks; /* in pockets and finished */
    size_t out_blocks;
    size_t cached_bytes;
    size_t pending_bytes; /* of these, in pockets */
    size_t reserved;      /* bytes of all blocks */
    size_t peak_reserved;
    uint64_t changes; /* blocks that came back or went upstream */
    uint64_t pass;    /* number of the last one; see release.c */
    unsigned cursor;  /* where the next bounded pass starts */
} ccmr__so;

/* What a request looks for. */
typedef struct ccmr__so_want {
    size_t bytes;      /* asked for */
    unsigned index;    /* class */
    size_t alignment;  /* at least `base` */
    ccmr__so_bin *bin; /* NULL: an odd one that was never used */
} ccmr__so_want;

static inline void ccmr__so_lock(ccmr__so *self)
{
    (void)pthread_mutex_lock(&self->lock);
}

static inline void ccmr__so_unlock(ccmr__so *self)
{
    (void)pthread_mutex_unlock(&self->lock);
}

/** Size of a class as the upstream is asked. */
size_t ccmr__so_class_bytes(unsigned index);

/** Start with empty books. Returns 0, or -1 without memory. */
int ccmr__so_tables_init(ccmr__so *self);
/** No block is left. */
void ccmr__so_tables_destroy(ccmr__so *self);

/* ---- everything below: under the lock, unless it says otherwise ---------- */

/** The bin of a want, where it exists. */
void ccmr__so_find_bin(ccmr__so *self, ccmr__so_want *want);

/** A free block that may be used on the stream at once: its own newest, else
 * a finished one. Handed out; NULL if there is none. */
ccmr__so_block *ccmr__so_take(ccmr__so *self, const ccmr__so_want *want,
                              uint64_t stream_id);

/** Hand a block out that is in no list. */
void ccmr__so_hand_out(ccmr__so *self, ccmr__so_block *block, size_t asked);

/** The live block of that address, or NULL. */
ccmr__so_block *ccmr__so_find_live(ccmr__so *self, const void *ptr);

/** A live block starts to move: it is about to wait for a stream. */
void ccmr__so_free_begin(ccmr__so *self, ccmr__so_block *block,
                         uint64_t stream_id);
/** Its event is recorded, or not: then it is live as before. */
void ccmr__so_free_end(ccmr__so *self, ccmr__so_block *block, int recorded);

/** A live block that waits for nothing comes back. */
void ccmr__so_free_ready(ccmr__so *self, ccmr__so_block *block);

/** Take a block that is in a pocket or finished out of it. */
void ccmr__so_remove(ccmr__so *self, ccmr__so_block *block);

/** Bring back a block that was taken out; `finished`: nobody waits for it. */
void ccmr__so_put_back(ccmr__so *self, ccmr__so_block *block, int finished);

/** Note that a block's event is done: so are those that it covers. */
void ccmr__so_note_done(ccmr__so_block *block);

/** Is the block known to be done without a question to the driver? */
static inline int ccmr__so_is_done(const ccmr__so_block *block)
{
    return block->waited == NULL || block->number <= block->waited->done;
}

/** Move a pocket behind the others of its bin. */
void ccmr__so_rotate(ccmr__so_pocket *pocket);

/** The stream is retired: none that comes has its id. */
void ccmr__so_retire(ccmr__so *self, uint64_t stream_id);

/** Do the books agree? 1 or 0. */
int ccmr__so_audit(ccmr__so *self);

void ccmr__so_outing_begin(ccmr__so *self, ccmr__so_outing *outing);
void ccmr__so_outing_end(ccmr__so *self, ccmr__so_outing *outing);

/** Wait until others have no blocks taken aside; short outings only, or all.
 * Returns 1 if it waited. A thread that is on an outing itself (an upstream
 * that calls back) waits for nobody. */
int ccmr__so_settle(ccmr__so *self, int all);

/** A made block has got memory and is handed out. */
void ccmr__so_add(ccmr__so *self, ccmr__so_block *block,
                  const ccmr__so_want *want, void *ptr);

/* ---- tables.c ------------------------------------------------------------ */

/** Not under the lock: a new block without memory, with all that it will
 * need, and room for it in the tables. Makes the bin too if need be. */
ccmr_status ccmr__so_make(ccmr__so *self, ccmr__so_want *want,
                          ccmr__so_block **block);

/** Not under the lock: undo that, before the block was added. */
void ccmr__so_unmake(ccmr__so *self, ccmr__so_block *block);

/** Not under the lock: the memory of blocks that are out went upstream: they
 * leave the books. They are linked by `older`. */
void ccmr__so_discard(ccmr__so *self, ccmr__so_block *blocks);

/** The record of a stream, found or made, which one more block names. */
ccmr__so_waited *ccmr__so_hold(ccmr__so *self, uint64_t stream_id);
/** One block less names it; the last one ends it. */
void ccmr__so_drop(ccmr__so *self, ccmr__so_waited *waited);
/** The record of a stream, NULL if no block waits for it. */
ccmr__so_waited *ccmr__so_find_waited(ccmr__so *self, uint64_t stream_id);

/** The pocket of a stream in a bin, NULL if there is none. */
ccmr__so_pocket *ccmr__so_find_pocket(ccmr__so *self,
                                      const ccmr__so_waited *waited,
                                      const ccmr__so_bin *bin);
/** A new one, empty for the moment. */
ccmr__so_pocket *ccmr__so_open_pocket(ccmr__so *self, ccmr__so_waited *waited,
                                      ccmr__so_bin *bin);
/** It has become empty. */
void ccmr__so_close_pocket(ccmr__so *self, ccmr__so_pocket *pocket);

void ccmr__so_live_add(ccmr__so *self, ccmr__so_block *block);
void ccmr__so_live_remove(ccmr__so *self, ccmr__so_block *block);

#endif /* CCMR_RESOURCES_STREAM_ORDERED_STORE_H */
