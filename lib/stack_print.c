/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a live stack to its text.
 */
#include "lib/stack.h"

#include <stdlib.h>
#include <string.h>

#include "lib/error.h"
#include "lib/kind.h"
#include "lib/process.h"
#include "lib/registry.h"
#include "lib/stack_scan.h"
#include "lib/text.h"

/* The text as far as it has been put together; on one thread's stack. */
typedef struct printer {
    ccmr__text text;
    size_t resources;
} printer;

static ccmr_status print_chain(printer *p, ccmr_resource *resource,
                               size_t braces);

/*
 * What an option is now, in `buffer` or, if it is longer than that, in memory
 * of its own. NULL if the resource does not tell. Whatever the resource's own
 * code does, what comes back is a string.
 */
static ccmr_status get_option(ccmr_resource *resource, const char *name,
                              char *buffer, size_t capacity, char **value)
{
    ccmr_status status;
    size_t length;

    *value = buffer;
    for (;;) {
        length = 0;
        (*value)[0] = '\0';
        status = ccmr_resource_option_get(resource, name, *value, capacity,
                                          &length);
        (*value)[capacity - 1] = '\0';
        if (status == CCMR_SUCCESS && length < capacity) {
            return CCMR_SUCCESS;
        }
        if (*value != buffer) {
            free(*value);
        }
        *value = NULL;
        if (status == CCMR_ERROR_UNKNOWN_NAME ||
            status == CCMR_ERROR_NOT_SUPPORTED) {
            return CCMR_SUCCESS;
        }
        if (status != CCMR_SUCCESS) {
            return status;
        }
        if (length >= CCMR__STACK_LENGTH) {
            return ccmr__fail(CCMR_ERROR_OUT_OF_RANGE,
                              "option '%s' of %s is longer than %d characters",
                              name, ccmr_resource_name(resource),
                              CCMR__STACK_LENGTH);
        }
        /* It may have grown in between: then once more. */
        capacity = length + 1;
        *value = malloc(capacity);
        if (*value == NULL) {
            return ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                              "no memory to print option '%s' of %s", name,
                              ccmr_resource_name(resource));
        }
    }
}

/* Would the text without this option make the same? */
static int is_default(const ccmr_option *option, const char *text)
{
    ccmr_option_value value;
    ccmr_option_value usual;
    char why[1];

    if (option->default_text == NULL) {
        return 0;
    }
    if (strcmp(option->default_text, text) == 0) {
        return 1;
    }
    return option->type != CCMR_OPTION_TEXT &&
           ccmr__value_parse(option, text, &value, why, sizeof(why)) &&
           ccmr__value_parse(option, option->default_text, &usual, why,
                             sizeof(why)) &&
           value.percent == usual.percent && value.number == usual.number &&
           value.integer == usual.integer;
}

static void print_value(printer *p, const char *value)
{
    if (!ccmr__value_needs_quotes(value)) {
        ccmr__text_add(&p->text, "%s", value);
        return;
    }
    ccmr__text_add(&p->text, "\"");
    while (*value != '\0') {
        size_t plain = strcspn(value, "\"\\");

        ccmr__text_add(&p->text, "%.*s", (int)plain, value);
        value += plain;
        if (*value != '\0') {
            ccmr__text_add(&p->text, "\\%c", *value);
            value++;
        }
    }
    ccmr__text_add(&p->text, "\"");
}

static ccmr_status print_option(printer *p, ccmr_resource *resource,
                                const ccmr_option *option)
{
    char buffer[256];
    char *value;
    ccmr_status status;

    status =
        get_option(resource, option->name, buffer, sizeof(buffer), &value);
    if (status != CCMR_SUCCESS || value == NULL) {
        return status;
    }
    /* Only a TEXT can be written as nothing. */
    if (!is_default(option, value) &&
        (value[0] != '\0' || option->type == CCMR_OPTION_TEXT)) {
        ccmr__text_add(&p->text, " %s=", option->name);
        print_value(p, value);
    }
    if (value != buffer) {
        free(value);
    }
    return CCMR_SUCCESS;
}

