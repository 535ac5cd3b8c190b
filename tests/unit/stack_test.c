/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From stack texts to resources: what is taken, and what is refused at which
 * column. The kinds are tests/support/kinds.h's.
 */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/stack.h"
#include "lib/text.h"
#include "tests/support/kinds.h"

static ccmr_resource *const unwritten = (ccmr_resource *)&dummy_live;

static void set_up(void)
{
    cr_assert(dummy_register());
}

/* Whatever a test makes it also takes down. */
static void tear_down(void)
{
    cr_assert_eq(dummy_live, 0);
}

TestSuite(stack, .init = set_up, .fini = tear_down);

static ccmr_resource *make(const char *text)
{
    ccmr_resource *resource = NULL;
    ccmr_status status = ccmr_stack_create(text, &resource);

    cr_assert_eq(status, CCMR_SUCCESS, "%s: %s at %d", text,
                 ccmr_last_error()->message, ccmr_last_error()->column);
    cr_assert_not_null(resource);
    return resource;
}

static ccmr_resource *upstream(ccmr_resource *resource, size_t i)
{
    ccmr_resource *found = NULL;

    cr_assert_eq(ccmr_resource_upstream(resource, i, &found), CCMR_SUCCESS);
    return found;
}

static void is_kind(ccmr_resource *resource, const char *name)
{
    cr_expect_str_eq(ccmr_resource_name(resource), name);
}

typedef struct bad_text {
    const char *text;
    ccmr_status status;
    int column;
    const char *part; /* of the message */
} bad_text;

/* Nothing is made, nothing written, and the detail tells where and why. */
static void check_bad(const bad_text *bad, ccmr_resource *over)
{
    const ccmr_error_detail *detail;
    ccmr_resource *resource = unwritten;
    long live = dummy_live;
    ccmr_status status;

    if (over != NULL) {
        status = ccmr_stack_create_over(bad->text, over, &resource);
    } else {
        status = ccmr_stack_create(bad->text, &resource);
    }
    detail = ccmr_last_error();
    cr_expect_eq(status, bad->status, "%s: %s", bad->text,
                 ccmr_status_name(status));
    cr_expect_eq(detail->status, bad->status);
    cr_expect_eq(detail->column, bad->column, "%s: %d", bad->text,
                 detail->column);
    cr_expect(strstr(detail->message, bad->part) != NULL, "%s: %s", bad->text,
              detail->message);
    cr_expect_eq(resource, unwritten);
    cr_expect_eq(dummy_live, live);
}

#define CHECK_BAD(table)                                                      \
    do {                                                                      \
        size_t i_;                                                            \
        for (i_ = 0; i_ < sizeof(table) / sizeof((table)[0]); i_++) {         \
            check_bad(&(table)[i_], NULL);                                    \
        }                                                                     \
    } while (0)

#define SYNTAX CCMR_ERROR_SYNTAX
#define UNKNOWN CCMR_ERROR_UNKNOWN_NAME
#define INVALID CCMR_ERROR_INVALID_ARGUMENT

Test(stack, one_resource)
{
    ccmr_resource *resource = make("leaf");

    is_kind(resource, "leaf");
    cr_expect_eq(dummy_live, 1);
    ccmr_resource_release(resource);
}

Test(stack, defaults)
{
    ccmr_resource *resource = make("over | leaf");
    const ccmr_option_value *value = dummy_value(resource, 0);

    cr_expect_eq(value->given, 0);
    cr_expect_eq(value->set, 0);
    cr_expect_null(value->text);
    value = dummy_value(resource, 1);
    cr_expect_eq(value->given, 0);
    cr_expect_eq(value->set, 1);
    cr_expect_str_eq(value->text, "plain");
    value = dummy_value(upstream(resource, 0), 0);
    cr_expect_eq(value->given, 0);
    cr_expect_eq(value->set, 1);
    cr_expect_eq(value->number, 1u << 20);
    ccmr_resource_release(resource);
}

