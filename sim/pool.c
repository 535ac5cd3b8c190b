/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation and free in stream order; pool objects are in pool_api.c. */
#include "sim/pool.h"

#include <stdlib.h>

#include "sim/order.h"
#include "sim/schedule.h"

/* Pending memory. */

static struct sim_pending *pending_of(struct sim_pool *pool,
                                      const struct sim_stream *stream)
{
    struct sim_pending *pending = stream->pendings;

    while (pending != NULL && pending->pool != pool) {
        pending = pending->next_of_stream;
    }
    return pending;
}

static struct sim_pending *make_pending(struct sim_pool *pool,
                                        struct sim_stream *stream)
{
    struct sim_pending *pending = pending_of(pool, stream);

    if (pending != NULL) {
        return pending;
    }
    pending = calloc(1, sizeof *pending);
    if (pending == NULL) {
        return NULL;
    }
    pending->pool = pool;
    pending->stream = stream;
    sim_stream_hold(stream);
    pending->next_of_stream = stream->pendings;
    stream->pendings = pending;
    pending->next_of_pool = pool->pendings;
    pool->pendings = pending;
    return pending;
}

static void drop_pending(struct sim_pending *pending)
{
    struct sim_pending **link = &pending->pool->pendings;

    while (*link != pending) {
        link = &(*link)->next_of_pool;
    }
    *link = pending->next_of_pool;
    link = &pending->stream->pendings;
    while (*link != pending) {
        link = &(*link)->next_of_stream;
    }
    *link = pending->next_of_stream;
    sim_stream_drop(pending->stream);
    free(pending);
}

static void pending_remove(struct sim_pending *pending,
                           struct sim_extent *extent)
{
    pending->pool->pending_extents--;
    sim_store_remove(&pending->store, extent);
    if (extent->older != NULL) {
        extent->older->newer = extent->newer;
    } else {
        pending->oldest = extent->newer;
    }
    if (extent->newer != NULL) {
        extent->newer->older = extent->older;
    } else {
        pending->newest = extent->older;
    }
    extent->pending = NULL;
    extent->older = NULL;
    extent->newer = NULL;
}

/* Behind `older` in the order of positions; NULL: at the old end. */
static void pending_insert(struct sim_pending *pending,
                           struct sim_extent *extent, struct sim_extent *older)
{
    pending->pool->pending_extents++;
    extent->state = SIM_EXTENT_PENDING;
    extent->pending = pending;
    extent->older = older;
    extent->newer = older != NULL ? older->newer : pending->oldest;
    if (extent->newer != NULL) {
        extent->newer->older = extent;
    } else {
        pending->newest = extent;
    }
    if (older != NULL) {
        older->newer = extent;
    } else {
        pending->oldest = extent;
    }
    sim_store_put(&pending->store, extent);
}

/* Newly freed, so the newest; joined with neighbours pending there too. */
static void put_pending(struct sim_pending *pending, struct sim_extent *extent,
                        uint64_t position)
{
    extent->position = position;
    if (extent->next != NULL && extent->next->state == SIM_EXTENT_PENDING &&
        extent->next->pending == pending) {
        pending_remove(pending, extent->next);
        sim_extent_absorb(extent);
    }
    if (extent->prev != NULL && extent->prev->state == SIM_EXTENT_PENDING &&
        extent->prev->pending == pending) {
        extent = extent->prev;
        pending_remove(pending, extent);
        sim_extent_absorb(extent);
        extent->position = position;
    }
    pending_insert(pending, extent, pending->newest);
}

/* Memory freed up to that place becomes free. */
static void harvest(struct sim_pending *pending, uint64_t position)
{
    while (pending->oldest != NULL && pending->oldest->position <= position) {
        struct sim_extent *extent = pending->oldest;

        pending_remove(pending, extent);
        sim_pool_put_ready(pending->pool, extent);
    }
}

/* That a stream happens to have come so far makes nothing free: the host has
 * to have synchronised, or an allocation may look. But nobody will any more
 * where the pool was destroyed. */
void sim_pools_reached(struct sim_stream *stream)
{
    struct sim_pending *pending = stream->pendings;

    while (pending != NULL) {
        struct sim_pending *next = pending->next_of_stream;

        if (pending->pool->handle == NULL) {
            sim_pool_look(pending->pool);
            sim_pool_settle(pending->pool);
        }
        pending = next;
    }
}

