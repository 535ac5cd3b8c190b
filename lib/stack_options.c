/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of one resource of a stack text.
 */
#include "lib/stack.h"

#include <string.h>

#include "lib/kind.h"
#include "lib/nearest.h"
#include "lib/stack_scan.h"
#include "lib/text.h"

#define SYNTAX CCMR_ERROR_SYNTAX
#define INVALID CCMR_ERROR_INVALID_ARGUMENT

static ccmr_status fail_option(const ccmr__scan *scan, const ccmr_kind *kind,
                               ccmr__word word)
{
    char names[150];
    ccmr__nearest nearest;
    ccmr__text known;
    size_t count = ccmr__kind_option_count(kind);
    size_t i;

    ccmr__nearest_start(&nearest, word.start, word.length);
    ccmr__text_init(&known, names, sizeof(names));
    for (i = 0; i < count; i++) {
        const char *name = kind->options[i].name;

        ccmr__nearest_offer(&nearest, name, strlen(name));
        ccmr__text_add(&known, "%s%s", i != 0 ? ", " : "", name);
    }
    if (nearest.best != NULL) {
        return ccmr__scan_fail(scan, word.start, kind->name,
                               CCMR_ERROR_UNKNOWN_NAME,
                               "unknown option %s of %s; did you mean '%s'?",
                               CCMR__SHOWN(word), kind->name, nearest.best);
    }
    return ccmr__scan_fail(
        scan, word.start, kind->name, CCMR_ERROR_UNKNOWN_NAME,
        "unknown option %s of %s; known are %s", CCMR__SHOWN(word), kind->name,
        count != 0 ? names : "none");
}

/* A word without '=' after a resource's name. */
static ccmr_status fail_word(const ccmr__scan *scan, const ccmr_kind *kind,
                             ccmr__word word)
{
    if (ccmr__kind_find_word(word.start, word.length) != NULL) {
        return ccmr__scan_fail(scan, word.start, kind->name, SYNTAX,
                               "a '|' is missing before %s",
                               CCMR__SHOWN(word));
    }
    return ccmr__scan_fail(scan, word.start, kind->name, SYNTAX,
                           "%s is no option of %s: options are written "
                           "name=value, without blanks around '='",
                           CCMR__SHOWN(word), kind->name);
}

static ccmr_status set_value(const ccmr__scan *scan, const ccmr_kind *kind,
                             const ccmr_option *option, const char *text,
                             const char *at, ccmr_option_value *value)
{
    char why[200];
    ccmr_status status = INVALID;

    if (ccmr__value_parse(option, text, value, why, sizeof(why))) {
        return CCMR_SUCCESS;
    }
    if (option->type == CCMR_OPTION_CHOICE ||
        option->type == CCMR_OPTION_FLAGS) {
        status = CCMR_ERROR_UNKNOWN_NAME;
    }
    return ccmr__scan_fail(scan, at, kind->name, status,
                           "option '%s' of %s: %s", option->name, kind->name,
                           why);
}

/* Which option a word with '=' after it names. */
static ccmr_status find_option(const ccmr__scan *scan,
                               const ccmr__stack_node *node, ccmr__word word,
                               size_t *index)
{
    const ccmr_kind *kind = node->kind;
    size_t count = ccmr__kind_option_count(kind);
    size_t i;

    for (i = 0; i < count; i++) {
        if (ccmr__word_is(word, kind->options[i].name)) {
            break;
        }
    }
    if (i == count) {
        return fail_option(scan, kind, word);
    }
    if (node->values[i].given) {
        return ccmr__scan_fail(scan, word.start, kind->name, INVALID,
                               "option '%s' of %s is given twice",
                               kind->options[i].name, kind->name);
    }
    *index = i;
    return CCMR_SUCCESS;
}

static ccmr_status parse_option(ccmr__scan *scan, ccmr__stack_node *node)
{
    const ccmr_kind *kind = node->kind;
    ccmr__word word = ccmr__scan_word(scan);
    const ccmr_option *option;
    const char *text = NULL;
    const char *at;
    ccmr_status status;
    size_t i = 0;

    if (*scan->at != '=') {
        return fail_word(scan, kind, word);
    }
    status = find_option(scan, node, word, &i);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    option = &kind->options[i];
    scan->at++;
    at = scan->at;
    if (!ccmr__scan_at_value(scan)) {
        return ccmr__scan_fail(scan, at - 1, kind->name, SYNTAX,
                               "option '%s' of %s has no value after '=' (an "
                               "empty one is \"\")",
                               option->name, kind->name);
    }
    status = ccmr__scan_value(scan, &text);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    node->places[i] = (size_t)(at - scan->text);
    return set_value(scan, kind, option, text, at, &node->values[i]);
}

/* Options that the text does not name take their defaults. */
static ccmr_status set_defaults(const ccmr__scan *scan, ccmr__stack_node *node)
{
    const ccmr_kind *kind = node->kind;
    const char *at = scan->text + node->at;
    size_t count = ccmr__kind_option_count(kind);
    ccmr_status status;
    size_t i;

    for (i = 0; i < count; i++) {
        const ccmr_option *option = &kind->options[i];
        ccmr_option_value *value = &node->values[i];

        if (value->given) {
            continue;
        }
        if (option->default_text == NULL) {
            return ccmr__scan_fail(scan, at, kind->name, INVALID,
                                   "%s needs its option '%s'", kind->name,
                                   option->name);
        }
        if (option->default_text[0] == '\0') {
            continue;
        }
        status =
            set_value(scan, kind, option, option->default_text, at, value);
        if (status != CCMR_SUCCESS) {
            return status;
        }
        value->given = 0;
    }
    return CCMR_SUCCESS;
}

ccmr_status ccmr__stack_parse_options(ccmr__scan *scan, ccmr__stack_node *node)
{
    ccmr_status status;

    for (;;) {
        ccmr__scan_blanks(scan);
        if (ccmr__scan_at_end(scan)) {
            return set_defaults(scan, node);
        }
        if (*scan->at == '"' || *scan->at == '=') {
            return ccmr__scan_expected(scan, "an option, '|' or the end");
        }
        status = parse_option(scan, node);
        if (status != CCMR_SUCCESS) {
            return status;
        }
    }
}
