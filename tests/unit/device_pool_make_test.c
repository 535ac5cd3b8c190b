/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making device_pool resources on the simulated driver: default pool, own
 * pools, options, drivers and devices that lack something.
 */
#include "tests/unit/leaf.h"

static ccmr_resource *resource;

TestSuite(device_pool_make, .fini = leaf_end);

static CUmemoryPool default_pool(int device)
{
    CUmemoryPool pool;

    cr_assert_eq(api.cuDeviceGetDefaultMemPool(&pool, device), CUDA_SUCCESS);
    return pool;
}

static CUmemoryPool handle(void)
{
    CUmemoryPool pool;

    cr_assert_eq(ccmr_device_pool_handle(resource, &pool), CCMR_SUCCESS);
    return pool;
}

static uint64_t attribute(CUmemoryPool pool, CUmemPool_attribute which)
{
    uint64_t value = 0;

    cr_assert_eq(api.cuMemPoolGetAttribute(pool, which, &value), CUDA_SUCCESS);
    return value;
}

static void set_threshold(CUmemoryPool pool, uint64_t threshold)
{
    cr_assert_eq(api.cuMemPoolSetAttribute(
                     pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold),
                 CUDA_SUCCESS);
}

static uint64_t threshold(CUmemoryPool pool)
{
    return attribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
}

static ccmr_status make(const char *text)
{
    resource = NULL;
    return ccmr_stack_create(text, &resource);
}

static void must_make(const char *text)
{
    cr_assert_eq(make(text), CCMR_SUCCESS, "%s: %s", text,
                 ccmr_last_error()->message);
}

static void must_refuse(const char *text, ccmr_status status)
{
    cr_assert_eq(make(text), status, "%s: %s", text,
                 ccmr_last_error()->message);
    cr_assert_null(resource);
    cr_assert_eq(leaf_census().pools, 0u);
}

/* I7: memory is kept; a value that somebody chose stays. */
Test(device_pool_make, raises_the_default_threshold)
{
    CUmemoryPool pool;

    (void)leaf_start();
    pool = default_pool(0);
    cr_assert_eq(threshold(pool), 0u);
    must_make("device_pool device=0");
    cr_assert_eq(handle(), pool);
    cr_assert_eq(threshold(pool), UINT64_MAX);
    ccmr_resource_release(resource);
    cr_assert_eq(threshold(pool), UINT64_MAX);

    set_threshold(pool, MIB);
    must_make("device_pool device=0");
    ccmr_resource_release(resource);
    cr_assert_eq(threshold(pool), MIB);
    must_make("device_pool device=0 release_threshold=512KiB");
    ccmr_resource_release(resource);
    cr_assert_eq(threshold(pool), MIB);
    must_make("device_pool device=0 release_threshold=2MiB");
    ccmr_resource_release(resource);
    cr_assert_eq(threshold(pool), 2 * MIB);
}

