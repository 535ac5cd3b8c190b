/* SPDX-License-Identifier: Apache-2.0 */
/* Streams that run late: what waits for what, and in which order. */
#include <stdint.h>
#include <string.h>

#include "tests/simulation/driver.h"
#include "tests/support/tap.h"

/* The order in which host functions ran, as letters. */
static char journal[256];
static size_t journal_length;

static void CUDA_CB note(void *letter)
{
    if (journal_length + 1 < sizeof journal) {
        journal[journal_length++] = *(const char *)letter;
        journal[journal_length] = '\0';
    }
}

static void forget(void)
{
    journal_length = 0;
    journal[0] = '\0';
}

static const char letters[] = "abcdefghijklmnopqrstuvwxyz";

static void enqueue(CUstream stream, char letter)
{
    const char *at = strchr(letters, letter);

    drv.cuLaunchHostFunc(stream, note, (void *)(uintptr_t)at);
}

static void late(void)
{
    CUstream stream;

    driver_start(CCMR_SIM_LATE, 0);
    stream = new_stream();
    forget();
    enqueue(stream, 'a');
    enqueue(stream, 'b');
    tap_is_str(journal, "", "late: nothing runs by itself");
    tap_is_int(sim->pending(stream), 2, "two operations wait");
    CHECK(drv.cuStreamSynchronize(stream));
    tap_is_str(journal, "ab", "a synchronisation runs all, in order");
    tap_is_int(sim->pending(stream), 0, "none waits");
    enqueue(stream, 'c');
    CHECK(drv.cuStreamQuery(stream));
    tap_is_str(journal, "abc", "who asks finds it done");
    enqueue(stream, 'd');
    tap_is_int(sim->run(100), 1, "work can be run by hand");
    sim->set_mode(CCMR_SIM_EAGER);
    enqueue(stream, 'e');
    tap_is_str(journal, "abcde", "eager: it runs at once");
    CHECK(drv.cuStreamDestroy(stream));
    check_nothing_left("late");
}

static void stalled(void)
{
    CUstream one, two;
    CUevent event = NULL;

    driver_start(CCMR_SIM_EAGER, 0);
    one = new_stream();
    two = new_stream();
    drv.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    forget();
    tap_is_int(sim->stall(one), 0, "hold a stream");
    enqueue(one, 'a');
    CHECK(drv.cuEventRecord(event, one));
    CHECK(drv.cuStreamWaitEvent(two, event, 0));
    enqueue(two, 'b');
    tap_is_str(journal, "", "it holds what waits for it");
    CHECK_IS(drv.cuStreamQuery(one), CUDA_ERROR_NOT_READY);
    CHECK_IS(drv.cuStreamQuery(two), CUDA_ERROR_NOT_READY);
    CHECK_IS(drv.cuEventQuery(event), CUDA_ERROR_NOT_READY);
    tap_is_int(sim->release(one), 0, "let it go");
    tap_is_str(journal, "ab", "all runs, in order");
    CHECK(drv.cuEventQuery(event));
    tap_is_int(sim->release(one), -1, "it was not held any more");
    /* Held, destroyed, its handle handed out anew. */
    sim->stall(one);
    enqueue(one, 'c');
    CHECK(drv.cuStreamDestroy(one));
    tap_ok(new_stream() == one, "a handle comes again at once");
    enqueue(one, 'd');
    tap_is_str(journal, "abd", "the new stream is not held");
    tap_is_int(sim->release(one), 0, "the old one is, still");
    tap_is_str(journal, "abdc", "and its work is done");
    drv.cuEventDestroy(event);
    drv.cuStreamDestroy(one);
    drv.cuStreamDestroy(two);
    check_nothing_left("stalled");
}

static void identities(void)
{
    unsigned long long id[3] = {0};
    CUstream stream;

    driver_start(CCMR_SIM_EAGER, 0);
    stream = new_stream();
    drv.cuStreamGetId(stream, &id[0]);
    drv.cuStreamDestroy(stream);
    stream = new_stream();
    drv.cuStreamGetId(stream, &id[1]);
    tap_ok(id[0] != id[1], "a recycled handle has a new id");
    drv.cuStreamGetId(CU_STREAM_PER_THREAD, &id[2]);
    tap_ok(id[2] != id[1] && id[2] > 2, "a token has an id of its own");
    drv.cuStreamDestroy(stream);
    check_nothing_left("identities");
}

