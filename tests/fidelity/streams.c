/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams and events: identity, life, what finishes when.
 */
#include "tests/fidelity/calls.h"
#include "tests/fidelity/facts.h"
#include "tests/fidelity/hold.h"

#include <pthread.h>
#include <time.h>

enum { LIMIT_MS = 4500, MANY = 64 };

static CUevent make_event(unsigned int flags)
{
    CUevent event = NULL;
    CUresult res = drv.cuEventCreate(&event, flags);

    if (res != CUDA_SUCCESS) {
        fact_result("create_event", res);
    }
    return event;
}

static unsigned long long id_of(CUstream stream)
{
    unsigned long long id = 0;

    return drv.cuStreamGetId(stream, &id) == CUDA_SUCCESS ? id : 0;
}

static void *store_per_thread_id(void *argument)
{
    unsigned long long *id = argument;
    CUcontext context = NULL;

    drv.cuDevicePrimaryCtxRetain(&context, 0);
    drv.cuCtxSetCurrent(context);
    *id = id_of(CU_STREAM_PER_THREAD);
    drv.cuDevicePrimaryCtxRelease(0);
    return NULL;
}

/* ---- stream ---- */

static void token_ids(void)
{
    unsigned long long elsewhere = 0;
    unsigned long long legacy = id_of(CU_STREAM_LEGACY);
    unsigned long long mine = id_of(CU_STREAM_PER_THREAD);
    pthread_t thread;

    fact_yes("legacy_is_null", id_of(NULL) == legacy);
    fact("legacy_value", "%s",
         legacy == 0   ? "0"
         : legacy == 1 ? "1"
                       : "other");
    fact("per_thread_value", "%s",
         mine == 0   ? "0"
         : mine == 2 ? "2"
                     : "other");
    fact_yes("tokens_differ", legacy != mine);
    if (pthread_create(&thread, NULL, store_per_thread_id, &elsewhere) == 0) {
        pthread_join(thread, NULL);
        fact_yes("per_thread_differs_elsewhere", elsewhere != mine);
    }
    fact_yes("per_thread_is_stable", id_of(CU_STREAM_PER_THREAD) == mine);
    fact_yes("legacy_is_stable", id_of(CU_STREAM_LEGACY) == legacy);
    SEE("null_output", cuStreamGetId(CU_STREAM_LEGACY, NULL));
}

/* Ids of the legacy stream in two contexts. */
static void token_ids_by_context(void)
{
    unsigned long long legacy = id_of(CU_STREAM_LEGACY);
    unsigned long long mine = id_of(CU_STREAM_PER_THREAD);
    CUcontext other = NULL;

    SEE("create", cuCtxCreate(&other, NULL, 0, 0));
    fact_yes("legacy_differs", id_of(CU_STREAM_LEGACY) != legacy);
    fact_yes("per_thread_differs", id_of(CU_STREAM_PER_THREAD) != mine);
    drv.cuCtxDestroy(other);
}

static void ids(void)
{
    CUstream stream[MANY];
    unsigned long long id[MANY];
    bool unique = true;
    bool rising = true;

    for (size_t i = 0; i < MANY; i++) {
        stream[i] = make_stream(CU_STREAM_NON_BLOCKING);
        id[i] = id_of(stream[i]);
        for (size_t j = 0; j < i; j++) {
            unique = unique && id[i] != id[j];
        }
        rising = rising && (i == 0 || id[i] > id[i - 1]);
    }
    fact_yes("unique", unique);
    fact_yes("rising", rising);
    fact_yes("stable", id_of(stream[0]) == id[0]);
    for (size_t i = 0; i < MANY; i++) {
        drv.cuStreamDestroy(stream[i]);
    }
}

/* Measured: a handle comes again at once, with a new id. */
static void recycled(void)
{
    CUstream first = make_stream(CU_STREAM_NON_BLOCKING);
    unsigned long long id = id_of(first);
    CUstream second;

    SEE("destroy", cuStreamDestroy(first));
    second = make_stream(CU_STREAM_NON_BLOCKING);
    fact_yes("same_handle", first == second);
    fact_yes("new_id", id_of(second) != id);
    drv.cuStreamDestroy(second);
}

