/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The jemalloc add-on. Threads here end before anything is asserted.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jemalloc/jemalloc.h>

#include <cucoremr/cucoremr.h>
#include <cucoremr/resources/jemalloc.h>

#define BLOCKS 2000

static ccmr_resource *arena;

static void start(void)
{
    cr_assert_eq(setenv("CUCOREMR_DRIVER", "/nonexistent/driver.so", 1), 0);
    cr_assert_eq(ccmr_jemalloc_create(&arena), CCMR_SUCCESS);
}

static void end(void)
{
    ccmr_resource_release(arena);
}

TestSuite(jemalloc, .init = start, .fini = end);

/* Number of the arena that a pointer belongs to. */
static unsigned arena_of(const void *ptr)
{
    unsigned index = 0;
    size_t size = sizeof(index);
    const void *key = ptr;

    cr_assert_eq(mallctl("arenas.lookup", &index, &size, &key, sizeof(key)),
                 0);
    return index;
}

static void *allocate(ccmr_resource *resource, size_t bytes, size_t alignment)
{
    void *ptr = NULL;

    cr_assert_eq(ccmr_resource_allocate(resource, bytes, alignment,
                                        CCMR_STREAM_LEGACY, &ptr),
                 CCMR_SUCCESS);
    return ptr;
}

static void deallocate(ccmr_resource *resource, void *ptr, size_t bytes,
                       size_t alignment)
{
    cr_assert_eq(ccmr_resource_deallocate(resource, ptr, bytes, alignment,
                                          CCMR_STREAM_READY),
                 CCMR_SUCCESS);
}

Test(jemalloc, aligns)
{
    size_t alignment;
    size_t bytes;
    void *ptr;

    for (alignment = 1; alignment <= (size_t)1 << 30; alignment *= 2) {
        for (bytes = 1; bytes <= (size_t)1 << 20; bytes = bytes * 3 + 1) {
            ptr = allocate(arena, bytes, alignment);
            cr_assert_eq((uintptr_t)ptr % alignment, 0u);
            memset(ptr, 1, bytes < 4096 ? bytes : 4096);
            deallocate(arena, ptr, bytes, alignment);
        }
    }
}

/* The arena's memory never becomes anybody's malloc, nor the reverse. */
Test(jemalloc, keeps_to_its_arena)
{
    static void *blocks[BLOCKS];
    static void *mallocs[BLOCKS];
    unsigned own;
    size_t i;

    for (i = 0; i < BLOCKS; i++) {
        blocks[i] = allocate(arena, 256, 256);
    }
    own = arena_of(blocks[0]);
    for (i = 0; i < BLOCKS; i++) {
        cr_assert_eq(arena_of(blocks[i]), own);
        deallocate(arena, blocks[i], 256, 256);
    }
    for (i = 0; i < BLOCKS; i++) {
        mallocs[i] = mallocx(256, 0);
        cr_assert_neq(arena_of(mallocs[i]), own);
    }
    for (i = 0; i < BLOCKS; i++) {
        dallocx(mallocs[i], 0);
    }
    for (i = 0; i < BLOCKS; i++) {
        blocks[i] = allocate(arena, 256, 256);
        cr_assert_eq(arena_of(blocks[i]), own);
    }
    for (i = 0; i < BLOCKS; i++) {
        deallocate(arena, blocks[i], 256, 256);
    }
}

/* More arenas than have caches, made and released in turn. */
Test(jemalloc, has_many_arenas)
{
    enum { ARENAS = 100 };
    ccmr_resource *resources[ARENAS];
    void *blocks[ARENAS];
    size_t i;
    size_t round;

    for (round = 0; round < 3; round++) {
        for (i = 0; i < ARENAS; i++) {
            cr_assert_eq(ccmr_jemalloc_create(&resources[i]), CCMR_SUCCESS);
            blocks[i] = allocate(resources[i], 64, 64);
            memset(blocks[i], (int)i, 64);
        }
        for (i = 0; i < ARENAS; i++) {
            cr_assert_eq(((unsigned char *)blocks[i])[63], i);
            deallocate(resources[i], blocks[i], 64, 64);
            ccmr_resource_release(resources[i]);
        }
    }
}

