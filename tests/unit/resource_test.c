/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resource object: dispatch, counts, references, draining, and what goes
 * to upstreams where a resource has no operation of its own. No driver.
 */
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cucoremr/resource.h>
#include <cucoremr/resources/limiting.h>

#include "lib/resource.h"
#include "tests/support/puppet.h"

#define S CCMR_STREAM_LEGACY

/* An adaptor whose operations count their calls; `self` is this. */
typedef struct layer {
    ccmr_resource *upstream;
    ccmr_resource *second; /* NULL if there is one upstream */
    ccmr_resource *itself;
    void *block; /* freed in trim, where it is set */
    int destroyed;
    int trims;
    size_t kept;
    ccmr_status status; /* what the next operation answers */
    ccmr_trim_result trimmed;
} layer;

static ccmr_status layer_allocate(void *self, size_t bytes, size_t alignment,
                                  ccmr_stream stream, void **ptr)
{
    layer *l = self;

    if (l->status != CCMR_SUCCESS) {
        return l->status;
    }
    return ccmr_resource_allocate(l->upstream, bytes, alignment, stream, ptr);
}

static ccmr_status layer_deallocate(void *self, void *ptr, size_t bytes,
                                    size_t alignment, ccmr_stream stream)
{
    layer *l = self;

    if (l->status != CCMR_SUCCESS) {
        return l->status;
    }
    return ccmr_resource_deallocate(l->upstream, ptr, bytes, alignment,
                                    stream);
}

static void layer_destroy(void *self)
{
    layer *l = self;

    l->destroyed++;
    ccmr_resource_release(l->upstream);
    ccmr_resource_release(l->second);
}

static ccmr_status layer_describe(void *self, ccmr_properties *properties)
{
    layer *l = self;
    ccmr_status status =
        ccmr__describe_upstream(l->upstream, properties, "layer");

    return status == CCMR_SUCCESS ? l->status : status;
}

static ccmr_status layer_upstream(void *self, size_t i,
                                  ccmr_resource **resource)
{
    layer *l = self;

    if (i > 1 || (i == 1 && l->second == NULL)) {
        return CCMR_ERROR_OUT_OF_RANGE;
    }
    *resource = i == 0 ? l->upstream : l->second;
    return CCMR_SUCCESS;
}

static ccmr_status layer_trim(void *self, size_t keep,
                              ccmr_trim_result *result)
{
    layer *l = self;
    void *block = l->block;

    l->trims++;
    l->kept = keep;
    l->block = NULL;
    if (block != NULL) {
        cr_assert_eq(ccmr_resource_deallocate(l->itself, block, 100, 0, S),
                     CCMR_SUCCESS);
    }
    *result = l->trimmed;
    result->size = sizeof(*result);
    return l->status;
}

static const ccmr_resource_ops least = {
    .size = sizeof(ccmr_resource_ops),
    .allocate = layer_allocate,
    .deallocate = layer_deallocate,
    .destroy = layer_destroy,
    .describe = layer_describe,
    .upstream = layer_upstream,
};

static puppet leaf;
static layer top;
static ccmr_resource *resource;

static void stack(const ccmr_resource_ops *ops)
{
    puppet_init(&leaf);
    memset(&top, 0, sizeof(top));
    top.upstream = puppet_resource(&leaf);
    cr_assert_eq(ccmr_resource_create(ops, &top, &resource), CCMR_SUCCESS,
                 "%s", ccmr_last_error()->message);
    top.itself = resource;
}

static void gone(void)
{
    cr_assert_eq(top.destroyed, 1);
    cr_assert_eq(leaf.destroyed, 1);
    cr_assert_eq(puppet_clear(&leaf), 1);
}

static ccmr_stats stats(ccmr_resource *of)
{
    ccmr_stats figures = {.size = sizeof(figures)};

    cr_assert_eq(ccmr_resource_stats(of, &figures), CCMR_SUCCESS);
    return figures;
}

static void *take(size_t bytes)
{
    void *ptr = NULL;

    cr_assert_eq(ccmr_resource_allocate(resource, bytes, 0, S, &ptr),
                 CCMR_SUCCESS, "%s", ccmr_last_error()->message);
    return ptr;
}

