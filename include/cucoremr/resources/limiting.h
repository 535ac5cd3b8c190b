/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limiting: a cap on live bytes.
 */
#ifndef CUCOREMR_RESOURCES_LIMITING_H
#define CUCOREMR_RESOURCES_LIMITING_H

#include <cucoremr/resource.h>

CCMR_BEGIN_DECLS

/**
 * Make a limiting adaptor: at most `bytes` are live through it at any time.
 * Counted is what was asked for, not what the upstream rounds it to or holds.
 * Never exceeded, never refused wrongly: a request in flight counts from
 * before the upstream is asked; a free counts after the upstream took it.
 * Refusal: CCMR_ERROR_LIMIT_EXCEEDED with limit, live and requested in the
 * detail. The upstream is retained.
 *
 * The option "bytes" can be changed while running, also to less than what is
 * live; a percentage is of the upstream's device. A free of a block that was
 * not counted here, or of a wrong size, makes the count too low (never less
 * than 0) until "bytes" is set again.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status ccmr_limiting_create(
    ccmr_resource *upstream, size_t bytes, ccmr_resource **resource);

CCMR_END_DECLS

#endif /* CUCOREMR_RESOURCES_LIMITING_H */