typedef struct passing {
    ccmr_resource *resource;
    void *blocks[BLOCKS];
    int failures;
} passing;

static void *allocate_all(void *context)
{
    passing *p = context;
    size_t i;

    for (i = 0; i < BLOCKS; i++) {
        p->failures += ccmr_resource_allocate(p->resource, 100 + i, 64,
                                              CCMR_STREAM_LEGACY,
                                              &p->blocks[i]) != CCMR_SUCCESS;
    }
    return NULL;
}

static void *free_all(void *context)
{
    passing *p = context;
    size_t i;

    for (i = 0; i < BLOCKS; i++) {
        p->failures +=
            ccmr_resource_deallocate(p->resource, p->blocks[i], 100 + i, 64,
                                     CCMR_STREAM_LEGACY) != CCMR_SUCCESS;
    }
    return NULL;
}

static void run_thread(void *(*run)(void *), void *context)
{
    pthread_t thread;

    cr_assert_eq(pthread_create(&thread, NULL, run, context), 0);
    cr_assert_eq(pthread_join(thread, NULL), 0);
}

/* Blocks and caches of threads that have ended. */
Test(jemalloc, outlives_its_threads)
{
    static passing p;
    ccmr_stats stats = {.size = sizeof(stats)};
    size_t round;

    cr_assert_eq(ccmr_jemalloc_create(&p.resource), CCMR_SUCCESS);
    for (round = 0; round < 5; round++) {
        run_thread(allocate_all, &p);
        run_thread(free_all, &p);
    }
    cr_assert_eq(p.failures, 0);
    cr_assert_eq(ccmr_resource_stats(p.resource, &stats), CCMR_SUCCESS);
    cr_assert_eq(stats.live_bytes, 0u);
    cr_assert_eq(stats.live_blocks, 0u);
    ccmr_resource_release(p.resource);
}

static pthread_barrier_t barrier;

/* Uses the arena, and ends only after it has gone. */
static void *use_and_stay(void *context)
{
    passing *p = context;

    (void)allocate_all(p);
    (void)free_all(p);
    (void)pthread_barrier_wait(&barrier);
    (void)pthread_barrier_wait(&barrier);
    return NULL;
}

Test(jemalloc, goes_before_a_thread)
{
    static passing p;
    pthread_t thread;

    cr_assert_eq(pthread_barrier_init(&barrier, NULL, 2), 0);
    cr_assert_eq(ccmr_jemalloc_create(&p.resource), CCMR_SUCCESS);
    cr_assert_eq(pthread_create(&thread, NULL, use_and_stay, &p), 0);
    (void)pthread_barrier_wait(&barrier);
    ccmr_resource_release(p.resource);
    (void)pthread_barrier_wait(&barrier);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    cr_assert_eq(p.failures, 0);
    (void)pthread_barrier_destroy(&barrier);
}

/* G5: a child is refused everything, and ends as if nothing was. */
Test(jemalloc, refuses_a_forked_child)
{
    ccmr_resource *resource = NULL;
    void *ptr = allocate(arena, 64, 64);
    int failures = 0;
    pid_t child = fork();
    int ended = -1;

    if (child == 0) {
        failures += ccmr_jemalloc_create(&resource) != CCMR_ERROR_FORKED;
        failures +=
            ccmr_resource_deallocate(arena, ptr, 64, 64, CCMR_STREAM_LEGACY) !=
            CCMR_ERROR_FORKED;
        ccmr_resource_release(arena);
        _exit(failures);
    }
    cr_assert_gt(child, 0);
    cr_assert_eq(waitpid(child, &ended, 0), child);
    cr_assert_eq(ended, 0);
    deallocate(arena, ptr, 64, 64);
}

