/* SPDX-License-Identifier: Apache-2.0 */
/* The driver of another program, spelled without cuda.h. */
#ifndef TESTS_SIMULATION_FOREIGN_H
#define TESTS_SIMULATION_FOREIGN_H

#include <stddef.h>

/** What each of its calls answers. */
#define FOREIGN 4711

extern int foreign_calls;

int cuInit(unsigned flags);
int cuMemAlloc_v2(unsigned long long *address, size_t bytes);
int cuMemFree_v2(unsigned long long address);
int cuMemsetD8_v2(unsigned long long address, unsigned char byte,
                  size_t bytes);
int cuCtxSetCurrent(void *context);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuMemAllocAsync(unsigned long long *address, size_t bytes, void *stream);
int cuMemFreeAsync(unsigned long long address, void *stream);
int cuGetProcAddress_v2(const char *symbol, void **address, int version,
                        unsigned long long flags, int *status);

#endif
