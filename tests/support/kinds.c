/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/kinds.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/resource.h"
#include "lib/text.h"

#define OPTIONS_MOST 6
#define UPSTREAMS_MOST 3

long dummy_live;
long dummy_made;

/* A resource that was made: its own copies of all that it was given. */
typedef struct dummy {
    const ccmr_kind *kind;
    ccmr_option_value values[OPTIONS_MOST];
    char *texts[OPTIONS_MOST]; /* what the values' texts point at */
    char *said[OPTIONS_MOST];  /* what option_get tells */
    ccmr_resource *upstreams[UPSTREAMS_MOST];
    size_t count;
} dummy;

static ccmr_status dummy_allocate(void *self, size_t bytes, size_t alignment,
                                  ccmr_stream stream, void **ptr)
{
    (void)self;
    (void)alignment;
    (void)stream;
    (void)ptr;
    return ccmr_error_set(CCMR_ERROR_NOT_SUPPORTED, bytes, "a dummy");
}

static ccmr_status dummy_deallocate(void *self, void *ptr, size_t bytes,
                                    size_t alignment, ccmr_stream stream)
{
    (void)self;
    (void)ptr;
    (void)alignment;
    (void)stream;
    return ccmr_error_set(CCMR_ERROR_NOT_SUPPORTED, bytes, "a dummy");
}

static void dummy_destroy(void *self)
{
    dummy *d = self;
    size_t i;

    for (i = 0; i < OPTIONS_MOST; i++) {
        free(d->texts[i]);
        free(d->said[i]);
    }
    for (i = 0; i < d->count; i++) {
        ccmr_resource_release(d->upstreams[i]);
    }
    free(d);
    dummy_live--;
    /* Whatever fails in here is not what the caller should hear of. */
    (void)ccmr_error_set(CCMR_ERROR_BUSY, 0, "from a destroy");
}

static ccmr_status dummy_describe(void *self, ccmr_properties *properties)
{
    const dummy *d = self;

    properties->name = d->kind->name;
    properties->device = -1;
    properties->max_alignment = 256;
    return CCMR_SUCCESS;
}

static ccmr_status dummy_upstream(void *self, size_t i,
                                  ccmr_resource **resource)
{
    const dummy *d = self;

    if (i >= d->count) {
        return CCMR_ERROR_OUT_OF_RANGE;
    }
    *resource = d->upstreams[i];
    return CCMR_SUCCESS;
}

static ccmr_status dummy_option_get(void *self, const char *name, char *text,
                                    size_t capacity, size_t *length)
{
    const dummy *d = self;
    size_t i;

    for (i = 0; d->kind->options[i].name != NULL; i++) {
        if (strcmp(d->kind->options[i].name, name) == 0) {
            return ccmr__text_give(d->said[i], text, capacity, length);
        }
    }
    return CCMR_ERROR_UNKNOWN_NAME;
}

static const ccmr_resource_ops dummy_ops = {
    .size = sizeof(dummy_ops),
    .allocate = dummy_allocate,
    .deallocate = dummy_deallocate,
    .destroy = dummy_destroy,
    .describe = dummy_describe,
    .upstream = dummy_upstream,
    .option_get = dummy_option_get,
};

static const ccmr_resource_ops mute_ops = {
    .size = sizeof(mute_ops),
    .allocate = dummy_allocate,
    .deallocate = dummy_deallocate,
    .destroy = dummy_destroy,
    .describe = dummy_describe,
    .upstream = dummy_upstream,
};

static char *copy_of(const char *text)
{
    char *copy = strdup(text);

    if (copy == NULL) {
        abort();
    }
    return copy;
}

/* A value as a stack text would spell it. */
static char *spell(const ccmr_option *option, const ccmr_option_value *value)
{
    char buffer[128];
    ccmr__text text;
    const char *name;
    size_t length;

    ccmr__text_init(&text, buffer, sizeof(buffer));
    if (!value->set) {
        return copy_of("");
    }
    switch (option->type) {
    case CCMR_OPTION_BYTES:
        if (!value->percent) {
            ccmr__text_add_bytes(&text, value->number);
            break;
        }
        return copy_of(value->text);
    case CCMR_OPTION_INTEGER:
        ccmr__text_add(&text, "%lld", (long long)value->integer);
        break;
    case CCMR_OPTION_BOOLEAN:
        ccmr__text_add(&text, "%s", value->integer != 0 ? "yes" : "no");
        break;
    case CCMR_OPTION_TEXT:
        return copy_of(value->text);
    case CCMR_OPTION_CHOICE:
        name = ccmr__names_get(option->names, (size_t)value->integer, &length);
        ccmr__text_add(&text, "%.*s", (int)length, name);
        break;
    case CCMR_OPTION_FLAGS:
        ccmr__text_add_flags(&text, option->names, value->number);
        break;
    }
    return copy_of(buffer);
}

static ccmr_status make(const ccmr_resource_ops *ops, const ccmr_kind *kind,
                        const ccmr_option_value *values,
                        ccmr_resource *const *upstreams, size_t count,
                        ccmr_resource **resource)
{
    dummy *d = calloc(1, sizeof(*d));
    ccmr_status status;
    size_t i;

    if (d == NULL) {
        abort();
    }
    assert(count <= UPSTREAMS_MOST);
    d->kind = kind;
    for (i = 0; kind->options[i].name != NULL; i++) {
        d->values[i] = values[i];
        d->said[i] = spell(&kind->options[i], &values[i]);
        if (values[i].text != NULL) {
            d->texts[i] = copy_of(values[i].text);
            d->values[i].text = d->texts[i];
        }
    }
    for (i = 0; i < count; i++) {
        d->upstreams[d->count++] = ccmr_resource_retain(upstreams[i]);
    }
    dummy_live++;
    dummy_made++;
    status = ccmr_resource_create(ops, d, resource);
    if (status != CCMR_SUCCESS) {
        dummy_destroy(d);
    }
    return status;
}