/* Opportunistic reuse: what happens to be finished becomes free. */
void sim_pool_look(struct sim_pool *pool)
{
    struct sim_pending *pending;

    for (pending = pool->pendings; pending != NULL;
         pending = pending->next_of_pool) {
        harvest(pending, pending->stream->completed);
    }
}

/* The host knows how far the stream has come. */
static void synchronized(struct sim_pending *pending)
{
    struct sim_stream *stream = pending->stream;

    harvest(pending,
            stream->context != NULL ? stream->line->seen : stream->completed);
    if (pending->oldest == NULL) {
        drop_pending(pending);
    }
}

static void release(struct sim_pool *pool)
{
    if (pool->handle != NULL && pool->reserved > pool->threshold) {
        sim_pool_trim(pool, pool->threshold);
    }
    sim_pool_settle(pool);
}

void sim_pools_synchronized(struct sim_stream *stream)
{
    struct sim_pending *pending = stream->pendings;

    while (pending != NULL) {
        struct sim_pending *next = pending->next_of_stream;
        struct sim_pool *pool = pending->pool;

        synchronized(pending);
        release(pool);
        pending = next;
    }
}

void sim_pools_ended(struct sim_stream *stream)
{
    struct sim_line *line = stream->line;

    line->seen = stream->completed;
    if (stream->pendings != NULL) {
        sim_pools_synchronized(stream);
    }
}

void sim_pool_synchronize(struct sim_pool *pool,
                          const struct sim_context *context)
{
    struct sim_pending *pending = pool->pendings;
    bool any = false;

    while (pending != NULL) {
        struct sim_pending *next = pending->next_of_pool;

        if (pending->stream->context == context ||
            pending->stream->context == NULL) {
            synchronized(pending);
            any = true;
        }
        pending = next;
    }
    if (any) {
        release(pool);
    }
}

void sim_pool_drop_pendings(struct sim_pool *pool)
{
    while (pool->pendings != NULL) {
        drop_pending(pool->pendings);
    }
}

/* Taking. */

/* Make a block of the low end of an extent that is in no store any more. */
static bool make_block(struct sim_pool *pool, struct sim_extent *extent,
                       size_t size, size_t asked, struct sim_pending *pending,
                       struct sim_extent *older)
{
    struct sim_extent *rest = NULL;

    if (extent->size > size) {
        rest = sim_extent_split(extent, size);
        if (rest == NULL) {
            return false;
        }
    }
    if (!sim_block_add(extent, asked)) {
        if (rest != NULL) {
            sim_extent_absorb(extent);
        }
        return false;
    }
    if (rest != NULL) {
        if (pending != NULL) {
            pending_insert(pending, rest, older);
        } else {
            sim_store_put(&pool->ready, rest);
        }
    }
    pool->blocks++;
    pool->used += asked;
    if (pool->used > pool->used_high) {
        pool->used_high = pool->used;
    }
    return true;
}

static struct sim_extent *take_ready(struct sim_pool *pool, size_t size,
                                     size_t asked)
{
    struct sim_extent *extent = sim_store_find(&pool->ready, size);

    if (extent == NULL) {
        return NULL;
    }
    sim_store_remove(&pool->ready, extent);
    if (!make_block(pool, extent, size, asked, NULL, NULL)) {
        sim_store_put(&pool->ready, extent);
        return NULL;
    }
    return extent;
}

static struct sim_extent *take_pending(struct sim_pending *pending,
                                       struct sim_extent *extent, size_t size,
                                       size_t asked)
{
    struct sim_extent *older = extent->older;
    struct sim_pool *pool = pending->pool;

    pending_remove(pending, extent);
    if (!make_block(pool, extent, size, asked, pending, older)) {
        pending_insert(pending, extent, older);
        return NULL;
    }
    return extent;
}

static struct sim_extent *take_own(struct sim_pool *pool, size_t size,
                                   size_t asked, struct sim_stream *stream)
{
    struct sim_pending *pending = pending_of(pool, stream);
    struct sim_extent *extent;

    if (pending == NULL) {
        return NULL;
    }
    extent = sim_store_find(&pending->store, size);
    return extent != NULL ? take_pending(pending, extent, size, asked) : NULL;
}

