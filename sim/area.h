/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that other processes can be given: areas of a file without a name.
 * A process has one such file for all that it shares.
 *
 *     area                          next area
 *     +-------+---------+---------------- ... --+-------+--
 *     | label | nothing | the bytes             | label |
 *     +-------+---------+---------------- ... --+-------+--
 *     0       4 KiB     2 MiB
 *
 * A descriptor that is handed out stands, by its position, at the label of its
 * area: so whoever gets it can judge it. It also holds a lock there, which
 * belongs to the open file and not to a process: so the owner can tell
 * whether any descriptor of an area is left, wherever it went.
 */
#ifndef SIM_AREA_H
#define SIM_AREA_H

#include "sim/memory.h"

enum sim_area_kind {
    SIM_AREA_PIECE = 1,
    SIM_AREA_POOL,
    SIM_AREA_PLAIN,
    SIM_AREA_EVENT
};

struct sim_label {
    char magic[16];
    uint32_t version;
    uint32_t kind;
    uint64_t gone;                  /**< 1: there is no such memory more */
    uint64_t size;                  /**< of the bytes */
    CUmemAllocationProp properties; /**< of a piece */
    CUmemLocation location;         /**< of a pool */
    CUmemAllocationType type;       /**< of a pool */
};

struct sim_area {
    int file; /**< -1: no area */
    bool own; /**< the file is this process's, and not the area's */
    uint64_t start;
    uint64_t number; /**< of the file, in all processes */
};

/** No area yet. */
#define SIM_NO_AREA ((struct sim_area){.file = -1})

/** A new area with that label; false without memory. */
bool sim_area_take(struct sim_area *area, enum sim_area_kind kind, size_t size,
                   const struct sim_label *label);
/** The area that a descriptor stands at. `*status` tells what is wrong. */
bool sim_area_find(int file, enum sim_area_kind kind, struct sim_area *area,
                   struct sim_label *label, CUresult *status);
/** Go to an area of another process, whose descriptor of its file that is,
 *  and take part in it; false if it is not there any more. */
bool sim_area_visit(int process, int file, uint64_t start,
                    enum sim_area_kind kind, uint64_t number,
                    struct sim_area *area);
/** Take part in an area that was found: it stays until it is given up. */
bool sim_area_join(struct sim_area *area);
/** Give an area up. The owner's memory goes with it. */
void sim_area_drop(struct sim_area *area, size_t size);
/** Say in its label that the memory is gone; nobody can join it any more. */
void sim_area_bury(const struct sim_area *area);
bool sim_area_same(const struct sim_area *a, const struct sim_area *b);

/** A descriptor to give away, or -1. */
int sim_area_share(const struct sim_area *area, bool close_on_exec);
/** Is any descriptor left, or has another process joined? */
bool sim_area_is_shared(const struct sim_area *area);

/** Map bytes of it; NULL without memory. */
void *sim_area_map(const struct sim_area *area, size_t offset, size_t size);
/** Map all of it at an address where nothing is mapped. */
bool sim_area_map_at(const struct sim_area *area, size_t size, int prot,
                     void *at);
/** Move what is mapped somewhere into it: the addresses stay. */
bool sim_area_move(const struct sim_area *area, size_t size, void *at);
/** Forget bytes: they read as zero, and take no memory. */
void sim_area_forget(const struct sim_area *area, size_t offset, size_t size);

/** Let go of the process's file. */
void sim_areas_reset(void);

#endif
