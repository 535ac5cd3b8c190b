/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kinds of resources, for the core; lib/registry.h is what others need.
 */
#ifndef CCMR_LIB_KIND_H
#define CCMR_LIB_KIND_H

#include <cucoremr/stack.h>

/* Limits of a kind, so that a missing end of a table is found. */
#define CCMR__KIND_OPTIONS 64
#define CCMR__KIND_UPSTREAMS 64

/** The i-th kind, built-in ones first; NULL past the last. No lock. */
const ccmr_kind *ccmr__kind_at(size_t i);

/** As ccmr__kind_find(), of a name that does not end with 0. */
const ccmr_kind *ccmr__kind_find_word(const char *name, size_t length);

/** The name of a kind that was meant, perhaps; NULL if none is near. */
const char *ccmr__kind_nearest(const char *name, size_t length);

size_t ccmr__kind_option_count(const ccmr_kind *kind);

/** May this kind be added? Names what is wrong with it. */
ccmr_status ccmr__kind_check(const ccmr_kind *kind);

#endif /* CCMR_LIB_KIND_H */
