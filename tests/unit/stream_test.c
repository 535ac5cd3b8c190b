/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams: registering, recycled handles, keys, and what is asked of the
 * driver about them. Field cases B2, C1, C3, E5.
 */
#include "tests/unit/leaf.h"

#include <stdio.h>
#include <stdlib.h>

#include "lib/context.h"
#include "lib/stream.h"

static ccmr__device *device;
static ccmr__device *other;

static void start(void)
{
    (void)leaf_start();
    cr_assert_eq(ccmr__device_use(0, &device), CCMR_SUCCESS);
    cr_assert_eq(ccmr__device_use(1, &other), CCMR_SUCCESS);
}

static void end(void)
{
    leaf_end();
}

TestSuite(stream, .init = start, .fini = end);

static uint64_t key_of(ccmr_stream stream)
{
    ccmr__stream_use use;

    cr_assert_eq(ccmr__stream_resolve(stream, device, &use), CCMR_SUCCESS,
                 "%s", ccmr_last_error()->message);
    cr_assert_eq(use.handle, stream);
    return use.id;
}

static uint64_t key_of_token(ccmr_stream stream, ccmr__device *on)
{
    ccmr__stream_use use;
    ccmr__scope scope;

    cr_assert_eq(ccmr__scope_enter(&scope, on, 0), CCMR_SUCCESS);
    cr_assert_eq(ccmr__stream_resolve(stream, on, &use), CCMR_SUCCESS);
    ccmr__scope_leave(&scope);
    cr_assert_eq(use.registered, 1);
    return use.id;
}

Test(stream, one_of_ours_is_registered)
{
    ccmr_stream stream = NULL;

    cr_assert_eq(ccmr_stream_create(0, CCMR_STREAM_FLAG_NON_BLOCKING, &stream),
                 CCMR_SUCCESS);
    cr_assert_not_null(ccmr__stream_find(stream));
    cr_assert_eq(ccmr_stream_synchronize(stream, 7), CCMR_SUCCESS,
                 "the device is ignored for a real stream");
    cr_assert_eq(ccmr_stream_destroy(stream), CCMR_SUCCESS);
    cr_assert_null(ccmr__stream_find(stream));
    cr_assert_eq(ccmr_stream_destroy(stream), CCMR_ERROR_INVALID_STREAM);
}

Test(stream, one_of_others_can_be)
{
    ccmr_stream stream = leaf_stream(0);
    uint64_t key = key_of(stream);

    cr_assert_null(ccmr__stream_find(stream));
    cr_assert_eq(ccmr_stream_register(stream), CCMR_SUCCESS);
    cr_assert_eq(ccmr_stream_register(stream), CCMR_SUCCESS);
    cr_assert_not_null(ccmr__stream_find(stream));
    cr_assert_eq(key_of(stream), key, "registering changed the key");
    cr_assert_eq(ccmr_stream_destroy(stream), CCMR_ERROR_INVALID_STREAM,
                 "not ours to destroy");
    cr_assert_eq(ccmr_stream_retire(stream), CCMR_SUCCESS);
    cr_assert_null(ccmr__stream_find(stream));
    cr_assert_eq(ccmr_stream_retire(stream), CCMR_SUCCESS,
                 "retiring is for any stream");
    cr_assert_eq(key_of(stream), key);
    cr_assert_eq(ccmr_stream_register(stream), CCMR_SUCCESS);
    cr_assert_eq(ccmr_stream_retire(stream), CCMR_SUCCESS);
    cr_assert_eq(api.cuStreamDestroy(stream), CUDA_SUCCESS);
}

/* B2: the next stream has the same handle, and is another one. */
Test(stream, a_recycled_handle_is_another_stream)
{
    ccmr_stream first = leaf_stream(0);
    ccmr_stream second;
    uint64_t key = key_of(first);

    cr_assert_eq(ccmr_stream_register(first), CCMR_SUCCESS);
    cr_assert_eq(ccmr_stream_retire(first), CCMR_SUCCESS);
    cr_assert_eq(api.cuStreamDestroy(first), CUDA_SUCCESS);
    second = leaf_stream(0);
    cr_assert_eq(first, second, "the simulator recycles handles");
    cr_assert_null(ccmr__stream_find(second));
    cr_assert_neq(key_of(second), key);
    cr_assert_eq(api.cuStreamDestroy(second), CUDA_SUCCESS);
}

