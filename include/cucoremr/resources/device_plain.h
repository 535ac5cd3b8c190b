/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_plain: cuMemAlloc and cuMemFree as a resource.
 */
#ifndef CUCOREMR_RESOURCES_DEVICE_PLAIN_H
#define CUCOREMR_RESOURCES_DEVICE_PLAIN_H

#include <cucoremr/resource.h>

CCMR_BEGIN_DECLS

/**
 * Make a device_plain resource on a device (or CCMR_DEVICE_CURRENT).
 *
 * A free synchronises its stream (the allocation stream if none is named) and
 * then frees; the driver's free also waits for every kernel on the device.
 * With CCMR_STREAM_READY nothing is synchronised by us. Allocation alignment
 * is at most 256. Capturing streams are refused.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status
ccmr_device_plain_create(int device, ccmr_resource **resource);

CCMR_END_DECLS

#endif /* CUCOREMR_RESOURCES_DEVICE_PLAIN_H */
