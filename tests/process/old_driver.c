/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drivers that lack something: each entry point that the library knows is
 * hidden once, and older versions are tried, each in a process of its own.
 * What is needed by all refuses the driver by name; what a feature needs
 * refuses that feature alone. Field cases J7, Q2, Q4, Q5.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cucoremr/cucoremr.h>

#include "lib/driver.h"
#include "tests/support/api.h"
#include "tests/support/tap.h"

enum { OPTIONAL, REQUIRED };

typedef struct entry {
    const char *name;
    int need;
} entry;

/* Named as text before cuda.h's macros change the names. */
static const entry entries[] = {
#define ENTRY(name, version, need, parameters, arguments) {#name, need},
    CCMR__DRIVER_MAP(ENTRY)
#undef ENTRY
};

/* In a child: prints what is wrong, returns its exit status. */
static int complain(const char *what)
{
    (void)fprintf(stderr, "# %s: %s\n", what, ccmr_last_error()->message);
    return 1;
}

static int works(const char *stack)
{
    ccmr_resource *resource = NULL;
    ccmr_buffer *buffer = NULL;
    ccmr_stream stream = NULL;
    unsigned char out[64];

    if (ccmr_stack_create(stack, &resource) != CCMR_SUCCESS ||
        ccmr_stream_create(0, 0, &stream) != CCMR_SUCCESS ||
        ccmr_buffer_create(resource, 1000, NULL, stream, &buffer) !=
            CCMR_SUCCESS ||
        ccmr_buffer_fill(buffer, 0, 1000, 0x31, 1, stream) != CCMR_SUCCESS ||
        ccmr_buffer_copy_to_host(buffer, 936, out, 64, stream) !=
            CCMR_SUCCESS ||
        ccmr_stream_synchronize(stream, 0) != CCMR_SUCCESS ||
        ccmr_buffer_destroy(buffer) != CCMR_SUCCESS ||
        ccmr_resource_trim(resource, 0, NULL) != CCMR_SUCCESS ||
        ccmr_stream_destroy(stream) != CCMR_SUCCESS || out[63] != 0x31) {
        return 0;
    }
    ccmr_resource_release(resource);
    return 1;
}

/* Runs `body` in a child with one setting of the environment. */
static int in_child(const char *variable, const char *value,
                    int (*body)(const void *), const void *argument)
{
    pid_t child = fork();
    int status = -1;

    if (child == 0) {
        (void)setenv(variable, value, 1);
        (void)api_simulator();
        _exit(body(argument));
    }
    (void)waitpid(child, &status, 0);
    return status;
}

static int hidden_required(const void *argument)
{
    const entry *e = argument;
    ccmr_status status = ccmr_init(NULL);

    if (strcmp(e->name, "cuInit") == 0) {
        return status != CCMR_SUCCESS ? 0 : complain("without cuInit");
    }
    if (status != CCMR_ERROR_DRIVER_TOO_OLD ||
        strstr(ccmr_last_error()->message, e->name) == NULL) {
        return complain(ccmr_status_name(status));
    }
    return 0;
}

static int pools_work_or_not(void)
{
    ccmr_resource *resource = NULL;
    ccmr_status status = ccmr_stack_create("device_pool own=yes", &resource);

    if (status == CCMR_ERROR_NOT_SUPPORTED) {
        return ccmr_last_error()->message[0] != '\0';
    }
    ccmr_resource_release(resource);
    return status == CCMR_SUCCESS && works("device_pool own=yes") &&
           works("device_pool");
}

static int ranges_work_or_not(void)
{
    ccmr_resource *resource = NULL;
    ccmr_status status = ccmr_stack_create("virtual", &resource);

    if (status == CCMR_ERROR_NOT_SUPPORTED) {
        return strstr(ccmr_last_error()->message, "virtual memory") != NULL;
    }
    ccmr_resource_release(resource);
    return status == CCMR_SUCCESS && works("virtual");
}

static int hidden_optional(const void *argument)
{
    ccmr_resource *resource = NULL;

    (void)argument;
    if (ccmr_init(NULL) != CCMR_SUCCESS) {
        return complain("init");
    }
    if (!works("device_plain") || !works("legacy_pinned") ||
        !works("stream_ordered | device_plain") ||
        !works("pool | device_plain")) {
        return complain("a resource without pools");
    }
    if (!pools_work_or_not()) {
        return complain("device_pool");
    }
    if (!ranges_work_or_not()) {
        return complain("virtual");
    }
    if (ccmr_device_current_resource(0, &resource) != CCMR_SUCCESS) {
        return complain("current resource");
    }
    ccmr_resource_release(resource);
    return 0;
}

