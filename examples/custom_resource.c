/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A resource of one's own, as good as those of the library: it is described
 * and counted, has options, is made by name from a stack text, and stands
 * under the library's adaptors.
 *
 * "guarded" hands out host memory that ends at a page which nobody may touch,
 * so that a write beyond a block's end stops the program right there. It needs
 * no GPU and no driver:
 *
 *     cc -o custom_resource custom_resource.c \
 *         $(pkg-config --cflags --libs libcucoremr)
 *     ./custom_resource
 *
 *      mapped by one call to mmap
 *     |<------------------------------->|<-- page -->|
 *     |  not used  |  block, alignment  |  no access |
 */
#define _DEFAULT_SOURCE /* mmap */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cucoremr/cucoremr.h>

/* The object behind the resource. It never changes, so that any number of
 * threads may use it at once without a lock. */
typedef struct guarded {
    size_t page;
    int fill; /* byte that new memory is filled with, -1: none */
} guarded;

/* A block and what lies before it, in whole pages. 0 if that overflows. */
static size_t covered_bytes(const guarded *self, size_t bytes,
                            size_t alignment)
{
    size_t slack = alignment - 1 + self->page - 1;

    if (bytes > SIZE_MAX / 2 - slack) {
        return 0;
    }
    /* The block's end lies at the guard, if the alignment lets it. */
    bytes = (bytes + alignment - 1) & ~(alignment - 1);
    return (bytes + self->page - 1) & ~(self->page - 1);
}

/* The library has checked the size, the alignment and the stream before. */
static ccmr_status guarded_allocate(void *object, size_t bytes,
                                    size_t alignment, ccmr_stream stream,
                                    void **ptr)
{
    guarded *self = object;
    size_t covered = covered_bytes(self, bytes, alignment);
    size_t used = (bytes + alignment - 1) & ~(alignment - 1);
    char *base;

    (void)stream; /* host memory may be used at once, on any stream */
    if (covered == 0) {
        return ccmr_error_set(CCMR_ERROR_OUT_OF_HOST_MEMORY, bytes,
                              "no room for the guard");
    }
    base = mmap(NULL, covered + self->page, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) {
        return ccmr_error_set(CCMR_ERROR_OUT_OF_HOST_MEMORY, bytes,
                              "mmap has no memory");
    }
    if (mprotect(base + covered, self->page, PROT_NONE) != 0) {
        (void)munmap(base, covered + self->page);
        return ccmr_error_set(CCMR_ERROR_OUT_OF_HOST_MEMORY, bytes,
                              "mprotect has no memory for the guard");
    }
    if (self->fill >= 0) {
        memset(base, self->fill, covered);
    }
    *ptr = base + covered - used;
    return CCMR_SUCCESS;
}

/* Bytes and alignment are those of the allocate: nothing has to be kept. */
static ccmr_status guarded_deallocate(void *object, void *ptr, size_t bytes,
                                      size_t alignment, ccmr_stream stream)
{
    guarded *self = object;
    size_t covered = covered_bytes(self, bytes, alignment);
    size_t used = (bytes + alignment - 1) & ~(alignment - 1);
    uintptr_t end = (uintptr_t)ptr + used;

    (void)stream;
    if (covered == 0 || end % self->page != 0) {
        return ccmr_error_set(CCMR_ERROR_INVALID_POINTER, bytes,
                              "no block of that size ends there");
    }
    if (munmap((void *)(end - covered), covered + self->page) != 0) {
        return ccmr_error_set(CCMR_ERROR_USER, bytes, "munmap failed");
    }
    return CCMR_SUCCESS;
}

static void guarded_destroy(void *object)
{
    free(object);
}

/* `properties` comes with `size` and the library's defaults. */
static ccmr_status guarded_describe(void *object, ccmr_properties *properties)
{
    const guarded *self = object;

    properties->name = "guarded";
    properties->device = -1;
    properties->device_accessible = 0;
    properties->host_accessible = 1;
    properties->max_alignment = self->page;
    properties->free_stream = CCMR_FREE_AT_ONCE;
    properties->capture = CCMR_CAPTURE_IRRELEVANT;
    properties->access = CCMR_ACCESS_HOST;
    return CCMR_SUCCESS;
}