Test(resource, is_made_and_goes)
{
    stack(&least);
    cr_assert_str_eq(ccmr_resource_name(resource), "layer");
    cr_assert(ccmr__resource_is(resource, &least));
    cr_assert_not(ccmr__resource_is(top.upstream, &least));
    cr_assert_not(ccmr__resource_is(NULL, &least));
    cr_assert_eq(ccmr__resource_self(resource), &top);
    cr_assert_eq(ccmr__resource_device(resource), -1);
    cr_assert_eq(ccmr__resource_max_alignment(resource), 4096);
    ccmr_resource_release(resource);
    gone();
}

Test(resource, creation_that_fails_takes_nothing)
{
    ccmr_resource *none = NULL;

    puppet_init(&leaf);
    memset(&top, 0, sizeof(top));
    top.upstream = puppet_resource(&leaf);
    top.status = CCMR_ERROR_IO;
    cr_assert_eq(ccmr_resource_create(&least, &top, &none), CCMR_ERROR_IO);
    cr_assert_eq(ccmr_last_error()->status, CCMR_ERROR_IO);
    cr_assert_null(none);
    cr_assert_eq(top.destroyed, 0);
    ccmr_resource_release(top.upstream);
    cr_assert_eq(puppet_clear(&leaf), 1);
}

Test(resource, counts_what_it_hands_out)
{
    void *a;
    void *b;

    stack(&least);
    a = take(100);
    b = take(200);
    cr_assert_eq(stats(resource).live_bytes, 300);
    cr_assert_eq(stats(resource).live_blocks, 2);
    cr_assert_eq(stats(top.upstream).live_bytes, 300);
    cr_assert_eq(ccmr_resource_deallocate(resource, a, 100, 0, S),
                 CCMR_SUCCESS);
    cr_assert_eq(stats(resource).live_bytes, 200);
    cr_assert_eq(stats(resource).deallocations, 1);
    cr_assert_eq(ccmr_resource_deallocate(resource, b, 200, 0, S),
                 CCMR_SUCCESS);
    cr_assert_eq(stats(resource).live_blocks, 0);
    cr_assert_eq(stats(resource).peak_live_bytes, CCMR_BYTES_UNKNOWN);
    ccmr_resource_release(resource);
    gone();
}

Test(resource, failures_count_and_change_nothing)
{
    void *none = NULL;
    void *ptr;

    stack(&least);
    top.status = CCMR_ERROR_USER;
    cr_assert_eq(ccmr_resource_allocate(resource, 100, 0, S, &none),
                 CCMR_ERROR_USER);
    cr_assert_null(none);
    cr_assert_eq(stats(resource).failures, 1);
    cr_assert_str_eq(ccmr_last_error()->resource, "layer");
    cr_assert_eq(ccmr_last_error()->requested, 100);
    top.status = CCMR_SUCCESS;
    leaf.fail_allocations = 1;
    cr_assert_eq(ccmr_resource_allocate(resource, 100, 0, S, &none),
                 CCMR_ERROR_OUT_OF_DEVICE_MEMORY);
    cr_assert_str_eq(ccmr_last_error()->resource, "puppet");
    cr_assert_eq(stats(resource).failures, 2);
    cr_assert_eq(stats(top.upstream).failures, 1);
    ptr = take(100);
    leaf.refuse_frees = 1;
    cr_assert_neq(ccmr_resource_deallocate(resource, ptr, 100, 0, S),
                  CCMR_SUCCESS);
    cr_assert_eq(stats(resource).live_bytes, 100);
    cr_assert_eq(ccmr_resource_deallocate(resource, ptr, 100, 0, S),
                 CCMR_SUCCESS);
    ccmr_resource_release(resource);
    gone();
}

/* An old failure of the same status is not taken for the new one. */
Test(resource, a_failure_without_words_gets_some)
{
    void *none = NULL;

    stack(&least);
    (void)ccmr_error_set(CCMR_ERROR_USER, 77, "something else");
    top.status = CCMR_ERROR_USER;
    cr_assert_eq(ccmr_resource_allocate(resource, 100, 0, S, &none),
                 CCMR_ERROR_USER);
    cr_assert_null(strstr(ccmr_last_error()->message, "something else"));
    cr_assert_eq(ccmr_last_error()->requested, 100);
    top.status = CCMR_SUCCESS;
    ccmr_resource_release(resource);
    gone();
}