/* An event stands for its last record at the time of the wait. */
static void events(void)
{
    CUstream one, two, three;
    CUevent event = NULL;
    float ms = -1;
    CUevent timed[2];

    driver_start(CCMR_SIM_LATE, 0);
    one = new_stream();
    two = new_stream();
    three = new_stream();
    drv.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    forget();
    CHECK(drv.cuEventQuery(event));
    CHECK(drv.cuEventSynchronize(event));
    CHECK(drv.cuStreamWaitEvent(two, event, 0));
    sim->stall(one);
    enqueue(one, 'a');
    drv.cuEventRecord(event, one);
    enqueue(one, 'x');
    drv.cuStreamWaitEvent(two, event, 0);
    enqueue(two, 'b');
    CHECK(drv.cuEventRecord(event, three));
    CHECK(drv.cuEventSynchronize(event));
    drv.cuStreamWaitEvent(three, event, 0);
    enqueue(three, 'c');
    drv.cuStreamSynchronize(three);
    tap_is_str(journal, "c", "a wait for the later record");
    drv.cuEventDestroy(event);
    sim->release(one);
    CHECK(drv.cuStreamSynchronize(two));
    tap_is_str(journal, "caxb", "and one for the earlier record");
    drv.cuEventCreate(&timed[0], CU_EVENT_DEFAULT);
    drv.cuEventCreate(&timed[1], CU_EVENT_DEFAULT);
    drv.cuEventRecord(timed[0], one);
    drv.cuEventRecord(timed[1], one);
    CHECK_IS(drv.cuEventElapsedTime(&ms, timed[0], timed[1]),
             CUDA_ERROR_NOT_READY);
    drv.cuStreamSynchronize(one);
    CHECK(drv.cuEventElapsedTime(&ms, timed[0], timed[1]));
    tap_ok(ms >= 0, "time goes forward");
    drv.cuEventDestroy(timed[0]);
    drv.cuEventDestroy(timed[1]);
    drv.cuStreamDestroy(one);
    drv.cuStreamDestroy(two);
    drv.cuStreamDestroy(three);
    check_nothing_left("events");
}

static void default_streams(void)
{
    CUstream blocking = NULL;
    CUstream apart;

    driver_start(CCMR_SIM_LATE, 0);
    drv.cuStreamCreate(&blocking, CU_STREAM_DEFAULT);
    apart = new_stream();
    forget();
    sim->stall(blocking);
    enqueue(blocking, 'a');
    enqueue(NULL, 'b');
    enqueue(CU_STREAM_PER_THREAD, 'c');
    enqueue(apart, 'd');
    CHECK(drv.cuStreamSynchronize(apart));
    tap_is_str(journal, "d", "a non-blocking stream stands apart");
    CHECK_IS(drv.cuStreamQuery(CU_STREAM_LEGACY), CUDA_ERROR_NOT_READY);
    CHECK_IS(drv.cuStreamQuery(CU_STREAM_PER_THREAD), CUDA_ERROR_NOT_READY);
    tap_is_str(journal, "d", "the legacy stream waits for blocking ones");
    sim->release(blocking);
    CHECK(drv.cuStreamSynchronize(CU_STREAM_PER_THREAD));
    tap_is_str(journal, "dabc", "and they for it");
    drv.cuStreamDestroy(blocking);
    drv.cuStreamDestroy(apart);
    check_nothing_left("default streams");
}

/* Four streams with four operations each, and what waits for what. */
static void program(char *order, size_t room)
{
    CUstream stream[4];
    CUevent event = NULL;
    int i, j;

    forget();
    drv.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    for (i = 0; i < 4; i++) {
        stream[i] = new_stream();
    }
    for (j = 0; j < 4; j++) {
        for (i = 0; i < 4; i++) {
            enqueue(stream[i], letters[4 * i + j]);
        }
        if (j == 1) {
            drv.cuEventRecord(event, stream[0]);
            drv.cuStreamWaitEvent(stream[1], event, 0);
        }
    }
    drv.cuCtxSynchronize();
    strncpy(order, journal, room - 1);
    order[room - 1] = '\0';
    for (i = 0; i < 4; i++) {
        drv.cuStreamDestroy(stream[i]);
    }
    drv.cuEventDestroy(event);
}

