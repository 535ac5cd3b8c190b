/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/machine.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cucoremr/device.h>

#include "bench/clock.h"
#include "lib/context.h"
#include "lib/driver.h"

#define GIB (UINT64_C(1) << 30)
#define SIM_LEAST (16 * GIB)

const char *machine_program_folder(void)
{
    static char folder[PATH_MAX];
    ssize_t length;
    char *slash;

    if (folder[0] != '\0') {
        return folder;
    }
    length = readlink("/proc/self/exe", folder, sizeof(folder) - 1);
    folder[length > 0 ? length : 0] = '\0';
    slash = strrchr(folder, '/');
    if (slash == NULL) {
        (void)strcpy(folder, ".");
    } else {
        *slash = '\0';
    }
    return folder;
}

/* The library looks where things are when they are installed. In a build
 * folder the simulator is elsewhere. */
static void find_simulator(void)
{
    char path[PATH_MAX];

    if (snprintf(path, sizeof(path), "%s/sim/.libs/libcucoremr-sim.so",
                 machine_program_folder()) < (int)sizeof(path) &&
        access(path, R_OK) == 0) {
        (void)setenv("CUCOREMR_SIM_PATH", path, 0);
    }
}

/* How much memory a simulated device has, unless somebody has said it. */
static void size_simulator(uint64_t memory)
{
    char text[32];

    if (memory > SIM_LEAST) {
        (void)snprintf(text, sizeof(text), "%" PRIu64 "GiB",
                       (memory + GIB - 1) / GIB);
        (void)setenv("CUCOREMR_SIM_MEMORY", text, 0);
    }
}

static ccmr_status load(const char *driver)
{
    ccmr_init_options options = {.size = sizeof(options), .driver = driver};

    return ccmr_init(&options);
}

/* Errors that say that there is no GPU to be had. */
static bool is_absence(ccmr_status status)
{
    return status == CCMR_ERROR_DRIVER_NOT_FOUND ||
           status == CCMR_ERROR_DRIVER_STUB || status == CCMR_ERROR_NO_DEVICE;
}

static ccmr_status load_any(machine *made)
{
    const char *wanted = getenv("CUCOREMR_DRIVER");
    ccmr_status status;

    if (wanted != NULL && wanted[0] != '\0') {
        return load(NULL);
    }
    status = load("cuda");
    if (!is_absence(status)) {
        return status;
    }
    (void)snprintf(made->notice, sizeof(made->notice), "%s",
                   ccmr_last_error()->message);
    return load("sim");
}

static void read_cpu(machine *made)
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[256];

    (void)snprintf(made->cpu, sizeof(made->cpu), "unknown processor");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        const char *name = strstr(line, ": ");

        if (strncmp(line, "model name", 10) == 0 && name != NULL) {
            line[strcspn(line, "\n")] = '\0';
            (void)snprintf(made->cpu, sizeof(made->cpu), "%.120s", name + 2);
            break;
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    made->cpus = sysconf(_SC_NPROCESSORS_ONLN);
}

static void read_host(machine *made)
{
    struct utsname name;

    read_cpu(made);
    if (uname(&name) == 0) {
        (void)snprintf(made->system, sizeof(made->system), "%.60s %.60s %.30s",
                       name.sysname, name.release, name.machine);
    }
    made->clock_cost = clock_cost();
}

static ccmr_status read_device(machine *made, int device)
{
    ccmr_driver_info driver = {.size = sizeof(driver)};
    ccmr_device_info info = {.size = sizeof(info)};
    ccmr__device *record;
    ccmr_status status = ccmr_driver(&driver);

    if (status == CCMR_SUCCESS) {
        status = ccmr_device_describe(device, &info);
    }
    if (status == CCMR_SUCCESS) {
        status = ccmr__device_use(device, &record);
    }
    if (status != CCMR_SUCCESS) {
        return status;
    }
    made->device = device;
    made->context = record->context;
    made->simulated = driver.simulated;
    made->driver_version = driver.version;
    (void)snprintf(made->driver_name, sizeof(made->driver_name), "%.31s",
                   driver.name);
    (void)snprintf(made->driver_path, sizeof(made->driver_path), "%.511s",
                   driver.path);
    (void)snprintf(made->device_name, sizeof(made->device_name), "%.127s",
                   info.name);
    made->device_bytes = info.total_bytes;
    return CCMR_SUCCESS;
}

bool machine_open(machine *made, const char *driver, int device,
                  uint64_t memory, char *message, size_t size)
{
    ccmr_status status;

    memset(made, 0, sizeof(*made));
    find_simulator();
    size_simulator(memory);
    status = strcmp(driver, "auto") == 0 ? load_any(made) : load(driver);
    if (status == CCMR_SUCCESS) {
        status = read_device(made, device);
    }
    if (status != CCMR_SUCCESS) {
        (void)snprintf(message, size, "%s", ccmr_last_error()->message);
        return false;
    }
    read_host(made);
    if (!machine_enter(made)) {
        (void)snprintf(message, size,
                       "the device's context cannot be made current");
        return false;
    }
    return true;
}

bool machine_enter(const machine *on)
{
    return CCMR__CU(cuCtxPushCurrent)(on->context) == CUDA_SUCCESS;
}

void machine_leave(const machine *on)
{
    CUcontext context;

    (void)on;
    (void)CCMR__CU(cuCtxPopCurrent)(&context);
}
