/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control of the simulated CUDA driver (libcucoremr-sim.so). Its manual, with an
 * example of each function, is simulator.md, installed with the documentation.
 *
 * The simulator exports the entry points of a CUDA driver (cuInit,
 * cuMemAlloc_v2, ...). Beside them it exports one object, a table of functions
 * with which a test steers it:
 *
 *     void *library = dlopen("libcucoremr-sim.so", RTLD_NOW | RTLD_LOCAL);
 *     const ccmr_sim_table *sim = dlsym(library, CCMR_SIM_CONTROL_SYMBOL);
 *
 * The table begins with its own size: a function is there when its place in
 * the table lies within that size. Places never move; new ones come at the
 * end. Any function may be called from any thread, before cuInit too, except
 * from a host function that a stream runs. Functions that return int return 0
 * on success and -1 on a bad argument, unless said otherwise.
 *
 * The environment is read once, before the first call takes effect:
 *
 *     CUCOREMR_SIM_DEVICES         how many devices (0 to 16; 1)
 *     CUCOREMR_SIM_MEMORY          bytes of each device, with K, M, G, T or
 *                                  KiB, MiB, GiB, TiB after the number (16GiB)
 *     CUCOREMR_SIM_MODE            eager or late (eager)
 *     CUCOREMR_SIM_SEED            seed of the schedule (0)
 *     CUCOREMR_SIM_DRIVER_VERSION  such as 13000 (13000)
 *     CUCOREMR_SIM_HIDE            name,name: calls that are not there
 *     CUCOREMR_SIM_STRICT          1: a hazard ends the process (0)
 *     CUCOREMR_SIM_ORDER           1: the order of accesses is checked (0)
 *     CUCOREMR_SIM_COSTS           1: what calls would take is counted (0)
 *
 * What is set through the table later counts instead. This header needs
 * neither cuda.h nor any other header of the project; stream handles are given
 * as void pointers, statuses (CUresult) as int.
 */
#ifndef CUCOREMR_SIM_H
#define CUCOREMR_SIM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CCMR_SIM_CONTROL_SYMBOL "ccmr_sim_control"

/** When work runs. */
typedef enum ccmr_sim_mode {
    /** Each operation runs at once, inside the call that enqueues it. */
    CCMR_SIM_EAGER = 0,
    /** Nothing runs before something waits or asks: the host is ahead. */
    CCMR_SIM_LATE = 1
} ccmr_sim_mode;

/** One call of an entry point, as the log keeps it. */
typedef struct ccmr_sim_record {
    /** Counts all calls of the process since the log was started. */
    uint64_t sequence;
    /** The calling thread: a small number in the order of first calls. */
    uint64_t thread;
    /** The name without version, such as "cuMemAlloc"; never freed. */
    const char *call;
    /** The stream as the caller named it (tokens too), else NULL. */
    void *stream;
    /** Its unique id, or 0. */
    uint64_t stream_id;
    /** The address, pool, event or context that the call is about, or 0. */
    uint64_t object;
    /** A second one: the source of a copy, the event of a wait, the pool of
     *  an allocation; or 0. */
    uint64_t other;
    /** Bytes of the call, or 0. */
    uint64_t bytes;
    /** The status (CUresult) that it answered. */
    int result;
    /** 1 where that status was ordered with fail(). */
    int injected;
} ccmr_sim_record;

/** What is alive. Set `size` before the call. */
typedef struct ccmr_sim_census {
    size_t size;
    uint64_t contexts;     /**< created ones, and retains of primaries */
    uint64_t streams;      /**< created, not destroyed */
    uint64_t events;       /**< created, not destroyed */
    uint64_t pools;        /**< created, not destroyed */
    uint64_t graphs;       /**< made by hand or by captures */
    uint64_t captures;     /**< begun, not ended */
    uint64_t plain_blocks; /**< cuMemAlloc */
    uint64_t plain_bytes;
    uint64_t pinned_blocks; /**< cuMemHostAlloc, cuMemAllocHost */
    uint64_t pinned_bytes;
    uint64_t registered_ranges; /**< cuMemHostRegister */
    uint64_t managed_blocks;    /**< cuMemAllocManaged */
    uint64_t managed_bytes;
    uint64_t pool_blocks; /**< from any pool, not yet freed */
    uint64_t pool_bytes;
    uint64_t pending_operations; /**< enqueued, not yet run */
    uint64_t device_bytes;       /**< device memory taken, all devices */
    uint64_t touched_bytes;      /**< host memory that stands behind it */
    uint64_t pieces;             /**< cuMemCreate, held or mapped */
    uint64_t piece_bytes;
    uint64_t ranges;       /**< cuMemAddressReserve */
    uint64_t mappings;     /**< cuMemMap */
    uint64_t imports;      /**< pointers of other processes */
    uint64_t graph_blocks; /**< that launches left to the program */
    uint64_t graph_bytes;
    uint64_t graph_execs;  /**< instantiated graphs */
    uint64_t user_objects; /**< with references to them */
} ccmr_sim_census;

