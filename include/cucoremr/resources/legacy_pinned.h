/* SPDX-License-Identifier: Apache-2.0 */
/*
 * legacy_pinned: page-locked host memory by cuMemHostAlloc.
 */
#ifndef CUCOREMR_RESOURCES_LEGACY_PINNED_H
#define CUCOREMR_RESOURCES_LEGACY_PINNED_H

#include <cucoremr/resource.h>

/* Flags, as CU_MEMHOSTALLOC_... */
#define CCMR_PINNED_PORTABLE 0x1u       /**< pinned for every context */
#define CCMR_PINNED_MAPPED 0x2u         /**< has a device address */
#define CCMR_PINNED_WRITE_COMBINED 0x4u /**< fast to write, slow to read */

/** Options. @since 0.1 */
typedef struct ccmr_legacy_pinned_options {
    size_t size;        /**< sizeof(ccmr_legacy_pinned_options) */
    unsigned flags;     /**< CCMR_PINNED_...; default portable and mapped */
    ccmr_access access; /**< default CCMR_ACCESS_HOST */
} ccmr_legacy_pinned_options;

/** Initialiser with the defaults. */
#define CCMR_LEGACY_PINNED_OPTIONS_INIT                                       \
    {                                                                         \
        sizeof(ccmr_legacy_pinned_options),                                   \
            CCMR_PINNED_PORTABLE | CCMR_PINNED_MAPPED, CCMR_ACCESS_HOST       \
    }

CCMR_BEGIN_DECLS

/**
 * Make a legacy_pinned resource. The memory is allocated in the primary
 * context of `device` (or CCMR_DEVICE_CURRENT) and nowhere else.
 *
 * A free synchronises its stream (the allocation stream if none is named) and
 * then frees, so a block comes back only when its work is finished. `access`
 * tells resources above how they may reuse blocks. Sizes are rounded to pages
 * by the driver, to nothing else. Alignment is at most 4096, and takes as much
 * memory on top where it is more than 256. Capturing streams are refused.
 * `options` may be NULL.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status ccmr_legacy_pinned_create(
    int device, const ccmr_legacy_pinned_options *options,
    ccmr_resource **resource);

CCMR_END_DECLS

#endif /* CUCOREMR_RESOURCES_LEGACY_PINNED_H */
