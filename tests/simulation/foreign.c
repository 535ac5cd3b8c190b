/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that has, or has not, a driver of its own in the global scope, and
 * loads the simulator besides. Neither may get calls that are the other's.
 *
 *     foreign none|own PLUGIN [DRIVER]
 *
 * DRIVER is loaded globally first; without it the driver is there by other
 * means. Says what is wrong; the exit status is 1 then.
 */
#include "tests/simulation/foreign.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/sim.h"

static int bad;

static void expect(int good, const char *what)
{
    if (!good) {
        printf("wrong: %s\n", what);
        bad = 1;
    }
}

/* dlsym() gives an object pointer; C has no cast from it to a function. */
#define FIND(to, library, name)                                               \
    do {                                                                      \
        void *found_ = dlsym(library, name);                                  \
        memcpy(&(to), &found_, sizeof(to));                                   \
    } while (0)

static void *open_or_exit(const char *path, int mode)
{
    void *library = path != NULL ? dlopen(path, mode) : NULL;

    if (library == NULL) {
        printf("%s: %s\n", path != NULL ? path : "no path", dlerror());
        exit(2);
    }
    return library;
}

/* Both are used by turns: calls of one within those of the other, and entry
 * points looked up by the driver's own means, included. */
static void use_simulator(void *library)
{
    const ccmr_sim_table *sim = dlsym(library, CCMR_SIM_CONTROL_SYMBOL);
    int (*init)(unsigned);
    int (*retain)(void **, int);
    int (*set_current)(void *);
    int (*find)(const char *, void **, int, unsigned long long, int *);
    int (*allocate)(unsigned long long *, size_t);
    int (*allocate_async)(unsigned long long *, size_t, void *);
    int (*fill)(unsigned long long, unsigned char, size_t);
    unsigned long long plain = 0, pooled = 0;
    void *context = NULL, *entry = NULL;

    FIND(init, library, "cuInit");
    FIND(retain, library, "cuDevicePrimaryCtxRetain");
    FIND(set_current, library, "cuCtxSetCurrent");
    FIND(find, library, "cuGetProcAddress_v2");
    FIND(allocate, library, "cuMemAlloc_v2");
    FIND(allocate_async, library, "cuMemAllocAsync_ptsz");
    FIND(fill, library, "cuMemsetD8_v2_ptds");
    expect(init(0) == 0 && retain(&context, 0) == 0 &&
               set_current(context) == 0,
           "the simulator starts");
    expect(find("cuMemAlloc", &entry, 13000, 0, NULL) == 0 &&
               entry == dlsym(library, "cuMemAlloc_v2"),
           "the simulator finds its own calls");
    expect(allocate(&plain, 4096) == 0 && plain != FOREIGN,
           "its memory is its own");
    expect(allocate_async(&pooled, 4096, NULL) == 0 && pooled != FOREIGN,
           "through forms of calls that lead to others, too");
    expect(fill(plain, 7, 4096) == 0, "the same of work");
    expect(sim->is_alive(plain) == 1 && sim->calls("cuMemAlloc") == 1 &&
               sim->calls("cuMemAllocAsync") == 1,
           "the simulator counts what was asked of it");
}

/* The whole process's calls are those of its own driver. */
static void use_own(const char *plugin)
{
    void *library = open_or_exit(plugin, RTLD_LAZY | RTLD_LOCAL);
    int *calls = dlsym(RTLD_DEFAULT, "foreign_calls");
    int (*allocate)(unsigned long long *, size_t);
    int (*from_plugin)(void);
    unsigned long long address = 0;

    FIND(allocate, RTLD_DEFAULT, "cuMemAlloc_v2");
    FIND(from_plugin, library, "plugin_allocate");
    expect(calls != NULL && *calls == 0,
           "the simulator called nothing of the process's own driver");
    expect(allocate(&address, 64) == FOREIGN && address == FOREIGN,
           "the process's own calls stay its own");
    expect(from_plugin() == FOREIGN,
           "those of a library that comes later, too");
    expect(calls != NULL && *calls == 2, "and nobody else made any");
}

/* There is no driver for anybody who did not load the simulator himself. */
static void find_none(const char *plugin)
{
    expect(dlsym(RTLD_DEFAULT, "cuInit") == NULL,
           "the simulator is in nobody's way");
    expect(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD) == NULL,
           "nor is it taken for a driver by its name");
    expect(dlopen(plugin, RTLD_NOW | RTLD_LOCAL) == NULL,
           "a library that needs a driver does not find this one");
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        return 2;
    }
    if (argc > 3) {
        (void)open_or_exit(argv[3], RTLD_NOW | RTLD_GLOBAL);
    }
    use_simulator(
        open_or_exit(getenv("CUCOREMR_SIM_PATH"), RTLD_NOW | RTLD_LOCAL));
    expect(dlsym(RTLD_DEFAULT, CCMR_SIM_CONTROL_SYMBOL) == NULL,
           "the control table is not in the global scope");
    if (strcmp(argv[1], "own") == 0) {
        use_own(argv[2]);
    } else {
        find_none(argv[2]);
    }
    return bad;
}
