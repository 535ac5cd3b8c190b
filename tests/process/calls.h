/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One valid call of every public function, over objects that were made
 * before: what forked children, exiting processes and stream callbacks make.
 */
#ifndef CCMR_TESTS_PROCESS_CALLS_H
#define CCMR_TESTS_PROCESS_CALLS_H

#include <cucoremr/cucoremr.h>

/* What the calls work on. */
typedef struct objects {
    ccmr_resource *pool;    /* device_pool, of its own */
    ccmr_resource *host;    /* host */
    ccmr_resource *logging; /* logging file=... | host */
    ccmr_resource *stack;   /* limiting | stream_ordered | device_plain */
    ccmr_resource *counted; /* statistics | tracking | host */
    ccmr_resource *pooled;  /* pool | device_plain, with a block cached */
    ccmr_buffer *buffer;    /* 4096 bytes of pool */
    ccmr_buffer *other;     /* 4096 bytes of stack */
    void *block;            /* 512 bytes of stack, on `stream` */
    void *pooled_block;     /* 512 bytes of pooled, on `stream` */
    ccmr_stream stream;     /* registered */
} objects;

/* How a function may answer where nothing may be touched any more. */
typedef enum call_kind {
    CALL_STATUS, /* answers the state's status */
    CALL_PURE,   /* needs no state: success or the state's status */
    CALL_NONE    /* answers no status: just must not crash */
} call_kind;

typedef struct valid_call {
    const char *name;
    call_kind kind;
    ccmr_status (*make)(objects *o);
} valid_call;

/* Ended by a NULL name. Calls that take something apart come last. */
extern const valid_call valid_calls[];

/* Make the objects; `log` is the log's file. 0, or -1 (see last error). */
int objects_make(objects *o, const char *log);
/* Give them all back. Returns the first failure. */
ccmr_status objects_drop(objects *o);

#endif
