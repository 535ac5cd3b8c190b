/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resource object, for the library's own resources and the core.
 */
#ifndef CCMR_LIB_RESOURCE_H
#define CCMR_LIB_RESOURCE_H

#include <cucoremr/resource.h>

/** Whether `resource` was made with exactly these operations. */
int ccmr__resource_is(const ccmr_resource *resource,
                      const ccmr_resource_ops *ops);

/** The implementer's object of a resource. */
void *ccmr__resource_self(const ccmr_resource *resource);

/** Device that the resource is bound to, -1 for none; cached, no call. */
int ccmr__resource_device(const ccmr_resource *resource);

/** Greatest alignment that the resource honours; cached. */
size_t ccmr__resource_max_alignment(const ccmr_resource *resource);

/** A buffer comes to hold, or stops holding, the resource. */
void ccmr__resource_hold(ccmr_resource *resource);
void ccmr__resource_unhold(ccmr_resource *resource);

/**
 * Start of an adaptor's describe: what the upstream says, with the adaptor's
 * name. `properties->size` and prefix rules as the op's.
 */
ccmr_status ccmr__describe_upstream(ccmr_resource *upstream,
                                    ccmr_properties *properties,
                                    const char *name);

/** Every live resource with a retire_stream op is told. */
ccmr_status ccmr__resources_retire(ccmr_stream stream);

#endif /* CCMR_LIB_RESOURCE_H */
