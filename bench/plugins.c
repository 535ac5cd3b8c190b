/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/plugins.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/machine.h"
#include "lib/error.h"

#define LIBRARY "cucoremr-bench-rmm.so"
#define MAX_TABLES 16

/* Filled at the first look; libraries are never unloaded. */
static const ccmr_bench_peers_table *tables[MAX_TABLES];
static size_t table_count;

static void load(const char *path)
{
    const ccmr_bench_peers_table *table;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    table = library != NULL ? dlsym(library, CCMR_BENCH_PEERS_SYMBOL) : NULL;
    if (table == NULL) {
        (void)fprintf(stderr, "cucoremr-bench: peers of %s: %s\n", path,
                      dlerror());
        return;
    }
    if (table->size != sizeof(*table) ||
        table->peer_size != sizeof(ccmr_bench_peer)) {
        (void)fprintf(stderr,
                      "cucoremr-bench: peers of %s: made for another version "
                      "of the bench\n",
                      path);
        return;
    }
    if (table_count < MAX_TABLES) {
        tables[table_count++] = table;
    }
}

/* Those that the environment names. */
static void load_named(const char *list)
{
    char *copy = strdup(list);
    char *rest = copy;
    char *path;

    while (copy != NULL && (path = strsep(&rest, ":")) != NULL) {
        if (*path != '\0') {
            load(path);
        }
    }
    free(copy);
}

/* What was built with the bench, beside it or installed. */
static void load_own(void)
{
    char path[PATH_MAX];

    if (snprintf(path, sizeof(path), "%s/bench/%s", machine_program_folder(),
                 LIBRARY) < (int)sizeof(path) &&
        access(path, R_OK) == 0) {
        load(path);
    } else if (access(CCMR_BENCH_PEERS "/" LIBRARY, R_OK) == 0) {
        load(CCMR_BENCH_PEERS "/" LIBRARY);
    }
}

static void load_all(void)
{
    static bool done;
    const char *named = getenv("CUCOREMR_BENCH_PEERS");

    if (!done) {
        done = true;
        if (named != NULL) {
            load_named(named);
        } else {
            load_own();
        }
    }
}

const ccmr_bench_peer *plugin_get(size_t i)
{
    load_all();
    for (size_t at = 0; at < table_count; at++) {
        if (i < tables[at]->count) {
            return &tables[at]->peers[i];
        }
        i -= tables[at]->count;
    }
    return NULL;
}

const ccmr_bench_peer *plugin_find(const char *name)
{
    const ccmr_bench_peer *found;

    for (size_t i = 0; (found = plugin_get(i)) != NULL; i++) {
        if (strcmp(found->name, name) == 0) {
            return found;
        }
    }
    return NULL;
}

/* A peer of a library that is set up. It hides behind a resource's type,
 * which the functions below never look into. */
typedef struct plugin_peer {
    const ccmr_bench_peer *calls;
    void *peer;
} plugin_peer;

static const plugin_peer *peer_of(const ccmr_resource *self)
{
    return (const plugin_peer *)(const void *)self;
}

static ccmr_status plugin_status(int ret, const plugin_peer *of,
                                 const char *what, size_t bytes)
{
    if (ret == CCMR_BENCH_PEER_OK) {
        return CCMR_SUCCESS;
    }
    return ccmr__fail(ret == CCMR_BENCH_PEER_NO_MEMORY
                          ? CCMR_ERROR_OUT_OF_DEVICE_MEMORY
                          : CCMR_ERROR_USER,
                      "%s cannot %s %zu bytes", of->calls->name, what, bytes);
}

static ccmr_status plugin_allocate(ccmr_resource *self, size_t bytes,
                                   size_t alignment, ccmr_stream stream,
                                   void **ptr)
{
    const plugin_peer *of = peer_of(self);

    (void)alignment;
    return plugin_status(of->calls->allocate(of->peer, bytes, stream, ptr), of,
                         "give", bytes);
}

static ccmr_status plugin_deallocate(ccmr_resource *self, void *ptr,
                                     size_t bytes, size_t alignment,
                                     ccmr_stream stream)
{
    const plugin_peer *of = peer_of(self);

    (void)alignment;
    return plugin_status(of->calls->deallocate(of->peer, ptr, bytes, stream),
                         of, "take", bytes);
}

ccmr_status plugin_open(instance *made)
{
    plugin_peer *of = calloc(1, sizeof(*of));
    char message[256] = "no reason given";
    int ret;

    if (of == NULL) {
        return ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY, "out of host memory");
    }
    of->calls = made->who->plugin;
    ret = of->calls->create(made->device, made->budget, &of->peer, message,
                            sizeof(message));
    if (ret != CCMR_BENCH_PEER_OK) {
        free(of);
        return ccmr__fail(ret == CCMR_BENCH_PEER_NO_MEMORY
                              ? CCMR_ERROR_OUT_OF_DEVICE_MEMORY
                              : CCMR_ERROR_USER,
                          "%s: %s", made->who->plugin->name, message);
    }
    made->self = (ccmr_resource *)(void *)of;
    made->allocate = plugin_allocate;
    made->deallocate = plugin_deallocate;
    made->device_accessible = true;
    return CCMR_SUCCESS;
}

void plugin_close(instance *gone)
{
    if (gone->self != NULL) {
        peer_of(gone->self)->calls->destroy(peer_of(gone->self)->peer);
        free((void *)gone->self);
    }
}

bool plugin_figures(const instance *in, figures *now)
{
    const plugin_peer *of = peer_of(in->self);
    uint64_t reserved = CCMR_BENCH_PEER_UNKNOWN;
    uint64_t peak = CCMR_BENCH_PEER_UNKNOWN;

    of->calls->reserved(of->peer, &reserved, &peak);
    *now = (figures){.reserved = reserved, .peak_reserved = peak};
    return reserved != CCMR_BENCH_PEER_UNKNOWN;
}