Test(resource, drains_after_the_last_reference)
{
    void *ptr;
    void *none = NULL;

    stack(&least);
    ptr = take(100);
    (void)ccmr_resource_retain(resource);
    ccmr_resource_release(resource);
    ccmr_resource_release(resource);
    cr_assert_eq(top.destroyed, 0);
    cr_assert_eq(ccmr_resource_allocate(resource, 1, 0, S, &none),
                 CCMR_ERROR_RELEASED);
    cr_assert_not_null(strstr(ccmr_last_error()->message, "layer"));
    top.status = CCMR_ERROR_BUSY;
    cr_assert_eq(ccmr_resource_deallocate(resource, ptr, 100, 0, S),
                 CCMR_ERROR_BUSY);
    cr_assert_eq(top.destroyed, 0);
    top.status = CCMR_SUCCESS;
    cr_assert_eq(ccmr_resource_deallocate(resource, ptr, 100, 0, S),
                 CCMR_SUCCESS);
    gone();
}

/* Caches are flushed when draining starts. */
Test(resource, is_trimmed_when_it_drains)
{
    ccmr_resource_ops ops = least;
    void *ptr;

    ops.trim = layer_trim;
    stack(&ops);
    ptr = take(100);
    ccmr_resource_release(resource);
    cr_assert_eq(top.trims, 1);
    cr_assert_eq(top.kept, 0);
    cr_assert_eq(ccmr_resource_deallocate(resource, ptr, 100, 0, S),
                 CCMR_SUCCESS);
    gone();
}

/* The trim itself frees the last block: destroyed once, after it. */
Test(resource, may_end_in_its_own_trim)
{
    ccmr_resource_ops ops = least;

    ops.trim = layer_trim;
    stack(&ops);
    top.block = take(100);
    ccmr_resource_release(resource);
    cr_assert_eq(top.trims, 1);
    gone();
}

Test(resource, a_holder_keeps_it)
{
    stack(&least);
    ccmr__resource_hold(resource);
    ccmr_resource_release(resource);
    cr_assert_eq(top.destroyed, 0);
    ccmr__resource_unhold(resource);
    gone();
}

Test(resource, upstreams_are_asked_in_order)
{
    puppet other;
    ccmr_resource *found = NULL;

    stack(&least);
    puppet_init(&other);
    top.second = puppet_resource(&other);
    cr_assert_eq(ccmr_resource_upstream(resource, 0, &found), CCMR_SUCCESS);
    cr_assert_eq(found, top.upstream);
    cr_assert_eq(ccmr_resource_upstream(resource, 1, &found), CCMR_SUCCESS);
    cr_assert_eq(found, top.second);
    cr_assert_eq(ccmr_resource_upstream(resource, 2, &found),
                 CCMR_ERROR_OUT_OF_RANGE);
    cr_assert_eq(found, top.second, "an output was written");
    ccmr_resource_release(resource);
    gone();
    cr_assert_eq(puppet_clear(&other), 1);
}

Test(resource, trim_goes_down)
{
    ccmr_resource_ops ops = least;
    ccmr_trim_result result = {.size = sizeof(result)};
    layer above = {0};
    ccmr_resource *both = NULL;

    ops.trim = layer_trim;
    stack(&ops);
    above.upstream = resource;
    cr_assert_eq(ccmr_resource_create(&ops, &above, &both), CCMR_SUCCESS);
    above.trimmed.released_bytes = 10;
    above.trimmed.pending_bytes = 1;
    top.trimmed.released_bytes = 4;
    top.trimmed.pinned_bytes = 2;
    cr_assert_eq(ccmr_resource_trim(both, 5, &result), CCMR_SUCCESS);
    cr_assert_eq(above.trims, 1);
    cr_assert_eq(top.trims, 1);
    cr_assert_eq(top.kept, 5);
    cr_assert_geq(result.released_bytes, 10);
    cr_assert_eq(result.pending_bytes, 1);
    cr_assert_eq(result.pinned_bytes, 2);
    cr_assert_eq(result.size, sizeof(result));
    /* A level that fails does not spare those below, and is told. */
    above.status = CCMR_ERROR_BUSY;
    cr_assert_eq(ccmr_resource_trim(both, 0, NULL), CCMR_ERROR_BUSY);
    cr_assert_eq(top.trims, 2);
    above.status = CCMR_SUCCESS;
    /* A wrong struct is refused before anything is given back. */
    result.size = 3;
    cr_assert_eq(ccmr_resource_trim(both, 0, &result),
                 CCMR_ERROR_INVALID_STRUCT);
    cr_assert_eq(top.trims, 2);
    ccmr_resource_release(both);
    cr_assert_eq(above.destroyed, 1);
    gone();
}

