/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool over a puppet, on the simulated driver and one thread; for one
 * program each.
 */
#ifndef CCMR_TESTS_UNIT_POOL_ALONE_H
#define CCMR_TESTS_UNIT_POOL_ALONE_H

#include "tests/unit/leaf.h"

#include <cucoremr/resources/pool.h>

#include "lib/resource_object.h"
#include "resources/pool/pool.h"
#include "tests/unit/adaptor.h"

#define UNIT (2 * MIB) /* what segments are whole pieces of */

static const ccmr_sim_table *sim;
static puppet below;
static ccmr_resource *upstream;
static ccmr_resource *made;
static ccmr_stream one;
static ccmr_stream two;
static ccmr_stream known; /* registered */

/* Another pool over the same upstream. */
static inline void make_with(const ccmr_pool_options *options)
{
    ccmr_resource_release(made);
    GOOD(ccmr_pool_create(upstream, options, &made));
}

static inline void make_over(int host_accessible, ccmr_access access)
{
    ccmr_resource_release(made);
    ccmr_resource_release(upstream);
    MUST(puppet_clear(&below));
    puppet_init(&below);
    below.device = 0;
    below.host_accessible = host_accessible;
    below.access = access;
    upstream = puppet_resource(&below);
    GOOD(ccmr_pool_create(upstream, NULL, &made));
}

static inline void start(void)
{
    sim = leaf_start();
    (void)sim->set_mode(CCMR_SIM_LATE);
    one = leaf_stream(0);
    two = leaf_stream(0);
    GOOD(ccmr_stream_create(0, CCMR_STREAM_FLAG_NON_BLOCKING, &known));
    puppet_init(&below);
    below.device = 0;
    upstream = puppet_resource(&below);
    GOOD(ccmr_pool_create(upstream, NULL, &made));
}

static inline void end(void)
{
    MUST(made == NULL || ccmr_resource_audit(made) == CCMR_SUCCESS);
    ccmr_resource_release(made);
    ccmr_resource_release(upstream);
    MUST(puppet_clear(&below));
    MUST(leaf_census().events == 0);
    leaf_end();
}

static inline void give_on(void *ptr, size_t bytes, ccmr_stream stream)
{
    GOOD(ccmr_resource_deallocate(made, ptr, bytes, 0, stream));
}

static inline ccmr_status attempt(size_t bytes, ccmr_stream stream)
{
    void *ptr = NULL;
    ccmr_status status = ccmr_resource_allocate(made, bytes, 0, stream, &ptr);

    if (status == CCMR_SUCCESS) {
        give_on(ptr, bytes, stream);
    }
    return status;
}

static inline ccmr_trim_result trim(size_t keep)
{
    ccmr_trim_result result = {.size = sizeof(result)};

    GOOD(ccmr_resource_trim(made, keep, &result));
    return result;
}

#endif
