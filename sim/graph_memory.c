/* SPDX-License-Identifier: Apache-2.0 */
/* What a device keeps for graphs: its chunks, and the calls about them. */
#include "sim/graph_block.h"

#include <stdlib.h>
#include <string.h>

#include "sim/device.h"

/* Memory is taken in these. */
#define CHUNK ((size_t)32 << 20)

static struct sim_chunk *chunks;

/* By device. All that is reserved counts as used. */
static struct {
    uint64_t reserved;
    uint64_t used_high, reserved_high;
} amounts[SIM_MAX_DEVICES];

static void forget_user(struct sim_chunk *chunk)
{
    if (chunk->stream != NULL) {
        sim_stream_drop(chunk->stream);
        chunk->stream = NULL;
    }
}

static bool is_done(const struct sim_chunk *chunk)
{
    return chunk->stream == NULL ||
           sim_reached(chunk->stream, chunk->position);
}

/* The smallest that is large enough and that nobody needs who is not before
 * the stream's next work. */
static struct sim_chunk *find_idle(int device, size_t size,
                                   const struct sim_stream *stream)
{
    struct sim_chunk *best = NULL;
    struct sim_chunk *chunk;

    for (chunk = chunks; chunk != NULL; chunk = chunk->next) {
        if (chunk->device == device && chunk->blocks == 0 &&
            chunk->size >= size &&
            (best == NULL || chunk->size < best->size) &&
            (chunk->stream == stream || is_done(chunk))) {
            best = chunk;
        }
    }
    return best;
}

static void reserve(int device, size_t size)
{
    amounts[device].reserved += size;
    if (amounts[device].reserved > amounts[device].reserved_high) {
        amounts[device].reserved_high = amounts[device].reserved;
    }
    if (amounts[device].reserved > amounts[device].used_high) {
        amounts[device].used_high = amounts[device].reserved;
    }
}

static void trim(int device)
{
    struct sim_chunk **link = &chunks;

    while (*link != NULL) {
        struct sim_chunk *chunk = *link;

        if (chunk->device != device || chunk->blocks != 0 || !is_done(chunk)) {
            link = &chunk->next;
            continue;
        }
        *link = chunk->next;
        amounts[device].reserved -= chunk->size;
        sim_device_give(device, chunk->size);
        forget_user(chunk);
        free(chunk);
    }
}

CUresult sim_chunk_take(int device, size_t size, struct sim_stream *stream,
                        struct sim_chunk **taken)
{
    struct sim_chunk *chunk;

    size = (size + CHUNK - 1) / CHUNK * CHUNK;
    chunk = find_idle(device, size, stream);
    if (chunk != NULL) {
        *taken = chunk;
        return CUDA_SUCCESS;
    }
    chunk = calloc(1, sizeof *chunk);
    if (chunk == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (!sim_device_take(device, size)) {
        trim(device);
        if (!sim_device_take(device, size)) {
            free(chunk);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    reserve(device, size);
    chunk->device = device;
    chunk->size = size;
    chunk->next = chunks;
    chunks = chunk;
    *taken = chunk;
    return CUDA_SUCCESS;
}

void sim_chunk_used(struct sim_chunk *chunk, struct sim_stream *stream)
{
    if (stream == NULL) {
        forget_user(chunk);
        return;
    }
    sim_stream_hold(stream);
    forget_user(chunk);
    chunk->stream = stream;
    chunk->position = stream->enqueued;
}

void sim_chunks_reset(void)
{
    while (chunks != NULL) {
        struct sim_chunk *chunk = chunks;

        chunks = chunk->next;
        forget_user(chunk);
        free(chunk);
    }
    memset(amounts, 0, sizeof amounts);
}

/* The calls. */

static CUresult get_attribute(CUdevice device, CUgraphMem_attribute attribute,
                              void *value)
{
    uint64_t number;

    if (sim_device_find(device) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    switch ((int)attribute) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
        number = amounts[device].reserved;
        break;
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
        number = amounts[device].used_high;
        break;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
        number = amounts[device].reserved_high;
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (value == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    memcpy(value, &number, sizeof number);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetGraphMemAttribute(CUdevice device,
                                              CUgraphMem_attribute attr,
                                              void *value)
{
    SIM_ENTRY(cuDeviceGetGraphMemAttribute, get_attribute(device, attr, value),
              NULL, device, attr, 0);
}

static CUresult set_attribute(CUdevice device, CUgraphMem_attribute attribute,
                              const void *value)
{
    cuuint64_t number = 1;

    if (sim_device_find(device) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    if (value != NULL) {
        memcpy(&number, value, sizeof number);
    }
    if (number != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) {
        amounts[device].used_high = amounts[device].reserved;
        return CUDA_SUCCESS;
    }
    if (attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) {
        amounts[device].reserved_high = amounts[device].reserved;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuDeviceSetGraphMemAttribute(CUdevice device,
                                              CUgraphMem_attribute attr,
                                              void *value)
{
    SIM_ENTRY(cuDeviceSetGraphMemAttribute, set_attribute(device, attr, value),
              NULL, device, attr, 0);
}

static CUresult trim_device(CUdevice device)
{
    if (sim_device_find(device) == NULL) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    trim(device);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGraphMemTrim(CUdevice device)
{
    SIM_ENTRY(cuDeviceGraphMemTrim, trim_device(device), NULL, device, 0, 0);
}
