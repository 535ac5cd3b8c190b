/* SPDX-License-Identifier: Apache-2.0 */
/* Operations: what is enqueued on a stream, or recorded in a graph. */
#ifndef SIM_OPERATION_H
#define SIM_OPERATION_H

#include "sim/places.h"
#include "sim/stream.h"

enum sim_op_kind {
    SIM_OP_MARK, /**< a place and no more: a record, a free */
    SIM_OP_WAIT, /**< places alone */
    SIM_OP_COPY,
    SIM_OP_FILL,
    SIM_OP_RECORD, /**< a mark that notes the time */
    SIM_OP_HOST,
    SIM_OP_CALLBACK,
    SIM_OP_GIVE_BACK /**< a plain block goes in stream order */
};

struct sim_op {
    struct sim_op *next;
    enum sim_op_kind kind;
    uint64_t serial;         /**< order of enqueueing, over all streams */
    struct sim_places after; /**< places that must be reached first */
    uintptr_t to, from;      /**< copy and fill */
    size_t bytes;
    void *staged;              /**< copy: bytes taken at the call, owned */
    unsigned value, width;     /**< fill */
    CUevent event;             /**< record */
    uint64_t generation;       /**< of the event's record */
    struct sim_remote *remote; /**< record, wait: of processes; counted */
    uint64_t remote_number;
    CUhostFn function;
    CUstreamCallback callback;
    void *data;
    CUstream named;            /**< what a callback is told */
    struct sim_region *region; /**< give back: a large block, or ... */
    struct sim_extent *extent; /**< ... a small one */
    struct sim_exec *exec;     /**< of a launch that ends here; counted */
};

/** A fresh operation, or NULL. */
struct sim_op *sim_op_new(enum sim_op_kind kind);
/** A copy of what a graph's node is to do. */
struct sim_op *sim_op_copy(const struct sim_op *op);
void sim_op_free(struct sim_op *op);

/** Carry the bytes of a copy or fill, without the queue. */
void sim_op_carry_out(struct sim_context *context, const struct sim_op *op);

#endif
