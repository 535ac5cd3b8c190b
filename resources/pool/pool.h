/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool, between its files.
 *
 *   allocate ->  cache (thread, stream)      no lock, no driver call
 *                  |  miss
 *                  v
 *                lane (stream)               its own lock
 *                  |  nothing fits
 *                  v
 *                common lane, finished memory of others, waits, growth, ...
 *                                            reclaim.c: the order of answers
 *
 *   extent.c  free memory, sets              lane.c     streams, events, waits
 *   order.c   what a stream comes after
 *   cache.c   thread caches                  serve.c    allocate, deallocate
 *   reclaim.c the slow path                  segment.c  what the upstream gave
 *   trim.c    giving back                    figures.c  stats, audit
 *   dump.c    what is where
 *   kind.c    options and operations     range*.c   memory in one range
 *
 * Locks, in the order in which they may be nested:
 *   thieves -> lock -> a lane's lock -> the range's    never two lanes' locks
 *   noting -> nothing
 *   pinning -> lock or the range's
 *   capturing -> lock or a lane's
 * None is held over a call of the upstream or of the driver.
 */
#ifndef CCMR_RESOURCES_POOL_POOL_H
#define CCMR_RESOURCES_POOL_POOL_H

#include <pthread.h>
#include <stdatomic.h>

#include <cucoremr/resource.h>

#include "lib/context.h"
#include "resources/pool/cache.h"
#include "resources/pool/capture.h"
#include "resources/pool/extent.h"
#include "resources/pool/lane.h"
#include "resources/pool/pin.h"

#define CCMR__POOL_LANE_BUCKETS 256u
#define CCMR__POOL_NOTE_BITS 6

typedef struct ccmr__pool_note ccmr__pool_note; /* see notes.c */

/* Is a segment a graph's? Then nobody's cache takes blocks of it. */
#define CCMR__POOL_IS_CAPTURED(segment)                                       \
    (__builtin_expect(atomic_load_explicit(&(segment)->capture,               \
                                           memory_order_acquire) != NULL,     \
                      0))

/* An allocation of the upstream. Records are kept for the next segment, so
 * that whoever has a stale one reads memory that is there. */
struct ccmr__pool_segment {
    uintptr_t base;
    size_t bytes;
    size_t alignment;    /* as the upstream gave it */
    _Atomic size_t pins; /* it does not go: written under pool->lock */
    /* The graph whose it is. Written under `capturing`, or before any of it was
     * handed out; seen by whoever frees a block of it. */
    struct ccmr__pool_capture *_Atomic capture;
    ccmr__pool_segment *next; /* unused ones */
};

/* Where segments are: sorted, read without a lock; see segment.c. */
typedef struct ccmr__pool_place {
    _Atomic uintptr_t base;
    _Atomic size_t bytes;
    ccmr__pool_segment *_Atomic segment;
} ccmr__pool_place;

typedef struct ccmr__pool_map {
    struct ccmr__pool_map *older; /* smaller ones that were outgrown */
    size_t room;
    ccmr__pool_place places[];
} ccmr__pool_map;

typedef struct ccmr__pool_options {
    size_t initial; /* bytes that are taken at creation */
    size_t hard;    /* most bytes of segments at first; 0: no bound */
    unsigned soft;  /* per cent of peak live that is grown to without a wait;
                     * 0: by itself */
    int follow;     /* may wait on the device for other streams */
    int access;     /* ccmr_pool_access */
    size_t handle;  /* most bytes of a handle; 0: by itself */
    int move;       /* free handles move to where they are needed */
    int registered; /* streams are registered at first sight */
    int reserve;    /* captures are served */
    int exported;   /* handles with blocks of others in them, too */
} ccmr__pool_options;

typedef struct ccmr__pool_range ccmr__pool_range;

struct ccmr__pool {
    /* Fixed at creation. */
    uint64_t serial; /* no other pool has it */
    ccmr_resource *upstream;
    ccmr__device *device;
    int host_access;    /* blocks change hands only when finished */
    int stream_ordered; /* the upstream's memory is ready in stream order */
    size_t upstream_alignment;
    ccmr__pool_options options;
    ccmr__pool_range *range; /* NULL: it works by segments */

    /* More than one stream was seen: events are needed. Never cleared. */
    atomic_int many;
    _Atomic size_t uncovered_most; /* bytes of a lane before it records */
    /* Somebody looked for memory in vain that no event covers: so many frees
     * more on streams that are not registered leave none uncovered. */
    atomic_uint scarce;

    pthread_mutex_t thieves; /* whoever looks into others' caches */
    pthread_mutex_t slow;    /* whoever gathers; before `thieves` */
    pthread_mutex_t lock;

