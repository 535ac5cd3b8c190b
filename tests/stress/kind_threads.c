/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kinds are added by several threads at once while others walk the list, use
 * them and print help: each name is added by exactly one, and what has been
 * seen at a place stays there.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <cucoremr/stack.h>

#include "tests/support/tap.h"

#define ADDERS 4
#define READERS 2
#define NAMES 60
#define KINDS_MOST 256

static char names[NAMES][16];
static ccmr_kind kinds[ADDERS][NAMES];
static atomic_int winners[NAMES];
static atomic_int losers[NAMES];
static atomic_int unexpected;
static atomic_int adders_left = ADDERS;
static pthread_barrier_t start;

static ccmr_status create(const ccmr_kind *kind,
                          const ccmr_option_value *values,
                          ccmr_resource *const *upstreams, size_t count,
                          ccmr_resource **resource)
{
    (void)values;
    (void)upstreams;
    (void)count;
    (void)resource;
    return ccmr_error_set(CCMR_ERROR_USER, 0, kind->name);
}

static void *add(void *argument)
{
    ccmr_kind *mine = argument;
    size_t i;

    (void)pthread_barrier_wait(&start);
    for (i = 0; i < NAMES; i++) {
        switch ((int)ccmr_kind_register(&mine[i])) {
        case CCMR_SUCCESS:
            atomic_fetch_add(&winners[i], 1);
            break;
        case CCMR_ERROR_ALREADY_EXISTS:
            atomic_fetch_add(&losers[i], 1);
            break;
        default:
            atomic_fetch_add(&unexpected, 1);
            break;
        }
    }
    atomic_fetch_sub(&adders_left, 1);
    return NULL;
}

/* A text with the newest kind reaches that kind. */
static int use(const ccmr_kind *kind)
{
    ccmr_resource *resource = NULL;
    char text[64];

    (void)snprintf(text, sizeof(text), "%s x=1", kind->name);
    return ccmr_stack_create(text, &resource) == CCMR_ERROR_USER &&
           strcmp(ccmr_last_error()->message, kind->name) == 0;
}

static void *watch(void *argument)
{
    const ccmr_kind *seen[KINDS_MOST];
    const ccmr_kind *kind = NULL;
    size_t known = 0;
    size_t built_in = *(const size_t *)argument;
    size_t i;
    int last;

    (void)pthread_barrier_wait(&start);
    do {
        last = atomic_load(&adders_left) == 0;
        for (i = 0; ccmr_kind_get(i, &kind) == CCMR_SUCCESS; i++) {
            if (i < known && seen[i] != kind) {
                atomic_fetch_add(&unexpected, 1);
            }
            if (i >= known) {
                seen[known++] = kind;
            }
        }
        if (i < known || (known > built_in && !use(seen[known - 1])) ||
            ccmr_stack_help(NULL, NULL, 0, NULL) != CCMR_SUCCESS) {
            atomic_fetch_add(&unexpected, 1);
        }
    } while (!last);
    return NULL;
}

static size_t count_kinds(void)
{
    const ccmr_kind *kind = NULL;
    size_t count = 0;

    while (ccmr_kind_get(count, &kind) == CCMR_SUCCESS) {
        count++;
    }
    return count;
}

static void prepare(void)
{
    static const ccmr_option options[] = {
        {"x", CCMR_OPTION_INTEGER, "0", NULL, "any number"},
        {NULL, CCMR_OPTION_TEXT, NULL, NULL, NULL},
    };
    size_t i;
    size_t j;

    for (i = 0; i < NAMES; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "kind_%zu", i);
        for (j = 0; j < ADDERS; j++) {
            kinds[j][i] = (ccmr_kind){
                .size = sizeof(ccmr_kind),
                .name = names[i],
                .help = "nothing",
                .options = options,
                .create = create,
            };
        }
    }
}

int main(void)
{
    pthread_t threads[ADDERS + READERS];
    size_t built_in;
    size_t i;
    int good = 1;

    prepare();
    built_in = count_kinds();
    (void)pthread_barrier_init(&start, NULL, ADDERS + READERS);
    for (i = 0; i < ADDERS + READERS; i++) {
        if (pthread_create(&threads[i], NULL, i < ADDERS ? add : watch,
                           i < ADDERS ? (void *)kinds[i]
                                      : (void *)&built_in) != 0) {
            tap_bail_out("no threads");
        }
    }
    for (i = 0; i < ADDERS + READERS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    (void)pthread_barrier_destroy(&start);
    for (i = 0; i < NAMES; i++) {
        good = good && atomic_load(&winners[i]) == 1 &&
               atomic_load(&losers[i]) == ADDERS - 1;
    }
    tap_ok(good, "each of %d names is added by one of %d threads", NAMES,
           ADDERS);
    tap_is_int(atomic_load(&unexpected), 0, "nobody sees anything unexpected");
    tap_is_size(count_kinds(), built_in + NAMES, "all are there");
    return tap_finish();
}
