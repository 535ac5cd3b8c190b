/* SPDX-License-Identifier: Apache-2.0 */
/* Another program's driver: answers what no driver would, and counts. */
#include "tests/simulation/foreign.h"

#define ANSWER                                                                \
    {                                                                         \
        foreign_calls++;                                                      \
        return FOREIGN;                                                       \
    }

int foreign_calls;

int cuInit(unsigned flags)
{
    (void)flags;
    ANSWER
}

int cuMemAlloc_v2(unsigned long long *address, size_t bytes)
{
    (void)bytes;
    *address = FOREIGN;
    ANSWER
}

int cuMemFree_v2(unsigned long long address)
{
    (void)address;
    ANSWER
}

int cuMemsetD8_v2(unsigned long long address, unsigned char byte, size_t bytes)
{
    (void)address;
    (void)byte;
    (void)bytes;
    ANSWER
}

int cuCtxSetCurrent(void *context)
{
    (void)context;
    ANSWER
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    (void)context;
    (void)device;
    ANSWER
}

int cuMemAllocAsync(unsigned long long *address, size_t bytes, void *stream)
{
    (void)stream;
    (void)bytes;
    *address = FOREIGN;
    ANSWER
}

int cuMemFreeAsync(unsigned long long address, void *stream)
{
    (void)address;
    (void)stream;
    ANSWER
}

int cuGetProcAddress_v2(const char *symbol, void **address, int version,
                        unsigned long long flags, int *status)
{
    (void)symbol;
    (void)address;
    (void)version;
    (void)flags;
    (void)status;
    ANSWER
}
