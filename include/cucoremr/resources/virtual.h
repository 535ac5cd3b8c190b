/* SPDX-License-Identifier: Apache-2.0 */
/*
 * virtual: CUDA's virtual memory (cuMemCreate, cuMemMap) as a resource.
 */
#ifndef CUCOREMR_RESOURCES_VIRTUAL_H
#define CUCOREMR_RESOURCES_VIRTUAL_H

#include <cucoremr/resource.h>

/** Options; 0 is the default of each. @since 0.1 */
typedef struct ccmr_virtual_options {
    size_t size; /**< sizeof(ccmr_virtual_options) */
    /**
     * Largest handle (piece of physical memory) of a block, rounded up to the
     * device's granularity; 0: 64 MiB. Driver calls cost by the handle, not by
     * the byte. What is not a multiple is one smaller handle.
     */
    size_t handle;
    /**
     * Address space that each block has beyond itself, so that it can grow in
     * place; rounded up likewise. It takes no memory.
     */
    size_t room;
    /** CCMR_HANDLE_POSIX_FD, CCMR_HANDLE_FABRIC: how memory can be exported.
     * With any of them each block is one handle, until it grows. */
    unsigned handle_kinds;
} ccmr_virtual_options;

CCMR_BEGIN_DECLS

/**
 * Make a virtual resource.
 *
 * @param device   ordinal, or CCMR_DEVICE_CURRENT
 * @param options  NULL for defaults
 *
 * A block takes whole units of the device's granularity, 2 MiB as a rule,
 * however small it is: the resource is for large blocks, and to be under a
 * pool. A free synchronises its stream (the allocation stream if none is
 * named), then unmaps; with CCMR_STREAM_READY nothing is waited for. No call
 * waits for other streams' work. Capturing streams are refused, others'
 * captures are not disturbed. Alignment is at most 1 GiB. Handles are made
 * without the flag that GPUDirect RDMA of some systems asks for.
 *
 * It also offers address ranges (see ccmr_resource_ops.reserve) to resources
 * above. Errors: CCMR_ERROR_NOT_SUPPORTED (the device or its driver has no
 * virtual memory management, or refuses a handle kind to the process),
 * CCMR_ERROR_INVALID_STRUCT, CCMR_ERROR_INVALID_SIZE; nothing was made.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status ccmr_virtual_create(
    int device, const ccmr_virtual_options *options, ccmr_resource **resource);

CCMR_END_DECLS

#endif /* CUCOREMR_RESOURCES_VIRTUAL_H */
