/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The built-in kinds, each defined in its resource's file.
 */
#ifndef CCMR_RESOURCES_REGISTRY_H
#define CCMR_RESOURCES_REGISTRY_H

#include <cucoremr/stack.h>

extern const ccmr_kind ccmr__kind_device_plain;
extern const ccmr_kind ccmr__kind_device_pool;
extern const ccmr_kind ccmr__kind_host;
extern const ccmr_kind ccmr__kind_legacy_pinned;
extern const ccmr_kind ccmr__kind_limiting;
extern const ccmr_kind ccmr__kind_logging;
extern const ccmr_kind ccmr__kind_pool;
extern const ccmr_kind ccmr__kind_statistics;
extern const ccmr_kind ccmr__kind_stream_ordered;
extern const ccmr_kind ccmr__kind_tracking;
extern const ccmr_kind ccmr__kind_virtual;

#endif /* CCMR_RESOURCES_REGISTRY_H */