/* What other streams freed at places that this one is ordered behind. */
static struct sim_extent *take_ordered(struct sim_pool *pool, size_t size,
                                       size_t asked,
                                       const struct sim_stream *stream)
{
    struct sim_pending *pending;

    for (pending = pool->pendings; pending != NULL;
         pending = pending->next_of_pool) {
        struct sim_extent *extent = pending->newest;

        for (; extent != NULL; extent = extent->older) {
            if (extent->size >= size &&
                sim_clock_covers(&stream->clock, pending->stream->line,
                                 extent->position)) {
                return take_pending(pending, extent, size, asked);
            }
        }
    }
    return NULL;
}

/* What another stream will have freed, with a wait for it put into this
 * one. */
static struct sim_extent *take_waiting(struct sim_pool *pool, size_t size,
                                       size_t asked, struct sim_stream *stream)
{
    struct sim_pending *pending;
    struct sim_extent *extent = NULL;
    struct sim_op *op;

    for (pending = pool->pendings; pending != NULL;
         pending = pending->next_of_pool) {
        extent = sim_store_find(&pending->store, size);
        if (extent != NULL) {
            break;
        }
    }
    if (extent == NULL) {
        return NULL;
    }
    op = sim_op_new(SIM_OP_WAIT);
    if (op == NULL) {
        return NULL;
    }
    /* The stream's clock follows when it is enqueued. */
    if (!sim_places_add(&op->after, pending->stream, extent->position)) {
        sim_op_free(op);
        return NULL;
    }
    extent = take_pending(pending, extent, size, asked);
    if (extent == NULL) {
        sim_op_free(op);
        return NULL;
    }
    /* A submission that fails here leaves the block handed out unordered;
     * without host memory for one pointer nothing better is to be had. */
    (void)sim_submit(stream, op);
    return extent;
}

CUresult sim_pool_allocate(struct sim_pool *pool, size_t bytes,
                           struct sim_stream *stream, CUdeviceptr *address)
{
    size_t size = (bytes + SIM_UNIT - 1) / SIM_UNIT * SIM_UNIT;
    struct sim_extent *block = NULL;
    CUresult res;

    if (stream->pendings != NULL) {
        block = take_own(pool, size, bytes, stream);
    }
    if (block == NULL && pool->opportunistic && pool->pending_extents != 0) {
        sim_pool_look(pool);
    }
    if (block == NULL && pool->follow_events && stream->clock.count != 0 &&
        pool->pending_extents != 0) {
        block = take_ordered(pool, size, bytes, stream);
    }
    if (block == NULL) {
        block = take_ready(pool, size, bytes);
    }
    if (block == NULL) {
        res = sim_pool_grow(pool, size);
        if (res == CUDA_SUCCESS) {
            block = take_ready(pool, size, bytes);
        }
    }
    if (block == NULL && pool->internal_dependencies &&
        pool->pendings != NULL) {
        block = take_waiting(pool, size, bytes, stream);
    }
    if (block == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    block->owner = stream;
    sim_stream_hold(stream);
    *address = block->base;
    return CUDA_SUCCESS;
}

/* Giving back. */

static void count_free(struct sim_pool *pool, struct sim_extent *block)
{
    sim_block_remove(block);
    sim_stream_drop(block->owner);
    block->owner = NULL;
    pool->blocks--;
    pool->used -= block->asked;
}

CUresult sim_pool_free(struct sim_extent *block, struct sim_stream *stream)
{
    struct sim_pool *pool = block->region->pool;
    struct sim_pending *pending = make_pending(pool, stream);
    struct sim_op *op;

    if (pending == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (sim_runs_now(stream)) {
        if (sim.order) {
            (void)sim_order_join(stream);
        }
        count_free(pool, block);
        put_pending(pending, block, sim_stream_pass(stream));
        if (pool->handle == NULL) {
            sim_pool_look(pool);
            sim_pool_settle(pool);
        }
        return CUDA_SUCCESS;
    }
    op = sim_op_new(SIM_OP_MARK);
    if (op == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    count_free(pool, block);
    put_pending(pending, block, stream->enqueued + 1);
    /* Should it not be enqueued, the next operation's end serves as well. */
    (void)sim_submit(stream, op);
    return CUDA_SUCCESS;
}

void sim_pool_free_now(struct sim_extent *block)
{
    struct sim_pool *pool = block->region->pool;

    count_free(pool, block);
    sim_pool_put_ready(pool, block);
    sim_pool_settle(pool);
}
