/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every allocation of host memory fails once: for each stack, for each n. The
 * linker's --wrap puts the functions below between the library's code and the
 * C library's; the simulated driver keeps its own. Each run has a thread of
 * its own, so that the library's record of a thread is among what fails.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/faults/script.h"
#include "tests/support/tap.h"

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *ptr, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
int __real_posix_memalign(void **ptr, size_t alignment, size_t bytes);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t length);
void __real_free(void *ptr);

void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *ptr, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
int __wrap_posix_memalign(void **ptr, size_t alignment, size_t bytes);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t length);
void __wrap_free(void *ptr);

/* Counts down to the allocation that fails; below 0: none does. */
static atomic_llong until_failure = -1;
static atomic_llong allocations;
static atomic_llong live;
static atomic_int in_free; /* inside a free path: nothing may be allocated */
static atomic_int allocated_in_free;

static int fails(void)
{
    atomic_fetch_add(&allocations, 1);
    if (atomic_load(&in_free)) {
        atomic_fetch_add(&allocated_in_free, 1);
    }
    return atomic_load(&until_failure) > 0 &&
           atomic_fetch_sub(&until_failure, 1) == 1;
}

static void *counted(void *ptr)
{
    if (ptr != NULL) {
        atomic_fetch_add(&live, 1);
    }
    return ptr;
}

void *__wrap_malloc(size_t bytes)
{
    return fails() ? NULL : counted(__real_malloc(bytes));
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return fails() ? NULL : counted(__real_calloc(count, bytes));
}

void *__wrap_realloc(void *ptr, size_t bytes)
{
    void *moved;

    if (fails()) {
        return NULL;
    }
    moved = __real_realloc(ptr, bytes);
    return ptr == NULL ? counted(moved) : moved;
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    return fails() ? NULL : counted(__real_aligned_alloc(alignment, bytes));
}

int __wrap_posix_memalign(void **ptr, size_t alignment, size_t bytes)
{
    int ret;

    if (fails()) {
        return 12; /* ENOMEM */
    }
    ret = __real_posix_memalign(ptr, alignment, bytes);
    if (ret == 0) {
        (void)counted(*ptr);
    }
    return ret;
}

char *__wrap_strdup(const char *text)
{
    return fails() ? NULL : counted(__real_strdup(text));
}

char *__wrap_strndup(const char *text, size_t length)
{
    return fails() ? NULL : counted(__real_strndup(text, length));
}

void __wrap_free(void *ptr)
{
    if (ptr != NULL) {
        atomic_fetch_sub(&live, 1);
    }
    __real_free(ptr);
}

static const ccmr_sim_table *sim;
static unsigned faults_found;

static void tell(const script *s, long long nth, const char *what)
{
    if (faults_found++ < 12) {
        tap_diag("%s: allocation %lld fails, first at %s: %s", s->stack, nth,
                 s->first_step, what);
    }
}

static void *run_in_thread(void *argument)
{
    script_run(argument);
    return NULL;
}

static void run_script(script *s)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, run_in_thread, s) != 0) {
        tap_bail_out("no thread");
    }
    (void)pthread_join(thread, NULL);
}

static ccmr_sim_census census(void)
{
    ccmr_sim_census c;

    memset(&c, 0, sizeof(c));
    c.size = sizeof(c);
    (void)sim->census(&c);
    return c;
}

static void compare(script *s, long long nth, const ccmr_sim_census *before,
                    long long live_before)
{
    ccmr_sim_census now = census();
    char text[96];

    if (now.streams != before->streams || now.events != before->events ||
        now.pools != before->pools ||
        now.plain_blocks != before->plain_blocks ||
        now.pinned_blocks != before->pinned_blocks ||
        now.pool_blocks != before->pool_blocks) {
        tell(s, nth, "something is left in the driver");
    }
    if (atomic_load(&live) != live_before) {
        (void)snprintf(text, sizeof(text), "%lld host allocations left",
                       atomic_load(&live) - live_before);
        tell(s, nth, text);
    }
}

