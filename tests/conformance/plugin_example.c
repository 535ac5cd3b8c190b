/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A user's own resource as a plug-in of cucoremr-conformance:
 *
 *   cucoremr-conformance --plugin plugin_example.so --stack "counting | host"
 *
 * `counting` counts what passes. Public headers alone; in a project of its
 * own it would be built with
 *
 *   cc -shared -fPIC $(pkg-config --cflags libcucoremr) plugin_example.c
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <cucoremr/resource.h>
#include <cucoremr/stack.h>

typedef struct counting {
    ccmr_resource *upstream;
    atomic_size_t allocations;
    atomic_size_t deallocations;
} counting;

CCMR_API ccmr_status ccmr_plugin_register(void);

static ccmr_status counting_allocate(void *self, size_t bytes,
                                     size_t alignment, ccmr_stream stream,
                                     void **ptr)
{
    counting *c = self;
    ccmr_status status =
        ccmr_resource_allocate(c->upstream, bytes, alignment, stream, ptr);

    if (status == CCMR_SUCCESS) {
        atomic_fetch_add(&c->allocations, 1);
    }
    return status;
}

static ccmr_status counting_deallocate(void *self, void *ptr, size_t bytes,
                                       size_t alignment, ccmr_stream stream)
{
    counting *c = self;
    ccmr_status status =
        ccmr_resource_deallocate(c->upstream, ptr, bytes, alignment, stream);

    if (status == CCMR_SUCCESS) {
        atomic_fetch_add(&c->deallocations, 1);
    }
    return status;
}

static void counting_destroy(void *self)
{
    counting *c = self;

    ccmr_resource_release(c->upstream);
    free(c);
}

static ccmr_status counting_describe(void *self, ccmr_properties *properties)
{
    counting *c = self;
    size_t size = properties->size;
    ccmr_properties mine;
    ccmr_status status;

    mine.size = sizeof(mine);
    status = ccmr_resource_describe(c->upstream, &mine);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    mine.size = size;
    mine.name = "counting";
    memcpy(properties, &mine, size < sizeof(mine) ? size : sizeof(mine));
    return CCMR_SUCCESS;
}

static ccmr_status counting_upstream(void *self, size_t i,
                                     ccmr_resource **resource)
{
    counting *c = self;

    if (i != 0) {
        return CCMR_ERROR_OUT_OF_RANGE;
    }
    *resource = c->upstream;
    return CCMR_SUCCESS;
}

static const ccmr_resource_ops counting_ops = {
    .size = sizeof(ccmr_resource_ops),
    .allocate = counting_allocate,
    .deallocate = counting_deallocate,
    .destroy = counting_destroy,
    .describe = counting_describe,
    .upstream = counting_upstream,
};

static ccmr_status counting_create(const ccmr_kind *kind,
                                   const ccmr_option_value *values,
                                   ccmr_resource *const *upstreams,
                                   size_t count, ccmr_resource **resource)
{
    counting *c = calloc(1, sizeof(*c));
    ccmr_status status;

    (void)kind;
    (void)values;
    (void)count;
    if (c == NULL) {
        return ccmr_error_set(CCMR_ERROR_OUT_OF_HOST_MEMORY, sizeof(*c),
                              "no memory for a counting resource");
    }
    c->upstream = ccmr_resource_retain(upstreams[0]);
    status = ccmr_resource_create(&counting_ops, c, resource);
    if (status != CCMR_SUCCESS) {
        ccmr_resource_release(c->upstream);
        free(c);
    }
    return status;
}

static const ccmr_option counting_options[] = {
    {NULL, CCMR_OPTION_TEXT, NULL, NULL, NULL}};

static const ccmr_kind counting_kind = {
    .size = sizeof(ccmr_kind),
    .name = "counting",
    .help = "counts allocations and frees",
    .options = counting_options,
    .min_upstreams = 1,
    .max_upstreams = 1,
    .create = counting_create,
};

ccmr_status ccmr_plugin_register(void)
{
    return ccmr_kind_register(&counting_kind);
}
