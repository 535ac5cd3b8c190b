/* SPDX-License-Identifier: Apache-2.0 */
/* The simulator under several threads; meant for the thread sanitizer, too. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "tests/simulation/driver.h"
#include "tests/support/tap.h"

enum { THREADS = 4, ROUNDS = 2000 };

static CUcontext primary;
static CUmemoryPool shared_pool;
static atomic_int bad;

static void CUDA_CB add_one(void *number)
{
    (*(int *)number)++;
}

/* Allocate, write, read back, free, in many variations. */
static void *work(void *argument)
{
    unsigned mine = (unsigned)(uintptr_t)argument + 1;
    CUevent event = NULL;
    int counted = 0;
    CUstream stream;
    unsigned i;

    drv.cuCtxSetCurrent(primary);
    stream = new_stream();
    drv.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    for (i = 0; i < ROUNDS; i++) {
        size_t bytes = 64 + (i * 797 + mine * 131) % 100000;
        CUdeviceptr block = 0;
        unsigned char byte = 0;

        bad += drv.cuMemAllocFromPoolAsync(&block, bytes, shared_pool,
                                           stream) != CUDA_SUCCESS;
        drv.cuMemsetD8Async(block, (unsigned char)mine, bytes, stream);
        drv.cuEventRecord(event, stream);
        drv.cuStreamWaitEvent(CU_STREAM_PER_THREAD, event, 0);
        drv.cuMemcpyDtoHAsync(&byte, block + bytes - 1, 1,
                              CU_STREAM_PER_THREAD);
        bad += byte != mine;
        drv.cuLaunchHostFunc(CU_STREAM_PER_THREAD, add_one, &counted);
        bad += drv.cuMemFreeAsync(block, CU_STREAM_PER_THREAD) != CUDA_SUCCESS;
        if (i % 50 == 0) {
            bad += drv.cuStreamSynchronize(stream) != CUDA_SUCCESS;
            bad += drv.cuEventQuery(event) != CUDA_SUCCESS;
        }
    }
    bad += drv.cuStreamSynchronize(CU_STREAM_PER_THREAD) != CUDA_SUCCESS;
    bad += counted != ROUNDS;
    drv.cuEventDestroy(event);
    drv.cuStreamDestroy(stream);
    return NULL;
}

static void crowd(ccmr_sim_mode mode, uint64_t seed)
{
    pthread_t thread[THREADS];
    uintptr_t i;

    driver_start(mode, seed);
    drv.cuCtxGetCurrent(&primary);
    shared_pool = new_pool(0);
    bad = 0;
    for (i = 0; i < THREADS; i++) {
        pthread_create(&thread[i], NULL, work, (void *)i);
    }
    for (i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
    }
    tap_is_int(bad, 0, "mode %d: %d threads share a pool", mode, THREADS);
    drv.cuCtxSynchronize();
    tap_is_int(census_now().pool_blocks, 0, "and leave nothing in it");
    drv.cuMemPoolDestroy(shared_pool);
    check_nothing_left("crowd");
}

static void *release_soon(void *stream)
{
    const struct timespec pause = {0, 30000000};

    nanosleep(&pause, NULL);
    sim->release(stream);
    return NULL;
}

/* A thread that waits is woken by another that releases. */
static void woken(void)
{
    CUdeviceptr address = 0;
    pthread_t thread;
    CUstream stream;
    int ran = 0;

    driver_start(CCMR_SIM_EAGER, 0);
    stream = new_stream();
    drv.cuMemAlloc(&address, 64);
    sim->stall(stream);
    drv.cuLaunchHostFunc(stream, add_one, &ran);
    pthread_create(&thread, NULL, release_soon, stream);
    CHECK(drv.cuMemFree(address));
    tap_is_int(ran, 1, "a free waited until the stream was released");
    pthread_join(thread, NULL);
    drv.cuStreamDestroy(stream);
    check_nothing_left("woken");
}

static atomic_int inside;
static atomic_int leave;

static void CUDA_CB linger(void *unused)
{
    const struct timespec pause = {0, 1000000};

    (void)unused;
    inside = 1;
    while (leave == 0) {
        nanosleep(&pause, NULL);
    }
}

static void *enqueue_linger(void *stream)
{
    drv.cuCtxSetCurrent(primary);
    drv.cuLaunchHostFunc(stream, linger, NULL);
    return NULL;
}

/* While one thread is in a host function, the others go on. */
static void apart(void)
{
    const struct timespec pause = {0, 1000000};
    pthread_t thread;
    CUstream one, two;

    driver_start(CCMR_SIM_EAGER, 0);
    drv.cuCtxGetCurrent(&primary);
    one = new_stream();
    two = new_stream();
    inside = 0;
    leave = 0;
    pthread_create(&thread, NULL, enqueue_linger, one);
    while (inside == 0) {
        nanosleep(&pause, NULL);
    }
    CHECK_IS(drv.cuStreamQuery(one), CUDA_ERROR_NOT_READY);
    CHECK(drv.cuStreamSynchronize(two));
    leave = 1;
    CHECK(drv.cuStreamSynchronize(one));
    pthread_join(thread, NULL);
    drv.cuStreamDestroy(one);
    drv.cuStreamDestroy(two);
    check_nothing_left("apart");
}

static void *pop_none(void *result)
{
    CUcontext context = NULL;

    drv.cuCtxGetCurrent(&context);
    *(CUresult *)result =
        context != NULL ? CUDA_ERROR_UNKNOWN : drv.cuCtxPopCurrent(&context);
    return NULL;
}

static void contexts(void)
{
    CUcontext first = NULL;
    CUcontext second = NULL;
    CUcontext popped = NULL;
    CUresult res = CUDA_SUCCESS;
    pthread_t thread;

    driver_start(CCMR_SIM_EAGER, 0);
    drv.cuCtxGetCurrent(&first);
    CHECK(drv.cuCtxCreate(&second, NULL, 0, 0));
    pthread_create(&thread, NULL, pop_none, &res);
    pthread_join(thread, NULL);
    CHECK_IS(res, CUDA_ERROR_INVALID_CONTEXT);
    CHECK(drv.cuCtxPopCurrent(&popped));
    tap_ok(popped == second, "a thread has a stack of its own");
    drv.cuCtxDestroy(second);
    drv.cuCtxGetCurrent(&popped);
    tap_ok(popped == first, "with the first one below");
    check_nothing_left("contexts");
}

int main(void)
{
    driver_load();
    crowd(CCMR_SIM_EAGER, 0);
    crowd(CCMR_SIM_LATE, 0);
    crowd(CCMR_SIM_LATE, 5);
    woken();
    apart();
    contexts();
    return tap_finish();
}
