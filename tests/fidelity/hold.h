/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work in flight, on demand: hold() makes a stream stop until let_go().
 *
 * On a real driver a host function that waits for a flag is enqueued; the
 * simulated one is told to stall the stream. One stream is held at a time,
 * since a driver may run all its host functions on one thread. A hold ends by
 * itself after HOLD_LIMIT_MS, whatever happens.
 *
 * hold(), let_go_after() and let_go() are for the thread that runs the case.
 */
#ifndef FIDELITY_HOLD_H
#define FIDELITY_HOLD_H

#include "tests/fidelity/driver.h"

#include <stdbool.h>

enum { HOLD_LIMIT_MS = 3000, HOLD_DELAY_MS = 150 };

/* Reports a fact `hold` and returns false where it can't be done. */
bool hold(CUstream stream);

/* A helper thread will let go after `ms`; the caller may block meanwhile. */
void let_go_after(int ms);

/* Let go now, and wait for the helper thread. Harmless where nothing is held.
 * Returns whether the stream was still held when it was called. */
bool let_go(void);

#endif