static void recycled_while_held(void)
{
    CUstream first = make_stream(CU_STREAM_NON_BLOCKING);
    unsigned long long id = id_of(first);
    CUstream second;

    if (hold(first)) {
        SEE("destroy", cuStreamDestroy(first));
        second = make_stream(CU_STREAM_NON_BLOCKING);
        fact_yes("same_handle", first == second);
        fact_yes("new_id", id_of(second) != id);
        SEE("new_one_is_idle", cuStreamQuery(second));
        fact_yes("still_held", let_go());
        drv.cuStreamDestroy(second);
    }
}

static void created(void)
{
    CUstream stream = NULL;
    CUstream blocking = make_stream(CU_STREAM_DEFAULT);
    CUstream other = make_stream(CU_STREAM_NON_BLOCKING);
    unsigned int flags = 99;
    CUdevice device = 77;
    int priority = 99;

    SEE("flags_blocking", cuStreamGetFlags(blocking, &flags));
    fact_number("flags_blocking_value", flags);
    SEE("flags_nonblocking", cuStreamGetFlags(other, &flags));
    fact_number("flags_nonblocking_value", flags);
    SEE("flags_legacy", cuStreamGetFlags(CU_STREAM_LEGACY, &flags));
    fact_number("flags_legacy_value", flags);
    SEE("flags_per_thread", cuStreamGetFlags(CU_STREAM_PER_THREAD, &flags));
    fact_number("flags_per_thread_value", flags);
    SEE("priority", cuStreamGetPriority(other, &priority));
    fact_number("priority_value", priority);
    SEE("device", cuStreamGetDevice(other, &device));
    fact_number("device_value", device);
    SEE("bad_flags", cuStreamCreate(&stream, 2));
    SEE("null_output", cuStreamCreate(NULL, 0));
    SEE("with_priority",
        cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, -1));
    SEE("with_priority_get", cuStreamGetPriority(stream, &priority));
    fact_number("with_priority_value", priority);
    drv.cuStreamDestroy(stream);
    SEE("with_priority_low",
        cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 100));
    SEE("with_priority_low_get", cuStreamGetPriority(stream, &priority));
    fact_number("with_priority_low_value", priority);
    drv.cuStreamDestroy(stream);
    SEE("with_priority_high",
        cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, -100));
    SEE("with_priority_high_get", cuStreamGetPriority(stream, &priority));
    fact_number("with_priority_high_value", priority);
    drv.cuStreamDestroy(stream);
    drv.cuStreamDestroy(blocking);
    drv.cuStreamDestroy(other);
}

static void destroy_odd(void)
{
    SEE("null", cuStreamDestroy(NULL));
    SEE("legacy", cuStreamDestroy(CU_STREAM_LEGACY));
    SEE("per_thread", cuStreamDestroy(CU_STREAM_PER_THREAD));
}

/* Documented: destruction returns at once, the work is still done. */
static void destroy_busy(void)
{
    CUdeviceptr target = 0;
    CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
    unsigned char byte = 0;

    drv.cuMemAlloc(&target, 4096);
    drv.cuMemsetD8(target, 1, 4096);
    if (hold(stream)) {
        SEE("fill", cuMemsetD8Async(target, 2, 4096, stream));
        SEE("destroy", cuStreamDestroy(stream));
        fact_yes("still_held", let_go());
        SEE("synchronize", cuCtxSynchronize());
        drv.cuMemcpyDtoH(&byte, target, 1);
        fact_number("byte", byte);
    }
    drv.cuMemFree(target);
}

/*
 * The legacy stream and blocking streams wait for each other. Work on `asked`
 * gets 20 ms: is it done while `held` is still held?
 */
static void see_follows(const char *what, CUstream held, CUstream asked,
                        CUdeviceptr target)
{
    const struct timespec pause = {0, 20000000};
    CUresult res;

    if (hold(held)) {
        res = drv.cuMemsetD8Async(target, 1, 4096, asked);
        if (res == CUDA_SUCCESS) {
            nanosleep(&pause, NULL);
            res = drv.cuStreamQuery(asked);
        }
        fact_result(what, res);
        let_go();
    }
    drv.cuCtxSynchronize();
}