    /* Under `lock`: */
    ccmr__pool_lane *ids[CCMR__POOL_LANE_BUCKETS];
    ccmr__pool_lane *idle;          /* whose stream has gone, in that order */
    ccmr__pool_lane *idle_last;     /* where there is one */
    ccmr__pool_lane *_Atomic lanes; /* all; read without the lock */
    ccmr__pool_lane *hand;          /* whether it is unused is seen next */
    size_t streams;                 /* lanes that have one */
    size_t seen;                    /* streams, ever */
    ccmr__pool_cache *spare_caches;
    ccmr__pool_segment *spare_segments;

    ccmr__pool_map *_Atomic map; /* written under `lock` */
    _Atomic size_t segment_count;
    size_t places_promised;  /* to segments that may have to come back */
    atomic_uint map_version; /* odd while it is written */

    ccmr__pool_lane *common; /* set at creation */

    /* Bytes of segments, and of growth that is under way. */
    _Atomic size_t reserved;
    _Atomic size_t hard;    /* most of it; 0: no bound */
    _Atomic size_t going;   /* of it, about to go upstream */
    _Atomic size_t brought; /* of it, in sets or blocks: see the audit */
    _Atomic size_t peak_reserved;
    _Atomic size_t peak_used; /* greatest reserved - free, when it grew */
    _Atomic size_t surplus;   /* of records: see extent.h */
    atomic_uint growing;      /* threads that have growth in hand */
    _Atomic size_t carried;   /* records on their way from set to set */
    _Atomic uint64_t changes; /* times that memory came free */

    _Atomic size_t noted; /* notes that there are */
    pthread_mutex_t noting;
    ccmr__pool_note *notes[(size_t)1 << CCMR__POOL_NOTE_BITS]; /* `noting` */

    pthread_mutex_t pinning;
    ccmr__pool_pins pins; /* `pinning` */

    /* With capture=reserve; else nothing. */
    pthread_mutex_t capturing;
    ccmr__pool_capture *_Atomic captures; /* written under `capturing` */
    ccmr__pool_capture *spare_capture;    /* `capturing` */
    ccmr_stream stream;         /* the pool's own, for memory of reserves */
    ccmr__pool_lane *unseen;    /* numbers that only the device's end ends */
    ccmr__pool *next_lingering; /* linger.c's own lock */
    /* Of `brought`, in segments beside the range, if there is one. */
    _Atomic size_t apart;

    ccmr__pool *next_pool; /* all pools: cache.c's own lock */
};

/* With a soft budget up to here, little is kept beyond what is in use: caches
 * keep few large blocks, and handles are small. */
#define CCMR__POOL_TIGHT 105u

static inline int ccmr__pool_is_tight(const ccmr__pool *pool)
{
    return pool->options.soft != 0 && pool->options.soft <= CCMR__POOL_TIGHT;
}

/* ---- cache.c: the list of all pools ------------------------------------------ */

void ccmr__pool_list_add(ccmr__pool *pool);
/** After this no thread's end touches the pool. */
void ccmr__pool_list_remove(ccmr__pool *pool);
/** Free all caches. Nobody uses the pool. */
void ccmr__pool_caches_end(ccmr__pool *pool);

/* ---- notes.c -------------------------------------------------------------------- */

ccmr_status ccmr__pool_note_use(void *object, void *ptr, ccmr_stream stream);
ccmr_status ccmr__pool_hold_until_free(void *object, void *ptr,
                                       ccmr_stream stream);
/** A block with notes is about to be freed on a stream: it waits for them. On
 * an error the block keeps them. Not in a scope. */
ccmr_status ccmr__pool_follow_notes(ccmr__pool *pool, void *ptr,
                                    ccmr__pool_lane *own, CUstream stream);
/** A stream is about to go: its lane's last event, which blocks that are held
 * for the stream come after, too. In a scope. */
ccmr_status ccmr__pool_record_held(ccmr__pool *pool, ccmr__pool_lane *lane,
                                   CUstream stream);
/** A block with notes is freed as ready: they become waits of its memory. On an
 * error the block keeps them. Not in a scope. */
ccmr_status ccmr__pool_notes_to_waits(ccmr__pool *pool, void *ptr,
                                      ccmr__pool_waits *waits);
void ccmr__pool_notes_end(ccmr__pool *pool);

static inline int ccmr__pool_has_notes(const ccmr__pool *pool)
{
    return __builtin_expect(
               atomic_load_explicit(&pool->noted, memory_order_relaxed) != 0,
               0) != 0;
}

/* ---- segment.c ------------------------------------------------------------------ */

/** The segment that has an address; NULL if none does. No lock. */
ccmr__pool_segment *ccmr__pool_segment_of(ccmr__pool *pool, uintptr_t address);

