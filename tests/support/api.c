/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HOLD_LIMIT_MS 10000

#define TEXT(x) #x
#define TEXT_OF(x) TEXT(x)

api_table api;
const ccmr_sim_table *simulator;

int api_load(const char *path, const char **reason)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *symbol;

    if (library == NULL) {
        *reason = dlerror();
        return -1;
    }
    /* POSIX's way to turn an object's address into a function's. */
#define API_FIND(name)                                                        \
    symbol = dlsym(library, TEXT_OF(name));                                   \
    memcpy(&api.name, &symbol, sizeof(symbol));
    API_MAP(API_FIND)
#undef API_FIND
    symbol = dlsym(library, CCMR_SIM_CONTROL_SYMBOL);
    simulator = (const ccmr_sim_table *)symbol;
    return 0;
}

const ccmr_sim_table *api_simulator(void)
{
    const char *path = getenv("CUCOREMR_SIM_PATH");
    const char *reason = "CUCOREMR_SIM_PATH is not set";

    if (simulator != NULL) {
        return simulator;
    }
    if (path == NULL || api_load(path, &reason) != 0 || simulator == NULL) {
        printf("Bail out! no simulator: %s\n", reason);
        exit(99);
    }
    return simulator;
}

int api_end(int status)
{
    if (simulator != NULL) {
        if (simulator->hazards() != 0) {
            printf("# the simulator saw %llu hazards\n",
                   (unsigned long long)simulator->hazards());
            status = 1;
        }
        (void)simulator->reset(NULL);
    }
    return status;
}

/* What sanitizers ask a program, if it has an answer. */
#define ANSWER __attribute__((visibility("default")))

int api_leaks_are_fine;

ANSWER int __lsan_is_turned_off(void);
ANSWER const char *__asan_default_options(void);

ANSWER int __lsan_is_turned_off(void)
{
    return api_leaks_are_fine;
}

/* Requests that no machine can serve are among the tests. */
ANSWER const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static void sleep_ms(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000L};

    (void)nanosleep(&time, NULL);
}

static void CUDA_CB block_stream(void *context)
{
    hold *h = context;
    int ms;

    for (ms = 0; ms < HOLD_LIMIT_MS && atomic_load(&h->held); ms++) {
        sleep_ms(1);
    }
}

int hold_begin(hold *h, CUstream stream)
{
    memset(h, 0, sizeof(*h));
    h->stream = stream;
    atomic_store(&h->held, 1);
    if (simulator != NULL) {
        h->by_simulator = 1;
        return simulator->stall(stream);
    }
    if (api.cuLaunchHostFunc == NULL ||
        api.cuLaunchHostFunc(stream, block_stream, h) != CUDA_SUCCESS) {
        atomic_store(&h->held, 0);
        return -1;
    }
    return 0;
}

static void let_go(hold *h)
{
    if (atomic_exchange(&h->held, 0) && h->by_simulator) {
        (void)simulator->release(h->stream);
    }
}

static void *let_go_later(void *context)
{
    hold *h = context;

    sleep_ms(h->delay_ms);
    let_go(h);
    return NULL;
}

void hold_end_after(hold *h, int ms)
{
    h->delay_ms = ms;
    h->timed = pthread_create(&h->helper, NULL, let_go_later, h) == 0;
    if (!h->timed) {
        let_go(h);
    }
}

void hold_end(hold *h)
{
    if (h->timed) {
        (void)pthread_join(h->helper, NULL);
        h->timed = 0;
    }
    let_go(h);
}