/* A registered stream is asked nothing. */
Test(stream, a_registered_one_costs_no_driver_call)
{
    ccmr_stream stream = NULL;
    uint64_t before;

    cr_assert_eq(ccmr_stream_create(0, 0, &stream), CCMR_SUCCESS);
    before = simulator->calls(NULL);
    (void)key_of(stream);
    cr_assert_eq(ccmr__stream_check(stream, device), CCMR_SUCCESS);
    cr_assert_eq(ccmr__stream_check(CCMR_STREAM_READY, device), CCMR_SUCCESS);
    cr_assert_eq(simulator->calls(NULL), before);
    cr_assert_eq(ccmr_stream_destroy(stream), CCMR_SUCCESS);
}

/* Before anything else an unregistered stream is asked whether it captures,
   and if it does, nothing else. */
Test(stream, a_capturing_one_is_asked_nothing_else)
{
    ccmr_stream stream = leaf_stream(0);
    ccmr_sim_record record;
    ccmr__stream_use use;
    CUgraph graph = NULL;

    cr_assert_eq(
        api.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL),
        CUDA_SUCCESS);
    cr_assert_eq(simulator->log(16), 0);
    cr_assert_eq(ccmr__stream_check(stream, device), CCMR_ERROR_CAPTURING);
    cr_assert_eq(ccmr__stream_resolve(stream, device, &use),
                 CCMR_ERROR_CAPTURING);
    cr_assert_eq(ccmr_stream_register(stream), CCMR_ERROR_CAPTURING);
    cr_assert_eq(simulator->log_count(), 3);
    while (simulator->log_count() > 0 &&
           simulator->log_read(0, &record) == 0) {
        cr_assert_str_eq(record.call, "cuStreamIsCapturing");
        break;
    }
    cr_assert_eq(simulator->log(0), 0);
    cr_assert_null(ccmr__stream_find(stream));
    cr_assert_eq(api.cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    cr_assert_eq(api.cuGraphDestroy(graph), CUDA_SUCCESS);
    cr_assert_eq(ccmr_stream_register(stream), CCMR_SUCCESS);
    cr_assert_eq(ccmr_stream_retire(stream), CCMR_SUCCESS);
    cr_assert_eq(api.cuStreamDestroy(stream), CUDA_SUCCESS);
}

Test(stream, captures_are_announced)
{
    ccmr_stream stream = NULL;

    cr_assert_eq(ccmr_stream_create(0, 0, &stream), CCMR_SUCCESS);
    cr_assert_eq(ccmr_stream_set_capturing(stream, 1), CCMR_SUCCESS);
    cr_assert_eq(ccmr__stream_check(stream, device), CCMR_ERROR_CAPTURING);
    cr_assert_eq(ccmr_stream_synchronize(stream, 0), CCMR_ERROR_CAPTURING);
    cr_assert_eq(ccmr_stream_set_capturing(stream, 0), CCMR_SUCCESS);
    cr_assert_eq(ccmr__stream_check(stream, device), CCMR_SUCCESS);
    cr_assert_eq(ccmr_stream_set_capturing(stream, 17), CCMR_SUCCESS);
    cr_assert_eq(ccmr__stream_check(stream, device), CCMR_ERROR_CAPTURING);
    cr_assert_eq(ccmr_stream_set_capturing(stream, 0), CCMR_SUCCESS);
    cr_assert_eq(ccmr_stream_destroy(stream), CCMR_SUCCESS);
    cr_assert_eq(ccmr_stream_set_capturing(stream, 0),
                 CCMR_ERROR_INVALID_STREAM);
}

/* Whatever resources there are: here is none that would ask. */
Test(stream, one_that_captures_is_not_retired)
{
    ccmr_stream stream = leaf_stream(0);
    ccmr_stream ours = NULL;

    cr_assert_eq(ccmr_stream_create(0, 0, &ours), CCMR_SUCCESS);
    cr_assert_eq(ccmr_stream_set_capturing(ours, 1), CCMR_SUCCESS);
    cr_assert_eq(ccmr_stream_destroy(ours), CCMR_ERROR_CAPTURING);
    cr_assert_eq(ccmr_stream_set_capturing(ours, 0), CCMR_SUCCESS);
    cr_assert_eq(ccmr_stream_destroy(ours), CCMR_SUCCESS);
    cr_assert_eq(ccmr_stream_register(stream), CCMR_SUCCESS);
    cr_assert_eq(ccmr_stream_set_capturing(stream, 1), CCMR_SUCCESS);
    cr_assert_eq(ccmr_stream_retire(stream), CCMR_ERROR_CAPTURING);
    cr_assert_not_null(ccmr__stream_find(stream));
    cr_assert_eq(ccmr__stream_check(stream, device), CCMR_ERROR_CAPTURING);
    cr_assert_eq(ccmr_stream_set_capturing(stream, 0), CCMR_SUCCESS);
    cr_assert_eq(ccmr_stream_retire(stream), CCMR_SUCCESS);
    cr_assert_eq(ccmr_stream_register(stream), CCMR_SUCCESS);
    cr_assert_eq(ccmr__stream_check(stream, device), CCMR_SUCCESS);
    cr_assert_eq(ccmr_stream_retire(stream), CCMR_SUCCESS);
    cr_assert_eq(api.cuStreamDestroy(stream), CUDA_SUCCESS);
}

