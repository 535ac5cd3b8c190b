/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captures: which streams record instead of running, and which calls ruin
 * them. A capture that was ruined stays on its streams until it is ended.
 */
#ifndef SIM_CAPTURE_H
#define SIM_CAPTURE_H

#include "sim/graph.h"
#include "sim/stream.h"

struct sim_capture {
    struct sim_capture *prev, *next;
    uint64_t id;
    CUstreamCaptureMode mode;
    uint64_t thread; /**< serial of who began it */
    struct sim_stream *origin;
    struct sim_graph *graph; /**< NULL once the program has it */
    bool invalid;
    struct sim_stream *members; /**< the origin and who joined it; held */
};

/** May the thread make an unsafe call now? If not, the captures that forbid
 *  it are ruined. */
CUresult sim_capture_check(struct sim_thread *self);
void sim_capture_invalidate(struct sim_capture *capture);
struct sim_capture *sim_capture_by_id(uint64_t id);

/** All captures in a context, ruined: its synchronisation would wait for
 *  them. */
CUresult sim_capture_check_context(const struct sim_context *context);
/** A wait or question about a stream itself: forbidden while it captures,
 *  and elsewhere an unsafe call. */
CUresult sim_capture_touch(struct sim_thread *self, struct sim_stream *stream);
/** Work on the legacy stream depends on all blocking streams: it is refused
 *  while one of them captures, and ruins that capture. */
CUresult sim_capture_implicit(const struct sim_stream *stream);
/** Put an operation into the graph instead of the stream. */
CUresult sim_capture_add(struct sim_stream *stream, struct sim_op *op);
/** Memory for the graph of a capture, and back. */
CUresult sim_capture_allocate(struct sim_stream *stream, size_t bytes,
                              CUdeviceptr *address);
CUresult sim_capture_free(struct sim_stream *stream, CUdeviceptr address);
/** A stream waits for a node of the capture, and so becomes part of it. */
CUresult sim_capture_join(struct sim_capture *capture,
                          struct sim_stream *stream, struct sim_node *node);
void sim_capture_of_stream_end(struct sim_stream *stream);
/** How many graphs the program has, not counting those being captured. */
uint64_t sim_graphs_owned(void);

/* For capture_api.c: */

/** Begin a capture on a stream that has none. */
CUresult sim_capture_begin(struct sim_thread *self, struct sim_stream *stream,
                           CUstreamCaptureMode mode);
/** Take every stream out of a capture, which goes. */
void sim_capture_delete(struct sim_capture *capture);
/** Would work on the stream depend on a capture? Nothing is ruined. */
CUresult sim_capture_see_implicit(const struct sim_stream *stream);

#endif
