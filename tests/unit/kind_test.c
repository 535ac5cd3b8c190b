/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kinds of resources that are added while the process runs: what is taken,
 * and what is refused, member by member.
 */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "lib/kind.h"
#include "lib/registry.h"
#include "lib/text.h"
#include "tests/support/kinds.h"

static ccmr_status create(const ccmr_kind *kind,
                          const ccmr_option_value *values,
                          ccmr_resource *const *upstreams, size_t count,
                          ccmr_resource **resource)
{
    (void)kind;
    (void)values;
    (void)upstreams;
    (void)count;
    (void)resource;
    return ccmr_error_set(CCMR_ERROR_USER, 0, "never made");
}

#define END                                                                   \
    {                                                                         \
        NULL, CCMR_OPTION_TEXT, NULL, NULL, NULL                              \
    }

static const ccmr_option good_options[] = {
    {"bytes", CCMR_OPTION_BYTES, "1GiB", "%", "h"},
    {"more", CCMR_OPTION_BYTES, NULL, "", "h"},
    {"way", CCMR_OPTION_CHOICE, "b", "a|b", "h"},
    END,
};

static ccmr_kind good(void)
{
    ccmr_kind kind = {
        .size = sizeof(kind),
        .name = "good",
        .help = "one line",
        .options = good_options,
        .min_upstreams = 1,
        .max_upstreams = 2,
        .create = create,
    };

    return kind;
}

static void refuse(const ccmr_kind *kind, ccmr_status expected,
                   const char *part)
{
    ccmr_status status = ccmr_kind_register(kind);

    cr_expect_eq(status, expected, "%s: %s", part, ccmr_status_name(status));
    cr_expect(strstr(ccmr_last_error()->message, part) != NULL, "%s",
              ccmr_last_error()->message);
    cr_expect_null(ccmr__kind_find("good"));
}

static void refuse_option(ccmr_option option, const char *part)
{
    ccmr_option options[] = {good_options[0], option, END};
    ccmr_kind kind = good();

    kind.options = options;
    refuse(&kind, CCMR_ERROR_INVALID_ARGUMENT, part);
}

Test(kind, is_found_once_added)
{
    static ccmr_kind kind;
    const ccmr_kind *found = NULL;
    size_t i;

    kind = good();
    cr_expect_null(ccmr__kind_find("good"));
    cr_assert_eq(ccmr_kind_register(&kind), CCMR_SUCCESS);
    cr_expect_eq(ccmr__kind_find("good"), &kind);
    for (i = 0; ccmr_kind_get(i, &found) == CCMR_SUCCESS; i++) {
        cr_expect_eq(ccmr__kind_at(i), found);
    }
    cr_expect_eq(found, &kind);
    cr_expect_eq(ccmr_last_error()->status, CCMR_ERROR_OUT_OF_RANGE);
    cr_expect_eq(i, ccmr__builtin_kind_count + 1);
    cr_expect_null(ccmr__kind_at(i));
    cr_expect_eq(ccmr_kind_register(&kind), CCMR_ERROR_ALREADY_EXISTS);
    cr_expect_str_eq(ccmr_last_error()->message,
                     "there is a kind 'good' already");
    cr_expect_eq(ccmr_kind_get(i, &found), CCMR_ERROR_OUT_OF_RANGE);
}

Test(kind, keep_their_order)
{
    const ccmr_kind *found = NULL;
    size_t i;

    cr_assert(dummy_register());
    for (i = 0; i < dummy_kind_count; i++) {
        cr_assert_eq(ccmr_kind_get(ccmr__builtin_kind_count + i, &found),
                     CCMR_SUCCESS);
        cr_expect_eq(found, dummy_kinds[i]);
    }
    for (i = 0; i < ccmr__builtin_kind_count; i++) {
        cr_assert_eq(ccmr_kind_get(i, &found), CCMR_SUCCESS);
        cr_expect_eq(found, ccmr__builtin_kinds[i]);
    }
}

/* Built-in kinds are not looked at when they are used: here is where. */
Test(kind, built_in_ones_are_good)
{
    size_t i;

    for (i = 0; i < ccmr__builtin_kind_count; i++) {
        cr_expect_eq(ccmr__kind_check(ccmr__builtin_kinds[i]), CCMR_SUCCESS,
                     "%s", ccmr_last_error()->message);
        cr_expect_eq(ccmr__kind_find(ccmr__builtin_kinds[i]->name),
                     ccmr__builtin_kinds[i]);
        cr_expect_eq(ccmr_kind_register(ccmr__builtin_kinds[i]),
                     CCMR_ERROR_ALREADY_EXISTS);
    }
}