/* For printing a stack: the present value of each option, as text. */
static ccmr_status guarded_option_get(void *object, const char *name,
                                      char *text, size_t capacity,
                                      size_t *length)
{
    const guarded *self = object;

    if (strcmp(name, "fill") != 0) {
        return ccmr_error_set(CCMR_ERROR_UNKNOWN_NAME, 0,
                              "guarded has the option fill alone");
    }
    *length = (size_t)snprintf(text, capacity, "%d", self->fill);
    return CCMR_SUCCESS;
}

/* What the library calls. Optional operations that are left out are NULL, and
 * the library does what is right without them. */
static const ccmr_resource_ops guarded_ops = {
    .size = sizeof(ccmr_resource_ops),
    .allocate = guarded_allocate,
    .deallocate = guarded_deallocate,
    .destroy = guarded_destroy,
    .describe = guarded_describe,
    .option_get = guarded_option_get,
};

static ccmr_status guarded_create(int fill, ccmr_resource **resource)
{
    guarded *self = malloc(sizeof(*self));
    ccmr_status status;

    if (self == NULL) {
        return ccmr_error_set(CCMR_ERROR_OUT_OF_HOST_MEMORY, sizeof(*self),
                              NULL);
    }
    self->page = (size_t)sysconf(_SC_PAGESIZE);
    self->fill = fill;
    status = ccmr_resource_create(&guarded_ops, self, resource);
    if (status != CCMR_SUCCESS) {
        free(self);
    }
    return status;
}

/* The kind: what stack texts call it, and its options. */

static const ccmr_option guarded_options[] = {
    {"fill", CCMR_OPTION_INTEGER, "-1", NULL,
     "byte (0 to 255) that new memory is filled with; -1: none"},
    {NULL, CCMR_OPTION_TEXT, NULL, NULL, NULL},
};

static ccmr_status guarded_from_text(const ccmr_kind *kind,
                                     const ccmr_option_value *values,
                                     ccmr_resource *const *upstreams,
                                     size_t count, ccmr_resource **resource)
{
    (void)kind;
    (void)upstreams; /* an adaptor would retain upstreams[0] here */
    (void)count;
    if (values[0].integer < -1 || values[0].integer > 255) {
        return ccmr_error_set(CCMR_ERROR_INVALID_ARGUMENT, 0,
                              "fill must be -1 to 255");
    }
    return guarded_create((int)values[0].integer, resource);
}

static const ccmr_kind guarded_kind = {
    .size = sizeof(ccmr_kind),
    .name = "guarded",
    .help = "host memory that ends at a page which nobody may touch",
    .options = guarded_options,
    .create = guarded_from_text,
};

static void check(ccmr_status status, const char *what)
{
    if (status != CCMR_SUCCESS) {
        fprintf(stderr, "%s: %s: %s\n", what, ccmr_status_name(status),
                ccmr_last_error()->message);
        exit(EXIT_FAILURE);
    }
}

int main(void)
{
    ccmr_stats stats = {.size = sizeof(stats)};
    ccmr_resource *stack;
    char text[256];
    unsigned char *block;
    void *ptr;

    check(ccmr_kind_register(&guarded_kind), "register");
    check(ccmr_stack_help("guarded", text, sizeof(text), NULL), "help");
    printf("%s\n", text);

    check(ccmr_stack_create("limiting bytes=64KiB | guarded fill=170", &stack),
          "create");
    check(ccmr_stack_print(stack, text, sizeof(text), NULL), "print");
    printf("made:    %s\n", text);

    check(ccmr_resource_allocate(stack, 1000, 8, CCMR_STREAM_LEGACY, &ptr),
          "allocate");
    block = ptr;
    check(ccmr_resource_stats(stack, &stats), "stats");
    printf("live:    %zu bytes in %llu block\n", stats.live_bytes,
           (unsigned long long)stats.live_blocks);
    printf("filled:  0x%02x ... 0x%02x\n", block[0], block[999]);
    /* block[1000] would end the program. */

    if (ccmr_resource_allocate(stack, 65536, 8, CCMR_STREAM_LEGACY, &ptr) !=
        CCMR_SUCCESS) {
        printf("refused: %s says: %s\n", ccmr_last_error()->resource,
               ccmr_last_error()->message);
    }
    check(ccmr_resource_deallocate(stack, block, 1000, 8, CCMR_STREAM_LEGACY),
          "deallocate");
    ccmr_resource_release(stack);
    return 0;
}
