/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_ordered: makes any synchronous resource stream-ordered.
 */
#ifndef CUCOREMR_RESOURCES_STREAM_ORDERED_H
#define CUCOREMR_RESOURCES_STREAM_ORDERED_H

#include <cucoremr/resource.h>

/** Options; 0 is the default. @since 0.1 */
typedef struct ccmr_stream_ordered_options {
    size_t size; /**< sizeof(ccmr_stream_ordered_options) */
    /** Most bytes kept free for reuse; beyond, finished blocks go upstream at
     * the next allocation, which may block then. 0: no bound. */
    size_t keep;
    /** 1: every stream that is handed to the resource is retired before it is
     * destroyed, and captures on it are announced: see ccmr_pool_options. */
    int streams_registered;
} ccmr_stream_ordered_options;

CCMR_BEGIN_DECLS

/**
 * Make a stream_ordered adaptor over a resource whose frees block.
 *
 * Deallocate never blocks: it records an event, and the block is reused for
 * sizes down to half of its own: at once on the stream that freed it,
 * elsewhere when the event is done or after a wait on the device
 * (host-accessible upstreams with `access=host`: only when it is done, also on
 * the same stream). The upstream's free, which may wait for every kernel on
 * the device, is called only in trim, drain, destroy and as the last step
 * before out-of-memory; there finished blocks go first, then all are waited
 * for, and the upstream's last code is what the caller gets.
 *
 * The upstream is asked for whole size classes: steps of 512 bytes to 4 KiB,
 * then four to a doubling. A free with no stream named uses the allocation
 * stream. What is no live block, or was allocated with another size, is
 * refused. Capturing streams are refused. An upstream that is bound to no
 * device is used with streams of the device that is current at creation. The
 * upstream is retained. `options` may be NULL.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status ccmr_stream_ordered_create(
    ccmr_resource *upstream, const ccmr_stream_ordered_options *options,
    ccmr_resource **resource);

CCMR_END_DECLS

#endif /* CUCOREMR_RESOURCES_STREAM_ORDERED_H */
