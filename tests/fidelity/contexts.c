/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack of current contexts, and the primary context's life.
 */
#include "tests/fidelity/facts.h"

#include <pthread.h>
#include <stdint.h>

enum { LIMIT_MS = 10000 };

/* The current context, in words. */
static void see_current(const char *what, CUcontext primary, CUcontext other)
{
    CUcontext current = NULL;
    CUresult res = drv.cuCtxGetCurrent(&current);

    fact(what, "%s",
         res != CUDA_SUCCESS  ? result_name(res)
         : current == NULL    ? "none"
         : current == primary ? "primary"
         : current == other   ? "other"
                              : "unknown");
}

static void *see_fresh_thread(void *unused)
{
    CUdevice device = 0;
    CUcontext popped = NULL;

    (void)unused;
    see_current("current", NULL, NULL);
    SEE("pop", cuCtxPopCurrent(&popped));
    SEE("device", cuCtxGetDevice(&device));
    SEE("synchronize", cuCtxSynchronize());
    SEE("set_none", cuCtxSetCurrent(NULL));
    return NULL;
}

/* A thread starts with no current context. */
static void fresh_thread(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, see_fresh_thread, NULL) == 0) {
        pthread_join(thread, NULL);
    }
}

static void stack(void)
{
    CUcontext primary = NULL;
    CUcontext other = NULL;
    CUcontext popped = NULL;

    drv.cuCtxGetCurrent(&primary);
    SEE("create", cuCtxCreate(&other, NULL, 0, 0));
    see_current("after_create", primary, other);
    SEE("pop", cuCtxPopCurrent(&popped));
    fact_yes("popped_other", popped == other);
    see_current("after_pop", primary, other);
    SEE("push", cuCtxPushCurrent(other));
    SEE("push_again", cuCtxPushCurrent(other));
    SEE("set_primary_on_top", cuCtxSetCurrent(primary));
    see_current("after_set", primary, other);
    SEE("pop_it", cuCtxPopCurrent(&popped));
    see_current("below", primary, other);
    SEE("set_none", cuCtxSetCurrent(NULL));
    see_current("after_set_none", primary, other);
    SEE("push_null", cuCtxPushCurrent(NULL));
    SEE("pop_null_pointer", cuCtxPopCurrent(NULL));
    see_current("after_pop_null_pointer", primary, other);
    drv.cuCtxSetCurrent(other);
    SEE("destroy_current", cuCtxDestroy(other));
    see_current("after_destroy_current", primary, other);
    SEE("destroy_null", cuCtxDestroy(NULL));
    SEE("get_null", cuCtxGetCurrent(NULL));
}

static void destroy_primary(void)
{
    CUcontext primary = NULL;

    drv.cuCtxGetCurrent(&primary);
    SEE("result", cuCtxDestroy(primary));
}

static void identity(void)
{
    CUcontext primary = NULL;
    CUcontext again = NULL;
    unsigned long long id = 0;
    unsigned long long current_id = 1;

    drv.cuCtxGetCurrent(&primary);
    SEE("id", cuCtxGetId(primary, &id));
    SEE("id_of_current", cuCtxGetId(NULL, &current_id));
    fact_yes("same_id", id == current_id);
    SEE("retain", cuDevicePrimaryCtxRetain(&again, 0));
    fact_yes("same_handle", primary == again);
    SEE("release", cuDevicePrimaryCtxRelease(0));
}

static void see_state(const char *what)
{
    unsigned int flags = 99;
    int active = 99;
    CUresult res = drv.cuDevicePrimaryCtxGetState(0, &flags, &active);

    if (res != CUDA_SUCCESS) {
        fact_result(what, res);
    } else {
        fact(what, "active %d, flags %u", active, flags);
    }
}

/* Documented: the last release destroys; a new retain makes it anew, at the
 * same handle or another. The flags may be set while it is active too. */
static void release_all(void)
{
    CUcontext primary = NULL;
    CUcontext again = NULL;
    CUdeviceptr address = 0;

    drv.cuCtxGetCurrent(&primary);
    see_state("active");
    SEE("release", cuDevicePrimaryCtxRelease(0));
    see_state("released");
    see_current("current_after_release", primary, NULL);
    SEE("use_after_release", cuMemAlloc(&address, 4096));
    SEE("release_too_often", cuDevicePrimaryCtxRelease(0));
    SEE("set_flags", cuDevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_YIELD));
    see_state("after_set_flags");
    SEE("retain", cuDevicePrimaryCtxRetain(&again, 0));
    fact_yes("same_handle", again == primary);
    see_state("after_retain");
    see_current("current_after_retain", primary, NULL);
    SEE("use_after_retain", cuMemAlloc(&address, 4096));
    SEE("free_after_retain", cuMemFree(address));
    SEE("restore_flags", cuDevicePrimaryCtxSetFlags(0, 0));
    drv.cuCtxSetCurrent(again);
}

