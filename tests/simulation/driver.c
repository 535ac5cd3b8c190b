/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/simulation/driver.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/tap.h"

struct driver drv;
const ccmr_sim_table *sim;

static void *library;

void *driver_symbol(const char *name)
{
    return dlsym(library, name);
}

static void find(const char *name, void *member)
{
    void *symbol = driver_symbol(name);

    if (symbol == NULL) {
        tap_bail_out("the simulator has no %s", name);
    }
    memcpy(member, &symbol, sizeof symbol);
}

void driver_load(void)
{
    const char *path = getenv("CUCOREMR_SIM_PATH");

    /* Tests say themselves what they want. */
    unsetenv("CUCOREMR_SIM_DEVICES");
    unsetenv("CUCOREMR_SIM_MEMORY");
    unsetenv("CUCOREMR_SIM_MODE");
    unsetenv("CUCOREMR_SIM_SEED");
    unsetenv("CUCOREMR_SIM_DRIVER_VERSION");
    unsetenv("CUCOREMR_SIM_HIDE");
    unsetenv("CUCOREMR_SIM_STRICT");
    unsetenv("CUCOREMR_SIM_ORDER");
    unsetenv("CUCOREMR_SIM_COSTS");
    library = dlopen(path != NULL ? path : "libcucoremr-sim.so",
                     RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        tap_bail_out("%s", dlerror());
    }
#define DRIVER_TEXT(text) #text
#define DRIVER_FIND(name) find(DRIVER_TEXT(name), &drv.name);
    DRIVER_CALLS(DRIVER_FIND)
#undef DRIVER_FIND
    find(CCMR_SIM_CONTROL_SYMBOL, &sim);
    if (sim->size < sizeof *sim) {
        tap_bail_out("the control table has %zu bytes", sim->size);
    }
}

void driver_start(ccmr_sim_mode mode, uint64_t seed)
{
    CUcontext context = NULL;

    sim->set_mode(mode);
    sim->set_seed(seed);
    if (drv.cuInit(0) != CUDA_SUCCESS ||
        drv.cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
        drv.cuCtxSetCurrent(context) != CUDA_SUCCESS) {
        tap_bail_out("the simulator does not start");
    }
}

static const char *name_of(CUresult res)
{
    const char *name = NULL;

    drv.cuGetErrorName(res, &name);
    return name != NULL ? name : "no status at all";
}

bool check_result(CUresult got, CUresult want, const char *what)
{
    bool good = tap_ok(got == want, "%s", what);

    if (!good) {
        tap_diag("answered %s, not %s", name_of(got), name_of(want));
    }
    return good;
}

ccmr_sim_census census_now(void)
{
    ccmr_sim_census census = {.size = sizeof census};

    sim->census(&census);
    return census;
}

void check_nothing_left(const char *what)
{
    CUcontext context = NULL;
    uint64_t left;

    /* The one that driver_start retained. */
    drv.cuCtxGetCurrent(&context);
    drv.cuDevicePrimaryCtxRelease(0);
    drv.cuCtxSetCurrent(NULL);
    left = sim->reset(NULL);
    tap_is_int(left, 0, "%s: nothing is left", what);
}

CUstream new_stream(void)
{
    CUstream stream = NULL;

    if (drv.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) {
        tap_bail_out("no stream");
    }
    return stream;
}

CUmemoryPool new_pool(size_t max_size)
{
    CUmemPoolProps props;
    CUmemoryPool pool = NULL;

    memset(&props, 0, sizeof props);
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    props.maxSize = max_size;
    if (drv.cuMemPoolCreate(&pool, &props) != CUDA_SUCCESS) {
        tap_bail_out("no pool");
    }
    return pool;
}

uint64_t pool_number(CUmemoryPool pool, CUmemPool_attribute attribute)
{
    cuuint64_t value = 0;

    if (drv.cuMemPoolGetAttribute(pool, attribute, &value) != CUDA_SUCCESS) {
        tap_bail_out("no attribute %d", (int)attribute);
    }
    return value;
}

void pool_keep(CUmemoryPool pool)
{
    cuuint64_t most = UINT64_MAX;

    drv.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &most);
}
