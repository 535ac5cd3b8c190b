/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The buffer object, for the files that make it up.
 */
#ifndef CCMR_LIB_BUFFER_H
#define CCMR_LIB_BUFFER_H

#include <stdint.h>

#include <cucoremr/buffer.h>

#include "lib/driver.h"
#include "lib/stream.h"

enum ccmr__buffer_kind {
    CCMR__BUFFER_REFERENCE, /* frees nothing */
    CCMR__BUFFER_OWNING,    /* gives the block back through `resource` */
    CCMR__BUFFER_BORROWING  /* calls `release` */
};

/* A use that was noted: the close waits for its event. */
typedef struct ccmr__use_note {
    CUevent event;
    struct ccmr__use_note *next;
} ccmr__use_note;

/*
 * The whole recipe for the free is here from the start. Serialised by the
 * caller; calls that only read may run side by side.
 */
struct ccmr_buffer {
    void *ptr;
    size_t bytes;
    size_t alignment;
    ccmr_resource *resource; /* held through the census; NULL if none */
    ccmr_stream stream;      /* recorded deallocation stream */
    uint64_t stream_id;      /* of a registered one, else 0 */
    uint64_t thread;         /* serial, where `stream` is the per-thread one */
    int device;              /* -1: none */
    enum ccmr__buffer_kind kind;
    int closed;
    ccmr__use_note *notes;
    void (*release)(void *owner);
    void *owner;
};

/** Refuses NULL and closed buffers. */
ccmr_status ccmr__buffer_check(const ccmr_buffer *buffer, const char *call);

/** Record a stream and what it takes to use it later. */
void ccmr__buffer_record(ccmr_buffer *buffer, ccmr_stream stream);

/** 1 if the recorded stream may still be used by any call: a token that means
 * the same on this thread, or a stream that is registered still. */
int ccmr__buffer_stream_known(const ccmr_buffer *buffer);

/** 1 if streams do not matter to the resource of an owning buffer, so that no
 * free of it can wait for anything. */
int ccmr__buffer_frees_at_once(const ccmr_buffer *buffer);

/** Make `stream` wait for every noted use. */
ccmr_status ccmr__buffer_wait_notes(const ccmr_buffer *buffer,
                                    ccmr_stream stream, ccmr__device *device);

/** Forget the noted uses. */
void ccmr__buffer_drop_notes(ccmr_buffer *buffer);

/** Make `stream` wait for what the recorded stream has been given. */
ccmr_status ccmr__buffer_add_edge(const ccmr_buffer *buffer,
                                  ccmr_stream stream, ccmr__device *device);

#endif /* CCMR_LIB_BUFFER_H */
