/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory pools: stream-ordered allocation.
 *
 *   window of a pool (a region; more are added at need)
 *   |<- granule 32 MiB ->|<------ granule ------>|<------- granule ----->|
 *   +------+------+------+--------------+--------+-----------------------+--
 *   | used | free | used | pending on s | free   | hole: no memory       | ...
 *   +------+------+------+--------------+--------+-----------------------+--
 *
 * Free memory may be taken by any stream. Pending memory was freed on a
 * stream, and the driver has not seen yet that the stream ran that far: the
 * same stream may take it at once, as may one that is ordered behind that
 * place; another one only if it happens to be finished, or by waiting. The
 * driver sees it when the host synchronises, when the stream is destroyed, or
 * when an allocation looks for memory; until then no trim gives it back, and
 * destroying the pool is a hazard.
 * Physical memory is taken and given back in granules.
 */
#ifndef SIM_POOL_H
#define SIM_POOL_H

#include "sim/area.h"
#include "sim/extent.h"
#include "sim/handle.h"
#include "sim/store.h"
#include "sim/stream.h"

/** What a CUmemoryPool points at. */
struct CUmemPoolHandle_st {
    struct sim_slot slot;
};

/** What a stream freed to a pool since it was last synchronised; memory that
 *  it has not come to yet is in the store. */
struct sim_pending {
    struct sim_pending *next_of_pool;
    struct sim_pending *next_of_stream;
    struct sim_pool *pool;
    struct sim_stream *stream; /**< held */
    struct sim_store store;
    struct sim_extent *oldest, *newest; /**< by position */
};

struct sim_pool {
    struct sim_pool *prev, *next; /**< all pools */
    CUmemoryPool handle;          /**< NULL once destroyed */
    CUmemAllocationType type;
    CUmemLocation location;
    unsigned handle_types;
    int device; /**< -1: host memory */
    bool is_default;
    uint64_t max_size; /**< 0: the device's capacity */
    size_t granule;

    uint64_t threshold;
    bool follow_events, opportunistic, internal_dependencies;
    uint64_t reserved, reserved_high, used, used_high;
    uint8_t access[SIM_MAX_DEVICES]; /**< CUmemAccess_flags */

    uint64_t blocks; /**< live */
    uint64_t pending_extents;

    /* Sharing, pool_sharing.c. */
    bool imported;         /**< nothing can be allocated from it */
    bool foreign;          /**< imported from another process */
    struct sim_area token; /**< what a descriptor of it names */
    int descriptor;        /**< its own, from the first export on; or -1 */
    struct sim_store ready;
    struct sim_extent *holes; /**< through link_next */
    struct sim_pending *pendings;
};

/** A block of the pool that work on the stream may use from now on. */
CUresult sim_pool_allocate(struct sim_pool *pool, size_t bytes,
                           struct sim_stream *stream, CUdeviceptr *address);
/** Take a block back behind the work of the stream. */
CUresult sim_pool_free(struct sim_extent *block, struct sim_stream *stream);

/** Take a block back at once: all work is known to be done. */
void sim_pool_free_now(struct sim_extent *block);
/** A stream ran on: destroyed pools may be through. */
void sim_pools_reached(struct sim_stream *stream);
/** A stream that is idle was destroyed: all that was freed there is free. */
void sim_pools_ended(struct sim_stream *stream);
/** Make free what happens to be finished. */
void sim_pool_look(struct sim_pool *pool);
/** The host synchronised with a stream, or with all streams of a context:
 *  the pools to which those freed give back what their threshold says. */
void sim_pools_synchronized(struct sim_stream *stream);
void sim_pools_synchronized_context(const struct sim_context *context);
/** Give free memory back until `keep` bytes are left. */
void sim_pool_trim(struct sim_pool *pool, uint64_t keep);

/** The pool behind a handle, or NULL. */
struct sim_pool *sim_pool_find(CUmemoryPool handle);
CUmemoryPool sim_pool_handle(const struct sim_pool *pool);
/** The pool of a device that allocations use by default. */
struct sim_pool *sim_pool_current(int device);
uint64_t sim_pools_live(void);
/** Live blocks of all pools, and their bytes. */
void sim_pools_count(uint64_t *blocks, uint64_t *bytes);
void sim_pools_reset(void);

/** Delete a destroyed pool once nothing of it is out or pending. */
void sim_pool_settle(struct sim_pool *pool);
void sim_pool_synchronize(struct sim_pool *pool,
                          const struct sim_context *context);
void sim_pool_drop_pendings(struct sim_pool *pool);

/* The object, pool_object.c. */

/** A pool without a handle; the properties have been checked. */
struct sim_pool *sim_pool_new(const CUmemPoolProps *properties);
bool sim_pool_take_handle(struct sim_pool *pool);
void sim_pool_delete(struct sim_pool *pool);

/** A pool goes, and is no place's current one; all of them go. */
void sim_pool_places_leave(const struct sim_pool *pool);
void sim_pool_places_reset(void);
/** The pool imported by that token, or NULL. */
struct sim_pool *sim_pool_imported(const struct sim_area *token);

/* Sharing, pool_sharing.c. */

bool sim_pool_is_shareable(const struct sim_pool *pool);
/** An area for a window of a shareable pool; NULL without memory. */
struct sim_area *sim_pool_window_area(const struct sim_pool *pool,
                                      size_t size);
void sim_pool_unshare(struct sim_pool *pool);

/* The parts of a pool, pool_memory.c. */

/** Make at least `size` bytes free in one piece, from fresh memory. */
CUresult sim_pool_grow(struct sim_pool *pool, size_t size);
/** Put an extent that became free into the store, joined with neighbours. */
void sim_pool_put_ready(struct sim_pool *pool, struct sim_extent *extent);
/** Delete the windows. */
void sim_pool_release_windows(struct sim_pool *pool);

#endif
