/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a text to a tree of resources to be made; see lib/stack.h for both.
 * All is checked from left to right before anything is made: here names and
 * numbers of upstreams, in lib/stack_options.c options.
 */
#include "lib/stack.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/error.h"
#include "lib/kind.h"
#include "lib/stack_scan.h"
#include "lib/text.h"

#define SYNTAX CCMR_ERROR_SYNTAX
#define INVALID CCMR_ERROR_INVALID_ARGUMENT

typedef struct parser {
    ccmr__scan scan;
    int over;
    size_t braces; /* open now */
    ccmr__stack_tree *tree;
} parser;

static ccmr_status parse_chain(parser *p, ccmr__stack_node *parent,
                               size_t depth);

/* Where a resource's name stands. */
static const char *place_of(const parser *p, const ccmr__stack_node *node)
{
    return p->scan.text + node->at;
}

static ccmr_status fail_kind(const parser *p, ccmr__word word)
{
    const char *meant = ccmr__kind_nearest(word.start, word.length);
    char names[200];
    ccmr__text known;
    const ccmr_kind *kind;
    size_t i;

    if (meant != NULL) {
        return ccmr__scan_fail(&p->scan, word.start, NULL,
                               CCMR_ERROR_UNKNOWN_NAME,
                               "unknown resource %s; did you mean '%s'?",
                               CCMR__SHOWN(word), meant);
    }
    ccmr__text_init(&known, names, sizeof(names));
    for (i = 0; (kind = ccmr__kind_at(i)) != NULL; i++) {
        ccmr__text_add(&known, "%s%s", i != 0 ? ", " : "", kind->name);
    }
    return ccmr__scan_fail(&p->scan, word.start, NULL, CCMR_ERROR_UNKNOWN_NAME,
                           "unknown resource %s; known are %s",
                           CCMR__SHOWN(word), names);
}

static void append_upstream(ccmr__stack_node *parent, ccmr__stack_node *node)
{
    if (parent->last == NULL) {
        parent->first = node;
    } else {
        parent->last->next = node;
    }
    parent->last = node;
    parent->count++;
}

static ccmr_status add_node(parser *p, ccmr__stack_node *parent,
                            const ccmr_kind *kind, const char *at,
                            ccmr__stack_node **added)
{
    ccmr__stack_tree *tree = p->tree;
    size_t count = ccmr__kind_option_count(kind);
    ccmr__stack_node *node;

    if (tree->node_count == CCMR__STACK_RESOURCES) {
        return ccmr__scan_fail(&p->scan, at, NULL, SYNTAX,
                               "the text has more than %d resources",
                               CCMR__STACK_RESOURCES);
    }
    node = calloc(1, sizeof(*node) + count * (sizeof(node->values[0]) +
                                              sizeof(node->places[0])));
    if (node == NULL) {
        return ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                          "no memory to parse a stack text");
    }
    node->kind = kind;
    node->places = (size_t *)&node->values[count];
    node->at = (size_t)(at - p->scan.text);
    node->before = tree->newest;
    tree->newest = node;
    tree->node_count++;
    if (parent == NULL) {
        tree->root = node;
    } else {
        append_upstream(parent, node);
        if (tree->most_upstreams < parent->count) {
            tree->most_upstreams = parent->count;
        }
    }
    *added = node;
    return CCMR_SUCCESS;
}

/* A resource's name and options. */
static ccmr_status parse_resource(parser *p, ccmr__stack_node *parent,
                                  size_t depth, ccmr__stack_node **made)
{
    ccmr__word word = ccmr__scan_word(&p->scan);
    const ccmr_kind *kind;
    ccmr_status status;

    if (word.length == 0) {
        return ccmr__scan_expected(&p->scan, "a resource's name");
    }
    if (*p->scan.at == '=') {
        return ccmr__scan_fail(&p->scan, word.start, NULL, SYNTAX,
                               "a resource's name is expected, not option %s",
                               CCMR__SHOWN(word));
    }
    if (depth > CCMR__STACK_DEPTH) {
        return ccmr__scan_fail(&p->scan, word.start, NULL, SYNTAX,
                               "more than %d resources are stacked on each "
                               "other",
                               CCMR__STACK_DEPTH);
    }
    kind = ccmr__kind_find_word(word.start, word.length);
    if (kind == NULL) {
        return fail_kind(p, word);
    }
    status = add_node(p, parent, kind, word.start, made);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    return ccmr__stack_parse_options(&p->scan, *made);
}