/** What the simulator saw go wrong without any call failing. */
typedef enum ccmr_sim_hazard_kind {
    /** A pool was destroyed while frees to it were pending, or not yet seen
     *  to be finished: a real driver is corrupted, and a later call on another
     *  pool crashes or spins. `object` is the pool, `before` the stream. */
    CCMR_SIM_POOL_DESTROYED_EARLY = 1,

    /* What the check of order finds: see check_order(). */

    /** A block was handed out on a stream that is not ordered behind what was
     *  done with its memory before. */
    CCMR_SIM_HANDED_OUT_EARLY = 2,
    /** ... while it, or a part of it, was handed out and not freed. */
    CCMR_SIM_HANDED_OUT_TWICE = 3,
    /** Work uses memory, but is not ordered behind the hand-out. */
    CCMR_SIM_USED_EARLY = 4,
    /** Work was enqueued that uses memory which was freed. */
    CCMR_SIM_USED_FREED = 5,
    /** A block was freed on a stream that is not ordered behind all of its
     *  uses; those that a resource was told of are left to that. */
    CCMR_SIM_FREED_EARLY = 6,
    /** What was freed had not been handed out. */
    CCMR_SIM_FREED_TWICE = 7,
    /** Memory went back to the driver in which there was a block that had been
     *  handed out and not freed. */
    CCMR_SIM_TAKEN_AWAY = 8,
    /** Memory was unmapped from an address while the host did not know that
     *  all work is done that uses it there. */
    CCMR_SIM_UNMAPPED_EARLY = 9
} ccmr_sim_hazard_kind;

/** In place of a stream: the host itself, which has to have waited. */
#define CCMR_SIM_HOST ((void *)(intptr_t)-1)

/** Who did something. */
typedef struct ccmr_sim_party {
    uint64_t thread;    /**< as in the log */
    uint64_t sequence;  /**< how many calls had been made by then */
    uint64_t stream_id; /**< 0: no stream, but the host itself */
    uint64_t position;  /**< which operation of that stream */
    const char *call;   /**< never freed; may be NULL */
} ccmr_sim_party;

/** One hazard. Set `size` before the call. */
typedef struct ccmr_sim_hazard {
    size_t size;
    ccmr_sim_hazard_kind kind;
    uint64_t address; /**< the memory that it is about, or 0 */
    uint64_t bytes;
    uint64_t object;       /**< the pool that it is about, or 0 */
    ccmr_sim_party now;    /**< what was done */
    ccmr_sim_party before; /**< what it came too early after */
    uint64_t seed;         /**< of the schedule */
    char text[512];        /**< all of it for people */
} ccmr_sim_hazard;

