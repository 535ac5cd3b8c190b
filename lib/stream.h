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
    int owned;           /* made by ccmr_stream_create() */
    ccmr_stream retired; /* an owned one that is retired, not destroyed; the
                          * record stays its own. Under the lock */
    atomic_int capturing;
    _Atomic uint64_t usable; /* the id; 0 while it is retired or captures: what
                              * whoever has met the stream looks at */
    atomic_int borrowed;     /* how many use the handle in calls without it */
    struct ccmr__stream_record *next; /* set once */
} ccmr__stream_record;

#define CCMR__STREAM_BUCKET_BITS 10

extern _Atomic(ccmr__stream_record *)
    ccmr__stream_buckets[1 << CCMR__STREAM_BUCKET_BITS];

/*
 * Ids that are not the driver's have a bit that its counters never reach:
 * bit 63: the per-thread token of a thread and device; bits 62 and 61: the
 * legacy token of a device; bit 62: a registered stream of a driver that has
 * no ids.
 */
#define CCMR__ID_PER_THREAD (UINT64_C(1) << 63)
#define CCMR__ID_LEGACY (UINT64_C(3) << 61)
#define CCMR__ID_REGISTERED (UINT64_C(1) << 62)

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

static inline size_t ccmr__stream_bucket(ccmr_stream stream)
{
    uint64_t key = (uint64_t)(uintptr_t)stream;

    return (size_t)((key * UINT64_C(0x9E3779B97F4A7C15)) >>
                    (64 - CCMR__STREAM_BUCKET_BITS));
}

/** The record of a registered stream, NULL if it is not. No lock. */
static inline ccmr__stream_record *ccmr__stream_find(ccmr_stream stream)
{
    ccmr__stream_record *record = atomic_load_explicit(
        &ccmr__stream_buckets[ccmr__stream_bucket(stream)],
        memory_order_acquire);

    while (record != NULL &&
           atomic_load_explicit(&record->handle, memory_order_acquire) !=
               stream) {
        record = record->next;
    }
    return record;
}

/**
 * Register a stream that was resolved and is not registered: whoever hands it
 * to a resource with `streams=registered` has promised what
 * ccmr_stream_register() asks for. No driver call. NULL without memory: then
 * it stays what it is, and is asked each time.
 */
ccmr__stream_record *ccmr__stream_learn(ccmr_stream stream,
                                        const ccmr__device *device,
                                        ccmr__stream_use *use);

/** ccmr__stream_check() of such a resource: a stream that it has not met is
 * registered. */
ccmr_status ccmr__stream_meet(ccmr_stream stream, ccmr__device *device);

/**
 * Use a registered stream's handle in a call that was not given the stream:
 * 1, or 0 where the stream of that id is no longer registered or captures.
 * Until it is returned the stream is not retired and no capture on it begins:
 * whoever announces one waits. So the use is short, and never blocks.
 */
int ccmr__stream_borrow(ccmr__stream_record *record, uint64_t id,
                        CUstream *handle);
void ccmr__stream_return(ccmr__stream_record *record);

/* Questions to the driver about a stream that is not registered. A capturing
 * one is asked the first alone: the others would ruin the capture. */
ccmr_status ccmr__stream_check_capture(ccmr_stream stream);
ccmr_status ccmr__stream_ask_device(ccmr_stream stream, int *ordinal);
ccmr_status ccmr__stream_ask_id(ccmr_stream stream, uint64_t *id);

/** Ordinal of a stream's device; tokens and READY: -1. */
ccmr_status ccmr__stream_device(ccmr_stream stream, int *ordinal);

/**
 * Wait for a stream's work in the device's context, in relaxed capture mode.
 * The stream has been checked. CCMR_STREAM_READY waits for nothing.
 */
ccmr_status ccmr__stream_wait(ccmr_stream stream, ccmr__device *device);

#endif /* CCMR_LIB_STREAM_H */
