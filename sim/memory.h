/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses and the bytes behind them.
 *
 * Everything that has an address is a region: a range of addresses with one
 * owner. Regions never overlap and are found by any address in them.
 *
 *   device address space        region                       host memory
 *   0x4000'0000'0000 +----------------+
 *     device 0       | plain block    |---- granule 0 ---> none until touched
 *                    +----------------+
 *                    | chunk of small |---- granule 0 ---> mmap
 *                    | plain blocks   |
 *                    +----------------+
 *                    | window of a    |---- granule 0 ---> mmap
 *                    | pool           |     granule 1 ---> none until touched
 *                    +----------------+
 *     device 1 at + 1 TiB
 *
 *   0x2000'0000'0000 +----------------+
 *     ranges that    | mapping        |---- a piece of physical memory
 *     are reserved   +----------------+
 *                    | nothing        |
 *                    +----------------+
 *
 * Device addresses are never host addresses: the host cannot read them by
 * mistake, and they are the same in every run. Host, managed and pinned
 * regions have host addresses, and their bytes are simply there.
 *
 * Within a chunk or a window, extents tile the addresses: each is used, free,
 * pending (freed on a stream that has not come there yet) or a hole (address
 * space without memory).
 */
#ifndef SIM_MEMORY_H
#define SIM_MEMORY_H

#include "sim/state.h"

/** All sizes and addresses of blocks are multiples of this. */
#define SIM_UNIT ((size_t)512)
/** Nothing as large as this is ever to be had. */
#define SIM_BLOCK_MOST ((size_t)1 << 44)
/** Device addresses are handed out in these. */
#define SIM_PAGE ((size_t)2 << 20)

enum sim_region_kind {
    SIM_REGION_PLAIN, /**< one large cuMemAlloc block */
    SIM_REGION_CHUNK, /**< many small ones */
    SIM_REGION_POOL,  /**< a window of a pool */
    SIM_REGION_PINNED,
    SIM_REGION_REGISTERED,
    SIM_REGION_MANAGED,
    SIM_REGION_RANGE,  /**< reserved addresses, virtual.h */
    SIM_REGION_IMPORT, /**< memory of another process */
    SIM_REGION_GRAPH   /**< a block of a graph, graph_block.h */
};

struct sim_region {
    struct sim_region *prev, *next; /**< all regions */
    uintptr_t base;
    size_t size;
    size_t asked; /**< bytes asked for, of a single block */
    enum sim_region_kind kind;
    int device;                  /**< -1: host */
    size_t lead;                 /**< bytes mapped before `base` */
    unsigned flags;              /**< of the call that made it */
    uint64_t id;                 /**< unique, never reused */
    struct sim_context *context; /**< goes with it; NULL for windows */
    struct sim_pool *pool;       /**< of a window */

    /** Host memory by granule; NULL where the address is host memory. */
    size_t granule;
    void **backing;
    bool *present; /**< of windows: is there memory in a granule? */

    /** Of chunks and windows: one bit a unit where a block starts, in pages
     *  of 4096, each made when first needed, and one bit a page. */
    uint64_t **starts;
    uint64_t *pages;
    struct sim_extent *first; /**< lowest address */

    struct sim_graph_block *graph_block;
    struct sim_advice *advice; /**< about managed memory, by address */

    struct sim_area *area; /**< behind the bytes, if they can be shared */
    uint64_t source;       /**< of an import: where it is in the file */
    uint64_t opens;        /**< of an import: how often it was opened */
    bool lost;             /**< of an import: work finds no memory there */
};

enum sim_extent_state {
    SIM_EXTENT_USED,
    SIM_EXTENT_FREE,
    SIM_EXTENT_PENDING,
    SIM_EXTENT_HOLE
};

