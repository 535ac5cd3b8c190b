/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Built-in kinds of resources. The core declares the list and uses it;
 * resources/registry.c defines it.
 */
#ifndef CCMR_LIB_REGISTRY_H
#define CCMR_LIB_REGISTRY_H

#include <cucoremr/stack.h>

extern const ccmr_kind *const ccmr__builtin_kinds[];
extern const size_t ccmr__builtin_kind_count;

/** The kind of that name, built-in or added; NULL if there is none. */
const ccmr_kind *ccmr__kind_find(const char *name);

#endif /* CCMR_LIB_REGISTRY_H */