Test(stack, every_type_of_option)
{
    ccmr_resource *resource =
        make("leaf bytes=12.5% count=-3 fast=on label=x=y access=both "
             "columns=chosen+device");

    cr_expect_eq(dummy_value(resource, 0)->given, 1);
    cr_expect_eq(dummy_value(resource, 0)->percent, 1);
    cr_expect_eq(dummy_value(resource, 0)->number, 1250);
    cr_expect_eq(dummy_value(resource, 1)->integer, -3);
    cr_expect_eq(dummy_value(resource, 2)->integer, 1);
    cr_expect_str_eq(dummy_value(resource, 3)->text, "x=y");
    cr_expect_eq(dummy_value(resource, 4)->integer, 2);
    cr_expect_eq(dummy_value(resource, 5)->number, 5);
    cr_expect_str_eq(dummy_value(resource, 5)->text, "chosen+device");
    ccmr_resource_release(resource);
}

static void label_is(const char *text, const char *label)
{
    ccmr_resource *resource = make(text);

    cr_expect_str_eq(dummy_value(resource, 3)->text, label);
    cr_expect_eq(dummy_value(resource, 3)->set, 1);
    ccmr_resource_release(resource);
}

Test(stack, quotes)
{
    label_is("leaf label=\"\"", "");
    label_is("leaf label=\"a b\"", "a b");
    label_is("leaf label=\"a | b { c }\" count=1", "a | b { c }");
}

Test(stack, quotes_and_escapes)
{
    label_is("leaf label=\"say \\\"yes\\\"\"", "say \"yes\"");
    label_is("leaf label=\"back\\\\slash\"", "back\\slash");
    label_is("leaf label=\"line\nbreak\ttab\"", "line\nbreak\ttab");
    label_is("leaf label=back\\slash", "back\\slash");
    label_is("leaf label==", "=");
    label_is("leaf label='single'", "'single'");
    label_is("leaf label=gr\xC3\xBC\xC3\x9F"
             "e",
             "gr\xC3\xBC\xC3\x9F"
             "e");
    label_is("leaf bytes=\"0.05 GiB\" label=H7", "H7");
}

Test(stack, blanks_are_free)
{
    static const char *const texts[] = {
        "over limit=8GiB|needy file=x|leaf count=1",
        "  over   limit=8GiB  |  needy file=x  |  leaf count=1  ",
        "\n\tover\r\n limit=8GiB\n|\nneedy\nfile=x\n|\nleaf\ncount=1\n",
        "over limit=\"8GiB\"|needy file=\"x\"|leaf count=\"1\"",
        "over limit=8GiB{needy file=x{leaf count=1}}",
        "over limit=8GiB { needy file=x | leaf count=1 }",
    };
    size_t i;

    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        ccmr_resource *top = make(texts[i]);
        ccmr_resource *middle = upstream(top, 0);
        ccmr_resource *bottom = upstream(middle, 0);

        is_kind(top, "over");
        cr_expect_eq(dummy_value(top, 0)->number, UINT64_C(8) << 30);
        is_kind(middle, "needy");
        cr_expect_str_eq(dummy_value(middle, 0)->text, "x");
        is_kind(bottom, "leaf");
        cr_expect_eq(dummy_value(bottom, 1)->integer, 1);
        ccmr_resource_release(top);
        cr_expect_eq(dummy_live, 0);
    }
}

Test(stack, several_upstreams)
{
    ccmr_resource *top =
        make("over | several { over | leaf count=1 } { leaf count=2 }\n"
             "{ either { leaf count=3 } { leaf count=4 } }");
    ccmr_resource *middle = upstream(top, 0);
    ccmr_resource *last = upstream(middle, 2);

    cr_expect_eq(dummy_live, 8);
    is_kind(middle, "several");
    is_kind(upstream(middle, 0), "over");
    cr_expect_eq(dummy_value(upstream(upstream(middle, 0), 0), 1)->integer, 1);
    cr_expect_eq(dummy_value(upstream(middle, 1), 1)->integer, 2);
    is_kind(last, "either");
    cr_expect_eq(dummy_value(upstream(last, 0), 1)->integer, 3);
    cr_expect_eq(dummy_value(upstream(last, 1), 1)->integer, 4);
    ccmr_resource_release(top);
}

Test(stack, success_leaves_the_detail_alone)
{
    (void)ccmr_error_set(CCMR_ERROR_IO, 7, "from before");
    ccmr_resource_release(make("leaf"));
    /* dummies leave an error behind when they go */
    (void)ccmr_error_set(CCMR_ERROR_IO, 7, "from before");
    {
        ccmr_resource *resource = make("over | over | leaf");

        cr_expect_eq(ccmr_last_error()->status, CCMR_ERROR_IO);
        cr_expect_str_eq(ccmr_last_error()->message, "from before");
        cr_expect_eq(ccmr_last_error()->requested, 7);
        ccmr_resource_release(resource);
    }
}