static void implicit_order(void)
{
    CUstream blocking = make_stream(CU_STREAM_DEFAULT);
    CUstream second = make_stream(CU_STREAM_DEFAULT);
    CUstream free_one = make_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr target = 0;

    drv.cuMemAlloc(&target, 4096);
    see_follows("legacy_after_blocking", blocking, CU_STREAM_LEGACY, target);
    see_follows("blocking_after_legacy", CU_STREAM_LEGACY, blocking, target);
    see_follows("legacy_after_nonblocking", free_one, CU_STREAM_LEGACY,
                target);
    see_follows("nonblocking_after_legacy", CU_STREAM_LEGACY, free_one,
                target);
    see_follows("blocking_after_blocking", blocking, second, target);
    see_follows("per_thread_after_legacy", CU_STREAM_LEGACY,
                CU_STREAM_PER_THREAD, target);
    see_follows("legacy_after_per_thread", CU_STREAM_PER_THREAD,
                CU_STREAM_LEGACY, target);
    see_follows("null_after_blocking", blocking, NULL, target);
    drv.cuMemFree(target);
    drv.cuStreamDestroy(blocking);
    drv.cuStreamDestroy(second);
    drv.cuStreamDestroy(free_one);
}

static void null_outputs(void)
{
    CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);

    SEE("id", cuStreamGetId(stream, NULL));
    SEE("capturing", cuStreamIsCapturing(stream, NULL));
    SEE("device", cuStreamGetDevice(stream, NULL));
    SEE("context", cuStreamGetCtx(stream, NULL));
    SEE("host_function", cuLaunchHostFunc(stream, NULL, NULL));
    drv.cuStreamDestroy(stream);
}

/* Measured: the unique id of a destroyed stream crashes. What else does? */
#define USE_DESTROYED(name, call)                                             \
    static void destroyed_##name(void)                                        \
    {                                                                         \
        CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);                \
                                                                              \
        drv.cuStreamDestroy(stream);                                          \
        SEE("result", call);                                                  \
    }

static CUstreamCaptureStatus any_status;
static unsigned long long any_id;
static CUdevice any_device;
static CUcontext any_context;
static CUdeviceptr any_address;

USE_DESTROYED(id, cuStreamGetId(stream, &any_id))
USE_DESTROYED(capturing, cuStreamIsCapturing(stream, &any_status))
USE_DESTROYED(device, cuStreamGetDevice(stream, &any_device))
USE_DESTROYED(context, cuStreamGetCtx(stream, &any_context))
USE_DESTROYED(query, cuStreamQuery(stream))
USE_DESTROYED(synchronize, cuStreamSynchronize(stream))
USE_DESTROYED(alloc, cuMemAllocAsync(&any_address, 4096, stream))
USE_DESTROYED(destroy, cuStreamDestroy(stream))

static const struct fidelity_case stream_cases[] = {
    FIDELITY_CASE(token_ids),
    FIDELITY_CASE(token_ids_by_context),
    FIDELITY_CASE(ids),
    FIDELITY_CASE(recycled),
    FIDELITY_CASE(recycled_while_held),
    FIDELITY_CASE(created),
    FIDELITY_CASE(destroy_busy),
    FIDELITY_CASE(implicit_order),
    FIDELITY_CASE(null_outputs),
    FIDELITY_CASE(destroy_odd),
    FIDELITY_CASE(destroyed_id),
    FIDELITY_CASE(destroyed_capturing),
    FIDELITY_CASE(destroyed_device),
    FIDELITY_CASE(destroyed_context),
    FIDELITY_CASE(destroyed_query),
    FIDELITY_CASE(destroyed_synchronize),
    FIDELITY_CASE(destroyed_alloc),
    FIDELITY_CASE(destroyed_destroy),
    FIDELITY_END,
};

const struct fidelity_topic stream_topic = {
    "stream",
    stream_cases,
    NULL,
    NULL,
    false,
    LIMIT_MS,
    "Documented: the legacy stream and blocking ones wait for each other. "
    "Ids, recycled handles and what crashes were measured.",
};

/* ---- event ---- */

/* Documented: an event that was never recorded counts as complete. */
static void never_recorded(void)
{
    CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
    CUevent event = make_event(CU_EVENT_DEFAULT);
    CUevent recorded = make_event(CU_EVENT_DEFAULT);
    float ms = 0;

    SEE("query", cuEventQuery(event));
    SEE("synchronize", cuEventSynchronize(event));
    SEE("wait", cuStreamWaitEvent(stream, event, 0));
    drv.cuEventRecord(recorded, stream);
    drv.cuStreamSynchronize(stream);
    SEE("elapsed", cuEventElapsedTime(&ms, event, recorded));
    SEE("elapsed_with_itself", cuEventElapsedTime(&ms, recorded, recorded));
    drv.cuEventDestroy(event);
    drv.cuEventDestroy(recorded);
    drv.cuStreamDestroy(stream);
}

