/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_pool: operations, options, and the kind for stack texts.
 */
#include "resources/device_pool/device_pool.h"

#include "lib/struct.h"
#include "lib/text.h"
#include "resources/common.h"
#include "resources/registry.h"

static ccmr_status device_pool_describe(void *object,
                                        ccmr_properties *properties)
{
    const ccmr__device_pool *self = object;
    const ccmr_properties mine = {
        .size = sizeof(mine),
        .name = ccmr__kind_device_pool.name,
        .device = self->device->ordinal,
        .device_accessible = 1,
        .max_alignment = CCMR__DEVICE_POOL_ALIGNMENT,
        .free_stream = CCMR_FREE_ON_ALLOCATION_STREAM,
        .capture = CCMR_CAPTURE_REFUSED,
        .access = CCMR_ACCESS_STREAM,
        .handle_kinds = self->made.handle_kinds,
    };

    return ccmr__struct_write(properties, &mine, sizeof(mine), sizeof(size_t),
                              "ccmr_properties");
}

enum {
    OPTION_DEVICE,
    OPTION_OWN,
    OPTION_INITIAL,
    OPTION_MAXIMUM,
    OPTION_RELEASE_THRESHOLD,
    OPTION_HANDLE_KINDS,
    OPTION_REUSE,
    OPTION_GUARD,
    OPTION_STREAMS
};

#define HANDLE_KIND_NAMES "posix_fd|win32|win32_kmt|fabric"

enum { REUSE_FOLLOW = 0x1, REUSE_OPPORTUNISTIC = 0x2, REUSE_INTERNAL = 0x4 };
#define REUSE_NAMES "follow_events|opportunistic|internal"

static const ccmr_option device_pool_options[] = {
    [OPTION_DEVICE] = CCMR__OPTION_DEVICE,
    [OPTION_OWN] = {"own", CCMR_OPTION_BOOLEAN, "no", NULL,
                    "an own pool, instead of the device's default pool"},
    [OPTION_INITIAL] = {"initial", CCMR_OPTION_BYTES, "0", "%",
                        "own: bytes reserved at creation"},
    [OPTION_MAXIMUM] = {"maximum", CCMR_OPTION_BYTES, "0", "%",
                        "own: most bytes reserved, rounded up to 32 MiB; 0: "
                        "what the device has"},
    [OPTION_RELEASE_THRESHOLD] = {"release_threshold", CCMR_OPTION_BYTES, "",
                                  "%",
                                  "bytes kept at a synchronisation; unset: "
                                  "all; a default pool's is only raised"},
    [OPTION_HANDLE_KINDS] = {"handle_kinds", CCMR_OPTION_FLAGS, "none",
                             HANDLE_KIND_NAMES,
                             "own: how memory can be exported"},
    [OPTION_REUSE] = {"reuse", CCMR_OPTION_FLAGS,
                      "follow_events+opportunistic+internal", REUSE_NAMES,
                      "own: how the driver may reuse memory of another "
                      "stream"},
    [OPTION_GUARD] = {"guard", CCMR_OPTION_BOOLEAN, "yes", NULL,
                      "keep captures in global mode, on any thread, from harm "
                      "by each call (18 ns)"},
    [OPTION_STREAMS] = CCMR__OPTION_STREAMS,
    {NULL, CCMR_OPTION_TEXT, NULL, NULL, NULL},
};

/* What is not set needs no text: the default says the same. */
static void add_threshold(const ccmr__device_pool *self, ccmr__text *text)
{
    if (self->made.release_threshold_set) {
        ccmr__text_add_bytes(text, self->made.release_threshold);
    }
}

static void add_reuse(const ccmr__device_pool *self, ccmr__text *text)
{
    const ccmr_device_pool_options *made = &self->made;

    ccmr__text_add_flags(
        text, REUSE_NAMES,
        (made->no_follow_event_dependencies ? 0u : REUSE_FOLLOW) |
            (made->no_opportunistic ? 0u : REUSE_OPPORTUNISTIC) |
            (made->no_internal_dependencies ? 0u : REUSE_INTERNAL));
}