Test(stack, bad_arguments)
{
    ccmr_resource *resource = unwritten;
    ccmr_resource *leaf = make("leaf");

    cr_expect_eq(ccmr_stack_create(NULL, &resource), INVALID);
    cr_expect_str_eq(ccmr_last_error()->message, "text is NULL");
    cr_expect_eq(ccmr_last_error()->column, 0);
    cr_expect_eq(ccmr_stack_create("leaf", NULL), INVALID);
    cr_expect_str_eq(ccmr_last_error()->message, "resource is NULL");
    cr_expect_eq(ccmr_stack_create_over(NULL, leaf, &resource), INVALID);
    cr_expect_str_eq(ccmr_last_error()->message, "text is NULL");
    cr_expect_eq(ccmr_stack_create_over("over", NULL, &resource), INVALID);
    cr_expect_str_eq(ccmr_last_error()->message, "upstream is NULL");
    cr_expect_eq(ccmr_stack_create_over("over", leaf, NULL), INVALID);
    cr_expect_str_eq(ccmr_last_error()->message, "resource is NULL");
    cr_expect_eq(resource, unwritten);
    ccmr_resource_release(leaf);
}

Test(stack, bad_structure)
{
    static const bad_text bad[] = {
        {"", SYNTAX, 1, "the text is empty"},
        {" \n\t", SYNTAX, 1, "the text is empty"},
        {"|", SYNTAX, 1, "a resource's name is expected, not '|'"},
        {"| leaf", SYNTAX, 1, "a resource's name is expected, not '|'"},
        {"{ leaf }", SYNTAX, 1, "a resource's name is expected, not '{'"},
        {"}", SYNTAX, 1, "a resource's name is expected, not '}'"},
        {"=", SYNTAX, 1, "a resource's name is expected, not '='"},
        {"\"leaf\"", SYNTAX, 1, "a resource's name is expected, not '\"'"},
        {"count=1 leaf", SYNTAX, 1, "is expected, not option 'count'"},
        {"over |", SYNTAX, 6, "nothing follows the '|'"},
        {"over |  \n", SYNTAX, 6, "nothing follows the '|'"},
        {"over || leaf", SYNTAX, 7, "a resource's name is expected, not '|'"},
        {"over { leaf", SYNTAX, 6, "the brace is not closed"},
        {"over { over { leaf }", SYNTAX, 6, "the brace is not closed"},
        {"over {", SYNTAX, 7, "is expected, but the text ends"},
        {"over { }", SYNTAX, 8, "a resource's name is expected, not '}'"},
        {"over { over | }", SYNTAX, 13, "nothing follows the '|'"},
        {"leaf }", SYNTAX, 6, "the brace was never opened"},
        {"over { leaf } }", SYNTAX, 15, "the brace was never opened"},
        {"over { leaf } | leaf", SYNTAX, 15, "in braces or after a '|'"},
        {"either { leaf } note=x", SYNTAX, 17, "braces of either, not 'note'"},
        {"either { leaf } \"x\"", SYNTAX, 17, "not '\"'"},
        {"over leaf", SYNTAX, 6, "a '|' is missing before 'leaf'"},
        {"over note", SYNTAX, 6, "'note' is no option of over: options are"},
    };

    CHECK_BAD(bad);
}