/* E5 */
Test(stream, of_another_device_is_refused_by_name)
{
    ccmr_stream foreign = leaf_stream(1);
    ccmr_stream registered = NULL;

    cr_assert_eq(ccmr_stream_create(1, 0, &registered), CCMR_SUCCESS);
    cr_assert_eq(ccmr__stream_check(foreign, device), CCMR_ERROR_WRONG_DEVICE);
    cr_assert_not_null(strstr(ccmr_last_error()->message, "device 1"));
    cr_assert_not_null(strstr(ccmr_last_error()->message, "device 0"));
    cr_assert_eq(ccmr__stream_check(registered, device),
                 CCMR_ERROR_WRONG_DEVICE);
    cr_assert_eq(ccmr__stream_check(foreign, other), CCMR_SUCCESS);
    cr_assert_eq(ccmr__stream_check(registered, other), CCMR_SUCCESS);
    cr_assert_eq(ccmr_stream_destroy(registered), CCMR_SUCCESS);
    cr_assert_eq(api.cuStreamDestroy(foreign), CUDA_SUCCESS);
}

typedef struct token_keys {
    uint64_t legacy;
    uint64_t per_thread;
} token_keys;

static void *keys_of_thread(void *argument)
{
    token_keys *keys = argument;

    keys->legacy = key_of_token(CCMR_STREAM_LEGACY, device);
    keys->per_thread = key_of_token(CCMR_STREAM_PER_THREAD, device);
    return NULL;
}

/* C1, C3: a token is a stream a device, and a thread. */
Test(stream, tokens_have_keys_of_their_own)
{
    token_keys keys = {0, 0};
    uint64_t legacy = key_of_token(CCMR_STREAM_LEGACY, device);
    uint64_t per_thread = key_of_token(CCMR_STREAM_PER_THREAD, device);
    pthread_t thread;

    cr_assert_neq(legacy, per_thread);
    cr_assert_neq(legacy, key_of_token(CCMR_STREAM_LEGACY, other));
    cr_assert_neq(per_thread, key_of_token(CCMR_STREAM_PER_THREAD, other));
    cr_assert_eq(pthread_create(&thread, NULL, keys_of_thread, &keys), 0);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    cr_assert_eq(keys.legacy, legacy);
    cr_assert_neq(keys.per_thread, per_thread);
}

Test(stream, tokens_are_registered_already)
{
    cr_assert_eq(ccmr_stream_register(CCMR_STREAM_LEGACY), CCMR_SUCCESS);
    cr_assert_eq(ccmr_stream_register(CCMR_STREAM_PER_THREAD), CCMR_SUCCESS);
    cr_assert_eq(ccmr_stream_retire(CCMR_STREAM_LEGACY),
                 CCMR_ERROR_INVALID_STREAM);
    cr_assert_eq(ccmr_stream_set_capturing(CCMR_STREAM_LEGACY, 1),
                 CCMR_ERROR_INVALID_STREAM);
    cr_assert_null(ccmr__stream_find(CCMR_STREAM_LEGACY));
    cr_assert_eq(ccmr_stream_synchronize(CCMR_STREAM_LEGACY, 1), CCMR_SUCCESS);
    cr_assert_eq(
        ccmr_stream_synchronize(CCMR_STREAM_LEGACY, CCMR_DEVICE_CURRENT),
        CCMR_SUCCESS);
    cr_assert_eq(ccmr_stream_synchronize(NULL, 0), CCMR_SUCCESS);
}

/* More than there are buckets, found all the same, and forgotten again. */
Test(stream, thousands_can_be_registered)
{
    enum { COUNT = 3000 };
    ccmr_stream *streams = calloc(COUNT, sizeof(*streams));
    int i;

    cr_assert_not_null(streams);
    for (i = 0; i < COUNT; i++) {
        cr_assert_eq(ccmr_stream_create(i % 2, 0, &streams[i]), CCMR_SUCCESS);
    }
    for (i = 0; i < COUNT; i++) {
        const ccmr__stream_record *record = ccmr__stream_find(streams[i]);

        cr_assert_not_null(record);
        cr_assert_eq(record->device, i % 2);
    }
    for (i = 0; i < COUNT; i++) {
        cr_assert_eq(ccmr_stream_destroy(streams[i]), CCMR_SUCCESS);
        cr_assert_null(ccmr__stream_find(streams[i]));
    }
    cr_assert_eq(leaf_census().streams, 0);
    free(streams);
}

