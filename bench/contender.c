/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/contender.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cucoremr/buffer.h>
#include <cucoremr/resources/device_pool.h>
#include <cucoremr/stack.h>

#include "bench/budget_text.h"
#include "bench/peers.h"
#include "bench/plugins.h"
#include "lib/driver.h"
#include "lib/error.h"

#define MAX_LEAVES 32
#define MAX_DEPTH 64

static const struct {
    contender_kind kind;
    const char *name;
    const char *help;
} peers[] = {
    {CONTENDER_DRIVER, "driver", "cuMemAlloc and cuMemFree"},
    {CONTENDER_DRIVER_POOL, "driver-pool",
     "cuMemAllocFromPoolAsync and cuMemFreeAsync on a pool that keeps memory"},
    {CONTENDER_MALLOC, "malloc",
     "the program's malloc and free, as a floor: no device memory"},
    {CONTENDER_GLIBC_MALLOC, "glibc-malloc",
     "glibc's malloc and free, where the program's are another library's"},
    {CONTENDER_NOTHING, "nothing",
     "functions that do nothing: what the bench's own loops cost"},
};

#define PEERS (sizeof(peers) / sizeof(peers[0]))

static contender *contender_make(contender_kind kind, char *name)
{
    contender *made = calloc(1, sizeof(*made));

    if (made == NULL || name == NULL) {
        free(made);
        free(name);
        return NULL;
    }
    made->kind = kind;
    made->name = name;
    return made;
}

contender *contender_stack(const char *text, bool buffers)
{
    contender *made;
    char *name;

    if (asprintf(&name, buffers ? "%s (buffers)" : "%s", text) < 0) {
        return NULL;
    }
    made = contender_make(CONTENDER_STACK, name);
    if (made == NULL) {
        return NULL;
    }
    made->buffers = buffers;
    made->text = strdup(text);
    if (made->text == NULL) {
        contender_free(made);
        return NULL;
    }
    return made;
}

static contender *contender_plugin(const char *name)
{
    const ccmr_bench_peer *found = plugin_find(name);
    contender *made;

    if (found == NULL) {
        return NULL;
    }
    made = contender_make(CONTENDER_PLUGIN, strdup(name));
    if (made != NULL) {
        made->plugin = found;
    }
    return made;
}

contender *contender_peer(const char *name)
{
    for (size_t i = 0; i < PEERS; i++) {
        char *shown;

        if (strcmp(peers[i].name, name) != 0 || !peer_is_here(peers[i].kind)) {
            continue;
        }
        if (asprintf(&shown,
                     peers[i].kind == CONTENDER_MALLOC ? "%s (%s)" : "%s",
                     name, peer_malloc_name()) < 0) {
            return NULL;
        }
        return contender_make(peers[i].kind, shown);
    }
    return contender_plugin(name);
}

bool contender_peer_get(size_t i, const char **name, const char **help)
{
    const ccmr_bench_peer *plugin;

    for (size_t at = 0; at < PEERS; at++) {
        if (!peer_is_here(peers[at].kind)) {
            continue;
        }
        if (i == 0) {
            *name = peers[at].name;
            *help = peers[at].help;
            return true;
        }
        i--;
    }
    plugin = plugin_get(i);
    if (plugin != NULL) {
        *name = plugin->name;
        *help = plugin->help;
    }
    return plugin != NULL;
}

void contender_free(contender *gone)
{
    if (gone != NULL) {
        free(gone->name);
        free(gone->text);
        free(gone);
    }
}

/* Buffers in the shape of a resource: what stands for the block is the
 * buffer. Closing names no stream: the resource decides. */
static ccmr_status buffer_allocate(ccmr_resource *self, size_t bytes,
                                   size_t alignment, ccmr_stream stream,
                                   void **ptr)
{
    ccmr_buffer *buffer;
    ccmr_status status =
        ccmr_buffer_create(self, bytes, NULL, stream, &buffer);

    (void)alignment;
    if (status == CCMR_SUCCESS) {
        *ptr = buffer;
    }
    return status;
}

static ccmr_status buffer_deallocate(ccmr_resource *self, void *ptr,
                                     size_t bytes, size_t alignment,
                                     ccmr_stream stream)
{
    (void)self;
    (void)bytes;
    (void)alignment;
    (void)stream;
    return ccmr_buffer_destroy(ptr);
}

void *instance_memory(const instance *in, void *ptr)
{
    return in->who->buffers ? ccmr_buffer_ptr(ptr) : ptr;
}

/* The resources of a stack that have no upstream. */
static size_t leaves_of(ccmr_resource *resource, ccmr_resource **leaves,
                        size_t count, size_t depth)
{
    ccmr_resource *upstream;
    size_t i = 0;

    if (depth >= MAX_DEPTH) {
        return count;
    }
    while (ccmr_resource_upstream(resource, i, &upstream) == CCMR_SUCCESS) {
        count = leaves_of(upstream, leaves, count, depth + 1);
        i++;
    }
    if (i == 0 && count < MAX_LEAVES) {
        leaves[count++] = resource;
    }
    return count;
}