Test(stack, bad_words)
{
    static const bad_text bad[] = {
        {"over note =x | leaf", SYNTAX, 6, "without blanks around '='"},
        {"over note= x | leaf", SYNTAX, 10, "'note' of over has no value"},
        {"over note=|leaf", SYNTAX, 10, "has no value after '='"},
        {"over note=", SYNTAX, 10, "has no value after '='"},
        {"over =x | leaf", SYNTAX, 6, "'|' or the end is expected, not '='"},
        {"over \"note\"=x", SYNTAX, 6, "is expected, not '\"'"},
        {"over note=\"x | leaf", SYNTAX, 11, "the quote is not closed"},
        {"over note=\"x\\", SYNTAX, 13, "'\\' stands only before"},
        {"over note=\"a\\nb\" | leaf", SYNTAX, 13, "'\\' stands only before"},
        {"over note=\"x\"y | leaf", SYNTAX, 14, "a blank is missing"},
        {"over note=\"x\"\"y\" | leaf", SYNTAX, 14, "a blank is missing"},
        {"over note=x\"y\" | leaf", SYNTAX, 12, "must stand in quotes"},
        {"laef", UNKNOWN, 1, "unknown resource 'laef'; did you mean 'leaf'?"},
        {"over | Leaf", UNKNOWN, 8, "did you mean 'leaf'?"},
        {"over | leaf;", UNKNOWN, 8, "unknown resource 'leaf;'; did you"},
        {"xyzzy", UNKNOWN, 1, "unknown resource 'xyzzy'; known are "},
        {"over | \x01\x02", UNKNOWN, 8, "unknown resource '\?\?'; known"},
        {"8GiB", UNKNOWN, 1, "unknown resource '8GiB'"},
        {"over { oevr | leaf }", UNKNOWN, 8, "did you mean 'over'?"},
    };

    CHECK_BAD(bad);
}

Test(stack, bad_options)
{
    static const bad_text bad[] = {
        {"leaf byts=1", UNKNOWN, 6,
         "unknown option 'byts' of leaf; did you mean 'bytes'?"},
        {"leaf BYTES=1", UNKNOWN, 6, "did you mean 'bytes'?"},
        {"leaf umbrella=1", UNKNOWN, 6,
         "known are bytes, count, fast, label, access, columns"},
        {"either x=1 { leaf }", UNKNOWN, 8,
         "unknown option 'x' of either; known are none"},
        {"leaf count=1 fast=no count=1", INVALID, 22,
         "option 'count' of leaf is given twice"},
        {"leaf label=\"\" label=x", INVALID, 15, "is given twice"},
        {"leaf bytes=many", INVALID, 12,
         "option 'bytes' of leaf: 'many' is no number of bytes"},
        {"leaf bytes=8G", INVALID, 12, "means two things: write 'GiB'"},
        {"leaf bytes=\"\"", INVALID, 12, "'' is no number of bytes"},
        {"leaf bytes=101%", INVALID, 12, "more than 100%"},
        {"over limit=50% | leaf", INVALID, 12, "percentage"},
        {"leaf bytes=99999999999999999999", INVALID, 12, "too large"},
        {"leaf count=\"1 \"", INVALID, 12, "no whole number"},
        {"leaf count=99999999999999999999", INVALID, 12, "too large"},
        {"leaf fast=maybe", INVALID, 11, "neither yes nor no"},
        {"leaf access=hots", UNKNOWN, 13,
         "option 'access' of leaf: 'hots' is unknown; did you mean 'host'?"},
        {"leaf columns=device+colour", UNKNOWN, 14, "'colour' is none of"},
        {"needy | leaf", INVALID, 1, "needy needs its option 'file'"},
        {"over | needy | leaf", INVALID, 8, "needy needs its option 'file'"},
    };

    CHECK_BAD(bad);
}

Test(stack, bad_numbers_of_upstreams)
{
    static const bad_text bad[] = {
        {"over", INVALID, 1, "over needs an upstream"},
        {"leaf | leaf", INVALID, 6, "leaf takes no upstream"},
        {"leaf { leaf }", INVALID, 6, "leaf takes no upstream"},
        {"over | leaf | leaf", INVALID, 13, "leaf takes no upstream"},
        {"over | over", INVALID, 8, "over needs an upstream"},
        {"over { over }", INVALID, 8, "over needs an upstream"},
        {"over { leaf } { leaf }", INVALID, 15, "at most 1 upstream"},
        {"either { leaf } { leaf } { leaf }", INVALID, 26,
         "either takes at most 2 upstreams"},
        {"several", INVALID, 1,
         "several needs at least 2 upstreams, each in braces"},
        {"several | leaf", INVALID, 1, "needs at least 2 upstreams"},
        {"several { leaf }", INVALID, 1, "needs at least 2 upstreams"},
    };

    CHECK_BAD(bad);
}

/* The leftmost fault is told, though others follow. */
Test(stack, first_fault_first)
{
    static const bad_text bad[] = {
        {"ovr nte=\" | leaf }", UNKNOWN, 1, "did you mean 'over'?"},
        {"over nte=\" | leaf }", UNKNOWN, 6, "did you mean 'note'?"},
        {"over note=\" | leaf }", SYNTAX, 11, "not closed"},
        {"leaf count=x | leaf |", INVALID, 12, "no whole number"},
    };

    CHECK_BAD(bad);
}