/** A run of addresses in a chunk or window. */
struct sim_extent {
    uintptr_t base;
    size_t size;
    struct sim_region *region;
    struct sim_extent *prev, *next; /**< neighbours by address */
    /** Used: `link_next` is the chain of the index. Else: the list it is in
     *  (a bin of a store, the holes of a pool). */
    struct sim_extent *link_prev, *link_next;
    enum sim_extent_state state;
    size_t asked;             /**< used: bytes asked for */
    uint64_t id;              /**< used: unique, never reused */
    struct sim_stream *owner; /**< used, of a pool: allocated on; held */
    /** Pending: on whom, and in the order of positions. */
    struct sim_pending *pending;
    struct sim_extent *older, *newer;
    uint64_t position;
};

/** What an address turned out to be. */
struct sim_block {
    struct sim_region *region;
    struct sim_extent *extent;   /**< NULL: the region is the block */
    struct sim_mapping *mapping; /**< of a range, else NULL */
    uintptr_t base;
    size_t size; /**< as asked for */
    uint64_t id;
};

/* Regions. */

/** A region of device addresses; granule 0 means one granule. */
struct sim_region *sim_region_device(int device, size_t size, size_t granule,
                                     enum sim_region_kind kind);
/** A region of fresh host memory; `reserve`: address space alone. Small ones
 *  are not aligned to pages, as they are not by a real driver. */
struct sim_region *sim_region_host(size_t size, enum sim_region_kind kind,
                                   bool reserve);
/** The same with an alignment, if that is more than a page of the host. */
struct sim_region *sim_region_aligned(size_t size, enum sim_region_kind kind,
                                      size_t alignment);
/** The same in an area, which becomes the region's. */
struct sim_region *sim_region_shared(size_t size, enum sim_region_kind kind,
                                     struct sim_area *area);
/** A region over bytes of an area of another process, at addresses of a
 *  device or (-1) of the host. The area stays the caller's. */
struct sim_region *sim_region_import(int device, const struct sim_area *area,
                                     size_t offset, size_t bytes);
/** A region over memory that is the caller's; NULL if one overlaps. */
struct sim_region *sim_region_foreign(void *base, size_t size,
                                      enum sim_region_kind kind);
/** Reserved addresses, those of the hint if they are to be had. */
struct sim_region *sim_region_range(size_t size, size_t alignment,
                                    uintptr_t hint);
void sim_region_free(struct sim_region *region);
/** The region with that address in it, or NULL. */
struct sim_region *sim_region_find(uintptr_t address);
struct sim_region *sim_regions(void);
/** Does a region overlap the range? */
bool sim_region_overlaps(uintptr_t address, size_t size);
/** Put device memory into whole granules of a window. */
void sim_region_fill(struct sim_region *region, uintptr_t base, size_t size);
/** Take it away, and the host memory behind it; contents are lost. */
void sim_region_forget(struct sim_region *region, uintptr_t base, size_t size);

/** Does the address lie where device addresses are? */
bool sim_is_device_address(uintptr_t address);
/** Does it lie where ranges are reserved? Those are device addresses, too. */
bool sim_is_range_address(uintptr_t address);

/* Blocks. */

/** The live block with that address in it. */
bool sim_block_find(uintptr_t address, struct sim_block *block);

/* Bytes. */

/** May a copy or fill use the range? It must lie in one live block, or be
 *  ordinary host memory. */
bool sim_range_usable(uintptr_t address, size_t bytes);
/** The same for work of a device, which needs rights to virtual memory. */
bool sim_range_allows(int device, uintptr_t address, size_t bytes, bool write);
/** The host memory behind an address, and how far it goes on without a break
 *  (at most `bytes`). NULL where nothing is behind it. */
void *sim_bytes(uintptr_t address, size_t bytes, size_t *length);
/** What identifies the memory behind an address, wherever it is mapped; keys
 *  go on with the addresses for `length` bytes, at most `bytes`. */
uint64_t sim_memory_key(uintptr_t address, size_t bytes, size_t *length);
/** Host memory that stands behind device memory, in bytes. */
uint64_t sim_touched(void);

/** Give memory back that only other processes still had, and have no more:
 *  before anyone asks how much is left. */
void sim_memory_reap(void);

uint64_t sim_next_id(void);
/** Drop everything. */
void sim_memory_reset(void);

#endif