Test(stream, destroying_that_fails_leaves_it_registered)
{
    ccmr_stream stream = NULL;

    cr_assert_eq(ccmr_stream_create(0, 0, &stream), CCMR_SUCCESS);
    cr_assert_eq(simulator->fail("cuStreamDestroy", 1, CUDA_ERROR_UNKNOWN), 0);
    cr_assert_eq(ccmr_stream_destroy(stream), CCMR_ERROR_DRIVER);
    cr_assert_str_eq(ccmr_last_error()->driver_call, "cuStreamDestroy");
    cr_assert_not_null(ccmr__stream_find(stream));
    cr_assert_eq(ccmr_stream_destroy(stream), CCMR_SUCCESS);
}

Test(stream, foreign_objects_are_converted)
{
    ccmr_stream stream = (ccmr_stream)(uintptr_t)5;

    cr_assert_eq(ccmr_stream_from_protocol(0, 0x1234560, &stream),
                 CCMR_SUCCESS);
    cr_assert_eq((uintptr_t)stream, 0x1234560u);
    cr_assert_eq(ccmr_stream_from_protocol(0, 0, &stream), CCMR_SUCCESS);
    cr_assert_eq(stream, CCMR_STREAM_LEGACY);
    cr_assert_eq(ccmr_stream_from_protocol(0, 2, &stream), CCMR_SUCCESS);
    cr_assert_eq(stream, CCMR_STREAM_PER_THREAD);
    cr_assert_eq(ccmr_stream_from_protocol(1, 0, &stream),
                 CCMR_ERROR_NOT_SUPPORTED);
    cr_assert_eq(ccmr_stream_from_protocol(0, UINT64_MAX, &stream),
                 CCMR_ERROR_INVALID_STREAM);
    cr_assert_eq(stream, CCMR_STREAM_PER_THREAD, "an output was written");
}

/* Drivers before 12.0 have no ids; before 12.8 the device is asked by way of
   the context. */
Test(old_driver_stream, will_do)
{
    const ccmr_sim_table *sim = leaf_simulator();
    ccmr_stream stream = NULL;
    ccmr_stream foreign;
    ccmr_stream away;

    cr_assert_eq(sim->hide("cuStreamGetId"), 0);
    cr_assert_eq(sim->hide("cuStreamGetDevice"), 0);
    start();
    foreign = leaf_stream(0);
    away = leaf_stream(1);
    cr_assert_eq(ccmr_stream_create(0, 0, &stream), CCMR_SUCCESS);
    cr_assert_neq(key_of(stream), key_of(foreign));
    cr_assert_eq(ccmr__stream_check(away, device), CCMR_ERROR_WRONG_DEVICE);
    cr_assert_eq(ccmr_stream_register(foreign), CCMR_SUCCESS);
    cr_assert_eq(ccmr_stream_retire(foreign), CCMR_SUCCESS);
    cr_assert_null(leaf_current(), "the context was not restored");
    cr_assert_eq(ccmr_stream_destroy(stream), CCMR_SUCCESS);
    cr_assert_eq(api.cuStreamDestroy(foreign), CUDA_SUCCESS);
    cr_assert_eq(api.cuStreamDestroy(away), CUDA_SUCCESS);
    end();
}

Test(stream, one_of_ours_that_is_retired_can_be_destroyed)
{
    ccmr_stream stream = NULL;

    cr_assert_eq(ccmr_stream_create(0, 0, &stream), CCMR_SUCCESS);
    cr_assert_eq(ccmr_stream_retire(stream), CCMR_SUCCESS);
    cr_assert_null(ccmr__stream_find(stream));
    cr_assert_eq(ccmr_stream_destroy(stream), CCMR_SUCCESS, "%s",
                 ccmr_last_error()->message);
    cr_assert_eq(ccmr_stream_destroy(stream), CCMR_ERROR_INVALID_STREAM);

    cr_assert_eq(ccmr_stream_create(0, 0, &stream), CCMR_SUCCESS);
    cr_assert_eq(ccmr_stream_retire(stream), CCMR_SUCCESS);
    cr_assert_eq(ccmr_stream_register(stream), CCMR_SUCCESS);
    cr_assert_not_null(ccmr__stream_find(stream));
    cr_assert_eq(ccmr_stream_destroy(stream), CCMR_SUCCESS, "%s",
                 ccmr_last_error()->message);
}
