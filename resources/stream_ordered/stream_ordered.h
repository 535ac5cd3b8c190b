/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_ordered, between its files: store.c and tables.c (the books), serve.c
 * (allocate and deallocate), others.c (blocks that wait for another stream),
 * release.c (what goes back upstream), kind.c (operations, options, text).
 */
#ifndef CCMR_RESOURCES_STREAM_ORDERED_STREAM_ORDERED_H
#define CCMR_RESOURCES_STREAM_ORDERED_STREAM_ORDERED_H

#include "lib/stream.h"
#include "resources/stream_ordered/store.h"

ccmr_status ccmr__so_allocate(void *object, size_t bytes, size_t alignment,
                              ccmr_stream stream, void **ptr);
ccmr_status ccmr__so_deallocate(void *object, void *ptr, size_t bytes,
                                size_t alignment, ccmr_stream stream);

/** What a stream is, in the device's context where its token needs that. */
ccmr_status ccmr__so_resolve(ccmr__so *self, ccmr_stream stream,
                             ccmr__stream_use *use);

/**
 * Look at a few blocks that wait for other streams (with access=host, for
 * one's own as well): one whose event is done is handed out. NULL if there is
 * none. Asks the driver.
 */
ccmr__so_block *ccmr__so_take_other(ccmr__so *self, const ccmr__so_want *want,
                                    uint64_t stream_id);

/**
 * Take a block that waits for another stream, and let `use` wait for it on
 * the device; with access=host wait here. NULL if there is none.
 */
ccmr__so_block *ccmr__so_take_waiting(ccmr__so *self,
                                      const ccmr__so_want *want,
                                      const ccmr__stream_use *use);

typedef enum ccmr__so_mode {
    CCMR__SO_POLL,     /* sort out what is finished; nothing goes */
    CCMR__SO_FINISHED, /* finished blocks go */
    CCMR__SO_ALL       /* all go, and are waited for */
} ccmr__so_mode;

/* What a pass is to do and what it did. */
typedef struct ccmr__so_pass {
    ccmr__so_mode mode;
    size_t excess;      /* bytes that should go */
    unsigned pockets;   /* most pockets to ask for */
    size_t blocks;      /* [out] blocks that went */
    size_t bytes;       /* [out] bytes that went */
    ccmr_status status; /* [out] the upstream's first refusal */
} ccmr__so_pass;

/** Give cached blocks back to the upstream. Not under the lock. */
void ccmr__so_release(ccmr__so *self, ccmr__so_pass *pass);

ccmr_status ccmr__so_trim(void *object, size_t keep, ccmr_trim_result *result);

/** Wait for everything that is cached, give it back, and end the books. */
void ccmr__so_end(ccmr__so *self);

#endif /* CCMR_RESOURCES_STREAM_ORDERED_STREAM_ORDERED_H */
