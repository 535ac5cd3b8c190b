/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From resources back to texts, and help. The kinds are
 * tests/support/kinds.h's.
 */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/stack.h"
#include "tests/support/kinds.h"

static void set_up(void)
{
    cr_assert(dummy_register());
}

static void tear_down(void)
{
    cr_assert_eq(dummy_live, 0);
}

TestSuite(stack_print, .init = set_up, .fini = tear_down);
TestSuite(stack_help, .init = set_up, .fini = tear_down);

static ccmr_resource *make(const char *text)
{
    ccmr_resource *resource = NULL;

    cr_assert_eq(ccmr_stack_create(text, &resource), CCMR_SUCCESS, "%s: %s",
                 text, ccmr_last_error()->message);
    return resource;
}

static void is_printed(ccmr_resource *resource, const char *expected)
{
    size_t size = strlen(expected) + 1;
    char *text = malloc(size);
    size_t length = 0;

    cr_assert_not_null(text);
    cr_expect_eq(ccmr_stack_print(resource, text, size, &length),
                 CCMR_SUCCESS);
    cr_expect_str_eq(text, expected);
    cr_expect_eq(length, strlen(expected));
    free(text);
}

/* A text makes what prints as `expected`, which makes what prints the same. */
static void prints(const char *text, const char *expected)
{
    ccmr_resource *resource = make(text);

    is_printed(resource, expected);
    ccmr_resource_release(resource);
    resource = make(expected);
    is_printed(resource, expected);
    ccmr_resource_release(resource);
}

Test(stack_print, chains)
{
    prints("leaf", "leaf");
    prints("  over|leaf ", "over | leaf");
    prints("over { either { leaf } }", "over | either | leaf");
    prints("over limit=8GiB | needy file=run.csv | leaf count=3",
           "over limit=8GiB | needy file=run.csv | leaf count=3");
}

Test(stack_print, braces)
{
    prints("several{over|leaf}{leaf count=2}",
           "several { over | leaf } { leaf count=2 }");
    prints("over | either { several { leaf } { leaf } { leaf } } { leaf }",
           "over | either { several { leaf } { leaf } { leaf } } { leaf }");
}

Test(stack_print, defaults_are_left_out)
{
    prints("leaf bytes=1024KiB count=-0 fast=off label=\"\" access=host "
           "columns=none",
           "leaf");
    prints("over note=plain | leaf", "over | leaf");
}

Test(stack_print, every_type_of_option)
{
    prints("leaf columns=chosen+device access=both label=x fast=1 count=-3 "
           "bytes=4096",
           "leaf bytes=4KiB count=-3 fast=yes label=x access=both "
           "columns=device+chosen");
    prints("leaf bytes=12.5%", "leaf bytes=12.5%");
}

Test(stack_print, quotes_where_needed)
{
    prints("over note=\"\" | leaf", "over note=\"\" | leaf");
    prints("over note=\"x\" | leaf", "over note=x | leaf");
    prints("over note=\"x y\" | leaf", "over note=\"x y\" | leaf");
    prints("over note=\"x|y\" | leaf", "over note=\"x|y\" | leaf");
    prints("over note=\"{\" | leaf", "over note=\"{\" | leaf");
    prints("over note=\"}\" | leaf", "over note=\"}\" | leaf");
    prints("over note=\"x\ny\" | leaf", "over note=\"x\ny\" | leaf");
    prints("over note=\"=\" | leaf", "over note== | leaf");
}

Test(stack_print, quotes_and_escapes)
{
    prints("over note=\"say \\\"yes\\\"\" | leaf",
           "over note=\"say \\\"yes\\\"\" | leaf");
    prints("over note=\"a\\\\b\" | leaf", "over note=a\\b | leaf");
    prints("over note=\"a\\\\ b\" | leaf", "over note=\"a\\\\ b\" | leaf");
    prints("over note=\"\\\\\\\"\" | leaf", "over note=\"\\\\\\\"\" | leaf");
    prints("needy file=\"\" | leaf", "needy file=\"\" | leaf");
}

/* Options that nobody can be asked for, or that have no text. */
Test(stack_print, what_is_not_told)
{
    ccmr_resource *resource = make("mute file=x | leaf");

    is_printed(resource, "mute | leaf");
    ccmr_resource_release(resource);

    resource = make("leaf count=4");
    dummy_set_text(resource, 1, "");
    is_printed(resource, "leaf");
    ccmr_resource_release(resource);
}

/* A live option that changed is printed as it is now. */
Test(stack_print, live_values)
{
    ccmr_resource *resource = make("over limit=1GiB | leaf");

    dummy_set_text(resource, 0, "2GiB");
    is_printed(resource, "over limit=2GiB | leaf");
    ccmr_resource_release(resource);
}