Test(kind, bad_arguments)
{
    cr_expect_eq(ccmr_kind_get(0, NULL), CCMR_ERROR_INVALID_ARGUMENT);
    cr_expect_str_eq(ccmr_last_error()->message, "kind is NULL");
    refuse(NULL, CCMR_ERROR_INVALID_ARGUMENT, "kind is NULL");
}

Test(kind, bad_sizes)
{
    struct {
        ccmr_kind kind;
        char more[16];
    } newer = {.kind = good()};
    ccmr_kind kind = good();

    kind.size = 0;
    refuse(&kind, CCMR_ERROR_INVALID_STRUCT, "ccmr_kind: size 0");
    kind.size = sizeof(kind) - 1;
    refuse(&kind, CCMR_ERROR_INVALID_STRUCT, "ccmr_kind: size");
    newer.kind.size = sizeof(newer);
    newer.more[15] = 1;
    refuse(&newer.kind, CCMR_ERROR_INVALID_STRUCT, "is set, but");
}

Test(kind, of_a_newer_program)
{
    static struct {
        ccmr_kind kind;
        char more[16];
    } newer;

    newer.kind = good();
    newer.kind.size = sizeof(newer);
    cr_expect_eq(ccmr_kind_register(&newer.kind), CCMR_SUCCESS);
}

Test(kind, without_options)
{
    static ccmr_kind kind;
    ccmr_resource *resource = NULL;

    kind = good();
    kind.options = NULL;
    kind.min_upstreams = 0;
    cr_expect_eq(ccmr_kind_register(&kind), CCMR_SUCCESS);
    cr_expect_eq(ccmr_stack_create("good x=1", &resource),
                 CCMR_ERROR_UNKNOWN_NAME);
    cr_expect_eq(ccmr_stack_create("good", &resource), CCMR_ERROR_USER);
    cr_expect_str_eq(ccmr_last_error()->message, "never made");
}

Test(kind, bad_members)
{
    ccmr_kind kind = good();

    kind.name = NULL;
    refuse(&kind, CCMR_ERROR_INVALID_ARGUMENT, "name is NULL");
    kind.name = "Good";
    refuse(&kind, CCMR_ERROR_INVALID_ARGUMENT, "the kind's name is 'Good'");
    kind.name = "";
    refuse(&kind, CCMR_ERROR_INVALID_ARGUMENT, "the kind's name is ''");
    kind.name = "a_name_that_is_longer_than_31_ch";
    refuse(&kind, CCMR_ERROR_INVALID_ARGUMENT, "at most 31");

    kind = good();
    kind.help = NULL;
    refuse(&kind, CCMR_ERROR_INVALID_ARGUMENT, "kind 'good': help");
    kind.help = "";
    refuse(&kind, CCMR_ERROR_INVALID_ARGUMENT, "kind 'good': help");
    kind.help = "two\nlines";
    refuse(&kind, CCMR_ERROR_INVALID_ARGUMENT, "kind 'good': help");

    kind = good();
    kind.create = NULL;
    refuse(&kind, CCMR_ERROR_INVALID_ARGUMENT, "create is NULL");

    kind = good();
    kind.min_upstreams = 3;
    refuse(&kind, CCMR_ERROR_INVALID_ARGUMENT, "min_upstreams is above");
    kind.max_upstreams = CCMR__KIND_UPSTREAMS + 1;
    refuse(&kind, CCMR_ERROR_INVALID_ARGUMENT, "max_upstreams is above 64");
}

Test(kind, bad_options)
{
    refuse_option((ccmr_option){"Bytes", CCMR_OPTION_TEXT, "", NULL, "h"},
                  "an option's name is 'Bytes'");
    refuse_option((ccmr_option){"", CCMR_OPTION_TEXT, "", NULL, "h"},
                  "an option's name is ''");
    refuse_option((ccmr_option){"bytes", CCMR_OPTION_TEXT, "", NULL, "h"},
                  "option 'bytes': there are two of that name");
    refuse_option((ccmr_option){"x", CCMR_OPTION_TEXT, "", NULL, NULL},
                  "kind 'good': option 'x': help must be one line");
    refuse_option((ccmr_option){"x", (ccmr_option_type)77, "", NULL, "h"},
                  "option 'x': its type is unknown");
    refuse_option((ccmr_option){"x", CCMR_OPTION_TEXT, "", "a|b", "h"},
                  "option 'x': its type has no names");
    refuse_option((ccmr_option){"x", CCMR_OPTION_BYTES, "", "a", "h"},
                  "option 'x': names must be \"%\" or NULL");
}

