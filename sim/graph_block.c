/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/graph_block.h"

#include <stdlib.h>

/* Blocks. */

struct sim_graph_block *sim_graph_block_new(int device, size_t bytes)
{
    struct sim_graph_block *block;

    if (bytes > SIM_BLOCK_MOST) {
        return NULL;
    }
    block = calloc(1, sizeof *block);
    if (block == NULL) {
        return NULL;
    }
    block->region = sim_region_device(device, bytes, 0, SIM_REGION_GRAPH);
    if (block->region == NULL) {
        free(block);
        return NULL;
    }
    block->references = 1;
    block->bytes = bytes;
    block->region->graph_block = block;
    return block;
}

void sim_graph_block_hold(struct sim_graph_block *block)
{
    block->references++;
}

void sim_graph_block_drop(struct sim_graph_block *block)
{
    if (--block->references == 0) {
        block->region->graph_block = NULL;
        sim_region_free(block->region);
        free(block);
    }
}

static struct sim_graph_block *find(uintptr_t address)
{
    struct sim_region *region = sim_region_find(address);

    return region != NULL && region->kind == SIM_REGION_GRAPH
               ? region->graph_block
               : NULL;
}

struct sim_graph_block *sim_graph_block_at(uintptr_t address)
{
    struct sim_graph_block *block = find(address);

    return block != NULL && block->region->base == address ? block : NULL;
}

bool sim_graph_block_covers(uintptr_t address, size_t bytes)
{
    const struct sim_graph_block *block = find(address);
    size_t offset;

    if (block == NULL) {
        return false;
    }
    offset = address - block->region->base;
    return offset < block->bytes && bytes <= block->bytes - offset;
}

bool sim_graph_frees(const struct sim_nodes *nodes,
                     const struct sim_graph_block *block)
{
    const struct sim_node *node = nodes->first;

    while (node != NULL && (node->type != CU_GRAPH_NODE_TYPE_MEM_FREE ||
                            node->block != block)) {
        node = node->next;
    }
    return node != NULL;
}

void sim_graph_block_appear(struct sim_graph_block *block,
                            struct sim_chunk *chunk)
{
    block->region->asked = block->bytes;
    block->chunk = chunk;
    chunk->blocks++;
    sim_graph_block_hold(block);
}

void sim_graph_block_vanish(struct sim_graph_block *block,
                            struct sim_stream *stream)
{
    block->region->asked = 0;
    block->chunk->blocks--;
    sim_chunk_used(block->chunk, stream);
    block->chunk = NULL;
    sim_graph_block_drop(block);
}