/** Everything that can be steered. */
typedef struct ccmr_sim_table {
    size_t size;

    /* The whole. */

    /** Return to the state before cuInit: all objects go, the environment is
     *  read again. Tells what was alive where `left` is given. No other
     *  thread may be in a call. Returns the number of objects left. */
    uint64_t (*reset)(ccmr_sim_census *left);
    /** Count what is alive. */
    int (*census)(ccmr_sim_census *census);

    /* The machine. The first two take effect at cuInit: afterwards -1. */

    int (*set_devices)(int count);
    /** cuGetProcAddress does not find calls that are newer; dlsym does. */
    int (*set_driver_version)(int version);
    /** Capacity of a device, at most 256 GiB; -1 for all of them. May fall
     *  below what is taken: then allocations fail until enough is freed. */
    int (*set_memory)(int device, uint64_t bytes);
    /** A device attribute (CUdevice_attribute); device -1 for all. */
    int (*set_attribute)(int device, int attribute, int value);
    /** Make a call look absent: cuGetProcAddress does not find it, and if it
     *  is called all the same, by way of dlsym, it answers 500 (not found). */
    int (*hide)(const char *call);
    int (*unhide)(const char *call);
    /** Every call answers 34 and writes nothing, like the toolkit's stub. */
    int (*set_stub)(int on);
    /** Every call answers 4, like a driver that is being unloaded. */
    int (*set_deinitialized)(int on);

    /* The schedule. */

    /** Changing to eager runs what is enqueued. */
    int (*set_mode)(ccmr_sim_mode mode);
    /** With seed 0 work runs in the order in which it was enqueued, and who
     *  asks for it (a query) finds all done that could be done. With any
     *  other seed chance decides which of the streams that could run goes
     *  on, and how far it is when somebody asks. */
    int (*set_seed)(uint64_t seed);
    /** Hold a stream: what is enqueued on it, and what waits for that, does
     *  not run until release. A token stands for the calling thread's
     *  stream of the current context. Stalls do not nest. */
    int (*stall)(void *stream);
    /** Release every stream that was stalled by that handle or token, from
     *  whatever thread, even if the handle was destroyed meanwhile. */
    int (*release)(void *stream);
    /** Run up to so many operations that could run now; tells how many. */
    uint64_t (*run)(uint64_t operations);
    /** Operations of a stream that have not run. */
    uint64_t (*pending)(void *stream);
    /** A wait that lasts longer, on streams that nobody releases, is reported
     *  and ends the process. In milliseconds; 0: wait for ever. (60000) */
    int (*set_wait_limit)(uint64_t milliseconds);

    /* Faults, counts, log. Calls are named without version ("cuMemAlloc"). */

    /** The n-th call of that name from now (the first is 1) answers `result`
     *  and does nothing. `call` NULL: the n-th call of any name. Several
     *  orders may stand at once. */
    int (*fail)(const char *call, uint64_t nth, int result);
    /** As fail, but the call is carried out, and then answers `result`. */
    int (*fail_after)(const char *call, uint64_t nth, int result);
    /** Withdraw all orders; tells how many had not been met. */
    uint64_t (*forget_failures)(void);
    /** Calls made of that name, or of all (NULL), failed ones included. */
    uint64_t (*calls)(const char *call);
    int (*forget_calls)(void);
    /** Keep the last `capacity` calls; 0 stops and drops the log. */
    int (*log)(size_t capacity);
    /** How many records are held. */
    size_t (*log_count)(void);
    /** The i-th of them, the oldest first. */
    int (*log_read)(size_t index, ccmr_sim_record *record);

    /* Looking inside. */

    /** The host bytes behind device memory, or NULL. `bytes` must lie in one
     *  block. For a look only: no order is kept. */
    void *(*peek)(uint64_t address, size_t bytes);
    /** Is the block at that address alive? 1 or 0. */
    int (*is_alive)(uint64_t address);

    /* Hazards. The first 32 are told on standard error, too. */

    /** How many there were. */
    uint64_t (*hazards)(void);
    /** The i-th of them, the oldest first; the first 32 are kept. */
    int (*hazard_read)(size_t index, ccmr_sim_hazard *hazard);
    /** Forget them; tells how many there were. */
    uint64_t (*forget_hazards)(void);
    /** A hazard ends the process, as with CUCOREMR_SIM_STRICT=1. */
    int (*set_strict)(int on);

    /* The check of order. It holds what every piece of work is ordered behind,
     * by the rules of CUDA, against every use of memory: an answer that does
     * not depend on when work runs. It knows of copies, fills, allocations and
     * frees of the driver by itself; tests say when a resource hands a block
     * out or takes one back, and which memory other work uses. All functions
     * answer 0, also while nothing is checked, and -1 for bad arguments.
     *
     * `stream` is a handle, a token of the calling thread, or CCMR_SIM_HOST. */

    /** Begin (1) or end (0) checking, as with CUCOREMR_SIM_ORDER=1. Of memory
     *  that the program got before, only what follows a hand-out counts. */
    int (*check_order)(int on);
    /** A resource has handed a block out, which work enqueued on the stream
     *  from now on may use; to be said after the allocation. With
     *  CCMR_SIM_HOST anybody may, the host too. */
    int (*handed_out)(uint64_t address, uint64_t bytes, void *stream);
    /** It is about to be freed, behind what was enqueued on the stream; to be
     *  said before the resource hears of it. With CCMR_SIM_HOST all work on it
     *  is known to be done. */
    int (*freed)(uint64_t address, uint64_t bytes, void *stream);
    /** A resource was told that work on this stream, too, uses a live block:
     *  what was enqueued up to now, or (until_free) will have been until the
     *  free. Its waiting for that is the resource's matter. */
    int (*noted)(uint64_t address, uint64_t bytes, void *stream,
                 int until_free);
    /** A piece of work, as a kernel would be, is enqueued on the stream that
     *  uses the memory; or the host itself does. */
    int (*used)(uint64_t address, uint64_t bytes, void *stream);
    /** The host has learned by means of its own, such as a flag that a host
     *  function set, that all work of the stream is done up to now. */
    int (*learned)(void *stream);
    /** The resource refused a free that was told of: the block, given by its
     *  whole extent, is what it was. */
    int (*not_freed)(uint64_t address, uint64_t bytes);

    /* More of the machine. */

    /** Can a device reach the memory of another one? All can at first; takes
     *  effect for what is asked for from now on. */
    int (*set_peers)(int device, int peer, int on);

    /* Costs. What calls took on an H200 (driver 580.159.04; one thread, idle
     * streams) is added up as they are made: an estimate, the same in every
     * run, of the host's time in a driver. By size are: plain and pinned
     * memory, and virtual memory by each handle that a call covers; pools
     * also by what they take from and give back to their device. Not in it:
     * waiting for work, and what threads cost each other. A call that was
     * never measured has no cost and is counted; so is one that fails. */

    /** Begin (1) or end (0), as with CUCOREMR_SIM_COSTS=1. */
    int (*set_costs)(int on);
    /** Nanoseconds of all threads in calls of that name, or in all (NULL). */
    uint64_t (*cost)(const char *call);
    /** Nanoseconds of the calling thread. */
    uint64_t (*thread_cost)(void);
    /** How many calls of that name, or of all, were made that are not in it. */
    uint64_t (*cost_unknown)(const char *call);
    /** Count from 0 again. */
    int (*forget_costs)(void);
} ccmr_sim_table;

/** The table itself; found by dlsym. */
extern const ccmr_sim_table ccmr_sim_control;

#ifdef __cplusplus
}
#endif

#endif
