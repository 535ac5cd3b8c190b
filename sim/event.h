/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events: each remembers the place in a stream where it was last recorded,
 * and what that place is ordered behind. One that was never recorded counts
 * as reached.
 */
#ifndef SIM_EVENT_H
#define SIM_EVENT_H

#include "sim/places.h"
#include "sim/remote.h"
#include "sim/stream.h"

/** What a CUevent points at. */
struct CUevent_st {
    struct sim_slot slot;
};

struct sim_event {
    struct sim_event *prev, *next; /**< of the context */
    CUevent handle;
    struct sim_context *context;
    unsigned flags;
    struct sim_stream *stream; /**< NULL: nothing to wait for */
    uint64_t position;
    struct sim_clock clock; /**< and what that place is ordered behind */
    uint64_t capture;       /**< recorded in that capture, or 0 */
    struct sim_node *node;  /**< its last node there */
    bool recorded;
    bool timed;                /**< `when` is known */
    uint64_t generation;       /**< counts records */
    uint64_t when;             /**< nanoseconds */
    struct sim_remote *remote; /**< if it is for other processes, too */
};

/** The event behind a handle, or what a handle that is none gets. */
CUresult sim_event_find(CUevent handle, struct sim_event **event);
/** One that other processes have, too; the remote becomes the event's. */
CUresult sim_event_open(struct sim_thread *self, CUevent *handle,
                        struct sim_remote *remote);
/** The event stands for the stream's work up to here, once all of `after`,
 *  which is taken, is reached as well. */
CUresult sim_event_record(struct sim_event *event, struct sim_stream *stream,
                          struct sim_places *after);
/** Later work of the stream waits for what the event stands for; neither is
 *  part of a capture. */
CUresult sim_event_await(struct sim_event *event, struct sim_stream *stream);

/** Later work of a stream waits for a place in another one, which is ordered
 *  behind that clock. */
CUresult sim_event_follow(struct sim_stream *stream, struct sim_stream *other,
                          uint64_t position, const struct sim_clock *clock);

/** Work came to a record of the event. */
void sim_event_reached(CUevent handle, uint64_t generation);
void sim_events_of_context_end(struct sim_context *context);
uint64_t sim_events_live(void);
void sim_events_reset(void);

#endif
