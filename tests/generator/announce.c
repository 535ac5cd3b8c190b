/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a block changes hands. A simulator that checks the order of accesses
 * is told here whose the memory is from now on; its calls go in between.
 */
#include "tests/generator/model.h"

void announce_handed_out(const void *ptr, size_t bytes, CUstream stream)
{
    (void)ptr;
    (void)bytes;
    (void)stream;
}

void announce_handed_back(const void *ptr, size_t bytes, CUstream stream)
{
    (void)ptr;
    (void)bytes;
    (void)stream;
}
