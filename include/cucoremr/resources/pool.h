/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool: a fast, tight pool of stream-ordered memory over any resource.
 */
#ifndef CUCOREMR_RESOURCES_POOL_H
#define CUCOREMR_RESOURCES_POOL_H

#include <cucoremr/resource.h>

/** How a pool reuses memory of other streams. @since 0.1 */
typedef enum ccmr_pool_reuse {
    /** Finished memory first, else behind a wait on the device. */
    CCMR_POOL_REUSE_FOLLOW = 0,
    /** Only memory that is known finished. */
    CCMR_POOL_REUSE_FINISHED = 1
} ccmr_pool_reuse;

/** What a pool does about memory that the host can touch. @since 0.1 */
typedef enum ccmr_pool_access {
    CCMR_POOL_ACCESS_UPSTREAM = 0, /**< as the upstream says */
    CCMR_POOL_ACCESS_HOST = 1,     /**< only finished blocks change hands */
    CCMR_POOL_ACCESS_STREAM = 2    /**< in stream order: synchronise first */
} ccmr_pool_access;

/** Whether a pool over address ranges moves memory. @since 0.1 */
typedef enum ccmr_pool_move {
    CCMR_POOL_MOVE_YES = 0, /**< free memory, to other addresses */
    CCMR_POOL_MOVE_NO = 1   /**< it stays where it is until it goes back */
} ccmr_pool_move;

/** Options; 0 is the default. @since 0.1 */
typedef struct ccmr_pool_options {
    size_t size; /**< sizeof(ccmr_pool_options) */
    /** Bytes reserved at creation, in whole pieces of 256 bytes (over
     * `virtual`: of a page, 2 MiB): rounded up, as far as `hard` allows. */
    size_t initial;
    /** Most bytes ever reserved; 0: no bound. At least one such piece. */
    size_t hard;
    /** Per cent of the greatest number of bytes in use at a time that the
     * pool grows to before it takes trouble: gathers free memory, empties
     * other threads' caches. 0: 112. Up to 105 caches keep few large blocks,
     * too, and memory comes in small pieces, which costs time. */
    unsigned soft;
    ccmr_pool_reuse reuse;
    ccmr_pool_access access;
    /** Over an upstream that offers address ranges (`virtual`), refused over
     * others: most bytes of
     * a piece of memory that comes and goes alone, rounded down to a power of
     * two pages, at least one. 0: up to 64 MiB, no more than a 4096th of
     * `hard` or, without, a 32nd of what is reserved. */
    size_t handle;
    ccmr_pool_move move;
    /** 1: every stream that is handed to the pool is retired before it is
     * destroyed, and captures on it are announced, as ccmr_stream_register()
     * asks for. The first call with a stream registers it; from then on it is
     * known by its handle, and no call asks the driver about it. Where the
     * promise is broken: a new stream with the handle of one that went without
     * a word is taken for it, gets memory that the old one's work still uses,
     * and a later call may use a handle that is gone, which can end the
     * process; an unannounced capture may be given memory, and events are
     * recorded in it, or ruin it. */
    int streams_registered;
    /** 1, over `virtual` that exports, directly: blocks are exported by
     * ccmr_resource_export_block(), as parts of handles which have other
     * blocks in them, too. */
    int export_handles;
    /** 1: calls on streams that capture are served, from memory that is the
     * graph's until it has gone: see ccmr_pool_create(). */
    int capture_reserve;
} ccmr_pool_options;

CCMR_BEGIN_DECLS

/**
 * Make a pool over an upstream.
 *
 * Each thread has a cache of free blocks for each of its streams; allocating
 * from it and freeing to it takes no lock and no driver call on a registered
 * stream, and on others the two that tell what the stream is. Behind it each
 * stream has its own free memory. Memory goes to another stream when it is
 * finished, or behind a wait on the device for everything that used it.
 *
 * Neither allocate nor deallocate waits for the device, but for the last step
 * before out-of-memory, where all that was freed is waited for, and, where
 * streams are not registered, all other work of the device. With two streams
 * and more an event is recorded now and then, never for each free.
 *
 * Over a host-accessible upstream with `access=host` a block changes hands
 * only when the work that used it is known finished, also on the same stream,
 * and each free records an event.
 *
 * Blocks are rounded up: to 256 bytes up to 1 KiB, by at most 25 % up to 64 KiB,
 * by at most 6.25 % up to 1 MiB, beyond that to 512 bytes. Any alignment up to
 * 2 MiB. A free with no stream named uses the allocation stream. Addresses that
 * cannot be a block of the pool are refused; a double free or a wrong size of
 * the same segment is not noticed.
 * Capturing streams are refused, unless `capture_reserve` is set: then they get
 * memory of segments that are the graph's alone, until it, its clones and what
 * was instantiated from them have been destroyed and have finished; what is
 * freed in a capture is kept so long, too. A pool that is released before stays
 * behind with that memory until a pool is next made, trimmed or released; its
 * upstream is retained so long. doc/pool.md tells who may free what where.
 * CCMR_ERROR_NOT_SUPPORTED: the driver is older than 11.3. The upstream is
 * retained. `options` may be
 * NULL. An upstream that is bound to no device is used with streams of the
 * device that is current at creation.
 *
 * Over `virtual` the pool works on one address range: memory is put where a
 * request needs it, behind or between what is free there, so that only what
 * lacks is new, and goes back in pieces of `handle` bytes and less. Beyond
 * what it grows to at once, free pieces are mapped where a request needs them
 * rather than new ones made; their contents are nobody's, no stream is waited
 * for, and what a block's address means never changes. Through an
 * adaptor that offers no ranges, as over any other upstream, it takes and
 * gives back whole segments.
 *
 * Trim empties all caches and gives wholly free segments back. What was freed
 * on streams that are neither registered nor retired may have no event yet:
 * it is pending. Releasing the pool waits for all of it; where a stream was
 * neither registered nor retired, for all work of the device.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status
ccmr_pool_create(ccmr_resource *upstream, const ccmr_pool_options *options,
                 ccmr_resource **resource);

CCMR_END_DECLS

#endif /* CUCOREMR_RESOURCES_POOL_H */