static int version_is(const void *argument)
{
    ccmr_driver_info info = {.size = sizeof(info)};

    if (ccmr_driver(&info) != CCMR_SUCCESS ||
        info.version != *(const int *)argument) {
        return complain("version");
    }
    return hidden_optional(NULL);
}

/* Q5: before 11.5 opportunistic reuse corrupts memory: it is off. */
static int reuse_is_off(const void *argument)
{
    const int *off = argument;
    struct CUmemPoolHandle_st *pool = NULL;
    ccmr_resource *resource = NULL;
    int value = -1;

    if (ccmr_stack_create("device_pool own=yes", &resource) != CCMR_SUCCESS ||
        ccmr_device_pool_handle(resource, &pool) != CCMR_SUCCESS ||
        api.cuMemPoolGetAttribute(pool,
                                  CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC,
                                  &value) != CUDA_SUCCESS) {
        return complain("pool");
    }
    ccmr_resource_release(resource);
    return value == !*off ? 0 : complain("opportunistic reuse");
}

/* J7: a maximum that the driver cannot hold is refused, not dropped. */
static int maximum_is_refused(const void *argument)
{
    const int *refused = argument;
    ccmr_resource *resource = NULL;
    ccmr_status status =
        ccmr_stack_create("device_pool own=yes maximum=64MiB", &resource);
    void *ptr = NULL;

    if (*refused) {
        return status == CCMR_ERROR_NOT_SUPPORTED ? 0 : complain("maximum");
    }
    if (status != CCMR_SUCCESS) {
        return complain("maximum");
    }
    status = ccmr_resource_allocate(resource, 65 * 1024 * 1024, 0,
                                    CCMR_STREAM_LEGACY, &ptr);
    if (status != CCMR_ERROR_OUT_OF_DEVICE_MEMORY) {
        return complain(ccmr_status_name(status));
    }
    ccmr_resource_release(resource);
    return 0;
}

/* Q4: a device without pools falls back by the documented rule. */
static int no_pools(const void *argument)
{
    ccmr_resource *resource = NULL;
    ccmr_status status;

    (void)argument;
    (void)simulator->set_attribute(
        -1, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 0);
    status = ccmr_stack_create("device_pool", &resource);
    if (status != CCMR_ERROR_NOT_SUPPORTED || resource != NULL) {
        return complain("device_pool");
    }
    if (ccmr_device_current_resource(0, &resource) != CCMR_SUCCESS ||
        strcmp(ccmr_resource_name(resource), "stream_ordered") != 0) {
        return complain("the default resource");
    }
    ccmr_resource_release(resource);
    return works("stream_ordered | device_plain") ? 0 : complain("default");
}

int main(void)
{
    static const int versions[] = {11010, 11020, 11040, 12010, 12080, 13000};
    static const int yes = 1;
    static const int no = 0;
    size_t i;

    for (i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
        const entry *e = &entries[i];

        tap_is_int(
            in_child("CUCOREMR_SIM_HIDE", e->name,
                     e->need == REQUIRED ? hidden_required : hidden_optional,
                     e),
            0, "without %s, which is %s", e->name,
            e->need == REQUIRED ? "required" : "optional");
    }
    for (i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
        char text[16];

        (void)snprintf(text, sizeof(text), "%d", versions[i]);
        tap_is_int(in_child("CUCOREMR_SIM_DRIVER_VERSION", text, version_is,
                            &versions[i]),
                   0, "driver version %s", text);
    }
    tap_is_int(
        in_child("CUCOREMR_SIM_DRIVER_VERSION", "11040", reuse_is_off, &yes),
        0, "11.4 reuses nothing by chance");
    tap_is_int(
        in_child("CUCOREMR_SIM_DRIVER_VERSION", "11050", reuse_is_off, &no), 0,
        "11.5 may");
    tap_is_int(in_child("CUCOREMR_SIM_DRIVER_VERSION", "12010",
                        maximum_is_refused, &yes),
               0, "12.1 has no maximum");
    tap_is_int(in_child("CUCOREMR_SIM_DRIVER_VERSION", "12020",
                        maximum_is_refused, &no),
               0, "12.2 has");
    tap_is_int(in_child("CUCOREMR_SIM_SEED", "1", no_pools, NULL), 0,
               "a device without pools");
    return tap_finish();
}