/* Documented: reset destroys everything in it, whoever holds it; the handle
 * stays valid for the holders. */
static void reset(void)
{
    CUcontext primary = NULL;
    CUdeviceptr before = 0;
    CUdeviceptr after = 0;

    drv.cuCtxGetCurrent(&primary);
    drv.cuMemAlloc(&before, 4096);
    SEE("reset", cuDevicePrimaryCtxReset(0));
    see_state("state");
    see_current("current", primary, NULL);
    SEE("alloc", cuMemAlloc(&after, 4096));
    SEE("free_earlier_block", cuMemFree(before));
    SEE("set_current", cuCtxSetCurrent(primary));
    SEE("retain", cuDevicePrimaryCtxRetain(&primary, 0));
    SEE("set_current_again", cuCtxSetCurrent(primary));
    SEE("alloc_again", cuMemAlloc(&after, 4096));
}

/* Memory and streams belong to the device and the process; does a block of
 * one context go back from another? */
static void across(void)
{
    CUcontext primary = NULL;
    CUcontext other = NULL;
    CUcontext found = NULL;
    CUstream stream = NULL;
    CUdeviceptr plain = 0;
    CUdeviceptr block = 0;
    CUdevice device = 77;

    drv.cuCtxGetCurrent(&primary);
    drv.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    drv.cuMemAlloc(&plain, 4096);
    SEE("create", cuCtxCreate(&other, NULL, 0, 0));
    SEE("alloc_async_on_foreign_stream",
        cuMemAllocAsync(&block, 4096, stream));
    SEE("stream_context", cuStreamGetCtx(stream, &found));
    fact_yes("stream_context_is_primary", found == primary);
    SEE("stream_device", cuStreamGetDevice(stream, &device));
    fact_number("stream_device_value", device);
    SEE("legacy_context", cuStreamGetCtx(CU_STREAM_LEGACY, &found));
    fact_yes("legacy_context_is_current", found == other);
    SEE("free_async_on_foreign_stream", cuMemFreeAsync(block, stream));
    SEE("free_foreign", cuMemFree(plain));
    SEE("destroy_foreign_stream", cuStreamDestroy(stream));
    SEE("destroy", cuCtxDestroy(other));
    see_current("after_destroy", primary, other);
}

/* What becomes of memory and streams when their context is destroyed. */
static void destroy_with_objects(void)
{
    CUcontext primary = NULL;
    CUcontext other = NULL;
    CUstream stream = NULL;
    CUdeviceptr plain = 0;
    CUdeviceptr block = 0;

    drv.cuCtxGetCurrent(&primary);
    SEE("create", cuCtxCreate(&other, NULL, 0, 0));
    drv.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    drv.cuMemAlloc(&plain, 4096);
    drv.cuMemAllocAsync(&block, 4096, stream);
    drv.cuStreamSynchronize(stream);
    SEE("destroy", cuCtxDestroy(other));
    SEE("set_primary", cuCtxSetCurrent(primary));
    SEE("free_plain", cuMemFree(plain));
    SEE("free_block", cuMemFreeAsync(block, CU_STREAM_LEGACY));
}

/* A destroyed context's handle. */
static void destroyed(void)
{
    CUcontext other = NULL;

    drv.cuCtxCreate(&other, NULL, 0, 0);
    SEE("destroy", cuCtxDestroy(other));
    SEE("set", cuCtxSetCurrent(other));
    SEE("push", cuCtxPushCurrent(other));
    SEE("destroy_again", cuCtxDestroy(other));
}

static const struct fidelity_case context_cases[] = {
    FIDELITY_CASE(fresh_thread),
    FIDELITY_CASE(stack),
    FIDELITY_CASE(identity),
    FIDELITY_CASE(across),
    FIDELITY_CASE(destroy_with_objects),
    FIDELITY_CASE(destroyed),
    FIDELITY_CASE(destroy_primary),
    FIDELITY_CASE(release_all),
    FIDELITY_CASE(reset),
    FIDELITY_END,
};

const struct fidelity_topic context_topic = {
    "context",
    context_cases,
    NULL,
    NULL,
    false,
    LIMIT_MS,
    "Documented: each thread has a stack of contexts, of which the top is "
    "current. What a destroyed one answers was measured.",
};
