/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counting the driver calls of the library and of the peers, and timing those
 * that map memory or wait.
 *
 * The pointers of the driver table are swapped for wrappers that count. To be
 * started and stopped while nothing runs, and never while something is timed.
 */
#ifndef CCMR_BENCH_DRIVER_COUNT_H
#define CCMR_BENCH_DRIVER_COUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Start counting; the driver is ready. */
void driver_count_start(void);

/** Stop counting. */
void driver_count_stop(void);

/** How many entry points there are. */
size_t driver_count_calls(void);

/** The i-th entry point's name. */
const char *driver_count_name(size_t i);

/** Calls of the i-th entry point since it was first counted. */
uint64_t driver_count_get(size_t i);

/* What takes time by its nature, where a cache should make it rare. */
typedef enum driver_time {
    DRIVER_TIME_MAPPING, /* reserving addresses, making memory, mapping it */
    DRIVER_TIME_WAITING, /* for a stream or an event */
    /* What the simulated driver says that all calls would take on a device. */
    DRIVER_TIME_ESTIMATED,
    DRIVER_TIMES
} driver_time;

/** Nanoseconds spent in such calls since they were first counted. */
uint64_t driver_count_ns(driver_time of);

/** Whether the driver is a simulated one that estimates costs. */
bool driver_count_estimates(void);

/** The calling thread's calls are the bench's own for now: not counted. */
void driver_count_pause(bool on);

#endif /* CCMR_BENCH_DRIVER_COUNT_H */
