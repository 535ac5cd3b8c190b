/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that several processes can see: files without a name.
 *
 *     0        4 KiB                2 MiB
 *     +--------+--------------------+---------------------------- ...
 *     | label  | nothing            | the bytes
 *     +--------+--------------------+---------------------------- ...
 *
 * The label says what the file is, so that a descriptor that comes from
 * somewhere can be judged. Whoever is given a descriptor gets one of a kind
 * of its own, which holds a lock: so the owner can tell whether any of those
 * is left, in whatever process.
 */
#ifndef SIM_FILE_H
#define SIM_FILE_H

#include "sim/memory.h"

enum sim_file_kind { SIM_FILE_PIECE = 1, SIM_FILE_POOL, SIM_FILE_PLAIN };

/** Where the bytes begin. */
#define SIM_FILE_START SIM_PAGE

struct sim_label {
    char magic[16];
    uint32_t version;
    uint32_t kind;
    uint64_t size;                  /**< of the bytes */
    CUmemAllocationProp properties; /**< of a piece */
    CUmemLocation location;         /**< of a pool */
    CUmemAllocationType type;       /**< of a pool */
};

/** What a file is known by in all processes. */
struct sim_file_id {
    uint64_t device, number;
};

/** A new file with that label and size; -1 without memory. */
int sim_file_new(enum sim_file_kind kind, size_t size,
                 const struct sim_label *label);
/** Change its size. */
bool sim_file_resize(int file, size_t size);
/** Is the descriptor one of that kind? If so, read its label. */
bool sim_file_read(int file, enum sim_file_kind kind, struct sim_label *label);
bool sim_file_identify(int file, struct sim_file_id *id);
bool sim_file_same(const struct sim_file_id *a, const struct sim_file_id *b);
/** A descriptor to give away, or to keep of somebody else's file; -1. */
int sim_file_share(int file);
/** Is any such descriptor left? */
bool sim_file_is_shared(int file);

/** Map bytes of it; NULL without memory. */
void *sim_file_map(int file, size_t offset, size_t size);
/** Move what is mapped somewhere into it: the addresses stay, and are the
 *  file's from now on. */
bool sim_file_move(int file, size_t offset, size_t size, void *at);
/** Map all of it at an address where nothing is mapped. */
bool sim_file_map_at(int file, size_t size, int prot, void *at);
/** Forget bytes: they read as zero, and take no memory. */
void sim_file_forget(int file, size_t offset, size_t size);

#endif