/* A failure for want of host memory says so, and nothing else fails. */
static void after_step(script *s, const char *step, ccmr_status status)
{
    if (status != CCMR_SUCCESS && strcmp(step, "deallocate") == 0) {
        tell(s, -1, "a deallocate failed for want of host memory");
    }
    if (status != CCMR_SUCCESS && status != CCMR_ERROR_OUT_OF_HOST_MEMORY) {
        tell(s, -1, ccmr_status_name(status));
    }
    if (status != CCMR_SUCCESS && ccmr_last_error()->status != status) {
        tell(s, -1, "the detail is of another failure");
    }
}

static void run_stack(const char *stack)
{
    script s = {.stack = stack, .after = after_step};
    ccmr_sim_census before;
    long long live_before;
    long long count;
    long long nth;

    faults_found = 0;
    run_script(&s);
    run_script(&s);
    before = census();
    live_before = atomic_load(&live);
    count = atomic_load(&allocations);
    run_script(&s);
    count = atomic_load(&allocations) - count;
    if (s.failures != 0) {
        tap_fail("%s: fails without faults: %s: %s", stack, s.first_step,
                 ccmr_status_name(s.first));
        return;
    }
    compare(&s, 0, &before, live_before);
    for (nth = 1; nth <= count + 8; nth++) {
        atomic_store(&until_failure, nth);
        run_script(&s);
        atomic_store(&until_failure, -1);
        if (s.stuck) {
            tell(&s, nth, "refused again and again");
        }
        compare(&s, nth, &before, live_before);
        run_script(&s);
        if (s.failures != 0) {
            tell(&s, nth, "fails later, without a fault");
        }
    }
    tap_ok(faults_found == 0, "%s: each of %lld allocations fails", stack,
           count);
}

/* Free paths allocate nothing at all: deallocate, and closing a buffer. */
static void free_allocates_nothing(const char *stack)
{
    ccmr_resource *resource = NULL;
    ccmr_buffer *buffer = NULL;
    void *ptr[8] = {NULL};
    int i;

    if (ccmr_stack_create(stack, &resource) != CCMR_SUCCESS) {
        tap_fail("%s: %s", stack, ccmr_last_error()->message);
        return;
    }
    for (i = 0; i < 8; i++) {
        if (ccmr_resource_allocate(resource, (size_t)1000 << i, 0,
                                   i % 2 == 0 ? CCMR_STREAM_LEGACY
                                              : CCMR_STREAM_PER_THREAD,
                                   &ptr[i]) != CCMR_SUCCESS) {
            tap_fail("%s: %s", stack, ccmr_last_error()->message);
        }
    }
    if (ccmr_buffer_create(resource, 5000, NULL, CCMR_STREAM_LEGACY,
                           &buffer) != CCMR_SUCCESS) {
        tap_fail("%s: %s", stack, ccmr_last_error()->message);
    }
    atomic_store(&allocated_in_free, 0);
    atomic_store(&in_free, 1);
    for (i = 0; i < 8; i++) {
        (void)ccmr_resource_deallocate(resource, ptr[i], (size_t)1000 << i, 0,
                                       i % 2 == 0 ? CCMR_STREAM_LEGACY
                                                  : CCMR_STREAM_PER_THREAD);
    }
    (void)ccmr_buffer_close(buffer, CCMR_STREAM_UNSET);
    atomic_store(&in_free, 0);
    tap_is_int(atomic_load(&allocated_in_free), 0,
               "%s: frees allocate nothing", stack);
    (void)ccmr_buffer_destroy(buffer);
    ccmr_resource_release(resource);
}

int main(void)
{
    const char *const *stack;
    ccmr_status status = CCMR_ERROR_OUT_OF_HOST_MEMORY;
    long long nth;

    sim = api_simulator();
    /* The first use of the process, until it gets through. */
    for (nth = 1; nth < 100 && status != CCMR_SUCCESS; nth++) {
        atomic_store(&until_failure, nth);
        status = ccmr_init(NULL);
        atomic_store(&until_failure, -1);
        if (status != CCMR_SUCCESS &&
            status != CCMR_ERROR_OUT_OF_HOST_MEMORY) {
            tap_fail("init: %s", ccmr_status_name(status));
        }
    }
    tap_ok(status == CCMR_SUCCESS, "init gets through at last");
    script_prepare();
    for (stack = script_stacks; *stack != NULL; stack++) {
        run_stack(*stack);
        free_allocates_nothing(*stack);
    }
    script_end();
    return api_end(tap_finish());
}