Test(kind, bad_names_of_options)
{
    refuse_option((ccmr_option){"x", CCMR_OPTION_CHOICE, "", NULL, "h"},
                  "option 'x': its names are missing");
    refuse_option((ccmr_option){"x", CCMR_OPTION_FLAGS, "", "", "h"},
                  "option 'x': its names are missing");
    refuse_option((ccmr_option){"x", CCMR_OPTION_CHOICE, "", "a||b", "h"},
                  "cannot be written");
    refuse_option((ccmr_option){"x", CCMR_OPTION_CHOICE, "", "a|", "h"},
                  "cannot be written");
    refuse_option((ccmr_option){"x", CCMR_OPTION_CHOICE, "", "a|b c", "h"},
                  "cannot be written");
    refuse_option((ccmr_option){"x", CCMR_OPTION_CHOICE, "", "a|\"b", "h"},
                  "cannot be written");
    refuse_option((ccmr_option){"x", CCMR_OPTION_FLAGS, "", "a|b+c", "h"},
                  "cannot be written");
    refuse_option((ccmr_option){"x", CCMR_OPTION_FLAGS, "", "a|none", "h"},
                  "cannot be written");
    refuse_option((ccmr_option){"x", CCMR_OPTION_CHOICE, "", "a|b|a", "h"},
                  "it has a name twice");
}

Test(kind, bad_defaults)
{
    refuse_option((ccmr_option){"x", CCMR_OPTION_BYTES, "8G", NULL, "h"},
                  "option 'x': its default '8G' has a unit");
    refuse_option((ccmr_option){"x", CCMR_OPTION_BYTES, "50%", NULL, "h"},
                  "its default '50%' is a percentage");
    refuse_option((ccmr_option){"x", CCMR_OPTION_INTEGER, "one", NULL, "h"},
                  "its default 'one' is no whole number");
    refuse_option((ccmr_option){"x", CCMR_OPTION_BOOLEAN, "maybe", NULL, "h"},
                  "its default 'maybe' is neither yes nor no");
    refuse_option((ccmr_option){"x", CCMR_OPTION_CHOICE, "c", "a|b", "h"},
                  "its default 'c' is none of a, b");
    refuse_option((ccmr_option){"x", CCMR_OPTION_FLAGS, "a+c", "a|b", "h"},
                  "its default 'c' is none of a, b");
}

/* A table without an end is not read for ever. */
Test(kind, too_many_options)
{
    static char names[CCMR__KIND_OPTIONS + 2][8];
    static ccmr_option options[CCMR__KIND_OPTIONS + 2];
    static ccmr_kind kind;
    size_t i;

    for (i = 0; i <= CCMR__KIND_OPTIONS; i++) {
        ccmr__text text;

        ccmr__text_init(&text, names[i], sizeof(names[i]));
        ccmr__text_add(&text, "x%zu", i);
        options[i] = (ccmr_option){names[i], CCMR_OPTION_TEXT, "", NULL, "h"};
    }
    kind = good();
    kind.options = options;
    refuse(&kind, CCMR_ERROR_INVALID_ARGUMENT, "more than 64 options");
    options[CCMR__KIND_OPTIONS].name = NULL;
    cr_expect_eq(ccmr_kind_register(&kind), CCMR_SUCCESS);
}

/* FLAGS have 64 bits. */
Test(kind, too_many_names)
{
    char names[65 * 4 + 1];
    ccmr__text text;
    size_t i;

    ccmr__text_init(&text, names, sizeof(names));
    for (i = 0; i < 65; i++) {
        ccmr__text_add(&text, "%sx%02zu", i != 0 ? "|" : "", i);
    }
    refuse_option((ccmr_option){"x", CCMR_OPTION_FLAGS, "", names, "h"},
                  "it has more than 64 names");
}
