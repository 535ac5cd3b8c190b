/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stack text, parsed.
 *
 * The grammar; blanks and line ends stand freely between its parts, but not
 * around '=':
 *
 *   stack    = { resource "|" } resource
 *   resource = name { option } { "{" stack "}" }
 *   option   = name "=" value
 *   value    = bare | '"' { character | '\"' | '\\' } '"'
 *
 * Only the last resource of a stack has braces, one pair for each upstream.
 * A bare value holds neither blanks nor any of | { } ".
 */
#ifndef CCMR_LIB_STACK_H
#define CCMR_LIB_STACK_H

#include <cucoremr/stack.h>

struct ccmr__scan;

/*
 * Limits of a text. They bound the parser's recursion (braces) and that of
 * the resources that are made, which call each other downwards (depth).
 */
#define CCMR__STACK_LENGTH 65536
#define CCMR__STACK_BRACES 32
#define CCMR__STACK_DEPTH 64
#define CCMR__STACK_RESOURCES 1024

/*
 * One resource of a text. Nodes are a tree by `first` and `next`, and a list
 * in the order of the text, last one first, by `before`: whoever walks the
 * list meets every upstream before what is stacked on it.
 *
 *   failover { pool | device_plain } { managed_plain }
 *
 *   before:  managed_plain -> device_plain -> pool -> failover -> 0
 *
 *   failover -first-> pool -next-> managed_plain
 *                      | first
 *                      device_plain
 *
 * Seen by one thread alone.
 */
typedef struct ccmr__stack_node {
    const ccmr_kind *kind;
    size_t at; /* offset of its name in the text */
    struct ccmr__stack_node *before;
    struct ccmr__stack_node *first; /* upstreams */
    struct ccmr__stack_node *last;
    struct ccmr__stack_node *next;
    size_t count;               /* of upstreams, without the one given */
    ccmr_resource *resource;    /* once made, until it is handed over */
    size_t *places;             /* offsets of the values that are given */
    ccmr_option_value values[]; /* in the order of the kind's options */
} ccmr__stack_node;

typedef struct ccmr__stack_tree {
    ccmr__stack_node *root;   /* leftmost */
    ccmr__stack_node *bottom; /* the outer stack's last: what is given goes
                                 under it */
    ccmr__stack_node *newest; /* of the list */
    size_t node_count;
    size_t most_upstreams; /* of any node, with the one given */
    char *strings;         /* values without quotes */
} ccmr__stack_tree;

/**
 * Parse a text. `over`: an upstream is given for the last resource. On an
 * error the detail has the column, and `tree` needs no freeing.
 */
ccmr_status ccmr__stack_parse(const char *text, int over,
                              ccmr__stack_tree *tree);

/**
 * The options after a resource's name, up to the end of the text or any of
 * | { }. What is not given takes its default.
 */
ccmr_status ccmr__stack_parse_options(struct ccmr__scan *scan,
                                      ccmr__stack_node *node);

/** Free the tree, not the resources. */
void ccmr__stack_tree_free(ccmr__stack_tree *tree);

#endif /* CCMR_LIB_STACK_H */
