/* SPDX-License-Identifier: Apache-2.0 */
/* The address space of devices. */
#include "sim/addresses.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "sim/memory.h"

/* Where no kernel, no sanitizer and no allocator puts anything by itself. */
#define DEVICE_BASE ((uintptr_t)0x400000000000)
#define DEVICE_WINDOW ((size_t)1 << 40)
#define DEVICE_END (DEVICE_BASE + SIM_MAX_DEVICES * DEVICE_WINDOW)

/** A free piece of a device's address window. */
struct sim_gap {
    struct sim_gap *next;
    uintptr_t base;
    size_t size;
};

bool sim_is_device_address(uintptr_t address)
{
    return address >= DEVICE_BASE && address < DEVICE_END;
}

/* The window as reserved space keeps the host's own mappings out of it. It is
 * not needed for work: where a limit or a sanitizer refuses it, so be it. */
static void reserve_window(int device)
{
    uintptr_t base = DEVICE_BASE + (size_t)device * DEVICE_WINDOW;
    void *got =
        mmap((void *)base, DEVICE_WINDOW, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
             -1, 0);

    if (got != MAP_FAILED && got != (void *)base) {
        munmap(got, DEVICE_WINDOW);
    }
}

static bool window_prepare(int device)
{
    static bool reserved[SIM_MAX_DEVICES];
    struct sim_gap *gap = malloc(sizeof *gap);

    if (gap == NULL) {
        return false;
    }
    if (!reserved[device]) {
        reserve_window(device);
        reserved[device] = true;
    }
    gap->next = NULL;
    gap->base = DEVICE_BASE + (size_t)device * DEVICE_WINDOW;
    gap->size = DEVICE_WINDOW;
    sim.devices[device].gaps = gap;
    sim.devices[device].window = true;
    return true;
}

/* The lowest fit: what was freed last is often what is handed out next. */
uintptr_t sim_addresses_take(int device, size_t size)
{
    struct sim_gap **link = &sim.devices[device].gaps;

    if (!sim.devices[device].window && !window_prepare(device)) {
        return 0;
    }
    for (; *link != NULL; link = &(*link)->next) {
        struct sim_gap *gap = *link;
        uintptr_t base = gap->base;

        if (gap->size < size) {
            continue;
        }
        gap->base += size;
        gap->size -= size;
        if (gap->size == 0) {
            *link = gap->next;
            free(gap);
        }
        return base;
    }
    return 0;
}

void sim_addresses_give(int device, uintptr_t base, size_t size)
{
    struct sim_gap **link = &sim.devices[device].gaps;
    struct sim_gap *before = NULL;
    struct sim_gap *gap;

    while (*link != NULL && (*link)->base < base) {
        before = *link;
        link = &(*link)->next;
    }
    gap = *link;
    if (before != NULL && before->base + before->size == base) {
        before->size += size;
        if (gap != NULL && before->base + before->size == gap->base) {
            before->size += gap->size;
            before->next = gap->next;
            free(gap);
        }
        return;
    }
    if (gap != NULL && base + size == gap->base) {
        gap->base = base;
        gap->size += size;
        return;
    }
    gap = malloc(sizeof *gap);
    if (gap == NULL) {
        return; /* the addresses are lost, nothing else */
    }
    gap->base = base;
    gap->size = size;
    gap->next = *link;
    *link = gap;
}

void sim_addresses_reset(void)
{
    int i;

    for (i = 0; i < SIM_MAX_DEVICES; i++) {
        struct sim_device *device = &sim.devices[i];

        while (device->gaps != NULL) {
            struct sim_gap *gap = device->gaps;

            device->gaps = gap->next;
            free(gap);
        }
        device->window = false;
    }
}