static ccmr_status dummy_create(const ccmr_kind *kind,
                                const ccmr_option_value *values,
                                ccmr_resource *const *upstreams, size_t count,
                                ccmr_resource **resource)
{
    return make(&dummy_ops, kind, values, upstreams, count, resource);
}

static ccmr_status mute_create(const ccmr_kind *kind,
                               const ccmr_option_value *values,
                               ccmr_resource *const *upstreams, size_t count,
                               ccmr_resource **resource)
{
    return make(&mute_ops, kind, values, upstreams, count, resource);
}

enum { REFUSE_SAID, REFUSE_UNSAID, REFUSE_NOTHING, REFUSE_NAMED };

static ccmr_status refuse_create(const ccmr_kind *kind,
                                 const ccmr_option_value *values,
                                 ccmr_resource *const *upstreams, size_t count,
                                 ccmr_resource **resource)
{
    (void)kind;
    (void)upstreams;
    (void)count;
    (void)resource;
    switch (values[0].integer) {
    case REFUSE_SAID:
        return ccmr_error_set(CCMR_ERROR_OUT_OF_DEVICE_MEMORY, 12345,
                              "as it was told to");
    case REFUSE_UNSAID:
        return CCMR_ERROR_OUT_OF_HOST_MEMORY;
    case REFUSE_NAMED:
        return ccmr_error_set(CCMR_ERROR_INVALID_ARGUMENT, 0,
                              "not somehow=this: how=named will not do");
    default:
        return CCMR_SUCCESS; /* and no resource */
    }
}

static const ccmr_option no_options[] = {
    {NULL, CCMR_OPTION_TEXT, NULL, NULL, NULL},
};

static const ccmr_option leaf_options[] = {
    {"bytes", CCMR_OPTION_BYTES, "1MiB", "%", "how much, or how much of all"},
    {"count", CCMR_OPTION_INTEGER, "0", NULL, "how many"},
    {"fast", CCMR_OPTION_BOOLEAN, "no", NULL, "whether to hurry"},
    {"label", CCMR_OPTION_TEXT, "", NULL, "what to call it"},
    {"access", CCMR_OPTION_CHOICE, "host", "host|stream|both",
     "who may touch it"},
    {"columns", CCMR_OPTION_FLAGS, "none", "device|alignment|chosen",
     "what else to write, which is a help so long that it does not fit into "
     "one line"},
    {NULL, CCMR_OPTION_TEXT, NULL, NULL, NULL},
};

static const ccmr_option over_options[] = {
    {"limit", CCMR_OPTION_BYTES, "", NULL, "most, or as much as there is"},
    {"note", CCMR_OPTION_TEXT, "plain", NULL, "anything"},
    {NULL, CCMR_OPTION_TEXT, NULL, NULL, NULL},
};

static const ccmr_option needy_options[] = {
    {"file", CCMR_OPTION_TEXT, NULL, NULL, "where to"},
    {NULL, CCMR_OPTION_TEXT, NULL, NULL, NULL},
};

static const ccmr_option refuse_options[] = {
    {"how", CCMR_OPTION_CHOICE, "said", "said|unsaid|nothing|named",
     "which way"},
    {NULL, CCMR_OPTION_TEXT, NULL, NULL, NULL},
};

#define KIND(title, text, table, least, most, how)                            \
    {                                                                         \
        .size = sizeof(ccmr_kind), .name = title, .help = text,               \
        .options = table, .min_upstreams = least, .max_upstreams = most,      \
        .create = how                                                         \
    }

static const ccmr_kind leaf =
    KIND("leaf", "an end", leaf_options, 0, 0, dummy_create);
static const ccmr_kind over =
    KIND("over", "one thing over another", over_options, 1, 1, dummy_create);
static const ccmr_kind needy =
    KIND("needy", "wants a file", needy_options, 1, 1, dummy_create);
static const ccmr_kind either =
    KIND("either", "one or two", no_options, 1, 2, dummy_create);
static const ccmr_kind several =
    KIND("several", "two or three", no_options, 2, 3, dummy_create);
static const ccmr_kind refuse =
    KIND("refuse", "is never made", refuse_options, 0, 1, refuse_create);
static const ccmr_kind mute =
    KIND("mute", "tells nothing", needy_options, 0, 1, mute_create);

const ccmr_kind *const dummy_kinds[] = {
    &leaf, &over, &needy, &either, &several, &refuse, &mute,
};
const size_t dummy_kind_count = sizeof(dummy_kinds) / sizeof(dummy_kinds[0]);

const ccmr_option_value *dummy_value(ccmr_resource *resource, size_t i)
{
    const dummy *d = ccmr__resource_self(resource);

    return &d->values[i];
}

void dummy_set_text(ccmr_resource *resource, size_t i, const char *text)
{
    dummy *d = ccmr__resource_self(resource);

    free(d->said[i]);
    d->said[i] = copy_of(text);
}

int dummy_register(void)
{
    size_t i;

    for (i = 0; i < dummy_kind_count; i++) {
        if (ccmr_kind_register(dummy_kinds[i]) != CCMR_SUCCESS) {
            return 0;
        }
    }
    return 1;
}
