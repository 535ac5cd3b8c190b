/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/budget_text.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cucoremr/stack.h>

#include "lib/error.h"

#define PLACE "{budget}"
#define MAX_PARTS 64

/* One resource of a text. */
typedef struct part {
    const char *first;
    const char *end; /* its '|', or the text's end */
} part;

static ccmr_status no_memory(void)
{
    return ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY, "out of host memory");
}

/* The number in every place that is marked for it. */
static ccmr_status fill_places(const char *text, uint64_t bytes, char **made)
{
    const char *place;
    size_t length = 0;
    FILE *to = open_memstream(made, &length);

    if (to == NULL) {
        return no_memory();
    }
    while ((place = strstr(text, PLACE)) != NULL) {
        (void)fprintf(to, "%.*s%" PRIu64, (int)(place - text), text, bytes);
        text = place + strlen(PLACE);
    }
    (void)fputs(text, to);
    return fclose(to) == 0 ? CCMR_SUCCESS : no_memory();
}

/* Past a value in quotes, or a single character. */
static const char *step(const char *at)
{
    if (*at++ != '"') {
        return at;
    }
    while (*at != '\0' && *at != '"') {
        at += at[0] == '\\' && at[1] != '\0' ? 2 : 1;
    }
    return *at != '\0' ? at + 1 : at;
}

/* Take a text apart; 0 where it is not one line of resources. */
static size_t take_apart(const char *text, part parts[MAX_PARTS])
{
    size_t count = 0;

    parts[0].first = text;
    for (; *text != '\0'; text = step(text)) {
        if (*text == '{' || *text == '}') {
            return 0;
        }
        if (*text == '|') {
            parts[count++].end = text;
            if (count == MAX_PARTS) {
                return 0;
            }
            parts[count].first = text + 1;
        }
    }
    parts[count++].end = text;
    return count;
}

static const ccmr_kind *kind_of(const part *of)
{
    const char *name = of->first;
    const ccmr_kind *kind;
    size_t length = 0;

    while (name < of->end && isspace((unsigned char)*name)) {
        name++;
    }
    while (name + length < of->end && !isspace((unsigned char)name[length])) {
        length++;
    }
    for (size_t i = 0; ccmr_kind_get(i, &kind) == CCMR_SUCCESS; i++) {
        if (strlen(kind->name) == length &&
            strncmp(kind->name, name, length) == 0) {
            return kind;
        }
    }
    return NULL;
}

static bool kind_has(const ccmr_kind *kind, const char *name)
{
    const ccmr_option *option = kind != NULL ? kind->options : NULL;

    for (; option != NULL && option->name != NULL; option++) {
        if (option->type == CCMR_OPTION_BYTES &&
            strcmp(option->name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether a resource's own text gives an option. */
static bool part_gives(const part *in, const char *name)
{
    size_t length = strlen(name);
    const char *at = in->first;

    while (at < in->end) {
        bool begins = at == in->first || isspace((unsigned char)at[-1]);

        if (begins && (size_t)(in->end - at) > length &&
            strncmp(at, name, length) == 0 && at[length] == '=') {
            return true;
        }
        at = step(at);
    }
    return false;
}

/* The text with some more of it at one place. */
static ccmr_status insert(const char *text, const char *place,
                          const char *format, uint64_t bytes, char **made)
{
    char more[128];

    (void)snprintf(more, sizeof(more), "%s%" PRIu64 " %s", format, bytes,
                   *place != '\0' && *place != '|' ? "| " : "");
    if (asprintf(made, "%.*s%s%s", (int)(place - text), text, more, place) <
        0) {
        return no_memory();
    }
    return CCMR_SUCCESS;
}

static ccmr_status refuse_given(const char *name)
{
    return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                      "the text says %s= itself: write %s=" PLACE
                      " where the budget belongs",
                      name, name);
}

/* Tell a resource by an option that bounds what it reserves. */
static ccmr_status tell(const char *text, const part *whom, const char *name,
                        const char *format, uint64_t bytes, char **made)
{
    if (part_gives(whom, name)) {
        return refuse_given(name);
    }
    return insert(text, whom->end, format, bytes, made);
}

ccmr_status budget_text(const char *text, uint64_t bytes, char **made)
{
    part parts[MAX_PARTS];
    const ccmr_kind *last;
    size_t count;

    if (strstr(text, PLACE) != NULL) {
        return fill_places(text, bytes, made);
    }
    count = take_apart(text, parts);
    if (count == 0) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT,
                          "where a budget belongs in a text with braces must "
                          "be said: write " PLACE " there, as in 'limiting "
                          "bytes=" PLACE " | ...'");
    }
    for (size_t i = count; i > 0; i--) {
        if (kind_has(kind_of(&parts[i - 1]), "hard")) {
            return tell(text, &parts[i - 1], "hard", " hard=", bytes, made);
        }
    }
    last = kind_of(&parts[count - 1]);
    if (last != NULL && strcmp(last->name, "device_pool") == 0) {
        return tell(text, &parts[count - 1], "maximum",
                    part_gives(&parts[count - 1], "own") ? " maximum="
                                                         : " own=yes maximum=",
                    bytes, made);
    }
    return insert(text, parts[count - 1].first, " limiting bytes=", bytes,
                  made);
}