Test(jemalloc, trims)
{
    ccmr_trim_result result = {.size = sizeof(result)};
    ccmr_stats stats = {.size = sizeof(stats)};
    const size_t bytes = (size_t)32 << 20;
    void *first = allocate(arena, bytes, 4096);
    void *second = allocate(arena, bytes, 4096);
    size_t reserved;

    cr_assert_eq(ccmr_resource_stats(arena, &stats), CCMR_SUCCESS);
    cr_assert_geq(stats.reserved_bytes, 2 * bytes);
    deallocate(arena, second, bytes, 4096);
    cr_assert_eq(ccmr_resource_stats(arena, &stats), CCMR_SUCCESS);
    reserved = stats.reserved_bytes;
    cr_assert_geq(reserved, 2 * bytes);

    /* Some of what is unused is to be kept: all of it is. */
    cr_assert_eq(ccmr_resource_trim(arena, bytes + bytes / 2, &result),
                 CCMR_SUCCESS);
    cr_assert_eq(result.released_bytes, 0u);
    cr_assert_eq(result.pinned_bytes, reserved - bytes - bytes / 2);
    cr_assert_eq(ccmr_resource_trim(arena, 0, &result), CCMR_SUCCESS);
    cr_assert_geq(result.released_bytes, bytes);
    cr_assert_eq(ccmr_resource_stats(arena, &stats), CCMR_SUCCESS);
    cr_assert_eq(stats.reserved_bytes, reserved - result.released_bytes);
    cr_assert_geq(stats.reserved_bytes, bytes);
    deallocate(arena, first, bytes, 4096);
}

Test(jemalloc, refuses_huge_sizes)
{
    ccmr_stats stats = {.size = sizeof(stats)};
    void *ptr;

    cr_assert_eq(ccmr_resource_allocate(arena, (size_t)PTRDIFF_MAX, 0,
                                        CCMR_STREAM_LEGACY, &ptr),
                 CCMR_ERROR_OUT_OF_HOST_MEMORY);
    cr_assert_eq(ccmr_last_error()->requested, (size_t)PTRDIFF_MAX);
    cr_assert_str_eq(ccmr_last_error()->resource, "jemalloc");
    cr_assert_eq(ccmr_resource_allocate(arena, (size_t)1 << 60,
                                        (size_t)1 << 30, CCMR_STREAM_LEGACY,
                                        &ptr),
                 CCMR_ERROR_OUT_OF_HOST_MEMORY);
    cr_assert_eq(ccmr_resource_stats(arena, &stats), CCMR_SUCCESS);
    cr_assert_eq(stats.failures, 2u);
    cr_assert_eq(stats.live_bytes, 0u);
}

Test(jemalloc, refuses_addresses_that_cannot_be)
{
    char *block = allocate(arena, 64, 64);

    cr_assert_eq(
        ccmr_resource_deallocate(arena, block + 8, 64, 64, CCMR_STREAM_LEGACY),
        CCMR_ERROR_INVALID_POINTER);
    deallocate(arena, block, 64, 64);
}

Test(jemalloc, is_a_kind)
{
    ccmr_properties properties = {.size = sizeof(properties)};
    ccmr_resource *resource;
    char text[64];

    cr_assert_eq(ccmr_stack_create("jemalloc", &resource),
                 CCMR_ERROR_UNKNOWN_NAME);
    cr_assert_eq(ccmr_jemalloc_register(), CCMR_SUCCESS);
    cr_assert_eq(ccmr_jemalloc_register(), CCMR_SUCCESS);
    cr_assert_eq(ccmr_stack_create("jemalloc", &resource), CCMR_SUCCESS);
    cr_assert_eq(ccmr_stack_print(resource, text, sizeof(text), NULL),
                 CCMR_SUCCESS);
    cr_assert_str_eq(text, "jemalloc");
    cr_assert_eq(ccmr_resource_describe(resource, &properties), CCMR_SUCCESS);
    cr_assert_eq(properties.device, -1);
    cr_assert_eq(properties.host_accessible, 1);
    cr_assert_eq(properties.free_stream, CCMR_FREE_AT_ONCE);
    ccmr_resource_release(resource);
    cr_assert_eq(ccmr_jemalloc_create(NULL), CCMR_ERROR_INVALID_ARGUMENT);
}
