/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices, and each device's current resource.
 */
#include "tests/unit/leaf.h"

static void start(void)
{
    (void)leaf_start();
}

static void end(void)
{
    leaf_end();
}

TestSuite(device, .init = start, .fini = end);

Test(device, the_driver_is_described)
{
    ccmr_driver_info info = {.size = sizeof(info)};

    cr_assert_eq(ccmr_driver(&info), CCMR_SUCCESS);
    cr_assert_str_eq(info.name, "sim");
    cr_assert_not_null(strstr(info.path, "libcucoremr-sim"));
    cr_assert_eq(info.simulated, 1);
    cr_assert_eq(info.devices, LEAF_DEVICES);
    cr_assert_geq(info.version, 11000);
}

Test(device, init_may_be_repeated)
{
    ccmr_init_options options = {sizeof(options), NULL};

    cr_assert_eq(ccmr_init(NULL), CCMR_SUCCESS);
    cr_assert_eq(ccmr_init(&options), CCMR_SUCCESS);
    options.driver = "sim";
    cr_assert_eq(ccmr_init(&options), CCMR_SUCCESS);
    options.driver = "cuda";
    cr_assert_eq(ccmr_init(&options), CCMR_ERROR_BUSY);
    options.driver = "nonsense";
    cr_assert_neq(ccmr_init(&options), CCMR_SUCCESS);
}

Test(device, they_are_described)
{
    ccmr_device_info info = {.size = sizeof(info)};
    int count = 0;
    int i;

    cr_assert_eq(ccmr_device_count(&count), CCMR_SUCCESS);
    cr_assert_eq(count, LEAF_DEVICES);
    for (i = 0; i < count; i++) {
        cr_assert_eq(ccmr_device_describe(i, &info), CCMR_SUCCESS);
        cr_assert_neq(info.name[0], '\0');
        cr_assert_gt(info.total_bytes, GIB);
        cr_assert_eq(info.memory_pools, 1);
    }
    cr_assert_eq(ccmr_device_describe(count, &info), CCMR_ERROR_NO_DEVICE);
    cr_assert_eq(ccmr_last_error()->device, count);
}

/* Asking makes no context: a device that is only looked at stays free. */
Test(device, questions_make_no_context)
{
    ccmr_device_info info = {.size = sizeof(info)};
    unsigned flags = 0;
    int active = 1;
    int count;

    cr_assert_eq(ccmr_device_count(&count), CCMR_SUCCESS);
    cr_assert_eq(ccmr_device_describe(1, &info), CCMR_SUCCESS);
    cr_assert_eq(api.cuDevicePrimaryCtxGetState(1, &flags, &active),
                 CUDA_SUCCESS);
    cr_assert_eq(active, 0);
}

Test(device, the_current_one_is_the_context_s)
{
    ccmr_properties properties = {.size = sizeof(properties)};
    ccmr_resource *resource = NULL;
    CUcontext popped;

    cr_assert_eq(ccmr_device_plain_create(CCMR_DEVICE_CURRENT, &resource),
                 CCMR_SUCCESS);
    cr_assert_eq(ccmr_resource_describe(resource, &properties), CCMR_SUCCESS);
    cr_assert_eq(properties.device, 0);
    ccmr_resource_release(resource);
    cr_assert_eq(api.cuCtxPushCurrent(leaf_context(1)), CUDA_SUCCESS);
    cr_assert_eq(ccmr_device_plain_create(CCMR_DEVICE_CURRENT, &resource),
                 CCMR_SUCCESS);
    cr_assert_eq(ccmr_resource_describe(resource, &properties), CCMR_SUCCESS);
    cr_assert_eq(properties.device, 1);
    ccmr_resource_release(resource);
    cr_assert_eq(api.cuCtxPopCurrent(&popped), CUDA_SUCCESS);
}

Test(device, the_default_resource_is_one)
{
    ccmr_resource *first = NULL;
    ccmr_resource *second = NULL;
    ccmr_resource *other = NULL;

    cr_assert_eq(ccmr_device_current_resource(0, &first), CCMR_SUCCESS);
    cr_assert_eq(ccmr_device_current_resource(CCMR_DEVICE_CURRENT, &second),
                 CCMR_SUCCESS);
    cr_assert_eq(ccmr_device_current_resource(1, &other), CCMR_SUCCESS);
    cr_assert_eq(first, second);
    cr_assert_neq(first, other);
    cr_assert_str_eq(ccmr_resource_name(first), "device_pool");
    ccmr_resource_release(first);
    ccmr_resource_release(second);
    ccmr_resource_release(other);
    /* It is kept by the library. */
    cr_assert_eq(ccmr_device_current_resource(0, &second), CCMR_SUCCESS);
    cr_assert_eq(first, second);
    ccmr_resource_release(second);
    cr_assert_eq(ccmr_device_set_current_resource(0, NULL, NULL),
                 CCMR_SUCCESS);
    cr_assert_eq(ccmr_device_set_current_resource(1, NULL, NULL),
                 CCMR_SUCCESS);
}

