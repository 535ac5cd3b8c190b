/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cucoremr-conformance [--driver NAME] [--plugin FILE]... [--stack TEXT]...
 *
 * Without --stack every built-in resource and a dozen stacks are subjects. A
 * plug-in is a shared object with `ccmr_status ccmr_plugin_register(void)`,
 * which registers kinds for stack texts; it finds this library's functions in
 * this program. See plugin_example.c. Speaks TAP.
 */
#include "tests/conformance/conformance.h"

#include <dlfcn.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/public.h"
#include "tests/support/tap.h"

#define MAX_STACKS 64

world here;

static const char *const default_stacks[] = {
    "device_pool",
    "device_pool own=yes",
    "device_plain",
    "legacy_pinned",
    "legacy_pinned access=stream",
    "virtual",
    "virtual handle=2MiB room=8MiB export=posix_fd",
    "host",
    "stream_ordered | device_plain",
    "stream_ordered keep=1MiB | device_plain",
    "stream_ordered | legacy_pinned",
    "stream_ordered | legacy_pinned access=stream",
    "stream_ordered | virtual",
    "stream_ordered | host",
    "stream_ordered | device_pool",
    "stream_ordered keep=4KiB | device_pool",
    "stream_ordered | stream_ordered | device_plain",
    "limiting bytes=1GiB | device_pool",
    "limiting bytes=64MiB | stream_ordered | device_plain",
    "stream_ordered | limiting bytes=64MiB | device_plain",
    "limiting bytes=1GiB | limiting bytes=64MiB | host",
    "limiting bytes=1GiB | virtual",
    "logging file=/dev/null | device_pool",
    "logging file=/dev/null flush=yes | limiting bytes=1GiB | device_pool",
    "limiting bytes=1GiB | logging file=/dev/null | device_plain",
    "logging file=/dev/null | stream_ordered | legacy_pinned",
    "limiting bytes=9MiB | stream_ordered | logging file=/dev/null | host",
    "logging file=/dev/null columns=device+alignment+chosen+latency | host",
    "pool | device_plain",
    "pool | device_pool",
    "pool | virtual",
    "pool hard=64MiB | virtual",
    "pool soft=105 | virtual",
    "pool | legacy_pinned",
    "pool access=stream | legacy_pinned",
    "pool hard=64MiB | device_plain",
    "pool reuse=finished initial=8MiB | device_pool own=yes",
    "limiting bytes=64MiB | pool | logging file=/dev/null | device_plain",
    "pool | limiting bytes=64MiB | device_plain",
    "pool | pool | device_plain",
    "pool streams=registered | virtual",
    "pool capture=reserve | virtual",
    "pool handle=4MiB capture=reserve | virtual",
    "limiting bytes=1GiB | pool export=handle | virtual export=posix_fd",
    "pool capture=reserve streams=registered | device_pool",
    "limiting bytes=1GiB | pool capture=reserve hard=64MiB | device_plain",
    "device_pool streams=registered",
    "stream_ordered streams=registered | device_plain",
    "statistics | pool | device_plain",
    "statistics peaks=exact | device_pool",
    "stream_ordered | statistics | device_plain",
    "tracking | pool | tracking | device_plain",
    "tracking traces=yes | device_pool",
};

/* With a second device. */
static const char *const second_stacks[] = {
    "device_pool device=1",
    "stream_ordered | device_plain device=1",
    "limiting bytes=64MiB | legacy_pinned device=1",
    "virtual device=1",
    "pool | device_plain device=1",
};

static const conformance_case *const tables[] = {
    cases_basic, cases_query,   cases_buffer,  cases_life,
    cases_order, cases_context, cases_capture, cases_threads,
};

/* Plug-ins may call any of these, also those that nothing here calls. */
typedef void (*any_function)(void);
static const any_function public_functions[] = {
#define PUBLIC_ENTRY(name) (any_function) name,
    PUBLIC_MAP(PUBLIC_ENTRY)
#undef PUBLIC_ENTRY
};

static const char *only_case;