Test(stack, resource_is_named)
{
    ccmr_resource *resource = unwritten;

    cr_expect_eq(ccmr_stack_create("over | leaf count=x", &resource), INVALID);
    cr_expect_str_eq(ccmr_last_error()->resource, "leaf");
    cr_expect_eq(ccmr_stack_create("over |", &resource), SYNTAX);
    cr_expect_str_eq(ccmr_last_error()->resource, "");
}

/* What was made before is released, upstreams and neighbours alike, though
 * their going sets errors of its own. */
Test(stack, creation_fails)
{
    static const bad_text bad[] = {
        {"refuse", CCMR_ERROR_OUT_OF_DEVICE_MEMORY, 1, "as it was told to"},
        {"over | refuse", CCMR_ERROR_OUT_OF_DEVICE_MEMORY, 8, "as it was"},
        {"over | refuse | over | leaf", CCMR_ERROR_OUT_OF_DEVICE_MEMORY, 8,
         "as it was told to"},
        {"several { over | leaf } { refuse | leaf } { either { leaf }"
         "{ leaf } }",
         CCMR_ERROR_OUT_OF_DEVICE_MEMORY, 27, "as it was told to"},
        {"over | refuse how=unsaid | leaf", CCMR_ERROR_OUT_OF_HOST_MEMORY, 8,
         "creating refuse failed: out of host memory"},
        {"over | refuse how=named | leaf", CCMR_ERROR_INVALID_ARGUMENT, 19,
         "how=named will not do"},
        {"over | refuse how=nothing | leaf", CCMR_ERROR_USER, 8,
         "creating refuse succeeded, but gave no resource"},
    };

    CHECK_BAD(bad);
}

Test(stack, detail_of_a_creation_stays)
{
    ccmr_resource *resource = unwritten;

    cr_expect_eq(ccmr_stack_create("over | refuse | leaf", &resource),
                 CCMR_ERROR_OUT_OF_DEVICE_MEMORY);
    cr_expect_eq(ccmr_last_error()->requested, 12345);
    cr_expect_str_eq(ccmr_last_error()->resource, "refuse");
    /* A failure of before that has the same status is not taken for it. */
    (void)ccmr_error_set(CCMR_ERROR_OUT_OF_HOST_MEMORY, 7, "from before");
    cr_expect_eq(ccmr_stack_create("refuse how=unsaid", &resource),
                 CCMR_ERROR_OUT_OF_HOST_MEMORY);
    cr_expect_eq(ccmr_last_error()->requested, 0);
    cr_expect_str_eq(ccmr_last_error()->resource, "refuse");
}

/* A text with something n times over: before * n, middle, after * n. */
static char *repeat(const char *before, const char *middle, const char *after,
                    size_t n)
{
    size_t size = n * (strlen(before) + strlen(after)) + strlen(middle) + 1;
    char *made = malloc(size);
    ccmr__text text;
    size_t i;

    cr_assert_not_null(made);
    ccmr__text_init(&text, made, size);
    for (i = 0; i < n; i++) {
        ccmr__text_add(&text, "%s", before);
    }
    ccmr__text_add(&text, "%s", middle);
    for (i = 0; i < n; i++) {
        ccmr__text_add(&text, "%s", after);
    }
    return made;
}

static void check_repeated(const char *before, const char *after, size_t n,
                           int column, const char *part)
{
    char *text = repeat(before, "leaf", after, n);
    bad_text bad = {text, SYNTAX, column, part};

    check_bad(&bad, NULL);
    free(text);
}

static void make_repeated(const char *before, const char *after, size_t n)
{
    char *text = repeat(before, "leaf", after, n);
    ccmr_resource *resource = make(text);

    cr_expect_eq((size_t)dummy_live, n + 1);
    ccmr_resource_release(resource);
    free(text);
}

Test(stack, bounds_of_nesting)
{
    make_repeated("over{", "}", CCMR__STACK_BRACES);
    check_repeated("over{", "}", CCMR__STACK_BRACES + 1,
                   CCMR__STACK_BRACES * 5 + 5, "32 braces are open");
    check_repeated("over{", "}", 10000, CCMR__STACK_BRACES * 5 + 5,
                   "32 braces are open");
    check_repeated("over{", "", 10, 50, "the brace is not closed");
}