Test(device, another_resource_takes_its_place)
{
    ccmr_resource *plain = NULL;
    ccmr_resource *previous = NULL;
    ccmr_resource *now = NULL;
    ccmr_stats stats = {.size = sizeof(stats)};
    ccmr_buffer *buffer = NULL;

    cr_assert_eq(ccmr_device_plain_create(0, &plain), CCMR_SUCCESS);
    cr_assert_eq(ccmr_device_set_current_resource(0, plain, &previous),
                 CCMR_SUCCESS);
    cr_assert_null(previous, "none had been made");
    ccmr_resource_release(plain);
    cr_assert_eq(ccmr_device_current_resource(0, &now), CCMR_SUCCESS);
    cr_assert_eq(now, plain);
    cr_assert_eq(
        ccmr_buffer_create(now, 100, NULL, CCMR_STREAM_LEGACY, &buffer),
        CCMR_SUCCESS);
    ccmr_resource_release(now);
    /* The default comes back; what was allocated is not affected. */
    cr_assert_eq(ccmr_device_set_current_resource(0, NULL, &previous),
                 CCMR_SUCCESS);
    cr_assert_eq(previous, plain);
    cr_assert_eq(ccmr_resource_stats(previous, &stats), CCMR_SUCCESS);
    cr_assert_eq(stats.live_bytes, 100);
    ccmr_resource_release(previous);
    cr_assert_eq(ccmr_buffer_destroy(buffer), CCMR_SUCCESS);
    cr_assert_eq(leaf_census().plain_blocks, 0);
    cr_assert_eq(ccmr_device_current_resource(0, &now), CCMR_SUCCESS);
    cr_assert_str_eq(ccmr_resource_name(now), "device_pool");
    ccmr_resource_release(now);
    cr_assert_eq(ccmr_device_set_current_resource(0, NULL, NULL),
                 CCMR_SUCCESS);
}

Test(device, of_another_device_is_refused)
{
    ccmr_resource *plain = NULL;
    ccmr_resource *previous = NULL;
    ccmr_resource *host = NULL;

    cr_assert_eq(ccmr_device_plain_create(1, &plain), CCMR_SUCCESS);
    cr_assert_eq(ccmr_device_set_current_resource(0, plain, &previous),
                 CCMR_ERROR_WRONG_DEVICE);
    cr_assert_null(previous);
    ccmr_resource_release(plain);
    /* What is bound to none serves any. */
    cr_assert_eq(ccmr_host_create(&host), CCMR_SUCCESS);
    cr_assert_eq(ccmr_device_set_current_resource(0, host, NULL),
                 CCMR_SUCCESS);
    ccmr_resource_release(host);
    cr_assert_eq(ccmr_device_set_current_resource(0, NULL, NULL),
                 CCMR_SUCCESS);
}

/* E8: no hidden context on device 0. */
Test(device, device_0_is_left_alone)
{
    static const char *const stacks[] = {
        "device_pool device=1", "device_pool own=yes device=1",
        "device_plain device=1", "legacy_pinned device=1",
        "stream_ordered | device_plain device=1"};
    unsigned flags;
    int active;
    size_t i;

    for (i = 0; i < sizeof(stacks) / sizeof(stacks[0]); i++) {
        ccmr_resource *resource = NULL;
        ccmr_stream stream = NULL;
        void *ptr = NULL;

        cr_assert_eq(ccmr_stack_create(stacks[i], &resource), CCMR_SUCCESS);
        cr_assert_eq(ccmr_stream_create(1, 0, &stream), CCMR_SUCCESS);
        cr_assert_eq(ccmr_resource_allocate(resource, 100, 0, stream, &ptr),
                     CCMR_SUCCESS);
        cr_assert_eq(ccmr_resource_deallocate(resource, ptr, 100, 0, stream),
                     CCMR_SUCCESS);
        cr_assert_eq(
            ccmr_resource_allocate(resource, 100, 0, CCMR_STREAM_LEGACY, &ptr),
            CCMR_SUCCESS);
        cr_assert_eq(
            ccmr_resource_deallocate(resource, ptr, 100, 0, CCMR_STREAM_READY),
            CCMR_SUCCESS);
        cr_assert_eq(ccmr_stream_destroy(stream), CCMR_SUCCESS);
        ccmr_resource_release(resource);
        cr_assert_eq(api.cuDevicePrimaryCtxGetState(0, &flags, &active),
                     CUDA_SUCCESS);
        cr_assert_eq(active, 0, "%s", stacks[i]);
    }
}