/* A file's name as a value in a stack text. */
static char *logging_text(const char *file)
{
    static const char start[] = "logging file=\"";
    char *text = malloc(sizeof(start) + 2 * strlen(file) + 2);
    char *to = text;

    if (text == NULL) {
        return NULL;
    }
    to = stpcpy(to, start);
    for (; *file != '\0'; file++) {
        if (*file == '"' || *file == '\\') {
            *to++ = '\\';
        }
        *to++ = *file;
    }
    (void)strcpy(to, "\"");
    return text;
}

/* Put a logging adaptor over the stack. */
static ccmr_status add_log(instance *made, const char *log)
{
    char *text = logging_text(log);
    ccmr_resource *over;
    ccmr_status status;

    if (text == NULL) {
        return ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY, "out of host memory");
    }
    status = ccmr_stack_create_over(text, made->resource, &over);
    free(text);
    if (status == CCMR_SUCCESS) {
        ccmr_resource_release(made->resource);
        made->resource = over;
    }
    return status;
}

/* The driver's pools outlive a stack: what earlier ones left in them goes, so
 * that high-water marks are of this one. */
static void start_afresh(const instance *in)
{
    ccmr_resource *leaves[MAX_LEAVES];
    size_t count = leaves_of(in->resource, leaves, 0, 0);

    (void)ccmr_resource_trim(in->resource, 0, NULL);
    for (size_t i = 0; i < count; i++) {
        cuuint64_t none = 0;
        CUmemoryPool pool;

        if (ccmr_device_pool_handle(leaves[i], &pool) == CCMR_SUCCESS) {
            (void)CCMR__CU(cuMemPoolSetAttribute)(
                pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &none);
        }
    }
}

static ccmr_status stack_make(instance *made)
{
    ccmr_status status;
    char *text;

    if (made->budget == 0) {
        return ccmr_stack_create(made->who->text, &made->resource);
    }
    status = budget_text(made->who->text, made->budget, &text);
    if (status == CCMR_SUCCESS) {
        status = ccmr_stack_create(text, &made->resource);
        free(text);
    }
    return status;
}

static ccmr_status stack_open(instance *made, const char *log)
{
    ccmr_properties properties = {.size = sizeof(properties)};
    ccmr_status status = stack_make(made);

    if (status == CCMR_SUCCESS && log != NULL) {
        status = add_log(made, log);
    }
    if (status == CCMR_SUCCESS) {
        status = ccmr_resource_describe(made->resource, &properties);
    }
    if (status != CCMR_SUCCESS) {
        ccmr_resource_release(made->resource);
        return status;
    }
    made->device_accessible = properties.device_accessible == 1;
    made->host_accessible = properties.host_accessible == 1;
    made->self = made->resource;
    made->allocate =
        made->who->buffers ? buffer_allocate : ccmr_resource_allocate;
    made->deallocate =
        made->who->buffers ? buffer_deallocate : ccmr_resource_deallocate;
    start_afresh(made);
    return CCMR_SUCCESS;
}

ccmr_status instance_open(instance *made, const contender *who,
                          const instance_options *options)
{
    memset(made, 0, sizeof(*made));
    made->who = who;
    made->device = options->device;
    made->budget = options->budget;
    return who->kind == CONTENDER_STACK ? stack_open(made, options->log)
                                        : peer_open(made);
}

bool contender_has_budget(const contender *who)
{
    return who->kind == CONTENDER_STACK ||
           who->kind == CONTENDER_DRIVER_POOL || who->kind == CONTENDER_PLUGIN;
}

void instance_close(instance *gone)
{
    if (gone->resource != NULL) {
        (void)ccmr_resource_trim(gone->resource, 0, NULL);
        ccmr_resource_release(gone->resource);
    } else {
        peer_close(gone);
    }
    memset(gone, 0, sizeof(*gone));
}

bool instance_figures(const instance *in, figures *now)
{
    ccmr_resource *leaves[MAX_LEAVES];
    size_t count;

    if (in->resource == NULL) {
        return peer_figures(in, now);
    }
    *now = (figures){0};
    count = leaves_of(in->resource, leaves, 0, 0);
    for (size_t i = 0; i < count; i++) {
        ccmr_stats stats = {.size = sizeof(stats)};

        if (ccmr_resource_stats(leaves[i], &stats) != CCMR_SUCCESS) {
            return false;
        }
        now->live += stats.live_bytes;
        /* What a leaf hands out it has taken, if it knows no better. */
        now->reserved += stats.reserved_bytes != CCMR_BYTES_UNKNOWN
                             ? stats.reserved_bytes
                             : stats.live_bytes;
        now->peak_reserved = stats.peak_reserved_bytes != CCMR_BYTES_UNKNOWN
                                 ? stats.peak_reserved_bytes
                                 : FIGURE_UNKNOWN;
    }
    /* Peaks of several need not have been at the same time. */
    if (count != 1) {
        now->peak_reserved = FIGURE_UNKNOWN;
    }
    return count > 0;
}
