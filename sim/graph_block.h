/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of graphs.
 *
 * A block has its address from the making of its node on. It is there for the
 * program from a launch on, until the graph, another graph or the program
 * frees it; meanwhile it lies in a chunk of physical memory that the launch
 * took. Chunks that hold no block any more serve the next launches, and go
 * back only when the device is told to trim.
 *
 *     node --> block (address) ..launched..> chunk (memory of the device)
 */
#ifndef SIM_GRAPH_BLOCK_H
#define SIM_GRAPH_BLOCK_H

#include "sim/graph.h"
#include "sim/memory.h"

struct sim_chunk {
    struct sim_chunk *next;
    int device;
    size_t size;
    uint64_t blocks; /**< that are there for the program */
    /** Who used it last, up to where. */
    struct sim_stream *stream; /**< held; NULL: nobody */
    uint64_t position;
};

struct sim_graph_block {
    unsigned references;       /**< nodes, and the block itself while there */
    struct sim_region *region; /**< `asked` is 0 unless it is there */
    size_t bytes;
    struct sim_chunk *chunk; /**< while it is there */
};

/** A block with one reference; NULL without memory or addresses. */
struct sim_graph_block *sim_graph_block_new(int device, size_t bytes);
void sim_graph_block_hold(struct sim_graph_block *block);
void sim_graph_block_drop(struct sim_graph_block *block);
/** The block that begins there, there or not; or NULL. */
struct sim_graph_block *sim_graph_block_at(uintptr_t address);
/** May captured work use the range? It lies in one block. */
bool sim_graph_block_covers(uintptr_t address, size_t bytes);
/** Is there a free node for it? */
bool sim_graph_frees(const struct sim_nodes *nodes,
                     const struct sim_graph_block *block);

static inline bool sim_graph_block_is_there(
    const struct sim_graph_block *block)
{
    return block->region->asked != 0;
}

/** A launch left it to the program. */
void sim_graph_block_appear(struct sim_graph_block *block,
                            struct sim_chunk *chunk);
/** It is freed behind the work of a stream so far; NULL: now. */
void sim_graph_block_vanish(struct sim_graph_block *block,
                            struct sim_stream *stream);

/** Memory for a launch on that stream: a chunk that nobody else needs. */
CUresult sim_chunk_take(int device, size_t size, struct sim_stream *stream,
                        struct sim_chunk **chunk);
/** It is used up to where the stream is; NULL: no more. */
void sim_chunk_used(struct sim_chunk *chunk, struct sim_stream *stream);
void sim_chunks_reset(void);

#endif
