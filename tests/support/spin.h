/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel that runs until it is told to stop, so that a device is busy rather
 * than a stream blocked. On the simulator, which runs no kernels, the stream is
 * stalled instead.
 */
#ifndef CCMR_TESTS_SUPPORT_SPIN_H
#define CCMR_TESTS_SUPPORT_SPIN_H

#include "tests/support/api.h"

typedef struct spin {
    CUstream stream;
    CUmodule module;
    CUfunction kernel;
    unsigned *words;    /* of the host: stop, running */
    CUdeviceptr mapped; /* the same, as the device sees them */
    int stalled;        /* by the simulator */
} spin;

/* Prepare, in the stream's context. 0, or -1 with the call that failed in
   `*reason`. */
int spin_open(spin *made, CUstream stream, const char **reason);

/* Start, and return when it runs. It ends by itself after SPIN_SECONDS. */
enum { SPIN_SECONDS = 20 };
int spin_start(spin *on, const char **reason);

/* Does it run still? */
int spin_runs(const spin *on);

/* Stop it, and wait for the stream. 0 or -1. */
int spin_stop(spin *on);

void spin_close(spin *gone);

#endif
