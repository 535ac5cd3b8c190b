/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host: pageable host memory. Needs no driver.
 */
#ifndef CUCOREMR_RESOURCES_HOST_H
#define CUCOREMR_RESOURCES_HOST_H

#include <cucoremr/resource.h>

CCMR_BEGIN_DECLS

/**
 * Make a host resource. Frees happen at once whatever the stream: work on a
 * device that still uses the memory is the caller's duty. Alignment is at
 * most 1 GiB. Makes no driver call, ever.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status ccmr_host_create(ccmr_resource **resource);

CCMR_END_DECLS

#endif /* CUCOREMR_RESOURCES_HOST_H */