/** Ask the upstream for a segment. Its memory is in no set yet. A stream whose
 * order it comes in is `stream`. No lock held. */
ccmr_status ccmr__pool_segment_get(ccmr__pool *pool, size_t bytes,
                                   size_t alignment, ccmr_stream stream,
                                   ccmr__pool_segment **segment);
/** Give it back: all of it is free, finished and in no set. On an error it is
 * still the pool's. CCMR_ERROR_BUSY: it is pinned. */
ccmr_status ccmr__pool_segment_give(ccmr__pool *pool,
                                    ccmr__pool_segment *segment);
/** The same in two steps: it leaves the map, so that nobody finds it to pin it
 * and the upstream may hand its address out again; 0: it is pinned. Then it
 * goes, or is back in the map. */
int ccmr__pool_segment_leave(ccmr__pool *pool, ccmr__pool_segment *segment);
ccmr_status ccmr__pool_segment_return(ccmr__pool *pool,
                                      ccmr__pool_segment *segment);
/** Sum of the pins of all segments. */
size_t ccmr__pool_pins_of_segments(ccmr__pool *pool);
/** The addresses of a range, for as long as the pool lives. NULL without
 * memory. */
ccmr__pool_segment *ccmr__pool_segment_add(ccmr__pool *pool, uintptr_t base,
                                           size_t bytes, size_t alignment);
void ccmr__pool_segment_drop(ccmr__pool *pool, ccmr__pool_segment *segment);
/** Segments of a graph are like any other. */
void ccmr__pool_segments_leave(ccmr__pool *pool,
                               const ccmr__pool_capture *capture);
/** Records of segments, maps. */
void ccmr__pool_segments_end(ccmr__pool *pool);

/* ---- serve.c -------------------------------------------------------------------- */

ccmr_status ccmr__pool_allocate(void *object, size_t bytes, size_t alignment,
                                ccmr_stream stream, void **ptr);
ccmr_status ccmr__pool_deallocate(void *object, void *ptr, size_t bytes,
                                  size_t alignment, ccmr_stream stream);
/** The cache of a registered stream that can be used has no such block. */
ccmr_status ccmr__pool_allocate_anew(ccmr__pool_cache *cache, size_t bytes,
                                     ccmr_stream stream, void **ptr);
/** A block goes into that cache, which may have no room for it. */
void ccmr__pool_free_anew(ccmr__pool_cache *cache, void *ptr, size_t bytes,
                          ccmr_stream stream);
/** What a stream is, in the device's context where its token needs that. */
ccmr_status ccmr__pool_resolve(ccmr__pool *pool, ccmr_stream stream,
                               ccmr__stream_use *use,
                               ccmr__stream_record **record);

/** The same in a call that the stream is used by: with `streams=registered` it
 * is registered from then on. */
ccmr_status ccmr__pool_meet(ccmr__pool *pool, ccmr_stream stream,
                            ccmr__stream_use *use,
                            ccmr__stream_record **record);

/* ---- quick.c -------------------------------------------------------------------- */

/** Leave a quick way to the cache that the thread used last. */
void ccmr__pool_arm(void *object, ccmr_resource *resource, ccmr_stream stream);

/* ---- reclaim.c ------------------------------------------------------------------ */

/* An allocation that its cache could not serve. */
typedef struct ccmr__pool_request {
    ccmr__pool *pool;
    ccmr__pool_cache *cache; /* NULL: none; not entered */
    ccmr__pool_lane *lane;
    ccmr_stream stream;
    CUstream handle;
    size_t bytes;     /* rounded */
    size_t alignment; /* at least a granule */
    size_t run;       /* blocks wanted side by side, 1 and more */
    /* What the stream was after a while ago; NULL: not asked. */
    const ccmr__pool_orders *after;
    /* [out] */
    ccmr__pool_piece piece;
    size_t blocks; /* in it */
    size_t extra;  /* bytes of it that are beyond them */
} ccmr__pool_request;

/* Which extents may be taken: those that `own`'s stream need not wait for, or
 * with `follow` those that it can wait for on the device. */
typedef struct ccmr__pool_wanted {
    const ccmr__pool_lane *own; /* NULL: its work has to be finished, too */
    const ccmr__pool_orders *after; /* `own`'s stream is; NULL: nothing */
    int follow;
} ccmr__pool_wanted;

int ccmr__pool_accept_wanted(ccmr__pool_wanted *want,
                             const ccmr__pool_extent *extent);
/** Count bytes as reserved, if the hard budget has room for them. */
ccmr_status ccmr__pool_count_bytes(ccmr__pool *pool, size_t bytes);
/** The bytes came: what is reserved may be more than ever. */
void ccmr__pool_note_peak(ccmr__pool *pool);

