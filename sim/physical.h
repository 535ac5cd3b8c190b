/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Physical memory in pieces, of a device or of the host: what cuMemCreate
 * makes and cuMemMap gives addresses. A piece lives until it is neither held
 * by a handle, nor mapped, nor named by a file descriptor that was handed out;
 * only then the device has its memory back.
 *
 *     handles ---+
 *     mappings --+--> piece --> host memory, once touched
 *     descriptors
 */
#ifndef SIM_PHYSICAL_H
#define SIM_PHYSICAL_H

#include "sim/file.h"
#include "sim/handle.h"

struct sim_physical {
    struct sim_physical *prev, *next; /**< all pieces */
    uint64_t id;                      /**< unique, never reused */
    CUmemAllocationProp properties;
    int device; /**< whose memory it takes; -1: none's */
    size_t size;
    struct sim_slot *slot; /**< the handle; NULL while none is out */
    uint64_t handles;      /**< how often that must be released */
    uint64_t mappings;
    char *bytes;   /**< NULL until touched */
    int file;      /**< behind the bytes, or -1 */
    bool imported; /**< the file is another process's */
    struct sim_file_id file_id;
};

/** A piece with one handle. */
CUresult sim_physical_create(const CUmemAllocationProp *properties,
                             size_t size,
                             CUmemGenericAllocationHandle *handle);
/** The piece behind a handle, or NULL. */
struct sim_physical *sim_physical_find(CUmemGenericAllocationHandle handle);
/** One more reference to its handle, which is made anew if it is gone. */
CUresult sim_physical_hold(struct sim_physical *piece,
                           CUmemGenericAllocationHandle *handle);
void sim_physical_release(struct sim_physical *piece);
/** One mapping more or less. */
void sim_physical_map(struct sim_physical *piece);
void sim_physical_unmap(struct sim_physical *piece);
/** Its host memory; NULL without memory. */
char *sim_physical_bytes(struct sim_physical *piece);
/** Put a file behind the bytes, which other processes can be given. */
bool sim_physical_make_file(struct sim_physical *piece);
/** A descriptor for it to give away, or -1. */
int sim_physical_export(struct sim_physical *piece);
/** The piece that a descriptor names, known here already or not. */
CUresult sim_physical_import(int file, CUmemGenericAllocationHandle *handle);

/** Let go of pieces that were kept by descriptors alone, if those have been
 *  closed: before anyone asks how much memory is left. */
void sim_physical_reap(void);
/** Pieces that handles or mappings hold, and their bytes. */
void sim_physical_count(uint64_t *pieces, uint64_t *bytes);
/** Host memory that stands behind pieces, in bytes. */
uint64_t sim_physical_touched(void);
void sim_physical_reset(void);

#endif
