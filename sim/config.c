/* SPDX-License-Identifier: Apache-2.0 */
/* What the environment says, and cuInit with its version and addresses. */
#include "sim/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cost.h"
#include "sim/device.h"
#include "sim/order.h"
#include "sim/schedule.h"

#define DEFAULT_CAPACITY ((uint64_t)16 << 30)
#define DEFAULT_WAIT_LIMIT 60000

static void complain(const char *name, const char *value)
{
    fprintf(stderr, "libcucoremr-sim: %s: cannot use '%s'\n", name, value);
}

static bool read_number(const char *name, uint64_t low, uint64_t high,
                        uint64_t *number)
{
    const char *text = getenv(name);
    unsigned long long value;
    char *end;

    if (text == NULL || *text == '\0') {
        return false;
    }
    errno = 0;
    value = strtoull(text, &end, 0);
    if (errno != 0 || *end != '\0' || *text == '-' || value < low ||
        value > high) {
        complain(name, text);
        return false;
    }
    *number = value;
    return true;
}

/* A number of bytes with its unit: powers of 1024 whatever the spelling. */
static bool read_bytes(const char *name, uint64_t *bytes)
{
    static const char units[] = "KMGT";
    const char *text = getenv(name);
    unsigned long long value;
    const char *unit;
    unsigned shift = 0;
    char *end;

    if (text == NULL || *text == '\0') {
        return false;
    }
    errno = 0;
    value = strtoull(text, &end, 10);
    unit = *end != '\0' ? strchr(units, *end) : NULL;
    if (unit != NULL) {
        shift = 10 * ((unsigned)(unit - units) + 1);
        end++;
        if (*end == 'i') {
            end++;
        }
    }
    if (*end == 'B') {
        end++;
    }
    if (errno != 0 || end == text || *end != '\0' || *text == '-' ||
        value > ((uint64_t)1 << 50) >> shift) {
        complain(name, text);
        return false;
    }
    *bytes = (uint64_t)value << shift;
    return true;
}

static void read_mode(void)
{
    const char *text = getenv("CUCOREMR_SIM_MODE");

    if (text == NULL || *text == '\0') {
        return;
    }
    if (strcmp(text, "late") == 0) {
        sim.mode = CCMR_SIM_LATE;
    } else if (strcmp(text, "eager") != 0) {
        complain("CUCOREMR_SIM_MODE", text);
    }
}

int sim_hide(const char *call, bool hidden)
{
    enum sim_call number = sim_call_find(call);
    int i;

    if (number == SIM_CALL_COUNT) {
        return -1;
    }
    sim.hidden[number] = hidden;
    sim.hidden_any = false;
    for (i = 0; i < SIM_CALL_COUNT; i++) {
        sim.hidden_any = sim.hidden_any || sim.hidden[i];
    }
    sim_note_special();
    return 0;
}

static void read_hidden(void)
{
    static const char name[] = "CUCOREMR_SIM_HIDE";
    const char *text = getenv(name);

    while (text != NULL && *text != '\0') {
        size_t length = strcspn(text, ", ");
        char call[64];

        if (length >= sizeof call) {
            complain(name, text);
            return;
        }
        memcpy(call, text, length);
        call[length] = '\0';
        if (length != 0 && sim_hide(call, true) != 0) {
            complain(name, call);
        }
        text += length;
        text += strspn(text, ", ");
    }
}

void sim_configure(void)
{
    uint64_t capacity = DEFAULT_CAPACITY;
    uint64_t number;

    if (sim.configured) {
        return;
    }
    sim.configured = true;
    sim.device_count = 1;
    sim.driver_version = 13000;
    sim.mode = CCMR_SIM_EAGER;
    sim.wait_limit = DEFAULT_WAIT_LIMIT;
    sim_schedule_seed(0);
    if (read_number("CUCOREMR_SIM_DEVICES", 0, SIM_MAX_DEVICES, &number)) {
        sim.device_count = (int)number;
    }
    if (read_number("CUCOREMR_SIM_DRIVER_VERSION", 11000, 13999, &number)) {
        sim.driver_version = (int)number;
    }
    if (read_number("CUCOREMR_SIM_SEED", 0, UINT64_MAX, &number)) {
        sim_schedule_seed(number);
    }
    read_bytes("CUCOREMR_SIM_MEMORY", &capacity);
    read_mode();
    read_hidden();
    sim.strict =
        read_number("CUCOREMR_SIM_STRICT", 0, 1, &number) && number != 0;
    sim_order_check(read_number("CUCOREMR_SIM_ORDER", 0, 1, &number) &&
                    number != 0);
    sim_cost_count(read_number("CUCOREMR_SIM_COSTS", 0, 1, &number) &&
                   number != 0);
    sim_devices_default(capacity);
    sim_note_special();
}

/* From here on the process's end looks like the end of a real driver. */
static void at_exit(void)
{
    if (atomic_load(&sim_forked) != 0) {
        return;
    }
    sim_lock_unlocked();
    sim.deinitialized = true;
    sim_note_special();
    sim_unlock();
}

static CUresult initialize(unsigned flags)
{
    static bool registered;

    if (flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (sim.initialized) {
        return CUDA_SUCCESS;
    }
    if (sim.device_count == 0) {
        return CUDA_ERROR_NO_DEVICE;
    }
    if (!registered) {
        if (atexit(at_exit) != 0) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        registered = true;
    }
    sim.initialized = true;
    sim_note_special();
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuInit(unsigned int Flags)
{
    SIM_ENTRY(cuInit, initialize(Flags), NULL, 0, 0, 0);
}

static CUresult get_version(int *version)
{
    if (version == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *version = sim.driver_version;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDriverGetVersion(int *driverVersion)
{
    SIM_ENTRY(cuDriverGetVersion, get_version(driverVersion), NULL, 0, 0, 0);
}