static bool is_before(const char *order, char one, char other)
{
    const char *first = strchr(order, one);
    const char *second = strchr(order, other);

    return first != NULL && second != NULL && first < second;
}

/* In each stream letters rise, and 'b' (the second of stream 0) comes before
 * 'g' (the third of stream 1). */
static bool is_lawful(const char *order)
{
    int i;

    if (strlen(order) != 16) {
        return false;
    }
    for (i = 0; i < 15; i++) {
        if (i % 4 != 3 && !is_before(order, letters[i], letters[i + 1])) {
            return false;
        }
    }
    return is_before(order, 'b', 'g');
}

static void seeds(void)
{
    char first[32], again[32], other[32];
    bool lawful = true;
    int different = 0;
    uint64_t seed;

    driver_start(CCMR_SIM_LATE, 0);
    program(first, sizeof first);
    tap_is_str(first, "aeimbfjncgkodhlp", "seed 0: as it was enqueued");
    sim->set_seed(7);
    program(first, sizeof first);
    sim->set_seed(7);
    program(again, sizeof again);
    tap_is_str(again, first, "the same seed, the same order");
    for (seed = 1; seed <= 200; seed++) {
        sim->set_seed(seed);
        program(other, sizeof other);
        lawful = lawful && is_lawful(other);
        different += strcmp(other, first) != 0;
    }
    tap_ok(lawful, "200 seeds: no order that CUDA forbids");
    tap_ok(different > 190, "and nearly all differ (%d)", different);
    check_nothing_left("seeds");
}

/* With chance in it, who polls gets there. */
static void polling(void)
{
    CUstream one, two;
    bool waited = false;
    uint64_t seed;
    int polls = 0;

    driver_start(CCMR_SIM_LATE, 0);
    one = new_stream();
    two = new_stream();
    for (seed = 1; seed <= 50; seed++) {
        int i;

        sim->set_seed(seed);
        for (i = 0; i < 5; i++) {
            enqueue(one, 'a');
            enqueue(two, 'b');
        }
        for (i = 0; drv.cuStreamQuery(one) != CUDA_SUCCESS && i < 100; i++) {
            polls++;
            waited = true;
        }
        if (i == 100) {
            break;
        }
        drv.cuCtxSynchronize();
    }
    tap_ok(seed == 51, "polling ends for every seed");
    tap_ok(waited, "but not at once (%d polls in vain)", polls);
    drv.cuStreamDestroy(one);
    drv.cuStreamDestroy(two);
    check_nothing_left("polling");
}

static void CUDA_CB call_in_callback(void *result)
{
    CUdeviceptr address = 0;

    *(CUresult *)result = drv.cuMemAlloc(&address, 64);
}

static CUresult told;

static void CUDA_CB old_style(CUstream stream, CUresult status, void *data)
{
    *(CUstream *)data = stream;
    told = status;
}

static void callbacks(void)
{
    CUresult res = CUDA_SUCCESS;
    CUstream stream, seen = NULL;

    driver_start(CCMR_SIM_EAGER, 0);
    stream = new_stream();
    CHECK(drv.cuLaunchHostFunc(stream, call_in_callback, &res));
    CHECK_IS(res, CUDA_ERROR_NOT_PERMITTED);
    told = CUDA_ERROR_UNKNOWN;
    CHECK(drv.cuStreamAddCallback(stream, old_style, &seen, 0));
    tap_ok(seen == stream && told == CUDA_SUCCESS, "the older callbacks");
    drv.cuStreamDestroy(stream);
    check_nothing_left("callbacks");
}

int main(void)
{
    driver_load();
    late();
    stalled();
    identities();
    events();
    default_streams();
    seeds();
    polling();
    callbacks();
    return tap_finish();
}
