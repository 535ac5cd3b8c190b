/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records by address, ordered, without memory of its own: a treap whose
 * priorities are a hash of the address. A record that was taken out can always
 * be put back.
 */
#ifndef CCMR_RESOURCES_VIRTUAL_TREE_H
#define CCMR_RESOURCES_VIRTUAL_TREE_H

#include <stdint.h>

/** First member of a record. Under the lock of whoever has the tree. */
typedef struct ccmr__tree_node {
    struct ccmr__tree_node *child[2]; /* lower, higher addresses */
    uintptr_t address;                /* no two are equal */
} ccmr__tree_node;

typedef struct ccmr__tree {
    ccmr__tree_node *root;
} ccmr__tree;

void ccmr__tree_insert(ccmr__tree *tree, ccmr__tree_node *node);

/** Take out the record at exactly that address. NULL: there is none. */
ccmr__tree_node *ccmr__tree_remove(ccmr__tree *tree, uintptr_t address);

/** The record at exactly that address, or NULL. */
ccmr__tree_node *ccmr__tree_find(const ccmr__tree *tree, uintptr_t address);

/** The last record that is not above `address`, or NULL. */
ccmr__tree_node *ccmr__tree_last(const ccmr__tree *tree, uintptr_t address);

/** The first record that is not below `address`, or NULL. */
ccmr__tree_node *ccmr__tree_first(const ccmr__tree *tree, uintptr_t address);

#endif /* CCMR_RESOURCES_VIRTUAL_TREE_H */