Test(device_pool_make, owns_its_pool)
{
    ccmr_stats stats = {.size = sizeof(stats)};

    (void)leaf_start();
    must_make("device_pool device=1 own=yes initial=100MiB maximum=1GiB");
    cr_assert_eq(leaf_census().pools, 1u);
    cr_assert_neq(handle(), default_pool(1));
    cr_assert_eq(threshold(handle()), UINT64_MAX);
    cr_assert_eq(ccmr_resource_stats(resource, &stats), CCMR_SUCCESS);
    cr_assert_geq(stats.reserved_bytes, 100 * MIB);
    cr_assert_eq(stats.live_bytes, 0u);
    cr_assert_eq(attribute(handle(), CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0u);
    cr_assert_eq(leaf_census().pool_blocks, 0u);
    ccmr_resource_release(resource);
    cr_assert_eq(leaf_census().pools, 0u);
    cr_assert_eq(leaf_census().device_bytes, 0u);
}

Test(device_pool_make, keeps_the_maximum)
{
    ccmr_stream stream;
    void *ptr;

    (void)leaf_start();
    stream = leaf_stream(0);
    must_make("device_pool device=0 own=yes maximum=64MiB");
    cr_assert_eq(ccmr_resource_allocate(resource, 65 * MIB, 0, stream, &ptr),
                 CCMR_ERROR_OUT_OF_DEVICE_MEMORY);
    cr_assert_eq(ccmr_last_error()->limit, 64 * MIB);
    cr_assert_eq(ccmr_resource_allocate(resource, 40 * MIB, 0, stream, &ptr),
                 CCMR_SUCCESS);
    cr_assert_eq(ccmr_resource_allocate(resource, 40 * MIB, 0, stream, &ptr),
                 CCMR_ERROR_OUT_OF_DEVICE_MEMORY);
    cr_assert_eq(ccmr_last_error()->limit, 64 * MIB);
    cr_assert_eq(ccmr_last_error()->live, 40 * MIB);
    cr_assert_eq(ccmr_resource_deallocate(resource, ptr, 40 * MIB, 0, stream),
                 CCMR_SUCCESS);
    ccmr_resource_release(resource);
}

/* H7: the same sizes mean the same. */
Test(device_pool_make, takes_odd_sizes)
{
    ccmr_stats stats = {.size = sizeof(stats)};

    (void)leaf_start();
    must_make("device_pool device=0 own=yes initial=1000003 maximum=1000003");
    cr_assert_eq(ccmr_resource_stats(resource, &stats), CCMR_SUCCESS);
    cr_assert_geq(stats.reserved_bytes, 1000003u);
    cr_assert_str_eq(leaf_option(resource, "maximum"), "32MiB");
    ccmr_resource_release(resource);
    must_make("device_pool device=0 own=yes maximum=255");
    ccmr_resource_release(resource);
    must_make("device_pool device=0 own=yes initial=0.05GiB maximum=100%");
    ccmr_resource_release(resource);
    must_refuse("device_pool device=0 own=yes initial=1000004 maximum=1000003",
                CCMR_ERROR_INVALID_ARGUMENT);
    must_refuse("device_pool device=0 own=yes maximum=18446744073709551615",
                CCMR_ERROR_INVALID_SIZE);
}

/* I17: more than the card has is an error at creation, with nothing left. */
Test(device_pool_make, refuses_what_the_device_lacks)
{
    const ccmr_sim_table *sim = leaf_start();

    must_refuse("device_pool device=0 own=yes initial=200GiB",
                CCMR_ERROR_OUT_OF_DEVICE_MEMORY);
    cr_assert_eq(ccmr_last_error()->requested, 200 * GIB);
    /* Another program has it. */
    cr_assert_eq(sim->set_memory(0, GIB), 0);
    must_refuse("device_pool device=0 own=yes initial=2GiB",
                CCMR_ERROR_OUT_OF_DEVICE_MEMORY);
    cr_assert_str_eq(ccmr_last_error()->resource, "device_pool");
    cr_assert_eq(leaf_census().device_bytes, 0u);
}

Test(device_pool_make, refuses_wrong_options)
{
    ccmr_device_pool_options options = {.size = sizeof(options)};
    CUmemoryPool pool;

    (void)leaf_start();
    must_refuse("device_pool device=0 initial=1GiB",
                CCMR_ERROR_INVALID_ARGUMENT);
    must_refuse("device_pool device=0 maximum=1GiB",
                CCMR_ERROR_INVALID_ARGUMENT);
    must_refuse("device_pool device=0 handle_kinds=posix_fd",
                CCMR_ERROR_INVALID_ARGUMENT);
    must_refuse("device_pool device=0 reuse=internal",
                CCMR_ERROR_INVALID_ARGUMENT);
    must_refuse("device_pool device=0 own=yes initial=2MiB "
                "release_threshold=1MiB",
                CCMR_ERROR_INVALID_ARGUMENT);
    must_refuse("device_pool device=9", CCMR_ERROR_NO_DEVICE);

    options.own = 1;
    options.handle_kinds = 0x40u;
    cr_assert_eq(ccmr_device_pool_create(0, &options, &resource),
                 CCMR_ERROR_INVALID_ARGUMENT);
    options.size = 8;
    cr_assert_eq(ccmr_device_pool_create(0, &options, &resource),
                 CCMR_ERROR_INVALID_STRUCT);
    cr_assert_eq(ccmr_device_pool_create(0, NULL, NULL),
                 CCMR_ERROR_INVALID_ARGUMENT);
    cr_assert_eq(ccmr_device_pool_handle(NULL, &pool),
                 CCMR_ERROR_INVALID_ARGUMENT);
    must_make("host");
    cr_assert_eq(ccmr_device_pool_handle(resource, &pool),
                 CCMR_ERROR_INVALID_ARGUMENT);
    cr_assert_eq(ccmr_device_pool_handle(resource, NULL),
                 CCMR_ERROR_INVALID_ARGUMENT);
    ccmr_resource_release(resource);
}

/* Q4: no pools on the device; what does without them still works. */
Test(device_pool_make, needs_pools)
{
    const ccmr_sim_table *sim = leaf_simulator();

    cr_assert_eq(
        sim->set_attribute(1, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 0),
        0);
    must_refuse("device_pool device=1", CCMR_ERROR_NOT_SUPPORTED);
    must_make("device_plain device=1");
    ccmr_resource_release(resource);
    must_make("device_pool device=0");
    ccmr_resource_release(resource);
}

/* Q4: the driver does not have the calls. */
Test(device_pool_make, needs_the_calls)
{
    const ccmr_sim_table *sim = leaf_simulator();

    cr_assert_eq(sim->hide("cuMemAllocFromPoolAsync"), 0);
    must_refuse("device_pool device=1", CCMR_ERROR_NOT_SUPPORTED);
    must_make("device_plain device=1");
    ccmr_resource_release(resource);
}

/* Q5: these drivers corrupt memory if they may reuse it opportunistically. */
Test(device_pool_make, keeps_old_drivers_from_harm)
{
    const ccmr_sim_table *sim = leaf_simulator();
    CUmemoryPool pool;

    cr_assert_eq(sim->set_driver_version(11040), 0);
    must_make("device_pool device=0 own=yes");
    cr_assert_eq(
        attribute(handle(), CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC), 0u);
    cr_assert_eq(
        attribute(handle(), CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES),
        1u);
    cr_assert_str_eq(leaf_option(resource, "reuse"), "follow_events+internal");
    ccmr_resource_release(resource);

    must_make("device_pool device=0");
    pool = handle();
    cr_assert_eq(attribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC),
                 1u);
    ccmr_resource_release(resource);
}

