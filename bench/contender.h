/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is compared: stacks of the library and peers, all called the same way.
 */
#ifndef CCMR_BENCH_CONTENDER_H
#define CCMR_BENCH_CONTENDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cucoremr/resource.h>

typedef enum contender_kind {
    CONTENDER_STACK,
    CONTENDER_DRIVER,       /* cuMemAlloc, cuMemFree */
    CONTENDER_DRIVER_POOL,  /* cuMemAllocFromPoolAsync, cuMemFreeAsync */
    CONTENDER_MALLOC,       /* the program's malloc */
    CONTENDER_GLIBC_MALLOC, /* glibc's, where that is another one */
    CONTENDER_NOTHING,      /* what the loops cost */
    CONTENDER_PLUGIN        /* of a library of its own */
} contender_kind;

/* Not changed while anything runs. */
typedef struct contender {
    contender_kind kind;
    char *name;   /* as reports show it */
    char *text;   /* a stack's */
    bool buffers; /* through ccmr_buffer_create() and _close() */
    const struct ccmr_bench_peer *plugin; /* of CONTENDER_PLUGIN */
} contender;

/** A figure that is not known. */
#define FIGURE_UNKNOWN UINT64_MAX

typedef struct figures {
    uint64_t live;
    uint64_t reserved;
    uint64_t peak_reserved; /* FIGURE_UNKNOWN: watch `reserved` */
} figures;

/*
 * A contender that has been set up. `allocate` and `deallocate` are the
 * library's own functions where it is a stack: nothing comes in between. A
 * peer's take the same arguments; `self` is the peer then.
 */
typedef struct instance {
    ccmr_status (*allocate)(ccmr_resource *self, size_t bytes,
                            size_t alignment, ccmr_stream stream, void **ptr);
    ccmr_status (*deallocate)(ccmr_resource *self, void *ptr, size_t bytes,
                              size_t alignment, ccmr_stream stream);
    ccmr_resource *self;
    const contender *who;
    ccmr_resource *resource; /* of a stack; one reference */
    bool device_accessible;
    bool host_accessible;
    int device;
    uint64_t budget; /* 0: none */
} instance;

/** A stack as a contender; NULL without memory. */
contender *contender_stack(const char *text, bool buffers);

/** The peer of that name; NULL without memory, or if there is none. */
contender *contender_peer(const char *name);

/** The i-th peer that there is here, with what it does; false past the last.
 */
bool contender_peer_get(size_t i, const char **name, const char **help);

void contender_free(contender *gone);

typedef struct instance_options {
    int device;      /* its primary context is current */
    const char *log; /* a stack goes through a logging adaptor that writes
                        this file; NULL: it does not */
    uint64_t budget; /* most bytes that it may reserve; 0: no bound */
} instance_options;

/** Set a contender up. ccmr_last_error() tells why not. */
ccmr_status instance_open(instance *made, const contender *who,
                          const instance_options *options);

/** Whether a budget can be set for it; a stack's text may be refused yet. */
bool contender_has_budget(const contender *who);

/** Give all memory back, and be as if never opened. */
void instance_close(instance *gone);

/** The memory behind what `allocate` gave. */
void *instance_memory(const instance *in, void *ptr);

/** What it holds now. False: unknown. */
bool instance_figures(const instance *in, figures *now);

#endif /* CCMR_BENCH_CONTENDER_H */