/** Find memory, by all means in their order. */
ccmr_status ccmr__pool_serve(ccmr__pool_request *request);
/** Reserve the initial bytes, for whoever comes. */
ccmr_status ccmr__pool_begin(ccmr__pool *pool, size_t bytes);

/* ---- range*.c: see range.h ----------------------------------------------------- */

/** A range of the upstream, if it offers any. Without, the pool works by
 * segments. */
void ccmr__pool_range_make(ccmr__pool *pool, size_t unit);
/** Nothing is in it. */
void ccmr__pool_range_end(ccmr__pool *pool);
/** Has memory ever been at an address of the range? No lock. */
int ccmr__pool_range_has(const ccmr__pool_range *range, uintptr_t address);
/**
 * New memory for a request, which is cut out of it; what was in the way of an
 * error stays, free. At most `most` bytes are new, else CCMR_ERROR_BUSY; where
 * nothing is in the way rather `step`, if that is no more than `most`. With
 * `move` free handles from elsewhere rather than new ones. In a scope.
 */
ccmr_status ccmr__pool_range_grow(ccmr__pool_request *request, size_t most,
                                  size_t step, int move);
/** The initial bytes. */
ccmr_status ccmr__pool_range_begin(ccmr__pool *pool, size_t bytes);
/** Give finished, wholly free handles of the common lane back while more than
 * `keep` bytes are reserved. Returns the bytes. */
size_t ccmr__pool_range_release(ccmr__pool *pool, size_t keep,
                                ccmr_status *refused);

/* ---- export.c -------------------------------------------------------------------- */

ccmr_status ccmr__pool_export_handle(void *object, void *ptr, unsigned kind,
                                     void *handle, size_t handle_size);
ccmr_status ccmr__pool_export_block(void *object, void *ptr, size_t bytes,
                                    unsigned kind, void *handle,
                                    size_t handle_size,
                                    ccmr_export_place *place);

/* ---- trim.c --------------------------------------------------------------------- */

/* Which free memory. */
typedef enum ccmr__pool_which {
    CCMR__POOL_FINISHED,   /* that waits for nothing */
    CCMR__POOL_FOLLOWABLE, /* that another stream can wait for, too */
    CCMR__POOL_ALL
} ccmr__pool_which;

/** Memory of all lanes goes to one, and merges there. In a scope. */
void ccmr__pool_gather(ccmr__pool *pool, ccmr__pool_lane *to,
                       ccmr__pool_which which);

/** A stream waits for all that memory of its lane waits for, as far as it can:
 * then that waits for the stream alone, and merges. In a scope. */
void ccmr__pool_unite(ccmr__pool_lane *lane, CUstream stream);

/** Give wholly free, finished segments back while more than `keep` bytes are
 * reserved. Returns the bytes. */
size_t ccmr__pool_release(ccmr__pool *pool, size_t keep, ccmr_status *refused);

/** The same for segments beside a range: what graphs had. */
size_t ccmr__pool_release_apart(ccmr__pool *pool);

/** Claim bytes that are to go: so that two calls do not go below `keep`. They
 * stay counted in pool->going until they have gone or stay. */
int ccmr__pool_claim(ccmr__pool *pool, size_t keep, size_t bytes);

/** Wait here until everything that was freed is finished, where it can be
 * waited for. `device`: by a wait for the whole device where nothing else
 * will do. */
ccmr_status ccmr__pool_finish_all(ccmr__pool *pool, int device);

/** Bytes that are free and not finished, once asked. */
size_t ccmr__pool_pending(ccmr__pool *pool);

ccmr_status ccmr__pool_trim(void *object, size_t keep,
                            ccmr_trim_result *result);
ccmr_status ccmr__pool_retire(void *object, ccmr_stream stream);
/** Everything goes back: nothing is live. */
void ccmr__pool_end(ccmr__pool *pool);

/* ---- figures.c ------------------------------------------------------------------ */

size_t ccmr__pool_free_bytes(ccmr__pool *pool);
ccmr_status ccmr__pool_stats(void *object, ccmr_stats *stats);
ccmr_status ccmr__pool_audit(void *object);
/** Stop everything, to look at it: returns the first lane, for the end. */
ccmr__pool_lane *ccmr__pool_lock_all(ccmr__pool *pool);
void ccmr__pool_unlock_all(ccmr__pool *pool, ccmr__pool_lane *first);
/** dump.c */
ccmr_status ccmr__pool_dump(void *object, ccmr_dump_write write,
                            void *context);
ccmr_status ccmr__pool_would_fit(void *object, size_t bytes,
                                 ccmr_stream stream, int *fits);
/** Fill the numbers of an out-of-memory's detail. */
void ccmr__pool_explain(ccmr__pool *pool, size_t bytes);

#endif /* CCMR_RESOURCES_POOL_POOL_H */