/* J7: a maximum that the driver would ignore is refused. */
Test(device_pool_make, refuses_a_maximum_that_nobody_keeps)
{
    const ccmr_sim_table *sim = leaf_simulator();

    cr_assert_eq(sim->set_driver_version(12010), 0);
    must_refuse("device_pool device=0 own=yes maximum=1GiB",
                CCMR_ERROR_NOT_SUPPORTED);
    must_make("device_pool device=0 own=yes initial=64MiB");
    ccmr_resource_release(resource);
}

Test(device_pool_make, checks_handle_kinds)
{
    const ccmr_sim_table *sim = leaf_simulator();
    ccmr_properties properties = {.size = sizeof(properties)};

    cr_assert_eq(sim->set_attribute(
                     -1, CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES,
                     (int)CCMR_HANDLE_POSIX_FD),
                 0);
    must_make("device_pool device=0 own=yes handle_kinds=posix_fd");
    cr_assert_eq(ccmr_resource_describe(resource, &properties), CCMR_SUCCESS);
    cr_assert_eq(properties.handle_kinds, CCMR_HANDLE_POSIX_FD);
    ccmr_resource_release(resource);
    must_refuse("device_pool device=0 own=yes handle_kinds=posix_fd+fabric",
                CCMR_ERROR_NOT_SUPPORTED);
}

