/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kinds of resources by name: the built-in ones, and those added while the
 * process runs.
 *
 *   built in:  [0] [1] ... [n - 1]
 *   added:     first -> entry -> entry -> 0      newest last
 *
 * Entries are appended under a lock and never removed, so that readers walk
 * the list without one.
 */
#include "lib/registry.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "lib/error.h"
#include "lib/kind.h"
#include "lib/nearest.h"
#include "lib/process.h"

/* Immutable once it can be reached, but for `next`, which is set once, under
 * add_lock. */
typedef struct entry {
    const ccmr_kind *kind;
    _Atomic(struct entry *) next;
} entry;

static pthread_mutex_t add_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(entry *) first;

static const entry *entry_after(const _Atomic(entry *) *link)
{
    return atomic_load_explicit(link, memory_order_acquire);
}

const ccmr_kind *ccmr__kind_at(size_t i)
{
    const entry *at;

    if (i < ccmr__builtin_kind_count) {
        return ccmr__builtin_kinds[i];
    }
    i -= ccmr__builtin_kind_count;
    for (at = entry_after(&first); at != NULL && i != 0; i--) {
        at = entry_after(&at->next);
    }
    return at != NULL ? at->kind : NULL;
}

static int is_named(const ccmr_kind *kind, const char *name, size_t length)
{
    return strlen(kind->name) == length &&
           memcmp(kind->name, name, length) == 0;
}

const ccmr_kind *ccmr__kind_find_word(const char *name, size_t length)
{
    const entry *at;
    size_t i;

    for (i = 0; i < ccmr__builtin_kind_count; i++) {
        if (is_named(ccmr__builtin_kinds[i], name, length)) {
            return ccmr__builtin_kinds[i];
        }
    }
    for (at = entry_after(&first); at != NULL; at = entry_after(&at->next)) {
        if (is_named(at->kind, name, length)) {
            return at->kind;
        }
    }
    return NULL;
}

const ccmr_kind *ccmr__kind_find(const char *name)
{
    return ccmr__kind_find_word(name, strlen(name));
}

const char *ccmr__kind_nearest(const char *name, size_t length)
{
    ccmr__nearest nearest;
    const ccmr_kind *kind;
    size_t i;

    ccmr__nearest_start(&nearest, name, length);
    for (i = 0; (kind = ccmr__kind_at(i)) != NULL; i++) {
        ccmr__nearest_offer(&nearest, kind->name, strlen(kind->name));
    }
    return nearest.best;
}

size_t ccmr__kind_option_count(const ccmr_kind *kind)
{
    size_t count = 0;

    if (kind->options != NULL) {
        while (kind->options[count].name != NULL) {
            count++;
        }
    }
    return count;
}

static void append(entry *added)
{
    _Atomic(entry *) *link = &first;
    entry *at;

    while ((at = atomic_load_explicit(link, memory_order_relaxed)) != NULL) {
        link = &at->next;
    }
    atomic_store_explicit(link, added, memory_order_release);
}

ccmr_status ccmr_kind_register(const ccmr_kind *kind)
{
    ccmr_status status = ccmr__process_check();
    entry *added;
    int taken;

    if (status != CCMR_SUCCESS) {
        return status;
    }
    status = ccmr__kind_check(kind);
    if (status != CCMR_SUCCESS) {
        return status;
    }
    added = malloc(sizeof(*added));
    if (added == NULL) {
        return ccmr__fail(CCMR_ERROR_OUT_OF_HOST_MEMORY,
                          "no memory to add kind '%s'", kind->name);
    }
    added->kind = kind;
    atomic_init(&added->next, NULL);

    (void)pthread_mutex_lock(&add_lock);
    taken = ccmr__kind_find(kind->name) != NULL;
    if (!taken) {
        append(added);
    }
    (void)pthread_mutex_unlock(&add_lock);
    if (taken) {
        free(added);
        return ccmr__fail(CCMR_ERROR_ALREADY_EXISTS,
                          "there is a kind '%s' already", kind->name);
    }
    return CCMR_SUCCESS;
}

ccmr_status ccmr_kind_get(size_t i, const ccmr_kind **kind)
{
    ccmr_status status = ccmr__process_check();
    const ccmr_kind *found;

    if (status != CCMR_SUCCESS) {
        return status;
    }
    if (kind == NULL) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT, "kind is NULL");
    }
    found = ccmr__kind_at(i);
    if (found == NULL) {
        return ccmr__fail(CCMR_ERROR_OUT_OF_RANGE,
                          "there are not %zu kinds of resources", i + 1);
    }
    *kind = found;
    return CCMR_SUCCESS;
}
