/* SPDX-License-Identifier: Apache-2.0 */
/* The address space of devices. */
#include "sim/addresses.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "sim/memory.h"

/*
 * Where no kernel, no sanitizer and no allocator puts anything by itself:
 *
 *     0x2000'0000'0000   32 TiB   ranges that programs reserve
 *     0x4000'0000'0000   1 TiB    memory of device 0
 *     0x4100'0000'0000   1 TiB    memory of device 1, and so on
 */
#define DEVICE_BASE ((uintptr_t)0x400000000000)
#define DEVICE_WINDOW ((size_t)1 << 40)
#define DEVICE_END (DEVICE_BASE + SIM_MAX_DEVICES * DEVICE_WINDOW)

/** A free piece of a window. */
struct sim_gap {
    struct sim_gap *next;
    uintptr_t base;
    size_t size;
};

struct window {
    struct sim_gap *gaps; /* by address */
    bool prepared;
};

/* One a device, and the last for ranges. */
static struct window windows[SIM_RANGE_WINDOW + 1];

bool sim_is_device_address(uintptr_t address)
{
    return address >= SIM_RANGE_BASE && address < DEVICE_END;
}

bool sim_is_range_address(uintptr_t address)
{
    return address >= SIM_RANGE_BASE &&
           address < SIM_RANGE_BASE + SIM_RANGE_BYTES;
}

static uintptr_t base_of(int window)
{
    return window == SIM_RANGE_WINDOW
               ? SIM_RANGE_BASE
               : DEVICE_BASE + (size_t)window * DEVICE_WINDOW;
}

static size_t size_of(int window)
{
    return window == SIM_RANGE_WINDOW ? SIM_RANGE_BYTES : DEVICE_WINDOW;
}

/* The window as reserved space keeps the host's own mappings out of it. It is
 * not needed for work: where a limit or a sanitizer refuses it, so be it. */
static void reserve_window(int device)
{
    void *base = (void *)base_of(device);
    void *got =
        mmap(base, DEVICE_WINDOW, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
             -1, 0);

    if (got != MAP_FAILED && got != base) {
        munmap(got, DEVICE_WINDOW);
    }
}

static bool prepare(int window)
{
    static bool reserved[SIM_MAX_DEVICES];
    struct sim_gap *gap;

    if (windows[window].prepared) {
        return true;
    }
    gap = malloc(sizeof *gap);
    if (gap == NULL) {
        return false;
    }
    if (window < SIM_MAX_DEVICES && !reserved[window]) {
        reserve_window(window);
        reserved[window] = true;
    }
    gap->next = NULL;
    gap->base = base_of(window);
    gap->size = size_of(window);
    windows[window].gaps = gap;
    windows[window].prepared = true;
    return true;
}

/* Cut [base, base + size) out of a gap that holds it. */
static bool cut(struct sim_gap **link, uintptr_t base, size_t size)
{
    struct sim_gap *gap = *link;
    size_t below = base - gap->base;
    size_t above = gap->size - below - size;
    struct sim_gap *upper;

    if (below == 0 && above == 0) {
        *link = gap->next;
        free(gap);
    } else if (below == 0) {
        gap->base += size;
        gap->size = above;
    } else if (above == 0) {
        gap->size = below;
    } else {
        upper = malloc(sizeof *upper);
        if (upper == NULL) {
            return false;
        }
        upper->base = base + size;
        upper->size = above;
        upper->next = gap->next;
        gap->size = below;
        gap->next = upper;
    }
    return true;
}

/* The lowest fit: what was freed last is often what is handed out next. */
uintptr_t sim_addresses_take(int window, size_t size, size_t alignment)
{
    struct sim_gap **link = &windows[window].gaps;

    if (!prepare(window)) {
        return 0;
    }
    for (; *link != NULL; link = &(*link)->next) {
        struct sim_gap *gap = *link;
        uintptr_t base = (gap->base + alignment - 1) & ~(alignment - 1);

        if (base < gap->base || base - gap->base > gap->size ||
            gap->size - (base - gap->base) < size) {
            continue;
        }
        return cut(link, base, size) ? base : 0;
    }
    return 0;
}

bool sim_addresses_take_at(int window, uintptr_t base, size_t size)
{
    struct sim_gap **link = &windows[window].gaps;

    if (!prepare(window)) {
        return false;
    }
    for (; *link != NULL; link = &(*link)->next) {
        struct sim_gap *gap = *link;

        if (base >= gap->base && base - gap->base <= gap->size &&
            gap->size - (base - gap->base) >= size) {
            return cut(link, base, size);
        }
    }
    return false;
}

void sim_addresses_give(int window, uintptr_t base, size_t size)
{
    struct sim_gap **link = &windows[window].gaps;
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

    for (i = 0; i <= SIM_RANGE_WINDOW; i++) {
        while (windows[i].gaps != NULL) {
            struct sim_gap *gap = windows[i].gaps;

            windows[i].gaps = gap->next;
            free(gap);
        }
        windows[i].prepared = false;
    }
}
