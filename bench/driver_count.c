/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/driver_count.h"

#include <stdatomic.h>

#include "lib/driver.h"

enum {
#define CALL_NUMBER(name, version, need, parameters, arguments) CALL_##name,
    CCMR__DRIVER_MAP(CALL_NUMBER)
#undef CALL_NUMBER
        CALL_COUNT
};

static const char *const names[] = {
#define CALL_NAME(name, version, need, parameters, arguments) #name,
    CCMR__DRIVER_MAP(CALL_NAME)
#undef CALL_NAME
};

static atomic_uint_fast64_t counts[CALL_COUNT];

/* The driver's own entry points while the wrappers are in their places. */
static ccmr__driver_table real_driver;

static void note_call(size_t call)
{
    (void)atomic_fetch_add_explicit(&counts[call], 1, memory_order_relaxed);
}

#define CALL_WRAPPER(name, version, need, parameters, arguments)              \
    static CUresult CUDAAPI count_##name parameters                           \
    {                                                                         \
        note_call(CALL_##name);                                               \
        return real_driver.p_##name arguments;                                \
    }
CCMR__DRIVER_MAP(CALL_WRAPPER)
#undef CALL_WRAPPER

void driver_count_start(void)
{
    real_driver = ccmr__driver;
#define CALL_SWAP(name, version, need, parameters, arguments)                 \
    if (real_driver.p_##name != NULL) {                                       \
        ccmr__driver.p_##name = count_##name;                                 \
    }
    CCMR__DRIVER_MAP(CALL_SWAP)
#undef CALL_SWAP
}

void driver_count_stop(void)
{
    ccmr__driver = real_driver;
}

size_t driver_count_calls(void)
{
    return CALL_COUNT;
}

const char *driver_count_name(size_t i)
{
    return names[i];
}

uint64_t driver_count_get(size_t i)
{
    return atomic_load_explicit(&counts[i], memory_order_relaxed);
}