Test(stack_print, long_values)
{
    size_t size = 40000;
    char *text = malloc(size + 32);
    ccmr_resource *resource;

    cr_assert_not_null(text);
    (void)strcpy(text, "over note=");
    memset(text + 10, 'x', size);
    (void)strcpy(text + 10 + size, " | leaf");
    prints(text, text);

    resource = make("over | leaf");
    memset(text, 'y', size + 31);
    text[size + 31] = '\0';
    dummy_set_text(resource, 1, text);
    ccmr_resource_release(resource);
    free(text);
}

Test(stack_print, values_beyond_a_text)
{
    char *text = malloc(CCMR__STACK_LENGTH + 1);
    ccmr_resource *resource = make("over | leaf");
    size_t length = 99;

    cr_assert_not_null(text);
    memset(text, 'x', CCMR__STACK_LENGTH);
    text[CCMR__STACK_LENGTH] = '\0';
    dummy_set_text(resource, 1, text);
    cr_expect_eq(ccmr_stack_print(resource, NULL, 0, &length),
                 CCMR_ERROR_OUT_OF_RANGE);
    cr_expect_eq(length, 99);
    cr_expect_str_eq(ccmr_last_error()->message,
                     "option 'note' of over is longer than 65536 characters");
    ccmr_resource_release(resource);
    free(text);
}

Test(stack_print, cut)
{
    ccmr_resource *resource = make("over | leaf");
    char text[8];
    size_t length = 0;

    memset(text, 'z', sizeof(text));
    cr_expect_eq(ccmr_stack_print(resource, text, 7, &length), CCMR_SUCCESS);
    cr_expect_eq(length, 11);
    cr_expect_str_eq(text, "over |");
    cr_expect_eq(text[7], 'z');
    cr_expect_eq(ccmr_stack_print(resource, text, 1, NULL), CCMR_SUCCESS);
    cr_expect_str_eq(text, "");
    length = 0;
    cr_expect_eq(ccmr_stack_print(resource, NULL, 0, &length), CCMR_SUCCESS);
    cr_expect_eq(length, 11);
    cr_expect_eq(ccmr_stack_print(resource, NULL, 0, NULL), CCMR_SUCCESS);
    ccmr_resource_release(resource);
}

Test(stack_print, bad_arguments)
{
    ccmr_resource *resource = make("leaf");
    char text[8] = "zzz";

    cr_expect_eq(ccmr_stack_print(NULL, text, sizeof(text), NULL),
                 CCMR_ERROR_INVALID_ARGUMENT);
    cr_expect_str_eq(ccmr_last_error()->message, "resource is NULL");
    cr_expect_eq(ccmr_stack_print(resource, NULL, 8, NULL),
                 CCMR_ERROR_INVALID_ARGUMENT);
    cr_expect_str_eq(ccmr_last_error()->message, "text is NULL");
    cr_expect_str_eq(text, "zzz");
    ccmr_resource_release(resource);
}

Test(stack_print, success_leaves_the_detail_alone)
{
    ccmr_resource *resource = make("mute file=x | leaf");
    char text[64];

    (void)ccmr_error_set(CCMR_ERROR_IO, 7, "from before");
    cr_expect_eq(ccmr_stack_print(resource, text, sizeof(text), NULL),
                 CCMR_SUCCESS);
    cr_expect_eq(ccmr_last_error()->status, CCMR_ERROR_IO);
    cr_expect_str_eq(ccmr_last_error()->message, "from before");
    ccmr_resource_release(resource);
}

/*
 * A resource that nobody registered as a kind, and that says anything as its
 * upstreams: `count` times the same.
 */
typedef struct odd {
    const char *name;
    ccmr_resource *const *upstream;
    size_t count;
} odd;

static ccmr_status odd_allocate(void *self, size_t bytes, size_t alignment,
                                ccmr_stream stream, void **ptr)
{
    (void)self;
    (void)alignment;
    (void)stream;
    (void)ptr;
    return ccmr_error_set(CCMR_ERROR_NOT_SUPPORTED, bytes, NULL);
}

static ccmr_status odd_deallocate(void *self, void *ptr, size_t bytes,
                                  size_t alignment, ccmr_stream stream)
{
    (void)self;
    (void)ptr;
    (void)alignment;
    (void)stream;
    return ccmr_error_set(CCMR_ERROR_NOT_SUPPORTED, bytes, NULL);
}

static void odd_destroy(void *self)
{
    (void)self;
}

static ccmr_status odd_describe(void *self, ccmr_properties *properties)
{
    const odd *o = self;

    properties->name = o->name;
    properties->device = -1;
    properties->max_alignment = 256;
    return CCMR_SUCCESS;
}

static ccmr_status odd_upstream(void *self, size_t i, ccmr_resource **resource)
{
    const odd *o = self;

    if (i >= o->count) {
        return CCMR_ERROR_OUT_OF_RANGE;
    }
    *resource = *o->upstream;
    return CCMR_SUCCESS;
}

