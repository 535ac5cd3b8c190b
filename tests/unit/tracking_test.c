/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracking, on one thread. Field cases F1, H5, J2, T3.
 */
#include <cucoremr/resources/tracking.h>

#include "tests/unit/adaptor.h"

static puppet below;
static ccmr_resource *upstream;
static ccmr_resource *tracked;
static char reports[65536];
static int report_count;

static void note_report(void *context, const char *text, size_t length)
{
    (void)context;
    MUST(length > 0 && text[length - 1] == '\n');
    (void)strncat(reports, text, sizeof(reports) - strlen(reports) - 1);
    report_count++;
}

static void start_with(const ccmr_tracking_options *options)
{
    puppet_init(&below);
    upstream = puppet_resource(&below);
    GOOD(ccmr_tracking_create(upstream, options, &tracked));
}

static void start(void)
{
    start_with(NULL);
}

static void end(void)
{
    MUST(ccmr_resource_audit(tracked) == CCMR_SUCCESS);
    ccmr_resource_release(tracked);
    ccmr_resource_release(upstream);
    MUST(puppet_clear(&below));
}

TestSuite(tracking, .init = start, .fini = end);

static ccmr_status free_as(void *ptr, size_t bytes, size_t alignment)
{
    return ccmr_resource_deallocate(tracked, ptr, bytes, alignment, LEGACY);
}

/* The last error has that in its message. */
static void says(const char *text)
{
    cr_assert(strstr(ccmr_last_error()->message, text) != NULL, "%s",
              ccmr_last_error()->message);
    cr_assert_str_eq(ccmr_last_error()->resource, "tracking");
}

static void says_pointer(const void *ptr)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "%p", ptr);
    says(text);
}

Test(tracking, freed_twice)
{
    void *a = take(tracked, 100);
    void *b = take(tracked, 200);

    give(tracked, a, 100);
    BAD(free_as(a, 100, 0), CCMR_ERROR_INVALID_POINTER);
    says("freed already");
    says("block 1");
    says("100 bytes");
    says_pointer(a);
    cr_assert_eq(below.deallocations, 1u, "the upstream was told");
    BAD(free_as(a, 100, 0), CCMR_ERROR_INVALID_POINTER);
    give(tracked, b, 200);
    cr_assert_eq(stats_of(tracked).live_blocks, 0u);
}

/* J2: the true size is known, and nothing is freed by a wrong one. */
Test(tracking, wrong_size_and_alignment)
{
    void *a = NULL;

    GOOD(ccmr_resource_allocate(tracked, 1000, 512, LEGACY, &a));
    BAD(free_as(a, 999, 512), CCMR_ERROR_INVALID_SIZE);
    says("999 bytes");
    says("1000 bytes");
    BAD(free_as(a, 1001, 512), CCMR_ERROR_INVALID_SIZE);
    BAD(free_as(a, 1000, 0), CCMR_ERROR_INVALID_ALIGNMENT);
    says("alignment 256");
    says("aligned to 512");
    cr_assert_eq(stats_of(tracked).live_bytes, 1000u);
    cr_assert_eq(below.deallocations, 0u);
    GOOD(free_as(a, 1000, 512));
}

/* T3: a block of the upstream's, and an address in the middle. */
Test(tracking, foreign_pointers)
{
    void *foreign = take(upstream, 300);
    char *a = take(tracked, 4096);

    BAD(free_as(foreign, 300, 0), CCMR_ERROR_INVALID_POINTER);
    says_pointer(foreign);
    says("not allocated here");
    BAD(free_as(a + 256, 4096 - 256, 0), CCMR_ERROR_INVALID_POINTER);
    says("inside of a block");
    says_pointer(a);
    cr_assert_eq(below.deallocations, 0u);
    give(tracked, a, 4096);
    give(upstream, foreign, 300);
}