/* Another upstream begins at `at`: may it? */
static ccmr_status check_room(const parser *p, const ccmr__stack_node *node,
                              const char *at)
{
    const ccmr_kind *kind = node->kind;

    if (node->count < kind->max_upstreams) {
        return CCMR_SUCCESS;
    }
    if (kind->max_upstreams == 0) {
        return ccmr__scan_fail(&p->scan, at, kind->name, INVALID,
                               "%s takes no upstream: nothing may follow it",
                               kind->name);
    }
    return ccmr__scan_fail(
        &p->scan, at, kind->name, INVALID, "%s takes at most %zu upstream%s",
        kind->name, kind->max_upstreams, kind->max_upstreams == 1 ? "" : "s");
}

/* `count` upstreams are all that the resource gets: are they enough? */
static ccmr_status check_enough(const parser *p, const ccmr__stack_node *node,
                                size_t count)
{
    const ccmr_kind *kind = node->kind;

    if (count >= kind->min_upstreams) {
        return CCMR_SUCCESS;
    }
    if (kind->min_upstreams == 1) {
        return ccmr__scan_fail(&p->scan, place_of(p, node), kind->name,
                               INVALID,
                               "%s needs an upstream: a '|' and a resource "
                               "after it",
                               kind->name);
    }
    return ccmr__scan_fail(&p->scan, place_of(p, node), kind->name, INVALID,
                           "%s needs at least %zu upstreams, each in braces",
                           kind->name, kind->min_upstreams);
}

static ccmr_status parse_brace(parser *p, ccmr__stack_node *node, size_t depth)
{
    const char *open = p->scan.at;
    ccmr_status status;

    status = check_room(p, node, open);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    if (p->braces == CCMR__STACK_BRACES) {
        return ccmr__scan_fail(&p->scan, open, NULL, SYNTAX,
                               "more than %d braces are open",
                               CCMR__STACK_BRACES);
    }
    p->scan.at++;
    p->braces++;
    status = parse_chain(p, node, depth + 1);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    p->braces--;
    if (*p->scan.at != '}') {
        assert(*p->scan.at == '\0');
        return ccmr__scan_fail(&p->scan, open, NULL, SYNTAX,
                               "the brace is not closed");
    }
    p->scan.at++;
    ccmr__scan_blanks(&p->scan);
    return CCMR_SUCCESS;
}

/* The last resource of a chain has all that the text gives it. */
static ccmr_status finish_chain(parser *p, const ccmr__stack_node *node)
{
    const ccmr_kind *kind = node->kind;

    if (!p->over || p->braces != 0) {
        return check_enough(p, node, node->count);
    }
    if (node->count != 0) {
        return ccmr__scan_fail(&p->scan, place_of(p, node), kind->name,
                               INVALID,
                               "%s has its upstreams in braces: none can be "
                               "put under it",
                               kind->name);
    }
    if (kind->max_upstreams == 0) {
        return ccmr__scan_fail(&p->scan, place_of(p, node), kind->name,
                               INVALID,
                               "%s takes no upstream: none can be put under "
                               "it",
                               kind->name);
    }
    if (p->tree->most_upstreams == 0) {
        p->tree->most_upstreams = 1;
    }
    return check_enough(p, node, 1);
}