static ccmr_resource *make_odd(odd *o)
{
    static const ccmr_resource_ops ops = {
        .size = sizeof(ops),
        .allocate = odd_allocate,
        .deallocate = odd_deallocate,
        .destroy = odd_destroy,
        .describe = odd_describe,
        .upstream = odd_upstream,
    };
    ccmr_resource *resource = NULL;

    cr_assert_eq(ccmr_resource_create(&ops, o, &resource), CCMR_SUCCESS);
    return resource;
}

Test(stack_print, unknown_kinds_by_name)
{
    ccmr_resource *leaf = make("leaf count=1");
    odd o = {"mine", &leaf, 1};
    ccmr_resource *resource = make_odd(&o);

    is_printed(resource, "mine | leaf count=1");
    o.count = 2;
    is_printed(resource, "mine { leaf count=1 } { leaf count=1 }");
    ccmr_resource_release(resource);
    ccmr_resource_release(leaf);
}

/* What is its own upstream comes to an end all the same. */
Test(stack_print, rings)
{
    ccmr_resource *resource = NULL;
    odd o = {"ring", &resource, 1};
    size_t length = 99;

    resource = make_odd(&o);
    cr_expect_eq(ccmr_stack_print(resource, NULL, 0, &length),
                 CCMR_ERROR_OUT_OF_RANGE);
    cr_expect(strstr(ccmr_last_error()->message, "its own upstream") != NULL);
    o.count = 2;
    cr_expect_eq(ccmr_stack_print(resource, NULL, 0, &length),
                 CCMR_ERROR_OUT_OF_RANGE);
    cr_expect(strstr(ccmr_last_error()->message, "32 braces") != NULL);
    cr_expect_eq(length, 99);
    ccmr_resource_release(resource);
}

static char *help_of(const char *kind)
{
    size_t length = 0;
    char *text;

    cr_assert_eq(ccmr_stack_help(kind, NULL, 0, &length), CCMR_SUCCESS);
    text = malloc(length + 1);
    cr_assert_not_null(text);
    cr_assert_eq(ccmr_stack_help(kind, text, length + 1, NULL), CCMR_SUCCESS);
    cr_expect_eq(strlen(text), length);
    return text;
}

Test(stack_help, one_kind)
{
    char *text = help_of("leaf");

    cr_expect_str_eq(
        text,
        "  leaf: an end (no upstream)\n"
        "    bytes=BYTES or PERCENT  how much, or how much of all (default "
        "1MiB)\n"
        "    count=INTEGER           how many (default 0)\n"
        "    fast=YES/NO             whether to hurry (default no)\n"
        "    label=TEXT              what to call it\n"
        "    access=CHOICE           who may touch it - one of host, stream, "
        "both\n"
        "                            (default host)\n"
        "    columns=FLAGS           what else to write, which is a help so "
        "long that it\n"
        "                            does not fit into one line - some of "
        "device,\n"
        "                            alignment, chosen (default none)\n");
    free(text);
    text = help_of("needy");
    cr_expect_str_eq(text, "  needy: wants a file (over 1 upstream)\n"
                           "    file=TEXT  where to (required)\n");
    free(text);
    text = help_of("several");
    cr_expect_str_eq(text,
                     "  several: two or three (over 2 to 3 upstreams)\n");
    free(text);
}

static void lines_are_short(const char *text)
{
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");

        cr_expect_leq(length, 79, "%.*s", (int)length, text);
        cr_expect(length == 0 || text[length - 1] != ' ', "%.*s", (int)length,
                  text);
        text += length;
        text += *text != '\0';
    }
}

Test(stack_help, all_kinds)
{
    char *text = help_of(NULL);
    const ccmr_kind *kind;
    char line[64];
    size_t i;

    lines_are_short(text);
    for (i = 0; ccmr_kind_get(i, &kind) == CCMR_SUCCESS; i++) {
        (void)snprintf(line, sizeof(line), "\n  %s: ", kind->name);
        cr_expect(strstr(text, line) != NULL, "%s is missing", kind->name);
    }
    cr_expect_geq(i, dummy_kind_count);
    cr_expect(strstr(text, "8G is refused") != NULL);
    free(text);
}

Test(stack_help, bad_arguments)
{
    char text[8] = "zzz";
    size_t length = 99;

    cr_expect_eq(ccmr_stack_help("laef", text, sizeof(text), &length),
                 CCMR_ERROR_UNKNOWN_NAME);
    cr_expect_str_eq(ccmr_last_error()->message,
                     "unknown resource 'laef'; did you mean 'leaf'?");
    cr_expect_eq(ccmr_stack_help("xyzzy", text, sizeof(text), &length),
                 CCMR_ERROR_UNKNOWN_NAME);
    cr_expect_eq(ccmr_stack_help("leaf", NULL, 1, &length),
                 CCMR_ERROR_INVALID_ARGUMENT);
    cr_expect_str_eq(text, "zzz");
    cr_expect_eq(length, 99);
    cr_expect_eq(ccmr_stack_help("leaf", text, sizeof(text), &length),
                 CCMR_SUCCESS);
    cr_expect_str_eq(text, "  leaf:");
}