static ccmr_status choose_own(void *self, const ccmr_block *block,
                              ccmr_stream requested, ccmr_stream *chosen)
{
    (void)self;
    (void)block;
    (void)requested;
    *chosen = CCMR_STREAM_PER_THREAD;
    return CCMR_SUCCESS;
}

/* The first one down the stack with the operation decides. */
Test(resource, the_free_stream_is_decided_below)
{
    ccmr_resource_ops ops = least;
    ccmr_stream a = (ccmr_stream)(uintptr_t)0x1000;
    ccmr_stream b = (ccmr_stream)(uintptr_t)0x2000;
    ccmr_block block = {sizeof(block), &block, 100, 256, a};
    ccmr_stream chosen = NULL;
    layer above = {0};
    ccmr_resource *both = NULL;

    stack(&least);
    cr_assert_eq(ccmr_resource_choose_free_stream(resource, &block,
                                                  CCMR_STREAM_UNSET, &chosen),
                 CCMR_SUCCESS);
    cr_assert_eq(chosen, a);
    cr_assert_eq(
        ccmr_resource_choose_free_stream(resource, &block, b, &chosen),
        CCMR_SUCCESS);
    cr_assert_eq(chosen, b);
    cr_assert_eq(
        ccmr_resource_choose_free_stream(resource, &block, NULL, &chosen),
        CCMR_SUCCESS);
    cr_assert_eq(chosen, CCMR_STREAM_LEGACY);
    ccmr_resource_release(resource);
    gone();

    ops.choose_free_stream = choose_own;
    stack(&ops);
    above.upstream = resource;
    cr_assert_eq(ccmr_resource_create(&least, &above, &both), CCMR_SUCCESS);
    cr_assert_eq(ccmr_resource_choose_free_stream(both, &block, b, &chosen),
                 CCMR_SUCCESS);
    cr_assert_eq(chosen, CCMR_STREAM_PER_THREAD);
    ccmr_resource_release(both);
    gone();
}

static ccmr_stream noted;

static ccmr_status note(void *self, void *ptr, ccmr_stream stream)
{
    (void)self;
    (void)ptr;
    noted = stream;
    return CCMR_SUCCESS;
}

Test(resource, uses_are_noted_by_whoever_can)
{
    ccmr_resource_ops ops = least;
    layer above = {0};
    ccmr_resource *both = NULL;
    int there;

    stack(&least);
    cr_assert_eq(ccmr_resource_note_use(resource, &there, S),
                 CCMR_ERROR_NOT_SUPPORTED);
    cr_assert_eq(ccmr_resource_hold_until_free(resource, &there, S),
                 CCMR_ERROR_NOT_SUPPORTED);
    ccmr_resource_release(resource);
    gone();

    ops.note_use = note;
    ops.hold_until_free = note;
    stack(&ops);
    cr_assert_eq(ccmr_resource_note_use(resource, &there, NULL), CCMR_SUCCESS);
    cr_assert_eq(noted, CCMR_STREAM_LEGACY, "0 was not converted");
    cr_assert_eq(ccmr_resource_hold_until_free(resource, &there,
                                               CCMR_STREAM_PER_THREAD),
                 CCMR_SUCCESS);
    cr_assert_eq(noted, CCMR_STREAM_PER_THREAD);

    /* One above may keep blocks of its own: it has to offer it itself. */
    above.upstream = ccmr_resource_retain(resource);
    cr_assert_eq(ccmr_resource_create(&least, &above, &both), CCMR_SUCCESS);
    cr_assert_eq(ccmr_resource_note_use(both, &there, S),
                 CCMR_ERROR_NOT_SUPPORTED);
    cr_assert_eq(ccmr_resource_hold_until_free(both, &there, S),
                 CCMR_ERROR_NOT_SUPPORTED);
    ccmr_resource_release(both);

    /* limiting keeps nothing. */
    cr_assert_eq(ccmr_limiting_create(resource, 1000, &both), CCMR_SUCCESS);
    ccmr_resource_release(resource);
    noted = NULL;
    cr_assert_eq(ccmr_resource_note_use(both, &there, S), CCMR_SUCCESS);
    cr_assert_eq(noted, S);
    noted = NULL;
    cr_assert_eq(ccmr_resource_hold_until_free(both, &there, S), CCMR_SUCCESS);
    cr_assert_eq(noted, S);
    ccmr_resource_release(both);
    gone();
}

