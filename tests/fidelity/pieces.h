/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory for the cases about it: physical pieces, and ranges of
 * addresses that they are mapped to.
 *
 *     range   |<- 2 MiB ->|<- 2 MiB ->|   cuMemAddressReserve
 *     pieces  |  piece a  |           |   cuMemCreate, cuMemMap
 */
#ifndef FIDELITY_PIECES_H
#define FIDELITY_PIECES_H

#include "tests/fidelity/driver.h"

#include <stddef.h>

/* The granularity that was measured, and a piece whose coming and going can
 * be told from what else a driver does with its memory. */
#define PAGE_BYTES ((size_t)2 << 20)
#define BIG_BYTES ((size_t)256 << 20)

/* What a piece of the first device that can't be shared is made with. */
CUmemAllocationProp piece_properties(void);

/* A piece, a range; report a fact and return 0 where that fails. */
CUmemGenericAllocationHandle make_piece(size_t bytes);
CUmemGenericAllocationHandle make_shareable_piece(size_t bytes);
CUdeviceptr make_range(size_t bytes);

/* Access of the first device. */
CUresult set_access(CUdeviceptr address, size_t bytes,
                    CUmemAccess_flags flags);

/* A piece of its own at the start of a range as large, with full access. */
struct mapping {
    CUmemGenericAllocationHandle piece;
    CUdeviceptr address;
    size_t bytes;
};

/* Report a fact and return false where that fails. */
bool mapping_make(struct mapping *mapping, size_t bytes);
void mapping_drop(struct mapping *mapping);

/* Report whether memory of about BIG_BYTES is gone from what was available
 * `before`. */
size_t available_bytes(void);
void see_taken(const char *what, size_t before);

/* Fill with, or look for, one byte all over; after all other work. */
CUresult fill_bytes(CUdeviceptr address, unsigned char value, size_t bytes);
/* "same", "different", or why it can't be told. */
const char *compare_bytes(CUdeviceptr address, unsigned char value,
                          size_t bytes);

#endif
