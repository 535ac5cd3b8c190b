/* SPDX-License-Identifier: Apache-2.0 */
/* A library that expects its process to have a driver. */
#include "tests/simulation/foreign.h"

int plugin_allocate(void);

int plugin_allocate(void)
{
    unsigned long long address = 0;

    return cuMemAlloc_v2(&address, 64);
}
