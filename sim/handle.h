/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles: what the caller holds of a stream, event, context, pool or graph.
 *
 * A handle is the address of a small slot in a table that never shrinks, so
 * that any value a caller passes can be judged: alive, dead, or never ours.
 * A slot that becomes free is the next to be handed out (but see reuse_late):
 * the real driver recycles handles at once too, and programs must stand it.
 * The object behind a slot may outlive it (work of a destroyed stream, blocks
 * of a destroyed pool), and knows its handle no more.
 */
#ifndef SIM_HANDLE_H
#define SIM_HANDLE_H

#include <stdbool.h>
#include <stddef.h>

struct sim_slot {
    void *object; /**< NULL: the handle is dead */
    struct sim_slot *next_free;
    void *inherited; /**< what the next user of the slot finds */
};

struct sim_slots {
    char *base;  /**< address space for SIM_SLOTS slots */
    size_t used; /**< slots ever handed out */
    size_t live;
    struct sim_slot *free, *last_free;
    bool reuse_late; /**< oldest first, and one is kept back */
};

enum sim_handle_state {
    SIM_HANDLE_LIVE,
    SIM_HANDLE_DEAD,   /**< destroyed */
    SIM_HANDLE_FOREIGN /**< never one of this kind */
};

/** A slot for the object, or NULL without memory. */
struct sim_slot *sim_slot_take(struct sim_slots *slots, void *object);
void sim_slot_give(struct sim_slots *slots, struct sim_slot *slot);

/** Judge a handle; `*object` is set where it is alive. */
enum sim_handle_state sim_slot_find(const struct sim_slots *slots,
                                    const void *handle, void **object);

/** Forget all slots. */
void sim_slots_clear(struct sim_slots *slots);

#endif
