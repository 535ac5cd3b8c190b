/* SPDX-License-Identifier: Apache-2.0 */
/*
 * virtual: CUDA's virtual memory as a resource, in five files.
 *
 *   kind.c      operations, options, the kind for stack texts, creation
 *   serve.c     the leaf: allocate, deallocate, grow
 *   ranges.c    the provider: reserve, commit, decommit, move, unreserve
 *   memory.c    the driver's calls, each undone where a later one fails
 *   books.c     what is alive, figures, what could not be given back
 *   access.c    other devices' rights, export
 *
 *   blocks  (tree)    ranges (tree)       mappings (tree)
 *     block             range               mapping -> piece
 *       range           (address space)     mapping -> piece   an alias is a
 *       pieces -> piece                     mapping ---^       second mapping
 *
 * A block is an address range of its own with one piece of physical memory
 * behind the other from its start on. Ranges and mappings are what an adaptor
 * above asked for, one piece a commit; the piece goes with its last mapping.
 *
 * Locks, in this order:
 *   access   shared by whatever maps or unmaps, from before the driver's first
 *            call until the books agree; alone by what goes through all
 *            mappings (rights of devices, audit)
 *   books    the trees and figures; no driver call is made under it
 *
 * Books: a record leaves its tree before the driver takes its address back,
 * and is put back where the driver refuses. What is only given back, a handle
 * or a range without mappings, cannot stop a free: where the driver refuses
 * that, it is kept among the strays, counted as reserved, and tried again.
 */
#ifndef CCMR_RESOURCES_VIRTUAL_VIRTUAL_H
#define CCMR_RESOURCES_VIRTUAL_VIRTUAL_H

#include <pthread.h>
#include <stdatomic.h>

#include <cucoremr/resources/virtual.h>

#include "lib/context.h"
#include "resources/virtual/tree.h"

/** Greatest alignment: where a range is placed costs nothing. */
#define CCMR__VIRTUAL_ALIGNMENT ((size_t)1 << 30)

/** Physical memory: one handle of the driver. */
typedef struct ccmr__piece {
    struct ccmr__piece *next; /* of its block, or of the strays */
    CUmemGenericAllocationHandle handle;
    size_t bytes;
    size_t mappings; /* of ranges; under the lock of the books */
    size_t counted;  /* of the mappings, by an audit */
} ccmr__piece;

/** Address space, from node.address on: a block's, or a range. */
typedef struct ccmr__range {
    ccmr__tree_node node;
    size_t bytes;
    size_t mappings;          /* and those being made: not a block's */
    struct ccmr__range *next; /* of the strays */
} ccmr__range;

/** A block. Its owner alone touches it while it is not in the tree. */
typedef struct ccmr__virtual_block {
    ccmr__range range; /* first: a stray range is freed as what it is */
    size_t bytes;      /* as asked for */
    size_t mapped;     /* from the start on */
    ccmr__piece *pieces;
} ccmr__virtual_block;

/** A piece at an address of a range. */
typedef struct ccmr__mapping {
    ccmr__tree_node node;
    ccmr__piece *piece;
    ccmr__range *range;
} ccmr__mapping;

typedef struct ccmr__virtual {
    ccmr__device *device;
    ccmr_virtual_options made; /* handle and room are multiples of unit */
    size_t unit;               /* the device's granularity */
    CUmemAllocationProp props;

    pthread_rwlock_t access;
    CUmemAccessDesc entries[CCMR__MAX_DEVICES]; /* the own device first */
    size_t entry_count;

    pthread_mutex_t books;
    ccmr__tree blocks;
    ccmr__tree ranges;
    ccmr__tree mappings;
    size_t reserved; /* bytes of all pieces */
    size_t peak_reserved;
    ccmr__piece *stray_pieces;
    ccmr__range *stray_ranges;
    atomic_size_t strays; /* how many; read without the lock */
} ccmr__virtual;

extern const ccmr_resource_ops ccmr__virtual_ops;

