/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captures, between capture.c and capture_serve.c.
 */
#ifndef CCMR_RESOURCES_POOL_CAPTURE_FIND_H
#define CCMR_RESOURCES_POOL_CAPTURE_FIND_H

#include "resources/pool/capture.h"

/** What captures on a stream, tied to its graph: in use until it is put back.
 * CCMR_ERROR_CAPTURING: nothing does, or the capture is invalid. In a scope. */
ccmr_status ccmr__pool_capture_find(ccmr__pool *pool, ccmr_stream stream,
                                    ccmr__pool_capture **found);
void ccmr__pool_capture_put(ccmr__pool *pool, ccmr__pool_capture *capture);

/** The lane of one of its streams, made at need; NULL without memory. */
ccmr__pool_lane *ccmr__pool_capture_lane(ccmr__pool *pool,
                                         ccmr__pool_capture *capture,
                                         ccmr_stream stream);

#endif /* CCMR_RESOURCES_POOL_CAPTURE_FIND_H */
