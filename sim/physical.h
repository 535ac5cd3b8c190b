/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Physical memory in pieces, of a device or of the host: what cuMemCreate
 * makes and cuMemMap gives addresses.
 *
 *     handle --> holder --+
 *                         +--> piece --> host memory, once touched
 *     handle --> holder --+
 *
 * A holder comes from one creation or one import; it lives while its handle
 * has not been released as often as it was given, and while anything is mapped
 * by it. A piece lives while it has a holder, or a descriptor of it is left
 * somewhere. Only then the device has its memory back.
 */
#ifndef SIM_PHYSICAL_H
#define SIM_PHYSICAL_H

#include "sim/area.h"
#include "sim/handle.h"

struct sim_piece {
    struct sim_piece *prev, *next; /**< all pieces */
    uint64_t key; /**< first of `size` numbers that no other has */
    CUmemLocation location;
    int device; /**< whose memory it takes; -1: none's */
    size_t size;
    uint64_t holders;
    char *bytes;          /**< NULL until touched */
    struct sim_area area; /**< behind the bytes, if it can be shared */
};

struct sim_holder {
    struct sim_slot *slot;
    struct sim_piece *piece;
    uint64_t handles; /**< how often the handle must be released */
    uint64_t mappings;
    CUmemAllocationProp properties; /**< an import has no handle types */
};

static inline CUmemGenericAllocationHandle sim_holder_handle(
    const struct sim_holder *holder)
{
    return (CUmemGenericAllocationHandle)(uintptr_t)holder->slot;
}

/** A piece with one handle. */
CUresult sim_piece_create(const CUmemAllocationProp *properties, size_t size,
                          CUmemGenericAllocationHandle *handle);
/** What a handle is. A handle that is none ends the process, as it does with a
 *  real driver; not so 0. */
struct sim_holder *sim_holder_find(const struct sim_thread *self,
                                   CUmemGenericAllocationHandle handle);
/** The same where a handle that is gone does no harm: NULL. */
struct sim_holder *sim_holder_peek(const struct sim_thread *self,
                                   CUmemGenericAllocationHandle handle);
void sim_holder_release(struct sim_holder *holder);
void sim_holder_map(struct sim_holder *holder);
void sim_holder_unmap(struct sim_holder *holder);

/** Its host memory; NULL without memory. */
char *sim_piece_bytes(struct sim_piece *piece);
/** Put a file behind the bytes. */
bool sim_piece_make_area(struct sim_piece *piece);
/** A descriptor for it to give away, or -1. */
int sim_piece_export(struct sim_piece *piece);
/** A handle for the piece that a descriptor names. */
CUresult sim_piece_import(int file, CUmemGenericAllocationHandle *handle);

/** Let go of pieces that descriptors alone kept, if those have been closed:
 *  before anyone asks how much memory is left. */
void sim_pieces_reap(void);
/** Pieces that have holders, and their bytes. */
void sim_pieces_count(uint64_t *pieces, uint64_t *bytes);
/** Host memory that stands behind pieces, in bytes. */
uint64_t sim_pieces_touched(void);
void sim_pieces_reset(void);

#endif
