/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shared library as a plug-in's dependency: opened with local scope by a
 * program that links nothing of it, closed while threads have used it, opened
 * again. Field cases G4, R4.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cucoremr/cucoremr.h>

#include "tests/support/tap.h"

#define FUNCTIONS(X)                                                          \
    X(ccmr_buffer_create)                                                     \
    X(ccmr_buffer_destroy)                                                    \
    X(ccmr_last_error)                                                        \
    X(ccmr_resource_allocate)                                                 \
    X(ccmr_resource_deallocate)                                               \
    X(ccmr_resource_release)                                                  \
    X(ccmr_stack_create)                                                      \
    X(ccmr_stream_create)                                                     \
    X(ccmr_stream_destroy)

static struct {
#define MEMBER(name) __typeof__(&name) name;
    FUNCTIONS(MEMBER)
#undef MEMBER
} lib;

static char path[4096];

static void *open_library(void)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *symbol;

    if (library == NULL) {
        tap_bail_out("%s", dlerror());
    }
#define FIND(name)                                                            \
    symbol = dlsym(library, #name);                                           \
    memcpy(&lib.name, &symbol, sizeof(symbol));
    FUNCTIONS(FIND)
#undef FIND
    return library;
}

static ccmr_resource *pool;
static ccmr_stream stream;
static pthread_barrier_t together;

static int one_life(void)
{
    ccmr_buffer *buffer = NULL;
    void *ptr = NULL;

    return lib.ccmr_resource_allocate(pool, 1000, 0, stream, &ptr) ==
               CCMR_SUCCESS &&
           lib.ccmr_resource_deallocate(pool, ptr, 1000, 0, stream) ==
               CCMR_SUCCESS &&
           lib.ccmr_buffer_create(pool, 1000, NULL, stream, &buffer) ==
               CCMR_SUCCESS &&
           lib.ccmr_buffer_destroy(buffer) == CCMR_SUCCESS;
}

/* Its record is freed by the library after the library was closed. */
static void *use_and_outlive(void *unused)
{
    (void)unused;
    (void)one_life();
    if (lib.ccmr_stack_create("?", &(ccmr_resource *){NULL}) == CCMR_SUCCESS) {
        tap_fail("a stack named ?");
    }
    (void)pthread_barrier_wait(&together);
    (void)pthread_barrier_wait(&together);
    return NULL;
}

int main(void)
{
    const char *build = getenv("abs_top_builddir");
    pthread_t thread;
    void *first;
    void *second;

    if (build == NULL) {
        tap_skip_all("run this by make check");
    }
    (void)snprintf(path, sizeof(path), "%s/.libs/libcucoremr.so", build);
    if (access(path, R_OK) != 0) {
        tap_skip_all("no shared library was built");
    }
    first = open_library();
    second = open_library();
    tap_ok(lib.ccmr_stack_create("device_pool", &pool) == CCMR_SUCCESS &&
               lib.ccmr_stream_create(0, 0, &stream) == CCMR_SUCCESS,
           "a resource: %s", lib.ccmr_last_error()->message);
    tap_ok(one_life(), "works");
    (void)pthread_barrier_init(&together, NULL, 2);
    if (pthread_create(&thread, NULL, use_and_outlive, NULL) != 0) {
        tap_bail_out("no thread");
    }
    (void)pthread_barrier_wait(&together);
    tap_is_int(dlclose(first), 0, "closed by the first user");
    tap_ok(one_life(), "the second user goes on");
    tap_is_int(dlclose(second), 0, "closed by the second user");
    (void)pthread_barrier_wait(&together);
    (void)pthread_join(thread, NULL);
    tap_pass("a thread that used it ended after that");
    first = open_library();
    tap_ok(one_life(), "opened again, with everything as it was");
    tap_ok(lib.ccmr_stream_destroy(stream) == CCMR_SUCCESS, "stream");
    lib.ccmr_resource_release(pool);
    tap_is_int(dlclose(first), 0, "closed at last");
    return tap_finish();
}