static ccmr_status print_resource(printer *p, ccmr_resource *resource)
{
    const char *name = ccmr_resource_name(resource);
    const ccmr_kind *kind = ccmr__kind_find(name);
    size_t count = kind != NULL ? ccmr__kind_option_count(kind) : 0;
    ccmr_status status;
    size_t i;

    if (p->resources == CCMR__STACK_RESOURCES) {
        return ccmr__fail(CCMR_ERROR_OUT_OF_RANGE,
                          "the stack has more than %d resources, or is its "
                          "own upstream",
                          CCMR__STACK_RESOURCES);
    }
    p->resources++;
    ccmr__text_add(&p->text, "%s", name);
    for (i = 0; i < count; i++) {
        status = print_option(p, resource, &kind->options[i]);
        if (status != CCMR_SUCCESS) {
            return status;
        }
    }
    return CCMR_SUCCESS;
}

/* The i-th upstream, NULL past the last. */
static ccmr_status get_upstream(ccmr_resource *resource, size_t i,
                                ccmr_resource **upstream)
{
    ccmr_status status = ccmr_resource_upstream(resource, i, upstream);

    if (status == CCMR_ERROR_OUT_OF_RANGE ||
        status == CCMR_ERROR_NOT_SUPPORTED) {
        *upstream = NULL;
        return CCMR_SUCCESS;
    }
    return status;
}

/* Several upstreams, the first of which is known. */
static ccmr_status print_braces(printer *p, ccmr_resource *resource,
                                ccmr_resource *upstream, size_t braces)
{
    ccmr_status status = CCMR_SUCCESS;
    size_t i = 0;

    if (braces == CCMR__STACK_BRACES) {
        return ccmr__fail(CCMR_ERROR_OUT_OF_RANGE,
                          "more than %d braces would be open",
                          CCMR__STACK_BRACES);
    }
    while (status == CCMR_SUCCESS && upstream != NULL) {
        ccmr__text_add(&p->text, " { ");
        status = print_chain(p, upstream, braces + 1);
        ccmr__text_add(&p->text, " }");
        if (status == CCMR_SUCCESS) {
            i++;
            status = get_upstream(resource, i, &upstream);
        }
    }
    return status;
}

static ccmr_status print_chain(printer *p, ccmr_resource *resource,
                               size_t braces)
{
    ccmr_resource *upstream = NULL;
    ccmr_resource *second = NULL;
    ccmr_status status;

    for (;;) {
        status = print_resource(p, resource);
        if (status != CCMR_SUCCESS) {
            return status;
        }
        status = get_upstream(resource, 0, &upstream);
        if (status != CCMR_SUCCESS || upstream == NULL) {
            return status;
        }
        status = get_upstream(resource, 1, &second);
        if (status != CCMR_SUCCESS) {
            return status;
        }
        if (second != NULL) {
            return print_braces(p, resource, upstream, braces);
        }
        ccmr__text_add(&p->text, " | ");
        resource = upstream;
    }
}

/* Print into memory that grows until all fits: options may change meanwhile,
 * so that the length of one walk is not that of the next. */
static ccmr_status print_all(ccmr_resource *resource, char *text,
                             size_t capacity, size_t *length)
{
    char buffer[1024] = "";
    char *memory = NULL;
    size_t room = sizeof(buffer);
    ccmr_status status;
    printer p;

    for (;;) {
        p.resources = 0;
        ccmr__text_init(&p.text, memory != NULL ? memory : buffer, room);
        status = print_chain(&p, resource, 0);
        if (status != CCMR_SUCCESS || p.text.length < room) {
            break;
        }
        free(memory);
        room = p.text.length + 256;
        memory = malloc(room);
        if (memory == NULL) {
            return ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                              "no memory to print a stack");
        }
    }
    if (status == CCMR_SUCCESS) {
        status = ccmr__text_give(p.text.start, text, capacity, length);
    }
    free(memory);
    return status;
}

ccmr_status ccmr_stack_print(ccmr_resource *resource, char *text,
                             size_t capacity, size_t *length)
{
    ccmr_status status = ccmr__process_check();
    ccmr_error_detail before;

    if (status != CCMR_SUCCESS) {
        return status;
    }
    if (resource == NULL) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT, "resource is NULL");
    }
    if (text == NULL && capacity != 0) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT, "text is NULL");
    }
    before = *ccmr_last_error();
    status = print_all(resource, text, capacity, length);
    if (status == CCMR_SUCCESS) {
        /* Asking for what is not there has failed inside. */
        *ccmr__error() = before;
    }
    return status;
}