/* A refusal of the upstream's leaves the block live; it can be freed later. */
Test(tracking, refused_upstream)
{
    void *a = take(tracked, 100);

    below.refuse_frees = 1;
    cr_assert_neq(free_as(a, 100, 0), CCMR_SUCCESS);
    cr_assert_eq(stats_of(tracked).live_blocks, 1u);
    give(tracked, a, 100);
    BAD(free_as(a, 100, 0), CCMR_ERROR_INVALID_POINTER);
}

/* The address is used again: the old record does not get in the way. */
Test(tracking, reused_address)
{
    void *a = take(tracked, 100);
    void *b;

    give(tracked, a, 100);
    b = take(tracked, 100);
    cr_assert_eq(a, b, "the puppet gives the last one again");
    give(tracked, b, 100);
    BAD(free_as(b, 100, 0), CCMR_ERROR_INVALID_POINTER);
    says("block 2");
}

static int second_try;

/* While its free is under way a block is no longer live. */
static void free_again(puppet *self)
{
    self->on_deallocate = NULL;
    second_try = free_as(self->context, 100, 0);
}

Test(tracking, freed_twice_at_once)
{
    void *a = take(tracked, 100);

    below.context = a;
    below.on_deallocate = free_again;
    give(tracked, a, 100);
    cr_assert_eq(second_try, CCMR_ERROR_INVALID_POINTER);
}

Test(tracking, zero_bytes)
{
    void *ptr = &below;

    GOOD(ccmr_resource_allocate(tracked, 0, 0, LEGACY, &ptr));
    cr_assert_null(ptr);
    GOOD(ccmr_resource_deallocate(tracked, NULL, 0, 0, LEGACY));
    cr_assert_eq(below.allocations, 0u);
}

typedef struct listing {
    uint64_t numbers[100];
    size_t count;
    size_t most;
} listing;

static int list(void *context, const ccmr_tracking_block *block)
{
    listing *to = context;

    cr_assert_eq(block->size, sizeof(*block));
    cr_assert_eq(block->bytes, 100 + to->count * 100);
    cr_assert_eq(block->alignment, CCMR_DEFAULT_ALIGNMENT);
    cr_assert_eq(block->stream, LEGACY);
    cr_assert_neq(block->thread, 0u);
    to->numbers[to->count++] = block->number;
    return to->count == to->most;
}

Test(tracking, outstanding)
{
    listing all = {.most = 100};
    listing some = {.most = 3};
    ccmr_tracking_block block = {.size = sizeof(block)};
    void *blocks[20];
    size_t i;

    for (i = 0; i < 20; i++) {
        blocks[i] = take(tracked, 100 + i * 100);
    }
    GOOD(ccmr_tracking_outstanding(tracked, list, &all));
    cr_assert_eq(all.count, 20u);
    for (i = 0; i < 20; i++) {
        cr_assert_eq(all.numbers[i], i + 1);
    }
    GOOD(ccmr_tracking_outstanding(tracked, list, &some));
    cr_assert_eq(some.count, 3u);
    GOOD(ccmr_tracking_find(tracked, (char *)blocks[7] + 799, &block));
    cr_assert_eq(block.ptr, blocks[7]);
    cr_assert_eq(block.bytes, 800u);
    BAD(ccmr_tracking_find(tracked, &block, &block),
        CCMR_ERROR_INVALID_POINTER);
    for (i = 0; i < 20; i++) {
        give(tracked, blocks[i], 100 + i * 100);
    }
    all.count = 0;
    GOOD(ccmr_tracking_outstanding(tracked, list, &all));
    cr_assert_eq(all.count, 0u);
}

/* So many that tables grow, and more than the history has room for. */
Test(tracking, many)
{
    static void *blocks[20000];
    size_t i;

    for (i = 0; i < 20000; i++) {
        blocks[i] = take(tracked, 256);
    }
    GOOD(ccmr_resource_audit(tracked));
    for (i = 0; i < 20000; i++) {
        give(tracked, blocks[i], 256);
    }
    BAD(free_as(blocks[19999], 256, 0), CCMR_ERROR_INVALID_POINTER);
    says("freed already");
    BAD(free_as(blocks[0], 256, 0), CCMR_ERROR_INVALID_POINTER);
    says("freed long ago");
}

