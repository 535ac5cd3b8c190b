/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams. A stream outlives its handle while it has work, and while an event
 * or freed memory refers to a place in it: it is counted.
 */
#ifndef SIM_STREAM_H
#define SIM_STREAM_H

#include "sim/clock.h"
#include "sim/handle.h"
#include "sim/state.h"

#define SIM_PRIORITY_LEAST 0
#define SIM_PRIORITY_GREATEST (-5)

/** What a CUstream points at, where it is not a token. */
struct CUstream_st {
    struct sim_slot slot;
};

enum sim_stream_kind {
    SIM_STREAM_CREATED,
    SIM_STREAM_LEGACY, /**< the default stream of a context */
    SIM_STREAM_THREAD, /**< the one of a context and a thread */
    SIM_STREAM_INNER   /**< the simulator's own: no program sees it */
};

struct sim_stream {
    unsigned references;
    CUstream handle; /**< NULL for default streams and dead ones */
    enum sim_stream_kind kind;
    struct sim_context *context; /**< NULL once that is gone */
    bool retired;                /**< gone for the program */
    int device;
    uint64_t id;
    unsigned flags;
    int priority;
    struct sim_stream *prev, *next; /**< streams of the context */
    struct sim_thread *thread;      /**< of a per-thread one */
    struct sim_stream *next_of_thread;

    /* Work, schedule.c. */
    uint64_t enqueued;          /**< operations ever */
    uint64_t completed;         /**< those that ran */
    struct sim_op *head, *tail; /**< those that did not */
    bool stalled;
    CUstream stalled_as; /**< the handle or token it was stalled by */
    struct sim_stream *next_stalled;
    bool running;          /**< its head is a host function at work */
    size_t busy_index;     /**< place among busy streams, from 1; or 0 */
    struct sim_line *line; /**< its work as others refer to it */
    /** What later work of this stream is ordered behind, beyond its own. */
    struct sim_clock clock;
    /** Of the check of order: counts its work; what was joined by itself, of
     *  the legacy stream's count or, if it is that, of the blocking ones'. */
    uint64_t version, joined;

    struct sim_capture *capture;     /**< NULL: not capturing */
    struct sim_node *capture_tail;   /**< what the next node follows */
    struct sim_stream *capture_next; /**< streams of the capture */
    struct sim_pending *pendings;    /**< freed on it, by pool */
};

struct sim_stream *sim_stream_new(struct sim_context *context,
                                  enum sim_stream_kind kind, unsigned flags,
                                  int priority);
/** A piece of work that runs here and now, without the queue: its place. */
static inline uint64_t sim_stream_pass(struct sim_stream *stream)
{
    stream->completed++;
    return ++stream->enqueued;
}

void sim_stream_hold(struct sim_stream *stream);
void sim_stream_drop(struct sim_stream *stream);
/** The stream as the program knows it goes; its work goes on. */
void sim_stream_retire(struct sim_stream *stream);

/** The stream that a handle or token means on that thread. A handle that is
 *  no live stream's ends the process, as it does with a real driver. */
CUresult sim_stream_resolve(struct sim_thread *self, CUstream handle,
                            struct sim_stream **stream);
/** The same where that must not happen: NULL for whatever is no stream. */
struct sim_stream *sim_stream_peek(struct sim_thread *self, CUstream handle);
uint64_t sim_stream_id_of_handle(struct sim_thread *self, CUstream handle);

/** Does work on it wait for the legacy default stream, and the reverse? */
bool sim_stream_is_blocking(const struct sim_stream *stream);

void sim_streams_of_thread_end(struct sim_thread *thread);
void sim_streams_of_context_end(struct sim_context *context);
uint64_t sim_streams_live(void);
void sim_streams_reset(void);

/** Has the place been reached? */
static inline bool sim_reached(const struct sim_stream *stream,
                               uint64_t position)
{
    return stream->completed >= position;
}

#endif