static void pending(void)
{
    CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
    CUstream other = make_stream(CU_STREAM_NON_BLOCKING);
    CUevent before = make_event(CU_EVENT_DISABLE_TIMING);
    CUevent event = make_event(CU_EVENT_DISABLE_TIMING);

    SEE("record_before", cuEventRecord(before, stream));
    drv.cuStreamSynchronize(stream);
    if (hold(stream)) {
        SEE("record", cuEventRecord(event, stream));
        SEE("query", cuEventQuery(event));
        SEE("query_before", cuEventQuery(before));
        SEE("stream_query", cuStreamQuery(stream));
        SEE("wait", cuStreamWaitEvent(other, event, 0));
        SEE("waiter_query", cuStreamQuery(other));
        let_go_after(HOLD_DELAY_MS);
        SEE("synchronize", cuEventSynchronize(event));
        fact_yes("waited", !let_go());
        SEE("query_after", cuEventQuery(event));
    }
    SEE("waiter", cuStreamSynchronize(other));
    drv.cuEventDestroy(before);
    drv.cuEventDestroy(event);
    drv.cuStreamDestroy(stream);
    drv.cuStreamDestroy(other);
}

/* Documented: a wait is bound to the last record at the time of the call, and
 * a later record doesn't change it. */
static void recorded_again(void)
{
    CUstream held = make_stream(CU_STREAM_NON_BLOCKING);
    CUstream idle = make_stream(CU_STREAM_NON_BLOCKING);
    CUstream waiter = make_stream(CU_STREAM_NON_BLOCKING);
    CUevent event = make_event(CU_EVENT_DISABLE_TIMING);

    if (hold(held)) {
        drv.cuEventRecord(event, held);
        drv.cuStreamWaitEvent(waiter, event, 0);
        SEE("record_again", cuEventRecord(event, idle));
        drv.cuStreamSynchronize(idle);
        SEE("query", cuEventQuery(event));
        SEE("waiter_query", cuStreamQuery(waiter));
        fact_yes("still_held", let_go());
    }
    drv.cuCtxSynchronize();
    drv.cuEventDestroy(event);
    drv.cuStreamDestroy(held);
    drv.cuStreamDestroy(idle);
    drv.cuStreamDestroy(waiter);
}

/* Documented: destroying a pending event returns at once. */
static void destroyed_pending(void)
{
    CUstream held = make_stream(CU_STREAM_NON_BLOCKING);
    CUstream waiter = make_stream(CU_STREAM_NON_BLOCKING);
    CUevent event = make_event(CU_EVENT_DISABLE_TIMING);

    if (hold(held)) {
        drv.cuEventRecord(event, held);
        drv.cuStreamWaitEvent(waiter, event, 0);
        SEE("destroy", cuEventDestroy(event));
        SEE("waiter_query", cuStreamQuery(waiter));
        fact_yes("still_held", let_go());
        SEE("synchronize", cuStreamSynchronize(waiter));
    }
    drv.cuStreamDestroy(held);
    drv.cuStreamDestroy(waiter);
}

/* The stream goes, the event stays. */
static void stream_destroyed(void)
{
    CUstream held = make_stream(CU_STREAM_NON_BLOCKING);
    CUstream waiter = make_stream(CU_STREAM_NON_BLOCKING);
    CUevent event = make_event(CU_EVENT_DISABLE_TIMING);

    if (hold(held)) {
        drv.cuEventRecord(event, held);
        SEE("destroy", cuStreamDestroy(held));
        SEE("query", cuEventQuery(event));
        SEE("wait", cuStreamWaitEvent(waiter, event, 0));
        SEE("waiter_query", cuStreamQuery(waiter));
        fact_yes("still_held", let_go());
        SEE("synchronize", cuEventSynchronize(event));
    }
    drv.cuCtxSynchronize();
    drv.cuEventDestroy(event);
    drv.cuStreamDestroy(waiter);
}

/* Documented: event and stream must be of one context to record; a wait may
 * cross contexts. */
