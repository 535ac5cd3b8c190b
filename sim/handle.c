/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/handle.h"

#include <stdint.h>
#include <sys/mman.h>

/* LeakSanitizer finds pointers in no mapping but those that it is told of. */
#if defined(__SANITIZE_ADDRESS__)
#define LEAKS_ARE_SOUGHT 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LEAKS_ARE_SOUGHT 1
#endif
#endif
#ifdef LEAKS_ARE_SOUGHT
#include <sanitizer/lsan_interface.h>
#define LEAK_ROOT(base, size) __lsan_register_root_region((base), (size))
#define LEAK_NO_ROOT(base, size) __lsan_unregister_root_region((base), (size))
#else
#define LEAK_ROOT(base, size) ((void)0)
#define LEAK_NO_ROOT(base, size) ((void)0)
#endif

#define SIM_SLOTS ((size_t)1 << 20)

struct sim_slot *sim_slot_take(struct sim_slots *slots, void *object)
{
    struct sim_slot *slot = slots->free;

    if (slots->base == NULL) {
        void *base = mmap(NULL, SIM_SLOTS * sizeof(struct sim_slot),
                          PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        if (base == MAP_FAILED) {
            return NULL;
        }
        LEAK_ROOT(base, SIM_SLOTS * sizeof(struct sim_slot));
        slots->base = base;
    }
    if (slot != NULL && slots->reuse_late && slot->next_free == NULL &&
        slots->used < SIM_SLOTS) {
        slot = NULL;
    }
    if (slot != NULL) {
        slots->free = slot->next_free;
        if (slots->free == NULL) {
            slots->last_free = NULL;
        }
    } else if (slots->used < SIM_SLOTS) {
        slot = (struct sim_slot *)(void *)slots->base + slots->used;
        slots->used++;
    } else {
        return NULL;
    }
    slot->object = object;
    slot->next_free = NULL;
    slots->live++;
    return slot;
}

void sim_slot_give(struct sim_slots *slots, struct sim_slot *slot)
{
    slot->object = NULL;
    slots->live--;
    if (slots->reuse_late && slots->free != NULL) {
        slot->next_free = NULL;
        slots->last_free->next_free = slot;
        slots->last_free = slot;
        return;
    }
    slot->next_free = slots->free;
    slots->free = slot;
    if (slots->last_free == NULL) {
        slots->last_free = slot;
    }
}

enum sim_handle_state sim_slot_find(const struct sim_slots *slots,
                                    const void *handle, void **object)
{
    uintptr_t base = (uintptr_t)slots->base;
    uintptr_t offset = (uintptr_t)handle - base;
    const struct sim_slot *slot = handle;

    if (base == 0 || (uintptr_t)handle < base ||
        offset >= slots->used * sizeof *slot || offset % sizeof *slot != 0) {
        return SIM_HANDLE_FOREIGN;
    }
    if (slot->object == NULL) {
        return SIM_HANDLE_DEAD;
    }
    *object = slot->object;
    return SIM_HANDLE_LIVE;
}

void sim_slots_clear(struct sim_slots *slots)
{
    if (slots->base != NULL) {
        LEAK_NO_ROOT(slots->base, SIM_SLOTS * sizeof(struct sim_slot));
        munmap(slots->base, SIM_SLOTS * sizeof(struct sim_slot));
    }
    *slots = (struct sim_slots){.reuse_late = slots->reuse_late};
}
