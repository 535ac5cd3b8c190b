/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver as the tests use it: entry points looked up in the very library
 * that libcucoremr has loaded, the simulator's control table where that is
 * the simulator, and streams that are held.
 */
#ifndef CCMR_TESTS_SUPPORT_API_H
#define CCMR_TESTS_SUPPORT_API_H

#include <pthread.h>
#include <stdatomic.h>

#include <cuda.h>

#include "sim/sim.h"

/* For a call whose status does not matter here, though it says that it does. */
#define IGNORE(call)                                                          \
    do {                                                                      \
        if ((call) != 0) {                                                    \
        }                                                                     \
    } while (0)

/* X(name): cuda.h's macros turn the names into those of the ABI. */
#define API_MAP(X)                                                            \
    X(cuCtxCreate)                                                            \
    X(cuCtxDestroy)                                                           \
    X(cuCtxGetCurrent)                                                        \
    X(cuCtxPopCurrent)                                                        \
    X(cuCtxPushCurrent)                                                       \
    X(cuCtxSetCurrent)                                                        \
    X(cuCtxSynchronize)                                                       \
    X(cuDeviceGet)                                                            \
    X(cuDeviceGetDefaultMemPool)                                              \
    X(cuDevicePrimaryCtxGetState)                                             \
    X(cuDevicePrimaryCtxRelease)                                              \
    X(cuDevicePrimaryCtxRetain)                                               \
    X(cuEventCreate)                                                          \
    X(cuEventDestroy)                                                         \
    X(cuEventQuery)                                                           \
    X(cuEventRecord)                                                          \
    X(cuEventSynchronize)                                                     \
    X(cuGetErrorName)                                                         \
    X(cuGraphDestroy)                                                         \
    X(cuGraphExecDestroy)                                                     \
    X(cuGraphInstantiateWithFlags)                                            \
    X(cuGraphLaunch)                                                          \
    X(cuLaunchHostFunc)                                                       \
    X(cuLaunchKernel)                                                         \
    X(cuMemAlloc)                                                             \
    X(cuMemFree)                                                              \
    X(cuMemFreeHost)                                                          \
    X(cuMemGetAccess)                                                         \
    X(cuMemHostAlloc)                                                         \
    X(cuMemHostGetDevicePointer)                                              \
    X(cuMemImportFromShareableHandle)                                         \
    X(cuMemcpy)                                                               \
    X(cuMemcpyAsync)                                                          \
    X(cuMemPoolCreate)                                                        \
    X(cuMemPoolDestroy)                                                       \
    X(cuMemPoolGetAttribute)                                                  \
    X(cuMemPoolSetAttribute)                                                  \
    X(cuMemRelease)                                                           \
    X(cuMemsetD8Async)                                                        \
    X(cuMemsetD32Async)                                                       \
    X(cuModuleGetFunction)                                                    \
    X(cuModuleLoadData)                                                       \
    X(cuModuleUnload)                                                         \
    X(cuStreamBeginCapture)                                                   \
    X(cuStreamCreate)                                                         \
    X(cuStreamDestroy)                                                        \
    X(cuStreamEndCapture)                                                     \
    X(cuStreamGetDevice)                                                      \
    X(cuStreamGetId)                                                          \
    X(cuStreamIsCapturing)                                                    \
    X(cuStreamQuery)                                                          \
    X(cuStreamSynchronize)                                                    \
    X(cuStreamWaitEvent)                                                      \
    X(cuThreadExchangeStreamCaptureMode)

typedef struct api_table {
#define API_MEMBER(name) __typeof__(&name) name;
    API_MAP(API_MEMBER)
#undef API_MEMBER
} api_table;

/* Members are NULL where the driver has no such entry point. */
extern api_table api;

/* The simulator's table; NULL on another driver. */
extern const ccmr_sim_table *simulator;

/* Load `path` and fill `api` and `simulator`. 0, or -1 with the reason. */
int api_load(const char *path, const char **reason);

/* The simulator's table by the environment's CUCOREMR_SIM_PATH, before the
   library has loaded any driver; fills `api` as well. Exits if it is not
   there. */
const ccmr_sim_table *api_simulator(void);

/* The end of main(): the simulator gives its memory back, so that a leak
   checker sees what the library leaves alone. Returns its argument. */
int api_end(int status);

/* Set in processes that leave things alive on purpose. */
extern int api_leaks_are_fine;

/*
 * A held stream: what is enqueued on it stays unfinished until the hold ends.
 * On the simulator the stream is stalled, elsewhere a host function waits in
 * it, for 10 seconds at most. One hold a stream.
 */
typedef struct hold {
    CUstream stream;
    atomic_int held;
    int by_simulator;
    int delay_ms;
    int timed; /* the helper thread runs and must be joined */
    pthread_t helper;
} hold;

/* The context to which the stream belongs must be current. 0 or -1. */
int hold_begin(hold *h, CUstream stream);
/* End it; waits for the helper of hold_end_after(). */
void hold_end(hold *h);
/* Let another thread end it later; hold_end() must still be called. */
void hold_end_after(hold *h, int ms);

#endif