static void across_contexts(void)
{
    CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
    CUevent event = make_event(CU_EVENT_DISABLE_TIMING);
    CUcontext primary = NULL;
    CUcontext other = NULL;
    CUstream foreign;

    drv.cuCtxGetCurrent(&primary);
    SEE("create", cuCtxCreate(&other, NULL, 0, 0));
    foreign = make_stream(CU_STREAM_NON_BLOCKING);
    SEE("record_on_foreign_stream", cuEventRecord(event, foreign));
    SEE("record_on_own_stream", cuEventRecord(event, stream));
    SEE("wait_on_foreign_stream", cuStreamWaitEvent(foreign, event, 0));
    SEE("query", cuEventQuery(event));
    SEE("synchronize", cuEventSynchronize(event));
    SEE("destroy", cuEventDestroy(event));
    drv.cuStreamDestroy(foreign);
    drv.cuCtxDestroy(other);
    drv.cuCtxSetCurrent(primary);
    drv.cuStreamDestroy(stream);
}

static void errors(void)
{
    CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
    CUevent plain = make_event(CU_EVENT_DISABLE_TIMING);
    CUevent timed = make_event(CU_EVENT_DEFAULT);
    CUevent event = NULL;
    float ms = 0;

    SEE("bad_flags", cuEventCreate(&event, 64));
    SEE("blocking_sync", cuEventCreate(&event, CU_EVENT_BLOCKING_SYNC));
    drv.cuEventDestroy(event);
    SEE("interprocess_with_timing",
        cuEventCreate(&event, CU_EVENT_INTERPROCESS));
    SEE("null_output", cuEventCreate(NULL, 0));
    drv.cuEventRecord(plain, stream);
    drv.cuEventRecord(timed, stream);
    drv.cuStreamSynchronize(stream);
    SEE("elapsed_without_timing", cuEventElapsedTime(&ms, plain, timed));
    SEE("elapsed_null", cuEventElapsedTime(NULL, timed, timed));
    SEE("wait_bad_flags", cuStreamWaitEvent(stream, plain, 64));
    SEE("record_bad_flags", cuEventRecordWithFlags(plain, stream, 64));
    SEE("record_external",
        cuEventRecordWithFlags(plain, stream, CU_EVENT_RECORD_EXTERNAL));
    drv.cuEventDestroy(plain);
    drv.cuEventDestroy(timed);
    drv.cuStreamDestroy(stream);
}

static void null_query(void)
{
    SEE("result", cuEventQuery(NULL));
}

static void null_record(void)
{
    SEE("result", cuEventRecord(NULL, CU_STREAM_LEGACY));
}

static void null_wait(void)
{
    SEE("result", cuStreamWaitEvent(CU_STREAM_LEGACY, NULL, 0));
}

static void null_destroy(void)
{
    SEE("result", cuEventDestroy(NULL));
}

static void destroyed_query_event(void)
{
    CUevent event = make_event(CU_EVENT_DISABLE_TIMING);

    drv.cuEventDestroy(event);
    SEE("result", cuEventQuery(event));
}

static void destroyed_record(void)
{
    CUevent event = make_event(CU_EVENT_DISABLE_TIMING);

    drv.cuEventDestroy(event);
    SEE("result", cuEventRecord(event, CU_STREAM_LEGACY));
}

static void destroyed_twice(void)
{
    CUevent event = make_event(CU_EVENT_DISABLE_TIMING);

    drv.cuEventDestroy(event);
    SEE("result", cuEventDestroy(event));
}

static const struct fidelity_case event_cases[] = {
    FIDELITY_CASE(never_recorded),
    FIDELITY_CASE(pending),
    FIDELITY_CASE(recorded_again),
    FIDELITY_CASE(destroyed_pending),
    FIDELITY_CASE(stream_destroyed),
    FIDELITY_CASE(across_contexts),
    FIDELITY_CASE(errors),
    FIDELITY_CASE(null_query),
    FIDELITY_CASE(null_record),
    FIDELITY_CASE(null_wait),
    FIDELITY_CASE(null_destroy),
    FIDELITY_CASE(destroyed_query_event),
    FIDELITY_CASE(destroyed_record),
    FIDELITY_CASE(destroyed_twice),
    FIDELITY_END,
};

const struct fidelity_topic event_topic = {
    "event",
    event_cases,
    NULL,
    NULL,
    false,
    LIMIT_MS,
    "Documented: an event stands for its last record, and one without any is "
    "done. What becomes of destroyed ones was measured.",
};
