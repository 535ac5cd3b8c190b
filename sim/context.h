/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts, and which one is current on a thread. */
#ifndef SIM_CONTEXT_H
#define SIM_CONTEXT_H

#include "sim/clock.h"
#include "sim/handle.h"
#include "sim/state.h"

/** What a CUcontext points at. */
struct CUctx_st {
    struct sim_slot slot;
};

struct sim_context {
    CUcontext handle;
    CUdevice device;
    uint64_t id;
    unsigned flags;
    bool primary;
    unsigned retains;           /**< of a primary one */
    CUresult broken;            /**< what the context's work ran into */
    struct sim_stream *legacy;  /**< its default stream */
    struct sim_stream *streams; /**< all of its streams, that one included */
    unsigned blocking_busy;     /**< blocking streams that have work */
    /** Of the check of order: counts the work of blocking streams; what
     *  streams did that are gone, and those of them that were blocking. */
    uint64_t blocking_version;
    struct sim_clock gone, gone_blocking;
    struct sim_event *events;
    /** Of events of the whole context, event_context.c; NULL till needed. */
    struct sim_stream *gather, *entry;
    uint32_t peers;        /**< bit d: access to device d enabled */
    struct sim_heap *heap; /**< small plain blocks */
};

/** The context behind a handle, or NULL. */
struct sim_context *sim_context_find(CUcontext handle);
/** The thread's current context, or NULL. */
struct sim_context *sim_context_current(const struct sim_thread *self);
struct sim_context *sim_context_new(CUdevice device, unsigned flags);
/** Its work is finished first, stalled or not; all that is its own goes. */
void sim_context_delete(struct sim_context *context);
/** A stream comes to its context: it waits for what that waits for. */
CUresult sim_context_enter(struct sim_stream *stream);
/** How many contexts are alive, with each retain of a primary one. */
uint64_t sim_contexts_live(void);
/** Put in all places of the work so far on a device; -1: on all. */
void sim_contexts_note(int device, struct sim_clock *clock);
void sim_contexts_reset(void);

#endif
