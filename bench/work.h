/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the device does while a plan is carried out: nothing, so that each free
 * is finished at once, or more than it can keep up with.
 *
 * On a device, idle is to enqueue no work, and busy is to write every block
 * from end to end on its stream, which takes the device longer than it takes
 * the host to ask for it. The simulated driver has a schedule instead: idle
 * runs everything at once; busy holds all streams, and lets what was enqueued
 * run once so many later operations are enqueued behind it, or when the host
 * waits for a stream, an event or the device.
 */
#ifndef CCMR_BENCH_WORK_H
#define CCMR_BENCH_WORK_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/machine.h"
#include "bench/streams.h"

typedef enum work_kind {
    WORK_ANY, /* nothing is said about it */
    WORK_IDLE,
    WORK_BUSY
} work_kind;

/** Operations of streams that a simulated device is behind, if not said. */
#define WORK_BEHIND 1000

struct ccmr_sim_table;

typedef struct device_work {
    work_kind kind;
    const stream_set *streams;
    const struct ccmr_sim_table *simulator; /* NULL: a device */
    uint64_t behind;
    unsigned since; /* operations since the last look */
} device_work;

/** Begin; one at a time, while nothing runs. False: `message` says why not. */
bool work_begin(device_work *made, work_kind kind, uint64_t behind,
                const machine *where, const stream_set *streams, char *message,
                size_t size);

/** How much of each block is to be written. */
uint64_t work_write_bytes(const device_work *in);

/** After each operation, on the one thread that runs. */
void work_step(device_work *in);

/** Let all run, and be as before. */
void work_end(device_work *gone);

/** "idle", "busy", or NULL. */
const char *work_name(work_kind kind);

#endif /* CCMR_BENCH_WORK_H */