static void load_plugin(const char *file)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    ccmr_status (*enter)(void);
    void *symbol;
    ccmr_status status;

    if (library == NULL) {
        tap_bail_out("%s", dlerror());
    }
    symbol = dlsym(library, "ccmr_plugin_register");
    if (symbol == NULL) {
        tap_bail_out("%s has no ccmr_plugin_register", file);
    }
    memcpy(&enter, &symbol, sizeof(enter));
    status = enter();
    if (status != CCMR_SUCCESS) {
        tap_bail_out("%s: %s: %s", file, ccmr_status_name(status),
                     ccmr_last_error()->message);
    }
}

static void need(CUresult res, const char *what)
{
    const char *name = NULL;

    if (res != CUDA_SUCCESS) {
        (void)api.cuGetErrorName(res, &name);
        tap_bail_out("%s: %s", what, name != NULL ? name : "unknown error");
    }
}

static void make_streams(int device)
{
    int i;

    need(api.cuCtxPushCurrent(here.primary[device]), "push");
    for (i = 0; i < WORLD_STREAMS; i++) {
        need(api.cuStreamCreate(&here.streams[device][i],
                                CU_STREAM_NON_BLOCKING),
             "stream");
    }
    need(api.cuStreamCreate(&here.blocking[device], CU_STREAM_DEFAULT),
         "stream");
    need(api.cuCtxPopCurrent(&(CUcontext){NULL}), "pop");
    if (ccmr_stream_create(device, CCMR_STREAM_FLAG_NON_BLOCKING,
                           &here.registered[device]) != CCMR_SUCCESS) {
        tap_bail_out("registered stream: %s", ccmr_last_error()->message);
    }
}

static void make_world(const ccmr_driver_info *info)
{
    int device;

    here.devices = info->devices;
    here.simulated = info->simulated;
    for (device = 0; device < WORLD_DEVICES && device < info->devices;
         device++) {
        CUdevice handle;

        need(api.cuDeviceGet(&handle, device), "device");
        need(api.cuDevicePrimaryCtxRetain(&here.primary[device], handle),
             "primary context");
        make_streams(device);
    }
    if (api.cuCtxCreate != NULL &&
        api.cuCtxCreate(&here.foreign, NULL, 0, 0) == CUDA_SUCCESS) {
        (void)api.cuCtxPopCurrent(&(CUcontext){NULL});
    } else {
        here.foreign = NULL;
    }
}

/* What the library makes once a device, at first need, is no leak. */
static void warm_up(void)
{
    int device;

    for (device = 0; device < WORLD_DEVICES && device < here.devices;
         device++) {
        char text[64];
        ccmr_resource *resource = NULL;
        void *ptr = NULL;

        (void)snprintf(text, sizeof(text), "device_pool device=%d", device);
        if (ccmr_stack_create(text, &resource) == CCMR_SUCCESS &&
            ccmr_resource_allocate(resource, 256, 0, here.registered[device],
                                   &ptr) == CCMR_SUCCESS) {
            (void)ccmr_resource_deallocate(resource, ptr, 256, 0,
                                           here.registered[device]);
        }
        ccmr_resource_release(resource);
        IGNORE(ccmr_stream_synchronize(CCMR_STREAM_LEGACY, device));
        IGNORE(ccmr_stream_synchronize(CCMR_STREAM_PER_THREAD, device));
    }
}

static void start_driver(const char *name)
{
    ccmr_init_options options = {sizeof(options), name};
    ccmr_driver_info info = {.size = sizeof(info)};
    const char *reason;
    ccmr_status status;

    /* Two simulated devices, work that runs late, and a check of its order,
       unless told else. */
    (void)setenv("CUCOREMR_SIM_DEVICES", "2", 0);
    (void)setenv("CUCOREMR_SIM_MODE", "late", 0);
    (void)setenv("CUCOREMR_SIM_ORDER", "1", 0);
    status = ccmr_init(&options);
    if (status == CCMR_SUCCESS) {
        status = ccmr_driver(&info);
    }
    if (status == CCMR_ERROR_DRIVER_NOT_FOUND ||
        status == CCMR_ERROR_NO_DEVICE) {
        tap_skip_all("%s", ccmr_last_error()->message);
    }
    if (status != CCMR_SUCCESS) {
        tap_bail_out("%s", ccmr_last_error()->message);
    }
    if (api_load(info.path, &reason) != 0) {
        tap_bail_out("%s", reason);
    }
    make_world(&info);
    warm_up();
    tap_diag("driver %s, version %d, %d device%s", info.path, info.version,
             info.devices, info.devices == 1 ? "" : "s");
}

