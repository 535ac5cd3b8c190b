/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host: pageable memory of the C library, for stacks that serve the host and
 * for the machine without a GPU.
 *
 * Streams: none matters, a free happens at once. Threads: any, the C library
 * has the locks. Makes no driver call and keeps nothing; there is one object
 * for all resources of this kind, without state.
 */
#include <cucoremr/resources/host.h>

#include <stdlib.h>

#include "lib/arith.h"
#include "lib/error.h"
#include "lib/struct.h"
#include "resources/common.h"
#include "resources/registry.h"

#define GREATEST_ALIGNMENT ((size_t)1 << 30)

/* No processor has addresses for more: malloc is not asked, since those of
 * sanitizers and debuggers take the question for an error. */
#define GREATEST_BYTES ((size_t)1 << 56)

static ccmr_status host_allocate(void *self, size_t bytes, size_t alignment,
                                 ccmr_stream stream, void **ptr)
{
    void *block = NULL;

    (void)self;
    (void)stream;
    if (bytes > GREATEST_BYTES) {
        /* refused below */
    } else if (alignment <= _Alignof(max_align_t)) {
        block = malloc(bytes);
    } else if (posix_memalign(&block, alignment, bytes) != 0) {
        block = NULL;
    }
    if (block == NULL) {
        return ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                          "the C library has no %zu bytes aligned to %zu",
                          bytes, alignment);
    }
    *ptr = block;
    return CCMR_SUCCESS;
}

static ccmr_status host_deallocate(void *self, void *ptr, size_t bytes,
                                   size_t alignment, ccmr_stream stream)
{
    ccmr_status status = ccmr__check_address(ptr, alignment);

    (void)self;
    (void)bytes;
    (void)stream;
    if (status != CCMR_SUCCESS) {
        return status;
    }
    free(ptr);
    return CCMR_SUCCESS;
}

static void host_destroy(void *self)
{
    (void)self;
}

static ccmr_status host_describe(void *self, ccmr_properties *properties)
{
    const ccmr_properties mine = {
        .size = sizeof(mine),
        .name = ccmr__kind_host.name,
        .device = -1,
        .host_accessible = 1,
        .max_alignment = GREATEST_ALIGNMENT,
        .free_stream = CCMR_FREE_AT_ONCE,
        .capture = CCMR_CAPTURE_IRRELEVANT,
        .access = CCMR_ACCESS_HOST,
    };

    (void)self;
    return ccmr__struct_write(properties, &mine, sizeof(mine), sizeof(size_t),
                              "ccmr_properties");
}

static ccmr_status host_stats(void *self, ccmr_stats *stats)
{
    (void)self;
    ccmr__stats_nothing_kept(stats);
    return CCMR_SUCCESS;
}

static const ccmr_resource_ops host_ops = {
    .size = sizeof(ccmr_resource_ops),
    .allocate = host_allocate,
    .deallocate = host_deallocate,
    .destroy = host_destroy,
    .describe = host_describe,
    .stats = host_stats,
};

ccmr_status ccmr_host_create(ccmr_resource **resource)
{
    return ccmr_resource_create(&host_ops, NULL, resource);
}

static ccmr_status create_from_text(const ccmr_kind *kind,
                                    const ccmr_option_value *values,
                                    ccmr_resource *const *upstreams,
                                    size_t count, ccmr_resource **resource)
{
    (void)kind;
    (void)values;
    (void)upstreams;
    (void)count;
    return ccmr_host_create(resource);
}

static const ccmr_option host_options[] = {
    {NULL, CCMR_OPTION_TEXT, NULL, NULL, NULL},
};

const ccmr_kind ccmr__kind_host = {
    .size = sizeof(ccmr_kind),
    .name = "host",
    .help = "pageable host memory; needs no driver",
    .options = host_options,
    .create = create_from_text,
};