/* A use of what is not live is none. */
Test(tracking, uses)
{
    void *a = take(tracked, 100);

    BAD(ccmr_resource_note_use(tracked, &below, LEGACY),
        CCMR_ERROR_INVALID_POINTER);
    BAD(ccmr_resource_hold_until_free(tracked, &below, LEGACY),
        CCMR_ERROR_INVALID_POINTER);
    BAD(ccmr_resource_note_use(tracked, a, LEGACY), CCMR_ERROR_NOT_SUPPORTED);
    give(tracked, a, 100);
}

/* Pins and exports are of what is live, and no more of it. The puppet offers
 * neither: what comes so far is not supported. */
Test(tracking, pins_and_exports)
{
    ccmr_export_place place = {.size = sizeof(place)};
    char *a = take(tracked, 5000);
    char *b = take(tracked, 700);
    int fd;

    give(tracked, b, 700);
    BAD(ccmr_resource_pin(tracked, b, 700), CCMR_ERROR_INVALID_POINTER);
    says("freed already");
    BAD(ccmr_resource_pin(tracked, &below, 1), CCMR_ERROR_INVALID_POINTER);
    BAD(ccmr_resource_pin(tracked, a, 5001), CCMR_ERROR_INVALID_SIZE);
    says("has 5000");
    BAD(ccmr_resource_pin(tracked, a + 4000, 1001), CCMR_ERROR_INVALID_SIZE);
    BAD(ccmr_resource_pin(tracked, a + 4000, 1000), CCMR_ERROR_NOT_SUPPORTED);
    BAD(ccmr_resource_export_block(tracked, b, 700, CCMR_HANDLE_POSIX_FD, &fd,
                                   sizeof(fd), &place),
        CCMR_ERROR_INVALID_POINTER);
    BAD(ccmr_resource_export_block(tracked, a, 5001, CCMR_HANDLE_POSIX_FD, &fd,
                                   sizeof(fd), &place),
        CCMR_ERROR_INVALID_SIZE);
    BAD(ccmr_resource_export_block(tracked, a + 1, 4999, CCMR_HANDLE_POSIX_FD,
                                   &fd, sizeof(fd), &place),
        CCMR_ERROR_NOT_SUPPORTED);
    BAD(ccmr_resource_export_handle(tracked, b, CCMR_HANDLE_POSIX_FD, &fd,
                                    sizeof(fd)),
        CCMR_ERROR_INVALID_POINTER);
    BAD(ccmr_resource_unpin(tracked, b, 700), CCMR_ERROR_NOT_SUPPORTED);
    give(tracked, a, 5000);
}

Test(tracking, text)
{
    ccmr_resource *made;
    char text[128];

    GOOD(ccmr_stack_create("tracking traces=yes history=7 | host", &made));
    GOOD(ccmr_stack_print(made, text, sizeof(text), NULL));
    cr_assert_str_eq(text, "tracking traces=yes history=7 | host");
    ccmr_resource_release(made);
    BAD(ccmr_stack_create("tracking history=0 | host", &made),
        CCMR_ERROR_INVALID_ARGUMENT);
}

/* ---- an upstream that is wrong ------------------------------------------ */

static char *next_address;
static size_t returned;

static ccmr_status wrong_allocate(void *self, size_t bytes, size_t alignment,
                                  ccmr_stream stream, void **ptr)
{
    (void)self;
    (void)bytes;
    (void)alignment;
    (void)stream;
    *ptr = next_address;
    return CCMR_SUCCESS;
}

static ccmr_status wrong_deallocate(void *self, void *ptr, size_t bytes,
                                    size_t alignment, ccmr_stream stream)
{
    (void)self;
    (void)ptr;
    (void)bytes;
    (void)alignment;
    (void)stream;
    returned++;
    return CCMR_SUCCESS;
}

static void wrong_destroy(void *self)
{
    (void)self;
}

