/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What several resources have in common: the `device` option, answering
 * option_get from a kind's table, and the way to a synchronous free.
 */
#ifndef CCMR_RESOURCES_COMMON_H
#define CCMR_RESOURCES_COMMON_H

#include <cucoremr/stack.h>

#include "lib/context.h"

/** Table entry of the option `device`; see ccmr__value_device(). */
#define CCMR__OPTION_DEVICE                                                   \
    {                                                                         \
        "device", CCMR_OPTION_INTEGER, "", NULL,                              \
            "ordinal of the device; unset: the current context's, else 0"     \
    }

/** Table entry of the option `streams`; its value is 1 for `registered`. */
#define CCMR__OPTION_STREAMS                                                  \
    {                                                                         \
        "streams", CCMR_OPTION_CHOICE, "any", "any|registered",               \
            "registered: all streams are retired before they are destroyed, " \
            "and their captures announced; each is asked once"                \
    }

/** The text of that value. */
static inline const char *ccmr__streams_name(int registered)
{
    return registered ? "registered" : "any";
}

/** Ordinal that a value of the option `device` stands for. */
ccmr_status ccmr__value_device(const ccmr_option_value *value, int *ordinal);

/**
 * Index of an option in a table; CCMR_ERROR_UNKNOWN_NAME where there is none
 * of that name in `kind`.
 */
ccmr_status ccmr__option_find(const ccmr_kind *kind, const char *name,
                              size_t *index);

/**
 * The choose_free_stream op of what frees in stream order: the requested
 * stream, else the one that the block was allocated on.
 */
ccmr_status ccmr__choose_allocation_stream(void *object,
                                           const ccmr_block *block,
                                           ccmr_stream requested,
                                           ccmr_stream *chosen);

/**
 * The device whose streams an adaptor works with: the upstream's, or where it
 * is bound to none the current one.
 */
ccmr_status ccmr__upstream_device(ccmr_resource *upstream,
                                  ccmr__device **device);

/**
 * Before a synchronous free, in the device's context: check the stream, and
 * wait until the work that is queued on it is finished. CCMR_STREAM_READY
 * needs neither.
 */
ccmr_status ccmr__stream_finish(ccmr_stream stream, ccmr__device *device);

/**
 * A block comes back at an address that the resource cannot have given out,
 * since it is no multiple of `unit`: refused, else CCMR_SUCCESS.
 */
ccmr_status ccmr__check_address(const void *ptr, size_t unit);

/**
 * The driver refused to free a block: sets the error. Where it says that the
 * value is invalid, the address is none of a live block.
 */
ccmr_status ccmr__fail_address(const void *ptr, int result, const char *call)
    __attribute__((cold));

/** Figures of a resource that keeps nothing: what is live, as it was asked for.
 * What the driver or the C library round that to is theirs. */
void ccmr__stats_nothing_kept(ccmr_stats *stats);

/**
 * The first adaptor with these operations at or under a resource, by first
 * upstreams. CCMR_ERROR_INVALID_ARGUMENT names `call` where there is none.
 */
ccmr_status ccmr__find_adaptor(ccmr_resource *resource,
                               const ccmr_resource_ops *ops, const char *kind,
                               const char *call, ccmr_resource **found);

/** Note in an out-of-memory's detail that it was the driver who said so. */
void ccmr__note_out_of_memory(ccmr_error_detail *detail, const char *call)
    __attribute__((cold));

/*
 * Operations of adaptors that pass on what they have no part in. The object
 * of such an adaptor begins with its upstream:
 *
 *   object   | ccmr_resource *upstream | its own ... |
 */
ccmr_status ccmr__adaptor_upstream(void *object, size_t i,
                                   ccmr_resource **resource);
ccmr_status ccmr__adaptor_would_fit(void *object, size_t bytes,
                                    ccmr_stream stream, int *fits);
ccmr_status ccmr__adaptor_note_use(void *object, void *ptr,
                                   ccmr_stream stream);
ccmr_status ccmr__adaptor_hold_until_free(void *object, void *ptr,
                                          ccmr_stream stream);
ccmr_status ccmr__adaptor_pin(void *object, void *ptr, size_t bytes);
ccmr_status ccmr__adaptor_unpin(void *object, void *ptr, size_t bytes);
ccmr_status ccmr__adaptor_export_handle(void *object, void *ptr, unsigned kind,
                                        void *handle, size_t handle_size);
ccmr_status ccmr__adaptor_export_block(void *object, void *ptr, size_t bytes,
                                       unsigned kind, void *handle,
                                       size_t handle_size,
                                       ccmr_export_place *place);

/* Members of the operations of an adaptor that keeps no blocks: what is kept is
 * kept by the upstream, so uses and places are the upstream's. */
#define CCMR__ADAPTOR_USES                                                    \
    .note_use = ccmr__adaptor_note_use,                                       \
    .hold_until_free = ccmr__adaptor_hold_until_free

#define CCMR__ADAPTOR_PLACES                                                  \
    .export_handle = ccmr__adaptor_export_handle, .pin = ccmr__adaptor_pin,   \
    .unpin = ccmr__adaptor_unpin, .export_block = ccmr__adaptor_export_block

#endif /* CCMR_RESOURCES_COMMON_H */
