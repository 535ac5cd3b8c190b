/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The streams that a plan runs on.
 */
#ifndef CCMR_BENCH_STREAMS_H
#define CCMR_BENCH_STREAMS_H

#include <stdbool.h>
#include <stddef.h>

#include <cucoremr/stream.h>

typedef struct stream_set {
    ccmr_stream *streams;
    size_t count;
    size_t null_stream; /* the legacy token's place; SIZE_MAX: nowhere */
    bool registered;
    int device;
} stream_set;

/**
 * Make streams that do not synchronise with the default stream: by
 * ccmr_stream_create() if `registered`, else by the driver. The device's
 * context is current. ccmr_last_error() tells why not.
 */
ccmr_status stream_set_open(stream_set *made, size_t count, size_t null_stream,
                            bool registered, int device);

/** Wait until all work on them is finished. */
ccmr_status stream_set_wait(const stream_set *of);

void stream_set_close(stream_set *gone);

#endif /* CCMR_BENCH_STREAMS_H */