static ccmr_status wrong_describe(void *self, ccmr_properties *properties)
{
    (void)self;
    properties->name = "wrong";
    properties->max_alignment = 4096;
    properties->device = -1;
    return CCMR_SUCCESS;
}

Test(tracking_wrong, upstream_gives_a_block_twice)
{
    static const ccmr_resource_ops ops = {
        .size = sizeof(ops),
        .allocate = wrong_allocate,
        .deallocate = wrong_deallocate,
        .destroy = wrong_destroy,
        .describe = wrong_describe,
    };
    char *base = (char *)(uintptr_t)0x100000;
    ccmr_resource *source;
    void *a;
    void *b = NULL;
    void *c;

    GOOD(ccmr_resource_create(&ops, NULL, &source));
    GOOD(ccmr_tracking_create(source, NULL, &tracked));
    next_address = base;
    a = take(tracked, 1000);
    BAD(ccmr_resource_allocate(tracked, 500, 0, LEGACY, &b), CCMR_ERROR_USER);
    says("block 1 of 1000 bytes is live");
    cr_assert_null(b);
    cr_assert_eq(returned, 0u);
    GOOD(ccmr_resource_audit(tracked));
    next_address = base + 512;
    c = take(tracked, 100);
    BAD(ccmr_resource_audit(tracked), CCMR_ERROR_INVALID_ARGUMENT);
    says("overlap");
    give(tracked, c, 100);
    GOOD(ccmr_resource_audit(tracked));
    give(tracked, a, 1000);
    ccmr_resource_release(tracked);
    give(source, base, 500); /* which it never took back */
    ccmr_resource_release(source);
}

/* ---- reports ------------------------------------------------------------ */

static void start_reports(void)
{
    const ccmr_tracking_options options = {
        .size = sizeof(options),
        .traces = 1,
        .report = 1,
        .sink = note_report,
    };

    start_with(&options);
}

static void reported(const char *text)
{
    cr_assert(strstr(reports, text) != NULL, "no '%s' in: %s", text, reports);
}

static size_t lines_with(const char *text)
{
    const char *at = reports;
    size_t count = 0;

    while ((at = strstr(at, text)) != NULL) {
        count++;
        at++;
    }
    return count;
}

Test(tracking_reports, refusal, .init = start_reports, .fini = end)
{
    void *a = take(tracked, 100);

    BAD(free_as(a, 50, 0), CCMR_ERROR_INVALID_SIZE);
    cr_assert_eq(report_count, 1);
    reported("refused: a free with 50 bytes");
    reported("  allocated:\n    ");
    reported("  refused:\n    ");
    cr_assert_eq(lines_with("  freed:"), 0u);
    give(tracked, a, 100);
    BAD(free_as(a, 100, 0), CCMR_ERROR_INVALID_POINTER);
    cr_assert_eq(report_count, 2);
    cr_assert_eq(lines_with("  freed:\n    "), 1u);
}

static int has_frames(void *context, const ccmr_tracking_block *block)
{
    (void)context;
    cr_assert_gt(block->frame_count, 1u);
    cr_assert_leq(block->frame_count, (unsigned)CCMR_TRACKING_FRAMES);
    cr_assert_not_null(block->frames[block->frame_count - 1]);
    return 0;
}

Test(tracking_reports, release, .init = start_reports)
{
    void *a = take(tracked, 100);
    void *b = take(tracked, 200);

    GOOD(ccmr_tracking_outstanding(tracked, has_frames, NULL));
    GOOD(ccmr_resource_trim(tracked, 0, NULL));
    cr_assert_eq(report_count, 0, "a trim is no release");
    give(tracked, a, 100);
    ccmr_resource_release(tracked);
    cr_assert_eq(report_count, 1);
    reported("1 block of 200 bytes is live at the last release");
    reported("block 2 at");
    give(tracked, b, 200); /* the last one destroys */
    ccmr_resource_release(upstream);
    MUST(puppet_clear(&below));
    cr_assert_eq(report_count, 1);
}