/* After a resource and its braces: does another one follow? */
static ccmr_status parse_bar(parser *p, const ccmr__stack_node *node,
                             int *follows)
{
    const char *bar = p->scan.at;
    ccmr_status status;

    *follows = *bar == '|';
    if (*bar == '\0' || *bar == '}') {
        return CCMR_SUCCESS;
    }
    if (*bar != '|') {
        /* Options end where no word begins: braces were before this. */
        return ccmr__scan_fail(&p->scan, bar, node->kind->name, SYNTAX,
                               "nothing but braces may follow the braces of "
                               "%s, not %s",
                               node->kind->name,
                               CCMR__SHOWN(ccmr__scan_peek(&p->scan)));
    }
    if (node->count != 0) {
        return ccmr__scan_fail(&p->scan, bar, node->kind->name, SYNTAX,
                               "upstreams stand in braces or after a '|', not "
                               "both");
    }
    status = check_room(p, node, bar);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    p->scan.at++;
    ccmr__scan_blanks(&p->scan);
    if (*p->scan.at == '\0' || *p->scan.at == '}') {
        return ccmr__scan_fail(&p->scan, bar, NULL, SYNTAX,
                               "nothing follows the '|'");
    }
    return check_enough(p, node, 1);
}

/* Resources with '|' between them, up to a '}' or the end of the text. */
static ccmr_status parse_chain(parser *p, ccmr__stack_node *parent,
                               size_t depth)
{
    ccmr__stack_node *node = NULL;
    ccmr_status status;
    int follows = 1;

    ccmr__scan_blanks(&p->scan);
    while (follows) {
        status = parse_resource(p, parent, depth, &node);
        while (status == CCMR_SUCCESS && *p->scan.at == '{') {
            status = parse_brace(p, node, depth);
        }
        if (status != CCMR_SUCCESS) {
            return status;
        }
        assert(node != NULL);
        status = parse_bar(p, node, &follows);
        if (status != CCMR_SUCCESS) {
            return status;
        }
        parent = node;
        depth++;
    }
    if (p->braces == 0) {
        p->tree->bottom = node;
    }
    return finish_chain(p, node);
}

static ccmr_status parse_text(parser *p)
{
    ccmr_status status;

    ccmr__scan_blanks(&p->scan);
    if (*p->scan.at == '\0') {
        return ccmr__scan_fail(&p->scan, p->scan.text, NULL, SYNTAX,
                               "the text is empty");
    }
    status = parse_chain(p, NULL, 1);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    if (*p->scan.at != '\0') {
        assert(*p->scan.at == '}');
        return ccmr__scan_fail(&p->scan, p->scan.at, NULL, SYNTAX,
                               "the brace was never opened");
    }
    return CCMR_SUCCESS;
}

ccmr_status ccmr__stack_parse(const char *text, int over,
                              ccmr__stack_tree *tree)
{
    parser p = {.scan = {.text = text, .at = text}, .over = over};
    size_t length = strnlen(text, CCMR__STACK_LENGTH + 1);
    ccmr_status status;

    memset(tree, 0, sizeof(*tree));
    p.tree = tree;
    if (length > CCMR__STACK_LENGTH) {
        return ccmr__scan_fail(&p.scan, text + CCMR__STACK_LENGTH, NULL,
                               SYNTAX, "the text is longer than %d characters",
                               CCMR__STACK_LENGTH);
    }
    /* Every value comes with its '=', which makes room for its end. */
    tree->strings = malloc(length + 1);
    if (tree->strings == NULL) {
        return ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                          "no memory to parse a stack text");
    }
    p.scan.strings = tree->strings;
    status = parse_text(&p);
    if (status != CCMR_SUCCESS) {
        ccmr__stack_tree_free(tree);
    }
    return status;
}

void ccmr__stack_tree_free(ccmr__stack_tree *tree)
{
    ccmr__stack_node *node = tree->newest;

    while (node != NULL) {
        ccmr__stack_node *before = node->before;

        free(node);
        node = before;
    }
    free(tree->strings);
    memset(tree, 0, sizeof(*tree));
}