/* A pool of the caller's stays as it is, and lives on. */
Test(device_pool_make, wraps_a_handle)
{
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {CU_MEM_LOCATION_TYPE_DEVICE, 1}};
    CUmemoryPool pool;
    ccmr_stream stream;
    void *ptr;

    (void)leaf_start();
    stream = leaf_stream(1);
    cr_assert_eq(api.cuMemPoolCreate(&pool, &props), CUDA_SUCCESS);
    set_threshold(pool, 12345);
    cr_assert_eq(ccmr_device_pool_from_handle(1, pool, &resource),
                 CCMR_SUCCESS);
    cr_assert_eq(handle(), pool);
    cr_assert_eq(ccmr_resource_allocate(resource, MIB, 0, stream, &ptr),
                 CCMR_SUCCESS);
    cr_assert_eq(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), MIB);
    cr_assert_eq(ccmr_resource_deallocate(resource, ptr, MIB, 0, stream),
                 CCMR_SUCCESS);
    ccmr_resource_release(resource);
    cr_assert_eq(threshold(pool), 12345u);
    cr_assert_eq(leaf_census().pools, 1u);

    cr_assert_eq(ccmr_device_pool_from_handle(1, NULL, &resource),
                 CCMR_ERROR_INVALID_ARGUMENT);
    cr_assert_eq(ccmr_device_pool_from_handle(1, pool, NULL),
                 CCMR_ERROR_INVALID_ARGUMENT);
    cr_assert_eq(api.cuStreamSynchronize(stream), CUDA_SUCCESS);
    cr_assert_eq(api.cuMemPoolDestroy(pool), CUDA_SUCCESS);
}

static ccmr_status make_and_release(void *text)
{
    ccmr_status status = make(text);

    if (status == CCMR_SUCCESS) {
        ccmr_resource_release(resource);
    }
    return status;
}

/* I17, J4. A destroy that the driver refuses cannot be made good: the step's
 * calls up to there are what counts. */
Test(device_pool_make, survives_failing_calls)
{
    static char own[] = "device_pool device=1 own=yes initial=64MiB "
                        "reuse=internal maximum=1GiB";
    static char wrapped[] = "device_pool device=1";
    const ccmr_sim_table *sim = leaf_start();
    ccmr_status status = CCMR_SUCCESS;
    uint64_t n;

    leaf_fail_each(make_and_release, wrapped, CUDA_ERROR_UNKNOWN);
    must_make(own);
    ccmr_resource_release(resource);
    for (n = 1; n < 100; n++) {
        cr_assert_eq(sim->fail(NULL, n, CUDA_ERROR_OUT_OF_MEMORY), 0);
        status = make(own);
        (void)sim->forget_failures();
        if (status == CCMR_SUCCESS) {
            break;
        }
        cr_assert_eq(leaf_census().pools, 0u, "call %d", (int)n);
        cr_assert_eq(leaf_census().pool_blocks, 0u, "call %d", (int)n);
        cr_assert_null(leaf_current());
        cr_assert_eq(leaf_mode(), CU_STREAM_CAPTURE_MODE_GLOBAL);
    }
    cr_assert_eq(status, CCMR_SUCCESS);
    cr_assert_gt(n, 5u);
    ccmr_resource_release(resource);
}

/* Every option, printed and read again. */
Test(device_pool_make, prints_itself)
{
    const char *const texts[] = {
        "device_pool device=1",
        "device_pool device=0 own=yes",
        "device_pool device=1 own=yes initial=96MiB maximum=1GiB "
        "release_threshold=512MiB handle_kinds=posix_fd "
        "reuse=follow_events+internal guard=no",
        "device_pool device=1 release_threshold=0 guard=no",
        "device_pool device=1 own=yes reuse=none",
    };
    size_t i;

    (void)leaf_start();
    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        must_make(texts[i]);
        cr_assert_str_eq(leaf_print(resource), texts[i]);
        ccmr_resource_release(resource);
    }
}

Test(device_pool_make, describes_itself)
{
    ccmr_properties properties = {.size = sizeof(properties)};

    (void)leaf_start();
    must_make("device_pool device=1");
    cr_assert_eq(ccmr_resource_describe(resource, &properties), CCMR_SUCCESS);
    cr_assert_str_eq(properties.name, "device_pool");
    cr_assert_eq(properties.device, 1);
    cr_assert_eq(properties.device_accessible, 1);
    cr_assert_eq(properties.host_accessible, 0);
    cr_assert_eq(properties.max_alignment, 256u);
    cr_assert_eq(properties.free_may_block, 0);
    cr_assert_eq(properties.free_stream, CCMR_FREE_ON_ALLOCATION_STREAM);
    cr_assert_eq(properties.capture, CCMR_CAPTURE_REFUSED);
    cr_assert_eq(properties.access, CCMR_ACCESS_STREAM);
    ccmr_resource_release(resource);
}
