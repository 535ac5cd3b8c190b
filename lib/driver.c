/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding and loading the driver.
 */
#include "lib/driver.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/error.h"
#include "lib/process.h"

#define SIM_SONAME "libcucoremr-sim.so.0"

ccmr__driver_table ccmr__driver;

/* Written under load_lock before `ready` is set, read after it was seen. */
static struct {
    char name[PATH_MAX];
    char path[PATH_MAX];
    int simulated;
    int version;
} loaded;
static atomic_int ready;
static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;

typedef CUresult (*init_function)(unsigned);
typedef CUresult (*find_v2_function)(const char *, void **, int, cuuint64_t,
                                     CUdriverProcAddressQueryResult *);
typedef CUresult (*find_function)(const char *, void **, int, cuuint64_t);

/* dlsym() returns an object pointer; C has no cast from it to a function. */
#define FUNCTION_FROM(to, pointer)                                            \
    do {                                                                      \
        void *object_ = (pointer);                                            \
        memcpy(&(to), &object_, sizeof(to));                                  \
    } while (0)

int ccmr__driver_ready(void)
{
    return atomic_load_explicit(&ready, memory_order_acquire);
}

int ccmr__driver_version(void)
{
    return ccmr__driver_ready() ? loaded.version : 0;
}

const char *ccmr__driver_name(void)
{
    return loaded.name;
}

const char *ccmr__driver_path(void)
{
    return loaded.path;
}

int ccmr__driver_simulated(void)
{
    return loaded.simulated;
}