static ccmr_status get_color(void *self, const char *name, char *text,
                             size_t capacity, size_t *length)
{
    (void)self;
    if (strcmp(name, "color") != 0) {
        return CCMR_ERROR_UNKNOWN_NAME;
    }
    *length = 3;
    if (capacity > 3) {
        memcpy(text, "red", 4);
    }
    return CCMR_SUCCESS;
}

Test(resource, options_without_a_setter_are_fixed)
{
    ccmr_resource_ops ops = least;
    char text[8] = "";
    size_t length = 0;

    ops.option_get = get_color;
    stack(&ops);
    cr_assert_eq(ccmr_resource_option_get(resource, "color", text, 8, &length),
                 CCMR_SUCCESS);
    cr_assert_str_eq(text, "red");
    cr_assert_eq(length, 3);
    cr_assert_eq(ccmr_resource_option_set(resource, "color", "blue"),
                 CCMR_ERROR_NOT_SUPPORTED);
    cr_assert_eq(ccmr_resource_option_set(resource, "size", "blue"),
                 CCMR_ERROR_UNKNOWN_NAME);
    ccmr_resource_release(resource);
    gone();
}

Test(resource, audits_and_predictions_are_optional)
{
    int fits = 5;

    stack(&least);
    cr_assert_eq(ccmr_resource_audit(resource), CCMR_SUCCESS);
    cr_assert_eq(ccmr_resource_would_fit(resource, 1, S, &fits),
                 CCMR_ERROR_NOT_SUPPORTED);
    cr_assert_eq(fits, 5);
    ccmr_resource_release(resource);
    gone();
}

/* J2: a block from before the adaptor came is freed through it. */
Test(resource, a_foreign_block_does_not_wrap_the_counts)
{
    void *ptr = NULL;
    ccmr_stats figures;

    stack(&least);
    cr_assert_eq(ccmr_resource_allocate(top.upstream, 100, 0, S, &ptr),
                 CCMR_SUCCESS);
    cr_assert_eq(ccmr_resource_deallocate(resource, ptr, 100, 0, S),
                 CCMR_SUCCESS);
    figures = stats(resource);
    cr_assert_eq(figures.live_bytes, 0);
    cr_assert_eq(figures.live_blocks, 0);
    ptr = take(50);
    cr_assert_leq(stats(resource).live_bytes, 50);
    cr_assert_eq(ccmr_resource_deallocate(resource, ptr, 50, 0, S),
                 CCMR_SUCCESS);
    ccmr_resource_release(resource);
    gone();
}

/* An old implementer's struct ends after `describe`. */
Test(resource, an_old_ops_struct_will_do)
{
    size_t size =
        offsetof(ccmr_resource_ops, describe) + sizeof(least.describe);
    ccmr_resource_ops *old = malloc(size);
    void *ptr;

    cr_assert_not_null(old);
    memcpy(old, &least, size);
    memcpy(old, &size, sizeof(size));
    stack(old);
    free(old);
    ptr = take(100);
    cr_assert_eq(ccmr_resource_deallocate(resource, ptr, 100, 0, S),
                 CCMR_SUCCESS);
    cr_assert_eq(ccmr_resource_trim(resource, 0, NULL), CCMR_SUCCESS);
    ccmr_resource_release(resource);
    gone();
}

static int retired;
static ccmr_status retire_status;

static ccmr_status retire(void *self, ccmr_stream stream)
{
    (void)self;
    cr_assert_eq(stream, (ccmr_stream)(uintptr_t)0x1000);
    retired++;
    return retire_status;
}

