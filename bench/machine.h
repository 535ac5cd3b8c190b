/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the bench runs: the driver, the device, the host.
 */
#ifndef CCMR_BENCH_MACHINE_H
#define CCMR_BENCH_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>

typedef struct machine {
    int device;
    CUcontext context; /* the device's primary one */
    bool simulated;
    int driver_version; /* 13000 */
    char driver_name[32];
    char driver_path[512];
    char device_name[128];
    uint64_t device_bytes;
    char cpu[128];
    long cpus;
    char system[256];
    uint64_t clock_cost;
    char notice[512]; /* why the simulated driver was taken; or empty */
} machine;

/**
 * Load the driver ("cuda", "sim", a path; "auto" is CUDA's, else the
 * simulated one) and make the device's primary context current on the calling
 * thread. `memory` is what the simulated device should have at least. False:
 * `message` says why.
 */
bool machine_open(machine *made, const char *driver, int device,
                  uint64_t memory, char *message, size_t size);

/** Make the device's context current on another thread. */
bool machine_enter(const machine *on);
void machine_leave(const machine *on);

/** The folder that holds this program; static. */
const char *machine_program_folder(void);

#endif /* CCMR_BENCH_MACHINE_H */
