/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is a kind of resources fit to be used? Every member is looked at when the
 * kind is added, so that nothing has to be looked at again.
 */
#include "lib/kind.h"

#include <string.h>

#include "lib/error.h"
#include "lib/struct.h"
#include "lib/text.h"

/* FLAGS are bits of 64; as many choices are enough. */
#define NAMES_MOST 64

/* Help stands on one line. */
static int is_line(const char *text)
{
    return text != NULL && text[0] != '\0' && strpbrk(text, "\r\n") == NULL;
}

static ccmr_status refuse(const ccmr_kind *kind, const ccmr_option *option,
                          const char *what)
{
    if (option == NULL) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT, "kind '%s': %s",
                          kind->name, what);
    }
    return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                      "kind '%s': option '%s': %s", kind->name, option->name,
                      what);
}

static ccmr_status refuse_name(const char *whose, const char *name)
{
    ccmr__text shown;
    char buffer[64];

    ccmr__text_init(&shown, buffer, sizeof(buffer));
    ccmr__text_add_shown(&shown, name, strlen(name));
    return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                      "%s is %s, but must be made of a-z, 0-9 and _, at most "
                      "31, a letter first",
                      whose, buffer);
}

/* A name among others: what could not be written in a text, or would be read
 * as something else, may not be in it. */
static int name_is_writable(const ccmr_option *option, const char *name,
                            size_t length)
{
    size_t i;

    if (length == 0) {
        return 0;
    }
    for (i = 0; i < length; i++) {
        unsigned char c = (unsigned char)name[i];

        if (c <= ' ' || c == 0x7F || strchr("{}\"", name[i]) != NULL) {
            return 0;
        }
    }
    return option->type != CCMR_OPTION_FLAGS ||
           (memchr(name, '+', length) == NULL &&
            (length != 4 || memcmp(name, "none", 4) != 0));
}

static ccmr_status check_choices(const ccmr_kind *kind,
                                 const ccmr_option *option)
{
    const char *name;
    const char *other;
    size_t length;
    size_t other_length;
    size_t i;
    size_t j;

    if (option->names == NULL || option->names[0] == '\0') {
        return refuse(kind, option, "its names are missing");
    }
    for (i = 0; (name = ccmr__names_get(option->names, i, &length)) != NULL;
         i++) {
        if (i == NAMES_MOST) {
            return refuse(kind, option, "it has more than 64 names");
        }
        if (!name_is_writable(option, name, length)) {
            return refuse(kind, option, "one of its names cannot be written");
        }
        for (j = 0; j < i; j++) {
            other = ccmr__names_get(option->names, j, &other_length);
            if (other_length == length && memcmp(name, other, length) == 0) {
                return refuse(kind, option, "it has a name twice");
            }
        }
    }
    return CCMR_SUCCESS;
}

static ccmr_status check_names(const ccmr_kind *kind,
                               const ccmr_option *option)
{
    const char *names = option->names;

    switch (option->type) {
    case CCMR_OPTION_BYTES:
        if (names != NULL && names[0] != '\0' && strcmp(names, "%") != 0) {
            return refuse(kind, option, "names must be \"%\" or NULL");
        }
        return CCMR_SUCCESS;
    case CCMR_OPTION_INTEGER:
    case CCMR_OPTION_BOOLEAN:
    case CCMR_OPTION_TEXT:
        if (names != NULL && names[0] != '\0') {
            return refuse(kind, option, "its type has no names");
        }
        return CCMR_SUCCESS;
    case CCMR_OPTION_CHOICE:
    case CCMR_OPTION_FLAGS:
        return check_choices(kind, option);
    }
    return refuse(kind, option, "its type is unknown");
}

static ccmr_status check_default(const ccmr_kind *kind,
                                 const ccmr_option *option)
{
    ccmr_option_value value;
    char message[160];

    if (option->default_text == NULL || option->default_text[0] == '\0' ||
        ccmr__value_parse(option, option->default_text, &value, message,
                          sizeof(message))) {
        return CCMR_SUCCESS;
    }
    return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                      "kind '%s': option '%s': its default %s", kind->name,
                      option->name, message);
}

static ccmr_status check_option(const ccmr_kind *kind, size_t i)
{
    const ccmr_option *option = &kind->options[i];
    ccmr_status status;
    size_t j;

    if (!ccmr__name_is_good(option->name)) {
        return refuse_name("an option's name", option->name);
    }
    for (j = 0; j < i; j++) {
        if (strcmp(option->name, kind->options[j].name) == 0) {
            return refuse(kind, option, "there are two of that name");
        }
    }
    if (!is_line(option->help)) {
        return refuse(kind, option, "help must be one line");
    }
    status = check_names(kind, option);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    return check_default(kind, option);
}

static ccmr_status check_options(const ccmr_kind *kind)
{
    ccmr_status status;
    size_t i;

    if (kind->options == NULL) {
        return CCMR_SUCCESS;
    }
    for (i = 0; kind->options[i].name != NULL; i++) {
        if (i == CCMR__KIND_OPTIONS) {
            return refuse(kind, NULL,
                          "it has more than 64 options; is the end with a "
                          "NULL name missing?");
        }
        status = check_option(kind, i);
        if (status != CCMR_SUCCESS) {
            return status;
        }
    }
    return CCMR_SUCCESS;
}

ccmr_status ccmr__kind_check(const ccmr_kind *kind)
{
    ccmr_kind copy;
    ccmr_status status;

    if (kind == NULL) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT, "kind is NULL");
    }
    status = ccmr__struct_read(&copy, sizeof(copy), kind, sizeof(copy),
                               "ccmr_kind");
    if (status != CCMR_SUCCESS) {
        return status;
    }
    if (copy.name == NULL) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "the kind's name is NULL");
    }
    if (!ccmr__name_is_good(copy.name)) {
        return refuse_name("the kind's name", copy.name);
    }
    if (!is_line(copy.help)) {
        return refuse(&copy, NULL, "help must be one line");
    }
    if (copy.create == NULL) {
        return refuse(&copy, NULL, "create is NULL");
    }
    if (copy.min_upstreams > copy.max_upstreams) {
        return refuse(&copy, NULL, "min_upstreams is above max_upstreams");
    }
    if (copy.max_upstreams > CCMR__KIND_UPSTREAMS) {
        return refuse(&copy, NULL, "max_upstreams is above 64");
    }
    return check_options(&copy);
}
