/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jemalloc: host memory of a jemalloc arena. In libcucoremr-jemalloc, which
 * programs link themselves: with it jemalloc becomes the program's malloc.
 */
#ifndef CUCOREMR_RESOURCES_JEMALLOC_H
#define CUCOREMR_RESOURCES_JEMALLOC_H

#include <cucoremr/resource.h>

CCMR_BEGIN_DECLS

/**
 * Make a resource over an arena of its own. Frees happen at once whatever the
 * stream. Alignment is at most 1 GiB. The arena goes with the resource. Makes
 * no driver call.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status
ccmr_jemalloc_create(ccmr_resource **resource);

/**
 * Add the kind "jemalloc" to the stack texts' kinds; repeating it is
 * harmless. @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status ccmr_jemalloc_register(void);

CCMR_END_DECLS

#endif /* CUCOREMR_RESOURCES_JEMALLOC_H */
