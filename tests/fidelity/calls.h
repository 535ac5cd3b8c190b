/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls that are tried in every situation, and the objects they work on.
 */
#ifndef FIDELITY_CALLS_H
#define FIDELITY_CALLS_H

#include "tests/fidelity/driver.h"
#include "tests/fidelity/facts.h"

#include <stddef.h>

enum { FIXTURE_BYTES = 4096, FIXTURE_MADE = 8 };

/*
 * Made afresh for each observation. `main` is the stream that the situation
 * is about (held, capturing), `side` another one that is idle and does not
 * wait for the legacy default stream. A call that uses an object up sets its
 * member to nothing. Used by one thread at a time.
 */
struct fixture {
    CUdevice device;
    CUcontext primary;
    CUstream main;
    CUstream side;
    CUevent event;         /* recorded on side, and complete */
    CUdeviceptr plain;     /* cuMemAlloc, for free */
    CUdeviceptr target;    /* cuMemAlloc, for copies and fills */
    CUdeviceptr block;     /* of the default pool, allocated on side, idle */
    void *pinned;          /* cuMemHostAlloc */
    CUmemoryPool pool;     /* own pool, empty */
    CUmemoryPool standard; /* the device's default pool */
    /* what the observed call made, and how to undo it */
    void (*undo[FIXTURE_MADE])(void *);
    void *made[FIXTURE_MADE];
    size_t made_count;
};

extern struct fixture fixture;

/* Build the objects; the primary context is current before and after. Reports
 * a fact and returns false where that fails. */
bool fixture_make(unsigned int main_flags);

/* Undo and free everything; also after a part was used up. */
void fixture_drop(void);

/* What a further table of calls needs beside; set by a topic's prepare, and
 * made last and dropped first. */
extern CUresult (*fixture_make_more)(void);
extern void (*fixture_drop_more)(void);

/* Properties of an ordinary pool of the device. */
CUmemPoolProps pool_properties(CUdevice device);

/* A pool of the first device; a stream of the current context. Report a fact
 * where that fails. */
CUmemoryPool make_pool(size_t max_bytes);
CUstream make_stream(unsigned int flags);

/* What cuPointerGetAttribute answers about an address. */
void see_pointer(CUdeviceptr address);

extern const struct fidelity_case every_call[];

/* The calls of more_calls.c, and what their topics do first. */
extern const struct fidelity_case more_calls[];
void more_prepare(void);

#endif
