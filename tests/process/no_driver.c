/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No driver, no real driver, or a library that is something else: every call
 * that needs one says what was tried and why it failed, the rest works, and a
 * later call with a better name succeeds. Field cases Q6, Q7.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cucoremr/cucoremr.h>

#include "tests/support/api.h"
#include "tests/support/tap.h"

#define NOWHERE "/nonexistent/libcuda.so.1"

static ccmr_status init(const char *driver)
{
    ccmr_init_options options = {sizeof(options), driver};

    return ccmr_init(&options);
}

static void expect(ccmr_status status, ccmr_status want, const char *culprit,
                   const char *what)
{
    const char *message = ccmr_last_error()->message;

    if (!tap_ok(status == want && strstr(message, culprit) != NULL &&
                    ccmr_last_error()->status == want,
                "%s: %s names %s", what, ccmr_status_name(want), culprit)) {
        tap_diag("%s: %s", ccmr_status_name(status), message);
    }
}

/* By the default, that is, by the environment. */
static void needs_driver(void)
{
    ccmr_driver_info info = {.size = sizeof(info)};
    ccmr_device_info device = {.size = sizeof(device)};
    ccmr_resource *resource = NULL;
    ccmr_stream stream = NULL;
    int count = -5;

#define NEEDS(call) expect((call), CCMR_ERROR_DRIVER_NOT_FOUND, NOWHERE, #call)
    NEEDS(ccmr_init(NULL));
    NEEDS(ccmr_driver(&info));
    NEEDS(ccmr_device_count(&count));
    NEEDS(ccmr_device_describe(0, &device));
    NEEDS(ccmr_device_current_resource(0, &resource));
    NEEDS(ccmr_device_set_current_resource(0, NULL, NULL));
    NEEDS(ccmr_device_pool_create(0, NULL, &resource));
    NEEDS(ccmr_device_plain_create(0, &resource));
    NEEDS(ccmr_legacy_pinned_create(0, NULL, &resource));
    NEEDS(ccmr_virtual_create(0, NULL, &resource));
    NEEDS(ccmr_stack_create("device_pool", &resource));
    NEEDS(ccmr_stack_create("pool | device_plain", &resource));
    NEEDS(ccmr_stack_create("pool | host", &resource));
    NEEDS(ccmr_stack_create("limiting bytes=1GiB | stream_ordered | "
                            "device_plain device=3",
                            &resource));
    NEEDS(ccmr_stream_create(0, 0, &stream));
    NEEDS(ccmr_stream_synchronize(CCMR_STREAM_LEGACY, 0));
    NEEDS(ccmr_stream_register((ccmr_stream)(uintptr_t)0x1000));
#undef NEEDS
    tap_ok(count == -5 && resource == NULL && stream == NULL &&
               info.path == NULL,
           "no output was written");
}

/* Host memory, whole, without a driver. */
static void host_works(const char *stack)
{
    ccmr_buffer_properties properties = {.size = sizeof(properties)};
    ccmr_stats stats = {.size = sizeof(stats)};
    ccmr_resource *resource = NULL;
    ccmr_buffer *buffer = NULL;
    ccmr_buffer *second = NULL;
    unsigned char out[8] = {0};
    void *ptr = NULL;
    ccmr_status status;

    status = ccmr_stack_create(stack, &resource);
    if (!tap_ok(status == CCMR_SUCCESS, "%s without a driver", stack)) {
        tap_diag("%s", ccmr_last_error()->message);
        return;
    }
    tap_ok(ccmr_resource_allocate(resource, 1000, 64, NULL, &ptr) ==
                   CCMR_SUCCESS &&
               ccmr_resource_deallocate(resource, ptr, 1000, 64,
                                        CCMR_STREAM_PER_THREAD) ==
                   CCMR_SUCCESS,
           "a block");
    tap_ok(ccmr_buffer_create(resource, 100, NULL, NULL, &buffer) ==
                   CCMR_SUCCESS &&
               ccmr_buffer_create(resource, 100, NULL, NULL, &second) ==
                   CCMR_SUCCESS,
           "buffers");
    tap_ok(ccmr_buffer_fill(buffer, 0, 100, 0x21, 1, NULL) == CCMR_SUCCESS &&
               ccmr_buffer_fill(buffer, 2, 2, 0x4142, 2, NULL) ==
                   CCMR_SUCCESS &&
               ccmr_buffer_copy(second, 10, buffer, 0, 50, NULL) ==
                   CCMR_SUCCESS &&
               ccmr_buffer_copy_to_host(second, 10, out, 8, NULL) ==
                   CCMR_SUCCESS &&
               memcmp(out, "!!BA!!!!", 8) == 0,
           "fills and copies: %.8s", (char *)out);
    tap_ok(ccmr_buffer_describe(buffer, &properties) == CCMR_SUCCESS &&
               properties.host_accessible == 1 &&
               properties.device_accessible == 0,
           "what it is");
    tap_ok(ccmr_buffer_destroy(buffer) == CCMR_SUCCESS &&
               ccmr_buffer_close(second, CCMR_STREAM_LEGACY) == CCMR_SUCCESS &&
               ccmr_buffer_destroy(second) == CCMR_SUCCESS,
           "closed");
    tap_ok(ccmr_resource_trim(resource, 0, NULL) == CCMR_SUCCESS &&
               ccmr_resource_stats(resource, &stats) == CCMR_SUCCESS &&
               stats.live_bytes == 0 && stats.allocations == 3,
           "counted");
    ccmr_resource_release(resource);
}

