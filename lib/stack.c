/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making the stack that a text describes.
 */
#include "lib/stack.h"

#include <stdlib.h>
#include <string.h>

#include "lib/error.h"
#include "lib/kind.h"
#include "lib/process.h"

/* The node's upstreams, which were made before it. */
static size_t gather(const ccmr__stack_tree *tree,
                     const ccmr__stack_node *node, ccmr_resource *over,
                     ccmr_resource **upstreams)
{
    const ccmr__stack_node *upstream;
    size_t count = 0;

    for (upstream = node->first; upstream != NULL; upstream = upstream->next) {
        upstreams[count++] = upstream->resource;
    }
    if (over != NULL && node == tree->bottom) {
        upstreams[count++] = over;
    }
    return count;
}

/* Where a message says `name=`; NULL: nowhere. */
static const char *named_in(const char *message, const char *name)
{
    size_t length = strlen(name);
    const char *at = strstr(message, name);

    while (at != NULL &&
           (at[length] != '=' || (at != message && at[-1] != ' '))) {
        at = strstr(at + 1, name);
    }
    return at;
}

/*
 * What a refusal is about, as an offset in the text: the value that it speaks
 * of first, as `name=`, if the text gives it; else the resource.
 */
static size_t culprit(const ccmr__stack_node *node)
{
    const char *message = ccmr_last_error()->message;
    size_t count = ccmr__kind_option_count(node->kind);
    const char *first = NULL;
    size_t place = node->at;
    size_t i;

    for (i = 0; i < count; i++) {
        const char *at = named_in(message, node->kind->options[i].name);

        if (at != NULL && node->values[i].given &&
            (first == NULL || at < first)) {
            first = at;
            place = node->places[i];
        }
    }
    return place;
}

/*
 * Call the kind's create and see to it that the thread's detail tells of this
 * failure, and after a success of what it told before.
 */
static ccmr_status call_create(ccmr__stack_node *node,
                               ccmr_resource *const *upstreams, size_t count)
{
    ccmr_error_detail before = *ccmr_last_error();
    ccmr_resource *made = NULL;
    ccmr_status status;

    ccmr__error()->status = CCMR_SUCCESS;
    status =
        node->kind->create(node->kind, node->values, upstreams, count, &made);
    if (status == CCMR_SUCCESS && made != NULL) {
        *ccmr__error() = before;
        node->resource = made;
        return CCMR_SUCCESS;
    }
    if (status == CCMR_SUCCESS) {
        status = ccmr__fail(CCMR_ERROR_USER,
                            "creating %s succeeded, but gave no resource",
                            node->kind->name);
    } else if (ccmr_last_error()->status != status) {
        (void)ccmr__fail(status, "creating %s failed: %s", node->kind->name,
                         ccmr_status_text(status));
    }
    ccmr__error()->column = (int)culprit(node) + 1;
    ccmr__error_name_resource(node->kind->name);
    return status;
}

/* The resource holds its upstreams now. */
static void hand_over(ccmr__stack_node *node)
{
    ccmr__stack_node *upstream;

    for (upstream = node->first; upstream != NULL; upstream = upstream->next) {
        ccmr_resource_release(upstream->resource);
        upstream->resource = NULL;
    }
}

/* Undo what was made, and leave the detail as the failure left it. */
static void release_made(ccmr__stack_tree *tree)
{
    ccmr_error_detail failure = *ccmr_last_error();
    ccmr__stack_node *node;

    for (node = tree->newest; node != NULL; node = node->before) {
        ccmr_resource_release(node->resource);
        node->resource = NULL;
    }
    *ccmr__error() = failure;
}

static ccmr_status make(ccmr__stack_tree *tree, ccmr_resource *over,
                        ccmr_resource **resource)
{
    ccmr_resource **upstreams;
    ccmr__stack_node *node;
    ccmr_status status = CCMR_SUCCESS;

    upstreams = calloc(tree->most_upstreams + 1, sizeof(upstreams[0]));
    if (upstreams == NULL) {
        return ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                          "no memory to make a stack of %zu resources",
                          tree->node_count);
    }
    for (node = tree->newest; node != NULL; node = node->before) {
        size_t count = gather(tree, node, over, upstreams);

        status = call_create(node, upstreams, count);
        if (status != CCMR_SUCCESS) {
            release_made(tree);
            break;
        }
        hand_over(node);
    }
    free(upstreams);
    if (status == CCMR_SUCCESS) {
        *resource = tree->root->resource;
    }
    return status;
}

static ccmr_status create(const char *text, ccmr_resource *over,
                          ccmr_resource **resource)
{
    ccmr__stack_tree tree;
    ccmr_status status;

    if (text == NULL) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT, "text is NULL");
    }
    if (resource == NULL) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT, "resource is NULL");
    }
    status = ccmr__stack_parse(text, over != NULL, &tree);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    status = make(&tree, over, resource);
    ccmr__stack_tree_free(&tree);
    return status;
}

ccmr_status ccmr_stack_create(const char *text, ccmr_resource **resource)
{
    ccmr_status status = ccmr__process_check();

    if (status != CCMR_SUCCESS) {
        return status;
    }
    return create(text, NULL, resource);
}

ccmr_status ccmr_stack_create_over(const char *text, ccmr_resource *upstream,
                                   ccmr_resource **resource)
{
    ccmr_status status = ccmr__process_check();

    if (status != CCMR_SUCCESS) {
        return status;
    }
    if (upstream == NULL) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT, "upstream is NULL");
    }
    return create(text, upstream, resource);
}
