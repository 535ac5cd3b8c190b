/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of built-in kinds, in the order of the help: leaves, then adaptors.
 */
#include "resources/registry.h"

#include "lib/registry.h"

const ccmr_kind *const ccmr__builtin_kinds[] = {
    &ccmr__kind_device_pool,    &ccmr__kind_device_plain, &ccmr__kind_virtual,
    &ccmr__kind_legacy_pinned,  &ccmr__kind_host,         &ccmr__kind_pool,
    &ccmr__kind_stream_ordered, &ccmr__kind_limiting,     &ccmr__kind_logging,
    &ccmr__kind_statistics,     &ccmr__kind_tracking,
};

const size_t ccmr__builtin_kind_count =
    sizeof(ccmr__builtin_kinds) / sizeof(ccmr__builtin_kinds[0]);