static void run_subject(const char *text)
{
    subject *s = subject_make(text);
    const conformance_case *c;
    size_t i;

    if (s == NULL) {
        tap_bail_out("no memory");
    }
    for (i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        for (c = tables[i]; c->name != NULL; c++) {
            if (only_case == NULL || strstr(c->name, only_case) != NULL) {
                subject_run(s, c);
            }
        }
    }
    subject_free(s);
}

static int usage(FILE *to, int status)
{
    (void)fprintf(
        to, "Usage: cucoremr-conformance [OPTION]...\n"
            "Checks that memory resources keep the contract; speaks TAP.\n"
            "\n"
            "  --driver NAME   cuda, sim, or a driver library's path\n"
            "  --stack TEXT    judge this stack; may be repeated (default:\n"
            "                  all built-in resources and some stacks)\n"
            "  --plugin FILE   load a shared object that registers kinds\n"
            "  --case NAME     only cases with NAME in their name\n"
            "  --list          list the default stacks and the cases\n"
            "  --help          this text\n");
    return status;
}

static void list(void)
{
    const conformance_case *c;
    size_t i;

    for (i = 0; i < sizeof(default_stacks) / sizeof(default_stacks[0]); i++) {
        printf("stack  %s\n", default_stacks[i]);
    }
    for (i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        for (c = tables[i]; c->name != NULL; c++) {
            printf("case   %s\n", c->name);
        }
    }
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"driver", required_argument, NULL, 'd'},
        {"stack", required_argument, NULL, 's'},
        {"plugin", required_argument, NULL, 'p'},
        {"case", required_argument, NULL, 'c'},
        {"list", no_argument, NULL, 'l'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    const char *stacks[MAX_STACKS];
    const char *plugins[MAX_STACKS];
    const char *driver = NULL;
    size_t stack_count = 0;
    size_t plugin_count = 0;
    size_t i;
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'd') {
            driver = optarg;
        } else if (option == 's' && stack_count < MAX_STACKS) {
            stacks[stack_count++] = optarg;
        } else if (option == 'p' && plugin_count < MAX_STACKS) {
            plugins[plugin_count++] = optarg;
        } else if (option == 'c') {
            only_case = optarg;
        } else if (option == 'l') {
            list();
            return 0;
        } else {
            return option == 'h' ? usage(stdout, 0) : usage(stderr, 2);
        }
    }
    if (optind < argc || public_functions[0] == NULL) {
        return usage(stderr, 2);
    }
    start_driver(driver);
    if (simulator != NULL) {
        /* Each case tells its own hazards. */
        (void)simulator->set_strict(0);
    }
    if (recorder_register() != CCMR_SUCCESS) {
        tap_bail_out("recorder: %s", ccmr_last_error()->message);
    }
    for (i = 0; i < plugin_count; i++) {
        load_plugin(plugins[i]);
    }
    for (i = 0; i < stack_count; i++) {
        run_subject(stacks[i]);
    }
    for (i = 0; stack_count == 0 &&
                i < sizeof(default_stacks) / sizeof(default_stacks[0]);
         i++) {
        run_subject(default_stacks[i]);
    }
    for (i = 0; stack_count == 0 && here.devices > 1 &&
                i < sizeof(second_stacks) / sizeof(second_stacks[0]);
         i++) {
        run_subject(second_stacks[i]);
    }
    return api_end(tap_finish());
}