/* serve.c */
ccmr_status ccmr__virtual_allocate(void *object, size_t bytes,
                                   size_t alignment, ccmr_stream stream,
                                   void **ptr);
ccmr_status ccmr__virtual_deallocate(void *object, void *ptr, size_t bytes,
                                     size_t alignment, ccmr_stream stream);
ccmr_status ccmr__virtual_grow(void *object, void *ptr, size_t bytes,
                               size_t new_bytes, ccmr_stream stream);

/* ranges.c */
ccmr_status ccmr__virtual_reserve(void *object, size_t bytes, void **base);
ccmr_status ccmr__virtual_commit(void *object, void *address, size_t bytes);
ccmr_status ccmr__virtual_decommit(void *object, void *address, size_t bytes);
ccmr_status ccmr__virtual_move(void *object, void *from, void *to,
                               size_t bytes);
ccmr_status ccmr__virtual_unreserve(void *object, void *base, size_t bytes);

/* access.c */
ccmr_status ccmr__virtual_set_access(void *object, int device, int granted);
ccmr_status ccmr__virtual_export_handle(void *object, void *ptr, unsigned kind,
                                        void *handle, size_t handle_size);
ccmr_status ccmr__virtual_export_block(void *object, void *ptr, size_t bytes,
                                       unsigned kind, void *handle,
                                       size_t handle_size,
                                       ccmr_export_place *place);

/* memory.c: in the device's context. What maps and unmaps shares `access`. */

/** Reserve address space. */
ccmr_status ccmr__virtual_take_range(ccmr__virtual *self, size_t bytes,
                                     size_t alignment, uintptr_t *base);

/** Make a piece and count it. */
ccmr_status ccmr__virtual_take_piece(ccmr__virtual *self, size_t bytes,
                                     ccmr__piece **piece);

/** Give a piece back that no address has. 0: refused, it is a stray now. */
int ccmr__virtual_give_piece(ccmr__virtual *self, ccmr__piece *piece);

/** Give address space back that has no mappings; likewise. */
void ccmr__virtual_give_range(ccmr__virtual *self, ccmr__range *range);

/** Map a piece, without rights. */
ccmr_status ccmr__virtual_map(uintptr_t address, const ccmr__piece *piece);

/** Let all devices that have rights use what is mapped in whole pieces. */
ccmr_status ccmr__virtual_open(const ccmr__virtual *self, uintptr_t address,
                               size_t bytes);

/** Unmap whole pieces. */
ccmr_status ccmr__virtual_unmap(uintptr_t address, size_t bytes);

/** The same while something is undone: tried twice, and the error detail that
 * led to it stays. */
void ccmr__virtual_unmap_again(uintptr_t address, size_t bytes);

/* books.c */

/** Count bytes of a piece that has come; the peak with it. */
void ccmr__virtual_count(ccmr__virtual *self, size_t bytes);
void ccmr__virtual_uncount(ccmr__virtual *self, size_t bytes);

/** Keep what could not be given back. */
void ccmr__virtual_keep_piece(ccmr__virtual *self, ccmr__piece *piece);
void ccmr__virtual_keep_range(ccmr__virtual *self, ccmr__range *range);

/** Try again to give strays back, in the device's context. Returns the bytes
 * of physical memory that went. */
size_t ccmr__virtual_settle(ccmr__virtual *self);

/** Bytes of stray pieces. */
size_t ccmr__virtual_stray_bytes(ccmr__virtual *self);

/** Do the books agree? Nothing else is under way. */
ccmr_status ccmr__virtual_audit(void *object);

/** The end: whatever is left goes, in the device's context. */
void ccmr__virtual_give_all(ccmr__virtual *self);

/** Out of physical memory; `res` is success where the driver was not asked. */
ccmr_status ccmr__virtual_full(ccmr__virtual *self, size_t bytes, CUresult res)
    __attribute__((cold));

#endif /* CCMR_RESOURCES_VIRTUAL_VIRTUAL_H */