/* A library file in, or beside, the folder of this library or program. */
static void *open_beside(const char *relative)
{
    static const char anchor;
    char path[PATH_MAX];
    const char *slash;
    Dl_info info;
    int length;

    if (dladdr(&anchor, &info) == 0 || info.dli_fname == NULL) {
        return NULL;
    }
    slash = strrchr(info.dli_fname, '/');
    if (slash == NULL) {
        return NULL;
    }
    length = snprintf(path, sizeof(path), "%.*s/%s%s",
                      (int)(slash - info.dli_fname), info.dli_fname, relative,
                      SIM_SONAME);
    if (length < 0 || (size_t)length >= sizeof(path)) {
        return NULL;
    }
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/*
 * Beside libcucoremr.so; in ../lib from a program that holds the library;
 * then wherever the loader looks. CUCOREMR_SIM_PATH says it outright.
 */
static void *open_simulator(void)
{
    const char *path = secure_getenv("CUCOREMR_SIM_PATH");
    void *library;

    if (path != NULL && path[0] != '\0') {
        return dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    library = open_beside("");
    if (library == NULL) {
        library = open_beside("../lib/");
    }
    if (library == NULL) {
        library = dlopen(SIM_SONAME, RTLD_NOW | RTLD_LOCAL);
    }
    return library;
}

static ccmr_status open_library(const char *name, void **library)
{
    if (strcmp(name, "cuda") == 0) {
        *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    } else if (strcmp(name, "sim") == 0) {
        *library = open_simulator();
    } else if (strchr(name, '/') != NULL) {
        *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    } else {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "unknown driver '%s': expected cuda, sim, or the "
                          "path of a driver library",
                          name);
    }
    if (*library == NULL) {
        const char *why = dlerror();

        return ccmr__fail(CCMR_ERROR_DRIVER_NOT_FOUND,
                          "driver '%s' cannot be loaded%s: %s", name,
                          strcmp(name, "sim") == 0
                              ? " (CUCOREMR_SIM_PATH can name its file)"
                              : "",
                          why != NULL ? why : "unknown reason");
    }
    return CCMR_SUCCESS;
}

/*
 * One entry point: by the driver's own lookup, which knows versions; by exact
 * name where the driver is too old to have one. NULL where there is none; a
 * lookup that fails for another reason sets `*failure`, so that nothing is
 * taken for missing that is there.
 */
static void *find_entry(void *library, const char *name, const char *exact,
                        int version, CUresult *failure)
{
    CUresult res = CUDA_SUCCESS;
    find_v2_function find_v2;
    find_function find;
    void *entry = NULL;

    FUNCTION_FROM(find_v2, dlsym(library, "cuGetProcAddress_v2"));
    FUNCTION_FROM(find, dlsym(library, "cuGetProcAddress"));
    if (find_v2 != NULL) {
        res =
            find_v2(name, &entry, version, CU_GET_PROC_ADDRESS_DEFAULT, NULL);
    } else if (find != NULL) {
        res = find(name, &entry, version, CU_GET_PROC_ADDRESS_DEFAULT);
    } else {
        return dlsym(library, exact);
    }
    if (res != CUDA_SUCCESS && res != CUDA_ERROR_NOT_FOUND) {
        *failure = res;
    }
    return res == CUDA_SUCCESS ? entry : NULL;
}

/* The name that cuda.h's macros turn a function's name into. */
#define EXACT_NAME(name) EXACT_NAME_OF(name)
#define EXACT_NAME_OF(name) #name

enum { OPTIONAL, REQUIRED };

/* Fill `table`. Returns the name of a missing required entry, or NULL. */
static const char *fill_table(void *library, ccmr__driver_table *table,
                              CUresult *failure)
{
    const char *missing = NULL;

    *failure = CUDA_SUCCESS;
#define FILL(name, version, need, parameters, arguments)                      \
    FUNCTION_FROM(                                                            \
        table->p_##name,                                                      \
        find_entry(library, #name, EXACT_NAME(name), version, failure));      \
    if ((need) == REQUIRED && table->p_##name == NULL && missing == NULL) {   \
        missing = #name;                                                      \
    }
    CCMR__DRIVER_MAP(FILL)
#undef FILL
    return missing;
}

static ccmr_status initialize(init_function init, const char *path)
{
    CUresult res = init(0);

    switch ((int)res) {
    case CUDA_SUCCESS:
        return CCMR_SUCCESS;
    case CUDA_ERROR_STUB_LIBRARY:
        return ccmr__fail(CCMR_ERROR_DRIVER_STUB,
                          "%s is a stub library to link with, not a driver; "
                          "take its folder out of the library search path",
                          path);
    case CUDA_ERROR_NO_DEVICE:
        return ccmr__fail(CCMR_ERROR_NO_DEVICE,
                          "cuInit of %s found no CUDA device", path);
    default:
        (void)ccmr__fail_driver((int)res, "cuInit");
        return ccmr__error()->status;
    }
}

static void remember(const char *name, const char *path)
{
    (void)snprintf(loaded.name, sizeof(loaded.name), "%s", name);
    (void)snprintf(loaded.path, sizeof(loaded.path), "%s", path);
}

static ccmr_status start(const char *name, void *library)
{
    ccmr__driver_table table;
    const char *missing;
    init_function init;
    ccmr_status status;
    Dl_info info;
    CUresult res;

    FUNCTION_FROM(init, dlsym(library, "cuInit"));
    if (init == NULL) {
        return ccmr__fail(CCMR_ERROR_DRIVER_NOT_FOUND,
                          "driver '%s' has no cuInit: not a CUDA driver",
                          name);
    }
    if (dladdr((void *)(uintptr_t)init, &info) == 0) {
        info.dli_fname = name;
    }
    status = initialize(init, info.dli_fname);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    missing = fill_table(library, &table, &res);
    if (res != CUDA_SUCCESS) {
        return ccmr__fail_driver((int)res, "cuGetProcAddress");
    }
    if (missing != NULL) {
        return ccmr__fail(CCMR_ERROR_DRIVER_TOO_OLD, "driver %s has no %s",
                          info.dli_fname, missing);
    }
    res = table.p_cuDriverGetVersion(&loaded.version);
    if (res != CUDA_SUCCESS) {
        return ccmr__fail_driver((int)res, "cuDriverGetVersion");
    }
    ccmr__driver = table;
    loaded.simulated = dlsym(library, "ccmr_sim_control") != NULL;
    remember(name, info.dli_fname);
    ccmr__process_driver_started();
    return CCMR_SUCCESS;
}

static ccmr_status load_locked(const char *name)
{
    ccmr_status status;
    void *library;

    if (name == NULL) {
        name = secure_getenv("CUCOREMR_DRIVER");
        if (name == NULL || name[0] == '\0') {
            name = "cuda";
        }
    }
    status = open_library(name, &library);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    status = start(name, library);
    if (status == CCMR_SUCCESS) {
        /* The library stays loaded for good: so do its entry points. */
        atomic_store_explicit(&ready, 1, memory_order_release);
    } else if (status == CCMR_ERROR_DRIVER_TOO_OLD ||
               status == CCMR_ERROR_DRIVER_NOT_FOUND) {
        (void)dlclose(library);
    }
    return status;
}

ccmr_status ccmr__driver_load(const char *name)
{
    ccmr_status status = ccmr__process_check();

    if (status != CCMR_SUCCESS) {
        return status;
    }
    (void)pthread_mutex_lock(&load_lock);
    if (!ccmr__driver_ready()) {
        status = load_locked(name);
    } else if (name != NULL && strcmp(name, loaded.name) != 0) {
        status = ccmr__fail(CCMR_ERROR_BUSY,
                            "driver '%s' is asked for, but '%s' is in use",
                            name, loaded.name);
    }
    (void)pthread_mutex_unlock(&load_lock);
    return status;
}

ccmr_status ccmr__driver_need(void)
{
    return ccmr__driver_ready() ? CCMR_SUCCESS : ccmr__driver_load(NULL);
}
