/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a call may do with a stream that it was given.
 *
 * CUDA validates no handle. An unregistered stream is asked whether it
 * captures (17 ns on an H200) and, where somebody needs a key, for its unique
 * id (19 ns); it is used only inside a call that was given it. A registered
 * stream is looked up in a table and costs neither.
 */
#ifndef CCMR_LIB_STREAM_H
#define CCMR_LIB_STREAM_H

#include <stdatomic.h>
#include <stdint.h>

#include <cucoremr/stream.h>

#include "lib/context.h"

/*
 * A registered stream, in a chain of the table:
 *
 *   buckets[hash(handle)] -> record -> record -> NULL
 *
 * Records are never freed and never leave their chain, so that a lookup needs
 * no lock; an unused one has handle 0 and is taken again by the next stream of
 * its bucket, as a rule one with the same, recycled handle. Writers hold the
 * table's lock.
 */
typedef struct ccmr__stream_record {
    _Atomic(ccmr_stream) handle; /* stored last (release), 0 if unused */
    uint64_t id;
    int device;
    int owned; /* made by ccmr_stream_create() */
    atomic_int capturing;
    struct ccmr__stream_record *next; /* set once */
} ccmr__stream_record;

/** A stream as a call sees it. */
typedef struct ccmr__stream_use {
    CUstream handle; /* what to give to the driver */
    uint64_t id;     /* key of per-stream state; never reused */
    int registered;  /* 1: may be used after this call, until retired */
} ccmr__stream_use;

/** 1 for CCMR_STREAM_LEGACY and CCMR_STREAM_PER_THREAD. */
static inline int ccmr__stream_is_token(ccmr_stream stream)
{
    return (uintptr_t)stream - 1 < 2;
}

/** 0 becomes the legacy token: the entry of every public call. */
static inline ccmr_stream ccmr__stream_default(ccmr_stream stream)
{
    return stream != NULL ? stream : CCMR_STREAM_LEGACY;
}

/**
 * The check of a resource on `device` that passes the stream to the driver
 * and keeps nothing: refuses capturing streams and streams of other devices.
 * For a token the caller has made the device's context current before (enter
 * a scope), as the driver needs it in any case. READY passes.
 */
ccmr_status ccmr__stream_check(ccmr_stream stream, ccmr__device *device);

/** The same, and what a resource with per-stream state needs. Not READY. */
ccmr_status ccmr__stream_resolve(ccmr_stream stream, ccmr__device *device,
                                 ccmr__stream_use *use);

/** The record of a registered stream, NULL if it is not. No lock. */
ccmr__stream_record *ccmr__stream_find(ccmr_stream stream);

/** Ordinal of a stream's device; tokens and READY: -1. */
ccmr_status ccmr__stream_device(ccmr_stream stream, int *ordinal);

/**
 * Wait for a stream's work in the device's context, in relaxed capture mode.
 * The stream has been checked. CCMR_STREAM_READY waits for nothing.
 */
ccmr_status ccmr__stream_wait(ccmr_stream stream, ccmr__device *device);

#endif /* CCMR_LIB_STREAM_H */
