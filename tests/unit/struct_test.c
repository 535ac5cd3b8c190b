/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Structs of callers older and newer than the library, on the heap at exactly
 * their length, so that a sanitizer sees a byte that is read or written
 * beyond.
 */
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cucoremr/status.h>

#include "lib/struct.h"

typedef struct first {
    size_t size;
    int a;
    int b;
} first;

typedef struct second {
    size_t size;
    int a;
    int b;
    void *c;
} second;

static void *sized(size_t size)
{
    void *made = calloc(1, size);

    cr_assert_not_null(made);
    memcpy(made, &size, sizeof(size));
    return made;
}

Test(struct_read, an_old_struct_leaves_defaults)
{
    first *given = sized(sizeof(first));
    second known = {sizeof(known), -1, -1, given};

    given->a = 7;
    given->b = 8;
    cr_assert_eq(ccmr__struct_read(&known, sizeof(known), given, sizeof(first),
                                   "first"),
                 CCMR_SUCCESS);
    cr_assert_eq(known.a, 7);
    cr_assert_eq(known.b, 8);
    cr_assert_eq(known.c, given, "the default was lost");
    cr_assert_eq(known.size, sizeof(known));
    free(given);
}

Test(struct_read, a_newer_struct_with_zeros_is_fine)
{
    size_t size = sizeof(first) + 32;
    first *given = sized(size);
    first known = {sizeof(known), 0, 0};

    given->a = 3;
    cr_assert_eq(ccmr__struct_read(&known, sizeof(known), given, sizeof(first),
                                   "first"),
                 CCMR_SUCCESS);
    cr_assert_eq(known.a, 3);
    free(given);
}

Test(struct_read, each_unknown_byte_is_refused)
{
    size_t size = sizeof(first) + 32;
    size_t i;

    for (i = sizeof(first); i < size; i++) {
        unsigned char *given = sized(size);
        first known = {sizeof(known), 5, 6};

        given[i] = 1;
        cr_assert_eq(ccmr__struct_read(&known, sizeof(known), given,
                                       sizeof(first), "first"),
                     CCMR_ERROR_INVALID_STRUCT);
        cr_assert_not_null(strstr(ccmr_last_error()->message, "first"));
        cr_assert_eq(known.a, 5, "written though refused");
        cr_assert_eq(known.b, 6);
        free(given);
    }
}

Test(struct_read, short_ones_are_refused_unread)
{
    size_t size;

    for (size = sizeof(size_t); size < sizeof(first); size++) {
        void *given = sized(size);
        first known = {sizeof(known), 5, 6};

        cr_assert_eq(ccmr__struct_read(&known, sizeof(known), given,
                                       sizeof(first), "first"),
                     CCMR_ERROR_INVALID_STRUCT);
        cr_assert_eq(known.a, 5);
        free(given);
    }
}

Test(struct_read, absurd_sizes_are_refused_unread)
{
    static const size_t sizes[] = {0, 1, 7, 65537, SIZE_MAX / 2, SIZE_MAX};
    size_t i;

    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t *given = sized(sizeof(size_t));
        first known = {sizeof(known), 5, 6};

        *given = sizes[i];
        cr_assert_eq(ccmr__struct_read(&known, sizeof(known), given,
                                       sizeof(first), "first"),
                     CCMR_ERROR_INVALID_STRUCT);
        free(given);
    }
}

Test(struct_write, to_an_old_struct_goes_what_fits)
{
    first *given = sized(sizeof(first));
    second own = {sizeof(own), 1, 2, given};

    cr_assert_eq(
        ccmr__struct_write(given, &own, sizeof(own), sizeof(first), "second"),
        CCMR_SUCCESS);
    cr_assert_eq(given->size, sizeof(first));
    cr_assert_eq(given->a, 1);
    cr_assert_eq(given->b, 2);
    free(given);
}

Test(struct_write, to_a_newer_struct_go_zeros)
{
    size_t size = sizeof(first) + 32;
    unsigned char *given = sized(size);
    first own = {sizeof(own), 1, 2};
    size_t i;

    memset(given + sizeof(size), 0x5a, size - sizeof(size));
    cr_assert_eq(
        ccmr__struct_write(given, &own, sizeof(own), sizeof(first), "first"),
        CCMR_SUCCESS);
    for (i = sizeof(first); i < size; i++) {
        cr_assert_eq(given[i], 0);
    }
    free(given);
}

Test(struct_write, refused_ones_are_not_written)
{
    size_t size;

    for (size = sizeof(size_t); size < sizeof(first); size++) {
        unsigned char *given = sized(size);
        first own = {sizeof(own), 1, 2};
        size_t i;

        cr_assert_eq(ccmr__struct_write(given, &own, sizeof(own),
                                        sizeof(first), "first"),
                     CCMR_ERROR_INVALID_STRUCT);
        for (i = sizeof(size_t); i < size; i++) {
            cr_assert_eq(given[i], 0);
        }
        free(given);
    }
}

/* A struct of a caller that put it anywhere. */
Test(struct_read, need_not_be_aligned)
{
    unsigned char *bytes = malloc(sizeof(first) + 1);
    first given = {sizeof(given), 7, 8};
    first known = {sizeof(known), 0, 0};

    cr_assert_not_null(bytes);
    memcpy(bytes + 1, &given, sizeof(given));
    cr_assert_eq(ccmr__struct_read(&known, sizeof(known), bytes + 1,
                                   sizeof(first), "first"),
                 CCMR_SUCCESS);
    cr_assert_eq(known.b, 8);
    free(bytes);
}
