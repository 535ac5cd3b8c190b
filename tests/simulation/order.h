/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small programs that hand memory about, right ones and wrong ones: each is
 * run in both modes and under many seeds, and must be judged alike in all.
 */
#ifndef TESTS_SIMULATION_ORDER_H
#define TESTS_SIMULATION_ORDER_H

#include "tests/simulation/driver.h"

#define BLOCK ((size_t)4096)

/* Made anew for each run. */
struct order_world {
    CUcontext primary;
    CUstream a, b, c;  /* do not wait for the legacy default stream */
    CUstream x, y;     /* do */
    CUevent event[4];  /* none recorded */
    CUdeviceptr arena; /* plain memory: the host may use it at once */
    CUmemoryPool pool; /* of the driver, keeps its memory */
};

extern struct order_world world;

struct order_program {
    const char *name;
    void (*run)(void);
    int kind; /* the hazard that it must give; 0: none */
};

extern const struct order_program order_right[];
extern const struct order_program order_wrong[];

/* What a resource would do: announce, and the like. */
void hand_out(CUdeviceptr block, void *stream);
void take_back(CUdeviceptr block, void *stream);
/* A piece of work on a block: a fill. */
void use(CUdeviceptr block, CUstream stream);
/* `to` waits for what is enqueued on `from`, by that event of the world. */
void wait_for(CUstream to, CUstream from, int event);
/* A whole life on one stream: handed out, used, taken back. */
void live(CUdeviceptr block, CUstream stream);

/* One piece of physical memory, at two addresses. */
struct alias {
    CUmemGenericAllocationHandle piece;
    CUdeviceptr base; /* of the range */
    CUdeviceptr first, second;
};

void alias_make(struct alias *alias);
void alias_drop(struct alias *alias);

/* Run a function on a thread of its own, with the context current there. */
void on_another_thread(void (*function)(void));

#endif
