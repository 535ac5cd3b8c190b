/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracking: knows each live block, and refuses frees that are none.
 */
#ifndef CUCOREMR_RESOURCES_TRACKING_H
#define CUCOREMR_RESOURCES_TRACKING_H

#include <cucoremr/resource.h>

/** Most frames of a trace. @since 0.1 */
#define CCMR_TRACKING_FRAMES 24

/** A live block. @since 0.1 */
typedef struct ccmr_tracking_block {
    size_t size; /**< sizeof(ccmr_tracking_block) */
    void *ptr;
    size_t bytes; /**< as asked for */
    size_t alignment;
    ccmr_stream stream;   /**< it was allocated on; may be gone */
    uint64_t thread;      /**< the system's id of the thread that asked */
    uint64_t number;      /**< allocations are counted from 1 */
    unsigned frame_count; /**< 0 without traces */
    void *frames[CCMR_TRACKING_FRAMES]; /**< return addresses from the call of
                                             the library outwards (with those
                                             inside of it where it is linked
                                             into the program);
                                             backtrace_symbols(3) names them */
} ccmr_tracking_block;

/**
 * Gets each block in turn; non-zero ends it. No lock is held: it may use any
 * resource, the tracking one as well.
 * @since 0.1
 */
typedef int (*ccmr_tracking_visit)(void *context,
                                   const ccmr_tracking_block *block);

/**
 * Gets a report: lines, each ended by a newline. No lock is held. At exit and
 * from within the release of the resource it must not use that resource.
 * @since 0.1
 */
typedef void (*ccmr_tracking_sink)(void *context, const char *text,
                                   size_t length);

/** Options; 0 is the default. @since 0.1 */
typedef struct ccmr_tracking_options {
    size_t size; /**< sizeof(ccmr_tracking_options) */
    int traces;  /**< 1: keep a stack trace of each allocation and free;
                       takes microseconds each */
    int report;  /**< 1: report refused frees when they happen, and what is
                       live when the last reference goes, or at exit */
    size_t
        history; /**< how many freed blocks are remembered, about: rounded up
                      to a multiple of 64; 0: 1024 */
    ccmr_tracking_sink sink; /**< where reports go; NULL: standard error */
    void *context;           /**< handed to the sink */
} ccmr_tracking_options;

CCMR_BEGIN_DECLS

/**
 * Make a tracking adaptor. The upstream is retained. `options` may be NULL.
 *
 * A free must name a block that is live here, with its bytes and alignment;
 * else it is refused, the block stays live and nothing reaches the upstream:
 * CCMR_ERROR_INVALID_POINTER (freed before, inside of a block, or never
 * allocated here), CCMR_ERROR_INVALID_SIZE, CCMR_ERROR_INVALID_ALIGNMENT. The
 * message names the block, its size, stream and thread. A block whose address
 * was handed out again since cannot be told from the new one, if bytes and
 * alignment are the same. note_use, hold_until_free and export_handle need a
 * live block too, pin and export_block bytes of one (CCMR_ERROR_INVALID_SIZE:
 * more than it has).
 *
 * Host memory: a record for each live block, reserved when it is allocated,
 * so that a free takes none; CCMR_ERROR_OUT_OF_HOST_MEMORY refuses an
 * allocation for which there is none. An audit finds live blocks that overlap,
 * also beside work: CCMR_ERROR_INVALID_ARGUMENT.
 * CCMR_ERROR_NOT_SUPPORTED: traces where the C library has no backtrace().
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status ccmr_tracking_create(
    ccmr_resource *upstream, const ccmr_tracking_options *options,
    ccmr_resource **resource);

/**
 * Tell each block that is live, in the order of allocation. They are gathered
 * first: blocks may be freed meanwhile.
 *
 * @param resource  a tracking adaptor, or what is stacked on one: then it is
 *                  the first that is found by going down first upstreams
 *
 * CCMR_ERROR_OUT_OF_HOST_MEMORY: none was told. Any thread; no driver call.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status ccmr_tracking_outstanding(
    ccmr_resource *resource, ccmr_tracking_visit visit, void *context);

/**
 * The live block that an address lies in. `block->size` must be set.
 * CCMR_ERROR_INVALID_POINTER: in none. Looks at all blocks. Any thread.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status ccmr_tracking_find(
    ccmr_resource *resource, const void *address, ccmr_tracking_block *block);

CCMR_END_DECLS

#endif /* CUCOREMR_RESOURCES_TRACKING_H */