static void texts_work(void)
{
    char text[4096];
    size_t length = 0;

    tap_ok(ccmr_stack_help(NULL, text, sizeof(text), &length) ==
                   CCMR_SUCCESS &&
               strstr(text, "device_pool") != NULL,
           "help without a driver");
    expect(ccmr_stack_create("device_pol", &(ccmr_resource *){NULL}),
           CCMR_ERROR_UNKNOWN_NAME, "device_pool", "a wrong name");
}

static void other_libraries(void)
{
    char file[] = "/tmp/ccmr-driver.XXXXXX";
    Dl_info info;
    int fd = mkstemp(file);

    if (fd >= 0) {
        (void)!write(fd, "not a library\n", 14);
        (void)close(fd);
        expect(init(file), CCMR_ERROR_DRIVER_NOT_FOUND, file, "a text file");
        (void)unlink(file);
    }
    expect(init("/"), CCMR_ERROR_DRIVER_NOT_FOUND, "'/'", "a folder");
    expect(init("curda"), CCMR_ERROR_INVALID_ARGUMENT, "curda",
           "an unknown word");
    if (dladdr((void *)(uintptr_t)&printf, &info) != 0 &&
        strchr(info.dli_fname, '/') != NULL) {
        expect(init(info.dli_fname), CCMR_ERROR_DRIVER_NOT_FOUND, "cuInit",
               "the C library");
    }
}

/* The library to link with that a toolkit brings. */
static void toolkit_stub(void)
{
    static const char *const places[] = {
        "/usr/local/cuda/lib64/stubs/libcuda.so",
        "/usr/local/cuda/targets/x86_64-linux/lib/stubs/libcuda.so",
        "/usr/lib/x86_64-linux-gnu/stubs/libcuda.so",
    };
    const char *given = getenv("CUDA_STUB");
    size_t i;

    for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        const char *path = given != NULL ? given : places[i];

        if (access(path, R_OK) == 0) {
            expect(init(path), CCMR_ERROR_DRIVER_STUB, "stubs/libcuda.so",
                   "the toolkit's stub");
            return;
        }
    }
    tap_skip("no toolkit with a stub library");
}

static void simulated_stub(const char *path)
{
    const ccmr_sim_table *sim = api_simulator();

    (void)sim->set_stub(1);
    expect(init(path), CCMR_ERROR_DRIVER_STUB, "libcucoremr-sim",
           "a driver that is a stub");
    (void)sim->set_stub(0);
}

static void simulator_elsewhere(const char *path)
{
    char kept[4096];

    (void)snprintf(kept, sizeof(kept), "%s", path != NULL ? path : "");
    (void)setenv("CUCOREMR_SIM_PATH", NOWHERE, 1);
    expect(init("sim"), CCMR_ERROR_DRIVER_NOT_FOUND, "CUCOREMR_SIM_PATH",
           "a simulator that is not where it is looked for");
    if (path != NULL) {
        (void)setenv("CUCOREMR_SIM_PATH", kept, 1);
    } else {
        (void)unsetenv("CUCOREMR_SIM_PATH");
    }
}

int main(void)
{
    const char *path;
    ccmr_driver_info info = {.size = sizeof(info)};
    ccmr_resource *resource = NULL;

    (void)setenv("CUCOREMR_DRIVER", NOWHERE, 1);
    needs_driver();
    host_works("host");
    host_works("limiting bytes=1MiB | host");
    host_works("logging file=/dev/null | limiting bytes=1MiB | host");
    texts_work();
    other_libraries();
    toolkit_stub();
    simulator_elsewhere(getenv("CUCOREMR_SIM_PATH"));
    path = getenv("CUCOREMR_SIM_PATH");
    if (path == NULL) {
        tap_skip("no simulator");
        return api_end(tap_finish());
    }
    simulated_stub(path);
    needs_driver();
    tap_ok(init(path) == CCMR_SUCCESS, "a driver at last");
    tap_ok(ccmr_driver(&info) == CCMR_SUCCESS &&
               strcmp(info.name, path) == 0 && info.simulated == 1 &&
               info.version > 0 && info.devices > 0,
           "which it is");
    tap_ok(init(NULL) == CCMR_SUCCESS && ccmr_init(NULL) == CCMR_SUCCESS,
           "none by name is the one in use");
    expect(init("cuda"), CCMR_ERROR_BUSY, "cuda", "another driver");
    tap_ok(ccmr_stack_create("device_pool", &resource) == CCMR_SUCCESS,
           "a pool");
    ccmr_resource_release(resource);
    return api_end(tap_finish());
}