static ccmr_status device_pool_option_get(void *object, const char *name,
                                          char *text, size_t capacity,
                                          size_t *length)
{
    const ccmr__device_pool *self = object;
    ccmr__text value;
    char words[64];
    size_t index;
    ccmr_status status =
        ccmr__option_find(&ccmr__kind_device_pool, name, &index);

    if (status != CCMR_SUCCESS) {
        return status;
    }
    ccmr__text_init(&value, words, sizeof(words));
    switch (index) {
    case OPTION_DEVICE:
        ccmr__text_add(&value, "%d", self->device->ordinal);
        break;
    case OPTION_OWN:
        ccmr__text_add(&value, "%s", self->owned ? "yes" : "no");
        break;
    case OPTION_INITIAL:
        ccmr__text_add_bytes(&value, self->made.initial);
        break;
    case OPTION_MAXIMUM:
        ccmr__text_add_bytes(&value, self->made.maximum);
        break;
    case OPTION_RELEASE_THRESHOLD:
        add_threshold(self, &value);
        break;
    case OPTION_HANDLE_KINDS:
        ccmr__text_add_flags(&value, HANDLE_KIND_NAMES,
                             self->made.handle_kinds);
        break;
    case OPTION_REUSE:
        add_reuse(self, &value);
        break;
    case OPTION_STREAMS:
        ccmr__text_add(&value, "%s",
                       ccmr__streams_name(self->made.streams_registered));
        break;
    default:
        ccmr__text_add(&value, "%s", self->guard ? "yes" : "no");
        break;
    }
    return ccmr__text_give(words, text, capacity, length);
}

const ccmr_resource_ops ccmr__device_pool_ops = {
    .size = sizeof(ccmr_resource_ops),
    .allocate = ccmr__device_pool_allocate,
    .deallocate = ccmr__device_pool_deallocate,
    .destroy = ccmr__device_pool_destroy,
    .describe = device_pool_describe,
    .trim = ccmr__device_pool_trim,
    .stats = ccmr__device_pool_stats,
    .option_get = device_pool_option_get,
};

static ccmr_status create_from_text(const ccmr_kind *kind,
                                    const ccmr_option_value *values,
                                    ccmr_resource *const *upstreams,
                                    size_t count, ccmr_resource **resource)
{
    const ccmr_option_value *threshold = &values[OPTION_RELEASE_THRESHOLD];
    uint64_t reuse = values[OPTION_REUSE].number;
    ccmr_device_pool_options options = {.size = sizeof(options)};
    ccmr__device *record;
    int device;
    ccmr_status status = ccmr__value_device(&values[OPTION_DEVICE], &device);

    (void)kind;
    (void)upstreams;
    (void)count;
    if (status == CCMR_SUCCESS) {
        status = ccmr__device_find(device, &record);
    }
    if (status != CCMR_SUCCESS) {
        return status;
    }
    options.own = values[OPTION_OWN].integer != 0;
    options.initial =
        ccmr__value_bytes(&values[OPTION_INITIAL], record->total_bytes);
    options.maximum =
        ccmr__value_bytes(&values[OPTION_MAXIMUM], record->total_bytes);
    options.release_threshold_set = threshold->set;
    options.release_threshold =
        threshold->set ? ccmr__value_bytes(threshold, record->total_bytes) : 0;
    options.handle_kinds = (unsigned)values[OPTION_HANDLE_KINDS].number;
    options.no_follow_event_dependencies = (reuse & REUSE_FOLLOW) == 0;
    options.no_opportunistic = (reuse & REUSE_OPPORTUNISTIC) == 0;
    options.no_internal_dependencies = (reuse & REUSE_INTERNAL) == 0;
    options.no_guard = values[OPTION_GUARD].integer == 0;
    options.streams_registered = values[OPTION_STREAMS].integer != 0;
    return ccmr_device_pool_create(record->ordinal, &options, resource);
}

const ccmr_kind ccmr__kind_device_pool = {
    .size = sizeof(ccmr_kind),
    .name = "device_pool",
    .help = "a driver memory pool (as cudaMallocAsync uses)",
    .options = device_pool_options,
    .create = create_from_text,
};
