/* SPDX-License-Identifier: Apache-2.0 */
#include "resources/virtual/tree.h"

#include <stddef.h>

/* The higher one is nearer to the root. Addresses are far from random, so they
 * are mixed well; equal ones only cost balance. */
static uint64_t priority(const ccmr__tree_node *node)
{
    uint64_t mixed = (uint64_t)node->address;

    mixed = (mixed ^ (mixed >> 31)) * UINT64_C(0x9E3779B97F4A7C15);
    mixed = (mixed ^ (mixed >> 29)) * UINT64_C(0xBF58476D1CE4E5B9);
    return mixed ^ (mixed >> 32);
}

void ccmr__tree_insert(ccmr__tree *tree, ccmr__tree_node *node)
{
    const uint64_t mine = priority(node);
    ccmr__tree_node **link = &tree->root;
    ccmr__tree_node **lower = &node->child[0];
    ccmr__tree_node **higher = &node->child[1];
    ccmr__tree_node *at;

    while (*link != NULL && priority(*link) >= mine) {
        link = &(*link)->child[node->address > (*link)->address];
    }
    /* What was here is split by the address and goes under the new one. */
    at = *link;
    *link = node;
    while (at != NULL) {
        if (at->address < node->address) {
            *lower = at;
            lower = &at->child[1];
            at = *lower;
        } else {
            *higher = at;
            higher = &at->child[0];
            at = *higher;
        }
    }
    *lower = NULL;
    *higher = NULL;
}

/* Where the record hangs that is at the address; a place with NULL if none. */
static ccmr__tree_node **find_link(ccmr__tree *tree, uintptr_t address)
{
    ccmr__tree_node **link = &tree->root;

    while (*link != NULL && (*link)->address != address) {
        link = &(*link)->child[address > (*link)->address];
    }
    return link;
}

ccmr__tree_node *ccmr__tree_remove(ccmr__tree *tree, uintptr_t address)
{
    ccmr__tree_node **link = find_link(tree, address);
    ccmr__tree_node *node = *link;
    ccmr__tree_node *lower;
    ccmr__tree_node *higher;

    if (node == NULL) {
        return NULL;
    }
    lower = node->child[0];
    higher = node->child[1];
    while (lower != NULL && higher != NULL) {
        if (priority(lower) >= priority(higher)) {
            *link = lower;
            link = &lower->child[1];
            lower = *link;
        } else {
            *link = higher;
            link = &higher->child[0];
            higher = *link;
        }
    }
    *link = lower != NULL ? lower : higher;
    return node;
}

ccmr__tree_node *ccmr__tree_find(const ccmr__tree *tree, uintptr_t address)
{
    ccmr__tree_node *node = tree->root;

    while (node != NULL && node->address != address) {
        node = node->child[address > node->address];
    }
    return node;
}

ccmr__tree_node *ccmr__tree_last(const ccmr__tree *tree, uintptr_t address)
{
    ccmr__tree_node *node = tree->root;
    ccmr__tree_node *best = NULL;

    while (node != NULL) {
        if (node->address <= address) {
            best = node;
            node = node->child[1];
        } else {
            node = node->child[0];
        }
    }
    return best;
}

ccmr__tree_node *ccmr__tree_first(const ccmr__tree *tree, uintptr_t address)
{
    ccmr__tree_node *node = tree->root;
    ccmr__tree_node *best = NULL;

    while (node != NULL) {
        if (node->address >= address) {
            best = node;
            node = node->child[0];
        } else {
            node = node->child[1];
        }
    }
    return best;
}