Test(resource, all_that_want_to_know_hear_of_retired_streams)
{
    ccmr_resource_ops ops = least;
    ccmr_stream stream = (ccmr_stream)(uintptr_t)0x1000;
    layer above = {0};
    ccmr_resource *both = NULL;
    void *ptr = NULL;

    ops.retire_stream = retire;
    cr_assert_eq(ccmr__resources_retire(stream), CCMR_SUCCESS);
    stack(&ops);
    above.upstream = resource;
    cr_assert_eq(ccmr_resource_create(&ops, &above, &both), CCMR_SUCCESS);
    cr_assert_eq(ccmr__resources_retire(stream), CCMR_SUCCESS);
    cr_assert_eq(retired, 2);
    /* One that fails keeps none from hearing. */
    retire_status = CCMR_ERROR_BUSY;
    cr_assert_eq(ccmr__resources_retire(stream), CCMR_ERROR_BUSY);
    cr_assert_eq(retired, 4);
    retire_status = CCMR_SUCCESS;
    /* One that drains hears: a block may be held for the stream. */
    cr_assert_eq(ccmr_resource_allocate(both, 100, 0, S, &ptr), CCMR_SUCCESS);
    ccmr_resource_release(both);
    cr_assert_eq(ccmr__resources_retire(stream), CCMR_SUCCESS);
    cr_assert_eq(retired, 6);
    cr_assert_eq(ccmr_resource_deallocate(both, ptr, 100, 0, S), CCMR_SUCCESS);
    gone();
    cr_assert_eq(ccmr__resources_retire(stream), CCMR_SUCCESS);
    cr_assert_eq(retired, 6);
}

/* Implementers that break the contract. */

static ccmr_status allocate_nothing(void *self, size_t bytes, size_t alignment,
                                    ccmr_stream stream, void **ptr)
{
    (void)self;
    (void)bytes;
    (void)alignment;
    (void)stream;
    (void)ptr;
    return CCMR_SUCCESS;
}

Test(resource, success_without_a_block_is_refused)
{
    ccmr_resource_ops ops = least;
    void *ptr = &ops;

    ops.allocate = allocate_nothing;
    stack(&ops);
    cr_assert_eq(ccmr_resource_allocate(resource, 100, 1, S, &ptr),
                 CCMR_ERROR_USER);
    cr_assert_eq(ptr, &ops);
    ccmr_resource_release(resource);
    gone();
}

static ccmr_status allocate_77(void *self, size_t bytes, size_t alignment,
                               ccmr_stream stream, void **ptr)
{
    (void)allocate_nothing(self, bytes, alignment, stream, ptr);
    return (ccmr_status)77;
}

static ccmr_status trim_77(void *self, size_t keep, ccmr_trim_result *result)
{
    (void)self;
    (void)keep;
    (void)result;
    return (ccmr_status)77;
}

Test(resource, what_is_no_status_is_not_passed_on)
{
    ccmr_resource_ops ops = least;
    void *ptr;

    ops.allocate = allocate_77;
    ops.trim = trim_77;
    stack(&ops);
    cr_assert_eq(ccmr_resource_allocate(resource, 100, 0, S, &ptr),
                 CCMR_ERROR_USER);
    cr_assert_not_null(strstr(ccmr_last_error()->message, "77"));
    cr_assert_eq(ccmr_resource_trim(resource, 0, NULL), CCMR_ERROR_USER);
    ccmr_resource_release(resource);
    gone();
}

static ccmr_status upstream_itself(void *self, size_t i,
                                   ccmr_resource **upstream)
{
    layer *l = self;

    (void)i;
    *upstream = l->itself;
    return CCMR_SUCCESS;
}

Test(resource, one_that_is_its_own_upstream_is_told)
{
    ccmr_resource_ops ops = least;
    ccmr_block block = {.size = sizeof(block), .allocation_stream = S};
    ccmr_stream chosen;

    ops.upstream = upstream_itself;
    stack(&ops);
    cr_assert_eq(ccmr_resource_trim(resource, 0, NULL),
                 CCMR_ERROR_OUT_OF_RANGE);
    cr_assert_eq(ccmr_resource_choose_free_stream(resource, &block,
                                                  CCMR_STREAM_UNSET, &chosen),
                 CCMR_ERROR_OUT_OF_RANGE);
    ccmr_resource_release(resource);
    gone();
}