Test(stack, bounds_of_depth)
{
    make_repeated("over|", "", CCMR__STACK_DEPTH - 1);
    check_repeated("over|", "", CCMR__STACK_DEPTH, CCMR__STACK_DEPTH * 5 + 1,
                   "64 resources are stacked");
    check_repeated("over|", "", 13000, CCMR__STACK_DEPTH * 5 + 1,
                   "64 resources are stacked");
    /* Braces and bars count together. */
    check_repeated("over|over{", "}", CCMR__STACK_BRACES,
                   CCMR__STACK_DEPTH * 5 + 1, "64 resources are stacked");
}

Test(stack, bound_of_resources)
{
    char *text = strdup("leaf");
    char *again = NULL;
    size_t i;

    /* Every level twice as wide as the one over it: 2^10 - 1, and more. */
    for (i = 0; i < 9; i++) {
        cr_assert_geq(asprintf(&again, "either{%s}{%s}", text, text), 0);
        free(text);
        text = again;
    }
    {
        ccmr_resource *resource = make(text);

        cr_expect_eq(dummy_live, 1023);
        ccmr_resource_release(resource);
    }
    cr_assert_geq(asprintf(&again, "either{%s}{leaf}", text), 0);
    {
        bad_text bad = {again, SYNTAX, (int)strlen(again) - 4,
                        "more than 1024 resources"};

        check_bad(&bad, NULL);
    }
    free(again);
    free(text);
}

Test(stack, bound_of_length)
{
    size_t size = CCMR__STACK_LENGTH + 2;
    char *text = malloc(size);
    bad_text bad = {text, SYNTAX, CCMR__STACK_LENGTH + 1,
                    "longer than 65536 characters"};

    cr_assert_not_null(text);
    memset(text, ' ', size);
    memcpy(text, "leaf", 4);
    text[size - 1] = '\0';
    check_bad(&bad, NULL);
    text[size - 2] = '\0';
    ccmr_resource_release(make(text));
    free(text);
}

Test(stack, over_a_resource)
{
    ccmr_resource *leaf = make("leaf count=7");
    ccmr_resource *top = NULL;

    cr_assert_eq(ccmr_stack_create_over("needy file=x | over", leaf, &top),
                 CCMR_SUCCESS);
    is_kind(top, "needy");
    is_kind(upstream(top, 0), "over");
    cr_expect_eq(upstream(upstream(top, 0), 0), leaf);
    /* It holds what it stands on. */
    ccmr_resource_release(leaf);
    cr_expect_eq(dummy_live, 3);
    cr_expect_eq(dummy_value(upstream(upstream(top, 0), 0), 1)->integer, 7);
    ccmr_resource_release(top);
    cr_expect_eq(dummy_live, 0);
}

Test(stack, over_a_resource_one)
{
    ccmr_resource *leaf = make("leaf");
    ccmr_resource *top = NULL;

    cr_assert_eq(ccmr_stack_create_over("either", leaf, &top), CCMR_SUCCESS);
    cr_expect_eq(upstream(top, 0), leaf);
    ccmr_resource_release(top);
    cr_expect_eq(dummy_live, 1);
    ccmr_resource_release(leaf);
}

Test(stack, over_a_resource_refused)
{
    static const bad_text bad[] = {
        {"", SYNTAX, 1, "the text is empty"},
        {"leaf", INVALID, 1, "leaf takes no upstream: none can be put under"},
        {"over | leaf", INVALID, 8, "leaf takes no upstream"},
        {"over |", SYNTAX, 6, "nothing follows the '|'"},
        {"either { leaf }", INVALID, 1, "has its upstreams in braces"},
        {"over | either { leaf }", INVALID, 8, "has its upstreams in braces"},
        {"over { over }", INVALID, 8, "over needs an upstream"},
        {"several", INVALID, 1, "needs at least 2 upstreams"},
        {"over | refuse", CCMR_ERROR_OUT_OF_DEVICE_MEMORY, 8, "as it was"},
    };
    ccmr_resource *leaf = make("leaf");
    size_t i;

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        check_bad(&bad[i], leaf);
    }
    /* Nothing of all that has taken a reference. */
    ccmr_resource_release(leaf);
}
