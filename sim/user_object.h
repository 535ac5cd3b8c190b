/* SPDX-License-Identifier: Apache-2.0 */
/*
 * User objects: what graphs keep alive for a program. Each has a count; when
 * it comes to nothing the program's destructor is called: at the end of the
 * call that did it, or by another thread where an instantiated graph was the
 * last to need it.
 */
#ifndef SIM_USER_OBJECT_H
#define SIM_USER_OBJECT_H

#include "sim/graph.h"

/** What a CUuserObject points at. */
struct CUuserObject_st {
    struct sim_slot slot;
};

struct sim_user_object {
    struct sim_user_object *next; /**< of those that are about to go */
    CUuserObject handle;
    CUhostFn destroy;
    void *data;
    uint64_t count;
};

/** Give up so many references. */
void sim_user_object_drop(struct sim_user_object *object, uint64_t count);
/** Put the same references in; false without memory. */
bool sim_references_copy(struct sim_reference **to,
                         const struct sim_reference *from);
void sim_references_drop(struct sim_reference **list);
/** The same, and nothing is destroyed. */
void sim_references_forget(struct sim_reference **list);
/** The same, and what goes is destroyed by another thread. */
void sim_references_drop_elsewhere(struct sim_reference **list);

/** Call the destructors of what went in this call; the lock is given up. */
void sim_user_objects_settle(struct sim_thread *self);
uint64_t sim_user_objects_live(void);
/** Forget them all; no destructor is called. */
void sim_user_objects_reset(void);

#endif
