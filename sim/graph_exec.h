/* SPDX-License-Identifier: Apache-2.0 */
/* What is launched: a copy of a graph's nodes. It lives until it is destroyed
 * and no launch of it is left to run. */
#ifndef SIM_GRAPH_EXEC_H
#define SIM_GRAPH_EXEC_H

#include "sim/graph_block.h"

/** What a CUgraphExec points at. */
struct CUgraphExec_st {
    struct sim_slot slot;
};

struct sim_exec {
    struct sim_exec *prev, *next; /**< all that are not destroyed */
    uint64_t uses;                /**< the handle, and launches */
    CUgraphExec handle;
    struct sim_graph *graph; /**< that it was made of; NULL once gone */
    struct sim_nodes nodes;
    struct sim_reference *references;
    bool frees_itself; /**< what a launch left, the next one frees */
    bool has_memory;
    int device;  /**< of its memory */
    size_t need; /**< most bytes that its own blocks take at once */
    /** Where the last launch ends. */
    struct sim_stream *stream; /**< held; NULL: never launched */
    uint64_t position;
};

struct sim_exec *sim_exec_find(CUgraphExec handle);
/** Is the block one of its own? */
bool sim_exec_allocates(const struct sim_exec *exec,
                        const struct sim_graph_block *block);
/** Get it ready on a stream. */
CUresult sim_exec_upload(struct sim_thread *self, CUgraphExec handle,
                         CUstream stream_handle);
void sim_exec_drop(struct sim_exec *exec);
void sim_execs_forget_graph(struct sim_graph *graph);
uint64_t sim_execs_live(void);
void sim_execs_reset(void);

#endif
